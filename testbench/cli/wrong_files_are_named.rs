//! Issue 8: whoever gives a command the wrong file is told what it is and what takes it; whoever names nobody is told who is
//! there; what is written finds its folder, or says beforehand that it cannot.

use std::fs;
use std::path::Path;

use crate::support::watershed;

/// A result of the smallest run, a waveform beside it, an empty file, and the folder of a small sweep.
fn files(folder: &Path) -> [String; 4] {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let small = ["--set", "collective.0.elements=1"];
    let output = watershed([&["run", "allreduce-die", "--out", &at("out"), "--wave", "die.vcd"], &small[..]].concat());
    assert_eq!(output.status, 0, "{}", output.stderr);
    fs::write(at("empty"), "").unwrap();
    fs::write(
        at("s.toml"),
        "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [1]\n",
    )
    .unwrap();
    assert_eq!(watershed(["sweep", &at("s.toml"), "-o", &at("sweep")]).status, 0);
    [at("out/allreduce-die.json"), at("out/die.vcd"), at("empty"), at("sweep")]
}

#[test]
fn a_file_of_the_wrong_kind_is_told_from_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    let [result, wave, empty, sweep] = files(folder.path());
    let sweep_file = folder.path().join("s.toml").to_str().unwrap().to_owned();
    let scenario = "testbench/piuma/allreduce-die.toml".to_owned();
    let study = "testbench/studies/face-off.toml".to_owned();
    for (command, file, is, taken) in [
        (
            "why",
            &scenario,
            "is a scenario, not a result document",
            "watershed run testbench/piuma/allreduce-die.toml --out",
        ),
        ("replay", &scenario, "is a scenario, not a result document", "watershed run"),
        ("report", &scenario, "is a scenario, not a result document", "watershed run"),
        (
            "why",
            &"allreduce-die".to_owned(),
            "is the name of a scenario that comes with",
            "watershed run allreduce-die --out",
        ),
        ("why", &wave, "is a waveform, not a result", "watershed wave show"),
        ("replay", &empty, "is an empty file, not a result", ""),
        ("why", &sweep, "is the folder of a sweep, not a result", "watershed report"),
        ("why", &sweep_file, "is a sweep file, not a result", "watershed sweep"),
        ("why", &"nothing.json".to_owned(), "there is no file nothing.json", ""),
        ("report", &empty, "is an empty file", ""),
        ("report", &"testbench".to_owned(), "a folder without the results of a sweep", "watershed sweep FILE.toml"),
        ("run", &result, "this is a result document of scenario `allreduce-die`, not a scenario", "replay"),
        ("check", &wave, "this is a waveform, not a scenario", "watershed wave show"),
        ("cost", &sweep_file, "this is a sweep file, not a scenario", "watershed sweep"),
        ("topology", &study, "this is a study file, not a scenario", "watershed study"),
        ("run", &"traces/ring.topology.toml".to_owned(), "this is a topology file, not a scenario", "topology.file"),
        ("compare", &result, "this is a result document of scenario `allreduce-die`, not a scenario", "why"),
        ("study", &scenario, "this is a scenario, not a study file", "watershed run"),
        ("wave show", &result, "is a result document of scenario `allreduce-die`, not a waveform", "watershed why"),
        ("wave show", &scenario, "is a scenario, not a waveform", "watershed run"),
        ("wave show", &empty, "is an empty file, not a waveform", ""),
    ] {
        let output = watershed(command.split(' ').chain([file.as_str()]));
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{command} {file}: {}", output.stderr);
        assert!(output.stderr.contains(is) && output.stderr.contains(taken), "{command} {file}: {}", output.stderr);
    }
    for (file, is) in [(&scenario, "this is a scenario, not a sweep file"), (&result, "this is a result document")] {
        let output = watershed(["sweep", file, "-o", &sweep]);
        assert_eq!(output.status, 2, "{}", output.stdout);
        assert!(output.stderr.contains(is), "{}", output.stderr);
    }
}

#[test]
fn a_name_that_there_is_not_lists_those_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    assert_eq!(watershed(["run", "hosts-die", "--out", out, "--set", "collective.0.elements=8"]).status, 0);
    let result = folder.path().join("hosts-die.json").to_str().unwrap().to_owned();
    let output = watershed(["why", &result, "--collective", "netwrk"]);
    assert_eq!(output.status, 2);
    for words in ["no collective \"netwrk\"", "network", "recursive-doubling", "did you mean `network`?"] {
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
    let output = watershed(["embed", "fig3-node", "--collective", "summ"]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("did you mean `sum`?"), "{}", output.stderr);
}

