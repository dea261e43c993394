//! Every engine on every kind of network, every kind of job, every operation on every type that the book says it does (X-JOB-1,
//! X-NET-1, X-HOST-1): bits recomputed here from the words that stand in the scenario, latency that grows with its links, and a
//! network that is left as it was found. What an engine does not do is refused with its reason.
//!
//! The tree in which an engine reduces is not asked for: a result has to be one that some order of pairwise operations gives,
//! each rounded once. For sums of integers that is one value, for five doubles up to 105.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use watershed::scenario::build::layout;
use watershed::scenario::names::{NamedValues, Op};
use watershed::scenario::run::{RunOptions, RunResult, run};
use watershed::scenario::why::{Kind, Why, WhyQuery};
use watershed::scenario::{Loaded, load_text};

use crate::share;
use crate::support::Draw;

const ENGINES: [&str; 4] = ["piuma", "armed", "pbv", "software"];

/// The kinds of networks, in sizes that no round number helps.
const NETWORKS: [(&str, &str); 10] = [
    ("die", ""),
    ("nodes", "size = [2]\nsockets = 2\ntiles = 3\npositions = 2"),
    ("mesh", "size = [4, 3]"),
    ("torus", "size = [3, 5]"),
    ("hyperx", "size = [3, 2]\nconcentration = 2"),
    ("flattened-butterfly", "size = [4, 2]"),
    ("fat-tree", "arity = 3\nlevels = 2"),
    ("dragonfly", "global_links = 1"),
    ("tree", "branching = [3, 2]\nroots = 1"),
    ("file", "file = \"traces/k5.topology.toml\""),
];

const TYPES: [&str; 11] = ["i32", "u32", "i64", "u64", "f16", "bf16", "tf32", "f32", "f64", "fp8_e4m3", "fp8_e5m2"];
const KINDS: [&str; 6] = ["allreduce", "reduce", "broadcast", "barrier", "scan", "inter-group-barrier"];

/// Why an engine has no such kind of job.
const REFUSED: [(&str, &str, &str); 11] = [
    ("armed", "reduce", "armed engines have no reduce"),
    ("armed", "broadcast", "armed engines have no broadcast"),
    ("armed", "scan", "armed engines have no scan"),
    ("armed", "inter-group-barrier", "armed engines have no inter-group-barrier"),
    ("pbv", "reduce", "`job[0].kind` cannot be \"reduce\""),
    ("pbv", "scan", "`job[0].kind` cannot be \"scan\""),
    ("piuma", "inter-group-barrier", "`job[0].kind` cannot be \"inter-group-barrier\""),
    ("software", "reduce", "software has no reduce"),
    ("software", "barrier", "software has no barrier"),
    ("software", "scan", "software has no scan"),
    ("software", "inter-group-barrier", "software has no inter-group-barrier"),
];

/// What a participant of a job contributes: the bits of an element, which stand in the scenario.
type Rows = Vec<Vec<u64>>;

#[derive(Clone, Debug)]
struct Job {
    engine: &'static str,
    kind: &'static str,
    op: String,
    dtype: &'static str,
    ends: Vec<u64>,
    rows: Rows,
}

impl Job {
    fn text(&self, network: (&str, &str), more: &str) -> String {
        let Job { engine, kind, op, dtype, ends, rows } = self;
        let mut text = format!(
            "[topology]\nkind = \"{}\"\n{}\n[switch]\npoint_to_point_vcs = 8\n{more}[[job]]\nname = \"it\"\nengine = \"{engine}\"\n\
             kind = \"{kind}\"\nparticipants = {ends:?}\narmed.opening_barrier = false\n",
            network.0, network.1,
        );
        if *kind == "scan" {
            text.push_str("piuma.inclusive = true\n");
        }
        if *kind == "inter-group-barrier" {
            let (one, other) = ends.split_at(ends.len() / 2);
            text = text.replace(&format!("participants = {ends:?}\n"), "");
            let _ = writeln!(text, "pbv.groups = [{one:?}, {other:?}]");
        }
        if kind.ends_with("barrier") {
            return text;
        }
        if *kind != "broadcast" {
            let _ = writeln!(text, "op = \"{op}\"");
        }
        let hex = |row: &Vec<u64>| row.iter().map(|bits| format!("\"{bits:#x}\"")).collect::<Vec<_>>().join(", ");
        let rows: Vec<String> = rows.iter().map(|row| format!("[{}]", hex(row))).collect();
        let _ = writeln!(text, "dtype = \"{dtype}\"\nelements = {}", self.rows[0].len());
        let _ = writeln!(text, "data = {{ values = [{}] }}", rows.join(", "));
        text
    }

