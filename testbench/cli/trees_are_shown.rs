//! `embed` shows the trees of every family of engines before a run, and what it shows is recounted here.

use std::collections::BTreeSet;

use crate::support::{files, stem, watershed};

/// A line of a tree: how deep it stands, the entry or port above that it stands at, its name, and what is said of it.
struct Line {
    depth: usize,
    at: Option<u32>,
    name: String,
    said: Option<String>,
}

/// The trees of a scenario: head lines, and the lines of the tree.
fn trees(scenario: &str) -> Vec<(Vec<String>, Vec<Line>)> {
    let output = watershed(["embed", scenario]);
    assert_eq!(output.status, 0, "{scenario}: {}", output.stderr);
    output.stdout.split("\n\n").map(|text| tree(text.trim_end())).collect()
}

fn tree(text: &str) -> (Vec<String>, Vec<Line>) {
    let (mut head, mut lines) = (Vec::new(), Vec::new());
    for text in text.lines() {
        let rest = text.trim_start();
        let depth = (text.len() - rest.len()) / 2;
        if lines.is_empty() && (rest.starts_with("note ") || !rest.contains(": ")) {
            head.push(text.to_owned());
            continue;
        }
        let (at, rest) = match rest.split_once(" <- ") {
            Some((at, rest)) => (Some(at.trim_start_matches('P').parse().unwrap()), rest),
            None => (None, rest),
        };
        let (name, said) = match rest.split_once(": ") {
            Some((name, said)) => (name, Some(said.to_owned())),
            None => (rest, None),
        };
        lines.push(Line { depth, at, name: name.split(' ').next_back().unwrap().to_owned(), said });
    }
    (head, lines)
}

/// The lines below one.
fn below(lines: &[Line], at: usize) -> &[Line] {
    let rest = &lines[at + 1..];
    let end = rest.iter().position(|line| line.depth <= lines[at].depth).unwrap_or(rest.len());
    &rest[..end]
}

fn number_before(text: &str, what: &str) -> usize {
    let before = text.split(what).next().unwrap().trim_end();
    before.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{text}: {what}"))
}

/// Recounts a tree of armed engines, and says whether it is one.
fn counts_hold(scenario: &str, head: &[String], lines: &[Line]) -> bool {
    if !head[0].contains("armed by frames") || lines.is_empty() {
        return false;
    }
    let mut leaves = BTreeSet::new();
    for (at, line) in lines.iter().enumerate() {
        match &line.said {
            Some(said) => {
                let ends = below(lines, at).iter().filter(|line| line.said.is_none()).count();
                assert_eq!(said.rsplit(' ').next().unwrap().parse(), Ok(ends), "{scenario}: {}", line.name);
            }
            None => assert!(leaves.insert(&line.name), "{scenario}: {} stands twice", line.name),
        }
    }
    assert_eq!(number_before(&head[0], " end points"), leaves.len() + 1, "{scenario}");
    let reduce = lines.iter().filter(|line| line.said.as_ref().is_some_and(|said| said.starts_with("reduces"))).count();
    assert_eq!(number_before(&head[2], " engine"), reduce, "{scenario}");
    true
}

/// The same of packet engines: the bits of a PBV are those of what stands below, but for engines that hand responses on.
fn bits_hold(scenario: &str, head: &[String], lines: &[Line]) -> bool {
    if !head[0].contains("addressed by packets") {
        return false;
    }
    if lines.is_empty() {
        // Too many to be read: they are counted.
        assert!(number_before(head.last().unwrap(), " lines;") > 512, "{scenario}");
        return false;
    }
    let nodes: BTreeSet<&String> = lines.iter().filter(|line| line.said.is_none()).map(|line| &line.name).collect();
    assert_eq!(number_before(&head[0], " end points"), nodes.len(), "{scenario}");
    let hands_on = |said: &Option<String>| said.as_ref().is_some_and(|said| said.starts_with("hands on"));
    for (at, line) in lines.iter().enumerate() {
        let Some(said) = &line.said else { continue };
        let of = below(lines, at);
        let mask = said.split("0x").nth(1).unwrap().split(',').next().unwrap();
        let mask = u128::from_str_radix(mask, 16).unwrap();
        assert_eq!(number_before(said, " bits"), mask.count_ones() as usize, "{scenario}: {said}");
        if hands_on(&line.said) || of.iter().any(|line| hands_on(&line.said)) {
            continue;
        }
        let direct = of.iter().filter(|other| other.depth == line.depth + 1);
        let bits = direct.fold(0, |bits, line| bits | 1 << line.at.unwrap());
        assert_eq!(mask, bits, "{scenario}: {}", line.name);
    }
    true
}

