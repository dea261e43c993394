//! `why` and `cost` from the command line.

use std::fs;

use crate::support::watershed;

#[test]
fn why_prints_parts_that_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("die.json");
    let file = file.to_str().unwrap();
    let output = watershed(["run", "allreduce-die", "--set", "collective.0.elements=1", "--json"]);
    fs::write(file, output.stdout).unwrap();
    let output = watershed(["why", file]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.starts_with("sum: 66 cycles, from 0 to 66"), "{}", output.stdout);
    for line in output.stdout.lines().filter(|line| line.starts_with("66 cycles = ")) {
        let sum: u64 = line
            .split(" = ")
            .nth(1)
            .unwrap()
            .split(" + ")
            .map(|part| part.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(sum, 66, "{line}");
    }
    assert!(output.stdout.contains("sw4: the last operand came by P6 in cycle 34"), "{}", output.stdout);
    let cut = watershed(["why", file, "--cycles", "30..40", "--job", "sum"]).stdout;
    assert!(cut.lines().count() < output.stdout.lines().count() && cut.contains("sw4.ceng"), "{cut}");
    let json: serde_json::Value = serde_json::from_str(&watershed(["why", file, "--json"]).stdout).unwrap();
    assert_eq!(json[0]["latency_cycles"], 66);
    let output = watershed(["why", file, "--collective", "some"]);
    assert!(output.status == 2 && output.stderr.contains("no collective \"some\", but sum"), "{}", output.stderr);
    assert_eq!(watershed(["why", "nowhere.json"]).status, 2);
}

