//! MLCommons Chakra execution traces: a file a rank, `PREFIX.RANK.et`, of protobuf messages with their lengths before them: metadata,
//! then nodes. Field numbers and names are those of the schema (`et_def.proto`, version 0.0.4).
//!
//! | attribute | of | meaning |
//! |---|---|---|
//! | `is_cpu_op` | all | the processor does it, not the device |
//! | `num_ops`, `tensor_size` | compute | operations and the bytes they touch, for a roofline |
//! | `tensor_size` | load, store | bytes |
//! | `comm_type`, `comm_size` | collective | what, and bytes: of an all-gather and a gather what a rank contributes, of all others the whole vector, as ASTRA-sim counts |
//! | `pg_name` | collective | the group, by its name; without one, all ranks |
//! | `root_rank` | collective | the root's number within the group *\[chosen\]*; without one, the first |
//! | `comm_src`, `comm_dst`, `comm_tag`, `comm_size` | send, receive | the two ends, the tag, bytes |
//!
//! Integers may have any of the schema's integer types: writers differ. Groups are those given by the caller, and those of
//! PyTorch's metadata (a metadata node whose `inputs.values` lists `pg_name` and `ranks`).
//!
//! **Versions.** Two are in use, and differ in what nodes say; others are refused.
//!
//! | | written by generators | converted from PyTorch's traces |
//! |---|---|---|
//! | metadata | `version`: `0.0.4` | attribute `schema`: `1.0.1`, `1.0.2-chakra.0.0.4`, `1.1.1-chakra.0.0.4` and so on |
//! | a node waits for | `data_deps`, `ctrl_deps` | `data_deps`: `ctrl_deps` are the callers, which the converter may have left out (Chakra's feeder heeds `data_deps` alone) |
//! | communication without `comm_type` or peer | an error | with `is_cpu_op`: the processor issues it, which takes the node's time *\[chosen\]* |
//! | `involved_dim` | | must be true for all dimensions: groups are by `pg_name` |

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::{Collective, CollectiveOp, Compute, Dependency, Error, Format, Group, HASH, Kind, Node, Rank, Trace, hash};
use wire::{Fields, Value, WireError};

mod wire;
mod write;

pub use write::write;

/// The version of the schema.
pub const VERSION: &str = "0.0.4";

/// A message is at most so long: more is a sign of a file that is none of Chakra's.
const LONGEST: u64 = 1 << 28;

/// Streams.
pub(crate) const DEVICE: u16 = 0;
const PROCESSOR: u16 = 1;
pub(crate) const NETWORK: u16 = 2;

/// The prefix of Chakra's files that a path means; `None` if it means another file.
pub fn prefix(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    if let Some(stem) = name.strip_suffix(".et") {
        let (prefix, rank) = stem.rsplit_once('.')?;
        return rank.parse::<u32>().ok().map(|_| path.with_file_name(prefix));
    }
    (!path.is_file() && !numbers(path).is_empty()).then(|| path.to_owned())
}

/// The file of a rank.
pub fn file(prefix: &Path, rank: u32) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(format!(".{rank}.et"));
    name.into()
}

/// Where files are: on the disk, or in a program.
pub trait ChakraFiles {
    /// The numbers of ranks that have a file, ascending.
    fn numbers(&self, prefix: &Path) -> Vec<u32>;

    /// Opens a file.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>>;
}

/// Files on the disk.
#[derive(Clone, Copy, Debug)]
pub struct DiskFiles;

impl ChakraFiles for DiskFiles {
    fn numbers(&self, prefix: &Path) -> Vec<u32> {
        numbers(prefix)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(File::open(path)?))
    }
}

/// The numbers of ranks that have a file.
fn numbers(prefix: &Path) -> Vec<u32> {
    let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(stem) = prefix.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let rank = |name: &str| name.strip_prefix(stem)?.strip_prefix('.')?.strip_suffix(".et")?.parse().ok();
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = files.filter_map(|file| rank(file.file_name().to_str()?)).collect();
    numbers.sort_unstable();
    numbers
}

