//! C-RUN-1: the result document is what its schema version promises: these keys, with these types.

use serde_json::Value as Json;
use watershed::scenario::armed::result::Outcomes;
use watershed::scenario::file::job::Engine;
use watershed::scenario::job_result::{HashedResults, JobResult, MinMeanMax};
use watershed::scenario::result::{
    Check, CollectiveResult, Difference, Document, LinkLevel, LinkResult, SCHEMA_VERSION, TrafficResult, Waits, hex,
};
use watershed::scenario::units::Rounding;
use watershed::scenario::{load_file, summary};

use crate::support::root;

/// A document in which nothing is empty.
fn full() -> (watershed::scenario::Loaded, Document) {
    let overrides = ["clock.frequency_mhz=850".to_owned()];
    let loaded = load_file(&root().join("testbench/piuma/allreduce-die.toml"), &overrides).unwrap();
    let mut document = Document::new(&loaded);
    document.cycles = 2620;
    let mut collective = CollectiveResult::new(&loaded.scenario.collectives[0]);
    collective.set_times(&loaded, 10, 2610);
    collective.results = hex(watershed::arith::DType::F64, &[1, 2]);
    collective.oracle.clone_from(&collective.results);
    collective.bit_exact = Some(false);
    collective.exact_elements = 1023;
    collective.flags = vec!["inexact".into()];
    collective.oracle_flags.clone_from(&collective.flags);
    collective.first_difference = Some(Difference {
        element: 7,
        end_point: 3,
        got: "3ff0000000000001".into(),
        expected: "3ff0000000000000".into(),
        ulps: Some(1),
        node: "sw4".into(),
    });
    document.collectives.push(collective);
    document.jobs.push(JobResult {
        name: "sum".into(),
        engine: Engine::Piuma,
        kind: "allreduce".into(),
        op: Some("sum".into()),
        dtype: Some("f64".into()),
        participants: 8,
        elements: 1024,
        rounds: 1,
        outcomes: Outcomes { silent: 1, ..Outcomes::default() },
        start_cycle: Some(20),
        end_cycle: Some(2620),
        latency_cycles: Some(2600),
        latency_ns: Some(3058.824),
        elements_per_cycle: Some(0.394),
        round_latency_cycles: Some(MinMeanMax::of_one(2600)),
        bit_exact: Some(false),
        results: Some(HashedResults {
            rows: 8,
            elements: 1024,
            element_bytes: 8,
            first: vec!["3ff0000000000000".into()],
            sha256: "66840dda154e8a113c31dd0ad32f7f3a366a80e8136979d8f5a101d3d29d6f72".into(),
        }),
        details: "collectives.0".into(),
    });
    let link = LinkResult {
        name: "core0.P5 -> sw0.P6".into(),
        level: "inter-tile".into(),
        flits: 1024,
        head_wait_cycles: 3,
        waits: [("no_credit".to_owned(), 3)].into(),
        utilisation: 0.391,
        packets: None,
    };
    document.links.levels.push(LinkLevel {
        level: "inter-tile".into(),
        links: 48,
        flits: 4096,
        utilisation_mean: 0.1,
        utilisation_max: 0.391,
    });
    document.links.waits = Some(Waits {
        links: [("no_credit".to_owned(), 3)].into(),
        engines: [("operands_missing".to_owned(), 5)].into(),
        blocks: [("memory".to_owned(), 7)].into(),
    });
    document.links.busiest.push(link.clone());
    document.links.all = Some(vec![LinkResult { packets: Some(1024), ..link }]);
    document.traffic.push(TrafficResult {
        name: "others".into(),
        offered: 0.95,
        accepted: 0.949,
        packets: 9500,
        mean_latency_cycles: Some(12.5),
        max_latency_cycles: Some(40),
        latency: None,
    });
    document.checks.push(Check::passed("credits", "42 links"));
    document.checks.push(Check::failed("oracle", "sum differs\nin element 7"));
    document.derive("example", 1);
    (loaded, document)
}

