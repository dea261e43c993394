//! From a trace to the plan of each end point.
//!
//! Messages get numbers at their receivers: first those of the trace, channel by channel, then one for each round of
//! collectives in software. Members of a collective in software are counted from its root on.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::config::{NetworkJob, TracedWorkload, Workload};
use super::file::Engine;
use crate::build::BuiltCollective;
use crate::names::{Layout, layout};
use crate::piuma::overlaps::{Owner, Plan};
use crate::random::Stream;
use crate::{Loaded, Problem, Scenario};
use watershed_arith::{self as arith, Mode};
use watershed_fabric::topology::EndPlace;
use watershed_piuma::host::schedule::{Algorithm, Schedule};
use watershed_piuma::host::{Job, Numbers};
use watershed_piuma::rank::plan::{
    self, Call, Data, Kind as Do, Operation, Outgoing, Plan as RankPlan, Rounds, Software,
};
use watershed_piuma::rank::{Rank, tag::KEY_BITS};
use watershed_piuma::{Core, End, JobKind, MemoryCfg, OpSelect};
use watershed_workload::check::{Instance, NONE};
use watershed_workload::{CollectiveOp, Format, Kind, Trace};

/// The algorithm of a collective in software.
pub fn algorithm(what: CollectiveOp, engine: Engine) -> Algorithm {
    match (what, engine) {
        (CollectiveOp::AllReduce, Engine::RecursiveDoubling) => Algorithm::RecursiveDoubling,
        (CollectiveOp::AllReduce, Engine::Rabenseifner) => Algorithm::Rabenseifner,
        (CollectiveOp::AllReduce, Engine::BinaryTree) => Algorithm::BinaryTree,
        (CollectiveOp::AllReduce, _) => Algorithm::Ring,
        (CollectiveOp::Reduce, _) => Algorithm::BinomialReduce,
        (CollectiveOp::Broadcast, _) => Algorithm::BinomialBroadcast,
        (CollectiveOp::Barrier, _) => Algorithm::Dissemination,
        (CollectiveOp::AllGather, _) => Algorithm::RingAllGather,
        (CollectiveOp::ReduceScatter, _) => Algorithm::RingReduceScatter,
        (CollectiveOp::AllToAll, _) => Algorithm::Pairwise,
        (CollectiveOp::Gather, _) => Algorithm::LinearGather,
        (CollectiveOp::Scatter, _) => Algorithm::LinearScatter,
    }
}

/// Who computes a collective of the trace.
pub fn engine(traced: &TracedWorkload, what: CollectiveOp) -> Engine {
    traced.engines.get(&what).copied().unwrap_or(Engine::of(what)[0])
}

/// What the members of a group contribute to the rounds of a job of an engine of frames: members in the order of the group, the words
/// of all rounds one after the other. Words beyond the end of a vector are 0.
pub fn contributions(scenario: &Scenario, traced: &TracedWorkload, (engine, place): (Engine, usize)) -> Vec<Vec<u64>> {
    let found = scenario.workload.as_ref().zip(traced.job_at(engine, place));
    let Some((workload, (&(what, group, _, frame), job))) = found else { return Vec::new() };
    let members = traced.trace.groups[group as usize].ranks.len();
    let round = if engine == Engine::Armed { 4 } else { frame.max(1) };
    let row = |member: u32| {
        let mut row = Vec::new();
        for &collective in job.instances.iter().filter(|_| what != CollectiveOp::Barrier) {
            let of = traced.matched.collectives[collective as usize].collective;
            let words = workload.words(of, members as u64);
            if what == CollectiveOp::Broadcast && member != of.root {
                row.resize(row.len() + words as usize, 0);
            } else {
                row.extend(vector(scenario, collective, member, words));
            }
            let (first, count) = traced.rounds.get(&collective).copied().unwrap_or((0, 0));
            row.resize((u64::from(first + count) * round) as usize, 0);
        }
        row
    };
    (0..members as u32).map(row).collect()
}

/// The vector of a member, counted as its engine counts.
pub fn vector(scenario: &Scenario, collective: u32, member: u32, words: u64) -> Vec<u64> {
    let Some(workload) = &scenario.workload else { return Vec::new() };
    let (dtype, bits) = (workload.dtype, layout(workload.dtype));
    let distribution = match bits {
        Layout::Float { .. } => crate::file::Distribution::Normal,
        Layout::Integer { .. } => crate::file::Distribution::Integers,
    };
    let mut stream = Stream::data(scenario.seed, 1 << 34 | collective as usize, member as usize);
    arith::pack_words(dtype, &stream.elements(words * u64::from(dtype.lanes()), distribution, bits))
}

