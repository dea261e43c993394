//! The untimed tree: the same reduction, in the same order, as a plain recursion.
//!
//! ```text
//!   Reduce "die0.core0.ceng", radix 4             ports 0 1 | 2 3
//!     port 0: Leaf(0)                                   \ /    \ /
//!     port 3: Reduce "die0.core1.ceng", ...              +      +
//!                                                          \  /
//! ```
//!
//! The rule: the ports of a node, filled up to a power of two with absent ones, are halved again and again; a half
//! without operands leaves the other half's value as it is. The hardware builds the same tree from the leaves up, by
//! pairing neighbours level by level.
//!
//! Requirement: A-GOLD-1 (`common.md`, section 1).

use watershed_arith::{DType, Flags, Mode, Op};

use super::pair::word_pair;

/// A reduction tree: leaves are contributions, inner nodes are reducing engines with ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// The contribution with this index.
    Leaf(usize),
    /// An engine that reduces the words of its ports in fixed port order.
    Reduce {
        /// Name, for reports: `die0.core0.ceng`.
        name: String,
        /// Ports the engine was built with.
        radix: u8,
        /// What enters at which port.
        inputs: Vec<(u8, Node)>,
    },
}

/// Why a tree does not take every contribution exactly once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOnce {
    /// A contribution enters nowhere.
    #[error("contribution {0} never enters the tree")]
    Missing(usize),
    /// A contribution enters twice or more.
    #[error("contribution {0} enters the tree more than once")]
    Twice(usize),
    /// A leaf names a contribution that does not exist.
    #[error("the tree has a leaf for contribution {index}, but there are only {participants}")]
    Unknown {
        /// The leaf.
        index: usize,
        /// Number of contributions.
        participants: usize,
    },
    /// A port that the engine does not have.
    #[error("{name} has {radix} ports, but something enters at port {port}")]
    NoSuchPort {
        /// Engine.
        name: String,
        /// Its ports.
        radix: u8,
        /// The port in question.
        port: u8,
    },
    /// Two inputs at one port.
    #[error("two inputs enter {name} at port {port}")]
    PortTwice {
        /// Engine.
        name: String,
        /// The port in question.
        port: u8,
    },
}

/// Reduces one word of every contribution.
///
/// `element` gives the word of a contribution. An empty tree and a barrier give a zero word.
pub fn evaluate(node: &Node, op: Op, dtype: DType, mode: Mode, element: &dyn Fn(usize) -> u64) -> (u64, Flags) {
    evaluate_with(node, op, dtype, mode, element, &mut |_, _, _| {})
}

/// As [`evaluate`], and calls `seen` with name, word and flags of every inner node, children before parents.
pub fn evaluate_with(
    node: &Node,
    op: Op,
    dtype: DType,
    mode: Mode,
    element: &dyn Fn(usize) -> u64,
    seen: &mut dyn FnMut(&str, u64, Flags),
) -> (u64, Flags) {
    match node {
        Node::Leaf(_) if op == Op::Barrier => (0, Flags::NONE),
        Node::Leaf(index) => (element(*index), Flags::NONE),
        Node::Reduce { name, radix, inputs } => {
            let mut flags = Flags::NONE;
            let mut ports: Vec<Option<u64>> = vec![None; (*radix as usize).next_power_of_two()];
            for (port, child) in inputs {
                let (word, raised) = evaluate_with(child, op, dtype, mode, element, seen);
                ports[*port as usize] = Some(word);
                flags |= raised;
            }
            let word = if op == Op::Barrier { 0 } else { halves(&ports, op, dtype, mode, &mut flags).unwrap_or(0) };
            seen(name, word, flags);
            (word, flags)
        }
    }
}

pub(super) fn halves(ports: &[Option<u64>], op: Op, dtype: DType, mode: Mode, flags: &mut Flags) -> Option<u64> {
    if let [only] = ports {
        return *only;
    }
    let (left, right) = ports.split_at(ports.len() / 2);
    let left = halves(left, op, dtype, mode, flags);
    let right = halves(right, op, dtype, mode, flags);
    match (left, right) {
        (Some(a), Some(b)) => {
            let (word, raised) = word_pair(op, dtype, mode, a, b);
            *flags |= raised;
            Some(word)
        }
        (one, other) => one.or(other),
    }
}

