//! An end point that sends and takes at random: one at each end of a packet engine makes frames for the engine, its registers and
//! others, and packets of other traffic, with gaps and back-pressure.

use std::collections::VecDeque;

use watershed::fabric::{Block, Flit, Io};
use watershed::kernel::{Rng, Wake};
use watershed::pbv::packet::{Body, ConfigRecord, Header, Message, Packet};
use watershed::pbv::reports::Reports;
use watershed::pbv::{Directory, Engine};
use watershed::probe::Scope;

use crate::pbv_frames::spoiled;

/// Device and base of the engine.
pub const ME: (u16, u16) = (60, 0xc400);
/// Devices from 1 on: the odd ones are at port 0 of the switch, behind the engine.
pub const DEVICES: u16 = 40;
/// Who may write the table, and through whom.
pub const OWNER: (u16, u16) = (1, 2);
/// Entries that configurations set, and reads and writes mostly ask for.
const ENTRIES: u64 = 12;

/// The directory of one switch whose second engine is between it and the odd devices.
pub fn directory() -> Directory {
    let mut directory = Directory::new(1, &[]);
    directory.add_switch(ME.0, 0);
    directory.add_engine(0, 2);
    directory.add_engine(0, 0);
    (1..=DEVICES).for_each(|device| directory.add_end(device, 0, (device + 1) % 2));
    directory
}

/// The engine's number in it.
pub const NUMBER: u32 = 1;

/// Writes an engine's table before the run.
pub fn set_up(engine: &mut Engine, rng: &mut Rng) {
    let mut record = record(rng, ME.0, true);
    record.window = [0, 7, 64][rng.below(3) as usize];
    engine.side_port(0, record);
}

/// A record of a configuration; a large one has all entries.
fn record(rng: &mut Rng, device: u16, large: bool) -> ConfigRecord {
    let count = if large && rng.below(12) == 0 { 128 } else { rng.below(ENTRIES + 1) };
    let entries: Vec<u16> = (0..count).map(|_| 1 + rng.below(u64::from(DEVICES)) as u16).collect();
    let switches = u128::from(rng.bits()) & if count == 128 { u128::MAX } else { (1 << count) - 1 };
    let reports =
        Reports::new(3 + rng.below(4) as u16, rng.bits() as u32 & 0x3_ffff, rng.below(9) as u16, rng.below(6) as u16);
    ConfigRecord {
        timeout: if rng.below(3) == 0 { rng.bits() as u32 } else { 0 },
        retries: rng.bits() as u8,
        report_errors: rng.below(8) > 0,
        validate: rng.below(3) > 0,
        window: [0, 1, 2, 16, 100, 1000][rng.below(6) as usize],
        isl_ports: rng.bits(),
        reports: (rng.below(2) == 0).then_some(reports),
        ..ConfigRecord::of(device, entries, switches)
    }
}

/// An offset in the engine's registers: mostly one that there is.
fn offset(rng: &mut Rng) -> u16 {
    match rng.below(16) {
        0..3 => 2 * rng.below(ENTRIES) as u16,
        3 => 0xf8 + 2 * rng.below(4) as u16,
        4..7 => 0x100 + 4 * rng.below(16) as u16,
        7..9 => 0x140 + 4 * rng.below(32) as u16,
        9..11 => 0x200 + 4 * rng.below(13) as u16,
        11 => 0x2f4 + 4 * rng.below(3) as u16,
        12..15 => 0x300 + 4 * rng.below(36) as u16,
        _ => rng.below(0x400) as u16,
    }
}

/// One of both ends.
#[derive(Clone, Debug)]
pub struct Puppet {
    rng: Rng,
    /// By channel: flits that are still to be sent.
    pending: Vec<VecDeque<Flit>>,
    /// One in so many cycles it sends, and takes; they change from time to time.
    sends: u64,
    takes: u64,
}

impl Puppet {
    pub fn new(rng: Rng, channels: u8) -> Puppet {
        Puppet { rng, pending: vec![VecDeque::new(); usize::from(channels)], sends: 1, takes: 1 }
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.rng.below(count) == 0
    }

