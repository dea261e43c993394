//! W-VCD-2: globs, depth and window choose what is written, and what is not chosen is not touched.

use std::cell::Cell;

use watershed::probe::{Scope, Selection, TraceError};

use crate::support::{Block, Read, mhz, small_run, tracer};

fn names(selection: Selection) -> Vec<String> {
    Read::new(small_run(mhz(1000), selection).bytes()).names()
}

fn globs(globs: &[&str]) -> Selection {
    Selection::new(globs).unwrap()
}

#[test]
fn globs_choose_signals() {
    assert_eq!(
        names(globs(&["**.head", "die0.*.engine.state"])),
        ["die0.tile1.engine.state", "die0.tile1.engine.in0.head", "die0.tile1.engine.in1.head"]
    );
    assert_eq!(names(globs(&["**.in[1-9].**"])), ["die0.tile1.engine.in1.head", "die0.tile1.engine.in1.full"]);
    assert_eq!(names(globs(&[])).len(), 8, "no glob selects all");
}

#[test]
fn depth_counts_scopes() {
    let shallow = Selection::default().with_depth(3).unwrap();
    assert_eq!(names(shallow), ["die0.tile1.engine.state", "die0.tile1.engine.busy", "die0.tile1.engine.count"]);
}

#[test]
fn values_of_selected_signals_do_not_depend_on_the_selection() {
    let mut all = Read::new(small_run(mhz(1000), Selection::default()).bytes());
    let mut few = Read::new(small_run(mhz(1000), globs(&["**.in1.head", "**.out.*"])).bytes());
    for name in ["die0.tile1.engine.in1.head", "die0.tile1.engine.out.flit"] {
        for time in (0..15_000).step_by(500) {
            assert_eq!(all.bits(name, time), few.bits(name, time), "{name} at {time}");
        }
    }
}

#[test]
fn the_window_cuts_and_begins_with_true_values() {
    let whole = small_run(mhz(1000), Selection::default());
    let window = Selection::default().with_window(4, Some(6)).unwrap();
    let part = small_run(mhz(1000), window);
    let (mut whole, mut part) = (Read::new(whole.bytes()), Read::new(part.bytes()));
    assert_eq!(part.times(), [4000, 5000, 6000, 7000]);
    for name in part.names() {
        for time in [4000, 4999, 5000, 6000, 6999] {
            assert_eq!(whole.bits(&name, time), part.bits(&name, time), "{name} at {time}");
        }
    }
}

#[test]
fn a_window_may_lie_between_samples_or_behind_the_run() {
    let run = |from, to| {
        let (mut tracer, file) = tracer(mhz(1000), Selection::default().with_window(from, to).unwrap());
        let mut block = Block::default();
        let node = tracer.declare("b", |s| block.probe(s)).unwrap();
        tracer.start().unwrap();
        for cycle in [2, 10] {
            block.count = cycle;
            tracer.sample(node, cycle, |s| block.probe(s));
        }
        let summary = tracer.finish(20).unwrap();
        (summary, file)
    };
    let (summary, file) = run(5, Some(7));
    assert!(summary.window_reached);
    assert_eq!(summary.changes, 0);
    let mut read = Read::new(file.bytes());
    assert_eq!(read.times(), [5000, 8000]);
    assert_eq!(read.number("b.count", 5000), 2);

    let (summary, file) = run(12, None);
    assert!(summary.window_reached);
    assert_eq!(Read::new(file.bytes()).number("b.count", 12_000), 10);

    let (summary, _) = run(21, None);
    assert!(!summary.window_reached);
}

