//! The source's software where the master forwards the responses unmerged: it merges them and sends the result back.
//!
//! ```text
//!   response of entry k ─▶ bit k of the PBV ─▶ merge: words x cycles ─▶ … ─▶ all there: satisfied ─▶ master
//! ```
//!
//! | parameter | unit | effect |
//! |---|---|---|
//! | `cycles_per_word` | cycles | merging a word of a response into the sum, one response after the other *\[chosen\]* |
//!
//! Responses are told apart by their P_ID, the sender's entry in the master's table; a repeated one changes nothing.
//! They are merged as they come, or, in the order of PBV entries, when all have arrived. The initial value enters
//! first. A response that is marked as an error marks the result. When the master names missing devices, the result
//! covers the responses so far. The answer is kept until the next run, for a master that asks again.
//!
//! Paragraphs 11 and 12.
//!
//! ```
//! use watershed_arith::{DType, Op};
//! use watershed_pbv::gather::Gather;
//! use watershed_pbv::packet::{Header, Message, Packet, Status};
//! use watershed_pbv::plan::{Branch, Collective, tables};
//!
//! // A sum of one word over the nodes 1 and 2, by the engine of switch 0x80.
//! let collective = Collective::all_reduce(0, 1, Branch::leaf(0x80, [1, 2]), Op::Sum, DType::I64, 1);
//! let tables = tables(std::slice::from_ref(&collective)).unwrap();
//! let like = collective.like(1, &tables);
//! let mut gather = Gather::new(0x80, 0b11);
//! gather.cycles_per_word = 5;
//! let response = |p_id, word| {
//!     Packet::of(Header { message: Message::Contribution, p_id, run: 1, ..like }, vec![word])
//! };
//! gather.take(response(0, 40), 1, 100).unwrap();
//! gather.take(response(1, 2), 1, 101).unwrap();
//! assert_eq!(gather.take(response(1, 2), 1, 102), Err(Status::Duplicate));
//! assert_eq!(gather.due(), Some(110)); // two merges of a word, one after the other, from cycle 100 on
//! ```

use std::collections::BTreeMap;

use super::packet::{Header, Message, PBV_ENTRIES, Packet, Status};
use watershed_arith::{Flags, Unit, lanes_apply};
use watershed_kernel::Cycle;

/// A source's part in a context whose responses it merges.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Gather {
    /// Device of the master engine.
    pub master: u16,
    /// Entries of the master's table that answer.
    pub expected: u128,
    /// Merges in the order of entries, not of arrival.
    pub in_order: bool,
    /// What the sum begins with.
    pub initial: Option<u64>,
    /// Cycles to merge a word.
    pub cycles_per_word: u64,
    run: u32,
    left: u128,
    kept: BTreeMap<u8, Packet>,
    sum: Option<Vec<u64>>,
    flags: Flags,
    status: Status,
    /// When the last merge ends.
    until: Cycle,
    /// Nothing more is waited for.
    closed: bool,
    answer: Option<Packet>,
    /// Runs and entries, in the order in which they were merged.
    merged: Vec<(u32, u8)>,
}

impl Gather {
    /// Nothing has come.
    pub fn new(master: u16, expected: u128) -> Gather {
        Gather {
            master,
            expected,
            in_order: false,
            initial: None,
            cycles_per_word: 1,
            run: 0,
            left: 0,
            kept: BTreeMap::new(),
            sum: None,
            flags: Flags::NONE,
            status: Status::Ok,
            until: 0,
            closed: false,
            answer: None,
            merged: Vec::new(),
        }
    }

    /// Entries in the order in which they were merged in a run.
    pub fn merged(&self, run: u32) -> Vec<u8> {
        self.merged.iter().filter(|merged| merged.0 == run).map(|merged| merged.1).collect()
    }

    /// Responses that were merged in all runs.
    pub fn count(&self) -> u64 {
        self.merged.len() as u64
    }

    /// A later run than the one before begins.
    fn turn(&mut self, run: u32) -> bool {
        if run.wrapping_sub(self.run) as i32 <= 0 {
            return run == self.run;
        }
        (self.run, self.left) = (run, self.expected);
        self.kept.clear();
        (self.sum, self.flags, self.status) = (None, Flags::NONE, Status::Ok);
        (self.closed, self.answer) = (false, None);
        true
    }

    /// A response that the master hands on.
    ///
    /// # Errors
    /// Why it changes nothing.
    pub fn take(&mut self, packet: Packet, words: usize, now: Cycle) -> Result<(), Status> {
        let Header { p_id, run, error, status, .. } = packet.header;
        if !self.turn(run) || self.closed || usize::from(p_id) >= PBV_ENTRIES || self.left >> p_id & 1 == 0 {
            return Err(Status::Duplicate);
        }
        if packet.words().len() != words && !(error && packet.words().is_empty()) {
            return Err(Status::BadLength);
        }
        self.left &= !(1 << p_id);
        self.flags |= packet.header.flags;
        if error && self.status == Status::Ok {
            self.status = if status == Status::Ok { Status::Failed } else { status };
        }
        if self.in_order {
            self.kept.insert(p_id, packet);
        } else {
            self.merge(p_id, &packet, now);
        }
        if self.left == 0 {
            self.close(now);
        }
        Ok(())
    }

