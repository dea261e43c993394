//! What a large system costs the operating system: pages that the whole process touches for the first time. They are
//! counted and not timed, so that a busy machine changes nothing.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::root;

/// Pages that a run of so many nodes a side touches first, from the start of the process to its end.
///
/// The allocator gives memory back by the clock; here it keeps what it has.
fn pages(side: u32) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .current_dir(root())
        .env("MIMALLOC_PURGE_DELAY", "-1")
        .args(["run", "allreduce-16384-nodes", "--set", &format!("topology.size=[{side},{side}]")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    // A process that has ended keeps its counts until somebody waits for it: so they are its own, whoever else runs.
    let counts = loop {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("the kernel tells");
        let (_, rest) = text.rsplit_once(") ").expect("the name stands in parentheses");
        if rest.starts_with('Z') {
            break rest.to_owned();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(child.wait().expect("it has ended").success());
    // Fields are counted from 1, and the third comes first behind the name.
    counts.split_whitespace().nth(10 - 3).and_then(|faults| faults.parse().ok()).expect("a number of faults")
}

/// 72 of 4 KiB in a build for tests: 128 cores and 256 switches, of which those on the tree are built. A tenth more is
/// allowed.
#[test]
fn a_node_more_touches_at_most_eighty_pages() {
    let (few, many) = (4, 16);
    let more = pages(many).saturating_sub(pages(few));
    let nodes = u64::from(many * many - few * few);
    assert!(more <= 80 * nodes, "{more} pages for {nodes} nodes, {} a node", more / nodes);
    assert!(more >= 20 * nodes, "{more} pages for {nodes} nodes: were they built?");
}
