//! Table 1 of the PBV source, and what its text says of several masters: frames, times and rates beside ours (B-FIG-1 to
//! B-FIG-5, B-HI-3, B-HI-4; paragraphs 99 to 103, 151, 153).
//!
//! The table's times are those of sending frames, one behind the other, and nothing else (paragraph 103). Ours under these
//! assumptions: the frames that the simulated engines sent, counted in the run, times the time of a frame on a link. Beside it
//! stands what the run took, with links of 10 ns, switches, engines and the shared ports of both.
//!
//! A monolithic engine with 1023 end points does not fit a PBV table of 128 entries. It is simulated with 127, all of them
//! directly below one engine, and scaled to 1023 *\[chosen\]*.

use std::fmt::Write;
use std::path::Path;

use super::named::{Report, Row, Study};
use crate::probe::ladder::{Ladder, Message};
use crate::scenario::load_text;
use crate::scenario::run::{RunOptions, run};

/// The study.
pub const STUDY: Study = Study {
    name: "pbv-table1",
    about: "Table 1 of the PBV source: one engine for 1024 end points against 32 of them; and two masters against one.",
    run: study,
};

/// Nanoseconds of a 32-byte frame on two lanes of PCIe 6: four flits at 2 GHz.
const COMMAND_NS: f64 = 2.0;
/// Nanoseconds of a 1056-byte frame there: 132 flits.
const DATA_NS: f64 = 66.0;
/// The same at PCIe 7 speed.
const DATA_7_NS: f64 = 33.0;

const DISTRIBUTED: &str = r#"
family = "pbv"
[clock]
frequency_mhz = 2000
[topology]
kind = "flattened-butterfly"
size = [32]
concentration = 32
[link]
latency_ns = 10
local_latency_ns = 10
[pbv.setup]
configuration = "side-port"
[[pbv.collective]]
elements = 128
data = { random = "normal", same_every_round = true }
"#;

const MONOLITHIC: &str = r#"
family = "pbv"
[clock]
frequency_mhz = 2000
[topology]
kind = "flattened-butterfly"
size = [4]
concentration = 32
[link]
latency_ns = 10
local_latency_ns = 10
[pbv.setup]
configuration = "side-port"
[[pbv.collective]]
elements = 128
tree = "monolithic"
data = { random = "normal", same_every_round = true }
"#;

/// One board of 16 switches and 16 contexts at PCIe 7 speed; the masters follow.
const BOARD: &str = r#"
family = "pbv"
[clock]
frequency_mhz = 4000
[topology]
kind = "flattened-butterfly"
size = [16]
concentration = 2
[link]
latency_ns = 10
local_latency_ns = 10
[pbv.setup]
configuration = "side-port"
"#;

/// A run's ladder, its cycles a nanosecond, and whether everything in it held.
struct Ran {
    ladder: Ladder,
    per_ns: f64,
}

fn simulate(name: &str, text: &str) -> Result<Ran, String> {
    let loaded = load_text(name, text, Path::new(""), name, &[]).map_err(|problems| problems.to_string())?;
    let result =
        run(&loaded, &RunOptions { ladder: true, ..RunOptions::default() }).map_err(|error| error.to_string())?;
    if !result.document.passed() {
        let failed = result.document.checks.iter().find(|check| !check.passed);
        return Err(format!("{name}: {}", failed.map_or("not finished", |check| check.detail.as_str())));
    }
    let ladder = result.ladder.ok_or("no ladder was made")?;
    Ok(Ran { ladder, per_ns: loaded.scenario.clock.frequency_hz as f64 / 1e9 })
}