/// The result document of a run, in a file.
fn result(folder: &tempfile::TempDir, arguments: &[&str]) -> String {
    let file = folder.path().join("result.json");
    let output = watershed([&["run", "--json"], arguments].concat());
    assert_eq!(output.status, 0, "{}", output.stderr);
    fs::write(&file, output.stdout).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The sums under the table add up to the cycles in front of them.
fn assert_sums(text: &str) {
    let sums: Vec<&str> = text.lines().filter(|line| line.contains(" cycles = ")).collect();
    assert!(sums.len() >= 2, "{text}");
    for line in sums {
        let (total, parts) = line.split_once(" cycles = ").unwrap();
        let sum: u64 = parts.split(" + ").map(|part| part.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(total.parse(), Ok(sum), "{line}");
    }
}

#[test]
fn rounds_of_the_other_families_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = result(&folder, &["fig4-late-leaf"]);
    let output = watershed(["why", &file]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.contains("75 cycles before the end"), "{}", output.stdout);
    assert!(output.stdout.contains("compute       leaf15"), "{}", output.stdout);
    assert_sums(&output.stdout);
    let output = watershed(["why", &file, "--packet", "1"]);
    assert!(output.status == 1 && output.stderr.contains("no round 1 of it"), "{}", output.stderr);
    let output = watershed(["why", &file, "--packet", "1:2"]);
    assert!(output.status == 2 && output.stderr.contains("this family has rounds"), "{}", output.stderr);
    let file = result(&folder, &["fig7-barrier"]);
    let output = watershed(["why", &file, "--collective", "collective 2"]);
    assert!(output.stdout.contains("68 cycles before the end"), "{}{}", output.stdout, output.stderr);
    assert_sums(&output.stdout);
}

#[test]
fn packets_of_plain_traffic_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = result(&folder, &["mesh-transpose"]);
    // The slowest one.
    let output = watershed(["why", &file]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.starts_with("packet "), "{}", output.stdout);
    assert_sums(&output.stdout);
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let slowest: serde_json::Value = serde_json::from_str(&watershed(["why", &file, "--json"]).stdout).unwrap();
    let most = document["traffic"][0]["latency"]["max"].as_u64().unwrap();
    assert!(slowest[0]["latency_cycles"].as_u64().unwrap() >= most, "{slowest}");
    // One by its name, and one that there is not.
    let output = watershed(["why", &file, "--packet", "1:3"]);
    assert!(output.stdout.starts_with("packet 3 of "), "{}{}", output.stdout, output.stderr);
    assert_sums(&output.stdout);
    // One by its place in the order of arrival: the same as by the name that the note gives it.
    let third = watershed(["why", &file, "--packet", "2", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&third.stdout).unwrap();
    let name = told[0]["collective"].as_str().unwrap();
    assert_eq!(third.stderr, format!("note: in the order of arrival, number 2, from 0, is {name}\n"));
    let end = |number: &str| -> u64 {
        let output = watershed(["why", &file, "--packet", number, "--json"]);
        serde_json::from_str::<serde_json::Value>(&output.stdout).unwrap()[0]["end_cycle"].as_u64().unwrap()
    };
    let ends = ["0", "1", "2", "3", "20"].map(end);
    assert!(ends.is_sorted() && ends[0] < ends[4], "{ends:?}");
    for (packet, status, text) in [
        ("1000000", 1, "there is no packet 1000000"),
        ("1:1000000", 1, "none of them"),
        ("16:0", 2, "there is no end point 16: the system has 16"),
        ("a:0", 2, "not the number of an end point"),
        ("b", 2, "is not a number"),
    ] {
        let output = watershed(["why", &file, "--packet", packet]);
        assert!(output.status == status && output.stderr.contains(text), "{packet}: {}", output.stderr);
    }
    let output = watershed(["why", &file, "--collective", "sum"]);
    assert!(output.status == 2 && output.stderr.contains("has no collectives"), "{}", output.stderr);
}

#[test]
fn cost_follows_the_parameters() {
    let cost = |arguments: &[&str]| -> serde_json::Value {
        let output = watershed([&["cost", "--json"], arguments].concat());
        assert_eq!(output.status, 0, "{}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let before = cost(&["allreduce-die"]);
    assert_eq!(before["total"]["adders"], 144);
    let more = cost(&["allreduce-die", "--set", "switch.ceng.operand_slots=4"]);
    let bits = |cost: &serde_json::Value| cost["total"]["storage_bits"].as_u64().unwrap();
    assert_eq!(bits(&more) - bits(&before), 16 * 10 * 2 * 124);
    let text = watershed(["cost", "fig2-tree"]).stdout;
    assert!(text.contains("engine descriptors") && text.contains("8 of 72 bytes"), "{text}");
    assert_eq!(watershed(["cost", "nothing"]).status, 2);
}

#[test]
fn software_is_told_rank_by_rank() {
    let folder = tempfile::tempdir().unwrap();
    let file = result(&folder, &["hosts-die", "--set", "collective.0.elements=16"]);
    let output = watershed(["why", &file, "--collective", "recursive-doubling"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.starts_with("recursive-doubling: "), "{}", output.stdout);
    for words in [", round 3\n", ", round 1\n", "along the way of rank ", "own sending", "software ", "reduce "] {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    assert_sums(&output.stdout);
    // The network and all software, one behind the other; what has no way on the network says so.
    let output = watershed(["why", &file]);
    for name in ["network: ", "ring: ", "rabenseifner: ", "loop-of-sends: "] {
        assert!(
            output.stdout.contains(&format!("\n{name}")) || output.stdout.starts_with(name),
            "{name}: {}",
            output.stdout
        );
    }
    assert!(output.stderr.contains("rabenseifner-ideal: in ideal mode"), "{}", output.stderr);
    assert_sums(&output.stdout);
}

/// Cores that call a collective twice.
const TWICE: &str = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\nid = 0\n\
                     called = true\n[[program]]\ntext = \"\"\"\nallreduce 0, 0, 0x4000, 1\nallreduce 0, 0, 0x4000, 9\n\"\"\"\n";

#[test]
fn calls_and_words_that_there_are_not_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("twice.toml");
    fs::write(&scenario, TWICE).unwrap();
    let file = result(&folder, &[scenario.to_str().unwrap()]);
    let why = |arguments: &[&str]| watershed([&["why", file.as_str()], arguments].concat());
    let second = why(&["--collective", "sum.1"]);
    assert!(second.status == 0 && second.stdout.starts_with("sum.1: "), "{}{}", second.stdout, second.stderr);
    for (name, text) in [
        ("sum.2", "there is no call sum.2: sum was called 2 times"),
        ("sum.99", "there is no call sum.99: sum was called 2 times"),
        ("sum.+0", "the result has no collective \"sum.+0\", but sum"),
        ("sum.00", "the result has no collective \"sum.00\", but sum"),
        ("sum.", "the result has no collective \"sum.\", but sum"),
    ] {
        let output = why(&["--collective", name]);
        assert!(output.status == 2 && output.stderr.contains(text), "{name}: {} {}", output.status, output.stderr);
        assert!(!output.stderr.contains("nothing has ended") && output.stdout.is_empty(), "{name}: {}", output.stderr);
    }
    let output = why(&["--collective", "sum.1", "--packet", "9"]);
    assert_eq!((output.status, output.stderr.as_str()), (1, "note: sum.1: there is no word 9; it has 9\n"));
    // One call that a core never makes.
    let text =
        TWICE.replace("\nallreduce 0, 0, 0x4000, 1\n", "\nbne %core, 3, on\nhalt\non: allreduce 0, 0, 0x4000, 1\n");
    fs::write(&scenario, text).unwrap();
    let output = watershed(["run", scenario.to_str().unwrap(), "--json"]);
    assert_eq!(output.status, 1, "{}", output.stderr);
    fs::write(&file, output.stdout).unwrap();
    let output = why(&["--collective", "sum.0"]);
    assert_eq!(output.status, 1);
    let (hang, rest) = output.stderr.split_at(output.stderr.rfind("no collective").unwrap_or(0));
    assert_eq!(rest, "no collective, round or packet has ended whose latency could be explained\n");
    assert!(hang.starts_with("the run did not finish: cycle ") && hang.contains("nothing moves any more"), "{hang}");
    assert!(hang.contains("core0, thread 0 on MTP 0, line ") && hang.contains(" waits for a collective"), "{hang}");
}

/// A die whose trees do not take turns: what overlaps can hang.
const DIE: &str = "family = \"piuma\"\ntopology = { kind = \"die\" }\nchecks.claims = false\n";

/// A scenario that hangs: what its run and `why` of its result say.
fn hang(text: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("hang.toml");
    fs::write(&scenario, format!("{DIE}{text}")).unwrap();
    let output = watershed(["run", scenario.to_str().unwrap()]);
    assert_eq!(output.status, 1, "{}{}", output.stdout, output.stderr);
    let file = folder.path().join("hang.json");
    fs::write(&file, watershed(["run", scenario.to_str().unwrap(), "--json"]).stdout).unwrap();
    let why = watershed(["why", file.to_str().unwrap()]);
    assert_eq!(why.status, 1, "{}", why.stderr);
    (output.stdout, why.stderr)
}

#[test]
fn threads_of_a_hang_stand_at_the_line_that_blocks() {
    // A collective that all wait for in their last line, and one that they wait for in the middle.
    let mix = "[[collective]]\nname = \"self\"\nkind = \"allreduce\"\nid = 0\nelements = 200\n\
        [[collective]]\nname = \"called\"\nkind = \"allreduce\"\nid = 1\ncalled = true\n\
        [[program]]\ntext = \"\"\"\n    .random 0, 200, f64\n    compute 20\n    allreduce 1, 0, 0x8000, 200\n\"\"\"\n";
    let overlap = "[memory]\nbandwidth_gbps = \"unlimited\"\n\
        [[collective]]\nname = \"a\"\nkind = \"allreduce\"\nid = 0\ncalled = true\n\
        [[collective]]\nname = \"b\"\nkind = \"allreduce\"\nid = 1\ncalled = true\n\
        [[program]]\ntext = \"\"\"\n    .random 0, 400, f64\n    allreduce.nb r1, 0, 0, 0x8000, 200\n\
        \x20   allreduce.nb r2, 1, 0, 0xC000, 200\n    wait r1\n    report %cycle\n    wait r2\n    report %cycle\n\"\"\"\n";
    for (text, line) in [(mix, 3), (overlap, 4)] {
        let (run, why) = hang(text);
        for told in [run, why] {
            let threads: Vec<&str> = told.lines().filter(|line| line.contains("thread 0 on MTP 0")).collect();
            let at = format!(", line {line} waits for a collective");
            assert!(threads.len() == 8 && threads.iter().all(|thread| thread.trim_end().ends_with(&at)), "{told}");
            assert!(told.contains("the operand slot of port") && told.contains("nothing moves any more"), "{told}");
        }
    }
}

#[test]
fn a_full_multicast_queue_is_named_in_a_hang() {
    // Core 5 takes no message; its queue is full, and the requests of the collective stand behind the messages.
    let text = "[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\nid = 0\nelements = 4\nstart_cycle = 3000\n\
        [[multicast]]\nid = 1\nsource = 0\nreceivers = [5]\n\
        [[program]]\ncores = [0]\ntext = \"\"\"\nagain: mcast.send 1, r1, 3, 8\n    add r1, r1, 1\n    bne r1, 400, again\n\"\"\"\n\
        [[program]]\ncores = [5]\ntext = \"\"\"\n    compute 20\n\"\"\"\n";
    let (run, why) = hang(text);
    let told = "core5.memory request waits for core5.memory: its multicast queue of tree 1 is full, with 8 messages that no thread has taken";
    assert!(run.contains(told) && !run.contains("takes nothing more"), "{run}");
    assert!(why.contains(told), "{why}");
    assert!(run.contains("core0, thread 0 on MTP 0, line 1 waits for a slot of a multicast queue"), "{run}");
}

#[test]
fn what_came_out_otherwise_than_it_was_recorded_is_said_to() {
    const OTHERWISE: &str = "something else came out";
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    // What `why` says beside its answer, and whether the page says that something else came out.
    let told = |file: &str| {
        let output = watershed(["why", file]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let report = watershed(["report", file, "-o", page.to_str().unwrap()]);
        assert_eq!(report.status, 0, "{}", report.stderr);
        (output.stderr, fs::read_to_string(&page).unwrap().contains(OTHERWISE))
    };
    for name in ["fig4-late-leaf", "fig7-barrier", "mesh-transpose"] {
        assert_eq!(told(&result(&folder, &[name])), (String::new(), false), "{name}");
    }
    let operands = folder.path().join("operands.npy");
    let mut bytes = fs::read(crate::support::root().join("traces/operands-4x16-f64.npy")).unwrap();
    fs::write(&operands, &bytes).unwrap();
    let scenario = folder.path().join("from-file.toml");
    let text = "name = \"from-file\"\nfamily = \"piuma\"\n[topology]\nkind = \"die\"\n[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\n\
                dtype = \"f64\"\nelements = 16\nparticipants = [0, 1, 2, 3]\ndata = { file = \"operands.npy\" }\n";
    fs::write(&scenario, text).unwrap();
    let file = result(&folder, &[scenario.to_str().unwrap()]);
    assert_eq!(told(&file), (String::new(), false));
    // Another sign of the last operand.
    *bytes.last_mut().unwrap() ^= 0x80;
    fs::write(&operands, bytes).unwrap();
    let (note, otherwise) = told(&file);
    let expected = format!("note: run again, {OTHERWISE} than {file} has, first at stamp.config_hash");
    assert!(note.starts_with(&expected) && note.lines().count() == 1 && otherwise, "{note}");
}
