//! Sets of ports: a small fixed array of words.
//!
//! A PIUMA switch has 11 ports and one word is enough; switches of the armed and PBV families have hundreds. The
//! number of words is a constant of the family, so a set of a small switch costs what a `u64` costs.

use std::fmt;
use std::ops::{BitAnd, BitOr, Not};

/// A set of port numbers below `64 * W`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct PortSet<const W: usize>([u64; W]);

impl<const W: usize> Default for PortSet<W> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const W: usize> PortSet<W> {
    /// No port.
    pub const EMPTY: Self = PortSet([0; W]);
    /// How many ports can be named.
    pub const CAPACITY: usize = 64 * W;

    /// The set of one port.
    #[inline]
    pub fn one(port: u16) -> Self {
        let mut set = Self::EMPTY;
        set.insert(port);
        set
    }

    /// Ports 0 to 63 from a word.
    #[inline]
    pub fn from_word(word: u64) -> Self {
        let mut set = Self::EMPTY;
        set.0[0] = word;
        set
    }

    /// Adds a port.
    #[inline]
    pub fn insert(&mut self, port: u16) {
        self.0[usize::from(port >> 6)] |= 1 << (port & 63);
    }

    /// Removes a port.
    #[inline]
    pub fn remove(&mut self, port: u16) {
        self.0[usize::from(port >> 6)] &= !(1 << (port & 63));
    }

    /// Whether a port is in the set.
    #[inline]
    pub fn contains(&self, port: u16) -> bool {
        self.0[usize::from(port >> 6)] >> (port & 63) & 1 == 1
    }

    /// Whether no port is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// How many ports are in the set.
    #[inline]
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the two sets share a port.
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// The lowest port of the set.
    #[inline]
    pub fn first(&self) -> Option<u16> {
        self.0
            .iter()
            .enumerate()
            .find(|(_, word)| **word != 0)
            .map(|(i, word)| (i as u32 * 64 + word.trailing_zeros()) as u16)
    }

    /// The lowest port at or after `from`, or else the lowest port of all: the pick of a round-robin arbiter.
    #[inline]
    pub fn next_from(&self, from: u16) -> Option<u16> {
        if W == 1 {
            let from = if from < 64 { from } else { 0 };
            return (self.0[0] != 0).then(|| next_bit(self.0[0], u32::from(from)) as u16);
        }
        let word = usize::from(from >> 6);
        if word < W {
            let rest = self.0[word] & (u64::MAX << (from & 63));
            if rest != 0 {
                return Some((word as u32 * 64 + rest.trailing_zeros()) as u16);
            }
            for (i, &bits) in self.0.iter().enumerate().skip(word + 1) {
                if bits != 0 {
                    return Some((i as u32 * 64 + bits.trailing_zeros()) as u16);
                }
            }
        }
        self.first()
    }

    /// The ports in ascending order.
    #[inline]
    pub fn iter(&self) -> Ports<W> {
        Ports { set: *self }
    }
}

/// A set of small numbers: a [`PortSet`], or a word where that is enough, whatever a family's sets are.
pub(super) trait Numbers: Copy {
    /// The empty set.
    const NONE: Self;

    fn insert(&mut self, number: u16);
    fn remove(&mut self, number: u16);
    fn is_none(&self) -> bool;
    /// Its numbers, ascending.
    fn numbers(self) -> impl Iterator<Item = u16>;
}

impl Numbers for u64 {
    const NONE: u64 = 0;

    #[inline(always)]
    fn insert(&mut self, number: u16) {
        *self |= 1 << (number & 63);
    }

    #[inline(always)]
    fn remove(&mut self, number: u16) {
        *self &= !(1 << (number & 63));
    }

    #[inline(always)]
    fn is_none(&self) -> bool {
        *self == 0
    }

    #[inline(always)]
    fn numbers(self) -> impl Iterator<Item = u16> {
        each(self).map(|bit| bit as u16)
    }
}

