//! Multicast trees as register values, and processors at the end points.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::config::{Multicast, Programs};
use super::file::{CoreFile, ParallelLinks, PipelineKind, RegisterAccess};
use super::tree_writes;
use crate::Problem;
use crate::build::BuiltCollective;
use crate::config::{Collective, CollectiveKind, Scenario};
use crate::names::{Layout as Bits, layout};
use crate::piuma::embedding_graph;
use crate::piuma::overlaps::{Owner, Plan};
use crate::random::Stream;
use crate::sources::Sources;
use watershed_arith::{self as arith, DType};
use watershed_fabric::topology::{Common, EndPlace, Layout, LinkParams, Neighbours, die_port as port};
use watershed_kernel::Cycle;
use watershed_piuma::claim::{Claimant, Links, QueueClaim, Wiring};
use watershed_piuma::embed::{self, EmbedContext, Vectors};
use watershed_piuma::legality::{self, Claim, Footprint, LegalityError};
use watershed_piuma::processor::Role;
use watershed_piuma::program::{CONFIGURATION, Fill, Instruction, Intrinsic, Source};
use watershed_piuma::reach::Reach;
use watershed_piuma::{Core, End, EndExtras, JobKind, MemoryCfg, Processor, ProcessorCfg, Registers};

/// Register values of a tree: the built-in shortest paths, over the links that the scenario chose.
pub fn vectors(multicast: &Multicast, layout: &Layout, ground: &EmbedContext<'_>) -> Vectors {
    let place = |end: u32| layout.ends[end as usize];
    let receivers: Vec<EndPlace> = multicast.receivers.iter().map(|&end| place(end)).collect();
    let first = embed::multicast(ground, place(multicast.source), &receivers);
    if multicast.links == ParallelLinks::First {
        return first;
    }
    let other = |at: u16| match at {
        port::PLUS => port::PLUS2,
        port::MINUS => port::MINUS2,
        at => at,
    };
    let moved = |vector: u64| (0..64).filter(|at| vector >> at & 1 == 1).fold(0, |to, at| to | 1u64 << other(at));
    let vectors = first.iter().map(|((switch, channel, at), vector)| ((switch, channel, other(at)), moved(vector)));
    Vectors::from(vectors.collect::<BTreeMap<_, _>>())
}

/// Checks that a tree reaches its receivers and no other end point; returns what it uses.
///
/// # Errors
/// The first error.
pub fn check(
    multicast: &Multicast,
    layout: &Layout,
    registers: &Registers,
    neighbours: &Neighbours,
) -> Result<Footprint, LegalityError> {
    let place = |end: u32| layout.ends[end as usize];
    let senders = [place(multicast.source)];
    let receivers: Vec<EndPlace> = multicast.receivers.iter().map(|&end| place(end)).collect();
    let members: Vec<EndPlace> = senders.iter().chain(&receivers).copied().collect();
    let id = multicast.id as u16;
    let claim = Claim { id, senders: &senders, receivers: Some(&receivers), members: &members, reduces: false };
    legality::check(registers, neighbours, u8::MAX, &claim)
}

fn intrinsic(kind: CollectiveKind) -> Intrinsic {
    match kind {
        CollectiveKind::Allreduce => Intrinsic::Allreduce,
        CollectiveKind::Reduce => Intrinsic::Reduce,
        CollectiveKind::Broadcast => Intrinsic::Broadcast,
        CollectiveKind::Barrier => Intrinsic::Barrier,
        CollectiveKind::Scan => Intrinsic::Scan,
    }
}

/// The parameters of cores.
fn cfg(core: &CoreFile) -> ProcessorCfg {
    ProcessorCfg {
        mtps: core.mtps,
        mtp_threads: core.mtp_threads,
        stps: core.stps,
        queue_depth: core.mcast_queue_depth,
        queue_ports: core.mcast_queue_ports,
        xbar: core.xbar_cycles,
        xbar_ports: core.xbar_ports,
        decoders: core.cce_decoders,
        calls: core.outstanding_calls,
        accesses: core.register_accesses,
        interrupt: core.interrupt_cycles,
        local_words: core.local_memory_words,
        scratchpad_words: core.scratchpad_words,
    }
}

