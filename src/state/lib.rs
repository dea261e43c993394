//! What a clocked system holds between two edges, as bytes: the one way in which a block is saved into a checkpoint and loaded
//! again.
//!
//! A system is built twice from the same scenario: once for the run that is saved, once for the run that goes on. What building
//! determines (sizes, tables, names) is there both times; what the clock has changed since is *state*. [`state!`](crate::state!)
//! divides the fields of a block into the two, and does not compile if a field is in neither list, so that a new register cannot be
//! forgotten.
//!
//! | what | how |
//! |---|---|
//! | values: flits, descriptors, queues of them | `#[derive(Saved)]`; they are written whole |
//! | blocks that hold something built, such as a shared job | [`state!`](crate::state!): loaded in place |
//!
//! Every block writes a check of its name before its fields: bytes of another block are refused where they are read, not
//! misread.

mod values;

// What `Saved` derives names this crate by its name, here too.
extern crate self as watershed_state;

pub use watershed_state_derive::Saved;

use std::io::{self, Write};

/// State that can be saved, and loaded into a thing that was built in the same way.
///
/// ```
/// use watershed_state::{Loader, Saver, State, state};
///
/// struct Counter {
///     limit: u32,
///     count_q: u32,
/// }
/// state!(Counter { saved: count_q; built: limit });
///
/// let mut saver = Saver::default();
/// Counter { limit: 9, count_q: 4 }.save(&mut saver);
/// let bytes = saver.into_bytes();
/// let mut again = Counter { limit: 9, count_q: 0 };
/// again.load(&mut Loader::new(&bytes))?;
/// assert_eq!(again.count_q, 4);
/// # Ok::<(), watershed_state::Mismatch>(())
/// ```
pub trait State {
    /// Appends the state.
    fn save(&self, to: &mut Saver);

    /// Replaces the state by one that was saved.
    ///
    /// # Errors
    /// The bytes are of something else. What has been loaded up to there stays.
    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch>;
}

/// A value that blocks hold, which is written and made anew as a whole.
///
/// Not serde: its code is generic over what it writes to, so every crate that saves a type compiles it again. This code is
/// compiled once, where the type is.
///
/// ```
/// use watershed_state::{Loader, Saved, Saver};
///
/// #[derive(Debug, PartialEq, Saved)]
/// enum Request {
///     Arm { round: u32, ports: Vec<u16> },
///     Release(u32),
/// }
///
/// let requests = [Request::Arm { round: 7, ports: vec![1, 300] }, Request::Release(7)];
/// let mut saver = Saver::default();
/// saver.value(&requests);
/// let bytes = saver.into_bytes();
/// assert_eq!(bytes, [0, 7, 2, 1, 0xac, 0x02, 1, 7]);
/// assert_eq!(Loader::new(&bytes).value::<[Request; 2]>()?, requests);
/// # Ok::<(), watershed_state::Mismatch>(())
/// ```
pub trait Saved: Sized {
    /// Appends the value.
    fn put(&self, to: &mut Saver);

    /// The next value.
    ///
    /// # Errors
    /// The bytes are of something else.
    fn take(from: &mut Loader<'_>) -> Result<Self, Mismatch>;
}

/// References to the values of a tuple, which are read as that tuple.
pub trait References {
    /// Appends them.
    fn put(self, to: &mut Saver);
}

impl<T: Saved> State for T {
    fn save(&self, to: &mut Saver) {
        to.value(self);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        *self = from.value()?;
        Ok(())
    }
}

/// Bytes that are no state of what they were loaded into.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state of {} does not fit: {}", .0.of, .0.what)]
pub struct Mismatch(Box<MismatchOf>);

/// The block, and what is wrong with it: apart, because every value that is read comes with room for its error.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MismatchOf {
    of: &'static str,
    what: String,
}

/// Where state goes as it is saved: a large system's would not fit beside it.
pub trait Sink: Write {
    /// All of it has come.
    ///
    /// # Errors
    /// It could not be kept.
    fn end(self: Box<Self>) -> io::Result<()>;
}

