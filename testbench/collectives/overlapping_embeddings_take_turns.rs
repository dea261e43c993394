//! Embeddings on one id share nothing, or are refused; on different ids they run one after the other (P-SW-7).

use std::fmt::Write as _;

use watershed::scenario::result::Document;

use crate::first_principles::{Ground, Times, Tree};
use crate::sets;
use crate::support::{UNLIMITED, die, mesh, pass, refusal};

fn collective(name: &str, id: u32, participants: &[usize], root: &str) -> String {
    format!(
        "[[collective]]\nname = \"{name}\"\nkind = \"allreduce\"\nid = {id}\nparticipants = {participants:?}\nroot = \"{root}\"\ndata = {{ random = \"bits\" }}\n"
    )
}

fn times(document: &Document) -> Vec<(u64, u64)> {
    document.collectives.iter().map(|found| (found.start_cycle.unwrap(), found.end_cycle.unwrap())).collect()
}

fn alone(participants: &[usize], root: [i64; 2]) -> u64 {
    Tree::new(&Ground::Die, Times::default(), root.to_vec(), participants.iter().copied()).allreduce()
}

#[test]
fn on_one_id_they_are_refused_with_ids_switch_and_port() {
    let text = die(&(collective("a", 2, &[0, 1], "core0") + &collective("b", 2, &[2, 0], "core2")));
    let message = refusal(&text, &[]);
    assert!(message.contains("\"a\" and \"b\" both use id 2 and share port 7 of core0"), "{message}");
    assert!(message.contains("of core0"), "{message}");

    // They meet at an engine, and nowhere else: the registers of one input port each, none of them in common.
    let engine =
        die("[[collective]]\nname = \"a\"\nkind = \"allreduce\"\nparticipants = [0, 1]\n[collective.registers]\n\
        core1.request = { I7 = [2] }\ncore0.request = { I2 = [10], I7 = [10] }\n\
        core0.response = { I10 = [2, 7] }\ncore1.response = { I2 = [7] }\n\
        [[collective]]\nname = \"b\"\nkind = \"allreduce\"\nparticipants = [2, 3]\n[collective.registers]\n\
        core2.request = { I7 = [3] }\ncore3.request = { I7 = [4] }\ncore0.request = { I3 = [10], I4 = [10] }\n");
    let message = refusal(&engine, &[]);
    assert!(message.contains("core0") && message.contains("engine"), "{message}");
}

#[test]
fn a_shared_link_is_refused_as_well() {
    // Two multicasts over the same inter-tile link, by different inputs of different switches before it.
    let text = die("[[collective]]\nname = \"a\"\nkind = \"broadcast\"\nparticipants = [0, 4]\n\
        [[collective]]\nname = \"b\"\nkind = \"broadcast\"\nparticipants = [1, 4]\n\
        [collective.registers]\ncore1.request = { I7 = [2] }\ncore0.request = { I2 = [5] }\n");
    let message = refusal(&text, &[]);
    assert!(message.contains("\"a\" and \"b\" both use id 0 and share port 5 of core0"), "{message}");
}

#[test]
fn disjoint_ones_on_one_id_run_at_once() {
    let text = die(&(collective("left", 1, &[0, 1, 2], "core0") + &collective("right", 1, &[5, 6], "core5")));
    let document = pass(&text, &[]);
    assert_eq!(times(&document), [(0, alone(&[0, 1, 2], [0, 0])), (0, alone(&[5, 6], [1, 3]))]);
}

/// Cycles of a claim's pulse between two cores' switches: a hop takes its link, and a register.
fn reach(from: usize, to: usize) -> u64 {
    let (tiles, positions) = ((from / 4).abs_diff(to / 4) as u64 * 3, u64::from(from % 4 != to % 4));
    (Times::default().link + 1) * (tiles + positions)
}

/// From the last of these cores to the switch of the root, over the core's own link first.
fn climb(participants: &[usize], root: usize) -> u64 {
    let far = participants.iter().map(|&core| reach(core, root)).max().unwrap_or(0);
    far + Times::default().local + 1
}

