//! A knob acts or is refused: every key of the schema, for every family, changes something that a run or `cost` says, or is
//! refused wherever it is tried. What it takes to see a knob act, and which keys may do nothing, is in `testbench/knobs.toml`.
//!
//! `make test` asks for every key, too, but it leaves out what follows from two answers: see [`Kind::find_among`].

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::{Loaded, cost, load_text, schema, shipped};

use crate::share;
use crate::support::{load, root, watershed};

/// The table of kinds, settings and exceptions.
fn table() -> toml::Table {
    std::fs::read_to_string(root().join("testbench/knobs.toml")).unwrap().parse().unwrap()
}

fn texts(value: &toml::Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// A shipped scenario with settings.
fn shipped(name: &str, sets: &[String]) -> Result<Loaded, String> {
    let (path, text) = shipped::find(name).unwrap_or_else(|| panic!("{name} is not shipped"));
    let base = root().join(path);
    let loaded = load_text(path, text, base.parent().unwrap(), name, sets);
    loaded.map_err(|problems| problems.to_string())
}

/// What a run and `cost` say, but for what only repeats the scenario.
fn said(loaded: &Loaded) -> Result<String, String> {
    let options = RunOptions { all_links: true, ..RunOptions::default() };
    let result = run(loaded, &options).map_err(|error| error.to_string())?;
    let mut document = serde_json::to_value(&result.document).unwrap();
    for key in ["config", "stamp", "scenario"] {
        document.as_object_mut().unwrap().remove(key);
    }
    let cost = cost::cost(loaded).map_err(|problems| problems.to_string())?;
    Ok(format!("{document}\n{}", serde_json::to_value(&cost).unwrap()))
}

/// The configuration of a scenario.
fn config(loaded: &Loaded) -> String {
    serde_json::to_string(&loaded.scenario).unwrap()
}

fn resolve<'a>(root: &'a Json, schema: &'a Json) -> &'a Json {
    match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Choices of a schema.
fn choices<'a>(root: &'a Json, schema: &'a Json) -> Vec<&'a Json> {
    let schema = resolve(root, schema);
    match schema["anyOf"].as_array() {
        Some(list) => list.iter().map(|choice| resolve(root, choice)).collect(),
        None => vec![schema],
    }
}

/// Every key that has a value of its own, with its schema; elements of lists are the first ones.
fn leaves<'a>(root: &'a Json, schema: &'a Json, path: &str, found: &mut BTreeMap<String, &'a Json>) {
    let choices = choices(root, schema);
    let mut inner = false;
    for choice in &choices {
        for (key, of) in choice["properties"].as_object().into_iter().flatten() {
            inner = true;
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            leaves(root, of, &path, found);
        }
        if resolve(root, &choice["items"])["properties"].is_object() {
            inner = true;
            leaves(root, &choice["items"], &format!("{path}.0"), found);
        }
    }
    if !inner || choices.len() > 1 {
        found.insert(path.to_owned(), schema);
    }
}

fn words(schema: &Json) -> Vec<String> {
    let list = schema["enum"].as_array().cloned().unwrap_or_default();
    let consts = schema["oneOf"].as_array().into_iter().flatten().map(|choice| choice["const"].clone());
    let own = std::iter::once(schema["const"].clone());
    list.into_iter().chain(consts).chain(own).filter(Json::is_string).map(|word| word.to_string()).collect()
}

/// Values to try of one choice.
fn values_of(choice: &Json) -> Vec<String> {
    let number = |key: &str| choice[key].as_f64();
    let fits = |value: &f64| {
        number("minimum").is_none_or(|low| *value >= low) && number("maximum").is_none_or(|high| *value <= high)
    };
    let words = words(choice);
    if !words.is_empty() {
        return words;
    }
    let low = number("minimum").unwrap_or(0.0);
    let fixed: &[&str] = match choice["type"].as_str() {
        Some("boolean") => &["true", "false"],
        Some("string") => &["\"all\"", "\"other\""],
        Some("array") => &["[1]", "[\"core1\"]", "[2]", "[0, 1]", "[[1, 2]]", "[]"],
        Some("object") => &["{ random_max = 5 }", "{}"],
        Some("integer") => {
            let tried = [low, low + 1.0, 2.0, 3.0, 7.0, 16.0, 40.0, 400.0, 5000.0];
            return tried.iter().filter(|value| fits(value)).map(|value| format!("{value}")).collect();
        }
        Some("number") => {
            let tried = [low, 0.25, 0.5, 3.0, 9.0, 500.0];
            return tried.iter().filter(|value| fits(value)).map(|value| format!("{value:?}")).collect();
        }
        _ => &[],
    };
    fixed.iter().map(ToString::to_string).collect()
}

/// Values to try: the first of each choice, then the second of each, and so on, so that the first two differ as much as they can.
fn candidates(root: &Json, schema: &Json) -> Vec<String> {
    let lists: Vec<Vec<String>> = choices(root, schema).into_iter().map(values_of).collect();
    let most = lists.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).flat_map(|at| lists.iter().filter_map(move |list| list.get(at).cloned())).collect()
}

