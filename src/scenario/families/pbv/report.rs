//! The report of a collective: the outcome of each run, compared with the oracle, and the totals.

use std::collections::{BTreeMap, BTreeSet};

use super::config::{Collective, Group};
use super::file::KindFile;
use super::golden::{OracleValue, Reader};
use super::result::{CollectiveResult, RoundResult};
use super::run::RunView;
use crate::armed::result::Outcomes;
use crate::job_result::{MinMeanMax, latency};
use crate::names::NamedValues;
use crate::result::{Check, hex};
use watershed_arith::{Flags, unpack_words};
use watershed_pbv::gather::Gather;
use watershed_pbv::packet::{Body, Message, Status};
use watershed_pbv::system::engines;

/// Rounds that are listed although they completed at once.
pub(super) const LISTED: usize = 16;
/// Rounds that are listed at all.
const MOST_LISTED: usize = 1000;
/// What a participant was answered.
pub(super) struct Answer {
    pub device: u16,
    pub met: u64,
    pub cycle: u64,
    words: Vec<u64>,
    flags: Flags,
    pub error: Option<Status>,
}

/// A collective that is reported, and what is known of it.
struct ReportedCollective<'r> {
    of: &'r Collective,
    /// What its participants contribute.
    rows: &'r [Vec<u64>],
    reader: Option<Reader<'r>>,
    /// End points that are answered.
    receivers: Vec<u32>,
    /// Runs that engines asked for again.
    asked: BTreeSet<u32>,
}

impl ReportedCollective<'_> {
    fn is_multicast(&self) -> bool {
        self.of.kind == KindFile::Multicast
    }
}

/// How a run ended, as those who take part know it.
struct RunEnd {
    /// All participants have the answer, and none is marked as an error.
    complete: bool,
    /// An answer is marked as an error.
    error: bool,
    /// Participants that are named as missing.
    missing: Vec<String>,
    /// When the last member of the other groups arrived.
    others: Option<u64>,
}

/// What the runs add up to.
#[derive(Default)]
struct RunTotals {
    latencies: Vec<u64>,
    distinct: BTreeSet<Vec<u64>>,
    data: Vec<Vec<u64>>,
    checked: u64,
    wrong: Option<String>,
}

impl RunView<'_, '_> {
    /// The answers of a run at its participants: device, cycle of the contribution, cycle, words, flags, error.
    pub(super) fn answers(&self, of: &Collective) -> BTreeMap<u32, Vec<Answer>> {
        let mut runs: BTreeMap<u32, Vec<Answer>> = (1..=of.rounds).map(|run| (run, Vec::new())).collect();
        let sent = self.cast_cycles(of);
        for &end in of.participants.iter() {
            let (node, device) = (self.node(end), self.build.devices[end as usize]);
            if of.kind == KindFile::Multicast {
                for (cycle, packet) in node.mail() {
                    let header = &packet.header;
                    if header.message == Message::Multicast && header.cc_id == of.cc_id {
                        let met = sent.get(&header.run).copied().unwrap_or(*cycle);
                        let words = packet.words().to_vec();
                        let answer = Answer { device, met, cycle: *cycle, words, flags: Flags::NONE, error: None };
                        runs.entry(header.run).or_default().push(answer);
                    }
                }
                continue;
            }
            for outcome in node.outcomes(of.cc_id) {
                let (met, cycle, words) = (outcome.met, outcome.cycle, outcome.words.clone());
                let answer = Answer { device, met, cycle, words, flags: outcome.flags, error: outcome.error };
                runs.entry(outcome.run).or_default().push(answer);
            }
        }
        runs
    }

    /// When the last member of the other groups of an inter-group barrier arrived.
    pub(super) fn other_groups_arrived(&self, of: &Collective, run: u32) -> Option<u64> {
        let group = of.group?;
        let members = self.others(group);
        let outcomes = members.flat_map(|(end, cc_id)| self.node(end).outcomes(cc_id));
        outcomes.filter(|outcome| outcome.run == run).map(|outcome| outcome.met).max()
    }

