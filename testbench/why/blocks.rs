//! Accounts as a whole, family by family.

use watershed::fabric::NodeKind;
use watershed::scenario::config::Scenario;
use watershed::scenario::file::CollectiveKind;
use watershed::scenario::why::{Kind, LastOperand, Part, Phase, WhyQuery};

use crate::fabric::Hop;
use crate::network::{Network, Sent};
use crate::piuma::Piuma;
use crate::registers::Register;
use crate::steps::Steps;

/// A word of a collective in the network.
pub fn word(piuma: &Piuma<'_>, steps: &Steps<'_>, scenario: &Scenario) {
    let net = piuma.net;
    let mut way = Vec::new();
    net.check_hops(
        steps,
        |_, _| Kind::MemoryWrite,
        |hop, next| {
            way.push((*hop, next.copied()));
        },
    );
    for (hop, next) in &way {
        if net.is_switch(hop.to.0) {
            piuma.engine_takes(steps, hop, next.as_ref());
        }
    }
    let of = |name: &str| name == steps.why.collective || steps.why.collective.starts_with(&format!("{name}."));
    let collective = scenario.collectives.iter().find(|collective| of(&collective.name));
    let data = collective.is_some_and(|collective| collective.kind != CollectiveKind::Barrier);
    let end = steps.why.end_cycle;
    let Some((first, last)) = net.hops(steps).first().copied().zip(way.last()) else {
        // Nobody is later than a core that only sends.
        let port = (net.node(&steps.why.landed_at).expect("a core"), 0);
        let sent = net.sent_in(port, end).unwrap_or_else(|| steps.fail("a core ends without sending its last word"));
        return piuma.source(steps, port, &sent, data);
    };
    piuma.source(steps, first.from, &first.sent, data);
    piuma.receiver(steps, &last.0, last.0.sent.seq & ((1 << 30) - 1));
}

/// A point-to-point packet.
pub fn packet(net: &Network<'_>, steps: &Steps<'_>, ask: WhyQuery<'_>) {
    let mut last = None;
    net.check_hops(steps, |_, _| Kind::Landing, |hop, _| last = Some(*hop));
    let last = last.unwrap_or_else(|| steps.fail("a packet came over no link"));
    let left = leaves(net, steps, &last, Kind::Landing);
    steps.demand(left == steps.why.end_cycle, || format!("its last flit was taken in cycle {left}"));
    // The header, which is the first flit, has 40 bits of the cycle in which it was made.
    let first = net.hops(steps)[0];
    let head = net.head_of(first.from, &first.sent);
    let header = net.sent_in(first.from, head).expect("a head was sent").word;
    let created = header & ((1 << 40) - 1);
    steps.demand(created == steps.why.start_cycle, || format!("the header says that it was made in cycle {created}"));
    steps.all(created..head, Kind::Queue, net.name(first.from.0));
    for part in &steps.parts {
        let phase = if part.kind == Kind::Queue { Phase::Inject } else { Phase::Transit };
        steps.demand(part.phase == phase, || format!("{} belongs to {}", part.kind.name(), phase.name()));
    }
    // Which one it is: of those that its end point sent, or of those that arrived.
    let source = net.name(first.from.0);
    let number = net.packets_sent(first.from).iter().filter(|&&cycle| cycle < head).count() as u64;
    steps
        .demand((steps.why.number, &steps.why.collective) == (number, &format!("packet {number} of {source}")), || {
            format!("it is packet {number} of {source}")
        });
    let this = (left, last.to.0, last.sent.vc);
    let arrived = net.packets_arrived();
    let at = arrived.iter().position(|(place, _)| *place == this).expect("it arrived");
    let slowest = |&&((left, ..), created): &&((u64, u32, u8), u64)| left - created;
    match (ask.source, ask.packet) {
        (Some(end), asked) => {
            let ends = (0..net.plan.nodes.len() as u32).filter(|&node| net.kind(node) == NodeKind::End);
            let asked = asked.is_none_or(|asked| asked == number);
            let end = ends.take(end as usize + 1).last();
            steps.demand(asked && end == Some(first.from.0), || format!("not {ask:?}"));
        }
        (None, Some(asked)) => {
            steps.demand(at as u64 == asked, || format!("it is number {at} of those that arrived, not {asked}"));
        }
        (None, None) => {
            let most = arrived.iter().map(|of| slowest(&of)).max();
            let first = arrived.iter().position(|of| Some(slowest(&of)) == most);
            steps.demand(first == Some(at), || {
                format!("{:?} was the first of the slowest", first.map(|at| arrived[at]))
            });
        }
    }
}

/// A flit in the queue of a block that takes it: when that is.
fn leaves(net: &Network<'_>, steps: &Steps<'_>, hop: &Hop, blocked: Kind) -> u64 {
    let left = net.queue(hop.to, hop.sent.vc).left[hop.index];
    for (cycle, holds) in net.causes(&net.stay(hop, left, Vec::new()), |_| blocked) {
        steps.holds(cycle, &holds);
    }
    left
}

