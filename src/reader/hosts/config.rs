//! Hosts after checking.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::file::{HostAlgorithm, HostExchange, HostFile, HostMode, is_usual_merge};
use crate::collective::Collective;
use crate::file::{CollectiveKind, DelayFile, Distribution, ParticipantsFile};
use crate::limits;
use crate::names::{self, DType, NamedValues};
use crate::problem::Problem;
use crate::programs::config::ends;
use crate::random::Stream;
use crate::topology::Topology;
use crate::values;
use watershed_arith::Op;
use watershed_piuma_interface::schedule::{Algorithm, MAX_ROUNDS, Schedule};

/// A collective in software: its table, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its table. What may be left out there, and what documents have in another form, stands here.
    #[serde(flatten)]
    pub file: HostFile,
    /// Index of the collective whose data it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<usize>,
    /// Operation.
    #[serde(serialize_with = "named")]
    pub op: Op,
    /// Type of an element.
    #[serde(serialize_with = "named")]
    pub dtype: DType,
    /// Elements.
    pub elements: u64,
    /// The end points of the ranks.
    #[serde(rename = "participants")]
    pub ranks: Vec<u32>,
    /// What it draws.
    pub random: Distribution,
    /// Or what it has: a row of bit patterns for each rank; they stand in the scenario's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Vec<u64>>>,
    /// By how much each rank starts late; empty if none does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<u64>,
}

fn unsupported(op: Op, dtype: DType, reason: &str) -> String {
    format!("there is no \"{}\" for {}: the operation {reason}", NamedValues::name(op), NamedValues::name(dtype))
}

fn named<T: NamedValues, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(NamedValues::name(*value))
}

impl Host {
    /// Words of the vector.
    pub fn words(&self) -> u64 {
        self.elements.div_ceil(u64::from(self.dtype.lanes()))
    }

    /// Who sends what when.
    pub fn schedule(&self) -> Schedule {
        let algorithm = match self.file.algorithm {
            HostAlgorithm::RecursiveDoubling => Algorithm::RecursiveDoubling,
            HostAlgorithm::Ring => Algorithm::Ring,
            HostAlgorithm::Rabenseifner => Algorithm::Rabenseifner,
            HostAlgorithm::BinaryTree => Algorithm::BinaryTree,
            HostAlgorithm::SendLoop => Algorithm::SendLoop,
        };
        Schedule { algorithm, ranks: self.ranks.len() as u32, words: self.words() }
    }

    /// Whether its ranks combine their vectors; those of a send loop hand one on.
    pub fn reduces(&self) -> bool {
        self.file.algorithm != HostAlgorithm::SendLoop
    }
}

/// Checks all hosts.
pub fn resolve(
    files: &[HostFile],
    collectives: &[Collective],
    topology: &Topology,
    seed: u64,
    problems: &mut Vec<Problem>,
) -> Vec<Host> {
    let mut taken = BTreeMap::new();
    files
        .iter()
        .enumerate()
        .map(|(index, file)| {
            let path = format!("host[{index}]");
            let host = host(file, index, &path, (collectives, topology, seed), problems);
            if let Some(first) = taken.insert(host.name.clone(), path.clone()) {
                problems.push(
                    Problem::at(format!("{path}.name"), format!("the name \"{}\" is taken", host.name))
                        .related(format!("{first}.name"), "by this one"),
                );
            }
            host
        })
        .collect()
}

fn host(
    file: &HostFile,
    index: usize,
    path: &str,
    (collectives, topology, seed): (&[Collective], &Topology, u64),
    problems: &mut Vec<Problem>,
) -> Host {
    let mut like = None;
    if let Some(name) = &file.like {
        like = collectives.iter().position(|collective| collective.name == *name);
        let usable = |collective: &Collective| {
            collective.kind == CollectiveKind::Allreduce && !collective.called && collective.accumulate.is_none()
        };
        if !like.is_some_and(|at| usable(&collectives[at])) {
            let names: Vec<&str> = collectives.iter().filter(|one| usable(one)).map(|one| one.name.as_str()).collect();
            let expected = if names.is_empty() { "no `like`".to_owned() } else { names::one_of(&names) };
            problems.push(
                Problem::at(format!("{path}.like"), format!("\"{name}\" is no all-reduce that a host could repeat"))
                    .expected(expected)
                    .nearest(name, names),
            );
            like = None;
        }
        for (given, key) in [
            (file.op.is_some(), "op"),
            (file.dtype.is_some(), "dtype"),
            (file.elements.is_some(), "elements"),
            (file.participants.is_some(), "participants"),
            (file.random.is_some(), "random"),
            (file.values.is_some(), "values"),
        ] {
            if given {
                let message = format!("`{key}` is that of the collective named by `like`");
                problems.push(
                    Problem::at_key(format!("{path}.{key}"), message).related(format!("{path}.like"), "this one"),
                );
            }
        }
    }
    let model = like.map(|at| &collectives[at]);
    let dtype = file.dtype.as_deref().and_then(DType::from_name);
    let dtype = dtype.or(model.map(|model| model.dtype)).unwrap_or(DType::F64);
    let op = file.op.as_deref().and_then(Op::from_name).or(model.and_then(|model| model.op)).unwrap_or(Op::Sum);
    if op == Op::Barrier {
        problems.push(Problem::at(format!("{path}.op"), "the operation \"barrier\" reduces nothing"));
    } else if let Err(reason) = names::supports(op, dtype) {
        problems.push(Problem::at(format!("{path}.op"), unsupported(op, dtype, reason)));
    }
    let ranks = match (&file.participants, model) {
        (None, Some(model)) => model.participants.list.clone(),
        (given, _) => {
            let given = given.clone().unwrap_or(ParticipantsFile::All);
            ends(&given, &format!("{path}.participants"), topology, problems)
        }
    };
    let elements = file.elements.or(model.map(|model| model.elements)).unwrap_or(1);
    let random = file.random.unwrap_or_else(|| values::default_distribution(dtype));
    given(file, path, (ranks.len(), elements, dtype), problems);
    let mut host = Host {
        name: file.name.clone().unwrap_or_else(|| format!("h{index}")),
        like,
        op,
        dtype,
        elements,
        values: rows_of(file, dtype, (elements, ranks.len())),
        ranks,
        random,
        delays: Vec::new(),
        file: HostFile {
            name: None,
            op: None,
            dtype: None,
            elements: None,
            participants: None,
            random: None,
            values: None,
            delay_cycles: DelayFile::default(),
            ..file.clone()
        },
    };
    host.delays = delays(file, index, path, host.ranks.len(), seed, problems);
    excluded(file, path, problems);
    let volume = u128::from(elements) * host.ranks.len() as u128;
    // In ideal mode no data are held.
    if host.file.mode == HostMode::Fabric && volume > u128::from(limits::CONTRIBUTIONS) {
        let message = format!("{volume} elements of all ranks are too many");
        problems.push(
            Problem::at(format!("{path}.elements"), message)
                .expected(format!("up to {} elements x ranks", limits::CONTRIBUTIONS)),
        );
    }
    if !host.ranks.is_empty() && host.schedule().rounds() >= MAX_ROUNDS {
        let message = format!("{} ranks make {} rounds", host.ranks.len(), host.schedule().rounds());
        problems.push(
            Problem::at(format!("{path}.participants"), message).expected(format!("fewer than {MAX_ROUNDS} rounds")),
        );
    }
    host
}

