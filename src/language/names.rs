//! The names of operations, data types and rounding modes in scenarios.
//!
//! They are those of [`watershed_arith`], so the schema, error messages and the result document have a new type or
//! operation without a line here.

use std::fmt;

pub use watershed_arith::{Accumulate, DType, Op, Round};
pub use watershed_operands::{Layout, layout};

/// A type whose values have names in a scenario.
pub trait NamedValues: Copy + PartialEq + 'static {
    /// Every value with its name, in the order in which messages list them.
    const NAMES: &'static [(&'static str, Self)];

    /// The name of this value.
    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, value)| *value == self).map_or("?", |(name, _)| name)
    }

    /// The value of this name.
    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// All names.
    fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }
}

/// Values with the names that the arithmetic gives them.
macro_rules! names_of {
    ($values:expr) => {{
        let mut names = [("", $values[0]); $values.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = ($values[at].name(), $values[at]);
            at += 1;
        }
        names
    }};
}

impl NamedValues for Op {
    const NAMES: &'static [(&'static str, Self)] = &names_of!(Op::COMMON);
}

impl NamedValues for DType {
    const NAMES: &'static [(&'static str, Self)] = &names_of!(DType::ALL);
}

impl NamedValues for Round {
    const NAMES: &'static [(&'static str, Self)] = &names_of!(Round::ALL);
}

/// The names of all operations with operands, for the help of commands.
pub fn of_operations() -> String {
    let names: Vec<&str> = Op::ALL.iter().filter(|op| **op != Op::Barrier).map(|op| op.name()).collect();
    names.join(", ")
}

/// Whether an operation exists for a type, and if not, why.
///
/// # Errors
/// The reason, as the end of a sentence.
pub fn supports(op: Op, dtype: DType) -> Result<(), &'static str> {
    let float = matches!(layout(dtype), Layout::Float { .. });
    if float && op.is_bitwise() {
        return Err("is bitwise and takes integers only");
    }
    Ok(())
}