/// States of a rank.
const IDLE: u64 = 0;
const OVERHEAD: u64 = 1;
const EXCHANGE: u64 = 2;
const MERGE: u64 = 3;
const DONE: u64 = 4;

/// The overhead of a round. Where the rank has everything and sends nothing, it merges at once; where it has nothing to merge
/// either, or sends its flag in that very cycle, it goes on to its next round.
fn overhead(steps: &Steps<'_>, part: &Part, state: &Register, round: &Register) {
    let next = |cycle: u64| round.value(cycle + 1) != round.value(cycle);
    let goes_on = [EXCHANGE, MERGE, DONE].contains(&state.value(part.to + 1)) || next(part.to);
    let begins = state.value(part.from) != OVERHEAD || next(part.from);
    steps.demand(begins && goes_on, || {
        format!("the overhead of {} is not from {} to {}", part.place, part.from, part.to)
    });
    for cycle in part.from + 1..=part.to {
        steps.demand(state.value(cycle) == OVERHEAD, || format!("no overhead in cycle {cycle}"));
    }
    steps.all(part.from..part.to, Kind::Software, &part.place);
}

/// The account is that of the rank that was done last; of several, of the first.
fn last_rank(net: &Network<'_>, steps: &Steps<'_>, host: usize) {
    let end = steps.why.end_cycle;
    let done = |node: u32| {
        let state = net.registers.find(&format!("{}.host{host}.state", net.path(node)))?;
        (state.value(end) != DONE && state.value(end + 1) == DONE).then_some(node)
    };
    let first = (0..net.plan.nodes.len() as u32).find_map(done).map(|node| net.name(node));
    steps.demand(first == Some(&steps.why.landed_at), || format!("the first that is done last is {first:?}"));
}

/// Rounds of a collective in software.
pub fn host(net: &Network<'_>, steps: &Steps<'_>) {
    let number: usize = steps.why.collective.trim_start_matches('h').parse().expect("hosts are named h0, h1 ...");
    let mut landed: Vec<(Hop, u64)> = Vec::new();
    net.check_hops(
        steps,
        |_, _| Kind::MemoryWrite,
        |hop, _| {
            landed.push((*hop, leaves(net, steps, hop, Kind::MemoryWrite)));
        },
    );
    let register = |place: &str, what: &str| {
        let name = place.split(", round ").next().unwrap();
        let node = net.node(name).unwrap_or_else(|| steps.fail(&format!("no node {name}")));
        (node, net.registers.get(&format!("{}.host{number}.{what}", net.path(node))))
    };
    let class = landed.first().map_or(0, |(hop, _)| hop.sent.id);
    messages(net, steps, &landed);
    last_rank(net, steps, number);
    let mut at = 0;
    while at < steps.parts.len() {
        let part = &steps.parts[at];
        let same = |other: &&Part| (other.phase, &other.place) == (part.phase, &part.place);
        let turns: Vec<&Part> = steps.parts[at..].iter().take_while(same).collect();
        let (from, to) = (part.from, turns.last().unwrap().to);
        at += 1;
        match (part.phase, part.kind) {
            (Phase::Transit, Kind::Landing) => {
                // Nothing is between the last flit and the end of the exchange.
                steps.fail("a message was there before its exchange ended");
            }
            (Phase::Inject, Kind::LateStart) => {
                let (_, state) = register(&part.place, "state");
                for cycle in part.from..part.to {
                    steps.demand(state.value(cycle) == IDLE, || format!("{} works in cycle {cycle}", part.place));
                    steps.all(cycle..cycle + 1, Kind::LateStart, &part.place);
                }
                steps.demand(state.value(part.to + 1) != IDLE, || format!("{} does not begin", part.place));
            }
            (Phase::Inject, Kind::Software) => {
                let [state, round] = ["state", "round"].map(|what| register(&part.place, what).1);
                overhead(steps, part, state, round);
            }
            (Phase::Reduce, _) => {
                // Turns are added up: words that were merged, and cycles in which the memory let none through.
                let (_, state) = register(&part.place, "state");
                let (_, merged) = register(&part.place, "merged");
                steps.demand(state.value(from) != MERGE && state.value(from + 1) == MERGE, || {
                    format!("{} does not begin to merge in cycle {from}", part.place)
                });
                steps.demand(state.value(to) == MERGE && state.value(to + 1) != MERGE, || {
                    format!("{} does not end its merging in cycle {to}", part.place)
                });
                let round = register(&part.place, "round").1.value(to) + 1;
                steps.demand(part.place.ends_with(&format!(", round {round}")), || {
                    format!("it is round {round} that is merged in cycle {to}")
                });
                let short = (from + 1..to).filter(|&cycle| merged.steps(cycle) == 0).count() as u64;
                turn(steps, &turns, [(Kind::MemoryRead, short), (Kind::CreditWait, 0)], Kind::Reduce);
                at += turns.len() - 1;
            }
            (Phase::Inject, _) => {
                // The link's own last flit is no part of the turns.
                let turns: Vec<&Part> = turns.into_iter().filter(|part| part.place.contains(", round ")).collect();
                let turns: Vec<&Part> = turns.into_iter().take_while(|part| part.kind != Kind::Software).collect();
                if turns.is_empty() {
                    continue;
                }
                let to = turns.last().unwrap().to;
                let (node, state) = register(&part.place, "state");
                let round: u64 = part.place.rsplit(' ').next().unwrap().parse::<u64>().unwrap() - 1;
                let (mut short, mut empty) = (0, 0);
                // Where its overhead ends in a cycle it sends in the same one; where its round before ends, in the next.
                let begins = from + u64::from([EXCHANGE, MERGE].contains(&state.value(from)));
                for cycle in begins..to {
                    match sending(net, (node, 0), (class, round), cycle) {
                        Some(Kind::MemoryRead) => short += 1,
                        Some(Kind::CreditWait) => empty += 1,
                        _ => {}
                    }
                }
                turn(steps, &turns, [(Kind::MemoryRead, short), (Kind::CreditWait, empty)], Kind::Inject);
                at += turns.len() - 1;
            }
            _ => {}
        }
    }
}

