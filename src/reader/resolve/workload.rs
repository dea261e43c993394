//! `[workload]`: the trace, where its ranks are, and who computes its collectives.

use std::io::{self, Read};
use std::path::Path;

use watershed_workload::chakra::{self, ChakraFiles};
use watershed_workload::{CollectiveOp, Group, Trace, goal};

use crate::armed::config::Armed;
use crate::config::{Data, Family, Topology};
use crate::families::spec;
use crate::file::{ParticipantsFile, ScenarioFile};
use crate::names::{self, DType, NamedValues};
use crate::pbv::config::Pbv;
use crate::problem::Problem;
use crate::programs::config::ends;
use crate::shipped;
use crate::workload::config::{NetworkJob, TracedWorkload, Workload};
use crate::workload::file::{Engine, WorkloadFile};
use crate::workload::network;
use std::collections::BTreeMap;
use watershed_arith::Op;

/// Who computes a kind of collective: as given, or the family's engine where it can, else the first algorithm.
fn engine(file: &WorkloadFile, family: Family, what: CollectiveOp) -> Engine {
    let own = spec(family).engine().filter(|own| Engine::of(what).contains(own));
    let software = || Engine::algorithms(what).next().unwrap_or(Engine::of(what)[0]);
    match file.engine.given(what) {
        None | Some(Engine::Network) => own.unwrap_or_else(software),
        Some(Engine::Software) => software(),
        Some(given) => given,
    }
}

