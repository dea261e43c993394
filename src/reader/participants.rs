//! End points that a scenario names: whether they are there, and that none is named twice.

use std::collections::BTreeMap;

use crate::file::ParticipantsFile;
use crate::problem::Problem;

/// Whether there is such an end point; if not, that is a problem at this place.
pub fn end_point(end: u64, ends: u32, path: &str, problems: &mut Vec<Problem>) -> bool {
    let is_there = end < u64::from(ends);
    if !is_there {
        problems.push(
            Problem::at(path, format!("there is no end point {end}"))
                .expected(format!("an end point from 0 to {}", ends.saturating_sub(1))),
        );
    }
    is_there
}

/// The end points that are listed, those left out that are not there or are listed again: "end point 3 `again`".
pub fn listed(given: &ParticipantsFile, ends: u32, again: &str, path: &str, problems: &mut Vec<Problem>) -> Vec<u32> {
    let given = match given {
        ParticipantsFile::All => return (0..ends).collect(),
        ParticipantsFile::List(given) => given,
    };
    let mut first_at = BTreeMap::new();
    let mut list = Vec::with_capacity(given.len().min(ends as usize));
    for (at, &end) in given.iter().enumerate() {
        let here = format!("{path}[{at}]");
        if !end_point(end, ends, &here, problems) {
            continue;
        }
        if let Some(first) = first_at.insert(end, at) {
            let problem = Problem::at(here, format!("end point {end} {again}"));
            problems.push(problem.related(format!("{path}[{first}]"), "here already"));
        } else {
            list.push(end as u32);
        }
    }
    list
}

/// A broadcast whose only participant is its source: an engine has nobody to send to.
pub(crate) fn nobody_receives(path: &str) -> Problem {
    Problem::at(format!("{path}.participants"), "nobody receives this broadcast but its source")
        .expected("at least one participant beside the source")
}
