//! Reports: one page that loads nothing, whose parts are there, opened in a real browser where there is one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{root, watershed};

/// A page of a run, a run of another family, and a sweep with a front.
fn page(folder: &Path) -> PathBuf {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    for (scenario, set) in [
        ("allreduce-die", "collective.0.elements=40"),
        ("mesh-transpose", "traffic.0.rate=0.2"),
        ("fig2-tree", "seed=1"),
    ] {
        let output = watershed(["run", scenario, "--set", set, "--out", folder.to_str().unwrap()]);
        assert_eq!(output.status, 0, "{}", output.stderr);
    }
    let output = watershed(["sweep", "testbench/sweeps/stages.toml", "--out", &at("stages"), "-j", "2"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let page = folder.join("report.html");
    let files = [
        at("allreduce-die.json"),
        at("mesh-transpose.json"),
        at("fig2-tree.json"),
        at("stages"),
        "-o".to_owned(),
        at("report.html"),
    ];
    let output = watershed(["report".to_owned()].into_iter().chain(files));
    assert_eq!(output.status, 0, "{}", output.stderr);
    page
}

#[test]
fn a_page_has_its_parts_and_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let html = fs::read_to_string(page(folder.path())).unwrap();
    for part in [
        "id=\"together\"",
        "id=\"run0\"",
        "id=\"run1\"",
        "id=\"run2\"",
        "id=\"sweep3\"",
        "Where the latency went",
        "Load of the links",
        "What is in the network",
        "Throughput",
        "Pareto front",
        "id=\"front\"",
        "Sensitivities",
        "watershed run ",
        "prefers-color-scheme: dark",
        "class=\"legend\"",
    ] {
        assert!(html.contains(part), "{part}");
    }
    for outside in ["http://", "https://", "src=", "<link", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    // Every figure of the latency adds up: the legend's numbers are those of the bar.
    let stack = html.split("sum by phase: ").nth(1).unwrap();
    let total: u64 = stack.split(' ').next().unwrap().parse().unwrap();
    let parts: u64 = stack
        .split("flex:")
        .skip(1)
        .take(5)
        .filter_map(|part| part.split('"').next()?.parse::<u64>().ok())
        .take_while(|_| true)
        .sum();
    let first = stack.split("</div>").next().unwrap();
    let shown: u64 = first.split("flex:").skip(1).filter_map(|part| part.split('"').next()?.parse::<u64>().ok()).sum();
    assert!(shown == total && parts >= total, "{shown} of {total}");
    // The commands of the front run.
    let command = html.split("<code>watershed ").nth(1).unwrap().split("</code>").next().unwrap();
    let words: Vec<&str> = command.split_whitespace().collect();
    let output = watershed(words);
    assert_eq!(output.status, 0, "{command}: {}", output.stderr);
}

/// What the armed and PBV families and hosts say of their rounds, engines and ranks, with where the latency of the slowest went.
#[test]
fn rounds_and_engines_of_the_other_families_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let html = |scenario: &str| {
        let output = watershed(["run", scenario, "--out", folder.path().to_str().unwrap()]);
        assert_eq!(output.status, 0, "{scenario}: {}", output.stderr);
        let (result, page) = (folder.path().join(format!("{scenario}.json")), folder.path().join("one.html"));
        let output = watershed(["report", result.to_str().unwrap(), "-o", page.to_str().unwrap()]);
        assert_eq!(output.status, 0, "{scenario}: {}", output.stderr);
        let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(result).unwrap()).unwrap();
        (fs::read_to_string(page).unwrap(), document)
    };
    let has = |html: &str, parts: &[&str]| {
        for part in parts {
            assert!(html.contains(part), "{part}");
        }
    };
    let (page, document) = html("fig4-equal-timeouts");
    let merged = document["armed"]["engines"]["merged"].as_u64().unwrap();
    has(
        &page,
        &[
            "<h3>Reductions</h3>",
            "flt-sum-near",
            "engines at depth 1",
            &format!("<dt>merged</dt><dd>{merged}</dd>"),
            "Where the latency went",
            "by phase",
            "What is in the network",
            "flits moved a cycle",
        ],
    );
    // The axis of time ends where the run does, not with the last alarm.
    let last: f64 = page
        .split("What is in the network")
        .nth(1)
        .unwrap()
        .split("time (cycles)")
        .next()
        .unwrap()
        .split("class=\"middle\"")
        .filter_map(|text| text.split('>').nth(1)?.split('<').next()?.parse().ok())
        .fold(0.0, f64::max);
    let cycles = document["cycles"].as_f64().unwrap();
    assert!(last < 2.0 * cycles, "{last} {cycles}");
    let (page, _) = html("fig5-dead-leaf");
    has(&page, &["<h3>Who was missing</h3>", "<td>leaf6</td>", "1 incomplete and detected"]);
    let (page, document) = html("tree-many-types");
    let mean = document["pbv"]["collectives"][0]["round_latency_cycles"]["min"].as_u64().unwrap();
    has(
        &page,
        &[
            "<h3>Collectives</h3>",
            "master top",
            "Latency of rounds",
            "sum, run ",
            "frames in",
            &format!(">{mean}</td>"),
        ],
    );
    let (page, document) = html("face-off-hosts");
    let latency = document["hosts"][1]["latency_cycles"].as_u64().unwrap();
    has(&page, &["<h3>Collectives in software</h3>", "ring (sum) fabric", &format!("<td class=\"n\">{latency}</td>")]);
}