/// Puts processors where programs run or messages arrive, and gives them their threads and their parts in collectives.
pub fn processors(
    scenario: &Scenario,
    programs: &Programs,
    layout: &Layout,
    (built, claims): (&[BuiltCollective], &Plan),
    memory: &Arc<MemoryCfg>,
    ends: &mut [End],
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let core = &programs.core;
    let cfg = cfg(core);
    for end in participating(scenario, programs) {
        attach(&mut ends[end as usize], end, scenario, cfg, memory, layout);
    }
    for multicast in &programs.multicasts {
        let id = multicast.id as u16;
        for &end in std::iter::once(&multicast.source).chain(&multicast.receivers) {
            let (core, processor) = parts(ends, end);
            if !processor.cce_mut().serves(id) {
                core.leave(id);
                processor.cce_mut().serve(id);
            }
        }
    }
    for (index, text) in programs.programs.iter().enumerate() {
        for &end in &text.cores {
            let (_, processor) = parts(ends, end);
            for _ in 0..text.threads {
                let on_stp = text.pipeline == PipelineKind::Stp;
                if !processor.start(&text.program, on_stp, text.start_cycle) {
                    let (kind, room) = if on_stp {
                        ("single-threaded", core.stps)
                    } else {
                        ("multi-threaded", core.mtps * core.mtp_threads)
                    };
                    let message = format!("core {end} has no place for so many threads");
                    problems.push(
                        Problem::at(format!("program[{index}].threads"), message)
                            .expected(format!("up to {room} on its {kind} pipelines, all programs together")),
                    );
                    return problems;
                }
            }
            if text.program.handler.is_some() {
                if processor.has_handler() {
                    let message = format!("core {end} has two interrupt handlers");
                    problems.push(
                        Problem::at(format!("program[{index}]"), message).expected("one `.handler` a core at most"),
                    );
                    return problems;
                }
                if core.stps == 0 {
                    problems.push(
                        Problem::at("core.stps", "interrupt handlers run on single-threaded pipelines")
                            .expected("1 or more, or no `.handler`"),
                    );
                    return problems;
                }
                processor.set_handler(&text.program);
            }
            for (number, fill) in text.program.fills.iter().enumerate() {
                let (address, words) = match fill {
                    Fill::Words(address, words) => (*address, words.clone()),
                    Fill::Random(_, count, _) if *count > core.local_memory_words * 8 => (u64::MAX - 7, vec![0]),
                    Fill::Random(address, count, dtype) => {
                        (*address, random(scenario.seed, index << 8 | number, end as usize, *count, *dtype))
                    }
                };
                if !processor.fill(address, &words) {
                    let message = "words that are given do not fit into local memory".to_owned();
                    problems.push(
                        Problem::at(format!("program[{index}]"), message).expected(format!(
                            "`core.local_memory_words` = {} or more",
                            address / 8 + words.len() as u64
                        )),
                    );
                    return problems;
                }
            }
        }
    }
    if is_access_in_band(scenario) {
        let owned = first_end_points(layout, scenario.topology.switches()).into_iter().flatten();
        for end in owned.chain(participating(scenario, programs)) {
            ends[end as usize].beside.get_or_insert_default().registers.get_or_insert_default();
        }
    }
    match claim_queues(programs, claims) {
        Ok(queues) => {
            for ((end, id), queue) in queues {
                parts(ends, end).1.cce_mut().claims(id, Some(queue));
            }
        }
        Err(problem) => problems.push(problem),
    }
    assign_roles(scenario, layout, (built, claims), ends);
    problems
}

/// Gives cores their parts in collectives that programs call.
fn assign_roles(scenario: &Scenario, layout: &Layout, (built, claims): (&[BuiltCollective], &Plan), ends: &mut [End]) {
    for (index, (collective, built)) in scenario.collectives.iter().zip(built).enumerate() {
        if !collective.called {
            continue;
        }
        let claims = claims.tree(Owner::Segment(index, 0)).is_some();
        for (participant, &end) in collective.participants.iter().enumerate() {
            let stages = scenario.switch.ceng.stages as u8;
            let role = role(collective, built, participant, (layout.ends[end as usize], stages));
            let (core, processor) = parts(ends, end);
            processor.set_role(collective.id as u16, Role { claims, ..role });
            if claims {
                core.claims(collective.id as u16);
            }
        }
    }
}

