//! Every command of the README and of the book works, and prints what the page shows.
//!
//! Blocks marked `sh` hold commands, a line each; a block marked `text` right behind one shows what its last command
//! prints; a block marked `toml` with a first line `# NAME.toml` is a file that later commands find. Commands run in a
//! scratch folder, in which `testbench` and `traces` look as in the project; what they leave there is ignored by Git.
//!
//! `make test` runs something shorter in place of a few commands that take seconds and show nothing (`SHORTER`); `make soak` runs all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::makefile_says_what_it_has::targets;
use crate::{read, root, share};

const PROGRAM: &str = "target/release/watershed";

/// Parts of commands that take seconds and of which no page shows what they print, and what stands there in `make test`.
const SHORTER: [(&str, &str); 7] = [
    ("study which-engine", "study out/one-length.toml"),
    ("run goal-mesh --workload traces/astra-sim", "check goal-mesh --workload traces/astra-sim"),
    ("run training-16", "check training-16"),
    ("fuzz piuma --seed 1 --runs 20", "fuzz piuma --seed 1 --runs 5"),
    ("fuzz mixed --runs 10", "fuzz mixed --runs 3"),
    ("fuzz workload --runs 10", "fuzz workload --runs 2"),
    // Run 16 is the first that fails.
    ("fuzz pbv --runs 100", "fuzz pbv --first 15 --runs 100"),
];

/// What runs in place of a line.
fn shorter(line: &str) -> String {
    let cut: &[(&str, &str)] = if share::is_whole() { &[] } else { &SHORTER };
    cut.iter().fold(line.to_owned(), |line, (long, short)| line.replace(long, short))
}

/// The study of five networks at one of its lengths, undisturbed.
fn one_length() -> String {
    let study = read("testbench/studies/which-engine.toml");
    study.replace("elements = [4, 16, 64, 512, 4096]", "elements = [4]").replace("elements = [64]", "elements = []")
}

/// A piece of the page.
enum Piece {
    /// Lines outside of blocks, and the fences.
    Prose(String),
    /// What is inside a block: its mark, its text, and whether it comes right behind another block.
    Block { mark: String, body: String, follows: bool },
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open: Option<(String, String)> = None;
    let mut follows = false;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(mark)) => {
                open = Some((mark.trim().to_owned(), String::new()));
                pieces.push(Piece::Prose(format!("{line}\n")));
            }
            (Some(_), Some(_)) => {
                let (mark, body) = open.take().expect("a block is open");
                pieces.push(Piece::Block { mark, body, follows });
                pieces.push(Piece::Prose(format!("{line}\n")));
                follows = true;
            }
            (Some((_, body)), None) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, None) => {
                follows &= line.trim().is_empty();
                pieces.push(Piece::Prose(format!("{line}\n")));
            }
        }
    }
    assert!(open.is_none(), "a block of the page is not closed");
    pieces
}

/// Splits a command as a shell would that knows words, single quotes and comments.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '#' if !quoted && word.is_none() => break,
            space if space.is_whitespace() && !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// What `make run` runs, read from the Makefile.
fn flagship() -> Vec<String> {
    let makefile = read("Makefile");
    let variable = |name: &str| {
        let line = makefile.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='));
        line.unwrap_or_else(|| panic!("the Makefile has no {name}")).trim().to_owned()
    };
    let (program, scenario) = (variable("PROGRAM"), variable("FLAGSHIP"));
    let recipe = makefile.split("\nrun:").nth(1).and_then(|rest| rest.lines().nth(1)).expect("a recipe of run");
    let recipe =
        recipe.trim().trim_start_matches('@').replace("$(PROGRAM)", &program).replace("$(FLAGSHIP)", &scenario);
    words(&recipe.replace("$(TARGET)", "target"))
}

/// Runs one command of a page; what it prints.
fn execute(line: &str, folder: &Path) -> String {
    let mut command = words(line);
    let Some(first) = command.first() else { return String::new() };
    let mut expected = 0;
    if first == "make" {
        let target = command.get(1).map_or("help", String::as_str);
        assert!(targets().iter().any(|(name, _)| name == target), "a page: `{line}`: no such target");
        if target != "run" {
            return String::new();
        }
        command = flagship();
    }
    assert_eq!(command[0], PROGRAM, "a page: `{line}` starts neither make nor the program");
    if line.contains("# ends with status 1") {
        expected = 1;
    }
    let program = env!("CARGO_BIN_EXE_watershed");
    let mut started = std::process::Command::new(program);
    started.current_dir(folder).args(&command[1..]).env_remove("CI");
    // It prints commands as it was called by a reader of the page.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::arg0(&mut started, &command[0]);
    let output = started.output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(output.status.code(), Some(expected), "a page: `{line}`:\n{}", text(&output.stderr));
    text(&output.stdout)
}

/// A page whose commands were run.
struct Ran {
    /// The page with the outputs of today.
    page: String,
    differences: Vec<String>,
    commands: usize,
    shown: usize,
}

