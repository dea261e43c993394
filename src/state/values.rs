//! How values of the standard library are written: integers in as few bytes as they need (LEB128, negative ones in zigzag), lists
//! with their length before them, arrays and tuples without. The format is that of postcard.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use crate::{Loader, Mismatch, References, Saved, Saver};

/// Integers that take as many bytes as they need.
macro_rules! unsigned {
    ($($integer:ty),*) => {
        $(impl Saved for $integer {
            #[inline]
            fn put(&self, to: &mut Saver) {
                to.number(*self as u64);
            }

            #[inline]
            fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
                let number = from.number()?;
                <$integer>::try_from(number).map_err(|_| from.too_large())
            }
        })*
    };
}

unsigned!(u16, u32, u64, usize);

/// Signed integers: the sign is the lowest bit.
macro_rules! signed {
    ($($integer:ty),*) => {
        $(impl Saved for $integer {
            fn put(&self, to: &mut Saver) {
                let wide = *self as i64;
                to.number((wide << 1 ^ wide >> 63) as u64);
            }

            fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
                let number = from.number()?;
                <$integer>::try_from((number >> 1) as i64 ^ -((number & 1) as i64)).map_err(|_| from.too_large())
            }
        })*
    };
}

signed!(i16, i32, i64, isize);

impl Saved for u8 {
    #[inline]
    fn put(&self, to: &mut Saver) {
        to.byte(*self);
    }

    #[inline]
    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        from.byte()
    }
}

impl Saved for i8 {
    fn put(&self, to: &mut Saver) {
        to.byte(*self as u8);
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Ok(from.byte()? as i8)
    }
}

impl Saved for bool {
    #[inline]
    fn put(&self, to: &mut Saver) {
        to.byte(u8::from(*self));
    }

    #[inline]
    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        from.flag()
    }
}

impl Saved for u128 {
    fn put(&self, to: &mut Saver) {
        let mut left = *self;
        while left > u128::from(u64::MAX) {
            to.byte(left as u8 | 0x80);
            left >>= 7;
        }
        to.number(left as u64);
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        from.wide_number()
    }
}

impl Saved for f64 {
    fn put(&self, to: &mut Saver) {
        to.bytes(&self.to_bits().to_le_bytes());
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        let mut bits = [0; 8];
        bits.copy_from_slice(from.bytes(8)?);
        Ok(f64::from_bits(u64::from_le_bytes(bits)))
    }
}

impl Saved for String {
    fn put(&self, to: &mut Saver) {
        to.number(self.len() as u64);
        to.bytes(self.as_bytes());
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        let length = from.length()?;
        let bytes = from.bytes(length)?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| from.wrong("a text that is none"))
    }
}

impl Saved for () {
    fn put(&self, _: &mut Saver) {}

    fn take(_: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Ok(())
    }
}

impl<T> Saved for PhantomData<T> {
    fn put(&self, _: &mut Saver) {}

    fn take(_: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Ok(PhantomData)
    }
}

impl<T: Saved> Saved for Option<T> {
    fn put(&self, to: &mut Saver) {
        to.byte(u8::from(self.is_some()));
        if let Some(value) = self {
            value.put(to);
        }
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Ok(if from.flag()? { Some(T::take(from)?) } else { None })
    }
}

impl<T: Saved> Saved for Box<T> {
    fn put(&self, to: &mut Saver) {
        (**self).put(to);
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        T::take(from).map(Box::new)
    }
}

impl<T: Saved> Saved for Arc<T> {
    fn put(&self, to: &mut Saver) {
        (**self).put(to);
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        T::take(from).map(Arc::new)
    }
}

fn take_list<T: Saved>(length: usize, from: &mut Loader<'_>) -> Result<Vec<T>, Mismatch> {
    // A length that is wrong must not reserve more than there can be.
    let mut list = Vec::with_capacity(length.min(from.left()));
    for _ in 0..length {
        list.push(T::take(from)?);
    }
    Ok(list)
}

impl<T: Saved> Saved for Vec<T> {
    fn put(&self, to: &mut Saver) {
        to.list(self.iter());
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        let length = from.length()?;
        take_list(length, from)
    }
}

impl<T: Saved> Saved for Box<[T]> {
    fn put(&self, to: &mut Saver) {
        to.list(self.iter());
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Vec::take(from).map(Vec::into_boxed_slice)
    }
}

impl<T: Saved> Saved for Arc<[T]> {
    fn put(&self, to: &mut Saver) {
        to.list(self.iter());
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Vec::take(from).map(Arc::from)
    }
}

