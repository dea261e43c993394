//! The interface of a block while it is declared and sampled, and how a sample finds its signals again.

use super::declare::DeclarationPass;
use super::{EnumTable, SignalId};

/// Current value of a signal; all of the fast path in 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// The value, or for wide signals the place of their first word.
    pub(crate) value: u64,
    pub(crate) width: u32,
    pub(crate) unknown: bool,
}

pub(crate) const fn words(width: u32) -> usize {
    width.div_ceil(64) as usize
}

/// What one call in a node's probe function means: a signal's slot, or one of the values below.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) action: u32,
    #[cfg(debug_assertions)]
    pub(crate) name: &'static str,
    #[cfg(debug_assertions)]
    pub(crate) width: u32,
}

impl Step {
    /// Not selected. Beyond any slot, so that looking the slot up finds nothing.
    pub(crate) const SKIP: u32 = u32::MAX;
    /// A scope of which something is selected.
    pub(crate) const ENTER: u32 = u32::MAX - 1;
    pub(crate) const MAX_SIGNALS: usize = u32::MAX as usize - 2;

    #[cfg_attr(not(debug_assertions), allow(unused_variables))]
    pub(crate) fn new(action: u32, name: &'static str, width: u32) -> Self {
        Step {
            action,
            #[cfg(debug_assertions)]
            name,
            #[cfg(debug_assertions)]
            width,
        }
    }

    #[cfg_attr(not(debug_assertions), allow(unused_variables, clippy::unused_self))]
    #[inline]
    fn check(self, name: &'static str, width: u32) {
        // Nearly always it is the same text at the same place, and letters are not looked at.
        #[cfg(debug_assertions)]
        assert!(
            (std::ptr::eq(self.name, name) || self.name == name) && self.width == width,
            "a probe function declared `{}` ({} bits) and now shows `{name}` ({width} bits) in its place: it must \
             call the same signals in the same order every time, whatever the block's state is",
            self.name,
            self.width
        );
    }
}

/// What a block sees of the tracer: it names its signals and gives their values.
///
/// Whether the call declares or samples is hidden from the block. Names are what the source documents call the
/// registers; letters, digits and `_` stay, anything else becomes `_`.
#[derive(Debug)]
pub struct Scope<'a> {
    pub(crate) mode: Mode<'a>,
}

#[derive(Debug)]
pub(crate) enum Mode<'a> {
    Declare(DeclarationPass<'a>),
    Sample(Sampling<'a>),
}

impl Scope<'_> {
    /// A part of the block.
    #[inline]
    pub fn scope(&mut self, name: &'static str, f: impl FnOnce(&mut Scope<'_>)) {
        if self.enter(name, None) {
            f(self);
            self.leave();
        }
    }

    /// One of several alike parts: `indexed("in", 3, …)` is the scope `in3`.
    #[inline]
    pub fn indexed(&mut self, name: &'static str, index: usize, f: impl FnOnce(&mut Scope<'_>)) {
        if self.enter(name, Some(index)) {
            f(self);
            self.leave();
        }
    }

    /// Signals that the files for viewers show first, in a group of their own: the few of many that tell most.
    #[inline]
    pub fn first(&mut self, f: impl FnOnce(&mut Scope<'_>)) {
        let before = match &mut self.mode {
            Mode::Declare(declaring) => std::mem::replace(&mut declaring.first, true),
            Mode::Sample(_) => false,
        };
        f(self);
        if let Mode::Declare(declaring) = &mut self.mode {
            declaring.first = before;
        }
    }

    /// A field of 1 to 64 bits.
    #[inline]
    pub fn bits(&mut self, name: &'static str, width: u32, value: u64) {
        self.narrow(name, width, Some(value), None);
    }

    /// One bit.
    #[inline]
    pub fn bit(&mut self, name: &'static str, value: bool) {
        self.narrow(name, 1, Some(u64::from(value)), None);
    }

    /// A field of 1 to 64 bits that is sometimes meaningless: `None` shows as all `x`.
    #[inline]
    pub fn valid(&mut self, name: &'static str, width: u32, value: Option<u64>) {
        self.narrow(name, width, value, None);
    }

    /// A state, shown by name. Its width follows from the table.
    #[inline]
    pub fn state(&mut self, name: &'static str, table: &'static EnumTable, value: u64) {
        debug_assert!(
            value < table.names.len() as u64,
            "state `{name}` has value {value}, which {} does not name",
            table.name
        );
        self.narrow(name, table.width(), Some(value), Some(table));
    }

    /// A field of any width, least significant word first. Words beyond the width must not be there.
    #[inline]
    pub fn wide(&mut self, name: &'static str, width: u32, value: &[u64]) {
        self.valid_wide(name, width, Some(value));
    }

    /// A field of any width that is sometimes meaningless: `None` shows as all `x`.
    #[inline]
    pub fn valid_wide(&mut self, name: &'static str, width: u32, value: Option<&[u64]>) {
        debug_assert!(
            value.is_none_or(|value| value.len() == words(width)),
            "`{name}` has {width} bits, which are {} words",
            words(width)
        );
        if width <= 64 {
            return self.narrow(name, width, value.map(|value| value.first().copied().unwrap_or(0)), None);
        }
        match &mut self.mode {
            Mode::Sample(sampling) => sampling.wide(name, width, value),
            Mode::Declare(declaring) => declaring.wide(name, width, value),
        }
    }

    #[inline]
    fn narrow(&mut self, name: &'static str, width: u32, value: Option<u64>, table: Option<&'static EnumTable>) {
        debug_assert!(
            value.unwrap_or(0) & !mask(width) == 0,
            "`{name}` has {width} bits, its value {:#x} has more",
            value.unwrap_or(0)
        );
        match &mut self.mode {
            Mode::Sample(sampling) => sampling.narrow(name, width, value),
            Mode::Declare(declaring) => declaring.narrow(name, width, value, table),
        }
    }

    #[inline]
    fn enter(&mut self, name: &'static str, index: Option<usize>) -> bool {
        match &mut self.mode {
            Mode::Sample(sampling) => sampling.enter(name),
            Mode::Declare(declaring) => declaring.enter(name, index),
        }
    }

    #[inline]
    pub(crate) fn leave(&mut self) {
        if let Mode::Declare(declaring) = &mut self.mode {
            declaring.leave();
        }
    }
}

