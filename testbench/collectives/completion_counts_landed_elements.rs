//! A collective is complete for a core when all its elements have landed in its memory, and complete when that holds for
//! the last of them (P-AR-1, P-AR-2).

use crate::first_principles::{Ground, Times, Tree};
use crate::sets;
use crate::support::{FLAGSHIP, UNLIMITED, drive, job, latency, only, pass, ready};

#[test]
fn the_end_is_the_landing_of_the_last_element_at_the_last_participant() {
    for limit in ["51.2", "\"unlimited\""] {
        let set = sets!["collective[0].elements=77"; "memory.bandwidth_gbps={limit}"];
        let mut ready = ready(FLAGSHIP, &set);
        drive(&mut ready, 100_000);
        let mut last = 0;
        for core in 0..8 {
            let job = job(&ready, 0, core);
            assert_eq!((job.landed(), job.landed_at().len()), (77, 77));
            assert!(job.landed_at().windows(2).all(|pair| pair[0] < pair[1]), "one a cycle");
            assert_eq!(job.end(), job.landed_at().last().copied(), "core {core}");
            last = last.max(job.end().unwrap());
        }
        assert_eq!(only(&pass(FLAGSHIP, &set)).end_cycle, Some(last));
    }
}

#[test]
fn every_core_gets_its_result_when_its_own_path_says() {
    let mut ready = ready(FLAGSHIP, &sets!["collective[0].elements=1"]);
    drive(&mut ready, 1000);
    let tree = Tree::new(&Ground::Die, Times::default(), vec![0, 2], 0..8);
    for core in 0..8 {
        assert_eq!(job(&ready, 0, core).landed_at(), [tree.landing(core)], "core {core}");
    }
}

#[test]
fn read_and_write_latency_add_exactly_themselves() {
    for elements in [1, 50] {
        let base = sets!["collective[0].elements={elements}"; "{UNLIMITED}"];
        let without = latency(FLAGSHIP, &base);
        for (read, write) in [(1, 0), (0, 1), (30, 0), (0, 45), (13, 17)] {
            let mut set = base.clone();
            set.extend(sets!["memory.read_latency_cycles={read}"; "memory.write_latency_cycles={write}"]);
            assert_eq!(
                latency(FLAGSHIP, &set),
                without + read + write,
                "{elements} elements, read {read}, write {write}"
            );
        }
    }
    // In ns they are rounded up: 10.5 ns are 9 cycles of 850 MHz (8.925), 2.4 ns are 3 (2.04).
    let base = sets!["collective[0].elements=1"; "clock.frequency_mhz=850"; "link.latency_cycles=5"; "link.local_latency_cycles=1"];
    let mut set = base.clone();
    set.extend(sets!["memory.read_latency_ns=10.5"; "memory.write_latency_ns=2.4"]);
    assert_eq!(latency(FLAGSHIP, &set), latency(FLAGSHIP, &base) + 9 + 3);
}

#[test]
fn a_late_participant_gets_its_result_as_late_as_all_others() {
    for late in 0..8 {
        let mut delays = [0u64; 8];
        delays[late] = 500;
        let mut ready = ready(FLAGSHIP, &sets!["collective[0].elements=1"; "collective[0].delay_cycles={delays:?}"]);
        drive(&mut ready, 10_000);
        let senders = delays.into_iter().enumerate().collect();
        let tree = Tree { ground: &Ground::Die, times: Times::default(), root: vec![0, 2], senders };
        for core in 0..8 {
            assert_eq!(job(&ready, 0, core).end(), Some(tree.landing(core)), "core {core}, {late} is late");
            assert!(tree.landing(core) > 500);
        }
    }
}

#[test]
fn who_only_receives_waits_for_the_call_of_its_core() {
    // Participants of a broadcast that are late keep the data in the network until they have called.
    let text = crate::support::die("[[collective]]\nkind = \"broadcast\"\nelements = 60\nsource = 0\n");
    let set = sets!["collective[0].delay_cycles=[0, 0, 0, 0, 700, 0, 0, 0]"; "{UNLIMITED}"];
    let mut ready = ready(&text, &set);
    drive(&mut ready, 10_000);
    let expected: Vec<u64> = (700..760).collect();
    assert_eq!(job(&ready, 0, 4).landed_at(), expected);
    assert_eq!(only(&pass(&text, &set)).bit_exact, Some(true));
}
