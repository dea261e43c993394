//! What holds a word in a core and in the engine of a switch, told from their registers.
//!
//! | cause | what the registers show in the cycle |
//! |---|---|
//! | late start | the core's job has read nothing yet |
//! | claim held | the core's register says that it waits, and that of the arbiter that its tree does |
//! | claim | the core's register says that it waits, and the arbiter's does not |
//! | memory read | the word is not at the fragmenter: it was not read, or less than the read latency ago |
//! | credit wait | the credit register of the core's output is 0 |
//! | queue | the word is at the fragmenter, there is a credit, and the port sends, or is busy with, what was made before |
//! | operand slot | the word is at the head of its queue, and the slots of its port hold as many operands as there are |
//! | engine wait | all inputs of the id have an operand that the engine sees, and it takes another one, or has no place for a result |
//! | reduce | from the cycle in which the operands leave their slots to the one in which the result leaves the tree |
//! | memory write | the word is in the core's queue, and its job has begun |
//! | landing | the job has received the word, and not counted it |

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use watershed::scenario::why::Kind;

use crate::fabric::{Hop, Stay};
use crate::network::{Network, Port, Sent};
use crate::registers::Register;
use crate::steps::{Holds, Steps};

/// An operand that went into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Put {
    pub cycle: u64,
    pub port: u16,
    pub plane: u8,
    pub id: u64,
    pub seq: u64,
    word: u64,
}

/// Operands that left their slots together.
#[derive(Clone, Debug)]
pub struct Take {
    pub cycle: u64,
    pub operands: Vec<Put>,
    /// The cycle in which the result leaves the tree; none of a scan, or at the end of the run.
    pub came: Option<u64>,
}

/// What an engine did.
#[derive(Debug, Default)]
pub struct Engine {
    pub puts: Vec<Put>,
    pub takes: Vec<Take>,
    /// Departures from the engine's own queue: cycle and channel, and what left.
    pub left: BTreeMap<(u8, u64), Sent>,
}

/// Parameters of the scenario that the registers do not show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub operand_slots: usize,
    pub result_slots: usize,
    pub unit_stages: u64,
    pub read_latency: u64,
}

/// Whether a port sends in a cycle, or is busy with what it sent before.
fn net_busy(net: &Network<'_>, port: Port, cycle: u64) -> bool {
    net.sent_in(port, cycle).is_some() || net.is_busy(port, cycle)
}

pub struct Piuma<'a> {
    pub net: &'a Network<'a>,
    pub limits: Limits,
    /// Ids of scans.
    pub scans: BTreeSet<u64>,
    engines: RefCell<HashMap<u32, Rc<Engine>>>,
}

impl<'a> Piuma<'a> {
    pub fn new(net: &'a Network<'a>, limits: Limits, scans: BTreeSet<u64>) -> Self {
        Piuma { net, limits, scans, engines: RefCell::default() }
    }

    // ---------------------------------------------------------------------------------------------- engines

    pub fn engine(&self, node: u32) -> Rc<Engine> {
        if let Some(known) = self.engines.borrow().get(&node) {
            return Rc::clone(known);
        }
        let engine = Rc::new(self.read_engine(node));
        self.engines.borrow_mut().insert(node, Rc::clone(&engine));
        engine
    }

    /// What left the queues of links in a cycle, by port.
    fn departing(&self, node: u32, vc: u8, cycle: u64) -> Vec<(u16, Sent)> {
        let ports = (0..self.net.ports(node)).filter(|&port| self.net.link((node, port)).is_some());
        ports
            .filter_map(|port| {
                let queue = self.net.queue((node, port), vc);
                queue.left.binary_search(&cycle).ok().map(|at| (port, queue.came[at]))
            })
            .collect()
    }