#[test]
fn one_contestant_can_be_changed() {
    let quick = ["--no-dead", "--orders", "0", "--late-ns", "0", "--json", "--set", "collective.0.elements=4"];
    let latencies = |arguments: &[&str]| -> Vec<(String, u64)> {
        let output = watershed([&["compare"], arguments, &quick].concat());
        assert_eq!(output.status, 0, "{}", output.stderr);
        let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let entries = json["entries"].as_array().unwrap().iter();
        entries
            .map(|one| (one["name"].as_str().unwrap().to_owned(), one["run"]["latency_cycles"].as_u64().unwrap()))
            .collect()
    };
    let twice = ["allreduce-die", "allreduce-die"];
    let plain = latencies(&twice);
    assert_eq!((plain[0].0.as_str(), plain[1].0.as_str()), ("allreduce-die", "allreduce-die#2"));
    assert_eq!(plain[0].1, plain[1].1);
    // Two engines on the longest path, four levels of adders each, a stage more: eight cycles.
    let deeper = latencies(&[&twice[..], &["--set", "allreduce-die#2:switch.ceng.stages=4"]].concat());
    assert_eq!((deeper[0].1, deeper[1].1), (plain[0].1, plain[1].1 + 8));
    // A job of a scenario, alone: the others keep what they have.
    let jobs = ["hosts-die:network", "hosts-die:ring"];
    let before = latencies(&jobs);
    let after = latencies(&[&jobs[..], &["--set", "ring:host.1.overhead_cycles=5000"]].concat());
    assert_eq!(after[0], before[0]);
    assert!(after[1].1 > before[1].1 + 5000, "{before:?} {after:?}");

    let output =
        watershed(["compare", "allreduce-die", "hosts-die:ring", "--set", "rng:host.1.overhead_cycles=1", "--anyway"]);
    assert_eq!(output.status, 2);
    for words in ["no contestant \"rng\"", "allreduce-die or ring", "did you mean `ring`?"] {
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
}

#[test]
fn out_is_spelt_alike_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let small = ["--set", "collective.0.elements=1"];
    for spelling in ["-o", "--out"] {
        let out = at(&format!("run{spelling}"));
        let output = watershed([&["run", "allreduce-die", spelling, &out], &small[..]].concat());
        assert_eq!(output.status, 0, "{}", output.stderr);
        assert!(Path::new(&out).join("allreduce-die.json").exists());
    }
    let result = at("run-o/allreduce-die.json");
    for spelling in ["-o", "--out"] {
        let page = at(&format!("pages/{spelling}.html"));
        assert_eq!(watershed(["report", &result, spelling, &page]).status, 0);
        assert!(fs::read_to_string(page).unwrap().starts_with("<!doctype html>"));
    }
    // The older spelling of `study` still holds, and every command that has threads has -j.
    let help = |command: &[&str]| watershed([command, &["--help"]].concat()).stdout;
    for command in [&["run"][..], &["sweep"], &["sweep", "merge"], &["report"], &["compare"], &["study"]] {
        assert!(help(command).contains("-o, --out <"), "{command:?}: {}", help(command));
    }
    for command in ["sweep", "curve", "compare", "study", "exhaustive"] {
        assert!(help(&[command]).contains("-j, --jobs <N>"), "{command}");
        assert!(help(&[command]).contains("0 is one for each processor"), "{command}");
    }
    let output = watershed(["study", "no-such-study", "--output", &at("x.html")]);
    assert!(output.stderr.contains("there is no study"), "{}", output.stderr);
    let output = watershed(["exhaustive", "--threads", "many"]);
    assert!(output.stderr.contains("invalid value 'many' for '--jobs <N>'"), "{}", output.stderr);
}

#[test]
fn folders_are_made_for_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let small = ["--set", "collective.0.elements=1"];
    let run = |more: &[&str]| watershed([&["run", "allreduce-die"], &small[..], more].concat());
    let record = "die.tile2.sw4.switch.ceng";
    let output = run(&[
        "--out",
        &at("a/b"),
        "--wave",
        &at("w/x.vcd"),
        "--ladder",
        &at("l/x.svg"),
        "--record",
        record,
        "--save-npy",
        &at("n/x.npy"),
    ]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    for file in
        ["a/b/allreduce-die.json", "w/x.vcd", "w/x.gtkw", "l/x.svg", "n/x.npy", "a/b/die.tile2.sw4.switch.ceng.csv"]
    {
        assert!(folder.path().join(file).exists(), "{file}");
    }
    for (command, file) in [
        (&["run", "mesh-bursty", "--histogram"][..], "h/x.csv"),
        (&["topology", "allreduce-die", "--svg"], "t/x.svg"),
        (&["embed", "fig3-node", "--save"], "e/x.toml"),
        (&["curve", "mesh-transpose", "--rates", "0.1", "--csv"], "c/x.csv"),
    ] {
        let output = watershed([command, &[at(file).as_str()]].concat());
        assert_eq!(output.status, 0, "{command:?}: {}", output.stderr);
        assert!(folder.path().join(file).exists(), "{file}");
    }
    // A file where a folder should be, and a folder where a file should be, are said before anything runs.
    let stands = at("n/x.npy/deeper");
    for flag in ["--wave", "--ladder", "--save-npy"] {
        let output = run(&[flag, &format!("{stands}/x.vcd")]);
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{flag}");
        assert!(output.stderr.contains("x.npy is a file, and a folder is to be made of it"), "{}", output.stderr);
    }
    let output = run(&["--wave", &at("a")]);
    assert!(output.stderr.contains("this is a folder, and a file is to be written"), "{}", output.stderr);
    for command in [
        &["run", "allreduce-die", "--out"][..],
        &["sweep", "testbench/sweeps/stages.toml", "--out"],
        &["compare", "hosts-die", "--out"],
        &["report", &at("a/b/allreduce-die.json"), "--out"],
    ] {
        let output = watershed([command, &[stands.as_str()]].concat());
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{command:?}");
        assert!(output.stderr.contains("x.npy is a file"), "{command:?}: {}", output.stderr);
    }
}

#[test]
fn a_result_that_was_there_is_not_replaced_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run = |elements: &str| {
        let set = format!("collective.0.elements={elements}");
        let output =
            watershed(["run", "allreduce-die", "--out", out, "--ladder", &format!("{out}/l.txt"), "--set", &set]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        output.stdout
    };
    let first = run("1");
    assert!(first.contains("allreduce-die.json\n") && first.contains("l.txt\n"), "{first}");
    let same = run("1");
    assert!(same.contains("allreduce-die.json (as it was)\n") && same.contains("l.txt (replaced)\n"), "{same}");
    let other = run("2");
    assert!(other.contains("allreduce-die.json (replaced)\n"), "{other}");
}
