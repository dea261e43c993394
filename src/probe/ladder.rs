//! Message ladders (sequence charts): who sent what to whom when, as text and as SVG (requirement W-LAD-1).
//!
//! ```text
//!     cycle  root0       top.P4        leaf0
//!         0  |--arm 0---->|             |
//!        12  |            |----arm 0--->|
//! ```
//!
//! A ladder knows nothing of families: it has actors, which become columns, and messages between them. Time runs downwards;
//! in the text every message has a line of its own, at the cycle it was sent; in the SVG lines slope from the cycle of
//! sending to that of arrival, on a scale on which idle stretches are shortened *chosen*.

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

/// Most lines of a picture: beyond that nobody looks at it, and it says how many are missing.
const MOST: usize = 2000;

enum Line<'a> {
    Message(&'a Message),
    Note(&'a Note),
}

impl Ladder {
    fn lines(&self) -> (Vec<(u64, Line<'_>)>, usize) {
        let mut lines: Vec<(u64, Line<'_>)> = self
            .messages
            .iter()
            .map(|message| (message.sent, Line::Message(message)))
            .chain(self.notes.iter().map(|note| (note.cycle, Line::Note(note))))
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
        let widths: Vec<usize> = (0..self.actors.len())
            .map(|actor| widest(actor).max(self.actors[actor].chars().count() + 1).clamp(6, 28))
            .collect();
        let starts: Vec<usize> = widths.iter().scan(0, |at, width| Some(std::mem::replace(at, *at + width))).collect();
        let length = starts.last().map_or(0, |last| last + 1);
        let mut out = String::new();
        let _ = write!(out, "{:>9}  ", "cycle");
        for (actor, width) in self.actors.iter().zip(&widths) {
            let _ = write!(out, "{actor:width$}");
        }
        trim(&mut out);
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

    /// The chart as SVG.
    pub fn svg(&self) -> String {
        const COLUMN: u64 = 150;
        const TOP: u64 = 40;
        const LEFT: u64 = 90;
        let (lines, more) = self.lines();
        let mut times: Vec<u64> = Vec::new();
        for (cycle, line) in &lines {
            times.push(*cycle);
            if let Line::Message(Message { arrived: Some(arrived), .. }) = line {
                times.push(*arrived);
            }
        }
        times.sort_unstable();
        times.dedup();
        // A step is as long as its cycles, but at least 3 and at most 26 units.
        let mut at = TOP + 20;
        let mut last = times.first().copied().unwrap_or(0);
        let places: std::collections::BTreeMap<u64, u64> = times
            .iter()
            .map(|&time| {
                at += (2 * (time - last)).min(26).max(if time == last { 0 } else { 3 });
                last = time;
                (time, at)
            })
            .collect();
        let y = |time: u64| places.get(&time).copied().unwrap_or(TOP);
        let x = |actor: usize| LEFT + COLUMN / 2 + actor as u64 * COLUMN;
        let width = LEFT + COLUMN * self.actors.len() as u64;
        let height = at + 40;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"monospace\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        for (actor, name) in self.actors.iter().enumerate() {
            let x = x(actor);
            let _ = writeln!(
                out,
                "<line x1=\"{x}\" y1=\"{TOP}\" x2=\"{x}\" y2=\"{}\" stroke=\"#999\"/>\
                 <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
                height - 20,
                TOP - 12,
                escape(name)
            );
        }
        let mut labelled = 0;
        for (cycle, line) in &lines {
            if y(*cycle) >= labelled {
                let _ = writeln!(out, "<text x=\"4\" y=\"{}\" fill=\"#555\">{cycle}</text>", y(*cycle) + 4);
                labelled = y(*cycle) + 12;
            }
            match line {
                Line::Message(message) => {
                    let (x1, y1) = (x(message.from), y(message.sent));
                    let (x2, y2) = (x(message.to), y(message.arrived.unwrap_or(message.sent)));
                    let lost = message.arrived.is_none();
                    let colour = if lost { "#c00" } else { "#036" };
                    let head = if x2 > x1 { -7i64 } else { 7 };
                    let _ = writeln!(
                        out,
                        "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\"{}/>\
                         <path d=\"M{x2} {y2} l{head} -3 l0 6 z\" fill=\"{colour}\"/>\
                         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{colour}\">{}</text>",
                        if lost { " stroke-dasharray=\"4 3\"" } else { "" },
                        u64::midpoint(x1, x2),
                        u64::midpoint(y1, y2) - 2,
                        escape(&message.label)
                    );
                }
                Line::Note(note) => {
                    let (x, y) = (x(note.actor), y(note.cycle));
                    let _ = writeln!(
                        out,
                        "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"#080\"/>\
                         <text x=\"{}\" y=\"{}\" fill=\"#080\">{}</text>",
                        x + 6,
                        y + 4,
                        escape(&note.label)
                    );
                }
            }
        }
        if more > 0 {
            let _ = writeln!(out, "<text x=\"4\" y=\"{}\">… and {more} more</text>", height - 6);
        }
        out.push_str("</svg>\n");
        out
    }
}

fn trim(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
    fn the_svg_is_balanced_and_escaped() {
        let svg = sample().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("room &lt;for&gt;") && !svg.contains("<for>"));
        assert_eq!(svg.matches("stroke-dasharray").count(), 1, "the lost one");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn a_ladder_of_nothing_is_a_head_line() {
        assert_eq!(Ladder::default().text(), "    cycle\n");
        assert!(Ladder::default().svg().contains("<svg"));
    }
}
