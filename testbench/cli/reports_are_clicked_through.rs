//! Issue 25: the report as a tool, in a real browser that clicks, filters, brushes and reads back.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use watershed::scenario::expr::Expr;
use watershed::scenario::load_named;
use watershed::study::report::{Subject, SweepSubject, page};
use watershed::study::sweep::best::{BestQuery, Group};
use watershed::study::sweep::{PointResult, Row, Store, Sweep, of_store};

use crate::support::{training, watershed};
use crate::webdriver::Browser;

const TOOL: &str = ".explore";

fn shipped(folder: &Path) -> PathBuf {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let output = watershed(["sweep", "testbench/sweeps/stages.toml", "--out", &at("stages"), "-j", "2"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let output = watershed(["run", "allreduce-die", "--set", "job.0.elements=64", "--out", folder.to_str().unwrap()]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let output = watershed(["report", &at("stages"), &at("allreduce-die.json"), "-o", &at("page.html")]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    folder.join("page.html")
}

/// What stands in a column of the table, from above.
fn column(browser: &Browser, name: &str) -> Vec<f64> {
    let script = format!(
        "const at = [...document.querySelectorAll('{TOOL} table.points th button')].findIndex((b) => b.dataset.column === '{name}');
         return [...document.querySelectorAll('{TOOL} table.points tbody tr')].map((tr) => Number(tr.cells[at].textContent))"
    );
    browser.script(&script).as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn a_sweep_is_sorted_filtered_brushed_and_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let page = shipped(folder.path());
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert_eq!(browser.text(".count"), "16 of 16 points");

    // Sorting: by a click up, by another one down.
    browser.click("button[data-column=gates]");
    let gates = column(&browser, "gates");
    assert!(gates.len() == 16 && gates.windows(2).all(|pair| pair[0] <= pair[1]), "{gates:?}");
    browser.click("button[data-column=gates]");
    let down = column(&browser, "gates");
    assert!(down.windows(2).all(|pair| pair[0] >= pair[1]) && down[0] > down[15], "{down:?}");
    let state = browser.script("return document.querySelector('button[data-column=gates]').parentNode.ariaSort");
    assert_eq!(state, "descending");

    // Filters, and one that is wrong.
    browser.write(".filter", "latency_ns < 600 and stages >= 2");
    let (latency, stages) = (column(&browser, "latency_ns"), column(&browser, "stages"));
    assert!(!latency.is_empty() && latency.len() < 16, "{latency:?}");
    assert!(latency.iter().all(|value| *value < 600.0) && stages.iter().all(|value| *value >= 2.0));
    assert_eq!(browser.text(".count"), format!("{} of 16 points", latency.len()));
    let kept = browser.text(".count");
    browser.write(".filter", "latency < 600");
    assert_eq!(
        browser.text(".wrong"),
        "`latency` is neither an axis nor a column; did you mean `latency_ns`? \
         (still shown: the points with latency_ns < 600 and stages >= 2)"
    );
    assert_eq!((browser.text(".count"), column(&browser, "latency_ns")), (kept, latency));
    browser.click(".reset");
    assert_eq!((browser.text(".count").as_str(), browser.text(".wrong").as_str()), ("16 of 16 points", ""));

    // Any two columns can be plotted, with their units.
    for (x, y) in [
        ("latency_ns", "gates"),
        ("gates", "latency_ns"),
        ("pipeline", "storage_bits"),
        ("network_clock_mhz", "latency_ns"),
    ] {
        browser.choose("select.x", x);
        browser.choose("select.y", y);
        let titles = browser.script("const { x, y } = document.querySelector('.explore .plot').dataset; return [x, y]");
        assert!(titles[0].as_str().unwrap().starts_with(x), "{titles}");
        assert!(titles[1].as_str().unwrap().starts_with(y), "{titles}");
    }
    assert!(browser.text("select.x").contains("network_clock_mhz (MHz)"));

    // Series are switched off in the legend.
    browser.choose("select.x", "latency_ns");
    browser.choose("select.y", "gates");
    browser.choose("select.by", "stages");
    let off = "return document.querySelectorAll('.explore .u-legend tr.u-off').length";
    assert_eq!(browser.script(off), 0);
    browser.click(".explore .u-legend tr:nth-child(3)");
    assert_eq!(browser.script(off), 1);
    browser.click(".explore .u-legend tr:nth-child(3)");

    // A click on a point shows its configuration and its command, which runs.
    browser.script("document.querySelector('.explore .plot').scrollIntoView()");
    let place = |row: usize| {
        let at = browser.script(&format!("return document.querySelector('{TOOL}').locate({row})"));
        (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
    };
    browser.drag(place(7), place(7));
    let picked = browser.script("return document.querySelector('tr.picked').dataset.row");
    assert_eq!(picked, "7");
    assert!(browser.text(".sets").contains("switch.ceng.stages=2"), "{}", browser.text(".sets"));
    let command = browser.text(".command");
    let output = watershed(command.split_whitespace().skip(1));
    assert_eq!(output.status, 0, "{command}: {}", output.stderr);

    // Brushing: what is inside stays in the table, the first of it is shown.
    browser.choose("select.drag", "brush");
    browser.script("document.querySelector('.explore .plot').scrollIntoView()");
    let (x, y) = place(0);
    browser.drag((x - 12.0, y - 12.0), (x + 8.0, y + 9.0));
    assert_eq!(browser.text(".count"), "1 of 16 points");
    assert_eq!(column(&browser, "point"), [0.0]);
    assert!(browser.text(".command").contains("switch.ceng.stages=1"), "{}", browser.text(".command"));
    browser.click(".reset");

    // Dragging zooms, a double click shows all again.
    browser.choose("select.drag", "zoom");
    browser.script("document.querySelector('.explore .plot').scrollIntoView()");
    let (away, (x, y)) = (place(0), place(6));
    browser.drag((x - 25.0, y - 25.0), (x + 70.0, y + 60.0));
    let moved = place(0);
    assert!((moved.0 - away.0).abs() + (moved.1 - away.1).abs() > 40.0, "{away:?} {moved:?}");
}

#[test]
fn filters_of_pages_are_the_expressions_of_sweeps() {
    let folder = tempfile::tempdir().unwrap();
    let page = shipped(folder.path());
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let store = Store::open(&folder.path().join("stages")).unwrap();
    let (rows, sweep) = (store.rows(), of_store(&store, folder.path()).unwrap());
    let groups = Group::all(&rows);
    for text in [
        "latency_ns < 600",
        "latency_ns<600 and stages>=2 or gates > 5e6",
        "not (stages == 2 || pipeline == 4) && gates != 0x0a",
        "scenario == die",
        "scenario == 'die' and status == ok",
        "min(stages, pipeline) ^ 2 > 1 and -stages ^ 2 < 0",
        "ceil(log2(gates)) % 2 == 1 and 1 / 0 != 2",
        "round(latency_ns / 100) == 5",
        "latency_ns = 600",
        "latency_ns <",
        "(stages",
        "stages < 600ns",
        "stages 2",
        "stages == 'x",
        "sqr(2) > 1",
        "sqrt(1, 2)",
        "stages § 2",
        "1.2.3 < 2",
        "max(1",
        "or",
    ] {
        let script = format!(
            "try {{ return document.querySelector('{TOOL}').rowsOf({text:?}) }} catch (e) {{ return e.message }}"
        );
        let found = browser.script(&script);
        match Expr::parse_argument(text) {
            Err(wrong) => assert_eq!(found, wrong, "{text}"),
            Ok(expr) => {
                let ask = BestQuery { constraints: vec![expr], ..BestQuery::default() }.with_words(&sweep, &rows);
                let meets = |group: &&Group<'_>| group.meets(&sweep, &ask.constraints);
                let expected: Vec<u64> = groups.iter().filter(meets).map(|group| group.first().number).collect();
                assert_eq!(found, serde_json::json!(expected), "{text}");
            }
        }
    }
    let told = |text: &str| {
        browser.write(".filter", text);
        browser.text(".wrong")
    };
    let words = "the values of `scenario` are words, which stand in quotes: `scenario == 'die'`";
    assert!(told("scenario == dye").contains(words), "{}", told("scenario == dye"));
    browser.click(".reset");
    assert!(told("stags > 2").contains("did you mean `stages`? (still shown: all points)"), "{}", told("stags > 2"));
}

#[test]
fn the_load_of_links_is_shown_over_time() {
    let folder = tempfile::tempdir().unwrap();
    let page = shipped(folder.path());
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let widths =
        "return [...document.querySelectorAll('path.load')].map((path) => path.getAttribute('stroke-opacity')).join()";
    let whole = browser.script(widths);
    assert_eq!(browser.text(".time output"), "the whole run");
    let slide = |to: u32| {
        browser.script(&format!(
            "const slider = document.querySelector('.time input'); slider.value = {to}; slider.dispatchEvent(new Event('input'))"
        ));
        (browser.text(".time output"), browser.script(widths))
    };
    let (early, later) = (slide(2), slide(20));
    assert!(early.0.starts_with("cycles ") && early.0 != later.0, "{early:?}");
    assert!(early.1 != later.1 && early.1 != whole, "the load of links changes over time");
    // Other charts zoom as well.
    assert!(
        browser.script("return document.querySelectorAll('figure.chart.live .uplot').length").as_u64().unwrap() >= 4
    );
    let errors = browser.script("return document.querySelectorAll('figure.chart:not(.live)').length");
    assert_eq!(errors, 0);
}

#[test]
fn ranks_are_zoomed_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let trace = training(folder.path());
    let output = watershed(["run", "training-16", "--workload", &trace, "--out", folder.path().to_str().unwrap()]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let output = watershed(["report", &at("training-16.json"), "-o", &at("page.html")]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let document: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(at("training-16.json")).unwrap()).unwrap();
    let page = fs::read_to_string(at("page.html")).unwrap();
    // Without scripts there is a picture: both tracks of sixteen ranks, and where each has spent its cycles.
    let ranks = page.split("<figure class=\"ranks\">").nth(1).unwrap();
    let picture = ranks.split("</svg>\n").next().unwrap();
    assert_eq!(picture.matches("<path class=\"line c0\" style").count(), 16);
    assert_eq!(picture.matches("<path class=\"line c1\" style").count(), 16);
    assert!(picture.contains("class=\"critical\""));
    let exposed = document["workload"]["ranks"][3]["exposed_cycles"].to_string();
    assert!(ranks.contains(&format!("<td class=\"n\">{exposed}</td>")));
    let span = document["workload"]["spans"].as_array().unwrap().iter();
    let span = span.clone().find(|span| span["rank"] == 5 && span["name"].as_str().unwrap().contains("f5 gradients"));
    let span = span.expect("the all-reduce of a layer");
    let (from, to) = (span["start_cycle"].as_u64().unwrap(), span["end_cycle"].as_u64().unwrap());

    let Some(browser) = Browser::start() else { return };
    browser.open(&folder.path().join("page.html"));
    browser.script("document.querySelector('figure.ranks').scrollIntoView()");
    assert_eq!(browser.script("return document.querySelectorAll('figure.ranks.live .uplot').length"), 1);
    let place = |cycle: u64| {
        let at = browser.script(&format!("return document.querySelector('figure.ranks').locate(5, {cycle}, 1)"));
        (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
    };
    let shown = || {
        let scale = "const { min, max } = document.querySelector('figure.ranks').plot.scales.x; return [min, max]";
        let range = browser.script(scale);
        (range[0].as_f64().unwrap(), range[1].as_f64().unwrap())
    };
    let middle = place(u64::midpoint(from, to));
    browser.drag(middle, middle);
    let told = browser.text("figure.ranks output");
    assert!(told.contains("rank 5: ") && told.contains("f5 gradients"), "{told}");
    assert!(browser.script("return document.querySelector('figure.ranks canvas').width > 0") == true);

    // Dragging zooms into what was drawn over, a double click shows all again.
    let whole = shown();
    browser.drag(place(from), place(to));
    let part = shown();
    let dot = (whole.1 - whole.0) / 200.0;
    assert!((part.0 - from as f64).abs() < dot && (part.1 - to as f64).abs() < dot, "{part:?} {from} {to}");
    browser.script(
        "document.querySelector('figure.ranks .u-over').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))",
    );
    assert_eq!(shown(), whole);
}

#[test]
fn ten_thousand_points_stay_fluid() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut text = "[[scenario]]\nfile = \"allreduce-die\"\n[[objective]]\nname = \"latency_ns\"\n[[objective]]\nname = \"gates\"\n".to_owned();
    for (name, key) in [("a", "seed"), ("b", "switch.ceng.stages")] {
        write!(text, "[[axis]]\nname = \"{name}\"\nkey = \"{key}\"\nrange = {{ from = 1, to = 100, step = 1 }}\n")
            .unwrap();
    }
    let sweep = Sweep::parse("s.toml", &text, folder.path()).unwrap();
    load_named(Path::new("allreduce-die"), &[]).unwrap();
    let rows = (0..10_000u64).map(|number| {
        let (a, b) = (number / 100 + 1, number % 100 + 1);
        let columns =
            serde_json::json!({ "latency_ns": 5000.0 / a as f64 + (number * 7919 % 100) as f64, "gates": 100 * a + b });
        Row {
            number,
            key: format!("{number:016x}"),
            scenario: "allreduce-die".into(),
            file: "allreduce-die".into(),
            repetition: 0,
            seed: 1,
            axes: [("a".to_owned(), a.to_string()), ("b".to_owned(), b.to_string())].into(),
            sets: vec![format!("seed={a}"), format!("switch.ceng.stages={b}")],
            status: "ok".into(),
            facts: Some(PointResult::of(serde_json::json!({ "columns": columns }))),
            error: String::new(),
        }
    });
    let subject = SweepSubject { source: "many".into(), sweep, rows: rows.collect() };
    let file = folder.path().join("many.html");
    fs::write(&file, page(&[Subject::Sweep(Box::new(subject))])).unwrap();
    browser.open(&file);
    assert_eq!(browser.text(".count"), "10000 of 10000 points");
    // Each step draws the plot and the table anew.
    let took = browser.script(
        "const took = {}; const time = (name, work) => { const begin = performance.now(); work(); document.body.offsetHeight; took[name] = performance.now() - begin; };
         const of = (selector) => document.querySelector(selector); const tell = (of, kind) => of.dispatchEvent(new Event(kind, { bubbles: true }));
         time('sort', () => of('button[data-column=gates]').click());
         time('filter', () => { of('.filter').value = 'gates < 5000 and a > 3'; tell(of('.filter'), 'input'); });
         time('all', () => of('.reset').click());
         time('plot', () => { of('select.y').value = 'a'; tell(of('select.y'), 'change'); });
         time('page', () => of('.next').click());
         return took",
    );
    println!("{took}");
    for (step, time) in took.as_object().unwrap() {
        assert!(time.as_f64().unwrap() < 1000.0, "{step}: {time} ms");
    }
    assert_eq!(browser.text(".page"), "page 2 of 200");
}
