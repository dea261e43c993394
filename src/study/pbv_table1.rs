//! Table 1 of the PBV source, and what its text says of several masters: frames, times and rates beside ours (B-FIG-1 to
//! B-FIG-5, B-HI-3, B-HI-4; paragraphs 99 to 103, 151, 153).
//!
//! The table's times are only those of sending frames, one behind the other (paragraph 103). Our value under the same
//! assumption is the number of frames that the simulated engines sent, counted in the run, times the time of their
//! flits on a link. A second column has the simulated time of the run, with links of 10 ns, switches, engines and the
//! shared ports of both.
//!
//! Both columns are runs of all 32 switches with all 1024 end points. A PBV table has 128 entries, so the monolithic
//! engine has nine parts behind one port (paragraph 91). Every frame from or to an end point passes that port; frames
//! between the parts do not *\[chosen\]*.

use std::fmt::Write;
use std::path::Path;

use super::plot::{Plot, Series};
use super::reproduction::{Relation, Report, Row, Study};
use watershed_pbv_interface::packet::{HEADER_BYTES, WORD_BYTES};
use watershed_probe::ladder::{Ladder, Message};
use watershed_scenario_interface::load_text;
use watershed_scenario_interface::result::LinkResult;
use watershed_scenario_interface::run::RunOptions;
use watershed_scenario_interface::simulator::Simulator;

/// The study.
pub const STUDY: Study = Study {
    name: "pbv-table1",
    about: "Table 1 of the PBV source: one engine for 1024 end points against 32 of them; and two masters against one.",
    run: study,
};

/// End points of the system in [`Shape::TABLE_1`] contribute this many words: 1056 bytes with the header.
const WORDS: usize = 128;
/// Cycles a nanosecond at PCIe 7 speed, a flit a cycle.
const PCIE_7: f64 = 4.0;

/// A flattened butterfly: switches with end points, all switches linked with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Switches.
    pub switches: u32,
    /// End points of each.
    pub nodes: u32,
}

/// How the engines of the system work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engines {
    /// One for all end points.
    Monolithic,
    /// One a switch, all below the master.
    Distributed,
}

impl Shape {
    /// The system of the table.
    pub const TABLE_1: Shape = Shape { switches: 32, nodes: 32 };

    /// The scenario: this many all-reduces of a kilobyte at two lanes of PCIe 6, everything in place before.
    fn scenario(self, engines: Engines, rounds: u32) -> String {
        let Shape { switches, nodes } = self;
        let tree = if engines == Engines::Monolithic { "monolithic" } else { "routes" };
        format!(
            r#"
family = "pbv"
[clock]
frequency_mhz = 2000
[topology]
kind = "flattened-butterfly"
size = [{switches}]
concentration = {nodes}
[link]
latency_ns = 10
local_latency_ns = 10
[pbv.setup]
configuration = "side-port"
[[pbv.collective]]
elements = {WORDS}
tree = "{tree}"
rounds = {rounds}
data = {{ random = "normal", same_every_round = true }}
"#
        )
    }
}

/// One board of 16 switches and 16 contexts at PCIe 7 speed; the masters follow.
const BOARD: &str = r#"
family = "pbv"
[clock]
frequency_mhz = 4000
[topology]
kind = "flattened-butterfly"
size = [16]
concentration = NODES
[link]
latency_ns = 10
local_latency_ns = 10
[pbv.setup]
configuration = "side-port"
"#;

/// A run's ladder, its cycles a nanosecond, and what its links carried.
struct SimulatedRun {
    ladder: Ladder,
    per_ns: f64,
    links: Vec<LinkResult>,
    text: String,
}

fn simulate(with: &'static dyn Simulator, name: &str, text: &str) -> Result<SimulatedRun, String> {
    let loaded = load_text(with, name, text, Path::new(""), name).map_err(|problems| problems.to_string())?;
    let options = RunOptions { ladder: true, all_links: true, ..RunOptions::default() };
    let result = loaded.run(&options).map_err(|error| error.to_string())?;
    if !result.document.passed() {
        let failed = result.document.checks.iter().find(|check| !check.passed);
        return Err(format!("{name}: {}", failed.map_or("not finished", |check| check.detail.as_str())));
    }
    let ladder = result.ladder.ok_or("no ladder was made")?;
    let links = result.document.links.all.unwrap_or_default();
    let per_ns = loaded.scenario.clock.frequency_hz as f64 / 1e9;
    Ok(SimulatedRun { ladder, per_ns, links, text: text.to_owned() })
}

/// Whether an actor of the ladder is an engine.
fn is_engine(name: &str) -> bool {
    !name.contains('.')
}

/// The switch of an actor.
fn switch_of(name: &str) -> &str {
    name.split(['.', '-']).next().unwrap_or(name)
}