/// Says what is wrong with two collectives of groups that share a link or an engine, if trees do not claim. Whether it is.
pub fn check_disjoint(
    scenario: &Scenario,
    (first, second): (usize, usize),
    meet: impl FnOnce() -> bool,
    problems: &mut Vec<Problem>,
) -> bool {
    let Some(workload) = scenario.workload.as_ref().filter(|_| !scenario.checks.claims) else { return false };
    // Those of one group are called in one order by all of its members.
    if workload.orders.get(first) == workload.orders.get(second) || !meet() {
        return false;
    }
    let name = |of: usize| &scenario.collectives[of].name;
    let message = format!(
        "\"{}\" and \"{}\" share a link or an engine, and nothing says which of them goes first",
        name(second),
        name(first)
    );
    let problem = Problem::at("checks.claims", message)
        .expected("true, or groups whose trees have no link and no engine in common");
    problems.push(problem.help(
        "[workload.engine] can give kinds of collectives to software, or to \"armed\" or \"pbv\", whose trees may meet",
    ));
    true
}

/// The number of a member of a group within a collective in software: counted from the root.
fn rank_from_root(member: usize, root: u32, members: usize) -> usize {
    (member + members - root as usize) % members
}

/// Everything that is the same for all ranks.
struct SharedState<'a> {
    loaded: &'a Loaded,
    traced: &'a TracedWorkload,
    workload: &'a Workload,
    /// Of each channel: the number of its first message at its receiver.
    firsts: Vec<u32>,
    /// Of each rank: its incoming channels' numbers.
    incoming: Vec<Vec<Range<u32>>>,
    /// Of each collective in software: what its members know.
    jobs: Vec<Option<Arc<Job>>>,
    index_bits: u32,
    data: Data,
}

/// Puts ranks at their end points.
pub fn ranks(
    loaded: &Loaded,
    (built, claims): (&[BuiltCollective], &Plan),
    places: &[EndPlace],
    memory: &Arc<MemoryCfg>,
    ends: &mut [End],
) -> Vec<Problem> {
    let (Some(workload), Some(traced)) = (&loaded.scenario.workload, &loaded.workload) else { return Vec::new() };
    let common = match SharedState::new(loaded, workload, traced) {
        Ok(common) => common,
        Err(problem) => return vec![problem],
    };
    let claim = |index: usize| claims.tree(Owner::Segment(index, 0)).is_some();
    let calls = loaded.scenario.collectives.iter().enumerate().map(|(index, of)| (of.id as u16, claim(index)));
    let calls: Vec<(u16, bool)> = calls.collect();
    for (rank, &end) in (0..).zip(&workload.ranks) {
        let point = &mut ends[end as usize];
        let plan = common.plan(rank, (built, &calls), places[end as usize]);
        let core = point.core.get_or_insert_with(|| Box::new(Core::new(Arc::clone(memory))));
        for &(id, claims) in &calls {
            core.wait_for(id, false);
            if claims {
                core.claims(id);
            }
        }
        point.beside.get_or_insert_default().rank = Some(Box::new(Rank::new(Arc::new(plan), rank)));
    }
    Vec::new()
}