/// What a message ended: its round at the rank that waited for it, who sent it, and how much earlier that rank had sent its own.
fn messages(net: &Network<'_>, steps: &Steps<'_>, landed: &[(Hop, u64)]) {
    let hops = net.hops(steps);
    steps.demand(steps.why.engines.len() == landed.len(), || {
        format!("{} messages ended an exchange: {:?}", landed.len(), steps.why.engines)
    });
    for (hop, taken) in landed {
        let (name, round) = (net.name(hop.to.0), hop.sent.seq >> 20);
        let came_from = hops.iter().rev().skip_while(|other| other.came > hop.came);
        let sender = came_from.map(|hop| hop.from.0).find(|&node| net.kind(node) == NodeKind::End);
        let sender = sender.unwrap_or_else(|| steps.fail("a message came from nobody"));
        let own = net.sent((hop.to.0, 0));
        let own = own
            .iter()
            .rev()
            .find(|own| !net.is_set(own.vc) && own.id == hop.sent.id && own.seq >> 20 == round && own.cycle <= *taken);
        let others: Vec<(String, u64)> =
            own.map(|own| ("own sending".to_owned(), taken - own.cycle)).into_iter().collect();
        let expected = (format!("{name}, round {}", round + 1), net.name(sender).to_owned(), *taken, others);
        let told = |of: &LastOperand| (of.switch.clone(), of.from.clone(), of.cycle, of.others.clone()) == expected;
        steps.demand(steps.why.engines.iter().any(told), || {
            format!("{expected:?} is not among {:?}", steps.why.engines)
        });
    }
}

/// Turns of memory, credits and work, one behind the other.
fn turn(steps: &Steps<'_>, turns: &[&Part], held: [(Kind, u64); 2], work: Kind) {
    let (mut from, to, place) = (turns[0].from, turns[turns.len() - 1].to, &turns[0].place);
    for (kind, cycles) in held {
        steps.all(from..from + cycles, kind, place);
        from += cycles;
    }
    steps.all(from..to, work, place);
}

/// What keeps a rank in its exchange from sending a flit; none if it sends one, or has sent all.
fn sending(net: &Network<'_>, port: (u32, u16), (class, round): (u64, u64), cycle: u64) -> Option<Kind> {
    let sent = net.sent(port);
    let mine = |sent: &&Sent| !net.is_set(sent.vc) && sent.id == class && sent.seq >> 20 == round;
    let next = sent.iter().filter(mine).find(|sent| sent.cycle >= cycle)?;
    if next.cycle == cycle {
        return None;
    }
    let last = sent.iter().rev().filter(mine).find(|sent| sent.cycle < cycle);
    if let Some(last) = last.filter(|last| last.seq == next.seq) {
        // In the middle of a packet.
        let other = net.sent_in(port, cycle).is_some_and(|other| net.is_set(other.vc) || other.id < class);
        return if net.credits(port, last.vc, cycle) == 0 {
            Some(Kind::CreditWait)
        } else if other || net.is_busy(port, cycle) {
            None
        } else {
            Some(Kind::MemoryRead)
        };
    }
    let room = (net.plan.vcs.set..net.plan.vcs.total()).any(|vc| net.has_room(port, vc, cycle));
    (!room).then_some(Kind::CreditWait)
}

/// The registers of an engine of the armed family, as events of its frames.
struct ArmedEngine<'a> {
    net: &'a Network<'a>,
    node: u32,
}