/// The name that a wrong one most likely means: a synonym, or a similar spelling. Better none than one that misleads.
pub fn nearest<'a, S: AsRef<str> + ?Sized + 'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a S>,
) -> Option<String> {
    let wanted = folded(given);
    if wanted.is_empty() {
        return None;
    }
    let candidates: Vec<&str> = candidates.into_iter().map(AsRef::as_ref).collect();
    let called =
        |name: &str| candidates.iter().find(|candidate| folded(candidate) == name).map(|name| (*name).to_owned());
    if let Some(name) = called(&wanted) {
        return Some(name);
    }
    // Words in another order: uniform-mesh for mesh-uniform.
    let words = |name: &str| {
        let name = name.trim().to_lowercase();
        let mut words: Vec<String> = name.split(['_', '-', ' ']).map(str::to_owned).collect();
        words.sort_unstable();
        words
    };
    let given_words = words(given);
    if given_words.len() > 1
        && let Some(name) = candidates.iter().find(|candidate| words(candidate) == given_words)
    {
        return Some((*name).to_owned());
    }
    let mut means = MEANINGS.iter().filter(|(_, words)| words.contains(&wanted.as_str()));
    if let Some(name) = means.find_map(|(name, _)| called(&folded(name))) {
        return Some(name);
    }
    let slip = candidates
        .iter()
        .filter_map(|candidate| Some((misspelt(&wanted, &folded(candidate))?, *candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned());
    // One slip in a long word that people try.
    slip.or_else(|| {
        let is_slip = |word: &&str| word.len() >= 7 && misspelt(&wanted, word) == Some(1) && !word.starts_with(&wanted);
        let mut means = MEANINGS.iter().filter(|(_, words)| words.iter().any(is_slip));
        means.find_map(|(name, _)| called(&folded(name)))
    })
}

/// A word without what people write in different ways.
fn folded(word: &str) -> String {
    word.trim().to_lowercase().replace(['_', '-', ' '], "")
}

/// How far a word is from another one that it may be a slip of; `None` if it is too far. A letter more or less in a short
/// word makes another word, and slips seldom strike a first letter.
fn misspelt(wanted: &str, name: &str) -> Option<usize> {
    let (long, short) = (wanted.len().max(name.len()), wanted.len().min(name.len()));
    // A cut-off or lengthened word is a likelier slip than its edit distance says.
    if wanted.len() >= 3 && name.starts_with(wanted) || short >= 3 && wanted.starts_with(name) && long <= 2 * short {
        return Some(1);
    }
    let distance = strsim::damerau_levenshtein(wanted, name);
    let sorted = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let swapped = distance == 1 && sorted(wanted) == sorted(name);
    let begins = wanted.chars().next() == name.chars().next();
    let close = match long {
        0..=3 => swapped,
        4..=6 => distance == 1 && begins || swapped,
        _ => distance == 1 || distance <= long / 3 && begins,
    };
    close.then_some(distance)
}

/// Words that people try, by the name that means the same here. A word may stand at several names: of those that are legal
/// at its place the first is meant.
const MEANINGS: &[(&str, &[&str])] = &[
    // Keys of a job.
    ("engine", &["family"]),
    ("op", &["operation", "operator", "function"]),
    ("dtype", &["type", "datatype", "elementtype", "format"]),
    ("elements", &["length", "count", "size", "words", "vectorlength"]),
    // Operations.
    ("sum", &["add", "plus", "total", "+", "addition", "summation", "accumulate"]),
    ("flt-sum-near", &["add", "plus", "sum", "total", "+", "addition", "fadd"]),
    ("prod", &["mul", "mult", "multiply", "times", "*", "product", "multiplication"]),
    ("mean", &["avg", "average"]),
    ("min", &["minimum", "least", "smallest", "lowest"]),
    ("max", &["maximum", "most", "largest", "greatest", "highest"]),
    ("and", &["&", "band", "bitand", "land", "bitwiseand", "logicaland"]),
    ("or", &["|", "bor", "bitor", "lor", "bitwiseor", "logicalor"]),
    ("xor", &["^", "bxor", "bitxor", "lxor", "eor", "exclusiveor"]),
    // Kinds of collectives.
    ("allreduce", &["reduceall", "reduction", "sum"]),
    ("reduce", &["gather"]),
    ("broadcast", &["bcast", "multicast", "mcast"]),
    ("multicast", &["bcast", "broadcast", "mcast"]),
    ("barrier", &["sync", "synchronize", "synchronise", "fence"]),
    ("scan", &["prefix", "prefixsum", "prefixscan", "exscan"]),
    // Types.
    ("f64", &["double", "float64", "fp64", "real64", "float"]),
    ("f32", &["single", "float32", "fp32", "real32"]),
    ("f16", &["half", "float16", "fp16"]),
    ("bf16", &["bfloat16", "bfloat", "brainfloat"]),
    ("i64", &["int64", "long", "s64"]),
    ("i32", &["int32", "int", "integer", "s32"]),
    ("u64", &["uint64", "ulong"]),
    ("u32", &["uint32", "uint", "unsigned"]),
    ("fp8_e4m3", &["e4m3", "fp8", "float8"]),
    ("fp8_e5m2", &["e5m2"]),
    // Rounding.
    ("nearest-even", &["rne", "nearest", "even", "roundtonearest"]),
    ("toward-zero", &["rtz", "zero", "truncate", "chop"]),
    ("up", &["rup", "rtp", "ceil", "ceiling", "towardpositive"]),
    ("down", &["rdn", "rtn", "floor", "towardnegative"]),
    // Topologies.
    ("die", &["tile", "tiles", "chip", "socket"]),
    ("nodes", &["node", "system", "cluster", "sockets"]),
    ("mesh", &["grid", "array"]),
    ("torus", &["ring", "cube"]),
    ("hyperx", &["hypercube", "alltoall", "crossbar"]),
    ("flattened-butterfly", &["flatfly", "fbfly", "butterfly"]),
    ("fat-tree", &["clos", "leafspine", "karyntree"]),
    ("file", &["graph", "custom", "anynet"]),
    // Routers and traffic.
    ("round-robin", &["rr", "fair"]),
    ("matrix", &["lru", "leastrecentlyserved"]),
    ("fixed", &["priority", "static"]),
    ("dimension-order", &["dor", "xy", "deterministic"]),
    ("minimal-random", &["minimal", "shortest", "oblivious"]),
    ("adaptive", &["ugal", "minadaptive"]),
    ("uniform", &["random", "uniformrandom"]),
    ("bit-complement", &["bitcomp"]),
    ("bit-reverse", &["bitrev"]),
    ("neighbour", &["neighbor", "nearestneighbor", "nearestneighbour"]),
    ("bernoulli", &["poisson", "random"]),
    ("periodic", &["constant", "cbr", "deterministic"]),
    ("bursty", &["onoff", "mmpp"]),
    ("closed-loop", &["requestreply", "window"]),
    ("unlimited", &["infinite", "infinity", "inf", "none", "ideal"]),
    ("auto", &["automatic", "default"]),
    ("fabric", &["noc", "plain", "router", "network"]),
];

/// Joins words for a sentence: `a`, `a or b`, `a, b or c`.
pub fn one_of(words: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}