/// Paths and types, one a line; of arrays the first element; nothing inside the configuration.
fn shape(value: &Json, path: &str, out: &mut Vec<String>) {
    let kind = match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    out.push(format!("{path}: {kind}"));
    match value {
        Json::Object(object) if path != "config" => {
            for (key, value) in object {
                shape(value, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, out);
            }
        }
        Json::Array(items) => {
            if let Some(first) = items.first() {
                shape(first, &format!("{path}[]"), out);
            }
        }
        _ => {}
    }
}

/// What is said of links, or all the rest.
fn lines(document: &Document, links: bool) -> String {
    let mut lines = Vec::new();
    shape(&serde_json::to_value(document).unwrap(), "", &mut lines);
    lines.retain(|line| line.starts_with("links") == links);
    lines.join("\n")
}

#[test]
fn keys_and_types_of_links_are_those_of_the_version() {
    let (_, document) = full();
    insta::assert_snapshot!(lines(&document, true), @"
    links: object
    links.levels: array
    links.levels[]: object
    links.levels[].level: string
    links.levels[].links: integer
    links.levels[].flits: integer
    links.levels[].utilisation_mean: number
    links.levels[].utilisation_max: number
    links.waits: object
    links.waits.links: object
    links.waits.links.no_credit: integer
    links.waits.engines: object
    links.waits.engines.operands_missing: integer
    links.waits.blocks: object
    links.waits.blocks.memory: integer
    links.busiest: array
    links.busiest[]: object
    links.busiest[].name: string
    links.busiest[].level: string
    links.busiest[].flits: integer
    links.busiest[].head_wait_cycles: integer
    links.busiest[].waits: object
    links.busiest[].waits.no_credit: integer
    links.busiest[].utilisation: number
    links.all: array
    links.all[]: object
    links.all[].name: string
    links.all[].level: string
    links.all[].flits: integer
    links.all[].head_wait_cycles: integer
    links.all[].waits: object
    links.all[].waits.no_credit: integer
    links.all[].utilisation: number
    links.all[].packets: integer
    ");
}

/// Keys of a document and their types: those of `jobs`, or all others.
fn keys(of_jobs: bool) -> String {
    let (_, document) = full();
    let all = lines(&document, false);
    all.lines().filter(|line| line.starts_with("jobs") == of_jobs).collect::<Vec<_>>().join("\n")
}

#[test]
fn keys_and_types_of_jobs_are_those_of_the_version() {
    insta::assert_snapshot!(keys(true), @"
    jobs: array
    jobs[]: object
    jobs[].name: string
    jobs[].engine: string
    jobs[].kind: string
    jobs[].op: string
    jobs[].dtype: string
    jobs[].participants: integer
    jobs[].elements: integer
    jobs[].rounds: integer
    jobs[].outcomes: object
    jobs[].outcomes.complete: integer
    jobs[].outcomes.after_retry: integer
    jobs[].outcomes.incomplete: integer
    jobs[].outcomes.silent: integer
    jobs[].outcomes.open: integer
    jobs[].start_cycle: integer
    jobs[].end_cycle: integer
    jobs[].latency_cycles: integer
    jobs[].latency_ns: number
    jobs[].elements_per_cycle: number
    jobs[].round_latency_cycles: object
    jobs[].round_latency_cycles.min: integer
    jobs[].round_latency_cycles.mean: number
    jobs[].round_latency_cycles.max: integer
    jobs[].bit_exact: boolean
    jobs[].results: object
    jobs[].results.rows: integer
    jobs[].results.elements: integer
    jobs[].results.element_bytes: integer
    jobs[].results.first: array
    jobs[].results.first[]: string
    jobs[].results.sha256: string
    jobs[].details: string
    ");
}

#[test]
fn keys_and_types_are_those_of_the_version() {
    assert_eq!(full().1.schema_version, SCHEMA_VERSION);
    insta::assert_snapshot!(keys(false), @"
    : object
    schema_version: integer
    stamp: object
    stamp.program: string
    stamp.version: string
    stamp.commit: string
    stamp.scenario: string
    stamp.config_hash: string
    stamp.overrides: array
    stamp.overrides[]: string
    stamp.seed: integer
    outcome: string
    cycles: integer
    collectives: array
    collectives[]: object
    collectives[].name: string
    collectives[].kind: string
    collectives[].id: integer
    collectives[].op: string
    collectives[].dtype: string
    collectives[].participants: integer
    collectives[].elements: integer
    collectives[].start_cycle: integer
    collectives[].end_cycle: integer
    collectives[].latency_cycles: integer
    collectives[].latency_ns: number
    collectives[].elements_per_cycle: number
    collectives[].result: array
    collectives[].result[]: string
    collectives[].oracle: array
    collectives[].oracle[]: string
    collectives[].bit_exact: boolean
    collectives[].exact_elements: integer
    collectives[].flags: array
    collectives[].flags[]: string
    collectives[].oracle_flags: array
    collectives[].oracle_flags[]: string
    collectives[].first_difference: object
    collectives[].first_difference.element: integer
    collectives[].first_difference.end_point: integer
    collectives[].first_difference.got: string
    collectives[].first_difference.expected: string
    collectives[].first_difference.ulps: integer
    collectives[].first_difference.node: string
    traffic: array
    traffic[]: object
    traffic[].name: string
    traffic[].offered: number
    traffic[].accepted: number
    traffic[].packets: integer
    traffic[].mean_latency_cycles: number
    traffic[].max_latency_cycles: integer
    checks: array
    checks[]: object
    checks[].name: string
    checks[].passed: boolean
    checks[].detail: string
    roundings: array
    roundings[]: object
    roundings[].key: string
    roundings[].given_ns: number
    roundings[].cycles: integer
    roundings[].effective_ns: number
    config: object
    scenario: object
    scenario.base: string
    scenario.lines: array
    scenario.lines[]: string
    ");
}

#[test]
fn a_document_is_read_back_as_it_was() {
    let (_, document) = full();
    let text = serde_json::to_string(&document).unwrap();
    assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document);
}

#[test]
fn fields_that_later_versions_add_do_not_hurt() {
    let (_, document) = full();
    let mut value = serde_json::to_value(&document).unwrap();
    value["added_later"] = Json::Bool(true);
    assert_eq!(serde_json::from_value::<Document>(value).unwrap(), document);
}

#[test]
fn the_summary_says_it_in_a_dozen_lines() {
    let (loaded, document) = full();
    let written = [summary::WrittenFile::new("result", "out/allreduce-die.json".into())];
    insta::assert_snapshot!(summary::text(&loaded.scenario, &document, &written), @"
    allreduce-die  die of 4 tiles x 4 switches, 8 cores, 850 MHz, 2620 cycles, seed 1
    sum            allreduce (sum) of 1024 f64 elements over 8 cores
                   2600 cycles = 3058.824 ns, 0.394 elements per cycle
                   bit-exact: NO (1023 of 1024), flags: inexact
                   first difference: element 7 at end point 3: 3ff0000000000001 instead of 3ff0000000000000, 1 ulp apart; they part at sw4
    SHA-256        sum: 66840dda154e8a113c31dd0ad32f7f3a366a80e8136979d8f5a101d3d29d6f72 of 8 x 1024 elements
    traffic others offered 0.950, accepted 0.949 flits a cycle, 9500 packets, latency 12.5 cycles on average, 40 at most
    busiest link   core0.P5 -> sw0.P6 (inter-tile): 1024 flits, busy 39.1 % of the time, 3 head-wait cycles
    head waits     3 cycles before links: 100.0 % no credit
                   5 cycles before engines: 100.0 % operands missing
    rounded        link.latency_ns = 5 ns is rounded up to 5 cycles = 5.882 ns
    checks         1 passed: credits
    CHECK FAILED   oracle: sum differs
                   in element 7
    result         out/allreduce-die.json
    ");
}

#[test]
fn roundings_are_in_the_document() {
    let (_, document) = full();
    let expected = Rounding { key: "link.latency_ns".into(), given_ns: 5.0, cycles: 5, effective_ns: 5e9 / 850e6 };
    assert_eq!(document.roundings, [expected]);
}
