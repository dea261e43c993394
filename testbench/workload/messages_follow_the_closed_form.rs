//! On a network that is not contended, messages take the time of LogGP's closed form: overhead at both ends, the latency of the way,
//! and a gap a byte, which is the flits of its packets (X-WORK-2).

use std::fmt::Write;

use crate::share;
use crate::support::{Goal, end, mesh, pass, root, workload};

/// Cycles of a flit's way between end points of a line so many links apart: onto the port, through switches, off the port.
fn way(links: u64) -> u64 {
    (1 + 1) + links * (1 + 5) + (1 + 1)
}

/// Flits of a message of so many bytes, in packets of so many words.
fn flits(bytes: u64, packet: u64) -> u64 {
    let words = bytes.div_ceil(8);
    (words + words.div_ceil(packet)).max(1)
}

#[test]
fn one_message_takes_overhead_gap_and_latency() {
    for (to, bytes, overhead, packet) in
        [(1, 0, 0, 8), (1, 8, 0, 8), (7, 64, 0, 8), (3, 1000, 25, 8), (5, 4096, 100, 1), (2, 77, 7, 64)]
    {
        let mut blocks = vec![String::new(); 8];
        blocks[0] = format!("send {bytes}b to {to} tag 3");
        blocks[to as usize] = format!("recv {bytes}b from 0 tag 3");
        let goal = Goal::new(&blocks.iter().map(String::as_str).collect::<Vec<_>>());
        let text = goal.on_mesh(&format!("overhead_cycles = {overhead}\npacket_words = {packet}"));
        let document = pass(&text, &[]);
        let expected = 2 * overhead + flits(bytes, packet) - 1 + way(to);
        assert_eq!(end(&document), expected, "{bytes} bytes over {to} links, o = {overhead}, packets of {packet}");
        assert_eq!(workload(&document).message_words, bytes.div_ceil(8));
    }
}

#[test]
fn messages_of_a_rank_leave_one_after_the_other() {
    // Three messages of 64 bytes: the overheads come first, the port is busy with nine flits each.
    let goal = Goal::new(&[
        "send 64b to 1\nsend 64b to 1\nsend 64b to 1",
        "recv 64b from 0\nrecv 64b from 0\nrecv 64b from 0",
    ]);
    let time = |overhead: u64| end(&pass(&goal.on_mesh(&format!("overhead_cycles = {overhead}")), &[]));
    assert_eq!(time(0), 3 * 9 - 1 + way(1));
    // An overhead longer than a message: the processor is what counts at both ends.
    assert_eq!(time(50), 3 * 50 + 9 - 1 + way(1) + 50);
}

#[test]
fn a_chain_adds_up() {
    // 0 computes, tells 3, which computes and tells 7.
    let mut blocks = [""; 8];
    blocks[0] = "a: calc 100\nb: send 8b to 3\nb requires a";
    blocks[3] = "c: recv 8b from 0\nd: calc 40\nd requires c\ne: send 8b to 7\ne requires d";
    blocks[7] = "recv 8b from 3";
    let goal = Goal::new(&blocks);
    let message = |links: u64| 2 * 10 + 2 - 1 + way(links);
    let document = pass(&goal.on_mesh("overhead_cycles = 10"), &[]);
    assert_eq!(end(&document), 100 + message(3) + 40 + message(4));
    let parts: u64 = workload(&document).path.iter().map(|step| step.end_cycle - step.start_cycle).sum();
    assert_eq!(parts, end(&document), "the path explains every cycle");
    let path: Vec<(&str, u64)> = workload(&document).path.iter().map(|step| (step.what.as_str(), step.rank)).collect();
    let expected = [
        ("compute", 0),
        ("overhead", 0),
        ("message", 0),
        ("overhead", 3),
        ("compute", 3),
        ("overhead", 3),
        ("message", 3),
        ("overhead", 7),
    ];
    assert_eq!(path, expected);
    // Computing is scaled, messages are not.
    let document = pass(&goal.on_mesh("overhead_cycles = 10\ncompute_scale = 2.5"), &[]);
    assert_eq!(end(&document), 250 + message(3) + 100 + message(4));
}

#[test]
fn streams_and_starts_are_kept() {
    // Two streams run at once, one of them one after the other; `irequires` waits for the start only.
    let goal = Goal::new(&["a: calc 100 cpu 0\nb: calc 70 cpu 1\nc: calc 50 cpu 1\nd: calc 500 cpu 2\nd irequires c"]);
    assert_eq!(end(&pass(&goal.on_mesh(""), &[])), 70 + 500);
}

/// A network in which every end point has a link of its own to every other one: nothing is in the way of anything.
fn complete(ranks: usize, keys: &str) -> String {
    mesh(&format!("[{ranks}]"), keys).replace("\"mesh\"", "\"hyperx\"")
}

