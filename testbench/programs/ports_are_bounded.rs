//! Every unit of a core has as many ports as a parameter says (H-PORT-1): crossbar, decoder, queues, interrupt controller, calls.
//! Each limit is shown to the cycle.

use crate::sets;
use crate::support::{die, pass};

/// What core 1 reported: cycle and value, in the order of its threads.
fn reports(text: &str, sets: &[String]) -> Vec<(u64, u64)> {
    let programs = pass(text, sets).programs.expect("programs");
    let value = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal number");
    let core = programs.cores.iter().find(|core| core.core == 1).expect("core 1 ran");
    core.reports.iter().map(|report| (report.cycle, value(&report.value))).collect()
}

const TREE: &str = "[core]\nmcast_queue_depth = 16\n[[multicast]]\nid = 0\nsource = 0\nreceivers = [1]\n\
                    [[program]]\ncores = [0]\ntext = '''\nagain: mcast.send 0, r1, 3, 8\nadd r1, r1, 1\nbne r1, 8, again\n'''\n";

/// Four threads, each of a pipeline of its own, issue an operation in cycle 200: when the first goes on after it, and how many
/// cycles later the others do.
fn spread(operation: &str, sets: &[String]) -> (u64, Vec<u64>) {
    let text = die(&format!(
        "{TREE}[[program]]\ncores = [1]\nthreads = 4\ntext = '''\ncompute 200\n{operation}\nmov r6, %cycle\nreport r6\n'''\n"
    ));
    let mut went_on: Vec<u64> = reports(&text, sets).into_iter().map(|(_, cycle)| cycle).collect();
    went_on.sort_unstable();
    (went_on[0] - 200, went_on.iter().map(|cycle| cycle - went_on[0]).collect())
}

/// Ports of the crossbar, decoders and ports of a queue.
fn ports(xbar: u32, decoders: u32, queue: u32) -> Vec<String> {
    sets!["core.xbar_ports={xbar}"; "core.cce_decoders={decoders}"; "core.mcast_queue_ports={queue}"; "core.xbar_cycles=5"]
}

