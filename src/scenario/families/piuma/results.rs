//! The outcome of a run: results of collectives beside the oracle's, critical paths, checks.

use super::run::{CollectiveState, RunView};
use crate::build::{BuiltCollective, Segment, operation, oracle_tree};
use crate::data::Table;
use crate::result::{Check, CollectiveResult, Difference, Document, ResultData, hex};
use crate::run::family::Report;
use crate::run::runner::Runner;
use crate::run::system::Views;
use crate::why::piuma::{CollectiveQuery, Participant};
use crate::{golden, hosts, ladder, programs, segments, why};
use watershed_arith::{self as arith, Flags};
use watershed_oracle as oracle;
use watershed_piuma::{Job, Tap};
use watershed_scenario_interface::run::RunOptions;

impl RunView<'_, '_> {
    /// Writes the outcome of collectives, hosts, programs and traffic into the document.
    pub(super) fn results(&self, document: &mut Document, oracle: bool) -> Report {
        let scenario = &self.loaded.scenario;
        let mut report = Report::default();
        for index in (0..scenario.collectives.len()).filter(|&index| !scenario.collectives[index].called) {
            let (result, rows) = self.collective(index, oracle);
            let place = format!("collectives.{}", document.collectives.len());
            report.data.push(ResultData { place, ..rows });
            document.collectives.push(result);
        }
        report.findings = if oracle { self.findings(document) } else { Vec::new() };
        report.last.extend(self.missed_fault());
        if !scenario.hosts.is_empty() {
            let (results, checks) =
                hosts::result::report(self.loaded, self.system, &self.build, &self.host_starts, oracle);
            document.hosts = results;
            report.last.extend(checks);
            report.data.extend(hosts::result::data(self.loaded, self.system));
        }
        if scenario.programs.is_some() {
            let (system, built) = (self.system, &self.build.collectives);
            let (result, checks) = programs::result::report(scenario, built, system, oracle);
            document.programs = Some(result);
            report.last.extend(checks);
        }
        report
    }

    /// Names of collectives and hosts, for ladders.
    pub(super) fn names(&self) -> ladder::Names {
        let scenario = &self.loaded.scenario;
        let ids = scenario.collectives.iter().flat_map(segments::names).map(|(id, name)| (id as u16, name)).collect();
        let hosts = self.system.ends().flat_map(watershed_piuma::End::hosts).map(|host| host.job().class);
        let classes: std::collections::BTreeSet<u16> = hosts.collect();
        let fabric = scenario.hosts.iter().filter(|host| host.file.mode == hosts::file::HostMode::Fabric);
        let hosts = classes.into_iter().zip(fabric).map(|(class, host)| (class, host.name.clone())).collect();
        ladder::Names { ids, hosts }
    }

    /// The critical path of every collective that is asked for and has ended.
    pub(super) fn explain(
        &self,
        ask: why::WhyQuery<'_>,
        document: &Document,
        notes: &mut Vec<String>,
    ) -> Vec<why::Why> {
        let system = self.system;
        let mut list = Vec::new();
        if let Some(result) = document.workload.as_ref().filter(|_| ask.source.is_none() && ask.packet.is_none()) {
            let ranks = self.loaded.scenario.workload.as_ref().map_or(&[][..], |workload| &workload.ranks);
            let first = (system.plan().nodes.len() - system.end_count()) as u32;
            let end_point = |rank: u64| system.node_name(first + ranks[rank as usize]).into_owned();
            match why::workload::explain(result, end_point) {
                Ok(why) => list.push(why),
                Err(wrong) => notes.push(wrong),
            }
            return list;
        }
        let packets = ask.source.is_some() || ask.packet.is_some() || self.loaded.scenario.hosts.is_empty();
        if packets
            && (ask.source.is_some() || self.loaded.scenario.collectives.is_empty())
            && let Some(journal) = system.journal()
        {
            match why::packet::explain(system.plan(), journal, system.end_count(), ask) {
                Ok(why) => {
                    if let (None, Some(place)) = (ask.source, ask.packet) {
                        let name = &why.collective;
                        notes.push(format!("in the order of arrival, number {place}, from 0, is {name}"));
                    }
                    list.push(why);
                }
                Err(wrong) => notes.push(wrong),
            }
            return list;
        }
        let mut told = self.why_collectives(ask, document);
        if ask.packet.is_none() {
            told.extend(self.why_hosts(ask));
        }
        for one in told {
            match one {
                Ok(why) => list.push(why),
                Err(wrong) => notes.push(wrong),
            }
        }
        list
    }

