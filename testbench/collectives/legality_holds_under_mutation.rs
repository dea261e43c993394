//! Random changes to legal registers: what the check before cycle 0 accepts runs to the right end, and what it refuses
//! would not have (H-LEGAL-1, P-SW-5, P-SW-7, P-SW-9).
//!
//! Whether a run was right is told without the model's tree: every participant that is to get the result has the wrapping
//! sum of all contributions (of a broadcast, the source's words), in every element, and nothing is left in the network.
//! Refused registers are run too: a system is built with legal ones, and the others are stored before the first cycle.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use watershed::arith::{DType, Op};
use watershed::fabric::Step;
use watershed::piuma::{OpSelect, REQUEST, RESPONSE, Registers};
use watershed::scenario::build::{BuildOptions, build};
use watershed::scenario::run::{RunOptions, check, run};
use watershed::scenario::{Loaded, embedding, load_text};

use crate::support::{Draw, die, load, mesh};

/// Words of a vector: more than one, so that what comes twice, or in another order, shows.
const ELEMENTS: u64 = 5;
/// No mutant that is right takes a tenth as long.
const LIMIT: u64 = 20_000;

/// Input port and channel of a register, by the name of its switch.
type Key = (String, u8, u16);
type Vectors = BTreeMap<Key, u64>;

/// A system with a collective and its legal registers.
struct Base {
    name: &'static str,
    /// The scenario without registers.
    text: String,
    legal: Vectors,
    /// Names of all switches, and the engine's port.
    switches: Vec<String>,
    engine: u16,
}

impl Base {
    fn new(name: &'static str, text: String) -> Base {
        let loaded = load(&text, &[]);
        let ready = build(&loaded, BuildOptions::default()).unwrap_or_else(|problems| panic!("{problems}"));
        let tables = &ready.system.tables;
        let switches = (0..tables.switches()).map(|switch| tables.name(switch).into_owned()).collect();
        let json = embedding::json(&embedding::all(&loaded).unwrap_or_else(|problems| panic!("{problems}")));
        let mut legal = Vectors::new();
        for (switch, channels) in json["collectives"][0]["registers"].as_object().expect("registers") {
            for (channel, name) in [(REQUEST, "request"), (RESPONSE, "response")] {
                for (input, outputs) in channels[name].as_object().expect("inputs") {
                    let outputs = outputs.as_array().expect("ports").iter().map(|port| port.as_u64().expect("a port"));
                    let vector = outputs.fold(0, |vector, port| vector | 1 << port);
                    legal.insert((switch.clone(), channel, input[1..].parse().expect("I and a number")), vector);
                }
            }
        }
        Base { name, engine: tables.engine_port(), text, legal, switches }
    }

    /// The scenario with registers of its own.
    fn with(&self, vectors: &Vectors) -> String {
        let mut text = format!("{}[collective.registers]\n", self.text);
        for ((switch, channel, input), vector) in vectors {
            let channel = if *channel == REQUEST { "request" } else { "response" };
            let outputs: Vec<u16> = (0..=self.engine).filter(|port| vector >> port & 1 == 1).collect();
            let _ = writeln!(text, "{switch}.{channel}.I{input} = {outputs:?}");
        }
        text
    }

    /// One to three changes such as a slip of a pen, a wrong bit or a missing line makes them.
    fn mutate(&self, draw: &mut Draw) -> Vectors {
        let mut vectors = self.legal.clone();
        while vectors == self.legal {
            for _ in 0..=draw.below(3) {
                self.change(&mut vectors, draw);
            }
        }
        vectors
    }

