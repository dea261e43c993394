//! From the scenario as written to the configuration: cross-field rules, units, derived values, limits.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::config::{
    self, Ceng, Clock, Collective, Data, Flow, Injection, Latency, Link, Memory, Participants, Rate, Rounding, Router,
    Scenario, Switch, SwitchPort, SwitchRegisters, Topology, Traffic, TrafficPattern, Tree, Wave,
};
use super::file::{
    AlgorithmFile, AutoOr, Bandwidth, CollectiveFile, CollectiveKind, DelayFile, Distribution, Family, FlowFile,
    InjectionKind, LengthsFile, PacketFlits, ParticipantsFile, Pattern, ScenarioFile, SwitchAllocator,
    SwitchRegistersFile, TopologyFile, TopologyKind, TrafficFile, VcAllocator,
};
use super::names::{self, Accumulate, DType, Named, Op, Round};
use super::problem::Problem;
use super::programs::config::{self as programs, Programs};
use super::random::Stream;
use super::source::{Source, alternatives, child};
use super::{limits, segments, shipped, trace, units};
use watershed_fabric::Pipeline;
use watershed_fabric::routing::Algorithm;
use watershed_fabric::topology::{
    Die, Dragonfly, FatTree, GenericTree, Graph, HyperX, Lengths, Mesh, Nodes, Shape, Torus, Wiring,
};
use watershed_fabric::traffic::{Permutation, Process};

/// Checks what the schema cannot and fills in what follows. Returns the configuration only if nothing is wrong.
pub(crate) fn resolve(
    file: &ScenarioFile,
    source: &Source,
    base: &Path,
    stem: &str,
    graph: Option<Arc<Graph>>,
) -> Result<Scenario, Vec<Problem>> {
    let mut resolver = Resolver { source, base, graph, hertz: 1, problems: Vec::new(), roundings: Vec::new() };
    let scenario = resolver.scenario(file, stem);
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
    hertz: u64,
    problems: Vec<Problem>,
    roundings: Vec<Rounding>,
}