    fn read_engine(&self, node: u32) -> Engine {
        let net = self.net;
        let links: Vec<u16> = (0..net.ports(node)).filter(|&port| net.link((node, port)).is_some()).collect();
        let mut engine = Engine::default();
        for plane in 0..net.plan.vcs.set / 2 {
            for &port in &links {
                let queue = net.queue((node, port), 2 * plane);
                let came = || queue.came.iter().zip(&queue.left);
                let goes_on =
                    |came: &Sent, cycle| net.outs_of(node, came, cycle).iter().any(|(_, vc)| *vc == 2 * plane);
                // Routes send all words of an id into the engine or past it, but for scans. In the cycle in which
                // one of them goes in, an output may send a result that looks like it.
                let taken = came().filter(|&(came, &cycle)| !goes_on(came, cycle)).map(|(came, _)| came.id);
                let taken: BTreeSet<u64> = taken.filter(|id| !self.scans.contains(id)).collect();
                for (came, &cycle) in came() {
                    if taken.contains(&came.id) || !goes_on(came, cycle) {
                        let Sent { id, seq, word, .. } = *came;
                        engine.puts.push(Put { cycle, port, plane, id, seq, word });
                    }
                }
            }
        }
        engine.puts.sort_unstable();
        engine.takes = self.takes(node, &engine.puts);
        // What the outputs send and no queue of a link gives comes from the engine.
        for vc in 0..net.plan.vcs.set {
            for &port in &links {
                for sent in net.sent((node, port)).iter().filter(|sent| sent.vc == vc) {
                    let puts = engine.puts.iter().filter(|put| (put.cycle, 2 * put.plane) == (sent.cycle, vc));
                    let taken: Vec<u16> = puts.map(|put| put.port).collect();
                    let departing = self.departing(node, vc, sent.cycle);
                    let departing = departing.iter().filter(|(port, _)| !taken.contains(port));
                    if !departing.into_iter().any(|(_, other)| other.flit() == sent.flit()) {
                        engine.left.insert((vc, sent.cycle), *sent);
                    }
                }
            }
        }
        engine
    }

    /// When operands left their slots: the number of those that are held says how many, the slots themselves which.
    fn takes(&self, node: u32, puts: &[Put]) -> Vec<Take> {
        let registers = self.net.registers;
        let path = self.net.path(node);
        let Some(held) = registers.find(&format!("{path}.ceng.operands")) else { return Vec::new() };
        let in_flight = registers.get(&format!("{path}.ceng.in_flight"));
        let mut inputs: BTreeMap<u64, BTreeSet<u16>> = BTreeMap::new();
        for put in puts {
            inputs.entry(put.id).or_default().insert(put.port);
        }
        let edges = held.changes().chain(in_flight.changes()).filter(|&edge| edge > 0).map(|edge| edge - 1);
        let cycles: BTreeSet<u64> = edges.chain(puts.iter().map(|put| put.cycle)).collect();
        let mut slots: BTreeMap<u16, VecDeque<Put>> = BTreeMap::new();
        let mut next = puts.iter().peekable();
        let (mut takes, mut in_tree) = (Vec::new(), VecDeque::new());
        for cycle in cycles.into_iter().filter(|&cycle| cycle < registers.last) {
            let mut new = Vec::new();
            while let Some(put) = next.next_if(|put| put.cycle == cycle) {
                new.push(*put);
            }
            let taken = new.len() as i64 - held.steps(cycle);
            let mut began = 0;
            if taken > 0 {
                let after = self.taken(node, cycle, taken as usize, &slots, &new, &inputs);
                let (id, left) = after.unwrap_or_else(|| panic!("{path}: {taken} operands left in cycle {cycle}"));
                let mut operands = Vec::new();
                for put in left {
                    let slot = slots.get_mut(&put.port).unwrap();
                    let at = slot.iter().position(|held| *held == put).unwrap();
                    operands.push(slot.remove(at).unwrap());
                }
                if !self.scans.contains(&id) {
                    began = 1;
                    in_tree.push_back(takes.len());
                }
                takes.push(Take { cycle, operands, came: None });
            }
            for put in new {
                slots.entry(put.port).or_default().push_back(put);
            }
            let results = began - in_flight.steps(cycle);
            assert!((0..=1).contains(&results), "{path}: {results} results in cycle {cycle}");
            if results == 1 {
                let take: usize = in_tree.pop_front().expect("a result of nothing");
                takes[take].came = Some(cycle);
            }
        }
        takes
    }

