//! A report: one HTML page with everything in it, made from results of runs and from sweeps. It loads nothing from anywhere,
//! follows the reader's light or dark scheme, and works on narrow screens.
//!
//! | part | made from |
//! |---|---|
//! | stamp, summary, checks | the result document |
//! | rounds, who merged what, what engines counted | the parts of the document that the armed and PBV families fill |
//! | where the latency went, by phase and by cause | [`watershed_scenario_interface::why`] |
//! | load of the links on the drawn topology, head-wait cycles | all links of the run |
//! | ranks of a workload over time, a bar each | the spans of the document |
//! | what is in the network, and flits moved, over time | samples of the run |
//! | curves, sensitivities, Pareto front | the store of a sweep |

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

pub mod chart;
mod explore;
mod families;
mod ranks;

use self::chart::{Chart, Series, bars, short, stack};
use super::plot::escape;
use super::sweep::{Row, Sweep, pareto};
use watershed_fabric::topology::Layout;
use watershed_scenario_interface::result::Document;
use watershed_scenario_interface::run::Sample;
use watershed_scenario_interface::why::Why;

/// What a report is about.
pub enum Subject {
    /// One run.
    Run(Box<RunSubject>),
    /// A sweep.
    Sweep(Box<SweepSubject>),
}

/// A run and what was found out by running it again.
pub struct RunSubject {
    /// Where the result was read from.
    pub source: String,
    /// The result, with all links.
    pub document: Document,
    /// Switches and links.
    pub layout: Option<Layout>,
    /// Where the latency of its collectives went.
    pub why: Vec<Why>,
    /// What was in the network when.
    pub timeline: Vec<Sample>,
    /// Names of the links that the timeline has the load of.
    pub link_names: Vec<String>,
    /// What is missing and why.
    pub notes: Vec<String>,
}