impl Resolver<'_> {
    fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn scenario(&mut self, file: &ScenarioFile, stem: &str) -> Option<Scenario> {
        self.exclusive_keys(file);
        let clock = self.clock(file);
        let link = self.link(file);
        self.foreign_link_keys(file);
        let memory = self.memory(file);
        self.family(file);
        self.flit(file);
        self.address(file);
        self.starts(file);
        // Names and numbers of everything below hang on the shape: without one there is nothing more to say.
        let topology = self.topology(file, &link)?;
        let routing = self.routing(file, &topology.shape);
        let radix = file.switch.ceng.radix.or(topology.ports());
        let switch = Switch {
            pipeline_stages: file.switch.pipeline_stages,
            arbiter: file.switch.arbiter,
            collective_ids: file.switch.collective_ids,
            point_to_point_vcs: self.channels(file, &topology.shape),
            point_to_point_buffer_flits: file.switch.point_to_point_buffer_flits,
            collective_buffer_flits: file.switch.collective_buffer_flits,
            router: self.router(file, &topology),
            ceng: Ceng {
                stages: file.switch.ceng.stages,
                radix,
                operand_slots: file.switch.ceng.operand_slots,
                scan_slots: file.switch.ceng.scan_slots,
                result_slots: file.switch.ceng.result_slots,
            },
        };
        self.storage(&switch, &topology, !file.traffic.is_empty());
        let collectives = self.collectives(file, &topology);
        let armed = (file.family == Family::Armed).then(|| {
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
        let pbv = (file.family == Family::Pbv).then(|| {
            let table = file.pbv.clone().unwrap_or_default();
            super::pbv::config::resolve(&table, &topology, file.link.reliability.is_some(), &mut self.problems)
        });
        let traffic = self.traffic(file, &topology);
        self.measure(file, &traffic);
        let wave = Wave {
            signals: file.wave.signals.clone(),
            depth: file.wave.depth,
            from_cycle: file.wave.from_cycle.unwrap_or(0),
            to_cycle: file.wave.to_cycle,
            clock: file.wave.clock,
        };
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
        super::snapshot::check(&file.golden, self.source, &mut self.problems);

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
        if file.family == Family::Piuma {
            let levels = u32::BITS - (radix - 1).leading_zeros();
            derived.insert("ceng_levels".to_owned(), json!(levels));
            derived.insert("ceng_latency_cycles".to_owned(), json!(levels * switch.ceng.stages));
        }

        Some(Scenario {
            name: file.name.clone().unwrap_or_else(|| stem.to_owned()),
            about: file.about.clone(),
            family: file.family,
            seed: file.seed,
            clock,
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
            traffic,
            measure: file.measure,
            wave,
            golden: file.golden.clone(),
            armed,
            pbv,
            derived,
            roundings: std::mem::take(&mut self.roundings),
        })
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
        let frequency_mhz = file.clock.frequency_mhz;
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
    fn latency(&mut self, key: &str, ns: Option<f64>, cycles: Option<u64>, default: Default, least: u64) -> Latency {
        let hertz = self.hertz;
        let (ns, path) = match (ns, cycles, default) {
            (_, Some(cycles), _) | (None, None, Default::Cycles(cycles)) => {
                return Latency { cycles, ns: units::nanoseconds(cycles, hertz) };
            }
            (Some(ns), ..) | (None, None, Default::Ns(ns)) => (ns, format!("{key}_ns")),
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
        let link = &file.link;
        let nodes = file.topology.kind == TopologyKind::Nodes;
        Link {
            latency: self.latency("link.latency", link.latency_ns, link.latency_cycles, Default::Ns(5.0), 1),
            local_latency: self.latency(
                "link.local_latency",
                link.local_latency_ns,
                link.local_latency_cycles,
                Default::Cycles(1),
                1,
            ),
            socket_latency: nodes.then(|| {
                let (ns, cycles) = (link.socket_latency_ns, link.socket_latency_cycles);
                self.latency("link.socket_latency", ns, cycles, Default::Ns(25.0), 1)
            }),
            node_latency: nodes.then(|| {
                let (ns, cycles) = (link.node_latency_ns, link.node_latency_cycles);
                self.latency("link.node_latency", ns, cycles, Default::Ns(50.0), 1)
            }),
            flit_bits: link.flit_bits,
            cycles_per_flit: link.cycles_per_flit,
            socket_cycles_per_flit: link.socket_cycles_per_flit,
            node_cycles_per_flit: link.node_cycles_per_flit,
            reliability: link.reliability,
        }
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
                Default::Cycles(0),
                0,
            ),
            write_latency: self.latency(
                "memory.write_latency",
                memory.write_latency_ns,
                memory.write_latency_cycles,
                Default::Cycles(0),
                0,
            ),
        }
    }

    /// What a family does not have.
    fn family(&mut self, file: &ScenarioFile) {
        let (keys, place, help): (&[&str], _, _) = match file.family {
            Family::Piuma => {
                (&["armed", "pbv"], "in the piuma family", "family = \"armed\" and \"pbv\" have these tables")
            }
            Family::Fabric => (
                &[
                    "collective",
                    "switch.ceng",
                    "switch.collective_ids",
                    "switch.collective_buffer_flits",
                    "armed",
                    "core",
                    "multicast",
                    "program",
                    "pbv",
                ],
                "in a plain fabric",
                "family = \"piuma\" has collectives",
            ),
            Family::Armed => (
                &[
                    "collective",
                    "switch.ceng",
                    "switch.collective_ids",
                    "memory",
                    "checks.claims",
                    "traffic",
                    "core",
                    "multicast",
                    "program",
                    "host",
                    "pbv",
                ],
                "in the armed family",
                "its reductions are in [[armed.reduction]]",
            ),
            Family::Pbv => (
                &[
                    "collective",
                    "switch.ceng",
                    "switch.collective_ids",
                    "switch.point_to_point_vcs",
                    "switch.point_to_point_buffer_flits",
                    "switch.router.switch_allocator",
                    "switch.router.allocator_iterations",
                    "switch.router.input_speedup",
                    "memory",
                    "checks.claims",
                    "traffic",
                    "armed",
                    "core",
                    "multicast",
                    "program",
                    "host",
                ],
                "in the pbv family",
                "its collectives are in [[pbv.collective]]; frames travel on one channel, which keeps them in order",
            ),
        };
        if file.link.reliability.is_some() && !matches!(file.family, Family::Armed | Family::Pbv) {
            self.report(
                Problem::at_key("link.reliability", format!("there is no link-layer replay {place}"))
                    .help("family = \"armed\" and \"pbv\" have it"),
            );
        }
        for key in keys {
            if self.source.has(key) {
                self.report(Problem::at_key(*key, format!("`{key}` means nothing {place}")).help(help));
            }
        }
        let computes = !file.collective.is_empty() || !file.host.is_empty() || !file.program.is_empty();
        if matches!(file.family, Family::Piuma | Family::Fabric) && !computes {
            for (key, what) in [
                ("memory", "packets of traffic come from no memory"),
                ("checks.oracle", "traffic has no results to compare"),
                ("checks.claims", "there are no collectives to take turns"),
            ] {
                if self.source.has(key) {
                    let problem = Problem::at_key(key, format!("`{key}` means nothing here: {what}"));
                    self.report(problem.help("it is for collectives, programs and hosts"));
                }
            }
        }
    }

    /// A flit is a word of 64 bits wherever words are reduced or framed: its width is no knob until widths cost time.
    fn flit(&mut self, file: &ScenarioFile) {
        let bits = file.link.flit_bits;
        let (who, abstract_flits) = match file.family {
            Family::Piuma => ("the piuma family", false),
            Family::Armed => ("the armed family", false),
            Family::Pbv => ("the pbv family", false),
            Family::Fabric => ("a host", file.host.is_empty()),
        };
        if bits != WORD_BITS && !abstract_flits {
            self.report(
                Problem::at("link.flit_bits", format!("a flit of {who} carries a word of 64 bits, not {bits}"))
                    .expected("64")
                    .help("a link that is narrower than a flit has `link.cycles_per_flit` of more than 1"),
            );
        }
    }

    /// A frame of the PBV family is routed by its second flit, which has to stand behind the first.
    fn address(&mut self, file: &ScenarioFile) {
        let least = u64::from(watershed_pbv::routes::ROUTE_FLITS);
        if let (Family::Pbv, AutoOr::Fixed(flits)) = (file.family, file.switch.collective_buffer_flits)
            && u64::from(flits) < least
        {
            self.report(
                Problem::at(
                    "switch.collective_buffer_flits",
                    format!("a buffer of {flits} flit never holds a frame's address, which stands in its flit {least}"),
                )
                .expected(format!("{least} or more, or \"auto\"")),
            );
        }
    }

    /// Whoever starts when the run has been given up never starts.
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
            let fixed = |start: AutoOr| u64::from(start.or(0));
            let collectives = pbv.collective.iter().enumerate();
            starts.extend(collectives.map(|(index, of)| (at("pbv.collective", index), fixed(of.start_cycle))));
            starts.push(("pbv.setup.initialise_cycle".into(), fixed(pbv.setup.initialise_cycle)));
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

    fn topology(&mut self, file: &ScenarioFile, link: &Link) -> Option<Topology> {
        let step = link.latency.cycles;
        let topology = &file.topology;
        let kind = topology.kind;
        self.foreign_topology_keys(topology);
        let shape = self.shape(topology, link)?;
        let place = match kind {
            TopologyKind::Die => "topology.tiles",
            TopologyKind::Nodes if topology.size.is_none() => "topology.sockets",
            TopologyKind::Nodes
            | TopologyKind::Mesh
            | TopologyKind::Torus
            | TopologyKind::Hyperx
            | TopologyKind::FlattenedButterfly => "topology.size",
            TopologyKind::FatTree => "topology.levels",
            TopologyKind::Dragonfly => "topology.groups",
            TopologyKind::Tree => "topology.branching",
            TopologyKind::File => "topology.file",
        };
        // Sizes that are given are multiplied in more bits than a number of switches has.
        let product = |factors: &[u64]| factors.iter().fold(1u128, |all, &one| all.saturating_mul(u128::from(one)));
        let switches = match kind {
            TopologyKind::FatTree | TopologyKind::Nodes => shape.switches().map_or(u128::MAX, u128::from),
            _ => topology.size.as_deref().map_or_else(|| shape.switches().map_or(u128::MAX, u128::from), product),
        };
        if switches > u128::from(limits::SWITCHES) {
            self.report(
                Problem::at(place, format!("{} switches are too many", counted(switches)))
                    .expected(format!("up to {} switches", limits::SWITCHES)),
            );
            return None;
        }
        let end_points = shape.end_points().unwrap_or(u64::MAX);
        if end_points > limits::END_POINTS {
            self.report(
                Problem::at(
                    "topology.concentration",
                    format!("{} end points are too many", counted(end_points.into())),
                )
                .expected(format!("up to {} end points", limits::END_POINTS)),
            );
            return None;
        }
        let ports = shape.ports();
        if ports > MOST_PORTS {
            let widest = if topology.concentration.is_some() { "topology.concentration" } else { place };
            self.report(
                Problem::at(widest, format!("{ports} ports a switch are too many")).expected(format!(
                    "up to {MOST_PORTS} ports without the engine: a set of ports is a word of 64 bits"
                )),
            );
            return None;
        }
        if let Shape::Nodes(nodes) = &shape
            && !self.nodes(nodes)
        {
            return None;
        }
        self.latencies(topology, &shape, step);
        Some(Topology { shape, file: topology.file.clone() })
    }

    /// Keys of other topologies.
    fn foreign_topology_keys(&mut self, topology: &TopologyFile) {
        let grid: &[&str] = &["size", "concentration", "latency", "latencies_cycles"];
        let (article, keys): (_, &[&str]) = match topology.kind {
            TopologyKind::Die => ("die", &["tiles", "positions"]),
            TopologyKind::Nodes => {
                ("system of nodes", &["size", "sockets", "tiles", "positions", "hsio_ports", "latency"])
            }
            TopologyKind::Mesh => ("mesh", &["size", "concentration", "latencies_cycles"]),
            TopologyKind::Torus => ("torus", grid),
            TopologyKind::Hyperx | TopologyKind::FlattenedButterfly => ("hyperx", grid),
            TopologyKind::FatTree => ("fat-tree", &["arity", "levels", "concentration", "latencies_cycles"]),
            TopologyKind::Dragonfly => {
                ("dragonfly", &["global_links", "group_switches", "groups", "concentration", "latencies_cycles"])
            }
            TopologyKind::Tree => ("tree", &["branching", "roots"]),
            TopologyKind::File => ("topology of a file", &["file"]),
        };
        let all = [
            ("tiles", topology.tiles.is_some()),
            ("positions", topology.positions.is_some()),
            ("sockets", topology.sockets.is_some()),
            ("hsio_ports", topology.hsio_ports.is_some()),
            ("size", topology.size.is_some()),
            ("concentration", topology.concentration.is_some()),
            ("latency", topology.latency.is_some()),
            ("latencies_cycles", topology.latencies_cycles.is_some()),
            ("arity", topology.arity.is_some()),
            ("levels", topology.levels.is_some()),
            ("global_links", topology.global_links.is_some()),
            ("group_switches", topology.group_switches.is_some()),
            ("groups", topology.groups.is_some()),
            ("branching", topology.branching.is_some()),
            ("roots", topology.roots.is_some()),
            ("file", topology.file.is_some()),
        ];
        for (key, _) in all.iter().filter(|(key, given)| *given && !keys.contains(key)) {
            let problem = Problem::at_key(format!("topology.{key}"), format!("a {article} has no `{key}`"));
            self.report(problem.expected(names::one_of(keys.iter().map(|key| format!("`{key}`")))));
        }
        if topology.kind == TopologyKind::Torus || topology.latency != Some(LengthsFile::Folded) {
            return;
        }
        if matches!(topology.kind, TopologyKind::Nodes | TopologyKind::Hyperx | TopologyKind::FlattenedButterfly) {
            let problem = Problem::at("topology.latency", "a hyperx has no rings to fold");
            self.report(problem.expected("\"equal\" or \"distance\""));
        }
    }

    /// The shape of the keys that are given. Sizes may still be too big.
    fn shape(&mut self, topology: &TopologyFile, link: &Link) -> Option<Shape> {
        let missing = |key: &str, what: &str, expected: &str| {
            Problem::at(format!("topology.{key}"), format!("`topology.{key}` is missing: {what}")).expected(expected)
        };
        let concentration = |default: u64| topology.concentration.unwrap_or(default) as u16;
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let latencies: Vec<u16> = topology.latencies_cycles.iter().flatten().map(|&cycles| cycles as u16).collect();
        let lengths = match topology.latency {
            None | Some(LengthsFile::Equal) => Lengths::Equal,
            Some(LengthsFile::Distance) => Lengths::Distance,
            Some(LengthsFile::Folded) => Lengths::Folded,
        };
        let wiring = Wiring { latencies, lengths };
        Some(match topology.kind {
            TopologyKind::Die => Shape::Die(Die {
                tiles: topology.tiles.unwrap_or(4) as u16,
                positions: topology.positions.unwrap_or(4) as u16,
            }),
            TopologyKind::Nodes => Shape::Nodes(Nodes {
                size: topology.size.iter().flatten().map(|&side| small(side)).collect(),
                sockets: topology.sockets.unwrap_or(16) as u32,
                die: Die {
                    tiles: topology.tiles.unwrap_or(4) as u16,
                    positions: topology.positions.unwrap_or(4) as u16,
                },
                hsio_ports: topology.hsio_ports.unwrap_or(2) as u16,
                socket_latency: link.socket_latency.map_or(1, |latency| latency.cycles as u16),
                node_latency: link.node_latency.map_or(1, |latency| latency.cycles.min(u64::from(u16::MAX)) as u16),
                socket_width: link.socket_cycles_per_flit.unwrap_or(link.cycles_per_flit) as u16,
                node_width: link.node_cycles_per_flit.unwrap_or(link.cycles_per_flit) as u16,
                distance: lengths == Lengths::Distance,
            }),
            TopologyKind::Mesh | TopologyKind::Torus | TopologyKind::Hyperx | TopologyKind::FlattenedButterfly => {
                let Some(given) = &topology.size else {
                    let what = format!("a {} has no default size", topology.kind.name());
                    self.report(missing("size", &what, "the switches along each dimension, for example [4, 4]"));
                    return None;
                };
                let size: Vec<u32> = given.iter().map(|&side| small(side)).collect();
                let concentration = concentration(1);
                if topology.kind == TopologyKind::Torus
                    && let Some(at) = given.iter().position(|&side| side > u64::from(u16::MAX))
                    && given.iter().all(|&side| side <= limits::SWITCHES)
                {
                    let problem = Problem::at(format!("topology.size[{at}]"), "a ring cannot be so long");
                    self.report(problem.expected(format!("up to {} switches a ring", u16::MAX)));
                    return None;
                }
                match topology.kind {
                    TopologyKind::Mesh => Shape::Mesh(Mesh { size, concentration }, wiring),
                    TopologyKind::Torus => Shape::Torus(Torus { size, concentration, wiring }),
                    _ => Shape::HyperX(HyperX { size, concentration, wiring }),
                }
            }
            TopologyKind::FatTree => {
                let (Some(arity), Some(levels)) = (topology.arity, topology.levels) else {
                    let key = if topology.arity.is_none() { "arity" } else { "levels" };
                    let expected = "a k-ary n-tree by `arity` = k and `levels` = n, for example 4 and 3";
                    self.report(missing(key, "a fat-tree has no default size", expected));
                    return None;
                };
                let concentration = concentration(arity);
                Shape::FatTree(FatTree { arity: arity as u16, levels: levels as u32, concentration, wiring })
            }
            TopologyKind::Dragonfly => {
                let global = topology.global_links.unwrap_or(2);
                let group = topology.group_switches.unwrap_or(2 * global);
                let most = group * global + 1;
                let groups = topology.groups.unwrap_or(most);
                if groups > most {
                    self.report(
                        Problem::at("topology.groups", format!("{groups} groups cannot all be joined"))
                            .expected(format!("up to {most}: a group has {group} x {global} global links")),
                    );
                    return None;
                }
                Shape::Dragonfly(Dragonfly {
                    switches_per_group: small(group),
                    global: small(global),
                    groups: small(groups),
                    concentration: concentration(global),
                    wiring,
                })
            }
            TopologyKind::Tree => {
                let Some(branching) = &topology.branching else {
                    let expected = "children of a switch of each level, the last counts end points: [4, 4]";
                    self.report(missing("branching", "a tree has no default shape", expected));
                    return None;
                };
                Shape::Tree(GenericTree {
                    branching: branching.iter().map(|&b| b as u16).collect(),
                    roots: topology.roots.unwrap_or(1) as u16,
                })
            }
            TopologyKind::File => {
                let Some(graph) = &self.graph else {
                    self.report(missing(
                        "file",
                        "a topology of a file needs its name",
                        "a TOML file of switches and links",
                    ));
                    return None;
                };
                Shape::Graph(Arc::clone(graph))
            }
        })
    }

    /// Whether latencies are as many as there are kinds of links, and no longer than a link can be.
    fn latencies(&mut self, topology: &TopologyFile, shape: &Shape, step: u64) {
        let (kinds, what, wiring, sides): (usize, _, _, &[u32]) = match shape {
            Shape::Mesh(mesh, wiring) => (mesh.size.len(), "dimensions", wiring, &mesh.size),
            Shape::Torus(torus) => (torus.size.len(), "dimensions", &torus.wiring, &torus.size),
            Shape::HyperX(hyperx) => (hyperx.size.len(), "dimensions", &hyperx.wiring, &hyperx.size),
            Shape::FatTree(tree) => (tree.levels as usize - 1, "levels above the leaves", &tree.wiring, &[]),
            Shape::Dragonfly(dragonfly) => (2, "kinds of links, in and between groups,", &dragonfly.wiring, &[]),
            Shape::Die(_) | Shape::Nodes(_) | Shape::Tree(_) | Shape::Graph(_) => return,
        };
        if let Some(list) = &topology.latencies_cycles
            && list.len() != kinds
        {
            let message = format!("{} latencies for {kinds} {what}", list.len());
            self.report(
                Problem::at("topology.latencies_cycles", message.trim_end_matches(',')).expected("one for each"),
            );
        }
        let longest = wiring.longest(step, sides);
        if longest > MAX_LATENCY && step <= MAX_LATENCY {
            self.report(
                Problem::at("topology.latency", format!("the longest link takes {longest} cycles, too many"))
                    .expected(format!("up to {MAX_LATENCY} cycles")),
            );
        }
    }

    /// Whether the ports that leave the dies of a node suffice (requirement P-TOPO-4), and no link is too long.
    fn nodes(&mut self, nodes: &Nodes) -> bool {
        let budget = nodes.budget();
        if !budget.suffices {
            let place =
                if self.source.has("topology.size") && budget.nodes > 0 { "topology.size" } else { "topology.sockets" };
            let free = budget.ports.saturating_sub(budget.sockets);
            let message = format!(
                "a node would need {} HSIO ports for other nodes and {} for its sockets, it has {}",
                budget.nodes, budget.sockets, budget.ports
            );
            let expected = if budget.ports < budget.sockets {
                format!("up to {} sockets, or more `topology.hsio_ports`", budget.ports / u64::from(nodes.sockets) + 1)
            } else {
                format!("sides whose sum is at most {}, or more `topology.hsio_ports`", free + nodes.size.len() as u64)
            };
            self.report(Problem::at(place, message).expected(expected));
            return false;
        }
        // One that is too long by itself has been told.
        if nodes.longest() > MAX_LATENCY && u64::from(nodes.node_latency) <= MAX_LATENCY {
            self.report(
                Problem::at("topology.latency", format!("the longest link takes {} cycles, too many", nodes.longest()))
                    .expected(format!("up to {MAX_LATENCY} cycles")),
            );
        }
        true
    }

    /// Latencies of links that a topology does not have.
    fn foreign_link_keys(&mut self, file: &ScenarioFile) {
        if file.topology.kind == TopologyKind::Nodes {
            return;
        }
        let keys = ["latency_ns", "latency_cycles", "cycles_per_flit"];
        for key in ["socket", "node"].iter().flat_map(|level| keys.map(|key| format!("{level}_{key}"))) {
            let path = format!("link.{key}");
            if self.source.has(&path) {
                let kind = file.topology.kind.name();
                let problem = Problem::at_key(path, format!("the topology \"{kind}\" has no such links"));
                self.report(problem.expected("the topology \"nodes\""));
            }
        }
    }

    fn routing(&mut self, file: &ScenarioFile, shape: &Shape) -> Option<config::Routing> {
        let given = file.routing.algorithm.map(|algorithm| match algorithm {
            AlgorithmFile::DimensionOrder => Algorithm::DimensionOrder,
            AlgorithmFile::MinimalRandom => Algorithm::MinimalRandom,
            AlgorithmFile::Valiant => Algorithm::Valiant,
            AlgorithmFile::Adaptive => Algorithm::Adaptive,
        });
        if file.family != Family::Fabric {
            if self.source.has("routing") {
                self.report(
                    Problem::at_key("routing", "`routing` can be chosen in a plain fabric only")
                        .help("packets beside collectives go in dimension order"),
                );
            }
            return None;
        }
        let all = Algorithm::of(shape);
        let algorithm = given.unwrap_or(all[0]);
        if !all.contains(&algorithm) {
            let kind = file.topology.kind.name();
            self.report(
                Problem::at(
                    "routing.algorithm",
                    format!("there is no {} routing for the topology \"{kind}\"", algorithm.name()),
                )
                .expected(names::one_of(all.iter().map(|algorithm| format!("\"{}\"", algorithm.name())))),
            );
        }
        Some(config::Routing { algorithm })
    }

    /// Storage that grows with depth times ports times switches.
    /// The router's knobs, the steps of its pipeline made explicit.
    fn router(&mut self, file: &ScenarioFile, topology: &Topology) -> Router {
        let mut router = file.switch.router.clone();
        let preset = Pipeline::new(file.switch.pipeline_stages.clamp(1, 4) as u8);
        router.route_cycles.get_or_insert(preset.route.into());
        router.vc_alloc_cycles.get_or_insert(preset.vc_alloc.into());
        router.switch_alloc_cycles.get_or_insert(preset.switch_alloc.into());
        router.traversal_cycles.get_or_insert(preset.traversal.into());
        if router.speculative && router.vc_alloc_cycles == Some(0) {
            self.report(
                Problem::at("switch.router.speculative", "there is nothing to speculate on: channels are allocated in the cycle of switch allocation already")
                    .expected("`switch.pipeline_stages` of 3 or 4, or `switch.router.vc_alloc_cycles` of at least 1"),
            );
        }
        if router.allocator_iterations > 1
            && router.vc_allocator != VcAllocator::Islip
            && router.switch_allocator != SwitchAllocator::Islip
        {
            self.report(
                Problem::at("switch.router.allocator_iterations", "neither allocator works in rounds")
                    .expected("1, or an allocator that is \"islip\""),
            );
        }
        let passages = (topology.ports() + 1) * router.input_speedup;
        if u64::from(passages) > limits::PASSAGES {
            self.report(
                Problem::at("switch.router.input_speedup", format!("{passages} input passages a switch are too many"))
                    .expected(format!("up to {}: ports x speed-up", limits::PASSAGES)),
            );
        }
        router
    }

    /// Point-to-point channels; a system of nodes has as many as its routing needs if nothing is said.
    fn channels(&mut self, file: &ScenarioFile, shape: &Shape) -> u32 {
        let given = file.switch.point_to_point_vcs;
        let Shape::Nodes(nodes) = shape else { return given };
        let needed = u32::from(nodes.classes());
        if !self.source.has("switch.point_to_point_vcs") {
            return needed;
        }
        if given < needed {
            let message = format!(
                "{needed} classes of point-to-point packets need as many channels, {}",
                counted_channels(given)
            );
            self.report(
                Problem::at("switch.point_to_point_vcs", message).expected(format!(
                    "{needed} or more: one class more than links that leave a die on the longest way"
                )),
            );
        }
        given
    }

    fn storage(&mut self, switch: &Switch, topology: &Topology, traffic: bool) {
        let ports = u128::from(topology.ports() + 1) * u128::from(topology.switches());
        // In a system of nodes equal registers stand once, and without traffic there are no point-to-point channels.
        let nodes = matches!(topology.shape, Shape::Nodes(_));
        let registers = if nodes {
            u128::from(topology.switches()) * u128::from(switch.collective_ids)
        } else {
            ports * u128::from(switch.collective_ids) * 2
        };
        let channels = if nodes && !traffic { 0 } else { switch.point_to_point_vcs };
        if registers > u128::from(limits::REGISTERS) {
            self.report(
                Problem::at("switch.collective_ids", format!("{registers} configuration registers are too many"))
                    .expected(format!("up to {} in the whole system: ids x ports x 2", limits::REGISTERS)),
            );
        }
        let fixed = |depth: AutoOr| u128::from(depth.or(0));
        let buffers = [
            (
                "switch.point_to_point_buffer_flits",
                u128::from(channels) * u128::from(switch.point_to_point_buffer_flits) * ports,
            ),
            ("switch.collective_buffer_flits", 2 * fixed(switch.collective_buffer_flits) * ports),
            ("switch.ceng.operand_slots", u128::from(switch.ceng.operand_slots) * ports),
            ("switch.ceng.result_slots", fixed(switch.ceng.result_slots) * u128::from(topology.switches())),
        ];
        for (path, flits) in buffers {
            if flits > u128::from(limits::BUFFER_FLITS) {
                self.report(
                    Problem::at(path, format!("buffers for {flits} flits are too many")).expected(format!(
                        "up to {} in the whole system: depth x channels x ports",
                        limits::BUFFER_FLITS
                    )),
                );
            }
        }
    }

    // ---- collectives -----------------------------------------------------------------------------------------------

    fn collectives(&mut self, file: &ScenarioFile, topology: &Topology) -> Vec<Collective> {
        let mut names = BTreeMap::new();
        let mut total = 0u128;
        let mut resolved = Vec::new();
        for (index, collective) in file.collective.iter().enumerate() {
            let path = format!("collective[{index}]");
            let name = collective.name.clone().unwrap_or_else(|| format!("c{index}"));
            self.unique(&mut names, &name, &path);
            if collective.id >= file.switch.collective_ids {
                self.report(
                    Problem::at(format!("{path}.id"), format!("the switches have no collective id {}", collective.id))
                        .expected(format!("an id from 0 to {}", file.switch.collective_ids - 1))
                        .help("`switch.collective_ids` is how many there are"),
                );
            }
            let before = self.problems.len();
            let collective = self.collective(collective, index, name, &path, file, topology);
            let volume = u128::from(collective.elements) * collective.rows().max(1) as u128;
            total = total.saturating_add(volume);
            if total > u128::from(limits::CONTRIBUTIONS) && self.problems.len() == before {
                self.report(
                    Problem::at(
                        format!("{path}.elements"),
                        format!("{} elements from all participants are too many", counted(total)),
                    )
                    .expected(format!(
                        "up to {} in the whole scenario: elements x participants",
                        limits::CONTRIBUTIONS
                    )),
                );
            }
            resolved.push(collective);
        }
        resolved
    }

    fn unique(&mut self, names: &mut BTreeMap<String, String>, name: &str, path: &str) {
        if let Some(first) = names.insert(name.to_owned(), path.to_owned()) {
            self.report(
                Problem::at(format!("{path}.name"), format!("the name \"{name}\" is taken"))
                    .related(format!("{first}.name"), "by this one"),
            );
        }
    }

    fn collective(
        &mut self,
        file: &CollectiveFile,
        index: usize,
        name: String,
        path: &str,
        scenario: &ScenarioFile,
        topology: &Topology,
    ) -> Collective {
        let kind = file.kind;
        let (op, dtype, round) = self.operation(file, path);
        let (accumulate, result_stays_wide) = self.accumulate(file, path, dtype);
        let elements = self.elements(file, path);
        let participants = self.participants(file, path, topology);
        let (delays, delay_random_max) = self.delays(file, path, index, participants.len(), scenario.seed);
        let source = file.source.unwrap_or(0);
        if file.source.is_some() && kind != CollectiveKind::Broadcast {
            self.report(Problem::at_key(format!("{path}.source"), "only a broadcast has a source"));
        } else if source as usize >= participants.len() && !participants.is_empty() {
            self.report(
                Problem::at(format!("{path}.source"), format!("there is no participant {source}"))
                    .expected(format!("an index from 0 to {} into the participants", participants.len() - 1)),
            );
        }
        if let Some(receiver) = file.receiver {
            let receiver_path = format!("{path}.receiver");
            if kind != CollectiveKind::Reduce {
                self.report(Problem::at_key(receiver_path, "only a reduce has a receiver"));
            } else if receiver >= topology.end_points() {
                self.report(
                    Problem::at(receiver_path, format!("there is no end point {receiver}"))
                        .expected(format!("0 to {}", topology.end_points() - 1)),
                );
            }
        }
        if file.inclusive.is_some() && kind != CollectiveKind::Scan {
            self.report(Problem::at_key(format!("{path}.inclusive"), "only a scan is inclusive or exclusive"));
        }
        let rows = match kind {
            CollectiveKind::Allreduce | CollectiveKind::Reduce | CollectiveKind::Scan => participants.len(),
            CollectiveKind::Broadcast => 1,
            CollectiveKind::Barrier => 0,
        };
        let data = if file.called {
            self.called(file, path);
            Data::None
        } else {
            self.data(file, path, dtype, elements, rows)
        };
        let tree = self.tree(file, path, topology);
        Collective {
            name,
            kind,
            id: file.id,
            op,
            dtype,
            accumulate,
            result_stays_wide,
            round,
            elements,
            participants,
            root: match tree {
                Tree::Auto | Tree::Root(_) => Some(file.root.clone().unwrap_or_else(|| "auto".to_owned())),
                Tree::Registers(_) => None,
            },
            tree,
            inclusive: file.inclusive.unwrap_or(true),
            called: file.called,
            start_cycle: file.start_cycle,
            delays,
            delay_random_max,
            source,
            receiver: file.receiver,
            segments: segments::checked(
                file,
                path,
                (dtype, elements, scenario.switch.collective_ids),
                &mut self.problems,
            ),
            plane: file.plane,
            data,
        }
    }

    /// What programs say of a collective that they call, its table cannot.
    fn called(&mut self, file: &CollectiveFile, path: &str) {
        for key in ["elements", "data", "start_cycle", "delay_cycles"] {
            if self.source.has(&format!("{path}.{key}")) {
                let message = format!("programs call this collective: `{key}` is theirs to say");
                let called = format!("{path}.called");
                self.report(Problem::at_key(format!("{path}.{key}"), message).related(called, "said here"));
            }
        }
        if file.receiver.is_some_and(|receiver| match &file.participants {
            ParticipantsFile::All => false,
            ParticipantsFile::List(list) => !list.contains(&u64::from(receiver)),
        }) {
            self.report(
                Problem::at(format!("{path}.receiver"), "who receives must call the collective, too")
                    .expected("one of the participants"),
            );
        }
    }

    /// Multicast trees and programs.
    fn programs(&mut self, file: &ScenarioFile, topology: &Topology) -> Option<Programs> {
        let called = file.collective.iter().any(|collective| collective.called);
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

    fn operation(&mut self, file: &CollectiveFile, path: &str) -> (Option<Op>, DType, Round) {
        let dtype = file.dtype.as_deref().and_then(DType::from_name).unwrap_or(DType::F64);
        let round = file.round.as_deref().and_then(Round::from_name).unwrap_or_default();
        let given = file.op.as_deref().and_then(Op::from_name);
        let op_path = format!("{path}.op");
        let op = match file.kind {
            CollectiveKind::Broadcast => {
                if given.is_some() {
                    self.report(Problem::at(op_path, "a broadcast has no operation"));
                }
                None
            }
            CollectiveKind::Barrier => {
                if given.is_some_and(|op| op != Op::Barrier) {
                    self.report(
                        Problem::at(op_path, "a barrier carries no data to operate on").expected("\"barrier\""),
                    );
                }
                Some(Op::Barrier)
            }
            CollectiveKind::Allreduce | CollectiveKind::Reduce | CollectiveKind::Scan => {
                let op = given.unwrap_or(Op::Sum);
                if op == Op::Barrier {
                    self.report(
                        Problem::at(op_path, "the operation \"barrier\" reduces nothing")
                            .help("a barrier is `kind = \"barrier\"`"),
                    );
                } else if let Err(reason) = names::supports(op, dtype) {
                    let legal = DType::NAMES
                        .iter()
                        .filter(|(_, dtype)| names::supports(op, *dtype).is_ok())
                        .map(|(name, _)| format!("\"{name}\""));
                    self.report(
                        Problem::at(
                            op_path,
                            format!("there is no \"{}\" for {}: the operation {reason}", op.name(), dtype.name()),
                        )
                        .expected(format!("a dtype of {}", names::one_of(legal))),
                    );
                }
                Some(op)
            }
        };
        (op, dtype, round)
    }

    /// The wider type in which a reduction sums, and whether its result stays in it.
    fn accumulate(&mut self, file: &CollectiveFile, path: &str, dtype: DType) -> (Option<Accumulate>, bool) {
        let named = |name: &Option<String>| name.as_deref().and_then(DType::from_name);
        let quoted = |dtype: DType| format!("\"{}\"", Named::name(dtype));
        let (accumulate_path, result_path) = (format!("{path}.accumulate"), format!("{path}.result_dtype"));
        let mut pair = None;
        if let Some(wide) = named(&file.accumulate) {
            let wider = Accumulate::ALL.iter().filter(|pair| pair.operand() == dtype);
            let wider: Vec<String> = wider.map(|pair| quoted(pair.accumulator())).collect();
            pair = Accumulate::new(dtype, wide);
            if !matches!(file.kind, CollectiveKind::Allreduce | CollectiveKind::Reduce) {
                let message = format!("a {} accumulates nothing", file.kind.name());
                self.report(Problem::at_key(&accumulate_path, message));
            } else if wider.is_empty() {
                let message = format!("{} is summed in its own type only", Named::name(dtype));
                let expected = "no `accumulate`, or a dtype of \"f16\", \"bf16\", \"fp8_e4m3\" or \"fp8_e5m2\"";
                self.report(Problem::at(&accumulate_path, message).expected(expected));
            } else if pair.is_none() {
                let message = format!("{} does not accumulate in {}", Named::name(dtype), Named::name(wide));
                self.report(Problem::at(&accumulate_path, message).expected(names::one_of(wider)));
            }
        }
        let Some(result) = named(&file.result_dtype) else { return (pair, false) };
        let wide = pair.map(Accumulate::accumulator);
        if result != dtype && Some(result) != wide && (file.accumulate.is_none() || pair.is_some()) {
            let types = [Some(dtype), wide];
            let problem =
                Problem::at(result_path, format!("the results of this collective are no {}", Named::name(result)))
                    .expected(names::one_of(types.into_iter().flatten().map(quoted)));
            let hint = "a type wider than that of the elements is the one named by `accumulate`";
            self.report(if wide.is_none() { problem.help(hint) } else { problem });
        }
        (pair, Some(result) == wide)
    }

    fn elements(&mut self, file: &CollectiveFile, path: &str) -> u64 {
        let elements_path = format!("{path}.elements");
        let barrier = file.kind == CollectiveKind::Barrier;
        let elements = file.elements.unwrap_or(u64::from(!barrier));
        if barrier && elements != 0 {
            self.report(Problem::at(elements_path, "a barrier has no elements").expected("0, or nothing"));
            return 0;
        }
        if !barrier && elements == 0 {
            self.report(Problem::at(elements_path, "only a barrier has no elements").expected("1 or more"));
            return 1;
        }
        elements
    }

    fn participants(&mut self, file: &CollectiveFile, path: &str, topology: &Topology) -> Participants {
        let end_points = topology.end_points();
        match &file.participants {
            ParticipantsFile::All => Participants { list: (0..end_points).collect(), all: true },
            ParticipantsFile::List(given) => {
                let mut first_at = BTreeMap::new();
                let mut list = Vec::with_capacity(given.len().min(end_points as usize));
                for (index, end_point) in given.iter().enumerate() {
                    let here = format!("{path}.participants[{index}]");
                    if *end_point >= u64::from(end_points) {
                        self.report(
                            Problem::at(here, format!("there is no end point {end_point}"))
                                .expected(format!("an end point from 0 to {}", end_points - 1)),
                        );
                    } else if let Some(first) = first_at.insert(*end_point, index) {
                        self.report(
                            Problem::at(here, format!("end point {end_point} takes part twice"))
                                .related(format!("{path}.participants[{first}]"), "here already"),
                        );
                    } else {
                        list.push(*end_point as u32);
                    }
                }
                Participants { list, all: false }
            }
        }
    }

    fn delays(
        &mut self,
        file: &CollectiveFile,
        path: &str,
        index: usize,
        participants: usize,
        seed: u64,
    ) -> (Vec<u64>, Option<u64>) {
        match &file.delay_cycles {
            DelayFile::Same(delay) => (vec![*delay; participants], None),
            DelayFile::Each(list) => {
                if list.len() != participants {
                    self.report(
                        Problem::at(
                            format!("{path}.delay_cycles"),
                            format!("{} delays for {participants} participants", list.len()),
                        )
                        .expected("one number for all, or one for each"),
                    );
                }
                (list.clone(), None)
            }
            DelayFile::Random { random_max } => {
                let delays = (0..participants)
                    .map(|participant| Stream::delays(seed, index, participant).below(random_max + 1))
                    .collect();
                (delays, Some(*random_max))
            }
        }
    }

    fn data(&mut self, file: &CollectiveFile, path: &str, dtype: DType, elements: u64, rows: usize) -> Data {
        let data_path = format!("{path}.data");
        if file.kind == CollectiveKind::Barrier {
            if file.data.is_some() {
                self.report(Problem::at_key(data_path, "a barrier has no data"));
            }
            return Data::None;
        }
        let Some(data) = &file.data else {
            let float = matches!(names::layout(dtype), names::Layout::Float { .. });
            return Data::Random(if float { Distribution::Normal } else { Distribution::Integers });
        };
        if let Some(distribution) = data.random {
            return Data::Random(distribution);
        }
        if let Some(values) = &data.values {
            let values_path = format!("{data_path}.values");
            if values.len() != rows {
                let who = if file.kind == CollectiveKind::Broadcast {
                    "one, that of the source".to_owned()
                } else {
                    format!("{rows}, one a participant")
                };
                self.report(Problem::at(&values_path, format!("{} rows of values", values.len())).expected(who));
            }
            for (index, row) in values.iter().enumerate() {
                let row_path = format!("{values_path}[{index}]");
                if row.len() as u64 != elements {
                    self.report(
                        Problem::at(&row_path, format!("{} values for {elements} elements", row.len()))
                            .expected("as many values as `elements` says"),
                    );
                }
                for (element, number) in row.iter().enumerate() {
                    if let Err(reason) = super::number::parse(&number.0, names::layout(dtype)) {
                        self.report(
                            Problem::at(
                                format!("{row_path}[{element}]"),
                                format!("{} is no {}: {reason}", number.0, dtype.name()),
                            )
                            .expected(super::number::describe(names::layout(dtype))),
                        );
                    }
                }
            }
            return Data::Values(values.clone());
        }
        if let Some(name) = &data.file {
            let full = self.base.join(name);
            let file_path = format!("{data_path}.file");
            let extension = full.extension().and_then(|e| e.to_str()).unwrap_or("");
            if !["npy", "csv", "hex"].contains(&extension) {
                self.report(
                    Problem::at(&file_path, format!("\"{name}\" is no data file"))
                        .expected("a name that ends in .npy, .csv or .hex"),
                );
            } else if let Err(error) = shipped::len(&full) {
                let reason = match error.kind() {
                    std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                    _ => error.to_string(),
                };
                self.report(
                    Problem::at(file_path, format!("cannot read \"{name}\": {reason}"))
                        .help("the path is relative to the scenario file"),
                );
            }
            return Data::File { name: name.clone(), path: full };
        }
        self.report(
            Problem::at(data_path, "the table says nothing about the data").expected("`random`, `values` or `file`"),
        );
        Data::None
    }

    fn tree(&mut self, file: &CollectiveFile, path: &str, topology: &Topology) -> Tree {
        let saved = file.embedding.as_ref().map(|name| (self.embedding(name, path), format!("{path}.embedding")));
        let given = file.registers.as_ref().map(|registers| (registers, format!("{path}.registers")));
        if let Some((registers, registers_path)) = given.or(saved.as_ref().map(|(set, path)| (set, path.clone()))) {
            return Tree::Registers(self.registers(registers, &registers_path, topology));
        }
        match file.root.as_deref() {
            None | Some("auto") => Tree::Auto,
            Some(name) => self.switch(name, &format!("{path}.root"), false, topology).map_or(Tree::Auto, Tree::Root),
        }
    }

    fn registers(
        &mut self,
        registers: &BTreeMap<String, SwitchRegistersFile>,
        registers_path: &str,
        topology: &Topology,
    ) -> Vec<SwitchRegisters> {
        let mut sets = Vec::new();
        for (name, set) in registers {
            let here = child(registers_path, name);
            let Some(switch) = self.switch(name, &here, true, topology) else {
                continue;
            };
            let request = self.port_vectors(&set.request, &format!("{here}.request"));
            let response = self.port_vectors(&set.response, &format!("{here}.response"));
            sets.push(SwitchRegisters { switch, name: name.clone(), request, response });
        }
        sets.sort_by_key(|set| set.switch);
        if registers.is_empty() && self.problems.is_empty() {
            self.report(
                Problem::at(registers_path, "no switch has a register")
                    .expected("registers of at least one switch, or none of this table for the built-in tree"),
            );
        }
        sets
    }

    /// The registers of an embedding that was saved.
    fn embedding(&mut self, name: &str, path: &str) -> BTreeMap<String, SwitchRegistersFile> {
        let full = self.base.join(name);
        let read = || -> Result<BTreeMap<String, SwitchRegistersFile>, String> {
            let size = shipped::len(&full).map_err(|error| error.to_string())?;
            if size > limits::DATA_BYTES {
                return Err(format!("it is longer than {} bytes", limits::DATA_BYTES));
            }
            let text = shipped::text(&full).map_err(|error| error.to_string())?;
            toml::from_str(&text).map_err(|error| {
                let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
                format!("line {line}: {}", error.message())
            })
        };
        read().unwrap_or_else(|reason| {
            self.report(
                Problem::at(format!("{path}.embedding"), format!("cannot load \"{name}\": {reason}"))
                    .expected("registers by the name of the switch, as `watershed embed --save` writes them"),
            );
            BTreeMap::new()
        })
    }

    fn switch(&mut self, name: &str, path: &str, is_key: bool, topology: &Topology) -> Option<u32> {
        let switch = topology.switch_by_name(name);
        if switch.is_none() {
            let message = format!("there is no switch \"{name}\"");
            let problem = if is_key { Problem::at_key(path, message) } else { Problem::at(path, message) };
            // Names of a big system are regular: its first ones are enough to find a slip.
            let known: Vec<String> =
                (0..topology.switches().min(4096)).map(|switch| topology.switch_name(switch)).collect();
            let problem = problem.expected(topology.switch_names());
            // A wrong number behind the right word is no slip of spelling.
            let word = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_').to_owned();
            let spelt = known.iter().any(|known| word(known) == word(name));
            self.report(if spelt { problem } else { problem.nearest(name, known.iter().map(String::as_str)) });
        }
        switch
    }

    fn port_vectors(&mut self, registers: &BTreeMap<String, Vec<u32>>, path: &str) -> Vec<(u16, Vec<u16>)> {
        let mut vectors: Vec<(u16, Vec<u16>)> = Vec::new();
        for (input, outputs) in registers {
            let here = child(path, input);
            let Some(port) = port_number(input, 'I') else {
                self.report(
                    Problem::at_key(here, format!("\"{input}\" is not an input port"))
                        .expected("I and the number of the port, for example I7 = [2, 3]"),
                );
                continue;
            };
            let mut sorted: Vec<u16> = Vec::with_capacity(outputs.len());
            for (index, output) in outputs.iter().enumerate() {
                if sorted.contains(&(*output as u16)) {
                    self.report(Problem::at(format!("{here}[{index}]"), format!("output {output} is listed twice")));
                } else {
                    sorted.push(*output as u16);
                }
            }
            sorted.sort_unstable();
            vectors.push((port, sorted));
        }
        vectors.sort();
        vectors
    }

    // ---- traffic ---------------------------------------------------------------------------------------------------

    fn traffic(&mut self, file: &ScenarioFile, topology: &Topology) -> Vec<Traffic> {
        let mut names = BTreeMap::new();
        file.traffic
            .iter()
            .enumerate()
            .map(|(index, traffic)| {
                let path = format!("traffic[{index}]");
                let name = traffic.name.clone().unwrap_or_else(|| format!("t{index}"));
                self.unique(&mut names, &name, &path);
                if traffic.stop_cycle.is_some_and(|stop| stop <= traffic.start_cycle) {
                    self.report(
                        Problem::at(format!("{path}.stop_cycle"), "the traffic stops before it starts")
                            .expected(format!("a cycle after {}", traffic.start_cycle)),
                    );
                }
                self.foreign_traffic_keys(traffic, &path);
                let packet_flits = self.lengths(traffic.packet_flits.as_ref(), &format!("{path}.packet_flits"));
                let injection = self.injection(traffic, &path, &packet_flits);
                if matches!(injection, Injection::ClosedLoop { .. })
                    && !file.switch.point_to_point_vcs.is_multiple_of(2)
                {
                    let has = counted_channels(file.switch.point_to_point_vcs);
                    self.report(
                        Problem::at(
                            "switch.point_to_point_vcs",
                            format!("a closed loop needs channels for requests and as many for replies, {has}"),
                        )
                        .expected("an even number")
                        .related(format!("{path}.injection"), "the closed loop"),
                    );
                }
                Traffic {
                    name,
                    pattern: self.pattern(traffic, &path, topology),
                    injection,
                    packet_flits,
                    start_cycle: traffic.start_cycle,
                    stop_cycle: traffic.stop_cycle,
                }
            })
            .collect()
    }

    fn measure(&mut self, file: &ScenarioFile, traffic: &[Traffic]) {
        let Some(measure) = &file.measure else { return };
        if traffic.is_empty() {
            self.report(
                Problem::at_key("measure", "there is no traffic to measure")
                    .expected("`[[traffic]]` beside `[measure]`"),
            );
        }
        let (from, to) = (measure.warmup_cycles, measure.warmup_cycles.saturating_add(measure.measure_cycles));
        let window = || format!("the window, cycles {from} to {to}");
        if to > file.limits.max_cycles {
            let most = file.limits.max_cycles;
            self.report(
                Problem::at(
                    "measure.measure_cycles",
                    format!("{}, outlives the run, which is given up in cycle {most}", window()),
                )
                .expected("warm-up and window within `limits.max_cycles`"),
            );
        }
        // A traffic that begins or stops within the window may be meant so; a window that no traffic fills measures nothing.
        let begins = |of: &Traffic| of.start_cycle <= from;
        let lasts = |of: &Traffic| of.stop_cycle.is_none_or(|stop| stop >= to);
        if !traffic.is_empty() && !traffic.iter().any(|of| begins(of) && lasts(of)) {
            let wrong = traffic.iter().position(lasts).map_or((0, "stop_cycle"), |index| (index, "start_cycle"));
            let (path, of) = (format!("traffic[{}].{}", wrong.0, wrong.1), &traffic[wrong.0]);
            let problem = if let Some(stop) = of.stop_cycle.filter(|_| wrong.1 == "stop_cycle") {
                let message = format!("the traffic stops in cycle {stop} and does not fill {}", window());
                Problem::at(path, message).expected(format!("{to} or more, or no `stop_cycle`"))
            } else {
                let message = format!("the traffic starts in cycle {} and does not fill {}", of.start_cycle, window());
                Problem::at(path, message).expected(format!("up to {from}, the end of the warm-up"))
            };
            self.report(problem.related("measure", "the window"));
        }
        if measure.precision.is_some() && measure.max_measure_cycles < measure.measure_cycles {
            self.report(
                Problem::at("measure.max_measure_cycles", "the longest window is shorter than the first one")
                    .expected(format!("{} or more", measure.measure_cycles)),
            );
        }
    }

    /// Keys that belong to another pattern or injection.
    fn foreign_traffic_keys(&mut self, file: &TrafficFile, path: &str) {
        use InjectionKind::{Bursty, ClosedLoop};
        let injection = file.injection.unwrap_or(InjectionKind::Bernoulli);
        let trace = file.pattern == Pattern::Trace;
        let list = [
            ("include_self", file.include_self.is_some(), file.pattern == Pattern::Uniform, "pattern = \"uniform\""),
            ("hotspots", file.hotspots.is_some(), file.pattern == Pattern::Hotspot, "pattern = \"hotspot\""),
            ("flows", file.flows.is_some(), file.pattern == Pattern::Flows, "pattern = \"flows\""),
            (
                "file",
                file.file.is_some(),
                matches!(file.pattern, Pattern::Permutation | Pattern::Trace),
                "pattern = \"permutation\" and pattern = \"trace\"",
            ),
            ("burst_alpha", file.burst_alpha.is_some(), injection == Bursty, "injection = \"bursty\""),
            ("burst_beta", file.burst_beta.is_some(), injection == Bursty, "injection = \"bursty\""),
            ("window", file.window.is_some(), injection == ClosedLoop, "injection = \"closed-loop\""),
            ("reply_flits", file.reply_flits.is_some(), injection == ClosedLoop, "injection = \"closed-loop\""),
            ("think_cycles", file.think_cycles.is_some(), injection == ClosedLoop, "injection = \"closed-loop\""),
            ("service_cycles", file.service_cycles.is_some(), injection == ClosedLoop, "injection = \"closed-loop\""),
        ];
        for (key, given, fits, whose) in list {
            if given && !fits {
                self.report(
                    Problem::at_key(format!("{path}.{key}"), format!("`{key}` means nothing here"))
                        .help(format!("it belongs to {whose}")),
                );
            }
        }
        if trace {
            for (key, given) in [
                ("rate", file.rate.is_some()),
                ("injection", file.injection.is_some()),
                ("packet_flits", file.packet_flits.is_some()),
                ("start_cycle", self.source.has(&format!("{path}.start_cycle"))),
                ("stop_cycle", file.stop_cycle.is_some()),
            ] {
                if given {
                    let message = format!("a trace says itself what `{key}` says");
                    self.report(Problem::at_key(format!("{path}.{key}"), message));
                }
            }
        } else if file.pattern == Pattern::Flows && file.rate.is_some() {
            self.report(
                Problem::at_key(format!("{path}.rate"), "the rate belongs to each flow")
                    .expected("flows = [ { from = …, to = …, rate = … } ]"),
            );
        } else if injection == ClosedLoop && file.rate.is_some() {
            self.report(
                Problem::at_key(format!("{path}.rate"), "a closed loop has no rate: it sends when replies come back")
                    .expected("`window`, and `think_cycles` to send less"),
            );
        } else if file.rate.is_none() && injection != ClosedLoop && file.pattern != Pattern::Flows {
            self.report(
                Problem::at(format!("{path}.rate"), format!("`{path}.rate` is missing"))
                    .expected("flits per node and cycle, from 0 to 1"),
            );
        }
    }

    fn lengths(&mut self, lengths: Option<&PacketFlits>, path: &str) -> PacketFlits {
        match lengths {
            None => PacketFlits::Fixed(1),
            Some(PacketFlits::Range { min, max }) if max < min => {
                self.report(
                    Problem::at(
                        format!("{path}.max"),
                        format!("the longest packet, {max} flits, is shorter than the shortest"),
                    )
                    .expected(format!("{min} or more")),
                );
                PacketFlits::Fixed(1)
            }
            Some(lengths) => lengths.clone(),
        }
    }

    fn injection(&mut self, file: &TrafficFile, path: &str, packet_flits: &PacketFlits) -> Injection {
        let rate = file.rate.map(Rate);
        if file.pattern == Pattern::Trace {
            return Injection::Trace;
        }
        match file.injection.unwrap_or(InjectionKind::Bernoulli) {
            InjectionKind::Bernoulli => Injection::Bernoulli { rate },
            InjectionKind::Periodic => Injection::Periodic { rate },
            InjectionKind::Bursty => {
                for (key, given) in [("burst_alpha", file.burst_alpha), ("burst_beta", file.burst_beta)] {
                    if given.is_none() {
                        self.report(
                            Problem::at(format!("{path}.{key}"), format!("`{path}.{key}` is missing"))
                                .expected("a probability above 0, up to 1"),
                        );
                    }
                }
                let (burst_alpha, burst_beta) = (file.burst_alpha.unwrap_or(1.0), file.burst_beta.unwrap_or(1.0));
                let lengths = super::build::lengths(packet_flits);
                let peak = |rate| Process::burst_peak(rate, &lengths, burst_alpha, burst_beta);
                let rates = file.flows.iter().flatten().map(|flow| flow.rate).chain(file.rate);
                let most = rates.fold(0.0, f64::max);
                if peak(most) > 1.0 {
                    let on = burst_alpha / (burst_alpha + burst_beta);
                    let message =
                        format!("a source that is on for {on:.3} of the time cannot offer {most} flits a cycle");
                    let place = if file.rate.is_some() { format!("{path}.rate") } else { format!("{path}.flows") };
                    self.report(
                        Problem::at(place, message).expected(format!(
                            "up to {:.4}: a packet in every cycle of every burst",
                            most / peak(most)
                        )),
                    );
                }
                Injection::Bursty { rate, burst_alpha, burst_beta }
            }
            InjectionKind::ClosedLoop => {
                if file.window.is_none() {
                    self.report(
                        Problem::at(format!("{path}.window"), format!("`{path}.window` is missing"))
                            .expected("the requests a source may have without a reply, for example 4"),
                    );
                }
                Injection::ClosedLoop {
                    window: file.window.unwrap_or(1),
                    reply_flits: self.lengths(file.reply_flits.as_ref(), &format!("{path}.reply_flits")),
                    think_cycles: file.think_cycles.unwrap_or(0),
                    service_cycles: file.service_cycles.unwrap_or(0),
                }
            }
        }
    }

    fn pattern(&mut self, file: &TrafficFile, path: &str, topology: &Topology) -> TrafficPattern {
        let ends = topology.end_points();
        let at_pattern = format!("{path}.pattern");
        let permutation = match file.pattern {
            Pattern::Transpose => Some((Permutation::Transpose, TrafficPattern::Transpose)),
            Pattern::BitComplement => Some((Permutation::BitComplement, TrafficPattern::BitComplement)),
            Pattern::BitReverse => Some((Permutation::BitReverse, TrafficPattern::BitReverse)),
            Pattern::Shuffle => Some((Permutation::Shuffle, TrafficPattern::Shuffle)),
            Pattern::Tornado => Some((Permutation::Tornado, TrafficPattern::Tornado)),
            Pattern::Neighbour => Some((Permutation::Neighbour, TrafficPattern::Neighbour)),
            _ => None,
        };
        if let Some((permutation, pattern)) = permutation {
            if let Err(needs) = permutation.fits(ends) {
                let message = format!("this pattern does not exist for {ends} end points");
                self.report(Problem::at(at_pattern, message).expected(needs));
            }
            return pattern;
        }
        match file.pattern {
            Pattern::Uniform => {
                if ends < 2 {
                    self.report(Problem::at(at_pattern, "uniform traffic needs two end points, this system has one"));
                }
                TrafficPattern::Uniform { include_self: file.include_self.unwrap_or(true) }
            }
            Pattern::AllToAll => {
                if ends < 2 {
                    self.report(Problem::at(at_pattern, "an exchange needs two end points, this system has one"));
                }
                TrafficPattern::AllToAll
            }
            Pattern::Hotspot => {
                let Some(hotspots) = &file.hotspots else {
                    self.report(
                        Problem::at(format!("{path}.hotspots"), format!("`{path}.hotspots` is missing"))
                            .expected("hotspots = [ { end_point = 5, share = 0.1 } ]"),
                    );
                    return TrafficPattern::Hotspot { hotspots: Vec::new() };
                };
                let mut sum = 0.0;
                for (index, spot) in hotspots.iter().enumerate() {
                    sum += spot.share;
                    let here = format!("{path}.hotspots[{index}]");
                    if spot.end_point >= ends {
                        self.report(
                            Problem::at(
                                format!("{here}.end_point"),
                                format!("there is no end point {}", spot.end_point),
                            )
                            .expected(format!("an end point from 0 to {}", ends - 1)),
                        );
                    }
                    if sum > 1.0 + 1e-9 && sum - spot.share <= 1.0 + 1e-9 {
                        self.report(
                            Problem::at(format!("{here}.share"), "the shares of all hot spots are more than 1")
                                .expected(format!("up to {:.4} here", (1.0 - sum + spot.share).max(0.0))),
                        );
                    }
                }
                TrafficPattern::Hotspot { hotspots: hotspots.clone() }
            }
            Pattern::Permutation => {
                let name = self.traffic_file(file, path);
                let at = format!("{path}.file");
                let pairs = match name.as_ref().map(|name| trace::permutation(&self.base.join(name), ends)) {
                    Some(Ok(pairs)) => pairs,
                    Some(Err(error)) => {
                        self.report(Problem::at(at, error.message).expected(error.expected));
                        Vec::new()
                    }
                    None => Vec::new(),
                };
                TrafficPattern::Permutation { file: name.unwrap_or_default(), pairs }
            }
            Pattern::Trace => {
                let file = self.traffic_file(file, path).unwrap_or_default();
                let full = self.base.join(&file);
                let facts = if file.is_empty() { Ok(trace::Facts::default()) } else { trace::survey(&full, ends) };
                let facts = facts.unwrap_or_else(|error| {
                    self.report(Problem::at(format!("{path}.file"), error.message).expected(error.expected));
                    trace::Facts::default()
                });
                TrafficPattern::Trace {
                    file,
                    path: full,
                    packets: facts.packets,
                    classes: facts.classes,
                    hash: format!("{:016x}", facts.hash),
                }
            }
            _ => {
                let Some(flows) = &file.flows else {
                    self.report(
                        Problem::at(format!("{path}.flows"), format!("`{path}.flows` is missing"))
                            .expected("flows = [ { from = \"core1.P0\", to = \"core0.P0\", rate = 0.5 } ]"),
                    );
                    return TrafficPattern::Flows { flows: Vec::new() };
                };
                let flows = flows
                    .iter()
                    .enumerate()
                    .filter_map(|(index, flow)| self.flow(flow, &format!("{path}.flows[{index}]"), topology))
                    .collect();
                TrafficPattern::Flows { flows }
            }
        }
    }

    fn traffic_file(&mut self, file: &TrafficFile, path: &str) -> Option<String> {
        if file.file.is_none() {
            self.report(
                Problem::at(format!("{path}.file"), format!("`{path}.file` is missing"))
                    .expected("the name of a text file, relative to the scenario"),
            );
        }
        file.file.clone()
    }

    fn flow(&mut self, flow: &FlowFile, path: &str, topology: &Topology) -> Option<Flow> {
        let from = self.switch_port(&flow.from, &format!("{path}.from"), topology);
        let to = self.switch_port(&flow.to, &format!("{path}.to"), topology);
        Some(Flow { from: from?, to: to?, rate: Rate(flow.rate) })
    }

    fn switch_port(&mut self, text: &str, path: &str, topology: &Topology) -> Option<SwitchPort> {
        let parsed = text.split_once('.').and_then(|(switch, port)| Some((switch, port_number(port, 'P')?)));
        let Some((switch, port)) = parsed else {
            self.report(
                Problem::at(path, format!("\"{text}\" is not a port of a switch"))
                    .expected("switch.P<port>, for example \"core1.P0\""),
            );
            return None;
        };
        let number = self.switch(switch, path, false, topology)?;
        Some(SwitchPort { switch: number, port, name: text.to_owned() })
    }
}

/// A latency that is not given.
#[derive(Clone, Copy)]
enum Default {
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
fn counted(count: u128) -> String {
    if count > 1 << 100 { "more than 10^30".to_owned() } else { count.to_string() }
}
