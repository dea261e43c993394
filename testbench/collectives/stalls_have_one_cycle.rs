//! The watchdog gives its verdict in the same cycle however a run is walked (K-WD-1, K-DET-1): cycle by cycle or with idle ones skipped,
//! in any order, with a waveform, on threads. Work that waits for a time that will come is no stall.

use watershed::scenario::result::Outcome;

use crate::sets;
use crate::support::walked;

/// Seven cores of a die in a barrier, among some traffic; the program of the last one is given.
fn barrier_and(last: &str) -> String {
    format!(
        "family = 'piuma'\nseed = 5\n[topology]\nkind = 'die'\n[[job]]\nname = 'all'\nkind = 'barrier'\npiuma.id = 0\n\
         piuma.called = true\n[[program]]\ncores = [0, 1, 2, 3, 4, 5, 6]\ntext = 'barrier 0'\n[[program]]\ncores = [7]\n\
         text = \"\"\"{last}\"\"\"\n[[traffic]]\npattern = 'uniform'\nrate = 0.02\npacket_flits = 1\n\
         [limits]\nwatchdog_cycles = 2000\nmax_cycles = 80_000\n"
    )
}

/// A leaf is dead, the root never asks again and nobody gives up, while frames of a stranger come with pauses in which they are all on
/// links and no node is awake.
const FLOODED: &str = "family = 'armed'\n[topology]\nkind = 'tree'\nbranching = [2, 2]\n[limits]\nmax_cycles = 60_000\n\
     watchdog_cycles = 3000\n[armed.engine]\ntimeouts_1024_cycles = [1, 2, 2, 2]\n[[armed.reduction]]\nname = 'sum'\n\
     compute_cycles = 400\npatience_cycles = 0\nretry_after_cycles = 0\n[[armed.fault]]\neffect = 'dead'\nat = 'leaf1'\n\
     from_cycle = 300\n[[armed.stranger]]\nend_point = 2\nreduction = 'sum'\nwrong = 'cookie'\nuntil_cycle = 9_000_000_000\n\
     every_cycles = 37\n";

/// Frames of one context are lost over long links, while another one goes on.
const LOST: &str = "family = 'pbv'\n[topology]\nkind = 'tree'\nbranching = [2, 2]\n[link]\nlatency_ns = 120\n[limits]\n\
     max_cycles = 200_000\nwatchdog_cycles = 5000\n[[pbv.collective]]\nname = 'stands'\nkind = 'barrier'\nstart_cycle = 3000\n\
     blocks = false\n[[pbv.collective]]\nname = 'flows'\nkind = 'barrier'\nrounds = 900\nstart_cycle = 3000\nblocks = false\n\
     [[pbv.fault]]\neffect = 'drop'\nat = 'all'\ncc_id = 0\nfrom_cycle = 3000\n";

#[test]
fn of_calls_that_wait_for_a_core_that_never_calls() {
    for rate in ["0.02", "0.3"] {
        let document = walked(&barrier_and("compute 300"), &sets!["traffic[0].rate={rate}"]);
        assert_eq!(document.outcome, Outcome::Deadlock, "at {rate}");
        assert!(document.cycles > 2000, "at {rate}: {}", document.cycles);
    }
}

#[test]
fn of_reductions_beside_strangers() {
    for every in [1, 37] {
        let document = walked(FLOODED, &sets!["armed.stranger[0].every_cycles={every}"]);
        assert_eq!(document.outcome, Outcome::Deadlock, "every {every} cycles");
    }
}

#[test]
fn of_a_context_beside_another_one() {
    for latency in [1, 120] {
        let document = walked(LOST, &sets!["link.latency_ns={latency}"]);
        assert_eq!(document.outcome, Outcome::Deadlock, "links of {latency} ns");
    }
}

#[test]
fn nobody_stands_who_waits_for_what_will_come() {
    // Busy enough that the patience would be over several times.
    let busy = sets!["traffic[0].rate=0.2"; "limits.watchdog_cycles=1000"];
    let computes = walked(&barrier_and("compute 6000\nbarrier 0"), &busy);
    assert!(computes.passed() && computes.cycles > 6000, "a thread computes: {}", computes.cycles);
    let twice = walked(&barrier_and("compute 4000\ncompute 4000\nbarrier 0"), &busy);
    assert!(twice.passed() && twice.cycles > 8000, "and again: {}", twice.cycles);
    let late = "family = 'piuma'\n[topology]\nkind = 'mesh'\nsize = [3, 2]\n[[job]]\nkind = 'allreduce'\ndtype = 'f64'\nelements = 4\n\
                participants = [0, 1, 5]\npiuma.delay_cycles = [0, 0, 8000]\n[[traffic]]\npattern = 'uniform'\nrate = 0.2\n\
                packet_flits = 1\n[limits]\nwatchdog_cycles = 1000\n";
    let late = walked(late, &[]);
    assert!(late.passed() && late.cycles > 8000, "a participant begins late: {}", late.cycles);
}
