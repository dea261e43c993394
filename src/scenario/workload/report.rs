//! Times of ranks, counts and the critical path of a workload that was run, and the checks of bits and volumes.

use crate::run::system::{System, Views};
use std::collections::BTreeSet;

use super::build::{self, engine, vector};
use super::config::{NetworkJob, TracedWorkload, Workload};
use super::file::Engine;
use super::path;
use super::result::{CollectiveResult, RankResult, Span, WorkloadResult};
use super::volume;
use crate::Loaded;
use crate::build::{BuiltCollective, PiumaBuild};
use crate::golden;
use crate::names::{Layout, NamedValues, layout};
use crate::result::Check;
use watershed_arith::{self as arith, Mode, Op};
use watershed_oracle as oracle;
use watershed_piuma::host::schedule::Schedule;
use watershed_piuma::rank::Rank;
use watershed_piuma::rank::plan::{Outcome, digest};
use watershed_workload::check::Instance;
use watershed_workload::{CollectiveOp, Kind};

/// More nodes than this are not spans of their own in the document: those of a rank and kind that touch each other are one.
const SPANS: usize = 4096;

/// Cycles from a first one up to another one.
type Range = (u64, u64);

/// Joins ranges that touch.
fn union(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut joined: Vec<Range> = Vec::new();
    for (start, end) in ranges.into_iter().filter(|(start, end)| start < end) {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

fn length(ranges: &[Range]) -> u64 {
    ranges.iter().map(|(start, end)| end - start).sum()
}

/// Cycles of two unions that they have in common.
fn common(one: &[Range], two: &[Range]) -> u64 {
    let (mut a, mut b, mut sum) = (0, 0, 0);
    while let (Some(first), Some(second)) = (one.get(a), two.get(b)) {
        sum += first.1.min(second.1).saturating_sub(first.0.max(second.0));
        if first.1 < second.1 { a += 1 } else { b += 1 }
    }
    sum
}

/// Whether a node computes.
fn computes(kind: &Kind) -> bool {
    matches!(kind, Kind::Nothing | Kind::Compute(_))
}

/// What nodes of a rank did when: those that compute, and those that communicate.
fn ranges(traced: &TracedWorkload, rank: &Rank, now: u64) -> [Vec<(Range, u32)>; 2] {
    let mut lists = [Vec::new(), Vec::new()];
    let nodes = &traced.trace.ranks[rank.number() as usize].nodes;
    for (at, (record, node)) in (0..).zip(rank.records().iter().zip(nodes)) {
        if record.busy < now {
            lists[usize::from(!computes(&node.kind))].push(((record.busy, record.end.min(now)), at));
        }
    }
    lists
}

/// Everything about a workload, and the checks of it.
pub(crate) fn report(
    loaded: &Loaded,
    system: &System,
    ready: &PiumaBuild<()>,
    oracle: bool,
) -> Option<(WorkloadResult, Vec<Check>)> {
    let (workload, traced) = (loaded.scenario.workload.as_ref()?, loaded.workload.as_deref()?);
    let ranks = path::ranks(system.piuma());
    let now = system.now();
    let mut checks = Vec::new();
    let end_cycle = ranks.iter().map(|rank| rank.end()).collect::<Option<Vec<u64>>>();
    let end_cycle = end_cycle.and_then(|ends| ends.into_iter().max());
    let mut result = WorkloadResult {
        trace: workload.trace.clone(),
        format: workload.format.clone(),
        end_cycle,
        end_ns: end_cycle.map(|cycles| loaded.scenario.clock.nanoseconds(cycles)),
        ..WorkloadResult::default()
    };
    let whole = workload.nodes as usize <= SPANS;
    for rank in &ranks {
        let nodes = &traced.trace.ranks[rank.number() as usize].nodes;
        let lists = ranges(traced, rank, now);
        let [compute, communicate] = [0, 1].map(|of: usize| union(lists[of].iter().map(|(range, _)| *range).collect()));
        let (computed, communicated) = (length(&compute), length(&communicate));
        let overlap = common(&compute, &communicate);
        let end = rank.end().unwrap_or(now);
        result.ranks.push(RankResult {
            end_point: workload.ranks[rank.number() as usize].into(),
            nodes: nodes.len() as u64,
            end_cycle: rank.end(),
            compute_cycles: computed,
            communicate_cycles: communicated,
            overlap_cycles: overlap,
            exposed_cycles: communicated - overlap,
            wait_cycles: end.saturating_sub(computed + communicated - overlap),
        });
        for (what, list, union) in [("compute", &lists[0], &compute), ("communicate", &lists[1], &communicate)] {
            let span = |name: String, (start_cycle, end_cycle): Range| Span {
                rank: rank.number().into(),
                what: what.to_owned(),
                name,
                start_cycle,
                end_cycle,
            };
            if whole {
                let own = list.iter().filter(|((start, end), _)| start < end);
                result.spans.extend(own.map(|&(range, at)| span(nodes[at as usize].title(traced.trace.format), range)));
            } else {
                result.spans.extend(union.iter().map(|&range| span(String::new(), range)));
            }
        }
    }
    messages(traced, &ranks, &mut result);
    let wrong: u64 = ranks.iter().map(|rank| rank.wrong()).sum();
    if oracle && result.messages > 0 {
        result.messages_exact = Some(wrong == 0);
        let detail = format!("{} messages of {} words, {wrong} of them wrong", result.messages, result.message_words);
        checks.push(Check { name: "bit-exact: messages".into(), passed: wrong == 0, detail });
    }
    let outcomes = outcomes(traced, &ranks);
    for (index, instance) in traced.matched.collectives.iter().enumerate() {
        let found = &outcomes[index];
        let run = ReportedRun { loaded, workload, traced, system, built: &ready.collectives };
        let one = run.collective((index, instance), (&ranks, found), oracle);
        result.collectives.push(one);
    }
    checks.extend(collective_checks(loaded, traced, &outcomes, &result.collectives, oracle));
    if end_cycle.is_some() {
        result.path = path::path(traced, &ranks);
    }
    Some((result, checks))
}

/// Counts messages that were received.
fn messages(traced: &TracedWorkload, ranks: &[&Rank], result: &mut WorkloadResult) {
    // What a rank received: what it calls the messages.
    let mut received: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); ranks.len()];
    for (set, (rank, of)) in received.iter_mut().zip(ranks.iter().zip(&traced.trace.ranks)) {
        let both = rank.records().iter().zip(&of.nodes);
        let ended = both.filter(|(record, node)| matches!(node.kind, Kind::Receive { .. }) && record.end != u64::MAX);
        set.extend(ended.map(|(record, _)| record.number));
    }
    for channel in &traced.matched.channels {
        let sender = ranks[channel.from as usize];
        for &node in &channel.sends {
            if !received[channel.to as usize].contains(&sender.records()[node as usize].number) {
                continue;
            }
            if let Kind::Send { bytes, .. } = traced.trace.ranks[channel.from as usize].nodes[node as usize].kind {
                result.messages += 1;
                result.message_words += bytes.div_ceil(8);
            }
        }
    }
}

