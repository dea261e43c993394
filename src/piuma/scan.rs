//! The scan unit beside the tree of a CENG: prefix scans in rank order (requirement P-COL-2; "In-network multicast
//! operations" names prefix scans; "Accelerating Allreduce …", section "Discussion", leaves open how).
//!
//! ```text
//!   requests, all inputs ─▶ chain in rank order ─┬─ total ─▶ crossbar input of the engine, on its way up
//!                                                └─ prefix of each input ─▶ retained, an entry an element
//!                                                                             │
//!   response from above: all that is before this subtree ───────▶ combine ◀───┘
//!                                                                   └─▶ one response an input, in rank order
//! ```
//!
//! | parameter | default | unit | range | effect |
//! |---|---|---|---|---|
//! | `switch.ceng.scan_slots` | 128 | elements | from 1 | elements that a switch keeps between total and response; with fewer than the round trip the rate falls |
//!
//! The whole unit is *chosen*: ascending port order is not rank order, and a scan needs partial results on the way
//! back. The *order register* of a switch and id (offset 0x808 in the id's page) lists input ports in rank order, four
//! bits each, the first one lowest, as port + 1; 0 ends the list. Where it is not empty, the CENG reduces the listed
//! ports in that order by a chain instead of its tree, and keeps the prefixes. A response of the id that comes in by
//! the port where the total left goes to the unit instead of through its response register.
//!
//! Order of a reduction: let x1, …, xk enter a switch in rank order. The prefix of input j is (…(x1 + x2) + …) +
//! x(j-1), and the total is (…(x1 + x2) + …) + xk. Input j gets E + prefix, where E is the response from above. For an
//! inclusive scan the core reads its own value again and adds it in a unit of its end point, which has as many stages.
//! Integer results are those of a serial scan; for floating-point results this order is the definition. Rank 0 has no
//! prefix: it keeps its own value, or zero in an exclusive scan.
//!
//! Timing: with s stages a unit, the total of k inputs leaves (k - 1) s cycles after they were taken (at least 1), an
//! element a cycle; responses leave from s cycles after the one from above came, one a cycle. So a scan streams at one
//! element in k cycles, k being the most inputs of a switch.
//!
//! Waves have the units under `ceng.scan`: `chainN` joins the sum of N + 1 inputs with the next one, N x s cycles after
//! they were taken, and `combine` joins the response from above with a prefix, one a cycle.
//!
//! A response carries its element's number in the low 30 bits of the tag's `seq`, and its input in the next four
//! (within the switch that made it). Bit 34 says that no rank is before it.
//!
//! ```
//! use watershed_arith::{DType, Mode, Op};
//! use watershed_fabric::Flit;
//! use watershed_piuma::OpSelect;
//! use watershed_piuma::scan::{ScanUnit, target};
//!
//! // Inputs 7, 2 and 4 in rank order, at the root; units of one stage. The total is there two stages after the operands
//! // were taken; a stage later each input gets what is before it, one a cycle.
//! let select = OpSelect { op: Op::Sum, dtype: DType::I64, mode: Mode::default() };
//! let inputs = [(7, 1), (2, 10), (4, 100)].map(|(port, word)| (port, Flit::collective(3, 0, 0, word)));
//! let mut unit = ScanUnit::default();
//! unit.take(&inputs, select, 1, true, 20); // taken in cycle 20
//! let left: Vec<_> = (20..30)
//!     .filter_map(|now| unit.leave(now).map(|flit| (now, target(flit.tag.seq()), flit.word)))
//!     .collect();
//! assert_eq!(left, [(23, 7, 0), (24, 2, 1), (25, 4, 11)]);
//! ```

use super::RESPONSE;
use super::registers::OpSelect;
use std::collections::VecDeque;
use watershed_arith::stages::UnitInput;
use watershed_arith::{Flags, Unit, lanes_apply};
use watershed_fabric::{Flit, Tag};
use watershed_kernel::Cycle;

