//! The armed family's part of a configuration, and the rules its keys have among each other.

use std::collections::BTreeMap;

use serde::Serialize;

use super::file::{
    AgentFile, ArmedFile, ComputeFile, ConfiguredBy, DETERMINISTIC, EngineFile, FaultFile, LinkLayerFile, MEAN, Method,
    ReductionFile, SendsFile, StrangerFile, WrongFile, op_name,
};
use crate::collective::Data;
use crate::fault;
use crate::file::{Auto, ParticipantsFile};
use crate::participants::{end_point, listed};
use crate::problem::Problem;
use crate::random;
use crate::topology::Topology;
use crate::values::{self, Length};
use watershed_arith::Op;
use watershed_arith::quad::{OPCODES, Opcode};
use watershed_armed_interface::composed::Composition;
use watershed_fabric::topology::Shape;

/// The armed part of a checked scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Armed {
    /// The engines.
    pub engine: EngineFile,
    /// Entries of a multicast table.
    pub table_entries: u32,
    /// The management agent at run time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentFile>,
    /// Link layer of links with faults.
    pub link_layer: LinkLayerFile,
    /// End points with an Ethernet NIC.
    pub ethernet: Vec<u32>,
    /// The reductions.
    pub reductions: Vec<Reduction>,
    /// Faults.
    pub faults: Vec<FaultFile>,
    /// Strangers.
    pub strangers: Vec<StrangerFile>,
}

/// A reduction job: its table, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reduction {
    /// Its name.
    pub name: String,
    /// Its table, with cycles for "auto". What may be left out there, and what documents have in another form, stands here.
    #[serde(flatten)]
    pub file: ReductionFile,
    /// How its operation is composed, and its opcode: see [`Reduction::opcode`].
    #[serde(skip)]
    operation: (Composition, &'static Opcode),
    /// End point of the root.
    pub root: u32,
    /// End points of the leaves, in the order of their ranks, from 1 on.
    #[serde(skip)]
    pub leaves: Vec<u32>,
    /// How many take part, the root among them.
    pub participants: u32,
    /// The reduction whose tree is changed into this one's, by its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<u16>,
    /// Protection key.
    pub vni: u16,
    /// Cookie.
    pub cookie: u32,
    /// Contributions.
    pub data: Data,
    /// They are the same in every round.
    pub same_every_round: bool,
}

impl Reduction {
    /// The opcode; of an operation that is composed of others, that of a sum in the format of its operands.
    pub fn opcode(&self) -> &'static Opcode {
        self.operation.1
    }

    /// How its operation is composed.
    pub fn composed(&self) -> Composition {
        self.operation.0
    }

    /// Numbers in a row of contributed data.
    pub fn row_length(&self) -> usize {
        row_length(self.opcode())
    }

    /// Every participant's end point by rank.
    pub fn end_point(&self, rank: u32) -> u32 {
        if rank == 0 { self.root } else { self.leaves[rank as usize - 1] }
    }
}

/// How the operation of a name is composed, and its opcode: see [`Reduction::opcode`].
fn composed(name: &str) -> (Composition, &'static Opcode) {
    let sum = || opcode("flt-sum-near").expect("it is among the opcodes");
    match name {
        MEAN => (Composition::Mean, sum()),
        DETERMINISTIC => (Composition::Deterministic, sum()),
        name => (Composition::Plain, opcode(name).expect("the schema lists the names")),
    }
}

/// The opcode of a name.
pub fn opcode(name: &str) -> Option<&'static Opcode> {
    OPCODES.iter().find(|opcode| op_name(opcode.name) == name)
}

/// Numbers in a row of contributed data: four lanes, or one operand.
pub fn row_length(opcode: &Opcode) -> usize {
    match opcode.op {
        Op::Barrier => 0,
        Op::RepSum | Op::MinMaxLoc | Op::MinMaxNumLoc => 1,
        _ => 4,
    }
}

