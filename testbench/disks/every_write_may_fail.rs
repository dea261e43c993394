//! X-SAFE-1: every command that writes files, with an operation on the disk that fails, or before which the process is killed.
//! After each, every file is the old one or the new one, whole, and nothing that is left keeps the command from being run again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use crate::share;
use crate::tracer::{Fault, run};

const WATERSHED: &str = env!("CARGO_BIN_EXE_watershed");

/// Commands that write files. `SEED` is 3 for the old files and 5 for the new ones; what stands before a `;` is run first, undisturbed.
const WRITERS: &[&str] = &[
    "run allreduce-die --set job.0.elements=SEED0 --seed SEED --out o",
    "run barrier-die --set link.latency_ns=SEED --wave w.vcd",
    "run barrier-die --set link.latency_ns=SEED --wave w.fst --last 20 --out o",
    "run barrier-die --ladder l.svg --set link.latency_ns=SEED",
    "run fig2-tree --seed SEED --ladder l.txt --out o",
    "run allreduce-die --set job.0.elements=SEED0 --record die.tile2.sw4.switch.ceng --out o",
    "run goal-mesh --set link.latency_ns=SEED --perfetto p.json",
    "run mesh-uniform --set traffic.0.stop_cycle=SEED00 --histogram h.csv",
    "run two-ids --seed SEED --results hash --save-npy r.npy --out o",
    "run mesh-uniform --set traffic.0.stop_cycle=500 --seed SEED --checkpoint-every 400 --checkpoint c.checkpoint",
    "run mesh-uniform --set traffic.0.stop_cycle=500 --seed SEED --checkpoint-every 400 --out o ; \
     run mesh-uniform --set traffic.0.stop_cycle=500 --seed SEED --resume o/mesh-uniform.checkpoint --out p",
    "sweep sSEED.toml --out swept --resume",
    "sweep s5.toml --out swept --shared --stale 1",
    "sweep s5.toml --out one --shard 1/2 ; sweep s5.toml --out two --shard 2/2 ; sweep merge --out all one ; \
     sweep merge --out all one two",
    #[cfg(feature = "parquet")]
    "sweep sSEED.toml --out swept --resume ; sweep export swept --parquet s.parquet",
    "run barrier-die --set link.latency_ns=SEED --out o ; report o/barrier-die.json --out r.html",
    "compare hosts-die:network hosts-die:ring --set job.0.elements=16 --orders 0 --no-dead --late-ns SEED --out c.html",
    "curve mesh-uniform --set topology.size=[4,4] --rates 0.1 --seed SEED --csv c.csv --svg c.svg --out o",
    "migrate --in-place older.toml",
    "migrate oldSEED.toml --out new.toml",
    "topology mesh-uniform --set topology.size=[2,SEED] --svg t.svg --out o",
    "embed allreduce-die --save e.toml --svg e.svg --out o",
    "test mineSEED --golden golden --accept -j 1",
    "test mineSEED --golden goldenSEED --accept -j 1 ; test mineSEED --golden goldenSEED --junit j.xml -j 1",
    "numerics --type f64 --random SEED --orders 1 --svg n.svg --csv n.csv --out o",
    "study studySEED.toml --out s.html -j 1",
    "workload train m.toml --ranks 2 --iterations SEED --out t",
    "fuzz software --seed SEED --runs 2 --fail-if cycles>10 --out o",
    "exhaustive --random 2000 --seed SEED --type f32 --op add -j 1 --resume x.txt",
    "man --out pages",
];

/// One that takes half a minute.
const SLOW: &[&str] = &["study pbv-table1 --svg pictures --out t.html"];

/// Commands that write no file.
const SILENT: &[&str] = &[
    "alu",
    "check",
    "completions",
    "cost",
    "explain",
    "frame decode",
    "frame encode",
    "list",
    "packet decode",
    "packet encode",
    "reduce",
    "replay",
    "schema",
    "sweep best",
    "sweep status",
    "testfloat",
    "wave diff",
    "wave list",
    "wave open",
    "wave show",
    "why",
    "workload inspect",
];

/// Options whose values are files or folders that are only read, and the command; `""` is any.
const READ: &[(&str, &str)] =
    &[("", "--input"), ("", "--points"), ("", "--technology"), ("", "--workload"), ("why", "--wave")];

