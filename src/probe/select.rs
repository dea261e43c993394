//! Which signals, how deep, and when: the selection behind `--wave` options.
//!
//! **Names.** A signal's full name is the names of the scopes around it and its own, joined by dots:
//! `die0.tile0.core0.switch.in3.head`. A selection is written against these names, which are the ones a
//! waveform viewer shows.
//!
//! **Globs.** A glob is compared name by name:
//!
//! | written | matches |
//! |---|---|
//! | `**` | any number of names, also none; it stands alone between two dots |
//! | `*` | one whole name, or any part of one (`in*`) |
//! | `?` | one character |
//! | `[0-3]`, `[!0]` | one character of (not of) a set |
//! | `{head,tail}` | one of the alternatives |
//!
//! A glob must match the *whole* name of a signal. `die0.tile0` names a scope, so it selects nothing;
//! `die0.tile0.**` selects all that is in it. (The error for an empty selection says so.) Chosen over "a scope
//! selects its content", because then `*` would select everything.
//!
//! **Details.** Blocks declare large groups of signals that few users need, such as the stage registers of adder trees,
//! as [details](super::Tracer::declare_details). The glob `**`, which is also the default, selects all but details; a
//! glob with a name in it selects details too. So `**` and `**.sw4.**.tree.**` together select the usual signals and
//! one tree.
//!
//! **Depth** counts the scopes around a signal: `die0.tile0.core0.switch.state` has depth 4.
//!
//! **Window.** Both ends are cycles and both are included.
//!
//! **Cost.** Globs run only while signals are declared. The state of a partial match is carried from a scope to
//! the scopes in it, so a scope whose content cannot match is dropped without visiting it.
//!
//! **Limits.** At most 63 names in one glob. A dot inside `{}` or `[]` is refused, because a glob is cut at dots.

use std::borrow::Cow;
use std::fmt;

use fast_glob::glob_match;

/// A checked choice of signals and of the cycles in which they are written.
#[derive(Debug, Clone)]
pub struct Selection {
    globs: Vec<Pattern>,
    depth: Option<usize>,
    from_cycle: u64,
    to_cycle: Option<u64>,
}

impl Default for Selection {
    /// Every signal but details, at every depth, for the whole run.
    fn default() -> Self {
        Selection {
            globs: vec![Pattern { text: "**".to_owned(), segments: vec![Segment::AnyNumber] }],
            depth: None,
            from_cycle: 0,
            to_cycle: None,
        }
    }
}

