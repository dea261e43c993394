//! Pareto fronts: the points that no other point dominates, and the hypervolume of a front.

use std::collections::BTreeMap;

use super::file::{Goal, Sweep};
use super::table::PointResult;

/// The mean of each objective over all repetitions, less being better; `None` if one of them has none.
pub fn mean_objectives(sweep: &Sweep, facts: &[Option<PointResult>]) -> Option<Vec<f64>> {
    let mut sums = vec![0.0; sweep.objectives.len()];
    for facts in facts {
        let facts = facts.as_ref()?;
        for (sum, (name, goal)) in sums.iter_mut().zip(&sweep.objectives) {
            let value = facts.column(sweep, name)?.number()?;
            *sum += if *goal == Goal::Minimise { value } else { -value };
        }
    }
    Some(sums.into_iter().map(|sum| sum / facts.len().max(1) as f64).collect())
}

/// Numbers of those that no other dominates, of several equal ones the first.
pub fn front(values: &[Option<Vec<f64>>]) -> Vec<usize> {
    let known: Vec<(usize, &Vec<f64>)> =
        values.iter().enumerate().filter_map(|(at, value)| value.as_ref().map(|value| (at, value))).collect();
    let mut best: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    for (at, value) in &known {
        if !known.iter().any(|(_, other)| dominates(other, value)) {
            let key = value.iter().map(|value| value.to_bits()).collect();
            best.entry(key).or_insert(*at);
        }
    }
    let mut list: Vec<usize> = best.into_values().collect();
    list.sort_unstable();
    list
}

/// Whether a point is nowhere worse than another one, and better somewhere; less is better.
pub fn dominates(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a.iter().zip(b).any(|(a, b)| a < b)
}

/// Hypervolume: what points dominate of the space below a reference; of one to three objectives, less being better.
pub fn hypervolume<P: AsRef<[f64]>>(points: &[P], reference: &[f64]) -> f64 {
    let Some((&limit, rest)) = reference.split_last() else { return 1.0 };
    let inside = |point: &&[f64]| point.iter().zip(reference).all(|(value, limit)| value < limit);
    let mut points: Vec<&[f64]> = points.iter().map(AsRef::as_ref).filter(inside).collect();
    let last = |point: &[f64]| point.get(rest.len()).copied().unwrap_or(limit);
    points.sort_by(|a, b| last(a).total_cmp(&last(b)));
    // Slices between one value of the last objective and the next: in each, the points so far count in the others.
    let mut volume = 0.0;
    let mut below: Vec<&[f64]> = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let projected = &point[..rest.len()];
        if !below.iter().any(|other| *other == projected || dominates(other, projected)) {
            below.retain(|other| !dominates(projected, other));
            below.push(projected);
        }
        let next = points.get(at + 1).map_or(limit, |next| last(next));
        if next > last(point) {
            let across = match (rest, &below[..]) {
                ([], _) => 1.0,
                // Of one objective only the best point is left.
                ([limit], [best]) => limit - best[0],
                _ => hypervolume(&below, rest),
            };
            volume += (next - last(point)) * across;
        }
    }
    volume
}

#[cfg(test)]
// Small whole numbers: sums and products of them are exact.
#[allow(clippy::float_cmp)]
mod tests {
    use super::*;

    #[test]
    fn a_front_has_what_nothing_dominates() {
        let values =
            [[1.0, 9.0], [2.0, 5.0], [2.0, 6.0], [3.0, 5.0], [9.0, 1.0], [2.0, 5.0]].map(|value| Some(value.to_vec()));
        assert_eq!(front(&values), [0, 1, 4]);
        assert_eq!(front(&[None, Some(vec![1.0, 1.0])]), [1]);
    }

    #[test]
    fn a_hypervolume_is_that_of_the_boxes_together() {
        let volume = |points: &[&[f64]], reference: &[f64]| {
            hypervolume(&points.iter().map(|point| point.to_vec()).collect::<Vec<_>>(), reference)
        };
        assert_eq!(volume(&[&[1.0]], &[4.0]), 3.0);
        assert_eq!(volume(&[&[1.0, 3.0], &[2.0, 1.0], &[3.0, 3.0], &[9.0, 0.0]], &[4.0, 4.0]), 3.0 + 6.0 - 2.0);
        // Two boxes of eight that share a cube of one, and one inside of both.
        assert_eq!(volume(&[&[0.0, 0.0, 1.0], &[1.0, 1.0, 0.0], &[1.0, 1.0, 1.0]], &[2.0, 2.0, 2.0]), 4.0 + 2.0 - 1.0);
        assert_eq!(volume(&[], &[1.0, 1.0]), 0.0);
    }
}
