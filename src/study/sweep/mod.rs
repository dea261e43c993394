//! Sweeps: one scenario, or several, over many values of their parameters.
//!
//! | file | holds |
//! |---|---|
//! | [`form`] | the keys of a sweep file and what they mean |
//! | [`file`](mod@file) | the sweep file: scenarios, axes, samples, filters, metrics, objectives, searches |
//! | [`keys`] | whether the scenarios have what the axes set |
//! | [`changes`] | what is different from the last time, and what of that is still known |
//! | [`points`] | points: grids, samples, filters |
//! | [`plan`] | which points are run, in which order |
//! | `pareto` | the search for a front |
//! | [`front`](mod@front) | fronts, and their hypervolume |
//! | [`shared`] | who computes which point, where several processes share a folder |
//! | [`store`] | their outcomes, in a journal that survives the end of the process at any instant |
//! | [`status`](mod@status) | what is done and left |
//! | [`table`] | the columns of `points.csv`, and their units |
//! | [`best`] | the best points: one objective or several, under constraints |
//!
//! A point is known by the hash of its resolved configuration: two ways to write one configuration are computed once, and a
//! point that is in the store is never computed again. What is written does not depend on the number of threads nor on how
//! often the sweep was interrupted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

pub mod best;
pub mod changes;
#[cfg(feature = "parquet")]
pub mod export;
pub mod file;
pub mod form;
pub mod front;
pub mod keys;
mod pareto;
pub mod plan;
pub mod points;
pub mod shared;
pub mod status;
pub mod store;
pub mod table;

pub use best::pareto;
pub use changes::Changes;
pub use file::Sweep;
pub use plan::{Plan, Point};
pub use status::Status;
pub use store::{Row, Store, StoreError};
pub use table::PointResult;

use shared::{Heartbeat, PointClaims, PointCounters, PointOwner};
use store::PointOutcome;
use watershed_files::{self as files, WriteLock};
use watershed_scenario_interface::kind::Kind;
use watershed_scenario_interface::result::{Document, Outcome, fnv1a};
use watershed_scenario_interface::run::{self, Control, RunOptions};
use watershed_scenario_interface::{Engines, Problems, Runnable, Source, load_named, read_file, shipped, source_of};

/// What a sweep is run with.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// What runs its points.
    pub engines: Engines,
    /// Threads.
    pub jobs: usize,
    /// Which part of the points, and of how many parts: from 1 on.
    pub shard: Option<(u64, u64)>,
    /// Share the points with all processes that compute into the same folder; one that gave no sign for this long is gone.
    pub shared: Option<Duration>,
    /// Go on in a folder that has results already.
    pub resume: bool,
    /// Whether to end now, with what is done.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Called for every point: done, of how many if that is known, and failed.
    pub progress: &'a dyn Fn(usize, Option<usize>, usize),
}

/// How a sweep ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Points of this part of the sweep.
    pub points: usize,
    /// Points of which nothing had to be computed.
    pub known: usize,
    /// How many of them were in no store, but have the configuration of another point of this run, and so its outcome.
    pub equal: usize,
    /// Points that were computed now.
    pub computed: usize,
    /// Points that failed a check or were refused.
    pub failed: usize,
    /// The user stopped it.
    pub interrupted: bool,
    /// Points that others who share the folder have claimed and not computed.
    pub elsewhere: usize,
    /// What a search for saturation has found.
    pub brackets: Vec<plan::Bracket>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// What is different from the sweep that the folder held before.
    pub changes: Option<Changes>,
}

/// Why a sweep cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The sweep file, or a scenario with nothing varied, is wrong.
    #[error("{0}")]
    Problems(#[from] Problems),
    /// The store fails.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A file cannot be written.
    #[error("error: cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The options do not fit the sweep.
    #[error("error: {0}")]
    Usage(String),
}

/// Loads a scenario of the sweep with these values set.
fn load(engines: Engines, sweep: &Sweep, scenario: usize, sets: &[String]) -> Result<Runnable, Problems> {
    load_named(engines, &sweep.scenarios[scenario].file, sets)
}

