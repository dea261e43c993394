//! The plan of a system before it is built: nodes, their ports, and the links between them.
//!
//! A plan is data only. Topologies make it, [`Network::new`](super::Network::new) turns it into arenas, and checks
//! read it. Nodes are numbered switches first, then bump-in-the-wire engines, then end points.

/// Nodes of a system at most: what is under way names the node it goes to with 24 bits.
pub const MAX_NODES: u32 = 1 << 24;

/// What a node of the graph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeKind {
    /// A switch; its last port is the internal engine port if it has one.
    Switch,
    /// An engine between two link halves: port 0 faces the switch it belongs to, port 1 the other side.
    Bump,
    /// An end point with one port, number 0.
    End,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNode {
    /// What it is.
    pub kind: NodeKind,
    /// Number of ports, including the internal engine port.
    pub ports: u16,
    /// Whether the last port is an internal engine port (switches only).
    pub engine: bool,
    /// Unique short name, as scenarios and reports use it: `core0`.
    pub name: String,
    /// Hierarchical name, segments separated by dots, as waves show it: `die.tile0.core0.switch`.
    pub path: String,
}

/// A bidirectional link: two channels of the same latency and width, one each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLink {
    /// One end: node and port.
    pub a: (u32, u16),
    /// The other end.
    pub b: (u32, u16),
    /// Latency of a flit and of a credit in cycles, at least 1.
    pub latency: u16,
    /// Cycles the link is busy with one flit, at least 1. More than 1 models a link narrower than a flit: the flit is
    /// complete at the far end `cycles_per_flit - 1` cycles later.
    pub cycles_per_flit: u16,
    /// Level in the hierarchy, an index into [`Plan::levels`], for reports.
    pub level: u8,
}

/// Virtual channels of every link: first those that are routed by sets (registers or multicast tables), then the
/// point-to-point ones. Set channels have strict priority over point-to-point channels, and a higher set channel over
/// a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Vcs {
    /// Number of set-routed (collective) channels: PIUMA has two, request 0 and response 1.
    pub set: u8,
    /// Number of point-to-point channels.
    pub unicast: u8,
}

impl Vcs {
    /// All channels of a link.
    pub fn total(self) -> u8 {
        self.set + self.unicast
    }

    /// Whether a channel is set-routed.
    pub fn is_set(self, vc: u8) -> bool {
        vc < self.set
    }
}

/// The whole system before it is built.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Virtual channels, the same on every link.
    pub vcs: Vcs,
    /// All nodes: switches, then bumps, then end points.
    pub nodes: Vec<PlanNode>,
    /// All links.
    pub links: Vec<PlanLink>,
    /// Names of the link levels, for instance `inter-tile`.
    pub levels: Vec<String>,
}

impl Plan {
    /// How many nodes are of a kind.
    pub fn count(&self, kind: NodeKind) -> usize {
        self.nodes.iter().filter(|node| node.kind == kind).count()
    }

    /// The switch of each end point, then that of each engine in the wire: the switch that its port 0 leads to, past
    /// other engines, or else its port 1. An end point without a link goes with the one before it. `None` if one of
    /// them leads to no switch.
    pub(super) fn hosts(&self) -> Option<Vec<u32>> {
        let switches = self.count(NodeKind::Switch) as u32;
        let others = (self.nodes.len() - self.count(NodeKind::End)) as u32;
        // What is on the other side of both ports of engines in the wire, and of the port of each end point.
        let mut far = vec![[None; 2]; self.nodes.len() - switches as usize];
        for link in &self.links {
            for ((node, port), peer) in [(link.a, link.b), (link.b, link.a)] {
                if let Some(at) = node.checked_sub(switches) {
                    far[at as usize][usize::from(port)] = Some(peer);
                }
            }
        }
        // Out by this port, and straight on through engines.
        let leads = |mut node: u32, mut port: u16| loop {
            let (next, side) = far[(node - switches) as usize][usize::from(port)]?;
            match next {
                _ if next < switches => return Some(next),
                _ if next >= others => return None,
                _ => (node, port) = (next, 1 - side),
            }
        };
        let mut before = 0;
        let mut hosts = Vec::with_capacity(far.len());
        for end in others..self.nodes.len() as u32 {
            let linked = far[(end - switches) as usize][0].is_some();
            before = if linked { leads(end, 0)? } else { before };
            hosts.push(before);
        }
        for bump in switches..others {
            hosts.push(leads(bump, 0).or_else(|| leads(bump, 1))?);
        }
        Some(hosts)
    }