/// The outcome of each collective at each of its members, in the order of the group.
fn outcomes(traced: &TracedWorkload, ranks: &[&Rank]) -> Vec<Vec<Option<Outcome>>> {
    let mut all: Vec<Vec<Option<Outcome>>> =
        traced.matched.collectives.iter().map(|instance| vec![None; instance.nodes.len()]).collect();
    for rank in ranks {
        for outcome in rank.outcomes() {
            let index = traced.matched.index_of[rank.number() as usize][outcome.operation as usize] as usize;
            let group = traced.matched.collectives[index].collective.group as usize;
            let member = traced.trace.groups[group].ranks.iter().position(|&member| member == rank.number());
            if let Some(member) = member {
                all[index][member] = Some(*outcome);
            }
        }
    }
    all
}

/// A run whose collectives are looked at.
struct ReportedRun<'a> {
    loaded: &'a Loaded,
    workload: &'a Workload,
    traced: &'a TracedWorkload,
    system: &'a System,
    built: &'a [BuiltCollective],
}

impl ReportedRun<'_> {
    fn collective(
        &self,
        (index, instance): (usize, &Instance),
        (ranks, found): (&[&Rank], &[Option<Outcome>]),
        oracle: bool,
    ) -> CollectiveResult {
        let of = instance.collective;
        let group = &self.traced.trace.groups[of.group as usize];
        let records =
            || group.ranks.iter().zip(&instance.nodes).map(|(&rank, &at)| ranks[rank as usize].records()[at as usize]);
        let starts: Vec<u64> = records().map(|record| record.start).filter(|&start| start != u64::MAX).collect();
        let over = records().all(|record| record.end != u64::MAX);
        let alone = group.ranks.len() < 2;
        let exact = (oracle && over && !alone).then(|| self.is_exact((index, instance), found));
        let reduces = matches!(of.op, CollectiveOp::AllReduce | CollectiveOp::Reduce | CollectiveOp::ReduceScatter);
        let mut results: Vec<u64> =
            found.iter().flatten().map(|of| of.digest).filter(|&of| of != digest(&[])).collect();
        results.dedup();
        CollectiveResult {
            kind: of.op.name().to_owned(),
            engine: engine(self.traced, of.op).name().to_owned(),
            group: group.name.clone(),
            members: group.ranks.len() as u64,
            op: reduces.then(|| NamedValues::name(self.workload.op).to_owned()),
            dtype: reduces.then(|| NamedValues::name(self.workload.dtype).to_owned()),
            bytes: of.bytes,
            words_sent: found.iter().flatten().map(|outcome| outcome.words[0]).sum(),
            start_cycle: starts.iter().copied().min(),
            last_start_cycle: starts.iter().copied().max(),
            end_cycle: over.then(|| records().map(|record| record.end).max()).flatten(),
            result_hash: if let [one] = results[..] { Some(format!("{one:016x}")) } else { None },
            bit_exact: exact.or((oracle && !alone).then_some(false)),
        }
    }

    /// Whether every member of a collective has the oracle's bits.
    fn is_exact(&self, (index, instance): (usize, &Instance), found: &[Option<Outcome>]) -> bool {
        let of = instance.collective;
        let members = found.len();
        let words = self.workload.words(of, members as u64);
        let engine = engine(self.traced, of.op);
        let data = |member: u32| vector(&self.loaded.scenario, index as u32, member, words);
        if !engine.is_in_network() {
            let schedule = Schedule { algorithm: build::algorithm(of.op, engine), ranks: members as u32, words };
            let mut vectors: Vec<Vec<u64>> = (0..members as u32).map(data).collect();
            schedule.execute(&mut vectors, &mut |left: u64, right: u64| self.pair(left, right));
            // Software counts its members from the root.
            return (0..members).all(|at| {
                let member = (at + of.root as usize) % members;
                found[member].is_some_and(|outcome| outcome.digest == digest(&vectors[at]))
            });
        }
        let Some((job, rounds)) = self.traced.job(index as u32) else { return false };
        if of.op == CollectiveOp::Barrier {
            return found.iter().all(Option::is_some);
        }
        let rows: Vec<Vec<u64>> = if of.op == CollectiveOp::Broadcast {
            vec![data(of.root)]
        } else {
            (0..members as u32).map(data).collect()
        };
        let (expected, flags) = match job.engine {
            Engine::Piuma => self.by_tree(job.place, of.op, &rows, words),
            _ => (self.by_frames(job, rounds, &rows), None),
        };
        let (expected, nothing) = (digest(&expected), digest(&[]));
        let receives = |member: usize| match of.op {
            CollectiveOp::Reduce => member == of.root as usize,
            CollectiveOp::Broadcast => member != of.root as usize,
            _ => true,
        };
        let raised = found.iter().flatten().fold(arith::Flags::NONE, |all, of| all | arith::Flags::from_bits(of.flags));
        (0..members).all(|member| {
            let wanted = if receives(member) { expected } else { nothing };
            found[member].is_some_and(|outcome| outcome.digest == wanted)
        }) && flags.is_none_or(|flags| raised == flags)
    }

    /// Two words, by the oracle.
    fn pair(&self, left: u64, right: u64) -> u64 {
        oracle::word_pair(self.workload.op, self.workload.dtype, Mode::default(), left, right).0
    }

    /// The result of PIUMA's tree, and the flags that it raises.
    fn by_tree(
        &self,
        place: usize,
        what: CollectiveOp,
        rows: &[Vec<u64>],
        words: u64,
    ) -> (Vec<u64>, Option<arith::Flags>) {
        let collective = &self.loaded.scenario.collectives[place];
        let lanes = self.workload.dtype.lanes() as usize;
        let tree = self.built[place].footprint().tree.as_ref().filter(|_| what != CollectiveOp::Broadcast);
        let (expected, flags) =
            golden::rows(collective, tree, collective.participants.len(), words as usize * lanes, &|row, word| {
                rows[row.min(rows.len() - 1)][word]
            });
        (arith::pack_words(self.workload.dtype, &expected[0]), Some(flags))
    }

    /// The result of engines that reduce in the order of arrival. Where the order cannot matter it is that of any order. Else it is what the
    /// job's root or source has: the check of the job itself compares that with the oracle's evaluation, merge by merge.
    fn by_frames(&self, job: &NetworkJob, (first, count): (u32, u32), rows: &[Vec<u64>]) -> Vec<u64> {
        if let [row] = rows {
            return row.clone();
        }
        let Workload { op, dtype, .. } = *self.workload;
        let length = rows.first().map_or(0, Vec::len);
        if matches!(layout(dtype), Layout::Integer { .. }) || !matches!(op, Op::Sum | Op::Prod) {
            let fold = |at: usize| rows.iter().map(|row| row[at]).reduce(|left, right| self.pair(left, right));
            return (0..length).filter_map(fold).collect();
        }
        let scenario = &self.loaded.scenario;
        let mut words = match (job.engine, &scenario.armed, &scenario.pbv) {
            (Engine::Armed, Some(armed), _) => {
                let root = armed.reductions[job.place].root;
                self.system.armed().end(root as usize).lanes(job.place as u16, first..first + count)
            }
            (Engine::Pbv, _, Some(pbv)) => {
                let rounds = (first..first + count).flat_map(|round| {
                    let of = &pbv.collectives[job.place + (round % job.spread) as usize];
                    let outcomes = self.system.pbv().end(of.source as usize).outcomes(of.cc_id);
                    outcomes.get((round / job.spread) as usize).map_or_else(Vec::new, |outcome| outcome.words.clone())
                });
                rounds.collect()
            }
            _ => Vec::new(),
        };
        words.truncate(length);
        words
    }
}