    /// Which operands left in a cycle: those of an id that all its inputs have, so many, that leave the slots as they are next.
    fn taken(
        &self,
        node: u32,
        cycle: u64,
        count: usize,
        slots: &BTreeMap<u16, VecDeque<Put>>,
        new: &[Put],
        inputs: &BTreeMap<u64, BTreeSet<u16>>,
    ) -> Option<(u64, Vec<Put>)> {
        let path = self.net.path(node);
        let planes = 0..self.net.plan.vcs.set / 2;
        let candidates = planes.flat_map(|plane| inputs.iter().map(move |(id, ports)| (plane, *id, ports)));
        for (plane, id, ports) in candidates.filter(|(.., ports)| ports.len() == count) {
            let oldest = |port: &u16| slots.get(port)?.iter().find(|put| put.plane == plane).copied();
            let seen = |put: &Put| put.id == id && put.cycle + self.net.post < cycle;
            let operands: Option<Vec<Put>> = ports.iter().map(|port| oldest(port).filter(seen)).collect();
            let Some(operands) = operands else { continue };
            let shown = (0..self.net.ports(node)).all(|port| {
                let rest = slots.get(&port).into_iter().flatten().filter(|put| !operands.contains(put));
                let first = rest.chain(new.iter().filter(|put| put.port == port)).next();
                let Some(valid) = self.net.registers.find(&format!("{path}.ceng.slot{port}.valid")) else {
                    return true;
                };
                let [id, seq, word] =
                    ["id", "seq", "word"].map(|name| self.net.registers.get(&format!("{path}.ceng.slot{port}.{name}")));
                let shows = (valid.value(cycle + 1) == 1)
                    .then(|| (id.value(cycle + 1), seq.value(cycle + 1), word.value(cycle + 1)));
                shows == first.map(|put| (put.id, put.seq, put.word))
            });
            if shown {
                return Some((id, operands));
            }
        }
        None
    }

    /// A hop ends in a queue out of which the word goes into the engine; `next` is the way of the engine's result.
    pub fn engine_takes(&self, steps: &Steps<'_>, hop: &Hop, next: Option<&Hop>) {
        let net = self.net;
        let (node, port) = hop.to;
        let queue = net.queue(hop.to, hop.sent.vc);
        let left = queue.left[hop.index];
        let engine = self.engine(node);
        let plane = hop.sent.vc / 2;
        let name = format!("{}.ceng", net.name(node));
        // Waiting for the slot.
        let mine = |put: &&Put| (put.port, put.plane) == (port, plane);
        let full = |cycle: u64| {
            let put = engine.puts.iter().filter(mine).filter(|put| put.cycle < cycle).count();
            let takes = engine.takes.iter().filter(|take| take.cycle <= cycle);
            let taken = takes.flat_map(|take| &take.operands).filter(mine).count();
            put - taken >= self.limits.operand_slots
        };
        let stay = net.stay(hop, left, Vec::new());
        let is_response = hop.sent.vc % 2 == 1;
        for (cycle, holds) in
            net.causes(&stay, |cycle| if is_response || full(cycle) { Kind::OperandSlot } else { Kind::Arbitration })
        {
            if holds.kind == Kind::Arbitration {
                steps.demand(net.is_contended(&stay, cycle), || {
                    format!("in cycle {cycle} there is a slot for the operand at {}", net.place(hop.to))
                });
            }
            steps.holds(cycle, &holds);
        }
        let visible = left + net.post + 1;
        steps.all(left..visible, Kind::Switch, &net.place(hop.to));
        let Some(next) = next.filter(|next| next.from.0 == node) else {
            steps.fail(&format!("the result of {name} goes nowhere"));
        };
        if self.scans.contains(&hop.sent.id) {
            return self.scan(steps, hop, next);
        }
        // In the slot, and in the tree.
        let is_it = |put: &Put| (put.port, put.plane, put.cycle) == (port, plane, left);
        let take = engine.takes.iter().find(|take| take.operands.iter().any(is_it));
        let take = take.unwrap_or_else(|| steps.fail("an operand stayed in its slot"));
        let came = take.came.unwrap_or_else(|| steps.fail("a result stayed in the tree"));
        for cycle in visible..take.cycle {
            let other = engine.takes.iter().any(|other| other.cycle == cycle);
            let flying = engine.takes.iter().filter(|take| {
                let on_plane = take.operands.iter().any(|put| put.plane == plane);
                on_plane && take.cycle < cycle && take.came.is_none_or(|came| came >= cycle)
            });
            let own = (node, net.ports(node) - 1);
            let queued: u64 = [2 * plane, 2 * plane + 1].into_iter().map(|vc| net.flits(own, vc, cycle)).sum();
            let no_place = flying.count() + queued as usize >= self.limits.result_slots;
            // Scans hold places that no register shows.
            steps.demand(other || no_place || !self.scans.is_empty(), || {
                format!("in cycle {cycle} nothing keeps {name} from taking its operands")
            });
        }
        steps.all(visible..take.cycle, Kind::EngineWait, &name);
        steps.all(take.cycle..came, Kind::Reduce, &name);
        self.last_operand(steps, node, take, (port, left));
        self.engine_sends(steps, node, came, next);
    }