/// Runs the commands of a page in a scratch folder and compares what is shown.
fn run(text: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    for shared in ["testbench", "traces"] {
        copy(&root().join(shared), &folder.path().join(shared));
    }
    fs::create_dir(folder.path().join("out")).unwrap();
    fs::write(folder.path().join("out/one-length.toml"), one_length()).unwrap();
    let before = files(folder.path());
    let (mut page, mut differences) = (String::new(), Vec::new());
    let (mut printed, mut is_cut, mut commands, mut shown) = (String::new(), false, 0, 0);
    for piece in pieces(text) {
        let (mark, body, follows) = match piece {
            Piece::Prose(text) => {
                page.push_str(&text);
                continue;
            }
            Piece::Block { mark, body, follows } => (mark, body, follows),
        };
        let mut now = body.clone();
        match mark.as_str() {
            "sh" => {
                for line in body.lines().filter(|line| !line.is_empty()) {
                    let runs = shorter(line);
                    is_cut = runs != line;
                    printed = execute(&runs, folder.path());
                    commands += 1;
                }
            }
            "toml" => {
                let name = body.lines().next().and_then(|line| line.strip_prefix("# "));
                let file = folder.path().join(name.expect("a file's name in its first line"));
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, &body).unwrap();
            }
            "text" if follows && !printed.is_empty() => {
                assert!(!is_cut, "what is shown is not what `make test` runs: see SHORTER\n{body}");
                now = trimmed(&printed);
                shown += 1;
                if now != trimmed(&body) {
                    differences.push(format!("--- the page shows\n{body}--- its command prints\n{now}"));
                }
            }
            _ => {}
        }
        page.push_str(&now);
    }
    // Git sees what a reader's commands leave in a clone, unless it is told not to.
    let ignored: Vec<String> =
        read(".gitignore").lines().filter_map(|line| line.strip_prefix('/').map(str::to_owned)).collect();
    let is_ignored = |path: &Path| ignored.iter().any(|name| path.starts_with(name));
    let now = files(folder.path());
    let left: Vec<_> = now.iter().filter(|(path, text)| before.get(*path) != Some(text) && !is_ignored(path)).collect();
    let left: Vec<_> = left.iter().map(|(path, _)| path.display().to_string()).collect();
    assert!(left.is_empty(), "commands leave files that Git sees: {}", left.join(", "));
    Ran { page, differences, commands, shown }
}

/// Every file below a folder, by its path in it, with what is in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Runs a page's commands; with `make golden` it takes what they print now.
fn hold(name: &str, least_commands: usize, least_shown: usize) {
    let Ran { page, differences, commands, shown } = run(&read(name));
    let found = format!("{name}: {commands} commands and {shown} outputs were found");
    assert!(commands >= least_commands && shown >= least_shown, "{found}");
    let differences = differences.concat();
    let accept = std::env::var("WATERSHED_GOLDEN").is_ok_and(|word| word == "accept");
    if accept && std::env::var_os("CI").is_none() && !differences.is_empty() {
        println!("{name}\n{differences}");
        fs::write(root().join(name), page).unwrap();
    } else {
        assert!(differences.is_empty(), "{name}:\n{differences}(`make golden` accepts this)");
    }
}

#[test]
fn the_readme_s_commands_work_and_print_what_is_shown() {
    hold("README.md", 9, 2);
}

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= 200, "{lines} lines: what is more belongs into the book");
}

/// A test for each page of the book that has commands: its name, how many it has at least, and how many show what they print.
macro_rules! pages {
    ($($name:ident $file:literal $commands:literal $shown:literal)*) => {
        $(
            #[test]
            fn $name() {
                hold(concat!("src/guide/pages/", $file), $commands, $shown);
            }
        )*

        /// Each page is held, stands in the menu of the web pages, and is a module of the library's documentation.
        #[test]
        fn every_page_of_the_book_is_found() {
            let held = [$($file),*, "index.md", "limits.md", "language.md", "statistics.md"];
            let (menu, modules) = (read("src/guide/mkdocs.yml"), read("src/guide/mod.rs"));
            let files = fs::read_dir(root().join("src/guide/pages")).unwrap().map(|entry| entry.unwrap().file_name());
            let mut files: Vec<_> = files.map(|name| name.into_string().unwrap()).filter(|name| name != "img").collect();
            files.sort();
            for file in &files {
                assert!(held.contains(&file.as_str()), "{file}: no test runs its commands");
                assert!(menu.contains(file.as_str()), "{file} is not in the menu");
                assert!(file == "index.md" || modules.contains(&format!("\"{file}\"")), "{file} is no module");
            }
            assert_eq!(files.len(), held.len());
        }
    };
}

pages! {
    first_run "first-run.md" 8 5
    scenarios "scenarios.md" 14 2
    waves "waves.md" 15 3
    latency "latency.md" 6 4
    cost "cost.md" 4 2
    long_runs "long-runs.md" 2 0
    sweeps "sweeps.md" 10 2
    compare "compare.md" 3 1
    examples "examples.md" 4 1
    snapshots "snapshots.md" 6 1
    numerics "numerics.md" 3 1
    verify_rtl "verify-rtl.md" 6 4
    lecture "lecture.md" 9 0
    piuma "piuma.md" 4 3
    armed "armed.md" 2 2
    pbv "pbv.md" 1 1
    software "software.md" 1 1
    workloads "workloads.md" 6 0
    networks "networks.md" 8 7
    validation "validation.md" 2 1
    speed "speed.md" 0 0
    extend "extend.md" 3 0
    rtl_twin "rtl-twin.md" 0 0
}

/// Without spaces at the ends of lines.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else if path.extension().is_none_or(|extension| extension != "rs") {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// Links of the README and of the book lead to files that are there, and no name in brackets is left without a definition.
#[test]
fn links_lead_somewhere() {
    let pages = fs::read_dir(root().join("src/guide/pages")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    for path in pages.chain([root().join("README.md")]) {
        let (text, folder) = (fs::read_to_string(&path).unwrap(), path.parent().unwrap());
        let inline = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let defined = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
        let defined: BTreeMap<_, _> = defined.collect();
        for link in inline.chain(defined.values().copied()) {
            if !link.starts_with("http") && !link.starts_with('#') {
                assert!(folder.join(link).exists(), "{}: {link} leads nowhere", path.display());
            }
        }
        for name in defined.keys() {
            let used = text.matches(&format!("[{name}]")).count() > 1;
            assert!(used, "{}: [{name}] is defined and not used", path.display());
        }
    }
}