/// Reads the trace of a scenario, or takes the one that is given, and adds the collectives that the network computes to the scenario's.
///
/// # Errors
/// What is wrong with the trace, or with what is asked of engines.
pub fn read(
    scenario: &mut ScenarioFile,
    base: &Path,
    given: Option<&Trace>,
) -> Result<Option<TracedWorkload>, Vec<Problem>> {
    let Some(file) = scenario.workload.clone() else { return Ok(None) };
    let family = scenario.family;
    engines(&file, family)?;
    check_nothing_beside(scenario)?;
    let groups: Vec<Group> =
        file.groups.iter().map(|(name, ranks)| Group { name: name.clone(), ranks: ranks.clone() }).collect();
    let path = base.join(&file.trace);
    // Schedules that come with the program are part of it.
    let inside = path.iter().any(|part| part == shipped::INSIDE);
    let read = match (given, inside.then(|| shipped::read(&path).ok()).flatten()) {
        (Some(trace), _) => Trace::checked(trace.clone()),
        (None, Some(bytes)) => goal::parse(&path, &bytes).and_then(Trace::checked),
        (None, None) if inside => Trace::read_from(&ShippedFiles, &path, &groups),
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
    let used = matched.collectives.iter().map(|of| of.collective.op);
    let engines = used.map(|what| (what, engine(&file, family, what))).collect();
    let mut traced = TracedWorkload { trace, matched, engines, network: BTreeMap::new(), rounds: BTreeMap::new() };
    network::add(scenario, &file, &mut traced)?;
    network::ordered(&traced)?;
    // What end points do is PIUMA's; engines of others beside it make it a network of several families.
    let engine = |job: &NetworkJob| job.engine != Engine::Piuma || family == Family::Fabric;
    if matches!(family, Family::Armed | Family::Pbv) || traced.network.values().any(engine) {
        scenario.family = Family::Mixed;
    }
    Ok(Some(traced))
}

/// What is beside a workload that has no place there.
fn check_nothing_beside(scenario: &ScenarioFile) -> Result<(), Vec<Problem>> {
    let lists = [
        ("program", !scenario.program.is_empty(), "programs"),
        ("core", scenario.core.is_some(), "programs"),
        ("multicast", !scenario.multicast.is_empty(), "multicast trees"),
        ("host", !scenario.host.is_empty(), "hosts"),
        ("collective", !scenario.collective.is_empty(), "collectives of their own"),
        (
            "armed.reduction",
            scenario.armed.as_ref().is_some_and(|armed| !armed.reduction.is_empty()),
            "reductions of their own",
        ),
        (
            "pbv.collective",
            scenario.pbv.as_ref().is_some_and(|pbv| !pbv.collective.is_empty()),
            "collectives of their own",
        ),
    ];
    let given = lists.into_iter().filter(|(_, given, _)| *given);
    let problems: Vec<Problem> = given
        .map(|(list, _, what)| {
            let message = format!("a workload has end points of its own: there are no {what} beside it");
            Problem::at(list, message).related("workload", "the workload")
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Files of Chakra that come with the program.
struct ShippedFiles;

impl ChakraFiles for ShippedFiles {
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
    for what in CollectiveOp::ALL {
        let Some(given) = file.engine.given(what) else { continue };
        let path = format!("workload.engine.{}", what.name());
        let meant = if given == Engine::Network { spec(family).engine() } else { Some(given) };
        let known = |engines: Vec<Engine>| names::one_of(engines.iter().map(|engine| format!("\"{}\"", engine.name())));
        match meant {
            None if family == Family::Mixed => problems.push(
                Problem::at(path, "it is not said which of the engines in the network is meant")
                    .expected("\"piuma\", \"armed\" or \"pbv\""),
            ),
            None => problems.push(
                Problem::at(path, "a plain fabric has no engines")
                    .expected(known(Engine::algorithms(what).collect()))
                    .help("family = \"piuma\" has engines, and \"piuma\", \"armed\" and \"pbv\" put engines into any network"),
            ),
            Some(engine) if engine != Engine::Software && !Engine::of(what).contains(&engine) => {
                let (name, kind) = (engine.name(), what.name());
                problems.push(
                    Problem::at(path, format!("\"{name}\" cannot compute {kind}")).expected(known(Engine::of(what).to_vec())),
                );
            }
            Some(_) => {}
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Marks a job among those of its family: ranks call its rounds.
pub fn call(job: &NetworkJob, armed: Option<&mut Armed>, pbv: Option<&mut Pbv>) {
    let (first, last) = (job.place, job.place + job.spread as usize);
    if job.engine == Engine::Armed {
        let of = armed.and_then(|armed| armed.reductions.get_mut(first));
        if let Some(of) = of {
            of.data = Data::Called;
        }
    } else if job.engine == Engine::Pbv {
        let of = pbv.and_then(|pbv| pbv.collectives.get_mut(first..last));
        of.into_iter().flatten().for_each(|of| of.data = Data::Called);
    }
}

/// Checks a workload; its trace is read.
pub fn resolve(
    scenario: &ScenarioFile,
    traced: &TracedWorkload,
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
        let message = format!(
            "there is no \"{}\" for {}: the operation {reason}",
            NamedValues::name(op),
            NamedValues::name(dtype)
        );
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
    let engines = traced.engines.iter().map(|(what, engine)| (what.name(), engine.name())).collect();
    let piuma = traced.network.iter().filter(|(_, job)| job.engine == Engine::Piuma);
    let orders: BTreeMap<usize, u32> = piuma.map(|(key, job)| (job.place, key.1)).collect();
    let framed = traced.network.values().any(|job| job.rounds > 0);
    Some(Workload {
        trace: file.trace.clone(),
        format: traced.trace.format.name().to_owned(),
        hash: format!("{:016x}", traced.trace.hash),
        nodes: traced.trace.ranks.iter().map(|rank| rank.nodes.len() as u64).sum(),
        ranks,
        compute_scale: file.compute_scale,
        overhead_cycles: file.overhead_cycles,
        packet_words: file.packet_words,
        rounds_under_way: framed.then_some(file.rounds_under_way),
        element_bytes: file.element_bytes,
        op,
        dtype,
        peak_tflops: file.peak_tflops,
        device_bandwidth_gbps: file.device_bandwidth_gbps,
        remote_bandwidth_gbps: file.remote_bandwidth_gbps,
        remote_latency_ns: file.remote_latency_ns,
        engines,
        orders: orders.into_values().collect(),
    })
}