/// Contributions of a scenario, at most.
const MAX_CONTRIBUTIONS: u64 = 1 << 24;
/// Longer than any run.
const FOREVER: u64 = 1 << 58;
/// End points and engines of a scenario, at most.
const MAX_END_POINTS: u32 = 1 << 17;

/// Checks the link layer of a family's links.
pub fn link_layer(family: &str, layer: &LinkLayerFile, replays: bool, problems: &mut Vec<Problem>) {
    if let Some(cycles) = layer.retry_cycles {
        problems.push(
            Problem::at_key(
                format!("{family}.link_layer.retry_cycles"),
                format!("no link sends a damaged frame again after {cycles} cycles whatever its length and latency"),
            )
            .help("[link.reliability] is the link layer that sends again: numbers, acknowledgements, a replay buffer"),
        );
    }
    if replays && !layer.sequence_check {
        problems.push(
            Problem::at_key(
                format!("{family}.link_layer.sequence_check"),
                "links with [link.reliability] check numbers and send again by themselves",
            )
            .related("link.reliability", "by this table"),
        );
    }
}

/// Checks the armed table and fills in what follows.
pub fn resolve(
    file: &ArmedFile,
    topology: &Topology,
    (replays, link_latency): (bool, u64),
    seed: u64,
    problems: &mut Vec<Problem>,
) -> Armed {
    link_layer("armed", &file.link_layer, replays, problems);
    let engine = &file.engine;
    if !engine.wait_count_thresholds.is_sorted() {
        problems.push(
            Problem::at("armed.engine.wait_count_thresholds", "the thresholds are not in ascending order")
                .expected("the largest wait counts of the first three time-outs, smallest first"),
        );
    }
    let ends = topology.end_points();
    if ends > MAX_END_POINTS {
        problems.push(
            Problem::at("topology", format!("{ends} end points are too many for the armed family"))
                .expected(format!("up to {MAX_END_POINTS}")),
        );
    }
    for (index, name) in engine.unavailable.iter().enumerate() {
        if topology.switch_by_name(name).is_none() {
            problems.push(
                Problem::at(format!("armed.engine.unavailable[{index}]"), format!("there is no switch \"{name}\""))
                    .expected(topology.switch_names()),
            );
        }
    }
    for (index, end) in file.ethernet.iter().enumerate() {
        let path = format!("armed.ethernet[{index}]");
        if file.ethernet[..index].contains(end) {
            problems.push(Problem::at(path, format!("end point {end} is listed twice")));
        } else {
            end_point((*end).into(), ends, &path, problems);
        }
    }
    let mut names = BTreeMap::new();
    let mut total = 0u64;
    let mut reductions = Vec::new();
    for (index, reduction) in file.reduction.iter().enumerate() {
        let path = format!("armed.reduction[{index}]");
        let resolved = one(reduction, index, &path, file, topology, seed, problems);
        if let Some(first) = names.insert(resolved.name.clone(), path.clone()) {
            problems.push(
                Problem::at(format!("{path}.name"), format!("the name \"{}\" is taken", resolved.name))
                    .related(format!("{first}.name"), "by this one"),
            );
        }
        let rounds = if resolved.same_every_round { 1 } else { u64::from(resolved.file.rounds) };
        total = total.saturating_add(
            u64::from(resolved.participants)
                .saturating_mul(u64::from(resolved.file.contributions_per_node))
                .saturating_mul(rounds),
        );
        if total > MAX_CONTRIBUTIONS {
            problems.push(
                Problem::at(
                    format!("{path}.rounds"),
                    format!("{total} contributions in the whole scenario are too many"),
                )
                .expected(format!("up to {MAX_CONTRIBUTIONS}: participants x contributions_per_node x rounds"))
                .help("`data.same_every_round = true` draws them once"),
            );
            break;
        }
        reductions.push(resolved);
    }
    let agent = file.agent.as_ref().map(|agent| manage(agent, &reductions, topology, ends, link_latency, problems));
    check_changes(file, &mut reductions, problems);
    for (index, fault) in file.fault.iter().enumerate() {
        check_fault(fault, &format!("armed.fault[{index}]"), problems);
    }
    for (index, stranger) in file.stranger.iter().enumerate() {
        check_stranger(
            stranger,
            &format!("armed.stranger[{index}]"),
            &reductions,
            (ends, agent.as_ref().map(|agent| agent.end_point)),
            problems,
        );
    }
    Armed {
        engine: engine.clone(),
        table_entries: file.table_entries.unwrap_or(8192),
        agent,
        link_layer: file.link_layer.clone(),
        ethernet: file.ethernet.clone(),
        reductions,
        faults: file.fault.clone(),
        strangers: file.stranger.clone(),
    }
}

