//! `watershed compare`: the same job on several families, and in software.

use std::path::PathBuf;

use clap::Args;

use super::progress::{self, Counter};
use super::{Exit, complain, output, print};
use watershed_study::compare::{self, Contestant, Disturb, Setting, Stopped, page, table};

/// Compare scenarios that do the same job: latency, traffic, storage, and what happens when one is late or dead.
#[derive(Debug, Args)]
#[command(after_help = "\
A scenario with several collectives, reductions or hosts is a contestant for each of them, and each runs alone; SCENARIO:JOB
names one. Jobs are the same if end points, operation, type, elements and link speed are. A vector longer than a frame is
cut into frames, a round each, in the armed and PBV families.

Latency is from the first contribution to the last participant having the whole result. Every contestant runs again with its
participant of the highest number late (--late-ns), with that one dead, and with everybody up to --spread-ns late in other
orders of arrival (--orders), which shows whether the bits stay. Where a family has no word for a dead participant, it
starts after the run has been given up (limits.max_cycles). What came of that is in the table; --json has the --set
arguments of every run. Storage of software is that of switches without engines.

--set NAME:PATH=VALUE sets a value for one contestant: NAME is a scenario, a job, or SCENARIO:JOB. A scenario that is given twice
is NAME and NAME#2, so that it can be compared with itself, changed.

Examples:
  watershed compare face-off-piuma face-off-armed face-off-pbv face-off-hosts -o face-off.html
  watershed compare hosts-die:network hosts-die:ring hosts-die:rabenseifner
  watershed compare face-off-piuma face-off-hosts:ring --set 'topology.size=[8,8]' --orders 0 --no-dead
  watershed compare allreduce-die allreduce-die --set 'allreduce-die#2:switch.ceng.stages=6'
  watershed compare barrier-die barrier-tree --anyway

Exit status:
  0  all undisturbed runs ended with their checks passed
  1  one did not, or it was stopped before its end (Ctrl-C, SIGTERM, SIGHUP)
  2  the jobs differ, a scenario or the command line is wrong")]
pub(super) struct Arguments {
    /// Scenario files or names of shipped ones, with the name of a job behind a colon if not all are wanted
    #[arg(value_name = "SCENARIO[:JOB]", required = true)]
    scenarios: Vec<String>,
    /// Set a value in all scenarios, or with NAME: in that contestant only; can be given several times
    #[arg(long, value_name = "[NAME:]PATH=VALUE")]
    set: Vec<String>,
    /// Compare although the jobs differ
    #[arg(long)]
    anyway: bool,
    /// How late one participant is; 0 leaves that out
    #[arg(long, value_name = "NS", default_value_t = 1000.0, value_parser = nanoseconds)]
    late_ns: f64,
    /// Leave out the run with a dead participant
    #[arg(long)]
    no_dead: bool,
    /// Runs with other orders of arrival; 0 leaves that out
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1000))]
    orders: u32,
    /// How late participants are at most in those
    #[arg(long, value_name = "NS", default_value_t = 1000.0, value_parser = nanoseconds)]
    spread_ns: f64,
    /// Seed of who is how late in those
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads; 0 is one for each processor
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Write a page with plots
    #[arg(short, long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// A time in ns from 0 to a second.
pub(super) fn nanoseconds(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=1e9).contains(value));
    value.ok_or_else(|| "a time is a number of ns from 0 to 1000000000".to_owned())
}

/// Threads that are asked for.
pub(super) fn threads(jobs: usize) -> usize {
    if jobs > 0 { jobs } else { std::thread::available_parallelism().map_or(1, std::num::NonZero::get) }
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    // A scenario may have the name of a job behind a colon.
    let file = |given: &String| [given.clone(), given.rsplit_once(':').map_or("", |(file, _)| file).to_owned()];
    let inputs: Vec<PathBuf> = arguments.scenarios.iter().flat_map(file).map(PathBuf::from).collect();
    let outputs: Vec<_> = arguments.out.iter().map(|path| ("--out", path.clone())).collect();
    let claimed = output::claim(&outputs, &inputs);
    let (_claims, contestants) = match claimed.and_then(|claims| Ok((claims, contestants(arguments)?))) {
        Ok(ready) => ready,
        Err(error) => {
            complain(&error);
            return Exit::Bad;
        }
    };
    let disturb = Disturb {
        late_ns: arguments.late_ns,
        dead: !arguments.no_dead,
        orders: arguments.orders,
        spread_ns: arguments.spread_ns,
        seed: arguments.seed,
    };
    let counter = Counter::new("contestants");
    let show = |done, of| counter.show(done, of);
    let outcome = compare::compare(&contestants, &disturb, threads(arguments.jobs), &progress::stopped, &show);
    counter.finish();
    let comparison = match outcome {
        Ok(comparison) => comparison,
        Err(stopped) => return refuse(&stopped),
    };
    if let Some(path) = &arguments.out
        && let Err(error) = output::write(path, page::of_comparison(&comparison))
    {
        complain(&error);
        return Exit::Bad;
    }
    if arguments.json {
        print(&serde_json::to_string_pretty(&comparison).unwrap_or_default());
    } else if arguments.csv {
        print(&table::csv(&comparison.entries.iter().collect::<Vec<_>>(), &[]));
    } else {
        print(&table::text(&comparison));
    }
    if comparison.passed() { Exit::Fine } else { Exit::Failed }
}

/// Says why nothing came out.
pub(super) fn refuse(stopped: &Stopped) -> Exit {
    match stopped {
        Stopped::Interrupted => {
            complain(&"stopped before the end");
            Exit::Failed
        }
        Stopped::Refused(why) => {
            complain(why);
            Exit::Bad
        }
    }
}

fn contestants(arguments: &Arguments) -> Result<Vec<Contestant>, String> {
    let mut list: Vec<Contestant> = Vec::new();
    let mut settings: Vec<Setting> = arguments.set.iter().map(|set| Setting::read(set)).collect();
    for (at, source) in arguments.scenarios.iter().enumerate() {
        let times = arguments.scenarios[..at].iter().filter(|before| *before == source).count() + 1;
        list.extend(compare::jobs_with(source, times, &mut settings)?);
    }
    compare::shorten(&mut list);
    if let Some(unknown) = settings.iter().find(|setting| !setting.used) {
        let names: Vec<&str> = list.iter().map(|one| one.name.as_str()).collect();
        let wrong = unknown.name.as_deref().unwrap_or_default();
        return Err(super::unknown(&format!("--set {wrong}:{}: there is no contestant", unknown.set), wrong, &names));
    }
    if list.len() < 2 {
        return Err(format!("error: {} is one job alone; a comparison needs two", list[0].name));
    }
    let differences = compare::differences(&list);
    if !differences.is_empty() && !arguments.anyway {
        let lines: Vec<String> = differences.iter().map(|line| format!("  {line}")).collect();
        return Err(format!(
            "error: these are not the same job\n{}\n  --anyway compares them all the same",
            lines.join("\n")
        ));
    }
    Ok(list)
}
