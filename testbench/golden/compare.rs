//! Running a scenario and comparing what comes out with its goldens.

use std::fmt::Write;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value as Json;
use watershed::probe::Selection;
use watershed::probe::ascii::{self, draw};
use watershed::probe::diff::{DiffOptions, diff};
use watershed::scenario::embedding::{self, Embedding};
use watershed::scenario::run::{RunOptions, WaveOptions, run};
use watershed::scenario::{load_file, summary};

use crate::watched::watched;

/// What to do with a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is an error.
    Check,
    /// Print it, then make what came out the golden.
    Accept,
}

/// Elements at either end of a long vector that stand in a golden.
const SHOWN: usize = 4;

/// The largest golden waveform: more than this nobody reviews.
const MOST_WAVE_BYTES: u64 = 50_000;

/// Runs a scenario and compares everything with the goldens in `folder`; all differences are in the error.
pub fn scenario_matches(scenario: &Path, folder: &Path, mode: Mode) -> Result<(), String> {
    let name = crate::stem(scenario);
    let loaded = load_file(scenario, &[]).map_err(|problems| problems.to_string())?;
    let watched = watched(&loaded.scenario);
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let wave = WaveOptions {
        path: scratch.path().join(format!("{name}.vcd")),
        signals: watched.signals.clone(),
        depth: None,
        from_cycle: watched.cycles.0,
        to_cycle: Some(watched.cycles.1),
        clock: false,
        trigger: None,
        only_failed: false,
    };
    let options = RunOptions { wave: Some(&wave), ladder: watched.ladder, ..RunOptions::default() };
    let result = run(&loaded, &options).map_err(|error| error.to_string())?;
    let document = result.document;

    let mut differences = String::new();
    let mut note = |what: Result<(), String>| {
        if let Err(text) = what {
            let _ = writeln!(differences, "{}", text.trim_end());
        }
    };
    if !document.passed() {
        note(Err(format!("{name} fails its own checks:\n{}", summary::text(&loaded.scenario, &document, &[]))));
    }
    let json = serde_json::to_value(&document).map_err(|error| error.to_string())?;
    note(text_matches(&folder.join(format!("{name}.json")), &compact(&reviewable(json)), mode));
    note(wave_matches(&folder.join(format!("{name}.vcd")), &wave.path, mode));
    note(snapshot_matches(folder, &format!("{name}.summary"), &summary::text(&loaded.scenario, &document, &[])));
    if watched.embedding {
        let shown: Vec<String> =
            embedding::all(&loaded).map_err(|problems| problems.to_string())?.iter().map(Embedding::text).collect();
        note(snapshot_matches(folder, &format!("{name}.embed"), &shown.join("\n")));
    }
    if let Some(ladder) = &result.ladder {
        note(snapshot_matches(folder, &format!("{name}.ladder"), &ladder.text()));
        if name == "fig3-ladder" {
            note(text_matches(&folder.join(format!("{name}.svg")), &ladder.svg(), mode));
        }
    }
    let selection = Selection::new(&watched.picture).map_err(|error| error.to_string())?;
    let selection = selection.with_window(watched.picture_cycles.0, Some(watched.picture_cycles.1));
    let options = ascii::Options { selection: selection.map_err(|error| error.to_string())?, ..Default::default() };
    let picture = draw(&wave.path, &options).map_err(|error| error.to_string())?;
    note(snapshot_matches(folder, &format!("{name}.wave"), &picture));

    match mode {
        _ if differences.is_empty() => Ok(()),
        Mode::Accept => {
            println!("{differences}");
            Ok(())
        }
        Mode::Check => Err(format!("{differences}(`make golden` accepts this)")),
    }
}

// ------------------------------------------------------------------------------------------------ result documents

/// The document without what changes from commit to commit, and with long vectors shortened: their first and last
/// elements, their length, and a digest beside them.
pub fn reviewable(mut document: Json) -> Json {
    // The scenario is beside the golden already; that a document holds it whole is tested by replay.
    if let Some(document) = document.as_object_mut() {
        document.shift_remove("scenario");
    }
    if let Some(stamp) = document["stamp"].as_object_mut() {
        stamp.shift_remove("commit");
        stamp.shift_remove("version");
    }
    for collective in document["collectives"].as_array_mut().into_iter().flatten() {
        for vector in ["results", "oracle"] {
            let Some(elements) = collective[vector].as_array() else { continue };
            if elements.len() <= 2 * SHOWN {
                continue;
            }
            let words = elements.iter().filter_map(Json::as_str).flat_map(str::bytes);
            let digest = words
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            collective[vector] = serde_json::json!({
                "elements": elements.len(),
                "first": elements[..SHOWN],
                "last": elements[elements.len() - SHOWN..],
                "fnv1a": format!("{digest:016x}"),
            });
        }
    }
    document
}