fn manage(
    file: &AgentFile,
    reductions: &[Reduction],
    topology: &Topology,
    ends: u32,
    link_latency: u64,
    problems: &mut Vec<Problem>,
) -> AgentFile {
    end_point(file.end_point.into(), ends, "armed.agent.end_point", problems);
    let order_timeout = file.order_timeout_cycles.or(4096 + 64 * link_latency).max(1);
    let asking =
        reductions.iter().filter(|reduction| reduction.file.configured_by == ConfiguredBy::Agent).count() as u64;
    let switches = u64::from(topology.switches());
    let answer_timeout = file.answer_timeout_cycles.or_else(|| {
        let orders = 2 * (switches / u64::from(file.outstanding_orders) + 1);
        let lost = 2 * u64::from(file.order_attempts) * order_timeout;
        2 * asking * (file.compute_cycles + orders * (order_timeout / 8)) + lost
    });
    AgentFile {
        order_timeout_cycles: Auto::Fixed(order_timeout),
        answer_timeout_cycles: Auto::Fixed(answer_timeout.max(1)),
        ..*file
    }
}

/// Which reductions have their trees made at run time, and in the place of which.
fn check_changes(file: &ArmedFile, reductions: &mut [Reduction], problems: &mut Vec<Problem>) {
    let mut changed: BTreeMap<usize, usize> = BTreeMap::new();
    for at in 0..reductions.len() {
        let reduction = &file.reduction[at];
        let path = |key: &str| format!("armed.reduction[{at}].{key}");
        let by_agent = reduction.configured_by == ConfiguredBy::Agent;
        if by_agent && file.agent.is_none() {
            problems.push(
                Problem::at(path("configured_by"), "there is no agent that could write its tree")
                    .expected("a table [armed.agent] that says at which end point it runs"),
            );
        }
        if by_agent && reduction.method == Method::Software {
            problems.push(Problem::at(path("configured_by"), "a software reduction has no tree"));
        }
        for (key, given) in [("changes", reduction.changes.is_some()), ("delete_tree", reduction.delete_tree)] {
            if given && !by_agent {
                problems.push(
                    Problem::at_key(path(key), format!("`{key}` needs a tree that is made at run time"))
                        .expected("configured_by = \"agent\""),
                );
            }
        }
        let Some(name) = &reduction.changes else { continue };
        let place = path("changes");
        let names = || reductions[..at].iter().map(|reduction| reduction.name.as_str());
        let Some(before) = reductions[..at].iter().position(|before| before.name == *name) else {
            problems
                .push(Problem::at(&place, format!("there is no earlier reduction \"{name}\"")).nearest(name, names()));
            continue;
        };
        if reductions[before].file.configured_by != ConfiguredBy::Agent {
            problems.push(Problem::at(&place, format!("the tree of \"{name}\" is not made at run time")));
        } else if reductions[before].root != reductions[at].root {
            let (other, root) = (reductions[before].root, reductions[at].root);
            let message = format!("the root of \"{name}\" is end point {other}, of this one {root}");
            problems.push(Problem::at(&place, message).expected("the same root: it asks for the change"));
        } else if reductions[before].file.delete_tree {
            problems.push(
                Problem::at(&place, format!("the tree of \"{name}\" is deleted: nothing is left to change"))
                    .related(format!("armed.reduction[{before}].delete_tree"), "by this key"),
            );
        } else if let Some(first) = changed.insert(before, at) {
            problems.push(
                Problem::at(&place, format!("the tree of \"{name}\" is changed twice"))
                    .related(format!("armed.reduction[{first}].changes"), "here already"),
            );
        }
        reductions[at].changes = Some(before as u16);
    }
}

