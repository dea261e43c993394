//! The ports of a plan as a journal numbers them: all of node 0, then all of node 1, and so on.

use watershed_fabric::Plan;

/// Whose each port is, and what is at the other end of its link.
pub(super) struct Ports<'a> {
    plan: &'a Plan,
    /// Port 0 of every node, and the number of all ports.
    bases: Vec<u32>,
    /// Twice the number of each port's link, and one more at its far end; [`NO_LINK`] without one.
    links: Vec<u32>,
}

const NO_LINK: u32 = u32::MAX;

impl<'a> Ports<'a> {
    /// Those of a plan.
    pub fn new(plan: &'a Plan) -> Ports<'a> {
        let mut bases = Vec::with_capacity(plan.nodes.len() + 1);
        let mut next = 0;
        for node in &plan.nodes {
            bases.push(next);
            next += u32::from(node.ports);
        }
        bases.push(next);
        let mut links = vec![NO_LINK; next as usize];
        for (number, link) in (0..).zip(&plan.links) {
            for (side, (node, port)) in (0..).zip([link.a, link.b]) {
                links[(bases[node as usize] + u32::from(port)) as usize] = 2 * number + side;
            }
        }
        Ports { plan, bases, links }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// Port 0 of a node.
    pub fn base(&self, node: u32) -> u32 {
        self.bases[node as usize]
    }

    /// The ports of a node.
    pub fn of(&self, node: u32) -> std::ops::Range<u32> {
        self.bases[node as usize]..self.bases[node as usize + 1]
    }

    /// The node of a port.
    pub fn node(&self, port: u32) -> u32 {
        self.bases.partition_point(|&base| base <= port) as u32 - 1
    }

    /// The other end of a port's link, its latency and the cycles a flit takes.
    pub fn peer(&self, port: u32) -> Option<(u32, u64, u64)> {
        let side = self.links[port as usize];
        if side == NO_LINK {
            return None;
        }
        let link = &self.plan.links[(side / 2) as usize];
        let (node, far) = if side.is_multiple_of(2) { link.b } else { link.a };
        Some((self.base(node) + u32::from(far), u64::from(link.latency), u64::from(link.cycles_per_flit)))
    }
}
