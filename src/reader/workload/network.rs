//! Jobs of engines in the network for the collectives of a trace.
//!
//! Collectives of one kind, group and root are one job, which ranks call as often as the trace has them.
//!
//! | engine | table | a collective is |
//! |---|---|---|
//! | PIUMA's | `[[collective]]` | a call of its id with as many words as it has |
//! | armed | `[[armed.reduction]]` | as many rounds of four words as it has |
//! | packet engines | `[[pbv.collective]]` | as many rounds as it has frames; its words are divided evenly *\[chosen\]* |
//!
//! A broadcast is to engines of frames a reduction of the root's words with zeros of all other members, by a bitwise "or".
//! A job of packet engines has frames of one length: collectives with others are jobs of their own. Rounds of armed engines are
//! spread over reduction ids, those of packet engines over contexts, one after the other in turn.

use std::collections::BTreeMap;

use super::config::{NetworkJob, NetworkJobKey, TracedWorkload, words};
use super::file::{Engine, WorkloadFile};
use crate::armed::file::{ReductionFile, op_name};
use crate::file::{Auto, CollectiveFile, CollectiveKind, ParticipantsFile, ScenarioFile};
use crate::jobs;
use crate::limits;
use crate::names::{self, DType, NamedValues};
use crate::pbv::file::{CollectiveFile as PacketFile, KindFile};
use crate::problem::Problem;
use watershed_arith::Op;
use watershed_pbv_interface::packet::MAX_PAYLOAD_BYTES;
use watershed_workload::check::Instance;
use watershed_workload::{Collective, CollectiveOp, Dependency, Trace};

/// Words of a round of armed engines.
const QUAD: u64 = 4;

/// Words of a frame of packet engines, at most.
const FRAME: u64 = MAX_PAYLOAD_BYTES as u64 / 8;

/// Reduction ids of a tree.
const REDUCTION_IDS: u32 = 8;

/// Words that ranks may give to armed engines in the whole scenario: they are kept.
const MOST_ARMED: u64 = 1 << 26;

/// Words that they may give to packet engines.
const MOST_PACKETS: u64 = 1 << 24;

/// What a collective is to its job.
struct CollectiveRequest {
    of: Collective,
    /// End points of its members.
    members: Vec<u64>,
    /// Words of its frames, and how many rounds it takes; 0 where its job has no rounds.
    frame: u64,
    rounds: u32,
}

/// Adds the jobs of engines to a scenario, and says which collectives are theirs.
///
/// # Errors
/// What engines cannot do.
pub fn add(scenario: &mut ScenarioFile, file: &WorkloadFile, traced: &mut TracedWorkload) -> Result<(), Vec<Problem>> {
    let mut jobs: BTreeMap<NetworkJobKey, (NetworkJob, CollectiveRequest)> = BTreeMap::new();
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    let dtype = file.dtype.as_deref().and_then(DType::from_name).unwrap_or(DType::F32);
    for (collective, instance) in (0..).zip(&traced.matched.collectives) {
        let of = instance.collective;
        let ranks = &traced.trace.groups[of.group as usize].ranks;
        let words = words(dtype, file.element_bytes, of, ranks.len() as u64);
        if words.saturating_mul(ranks.len() as u64) > limits::WORKLOAD_WORDS {
            let rank = ranks[0] as usize;
            let title = traced.trace.ranks[rank].nodes[instance.nodes[0] as usize].title(traced.trace.format);
            let message = format!("rank {rank}, {title}: {} vectors of {words} words are too many", ranks.len());
            let expected = format!("up to {} words of all members of a collective", limits::WORKLOAD_WORDS);
            return Err(vec![Problem::at("workload.trace", message).expected(expected)]);
        }
        let engine = traced.engines.get(&of.op).copied().filter(|engine| engine.is_in_network());
        let Some(engine) = engine.filter(|_| ranks.len() > 1) else { continue };
        let (frame, rounds) = match engine {
            Engine::Armed => (QUAD, words.div_ceil(QUAD).max(1)),
            Engine::Pbv => {
                let frames = words.div_ceil(FRAME).max(1);
                (words.div_ceil(frames), frames)
            }
            _ => (0, 0),
        };
        *all.entry(engine.name()).or_default() += frame * rounds * ranks.len() as u64;
        let key = (of.op, of.group, of.root, if engine == Engine::Pbv { frame } else { 0 });
        let members = ranks.iter().map(|&rank| end_of(file, rank)).collect();
        let asked = CollectiveRequest { of, members, frame, rounds: 0 };
        let empty = NetworkJob { engine, place: 0, rounds: 0, spread: 1, instances: Vec::new() };
        let (job, asked) = jobs.entry(key).or_insert((empty, asked));
        traced.rounds.insert(collective, (job.rounds, rounds as u32));
        job.rounds = job.rounds.saturating_add(rounds as u32);
        asked.rounds = asked.rounds.max(rounds as u32);
        job.instances.push(collective);
    }
    for (engine, most) in [(Engine::Armed, MOST_ARMED), (Engine::Pbv, MOST_PACKETS)] {
        let words = all.get(engine.name()).copied().unwrap_or(0);
        if words > most {
            let message = format!("{words} words are too many for engines of \"{}\"", engine.name());
            let expected = format!("up to {most}: members x words of all collectives that they compute");
            return Err(vec![Problem::at("workload.trace", message).expected(expected)]);
        }
    }
    let mut order: Vec<(NetworkJobKey, (NetworkJob, CollectiveRequest))> = jobs.into_iter().collect();
    // As the trace has them.
    order.sort_by_key(|(_, (job, _))| job.instances[0]);
    let needed = order.iter().filter(|(_, (job, _))| job.engine == Engine::Piuma).count();
    for (key, (mut job, asked)) in order {
        job.spread = jobs_used(&job, asked.rounds, file);
        let problem = match job.engine {
            Engine::Armed => armed(scenario, file, (&mut job, &asked), &traced.trace.groups[key.1 as usize].name),
            Engine::Pbv => packets(scenario, file, (&mut job, &asked), &traced.trace.groups[key.1 as usize].name),
            _ => piuma(scenario, file, (&mut job, &asked), &traced.trace.groups[key.1 as usize].name, needed),
        };
        problem.map_err(|problem| vec![problem])?;
        traced.network.insert(key, job);
    }
    Ok(())
}