impl Selection {
    /// Selects the signals that match at least one of the globs. No glob at all selects every signal but details.
    ///
    /// # Errors
    /// A glob that cannot be read.
    pub fn new<I>(globs: I) -> Result<Self, SelectionError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let globs = globs.into_iter().map(|glob| Pattern::parse(glob.as_ref())).collect::<Result<Vec<_>, _>>()?;
        let all = Selection::default();
        Ok(if globs.is_empty() { all } else { Selection { globs, ..all } })
    }

    /// Keeps only signals with at most `depth` scopes around them.
    ///
    /// # Errors
    /// Depth zero, which would select nothing.
    pub fn with_depth(mut self, depth: usize) -> Result<Self, SelectionError> {
        if depth == 0 {
            return Err(SelectionError::DepthZero);
        }
        self.depth = Some(depth);
        Ok(self)
    }

    /// Writes only the cycles `from_cycle..=to_cycle`; without `to_cycle`, until the run ends.
    ///
    /// # Errors
    /// A window that ends before it begins.
    pub fn with_window(mut self, from_cycle: u64, to_cycle: Option<u64>) -> Result<Self, SelectionError> {
        if let Some(to_cycle) = to_cycle.filter(|to| *to < from_cycle) {
            return Err(SelectionError::EmptyWindow { from_cycle, to_cycle });
        }
        self.from_cycle = from_cycle;
        self.to_cycle = to_cycle;
        Ok(self)
    }

    /// The globs as they were given.
    pub fn globs(&self) -> impl ExactSizeIterator<Item = &str> {
        self.globs.iter().map(|glob| glob.text.as_str())
    }

    /// Whether a glob names details, so that a path can lead to some that are selected.
    pub(crate) fn reaches_details(&self, path: &str) -> bool {
        let names = || path.split('.').map(clean);
        if self.depth.is_some_and(|depth| depth < names().count()) {
            return false;
        }
        self.globs.iter().filter(|glob| !glob.is_usual()).any(|glob| {
            let state = names().fold(glob.begin(), |state, name| glob.advance(state, &name));
            // More than that the path itself is a signal's name.
            state & !(1 << glob.segments.len()) != 0
        })
    }

    /// The last states become those where details are declared: what names nothing selects none of them.
    pub(crate) fn enter_details(&self, states: &mut [u64]) {
        let first = states.len() - self.stride();
        for (state, _) in states[first..].iter_mut().zip(&self.globs).filter(|(_, glob)| glob.is_usual()) {
            *state = 0;
        }
    }

    /// The largest number of scopes around a selected signal.
    pub fn depth(&self) -> Option<usize> {
        self.depth
    }

    /// First cycle written.
    pub fn from_cycle(&self) -> u64 {
        self.from_cycle
    }

    /// Last cycle written; `None` is the end of the run.
    pub fn to_cycle(&self) -> Option<u64> {
        self.to_cycle
    }

    /// Whether a signal of this full name is selected by globs and depth.
    pub fn selects(&self, full_name: &str) -> bool {
        let names: Vec<&str> = full_name.split('.').collect();
        self.selects_path(&names)
    }

    /// As [`selects`](Self::selects), for a name that is already cut up (foreign waveforms have dots in names).
    pub(crate) fn selects_path(&self, names: &[&str]) -> bool {
        if self.depth.is_some_and(|depth| names.len() > depth + 1) {
            return false;
        }
        self.globs.iter().any(|glob| {
            let mut state = glob.begin();
            for name in names {
                state = glob.advance(state, name);
            }
            glob.accepts(state)
        })
    }

    /// Match states before the first name, one a glob.
    pub(crate) fn begin(&self, states: &mut Vec<u64>) {
        states.extend(self.globs.iter().map(Pattern::begin));
    }

    /// Number of match states a level needs.
    pub(crate) fn stride(&self) -> usize {
        self.globs.len()
    }

    /// Pushes the states after `name`, given that the last `stride` states are those before it. Says whether
    /// anything from here on can still match.
    pub(crate) fn push(&self, states: &mut Vec<u64>, name: &str) -> bool {
        let first = states.len() - self.stride();
        let mut alive = false;
        for (index, glob) in self.globs.iter().enumerate() {
            let next = glob.advance(states[first + index], name);
            // A name that ends a glob opens no scope for it.
            alive |= next & !(1 << glob.segments.len()) != 0;
            states.push(next);
        }
        alive
    }

    /// Which globs accept the name that led to the last states; a glob that accepts is ticked in `used`.
    pub(crate) fn accepts(&self, states: &[u64], used: &mut [bool]) -> bool {
        let last = &states[states.len() - self.stride()..];
        let mut accepted = false;
        for ((glob, state), used) in self.globs.iter().zip(last).zip(used) {
            if glob.accepts(*state) {
                accepted = true;
                *used = true;
            }
        }
        accepted
    }

    /// What to say if it selects none of these names, of which there may be many.
    pub fn nothing(&self, names: &[String]) -> NothingSelected {
        let deeper = Selection { depth: None, ..self.clone() };
        let too_deep = names.iter().filter(|name| deeper.selects(name)).count();
        self.nothing_of(names, too_deep)
    }

    /// The same, where signals that are too deep were counted.
    pub(crate) fn nothing_of(&self, names: &[String], too_deep: usize) -> NothingSelected {
        NothingSelected {
            globs: self.globs().map(str::to_owned).collect(),
            too_deep,
            depth: self.depth,
            near: self.nearest(names, 3),
            examples: names.iter().take(3).cloned().collect(),
        }
    }

    /// Corrected globs that would have matched, best first, at most `count`.
    pub(crate) fn nearest(&self, names: &[String], count: usize) -> Vec<String> {
        let mut found: Vec<(usize, String)> = Vec::new();
        for glob in &self.globs {
            for name in names {
                let parts: Vec<&str> = name.split('.').collect();
                // That everything is selected is no correction.
                if let Some((cost, text)) = glob.correction(&parts).filter(|(_, text)| text != "**")
                    && !found.iter().any(|(_, known)| *known == text)
                {
                    found.push((cost, text));
                    // Only the best are of interest; keep the list small on large systems.
                    if found.len() > 64 {
                        found.sort();
                        found.truncate(16);
                    }
                }
            }
        }
        found.sort();
        // Guesses that are worse than the best one only confuse.
        let limit = found.first().map_or(0, |(cost, _)| *cost);
        (found.into_iter().take(count)).filter(|(cost, _)| *cost <= limit).map(|(_, text)| text).collect()
    }
}

