//! Recognises the kind of a file, for the error of a command that was given the wrong one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value as Json;

use super::{limits, shipped};

/// Kinds of files that the program reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A folder with the results of a sweep.
    SweepFolder,
    /// Another folder.
    Folder,
    /// A file without a byte in it.
    Empty,
    /// A result document of the scenario of this name.
    Result(String),
    /// What `compare --json` or `study --json` prints.
    Comparison,
    /// What `why --json` prints.
    Explanation,
    /// Other JSON.
    Json,
    /// A scenario.
    Scenario,
    /// The name of a scenario that comes with the program, given as if it were a file.
    Shipped,
    /// A sweep file.
    Sweep,
    /// A study file.
    Study,
    /// A topology file.
    Topology,
    /// A waveform.
    Wave,
    /// The store of a sweep.
    Store,
    /// A database of SQLite, which earlier versions kept sweeps in.
    Database,
    /// A web page.
    Page,
    /// An array of `NumPy`.
    Array,
    /// Something else that is no text.
    Binary,
    /// Some other text.
    Text,
    /// Nothing of that name, or nothing that can be read.
    Missing,
}

/// What a sweep keeps its points in, in its folder, and what earlier versions of this program did.
pub const SWEEP_STORES: [&str; 2] = ["sweep.jsonl", "sweep.sqlite"];

/// The beginning of the store of a sweep.
pub const SWEEP_BEGINS: &str = "{\"sweep\":{\"version\":";

/// Bytes that are enough to tell a file by its beginning.
const BEGINNING: u64 = 512;

impl Kind {
    /// What there is at a path.
    pub fn of(path: &Path) -> Self {
        if path.is_dir() {
            return if SWEEP_STORES.iter().any(|name| path.join(name).exists()) {
                Self::SweepFolder
            } else {
                Self::Folder
            };
        }
        // A pipe can be read only once, and not by us.
        if path.metadata().is_ok_and(|data| !data.is_file()) {
            return Self::Text;
        }
        let Ok(file) = File::open(path) else {
            let name = path.to_string_lossy();
            return if shipped::find(&name).is_some() { Self::Shipped } else { Self::Missing };
        };
        let mut beginning = Vec::new();
        if (&file).take(BEGINNING).read_to_end(&mut beginning).is_err() {
            return Self::Missing;
        }
        if let Some(kind) = kind_by_header(&beginning) {
            return kind;
        }
        // A result of a large system is long; nothing else that is told by its whole text is.
        let mut rest = Vec::new();
        let most = limits::SCENARIO_BYTES.max(1 << 28);
        if file.take(most).read_to_end(&mut rest).is_err() {
            return Self::Missing;
        }
        beginning.extend(rest);
        String::from_utf8(beginning).map_or(Self::Binary, |text| of_text(&text))
    }

    /// What it is, in words that follow "is".
    pub fn words(&self) -> String {
        match self {
            Self::SweepFolder => "the folder of a sweep".into(),
            Self::Folder => "a folder".into(),
            Self::Empty => "an empty file".into(),
            Self::Result(name) => format!("a result document of scenario `{name}`"),
            Self::Comparison => "a comparison in JSON".into(),
            Self::Explanation => "what `watershed why --json` printed".into(),
            Self::Json => "JSON, but no result document".into(),
            Self::Scenario => "a scenario".into(),
            Self::Shipped => "the name of a scenario that comes with the program".into(),
            Self::Sweep => "a sweep file".into(),
            Self::Study => "a study file".into(),
            Self::Topology => "a topology file".into(),
            Self::Wave => "a waveform".into(),
            Self::Store => "the store of a sweep".into(),
            Self::Database => "a database".into(),
            Self::Page => "a web page".into(),
            Self::Array => "a NumPy array".into(),
            Self::Binary => "no text".into(),
            Self::Text => "some other text".into(),
            Self::Missing => "not there".into(),
        }
    }

    /// The commands that take it, as a sentence; none if no command does.
    pub fn taken_by(&self, path: &Path) -> Option<String> {
        let path = path.display();
        Some(match self {
            Self::SweepFolder => format!("`watershed report {path}` makes a page of it"),
            Self::Result(_) => format!(
                "`watershed why`, `replay` and `report` take it; `watershed replay {path} --scenario` prints the scenario in it"
            ),
            Self::Scenario | Self::Shipped => {
                format!("`watershed run {path} --out DIR` runs it and writes its result into DIR")
            }
            Self::Sweep => format!("`watershed sweep {path} --out DIR` runs it"),
            Self::Study => format!("`watershed study {path}` runs it"),
            Self::Topology => "a scenario names it as `topology.file`, with `topology.kind = \"file\"`".into(),
            Self::Wave => format!("`watershed wave show {path}` and `watershed wave diff` take it"),
            Self::Store => "give the folder that it is in".into(),
            Self::Array => "a scenario names it as `data.file`".into(),
            _ => return None,
        })
    }

    /// Whether it is surely no scenario. What does not parse, and a table of unknown keys, may have been meant as one.
    pub fn is_not_a_scenario(&self) -> bool {
        !matches!(self, Self::Scenario | Self::Shipped | Self::Text | Self::Missing | Self::Binary | Self::Empty)
    }
}

