//! GOAL schedules, as LogGOPSim and ATLAHS read them: text, one file for all ranks.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 1000 cpu 1        // ns
//!   l2: send 64b to 1 tag 7 cpu 0 nic 0
//!   l2 requires l1             // l2 starts when l1 has ended
//! }
//! rank 1 {
//!   a: recv 64b from 0 tag 7
//!   b: calc 10
//!   b irequires a              // b starts when a has started
//! }
//! ```
//!
//! Labels may be missing; `tag`, `cpu` and `nic` may be in any order and are 0 if missing. Comments are `//` and
//! `/* */`. A dependency may come before the operations it names. All NICs of a rank are the one port of its end point
//! *\[chosen\]*. Sizes are in bytes, `calc` in ns. A receive from `-1` is one from any rank, with `tag -1` one of any
//! tag.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::{ANY, Compute, Dependency, Error, Format, Group, HASH, Kind, Node, Rank, Trace, hash};

/// The most ranks.
const RANKS: u64 = 1 << 20;

/// Reads a schedule.
///
/// # Errors
/// What is wrong with it.
pub fn read(path: &Path) -> Result<Trace, Error> {
    let bytes = fs::read(path).map_err(|error| {
        let error = Error::new(path, error.to_string());
        error.help("a trace is a GOAL file, or the prefix of Chakra's files: PREFIX.0.et, PREFIX.1.et, …")
    })?;
    parse(path, &bytes)
}

/// Reads a schedule that is in memory; `path` is what it is called.
///
/// # Errors
/// What is wrong with it.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Trace, Error> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count() as u64;
        Error::new(path, "this is no text")
            .line(line)
            .expected("a GOAL schedule, or files of Chakra named PREFIX.RANK.et")
    })?;
    let mut parser = Parser { path, ranks: Vec::new(), rank: None, lines: Vec::new() };
    for (number, words) in (1..).zip(lines(text)) {
        if !words.is_empty() {
            parser.line(number, &words)?;
        }
    }
    if let Some((rank, line)) = parser.rank {
        return Err(Error::new(path, "the file ends before its closing brace").rank(rank).line(line));
    }
    if parser.ranks.is_empty() {
        return Err(Error::new(path, "it says nothing of ranks").expected("`num_ranks N` in the first line"));
    }
    let mut ranks = Vec::with_capacity(parser.ranks.len());
    for (rank, nodes) in (0..).zip(parser.ranks) {
        let nodes = nodes.ok_or_else(|| {
            let error = Error::new(path, "it has no block").rank(rank);
            error.expected(format!("`rank {rank} {{ … }}`"))
        })?;
        ranks.push(Rank { file: path.to_owned(), nodes });
    }
    let all = Group { name: String::new(), ranks: (0..ranks.len() as u32).collect() };
    Ok(Trace { format: Format::Goal, ranks, groups: vec![all], hash: hash(HASH, bytes) })
}

/// The words of every line without comments; colons and braces are words of their own.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let mut comment = false;
    text.lines().map(move |line| {
        let mut words = Vec::new();
        let mut rest = line;
        loop {
            if comment {
                let Some(end) = rest.find("*/") else { return words };
                (rest, comment) = (&rest[end + 2..], false);
            }
            let begin = rest.find("/*").unwrap_or(rest.len());
            let line = rest.find("//").unwrap_or(rest.len());
            let code = &rest[..begin.min(line)];
            for piece in code.split([' ', '\t', '\r']).filter(|piece| !piece.is_empty()) {
                words.extend(piece.split_inclusive([':', '{', '}']).flat_map(|piece| {
                    let mark = piece.len() - usize::from(piece.ends_with([':', '{', '}']));
                    [&piece[..mark], &piece[mark..]].into_iter().filter(|part| !part.is_empty())
                }));
            }
            if line < begin || begin == rest.len() {
                return words;
            }
            (rest, comment) = (&rest[begin + 2..], true);
        }
    })
}

struct Parser<'a> {
    path: &'a Path,
    ranks: Vec<Option<Vec<Node>>>,
    /// The rank whose block is open, and the line in which it was opened.
    rank: Option<(u32, u64)>,
    /// Lines of the open block.
    lines: Vec<Line>,
}

/// A line of a block.
enum Line {
    Node(Node),
    /// The first waits for the second.
    Wait {
        line: u64,
        labels: [String; 2],
        start: bool,
    },
}

const FORMS: &str = "`[LABEL:] send BYTESb to RANK tag T`, `recv BYTESb from RANK tag T`, `calc NS`, `L requires L`, `L irequires L` \
                     or `}`; `cpu N` and `nic N` may follow";

