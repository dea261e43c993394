//! A stretch of a system-wide array, indexed by system-wide numbers.
//!
//! ```text
//!   system-wide    0 ........ from ........ from + len ........
//!   part 0         [ arena    )
//!   part 1                    [ arena       )
//! ```
//!
//! A system that is evaluated by several threads is divided into parts, and each part owns its stretch of every large
//! array. Numbers keep their meaning in all of them; a number of another part is a bug and panics. A system that is not
//! divided has one arena that begins at 0.

use super::partition::{BumpPlace, Partition};
use super::span::Span;
use std::ops::{Index, IndexMut, Range};
use watershed_state::{State, state};

/// The stretch.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena<T> {
    items: Vec<T>,
    from: usize,
}

state!([T: State] Arena<T> { each: items; built: from });

impl<T> Arena<T> {
    /// Items whose first has the number `from`.
    pub fn new(from: usize, items: Vec<T>) -> Arena<T> {
        Arena { items, from }
    }

    /// The numbers it holds.
    #[inline]
    pub fn range(&self) -> Range<usize> {
        self.from..self.from + self.items.len()
    }

    /// Its items.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Its items, to be changed.
    pub fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }

    /// The item with this number, if it is here.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.items.get(number.wrapping_sub(self.from))
    }

    /// The item with this number, to be changed, if it is here.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.items.get_mut(number.wrapping_sub(self.from))
    }

    /// `count` items from the one with this number on.
    #[inline]
    pub fn stretch(&self, number: usize, count: usize) -> &[T] {
        &self.items[number.wrapping_sub(self.from)..][..count]
    }

    /// The same, to be changed.
    #[inline]
    pub fn stretch_mut(&mut self, number: usize, count: usize) -> &mut [T] {
        &mut self.items[number.wrapping_sub(self.from)..][..count]
    }

    /// How many items it holds.
    pub fn len(&self) -> usize {
        self.items.len()
    }
}

impl<T> Index<usize> for Arena<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: usize) -> &T {
        &self.items[number.wrapping_sub(self.from)]
    }
}

impl<T> IndexMut<usize> for Arena<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        &mut self.items[number.wrapping_sub(self.from)]
    }
}

/// Something of every node of a part.
#[derive(Clone, Debug)]
pub(super) struct NodeArena<T> {
    items: Vec<T>,
    span: Span,
}

state!([T: State] NodeArena<T> { each: items; built: span });

impl<T: Clone> NodeArena<T> {
    /// The nodes of a part of a list of all nodes.
    pub fn of(all: &[T], partition: &Partition, part: usize) -> NodeArena<T> {
        let items = partition.nodes(part).map(|node| all[node as usize].clone()).collect();
        NodeArena { items, span: Span::new(partition, part) }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }
}

impl<T> NodeArena<T> {
    /// What stands at a place, which [`NodeArena::place`] knows.
    #[inline]
    pub fn at(&self, place: usize) -> &T {
        &self.items[place]
    }

    /// The same, to be changed.
    #[inline]
    pub fn at_mut(&mut self, place: usize) -> &mut T {
        &mut self.items[place]
    }

    /// Where the item of a node stands: at its number, if the system is whole.
    #[inline(always)]
    pub fn place(&self, number: usize) -> usize {
        self.span.to_local(number as u32) as usize
    }
}

impl<T> Index<usize> for NodeArena<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: usize) -> &T {
        &self.items[self.place(number)]
    }
}

impl<T> IndexMut<usize> for NodeArena<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        let place = self.place(number);
        &mut self.items[place]
    }
}

/// All blocks of a kind in a system, across its parts: by number, or in the order of their numbers.
#[derive(Clone, Debug)]
pub struct BlockSlices<'a, T> {
    slices: Vec<(usize, &'a [T])>,
}

impl<'a, T> BlockSlices<'a, T> {
    pub(super) fn new(arenas: impl Iterator<Item = &'a Arena<T>>) -> BlockSlices<'a, T> {
        BlockSlices { slices: arenas.map(|arena| (arena.from, arena.items())).collect() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slices.iter().map(|(_, items)| items.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &'a T> + Clone + use<'a, T> {
        self.slices.clone().into_iter().flat_map(|(_, items)| items)
    }

    /// The first one.
    pub fn first(&self) -> Option<&'a T> {
        self.iter().next()
    }

    /// The one with this number.
    pub fn get(&self, number: usize) -> Option<&'a T> {
        let after = self.slices.partition_point(|&(from, _)| from <= number);
        let (from, items) = self.slices.get(after.checked_sub(1)?)?;
        items.get(number - from)
    }
}

impl<T> Index<usize> for BlockSlices<'_, T> {
    type Output = T;

    /// # Panics
    /// If there is none with this number.
    fn index(&self, number: usize) -> &T {
        self.get(number).unwrap_or_else(|| panic!("there is no block {number} among {}", self.len()))
    }
}

/// All engines in the wire of a system, whatever parts it has: one by one, or in the order of their numbers.
#[derive(Debug)]
pub struct Bumps<'a, T> {
    parts: Vec<&'a [T]>,
    /// Where each is, if there are several parts.
    places: &'a [BumpPlace],
}

impl<'a, T> Bumps<'a, T> {
    pub(super) fn new(parts: impl Iterator<Item = &'a [T]>, places: &'a [BumpPlace]) -> Bumps<'a, T> {
        Bumps { parts: parts.collect(), places }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The one with this number.
    pub fn get(&self, number: usize) -> Option<&'a T> {
        if self.parts.len() == 1 {
            return self.parts[0].get(number);
        }
        let place = self.places.get(number)?;
        self.parts[place.part as usize].get(place.at as usize)
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &'a T> + use<'a, T> {
        Bumps { parts: self.parts.clone(), places: self.places }.all()
    }

    fn all(self) -> impl Iterator<Item = &'a T> {
        let Bumps { parts, places } = self;
        let whole: &[T] = if let [whole] = parts[..] { whole } else { &[] };
        whole.iter().chain(places.iter().map(move |place| &parts[place.part as usize][place.at as usize]))
    }
}

impl<T> Index<usize> for Bumps<'_, T> {
    type Output = T;

    /// # Panics
    /// If there is none with this number.
    fn index(&self, number: usize) -> &T {
        self.get(number).unwrap_or_else(|| panic!("there is no engine in the wire {number} among {}", self.len()))
    }
}

impl<'a, T> IntoIterator for BlockSlices<'a, T> {
    type Item = &'a T;
    type IntoIter = std::iter::FlatMap<std::vec::IntoIter<(usize, &'a [T])>, &'a [T], fn((usize, &'a [T])) -> &'a [T]>;

    fn into_iter(self) -> Self::IntoIter {
        self.slices.into_iter().flat_map(|(_, items)| items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_system() {
        let mut arena = Arena::new(100, vec!['a', 'b', 'c']);
        arena[101] = 'x';
        assert_eq!((arena[100], arena[101], arena.stretch(101, 2)), ('a', 'x', &['x', 'c'][..]));
        assert_eq!((arena.get(102), arena.get(103), arena.get(99)), (Some(&'c'), None, None));
        assert_eq!((arena.range(), arena.len()), (100..103, 3));
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn a_number_of_another_part_is_refused() {
        let _ = Arena::new(4, vec![0])[3];
    }
}
