//! A node's part in a context: what it contributes, when, and whom it obeys.

use crate::gather::Gather;
use crate::packet::{Header, Message, NO_DEVICE, Packet};
use std::collections::BTreeSet;
use watershed_arith::Flags;
use watershed_arith::divider::word_quotient;

/// How long a node's task takes.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum TaskTime {
    /// Always the same.
    Fixed(u64),
    /// Evenly distributed, both ends included; the seed's stream is the device ID.
    Uniform {
        /// Shortest.
        from: u64,
        /// Longest.
        to: u64,
        /// Seed.
        seed: u64,
    },
    /// Run by run; the last one stays.
    Trace(Vec<u64>),
    /// Never ends: a dead node.
    Never,
    /// Until someone at the device calls the run: a rank of an application.
    Called,
}

/// A node's part in a context.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Part {
    /// Which context.
    pub cc_id: u16,
    /// Header of its contributions: operation, type, rounding. A source that takes part sets `device`, `offset` and `p_id`
    /// to its own engine, for it is sent no command.
    pub like: Header,
    /// Its operands, run after run; after the last one the first is used again. Empty for a barrier.
    pub words: Vec<u64>,
    /// Words of an operand.
    pub length: usize,
    /// How long its task takes.
    pub task: TaskTime,
    /// What starts it: a command, or the initialisation.
    pub starts_on: Message,
    /// Where contexts are armed again: runs up to this one begin by themselves when the one before has ended. 0: none.
    pub last_run: u32,
    /// Starts no task of another context until satisfied.
    pub blocks: bool,
    /// Has no task: it is only told (the source of a collective of others).
    pub watches: bool,
    /// Cycles without an answer after which it asks again: its engine, and as the source with its command; 0 is never.
    pub patience: u64,
    /// How often it asks before it gives up: its outcome is an error then.
    pub asks: u32,
    /// The context is a group of an inter-group barrier: the node goes on when the others are there, if it is.
    pub group: bool,
    /// Runs in which its task fails: it says so instead of contributing.
    pub fails: BTreeSet<u32>,
    /// Devices whose frames about the context it obeys. Empty: the first one that sends any.
    pub heeds: Vec<u16>,
    /// A source's frames that set the context up, to be sent again to engines that do not know it.
    pub set_up: Vec<Packet>,
    /// It merges the responses itself, as the source.
    pub gather: Option<Gather>,
    /// The result is divided by this: the participants of a mean; 0 for none.
    pub divide: u32,
    /// Their greatest duration in cycles: until then messages of engines may be about the frames before.
    pub set_up_cycles: u64,
}

impl Part {
    /// A part in a context that a command starts.
    pub fn of(like: Header, words: Vec<u64>, task: TaskTime) -> Part {
        let (cc_id, length) = (like.cc_id, words.len());
        let starts_on = Message::Command;
        let heeds = if like.device == NO_DEVICE { Vec::new() } else { vec![like.device] };
        Part {
            cc_id,
            like,
            words,
            length,
            task,
            starts_on,
            last_run: 0,
            blocks: true,
            watches: false,
            patience: 0,
            asks: 3,
            group: false,
            fails: BTreeSet::new(),
            heeds,
            set_up: Vec::new(),
            set_up_cycles: 0,
            gather: None,
            divide: 0,
        }
    }

    /// A result as the node keeps it, with its flags.
    pub(super) fn kept(&self, words: &[u64], flags: Flags) -> (Vec<u64>, Flags) {
        let mut all = flags;
        let divided = |&word: &u64| {
            let (word, raised) = word_quotient(self.like.dtype, self.like.mode(), word, self.divide);
            all |= raised;
            word
        };
        if self.divide == 0 { (words.to_vec(), flags) } else { (words.iter().map(divided).collect(), all) }
    }

    /// The operand of a run; runs are counted from 1.
    pub(super) fn operand(&self, run: u32) -> &[u64] {
        let operands = self.words.len().checked_div(self.length).unwrap_or(0).max(1);
        let at = run.saturating_sub(1) as usize % operands * self.length;
        &self.words[at..at + self.length]
    }
}
