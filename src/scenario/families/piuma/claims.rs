//! The claim wires of a system under way (see [`watershed_piuma::claim`]): the pulses between cores, switches and arbiters.

use super::overlaps::{Owner, Plan};
use crate::Scenario;
use crate::build::PiumaBuild;
use crate::programs::build::{CreditShares, shares};
use crate::programs::rules::StoreRules;
use crate::run::system::PiumaSystem as System;
use std::collections::{BTreeMap, BTreeSet};
use watershed_fabric::topology::EndPlace;
use watershed_kernel::Cycle;
use watershed_piuma::ClaimTimes;
use watershed_piuma::claim::{self, Event, EventKind, QueueClaim, Rewrite, Signal, Unit, Units, Wire};
use watershed_piuma::processor::ReadyCall as Waiting;

/// The claim registers stand beside the engines of their switches.
struct ClaimRegisters<'a>(&'a mut System);

impl Units for ClaimRegisters<'_> {
    fn unit(&mut self, switch: u32) -> &mut Unit {
        self.0.join_mut(switch).expect("every switch of a tree has an engine").claim_mut()
    }
}

/// How a tree's claim goes on.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct TreeState {
    /// Of each participant or receiver: its end point, its job, since when it is ready, and from when on its wires are free.
    leaves: Vec<LeafState>,
    /// Of a multicast: its source, and the number of that among the sources of its id.
    source: Option<(usize, u8)>,
    claimed: ClaimTimes,
    /// Participants that are ready and have not been granted, and since when.
    waiting: Vec<(u32, Cycle)>,
    /// Participants that have started and are not done.
    open: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct LeafState {
    end: usize,
    job: usize,
    ready: Cycle,
    free: [Cycle; 2],
}

/// A tree in which nothing is under way.
fn state(scenario: &Scenario, plan: &Plan, places: &[EndPlace], number: u16) -> TreeState {
    let multicasts: Vec<_> = scenario.programs.iter().flat_map(|programs| &programs.multicasts).collect();
    let mut state = TreeState::default();
    let ends: BTreeMap<EndPlace, usize> = match plan.owner(number) {
        Owner::Segment(index, _) => {
            let of = &scenario.collectives[index];
            of.participants.iter().chain(&of.receiver).map(|&end| (places[end as usize], end as usize)).collect()
        }
        Owner::Multicast(index) => {
            let of = multicasts[index];
            let same = multicasts.iter().take(index).filter(|other| other.id == of.id).count();
            state.source = Some((of.source as usize, same as u8));
            of.receivers.iter().map(|&end| (places[end as usize], end as usize)).collect()
        }
    };
    // Registers that a program wrote may reach others who serve the id.
    let at = |place: &EndPlace| places.iter().position(|of| of == place).expect("a place of an end point");
    let end = |place: &EndPlace| ends.get(place).copied().unwrap_or_else(|| at(place));
    let leaf = |of: &claim::Leaf| LeafState { end: end(&of.place), ..LeafState::default() };
    state.leaves = plan.wiring.trees[usize::from(number)].leaves.iter().map(leaf).collect();
    state
}

/// The claim wires of a system under way.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub(super) struct Claims {
    plan: Plan,
    trees: Vec<TreeState>,
    /// Pulses under way, by the cycle in which they come to their register.
    due: BTreeSet<(Cycle, Signal)>,
    /// End points with processors or ranks that claim.
    processors: BTreeSet<usize>,
    /// Completions of the system that have been looked at.
    seen: u64,
    /// A change that waits for its pulses.
    pending: Option<Box<Pending>>,
}

/// Other conflict sets, of registers that programs have written.
#[derive(Clone, Debug, watershed_state::Saved)]
struct Pending {
    rewrite: Rewrite,
    owners: Vec<Owner>,
    /// Where end points are.
    places: Vec<EndPlace>,
    /// Ids whose registers were written, the end point that used each first, and calls of them that wait for the change.
    ids: BTreeMap<u16, usize>,
    held: Vec<(usize, Waiting)>,
    /// When all arbiters that it touches are closed; none have been told to before all of the last change are open.
    closed: Option<Cycle>,
}

impl Claims {
    /// The wires of a system in cycle 0; none if nobody claims.
    pub(super) fn new(scenario: &Scenario, system: &mut System, ready: &mut PiumaBuild<()>) -> Option<Claims> {
        let (plan, ends) = (ready.claims.clone(), std::mem::take(&mut ready.ends));
        (!plan.wiring.is_empty()).then(|| Claims::of(scenario, (system, ready), plan, &ends))
    }