impl SimulatedRun {
    /// Frames with a label that begins like this, from one kind of actors to another.
    fn frames<'a>(
        &'a self,
        label: &'a str,
        from: impl Fn(&str) -> bool + 'a,
        to: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Message> {
        let actors = &self.ladder.actors;
        self.ladder.messages.iter().filter(move |message| {
            let text = message.label.split_once(' ').filter(|(id, _)| id.starts_with('#'));
            let text = text.map_or(message.label.as_str(), |(_, text)| text);
            text.starts_with(label) && from(&actors[message.from]) && to(&actors[message.to])
        })
    }

    fn count(&self, label: &str, from: impl Fn(&str) -> bool, to: impl Fn(&str) -> bool) -> u64 {
        self.frames(label, from, to).count() as u64
    }

    /// Nanoseconds from the first frame of one list leaving to the last of another arriving.
    fn span<'a>(&self, first: impl Iterator<Item = &'a Message>, last: impl Iterator<Item = &'a Message>) -> f64 {
        let from = first.map(|message| message.sent).min().unwrap_or(0);
        let to = last.filter_map(|message| message.arrived).max().unwrap_or(0);
        to.saturating_sub(from) as f64 / self.per_ns
    }
}

/// A column of the table, from one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Commands of the master engine to other engines.
    pub to_engines: u64,
    /// To end points.
    pub to_ends: u64,
    /// Commands of a subservient engine to its end points.
    pub below: u64,
    /// Responses of a subservient engine to the master.
    pub partials: u64,
    /// Responses of end points to the master engine.
    pub from_ends: u64,
    /// Results of the master to the source.
    pub to_source: u64,
    /// Command frames on a link from the master's switch to another one: the fewest and the most.
    pub on_a_link: (u64, u64),
    /// Frames between the master and an engine below it: the fewest and the most.
    pub on_an_edge: (u64, u64),
    /// Flits out of and into the master engine's port in the whole run.
    pub port_flits: (u64, u64),
    /// Flits on a link from the master's switch to another one in the whole run: the fewest and the most.
    pub link_flits: (u64, u64),
    /// Nanoseconds to send the command to all, to receive the responses of all, and of a whole all-reduce: frames one behind
    /// the other and nothing else.
    pub sending: [f64; 3],
    /// The same in the run.
    pub simulated: [f64; 3],
    /// The scenario.
    pub scenario: String,
}

fn flits(words: usize) -> f64 {
    ((HEADER_BYTES + 8 * words) / WORD_BYTES) as f64
}

/// Measures a column in a run.
///
/// # Errors
/// If the run fails.
pub fn column(with: &'static dyn Simulator, shape: Shape, engines: Engines, rounds: u32) -> Result<Column, String> {
    let ran = simulate(with, "table 1", &shape.scenario(engines, rounds))?;
    let rounds = u64::from(rounds);
    let master = |name: &str| is_engine(name) && switch_of(name) == "s0";
    let engine = |name: &str| is_engine(name) && switch_of(name) != "s0";
    let end = |name: &str| !is_engine(name);
    let any = |_: &str| true;
    let at = |k: u32| move |name: &str| switch_of(name) == format!("s{k}");
    let sub = |k: u32| move |name: &str| name == format!("s{k}");
    let source = |name: &str| name == ran.ladder.actors[0];
    let others = 1..shape.switches;
    // What leaves the master's switch for another one takes the link there.
    let on_links = others.clone().map(|k| ran.count("command", master, at(k)) / rounds);
    let on_a_link = (on_links.clone().min().unwrap_or(0), on_links.max().unwrap_or(0));
    let carried = others.clone().map(|k| {
        let to = |link: &LinkResult| {
            let ends = link.name.split_once(" -> ");
            ends.is_some_and(|(from, to)| from.starts_with("s0.P") && to.starts_with(&format!("s{k}.P")))
        };
        ran.links.iter().filter(|link| to(link)).map(|link| link.flits).sum::<u64>()
    });
    let link_flits = (carried.clone().min().unwrap_or(0), carried.max().unwrap_or(0));
    let on_edges = others.map(|k| {
        let down = ["command", "satisfied"].map(|label| ran.count(label, master, sub(k))).iter().sum::<u64>();
        (down + ran.count("partial", sub(k), master)) / rounds
    });
    let on_an_edge = (on_edges.clone().min().unwrap_or(0), on_edges.max().unwrap_or(0));
    let flits_of = |name: &str| ran.links.iter().filter(|link| link.name == name).map(|link| link.flits).sum();
    let port = shape.switches - 1 + shape.nodes;
    let port_flits =
        (flits_of(&format!("s0.engine.P0 -> s0.P{port}")), flits_of(&format!("s0.P{port} -> s0.engine.P0")));
    let (to_engines, to_ends) =
        (ran.count("command", master, engine) / rounds, ran.count("command", master, end) / rounds);
    let below = ran.count("command", sub(1), end) / rounds;
    let (partials, from_ends) =
        (ran.count("partial", sub(1), master) / rounds, ran.count("contribution", end, master) / rounds);
    let answers = ran.count("contribution", end, sub(1)) / rounds;
    // The longest way: through the master alone, or through the master and one engine below it, which share nothing.
    let (out, back) = match engines {
        Engines::Monolithic => (to_ends, from_ends),
        Engines::Distributed => (to_engines + below, ran.count("partial", engine, master) / rounds + answers),
    };
    let (command, data) = (flits(0) / ran.per_ns, flits(WORDS) / ran.per_ns);
    let (send, receive) = (command * out as f64, data * back as f64);
    let responses = if engines == Engines::Monolithic { "contribution" } else { "partial" };
    let simulated = [
        ran.span(ran.frames("command", master, any), ran.frames("command", any, end)),
        ran.span(ran.frames("contribution", end, any), ran.frames(responses, any, master)),
        ran.span(ran.frames("command", any, any), ran.frames("satisfied", any, any)) / rounds as f64,
    ];
    Ok(Column {
        to_engines,
        to_ends,
        below,
        partials,
        from_ends,
        to_source: ran.count("satisfied", master, source) / rounds,
        on_a_link,
        on_an_edge,
        port_flits,
        link_flits,
        // A command out, responses in, the result out.
        sending: [send, receive, send + 2.0 * receive],
        simulated,
        scenario: ran.text.clone(),
    })
}