/// A sweep and its points.
pub struct SweepSubject {
    /// Where it is.
    pub source: String,
    /// The sweep.
    pub sweep: Sweep,
    /// Its points.
    pub rows: Vec<Row>,
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const CHARTS: &str = include_str!("charts.js");
const FILTER: &str = include_str!("filter.js");
const EXPLORE: &str = include_str!("explore.js");
const RANKS: &str = include_str!("ranks.js");
/// The plotting library that pages carry, and its licence.
const UPLOT: &str = include_str!("uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("uplot/LICENSE");

/// The page.
pub fn page(subjects: &[Subject]) -> String {
    let title = match subjects {
        [Subject::Run(run)] => run.document.stamp.scenario.clone(),
        [Subject::Sweep(sweep)] => sweep.source.clone(),
        many => titled(many),
    };
    let mut body = String::new();
    if subjects.len() > 1 {
        side_by_side(subjects, &mut body);
    }
    for (number, subject) in subjects.iter().enumerate() {
        match subject {
            Subject::Run(run) => run_section(number, run, &mut body),
            Subject::Sweep(sweep) => sweep_section(number, sweep, &mut body),
        }
    }
    frame(&title, &body)
}

/// What a page of several results and sweeps is called: their names, or how many of each there are.
fn titled(subjects: &[Subject]) -> String {
    let name = |subject: &Subject| match subject {
        Subject::Run(run) => run.document.stamp.scenario.clone(),
        Subject::Sweep(sweep) => format!("sweep {}", sweep.source),
    };
    if subjects.len() <= 3 {
        let names: Vec<String> = subjects.iter().map(name).collect();
        return names.join(", ");
    }
    let runs = subjects.iter().filter(|subject| matches!(subject, Subject::Run(_))).count();
    let counted = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{count} {what}s")),
    };
    let parts = [counted(runs, "result"), counted(subjects.len() - runs, "sweep")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// A page around its parts: it loads nothing from anywhere.
pub fn frame(title: &str, body: &str) -> String {
    // The first line of the library is a comment with its address, which is no address that a page loads from.
    let library = UPLOT.split_once('\n').map_or(UPLOT, |(_, rest)| rest);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\"><title>watershed: {title}</title>\n<style>\n{UPLOT_STYLE}\n{STYLE}</style></head>\n<body>\n\
         <header><h1>{title}</h1><p>watershed {} ({})</p></header>\n<main>\n{body}</main>\n\
         <script>\n/* uPlot 1.6.32\n{UPLOT_LICENCE}*/\n{library}\n</script>\n<script>\n{SCRIPT}{CHARTS}{FILTER}{EXPLORE}{RANKS}</script>\n</body></html>\n",
        env!("CARGO_PKG_VERSION"),
        watershed_scenario_interface::result::commit(),
        title = escape(title),
    )
}

/// Runs side by side.
fn side_by_side(subjects: &[Subject], out: &mut String) {
    let runs: Vec<&RunSubject> = subjects
        .iter()
        .filter_map(|subject| match subject {
            Subject::Run(run) => Some(&**run),
            Subject::Sweep(_) => None,
        })
        .collect();
    if runs.len() < 2 {
        return;
    }
    out.push_str("<section id=\"together\"><h2>Side by side</h2><div class=\"scroll\"><table><tr><th>scenario</th><th>family</th><th class=\"n\">cycles</th><th class=\"n\">latency (cycles)</th><th class=\"n\">flits on links</th><th>checks</th></tr>\n");
    for run in &runs {
        let document = &run.document;
        let family = document.config["family"].as_str().unwrap_or("");
        let latency = latency(document).map_or_else(|| "-".to_owned(), |cycles| format!("{cycles}"));
        let flits: u64 = document.links.levels.iter().map(|level| level.flits).sum();
        let failed = document.checks.iter().filter(|check| !check.passed).count();
        let checks = if failed == 0 { format!("{} passed", document.checks.len()) } else { format!("{failed} FAILED") };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{latency}</td><td class=\"n\">{flits}</td><td>{checks}</td></tr>",
            escape(&document.stamp.scenario),
            escape(family),
            document.cycles
        );
    }
    out.push_str("</table></div></section>\n");
}

/// The longest latency of the jobs that ran.
fn latency(document: &Document) -> Option<f64> {
    document.jobs.iter().filter_map(|job| Some(job.latency_cycles? as f64)).reduce(f64::max)
}

fn run_section(number: usize, run: &RunSubject, out: &mut String) {
    let document = &run.document;
    let stamp = &document.stamp;
    let _ = writeln!(out, "<section id=\"run{number}\"><h2>{}</h2>", escape(&stamp.scenario));
    if let Some(about) = document.config["about"].as_str().filter(|about| !about.is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escape(about));
    }
    let megahertz = document.config["clock"]["frequency_mhz"].as_f64().unwrap_or(0.0);
    let mut facts = vec![
        ("family", document.config["family"].as_str().unwrap_or("").to_owned()),
        ("topology", document.config["topology"]["kind"].as_str().unwrap_or("").to_owned()),
        ("clock", format!("{megahertz} MHz")),
        ("ended", format!("{:?} after {} cycles", document.outcome, document.cycles).to_lowercase()),
        ("seed", stamp.seed.to_string()),
        ("made by", format!("{} {} ({})", stamp.program, stamp.version, stamp.commit)),
        ("configuration", stamp.config_hash.clone()),
        ("result", run.source.clone()),
    ];
    if !stamp.overrides.is_empty() {
        facts.push(("set", stamp.overrides.join(", ")));
    }
    out.push_str("<dl class=\"facts\">");
    for (name, value) in facts {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    out.push_str("</dl>\n");
    for note in &run.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
    collectives(document, out);
    ranks::section(document, out);
    families::results(document, out);
    traffic(document, out);
    breakdown(run, out);
    if let Some(layout) = &run.layout {
        heat_map(layout, run, out);
    }
    head_waits(document, out);
    timeline(run, out);
    out.push_str("<h3>Checks</h3><ul class=\"checks\">");
    for check in &document.checks {
        let (class, word) = if check.passed { ("good", "passed") } else { ("bad", "FAILED") };
        let _ =
            write!(out, "<li class=\"{class}\"><b>{word}</b> {}: {}</li>", escape(&check.name), escape(&check.detail));
    }
    out.push_str("</ul></section>\n");
}

fn collectives(document: &Document, out: &mut String) {
    if document.collectives.is_empty() {
        return;
    }
    out.push_str("<h3>Collectives</h3><div class=\"scroll\"><table><tr><th>name</th><th>kind</th><th>type</th><th class=\"n\">participants</th><th class=\"n\">elements</th><th class=\"n\">latency (cycles)</th><th class=\"n\">latency (ns)</th><th class=\"n\">elements a cycle</th><th>bits</th></tr>\n");
    for found in &document.collectives {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let exact = match found.bit_exact {
            Some(true) => "exact",
            Some(false) => "WRONG",
            None => "not checked",
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{} {}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{exact}</td></tr>",
            escape(&found.name),
            escape(&found.kind),
            escape(found.op.as_deref().unwrap_or("")),
            escape(found.dtype.as_deref().unwrap_or("")),
            found.participants,
            found.elements,
            found.latency_cycles.map_or_else(|| "-".to_owned(), |cycles| cycles.to_string()),
            number(found.latency_ns),
            number(found.elements_per_cycle)
        );
    }
    out.push_str("</table></div>\n");
}

fn traffic(document: &Document, out: &mut String) {
    if document.traffic.is_empty() {
        return;
    }
    out.push_str("<h3>Traffic</h3><div class=\"scroll\"><table><tr><th>name</th><th class=\"n\">offered (flits a node and cycle)</th><th class=\"n\">accepted</th><th class=\"n\">packets</th><th class=\"n\">mean latency (cycles)</th><th class=\"n\">most</th></tr>\n");
    for found in &document.traffic {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{:.4}</td><td class=\"n\">{:.4}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escape(&found.name),
            found.offered,
            found.accepted,
            found.packets,
            found.mean_latency_cycles.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}")),
            found.max_latency_cycles.map_or_else(|| "-".to_owned(), |most| most.to_string())
        );
    }
    out.push_str("</table></div>\n");
}

