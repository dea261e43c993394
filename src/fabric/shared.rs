//! Tables of a system: threads read them while a cycle runs, and their owner may change them between two cycles.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use watershed_state::{Loader, Mismatch, Saver, State};

/// Something that threads read while they evaluate a part of a system, and nobody else has between two cycles.
///
/// ```
/// use watershed_fabric::Shared;
///
/// let mut tables = Shared::new(vec![1]);
/// let read = tables.share();
/// assert_eq!(read.len(), 1);
/// drop(read);
/// tables.push(2);
/// assert_eq!(*tables, [1, 2]);
/// ```
#[derive(Debug)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Owns it.
    pub fn new(it: T) -> Shared<T> {
        Shared(Arc::new(it))
    }

    /// For a thread that reads it, which gives this back before anybody changes it.
    pub fn share(&self) -> Arc<T> {
        Arc::clone(&self.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Shared<T> {
    /// # Panics
    /// If a thread still reads it.
    fn deref_mut(&mut self) -> &mut T {
        Arc::get_mut(&mut self.0).expect("nobody reads the tables between two cycles")
    }
}

impl<T: State> State for Shared<T> {
    fn save(&self, to: &mut Saver) {
        (**self).save(to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        (**self).load(from)
    }
}
