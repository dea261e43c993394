//! The search for a Pareto front: a Latin hypercube first, then generation by generation the points that promise most.
//!
//! What a point promises is read off a model of each objective: radial basis functions (linear kernel, linear trend)
//! through what has been measured, on the scale of logarithms where the values allow it. Of a pool of candidates
//! (neighbours of the front, crossings of its points, points at random) those are taken whose predicted values add most
//! to the hypervolume of the front. A candidate whose nearest neighbour failed or broke a constraint is not taken while
//! there is another one.
//!
//! Nothing but the sweep file and the measured values decides: the same points in the same order on any number of threads.

use std::collections::BTreeSet;

use super::best::breaks_constraint;
use super::file::{Levels, Sweep};
use super::front::{front, hypervolume, mean_objectives};
use super::points::{Point, passes, repeated, sample, uniform};
use super::table::PointResult;
use watershed_kernel::Rng;

/// Points of a generation, at most: they are run side by side.
const GENERATION: usize = 16;

/// Points that a model goes through, at most: solving for its weights takes the cube of that.
const MODELLED: usize = 256;

/// Candidates by crossing and at random.
const POOL: usize = 256;

/// What keeps the equations solvable where points lie close together.
const RIDGE: f64 = 1e-6;

/// A search under way.
#[derive(Debug, Default)]
pub(super) struct Pareto {
    generation: u64,
    /// What was handed out, without repetitions.
    points: Vec<Point>,
    seen: BTreeSet<(usize, Vec<Vec<String>>)>,
}

impl Pareto {
    /// The next generation; empty when the budget is used up or nothing new is found.
    pub(super) fn next(&mut self, sweep: &Sweep, facts: &[Option<PointResult>]) -> Vec<Point> {
        let search = sweep.file.search.as_ref().expect("there is a search");
        let budget = search.budget.unwrap_or(1) as usize;
        let mut batch = Vec::new();
        if self.generation == 0 {
            let initial = search.initial.map_or(budget.div_ceil(4), |initial| initial as usize).max(1);
            let each = initial.div_ceil(sweep.scenarios.len());
            for scenario in 0..sweep.scenarios.len() {
                for point in sample(sweep, scenario, each, true, 0) {
                    self.take(sweep, budget, point, &mut batch);
                }
            }
        } else {
            let most = (budget / 10).clamp(2, GENERATION);
            for point in self.promising(sweep, facts, most) {
                self.take(sweep, budget, point, &mut batch);
            }
        }
        // Where nothing promises anything: at random, as long as that finds anything new.
        for attempt in 0..64 {
            if !batch.is_empty() {
                break;
            }
            for scenario in 0..sweep.scenarios.len() {
                for point in sample(sweep, scenario, 1, false, (self.generation << 8) + attempt + 1000) {
                    self.take(sweep, budget, point, &mut batch);
                }
            }
        }
        self.generation += 1;
        repeated(sweep, batch)
    }

    /// Takes a point into a batch if it is new, and passes.
    fn take(&mut self, sweep: &Sweep, budget: usize, point: Point, batch: &mut Vec<Point>) {
        if self.points.len() < budget
            && passes(sweep, &point)
            && self.seen.insert((point.scenario, point.values.clone()))
        {
            self.points.push(point.clone());
            batch.push(point);
        }
    }

