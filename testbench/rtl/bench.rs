//! A module on the bench: its inputs, what is looked at, and the comparison cycle by cycle.
//!
//! Stimulus and expectation come from the model while it runs, a batch of cycles at a time. What is looked at in a cycle are registers
//! as they are at its start, and outputs as they follow from them and from the inputs of the cycle.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::verilator::{self, Simulator};

/// Cycles that are simulated at once.
const BATCH: usize = 512;
/// Cycles of a wave behind the first difference.
const BEHIND: usize = 16;

/// An input, or something to look at.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    /// Where the RTL has it; of an input its name.
    expression: String,
    width: u32,
    /// Its first word in a record.
    word: usize,
}

fn words(width: u32) -> usize {
    width.div_ceil(32) as usize
}

/// The words of a record that show something: its bits, and above them one that tells whether anything lies higher.
fn look(text: &mut String, number: usize, Place { expression, width, word, .. }: &Place) {
    let width = *width as usize;
    // Products are wider than what waves show of those of narrow formats; everything else has 64 bits at most.
    let products = ["lower", "upper", "product"];
    let all = if width > 64 || products.iter().any(|name| expression.ends_with(name)) { 160 } else { 64 };
    let _ = writeln!(text, "  logic [{}:0] look_{number};\n  assign look_{number} = {all}'({expression});", all - 1);
    let more = if width < all { format!("|look_{number}[{}:{width}]", all - 1) } else { "1'b0".to_owned() };
    for k in 0..words(place_bits(width)) {
        let low = 32 * k;
        let value = match width.saturating_sub(low) {
            32.. => format!("look_{number}[{}:{low}]", low + 31),
            0 => format!("32'({more})"),
            bits => format!("32'({{{more}, look_{number}[{}:{low}]}})", low + bits - 1),
        };
        let _ = writeln!(text, "  assign obs_o[{}] = {value};", word + k);
    }
}

/// Bits of what is seen with the one above it.
fn place_bits(width: usize) -> u32 {
    width as u32 + 1
}

/// A bench under construction.
#[derive(Clone, Debug, Default)]
pub struct Bench {
    inputs: Vec<Place>,
    seen: Vec<Place>,
    body: String,
    defines: Vec<&'static str>,
}

impl Bench {
    /// An input of so many bits: a signal of this name in the body.
    pub fn input(&mut self, name: impl Into<String>, width: u32) {
        let name = name.into();
        let word = self.inputs.last().map_or(0, |last| last.word + words(last.width));
        self.inputs.push(Place { expression: name.clone(), name, width, word });
    }

    /// Something to look at: what the model calls it, where the RTL has it, and its bits. Bits of the RTL above that must be zero.
    pub fn look(&mut self, name: impl Into<String>, expression: impl Into<String>, width: u32) {
        // A bit more tells whether anything lies above.
        let word = self.seen.last().map_or(0, |last| last.word + words(last.width + 1));
        self.seen.push(Place { name: name.into(), expression: expression.into(), width, word });
    }

    /// Declarations and instances; the module of interest is `u_dut`.
    pub fn body(&mut self, text: &str) {
        self.body += text;
    }

    /// A macro that is defined, for a fault.
    pub fn define(&mut self, name: &'static str) {
        self.defines.push(name);
    }

    /// Words of a record of stimulus, and of one of what is seen.
    fn records(&self) -> (usize, usize) {
        let given = self.inputs.last().map_or(0, |last| last.word + words(last.width));
        (given, self.seen.last().map_or(0, |last| last.word + words(last.width + 1)))
    }