    /// Members of the other groups of an inter-group barrier, with their contexts.
    fn others(&self, group: Group) -> impl Iterator<Item = (u32, u16)> {
        let others =
            self.pbv.collectives.iter().filter(move |other| {
                other.group.is_some_and(|at| at.first == group.first && at.number != group.number)
            });
        others.flat_map(|other| other.participants.iter().map(move |&end| (end, other.cc_id)))
    }

    /// A member of another group that never made its contribution to a run in which this group went on without an error.
    fn absent_member(&self, of: &Collective, run: u32, answers: &[Answer]) -> Option<String> {
        let gone_on = answers.iter().find(|answer| answer.error.is_none())?;
        let came = |&(end, cc_id): &(u32, u16)| self.node(end).made(cc_id).iter().any(|&(made, _)| made == run);
        let (end, _) = self.others(of.group?).find(|member| !came(member))?;
        let (who, absent) = (self.name(gone_on.device), self.name(self.build.devices[end as usize]));
        Some(format!("{who} of {} went on, and {absent} of another group never came", of.name))
    }

    /// A member of a group that went on before the last of the other groups had arrived.
    fn early_member(&self, of: &Collective, others: u64, answers: &[Answer]) -> Option<String> {
        let early = answers.iter().find(|answer| answer.cycle <= others)?;
        let (who, name) = (self.name(early.device), &of.name);
        Some(format!("{who} of {name} went on in cycle {}, the last of the others met in {others}", early.cycle))
    }

    /// When the first copy of a multicast arrived anywhere, by run.
    fn cast_cycles(&self, of: &Collective) -> BTreeMap<u32, u64> {
        let mut first: BTreeMap<u32, u64> = BTreeMap::new();
        if of.kind == KindFile::Multicast {
            for &end in of.participants.iter() {
                for (cycle, packet) in self.node(end).mail() {
                    let header = &packet.header;
                    if header.message == Message::Multicast && header.cc_id == of.cc_id {
                        let first = first.entry(header.run).or_insert(*cycle);
                        *first = (*first).min(*cycle);
                    }
                }
            }
        }
        first
    }

    /// Who was reported missing in a run: to the source, or in the status of an engine.
    fn missing(&self, of: &Collective, run: u32) -> Vec<String> {
        let mut devices: BTreeSet<u16> = BTreeSet::new();
        for (_, packet) in self.node(of.source).mail() {
            if packet.header.cc_id == of.cc_id
                && (packet.header.run == run || packet.header.is_about_set_up())
                && let Body::Missing { devices: list, .. } = &packet.body
            {
                devices.extend(list);
            }
        }
        for engine in engines(self.system) {
            let of_run = engine.ce().reported().iter().filter(|(cc_id, at, _)| (*cc_id, *at) == (of.cc_id, run));
            devices.extend(of_run.map(|&(_, _, device)| device));
        }
        devices.into_iter().map(|device| self.name(device)).collect()
    }

