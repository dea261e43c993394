//! Errors of a scenario, with their place in the text.
//!
//! A [`Problem`] names the place by its path (`collective[0].participants`), so that a check that only knows the
//! configuration can raise one; [`Problems`] holds the text as well and prints file, line and caret.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::names;
use super::source::Source;

/// A piece of the scenario's text: of the file itself or of one `--set` argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// 0 is the file, `n` is the `n`-th override; numbers from [`super::source`]'s half of the range up are files it extends.
    pub origin: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// A piece of the text of `origin`.
    pub fn new(origin: usize, range: Range<usize>) -> Self {
        Self { origin, start: range.start, end: range.end }
    }
}

/// Where a problem points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The scenario as a whole.
    Nowhere,
    /// The value at a path.
    Value(String),
    /// The key at a path.
    Key(String),
    /// A piece of text: what does not parse has no path.
    Text(Span),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Detail {
    message: String,
    place: Place,
    expected: Option<String>,
    help: Vec<String>,
    related: Vec<(String, String)>,
    of_word: bool,
}

/// An error in a scenario.
///
/// ```
/// use watershed_reader::Problem;
///
/// let problem = Problem::at("collective[1].registers.core0.request.I7", "port 12 does not exist")
///     .expected("a port from 0 to 10")
///     .help("port 10 is the collective engine");
/// assert_eq!(problem.message(), "port 12 does not exist");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(Box<Detail>);

impl Problem {
    fn with(place: Place, message: impl Into<String>) -> Self {
        let (message, help, related) = (message.into(), Vec::new(), Vec::new());
        Self(Box::new(Detail { message, place, expected: None, help, related, of_word: false }))
    }

    /// A problem with the value at `path`. If the scenario has no such value (it is a default), the caret goes under
    /// the nearest table around it that is written down.
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::with(Place::Value(path.into()), message)
    }

    /// A problem with the key at `path`, not with its value.
    pub fn at_key(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::with(Place::Key(path.into()), message)
    }

    /// A problem with a piece of text that is not part of the parsed scenario.
    pub fn in_text(span: Span, message: impl Into<String>) -> Self {
        Self::with(Place::Text(span), message)
    }

    /// A problem with the scenario as a whole.
    pub fn general(message: impl Into<String>) -> Self {
        Self::with(Place::Nowhere, message)
    }

    /// Says what would have been right.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    /// Adds a line of advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help.push(help.into());
        self
    }

    /// Adds `did you mean …` if one of the candidates is close to what was given.
    #[must_use]
    pub fn nearest<'a, S: AsRef<str> + ?Sized + 'a>(
        self,
        given: &str,
        candidates: impl IntoIterator<Item = &'a S>,
    ) -> Self {
        match names::nearest(given, candidates) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// Shows a second place, for example the other half of a contradiction.
    #[must_use]
    pub fn related(mut self, path: impl Into<String>, label: impl Into<String>) -> Self {
        self.0.related.push((path.into(), label.into()));
        self
    }

    /// The same problem at another place: that of the text it was made from.
    #[must_use]
    pub fn moved(mut self, span: Span) -> Self {
        self.0.place = Place::Text(span);
        self
    }

    /// The same problem with the value at another path.
    #[must_use]
    pub fn at_path(mut self, path: String) -> Self {
        self.0.place = Place::Value(path);
        self
    }

    /// Says that the value is a word that no scenario can have there.
    #[must_use]
    pub(super) fn of_word(mut self) -> Self {
        self.0.of_word = true;
        self
    }

    /// Whether the value is a word that no scenario can have there.
    pub fn is_of_word(&self) -> bool {
        self.0.of_word
    }

    /// Whether nothing says what to do about it.
    pub fn has_no_help(&self) -> bool {
        self.0.help.is_empty()
    }

    /// The headline.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The path it is about, if it has one.
    pub fn path(&self) -> Option<&str> {
        match &self.0.place {
            Place::Value(path) | Place::Key(path) => Some(path),
            Place::Nowhere | Place::Text(_) => None,
        }
    }

    /// Whether it is about a key, not about its value.
    pub fn concerns_key(&self) -> bool {
        matches!(self.0.place, Place::Key(_))
    }

    /// Where it is in a text; `None` if it is about no place of it.
    pub fn span(&self, source: &Source) -> Option<Span> {
        match &self.0.place {
            Place::Nowhere => None,
            Place::Value(path) => source.locate(path),
            Place::Key(path) => source.locate_key(path),
            Place::Text(span) => Some(span.clone()),
        }
    }

    fn render(&self, source: &Source, out: &mut String) {
        use fmt::Write;
        let _ = writeln!(out, "error: {}", source.rename_places(&self.0.message));
        let spans: Vec<(Span, &str)> = self
            .span(source)
            .map(|span| (span, ""))
            .into_iter()
            .chain(self.0.related.iter().filter_map(|(path, label)| Some((source.locate(path)?, label.as_str()))))
            .collect();
        // One gutter for all places of a problem, as wide as its longest line number.
        let gutter = spans.iter().map(|(span, _)| source.gutter(span)).max().unwrap_or(1);
        for (index, (span, label)) in spans.iter().enumerate() {
            let arrow = if index == 0 { "-->" } else { ":::" };
            source.snippet(span, gutter, arrow, label, out);
        }
        let pad = " ".repeat(gutter);
        if spans.is_empty() {
            let _ = writeln!(out, "{pad}--> {}", source.name());
        }
        if let Some(expected) = &self.0.expected {
            let _ = writeln!(out, "{pad} = expected: {}", source.rename_places(expected));
        }
        for help in &self.0.help {
            let _ = writeln!(out, "{pad} = help: {}", source.rename_places(help));
        }
    }
}

/// Everything that is wrong with one scenario, in the order of its text. Its `Display` is what the user reads.
#[derive(Debug, Clone)]
pub struct Problems {
    source: Arc<Source>,
    list: Vec<Problem>,
}

impl Problems {
    /// Sorts the problems by their place in the text and drops repetitions.
    pub fn new(source: Arc<Source>, mut list: Vec<Problem>) -> Self {
        list.sort_by_cached_key(|problem| {
            // The scenario as a whole comes last: what has a place is easier to act on.
            let span = problem.span(&source);
            (span.is_none(), span)
        });
        list.dedup();
        Self { source, list }
    }

    /// The problem of a file that is something else than what is wanted.
    pub fn of_file(path: &std::path::Path, wanted: &str) -> Self {
        let kind = super::kind::Kind::of(path);
        let mut problem = Problem::general(format!("this is {}, not {wanted}", kind.words()));
        if let Some(help) = kind.taken_by(path) {
            problem = problem.help(help);
        } else if kind == super::kind::Kind::Folder && wanted == "a scenario" {
            problem = problem.help("a scenario is a file in it, or a name that `watershed list` prints");
        }
        Self::new(Arc::new(Source::empty(path.display().to_string())), vec![problem])
    }

    /// The problems.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }
}

/// More than this many problems are counted, not shown: the first ones usually explain the rest.
const SHOWN: usize = 20;

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        for (index, problem) in self.list.iter().take(SHOWN).enumerate() {
            if index > 0 {
                out.push('\n');
            }
            problem.render(&self.source, &mut out);
        }
        if self.list.len() > SHOWN {
            use fmt::Write;
            let _ = writeln!(out, "\n… and {} more", self.list.len() - SHOWN);
        }
        f.write_str(out.trim_end())
    }
}

impl std::error::Error for Problems {}
