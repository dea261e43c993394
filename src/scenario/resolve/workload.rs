//! `[workload]`: the trace, where its ranks are, and who computes its collectives.

use std::io::{self, Read};
use std::path::Path;

use watershed_workload::chakra::{self, Files};
use watershed_workload::{Group, Trace, What, goal};

use crate::config::{Family, Topology};
use crate::file::{CollectiveFile, CollectiveKind, ParticipantsFile, ScenarioFile};
use crate::names::{self, DType, Named};
use crate::problem::Problem;
use crate::programs::config::ends;
use crate::shipped;
use crate::workload::config::{Traced, Workload};
use crate::workload::file::{Engine, WorkloadFile};
use std::collections::BTreeMap;
use watershed_arith::Op;

/// Who computes a kind of collective: as given, or the family's engine where it can, else the first algorithm.
pub fn engine(file: &WorkloadFile, family: Family, what: What) -> Engine {
    let can = Engine::of(what);
    let usual = can.iter().copied().find(|&engine| engine != Engine::Network || family == Family::Piuma);
    file.engine.given(what).or(usual).unwrap_or(can[0])
}

/// Reads the trace of a scenario, or takes the one that is given, and adds the collectives that the network computes to the scenario's.
///
/// # Errors
/// What is wrong with the trace, or with what is asked of engines.
pub(crate) fn read(
    scenario: &mut ScenarioFile,
    base: &Path,
    given: Option<&Trace>,
) -> Result<Option<Traced>, Vec<Problem>> {
    let Some(file) = &scenario.workload else { return Ok(None) };
    let family = scenario.family;
    if !matches!(family, Family::Piuma | Family::Fabric) {
        let problem = Problem::at_key("workload", "a workload needs end points that send messages to each other");
        return Err(vec![problem.expected("family = \"piuma\" or \"fabric\"")]);
    }
    engines(file, family)?;
    let groups: Vec<Group> =
        file.groups.iter().map(|(name, ranks)| Group { name: name.clone(), ranks: ranks.clone() }).collect();
    let path = base.join(&file.trace);
    // Schedules that come with the program are part of it.
    let inside = path.iter().any(|part| part == shipped::INSIDE);
    let read = match (given, inside.then(|| shipped::read(&path).ok()).flatten()) {
        (Some(trace), _) => Trace::checked(trace.clone()),
        (None, Some(bytes)) => goal::parse(&path, &bytes).and_then(Trace::checked),
        (None, None) if inside => Trace::read_from(&Inside, &path, &groups),
        (None, None) => Trace::read(&path, &groups),
    };
    let (trace, matched) = read.map_err(|error| {
        let mut problem = Problem::at("workload.trace", error.message()).help(format!("in {}", error.place()));
        if let Some(expected) = error.wanted() {
            problem = problem.expected(expected);
        }
        vec![match error.advice() {
            Some(help) => problem.help(help),
            None => problem,
        }]
    })?;
    if trace.groups.iter().any(|group| group.ranks.is_empty()) {
        return Err(vec![Problem::at("workload.groups", "a process group without ranks")]);
    }
    let mut traced = Traced { trace, matched, network: BTreeMap::new() };
    let added = network(file, family, &mut traced, scenario)?;
    scenario.collective.extend(added);
    Ok(Some(traced))
}

/// Files of Chakra that come with the program.
struct Inside;

impl Files for Inside {
    fn numbers(&self, prefix: &Path) -> Vec<u32> {
        (0..u32::MAX).take_while(|&rank| shipped::len(&chakra::file(prefix, rank)).is_ok()).collect()
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(shipped::open(path)?))
    }
}