    /// A frame for the engine's registers.
    fn for_registers(&mut self) -> Packet {
        let rng = &mut self.rng;
        let requester = if rng.below(3) > 0 { OWNER.0 } else { 1 + rng.below(4) as u16 };
        let message =
            [Message::Write, Message::Read, Message::Configuration][[0, 0, 1, 1, 1, 2][rng.below(6) as usize]];
        let mut header = Header::new(message, requester, ME.0, ME.1 + offset(rng));
        (header.p_count, header.run, header.cc_id) = (rng.below(14) as u16, rng.bits() as u32, rng.below(4096) as u16);
        (header.tag, header.p_id, header.dmu_id) =
            (rng.bits() as u16 & 0x3fff, rng.below(128) as u8, rng.bits() as u16);
        header.posted = rng.below(8) == 0;
        header.tlp.tc = rng.below(8) as u8;
        if message == Message::Configuration {
            let own = rng.below(3);
            let records = (0..rng.below(3)).map(|k| {
                let device = if k == own { ME.0 } else { 1 + rng.below(u64::from(DEVICES)) as u16 };
                record(rng, device, k == 0)
            });
            let records = records.collect();
            return Packet { header, body: Body::Configuration(records) };
        }
        let inside = header.offset - ME.1;
        let value = |rng: &mut Rng| match inside {
            // Thresholds, windows and time-outs that are reached.
            0x130 => rng.below(8) << 16 | rng.below(9),
            0x138 => 3 + rng.below(4),
            0x2f4 => rng.below(200),
            0x108 => rng.below(4) | 1,
            _ => rng.bits(),
        };
        let words =
            if message == Message::Write { (0..rng.below(5)).map(|_| value(rng)).collect() } else { Vec::new() };
        Packet::of(header, words)
    }

    /// A frame for anybody.
    fn frame(&mut self) -> Vec<u64> {
        let packet = if self.one_in(2) {
            self.for_registers()
        } else {
            let rng = &mut self.rng;
            let messages =
                [Message::Write, Message::Contribution, Message::ReadReply, Message::Report, Message::Command];
            let message = messages[rng.below(5) as usize];
            let (device, offset) = match rng.below(8) {
                0 => (ME.0, ME.1 + rng.below(0x400) as u16),
                // An engine that is not there, and a device.
                1 => (ME.0, 0xc800),
                2 => (900, 0),
                _ => (1 + rng.below(u64::from(DEVICES)) as u16, rng.bits() as u16),
            };
            let requester = 1 + rng.below(u64::from(DEVICES)) as u16;
            let mut header = Header { run: rng.bits() as u32, ..Header::new(message, requester, device, offset) };
            header.tlp.poisoned = rng.below(30) == 0;
            Packet::of(header, (0..rng.below(9)).map(|_| rng.bits()).collect())
        };
        spoiled(&packet.flits().expect("a frame"), &mut self.rng)
    }

    /// A packet of a channel.
    fn packet(&mut self, vc: u8) -> Vec<Flit> {
        let words = if vc == 0 { self.frame() } else { (0..=self.rng.below(6)).map(|_| self.rng.bits()).collect() };
        let (id, number, length) = (self.rng.below(4096) as u16, self.rng.bits() >> 28, words.len() as u32);
        (0..length).zip(words).map(|(at, word)| Flit::part(id, vc, number, at, length, word)).collect()
    }
}

impl Block for Puppet {
    type Tables = Directory;

    fn tick(&mut self, io: &mut Io<'_>, _: &Directory) -> Wake {
        if io.now().is_multiple_of(512) {
            self.sends = 1 + self.rng.below(6) / 2;
            self.takes = if self.one_in(3) { 60 } else { 1 + self.rng.below(2) };
        }
        for vc in 0..self.pending.len() as u8 {
            if io.head(0, vc).is_some() && self.one_in(self.takes) {
                io.take(0, vc);
            }
        }
        let vc = if self.one_in(3) { self.rng.below(self.pending.len() as u64) as u8 } else { 0 };
        if self.pending[usize::from(vc)].is_empty() && self.one_in(4) {
            let packet = self.packet(vc);
            self.pending[usize::from(vc)].extend(packet);
        }
        if self.one_in(self.sends)
            && io.can_send(0, vc)
            && let Some(flit) = self.pending[usize::from(vc)].pop_front()
        {
            io.send(0, vc, flit);
        }
        Wake::Next
    }

    fn open(&self) -> Option<String> {
        None
    }

    fn probe(&self, _: &mut Scope<'_>) {}
}