    /// Nothing more comes, and why.
    pub fn end(&mut self, run: u32, status: Status, now: Cycle) {
        if self.turn(run) && !self.closed {
            if self.status == Status::Ok {
                self.status = if status == Status::Ok { Status::TimedOut } else { status };
            }
            self.close(now);
        }
    }

    fn close(&mut self, now: Cycle) {
        for (entry, packet) in std::mem::take(&mut self.kept) {
            self.merge(entry, &packet, now);
        }
        self.closed = true;
        self.until = self.until.max(now);
    }

    fn merge(&mut self, entry: u8, packet: &Packet, now: Cycle) {
        self.merged.push((self.run, entry));
        let (next, header) = (packet.words(), &packet.header);
        self.until = self.until.max(now) + self.cycles_per_word * next.len() as u64;
        if next.is_empty() {
            return;
        }
        let first = self.sum.take().or_else(|| self.initial.map(|initial| vec![initial; next.len()]));
        self.sum = Some(match first {
            None => next.to_vec(),
            Some(sum) => {
                let unit = Unit::of(header.op, header.dtype, header.mode()).expect("a barrier has no words");
                let mut pair = |a: u64, b: u64| {
                    let packed = unit.evaluate(a, b);
                    self.flags |= packed.flags;
                    packed.bits
                };
                sum.iter().zip(next).map(|(&a, &b)| lanes_apply(unit.dtype(), a, b, &mut pair)).collect()
            }
        });
    }

    /// When the result can go, if it is waited for.
    pub fn due(&self) -> Option<Cycle> {
        (self.closed && self.answer.is_none()).then_some(self.until)
    }

    /// The result, to the master; `like` is the header of the source's frames.
    pub fn finish(&mut self, like: &Header) -> Packet {
        let header = Header {
            message: Message::Satisfied,
            device: self.master,
            offset: like.offset,
            run: self.run,
            flags: self.flags,
            status: self.status,
            error: self.status != Status::Ok,
            tag: 0,
            posted: false,
            ..*like
        };
        let packet = Packet::of(header, self.sum.clone().unwrap_or_default());
        self.answer = Some(packet.clone());
        packet
    }

    /// The result of a run, if it has gone.
    pub fn answer(&self, run: u32) -> Option<&Packet> {
        self.answer.as_ref().filter(|_| self.run == run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_arith::{DType, Op};

    fn response(entry: u8, run: u32, words: Vec<u64>) -> Packet {
        let header = Header::new(Message::Contribution, 0x10, 1, 0);
        let header = Header { p_id: entry, run, op: Op::Sum, dtype: DType::U64, ..header };
        Packet::of(header, words)
    }

    #[test]
    fn responses_are_merged_once_each_and_take_their_cycles() {
        let mut gather = Gather::new(0x10, 0b1011);
        gather.cycles_per_word = 3;
        assert_eq!(gather.take(response(1, 1, vec![5, 6]), 2, 100), Ok(()));
        assert_eq!(gather.take(response(1, 1, vec![5, 6]), 2, 101), Err(Status::Duplicate));
        assert_eq!(gather.take(response(2, 1, vec![5, 6]), 2, 101), Err(Status::Duplicate), "nobody is there");
        assert_eq!(gather.take(response(0, 1, vec![5]), 2, 101), Err(Status::BadLength));
        assert_eq!(gather.take(response(0, 1, vec![1, 2]), 2, 101), Ok(()));
        assert_eq!(gather.due(), None);
        assert_eq!(gather.take(response(3, 1, vec![10, 20]), 2, 200), Ok(()));
        // The first two one after the other until 112, the last one from 200 on.
        assert_eq!(gather.due(), Some(206));
        let like = Header::new(Message::Contribution, 1, 0x10, 0xc000);
        assert_eq!(gather.finish(&like).words(), [16, 28]);
        assert_eq!((gather.due(), gather.merged(1)), (None, vec![1, 0, 3]));
        assert_eq!(gather.take(response(0, 1, vec![1, 2]), 2, 300), Err(Status::Duplicate));
        // The next run begins with its first response.
        assert_eq!(gather.take(response(0, 2, vec![7, 7]), 2, 300), Ok(()));
        assert!(gather.answer(1).is_none() && gather.answer(2).is_none());
        gather.end(2, Status::TimedOut, 310);
        let answer = gather.finish(&like);
        assert_eq!((answer.words(), answer.header.error, answer.header.status), (&[7, 7][..], true, Status::TimedOut));
    }

    #[test]
    fn the_order_of_entries_does_not_depend_on_arrival() {
        let mut gather = Gather { in_order: true, initial: Some(1), ..Gather::new(0x10, 0b111) };
        for entry in [2, 0, 1] {
            gather.take(response(entry, 1, vec![2]), 1, 10).unwrap();
        }
        assert_eq!((gather.merged(1), gather.due()), (vec![0, 1, 2], Some(13)));
        assert_eq!(gather.finish(&Header::new(Message::Contribution, 1, 0x10, 0)).words(), [7]);
    }
}
