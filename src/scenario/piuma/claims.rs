//! The claim wires of a system under way (see [`watershed_piuma::claim`]): the pulses between cores, switches and arbiters.

use super::overlaps::{Owner, Plan};
use crate::Scenario;
use crate::build::Ready;
use crate::programs::build::claim_queues;
use crate::run::system::PiumaSystem as System;
use std::collections::{BTreeMap, BTreeSet};
use watershed_fabric::topology::EndPlace;
use watershed_kernel::Cycle;
use watershed_piuma::Claimed;
use watershed_piuma::claim::{self, Event, Signal, Unit, Units, What, Wire};
use watershed_piuma::processor::Ready as Waiting;

/// The claim registers stand beside the engines of their switches.
struct Registered<'a>(&'a mut System);

impl Units for Registered<'_> {
    fn unit(&mut self, switch: u32) -> &mut Unit {
        self.0.join_mut(switch).expect("every switch of a tree has an engine").claim_mut()
    }
}

/// How a tree's claim goes on.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct State {
    /// Of each participant or receiver: its end point, its job, since when it is ready, and from when on its wires are free.
    leaves: Vec<LeafState>,
    /// Of a multicast: its source, and the number of that among the sources of its id.
    source: Option<(usize, u8)>,
    claimed: Claimed,
    /// Participants that are ready and have not been granted, and since when.
    waiting: Vec<(u32, Cycle)>,
    /// Participants that have started and are not done.
    open: Vec<u32>,
}

impl State {
    /// Whether it is a collective for which not all participants are ready: it holds nothing and asks for nothing.
    fn is_half_called(&self) -> bool {
        self.source.is_none() && self.waiting.len() < self.leaves.len()
    }
}

#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct LeafState {
    end: usize,
    job: usize,
    ready: Cycle,
    free: [Cycle; 2],
}

/// The claim wires of a system under way.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Claims {
    plan: Plan,
    trees: Vec<State>,
    /// Pulses under way, by the cycle in which they come to their register.
    due: BTreeSet<(Cycle, Signal)>,
    /// End points with processors or ranks that claim.
    processors: BTreeSet<usize>,
    /// Completions of the system that have been looked at.
    seen: u64,
    /// A change that waits until nobody is in the middle of something.
    pending: Option<Box<Pending>>,
}

/// Other conflict sets, of registers that programs have written.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Pending {
    plan: Plan,
    /// Where end points are.
    places: Vec<EndPlace>,
    /// Ids whose registers were written, and calls of them that wait for the change.
    ids: BTreeSet<u16>,
    held: Vec<(usize, Waiting)>,
}

impl Claims {
    /// The wires of a system in cycle 0; none if nobody claims.
    pub(super) fn new(scenario: &Scenario, system: &mut System, ready: &mut Ready<()>) -> Option<Claims> {
        let (plan, ends) = (ready.claims.clone(), std::mem::take(&mut ready.ends));
        (!plan.wiring.is_empty()).then(|| Claims::of(scenario, (system, ready), plan, &ends))
    }