    /// Idle wires for a plan.
    fn of(
        scenario: &Scenario,
        (system, ready): (&mut System, &PiumaBuild<()>),
        plan: Plan,
        places: &[EndPlace],
    ) -> Claims {
        plan.wiring.build(&mut ClaimRegisters(system));
        let trees = (0..plan.wiring.trees.len() as u16).map(|number| state(scenario, &plan, places, number)).collect();
        let (due, processors) = (BTreeSet::new(), BTreeSet::new());
        let mut claims = Claims { plan, trees, due, processors, seen: u64::MAX, pending: None };
        for number in 0..claims.trees.len() as u16 {
            let owner = claims.plan.owner(number);
            if let Owner::Segment(index, segment) = owner
                && !scenario.collectives[index].called
            {
                let (built, parts) = (&ready.collectives[index], ready.collectives[index].parts());
                for &(end, job) in built.jobs.iter().skip(segment * parts).take(parts) {
                    let called = system.end(end).core.as_ref().map(|core| core.jobs()[job].called());
                    claims.is_ready(system, number, (end, job), called.expect("who takes part has a core"));
                }
            } else {
                claims.listen_to(number);
            }
        }
        claims
    }

    /// Listens to the processors of a tree that programs use.
    fn listen_to(&mut self, tree: u16) {
        let state = &self.trees[usize::from(tree)];
        self.processors.extend(state.leaves.iter().map(|leaf| leaf.end).chain(state.source.map(|(source, _)| source)));
    }

    /// Programs have written registers of these ids, and these end points were the first to use them: other trees may overlap from
    /// now on. Calls of these ids wait until the change is made.
    ///
    /// # Errors
    /// Messages stand where there is no slot for them under the new trees, or a core sends that is no source of a tree.
    pub(super) fn change(
        claims: &mut Option<Claims>,
        scenario: &Scenario,
        (system, rules): (&mut System, &StoreRules),
        plan: Plan,
        mut ids: BTreeMap<u16, usize>,
    ) -> Result<(), String> {
        let Some(claims) = claims.as_mut() else {
            assert!(plan.wiring.is_empty(), "what programs may write claims from the start");
            return Ok(());
        };
        let sources = scenario.programs.iter().flat_map(|programs| &programs.multicasts);
        for (id, end) in rules.senders().filter(|(id, _)| ids.contains_key(id)) {
            let claims = claims.plan.wiring.trees.iter().any(|tree| tree.id == id && tree.source.is_some());
            if claims && !sources.clone().any(|of| (of.id, of.source) == (u32::from(id), end)) {
                return Err(format!(
                    "end point {end} sends by id {id}, whose trees claim, and is the source of no [[multicast]] with this id"
                ));
            }
        }
        let before = claims.pending.take();
        if let Some(before) = &before {
            ids.extend(&before.ids);
        }
        let Plan { wiring, owners } = plan;
        assert_eq!(wiring.trees.len(), claims.trees.len());
        if before.is_none() && wiring == claims.plan.wiring {
            return Ok(());
        }
        let (held, before) = before.map(|of| (of.held, of.rewrite.trees)).unwrap_or_default();
        // Others of the same id may be at work.
        let moved = |(was, is): (&claim::Tree, &claim::Tree)| was.joins != is.joins || was.leaves != is.leaves;
        let numbers = (0..).zip(claims.plan.wiring.trees.iter().zip(&wiring.trees));
        let numbers = numbers.filter(|(number, (was, is))| before.contains(number) || moved((was, is)));
        let trees: BTreeSet<u16> = numbers.map(|(number, _)| number).collect();
        // What the first use has sent over the old tree in this cycle counts for nothing.
        claims.due.retain(|(_, signal)| match *signal {
            Signal::Up { tree, wire: Wire::First, .. } => {
                !trees.contains(&tree) || claims.plan.wiring.trees[usize::from(tree)].source.is_some()
            }
            Signal::Ask(tree) => !trees.contains(&tree),
            _ => true,
        });
        let (rewrite, places) = (Rewrite { wiring, trees }, rules.layout.ends.clone());
        claims.pending = Some(Box::new(Pending { rewrite, owners, places, ids, held, closed: None }));
        claims.advance_pending(scenario, system)
    }

