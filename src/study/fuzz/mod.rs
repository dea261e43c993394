//! Random scenarios of a family, and the smallest one that still fails.
//!
//! A case is a topology and a list of keys that are set; both are drawn from lists in which the simplest comes first.
//! This orders cases: fewer keys, simpler topologies and smaller values are smaller. A case that fails is made smaller
//! step by step, as long as the smaller case fails in the same way.
//!
//! A case fails if a check of the run fails, if the run does not end, if the program panics, if the order of evaluation
//! or the skipping of idle blocks changes the result, or if a condition of the user's holds. A scenario that is refused
//! counts as neither.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::sweep::Facts;
use watershed_kernel::Rng;
use watershed_scenario::expr::Expr;
use watershed_scenario::result::{Document, Outcome};
use watershed_scenario::run::{Control, RunError, RunOptions, RunResult, run};
use watershed_scenario::{Loaded, load_text};

/// The families that can be tried.
pub const FAMILIES: [&str; 5] = ["piuma", "armed", "pbv", "software", "fabric"];

/// Tables, keys and values, the simplest value first; the default is to leave the key out.
type Keys = &'static [(&'static str, &'static str, &'static [&'static str])];

/// Topologies, the simplest first, and how many end points they have.
const TOPOLOGIES: &[(&str, u32)] = &[
    ("kind = \"mesh\"\nsize = [2, 1]", 2),
    ("kind = \"mesh\"\nsize = [2, 2]", 4),
    ("kind = \"tree\"\nbranching = [2, 2]", 4),
    ("kind = \"mesh\"\nsize = [4, 2]", 8),
    ("kind = \"torus\"\nsize = [3, 3]", 9),
    ("kind = \"hyperx\"\nsize = [3, 3]", 9),
    ("kind = \"tree\"\nbranching = [4, 3]", 12),
    ("kind = \"mesh\"\nsize = [4, 4]", 16),
];

const COMMON: Keys = &[
    ("job", "elements", &["1", "2", "3", "4", "5", "7", "8", "13", "16", "31", "64"]),
    ("job", "dtype", &["\"f64\"", "\"i64\""]),
    ("job", "op", &["\"sum\"", "\"max\"", "\"min\""]),
    ("job", "data", &["{ random = \"normal\" }", "{ random = \"mixed\" }"]),
    ("job", "start_cycle", &["1", "17", "500"]),
    ("link", "latency_cycles", &["1", "2", "3", "5", "9"]),
    ("link", "width_bits", &["64", "32", "16"]),
    ("switch", "pipeline_stages", &["1", "2", "3", "4"]),
    ("switch", "arbiter", &["\"matrix\"", "\"fixed\""]),
];

const PIUMA: Keys = &[
    ("switch", "collective_buffer_flits", &["16", "24", "32"]),
    ("job", "kind", &["\"allreduce\"", "\"reduce\"", "\"broadcast\"", "\"barrier\"", "\"scan\""]),
    ("switch.ceng", "stages", &["1", "2", "4", "6"]),
    ("switch.ceng", "operand_slots", &["1", "3", "8"]),
    ("memory", "bandwidth_gbps", &["51.2", "6.4"]),
    ("traffic", "rate", &["0.05", "0.2"]),
];

const ARMED: Keys = &[
    ("switch", "collective_buffer_flits", &["16", "24", "32"]),
    ("link", "flit_bits", &["64", "96", "256", "1024"]),
    ("armed.engine", "stages", &["1", "2", "6"]),
    ("armed.engine", "descriptors", &["1", "2", "0"]),
    ("armed.engine", "entrance_frames", &["1", "4"]),
    ("armed.engine", "exit_frames", &["1", "2"]),
    ("armed.engine", "memory_ports", &["1", "2"]),
    ("job", "armed.reduction_ids", &["2", "4"]),
    ("job", "armed.compute_cycles", &["10", "{ random_max = 200 }"]),
];

/// What every case of a family sets. Left to themselves, armed processes are patient for millions of cycles after the last message,
/// and without skipping each of those is simulated; these times are still longer than any case takes.
const ALWAYS: [(&str, &str, &str); 3] = [
    ("armed", "armed.engine", "timeouts_1024_cycles = [4, 4, 4, 4]\n"),
    ("armed", "job", "armed.retry_after_cycles = 20_000\n"),
    ("armed", "job", "armed.patience_cycles = 20_000\n"),
];

const PBV: Keys = &[
    ("switch", "collective_buffer_flits", &["16", "24", "32"]),
    ("link", "flit_bits", &["64", "32", "96", "256", "1024"]),
    ("pbv.engine", "reduction_units", &["1", "3"]),
    ("pbv.engine", "stages", &["1", "2", "6"]),
    ("pbv.engine", "contexts", &["1", "2"]),
    ("pbv.engine", "memory_ports", &["1", "2"]),
    ("pbv.setup", "configuration", &["\"writes\"", "\"one-frame\"", "\"side-port\""]),
    ("job", "pbv.order", &["\"arrival\"", "\"pbv\""]),
    ("job", "pbv.tree", &["\"flat\"", "\"monolithic\""]),
];

const SOFTWARE: Keys = &[
    ("job", "software.algorithm", &["\"recursive-doubling\"", "\"ring\"", "\"rabenseifner\"", "\"binary-tree\""]),
    ("memory", "bandwidth_gbps", &["51.2", "6.4"]),
];

/// A network without jobs, under traffic.
const FABRIC: Keys = &[
    ("link", "latency_cycles", &["1", "2", "3", "5", "9"]),
    ("link", "width_bits", &["64", "32", "16"]),
    ("switch", "pipeline_stages", &["1", "2", "3", "4"]),
    ("switch", "arbiter", &["\"matrix\"", "\"fixed\""]),
    ("switch", "point_to_point_vcs", &["2", "3", "4", "8"]),
    ("switch", "point_to_point_buffer_flits", &["2", "4", "8", "16"]),
    ("traffic", "rate", &["0.02", "0.1", "0.3", "0.6"]),
    ("traffic", "packet_flits", &["1", "2", "5", "[{ flits = 1, weight = 3 }, { flits = 9, weight = 1 }]"]),
    ("traffic", "pattern", &["\"uniform\"", "\"neighbour\"", "\"tornado\""]),
    ("traffic", "include_self", &["false"]),
    ("traffic", "start_cycle", &["1", "17", "500"]),
];

/// One scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    family: &'static str,
    topology: usize,
    /// How many of the end points take part, from the first on.
    members: u32,
    seed: u64,
    /// Number of a key of the family, and of its value.
    keys: BTreeMap<usize, usize>,
}