/// Bytes that are passed on together.
const TOGETHER: usize = 1 << 16;

/// What a [`Saver`] appends to: memory, or a sink and what waits for it.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    sink: Option<Box<dyn Sink>>,
    /// The first error; nothing is passed on after it.
    error: Option<io::Error>,
}

impl Output {
    fn pass_on(&mut self) {
        let Some(sink) = &mut self.sink else { return };
        if self.error.is_none() {
            self.error = sink.write_all(&self.bytes).err();
        }
        self.bytes.clear();
    }
}

/// Takes state in.
#[derive(Default)]
pub struct Saver(Output);

impl Saver {
    /// Passes what it takes in on to a sink.
    #[must_use]
    pub fn to(sink: Box<dyn Sink>) -> Saver {
        Saver(Output { sink: Some(sink), ..Output::default() })
    }

    /// Appends a value.
    pub fn value<T: Saved>(&mut self, value: &T) {
        value.put(self);
        self.pass_on_many();
    }

    /// Appends values that are loaded together.
    pub fn values(&mut self, values: impl References) {
        values.put(self);
        self.pass_on_many();
    }

    fn pass_on_many(&mut self) {
        if self.0.bytes.len() >= TOGETHER {
            self.0.pass_on();
        }
    }

    /// Appends one byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.0.bytes.push(byte);
    }

    /// Appends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes.extend_from_slice(bytes);
    }

    /// Appends a number in as few bytes as it needs: seven bits in each, the lowest first, and the eighth set in all but the last.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// Appends a list, its length first.
    pub fn list<'s, T: Saved + 's>(&mut self, items: impl ExactSizeIterator<Item = &'s T>) {
        self.number(items.len() as u64);
        items.for_each(|item| item.put(self));
    }

    /// Appends which variant of an enumeration comes.
    pub fn variant(&mut self, number: u32) {
        self.number(u64::from(number));
    }

    /// A block begins.
    pub fn begin(&mut self, name: &'static str) {
        self.value(&check(name));
    }

    /// Appends the states of several, and how many they are.
    pub fn each<'s, S: State + ?Sized + 's>(&mut self, states: impl ExactSizeIterator<Item = &'s S>) {
        self.value(&(states.len() as u64));
        states.for_each(|state| state.save(self));
    }

    /// Appends the state of an observer, which the run that goes on may lack.
    pub fn watched<S: State + ?Sized>(&mut self, observer: Option<&S>) {
        let bytes = observer.map(|observer| {
            let mut saver = Saver::default();
            observer.save(&mut saver);
            saver.into_bytes()
        });
        self.value(&bytes);
    }

    /// All that was appended, if there is no sink.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.bytes
    }

    /// All that is to be saved was.
    ///
    /// # Errors
    /// The sink did not take it.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.pass_on();
        let Output { sink, error, .. } = self.0;
        error.map_or_else(|| sink.map_or(Ok(()), Sink::end), Err)
    }
}

/// Gives state out.
pub struct Loader<'a> {
    from: &'a [u8],
    of: &'static str,
}

impl<'a> Loader<'a> {
    /// State that a [`Saver`] has taken in.
    pub fn new(bytes: &'a [u8]) -> Loader<'a> {
        Loader { from: bytes, of: "the system" }
    }

    /// The next value.
    ///
    /// # Errors
    /// It is another one.
    pub fn value<T: Saved>(&mut self) -> Result<T, Mismatch> {
        T::take(self)
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.from.len()
    }

    /// The next byte.
    ///
    /// # Errors
    /// There is none.
    pub fn byte(&mut self) -> Result<u8, Mismatch> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    /// The next bytes as they are.
    ///
    /// # Errors
    /// There are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Mismatch> {
        let (bytes, left) = self.from.split_at_checked(count).ok_or_else(|| self.wrong("its bytes end too soon"))?;
        self.from = left;
        Ok(bytes)
    }