#[test]
fn a_selection_of_nothing_names_what_is_near() {
    let error = |selection: Selection| {
        let (mut tracer, _) = tracer(mhz(1000), selection);
        let block = Block::default();
        for tile in 0..16 {
            assert!(tracer.declare(&format!("die0.tile{tile}.engine"), |s| block.probe(s)).is_none());
        }
        match tracer.start() {
            Err(TraceError::NothingSelected(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let errors = [
        error(globs(&["die0.tile3.engin.**"])),
        error(globs(&["die0.tile3.engine"])),
        error(globs(&["**.heads", "**.in16.full"])),
        error(globs(&["die0.tile12.engine.cuont"])),
        error(globs(&["something.else"])),
        error(globs(&["**.head"]).with_depth(3).unwrap()),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r"
    no signal matches `die0.tile3.engin.**`; did you mean `die0.tile3.engine.**`?
    no signal matches `die0.tile3.engine`; did you mean `die0.tile3.engine.**`?
    no signal matches `**.heads`, `**.in16.full`; did you mean `**.head` or `**.in1.full`?
    no signal matches `die0.tile12.engine.cuont`; did you mean `die0.tile12.engine.count`?
    no signal matches `something.else`; there is, for example, `die0.tile0.engine.busy`, `die0.tile0.engine.count`, `die0.tile0.engine.in0.full`
    no signal matches `**.head` within depth 3: 32 signals match, all of them deeper
    ");
}

#[test]
fn globs_that_match_nothing_beside_others_are_reported() {
    let (mut tracer, _) = tracer(mhz(1000), globs(&["**.state", "**.sate"]));
    tracer.declare("b", |s| Block::default().probe(s)).unwrap();
    tracer.start().unwrap();
    let unmatched = tracer.finish(1).unwrap().unmatched_globs;
    assert_eq!(unmatched.iter().flat_map(|of| &of.globs).collect::<Vec<_>>(), ["**.sate"]);
}

/// Counts how often its parts are visited.
#[derive(Default)]
struct Counted {
    scopes: [Cell<u32>; 3],
    inner: Cell<u32>,
}

impl Counted {
    fn probe(&self, s: &mut Scope<'_>) {
        s.bit("top", true);
        for port in 0..3 {
            s.indexed("in", port, |s| {
                self.scopes[port].set(self.scopes[port].get() + 1);
                s.bit("valid", true);
                s.scope("queue", |s| {
                    self.inner.set(self.inner.get() + 1);
                    s.bits("level", 4, 3);
                });
            });
        }
    }

    fn visits(&self) -> ([u32; 3], u32) {
        ([0, 1, 2].map(|port| self.scopes[port].take()), self.inner.take())
    }
}

#[test]
fn pruned_scopes_are_not_visited() {
    let (mut tracer, _) = tracer(mhz(1000), globs(&["a.in1.valid"]));
    let block = Counted::default();
    let node = tracer.declare("a", |s| block.probe(s)).unwrap();
    block.visits();
    assert!(tracer.declare("b", |s| block.probe(s)).is_none());
    assert_eq!(block.visits(), ([0; 3], 0), "nothing of `b` can match, so it is not visited at all");
    tracer.start().unwrap();
    for cycle in 1..=5 {
        tracer.sample(node, cycle, |s| block.probe(s));
    }
    assert_eq!(block.visits(), ([0, 5, 0], 0));
    assert_eq!(tracer.finish(5).unwrap().signals, 1);
}

#[test]
fn after_the_window_nothing_is_visited() {
    let (mut tracer, _) = tracer(mhz(1000), Selection::default().with_window(0, Some(2)).unwrap());
    let block = Counted::default();
    let node = tracer.declare("a", |s| block.probe(s)).unwrap();
    tracer.start().unwrap();
    block.visits();
    for cycle in 1..=9 {
        assert_eq!(tracer.is_over(cycle), cycle > 2);
        tracer.sample(node, cycle, |s| block.probe(s));
    }
    assert_eq!(block.visits(), ([2; 3], 6));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "it must call the same signals in the same order every time")]
fn a_probe_that_changes_its_signals_is_caught() {
    let (mut tracer, _) = tracer(mhz(1000), Selection::default());
    let node = tracer.declare("a", |s| s.bit("one", true)).unwrap();
    tracer.start().unwrap();
    tracer.sample(node, 1, |s| s.bit("other", true));
}

/// Details are written if a glob with a name in it selects them, and what only `**` matches is not even visited.
#[test]
fn details_are_selected_by_name() {
    let written = |globs: &[&str]| {
        let (mut tracer, file) = tracer(mhz(1000), Selection::new(globs).unwrap());
        let wanted = tracer.wants_details("die.engine.tree");
        tracer.declare("die.engine", |s| s.bit("busy", true));
        let mut visited = false;
        tracer.declare_details("die.engine", |s| {
            s.scope("tree", |s| {
                visited = true;
                s.bit("valid", true);
            });
        });
        tracer.start().unwrap();
        tracer.finish(1).unwrap();
        let names = Read::new(file.bytes()).names();
        assert!(wanted || !names.iter().any(|name| name.contains("tree")), "{globs:?}");
        (names, wanted || visited)
    };
    let (busy, tree) = ("die.engine.busy".to_owned(), "die.engine.tree.valid".to_owned());
    assert_eq!(written(&[]), (vec![busy.clone()], false));
    assert_eq!(written(&["**"]), (vec![busy.clone()], false));
    assert_eq!(written(&["die.engine.*"]), (vec![busy.clone()], false), "a glob that ends with the scope's name");
    assert_eq!(written(&["**.busy"]).0, vec![busy.clone()]);
    assert_eq!(written(&["**", "**.tree.*"]), (vec![busy.clone(), tree.clone()], true));
    assert_eq!(written(&["die.**"]), (vec![busy, tree.clone()], true));
    assert_eq!(written(&["die.engine.tree.valid"]), (vec![tree], true));
}
