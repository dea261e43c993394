//! A divided system, and the ranks that evaluate it together: steps of its parts, what they hand over, what all know of all.
//!
//! One path serves both: what crosses between two parts of this process is handed over at once, the rest goes through the
//! [`Exchange`]. A process alone has no others, and nothing more to do.

use super::exchange::{Exchange, Peers, RankStatus, SyncLevel};
use super::network::{CycleContext, Network, Part, PartTask, Step};
use super::tables::Tables;
use super::wires::{Crossing, Flow, Wires};
use super::{Block, Flit, Join};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use watershed_kernel::{Cycle, WorkerPool};
use watershed_state::{Loader, Mismatch, Saved, Saver, State};

/// Nodes awake in the first part, and in the others together, from which on a cycle is given to threads: below, waiting for them
/// takes longer than the work.
const WORTH_A_THREAD: usize = 24;

/// Number behind the last node of a message.
const NO_NODE: u32 = u32::MAX;

/// The first part of a system, if it is at home, and the others that are.
type HomeParts<'a, P> = (Option<&'a mut P>, &'a mut [Box<P>]);

/// What ranks send each other is made by one program, and all ranks compare their cycles.
const ALIKE: &str = "ranks of one run send what the others expect";

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
    /// The parts that are evaluated in this process: all, if there are no others.
    pub(super) fn home(&self) -> Range<usize> {
        self.peers.as_ref().map_or(0..self.parts(), |peers| peers.home())
    }

    /// The same.
    pub(super) fn home_parts(&self) -> impl Iterator<Item = &Part<J, B, E, W>> {
        self.home().map(|part| self.part(part))
    }

    /// The parts that are evaluated here, to be changed: the first part of the system, if it is among them, and the others.
    pub(super) fn home_parts_mut<'a>(
        home: Range<usize>,
        first: &'a mut Part<J, B, E, W>,
        others: &'a mut [Box<Part<J, B, E, W>>],
    ) -> HomeParts<'a, Part<J, B, E, W>> {
        let (has_first, from, to) = (home.start == 0 && home.end > 0, home.start.max(1) - 1, home.end.max(1) - 1);
        (has_first.then_some(first), &mut others[from.min(to)..to])
    }

    /// Counts what is in some of the parts. The next event counts from the next cycle on.
    fn rank_status<'a>(&self, parts: impl Iterator<Item = &'a Part<J, B, E, W>>) -> RankStatus
    where
        J: 'a,
        B: 'a,
        E: 'a,
    {
        let now = self.now();
        let windows = self.window.is_some();
        let one = |part: &Part<J, B, E, W>| {
            let (wires, flow) = (&part.wires, &part.wires.flow);
            let next = match (windows, wires.wake.is_empty()) {
                (true, _) => Some(part.due).filter(|&due| due != Cycle::MAX),
                (false, true) => wires.next_event(),
                (false, false) => Some(now),
            };
            RankStatus {
                now,
                next,
                alive_until: part.alive_until,
                awake: !part.awake.is_empty(),
                arrivals: flow.arrivals.under_way(),
                live: wires.live_flits(),
                moves: flow.moves,
                served: wires.served,
                completions: wires.completions,
                completed: wires.completed,
                fault: wires.fault.clone(),
                wants_sync: false,
            }
        };
        parts.map(one).reduce(RankStatus::merged_with).unwrap_or(RankStatus { now, ..RankStatus::default() })
    }

    fn total<X>(&self, of_all: impl FnOnce(&RankStatus) -> X, of: impl FnOnce(&Self) -> X) -> X {
        self.peers.as_ref().map_or_else(|| of(self), |peers| of_all(&peers.total))
    }

    /// The cycle of the last completion that an end point has reported.
    pub fn completed(&self) -> Cycle {
        let here = |of: &Self| of.each_part().map(|part| part.wires.completed).max().unwrap_or(0);
        self.total(|all| all.completed, here)
    }

    /// Completions that end points have reported.
    pub fn completions(&self) -> u64 {
        self.total(|all| all.completions, |of| of.each_part().map(|part| part.wires.completions).sum())
    }

    /// Flits moved so far, by anybody.
    pub fn moves(&self) -> u64 {
        self.total(|all| all.moves, |of| of.sum(|flow| flow.moves as usize) as u64)
    }

    /// Set-routed and point-to-point flits that end points and bumps took or sent so far.
    pub fn served(&self) -> [u64; 2] {
        let here = |of: &Self| {
            of.each_part()
                .fold([0; 2], |[set, unicast], part| [set + part.wires.served[0], unicast + part.wires.served[1]])
        };
        self.total(|all| all.served, here)
    }

    /// The first breach of a rule that showed while running.
    pub fn fault(&self) -> Option<&str> {
        match &self.peers {
            Some(peers) => peers.total.fault.as_deref(),
            None => self.each_part().find_map(|part| part.wires.fault.as_deref()),
        }
    }

    /// Flits that are queued or under way.
    pub fn live_flits(&self) -> usize {
        self.total(|all| all.live, |of| of.each_part().map(|part| part.wires.live_flits()).sum())
    }

    /// Flits on links, at most as many as are anywhere; costs nothing to ask.
    pub fn flits_on_links(&self) -> usize {
        self.total(|all| all.arrivals, |of| of.sum(|flow| flow.arrivals.under_way()))
    }

    fn sum(&self, count: fn(&Flow) -> usize) -> usize {
        self.each_part().map(|part| count(&part.wires.flow)).sum()
    }

    /// The next cycle in which something happens in parts that go in step: the present one, if a node is awake.
    fn next_happening(&self) -> Option<Cycle> {
        let now = self.now();
        if let Some(peers) = &self.peers {
            let next = peers.total.next.into_iter().chain(Some(peers.driver).filter(|&at| at != Cycle::MAX)).min();
            return next.map(|next| next.max(now));
        }
        if self.each_part().any(|part| !part.wires.wake.is_empty()) {
            return Some(now);
        }
        self.each_part().filter_map(|part| part.wires.next_event()).min().map(|next| next.max(now))
    }

    /// The next cycle in which something happens in parts that run in windows; `Cycle::MAX` is never.
    pub(super) fn next_due(&self) -> Cycle {
        match &self.peers {
            Some(peers) => peers.total.next.unwrap_or(Cycle::MAX).min(peers.driver),
            None => self.each_part().map(|part| part.due).min().unwrap_or(Cycle::MAX),
        }
    }

    /// A cycle of a divided system: each part on a thread of its own where that is worth a thread, then what crosses.
    pub(super) fn step_parts(&mut self, end: Cycle) -> Step {
        let Some(next) = self.next_happening() else { return self.quiet() };
        if next >= end {
            let now = self.now().max(end);
            self.each_part_mut().for_each(|part| part.wires.flow.now = now);
            return Step::End;
        }
        self.each_part_mut().for_each(|part| part.wires.flow.now = next);
        let mut home = self.home();
        // How much there was to do a cycle ago says how much there is now.
        let mut awake = home.clone().map(|part| self.part(part).awake.len());
        let (own, others_awake) = (awake.next().unwrap_or(0), awake.sum::<usize>());
        let offloaded = own.min(others_awake) >= WORTH_A_THREAD && self.offload.offloads();
        let away = if offloaded { home.start + 1..home.end } else { home.end..home.end };
        home.end = away.start;
        self.offload_parts(away.clone());
        let first_end = self.switches + self.all_bumps;
        let common = CycleContext { tables: &*self.tables, cfg: self.cfg, switches: self.switches, first_end };
        let (first, others) = Self::home_parts_mut(home, &mut self.first, &mut self.others);
        let begin = offloaded.then(Instant::now);
        for part in first.into_iter().chain(others.iter_mut().map(|part| &mut **part)) {
            part.cycle(&common);
        }
        let worked = begin.map(|begin| begin.elapsed());
        self.take_back(away);
        if let (Some(begin), Some(worked)) = (begin, worked) {
            let work = worked.mul_f64((own + others_awake) as f64 / own as f64);
            self.offload.record_step(work, begin.elapsed().saturating_sub(worked));
        }
        self.hand_over();
        let any_awake = self.total(|all| all.awake, |of| of.each_part().any(|part| !part.awake.is_empty()));
        self.activity.awake_cycles += u64::from(any_awake);
        self.tables.commit();
        self.each_part_mut().for_each(|part| part.wires.flow.now += 1);
        // A divided system is always skipped: a cycle is simulated because a node is awake or something arrives.
        self.activity.alive_until = self.now();
        Step::Ran
    }

    /// Gives parts behind the first one to threads, which evaluate a cycle of them.
    fn offload_parts(&mut self, parts: Range<usize>) {
        if parts.is_empty() {
            return;
        }
        let workers = self.workers.get_or_insert_with(|| {
            WorkerPool::new(parts.len(), |offloaded: PartTask<T, J, B, E, W>| {
                let PartTask { mut part, tables, cfg, switches, first_end } = offloaded;
                part.cycle(&CycleContext { tables: &tables, cfg, switches, first_end });
                part
            })
        });
        let (cfg, switches, first_end) = (self.cfg, self.switches, self.switches + self.all_bumps);
        for (thread, part) in self.others.drain(parts.start - 1..parts.end - 1).enumerate() {
            workers.give(thread, PartTask { part, tables: self.tables.share(), cfg, switches, first_end });
        }
    }

    /// Takes them back when their threads are done.
    fn take_back(&mut self, parts: Range<usize>) {
        if let Some(workers) = self.workers.as_mut().filter(|_| !parts.is_empty()) {
            let at = parts.start - 1;
            let done = (0..parts.len()).map(|thread| workers.take(thread));
            self.others.splice(at..at, done);
        }
    }

    /// Hands over what crosses between parts at the end of a step; among ranks this is their exchange.
    pub(super) fn hand_over(&mut self) {
        let (home, ranks) = (self.home(), self.peers.as_ref().map_or(0, |peers| peers.exchange.ranks()));
        let mut out: Vec<Vec<Crossing>> = vec![Vec::new(); ranks];
        for from in home.clone() {
            let mut crossings = std::mem::take(&mut self.part_mut(from).wires.flow.boundary.crossings);
            for crossing in crossings.drain(..) {
                let part = self.part_with_port(crossing.queue() >> self.first.wires.flow.vc_shift);
                match &self.peers {
                    Some(peers) if !home.contains(&part) => out[peers.rank_of(part)].push(crossing),
                    _ => self.part_mut(part).takes(crossing),
                }
            }
            self.part_mut(from).wires.flow.boundary.crossings = crossings;
        }
        if ranks > 0 {
            self.exchange(&out);
        }
    }

    /// Gives every rank what crosses to it, and takes what comes from each, with what all must know.
    fn exchange(&mut self, out: &[Vec<Crossing>]) {
        let mut own = self.rank_status(self.home_parts());
        own.now = self.now();
        out.iter().flatten().for_each(|crossing| own.sends(crossing));
        let Some(mut peers) = self.peers.take() else { return };
        own.wants_sync = peers.wants_sync;
        let mut staged = Saver::default();
        self.tables.staged(&mut staged);
        let staged = staged.into_bytes();
        let message = |crossings: &Vec<Crossing>| {
            let mut saver = Saver::default();
            saver.value(&own);
            saver.value(&staged);
            saver.value(crossings);
            saver.into_bytes()
        };
        let me = peers.exchange.rank();
        let send = out.iter().enumerate().map(|(to, of)| if to == me { Vec::new() } else { message(of) }).collect();
        let came = peers.exchange.all_to_all(send);
        let mut total = None;
        for (rank, message) in came.iter().enumerate() {
            let rank_status = if rank == me {
                own.clone()
            } else {
                let (rank_status, staged, crossings): (RankStatus, Vec<u8>, Vec<Crossing>) = read(message);
                self.tables.stage(&mut Loader::new(&staged)).expect(ALIKE);
                for crossing in crossings {
                    let part = self.part_with_port(crossing.queue() >> self.first.wires.flow.vc_shift);
                    self.part_mut(part).takes(crossing);
                }
                rank_status
            };
            assert!(
                rank_status.now == own.now,
                "rank {rank} simulates cycle {}, and rank {me} cycle {}: they do not run the same",
                rank_status.now,
                own.now
            );
            total = Some(match total {
                Some(sum) => RankStatus::merged_with(sum, rank_status),
                None => rank_status,
            });
        }
        peers.total = total.unwrap_or(own);
        (peers.driver, peers.synced) = (Cycle::MAX, SyncLevel::RankStatus);
        self.peers = Some(peers);
    }

    /// Brings what others evaluate up to date here, as far as a look needs it. All ranks do so at once.
    pub(super) fn sync_others(&mut self, wanted: SyncLevel) {
        if let Some(sync_others) = self.sync_others
            && self.peers.as_ref().is_some_and(|peers| peers.synced < wanted)
        {
            sync_others(self, wanted);
        }
    }

    /// The driver gives a node something to do in a cycle.
    pub(super) fn driver_wakes(&mut self, cycle: Cycle) {
        if let Some(peers) = &mut self.peers {
            peers.driver = peers.driver.min(cycle);
        }
    }

    /// A look at what others evaluate is right only if it has been brought here.
    #[inline]
    pub(super) fn assert_synced(&self, synced: SyncLevel) {
        if let Some(peers) = &self.peers {
            assert!(peers.synced >= synced, "what other ranks evaluate is looked at before it was brought here");
        }
    }

    /// What each rank says when asked about its parts, in the order of the parts. All ranks ask at once.
    pub(super) fn gather_from_ranks<X: Saved>(&self, here: X) -> Vec<X> {
        match &self.peers {
            None => vec![here],
            Some(peers) => peers.exchange.all_gather(bytes(&here)).iter().map(|of| read(of)).collect(),
        }
    }

    /// The set-routed flits in the parts of all ranks, with the nodes at which they are.
    pub(super) fn set_flits_of_all(&self) -> Vec<(u32, Flit)> {
        let mut here = Vec::new();
        self.home().for_each(|part| self.set_flits_of(part, &mut |node, flit| here.push((node, *flit))));
        self.gather_from_ranks(here).concat()
    }

    /// Whether one of the ranks wants to look how far the run is: all answer alike, after the step that follows the wish.
    /// A process alone does as it wants.
    pub fn agree_to_look(&mut self, want: bool) -> bool {
        match &mut self.peers {
            None => want,
            Some(peers) => {
                peers.wants_sync = want && !peers.total.wants_sync;
                peers.total.wants_sync
            }
        }
    }
}