fn study(with: &'static dyn Simulator, tell: &dyn Fn(&str), report: &mut Report) -> Result<(), String> {
    report.title =
        "Table 1: flattened butterfly of 32 switches with 32 end points each, two lanes of PCIe 6 a port".into();
    report.notes = vec![
        "ours: frames counted in the run times the time of their flits on a link; simulated: the run itself".into(),
        "no parameter was fitted; 10 ns of link latency, one switch stage and the engines' cycles are chosen".into(),
        "monolithic: nine parts of 128 entries behind one port, which all frames from and to end points pass (chosen)".into(),
        "the run's answer phases wait for an engine's one port, which takes all its frames in and sends all of them out".into(),
        "the source counts the results on one edge; the master's port carries those of all 15 engines below it, one behind the other"
            .into(),
    ];
    tell("one engine a switch");
    let distributed = column(with, Shape::TABLE_1, Engines::Distributed, 1)?;
    tell("one engine for all");
    let monolithic = column(with, Shape::TABLE_1, Engines::Monolithic, 1)?;
    table(&mut report.rows, &distributed, &monolithic);
    report.plots.push(("engines", gain(&report.rows)));
    tell("sixteen contexts");
    masters(with, &mut report.rows)
}

/// A count has to be the source's; a time has two per cent, for the source rounds.
fn row(id: &'static str, what: &str, unit: &'static str, source: f64, ours: f64, of: &Column) -> Row {
    let tolerance = if unit.is_empty() { 0.0 } else { 0.02 };
    Row { scenarios: vec![of.scenario.clone()], ..Row::near(id, what, unit, [source, ours], tolerance) }
}

fn table(rows: &mut Vec<Row>, distributed: &Column, monolithic: &Column) {
    let (mono, dist) = (monolithic, distributed);
    let counts = [
        ("B-FIG-1", "monolithic: frames sent to end points", 1023, mono.to_ends, mono),
        // The source's own response comes in as well.
        ("B-FIG-1", "monolithic: frames received from other end points", 1023, mono.from_ends - 1, mono),
        ("B-FIG-1", "monolithic: the result to the source", 1, mono.to_source, mono),
        ("B-FIG-1", "frames from the master to engines", 31, dist.to_engines, dist),
        ("B-FIG-1", "frames from the master to its own nodes, not the source", 31, dist.to_ends, dist),
        ("B-FIG-1", "the master's result to the source", 1, dist.to_source, dist),
        ("B-FIG-1", "frames from a subservient engine to its nodes", 32, dist.below, dist),
        ("B-FIG-1", "responses of a subservient engine to the master", 1, dist.partials, dist),
        ("B-FIG-2", "monolithic: frames on an inter-switch link, at least", 32, mono.on_a_link.0, mono),
        ("B-FIG-2", "monolithic: frames on an inter-switch link, at most", 32, mono.on_a_link.1, mono),
        ("B-FIG-2", "distributed: frames on an inter-switch link, at least", 1, dist.on_a_link.0, dist),
        ("B-FIG-2", "distributed: frames on an inter-switch link, at most", 1, dist.on_a_link.1, dist),
        ("B-HI-4", "frames on an edge of the tree, at least", 3, dist.on_an_edge.0, dist),
        ("B-HI-4", "frames on an edge of the tree, at most", 3, dist.on_an_edge.1, dist),
    ];
    rows.extend(counts.map(|(id, what, source, ours, of)| row(id, what, "", f64::from(source), ours as f64, of)));
    let second = |ns: f64| 1e9 / ns;
    for (name, of, source) in
        [("monolithic", mono, [2046.0, 67_500.0, 7300.0]), ("distributed", dist, [126.0, 4160.0, 118_000.0])]
    {
        let times = [
            ("B-FIG-3", "time to send a command to all", "ns", of.sending[0], of.simulated[0]),
            ("B-FIG-4", "time to receive 1056 bytes from all", "ns", of.sending[1], of.simulated[1]),
            ("B-FIG-5", "collectives a second", "1/s", second(of.sending[2]), second(of.simulated[2])),
        ];
        for ((id, what, unit, ours, simulated), source) in times.into_iter().zip(source) {
            rows.push(Row {
                simulated: Some(simulated),
                ..row(id, &format!("{name}: {what}"), unit, source, ours, of)
            });
        }
    }
}