impl<T: Saved> Saved for Range<T> {
    fn put(&self, to: &mut Saver) {
        self.start.put(to);
        self.end.put(to);
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Ok(T::take(from)?..T::take(from)?)
    }
}

impl<T: Saved> Saved for VecDeque<T> {
    fn put(&self, to: &mut Saver) {
        to.list(self.iter());
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Vec::take(from).map(VecDeque::from)
    }
}

/// In the order in which the heap has it.
impl<T: Saved + Ord> Saved for BinaryHeap<T> {
    fn put(&self, to: &mut Saver) {
        to.list(self.as_slice().iter());
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        Vec::take(from).map(BinaryHeap::from)
    }
}

impl<T: Saved> Saved for Reverse<T> {
    fn put(&self, to: &mut Saver) {
        self.0.put(to);
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        T::take(from).map(Reverse)
    }
}

impl<T: Saved, const N: usize> Saved for [T; N] {
    fn put(&self, to: &mut Saver) {
        for item in self {
            item.put(to);
        }
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        take_list(N, from)?.try_into().map_err(|_| unreachable!("as many as were asked for"))
    }
}

impl<T: Saved + Ord> Saved for BTreeSet<T> {
    fn put(&self, to: &mut Saver) {
        to.list(self.iter());
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        let mut set = BTreeSet::new();
        for _ in 0..from.length()? {
            set.insert(T::take(from)?);
        }
        Ok(set)
    }
}

impl<K: Saved + Ord, V: Saved> Saved for BTreeMap<K, V> {
    fn put(&self, to: &mut Saver) {
        to.number(self.len() as u64);
        for (key, value) in self {
            key.put(to);
            value.put(to);
        }
    }

    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
        let mut map = BTreeMap::new();
        for _ in 0..from.length()? {
            let key = K::take(from)?;
            map.insert(key, V::take(from)?);
        }
        Ok(map)
    }
}

/// Tuples, and references to what they hold: one after the other.
macro_rules! tuples {
    ($(($($item:ident $number:tt),+))*) => {
        $(impl<$($item: Saved),+> Saved for ($($item,)+) {
            fn put(&self, to: &mut Saver) {
                $(self.$number.put(to);)+
            }

            fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch> {
                Ok(($($item::take(from)?,)+))
            }
        }

        impl<$($item: Saved),+> References for ($(&$item,)+) {
            fn put(self, to: &mut Saver) {
                $(self.$number.put(to);)+
            }
        })*
    };
}

tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    fn bytes<T: Saved>(value: &T) -> Vec<u8> {
        let mut saver = Saver::default();
        saver.value(value);
        saver.into_bytes()
    }

    /// Written as these bytes, read from them, and refused if they end too soon.
    fn is_written_as<T: Saved + Debug + PartialEq>(value: T, as_bytes: &[u8]) {
        assert_eq!(bytes(&value), as_bytes, "{value:?}");
        let mut loader = Loader::new(as_bytes);
        assert_eq!(loader.value::<T>(), Ok(value));
        loader.finish().unwrap();
        for end in 0..as_bytes.len() {
            assert!(Loader::new(&as_bytes[..end]).value::<T>().is_err(), "cut off after {end} bytes");
        }
    }

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        is_written_as(0x7f_u64, &[0x7f]);
        is_written_as(0x80_u16, &[0x80, 1]);
        is_written_as(u16::MAX, &[0xff, 0xff, 3]);
        is_written_as(u32::MAX, &[0xff, 0xff, 0xff, 0xff, 0xf]);
        is_written_as(u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        is_written_as(300_usize, &[0xac, 2]);
        is_written_as(u8::MAX, &[0xff]);
        is_written_as(1_u128 << 70, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]);
        assert_eq!(Loader::new(&bytes(&u128::MAX)).value(), Ok(u128::MAX));
        is_written_as(-1_i8, &[0xff]);
        for (number, byte) in [(0_i16, 0), (-1, 1), (1, 2), (-64, 0x7f)] {
            is_written_as(number, &[byte]);
        }
        is_written_as(i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0xf]);
        for number in [i64::MIN, i64::MAX, -12_345_678_901] {
            assert_eq!(Loader::new(&bytes(&number)).value(), Ok(number));
        }
        is_written_as(-2.5_f64, &[0, 0, 0, 0, 0, 0, 4, 0xc0]);
        let nan = f64::from_bits(0x7ff0_0000_0000_0001);
        assert_eq!(Loader::new(&bytes(&nan)).value().map(f64::to_bits), Ok(nan.to_bits()), "every bit of a NaN");
    }

    #[test]
    fn lists_say_their_length_and_arrays_do_not() {
        is_written_as(vec![1_u8, 2, 3], &[3, 1, 2, 3]);
        is_written_as([1_u8, 2, 3], &[1, 2, 3]);
        is_written_as((7_u8, true, "né".to_owned()), &[7, 1, 3, b'n', 0xc3, 0xa9]);
        is_written_as(Box::<[u16]>::from([300]), &[1, 0xac, 2]);
        is_written_as(Arc::<[u8]>::from([4]), &[1, 4]);
        is_written_as(Some(Box::new(5_u8)), &[1, 5]);
        is_written_as(None::<u8>, &[0]);
        is_written_as(3_u8..9, &[3, 9]);
        is_written_as(BTreeMap::from([(2_u8, b'b'), (1, b'a')]), &[2, 1, b'a', 2, b'b']);
        is_written_as(BTreeSet::from([9_u8, 4]), &[2, 4, 9]);
        is_written_as(vec![(), ()], &[2]);
        let mut turned = VecDeque::from([8_u8, 1, 2]);
        turned.rotate_left(1);
        is_written_as(turned, &[3, 1, 2, 8]);
        let heap = BinaryHeap::from([Reverse(3_u8), Reverse(1), Reverse(2)]);
        let again: BinaryHeap<Reverse<u8>> = Loader::new(&bytes(&heap)).value().unwrap();
        assert_eq!(again.as_slice(), heap.as_slice(), "the order in the heap decides between equals");
        let mut saver = Saver::default();
        saver.values((&1_u8, &vec![2_u8], &false));
        assert_eq!(Loader::new(&saver.into_bytes()).value(), Ok((1_u8, vec![2_u8], false)));
    }

    #[derive(Debug, PartialEq, Saved)]
    struct Pair<T>(T, u8);

    #[derive(Debug, PartialEq, Saved)]
    #[saved(bound = "T: Default")]
    struct Marked<T> {
        of: PhantomData<T>,
        width: u16,
    }

    #[derive(Debug, PartialEq, Saved)]
    struct Nothing;

    #[derive(Debug, PartialEq, Saved)]
    enum Shape {
        Empty,
        Row(Pair<u16>, Nothing),
        Grid { width: u8, marks: Marked<String> },
    }

    #[test]
    fn derived_types_are_their_fields_in_order() {
        is_written_as(Shape::Empty, &[0]);
        is_written_as(Shape::Row(Pair(300, 7), Nothing), &[1, 0xac, 2, 7]);
        is_written_as(Shape::Grid { width: 4, marks: Marked { of: PhantomData, width: 5 } }, &[2, 4, 5]);
    }

    #[test]
    fn what_no_value_is_written_as_is_refused() {
        let mut saver = Saver::default();
        saver.begin("Queue");
        let name = saver.into_bytes();
        let error = |tail: &[u8], read: &dyn Fn(&mut Loader<'_>) -> Option<Mismatch>| {
            let bytes = [&name, tail].concat();
            let mut loader = Loader::new(&bytes);
            loader.begin("Queue").unwrap();
            read(&mut loader).map(|error| error.to_string()).unwrap_or_default()
        };
        for (tail, read, what) in [
            (
                &[3][..],
                &(|from: &mut Loader<'_>| from.value::<Shape>().err()) as &dyn Fn(&mut Loader<'_>) -> Option<Mismatch>,
                "a variant that its type does not have",
            ),
            (&[0x80, 0x80, 4], &|from| from.value::<u16>().err(), "a number that its register cannot hold"),
            (&[0xff; 20], &|from| from.value::<u64>().err(), "a number that its register cannot hold"),
            (&[0xff; 20], &|from| from.value::<u128>().err(), "a number that its register cannot hold"),
            (
                &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2],
                &|from| from.value::<u64>().err(),
                "a number that its register cannot hold",
            ),
            (&[2], &|from| from.value::<bool>().err(), "2 where 0 or 1 is expected"),
            (&[2], &|from| from.value::<Option<u8>>().err(), "2 where 0 or 1 is expected"),
            (&[1, 0xff], &|from| from.value::<String>().err(), "a text that is none"),
            (&[0xff, 0xff, 0xff, 0xff, 0xf], &|from| from.value::<Vec<u64>>().err(), "its bytes end too soon"),
        ] {
            assert_eq!(error(tail, read), format!("the state of Queue does not fit: {what}"), "{tail:?}");
        }
    }
}
