//! Push mode: events reach a handler on an STP, which reads MSRs and moves data to local memory (P-MSR-1, P-MSR-2).

use crate::support::{die, pass};

const PUSH: &str = include_str!("../piuma/push-interrupts.toml");

#[test]
fn the_handler_moves_every_message_to_local_memory() {
    let document = pass(PUSH, &[]);
    let programs = document.programs.expect("programs");
    for core in programs.cores.iter().filter(|core| core.core > 0) {
        assert_eq!((core.received, core.left), (20, 0));
        assert_eq!(core.reports[0].value, format!("{:#x}", 19 * 19));
        assert!(core.handled > 0 && core.handled <= core.events, "events of one tree merge while one waits: {core:?}");
        assert!(core.events < 20, "one handler run takes several messages");
    }
}

/// Counts the events of `messages` messages that come one after the other into a queue of depth 4 that is emptied by a
/// thread after each `batch`.
fn events(msrs: &[u64], messages: u64, batch: u64) -> (u64, u64) {
    let stores: Vec<String> = msrs.iter().map(|offset| format!("store [0x3000000000000000 + {offset}], 1\n")).collect();
    let stores = stores.concat();
    let text = die(&format!(
        "[core]\nmcast_queue_depth = 4\n[[multicast]]\nid = 0\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [0]\n\
         text = '''\ncompute 50\nagain: mcast.send 0, r1, 3, 8\ncompute 100\nadd r1, r1, 1\nbne r1, {messages}, again\n'''\n\
         [[program]]\ncores = [1]\ntext = '''\n.handler note\n{stores}\nagain:\nload r2, [0x3000000000000008]\n\
         blt r2, {batch}, again\nempty: mcast.poll r1, r2, r3, 0\nbeq r1, 0, counted\nadd r4, r4, 1\njump empty\n\
         counted: bne r4, {messages}, again\nload r5, [0]\nreport r5\nhalt\n\
         note: expect r0, 0\nload r1, [0]\nadd r1, r1, 1\nstore [0], r1\niret\n'''\n"
    ));
    let programs = pass(&text, &[]).programs.expect("programs");
    let core = programs.cores.iter().find(|core| core.core == 1).expect("it ran");
    assert_eq!(core.events, core.handled, "every event has its run of the handler");
    let counted = u64::from_str_radix(core.reports[0].value.trim_start_matches("0x"), 16).expect("a number");
    (core.events, counted)
}

#[test]
fn each_register_s_interrupt_fires_on_its_condition_and_on_no_other() {
    let (mode, all, nonempty, full) = (0x00, 0x10, 0x18, 0x20);
    // Twelve messages, taken one by one, or four at a time: when the queue is full.
    for (msrs, one_by_one, by_fours) in [
        (vec![mode, all], 12, 12),
        (vec![mode, nonempty], 12, 3),
        (vec![mode, full], 0, 3),
        (vec![mode, nonempty, full], 12, 6),
        (vec![mode, all, nonempty, full], 12, 12),
        (vec![mode], 0, 0),
        (vec![all, nonempty, full], 0, 0),
    ] {
        assert_eq!(events(&msrs, 12, 1).0, one_by_one, "{msrs:x?}, one by one");
        assert_eq!(events(&msrs, 12, 4).0, by_fours, "{msrs:x?}, by fours");
    }
}

#[test]
fn msrs_read_back_through_the_address_map() {
    let text = die("[[multicast]]\nid = 3\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [1]\ntext = '''\n\
         .equ MSRS, 0x3000000000003000\nload r1, [MSRS]\nexpect r1, 0\nstore [MSRS + 0x10], 1\nload r1, [MSRS + 0x10]\n\
         expect r1, 1\nload r1, [MSRS + 0x18]\nexpect r1, 0\nload r1, [MSRS + 8]\nexpect r1, 0\n'''\n");
    pass(&text, &[]);
}

#[test]
fn a_handler_interrupts_the_thread_of_its_pipeline_only() {
    // The STP thread stands while the handler runs, a thread on an MTP does not.
    let text = |pipeline: &str, messages: u64| {
        die(&format!(
            "[core]\nstps = 1\n[[multicast]]\nid = 0\nsource = 0\nreceivers = [1]\n\
             [[program]]\ncores = [0]\ntext = '''\ncompute 50\nagain: beq r1, {messages}, end\nmcast.send 0, r1, 3, 8\n\
             add r1, r1, 1\njump again\nend: halt\n'''\n\
             [[program]]\ncores = [1]\npipeline = \"{pipeline}\"\ntext = '''\nstore [0x3000000000000010], 1\n\
             store [0x3000000000000000], 1\nagain: add r1, r1, 1\nbne r1, 300, again\nreport %cycle\n'''\n\
             [[program]]\ncores = [1]\nthreads = 0\ntext = '''\n.handler take\ntake: mcast.poll r1, r2, r3, r0\n\
             compute 200\niret\n'''\n"
        ))
    };
    let end = |pipeline: &str, messages: u64| {
        let programs = pass(&text(pipeline, messages), &[]).programs.expect("programs");
        let core = programs.cores.into_iter().find(|core| core.core == 1).expect("it ran");
        assert_eq!((core.handled, core.left), (messages, 0));
        core.reports[0].cycle
    };
    assert_eq!(end("mtp", 2), end("mtp", 0));
    assert!(end("stp", 2) > end("stp", 0) + 400);
}

#[test]
fn messages_that_a_core_sends_are_none_that_it_has_received() {
    // The sender waits behind a full queue of its own, and asks its registers of the same id: they are those of its receive queue.
    for (depth, messages) in [(2, 60), (4, 60), (1, 40)] {
        let text = die(&format!(
            "[core]\nmcast_queue_depth = {depth}\n[[multicast]]\nid = 0\nsource = 0\nreceivers = [1]\n\
             [[program]]\ncores = [0]\ntext = '''\nagain: mcast.send 0, r1, 3, 8\nadd r1, r1, 1\nbne r1, {messages}, again\n\
             report 0xd\n'''\n\
             [[program]]\ncores = [0]\ntext = '''\n.handler h\nstore [0x3000000000000020], 1\n\
             store [0x3000000000000018], 1\nstore [0x3000000000000010], 1\nstore [0x3000000000000000], 1\ncompute 400\n\
             load r1, [0x3000000000000008]\nreport r1\nhalt\nh: report 0xeee\niret\n'''\n\
             [[program]]\ncores = [1]\ntext = '''\ncompute 800\nagain: mcast.wait r1, r2, 0, 8\nadd r3, r3, 1\n\
             bne r3, {messages}, again\n'''\n"
        ));
        let programs = pass(&text, &[]).programs.expect("programs");
        let core = |of| programs.cores.iter().find(|core| core.core == of).expect("it ran");
        let mut reports: Vec<_> = core(0).reports.iter().map(|report| (report.cycle, report.value.as_str())).collect();
        reports.sort_unstable();
        let values: Vec<&str> = reports.iter().map(|report| report.1).collect();
        assert_eq!(values, ["0x0", "0xd"], "no message has come in, and the sender is still waiting then");
        assert_eq!((core(0).events, core(0).received), (0, 0));
        assert_eq!((core(1).received, core(1).left), (messages, 0));
    }
}
