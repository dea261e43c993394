//! Small lists stored inside their owner: one or a few entries take no allocation of their own.
//!
//! A system has millions of cores and engines, and each is touched a few times in a run, with cold caches. An
//! allocation then costs more than its use, and puts the data into another cache line. So the first entries are stored
//! in the owner, and only further ones are allocated.

use super::Cycle;
use std::collections::VecDeque;
use watershed_state::{Loader, Mismatch, Saved, Saver};

/// A list of entries, the first `N` of which need no memory of their own.
#[derive(Clone, Debug)]
pub struct InlineVec<T, const N: usize> {
    inline: [T; N],
    /// Entries inline; 0 while `more` has any.
    len: u8,
    /// All entries, if they are more than `N`.
    more: Vec<T>,
}

impl<T: Copy + Default, const N: usize> Default for InlineVec<T, N> {
    fn default() -> Self {
        InlineVec { inline: [T::default(); N], len: 0, more: Vec::new() }
    }
}

impl<T: Copy + Default, const N: usize> From<Vec<T>> for InlineVec<T, N> {
    fn from(items: Vec<T>) -> InlineVec<T, N> {
        let mut list = InlineVec::default();
        for item in items {
            list.push(item);
        }
        list
    }
}

/// As a list of its entries, wherever they are.
impl<T: Copy + Default + Saved, const N: usize> Saved for InlineVec<T, N> {
    fn put(&self, to: &mut Saver) {
        to.list(self.as_slice().iter());
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Vec::take(from).map(Self::from)
    }
}

impl<T: Copy + Default, const N: usize> InlineVec<T, N> {
    /// The entries, oldest first.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        if self.more.is_empty() { &self.inline[..usize::from(self.len)] } else { &self.more }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.more.is_empty()
    }

    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.more.is_empty() && usize::from(self.len) < N {
            self.inline[usize::from(self.len)] = item;
            self.len += 1;
            return;
        }
        self.more.extend_from_slice(&self.inline[..usize::from(self.len)]);
        self.len = 0;
        self.more.push(item);
    }

    /// Takes out the entry at a place.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn remove(&mut self, at: usize) -> T {
        if !self.more.is_empty() {
            return self.more.remove(at);
        }
        let item = self.as_slice()[at];
        self.inline.copy_within(at + 1..usize::from(self.len), at);
        self.len -= 1;
        item
    }
}

/// A queue whose head needs no memory of its own.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct InlineQueue<T> {
    head: Option<T>,
    /// Mostly there is none, and then it takes one word.
    #[allow(clippy::box_collection)]
    rest: Option<Box<VecDeque<T>>>,
}

impl<T> Default for InlineQueue<T> {
    fn default() -> Self {
        InlineQueue { head: None, rest: None }
    }
}

impl<T> InlineQueue<T> {
    /// The oldest entry.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.head.as_ref()
    }

    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.head.is_some()) + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.head.is_none() {
            self.head = Some(item);
        } else {
            self.rest.get_or_insert_default().push_back(item);
        }
    }

    /// Takes out the oldest entry.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let item = self.head.take();
        self.head = self.rest.as_mut().and_then(|rest| rest.pop_front());
        item
    }
}

/// The head of a queue of cycles. The rest stands wherever the owner keeps what it mostly does not have.
#[derive(Clone, Copy, Debug, watershed_state::Saved)]
pub struct QueueHead(Cycle);

impl Default for QueueHead {
    fn default() -> Self {
        QueueHead(Cycle::MAX)
    }
}

impl QueueHead {
    /// The oldest entry.
    #[inline]
    pub fn front(self) -> Option<Cycle> {
        (self.0 != Cycle::MAX).then_some(self.0)
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == Cycle::MAX
    }

    /// Whether there is an entry, and the oldest is a cycle up to `now`.
    #[inline]
    pub fn is_due(self, now: Cycle) -> bool {
        self.0 <= now && self.0 != Cycle::MAX
    }

