//! The state of a packet engine and its register map (B-STR-2, B-PKT-2, B-PKT-5).
//!
//! ```text
//!   write 0x0010_C002 ─▶ device 0x0010, offset 0xC002 ─▶ base 0xC000 of an engine ─▶ register 0x002: PBV entry 1
//! ```
//!
//! Registers, by offset from the engine's base. A write carries 64-bit words; word k goes to the k-th register from the
//! address on (2 bytes apart below 0x100, 4 above), and its low half is the value. A read is answered with one word for
//! each requested word. *\[chosen but for the base and the entries\]*
//!
//! | offset | register | access | bits |
//! |---|---|---|---|
//! | 0x000 + 2 k | PBV entry k, 0 to 127 | rw | 15:0 device ID, 16 it is an engine |
//! | 0x100 | time-out | rw | cycles until an armed context asks the missing participants; 0: never |
//! | 0x104 | retries | rw | 7:0 |
//! | 0x108 | settings | rw | 0 error messages are sent, 1 messages are checked against the table |
//! | 0x10c | entries | r | number of entries that are set |
//! | 0x110, 0x114 | ports of inter-switch links | rw | one bit a port, ports 0 to 31 and 32 to 63 |
//! | 0x120 + 4 f | which entries are engines, field f of 4 | rw | one bit an entry |
//! | 0x130 | report levels | rw | [`reports`](super::reports): 15:0 threshold, 0: none; 31:16 relief |
//! | 0x134 | report queues | rw | which queues are watched, one bit a queue |
//! | 0x138 | collector | rw | 15:0 the device that gets the reports |
//! | 0x140 | failure point | r | 15:0 the device that was last reported missing, 27:16 its CC_ID |
//! | 0x144 | failure status | r | [`Status`] of that report |
//! | 0x150 | queue now | r | messages in the output queue |
//! | 0x154 | queue peak | r | the greatest number so far, in messages |
//! | 0x158 | frames in | r | frames taken from the data path |
//! | 0x15c | frames out | r | frames put into the data path |
//! | 0x160 | wait | r | cycles in which a frame was ready and could not leave |
//! | 0x164 | reports | r | congestion reports that were sent |
//! | 0x170 | owner of the table | r | 15:0 device ID, 31:16 the engine that may pass its frames on; 0xffff: none |
//! | 0x180 + 4 s | counter of status s | r | frames refused with that [`Status`] |
//! | 0x200 | selected context | rw | 11:0 CC_ID for the registers below |
//! | 0x204 | its state | r | number of its [`State`], 0 if there is none |
//! | 0x208 | its p_count | r | tracking store |
//! | 0x210 + 4 f | its PBV, field f of 4 | r | tracking store |
//! | 0x220 + 4 f | its PBV, field f of 4 | r | context store |
//! | 0x230 | owner of the selected context | r | as before; all ones also if it has none |
//! | 0x2f4 | window | rw | cycles of a window of the congestion metrics; 0: without end. A write restarts them |
//! | 0x2f8 | windows | r | complete windows |
//! | 0x2fc | measured | r | cycles that the readings at 0x300 cover |
//! | 0x300 + 8 q | mean of queue q, 0 to 17 | r | 24 bits and 8 behind the point; queues as numbered in [`metrics`](super::metrics) |
//! | 0x304 + 8 q | maximum of queue q | r | |
//!
//!
//! The table, the settings (below 0x140) and the window of the metrics belong to one device, and so does every context.
//! With validation on, writes of other devices, and every initialisation by them, are refused with `unknown-device`. A
//! management processor names the [owners](Owners) over the side port before the first frame, so that an engine never
//! obeys a frame that arrives before those of a source *\[chosen\]*. The fabric stamps requester IDs; a frame that an
//! engine passes on has the engine's. At an engine without named owners the table belongs to the first device that
//! writes it, and a context to the first that initialises it.
//!
//! Storage: the table 128 x 17 bits, the owner of the table 32 bits, of each context 12 + 32; the stores are in the
//! [collective engine](super::ce).

use std::collections::BTreeMap;

use super::context::{Context, State};
use super::metrics::{Metrics, QUEUES};
use super::packet::{ConfigRecord, NO_DEVICE, PBV_ENTRIES, Status};
use super::reports::Reports;

