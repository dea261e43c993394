//! Message ladders (sequence charts): who sends what to whom when, as text and as SVG (requirement W-LAD-1).
//!
//! ```text
//!     cycle  root0       top.P4        leaf0
//!         0  |--arm 0---->|             |
//!        12  |            |----arm 0--->|
//! ```
//!
//! A ladder is independent of families: it has actors, which become columns, and messages between them. Time runs
//! downwards. In the text every message has a line of its own, at the cycle it was sent. In the SVG lines slope from
//! the cycle of sending to that of arrival, on a scale that shortens idle stretches *chosen*. Systems of hundreds of
//! actors are [folded](Ladder::folded) into columns that a page can hold, and long runs are shown [piece by
//! piece](Ladder::between).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Sending actor, an index into [`Ladder::actors`].
    pub from: usize,
    /// Receiving actor.
    pub to: usize,
    /// Cycle of sending.
    pub sent: u64,
    /// Cycle of arrival; `None` if it never did.
    pub arrived: Option<u64>,
    /// What it says.
    pub label: String,
}

/// Something an actor does by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The actor.
    pub actor: usize,
    /// When.
    pub cycle: u64,
    /// What.
    pub label: String,
}

/// A sequence chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ladder {
    /// Columns, from the left.
    pub actors: Vec<String>,
    /// Messages, in any order.
    pub messages: Vec<Message>,
    /// Notes, in any order.
    pub notes: Vec<Note>,
}

/// Most lines of a picture; a longer one is cut, and says how many are missing.
const MOST: usize = 2000;

/// Most columns of a picture: with more, neighbours of like names share one.
pub const COLUMNS: usize = 32;

/// Letters of a line of a name above its column, where the name can be broken.
const HEAD: usize = 20;

enum Line<'a> {
    Message(&'a Message),
    Note(Cow<'a, Note>),
}

impl Line<'_> {
    /// An arrow; what an actor sends to itself has none, and is a note.
    fn of(message: &Message) -> Line<'_> {
        if message.from != message.to {
            return Line::Message(message);
        }
        let end = if message.arrived.is_some() { "" } else { ", lost" };
        let label = format!("{} to itself{end}", message.label);
        Line::Note(Cow::Owned(Note { actor: message.from, cycle: message.sent, label }))
    }
}