    /// The report of one collective, its results, and what its checks found.
    pub(super) fn collective(&self, index: usize, oracle: bool) -> (CollectiveResult, Vec<Vec<u64>>, Vec<Check>) {
        let of = &self.pbv.collectives[index];
        let (plan, rows) = (&self.build.collectives[index], &self.build.operands[index]);
        let multicast = of.kind == KindFile::Multicast;
        let operands =
            of.participants.iter().zip(rows).map(|(&end, row)| (self.build.devices[end as usize], row.as_slice()));
        let gather = self.node(of.source).gather(of.cc_id);
        let divide = of.mean.then(|| of.participants.len() as u32);
        let reader =
            oracle.then(|| Reader::new(self.system, plan, operands.collect()).with_end_point_steps(gather, divide));
        let receivers = of.participants.iter().copied().filter(|&end| !(multicast && end == of.source)).collect();
        let asked = engines(self.system).flat_map(|engine| engine.ce().asked());
        let asked = asked.filter(|(cc_id, _)| *cc_id == of.cc_id).map(|&(_, run)| run).collect();
        let one = ReportedCollective { of, rows, reader, receivers, asked };

        let mut result = CollectiveResult {
            name: of.name.clone(),
            kind: match of.kind {
                KindFile::Allreduce => "allreduce",
                KindFile::Barrier => "barrier",
                KindFile::InterGroupBarrier => "inter-group-barrier",
                KindFile::Multicast => "broadcast",
            }
            .into(),
            op: (of.kind == KindFile::Allreduce).then(|| of.op_name().into()),
            dtype: (of.elements > 0).then(|| NamedValues::name(of.dtype).into()),
            cc_id: of.cc_id,
            group: of.group.map(|group| group.number),
            groups: of.group.map(|group| group.count),
            source: self.name(plan.source),
            master: self.name(plan.tree.device),
            engines: plan.tree.preorder().len() as u64,
            levels: plan.tree.height(),
            participants: of.participants.len() as u64,
            elements_per_round: of.elements.into(),
            merged_by_source: gather.map(Gather::count),
            outcomes: Outcomes::default(),
            start_cycle: None,
            end_cycle: None,
            latency_cycles: None,
            latency_ns: None,
            round_latency_cycles: None,
            distinct_values: 0,
            rounds: Vec::new(),
            more_rounds: 0,
            bit_exact: None,
        };
        let mut sums = RunTotals::default();
        for (run, answers) in self.answers(of) {
            self.round(&one, run, &answers, (&mut result, &mut sums));
        }
        // Who waits for an answer has contributed, too.
        let made = of.participants.iter().flat_map(|&end| self.node(end).made(of.cc_id));
        result.start_cycle = result.start_cycle.or_else(|| made.map(|made| made.1).min());
        result.distinct_values = if of.same_every_round { sums.distinct.len() as u64 } else { 0 };
        result.round_latency_cycles = MinMeanMax::of(&sums.latencies);
        result.end_cycle = result.end_cycle.filter(|_| result.outcomes.all_answered());
        result.latency_cycles = latency(result.start_cycle, result.end_cycle, &result.outcomes);
        result.latency_ns = result.latency_cycles.map(|cycles| self.loaded.scenario.clock.nanoseconds(cycles));
        let mut checks = Vec::new();
        if one.reader.is_some() {
            let checked = sums.checked;
            result.bit_exact = (checked > 0 && result.outcomes.open == 0).then_some(sums.wrong.is_none());
            let name = format!("right or reported: {}", of.name);
            let what = if multicast { "each node got the source's words" } else { "each participant once in each" };
            checks.push(match sums.wrong {
                None => Check::passed(name, format!("{checked} results are the oracle's, {what}")),
                Some(what) => Check::failed(name, what),
            });
        }
        (result, sums.data, checks)
    }