/// One glob, cut at dots.
#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone)]
enum Segment {
    /// `**`
    AnyNumber,
    /// `*`
    One,
    Literal(String),
    /// As written, and as the matcher takes it.
    Glob(String, String),
}

impl Segment {
    fn matches(&self, name: &str) -> bool {
        match self {
            Segment::AnyNumber | Segment::One => true,
            Segment::Literal(text) => text == name,
            Segment::Glob(_, glob) => glob_match(glob, &*without_slashes(name)),
        }
    }

    fn text(&self) -> &str {
        match self {
            Segment::AnyNumber => "**",
            Segment::One => "*",
            Segment::Literal(text) | Segment::Glob(text, _) => text,
        }
    }
}

/// Longest glob, in names: one bit of the state a position, one more for "all matched".
const MAX_SEGMENTS: usize = 63;

impl Pattern {
    fn parse(text: &str) -> Result<Self, SelectionError> {
        let bad = |reason: String| SelectionError::BadGlob { glob: text.to_owned(), reason };
        let mut segments = Vec::new();
        for part in cut_at_dots(text).map_err(|reason| bad(reason.to_owned()))? {
            segments.push(match part {
                "" => return Err(bad("there is nothing between two dots".to_owned())),
                "**" => Segment::AnyNumber,
                "*" => Segment::One,
                _ if part.contains("**") => {
                    return Err(bad("`**` must stand alone between dots".to_owned()));
                }
                _ if part.contains(['*', '?', '[', ']', '{', '}', '\\', '!']) => {
                    if let Some(reason) = fault(part) {
                        return Err(bad(reason));
                    }
                    // A mark of exclamation in front would turn the whole around.
                    let escape = if part.starts_with('!') { "\\" } else { "" };
                    Segment::Glob(part.to_owned(), format!("{escape}{}", without_slashes(part)))
                }
                _ => Segment::Literal(part.to_owned()),
            });
        }
        if segments.len() > MAX_SEGMENTS {
            return Err(bad(format!("it has more than {MAX_SEGMENTS} names")));
        }
        Ok(Pattern { text: text.to_owned(), segments })
    }

    /// Bit i set: the first i segments are matched.
    fn begin(&self) -> u64 {
        self.spread(1)
    }

    /// Whether it is `**`, which selects no details.
    fn is_usual(&self) -> bool {
        matches!(self.segments[..], [Segment::AnyNumber])
    }

    /// `**` may match nothing, so a state before it is also a state behind it.
    fn spread(&self, mut state: u64) -> u64 {
        for (index, segment) in self.segments.iter().enumerate() {
            if matches!(segment, Segment::AnyNumber) && state >> index & 1 == 1 {
                state |= 2 << index;
            }
        }
        state
    }