/// Most ports an order register can list.
pub const MOST_PORTS: usize = 15;

const SEQ_MASK: u64 = (1 << 30) - 1;
const EMPTY: u64 = 1 << 34;

/// The ports of an order register.
pub fn ports(order: u64) -> impl Iterator<Item = u16> {
    (0..16).map(move |at| (order >> (4 * at) & 0xf) as u16).take_while(|&entry| entry != 0).map(|entry| entry - 1)
}

/// The order register of ports in rank order.
pub fn order(ports: &[u16]) -> u64 {
    ports.iter().enumerate().fold(0, |order, (at, port)| order | u64::from(port + 1) << (4 * at))
}

/// The input that a response was made for.
#[inline]
pub fn target(seq: u64) -> u16 {
    (seq >> 30 & 0xf) as u16
}

/// The number of a response's element.
#[inline]
pub fn element(seq: u64) -> u64 {
    seq & SEQ_MASK
}

/// Whether nothing is before a response.
#[inline]
pub fn is_empty(seq: u64) -> bool {
    seq & EMPTY != 0
}

/// Combines two words, lane by lane.
pub fn combine(select: OpSelect, left: u64, right: u64) -> (u64, Flags) {
    let Some(unit) = Unit::of(select.op, select.dtype, select.mode) else { return (0, Flags::NONE) };
    let mut flags = Flags::NONE;
    let word = lanes_apply(select.dtype, left, right, |a, b| {
        let packed = unit.evaluate(a, b);
        flags |= packed.flags;
        packed.bits
    });
    (word, flags)
}

/// A value and the flags it was made with.
type Value = (u64, Flags);

/// Prefixes of the inputs of an element.
#[derive(Clone, Debug, watershed_state::Saved)]
struct Prefixes {
    id: u16,
    seq: u64,
    /// In rank order; `None` for the first.
    of_ports: Vec<(u16, Option<Value>)>,
}

/// A scan unit at work.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct ScanUnit {
    retained: VecDeque<Prefixes>,
    /// What is made, and from when on it can leave, in order.
    up: VecDeque<(Cycle, Flit)>,
    down: VecDeque<(Cycle, Flit)>,
    /// Responses that came from above, and from when on they are there.
    above: VecDeque<(Cycle, Flit)>,
    /// What its units take, if a waveform shows their registers.
    operands: Option<Vec<Operand>>,
}

/// What a unit takes.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub(super) struct Operand {
    /// From when on it is there.
    pub from: Cycle,
    /// A unit of the chain, or the one that combines with the response from above.
    pub unit: Option<usize>,
    pub entry: UnitInput<Unit>,
}

/// One or two values as a unit takes them.
fn entry(select: OpSelect, tag: Tag, left: u64, right: Option<u64>) -> UnitInput<Unit> {
    let OpSelect { op, dtype, mode } = select;
    match (right, Unit::of(op, dtype, mode)) {
        (Some(right), Some(unit)) => UnitInput::pair(op, dtype, tag.0, unit, left, right),
        _ => UnitInput::lone(op, dtype, tag.0, left),
    }
}

impl ScanUnit {
    /// Whether nothing is in it.
    pub fn is_idle(&self) -> bool {
        self.retained.is_empty() && self.up.is_empty() && self.down.is_empty() && self.above.is_empty()
    }

    /// Elements whose prefixes are kept.
    pub fn retained(&self) -> usize {
        self.retained.len()
    }

    /// Results that wait to leave.
    pub fn waiting(&self) -> usize {
        self.up.len() + self.down.len()
    }

    /// Totals among them.
    pub fn going_up(&self) -> usize {
        self.up.len()
    }

    /// Responses from above that wait.
    pub fn from_above(&self) -> usize {
        self.above.len()
    }

    /// No waveform shows its registers.
    pub(super) fn note_nothing(&mut self) {
        self.operands = None;
    }

