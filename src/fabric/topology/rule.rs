//! What every topology says of itself, once it is built and while it is read from `[topology]`.
//!
//! A file of this folder implements [`Topology`] for its shape and has a [`Reader`], which makes the shape from the keys that are
//! given. What all topologies have in common (limits of size, the report of what is wrong) is not their business.

use std::sync::Arc;

use serde::Serialize;

use super::names::numbers;
use super::{Common, EndPlace, Graph, LinkParams, Shape, Site, TopologyFile, TopologyKind};
use crate::routing::Algorithm;

/// A topology with all its parameters.
///
/// Counts are `None`, or the largest number, where they overflow. Methods that number or place switches and end points are asked only
/// once the counts are known to be in the limits of a system.
pub trait Topology {
    /// Its kind.
    fn kind(&self) -> TopologyKind;

    /// Its switches, links and end points.
    fn site(&self, common: &Common) -> Site;

    /// How many switches there are.
    fn switches(&self) -> Option<u64>;

    /// How many end points there are.
    fn end_points(&self) -> Option<u64>;

    /// External ports of a switch.
    fn ports(&self) -> u32;

    /// Short name of a switch.
    fn switch_name(&self, switch: u32) -> String;

    /// The switch that a name may be of, by the numbers in it: [`switch_by_name`](Self::switch_by_name) compares the names.
    fn switch_by_numbers(&self, name: &str, numbers: &[u64]) -> Option<u64>;

    /// The switch of a short name.
    fn switch_by_name(&self, name: &str) -> Option<u32> {
        // A name has its numbers in it: guess from them and compare, rather than to parse each form by a parser of its own.
        let guess = self.switch_by_numbers(name, &numbers(name)?)?;
        let switch = u32::try_from(guess).ok().filter(|_| self.switches().is_some_and(|all| guess < all))?;
        (self.switch_name(switch) == name).then_some(switch)
    }

    /// Where an end point sits.
    fn end_place(&self, end: u32) -> EndPlace;

    /// The topology in a line, for people.
    fn describe(&self) -> String;

    /// A place for a switch in a drawing, in units of one switch: right and down from the corner.
    fn position(&self, switch: u32) -> (f64, f64);

    /// Its keys of `[topology]` with their values, as a document shows them.
    fn parameters(&self) -> Vec<(&'static str, Parameter)>;

    /// The same topology a step smaller, with the same kinds of rings, turns and levels in it, for proofs on representative sizes;
    /// `None` if it cannot be made smaller.
    fn smaller(&self) -> Option<Shape> {
        None
    }

    /// The sides of its dimensions and the end points of a switch, where switches are on a grid.
    fn grid(&self) -> Option<(&[u32], u16)> {
        None
    }

    /// The routing algorithms that it has; the first is the default. Without a rule of its own in [`routing`](crate::routing) it
    /// is routed over its shortest paths.
    fn algorithms(&self) -> &'static [Algorithm] {
        &[Algorithm::MinimalRandom, Algorithm::Adaptive]
    }

    /// How many latencies `latencies_cycles` lists, and of what, if it has that key.
    fn latency_kinds(&self) -> Option<(usize, &'static str)> {
        None
    }

    /// Cycles of the longest link between switches, and of one step of it. Neither is cut to what a link can have. `step` is what
    /// `[link]` gives for links between switches.
    fn longest_link(&self, step: u64) -> (u64, u64) {
        (step, step)
    }

    /// What is wrong with its sizes together.
    fn fault(&self, _given: &TopologyFile) -> Option<Complaint> {
        None
    }
}

/// A value of a key of `[topology]` in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A count.
    Count(u64),
    /// A list of counts.
    Counts(Vec<u64>),
    /// A word.
    Word(&'static str),
}

impl From<u16> for Parameter {
    fn from(count: u16) -> Parameter {
        Parameter::Count(count.into())
    }
}

impl From<u32> for Parameter {
    fn from(count: u32) -> Parameter {
        Parameter::Count(count.into())
    }
}

impl From<&'static str> for Parameter {
    fn from(word: &'static str) -> Parameter {
        Parameter::Word(word)
    }
}

impl<T: Copy + Into<u64>> From<&[T]> for Parameter {
    fn from(counts: &[T]) -> Parameter {
        Parameter::Counts(counts.iter().map(|&count| count.into()).collect())
    }
}

/// How a kind of topology is read from the keys of `[topology]`.
pub(super) struct Reader {
    /// What messages call it, after "a".
    pub(super) called: &'static str,
    /// The keys that it has, as messages list them.
    pub(super) keys: &'static [&'static str],
    /// The key to blame for too many switches.
    pub(super) sized_by: fn(&TopologyFile) -> &'static str,
    /// Makes the topology of keys that are in the ranges of the schema, or says what is missing. Sizes may still be too big.
    pub(super) read: fn(&TopologyFile, &Surroundings<'_>, &mut Vec<Complaint>) -> Option<Shape>,
}

/// What some topologies need to know of the rest of a scenario, in the ranges of links.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Links between the sockets of a node.
    pub socket: LinkParams,
    /// Links between neighbouring nodes.
    pub node: LinkParams,
    /// Links between the subnodes of a node, if `[link]` says what they are.
    pub subnode: Option<LinkParams>,
    /// Whether there is a table `link.subnode`.
    pub subnode_table: bool,
    /// The contents of `topology.file`.
    pub graph: Option<&'a Arc<Graph>>,
    /// Switches that a system can have.
    pub most_switches: u64,
}

/// What is wrong with a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The place in the scenario, such as `topology.size[1]`.
    pub path: String,
    /// Whether the key is wrong there, rather than its value.
    pub of_key: bool,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub expected: String,
}

impl Complaint {
    /// About a value.
    pub(super) fn at(path: impl Into<String>, message: impl Into<String>, expected: impl Into<String>) -> Complaint {
        Complaint { path: path.into(), of_key: false, message: message.into(), expected: expected.into() }
    }

    /// About a key that should not be there.
    pub(super) fn at_key(
        path: impl Into<String>,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) -> Complaint {
        Complaint { of_key: true, ..Complaint::at(path, message, expected) }
    }

    /// About a key that is not there.
    pub(super) fn missing(key: &str, what: &str, expected: &str) -> Complaint {
        Complaint::at(format!("topology.{key}"), format!("`topology.{key}` is missing: {what}"), expected)
    }
}