/// The text of a scenario of the sweep, with nothing set.
fn source(sweep: &Sweep, scenario: usize) -> Result<Source, Problems> {
    let file = &sweep.scenarios[scenario].file;
    let name = file.to_string_lossy().replace('\\', "/");
    let beside = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
    match shipped::find(&name) {
        Some((path, text)) if !file.exists() => source_of(path, text, &shipped::base(path)),
        _ => source_of(&file.display().to_string(), &read_file(file)?, &beside(file)),
    }
}

/// What a result belongs to: equal sweeps of equal scenarios have equal fingerprints.
fn fingerprint(sweep: &Sweep, bases: &[Runnable]) -> String {
    let configs = bases.iter().map(|loaded| serde_json::to_string(&loaded.scenario).unwrap_or_default());
    let text: String = std::iter::once(sweep.text.clone()).chain(configs).collect::<Vec<_>>().join("\n");
    format!("{:016x}", fnv1a(text.as_bytes()))
}

/// The hash of every scenario's configuration with nothing varied, by name, as JSON.
fn scenario_hashes(sweep: &Sweep, bases: &[Runnable]) -> String {
    let hash = |loaded: &Runnable| {
        let config = serde_json::to_string(&loaded.scenario).unwrap_or_default();
        format!("{:016x}", fnv1a(config.as_bytes()))
    };
    let named = sweep.scenarios.iter().zip(bases).map(|(entry, loaded)| (entry.name.clone(), hash(loaded)));
    serde_json::to_string(&named.collect::<BTreeMap<String, String>>()).unwrap_or_default()
}

/// What is different from the sweep that a store holds.
fn what_changed(sweep: &Sweep, store: &Store, folder: &Path, configs: &str) -> Vec<String> {
    let mut what = of_store(store, folder).map(|old| changes::between(&old, sweep)).unwrap_or_default();
    let read = |text: &str| serde_json::from_str::<BTreeMap<String, String>>(text).unwrap_or_default();
    let before = store.note("scenarios").map(read).unwrap_or_default();
    for (name, hash) in read(configs) {
        let line = format!("file or `set` of scenario `{name}`");
        if before.get(&name).is_some_and(|before| *before != hash) && !what.contains(&line) {
            what.push(format!("what scenario `{name}` says"));
        }
    }
    what
}

/// Runs a sweep into a folder and leaves `points.csv` there.
///
/// # Errors
/// See [`SweepError`]. A point that fails is no error.
pub fn run(sweep: &Sweep, folder: &Path, options: &Options<'_>) -> Result<Report, SweepError> {
    let mut plan = Plan::new(sweep).map_err(|impossible| SweepError::Usage(impossible.to_string()))?;
    if (options.shard.is_some() || options.shared.is_some()) && plan.size().is_none() {
        let what = if options.shard.is_some() { "cut into shards" } else { "shared" };
        return Err(SweepError::Usage(format!("a search cannot be {what}: its points follow from each other")));
    }
    keys::check(sweep)?;
    // A scenario that is wrong without any axis would only make every point fail.
    let bases = (0..sweep.scenarios.len())
        .map(|scenario| load(options.engines, sweep, scenario, &sweep.scenarios[scenario].set))
        .collect::<Result<Vec<Runnable>, Problems>>()?;
    let seeds: Vec<u64> = bases.iter().map(|loaded| loaded.scenario.seed).collect();
    if let Some(stale) = options.shared {
        return run_shared(sweep, folder, options, stale, &bases, &plan.next(&[]));
    }
    let _claim = claim(folder)?;
    let mut store = Store::open(folder)?;
    let print = fingerprint(sweep, &bases);
    let before = store.note("fingerprint");
    if !options.resume && !store.is_empty() {
        let text = format!("{} holds results of a sweep; --resume goes on with it", folder.display());
        return Err(SweepError::Usage(text));
    }
    let mut report = Report::default();
    let configs = scenario_hashes(sweep, &bases);
    if before.is_some_and(|before| before != print) {
        report.changes = Some(Changes { what: what_changed(sweep, &store, folder, &configs), ..Changes::default() });
    }
    let earlier: HashSet<String> = store.rows().into_iter().map(|row| row.key).collect();
    let stored = store.keys();
    let version = version();
    if let Some(before) = store.note("version")
        && before != version
    {
        report.notes.push(format!("earlier points were computed by version {before}, this is {version}"));
    }
    begin(&mut store, sweep, &print, &configs)?;
    let heartbeat = Heartbeat::begin(folder);

    let size = plan.size().map(|size| match options.shard {
        Some((part, parts)) => (0..size as u64).filter(|number| number % parts == part - 1).count(),
        None => size,
    });
    let mut facts: Vec<Option<PointResult>> = Vec::new();
    loop {
        let first = facts.len() as u64;
        let batch = plan.next(&facts);
        if batch.is_empty() {
            break;
        }
        let mine = |number: u64| options.shard.is_none_or(|(part, parts)| number % parts == part - 1);
        let numbered: Vec<(u64, &Point)> = batch
            .iter()
            .enumerate()
            .map(|(at, point)| (first + at as u64, point))
            .filter(|(number, _)| mine(*number))
            .collect();
        let (earlier, counts, take) = (&stored, &heartbeat.counts, &|_| Ok(true));
        let batch_of = Batch { points: &numbered, size, seeds: &seeds, earlier, take, counts };
        evaluate(sweep, &batch_of, &mut store, options, &mut report)?;
        if report.interrupted {
            break;
        }
        if size.is_some() {
            break;
        }
        // The outcome of the batch decides what comes next.
        let rows = store.rows();
        let by_number: BTreeMap<u64, &Row> = rows.iter().map(|row| (row.number, row)).collect();
        facts.extend(
            (first..first + batch.len() as u64).map(|number| {
                by_number.get(&number).filter(|row| row.status == "ok").and_then(|row| row.facts.clone())
            }),
        );
    }
    if !report.interrupted {
        report.brackets = plan.brackets().to_vec();
    }
    // The journal of a whole sweep has the same bytes whether it was computed here, shared, or merged.
    if !report.interrupted && options.shard.is_none() {
        store.merge(&[])?;
    }
    let rows = write_table(sweep, &store, folder)?;
    if let Some(changes) = &mut report.changes {
        let now: HashSet<String> = rows.into_iter().map(|row| row.key).collect();
        (changes.kept, changes.added) = (report.known - report.equal, report.computed);
        changes.dropped = earlier.difference(&now).count();
    }
    Ok(report)
}