    /// Goes on with a change that waits, if nothing is in its way any more.
    ///
    /// # Errors
    /// Messages stand where there is no slot for them under the new trees.
    pub(super) fn advance_pending(&mut self, scenario: &Scenario, system: &mut System) -> Result<(), String> {
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        system.refresh();
        let now = system.now();
        let opens = self.due.iter().any(|(_, signal)| matches!(signal, Signal::Open(_)));
        match pending.closed {
            None if opens => {}
            None => {
                let until = self.close_arbiters(system, &pending);
                pending.closed = Some(until);
            }
            Some(until) if now >= until && self.is_due(system, &pending.rewrite) => {
                return self.load(scenario, system, *pending);
            }
            // The pulses that it waits for are in `due`.
            Some(until) if now >= until => pending.closed = Some(0),
            Some(_) => {}
        }
        self.pending = Some(pending);
        Ok(())
    }

    /// Tells all arbiters of the sets that change to close; when all of them are.
    fn close_arbiters(&mut self, system: &mut System, pending: &Pending) -> Cycle {
        let now = system.now();
        let Pending { rewrite, places, ids, .. } = pending;
        let mut last = now + 1;
        for (&id, &user) in ids {
            let trees = (0..).zip(&rewrite.wiring.trees).filter(|(_, tree)| tree.id == id);
            for (number, of) in trees {
                let leaf = of.leaves.iter().position(|leaf| leaf.place == places[user]).map(|leaf| leaf as u32);
                let source = self.trees[usize::from(number)].source;
                if source.map_or(leaf.is_none(), |(source, _)| source != user) {
                    continue;
                }
                for (cycles, signal) in rewrite.close(&self.plan.wiring, (number, leaf.filter(|_| source.is_none()))) {
                    last = last.max(now + cycles);
                    if self.due.insert((now + cycles, signal)) {
                        self.wake(system, now + cycles, signal);
                    }
                }
            }
        }
        last
    }

    /// Whether all that was written is idle.
    fn is_due(&self, system: &mut System, rewrite: &Rewrite) -> bool {
        let ends = |signal: &Signal| match *signal {
            Signal::Free(tree) | Signal::Down { tree, .. } | Signal::Start { tree, .. } => {
                rewrite.trees.contains(&tree)
            }
            Signal::Up { tree, wire, .. } | Signal::Source { tree, wire } => {
                wire == Wire::Done && rewrite.trees.contains(&tree)
            }
            Signal::Ask(_) | Signal::Open(_) => false,
            Signal::Close(_) => true,
        };
        let open = |&tree: &u16| !self.trees[usize::from(tree)].open.is_empty();
        !self.due.iter().any(|(_, signal)| ends(signal))
            && !rewrite.trees.iter().any(open)
            && rewrite.is_due(&self.plan.wiring, &mut ClaimRegisters(system))
    }

    /// Moves the registers of a change, and says again what was said of trees that were written.
    fn load(&mut self, scenario: &Scenario, system: &mut System, pending: Pending) -> Result<(), String> {
        let Pending { rewrite, owners, places, ids, mut held, .. } = pending;
        let shares_before = self.shares(scenario)?;
        let (now, before) = (system.now(), &self.plan.wiring);
        let under_way = std::mem::take(&mut self.due).into_iter();
        let forwarded =
            under_way.filter_map(|(cycle, signal)| Some((cycle + rewrite.forward(before, signal)?, signal)));
        let due: Vec<_> = forwarded
            .chain(
                rewrite
                    .load(before, &mut ClaimRegisters(system))
                    .into_iter()
                    .map(|(way, signal)| (now + way.max(1), signal)),
            )
            .collect();
        self.plan = Plan { wiring: rewrite.wiring, owners };
        for (cycle, signal) in due {
            self.send(system, cycle, signal);
        }
        for &tree in &rewrite.trees {
            let old = std::mem::replace(&mut self.trees[usize::from(tree)], state(scenario, &self.plan, &places, tree));
            let id = self.plan.wiring.trees[usize::from(tree)].id;
            held.extend(old.waiting.iter().map(|&(leaf, cycle)| {
                let LeafState { end, job, .. } = old.leaves[leaf as usize];
                (end, Waiting { id, job, cycle })
            }));
            self.listen_to(tree);
        }
        for (tree, shares) in self.shares(scenario)? {
            let id = self.plan.wiring.trees[usize::from(tree)].id;
            if rewrite.trees.contains(&tree) {
                self.recount_credits(system, tree, &shares)?;
            } else if ids.contains_key(&id) && shares_before.get(&tree).is_some_and(|was| shares.credits < was.credits)
            {
                return Err(format!(
                    "registers of multicast {id} were written so that another source of it has fewer slots at its receivers"
                ));
            }
        }
        for (end, call) in held {
            let tree = self.tree_of(end, call.id).expect("who calls a collective takes part in it");
            self.is_ready(system, tree, (end, call.job), now);
        }
        Ok(())
    }

