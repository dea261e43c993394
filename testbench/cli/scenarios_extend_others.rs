//! Scenarios that extend others: what is joined, where files are looked for, and where mistakes are shown.

use watershed::scenario::config::{TrafficPattern, Tree};
use watershed::scenario::load_file;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

const BASE: &str = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[link]\nlatency_ns = 5\n\
                    [[collective]]\nkind = \"allreduce\"\nelements = 8\n[[collective]]\nkind = \"barrier\"\nid = 1\n";

#[test]
fn tables_are_joined_and_elements_changed() {
    let folder = folder(&[
        ("base.toml", BASE),
        ("sub/middle.toml", "extends = \"../base.toml\"\nseed = 4\ncollective.0.elements = 16\n"),
        ("top.toml", "extends = \"sub/middle.toml\"\nswitch.ceng.stages = 4\nlink.latency_cycles = 9\n"),
    ]);
    let scenario = load_file(&folder.path().join("top.toml"), &["collective.1.start_cycle=7".into()])
        .unwrap_or_else(|problems| panic!("{problems}"))
        .scenario;
    assert_eq!((scenario.seed, scenario.switch.ceng.stages, scenario.link.latency.cycles), (4, 4, 9));
    assert_eq!((scenario.collectives[0].elements, scenario.collectives[1].start.cycle), (16, 7));
    assert_eq!(scenario.name, "top");
}

#[test]
fn a_scenario_is_named_by_its_own_file_or_itself() {
    let named = format!("name = \"the base\"\n{BASE}");
    let folder = folder(&[
        ("base.toml", &named),
        ("top.toml", "extends = \"base.toml\"\n"),
        ("own.toml", "extends = \"top.toml\"\nname = \"its own\"\n"),
    ]);
    for (file, name) in [("base.toml", "the base"), ("top.toml", "top"), ("own.toml", "its own")] {
        let loaded = load_file(&folder.path().join(file), &[]).unwrap_or_else(|p| panic!("{p}"));
        assert_eq!(loaded.scenario.name, name);
    }
}

#[test]
fn shipped_scenarios_are_found_from_any_folder() {
    for name in ["allreduce-die", "testbench/piuma/allreduce-die.toml"] {
        let text = format!("extends = \"{name}\"\ncollective.0.elements = 16\n");
        let folder = folder(&[("deep/top.toml", &text)]);
        let loaded = load_file(&folder.path().join("deep/top.toml"), &[]);
        assert_eq!(loaded.unwrap_or_else(|p| panic!("{p}")).scenario.collectives[0].elements, 16, "{name}");
    }
}

#[test]
fn files_of_a_base_that_ships_with_the_program_are_found() {
    let trace = "extends = \"mesh-trace\"\n";
    let folder = folder(&[("deep/top.toml", trace), ("other/more.toml", "extends = \"../deep/top.toml\"\n")]);
    for file in ["deep/top.toml", "other/more.toml"] {
        let loaded = load_file(&folder.path().join(file), &[]).unwrap_or_else(|p| panic!("{p}"));
        let TrafficPattern::Trace { packets, .. } = loaded.scenario.traffic[0].pattern else {
            panic!("{file}: no trace");
        };
        assert!(packets > 10, "{file}: {packets}");
    }
}

#[test]
fn files_of_a_base_stay_where_they_are() {
    let base = format!("{}data.file = \"v.csv\"\n", BASE.split("[[collective]]\nkind = \"barrier").next().unwrap());
    let rows = "1,2,3,4,5,6,7,8\n".repeat(8);
    let folder =
        folder(&[("a/base.toml", &base), ("a/v.csv", &rows), ("b/top.toml", "extends = \"../a/base.toml\"\n")]);
    let loaded = load_file(&folder.path().join("b/top.toml"), &[]).unwrap_or_else(|p| panic!("{p}"));
    assert_eq!(loaded.data(0)[3][7], 8f64.to_bits());
}

#[test]
fn registers_of_a_base_stay_where_they_are() {
    let base = format!("{}embedding = \"tree.toml\"\n", BASE.split("[[collective]]\nkind = \"barrier").next().unwrap());
    let folder = folder(&[
        ("a/base.toml", &base),
        ("a/tree.toml", "[core0]\nrequest = { I7 = [10] }\n"),
        ("b/top.toml", "extends = \"../a/base.toml\"\n"),
    ]);
    let loaded = load_file(&folder.path().join("b/top.toml"), &[]).unwrap_or_else(|p| panic!("{p}"));
    assert!(matches!(loaded.scenario.collectives[0].tree, Tree::Registers(_)));
}

#[test]
fn mistakes_point_into_the_file_they_are_in() {
    let folder = folder(&[
        ("typo.toml", "family = \"piuma\"\n[topology]\nkind = \"die\"\ntile = 3\n"),
        ("syntax.toml", "family = \n"),
        ("base.toml", BASE),
        ("circle.toml", "extends = \"circle2.toml\"\n"),
        ("circle2.toml", "extends = \"./circle.toml\"\n"),
    ]);
    for (text, message, place) in [
        ("extends = \"typo.toml\"\nseed = 2\n", "unknown key `tile`", "typo.toml:4:1"),
        ("extends = \"syntax.toml\"\n", "a value is missing", "syntax.toml:1:"),
        ("extends = \"nothing.toml\"\n", "there is no such file", "top.toml:1:11"),
        ("extends = 3\n", "`extends` is an integer", "top.toml:1:11"),
        ("extends = \"top.toml\"\n", "extends itself", "top.toml:1:11"),
        ("extends = \"circle.toml\"\n", "extends itself", "circle2.toml:1:11"),
        ("extends = \"base.toml\"\n\ncollective.7.elements = 1\n", "has no element 7", "top.toml:3:12"),
        ("extends = \"base.toml\"\nseed = \"x\"\n", "", "top.toml:2:8"),
    ] {
        let top = folder.path().join("top.toml");
        std::fs::write(&top, text).unwrap();
        let error = load_file(&top, &[]).unwrap_err().to_string();
        assert!(error.contains(message) && error.contains(place), "{text}: {error}");
    }
    let error = load_file(&folder.path().join("base.toml"), &["extends=\"x.toml\"".into()]);
    assert!(error.unwrap_err().to_string().contains("cannot be set"));
}