/// What is asked of engines that cannot do it.
fn engines(file: &WorkloadFile, family: Family) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    for what in What::ALL {
        let Some(given) = file.engine.given(what) else { continue };
        let can = Engine::of(what);
        let path = format!("workload.engine.{}", what.name());
        if !can.contains(&given) {
            let (name, kind) = (given.name(), what.name());
            let expected = names::one_of(can.iter().map(|engine| format!("\"{}\"", engine.name())));
            problems.push(Problem::at(path, format!("\"{name}\" cannot compute {kind}")).expected(expected));
        } else if given == Engine::Network && family != Family::Piuma {
            let software = can.iter().filter(|engine| **engine != Engine::Network);
            let expected = names::one_of(software.map(|engine| format!("\"{}\"", engine.name())));
            problems.push(
                Problem::at(path, "a plain fabric has no engines")
                    .expected(expected)
                    .help("family = \"piuma\" has engines"),
            );
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The collectives that the network computes: one for each kind, group and root.
fn network(
    file: &WorkloadFile,
    family: Family,
    traced: &mut Traced,
    scenario: &ScenarioFile,
) -> Result<Vec<CollectiveFile>, Vec<Problem>> {
    let mut added: Vec<CollectiveFile> = Vec::new();
    let taken: Vec<u32> = scenario.collective.iter().flat_map(crate::segments::ids).collect();
    let mut free = (0..scenario.switch.collective_ids).filter(|id| !taken.contains(id));
    for instance in &traced.matched.collectives {
        let of = instance.collective;
        let ranks = &traced.trace.groups[of.group as usize].ranks;
        if engine(file, family, of.what) != Engine::Network || ranks.len() < 2 {
            continue;
        }
        let key = (of.what, of.group, of.root);
        if traced.network.contains_key(&key) {
            continue;
        }
        let Some(id) = free.next() else {
            let message = format!("the workload's collectives need more than {} ids", scenario.switch.collective_ids);
            let problem = Problem::at("workload.trace", message).expected("`switch.collective_ids` as large as needed");
            return Err(vec![problem.help("[workload.engine] can give kinds of collectives to software")]);
        };
        let members: Vec<u64> = ranks.iter().map(|&rank| end_of(file, rank)).collect();
        let (kind, op) = match of.what {
            What::Reduce => (CollectiveKind::Reduce, file.op.clone()),
            What::Broadcast => (CollectiveKind::Broadcast, None),
            What::Barrier => (CollectiveKind::Barrier, None),
            _ => (CollectiveKind::Allreduce, file.op.clone()),
        };
        let group = &traced.trace.groups[of.group as usize].name;
        let name = [of.what.name(), group].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        let root =
            if matches!(of.what, What::Reduce | What::Broadcast) { format!(" to {}", of.root) } else { String::new() };
        added.push(CollectiveFile {
            name: Some(format!("workload {name}{root}")),
            kind,
            id,
            op,
            dtype: (kind != CollectiveKind::Barrier).then(|| file.dtype.clone().unwrap_or_else(|| "f32".to_owned())),
            receiver: (kind == CollectiveKind::Reduce).then(|| members[of.root as usize] as u32),
            source: (kind == CollectiveKind::Broadcast).then_some(of.root),
            participants: ParticipantsFile::List(members),
            called: true,
            ..CollectiveFile::plain(kind)
        });
        traced.network.insert(key, scenario.collective.len() + added.len() - 1);
    }
    Ok(added)
}

/// The end point of a rank, as far as the file says.
fn end_of(file: &WorkloadFile, rank: u32) -> u64 {
    match &file.participants {
        ParticipantsFile::All => u64::from(rank),
        ParticipantsFile::List(list) => list.get(rank as usize).copied().unwrap_or(u64::from(u32::MAX)),
    }
}

/// Checks a workload; its trace is read.
pub(crate) fn resolve(
    scenario: &ScenarioFile,
    traced: &Traced,
    topology: &Topology,
    problems: &mut Vec<Problem>,
) -> Option<Workload> {
    let file = scenario.workload.as_ref()?;
    let count = traced.trace.ranks.len();
    let dtype = file.dtype.as_deref().and_then(DType::from_name).unwrap_or(DType::F32);
    let op = file.op.as_deref().and_then(Op::from_name).unwrap_or(Op::Sum);
    if op == Op::Barrier {
        problems.push(Problem::at("workload.op", "the operation \"barrier\" reduces nothing"));
    } else if let Err(reason) = names::supports(op, dtype) {
        let message = format!("there is no \"{}\" for {}: the operation {reason}", Named::name(op), Named::name(dtype));
        problems.push(Problem::at("workload.op", message));
    }
    let mut ranks = ends(&file.participants, "workload.participants", topology, problems);
    let all = file.participants == ParticipantsFile::All;
    if all && ranks.len() < count {
        let message = format!("the trace has {count} ranks, and there are {} end points", ranks.len());
        problems.push(Problem::at("workload.trace", message).expected("a topology with an end point for each rank"));
    } else if !all && ranks.len() != count {
        let message = format!("{} end points for {count} ranks", ranks.len());
        problems.push(Problem::at("workload.participants", message).expected("one for each rank of the trace"));
    }
    ranks.truncate(count);
    for (list, given, what) in [
        ("program", !scenario.program.is_empty(), "programs"),
        ("core", scenario.core.is_some(), "programs"),
        ("multicast", !scenario.multicast.is_empty(), "multicast trees"),
        ("host", !scenario.host.is_empty(), "hosts"),
        ("collective", scenario.collective.len() > traced.network.len(), "collectives of their own"),
    ] {
        if given {
            let message = format!("a workload has end points of its own: there are no {what} beside it");
            problems.push(Problem::at(list, message).related("workload", "the workload"));
        }
    }
    let used = |what: &What| traced.matched.collectives.iter().any(|of| of.collective.what == *what);
    let engines = What::ALL.iter().filter(|what| used(what));
    let engines = engines.map(|&what| (what.name(), engine(file, scenario.family, what).name())).collect();
    Some(Workload {
        trace: file.trace.clone(),
        format: traced.trace.format.name().to_owned(),
        hash: format!("{:016x}", traced.trace.hash),
        nodes: traced.trace.ranks.iter().map(|rank| rank.nodes.len() as u64).sum(),
        ranks,
        compute_scale: file.compute_scale,
        overhead_cycles: file.overhead_cycles,
        packet_words: file.packet_words,
        op,
        dtype,
        peak_tflops: file.peak_tflops,
        device_bandwidth_gbps: file.device_bandwidth_gbps,
        remote_bandwidth_gbps: file.remote_bandwidth_gbps,
        remote_latency_ns: file.remote_latency_ns,
        engines,
    })
}