/// LogGOPSim's sample is a broadcast over a binomial tree. With o the overhead, g the cycles of a message on its port and L those of its
/// way, rank k's n-th message is handed over n o after it has heard itself, and leaves when the one before has; its receiver hears it
/// g - 1 + L + o later.
#[test]
fn a_sample_of_loggopsim_takes_the_closed_form() {
    let text = std::fs::read_to_string(root().join("traces/loggopsim/binary_tree_32.goal")).unwrap();
    let mut sends: Vec<Vec<usize>> = vec![Vec::new(); 32];
    let mut rank = 0;
    for line in text.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["rank", number, "{"] => rank = number.parse().unwrap(),
            [_, "send", "1b", "to", to, "tag", "0"] => sends[rank].push(to.parse().unwrap()),
            _ => {}
        }
    }
    for o in [0, 1, 2, 9, 500] {
        let mut heard = [0; 32];
        let mut ends = [0; 32];
        // Who sends has a lower number than who receives.
        for rank in 0..32 {
            // What leaves in the cycle in which something came does so a cycle later: the memory has one turn.
            let mut port = heard[rank] + u64::from(o == 0 && rank > 0);
            for (number, &to) in (1..).zip(&sends[rank]) {
                ends[rank] = heard[rank] + number * o;
                let leaves = port.max(ends[rank]);
                port = leaves + flits(1, 8);
                heard[to] = leaves + flits(1, 8) - 1 + way(1) + o;
                ends[to] = heard[to];
            }
        }
        let keys = format!("trace = \"traces/loggopsim/binary_tree_32.goal\"\noverhead_cycles = {o}");
        let document = pass(&complete(32, &keys), &[]);
        let found: Vec<u64> = workload(&document).ranks.iter().map(|rank| rank.end_cycle.unwrap()).collect();
        assert_eq!(found, ends, "o = {o}");
        assert_eq!(workload(&document).messages, 31);
    }
}

/// A schedule of rounds, as LogGOPSim's generators write them: in each, a rank sends and receives, and goes on when both are over.
fn rounds(ranks: usize, count: u32, to: impl Fn(usize, u32) -> usize, bytes: u64) -> Goal {
    let blocks = (0..ranks).map(|rank| {
        let mut block = String::new();
        for round in 0..count {
            let from = (0..ranks).find(|&other| to(other, round) == rank).unwrap();
            let _ = writeln!(block, "s{round}: send {bytes}b to {} tag {round}", to(rank, round));
            let _ = writeln!(block, "r{round}: recv {bytes}b from {from} tag {round}");
            for of in ["s", "r"] {
                if let Some(before) = round.checked_sub(1) {
                    let _ = writeln!(block, "{of}{round} requires s{before}\n{of}{round} requires r{before}");
                }
            }
        }
        block
    });
    Goal::new(&blocks.collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn generated_schedules_take_the_closed_form() {
    let (bytes, o) = (640, 30);
    let step = 2 * o + flits(bytes, 8) - 1 + way(1);
    for ranks in [2, 5, 8, 13, 32usize] {
        let log = usize::BITS - (ranks - 1).leading_zeros();
        let dissemination = rounds(ranks, log, |rank, round| (rank + (1 << round)) % ranks, bytes);
        let ring = rounds(ranks, ranks as u32 - 1, |rank, _| (rank + 1) % ranks, bytes);
        let mut all = vec![(dissemination, log, "dissemination"), (ring, ranks as u32 - 1, "ring")];
        if ranks.is_power_of_two() {
            all.push((rounds(ranks, log, |rank, round| rank ^ 1 << round, bytes), log, "recursive doubling"));
        }
        for (goal, count, what) in all {
            let text = complete(ranks, &goal.keys(&format!("overhead_cycles = {o}")));
            let document = pass(&text, &[]);
            assert_eq!(end(&document), u64::from(count) * step, "{what} of {ranks}");
            assert_eq!(workload(&document).messages, u64::from(count) * ranks as u64);
        }
    }
}

/// ASTRA-sim's ring of messages for eight ranks: 14 steps of an eighth of a megabyte, the first seven of which are added up for 7 us.
/// Grids in `make soak` only.
#[test]
fn a_ring_of_messages_takes_the_closed_form() {
    let keys = "trace = \"traces/astra-sim/custom_ring_allreduce_8npus_1MB/custom_allreduce\"";
    let words = (1 << 20) / 8 / 8;
    let step = flits(8 * words, 8) - 1 + way(1);
    let ring = mesh("[8]", keys).replace("\"mesh\"", "\"torus\"");
    let grid = mesh("[2, 4]", keys);
    let piuma = grid.replace("\"fabric\"", "\"piuma\"");
    for (text, exact) in share::one_in(3, [(ring, true), (grid, false), (piuma, false)]) {
        let document = pass(&text, &[]);
        let of = workload(&document);
        assert_eq!((of.messages, of.message_words, of.messages_exact), (8 * 14, 8 * 14 * words, Some(true)));
        assert!(of.ranks.iter().all(|rank| rank.end_cycle.is_some() && rank.compute_cycles == 7 * 7000));
        // Six sends start in the cycle in which a receive ended: they leave a cycle later. Elsewhere neighbours are up to four links apart.
        let expected = 14 * step + 7 * 7000 + 6;
        let most = if exact { expected } else { expected + 14 * (way(4) - way(1)) };
        assert!((expected..=most).contains(&end(&document)), "{} {expected} {most}", end(&document));
    }
}