    fn change(&self, vectors: &mut Vectors, draw: &mut Draw) {
        let ports = u64::from(self.engine) + 1;
        let any = |vectors: &Vectors, draw: &mut Draw| -> Key {
            vectors.keys().nth(draw.below(vectors.len() as u64) as usize).expect("a register").clone()
        };
        let key = any(vectors, draw);
        let vector = vectors[&key];
        match draw.below(8) {
            // A bit more, or one less.
            0 | 1 => *vectors.get_mut(&key).expect("it is there") ^= 1 << draw.below(ports),
            // A bit at another place.
            2 => {
                let gone = vector & vector.wrapping_sub(1);
                *vectors.get_mut(&key).expect("it is there") = gone | 1 << draw.below(ports);
            }
            // A line that is missing, unless it is the last.
            3 if vectors.len() > 1 => {
                vectors.remove(&key);
            }
            // A line for another input.
            4 => {
                vectors.remove(&key);
                vectors.insert((key.0, key.1, draw.below(ports) as u16), vector);
            }
            // Two lines exchanged.
            5 => {
                let other = any(vectors, draw);
                let moved = vectors.insert(other, vector).expect("it is there");
                vectors.insert(key, moved);
            }
            // A line for another channel.
            6 => {
                vectors.insert((key.0, 1 - key.1, key.2), vector);
            }
            // A line more, anywhere.
            _ => {
                let switch = self.switches[draw.below(self.switches.len() as u64) as usize].clone();
                let vector = 1 << draw.below(ports) | u64::from(draw.below(2) == 0) << draw.below(ports);
                vectors.insert((switch, draw.below(2) as u8, draw.below(ports) as u16), vector);
            }
        }
    }
}

/// What every receiver is to have.
fn expected(loaded: &Loaded) -> Vec<u64> {
    let mut sum = vec![0u64; ELEMENTS as usize];
    loaded.each_row(0, |row| sum.iter_mut().zip(row).for_each(|(sum, word)| *sum = sum.wrapping_add(*word)));
    sum
}

/// What is wrong with a run of accepted registers, made as a user would make it.
fn run_accepted(loaded: &Loaded) -> Result<(), String> {
    let result = run(loaded, &RunOptions::default()).map_err(|error| error.to_string())?;
    if !result.document.passed() {
        return Err(format!("{:#?}", result.document.checks));
    }
    let wanted = expected(loaded);
    let rows: Vec<Vec<u64>> = result.data[0].rows.iter().map(<[u64]>::to_vec).collect();
    if rows.is_empty() || rows.iter().any(|row| *row != wanted) {
        return Err(format!("{rows:x?} instead of {wanted:x?}"));
    }
    Ok(())
}

/// What is wrong with a run of registers that nobody has checked.
fn run_unchecked(base: &Base, vectors: &Vectors) -> Result<(), String> {
    let loaded = load(&base.with(&base.legal), &[]);
    let whole = BuildOptions { whole: true, ..BuildOptions::default() };
    let mut ready = build(&loaded, whole).unwrap_or_else(|problems| panic!("{problems}"));
    let all: Vec<u32> = (0..base.switches.len() as u32).collect();
    let tables = &mut ready.system.tables;
    tables.store_select(0, &all, OpSelect { op: Op::Sum, dtype: DType::I64, ..OpSelect::default() });
    for key in base.legal.keys().chain(vectors.keys()) {
        let switch = base.switches.iter().position(|name| *name == key.0).expect("a switch") as u32;
        let address = Registers::vector_address(switch, 0, key.1, key.2);
        tables.store(address, vectors.get(key).copied().unwrap_or(0)).expect("a register");
    }
    let system = &mut ready.system;
    let mut step = Step::Ran;
    while step == Step::Ran && system.fault().is_none() && system.now() < LIMIT {
        step = system.step();
    }
    if let Some(fault) = system.fault() {
        return Err(fault.to_owned());
    }
    if step != Step::Quiet || system.live_flits() > 0 || !system.at_rest() {
        return Err(format!("cycle {}: {} flits are left", system.now(), system.live_flits()));
    }
    let wanted = expected(&loaded);
    for &(end, job) in &ready.collectives[0].jobs {
        let job = &ready.system.end(end).core.as_ref().expect("a core").jobs()[job];
        if job.end().is_none() || job.kind().receives && job.output() != wanted {
            return Err(format!("end point {end}: {:x?} instead of {wanted:x?}", job.output()));
        }
    }
    Ok(())
}

