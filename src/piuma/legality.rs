//! The checks of a configuration before cycle 0 (requirements P-SW-7, P-SW-9, K-PIPE-1), and the reduction tree read
//! back from the registers.
//!
//! The walk starts at the ports of the senders, follows the registers, and visits every register at most once, so its
//! cost is linear in their number. It refuses:
//!
//! | configuration | why |
//! |---|---|
//! | a port that has no link, or none of that number | the packet would go nowhere |
//! | an empty register on the way | likewise |
//! | two inputs that forward to one output without the engine | elements would arrive unreduced, or a result would arrive twice |
//! | a request of a reduction that takes two ways | its contribution would be reduced twice |
//! | a request of a reduction that leaves by an end point's port | the end point would take it for a result |
//! | an engine whose configured inputs are not exactly those that are fed | it would wait for ever |
//! | a circle | packets would run for ever, or an engine would wait for itself |
//! | no root, or several | no switch, or several, would turn requests into responses |
//! | a result that misses a participant, or reaches another end point | the participant would wait for ever; the other would get a result it did not ask for |
//! | two collectives of one id that share a link or an engine | P-SW-7 |
//!
//! What counts as a delivery depends on the channel: a reduction delivers by responses only, a multicast, which has no
//! response phase (P-MC-1), by requests.
//!
//! The oracle computes from the tree that is read back: which contribution enters which engine by which port.

use super::{REQUEST, RESPONSE, Registers};
use watershed_fabric::topology::{EndPlace, Neighbours};
use watershed_oracle::{EngineList, Source};
pub use watershed_piuma_interface::channels::channel_name;

/// A place in a configuration: a switch's input port on a channel, or its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, watershed_state::Saved)]
pub struct ConfigPoint {
    /// The switch.
    pub switch: u32,
    /// Request or response.
    pub channel: u8,
    /// The input port; the engine's own port means its result.
    pub port: u16,
}

/// A violation of the rules in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalityError {
    /// The register at fault, if one is.
    pub at: Option<ConfigPoint>,
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

/// What a legal collective uses, and its tree. Every list is ascending and has nothing twice.
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Footprint {
    /// Links by sending switch, port and channel.
    pub links: Vec<ConfigPoint>,
    /// Switches whose engine it uses.
    pub engines: Vec<u32>,
    /// All switches it passes.
    pub switches: Vec<u32>,
    /// Places that send, ascending.
    pub sent: Vec<EndPlace>,
    /// Places the result reaches.
    pub reached: Vec<EndPlace>,
    /// The switch where requests turn into responses.
    pub root: Option<u32>,
    /// The reduction as the engines do it: engines are numbered as their switches, contributions as the senders. `None`
    /// for a multicast.
    pub tree: Option<EngineList>,
}

/// Everything the walk needs. What it notes is indexed by switch, so that millions of switches cost a word each.
struct Walk<'a> {
    registers: &'a Registers,
    neighbours: &'a Neighbours,
    claim: &'a Claim<'a>,
    /// Places of the senders, sorted, with their numbers.
    senders: Vec<(EndPlace, usize)>,
    engine: u16,
    radix: u8,
    /// By (switch, channel, output port): the input that feeds it, plus one; 0: none.
    fed_by: Vec<u8>,
    /// Inputs of engines that were reached.
    engine_inputs: Vec<u64>,
    /// Engines all of whose configured inputs are fed and that have not been looked at.
    complete: Vec<u32>,
    /// Engines that produce a result.
    fires: Vec<bool>,
    /// By (switch, channel): input ports that were followed.
    visited: Vec<u64>,
    reached: Vec<EndPlace>,
    root: Option<u32>,
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
) -> Result<Footprint, LegalityError> {
    let switches = registers.switches() as usize;
    let mut senders: Vec<(EndPlace, usize)> =
        claim.senders.iter().enumerate().map(|(number, &place)| (place, number)).collect();
    senders.sort_unstable();
    let ports = usize::from(registers.engine_port()) + 1;
    let mut walk = Walk {
        registers,
        neighbours,
        claim,
        senders,
        engine: registers.engine_port(),
        radix,
        fed_by: vec![0; switches * 2 * ports],
        engine_inputs: vec![0; switches],
        complete: Vec::new(),
        fires: vec![false; switches],
        visited: vec![0; switches * 2],
        reached: Vec::new(),
        root: None,
    };
    let tree = walk.run()?;
    let present = |flags: &[bool]| -> Vec<u32> {
        flags.iter().enumerate().filter(|(_, set)| **set).map(|(switch, _)| switch as u32).collect()
    };
    let fed = walk.fed_by.iter().enumerate().filter(|(_, input)| **input != 0);
    let links = fed.map(|(at, _)| ConfigPoint {
        switch: (at / ports / 2) as u32,
        channel: (at / ports % 2) as u8,
        port: (at % ports) as u16,
    });
    let passed = walk.visited.chunks(2).enumerate().filter(|(_, visited)| visited[0] | visited[1] != 0);
    Ok(Footprint {
        links: links.collect(),
        engines: present(&walk.fires),
        switches: passed.map(|(switch, _)| switch as u32).collect(),
        sent: walk.senders.iter().map(|&(place, _)| place).collect(),
        reached: walk.reached,
        root: walk.root,
        tree,
    })
}

