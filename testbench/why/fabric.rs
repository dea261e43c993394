//! What holds a flit in a cycle, told from the registers of the queue that it stands in and of the output that it leaves by.
//!
//! | cause | what the registers show in the cycle |
//! |---|---|
//! | link | the output register has held the flit, and it has not come into the far queue |
//! | switch | the flit came less than the front stages ago (set-routed), or came to the head less than that ago (the head of a point-to-point packet); or it was granted and passes the stages behind allocation |
//! | held up | at a link with faults: no flit leaves the queue, and the credit register of the output is above 0 |
//! | behind | a flit that came before it stands in the queue; of a packet with several copies: this copy has not sent the flit before |
//! | credit wait | it is its turn, and the credit register of an output that it leaves by is 0 |
//! | arbitration | it is its turn, all of these are above 0, and the output sends another flit, its link is busy with one, its channel is held, or another queue of the same input sends or competes |
//! | inject | the block's output register takes it with the next edge |
//! | frame | the block's port has sent the first flit of the frame, and not the last |

use watershed::fabric::NodeKind;
use watershed::scenario::why::Kind;

use crate::network::{Network, Port, Sent};
use crate::steps::{Holds, Steps};

/// The phase of a packet that holds its output channel.
const ACTIVE: u64 = 2;

/// A flit that stands in a queue.
#[derive(Clone, Debug)]
pub struct Stay {
    pub port: Port,
    pub vc: u8,
    pub came: u64,
    /// The cycle in which it leaves, or in which the copy that is followed does.
    pub left: u64,
    /// The first cycle in which nothing before it is in its way.
    pub turn: u64,
    /// Whether it is the head of a point-to-point packet, which passes the front stages when it has come to the head.
    pub is_head: bool,
    /// Outputs by which it leaves, with their channels; none if a block takes it.
    pub outs: Vec<(Port, u8)>,
}

/// One step over a link.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// The port that sent the flit, and the queue that it came into.
    pub from: Port,
    pub to: Port,
    pub sent: Sent,
    pub came: u64,
    /// Its place among all that came into this queue.
    pub index: usize,
}

