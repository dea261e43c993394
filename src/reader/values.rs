//! Data that a scenario lists as rows of numbers, for every engine.

use super::file::{Distribution, Number};
use super::names::{DType, Layout, layout};
use super::number;
use super::problem::Problem;

/// How long rows may be.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// Elements of a frame; of the whole vector for engines without frames.
    pub frame: u64,
    /// Rounds in which frames are reduced.
    pub rounds: u64,
}

impl Length {
    /// Of engines that take a vector as it is.
    pub fn of_vector(elements: u64) -> Self {
        Self { frame: elements, rounds: 1 }
    }

    /// Whether a row of this many elements is a frame, contributed in every round, or a vector of as many frames as the rounds are, or
    /// a fraction of them, which starts again then.
    fn fits(self, elements: u64) -> bool {
        elements == self.frame
            || self.frame > 0
                && elements > 0
                && elements.is_multiple_of(self.frame)
                && self.rounds.is_multiple_of(elements / self.frame)
    }

    fn expected(self) -> String {
        if self.rounds == 1 {
            return "as many values as `elements` says".to_owned();
        }
        let all = self.frame * self.rounds;
        format!("{}, contributed in each of the {} rounds, or {all} for all of them", self.frame, self.rounds)
    }
}

/// Checks rows of numbers that stand in a scenario: how many there are, how long they are, and that each is a number of the type.
/// `who` says what was expected if the rows are too many or too few.
pub(crate) fn check_values(
    values: &[Vec<Number>],
    path: &str,
    (rows, who): (usize, String),
    (length, dtype): (Length, DType),
    problems: &mut Vec<Problem>,
) {
    if values.len() != rows {
        problems.push(Problem::at(path, format!("{} rows of values", values.len())).expected(who));
    }
    for (index, row) in values.iter().enumerate() {
        let here = format!("{path}[{index}]");
        if !length.fits(row.len() as u64) {
            let message = format!("{} values for {} elements", row.len(), length.frame);
            problems.push(Problem::at(&here, message).expected(length.expected()));
        } else if length.fits(values[0].len() as u64) && row.len() != values[0].len() {
            let message = format!("{} values, and the first row has {}", row.len(), values[0].len());
            problems.push(Problem::at(&here, message).expected("rows of one length"));
        }
        for (element, number) in row.iter().enumerate() {
            if let Err(reason) = number::parse(&number.0, layout(dtype)) {
                let message = format!("{} is no {}: {reason}", number.0, dtype.name());
                let problem = Problem::at(format!("{here}[{element}]"), message);
                problems.push(problem.expected(number::describe(layout(dtype))));
            }
        }
    }
}

/// What is drawn unless a scenario says so.
pub(crate) fn default_distribution(dtype: DType) -> Distribution {
    if matches!(layout(dtype), Layout::Float { .. }) { Distribution::Normal } else { Distribution::Integers }
}

/// Refuses a distribution beside values.
pub(crate) fn not_both(random: Option<Distribution>, path: &str, problems: &mut Vec<Problem>) {
    if random.is_some() {
        problems.push(
            Problem::at_key(format!("{path}.values"), "`values` and `random` cannot both be given")
                .related(format!("{path}.random"), "the other one"),
        );
    }
}

/// The frame of a row that is contributed in a round; of a vector of fewer frames the rounds start again with the first.
pub fn frame(row: &[u64], elements: usize, round: u32) -> &[u64] {
    let first = round as usize % (row.len() / elements) * elements;
    &row[first..first + elements]
}

/// Frames of a row, by the elements of a frame.
pub fn frames(values: &[Vec<Number>], frame: usize) -> usize {
    values.first().map_or(1, |row| row.len() / frame.max(1)).max(1)
}

/// Rows of numbers as bit patterns; what is no number was found by `check_values`.
pub fn patterns(values: &[Vec<Number>], dtype: DType) -> Vec<Vec<u64>> {
    let bits = |number: &Number| number::parse(&number.0, layout(dtype)).unwrap_or_default();
    values.iter().map(|row| row.iter().map(bits).collect()).collect()
}