/// Reads the files of all ranks.
///
/// # Errors
/// What is wrong with one of them, or that one is missing.
pub fn read(files: &dyn ChakraFiles, prefix: &Path, given: &[Group]) -> Result<Trace, Error> {
    let numbers = files.numbers(prefix);
    for (expected, &number) in (0..).zip(&numbers) {
        if number != expected {
            let error = Error::new(&file(prefix, expected), "the file of this rank is missing").rank(expected);
            return Err(error.expected(format!("a file for each rank from 0 to {}", numbers[numbers.len() - 1])));
        }
    }
    let count = numbers.len() as u32;
    let mut groups = Groups::new(count);
    let mut state = HASH;
    let mut ranks = Vec::new();
    for rank in 0..count {
        let path = file(prefix, rank);
        groups.known.clear();
        for group in given {
            if let Some(&strange) = group.ranks.iter().find(|&&member| member >= count) {
                let what = format!("group \"{}\" has rank {strange}, and the trace has {count}", group.name);
                return Err(Error::new(&path, what).expected(format!("ranks from 0 to {}", count - 1)));
            }
            groups.add(group.clone());
        }
        let nodes = Reader::open(files, (&path, rank), count, &mut groups, &mut state)?.nodes()?;
        ranks.push(Rank { file: path, nodes });
    }
    Ok(Trace { format: Format::Chakra, ranks, groups: groups.list, hash: state })
}

/// Groups, and what the rank that is read calls them.
struct Groups {
    list: Vec<Group>,
    known: BTreeMap<String, u32>,
}

impl Groups {
    fn new(ranks: u32) -> Groups {
        Groups { list: vec![Group { name: String::new(), ranks: (0..ranks).collect() }], known: BTreeMap::new() }
    }

    /// Lets the rank know a group; one of all ranks in their order is the first.
    fn add(&mut self, group: Group) {
        let same = |known: &Group| known.ranks == group.ranks && (known.name.is_empty() || known.name == group.name);
        let at = self.list.iter().position(same).unwrap_or(self.list.len());
        self.known.insert(group.name.clone(), at as u32);
        if at == self.list.len() {
            self.list.push(group);
        }
    }
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Attribute<'a> {
    Number(i64),
    Text(&'a str),
    /// Truth values: whether all of them are true.
    Truths(bool),
    /// Other lists, reals and bytes: nothing that is asked for.
    Other,
}

/// Reads an attribute: its name and its value.
fn attribute(bytes: &[u8]) -> Result<(&str, Attribute<'_>), WireError> {
    let mut fields = Fields::new(bytes);
    let (mut name, mut value) = ("", Attribute::Other);
    while let Some((field, of)) = fields.next()? {
        match (field, of) {
            (1, Value::Bytes(text)) => name = str::from_utf8(text).unwrap_or_default(),
            // int32, int64, uint32, uint64 and bool; fixed64 and sfixed64.
            (7 | 9 | 11 | 13 | 27, Value::Varint(number)) | (21 | 25, Value::Fixed64(number)) => {
                value = Attribute::Number(number as i64);
            }
            // sint32 and sint64: zigzag.
            (15 | 17, Value::Varint(number)) => {
                value = Attribute::Number((number >> 1) as i64 ^ -((number & 1) as i64));
            }
            (19, Value::Fixed32(number)) => value = Attribute::Number(i64::from(number)),
            (23, Value::Fixed32(number)) => value = Attribute::Number(i64::from(number as i32)),
            (28, Value::Bytes(list)) => value = Attribute::Truths(all_true(list)?),
            (29, Value::Bytes(text)) => value = str::from_utf8(text).map_or(Attribute::Other, Attribute::Text),
            _ => {}
        }
    }
    Ok((name, value))
}

/// Whether a list of truth values, packed or not, has no false one.
fn all_true(list: &[u8]) -> Result<bool, WireError> {
    let mut fields = Fields::new(list);
    let mut all = true;
    while let Some(field) = fields.next()? {
        match field {
            (1, Value::Varint(of)) => all &= of != 0,
            (1, Value::Bytes(packed)) => all &= packed.iter().all(|of| *of != 0),
            _ => {}
        }
    }
    Ok(all)
}

/// A file that is being read, a message at a time.
struct Reader<'a> {
    path: &'a Path,
    rank: u32,
    ranks: u32,
    groups: &'a mut Groups,
    state: &'a mut u64,
    input: BufReader<Box<dyn Read>>,
    at: u64,
    message: Vec<u8>,
    /// It was converted from a trace of PyTorch.
    converted: bool,
}

