//! Traffic classes of point-to-point packets, to the cycle, with every allocator: at outputs, at crossbar inputs, with a channel
//! of their own and with shared ones. Nothing here is measured against another run but one: what a packet takes alone.

use watershed::fabric::arbiter::Policy;
use watershed::fabric::{
    Block, Blocks, Evaluation, Flit, Io, Network, NoBump, NoJoin, Pipeline, PortSet, Route, RouteView, RouterCfg, Step,
    SwitchAllocator, SwitchCfg, Tables, VcAllocator,
};
use watershed::kernel::{Cycle, Rng, Wake};
use watershed::probe::Scope;

use crate::share;
use crate::support::{Lab, Packet, Player, seed};

/// A star whose packets have a class, their id, and leave on the channel they came by, or on any.
#[derive(Clone, Debug)]
struct Classed {
    any: bool,
}

impl<const W: usize> Tables<W> for Classed {
    const CLASSES: bool = true;

    fn class(&self, _: u8, head: &Flit) -> u8 {
        head.tag.id() as u8
    }

    fn outputs(&self, _: u32, _: u16, _: &Flit) -> PortSet<W> {
        PortSet::EMPTY
    }

    fn unicast(&self, at: &RouteView<'_>, flit: &Flit) -> Route {
        let route = Route::over(flit.dst() as u16);
        if self.any { route } else { Route { vcs: 1 << at.channel, ..route } }
    }

    fn no_route(&self, _: u32, _: u16, _: &Flit) -> String {
        unreachable!("there are no set-routed packets")
    }
}

/// An end point with a script.
#[derive(Clone)]
struct End(Player);

impl Block for End {
    type Tables = Classed;

    fn tick(&mut self, io: &mut Io<'_>, _: &Classed) -> Wake {
        self.0.tick(io, &crate::support::Map::default())
    }

    fn open(&self) -> Option<String> {
        self.0.open()
    }

    fn probe(&self, _: &mut Scope<'_>) {}
}

type Net<const W: usize> = Network<Classed, NoJoin<Classed>, NoBump<Classed>, End, W>;

/// How a switch is built.
#[derive(Clone, Copy, Debug)]
struct Built {
    ports: u16,
    channels: u8,
    stages: u8,
    policy: Policy,
    router: RouterCfg,
}

impl Built {
    /// All allocators, arbiters and pipelines of a number of ports and channels.
    fn all(ports: u16, channels: u8) -> Vec<Built> {
        let mut all = Vec::new();
        for vc_allocator in [VcAllocator::Ordered, VcAllocator::Separable, VcAllocator::Islip] {
            for switch_allocator in [SwitchAllocator::Separable, SwitchAllocator::Islip] {
                for policy in [Policy::RoundRobin, Policy::Matrix, Policy::Fixed] {
                    for (stages, speculative) in [(1, false), (2, false), (3, false), (4, false), (3, true)] {
                        let router = RouterCfg {
                            vc_allocator,
                            switch_allocator,
                            speculative,
                            class_bound: 0,
                            ..RouterCfg::default()
                        };
                        all.push(Built { ports, channels, stages, policy, router });
                    }
                }
            }
        }
        all
    }

    /// What landed at each end point of a star: the cycle of each flit, and its packet's number.
    fn run(self, packets: &[(usize, Packet)], any: bool, evaluation: Evaluation) -> Vec<Vec<(Cycle, u64)>> {
        // Switches of up to 64 queues work on words; others have a path of their own.
        if usize::from(self.ports) * usize::from(self.channels).next_power_of_two() <= 64 {
            self.run_in::<1>(packets, any, evaluation)
        } else {
            self.run_in::<4>(packets, any, evaluation)
        }
    }

    fn run_in<const W: usize>(
        self,
        packets: &[(usize, Packet)],
        any: bool,
        evaluation: Evaluation,
    ) -> Vec<Vec<(Cycle, u64)>> {
        let mut lab = Lab::star(0, self.channels, self.ports, false, 1);
        for (from, packet) in packets {
            lab.players[*from].send(*packet);
        }
        let blocks = Blocks {
            joins: Vec::new(),
            no_join: NoJoin::default(),
            bumps: Vec::new(),
            ends: lab.players.into_iter().map(End).collect(),
        };
        let Built { policy, router, stages, .. } = self;
        let cfg = SwitchCfg { pipeline: Pipeline::new(stages), policy, monitors: true, router };
        let names = (0..self.channels).map(|vc| format!("c{vc}")).collect();
        let mut net: Net<W> = Network::new(lab.plan, Classed { any }, blocks, cfg, &|_, _| 100, names);
        net.evaluate(evaluation);
        while net.step() != Step::Quiet {
            assert!(net.now() < 100_000, "{}", net.autopsy());
        }
        assert_eq!((net.fault(), net.live_flits()), (None, 0), "{self:?}");
        assert!(net.at_rest(), "every credit is back");
        assert_eq!(net.head_waits_add_up(), Ok(()));
        let landed = net.ends().iter().map(|End(player)| {
            (0..self.channels).for_each(|vc| drop(player.packets(vc, true)));
            player.landed.iter().map(|(cycle, flit)| (*cycle, flit.tag.seq())).collect()
        });
        landed.collect()
    }