    /// The most promising points that are not known, best first.
    fn promising(&self, sweep: &Sweep, facts: &[Option<PointResult>], most: usize) -> Vec<Point> {
        let repetitions = sweep.file.repetitions as usize;
        let values: Vec<Option<Vec<f64>>> = (0..self.points.len())
            .map(|at| {
                let facts = &facts[at * repetitions..(at + 1) * repetitions];
                let value =
                    |point: &Point| mean_objectives(sweep, facts).filter(|_| !breaks_constraint(sweep, point, facts));
                value(&self.points[at])
            })
            .collect();
        let best = front(&values);
        let mut rng = Rng::new(sweep.file.seed, 0x9a4e_7000 + self.generation);
        let pool = self.pool(sweep, &best, &mut rng);
        let scale = Scale::of(&values);
        let mut reached: Vec<Vec<f64>> =
            best.iter().filter_map(|at| values[*at].as_ref()).map(|value| scale.of_value(value)).collect();
        let mut predicted: Vec<(Point, Vec<f64>)> = Vec::new();
        let mut doubtful: Vec<(Point, Vec<f64>)> = Vec::new();
        for scenario in 0..sweep.scenarios.len() {
            let own = |at: &usize| self.points[*at].scenario == scenario;
            let known: Vec<usize> = (0..self.points.len()).filter(own).collect();
            let Some(model) = Model::new(sweep, self, &known, &best, &values, &scale) else { continue };
            let places: Vec<Vec<f64>> = known.iter().map(|at| place(sweep, &self.points[*at])).collect();
            for point in pool.iter().filter(|point| point.scenario == scenario) {
                let place = place(sweep, point);
                let near = |(at, known): (&usize, &Vec<f64>)| (distance(&place, known), values[*at].is_none());
                let nearest =
                    known.iter().zip(&places).map(near).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let list = if nearest.is_some_and(|(_, failed)| failed) { &mut doubtful } else { &mut predicted };
                list.push((point.clone(), model.at(&place)));
            }
        }
        if predicted.is_empty() {
            predicted = doubtful;
        }
        let reference: Vec<f64> = vec![scale.worst(&values) + 0.1; sweep.objectives.len()];
        let mut chosen = Vec::new();
        while chosen.len() < most && !predicted.is_empty() {
            let base = hypervolume(&reached, &reference);
            let gain = |value: &Vec<f64>| {
                let with: Vec<&Vec<f64>> = reached.iter().chain([value]).collect();
                hypervolume(&with, &reference) - base
            };
            let gains: Vec<f64> = predicted.iter().map(|(_, value)| gain(value)).collect();
            let best = (0..gains.len()).reduce(|best, at| if gains[at] > gains[best] { at } else { best }).unwrap_or(0);
            let at = if gains[best] > 1e-9 { best } else { (uniform(&mut rng) * predicted.len() as f64) as usize };
            let (point, value) = predicted.swap_remove(at);
            reached.push(value);
            chosen.push(point);
        }
        chosen
    }

    /// Candidates: neighbours of the front, crossings of its points, and points at random.
    fn pool(&self, sweep: &Sweep, best: &[usize], rng: &mut Rng) -> Vec<Point> {
        let mut pool: Vec<Point> = best.iter().flat_map(|at| neighbours(sweep, &self.points[*at])).collect();
        for number in 0..POOL {
            let scenario = number % sweep.scenarios.len();
            let own: Vec<usize> = best.iter().copied().filter(|at| self.points[*at].scenario == scenario).collect();
            let pick = |rng: &mut Rng| own.get((uniform(rng) * own.len() as f64) as usize).map(|at| &self.points[*at]);
            let (Some(mother), Some(father)) = (pick(rng), pick(rng)) else {
                pool.extend(sample(sweep, scenario, 1, false, (self.generation << 12) + number as u64));
                continue;
            };
            let mut child = Point { repetition: 0, ..mother.clone() };
            for (at, axis) in sweep.scenarios[scenario].axes.iter().enumerate() {
                match uniform(rng) {
                    chance if chance < 0.3 => child.values[at].clone_from(&father.values[at]),
                    chance if chance < 0.6 => {
                        let place = uniform(rng);
                        child.values[at] = match &axis.levels {
                            Levels::List(list) => {
                                list[((place * list.len() as f64) as usize).min(list.len() - 1)].clone()
                            }
                            between @ Levels::Between { .. } => vec![between.at(place)],
                        };
                    }
                    _ => {}
                }
            }
            pool.push(child);
        }
        let mut seen = BTreeSet::new();
        pool.retain(|point| {
            let key = (point.scenario, point.values.clone());
            !self.seen.contains(&key) && passes(sweep, point) && seen.insert(key)
        });
        pool
    }
}