/// What became of a key.
#[derive(PartialEq)]
enum Found {
    Acts,
    /// With this headline.
    Refused(String),
    /// Nothing changes, not even the configuration: perhaps the value is what it was.
    Same,
    Nothing,
}

/// What a scenario with its settings says: its configuration, and all that comes of it.
type Said = BTreeMap<(String, Vec<String>), (String, String)>;

struct Kind {
    bases: Vec<(String, Vec<String>)>,
    /// Settings under which a key shows: key, scenario, settings, values.
    show: Vec<(String, String, Vec<String>, Vec<String>)>,
    said: RefCell<Said>,
}

impl Kind {
    fn of(table: &toml::Table, name: &str) -> Kind {
        let bases = table["kinds"][name].as_array().unwrap().iter().map(texts);
        let show = table.get("show").and_then(toml::Value::as_array).into_iter().flatten();
        let show = show.filter(|of| of["kind"].as_str() == Some(name)).map(|of| {
            let text = |key: &str| of[key].as_str().unwrap().to_owned();
            let list = |key: &str| of.get(key).map(texts).unwrap_or_default();
            (text("key"), text("on"), list("with"), list("values"))
        });
        Kind {
            bases: bases.map(|mut base| (base.remove(0), base)).collect(),
            show: show.collect(),
            said: RefCell::default(),
        }
    }

    fn base(&self, name: &str, sets: &[String]) -> (String, String) {
        let key = (name.to_owned(), sets.to_vec());
        if let Some(text) = self.said.borrow().get(&key) {
            return text.clone();
        }
        let found = shipped(name, sets).and_then(|loaded| Ok((said(&loaded)?, config(&loaded))));
        let found = found.unwrap_or_else(|error| panic!("{name} {sets:?}: {error}"));
        self.said.borrow_mut().insert(key, found.clone());
        found
    }

    /// What a value does. The same configuration is hardly ever another run: without `whole` it is not run.
    fn acts(&self, name: &str, sets: &[String], key: &str, value: &str, whole: bool) -> Found {
        let mut with = sets.to_vec();
        with.push(format!("{key}={value}"));
        let refused = |error: String| {
            let headline = error.lines().find(|line| line.contains("error: "));
            Found::Refused(headline.unwrap_or_else(|| panic!("{error}")).to_owned())
        };
        let loaded = match shipped(name, &with) {
            Ok(loaded) => loaded,
            Err(error) => return refused(error),
        };
        let (base, base_config) = self.base(name, sets);
        let same = config(&loaded) == base_config;
        if same && !whole {
            return Found::Same;
        }
        match said(&loaded) {
            Err(error) => refused(error),
            Ok(text) if text != base => Found::Acts,
            Ok(_) if same => Found::Same,
            Ok(_) => Found::Nothing,
        }
    }