/// What else is a failure, and whether to end now.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// A condition that must not hold.
    pub fail_if: Option<&'a Expr>,
    /// Whether the user wants to end.
    pub stop: &'a dyn Fn() -> bool,
}

/// How a case is run a second time, to see that nothing changes.
const AGAIN: [(&str, &str); 2] = [("another order of evaluation", "--order-seed 1"), ("no skipping", "--no-skip")];

/// How a case fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What two failures have in common that are the same one.
    pub kind: String,
    /// In words.
    pub detail: String,
    /// What `watershed run` needs beside the scenario to show it.
    pub flags: &'static str,
}

/// What a case came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// Everything is right.
    Passed,
    /// There is no such system: why.
    Refused(String),
    /// Something is wrong.
    Failed(Failure),
}

/// A failure with the smallest case that still shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Number of the run.
    pub run: u64,
    /// The case as it was drawn.
    pub drawn: Case,
    /// The smallest case, and how it fails.
    pub case: Case,
    /// How that fails.
    pub failure: Failure,
    /// Cases tried on the way.
    pub tried: u64,
}

fn keys(family: &str) -> Vec<&'static (&'static str, &'static str, &'static [&'static str])> {
    let own = match family {
        "fabric" => return FABRIC.iter().collect(),
        "piuma" => PIUMA,
        "armed" => ARMED,
        "pbv" => PBV,
        _ => SOFTWARE,
    };
    COMMON.iter().chain(own).collect()
}

impl Case {
    /// The case of a number.
    pub fn drawn(family: &'static str, seed: u64, run: u64) -> Self {
        let mut rng = Rng::new(seed, 0xf022_0000 + run);
        let mut below = |count: usize| (rng.bits() >> 11) as usize % count.max(1);
        let topology = below(TOPOLOGIES.len());
        let ends = TOPOLOGIES[topology].1;
        let takes_part = family != "fabric" && below(3) == 0;
        let members = if takes_part { 2 + below(ends as usize - 1) as u32 } else { ends };
        let mut chosen = BTreeMap::new();
        for (number, (_, _, values)) in keys(family).iter().enumerate() {
            // About every third key: with all of them set most cases would be refused.
            if below(3) == 0 {
                chosen.insert(number, below(values.len()));
            }
        }
        Self { family, topology, members: members.min(ends), seed: 1 + below(1000) as u64, keys: chosen }
    }

