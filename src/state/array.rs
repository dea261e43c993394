//! Arrays longer than serde knows them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::{Deref, DerefMut};

/// An array of any length in a box of its own, which is written as a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxedArray<T, const N: usize>(Box<[T; N]>);

impl<T, const N: usize> BoxedArray<T, N> {
    /// The array.
    pub fn new(items: [T; N]) -> Self {
        BoxedArray(Box::new(items))
    }
}

impl<T, const N: usize> Deref for BoxedArray<T, N> {
    type Target = [T; N];

    fn deref(&self) -> &[T; N] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for BoxedArray<T, N> {
    fn deref_mut(&mut self) -> &mut [T; N] {
        &mut self.0
    }
}

impl<T: Serialize, const N: usize> Serialize for BoxedArray<T, N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0[..].serialize(to)
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for BoxedArray<T, N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let items = Box::<[T]>::deserialize(from)?;
        items.try_into().map(BoxedArray).map_err(|_| D::Error::custom("an array of another length"))
    }
}