    fn find(&self, root: &Json, key: &str, schema: &Json) -> Found {
        let shown: Vec<_> = self.show.iter().filter(|(of, ..)| of == key).collect();
        for (_, on, with, values) in &shown {
            let own = self.bases.iter().find(|(name, _)| name == on).map(|(_, sets)| sets.clone()).unwrap_or_default();
            let sets: Vec<String> = own.into_iter().chain(with.iter().cloned()).collect();
            if values.iter().any(|value| self.acts(on, &sets, key, value, true) == Found::Acts) {
                return Found::Acts;
            }
        }
        if !shown.is_empty() {
            return Found::Nothing;
        }
        let values = candidates(root, schema);
        // What seems to do nothing may do something in what was left out.
        match self.find_among(&values, key, share::is_whole()) {
            Found::Nothing if !share::is_whole() => self.find_among(&values, key, true),
            found => found,
        }
    }

    /// What becomes of a key that has one of these values.
    ///
    /// Where the first two are refused in the same words, it is the key that is refused: without `whole` the other values are left out
    /// there. Where that happens in two scenarios because their family lacks the key, so are the other scenarios.
    fn find_among(&self, values: &[String], key: &str, whole: bool) -> Found {
        let mut found = Found::Refused(String::new());
        let mut families = 0;
        for (name, sets) in &self.bases {
            let (mut same, mut headlines) = (0, Vec::new());
            for (at, value) in values.iter().enumerate() {
                match self.acts(name, sets, key, value, false) {
                    Found::Acts => return Found::Acts,
                    Found::Nothing => found = Found::Nothing,
                    Found::Same => same += 1,
                    Found::Refused(headline) => headlines.push(headline),
                }
                let is_the_key = at == 1 && matches!(&headlines[..], [first, second] if first == second);
                if is_the_key && !whole {
                    families += usize::from(is_of_family(&headlines[0]));
                    break;
                }
            }
            if families == 2 {
                break;
            }
            // One value may be the one that was there; of two one is another.
            if same > 1 && values.iter().any(|value| self.acts(name, sets, key, value, true) == Found::Acts) {
                return Found::Acts;
            }
            if same > 1 {
                found = Found::Nothing;
            }
        }
        found
    }
}

/// Whether a whole family lacks a key, whatever else stands in the scenario.
fn is_of_family(headline: &str) -> bool {
    headline.contains("means nothing in ") && !headline.contains(" without ")
}

fn every_key(kind: &str) {
    every_key_of(kind, |_| true);
}

fn every_key_of(kind: &str, is_asked: impl Fn(&str) -> bool) {
    let table = table();
    let schema = schema::schema();
    let mut keys = BTreeMap::new();
    leaves(schema, schema, "", &mut keys);
    assert!(keys.len() > 250, "{}", keys.len());
    let quiet: Vec<(&str, Option<Vec<String>>)> = (table["quiet"].as_array().unwrap().iter())
        .map(|of| {
            assert!(of["why"].as_str().unwrap().len() > 10);
            (of["key"].as_str().unwrap(), of.get("kinds").map(texts))
        })
        .collect();
    for (key, _) in &quiet {
        assert!(keys.contains_key(*key), "testbench/knobs.toml: there is no key {key}");
    }
    let may = |key: &str| {
        quiet
            .iter()
            .any(|(of, kinds)| *of == key && kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind.to_owned())))
    };
    let of = Kind::of(&table, kind);
    let inert: Vec<&String> = keys
        .iter()
        .filter(|(key, schema_of)| is_asked(key) && !may(key) && of.find(schema, key, schema_of) == Found::Nothing)
        .map(|(key, _)| key)
        .collect();
    assert!(inert.is_empty(), "{kind}: accepted, and nothing changes: {inert:#?}");
}

#[test]
fn every_key_acts_or_is_refused_in_the_piuma_family() {
    every_key("piuma");
}

/// What only one family has is the family's there, too, and the tests above and below ask for it.
#[test]
fn every_shared_key_acts_or_is_refused_in_a_network_of_several_families() {
    let own = ["armed", "pbv", "collective", "core", "multicast", "program", "host", "workload", "job"];
    every_key_of("mixed", |key| !own.contains(&key.split(['.', '[']).next().unwrap_or_default()));
}

