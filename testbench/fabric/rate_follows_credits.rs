//! Credits are the only limit on a link, and an exact one: rate = depth / round trip (K-FC-1). Monitors assert the
//! balance of every channel at every credit of every test in this target; their own tests are in `src/fabric/monitor.rs`.

use watershed::fabric::{Pipeline, credit_round_trip};
use watershed::kernel::Rng;

use crate::support::{Lab, Packet, seed};

/// Cycles in which flits land at the far end of a row of two switches whose link `link` has buffers of `depth`.
fn landings(vc: u8, stages: u8, latency: u16, link: usize, depth: u16, width: u16) -> Vec<u64> {
    let mut lab = Lab::row(1, 1, 2, latency);
    lab.stages = stages;
    lab.depth_of.insert(link, depth);
    lab.plan.links[link].cycles_per_flit = width;
    for seq in 0..120 {
        lab.players[0].send(Packet::new(vc, 0, seq, 1).to(1));
    }
    let net = lab.run::<1>();
    net.end(1).landed.iter().map(|(cycle, _)| *cycle).collect()
}

#[test]
fn the_rate_is_depth_over_round_trip() {
    for vc in [0, 1] {
        for stages in 1..=4 {
            let pipeline = Pipeline::new(stages);
            for latency in [1, 2, 5] {
                // Link 0 joins the switches, 1 comes from the source, 2 goes to the sink.
                for (link, post, front) in
                    [(0, pipeline.post(), pipeline.front()), (1, 0, pipeline.front()), (2, pipeline.post(), 0)]
                {
                    let trip = credit_round_trip(latency, 1, post, front);
                    for depth in 1..=trip {
                        let cycles = landings(vc, stages, latency, link, depth as u16, 1);
                        // A point-to-point queue starts a packet once its route and channel stages have seen it.
                        let period = if vc == 1 { trip.max((1 + u64::from(pipeline.front())) * depth) } else { trip };
                        let depth = depth as usize;
                        for k in 30..cycles.len() - depth {
                            assert_eq!(
                                cycles[k + depth] - cycles[k],
                                period,
                                "channel {vc}, {stages} stages, latency {latency}, link {link}, depth {depth}, flit {k}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_buffer_of_the_round_trip_streams_and_one_less_does_not() {
    for stages in 1..=4 {
        let pipeline = Pipeline::new(stages);
        let trip = credit_round_trip(4, 1, pipeline.post(), pipeline.front()) as u16;
        for (depth, span) in [(trip, 119), (trip + 5, 119)] {
            let cycles = landings(0, stages, 4, 0, depth, 1);
            assert_eq!(cycles[119] - cycles[0], span, "depth {depth}, {stages} stages");
        }
        let short = landings(0, stages, 4, 0, trip - 1, 1);
        // Every (trip - 1) flits cost one cycle more.
        assert_eq!(short[119] - short[0], 119 + 119 / (u64::from(trip) - 1), "{stages} stages");
    }
}

#[test]
fn narrow_links_count_their_width_in_the_round_trip() {
    for width in [2, 3] {
        for stages in 1..=3 {
            let pipeline = Pipeline::new(stages);
            let trip = credit_round_trip(2, width, pipeline.post(), pipeline.front());
            for depth in 1..=trip {
                let cycles = landings(0, stages, 2, 0, depth as u16, width);
                let period = trip.max(u64::from(width) * depth);
                let depth = depth as usize;
                for k in 40..cycles.len() - depth {
                    assert_eq!(cycles[k + depth] - cycles[k], period, "width {width}, {stages} stages, depth {depth}");
                }
            }
        }
    }
}

#[test]
fn one_credit_is_enough_for_anything_but_speed() {
    for vc in [0, 1] {
        for flits in [1, 11, 33, 132] {
            let mut lab = Lab::row(1, 1, 3, 2);
            lab.depth = 1;
            lab.stages = 3;
            for seq in 0..3 {
                lab.players[0].send(Packet::new(vc, 0, seq, flits).to(1));
            }
            let net = lab.run::<1>();
            assert_eq!(net.end(1).packets(vc, vc == 1).len(), 3);
        }
    }
}

#[test]
fn the_balance_holds_in_random_traffic() {
    let seed = seed();
    for case in 0..40 {
        let mut rng = Rng::new(seed, case);
        let ports = 3 + rng.below(8) as u16;
        let mut lab = Lab::star(2, 2, ports, false, 1 + rng.below(4) as u16);
        lab.tables.direct = true;
        lab.stages = 1 + rng.below(4) as u8;
        lab.depth = 1 + rng.below(9) as u16;
        for port in 0..ports {
            lab.players[usize::from(port)].opens = rng.below(100);
            for seq in 0..20 {
                let to = rng.below(u64::from(ports)) as u16;
                let (vc, flits) = (rng.below(4) as u8, [1, 1, 2, 11, 33][rng.below(5) as usize]);
                lab.players[usize::from(port)]
                    .send(Packet::new(vc, to, seq, flits).to(u32::from(to)).at(rng.below(200)));
            }
        }
        let net = lab.run::<1>();
        let landed: usize =
            net.ends().iter().map(|end| (0..4).map(|vc| end.packets(vc, vc > 1).len()).sum::<usize>()).sum();
        assert_eq!(landed, usize::from(ports) * 20, "seed {seed}, case {case}");
    }
}
