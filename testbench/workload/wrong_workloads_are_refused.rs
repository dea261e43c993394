//! What cannot run is refused before cycle 0, at its place in the scenario (X-WORK-5).

use crate::support::{Goal, load, mesh};

#[test]
fn keys_and_values_are_pointed_at() {
    let goal = Goal::new(&["calc 5", "calc 6"]);
    for (keys, words) in [
        ("engine.allreduce = \"network\"", "a plain fabric has no engines"),
        ("engine.alltoall = \"ring\"", "\"ring\" cannot compute alltoall"),
        ("engine.allreduce = \"rings\"", "rings"),
        ("participants = [0, 1, 2]", "3 end points for 2 ranks"),
        ("participants = [0, 9]", "9"),
        ("packet_words = 0", "packet_words"),
        ("overhead = 3", "overhead"),
        ("op = \"barrier\"", "reduces nothing"),
        ("compute_scale = -1", "compute_scale"),
    ] {
        let error = load(&goal.on_mesh(keys), &[]).unwrap_err();
        assert!(error.contains(words) && error.contains('^'), "{keys}\n{error}");
    }
}

#[test]
fn a_trace_must_fit_the_system() {
    let error = load(&mesh("[2, 2]", "trace = \"traces/loggopsim/binary_tree_32.goal\""), &[]).unwrap_err();
    assert!(error.contains("the trace has 32 ranks, and there are 4 end points"), "{error}");
    let error = load(&mesh("[2, 2]", "trace = \"traces/none\""), &[]).unwrap_err();
    assert!(error.contains("= help: in ") && error.contains("traces/none"), "{error}");
    let goal = Goal::new(&["a: send 8b to 1", "b: calc 5"]);
    let error = load(&goal.on_mesh(""), &[]).unwrap_err();
    assert!(error.contains("rank 0, line 3 \"a\": nobody receives it") && error.contains("t.goal:3"), "{error}");
}
