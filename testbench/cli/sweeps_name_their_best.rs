//! Issue 25: a sweep answers a question in one command; its columns say their units; its search finds the front.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use watershed::study::sweep::front::{front, hypervolume, mean_objectives};
use watershed::study::sweep::{Plan, PointResult, Store, Sweep};

use crate::share;
use crate::support::{Output, watershed};

/// Runs a sweep of this text into a folder.
fn sweep(folder: &Path, text: &str, more: &[&str]) -> Output {
    let file = folder.join("s.toml");
    fs::write(&file, text).unwrap();
    let out = folder.join("out");
    watershed([&["sweep", file.to_str().unwrap(), "-o", out.to_str().unwrap(), "-j", "2"], more].concat())
}

fn best(folder: &Path, more: &[&str]) -> Output {
    watershed([&["sweep", "best", folder.join("out").to_str().unwrap()], more].concat())
}

/// The table of a sweep: a map a row.
fn table(folder: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(folder.join("out/points.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<String>>());
    let head = lines.next().unwrap();
    lines.map(|line| head.iter().cloned().zip(line).collect()).collect()
}

/// A space of 432 points, two axes beside a clock that the adders could reach. In `make test` every other value of those two: 120, of a
/// system that is made `small`.
fn space(scenario: &str, unit: &str, [set, small]: [&str; 2], axes: [(&str, &str); 2], time: &str) -> String {
    let set = if share::is_whole() { set } else { small };
    let axis = |(key, values): (&str, &str)| {
        let values = share::one_in(2, values.split(", ")).collect::<Vec<_>>().join(", ");
        format!("[[axis]]\nname = \"{key}\"\nkey = \"{key}\"\nvalues = [{values}]\n")
    };
    format!(
        "[[scenario]]\nfile = \"{scenario}\"\nset = [{set}]\n\
         [[axis]]\nkeys = [\"{unit}.stages\", \"clock.frequency_mhz\"]\n\
         values = [[1, 400], [2, 700], [3, 950], [4, 1100], [5, 1200], [6, 1250]]\n{}{}\
         [[objective]]\nname = \"{time}\"\n[[objective]]\nname = \"gates\"\n",
        axis(axes[0]),
        axis(axes[1])
    )
}

/// One space of each family.
fn spaces() -> [String; 3] {
    let buffer = "switch.collective_buffer_flits";
    [
        space(
            "allreduce-die",
            "switch.ceng",
            ["\"job.0.elements=64\", \"memory.bandwidth_gbps=unlimited\""; 2],
            [(buffer, "2, 3, 4, 6, 8, 12, 16, 24, 32"), ("switch.ceng.operand_slots", "1, 2, 3, 4, 6, 8, 12, 16")],
            "latency_ns",
        ),
        space(
            "face-off-armed",
            "armed.engine",
            ["", "\"topology.size=[2, 2]\", \"job.0.armed.root=0\", \"job.0.elements=32\""],
            [("armed.engine.descriptors", "0, 1, 2, 3, 4, 6, 8, 12, 16"), (buffer, "12, 13, 14, 16, 20, 24, 32, 64")],
            "latency_ns",
        ),
        space(
            "face-off-pbv",
            "pbv.engine",
            [
                "",
                "\"topology.size=[2, 2]\", \"job.0.pbv.source=0\", \"job.0.pbv.master='s0_0'\", \"job.0.elements=16\"",
            ],
            [("link.width_bits", "8, 16, 24, 32, 40, 48, 56, 64"), (buffer, "2, 3, 4, 6, 8, 12, 16, 24, 32")],
            "latency_ns",
        ),
    ]
}

/// With a tenth of the points in `make soak`, and a sixth of the 120 in `make test`. As many random points are mostly farther from it.
#[test]
fn a_search_comes_near_the_front_of_every_family() {
    let budget = if share::is_whole() { 43 } else { 20 };
    for text in spaces() {
        let folder = tempfile::tempdir().unwrap();
        let output = sweep(folder.path(), &text, &[]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let all = Sweep::parse("s.toml", &text, folder.path()).unwrap();
        let rows = Store::open(&folder.path().join("out")).unwrap().rows();
        let facts: BTreeMap<Vec<String>, Option<PointResult>> =
            rows.iter().map(|row| (row.sets.clone(), row.facts.clone())).collect();
        let cost = |facts: &Option<PointResult>| mean_objectives(&all, std::slice::from_ref(facts));
        let values: Vec<Option<Vec<f64>>> = facts.values().map(cost).collect();
        assert!(values.len() >= 120 && values.iter().flatten().count() >= values.len() - 32, "points fail");
        let of = |values: &[Option<Vec<f64>>]| -> Vec<Vec<f64>> {
            front(values).into_iter().filter_map(|at| values[at].clone()).collect()
        };
        let whole = of(&values);
        // The reference is the worst of the front itself: what is far from it would make every front look good.
        let reference: Vec<f64> =
            (0..2).map(|at| whole.iter().map(|value| value[at]).fold(f64::MIN, f64::max) * 1.000_1).collect();
        for seed in 1..=3 {
            let text = format!("seed = {seed}\n[search]\nkind = \"pareto\"\nbudget = {budget}\n{text}");
            let search = Sweep::parse("s.toml", &text, folder.path()).unwrap();
            let mut plan = Plan::new(&search).unwrap();
            let mut found: Vec<Option<PointResult>> = Vec::new();
            loop {
                let batch = plan.next(&found);
                if batch.is_empty() {
                    break;
                }
                found.extend(batch.iter().map(|point| facts[&point.sets(&search)].clone()));
            }
            assert!(found.len() <= budget, "{}", found.len());
            let values: Vec<Option<Vec<f64>>> = found.iter().map(cost).collect();
            let share = hypervolume(&of(&values), &reference) / hypervolume(&whole, &reference);
            println!("{} seed {seed}: {:.4} of {} points", all.scenarios[0].name, share, whole.len());
            assert!(share >= 0.95, "{}, seed {seed}: {share}", all.scenarios[0].name);
        }
    }
}

const QUICK: &str = "
[[scenario]]
file = \"allreduce-die\"
name = \"piuma\"
set = [\"job.0.elements=8\"]
[[scenario.axis]]
name = \"stages\"
key = \"switch.ceng.stages\"
values = [1, 2, 4]
[[scenario]]
file = \"fig2-tree\"
name = \"armed\"
[[scenario.axis]]
name = \"stages\"
key = \"armed.engine.stages\"
values = [1, 2, 4]
[[scenario]]
file = \"fig7-eleven-writes\"
name = \"pbv\"
[[scenario.axis]]
name = \"stages\"
key = \"pbv.engine.stages\"
values = [1, 2, 4]
[[axis]]
name = \"link\"
key = \"link.latency_cycles\"
values = [2, 6]
";

/// What stands below the first line, which has the text of conditions.
fn rest(output: &Output) -> &str {
    output.stdout.split_once('\n').unwrap().1
}

#[test]
fn the_cheapest_point_under_a_limit_is_named_with_its_command() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(sweep(folder.path(), QUICK, &[]).status, 0);
    let rows = table(folder.path());
    assert_eq!(rows.len(), 18);
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().unwrap();
    for family in ["piuma", "armed", "pbv"] {
        let own: Vec<_> = rows.iter().filter(|row| row["scenario"] == family).collect();
        let mut times: Vec<f64> = own.iter().map(|row| number(row, "latency_ns")).collect();
        times.sort_by(f64::total_cmp);
        let limit = times[3];
        let meets = |row: &&&BTreeMap<String, String>| number(row, "latency_ns") < limit && row["link"] == "2";
        let expected =
            own.iter().filter(meets).min_by(|a, b| number(a, "gates").total_cmp(&number(b, "gates"))).unwrap();
        let conditions = [format!("latency_ns<{limit}"), format!("scenario == '{family}'"), "link == 2".to_owned()];
        let mut arguments = vec!["--min", "gates", "--json"];
        for text in &conditions {
            arguments.extend(["--where", text.as_str()]);
        }
        let output = best(folder.path(), &arguments);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let found: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(found[0]["point"].to_string(), expected["point"], "{family}: {found}");
        assert_eq!(found[0]["values"]["gates"].as_f64(), expected["gates"].parse().ok());
        // The command makes the point again.
        let command = found[0]["command"].as_str().unwrap().replace('\'', "");
        let words: Vec<&str> = command.split_whitespace().skip(1).chain(["--json"]).collect();
        let document: Value = serde_json::from_str(&watershed(words).stdout).unwrap();
        assert_eq!(document["stamp"]["config_hash"], expected["key"].as_str());
    }
    // A shell takes the quotes of words away, so words may stand without them.
    let quoted = best(folder.path(), &["--min", "gates", "--where", "scenario == 'armed' and status == 'ok'"]);
    let bare = best(folder.path(), &["--min", "gates", "--where", "scenario==armed and status == ok"]);
    assert_eq!((bare.status, rest(&bare)), (0, rest(&quoted)), "{}", bare.stderr);
    let wrong = best(folder.path(), &["--min", "gates", "--where", "scenario==armet"]);
    assert_eq!(wrong.status, 2);
    let words = "the values of `scenario` are words, which stand in quotes: `scenario == 'armed'`, `scenario == 'pbv'`";
    assert!(wrong.stderr.contains(words), "{}", wrong.stderr);
    let filtered = format!("filter = [\"scenario == pbv\"]\nconstraint = [\"scenario != armed\"]\n{QUICK}");
    let other = tempfile::tempdir().unwrap();
    let output = sweep(other.path(), &filtered, &[]);
    assert!(output.status == 0 && output.stdout.starts_with("6 points: "), "{} {}", output.stdout, output.stderr);
    let output = best(folder.path(), &["--max", "cycles / job_cycles", "--top", "2"]);
    assert!(
        output.stdout.starts_with("best of 18 points:\n") && output.stdout.lines().count() == 6,
        "{}",
        output.stdout
    );
    let output = best(folder.path(), &["--min", "gates", "--min", "latency_ns", "--where", "scenario == 'pbv'"]);
    assert!(output.stdout.starts_with("Pareto front, "), "{}", output.stdout);
}

#[test]
fn what_no_point_has_or_meets_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("constraint = [\"cycles > 0\"]\n{QUICK}").replace("[1, 2, 4]", "[2]");
    assert_eq!(sweep(folder.path(), &text, &[]).status, 0);
    for (arguments, status, words) in [
        (&["--min", "gate"][..], 2, "did you mean `gates`?"),
        (&["--min", "gates", "--where", "latency_s < 3"], 2, "did you mean `latency_ns`?"),
        (&["--min", "head_wait_cycle"], 2, "did you mean `head_wait_cycles`?"),
        (&["--min", "gates", "--where", "stags == 2"], 2, "did you mean `stages`?"),
        (&["--min", "gates +"], 2, "a value is missing here"),
        (&[], 2, "--min EXPR or --max EXPR says what is best"),
        (&["--min", "gates", "--where", "latency_ns < 1"], 1, "none of 6 points meets all constraints"),
    ] {
        let output = best(folder.path(), arguments);
        assert_eq!((output.status, output.stdout.as_str()), (status, ""), "{arguments:?}");
        assert!(output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
    let output = best(folder.path(), &["--min", "gates", "--where", "latency_ns < 1"]);
    assert!(output.stderr.contains("latency_ns < 1: 0 points; latency_ns is "), "{}", output.stderr);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(best(empty.path(), &["--min", "gates"]).status, 2);

    for (text, words) in [
        ("filter = [\"gates < 3\"]\n", "`constraint` takes it"),
        ("constraint = [\"gate < 3\"]\n", "did you mean `gates`?"),
        ("[[objective]]\nname = \"latencyns\"\n", "did you mean `latency_ns`?"),
    ] {
        let text = if text.starts_with('[') { format!("{QUICK}{text}") } else { format!("{text}{QUICK}") };
        let output = sweep(empty.path(), &text, &[]);
        assert!(output.status == 2 && output.stderr.contains(words), "{text}: {}", output.stderr);
    }
}

#[test]
fn one_objective_names_its_best_and_constraints_hold_in_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("constraint = [\"link == 6\"]\n{QUICK}[[objective]]\nname = \"links.waits.links\"\n");
    let output = sweep(folder.path(), &text, &[]);
    assert_eq!(output.status, 1, "{}", output.stdout);
    assert!(
        output.stderr.contains("objective `links.waits.links` has a value at none of 18 points"),
        "{}",
        output.stderr
    );
    let text = format!("constraint = [\"link == 6\"]\n{QUICK}[[objective]]\nname = \"time_ns\"\n");
    let output = sweep(folder.path(), &text, &["--resume"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let rows = table(folder.path());
    let time = |row: &BTreeMap<String, String>| row["time_ns"].parse::<f64>().unwrap();
    let least = rows.iter().filter(|row| row["link"] == "6").map(time).fold(f64::MAX, f64::min);
    let mut lines = output.stdout.lines().skip_while(|line| !line.starts_with("best of"));
    assert_eq!(lines.next(), Some("best of 18 points; 9 meet link == 6:"), "{}", output.stdout);
    let found: f64 = lines.nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!((found - least).abs() < 1e-6 && rows.iter().map(time).any(|time| time < least), "{found} {least}");
}

#[test]
fn strict_sweeps_fail_where_points_do() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [2, 99]\n";
    assert_eq!(sweep(folder.path(), text, &[]).status, 0);
    let output = sweep(folder.path(), text, &["--resume", "--strict"]);
    assert_eq!(output.status, 1);
    assert!(output.stdout.contains("1 refused:"), "{}", output.stdout);
    assert_eq!(sweep(folder.path(), &text.replace(", 99", ""), &["--resume", "--strict"]).status, 0);
}

#[test]
fn columns_say_their_units_and_times_their_clock() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "{QUICK}[[axis]]\nkeys = [\"clock.frequency_mhz\", \"seed\"]\ncolumns = [\"clock_mhz\", \"run\"]\nvalues = [[500, 3], [1000, 4]]\n\
         [[metric]]\nname = \"density\"\nvalue = \"flits / cycles\"\nunit = \"flits a cycle\"\n"
    );
    assert_eq!(sweep(folder.path(), &text, &[]).status, 0);
    let units = fs::read_to_string(folder.path().join("out/columns.csv")).unwrap();
    let units: BTreeMap<&str, &str> = units.lines().filter_map(|line| line.split_once(',')).collect();
    let rows = table(folder.path());
    assert!(rows[0].keys().all(|name| units.contains_key(name.as_str())), "{units:?}");
    assert_eq!(
        (units["clock_mhz"], units["link"], units["density"]),
        ("MHz", "cycles of the network clock", "flits a cycle")
    );
    // What counts or measures has a unit.
    for name in ["cycles", "latency_ns", "packet_latency_p99_ns", "gates", "busiest_link", "network_clock_mhz"] {
        assert!(!units[name].is_empty(), "{name}");
    }
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().unwrap();
    for row in &rows {
        assert_eq!(row["clock_mhz"], row["network_clock_mhz"]);
        assert_eq!(row["run"], row["seed"]);
        for (cycles, ns) in [("cycles", "time_ns"), ("latency_cycles", "latency_ns")] {
            let expected = number(row, cycles) * 1000.0 / number(row, "clock_mhz");
            assert!((number(row, ns) - expected).abs() < 1e-6 * expected, "{row:?}");
        }
    }
}

/// Numbers in a line of a summary, with the digits behind their point.
fn numbers(line: &str) -> Vec<(f64, usize)> {
    let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.' && letter != '_');
    let number = |word: &str| {
        let word = word.trim_end_matches('.');
        let plain = word.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
        let digits = word.split_once('.').map_or(0, |(_, digits)| digits.len());
        Some((word.parse().ok().filter(|_| plain)?, digits))
    };
    words.filter_map(number).collect()
}

#[test]
fn every_number_of_a_summary_can_be_an_objective() {
    for scenario in
        ["allreduce-die", "fig2-tree", "fig7-eleven-writes", "mesh-transpose", "face-off-armed", "face-off-pbv"]
    {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(sweep(folder.path(), &format!("[[scenario]]\nfile = \"{scenario}\"\n"), &[]).status, 0);
        let rows = Store::open(&folder.path().join("out")).unwrap().rows();
        let facts = rows[0].facts.as_ref().unwrap();
        let known: Vec<f64> = facts.paths().iter().filter_map(|path| facts.named(path)?.number()).collect();
        let output = watershed(["run", scenario, "-q"]);
        let mut seen = 0;
        // What was run, for how long it was to be measured, and the number of checks are no measurements. Shares are of sums.
        let told = |line: &&str| !line.starts_with("checks") && !line.starts_with("measured");
        let lines = output.stdout.lines().skip(1).filter(told);
        for line in lines.map(|line| line.replace("(95 %", "(")) {
            let line = line.split(" %").next().unwrap_or(&line);
            let shares = usize::from(line.starts_with("head waits") || line.contains("cycles before"));
            let all = numbers(line);
            for (number, digits) in all.iter().take(all.len() - shares.min(all.len())) {
                let near = |value: f64| (value - number).abs() <= 0.500_001 * 10f64.powi(-(*digits as i32));
                let there = |value: &f64| {
                    value.to_bits() == number.to_bits()
                        || *digits > 0 && [1.0, 100.0, 1e-3].iter().any(|by| near(value * by))
                };
                assert!(known.iter().any(there), "{scenario}: {number} of `{line}`");
                seen += 1;
            }
        }
        assert!(seen >= 5, "{scenario}: {}", output.stdout);
    }
}