/// End points that run programs, are on a multicast tree, or may call a collective.
pub fn participating(scenario: &Scenario, programs: &Programs) -> BTreeSet<u32> {
    let trees = programs.multicasts.iter().flat_map(|tree| std::iter::once(&tree.source).chain(&tree.receivers));
    let called = scenario.collectives.iter().filter(|collective| collective.called);
    let called = called.flat_map(|collective| collective.participants.iter());
    trees.chain(programs.programs.iter().flat_map(|text| &text.cores)).chain(called).copied().collect()
}

/// Says that programs may write configuration registers, and where these are, seen from cores.
pub fn make_writable(
    registers: &mut Registers,
    scenario: &Scenario,
    (layout, common, neighbours): (&Layout, &Common, &Neighbours),
) {
    if scenario.programs.is_none() {
        return;
    }
    registers.rewritable = true;
    let pipeline = crate::switches::pipeline(scenario);
    let cycles = |of: LinkParams| u64::from(of.latency) + u64::from(of.cycles_per_flit) - 1;
    let switch = u64::from(pipeline.front()) + u64::from(pipeline.post()) + 1;
    let size = (scenario.topology.switches(), layout.external_ports);
    let links = embedding_graph::links(layout, common);
    let of = |switch: u32, port: u16| cycles(links(switch, port));
    let reach = Reach::new((cycles(common.local), switch), size, neighbours, of);
    let reach = if is_access_in_band(scenario) { reach.in_band(first_end_points(layout, size.0)) } else { reach };
    registers.reach = Some(Arc::new(reach));
}

/// Places the sources of traffic, and where accesses to registers go in band, an end point for them at switches that have none.
pub(crate) fn place(
    scenario: &Scenario,
    layout: &mut Layout,
    local: LinkParams,
    problems: &mut Vec<Problem>,
) -> Sources {
    let sources = Sources::place(scenario, layout, local, problems);
    if is_access_in_band(scenario) {
        let ends = first_end_points(layout, scenario.topology.switches());
        for (switch, _) in (0..).zip(ends).filter(|(_, end)| end.is_none()) {
            // On a die the port of a core, elsewhere the first one that leads nowhere.
            let all = layout.external_ports;
            let mut ports = [port::LOCAL].into_iter().filter(|&at| at < all).chain(0..all);
            if let Some(port) = ports.find(|&at| layout.neighbour(switch, at).is_none()) {
                layout.attach(EndPlace { switch, port }, local, "registers");
            }
        }
    }
    sources
}

/// The first end point of each switch.
fn first_end_points(layout: &Layout, switches: u32) -> Vec<Option<u32>> {
    let mut ends = vec![None; switches as usize];
    for (place, end) in layout.ends.iter().zip(0..) {
        ends[place.switch as usize].get_or_insert(end);
    }
    ends
}

/// Whether programs may access configuration registers, as far as their text says: then nobody knows which links they use.
pub fn may_access_registers(programs: &Programs) -> bool {
    let code = programs.programs.iter().flat_map(|text| &text.program.code);
    code.into_iter().any(|(instruction, _)| match instruction {
        Instruction::Load(_, Source::Number(base), offset) | Instruction::Store(Source::Number(base), offset, _) => {
            base.wrapping_add(*offset) & (0xf << 60) == CONFIGURATION
        }
        Instruction::Load(..) | Instruction::Store(..) => true,
        _ => false,
    })
}

/// Whether accesses to configuration registers may go over point-to-point channels.
pub fn is_access_in_band(scenario: &Scenario) -> bool {
    let in_band = |of: &Programs| of.core.register_access == RegisterAccess::InBand && may_access_registers(of);
    scenario.programs.as_ref().is_some_and(in_band)
}

/// Puts a processor at an end point.
fn attach(
    end_point: &mut End,
    end: u32,
    scenario: &Scenario,
    cfg: ProcessorCfg,
    memory: &Arc<MemoryCfg>,
    layout: &Layout,
) {
    let core = end_point.core.get_or_insert_with(|| Box::new(Core::new(Arc::clone(memory))));
    for collective in scenario.collectives.iter().filter(|collective| collective.called) {
        core.wait_for(collective.id as u16, collective.kind == CollectiveKind::Scan && collective.inclusive);
    }
    let node = &layout.plan.nodes[layout.plan.nodes.len() - layout.ends.len() + end as usize];
    let mut name = node.name.trim_end_matches(".memory").to_owned();
    if name.is_empty() {
        // Nodes of a system of which only what is used was built have no names.
        name = layout.shape.switch_name(layout.ends[end as usize].switch);
    }
    let ids = scenario.switch.collective_ids as u16;
    let beside = end_point.beside.get_or_insert_default();
    beside.processor =
        Some(Processor::new(cfg, (end, layout.cores as u32), layout.ends[end as usize].switch, name, ids));
}

