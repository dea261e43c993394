//! The topology of a scenario: a shape, and the names and numbers of what is in it.

use std::fmt::Write;

use watershed_fabric::topology::Shape;

/// A shape, and the names and numbers of what is in it. Cores of a die are numbered in the order of the core tiles'
/// switches; the first dimension of a grid runs fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The shape.
    pub shape: Shape,
    /// The file it comes from.
    pub file: Option<String>,
}

impl Topology {
    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.shape.switches().map_or(u32::MAX, |count| count as u32)
    }

    /// Number of end points.
    pub fn end_points(&self) -> u32 {
        self.shape.end_points().map_or(u32::MAX, |count| count as u32)
    }

    /// Ports of a switch without its engine.
    pub fn ports(&self) -> u32 {
        self.shape.ports()
    }

    /// Name of a switch by its number.
    pub fn switch_name(&self, switch: u32) -> String {
        self.shape.switch_name(switch)
    }

    /// Number of a switch by its name.
    pub fn switch_by_name(&self, name: &str) -> Option<u32> {
        self.shape.switch_by_name(name)
    }

    /// What names of switches look like, for messages.
    pub fn switch_names(&self) -> String {
        let last = self.switches() - 1;
        match &self.shape {
            Shape::Die(die) => {
                let cores = self.end_points() - 1;
                let mut text = format!("core0 to core{cores}");
                if die.tiles > 2 {
                    let _ = write!(text, ", sw0 to sw{}", u32::from(die.tiles - 2) * u32::from(die.positions) - 1);
                }
                text
            }
            Shape::Graph(graph) if graph.switches.len() <= 8 => {
                super::names::one_of(graph.switches.iter().map(|switch| &switch.name))
            }
            _ => format!("{} to {}", self.switch_name(0), self.switch_name(last)),
        }
    }

    /// The switch and the port at which an end point sits.
    pub fn end_point(&self, end_point: u32) -> (u32, u16) {
        let place = self.shape.end_place(end_point);
        (place.switch, place.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_fabric::topology::{Die, Dragonfly, FatTree, HyperX, Mesh, Torus, Wiring};

    fn topology(shape: Shape) -> Topology {
        Topology { shape, file: None }
    }

    fn die(tiles: u16, positions: u16) -> Topology {
        topology(Shape::Die(Die { tiles, positions }))
    }

    fn mesh(size: &[u32], concentration: u16) -> Topology {
        topology(Mesh { size: size.to_vec(), concentration }.wired(Wiring::default()))
    }

    #[test]
    fn a_die_is_a_row_of_tiles() {
        let die = die(4, 4);
        let names: Vec<String> = (0..16).map(|switch| die.switch_name(switch)).collect();
        assert_eq!(names.join(" "), "core0 core1 core2 core3 sw0 sw1 sw2 sw3 sw4 sw5 sw6 sw7 core4 core5 core6 core7");
        assert_eq!(die.end_points(), 8);
        assert_eq!(die.end_point(5), (13, 7));
        assert_eq!(die.switch_names(), "core0 to core7, sw0 to sw7");
    }

    #[test]
    fn names_and_numbers_of_switches_agree() {
        let tree = FatTree { arity: 3, levels: 3, concentration: 2, wiring: Wiring::default() };
        for topology in [
            die(1, 4),
            die(2, 2),
            die(5, 3),
            mesh(&[3, 4], 2),
            mesh(&[2, 1, 3], 1),
            topology(Shape::Torus(Torus { size: vec![3, 4], concentration: 2, wiring: Wiring::default() })),
            topology(Shape::HyperX(HyperX { size: vec![3, 4], concentration: 2, wiring: Wiring::default() })),
            topology(Shape::FatTree(tree)),
            topology(Shape::Dragonfly(Dragonfly::balanced(2))),
        ] {
            let common = watershed_fabric::topology::Common {
                vcs: watershed_fabric::Vcs { set: 0, unicast: 2 },
                engine: false,
                link: watershed_fabric::topology::LinkParams { latency: 1, cycles_per_flit: 1 },
                local: watershed_fabric::topology::LinkParams { latency: 1, cycles_per_flit: 1 },
            };
            let layout = topology.shape.layout(&common);
            assert_eq!(layout.plan.fault(), None);
            assert_eq!(
                (layout.switches() as u32, layout.ends.len() as u32),
                (topology.switches(), topology.end_points())
            );
            assert_eq!(u32::from(layout.external_ports), topology.ports());
            for switch in 0..topology.switches() {
                let name = topology.switch_name(switch);
                assert_eq!(topology.switch_by_name(&name), Some(switch), "{name}");
                assert_eq!(layout.plan.nodes[switch as usize].name, name);
            }
            for end_point in 0..topology.end_points() {
                let place = layout.ends[end_point as usize];
                assert_eq!(topology.end_point(end_point), (place.switch, place.port));
            }
            for stranger in
                ["", "core", "core99", "sw99", "s", "s1", "s0_0_0_0", "core00", "core+1", "s9_9", "t9_9", "g0_99"]
            {
                assert_eq!(topology.switch_by_name(stranger), None, "{stranger}");
            }
        }
    }

    #[test]
    fn a_mesh_has_ports_where_it_has_neighbours() {
        let mesh = mesh(&[4, 1, 2], 3);
        assert_eq!(mesh.ports(), 7);
        assert_eq!(mesh.end_points(), 24);
        assert_eq!(mesh.end_point(4), (1, 5));
        assert_eq!(mesh.switch_name(5), "s1_0_1");
    }
}
