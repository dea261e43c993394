//! Links: their widths in a scenario, and the cycles that follow (requirements H-WIDTH-1, H-WIDTH-2).
//!
//! A flit of F bits crosses a link of W bits in ceil(F / W) cycles. F is the payload (`link.flit_bits`), and the header of a
//! collective flit where `link.header = "in-flit"` puts it there; by default it travels beside the flit on wires of its own.
//!
//! | key | link | default |
//! |---|---|---|
//! | `width_bits` | between switches | F |
//! | `local_width_bits` | between a switch and an end point | F |
//! | `socket_width_bits`, `node_width_bits` | between sockets of a node, between nodes | F |
//! | `subnode.width_bits` | between subnodes of a node | F |
//!
//! Older files give cycles instead of bits: `cycles_per_flit` for all links, and the same for sockets and nodes. They
//! keep their meaning, and a note names the widths that take as long.

use serde::Serialize;

use super::config::Latency;
use super::file::{HeaderFile, LinkFile, ReliabilityFile};
use super::source::Source;
use watershed_fabric::FlitSize;
use watershed_fabric::topology::LinkParams;

/// A link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// Between switches.
    pub latency: Latency,
    /// Between switch and end point.
    pub local_latency: Latency,
    /// Between two sockets of a node, where there are nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_latency: Option<Latency>,
    /// Between two neighbouring nodes, where there are nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_latency: Option<Latency>,
    /// Between two subnodes of a node, where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnode: Option<SubnodeLink>,
    /// Payload bits of a flit.
    pub flit_bits: u32,
    /// Bits a link between switches carries in a cycle, where that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width_bits: Option<u32>,
    /// The same of the link to an end point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_width_bits: Option<u32>,
    /// The same between two sockets of a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_width_bits: Option<u32>,
    /// The same between two nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_width_bits: Option<u32>,
    /// Where the header of a collective flit travels, where that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<HeaderFile>,
    /// Cycles a flit occupies a link between switches; derived from the width.
    pub cycles_per_flit: u32,
    /// The same of the link to an end point, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_cycles_per_flit: Option<u32>,
    /// The same between two sockets of a node, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_cycles_per_flit: Option<u32>,
    /// The same between two nodes, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_cycles_per_flit: Option<u32>,
    /// Link-layer replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliability: Option<ReliabilityFile>,
}

/// A link between two subnodes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SubnodeLink {
    /// Latency.
    pub latency: Latency,
    /// Bits that it carries in a cycle, where that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width_bits: Option<u32>,
    /// Cycles a flit occupies it; derived from the width.
    pub cycles_per_flit: u32,
}

impl Link {
    /// Bits of a collective flit's header: id (12), sequence number (36) and flags (5).
    pub const HEADER_BITS: u32 = 12 + 36 + 5;

    /// Bits that a flit takes on the wires of a link: its payload, and the header where that is not on a side band.
    pub fn wire_bits(&self) -> u32 {
        bits(self.flit_bits, self.header)
    }

    /// How frames are cut into flits.
    pub fn cut(&self) -> FlitSize {
        FlitSize::of_bits(self.flit_bits).unwrap_or_default()
    }

    /// Wires of the links of a level, where the scenario says so; a topology file may say otherwise for single links.
    pub fn width(&self, level: u8, levels: &[String]) -> Option<u32> {
        match levels.get(usize::from(level)).map(String::as_str) {
            Some("local") => self.local_width_bits,
            Some("inter-socket") => self.socket_width_bits,
            Some("inter-node") => self.node_width_bits,
            Some("inter-subnode") => self.subnode.and_then(|link| link.width_bits),
            _ => self.width_bits,
        }
    }

    /// Latency and width of links between switches.
    pub fn params(&self) -> LinkParams {
        LinkParams { latency: self.latency.cycles as u16, cycles_per_flit: self.cycles_per_flit as u16 }
    }

    /// Latency and width of links to end points.
    pub fn local_params(&self) -> LinkParams {
        let cycles_per_flit = self.local_cycles_per_flit.unwrap_or(self.cycles_per_flit) as u16;
        LinkParams { latency: self.local_latency.cycles as u16, cycles_per_flit }
    }
}

fn bits(payload: u32, header: Option<HeaderFile>) -> u32 {
    payload + if header == Some(HeaderFile::InFlit) { Link::HEADER_BITS } else { 0 }
}

/// Bits that a flit takes on the wires of a link, as a file says.
pub fn wire_bits(file: &LinkFile) -> u32 {
    bits(file.flit_bits, file.header)
}

/// Cycles that a flit of this many bits takes on this many wires.
pub fn cycles(bits: u32, width: u32) -> u32 {
    bits.div_ceil(width.max(1))
}