#[test]
fn the_crossbar_takes_as_many_requests_a_cycle_as_it_has_ports() {
    let poll = "mcast.poll r1, r2, r3, 0";
    assert_eq!(spread(poll, &sets!["core.xbar_cycles=5"]), (10, vec![0, 1, 2, 3]), "one by default");
    assert_eq!(spread(poll, &ports(2, 4, 4)), (10, vec![0, 0, 1, 1]));
    assert_eq!(spread(poll, &ports(3, 4, 4)), (10, vec![0, 0, 0, 1]));
    assert_eq!(spread(poll, &ports(4, 4, 4)), (10, vec![0; 4]));
    // Registers are behind it, local memory is not.
    let msr = "load r1, [0x3000000000000008]";
    assert_eq!(spread(msr, &ports(1, 4, 4)), (10, vec![0, 1, 2, 3]));
    let local = sets![r#"memory.bandwidth_gbps="unlimited""#];
    assert_eq!(spread("load r1, [64]", &local), (1, vec![0; 4]));
}

#[test]
fn the_cce_decodes_as_many_operations_a_cycle_as_it_has_decoders() {
    for operation in ["mcast.poll r1, r2, r3, 0", "load r1, [0x3000000000000008]", "store [0x3000000000000010], 1"] {
        assert_eq!(spread(operation, &ports(4, 1, 4)), (10, vec![0, 1, 2, 3]), "{operation}");
        assert_eq!(spread(operation, &ports(4, 2, 4)), (10, vec![0, 0, 1, 1]), "{operation}");
    }
}

#[test]
fn a_queue_gives_and_takes_as_many_messages_a_cycle_as_it_has_ports() {
    let poll = "mcast.poll r1, r2, r3, 0";
    assert_eq!(spread(poll, &ports(4, 4, 1)), (10, vec![0, 1, 2, 3]));
    assert_eq!(spread(poll, &ports(4, 4, 2)), (10, vec![0, 0, 1, 1]));
    // An empty queue gives nothing: a poll of it needs no port.
    let empty = die("[[multicast]]\nid = 0\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [1]\nthreads = 4\n\
         text = '''\ncompute 200\nmcast.poll r1, r2, r3, 0\nreport r1\n'''\n");
    let list = reports(&empty, &ports(4, 4, 1));
    assert!(list.iter().all(|&(cycle, status)| (cycle, status) == (210, 0)), "{list:?}");
    // Into the queue of a tree of its own.
    let send = |sets: &[String]| {
        let text = die("[[multicast]]\nid = 0\nsource = 1\nreceivers = [2]\n[[program]]\ncores = [1]\nthreads = 4\n\
             text = '''\ncompute 200\nmcast.send 0, 1, 2, 8\nreport 1\n'''\n");
        let mut cycles: Vec<u64> = reports(&text, sets).into_iter().map(|(cycle, _)| cycle - 210).collect();
        cycles.sort_unstable();
        cycles
    };
    assert_eq!(send(&ports(4, 4, 1)), [0, 1, 2, 3]);
    assert_eq!(send(&ports(4, 4, 4)), [0; 4]);
}

#[test]
fn an_event_merges_with_one_of_its_source_that_waits() {
    // Twelve messages come while the handler of the first computes: one more run, not eleven.
    for (messages, handled) in [(1, 1), (2, 2), (12, 2)] {
        let text = die(&format!(
            "[core]\nmcast_queue_depth = 16\n[[multicast]]\nid = 0\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [0]\n\
             text = '''\ncompute 60\nagain: mcast.send 0, r1, 3, 8\ncompute 10\nadd r1, r1, 1\nbne r1, {messages}, again\n'''\n\
             [[program]]\ncores = [1]\ntext = '''\n.handler h\nstore [0x3000000000000010], 1\nstore [0x3000000000000000], 1\n\
             compute 5000\nhalt\nh: compute 1000\niret\n'''\n"
        ));
        let programs = pass(&text, &[]).programs.expect("programs");
        let core = programs.cores.iter().find(|core| core.core == 1).expect("it ran");
        assert_eq!((core.events, core.handled), (messages, handled), "{messages} messages");
    }
}

#[test]
fn a_call_waits_until_the_core_may_have_one_more() {
    let all = "[[collective]]\nname = \"a\"\nkind = \"allreduce\"\nid = 0\ndtype = \"i64\"\ncalled = true\n";
    let text = die(&format!(
        "{all}[[program]]\ntext = '''\nallreduce.nb r1, 0, 0, 0x8000, 40\nallreduce.nb r2, 0, 0, 0x9000, 40\nmov r3, %cycle\n\
         report r3\nwait r1\nmov r4, %cycle\nreport r4\nwait r2\n'''\n"
    ));
    let called_and_done = |calls: u32| {
        let list = reports(&text, &sets!["core.outstanding_calls={calls}"]);
        (list[0].1, list[1].1)
    };
    let (called, done) = called_and_done(2);
    assert_eq!(called, 2, "the second call is issued in cycle 1");
    let (later, _) = called_and_done(1);
    assert_eq!(later, done + 1, "it is issued in the cycle in which the first one is complete");
}

#[test]
fn an_msr_changes_when_the_access_has_crossed() {
    // MODE is stored after a round trip of its own; a message that arrives from then on is an event.
    let events = |wait: u64, xbar: u64| {
        let text = die(&format!(
            "[[multicast]]\nid = 0\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [0]\ntext = '''\ncompute {wait}\n\
             mcast.send 0, 7, 1, 8\n'''\n[[program]]\ncores = [1]\ntext = '''\n.handler h\nstore [0x3000000000000010], 1\n\
             compute 200\nstore [0x3000000000000000], 1\nhalt\nh: mcast.poll r1, r2, r3, r0\niret\n'''\n"
        ));
        let programs = pass(&text, &sets!["core.xbar_cycles={xbar}"]).programs.expect("programs");
        programs.cores.iter().find(|core| core.core == 1).expect("it ran").events
    };
    let first = |xbar: u64| (150..420).find(|&wait| events(wait, xbar) == 1).expect("late messages are events");
    let near = first(10);
    assert!(events(near - 1, 10) == 0 && events(near + 1, 10) == 1);
    assert_eq!(first(30), near + 2 * 20, "the stores cross three times, the message once");
}
