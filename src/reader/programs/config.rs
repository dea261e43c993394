//! Programs and multicast trees after checking.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::file::{CoreFile, MulticastFile, ParallelLinks, PipelineKind, ProgramFile};
use crate::collective::SwitchRegisters;
use crate::file::ParticipantsFile;
use crate::participants::{end_point, listed};
use crate::problem::Problem;
use crate::source::Source;
use crate::topology::Topology;
use crate::{limits, shipped};
use watershed_fabric::topology::Shape;
use watershed_piuma_interface::program::{self, Fault, MNEMONICS, Program};

/// What a scenario says about programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Programs {
    /// The cores.
    pub core: CoreFile,
    /// Multicast trees.
    pub multicasts: Vec<Multicast>,
    /// Programs.
    pub programs: Vec<ProgramText>,
}

/// A multicast tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Multicast {
    /// Tree id.
    pub id: u32,
    /// Who sends.
    pub source: u32,
    /// Who receives.
    pub receivers: Vec<u32>,
    /// Which of two parallel links.
    pub links: ParallelLinks,
    /// Registers instead of the built-in tree.
    #[serde(skip)]
    pub registers: Option<Vec<SwitchRegisters>>,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramText {
    /// Its name.
    pub name: String,
    /// Who runs it.
    pub cores: Vec<u32>,
    /// Threads of each.
    pub threads: u32,
    /// Where.
    pub pipeline: PipelineKind,
    /// First cycle.
    pub start_cycle: u64,
    /// What it says.
    pub text: String,
    /// The same, assembled.
    #[serde(skip)]
    pub program: Arc<Program>,
}

/// Checks end points that are listed.
pub fn ends(given: &ParticipantsFile, path: &str, topology: &Topology, problems: &mut Vec<Problem>) -> Vec<u32> {
    listed(given, topology.end_points(), "is listed twice", path, problems)
}

/// Checks the tree of a `[[multicast]]`; its registers are checked by the caller.
pub fn multicast(
    file: &MulticastFile,
    index: usize,
    ids: u32,
    topology: &Topology,
    problems: &mut Vec<Problem>,
) -> Multicast {
    let path = format!("multicast[{index}]");
    if file.id >= ids {
        problems.push(
            Problem::at(format!("{path}.id"), format!("the switches have no collective id {}", file.id))
                .expected(format!("an id from 0 to {}", ids - 1))
                .help("`switch.collective_ids` is how many there are"),
        );
    }
    end_point(file.source.into(), topology.end_points(), &format!("{path}.source"), problems);
    let mut receivers = ends(&file.receivers, &format!("{path}.receivers"), topology, problems);
    if file.receivers == ParticipantsFile::All {
        receivers.retain(|&end| end != file.source);
    }
    if let Some(at) = receivers.iter().position(|&end| end == file.source) {
        let message = "the source is among the receivers";
        problems.push(Problem::at(format!("{path}.receivers[{at}]"), message).expected("other end points"));
    }
    if file.links == ParallelLinks::Second && !matches!(topology.shape, Shape::Die(_)) {
        problems.push(Problem::at(format!("{path}.links"), "only a die has parallel links between tiles"));
    }
    Multicast { id: file.id, source: file.source, receivers, links: file.links, registers: None }
}

/// Checks and assembles a `[[program]]`.
pub fn text(
    file: &ProgramFile,
    index: usize,
    base: &Path,
    topology: &Topology,
    source: &Source,
    problems: &mut Vec<Problem>,
) -> ProgramText {
    let path = format!("program[{index}]");
    let cores = ends(&file.cores, &format!("{path}.cores"), topology, problems);
    let mut text = file.text.clone().unwrap_or_default();
    match (&file.text, &file.file) {
        (Some(_), None) => {}
        (None, Some(name)) => match shipped::len(&base.join(name)) {
            Ok(bytes) if bytes > limits::SCENARIO_BYTES => {
                let message = format!("\"{name}\" has {bytes} bytes");
                problems.push(
                    Problem::at(format!("{path}.file"), message)
                        .expected(format!("up to {} bytes", limits::SCENARIO_BYTES)),
                );
            }
            _ => match shipped::text(&base.join(name)) {
                Ok(found) => text = found,
                Err(error) => {
                    let reason = match error.kind() {
                        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                        _ => error.to_string(),
                    };
                    problems.push(
                        Problem::at(format!("{path}.file"), format!("cannot read \"{name}\": {reason}"))
                            .help("the path is relative to the scenario file"),
                    );
                }
            },
        },
        (Some(_), Some(_)) => problems.push(
            Problem::at_key(format!("{path}.file"), "`file` and `text` cannot both be given")
                .related(format!("{path}.text"), "the other one"),
        ),
        (None, None) => {
            problems.push(Problem::at(&path, "a program without a text").expected("`text` or `file`"));
        }
    }
    let program = program::assemble(&text).unwrap_or_else(|fault| {
        problems.push(problem(&fault, &text, &path, file.file.as_deref(), source));
        Program::default()
    });
    ProgramText {
        name: file.name.clone().unwrap_or_else(|| format!("p{index}")),
        cores,
        threads: file.threads,
        pipeline: file.pipeline,
        start_cycle: file.start_cycle,
        text,
        program: Arc::new(program),
    }
}

/// An error in a program's text, at its place in the scenario if the text is there.
fn problem(fault: &Fault, text: &str, path: &str, file: Option<&str>, source: &Source) -> Problem {
    let word: &str = text.get(fault.at.clone()).unwrap_or("");
    let inside = || source.span_within(&format!("{path}.text"), text, fault.at.clone());
    let problem = match (file, inside()) {
        (None, Some(span)) => Problem::in_text(span, &fault.message),
        (None, None) => Problem::at(format!("{path}.text"), format!("line {}: {}", fault.line, fault.message)),
        (Some(name), _) => {
            Problem::at(format!("{path}.file"), format!("{name}, line {}: {}", fault.line, fault.message))
        }
    };
    let problem = problem.expected(&fault.expected);
    if fault.message.contains("no instruction") { problem.nearest(word, MNEMONICS) } else { problem }
}
