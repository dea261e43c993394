//! From the scenario as written to the configuration: cross-field rules, units, derived values, limits.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::config::{
    Ceng, Clock, Collective, Data, Flow, Latency, Link, Memory, Participants, Rate, Rounding, Scenario, Switch,
    SwitchPort, SwitchRegisters, Topology, Traffic, TrafficPattern, Tree, Wave,
};
use super::file::{
    AutoOr, Bandwidth, CollectiveFile, CollectiveKind, DelayFile, Distribution, Family, FlowFile, ParticipantsFile,
    Pattern, ScenarioFile, TopologyKind, TrafficFile,
};
use super::names::{self, DType, Named, Op, Round};
use super::problem::Problem;
use super::random::Stream;
use super::source::{Source, alternatives, child};
use super::{limits, units};
use crate::fabric::topology::GenericTree;

/// Checks what the schema cannot and fills in what follows. Returns the configuration only if nothing is wrong.
pub(crate) fn resolve(file: &ScenarioFile, source: &Source, base: &Path, stem: &str) -> Result<Scenario, Vec<Problem>> {
    let mut resolver = Resolver { source, base, hertz: 1, problems: Vec::new(), roundings: Vec::new() };
    let scenario = resolver.scenario(file, stem);
    match scenario {
        Some(scenario) if resolver.problems.is_empty() => Ok(scenario),
        _ => Err(resolver.problems),
    }
}