    /// Counts a run, and lists it.
    fn round(
        &self,
        one: &ReportedCollective<'_>,
        run: u32,
        answers: &[Answer],
        (result, sums): (&mut CollectiveResult, &mut RunTotals),
    ) {
        let of = one.of;
        let end = answers.iter().map(|answer| answer.cycle).max();
        let met = answers.iter().map(|answer| answer.met).max();
        result.start_cycle = result.start_cycle.into_iter().chain(answers.iter().map(|a| a.met)).min();
        result.end_cycle = result.end_cycle.max(end);
        let ended = self.run_end(one, run, answers);
        let (value, fault) = self.compare_with_oracle(one, run, answers, (&ended, &mut sums.checked));
        // A group whose members went on although it is incomplete itself made the others go on with an error.
        let whole = ended.complete && (of.group.is_none() || ended.missing.is_empty());
        let outcomes = &mut result.outcomes;
        let (slot, outcome) = match () {
            () if fault.is_some() => (&mut outcomes.silent, "silent"),
            () if whole && one.asked.contains(&run) => (&mut outcomes.after_retry, "after-retry"),
            () if whole => (&mut outcomes.complete, "complete"),
            () if ended.error || !ended.missing.is_empty() => (&mut outcomes.incomplete, "incomplete"),
            () => (&mut outcomes.open, "open"),
        };
        *slot += 1;
        if let Some(fault) = &fault {
            sums.wrong.get_or_insert_with(|| format!("run {run}: {fault}"));
        }
        // Who goes on when others have arrived waits for them, and for nobody of his own group.
        let latency = match ended.others {
            Some(others) => answers.iter().map(|answer| answer.cycle.saturating_sub(answer.met.max(others))).max(),
            None => end.zip(met).map(|(end, met)| end.saturating_sub(met)),
        };
        let first = answers.first();
        if ended.complete {
            sums.latencies.extend(latency);
            if let Some(answer) = first {
                sums.distinct.insert(answer.words.clone());
                sums.data.push(elements(of, &answer.words));
            }
        }
        if result.rounds.len() >= MOST_LISTED || (outcome == "complete" && result.rounds.len() >= LISTED) {
            result.more_rounds += 1;
            return;
        }
        let text = |words: &[u64]| hex(of.dtype, self.loaded.scenario.results.head(&elements(of, words)));
        result.rounds.push(RoundResult {
            run,
            end_cycle: end,
            latency_cycles: latency.filter(|_| ended.complete),
            result: first.map_or_else(Vec::new, |answer| text(&answer.words)),
            oracle: value.and_then(|value| value.words).map_or_else(Vec::new, |words| text(&words)),
            flags: first.map_or_else(Vec::new, |answer| answer.flags.names().map(str::to_owned).collect()),
            outcome: outcome.into(),
            missing: ended.missing,
            fault,
        });
    }

    /// Who has the answer of a run, and who is missing.
    fn run_end(&self, one: &ReportedCollective<'_>, run: u32, answers: &[Answer]) -> RunEnd {
        let of = one.of;
        let device = |end: u32| self.build.devices[end as usize];
        let got = |end: u32| answers.iter().any(|answer| answer.device == device(end));
        // Nobody can answer one whose link is dead.
        let lost = one.receivers.iter().filter(|&&end| self.excused.contains(&device(end)) && !got(end));
        let everybody = !answers.is_empty() && answers.len() + lost.count() >= one.receivers.len();
        let error = answers.iter().any(|answer| answer.error.is_some());
        let mut missing = self.missing(of, run);
        // The nodes without an answer, if no others are named.
        if error && missing.is_empty() {
            let without = answers.iter().filter(|answer| answer.error.is_some());
            missing.extend(without.map(|answer| self.name(answer.device)));
        }
        // A source that is cut off issues nothing.
        let source = device(of.source);
        if answers.is_empty() && missing.is_empty() && self.excused.contains(&source) {
            missing.push(self.name(source));
        }
        // The source of a multicast may not know that it arrived; one that takes no part and gives up is all that ends the run for
        // those who got no answer.
        let outcomes = self.node(of.source).outcomes(of.cc_id);
        let gave_up = outcomes.iter().any(|outcome| outcome.run == run && outcome.error.is_some());
        let unsure = gave_up && (one.is_multicast() || answers.is_empty() || !everybody && missing.is_empty());
        let complete = everybody && !error && !unsure;
        if (of.posted || unsure) && !complete {
            // Nobody is told of a posted multicast that gets lost, but for those who look at the document.
            missing.extend(one.receivers.iter().filter(|&&end| !got(end)).map(|&end| self.name(device(end))));
            if missing.is_empty() {
                missing.push(self.name(source));
            }
            missing.sort();
            missing.dedup();
        } else if complete && of.group.is_none() {
            // What was missing while the context was set up came in the end.
            missing.clear();
        }
        RunEnd { complete, error, missing, others: self.other_groups_arrived(of, run) }
    }