fn breakdown(run: &RunSubject, out: &mut String) {
    if run.why.is_empty() {
        return;
    }
    out.push_str("<h3>Where the latency went</h3><p>Along the critical path of the word that landed last, or of the slowest round; the parts add up to the latency exactly. Where latency counts from the last contribution, what came before it stands by itself.</p>\n");
    for why in &run.why {
        let name = match why.what.as_str() {
            "word" | "rank" => why.collective.clone(),
            what => format!("{}, {what} {}", why.collective, why.number),
        };
        let (before, after) = why.at_last_contribution();
        let stacks = |why: &Why, what: &str, out: &mut String| {
            let phases = why.by_phase().into_iter().map(|(phase, cycles)| (phase.name(), cycles));
            let kinds = why.by_kind().into_iter().map(|(kind, cycles)| (kind.name(), cycles));
            out.push_str(&stack(&format!("{name}{what} by phase"), "cycles", &phases.collect::<Vec<_>>()));
            out.push_str(&stack(&format!("{name}{what} by cause"), "cycles", &kinds.collect::<Vec<_>>()));
        };
        if let Some(before) = before {
            stacks(&after, ", from the last contribution on,", out);
            stacks(&before, ", before the last contribution,", out);
        } else {
            stacks(&after, "", out);
        }
    }
}