    fn text(&self) -> String {
        let (given, seen) = self.records();
        let mut text = format!(
            "module bench\n  import ws_pkg::*;\n(\n  input logic clk_i,\n  input logic rst_ni,\n  input logic [31:0] stim_i [{given}],\n  \
             output logic [31:0] obs_o [{seen}]\n);\n"
        );
        for Place { name, width, word, .. } in &self.inputs {
            let parts: Vec<String> = (0..words(*width)).rev().map(|k| format!("stim_i[{}]", word + k)).collect();
            let all = words(*width) * 32 - 1;
            let _ = writeln!(text, "  logic [{all}:0] all_{name};\n  assign all_{name} = {{{}}};", parts.join(", "));
            let _ = writeln!(text, "  logic [{}:0] {name};\n  assign {name} = all_{name}[{}:0];", width - 1, width - 1);
        }
        text += &self.body;
        for (number, place) in self.seen.iter().enumerate() {
            look(&mut text, number, place);
        }
        text + "endmodule\n"
    }

    /// Builds the simulator; `None` where there is no Verilator.
    pub fn build(self, name: &str) -> Option<Cosim> {
        let simulator = verilator::find()?.simulator(name, &self.text(), &self.defines);
        let (given, seen) = self.records();
        Some(Cosim {
            name: name.to_owned(),
            bench: self,
            simulator,
            given,
            seen,
            stimulus: Vec::new(),
            expected: Vec::new(),
            batch: 0,
            cycles: 0,
        })
    }
}

/// A difference: where it is first, and both sides as a wave.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The cycle, from 0.
    pub cycle: u64,
    /// The name in the model.
    pub signal: String,
    /// What the RTL has.
    pub rtl: u128,
    /// What the model has.
    pub model: u128,
    /// A waveform of both sides up to a few cycles behind.
    pub wave: PathBuf,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference { cycle, signal, rtl, model, wave } = self;
        write!(
            f,
            "cycle {cycle}: {signal} is {rtl:#x} in the RTL and {model:#x} in the model; both sides: {}",
            wave.display()
        )
    }
}

/// A simulator beside the model.
pub struct Cosim {
    name: String,
    bench: Bench,
    simulator: Simulator,
    given: usize,
    seen: usize,
    stimulus: Vec<u32>,
    expected: Vec<Option<u128>>,
    batch: usize,
    /// Cycles compared.
    pub cycles: u64,
}

/// Simulators that are used again: a run ends and another begins with a reset.
#[derive(Default)]
pub struct Cosims {
    /// Before the name of each.
    prefix: String,
    idle: HashMap<String, Vec<Cosim>>,
}

impl Cosims {
    /// With this before the name of each.
    pub fn new(prefix: String) -> Cosims {
        Cosims { prefix, ..Cosims::default() }
    }

    /// One of a bench, by its name; `None` where there is no Verilator.
    pub fn take(&mut self, bench: Bench, name: &str) -> Option<Cosim> {
        let idle = self.idle.get_mut(name).and_then(Vec::pop);
        idle.or_else(|| bench.build(&format!("{}{name}", self.prefix)))
    }

    /// It is free.
    pub fn put(&mut self, name: String, cosim: Cosim) {
        self.idle.entry(name).or_default().push(cosim);
    }
}

fn read(record: &[u32], place: &Place) -> u128 {
    let all = words(place.width + 1);
    let low =
        record[place.word..place.word + all.min(4)].iter().rev().fold(0, |value, &word| value << 32 | u128::from(word));
    // What lies above 128 bits can only be the bit that tells of more.
    if all > 4 && record[place.word + 4] != 0 { u128::MAX } else { low }
}

impl Cosim {
    /// One cycle: values of the inputs in their order, and of what is looked at, `None` where it is of no meaning.
    ///
    /// # Errors
    /// The first difference of the batch that ends with this cycle.
    pub fn cycle(
        &mut self,
        reset: bool,
        given: &[u128],
        expected: impl IntoIterator<Item = Option<u128>>,
    ) -> Result<(), Box<Difference>> {
        assert_eq!(given.len(), self.bench.inputs.len(), "a value for each input");
        let begin = self.stimulus.len();
        self.stimulus.resize(begin + 1 + self.given, 0);
        self.stimulus[begin] = u32::from(!reset);
        for (value, place) in given.iter().zip(&self.bench.inputs) {
            assert!(
                place.width >= 128 || value >> place.width == 0,
                "{}: {value:#x} in {} bits",
                place.name,
                place.width
            );
            for k in 0..words(place.width) {
                self.stimulus[begin + 1 + place.word + k] = (value >> (32 * k)) as u32;
            }
        }
        self.expected.extend(expected);
        self.batch += 1;
        assert_eq!(self.expected.len(), self.batch * self.bench.seen.len(), "a value for all that is looked at");
        if self.batch == BATCH { self.flush() } else { Ok(()) }
    }