    fn advance(&self, state: u64, name: &str) -> u64 {
        let mut next = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            if state >> index & 1 == 0 {
                continue;
            }
            match segment {
                Segment::AnyNumber => next |= 1 << index,
                segment if segment.matches(name) => next |= 2 << index,
                _ => {}
            }
        }
        self.spread(next)
    }

    fn accepts(&self, state: u64) -> bool {
        state >> self.segments.len() & 1 == 1
    }

    /// The glob with the fewest letters changed so that it fits this name; `None` when it is too far off.
    ///
    /// A table over (segments of the glob, names), as for the edit distance of two words; replacing a segment
    /// costs the edit distance of the two texts.
    fn correction(&self, names: &[&str]) -> Option<(usize, String)> {
        const DROPPED: usize = 4;
        const INSERTED: usize = 2;
        const REST_MISSING: usize = 1;

        let (rows, columns) = (self.segments.len(), names.len());
        let mut table = vec![vec![None::<EditCell>; columns + 1]; rows + 1];
        table[0][0] = Some(EditCell { cost: 0, from: (0, 0), output: EditOutput::Nothing });
        let offer = |table: &mut Vec<Vec<Option<EditCell>>>, to: (usize, usize), best: EditCell| {
            let slot = &mut table[to.0][to.1];
            if slot.as_ref().is_none_or(|known| best.cost < known.cost) {
                *slot = Some(best);
            }
        };
        for row in 0..=rows {
            for column in 0..=columns {
                let Some(EditCell { cost, .. }) = table[row][column] else {
                    continue;
                };
                let from = (row, column);
                let best = |more: usize, output| EditCell { cost: cost + more, from, output };
                let Some(segment) = self.segments.get(row) else {
                    if column < columns {
                        offer(&mut table, (rows, columns), best(REST_MISSING, EditOutput::AnyNumber));
                    }
                    continue;
                };
                if matches!(segment, Segment::AnyNumber) {
                    offer(&mut table, (row + 1, column), best(0, EditOutput::Segment(row)));
                } else {
                    offer(&mut table, (row + 1, column), best(DROPPED, EditOutput::Nothing));
                }
                let Some(name) = names.get(column) else {
                    continue;
                };
                match segment {
                    Segment::AnyNumber => {
                        offer(&mut table, (row, column + 1), best(0, EditOutput::Nothing));
                    }
                    _ if segment.matches(name) => {
                        offer(&mut table, (row + 1, column + 1), best(0, EditOutput::Segment(row)));
                    }
                    _ => {
                        let distance = strsim::levenshtein(segment.text(), name);
                        offer(&mut table, (row + 1, column + 1), best(distance, EditOutput::Name(column)));
                        offer(&mut table, (row, column + 1), best(INSERTED, EditOutput::Name(column)));
                    }
                }
            }
        }
        let cost = table[rows][columns].as_ref()?.cost;
        if cost > (self.text.len() / 3).max(2) {
            return None;
        }
        let mut text = Vec::new();
        let mut at = (rows, columns);
        while at != (0, 0) {
            let best = table[at.0][at.1].as_ref()?;
            match best.output {
                EditOutput::Nothing => {}
                EditOutput::Segment(row) => text.push(self.segments[row].text()),
                EditOutput::Name(column) => text.push(names[column]),
                EditOutput::AnyNumber => text.push("**"),
            }
            at = best.from;
        }
        text.reverse();
        Some((cost, text.join(".")))
    }
}

/// The cheapest way found to one field of the correction table.
#[derive(Clone)]
struct EditCell {
    cost: usize,
    from: (usize, usize),
    output: EditOutput,
}

/// The text that a step of the correction adds.
#[derive(Clone, Copy)]
enum EditOutput {
    Nothing,
    Segment(usize),
    Name(usize),
    AnyNumber,
}

/// The matcher takes a slash for the end of a name. Names have none of ours, but foreign waveforms do.
fn without_slashes(text: &str) -> Cow<'_, str> {
    if text.contains('/') { Cow::Owned(text.replace('/', "\u{1}")) } else { Cow::Borrowed(text) }
}

