//! From the scenario as written to the configuration: cross-field rules, units, derived values, limits.
//!
//! | file | tables |
//! |---|---|
//! | `topology` | `[topology]` and `[routing]` |
//! | `switch` | `[switch]` |
//! | `collective` | `[[collective]]` |
//! | `results` | `results` |
//! | `traffic` | `[[traffic]]` and `[measure]` |
//! | `workload` | `[workload]` |

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::config::{Clock, Latency, Link, Memory, Rounding, Scenario, Switch, Topology, Wave};
use super::families::spec;
use super::file::{
    Auto, Bandwidth, CengFile, CollectiveFile, Family, Frequency, MOST_CHANNELS, ScenarioFile, TopologyKind,
};
use super::problem::Problem;
use super::programs::config::{self as programs, Programs};
use super::source::{Source, alternatives};
use super::spec::Lacks;
use super::workload::config::TracedWorkload;
use super::{jobs, link, mixed, names, segments, units};
use watershed_fabric::topology::Graph;

mod collective;
mod results;
mod switch;
mod topology;
mod traffic;
pub mod workload;

/// Whether a scenario has the armed family's engines.
fn has_armed(file: &ScenarioFile) -> bool {
    file.family == Family::Armed || file.family == Family::Mixed && file.armed.is_some()
}

/// Whether a scenario has packet engines.
fn has_pbv(file: &ScenarioFile) -> bool {
    file.family == Family::Pbv || file.family == Family::Mixed && file.pbv.is_some()
}

/// Checks what the schema cannot and fills in what follows; a clock that is to be the fastest is `fastest`, in hertz.
///
/// # Errors
/// Everything that is wrong.
pub fn resolve(
    file: &ScenarioFile,
    source: &Source,
    base: &Path,
    stem: &str,
    (graph, traced): (Option<Arc<Graph>>, Option<&TracedWorkload>),
    fastest: u64,
) -> Result<Scenario, Vec<Problem>> {
    let (problems, roundings) = (Vec::new(), Vec::new());
    let mut resolver = Resolver { source, base, graph, fastest, hertz: 1, problems, roundings };
    let scenario = resolver.scenario(file, stem, traced);
    match scenario {
        Some(scenario) if resolver.problems.is_empty() => Ok(scenario),
        _ => Err(resolver.problems),
    }
}

struct Resolver<'a> {
    source: &'a Source,
    base: &'a Path,
    /// The topology of a file.
    graph: Option<Arc<Graph>>,
    /// A clock that is to be the fastest.
    fastest: u64,
    hertz: u64,
    problems: Vec<Problem>,
    roundings: Vec<Rounding>,
}