    /// What is wrong with the plan, if anything: a bug of a topology, not of a user.
    pub fn fault(&self) -> Option<String> {
        if !self.nodes.is_sorted_by_key(|node| node.kind) {
            return Some("nodes must be switches, then bumps, then end points".into());
        }
        if self.nodes.len() > MAX_NODES as usize {
            return Some(format!("{} nodes are more than {MAX_NODES}", self.nodes.len()));
        }
        let mut base = Vec::with_capacity(self.nodes.len());
        let mut ports = 0usize;
        for node in &self.nodes {
            base.push(ports);
            ports += usize::from(node.ports);
        }
        let mut used = vec![false; ports];
        for link in &self.links {
            for (node, port) in [link.a, link.b] {
                let Some(at) = self.nodes.get(node as usize) else {
                    return Some(format!("link {link:?} names node {node} of {}", self.nodes.len()));
                };
                if port >= at.ports || (at.engine && port + 1 == at.ports) {
                    return Some(format!(
                        "link {link:?} names port {port} of {}, which has no such external port",
                        at.name
                    ));
                }
                if std::mem::replace(&mut used[base[node as usize] + usize::from(port)], true) {
                    return Some(format!("port {port} of {} has two links", at.name));
                }
            }
            if link.latency == 0 || link.cycles_per_flit == 0 {
                return Some(format!("link {link:?} needs a latency and a width of at least one cycle"));
            }
        }
        None
    }

    /// Puts a bump-in-the-wire engine on port `port` of switch `switch`. The link is cut in two halves: the half that
    /// faces the switch has latency `inner` and is as wide as a flit, so it takes a flit a cycle; the other keeps the
    /// link's latency and width. Returns the number of the bump among the bumps. All node numbers of end points move up
    /// by one.
    ///
    /// # Panics
    /// If the port has no link.
    pub fn insert_bump(&mut self, switch: u32, port: u16, inner: u16, name: &str) -> usize {
        let index = self.count(NodeKind::Switch) + self.count(NodeKind::Bump);
        let bumps = self.count(NodeKind::Bump);
        for link in &mut self.links {
            for end in [&mut link.a, &mut link.b] {
                if end.0 as usize >= index {
                    end.0 += 1;
                }
            }
        }
        self.nodes.insert(
            index,
            PlanNode { kind: NodeKind::Bump, ports: 2, engine: false, name: name.into(), path: name.into() },
        );
        let link = self
            .links
            .iter_mut()
            .find(|link| link.a == (switch, port) || link.b == (switch, port))
            .expect("a bump needs a link to sit on");
        let far = if link.a == (switch, port) { link.b } else { link.a };
        let half = PlanLink { a: (switch, port), b: (index as u32, 0), latency: inner, cycles_per_flit: 1, ..*link };
        *link = PlanLink { a: (index as u32, 1), b: far, ..*link };
        self.links.push(half);
        bumps
    }

    /// The far side of the bump that sits at a switch's port.
    ///
    /// # Panics
    /// If none does.
    pub fn beyond(&self, switch: u32, port: u16) -> (u32, u16) {
        let at = (switch, port);
        let far = self.links.iter().find_map(|link| match (link.a == at, link.b == at) {
            (true, _) => Some(link.b),
            (_, true) => Some(link.a),
            _ => None,
        });
        let (node, side) = far.expect("the port has a link");
        assert!(self.nodes[node as usize].kind == NodeKind::Bump, "a bump sits at the port");
        (node, 1 - side)
    }

    /// The last place before the far node of a switch's port: beyond the bumps that sit there.
    pub fn outermost(&self, switch: u32, port: u16) -> (u32, u16) {
        let mut at = (switch, port);
        loop {
            let far = self.links.iter().find_map(|link| match (link.a == at, link.b == at) {
                (true, _) => Some(link.b),
                (_, true) => Some(link.a),
                _ => None,
            });
            match far {
                Some((node, side)) if self.nodes[node as usize].kind == NodeKind::Bump => at = (node, 1 - side),
                _ => return at,
            }
        }
    }
}
