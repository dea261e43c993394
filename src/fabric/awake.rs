//! Which nodes of a part of a system are evaluated next: the kernel's wake set and alarms, by system-wide numbers.
//!
//! ```text
//!   system-wide   switches  [ first .. first + switches )        end points  [ first_end .. )
//!   in the part             [ 0     .. switches         )                    [ switches  .. )
//! ```
//!
//! A part has a stretch of the switches and a stretch of the end points. Inside, its nodes are counted from 0, so that a
//! part of a thousand nodes keeps bits and times for a thousand nodes, whatever the size of the system. The order of the
//! numbers is that of the system.

use super::division::Division;
use watershed_kernel::{Alarms, Cycle, WakeSet};

/// The two stretches of nodes of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    first: u32,
    switches: u32,
    first_end: u32,
    ends: u32,
}

impl Span {
    pub fn new(division: &Division, part: usize) -> Span {
        let switches = division.inner(part);
        let ends = division.end_nodes(part);
        Span {
            first: switches.start,
            switches: switches.end - switches.start,
            first_end: ends.start,
            ends: ends.end - ends.start,
        }
    }

    /// How many nodes the part has.
    pub fn len(&self) -> usize {
        (self.switches + self.ends) as usize
    }

    #[inline]
    fn inside(&self, node: u32) -> u32 {
        let from = std::hint::select_unpredictable(node < self.first_end, self.first, self.first_end - self.switches);
        node - from
    }

    #[inline]
    fn outside(&self, at: u32) -> u32 {
        if at < self.switches { at + self.first } else { at - self.switches + self.first_end }
    }
}

/// A set of nodes of a part.
#[derive(Clone, Debug)]
pub(super) struct Awake {
    set: WakeSet,
    span: Span,
}

impl Awake {
    pub fn new(span: Span) -> Awake {
        Awake { set: WakeSet::new(span.len()), span }
    }

    /// Adds a node.
    #[inline]
    pub fn insert(&mut self, node: u32) {
        self.set.insert(self.span.inside(node));
    }

    /// Adds the node that is the part's `at`-th.
    #[inline]
    pub fn insert_at(&mut self, at: usize) {
        self.set.insert(at as u32);
    }

    /// Whether no node is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Removes all nodes and appends them to `list` in ascending order.
    pub fn drain_into(&mut self, list: &mut Vec<u32>) {
        let before = list.len();
        self.set.drain_into(list);
        if self.span.first > 0 || self.span.first_end > self.span.switches {
            list[before..].iter_mut().for_each(|at| *at = self.span.outside(*at));
        }
    }
}

/// Alarms of the nodes of a part.
#[derive(Clone, Debug)]
pub(super) struct NodeAlarms {
    alarms: Alarms,
    span: Span,
}

impl NodeAlarms {
    pub fn new(span: Span) -> NodeAlarms {
        NodeAlarms { alarms: Alarms::default(), span }
    }

    /// In cycle `now`, asks for a node to be woken in cycle `at`, which lies behind it.
    #[inline]
    pub fn set(&mut self, now: Cycle, at: Cycle, node: u32) {
        self.alarms.set(now, at, self.span.inside(node));
    }

    /// The next cycle, from `now` on, for which an alarm is set.
    #[inline]
    pub fn next(&self, now: Cycle) -> Option<Cycle> {
        self.alarms.next(now)
    }

    /// Gives back memory that is not needed now.
    pub fn shed(&mut self) {
        self.alarms.shed();
    }

    /// Takes out one node whose alarm is due in cycle `now`.
    #[inline]
    pub fn due(&mut self, now: Cycle) -> Option<u32> {
        self.alarms.due(now).map(|at| self.span.outside(at))
    }
}