/// Files that commands read, the same in every folder.
fn inputs(folder: &Path) {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let older = "family = 'piuma'\ntopology = { kind = 'die' }\n[[collective]]\nname = 'sum'\nid = 1\nkind = 'allreduce'\nop = 'sum'\n\
                 dtype = 'f64'\nelements = ";
    for (seed, stages) in [(3, "[2]"), (5, "[2, 3, 4]")] {
        let sweep = format!(
            "[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = {stages}\n"
        );
        write(&format!("s{seed}.toml"), &sweep);
        write(&format!("old{seed}.toml"), &format!("{older}{seed}\n"));
        write(&format!("mine{seed}/die.toml"), &format!("extends = 'barrier-die'\nlink.latency_ns = {seed}\n"));
        let contestant =
            |job: &str| format!("[[contestant]]\nname = \"{job}\"\nfile = \"hosts-die\"\njob = \"{job}\"\n");
        let study = format!("about = \"Two ways of software.\"\nelements = [{seed}]\n");
        write(&format!("study{seed}.toml"), &(study + &contestant("ring") + &contestant("rabenseifner")));
    }
    write("older.toml", &format!("{older}8\n"));
    let layer = "[[layer]]\nname = 'one'\nkind = 'dense'\nfeatures = 10\n";
    write("m.toml", &format!("name = 'small'\ninput = [1, 4, 4]\n{layer}"));
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

/// Runs the program undisturbed: its status.
fn undisturbed(folder: &Path, command: &str) -> i32 {
    let mut program = Command::new(WATERSHED);
    // CI accepts no golden file, and here golden files are among those that must not be lost.
    let output =
        program.current_dir(folder).args(words(command)).env_remove("CI").stdin(Stdio::null()).output().unwrap();
    let status = output.status.code().unwrap();
    // A fuzz run that finds something has status 1, as one whose golden files changed.
    assert!(status < 2, "{command}: {}", String::from_utf8_lossy(&output.stderr));
    status
}

/// Every file below a folder, but those that are about processes: locks, heartbeats and claims.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for path in fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy();
            match path.is_dir() {
                true if name != "claims" => folders.push(path),
                false if !name.starts_with('.') => {
                    all.insert(path.strip_prefix(folder).unwrap().to_owned(), settled(&path));
                }
                _ => {}
            }
        }
    }
    all
}

/// The bytes of a file, without what the hour and the machine decide if it is whole.
fn settled(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let name = path.to_string_lossy();
    if name.ends_with("x.txt") {
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        lines.sort_unstable();
        return lines.concat().into_bytes();
    }
    if name.ends_with("j.xml") {
        let pieces = text.split("time=\"").enumerate();
        let timeless = |(at, piece): (usize, &str)| match piece.split_once('"') {
            Some((_, rest)) if at > 0 => rest.to_owned(),
            _ => piece.to_owned(),
        };
        return pieces.map(timeless).collect::<String>().into_bytes();
    }
    let whole = name.ends_with(".run.json") && serde_json::from_str::<serde_json::Value>(&text).is_ok();
    if whole { b"whole".to_vec() } else { bytes }
}

/// What processes leave that were killed, and nobody else.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for path in fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.contains(".part") || is_lock(&path) {
                found.push(path);
            }
        }
    }
    found
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "lock")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// What begins with files of its own making, or with none.
const NO_OLD: &[&str] = &["--shared", "--in-place", " ; "];

/// Whether somebody is told that a file is not there; among the outcomes of scenarios it is one of them.
fn is_told(said: &str) -> bool {
    said.contains("error") || said.contains("cannot write")
}

/// A command, the folder in which it begins, and what it makes of it.
struct Case {
    command: String,
    before: tempfile::TempDir,
    old: BTreeMap<PathBuf, Vec<u8>>,
    new: BTreeMap<PathBuf, Vec<u8>>,
    status: i32,
    /// Operations of an undisturbed run.
    operations: u64,
}