    /// The next number, as [`Saver::number`] writes it.
    ///
    /// # Errors
    /// The bytes end before it, or it has more than 64 bits.
    pub fn number(&mut self) -> Result<u64, Mismatch> {
        let number = self.wide_number()?;
        u64::try_from(number).map_err(|_| self.too_large())
    }

    /// The next number, if it has at most 128 bits.
    pub(crate) fn wide_number(&mut self) -> Result<u128, Mismatch> {
        let mut number = 0;
        for shift in (0..u128::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.too_large())
    }

    /// The length of the next list.
    pub(crate) fn length(&mut self) -> Result<usize, Mismatch> {
        usize::take(self)
    }

    /// The next byte is 0 or 1.
    pub(crate) fn flag(&mut self) -> Result<bool, Mismatch> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong(&format!("{other} where 0 or 1 is expected"))),
        }
    }

    /// Which variant of an enumeration comes.
    ///
    /// # Errors
    /// The bytes end before it.
    pub fn variant(&mut self) -> Result<u32, Mismatch> {
        u32::take(self)
    }

    /// What [`Saved::take`] of an enumeration says to the number of a variant that it does not have.
    #[must_use]
    pub fn no_variant(&self) -> Mismatch {
        self.wrong("a variant that its type does not have")
    }

    pub(crate) fn too_large(&self) -> Mismatch {
        self.wrong("a number that its register cannot hold")
    }

    /// A block begins.
    ///
    /// # Errors
    /// It is another one.
    pub fn begin(&mut self, name: &'static str) -> Result<(), Mismatch> {
        self.of = name;
        if self.value::<u16>()? == check(name) { Ok(()) } else { Err(self.wrong("it is that of another block")) }
    }

    /// Loads the states of several, as many as were saved.
    ///
    /// # Errors
    /// There are more or fewer, or one of them does not fit.
    pub fn each<'s, S: State + ?Sized + 's>(
        &mut self,
        mut states: impl ExactSizeIterator<Item = &'s mut S>,
    ) -> Result<(), Mismatch> {
        let saved: u64 = self.value()?;
        if saved != states.len() as u64 {
            return Err(self.wrong(&format!("{saved} parts where {} are", states.len())));
        }
        states.try_for_each(|state| state.load(self))
    }

    /// Loads the state of an observer, if it is here and was there: one that was not there begins now.
    ///
    /// # Errors
    /// It is that of another one.
    pub fn watched<S: State + ?Sized>(&mut self, observer: Option<&mut S>) -> Result<(), Mismatch> {
        let bytes: Option<Vec<u8>> = self.value()?;
        let (Some(observer), Some(bytes)) = (observer, bytes) else { return Ok(()) };
        let mut loader = Loader::new(&bytes);
        observer.load(&mut loader)?;
        loader.finish()
    }

    /// Whether everything was loaded.
    ///
    /// # Errors
    /// Something is left.
    pub fn finish(self) -> Result<(), Mismatch> {
        let of = self.of;
        let left = self.from.len();
        if left == 0 {
            Ok(())
        } else {
            Err(Mismatch(Box::new(MismatchOf { of, what: format!("{left} bytes are left") })))
        }
    }

    /// What is wrong with what was read last.
    #[must_use]
    #[cold]
    pub fn wrong(&self, what: &str) -> Mismatch {
        Mismatch(Box::new(MismatchOf { of: self.of, what: what.to_owned() }))
    }
}

/// A check of a block's name.
fn check(name: &str) -> u16 {
    name.bytes().fold(0xace1, |hash: u16, byte| (hash ^ u16::from(byte)).wrapping_mul(0x6255).rotate_left(5))
}