    /// What the oracle has for a run, and in what the answers are wrong; counts it as checked.
    fn compare_with_oracle(
        &self,
        one: &ReportedCollective<'_>,
        run: u32,
        answers: &[Answer],
        (ended, checked): (&RunEnd, &mut u64),
    ) -> (Option<OracleValue>, Option<String>) {
        let of = one.of;
        let Some(reader) = &one.reader else { return (None, None) };
        let mut values = if one.is_multicast() {
            vec![cast_value(&one.rows[0], of.words() as usize, run)]
        } else {
            reader.values(run)
        };
        // A run that is begun anew is answered more than once. All answers that are taken for the result are of one time; one
        // that is marked as an error may be of another, when less was there.
        let (marked, taken): (Vec<&Answer>, Vec<&Answer>) = answers.iter().partition(|answer| answer.error.is_some());
        let agree = |value: &OracleValue, answers: &[&Answer]| {
            answers.iter().all(|&answer| mismatch(of, value, answer).is_none())
        };
        let lone = marked.iter().copied().find(|&answer| !values.iter().any(|value| agree(value, &[answer])));
        let leading = if taken.is_empty() { &marked[..marked.len().min(1)] } else { &taken[..] };
        let held = matching_value(&values, leading, agree);
        if values.is_empty() {
            return (None, None);
        }
        let value = values.swap_remove(held.unwrap_or(0));
        if answers.is_empty() {
            return (Some(value), None);
        }
        *checked += 1;
        let mut fault = taken.into_iter().chain(lone).find_map(|answer| mismatch(of, &value, answer));
        if fault.is_none() && !one.is_multicast() {
            // A group goes on when the others are complete, whether it is or not.
            fault = reader.participant_error(&value, ended.complete && of.group.is_none());
        }
        if fault.is_none() && of.group.is_some() {
            fault = self.absent_member(of, run, answers);
        }
        if fault.is_none() && !ended.error {
            fault = ended.others.and_then(|others| self.early_member(of, others, answers));
        }
        let wanted = one.receivers.len();
        if fault.is_none() && answers.len() > wanted {
            fault = Some(format!("{} answers for {wanted} nodes", answers.len()));
        }
        (Some(value), fault)
    }
}

/// Which value the answers that came are of: the last one that was given before the first of them came, for without words, as of a
/// barrier, all values agree with them; else any that agrees.
fn matching_value(
    values: &[OracleValue],
    came: &[&Answer],
    agree: impl Fn(&OracleValue, &[&Answer]) -> bool,
) -> Option<usize> {
    let first = came.iter().map(|answer| answer.cycle).min();
    let before = |value: &OracleValue| value.answered.zip(first).is_none_or(|(answered, first)| answered <= first);
    let held = values.iter().position(|value| before(value) && agree(value, came));
    held.or_else(|| values.iter().position(|value| agree(value, came)))
}

/// The elements in words; the last word may have lanes that are not used.
fn elements(of: &Collective, words: &[u64]) -> Vec<u64> {
    unpack_words(of.dtype, words, of.elements as usize)
}

/// What a multicast brings.
fn cast_value(row: &[u64], words: usize, run: u32) -> OracleValue {
    let at = run.saturating_sub(1) as usize * words % row.len().max(1);
    OracleValue { words: Some(row[at..at + words].to_vec()), flags: Flags::NONE, entered: Vec::new(), answered: None }
}

/// In what an answer is not the oracle's.
fn mismatch(of: &Collective, value: &OracleValue, answer: &Answer) -> Option<String> {
    let expected = value.words.as_deref().unwrap_or_default();
    // An answer that is marked as an error may have no data.
    if answer.error.is_some() && answer.words.is_empty() {
        return None;
    }
    if !of.kind.is_barrier() && answer.words != expected {
        let (got, right) = (elements(of, &answer.words), elements(of, expected));
        let at = got.iter().zip(&right).position(|(a, b)| a != b).unwrap_or(got.len().min(right.len()));
        let text = |list: &[u64]| list.get(at).map_or("nothing".into(), |&bits| hex(of.dtype, &[bits]).concat());
        let (got, right) = (text(&got), text(&right));
        return Some(format!("element {at} at device {:#06x} is {got}, the oracle has {right}", answer.device));
    }
    (answer.flags != value.flags).then(|| {
        let names = |flags: Flags| flags.names().collect::<Vec<_>>().join(" ");
        let (got, right) = (names(answer.flags), names(value.flags));
        format!("flags at device {:#06x} are \"{got}\", the oracle has \"{right}\"", answer.device)
    })
}