/// Switches where the topology has them, and beside each link how busy each direction was.
fn heat_map(layout: &Layout, run: &RunSubject, out: &mut String) {
    let document = &run.document;
    const PITCH: f64 = 92.0;
    const MARGIN: f64 = 52.0;
    let switches = layout.switches();
    let Some(all) = document.links.all.as_ref().filter(|_| switches <= 400) else {
        out.push_str("<p class=\"note\">The topology has too many switches to be drawn.</p>\n");
        return;
    };
    // By the sending port: an engine in the wire stands between the two ends, and takes the name of the other one.
    let sender = |name: &'_ str| name.split(" -> ").next().unwrap_or(name).to_owned();
    let loads: HashMap<String, (f64, u64)> =
        all.iter().map(|link| (sender(&link.name), (link.utilisation, link.flits))).collect();
    let most = all.iter().map(|link| link.utilisation).fold(0.0, f64::max);
    let at: Vec<(f64, f64)> = (0..switches as u32)
        .map(|switch| layout.shape.position(switch))
        .map(|(x, y)| (MARGIN + x * PITCH, MARGIN + y * PITCH))
        .collect();
    let width = at.iter().map(|at| at.0).fold(0.0, f64::max) + MARGIN;
    let height = at.iter().map(|at| at.1).fold(0.0, f64::max) + MARGIN;
    let _ = writeln!(
        out,
        "<h3>Load of the links</h3><figure class=\"heat\"><figcaption>Share of cycles in which a link carried a flit; the busiest {:.1} %. Each direction has a line of its own, on its right-hand side.</figcaption>\n\
         <div class=\"scale\"><span>0 %</span><i></i><span>{:.1} %</span></div>\n\
         <div class=\"scroll\"><svg viewBox=\"0 0 {width:.0} {height:.0}\" style=\"max-width:{:.0}px;min-width:{:.0}px\" role=\"img\"><title>Load of the links</title>",
        most * 100.0,
        most * 100.0,
        width * 1.6,
        width.min(420.0)
    );
    let name = |(node, port): (u32, u16)| {
        let node = node as usize;
        let name = &layout.plan.nodes[node].name;
        if node < switches { format!("{name}.P{port}") } else { name.clone() }
    };
    let mut lines: Vec<(f64, String)> = Vec::new();
    let mut drawn: Vec<String> = Vec::new();
    let mut parallel: HashMap<(u32, u32), u32> = HashMap::new();
    for link in layout.plan.links.iter().filter(|link| link.a.0.max(link.b.0) < switches as u32) {
        let pair = (link.a.0.min(link.b.0), link.a.0.max(link.b.0));
        let copy = *parallel.entry(pair).and_modify(|copies| *copies += 1).or_insert(0);
        for (from, to) in [(link.a, link.b), (link.b, link.a)] {
            let label = format!("{} -> {}", name(from), name(to));
            let (load, flits) = loads.get(&name(from)).copied().unwrap_or_default();
            let ((x1, y1), (x2, y2)) = (at[from.0 as usize], at[to.0 as usize]);
            let (dx, dy) = (x2 - x1, y2 - y1);
            let length = dx.hypot(dy).max(1.0);
            let (nx, ny) = (-dy / length, dx / length);
            // Long links of a row are bent around the switches between.
            let bend = 3.0 + if length > 1.6 * PITCH { 0.1 * length } else { 0.0 } + 7.0 * f64::from(copy);
            let share = if most > 0.0 { load / most } else { 0.0 };
            let line = format!(
                "<path class=\"load\" data-link=\"{}\" d=\"M{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1}\" stroke-width=\"{:.1}\" stroke-opacity=\"{:.2}\"><title>{}: {:.1} %, {flits} flits</title></path>",
                drawn.len(),
                x1 + 3.0 * nx,
                y1 + 3.0 * ny,
                f64::midpoint(x1, x2) + 2.0 * bend * nx,
                f64::midpoint(y1, y2) + 2.0 * bend * ny,
                x2 + 3.0 * nx,
                y2 + 3.0 * ny,
                1.0 + 3.5 * share,
                0.14 + 0.86 * share,
                escape(&label),
                load * 100.0
            );
            drawn.push(name(from));
            lines.push((load, line));
        }
    }
    // The busiest on top.
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, line) in &lines {
        out.push_str(line);
        out.push('\n');
    }
    for (switch, &(x, y)) in at.iter().enumerate() {
        let name = &layout.plan.nodes[switch].name;
        let half = (3.6 * name.len() as f64 + 5.0).max(15.0);
        let _ = writeln!(
            out,
            "<rect class=\"node\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\" rx=\"4\"/><text class=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            x - half,
            y - 10.0,
            2.0 * half,
            y + 4.0,
            escape(name)
        );
    }
    out.push_str("</svg></div>");
    out.push_str(&over_time(run, &drawn));
    out.push_str("</figure>\n");
}

/// Steps of the slider over the load of the links.
const STEPS: usize = 96;

/// A slider over the time of the run, with the load of each drawn link in each step; nothing where it was not sampled.
fn over_time(run: &RunSubject, drawn: &[String]) -> String {
    let there = run.timeline.partition_point(|sample| sample.cycle <= run.document.cycles);
    let samples = &run.timeline[..there];
    let numbers: HashMap<&str, usize> =
        run.link_names.iter().enumerate().map(|(at, name)| (name.split(" -> ").next().unwrap_or(name), at)).collect();
    let links: Vec<Option<usize>> = drawn.iter().map(|name| numbers.get(name.as_str()).copied()).collect();
    let picked: Vec<&Sample> = samples.iter().step_by(samples.len().div_ceil(STEPS).max(1)).collect();
    if picked.len() < 3 || links.iter().all(Option::is_none) {
        return String::new();
    }
    let busy = |sample: &Sample, link: Option<usize>| link.and_then(|at| sample.busy.get(at)).copied().unwrap_or(0);
    let loads = picked.windows(2).map(|pair| {
        let cycles = (pair[1].cycle - pair[0].cycle).max(1) as f64;
        let load = |link: &Option<usize>| {
            let share = busy(pair[1], *link).saturating_sub(busy(pair[0], *link)) as f64 / cycles;
            serde_json::json!((share.min(1.0) * 1e4).round() / 1e4)
        };
        links.iter().map(load).collect::<Vec<_>>()
    });
    let json = serde_json::json!({
        "cycles": picked.iter().map(|sample| sample.cycle).collect::<Vec<_>>(),
        "loads": loads.collect::<Vec<_>>(),
    });
    format!(
        "<label class=\"time\">time <input type=\"range\" min=\"0\" max=\"{}\" value=\"0\"> <output></output></label>\n<script type=\"application/json\" class=\"loads\">{}</script>",
        picked.len() - 1,
        explore::embedded(&json)
    )
}

