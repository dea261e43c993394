//! A mesh of any number of dimensions and any side, with any number of end points a switch.
//!
//! | port | what |
//! |---|---|
//! | 2k, 2k + 1 | + and - neighbour in the k-th dimension whose side is above 1 |
//! | then `concentration` ports | the end points |
//! | the last, if switches have an engine | the engine |
//!
//! A switch is named by its coordinates, `s3_1` for x = 3, y = 1; the first coordinate varies fastest in the order of
//! switches. A side of 1 adds no ports, so `size = [1]` with several end points is a single switch (a star). Ports at
//! the border have no link. Point-to-point packets correct the dimensions in order.

use super::{Common, EndPlace, Layout, join};
use crate::fabric::routing::Routing;
use crate::fabric::{NodeKind, Plan, PlanNode};

/// A mesh's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Side in each dimension, at least 1 each.
    pub size: Vec<u32>,
    /// End points of a switch, at least 1.
    pub concentration: u16,
}

impl Mesh {
    /// How many switches there are, or `None` if that overflows.
    pub fn switches(&self) -> Option<u64> {
        self.size.iter().try_fold(1u64, |product, &side| product.checked_mul(u64::from(side)))
    }

    /// Coordinates of a switch.
    pub fn coordinates(&self, switch: u32) -> Vec<u32> {
        let mut rest = switch;
        self.size
            .iter()
            .map(|&side| {
                let at = rest % side;
                rest /= side;
                at
            })
            .collect()
    }

    /// Number of the dimensions whose side is above 1.
    fn live_dimensions(&self) -> u16 {
        self.size.iter().filter(|&&side| side > 1).count() as u16
    }

    /// The first local port.
    pub fn first_local_port(&self) -> u16 {
        2 * self.live_dimensions()
    }

    /// The output port of a step from switch `at` towards switch `to`, dimension by dimension; `None` if they are the
    /// same.
    pub fn hop(&self, at: u32, to: u32) -> Option<u16> {
        let (mut at, mut to, mut port) = (at, to, 0);
        for &side in &self.size {
            let (a, b) = (at % side, to % side);
            if a != b {
                return Some(port + u16::from(b < a));
            }
            if side > 1 {
                port += 2;
            }
            at /= side;
            to /= side;
        }
        None
    }

    /// Lays the mesh out.
    pub fn layout(&self, common: &Common) -> Layout {
        let switches = self.switches().and_then(|n| u32::try_from(n).ok()).expect("scenario checks bound the size");
        let first_local = self.first_local_port();
        let external = first_local + self.concentration;
        let nodes = (0..switches)
            .map(|switch| {
                let at: Vec<String> = self.coordinates(switch).iter().map(u32::to_string).collect();
                let name = format!("s{}", at.join("_"));
                let path = format!("mesh.{name}.switch");
                let ports = external + u16::from(common.engine);
                PlanNode { kind: NodeKind::Switch, ports, engine: common.engine, name, path }
            })
            .collect();
        let mut links = Vec::new();
        let mut levels = vec!["local".to_string()];
        let (mut stride, mut port) = (1, 0);
        for (dimension, &side) in self.size.iter().enumerate() {
            if side > 1 {
                levels.push(["x", "y", "z"].get(dimension).map_or_else(|| format!("dim{dimension}"), |&s| s.into()));
                let level = levels.len() as u8 - 1;
                for switch in 0..switches {
                    if switch / stride % side + 1 < side {
                        links.push(join((switch, port), (switch + stride, port + 1), common.link, level));
                    }
                }
                port += 2;
            }
            stride *= side;
        }
        let mut layout = Layout {
            plan: Plan { vcs: common.vcs, nodes, links, levels },
            routing: Routing::Mesh(self.clone()),
            ends: Vec::new(),
            cores: switches as usize * usize::from(self.concentration),
            external_ports: external,
        };
        for switch in 0..switches {
            for local in 0..self.concentration {
                let node = &layout.plan.nodes[switch as usize];
                let leaf = if self.concentration == 1 { "node".to_string() } else { format!("node{local}") };
                let name = format!("{}.{leaf}", node.name);
                let path = node.path.replace(".switch", &format!(".{leaf}"));
                layout.push_end(EndPlace { switch, port: first_local + local }, common.local, name, path);
            }
        }
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::super::LinkParams;
    use super::*;
    use crate::fabric::Vcs;

    #[test]
    fn sizes_names_and_ports() {
        let link = LinkParams { latency: 1, cycles_per_flit: 1 };
        let common = Common { vcs: Vcs { set: 0, unicast: 2 }, engine: false, link, local: link };
        let mesh = Mesh { size: vec![4, 3], concentration: 2 };
        let layout = mesh.layout(&common);
        assert_eq!(layout.plan.fault(), None);
        assert_eq!((layout.switches(), layout.cores, layout.external_ports), (12, 24, 6));
        assert_eq!(layout.switch("s3_1"), Some(7));
        assert_eq!(layout.neighbour(7, 1), Some((6, 0)), "-x");
        assert_eq!(layout.neighbour(7, 0), None, "the border");
        assert_eq!(layout.neighbour(7, 2), Some((11, 3)), "+y");
        assert_eq!(layout.end_at(EndPlace { switch: 7, port: 5 }), Some(15));
        for size in [vec![1], vec![5], vec![1, 6], vec![2, 2, 2], vec![3, 1, 2, 2]] {
            for concentration in [1, 3] {
                let layout = Mesh { size: size.clone(), concentration }.layout(&common);
                assert_eq!(layout.plan.fault(), None, "{size:?}");
            }
        }
    }
}
