//! X-LIVE-1: a document may leave out the words of results. What it says instead is a hash that another program computes from
//! the array of `--save-npy`, and nothing else of it changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use crate::share;
use crate::support::{Output, watershed};

/// Scenarios of every family, each with settings that keep it short. Every other one is of another family, or in software.
const FAMILIES: [(&str, &[&str]); 9] = [
    ("allreduce-die", &["job.0.elements=70"]),
    ("scan-die", &[]),
    ("hosts-die", &["job.0.elements=256"]),
    ("reduce-die", &[]),
    ("lossy-links", &["armed.reduction.0.rounds=4"]),
    ("against-software", &[]),
    ("tree-many-types", &[]),
    ("two-ids", &["collective.0.elements=24", "collective.1.elements=24"]),
    ("several-engines", &["traffic.0.stop_cycle=600", "job.0.elements=16", "job.2.repeat=1", "job.3.elements=16"]),
];

fn run(scenario: &str, sets: &[&str], more: &[&str]) -> Output {
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    watershed(["run", scenario].into_iter().chain(sets).chain(more.iter().copied()))
}

/// A document without what repeats the scenario.
fn document(scenario: &str, sets: &[&str], more: &[&str]) -> Json {
    let output = run(scenario, sets, &[&["--json"], more].concat());
    assert_eq!(output.status, 0, "{scenario}: {}", output.stderr);
    let mut document: Json = serde_json::from_str(&output.stdout).unwrap();
    for key in ["config", "scenario", "stamp"] {
        document.as_object_mut().unwrap().remove(key);
    }
    document
}

/// Lists of words of results, in order: each is replaced by what is left when they are taken.
fn words(document: &mut Json, found: &mut Vec<Vec<String>>) {
    match document {
        Json::Object(object) => {
            for (key, value) in object.iter_mut() {
                let is_words = matches!(key.as_str(), "oracle" | "result") && value.is_array();
                if is_words {
                    let list = value.take();
                    found.push(list.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect());
                } else if key != "distinct" {
                    words(value, found);
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| words(item, found)),
        _ => {}
    }
}

/// Takes the hashes of jobs.
fn hashes(document: &mut Json) -> Vec<Json> {
    let jobs = document["jobs"].as_array_mut().unwrap();
    jobs.iter_mut().map(|job| job.as_object_mut().unwrap().remove("results").unwrap_or_default()).collect()
}

/// What follows the header of a `.npy` file.
fn array(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[10 + header..].to_vec()
}

/// SHA-256 by a program of the system.
fn sha256(bytes: &[u8]) -> Option<String> {
    let program = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut program) = program else {
        println!("no sha256sum: hashes are not held against another program's");
        return None;
    };
    std::io::Write::write_all(&mut program.stdin.take().unwrap(), bytes).unwrap();
    let output = String::from_utf8(program.wait_with_output().unwrap().stdout).unwrap();
    output.split(' ').next().map(str::to_owned)
}

/// Every other scenario in `make test`, all in `make soak`.
#[test]
fn nothing_but_words_is_left_out_in_any_family() {
    for (scenario, sets) in share::one_in(2, FAMILIES) {
        let mut whole = document(scenario, sets, &["--results", "all"]);
        assert_eq!(document(scenario, sets, &[]), whole, "{scenario}: short vectors are whole");
        let mut all = Vec::new();
        words(&mut whole, &mut all);
        assert!(hashes(&mut whole).iter().all(Json::is_null), "{scenario}");
        for (kept, most) in [("hash", 0), ("first 3", 3), ("first 1000000", 1_000_000)] {
            let mut told = document(scenario, sets, &["--results", kept]);
            let (told_hashes, mut left) = (hashes(&mut told), Vec::new());
            words(&mut told, &mut left);
            assert_eq!(told, whole, "{scenario} {kept}");
            let beginnings: Vec<Vec<String>> =
                all.iter().map(|list| list.iter().take(most).cloned().collect()).collect();
            assert_eq!(left, beginnings, "{scenario} {kept}");
            for (hash, job) in told_hashes.iter().zip(whole["jobs"].as_array().unwrap()) {
                // Who only waits has no words, and in ideal mode none move.
                let name = job["name"].as_str().unwrap();
                let wordless = job["kind"] == "barrier" || name.ends_with("-ideal");
                assert_eq!(hash.is_null(), wordless, "{scenario} {kept}: {name}");
                let first = hash["first"].as_array().map_or(0, Vec::len) as u64;
                assert_eq!(first, hash["elements"].as_u64().unwrap_or(0).min(most as u64), "{scenario} {kept}");
            }
        }
    }
}

#[test]
fn another_program_computes_the_hash_from_the_array() {
    for (scenario, sets) in FAMILIES {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let array_at = at.join("r.npy");
        let more = ["--results", "hash", "--save-npy", array_at.to_str().unwrap()];
        let mut told = document(scenario, sets, &more);
        let named: Vec<(String, Json)> = {
            let hashes = hashes(&mut told);
            let jobs = told["jobs"].as_array().unwrap();
            jobs.iter().map(|job| job["name"].as_str().unwrap().to_owned()).zip(hashes).collect()
        };
        for (name, hash) in named.iter().filter(|(_, hash)| !hash.is_null()) {
            // One array has the name that was given; of several each has the job's name in it.
            let plain: String =
                name.chars().map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '_' }).collect();
            let path = if array_at.exists() { array_at.clone() } else { at.join(format!("r.{plain}.npy")) };
            let bytes = array(&path);
            let of = |key: &str| hash[key].as_u64().unwrap();
            assert_eq!(bytes.len() as u64, of("rows") * of("elements") * of("element_bytes"), "{scenario} {name}");
            if let Some(expected) = sha256(&bytes) {
                assert_eq!(hash["sha256"], expected, "{scenario} {name}");
            }
        }
        assert!(named.iter().any(|(_, hash)| !hash.is_null()), "{scenario}");
    }
}

