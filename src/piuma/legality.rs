//! What is checked of a configuration before cycle 0 (requirements P-SW-7, P-SW-9, K-PIPE-1), and the reduction tree
//! read back from the registers.
//!
//! The walk starts at the ports of those who send, follows the registers, and visits every register at most once, so
//! its cost is linear in their number. It refuses:
//!
//! | what | why |
//! |---|---|
//! | a port that has no link, or none of that number | the packet would go nowhere |
//! | an empty register on the way | likewise |
//! | two inputs that forward to one output without the engine | elements would be doubled |
//! | an engine whose configured inputs are not exactly those that are fed | it would wait for ever |
//! | a circle | packets would run for ever, or an engine would wait for itself |
//! | no root, or several | nobody, or several, would turn requests into responses |
//! | a result that misses a participant, or reaches somebody else | |
//! | two collectives of one id that share a link or an engine | P-SW-7 |
//!
//! What is read back is the evidence for the oracle: which contribution enters which engine by which port.

use super::{REQUEST, RESPONSE, Registers};
use crate::fabric::topology::{EndPlace, Neighbours};
use crate::oracle::Node;
use std::collections::{BTreeMap, BTreeSet};

/// A place in a configuration: a switch's input port on a channel, or its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// The switch.
    pub switch: u32,
    /// Request or response.
    pub channel: u8,
    /// The input port; the engine's own port stands for its result.
    pub port: u16,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// The register at fault, if one is.
    pub at: Option<At>,
    /// What is wrong, with names.
    pub message: String,
    /// What would be right.
    pub expected: String,
}

/// A collective as the check sees it.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Collective id.
    pub id: u16,
    /// Places of those who send.
    pub senders: &'a [EndPlace],
    /// Places of those who must receive, exactly; `None`: at least one of the members.
    pub receivers: Option<&'a [EndPlace]>,
    /// Places of all who take part.
    pub members: &'a [EndPlace],
    /// Whether the senders' packets are reduced (not: multicast from one).
    pub reduces: bool,
}

/// What a legal collective uses, and its tree.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// Links by sending switch, port and channel.
    pub links: BTreeSet<At>,
    /// Switches whose engine it uses.
    pub engines: BTreeSet<u32>,
    /// All switches it passes.
    pub switches: BTreeSet<u32>,
    /// Places the result reaches.
    pub reached: BTreeSet<EndPlace>,
    /// The switch where requests turn into responses.
    pub root: Option<u32>,
    /// The reduction as the engines do it; leaves are indices into the senders. `None` for a multicast.
    pub tree: Option<Node>,
}

/// Everything the walk needs.
struct Walk<'a> {
    registers: &'a Registers,
    neighbours: &'a Neighbours,
    claim: &'a Claim<'a>,
    engine: u16,
    radix: u8,
    /// Which input feeds an output of a switch on a channel.
    fed_by: BTreeMap<At, At>,
    /// Inputs of engines that were reached.
    engine_inputs: BTreeMap<u32, u64>,
    visited: BTreeSet<At>,
    footprint: Footprint,
}

/// Checks one collective on its own.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(
    registers: &Registers,
    neighbours: &Neighbours,
    radix: u8,
    claim: &Claim<'_>,
) -> Result<Footprint, Illegal> {
    let mut walk = Walk {
        registers,
        neighbours,
        claim,
        engine: registers.engine_port(),
        radix,
        fed_by: BTreeMap::new(),
        engine_inputs: BTreeMap::new(),
        visited: BTreeSet::new(),
        footprint: Footprint {
            links: BTreeSet::new(),
            engines: BTreeSet::new(),
            switches: BTreeSet::new(),
            reached: BTreeSet::new(),
            root: None,
            tree: None,
        },
    };
    walk.run()?;
    Ok(walk.footprint)
}

/// Checks that two legal collectives of one id are spatially disjoint.
///
/// # Errors
/// The first link or engine they share: the switch, and the port if it is a link.
pub fn disjoint(a: &Footprint, b: &Footprint) -> Result<(), (u32, Option<u16>)> {
    if let Some(&switch) = a.engines.intersection(&b.engines).next() {
        return Err((switch, None));
    }
    if let Some(at) = a.links.intersection(&b.links).next() {
        return Err((at.switch, Some(at.port)));
    }
    Ok(())
}

/// Whether two collectives meet at a switch, so that they must run one after the other if their ids differ.
pub fn meet(a: &Footprint, b: &Footprint) -> bool {
    a.switches.intersection(&b.switches).next().is_some()
}