/// A name without its numbers: those of `leaf3` and `leaf12` are equal.
fn stem(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

impl Ladder {
    /// What happened from one cycle to another, both included; either may be left out.
    #[must_use]
    pub fn between(mut self, from: Option<u64>, to: Option<u64>) -> Self {
        let there = |begin: u64, end: u64| end >= from.unwrap_or(0) && to.is_none_or(|to| begin <= to);
        self.messages.retain(|message| there(message.sent, message.arrived.unwrap_or(message.sent)));
        self.notes.retain(|note| there(note.cycle, note.cycle));
        self
    }

    /// What happened in both: actors of the same name are one.
    #[must_use]
    pub fn merged_with(mut self, other: Ladder) -> Self {
        let columns: Vec<usize> = other
            .actors
            .into_iter()
            .map(|name| {
                self.actors.iter().position(|there| *there == name).unwrap_or_else(|| {
                    self.actors.push(name);
                    self.actors.len() - 1
                })
            })
            .collect();
        let message = |of: Message| Message { from: columns[of.from], to: columns[of.to], ..of };
        self.messages.extend(other.messages.into_iter().map(message));
        self.notes.extend(other.notes.into_iter().map(|of| Note { actor: columns[of.actor], ..of }));
        self
    }

    /// The same in at most `most` columns. Neighbours whose names differ in numbers only share columns, as many as is their
    /// part of all; what several of a column say alike at once is one message with a count, and what they say to each other
    /// is a note.
    #[must_use]
    pub fn folded(&self, most: usize) -> Self {
        if self.actors.len() <= most {
            return self.clone();
        }
        let mut families: Vec<std::ops::Range<usize>> = Vec::new();
        for (at, name) in self.actors.iter().enumerate() {
            match families.last_mut() {
                Some(family) if stem(&self.actors[family.start]) == stem(name) => family.end = at + 1,
                _ => families.push(at..at + 1),
            }
        }
        // Too many families to give each a column: numbers alone decide.
        if families.len() > most {
            families.clear();
            families.push(0..self.actors.len());
        }
        let spare = most - families.len();
        let shared: usize = families.iter().map(|family| family.len() - 1).sum();
        let mut column = vec![0; self.actors.len()];
        let mut actors = Vec::new();
        for family in families {
            let columns = 1 + spare * (family.len() - 1) / shared.max(1);
            let each = family.len().div_ceil(columns);
            for begin in family.clone().step_by(each) {
                let end = (begin + each).min(family.end);
                column[begin..end].iter_mut().for_each(|column| *column = actors.len());
                actors.push(match end - begin {
                    1 => self.actors[begin].clone(),
                    count => format!("{} to {} ({count})", self.actors[begin], self.actors[end - 1]),
                });
            }
        }
        let mut counts: BTreeMap<(u64, usize, usize, Option<u64>, &str), u64> = BTreeMap::new();
        for Message { from, to, sent, arrived, label } in &self.messages {
            *counts.entry((*sent, column[*from], column[*to], *arrived, label)).or_default() += 1;
        }
        let mut within: BTreeMap<(u64, usize, &str), u64> = BTreeMap::new();
        for note in &self.notes {
            *within.entry((note.cycle, column[note.actor], &note.label)).or_default() += 1;
        }
        let counted = |label: &str, count: u64| if count > 1 { format!("{label} x{count}") } else { label.to_owned() };
        let mut folded = Self { actors, ..Self::default() };
        for ((sent, from, to, arrived, label), count) in counts {
            if from == to {
                *within.entry((sent, from, label)).or_default() += count;
            } else {
                folded.messages.push(Message { from, to, sent, arrived, label: counted(label, count) });
            }
        }
        for ((cycle, actor, label), count) in within {
            folded.notes.push(Note { actor, cycle, label: counted(label, count) });
        }
        folded
    }

    fn lines(&self) -> (Vec<(u64, Line<'_>)>, usize) {
        let mut lines: Vec<(u64, Line<'_>)> = self
            .messages
            .iter()
            .map(|message| (message.sent, Line::of(message)))
            .chain(self.notes.iter().map(|note| (note.cycle, Line::Note(Cow::Borrowed(note)))))
            .collect();
        lines.sort_by_key(|(cycle, line)| match line {
            Line::Message(message) => (*cycle, 0, message.from, message.to),
            Line::Note(note) => (*cycle, 1, note.actor, 0),
        });
        let more = lines.len().saturating_sub(MOST);
        lines.truncate(MOST);
        (lines, more)
    }

    /// The chart as text: a column an actor, a line a message.
    pub fn text(&self) -> String {
        let (lines, more) = self.lines();
        let widest = |actor: usize| {
            let labels = self.messages.iter().filter(|m| m.from.min(m.to) == actor && m.from.abs_diff(m.to) == 1);
            labels.map(|message| message.label.chars().count() + 4).max().unwrap_or(0)
        };
        let heads: Vec<Vec<String>> = self.actors.iter().map(|name| broken(name, HEAD)).collect();
        let head = |actor: usize| heads[actor].iter().map(|part| part.chars().count() + 1).max().unwrap_or(0);
        let widths: Vec<usize> =
            (0..self.actors.len()).map(|actor| widest(actor).min(28).max(head(actor)).max(6)).collect();
        let starts: Vec<usize> = widths.iter().scan(0, |at, width| Some(std::mem::replace(at, *at + width))).collect();
        let length = starts.last().map_or(0, |last| last + 1);
        let mut out = String::new();
        for row in 0..heads.iter().map(Vec::len).max().unwrap_or(0).max(1) {
            let _ = write!(out, "{:>9}  ", if row == 0 { "cycle" } else { "" });
            for (head, width) in heads.iter().zip(&widths) {
                let _ = write!(out, "{:width$}", head.get(row).map_or("", String::as_str));
            }
            trim(&mut out);
        }
        for (cycle, line) in lines {
            let mut row: Vec<char> = vec![' '; length];
            for &start in &starts {
                row[start] = '|';
            }
            let mut tail = String::new();
            match line {
                Line::Message(message) => {
                    let (left, right) = (message.from.min(message.to), message.from.max(message.to));
                    let (begin, end) = (starts[left] + 1, starts[right]);
                    row[begin..end].iter_mut().for_each(|c| *c = '-');
                    let lost = message.arrived.is_none();
                    if message.to > message.from {
                        row[end - 1] = if lost { 'x' } else { '>' };
                    } else {
                        row[begin] = if lost { 'x' } else { '<' };
                    }
                    let label: Vec<char> = message.label.chars().collect();
                    let room = (end - begin).saturating_sub(2);
                    if label.len() <= room {
                        let at = begin + 1 + (room - label.len()) / 2;
                        row[at..at + label.len()].copy_from_slice(&label);
                    } else {
                        tail.clone_from(&message.label);
                    }
                    match message.arrived {
                        Some(arrived) => {
                            let _ = write!(tail, "{}@{arrived}", if tail.is_empty() { "" } else { " " });
                        }
                        None => tail.push_str(if tail.is_empty() { "lost" } else { " lost" }),
                    }
                }
                Line::Note(note) => {
                    row[starts[note.actor]] = '*';
                    tail = format!("{}: {}", self.actors[note.actor], note.label);
                }
            }
            let row: String = row.into_iter().collect();
            let _ = write!(out, "{cycle:>9}  {row}  {tail}");
            trim(&mut out);
        }
        if more > 0 {
            let _ = writeln!(out, "… and {more} more");
        }
        out
    }

    /// The chart as SVG. A label stands where its line has room for it; what has none is shown by pointing at the line.
    pub fn svg(&self) -> String {
        const LEFT: u64 = 90;
        let (lines, more) = self.lines();
        let heads: Vec<Vec<String>> = self.actors.iter().map(|name| broken(name, HEAD)).collect();
        let top = 28 + LETTER.1 * heads.iter().map(Vec::len).max().unwrap_or(1) as u64;
        let longest = heads.iter().flatten().map(|part| part.chars().count() as u64).max().unwrap_or(0);
        let column = (longest * LETTER.0 + 12).max(150);
        let places = heights(&lines, top + 20);
        let y = |time: u64| places.get(&time).copied().unwrap_or(top);
        let x = |actor: usize| LEFT + column / 2 + actor as u64 * column;
        let width = LEFT + column * self.actors.len() as u64;
        let height = places.values().last().copied().unwrap_or(top + 20) + 40;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"monospace\" font-size=\"11\">\n\
             <style>.l {{ paint-order: stroke; stroke: white; stroke-width: 3px }}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        for (actor, head) in heads.iter().enumerate() {
            let x = x(actor);
            let _ = writeln!(out, "<line x1=\"{x}\" y1=\"{top}\" x2=\"{x}\" y2=\"{}\" stroke=\"#999\"/>", height - 20);
            for (part, above) in head.iter().zip((0..head.len() as u64).rev()) {
                let _ = writeln!(
                    out,
                    "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
                    top - 12 - above * LETTER.1,
                    escape(part)
                );
            }
        }
        let mut labelled = 0;
        let mut labels = Labels { width, ..Labels::default() };
        for (cycle, _) in &lines {
            if y(*cycle) >= labelled {
                let base = y(*cycle) + 4;
                let _ = writeln!(out, "<text x=\"{EDGE}\" y=\"{base}\" fill=\"#555\">{cycle}</text>");
                labels.put(EDGE, base, cycle.to_string().len() as u64 * LETTER.0);
                labelled = y(*cycle) + 12;
            }
        }
        for (cycle, line) in &lines {
            match line {
                Line::Message(message) => {
                    let (from, to) =
                        ((x(message.from), y(*cycle)), (x(message.to), y(message.arrived.unwrap_or(*cycle))));
                    draw_message(&mut out, message, (from, to), &mut labels);
                }
                Line::Note(note) => {
                    let (x, y) = (x(note.actor), y(note.cycle));
                    let tip = format!("{} in cycle {cycle}: {}", self.actors[note.actor], note.label);
                    let _ = writeln!(
                        out,
                        "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"#080\"><title>{}</title></circle>",
                        escape(&tip)
                    );
                    let length = note.label.chars().count() as u64 * LETTER.0;
                    let sides = [(x + 6, x + 6, ""), (x.saturating_sub(6 + length), x - 6, " text-anchor=\"end\"")];
                    if let Some((_, at, anchor)) =
                        sides.into_iter().find(|(left, ..)| labels.take(*left, y + 4, length))
                    {
                        labels.text((at, y + 4), anchor, "#080", &note.label);
                    }
                }
            }
        }
        out.push_str(&labels.drawn);
        if more > 0 {
            let _ = writeln!(out, "<text x=\"4\" y=\"{}\">… and {more} more</text>", height - 6);
        }
        out.push_str("</svg>\n");
        out
    }
}

/// Width and height of a letter of a picture.
const LETTER: (u64, u64) = (7, 13);

/// Where on its line a label may stand, from its beginning on in hundredths: the middle first.
const ALONG: [u64; 9] = [50, 40, 60, 30, 70, 20, 80, 10, 90];

/// Where cycles stand, and how near to an edge a label may come.
const EDGE: u64 = 4;

/// Labels of a picture, of which none is printed over another, over the number of a cycle or beyond an edge.
#[derive(Default)]
struct Labels {
    /// Width of the picture.
    width: u64,
    /// Left and right end by the height in steps of a letter's.
    taken: BTreeMap<u64, Vec<(u64, u64)>>,
    /// All of them, to be drawn over all lines.
    drawn: String,
}

impl Labels {
    /// Takes the room of a text that begins here, if it is free.
    fn take(&mut self, left: u64, base: u64, length: u64) -> bool {
        let right = left + length;
        let meets = |&(other, end): &(u64, u64)| left < end && other < right;
        let outside = left < EDGE || right + EDGE > self.width;
        if outside || rows_of(base).iter().any(|row| self.taken.get(row).is_some_and(|row| row.iter().any(meets))) {
            return false;
        }
        self.put(left, base, length);
        true
    }

    /// Takes the room of a text that stands there anyway.
    fn put(&mut self, left: u64, base: u64, length: u64) {
        for row in rows_of(base) {
            self.taken.entry(row).or_default().push((left, left + length));
        }
    }

    fn text(&mut self, (x, y): (u64, u64), anchor: &str, colour: &str, label: &str) {
        let _ = writeln!(
            self.drawn,
            "<text class=\"l\" x=\"{x}\" y=\"{y}\"{anchor} fill=\"{colour}\">{}</text>",
            escape(label)
        );
    }
}

/// The rows of letters that a text touches.
fn rows_of(base: u64) -> [u64; 2] {
    [base.saturating_sub(LETTER.1) / LETTER.1, base / LETTER.1]
}

/// Draws a message from one place to another.
fn draw_message(
    out: &mut String,
    message: &Message,
    ((x1, y1), (x2, y2)): ((u64, u64), (u64, u64)),
    labels: &mut Labels,
) {
    let lost = message.arrived.is_none();
    let colour = if lost { "#c00" } else { "#036" };
    let head = if x2 > x1 { -7i64 } else { 7 };
    let end = message.arrived.map_or("never arrives".to_owned(), |arrived| format!("arrives in {arrived}"));
    let tip = format!("{}: sent in cycle {}, {end}", message.label, message.sent);
    let _ = writeln!(
        out,
        "<g><title>{}</title><line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\"{}/>\
         <path d=\"M{x2} {y2} l{head} -3 l0 6 z\" fill=\"{colour}\"/></g>",
        escape(&tip),
        if lost { " stroke-dasharray=\"4 3\"" } else { "" },
    );
    let length = message.label.chars().count() as u64 * LETTER.0;
    let at =
        |part: u64| ((x1 * (100 - part) + x2 * part) / 100, ((y1 * (100 - part) + y2 * part) / 100).saturating_sub(2));
    let free = ALONG.into_iter().map(at).find(|&(x, y)| labels.take(x.saturating_sub(length / 2), y, length));
    if let Some(place) = free {
        labels.text(place, " text-anchor=\"middle\"", colour, &message.label);
    }
}

/// The height of each cycle in which something begins or ends: a step is as long as its cycles, but not longer than is
/// needed to see it, nor shorter than a label where there is room for all of them *chosen*.
fn heights(lines: &[(u64, Line<'_>)], begin: u64) -> BTreeMap<u64, u64> {
    let mut times: Vec<u64> = Vec::new();
    for (cycle, line) in lines {
        times.push(*cycle);
        if let Line::Message(Message { arrived: Some(arrived), .. }) = line {
            times.push(*arrived);
        }
    }
    times.sort_unstable();
    times.dedup();
    let least = (6000 / times.len().max(1) as u64).clamp(3, LETTER.1);
    let mut at = begin;
    let mut last = times.first().copied().unwrap_or(0);
    let place = |&time: &u64| {
        at += if time == last { 0 } else { (2 * (time - last)).clamp(least, 26) };
        last = time;
        (time, at)
    };
    times.iter().map(place).collect()
}

/// A name in lines of at most `most` letters: broken between words, and within those that are longer.
fn broken(name: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ') {
        let letters: Vec<char> = word.chars().collect();
        for (number, part) in letters.chunks(most).enumerate() {
            let part: String = part.iter().collect();
            match lines.last_mut() {
                Some(line) if number == 0 && line.chars().count() + 1 + part.chars().count() <= most => {
                    line.push(' ');
                    line.push_str(&part);
                }
                _ => lines.push(part),
            }
        }
    }
    lines
}

fn trim(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

/// Text inside HTML, SVG and XML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Ladder {
        let message = |from, to, sent, arrived, label: &str| Message { from, to, sent, arrived, label: label.into() };
        Ladder {
            actors: vec!["root".into(), "switch".into(), "leaf".into()],
            messages: vec![
                message(1, 2, 12, Some(20), "arm 0"),
                message(0, 1, 0, Some(11), "arm 0"),
                message(2, 0, 30, Some(44), "a label that is much longer than there is room <for>"),
                message(2, 1, 50, None, "1"),
            ],
            notes: vec![Note { actor: 1, cycle: 40, label: "time-out".into() }],
        }
    }

    #[test]
    fn lines_are_in_order_and_arrows_point_to_the_receiver() {
        let expected = "    cycle  root     switch   leaf
        0  |-arm 0->|        |  @11
       12  |        |-arm 0->|  @20
       30  |<----------------|  a label that is much longer than there is room <for> @44
       40  |        *        |  switch: time-out
       50  |        |x--1----|  lost
";
        assert_eq!(sample().text(), expected);
    }

    #[test]
    fn a_message_to_its_own_sender_is_a_note() {
        let mut ladder = sample();
        let own = |sent, arrived| Message { from: 2, to: 2, sent, arrived, label: "hello".into() };
        ladder.messages.extend([own(41, Some(45)), own(42, None)]);
        let text = ladder.text();
        assert!(text.contains("       41  |        |        *  leaf: hello to itself\n"), "{text}");
        assert!(text.contains("       42  |        |        *  leaf: hello to itself, lost\n"), "{text}");
        assert_eq!(ladder.svg().matches("<circle").count(), 3);
    }

    #[test]
    fn the_svg_is_balanced_and_escaped() {
        let svg = sample().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("room &lt;for&gt;") && !svg.contains("<for>"));
        assert_eq!(svg.matches("stroke-dasharray").count(), 1, "the lost one");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn many_columns_are_folded_and_nothing_is_lost() {
        let ends = 256;
        let mut ladder = Ladder { actors: vec!["root0".into(), "top.P4".into()], ..Ladder::default() };
        for leaf in 0..ends {
            ladder.actors.push(format!("leaf{leaf}"));
            let (from, to) = (2 + leaf, 1);
            ladder.messages.push(Message { from, to, sent: 10, arrived: Some(20), label: "1".into() });
            ladder.notes.push(Note { actor: from, cycle: 5, label: "computes".into() });
        }
        ladder.messages.push(Message { from: 2, to: 3, sent: 30, arrived: Some(31), label: "hello".into() });
        let folded = ladder.folded(COLUMNS);
        assert!(folded.actors.len() <= COLUMNS && folded.actors.len() > COLUMNS / 2, "{:?}", folded.actors);
        assert_eq!(folded.actors[..3], ["root0", "top.P4", "leaf0 to leaf8 (9)"]);
        let times = |label: &str| label.rsplit_once(" x").and_then(|(_, count)| count.parse().ok()).unwrap_or(1);
        assert_eq!(folded.messages.iter().map(|message| times(&message.label)).sum::<u64>(), ends as u64);
        let notes = folded.notes.iter().filter(|note| note.label.starts_with("computes"));
        assert_eq!(notes.map(|note| times(&note.label)).sum::<u64>(), ends as u64);
        assert!(folded.notes.iter().any(|note| note.label == "hello" && note.cycle == 30));
        let svg = folded.svg();
        let width: u32 = svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        assert!(width <= 90 + 150 * COLUMNS as u32, "{width}");
        assert!(folded.text().lines().all(|line| line.chars().count() < 900));
        assert_eq!(sample().folded(3), sample(), "what fits stays");
        assert_eq!(ladder.clone().between(Some(25), None).messages.len(), 1);
        assert_eq!(ladder.between(None, Some(9)).messages.len(), 0);
    }

    /// Left, right, upper and lower edge of every text of a picture, from its own attributes.
    fn boxes(svg: &str) -> Vec<(f64, f64, f64, f64, String)> {
        let number = |line: &str, name: &str| -> f64 {
            let text = line.split_once(&format!(" {name}=\"")).unwrap().1;
            text.split('"').next().unwrap().parse().unwrap()
        };
        let texts = svg.lines().filter(|line| line.starts_with("<text"));
        texts
            .map(|line| {
                let content = line.split_once('>').unwrap().1.trim_end_matches("</text>").to_owned();
                let plain = content.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
                // A letter of 11 units of a monospaced type is 6.6 units wide, and 8 units high above its line.
                let width = 6.6 * plain.chars().count() as f64;
                let (x, y) = (number(line, "x"), number(line, "y"));
                let left = match line {
                    line if line.contains("\"middle\"") => x - width / 2.0,
                    line if line.contains("\"end\"") => x - width,
                    _ => x,
                };
                (left, left + width, y - 8.0, y, content)
            })
            .collect()
    }

    #[test]
    fn no_text_of_a_picture_is_over_another() {
        for ends in [4, 16, 64, 256] {
            let mut ladder = Ladder { actors: vec!["a root".into(), "top.P4".into()], ..Ladder::default() };
            for leaf in 0..ends {
                // As long as names of files may be, and all at once.
                ladder.actors.push(format!("rack{}.chassis7.blade12.leaf{leaf}", leaf / 16));
                for word in 0..3 {
                    let (from, to, sent) = (2 + leaf, 1, 10 + word);
                    let label = format!("word {word} of {leaf}");
                    ladder.messages.push(Message { from, to, sent, arrived: Some(sent + 9), label: label.clone() });
                    ladder.messages.push(Message { from: 0, to: from, sent, arrived: None, label });
                }
                ladder.notes.push(Note { actor: 2 + leaf, cycle: 12, label: "computes something long".into() });
            }
            // Too long to stand beside the number of its cycle.
            let label = format!("configuration of {}", "all leaves and ".repeat(2));
            ladder.messages.push(Message { from: 0, to: 1, sent: 40, arrived: Some(41), label });
            for ladder in [&ladder, &ladder.folded(COLUMNS), &ladder.folded(16)] {
                let svg = ladder.svg();
                let width: f64 = svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
                let mut boxes = boxes(&svg);
                assert!(boxes.iter().all(|text| text.0 >= 0.0 && text.1 <= width), "{ends}: beyond an edge");
                boxes.sort_by(|a, b| a.2.total_cmp(&b.2));
                for (number, a) in boxes.iter().enumerate() {
                    let below = boxes[number + 1..].iter().take_while(|b| b.2 < a.3);
                    for b in below {
                        assert!(b.0 >= a.1 || a.0 >= b.1, "{ends}: {a:?} {b:?}");
                    }
                }
                assert!(boxes.len() > ladder.actors.len() + 10, "{ends}: most labels have no room");
                // What has no room is told where the line is pointed at.
                let messages = ladder.messages.len() + ladder.notes.len();
                assert_eq!(svg.matches("<title>").count(), messages.min(MOST), "{ends}");
                // Names stand above their own columns in the text, too.
                let text = ladder.text();
                let head: Vec<&str> = text.lines().take_while(|line| !line.contains('|')).collect();
                assert!(head.len() > 1, "{ends}: {head:?}");
                let columns: Vec<usize> = {
                    let line: Vec<char> = text.lines().find(|line| line.contains('*')).unwrap().chars().collect();
                    (0..line.len()).filter(|&at| line[at] == '|' || line[at] == '*').take(ladder.actors.len()).collect()
                };
                for (name, column) in ladder.actors.iter().zip(&columns) {
                    let begin = broken(name, HEAD).remove(0);
                    let there: String = head[0].chars().skip(*column).take(begin.chars().count()).collect();
                    assert_eq!(there, begin, "{ends}");
                }
            }
        }
    }

    #[test]
    fn long_names_are_broken_and_lose_no_letter() {
        assert_eq!(broken("leaf0 to leaf8 (9)", 20), ["leaf0 to leaf8 (9)"]);
        assert_eq!(broken("s4_0.P1 to s0_4.P3 (5)", 20), ["s4_0.P1 to s0_4.P3", "(5)"]);
        let long = "rack1.chassis7.blade12.leaf3 to rack1.chassis7.blade12.leaf31 (29)";
        let parts = broken(long, 20);
        assert!(parts.iter().all(|part| part.chars().count() <= 20), "{parts:?}");
        assert_eq!(parts.concat().replace(' ', ""), long.replace(' ', ""));
    }

    #[test]
    fn a_ladder_of_nothing_is_a_head_line() {
        assert_eq!(Ladder::default().text(), "    cycle\n");
        assert!(Ladder::default().svg().contains("<svg"));
    }
}
