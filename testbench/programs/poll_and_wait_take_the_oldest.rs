//! mcast.poll never blocks, mcast.wait does; the oldest first; a full queue stops its senders and loses nothing
//! (P-ISA-1 to P-ISA-3, P-CCE-2).

use crate::sets;
use crate::support::{die, pass, run_with};
use watershed::scenario::result::{Document, Outcome};
use watershed::scenario::run::RunOptions;

fn values(document: &Document, core: u64) -> Vec<(u64, u64)> {
    let programs = document.programs.as_ref().expect("programs ran");
    let core = programs.cores.iter().find(|found| found.core == core).expect("it ran");
    let value = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal");
    core.reports.iter().map(|report| (report.cycle, value(&report.value))).collect()
}

const TREE: &str = "[[multicast]]\nid = 0\nsource = 0\nreceivers = [1]\n";

#[test]
fn poll_on_an_empty_queue_fails_at_once_and_leaves_its_registers() {
    for xbar in [1, 3] {
        let text = die(&format!(
            "{TREE}[core]\nxbar_cycles = {xbar}\n[[program]]\ncores = [1]\ntext = '''\nmov r2, 5\nmov r3, 6\n\
             report 0\nmcast.poll r1, r2, r3, 0\nreport r1\nexpect r2, 5\nexpect r3, 6\n'''\n"
        ));
        let got = values(&pass(&text, &[]), 1);
        assert_eq!(got[1].1, 0, "a fail status");
        assert_eq!(got[1].0 - got[0].0, 1 + 2 * xbar, "the crossbar both ways and nothing else");
    }
}

#[test]
fn wait_blocks_until_the_message_is_there() {
    for late in [100, 731] {
        let text = die(&format!(
            "{TREE}[[program]]\ncores = [0]\ntext = \"compute {late}\\nmcast.send 0, 42, 1, 8\"\n\
             [[program]]\ncores = [1]\ntext = \"mcast.wait r1, r2, 0, 8\\nreport r1\"\n"
        ));
        let got = values(&pass(&text, &[]), 1);
        assert_eq!(got[0].1, 42);
        // Issue and crossbar 2, local link 2, switch and link 6, switch and local link 2, crossbar 2: see the path test.
        assert_eq!(got[0].0, late + 1 + 1 + 2 + 6 + 2 + 1 + 1);
    }
}

#[test]
fn a_wait_without_a_message_is_named() {
    let text = die(&format!("{TREE}[[program]]\ncores = [1]\ntext = \"nop\\nmcast.wait r1, r2, 0, 8\"\n"));
    let document = run_with(&text, &[], &RunOptions::default()).document;
    assert_eq!(document.outcome, Outcome::Deadlock);
    let failed = document.checks.iter().find(|check| !check.passed).expect("a failed check");
    assert!(failed.detail.contains("core1, thread 0 on MTP 0, line 2 waits for a multicast message"), "{failed:?}");
}

#[test]
fn the_oldest_message_comes_first_however_it_is_taken() {
    let text = die(&format!(
        "{TREE}[[program]]\ncores = [0]\ntext = '''\nagain: mcast.send 0, r1, 3, 8\nadd r1, r1, 1\nbne r1, 30, again\n'''\n\
         [[program]]\ncores = [1]\ntext = '''\ncompute 60\nagain: mcast.poll r1, r2, r3, 0\nbeq r1, 0, next\n\
         report r2\nadd r4, r4, 1\nnext: bge r4, 30, end\nmcast.wait r2, r3, 0, 8\nreport r2\nadd r4, r4, 1\n\
         blt r4, 30, again\nend: halt\n'''\n"
    ));
    let got: Vec<u64> = values(&pass(&text, &[]), 1).into_iter().map(|(_, value)| value).collect();
    assert_eq!(got, (0..30).collect::<Vec<u64>>());
}

#[test]
fn a_full_queue_stops_its_sender_and_loses_nothing() {
    // The receiver sleeps while far more messages are sent than queues and buffers on the way can hold.
    for depth in [1, 2, 8] {
        let count = 400;
        let text = die(&format!(
            "{TREE}[core]\nmcast_queue_depth = {depth}\n[[program]]\ncores = [0]\ntext = '''\n\
             again: mcast.send 0, r1, 3, 8\nadd r1, r1, 1\nbne r1, {count}, again\nreport %cycle\n'''\n\
             [[program]]\ncores = [1]\ntext = '''\ncompute 5000\nreport 0\nagain: mcast.wait r1, r2, 0, 8\nexpect r1, r3\n\
             add r3, r3, 1\nbne r3, {count}, again\nreport r3\n'''\n"
        ));
        let document = pass(&text, &sets!["link.local_latency_cycles=2"]);
        let got = values(&document, 1);
        assert_eq!(got[1].1, count, "nothing is lost");
        let sender = values(&document, 0)[0].0;
        assert!(sender > 5000, "the sender was stopped until the receiver took something: {sender}");
        let programs = document.programs.expect("programs");
        assert_eq!(programs.cores.iter().map(|core| core.left).sum::<u64>(), 0);
    }
}

#[test]
fn many_threads_of_a_core_share_a_queue() {
    // Every message goes to exactly one of the threads that wait.
    let text = die(&format!(
        "{TREE}[[program]]\ncores = [0]\ntext = '''\nagain: mcast.send 0, r1, 3, 8\nadd r1, r1, 1\nbne r1, 64, again\n'''\n\
         [[program]]\ncores = [1]\nthreads = 16\ntext = '''\nagain: mcast.wait r1, r2, 0, 8\nreport r1\n\
         add r3, r3, 1\nbne r3, 4, again\n'''\n"
    ));
    let mut got: Vec<u64> = values(&pass(&text, &[]), 1).into_iter().map(|(_, value)| value).collect();
    got.sort_unstable();
    assert_eq!(got, (0..64).collect::<Vec<u64>>());
}