/// What is wrong with a part of a glob: the matcher would match nothing.
fn fault(part: &str) -> Option<String> {
    let mut letters = part.chars().peekable();
    let mut braces = 0_usize;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next().is_none() => return Some("nothing follows `\\`".to_owned()),
            '{' => braces += 1,
            '}' if braces == 0 => return Some("`}` closes nothing; `[}]` is the character".to_owned()),
            '}' => braces -= 1,
            '[' => {
                letters.next_if(|next| matches!(next, '!' | '^'));
                let mut set = Vec::new();
                // A bracket at once is a character of the set.
                loop {
                    match letters.next() {
                        None => return Some("`[` is never closed; `[[]` is the character".to_owned()),
                        Some(']') if !set.is_empty() => break,
                        Some(of) => set.push(of),
                    }
                }
                let backwards = set.windows(3).find(|three| three[1] == '-' && three[0] > three[2]);
                if let Some(&[from, _, to]) = backwards {
                    return Some(format!("`{from}-{to}` runs backwards"));
                }
            }
            _ => {}
        }
    }
    (braces > 0).then(|| "`{` is never closed; `[{]` is the character".to_owned())
}

/// Cuts a glob at its dots; a dot inside brackets or braces is an error.
fn cut_at_dots(text: &str) -> Result<Vec<&str>, &'static str> {
    let mut parts = Vec::new();
    let (mut begin, mut nesting, mut escaped) = (0, 0_usize, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' | '{' => nesting += 1,
            ']' | '}' => nesting = nesting.saturating_sub(1),
            '.' if nesting > 0 => return Err("there is a dot inside brackets"),
            '.' => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    Ok(parts)
}

/// Why a selection was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// A glob that cannot be read.
    #[error("`{glob}` is not a signal glob: {reason}")]
    BadGlob {
        /// The glob as given.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Depth zero would select nothing.
    #[error("a depth of 0 selects nothing: every signal is in at least one scope")]
    DepthZero,
    /// The window ends before it begins.
    #[error("the window ends in cycle {to_cycle}, before it begins in cycle {from_cycle}")]
    EmptyWindow {
        /// First cycle asked for.
        from_cycle: u64,
        /// Last cycle asked for.
        to_cycle: u64,
    },
}

/// A selection that no declared signal matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NothingSelected {
    /// The globs as given.
    pub globs: Vec<String>,
    /// How many signals matched a glob, but lie deeper than the depth asked for.
    pub too_deep: usize,
    /// The depth asked for.
    pub depth: Option<usize>,
    /// Globs that would have matched, best first.
    pub near: Vec<String>,
    /// A few names that exist.
    pub examples: Vec<String>,
}

impl fmt::Display for NothingSelected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no signal matches `{}`", self.globs.join("`, `"))?;
        if let (Some(depth), 1..) = (self.depth, self.too_deep) {
            return write!(f, " within depth {depth}: {} signals match, all of them deeper", self.too_deep);
        }
        if self.near.is_empty() {
            if !self.examples.is_empty() {
                write!(f, "; there is, for example, `{}`", self.examples.join("`, `"))?;
            }
        } else {
            write!(f, "; did you mean `{}`?", self.near.join("` or `"))?;
        }
        Ok(())
    }
}

impl std::error::Error for NothingSelected {}

