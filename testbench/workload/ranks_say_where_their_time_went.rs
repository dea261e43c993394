//! Results of ranks: computed, communicated, both, exposed, waited (X-WORK-3).

use crate::support::{Goal, pass, workload};

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