    /// Idle wires for a plan.
    fn of(scenario: &Scenario, (system, ready): (&mut System, &Ready<()>), plan: Plan, places: &[EndPlace]) -> Claims {
        plan.wiring.build(&mut Registered(system));
        let multicasts: Vec<_> = scenario.programs.iter().flat_map(|programs| &programs.multicasts).collect();
        let mut claims = Claims {
            trees: vec![State::default(); plan.wiring.trees.len()],
            due: BTreeSet::new(),
            processors: BTreeSet::new(),
            seen: u64::MAX,
            pending: None,
            plan,
        };
        let mut starts = Vec::new();
        for number in 0..claims.trees.len() as u16 {
            let (owner, tree) = (claims.plan.owner(number), &claims.plan.wiring.trees[usize::from(number)]);
            let ends: BTreeMap<EndPlace, usize> = match owner {
                Owner::Segment(index, _) => {
                    let of = &scenario.collectives[index];
                    let ends = of.participants.iter().chain(&of.receiver);
                    ends.map(|&end| (places[end as usize], end as usize)).collect()
                }
                Owner::Multicast(index) => {
                    let of = multicasts[index];
                    let same = multicasts.iter().take(index).filter(|other| other.id == of.id).count();
                    claims.trees[usize::from(number)].source = Some((of.source as usize, same as u8));
                    of.receivers.iter().map(|&end| (places[end as usize], end as usize)).collect()
                }
            };
            // Registers that a program wrote may reach others who serve the id.
            let at = |place: &EndPlace| places.iter().position(|of| of == place).expect("a place of an end point");
            let end = |place: &EndPlace| ends.get(place).copied().unwrap_or_else(|| at(place));
            let leaf = |of: &claim::Leaf| LeafState { end: end(&of.place), ..LeafState::default() };
            claims.trees[usize::from(number)].leaves = tree.leaves.iter().map(leaf).collect();
            match owner {
                Owner::Segment(index, segment) if !scenario.collectives[index].called => {
                    let (built, parts) = (&ready.collectives[index], ready.collectives[index].parts());
                    for &(end, job) in built.jobs.iter().skip(segment * parts).take(parts) {
                        let jobs = system.end(end).core.as_ref().map_or(&[][..], |core| core.jobs());
                        if jobs[job].end().is_none() {
                            starts.push((number, end, job, jobs[job].called()));
                        }
                    }
                }
                Owner::Segment(..) => claims.processors.extend(ends.values()),
                Owner::Multicast(index) => {
                    claims.processors.extend(ends.values());
                    claims.processors.insert(multicasts[index].source as usize);
                }
            }
        }
        for (tree, end, job, cycle) in starts {
            claims.is_ready(system, tree, (end, job), cycle);
        }
        claims
    }

    /// Whether nobody holds a tree or asks for one, and nothing of that is under way. Who is ready for a collective that others are
    /// not ready for holds nothing.
    fn is_free(&self, system: &mut System) -> bool {
        let registered = &mut Registered(system);
        let joins = self.plan.wiring.trees.iter().flat_map(|tree| &tree.joins).map(|at| at.switch);
        let switches: BTreeSet<u32> = joins.chain(self.plan.wiring.arbiters.iter().copied()).collect();
        let half_called = |tree: u16| self.trees[usize::from(tree)].is_half_called();
        let calls =
            |signal: &Signal| matches!(*signal, Signal::Up { tree, wire: Wire::First, .. } if half_called(tree));
        switches.into_iter().all(|switch| registered.unit(switch).is_free(half_called))
            && self.due.iter().all(|(_, signal)| calls(signal))
            && self.trees.iter().all(|tree| tree.open.is_empty())
    }

    /// Programs have written registers of these ids: other trees may overlap from now on. Calls of these ids wait until the change is
    /// made, and it is made when nobody is in the middle of something that it touches.
    ///
    /// # Errors
    /// Messages cannot wait for that.
    pub(super) fn change(
        claims: &mut Option<Claims>,
        scenario: &Scenario,
        (system, ready): (&mut System, &mut Ready<()>),
        (plan, places): (Plan, &[EndPlace]),
        ids: &BTreeSet<u16>,
    ) -> Result<(), String> {
        if claims.as_ref().map_or(plan.wiring.is_empty(), |of| of.pending.is_none() && of.plan.wiring == plan.wiring) {
            return Ok(());
        }
        let claims = claims.get_or_insert_default();
        let (mut ids, held) = (ids.clone(), claims.pending.take().map(|of| (of.ids, of.held)));
        let (before, held) = held.unwrap_or_default();
        ids.extend(before);
        for end in 0..places.len() {
            if let Some(processor) = system.end_asleep(end).processor_mut() {
                for &id in &ids {
                    processor.set_claims(id, true);
                }
                claims.processors.insert(end);
            }
        }
        claims.pending = Some(Box::new(Pending { plan, places: places.to_vec(), ids, held }));
        claims.settle(scenario, (system, ready))
    }