impl ArmedEngine<'_> {
    fn counter(&self, what: &str) -> &Register {
        self.net.registers.get(&format!("{}.engine.{what}", self.net.path(self.node)))
    }

    /// The cycles in which tails of climbing frames were taken: of the flits of a frame the last.
    fn tails(&self) -> Vec<u64> {
        let (queue, flits) = (self.net.queue((self.node, 0), UP), self.net.frame_flits);
        queue.left.iter().skip(flits - 1).step_by(flits).copied().collect()
    }

    /// The cycle in which the frame whose tail was taken in cycle `tail` left the entrance.
    fn issued(&self, steps: &Steps<'_>, tail: u64) -> u64 {
        let (frames, damaged) = (self.counter("frames"), self.counter("damaged"));
        let is_whole = |cycle: u64| damaged.steps(cycle) == 0;
        let tails: Vec<u64> = self.tails().into_iter().filter(|&tail| is_whole(tail)).collect();
        let edges = frames.changes().filter(|&edge| edge > 0).map(|edge| edge - 1).chain(tails.iter().copied());
        let edges: std::collections::BTreeSet<u64> = edges.collect();
        let left = edges.into_iter().filter(|&cycle| cycle < self.net.registers.last);
        let left = left.filter(|cycle| i64::from(tails.contains(cycle)) - frames.steps(*cycle) == 1);
        let at = tails.iter().position(|&found| found == tail);
        let at = at.unwrap_or_else(|| steps.fail(&format!("no frame was whole in cycle {tail}")));
        left.into_iter().nth(at).unwrap_or_else(|| steps.fail("a frame stayed in the entrance"))
    }

    fn descriptors(&self) -> impl Iterator<Item = String> {
        let name = move |at: usize| format!("{}.engine.descriptor{at}", self.net.path(self.node));
        (0..).map(name).take_while(|name| self.net.registers.find(&format!("{name}.state")).is_some())
    }
}

const UP: u8 = 0;

/// A round of the armed family.
pub fn armed(net: &Network<'_>, steps: &Steps<'_>, text: &str) {
    let value =
        |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().parse::<u64>());
    let stages = value("stages =").unwrap().unwrap();
    let send = value("send_overhead_cycles =").map_or(0, Result::unwrap);
    let mut way: Vec<(Hop, Option<Hop>)> = Vec::new();
    let faulty = |hop: &Hop| net.name(hop.to.0).ends_with("fault");
    net.check_hops(
        steps,
        |hop, _| if faulty(hop) { Kind::HeldUp } else { Kind::Arbitration },
        |hop, next| way.push((*hop, next.copied())),
    );
    for (hop, next) in &way {
        let name = net.name(hop.to.0);
        if net.kind(hop.to.0) == NodeKind::End {
            let tail = leaves(net, steps, hop, Kind::Software);
            let seen = delivered(net, steps, hop.to.0, tail);
            steps.all(tail..seen, Kind::Software, name);
            // Behind it there is nothing but the software that sends.
            if (steps.why.start_cycle..steps.why.end_cycle).contains(&seen) && steps.part(seen).kind == Kind::Software {
                steps.demand(steps.part(seen).to == seen + send, || {
                    format!("{name} saw the frame in cycle {seen}, and its software takes {send} cycles to send")
                });
            }
            continue;
        }
        let engine = ArmedEngine { net, node: hop.to.0 };
        let Some(next) = next else { steps.fail(&format!("nothing leaves {name}")) };
        let head = net.head_of(next.from, &next.sent);
        if hop.to.1 == 1 {
            // It armed the engine, whose time was up.
            let armed = leaves(net, steps, hop, Kind::Arbitration);
            let due = engine.descriptors().find_map(|name| {
                let [state, deadline] =
                    ["state", "deadline_cycle"].map(|what| net.registers.get(&format!("{name}.{what}")));
                let is_it = state.value(armed + 1) == 1 && deadline.at(armed + 1) != deadline.at(armed);
                is_it.then(|| deadline.value(armed + 1))
            });
            let due = due.unwrap_or_else(|| steps.fail(&format!("nothing was armed at {name} in cycle {armed}")));
            let expired = engine.counter("expired");
            let made = (due..head).find(|&cycle| expired.steps(cycle) > 0);
            let made = made.unwrap_or_else(|| steps.fail(&format!("no time was up at {name}")));
            steps.all(armed..due, Kind::TimeOut, name);
            steps.all(due..made, Kind::EngineWait, name);
            steps.all(made..made + 1, Kind::Engine, name);
            steps.all(made + 1..head, Kind::Queue, name);
            continue;
        }
        let tail = leaves(net, steps, hop, Kind::EngineWait);
        let issued = engine.issued(steps, tail);
        steps.all(tail..tail + 1, Kind::Engine, name);
        steps.all(tail + 1..issued, Kind::EngineWait, name);
        let made = if engine.counter("passed").steps(issued) > 0 {
            issued
        } else {
            steps.demand(engine.counter("merged").steps(issued) > 0, || {
                format!("{name} merged nothing in cycle {issued}")
            });
            let made = issued + stages;
            steps.demand(engine.counter("completed").steps(made) > 0, || {
                format!("{name} completed nothing in cycle {made}")
            });
            steps.all(issued..made, Kind::Reduce, name);
            made
        };
        steps.all(made..made + 1, Kind::Engine, name);
        steps.all(made + 1..head, Kind::Queue, name);
    }
    ends(net, steps, text);
}

