//! The reasons for which flits of a whole system waited at the heads of queues: the sums of the counts of
//! [`waits`](super::waits).

use super::waits::{HeadWaits, WaitCycles, Waits};
use super::{Block, Join, Network, Tables};

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
    /// What flits waited for before they left over one direction of a link, numbered as [`Network::link_counts`] does; nothing
    /// if no link monitor looks, and nothing that a block sent which is no switch.
    pub fn link_waits(&self, direction: usize) -> WaitCycles {
        let link = &self.plan.links[direction / 2];
        let (node, port) = if direction.is_multiple_of(2) { link.a } else { link.b };
        if node < self.switches { self.port_waits(node, port) } else { WaitCycles::default() }
    }

    fn port_waits(&self, node: u32, port: u16) -> WaitCycles {
        let wires = self.wires_of(node);
        let at = wires.port(node, port);
        let waits = wires.ports.stats.waits.as_ref();
        waits.map_or_else(WaitCycles::default, |waits| waits.of_port(at, wires.ports.count(at).waited))
    }

    fn waits(&self) -> impl Iterator<Item = &Waits> {
        self.each_part().filter_map(|part| part.wires.ports.stats.waits.as_deref())
    }

    /// All of them; none if no link monitor looks.
    pub fn head_waits(&self) -> Option<HeadWaits> {
        let parts = self.each_part().map(|part| &part.wires.ports);
        let all = parts.filter_map(|ports| Some(ports.stats.waits.as_ref()?.all(ports.waited())));
        all.reduce(|mut sum, part| {
            sum.links.add_all(&part.links);
            sum.engines.add_all(&part.engines);
            sum.blocks.add_all(&part.blocks);
            sum
        })
    }

    /// The head of a queue that has waited longest for its way on: its place, and for how many cycles it could have left. Every
    /// queue is looked at.
    pub fn longest_head(&self) -> Option<(String, u64)> {
        let here = self.home().filter_map(|part| self.longest_of(part));
        let all = self.gather_from_ranks(here.collect::<Vec<_>>()).concat();
        // Of several the first one, whatever the parts of the system are.
        let (waited, (node, port, vc)) = all.into_iter().max_by_key(|&(waited, at)| (waited, std::cmp::Reverse(at)))?;
        Some((self.queue_name(node, port, vc), waited))
    }

    /// The same of a part: the cycles, and the queue as node, port and channel.
    fn longest_of(&self, part: usize) -> Option<(u64, (u32, u16, u8))> {
        let wires = &self.part(part).wires;
        let mut longest = None;
        for node in self.partition.nodes(part) {
            let info = wires.nodes[node as usize];
            for port in 0..info.ports {
                for vc in 0..self.plan.vcs.total() {
                    let waited = wires.head_waited(wires.queue(info.port_base + u32::from(port), vc));
                    if waited > longest.map_or(0, |(most, _)| most) {
                        longest = Some((waited, (node, port, vc)));
                    }
                }
            }
        }
        longest
    }

    /// Whether the causes of every port add up to the cycles that flits waited there, which are counted apart from them: from
    /// the cycle in which a flit could have left to the one in which it did.
    ///
    /// Point-to-point packets cannot fail this: what they were not refused counts as stages. It is set-routed flits that it watches.
    ///
    /// # Errors
    /// The first port at which they do not.
    pub fn head_waits_add_up(&self) -> Result<(), String> {
        let Some(all) = self.head_waits() else { return Ok(()) };
        for (direction, (_, count, _)) in self.link_counts().enumerate() {
            let causes = self.link_waits(direction);
            if causes.total() != count.waited {
                let (from, to) = self.link_ends(direction);
                let (causes, waited) = (causes.total(), count.waited);
                return Err(format!("flits waited {waited} cycles before {from} -> {to}, and {causes} have a cause"));
            }
        }
        let engines: u64 = self.waits().map(|waits| waits.engine_waited).sum();
        if engines != all.engines.total() {
            let causes = all.engines.total();
            return Err(format!("flits waited {engines} cycles before engines, and {causes} have a cause"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::arbiter::Policy;
    use crate::wires::Phase;
    use crate::{
        Block, Blocks, Cause, Flit, Io, Network, NoJoin, NodeKind, Pipeline, Plan, PlanLink, PlanNode, PortSet, Route,
        RouteView, RouterCfg, Step, SwitchAllocator, SwitchCfg, Tables, VcAllocator, Vcs, WaitCycles,
    };
    use watershed_kernel::{Rng, Wake};
    use watershed_probe::Scope;

    /// A star: the destination of a packet is its output, and one in four destinations asks again and again for one channel.
    #[derive(Clone)]
    struct Star;

    impl<const W: usize> Tables<W> for Star {
        fn outputs(&self, _: u32, _: u16, _: &Flit) -> PortSet<W> {
            PortSet::EMPTY
        }

        fn unicast(&self, _: &RouteView<'_>, flit: &Flit) -> Route {
            let again = flit.dst() % 4 == 3;
            Route { port: flit.dst() as u16, vcs: if again { 1 } else { u32::MAX }, again }
        }

        fn no_route(&self, _: u32, _: u16, _: &Flit) -> String {
            String::new()
        }
    }

    /// Sends packets to anyone until a cycle, and takes what comes most of the time.
    struct Peer {
        rng: Rng,
        ends: u64,
        until: u64,
        /// The destination, channel and length of the packet under way, and how much of it was sent.
        open: Option<(u32, u8, u32, u32)>,
    }

    impl Block for Peer {
        type Tables = Star;

        fn tick(&mut self, io: &mut Io<'_>, _: &Star) -> Wake {
            let vcs = io.vcs().total();
            for vc in 0..vcs {
                if io.head(0, vc).is_some() && self.rng.below(3) > 0 {
                    io.take(0, vc);
                }
            }
            if self.open.is_none() && io.now() < self.until {
                let vc = self.rng.below(u64::from(vcs)) as u8;
                self.open = Some((self.rng.below(self.ends) as u32, vc, 1 + self.rng.below(3) as u32, 0));
            }
            if let Some((dst, vc, length, sent)) = self.open.take_if(|open| io.can_send(0, open.1)) {
                io.send(0, vc, Flit::part(0, vc, 0, sent, length, Flit::header(dst, 0)));
                self.open = (sent + 1 < length).then_some((dst, vc, length, sent + 1));
            }
            if self.open.is_some() || io.now() < self.until || (0..vcs).any(|vc| io.head(0, vc).is_some()) {
                Wake::Next
            } else {
                Wake::OnInput
            }
        }

        fn open(&self) -> Option<String> {
            None
        }

        fn probe(&self, _: &mut Scope<'_>) {}
    }

    type Net = Network<Star, NoJoin<Star>, Peer, Peer, 1>;

    fn star(ports: u16, channels: u8, (stages, router): (u8, RouterCfg), seed: u64) -> Net {
        let node = |kind, ports: u16, name: String| PlanNode { kind, ports, engine: false, path: name.clone(), name };
        let ends = (0..ports).map(|end| node(NodeKind::End, 1, format!("e{end}")));
        let link =
            |port| PlanLink { a: (0, port), b: (1 + u32::from(port), 0), latency: 1, cycles_per_flit: 1, level: 0 };
        let plan = Plan {
            vcs: Vcs { set: 0, unicast: channels },
            nodes: std::iter::once(node(NodeKind::Switch, ports, "s".into())).chain(ends).collect(),
            links: (0..ports).map(link).collect(),
            levels: vec!["all".into()],
        };
        let peer = |end| Peer { rng: Rng::new(seed, u64::from(end)), ends: u64::from(ports), until: 300, open: None };
        let blocks = Blocks {
            joins: Vec::new(),
            no_join: NoJoin::default(),
            bumps: Vec::new(),
            ends: (0..ports).map(peer).collect(),
        };
        let cfg = SwitchCfg { pipeline: Pipeline::new(stages), policy: Policy::RoundRobin, monitors: true, router };
        let names = (0..channels).map(|vc| format!("c{vc}")).collect();
        Network::new(plan, Star, blocks, cfg, &|_, _| 2, names)
    }

    /// What the heads of the switch waited for in the cycle that has been simulated, by the registers before and behind it.
    fn count(net: &Net, before: &[Phase], sum: &mut WaitCycles) {
        let wires = &net.first.wires;
        let (now, pipeline) = (wires.flow.now - 1, net.cfg.pipeline);
        for (q, &before) in before.iter().enumerate() {
            let queue = &wires.inputs[q];
            // One that came in this cycle, or behind one that left in it, has not waited.
            if queue.len == 0 || wires.flow.pool[queue.head as usize].ready > now {
                continue;
            }
            // Behind the cycle it is idle if it asks for another route.
            let after = queue.state.phase();
            let asked_for_channel = after == Phase::Idle || before == Phase::Routed || pipeline.route == 0;
            let cause = if after != Phase::Active {
                if asked_for_channel { Cause::Channel } else { Cause::Stage }
            } else if before != Phase::Active && pipeline.vc_alloc > 0 {
                Cause::Stage
            } else if wires.ports.port(u32::from(queue.out_port))[0].vc_masks.credit >> queue.state.out_vc() & 1 == 0 {
                Cause::Credit
            } else {
                Cause::Arbitration
            };
            sum.add(cause, 1);
        }
    }

    #[test]
    fn counts_are_those_of_a_look_at_every_head_in_every_cycle() {
        let islip = RouterCfg {
            vc_allocator: VcAllocator::Islip,
            switch_allocator: SwitchAllocator::Islip,
            ..RouterCfg::default()
        };
        let speculative = RouterCfg { speculative: true, ..RouterCfg::default() };
        let routers = [islip, RouterCfg::default(), speculative];
        let mut seen = WaitCycles::default();
        // Queues of one word and of several.
        for (ports, channels) in [(4, 1), (5, 2), (5, 8), (9, 8)] {
            for (seed, journal) in [(1, false), (2, true)] {
                let of = |stages| routers.map(|router| (stages, router));
                for (stages, router) in (1..=4).flat_map(of) {
                    let mut net = star(ports, channels, (stages, router), seed);
                    net.evaluate(crate::Evaluation { no_skip: true, shuffle: None });
                    if journal {
                        net.keep_journal(true);
                    }
                    let mut sum = WaitCycles::default();
                    let queues = usize::from(ports) << net.first.wires.flow.vc_shift;
                    loop {
                        let before: Vec<Phase> = (0..queues).map(|q| net.first.wires.inputs[q].state.phase()).collect();
                        if net.step() == Step::Quiet {
                            break;
                        }
                        count(&net, &before, &mut sum);
                        assert!(net.now() < 9_000, "it ends");
                    }
                    assert_eq!(net.live_flits(), 0);
                    let all = net.head_waits().expect("link monitors look");
                    assert_eq!(all.links, sum, "{ports} ports, {channels} channels, {stages} stages, {router:?}");
                    net.head_waits_add_up().expect("the causes add up");
                    seen.add_all(&sum);
                }
            }
        }
        for cause in [Cause::Stage, Cause::Channel, Cause::Credit, Cause::Arbitration] {
            assert!(seen.of(cause) > 1000, "{cause:?}: {seen:?}");
        }
    }
}