/// A node as it is written.
#[derive(Default)]
struct RawNode<'a> {
    id: u64,
    name: &'a str,
    kind: u64,
    /// Those of data, then those of control.
    waits: Vec<u64>,
    of_data: usize,
    micros: u64,
    inputs: &'a str,
    attributes: HashMap<&'a str, Attribute<'a>>,
}

impl<'a> Reader<'a> {
    fn open(
        files: &dyn ChakraFiles,
        (path, rank): (&'a Path, u32),
        ranks: u32,
        groups: &'a mut Groups,
        state: &'a mut u64,
    ) -> Result<Reader<'a>, Error> {
        let input = files.open(path).map_err(|error| Error::new(path, error.to_string()).rank(rank))?;
        Ok(Reader {
            path,
            rank,
            ranks,
            groups,
            state,
            input: BufReader::new(input),
            at: 0,
            message: Vec::new(),
            converted: false,
        })
    }

    fn error(&self, at: u64, what: impl Into<String>) -> Error {
        Error::new(self.path, what).rank(self.rank).byte(at)
    }

    /// Reads the next message; where it begins. `None` at the end of the file.
    fn message(&mut self) -> Result<Option<u64>, Error> {
        let start = self.at;
        let mut length = Vec::new();
        loop {
            let mut byte = [0];
            match self.input.read_exact(&mut byte) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof && length.is_empty() => return Ok(None),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Err(self.error(start, "the file is cut off within the length of a message"));
                }
                Err(error) => return Err(self.error(start, error.to_string())),
            }
            length.push(byte[0]);
            if byte[0] & 0x80 == 0 || length.len() == 10 {
                break;
            }
        }
        self.at += length.len() as u64;
        *self.state = hash(*self.state, &length);
        let (bytes, _) = wire::varint(&length).map_err(|why| self.error(start, why))?;
        if bytes > LONGEST {
            let error = self.error(start, format!("a message of {bytes} bytes"));
            return Err(error.expected("a Chakra trace: messages with their lengths before them, not compressed"));
        }
        self.message.clear();
        let read = (&mut self.input).take(bytes).read_to_end(&mut self.message);
        read.map_err(|error| self.error(start, error.to_string()))?;
        if (self.message.len() as u64) < bytes {
            let there = self.message.len();
            let mut error = self.error(start, format!("the file is cut off: {there} of {bytes} bytes of a message"));
            if let Some(id) = self.partial_id() {
                error = error.node(format!("node {id}"));
            }
            return Err(error);
        }
        self.at += bytes;
        *self.state = hash(*self.state, &self.message);
        Ok(Some(start))
    }

    /// The id of a node that is cut off, if that much of it is there.
    fn partial_id(&self) -> Option<u64> {
        match Fields::new(&self.message).next() {
            Ok(Some((1, Value::Varint(id)))) => Some(id),
            _ => None,
        }
    }

    fn metadata(&mut self) -> Result<(), Error> {
        let missing = || "a Chakra trace begins with its metadata";
        let first = self.message().map_err(|error| match error.wanted() {
            None => error.expected(missing()),
            Some(_) => error,
        });
        let Some(start) = first? else {
            return Err(self.error(0, "the file is empty").expected(missing()));
        };
        let mut fields = Fields::new(&self.message);
        let (mut version, mut schema) = (None, None);
        loop {
            match fields.next().and_then(|field| match field {
                Some((2, Value::Bytes(bytes))) => {
                    if let ("schema", Attribute::Text(text)) = attribute(bytes)? {
                        schema = Some(text.to_owned());
                    }
                    Ok(true)
                }
                Some((1, Value::Bytes(text))) => {
                    version = Some(String::from_utf8_lossy(text).into_owned());
                    Ok(true)
                }
                Some((1, _)) => Err(WireError { at: 0, why: "it begins with a node" }),
                field => Ok(field.is_some()),
            }) {
                Ok(true) => {}
                Ok(false) => break,
                Err(broken) => return Err(self.error(start, broken.why).expected(missing())),
            }
        }
        let version = version.filter(|version| !version.is_empty());
        self.converted = version.is_none();
        let known = |version: &str| if self.converted { is_known_schema(version) } else { version == VERSION };
        match version.or(schema) {
            Some(version) if known(&version) => Ok(()),
            Some(version) => Err(self
                .error(start, format!("it is of version \"{version}\" of Chakra's schema"))
                .expected(format!("version {VERSION}, or schema 1.0.1 to 1.1.x, with or without \"-chakra.{VERSION}\""))
                .help("Chakra's converter writes this version: convert the original trace again")),
            None => Err(self.error(start, "it names no version of Chakra's schema").expected(missing())),
        }
    }

    fn nodes(mut self) -> Result<Vec<Node>, Error> {
        self.metadata()?;
        let mut nodes = Vec::new();
        let mut waits: Vec<Vec<u64>> = Vec::new();
        while let Some(start) = self.message()? {
            let message = std::mem::take(&mut self.message);
            let mut raw = raw(&message).map_err(|broken| self.error(start + broken.at as u64, broken.why))?;
            if self.converted {
                raw.waits.truncate(raw.of_data);
            }
            let name = if raw.name.is_empty() { String::new() } else { format!(" \"{}\"", raw.name) };
            let rank = self.rank;
            let of_node = |error: Error| error.rank(rank).node(format!("node {}{name}", raw.id)).byte(start);
            let kind = self.kind(&raw).map_err(of_node)?;
            let stream = match kind {
                Kind::Nothing | Kind::Receive { .. } => None,
                _ if number(&raw, "is_cpu_op").is_some_and(|cpu| cpu != 0) => Some(PROCESSOR),
                Kind::Compute(_) => Some(DEVICE),
                _ => Some(NETWORK),
            };
            waits.push(raw.waits);
            nodes.push(Node { id: raw.id, name: raw.name.into(), kind, stream, waits: Box::default() });
            self.message = message;
        }
        self.link(nodes, waits)
    }

    /// Puts nodes in the order of their ids, and says what each waits for.
    fn link(&self, nodes: Vec<Node>, waits: Vec<Vec<u64>>) -> Result<Vec<Node>, Error> {
        let mut pairs: Vec<(Node, Vec<u64>)> = nodes.into_iter().zip(waits).collect();
        pairs.sort_by_key(|(node, _)| node.id);
        let title = |node: &Node| node.title(Format::Chakra);
        if let Some(pair) = pairs.windows(2).find(|pair| pair[0].0.id == pair[1].0.id) {
            return Err(Error::new(self.path, "another node has this id").rank(self.rank).node(title(&pair[1].0)));
        }
        let places: HashMap<u64, u32> = pairs.iter().zip(0..).map(|((node, _), at)| (node.id, at)).collect();
        let mut linked = Vec::with_capacity(pairs.len());
        for (mut node, waits) in pairs {
            let mut list = Vec::with_capacity(waits.len());
            for id in waits {
                let Some(&at) = places.get(&id) else {
                    let what = format!("it waits for node {id}, which is not in this file");
                    return Err(Error::new(self.path, what).rank(self.rank).node(title(&node)));
                };
                list.push(Dependency { node: at, start: false });
            }
            list.sort_unstable();
            list.dedup();
            node.waits = list.into();
            linked.push(node);
        }
        Ok(linked)
    }

    fn kind(&mut self, raw: &RawNode<'_>) -> Result<Kind, Error> {
        self.types(raw)?;
        let on_processor = number(raw, "is_cpu_op").is_some_and(|cpu| cpu != 0);
        let compute = |operations: u64, bytes: u64| {
            Kind::Compute(Compute { ps: raw.micros.saturating_mul(1_000_000), operations, bytes, on_processor })
        };
        let issues = self.converted
            && on_processor
            && !["comm_type", "comm_src", "comm_dst"].iter().any(|name| raw.attributes.contains_key(name));
        if issues && (5..=7).contains(&raw.kind) {
            return Ok(compute(0, 0));
        }
        let positive = |name: &str| number(raw, name).map(|value| value.max(0) as u64);
        let needed = |name: &str| {
            let value = number(raw, name).ok_or_else(|| Error::new(self.path, format!("it has no `{name}`")))?;
            let negative = || Error::new(self.path, format!("its `{name}` is {value}")).expected("0 or more");
            u64::try_from(value).map_err(|_| negative())
        };
        let rank = |name: &str, default: Option<u32>| match (number(raw, name), default) {
            (None, Some(rank)) => Ok(rank),
            (None, None) => Err(Error::new(self.path, format!("it has no `{name}`"))),
            (Some(value), _) => u32::try_from(value).ok().filter(|&rank| rank < self.ranks).ok_or_else(|| {
                let what = format!("its `{name}` is rank {value}, which is not there");
                Error::new(self.path, what).expected(format!("a rank from 0 to {}", self.ranks - 1))
            }),
        };
        let own = |name: &str, place: u32| {
            let what = || format!("its `{name}` is rank {place}, and this is the file of rank {}", self.rank);
            if place == self.rank { Ok(()) } else { Err(Error::new(self.path, what())) }
        };
        let tag = positive("comm_tag").unwrap_or(0) as u32;
        Ok(match raw.kind {
            0 => Kind::Nothing,
            1 => {
                self.process_groups(raw.inputs)?;
                Kind::Nothing
            }
            2 | 3 => Kind::Memory { bytes: needed("tensor_size")?, store: raw.kind == 3 },
            4 => compute(positive("num_ops").unwrap_or(0), positive("tensor_size").unwrap_or(0)),
            5 => {
                own("comm_src", rank("comm_src", Some(self.rank))?)?;
                Kind::Send { to: rank("comm_dst", None)?, tag, bytes: needed("comm_size")? }
            }
            6 => {
                own("comm_dst", rank("comm_dst", Some(self.rank))?)?;
                Kind::Receive { from: rank("comm_src", None)?, tag, bytes: needed("comm_size")? }
            }
            7 => {
                let what = needed("comm_type")?;
                let bytes = needed("comm_size").or_else(|error| if what == 9 { Ok(0) } else { Err(error) })?;
                self.collective(raw, what, bytes)?
            }
            other => {
                let error = Error::new(self.path, format!("there is no node type {other}"));
                return Err(error.expected("a type from 0 to 7"));
            }
        })
    }

    /// Attributes that are asked for have the type that they should have.
    fn types(&self, raw: &RawNode<'_>) -> Result<(), Error> {
        for (name, value) in &raw.attributes {
            let fits = match (*name, value) {
                ("pg_name", value) => matches!(value, Attribute::Text(_)),
                ("involved_dim", Attribute::Truths(all)) => {
                    if !all {
                        let error = Error::new(self.path, "it involves some dimensions of a network only");
                        return Err(error.expected("process groups, by `pg_name`"));
                    }
                    true
                }
                (name, value) => !NUMBERS.contains(&name) || matches!(value, Attribute::Number(_)),
            };
            if !fits {
                let expected = if *name == "pg_name" { "a string" } else { "an integer" };
                return Err(Error::new(self.path, format!("its `{name}` has a wrong type")).expected(expected));
            }
        }
        Ok(())
    }

    fn collective(&self, raw: &RawNode<'_>, what: u64, bytes: u64) -> Result<Kind, Error> {
        let group = match raw.attributes.get("pg_name") {
            Some(Attribute::Text(name)) if !name.is_empty() => *self.groups.known.get(*name).ok_or_else(|| {
                let error = Error::new(self.path, format!("nothing says who is in process group \"{name}\""));
                error.help("list its ranks: [workload.groups] in the scenario, or --group NAME=RANKS")
            })?,
            _ => 0,
        };
        let members = &self.groups.list[group as usize].ranks;
        if !members.contains(&self.rank) {
            let name = &self.groups.list[group as usize].name;
            return Err(Error::new(self.path, format!("its rank is not in process group \"{name}\"")));
        }
        let ranks = members.len() as u64;
        let (what, bytes) = match what {
            0 => (CollectiveOp::AllReduce, bytes),
            1 => (CollectiveOp::Reduce, bytes),
            2 => (CollectiveOp::AllGather, bytes.saturating_mul(ranks)),
            3 => (CollectiveOp::Gather, bytes.saturating_mul(ranks)),
            4 => (CollectiveOp::Scatter, bytes),
            5 => (CollectiveOp::Broadcast, bytes),
            6 => (CollectiveOp::AllToAll, bytes),
            7 | 8 => (CollectiveOp::ReduceScatter, bytes),
            9 => (CollectiveOp::Barrier, 0),
            other => {
                let error = Error::new(self.path, format!("there is no collective of `comm_type` {other}"));
                return Err(error.expected("a type from 0 to 9"));
            }
        };
        let root = number(raw, "root_rank").or(number(raw, "root")).unwrap_or(0);
        let root = u32::try_from(root).ok().filter(|&root| u64::from(root) < ranks).ok_or_else(|| {
            let error = Error::new(self.path, format!("its root is number {root} of {ranks} ranks"));
            error.expected(format!("a number from 0 to {}", ranks - 1))
        })?;
        Ok(Kind::Collective(Collective { op: what, group, bytes, root }))
    }

    /// The process groups that PyTorch's metadata lists: JSON in a list of one string.
    fn process_groups(&mut self, text: &str) -> Result<(), Error> {
        let inner = text.get(2..text.len().saturating_sub(2)).unwrap_or_default();
        let Ok(serde_json::Value::Array(list)) = serde_json::from_str(inner) else { return Ok(()) };
        for item in list {
            let (Some(name), Some(ranks)) = (item["pg_name"].as_str(), item["ranks"].as_array()) else { continue };
            let mut members: Vec<u32> = Vec::new();
            for rank in ranks {
                let rank = rank.as_u64().and_then(|rank| u32::try_from(rank).ok()).filter(|&rank| rank < self.ranks);
                members.push(rank.ok_or_else(|| {
                    let error = Error::new(self.path, format!("process group \"{name}\" has a rank that is not there"));
                    error.expected(format!("ranks from 0 to {}", self.ranks - 1))
                })?);
            }
            if members.is_empty() {
                members = (0..self.ranks).collect();
            }
            self.groups.add(Group { name: name.to_owned(), ranks: members });
        }
        Ok(())
    }
}