/// One check of bits and one of volumes for each kind of collective.
fn collective_checks(
    loaded: &Loaded,
    traced: &TracedWorkload,
    outcomes: &[Vec<Option<Outcome>>],
    results: &[CollectiveResult],
    oracle: bool,
) -> Vec<Check> {
    let mut checks = Vec::new();
    for what in CollectiveOp::ALL {
        let of_kind = |of: &&(usize, &Instance)| of.1.collective.op == what;
        let all: Vec<(usize, &Instance)> = traced.matched.collectives.iter().enumerate().collect();
        let all: Vec<&(usize, &Instance)> = all.iter().filter(of_kind).collect();
        if all.is_empty() {
            continue;
        }
        let engine = engine(traced, what);
        let (name, count) = (format!("{} by {}", what.name(), engine.name()), all.len());
        if oracle {
            let wrong = all.iter().find(|(index, _)| results[*index].bit_exact == Some(false));
            checks.push(match wrong {
                None => Check::passed(
                    format!("bit-exact: {name}"),
                    format!("{count} have the oracle's bits at every member"),
                ),
                Some((index, of)) => {
                    let end = if results[*index].end_cycle.is_some() {
                        "has other bits than the oracle's"
                    } else {
                        "did not end"
                    };
                    Check::failed(format!("bit-exact: {name}"), format!("number {} of its group {end}", of.number))
                }
            });
        }
        if engine.is_in_network() {
            continue;
        }
        let wrong = all.iter().find_map(|(index, of)| volumes(loaded, engine, of, &outcomes[*index]));
        let words: u64 = all.iter().map(|(index, _)| results[*index].words_sent).sum();
        checks.push(match wrong {
            None => {
                Check::passed(format!("volume: {name}"), format!("{count} as the algorithm has it: {words} words sent"))
            }
            Some(wrong) => Check::failed(format!("volume: {name}"), wrong),
        });
    }
    checks
}

/// The first member whose words are not those of the algorithm.
fn volumes(loaded: &Loaded, engine: Engine, instance: &Instance, found: &[Option<Outcome>]) -> Option<String> {
    let workload = loaded.scenario.workload.as_ref()?;
    let (of, members) = (instance.collective, found.len());
    if members < 2 {
        return None;
    }
    let words = workload.words(of, members as u64);
    (0..members).find_map(|member| {
        let counted = (member + members - of.root as usize) % members;
        let expected = volume::of(of.op, engine, members as u64, words, counted as u64);
        let got = found[member].map_or([0, 0], |outcome| outcome.words);
        (got != expected).then(|| {
            let [sent, received] = got;
            format!(
                "member {member} of {members}: {sent} words sent, {received} received; the algorithm has {} and {}",
                expected[0], expected[1]
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_compared() {
        let one = union(vec![(5, 7), (0, 3), (2, 4), (9, 9)]);
        assert_eq!(one, [(0, 4), (5, 7)]);
        assert_eq!(length(&one), 6);
        let two = union(vec![(3, 6), (6, 100)]);
        assert_eq!(common(&one, &two), 3);
        assert_eq!(common(&two, &one), 3);
        assert_eq!(common(&one, &[]), 0);
    }
}