/// JSON in which whatever fits into a line stands in a line.
fn compact(value: &Json) -> String {
    let mut out = String::new();
    write_compact(&mut out, value, 0, 0);
    out.push('\n');
    out
}

fn write_compact(out: &mut String, value: &Json, indent: usize, used: usize) {
    let line = one_line(value);
    if indent + used + line.len() <= 118 && !matches!(value, Json::Object(_) if indent == 0) {
        out.push_str(&line);
        return;
    }
    let inner = indent + 2;
    let (open, close, entries): (_, _, Vec<(String, &Json)>) = match value {
        Json::Object(object) => ('{', '}', object.iter().map(|(key, value)| (format!("{key:?}: "), value)).collect()),
        Json::Array(items) => ('[', ']', items.iter().map(|item| (String::new(), item)).collect()),
        _ => return out.push_str(&line),
    };
    out.push(open);
    for (index, (key, value)) in entries.iter().enumerate() {
        let _ = write!(out, "{}\n{:inner$}{key}", if index > 0 { "," } else { "" }, "");
        write_compact(out, value, inner, key.len());
    }
    let _ = write!(out, "\n{:indent$}{close}", "");
}

fn one_line(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        Json::Object(object) if !object.is_empty() => {
            let entries: Vec<String> =
                object.iter().map(|(key, value)| format!("{key:?}: {}", one_line(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

fn text_matches(golden: &Path, found: &str, mode: Mode) -> Result<(), String> {
    let expected = fs::read_to_string(golden).unwrap_or_default();
    if expected == found {
        return Ok(());
    }
    if mode == Mode::Accept {
        accept(golden, found.as_bytes())?;
    }
    Err(format!("{}\n{}", shown(golden), changed_lines(&expected, found)))
}

/// The lines between the first and the last that differ.
fn changed_lines(expected: &str, found: &str) -> String {
    const MOST: usize = 40;
    let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let before = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let after = a[before..].iter().rev().zip(b[before..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut text = format!("  line {}\n", before + 1);
    for (sign, lines) in [('-', &a[before..a.len() - after]), ('+', &b[before..b.len() - after])] {
        for line in lines.iter().take(MOST) {
            let _ = writeln!(text, "  {sign} {line}");
        }
        if lines.len() > MOST {
            let _ = writeln!(text, "  {sign} ... and {} lines more", lines.len() - MOST);
        }
    }
    text
}

// ---------------------------------------------------------------------------------------------- waves and pictures

fn wave_matches(golden: &Path, found: &Path, mode: Mode) -> Result<(), String> {
    let size = fs::metadata(found).map_err(|error| error.to_string())?.len();
    if size > MOST_WAVE_BYTES {
        let text = "watch fewer signals or cycles (testbench/golden/watched.rs)";
        return Err(format!("{}: {size} bytes are more than {MOST_WAVE_BYTES}; {text}", shown(golden)));
    }
    let difference = if golden.exists() {
        let found = diff(golden, found, &DiffOptions::default()).map_err(|error| error.to_string())?;
        if found.is_equal() {
            return Ok(());
        }
        let places = [(&found.a, "golden"), (&found.b, "this run")];
        places.iter().fold(found.to_string(), |text, (path, word)| text.replace(&path.display().to_string(), word))
    } else {
        "there is no golden waveform".to_owned()
    };
    if mode == Mode::Accept {
        accept(golden, &fs::read(found).map_err(|error| error.to_string())?)?;
    }
    Err(format!("{}\n{difference}", shown(golden)))
}

/// `insta` prints the difference and, if `INSTA_UPDATE` says so, accepts it.
fn snapshot_matches(folder: &Path, name: &str, found: &str) -> Result<(), String> {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let compared = catch_unwind(AssertUnwindSafe(|| settings.bind(|| insta::assert_snapshot!(name, found))));
    compared.map_err(|_| format!("{}: differs, see above", shown(&folder.join(format!("{name}.snap")))))
}

fn accept(golden: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = golden.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(golden, bytes))
        .map_err(|error| format!("{}: {error}", golden.display()))
}

/// A path as it is known inside the project.
fn shown(path: &Path) -> String {
    path.strip_prefix(crate::root()).unwrap_or(path).display().to_string()
}