fn one(
    file: &ReductionFile,
    index: usize,
    path: &str,
    armed: &ArmedFile,
    topology: &Topology,
    seed: u64,
    problems: &mut Vec<Problem>,
) -> Reduction {
    let ends = topology.end_points();
    let operation @ (_, opcode) = composed(&file.op);
    let listed = listed(&file.participants, ends, "takes part twice", &format!("{path}.participants"), problems);
    let top = match &topology.shape {
        Shape::Tree(tree) if tree.roots > 0 => Some(tree.leaves() as u32),
        _ => None,
    };
    let root = file.root.unwrap_or_else(|| {
        top.filter(|_| file.participants == ParticipantsFile::All).or(listed.first().copied()).unwrap_or(0)
    });
    if file.root.is_some() {
        end_point(root.into(), ends, &format!("{path}.root"), problems);
    }
    let leaves: Vec<u32> = listed.into_iter().filter(|&end| end != root).collect();
    if leaves.is_empty() {
        problems.push(
            Problem::at(format!("{path}.participants"), "nobody takes part besides the root")
                .expected("at least one other end point"),
        );
    }
    if file.method == Method::Software {
        for (key, given) in [("redundant", file.redundant), ("reduction_ids", file.reduction_ids != 1)] {
            if given {
                problems.push(Problem::at(format!("{path}.{key}"), format!("a software reduction has no `{key}`")));
            }
        }
    }
    let participants = leaves.len() as u32 + 1;
    let slowest = slowest(file, (root, &leaves), path, problems);
    let longest = armed.engine.timeouts_1024_cycles.iter().copied().max().unwrap_or(0);
    let auto_retry = 4 * 1024 * u64::from(longest) + 2 * slowest + 20_000;
    let retry_after = file.retry_after_cycles.or(auto_retry);
    let patience = file
        .patience_cycles
        .or_else(|| (2 * (u64::from(file.max_retries) + 2)).saturating_mul(retry_after).min(FOREVER));
    let mut stream = random::Stream::delays(seed, 1 << 20 | index, 0);
    let data = contributions(file, opcode, path, participants, problems);
    Reduction {
        name: file.name.clone().unwrap_or_else(|| format!("r{index}")),
        operation,
        root,
        leaves,
        participants,
        changes: None,
        vni: file.vni.unwrap_or(index as u32 + 1) as u16,
        cookie: file.cookie.unwrap_or_else(|| stream.word() as u32),
        same_every_round: same_every_round(file, &data, opcode),
        data,
        file: ReductionFile {
            opening_barrier: file.opening_barrier && file.method == Method::Engines,
            retry_after_cycles: Auto::Fixed(retry_after),
            patience_cycles: Auto::Fixed(patience),
            name: None,
            root: None,
            vni: None,
            cookie: None,
            data: None,
            ..file.clone()
        },
    }
}

/// Cycles that the slowest participant computes.
fn slowest(file: &ReductionFile, (root, leaves): (u32, &[u32]), path: &str, problems: &mut Vec<Problem>) -> u64 {
    let participants = leaves.len() + 1;
    let mut slowest = match &file.compute_cycles {
        ComputeFile::Same(cycles) => *cycles,
        ComputeFile::Random { least, most } => {
            if least > most {
                problems.push(
                    Problem::at(format!("{path}.compute_cycles.random_min"), "the least is above the largest")
                        .expected(format!("up to {most}")),
                );
            }
            *most
        }
        ComputeFile::List(rows) => {
            if rows.len() != participants && rows.len() != 1 {
                problems.push(
                    Problem::at(
                        format!("{path}.compute_cycles"),
                        format!("{} rows for {participants} participants", rows.len()),
                    )
                    .expected("one row for each, the root's first, or one row for all"),
                );
            }
            rows.iter().flatten().copied().max().unwrap_or(0)
        }
    };
    for (at, late) in file.late.iter().enumerate() {
        let here = format!("{path}.late[{at}].end_point");
        if late.end_point != root && !leaves.contains(&late.end_point) {
            problems.push(Problem::at(here, format!("end point {} takes no part", late.end_point)));
        }
        slowest = slowest.saturating_add(late.cycles);
    }
    // Times so long that no run reaches them are all the same.
    slowest.min(FOREVER)
}

