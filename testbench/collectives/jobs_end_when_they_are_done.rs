//! A run is over when its work is: no alarm of traffic that was stopped, no reduction id without a round, no broadcast to nobody makes it
//! longer (X-JOB-1, K-CLK-2).

use crate::sets;
use crate::support::{pass, refusal, walked};

#[test]
fn traffic_that_was_stopped_leaves_no_alarm_behind() {
    for (engine, rate) in
        ["piuma", "armed", "pbv", "software"].into_iter().flat_map(|engine| [0.001, 0.02].map(|rate| (engine, rate)))
    {
        let text = format!(
            "[topology]\nkind = 'mesh'\nsize = [2]\n[[traffic]]\npattern = 'uniform'\nrate = {rate}\n[[job]]\nengine = '{engine}'\n"
        );
        for seed in 1..4 {
            let document = walked(&text, &sets!["seed={seed}"]);
            let job = document.jobs[0].end_cycle.expect("it ended");
            assert!(
                document.cycles < job + 100,
                "{engine}, {rate}: the job ended in {job}, the run in {}",
                document.cycles
            );
        }
    }
}

#[test]
fn reduction_ids_without_a_round_end_nothing() {
    let text = "[topology]\nkind = 'mesh'\nsize = [4]\n[[job]]\nengine = 'armed'\nelements = 8\n";
    for opening in [true, false] {
        let [one, eight] = [1, 8].map(|ids| {
            let set = sets!["job.0.armed.opening_barrier={opening}"; "job.0.armed.reduction_ids={ids}"];
            pass(text, &set).cycles
        });
        assert!(eight < 2 * one, "with the opening: {opening}; {one} cycles with one id, {eight} with eight");
    }
}

#[test]
fn a_broadcast_to_nobody_is_refused_by_engines() {
    let text = |engine: &str| {
        format!(
            "[topology]\nkind = 'mesh'\nsize = [2]\n[[job]]\nengine = '{engine}'\nkind = 'broadcast'\nparticipants = [0]\n"
        )
    };
    for engine in ["piuma", "pbv"] {
        let error = refusal(&text(engine), &[]);
        assert!(error.contains("nobody receives this broadcast but its source"), "{engine}: {error}");
        assert!(error.contains("expected: at least one participant beside the source"), "{engine}: {error}");
        let other = sets!["job.0.participants=[0, 1]"];
        pass(&text(engine), &other);
    }
    pass(&text("software"), &[]);
}

/// Trees that take turns tell each other by signals to switches that have no end point.
#[test]
fn trees_that_overlap_on_a_fat_tree_take_turns() {
    for (arity, levels) in [(2, 2), (2, 3), (3, 2)] {
        for first in ["reduce", "allreduce", "broadcast"] {
            let text = format!(
                "[topology]\nkind = 'fat-tree'\narity = {arity}\nlevels = {levels}\n[[job]]\nengine = 'piuma'\nkind = '{first}'\n\
                 participants = [3, 0]\nelements = 9\n[[job]]\nengine = 'piuma'\nkind = 'broadcast'\npiuma.id = 1\nelements = 9\n"
            );
            let document = walked(&text, &[]);
            assert!(document.passed(), "{arity}-ary {levels}-tree, {first}: {:?}", document.checks);
        }
    }
}
