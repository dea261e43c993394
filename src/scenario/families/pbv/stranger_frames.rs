//! Frames of strangers (`[[pbv.stranger]]`): every kind of message, correct except for one credential.

use watershed_arith::Op;
use watershed_pbv::packet::{Body, ConfigRecord, Control, Header, InitRecord, Message, Packet, Status};
use watershed_pbv::plan::{Collective, Tables};
use watershed_pbv::tables::engine_base;

/// A frame of a message about a collective, from a device to another one. What can differ from frame to frame (what a control
/// packet asks, what an error says) takes its turn.
pub fn frame(of: &Collective, tables: &Tables, message: Message, turn: u32, (from, to): (u16, u16)) -> Packet {
    let all = of.tree.preorder();
    // At an engine it claims the place of a participant of that engine.
    let branch = all.iter().find(|branch| branch.device == to).unwrap_or(&all[0]);
    let engine = message == Message::Partial || message == Message::Error;
    let claimed = if engine { branch.engines.first().map(|below| below.device) } else { None };
    let victim = claimed.or(branch.nodes.first().copied()).unwrap_or(of.source);
    let header = Header {
        requester: from,
        p_id: tables.entry((branch.device, of.plane), victim).unwrap_or(0),
        error: matches!(message, Message::Error | Message::Failure) || message == Message::Satisfied && turn % 2 == 1,
        status: match message {
            Message::Error | Message::Satisfied if turn % 2 == 1 => Status::TimedOut,
            Message::Failure => Status::Failed,
            _ => Status::Ok,
        },
        offset: engine_base(of.plane),
        ..of.header(message, to)
    };
    let words = || vec![0x5a5a_5a5a_5a5a_5a5a; usize::from(of.words)];
    let body = match message {
        Message::Configuration => Body::Configuration(vec![ConfigRecord::of(to, Vec::new(), 0)]),
        Message::Initialisation => {
            Body::Initialisation(vec![InitRecord { words: of.words, ..InitRecord::barrier(to, 1) }])
        }
        Message::Error => Body::Missing { pbv: 1, devices: vec![victim] },
        Message::Contribution | Message::Partial | Message::Satisfied if of.op != Op::Barrier => Body::Words(words()),
        Message::Multicast => Body::Words(words()),
        Message::Write => Body::Words(vec![u64::from(from)]),
        _ => Body::Words(Vec::new()),
    };
    let control = Control::ALL[turn as usize % Control::ALL.len()];
    let header = if message == Message::Control { Header { control, op: Op::Barrier, ..header } } else { header };
    Packet { header, body }
}
