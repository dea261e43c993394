//! The PIUMA die (requirements P-TOPO-1 to P-TOPO-3; "In-network multicast operations", FIG. 1, Table 3).
//!
//! ```text
//!      tile 0               tile 1              tile 2               tile 3
//!  ┌─────────────┐  5  6 ┌───────────┐      ┌───────────┐       ┌─────────────┐
//!  │ core2  core3│═══════│ sw2   sw3 │══════│ sw6   sw7 │═══════│ core6  core7│   position 2 ── 3
//!  │    ╲ ╱      │═══════│    ╳      │══════│    ╳      │═══════│    ╲ ╱      │              ╳
//!  │ core0  core1│  8  9 │ sw0   sw1 │      │ sw4   sw5 │       │ core4  core5│   position 0 ── 1
//!  └─────────────┘       └───────────┘      └───────────┘       └─────────────┘
//! ```
//!
//! | port | what |
//! |---|---|
//! | 0, 1 | HSIO: leaves the die; free here, traffic end points may attach |
//! | 2, 3, 4 | X, Y and diagonal partner in the tile (position xor 1, 2, 3) |
//! | 5, 6 | inter-tile +X and -X, first link; position by position |
//! | 7 | local: the core; free on a peripheral switch |
//! | 8, 9 | inter-tile +X and -X, second link |
//! | 10 | the switch's collective engine |
//!
//! Point-to-point packets go to the right position within their tile first, then along the row over the first links.
//! Tiles and positions are parameters; with other than four tiles the first and the last are core tiles and all others
//! hold peripheral switches *chosen*.

use super::rule::Reader;
use super::site::join;
use super::{Common, EndPlace, Parameter, Shape, Site, Topology, TopologyFile, TopologyKind};
use crate::routing::Algorithm;
use crate::{NodeKind, Plan, PlanNode};

/// Port numbers of a die's switch.
pub mod port {
    /// First port that leaves the die.
    pub const HSIO0: u16 = 0;
    /// Second port that leaves the die.
    pub const HSIO1: u16 = 1;
    /// X partner; Y partner and diagonal partner follow.
    pub const X: u16 = 2;
    /// Y partner.
    pub const Y: u16 = 3;
    /// Diagonal partner.
    pub const DIAGONAL: u16 = 4;
    /// Inter-tile +X, first link.
    pub const PLUS: u16 = 5;
    /// Inter-tile -X, first link.
    pub const MINUS: u16 = 6;
    /// The core.
    pub const LOCAL: u16 = 7;
    /// Inter-tile +X, second link.
    pub const PLUS2: u16 = 8;
    /// Inter-tile -X, second link.
    pub const MINUS2: u16 = 9;
    /// The collective engine.
    pub const CENG: u16 = 10;
    /// Ports without the engine.
    pub const EXTERNAL: u16 = 10;
}

/// Level of local links in reports.
const LOCAL: u8 = 0;
/// Level of links within a tile.
const INTRA_TILE: u8 = 1;
/// Level of links between tiles.
const INTER_TILE: u8 = 2;

/// A die's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Die {
    /// Tiles in the row, at least 1; the paper's die has 4.
    pub tiles: u16,
    /// Positions in a tile, 1 to 4.
    pub positions: u16,
}

impl Default for Die {
    fn default() -> Die {
        Die { tiles: 4, positions: 4 }
    }
}

impl Die {
    /// That of the keys of a die, or of those of a system of nodes.
    pub(super) fn of(given: &TopologyFile) -> Die {
        Die { tiles: given.tiles.unwrap_or(4) as u16, positions: given.positions.unwrap_or(4) as u16 }
    }

    /// Whether a tile holds cores.
    pub fn is_core_tile(self, tile: u16) -> bool {
        tile == 0 || tile + 1 == self.tiles
    }

    /// Tile and position of a switch.
    pub fn place(self, switch: u32) -> (u16, u16) {
        ((switch / u32::from(self.positions)) as u16, (switch % u32::from(self.positions)) as u16)
    }
}

impl Topology for Die {
    fn kind(&self) -> TopologyKind {
        TopologyKind::Die
    }

    fn switches(&self) -> Option<u64> {
        Some(u64::from(self.tiles) * u64::from(self.positions))
    }

    fn end_points(&self) -> Option<u64> {
        Some(u64::from(self.tiles.min(2)) * u64::from(self.positions))
    }

    fn ports(&self) -> u32 {
        port::EXTERNAL.into()
    }

    /// `core0` … `sw0` … along the row.
    fn switch_name(&self, switch: u32) -> String {
        let (tile, position) = self.place(switch);
        let positions = u32::from(self.positions);
        match tile {
            0 => format!("core{position}"),
            last if last + 1 == self.tiles => format!("core{}", positions + u32::from(position)),
            _ => format!("sw{}", switch - positions),
        }
    }

    fn switch_by_numbers(&self, name: &str, numbers: &[u64]) -> Option<u64> {
        let [number] = *numbers else { return None };
        let positions = u64::from(self.positions);
        match name.starts_with("core") {
            true if number < positions => Some(number),
            true => number.checked_add(u64::from(self.tiles.max(2) - 2) * positions),
            false => number.checked_add(positions),
        }
    }

    fn end_place(&self, end: u32) -> EndPlace {
        let positions = u32::from(self.positions);
        let switch = if end < positions { end } else { (u32::from(self.tiles) - 2) * positions + end };
        EndPlace { switch, port: port::LOCAL }
    }

    fn describe(&self) -> String {
        format!("die of {} tiles x {} switches", self.tiles, self.positions)
    }