/// Checks that every contribution enters the tree exactly once, at ports that exist and are free.
///
/// # Errors
///
/// The first fault found; ports are looked at before contributions.
pub fn check_each_once(node: &Node, participants: usize) -> Result<(), NotOnce> {
    let mut entered = vec![false; participants];
    enter(node, &mut entered)?;
    match entered.iter().position(|entered| !entered) {
        Some(index) => Err(NotOnce::Missing(index)),
        None => Ok(()),
    }
}

fn enter(node: &Node, entered: &mut [bool]) -> Result<(), NotOnce> {
    match node {
        Node::Leaf(index) => {
            let participants = entered.len();
            let Some(entered) = entered.get_mut(*index) else {
                return Err(NotOnce::Unknown { index: *index, participants });
            };
            if std::mem::replace(entered, true) {
                return Err(NotOnce::Twice(*index));
            }
        }
        Node::Reduce { name, radix, inputs } => {
            for (k, (port, child)) in inputs.iter().enumerate() {
                if port >= radix {
                    return Err(NotOnce::NoSuchPort { name: name.clone(), radix: *radix, port: *port });
                }
                if inputs[..k].iter().any(|(taken, _)| taken == port) {
                    return Err(NotOnce::PortTwice { name: name.clone(), port: *port });
                }
                enter(child, entered)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(radix: u8, inputs: Vec<(u8, Node)>) -> Node {
        Node::Reduce { name: "e".to_owned(), radix, inputs }
    }

    #[test]
    fn each_contribution_once() {
        let good = engine(4, vec![(0, Node::Leaf(1)), (3, engine(2, vec![(1, Node::Leaf(0))]))]);
        assert_eq!(check_each_once(&good, 2), Ok(()));
        assert_eq!(check_each_once(&good, 3), Err(NotOnce::Missing(2)));
        assert_eq!(check_each_once(&good, 1), Err(NotOnce::Unknown { index: 1, participants: 1 }));
        let twice = engine(4, vec![(0, Node::Leaf(0)), (1, Node::Leaf(0))]);
        assert_eq!(check_each_once(&twice, 1), Err(NotOnce::Twice(0)));
        let port = engine(2, vec![(2, Node::Leaf(0))]);
        assert!(matches!(check_each_once(&port, 1), Err(NotOnce::NoSuchPort { port: 2, .. })));
        let taken = engine(2, vec![(1, Node::Leaf(0)), (1, Node::Leaf(1))]);
        assert!(matches!(check_each_once(&taken, 2), Err(NotOnce::PortTwice { port: 1, .. })));
    }

    #[test]
    fn the_order_is_the_tree_s() {
        // 2^24 + (1 + 1) = 2^24 + 2 but (2^24 + 1) + 1 = 2^24 in f32
        let words = [0x4b80_0000u64, 0x3f80_0000, 0x3f80_0000];
        let leaf = |port, index| (port, Node::Leaf(index));
        let sum = |node: &Node| evaluate(node, Op::Sum, DType::F32, Mode::default(), &|k| words[k]).0;
        assert_eq!(sum(&engine(4, vec![leaf(0, 0), leaf(1, 1), leaf(2, 2)])), 0x4b80_0000);
        assert_eq!(sum(&engine(4, vec![leaf(0, 0), leaf(2, 1), leaf(3, 2)])), 0x4b80_0001);
    }

    #[test]
    fn a_lone_contribution_passes_unchanged() {
        let node = engine(10, vec![(7, Node::Leaf(0))]);
        let signalling = 0x7ff0_0000_0000_0001;
        let got = evaluate(&node, Op::Sum, DType::F64, Mode::default(), &|_| signalling);
        assert_eq!(got, (signalling, Flags::NONE));
    }
}
