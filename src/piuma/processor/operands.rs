//! Instructions that reach beyond the registers of a thread: loads, stores and calls of collectives.

use super::{Key, Processor};
use crate::core::Core;
use crate::program::{Intrinsic, Source};
use crate::thread::{Activity, State};
use watershed_fabric::Io;

impl Processor {
    /// A load; `None` if the thread waits for its memory or was stopped.
    pub(super) fn load_into(
        &mut self,
        key: Key,
        (d, base, offset): (u8, Source, u64),
        core: &mut Core,
        io: &mut Io<'_>,
    ) -> Option<State> {
        let now = io.now();
        let address = self.value(key, base, now).wrapping_add(offset);
        match self.load(address, core, now) {
            Ok(Some((value, at))) => {
                self.thread(key).regs[usize::from(d)] = value;
                return Some(State::Until(at, Activity::Load));
            }
            Ok(None) => self.thread(key).state = State::Memory,
            Err(why) => self.trap(key, io, &format!("load from {address:#x}: {why}")),
        }
        None
    }

    /// A store, likewise.
    pub(super) fn store_from(
        &mut self,
        key: Key,
        (base, offset, x): (Source, u64, Source),
        core: &mut Core,
        io: &mut Io<'_>,
    ) -> Option<State> {
        let now = io.now();
        let address = self.value(key, base, now).wrapping_add(offset);
        let value = self.value(key, x, now);
        match self.store(address, value, core, now) {
            Ok(Some(at)) => return Some(State::Until(at, Activity::Load)),
            Ok(None) => self.thread(key).state = State::Memory,
            Err(why) => self.trap(key, io, &format!("store to {address:#x}: {why}")),
        }
        None
    }

    /// A call of a collective: the thread waits for it, unless it takes a handle.
    pub(super) fn start_call(
        &mut self,
        key: Key,
        (intrinsic, handle, arguments): (Intrinsic, Option<u8>, [Source; 4]),
        io: &mut Io<'_>,
    ) -> Option<State> {
        let now = io.now();
        let [id, from, to, elements] = arguments.map(|x| self.value(key, x, now));
        match self.call(intrinsic, id, from, to, elements, now) {
            Ok(call) => {
                self.note_use(key, id as u16, now);
                let Some(register) = handle else { return Some(State::Collective(call)) };
                self.thread(key).regs[usize::from(register)] = call as u64;
                Some(State::Ready)
            }
            Err(why) => {
                self.trap(key, io, &why);
                None
            }
        }
    }
}