    /// The cycles in which results came into the engine's own queue on a channel, in order.
    fn results(&self, node: u32, vc: u8) -> Vec<u64> {
        let (net, engine) = (self.net, self.engine(node));
        let flits = net.registers.get(&format!("{}.in{}.vc{vc}.flits", net.path(node), net.ports(node) - 1));
        let left: BTreeSet<u64> = engine.left.keys().filter(|(of, _)| *of == vc).map(|(_, cycle)| *cycle).collect();
        let edges = flits.changes().filter(|&edge| edge > 0).map(|edge| edge - 1).chain(left.iter().copied());
        let edges: BTreeSet<u64> = edges.filter(|&cycle| cycle < net.registers.last).collect();
        edges.into_iter().filter(|cycle| flits.steps(*cycle) + i64::from(left.contains(cycle)) == 1).collect()
    }

    /// A hop ends in a queue out of which the word goes into the scan unit, whose result is the next hop. A total of k inputs
    /// takes k - 1 times the stages of a unit, at least a cycle; a response takes these stages, and a cycle more for each
    /// one of its element before it.
    fn scan(&self, steps: &Steps<'_>, hop: &Hop, next: &Hop) {
        const ELEMENT: u64 = (1 << 30) - 1;
        let net = self.net;
        let (node, port) = hop.to;
        let engine = self.engine(node);
        let name = format!("{}.ceng", net.name(node));
        let left = net.queue(hop.to, hop.sent.vc).left[hop.index];
        let visible = left + net.post + 1;
        let vc = next.sent.vc;
        let departures: Vec<u64> = engine.left.keys().filter(|(of, _)| *of == vc).map(|(_, cycle)| *cycle).collect();
        let at = departures.binary_search(&next.sent.cycle).unwrap_or_else(|_| steps.fail("a result left no queue"));
        let came = self.results(node, vc)[at];
        let is_response = vc % 2 == 1;
        let before = if is_response {
            let same = |cycle: &&u64| {
                let other = &engine.left[&(vc, **cycle)];
                (other.id, other.seq & ELEMENT) == (next.sent.id, next.sent.seq & ELEMENT)
            };
            departures[..at].iter().rev().take_while(same).count() as u64
        } else {
            0
        };
        let mut cycles = if is_response { self.limits.unit_stages + before } else { 0 };
        let mut from = visible;
        if hop.sent.vc.is_multiple_of(2) {
            let is_it = |put: &Put| (put.port, put.plane, put.cycle) == (port, hop.sent.vc / 2, left);
            let take = engine.takes.iter().find(|take| take.operands.iter().any(is_it));
            let take = take.unwrap_or_else(|| steps.fail("an operand stayed in its slot"));
            cycles += (self.limits.unit_stages * (take.operands.len() as u64 - 1)).max(1);
            from = take.cycle;
            self.last_operand(steps, node, take, (port, left));
        }
        steps.demand(from + cycles <= came, || {
            format!("{name} has the result in cycle {came}, and needs {cycles} from cycle {from} on")
        });
        // A result that is ready leaves unless another one does, or there is no place for it.
        let own = (node, net.ports(node) - 1);
        let others: BTreeSet<u64> = (0..net.plan.vcs.set).flat_map(|vc| self.results(node, vc)).collect();
        for cycle in from + cycles..came {
            let queued: u64 = (0..net.plan.vcs.set).map(|vc| net.flits(own, vc, cycle)).sum();
            let full = queued > 2 * self.limits.result_slots as u64;
            // Responses from above meet their prefixes one a cycle.
            steps.demand(others.contains(&cycle) || full || is_response, || {
                format!("in cycle {cycle} nothing keeps the result of {name}")
            });
        }
        steps.all(visible..came - cycles, Kind::EngineWait, &name);
        steps.all(came - cycles..came, Kind::Reduce, &name);
        self.engine_sends(steps, node, came, next);
    }

