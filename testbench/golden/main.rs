//! Does every shipped scenario still give what it gave? Each `testbench/{piuma,armed,pbv,fabric}/NAME.toml` is a test by its being
//! there; `golden/{piuma,armed,pbv,fabric}` holds what is expected of it:
//!
//! | file | what | compared |
//! |---|---|---|
//! | `NAME.json` | result document, long vectors shortened | as text |
//! | `NAME.vcd` | some signals over some cycles ([`watched`]) | `probe::diff`: first time and signal |
//! | `NAME.summary.snap` | what `watershed run` prints | `insta` |
//! | `NAME.wave.snap` | part of the waveform as a picture | `insta` |
//! | `NAME.embed.snap` | what `watershed embed` prints, of trees over several nodes | `insta` |
//! | `NAME.ladder.snap` | the message ladder of those that are small enough ([`watched`]) | `insta` |
//! | `NAME.svg` | the same as a picture, of one | as text |
//!
//! `make golden` prints the differences and accepts what came out; in CI (`CI` is set) nothing is ever accepted.

mod compare;
mod harness_sees_changes;
mod watched;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compare::{Mode, scenario_matches};
use libtest_mimic::{Arguments, Trial};

/// Families whose scenarios have goldens.
const FAMILIES: [&str; 4] = ["piuma", "armed", "pbv", "fabric"];

fn main() -> ExitCode {
    let accept = std::env::var("WATERSHED_GOLDEN").is_ok_and(|word| word == "accept");
    if accept && std::env::var_os("CI").is_some() {
        eprintln!("error: WATERSHED_GOLDEN=accept is refused in CI");
        return ExitCode::FAILURE;
    }
    let mut trials = Vec::new();
    for family in FAMILIES {
        for path in files(&Path::new("testbench").join(family), "toml") {
            let name = stem(&path);
            // Millions of cores are a test of `make soak`, without a golden.
            if name.contains("16384") {
                continue;
            }
            let folder = root().join("golden").join(family);
            let mode = if accept { Mode::Accept } else { Mode::Check };
            trials.push(Trial::test(format!("{family}/{name}"), move || Ok(scenario_matches(&path, &folder, mode)?)));
        }
    }
    if !accept {
        trials.push(Trial::test("no_golden_is_left_over", || Ok(no_golden_is_left_over()?)));
        trials.extend(harness_sees_changes::trials());
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn no_golden_is_left_over() -> Result<(), String> {
    for family in FAMILIES {
        for extension in ["json", "vcd", "snap", "svg"] {
            for golden in files(&Path::new("golden").join(family), extension) {
                let name = stem(&golden);
                let name = name.split('.').next().unwrap_or(&name);
                if !root().join(format!("testbench/{family}/{name}.toml")).exists() {
                    return Err(format!("{} belongs to no scenario: remove it", golden.display()));
                }
            }
        }
    }
    Ok(())
}

/// The root of the project: tests are started there, and paths in messages are relative to it.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files of a folder of the project with this extension, sorted.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| folder.join(entry.file_name()))
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// The name of a file without folder and extension.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