fn head_waits(document: &Document, out: &mut String) {
    let links = document.links.all.as_ref().unwrap_or(&document.links.busiest);
    let mut links: Vec<_> = links.iter().filter(|link| link.head_wait_cycles > 0).collect();
    links.sort_by(|a, b| b.head_wait_cycles.cmp(&a.head_wait_cycles).then_with(|| a.name.cmp(&b.name)));
    let rows: Vec<(String, f64, String)> = links
        .iter()
        .take(12)
        .map(|link| (link.name.clone(), link.head_wait_cycles as f64, format!("{} cycles", link.head_wait_cycles)))
        .collect();
    if !rows.is_empty() {
        out.push_str("<h3>Head-wait cycles</h3>\n");
        out.push_str(&bars(
            "Cycles that flits stood at the head of a queue, for whatever reason, before they went over this link",
            &rows,
        ));
    }
    let Some(waits) = &document.links.waits else { return };
    let groups = [
        ("before links, in the whole network", &waits.links),
        ("before engines behind switches", &waits.engines),
        ("in the queues of end points and of engines in the wire", &waits.blocks),
    ];
    for (place, causes) in groups.into_iter().filter(|(_, causes)| !causes.is_empty()) {
        let mut rows: Vec<(String, f64, String)> = causes
            .iter()
            .map(|(cause, &cycles)| (cause.replace('_', " "), cycles as f64, format!("{cycles} cycles")))
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        out.push_str(&bars(&format!("What flits at the heads of queues waited for {place}"), &rows));
    }
}

fn timeline(run: &RunSubject, out: &mut String) {
    // Alarms of processes that have ended may come long after the last thing that happened.
    let there = run.timeline.partition_point(|sample| sample.cycle <= run.document.cycles);
    let samples = &run.timeline[..there];
    if samples.len() < 2 {
        return;
    }
    let clock = "time (cycles)".to_owned();
    let queued = samples.iter().map(|sample| (sample.cycle as f64, sample.live as f64)).collect();
    let rate = samples
        .windows(2)
        .filter(|pair| pair[1].cycle > pair[0].cycle)
        .map(|pair| {
            let cycles = (pair[1].cycle - pair[0].cycle) as f64;
            (pair[1].cycle as f64, (pair[1].moved - pair[0].moved) as f64 / cycles)
        })
        .collect();
    let chart = |title: &str, y: &str, points: Vec<(f64, f64)>| Chart {
        title: title.into(),
        x: clock.clone(),
        y: y.into(),
        series: vec![Series { points, ..Series::default() }],
        ..Chart::default()
    };
    out.push_str("<h3>Over time</h3><div class=\"grid2\">\n");
    out.push_str(&chart("What is in the network", "flits in queues and on links", queued).html());
    out.push_str(&chart("Throughput", "flits moved a cycle, all queues", rate).html());
    out.push_str("</div>\n");
}

// ----------------------------------------------------------------------------------------------------------- sweeps

