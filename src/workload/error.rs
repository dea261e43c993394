//! Errors of a trace, with file, rank and node.

use std::fmt;
use std::path::{Path, PathBuf};

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Detail>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Detail {
    file: PathBuf,
    place: Option<Place>,
    rank: Option<u32>,
    node: Option<String>,
    what: String,
    expected: Option<String>,
    help: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Line(u64),
    Byte(u64),
}

impl Error {
    pub(crate) fn new(file: &Path, what: impl Into<String>) -> Error {
        let what = what.into();
        let detail =
            Detail { file: file.to_owned(), place: None, rank: None, node: None, what, expected: None, help: None };
        Error(Box::new(detail))
    }

    pub(crate) fn line(mut self, line: u64) -> Error {
        self.0.place = Some(Place::Line(line));
        self
    }

    pub(crate) fn byte(mut self, byte: u64) -> Error {
        self.0.place = Some(Place::Byte(byte));
        self
    }

    pub(crate) fn rank(mut self, rank: u32) -> Error {
        self.0.rank = Some(rank);
        self
    }

    pub(crate) fn node(mut self, node: impl Into<String>) -> Error {
        self.0.node = Some(node.into());
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Error {
        self.0.expected = Some(expected.into());
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Error {
        self.0.help = Some(help.into());
        self
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.0.file
    }

    /// The rank, if it is about one.
    pub fn of_rank(&self) -> Option<u32> {
        self.0.rank
    }

    /// The node, if it is about one.
    pub fn of_node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// Rank, node and what is wrong, in a sentence.
    pub fn message(&self) -> String {
        let Detail { rank, node, what, .. } = &*self.0;
        let rank = rank.map(|rank| format!("rank {rank}"));
        let place = [rank, node.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ");
        if place.is_empty() { what.clone() } else { format!("{place}: {what}") }
    }

    /// The file and the place in it.
    pub fn place(&self) -> String {
        let file = self.0.file.display();
        match self.0.place {
            Some(Place::Line(line)) => format!("{file}:{line}"),
            Some(Place::Byte(byte)) => format!("{file}, byte {byte}"),
            None => file.to_string(),
        }
    }

    /// What would have been right.
    pub fn wanted(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// Advice.
    pub fn advice(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}\n --> {}", self.message(), self.place())?;
        if let Some(expected) = self.wanted() {
            write!(f, "\n  = expected: {expected}")?;
        }
        if let Some(help) = self.advice() {
            write!(f, "\n  = help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
