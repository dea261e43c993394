//! Who is at the far end of which port.

use super::{Nodes, Topology as _, die_port};
use crate::Plan;

/// Who is at the far end of every port, for many look-ups: a table, or arithmetic where a system has too many ports.
#[derive(Clone, Debug)]
pub struct Neighbours(FarEnds);

#[derive(Clone, Debug)]
enum FarEnds {
    Table { base: Vec<u32>, far: Vec<Option<(u32, u16)>> },
    Nodes { nodes: Nodes, switches: u32 },
}

impl Neighbours {
    /// The table of a plan.
    pub fn new(plan: &Plan) -> Neighbours {
        let mut base = Vec::with_capacity(plan.nodes.len());
        let mut ports = 0;
        for node in &plan.nodes {
            base.push(ports);
            ports += u32::from(node.ports);
        }
        let mut far = vec![None; ports as usize];
        for link in &plan.links {
            for (a, b) in [(link.a, link.b), (link.b, link.a)] {
                far[base[a.0 as usize] as usize + usize::from(a.1)] = Some(b);
            }
        }
        Neighbours(FarEnds::Table { base, far })
    }

    /// The neighbours in a system of nodes, by arithmetic; end points are its cores, numbered after the switches.
    ///
    /// # Panics
    /// If there are more switches than numbers for them.
    pub fn of_nodes(nodes: &Nodes) -> Neighbours {
        let switches = nodes.switches().and_then(|count| u32::try_from(count).ok()).expect("a size that was checked");
        Neighbours(FarEnds::Nodes { nodes: nodes.clone(), switches })
    }

    /// Node and port at the far end of a port; `None` if the port has no link or there is no such port.
    #[inline]
    pub fn of(&self, node: u32, port: u16) -> Option<(u32, u16)> {
        match &self.0 {
            FarEnds::Table { base, far } => {
                let next = base.get(node as usize + 1).copied().unwrap_or(far.len() as u32);
                let at = *base.get(node as usize)? + u32::from(port);
                if at < next { far[at as usize] } else { None }
            }
            FarEnds::Nodes { nodes, switches } if node < *switches => match port {
                die_port::LOCAL => nodes.end_of(node).map(|end| (switches + end, 0)),
                _ => nodes.link(node, port).map(|link| (link.switch, link.port)),
            },
            FarEnds::Nodes { nodes, switches } => {
                let end = node - switches;
                let place = (port == 0 && u64::from(end) < nodes.cores()?).then(|| nodes.end_place(end))?;
                Some((place.switch, place.port))
            }
        }
    }

    /// How many ports there are in all.
    pub fn ports(&self) -> usize {
        match &self.0 {
            FarEnds::Table { far, .. } => far.len(),
            FarEnds::Nodes { nodes, switches } => {
                *switches as usize * usize::from(nodes.switch_ports() + 1) + nodes.cores().unwrap_or(0) as usize
            }
        }
    }
}
