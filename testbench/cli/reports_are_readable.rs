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

/// Issue 8: in a headless browser: no script errors, elements exist, nothing is wider than the screen; screenshots are left in
/// the output folder of the tests.
#[test]
fn a_browser_opens_it_without_an_error() {
    let Some(browser) = browser() else {
        println!("SKIPPED: no chromium or chrome is installed here, so no page was opened (apt install chromium)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    let shots = root().join("target/tmp/report");
    fs::create_dir_all(&shots).unwrap();
    // Errors of scripts and elements that stick out are written where --dump-dom shows them.
    let probe = "<script>addEventListener('error', event => document.body.dataset.errors = event.message);\
        addEventListener('load', () => { const wide = [...document.querySelectorAll('main *')].filter(element => \
        !element.closest('.scroll') && element.getBoundingClientRect().right > innerWidth + 1); \
        document.body.dataset.probe = `charts ${document.querySelectorAll('figure.chart svg').length} stacks ${document.querySelectorAll('figure.stack .bar i').length} \
loads ${document.querySelectorAll('path.load').length} rows ${document.querySelectorAll('#front tr').length} wide ${wide.length} ${wide.slice(0, 3).map(element => element.tagName + '.' + element.className)}`; });</script>";
    let html = fs::read_to_string(&page).unwrap();
    let probed = folder.path().join("probed.html");
    fs::write(&probed, html.replacen("<style>", &format!("{probe}<style>"), 1)).unwrap();
    let run = |size: &str, more: &[&str], page: &Path| {
        let output = Command::new(browser)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg(format!("--window-size={size}"))
            .args(more)
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for size in ["1280,1000", "500,1000"] {
        let dom = run(size, &["--dump-dom"], &probed);
        assert!(!dom.contains("data-errors"), "{size}: a script failed");
        let probe = dom
            .split("data-probe=\"")
            .nth(1)
            .unwrap_or_else(|| panic!("{size}: the probe did not run"))
            .split('"')
            .next()
            .unwrap();
        let count = |name: &str| -> u32 {
            probe.split(&format!("{name} ")).nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
        };
        assert!(
            count("charts") >= 6 && count("stacks") >= 8 && count("loads") >= 100 && count("rows") >= 4,
            "{size}: {probe}"
        );
        assert_eq!(count("wide"), 0, "{size}: {probe}");
    }
    for (name, size, more) in [
        ("wide", "1280,6000", None),
        ("narrow", "420,9000", None),
        ("dark", "1280,6000", Some("--blink-settings=preferredColorScheme=0")),
    ] {
        let shot = shots.join(format!("{name}.png"));
        let _ = fs::remove_file(&shot);
        let screenshot = format!("--screenshot={}", shot.display());
        let arguments: Vec<&str> = std::iter::once(screenshot.as_str()).chain(more).collect();
        run(size, &arguments, &page);
        assert!(fs::metadata(&shot).unwrap().len() > 20_000, "{name}");
    }
}