/// The cycle in which a process of an end point saw the frame whose tail was taken in cycle `tail`: frames leave the inbox in
/// order, and its register counts them.
fn delivered(net: &Network<'_>, steps: &Steps<'_>, node: u32, tail: u64) -> u64 {
    let register = |what: &str| net.registers.get(&format!("{}.nic.{what}", net.path(node)));
    let inbox = register("inbox");
    let mut tails: Vec<u64> = Vec::new();
    for vc in 0..net.plan.vcs.total() {
        let queue = net.queue((node, 0), vc);
        let is_tail = |at: usize| queue.heads.get(at + 1) != Some(&queue.heads[at]);
        tails.extend(queue.left.iter().enumerate().filter(|(at, _)| is_tail(*at)).map(|(_, left)| *left));
    }
    tails.sort_unstable();
    let refused = ["damaged", "malformed"].map(register);
    tails.retain(|&cycle| refused.iter().all(|of| of.steps(cycle) == 0));
    let index = tails.iter().rposition(|&at| at == tail);
    let index = index.unwrap_or_else(|| steps.fail("a frame that was refused is followed"));
    let edges = inbox.changes().filter(|&edge| edge > 0).map(|edge| edge - 1).chain(tails.iter().copied());
    let edges: std::collections::BTreeSet<u64> = edges.filter(|&edge| edge < net.registers.last).collect();
    let mut left = 0;
    for cycle in edges {
        left += tails.iter().filter(|&&at| at == cycle).count() as i64 - inbox.steps(cycle);
        if left > index as i64 {
            return cycle;
        }
    }
    steps.fail("a frame stayed in the inbox")
}

/// The agent makes a tree: the one end point with a client, which is the root, asks all the time, and at no other.
fn set_up(net: &Network<'_>, steps: &Steps<'_>, part: &Part) {
    const ASKING: u64 = 1;
    let mut clients = (0..net.plan.nodes.len() as u32)
        .filter_map(|node| net.registers.find(&format!("{}.client0.state", net.path(node))));
    let (Some(client), None) = (clients.next(), clients.next()) else { steps.fail("one root asks") };
    for cycle in part.from..part.to {
        steps.demand(client.value(cycle + 1) == ASKING, || format!("nobody asks in cycle {cycle}"));
    }
    steps.all(part.from..part.to, Kind::SetUp, &part.place);
    steps.demand(client.value(part.from) != ASKING && client.value(part.to + 1) != ASKING, || {
        format!("it asks in other cycles than {} to {}", part.from, part.to)
    });
}

/// What end points of the armed family did between frames.
fn ends(net: &Network<'_>, steps: &Steps<'_>, text: &str) {
    for (number, part) in steps.parts.iter().enumerate() {
        let Some(node) = net.node(&part.place).filter(|&node| net.kind(node) == NodeKind::End) else { continue };
        let before = number.checked_sub(1).map(|before| &steps.parts[before]);
        let after = steps.parts.get(number + 1);
        let at = EndPoint { net, node };
        let cycles = part.from..part.to;
        match part.kind {
            Kind::Compute => computes(&at, steps, part, text),
            Kind::LateStart => {
                for cycle in cycles {
                    let works = at.any("leaf", 1, cycle + 1) || at.any("software", 1, cycle + 1);
                    steps.demand(!works, || format!("{} computes in cycle {cycle}", part.place));
                    steps.all(cycle..cycle + 1, Kind::LateStart, &part.place);
                }
            }
            Kind::SetUp => set_up(net, steps, part),
            Kind::TimeOut => {
                let attempts: Vec<_> = (0..).map_while(|of| at.register(&format!("root{of}.attempts"))).collect();
                steps.demand(attempts.iter().any(|of| of.steps(part.to) > 0), || {
                    format!("{} asks nobody again in cycle {}", part.place, part.to)
                });
                steps.all(cycles, Kind::TimeOut, &part.place);
            }
            Kind::Queue => queues(&at, steps, (before, part), text),
            Kind::Software => software(&at, steps, (before, part, after), text),
            _ => {}
        }
    }
}

/// The registers of an end point.
struct EndPoint<'a> {
    net: &'a Network<'a>,
    node: u32,
}

impl<'a> EndPoint<'a> {
    fn register(&self, what: &str) -> Option<&'a Register> {
        self.net.registers.find(&format!("{}.{what}", self.net.path(self.node)))
    }

    /// The states of its processes of this kind.
    fn states(&self, process: &str) -> Vec<&'a Register> {
        (0..).map_while(|number| self.register(&format!("{process}{number}.state"))).collect()
    }

    /// Whether any of them is in this state.
    fn any(&self, process: &str, state: u64, cycle: u64) -> bool {
        self.states(process).iter().any(|of| of.value(cycle) == state)
    }
}