/// Core and processor of an end point that has both.
fn parts(ends: &mut [End], end: u32) -> (&mut Core, &mut Processor) {
    let End { core, beside, .. } = &mut ends[end as usize];
    match (core, beside.as_deref_mut()) {
        (Some(core), Some(EndExtras { processor: Some(processor), .. })) => (core, processor),
        _ => unreachable!("a processor was attached to every end point that takes part"),
    }
}

fn role(collective: &Collective, built: &BuiltCollective, participant: usize, (place, stages): (EndPlace, u8)) -> Role {
    let lanes = |dtype: DType| u64::from(dtype.lanes());
    let sends = collective.kind != CollectiveKind::Broadcast || collective.source as usize == participant;
    let kind = JobKind {
        sends,
        receives: built.footprint().reached.contains(&place),
        data: collective.kind != CollectiveKind::Barrier,
    };
    let conversion = collective.accumulate.map(|pair| watershed_piuma::Conversion {
        pair,
        mode: arith::Mode::rounding(collective.round),
        narrows: !collective.result_stays_wide,
    });
    Role {
        intrinsic: intrinsic(collective.kind),
        kind,
        lanes: (lanes(collective.dtype), lanes(collective.network_dtype())),
        conversion,
        scan: crate::scan::end(collective, stages),
        claims: false,
    }
}

/// Derives conflict sets and their wires from the registers of a scenario.
pub(crate) fn overlaps(
    scenario: &Scenario,
    (layout, common, neighbours): (&Layout, &Common, &Neighbours),
    registers: &Registers,
    footprints: &BTreeMap<Owner, &Footprint>,
) -> Plan {
    if !scenario.checks.claims || footprints.len() < 2 {
        return Plan::default();
    }
    let place = |&end: &u32| layout.ends[end as usize];
    let multicasts: Vec<_> = scenario.programs.iter().flat_map(|programs| &programs.multicasts).collect();
    let senders: Vec<Vec<EndPlace>> = footprints
        .iter()
        .map(|(owner, footprint)| match *owner {
            Owner::Segment(index, _) => {
                let of = &scenario.collectives[index];
                let places = of.participants.iter().map(place);
                // What is not reduced comes from one.
                if footprint.tree.is_some() {
                    places.collect()
                } else {
                    places.skip(of.source as usize).take(1).collect()
                }
            }
            Owner::Multicast(index) => vec![place(&multicasts[index].source)],
        })
        .collect();
    let shares = open_planes(scenario, registers, footprints.keys());
    let claimants: Vec<Claimant<'_>> = footprints
        .iter()
        .zip(&senders)
        .map(|((owner, footprint), senders)| match *owner {
            Owner::Segment(index, segment) => {
                let of = &scenario.collectives[index];
                let (id, plane) = (of.id as u16 + segment as u16, (of.plane + segment as u32) as u8);
                let order = scenario.workload.as_ref().and_then(|workload| workload.orders.get(index).copied());
                let (reduces, open) = (footprint.tree.is_some(), shares.contains(&plane));
                Claimant { id, plane, footprint, senders, reduces, multicast: false, order, open }
            }
            Owner::Multicast(index) => {
                let id = multicasts[index].id as u16;
                let open = shares.contains(&0);
                Claimant { id, plane: 0, footprint, senders, reduces: false, multicast: true, order: None, open }
            }
        })
        .collect();
    let params = embedding_graph::links(layout, common);
    let cycles = |switch: u32, port: u16| Cycle::from(params(switch, port).latency);
    let wiring = Wiring::derive(&claimants, registers, &Links { neighbours, cycles: &cycles });
    Plan { wiring, owners: footprints.keys().copied().collect() }
}