/// Base address of the first packet engine of a switch.
pub const ENGINE_BASE: u16 = 0xc000;
/// Bytes of an engine's register space.
pub const ENGINE_SPAN: u16 = 0x0400;

/// Base address of the k-th packet engine of a switch.
pub const fn engine_base(k: u8) -> u16 {
    ENGINE_BASE + k as u16 * ENGINE_SPAN
}

/// The tag of an engine's frames: bit 13, and the number of the engine in its switch in bits 11:8.
pub const fn engine_tag(base: u16) -> u16 {
    1 << 13 | ((base.wrapping_sub(ENGINE_BASE) / ENGINE_SPAN) & 0xf) << 8
}

/// Registers from here on belong to nobody.
const FREE: u16 = 0x140;

/// Offset of the congestion metrics: three registers, then the readings.
pub const METRICS: u16 = 0x2f4;
const READINGS: u16 = 0x300;
const READINGS_END: u16 = READINGS + 8 * QUEUES as u16;

const TABLE_OWNER: u16 = 0x170;
const CONTEXT_OWNER: u16 = 0x230;

/// The devices that own an engine's table and contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Owner {
    /// The device it belongs to; [`NO_DEVICE`]: nobody, in band.
    pub device: u16,
    /// The engine that may pass the device's frames on, or [`NO_DEVICE`].
    pub through: u16,
}

impl Owner {
    /// A device whose frames come straight from it.
    pub const fn of(device: u16) -> Owner {
        Owner { device, through: NO_DEVICE }
    }

    /// Whether a frame of this requester counts.
    fn accepts(self, requester: u16) -> bool {
        requester != NO_DEVICE && [self.device, self.through].contains(&requester)
    }

    fn bits(self) -> u32 {
        u32::from(self.device) | u32::from(self.through) << 16
    }
}

/// Who owns what of an engine: written over the side port, never by a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Owners {
    /// Of the table and the settings; `None`: the first that writes there.
    pub table: Option<Owner>,
    /// Of contexts, by CC_ID: others cannot be initialised; `None`: the first device that initialises one.
    pub contexts: Option<BTreeMap<u16, Owner>>,
}

impl Owners {
    /// Whether a device may initialise a context that is not stored yet.
    pub(super) fn may_initialise(&self, cc_id: u16, device: u16) -> bool {
        self.contexts.as_ref().is_none_or(|all| all.get(&cc_id).is_some_and(|owner| owner.accepts(device)))
    }
}

/// The PBV table and the settings of an engine.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct PbvTable {
    entries: Box<[u16; PBV_ENTRIES]>,
    /// Entries that are engines (one bit an entry: B-PKT-5).
    pub switches: u128,
    /// Cycles until an armed context asks the missing participants; 0: never.
    pub timeout: u32,
    /// Retries before a time-out is reported.
    pub retries: u8,
    /// Error messages are sent.
    pub report_errors: bool,
    /// Messages are checked against the table.
    pub validate: bool,
    /// Ports that lead to other switches.
    pub isl_ports: u64,
    /// Who may write all that, and who may initialise contexts. No frame changes them.
    pub owners: Owners,
    /// Congestion reports.
    pub reports: Reports,
}

impl Default for PbvTable {
    fn default() -> Self {
        PbvTable {
            entries: Box::new([NO_DEVICE; PBV_ENTRIES]),
            switches: 0,
            timeout: 0,
            retries: 0,
            report_errors: true,
            validate: true,
            isl_ports: 0,
            owners: Owners::default(),
            reports: Reports::default(),
        }
    }
}

impl PbvTable {
    /// The device of an entry, if it is set.
    #[inline]
    pub fn device(&self, entry: u8) -> Option<u16> {
        self.entries.get(usize::from(entry)).copied().filter(|&device| device != NO_DEVICE)
    }

    /// Whether an entry is an engine.
    #[inline]
    pub fn is_switch(&self, entry: u8) -> bool {
        self.switches >> entry & 1 != 0
    }

    /// The entries that are set: entry and device.
    pub fn entries(&self) -> impl Iterator<Item = (u8, u16)> + '_ {
        (0..PBV_ENTRIES as u8).filter_map(|entry| self.device(entry).map(|device| (entry, device)))
    }

    /// Takes over a configuration record: the table is replaced whole.
    pub fn configure(&mut self, record: &ConfigRecord) {
        self.entries.fill(NO_DEVICE);
        self.entries[..record.entries.len()].copy_from_slice(&record.entries);
        self.switches = record.switches;
        self.timeout = record.timeout;
        self.retries = record.retries;
        self.report_errors = record.report_errors;
        self.validate = record.validate;
        self.isl_ports = record.isl_ports;
        self.reports = record.reports.unwrap_or_default();
    }
}