/// The version of this program, as stores have it.
fn version() -> String {
    format!("{} ({})", env!("CARGO_PKG_VERSION"), watershed_scenario_interface::result::commit())
}

/// Makes a store that of a sweep.
fn begin(store: &mut Store, sweep: &Sweep, print: &str, configs: &str) -> Result<(), StoreError> {
    let (base, version) = (sweep.base.to_string_lossy().into_owned(), version());
    let notes =
        [("fingerprint", print), ("text", &sweep.text), ("base", &base), ("version", &version), ("scenarios", configs)];
    store.begin(&notes)
}

/// Runs the points of a sweep that no other process of the folder runs. The one that finds all done joins the parts.
fn run_shared(
    sweep: &Sweep,
    folder: &Path,
    options: &Options<'_>,
    stale: Duration,
    bases: &[Runnable],
    points: &[Point],
) -> Result<Report, SweepError> {
    let failed = |error| SweepError::Write { path: folder.to_owned(), error };
    let print = fingerprint(sweep, bases);
    let fits = |stores: &[Store]| {
        if stores.iter().all(|store| store.note("fingerprint").is_none_or(|of| of == print)) {
            return Ok(());
        }
        let text = format!("{} holds parts of another sweep: share another folder", folder.display());
        Err(SweepError::Usage(text))
    };
    if folder.is_dir() {
        fits(&stores(folder)?)?;
    }
    let part = shared::own_part(folder).map_err(failed)?;
    let mut store = Store::open(&part.folder)?;
    begin(&mut store, sweep, &print, &scenario_hashes(sweep, bases))?;
    let heartbeat = Heartbeat::begin(&part.folder);
    let earlier = store.keys();
    let claims = PointClaims::new(folder, &part, stale);
    let seeds: Vec<u64> = bases.iter().map(|loaded| loaded.scenario.seed).collect();
    let begun: Mutex<BTreeSet<u64>> = Mutex::default();
    let begin_one = |number| {
        begun.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
        true
    };
    let mut report = Report::default();
    let missing = || -> Result<Vec<(u64, &Point)>, SweepError> {
        let all = stores(folder)?;
        let finished: HashSet<u64> = all.iter().flat_map(Store::finished).collect();
        Ok((0..).zip(points).filter(|(number, _)| !finished.contains(number)).collect())
    };
    // What nobody has claimed, each process from a place of its own on.
    let mut left = missing()?;
    let from = fnv1a(part.name.as_bytes()) as usize % left.len().max(1);
    left.rotate_left(from);
    let (mut total, mut known) = (Report::default(), points.len() - left.len());
    let take = |number| Ok(claims.try_claim(number)? && begin_one(number));
    let taken = |number| Ok(begin_one(number));
    let mut first = true;
    while !left.is_empty() && !report.interrupted {
        let mut doubtful = false;
        if !first {
            let begun = begun.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut mine = Vec::new();
            for (number, point) in left {
                match claims.take_over(number, &begun).map_err(failed)? {
                    PointOwner::Mine => mine.push((number, point)),
                    PointOwner::Theirs => {}
                    PointOwner::Unknown => doubtful = true,
                }
                // Others who are idle take the rest.
                if mine.len() >= options.jobs {
                    break;
                }
            }
            left = mine;
        }
        if left.is_empty() {
            report.interrupted = (options.stop)();
            if !doubtful || report.interrupted {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        } else {
            let take: TryClaim<'_> = if first { &take } else { &taken };
            report.known = known;
            let size = Some(points.len());
            let (earlier, counts) = (&earlier, &heartbeat.counts);
            let batch = Batch { points: &left, size, seeds: &seeds, earlier, take, counts };
            evaluate(sweep, &batch, &mut store, options, &mut report)?;
            (total.computed, total.equal, total.failed) = (report.computed, report.equal, report.failed);
        }
        first = false;
        left = missing()?;
        known = points.len() - left.len() - report.computed.min(points.len() - left.len());
    }
    let elsewhere = missing()?.len();
    total.interrupted = report.interrupted;
    (total.points, total.elsewhere) = (points.len(), elsewhere);
    total.known = points.len() - elsewhere - total.computed.min(points.len() - elsewhere);
    drop(heartbeat);
    if elsewhere == 0 {
        match merge(folder, &shared::parts(folder).map_err(failed)?) {
            // The process that has it has found the same.
            Err(SweepError::Write { error, .. }) if error.kind() == std::io::ErrorKind::ResourceBusy => {}
            other => drop(other?),
        }
    }
    Ok(total)
}

/// The stores in a folder: its own, and those of the parts of one that is shared.
///
/// # Errors
/// One cannot be read.
pub fn stores(folder: &Path) -> Result<Vec<Store>, SweepError> {
    let folders = folders(folder)?;
    Ok(folders.iter().map(|folder| Store::open(folder)).collect::<Result<_, StoreError>>()?)
}

/// The folders with stores in one.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, SweepError> {
    let own = Store::exists(folder).then(|| folder.to_owned());
    let parts = shared::parts(folder).map_err(|error| SweepError::Write { path: folder.to_owned(), error })?;
    // A process that has just begun, or died then, has not written which sweep its part is of.
    let has_begun = |part: &PathBuf| Store::open(part).is_ok_and(|store| store.note("text").is_some());
    Ok(own.into_iter().chain(parts.into_iter().filter(has_begun)).collect())
}