/// All ones in the low `width` bits.
#[inline]
pub(crate) const fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

// ---------------------------------------------------------------- sampling

/// A walk through a node's steps. A signal costs one load of its step, one of its slot, and a compare.
#[derive(Debug)]
pub(crate) struct Sampling<'a> {
    pub(crate) steps: &'a [Step],
    pub(crate) at: usize,
    pub(crate) slots: &'a mut [Slot],
    pub(crate) wide: &'a mut [u64],
    pub(crate) changed: &'a mut Vec<SignalId>,
}

impl Sampling<'_> {
    /// `None` past the end: only a probe function that breaks the rules gets there.
    #[inline]
    fn next(&mut self, name: &'static str, width: u32) -> u32 {
        let step = self.steps.get(self.at);
        debug_assert!(
            step.is_some(),
            "a probe function shows `{name}`, which it has not declared: it must call the same signals in the same \
             order every time, whatever the block's state is"
        );
        self.at += 1;
        step.map_or(Step::SKIP, |step| {
            step.check(name, width);
            step.action
        })
    }

    #[inline]
    fn enter(&mut self, name: &'static str) -> bool {
        self.next(name, 0) == Step::ENTER
    }

    #[inline]
    fn narrow(&mut self, name: &'static str, width: u32, value: Option<u64>) {
        let signal = self.next(name, width);
        if let Some(slot) = self.slots.get_mut(signal as usize) {
            let (unknown, value) = (value.is_none(), value.unwrap_or(0) & mask(width));
            // Whether a signal changed cannot be foreseen: noted in any case, and taken back without a branch.
            let differs = slot.value ^ value | u64::from(slot.unknown ^ unknown);
            slot.value = value;
            slot.unknown = unknown;
            self.changed.push(signal);
            self.changed.truncate(self.changed.len() - usize::from(differs == 0));
        }
    }

    pub(crate) fn wide(&mut self, name: &'static str, width: u32, value: Option<&[u64]>) {
        let signal = self.next(name, width);
        if let Some(slot) = self.slots.get_mut(signal as usize) {
            let begin = slot.value as usize;
            let store = &mut self.wide[begin..begin + words(slot.width)];
            let unknown = value.is_none();
            let same = slot.unknown == unknown && value.is_none_or(|value| value == &*store);
            if !same {
                slot.unknown = unknown;
                if let Some(value) = value {
                    copy_words(store, value);
                }
                self.changed.push(signal);
            }
        }
    }
}

/// Copies what there is and clears the rest, so that a slice of a wrong length cannot leave old bits behind.
pub(crate) fn copy_words(store: &mut [u64], value: &[u64]) {
    let count = value.len().min(store.len());
    store[..count].copy_from_slice(&value[..count]);
    store[count..].fill(0);
}
