//! The nodes of a part of a system that are evaluated next: the kernel's wake set and alarms, by system-wide numbers.

use super::span::Span;
use watershed_kernel::{Alarms, Cycle, WakeSet};
use watershed_state::state;

/// A set of nodes of a part.
#[derive(Clone, Debug)]
pub(super) struct Awake {
    set: WakeSet,
    span: Span,
}

state!(Awake { saved: set; built: span });

impl Awake {
    pub fn new(span: Span) -> Awake {
        Awake { set: WakeSet::new(span.len()), span }
    }

    /// Adds a node.
    #[inline]
    pub fn insert(&mut self, node: u32) {
        self.set.insert(self.span.to_local(node));
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
        if !self.span.is_whole() {
            list[before..].iter_mut().for_each(|at| *at = self.span.to_node(*at));
        }
    }
}

/// Alarms of the nodes of a part.
#[derive(Clone, Debug)]
pub(super) struct NodeAlarms {
    alarms: Alarms,
    span: Span,
}

state!(NodeAlarms { saved: alarms; built: span });

impl NodeAlarms {
    pub fn new(span: Span) -> NodeAlarms {
        NodeAlarms { alarms: Alarms::default(), span }
    }

    /// In cycle `now`, asks for a node to be woken in cycle `at`, which lies behind it.
    #[inline]
    pub fn set(&mut self, now: Cycle, at: Cycle, node: u32) {
        self.alarms.set(now, at, self.span.to_local(node));
    }

    /// Takes back the far alarm of a node, if it has one.
    #[inline(always)]
    pub fn cancel(&mut self, node: u32) {
        self.alarms.cancel(self.span.to_local(node));
    }

    /// In cycle `now`, asks for a node to be woken in cycle `at`, whatever it answers until then.
    pub fn set_persistent(&mut self, now: Cycle, at: Cycle, node: u32) {
        self.alarms.set_persistent(now, at, self.span.to_local(node));
    }

    /// The next cycle, from `now` on, for which an alarm is set.
    #[inline]
    pub fn next(&self, now: Cycle) -> Option<Cycle> {
        self.alarms.next(now)
    }

    /// Gives back memory that is not needed now.
    pub fn free_unused(&mut self) {
        self.alarms.free_unused();
    }

    /// Takes out one node whose alarm is due in cycle `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Cycle) -> Option<u32> {
        self.alarms.pop_due(now).map(|at| self.span.to_node(at))
    }
}