/// The outcome of all points that are in a folder, be it shared or not.
///
/// # Errors
/// A store cannot be read.
pub fn rows(folder: &Path) -> Result<Vec<Row>, SweepError> {
    let all = stores(folder)?.iter().flat_map(Store::rows).map(|row| (row.number, row)).collect::<BTreeMap<u64, Row>>();
    Ok(all.into_values().collect())
}

/// Sees to it that nobody else writes results into a folder, which is made where there is none.
fn claim(folder: &Path) -> Result<Option<WriteLock>, SweepError> {
    let path = Store::file(folder);
    let claimed = std::fs::create_dir_all(folder).and_then(|()| WriteLock::take(&path));
    claimed.map_err(|error| SweepError::Write { path, error })
}

/// Writes `points.csv` of what the store holds, and beside it `columns.csv` with the units.
///
/// # Errors
/// The store or the file.
pub fn write_table(sweep: &Sweep, store: &Store, folder: &Path) -> Result<Vec<Row>, SweepError> {
    let rows = store.rows();
    let path = folder.join("points.csv");
    let text = table::csv(sweep, &rows);
    files::write(&path, text).map_err(|error| SweepError::Write { path, error })?;
    let path = folder.join("columns.csv");
    files::write(&path, table::units_csv(sweep)).map_err(|error| SweepError::Write { path, error })?;
    Ok(rows)
}