impl Resolver<'_> {
    fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn scenario(&mut self, file: &ScenarioFile, stem: &str, traced: Option<&TracedWorkload>) -> Option<Scenario> {
        self.exclusive_keys(file);
        let clock = self.clock(file);
        let link = self.link(file);
        self.foreign_link_keys(file);
        let memory = self.memory(file);
        self.family(file);
        self.flit(file);
        self.header(file);
        self.address(file);
        self.starts(file);
        // Names and numbers of everything below hang on the shape: without one there is nothing more to say.
        let topology = self.topology(file, &link)?;
        let routing = self.routing(file, &topology.shape);
        let switch = Switch {
            point_to_point_vcs: self.channels(file, &topology.shape),
            router: self.router(file, &topology),
            ceng: CengFile { radix: Auto::Fixed(file.switch.ceng.radix.or(topology.ports())), ..file.switch.ceng },
            ..file.switch
        };
        self.storage(&switch, &topology, !file.traffic.is_empty());
        let collectives = self.collectives(file, &topology);
        let mut armed = has_armed(file).then(|| {
            let table = file.armed.clone().unwrap_or_default();
            let replays = file.link.reliability.is_some();
            super::armed::config::resolve(
                &table,
                &topology,
                (replays, link.latency.cycles),
                file.seed,
                &mut self.problems,
            )
        });
        let programs = self.programs(file, &topology);
        let hosts = super::hosts::config::resolve(&file.host, &collectives, &topology, file.seed, &mut self.problems);
        let workload = traced.and_then(|traced| workload::resolve(file, traced, &topology, &mut self.problems));
        let mut pbv = has_pbv(file).then(|| {
            let table = file.pbv.clone().unwrap_or_default();
            super::pbv::config::resolve(&table, &topology, file.link.reliability.is_some(), &mut self.problems)
        });
        for job in traced.iter().flat_map(|traced| traced.network.values()) {
            workload::call(job, armed.as_mut(), pbv.as_mut());
        }
        let traffic = self.traffic(file, &topology);
        self.measure(file, &traffic);
        self.wave(&file.wave);
        super::snapshot::check(&file.golden, self.source, &mut self.problems);

        let derived = self.derived(file.family, &topology, &link, &memory, &switch);
        let mut scenario = Scenario {
            name: file.name.clone().unwrap_or_else(|| stem.to_owned()),
            about: file.about.clone(),
            family: file.family,
            seed: file.seed,
            results: file.results,
            clock,
            technology: file.technology.clone(),
            topology,
            routing,
            switch,
            link,
            memory,
            limits: file.limits.clone(),
            checks: file.checks.clone(),
            collectives,
            programs,
            hosts,
            workload,
            traffic,
            measure: file.measure,
            wave: file.wave.clone(),
            golden: file.golden.clone(),
            armed,
            pbv,
            derived,
            roundings: std::mem::take(&mut self.roundings),
        };
        self.problems.extend(results::check(file.results, &scenario));
        if scenario.family == Family::Mixed && !self.source.has("switch.point_to_point_vcs") {
            let needed = mixed::channels::needed(&scenario).min(MOST_CHANNELS);
            scenario.switch.point_to_point_vcs = scenario.switch.point_to_point_vcs.max(needed);
        }
        Some(scenario)
    }

    /// What a waveform shows if nothing is asked for.
    fn wave(&mut self, wave: &Wave) {
        if wave.to_cycle.is_some_and(|to| to < wave.from_cycle) {
            self.report(
                Problem::at("wave.to_cycle", "the window ends before it starts")
                    .expected(format!("a cycle from {} on", wave.from_cycle)),
            );
        }
        for (index, glob) in wave.signals.iter().enumerate() {
            if let Err(error) = watershed_probe::Selection::new([glob]) {
                self.report(Problem::at(format!("wave.signals[{index}]"), error.to_string()));
            }
        }
    }

    /// Values that follow from the others.
    fn derived(
        &self,
        family: Family,
        topology: &Topology,
        link: &Link,
        memory: &Memory,
        switch: &Switch,
    ) -> BTreeMap<String, Json> {
        let mut derived = BTreeMap::new();
        derived.insert("switches".to_owned(), json!(topology.switches()));
        derived.insert("end_points".to_owned(), json!(topology.end_points()));
        derived.insert("ports_without_ceng".to_owned(), json!(topology.ports()));
        let period = 1e9 / self.hertz as f64;
        derived.insert("period_ns".to_owned(), json!(period));
        let link_gbps = f64::from(link.flit_bits) * self.hertz as f64 / 1e9 / f64::from(link.cycles_per_flit);
        derived.insert("link_bandwidth_gbps".to_owned(), json!(link_gbps));
        if let Some(rate) = memory.bandwidth_bps {
            derived.insert("memory_bits_per_cycle".to_owned(), json!(rate as f64 / self.hertz as f64));
        }
        if matches!(family, Family::Piuma | Family::Mixed) {
            let levels = u32::BITS - (switch.ceng.radix.known() - 1).leading_zeros();
            derived.insert("ceng_levels".to_owned(), json!(levels));
            derived.insert("ceng_latency_cycles".to_owned(), json!(levels * switch.ceng.stages));
        }
        derived
    }

    /// Keys that say the same thing in two ways.
    fn exclusive_keys(&mut self, file: &ScenarioFile) {
        for (table, keys) in alternatives() {
            let places: Vec<String> = match table.strip_prefix("collective") {
                Some(rest) => (0..file.collective.len()).map(|index| format!("collective[{index}]{rest}")).collect(),
                None => vec![(*table).to_owned()],
            };
            for place in places {
                let given: Vec<&str> =
                    keys.iter().copied().filter(|key| self.source.has(&format!("{place}.{key}"))).collect();
                if let [first, second, ..] = given.as_slice() {
                    let all = names::one_of(keys.iter().map(|key| format!("`{key}`")));
                    self.report(
                        Problem::at_key(
                            format!("{place}.{second}"),
                            format!("`{second}` and `{first}` cannot both be given"),
                        )
                        .related(format!("{place}.{first}"), "the other one")
                        .expected(format!("only one of {all}")),
                    );
                }
            }
        }
    }

    fn clock(&mut self, file: &ScenarioFile) -> Clock {
        let frequency_mhz = match file.clock.frequency_mhz {
            Frequency::Mhz(frequency) => frequency,
            Frequency::Fastest => self.fastest as f64 / 1e6,
        };
        if let Some(hertz @ 1..) = units::hertz(frequency_mhz) {
            self.hertz = hertz;
        } else {
            self.report(
                Problem::at("clock.frequency_mhz", format!("{frequency_mhz} MHz is not a whole number of hertz"))
                    .expected("at most six decimals"),
            );
            self.hertz = 1_000_000_000;
        }
        Clock { frequency_mhz, frequency_hz: self.hertz }
    }

    /// A latency from its two keys.
    fn latency(
        &mut self,
        key: &str,
        ns: Option<f64>,
        cycles: Option<u64>,
        default: DefaultLatency,
        least: u64,
    ) -> Latency {
        let hertz = self.hertz;
        let (ns, path) = match (ns, cycles, default) {
            (_, Some(cycles), _) | (None, None, DefaultLatency::Cycles(cycles)) => {
                return Latency { cycles, ns: units::nanoseconds(cycles, hertz) };
            }
            (Some(ns), ..) | (None, None, DefaultLatency::Ns(ns)) => (ns, format!("{key}_ns")),
        };
        let Some(femtoseconds) = units::femtoseconds(ns) else {
            self.report(
                Problem::at(&path, format!("{ns} ns is finer than a femtosecond")).expected("at most six decimals"),
            );
            return Latency { cycles: least, ns };
        };
        let (cycles, inexact) = units::cycles(femtoseconds, hertz);
        if cycles < least {
            self.report(
                Problem::at(&path, "a link takes at least one cycle")
                    .expected(format!("more than 0; a cycle is {} ns", units::nanoseconds(1, hertz))),
            );
        }
        if cycles > MAX_LATENCY {
            self.report(
                Problem::at(&path, format!("{ns} ns are {cycles} cycles, too many"))
                    .expected(format!("up to {MAX_LATENCY} cycles")),
            );
        }
        let effective_ns = units::nanoseconds(cycles, hertz);
        if inexact {
            self.roundings.push(Rounding { key: path, given_ns: ns, cycles, effective_ns });
        }
        Latency { cycles, ns: effective_ns }
    }

    fn link(&mut self, file: &ScenarioFile) -> Link {
        let given = &file.link;
        let nodes = file.topology.kind == TopologyKind::Nodes;
        let mut resolved = Link {
            latency: self.latency("link.latency", given.latency_ns, given.latency_cycles, DefaultLatency::Ns(5.0), 1),
            local_latency: self.latency(
                "link.local_latency",
                given.local_latency_ns,
                given.local_latency_cycles,
                DefaultLatency::Cycles(1),
                1,
            ),
            socket_latency: nodes.then(|| {
                let (ns, cycles) = (given.socket_latency_ns, given.socket_latency_cycles);
                self.latency("link.socket_latency", ns, cycles, DefaultLatency::Ns(25.0), 1)
            }),
            node_latency: nodes.then(|| {
                let (ns, cycles) = (given.node_latency_ns, given.node_latency_cycles);
                self.latency("link.node_latency", ns, cycles, DefaultLatency::Ns(50.0), 1)
            }),
            subnode: None,
            flit_bits: given.flit_bits,
            width_bits: given.width_bits,
            local_width_bits: given.local_width_bits,
            socket_width_bits: given.socket_width_bits,
            node_width_bits: given.node_width_bits,
            header: given.header,
            cycles_per_flit: 1,
            local_cycles_per_flit: None,
            socket_cycles_per_flit: None,
            node_cycles_per_flit: None,
            reliability: given.reliability,
        };
        let (cycles, others) = link::derive(given, resolved.wire_bits(), nodes);
        resolved.cycles_per_flit = cycles;
        [resolved.local_cycles_per_flit, resolved.socket_cycles_per_flit, resolved.node_cycles_per_flit] = others;
        if let (Some(socket), true) = (resolved.socket_latency, file.topology.subnodes.is_some_and(|count| count > 1)) {
            let own = given.subnode.unwrap_or_default();
            let (ns, cycles) = (own.latency_ns, own.latency_cycles);
            let latency = self.latency("link.subnode.latency", ns, cycles, DefaultLatency::Cycles(socket.cycles), 1);
            let bits = resolved.wire_bits();
            let cycles_per_flit = link::cycles(bits, own.width_bits.unwrap_or(bits));
            resolved.subnode = Some(link::SubnodeLink { latency, width_bits: own.width_bits, cycles_per_flit });
        }
        resolved
    }

    fn memory(&mut self, file: &ScenarioFile) -> Memory {
        let memory = &file.memory;
        let bandwidth_bps = match memory.bandwidth_gbps {
            Bandwidth::Unlimited => None,
            Bandwidth::Gbps(gbps) => {
                let rate = units::bits_per_second(gbps);
                if rate.is_none() {
                    self.report(
                        Problem::at(
                            "memory.bandwidth_gbps",
                            format!("{gbps} Gb/s is not a whole number of bits per second"),
                        )
                        .expected("at most nine decimals"),
                    );
                }
                rate
            }
        };
        Memory {
            bandwidth_bps,
            read_latency: self.latency(
                "memory.read_latency",
                memory.read_latency_ns,
                memory.read_latency_cycles,
                DefaultLatency::Cycles(0),
                0,
            ),
            write_latency: self.latency(
                "memory.write_latency",
                memory.write_latency_ns,
                memory.write_latency_cycles,
                DefaultLatency::Cycles(0),
                0,
            ),
        }
    }

    /// What a family does not have.
    fn family(&mut self, file: &ScenarioFile) {
        let Lacks { keys, place, help } = spec(file.family).lacks();
        if file.link.reliability.is_some() && !matches!(file.family, Family::Armed | Family::Pbv) {
            self.report(
                Problem::at_key("link.reliability", format!("there is no link-layer replay {place}"))
                    .help("family = \"armed\" and \"pbv\" have it"),
            );
        }
        for key in keys {
            if self.source.has(key) {
                let help = jobs::help_with_engine(self.source, key).unwrap_or_else(|| help.to_owned());
                self.report(Problem::at_key(*key, format!("`{key}` means nothing {place}")).help(help));
            }
        }
        let (most, channels) =
            (watershed_pbv_interface::queues::MOST_CHANNELS as u32 - 1, file.switch.point_to_point_vcs);
        if file.family == Family::Pbv && !file.traffic.is_empty() && channels > most {
            let message = format!("{channels} channels of traffic beside the one of frames are too many");
            self.report(Problem::at("switch.point_to_point_vcs", message).expected(format!("up to {most}")));
        }
        if file.family == Family::Pbv && file.traffic.is_empty() {
            for key in [
                "switch.point_to_point_vcs",
                "switch.point_to_point_buffer_flits",
                "switch.router.switch_allocator",
                "switch.router.allocator_iterations",
                "switch.router.input_speedup",
            ] {
                if self.source.has(key) {
                    let problem = Problem::at_key(key, format!("`{key}` means nothing {place} without [[traffic]]"));
                    self.report(problem.help("frames travel on one channel, which keeps them in order"));
                }
            }
        }
        let computes =
            !file.collective.is_empty() || !file.host.is_empty() || !file.program.is_empty() || file.workload.is_some();
        if matches!(file.family, Family::Piuma | Family::Fabric) && !computes {
            for (key, what) in [
                ("memory", "packets of traffic come from no memory"),
                ("checks.oracle", "traffic has no results to compare"),
                ("checks.claims", "there are no collectives to take turns"),
            ] {
                if self.source.has(key) {
                    let problem = Problem::at_key(key, format!("`{key}` means nothing here: {what}"));
                    self.report(problem.help("it is for collectives, programs, hosts and workloads"));
                }
            }
        }
    }

    /// A job whose start is beyond the limit of cycles never starts.
    fn starts(&mut self, file: &ScenarioFile) {
        let at = |list: &str, index: usize| format!("{list}[{index}].start_cycle");
        let mut starts: Vec<(String, u64)> = Vec::new();
        starts.extend(file.collective.iter().enumerate().map(|(index, of)| (at("collective", index), of.start_cycle)));
        starts.extend(file.program.iter().enumerate().map(|(index, of)| (at("program", index), of.start_cycle)));
        starts.extend(file.host.iter().enumerate().map(|(index, of)| (at("host", index), of.start_cycle)));
        starts.extend(file.traffic.iter().enumerate().map(|(index, of)| (at("traffic", index), of.start_cycle)));
        let reductions = file.armed.iter().flat_map(|armed| &armed.reduction).enumerate();
        starts.extend(reductions.map(|(index, of)| (at("armed.reduction", index), of.start_cycle)));
        if let Some(pbv) = &file.pbv {
            let collectives = pbv.collective.iter().enumerate();
            starts.extend(collectives.map(|(index, of)| (at("pbv.collective", index), of.start_cycle.or(0))));
            starts.push(("pbv.setup.initialise_cycle".into(), pbv.setup.initialise_cycle.or(0)));
            let asked = pbv.congestion.iter().enumerate();
            starts.extend(asked.map(|(index, of)| (format!("pbv.congestion[{index}].cycle"), of.cycle)));
        }
        let most = file.limits.max_cycles;
        for (path, start) in starts {
            if start >= most {
                self.report(
                    Problem::at(path, format!("cycle {start} never comes: the run is given up in cycle {most}"))
                        .expected(format!("a cycle below {most}"))
                        .help("`limits.max_cycles` says when a run is given up"),
                );
            }
        }
    }

    /// Multicast trees and programs.
    fn programs(&mut self, file: &ScenarioFile, topology: &Topology) -> Option<Programs> {
        // Of a workload the ranks call collectives.
        let called = file.workload.is_none() && file.collective.iter().any(|collective| collective.called);
        if file.core.is_none() && file.multicast.is_empty() && file.program.is_empty() && !called {
            return None;
        }
        let mut multicasts = Vec::new();
        for (index, given) in file.multicast.iter().enumerate() {
            let ids = file.switch.collective_ids;
            let mut multicast = programs::multicast(given, index, ids, topology, &mut self.problems);
            let path = format!("multicast[{index}].registers");
            multicast.registers = given.registers.as_ref().map(|given| self.registers(given, &path, topology));
            let takes = |of: &CollectiveFile| segments::ids(of).contains(&given.id);
            if let Some(at) = file.collective.iter().position(takes) {
                let message = format!("id {} belongs to a collective", given.id);
                self.report(
                    Problem::at(format!("multicast[{index}].id"), message)
                        .expected("an id that no collective has")
                        .related(format!("collective[{at}].id"), "that one"),
                );
            }
            multicasts.push(multicast);
        }
        let texts = file.program.iter().enumerate();
        let texts = texts
            .map(|(index, given)| programs::text(given, index, self.base, topology, self.source, &mut self.problems));
        let texts = texts.collect();
        let core = file.core.clone().unwrap_or_default();
        Some(Programs { core, multicasts, programs: texts })
    }
}

/// A latency that is not given.
#[derive(Clone, Copy)]
enum DefaultLatency {
    Ns(f64),
    Cycles(u64),
}

/// Cycles of one link or memory, at most.
const MAX_LATENCY: u64 = 1 << 14;

/// Bits of a word, and of a flit that carries one.
const WORD_BITS: u32 = 64;

/// Ports of a switch without its engine, at most: a set of ports is one word, and the engine takes one bit.
const MOST_PORTS: u32 = 63;

/// The number in `I7` or `P7`.
fn port_number(text: &str, letter: char) -> Option<u16> {
    let digits = text.strip_prefix(letter)?;
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    plain.then(|| digits.parse().ok()).flatten()
}

/// A number of channels, for a sentence.
fn counted_channels(channels: u32) -> String {
    if channels == 1 { "and there is 1".to_owned() } else { format!("and there are {channels}") }
}

/// A count that may have been saturated.
fn saturated_count(count: u128) -> String {
    if count > 1 << 100 { "more than 10^30".to_owned() } else { count.to_string() }
}