#[test]
fn a_page_is_called_what_is_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let out = at("out");
    assert_eq!(watershed(["run", "allreduce-die", "--out", &out, "--set", "collective.0.elements=1"]).status, 0);
    assert_eq!(watershed(["run", "barrier-die", "--out", &out]).status, 0);
    fs::write(at("s.toml"), "[[scenario]]\nfile = \"barrier-die\"\n").unwrap();
    let sweep = at("sweep");
    assert_eq!(watershed(["sweep", &at("s.toml"), "-o", &sweep]).status, 0);
    let (die, barrier) = (at("out/allreduce-die.json"), at("out/barrier-die.json"));
    for (sources, title) in [
        (vec![&die, &barrier], "allreduce-die, barrier-die".to_owned()),
        (vec![&die, &sweep], format!("allreduce-die, sweep {sweep}")),
        (vec![&die, &barrier, &die, &sweep], "3 results and 1 sweep".to_owned()),
    ] {
        let page = at("page.html");
        let sources: Vec<&str> = sources.into_iter().map(String::as_str).collect();
        let output = watershed([&["report", "-o", &page], &sources[..]].concat());
        assert_eq!(output.status, 0, "{}", output.stderr);
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.contains(&format!("<h1>{title}</h1>")), "{title}");
    }
}

#[test]
fn what_is_no_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for source in [folder.path().to_str().unwrap(), "nowhere.json", "README.md"] {
        let output = watershed(["report", source, "-o", folder.path().join("x.html").to_str().unwrap()]);
        assert_eq!(output.status, 2, "{source}");
        assert!(!folder.path().join("x.html").exists());
    }
}

/// The first browser there is.
fn browser() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome", "chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()))
}

/// What is written into a page so that `--dump-dom` shows errors of scripts, elements that stick out, and how much there is.
const PROBE: &str = "<script>addEventListener('error', event => document.body.dataset.errors = event.message);\
    addEventListener('load', () => { const wide = [...document.querySelectorAll('main *')].filter(element => \
    !element.closest('.scroll') && element.getBoundingClientRect().right > innerWidth + 1); \
    const count = name => document.querySelectorAll(name).length; const texts = [...document.querySelectorAll('figure.chart svg')]\
    .flatMap(svg => { const all = [...svg.querySelectorAll('text')].map(text => text.getBoundingClientRect()); \
    return all.filter((a, i) => all.some((b, k) => k > i && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)); }); \
    document.body.dataset.probe = `charts ${count('figure.chart svg[role]')} stacks ${count('figure.stack .bar i')} \
loads ${count('path.load')} rows ${count('#front tr')} lines ${count('polyline.line')} keys ${count('.legend svg.key')} disturbed ${count('.disturbed tr')} \
commands ${count('.cmd code')} covered ${texts.length} wide ${wide.length} ${wide.slice(0, 3).map(element => element.tagName + '.' + element.className)}`; });</script>";

/// A page in a headless browser.
struct Browser {
    program: &'static str,
    folder: tempfile::TempDir,
}

impl Browser {
    /// The first there is.
    fn find() -> Option<Self> {
        let Some(program) = browser() else {
            println!("SKIPPED: no chromium or chrome is installed here, so no page was opened (apt install chromium)");
            return None;
        };
        Some(Self { program, folder: tempfile::tempdir().unwrap() })
    }

