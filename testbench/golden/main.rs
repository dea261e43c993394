//! Does every shipped scenario still give what it gave? Each `testbench/{piuma,armed,pbv,fabric,mixed}/NAME.toml` is a test by its being
//! there, and `golden/{piuma,armed,pbv,fabric,mixed}` holds what is expected of it: the same as
//! `watershed test testbench/piuma --golden golden/piuma` for every family, a test each. What the files hold is said in
//! `watershed::study::snapshot`; what is looked at in a scenario's own `[golden]`.
//!
//! `make golden` prints the differences and accepts what came out; in CI (`CI` is set) nothing is ever accepted.

mod harness_sees_changes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use watershed::study::snapshot::{self, FoundTests, Mode, Test};

/// Families whose scenarios have goldens.
const FAMILIES: [&str; 5] = ["piuma", "armed", "pbv", "fabric", "mixed"];

/// The largest golden waveform of ours: more than this nobody reviews.
const MOST_WAVE_BYTES: u64 = 50_000;

fn main() -> ExitCode {
    let accept = std::env::var("WATERSHED_GOLDEN").is_ok_and(|word| word == "accept");
    if accept && std::env::var_os("CI").is_some() {
        eprintln!("error: WATERSHED_GOLDEN=accept is refused in CI");
        return ExitCode::FAILURE;
    }
    let mode = if accept { Mode::Accept } else { Mode::Check };
    let mut trials = Vec::new();
    for family in FAMILIES {
        let found = scenarios(family);
        for test in found.tests {
            let name = format!("{family}/{}", test.stem());
            trials.push(Trial::test(name, move || Ok(scenario_matches(&test, mode)?)));
        }
    }
    if !accept {
        trials.push(Trial::test("no_golden_is_left_over", || Ok(no_golden_is_left_over()?)));
        trials.push(Trial::test("golden_waves_are_small", || Ok(golden_waves_are_small()?)));
        trials.push(Trial::test("exemplars_have_every_family_kind_and_topology", || Ok(exemplars_have_everything()?)));
        trials.extend(harness_sees_changes::trials());
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The scenarios of a family. Tests are started in the root of the project, and paths in messages are relative to it.
fn scenarios(family: &str) -> FoundTests {
    let goldens = Path::new("golden").join(family);
    snapshot::find(&[Path::new("testbench").join(family)], Some(&goldens)).expect("the folders are there")
}

/// All differences are in the error.
fn scenario_matches(test: &Test, mode: Mode) -> Result<(), String> {
    let outcome = snapshot::check(watershed::scenario::ENGINES, test, mode);
    let text = outcome.text();
    if outcome.accepted && !text.is_empty() {
        println!("{text}");
    }
    if outcome.passed() { Ok(()) } else { Err(format!("{text}(`make golden` accepts what differs)")) }
}

fn no_golden_is_left_over() -> Result<(), String> {
    let strays: Vec<PathBuf> = FAMILIES.iter().flat_map(|family| scenarios(family).strays).collect();
    if strays.is_empty() { Ok(()) } else { Err(format!("golden files that belong to no scenario: {strays:?}")) }
}

fn golden_waves_are_small() -> Result<(), String> {
    for folder in FAMILIES.map(|family| Path::new("golden").join(family)) {
        let entries = std::fs::read_dir(root().join(folder)).map_err(|error| error.to_string())?;
        let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "vcd")) {
            let size = path.metadata().map_err(|error| error.to_string())?.len();
            if size > MOST_WAVE_BYTES {
                return Err(format!("{}: {size} bytes; look at fewer signals or cycles", path.display()));
            }
        }
    }
    Ok(())
}

/// A few scenarios are kept whole, with document and wave, and reviewed; of the others only the summary. The few have everything
/// between them.
fn exemplars_have_everything() -> Result<(), String> {
    let (mut shipped, mut kept, mut exemplars) = (BTreeSet::new(), BTreeSet::new(), 0);
    for test in FAMILIES.iter().flat_map(|family| scenarios(family).tests) {
        let text = std::fs::read_to_string(root().join(&test.scenario)).map_err(|error| error.to_string())?;
        let has = what_it_has(&text.parse().map_err(|error| format!("{}: {error}", test.scenario.display()))?);
        let golden = |end: &str| root().join(&test.goldens).join(format!("{}.{end}", test.stem())).exists();
        if golden("json") && golden("vcd") {
            exemplars += 1;
            kept.extend(has.clone());
        }
        shipped.extend(has);
    }
    let missing: Vec<_> = shipped.difference(&kept).collect();
    match exemplars {
        _ if !missing.is_empty() => Err(format!("no exemplar has {missing:?}")),
        20..=40 => Ok(()),
        _ => Err(format!("{exemplars} documents are too many to review, or too few to show anything")),
    }
}

/// The family, the topology, and engine and kind of every job.
fn what_it_has(scenario: &toml::Table) -> BTreeSet<(&'static str, String)> {
    let word = |table: &toml::Table, key: &str| table.get(key).and_then(|value| value.as_str()).map(str::to_owned);
    let mut has = BTreeSet::new();
    has.extend(word(scenario, "family").map(|family| ("family", family)));
    let topology = scenario.get("topology").and_then(|value| value.as_table());
    has.extend(topology.and_then(|table| word(table, "kind")).map(|kind| ("topology", kind)));
    for job in
        scenario.get("job").and_then(|value| value.as_array()).into_iter().flatten().filter_map(|job| job.as_table())
    {
        has.extend(word(job, "engine").map(|engine| ("engine", engine)));
        has.insert(("kind", word(job, "kind").unwrap_or_else(|| "allreduce".into())));
    }
    has
}

/// The root of the project: tests are started there.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