impl<J, B, E, const W: usize> Part<J, B, E, W> {
    /// Takes over what another part has sent here.
    fn takes(&mut self, crossing: Crossing) {
        self.due = self.due.min(crossing.at());
        self.wires.flow.cross(crossing);
    }
}

fn bytes<X: Saved>(value: &X) -> Vec<u8> {
    let mut saver = Saver::default();
    saver.value(value);
    saver.into_bytes()
}

fn read<X: Saved>(message: &[u8]) -> X {
    Loader::new(message).value().expect(ALIKE)
}

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + State + Sync,
    J: Join<Tables = T> + State + Clone + Send,
    B: Block<Tables = T> + State + Send,
    E: Block<Tables = T> + State + Send,
{
    /// From now on these ranks evaluate the system together, which each of them has built alike: before the first cycle, or before a state
    /// is loaded. The threads that the system was built for are those of all ranks together.
    pub fn share_with(&mut self, exchange: Arc<dyn Exchange>) {
        self.threads = (self.threads / exchange.ranks()).max(1);
        let total = self.rank_status(self.each_part());
        self.peers = Some(Box::new(Peers::new(exchange, self.parts(), total)));
        self.sync_others = Some(Self::sync_from_ranks);
        for part in self.home() {
            self.part_mut(part).changed = Some(Vec::new());
        }
    }

    /// A state was loaded on every rank.
    pub(super) fn all_loaded(&mut self) {
        let total = self.rank_status(self.each_part());
        let Some(peers) = &mut self.peers else { return };
        (peers.total, peers.driver, peers.synced) = (total, Cycle::MAX, SyncLevel::Whole);
        self.forget_changes();
    }

    fn forget_changes(&mut self) {
        self.each_part_mut().filter_map(|part| part.changed.as_mut()).for_each(Vec::clear);
    }

    fn sync_from_ranks(&mut self, wanted: SyncLevel) {
        let Some(mut peers) = self.peers.take() else { return };
        let mut saver = Saver::default();
        for part in peers.home() {
            if wanted == SyncLevel::Whole {
                self.part(part).save(&mut saver);
            } else {
                self.save_changes(part, &mut saver);
            }
        }
        let came = peers.exchange.all_gather(saver.into_bytes());
        for rank in peers.others() {
            let mut loader = Loader::new(&came[rank]);
            let loaded = peers.parts_of(rank).try_for_each(|part| match wanted {
                SyncLevel::Whole => self.part_mut(part).load(&mut loader),
                _ => self.load_changes(&mut loader),
            });
            loaded.and_then(|()| loader.finish()).expect(ALIKE);
        }
        if wanted == SyncLevel::Whole {
            self.forget_changes();
        }
        peers.synced = wanted;
        self.peers = Some(peers);
    }

    /// Blocks of a part that were evaluated since they were last brought to others.
    fn save_changes(&mut self, part: usize, to: &mut Saver) {
        let mut changed = self.part_mut(part).changed.as_mut().map(std::mem::take).unwrap_or_default();
        changed.sort_unstable();
        changed.dedup();
        let first_end = self.switches + self.all_bumps;
        let part = self.part(part);
        for node in changed {
            let state: Option<&dyn State> = if let Some(end) = node.checked_sub(first_end) {
                part.ends.get(end as usize).map(|end| end as _)
            } else if node < self.switches {
                part.joins.get(node as usize).map(|join| join as _)
            } else {
                part.bump_at(node).map(|bump| bump as _)
            };
            if let Some(state) = state {
                to.value(&node);
                state.save(to);
            }
        }
        to.value(&NO_NODE);
    }

    fn load_changes(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        let (switches, first_end) = (self.switches, self.switches + self.all_bumps);
        loop {
            let node: u32 = from.value()?;
            if node == NO_NODE {
                return Ok(());
            }
            let part = self.partition.part_of(node);
            let part = self.part_mut(part);
            let state: Option<&mut dyn State> = if let Some(end) = node.checked_sub(first_end) {
                part.ends.get_mut(end as usize).map(|end| end as _)
            } else if node < switches {
                part.joins.get_mut(node as usize).map(|join| join as _)
            } else {
                part.bump_at_mut(node).map(|bump| bump as _)
            };
            state.expect(ALIKE).load(from)?;
        }
    }
}