/// The number that a scenario gives a key; 0 without it.
fn number_of(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

/// A process computes.
fn computes(at: &EndPoint<'_>, steps: &Steps<'_>, part: &Part, text: &str) {
    // The registers show what a process did in a cycle in the next one.
    for cycle in part.from..part.to {
        let works = at.any("leaf", 1, cycle + 1) || at.any("software", 1, cycle + 1) || at.any("root", 1, cycle + 1);
        steps.demand(works, || format!("{} does not compute in cycle {cycle}", part.place));
        steps.all(cycle..cycle + 1, Kind::Compute, &part.place);
    }
    let done = ["leaf", "software"]
        .iter()
        .any(|process| at.states(process).iter().any(|of| of.value(part.to) == 1 && of.value(part.to + 1) != 1));
    let root = !at.states("root").is_empty();
    let begins = ["leaf", "software"]
        .iter()
        .any(|process| at.states(process).iter().any(|of| of.value(part.from) != 1 && of.value(part.from + 1) == 1));
    steps.demand(begins || root || part.from == steps.why.start_cycle, || {
        format!("{} does not begin in cycle {}", part.place, part.from)
    });
    steps.demand(done || root, || format!("{} is not done in cycle {}", part.place, part.to));
    // Where the scenario says how long it takes, nobody is late and nothing was before.
    let says: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("compute_cycles = ")).collect();
    let says = if let [only] = says[..] { only.parse::<u64>().ok() } else { None };
    if let Some(says) = says.filter(|_| root && part.from > steps.why.start_cycle && !text.contains("late =")) {
        steps.demand(part.to - part.from == says, || format!("{says} cycles of work"));
    }
}

/// A frame waits for others and for the link.
fn queues(at: &EndPoint<'_>, steps: &Steps<'_>, (before, part): (Option<&Part>, &Part), text: &str) {
    let send = number_of(text, "send_overhead_cycles");
    // It has been decided on, and other frames or the link keep it.
    let [queue, sending] = ["nic.queue", "nic.sending"].map(|what| at.register(what).unwrap());
    for cycle in part.from..part.to {
        let waits = queue.value(cycle) > 0 || sending.value(cycle) > 0 || cycle == part.from;
        steps.demand(waits, || format!("nothing is queued at {} in cycle {cycle}", part.place));
        steps.all(cycle..cycle + 1, Kind::Queue, &part.place);
    }
    let software = before.filter(|before| before.kind == Kind::Software && before.place == part.place);
    let overhead = software.map_or(0, |before| before.to - before.from);
    steps.demand(overhead >= send || part.from == steps.why.start_cycle, || {
        format!("{} takes {send} cycles of software to send", part.place)
    });
}

/// Software takes its time.
fn software(
    at: &EndPoint<'_>,
    steps: &Steps<'_>,
    (before, part, after): (Option<&Part>, &Part, Option<&Part>),
    text: &str,
) {
    let value = |key: &str| number_of(text, key);
    let send = value("send_overhead_cycles");
    let overheads = send + value("receive_overhead_cycles") + value("merge_cycles");
    steps.demand(overheads > 0, || format!("{} takes no time for software", part.place));
    let [queue, inbox] = ["nic.queue", "nic.inbox"].map(|what| at.register(what).unwrap());
    let sends = after.is_some_and(|after| matches!(after.kind, Kind::Frame | Kind::Queue | Kind::Inject));
    let receives = before.is_some_and(|before| matches!(before.kind, Kind::Link | Kind::Behind));
    for cycle in part.from..part.to {
        let waits = inbox.value(cycle + 1) > 0 || queue.value(cycle + 1) > 0;
        let own = at.any("software", 2, cycle + 1) || at.any("software", 1, cycle + 1) || at.any("root", 1, cycle + 1);
        steps.demand(waits || own, || format!("no software at {} in cycle {cycle}", part.place));
        steps.all(cycle..cycle + 1, Kind::Software, &part.place);
    }
    let least = if sends { send } else { 0 } + if receives { value("receive_overhead_cycles") } else { 0 };
    steps.demand(part.to - part.from >= least, || format!("{} takes at least {least} cycles of software", part.place));
    let own = before.is_some_and(|before| {
        before.place == part.place && matches!(before.kind, Kind::Compute | Kind::LateStart | Kind::TimeOut)
    });
    steps.demand(!own || part.to - part.from == send, || {
        format!("the software of {} takes {send} cycles to send", part.place)
    });
}