/// Where a point stands on each axis, from 0 to 1.
fn place(sweep: &Sweep, point: &Point) -> Vec<f64> {
    let axes = sweep.scenarios[point.scenario].axes.iter().zip(&point.values);
    let place = axes.map(|(axis, value)| match &axis.levels {
        Levels::List(list) => {
            let at = list.iter().position(|level| level == value).unwrap_or(0);
            at as f64 / (list.len().max(2) - 1) as f64
        }
        Levels::Between { .. } => axis.levels.place(value.first().map_or("", String::as_str)).unwrap_or(0.5),
    });
    place.collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// The points one or two steps away on one axis.
fn neighbours(sweep: &Sweep, point: &Point) -> Vec<Point> {
    let mut out = Vec::new();
    for (at, axis) in sweep.scenarios[point.scenario].axes.iter().enumerate() {
        let mut with = |value: Vec<String>| {
            let mut next = point.clone();
            next.values[at] = value;
            next.repetition = 0;
            out.push(next);
        };
        match &axis.levels {
            Levels::List(list) => {
                let Some(level) = list.iter().position(|level| *level == point.values[at]) else { continue };
                for step in [-2, -1, 1, 2] {
                    if let Some(next) = level.checked_add_signed(step).and_then(|next| list.get(next)) {
                        with(next.clone());
                    }
                }
            }
            between @ Levels::Between { .. } => {
                let Some(place) = between.place(&point.values[at][0]) else { continue };
                for step in [-0.1, -0.02, 0.02, 0.1] {
                    with(vec![between.at((place + step).clamp(0.0, 1.0))]);
                }
            }
        }
    }
    out
}

/// How values of objectives are brought to one scale: mean 0, deviation 1, of logarithms where all have one sign.
struct Scale {
    /// Whether all values are above 0, and whether all are below.
    signs: Vec<(bool, bool)>,
    /// Mean and deviation.
    spread: Vec<(f64, f64)>,
}

impl Scale {
    fn of(values: &[Option<Vec<f64>>]) -> Self {
        let known: Vec<&Vec<f64>> = values.iter().flatten().collect();
        let count = known.first().map_or(0, |value| value.len());
        let sign = |at: usize| (known.iter().all(|value| value[at] > 0.0), known.iter().all(|value| value[at] < 0.0));
        let mut scale = Self { signs: (0..count).map(sign).collect(), spread: vec![(0.0, 1.0); count] };
        for at in 0..count {
            let all: Vec<f64> = known.iter().map(|value| scale.logarithm(at, value[at])).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let square = all.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / all.len() as f64;
            scale.spread[at] = (mean, square.sqrt().max(1e-12));
        }
        scale
    }

    fn logarithm(&self, at: usize, value: f64) -> f64 {
        match self.signs[at] {
            (true, _) => value.ln(),
            (_, true) => -(-value).ln(),
            _ => value,
        }
    }

    fn of_value(&self, value: &[f64]) -> Vec<f64> {
        let scaled = |(at, value): (usize, &f64)| {
            let (mean, deviation) = self.spread[at];
            (self.logarithm(at, *value) - mean) / deviation
        };
        value.iter().enumerate().map(scaled).collect()
    }

    /// The worst of all values of all objectives.
    fn worst(&self, values: &[Option<Vec<f64>>]) -> f64 {
        values.iter().flatten().flat_map(|value| self.of_value(value)).fold(0.0, f64::max)
    }
}

/// Predicts objectives from places.
struct Model {
    places: Vec<Vec<f64>>,
    /// Of each objective: a weight for each place, then the constant and a slope for each axis.
    weights: Vec<Vec<f64>>,
}

impl Model {
    /// A model of one scenario; `None` if too little is known.
    fn new(
        sweep: &Sweep,
        search: &Pareto,
        known: &[usize],
        best: &[usize],
        values: &[Option<Vec<f64>>],
        scale: &Scale,
    ) -> Option<Self> {
        // The front, and what was measured last.
        let (on, off): (Vec<usize>, Vec<usize>) =
            known.iter().copied().filter(|at| values[*at].is_some()).partition(|at| best.contains(at));
        let room = MODELLED.saturating_sub(on.len());
        let taken: Vec<usize> = on.into_iter().chain(off.into_iter().rev().take(room)).take(MODELLED).collect();
        if taken.len() < 2 {
            return None;
        }
        let places: Vec<Vec<f64>> = taken.iter().map(|at| place(sweep, &search.points[*at])).collect();
        let measured: Vec<Vec<f64>> =
            taken.iter().filter_map(|at| values[*at].as_ref()).map(|value| scale.of_value(value)).collect();
        let (count, axes) = (places.len(), places[0].len());
        let size = count + axes + 1;
        let mut matrix = vec![vec![0.0; size]; size];
        for row in 0..count {
            for column in 0..count {
                matrix[row][column] = -distance(&places[row], &places[column]);
            }
            matrix[row][row] += RIDGE;
            for (column, value) in trend(&places[row]).enumerate() {
                matrix[row][count + column] = value;
                matrix[count + column][row] = value;
            }
        }
        for (at, row) in matrix.iter_mut().enumerate().skip(count) {
            row[at] = -RIDGE;
        }
        let sides = (0..sweep.objectives.len()).map(|objective| {
            let side = measured.iter().map(|value| value[objective]);
            side.chain(std::iter::repeat_n(0.0, axes + 1)).collect::<Vec<f64>>()
        });
        let weights = solve(matrix, sides.collect())?;
        Some(Self { places, weights })
    }

    fn at(&self, place: &[f64]) -> Vec<f64> {
        let basis: Vec<f64> = self.places.iter().map(|known| -distance(known, place)).chain(trend(place)).collect();
        self.weights.iter().map(|weights| weights.iter().zip(&basis).map(|(a, b)| a * b).sum()).collect()
    }
}

fn trend(place: &[f64]) -> impl Iterator<Item = f64> {
    std::iter::once(1.0).chain(place.iter().copied())
}

/// Solves equations for several right-hand sides by elimination with pivots; `None` if they have no single solution.
fn solve(mut matrix: Vec<Vec<f64>>, mut sides: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    for at in 0..size {
        let pivot =
            (at..size).reduce(|best, row| if matrix[row][at].abs() > matrix[best][at].abs() { row } else { best })?;
        matrix.swap(at, pivot);
        for side in &mut sides {
            side.swap(at, pivot);
        }
        let (above, below) = matrix.split_at_mut(at + 1);
        let top = &above[at];
        if top[at].abs() < 1e-12 {
            return None;
        }
        for (row, line) in below.iter_mut().enumerate() {
            let factor = line[at] / top[at];
            if factor != 0.0 {
                line[at..].iter_mut().zip(&top[at..]).for_each(|(value, top)| *value -= factor * top);
                for side in &mut sides {
                    side[at + 1 + row] -= factor * side[at];
                }
            }
        }
    }
    for side in &mut sides {
        for at in (0..size).rev() {
            let rest: f64 = (at + 1..size).map(|column| matrix[at][column] * side[column]).sum();
            side[at] = (side[at] - rest) / matrix[at][at];
        }
    }
    Some(sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved_with_pivots() {
        let matrix = vec![vec![0.0, 2.0, 1.0], vec![1.0, 1.0, 0.0], vec![3.0, 0.0, 1.0]];
        let found = solve(matrix, vec![vec![7.0, 3.0, 6.0], vec![0.0, 0.0, 0.0]]).unwrap();
        for (value, expected) in found[0].iter().zip([1.0, 2.0, 3.0]) {
            assert!((value - expected).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(found[1], [0.0; 3]);
        assert_eq!(solve(vec![vec![1.0, 1.0], vec![1.0, 1.0]], vec![vec![1.0, 2.0]]), None);
    }
}