/// Attributes that are integers.
const NUMBERS: [&str; 10] = [
    "is_cpu_op",
    "num_ops",
    "tensor_size",
    "comm_type",
    "comm_size",
    "comm_src",
    "comm_dst",
    "comm_tag",
    "root_rank",
    "root",
];

/// Whether a version of the schema of converted traces is known: 1.0.x or 1.1.x, which may say that Chakra's is 0.0.4.
fn is_known_schema(version: &str) -> bool {
    let own = version.strip_suffix(VERSION).and_then(|of| of.strip_suffix("-chakra.")).unwrap_or(version);
    let patch = own.strip_prefix("1.0.").or_else(|| own.strip_prefix("1.1."));
    patch.is_some_and(|patch| patch.parse::<u8>().is_ok())
}

fn number(raw: &RawNode<'_>, name: &str) -> Option<i64> {
    match raw.attributes.get(name) {
        Some(Attribute::Number(value)) => Some(*value),
        _ => None,
    }
}

/// Reads a node as it is written.
fn raw(bytes: &[u8]) -> Result<RawNode<'_>, WireError> {
    let mut fields = Fields::new(bytes);
    let mut raw = RawNode::default();
    let mut control = Vec::new();
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (1, Value::Varint(id)) => raw.id = id,
            (2, Value::Bytes(name)) => raw.name = str::from_utf8(name).unwrap_or_default(),
            (3, Value::Varint(kind)) => raw.kind = kind,
            (4, value) => ids(value, &mut control)?,
            (5, value) => ids(value, &mut raw.waits)?,
            (7, Value::Varint(micros)) => raw.micros = micros,
            (8, Value::Bytes(inputs)) => {
                let mut fields = Fields::new(inputs);
                while let Some((field, value)) = fields.next()? {
                    if let (1, Value::Bytes(text)) = (field, value) {
                        raw.inputs = str::from_utf8(text).unwrap_or_default();
                    }
                }
            }
            (10, Value::Bytes(bytes)) => {
                let (name, value) = attribute(bytes)?;
                raw.attributes.insert(name, value);
            }
            _ => {}
        }
    }
    raw.of_data = raw.waits.len();
    raw.waits.extend(control);
    Ok(raw)
}

/// Reads ids, packed or one by one.
fn ids(value: Value<'_>, list: &mut Vec<u64>) -> Result<(), WireError> {
    match value {
        Value::Varint(id) => list.push(id),
        Value::Bytes(mut packed) => {
            while !packed.is_empty() {
                let (id, length) = wire::varint(packed).map_err(|why| WireError { at: 0, why })?;
                list.push(id);
                packed = &packed[length..];
            }
        }
        Value::Fixed64(_) | Value::Fixed32(_) => {}
    }
    Ok(())
}
