//! The untimed tree as two lists, for trees of millions of engines: no recursion, no names, no allocation per engine.
//!
//! ```text
//!   engines   [ e0 | e1 | e2 ... root ]       children before parents, each with a number
//!               │    │
//!   inputs    [ p p │ p p p │ ... ]           port, and a contribution or an engine before
//! ```
//!
//! The rule is that of [`Node`], whose halving it shares.
//!
//! Requirement: A-GOLD-1 (`common.md`, section 1).

use super::tree::{Node, NotOnce, halves};
use watershed_arith::{Flags, Mode, Op};

/// Marks an input that is a contribution.
const LEAF: u32 = 1 << 31;

/// What enters an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The contribution with this index.
    Leaf(usize),
    /// The result of the engine with this place in the list.
    Engine(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, watershed_state::Saved)]
struct Input {
    port: u8,
    from: u32,
}

/// A reduction tree; see the module's text.
#[derive(Debug, Clone, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct EngineList {
    radix: u8,
    /// Number of each engine, and its first input.
    engines: Vec<(u32, u32)>,
    inputs: Vec<Input>,
}

impl EngineList {
    /// A tree of engines with this many ports, and as yet without any.
    pub fn new(radix: u8) -> EngineList {
        EngineList { radix, ..EngineList::default() }
    }

    /// Room for this many engines and inputs.
    #[must_use]
    pub fn with_capacity(mut self, engines: usize, inputs: usize) -> EngineList {
        self.engines.reserve_exact(engines);
        self.inputs.reserve_exact(inputs);
        self
    }

    /// Adds the engine with this number; what is put in next enters it. The last one is the root.
    pub fn begin(&mut self, number: u32) {
        self.engines.push((number, self.inputs.len() as u32));
    }

    /// Puts an input on a port of the last engine.
    ///
    /// # Panics
    /// If there is no engine, or the source is none before it.
    pub fn put(&mut self, port: u8, source: Source) {
        let from = match source {
            Source::Leaf(index) => {
                assert!(index < LEAF as usize, "contribution {index} is beyond what the list can number");
                index as u32 | LEAF
            }
            Source::Engine(at) => {
                assert!(at + 1 < self.engines.len(), "an engine reads the results of engines before it");
                at as u32
            }
        };
        self.inputs.push(Input { port, from });
    }

    /// How many engines there are.
    pub fn len(&self) -> usize {
        self.engines.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.engines.is_empty()
    }

    fn inputs(&self, engine: usize) -> &[Input] {
        let to = self.engines.get(engine + 1).map_or(self.inputs.len(), |&(_, first)| first as usize);
        &self.inputs[self.engines[engine].1 as usize..to]
    }

    /// Reduces one word of every contribution; `element` gives it. No engine and a barrier give a zero word.
    pub fn evaluate(
        &self,
        op: Op,
        dtype: watershed_arith::DType,
        mode: Mode,
        element: &dyn Fn(usize) -> u64,
    ) -> (u64, Flags) {
        self.evaluate_with(op, dtype, mode, element, &mut |_, _, _| {})
    }

    /// As [`EngineList::evaluate`], and calls `seen` with number, word and flags of every engine, children before parents.
    pub fn evaluate_with(
        &self,
        op: Op,
        dtype: watershed_arith::DType,
        mode: Mode,
        element: &dyn Fn(usize) -> u64,
        seen: &mut dyn FnMut(u32, u64, Flags),
    ) -> (u64, Flags) {
        let mut results: Vec<(u64, Flags)> = Vec::with_capacity(self.engines.len());
        for (engine, &(number, _)) in self.engines.iter().enumerate() {
            let mut flags = Flags::NONE;
            let mut ports = [None; 64];
            for &Input { port, from } in self.inputs(engine) {
                let (word, raised) = match from & LEAF {
                    0 => results[from as usize],
                    _ if op == Op::Barrier => (0, Flags::NONE),
                    _ => (element((from & !LEAF) as usize), Flags::NONE),
                };
                ports[usize::from(port)] = Some(word);
                flags |= raised;
            }
            let ports = &ports[..usize::from(self.radix).next_power_of_two()];
            let word = if op == Op::Barrier { 0 } else { halves(ports, op, dtype, mode, &mut flags).unwrap_or(0) };
            seen(number, word, flags);
            results.push((word, flags));
        }
        results.pop().unwrap_or((0, Flags::NONE))
    }