/// Counters and status that can only be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Readings {
    /// Frames refused, by status.
    pub refused: [u32; 16],
    /// Device that was last reported missing, with its context and the status of the report.
    pub failure: Option<(u16, u16, Status)>,
    /// Messages in the output queue.
    pub queue: u32,
    /// The most there ever were.
    pub queue_peak: u32,
    /// Frames taken from the data path.
    pub frames_in: u32,
    /// Frames put into the data path.
    pub frames_out: u32,
    /// Cycles in which a frame stood ready and could not leave.
    pub waited: u32,
    /// Congestion reports that were sent.
    pub reports: u32,
}

/// The register block of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct RegisterBlock {
    /// PBV table and settings.
    pub table: PbvTable,
    /// Counters.
    pub readings: Readings,
    /// Congestion metrics.
    pub metrics: Metrics,
    selected: u16,
}

/// The register behind the one at an offset.
pub const fn following(offset: u16) -> u16 {
    offset + if offset < 0x100 { 2 } else { 4 }
}

impl RegisterBlock {
    /// Takes over a configuration record. Metrics go on if their window stays.
    pub fn configure(&mut self, record: &ConfigRecord) {
        self.table.configure(record);
        if record.window != self.metrics.window() {
            self.metrics.set_window(record.window);
        }
    }

    /// Whether a device may write a register. Where nobody was named, the first one that writes the table or a setting keeps
    /// them.
    pub(super) fn may_write(&mut self, offset: u16, device: u16) -> bool {
        let free = offset >= FREE && offset != METRICS;
        free || !self.table.validate || self.table.owners.table.get_or_insert(Owner::of(device)).accepts(device)
    }

    /// Writes a register.
    ///
    /// # Errors
    /// [`Status::BadAddress`] if there is none that can be written at this offset.
    pub fn write(&mut self, offset: u16, value: u32) -> Result<(), Status> {
        let table = &mut self.table;
        let half = |old: u64, high: bool| {
            if high { old & 0xffff_ffff | u64::from(value) << 32 } else { old >> 32 << 32 | u64::from(value) }
        };
        match offset {
            0x000..0x100 if offset.is_multiple_of(2) => {
                let entry = offset / 2;
                table.entries[usize::from(entry)] = value as u16;
                table.switches = table.switches & !(1 << entry) | u128::from(value >> 16 & 1) << entry;
            }
            0x100 => table.timeout = value,
            0x104 => table.retries = value as u8,
            0x108 => (table.report_errors, table.validate) = (value & 1 != 0, value & 2 != 0),
            0x110 => table.isl_ports = half(table.isl_ports, false),
            0x114 => table.isl_ports = half(table.isl_ports, true),
            0x120 | 0x124 | 0x128 | 0x12c => {
                let at = u32::from(offset - 0x120) * 8;
                table.switches = table.switches & !(0xffff_ffff << at) | u128::from(value) << at;
            }
            0x130 => table.reports.levels = value,
            0x134 => table.reports.queues = value,
            0x138 => table.reports.collector = value,
            METRICS => self.metrics.set_window(value),
            0x200 => self.selected = value as u16 & 0xfff,
            _ => return Err(Status::BadAddress),
        }
        Ok(())
    }