impl<const W: usize> Numbers for PortSet<W> {
    const NONE: PortSet<W> = PortSet::EMPTY;

    #[inline]
    fn insert(&mut self, number: u16) {
        PortSet::insert(self, number);
    }

    #[inline]
    fn remove(&mut self, number: u16) {
        PortSet::remove(self, number);
    }

    #[inline]
    fn is_none(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn numbers(self) -> impl Iterator<Item = u16> {
        self.iter()
    }
}

/// The numbers of the bits set in a word.
#[inline]
pub(super) fn each(mut rest: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            // The mask changes nothing, but says to the compiler that the number is below 64.
            let bit = rest.trailing_zeros() as usize & 63;
            rest &= rest - 1;
            bit
        })
    })
}

/// The numbers of the queues whose bit is set in word `w` of `words`.
#[inline]
pub(super) fn bits(words: &[u64], w: usize) -> impl Iterator<Item = usize> + use<> {
    each(words[w]).map(move |bit| w << 6 | bit)
}

/// The first set bit of a word that has any from `from` (at most 64) on, wrapping. No branch: what an arbiter picks cannot be
/// foretold.
#[inline(always)]
pub(super) fn next_bit(word: u64, from: u32) -> u32 {
    (from + word.rotate_right(from).trailing_zeros()) & 63
}

/// Iterator over the ports of a set, ascending.
#[derive(Clone, Debug)]
pub struct Ports<const W: usize> {
    set: PortSet<W>,
}

impl<const W: usize> Iterator for Ports<W> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        for (i, word) in self.set.0.iter_mut().enumerate() {
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                return Some((i as u32 * 64 + bit) as u16);
            }
        }
        None
    }
}

impl<const W: usize> IntoIterator for &PortSet<W> {
    type Item = u16;
    type IntoIter = Ports<W>;

    fn into_iter(self) -> Ports<W> {
        self.iter()
    }
}

impl<const W: usize> FromIterator<u16> for PortSet<W> {
    fn from_iter<I: IntoIterator<Item = u16>>(ports: I) -> Self {
        let mut set = Self::EMPTY;
        for port in ports {
            set.insert(port);
        }
        set
    }
}

impl<const W: usize> BitOr for PortSet<W> {
    type Output = Self;
    #[inline]
    fn bitor(mut self, other: Self) -> Self {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a |= b;
        }
        self
    }
}

impl<const W: usize> BitAnd for PortSet<W> {
    type Output = Self;
    #[inline]
    fn bitand(mut self, other: Self) -> Self {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a &= b;
        }
        self
    }
}

impl<const W: usize> Not for PortSet<W> {
    type Output = Self;
    #[inline]
    fn not(mut self) -> Self {
        for a in &mut self.0 {
            *a = !*a;
        }
        self
    }
}

impl<const W: usize> fmt::Debug for PortSet<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_spans_its_words() {
        let set: PortSet<4> = [0, 63, 64, 200, 255].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 200, 255]);
        assert_eq!(set.len(), 5);
        assert_eq!(set.next_from(65), Some(200));
        assert_eq!(set.next_from(1), Some(63));
        let low: PortSet<4> = [3, 5].into_iter().collect();
        assert_eq!(low.next_from(6), Some(3), "the search wraps");
        assert!(!set.intersects(&low) && set.intersects(&PortSet::one(200)));
        assert_eq!((set & PortSet::one(64)).first(), Some(64));
        assert_eq!(PortSet::<4>::EMPTY.next_from(255), None);
    }

    proptest::proptest! {
        #[test]
        fn next_from_is_the_rotated_minimum(ports in proptest::collection::btree_set(0u16..128, 0..20), from in 0u16..128) {
            let set: PortSet<2> = ports.iter().copied().collect();
            let expected = ports.iter().copied().min_by_key(|&p| (p < from, p));
            proptest::prop_assert_eq!(set.next_from(from), expected);
        }
    }
}