    /// The scenario as a file.
    pub fn text(&self) -> String {
        let (topology, ends) = TOPOLOGIES[self.topology];
        let family = if self.family == "software" { "fabric" } else { self.family };
        let mut out = format!("family = \"{family}\"\nseed = {}\n\n[topology]\n{topology}\n", self.seed);
        let known = keys(self.family);
        let mut tables: BTreeMap<&str, String> = BTreeMap::new();
        for (_, table, line) in ALWAYS.iter().filter(|(family, ..)| *family == self.family) {
            tables.entry(table).or_default().push_str(line);
        }
        for (number, value) in &self.keys {
            let (table, key, values) = known[*number];
            let _ = writeln!(tables.entry(table).or_default(), "{key} = {}", values[*value]);
        }
        let job = tables.remove("job").unwrap_or_default();
        let mut traffic = tables.remove("traffic");
        for (table, lines) in tables {
            let _ = write!(out, "\n[{table}]\n{lines}");
        }
        if self.family == "fabric" {
            let lines = traffic.get_or_insert_default();
            for (key, least) in [("rate", "0.05"), ("pattern", "\"uniform\"")] {
                if !lines.lines().any(|line| line.starts_with(key)) {
                    let _ = writeln!(lines, "{key} = {least}");
                }
            }
        } else {
            let _ = write!(out, "\n[[job]]\nname = \"fuzz\"\n{job}");
            if let Some(lines) = &mut traffic {
                lines.push_str("pattern = \"uniform\"\n");
            }
        }
        if self.members < ends {
            let members: Vec<String> = (0..self.members).map(|member| member.to_string()).collect();
            let _ = writeln!(out, "participants = [{}]", members.join(", "));
        }
        if let Some(lines) = traffic {
            let _ = write!(out, "\n[[traffic]]\nname = \"fuzz-traffic\"\nstop_cycle = 2000\n{lines}");
        }
        out
    }

    /// Cases that are a step smaller, the boldest step first.
    fn smaller(&self) -> Vec<Self> {
        let mut out = Vec::new();
        for (topology, (_, ends)) in TOPOLOGIES.iter().enumerate().take(self.topology) {
            let ends = *ends;
            let whole = self.members == TOPOLOGIES[self.topology].1;
            let members = if whole { ends } else { self.members.min(ends) };
            out.push(Self { topology, members, ..self.clone() });
        }
        for key in self.keys.keys() {
            let mut case = self.clone();
            case.keys.remove(key);
            out.push(case);
        }
        for (key, value) in &self.keys {
            for simpler in 0..*value {
                let mut case = self.clone();
                case.keys.insert(*key, simpler);
                out.push(case);
            }
        }
        let ends = TOPOLOGIES[self.topology].1;
        if self.members < ends {
            out.push(Self { members: ends, ..self.clone() });
        }
        out.extend((2..self.members).filter(|_| self.members < ends).map(|members| Self { members, ..self.clone() }));
        if self.seed > 1 {
            out.push(Self { seed: 1, ..self.clone() });
        }
        out
    }

    /// How large it is: what [`smaller`](Self::smaller) makes has less, so that shrinking ends.
    fn size(&self) -> (usize, usize, usize, u32, u64) {
        let ends = TOPOLOGIES[self.topology].1;
        let part = if self.members < ends { self.members } else { 0 };
        (self.topology, self.keys.len(), self.keys.values().sum(), part, self.seed)
    }
}

fn wrong(kind: impl Into<String>, detail: impl Into<String>, flags: &'static str) -> Came {
    Came::Failed(Failure { kind: kind.into(), detail: detail.into(), flags })
}

/// What is wrong with a document by itself.
fn judged(document: &Document, loaded: &Loaded, judge: Judge<'_>) -> Option<Came> {
    if document.outcome != Outcome::Finished {
        let detail = document.unfinished().unwrap_or("it did not end");
        return Some(wrong("the run did not finish", detail, ""));
    }
    if let Some(check) = document.checks.iter().find(|check| !check.passed) {
        return Some(wrong(format!("check \"{}\" failed", check.name), &*check.detail, ""));
    }
    let condition = judge.fail_if?;
    let facts = Facts::new(document, loaded);
    let holds = condition.eval(&|name| facts.named(name)).is_some_and(|value| value.holds());
    holds.then(|| wrong(format!("{condition} holds"), "", ""))
}

/// Runs a case: as it is, in another order of evaluation, and without skipping.
pub fn try_out(case: &Case, judge: Judge<'_>) -> Came {
    try_with(case, judge, &|loaded, options| run(loaded, options))
}

