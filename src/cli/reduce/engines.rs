//! Single operands through units, trees and engines.

use watershed_pbv as pbv;

use super::arguments::{Failure, Family, OperandRequest, Order, Outcome};
use crate::alu::leaf;
use watershed_arith::{DType, Flags, Mode, Op, Operands, Quad, QuadUnit, TreeCfg, TreeIn, Unit, tree};
use watershed_fabric::routing::{Routes, Routing};
use watershed_fabric::topology::Mesh;
use watershed_fabric::{Flit, Join, JoinCx, QueueLengths, Tag};
use watershed_kernel::Cycle;
use watershed_piuma::{Ceng, CengCfg, OpSelect, REQUEST, RESPONSE, Registers, RegistersCfg};

pub(super) fn mode(arguments: &OperandRequest) -> Mode {
    let OperandRequest { round, flush_to_zero, nan, signal, .. } = *arguments;
    Mode { round, flush_to_zero, nan, signal }
}

/// Reduces operands that stand at their places already; `places` says which operand each of them is.
pub(super) fn reduce(
    arguments: &OperandRequest,
    order: &Order,
    places: &[usize],
    arranged: &[u64],
) -> Result<Outcome, Failure> {
    let OperandRequest { op, dtype, radix, .. } = *arguments;
    let mode = mode(arguments);
    if arguments.family == Some(Family::Piuma) {
        let select = OpSelect { op, dtype, mode };
        let (lane, flags) = engine(select, radix, *order == Order::Arrival, places, arranged)?;
        return Ok(Outcome::Lane(lane, flags));
    }
    if arguments.family == Some(Family::Pbv) {
        let contributions: Vec<(Vec<u64>, Flags)> = arranged.iter().map(|&word| (vec![word], Flags::NONE)).collect();
        let in_order = *order == Order::Tree;
        let (words, flags) = pbv::reduce::reduce(op, dtype, mode, in_order, &contributions).map_err(Failure::Engine)?;
        return Ok(Outcome::Lane(words.first().copied().unwrap_or(0) & dtype.lane_mask(), flags));
    }
    if op.is_wide() {
        let unit = QuadUnit::new(op, dtype, mode).ok_or_else(|| format!("{op} does not exist for {dtype}"))?;
        let leaves: Vec<Quad> = places.iter().zip(arranged).map(|(&k, &value)| leaf(op, k as u64, value)).collect();
        return Ok(Outcome::Frame(join_all(leaves, *order == Order::Tree, |a, b| unit.evaluate(a, b))));
    }
    if *order == Order::Tree {
        let (lane, flags) = unregistered_tree(op, dtype, mode, radix, arranged);
        return Ok(Outcome::Lane(lane, flags));
    }
    let function = watershed_arith::Function::of(op).ok_or_else(|| format!("{op} has no unit"))?;
    let unit = Unit::new(function, dtype, mode);
    let mut flags = Flags::NONE;
    let lane = join_all(arranged.to_vec(), false, |a, b| {
        let done = unit.evaluate(a, b);
        flags |= done.flags;
        done.bits
    });
    Ok(Outcome::Lane(lane, flags))
}

/// Neighbours level by level, or one after another.
pub(super) fn join_all<T: Copy>(mut items: Vec<T>, by_levels: bool, mut join: impl FnMut(T, T) -> T) -> T {
    if !by_levels {
        let first = items[0];
        return items[1..].iter().fold(first, |sum, &item| join(sum, item));
    }
    while items.len() > 1 {
        items = items.chunks(2).map(|pair| if let [a, b] = *pair { join(a, b) } else { pair[0] }).collect();
    }
    items[0]
}

/// Reduction trees of this radix above one another, without registers.
fn unregistered_tree(op: Op, dtype: DType, mode: Mode, radix: u8, operands: &[u64]) -> (u64, Flags) {
    let cfg = TreeCfg { radix, unit_stages: 1 };
    let mut flags = Flags::NONE;
    let mut words = operands.to_vec();
    while words.len() > 1 {
        words = words
            .chunks(usize::from(radix))
            .map(|chunk| {
                let operands = Operands::from_words(chunk);
                let out = tree::eval(cfg, &TreeIn { op, dtype, mode, operands, flags: Flags::NONE, tag: 0 });
                flags |= out.flags;
                out.value & dtype.lane_mask()
            })
            .collect();
    }
    (words[0], flags)
}

