//! On a network that is not contended, messages take the time of LogGP's closed form: overhead at both ends, the latency of the way,
//! and a gap a byte, which is the flits of its packets (X-WORK-2).

use crate::support::{Goal, end, mesh, pass, workload};

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

/// LogGOPSim's sample is a broadcast over a binomial tree: rank 0 sends to 1, 2, 4, 8 and 16, and so on. On a line of end points that
/// are all as far from each other as possible apart the times are those of the schedule: the last send of the longest chain.
#[test]
fn a_sample_of_loggopsim_runs() {
    let keys =
        |overhead: u64| format!("trace = \"traces/loggopsim/binary_tree_32.goal\"\noverhead_cycles = {overhead}");
    let document = pass(&mesh("[8, 4]", &keys(0)), &[]);
    assert_eq!((workload(&document).messages, workload(&document).ranks.len()), (31, 32));
    // With an overhead that outweighs the way, the time is that of the tree: rank 31 hears last or, with five sends before it, 16.
    let (o, far) = (10_000, way(10));
    let document = pass(&mesh("[8, 4]", &keys(o)), &[]);
    // Rank k = 0 … 4 sends its last message after so many overheads; each level adds an overhead at the receiver.
    let longest = 6 * o;
    let found = end(&document);
    assert!(found >= longest && found <= 2 * longest + 5 * far, "{found}");
}
