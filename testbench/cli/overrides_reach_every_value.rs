//! C-RUN-2: any value of a scenario can be set on the command line, and a wrong one is shown there.

use watershed::scenario::config::{Latency, Tree};

use crate::support::{load, watershed};

const SCENARIO: &str = r#"
family = "piuma"

[topology]
kind = "die"

[link]
latency_ns = 5

[[collective]]
kind = "allreduce"
elements = 8
root = "sw4"

[collective.data]
random = "normal"

[[collective]]
kind = "barrier"
id = 1
"#;

#[test]
fn values_of_every_kind_are_set() {
    let loaded = load(
        SCENARIO,
        &[
            "seed=7",
            "name=other",
            "switch.ceng.stages=4",
            "switch.arbiter=matrix",
            "memory.bandwidth_gbps=unlimited",
            "collective.0.elements=64",
            "collective[1].delay_cycles={ random_max = 9 }",
            "collective.0.participants=[0, 1]",
            "wave.signals=[\"a.**\"]",
        ],
    )
    .unwrap();
    let scenario = loaded.scenario;
    assert_eq!(scenario.seed, 7);
    assert_eq!(scenario.name, "other");
    assert_eq!(scenario.switch.ceng.stages, 4);
    assert_eq!(scenario.memory.bandwidth_bps, None);
    assert_eq!(scenario.collectives[0].elements, 64);
    assert_eq!(scenario.collectives[0].participants.list, [0, 1]);
    assert_eq!(scenario.collectives[1].start.random_max, Some(9));
    assert_eq!(scenario.wave.signals, ["a.**"]);
}

#[test]
fn the_later_of_two_wins() {
    let loaded = load(SCENARIO, &["seed=7", "seed=8"]).unwrap();
    assert_eq!(loaded.scenario.seed, 8);
}

#[test]
fn an_override_replaces_the_other_way_to_say_it() {
    let loaded = load(SCENARIO, &["link.latency_cycles=3", "collective.0.data.values=[[1.0, 2.0]]"]);
    // Eight rows of eight are missing now, but nothing clashes with `random` or with `latency_ns`.
    let error = loaded.unwrap_err();
    assert!(!error.contains("cannot both"), "{error}");
    let loaded = load(SCENARIO, &["link.latency_cycles=3"]).unwrap();
    assert_eq!(loaded.scenario.link.latency, Latency { cycles: 3, ns: 3.0 });
    let loaded = load(SCENARIO, &["collective.0.registers.core0.request.I7=[10]"]).unwrap();
    assert!(matches!(loaded.scenario.collectives[0].tree, Tree::Registers(_)));
}

#[test]
fn the_later_of_two_ways_to_say_it_wins() {
    let loaded = load(SCENARIO, &["memory.read_latency_ns=7", "memory.read_latency_cycles=1"]).unwrap();
    assert_eq!(loaded.scenario.memory.read_latency.cycles, 1);
    let loaded = load(SCENARIO, &["memory.read_latency_cycles=1", "memory.read_latency_ns=7"]).unwrap();
    assert_eq!(loaded.scenario.memory.read_latency.cycles, 7);
}

#[test]
fn a_wrong_override_is_shown_as_it_was_typed() {
    let errors: Vec<String> = [
        "switch.ceng.stages=x",
        "switch.ceng.stage=4",
        "swich.ceng.stages=4",
        "collective.2.elements=1",
        "collective.0.participants=[0, 9]",
        "link.latency_ns=-1",
        "seed.x=1",
        "seed",
        "wave.signals=[1",
    ]
    .into_iter()
    .map(|argument| load(SCENARIO, &[argument]).unwrap_err())
    .collect();
    insta::assert_snapshot!(errors.join("\n\n"), @r#"
    error: `switch.ceng.stages` is the string "x"
     --> command line
      |
      | switch.ceng.stages=x
      |                    ^
      = expected: an integer from 1 to 6

    error: unknown key `stage` in `switch.ceng`
     --> command line
      |
      | switch.ceng.stage=4
      |             ^^^^^
      = expected: `stages`, `radix`, `operand_slots`, `scan_slots` or `result_slots`
      = help: did you mean `stages`?

    error: unknown key `swich` at the top level
     --> command line
      |
      | swich.ceng.stages=4
      | ^^^^^
      = expected: `extends`, `name`, `about`, `family`, `seed`, `results`, `clock`, `technology`, `topology`, `routing`, `switch`, `link`, `memory`, `limits`, `checks`, `job`, `collective`, `core`, `multicast`, `program`, `host`, `workload`, `traffic`, `measure`, `wave`, `golden`, `armed` or `pbv`
      = help: did you mean `switch`?

    error: there is no element 2 in this array
     --> command line
      |
      | collective.2.elements=1
      |            ^
      = expected: an index from 0 to 1

    error: there is no end point 9
     --> command line
      |
      | collective.0.participants=[0, 9]
      |                               ^
      = expected: an end point from 0 to 7

    error: `link.latency_ns` is -1, out of range
     --> command line
      |
      | link.latency_ns=-1
      |                 ^^
      = expected: a number from 0 to 1000000000

    error: `seed` is a table
     --> command line
      |
      | seed.x=1
      | ^^^^
      = expected: an integer of 0 or more

    error: `--set` needs a value
     --> command line
      |
      | seed
      | ^^^^
      = expected: PATH=VALUE, for example switch.ceng.stages=4

    error: unclosed array
     --> command line
      |
      | wave.signals=[1
      |                ^
      = expected: `]`
    "#);
}

#[test]
fn the_seed_has_a_flag_of_its_own() {
    let output = watershed(["check", "allreduce-die", "--seed", "99", "--json"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let config: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(config["seed"], 99);
    let output = watershed(["check", "allreduce-die", "--seed", "18446744073709551615"]);
    assert_eq!(output.status, 2);
}
