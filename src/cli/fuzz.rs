//! `watershed fuzz`: random scenarios of a family, and the smallest one that fails.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;

use super::{Exit, engines, invocation, output, print, print_error, progress};
use watershed_scenario_interface::expr::Expr;
use watershed_study::fuzz::{Case, CaseOutcome, FAMILIES, FailureCriteria, minimise, run_case};
use watershed_study::sweep::store::shell_word;

/// Run random scenarios of a family; the first that fails is cut down to the smallest that still does, and written.
#[derive(Debug, Args)]
#[command(after_help = "\
A scenario fails if a check fails, if it does not end, if the program panics, if another order of evaluation or no
skipping of idle blocks changes the result, or if the condition of --fail-if holds; a workload, too, if its ranks did not do
what their trace says. What is drawn depends on --seed and the number of the run only.
Armed processes are given time-outs of some thousand cycles, so that idle cycles can be simulated one by one.

Examples:
  watershed fuzz piuma --seed 1 --runs 100
  watershed fuzz software --seed 7 --runs 50 --out out
  watershed fuzz fabric --runs 20
  watershed fuzz mixed --runs 20
  watershed fuzz workload --seed 3 --runs 20 --out out
  watershed fuzz armed --runs 200 --fail-if 'cycles > 2000' --out out

Exit status:
  0  no run failed
  1  one did: its smallest form is in fuzz-FAMILY-SEED-RUN.toml, with its trace beside it, or it was stopped (Ctrl-C, SIGTERM, SIGHUP)
  2  the command line is wrong, or the file cannot be written")]
pub(super) struct Arguments {
    /// Family: piuma, armed, pbv, software; fabric, which is traffic alone; mixed, which is jobs of several engines in one network; or workload, which is a trace of computing, messages and collectives
    #[arg(value_name = "FAMILY", value_parser = clap::builder::PossibleValuesParser::new(FAMILIES))]
    family: String,
    /// Draw scenarios with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of scenarios to run
    #[arg(long, value_name = "M", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Begin with this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// Call it a failure if this holds: an expression over columns of sweeps and values of the result, for example "cycles > 2000"
    #[arg(long, value_name = "EXPR", value_parser = Expr::parse_argument)]
    fail_if: Option<Expr>,
    /// Folder of the scenario that fails
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    #[command(flatten)]
    _status: super::messages::StatusOptions,
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    match execute(arguments) {
        Ok(exit) => exit,
        Err(error) => {
            print_error(&error);
            Exit::Bad
        }
    }
}

fn execute(arguments: &Arguments) -> Result<Exit, String> {
    let Arguments { seed, runs, first, .. } = *arguments;
    let family = FAMILIES.into_iter().find(|family| *family == arguments.family).unwrap_or(FAMILIES[0]);
    let unless = arguments.fail_if.as_ref();
    progress::handle_signals();
    let (mut passed, mut refused) = (0, BTreeMap::<String, u64>::new());
    for run in first..first.saturating_add(runs) {
        if progress::stopped() {
            print_error(&format_args!("stopped before the end, after {} runs", run - first));
            print(&summary(passed, &refused));
            return Ok(Exit::Failed);
        }
        progress::count((run - first) as usize, Some(runs as usize), "runs");
        let case = Case::drawn(family, seed, run);
        // What a panic says stands in the failure; the hook would print it for every step of shrinking.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let judge = FailureCriteria { fail_if: unless, stop: &progress::stopped };
        let came = run_case(engines(), &case, judge);
        let small = match &came {
            CaseOutcome::Failed(failure) => Some(minimise(engines(), &case, failure, judge)),
            _ => None,
        };
        std::panic::set_hook(hook);
        match came {
            CaseOutcome::Passed => passed += 1,
            CaseOutcome::Refused(why) => *refused.entry(why).or_default() += 1,
            CaseOutcome::Failed(_) => {}
        }
        let Some((case, failure, tried)) = small else { continue };
        let stem = format!("fuzz-{family}-{seed}-{run}");
        let path = arguments.out.join(format!("{stem}.toml"));
        let traces: Vec<_> =
            case.trace_files().into_iter().map(|(end, bytes)| (format!("{stem}{end}"), bytes)).collect();
        let flags = if failure.flags.is_empty() { String::new() } else { format!(" {}", failure.flags) };
        let again = format!("watershed run {}{flags}", shell_word(&path.display().to_string()));
        let mut find = format!("watershed fuzz {family} --seed {seed} --first {run} --runs 1");
        if let Some(condition) = unless {
            let _ = write!(find, " --fail-if {}", shell_word(&condition.to_string()));
        }
        let detail = failure.detail.lines().next().filter(|detail| !detail.is_empty());
        let detail = detail.map_or_else(String::new, |detail| format!(": {detail}"));
        let text = format!("# {}{detail}\n# {again}\n# {find}\n\n{}", failure.kind, case.text_with(&stem));
        let claimed = traces.iter().map(|(name, _)| ("--out", arguments.out.join(name)));
        let claimed: Vec<_> = std::iter::once(("--out", path.clone())).chain(claimed).collect();
        let _claims = output::claim(&claimed, &[])?;
        // The scenario comes last: where it is, its trace is whole.
        for (name, bytes) in &traces {
            output::write(&arguments.out.join(name), bytes)?;
        }
        output::write(&path, text)?;
        let mut out = summary(passed, &refused);
        let _ = writeln!(out, "run {run} fails: {}", failure.kind);
        if !failure.detail.is_empty() {
            let _ = writeln!(out, "               {}", failure.detail.lines().next().unwrap_or_default());
        }
        let _ = writeln!(out, "smallest       {} (after {tried} tries)\n", path.display());
        let _ = writeln!(out, "{}", case.text_with(&stem));
        let _ = writeln!(out, "run it again   {}", invocation::line(&again));
        let _ = write!(out, "find it again  {}", invocation::line(&find));
        print(&out);
        return Ok(Exit::Failed);
    }
    print(&summary(passed, &refused));
    Ok(Exit::Fine)
}

/// How many passed, and what the others were refused for.
fn summary(passed: u64, refused: &BTreeMap<String, u64>) -> String {
    let all: u64 = refused.values().sum();
    let mut out = format!("{passed} runs passed, {all} scenarios were refused\n");
    let mut list: Vec<(&String, &u64)> = refused.iter().collect();
    list.sort_by_key(|(why, count)| (std::cmp::Reverse(**count), (*why).clone()));
    for (why, count) in list.iter().take(5) {
        let _ = writeln!(out, "  {count} x {why}");
    }
    out
}