/// What a file is that was given where something else is expected: two lines, what it is and what takes it.
pub fn wrong_kind_message(path: &Path, wanted: &str) -> String {
    let kind = Kind::of(path);
    let name = path.display();
    let line = match kind {
        Kind::Missing => format!("error: there is no file {name}"),
        _ => format!("error: {name} is {}, not {wanted}", kind.words()),
    };
    match kind.taken_by(path) {
        Some(help) => format!("{line}\n  {help}"),
        None => line,
    }
}

/// Whether a file is surely something else than one of `wanted`: what does not parse may have been meant as one of them.
pub fn certain_other_kind(path: &Path, wanted: &[Kind]) -> Option<Kind> {
    let kind = Kind::of(path);
    let open = matches!(kind, Kind::Text | Kind::Missing | Kind::Binary | Kind::Shipped);
    (!open && !wanted.contains(&kind)).then_some(kind)
}

fn kind_by_header(bytes: &[u8]) -> Option<Kind> {
    let starts = |with: &[u8]| bytes.starts_with(with);
    // The header block of an FST file: type 0 and its length, or a gzipped whole.
    let fst = starts(&[0, 0, 0, 0, 0, 0, 0, 1, 0x49]) || starts(&[254, 0]);
    Some(match bytes {
        [] => Kind::Empty,
        _ if fst => Kind::Wave,
        _ if starts(SWEEP_BEGINS.as_bytes()) => Kind::Store,
        _ if starts(b"SQLite format 3") => Kind::Database,
        _ if starts(b"\x93NUMPY") => Kind::Array,
        _ if starts(b"$date") || starts(b"$version") || starts(b"$comment") || starts(b"$timescale") => Kind::Wave,
        _ if starts(b"$scope") => Kind::Wave,
        _ if bytes.to_ascii_lowercase().starts_with(b"<!doctype html") => Kind::Page,
        _ => return None,
    })
}

fn of_text(text: &str) -> Kind {
    if text.trim().is_empty() {
        return Kind::Empty;
    }
    if text.trim_start().starts_with(['{', '['])
        && let Ok(json) = serde_json::from_str::<Json>(text)
    {
        return of_json(&json);
    }
    let Ok(table) = text.parse::<toml::Table>() else { return Kind::Text };
    let list = |key: &str| table.get(key).is_some_and(toml::Value::is_array);
    let has = |key: &str| table.contains_key(key);
    match () {
        () if has("family") || has("extends") || has("topology") => Kind::Scenario,
        () if list("scenario") => Kind::Sweep,
        () if list("contestant") => Kind::Study,
        () if list("switch") => Kind::Topology,
        () => Kind::Text,
    }
}

fn of_json(json: &Json) -> Kind {
    if let (Some(_), Some(name)) = (json.get("schema_version"), json.pointer("/stamp/scenario").and_then(Json::as_str))
    {
        return Kind::Result(name.to_owned());
    }
    if json.get("entries").is_some() || json.get("cells").is_some() {
        return Kind::Comparison;
    }
    if json.pointer("/0/parts").is_some() {
        return Kind::Explanation;
    }
    Kind::Json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognised_by_their_contents() {
        let folder = tempfile::tempdir().unwrap();
        for (text, kind) in [
            (&b""[..], Kind::Empty),
            (b" \n\t\n", Kind::Empty),
            (b"$date\n  today\n$end\n", Kind::Wave),
            (b"\x00\x00\x00\x00\x00\x00\x00\x01\x49rest", Kind::Wave),
            (b"{\"schema_version\": 1, \"stamp\": {\"scenario\": \"x\"}}", Kind::Result("x".into())),
            (b"{\"entries\": []}", Kind::Comparison),
            (b"[{\"collective\": \"c\", \"parts\": []}]", Kind::Explanation),
            (b"{\"a\": 1}", Kind::Json),
            (b"[topology]\nkind = \"die\"\n", Kind::Scenario),
            (b"extends = \"x\"\n", Kind::Scenario),
            (b"[[scenario]]\nfile = \"x\"\n", Kind::Sweep),
            (b"[[contestant]]\nfile = \"x\"\n", Kind::Study),
            (b"[[switch]]\nname = \"x\"\n", Kind::Topology),
            (b"seed = 1\n", Kind::Text),
            (b"{\"sweep\":{\"version\":2}}\n", Kind::Store),
            (b"SQLite format 3\0", Kind::Database),
            (b"<!DOCTYPE html><html>", Kind::Page),
            (b"\x93NUMPY\x01\0", Kind::Array),
            (b"\xff\xfe\xfd", Kind::Binary),
        ] {
            let path = folder.path().join("file");
            std::fs::write(&path, text).unwrap();
            assert_eq!(Kind::of(&path), kind, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(Kind::of(folder.path()), Kind::Folder);
        assert_eq!(Kind::of(Path::new("allreduce-die")), Kind::Shipped);
        assert_eq!(Kind::of(Path::new("no such file")), Kind::Missing);
    }
}
