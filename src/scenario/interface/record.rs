//! The inputs and outputs of one block, cycle by cycle, so that a bench in a hardware description language can drive the same
//! cycles and compare.
//!
//! A block has its name in waves, or that of summaries and messages (`top.P4.engine`): a switch
//! (`die.tile2.sw4.switch`), the engine behind its internal port (`die.tile2.sw4.switch.ceng`), an engine or a link
//! with faults in the wire (`…engine`, `…fault`), an end point.
//!
//! | file | what |
//! |---|---|
//! | `BLOCK.in.hex`, `BLOCK.out.hex` | for `$readmemh`: a line a cycle, the fields of all ports side by side; comments at its top name each field with its bits |
//! | `BLOCK.csv` | a line a cycle, a column a field, hexadecimal; empty where nothing is valid |
//!
//! | field | bits | in cycle t |
//! |---|---|---|
//! | `inP.valid`, `inP.tag`, `inP.word` | 1, 64, 64 | the flit that comes into the queue of port P at the start of t; the tag is that of [`Flit`](watershed_fabric::Flit), its bits 6:2 name the channel |
//! | `inP.credit` | a bit a channel | credits that reach the output of port P at the start of t |
//! | `outP.valid`, `outP.tag`, `outP.word` | 1, 64, 64 | what the output register of port P holds: the flit that was granted in t - 1 |
//! | `outP.credit` | a bit a channel | credits that the input of port P sends back in t |
//! | `slotP.valid`, `slotP.tag`, `slotP.word` | 1, 64, 64 | an engine's operand that becomes visible in slot P |
//! | `queued` | 16 | results that stand in the crossbar input behind the engine |
//! | `result.valid`, `result.tag`, `result.word` | 1, 64, 64 | the result that the engine puts out |
//!
//! Credits that outputs have before cycle 0 stand in the comments. Registers, tables and parameters are no inputs: they are those of the
//! scenario, whose hash is in the comments too.
//!
//! A port has fields for one flit a cycle, and a slot for one operand, because a link carries one flit a cycle over all
//! its channels.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::Loaded;
use super::result::Document;
use super::run::RunOptions;
use watershed_fabric::{FlitEvent, Journal, NodeKind, Plan};
use watershed_reader::names;

/// A field of a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its bits.
    pub width: u32,
}

/// Values of the fields that are not zero in a cycle, by the number of the field.
type Row = BTreeMap<usize, u64>;

/// The inputs and outputs of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The block's hierarchical name.
    pub block: String,
    /// Fields of the inputs, the most significant first.
    pub inputs: Vec<Field>,
    /// Fields of the outputs.
    pub outputs: Vec<Field>,
    /// Cycles, from 0 on.
    pub cycles: u64,
    /// Credits of outputs before cycle 0: port, channel, credits.
    pub credits: Vec<(u16, u8, u16)>,
    /// What else the comments say.
    pub comments: Vec<String>,
    rows: [BTreeMap<u64, Row>; 2],
}

/// Which block: its node, and whether it is the engine of that switch.
fn find(plan: &Plan, name: &str) -> Result<(u32, bool), String> {
    let mut known: Vec<String> = Vec::new();
    for (node, at) in plan.nodes.iter().enumerate() {
        if at.path == name || at.name == name {
            return Ok((node as u32, false));
        }
        if at.engine && name.strip_suffix(".ceng") == Some(&at.path) {
            return Ok((node as u32, true));
        }
        known.push(at.path.clone());
        if at.engine {
            known.push(format!("{}.ceng", at.path));
        }
    }
    // Also what ends alike: `sw4.switch` for `die.tile2.sw4.switch`.
    let tail = format!(".{name}");
    let inner = format!(".{name}.");
    let mut near: Vec<String> = known.iter().filter(|known| known.ends_with(&tail)).cloned().collect();
    near.extend(known.iter().filter(|known| known.contains(&inner)).cloned());
    if near.is_empty() {
        near.extend(names::nearest(name, known.iter().map(String::as_str)));
        let engine = near.first().map(|near| format!("{near}.ceng"));
        near.extend(engine.filter(|engine| known.contains(engine)));
    }
    near.truncate(4);
    let near = if near.is_empty() {
        let some: Vec<&str> = known.iter().take(3).map(String::as_str).collect();
        format!("there are {} blocks, for example {}", known.len(), names::one_of(some))
    } else {
        format!("did you mean {}?", names::one_of(near))
    };
    Err(format!("there is no block \"{name}\"; {near}"))
}

/// Whether a plan has a block of this name.
///
/// # Errors
/// It has not; the text names blocks that are near.
pub fn check(plan: &Plan, name: &str) -> Result<(), String> {
    find(plan, name).map(|_| ())
}