    /// The segment that holds a word of a vector, and which of its words that is; or how many words there are.
    fn segment_of(&self, index: usize, word: u64) -> Result<(usize, u64), u64> {
        let built = &self.build.collectives[index];
        let mut first = 0;
        for (segment, &(end, job)) in built.jobs.iter().step_by(built.parts()).enumerate() {
            let jobs = self.system.end(end).core.as_ref().map_or(&[][..], |core| core.jobs());
            let words = jobs[job].words();
            if word < first + words {
                return Ok((segment, word - first));
            }
            first += words;
        }
        Err(first)
    }

    /// The critical path of every collective in the network; or why there is none, or which one it is.
    fn why_collectives(&self, ask: why::WhyQuery<'_>, document: &Document) -> Vec<Result<why::Why, String>> {
        let system = self.system;
        let mut list = Vec::new();
        let Some(reader) = why::piuma::Reader::new(system) else { return list };
        let ran = (0..self.state.len()).filter(|&index| !self.loaded.scenario.collectives[index].called);
        for (index, result) in ran.zip(&document.collectives) {
            let built = &self.build.collectives[index];
            let names = segments::names(&self.loaded.scenario.collectives[index]);
            // Of segments the one that is asked for, the one that has the word, or the last to end.
            let asked = ask.collective.and_then(|asked| names.iter().position(|(_, name)| name == asked));
            if asked.is_none() && ask.collective.is_some_and(|name| name != result.name) {
                continue;
            }
            let last = (0..names.len()).rev().max_by_key(|&at| result.segments.get(at).and_then(|of| of.end_cycle));
            let (mut at, mut packet) = (asked.or(last).unwrap_or(0), ask.packet);
            if let (None, Some(word)) = (asked, packet.filter(|_| names.len() > 1)) {
                match self.segment_of(index, word) {
                    Ok((segment, within)) => (at, packet) = (segment, Some(within)),
                    Err(words) => {
                        list.push(Err(format!("{}: there is no word {word}; it has {words}", result.name)));
                        continue;
                    }
                }
            }
            let end = result.segments.get(at).map_or(result.end_cycle, |segment| segment.end_cycle);
            let (Some(start), Some(end)) = (result.start_cycle, end) else { continue };
            let (id, name) = &names[at];
            if let (true, None, Some(word), Some(within)) = (names.len() > 1, asked, ask.packet, packet) {
                list.push(Err(format!("word {word} of {} is word {within} of its segment {name}", result.name)));
            } else if names.len() > 1 && asked.is_none() {
                let others = format!("--collective {}.0 to {} name the others", result.name, names[names.len() - 1].1);
                list.push(Err(format!("{name} is the segment of {} that ended last; {others}", result.name)));
            }
            let jobs: Vec<Participant<'_>> = (built.jobs.iter().skip(at * built.parts()).take(built.parts()))
                .filter_map(|&(end, job)| {
                    let job = &system.end(end).core.as_ref()?.jobs()[job];
                    Some(Participant { end, job, called: job.called() })
                })
                .collect();
            let asked = CollectiveQuery { name, id: *id as u16, start, end, last_call: None, packet, configured: &[] };
            list.push(reader.explain(&asked, &jobs).map_err(|wrong| format!("{name}: {wrong}")));
        }
        for collective in self.loaded.scenario.collectives.iter().filter(|of| of.called) {
            let calls = programs::result::parts(collective, system);
            let asked = ask.collective.and_then(|asked| asked.strip_prefix(&collective.name)?.strip_prefix('.'));
            if asked.and_then(|number| number.parse::<usize>().ok()).is_some_and(|number| number >= calls.len()) {
                list.push(Err(format!("{} was called {} times, counted from 0", collective.name, calls.len())));
            }
            let mut before = 0;
            for (number, parts) in calls.into_iter().enumerate() {
                let since = before;
                before = parts.iter().filter_map(|(_, call, _)| call.end).max().unwrap_or(before);
                let name = programs::result::call_name(&collective.name, number);
                if ask.collective.is_some_and(|asked| asked != collective.name && asked != name) {
                    continue;
                }
                let ends = parts.iter().map(|(_, call, _)| call.end).collect::<Option<Vec<u64>>>();
                let everybody = parts.len() == collective.participants.len();
                let Some(end) = ends.filter(|_| everybody).and_then(|ends| ends.into_iter().max()) else { continue };
                let Some(start) = parts.iter().map(|(_, call, _)| call.issued).min() else { continue };
                let takers = parts
                    .iter()
                    .filter_map(|&(end, call, job)| Some(Participant { end, job: job?, called: call.issued }));
                let jobs: Vec<Participant<'_>> = takers.collect();
                // Who only receives contributes nothing.
                let last_call = jobs.iter().filter(|of| of.job.kind().sends).map(|of| of.called).max();
                let id = collective.id as u16;
                let configured = self.configured(id, since, start);
                let start = configured.iter().map(|(from, ..)| *from).min().unwrap_or(start).min(start);
                let configured = &configured[..];
                let asked = CollectiveQuery { name: &name, id, start, end, last_call, packet: ask.packet, configured };
                list.push(reader.explain(&asked, &jobs).map_err(|wrong| format!("{name}: {wrong}")));
            }
        }
        list
    }