    fn lands(self, packets: &[(usize, Packet)]) -> Vec<Vec<(Cycle, u64)>> {
        self.run(packets, false, Evaluation::default())
    }

    /// When the first flit lands of a packet that is alone and sent in cycle 0.
    fn first(self) -> Cycle {
        self.lands(&[(0, Packet::new(0, 0, 0, 1).to(1))])[1][0].0
    }
}

/// Switches whose queues fit a word, and others.
fn switches(channels: u8) -> Vec<Built> {
    [5, 40].into_iter().flat_map(|ports| Built::all(ports, channels)).collect()
}

/// The cycles in which the flits of a packet landed.
fn of(landed: &[(Cycle, u64)], seq: u64) -> Vec<Cycle> {
    landed.iter().filter(|(_, of)| *of == seq).map(|(cycle, _)| *cycle).collect()
}

#[test]
fn packets_with_channels_leave_by_class_to_the_cycle() {
    for built in switches(4) {
        let first = built.first();
        for classes in [[0, 1, 2, 3], [7, 3, 5, 0], [2, 6, 1, 4]] {
            let lengths = [7u32, 20, 1, 12];
            let packet = |from: u8| {
                let at = usize::from(from);
                (at, Packet::new(from, classes[at], u64::from(from), lengths[at]).to(4))
            };
            let landed = &built.lands(&[0, 1, 2, 3].map(packet))[4];
            let mut order: Vec<usize> = vec![0, 1, 2, 3];
            order.sort_by_key(|&from| std::cmp::Reverse(classes[from]));
            let expected: Vec<u64> = order.iter().flat_map(|&from| vec![from as u64; lengths[from] as usize]).collect();
            let expected: Vec<(Cycle, u64)> = (first..).zip(expected).collect();
            assert_eq!(*landed, expected, "{classes:?} {built:?}");
        }
        // Without classes they take turns.
        let alike = [0, 1].map(|from: u8| (usize::from(from), Packet::new(from, 3, u64::from(from), 10).to(4)));
        let landed = &built.lands(&alike)[4];
        let turns = landed.windows(2).filter(|two| two[0].1 != two[1].1).count();
        let fixed = built.policy == Policy::Fixed;
        assert!(turns >= if fixed { 1 } else { 18 }, "{turns} {built:?}");
    }
}

/// End point 0 sends a packet of 40 flits to 1, whose port another one keeps busy for 16 cycles; and from cycle 10 on 12 flits to 2.
fn at_one_input(low: u16, high: u16) -> [(usize, Packet); 3] {
    [
        (0, Packet::new(0, low, 0, 40).to(1)),
        (0, Packet::new(1, high, 1, 12).to(2).at(10)),
        (3, Packet::new(2, 7, 2, 16).to(1)),
    ]
}

#[test]
fn a_crossbar_input_serves_the_higher_class_to_the_cycle() {
    for built in switches(4) {
        let first = built.first();
        for input_speedup in [1, 2, 4] {
            let built = Built { router: RouterCfg { input_speedup, ..built.router }, ..built };
            let landed = built.lands(&at_one_input(0, 5));
            let high: Vec<Cycle> = (first + 10..first + 22).collect();
            assert_eq!(of(&landed[2], 1), high, "as if it were alone: {built:?}");
            assert_eq!(of(&landed[1], 2), (first..first + 16).collect::<Vec<_>>(), "{built:?}");
            // Ten flits had come by then; they leave behind the other packet, or beside it where there are inputs for both.
            let from = first + if input_speedup == 1 { 22 } else { 16 };
            assert_eq!(of(&landed[1], 0), (from..from + 40).collect::<Vec<_>>(), "{built:?}");
        }
        let alike = built.lands(&at_one_input(5, 5));
        let fixed = built.policy == Policy::Fixed;
        assert!(fixed || of(&alike[2], 1)[11] > first + 21, "without classes it waits: {built:?}");
    }
}

#[test]
fn what_a_high_class_cannot_use_goes_to_a_lower_one() {
    for built in switches(4) {
        let first = built.first();
        // Class 6 waits for its output, which class 7 uses; class 0 of the same input has another one.
        let landed = built.lands(&[
            (0, Packet::new(1, 6, 0, 12).to(2)),
            (0, Packet::new(0, 0, 1, 15).to(1).at(12)),
            (3, Packet::new(2, 7, 2, 40).to(2)),
        ]);
        assert_eq!(of(&landed[1], 1), (first + 12..first + 27).collect::<Vec<_>>(), "{built:?}");
        assert_eq!(of(&landed[2], 0), (first + 40..first + 52).collect::<Vec<_>>(), "{built:?}");
        // Class 5 of input 0 could use output 1 but for class 7 of its own input: class 0 of another input does.
        let landed = built.lands(&[
            (0, Packet::new(0, 5, 0, 30).to(1)),
            (0, Packet::new(1, 7, 1, 12).to(2).at(10)),
            (3, Packet::new(2, 6, 2, 16).to(1)),
            (4, Packet::new(3, 0, 3, 5).to(1)),
        ]);
        assert_eq!(of(&landed[2], 1), (first + 10..first + 22).collect::<Vec<_>>(), "{built:?}");
        assert_eq!(of(&landed[1], 3), (first + 16..first + 21).collect::<Vec<_>>(), "{built:?}");
        assert_eq!(of(&landed[1], 0), (first + 22..first + 52).collect::<Vec<_>>(), "{built:?}");
    }
}

#[test]
fn a_bound_lets_one_flit_of_a_lower_class_pass() {
    for built in switches(4) {
        let first = built.first();
        let early = u64::from(built.router.speculative);
        for bound in [1u8, 3, 16] {
            let built = Built { router: RouterCfg { class_bound: bound, ..built.router }, ..built };
            // At an output.
            let landed = &built
                .lands(&[0, 1].map(|from: u8| {
                    (usize::from(from), Packet::new(from, u16::from(from), u64::from(from), 60).to(4))
                }))[4];
            let mut low = of(landed, 0);
            // Channels were granted to both in one cycle: what follows is a matter of flits. A head that leaves before it has
            // its channel is not counted.
            low.truncate((60 - early as usize) / usize::from(bound));
            let turn = |k| first + early + k * (u64::from(bound) + 1) - 1;
            let expected: Vec<Cycle> = (1..).map(turn).take(low.len()).collect();
            assert_eq!(low, expected, "{bound} {built:?}");
            assert_eq!(landed.last().unwrap().0, first + 119, "the link never rests: {built:?}");
        }
        // At a crossbar input: after three flits of the higher class one of the lower goes; at first the bound of output 1, which
        // the third packet uses until flit 20, says so, too.
        let built = Built { router: RouterCfg { class_bound: 3, ..built.router }, ..built };
        let landed = built.lands(&at_one_input(0, 5));
        let (low, high) = (of(&landed[1], 0), of(&landed[2], 1));
        let expected: Vec<Cycle> = (10..).filter(|k| k % 4 != (3 + early) % 4).map(|k| first + k).take(12).collect();
        assert_eq!(high, expected, "{built:?}");
        assert_eq!(low[..6], [3, 7, 11, 15, 19, 23].map(|k| first + early + k), "{built:?}");
    }
}

/// Sixty rounds in `make soak`, twenty in `make test`.
#[test]
fn mixed_classes_lose_nothing_and_need_no_evaluation() {
    let mut rng = Rng::new(seed(), 0xc1a);
    for round in 0..share::of(3, 60) {
        let (channels, ports) = ([1, 2, 3, 4][rng.below(4) as usize], [3, 6, 17, 40][rng.below(4) as usize]);
        let all = Built::all(ports, channels);
        let mut built = all[rng.below(all.len() as u64) as usize];
        built.router.class_bound = [0, 1, 2, 16][rng.below(4) as usize];
        built.router.input_speedup = 1 + rng.below(u64::from(channels)) as u8;
        built.router.iterations = 1 + rng.below(3) as u8;
        let packets: Vec<(usize, Packet)> = (0..150)
            .map(|seq| {
                let (from, to) = (rng.below(u64::from(ports)) as usize, rng.below(u64::from(ports)) as u32);
                let vc = rng.below(u64::from(channels)) as u8;
                let packet = Packet::new(vc, rng.below(8) as u16, seq, 1 + rng.below(20) as u32);
                (from, packet.to(to).at(rng.below(100)))
            })
            .collect();
        let any = rng.below(2) == 1;
        let usual = built.run(&packets, any, Evaluation::default());
        let flits: u32 = packets.iter().map(|(_, packet)| packet.flits).sum();
        assert_eq!(usual.iter().map(Vec::len).sum::<usize>(), flits as usize, "round {round} {built:?}");
        for evaluation in
            [Evaluation { no_skip: true, shuffle: None }, Evaluation { no_skip: false, shuffle: Some(round) }]
        {
            assert_eq!(built.run(&packets, any, evaluation), usual, "round {round} {built:?}");
        }
    }
}
