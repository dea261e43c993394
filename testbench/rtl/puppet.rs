//! An end point that sends and takes at random: one at each end of a reduction engine makes frames of every kind, with gaps and
//! back-pressure.

use std::collections::VecDeque;

use watershed::arith::quad::OPCODES;
use watershed::arith::{Op, Quad, ResultCode, repsum};
use watershed::armed::frame::{COMMAND, Portals};
use watershed::armed::header::{MAX_COUNT, NO_RESULT, SEQNOS};
use watershed::armed::{Address, DOWN, FRAME_WORDS, Frame, Header, Keys, Owner, Tables, UP};
use watershed::fabric::{Block, Flit, Io, crc32};
use watershed::kernel::{Cycle, Rng, Wake};
use watershed::probe::Scope;

use crate::random;

/// Whose trees there are.
pub const OWNER: Owner = Owner { root: 9, keys: Keys { vni: 3, cookie: 77 } };
/// Multicast ids of trees over the engine: a wait count each. The last one is a plain multicast.
pub const TREES: [(u16, u32); 4] = [(1, 3), (2, 6), (8191, 12), (5, 0)];
/// Cycles of a round on each tree: short ones, so that arming meets what is in the pipeline, and longer ones than time-outs.
const ROUND_CYCLES: [u64; 4] = [120, 500, 2_500, 900];

/// One of both ends.
#[derive(Clone, Debug)]
pub struct Puppet {
    rng: Rng,
    /// It is where the root is: what it sends on the descending channel arms.
    above: bool,
    /// By channel: flits that are still to be sent.
    pending: Vec<VecDeque<Flit>>,
    /// What it sent a frame for last: frames for one reduction come in bursts.
    last: Address,
    /// One in so many cycles it sends, and takes; they change from time to time.
    sends: u64,
    takes: u64,
}

impl Puppet {
    pub fn new(rng: Rng, above: bool, channels: u8) -> Puppet {
        let last = Address { multicast_id: TREES[0].0, reduction_id: 0 };
        Puppet { rng, above, pending: vec![VecDeque::new(); usize::from(channels)], last, sends: 1, takes: 1 }
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.rng.below(count) == 0
    }

    /// A reduction, and the number that it has now.
    fn reduction(&mut self, now: Cycle) -> (Address, u16) {
        if self.above || self.one_in(4) {
            let multicast_id = match self.rng.below(12) {
                0 => 7,
                1 => TREES[3].0,
                at => TREES[at as usize % 3].0,
            };
            self.last = Address { multicast_id, reduction_id: self.rng.below(2) as u8 };
        }
        // They begin near the number that wraps.
        let tree = TREES.iter().position(|(id, _)| *id == self.last.multicast_id).unwrap_or(3);
        let round = now / ROUND_CYCLES[tree] + 1018 + u64::from(self.last.reduction_id);
        (self.last, (round % u64::from(SEQNOS)) as u16)
    }

    /// A frame for a channel: an arm frame, a release or a contribution, mostly one that makes sense.
    fn frame(&mut self, now: Cycle, arms: bool) -> Frame {
        let (address, number) = self.reduction(now);
        let seqno = match self.rng.below(16) {
            0 => (number + SEQNOS - 1) % SEQNOS,
            1 => (number + 1) % SEQNOS,
            2 => self.rng.below(u64::from(SEQNOS)) as u16,
            _ => number,
        };
        // One operation a reduction, and now and then another.
        let of_round = u64::from(number) * 7 + u64::from(address.multicast_id) * 3;
        let which = if self.one_in(24) { self.rng.bits() } else { of_round };
        let opcode = &OPCODES[which as usize % OPCODES.len()];
        let mut header = Header { seqno, op: opcode.number, cookie: OWNER.keys.cookie, ..Header::default() };
        header.arm = arms && !self.one_in(6);
        header.retry = self.one_in(30);
        header.count = if self.one_in(20) { MAX_COUNT - self.rng.below(2) as u32 } else { 1 };
        header.resno = match self.rng.below(12) {
            0 => self.rng.below(u64::from(SEQNOS)) as u16,
            1 => seqno,
            _ => NO_RESULT,
        };
        let mut quad = Quad::of(std::array::from_fn(|_| random::words(&mut self.rng, opcode.dtype).0));
        if opcode.op == Op::RepSum {
            quad = repsum::split(quad.lanes[0]);
        }
        if self.one_in(10) {
            quad.code = ResultCode::ALL[self.rng.below(ResultCode::ALL.len() as u64) as usize];
            quad.oflow_id = self.rng.below(4) as u8;
        }
        let mut frame = Frame {
            address,
            source: if arms { OWNER.root } else { self.rng.below(4) as u32 },
            vni: OWNER.keys.vni,
            portals: Portals { target: self.rng.bits() as u16, request: self.rng.bits() as u32, initiator: 1 },
            rank: if arms { 0 } else { 1 + self.rng.below(3) as u32 },
            header,
            lanes: [0; 4],
        }
        .with_quad(quad);
        // Somebody else's, by a key or an address.
        match self.rng.below(60) {
            0 => frame.vni ^= 1,
            1 => frame.header.cookie ^= 1 << 31,
            2 => frame.source ^= 1,
            3 => frame.rank ^= 1,
            _ => {}
        }
        frame
    }