/// Keys that exclude each other.
fn excluded(file: &HostFile, path: &str, problems: &mut Vec<Problem>) {
    if file.exchange == HostExchange::Get && file.mode == HostMode::Fabric {
        problems.push(
            Problem::at(format!("{path}.exchange"), "on the fabric messages are written, not read")
                .expected("\"put\", or mode = \"ideal\""),
        );
    }
    if file.algorithm == HostAlgorithm::SendLoop && !is_usual_merge(&file.merge_accesses) {
        let problem = Problem::at(format!("{path}.merge_accesses"), "ranks of a multicast merge nothing");
        problems.push(problem.related(format!("{path}.algorithm"), "this one"));
    }
    if !file.draws.is_own() && (file.like.is_some() || file.values.is_some()) {
        let other = if file.like.is_some() { "like" } else { "values" };
        let problem = Problem::at_key(format!("{path}.draws"), format!("with `{other}` nothing is drawn"));
        problems.push(problem.related(format!("{path}.{other}"), "this one"));
    }
}

/// The bit patterns that stand in the file: a row a rank; where the first one sends to the others, one is enough.
fn rows_of(file: &HostFile, dtype: DType, (elements, ranks): (u64, usize)) -> Option<Vec<Vec<u64>>> {
    let mut rows = values::patterns(file.values.as_ref()?, dtype);
    if rows.len() == 1 && elements.saturating_mul(ranks as u64) <= limits::CONTRIBUTIONS {
        rows.resize(ranks.max(1), vec![0; elements as usize]);
    }
    Some(rows)
}

/// Checks the numbers that stand in the file.
fn given(file: &HostFile, path: &str, (ranks, elements, dtype): (usize, u64, DType), problems: &mut Vec<Problem>) {
    let Some(rows) = &file.values else { return };
    let at = format!("{path}.values");
    values::not_both(file.random, path, problems);
    if file.mode == HostMode::Ideal {
        problems.push(Problem::at_key(at.clone(), "in ideal mode no data move"));
    }
    // Who sends to the others is the first rank: what they have does not matter.
    if file.algorithm == HostAlgorithm::SendLoop && rows.len() == 1 {
        values::check_values(rows, &at, (1, String::new()), (values::Length::of_vector(elements), dtype), problems);
        return;
    }
    let who = format!("{ranks}, in the order of `participants`");
    values::check_values(rows, &at, (ranks, who), (values::Length::of_vector(elements), dtype), problems);
}

/// By how much each rank starts late; empty if none does.
fn delays(file: &HostFile, index: usize, path: &str, ranks: usize, seed: u64, problems: &mut Vec<Problem>) -> Vec<u64> {
    let list = match &file.delay_cycles {
        DelayFile::Same(delay) => vec![*delay; ranks],
        DelayFile::Each(list) => {
            if list.len() != ranks {
                let message = format!("{} delays for {ranks} ranks", list.len());
                let problem = Problem::at(format!("{path}.delay_cycles"), message);
                problems.push(problem.expected("one number for all, or one for each"));
            }
            list.clone()
        }
        DelayFile::Random { random_max } => {
            let drawn = |rank| Stream::delays(seed, 1 << 33 | index, rank).below(random_max + 1);
            (0..ranks).map(drawn).collect()
        }
    };
    let late = list.iter().any(|delay| *delay > 0);
    if late && file.mode == HostMode::Ideal {
        let problem = Problem::at_key(format!("{path}.delay_cycles"), "in ideal mode all ranks start at once");
        problems.push(problem);
    }
    if late { list } else { Vec::new() }
}

/// Whether point-to-point messages of hosts, or of ranks of a workload, may use any link of the system.
pub fn simulated(scenario: &crate::config::Scenario) -> bool {
    scenario.workload.is_some() || scenario.hosts.iter().any(|host| host.file.mode == HostMode::Fabric)
}