    /// What sources of multicasts may have under way, by tree.
    fn shares(&self, scenario: &Scenario) -> Result<BTreeMap<u16, CreditShares>, String> {
        let depth = scenario.programs.as_ref().map_or(0, |programs| programs.core.mcast_queue_depth);
        let mut of_id: BTreeMap<u16, Vec<(u16, u32, Vec<u32>)>> = BTreeMap::new();
        for (number, (tree, state)) in (0..).zip(self.plan.wiring.trees.iter().zip(&self.trees)) {
            if let Some((source, _)) = state.source {
                let receivers = state.leaves.iter().map(|leaf| leaf.end as u32).collect();
                of_id.entry(tree.id).or_default().push((number, source as u32, receivers));
            }
        }
        let mut all = BTreeMap::new();
        for (id, trees) in of_id {
            let lists: Vec<(u32, &[u32])> =
                trees.iter().map(|(_, source, receivers)| (*source, &receivers[..])).collect();
            for (at, (number, ..)) in trees.iter().enumerate() {
                let of = shares(depth, u32::from(id), &lists, at).map_err(|problem| problem.message().to_owned())?;
                all.insert(*number, of);
            }
        }
        Ok(all)
    }

    /// Counts the credits of a multicast that was written, and lets its source ask again.
    fn recount_credits(&mut self, system: &mut System, tree: u16, shares: &CreditShares) -> Result<(), String> {
        let id = self.plan.wiring.trees[usize::from(tree)].id;
        let state = &self.trees[usize::from(tree)];
        let Some((source, number)) = state.source else { return Ok(()) };
        let mut standing = Vec::new();
        for (leaf, &slots) in state.leaves.iter().zip(&shares.slots) {
            let Some(processor) = system.end_mut(leaf.end).processor_mut() else { continue };
            if processor.cce().claim(id).is_none() {
                processor.cce_mut().claims(id, Some(QueueClaim::new(None, 0, slots)));
            }
            standing.push(processor.cce().claim(id).map_or(0, |claim| claim.queued_from(number)));
        }
        let most = standing.iter().copied().max().unwrap_or(0);
        if most > shares.credits {
            return Err(format!(
                "registers of multicast {id} were written while {most} messages of end point {source} stand in a queue, where the \
                 trees that lead there now leave it {} slots",
                shares.credits
            ));
        }
        let now = system.now();
        let claim = system.end_mut(source).processor_mut().and_then(|processor| processor.cce_mut().claim_mut(id));
        let asks = claim.is_some_and(|(claim, _)| claim.recount(shares.credits - most, shares.own));
        for (leaf, stands) in (0..).zip(standing) {
            for _ in stands..most {
                self.send_pulse(system, tree, leaf, Wire::First, now);
            }
        }
        if asks {
            self.send(system, now + self.plan.wiring.trees[usize::from(tree)].reach, Signal::Ask(tree));
        }
        Ok(())
    }

    /// The tree over which a core calls a collective, if that claims.
    fn tree_of(&self, end: usize, id: u16) -> Option<u16> {
        let of_it = |of: &TreeState| of.source.is_none() && of.leaves.iter().any(|leaf| leaf.end == end);
        let found = self.plan.wiring.trees.iter().zip(&self.trees).position(|(tree, of)| tree.id == id && of_it(of));
        found.map(|tree| tree as u16)
    }

    /// The next cycle in which a pulse comes to a register.
    pub(super) fn next(&self) -> Cycle {
        let closed =
            self.pending.as_ref().and_then(|pending| pending.closed).filter(|&closed| closed > 0).unwrap_or(Cycle::MAX);
        self.due.first().map_or(Cycle::MAX, |&(cycle, _)| cycle).min(closed)
    }

    /// The switch in which the register of a pulse stands is clocked when it comes.
    fn wake(&self, system: &mut System, cycle: Cycle, signal: Signal) {
        let wiring = &self.plan.wiring;
        let of = |tree: u16| &wiring.trees[usize::from(tree)];
        let switch = match signal {
            Signal::Up { tree, join, .. } | Signal::Down { tree, join } => of(tree).joins[join as usize].switch,
            Signal::Ask(tree) | Signal::Free(tree) => wiring.arbiters[usize::from(of(tree).set)],
            Signal::Close(set) | Signal::Open(set) => wiring.arbiters[usize::from(set)],
            Signal::Start { tree, leaf } if of(tree).source.is_none() => of(tree).leaves[leaf as usize].place.switch,
            Signal::Start { tree, .. } | Signal::Source { tree, .. } => of(tree).joins[0].switch,
        };
        system.wake_at(switch, cycle);
    }