    /// The operand that `why` calls the last one, and how much earlier the others were.
    fn last_operand(&self, steps: &Steps<'_>, node: u32, take: &Take, (port, left): (u16, u64)) {
        let net = self.net;
        let name = format!("{}.ceng", net.name(node));
        let rest = || take.operands.iter().filter(|put| put.port != port);
        for put in rest() {
            let order = (put.cycle, std::cmp::Reverse(put.port)) < (left, std::cmp::Reverse(port));
            steps.demand(order, || format!("the operand of P{port} was not the last at {name}: {put:?}"));
        }
        let visible = left + net.post + 1;
        if visible < steps.why.start_cycle {
            return;
        }
        let last = steps.why.engines.iter().find(|last| last.switch == net.name(node) && last.cycle == visible);
        let Some(last) = last else { steps.fail(&format!("why names no last operand of {name}")) };
        let others: Vec<(String, u64)> = rest().map(|put| (format!("P{}", put.port), left - put.cycle)).collect();
        steps.demand(last.from == format!("P{port}") && last.others == others, || {
            format!("the slots of {name} show {others:?} before P{port}; why says {last:?}")
        });
    }

    /// The way of a result out of the engine's own queue, into which it came in cycle `came`.
    fn engine_sends(&self, steps: &Steps<'_>, node: u32, came: u64, next: &Hop) {
        let (net, engine) = (self.net, self.engine(node));
        let name = format!("{}.ceng", net.name(node));
        let (vc, leaves) = (next.sent.vc, next.sent.cycle);
        let departures: Vec<u64> = engine.left.keys().filter(|(of, _)| *of == vc).map(|(_, cycle)| *cycle).collect();
        let at = departures.binary_search(&leaves).unwrap_or_else(|_| steps.fail("a result left no queue"));
        let outs = net.outs_of(node, &next.sent, leaves);
        let stay = Stay {
            port: (node, net.ports(node) - 1),
            vc,
            came,
            left: leaves,
            turn: at.checked_sub(1).map_or(0, |before| departures[before] + 1),
            is_head: true,
            outs,
        };
        for (cycle, holds) in net.causes(&stay, |_| Kind::Arbitration) {
            if holds.kind == Kind::Arbitration {
                let input = (0..net.plan.vcs.set).any(|other| other != vc && engine.left.contains_key(&(other, cycle)));
                steps.demand(input || net.is_contended(&stay, cycle), || {
                    format!("in cycle {cycle} nothing is in the way of the result of {name}")
                });
            }
            steps.holds(cycle, &holds);
        }
        steps.all(leaves..leaves + net.post + 1, Kind::Switch, &net.place(next.from));
    }

    // ------------------------------------------------------------------------------------------------ cores

    /// A counter of the job of a core that rises in a cycle, and the number of that job.
    fn job(&self, node: u32, what: &str, cycle: u64) -> Option<usize> {
        let path = self.net.path(node);
        let counter = |job: usize| self.net.registers.find(&format!("{path}.job{job}.{what}"));
        (0..).map_while(|job| Some((job, counter(job)?))).find(|(_, of)| of.steps(cycle) > 0).map(|(job, _)| job)
    }

    /// The job that takes a word from the network in a cycle, and how many it had taken before: what it has written, and in an
    /// inclusive scan what its unit holds until then.
    fn taker(&self, node: u32, cycle: u64) -> Option<(usize, u64)> {
        let path = self.net.path(node);
        let taken = |job: usize, cycle: u64| {
            let received = self.net.registers.find(&format!("{path}.job{job}.received"))?.value(cycle);
            let held = self.net.registers.find(&format!("{path}.job{job}.combine.held"));
            Some(received + held.map_or(0, |held| held.value(cycle)))
        };
        let both = |job: usize| Some((job, taken(job, cycle)?, taken(job, cycle + 1)?));
        (0..).map_while(both).find(|(_, before, after)| after > before).map(|(job, before, _)| (job, before))
    }

    /// Late starts of a core end in cycles in which its program calls a collective.
    fn called(&self, steps: &Steps<'_>, node: u32) {
        let name = self.net.name(node);
        let Some(issued) = self.net.registers.find(&format!("{}.calls.issued", self.net.path(node))) else { return };
        for part in steps.parts.iter().filter(|part| part.kind == Kind::LateStart && part.place == name) {
            steps.demand(issued.steps(part.to) > 0, || format!("{name} calls nothing in cycle {}", part.to));
        }
        for part in steps.parts.iter().filter(|part| part.kind == Kind::Call && part.place == name) {
            let [since, calls] = [part.from, part.to].map(|cycle| issued.value(cycle + 1));
            steps.demand(since > 0 && calls > 0, || format!("{name} has called nothing by cycle {}", part.from));
        }
    }

