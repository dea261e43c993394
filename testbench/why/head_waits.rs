//! What flits at the heads of switches' queues waited for, told from the registers in a waveform, against the counts of result
//! documents (H-STAT-1). Where a flit goes is known from where it went; nothing of the model's routes is used.
//!
//! | cause of a cycle, the first that holds | what the registers show |
//! |---|---|
//! | engine full, operands missing | it goes into the engine, and the slot of its port holds as many operands as there are; another input of the id in front has an operand of that id in front as well, or has not |
//! | pipeline stage | a point-to-point packet: its queue's phase does not change from routed to routed, and from active to active |
//! | no virtual channel | its phase is that of a packet with a route, and a cycle later as well |
//! | no credit | the credit register of the output that it leaves by is 0 |
//! | link busy | the output has sent less cycles ago than a flit takes |
//! | other output blocked | none of these at this output, and one at another by which it leaves at the same time |
//! | lost arbitration | none of these |

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use watershed::fabric::Plan;
use watershed::kernel::Rng;
use watershed::scenario::config::Family;
use watershed::scenario::load_text;
use watershed::scenario::result::{Document, Outcome};

use crate::causes::{number, observed, part, seeds};
use crate::network::{Network, Port, Sent, frames, run as run_of};
use crate::piuma::{Engine, Limits, Piuma};
use crate::scenarios::Random;

const ROUTED: u64 = 1;
const ACTIVE: u64 = 2;

/// Cycles by cause.
type Counts = BTreeMap<String, u64>;

/// A flit that left a queue of a switch.
struct Stay {
    node: u32,
    /// The queue, if it is that of a link.
    port: Option<u16>,
    vc: u8,
    /// The first cycle in which it could have left, and the one in which it did.
    from: u64,
    left: u64,
    /// Where it went.
    outs: Vec<(Port, u8)>,
    into_engine: bool,
}

struct Waits<'a> {
    net: &'a Network<'a>,
    engines: Option<&'a Piuma<'a>>,
    slots: usize,
    stages: u64,
}

