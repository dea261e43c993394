//! The rules of strangers: which frames one that has no right to may send, and when.

use super::{Collective, Setup, Stranger};
use crate::participants::end_point;
use crate::pbv::file::{ConfigurationFile, StrangerFile, WrongFile};
use crate::problem::Problem;
use crate::topology::Topology;
use watershed_pbv_interface::packet::Message;

/// Frames that a stranger sends at most.
pub(super) const MOST_STRANGE: u64 = 1 << 16;

/// What may be wrong with a message from an end point, for the messages that a stranger sends if it does not choose.
pub(super) fn can_be_wrong(wrong: WrongFile, message: Message) -> bool {
    match wrong {
        WrongFile::Sender | WrongFile::Channel => true,
        WrongFile::Run => matches!(message, Message::Contribution | Message::Failure),
        WrongFile::Kind => !matches!(
            message,
            Message::Contribution | Message::Failure | Message::Retry | Message::Read | Message::ReadReply
        ),
    }
}

pub fn stranger(
    file: &StrangerFile,
    index: usize,
    (collectives, setup): (&[Collective], &Setup),
    topology: &Topology,
    problems: &mut Vec<Problem>,
) -> Option<Stranger> {
    let path = format!("pbv.stranger[{index}]");
    let before = problems.len();
    end_point(file.end_point.into(), topology.end_points(), &format!("{path}.end_point"), problems);
    let number = collectives.iter().position(|of| of.name == file.collective);
    let Some(number) = number else {
        problems.push(
            Problem::at(format!("{path}.collective"), format!("there is no collective \"{}\"", file.collective))
                .nearest(&file.collective, collectives.iter().map(|of| of.name.as_str())),
        );
        return None;
    };
    let of = &collectives[number];
    let takes_part = of.participants.contains(&file.end_point);
    let here = format!("{path}.end_point");
    let who = format!("end point {}", file.end_point);
    match file.wrong {
        WrongFile::Sender if takes_part || of.source == file.end_point => problems.push(
            Problem::at(here, format!("{who} has to do with \"{}\": it is no stranger", of.name))
                .expected("an end point that neither takes part nor is the source"),
        ),
        WrongFile::Run | WrongFile::Kind if !takes_part => problems
            .push(Problem::at(here, format!("{who} takes no part in \"{}\"", of.name)).expected("a participant")),
        WrongFile::Kind if of.source == file.end_point => problems.push(
            Problem::at(here, format!("{who} is the source of \"{}\": it may send these messages", of.name))
                .expected("another participant"),
        ),
        _ => {}
    }
    // Tables are written by the end point that configures them: its frames that do so lack nothing.
    let in_band = setup.file.configuration != ConfigurationFile::SidePort;
    let writes = in_band && setup.configured_by == file.end_point && file.wrong != WrongFile::Channel;
    let possible = |message| {
        can_be_wrong(file.wrong, message) && !(writes && matches!(message, Message::Write | Message::Configuration))
    };
    let mut messages = Vec::new();
    for (at, name) in file.messages.iter().enumerate() {
        let here = format!("{path}.messages[{at}]");
        match Message::ALL.iter().find(|message| message.name() == name) {
            Some(&message) if possible(message) => messages.push(message),
            Some(_) => {
                let legal: Vec<&str> = Message::ALL.iter().filter(|&&m| possible(m)).map(|m| m.name()).collect();
                problems.push(
                    Problem::at(here, format!("a {name} message of {who} cannot have this wrong"))
                        .expected(legal.join(", ")),
                );
            }
            None => problems.push(
                Problem::at(here, format!("there is no message \"{name}\""))
                    .nearest(name, Message::ALL.iter().map(|message| message.name())),
            ),
        }
    }
    if file.messages.is_empty() {
        messages.extend(Message::ALL.iter().copied().filter(|&message| possible(message)));
    }
    if file.until_cycle <= file.from_cycle
        || (file.until_cycle - file.from_cycle) / file.every_cycles.max(1) > MOST_STRANGE
    {
        problems.push(
            Problem::at(format!("{path}.until_cycle"), "a stranger has to stop, after it has started").expected(
                format!(
                    "a cycle after {} and up to {}",
                    file.from_cycle,
                    file.from_cycle.saturating_add(file.every_cycles.saturating_mul(MOST_STRANGE))
                ),
            ),
        );
    }
    (problems.len() == before).then(|| Stranger { file: file.clone(), collective: number, messages })
}