/// The cycle in which the collective engine took the message whose tail came in cycle `tail`: messages leave the inbox in
/// order, and its register counts their flits.
fn took(net: &Network<'_>, steps: &Steps<'_>, node: u32, tail: u64) -> u64 {
    let inbox = net.registers.get(&format!("{}.inbox", net.path(node)));
    // Frames that were taken out of the data path, by the cycle of their tails.
    let mut frames: std::collections::BTreeMap<u64, i64> = std::collections::BTreeMap::new();
    for (port, vc) in [0, 1].into_iter().flat_map(|port| (0..net.plan.vcs.total()).map(move |vc| (port, vc))) {
        let queue = net.queue((node, port), vc);
        let mut flits = 0;
        for (at, &left) in queue.left.iter().enumerate() {
            flits += 1;
            if queue.heads.get(at + 1) != Some(&queue.heads[at]) {
                let passed =
                    net.sent_in((node, 1 - port), left).is_some_and(|sent| sent.flit() == queue.came[at].flit());
                *frames.entry(left).or_default() += if passed { 0 } else { flits };
                flits = 0;
            }
        }
    }
    frames.retain(|_, flits| *flits > 0);
    let until = frames.range(..=tail).map(|(_, flits)| flits).sum::<i64>();
    let edges = inbox.changes().filter(|&edge| edge > 0).map(|edge| edge - 1).chain(frames.keys().copied());
    let edges: std::collections::BTreeSet<u64> = edges.filter(|&edge| edge < net.registers.last).collect();
    let mut left = 0;
    for cycle in edges {
        left += frames.get(&cycle).copied().unwrap_or(0) - inbox.steps(cycle);
        if left >= until {
            return cycle;
        }
    }
    steps.fail("a message stayed in the inbox")
}

/// Cycles from a deadline until it acts, at most: a scan of 64 contexts, two a cycle, behind one that has just passed it.
const SCAN: u64 = 2 * 32;

/// A run of the PBV family.
pub fn pbv(net: &Network<'_>, steps: &Steps<'_>, text: &str) {
    let damaged = text.contains("[[pbv.fault]]");
    let stages = text.lines().find_map(|line| line.strip_prefix("stages = ")).expect("the scenario says it");
    let last_stage = format!("ce.tree.level0.stage{stages}");
    // Contexts are numbered as the scenario lists them.
    let context: u64 = steps.why.collective.trim_start_matches('c').parse().expect("collectives are named c0, c1 ...");
    let timeout = if text.contains("timeout_cycles = 600") { 600 } else { 0 };
    let faulty = |hop: &Hop| net.name(hop.to.0).ends_with("fault");
    let mut way: Vec<(Hop, Option<Hop>)> = Vec::new();
    net.check_hops(
        steps,
        |hop, _| if faulty(hop) { Kind::HeldUp } else { Kind::Arbitration },
        |hop, next| way.push((*hop, next.copied())),
    );
    if let Some(first) = net.hops(steps).first().filter(|first| net.name(first.from.0).ends_with("engine")) {
        begun(net, steps, first);
    }
    for (hop, next) in &way {
        if net.kind(hop.to.0) == NodeKind::End {
            leaves(net, steps, hop, Kind::Landing);
            continue;
        }
        let (node, name) = (hop.to.0, net.name(hop.to.0));
        let register = |what: &str| net.registers.get(&format!("{}.{what}", net.path(node)));
        let tail = leaves(net, steps, hop, Kind::EngineWait);
        // On both sides a frame may end in one cycle; which of them is the first in the inbox no register shows.
        let two = register("frames_in").steps(tail) == 2;
        steps.demand(two || register("frames_in").steps(tail) == 1, || {
            format!("{name} checks no frame in cycle {tail}")
        });
        let Some(next) = next else { steps.fail(&format!("nothing leaves {name}")) };
        let head = net.head_of(next.from, &next.sent);
        steps.demand(register("frames_out").steps(head) == 1, || format!("{name} begins no frame in cycle {head}"));
        steps.all(tail..tail + 1, Kind::Engine, name);
        // Frames that were refused, which there are where some are damaged, never were in the inbox.
        let waits = (tail + 1..head).take_while(|&cycle| steps.part(cycle).kind == Kind::EngineWait).count() as u64;
        let took = if damaged || two { tail + 1 + waits } else { took(net, steps, node, tail) };
        for cycle in tail + 1..took {
            steps.demand(register("inbox").value(cycle) > 0, || {
                format!("the inbox of {name} is empty in cycle {cycle}")
            });
        }
        steps.all(tail + 1..took, Kind::EngineWait, name);
        let is_late = |cycle: u64| steps.part(cycle.min(steps.why.end_cycle - 1)).kind == Kind::TimeOut;
        let answered = if is_late(took) {
            took
        } else if steps.part(hop.came - 1).phase == Phase::Climb {
            // Tracked: read, changed, written.
            let [read, write] = ["ce.read_slot", "ce.write_slot"].map(&register);
            steps.demand(read.at(took + 1).is_some() && write.at(took + 2).is_some(), || {
                format!("{name} tracks nothing from cycle {took} on")
            });
            steps.all(took..took + 2, Kind::Engine, name);
            // Its last word leaves the unit, whose last stage says whose words it has; others' may be among them.
            let [valid, cc_id, run] = ["valid", "cc_id", "run"].map(|what| register(&format!("{last_stage}.{what}")));
            let is_ours = |&cycle: &u64| {
                let holds = [valid, cc_id, run].map(|of| of.value(cycle));
                holds == [1, context, steps.why.number]
            };
            let answers = (took + 2..=head).rev().find(is_ours).unwrap_or(took + 2);
            steps.all(took + 2..answers, Kind::Reduce, name);
            answers
        } else {
            took
        };
        // A watchdog that was set then, by a message or because the engine's own was on its way.
        let queued = (answered..head).find(|&cycle| !is_late(cycle)).unwrap_or(head);
        steps.demand((queued - answered) % timeout.max(1) <= SCAN, || {
            format!("no watchdog of {name} runs {answered} to {queued}")
        });
        steps.all(answered..queued, Kind::TimeOut, name);
        for cycle in queued..head {
            let waits = register("output_queue").value(cycle + 1) > 0;
            steps.demand(waits, || format!("{name} has nothing to send in cycle {cycle}"));
        }
        steps.all(queued..head, Kind::Queue, name);
    }
    nodes(net, steps, timeout);
}

