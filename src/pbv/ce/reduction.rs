//! The reduction units of an engine: words on their way to them, or into the memory of those that are kept.

use super::{Ce, CeCx};
use crate::context::Context;
use watershed_arith::{Flags, Operands, TreeIn, TreeOut};

/// Words on their way into the reduction unit, or into the memory of those that are kept.
#[derive(Clone, Debug, watershed_state::Saved)]
pub(super) struct Feed {
    pub(super) slot: u16,
    pub(super) generation: u32,
    pub(super) words: Vec<u64>,
    pub(super) next: usize,
    pub(super) way: FeedTarget,
}

impl Feed {
    /// What enters a unit for word `at`.
    pub(super) fn operand(&self, context: &Context, at: usize) -> TreeIn {
        let mut operands = Operands::new();
        if let Some(old) = context.data.accumulators[at] {
            operands.set(0, old);
        }
        operands.set(1, self.words[at]);
        let header = context.like;
        let tag = u64::from(self.generation) << 32 | u64::from(self.slot) << 16 | at as u64;
        let (op, dtype, mode) = (header.op, header.dtype, header.mode());
        TreeIn { op, dtype, mode, operands, flags: Flags::NONE, tag }
    }
}

/// Where words go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub(super) enum FeedTarget {
    /// From a message into the unit.
    Unit,
    /// From a message into the memory, to this PBV entry.
    Keep(u8),
    /// From the memory into the unit, in the order of entries: from this one on.
    Release(u8),
}

impl Ce {
    /// Hands words of a context to the reduction unit.
    pub(super) fn feed(&mut self, slot: u16, words: Vec<u64>) {
        let context = self.at(slot);
        context.under_way += words.len() as u32;
        let generation = context.generation;
        if !words.is_empty() {
            self.feeds.push_back(Feed { slot, generation, words, next: 0, way: FeedTarget::Unit });
        }
    }

    /// Keeps the words of a PBV entry until all participants have answered.
    pub(super) fn keep(&mut self, slot: u16, entry: u8, words: Vec<u64>) {
        let context = self.at(slot);
        context.under_way += 1;
        let generation = context.generation;
        self.feeds.push_back(Feed { slot, generation, words, next: 0, way: FeedTarget::Keep(entry) });
    }

    /// Hands what was kept for the order of PBV entries to the reduction unit.
    pub(super) fn feed_kept(&mut self, slot: u16) {
        let coming = self.feeds.iter().any(|feed| feed.slot == slot && matches!(feed.way, FeedTarget::Keep(_)));
        let context = self.at(slot);
        if coming || context.data.kept.iter().any(Option::is_some) {
            context.under_way += 1;
            let generation = context.generation;
            self.feeds.push_back(Feed { slot, generation, words: Vec::new(), next: 0, way: FeedTarget::Release(0) });
        }
    }

    /// The reduction units: a line of words in, a line written.
    pub(super) fn reduce(&mut self, cx: &mut CeCx<'_>) {
        let units = self.trees.len();
        let mut ports = u32::from(self.cfg.memory_ports);
        if self.feeds.is_empty() && self.in_unit.is_empty() {
            return self.memory.tick(ports);
        }
        // What leaves the unit is written in any case.
        self.in_unit.iter_mut().for_each(|(.., left)| *left -= 1);
        let writes = self.in_unit.front().is_some_and(|&(.., left)| left == 0);
        ports -= u32::from(writes);
        let mut inputs: Vec<TreeIn> = Vec::new();
        let mut over = None;
        while let Some(feed) = self.feeds.front_mut() {
            let context = self.contexts[usize::from(feed.slot)].as_mut();
            let Some(context) = context.filter(|context| context.generation == feed.generation) else {
                // Removed, or begun anew, while its words waited.
                self.feeds.pop_front();
                continue;
            };
            if let FeedTarget::Keep(entry) = feed.way {
                feed.next += usize::from(self.cfg.memory_ports) * units;
                if feed.next >= feed.words.len() {
                    context.data.kept[usize::from(entry)] = Some(std::mem::take(&mut feed.words));
                    context.under_way -= 1;
                    self.feeds.pop_front();
                }
                break;
            }
            if let FeedTarget::Release(entry) = &mut feed.way
                && feed.words.is_empty()
            {
                let next = (usize::from(*entry)..context.data.kept.len()).find(|&at| context.data.kept[at].is_some());
                let Some(words) = next.and_then(|at| context.data.kept[at].take()) else {
                    context.under_way -= 1;
                    over = Some(feed.slot);
                    self.feeds.pop_front();
                    break;
                };
                context.under_way += words.len() as u32;
                *entry = next.map_or(0, |at| at as u8);
                (feed.words, feed.next) = (words, 0);
            }
            let place = (feed.slot, (feed.next / units) as u16);
            let same = |&(slot, word, _): &(u16, u16, u8)| (slot, word) == place;
            if ports == 0 || self.memory.is_clearing(feed.slot) || self.in_unit.iter().any(same) {
                break;
            }
            ports -= 1;
            let line = feed.next..(feed.next + units).min(feed.words.len());
            inputs.extend(line.clone().map(|at| feed.operand(context, at)));
            self.in_unit.push_back((place.0, place.1, self.cfg.unit_stages));
            feed.next = line.end;
            if feed.next == feed.words.len() {
                feed.words.clear();
                if feed.way == FeedTarget::Unit {
                    self.feeds.pop_front();
                }
            }
            break;
        }
        self.memory.tick(ports);
        let labels = if self.stages.is_some() { self.labels(&inputs) } else { Vec::new() };
        let mut inputs = inputs.into_iter();
        let mut written = None;
        for (unit, tree) in self.trees.iter_mut().enumerate() {
            let done = tree.tick(inputs.next());
            if let Some(stages) = self.stages.as_mut().map(|watched| &mut watched.units[unit]) {
                let result = |out: &TreeOut| (out.value, out.flags);
                let left = stages.clock(labels.get(unit));
                debug_assert_eq!(
                    left.as_ref().map(result),
                    done.as_ref().map(result),
                    "the last register has what is written"
                );
            }
            debug_assert!(unit > 0 || done.is_some() == writes, "the units take as many cycles as they have stages");
            let Some(done) = done else { continue };
            let (slot, word) = ((done.tag >> 16) as u16, (done.tag & 0xffff) as usize);
            let context = self.contexts[usize::from(slot)].as_mut();
            let Some(context) = context.filter(|context| context.generation == (done.tag >> 32) as u32) else {
                continue;
            };
            if let Some(place) = context.data.accumulators.get_mut(word) {
                *place = Some(done.value);
                context.flags |= done.flags;
                context.under_way -= 1;
                written = Some(slot);
            }
        }
        if let Some(slot) = over {
            self.finish(slot, cx);
        }
        if writes {
            self.in_unit.pop_front();
        }
        if let Some(slot) = written {
            self.finish(slot, cx);
        }
    }
}
