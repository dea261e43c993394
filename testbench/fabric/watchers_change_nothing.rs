//! Switches run by one path when somebody looks at every event and by another when nobody does, and by a third when their
//! queues do not fit one word; monitors and waves, of all nodes or of one, and unused ports change nothing (K-DET-1, K-FC-1,
//! W-VCD-2).

use std::ops::Range;

use watershed::fabric::arbiter::Policy;
use watershed::fabric::topology::{HyperX, Layout, Mesh, Wiring};
use watershed::fabric::traffic::{SourceCfg, Target};
use watershed::fabric::{NodeKind, Pipeline, RouterCfg, Step, SwitchAllocator, SwitchCfg, VcAllocator};
use watershed::kernel::Rng;
use watershed::probe::diff::{DiffOptions, diff};
use watershed::probe::{MemoryFile, Period, Selection, Tracer, VcdSink};

use crate::order_of_evaluation::{history, random};
use crate::point_to_point::{Plain, common, plain_with};
use crate::routed_networks::networks;
use crate::share;
use crate::support::{seed, trace};

fn pick<T: Copy>(rng: &mut Rng, list: &[T]) -> T {
    list[rng.below(list.len() as u64) as usize]
}

/// Any switch of so many ports that a scenario can ask for, with no more passages than arbiters are built for here.
fn switch(rng: &mut Rng, ports: u16, monitors: bool) -> SwitchCfg {
    let router = RouterCfg {
        vc_allocator: pick(rng, &[VcAllocator::Ordered, VcAllocator::Separable, VcAllocator::Islip]),
        switch_allocator: pick(rng, &[SwitchAllocator::Separable, SwitchAllocator::Islip]),
        iterations: 1 + rng.below(2) as u8,
        credit_delay: rng.below(3) as u16,
        input_speedup: (1 + rng.below(3) as u8).min((64 / ports) as u8),
        wait_for_tail_credit: rng.below(2) == 1,
        speculative: rng.below(4) == 0,
        ..RouterCfg::default()
    };
    let pipeline = Pipeline::new(1 + rng.below(4) as u8);
    let pipeline = if rng.below(5) == 0 { Pipeline { route: 2, ..pipeline } } else { pipeline };
    SwitchCfg { pipeline, policy: pick(rng, &[Policy::RoundRobin, Policy::Matrix, Policy::Fixed]), monitors, router }
}

/// Ports of the widest switch.
fn widest(layout: &Layout) -> u16 {
    layout.plan.nodes.iter().map(|node| node.ports).max().unwrap_or(1)
}

/// The same network with link monitors and without.
fn pair(layout: &Layout, case: u64) -> [Plain; 2] {
    [true, false].map(|monitors| network(layout, widest(layout), case, monitors))
}

/// A network of which all but the layout hangs on the case and the ports of the widest switch there may be.
fn network(layout: &Layout, ports: u16, case: u64, monitors: bool) -> Plain {
    let mut rng = Rng::new(seed(), case);
    let cfg = switch(&mut rng, ports, monitors);
    let ends = layout.ends.len();
    let (rate, packet_flits) = (pick(&mut rng, &[0.05, 0.4, 1.0]), pick(&mut rng, &[1, 1, 2, 7]));
    let target = Target::Uniform { ends: ends as u32 };
    let source = SourceCfg { rate, packet_flits, target, start: 0, stop: 200, class: 0 };
    plain_with(layout, cfg, 1 + rng.below(8) as u16, seed() ^ case, &vec![vec![source]; ends])
}

/// With these routers in each network; in `make test` in one of seven: every kind of topology and every routing is among them.
fn monitors_change_no_cycle(cases: Range<u64>) {
    for (number, (what, layout)) in share::one_in(7, networks().into_iter().enumerate()) {
        for case in cases.clone() {
            let case = 1000 * case + number as u64;
            let [mut with, mut without] = pair(&layout, case);
            let at = format!("seed {}, case {case}, {what}", seed());
            let expected = history(&mut with);
            assert!(!expected.is_empty(), "{at}: something moves");
            assert!(history(&mut without) == expected, "{at}");
            assert_eq!(with.alive_until(), without.alive_until(), "{at}");
            let received =
                |net: &Plain| net.ends().iter().map(|end| end.traffic.received().to_vec()).collect::<Vec<_>>();
            assert_eq!(received(&with), received(&without), "{at}");
        }
    }
}

#[test]
fn monitors_change_no_cycle_of_any_topology_routing_and_router() {
    monitors_change_no_cycle(0..1);
}

#[test]
#[ignore = "minutes: part of make soak"]
fn monitors_change_no_cycle_of_many_routers() {
    monitors_change_no_cycle(1..19);
}