    /// When programs accessed registers of an id from cycle `since` on and before a call of it in cycle `call`, from the first
    /// store on: first cycle, first cycle after it, and the end point; by their ends.
    fn configured(&self, id: u16, since: u64, call: u64) -> Vec<(u64, u64, usize)> {
        let processors = self.system.ends().enumerate();
        let accesses = processors.filter_map(|(end, point)| Some((end, point.processor()?.accessed())));
        let of_id = accesses.flat_map(|(end, accesses)| accesses.iter().map(move |access| (end, access)));
        let of_id = of_id.filter(|(_, access)| access.id == id && (since..call).contains(&access.issued));
        let of_id: Vec<_> = of_id.collect();
        let first = of_id.iter().filter(|(_, access)| access.stored).map(|(_, access)| access.issued).min();
        let Some(first) = first else { return Vec::new() };
        let within = of_id.into_iter().filter(|(_, access)| access.issued >= first);
        let mut list: Vec<_> =
            within.filter_map(|(end, access)| Some((access.issued, access.until?.min(call), end))).collect();
        list.sort_unstable_by_key(|&(from, to, end)| (to, from, end));
        list
    }

    /// The same of every host that has ended.
    fn why_hosts(&self, ask: why::WhyQuery<'_>) -> Vec<Result<why::Why, String>> {
        let system = self.system;
        let mut list = Vec::new();
        let Some(journal) = system.journal() else { return list };
        let hosts = self.loaded.scenario.hosts.iter().enumerate();
        let hosts = hosts.filter(|(_, host)| ask.collective.is_none_or(|name| name == host.name));
        let mut reader = None;
        for (index, host) in hosts {
            if host.file.mode == hosts::file::HostMode::Ideal {
                let name = &host.name;
                list.push(Err(format!("{name}: in ideal mode nothing is on the network that could be followed")));
                continue;
            }
            let Some(start) = self.host_starts[index] else { continue };
            let ranks: Vec<&watershed_piuma::host::Host> = hosts::result::ranks(system, host, index).collect();
            if ranks.iter().any(|rank| rank.end().is_none()) {
                continue;
            }
            let reader = reader.get_or_insert_with(|| {
                let (plan, registers) = (system.plan(), system.registers());
                let messages = registers.messages.clone().unwrap_or(plan.vcs.set..plan.vcs.total());
                why::hosts::Reader::new(plan, journal, system.end_count(), messages)
            });
            let why = reader.explain(&host.name, &ranks, start);
            list.push(why.map_err(|wrong| format!("{}: {wrong}", host.name)));
        }
        list
    }