/// How a case is run.
type Runner<'a> = &'a dyn Fn(&Loaded, &RunOptions<'_>) -> Result<RunResult, RunError>;

fn try_with(case: &Case, judge: Judge<'_>, run: Runner<'_>) -> Came {
    let hook = |_| if (judge.stop)() { Control::Stop } else { Control::Continue };
    let hooked = || RunOptions { hook: Some(&hook), ..RunOptions::default() };
    let once = |options: &RunOptions<'_>| -> Result<(Loaded, Document), Came> {
        let loaded = load_text("fuzz", &case.text(), Path::new("."), "fuzz", &[]).map_err(|problems| {
            Came::Refused(problems.list().first().map_or_else(String::new, |one| one.message().to_owned()))
        })?;
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&loaded, options)));
        match outcome {
            Ok(Ok(result)) if result.document.outcome == Outcome::Interrupted => {
                Err(Came::Refused("it was stopped".to_owned()))
            }
            Ok(Ok(result)) => Ok((loaded, result.document)),
            Ok(Err(error)) => Err(Came::Refused(error.to_string().lines().next().unwrap_or_default().to_owned())),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().cloned();
                let words = words.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
                Err(wrong("the program panicked", words.lines().next().unwrap_or_default(), ""))
            }
        }
    };
    let plain = hooked();
    let (loaded, document) = match once(&plain) {
        Ok(done) => done,
        Err(came) => return came,
    };
    if let Some(came) = judged(&document, &loaded, judge) {
        return came;
    }
    let json = |document: &Document| serde_json::to_string(document).unwrap_or_default();
    let shuffled = RunOptions { order_seed: Some(1), ..hooked() };
    let every = RunOptions { no_skip: true, ..hooked() };
    for (options, (what, flags)) in [shuffled, every].iter().zip(AGAIN) {
        match once(options) {
            Ok((_, again)) if json(&again) == json(&document) => {}
            Ok(_) => return wrong(format!("{what} changes the result"), "the documents differ", flags),
            Err(Came::Failed(failure)) => return Came::Failed(Failure { flags, ..failure }),
            Err(other) => return other,
        }
    }
    Came::Passed
}

/// Makes a failing case as small as it can be made step by step; how many cases were tried.
pub fn shrunk(case: &Case, failure: &Failure, judge: Judge<'_>) -> (Case, Failure, u64) {
    let (mut case, mut failure, mut tried) = (case.clone(), failure.clone(), 0);
    loop {
        let size = case.size();
        let next = case.smaller().into_iter().filter(|smaller| smaller.size() < size).find_map(|smaller| {
            tried += 1;
            match try_out(&smaller, judge) {
                Came::Failed(found) if found.kind == failure.kind => Some((smaller, found)),
                _ => None,
            }
        });
        match next {
            Some(next) => (case, failure) = next,
            None => return (case, failure, tried),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_drawn_the_same_again_and_most_of_them_run() {
        for family in FAMILIES {
            let cases: Vec<Case> = (0..12).map(|run| Case::drawn(family, 3, run)).collect();
            assert_eq!(cases, (0..12).map(|run| Case::drawn(family, 3, run)).collect::<Vec<_>>());
            let came: Vec<Came> =
                cases.iter().map(|case| try_out(case, Judge { fail_if: None, stop: &|| false })).collect();
            let passed = came.iter().filter(|came| **came == Came::Passed).count();
            assert!(!came.iter().any(|came| matches!(came, Came::Failed(_))), "{family}: {came:?}");
            assert!(passed >= 4, "{family}: {came:?}");
        }
    }

    /// The planted fault is a cycle too many in runs that skip nothing, or in those of another order of evaluation.
    #[test]
    fn runs_that_must_be_equal_are_compared_in_every_family() {
        let judge = Judge { fail_if: None, stop: &|| false };
        for family in FAMILIES {
            let passes = |case: &Case| try_out(case, judge) == Came::Passed;
            let case = (0..20).map(|run| Case::drawn(family, 2, run)).find(passes).unwrap();
            for (flags, is_faulty) in [
                ("--no-skip", (|options| options.no_skip) as fn(&RunOptions<'_>) -> bool),
                ("--order-seed 1", |options| options.order_seed.is_some()),
            ] {
                let faulty = |loaded: &Loaded, options: &RunOptions<'_>| {
                    let mut result = run(loaded, options)?;
                    result.document.cycles += u64::from(is_faulty(options));
                    Ok(result)
                };
                match try_with(&case, judge, &faulty) {
                    Came::Failed(failure) => assert_eq!(failure.flags, flags, "{family}: {failure:?}"),
                    other => panic!("{family} {flags}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn every_step_makes_a_case_smaller() {
        for run in 0..40 {
            let case = Case::drawn("piuma", 5, run);
            for smaller in case.smaller() {
                assert!(smaller != case);
            }
            assert!(
                case.smaller().iter().any(|smaller| smaller.size() < case.size()) || case.size().1 == 0,
                "{case:?}"
            );
        }
    }
}