fn sweep_section(number: usize, subject: &SweepSubject, out: &mut String) {
    let SweepSubject { source, sweep, rows } = subject;
    let _ = writeln!(out, "<section id=\"sweep{number}\"><h2>Sweep {}</h2>", escape(source));
    if !sweep.file.about.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", escape(&sweep.file.about));
    }
    let good: Vec<&Row> = rows.iter().filter(|row| row.status == "ok").collect();
    let _ = writeln!(
        out,
        "<dl class=\"facts\"><div><dt>points</dt><dd>{}</dd></div><div><dt>failed</dt><dd>{}</dd></div><div><dt>scenarios</dt><dd>{}</dd></div></dl>",
        rows.len(),
        rows.len() - good.len(),
        escape(&sweep.scenarios.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", "))
    );
    let mut wanted: Vec<String> = sweep.objectives.iter().map(|(name, _)| name.clone()).collect();
    if wanted.is_empty() {
        let known = |name: &&str| good.iter().any(|row| value(sweep, row, name).is_some());
        wanted.extend(
            ["latency_cycles", "packet_latency", "gates"]
                .iter()
                .filter(|name| known(name))
                .take(2)
                .map(ToString::to_string),
        );
    }
    explore::tool(sweep, rows, out);
    front(sweep, rows, &good, out);
    out.push_str("<h3>Curves</h3><p>The mean over all other axes.</p><div class=\"grid2\">\n");
    for metric in &wanted {
        for axis in sweep.axis_names() {
            if let Some(chart) = curve(sweep, &good, &axis, metric) {
                out.push_str(&chart.html());
            }
        }
    }
    out.push_str("</div>\n<h3>Sensitivities</h3><p>How far the mean moves from the best to the worst value of an axis, in percent of the mean of all points.</p><div class=\"grid2\">\n");
    for metric in &wanted {
        let mut list: Vec<(String, f64, String)> = sweep
            .axis_names()
            .iter()
            .filter_map(|axis| {
                let share = sensitivity(sweep, &good, axis, metric)?;
                Some((axis.clone(), share, format!("{:.1} %", share * 100.0)))
            })
            .collect();
        list.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        out.push_str(&bars(metric, &list));
    }
    out.push_str("</div>\n");
    let failed: Vec<&Row> = rows.iter().filter(|row| row.status != "ok").collect();
    if !failed.is_empty() {
        let _ = writeln!(
            out,
            "<h3>Failed points</h3><div class=\"scroll\"><table><tr><th class=\"n\">point</th><th>what happened</th><th>run it again</th></tr>"
        );
        for row in failed.iter().take(50) {
            let _ = writeln!(
                out,
                "<tr><td class=\"n\">{}</td><td>{}</td><td class=\"cmd\">{}</td></tr>",
                row.number,
                escape(&row.error),
                command(row)
            );
        }
        out.push_str("</table></div>\n");
    }
    out.push_str("</section>\n");
}

fn value(sweep: &Sweep, row: &Row, name: &str) -> Option<f64> {
    row.facts.as_ref()?.column(sweep, name)?.number()
}

/// Levels of an axis in the order of the file, or of their numbers where they were drawn at random.
fn levels(sweep: &Sweep, rows: &[&Row], axis: &str) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for row in rows {
        if let Some(level) = row.axes.get(axis).filter(|level| !list.contains(level)) {
            list.push(level.clone());
        }
    }
    let number = |level: &String| level.parse::<f64>().ok();
    if list.iter().all(|level| number(level).is_some()) {
        list.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
    }
    let _ = sweep;
    list
}

fn means(sweep: &Sweep, rows: &[&Row], axis: &str, levels: &[String], metric: &str) -> Vec<Option<f64>> {
    let mut sums: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
    for row in rows {
        if let (Some(level), Some(value)) = (row.axes.get(axis), value(sweep, row, metric)) {
            let sum = sums.entry(level).or_default();
            *sum = (sum.0 + value, sum.1 + 1);
        }
    }
    levels.iter().map(|level| sums.get(level.as_str()).map(|(sum, count)| sum / f64::from(*count))).collect()
}

fn curve(sweep: &Sweep, rows: &[&Row], axis: &str, metric: &str) -> Option<Chart> {
    let levels = levels(sweep, rows, axis);
    if levels.len() < 2 {
        return None;
    }
    let mut series = Vec::new();
    for entry in &sweep.scenarios {
        let own: Vec<&Row> =
            rows.iter().copied().filter(|row| row.scenario == entry.name && row.axes.contains_key(axis)).collect();
        let means = means(sweep, &own, axis, &levels, metric);
        let points: Vec<(f64, f64)> =
            means.iter().enumerate().filter_map(|(at, mean)| Some((at as f64, (*mean)?))).collect();
        if points.len() > 1 {
            series.push(Series { name: entry.name.clone(), points, ..Series::default() });
        }
    }
    if series.is_empty() {
        return None;
    }
    // Many numbers drawn at random make an axis of numbers, not of levels.
    let chart = Chart {
        title: format!("{metric} over {axis}"),
        x: axis.to_owned(),
        y: metric.to_owned(),
        levels,
        series,
        ..Chart::default()
    };
    if chart.levels.len() <= 24 {
        return Some(chart);
    }
    let numbers: Option<Vec<f64>> = chart.levels.iter().map(|level| level.parse().ok()).collect();
    let numbers = numbers?;
    let series = chart
        .series
        .into_iter()
        .map(|series| Series {
            points: series.points.iter().map(|(at, y)| (numbers[*at as usize], *y)).collect(),
            marks_only: true,
            ..series
        })
        .collect();
    Some(Chart { levels: Vec::new(), series, ..chart })
}