    fn job_register(&self, node: u32, job: usize, what: &str) -> &'a Register {
        self.net.registers.get(&format!("{}.job{job}.{what}", self.net.path(node)))
    }

    fn jobs(&self, node: u32) -> usize {
        let path = self.net.path(node);
        (0..64).take_while(|job| self.net.registers.find(&format!("{path}.job{job}.state")).is_some()).count()
    }

    /// The cycle in which a counter reaches more than a number.
    fn reaches(register: &Register, number: u64) -> Option<u64> {
        register.changes().find(|&cycle| register.value(cycle) > number).map(|cycle| cycle - 1)
    }

    /// Whether the tree of an id waits at the arbiter of the only set, if there is one.
    fn waits_at_arbiter(&self, id: u64, cycle: u64) -> Option<bool> {
        let nodes = || (0..self.net.plan.nodes.len() as u32).map(|node| self.net.path(node));
        let find = |path: &str, what: &str| self.net.registers.find(&format!("{path}.claim.{what}"));
        if nodes().any(|path| find(path, "set1.waiting").is_some()) {
            return None;
        }
        let joins = nodes().flat_map(|path| (0..8).map(move |join| (path, join)));
        let tree = joins
            .filter(|(path, join)| find(path, &format!("join{join}.id")).is_some_and(|of| of.value(0) == id))
            .find_map(|(path, join)| find(path, &format!("join{join}.tree")).map(|of| of.value(0)))?;
        let waiting = nodes().find_map(|path| find(path, "set0.waiting"))?;
        Some(waiting.value(cycle) >> tree & 1 == 1)
    }

    /// The cycles in which a core waits for its claim, as far as the account follows that: its own register says so, and the
    /// arbiter's what for. The first cycle after them.
    fn claims(&self, steps: &Steps<'_>, node: u32, id: u64, register: Option<&Register>) -> Option<u64> {
        let claims = || steps.parts.iter().filter(|part| matches!(part.kind, Kind::Claim | Kind::ClaimHeld));
        let (from, to) = (claims().map(|part| part.from).min()?, claims().map(|part| part.to).max()?);
        let name = self.net.name(node);
        let register = register.unwrap_or_else(|| steps.fail("a core without a register for its claim waits for one"));
        for cycle in from..to {
            steps.demand(register.value(cycle) == 1, || format!("{name} waits for no claim in cycle {cycle}"));
            let kind = match self.waits_at_arbiter(id, cycle) {
                Some(true) => Kind::ClaimHeld,
                Some(false) => Kind::Claim,
                None => steps.part(cycle).kind,
            };
            steps.holds(cycle, &Holds { kind, places: vec![name.to_owned()] });
        }
        steps.demand(register.value(to) == 0, || format!("{name} starts without its grant in cycle {to}"));
        // Before, it is another core that has not called.
        for cycle in steps.why.start_cycle..from {
            let part = steps.part(cycle);
            let late = matches!(part.kind, Kind::LateStart | Kind::Call);
            steps.demand(late, || format!("\"{}\" before the last participant was ready", part.kind.name()));
            steps.holds(cycle, &Holds { kind: part.kind, places: vec![part.place.clone()] });
        }
        Some(to)
    }

    /// A core that sent a word from a port, in the cycles from the account's start on.
    pub fn source(&self, steps: &Steps<'_>, port: Port, word: &Sent, data: bool) {
        let (node, number) = (port.0, word.seq);
        let name = self.net.name(node);
        let Some(job) = self.job(node, "sent", word.cycle) else {
            // A program's call has no registers of its own; credits have.
            self.called(steps, node);
            let register = self.net.registers.find(&format!("{}.call{}.claims", self.net.path(node), word.id));
            let start = self.claims(steps, node, word.id, register).unwrap_or(steps.why.start_cycle);
            for cycle in start..word.cycle {
                let kind = steps.part(cycle).kind;
                if kind == Kind::Queue {
                    // The word is there: another one goes first.
                    let goes = net_busy(self.net, port, cycle);
                    steps.demand(goes || self.net.credits(port, word.vc, cycle) == 0, || {
                        format!("{name} could send in cycle {cycle}")
                    });
                }
                if matches!(kind, Kind::CreditWait | Kind::MemoryRead | Kind::Queue) {
                    let empty = self.net.credits(port, word.vc, cycle) == 0;
                    let kind = match kind {
                        _ if empty => Kind::CreditWait,
                        Kind::CreditWait => Kind::MemoryRead,
                        kind => kind,
                    };
                    steps.holds(cycle, &Holds { kind, places: vec![name.to_owned()] });
                } else {
                    steps.holds(cycle, &Holds { kind, places: vec![name.to_owned()] });
                }
            }
            return;
        };
        let [read, sent] = ["read", "sent"].map(|what| self.job_register(node, job, what));
        steps.demand(sent.value(word.cycle) == number, || format!("{name} sends another word"));
        let latency = if data { self.limits.read_latency } else { 0 };
        let fetched = Self::reaches(read, number).unwrap_or_else(|| steps.fail("a word was sent before it was read"));
        let first = Self::reaches(read, 0).unwrap_or(0);
        let register = self.net.registers.find(&format!("{}.job{job}.claims", self.net.path(node)));
        let claimed = self.claims(steps, node, word.id, register);
        for cycle in claimed.unwrap_or(steps.why.start_cycle)..word.cycle {
            let kind = if cycle < first && steps.part(cycle).kind == Kind::LateStart {
                // Before it has read anything, only the memory's being busy with others could say more.
                Kind::LateStart
            } else if self.net.credits(port, word.vc, cycle) == 0 {
                Kind::CreditWait
            } else if cycle < fetched + latency {
                Kind::MemoryRead
            } else {
                Kind::Queue
            };
            steps.holds(cycle, &Holds { kind, places: vec![name.to_owned()] });
        }
        let late = steps.parts.iter().filter(|part| part.kind == Kind::LateStart && part.place == name);
        let begins = late.filter(|part| part.from == steps.why.start_cycle).map(|part| part.to).max();
        if self.jobs(node) == 1 && claimed.is_none() {
            // A rested memory reads in the first cycle.
            steps.demand(begins.unwrap_or(steps.why.start_cycle) == first, || {
                format!("{name} reads its first word in cycle {first}, and why lets it begin in {begins:?}")
            });
        }
    }

    /// The core that the last hop ends in.
    pub fn receiver(&self, steps: &Steps<'_>, hop: &Hop, number: u64) {
        let node = hop.to.0;
        let name = self.net.name(node);
        let queue = self.net.queue(hop.to, hop.sent.vc);
        let taken = queue.left[hop.index];
        let Some((job, before)) = self.taker(node, taken) else {
            // A program's call has no registers of its own.
            self.called(steps, node);
            let mut before = 0;
            for cycle in hop.came..taken {
                let kind = steps.part(cycle).kind;
                let rank = [Kind::LateStart, Kind::Call, Kind::MemoryWrite].iter().position(|known| *known == kind);
                steps.demand(rank.is_some_and(|rank| rank >= before), || format!("cycle {cycle} of a word that came"));
                before = rank.unwrap_or(0);
                steps.holds(cycle, &Holds { kind, places: vec![name.to_owned()] });
            }
            steps.all(taken..steps.why.end_cycle, Kind::Landing, name);
            return;
        };
        let [received, landed, read] = ["received", "landed", "read"].map(|what| self.job_register(node, job, what));
        steps.demand(before == number, || format!("{name} takes another word"));
        let first = Self::reaches(read, 0);
        for cycle in hop.came..taken {
            let late = first.is_some_and(|first| cycle < first)
                || first.is_none() && received.value(cycle) == 0 && steps.part(cycle).kind == Kind::LateStart;
            let kind =
                if late && steps.part(cycle).kind == Kind::LateStart { Kind::LateStart } else { Kind::MemoryWrite };
            steps.demand(kind == Kind::LateStart || !late || self.jobs(node) > 1, || {
                format!("in cycle {cycle} {name} has not begun")
            });
            steps.holds(cycle, &Holds { kind, places: vec![name.to_owned()] });
        }
        let lands = Self::reaches(landed, number).unwrap_or_else(|| steps.fail("the word never landed"));
        steps.all(taken..lands, Kind::Landing, name);
        // Behind the last word, the core may have to send its own.
        steps.all(lands..steps.why.end_cycle, Kind::Landing, name);
        let state = self.job_register(node, job, "state");
        const DONE: u64 = 3;
        let end = steps.why.end_cycle;
        let last = (state.value(end), state.value(end + 1));
        steps.demand(last.0 != DONE && (last.1 == DONE || end == lands), || {
            format!("{name} is done in another cycle than {end}: {last:?}, landed in {lands}")
        });
    }
}
