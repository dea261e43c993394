//! What topologies have in common whose switches are on a grid of any number of dimensions.
//!
//! Switches are numbered so that the first coordinate varies fastest, and named by their coordinates: `s3_1` is the one at x = 3, y = 1.
//! A side of 1 adds no ports.

use std::fmt::Write;

use super::{
    Common, Complaint, EndPlace, Parameter, Shape, Site, Topology, TopologyFile, TopologyKind, Wiring, shape_count,
};
use crate::routing::Algorithm;
use crate::{NodeKind, PlanNode};

/// The routing algorithms on a grid, the default first.
pub(super) const ALGORITHMS: &[Algorithm] =
    &[Algorithm::DimensionOrder, Algorithm::MinimalRandom, Algorithm::Valiant, Algorithm::Adaptive];

/// A topology on a grid, all of whose switches have as many end points.
pub(super) trait OnGrid {
    /// Its kind.
    const KIND: TopologyKind;
    /// Its name, for people.
    const NAME: &'static str;
    /// Whether it has the key `latency`.
    const LENGTHS: bool;
    /// The shortest side that still shows what is special about it.
    const LEAST: u32;

    /// Switches along each dimension.
    fn size(&self) -> &[u32];

    /// End points of a switch.
    fn concentration(&self) -> u16;

    /// Latencies, by dimension.
    fn wiring(&self) -> &Wiring;

    /// The first port of an end point.
    fn first_local_port(&self) -> u32;

    /// Switches, links and end points.
    fn grid_site(&self, common: &Common) -> Site;

    /// The same with other sides.
    fn resized(&self, size: Vec<u32>) -> Shape;

    /// Routing algorithms, the default first.
    fn grid_algorithms(&self) -> &'static [Algorithm] {
        ALGORITHMS
    }
}

impl<T: OnGrid> Topology for T {
    fn kind(&self) -> TopologyKind {
        T::KIND
    }

    fn site(&self, common: &Common) -> Site {
        self.grid_site(common)
    }

    fn switches(&self) -> Option<u64> {
        product(self.size())
    }

    fn end_points(&self) -> Option<u64> {
        self.switches()?.checked_mul(self.concentration().into())
    }

    fn ports(&self) -> u32 {
        self.first_local_port() + u32::from(self.concentration())
    }

    fn switch_name(&self, switch: u32) -> String {
        coordinate_name(self.size(), switch)
    }

    fn switch_by_numbers(&self, _: &str, numbers: &[u64]) -> Option<u64> {
        coordinate_number(self.size(), numbers)
    }

    fn end_place(&self, end: u32) -> EndPlace {
        EndPlace::on_equal_switches(end, self.concentration(), self.first_local_port())
    }

    fn describe(&self) -> String {
        format!("{} of {} switches", T::NAME, sides(self.size()))
    }

    fn position(&self, switch: u32) -> (f64, f64) {
        position(self.size(), switch)
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let own: [(_, Parameter); 2] = [("size", self.size().into()), ("concentration", self.concentration().into())];
        own.into_iter().chain(self.wiring().parameters(T::LENGTHS)).collect()
    }

    fn smaller(&self) -> Option<Shape> {
        shrink(self.size(), T::LEAST).map(|size| self.resized(size))
    }

    fn grid(&self) -> Option<(&[u32], u16)> {
        Some((self.size(), self.concentration()))
    }

    fn algorithms(&self) -> &'static [Algorithm] {
        self.grid_algorithms()
    }

    fn latency_kinds(&self) -> Option<(usize, &'static str)> {
        Some((self.size().len(), "dimensions"))
    }

    fn longest_link(&self, step: u64) -> (u64, u64) {
        (self.wiring().longest(step, self.size()), step)
    }
}

/// The sides of a grid; without them there is none.
pub(super) fn read_size(given: &TopologyFile, complaints: &mut Vec<Complaint>) -> Option<Vec<u32>> {
    let Some(size) = &given.size else {
        let what = format!("a {} has no default size", given.kind.name());
        let expected = "the switches along each dimension, for example [4, 4]";
        complaints.push(Complaint::missing("size", &what, expected));
        return None;
    };
    Some(size.iter().map(|&side| shape_count(side)).collect())
}

/// The product of the sides, or `None` if it overflows.
pub(super) fn product(size: &[u32]) -> Option<u64> {
    size.iter().try_fold(1u64, |product, &side| product.checked_mul(u64::from(side)))
}

/// The sides, for people.
pub(super) fn sides(size: &[u32]) -> String {
    size.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
}

/// The sides a step smaller, none of them below `least`; `None` if the longest cannot be.
fn shrink(size: &[u32], least: u32) -> Option<Vec<u32>> {
    let longest = *size.iter().max()?;
    // Parity stays: an even ring has ties, an odd one has none.
    (longest >= least + 2).then(|| {
        let cut = if longest > 8 { 8 - longest % 2 } else { longest - 2 };
        let one = |&side: &u32| match cut - (side + cut) % 2 {
            less if side > cut && less >= least => less,
            _ => side,
        };
        size.iter().map(one).collect()
    })
}

/// Short name of a switch by its coordinates.
fn coordinate_name(size: &[u32], switch: u32) -> String {
    let mut name = String::from("s");
    let mut rest = switch;
    for (dimension, &side) in size.iter().enumerate() {
        if dimension > 0 {
            name.push('_');
        }
        let _ = write!(name, "{}", rest % side);
        rest /= side;
    }
    name
}

/// The number of the switch with these coordinates.
pub(super) fn coordinate_number(size: &[u32], at: &[u64]) -> Option<u64> {
    let (mut number, mut stride) = (0, 1);
    for (&side, &at) in size.iter().zip(at) {
        if at >= u64::from(side) {
            return None;
        }
        number += at * stride;
        stride *= u64::from(side);
    }
    (size.len() == at.len()).then_some(number)
}

/// A drawing: the first two dimensions make a grid, the others a grid of grids.
pub(super) fn position(size: &[u32], switch: u32) -> (f64, f64) {
    let (mut rest, mut at, mut pitch) = (switch, [0.0, 0.0], [1.0, 1.0]);
    for (dimension, &side) in size.iter().enumerate() {
        let axis = dimension % 2;
        at[axis] += f64::from(rest % side) * pitch[axis];
        pitch[axis] *= f64::from(side) + 0.7;
        rest /= side;
    }
    (at[0], at[1])
}

/// Names of the levels: local links, then those of each dimension whose side is above 1.
pub(super) fn levels(size: &[u32]) -> Vec<String> {
    let live = size.iter().enumerate().filter(|(_, side)| **side > 1);
    let name = |d: usize| ["x", "y", "z"].get(d).map_or_else(|| format!("dim{d}"), |&s| s.into());
    std::iter::once("local".to_string()).chain(live.map(|(dimension, _)| name(dimension))).collect()
}

/// The switches of a grid, without links.
pub(super) fn switches(size: &[u32], external: u16, root: &str, engine: bool) -> Vec<PlanNode> {
    let count: u32 = size.iter().product();
    let node = |switch| {
        let name = coordinate_name(size, switch);
        let path = format!("{root}.{name}.switch");
        PlanNode { kind: NodeKind::Switch, ports: external + u16::from(engine), engine, name, path }
    };
    (0..count).map(node).collect()
}