#[test]
fn of_every_shipped_scenario_with_armed_or_addressed_engines() {
    let (mut armed, mut addressed) = (0, 0);
    for folder in ["armed", "pbv", "mixed"] {
        for path in files(&format!("testbench/{folder}"), "toml") {
            let name = stem(&path);
            for (head, lines) in trees(&name) {
                armed += usize::from(counts_hold(&name, &head, &lines));
                addressed += usize::from(bits_hold(&name, &head, &lines));
            }
        }
    }
    assert!(armed > 30 && addressed > 20, "{armed} {addressed}");
}

/// FIG. 6 of the description has one leaf switch without an engine, FIG. 7 of the patent two nodes at one switch and three at the others.
#[test]
fn of_the_figures_of_the_sources() {
    let (head, lines) = trees("fig6-no-engine").remove(0);
    assert_eq!(head[2], "depth         2, 4 engines");
    let passes: Vec<&str> = lines
        .iter()
        .filter(|line| line.said.as_ref().is_some_and(|said| said.starts_with("passes on")))
        .map(|line| &*line.name)
        .collect();
    assert_eq!(passes, ["s3"]);
    let tables = watershed(["embed", "fig7-barrier", "--registers"]).stdout;
    for whose in ["sw0000", "sw0010", "sw0020"] {
        let expected =
            [("sw0000", "0000_c000", "0x1f"), ("sw0010", "0010_c000", "0x3"), ("sw0020", "0020_c000", "0x7")];
        let (_, address, pbv) = expected.iter().find(|(of, ..)| *of == whose).unwrap();
        let line = format!("{whose} = {{ address = \"{address}\", context = 2, pbv = \"{pbv}\",");
        assert!(tables.contains(&line), "{tables}");
    }
}

#[test]
fn of_several_families_in_one_network_without_what_is_in_the_wires() {
    let output = watershed(["embed", "several-engines"]);
    assert!(!output.stdout.contains(".engine"), "{}", output.stdout);
    for of in [
        "gradients     allreduce on collective id 0",
        "norms         armed by frames",
        "counts        addressed by packets",
    ] {
        assert!(output.stdout.contains(of), "{of}: {}", output.stdout);
    }
    let one = watershed(["embed", "several-engines", "--collective", "norms", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!((json["trees"].as_array().unwrap().len(), &json["trees"][0]["multicast_id"]), (1, &0.into()));
    assert_eq!(json["trees"][0]["entries"].as_array().unwrap().len(), 16);
    // A second tree is its job's; a dot in a name makes no part of another job.
    let two = watershed(["embed", "two-trees", "--collective", "sum", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&two.stdout).unwrap();
    assert_eq!(json["trees"].as_array().unwrap().len(), 2);
    let other = watershed(["embed", "fig2-tree", "--set", "job.0.name='a.b'", "--collective", "a"]);
    assert!(other.stderr.contains("there is no job \"a\""), "{}", other.stderr);
}

#[test]
fn pictures_are_of_any_family_and_only_registers_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for scenario in ["fig2-tree", "fig7-barrier"] {
        let output = watershed(["embed", scenario, "--svg", "tree.svg", "--out", out]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let picture = std::fs::read_to_string(folder.path().join("tree.svg")).unwrap();
        let plain = watershed(["topology", scenario, "--svg", "plain.svg", "--out", out]);
        assert_eq!(plain.status, 0, "{}", plain.stderr);
        assert_ne!(picture, std::fs::read_to_string(folder.path().join("plain.svg")).unwrap(), "{scenario}");
        let saved = watershed(["embed", scenario, "--save", "tree.toml", "--out", out]);
        assert_eq!(saved.status, 2);
        assert!(saved.stderr.contains("no registers that a scenario could load"), "{}", saved.stderr);
        assert!(!folder.path().join("tree.toml").exists());
    }
    let none = watershed(["embed", "mesh-uniform"]);
    assert_eq!((none.status, none.stdout.as_str()), (2, ""));
    assert!(none.stderr.contains("no job of this scenario has engines in the network"), "{}", none.stderr);
}