/// Calls of a line are made in the order in which they are written: what ranks wait for besides must fit that.
///
/// # Errors
/// A rank, or several in a circle, would wait for ever.
pub fn ordered(traced: &TracedWorkload) -> Result<(), Vec<Problem>> {
    let mut lines: BTreeMap<(Option<NetworkJobKey>, u32), Vec<&Instance>> = BTreeMap::new();
    for (key, job) in &traced.network {
        let line = ((job.engine != Engine::Piuma).then_some(*key), key.1);
        let instances = job.instances.iter().map(|&of| &traced.matched.collectives[of as usize]);
        lines.entry(line).or_default().extend(instances);
    }
    if lines.values().all(|line| line.len() < 2) {
        return Ok(());
    }
    let mut trace = traced.trace.clone();
    for ((_, group), line) in &lines {
        for (member, &rank) in traced.trace.groups[*group as usize].ranks.iter().enumerate() {
            let mut nodes: Vec<u32> = line.iter().map(|of| of.nodes[member]).collect();
            nodes.sort_unstable();
            for pair in nodes.windows(2) {
                let waits = &mut trace.ranks[rank as usize].nodes[pair[1] as usize].waits;
                *waits = waits.iter().copied().chain([Dependency { node: pair[0], start: false }]).collect();
            }
        }
    }
    Trace::checked(trace).map(drop).map_err(|error| {
        let problem = Problem::at("workload.trace", error.message()).help(format!("in {}", error.place()));
        vec![
            problem
                .expected("collectives of a group whose order is that in which they are written")
                .help("[workload.engine] can give kinds of collectives to software, which takes them in any order"),
        ]
    })
}

/// Over how many reduction ids or contexts the rounds of a job are spread.
fn jobs_used(job: &NetworkJob, longest: u32, file: &WorkloadFile) -> u32 {
    let most = if job.engine == Engine::Armed { REDUCTION_IDS } else { u32::MAX };
    file.rounds_under_way.min(most).min(longest).max(1)
}

/// The name of a job in results.
fn name(of: Collective, group: &str, frame: u64) -> String {
    let mut name = format!("workload {}", of.op.name());
    if !group.is_empty() {
        name = format!("{name} {group}");
    }
    if matches!(of.op, CollectiveOp::Reduce | CollectiveOp::Broadcast) {
        name = format!("{name} to {}", of.root);
    }
    if frame > 0 { format!("{name} by {frame}") } else { name }
}

fn piuma(
    scenario: &mut ScenarioFile,
    file: &WorkloadFile,
    (job, asked): (&mut NetworkJob, &CollectiveRequest),
    group: &str,
    needed: usize,
) -> Result<(), Problem> {
    let taken: Vec<u32> = scenario.collective.iter().flat_map(crate::segments::ids).collect();
    let ids = scenario.switch.collective_ids;
    let Some(id) = (0..ids).find(|id| !taken.contains(id)) else {
        let message = format!(
            "the workload's collectives need {needed} collective ids, and there are {ids}: one for each kind, group and root"
        );
        let problem = Problem::at("workload.trace", message);
        return Err(problem
            .expected(format!("`switch.collective_ids` of at least {needed}"))
            .help("[workload.engine] can give kinds of collectives to software"));
    };
    let of = asked.of;
    let (kind, op) = match of.op {
        CollectiveOp::Reduce => (CollectiveKind::Reduce, file.op.clone()),
        CollectiveOp::Broadcast => (CollectiveKind::Broadcast, None),
        CollectiveOp::Barrier => (CollectiveKind::Barrier, None),
        _ => (CollectiveKind::Allreduce, file.op.clone()),
    };
    job.place = scenario.collective.len();
    scenario.collective.push(CollectiveFile {
        name: Some(name(of, group, 0)),
        kind,
        id,
        op,
        dtype: (kind != CollectiveKind::Barrier).then(|| file.dtype.clone().unwrap_or_else(|| "f32".to_owned())),
        receiver: (kind == CollectiveKind::Reduce).then(|| asked.members[of.root as usize] as u32),
        source: (kind == CollectiveKind::Broadcast).then_some(of.root),
        participants: ParticipantsFile::List(asked.members.clone()),
        called: true,
        ..CollectiveFile::plain(kind)
    });
    Ok(())
}