/// The collective engine, level above level: every group of operands is one element of a stream through its ports.
pub(super) fn engine(
    select: OpSelect,
    radix: u8,
    one_a_cycle: bool,
    places: &[usize],
    operands: &[u64],
) -> Result<(u64, Flags), Failure> {
    let ports = usize::from(radix);
    let mut words: Vec<(u64, Flags)> = operands.iter().map(|&word| (word, Flags::NONE)).collect();
    let mut places = places.to_vec();
    while words.len() > 1 {
        // One a cycle: in the order of the operands' own numbers, each at its port. A stream must keep its order at
        // every port, or the engine's sequence check would complain.
        let arrivals = one_a_cycle.then(|| {
            let mut arrivals: Vec<usize> = (0..words.len()).collect();
            arrivals.sort_by_key(|&place| (place / ports, places[place]));
            arrivals
        });
        let groups: Vec<Vec<(u64, Flags)>> = words.chunks(ports).map(<[_]>::to_vec).collect();
        words = engine_level(select, u16::from(radix), arrivals.as_deref(), &groups)?;
        for (word, _) in &mut words {
            *word &= select.dtype.lane_mask();
        }
        places = (0..words.len()).collect();
    }
    Ok(words[0])
}

/// The engine of the only switch of a star. Collective id 0 joins all ports; id 1 those of the last, smaller groups, which
/// are of one size. Operands come as fast as they are taken, or one a cycle in this order of their places.
pub(super) fn engine_level(
    select: OpSelect,
    ports: u16,
    arrivals: Option<&[usize]>,
    groups: &[Vec<(u64, Flags)>],
) -> Result<Vec<(u64, Flags)>, Failure> {
    let routing = Routing::Mesh(Mesh { size: vec![1], concentration: ports });
    let cfg = RegistersCfg { switches: 1, ids: 2, external_ports: ports };
    let mut registers = Registers::new(cfg, vec!["star".to_owned()], Routes { routing, ends: Vec::new() });
    let rest = groups.last().map_or(0, Vec::len) as u16;
    let mut store = |address, value| registers.store(address, value).map_err(|error| error.to_string());
    for (id, members) in [(0, ports), (1, rest)] {
        store(Registers::select_address(0, id), select.encode())?;
        for port in 0..members {
            store(Registers::vector_address(0, id, REQUEST, port), 1 << ports)?;
        }
        // The result turns into a response here: the switch is the root.
        store(Registers::vector_address(0, id, RESPONSE, ports), 1)?;
    }
    let tree = TreeCfg { radix: ports as u8, unit_stages: 3 };
    let result_slots = CengCfg::enough_result_slots(tree, 1);
    let mut ceng = Ceng::new(CengCfg { tree, operand_slots: 2, result_slots, scan_slots: 1 });

    let count = groups.len();
    let mut sent = vec![0; usize::from(ports)];
    let mut results = vec![(0, Flags::NONE); count];
    let mut finished = 0;
    let mut arriving = arrivals.unwrap_or_default().iter().copied().peekable();
    let limit = (groups.iter().map(Vec::len).sum::<usize>() as Cycle + 1000) * 20;
    for now in 0..limit {
        let put_flit = |ceng: &mut Ceng, group: usize, port: u16| {
            let (word, flags) = groups[group][usize::from(port)];
            let full = groups[group].len() == usize::from(ports);
            let mut tag = Tag(0);
            tag.set_head(true);
            tag.set_tail(true);
            tag.set_vc(REQUEST);
            tag.set_id(u16::from(!full));
            tag.set_seq(group as u64);
            tag.set_flags(flags.bits());
            ceng.put_flit(port, REQUEST, Flit { tag, word }, now + 1);
        };
        if arrivals.is_some() {
            if let Some(&place) = arriving.peek() {
                let (group, port) = (place / usize::from(ports), (place % usize::from(ports)) as u16);
                if ceng.has_room(port, REQUEST) {
                    put_flit(&mut ceng, group, port);
                    arriving.next();
                }
            }
        } else {
            for port in 0..ports {
                let group = sent[usize::from(port)];
                if group < count && usize::from(port) < groups[group].len() && ceng.has_room(port, REQUEST) {
                    put_flit(&mut ceng, group, port);
                    sent[usize::from(port)] += 1;
                }
            }
        }
        let out = ceng.tick(&JoinCx { tables: &registers, switch: 0, now, queued: QueueLengths::default() });
        if let Some(fault) = out.fault {
            return Err(Failure::Engine(fault.into()));
        }
        if let Some(flit) = out.result {
            results[flit.tag.seq() as usize] = (flit.word, Flags::from_bits(flit.tag.flags()));
            finished += 1;
        }
        if finished == count {
            return Ok(results);
        }
    }
    Err(Failure::Engine(format!("the engine did not finish in {limit} cycles")))
}