fn bases() -> Vec<Base> {
    let collective = |kind: &str, more: &str| {
        format!("[[collective]]\nkind = \"{kind}\"\nop = \"sum\"\ndtype = \"i64\"\nelements = {ELEMENTS}\n{more}")
    };
    let all = collective("allreduce", "");
    let some = collective("allreduce", "participants = [0, 2, 5, 7]\n");
    let broadcast = collective("broadcast", "source = 2\n").replace("op = \"sum\"\n", "");
    let nodes = "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = [2]\nsockets = 2\ntiles = 2\npositions = 2\n\
                 [link]\nsocket_latency_ns = 6\nnode_latency_ns = 8\n";
    vec![
        Base::new("die", die(&all)),
        Base::new("die, four cores", die(&some)),
        Base::new("die, reduce", die(&collective("reduce", "receiver = 3\n"))),
        Base::new("die, broadcast", die(&broadcast)),
        Base::new("mesh", mesh(&[3, 3], 1, &all)),
        Base::new("nodes", format!("{nodes}{all}")),
    ]
}

/// Runs so many mutants, and says how they fared.
fn campaign(mutants: u64, seed: u64) -> String {
    let bases = bases();
    let mut draw = Draw(seed);
    // By base: mutants, accepted ones, refused ones that would have been right.
    let mut counts = vec![[0u64; 3]; bases.len()];
    for number in 0..mutants {
        let at = (number % bases.len() as u64) as usize;
        let base = &bases[at];
        let vectors = base.mutate(&mut draw);
        let text = base.with(&vectors);
        let unchecked = run_unchecked(base, &vectors);
        let here = || format!("mutant {number} of seed {seed:#x}, {}:\n{text}", base.name);
        let accepted = load_text("test.toml", &text, std::path::Path::new("."), "test", &[])
            .map_err(|problems| problems.to_string())
            .and_then(|loaded| check(&loaded).map(|()| loaded).map_err(|error| error.to_string()));
        counts[at][0] += 1;
        match accepted {
            Ok(loaded) => {
                counts[at][1] += 1;
                run_accepted(&loaded).unwrap_or_else(|why| panic!("accepted, and fails: {why}\n{}", here()));
                unchecked.unwrap_or_else(|why| panic!("right only if it is checked: {why}\n{}", here()));
            }
            Err(refusal) if unchecked.is_ok() => {
                counts[at][2] += 1;
                println!("refused, and would have been right: {}{refusal}", here());
            }
            Err(_) => {}
        }
    }
    let total = counts.iter().fold([0; 3], |sum, one| [sum[0] + one[0], sum[1] + one[1], sum[2] + one[2]]);
    let mut text = String::new();
    for (name, [mutants, accepted, right]) in bases.iter().map(|base| base.name).zip(&counts).chain([("all", &total)]) {
        let refused = mutants - accepted;
        let _ = writeln!(
            text,
            "{name}: {mutants} mutants, {accepted} accepted and right, {refused} refused, {right} of them wrongly"
        );
    }
    let [mutants, accepted, right] = total;
    assert!(accepted * 50 >= mutants, "too few are accepted to show anything:\n{text}");
    assert!(right * 100 <= mutants - accepted, "more than 1 % of the refused ones would have been right:\n{text}");
    text
}

#[test]
fn the_bases_are_right_checked_and_unchecked() {
    for base in bases() {
        let loaded = load(&base.with(&base.legal), &[]);
        run_accepted(&loaded).unwrap_or_else(|why| panic!("{}: {why}", base.name));
        run_unchecked(&base, &base.legal).unwrap_or_else(|why| panic!("{}: {why}", base.name));
    }
}

#[test]
fn accepted_registers_run_and_refused_ones_would_not() {
    println!("{}", campaign(300, 0x1e6a1));
}

#[test]
#[ignore = "minutes: part of make soak"]
fn ten_thousand_mutants_keep_the_check_honest() {
    println!("{}", campaign(10_000, 0x50a4));
}
