//! Collectives of several trees, each for a segment of the vector (requirement P-EMB-4).
//!
//! ```text
//!   vector in memory     │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │ 8 │ 9 │     words of 64 bits
//!   segments = 3         └──── 0 ────┴─── 1 ────┴─── 2 ────┘           each at most a word longer than another
//!   collective id              id         id + 1      id + 2           registers: a tree each
//!   plane                      p          p + 1       p + 2            request and response channel, operand slots,
//!                                                                      places for results: its own
//! ```
//!
//! The rule that overlapping embeddings take turns (P-SW-7) holds on every plane: there, at most one collective passes
//! a switch at a time. Segments share links, crossbars, trees and memories cycle by cycle, and none of them holds
//! anything that another one waits for, so they cannot deadlock. Requests wait for requests of their plane and at the
//! root for its responses, and responses only for cores, which take turns among planes. *Chosen: the paper asks for
//! several embeddings and does not say how they share the switches that all of them need.*

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::config::{Collective, Scenario};
use super::file::{CollectiveFile, CollectiveKind};
use super::names::DType;
use super::problem::Problem;
use watershed_piuma_interface::channels::MAX_PLANES;

/// The outcome of one segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentResult {
    /// Collective id of its tree.
    pub id: u32,
    /// Plane of its channels.
    pub plane: u32,
    /// Name of the switch where its requests turn into responses.
    pub root: String,
    /// Its first element.
    pub first_element: u64,
    /// How many it has.
    pub elements: u64,
    /// Cycle in which the last of them landed; null if it did not.
    pub end_cycle: Option<u64>,
}

/// Collective ids that a collective takes.
pub fn ids(file: &CollectiveFile) -> Range<u32> {
    file.id..file.id + file.segments.unwrap_or(1)
}

/// Words of one of the segments of a vector.
pub fn words(segments: u32, segment: u32, words: u64) -> Range<u64> {
    let (each, more) = (words / u64::from(segments), words % u64::from(segments));
    let first = |segment: u64| segment * each + segment.min(more);
    first(u64::from(segment))..first(u64::from(segment) + 1)
}

/// Elements of one of the segments of a collective.
pub fn elements(collective: &Collective, segment: u32) -> Range<u64> {
    let lanes = u64::from(collective.dtype.lanes());
    let words = words(collective.segments, segment, collective.elements.div_ceil(lanes));
    words.start * lanes..(words.end * lanes).min(collective.elements)
}

/// Collective ids of a collective's trees and what they are called: segments by the name of the collective and a number.
pub fn names(collective: &Collective) -> Vec<(u32, String)> {
    let name =
        |at: usize| if collective.segments > 1 { format!("{}.{at}", collective.name) } else { collective.name.clone() };
    collective.ids().enumerate().map(|(at, id)| (id, name(at))).collect()
}

/// Segments in one line: ids, roots, and how many cycles each took.
pub fn described(segments: &[SegmentResult], start: Option<u64>) -> Option<String> {
    let cycles =
        |end: Option<u64>| end.map_or_else(|| "not finished".into(), |end| (end - start.unwrap_or(0)).to_string());
    let each: Vec<String> = segments.iter().map(|of| format!("{} {}", of.root, cycles(of.end_cycle))).collect();
    let (first, last) = (segments.first()?.id, segments.last()?.id);
    Some(format!("{} segments on ids {first} to {last}, cycles by root: {}", segments.len(), each.join(", ")))
}

/// Planes that a scenario's collectives use.
pub fn planes(scenario: &Scenario) -> u8 {
    scenario.collectives.iter().map(|of| of.plane + of.segments).max().map_or(1, |planes| planes as u8)
}

/// The number of segments of a collective, after all checks of `segments` and `plane`.
pub fn checked(
    file: &CollectiveFile,
    path: &str,
    (dtype, elements, all_ids): (DType, u64, u32),
    problems: &mut Vec<Problem>,
) -> u32 {
    let (segments, plane) = (file.segments.unwrap_or(1), file.plane);
    let at = format!("{path}.segments");
    if plane > 0 && (file.kind == CollectiveKind::Scan || file.called) {
        let what = if file.called { "collectives that programs call" } else { "scans" };
        problems.push(Problem::at(format!("{path}.plane"), format!("{what} are on plane 0")).expected("0"));
    }
    if plane + segments > u32::from(MAX_PLANES) {
        let message = format!("{segments} segments from plane {plane} on need planes up to {}", plane + segments - 1);
        problems.push(Problem::at(&at, message).expected(format!("planes 0 to {}", MAX_PLANES - 1)));
    }
    if segments == 1 {
        return 1;
    }
    if !matches!(file.kind, CollectiveKind::Allreduce | CollectiveKind::Reduce) {
        let message = format!("a {} has no segments", file.kind.name());
        problems.push(Problem::at(&at, message).expected("an \"allreduce\" or a \"reduce\""));
        return segments;
    }
    if file.called {
        let message = "programs call a collective with as many elements as they like: it has one tree";
        problems.push(Problem::at(&at, message).related(format!("{path}.called"), "called by programs"));
        return segments;
    }
    let trees = [
        ("root", file.root.is_some()),
        ("registers", file.registers.is_some()),
        ("embedding", file.embedding.is_some()),
    ];
    for (key, _) in trees.into_iter().filter(|(_, given)| *given) {
        let problem = Problem::at(&at, format!("segments have trees of their own, and `{key}` describes one"));
        let help = "collectives on planes of their own can have any trees and run at once: see `plane`";
        problems.push(problem.related(format!("{path}.{key}"), "given here").help(help));
    }
    if file.id < all_ids && file.id + segments > all_ids {
        let message = format!("{segments} segments from id {} on need ids up to {}", file.id, file.id + segments - 1);
        let help = "every segment has a collective id; `switch.collective_ids` is how many there are";
        problems.push(Problem::at(&at, message).expected(format!("ids 0 to {}", all_ids - 1)).help(help));
    }
    let words = elements.div_ceil(u64::from(dtype.lanes()));
    if u64::from(segments) > words {
        let message = format!("{segments} segments of a vector of {words} words of 64 bits");
        problems.push(Problem::at(&at, message).expected("at least a word a segment"));
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_disjoint_whole_and_of_nearly_one_length() {
        for words in [1, 7, 64, 1001] {
            for segments in 1..=8u32.min(words as u32) {
                let all: Vec<Range<u64>> = (0..segments).map(|at| super::words(segments, at, words)).collect();
                assert_eq!((all[0].start, all[segments as usize - 1].end), (0, words));
                assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
                let lengths = all.iter().map(|range| range.end - range.start);
                assert!(lengths.clone().min() >= Some(1));
                assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
            }
        }
    }
}