impl Case {
    /// Prepares a command; `None` if processes cannot be traced here.
    fn new(line: &str) -> Option<Case> {
        let before = tempfile::tempdir().unwrap();
        inputs(before.path());
        let with = |seed: &str| line.replace("SEED", seed);
        let given = contents(before.path());
        if line.contains("SEED") {
            for command in with("3").split(';') {
                undisturbed(before.path(), command);
            }
        } else if NO_OLD.iter().all(|of| !line.contains(of)) {
            // It gets an old form that no command writes.
            undisturbed(before.path(), line);
            for path in contents(before.path()).into_keys().filter(|path| !given.contains_key(path)) {
                fs::write(before.path().join(path), "an older file\n").unwrap();
            }
        }
        let new = with("5");
        let mut commands: Vec<&str> = new.split(';').map(str::trim).collect();
        let command = commands.pop().unwrap().to_owned();
        for command in commands {
            undisturbed(before.path(), command);
        }
        let after = tempfile::tempdir().unwrap();
        copy(before.path(), after.path());
        let traced = run(WATERSHED, after.path(), &words(&command), Fault::Never)?;
        let (old, new) = (contents(before.path()), contents(after.path()));
        assert!(old != new, "{command}: there is nothing to lose");
        Some(Case { command, before, old, new, status: traced.status.unwrap(), operations: traced.operations })
    }

    /// Every file is the old one or the new one.
    fn hold(&self, folder: &Path, killed: bool, what: &str) {
        let found = contents(folder);
        for (path, bytes) in &found {
            let name = path.to_string_lossy();
            let old = self.old.get(path);
            // A journal grows: what it had stands, and who reads it finds the rest. A list of blocks is written anew with each line
            // that it gains.
            let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<BTreeSet<_>>();
            let grows = |new: &Vec<u8>| match name.as_ref() {
                "x.txt" => bytes.ends_with(b"\n") && lines(bytes).is_subset(&lines(new)),
                _ => name.ends_with(".jsonl") && old.is_none_or(|old| bytes.starts_with(old)),
            };
            let part = killed && name.contains(".part");
            let right = old == Some(bytes) || self.new.get(path).is_some_and(|new| new == bytes || grows(new)) || part;
            assert!(right, "{what}: {name} is neither the old file nor the new one");
        }
        for path in self.old.keys().filter(|path| self.new.contains_key(*path)) {
            assert!(found.contains_key(path), "{what}: {} is gone", path.display());
        }
    }

    fn with(&self, fault: Fault) {
        let what = format!("{} {fault:?} of {}", self.command, self.operations);
        let folder = tempfile::tempdir().unwrap();
        copy(self.before.path(), folder.path());
        let traced = run(WATERSHED, folder.path(), &words(&self.command), fault).unwrap();
        let killed = matches!(fault, Fault::Dies(_));
        self.hold(folder.path(), killed, &what);
        // What may not be on the disk is no new file; that a folder may not be there costs nothing.
        let unflushed = traced.unflushed.filter(|path| !path.is_dir());
        assert!(unflushed.is_none() || is_told(&traced.said), "{what}: {unflushed:?} may not be on the disk");
        match traced.status {
            None => assert!(killed, "{what}"),
            // Words for others only, in locks and heartbeats, may be lost without a word.
            Some(status) if status == self.status => self.ended(folder.path(), &what),
            Some(status) => {
                assert!(status > 0 && is_told(&traced.said), "{what}: status {status}: {}", traced.said);
                assert!(!traced.said.contains("panicked"), "{what}: {}", traced.said);
            }
        }
        if !killed {
            assert_eq!(leftovers(folder.path()), Vec::<PathBuf>::new(), "{what}");
        }
        undisturbed(folder.path(), &self.command);
        self.ended(folder.path(), &format!("{what}, and once more"));
        // The lock file of who was killed stays where nothing is left to write.
        let mut left = leftovers(folder.path());
        left.retain(|path| !killed || !is_lock(path));
        assert_eq!(left, Vec::<PathBuf>::new(), "{what}: after the next run");
    }

    /// Every file is the new one. What a journal has after a run that failed is in other pieces.
    fn ended(&self, folder: &Path, what: &str) {
        let found = contents(folder);
        let names = |of: &BTreeMap<PathBuf, Vec<u8>>| of.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&self.new), "{what}");
        for (path, bytes) in found.iter().filter(|(path, _)| path.extension().is_none_or(|end| end != "jsonl")) {
            assert!(*bytes == self.new[path], "{what}: {} is not the new file", path.display());
        }
    }
}