/// The range of the means over the levels of an axis, as a share of the mean of all points.
fn sensitivity(sweep: &Sweep, rows: &[&Row], axis: &str, metric: &str) -> Option<f64> {
    let levels = levels(sweep, rows, axis);
    let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.axes.contains_key(axis)).collect();
    let all: Vec<f64> = rows.iter().filter_map(|row| value(sweep, row, metric)).collect();
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    let means: Vec<f64> = means(sweep, &rows, axis, &levels, metric).into_iter().flatten().collect();
    let (low, high) =
        means.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| (low.min(*mean), high.max(*mean)));
    (means.len() > 1 && mean != 0.0).then(|| (high - low) / mean.abs())
}

fn command(row: &Row) -> String {
    copied(&row.command())
}

/// A command with a button that copies it.
pub fn copied(command: &str) -> String {
    format!("<button class=\"copy\" type=\"button\" title=\"copy\">copy</button><code>{}</code>", escape(command))
}

fn front(sweep: &Sweep, rows: &[Row], good: &[&Row], out: &mut String) {
    let front = pareto(sweep, rows);
    if front.is_empty() {
        return;
    }
    let names: Vec<&str> = sweep.objectives.iter().map(|(name, _)| name.as_str()).collect();
    let _ = writeln!(
        out,
        "<h3>Pareto front</h3><p>No point is better in one of {} without being worse in another.</p>",
        escape(&names.join(", "))
    );
    let describe = |row: &Row| {
        let axes: Vec<String> = row.axes.iter().map(|(name, value)| format!("{name} {value}")).collect();
        format!("point {}, {}: {}", row.number, row.scenario, axes.join(", "))
    };
    out.push_str("<div class=\"grid2\">\n");
    for pair in names.windows(2) {
        let series = |name: &str, list: &[&Row], marks_only: bool| {
            let mut points: Vec<((f64, f64), String)> = list
                .iter()
                .filter_map(|row| Some(((value(sweep, row, pair[0])?, value(sweep, row, pair[1])?), describe(row))))
                .collect();
            points.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
            let (points, hints) = points.into_iter().unzip();
            Series { name: name.into(), points, marks_only, hints }
        };
        let chart = Chart {
            title: format!("{} against {}", pair[1], pair[0]),
            x: pair[0].into(),
            y: pair[1].into(),
            series: vec![series("all points", good, true), series("front", &front, names.len() > 2)],
            ..Chart::default()
        };
        out.push_str(&chart.html());
    }
    out.push_str("</div>\n<div class=\"scroll\"><table id=\"front\"><tr><th class=\"n\">point</th><th>scenario</th>");
    let axes = sweep.axis_names();
    for name in names.iter().copied().chain(axes.iter().map(String::as_str)) {
        let _ = write!(out, "<th class=\"n\">{}</th>", escape(name));
    }
    out.push_str("<th>run it again</th></tr>\n");
    for row in front.iter().take(100) {
        let _ = write!(out, "<tr><td class=\"n\">{}</td><td>{}</td>", row.number, escape(&row.scenario));
        for name in &names {
            let _ = write!(
                out,
                "<td class=\"n\">{}</td>",
                value(sweep, row, name).map_or_else(|| "-".to_owned(), super::sweep::file::brief)
            );
        }
        for axis in &axes {
            let _ = write!(out, "<td class=\"n\">{}</td>", escape(row.axes.get(axis).map_or("", String::as_str)));
        }
        let _ = writeln!(out, "<td class=\"cmd\">{}</td></tr>", command(row));
    }
    out.push_str("</table></div>\n");
}