impl Network<'_> {
    /// The steps over links of an account, in the order of time.
    pub fn hops(&self, steps: &Steps<'_>) -> Vec<Hop> {
        let links = steps.parts.iter().filter(|part| part.kind == Kind::Link);
        links
            .map(|part| {
                let (from, to) =
                    self.link_named(&part.place).unwrap_or_else(|| steps.fail(&format!("no link {}", part.place)));
                let way = self.way(from);
                let sent = part.to.checked_sub(way).and_then(|cycle| self.sent_in(from, cycle));
                let sent = sent.unwrap_or_else(|| {
                    steps.fail(&format!("{} sent nothing that came at {}", self.place(from), part.to))
                });
                let behind = if self.is_switch(from.0) { self.post } else { 0 };
                let begins = sent.cycle + behind + 1;
                steps.demand(part.from == begins.max(steps.why.start_cycle), || {
                    format!("a flit is on {} from cycle {begins}, not from {}", part.place, part.from)
                });
                steps.all(begins..part.to, Kind::Link, &part.place);
                let queue = self.queue(to, sent.vc);
                let index = queue.came.binary_search_by_key(&part.to, |came| came.cycle);
                let index = index.unwrap_or_else(|_| steps.fail("a flit that was sent came nowhere"));
                Hop { from, to, sent, came: part.to, index }
            })
            .collect()
    }

    /// Whether the same flit: on another channel it may be, and damaged.
    pub fn is_same(a: &Sent, b: &Sent) -> bool {
        (a.id, a.seq) == (b.id, b.seq)
    }

    /// The ports of a switch that sent a flit in a cycle.
    pub fn outs_of(&self, node: u32, flit: &Sent, cycle: u64) -> Vec<(Port, u8)> {
        let ports = (0..self.ports(node)).map(|port| (node, port));
        ports
            .filter_map(|port| {
                let sent = self.sent_in(port, cycle)?;
                (sent.flit() == flit.flit()).then_some((port, sent.vc))
            })
            .collect()
    }

    /// A flit in the queue that a hop ends in, which leaves by `outs` in cycle `left`.
    pub fn stay(&self, hop: &Hop, left: u64, outs: Vec<(Port, u8)>) -> Stay {
        let queue = self.queue(hop.to, hop.sent.vc);
        let before = hop.index.checked_sub(1);
        let same = before.filter(|_| queue.heads[hop.index] != hop.index);
        // Copies of a frame go their own way: what is before the flit is the flit that the same output sent before.
        let copy = same.filter(|_| self.is_set(hop.sent.vc) && self.is_switch(hop.to.0)).and_then(|_| {
            let sent = self.sent(outs.first()?.0);
            let earlier = sent.iter().rev().find(|sent| sent.cycle < left && Network::is_same(sent, &hop.sent));
            earlier.map(|sent| sent.cycle + 1)
        });
        let in_queue = before.map_or(0, |before| queue.left.get(before).map_or(u64::MAX, |left| left + 1));
        Stay {
            port: hop.to,
            vc: hop.sent.vc,
            came: hop.came,
            left,
            turn: copy.unwrap_or(in_queue).min(left),
            is_head: same.is_none(),
            outs,
        }
    }

    /// What holds a flit in each cycle from its coming to its leaving. `blocked` says what it waits for at a block that takes it.
    pub fn causes(&self, stay: &Stay, blocked: impl Fn(u64) -> Kind) -> Vec<(u64, Holds)> {
        let place = self.place(stay.port);
        let here = |kind| Holds { kind, places: vec![place.clone()] };
        let in_switch = self.is_switch(stay.port.0);
        let set = self.is_set(stay.vc);
        let front = if in_switch { self.front } else { 0 };
        // The stages in front of allocation: on coming, or on coming to the head.
        let staged = if set { stay.came } else { stay.turn.max(stay.came) };
        let staged = if set || stay.is_head { staged + front } else { staged };
        (stay.came..stay.left)
            .map(|cycle| {
                let first = if set { cycle < staged } else { stay.turn <= cycle && cycle < staged };
                let holds = if first {
                    here(Kind::Switch)
                } else if cycle < stay.turn && !self.holds_up(stay, cycle) {
                    here(Kind::Behind)
                } else if cycle < stay.turn {
                    here(Kind::HeldUp)
                } else if stay.outs.is_empty() {
                    here(blocked(cycle))
                } else {
                    let empty = stay.outs.iter().filter(|&&(out, vc)| self.credits(out, vc, cycle) == 0);
                    let empty: Vec<String> = empty.map(|&(out, _)| self.place(out)).collect();
                    if empty.is_empty() {
                        let outs = stay.outs.iter().map(|&(out, _)| self.place(out)).collect();
                        Holds { kind: blocked(cycle), places: outs }
                    } else {
                        Holds { kind: Kind::CreditWait, places: empty }
                    }
                };
                (cycle, holds)
            })
            .collect()
    }

    /// Whether a link with faults lets nothing out of a queue in a cycle, although there is a credit.
    fn holds_up(&self, stay: &Stay, cycle: u64) -> bool {
        self.name(stay.port.0).ends_with("fault")
            && self.queue(stay.port, stay.vc).left.binary_search(&cycle).is_err()
            && stay.outs.iter().all(|&(out, vc)| self.credits(out, vc, cycle) > 0)
    }

    /// Whether another flit was in the way of one that could have gone in a cycle.
    pub fn is_contended(&self, stay: &Stay, cycle: u64) -> bool {
        let (node, input) = stay.port;
        let all = 0..self.plan.vcs.total();
        let others = || all.clone().filter(|&vc| vc != stay.vc).map(|vc| (stay.port, vc));
        let by_output = stay.outs.iter().any(|&(out, vc)| {
            let channels = self.plan.vcs.set..self.plan.vcs.total();
            self.sent_in(out, cycle).is_some()
                || self.is_busy(out, cycle)
                || self.is_held(out, vc, cycle)
                // A packet without a channel: others have some.
                || !self.is_set(vc) && channels.into_iter().any(|vc| self.is_held(out, vc, cycle))
        });
        // Another queue of the input sends, or is chosen and loses elsewhere.
        let by_input = self.link((node, input)).is_some()
            && others().any(|(port, vc)| self.queue(port, vc).left.binary_search(&cycle).is_ok())
            || !self.is_set(stay.vc) && others().any(|(port, vc)| self.flits(port, vc, cycle) > 0);
        // Its channel is given in this cycle, a stage before it can go: it was not to be had before.
        let allocated = self.is_switch(node)
            && !self.is_set(stay.vc)
            && self.phase(stay.port, stay.vc, cycle) != ACTIVE
            && self.phase(stay.port, stay.vc, cycle + 1) == ACTIVE;
        // Or it went to a packet of another queue.
        let waits = |port: Port, vc: u8, cycle: u64| self.phase(port, vc, cycle) != ACTIVE;
        let lost = self.is_switch(node) && !self.is_set(stay.vc) && waits(stay.port, stay.vc, cycle) && {
            let queues = (0..self.ports(node)).flat_map(|port| all.clone().map(move |vc| ((node, port), vc)));
            queues.filter(|&(port, _)| self.link(port).is_some()).any(|(port, vc)| {
                (port, vc) != (stay.port, stay.vc) && waits(port, vc, cycle) && !waits(port, vc, cycle + 1)
            })
        };
        by_output || by_input || allocated || lost
    }

    /// Checks all that happens to flits between blocks: from each link of the account into the next queue, out of it and onto
    /// the next link. What blocks take is left to `taken`: the hop, and the next one. `blocked` says what a flit waits for at the
    /// head of a block's queue.
    pub fn check_hops(
        &self,
        steps: &Steps<'_>,
        blocked: impl Fn(&Hop, u64) -> Kind,
        mut taken: impl FnMut(&Hop, Option<&Hop>),
    ) {
        let mut hops = self.hops(steps);
        if let Some(before) = hops.first().and_then(|first| self.stood(first)) {
            hops.insert(0, before);
        }
        for (at, hop) in hops.iter().enumerate() {
            let next = hops.get(at + 1);
            if !self.is_switch(hop.from.0) && hop.came > steps.why.start_cycle {
                self.check_sender(steps, hop, at.checked_sub(1).map(|before| &hops[before]));
            }
            // It goes on if what this node sends next is the same flit.
            let on = next.filter(|next| {
                // Engines of the armed family store what climbs away from their switches, even what they pass on.
                let stores =
                    self.stores && hop.sent.vc == 0 && hop.to.1 == 0 && self.name(hop.to.0).ends_with("engine");
                let other_side = self.kind(hop.to.0) != NodeKind::Bump || next.from.1 != hop.to.1 && !stores;
                let goes_on = self.kind(hop.to.0) != NodeKind::End && next.from.0 == hop.to.0;
                goes_on && Network::is_same(&next.sent, &hop.sent) && other_side
            });
            // A word that goes into an engine leaves its queue before what is made of it leaves the switch.
            let at_once = |next: &&Hop| self.queue(hop.to, hop.sent.vc).left.get(hop.index) == Some(&next.sent.cycle);
            let through = self.is_switch(hop.to.0) && self.is_set(hop.sent.vc) && self.is_single(hop);
            let on = on.filter(|next| !through || at_once(next));
            let Some(next) = on else {
                taken(hop, next);
                continue;
            };
            let left = next.sent.cycle;
            if self.is_switch(hop.to.0) {
                // A packet of one flit leaves by all its outputs at once.
                let all = self.outs_of(hop.to.0, &hop.sent, left);
                let alone = self.queue(hop.to, hop.sent.vc).left.get(hop.index) == Some(&left);
                let followed = (next.from, next.sent.vc);
                let outs = if self.is_set(hop.sent.vc) && alone && self.is_single(hop) { all } else { vec![followed] };
                let stay = self.stay(hop, left, outs);
                for (cycle, holds) in self.causes(&stay, |_| Kind::Arbitration) {
                    if holds.kind == Kind::Arbitration {
                        steps.demand(self.is_contended(&stay, cycle), || {
                            format!("in cycle {cycle} nothing is in the way of the flit at {}", self.place(hop.to))
                        });
                    }
                    steps.holds(cycle, &holds);
                }
                steps.all(left..left + self.post + 1, Kind::Switch, &self.place(next.from));
            } else {
                let queue = self.queue(hop.to, hop.sent.vc);
                let taken = queue.left[hop.index];
                let stay = self.stay(hop, taken, vec![(next.from, next.sent.vc)]);
                for (cycle, holds) in self.causes(&stay, |cycle| blocked(hop, cycle)) {
                    steps.holds(cycle, &holds);
                }
                steps.all(taken..left + 1, Kind::Switch, self.name(hop.to.0));
            }
        }
    }

    /// The hop before the first one of an account that begins while the flit stands in a queue.
    fn stood(&self, first: &Hop) -> Option<Hop> {
        let node = first.from.0;
        let ports = (0..self.ports(node)).filter(|&port| port != first.from.1 || self.is_switch(node));
        let queues = ports.flat_map(|port| (0..self.plan.vcs.total()).map(move |vc| ((node, port), vc)));
        queues.filter(|&(port, _)| self.kind(node) != NodeKind::End && self.link(port).is_some()).find_map(
            |(to, vc)| {
                let queue = self.queue(to, vc);
                let index = queue.left.binary_search(&first.sent.cycle).ok()?;
                let sent = queue.came[index];
                (sent.flit() == first.sent.flit()).then(|| Hop {
                    from: self.link(to).expect("it has one").peer,
                    to,
                    sent,
                    came: sent.cycle,
                    index,
                })
            },
        )
    }

    /// Whether a flit is a packet of its own.
    fn is_single(&self, hop: &Hop) -> bool {
        let heads = &self.queue(hop.to, hop.sent.vc).heads;
        heads[hop.index] == hop.index && heads.get(hop.index + 1) != Some(&hop.index)
    }

    /// What a block sent: its last flit, and those of the frame before it.
    fn check_sender(&self, steps: &Steps<'_>, hop: &Hop, before: Option<&Hop>) {
        let stores = self.stores && hop.sent.vc == 0 && hop.from.1 == 1 && self.name(hop.from.0).ends_with("engine");
        let passed = before.filter(|_| !stores).is_some_and(|before| {
            before.to.0 == hop.from.0 && before.to.1 != hop.from.1 && Network::is_same(&before.sent, &hop.sent)
        });
        if passed {
            return;
        }
        let name = self.name(hop.from.0);
        steps.all(hop.sent.cycle..hop.sent.cycle + 1, Kind::Inject, name);
        steps.all(self.head_of(hop.from, &hop.sent)..hop.sent.cycle, Kind::Frame, name);
    }
}