    /// From now on what its units take is noted.
    pub(super) fn note_operands(&mut self) {
        self.operands.get_or_insert_default();
    }

    /// What its units took since the last time, in order.
    pub(super) fn noted(&mut self) -> impl Iterator<Item = Operand> {
        self.operands.iter_mut().flat_map(|operands| operands.drain(..))
    }

    fn note(&mut self, operand: impl FnOnce() -> Operand) {
        if let Some(operands) = &mut self.operands {
            operands.push(operand());
        }
    }

    /// Takes a response from above.
    pub fn put_flit(&mut self, flit: Flit, visible: Cycle) {
        self.above.push_back((visible, flit));
    }

    /// Takes the inputs of an element in rank order; at the root they turn round at once.
    pub fn take(&mut self, inputs: &[(u16, Flit)], select: OpSelect, stages: u64, root: bool, now: Cycle) {
        let Some((_, first)) = inputs.first() else { return };
        let (id, seq) = (first.tag.id(), first.tag.seq());
        let mut prefixes: Vec<(u16, Option<Value>)> = Vec::with_capacity(inputs.len());
        let mut sum: Option<Value> = None;
        for (at, (port, flit)) in inputs.iter().enumerate() {
            prefixes.push((*port, sum));
            if root && at + 1 == inputs.len() {
                break;
            }
            let own = (flit.word, Flags::from_bits(flit.tag.flags()));
            sum = Some(match sum {
                None => own,
                Some(sum) => {
                    let tag = Flit::collective(id, super::REQUEST, seq, 0).tag;
                    let unit = at - 1;
                    self.note(|| Operand {
                        from: now + stages * unit as u64,
                        unit: Some(unit),
                        entry: entry(select, tag, sum.0, Some(own.0)),
                    });
                    joined(select, sum, own)
                }
            });
        }
        let made = now + (stages * (inputs.len() as u64 - 1)).max(1);
        let kept = Prefixes { id, seq, of_ports: prefixes };
        if root {
            self.descend(&kept, None, select, made, stages);
        } else {
            let (word, flags) = sum.unwrap_or((0, Flags::NONE));
            let mut flit = Flit::collective(id, super::REQUEST, seq, word);
            flit.tag.set_flags(flags.bits());
            self.up.push_back((made, flit));
            self.retained.push_back(kept);
        }
    }

    fn descend(&mut self, kept: &Prefixes, before: Option<Value>, select: OpSelect, from: Cycle, stages: u64) {
        for (at, &(port, prefix)) in kept.of_ports.iter().enumerate() {
            let value = match (before, prefix) {
                (Some(before), Some(prefix)) => Some(joined(select, before, prefix)),
                (before, prefix) => before.or(prefix),
            };
            let (word, flags) = value.unwrap_or((0, Flags::NONE));
            let nothing = if value.is_none() { EMPTY } else { 0 };
            let mut tag = Tag(0);
            tag.set_head(true);
            tag.set_tail(true);
            tag.set_vc(RESPONSE);
            tag.set_id(kept.id);
            tag.set_seq(kept.seq | u64::from(port) << 30 | nothing);
            tag.set_flags(flags.bits());
            if let Some((first, second)) = match (before, prefix) {
                (Some((before, _)), prefix) => Some((before, prefix.map(|(prefix, _)| prefix))),
                (None, prefix) => prefix.map(|(prefix, _)| (prefix, None)),
            } {
                self.note(|| Operand { from: from + at as u64, unit: None, entry: entry(select, tag, first, second) });
            }
            self.down.push_back((from + stages + at as u64, Flit { tag, word }));
        }
    }