/// The same layout with switches of as many ports more as it takes for their queues not to fit one word; nothing is
/// connected to them.
fn wide(mut layout: Layout) -> Layout {
    for node in layout.plan.nodes.iter_mut().filter(|node| node.kind == NodeKind::Switch) {
        node.ports = node.ports.max(64 / u16::from(layout.plan.vcs.total().next_power_of_two()) + 1);
    }
    layout
}

/// With these routers in each network; in `make test` in one of nine: every routing is among them.
fn wide_switches_do_what_narrow_ones_do(cases: Range<u64>) {
    let layouts: Vec<(String, Layout)> =
        networks().into_iter().filter(|(_, layout)| layout.plan.vcs.total() > 1).collect();
    assert!(layouts.len() > 20);
    for (number, (what, layout)) in share::one_in(9, layouts.into_iter().enumerate()) {
        for case in cases.clone() {
            let case = 20_000 + 1000 * case + number as u64;
            let wide = wide(layout.clone());
            let [mut narrow, mut wide] = [&layout, &wide].map(|layout| network(layout, widest(&wide), case, false));
            assert!(history(&mut wide) == history(&mut narrow), "seed {}, case {case}, {what}", seed());
        }
    }
}

#[test]
fn switches_of_one_word_do_what_those_of_several_do() {
    wide_switches_do_what_narrow_ones_do(0..1);
}

#[test]
#[ignore = "minutes: part of make soak"]
fn many_switches_of_one_word_do_what_those_of_several_do() {
    wide_switches_do_what_narrow_ones_do(1..19);
}

#[test]
fn monitors_change_nothing_of_engines_and_long_multicasts() {
    for case in 0..40 {
        let mut lab = random(&mut Rng::new(seed(), 500 + case));
        let expected = trace(&lab.run::<1>());
        lab.monitors = false;
        assert!(trace(&lab.run::<1>()) == expected, "seed {}, case {case}", seed());
    }
}

/// The waveform of the signals that a glob names.
fn wave(mut net: Plain, glob: &str) -> String {
    let (sink, file): (VcdSink, MemoryFile) = VcdSink::in_memory();
    let period = Period::from_hz(1_000_000_000).expect("1 GHz");
    net.record(Tracer::new(period, Selection::new([glob]).expect("a glob"), Box::new(sink)))
        .expect("something matches");
    while net.step() != Step::Quiet {}
    let last = net.now();
    net.stop_recording().expect("it was recording").finish(last).expect("memory takes everything");
    file.text()
}

/// Twelve routers in `make soak`, four in `make test`.
#[test]
fn the_wave_of_one_switch_is_the_same_whoever_else_looks_on() {
    let layout = Mesh { size: vec![3, 3], concentration: 1 }.layout(&common(4, 1, 1));
    let (cases, mut lines) = (share::of(3, 12), 0);
    for case in 0..cases {
        for glob in ["**.s1_1.**", "**.s0_2.switch.out*.**"] {
            let [with, without] = pair(&layout, 7000 + case).map(|net| wave(net, glob));
            lines += with.lines().count();
            assert!(with == without, "seed {}, case {case}, {glob}", seed());
            // And whether its queues fit one word or not: what empties is seen in both.
            let wide = wide(layout.clone());
            let [narrow, wide] =
                [&layout, &wide].map(|layout| wave(network(layout, widest(&wide), 7000 + case, false), glob));
            assert!(narrow == wide, "seed {}, case {case}, {glob}, switches of several words", seed());
        }
    }
    // Some of them are hardly loaded; of few more may be, as chance has it.
    let least = if share::is_whole() { 200 } else { 100 };
    assert!(lines as u64 > 2 * cases * least, "{lines} lines");
}

/// Twelve routers in `make soak`, four in `make test`.
#[test]
fn the_wave_of_one_wide_switch_is_the_same_whatever_its_neighbours_show() {
    // Two switches of three words of queues, with an end point at every port but one.
    let layout = HyperX { size: vec![2], concentration: 33, wiring: Wiring::default() }.layout(&common(4, 1, 1));
    assert_eq!(widest(&layout), 34);
    let folder = tempfile::tempdir().expect("a folder");
    for case in 0..share::of(3, 12) {
        let [first, second, both] = ["**.s0.switch.in*.**", "**.s1.switch.in*.**", "**.switch.in*.**"].map(|glob| {
            let path = folder.path().join(format!("{}.vcd", glob.replace('*', "")));
            std::fs::write(&path, wave(network(&layout, 34, 8000 + case, false), glob)).expect("it is written");
            path
        });
        for one in [first, second] {
            let found = diff(&one, &both, &DiffOptions::default()).expect("both can be read");
            let at = format!("seed {}, case {case}, {}", seed(), one.display());
            assert!(
                found.compared > 34 && found.steps > 100,
                "{at}: {} signals, {} steps",
                found.compared,
                found.steps
            );
            assert!(found.only_in_a.is_empty() && found.redeclared.is_empty(), "{at}");
            assert!(found.first.is_none(), "{at}: {:?}", found.first);
        }
    }
}