/// The first element that two ascending lists share.
fn common<T: Ord + Copy>(a: &[T], b: &[T]) -> Option<T> {
    let (mut a, mut b) = (a, b);
    while let ([x, rest @ ..], [y, others @ ..]) = (a, b) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => a = rest,
            std::cmp::Ordering::Greater => b = others,
            std::cmp::Ordering::Equal => return Some(*x),
        }
    }
    None
}

/// Checks that two legal collectives of one id are spatially disjoint.
///
/// # Errors
/// The first link or engine they share: the switch, and the port if it is a link.
pub fn disjoint(a: &Footprint, b: &Footprint) -> Result<(), (u32, Option<u16>)> {
    if let Some(switch) = common(&a.engines, &b.engines) {
        return Err((switch, None));
    }
    if let Some(at) = common(&a.links, &b.links) {
        return Err((at.switch, Some(at.port)));
    }
    Ok(())
}

/// Whether two collectives meet, so that they must run one after the other if their ids differ: at a link, on whichever channels
/// and that of a core that sends among them, or at an engine. Where they pass a switch by different ports they have no input and no
/// output in common, and neither costs the other a cycle.
pub fn meet(a: &Footprint, b: &Footprint) -> bool {
    common(&a.engines, &b.engines).is_some() || common(&a.sent, &b.sent).is_some() || share_a_link(&a.links, &b.links)
}

/// Whether two ascending lists of links have one in common, whatever its channel.
fn share_a_link(a: &[ConfigPoint], b: &[ConfigPoint]) -> bool {
    let [mut a, mut b] = [a, b].map(|links| links.chunk_by(|one, next| one.switch == next.switch).peekable());
    let ports = |links: &[ConfigPoint]| links.iter().fold(0u64, |ports, at| ports | 1 << at.port);
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        match x[0].switch.cmp(&y[0].switch) {
            std::cmp::Ordering::Less => _ = a.next(),
            std::cmp::Ordering::Greater => _ = b.next(),
            std::cmp::Ordering::Equal if ports(x) & ports(y) != 0 => return true,
            std::cmp::Ordering::Equal => _ = (a.next(), b.next()),
        }
    }
    false
}