fn same_every_round(file: &ReductionFile, data: &Data, opcode: &Opcode) -> bool {
    match data {
        Data::Values(given) => values::frames(given, row_length(opcode)) == 1,
        _ => file.data.as_ref().is_some_and(|data| data.same_every_round),
    }
}

fn contributions(
    file: &ReductionFile,
    opcode: &Opcode,
    path: &str,
    participants: u32,
    problems: &mut Vec<Problem>,
) -> Data {
    let path = format!("{path}.data");
    let length = row_length(opcode);
    if length == 0 {
        if file.data.is_some() {
            problems.push(Problem::at_key(path, "a barrier has no data"));
        }
        return Data::None;
    }
    let usual = values::default_distribution(opcode.dtype);
    let Some(data) = &file.data else { return Data::Random(usual) };
    let Some(given) = &data.values else { return Data::Random(data.random.unwrap_or(usual)) };
    values::not_both(data.random, &path, problems);
    let rows = u64::from(participants) * u64::from(file.contributions_per_node);
    let who = format!("{rows}, one a contribution, those of the root first");
    let vector = Length { frame: length as u64, rounds: u64::from(file.rounds) };
    values::check_values(given, &format!("{path}.values"), (rows as usize, who), (vector, opcode.dtype), problems);
    Data::Values(given.clone())
}

fn check_fault(fault: &FaultFile, path: &str, problems: &mut Vec<Problem>) {
    let asked = fault::FaultRequest {
        effect: fault.effect,
        delay: fault.delay_cycles.is_some(),
        at: &fault.at,
        from_cycle: fault.from_cycle,
        until_cycle: fault.until_cycle,
        chooses: &[("probability", fault.probability.is_some()), ("nth", fault.nth.is_some())],
    };
    fault::check(&asked, path, problems);
}

/// The other tree of a stranger whose frames have that one's address.
fn check_other_tree(file: &StrangerFile, path: &str, reductions: &[Reduction], problems: &mut Vec<Problem>) {
    let place = format!("{path}.tree");
    match (&file.tree, file.wrong == WrongFile::Tree) {
        (None, true) => problems.push(
            Problem::at(&place, format!("`{place}` is missing")).expected("the name of another reduction with a tree"),
        ),
        (Some(_), false) => problems.push(Problem::at_key(place, "only `wrong = \"tree\"` has another tree")),
        (Some(name), true) => match reductions.iter().find(|reduction| reduction.name == *name) {
            None => problems.push(
                Problem::at(&place, format!("there is no reduction \"{name}\""))
                    .nearest(name, reductions.iter().map(|reduction| reduction.name.as_str())),
            ),
            Some(_) if *name == file.reduction => {
                problems.push(Problem::at(&place, "it is the reduction it disturbs: its own address is no other one"));
            }
            Some(other) if other.file.method == Method::Software => {
                problems.push(Problem::at(&place, "it reduces in software: its tree has no address"));
            }
            Some(_) => {}
        },
        (None, false) => {}
    }
}

/// Whether messages of a software reduction can have this wrong: they have no tree and no sequence number.
pub fn disturbs_software(wrong: WrongFile) -> bool {
    matches!(wrong, WrongFile::Cookie | WrongFile::Vni | WrongFile::Malformed | WrongFile::Sender)
}