/// What the block did that was to be recorded.
pub fn recording(
    loaded: &Loaded,
    plan: &Plan,
    journal: Option<&Journal>,
    options: &RunOptions<'_>,
) -> Option<Recording> {
    let (name, journal) = (options.record?, journal?);
    let cycles = journal.entries.last().map_or(0, |entry| entry.cycle + 2);
    let mut recording = Recording::of(plan, journal, name, cycles).ok()?;
    let stamp = Document::new(loaded).stamp;
    let comment = format!("scenario {}, seed {}, configuration {}", stamp.scenario, stamp.seed, stamp.config_hash);
    recording.comments.push(comment);
    Some(recording)
}

impl Recording {
    /// What a block did, from a journal of all flits.
    ///
    /// # Errors
    /// There is no such block.
    pub fn of(plan: &Plan, journal: &Journal, name: &str, cycles: u64) -> Result<Recording, String> {
        let (node, engine) = find(plan, name)?;
        let base: u32 = plan.nodes[..node as usize].iter().map(|node| u32::from(node.ports)).sum();
        let ports = plan.nodes[node as usize].ports;
        let mut recording = Recording {
            block: name.to_owned(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            cycles,
            credits: Vec::new(),
            comments: Vec::new(),
            rows: [BTreeMap::new(), BTreeMap::new()],
        };
        if engine {
            recording.engine(journal, base, ports);
        } else {
            recording.node(plan, journal, node, base);
        }
        Ok(recording)
    }

    fn field(&mut self, side: usize, name: String, width: u32) {
        let list = if side == 0 { &mut self.inputs } else { &mut self.outputs };
        list.push(Field { name, width });
    }

    /// Three fields of a flit.
    fn flit(&mut self, side: usize, name: &str) {
        for (part, width) in [("valid", 1), ("tag", 64), ("word", 64)] {
            self.field(side, format!("{name}.{part}"), width);
        }
    }

    fn set(&mut self, side: usize, cycle: u64, field: usize, value: u64) {
        if cycle < self.cycles && value != 0 {
            *self.rows[side].entry(cycle).or_default().entry(field).or_default() |= value;
        }
    }

    fn set_flit(&mut self, side: usize, cycle: u64, field: usize, tag: u64, word: u64) {
        self.set(side, cycle, field, 1);
        self.set(side, cycle, field + 1, tag);
        self.set(side, cycle, field + 2, word);
    }

    /// A node between or behind links.
    fn node(&mut self, plan: &Plan, journal: &Journal, node: u32, base: u32) {
        let switch = plan.nodes[node as usize].kind == NodeKind::Switch;
        let vcs = u32::from(plan.vcs.total());
        // The far end of every port, with the cycles its credits take to get here.
        let mut bases = Vec::new();
        let mut next = 0;
        for node in &plan.nodes {
            bases.push(next);
            next += u32::from(node.ports);
        }
        let mut first: BTreeMap<u32, usize> = BTreeMap::new();
        let mut returns: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
        let mut linked: Vec<(u16, u32, u64)> = Vec::new();
        for link in &plan.links {
            for (here, far) in [(link.a, link.b), (link.b, link.a)] {
                if here.0 == node {
                    let far = bases[far.0 as usize] + u32::from(far.1);
                    linked.push((here.1, far, u64::from(link.latency)));
                }
            }
        }
        linked.sort_unstable();
        for (at, &(port, far, latency)) in linked.iter().enumerate() {
            for side in 0..2 {
                let name = format!("{}{port}", ["in", "out"][side]);
                self.flit(side, &name);
                self.field(side, format!("{name}.credit"), vcs);
            }
            first.insert(base + u32::from(port), 4 * at);
            let processing = if switch { u64::from(journal.credit_delay) } else { 0 };
            returns.insert(far, (4 * at + 3, latency + 1 + processing));
            for vc in 0..plan.vcs.total() {
                self.credits.push((port, vc, journal.initial_credits(base + u32::from(port), vc)));
            }
        }
        for entry in &journal.entries {
            let vc = 1u64 << entry.tag.vc();
            if let (FlitEvent::Left, Some(&(field, delay))) = (entry.what, returns.get(&entry.port)) {
                self.set(0, entry.cycle + delay, field, vc);
            }
            let Some(&field) = first.get(&entry.port) else { continue };
            match entry.what {
                FlitEvent::Entered { .. } => self.set_flit(0, entry.cycle, field, entry.tag.0, entry.word),
                FlitEvent::Left => self.set(1, entry.cycle, field + 3, vc),
                FlitEvent::Sent { .. } => self.set_flit(1, entry.cycle + 1, field, entry.tag.0, entry.word),
                FlitEvent::EnteredEngine { .. } => {}
            }
        }
    }

    /// The engine behind the last port of a switch.
    fn engine(&mut self, journal: &Journal, base: u32, ports: u16) {
        let slots = ports - 1;
        for port in 0..slots {
            self.flit(0, &format!("slot{port}"));
        }
        self.field(0, "queued".into(), 16);
        self.flit(1, "result");
        let (queue, field) = (base + u32::from(slots), 3 * usize::from(slots));
        // Results that came into and left the queue before a cycle.
        let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
        for entry in journal.entries.iter().filter(|entry| (base..=queue).contains(&entry.port)) {
            match entry.what {
                FlitEvent::EnteredEngine { visible } => {
                    let slot = 3 * (entry.port - base) as usize;
                    self.set_flit(0, visible, slot, entry.tag.0, entry.word);
                }
                FlitEvent::Entered { .. } if entry.port == queue => {
                    self.set_flit(1, entry.cycle, 0, entry.tag.0, entry.word);
                    *changes.entry(entry.cycle + 1).or_default() += 1;
                }
                FlitEvent::Left if entry.port == queue => *changes.entry(entry.cycle + 1).or_default() -= 1,
                _ => {}
            }
        }
        let (mut queued, mut from) = (0i64, 0);
        changes.insert(self.cycles, 0);
        for (cycle, change) in changes {
            for at in from..cycle.min(self.cycles) {
                self.set(0, at, field, queued as u64);
            }
            (queued, from) = (queued + change, cycle);
        }
    }

    /// Value of a field in a cycle; `side` 0 are inputs, 1 outputs.
    pub fn value(&self, side: usize, cycle: u64, field: usize) -> u64 {
        self.rows[side].get(&cycle).and_then(|row| row.get(&field)).copied().unwrap_or(0)
    }

    fn fields(&self, side: usize) -> &[Field] {
        if side == 0 { &self.inputs } else { &self.outputs }
    }

    /// Writes the vectors of a side for `$readmemh`.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_hex(&self, side: usize, out: &mut impl Write) -> io::Result<()> {
        let fields = self.fields(side);
        let width: u32 = fields.iter().map(|field| field.width).sum();
        writeln!(
            out,
            "// {} of {}: {width} bits, a line a cycle, from cycle 0",
            ["inputs", "outputs"][side],
            self.block
        )?;
        for comment in &self.comments {
            writeln!(out, "// {comment}")?;
        }
        for (port, vc, credits) in self.credits.iter().filter(|_| side == 0) {
            writeln!(out, "// credits of out{port}, channel {vc}: {credits}")?;
        }
        let mut top = width;
        for field in fields {
            writeln!(out, "// [{}:{}] {}", top - 1, top - field.width, field.name)?;
            top -= field.width;
        }
        let digits = width.div_ceil(4) as usize;
        let idle = "0".repeat(digits);
        for cycle in 0..self.cycles {
            let Some(row) = self.rows[side].get(&cycle) else {
                writeln!(out, "{idle}")?;
                continue;
            };
            // Bits from the most significant on, in front of them what fills the first digit.
            let mut bits: Vec<bool> = vec![false; digits * 4 - width as usize];
            for (at, field) in fields.iter().enumerate() {
                let value = row.get(&at).copied().unwrap_or(0);
                bits.extend((0..field.width).rev().map(|bit| value >> bit & 1 == 1));
            }
            let digit = |four: &[bool]| four.iter().fold(0, |digit, &bit| digit << 1 | u32::from(bit));
            let line: String = bits.chunks(4).filter_map(|four| char::from_digit(digit(four), 16)).collect();
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Writes inputs and outputs as CSV.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let mut line = String::from("cycle");
        for field in self.inputs.iter().chain(&self.outputs) {
            let _ = write!(line, ",{}", field.name);
        }
        writeln!(out, "{line}")?;
        for cycle in 0..self.cycles {
            line.clear();
            let _ = write!(line, "{cycle}");
            for side in 0..2 {
                let row = self.rows[side].get(&cycle);
                for (at, field) in self.fields(side).iter().enumerate() {
                    let value = row.and_then(|row| row.get(&at)).copied().unwrap_or(0);
                    let part = field.name.rsplit('.').next().unwrap_or_default();
                    // A tag or word of nothing is no zero.
                    let valid = match part {
                        "tag" => self.value(side, cycle, at - 1),
                        "word" => self.value(side, cycle, at - 2),
                        _ => 1,
                    };
                    line.push(',');
                    if valid != 0 {
                        let _ = write!(line, "{value:x}");
                    }
                }
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}