/// The sweep that a store belongs to.
///
/// # Errors
/// It holds none, or one that this program does not understand.
pub fn of_store(store: &Store, folder: &Path) -> Result<Sweep, SweepError> {
    let (Some(text), Some(base)) = (store.note("text"), store.note("base")) else {
        return Err(SweepError::Usage(format!("{} holds no sweep", folder.display())));
    };
    let name = format!("the sweep in {}", folder.display());
    Ok(Sweep::parse(&name, text, Path::new(base))?)
}

/// What is said of something that was given as the folder of a sweep and is none.
pub fn no_results(path: &Path) -> String {
    let name = path.display();
    let kind = Kind::of(path);
    let beside = path.parent().filter(|folder| path.is_file() && Kind::of(folder) == Kind::SweepFolder);
    let hint = match &kind {
        Kind::Missing => return format!("{name} holds no results of a sweep: there is nothing of that name"),
        _ if beside.is_some() => beside.map(|folder| format!("give its folder: {}", folder.display())),
        Kind::Folder => Some(format!("`watershed sweep FILE.toml --out {name}` fills it")),
        Kind::Sweep => Some(format!("`watershed sweep {name} --out DIR` runs it, and DIR has its results then")),
        kind => kind.taken_by(path),
    };
    let hint = hint.map_or_else(String::new, |hint| format!("\n  {hint}"));
    format!("{name} holds no results of a sweep: it is {}{hint}", kind.words())
}

/// The folders with stores in those that are given: a shared one has a store in each of its parts.
///
/// # Errors
/// One has none.
fn expand_folders(given: &[PathBuf]) -> Result<Vec<PathBuf>, SweepError> {
    let mut all = Vec::new();
    for part in given {
        let found = if part.is_dir() { folders(part)? } else { Vec::new() };
        if found.is_empty() {
            return Err(SweepError::Usage(no_results(part)));
        }
        all.extend(found);
    }
    Ok(all)
}

/// The stores of folders, and the sweep that they belong to. A process whose part is there has not always begun in it.
///
/// # Errors
/// Nothing has begun in any, or they belong to different sweeps.
fn of_one_sweep(folders: &[PathBuf]) -> Result<(Vec<Store>, Sweep), SweepError> {
    let stores = folders.iter().map(|folder| Store::open(folder)).collect::<Result<Vec<Store>, StoreError>>()?;
    let all = || stores.iter().zip(folders);
    let Some((store, folder)) = all().find(|(store, _)| store.has_begun()).or_else(|| all().next()) else {
        return Err(SweepError::Usage("there is no folder to look at".into()));
    };
    let sweep = of_store(store, folder)?;
    stores.iter().try_for_each(|other| store.fits(other))?;
    Ok((stores, sweep))
}

/// What of a sweep is done and left in these folders, shared or not.
///
/// # Errors
/// A folder has no store, or they belong to different sweeps.
pub fn status(given: &[PathBuf]) -> Result<Status, SweepError> {
    let folders = expand_folders(given)?;
    let (stores, sweep) = of_one_sweep(&folders)?;
    let size = Plan::new(&sweep).ok().and_then(|plan| plan.size()).map(|size| size as u64);
    let status = stores.iter().flat_map(Store::rows).map(|row| (row.number, row.status)).collect();
    // What parts were joined into has been computed by them.
    let is_joined = |folder: &Path| folders.iter().any(|other| other.parent() == Some(folder));
    let each = folders.iter().zip(&stores).filter(|(folder, _)| !is_joined(folder));
    let workers = each.map(|(folder, store)| shared::worker(folder, store)).collect();
    Ok(Status::new(size, &status, workers))
}

/// The outcome of joining stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergeOutcome {
    /// Points in the table.
    pub points: usize,
    /// Points of the whole sweep, if it is no search.
    pub size: Option<usize>,
    /// Numbers of the points that no part has, in order.
    pub missing: Vec<u64>,
}