    /// What keeps a change from being made now.
    fn in_the_way(
        &self,
        scenario: &Scenario,
        (system, ready): (&mut System, &Ready<()>),
        changed: &BTreeSet<u16>,
    ) -> Option<String> {
        if !self.is_free(system) {
            return Some("one of them claims its tree or holds it".to_owned());
        }
        let own = scenario.collectives.iter().zip(&ready.collectives).filter(|(of, _)| !of.called);
        for (of, built) in own.filter(|(of, _)| of.ids().any(|id| changed.contains(&(id as u16)))) {
            let job = |&(end, job): &(usize, usize)| Some(&system.end(end).core.as_ref()?.jobs()[job]);
            if built.jobs.iter().filter_map(job).any(|job| job.end().is_none()) {
                return Some(format!("\"{}\" has not ended", of.name));
            }
        }
        for &end in &self.processors {
            let point = system.end(end);
            let (Some(processor), Some(core)) = (point.processor(), &point.core) else { continue };
            let starts = |job: usize| core.jobs()[job].start() != Cycle::MAX;
            let mut open = processor.calls().iter().filter(|call| call.end.is_none() && call.job.is_some_and(starts));
            if let Some(call) = open.find(|call| changed.contains(&call.id)) {
                return Some(format!("{} is in a call of id {}", processor.name(), call.id));
            }
            if let Some(id) = changed.iter().find(|&&id| processor.cce().holds(id)) {
                return Some(format!("messages of id {id} stand in a queue of {}", processor.name()));
            }
        }
        None
    }