impl Waits<'_> {
    /// All flits that left queues of a switch.
    fn stays(&self, node: u32) -> Vec<Stay> {
        let net = self.net;
        let engine = self.engines.map(|piuma| piuma.engine(node));
        let mut stays = Vec::new();
        for port in (0..net.ports(node)).filter(|&port| net.link((node, port)).is_some()) {
            for vc in 0..net.plan.vcs.total() {
                let queue = net.queue((node, port), vc);
                let front = if net.is_set(vc) { net.front } else { 0 };
                let mut turn = 0;
                for (came, &left) in queue.came.iter().zip(&queue.left) {
                    let is_put = engine.as_ref().is_some_and(|engine| {
                        let put = |put: &crate::piuma::Put| {
                            (put.cycle, put.port, 2 * put.plane, put.id, put.seq) == (left, port, vc, came.id, came.seq)
                        };
                        engine.puts.iter().any(put)
                    });
                    let mut outs = if is_put { Vec::new() } else { net.outs_of(node, came, left) };
                    outs.retain(|(_, channel)| !net.is_set(vc) || *channel == vc);
                    let from = turn.max(came.cycle + front);
                    stays.push(Stay { node, port: Some(port), vc, from, left, outs, into_engine: is_put });
                    turn = left + 1;
                }
            }
        }
        let Some(engine) = engine else { return stays };
        let came = |sent: &Sent| {
            let of = |take: &&crate::piuma::Take| (take.operands[0].id, take.operands[0].seq) == (sent.id, sent.seq);
            engine.takes.iter().find(of).and_then(|take| take.came).expect("a result came out of the tree")
        };
        let mut turns = BTreeMap::new();
        for (&(vc, left), sent) in &engine.left {
            let turn = turns.insert(vc, left + 1).unwrap_or(0);
            let mut outs = net.outs_of(node, sent, left);
            outs.retain(|(_, channel)| *channel == vc);
            let from = turn.max(came(sent) + net.front);
            stays.push(Stay { node, port: None, vc, from, left, outs, into_engine: false });
        }
        stays
    }

    /// What is in the way at an output in a cycle, if anything.
    fn blocked(&self, (out, vc): (Port, u8), cycle: u64) -> Option<&'static str> {
        if self.net.credits(out, vc, cycle) == 0 {
            Some("no_credit")
        } else if self.net.is_busy(out, cycle) {
            Some("link_busy")
        } else {
            None
        }
    }

    /// Why a flit cannot go into the engine in a cycle.
    fn full(&self, engine: &Engine, stay: &Stay, cycle: u64) -> &'static str {
        let plane = stay.vc / 2;
        // What a port's slots hold behind the engine's clock, what goes in now left out.
        let held = |port: u16| {
            let puts = engine.puts.iter().filter(|put| (put.port, put.plane) == (port, plane) && put.cycle < cycle);
            let gone = engine.takes.iter().filter(|take| take.cycle <= cycle).flat_map(|take| &take.operands);
            let gone = gone.filter(|put| (put.port, put.plane) == (port, plane)).count();
            puts.skip(gone).collect::<Vec<_>>()
        };
        let own = held(stay.port.expect("engines are fed from links"));
        if own.len() < self.slots {
            return "lost_arbitration";
        }
        let id = own[0].id;
        let inputs = engine.puts.iter().filter(|put| (put.id, put.plane) == (id, plane));
        let inputs: BTreeSet<u16> = inputs.map(|put| put.port).collect();
        let all = inputs.into_iter().all(|port| held(port).first().is_some_and(|front| front.id == id));
        if all { "engine_full" } else { "operands_missing" }
    }

    /// Why a point-to-point packet, or the rest of one, stays where it is for a cycle.
    fn routed(&self, stay: &Stay, cycle: u64) -> &'static str {
        let port = (stay.node, stay.port.expect("packets come over links"));
        let [phase, next] = [cycle, cycle + 1].map(|cycle| self.net.phase(port, stay.vc, cycle));
        // Steps that take no cycle of their own are made together with the one before.
        let (routes_at_once, allocates_at_once) = (self.stages < 4, self.stages < 3);
        let asked = phase == ROUTED || phase < ROUTED && routes_at_once;
        match next {
            ROUTED if asked => "no_virtual_channel",
            ACTIVE if phase == ACTIVE || asked && allocates_at_once => {
                self.blocked(stay.outs[0], cycle).unwrap_or("lost_arbitration")
            }
            _ => "pipeline_stage",
        }
    }

    /// Counts what the flits of a switch waited for: at each output, and before the engine.
    fn count(&self, stays: &[Stay], outputs: &mut BTreeMap<Port, Counts>, before_engines: &mut Counts) {
        let add = |counts: &mut Counts, cause: &str| *counts.entry(cause.to_owned()).or_default() += 1;
        for stay in stays {
            let engine = self.engines.map(|piuma| piuma.engine(stay.node));
            for cycle in stay.from..stay.left {
                if stay.into_engine {
                    let engine = engine.as_ref().expect("it went into one");
                    add(before_engines, self.full(engine, stay, cycle));
                } else if self.net.is_set(stay.vc) {
                    let any = stay.outs.iter().any(|&out| self.blocked(out, cycle).is_some());
                    let rest = if any { "other_output_blocked" } else { "lost_arbitration" };
                    for &out in &stay.outs {
                        add(outputs.entry(out.0).or_default(), self.blocked(out, cycle).unwrap_or(rest));
                    }
                } else {
                    add(outputs.entry(stay.outs[0].0).or_default(), self.routed(stay, cycle));
                }
            }
        }
    }

    /// Whether two packets with the same words left a switch in the same cycle, so that nobody can tell which is which.
    fn is_ambiguous(&self, stays: &[Stay]) -> bool {
        stays.iter().any(|stay| !self.net.is_set(stay.vc) && stay.outs.len() != 1)
    }

    /// Holds a document against the registers; what was found adds to `seen`. Whether that could be done.
    fn compare(&self, document: &Document, text: &str, seen: &mut Counts) -> bool {
        let switches = (0..self.net.plan.nodes.len() as u32).filter(|&node| self.net.is_switch(node));
        let switches: Vec<Vec<Stay>> = switches.map(|node| self.stays(node)).collect();
        if switches.iter().any(|stays| self.is_ambiguous(stays)) {
            return false;
        }
        let (mut outputs, mut before_engines) = (BTreeMap::new(), Counts::new());
        for stays in &switches {
            self.count(stays, &mut outputs, &mut before_engines);
        }
        let (mut before_links, nothing) = (Counts::new(), Counts::new());
        let outputs: BTreeMap<String, Counts> =
            outputs.into_iter().map(|(port, counts)| (self.net.place(port), counts)).collect();
        for link in document.links.all.as_ref().expect("all links were asked for") {
            let (from, _) = link.name.split_once(" -> ").expect("a direction has two ends");
            let counted = outputs.get(from).unwrap_or(&nothing);
            assert_eq!(&link.waits, counted, "{}\n{text}", link.name);
            assert_eq!(link.waits.values().sum::<u64>(), link.head_wait_cycles, "{}\n{text}", link.name);
            for (cause, cycles) in counted {
                *before_links.entry(cause.clone()).or_default() += cycles;
            }
        }
        let waits = document.links.waits.as_ref().expect("link monitors look");
        assert_eq!((&waits.links, &waits.engines), (&before_links, &before_engines), "{text}");
        for (cause, cycles) in before_links.into_iter().chain(before_engines) {
            *seen.entry(cause).or_default() += cycles;
        }
        true
    }
}

