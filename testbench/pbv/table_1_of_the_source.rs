//! Table 1 and paragraphs 151 and 153, from simulated runs (B-FIG-1 to B-FIG-5, B-HI-3, B-HI-4).

use watershed::scenario::ENGINES;
use watershed::study::pbv_table1::{Column, Engines, Shape, column, sixteen_contexts};
use watershed::study::reproduction::{Basis, Relation, Report, find};

use crate::share;

fn rows<'a>(report: &'a Report, id: &str) -> Vec<(&'a str, f64, Option<f64>)> {
    report.rows.iter().filter(|row| row.id == id).map(|row| (row.what.as_str(), row.ours, row.simulated)).collect()
}

const COMMAND: u64 = 4;
const DATA: u64 = 132;

/// What a second all-reduce adds to this one at the master engine's port: out and in.
fn a_round(one: &Column, shape: Shape, engines: Engines) -> (u64, u64) {
    let (one, two) = (one.port_flits, column(ENGINES, shape, engines, 2).unwrap().port_flits);
    (two.0 - one.0, two.1 - one.1)
}

#[test]
fn a_smaller_table_has_the_frames_its_shape_says() {
    // 132 end points are more than a table has entries; 21 are not.
    for shape in [Shape { switches: 4, nodes: 33 }, Shape { switches: 3, nodes: 7 }] {
        let (switches, nodes) = (u64::from(shape.switches), u64::from(shape.nodes));
        let ends = switches * nodes;
        let mono = column(ENGINES, shape, Engines::Monolithic, 1).unwrap();
        assert_eq!((mono.to_engines, mono.to_ends, mono.from_ends, mono.to_source), (0, ends - 1, ends, 1));
        assert_eq!((mono.on_a_link, mono.below, mono.partials), ((nodes, nodes), 0, 0));
        let dist = column(ENGINES, shape, Engines::Distributed, 1).unwrap();
        assert_eq!((dist.to_engines, dist.to_ends, dist.from_ends), (switches - 1, nodes - 1, nodes));
        assert_eq!((dist.on_a_link, dist.below, dist.partials, dist.to_source), ((1, 1), nodes, 1, 1));
        assert_eq!(dist.on_an_edge, (3, 3));
        let ns = |flits: u64| flits as f64 / 2.0;
        let (send, receive) = (ns(COMMAND * (ends - 1)), ns(DATA * ends));
        assert_eq!(mono.sending.map(f64::to_bits), [send, receive, send + 2.0 * receive].map(f64::to_bits));
        let (send, receive) = (ns(COMMAND * (switches - 1 + nodes)), ns(DATA * (switches - 1 + nodes)));
        assert_eq!(dist.sending.map(f64::to_bits), [send, receive, send + 2.0 * receive].map(f64::to_bits));
        simulated_is_not_faster(&mono);
        simulated_is_not_faster(&dist);
        // The wire at the engine's port carries these frames and not one flit more.
        let out = COMMAND * (ends - 1) + DATA * ends;
        assert_eq!(a_round(&mono, shape, Engines::Monolithic), (out, COMMAND + DATA * ends), "{shape:?}");
        let (peers, own) = (switches - 1, nodes);
        let out = COMMAND * (peers + own - 1) + DATA * (peers + own);
        assert_eq!(a_round(&dist, shape, Engines::Distributed), (out, COMMAND + DATA * (peers + own)), "{shape:?}");
    }
}

/// With latencies nothing is faster than the frames of one port alone.
fn simulated_is_not_faster(column: &Column) {
    assert!(column.simulated[0] > column.sending[0] / 2.0, "{column:?}");
    assert!(column.simulated[2] > column.sending[2] / 2.0, "{column:?}");
}

#[test]
#[ignore = "simulates 1024 end points at one engine"]
fn counts_are_the_texts_and_times_are_within_two_per_cent() {
    let mut report = Report::default();
    (find("pbv-table1").unwrap().run)(ENGINES, &|_| {}, &mut report).unwrap();
    assert!(report.holds(), "{}", report.text());
    let [(name, picture)] = &report.plots[..] else { panic!("one picture") };
    let drawn: Vec<Vec<i64>> = picture
        .series
        .iter()
        .map(|series| series.points.iter().map(|point| (point.1 * 10.0).round() as i64).collect())
        .collect();
    assert_eq!((*name, &drawn[..2]), ("engines", &[vec![162, 162, 162], vec![162, 163, 163]][..]), "{drawn:?}");
    println!("{}", report.text());
    let reproduced = report.rows.iter().filter(|row| row.holds_if != Relation::Differs);
    assert!(reproduced.clone().all(|row| row.basis == Basis::Predicted && row.tolerance <= 0.02));
    let of = |id: &str| rows(&report, id);
    let ours = |id: &str| of(id).iter().map(|row| row.1).collect::<Vec<_>>();
    assert_eq!(ours("B-FIG-1"), [1023.0, 1023.0, 1.0, 31.0, 31.0, 1.0, 32.0, 1.0]);
    assert_eq!(ours("B-FIG-2"), [32.0, 32.0, 1.0, 1.0]);
    assert_eq!(ours("B-HI-4"), [3.0, 3.0]);
    // Fifteen engines below the master, one behind the other at its port.
    assert_eq!(ours("B-HI-3"), [528.0, 7920.0, 264.0, 3960.0]);
    // With latencies nothing is faster than sending alone, and the tree of engines keeps its lead.
    for id in ["B-FIG-3", "B-FIG-4"] {
        let rows = of(id);
        assert!(rows.iter().all(|&(_, ours, simulated)| simulated.unwrap() > ours), "{rows:?}");
        assert!(rows[0].2.unwrap() > 10.0 * rows[1].2.unwrap(), "{rows:?}");
    }
    // Two masters: the results of sixteen contexts are out sooner, at the engines' own ports as well. How much sooner on one edge
    // depends on which contexts the operands behind them let through first.
    let rows = of("B-HI-3");
    assert!(rows[2].2.unwrap() < 0.9 * rows[0].2.unwrap(), "{rows:?}");
    assert!(rows[3].2.unwrap() < 0.9 * rows[1].2.unwrap(), "{rows:?}");
}