    /// Reads a register; `find` knows the contexts by their numbers.
    ///
    /// # Errors
    /// [`Status::BadAddress`] if there is none at this offset.
    pub fn read<'c>(&self, offset: u16, find: impl Fn(u16) -> Option<&'c Context>) -> Result<u32, Status> {
        let (table, readings) = (&self.table, &self.readings);
        let field = |pbv: u128, first: u16| (pbv >> (u32::from(offset - first) * 8)) as u32;
        let context = find(self.selected);
        Ok(match offset {
            0x000..0x100 if offset.is_multiple_of(2) => {
                let entry = offset / 2;
                u32::from(table.entries[usize::from(entry)]) | u32::from(table.is_switch(entry as u8)) << 16
            }
            0x100 => table.timeout,
            0x104 => u32::from(table.retries),
            0x108 => u32::from(table.report_errors) | u32::from(table.validate) << 1,
            0x10c => table.entries().count() as u32,
            0x110 => table.isl_ports as u32,
            0x114 => (table.isl_ports >> 32) as u32,
            0x120 | 0x124 | 0x128 | 0x12c => field(table.switches, 0x120),
            0x130 => table.reports.levels,
            0x134 => table.reports.queues,
            0x138 => table.reports.collector,
            0x140 => {
                readings.failure.map_or(u32::from(NO_DEVICE), |(device, id, _)| u32::from(device) | u32::from(id) << 16)
            }
            0x144 => readings.failure.map_or(0, |(_, _, status)| u32::from(status.number())),
            0x150 => readings.queue,
            0x154 => readings.queue_peak,
            0x158 => readings.frames_in,
            0x15c => readings.frames_out,
            0x160 => readings.waited,
            0x164 => readings.reports,
            METRICS => self.metrics.window(),
            0x2f8 => self.metrics.complete(),
            0x2fc => self.metrics.measured() as u32,
            READINGS..READINGS_END if offset.is_multiple_of(8) => {
                self.metrics.mean_256ths(usize::from(offset - READINGS) / 8)
            }
            READINGS..READINGS_END if offset.is_multiple_of(4) => {
                self.metrics.reading(usize::from(offset - READINGS) / 8).most
            }
            TABLE_OWNER => table.owners.table.map_or(u32::MAX, Owner::bits),
            CONTEXT_OWNER => {
                let owner = table.owners.contexts.as_ref().and_then(|all| all.get(&self.selected));
                owner.map_or(u32::MAX, |owner| owner.bits())
            }
            0x180..0x1c0 if offset.is_multiple_of(4) => readings.refused[usize::from((offset - 0x180) / 4)],
            0x200 => u32::from(self.selected),
            0x204 => context.map_or(State::Absent, |context| context.state) as u32,
            0x208 => context.map_or(0, |context| u32::from(context.track.p_count)),
            0x210 | 0x214 | 0x218 | 0x21c => field(context.map_or(0, |context| context.track.pbv), 0x210),
            0x220 | 0x224 | 0x228 | 0x22c => field(context.map_or(0, |context| context.stored.pbv), 0x220),
            _ => return Err(Status::BadAddress),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_that_is_written_reads_back_alone() {
        let writable: Vec<u16> = (0..0x400).filter(|&at| RegisterBlock::default().write(at, 0).is_ok()).collect();
        assert_eq!(writable.len(), 128 + 5 + 4 + 3 + 1 + 1);
        for &at in &writable {
            let mut block = RegisterBlock::default();
            let before: Vec<u32> = writable.iter().map(|&at| block.read(at, |_| None).unwrap()).collect();
            let value = match at {
                0x000..0x100 => 0x1_2345,
                0x104 => 0xa5,
                0x108 => 0,
                0x200 => 0xabc,
                _ => 0x8765_4321,
            };
            block.write(at, value).unwrap();
            assert_eq!(block.read(at, |_| None).unwrap(), value, "{at:#x}");
            for (&other, &old) in writable.iter().zip(&before) {
                let aliased =
                    (at < 0x100 && (0x120..0x130).contains(&other)) || ((0x120..0x130).contains(&at) && other < 0x100);
                assert!(
                    other == at || aliased || block.read(other, |_| None).unwrap() == old,
                    "{at:#x} changes {other:#x}"
                );
            }
        }
    }

    #[test]
    fn the_engine_bits_are_the_same_by_entry_and_by_field() {
        let mut block = RegisterBlock::default();
        block.write(0x120 + 4 * 3, 1 << 31).unwrap();
        assert!(block.table.is_switch(127));
        block.write(2 * 64, 0x1_0042).unwrap();
        assert_eq!(block.read(0x128, |_| None).unwrap(), 1);
        assert_eq!(block.read(0x10c, |_| None).unwrap(), 1);
        assert_eq!(block.read(0x3fc, |_| None), Err(Status::BadAddress));
        assert_eq!(block.write(0x150, 1), Err(Status::BadAddress), "counters can only be read");
        assert_eq!(block.write(0x001, 1), Err(Status::BadAddress));
    }
}