impl<J, B, E, const W: usize> Part<J, B, E, W> {
    fn bump_place(&self, node: u32) -> usize {
        self.wires.nodes.place(node).wrapping_sub(self.first_bump)
    }

    fn bump_at(&self, node: u32) -> Option<&B> {
        self.bumps.get(self.bump_place(node))
    }

    fn bump_at_mut(&mut self, node: u32) -> Option<&mut B> {
        let place = self.bump_place(node);
        self.bumps.get_mut(place)
    }
}

/// The wires of a node that others may evaluate.
impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
    /// The wires of the part to which a node belongs.
    pub(super) fn wires_of(&self, node: u32) -> &Wires {
        self.assert_synced(SyncLevel::Whole);
        &self.part(self.partition.part_of(node)).wires
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbiter::Policy;
    use crate::partition::Parts;
    use crate::routing::Routes;
    use crate::topology::{Common, FatTree, Layout, LinkParams, Mesh, Wiring};
    use crate::traffic::{SourceCfg, Target, Traffic, TrafficEnd};
    use crate::{Blocks, NoBump, NoJoin, Pipeline, RouterCfg, SwitchCfg, Vcs};

    type Net = Network<Routes, NoJoin<Routes>, NoBump<Routes>, TrafficEnd<Routes>, 1>;

    fn common() -> Common {
        let link = LinkParams { latency: 1, cycles_per_flit: 1 };
        Common { vcs: Vcs { set: 0, unicast: 2 }, engine: false, link, local: link }
    }

    /// Every end point sends a packet of one flit a cycle across the network.
    fn busy(layout: Layout, threads: usize) -> Net {
        let all = layout.ends.len() as u32;
        let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
        let ends = (0..all).map(|end| {
            let target = Target::Fixed((end + all / 2 + 3) % all);
            let source = SourceCfg { rate: 1.0, packet_flits: 1, target, start: 0, stop: 60, class: 0 };
            TrafficEnd::new(Traffic::new(end, &[source], 1))
        });
        let blocks = Blocks { joins: vec![], no_join: NoJoin::default(), bumps: vec![], ends: ends.collect() };
        let (pipeline, policy, router) = (Pipeline::new(2), Policy::RoundRobin, RouterCfg::default());
        let cfg = SwitchCfg { pipeline, policy, monitors: true, router };
        let names = vec!["p2p0".into(), "p2p1".into()];
        Network::in_parts(Parts::by_threads(threads), layout.plan, routes, blocks, cfg, &|_, _| 8, names)
    }

    #[test]
    fn parts_with_enough_to_do_go_to_threads_and_come_back() {
        let mesh = || Mesh { size: vec![8, 8], concentration: 1 }.layout(&common());
        let ends_at = |threads: usize| {
            let mut net = busy(mesh(), threads);
            let mut offloaded = 0;
            while net.step() != Step::Quiet {
                offloaded = offloaded.max(net.workers.as_ref().map_or(0, WorkerPool::len));
                assert_eq!(net.parts(), threads, "all parts are back after a cycle");
            }
            assert!(net.at_rest());
            (offloaded, net.now(), net.moves(), net.link_loads().map(|load| load.count.unicast).collect::<Vec<_>>())
        };
        let (none, now, moves, loads) = ends_at(1);
        assert_eq!(none, 0);
        assert!(moves > 5000, "{moves}");
        for threads in [2, 3, 5] {
            assert_eq!(ends_at(threads), (threads - 1, now, moves, loads.clone()));
        }
    }

    #[test]
    fn a_system_is_divided_by_what_there_is_to_evaluate() {
        // All end points hang at a third of the switches.
        let tree = FatTree { arity: 4, levels: 3, concentration: 4, wiring: Wiring::default() }.layout(&common());
        let net = busy(tree, 2);
        let blocks = |part: usize| net.partition.switches(part).len() + net.partition.ends(part).len();
        let (one, other) = (blocks(0), blocks(1));
        // A switch with its end points is not divided.
        assert!(one.abs_diff(other) <= 5, "{one} and {other}");
        assert!(net.partition.ends(1).len() > 16, "both have end points");
    }
}
