//! The golden result of a collective: the oracle evaluates the tree that was read back from the registers.

use super::config::{Collective, CollectiveKind};
use watershed_arith::{Flags, Mode};
use watershed_oracle::{self as oracle, EngineList, Node};

/// A word of a contribution as the network carries it, found without the fragmenter: every lane is widened by the
/// oracle. `stored` gives a word of it as it stands in memory.
pub fn contribution(collective: &Collective, word: usize, stored: &dyn Fn(usize) -> u64) -> (u64, Flags) {
    let Some(pair) = collective.accumulate else { return (stored(word), Flags::NONE) };
    let (narrow, wide) = (pair.operand(), pair.accumulator());
    let (per_word, per_wide) = (64 / narrow.bits() as usize, 64 / wide.bits() as usize);
    let mut flags = Flags::NONE;
    let value = (0..per_wide).fold(0, |value, lane| {
        let element = word * per_wide + lane;
        let bits = stored(element / per_word) >> ((element % per_word) as u32 * narrow.bits());
        let bits = bits & u64::MAX >> (64 - narrow.bits());
        let (widened, raised) = oracle::exact::convert(narrow, wide, collective.round, bits);
        flags |= raised;
        value | widened << (lane as u32 * wide.bits())
    });
    (value, flags)
}

/// What each of the participants must get: one row for all, or of a scan one a rank; and the sticky flags.
pub fn rows(
    collective: &Collective,
    tree: Option<&EngineList>,
    ranks: usize,
    elements: usize,
    stored: &dyn Fn(usize, usize) -> u64,
) -> (Vec<Vec<u64>>, Flags) {
    if collective.kind != CollectiveKind::Scan {
        let (row, flags) = evaluate(collective, tree, elements, stored);
        return (vec![row], flags);
    }
    let lanes = 64 / collective.dtype.bits() as usize;
    let tree = tree.map_or(Node::Leaf(0), |tree| tree.node(&|switch| switch.to_string()));
    let mut rows = vec![Vec::with_capacity(elements); ranks];
    let mut flags = Flags::NONE;
    for word in 0..elements.div_ceil(lanes) {
        let results = super::scan::evaluate(collective, &tree, ranks, &|rank| stored(rank, word));
        for (row, (value, raised)) in rows.iter_mut().zip(results) {
            flags |= raised;
            for lane in 0..lanes.min(elements - row.len()) {
                row.push(value >> (lane as u32 * collective.dtype.bits()) & u64::MAX >> (64 - collective.dtype.bits()));
            }
        }
    }
    (rows, flags)
}

/// Elements of the result and sticky flags; without a tree, of the only contribution. `stored` gives words of contributions as they stand in memory.
pub fn evaluate(
    collective: &Collective,
    tree: Option<&EngineList>,
    elements: usize,
    stored: &dyn Fn(usize, usize) -> u64,
) -> (Vec<u64>, Flags) {
    let mode = Mode::rounding(collective.round);
    let dtype = collective.network_dtype();
    let lanes = 64 / dtype.bits() as usize;
    let elements = if collective.kind == CollectiveKind::Barrier { 0 } else { elements };
    let words = elements.div_ceil(lanes);
    let mut flags = Flags::NONE;
    let mut result = Vec::with_capacity(elements);
    for word in 0..words {
        let raised_before = std::cell::Cell::new(Flags::NONE);
        let operand = |row: usize| {
            let (value, raised) = contribution(collective, word, &|at| stored(row, at));
            raised_before.set(raised_before.get() | raised);
            value
        };
        let op = super::build::operation(collective);
        // One contribution alone goes to all as it is.
        let (value, raised) =
            tree.map_or_else(|| (operand(0), Flags::NONE), |tree| tree.evaluate(op, dtype, mode, &operand));
        flags |= raised | raised_before.get();
        for lane in 0..lanes.min(elements - result.len().min(elements)) {
            let wide = value >> (lane as u32 * dtype.bits()) & u64::MAX >> (64 - dtype.bits());
            let (element, raised) = if collective.result_dtype() == dtype {
                (wide, Flags::NONE)
            } else {
                oracle::exact::convert(dtype, collective.dtype, mode.round, wide)
            };
            flags |= raised;
            result.push(element);
        }
    }
    (result, flags)
}