    fn open(&self, size: &str, more: &[&str], page: &Path) -> String {
        let output = Command::new(self.program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", self.folder.path().join("profile").display()))
            .arg(format!("--window-size={size}"))
            .args(more)
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// How much of everything the page has at a size; no script may fail and nothing be wider than the screen.
    fn counts(&self, size: &str, page: &Path) -> impl Fn(&str) -> u32 {
        let probed = self.folder.path().join("probed.html");
        let html = fs::read_to_string(page).unwrap();
        fs::write(&probed, html.replacen("<style>", &format!("{PROBE}<style>"), 1)).unwrap();
        let dom = self.open(size, &["--dump-dom"], &probed);
        assert!(!dom.contains("data-errors"), "{size}: a script failed");
        let probe = dom.split("data-probe=\"").nth(1).unwrap_or_else(|| panic!("{size}: the probe did not run"));
        let probe = probe.split('"').next().unwrap().to_owned();
        println!("{size}: {probe}");
        let count = move |name: &str| -> u32 {
            probe.split(&format!("{name} ")).nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
        };
        assert_eq!((count("wide"), count("covered")), (0, 0), "{size}: nothing sticks out, no text covers another");
        count
    }

    /// Screenshots: wide, narrow, dark.
    fn shots(&self, page: &Path, name: &str, heights: [u32; 2]) {
        let shots = root().join("target/tmp/report");
        fs::create_dir_all(&shots).unwrap();
        let [wide, narrow] = [format!("1280,{}", heights[0]), format!("420,{}", heights[1])];
        for (kind, size, more) in [
            ("wide", &wide, None),
            ("narrow", &narrow, None),
            ("dark", &wide, Some("--blink-settings=preferredColorScheme=0")),
        ] {
            let shot = shots.join(format!("{name}{kind}.png"));
            let _ = fs::remove_file(&shot);
            let screenshot = format!("--screenshot={}", shot.display());
            let arguments: Vec<&str> = std::iter::once(screenshot.as_str()).chain(more).collect();
            self.open(size, &arguments, page);
            assert!(fs::metadata(&shot).unwrap().len() > 20_000, "{kind}");
        }
    }
}

/// Issue 8: in a headless browser: no script errors, elements exist, nothing is wider than the screen; screenshots are left in
/// the output folder of the tests.
#[test]
fn a_browser_opens_it_without_an_error() {
    let Some(browser) = Browser::find() else { return };
    let page = page(browser.folder.path());
    for size in ["1280,1000", "500,1000"] {
        let count = browser.counts(size, &page);
        assert!(count("charts") >= 6 && count("stacks") >= 8 && count("loads") >= 100 && count("rows") >= 4, "{size}");
    }
    browser.shots(&page, "", [6000, 9000]);
}

/// The same for the pages of a study and of a comparison.
#[test]
fn a_browser_opens_the_face_off_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.toml");
    // The shipped study on smaller meshes.
    let text = fs::read_to_string(root().join("testbench/studies/face-off.toml")).unwrap();
    let text = text.replace("[4, 16, 64, 256, 1024]", "[4, 16]").replace("size=[4, 4]", "size=[2, 3]");
    let text = text.replace("size=[8, 8]", "size=[3, 3]").replace("orders = 3", "orders = 1");
    let text = text.replace("elements = [64]", "elements = [16]");
    let text = text.replace("source=27", "source=4").replace("root=27", "root=4").replace("s3_3", "s1_1");
    fs::write(&file, text).unwrap();
    let (page, other) = (folder.path().join("study.html"), folder.path().join("compare.html"));
    let output = watershed(["study", file.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let jobs = ["face-off-piuma", "face-off-armed", "face-off-pbv", "face-off-hosts"];
    let small = ["--set", "topology.size=[3, 3]", "--orders", "1", "-o", other.to_str().unwrap()];
    assert_eq!(watershed([&["compare"], &jobs[..], &small].concat()).status, 0);
    let html = fs::read_to_string(&page).unwrap();
    for outside in ["http://", "https://", "src=", "<link", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    // Latency, throughput, traffic and storage of two systems, and two from system to system: eight lines each.
    assert_eq!(html.matches("<polyline").count(), (4 * 2 + 2) * 8);
    // A command of the page runs.
    let command =
        html.split("<code>watershed ").nth(1).unwrap().split("</code>").next().unwrap().replace("&quot;", "\"");
    assert!(command.contains("--set") && command.contains("face-off-piuma"), "{command}");
    let Some(browser) = Browser::find() else { return };
    for size in ["1280,1000", "500,1000"] {
        let count = browser.counts(size, &page);
        assert_eq!((count("charts"), count("lines")), (10, 10 * 8), "{size}");
        assert_eq!((count("keys"), count("disturbed"), count("commands")), (80, 2 * 9, 2 * 2 * 8), "{size}");
    }
    let count = browser.counts("500,1000", &other);
    assert_eq!((count("charts"), count("disturbed"), count("commands")), (0, 7, 6));
    browser.shots(&page, "face-off-", [4200, 6000]);
}

#[test]
fn the_table_and_where_the_latency_went_agree() {
    let folder = tempfile::tempdir().unwrap();
    for (scenario, head) in [("fig4-late-leaf", "Reductions"), ("fig7-barrier", "Collectives")] {
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let output = watershed(["run", scenario, "--out", folder.path().to_str().unwrap()]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let output = watershed(["report".to_owned(), at(&format!("{scenario}.json")), "-o".into(), at("page.html")]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let document: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(at(&format!("{scenario}.json"))).unwrap()).unwrap();
        let family = if scenario == "fig7-barrier" { "/pbv/collectives/0" } else { "/armed/reductions/0" };
        let most = document.pointer(family).unwrap()["round_latency_cycles"]["max"].as_u64().unwrap();
        let html = fs::read_to_string(at("page.html")).unwrap();
        assert!(html.contains(head), "{head}");
        for by in ["phase", "cause"] {
            assert!(html.contains(&format!(", from the last contribution on, by {by}: {most} cycles")), "{most}: {by}");
            assert!(html.contains(&format!(", before the last contribution, by {by}: ")), "{by}");
        }
    }
}