#[test]
fn a_second_master_halves_the_results_on_an_edge_and_at_a_port() {
    for nodes in share::one_in(3, [2, 1, 3]) {
        let (one, two) = (sixteen_contexts(ENGINES, 1, nodes).unwrap(), sixteen_contexts(ENGINES, 2, nodes).unwrap());
        assert_eq!((one.edge.0, two.edge.0), (528.0, 264.0), "{nodes}");
        // The port sends to fifteen engines below, one frame behind the other.
        assert_eq!((one.port.0, two.port.0), (15.0 * 528.0, 15.0 * 264.0), "{nodes}");
        // A run is not faster than the frames alone.
        assert!(one.edge.1 >= one.edge.0 && one.port.1 >= one.port.0, "{nodes} {:?} {:?}", one.edge, one.port);
        assert!(two.edge.1 >= two.edge.0 && two.port.1 >= two.port.0, "{nodes} {:?} {:?}", two.edge, two.port);
    }
}

/// A run takes what its frames take one behind the other at the port that has most of them, and a latency that is the same for
/// all shapes: no engine pauses between frames, and none goes a way that is longer.
#[test]
fn simulated_times_are_those_of_the_frames_and_one_latency() {
    for (engines, hops) in [(Engines::Monolithic, [2.0, 1.0]), (Engines::Distributed, [2.0, 2.0])] {
        let shapes = [(3, 5), (3, 7), (4, 5), (5, 12)];
        let latencies = shapes.map(|(switches, nodes)| {
            let of = |rounds| column(ENGINES, Shape { switches, nodes }, engines, rounds).unwrap();
            let (one, two) = (of(1), of(2));
            // What a second round adds: responses in and results out; its commands leave while responses come.
            let round = 2.0 * two.simulated[2] - one.simulated[2];
            let frames = if engines == Engines::Monolithic { u64::from(nodes) } else { 1 };
            let carried = [two.link_flits.0 - one.link_flits.0, two.link_flits.1 - one.link_flits.1];
            assert_eq!(carried, [frames * (COMMAND + DATA); 2], "{engines:?} {switches} {nodes}: on every link alike");
            [one.simulated[0] - one.sending[0], one.simulated[1] - one.sending[1], round - 2.0 * one.sending[1]]
        });
        assert!(
            latencies.iter().all(|of| of.map(f64::to_bits) == latencies[0].map(f64::to_bits)),
            "{engines:?}: {latencies:?}"
        );
        // Links take 10 ns; switches and engines add cycles of half a nanosecond. A partial result goes behind the last response,
        // whole, and so does a round's last result.
        let [send, receive, round] = latencies[0];
        let data = DATA as f64 / 2.0;
        let between = |ns: f64, least: f64| (least..least + 10.0).contains(&ns);
        assert!(between(send, 10.0 * hops[0]), "{engines:?}: {send}");
        let whole = if engines == Engines::Monolithic { 0.0 } else { data };
        assert!(
            receive > 10.0 * hops[1] + whole && receive < 10.0 * hops[1] + 2.0 * whole + 10.0,
            "{engines:?}: {receive}"
        );
        assert!(round > 20.0 && round < 40.0 + 3.0 * whole, "{engines:?}: {round}");
    }
}

/// Each further master takes its share of the results from an edge and a port, and the run is the shorter for it.
#[test]
fn masters_share_the_results_of_sixteen_contexts() {
    for nodes in share::one_in(2, [1, 3]) {
        let all = [1, 2, 4].map(|masters| sixteen_contexts(ENGINES, masters, nodes).unwrap());
        for (of, masters) in all.iter().zip([1.0, 2.0, 4.0]) {
            assert_eq!((of.edge.0, of.port.0), (528.0 / masters, 7920.0 / masters), "{nodes} {masters}");
        }
        let times = all.map(|of| of.port.1);
        assert!(times[1] < 0.9 * times[0] && times[2] < 0.8 * times[1], "{nodes}: {times:?}");
    }
}