/// An account that begins while a frame is in an engine, which sent it in the first step over a link.
fn begun(net: &Network<'_>, steps: &Steps<'_>, first: &Hop) {
    let (node, name) = (first.from.0, net.name(first.from.0));
    let register = |what: &str| net.registers.get(&format!("{}.{what}", net.path(node)));
    for cycle in steps.why.start_cycle..net.head_of(first.from, &first.sent) {
        let kind = steps.part(cycle).kind;
        let holds = match kind {
            Kind::Engine => {
                let tracks = ["ce.read_slot", "ce.write_slot"].map(|slot| register(slot).at(cycle + 1).is_some());
                register("frames_in").steps(cycle) == 1 || tracks.contains(&true)
            }
            Kind::EngineWait => register("inbox").value(cycle) > 0,
            Kind::Reduce => register("ce.in_unit").value(cycle + 1) > 0,
            Kind::Queue => register("output_queue").value(cycle + 1) > 0,
            _ => continue,
        };
        steps.demand(holds, || format!("{name} shows no {} in cycle {cycle}", kind.name()));
        steps.all(cycle..cycle + 1, kind, name);
    }
}

/// What nodes of the PBV family did between frames.
fn nodes(net: &Network<'_>, steps: &Steps<'_>, timeout: u64) {
    const WAITS: u64 = 1;
    const WORKING: u64 = 2;
    for part in &steps.parts {
        let Some(node) = net.node(&part.place) else { continue };
        if net.kind(node) != NodeKind::End {
            // A watchdog that asked more than once.
            if part.kind == Kind::TimeOut && part.from > steps.why.start_cycle {
                steps.demand((part.to - part.from) % timeout.max(1) <= SCAN, || format!("a watchdog runs {part:?}"));
                steps.all(part.from..part.to, Kind::TimeOut, &part.place);
            }
            continue;
        }
        let states: Vec<_> =
            (0..).map_while(|at| net.registers.find(&format!("{}.part{at}.state", net.path(node)))).collect();
        let any = |state: u64, cycle: u64| states.iter().any(|of| of.value(cycle) == state);
        let begins =
            |state: u64, cycle: u64| states.iter().any(|of| of.value(cycle + 1) == state && of.value(cycle) != state);
        let cycles = part.from..part.to;
        match part.kind {
            Kind::Compute => {
                let works = cycles.clone().all(|cycle| any(WORKING, cycle + 1));
                let ends = states.iter().any(|of| of.value(part.to) == WORKING && of.value(part.to + 1) != WORKING);
                let begins = part.from == steps.why.start_cycle || begins(WORKING, part.from);
                steps.demand(works && ends && begins, || format!("{} does not work like {part:?}", part.place));
            }
            Kind::LateStart => {
                let waits = cycles.clone().all(|cycle| any(WAITS, cycle + 1));
                let first = part.from == steps.why.start_cycle;
                steps.demand(waits || first, || format!("{} does not wait like {part:?}", part.place));
            }
            Kind::Queue => {
                // The frame it made stands behind another one, or has no credit, or the link is busy.
                let vc = net.plan.vcs.set;
                for cycle in cycles.clone() {
                    let port = (node, 0);
                    let waits = net.sent_in(port, cycle).is_some()
                        || net.is_busy(port, cycle)
                        || !net.has_room(port, vc, cycle);
                    steps.demand(waits, || format!("{} could send in cycle {cycle}", part.place));
                }
            }
            Kind::TimeOut => {}
            _ => continue,
        }
        steps.all(cycles, part.kind, &part.place);
    }
}