/// Joins the stores of several folders into one and writes its `points.csv`.
///
/// # Errors
/// A folder has no store, or they belong to different sweeps: nothing is written then.
pub fn merge(folder: &Path, parts: &[PathBuf]) -> Result<MergeOutcome, SweepError> {
    let (stores, sweep) = of_one_sweep(&expand_folders(parts)?)?;
    // A merge that is refused leaves no folder behind.
    let _there = if folder.is_dir() { claim(folder)? } else { None };
    if Store::exists(folder) {
        let into = Store::open(folder)?;
        stores.iter().try_for_each(|store| into.fits(store))?;
    }
    let _claim = claim(folder)?;
    let mut into = Store::open(folder)?;
    into.merge(&stores)?;
    let rows = write_table(&sweep, &into, folder)?;
    let there: HashSet<u64> = rows.iter().map(|row| row.number).collect();
    let size = Plan::new(&sweep).ok().and_then(|plan| plan.size());
    let missing = (0..size.unwrap_or(0) as u64).filter(|number| !there.contains(number)).collect();
    Ok(MergeOutcome { points: rows.len(), size, missing })
}

/// What a worker hands over: a row, and the outcome of its point unless another worker computes it.
type FinishedPoint = (Row, Option<PointOutcome>);

/// Says whether a point is this process's to compute.
type TryClaim<'a> = &'a (dyn Fn(u64) -> std::io::Result<bool> + Sync);

/// Points to compute.
struct Batch<'a> {
    points: &'a [(u64, &'a Point)],
    /// Points of the whole sweep, if that is known.
    size: Option<usize>,
    /// Seeds of the scenarios.
    seeds: &'a [u64],
    /// Keys of the points that were there before this run.
    earlier: &'a HashSet<String>,
    take: TryClaim<'a>,
    counts: &'a PointCounters,
}

/// Computes what is not in the store yet.
fn evaluate(
    sweep: &Sweep,
    batch: &Batch<'_>,
    store: &mut Store,
    options: &Options<'_>,
    report: &mut Report,
) -> Result<(), SweepError> {
    let Batch { points, size, seeds, earlier, take, counts } = *batch;
    let engines = options.engines;
    let finished = store.finished();
    let claimed: Mutex<HashSet<String>> = Mutex::new(store.keys());
    let left: Vec<&(u64, &Point)> = points.iter().filter(|(number, _)| !finished.contains(number)).collect();
    report.points += points.len();
    report.known += points.len() - left.len();
    (options.progress)(report.known + report.computed, size, report.failed);
    let next = AtomicUsize::new(0);
    // Nobody goes on computing what cannot be kept.
    let lost = AtomicBool::new(false);
    let refused: Mutex<Option<std::io::Error>> = Mutex::default();
    let stop: &(dyn Fn() -> bool + Sync) = &|| lost.load(Ordering::Relaxed) || (options.stop)();
    let (sender, receiver) = mpsc::sync_channel::<FinishedPoint>(256);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, left.len().max(1)) {
            let (sender, next, left, claimed, refused, lost) =
                (sender.clone(), &next, &left, &claimed, &refused, &lost);
            scope.spawn(move || {
                while let Some((number, point)) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop() {
                        return;
                    }
                    match take(*number) {
                        Ok(true) => counts.begin(),
                        Ok(false) => continue,
                        Err(error) => {
                            *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                            lost.store(true, Ordering::Relaxed);
                            return;
                        }
                    }
                    let Some(done) = compute(engines, sweep, seeds, (*number, point), claimed, stop) else { return };
                    if sender.send(done).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        // A worker that waits for room ends when nobody receives any more: the scope would never join one that waits on.
        let receiver = receiver;
        // Whatever is ready goes into one transaction: under load a commit serves many points.
        while let Ok(first) = receiver.recv() {
            let batch: Vec<FinishedPoint> = std::iter::once(first).chain(receiver.try_iter().take(255)).collect();
            let is_equal = |(row, done): &&FinishedPoint| done.is_none() && !earlier.contains(&row.key);
            report.equal += batch.iter().filter(is_equal).count();
            let (rows, done): (Vec<Row>, Vec<Option<PointOutcome>>) = batch.into_iter().unzip();
            let done: Vec<PointOutcome> = done.into_iter().flatten().collect();
            store.write(&rows, &done).inspect_err(|_| lost.store(true, Ordering::Relaxed))?;
            counts.end(rows.len() as u64);
            report.known += rows.len() - done.len();
            report.computed += done.len();
            report.failed += done.iter().filter(|done| done.status != "ok").count();
            (options.progress)(report.known + report.computed, size, report.failed);
        }
        Ok::<(), SweepError>(())
    })?;
    if let Some(error) = refused.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(SweepError::Write { path: store.path().to_owned(), error });
    }
    report.interrupted |= (options.stop)();
    Ok(())
}