    /// A pulse leaves.
    fn send(&mut self, system: &mut System, cycle: Cycle, signal: Signal) {
        self.wake(system, cycle, signal);
        let new = self.due.insert((cycle, signal));
        assert!(new, "a wire carries a pulse a cycle: {signal:?} in cycle {cycle}");
    }

    /// A pulse leaves a participant or receiver on one of its wires, in this cycle or as soon as the wire is free.
    fn send_pulse(&mut self, system: &mut System, tree: u16, leaf: u32, wire: Wire, cycle: Cycle) {
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
        self.send_pulse(system, tree, leaf as u32, Wire::First, cycle);
    }

    /// Looks at what end points have told since the last step.
    pub(super) fn collect_events(&mut self, system: &mut System) {
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
                    Some(cycle) => self.send_pulse(system, tree, leaf, Wire::Done, cycle),
                    None => self.trees[usize::from(tree)].open.push(leaf),
                }
            }
        }
        for end in self.processors.clone() {
            let point = system.end_asleep(end);
            let ready = point.take_ready();
            let told = point.processor_mut().map_or_else(Vec::new, |processor| processor.cce_mut().take_told());
            for call in ready {
                let Some(tree) = self.tree_of(end, call.id) else { continue };
                match &mut self.pending {
                    Some(pending) if pending.rewrite.trees.contains(&tree) => pending.held.push((end, call)),
                    _ => self.is_ready(system, tree, (end, call.job), call.cycle),
                }
            }
            for event in told {
                self.handle_event(system, end, event);
            }
        }
    }

    /// What a data queue tells.
    fn handle_event(&mut self, system: &mut System, end: usize, Event { cycle, id, what }: Event) {
        let sender = |of: &TreeState, number: u8| of.source.is_some_and(|(_, of)| of == number);
        let is_it = |of: &TreeState| match what {
            EventKind::Requested => of.source.is_some_and(|(source, _)| source == end),
            EventKind::Enqueued(number) | EventKind::Dequeued(number) => sender(of, number),
        };
        let all = (0..).zip(self.plan.wiring.trees.iter().zip(&self.trees));
        let Some((tree, (of, state))) = all.into_iter().find(|(_, (tree, state))| tree.id == id && is_it(state)) else {
            return;
        };
        let changes = self.pending.as_ref().is_some_and(|pending| pending.rewrite.trees.contains(&tree));
        let wire = match what {
            EventKind::Requested => {
                let at = cycle + of.reach;
                // While its tree changes it asks again afterwards.
                if !changes {
                    self.send(system, at, Signal::Ask(tree));
                }
                return;
            }
            EventKind::Enqueued(_) => Wire::Done,
            EventKind::Dequeued(_) if changes => return,
            EventKind::Dequeued(_) => Wire::First,
        };
        if let Some(leaf) = state.leaves.iter().position(|leaf| leaf.end == end) {
            self.send_pulse(system, tree, leaf as u32, wire, cycle);
        }
    }

    /// Clocks the registers to which pulses come in the present cycle.
    pub(super) fn clock(&mut self, system: &mut System) {
        let now = system.now();
        while let Some((cycle, signal)) = self.due.first().copied().filter(|(cycle, _)| *cycle <= now) {
            assert_eq!(cycle, now, "no cycle with a pulse is jumped over");
            self.due.pop_first();
            match signal {
                Signal::Start { tree, leaf } => self.start(system, tree, leaf),
                Signal::Source { tree, wire } => self.source(system, tree, wire),
                _ => {
                    if let Signal::Ask(tree) = signal {
                        let state = &mut self.trees[usize::from(tree)];
                        let last = state.leaves.iter().map(|leaf| (leaf.ready, leaf.end)).max();
                        state.claimed = ClaimTimes { asked: now, last: last.unwrap_or_default(), ..state.claimed };
                    }
                    let mut out = Vec::new();
                    claim::deliver(&self.plan.wiring, &mut ClaimRegisters(system), signal, &mut out);
                    for (cycles, next) in out {
                        if let (
                            Signal::Ask(_) | Signal::Free(_) | Signal::Open(_),
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