    /// Appends a cycle, here or to the rest.
    #[inline]
    pub fn push<'a>(&mut self, at: Cycle, rest: impl FnOnce() -> &'a mut VecDeque<Cycle>) {
        if self.is_empty() {
            self.0 = at;
        } else {
            rest().push_back(at);
        }
    }

    /// Drops the oldest entry; the next one comes from the rest, if there is any.
    #[inline]
    pub fn pop(&mut self, rest: Option<&mut VecDeque<Cycle>>) {
        self.0 = rest.and_then(VecDeque::pop_front).unwrap_or(Cycle::MAX);
    }
}

/// A list that is mostly one entry, which needs no memory of its own then.
#[derive(Clone, Debug, watershed_state::Saved)]
pub enum OneOrMore<T> {
    /// One entry.
    One(T),
    /// None, or several.
    More(Vec<T>),
}

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        OneOrMore::More(Vec::new())
    }
}

impl<T> OneOrMore<T> {
    /// The entries, oldest first.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        match self {
            OneOrMore::One(item) => std::slice::from_ref(item),
            OneOrMore::More(items) => items,
        }
    }

    /// The entries, to be changed.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            OneOrMore::One(item) => std::slice::from_mut(item),
            OneOrMore::More(items) => items,
        }
    }

    /// Appends an entry.
    pub fn push(&mut self, item: T) {
        *self = match std::mem::take(self) {
            OneOrMore::One(first) => OneOrMore::More(vec![first, item]),
            OneOrMore::More(items) if items.is_empty() => OneOrMore::One(item),
            OneOrMore::More(mut items) => {
                items.push(item);
                OneOrMore::More(items)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_vector_of_any_length() {
        let (mut list, mut vector) = (InlineVec::<u32, 3>::default(), Vec::new());
        let mut state = 1u32;
        for step in 0..2000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if vector.is_empty() || (state >> 16) % 100 < if step % 200 < 100 { 70 } else { 30 } {
                list.push(step);
                vector.push(step);
            } else {
                let at = (state >> 8) as usize % vector.len();
                assert_eq!(list.remove(at), vector.remove(at));
            }
            assert_eq!((list.as_slice(), list.len(), list.is_empty()), (&vector[..], vector.len(), vector.is_empty()));
        }
    }

    #[test]
    fn a_queue_gives_back_what_was_entered_in_order() {
        let mut queue = InlineQueue::default();
        let (mut entered, mut left) = (0, 0);
        for step in 0..1000 {
            if step % 7 < 4 || step % 50 < 20 {
                queue.push(entered);
                entered += 1;
            } else if let Some(item) = queue.pop() {
                assert_eq!(item, left);
                left += 1;
            }
            assert_eq!((queue.len(), queue.is_empty()), (entered - left, entered == left));
            assert_eq!(queue.front().copied(), (entered > left).then_some(left));
        }
    }
    #[test]
    fn a_head_and_its_rest_are_a_queue() {
        let (mut head, mut rest, mut queue) = (QueueHead::default(), VecDeque::new(), VecDeque::new());
        for step in 1..1000 {
            if step % 7 < 4 || step % 50 < 20 {
                head.push(step, || &mut rest);
                queue.push_back(step);
            } else {
                head.pop(Some(&mut rest));
                queue.pop_front();
            }
            assert_eq!((head.front(), head.is_empty()), (queue.front().copied(), queue.is_empty()));
            let oldest = queue.front().copied().unwrap_or(Cycle::MAX);
            assert_eq!([oldest - 1, oldest].map(|now| head.is_due(now)), [false, !queue.is_empty()]);
        }
    }

    #[test]
    fn a_list_of_one_or_more_keeps_them_in_order() {
        let mut list = OneOrMore::default();
        for count in 0..5 {
            assert_eq!(list.as_slice(), (0..count).collect::<Vec<_>>());
            list.push(count);
            list.as_mut_slice()[count] = 7;
            list.as_mut_slice()[count] -= 7 - count;
        }
    }
}