    pub(super) fn collective(&self, index: usize, check: bool) -> (CollectiveResult, ResultData) {
        let collective = &self.loaded.scenario.collectives[index];
        let built = &self.build.collectives[index];
        let mut result = CollectiveResult::new(collective);
        let dtype = collective.result_dtype();
        // Every core is looked at once: there may be millions.
        let (mut start, mut end, mut flags) = (None, None, Flags::NONE);
        let mut rows = Table::default();
        let mut receivers = Vec::new();
        let mut ends = vec![Some(0); built.segments.len()];
        for part in 0..built.parts() {
            for (at, (_, job)) in self.part(index, part).enumerate() {
                let called = Some(job.called()).filter(|&start| start != u64::MAX);
                start = start.min(called).or(start).or(called);
                end = end.max(job.end());
                ends[at] = ends[at].zip(job.end()).map(|(end, ended)| end.max(ended));
                flags |= Flags::from_bits(job.flags());
            }
            if self.part(index, part).any(|(_, job)| job.kind().receives) {
                // The segments of the vector, one after the other.
                let of_segments = self.part(index, part).map(|(segment, job)| {
                    let elements = (segment.elements.end - segment.elements.start) as usize;
                    arith::unpack_words(dtype, job.output(), elements)
                });
                rows.push(&of_segments.collect::<Vec<_>>().concat());
                receivers.push(built.jobs[part].0 as u32);
            }
        }
        if built.segments.len() > 1 {
            let name = |root: u32| self.system.node_name(root).into_owned();
            let results = built.segments.iter().zip(ends).map(|(segment, end_cycle)| segments::SegmentResult {
                id: u32::from(segment.id),
                plane: u32::from(segment.plane),
                root: segment.footprint.root.map_or_else(String::new, name),
                first_element: segment.elements.start,
                elements: segment.elements.end - segment.elements.start,
                end_cycle,
            });
            result.segments = results.collect();
        }
        result.start_cycle = start.filter(|&start| start < self.system.now());
        if let (Some(start), Some(end)) = (start, end)
            && self.state[index] == CollectiveState::Complete
        {
            result.set_times(self.loaded, start, end);
        }
        result.flags = flags.names().map(String::from).collect();
        if let Some(first) = rows.iter().next() {
            result.results = hex(dtype, self.loaded.scenario.results.head(first));
        }
        if check {
            let (all, oracle_flags) = self.golden(index);
            // Of a scan every rank has a result of its own; participants are in the order of ranks.
            let expected = |at: usize| if all.len() == 1 { &all[0] } else { &all[at] };
            result.oracle = hex(dtype, self.loaded.scenario.results.head(expected(0)));
            result.oracle_flags = oracle_flags.names().map(String::from).collect();
            // Compared as a whole first: rows are long, and almost always alike.
            let wrong: Vec<(usize, &[u64])> =
                rows.iter().enumerate().filter(|(at, row)| row != expected(*at)).collect();
            let exact = |&(at, row): &(usize, &[u64])| {
                row.iter().zip(expected(at)).filter(|(got, expected)| got == expected).count()
            };
            let whole = rows.iter().next().map_or(0, <[u64]>::len);
            result.exact_elements = wrong.iter().map(exact).min().unwrap_or(whole) as u64;
            result.bit_exact = Some(
                wrong.is_empty()
                    && !rows.is_empty()
                    && flags == oracle_flags
                    && self.state[index] == CollectiveState::Complete,
            );
            result.first_difference = wrong.iter().find_map(|&(rank, row)| {
                let expected = expected(rank);
                let at = row.iter().zip(expected).position(|(got, expected)| got != expected)?;
                Some(self.difference(index, receivers[rank] as usize, at, row[at], expected[at]))
            });
        }
        (result, ResultData { place: String::new(), name: collective.name.clone(), dtype, rows })
    }

    /// What a participant has of a collective: a job for every segment.
    fn part(&self, index: usize, part: usize) -> impl Iterator<Item = (&Segment, &Job)> {
        let built = &self.build.collectives[index];
        let jobs = built.jobs.iter().skip(part).step_by(built.parts());
        jobs.zip(&built.segments)
            .filter_map(|(&(end, job), segment)| Some((segment, &self.system.end(end).core.as_ref()?.jobs()[job])))
    }

    /// The untimed evaluation of a collective: elements of every different result, and sticky flags.
    pub(super) fn golden(&self, index: usize) -> (Vec<Vec<u64>>, Flags) {
        let collective = &self.loaded.scenario.collectives[index];
        let built = &self.build.collectives[index];
        let ranks = collective.participants.len();
        let (mut rows, mut flags): (Vec<Vec<u64>>, Flags) = (Vec::new(), Flags::NONE);
        for segment in &built.segments {
            let stored = |row: usize, at: usize| stored(built, row, segment.stored.start as usize + at);
            let elements = (segment.elements.end - segment.elements.start) as usize;
            let (more, raised) = golden::rows(collective, oracle_tree(segment), ranks, elements, &stored);
            flags |= raised;
            if rows.is_empty() {
                rows = more;
            } else {
                rows.iter_mut().zip(more).for_each(|(row, more)| row.extend(more));
            }
        }
        (rows, flags)
    }

    /// A deliberate fault that hit nothing: a test of the checks must not count it as a fault that they missed.
    fn missed_fault(&self) -> Option<Check> {
        let (switch, id, word) = self.flip.as_ref()?;
        let at = self.loaded.scenario.topology.switch_by_name(switch)?;
        let hit = self.system.join(at).and_then(|engine| engine.tap()?.seen).is_some();
        let detail = || format!("no bit was flipped: word {word} of collective id {id} never left {switch}'s engine");
        (!hit).then(|| Check::failed("flip", detail()))
    }

