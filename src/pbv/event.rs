//! Events of sending and receiving, with their cycles: the data of message ladders and of the source's step lists.

use super::packet::{Control, Header, Message, Status};
use watershed_arith::Op;
use watershed_kernel::Cycle;

/// A frame was sent (its first flit left) or received (its last flit was there).
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Event {
    /// When.
    pub cycle: Cycle,
    /// Sender's device ID.
    pub from: u16,
    /// Receiver's device ID.
    pub to: u16,
    /// Received, not sent.
    pub received: bool,
    /// Which message.
    pub message: Message,
    /// Which context.
    pub cc_id: u16,
    /// Which run of it.
    pub run: u32,
    /// Its operation.
    pub op: Op,
    /// Of a control packet.
    pub control: Control,
}

impl Event {
    fn of(cycle: Cycle, received: bool, from: u16, to: u16, header: &Header) -> Event {
        let Header { message, cc_id, run, op, control, .. } = *header;
        Event { cycle, from, to, received, message, cc_id, run, op, control }
    }

    /// A frame that was received by device `at`.
    pub fn received(cycle: Cycle, at: u16, header: &Header) -> Event {
        Event::of(cycle, true, header.requester, at, header)
    }

    /// A frame that was sent.
    pub fn sent(cycle: Cycle, header: &Header) -> Event {
        Event::of(cycle, false, header.requester, header.device, header)
    }

    /// Whether it belongs to a context: registers and tables do not.
    pub fn is_of_context(&self) -> bool {
        !matches!(
            self.message,
            Message::Write | Message::Read | Message::ReadReply | Message::Configuration | Message::Report
        )
    }

    /// The message in the source's words: `barrier met`, `barrier satisfied`, `command sum`.
    pub fn label(&self) -> String {
        match self.message {
            Message::Contribution | Message::Partial if self.op == Op::Barrier => "barrier met".into(),
            Message::Satisfied if self.op == Op::Barrier => "barrier satisfied".into(),
            Message::Command if self.op == Op::Barrier => "set up barrier".into(),
            Message::Command => format!("command {}", self.op),
            Message::Control => format!("control {}", self.control),
            message => message.to_string(),
        }
    }
}

/// A step of a device other than sending and receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum StepKind {
    /// Its collective engine took a message of this device.
    Took,
    /// Its collective engine queued a message.
    Queued,
    /// Its collective engine set the watchdog of a context.
    Watched,
    /// It began its task.
    Began,
    /// It made its contribution: its task was over.
    Made,
    /// It made its contribution once more, because it was asked to.
    Repeated,
    /// It merged the last response, as the source.
    Merged,
    /// It asked for an answer that had not come.
    Asked,
}

/// A step of a device's work on a run of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct WorkStep {
    /// When.
    pub cycle: Cycle,
    /// What.
    pub kind: StepKind,
    /// Which message.
    pub message: Message,
    /// Of which device: the sender.
    pub from: u16,
    /// Which context.
    pub cc_id: u16,
    /// Which run of it.
    pub run: u32,
    /// What it says about errors.
    pub status: Status,
}

/// The events of one device, if they are recorded.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct Log {
    /// Whether events are kept.
    pub on: bool,
    events: Vec<Event>,
    steps: Vec<WorkStep>,
}

impl Log {
    /// Keeps an event.
    #[inline]
    pub fn note(&mut self, event: Event) {
        if self.on {
            self.events.push(event);
        }
    }

    /// Keeps a step of the work on what a header names.
    #[inline]
    pub fn step(&mut self, cycle: Cycle, kind: StepKind, header: &Header) {
        if self.on {
            let Header { message, requester: from, cc_id, run, status, .. } = *header;
            self.steps.push(WorkStep { cycle, kind, message, from, cc_id, run, status });
        }
    }

    /// The steps that were kept, in order.
    pub fn steps(&self) -> &[WorkStep] {
        &self.steps
    }

    /// What was kept, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}
