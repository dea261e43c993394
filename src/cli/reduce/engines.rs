//! Single operands through units, trees and engines.

use super::arguments::{Failure, Family, OperandRequest, Order, Outcome};
use crate::alu::leaf;
use crate::engines;
use watershed_arith::{DType, Flags, Mode, Op, Operands, Quad, QuadUnit, TreeCfg, TreeIn, Unit, tree};
use watershed_scenario_interface::simulator::EngineOperation;

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
        let select = EngineOperation { op, dtype, mode };
        let (lane, flags) = engine(select, radix, *order == Order::Arrival, places, arranged)?;
        return Ok(Outcome::Lane(lane, flags));
    }
    if arguments.family == Some(Family::Pbv) {
        let contributions: Vec<(Vec<u64>, Flags)> = arranged.iter().map(|&word| (vec![word], Flags::NONE)).collect();
        let in_order = *order == Order::Tree;
        let (words, flags) = engines()
            .pbv_packet(EngineOperation { op, dtype, mode }, in_order, &contributions)
            .map_err(Failure::Engine)?;
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
    select: EngineOperation,
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
        words =
            engines().piuma_stream(select, u16::from(radix), arrivals.as_deref(), &groups).map_err(Failure::Engine)?;
        for (word, _) in &mut words {
            *word &= select.dtype.lane_mask();
        }
        places = (0..words.len()).collect();
    }
    Ok(words[0])
}