#[test]
fn overlapping_ones_on_two_ids_run_one_after_the_other() {
    // Who asks first goes first; the arbiter is at the root of the lower id. Whoever is furthest away starts last, and decides.
    let (a, b): (&[usize], &[usize]) = (&[0, 1, 2, 3, 4], &[4, 5, 1]);
    let (sum, low) = (alone(a, [0, 0]), alone(b, [0, 3]));
    let (up_a, up_b, between) = (climb(a, 0), climb(b, 4), reach(0, 4));
    for (first, second) in [(0, 1), (3, 1), (1, 2)] {
        let text = die(&(collective("a", first, a, "core0") + &collective("b", second, b, "core4")));
        let found = times(&pass(&text, &[]));
        let expected = if first < second {
            let end = 2 * up_a + 1 + sum;
            [(0, end), (0, end + up_a + 1 + between + up_b + low)]
        } else {
            let end = 2 * up_b + 1 + low;
            [(0, end + up_b + 1 + between + up_a + sum), (0, end)]
        };
        assert_eq!(found, expected, "ids {first} and {second}");
    }
}

#[test]
fn the_earlier_start_goes_before_the_lower_id() {
    let (a, b): (&[usize], &[usize]) = (&[0, 4], &[0, 5]);
    let text = die(&(collective("a", 0, a, "core0") + &collective("b", 1, b, "core0")));
    let late = times(&pass(&text, &sets!["collective[0].start_cycle=30"]));
    let end = 2 * climb(b, 0) + 1 + alone(b, [0, 0]);
    assert_eq!(late[1], (0, end));
    assert_eq!(late[0], (30, end + climb(b, 0) + 1 + climb(a, 0) + alone(a, [0, 0])));
    // One that comes long after the other is done waits for nobody.
    let later = times(&pass(&text, &sets!["collective[0].start_cycle=1000"]));
    assert_eq!(later[0], (1000, 1000 + 2 * climb(a, 0) + 1 + alone(a, [0, 0])));
}

#[test]
fn those_that_do_not_meet_do_not_wait() {
    let (left, right, both): (&[usize], &[usize], &[usize]) = (&[0, 1], &[4, 7], &[0, 4]);
    let text = die(&(collective("left", 0, left, "core0")
        + &collective("right", 1, right, "core4")
        + &collective("both", 2, both, "core0")));
    let found = times(&pass(&text, &sets!["collective[2].start_cycle=60"]));
    let ends =
        [2 * climb(left, 0) + 1 + alone(left, [0, 0]), 2 * (climb(right, 4) + reach(4, 0)) + 1 + alone(right, [0, 3])];
    assert_eq!((found[0], found[1]), ((0, ends[0]), (0, ends[1])));
    let free = (ends[0] + climb(left, 0)).max(ends[1] + climb(right, 4) + reach(4, 0));
    let granted = free.max(60 + climb(both, 0));
    assert_eq!(found[2], (60, granted + 1 + climb(both, 0) + alone(both, [0, 0])));
}

#[test]
fn three_that_overlap_in_a_ring_do_not_deadlock() {
    // Each meets the next; late participants would let every one hold a part of another's switches.
    let rings = [[0, 1], [1, 2], [2, 0]];
    let text: String = (0..3)
        .map(|at| {
            collective(
                &format!("c{at}"),
                at,
                &rings[at as usize].map(|core| core * 3 % 8),
                &format!("core{}", rings[at as usize][0] * 3 % 8),
            )
        })
        .collect();
    let set = sets!["collective[0].delay_cycles=[0, 90]"; "collective[1].delay_cycles=[90, 0]"; "collective[2].delay_cycles=[0, 45]";
        "collective[0].elements=64"; "collective[1].elements=64"; "collective[2].elements=64"; "switch.collective_buffer_flits=1"; "{UNLIMITED}"];
    let mut ends: Vec<u64> = times(&pass(&die(&text), &set)).into_iter().map(|(_, end)| end).collect();
    ends.sort_unstable();
    assert!(ends.windows(2).all(|ends| ends[1] - ends[0] > 64), "one vector behind the other: {ends:?}");
}

#[test]
fn many_that_overlap_on_a_mesh_all_end_exact() {
    let mut draw = crate::support::Draw(5);
    for round in 0..12 {
        let mut text = String::new();
        for id in 0..8 {
            let participants: Vec<usize> = draw.subset(16).into_iter().map(|end| end as usize).collect();
            let _ = write!(
                text,
                "[[collective]]\nkind = \"allreduce\"\nid = {id}\nparticipants = {participants:?}\nelements = {}\nstart_cycle = {}\ndelay_cycles = {{ random_max = 60 }}\n",
                1 + draw.below(30),
                draw.below(200)
            );
        }
        let set = sets!["switch.collective_ids=8"; "switch.collective_buffer_flits=2"; "seed={round}"];
        let document = pass(&mesh(&[4, 4], 1, &text), &set);
        assert!(document.collectives.iter().all(|found| found.bit_exact == Some(true)));
    }
}