/// How much better 32 engines are than one, by the table's rows of both.
fn gain(rows: &[Row]) -> Plot {
    let levels = ["B-FIG-3", "B-FIG-4", "B-FIG-5"];
    let line = |name: &str, value: fn(&Row) -> f64, marks_only| {
        let ratio = |(at, id): (usize, &&str)| {
            let mut both = rows.iter().filter(|row| row.id == *id);
            let (one, all) = (both.next()?, both.next()?);
            let (one_engine, engines) = (value(one), value(all));
            let better = if one.unit == "ns" { one_engine / engines } else { engines / one_engine };
            Some((at as f64, better))
        };
        let points = levels.iter().enumerate().filter_map(ratio).collect();
        Series { name: name.to_owned(), points, marks_only, ..Series::default() }
    };
    Plot {
        title: "Table 1: 32 engines against one".to_owned(),
        x: "what is compared".to_owned(),
        y: "times better".to_owned(),
        levels: ["time of a command", "time of the answers", "collectives a second"].map(str::to_owned).to_vec(),
        series: vec![
            line("source", |row| row.source, true),
            line("frames alone", |row| row.ours, false),
            line("simulated", |row| row.simulated.unwrap_or(f64::NAN), false),
        ],
        ..Plot::default()
    }
}

/// Results of sixteen contexts on their way from a master, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// To one engine below it: the frames one behind the other, and the run.
    pub edge: (f64, f64),
    /// At the master engine's own port, to all fifteen engines below it.
    pub port: (f64, f64),
    /// The scenario.
    pub scenario: String,
}

/// Sixteen contexts on a board of 16 switches with this many end points each at PCIe 7 speed, shared by this many
/// masters (paragraph 151).
///
/// # Errors
/// If the run fails.
pub fn sixteen_contexts(with: &'static dyn Simulator, masters: usize, nodes: usize) -> Result<Results, String> {
    let mut text = BOARD.replace("NODES", &nodes.to_string());
    for context in 0..16 {
        // The source sits at its master's switch, whichever that is.
        let (source, master) = (nodes * (context % masters), context % masters);
        let _ = write!(
            text,
            "[[pbv.collective]]\nelements = {WORDS}\nblocks = false\nsource = {source}\nmaster = \"s{master}\"\n\
             data = {{ random = \"normal\", same_every_round = true }}\n"
        );
    }
    let ran = simulate(with, &format!("{masters} masters"), &text)?;
    let frame = flits(WORDS) / PCIE_7;
    let of_master = |name: &str| name == "s0";
    // An engine that is no one's master.
    let edge = || ran.frames("satisfied", of_master, |name: &str| name == "s15");
    let port = || ran.frames("satisfied", of_master, is_engine);
    let (on_edge, at_port) = (edge().count() as f64, port().count() as f64);
    Ok(Results {
        edge: (frame * on_edge, ran.span(edge(), edge())),
        port: (frame * at_port, ran.span(port(), port())),
        scenario: text,
    })
}

/// Sixteen contexts with one master, and with two.
fn masters(with: &'static dyn Simulator, rows: &mut Vec<Row>) -> Result<(), String> {
    for (masters, source) in [(1usize, 528.0), (2, 264.0)] {
        let results = sixteen_contexts(with, masters, 32)?;
        let plural = if masters == 1 { "" } else { "s" };
        for (place, (ours, simulated), relation) in [
            ("on an edge", results.edge, Relation::Near),
            ("at the master's own port, to 15 engines", results.port, Relation::Differs),
        ] {
            let what = format!("16 contexts, {masters} master{plural}: results {place}");
            rows.push(Row {
                simulated: Some(simulated),
                holds_if: relation,
                scenarios: vec![results.scenario.clone()],
                ..Row::near("B-HI-3", &what, "ns", [source, ours], 0.0)
            });
        }
    }
    Ok(())
}