/// The narrowest link on which a flit of this many bits takes this many cycles, if there is one.
fn width_of(bits: u32, wanted: u32) -> Option<u32> {
    let width = bits.div_ceil(wanted.max(1));
    (cycles(bits, width) == wanted).then_some(width)
}

/// Cycles a flit takes, by kind of link: between switches, to end points, between sockets, between nodes; the last three where
/// they differ from the first.
pub fn derive(file: &LinkFile, bits: u32, nodes: bool) -> (u32, [Option<u32>; 3]) {
    let all = file.cycles_per_flit;
    let of = |width: Option<u32>, older: Option<u32>| match width {
        Some(width) => cycles(bits, width),
        None => older.unwrap_or(1),
    };
    let link = of(file.width_bits, all);
    let socket = of(file.socket_width_bits, file.socket_cycles_per_flit.or(all));
    let node = of(file.node_width_bits, file.node_cycles_per_flit.or(all));
    let differs = |cycles: u32| Some(cycles).filter(|&cycles| cycles != link);
    let local = differs(of(file.local_width_bits, all));
    (link, [local, differs(socket).filter(|_| nodes), differs(node).filter(|_| nodes)])
}

/// What to write instead of cycles, for flits of this many bits.
pub(super) fn width_suggestion(bits: u32, cycles: u32, widths: &[&str]) -> String {
    let named = |width: u32| {
        let all: Vec<String> = widths.iter().map(|name| format!("`{name} = {width}`")).collect();
        all.join(", ")
    };
    match width_of(bits, cycles) {
        Some(width) => format!("follows from the widths of links now: write {} instead", named(width)),
        None => format!(
            "follows from the widths of links now, and no width makes a flit of {bits} bits take {cycles} cycles; {} comes \
             nearest",
            named(bits.div_ceil(cycles).max(1))
        ),
    }
}

/// What a file that gives cycles is told: the widths that mean the same.
pub fn notes(source: &Source, link: &Link) -> Vec<String> {
    let bits = link.wire_bits();
    let keys = [
        ("cycles_per_flit", Some(link.cycles_per_flit), vec!["width_bits", "local_width_bits"]),
        (
            "socket_cycles_per_flit",
            link.socket_cycles_per_flit.or(Some(link.cycles_per_flit)),
            vec!["socket_width_bits"],
        ),
        ("node_cycles_per_flit", link.node_cycles_per_flit.or(Some(link.cycles_per_flit)), vec!["node_width_bits"]),
    ];
    let mut notes = Vec::new();
    for (key, cycles, mut widths) in keys {
        let Some(cycles) = cycles.filter(|_| source.has(&format!("link.{key}"))) else { continue };
        if key == "cycles_per_flit" && source.has("topology.sockets") {
            widths.extend(["socket_width_bits", "node_width_bits"]);
        }
        widths.retain(|name| !source.has(&format!("link.{name}")));
        let widths: Vec<String> = widths.iter().map(|name| format!("link.{name}")).collect();
        let widths: Vec<&str> = widths.iter().map(String::as_str).collect();
        notes.push(format!("`link.{key}` {}", width_suggestion(bits, cycles, &widths)));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flit_takes_the_cycles_of_its_width() {
        for (bits, width, expected) in [(64, 64, 1), (64, 63, 2), (64, 512, 1), (64, 8, 8), (64, 1, 64), (117, 64, 2)] {
            assert_eq!(cycles(bits, width), expected, "{bits} bits, {width} wires");
        }
    }

    #[test]
    fn a_width_is_named_for_every_number_of_cycles_that_has_one() {
        for wanted in 1..=64 {
            let exact: Vec<u32> = (1..=64).filter(|&width| cycles(64, width) == wanted).collect();
            assert_eq!(width_of(64, wanted), exact.first().copied(), "{wanted} cycles");
        }
        assert_eq!(width_of(64, 100), None);
    }

    #[test]
    fn older_cycles_hold_for_all_links_and_widths_for_their_own() {
        let file = |text: &str| toml::from_str::<LinkFile>(text).unwrap();
        assert_eq!(derive(&file("cycles_per_flit = 3"), 64, true), (3, [None; 3]));
        assert_eq!(
            derive(&file("cycles_per_flit = 3\nnode_cycles_per_flit = 8"), 64, true),
            (3, [None, None, Some(8)])
        );
        assert_eq!(derive(&file("width_bits = 16"), 64, true), (4, [Some(1); 3]));
        assert_eq!(derive(&file("width_bits = 16"), 64, false), (4, [Some(1), None, None]));
        assert_eq!(derive(&file("node_width_bits = 8"), 64, true), (1, [None, None, Some(8)]));
        assert_eq!(derive(&file(""), 117, false), (1, [None; 3]));
    }
}
