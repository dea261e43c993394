//! Rules for faults of links and end points that the families share.

use crate::armed::file::EffectFile;
use crate::problem::Problem;
use watershed_fabric::fault::Effect;

/// A fault as a scenario has it.
pub(crate) struct FaultRequest<'a> {
    /// What happens.
    pub effect: EffectFile,
    /// Whether a delay is given.
    pub delay: bool,
    /// Where.
    pub at: &'a str,
    /// From this cycle on.
    pub from_cycle: u64,
    /// Up to this one; without it, to the end.
    pub until_cycle: Option<u64>,
    /// Keys that choose among frames, and whether they are given: what is dead chooses none.
    pub chooses: &'a [(&'a str, bool)],
}

/// Whether its keys go together.
pub(crate) fn check(fault: &FaultRequest<'_>, path: &str, problems: &mut Vec<Problem>) {
    if (fault.effect == EffectFile::Delay) != fault.delay {
        let problem = if fault.effect == EffectFile::Delay {
            Problem::at(format!("{path}.delay_cycles"), format!("`{path}.delay_cycles` is missing"))
                .expected("by how many cycles a frame is delayed")
        } else {
            Problem::at_key(format!("{path}.delay_cycles"), "only a delay has `delay_cycles`")
        };
        problems.push(problem);
    }
    if fault.effect == EffectFile::Dead {
        for (key, _) in fault.chooses.iter().filter(|(_, given)| *given) {
            problems.push(Problem::at_key(format!("{path}.{key}"), format!("what is dead has no `{key}`")));
        }
        if fault.at == "all" {
            problems.push(
                Problem::at(format!("{path}.at"), "not everything can be dead")
                    .expected("the name of a switch or an end point"),
            );
        }
    }
    if fault.until_cycle.is_some_and(|until| until <= fault.from_cycle) {
        problems.push(
            Problem::at(format!("{path}.until_cycle"), "the fault ends before it begins")
                .expected(format!("a cycle after {}", fault.from_cycle)),
        );
    }
}

/// What a fault does to a frame; a delay has its number of cycles.
pub fn effect(of: EffectFile, delay_cycles: Option<u64>) -> Effect {
    match of {
        EffectFile::Drop => Effect::Drop,
        EffectFile::Corrupt => Effect::Corrupt,
        EffectFile::Duplicate => Effect::Duplicate,
        EffectFile::Delay => Effect::Delay(delay_cycles.unwrap_or(1)),
        EffectFile::Dead => Effect::Dead,
    }
}
