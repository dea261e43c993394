//! `watershed topology` says which switches there are and how they are joined; `watershed check` says that packets arrive
//! and cannot deadlock (K-PIPE-1).

use serde_json::Value as Json;

use crate::share;
use crate::support::watershed;

fn json(arguments: &[&str]) -> Json {
    let output = watershed([&["topology", "--json"][..], arguments].concat());
    assert_eq!(output.status, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn figures_are_those_of_the_textbook() {
    let figures = |name: &str, set: &str| {
        let shown = json(&[name, "--set", set]);
        let figures = &shown["figures"];
        (
            figures["switches"].as_u64().unwrap(),
            figures["links_between_switches"].as_u64().unwrap(),
            figures["diameter"].as_u64().unwrap(),
            figures["bisection_links"].as_u64().unwrap(),
            (figures["mean_distance"].as_f64().unwrap() * 1000.0).round() as u64,
        )
    };
    // k x k mesh: 2 k (k - 1) links, diameter 2 (k - 1), bisection k, mean 2 (k^2 - 1) / 3k.
    assert_eq!(figures("mesh-uniform", "seed=1"), (64, 112, 14, 8, 5250));
    // k-ary n-cube of even k: n k^n links, diameter n k / 2, bisection 2 k^(n-1), mean n k / 4.
    assert_eq!(figures("torus-uniform", "seed=1"), (64, 128, 8, 16, 4000));
    assert_eq!(figures("torus-uniform", "topology.size=[4, 4, 4]"), (64, 192, 6, 32, 3000));
    // HyperX: S (S - 1) / 2 links a row, diameter D, bisection S^2 / 4 a row, mean D (1 - 1 / S).
    assert_eq!(figures("hyperx-uniform", "seed=1"), (16, 48, 2, 16, 1500));
    // k-ary n-tree: (n - 1) k^n links, diameter 2 (n - 1), full bisection.
    let tree = figures("fat-tree-uniform", "seed=1");
    assert_eq!((tree.0, tree.1, tree.2), (48, 128, 4));
    // Dragonfly: g a (a - 1) / 2 + g (g - 1) / 2 links, diameter 3.
    let dragonfly = figures("dragonfly-uniform", "seed=1");
    assert_eq!((dragonfly.0, dragonfly.1, dragonfly.2), (36, 54 + 36, 3));
    assert_eq!(figures("file-ring", "seed=1"), (6, 6, 3, 2, 1500));
    // A die: all-to-all in four tiles, two links for each of four positions between neighbouring tiles.
    assert_eq!(figures("allreduce-die", "seed=1").1, 4 * 6 + 3 * 8);
}

#[test]
fn every_link_is_listed_with_both_its_ports() {
    for name in
        ["allreduce-die", "torus-uniform", "hyperx-uniform", "fat-tree-uniform", "dragonfly-uniform", "file-ring"]
    {
        let shown = json(&[name]);
        let text = watershed(["topology", name]).stdout;
        let mut ports = std::collections::BTreeSet::new();
        for link in shown["links"].as_array().unwrap() {
            for end in ["from", "to"] {
                let node = link[end]["node"].as_str().unwrap();
                assert!(ports.insert((node.to_owned(), link[end]["port"].as_u64())), "{name}: a port has one link");
                assert!(text.contains(node), "{name}: {node}");
            }
            assert!(link["latency_cycles"].as_u64().unwrap() > 0);
        }
        let listed = text.lines().filter(|line| line.starts_with("  P") && !line.ends_with("engine")).count();
        let ends = shown["end_points"].as_array().unwrap().len();
        assert_eq!(listed, ports.len() - ends, "{name}: every port of a switch has its line");
    }
}

#[test]
fn latencies_follow_the_distance_or_the_fold() {
    let latencies = |arguments: &[&str]| -> Vec<(String, u64, u64)> {
        let level = |level: &Json| {
            let cycles = |key: &str| level[key].as_u64().unwrap();
            (level["level"].as_str().unwrap().to_owned(), cycles("latency_min_cycles"), cycles("latency_max_cycles"))
        };
        json(arguments)["levels"].as_array().unwrap().iter().map(level).collect()
    };
    let is = |name: &str, low, high| (name.to_owned(), low, high);
    assert_eq!(latencies(&["torus-uniform"]), [is("local", 1, 1), is("x", 2, 2), is("y", 2, 2)]);
    let distance = ["torus-uniform", "--set", "topology.latency=distance"];
    assert_eq!(latencies(&distance), [is("local", 1, 1), is("x", 1, 7), is("y", 1, 7)]);
    // The reference's flattened butterfly: two cycles a place, tiles of two by two end points.
    assert_eq!(latencies(&["hyperx-uniform"]), [is("local", 1, 1), is("x", 2, 6), is("y", 2, 6)]);
    assert_eq!(latencies(&["fat-tree-uniform"])[1..], [is("level0-1", 1, 1), is("level1-2", 2, 2)]);
    assert_eq!(latencies(&["file-ring"])[1..], [is("ring", 1, 4)]);
}

#[test]
fn a_picture_has_every_switch() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.svg");
    for (name, switches, links) in [
        ("allreduce-die", 16, 48),
        ("torus-uniform", 64, 128),
        ("fat-tree-uniform", 48, 128),
        ("dragonfly-uniform", 36, 90),
        ("file-ring", 6, 6),
    ] {
        let output = watershed(["topology", name, "--svg", file.to_str().unwrap()]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let picture = std::fs::read_to_string(&file).unwrap();
        assert_eq!(picture.matches("<path").count(), links, "{name}");
        assert_eq!(picture.matches("text-anchor").count(), switches, "{name}");
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n") && !picture.contains("NaN"), "{name}");
    }
    let big = ["topology", "mesh-uniform", "--set", "topology.size=[64, 64]", "--svg", file.to_str().unwrap()];
    let output = watershed(big);
    assert_eq!((output.status, output.stdout.as_str()), (2, ""));
    assert!(output.stderr.contains("a picture has room for 2048 switches, there are 4096"));
}

#[test]
fn links_of_large_pictures_stay_inside_and_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.svg");
    for (name, set) in [
        ("torus-uniform", "topology.size=[16, 16]"),
        ("torus-uniform", "topology.size=[4, 4, 4]"),
        ("hyperx-uniform", "topology.size=[8, 8]"),
        ("fat-tree-uniform", "topology.levels=4"),
        ("dragonfly-uniform", "seed=1"),
    ] {
        let more = ["--set", set, "--set", "topology.latencies_cycles=[1, 1, 1]"];
        let more = if set.contains("levels") { &more[..] } else { &more[..2] };
        let output = watershed([&["topology", name, "--svg", file.to_str().unwrap()], more].concat());
        assert_eq!(output.status, 0, "{}", output.stderr);
        let picture = std::fs::read_to_string(&file).unwrap();
        let numbers = |text: &str| -> Vec<f64> {
            text.split(|letter: char| !matches!(letter, '0'..='9' | '.' | '-'))
                .filter_map(|word| word.parse().ok())
                .collect()
        };
        let attribute = |line: &str, name: &str| {
            line.split_once(&format!("{name}=\"")).unwrap().1.split('"').next().unwrap().to_owned()
        };
        let room = numbers(&attribute(&picture, "viewBox"));
        let mut straight = 0;
        for line in picture.lines().filter(|line| line.starts_with("<path")) {
            let path = attribute(line, " d");
            let at = numbers(&path);
            let (from, to) = ((at[0], at[1]), (at[at.len() - 2], at[at.len() - 1]));
            straight += usize::from(path.contains('L'));
            // The ends, and where a curve is farthest from them.
            let mut points = vec![from, to];
            if let [x1, y1, x2, y2, x3, y3, x4, y4] = at[..] {
                points.push(((x1 + 3.0 * x2 + 3.0 * x3 + x4) / 8.0, (y1 + 3.0 * y2 + 3.0 * y3 + y4) / 8.0));
            }
            for (x, y) in points {
                let inside = (0.0..=room[2]).contains(&x) && (0.0..=room[3]).contains(&y);
                assert!(inside, "{name} {set}: {path} is not inside {room:?}");
                // A bent link stays in the gap beside its row: rows are 64 apart, and switches reach 10 from theirs.
                assert!((from.1 - to.1).abs() > 0.01 || (y - from.1).abs() < 40.0, "{name} {set}: {path}");
            }
        }
        assert!(straight > 0, "{name} {set}");
        if name.starts_with("fat") {
            assert!(room[3] * 5.0 > room[2], "a wide tree has room between its levels: {room:?}");
            assert_eq!(straight, picture.matches("<path").count(), "nothing stands between two levels");
        }
    }
}

/// In `make test` those of each topology whose smaller ones are soon proved, in `make soak` others as well.
#[test]
fn a_system_too_big_is_proved_on_a_smaller_one() {
    let levels = ["topology.levels=6", "topology.latencies_cycles=[1, 1, 1, 1, 1]"];
    let few = ["topology.global_links=1", "topology.group_switches=32"];
    let systems: [(&str, &[&str], &str); 6] = [
        ("mesh-uniform", &["topology.size=[64, 64]", "routing.algorithm=adaptive"], "mesh of"),
        ("torus-uniform", &["topology.size=[4, 4, 200]"], "torus of"),
        ("fat-tree-uniform", &levels, "3-ary"),
        ("dragonfly-uniform", &few, "dragonfly of"),
        ("torus-uniform", &["topology.size=[16, 16, 16]"], "torus of"),
        ("dragonfly-uniform", &["topology.global_links=6"], "dragonfly of"),
    ];
    let count = if share::is_whole() { systems.len() } else { 4 };
    for (name, overrides, on) in &systems[..count] {
        let sets = overrides.iter().flat_map(|set| ["--set", *set]);
        let output = watershed(["check", *name].into_iter().chain(sets));
        assert_eq!(output.status, 0, "{}", output.stderr);
        let line = output.stdout.lines().next().unwrap();
        let (_, place) = line.split_once("(shown on a smaller one: ").unwrap_or_else(|| panic!("{name}: {line}"));
        assert!(place.starts_with(*on), "{line}");
    }
}