/// A stranger on the agent's channel.
fn check_agents_stranger(
    file: &StrangerFile,
    path: &str,
    reduction: &Reduction,
    agent: Option<u32>,
    problems: &mut Vec<Problem>,
) {
    let at = |key: &str| format!("{path}.{key}");
    if file.wrong != WrongFile::Sender {
        let what = "of a frame of the agent only the sender is wrong";
        problems.push(Problem::at(at("wrong"), what).expected("\"sender\""));
    }
    if agent.is_none() || reduction.file.configured_by != ConfiguredBy::Agent {
        let what = format!("no agent makes the tree of \"{}\": there are no such frames", file.reduction);
        problems.push(Problem::at(at("sends"), what));
    } else if matches!(file.sends, SendsFile::Grant | SendsFile::Order) && agent == Some(file.end_point) {
        let what = format!("end point {} is the agent: what it sends is no stranger's", file.end_point);
        problems.push(Problem::at(at("end_point"), what));
    }
}

fn check_stranger(
    file: &StrangerFile,
    path: &str,
    reductions: &[Reduction],
    (ends, agent): (u32, Option<u32>),
    problems: &mut Vec<Problem>,
) {
    let Some(reduction) = reductions.iter().find(|reduction| reduction.name == file.reduction) else {
        problems.push(
            Problem::at(format!("{path}.reduction"), format!("there is no reduction \"{}\"", file.reduction))
                .nearest(&file.reduction, reductions.iter().map(|reduction| reduction.name.as_str())),
        );
        return;
    };
    let at_end = end_point(file.end_point.into(), ends, &format!("{path}.end_point"), problems);
    if reduction.file.method == Method::Software && !disturbs_software(file.wrong) {
        problems.push(
            Problem::at(format!("{path}.wrong"), "the reduction is in software: its messages have no such thing")
                .expected("\"cookie\", \"vni\", \"malformed\" or \"sender\""),
        );
    }
    let leaf = reduction.leaves.contains(&file.end_point);
    if file.wrong == WrongFile::Sender {
        let right = match file.sends {
            SendsFile::Contribution => leaf.then_some("a leaf: its contributions are no stranger's"),
            SendsFile::Acknowledgement | SendsFile::Grant | SendsFile::Order => None,
            _ => (file.end_point == reduction.root).then_some("the root: what it multicasts is no stranger's"),
        };
        if let Some(right) = right {
            let message = format!("end point {} of \"{}\" is {right}", file.end_point, file.reduction);
            problems.push(Problem::at(format!("{path}.end_point"), message));
        }
    }
    if file.sends.is_agents() {
        check_agents_stranger(file, path, reduction, agent, problems);
    }
    if file.wrong != WrongFile::Stale && file.behind.is_some() {
        problems.push(Problem::at_key(format!("{path}.behind"), "only `wrong = \"stale\"` is behind"));
    }
    if file.wrong == WrongFile::Op {
        if file.sends != SendsFile::Contribution {
            problems.push(Problem::at(format!("{path}.sends"), "a leaf with another operation sends contributions"));
        }
        if file.op.is_none() {
            problems.push(
                Problem::at(format!("{path}.op"), format!("`{path}.op` is missing"))
                    .expected("the operation this leaf sends instead"),
            );
        }
        if at_end && !leaf {
            problems.push(Problem::at(
                format!("{path}.end_point"),
                format!("end point {} is no leaf of \"{}\"", file.end_point, file.reduction),
            ));
        }
    } else {
        if file.op.is_some() {
            problems.push(Problem::at_key(format!("{path}.op"), "only `wrong = \"op\"` has an operation"));
        }
        check_other_tree(file, path, reductions, problems);
        if file.until_cycle.is_none_or(|until| until <= file.from_cycle) {
            problems.push(
                Problem::at(format!("{path}.until_cycle"), "a stranger has to stop, after it has started")
                    .expected(format!("a cycle after {}", file.from_cycle)),
            );
        }
    }
}
