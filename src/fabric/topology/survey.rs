//! Figures of a layout: distances between end points, bisection, links by level.

use super::{Layout, Neighbours};
use crate::PlanLink;

/// What a layout measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// Switches.
    pub switches: usize,
    /// End points.
    pub end_points: usize,
    /// Links between switches.
    pub links: usize,
    /// Most links between the switches of two end points, or `None` if two cannot reach each other.
    pub diameter: Option<u32>,
    /// Mean links between the switches of two end points, over all ordered pairs, an end point with itself included
    /// (as uniform traffic counts).
    pub mean_distance: f64,
    /// Links, each way, that a cut through the middle of the system crosses; see [`survey`].
    pub bisection: usize,
    /// Whether distances were measured from every switch or only from some.
    pub sampled: bool,
}

/// More switches than these are not all starting points of a search.
const SOURCES: usize = 4096;

/// Measures a layout.
///
/// Distances are those of the links, whatever the routing. The bisection is the smallest of these cuts: the switches in
/// the order of their end points in two halves, and, along each axis of the drawing, the halves on either side. It is
/// an upper bound of the true one, and exact for even meshes, tori, HyperX and dragonflies. End points are halved, not
/// switches, so that a tree is cut between its leaves.
pub fn survey(layout: &Layout) -> Survey {
    let switches = layout.switches();
    let inner = |link: &&PlanLink| link.a.0.max(link.b.0) < switches as u32;
    let neighbours = Neighbours::new(&layout.plan);
    let mut ends = vec![0u64; switches];
    for place in &layout.ends {
        ends[place.switch as usize] += 1;
    }
    let hosts: Vec<usize> = (0..switches).filter(|&switch| ends[switch] > 0).collect();
    let step = hosts.len().div_ceil(SOURCES).max(1);
    let (mut sum, mut pairs, mut diameter, mut whole) = (0u128, 0u128, 0, true);
    let mut distance = vec![u32::MAX; switches];
    let mut queue = Vec::with_capacity(switches);
    for &from in hosts.iter().step_by(step) {
        distance.fill(u32::MAX);
        distance[from] = 0;
        queue.clear();
        queue.push(from as u32);
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            for port in 0..layout.external_ports {
                if let Some((to, _)) = neighbours.of(at, port).filter(|&(to, _)| (to as usize) < switches)
                    && distance[to as usize] == u32::MAX
                {
                    distance[to as usize] = distance[at as usize] + 1;
                    queue.push(to);
                }
            }
        }
        for &to in &hosts {
            if distance[to] == u32::MAX {
                whole = false;
            } else {
                diameter = diameter.max(distance[to]);
                sum += u128::from(distance[to]) * u128::from(ends[from] * ends[to]);
                pairs += u128::from(ends[from] * ends[to]);
            }
        }
    }
    Survey {
        switches,
        end_points: layout.ends.len(),
        links: layout.plan.links.iter().filter(inner).count(),
        diameter: whole.then_some(diameter),
        mean_distance: if pairs == 0 { 0.0 } else { sum as f64 / pairs as f64 },
        bisection: bisection(layout, &ends),
        sampled: step > 1,
    }
}

/// The smallest of a few cuts that halve the end points.
fn bisection(layout: &Layout, ends: &[u64]) -> usize {
    let switches = layout.switches();
    let total: u64 = ends.iter().sum();
    let mut orders: Vec<Vec<u32>> = vec![(0..switches as u32).collect()];
    for key in [|at: (f64, f64)| (at.0, at.1), |at: (f64, f64)| (at.1, at.0)] {
        let mut order: Vec<u32> = (0..switches as u32).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (key(layout.shape.position(a)), key(layout.shape.position(b)));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        orders.push(order);
    }
    let cut = |order: &Vec<u32>| -> usize {
        // Switches with end points go to the side their end points are on; the others to where more of their neighbours are.
        let mut side = vec![None; switches];
        let mut before = 0;
        for &switch in order.iter().filter(|&&switch| ends[switch as usize] > 0) {
            side[switch as usize] = Some(2 * before >= total);
            before += ends[switch as usize];
        }
        let mut links: Vec<(u32, u32)> = layout.plan.links.iter().map(|link| (link.a.0, link.b.0)).collect();
        links.retain(|&(a, b)| a.max(b) < switches as u32);
        let mut open = side.iter().filter(|side| side.is_none()).count();
        while open > 0 {
            let mut votes = vec![(0usize, 0usize); switches];
            for &(a, b) in &links {
                for (at, other) in [(a, b), (b, a)] {
                    match side[other as usize] {
                        Some(false) => votes[at as usize].0 += 1,
                        Some(true) => votes[at as usize].1 += 1,
                        None => {}
                    }
                }
            }
            let before = open;
            let mut balance = 0i64;
            for switch in 0..switches {
                if side[switch].is_none() && votes[switch] != (0, 0) {
                    let (left, right) = votes[switch];
                    // A tie goes to the smaller side, so that the tops of a tree are shared out.
                    let to = right > left || right == left && balance <= 0;
                    balance += if to { 1 } else { -1 };
                    side[switch] = Some(to);
                    open -= 1;
                }
            }
            if open == before {
                break;
            }
        }
        links.iter().filter(|&&(a, b)| side[a as usize] != side[b as usize]).count()
    };
    orders.iter().map(cut).min().unwrap_or(0)
}
