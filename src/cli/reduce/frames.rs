//! Whole contributions, as vectors of frames.

use crate::engines;
use serde::Deserialize;

use super::arguments::{Arguments, Failure, Family, Order, order, places};
use super::engines::join_all;
use crate::contributions::{self, Request};
use watershed_arith::quad::OPCODES;
use watershed_arith::{Contribution, Flags, Mode, Op, Opcode, Quad, ResultCode};
use watershed_scenario_interface::names;
use watershed_scenario_interface::simulator::EngineOperation;

/// Whether an object is of whole contributions and not a list of operands.
pub(super) fn is_of_contributions(text: &str) -> Result<bool, String> {
    #[derive(Deserialize)]
    struct InputKeys {
        op: Option<serde::de::IgnoredAny>,
        contributions: Option<serde::de::IgnoredAny>,
    }
    let keys: InputKeys = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(keys.contributions.is_some() || keys.op.is_some())
}

pub(super) fn contributions(arguments: &Arguments, name: &str, text: &str) -> Result<String, Failure> {
    let request = contributions::parse(text).map_err(|error| format!("{name}: {error}"))?;
    if arguments.op.is_some() || arguments.dtype.is_some() {
        return Err("whole contributions say what is to be done: leave out --op and --type".to_owned().into());
    }
    if arguments.all_orders.is_some() {
        return Err("--all-orders is for single operands, not for whole contributions".to_owned().into());
    }
    let order = order(&arguments.order, request.contributions.len())?;
    let places = places(&order, request.contributions.len());
    let arranged: Vec<Contribution> = places.iter().map(|&k| request.contributions[k]).collect();
    let request = Request { contributions: arranged, ..request };
    let configured = Mode { nan: arguments.nan, signal: arguments.signal, ..Mode::default() };
    let quad = match arguments.family {
        None => {
            let unit = request.opcode.unit(configured);
            let quads = request.contributions.iter().map(|contribution| contribution.quad).collect();
            join_all(quads, order == Order::Tree, |a, b| unit.evaluate(a, b))
        }
        Some(Family::Piuma) => piuma_frames(&request, configured, arguments.radix)?,
        Some(Family::Armed) => return armed_frames(&request, configured),
        Some(Family::Pbv) => pbv_frames(&request, configured, order == Order::Tree)?,
    };
    let count = request.contributions.iter().map(|contribution| u64::from(contribution.count)).sum::<u64>();
    let count = u32::try_from(count).ok().filter(|&count| count <= Contribution::MAX_COUNT);
    let count = count.ok_or_else(|| {
        Failure::Bad(format!("{name}: the counts add up to more than the {} a frame can say", Contribution::MAX_COUNT))
    })?;
    Ok(format!("{}\n", contributions::print(&Contribution { quad, count })))
}

/// Frames through an engine in the wire, armed for as many contributions as their counts come to; it counts itself.
fn armed_frames(request: &Request, mode: Mode) -> Result<String, Failure> {
    let total: u64 = request.contributions.iter().map(|frame| u64::from(frame.count)).sum();
    if total == 0 || total > u64::from(Contribution::MAX_COUNT) {
        let why = format!("an engine waits for 1 to {} contributions, not {total}", Contribution::MAX_COUNT);
        return Err(Failure::Bad(why));
    }
    let only = engines().armed_frame(request.opcode, mode, &request.contributions).map_err(Failure::Bad)?;
    Ok(format!("{}\n", contributions::print(&only)))
}

/// Frames through a packet engine: the four words are the payload, and what flags the frame brings and takes away are its
/// result code.
fn pbv_frames(request: &Request, configured: Mode, pbv_order: bool) -> Result<Quad, Failure> {
    let select = common_select(request.opcode, configured, Family::Pbv)?;
    let mut contributions = Vec::with_capacity(request.contributions.len());
    for (k, Contribution { quad, .. }) in request.contributions.iter().enumerate() {
        let flags = plain_flags(k, quad, Family::Pbv)?;
        // A barrier's frame has no payload.
        let words = if select.op == Op::Barrier { Vec::new() } else { quad.lanes.to_vec() };
        contributions.push((words, flags));
    }
    let (words, flags) = engines().pbv_packet(select, pbv_order, &contributions).map_err(Failure::Engine)?;
    let words = if select.op == Op::Barrier { vec![0; 4] } else { words };
    let lanes = <[u64; 4]>::try_from(words).map_err(|_| Failure::Engine("the engine answered other words".into()))?;
    Ok(Quad { code: ResultCode::of(flags), ..Quad::of(lanes) })
}

/// The flags of a frame that comes to an engine without result codes.
fn plain_flags(k: usize, quad: &Quad, family: Family) -> Result<Flags, String> {
    let engine = family.engine();
    if quad.m != 0 || quad.oflow_id != 0 {
        let why = "`m` and `oflow_id` belong to a reproducible sum, which";
        return Err(format!("contribution {k}: {why} {engine} does not have"));
    }
    quad.code.flags().ok_or_else(|| format!("contribution {k}: the flits of {engine} have no flag for {}", quad.code))
}

/// What an engine of the common operations does for an opcode of the armed family.
fn common_select(opcode: &Opcode, configured: Mode, family: Family) -> Result<EngineOperation, String> {
    let known = |opcode: &Opcode| Op::COMMON.contains(&opcode.op);
    if !known(opcode) {
        let names = OPCODES.iter().filter(|&opcode| known(opcode)).map(|opcode| opcode.name);
        return Err(format!("{} has no {}; it has {}", family.engine(), opcode.name, names::one_of(names)));
    }
    let mode = Mode { flush_to_zero: opcode.flush_to_zero, round: opcode.round, ..configured };
    Ok(EngineOperation { op: opcode.op, dtype: opcode.dtype, mode })
}

/// Frames through the collective engine: the four words are four elements of one stream, and what flags a word's flit
/// brings and takes away are the frame's result code.
fn piuma_frames(request: &Request, configured: Mode, radix: u8) -> Result<Quad, Failure> {
    let select = common_select(request.opcode, configured, Family::Piuma)?;
    let mut frames = Vec::with_capacity(request.contributions.len());
    for (k, Contribution { quad, .. }) in request.contributions.iter().enumerate() {
        let flags = plain_flags(k, quad, Family::Piuma)?;
        frames.push(quad.lanes.map(|word| (word, flags)));
    }
    while frames.len() > 1 {
        let mut groups: Vec<Vec<(u64, Flags)>> = Vec::new();
        for chunk in frames.chunks(usize::from(radix)) {
            groups.extend((0..4).map(|lane| chunk.iter().map(|frame| frame[lane]).collect()));
        }
        let results = engines().piuma_stream(select, u16::from(radix), None, &groups).map_err(Failure::Engine)?;
        frames = results.chunks_exact(4).map(|lanes| [lanes[0], lanes[1], lanes[2], lanes[3]]).collect();
    }
    let code = |flags| ResultCode::of(flags);
    let code = frames[0].iter().fold(ResultCode::Ok, |all, &(_, flags)| all.climb(code(flags)));
    Ok(Quad { code, ..Quad::of(frames[0].map(|(word, _)| word)) })
}