    /// Of these end points, with words of the type that overflow nothing.
    fn drawn(
        engine: &'static str,
        kind: &'static str,
        (op, dtype): (&str, &'static str),
        all: u64,
        draw: &mut Draw,
    ) -> Job {
        let mut left: Vec<u64> = (0..all).collect();
        let mut ends: Vec<u64> = (0..all.min(5)).map(|_| left.remove(draw.below(left.len() as u64) as usize)).collect();
        if kind == "scan" {
            ends.sort_unstable();
        }
        let senders = if kind == "broadcast" { 1 } else { ends.len() };
        let elements = 1 + draw.below(9);
        let rows = (0..senders).map(|_| (0..elements).map(|_| word(dtype, draw)).collect()).collect();
        Job { engine, kind, op: op.to_owned(), dtype, ends, rows }
    }
}

fn load(text: &str) -> Result<Loaded, String> {
    let base = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    load_text("it.toml", text, &base, "it", &[]).map_err(|problems| problems.to_string())
}

fn ends(network: (&str, &str)) -> u64 {
    let text = format!("family = \"fabric\"\n[topology]\nkind = \"{}\"\n{}\n[[job]]\n", network.0, network.1);
    load(&text).unwrap().scenario.topology.end_points().into()
}

// ---- words and what engines do to two of them ------------------------------------------------------------------------------

/// Bits of exponent and fraction of the types that fit into doubles with room to round once more, and how far to the left they stand.
fn small(dtype: &str) -> Option<(u32, u32, u32)> {
    Some(match dtype {
        "f16" => (5, 10, 0),
        "bf16" => (8, 7, 0),
        "tf32" => (8, 10, 13),
        "fp8_e4m3" => (4, 3, 0),
        "fp8_e5m2" => (5, 2, 0),
        _ => return None,
    })
}

fn bits(dtype: &str) -> u32 {
    match dtype {
        "i64" | "u64" | "f64" => 64,
        "f16" | "bf16" => 16,
        "fp8_e4m3" | "fp8_e5m2" => 8,
        _ => 32,
    }
}

fn is_float(dtype: &str) -> bool {
    !dtype.starts_with(['i', 'u'])
}

/// A word whose size is from a half to two, so that five of them stay within every type; of integers any.
fn word(dtype: &str, draw: &mut Draw) -> u64 {
    let sign = draw.below(2);
    let of = |exponent: u32, fraction: u32, draw: &mut Draw| {
        let bias = (1u64 << (exponent - 1)) - 1;
        (sign << exponent | (bias - draw.below(2))) << fraction | draw.word() & ((1 << fraction) - 1)
    };
    match (small(dtype), dtype) {
        (Some((exponent, fraction, left)), _) => of(exponent, fraction, draw) << left,
        (None, "f32") => of(8, 23, draw),
        (None, "f64") => of(11, 52, draw),
        _ => draw.word() >> (64 - bits(dtype)),
    }
}

fn value(dtype: &str, word: u64) -> f64 {
    let Some((exponent, fraction, left)) = small(dtype) else {
        return if dtype == "f32" { f64::from(f32::from_bits(word as u32)) } else { f64::from_bits(word) };
    };
    let word = word >> left;
    let bias = (1i32 << (exponent - 1)) - 1;
    let raised = (word >> fraction & ((1 << exponent) - 1)) as i32;
    let digits = (word & ((1 << fraction) - 1)) as f64;
    let one = f64::from(1u32 << fraction);
    let size =
        if raised == 0 { digits / one * 2f64.powi(1 - bias) } else { (1.0 + digits / one) * 2f64.powi(raised - bias) };
    if word >> (exponent + fraction) & 1 == 1 { -size } else { size }
}

/// The nearest word of a small type, the even one of two.
fn nearest(dtype: &str, value: f64) -> u64 {
    let (exponent, fraction, left) = small(dtype).expect("a small type");
    let bias = (1i32 << (exponent - 1)) - 1;
    let sign = u64::from(value.is_sign_negative());
    let size = value.abs();
    let (mut raised, mut digits) = (0, 0);
    if size > 0.0 {
        let mut power = ((size.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        let mut steps = (size / 2f64.powi(power - fraction as i32)).round_ties_even() as u64;
        if steps == 2 << fraction {
            (steps, power) = (1 << fraction, power + 1);
        }
        if steps >> fraction != 0 {
            raised = (power + bias) as u64;
        }
        digits = steps & ((1 << fraction) - 1);
    }
    assert!(raised < (1 << exponent) - 1, "{value} is too large for {dtype}: no data of this test are");
    ((sign << exponent | raised) << fraction | digits) << left
}

fn apply(op: &str, dtype: &str, a: u64, b: u64) -> u64 {
    let mask = u64::MAX >> (64 - bits(dtype));
    if is_float(dtype) {
        let (x, y) = (value(dtype, a), value(dtype, b));
        let rounded = |exact: f64, single: f32| match dtype {
            "f64" => exact.to_bits(),
            "f32" => u64::from(single.to_bits()),
            _ => nearest(dtype, exact),
        };
        return match op {
            "sum" | "mean" => rounded(x + y, x as f32 + y as f32),
            "prod" => rounded(x * y, x as f32 * y as f32),
            "min" | "minnum" => {
                if x < y {
                    a
                } else {
                    b
                }
            }
            "max" | "maxnum" => {
                if x > y {
                    a
                } else {
                    b
                }
            }
            other => panic!("{other} of {dtype}"),
        };
    }
    let signed = |word: u64| ((word << (64 - bits(dtype))) as i64) >> (64 - bits(dtype));
    let less = if dtype.starts_with('i') { signed(a) < signed(b) } else { a < b };
    let result = match op {
        "sum" => a.wrapping_add(b),
        "prod" => a.wrapping_mul(b),
        "min" => {
            if less {
                a
            } else {
                b
            }
        }
        "max" => {
            if less {
                b
            } else {
                a
            }
        }
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "nand" => !(a & b),
        "nor" => !(a | b),
        "xnor" => !(a ^ b),
        other => panic!("{other} of {dtype}"),
    };
    result & mask
}

/// What some order of pairwise operations makes of these words.
fn reachable(op: &str, dtype: &str, words: &[u64]) -> BTreeSet<u64> {
    let mut of: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); 1 << words.len()];
    for set in 1usize..1 << words.len() {
        if set.is_power_of_two() {
            of[set].insert(words[set.trailing_zeros() as usize]);
            continue;
        }
        let mut found = BTreeSet::new();
        let mut part = (set - 1) & set;
        while part > 0 {
            // Each pair of halves once: operations do not care which operand comes first.
            if part > set ^ part {
                for &a in &of[part] {
                    found.extend(of[set ^ part].iter().map(|&b| apply(op, dtype, a, b)));
                }
            }
            part = (part - 1) & set;
        }
        of[set] = found;
    }
    let all = of.pop().expect("somebody contributes");
    if op == "mean" {
        let count = words.len() as f64;
        let over = |word: u64| match dtype {
            "f64" => (value(dtype, word) / count).to_bits(),
            "f32" => u64::from((value(dtype, word) as f32 / count as f32).to_bits()),
            _ => nearest(dtype, value(dtype, word) / count),
        };
        return all.into_iter().map(over).collect();
    }
    all
}

/// Whether what the participants hold is what their words make; says what is wrong.
fn right(job: &Job, result: &RunResult) -> Result<(), String> {
    let data = result.data.iter().find(|of| of.name == "it").ok_or("there is no result")?;
    let mut rows: Vec<Vec<u64>> = data.rows.iter().map(<[u64]>::to_vec).collect();
    let holders = match (job.engine, job.kind) {
        // Engines that work in frames have a row a round.
        ("armed" | "pbv", _) => {
            rows = vec![rows.concat()];
            1
        }
        (_, "reduce") => 1,
        // The source has its vector.
        ("piuma", "broadcast") => job.ends.len() - 1,
        _ => job.ends.len(),
    };
    if rows.len() != holders || rows.iter().any(|row| row.len() < job.rows[0].len()) {
        return Err(format!("{} rows for {holders} holders", rows.len()));
    }
    for (rank, row) in rows.iter().enumerate() {
        for (element, got) in row.iter().enumerate().take(job.rows[0].len()) {
            let words: Vec<u64> = job.rows.iter().map(|row| row[element]).collect();
            let may = match job.kind {
                "broadcast" => BTreeSet::from([words[0]]),
                "scan" => reachable(&job.op, job.dtype, &words[..=rank]),
                _ => reachable(&job.op, job.dtype, &words),
            };
            if !may.contains(got) {
                return Err(format!("rank {rank} has {got:#x} as element {element}, which is none of {may:x?}"));
            }
        }
        if job.kind != "scan" && row[..job.rows[0].len()] != rows[0][..job.rows[0].len()] {
            return Err(format!("rank {rank} has another result than the first one"));
        }
    }
    Ok(())
}

/// The same of operations whose results are several words an element, or do not depend on any order: from the exact sum, and from
/// who holds the extremes.
fn right_wide(job: &Job, result: &RunResult) -> Result<(), String> {
    let data = result.data.iter().find(|of| of.name == "it").ok_or("there is no result")?;
    let words: Vec<u64> = data.rows.iter().flat_map(<[u64]>::to_vec).collect();
    // Words of this test are multiples of 2^-53 below two.
    let exact = |element: usize| -> i128 {
        let units = |row: &Vec<u64>| (f64::from_bits(row[element]) * 2f64.powi(53)) as i128;
        job.rows.iter().map(units).sum()
    };
    let elements = 0..job.rows[0].len();
    match job.op.as_str() {
        "sum-deterministic" => {
            let sums: Vec<u64> = elements.map(|element| (exact(element) as f64 * 2f64.powi(-53)).to_bits()).collect();
            let first = words.len().checked_sub(sums.len().next_multiple_of(4)).ok_or("there are too few words")?;
            let found = &words[first..first + sums.len()];
            if found == sums { Ok(()) } else { Err(format!("{found:x?} instead of the rounded sums {sums:x?}")) }
        }
        "repsum" => {
            for (element, limbs) in elements.clone().zip(words.chunks_exact(4)) {
                // Limb i counts 2^(40 (i - 3)).
                let sum: i128 =
                    limbs.iter().zip([0, 40, 80, 120]).map(|(&limb, left)| i128::from(limb as i64) << left).sum();
                if sum != exact(element) << (120 - 53) {
                    return Err(format!("element {element}: {limbs:x?} is not the sum {:x} / 2^53", exact(element)));
                }
            }
            if words.len() >= 4 * elements.len() { Ok(()) } else { Err(format!("only {} words", words.len())) }
        }
        _ => {
            for (element, found) in elements.clone().zip(words.chunks_exact(4)) {
                let of = |op: &str| {
                    let column = || job.rows.iter().map(|row| row[element]);
                    let extreme = column().reduce(|a, b| apply(op, job.dtype, a, b)).expect("somebody contributes");
                    [extreme, column().position(|word| word == extreme).expect("it is somebody's") as u64]
                };
                let [min, max] = [of("min"), of("max")];
                if found != [min, max].concat() {
                    return Err(format!("element {element}: {found:x?} instead of {min:x?} and {max:x?}"));
                }
            }
            if words.len() >= 4 * elements.len() { Ok(()) } else { Err(format!("only {} words", words.len())) }
        }
    }
}

/// Runs a job of a network, and holds its bits and what it leaves.
fn holds(network: (&str, &str), job: &Job) {
    let text = job.text(network, "");
    let loaded = match load(&text) {
        Ok(loaded) => loaded,
        // A tree that cannot keep the order of ranks says which ranks.
        Err(problems) if job.kind == "scan" && problems.contains("in the way") => return,
        Err(problems) => panic!("{problems}\n{text}"),
    };
    let result = run(&loaded, &RunOptions::default());
    let result = match result {
        Err(problem) if job.kind == "scan" && problem.to_string().contains("in the way") => return,
        other => other.unwrap_or_else(|problem| panic!("{problem}\n{text}")),
    };
    let document = &result.document;
    assert!(document.passed(), "{:?} {:#?}\n{text}", document.outcome, document.checks);
    for name in ["progress", "network empty", "links"] {
        assert!(document.checks.iter().any(|check| check.name == name), "{name} was not looked at\n{text}");
    }
    let told = &document.jobs[0];
    // Groups that wait for each other have a result each.
    let name = told.name.split('.').next().unwrap();
    assert_eq!((name, told.kind.as_str()), ("it", job.kind), "{text}");
    assert!(told.latency_cycles.is_some() && told.outcomes.all_correct(), "{text}");
    if !job.kind.ends_with("barrier") {
        let holds = if is_wide(&job.op) { right_wide } else { right };
        holds(job, &result).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    }
}

fn is_wide(op: &str) -> bool {
    ["minmaxloc", "minmaxnumloc", "repsum", "sum-deterministic"].contains(&op)
}

// ---- what is claimed -------------------------------------------------------------------------------------------------------

/// All operations that a job can name.
fn operations() -> Vec<String> {
    let own = Op::names().map(str::to_owned).filter(|name| name != "barrier");
    let armed = ["minnum", "maxnum", "minmaxloc", "minmaxnumloc", "repsum", "mean", "sum-deterministic"];
    own.chain(armed.map(str::to_owned)).collect()
}

/// Whether an engine takes a job, asked of a mesh of four; or why not.
fn takes(engine: &'static str, kind: &'static str, op: &str, dtype: &'static str) -> Result<(), String> {
    let job = Job { engine, kind, op: op.to_owned(), dtype, ends: vec![0, 1, 2, 3], rows: vec![vec![0]; 4] };
    let mut text = job.text(("mesh", "size = [2, 2]"), "");
    let cut = text.find("data = {").unwrap_or(text.len());
    text.truncate(cut);
    load(&text).map(|_| ())
}

/// The types that an engine reduces with an operation.
fn types(engine: &'static str, op: &str) -> Vec<&'static str> {
    TYPES.into_iter().filter(|dtype| takes(engine, "allreduce", op, dtype).is_ok()).collect()
}

fn cell(types: &[&str]) -> String {
    let floats: Vec<&str> = TYPES.into_iter().filter(|dtype| is_float(dtype)).collect();
    let integers: Vec<&str> = TYPES.into_iter().filter(|dtype| !is_float(dtype)).collect();
    match types {
        [] => "-".to_owned(),
        all if all == TYPES => "all types".to_owned(),
        all if all == integers => "integers".to_owned(),
        all if all == floats => "floating point".to_owned(),
        some => some.join(", "),
    }
}

/// The tables of the book's page.
fn page() -> String {
    let mut text = String::from("| kind | piuma | armed | pbv | software |\n|---|---|---|---|---|\n");
    for kind in KINDS {
        let word = |engine| if takes(engine, kind, "sum", "f64").is_ok() { "yes" } else { "no" };
        let row = ENGINES.map(word).join(" | ");
        let _ = writeln!(text, "| `{kind}` | {row} |");
    }
    text.push_str("\n| operation | piuma | armed | pbv | software |\n|---|---|---|---|---|\n");
    for op in operations() {
        let row = ENGINES.map(|engine| cell(&types(engine, &op))).join(" | ");
        let _ = writeln!(text, "| `{op}` | {row} |");
    }
    text
}

#[test]
fn the_book_lists_what_each_engine_does() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/guide/pages/compare.md");
    let book = std::fs::read_to_string(&path).unwrap();
    let table = page();
    assert!(book.contains(&table), "{} has other tables than\n{table}", path.display());
    for network in NETWORKS.map(|(kind, _)| format!("`{kind}`")) {
        assert!(book.contains(&network), "{network}");
    }
}

#[test]
fn what_an_engine_does_not_do_is_refused_with_its_reason() {
    for engine in ENGINES {
        for kind in KINDS {
            let reason = REFUSED.iter().find(|(of, no, _)| *of == engine && *no == kind);
            match (takes(engine, kind, "sum", "f64"), reason) {
                (Ok(()), None) => {}
                (Err(said), Some((.., why))) => assert!(said.contains(why) && said.contains("expected:"), "{said}"),
                (found, listed) => panic!("{engine} {kind}: {found:?}, listed: {listed:?}"),
            }
        }
        for op in operations() {
            for dtype in TYPES {
                let Err(said) = takes(engine, "allreduce", &op, dtype) else { continue };
                assert!(said.contains(op.as_str()) && said.contains(':'), "{engine} {op} {dtype}\n{said}");
            }
        }
    }
}

// ---- the matrix ------------------------------------------------------------------------------------------------------------

/// Runs what is claimed, or a part of it: a case in so many, on each network another one.
fn matrix(one_in: usize) -> usize {
    let mut cases = Vec::new();
    for engine in ENGINES {
        // Each of them has to be loaded to be known.
        let operations: Vec<(String, Vec<&str>)> =
            operations().into_iter().map(|op| (op.clone(), types(engine, &op))).collect();
        for kind in KINDS.into_iter().filter(|kind| takes(engine, kind, "sum", "f64").is_ok()) {
            if !["allreduce", "reduce", "scan"].contains(&kind) {
                let types = if kind == "broadcast" { &TYPES[..] } else { &["f64"] };
                cases.extend(types.iter().map(|&dtype| (engine, kind, "sum".to_owned(), dtype)));
                continue;
            }
            for (op, types) in &operations {
                // Scans of what does not associate have an order of their own.
                let serial = kind == "scan" && ["nand", "nor", "xnor"].contains(&op.as_str());
                cases.extend(types.iter().filter(|_| !serial).map(|&dtype| (engine, kind, op.clone(), dtype)));
            }
        }
    }
    let mut runs = 0;
    for (at, network) in NETWORKS.into_iter().enumerate() {
        let all = ends(network);
        for (number, (engine, kind, op, dtype)) in cases.iter().enumerate() {
            if (number + at).is_multiple_of(one_in) {
                let mut draw = Draw((number * NETWORKS.len() + at) as u64);
                holds(network, &Job::drawn(engine, kind, (op, dtype), all, &mut draw));
                runs += 1;
            }
        }
    }
    runs
}

#[test]
fn words_of_wide_results_are_looked_at() {
    for (op, dtype) in [("minmaxloc", "i64"), ("minmaxnumloc", "f64"), ("repsum", "f64"), ("sum-deterministic", "f64")]
    {
        let mut job = Job::drawn("armed", "allreduce", (op, dtype), 12, &mut Draw(7));
        let loaded = load(&job.text(NETWORKS[2], "")).unwrap();
        let result = run(&loaded, &RunOptions::default()).unwrap();
        assert_eq!(right_wide(&job, &result), Ok(()), "{op}");
        // Words in which somebody else contributes the extremes and the sum is another one are told from those that were sent.
        let last = job.rows[0].len() - 1;
        job.rows[2][last] = if dtype == "i64" { 1 << 63 } else { (-3.0f64).to_bits() };
        assert!(right_wide(&job, &result).is_err(), "{op}");
    }
}

#[test]
fn a_twentieth_of_the_matrix_is_right() {
    // Nineteen and ten have no common divisor: every network meets other cases.
    let runs = matrix(19);
    assert!(runs > 120, "{runs} runs");
}

#[test]
#[ignore = "minutes: a part of the soak"]
fn the_whole_matrix_is_right() {
    let runs = matrix(1);
    assert!(runs > 2500, "{runs} runs");
}

// ---- latency ---------------------------------------------------------------------------------------------------------------

fn explained(text: &str) -> Why {
    let loaded = load(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let ask = Some(WhyQuery { collective: None, packet: None, source: None });
    let result =
        run(&loaded, &RunOptions { why: ask, ..RunOptions::default() }).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(result.document.passed(), "{:#?}\n{text}", result.document.checks);
    let why =
        result.why.into_iter().next().unwrap_or_else(|| panic!("nothing is explained: {:?}\n{text}", result.notes));
    let sum: u64 = why.parts.iter().map(|part| part.to - part.from).sum();
    assert_eq!(sum, why.latency_cycles, "{text}");
    assert!(why.parts.windows(2).all(|pair| pair[0].to == pair[1].from), "{text}");
    why
}

/// Cycles in which what is explained waited for something else.
fn waiting(why: &Why) -> u64 {
    let kinds = [Kind::Queue, Kind::CreditWait, Kind::Behind, Kind::Arbitration, Kind::OperandSlot, Kind::EngineWait];
    why.parts.iter().filter(|part| kinds.contains(&part.kind)).map(|part| part.to - part.from).sum()
}

/// Links between switches from the nearest to the farthest of two participants, walked over the links of the plan.
fn farthest(text: &str, ends: &[u64]) -> (u64, u64) {
    let loaded = load(text).unwrap();
    let layout = layout(&loaded).unwrap();
    let switches = layout.switches();
    let mut near = vec![Vec::new(); switches];
    for link in &layout.plan.links {
        let (a, b) = (link.a.0 as usize, link.b.0 as usize);
        if a < switches && b < switches {
            near[a].push(b);
            near[b].push(a);
        }
    }
    let homes: Vec<usize> = ends.iter().map(|&end| layout.ends[end as usize].switch as usize).collect();
    let far = homes.iter().map(|&from| {
        let mut links = vec![u64::MAX; switches];
        links[from] = 0;
        let mut reached = std::collections::VecDeque::from([from]);
        while let Some(at) = reached.pop_front() {
            for &next in &near[at] {
                if links[next] == u64::MAX {
                    links[next] = links[at] + 1;
                    reached.push_back(next);
                }
            }
        }
        homes.iter().map(|&home| links[home]).max().unwrap()
    });
    let far: Vec<u64> = far.collect();
    (*far.iter().min().unwrap(), *far.iter().max().unwrap())
}

/// Every cycle that links take longer is there once for each link of the critical path, and no result is there before the farthest
/// participant's word can be. One case in three in `make test`.
#[test]
fn latency_grows_with_the_links_on_the_way() {
    const LINKS: [u64; 2] = [11, 75];
    let mut number = 0;
    for network in NETWORKS {
        let all = ends(network);
        for engine in ENGINES {
            for kind in ["allreduce", "broadcast", "barrier"] {
                if takes(engine, kind, "sum", "f64").is_err() {
                    continue;
                }
                number += 1;
                let runs = share::is_whole() || number % 3 == 0;
                if !runs {
                    continue;
                }
                let mut draw = Draw(all + kind.len() as u64);
                let mut job = Job::drawn(engine, kind, ("sum", "i64"), all, &mut draw);
                job.rows.iter_mut().for_each(|row| row.truncate(1));
                let with = |cycles: u64| {
                    let mut more = format!("[link]\nlatency_cycles = {cycles}\n");
                    if network.0 == "nodes" {
                        let _ = writeln!(more, "socket_latency_cycles = {cycles}\nnode_latency_cycles = {cycles}");
                    }
                    job.text(network, &more)
                };
                let [short, long] = LINKS.map(|cycles| explained(&with(cycles)));
                let on_links = |why: &Why| -> u64 {
                    why.parts.iter().filter(|part| part.kind == Kind::Link).map(|part| part.to - part.from).sum()
                };
                let grown = long.latency_cycles - short.latency_cycles;
                let links = on_links(&long) - on_links(&short);
                // What waits for others waits for their links.
                let waits = waiting(&long) + waiting(&short);
                assert!(
                    grown.abs_diff(links) <= waits,
                    "{engine} {kind} {network:?}: {grown} cycles more, {links} on links, {waits} of waiting"
                );
                let many = links / (LINKS[1] - LINKS[0]);
                let (near, far) = farthest(&with(LINKS[0]), &job.ends);
                let far = if kind == "broadcast" { near } else { far };
                assert!(
                    many >= far,
                    "{engine} {kind} {network:?}: {many} links on the way, the farthest are {far} apart"
                );
            }
        }
    }
}