    /// The words of a frame, now and then damaged or malformed or of another length.
    fn words(&mut self, now: Cycle, arms: bool) -> Vec<u64> {
        let frame = self.frame(now, arms);
        let mut bytes = frame.encode().expect("fields that fit");
        if self.one_in(16) {
            // Contents that are none, with the right CRC: constant fields, unused bytes, opcode, code.
            let at = [0, 1, 3, 10, 11, 12, 16, 20, 29, 31, 40, 41, 46][self.rng.below(13) as usize];
            bytes[at] ^= 1 << self.rng.below(8);
            debug_assert_eq!(COMMAND, 0x52);
            let crc = crc32(&bytes[..80]).to_be_bytes();
            bytes[80..].copy_from_slice(&crc);
        }
        let mut words: Vec<u64> = bytes
            .chunks(8)
            .map(|chunk| {
                let mut eight = [0; 8];
                eight[..chunk.len()].copy_from_slice(chunk);
                u64::from_be_bytes(eight)
            })
            .collect();
        match self.rng.below(40) {
            0 => words[self.rng.below(10) as usize] ^= 1 << self.rng.below(64),
            1 => words[10] ^= 1 << (32 + self.rng.below(32)),
            // What no CRC covers.
            2 => words[10] |= self.rng.bits() >> 32,
            3 => words.truncate(1 + self.rng.below(10) as usize),
            4 => words.extend([1, 2]),
            _ => {}
        }
        words
    }

    /// A packet of a channel.
    fn packet(&mut self, now: Cycle, vc: u8) -> Vec<Flit> {
        let words = match vc {
            // Frames on the other one's channel pass.
            UP => self.words(now, false),
            DOWN => self.words(now, self.above),
            _ => (0..=self.rng.below(FRAME_WORDS as u64)).map(|_| self.rng.bits()).collect(),
        };
        let (id, number, length) = (self.rng.below(4096) as u16, self.rng.bits() >> 28, words.len() as u32);
        let part = |(at, word): (u32, u64)| Flit::part(id, vc, number, at, length, word);
        (0..length).zip(words).map(part).collect()
    }
}

impl Block for Puppet {
    type Tables = Tables;

    fn tick(&mut self, io: &mut Io<'_>, _: &Tables) -> Wake {
        let now = io.now();
        if now.is_multiple_of(512) {
            self.sends = 1 + self.rng.below(4) / 2;
            self.takes = if self.one_in(3) { 60 } else { 1 + self.rng.below(2) };
        }
        for vc in 0..self.pending.len() as u8 {
            if io.head(0, vc).is_some() && self.one_in(self.takes) {
                io.take(0, vc);
            }
        }
        let own = if self.above { DOWN } else { UP };
        let vc = match self.rng.below(8) {
            0 => self.rng.below(self.pending.len() as u64) as u8,
            _ => own,
        };
        let rare = if vc != own {
            12
        } else if self.above {
            4
        } else {
            1
        };
        if self.pending[usize::from(vc)].is_empty() && self.one_in(rare) {
            let packet = self.packet(now, vc);
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