    /// Describes a differing element. The run is repeated with the engines' results kept, to say where it parts.
    pub(super) fn difference(&self, index: usize, end: usize, element: usize, got: u64, expected: u64) -> Difference {
        let collective = &self.loaded.scenario.collectives[index];
        let dtype = collective.result_dtype();
        let one = |bits: u64| hex(dtype, &[bits]).pop().unwrap_or_default();
        let of = &self.build.collectives[index].segments;
        let segment = of.iter().position(|segment| segment.elements.contains(&(element as u64))).unwrap_or(0);
        let word = (element - of[segment].elements.start as usize) / collective.network_dtype().lanes() as usize;
        Difference {
            element: element as u64,
            end_point: end as u64,
            got: one(got),
            expected: one(expected),
            ulps: oracle::ulp_distance(dtype, got, expected),
            node: self.first_divergence(index, segment, word).unwrap_or_else(|| "after the last engine".into()),
        }
    }

    /// The first engine, children before parents, whose result for a word is not the oracle's. Runs are deterministic,
    /// so a second one with the engines' results kept sees the same.
    pub(super) fn first_divergence(&self, index: usize, segment: usize, word: usize) -> Option<String> {
        let collective = &self.loaded.scenario.collectives[index];
        let built = &self.build.collectives[index];
        let segment = &built.segments[segment];
        let options = RunOptions { no_checks: true, ..RunOptions::default() };
        let mut runner = Runner::build(self.loaded, &options, false).ok()?;
        let (id, seq) = (segment.id, word as u64);
        for switch in 0..self.loaded.scenario.topology.switches() {
            let Some(engine) = self.system.join(switch) else { break };
            let flip = engine.tap().filter(|tap| (tap.id, tap.seq) == (id, seq)).map_or(0, |tap| tap.flip);
            runner.system.piuma_mut().join_mut(switch)?.set_tap(Tap { id, seq, flip, seen: None });
        }
        runner.drive(&options);
        let system = runner.system.piuma();
        let seen = |switch: u32| system.join(switch).and_then(|engine| engine.tap()?.seen);
        let mut parted = None;
        oracle_tree(segment)?.evaluate_with(
            operation(collective),
            collective.network_dtype(),
            arith::Mode::rounding(collective.round),
            &|row| {
                golden::contribution(collective, word, &|at| stored(built, row, segment.stored.start as usize + at)).0
            },
            &mut |switch, value, _| {
                if parted.is_none() && seen(switch).is_some_and(|seen| seen != value) {
                    parted = Some(format!("{}.ceng", system.node_name(switch)));
                }
            },
        );
        parted
    }

    /// What checks of collectives found.
    fn findings(&self, document: &Document) -> Vec<Check> {
        let mut checks = Vec::new();
        let collectives = self.loaded.scenario.collectives.iter().zip(&self.build.collectives);
        let started = collectives.filter(|(collective, _)| !collective.called);
        for ((collective, built), result) in started.zip(&document.collectives) {
            if let Some(exact) = result.bit_exact {
                let detail = match &result.first_difference {
                    None if exact => {
                        format!(
                            "{} of {} elements and all flags are the oracle's",
                            result.exact_elements, result.elements
                        )
                    }
                    None if result.end_cycle.is_none() => "it did not end".to_string(),
                    None => {
                        format!("flags {}; the oracle has {}", listed(&result.flags), listed(&result.oracle_flags))
                    }
                    Some(at) => format!(
                        "element {} at end point {}: got {}, the oracle has {}{}; they part at {}",
                        at.element,
                        at.end_point,
                        at.got,
                        at.expected,
                        at.ulps.map_or_else(String::new, |ulps| format!(", {}", oracle::compare::apart(ulps))),
                        at.node
                    ),
                };
                let name = format!("bit-exact: {}", collective.name);
                checks.push(Check { name, passed: exact, detail });
            }
            for (tree, (_, name)) in trees(built).zip(segments::names(collective)) {
                let name = format!("every contribution once: {name}");
                let engine = |switch: u32| format!("{}.ceng", self.system.node_name(switch));
                checks.push(match tree.check_each_once(result.participants as usize, &engine) {
                    Ok(()) => Check::passed(name, format!("{} contributions in the tree", result.participants)),
                    Err(error) => Check::failed(name, error.to_string()),
                });
            }
        }
        checks
    }
}

/// The trees of a collective that reduces.
fn trees(built: &BuiltCollective) -> impl Iterator<Item = &oracle::EngineList> {
    built.segments.iter().filter_map(|segment| segment.footprint.tree.as_ref())
}

/// A word of a contribution as it stands in memory.
fn stored(built: &BuiltCollective, row: usize, at: usize) -> u64 {
    built.input.get(row * built.stored_words as usize + at).copied().unwrap_or(0)
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