/// Makes a name that every reader takes: letters, digits and `_`, not beginning with a digit.
pub(crate) fn clean(name: &str) -> Cow<'_, str> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let starts_well = name.starts_with(|first: char| !first.is_ascii_digit());
    if starts_well && name.chars().all(good) {
        return Cow::Borrowed(name);
    }
    let mut cleaned = String::from(if starts_well { "" } else { "_" });
    cleaned.extend(name.chars().map(|letter| if good(letter) { letter } else { '_' }));
    Cow::Owned(cleaned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(glob: &str, name: &str) -> bool {
        Selection::new([glob]).unwrap().selects(name)
    }

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, expected) in [
            ("**", "a.b.c", true),
            ("a.**", "a.b.c", true),
            ("a.**", "b.a.c", false),
            ("**.c", "a.b.c", true),
            ("**.c", "c", true),
            ("**.b.**.d", "a.b.d", true),
            ("**.b.**.d", "a.b.x.y.d", true),
            ("**.b.**.d", "a.x.y.d", false),
            ("a.*.c", "a.b.c", true),
            ("a.*.c", "a.b.b.c", false),
            ("a.b", "a.b.c", false),
            ("a.in?.c", "a.in3.c", true),
            ("a.in[0-2].c", "a.in3.c", false),
            ("a.in{3,4}.c", "a.in3.c", true),
            ("a.in*", "a.in12", true),
            ("a.b.c", "a.b.c", true),
            ("a.B.c", "a.b.c", false),
            ("a.[!0]*", "a.1x", true),
            ("a.[!0]*", "a.0x", false),
            ("a.x{b,c{d,[0-3]}}f", "a.xc2f", true),
            ("a.x{b,c{d,[0-3]}}f", "a.xcf", false),
            ("a.{,in}0", "a.0", true),
            ("a.!x*", "a.!x1", true),
            ("a.!x*", "a.y", false),
            ("a.\\*b", "a.*b", true),
            ("a.\\*b", "a.xb", false),
            ("a.in*", "a.in/out", true),
            ("a.[]]?", "a.]1", true),
            ("a.d[[]3:0]", "a.d[3:0]", true),
        ] {
            assert_eq!(selects(glob, name), expected, "{glob} on {name}");
        }
    }

    #[test]
    fn bad_globs_are_refused() {
        let reason = |glob: &str| Selection::new([glob]).unwrap_err().to_string();
        insta::assert_snapshot!(reason("a..b"), @"`a..b` is not a signal glob: there is nothing between two dots");
        insta::assert_snapshot!(reason(""), @"`` is not a signal glob: there is nothing between two dots");
        insta::assert_snapshot!(reason("a.b**"), @"`a.b**` is not a signal glob: `**` must stand alone between dots");
        insta::assert_snapshot!(reason("a.in[0-"), @"`a.in[0-` is not a signal glob: `[` is never closed; `[[]` is the character");
        insta::assert_snapshot!(reason("a.in[9-0]"), @"`a.in[9-0]` is not a signal glob: `9-0` runs backwards");
        insta::assert_snapshot!(reason("a.{b,c"), @"`a.{b,c` is not a signal glob: `{` is never closed; `[{]` is the character");
        insta::assert_snapshot!(reason("a.b,c}"), @"`a.b,c}` is not a signal glob: `}` closes nothing; `[}]` is the character");
        insta::assert_snapshot!(reason("a.b\\"), @r"`a.b\` is not a signal glob: nothing follows `\`");
        insta::assert_snapshot!(reason("a.{b.c,d}"), @"`a.{b.c,d}` is not a signal glob: there is a dot inside brackets");
        assert!(Selection::new(["a.".repeat(70) + "b"]).is_err());
    }

    #[test]
    fn depth_and_window_are_checked() {
        assert!(Selection::default().with_depth(0).is_err());
        assert!(Selection::default().with_window(5, Some(4)).is_err());
        assert!(Selection::default().with_window(5, Some(5)).is_ok());
        let shallow = Selection::default().with_depth(2).unwrap();
        assert!(shallow.selects("a.b.c"));
        assert!(!shallow.selects("a.b.c.d"));
    }

    #[test]
    fn misspelled_globs_are_corrected() {
        let names: Vec<String> =
            ["die0.tile0.core0.switch.in0.head", "die0.tile0.core0.memory.count"].map(str::to_owned).to_vec();
        let near = |glob: &str| Selection::new([glob]).unwrap().nearest(&names, 3);
        assert_eq!(near("die0.tile0.core0.swich.**"), ["die0.tile0.core0.switch.**"]);
        assert_eq!(near("die0.tile0"), ["die0.tile0.**"]);
        assert_eq!(near("**.coutn"), ["**.count"]);
        assert_eq!(near("die0.core0.memory.count"), ["die0.tile0.core0.memory.count"]);
        assert!(near("nothing_like_it.at.all").is_empty());
    }
}
