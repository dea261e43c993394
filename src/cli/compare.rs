//! `watershed compare`: the same job on several families, and in software.

use std::path::{Path, PathBuf};

use clap::Args;

use super::progress::{self, BatchProgress};
use super::{Exit, output, print, print_error, study};
use watershed_study::compare::engines::EngineComparison;
use watershed_study::compare::study::Study;
use watershed_study::compare::{self, Contestant, ContestantError, Disturbance, Setting, page, table};

/// Compare scenarios that do the same job: latency, traffic, storage, and what happens when one is late or dead.
#[derive(Debug, Args)]
#[command(after_help = "\
A scenario with several collectives, reductions or hosts is a contestant for each of them, and each runs alone; SCENARIO:JOB
names one. Jobs are the same if end points, operation, type, elements and link speed are. A vector longer than a frame is
cut into frames, a round each, in the armed and PBV families.

Latency is from the first contribution to the last participant having the whole result. Every contestant runs again with its
participant of the highest number late (--late-ns), with that one dead, and with everybody up to --spread-ns late in other
orders of arrival (--orders), which shows whether the bits stay. Where a family has no word for a dead participant, it
starts after the run has been given up (limits.max_cycles). The outcome is in the table; --json has the --set
arguments of every run. Storage of software is that of switches without engines.

With --engines the same job runs on each engine and each network, at each length; clock, links and end points are the same, and
the heading says what is not. --print-study prints it as a file for `watershed study`, to be changed and kept.

--set NAME:PATH=VALUE sets a value for one contestant: NAME is a scenario, a job, or SCENARIO:JOB. A scenario that is given twice
is NAME and NAME#2, so that it can be compared with itself, changed.

Examples:
  watershed compare face-off-piuma face-off-armed face-off-pbv face-off-hosts -o face-off.html
  watershed compare hosts-die:network hosts-die:ring hosts-die:rabenseifner
  watershed compare face-off-piuma face-off-hosts:ring --set 'topology.size=[8,8]' --no-dead
  watershed compare allreduce-die allreduce-die --set 'allreduce-die#2:switch.ceng.stages=6'
  watershed compare barrier-die barrier-tree --anyway
  watershed compare --engines piuma,armed,pbv,software:ring --topology mesh,torus,mine.toml
  watershed compare --engines piuma,software --topology fat-tree --elements 1..64k -o page.html

Exit status:
  0  all undisturbed runs ended with their checks passed
  1  one did not, or it was stopped before its end (Ctrl-C, SIGTERM, SIGHUP)
  2  the jobs differ, a scenario or the command line is wrong")]
pub(super) struct Arguments {
    /// Scenario files or names of shipped ones, with the name of a job behind a colon if not all are wanted
    #[arg(value_name = "SCENARIO[:JOB]", required_unless_present = "engines")]
    scenarios: Vec<String>,
    /// Compare engines on one job instead: piuma, armed, pbv, software, software:ALGORITHM
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', conflicts_with_all = ["scenarios", "anyway"])]
    engines: Vec<String>,
    /// On these networks: mesh, torus, hyperx, flattened-butterfly, fat-tree, dragonfly, tree, die, nodes, or files of switches and links
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', requires = "engines", default_value = "mesh")]
    topology: Vec<String>,
    /// Lengths of the vector in elements: numbers, or A..B in steps of a factor of four
    #[arg(long, value_name = "N,..", requires = "engines", default_value = "4..4096", value_parser = lengths)]
    elements: LengthList,
    /// Number of end points
    #[arg(long, value_name = "N", requires = "engines", default_value_t = 16)]
    end_points: u64,
    /// The operation of the job
    #[arg(long, value_name = "NAME", requires = "engines", default_value = "sum")]
    op: String,
    /// The type of an element
    #[arg(long = "type", value_name = "NAME", requires = "engines", default_value = "f64")]
    dtype: String,
    /// Print the study file that this is, instead of running it
    #[arg(long, requires = "engines")]
    print_study: bool,
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
    #[command(flatten)]
    _status: super::messages::StatusOptions,
}

