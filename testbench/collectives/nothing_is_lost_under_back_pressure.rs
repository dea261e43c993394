//! Small buffers, narrow links and blocked consumers: nothing is lost, nothing deadlocks, and the cycle count follows from
//! the arithmetic (P-SW-6, K-FC-1).

use crate::first_principles::{Ground, Times, Tree};
use crate::sets;
use crate::support::{Draw, FLAGSHIP, ONE, UNLIMITED, die, drive, job, latency, mesh, only, pass, ready};

fn flagship(times: Times) -> u64 {
    Tree::new(&Ground::Die, times, vec![0, 2], 0..8).allreduce()
}

#[test]
fn buffers_of_one_flit_move_one_element_a_round_trip() {
    for pipeline in 1..=4u64 {
        for link in [1, 5, 20] {
            let elements = 24;
            let set = sets!["collective[0].elements={elements}"; "switch.collective_buffer_flits=1"; "switch.pipeline_stages={pipeline}";
                "link.latency_cycles={link}"; "link.local_latency_cycles=1"; "{UNLIMITED}"];
            let round_trip = 2 * link + 2 + pipeline - 1;
            let expected = flagship(Times { link, pipeline, ..Times::default() }) + (elements - 1) * round_trip;
            assert_eq!(latency(FLAGSHIP, &set), expected, "pipeline {pipeline}, link {link}");
        }
    }
}

#[test]
fn narrow_links_take_their_cycles_for_every_element() {
    for cycles_per_flit in [2, 5] {
        for pipeline in 1..=4 {
            let elements = 50;
            let set = sets!["collective[0].elements={elements}"; "link.cycles_per_flit={cycles_per_flit}"; "switch.pipeline_stages={pipeline}"; "{UNLIMITED}"];
            let expected =
                flagship(Times { cycles_per_flit, pipeline, ..Times::default() }) + (elements - 1) * cycles_per_flit;
            assert_eq!(latency(FLAGSHIP, &set), expected, "{cycles_per_flit} cycles a flit, pipeline {pipeline}");
        }
    }
}

#[test]
fn a_blocked_consumer_holds_the_result_and_loses_none() {
    let elements = 400u64;
    for pipeline in 1..=4 {
        for blocked in [0, 3, 4, 6] {
            let until = 900;
            let set = sets!["collective[0].elements={elements}"; "switch.pipeline_stages={pipeline}"; "{UNLIMITED}"];
            let mut ready = ready(FLAGSHIP, &set);
            let reference = pass(FLAGSHIP, &set);
            ready.system.end_mut(blocked).core.as_mut().unwrap().block_until(until);
            drive(&mut ready, 100_000);
            // All that its way can hold has piled up; from then on a word a cycle, as if it had just begun.
            let expected: Vec<u64> = (until..until + elements).collect();
            assert_eq!(job(&ready, 0, blocked).landed_at(), expected, "core {blocked}, pipeline {pipeline}");
            for core in 0..8 {
                let words: Vec<String> =
                    job(&ready, 0, core).output().iter().map(|word| format!("{word:016x}")).collect();
                assert_eq!(words, only(&reference).oracle, "core {core}");
                // A multicast moves only when all its outputs can: nobody gets far ahead of the one who is blocked.
                let ahead = job(&ready, 0, core).landed_at().iter().filter(|&&at| at < until).count();
                assert!(
                    core == blocked || (1..200).contains(&ahead),
                    "core {core} got {ahead} words before cycle {until}"
                );
            }
            while ready.system.step() != watershed::fabric::Step::Quiet {}
            assert!(ready.system.at_rest() && ready.system.live_flits() == 0);
        }
    }
}

#[test]
fn a_consumer_blocked_behind_buffers_of_one_flit_gets_one_word_a_round_trip_of_its_own_link() {
    // Every queue on the way is full when it wakes. Only the words behind the first come over a link of 5 cycles.
    let mut ready =
        ready(FLAGSHIP, &sets!["collective[0].elements=30"; "switch.collective_buffer_flits=1"; "{UNLIMITED}"]);
    ready.system.end_mut(2).core.as_mut().unwrap().block_until(3000);
    drive(&mut ready, 100_000);
    let times = job(&ready, 0, 2).landed_at();
    assert_eq!(times[0], 3000);
    assert!(times.windows(2).skip(6).all(|pair| pair[1] - pair[0] == 12), "{times:?}");
}

#[test]
fn random_small_systems_lose_nothing() {
    let mut draw = Draw(77);
    for round in 0..60 {
        let die_or_mesh = draw.below(2) == 0;
        let text = if die_or_mesh {
            die(ONE)
        } else {
            mesh(&[1 + draw.below(4) as u32, 1 + draw.below(3) as u32], 1 + draw.below(3) as u32, ONE)
        };
        let ground_ends = if die_or_mesh { 8 } else { load_ends(&text) };
        let participants = draw.subset(ground_ends);
        let set = sets!["collective[0].elements={}", 1 + draw.below(40);
            "collective[0].participants={participants:?}";
            "collective[0].delay_cycles={{ random_max = {} }}", draw.below(100);
            "collective[0].data.random=\"bits\"";
            "seed={round}";
            "switch.collective_buffer_flits={}", 1 + draw.below(4);
            "switch.pipeline_stages={}", 1 + draw.below(4);
            "switch.ceng.stages={}", 1 + draw.below(6);
            "switch.ceng.operand_slots={}", 1 + draw.below(3);
            "switch.ceng.result_slots={}", 1 + draw.below(4);
            "link.latency_cycles={}", 1 + draw.below(9);
            "link.cycles_per_flit={}", 1 + draw.below(3)];
        pass(&text, &set);
    }
}

fn load_ends(text: &str) -> u64 {
    u64::from(crate::support::load(text, &[]).scenario.topology.end_points())
}