    /// Checks that every contribution and every engine but the root enters exactly once, at ports that exist and are free.
    /// `name` names an engine by its number.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check_each_once(&self, participants: usize, name: &dyn Fn(u32) -> String) -> Result<(), NotOnce> {
        let mut entered = vec![false; participants];
        let mut read = vec![false; self.engines.len()];
        for (engine, &(number, _)) in self.engines.iter().enumerate() {
            let mut taken = 0u64;
            for &Input { port, from } in self.inputs(engine) {
                if port >= self.radix {
                    return Err(NotOnce::NoSuchPort { name: name(number), radix: self.radix, port });
                }
                if taken >> port & 1 == 1 {
                    return Err(NotOnce::PortTwice { name: name(number), port });
                }
                taken |= 1 << port;
                let index = (from & !LEAF) as usize;
                let list = if from & LEAF == 0 { &mut read } else { &mut entered };
                let Some(entered) = list.get_mut(index) else { return Err(NotOnce::Unknown { index, participants }) };
                if std::mem::replace(entered, true) {
                    return Err(NotOnce::Twice(index));
                }
            }
        }
        let unread = read.iter().take(self.engines.len().saturating_sub(1)).any(|read| !read);
        match entered.iter().position(|entered| !entered) {
            Some(index) => Err(NotOnce::Missing(index)),
            // Contributions below an engine that nobody reads do not reach the root.
            None if unread => Err(NotOnce::Missing(0)),
            None => Ok(()),
        }
    }

    /// The same tree as nodes, for those who walk it.
    pub fn node(&self, name: &dyn Fn(u32) -> String) -> Node {
        let mut nodes: Vec<Option<Node>> = Vec::with_capacity(self.engines.len());
        for (engine, &(number, _)) in self.engines.iter().enumerate() {
            let child = |&Input { port, from }: &Input| {
                let node = if from & LEAF == 0 { nodes[from as usize].take() } else { None };
                (port, node.unwrap_or(Node::Leaf((from & !LEAF) as usize)))
            };
            let inputs = self.inputs(engine).iter().map(child).collect();
            nodes.push(Some(Node::Reduce { name: name(number), radix: self.radix, inputs }));
        }
        nodes.pop().flatten().unwrap_or(Node::Leaf(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check_each_once, evaluate};
    use watershed_arith::DType;

    /// Three engines: the first two into the third, and a contribution beside them.
    fn three() -> EngineList {
        let mut list = EngineList::new(5);
        list.begin(7);
        list.put(0, Source::Leaf(2));
        list.put(4, Source::Leaf(0));
        list.begin(9);
        list.put(3, Source::Leaf(1));
        list.put(1, Source::Leaf(4));
        list.begin(1);
        list.put(4, Source::Engine(0));
        list.put(2, Source::Engine(1));
        list.put(0, Source::Leaf(3));
        list
    }

    fn name(number: u32) -> String {
        format!("e{number}")
    }

    #[test]
    fn a_list_reduces_as_its_nodes_do() {
        let list = three();
        let node = list.node(&name);
        assert_eq!(check_each_once(&node, 5), Ok(()));
        let words = [0x4b80_0000u64, 0x3f80_0000, 0x3f80_0000, 0x4b80_0001, 0x7f80_0001];
        for (op, dtype) in [(Op::Sum, DType::F32), (Op::Max, DType::U64), (Op::Barrier, DType::U64)] {
            let element = |at: usize| words[at];
            let mut seen = Vec::new();
            let got =
                list.evaluate_with(op, dtype, Mode::default(), &element, &mut |at, word, _| seen.push((at, word)));
            assert_eq!(got, evaluate(&node, op, dtype, Mode::default(), &element), "{op}");
            assert_eq!(seen.iter().map(|&(at, _)| at).collect::<Vec<_>>(), [7, 9, 1]);
            assert_eq!(seen[2].1, got.0);
        }
    }

    #[test]
    fn each_once_or_the_fault() {
        assert_eq!(three().check_each_once(5, &name), Ok(()));
        assert_eq!(three().check_each_once(6, &name), Err(NotOnce::Missing(5)));
        assert_eq!(three().check_each_once(4, &name), Err(NotOnce::Unknown { index: 4, participants: 4 }));
        let mut twice = three();
        twice.put(3, Source::Leaf(1));
        assert_eq!(twice.check_each_once(5, &name), Err(NotOnce::Twice(1)));
        let mut port = three();
        port.put(2, Source::Leaf(5));
        assert_eq!(port.check_each_once(6, &name), Err(NotOnce::PortTwice { name: "e1".into(), port: 2 }));
        let mut none = three();
        none.put(5, Source::Leaf(5));
        assert_eq!(none.check_each_once(6, &name), Err(NotOnce::NoSuchPort { name: "e1".into(), radix: 5, port: 5 }));
        let mut lost = three();
        lost.begin(3);
        lost.put(0, Source::Leaf(5));
        assert_eq!(
            lost.check_each_once(6, &name),
            Err(NotOnce::Missing(0)),
            "what is below the old root reaches nobody"
        );
    }
}