/// Planes with trees of several ids, of which programs may write one.
fn open_planes<'a>(
    scenario: &Scenario,
    registers: &Registers,
    owners: impl Iterator<Item = &'a Owner>,
) -> BTreeSet<u8> {
    let mut ids: BTreeMap<u8, BTreeSet<u16>> = BTreeMap::new();
    let mut written = BTreeSet::new();
    let multicasts: Vec<_> = scenario.programs.iter().flat_map(|programs| &programs.multicasts).collect();
    for owner in owners {
        let (id, plane, own) = match *owner {
            Owner::Segment(index, segment) => {
                let of = &scenario.collectives[index];
                (of.id + segment as u32, of.plane + segment as u32, !of.called)
            }
            Owner::Multicast(index) => (multicasts[index].id, 0, false),
        };
        ids.entry(plane as u8).or_default().insert(id as u16);
        let mut programs = scenario.programs.iter().flat_map(|programs| &programs.programs);
        if !own && programs.any(|text| tree_writes::may_write_tree(&text.program, registers, id as u16)) {
            written.insert(plane as u8);
        }
    }
    ids.into_iter().filter(|(plane, ids)| ids.len() > 1 && written.contains(plane)).map(|(plane, _)| plane).collect()
}

/// Claim registers of the queues of multicasts that overlap others, by end point and id: slots are divided evenly among those who
/// send to a queue, its own core among them.
///
/// # Errors
/// A queue has no slot for each of them.
pub(crate) fn claim_queues(programs: &Programs, claims: &Plan) -> Result<BTreeMap<(u32, u16), QueueClaim>, Problem> {
    let mut queues: BTreeMap<(u32, u16), QueueClaim> = BTreeMap::new();
    let list = &programs.multicasts;
    let claiming = |index: usize| claims.tree(Owner::Multicast(index)).is_some();
    for (index, of) in list.iter().enumerate().filter(|(index, _)| claiming(*index)) {
        let of_id = list.iter().filter(|other| other.id == of.id);
        let trees: Vec<(u32, &[u32])> = of_id.map(|of| (of.source, &of.receivers[..])).collect();
        let number = list[..index].iter().filter(|other| other.id == of.id).count();
        let shares = shares(programs.core.mcast_queue_depth, of.id, &trees, number)?;
        for (&end, slots) in of.receivers.iter().zip(shares.slots) {
            queues.entry((end, of.id as u16)).or_insert_with(|| QueueClaim::new(None, 0, slots));
        }
        queues.insert((of.source, of.id as u16), QueueClaim::new(Some(number as u8), shares.credits, shares.own));
    }
    Ok(queues)
}

/// What a source of a multicast may have under way.
pub(crate) struct CreditShares {
    /// Messages that no receiver has taken.
    pub credits: u32,
    /// Messages in its own queue that have not left.
    pub own: u32,
    /// The slots of each receiver's own messages.
    pub slots: Vec<u32>,
}

/// The slots of tree `number` among those of one id, sources with their receivers.
///
/// # Errors
/// A queue has no slot for each of those who send to it.
pub(crate) fn shares(depth: u32, id: u32, trees: &[(u32, &[u32])], number: usize) -> Result<CreditShares, Problem> {
    // How many send to the queue of an end point.
    let senders = |end: u32| {
        let there = trees.iter().filter(|(_, receivers)| receivers.contains(&end)).count();
        (there + usize::from(trees.iter().any(|(source, _)| *source == end))) as u32
    };
    let (source, receivers) = trees[number];
    let fuller = |most: u32, &end: &u32| if senders(end) > senders(most) { end } else { most };
    let most = receivers.iter().fold(source, fuller);
    if senders(most) > depth {
        let message = format!(
            "{} cores send messages of tree {id} to the queue of core {most}, each of which needs a slot there",
            senders(most)
        );
        let problem = Problem::at("core.mcast_queue_depth", message);
        let why = "as the tree overlaps another one, or may come to by what programs write";
        return Err(problem.expected(format!("{} or more, {why}", senders(most))));
    }
    let slots: Vec<u32> = receivers.iter().map(|&end| depth / senders(end)).collect();
    let credits = slots.iter().copied().min().unwrap_or(depth);
    Ok(CreditShares { credits, own: depth / senders(source), slots })
}

/// Random elements in words.
fn random(seed: u64, what: usize, core: usize, count: u64, dtype: DType) -> Vec<u64> {
    let bits = layout(dtype);
    let distribution = match bits {
        Bits::Float { .. } => crate::file::Distribution::Normal,
        Bits::Integer { .. } => crate::file::Distribution::Integers,
    };
    let mut stream = Stream::data(seed, 1 << 32 | what, core);
    arith::pack_words(dtype, &stream.elements(count, distribution, bits))
}