#[test]
fn every_key_acts_or_is_refused_in_a_plain_fabric() {
    every_key("fabric");
}

#[test]
fn every_key_acts_or_is_refused_in_the_armed_family() {
    every_key("armed");
}

#[test]
fn every_key_acts_or_is_refused_in_the_pbv_family() {
    every_key("pbv");
}

/// What `--wave` writes follows the table of waves.
#[test]
fn keys_of_waves_change_the_wave_that_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let wave = |set: &str| {
        let file = folder.path().join("wave.vcd");
        let output = watershed(["run", "barrier-die", "--wave", file.to_str().unwrap(), "--set", set]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().filter(|line| !line.contains("seed")).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let whole = wave("seed=1");
    for set in
        ["wave.signals=['**.ceng.**']", "wave.depth=5", "wave.from_cycle=20", "wave.to_cycle=20", "wave.clock=true"]
    {
        assert_ne!(wave(set), whole, "{set}");
    }
}

#[test]
fn flits_are_words_of_piuma_and_pieces_of_frames_elsewhere() {
    let names = ["allreduce-die", "fig2-tree", "fig7-barrier"];
    for (name, family) in names.iter().zip(["piuma", "armed", "pbv"]) {
        let of = |bits: u32| shipped(name, &[format!("link.flit_bits={bits}")]);
        for bits in [8, 63, 80, 128, 512, 4080] {
            let cut = family != "piuma" && [128, 512].contains(&bits);
            let Err(error) = of(bits) else {
                assert!(cut, "{name}: flits of {bits} bits");
                continue;
            };
            let found = if family == "piuma" {
                error.contains(&format!("a flit of the {family} family carries a word of 64 bits, not {bits}"))
                    && error.contains("expected: 64")
            } else {
                error.contains(&format!("a frame cannot be cut into flits of {bits} bits"))
                    && error.contains("expected: a multiple of 32 from 32 to 4096")
            };
            assert!(!cut && found && error.contains("link.width_bits"), "{name}: {error}");
        }
        assert!(of(64).is_ok());
    }
    // A plain fabric counts flits, whatever they carry; the words of a host are 64 bits everywhere.
    let mesh = "family = 'fabric'\ntopology = { kind = 'mesh', size = [2, 2] }\n";
    let bits = |more: &str| load(&format!("{mesh}{more}"), &["link.flit_bits=128"]);
    let traffic = "[[traffic]]\npattern = 'uniform'\nrate = 0.1\nstop_cycle = 50\n";
    assert_eq!(bits(traffic).unwrap().scenario.derived["link_bandwidth_gbps"], json!(128.0));
    assert!(bits("[[host]]\nalgorithm = 'ring'\n").unwrap_err().contains("a flit of a host"));
}

#[test]
fn whoever_starts_after_the_run_is_refused() {
    for (name, key) in [
        ("allreduce-die", "collective.0.start_cycle"),
        ("multicast-fig5", "program.0.start_cycle"),
        ("hosts-die", "host.0.start_cycle"),
        ("mesh-uniform", "traffic.0.start_cycle"),
        ("fig2-tree", "armed.reduction.0.start_cycle"),
        ("fig7-barrier", "pbv.collective.0.start_cycle"),
        ("fig7-barrier", "pbv.setup.initialise_cycle"),
        ("congestion", "pbv.congestion.0.cycle"),
    ] {
        let of = |start: u64| shipped(name, &["limits.max_cycles=90000".into(), format!("{key}={start}")]);
        for start in [90_000, 20_000_000] {
            let error = of(start).unwrap_err();
            let message = format!("cycle {start} never comes: the run is given up in cycle 90000");
            assert!(error.contains(&message) && error.contains("a cycle below 90000"), "{name}: {error}");
        }
        if name != "mesh-uniform" {
            assert!(of(89_999).is_ok(), "{name}");
        }
    }
}