    /// Makes a change that waits, if nothing is in its way any more.
    ///
    /// # Errors
    /// Messages cannot wait for that.
    pub(super) fn settle(
        &mut self,
        scenario: &Scenario,
        (system, ready): (&mut System, &mut Ready<()>),
    ) -> Result<(), String> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        system.refresh();
        let ids = |plan: &Plan| plan.wiring.trees.iter().map(|tree| tree.id).collect::<BTreeSet<u16>>();
        let claiming = ids(&pending.plan);
        let mut changed = ids(&self.plan);
        changed.extend(claiming.iter().chain(&pending.ids));
        if let Some(what) = self.in_the_way(scenario, (system, ready), &changed) {
            let mut multicasts = scenario.programs.iter().flat_map(|programs| &programs.multicasts);
            if multicasts.any(|of| pending.ids.contains(&(of.id as u16))) {
                let whom = changed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "stores change which of the ids {whom} overlap, while {what}: those of a multicast are to be made while \
                     these are idle"
                ));
            }
            self.pending = Some(pending);
            return Ok(());
        }
        let queues = match &scenario.programs {
            Some(programs) => claim_queues(programs, &pending.plan).map_err(|problem| problem.message().to_owned())?,
            None => BTreeMap::new(),
        };
        for switch in 0..system.registers().switches() {
            if let Some(join) = system.join_mut(switch).filter(|join| join.claim().is_some()) {
                join.claim_mut().clear();
            }
        }
        for &end in &self.processors {
            let Some(processor) = system.end_asleep(end).processor_mut() else { continue };
            for &id in &changed {
                processor.set_claims(id, claiming.contains(&id));
                processor.cce_mut().claims(id, queues.get(&(end as u32, id)).cloned());
            }
        }
        let Pending { plan, places, mut held, .. } = *pending;
        // Registers of claims begin anew, so who is ready for a collective says so again.
        for (of, state) in self.plan.wiring.trees.iter().zip(&self.trees) {
            held.extend(state.waiting.iter().map(|&(leaf, cycle)| {
                let LeafState { end, job, .. } = state.leaves[leaf as usize];
                (end, Waiting { id: of.id, job, cycle })
            }));
        }
        let processors = std::mem::take(&mut self.processors);
        *self = Claims::of(scenario, (system, ready), plan, &places);
        self.processors = processors;
        let now = system.now();
        for (end, call) in held {
            if let Some(tree) = self.tree_of(end, call.id) {
                self.is_ready(system, tree, (end, call.job), now);
            } else {
                let last = (call.cycle, end);
                let claimed = Claimed { ready: call.cycle, last, asked: now, granted: now };
                if let Some(core) = &mut system.end_mut(end).core {
                    core.job_mut(call.job).grant(claimed, now);
                }
            }
        }
        Ok(())
    }

    /// The tree over which a core calls a collective, if that claims.
    fn tree_of(&self, end: usize, id: u16) -> Option<u16> {
        let of_it = |of: &State| of.source.is_none() && of.leaves.iter().any(|leaf| leaf.end == end);
        let found = self.plan.wiring.trees.iter().zip(&self.trees).position(|(tree, of)| tree.id == id && of_it(of));
        found.map(|tree| tree as u16)
    }

    /// The next cycle in which a pulse comes to a register.
    pub(super) fn next(&self) -> Cycle {
        self.due.first().map_or(Cycle::MAX, |&(cycle, _)| cycle)
    }

    /// A pulse leaves; the switch in which its register stands is clocked when it comes.
    fn send(&mut self, system: &mut System, cycle: Cycle, signal: Signal) {
        let wiring = &self.plan.wiring;
        let of = |tree: u16| &wiring.trees[usize::from(tree)];
        let switch = match signal {
            Signal::Up { tree, join, .. } | Signal::Down { tree, join } => of(tree).joins[join as usize].switch,
            Signal::Ask(tree) | Signal::Free(tree) => wiring.arbiters[usize::from(of(tree).set)],
            Signal::Start { tree, leaf } if of(tree).source.is_none() => of(tree).leaves[leaf as usize].place.switch,
            Signal::Start { tree, .. } | Signal::Source { tree, .. } => of(tree).joins[0].switch,
        };
        system.wake_at(switch, cycle);
        let new = self.due.insert((cycle, signal));
        debug_assert!(new, "a wire carries a pulse a cycle: {signal:?} in cycle {cycle}");
    }

    /// A pulse leaves a participant or receiver on one of its wires, in this cycle or as soon as the wire is free.
    fn up(&mut self, system: &mut System, tree: u16, leaf: u32, wire: Wire, cycle: Cycle) {
        let free = &mut self.trees[usize::from(tree)].leaves[leaf as usize].free[wire as usize];
        let leaves = cycle.max(*free);
        *free = leaves + 1;
        let (join, input, cycles) = self.plan.wiring.trees[usize::from(tree)].leaves[leaf as usize].up;
        self.send(system, leaves + cycles, Signal::Up { tree, join, input, wire });
    }

    /// A core is ready for a collective from a cycle on.
    fn is_ready(&mut self, system: &mut System, tree: u16, (end, job): (usize, usize), cycle: Cycle) {
        let state = &mut self.trees[usize::from(tree)];
        let Some(leaf) = state.leaves.iter().position(|leaf| leaf.end == end) else { return };
        (state.leaves[leaf].job, state.leaves[leaf].ready) = (job, cycle);
        state.waiting.push((leaf as u32, cycle));
        self.up(system, tree, leaf as u32, Wire::First, cycle);
    }

    /// Looks at what end points have told since the last step.
    pub(super) fn listen(&mut self, system: &mut System) {
        if system.completions() == self.seen {
            return;
        }
        self.seen = system.completions();
        for tree in 0..self.trees.len() as u16 {
            let open = std::mem::take(&mut self.trees[usize::from(tree)].open);
            for leaf in open {
                let LeafState { end, job, .. } = self.trees[usize::from(tree)].leaves[leaf as usize];
                let jobs = system.end(end).core.as_ref().map_or(&[][..], |core| core.jobs());
                match jobs[job].end() {
                    Some(cycle) => self.up(system, tree, leaf, Wire::Done, cycle),
                    None => self.trees[usize::from(tree)].open.push(leaf),
                }
            }
        }
        for end in self.processors.clone() {
            let point = system.end_asleep(end);
            let ready = point.take_ready();
            let told = point.processor_mut().map_or_else(Vec::new, |processor| processor.cce_mut().take_told());
            for call in ready {
                match &mut self.pending {
                    Some(pending) if pending.ids.contains(&call.id) => pending.held.push((end, call)),
                    _ => {
                        if let Some(tree) = self.tree_of(end, call.id) {
                            self.is_ready(system, tree, (end, call.job), call.cycle);
                        }
                    }
                }
            }
            for event in told {
                self.tell(system, end, event);
            }
        }
    }

    /// What a data queue tells.
    fn tell(&mut self, system: &mut System, end: usize, Event { cycle, id, what }: Event) {
        let sender = |of: &State, number: u8| of.source.is_some_and(|(_, of)| of == number);
        let is_it = |of: &State| match what {
            What::Ask => of.source.is_some_and(|(source, _)| source == end),
            What::Came(number) | What::Taken(number) => sender(of, number),
        };
        let all = (0..).zip(self.plan.wiring.trees.iter().zip(&self.trees));
        let Some((tree, (of, state))) = all.into_iter().find(|(_, (tree, state))| tree.id == id && is_it(state)) else {
            return;
        };
        let wire = match what {
            What::Ask => {
                let at = cycle + of.reach;
                return self.send(system, at, Signal::Ask(tree));
            }
            What::Came(_) => Wire::Done,
            What::Taken(_) => Wire::First,
        };
        if let Some(leaf) = state.leaves.iter().position(|leaf| leaf.end == end) {
            self.up(system, tree, leaf as u32, wire, cycle);
        }
    }

    /// Clocks the registers to which pulses come in the present cycle.
    pub(super) fn clock(&mut self, system: &mut System) {
        let now = system.now();
        while let Some((cycle, signal)) = self.due.first().copied().filter(|(cycle, _)| *cycle <= now) {
            debug_assert_eq!(cycle, now, "no cycle with a pulse is jumped over");
            self.due.pop_first();
            match signal {
                Signal::Start { tree, leaf } => self.start(system, tree, leaf),
                Signal::Source { tree, wire } => self.source(system, tree, wire),
                _ => {
                    if let Signal::Ask(tree) = signal {
                        let state = &mut self.trees[usize::from(tree)];
                        let last = state.leaves.iter().map(|leaf| (leaf.ready, leaf.end)).max();
                        state.claimed = Claimed { asked: now, last: last.unwrap_or_default(), ..state.claimed };
                    }
                    let mut out = Vec::new();
                    claim::deliver(&self.plan.wiring, &mut Registered(system), signal, &mut out);
                    for (cycles, next) in out {
                        if let (
                            Signal::Ask(_) | Signal::Free(_),
                            Signal::Down { tree, .. } | Signal::Start { tree, .. },
                        ) = (signal, next)
                        {
                            self.trees[usize::from(tree)].claimed.granted = now;
                        }
                        self.send(system, now + cycles, next);
                    }
                }
            }
        }
    }

    /// A grant has come to a participant, or to the source of a multicast.
    fn start(&mut self, system: &mut System, tree: u16, leaf: u32) {
        let (now, id) = (system.now(), self.plan.wiring.trees[usize::from(tree)].id);
        let state = &mut self.trees[usize::from(tree)];
        if let Some((source, _)) = state.source {
            let claim = system.end_mut(source).processor_mut().and_then(|processor| processor.cce_mut().claim_mut(id));
            if let Some((claim, messages)) = claim {
                claim.grant(messages, now);
            }
            return;
        }
        let LeafState { end, job, .. } = state.leaves[leaf as usize];
        state.waiting.retain(|(of, _)| *of != leaf);
        state.open.push(leaf);
        if let Some(core) = &mut system.end_mut(end).core {
            core.job_mut(job).grant(state.claimed, now);
        }
    }

    /// A pulse of all receivers has come to the source of a multicast.
    fn source(&mut self, system: &mut System, tree: u16, wire: Wire) {
        let of = &self.plan.wiring.trees[usize::from(tree)];
        let (id, reach, now) = (of.id, of.reach, system.now());
        let Some((source, _)) = self.trees[usize::from(tree)].source else { return };
        let claim = system.end_mut(source).processor_mut().and_then(|processor| processor.cce_mut().claim_mut(id));
        let Some((claim, _)) = claim else { return };
        match wire {
            Wire::First => claim.credit(),
            Wire::Done => {
                if claim.came() {
                    self.send(system, now + reach, Signal::Free(tree));
                }
            }
        }
    }
}