#[test]
fn a_job_over_several_contexts_has_one_hash() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("r.npy");
    let sets = ["job.0.elements=1200", "job.0.pbv.contexts=3", "job.0.pbv.blocks=false"];
    let mut told = document("face-off-pbv", &sets, &["--results", "hash", "--save-npy", at.to_str().unwrap()]);
    let hash = hashes(&mut told).remove(0);
    let name = told["jobs"][0]["name"].as_str().unwrap().to_owned();
    let parts: Vec<PathBuf> = (0..3).map(|part| folder.path().join(format!("r.{name}_{part}.npy"))).collect();
    let bytes: Vec<u8> = parts.iter().flat_map(|path| array(path)).collect();
    assert_eq!(bytes.len() as u64, 8 * told["jobs"][0]["elements"].as_u64().unwrap());
    if let Some(expected) = sha256(&bytes) {
        assert_eq!(hash["sha256"], expected);
    }
}

#[test]
fn long_vectors_begin_unless_all_is_asked_for() {
    let lengths = |document: &mut Json| {
        let mut found = Vec::new();
        words(document, &mut found);
        found.iter().map(Vec::len).collect::<Vec<_>>()
    };
    // Two end points have the longest vectors soonest.
    let sets = ["topology.size=[2, 1]", "job.0.dtype='f64'", "memory.bandwidth_gbps=unlimited"];
    let document = |elements: &str, more: &[&str]| {
        let elements = format!("job.0.elements={elements}");
        document("mesh-allreduce", &[&sets[..], &[elements.as_str()]].concat(), more)
    };
    let mut at_limit = document("65536", &[]);
    assert!(hashes(&mut at_limit)[0].is_null());
    assert_eq!(lengths(&mut at_limit), [65_536, 65_536]);
    let mut told = document("65537", &[]);
    let hash = hashes(&mut told).remove(0);
    assert_eq!((hash["rows"].as_u64(), hash["elements"].as_u64()), (Some(2), Some(65_537)));
    assert_eq!(lengths(&mut told), [16, 16]);
    let mut whole = document("65537", &["--results", "all"]);
    assert_eq!(lengths(&mut whole), [65_537, 65_537]);
    assert_eq!(hashes(&mut document("65537", &["--results", "hash"]))[0]["sha256"], hash["sha256"]);
}