impl<'a> SharedState<'a> {
    fn new(loaded: &'a Loaded, workload: &'a Workload, traced: &'a TracedWorkload) -> Result<SharedState<'a>, Problem> {
        let (trace, matched) = (&traced.trace, &traced.matched);
        let mut next = vec![0u32; trace.ranks.len()];
        let mut incoming = vec![Vec::new(); trace.ranks.len()];
        let firsts = matched.channels.iter().map(|channel| {
            let next = &mut next[channel.to as usize];
            let first = *next;
            *next += channel.sends.len() as u32;
            incoming[channel.to as usize].push(first..*next);
            first
        });
        let firsts = firsts.collect();
        let mut longest = 0;
        for node in trace.ranks.iter().flat_map(|rank| &rank.nodes) {
            if let Kind::Send { bytes, .. } = node.kind {
                // A packet's number, and whether it is the last.
                longest = longest.max(bytes.div_ceil(8).div_ceil(workload.packet_words) << 1);
            }
        }
        let mut software = Vec::new();
        for instance in &matched.collectives {
            let of = instance.collective;
            let ranks = &trace.groups[of.group as usize].ranks;
            let engine = engine(traced, of.op);
            if engine.is_in_network() || ranks.len() < 2 {
                software.push(None);
                continue;
            }
            let words = workload.words(of, ranks.len() as u64);
            longest = longest.max(words.div_ceil(workload.packet_words));
            let schedule = Schedule { algorithm: algorithm(of.op, engine), ranks: ranks.len() as u32, words };
            let members: Vec<u32> = (0..ranks.len()).map(|at| ranks[(at + of.root as usize) % ranks.len()]).collect();
            let first: Vec<u32> = members.iter().map(|&rank| next[rank as usize]).collect();
            for &rank in &members {
                next[rank as usize] = next[rank as usize].saturating_add(schedule.rounds());
            }
            software.push(Some((schedule, members, first)));
        }
        let index_bits = (u64::BITS - longest.leading_zeros()).max(1);
        let number_bits = u32::BITS - next.iter().copied().max().unwrap_or(0).leading_zeros();
        if index_bits + number_bits > KEY_BITS {
            let most = next.iter().max().copied().unwrap_or(0);
            let message = format!(
                "a rank receives {most} messages, and the longest has {longest} packets: they cannot be told apart"
            );
            return Err(
                Problem::at("workload.trace", message).expected("fewer or shorter messages, or more `packet_words`")
            );
        }
        let job = |(schedule, members, first): (Schedule, Vec<u32>, Vec<u32>)| {
            Arc::new(Job {
                schedule,
                ends: members.iter().map(|&rank| workload.ranks[rank as usize]).collect(),
                select: OpSelect { op: workload.op, dtype: workload.dtype, mode: Mode::default() },
                overhead: workload.overhead_cycles,
                packet_words: workload.packet_words,
                merge_accesses: crate::hosts::file::MERGE_ACCESSES,
                class: watershed_piuma::rank::tag::CLASS,
                numbers: Some(Numbers { first: first.into(), index_bits }),
            })
        };
        let jobs = software.into_iter().map(|software| software.map(job)).collect();
        let scenario = Arc::new(loaded.scenario.clone());
        let data = Data(Arc::new(move |collective, member, words| vector(&scenario, collective, member, words)));
        Ok(SharedState { loaded, traced, workload, firsts, incoming, jobs, index_bits, data })
    }

    /// What one rank is to do.
    fn plan(&self, rank: u32, engine: (&[BuiltCollective], &[(u16, bool)]), place: EndPlace) -> RankPlan {
        let (trace, matched) = (&self.traced.trace, &self.traced.matched);
        let nodes = &trace.ranks[rank as usize].nodes;
        let channels: Vec<u32> =
            (0..).zip(&matched.channels).filter(|(_, of)| of.from == rank).map(|(at, _)| at).collect();
        let received: Vec<u32> =
            (0..).zip(&matched.channels).filter(|(_, of)| of.to == rank).map(|(at, _)| at).collect();
        let outgoing = channels.iter().map(|&at| {
            let to = matched.channels[at as usize].to;
            Outgoing { end: self.workload.ranks[to as usize], rank: to, first: self.firsts[at as usize] }
        });
        let (software, calls) = self.collectives(rank, engine, place);
        let mut done: BTreeMap<u32, Do> = BTreeMap::new();
        done.extend((0..).zip(&software).map(|(index, software)| (software.operation, Do::Software(index))));
        done.extend((0..).zip(&calls).map(|(index, (operation, _))| (*operation, Do::Call(index))));
        let calls = calls.into_iter().map(|(_, call)| call).collect();
        let hertz = self.loaded.scenario.clock.frequency_hz;
        let index_of = |list: &[u32], channel: u32| list.binary_search(&channel).unwrap_or(0) as u32;
        let mut patterns = Vec::new();
        let operations = (0..).zip(nodes).map(|(at, node): (u32, _)| {
            let of = matched.index_of[rank as usize][at as usize];
            let kind = match node.kind {
                Kind::Nothing | Kind::Compute(_) | Kind::Memory { .. } => {
                    Do::Compute(self.workload.cycles(&node.kind, hertz))
                }
                Kind::Send { bytes, .. } => Do::Send { channel: index_of(&channels, of), words: bytes.div_ceil(8) },
                Kind::Receive { .. } if of == NONE => {
                    let fits = matched.wildcards.get(&(rank, at)).map_or(&[][..], Vec::as_slice);
                    patterns.push(fits.iter().map(|&channel| index_of(&received, channel)).collect());
                    Do::ReceiveOpen { pattern: patterns.len() as u32 - 1 }
                }
                Kind::Receive { .. } if matched.channels[of as usize].has_wildcard => {
                    patterns.push(vec![index_of(&received, of)]);
                    Do::ReceiveOpen { pattern: patterns.len() as u32 - 1 }
                }
                Kind::Receive { .. } => Do::Receive { channel: index_of(&received, of) },
                // A group of one has nothing to do.
                Kind::Collective(_) => done.get(&at).copied().unwrap_or(Do::Compute(0)),
            };
            Operation { kind, stream: node.stream }
        });
        let operations: Vec<Operation> = operations.collect();
        let (first, followers) = followers(trace, rank);
        RankPlan {
            operations,
            first,
            followers,
            waits: nodes.iter().map(|node| node.waits.len() as u32).collect(),
            streams: nodes.iter().filter_map(|node| node.stream).max().map_or(0, |most| most + 1),
            outgoing: outgoing.collect(),
            incoming: self.incoming[rank as usize].clone(),
            open: received.iter().map(|&at| matched.channels[at as usize].has_wildcard).collect(),
            patterns,
            software,
            calls,
            overhead: self.workload.overhead_cycles,
            buffered: trace.format == Format::Goal,
            packet_words: self.workload.packet_words,
            index_bits: self.index_bits,
            seed: self.loaded.scenario.seed,
            data: self.data.clone(),
        }
    }

    /// The rank's collectives, in software and in the network, in the order in which they are written.
    fn collectives(
        &self,
        rank: u32,
        (built, of_core): (&[BuiltCollective], &[(u16, bool)]),
        place: EndPlace,
    ) -> (Vec<Software>, Vec<(u32, Call)>) {
        let (trace, matched) = (&self.traced.trace, &self.traced.matched);
        let mut software = Vec::new();
        let mut calls: Vec<(u32, Call)> = Vec::new();
        let mut lines = Vec::new();
        for (collective, instance) in (0..).zip(&matched.collectives) {
            let Instance { collective: of, nodes, .. } = instance;
            let ranks = &trace.groups[of.group as usize].ranks;
            let Some(member) = ranks.iter().position(|&member| member == rank) else { continue };
            let operation = nodes[member];
            if let Some(job) = &self.jobs[collective as usize] {
                let member = rank_from_root(member, of.root, ranks.len()) as u32;
                software.push(Software { job: Arc::clone(job), member, collective, operation });
            } else if let Some((job, rounds)) = self.traced.job(collective) {
                let kind = JobKind {
                    sends: of.op != CollectiveOp::Broadcast || member == of.root as usize,
                    receives: match job.engine {
                        Engine::Piuma => built[job.place].footprint().reached.contains(&place),
                        _ => match of.op {
                            CollectiveOp::Reduce => member == of.root as usize,
                            CollectiveOp::Broadcast => member != of.root as usize,
                            _ => true,
                        },
                    },
                    data: of.op != CollectiveOp::Barrier,
                };
                let words = self.workload.words(*of, ranks.len() as u64).max(1);
                let (engine, line) = at_engine((of.group, job), rounds, of_core, &mut lines);
                calls.push((operation, Call { engine, line, turn: 0, kind, words, collective, member: member as u32 }));
            }
        }
        calls.sort_by_key(|(operation, _)| *operation);
        let mut turns = vec![0; lines.len()];
        for (_, call) in &mut calls {
            let next = &mut turns[usize::from(call.line)];
            (call.turn, *next) = (*next, *next + 1);
        }
        (software, calls)
    }
}

/// The engine of a call, and the line of the rank's calls in which it waits: those that a group makes of the core's engine have one,
/// and each job of an engine beside it. `calls`: the core's ids, and whether they claim.
fn at_engine(
    (group, job): (u32, &NetworkJob),
    (first, count): (u32, u32),
    calls: &[(u16, bool)],
    lines: &mut Vec<(Engine, usize)>,
) -> (plan::Engine, u16) {
    let piuma = job.engine == Engine::Piuma;
    let mine = (job.engine, if piuma { group as usize } else { job.place });
    let line = lines.iter().position(|line| *line == mine).unwrap_or_else(|| {
        lines.push(mine);
        lines.len() - 1
    });
    if piuma {
        let (id, claims) = calls[job.place];
        return (plan::Engine::Core { id, claims }, line as u16);
    }
    let engine = if job.engine == Engine::Armed { watershed_mixed::ARMED } else { watershed_mixed::PBV };
    let rounds = Rounds { engine, job: job.place as u16, spread: job.spread as u16, first, count };
    (plan::Engine::Beside(rounds), line as u16)
}

/// Who waits for each node of a rank.
fn followers(trace: &Trace, rank: u32) -> (Vec<u32>, Vec<(u32, bool)>) {
    let nodes = &trace.ranks[rank as usize].nodes;
    let mut lists = vec![Vec::new(); nodes.len()];
    for (at, node) in (0..).zip(nodes) {
        for wait in &node.waits {
            lists[wait.node as usize].push((at, wait.start));
        }
    }
    let mut first = Vec::with_capacity(nodes.len() + 1);
    let mut followers = Vec::new();
    for list in lists {
        first.push(followers.len() as u32);
        followers.extend(list);
    }
    first.push(followers.len() as u32);
    (first, followers)
}