/// Vector lengths.
#[derive(Debug, Clone)]
struct LengthList(Vec<u64>);

/// Reads numbers and ranges of vector lengths.
fn lengths(text: &str) -> Result<LengthList, String> {
    let number = |text: &str| {
        let (digits, scale) = match text.trim().strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1 << 10),
            None => text.trim().strip_suffix('M').map_or((text.trim(), 1), |digits| (digits, 1 << 20)),
        };
        let number = digits.replace('_', "").parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
        let number = number.filter(|number| (1..=1 << 28).contains(number));
        number
            .ok_or_else(|| format!("\"{text}\" is no vector length: a number from 1 to 268435456, perhaps with k or M"))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => all.push(number(part)?),
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to)?);
                if from > to {
                    return Err(format!("\"{part}\" ends before it begins"));
                }
                all.extend(
                    std::iter::successors(Some(from), |length| Some(length * 4)).take_while(|&length| length < to),
                );
                all.push(to);
            }
        }
    }
    Ok(LengthList(all))
}

/// Compares engines on one job.
fn engines(arguments: &Arguments, disturb: Disturbance) -> Exit {
    let question = EngineComparison {
        engines: arguments.engines.clone(),
        topologies: arguments.topology.clone(),
        elements: arguments.elements.0.clone(),
        end_points: arguments.end_points,
        op: arguments.op.clone(),
        dtype: arguments.dtype.clone(),
        set: arguments.set.clone(),
        disturb,
    };
    let text = match question.study() {
        Ok(text) => text,
        Err(error) => {
            print_error(&format_args!("error: {error}"));
            return Exit::Bad;
        }
    };
    if arguments.print_study {
        print(&text);
        return Exit::Fine;
    }
    match Study::parse(super::engines(), "compare", &text, Path::new("")) {
        Ok(found) => {
            let Arguments { json, csv, out, jobs, .. } = arguments;
            study::run_study_file(
                &found,
                &study::StudyOutput { json: *json, csv: *csv, out: out.as_deref(), jobs: *jobs },
            )
        }
        Err(problems) => {
            print_error(&problems);
            Exit::Bad
        }
    }
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
    let disturb = Disturbance {
        late_ns: arguments.late_ns,
        dead: !arguments.no_dead,
        orders: arguments.orders,
        spread_ns: arguments.spread_ns,
        seed: arguments.seed,
    };
    let claimed = output::claim(&outputs, &inputs);
    if let (true, Ok(_claims)) = (!arguments.engines.is_empty(), &claimed) {
        return engines(arguments, disturb);
    }
    let (_claims, contestants) = match claimed.and_then(|claims| Ok((claims, contestants(arguments)?))) {
        Ok(ready) => ready,
        Err(error) => {
            print_error(&error);
            return Exit::Bad;
        }
    };
    let counter = BatchProgress::new("contestants");
    let show = |done, of| counter.show(done, of);
    let outcome = compare::compare(&contestants, &disturb, threads(arguments.jobs), &progress::stopped, &show);
    counter.finish();
    let comparison = match outcome {
        Ok(comparison) => comparison,
        Err(stopped) => return report_error(&stopped),
    };
    if let Some(path) = &arguments.out
        && let Err(error) = output::write(path, page::of_comparison(&comparison))
    {
        print_error(&error);
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
pub(super) fn report_error(stopped: &ContestantError) -> Exit {
    match stopped {
        ContestantError::Interrupted => {
            print_error(&"stopped before the end");
            Exit::Failed
        }
        ContestantError::Refused(why) => {
            print_error(why);
            Exit::Bad
        }
    }
}

fn contestants(arguments: &Arguments) -> Result<Vec<Contestant>, String> {
    let mut list: Vec<Contestant> = Vec::new();
    let mut settings: Vec<Setting> = arguments.set.iter().map(|set| Setting::read(set)).collect();
    for (at, source) in arguments.scenarios.iter().enumerate() {
        let times = arguments.scenarios[..at].iter().filter(|before| *before == source).count() + 1;
        list.extend(compare::jobs_with(super::engines(), source, times, &mut settings)?);
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