struct Resolver<'a> {
    source: &'a Source,
    base: &'a Path,
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
        let memory = self.memory(file);
        self.family(file);
        // Names and numbers of everything below hang on the shape: without one there is nothing more to say.
        let topology = self.topology(file)?;
        let radix = file.switch.ceng.radix.or(topology.ports());
        let switch = Switch {
            pipeline_stages: file.switch.pipeline_stages,
            arbiter: file.switch.arbiter,
            collective_ids: file.switch.collective_ids,
            point_to_point_vcs: file.switch.point_to_point_vcs,
            point_to_point_buffer_flits: file.switch.point_to_point_buffer_flits,
            collective_buffer_flits: file.switch.collective_buffer_flits,
            ceng: Ceng {
                stages: file.switch.ceng.stages,
                radix,
                operand_slots: file.switch.ceng.operand_slots,
                result_slots: file.switch.ceng.result_slots,
            },
        };
        self.storage(&switch, &topology);
        let collectives = self.collectives(file, &topology);
        let armed = (file.family == Family::Armed).then(|| {
            let table = file.armed.clone().unwrap_or_default();
            super::armed::config::resolve(&table, &topology, file.seed, &mut self.problems)
        });
        let traffic = self.traffic(file, &topology);
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
            if let Err(error) = crate::probe::Selection::new([glob]) {
                self.report(Problem::at(format!("wave.signals[{index}]"), error.to_string()));
            }
        }

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
            switch,
            link,
            memory,
            limits: file.limits.clone(),
            checks: file.checks.clone(),
            collectives,
            traffic,
            wave,
            armed,
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
        Link {
            latency: self.latency("link.latency", link.latency_ns, link.latency_cycles, Default::Ns(5.0), 1),
            local_latency: self.latency(
                "link.local_latency",
                link.local_latency_ns,
                link.local_latency_cycles,
                Default::Cycles(1),
                1,
            ),
            flit_bits: link.flit_bits,
            cycles_per_flit: link.cycles_per_flit,
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

    /// What a plain fabric does not have.
    fn family(&mut self, file: &ScenarioFile) {
        let (keys, place, help): (&[&str], _, _) = match file.family {
            Family::Piuma => (&["armed"], "in the piuma family", "family = \"armed\" has this table"),
            Family::Fabric => (
                &["collective", "switch.ceng", "switch.collective_ids", "switch.collective_buffer_flits", "armed"],
                "in a plain fabric",
                "family = \"piuma\" has collectives",
            ),
            Family::Armed => (
                &["collective", "switch.ceng", "switch.collective_ids", "memory", "traffic"],
                "in the armed family",
                "its reductions are in [[armed.reduction]]",
            ),
        };
        for key in keys {
            if self.source.has(key) {
                self.report(Problem::at_key(*key, format!("`{key}` means nothing {place}")).help(help));
            }
        }
    }

    fn topology(&mut self, file: &ScenarioFile) -> Option<Topology> {
        let topology = &file.topology;
        let foreign: &[(&str, bool)] = match topology.kind {
            TopologyKind::Die => {
                &[("size", topology.size.is_some()), ("concentration", topology.concentration.is_some())]
            }
            TopologyKind::Mesh => &[("tiles", topology.tiles.is_some()), ("positions", topology.positions.is_some())],
            TopologyKind::Tree => &[
                ("tiles", topology.tiles.is_some()),
                ("positions", topology.positions.is_some()),
                ("size", topology.size.is_some()),
                ("concentration", topology.concentration.is_some()),
            ],
        };
        let of_trees = [("branching", topology.branching.is_some()), ("roots", topology.roots.is_some())];
        let of_trees = if topology.kind == TopologyKind::Tree { &[][..] } else { &of_trees[..] };
        for (key, given) in foreign.iter().chain(of_trees) {
            if *given {
                let (kind, keys) = match topology.kind {
                    TopologyKind::Die => ("die", "`tiles` and `positions`"),
                    TopologyKind::Mesh => ("mesh", "`size` and `concentration`"),
                    TopologyKind::Tree => ("tree", "`branching` and `roots`"),
                };
                self.report(
                    Problem::at_key(format!("topology.{key}"), format!("a {kind} has no `{key}`")).expected(keys),
                );
            }
        }
        let (switches, end_points, place) = match topology.kind {
            TopologyKind::Die => {
                let tiles = u128::from(topology.tiles.unwrap_or(4));
                let positions = u128::from(topology.positions.unwrap_or(4));
                (tiles * positions, tiles.min(2) * positions, "topology.tiles")
            }
            TopologyKind::Mesh => {
                let Some(size) = &topology.size else {
                    self.report(
                        Problem::at("topology.size", "`topology.size` is missing: a mesh has no default size")
                            .expected("the switches along each dimension, for example [4, 4]"),
                    );
                    return None;
                };
                let switches = size.iter().fold(1u128, |product, side| product.saturating_mul(u128::from(*side)));
                let end_points = switches.saturating_mul(u128::from(topology.concentration.unwrap_or(1)));
                (switches, end_points, "topology.size")
            }
            TopologyKind::Tree => {
                let Some(branching) = &topology.branching else {
                    self.report(
                        Problem::at(
                            "topology.branching",
                            "`topology.branching` is missing: a tree has no default shape",
                        )
                        .expected("children of a switch of each level, the last counts end points: [4, 4]"),
                    );
                    return None;
                };
                let tree = GenericTree {
                    branching: branching.iter().map(|&b| b as u16).collect(),
                    roots: topology.roots.unwrap_or(1) as u16,
                };
                (u128::from(tree.switches()), u128::from(tree.end_points()), "topology.branching")
            }
        };
        if switches > u128::from(limits::SWITCHES) {
            self.report(
                Problem::at(place, format!("{} switches are too many", counted(switches)))
                    .expected(format!("up to {} switches", limits::SWITCHES)),
            );
            return None;
        }
        if end_points > u128::from(limits::END_POINTS) {
            self.report(
                Problem::at("topology.concentration", format!("{} end points are too many", counted(end_points)))
                    .expected(format!("up to {} end points", limits::END_POINTS)),
            );
            return None;
        }
        Some(match topology.kind {
            TopologyKind::Die => Topology::Die {
                tiles: topology.tiles.unwrap_or(4) as u32,
                positions: topology.positions.unwrap_or(4) as u32,
            },
            TopologyKind::Mesh => Topology::Mesh {
                size: topology.size.iter().flatten().map(|side| *side as u32).collect(),
                concentration: topology.concentration.unwrap_or(1) as u32,
            },
            TopologyKind::Tree => Topology::Tree {
                branching: topology.branching.iter().flatten().map(|&b| b as u32).collect(),
                roots: topology.roots.unwrap_or(1) as u32,
            },
        })
    }

    /// Storage that grows with depth times ports times switches.
    fn storage(&mut self, switch: &Switch, topology: &Topology) {
        let ports = u128::from(topology.ports() + 1) * u128::from(topology.switches());
        let registers = ports * u128::from(switch.collective_ids) * 2;
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
                u128::from(switch.point_to_point_vcs) * u128::from(switch.point_to_point_buffer_flits) * ports,
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
        let rows = match kind {
            CollectiveKind::Allreduce | CollectiveKind::Reduce => participants.len(),
            CollectiveKind::Broadcast => 1,
            CollectiveKind::Barrier => 0,
        };
        let data = self.data(file, path, dtype, elements, rows);
        let tree = self.tree(file, path, topology);
        Collective {
            name,
            kind,
            id: file.id,
            op,
            dtype,
            round,
            elements,
            participants,
            root: match tree {
                Tree::Auto | Tree::Root(_) => Some(file.root.clone().unwrap_or_else(|| "auto".to_owned())),
                Tree::Registers(_) => None,
            },
            tree,
            start_cycle: file.start_cycle,
            delays,
            delay_random_max,
            source,
            receiver: file.receiver,
            data,
        }
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
            CollectiveKind::Allreduce | CollectiveKind::Reduce => {
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
            } else if let Err(error) = std::fs::metadata(&full) {
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
        if let Some(registers) = &file.registers {
            let registers_path = format!("{path}.registers");
            let mut sets = Vec::new();
            for (name, set) in registers {
                let here = child(&registers_path, name);
                let Some(switch) = self.switch(name, &here, true, topology) else {
                    continue;
                };
                let request = self.port_vectors(&set.request, &format!("{here}.request"));
                let response = self.port_vectors(&set.response, &format!("{here}.response"));
                sets.push(SwitchRegisters { switch, name: name.clone(), request, response });
            }
            sets.sort_by_key(|set| set.switch);
            if registers.is_empty() {
                self.report(
                    Problem::at(registers_path, "no switch has a register")
                        .expected("registers of at least one switch, or none of this table for the built-in tree"),
                );
            }
            return Tree::Registers(sets);
        }
        match file.root.as_deref() {
            None | Some("auto") => Tree::Auto,
            Some(name) => self.switch(name, &format!("{path}.root"), false, topology).map_or(Tree::Auto, Tree::Root),
        }
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
                Traffic {
                    name,
                    pattern: self.pattern(traffic, &path, topology),
                    packet_flits: traffic.packet_flits,
                    start_cycle: traffic.start_cycle,
                    stop_cycle: traffic.stop_cycle,
                }
            })
            .collect()
    }

    fn pattern(&mut self, file: &TrafficFile, path: &str, topology: &Topology) -> TrafficPattern {
        match file.pattern {
            Pattern::Uniform => {
                if file.flows.is_some() {
                    self.report(
                        Problem::at_key(format!("{path}.flows"), "uniform traffic has no flows")
                            .help("`pattern = \"flows\"` has"),
                    );
                }
                if file.rate.is_none() {
                    self.report(
                        Problem::at(format!("{path}.rate"), format!("`{path}.rate` is missing"))
                            .expected("flits per node and cycle, from 0 to 1"),
                    );
                }
                if topology.end_points() < 2 {
                    self.report(Problem::at(
                        format!("{path}.pattern"),
                        "uniform traffic needs two end points, this system has one",
                    ));
                }
                TrafficPattern::Uniform { rate: Rate(file.rate.unwrap_or(0.0)) }
            }
            Pattern::Flows => {
                if file.rate.is_some() {
                    self.report(
                        Problem::at_key(format!("{path}.rate"), "the rate belongs to each flow")
                            .expected("flows = [ { from = …, to = …, rate = … } ]"),
                    );
                }
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

/// The number in `I7` or `P7`.
fn port_number(text: &str, letter: char) -> Option<u16> {
    let digits = text.strip_prefix(letter)?;
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    plain.then(|| digits.parse().ok()).flatten()
}

/// A count that may have been saturated.
fn counted(count: u128) -> String {
    if count > 1 << 100 { "more than 10^30".to_owned() } else { count.to_string() }
}
