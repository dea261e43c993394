//! The ports of a plan as a journal numbers them: all of node 0, then all of node 1, and so on.

use crate::fabric::Plan;

/// Whose each port is, and what is at the other end of its link.
pub(super) struct Ports {
    /// Port 0 of every node.
    pub bases: Vec<u32>,
    /// Node of every port.
    pub nodes: Vec<u32>,
    /// The other end of every port's link, its latency and the cycles a flit takes.
    pub peers: Vec<Option<(u32, u64, u64)>>,
}

impl Ports {
    /// Those of a plan.
    pub fn new(plan: &Plan) -> Ports {
        let (mut bases, mut nodes) = (Vec::new(), Vec::new());
        for (number, node) in plan.nodes.iter().enumerate() {
            bases.push(nodes.len() as u32);
            nodes.extend((0..node.ports).map(|_| number as u32));
        }
        let mut peers = vec![None; nodes.len()];
        for link in &plan.links {
            let [a, b] = [link.a, link.b].map(|(node, port)| bases[node as usize] + u32::from(port));
            let (latency, flit) = (u64::from(link.latency), u64::from(link.cycles_per_flit));
            peers[a as usize] = Some((b, latency, flit));
            peers[b as usize] = Some((a, latency, flit));
        }
        Ports { bases, nodes, peers }
    }
}