impl Ran {
    /// Frames with a label that begins like this, from one actor to another; an empty name is anybody's.
    fn frames<'a>(&'a self, label: &'a str, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a Message> {
        let named = |name: &str, actor: usize| name.is_empty() || self.ladder.actors[actor] == name;
        self.ladder.messages.iter().filter(move |message| {
            let text = message.label.split_once(' ').filter(|(id, _)| id.starts_with('#'));
            let text = text.map_or(message.label.as_str(), |(_, text)| text);
            text.starts_with(label) && named(from, message.from) && named(to, message.to)
        })
    }

    fn count(&self, label: &str, from: &str, to: &str) -> f64 {
        self.frames(label, from, to).count() as f64
    }

    /// Frames from an actor to switches' engines.
    fn to_engines(&self, label: &str, from: &str) -> f64 {
        self.frames(label, from, "").filter(|message| !self.ladder.actors[message.to].contains('.')).count() as f64
    }

    /// Nanoseconds from the first frame of one kind leaving to the last of another arriving.
    fn span(&self, first: (&str, &str), last: (&str, &str)) -> f64 {
        let from = self.frames(first.0, first.1, "").map(|message| message.sent).min().unwrap_or(0);
        let to = self.frames(last.0, last.1, "").filter_map(|message| message.arrived).max().unwrap_or(0);
        to.saturating_sub(from) as f64 / self.per_ns
    }
}

fn study(_: &dyn Fn(&str), report: &mut Report) -> Result<(), String> {
    report.title =
        "Table 1: flattened butterfly of 32 switches with 32 end points each, two lanes of PCIe 6 a port".into();
    let rows = &mut report.rows;
    let (distributed, monolithic) = (simulate("distributed", DISTRIBUTED)?, simulate("monolithic", MONOLITHIC)?);
    table(rows, &distributed, &monolithic);
    edges(rows, &distributed);
    masters(rows)?;
    report.notes = vec![
        "ours: frames counted in the run times the time of a frame on its link; simulated: the run itself".into(),
        "no parameter was fitted; 10 ns of link latency, one switch stage and the engines' cycles are chosen".into(),
        "monolithic: simulated with 127 end points below one engine, the size of a PBV table, and scaled to 1023".into(),
        "the run's answer phases wait for an engine's one port, which takes all its frames in and sends all of them out".into(),
    ];
    Ok(())
}

fn row(id: &'static str, what: &str, unit: &'static str, source: f64, ours: f64) -> Row {
    let tolerance = if unit.is_empty() { 0.0 } else { 0.02 };
    Row::near(id, what, unit, [source, ours], tolerance)
}