impl Parser<'_> {
    fn error(&self, line: u64, what: impl Into<String>) -> Error {
        let error = Error::new(self.path, what).line(line);
        match self.rank {
            Some((rank, _)) => error.rank(rank),
            None => error,
        }
    }

    fn number(&self, line: u64, word: &str) -> Result<u64, Error> {
        word.parse().map_err(|_| self.error(line, format!("\"{word}\" is not a number")).expected(FORMS))
    }

    fn line(&mut self, line: u64, words: &[&str]) -> Result<(), Error> {
        match (words, self.rank) {
            (["num_ranks", count], None) if self.ranks.is_empty() => {
                let count = self.number(line, count)?;
                if !(1..=RANKS).contains(&count) {
                    return Err(self.error(line, format!("{count} ranks")).expected(format!("1 to {RANKS}")));
                }
                self.ranks = vec![None; count as usize];
                Ok(())
            }
            (["rank", number, "{"], None) => {
                let rank = self.number(line, number)?;
                let count = self.ranks.len();
                match self.ranks.get(rank as usize) {
                    Some(None) => self.rank = Some((rank as u32, line)),
                    Some(Some(_)) => {
                        return Err(self.error(line, "it has a second block").rank(rank as u32));
                    }
                    None => {
                        let error = self.error(line, format!("there is no rank {rank}"));
                        return Err(error.expected(format!("`num_ranks` says {count}: ranks from 0 on")));
                    }
                }
                Ok(())
            }
            (["}"], Some((rank, _))) => {
                self.finish_block(rank)?;
                self.rank = None;
                Ok(())
            }
            (_, None) => {
                let what = format!("\"{}\" is none of what stands here", words.join(" "));
                Err(self.error(line, what).expected("`num_ranks N`, then `rank R {` … `}` for each"))
            }
            ([waiting, word @ ("requires" | "irequires"), other], Some(_)) => {
                let labels = [(*waiting).to_owned(), (*other).to_owned()];
                let start = *word == "irequires";
                self.lines.push(Line::Wait { line, labels, start });
                Ok(())
            }
            ([label, ":", rest @ ..], Some(_)) => self.node(line, label, rest),
            (rest, Some(_)) => self.node(line, "", rest),
        }
    }

    fn rank_number(&self, line: u64, word: &str) -> Result<u32, Error> {
        let rank = self.number(line, word)?;
        if rank < self.ranks.len() as u64 {
            return Ok(rank as u32);
        }
        let error = self.error(line, format!("rank {rank} is not there"));
        Err(error.expected(format!("a rank from 0 to {}", self.ranks.len() - 1)))
    }

    fn node(&mut self, line: u64, label: &str, words: &[&str]) -> Result<(), Error> {
        let named = |error: Error| {
            let label = if label.is_empty() { String::new() } else { format!(" \"{label}\"") };
            error.node(format!("line {line}{label}"))
        };
        let bytes = |word: &str| {
            let digits = word.strip_suffix('b').unwrap_or(word);
            self.number(line, digits)
        };
        let (mut kind, mut rest) = match words {
            ["send", size, "to", to, rest @ ..] => {
                let (bytes, to) = (bytes(size).map_err(named)?, self.rank_number(line, to).map_err(named)?);
                (Kind::Send { to, tag: 0, bytes }, rest)
            }
            ["recv", size, "from", from, rest @ ..] => {
                let bytes = bytes(size).map_err(named)?;
                let from = if *from == "-1" { ANY } else { self.rank_number(line, from).map_err(named)? };
                (Kind::Receive { from, tag: 0, bytes }, rest)
            }
            ["calc", ns, rest @ ..] => {
                let ps = self.number(line, ns).map_err(named)?.saturating_mul(1000);
                (Kind::Compute(Compute { ps, on_processor: true, ..Compute::default() }), rest)
            }
            _ => {
                let what = format!("\"{}\" is no operation", words.join(" "));
                return Err(named(self.error(line, what).expected(FORMS)));
            }
        };
        let mut stream = 0;
        while let [key, value, more @ ..] = rest {
            rest = more;
            if let ("tag", "-1", Kind::Receive { tag, .. }) = (*key, *value, &mut kind) {
                *tag = ANY;
                continue;
            }
            let number = self.number(line, value).map_err(named)?;
            match (*key, &mut kind) {
                ("tag", Kind::Send { tag, .. } | Kind::Receive { tag, .. }) if number < u64::from(ANY) => {
                    *tag = number as u32;
                }
                ("cpu", _) if number < 1 << 16 => stream = number as u16,
                ("nic", Kind::Send { .. } | Kind::Receive { .. }) => {}
                _ => {
                    return Err(named(
                        self.error(line, format!("\"{key} {value}\" means nothing here")).expected(FORMS),
                    ));
                }
            }
        }
        if let [word] = rest {
            return Err(named(self.error(line, format!("\"{word}\" lacks its number")).expected(FORMS)));
        }
        let node = Node { id: line, name: label.into(), kind, stream: Some(stream), waits: Box::default() };
        self.lines.push(Line::Node(node));
        Ok(())
    }

    /// Puts the lines of a block together.
    fn finish_block(&mut self, rank: u32) -> Result<(), Error> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut waits = Vec::new();
        for line in std::mem::take(&mut self.lines) {
            match line {
                Line::Node(node) => nodes.push(node),
                Line::Wait { line, labels, start, .. } => waits.push((line, labels, start)),
            }
        }
        let mut labels: HashMap<&str, u32> = HashMap::new();
        for (at, node) in (0..).zip(&nodes) {
            if !node.name.is_empty() && labels.insert(&node.name, at).is_some() {
                let title = node.title(Format::Goal);
                return Err(self.error(node.id, "another line has this label").node(title));
            }
        }
        let mut lists = vec![Vec::new(); nodes.len()];
        for (line, [waiting, other], start) in waits {
            let find = |label: &str| {
                labels.get(label).copied().ok_or_else(|| {
                    let error = self.error(line, format!("no line of this rank has the label \"{label}\""));
                    error.node(format!("line {line}"))
                })
            };
            let (waiting, node) = (find(&waiting)?, find(&other)?);
            lists[waiting as usize].push(Dependency { node, start });
        }
        for (node, mut list) in nodes.iter_mut().zip(lists) {
            list.sort_unstable();
            list.dedup();
            node.waits = list.into();
        }
        self.ranks[rank as usize] = Some(nodes);
        Ok(())
    }
}