/// Commands, each with what may happen among its operations: of all that one in `step`, in `make soak` everything.
fn every(lines: &[&str], step: usize, faults: impl Fn(u64) -> Vec<Fault>) {
    let cases = lines.iter().filter_map(|line| Case::new(line)).flat_map(|case| {
        assert!(case.operations >= 4, "{}: {} operations", case.command, case.operations);
        let case = Rc::new(case);
        faults(case.operations).into_iter().map(move |fault| (Rc::clone(&case), fault))
    });
    for (case, fault) in share::one_in(step, cases) {
        case.with(fault);
    }
}

/// Bytes that the files of a folder take of a disk in pages.
fn pages(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { pages(&path) } else { fs::metadata(&path).unwrap().len().div_ceil(4096) })
        .sum()
}

/// Copies a folder onto a disk of this size, runs the program there, and copies what is on the disk.
const ON_A_SMALL_DISK: &str = "mount -t tmpfs -o size=$1 none \"$2\" && cp -a \"$3/.\" \"$2\" || exit 99
    from=$2 to=$4; shift 4; cd \"$from\"; \"$@\"; status=$?; cd /; cp -a \"$from/.\" \"$to\"; exit $status";

impl Case {
    /// The same on a disk that has this many pages left; whether that was enough.
    fn on_a_small_disk(&self, left: u64) -> bool {
        let what = format!("{} with {left} pages left", self.command);
        let (disk, found) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let size = ((pages(self.before.path()) + left) * 4096).to_string();
        let output = Command::new("unshare")
            .args(["-rm", "sh", "-c", ON_A_SMALL_DISK, "sh", &size])
            .args([disk.path(), self.before.path(), found.path(), Path::new(WATERSHED)])
            .args(words(&self.command))
            .env_remove("CI")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        self.hold(found.path(), false, &what);
        assert_eq!(leftovers(found.path()), Vec::<PathBuf>::new(), "{what}");
        let status = output.status.code().unwrap();
        if status == self.status {
            self.ended(found.path(), &what);
            return true;
        }
        assert!(status > 0 && status < 4 && is_told(&said), "{what}: status {status}: {said}");
        false
    }
}

/// Commands on disks that are nearly full: how often one was too small.
fn on_small_disks<'a>(lines: impl Iterator<Item = &'a &'a str>, left: &[u64]) -> usize {
    let mounts = Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|output| output.status.success());
    if !mounts {
        println!("no disk can be mounted here, so none is too small");
        return usize::MAX;
    }
    let cases = lines.filter_map(|line| Case::new(line));
    cases.map(|case| left.iter().filter(|&&left| !case.on_a_small_disk(left)).count()).sum()
}

/// One command in seven in `make test`, all in `make soak`.
#[test]
fn a_small_disk_loses_no_file() {
    let commands = || share::one_in(7, WRITERS);
    let failed = on_small_disks(commands(), &[1, 6]);
    assert!(failed > commands().count() / 2, "{failed} commands found no room");
}

#[test]
#[ignore = "takes minutes"]
fn no_small_disk_loses_a_file() {
    on_small_disks(WRITERS.iter(), &[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512]);
}

/// Of the eight faults of each command `make test` tries every seventh: each command has its own kind of fault, the first has two.
const STEP: usize = 7;

/// The first, the last, and some between.
fn some(operations: u64) -> Vec<Fault> {
    let at = |sixths: u64| (operations * sixths).div_ceil(6).max(1);
    vec![
        Fault::Fails(1),
        Fault::Fails(at(3)),
        Fault::Fails(operations),
        // Files end with a flush, a change of name, and a flush of the folder.
        Fault::Fails(operations.saturating_sub(2).max(1)),
        Fault::Half(at(2)),
        Fault::Full(at(4)),
        Fault::Dies(at(5)),
        Fault::Dies(operations),
    ]
}

#[test]
fn runs_lose_no_file() {
    every(&WRITERS[..6], STEP, some);
}

#[test]
fn runs_lose_no_other_file() {
    every(&WRITERS[6..11], STEP, some);
}

#[test]
fn sweeps_and_pages_lose_no_file() {
    every(&WRITERS[11..17], STEP, some);
}

#[test]
fn translations_pictures_and_goldens_lose_no_file() {
    every(&WRITERS[17..23], STEP, some);
}