fn table(rows: &mut Vec<Row>, distributed: &Ran, monolithic: &Ran) {
    let scale = 1023.0 / monolithic.count("command", "s0", "");
    let to_all = scale * monolithic.count("command", "s0", "");
    let (engines, local) = (distributed.to_engines("command", "s0"), distributed.count("command", "s1", ""));
    let (partials, answers) = (distributed.count("partial", "", "s0"), distributed.count("contribution", "", "s1"));
    let simulated = Some(monolithic.count("command", "s0", ""));
    rows.push(Row { simulated, ..row("B-FIG-1", "frames sent by a monolithic engine, scaled", "", 1023.0, to_all) });
    rows.push(row("B-FIG-1", "frames from the master to engines", "", 31.0, engines));
    rows.push(row(
        "B-FIG-1",
        "frames from the master to its own nodes, not the source",
        "",
        31.0,
        distributed.count("command", "s0", "") - engines,
    ));
    rows.push(row("B-FIG-1", "frames from a subservient engine to its nodes", "", 32.0, local));
    rows.push(row(
        "B-FIG-1",
        "responses of a subservient engine to the master",
        "",
        1.0,
        distributed.count("partial", "s1", "s0"),
    ));
    let through = |ran: &Ran| {
        let behind = ran.frames("command", "s0", "").filter(|message| ran.ladder.actors[message.to].starts_with("s1."));
        behind.count() as f64 + ran.count("command", "s0", "s1")
    };
    rows.push(row("B-FIG-2", "monolithic: frames on an inter-switch link", "", 32.0, through(monolithic)));
    rows.push(row("B-FIG-2", "distributed: frames on an inter-switch link", "", 1.0, through(distributed)));

    let mut timed = |id, what: &str, unit, source, ours, simulated| {
        rows.push(Row { simulated: Some(simulated), ..row(id, what, unit, source, ours) });
    };
    let command = ("command", "s0");
    let sent = |ran: &Ran| ran.span(command, ("command", ""));
    let (mono, dist) = (COMMAND_NS * to_all, COMMAND_NS * (engines + local));
    timed("B-FIG-3", "monolithic: time to send a command to all", "ns", 2046.0, mono, scale * sent(monolithic));
    timed("B-FIG-3", "distributed: time to send a command to all", "ns", 126.0, dist, sent(distributed));
    let responses = scale * monolithic.count("contribution", "", "s0") * (1023.0 / (1023.0 + scale));
    let (mono_in, dist_in) = (DATA_NS * responses, DATA_NS * (partials + answers));
    let came = |ran: &Ran, last: &'static str| ran.span(("contribution", ""), (last, ""));
    timed(
        "B-FIG-4",
        "monolithic: time to receive 1056 bytes from all",
        "ns",
        67500.0,
        mono_in,
        scale * came(monolithic, "contribution"),
    );
    timed(
        "B-FIG-4",
        "distributed: time to receive 1056 bytes from all",
        "ns",
        4160.0,
        dist_in,
        came(distributed, "partial"),
    );
    // A command out, responses in, the result out.
    let rate = |command: f64, data: f64| 1e9 / (command + 2.0 * data);
    let whole = |ran: &Ran, scale: f64| 1e9 / (scale * ran.span(("command", ""), ("satisfied", "")));
    timed("B-FIG-5", "monolithic: collectives a second", "1/s", 7300.0, rate(mono, mono_in), whole(monolithic, scale));
    timed(
        "B-FIG-5",
        "distributed: collectives a second",
        "1/s",
        118_000.0,
        rate(dist, dist_in),
        whole(distributed, 1.0),
    );
}

/// Frames between the master and each engine below it.
fn edges(rows: &mut Vec<Row>, distributed: &Ran) {
    let of = |k: usize| {
        let (master, engine) = ("s0", format!("s{k}"));
        let all = ["command", "satisfied", "partial"];
        all.iter()
            .map(|label| distributed.count(label, master, &engine) + distributed.count(label, &engine, master))
            .sum()
    };
    let counts: Vec<f64> = (1..32).map(of).collect();
    let (least, most) =
        counts.iter().fold((f64::MAX, 0.0f64), |(least, most), &count| (least.min(count), most.max(count)));
    rows.push(row("B-HI-4", "frames on an edge of the tree, at least", "", 3.0, least));
    rows.push(row("B-HI-4", "frames on an edge of the tree, at most", "", 3.0, most));
}

/// Sixteen contexts with one master, and with two.
fn masters(rows: &mut Vec<Row>) -> Result<(), String> {
    for (masters, source) in [(1usize, 528.0), (2, 264.0)] {
        let mut text = BOARD.to_owned();
        for context in 0..16 {
            // The source sits at its master's switch, whichever that is.
            let (source, master) = (2 * (context % masters), context % masters);
            let _ = write!(
                text,
                "[[pbv.collective]]\nelements = 128\nblocks = false\nsource = {source}\nmaster = \"s{master}\"\n\
                 data = {{ random = \"normal\", same_every_round = true }}\n"
            );
        }
        let ran = simulate(&format!("{masters} masters"), &text)?;
        // An engine that is no one's master.
        let ours = DATA_7_NS * ran.count("satisfied", "s0", "s15");
        let what = format!("16 contexts, {masters} master{}: results on an edge", if masters == 1 { "" } else { "s" });
        let times = ran.frames("satisfied", "s0", "s15");
        let (first, last) = times.fold((u64::MAX, 0), |(first, last), message| {
            (first.min(message.sent), last.max(message.arrived.unwrap_or(message.sent)))
        });
        let simulated = Some(last.saturating_sub(first) as f64 / ran.per_ns);
        rows.push(Row { simulated, ..row("B-HI-3", &what, "ns", source, ours) });
    }
    Ok(())
}