    fn position(&self, switch: u32) -> (f64, f64) {
        let (tile, position) = self.place(switch);
        (f64::from(tile) * 3.0 + f64::from(position % 2), f64::from(1 - position / 2))
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        vec![("tiles", self.tiles.into()), ("positions", self.positions.into())]
    }

    fn algorithms(&self) -> &'static [Algorithm] {
        &[Algorithm::DimensionOrder]
    }

    fn site(&self, common: &Common) -> Site {
        let Die { tiles, positions } = *self;
        let mut nodes = Vec::new();
        let mut ends = Vec::new();
        let (mut cores, mut peripheral) = (0, 0);
        for tile in 0..tiles {
            for _ in 0..positions {
                let name = if self.is_core_tile(tile) {
                    ends.push(EndPlace { switch: nodes.len() as u32, port: port::LOCAL });
                    cores += 1;
                    format!("core{}", cores - 1)
                } else {
                    peripheral += 1;
                    format!("sw{}", peripheral - 1)
                };
                let path = format!("die.tile{tile}.{name}.switch");
                let ports = port::EXTERNAL + u16::from(common.engine);
                nodes.push(PlanNode { kind: NodeKind::Switch, ports, engine: common.engine, name, path });
            }
        }
        let at = |tile: u16, position: u16| u32::from(tile) * u32::from(positions) + u32::from(position);
        let mut links = Vec::new();
        for tile in 0..tiles {
            for a in 0..positions {
                for b in a + 1..positions {
                    let out = port::X + (a ^ b) - 1;
                    links.push(join((at(tile, a), out), (at(tile, b), out), common.link, INTRA_TILE));
                }
            }
            if tile + 1 < tiles {
                for p in 0..positions {
                    for (plus, minus) in [(port::PLUS, port::MINUS), (port::PLUS2, port::MINUS2)] {
                        links.push(join((at(tile, p), plus), (at(tile + 1, p), minus), common.link, INTER_TILE));
                    }
                }
            }
        }
        let levels = ["local", "intra-tile", "inter-tile"].map(String::from).to_vec();
        debug_assert_eq!(levels[usize::from(LOCAL)], "local");
        let mut site = Site::new(Plan { vcs: common.vcs, nodes, links, levels }, cores, port::EXTERNAL);
        for place in ends {
            let switch = &site.plan.nodes[place.switch as usize];
            let name = format!("{}.memory", switch.name);
            let path = switch.path.replace(".switch", ".memory");
            site.push_end(place, common.local, name, path);
        }
        site
    }
}

/// How a die is read.
pub(super) const READER: Reader = Reader {
    called: "die",
    keys: &["tiles", "positions"],
    sized_by: |_| "tiles",
    read: |given, _, _| Some(Shape::Die(Die::of(given))),
};

#[cfg(test)]
mod tests {
    use super::super::{Layout, LinkParams};
    use super::*;
    use crate::Vcs;

    fn layout(die: Die) -> Layout {
        let link = LinkParams { latency: 5, cycles_per_flit: 1 };
        die.layout(&Common { vcs: Vcs { set: 2, unicast: 1 }, engine: true, link, local: link })
    }

    #[test]
    fn the_papers_die_has_eight_cores_and_eight_peripheral_switches() {
        let layout = layout(Die::default());
        assert_eq!(layout.plan.fault(), None);
        assert_eq!((layout.switches(), layout.cores), (16, 8));
        let names: Vec<&str> = layout.switch_names().collect();
        assert_eq!(names[..4], ["core0", "core1", "core2", "core3"]);
        assert_eq!(names[4..12], ["sw0", "sw1", "sw2", "sw3", "sw4", "sw5", "sw6", "sw7"]);
        assert_eq!(names[12..], ["core4", "core5", "core6", "core7"]);
    }

    #[test]
    fn partners_and_neighbours_are_those_of_table_3() {
        let layout = layout(Die::default());
        let far = |name: &str, port| {
            layout
                .neighbour(layout.switch(name).unwrap(), port)
                .map(|(node, port)| (layout.plan.nodes[node as usize].name.clone(), port))
        };
        let is = |name: &str, port| Some((name.to_string(), port));
        // X, Y and diagonal partner of core 0, each seen from both sides.
        assert_eq!(far("core0", 2), is("core1", 2));
        assert_eq!(far("core0", 3), is("core2", 3));
        assert_eq!(far("core0", 4), is("core3", 4));
        assert_eq!(far("core1", 4), is("core2", 4));
        assert_eq!(far("core3", 2), is("core2", 2));
        // Position by position over both links of a pair.
        assert_eq!(far("core0", 5), is("sw0", 6));
        assert_eq!(far("core0", 8), is("sw0", 9));
        assert_eq!(far("sw1", 5), is("sw5", 6));
        assert_eq!(far("sw7", 5), is("core7", 6));
        // HSIO ports are free, and so is the local port of a peripheral switch and the row's end.
        for (name, port) in [("core0", 0), ("sw3", 1), ("sw0", 7), ("core0", 6), ("core7", 5)] {
            assert_eq!(far(name, port), None, "{name}.P{port}");
        }
        assert_eq!(far("core5", 7), is("core5.memory", 0));
    }

    #[test]
    fn other_shapes_are_sound() {
        for tiles in 1..7 {
            for positions in 1..=4 {
                let layout = layout(Die { tiles, positions });
                assert_eq!(layout.plan.fault(), None);
                let core_tiles = usize::from(tiles.min(2));
                assert_eq!(layout.cores, core_tiles * usize::from(positions));
            }
        }
    }
}