/// Every other scenario in `make test`, all in `make soak`.
#[test]
fn what_reads_documents_reads_them_without_words() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let file = |name: &str| at.join(name).to_str().unwrap().to_owned();
    for (scenario, sets) in share::one_in(2, FAMILIES) {
        let output = run(scenario, sets, &["--results", "hash", "--out", at.to_str().unwrap()]);
        assert_eq!(output.status, 0, "{scenario}: {}", output.stderr);
        assert!(output.stdout.contains("SHA-256"), "{scenario}: {}", output.stdout);
        let result = file(&format!("{scenario}.json"));
        let replayed = watershed(["replay", &result]);
        assert_eq!(replayed.status, 0, "{scenario}: {}{}", replayed.stdout, replayed.stderr);
        let why = watershed(["why", &result]);
        assert_eq!(why.status, 0, "{scenario}: {}{}", why.stdout, why.stderr);
    }
    let results = share::one_in(2, FAMILIES).map(|(scenario, _)| file(&format!("{scenario}.json")));
    let results: Vec<String> = results.collect();
    let page = file("report.html");
    let report = watershed(["report", "-o", &page].into_iter().chain(results.iter().map(String::as_str)));
    assert_eq!(report.status, 0, "{}", report.stderr);
    // A replay sees a word that differs by its hash.
    let text = fs::read_to_string(&results[0]).unwrap();
    let hash = text.split("\"sha256\": \"").nth(1).unwrap()[..64].to_owned();
    let other = if hash.starts_with('0') { "1" } else { "0" };
    fs::write(&results[0], text.replace(&hash, &format!("{other}{}", &hash[1..]))).unwrap();
    let replayed = watershed(["replay", &results[0]]);
    assert_eq!(replayed.status, 1, "{}", replayed.stdout);
    assert!(replayed.stdout.contains("jobs[0].results.sha256"), "{}", replayed.stdout);
}

#[test]
fn goldens_and_sweeps_hold_the_hash() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("mine")).unwrap();
    fs::write(at("mine/hashed.toml"), "extends = \"allreduce-die\"\nresults = \"hash\"\njob.0.elements = 40\n")
        .unwrap();
    let mine = at("mine");
    let test = |more: &[&str]| watershed(["test", mine.to_str().unwrap()].into_iter().chain(more.iter().copied()));
    let accepted = test(&["--accept"]);
    let golden: String = walk(&mine).iter().map(|path| fs::read_to_string(path).unwrap_or_default()).collect();
    assert!(golden.contains("\"sha256\": \""), "{}{}", accepted.stdout, golden);
    assert_eq!(test(&[]).status, 0);
    let text = fs::read_to_string(at("mine/hashed.toml")).unwrap();
    fs::write(at("mine/hashed.toml"), format!("seed = 77\n{text}")).unwrap();
    let other = test(&[]);
    assert!(other.status == 1 && other.stdout.contains("sha256"), "{}", other.stdout);

    let sweep = "[[scenario]]\nfile = \"mine/hashed.toml\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [2, 3]\n";
    fs::write(at("sweep.toml"), sweep).unwrap();
    let swept = watershed(["sweep", at("sweep.toml").to_str().unwrap(), "--out", at("swept").to_str().unwrap()]);
    assert_eq!(swept.status, 0, "{}", swept.stderr);
    let store: String = walk(&at("swept")).iter().map(|path| fs::read_to_string(path).unwrap_or_default()).collect();
    let hash = |text: &str| {
        let hashes: Vec<String> = text.split("\"sha256\":\"").skip(1).map(|rest| rest[..64].to_owned()).collect();
        assert!(hashes.len() == 2 && hashes[0] == hashes[1], "stages move cycles, not bits: {hashes:?}");
    };
    hash(&store);
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn where_there_are_no_words_none_can_be_asked_for() {
    for (scenario, kept, said) in [
        ("mesh-uniform", "hash", "no job with results"),
        ("barrier-die", "all", "no job with results"),
        ("barrier-tree", "first 2", "no job with results"),
        ("goal-mesh", "all", "keep no words of results"),
        ("goal-mesh", "first 4", "keep no words of results"),
    ] {
        let output = run(scenario, &[], &["--results", kept]);
        assert_eq!(output.status, 2, "{scenario} {kept}: {}", output.stdout);
        assert!(output.stderr.contains(said), "{scenario} {kept}: {}", output.stderr);
    }
    // A workload's document has a hash of each collective's results as it is.
    assert_eq!(document("goal-mesh", &[], &["--results", "hash"]), document("goal-mesh", &[], &[]));
    for wrong in ["some", "first 0", "first", "first x", "3"] {
        let flag = run("allreduce-die", &[], &["--results", wrong]);
        assert!(flag.status == 2 && flag.stderr.contains("first N"), "{wrong}: {}", flag.stderr);
        let key = run("allreduce-die", &[&format!("results=\"{wrong}\"")], &[]);
        assert!(key.status == 2 && key.stderr.contains("results"), "{wrong}: {}", key.stderr);
    }
}