/// Runs a scenario; whether it was compared.
fn check(text: &str, seen: &mut Counts) -> bool {
    let Ok(loaded) = load_text("test", text, Path::new(env!("CARGO_MANIFEST_DIR")), "test", &[]) else { return false };
    let Some((result, registers)) = observed(&loaded, None) else { return false };
    if result.document.outcome != Outcome::Finished {
        return false;
    }
    let stages = number(text, "pipeline_stages", 1);
    if loaded.scenario.family == Family::Pbv {
        use watershed::scenario::pbv::build::{BuildOptions, build};
        let Ok(ready) = build(&loaded, BuildOptions::default()) else { return false };
        let net = Network::new(&registers, ready.system.plan(), stages, frames(number(text, "flit_bits", 64)));
        Waits { net: &net, engines: None, slots: 0, stages }.compare(&result.document, text, seen)
    } else {
        use watershed::scenario::build::{BuildOptions, build};
        let options = BuildOptions { whole: true, ..BuildOptions::default() };
        let Ok(ready) = build(&loaded, options) else { return false };
        let plan: &Plan = ready.system.plan();
        let net = Network::new(&registers, plan, stages, |set, list| if set { 1 } else { run_of(list) });
        let ceng = ready.system.joins().first().map(watershed::piuma::Ceng::cfg);
        let slots = ceng.map_or(0, |cfg| cfg.operand_slots as usize);
        let piuma = Piuma::new(&net, Limits::default(), BTreeSet::new());
        let engines = (loaded.scenario.family == Family::Piuma).then_some(&piuma);
        Waits { net: &net, engines, slots, stages }.compare(&result.document, text, seen)
    }
}

/// Random scenarios of a kind, `part` of them, and the causes that must be among what was compared.
fn campaign(stream: u64, many: u64, step: usize, make: fn(&mut Random) -> String, expected: &[&str]) {
    let (mut seen, mut compared, mut ran) = (Counts::new(), 0, 0);
    let has = |seen: &Counts, cause: &str| seen.get(cause).is_some_and(|&cycles| cycles > 0);
    let runs = part(step, seeds(0..many), |seed| {
        // Scans wait in a unit of their own.
        let text = make(&mut Random(Rng::new(seed, stream))).replace("kind = \"scan\"", "kind = \"allreduce\"");
        compared += u64::from(check(&text, &mut seen));
        ran += 1;
        compared * 3 > ran && expected.iter().all(|cause| has(&seen, cause))
    });
    if std::env::var_os("WATERSHED_SEEDS").is_none() {
        // Of a part there may be fewer, as chance has it.
        let times = if runs < many { 3 } else { 2 };
        assert!(compared * times > runs, "{compared} of {runs}");
        for cause in expected {
            assert!(has(&seen, cause), "no cycle of {cause}: {seen:?}");
        }
    }
}

const OF_PACKETS: [&str; 5] = ["no_credit", "lost_arbitration", "no_virtual_channel", "link_busy", "pipeline_stage"];

#[test]
fn words_and_the_packets_beside_them() {
    let of_words =
        ["no_credit", "lost_arbitration", "link_busy", "engine_full", "operands_missing", "other_output_blocked"];
    campaign(21, 60, 8, Random::piuma, &of_words);
}

#[test]
fn packets_of_a_plain_fabric() {
    campaign(22, 60, 8, Random::fabric, &OF_PACKETS);
}

#[test]
fn messages_of_hosts() {
    campaign(23, 20, 5, Random::hosts, &["no_credit", "lost_arbitration", "pipeline_stage"]);
}

#[test]
fn frames_whose_address_comes_second() {
    campaign(24, 30, 5, Random::pbv, &["no_virtual_channel", "pipeline_stage"]);
}