    /// Meets a response from above with the prefixes of its element.
    ///
    /// # Errors
    /// If they are not there.
    pub fn meet(&mut self, select: impl Fn(u16) -> OpSelect, stages: u64, now: Cycle) -> Result<(), Box<str>> {
        let Some(&(visible, flit)) = self.above.front() else { return Ok(()) };
        if visible > now {
            return Ok(());
        }
        self.above.pop_front();
        let (id, seq) = (flit.tag.id(), element(flit.tag.seq()));
        let Some(at) = self.retained.iter().position(|entry| entry.id == id && entry.seq == seq) else {
            return Err(format!("a scan unit got element {seq} of collective id {id}, which never went up").into());
        };
        let kept = self.retained.remove(at).unwrap_or_else(|| unreachable!("it was just found"));
        let before = (!is_empty(flit.tag.seq())).then(|| (flit.word, Flags::from_bits(flit.tag.flags())));
        self.descend(&kept, before, select(id), now, stages);
        Ok(())
    }

    /// The next result that can leave: responses first.
    pub fn leave(&mut self, now: Cycle) -> Option<Flit> {
        for queue in [&mut self.down, &mut self.up] {
            if queue.front().is_some_and(|(at, _)| *at <= now) {
                return queue.pop_front().map(|(_, flit)| flit);
            }
        }
        None
    }

    /// When something is to be done next.
    pub fn next(&self) -> Option<Cycle> {
        [&self.down, &self.up, &self.above].into_iter().filter_map(|queue| queue.front()).map(|(at, _)| *at).min()
    }
}

fn joined(select: OpSelect, left: Value, right: Value) -> Value {
    let (word, flags) = combine(select, left.0, right.0);
    (word, left.1 | right.1 | flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_arith::{DType, Mode, Op};

    #[test]
    fn an_order_register_lists_ports_in_rank_order() {
        for list in [vec![], vec![7], vec![7, 2, 3, 4, 5], (0..15).rev().collect()] {
            assert_eq!(ports(order(&list)).collect::<Vec<u16>>(), list);
        }
    }

    #[test]
    fn prefixes_wait_for_what_is_before_them_and_leave_one_a_cycle() {
        let select = OpSelect { op: Op::Sum, dtype: DType::I64, mode: Mode::default() };
        let mut unit = ScanUnit::default();
        let inputs: Vec<(u16, Flit)> =
            [(7, 1), (2, 10), (4, 100)].map(|(port, word)| (port, Flit::collective(3, 0, 5, word))).to_vec();
        unit.take(&inputs, select, 3, false, 20);
        assert_eq!((unit.leave(25), unit.retained()), (None, 1));
        let total = unit.leave(26).expect("two additions of three stages");
        assert_eq!((total.word, total.tag.vc()), (111, 0));
        unit.put_flit(Flit::collective(3, 1, 5, 1000), 40);
        unit.meet(|_| select, 3, 39).unwrap();
        assert_eq!(unit.retained(), 1, "not there yet");
        unit.meet(|_| select, 3, 40).unwrap();
        assert_eq!(unit.leave(42), None);
        let left: Vec<(u16, u64)> =
            (43..46).filter_map(|now| unit.leave(now)).map(|flit| (target(flit.tag.seq()), flit.word)).collect();
        assert_eq!(left, [(7, 1000), (2, 1001), (4, 1011)]);
        assert!(unit.is_idle());
    }

    #[test]
    fn at_the_root_nothing_is_before_the_first() {
        let select = OpSelect { op: Op::Sum, dtype: DType::I64, mode: Mode::default() };
        let mut unit = ScanUnit::default();
        let inputs = [(6, Flit::collective(0, 0, 0, 4)), (5, Flit::collective(0, 0, 0, 8))];
        unit.take(&inputs, select, 1, true, 0);
        let first = unit.leave(2).expect("a response");
        assert!(is_empty(first.tag.seq()) && target(first.tag.seq()) == 6);
        let second = unit.leave(3).expect("a response");
        assert_eq!((second.word, is_empty(second.tag.seq())), (4, false));
        assert!(unit.is_idle());
    }
}