#[test]
fn studies_and_tables_lose_no_file() {
    every(&WRITERS[23..], STEP, some);
}

/// Every operation; of more than 200, some 200.
#[test]
#[ignore = "takes minutes"]
fn no_operation_at_all_loses_a_file() {
    every(WRITERS, 1, |operations| {
        let step = operations.div_ceil(200) as usize;
        let all = |of: fn(u64) -> Fault| (1..=operations).step_by(step).chain([operations]).map(of);
        all(Fault::Fails).chain(all(Fault::Half)).chain(all(Fault::Full)).chain(all(Fault::Dies)).collect()
    });
    every(SLOW, 1, some);
}

/// Lines of a help: what it says of the commands below, or of options.
fn help(command: &[&str]) -> String {
    let output = Command::new(WATERSHED).args(command).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Every command that has none below it, and every option whose value is a file or a folder.
fn tree(command: &[&str], leaves: &mut BTreeSet<String>, options: &mut BTreeSet<(String, String)>) {
    let text = help(command);
    let below = text.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
    let names = below.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> =
        names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    for name in &names {
        tree(&[command, &[*name]].concat(), leaves, options);
    }
    if command.is_empty() {
        return;
    }
    let name = command.join(" ");
    if names.is_empty() || text.contains("watershed sweep [OPTIONS]") {
        leaves.insert(name.clone());
    }
    let own = text.split("\nOptions of every command:").next().unwrap();
    for line in own.lines().filter(|line| line.trim_start().starts_with('-')) {
        let Some(option) = line.split_whitespace().find(|word| word.starts_with("--")) else { continue };
        let Some(value) = line.split('<').nth(1).and_then(|rest| rest.split('>').next()) else { continue };
        if ["FILE", "DIR", "PREFIX", "TRACE", "FOLDER", "PATH", "FILE.html"].contains(&value) {
            options.insert((name.clone(), option.to_owned()));
        } else {
            assert!(NO_PATHS.contains(&value), "{name} {option} <{value}>: say in NO_PATHS or here what it is");
        }
    }
}

/// Names of values of options that are no files.
#[rustfmt::skip]
const NO_PATHS: &[&str] = &[
    "A,B,...", "A,B,C,D", "A..B", "ADDRESS", "BITS", "BLOCK", "CC_ID", "COLUMN", "COLUMNS", "COUNT", "CYCLES", "EXPR", "FAMILY", "GLOB", "I/N",
    "ID", "ID,ID,...", "LEVELS", "LOAD", "LOADS", "M", "MODE", "N", "N,..", "NAME", "NAME,..", "NAME=RANKS", "NS",
    "NUMBER|SOURCE:NUMBER", "OP", "ORDER", "PAIRS", "PATH=VALUE", "POLICY", "PORTS", "REDUCE", "SCENARIO", "SECONDS", "STATUS",
    "SWITCH:ID:WORD:MASK", "TIMES", "TYPE", "WHAT", "X", "[NAME:]PATH=VALUE",
];

#[test]
fn every_command_and_every_output_is_tried() {
    let (mut leaves, mut options) = (BTreeSet::new(), BTreeSet::new());
    tree(&[], &mut leaves, &mut options);
    assert!(leaves.len() > 30 && options.len() > 25, "{leaves:?} {options:?}");
    let tried: Vec<String> =
        WRITERS.iter().chain(SLOW).map(|line| format!("{} ", line.split(" ; ").last().unwrap())).collect();
    for leaf in &leaves {
        let writes = tried.iter().any(|line| line.starts_with(&format!("{leaf} ")));
        let without = leaf == "sweep export" && !cfg!(feature = "parquet");
        let silent = SILENT.contains(&leaf.as_str());
        assert!(writes != (silent || without), "{leaf} is neither tried nor said to write nothing, or both");
    }
    for (command, option) in &options {
        let read = READ.iter().any(|(of, name)| option == name && (of.is_empty() || command == of));
        let without = command == "sweep export" && !cfg!(feature = "parquet");
        let writes =
            tried.iter().any(|line| line.starts_with(&format!("{command} ")) && line.contains(&format!(" {option} ")));
        assert!(read || writes || without, "{command} {option}: no write of it is made to fail");
    }
    for name in SILENT {
        assert!(leaves.contains(*name), "there is no command {name}");
    }
}