impl Walk<'_> {
    fn name(&self, switch: u32) -> std::borrow::Cow<'_, str> {
        self.registers.name(switch)
    }

    /// Where the input that feeds an output is noted.
    fn output(&self, switch: u32, channel: u8, port: u16) -> usize {
        (switch as usize * 2 + usize::from(channel)) * (usize::from(self.engine) + 1) + usize::from(port)
    }

    /// The input that feeds an output.
    fn feeder(&self, switch: u32, channel: u8, port: u16) -> Option<ConfigPoint> {
        let input = self.fed_by[self.output(switch, channel, port)];
        (input != 0).then(|| ConfigPoint { switch, channel, port: u16::from(input) - 1 })
    }

    /// Walks the registers; the tree that the engines make, for a reduction.
    fn run(&mut self) -> Result<Option<EngineList>, LegalityError> {
        let mut work: Vec<ConfigPoint> = self
            .claim
            .senders
            .iter()
            .map(|place| ConfigPoint { switch: place.switch, channel: REQUEST, port: place.port })
            .collect();
        // Requests, engine by engine; then responses from the root.
        loop {
            while let Some(at) = work.pop() {
                self.follow(at, &mut work)?;
            }
            // Every engine all of whose configured inputs are fed produces a result.
            let mut ready = std::mem::take(&mut self.complete);
            if ready.is_empty() {
                break;
            }
            ready.sort_unstable();
            for switch in ready {
                self.fires[switch as usize] = true;
                let root = self.registers.is_root(switch, self.claim.id);
                if root && let Some(other) = self.root.replace(switch) {
                    let message = format!("both {} and {} are roots", self.name(other), self.name(switch));
                    let at = ConfigPoint { switch, channel: RESPONSE, port: self.engine };
                    return illegal(Some(at), message, "one engine with an empty request and a response vector");
                }
                work.push(ConfigPoint { switch, channel: if root { RESPONSE } else { REQUEST }, port: self.engine });
            }
        }
        // Every port is fed once, on the one channel that delivers: nobody is reached twice.
        self.reached.sort_unstable();
        self.starved()?;
        self.delivered()?;
        if !self.claim.reduces {
            return Ok(None);
        }
        let Some(root) = self.root else {
            return illegal(
                None,
                "no engine is the root: nobody turns requests into responses".into(),
                format!("one switch with an empty request vector and a response vector for I{}", self.engine),
            );
        };
        self.tree(root).map(Some)
    }

    /// Follows one register to the inputs it feeds.
    fn follow(&mut self, at: ConfigPoint, work: &mut Vec<ConfigPoint>) -> Result<(), LegalityError> {
        let visited = &mut self.visited[at.switch as usize * 2 + usize::from(at.channel)];
        let before = *visited;
        *visited |= 1 << at.port;
        if before == *visited {
            return illegal(
                Some(at),
                format!("the registers form a circle through I{} of {}", at.port, self.name(at.switch)),
                "a tree",
            );
        }
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
                let fed = &mut self.engine_inputs[at.switch as usize];
                *fed |= 1 << at.port;
                if *fed == self.registers.engine_inputs(at.switch, self.claim.id) {
                    self.complete.push(at.switch);
                }
                continue;
            }
            let Some((far, by)) = self.neighbours.of(at.switch, port) else {
                let message = format!("port {port} of {} has no link", self.name(at.switch));
                return illegal(Some(at), message, "a port that leads somewhere");
            };
            let leaves = far >= self.registers.switches();
            if leaves && self.claim.reduces && at.channel == REQUEST {
                let message = format!(
                    "I{} of {} sends a request out of port {port}, where an end point would take it for a result",
                    at.port,
                    self.name(at.switch)
                );
                return illegal(Some(at), message, format!("port {}, the engine, or a link to a switch", self.engine));
            }
            let out = self.output(at.switch, at.channel, port);
            let other = std::mem::replace(&mut self.fed_by[out], at.port as u8 + 1);
            if other != 0 {
                return self.doubled(at, u16::from(other - 1), port, leaves);
            }
            if leaves {
                self.reached.push(EndPlace { switch: at.switch, port });
            } else {
                work.push(ConfigPoint { switch: far, channel: at.channel, port: by });
            }
        }
        if self.claim.reduces && at.channel == REQUEST && vector.count_ones() > 1 {
            let message = format!(
                "I{} of {} sends a request two ways, by ports {} and {}: it would be reduced twice",
                at.port,
                self.name(at.switch),
                vector.trailing_zeros(),
                (vector & (vector - 1)).trailing_zeros()
            );
            return illegal(Some(at), message, "one port: requests go up the tree by one way");
        }
        Ok(())
    }

    /// Two inputs feed one output: a link would carry elements twice, or an end point get them twice.
    fn doubled(&self, at: ConfigPoint, other: u16, port: u16, leaves: bool) -> Result<(), LegalityError> {
        let name = self.name(at.switch);
        if leaves {
            let message = format!("the result arrives twice at port {port} of {name}, by I{other} and by I{}", at.port);
            return illegal(Some(at), message, format!("port {port} in one {} register", channel_name(at.channel)));
        }
        let message = format!("I{other} and I{} of {name} both forward to port {port} without the engine", at.port);
        illegal(Some(at), message, format!("both in port {}, the engine", self.engine))
    }

    /// Engines that are fed but can never fire.
    fn starved(&self) -> Result<(), LegalityError> {
        for (switch, &fed) in self.engine_inputs.iter().enumerate() {
            if fed == 0 || self.fires[switch] {
                continue;
            }
            let switch = switch as u32;
            let configured = self.registers.engine_inputs(switch, self.claim.id);
            let port = (configured & !fed).trailing_zeros() as u16;
            let at = ConfigPoint { switch, channel: REQUEST, port };
            return illegal(
                Some(at),
                format!("the engine of {} would wait for port {port} for ever: nothing feeds it", self.name(switch)),
                format!("I{port} without port {}, or a neighbour that sends there", self.engine),
            );
        }
        Ok(())
    }

    /// The result must reach exactly those who are to get it.
    fn delivered(&self) -> Result<(), LegalityError> {
        let reached = &self.reached;
        let mut members = self.claim.receivers.unwrap_or(self.claim.members).to_vec();
        members.sort_unstable();
        let inverse = if self.claim.reduces {
            "response registers that are the inverse of the request registers"
        } else {
            "request registers that lead to every receiver"
        };
        if self.claim.receivers.is_some() {
            if let Some(EndPlace { switch, port }) = members.iter().find(|at| reached.binary_search(at).is_err()) {
                let message =
                    format!("the result does not reach port {port} of {}, which takes part", self.name(*switch));
                return illegal(None, message, inverse);
            }
        } else if reached.is_empty() {
            return illegal(None, "the result reaches nobody".into(), inverse);
        }
        if let Some(&EndPlace { switch, port }) = reached.iter().find(|at| members.binary_search(at).is_err()) {
            let message = format!("the result reaches port {port} of {}, where nobody waits for it", self.name(switch));
            let at = self.feeder(switch, RESPONSE, port).or_else(|| self.feeder(switch, REQUEST, port));
            return illegal(at, message, "only participants");
        }
        Ok(())
    }

    /// The tree above an engine's inputs, read from the registers.
    fn tree(&self, root: u32) -> Result<EngineList, LegalityError> {
        // Engines from the leaves up, so that a long row does not need a deep call stack.
        let mut order: Vec<(u32, u32)> = Vec::new();
        let mut work = vec![root];
        // What enters each engine, the last engine's first.
        let mut sources: Vec<(u8, Source)> = Vec::new();
        while let Some(switch) = work.pop() {
            order.push((switch, sources.len() as u32));
            for port in self.inputs(switch) {
                let source = match self.origin(switch, port) {
                    Origin::Engine(child) => {
                        work.push(child);
                        Source::Engine(child as usize)
                    }
                    Origin::Sender(sender) => Source::Leaf(sender),
                    Origin::Nobody => {
                        let at = ConfigPoint { switch, channel: REQUEST, port };
                        let message = format!("nothing traces back from I{port} of {}", self.name(switch));
                        return illegal(Some(at), message, "a tree");
                    }
                };
                sources.push((port as u8, source));
            }
        }
        let mut list = EngineList::new(self.radix).with_capacity(order.len(), sources.len());
        let mut places = vec![0u32; self.engine_inputs.len()];
        for (switch, first) in order.into_iter().rev() {
            places[switch as usize] = list.len() as u32;
            list.begin(switch);
            for (port, source) in sources.drain(first as usize..) {
                let source = match source {
                    Source::Engine(child) => Source::Engine(places[child] as usize),
                    leaf @ Source::Leaf(_) => leaf,
                };
                list.put(port, source);
            }
        }
        Ok(list)
    }

    fn inputs(&self, switch: u32) -> impl Iterator<Item = u16> + use<> {
        let mut fed = self.engine_inputs[switch as usize];
        std::iter::from_fn(move || {
            let port = (fed != 0).then(|| fed.trailing_zeros() as u16)?;
            fed &= fed - 1;
            Some(port)
        })
    }

    /// Who sends what enters a switch by a port: upstream through switches that only pass it on.
    fn origin(&self, switch: u32, port: u16) -> Origin {
        let (mut switch, mut port) = (switch, port);
        for _ in 0..=self.registers.switches() {
            let far = self.neighbours.of(switch, port).filter(|(far, _)| *far < self.registers.switches());
            let Some((far, out)) = far else {
                let place = EndPlace { switch, port };
                let sender = self.senders.binary_search_by_key(&place, |&(sender, _)| sender);
                return sender.map_or(Origin::Nobody, |at| Origin::Sender(self.senders[at].1));
            };
            let Some(input) = self.feeder(far, REQUEST, out) else { return Origin::Nobody };
            if input.port == self.engine {
                return Origin::Engine(far);
            }
            (switch, port) = (far, input.port);
        }
        Origin::Nobody
    }
}

fn illegal<T>(at: Option<ConfigPoint>, message: String, expected: impl Into<String>) -> Result<T, LegalityError> {
    Err(LegalityError { at, message, expected: expected.into() })
}

/// Where a request comes from.
enum Origin {
    Engine(u32),
    Sender(usize),
    Nobody,
}
