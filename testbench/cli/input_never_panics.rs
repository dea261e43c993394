//! C-ERR-1: whatever a scenario says, the answer is a configuration or an error.

use std::sync::LazyLock;

use proptest::prelude::*;

use crate::share;
use crate::support::{load, small};

/// The texts of shipped scenarios, and of those that are wrong.
static SHIPPED: LazyLock<Vec<String>> = LazyLock::new(|| {
    ["testbench/piuma", "testbench/armed", "testbench/fabric", "testbench/bad"]
        .iter()
        .flat_map(|folder| small(folder))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
});

/// Keys of all families.
const KEYS: &[&str] = &[
    "seed",
    "clock.frequency_mhz",
    "topology.kind",
    "topology.size",
    "topology.tiles",
    "switch.ceng.radix",
    "link.latency_ns",
    "memory.bandwidth_gbps",
    "collective.0.elements",
    "collective.0.participants",
    "collective.0.delay_cycles",
    "collective.0.data.values",
    "collective.0.data.file",
    "collective.0.registers",
    "traffic",
    "wave.signals",
    "collective.0.root",
    "topology.branching",
    "topology.roots",
    "armed.engine",
    "armed.engine.timeouts_1024_cycles",
    "armed.reduction.0.compute_cycles",
    "armed.reduction.0.participants",
    "armed.reduction.0.late",
    "armed.reduction.0.data.values",
    "armed.fault.0.at",
    "armed.ethernet",
    "armed.stranger",
];

/// Pieces that mean something in a scenario, in the wrong places.
const PIECES: &[&str] = &[
    "-1",
    "0",
    "1e400",
    "nan",
    "\"\"",
    "\"all\"",
    "[]",
    "[[]]",
    "{}",
    "{ random_max = 18446744073709551615 }",
    "true",
    "99999999999999999999999",
    "1979-05-27",
    "\"0x\"",
    "\"auto\"",
    "[1000000000, 1000000000, 1000000000]",
    "\u{0}",
    "\"\u{1F600}\"",
    "=",
    "[",
    "]",
    "\n",
    "\"",
    "'''",
    "#",
    ".",
    "_",
    "é",
];

#[test]
fn of_depths_without_end() {
    let deep = 100_000;
    for text in [
        format!("x = {}", "[".repeat(deep)),
        format!("x = {}{}", "[".repeat(deep), "]".repeat(deep)),
        format!("x = {}1{}", "{a=".repeat(deep), "}".repeat(deep)),
        format!("{}a = 1", "a.".repeat(deep)),
        format!("[{}a]", "a.".repeat(deep)),
    ] {
        assert!(load(&text, &[]).unwrap_err().contains("nested too deeply"));
    }
    let path = format!("{}a=1", "a.".repeat(deep));
    assert!(load("", &[&path]).unwrap_err().contains("the path has 100001 steps"));
    assert!(load("", &[&format!("a={}", "[".repeat(deep))]).unwrap_err().contains("nested too deeply"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn of_a_value_replaced_by_another(
        scenario in prop::sample::select(SHIPPED.clone()),
        line: prop::sample::Index,
        piece in prop::sample::select(PIECES.to_vec()),
    ) {
        let mut lines: Vec<String> = scenario.lines().map(str::to_owned).collect();
        let at = line.index(lines.len());
        let key = lines[at].split('=').next().unwrap_or("").to_owned();
        lines[at] = format!("{key}= {piece}");
        let _ = load(&lines.join("\n"), &[]);
    }

    #[test]
    fn of_a_piece_anywhere(
        scenario in prop::sample::select(SHIPPED.clone()),
        at: prop::sample::Index,
        cut in 0usize..20,
        piece in prop::sample::select(PIECES.to_vec()),
    ) {
        let mut text: Vec<char> = scenario.chars().collect();
        let at = at.index(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, piece.chars());
        let text: String = text.into_iter().collect();
        let _ = load(&text, &[]);
    }

    #[test]
    fn of_any_override(path in "[a-z_.0-9\\[\\]\"=]{0,30}", value in "\\PC{0,20}") {
        let _ = load(&SHIPPED[0], &[&format!("{path}={value}")]);
        let _ = load(&SHIPPED[0], &[&value]);
    }

    /// One scenario in 48 in `make test`, one in eight in `make soak`.
    #[test]
    fn of_any_value_at_a_known_key(
        key in prop::sample::select(KEYS.to_vec()),
        piece in prop::sample::select(PIECES.to_vec()),
        first in 0usize..48,
    ) {
        let step = if share::is_whole() { 8 } else { 48 };
        for scenario in SHIPPED.iter().skip(first % step).step_by(step) {
            let _ = load(scenario, &[&format!("{key}={piece}")]);
        }
    }
}

#[test]
#[ignore = "takes minutes: make soak"]
fn of_every_value_at_every_known_key() {
    let scenarios = &*SHIPPED;
    for (key, piece) in KEYS.iter().flat_map(|key| PIECES.iter().map(move |piece| (key, piece))) {
        for scenario in scenarios {
            let _ = load(scenario, &[&format!("{key}={piece}")]);
        }
    }
}
