//! Results of ranks: computed, communicated, both, exposed, waited (X-WORK-3).

use std::collections::BTreeMap;

use crate::support::{Goal, load, pass, workload};
use watershed::scenario::workload::perfetto;

#[test]
fn overlap_and_exposure_are_counted() {
    // Rank 0 sends 800 bytes while it computes on another stream; rank 1 computes first and then waits.
    let goal = Goal::new(&["a: calc 60 cpu 1\nb: send 800b to 1", "c: calc 30\nd: recv 800b from 0\nd requires c"]);
    let document = pass(&goal.on_mesh(""), &[]);
    let ranks = &workload(&document).ranks;
    // The send is over when it is handed over: buffered, as in LogGOPSim.
    assert_eq!((ranks[0].compute_cycles, ranks[0].communicate_cycles, ranks[0].end_cycle), (60, 0, Some(60)));
    let one = &ranks[1];
    // Its first flit comes after 10 cycles, the last of 113 flits 112 later; it computes up to cycle 30.
    assert_eq!((one.compute_cycles, one.end_cycle), (30, Some(122)));
    assert_eq!((one.communicate_cycles, one.overlap_cycles, one.exposed_cycles, one.wait_cycles), (92, 0, 92, 0));
    for rank in ranks.iter().filter(|rank| rank.nodes > 0) {
        let busy = rank.compute_cycles + rank.communicate_cycles - rank.overlap_cycles;
        assert_eq!(rank.end_cycle, Some(busy + rank.wait_cycles));
    }
}

#[test]
fn events_of_a_track_do_not_cross() {
    // Rank 0 computes twice at once, and three messages come while others leave: their times cross.
    let goal = Goal::new(&[
        "a: calc 900 cpu 1\nb: calc 400 cpu 2\nc: recv 2400b from 1\nd: recv 800b from 2\ne: recv 1600b from 3",
        "send 2400b to 0",
        "w: calc 30\ns: send 800b to 0\ns requires w",
        "w: calc 60\ns: send 1600b to 0\ns requires w",
    ]);
    let text = goal.on_mesh("").replace("\"mesh\"", "\"hyperx\"");
    let document = pass(&text, &[]);
    let clock = load(&text, &[]).unwrap().scenario.clock;
    let perfetto: serde_json::Value = serde_json::from_str(&perfetto::json(workload(&document), &clock)).unwrap();
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for event in perfetto["traceEvents"].as_array().unwrap() {
        let of = |key: &str| event[key].as_u64().unwrap();
        let cycles = |key: &str| event["args"][key].as_u64().unwrap();
        match (event["ph"].as_str().unwrap(), event["name"].as_str().unwrap()) {
            ("X", _) => {
                tracks.entry((of("pid"), of("tid"))).or_default().push((cycles("start_cycle"), cycles("end_cycle")));
            }
            ("M", "thread_name") => {
                names.insert((of("pid"), of("tid")), event["args"]["name"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }
    for (track, spans) in &mut tracks {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{track:?} {spans:?}");
    }
    let of_rank = |rank: u64| tracks.iter().filter(move |((pid, _), _)| *pid == rank).map(|(_, spans)| spans.len());
    assert_eq!(of_rank(0).sum::<usize>(), 5, "every node once");
    assert!(of_rank(0).count() > 3, "{tracks:?}");
    for (rank, name) in [((0, 0), "compute"), ((0, 1), "compute 2"), ((0, 2), "communicate"), ((0, 3), "communicate 2")]
    {
        assert_eq!(names[&rank], name);
    }
}