fn armed(
    scenario: &mut ScenarioFile,
    file: &WorkloadFile,
    (job, asked): (&mut NetworkJob, &CollectiveRequest),
    group: &str,
) -> Result<(), Problem> {
    let of = asked.of;
    let given = (file.op.as_deref().unwrap_or("sum"), file.dtype.as_deref().unwrap_or("f32"));
    let (op, dtype) = given;
    let by_op = |op: Op| watershed_arith::quad::OPCODES.iter().find(|opcode| opcode.op == op);
    let nearest = NamedValues::name(names::Round::NearestEven);
    let found = match of.op {
        CollectiveOp::Barrier => by_op(Op::Barrier),
        // The root's words, and zeros of all others.
        CollectiveOp::Broadcast => by_op(Op::Or),
        _ => jobs::opcode(op, dtype, nearest, false).filter(|opcode| jobs::lanes(opcode) == QUAD),
    };
    let Some(opcode) = found else {
        let problem = Problem::at("workload.dtype", format!("armed engines have no {op} of {dtype}"));
        let help =
            "`workload.element_bytes` says how many bytes an element has in the trace, if it is computed in 64 bits";
        return Err(problem.expected(jobs::opcodes(op)).help(help));
    };
    let table = scenario.armed.get_or_insert_default();
    job.place = table.reduction.len();
    table.reduction.push(ReductionFile {
        name: Some(name(of, group, 0)),
        op: op_name(opcode.name),
        rounds: job.rounds,
        reduction_ids: job.spread,
        participants: ParticipantsFile::List(asked.members.clone()),
        root: matches!(of.op, CollectiveOp::Reduce | CollectiveOp::Broadcast)
            .then(|| asked.members[of.root as usize] as u32),
        // Who computes for long is no frame that was lost.
        retry_after_cycles: Auto::Fixed(0),
        patience_cycles: Auto::Fixed(0),
        ..ReductionFile::default()
    });
    Ok(())
}

fn packets(
    scenario: &mut ScenarioFile,
    file: &WorkloadFile,
    (job, asked): (&mut NetworkJob, &CollectiveRequest),
    group: &str,
) -> Result<(), Problem> {
    let of = asked.of;
    let barrier = of.op == CollectiveOp::Barrier;
    let dtype = file.dtype.as_deref().and_then(DType::from_name).unwrap_or(DType::F32);
    // The root's words, and zeros of all others.
    let (op, dtype) = match of.op {
        CollectiveOp::Broadcast => (Some(NamedValues::name(Op::Or).to_owned()), DType::U64),
        _ => (file.op.clone(), dtype),
    };
    let table = scenario.pbv.get_or_insert_default();
    // A job takes as many contexts as its rounds are spread over.
    job.place = table.collective.iter().map(|of| of.contexts.min(of.rounds) as usize).sum();
    let contexts = job.place + job.spread as usize;
    if contexts > table.engine.contexts as usize {
        let message = format!("the workload's collectives need {contexts} contexts or more of every packet engine");
        let expected =
            format!("`pbv.engine.contexts` of more than {}, or fewer `rounds_under_way`", table.engine.contexts);
        return Err(Problem::at("workload.trace", message).expected(expected));
    }
    table.collective.push(PacketFile {
        name: Some(name(of, group, if barrier { 0 } else { asked.frame })),
        kind: if barrier { KindFile::Barrier } else { KindFile::Allreduce },
        op: op.filter(|_| !barrier),
        dtype: (!barrier).then(|| NamedValues::name(dtype).to_owned()),
        elements: (!barrier).then_some(asked.frame.max(1) as u32 * dtype.lanes()),
        participants: ParticipantsFile::List(asked.members.clone()),
        contexts: job.spread,
        rounds: job.rounds,
        rearm: true,
        blocks: false,
        ..PacketFile::default()
    });
    Ok(())
}

/// The end point of a rank, as far as the file says.
fn end_of(file: &WorkloadFile, rank: u32) -> u64 {
    match &file.participants {
        ParticipantsFile::All => u64::from(rank),
        ParticipantsFile::List(list) => list.get(rank as usize).copied().unwrap_or(u64::from(u32::MAX)),
    }
}
