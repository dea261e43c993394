//! Vectors of calls move word by word (H-MEM-1): what a program stores before memory grants the fragmenter's read is reduced,
//! what it stores after is not; what it loads is there from the cycle in which the write is granted, not before.

use crate::sets;
use crate::support::{die, pass};

/// What the threads reported: core, cycle, value.
fn reports(text: &str, sets: &[String]) -> Vec<(u64, u64, u64)> {
    let programs = pass(text, sets).programs.expect("programs");
    let value = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal number");
    let all = programs.cores.iter().flat_map(|core| core.reports.iter().map(move |report| (core.core, report)));
    all.map(|(core, report)| (core, report.cycle, value(&report.value))).collect()
}

const SUM: &str = "[[collective]]\nname = \"a\"\nkind = \"allreduce\"\nid = 0\ndtype = \"i64\"\ncalled = true\n";

/// Core 0 waits so many cycles after its call, then stores 99 into a word of its vector of 8; the sum of that word.
fn stored(word: u64, wait: u64) -> u64 {
    let text = die(&format!(
        "{SUM}[[program]]\ncores = [0]\ntext = \"\"\"\n\
         \x20   allreduce.nb r1, 0, 0, 0x8000, 8\n    compute {wait}\n    store [{at}], 99\n    wait r1\n\
         \x20   load r4, [0x8000 + {at}]\n    report r4\n\"\"\"\n\
         [[program]]\ncores = [1, 2, 3, 4, 5, 6, 7]\ntext = \"allreduce 0, 0, 0x8000, 8\"\n",
        at = 8 * word
    ));
    reports(&text, &sets![r#"memory.bandwidth_gbps="unlimited""#])[0].2
}

#[test]
fn a_store_counts_until_the_cycle_in_which_the_word_is_read() {
    // A word a cycle is read: the last wait that is early enough grows by one a word.
    let last = |word: u64| (1..40).rev().find(|&wait| stored(word, wait) == 99).expect("an early store counts");
    let first = last(3);
    assert!((1..first).all(|wait| stored(3, wait) == 99) && (first + 1..first + 12).all(|wait| stored(3, wait) == 0));
    assert_eq!([4, 5, 6, 7].map(last), [1, 2, 3, 4].map(|later| first + later));
}

#[test]
fn with_little_bandwidth_a_late_store_still_counts() {
    // 1,000 words at 51.2 Gb/s take some 2,500 cycles: the last is read long after all have stored.
    let text = die(&format!(
        "{SUM}[[program]]\ntext = \"\"\"\n    allreduce.nb r1, 0, 0, 0x8000, 1000\n    nop\n    nop\n    nop\n    mov r3, 99\n\
         \x20   store [7992], r3\n    wait r1\n    load r4, [0x8000 + 7992]\n    report r4\n\"\"\"\n"
    ));
    assert!(reports(&text, &[]).iter().all(|(_, _, value)| *value == 8 * 99));
}

#[test]
fn a_result_is_there_from_the_cycle_of_its_write() {
    // The collective is complete for core 0 `write` cycles after its only write was granted.
    for write in [0u64, 10] {
        let set = sets![r#"memory.bandwidth_gbps="unlimited""#; "memory.write_latency_cycles={write}"];
        let text = |load: u64| {
            die(&format!(
                "{SUM}[[program]]\ncores = [0]\ntext = \"\"\"\n    .words 0, 7\n    allreduce.nb r1, 0, 0, 0x8000, 1\n\
                 \x20   compute {load}\n    mov r3, %cycle\n    load r2, [0x8000]\n    report r2\n    report r3\n    wait r1\n\
                 \x20   report %cycle\n\"\"\"\n[[program]]\ncores = [1, 2, 3, 4, 5, 6, 7]\ntext = \"allreduce 0, 0, 0x8000, 1\"\n"
            ))
        };
        let seen = |wait: u64| {
            let list = reports(&text(wait), &set);
            (list[0].2, list[1].2 + 1, list[2].2)
        };
        let (value, _, done) = seen(1);
        assert_eq!(value, 0, "nothing is there yet");
        // The thread goes on in the cycle in which the last word lands.
        let (granted, offset) = (done - write, seen(1).1 - 1);
        assert_eq!(seen(granted - offset).0, 7, "in the cycle of the grant");
        assert_eq!(seen(granted - offset).1, granted);
        assert_eq!(seen(granted - offset - 1).0, 0, "the cycle before");
    }
}

#[test]
fn a_thread_that_polls_sees_words_land_and_takes_turns_with_them() {
    let text = die(&format!(
        "{SUM}[[program]]\ntext = \"\"\"\n    .words 0, 1, 2, 3, 4\n    allreduce.nb r1, 0, 0, 0x8000, 1000\n    bne %core, 0, done\n\
         again: load r2, [0x8000]\n    beq r2, 0, again\n    report r2\ndone: wait r1\n    report %cycle\n\"\"\"\n"
    ));
    let list = reports(&text, &[]);
    let (_, cycle, value) = list[0];
    assert_eq!(value, 8);
    let end = list.iter().filter(|(core, ..)| *core == 0).map(|(_, cycle, _)| *cycle).max().expect("core 0 ended");
    assert!(cycle < 100 && end > 2_500, "the first word is seen in cycle {cycle}, the last has landed in {end}");
}