/// Says of each field of a block whether it is state or was built, and makes the block a [`State`].
///
/// | list | fields |
/// |---|---|
/// | `saved` | what is state itself: values, and blocks that are a [`State`] |
/// | `each` | vectors, arrays and options of blocks: as many as were built |
/// | `boxed` | the same with boxes in them |
/// | `watched` | options of boxed observers, such as registers that only a waveform shows: they do not change a result |
/// | `built` | what is there when the block is built, and never changes |
///
/// An enumeration of blocks, each variant with one of them, is what it was built as: `state!(enum WireBlock { Engine, Fault })`.
///
/// Generic parameters are declared in brackets before the name: `state!([T: State] Pair<T> { saved: a, b })`.
#[macro_export]
macro_rules! state {
    (enum $name:ident { $($variant:ident),+ $(,)? }) => {
        impl $crate::State for $name {
            #[cold]
            fn save(&self, to: &mut $crate::Saver) {
                match self {
                    $($name::$variant(block) => {
                        to.begin(stringify!($variant));
                        block.save(to);
                    })+
                }
            }

            #[cold]
            fn load(&mut self, from: &mut $crate::Loader<'_>) -> ::std::result::Result<(), $crate::Mismatch> {
                match self {
                    $($name::$variant(block) => {
                        from.begin(stringify!($variant))?;
                        block.load(from)
                    })+
                }
            }
        }
    };
    ($([$($generics:tt)*])? $name:ident $(<$($argument:tt),*>)? { $($list:ident: $($field:ident),+);* $(;)? }) => {
        impl $(<$($generics)*>)? $crate::State for $name $(<$($argument),*>)? {
            #[cold]
            fn save(&self, to: &mut $crate::Saver) {
                let $name { $($($field),+),* } = self;
                to.begin(stringify!($name));
                $($($crate::state!(@save $list $field to);)+)*
            }

            #[cold]
            fn load(&mut self, from: &mut $crate::Loader<'_>) -> ::std::result::Result<(), $crate::Mismatch> {
                let $name { $($($field),+),* } = self;
                from.begin(stringify!($name))?;
                $($($crate::state!(@load $list $field from);)+)*
                Ok(())
            }
        }
    };
    (@save saved $field:ident $to:ident) => { $crate::State::save($field, $to) };
    (@save each $field:ident $to:ident) => { $to.each($field.iter()) };
    (@save boxed $field:ident $to:ident) => { $to.each($field.iter().map(|boxed| &**boxed)) };
    (@save watched $field:ident $to:ident) => { $to.watched($field.as_deref()) };
    (@save built $field:ident $to:ident) => { _ = $field };
    (@load saved $field:ident $from:ident) => { $crate::State::load($field, $from)? };
    (@load each $field:ident $from:ident) => { $from.each($field.iter_mut())? };
    (@load boxed $field:ident $from:ident) => { $from.each($field.iter_mut().map(|boxed| &mut **boxed))? };
    (@load watched $field:ident $from:ident) => { $from.watched($field.as_deref_mut())? };
    (@load built $field:ident $from:ident) => { _ = $field };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Clone)]
    struct Leaf {
        depth: usize,
        queue: Vec<u32>,
    }
    state!(Leaf { saved: queue; built: depth });

    #[derive(Debug, PartialEq, Clone)]
    struct Tree<T> {
        name: &'static str,
        leaves: Vec<Leaf>,
        beside: Option<Box<Leaf>>,
        at: T,
    }
    state!([T: State] Tree<T> { saved: at; each: leaves; boxed: beside; built: name });

    fn tree(leaves: usize, fill: u32) -> Tree<(u64, Option<i8>)> {
        let leaf = |n: usize| Leaf { depth: n, queue: (0..fill * n as u32).collect() };
        let beside = Some(Box::new(leaf(7)));
        Tree { name: "t", leaves: (0..leaves).map(leaf).collect(), beside, at: (u64::from(fill) << 40, Some(-3)) }
    }

    fn bytes(of: &impl State) -> Vec<u8> {
        let mut saver = Saver::default();
        of.save(&mut saver);
        saver.into_bytes()
    }

    #[test]
    fn what_was_saved_is_loaded_into_what_was_built() {
        let (saved, mut fresh) = (tree(5, 3), tree(5, 0));
        let bytes = bytes(&saved);
        let mut loader = Loader::new(&bytes);
        fresh.load(&mut loader).unwrap();
        loader.finish().unwrap();
        assert_eq!(fresh, saved);
    }

    #[test]
    fn what_was_built_stays() {
        let saved = bytes(&Leaf { depth: 3, queue: vec![1, 2] });
        let mut fresh = Leaf { depth: 9, queue: vec![] };
        fresh.load(&mut Loader::new(&saved)).unwrap();
        assert_eq!(fresh, Leaf { depth: 9, queue: vec![1, 2] });
    }

    #[test]
    fn another_system_is_refused_by_the_name_of_its_block() {
        let saved = bytes(&tree(5, 3));
        let error = tree(4, 0).load(&mut Loader::new(&saved)).unwrap_err().to_string();
        assert_eq!(error, "the state of Tree does not fit: 5 parts where 4 are");
        let error = Leaf { depth: 0, queue: vec![] }.load(&mut Loader::new(&saved)).unwrap_err().to_string();
        assert_eq!(error, "the state of Leaf does not fit: it is that of another block");
        let mut none = Tree { beside: None, ..tree(5, 0) };
        assert!(none.load(&mut Loader::new(&saved)).is_err(), "a box that was not built");
    }

    #[test]
    fn an_observer_may_be_missing_on_either_side() {
        struct Watched {
            observer: Option<Box<Leaf>>,
            behind: u32,
        }
        state!(Watched { watched: observer; saved: behind });
        let of = |depth: Option<usize>, fill: u32| {
            let observer = depth.map(|depth| Box::new(Leaf { depth, queue: vec![fill; 3] }));
            Watched { observer, behind: fill }
        };
        for (there, here, left) in [(Some(1), None, None), (None, Some(2), Some(0)), (Some(1), Some(2), Some(7))] {
            let saved = bytes(&of(there, 7));
            let mut fresh = of(here, 0);
            fresh.load(&mut Loader::new(&saved)).unwrap();
            let queue = fresh.observer.map(|leaf| (leaf.depth, leaf.queue[0]));
            assert_eq!((fresh.behind, queue), (7, left.map(|fill| (2, fill))));
        }
    }

    /// A sink that is full after some bytes.
    struct Bin {
        room: usize,
        taken: std::rc::Rc<std::cell::RefCell<Vec<u8>>>,
    }

    impl Write for Bin {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.taken.borrow().len() + bytes.len() > self.room {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.taken.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Bin {
        fn end(self: Box<Self>) -> io::Result<()> {
            self.taken.borrow_mut().push(0xff);
            Ok(())
        }
    }

    #[test]
    fn a_sink_gets_all_of_it_or_an_error_comes_out() {
        let large = Leaf { depth: 0, queue: (0..100_000).collect() };
        for (room, fits) in [(1 << 20, true), (100_000, false), (10, false)] {
            let taken = std::rc::Rc::default();
            let mut saver = Saver::to(Box::new(Bin { room, taken: std::rc::Rc::clone(&taken) }));
            (0..2).for_each(|_| large.save(&mut saver));
            let outcome = saver.finish();
            assert_eq!(outcome.is_ok(), fits, "{room}: {outcome:?}");
            if fits {
                assert_eq!(*taken.borrow(), [&bytes(&large)[..], &bytes(&large), &[0xff]].concat());
            }
        }
    }

    #[test]
    fn bytes_cut_off_or_left_over_are_refused() {
        let saved = bytes(&tree(3, 2));
        for end in 0..saved.len() {
            assert!(tree(3, 0).load(&mut Loader::new(&saved[..end])).is_err(), "cut off after {end} bytes");
        }
        let longer = [&saved[..], &[0]].concat();
        let mut loader = Loader::new(&longer);
        tree(3, 0).load(&mut loader).unwrap();
        assert!(loader.finish().unwrap_err().to_string().ends_with("1 bytes are left"));
    }
}
