//! Data that a scenario lists as rows of numbers, for every engine.

use super::file::Number;
use super::names::{DType, layout};
use super::number;
use super::problem::Problem;

/// Checks rows of numbers that stand in a scenario: how many there are, how long they are, and that each is a number of the type.
/// `who` says what was expected if the rows are too many or too few.
pub(crate) fn check_values(
    values: &[Vec<Number>],
    path: &str,
    (rows, who): (usize, String),
    (elements, dtype): (u64, DType),
    problems: &mut Vec<Problem>,
) {
    if values.len() != rows {
        problems.push(Problem::at(path, format!("{} rows of values", values.len())).expected(who));
    }
    for (index, row) in values.iter().enumerate() {
        let here = format!("{path}[{index}]");
        if row.len() as u64 != elements {
            let message = format!("{} values for {elements} elements", row.len());
            problems.push(Problem::at(&here, message).expected("as many values as `elements` says"));
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

/// Rows of numbers as bit patterns; what is no number was found by [`check_values`].
pub(crate) fn patterns(values: &[Vec<Number>], dtype: DType) -> Vec<Vec<u64>> {
    let bits = |number: &Number| number::parse(&number.0, layout(dtype)).unwrap_or_default();
    values.iter().map(|row| row.iter().map(bits).collect()).collect()
}
