//! The checker of a packet engine: a whole frame is decoded, checked and led to its unit (B-STR-1).
//!
//! | what is wrong | what becomes of the frame |
//! |---|---|
//! | it cannot be read | it is counted and dropped: nothing in it can be trusted, its sender included |
//! | another device, no engine at this offset, EP, a message that no engine takes | it is refused, and its sender is told |

use super::engine::EngineCfg;
use super::packet::{Header, Message, Packet, Status};
use super::tables::ENGINE_SPAN;

/// The checker's decision about a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It cannot be read.
    Unreadable(Status),
    /// It is not for this engine.
    Refused(Header, Status),
    /// It is for the registers.
    Registers(Packet),
    /// It is for the collective engine.
    Collective(Packet),
}

impl CheckOutcome {
    /// Its header, if it could be read.
    pub fn header(&self) -> Option<&Header> {
        match self {
            CheckOutcome::Unreadable(_) => None,
            CheckOutcome::Refused(header, _) => Some(header),
            CheckOutcome::Registers(packet) | CheckOutcome::Collective(packet) => Some(&packet.header),
        }
    }
}

/// Checks a whole frame that an engine with these parameters took from its data path.
pub fn check(cfg: &EngineCfg, words: &[u64]) -> CheckOutcome {
    let packet = match Packet::from_flits(words) {
        Ok(packet) => packet,
        Err(error) => return CheckOutcome::Unreadable(error.status()),
    };
    let header = packet.header;
    let registers = matches!(header.message, Message::Write | Message::Read | Message::Configuration);
    if header.device != cfg.device {
        CheckOutcome::Refused(header, Status::UnknownDevice)
    } else if header.offset.wrapping_sub(cfg.base) >= ENGINE_SPAN {
        // It is for an engine that this switch does not have.
        CheckOutcome::Refused(header, Status::BadAddress)
    } else if header.tlp.poisoned {
        CheckOutcome::Refused(header, Status::Poisoned)
    } else if matches!(header.message, Message::ReadReply | Message::Report) {
        CheckOutcome::Refused(header, Status::WrongType)
    } else if registers {
        CheckOutcome::Registers(packet)
    } else {
        CheckOutcome::Collective(packet)
    }
}