impl Walk<'_> {
    fn name(&self, switch: u32) -> &str {
        self.registers.name(switch)
    }

    fn run(&mut self) -> Result<(), Illegal> {
        let mut work: Vec<At> = self
            .claim
            .senders
            .iter()
            .map(|place| At { switch: place.switch, channel: REQUEST, port: place.port })
            .collect();
        // Requests, engine by engine; then responses from the root.
        loop {
            while let Some(at) = work.pop() {
                self.follow(at, &mut work)?;
            }
            // Every engine all of whose configured inputs are fed produces a result.
            let ready: Vec<u32> = self
                .engine_inputs
                .iter()
                .filter(|&(&switch, &fed)| {
                    fed == self.registers.engine_inputs(switch, self.claim.id)
                        && !self.footprint.engines.contains(&switch)
                })
                .map(|(&switch, _)| switch)
                .collect();
            if ready.is_empty() {
                break;
            }
            for switch in ready {
                self.footprint.engines.insert(switch);
                let root = self.registers.is_root(switch, self.claim.id);
                if root && let Some(other) = self.footprint.root.replace(switch) {
                    let message = format!("both {} and {} are roots", self.name(other), self.name(switch));
                    let at = At { switch, channel: RESPONSE, port: self.engine };
                    return illegal(Some(at), message, "one engine with an empty request and a response vector");
                }
                work.push(At { switch, channel: if root { RESPONSE } else { REQUEST }, port: self.engine });
            }
        }
        self.starved()?;
        self.delivered()?;
        if self.claim.reduces {
            let Some(root) = self.footprint.root else {
                return illegal(
                    None,
                    "no engine is the root: nobody turns requests into responses".into(),
                    format!("one switch with an empty request vector and a response vector for I{}", self.engine),
                );
            };
            self.footprint.tree = Some(self.tree(root)?);
        }
        Ok(())
    }

    /// Follows one register to the inputs it feeds.
    fn follow(&mut self, at: At, work: &mut Vec<At>) -> Result<(), Illegal> {
        if !self.visited.insert(at) {
            return illegal(
                Some(at),
                format!("the registers form a circle through I{} of {}", at.port, self.name(at.switch)),
                "a tree",
            );
        }
        self.footprint.switches.insert(at.switch);
        let vector = self.registers.vector(at.switch, self.claim.id, at.channel, at.port);
        let channel = channel_name(at.channel);
        if vector == 0 {
            let (message, expected) = if at.port == self.engine {
                (
                    format!("the engine of {} has a result and no register says where it goes", self.name(at.switch)),
                    format!("a request vector for I{}, or at the root a response vector", self.engine),
                )
            } else {
                (
                    format!(
                        "a {channel} enters {} by port {}, whose {channel} register is empty",
                        self.name(at.switch),
                        at.port
                    ),
                    format!("a vector of output ports for I{}", at.port),
                )
            };
            return illegal(Some(at), message, expected);
        }
        for port in (0..=self.engine).filter(|port| vector >> port & 1 == 1) {
            if port == self.engine {
                if at.channel == RESPONSE || at.port == self.engine {
                    let message = format!(
                        "{} hands {} to its engine",
                        self.name(at.switch),
                        if at.channel == RESPONSE { "responses" } else { "the engine's own result" }
                    );
                    return illegal(Some(at), message, "requests from external ports only");
                }
                if at.port >= u16::from(self.radix) {
                    let message = format!(
                        "port {} of {} feeds an engine that was built for ports 0 to {}",
                        at.port,
                        self.name(at.switch),
                        self.radix - 1
                    );
                    return illegal(Some(at), message, "switch.ceng.radix above the port's number");
                }
                if !self.claim.reduces {
                    let message = format!("{} hands a multicast to its engine", self.name(at.switch));
                    return illegal(Some(at), message, "output ports only: a broadcast is not reduced");
                }
                *self.engine_inputs.entry(at.switch).or_default() |= 1 << at.port;
                continue;
            }
            let Some((far, by)) = self.neighbours.of(at.switch, port) else {
                let message = format!("port {port} of {} has no link", self.name(at.switch));
                return illegal(Some(at), message, "a port that leads somewhere");
            };
            let out = At { switch: at.switch, channel: at.channel, port };
            if let Some(other) = self.fed_by.insert(out, at) {
                let message = format!(
                    "I{} and I{} of {} both forward to port {port} without the engine",
                    other.port,
                    at.port,
                    self.name(at.switch)
                );
                return illegal(Some(at), message, format!("both in port {}, the engine", self.engine));
            }
            self.footprint.links.insert(out);
            if far < self.registers.switches() {
                work.push(At { switch: far, channel: at.channel, port: by });
            } else {
                self.footprint.reached.insert(EndPlace { switch: at.switch, port });
            }
        }
        Ok(())
    }

    /// Engines that are fed but can never fire.
    fn starved(&self) -> Result<(), Illegal> {
        for (&switch, &fed) in &self.engine_inputs {
            if self.footprint.engines.contains(&switch) {
                continue;
            }
            let configured = self.registers.engine_inputs(switch, self.claim.id);
            let port = (configured & !fed).trailing_zeros() as u16;
            let at = At { switch, channel: REQUEST, port };
            return illegal(
                Some(at),
                format!("the engine of {} would wait for port {port} for ever: nothing feeds it", self.name(switch)),
                format!("I{port} without port {}, or a neighbour that sends there", self.engine),
            );
        }
        Ok(())
    }

    /// The result must reach exactly those who are to get it.
    fn delivered(&self) -> Result<(), Illegal> {
        let reached = &self.footprint.reached;
        let members: BTreeSet<EndPlace> = self.claim.receivers.unwrap_or(self.claim.members).iter().copied().collect();
        let inverse = "response registers that are the inverse of the request registers";
        if self.claim.receivers.is_some() {
            if let Some(EndPlace { switch, port }) = members.difference(reached).next() {
                let message =
                    format!("the result does not reach port {port} of {}, which takes part", self.name(*switch));
                return illegal(None, message, inverse);
            }
        } else if reached.is_empty() {
            return illegal(None, "the result reaches nobody".into(), inverse);
        }
        if let Some(&EndPlace { switch, port }) = reached.difference(&members).next() {
            let message = format!("the result reaches port {port} of {}, where nobody waits for it", self.name(switch));
            let out = At { switch, channel: RESPONSE, port };
            let at = self.fed_by.get(&out).or_else(|| self.fed_by.get(&At { channel: REQUEST, ..out })).copied();
            return illegal(at, message, "only participants");
        }
        Ok(())
    }

    /// The tree above an engine's inputs, read from the registers.
    fn tree(&self, root: u32) -> Result<Node, Illegal> {
        // Engines from the leaves up, so that a long row does not need a deep call stack.
        let mut order = Vec::new();
        let mut work = vec![root];
        while let Some(switch) = work.pop() {
            order.push(switch);
            for port in self.inputs(switch) {
                if let Origin::Engine(child) = self.origin(switch, port) {
                    work.push(child);
                }
            }
        }
        let mut done: BTreeMap<u32, Node> = BTreeMap::new();
        for switch in order.into_iter().rev() {
            let mut inputs = Vec::new();
            for port in self.inputs(switch) {
                let node = match self.origin(switch, port) {
                    Origin::Engine(child) => done.remove(&child),
                    Origin::Sender(sender) => Some(Node::Leaf(sender)),
                    Origin::Nobody => None,
                };
                let Some(node) = node else {
                    let at = At { switch, channel: REQUEST, port };
                    let message = format!("nothing traces back from I{port} of {}", self.name(switch));
                    return illegal(Some(at), message, "a tree");
                };
                inputs.push((port as u8, node));
            }
            done.insert(
                switch,
                Node::Reduce { name: format!("{}.ceng", self.name(switch)), radix: self.radix, inputs },
            );
        }
        Ok(done.remove(&root).expect("the root was put in last"))
    }

    fn inputs(&self, switch: u32) -> Vec<u16> {
        let fed = self.engine_inputs.get(&switch).copied().unwrap_or(0);
        (0..64).filter(|port| fed >> port & 1 == 1).collect()
    }

    /// Who sends what enters a switch by a port: upstream through switches that only pass it on.
    fn origin(&self, switch: u32, port: u16) -> Origin {
        let (mut switch, mut port) = (switch, port);
        for _ in 0..=self.registers.switches() {
            let place = EndPlace { switch, port };
            if let Some(sender) = self.claim.senders.iter().position(|&sender| sender == place) {
                return Origin::Sender(sender);
            }
            let Some((far, out)) = self.neighbours.of(switch, port) else { return Origin::Nobody };
            let Some(input) = self.fed_by.get(&At { switch: far, channel: REQUEST, port: out }) else {
                return Origin::Nobody;
            };
            if input.port == self.engine {
                return Origin::Engine(far);
            }
            (switch, port) = (far, input.port);
        }
        Origin::Nobody
    }
}

fn illegal<T>(at: Option<At>, message: String, expected: impl Into<String>) -> Result<T, Illegal> {
    Err(Illegal { at, message, expected: expected.into() })
}

/// Where a request comes from.
enum Origin {
    Engine(u32),
    Sender(usize),
    Nobody,
}

/// `request` or `response`.
pub fn channel_name(channel: u8) -> &'static str {
    if channel == REQUEST { "request" } else { "response" }
}