    /// Simulates and compares what is not compared yet.
    ///
    /// # Errors
    /// The first difference.
    pub fn flush(&mut self) -> Result<(), Box<Difference>> {
        let seen = self.simulator.cycles(self.batch, &self.stimulus, self.seen);
        let places = self.bench.seen.len();
        for (cycle, record) in seen.chunks_exact(self.seen).enumerate() {
            let expected = &self.expected[cycle * places..(cycle + 1) * places];
            for (place, expected) in self.bench.seen.iter().zip(expected) {
                let found = read(record, place);
                if let Some(model) = *expected
                    && found != model
                {
                    let wave = self.wave(&seen, cycle);
                    let cycle = self.cycles + cycle as u64;
                    return Err(Box::new(Difference { cycle, signal: place.name.clone(), rtl: found, model, wave }));
                }
            }
        }
        self.cycles += self.batch as u64;
        self.batch = 0;
        self.stimulus.clear();
        self.expected.clear();
        Ok(())
    }

    /// Flushes, and says what was compared.
    pub fn finish(mut self, what: &str) -> u64 {
        self.flush().unwrap_or_else(|difference| panic!("{}: {difference}", self.name));
        let Self { cycles, bench, .. } = &self;
        println!("rtl: {what}: {cycles} cycles, {} signals in each, 0 differences", bench.seen.len());
        self.cycles
    }

    /// Writes the cycles of the batch, up to a few behind the difference, as they are on both sides.
    fn wave(&self, seen: &[u32], difference: usize) -> PathBuf {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rtl").join(format!("{}.vcd", self.name));
        let places = self.bench.seen.len();
        let sides = ["inputs", "rtl", "model"];
        let mut text = String::from("$timescale 1ns $end\n$scope module cosim $end\n");
        let code = |side: usize, number: usize| format!("{side}_{number}");
        for (side, name) in sides.iter().enumerate() {
            let _ = writeln!(text, "$scope module {name} $end");
            let list = if side == 0 { &self.bench.inputs } else { &self.bench.seen };
            for (number, place) in list.iter().enumerate() {
                // Scopes would cost a tree; a name with dots is one that every viewer shows.
                let _ = writeln!(text, "$var wire {} {} {} $end", place.width + 1, code(side, number), place.name);
            }
            text += "$upscope $end\n";
        }
        text += "$scope module cosim_differs $end\n$var wire 1 d differs $end\n$upscope $end\n$upscope $end\n$enddefinitions $end\n";
        for cycle in 0..self.batch.min(difference + BEHIND) {
            let _ = writeln!(text, "#{}\nb{} d", self.cycles + cycle as u64, u8::from(cycle == difference));
            let record = &self.stimulus[cycle * (self.given + 1) + 1..];
            for (number, place) in self.bench.inputs.iter().enumerate() {
                let value = (0..words(place.width))
                    .rev()
                    .fold(0u128, |value, k| value << 32 | u128::from(record[place.word + k]));
                let _ = writeln!(text, "b{value:b} {}", code(0, number));
            }
            for (number, place) in self.bench.seen.iter().enumerate() {
                let value = read(&seen[cycle * self.seen..(cycle + 1) * self.seen], place);
                let _ = writeln!(text, "b{value:b} {}", code(1, number));
                let model = self.expected[cycle * places + number];
                let _ = writeln!(
                    text,
                    "b{} {}",
                    model.map_or("x".to_owned(), |value| format!("{value:b}")),
                    code(2, number)
                );
            }
        }
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }
}