/// Runs one point; `None` if the user stopped it.
fn compute(
    engines: Engines,
    sweep: &Sweep,
    seeds: &[u64],
    (number, point): (u64, &Point),
    claimed: &Mutex<HashSet<String>>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<FinishedPoint> {
    let entry = &sweep.scenarios[point.scenario];
    let sets = point.sets(sweep);
    let given = sets.iter().rev().find_map(|set| set.strip_prefix("seed=")?.trim().parse::<u64>().ok());
    let seed = given.unwrap_or(seeds[point.scenario]).wrapping_add(point.repetition);
    let columns = entry.axes.iter().flat_map(|axis| &axis.columns);
    let axes = columns.map(|name| (name.clone(), point.shown(sweep, name))).collect();
    let row = |key: String| Row {
        number,
        key,
        scenario: entry.name.clone(),
        file: entry.file.to_string_lossy().replace('\\', "/"),
        repetition: point.repetition,
        seed,
        axes,
        sets: sets.clone(),
        status: String::new(),
        facts: None,
        error: String::new(),
    };
    let mut all = sets.clone();
    all.push(format!("seed={seed}"));
    let claim = |key: &str| claimed.lock().is_ok_and(|mut claimed| claimed.insert(key.to_owned()));
    let loaded = match load(engines, sweep, point.scenario, &all) {
        Ok(loaded) => loaded,
        Err(problems) => {
            // What is refused has no configuration; its key is that of what was asked for.
            let key =
                format!("refused-{:016x}", fnv1a(format!("{}\n{}", entry.file.display(), all.join("\n")).as_bytes()));
            let problem = problems.list().first().map(|problem| problem.message().to_owned()).unwrap_or_default();
            let done = claim(&key).then(|| PointOutcome {
                key: key.clone(),
                status: "refused".into(),
                facts: None,
                error: problem,
            });
            return Some((row(key), done));
        }
    };
    let config = serde_json::to_string(&loaded.scenario).unwrap_or_default();
    let key = format!("{:016x}", fnv1a(config.as_bytes()));
    if !claim(&key) {
        return Some((row(key), None));
    }
    let hook = |progress| if stop() { Control::Stop } else { run::notify_watcher(progress) };
    let run_options = RunOptions { hook: Some(&hook), ..RunOptions::default() };
    let outcome = catch_unwind(AssertUnwindSafe(|| loaded.run(&run_options)));
    let done = match outcome {
        Ok(Ok(result)) if result.document.outcome == Outcome::Interrupted => return None,
        Ok(Ok(result)) => {
            let error = failure(&result.document).unwrap_or_default();
            let status = if error.is_empty() { "ok" } else { "failed" };
            PointOutcome {
                key: key.clone(),
                status: status.into(),
                facts: Some(PointResult::new(&result.document, &loaded)),
                error,
            }
        }
        Ok(Err(error)) => {
            let error = error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            PointOutcome { key: key.clone(), status: "refused".into(), facts: None, error }
        }
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
            let error = format!("the program failed: {}", words.lines().next().unwrap_or_default());
            PointOutcome { key: key.clone(), status: "failed".into(), facts: None, error }
        }
    };
    Some((row(key), Some(done)))
}

/// What is wrong with a run, in a line.
fn failure(document: &Document) -> Option<String> {
    let failed = document.checks.iter().find(|check| !check.passed);
    let words = failed.map(|check| format!("{}: {}", check.name, check.detail.lines().next().unwrap_or_default()));
    words.or_else(|| (document.outcome != Outcome::Finished).then(|| "the run did not finish".to_owned()))
}
