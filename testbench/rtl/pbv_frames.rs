//! Packet engines with their frames beside those of the model, word by word: random messages of every kind, spoiled ones among them,
//! through two ports, with gaps, back-pressure and resets; and what engines of running systems take off their links and send.

use std::collections::{BTreeMap, BTreeSet};

use watershed::kernel::Rng;
use watershed::pbv::ce::CeCfg;
use watershed::pbv::checker::{CheckOutcome, check};
use watershed::pbv::engine::{CycleRecord, EngineCfg, MOST_REFUSALS, PortRecord};
use watershed::pbv::packet::{Body, ConfigRecord, Header, InitRecord, Message, Packet, Status, crc};
use watershed::pbv::{Directory, Engine};

use crate::bench::{Cosim, Difference};
use crate::pbv_bench::Shape;
use crate::pbv_ce::{self, ME, PARTICIPANTS, Rig, SELECTS, WORDS};
use crate::pbv_engines::{self, AROUND, GAP, shape};
use crate::pbv_frame_bench::{Clock, FrameShape, Line, Sides, beside};
use crate::random::seed;
use crate::verilator;

/// Words behind the header of a frame that leaves, at most.
const PAYLOAD: usize = 28;
/// Words behind the longest header that the RTL is built for.
const LONGEST: usize = 128;
/// Messages in the RTL's inbox.
const INBOX: usize = 6;

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    taken: BTreeMap<Message, u64>,
    refused: BTreeMap<Status, u64>,
    registers: u64,
    words: u64,
    waited: u64,
    full: u64,
}

// ------------------------------------------------------------------------------------------------------ random messages

/// What a frame that is on its way would store: which context, what, what its messages are like then.
type Pending = Option<(usize, InitRecord, pbv_ce::Kind)>;

/// An engine of the model, who sends to it, and frames on their way.
struct Sender {
    rig: Rig,
    engine: Engine,
    /// By port: the words of a frame that are still to come, the last one first, and the whole.
    coming: [(Vec<u64>, Vec<u64>); 2],
    /// Messages that were sent and not taken.
    under_way: Vec<(Packet, Pending)>,
    /// One in so many cycles is a gap, at the inputs and at the output.
    gaps: [u64; 3],
    /// Cycles in which the output takes nothing, and the inputs give nothing.
    blocked: u64,
    silent: u64,
}

impl Sender {
    fn new(cfg: &EngineCfg, rng: &mut Rng) -> Sender {
        let mut rig = Rig::new(cfg.ce, rng);
        rig.table.timeout = if rng.below(4) == 0 { 0 } else { 100 + rng.below(800) as u32 };
        let mut engine = Engine::new(*cfg, 0);
        let table = &rig.table;
        let entries = (0..PARTICIPANTS).filter_map(|entry| table.device(entry)).collect();
        let record = ConfigRecord {
            timeout: table.timeout,
            retries: table.retries,
            report_errors: table.report_errors,
            validate: table.validate,
            ..ConfigRecord::of(ME.0, entries, table.switches)
        };
        engine.side_port(0, record);
        engine.own(table.owners.clone());
        engine.keep_given();
        let gaps = [2 + rng.below(6), 2 + rng.below(6), 2 + rng.below(9)];
        Sender { rig, engine, coming: Default::default(), under_way: Vec::new(), gaps, blocked: 0, silent: 0 }
    }

    /// A frame for a port.
    fn frame(&mut self, rng: &mut Rng) -> Vec<u64> {
        self.rig.ce.clone_from(self.engine.ce());
        self.rig.pending = None;
        let mut packet = if rng.below(25) == 0 { other(rng) } else { self.rig.message(rng) };
        match &mut packet.body {
            Body::Initialisation(records) if rng.below(2) == 0 => {
                more_records(records, rng);
                let own = records.iter().find(|record| record.device == ME.0).expect("its own");
                if let Some((_, record, _)) = &mut self.rig.pending {
                    record.below = own.below;
                }
            }
            Body::Words(words) if rng.below(40) == 0 && packet.header.message == Message::Contribution => {
                // More than any context has.
                words.resize(WORDS + 1 + rng.below(3) as usize, rng.bits());
                packet.header.error = false;
            }
            _ => {}
        }
        let header = &mut packet.header;
        if rng.below(3) == 0 {
            header.tlp.tc = rng.below(8) as u8;
        }
        match rng.below(150) {
            0 => header.device ^= 1 << rng.below(16),
            1 => header.offset ^= 1 << rng.below(16),
            2 => header.tlp.poisoned = true,
            _ => {}
        }
        let words = packet.flits().expect("a frame");
        let spoiled = spoiled(&words, rng);
        // What a spoiled frame would do to a context is the business of those who send it on purpose.
        let words = match check(&self.engine.cfg(), &spoiled) {
            CheckOutcome::Collective(_) => words,
            _ => spoiled,
        };
        if let CheckOutcome::Collective(packet) = check(&self.engine.cfg(), &words) {
            self.under_way.push((packet, self.rig.pending.take()));
        }
        words
    }

    /// The word of a port.
    fn word(&mut self, port: usize, rng: &mut Rng) -> Option<(u64, bool)> {
        if self.coming[port].0.is_empty() && self.under_way.len() < INBOX && self.silent == 0 && rng.below(3) == 0 {
            let frame = self.frame(rng);
            self.coming[port] = (frame.iter().rev().copied().collect(), frame);
        }
        if rng.below(self.gaps[port]) == 0 {
            return None;
        }
        let word = self.coming[port].0.pop()?;
        Some((word, self.coming[port].0.is_empty()))
    }

    /// A message was taken: what it makes of its context.
    fn note(&mut self, given: &CycleRecord) {
        let Some(packet) = &given.packet else { return };
        let at = self.under_way.iter().position(|(sent, _)| sent == packet).expect("it was sent");
        self.rig.pending = self.under_way.remove(at).1;
        self.rig.ce.clone_from(self.engine.ce());
        self.rig.note(Some(packet.header));
    }
}

/// A frame that is not for the collective engine.
fn other(rng: &mut Rng) -> Packet {
    let messages = [Message::Write, Message::Read, Message::ReadReply, Message::Configuration, Message::Report];
    let message = messages[rng.below(5) as usize];
    let header = Header { p_id: rng.below(128) as u8, run: rng.bits() as u32, ..Header::new(message, 50, ME.0, ME.1) };
    let header = Header { posted: rng.below(4) == 0, ..header };
    if message == Message::Configuration {
        let record = |rng: &mut Rng| {
            let entries: Vec<u16> = (0..rng.below(20)).map(|_| rng.bits() as u16).collect();
            let switches = u128::from(rng.bits()) & ((1 << entries.len()) - 1);
            let mut record =
                ConfigRecord { window: 5, isl_ports: rng.bits(), ..ConfigRecord::of(7, entries, switches) };
            if rng.below(2) == 0 {
                let reports = watershed::pbv::reports::Reports { levels: 1, queues: 2, collector: rng.bits() as u32 };
                record.reports = Some(reports);
            }
            record
        };
        let records = (0..rng.below(4)).map(|_| record(rng)).collect();
        return Packet { header, body: Body::Configuration(records) };
    }
    Packet::of(header, (0..rng.below(5)).map(|_| rng.bits()).collect())
}

/// Records of engines around that of the engine: above it, below it, behind it.
fn more_records(records: &mut Vec<InitRecord>, rng: &mut Rng) {
    let other = |device: u64, rng: &mut Rng| {
        let record = InitRecord::barrier(100 + device as u16, u128::from(rng.bits() & 0xff));
        let down = if rng.below(2) == 0 { record.pbv } else { record.pbv ^ 1 << rng.below(100) };
        InitRecord { down, ..record }
    };
    for _ in 0..rng.below(3) {
        let record = other(4 + rng.below(2), rng);
        records[0].below += 1;
        records.push(record);
    }
    if records.len() == 3 && rng.below(2) == 0 {
        records[1].below = 1;
    }
    if rng.below(3) == 0 {
        let record = other(20, rng);
        let below = records.len() as u16;
        records.insert(0, InitRecord { below, ..record });
    }
    if rng.below(3) == 0 {
        records.push(other(30, rng));
    }
}

/// A frame that something went wrong with, now and then: bits on the way, a word too few or too many, or what its sender made of it.
pub fn spoiled(words: &[u64], rng: &mut Rng) -> Vec<u64> {
    let mut all = words.to_vec();
    let wrong = rng.below(60);
    if wrong > 9 {
        return all;
    }
    let at = rng.below(all.len() as u64) as usize;
    match wrong {
        0 => all[at] ^= 1 << rng.below(64),
        1 => all.truncate(at.max(1)),
        2 => all.push(0),
        // In one of the fields that have few values.
        3 => all[1] ^= 1 << rng.below(32),
        4 => all[2] ^= 1 << (32 + rng.below(20)),
        5 => all[0] ^= 1 << (32 + rng.below(32)),
        6 => all[3] ^= 1 << (24 + rng.below(8)),
        7 if all.len() > 4 => all.truncate(all.len() - 1),
        _ if all.len() > 4 => {
            let at = 4 + rng.below(all.len() as u64 - 4) as usize;
            all[at] ^= 1 << rng.below(64);
        }
        _ => {}
    }
    if matches!(wrong, 5 | 7) && rng.below(2) == 0 {
        // Length is right again.
        all[0] = all[0] & !(0x3ff << 32) | (2 * (all.len() as u64 - 4)) << 32;
    }
    if wrong > 2 { sealed(&all) } else { all }
}

/// With the CRC that it needs.
fn sealed(words: &[u64]) -> Vec<u64> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    crc::seal(&mut bytes);
    bytes.chunks_exact(8).map(|word| u64::from_be_bytes(word.try_into().expect("eight bytes"))).collect()
}

/// A directory that knows every device.
fn everywhere() -> Directory {
    let mut directory = Directory::new(1, &[]);
    directory.add_switch(ME.0, 0);
    directory.add_engine(0, 0);
    (0..=u16::MAX).filter(|&device| device != ME.0).for_each(|device| directory.add_end(device, 0, 1));
    directory
}

/// Random frames for so many cycles; `None` without Verilator.
pub fn drive(
    name: &str,
    ce: CeCfg,
    fault: Option<u8>,
    seed: u64,
    cycles: u64,
) -> Option<Result<(Cosim, Counts), Box<Difference>>> {
    let shape =
        Shape { cfg: ce, participants: PARTICIPANTS, words: WORDS, groups: 2, selects: SELECTS.to_vec(), fault };
    let cfg = EngineCfg { base: ME.1, priority_bound: 3, output: 28, ce, ..EngineCfg::of(ME.0) };
    let frame = FrameShape { shape, cfg, inbox: INBOX, places: 112, payload: PAYLOAD, sides: Sides::USUAL };
    let mut cosim = frame.bench().build(name)?;
    let directory = everywhere();
    let mut rng = Rng::new(seed, 0);
    let mut sender = Sender::new(&cfg, &mut rng);
    let mut counts = Counts::default();
    for now in 0..cycles {
        let reset = now == 0 || rng.below(3_000) == 0;
        if reset {
            sender = Sender::new(&cfg, &mut rng);
        }
        let idle = |rng: &mut Rng, left: u64| if rng.below(400) == 0 { rng.below(300) } else { left.saturating_sub(1) };
        (sender.silent, sender.blocked) = (idle(&mut rng, sender.silent), idle(&mut rng, sender.blocked));
        let free = sender.blocked == 0 && rng.below(sender.gaps[2]) > 0;
        let mut words = [None; 2];
        let mut ports = PortRecord { output_sent: free, ..PortRecord::default() };
        if reset {
            let clock = Clock { reset, now, table: &sender.rig.table, given: None, ports: &ports, words, beside: &[] };
            if let Err(difference) = frame.clock(&mut cosim, &clock) {
                return Some(Err(difference));
            }
            continue;
        }
        for (port, word) in words.iter_mut().enumerate() {
            *word = sender.word(port, &mut rng);
            if word.is_some_and(|(_, tail)| tail) {
                ports.arrived.push((port as u16, sender.coming[port].1.clone()));
            }
        }
        sender.engine.step(now);
        ports.output_word = sender.engine.next_word(&directory, free);
        for (_, words) in &ports.arrived {
            sender.engine.receive(words, now);
            match check(&cfg, words) {
                CheckOutcome::Unreadable(status) | CheckOutcome::Refused(_, status) => {
                    *counts.refused.entry(status).or_default() += 1;
                }
                CheckOutcome::Registers(_) => counts.registers += 1,
                CheckOutcome::Collective(_) => {}
            }
        }
        let given = sender.engine.given().last().expect("kept").clone();
        counts.words += u64::from(free && ports.output_word.is_some());
        counts.waited += u64::from(!free && ports.output_word.is_some());
        counts.full += u64::from(given.full);
        if let Some(packet) = &given.packet {
            *counts.taken.entry(packet.header.message).or_default() += 1;
        }
        for &status in &given.refused {
            *counts.refused.entry(status).or_default() += 1;
        }
        let engine = &sender.engine;
        let hands =
            |cc_id| engine.ce().find(cc_id).is_some_and(|context| context.stored.to_source && context.stored.master);
        let beside = beside(&given, hands);
        let clock =
            Clock { reset, now, table: &given.table, given: Some(&given), ports: &ports, words, beside: &beside };
        if let Err(difference) = frame.clock(&mut cosim, &clock) {
            return Some(Err(difference));
        }
        sender.note(&given);
    }
    Some(cosim.flush().map(|()| (cosim, counts)))
}

fn frames_hold_what_the_model_holds(name: &str, (cfg, fault): (CeCfg, Option<u8>), cycles: u64) {
    let seed = seed(0xf4a3_0000);
    let Some(driven) = drive(name, cfg, fault, seed, cycles) else { return };
    let (cosim, counts) = driven.unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    let Counts { taken, refused, registers, words, waited, full } = &counts;
    println!("{counts:?}");
    assert!(taken.len() == 10 && refused.len() >= 11 && *registers > 10 && *waited > 10 && *full > 0, "{counts:?}");
    cosim.finish(&format!(
        "ws_pbv_frame, {name}, {} messages taken, {} refused, {registers} for registers, {words} words sent",
        taken.values().sum::<u64>(),
        refused.values().sum::<u64>()
    ));
}

/// Cycles of a sample and of a soak.
const SAMPLE: u64 = 40_000;
const SOAK: u64 = 400_000;

#[test]
fn frames_of_a_packet_engine_hold_what_the_model_holds() {
    // The simulator that has faults, none of which acts: those of scenarios have none.
    frames_hold_what_the_model_holds("pbv-frame", (pbv_ce::usual_engine(), Some(0)), SAMPLE);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn frames_of_packet_engines_hold_what_the_model_holds_for_long() {
    frames_hold_what_the_model_holds("pbv-frame-sound", (pbv_ce::usual_engine(), None), SOAK);
    frames_hold_what_the_model_holds("pbv-frame-wide", (pbv_ce::wide(), None), SOAK);
}

// ------------------------------------------------------------------------------------------------------ running systems

/// What was compared without a difference.
#[derive(Clone, Copy, Debug, Default)]
struct Equal {
    engines: usize,
    cycles: u64,
    frames: usize,
    words: u64,
}

/// Parameters that hold all of these engines, or why there are none.
fn frame_shape(engines: &[&Engine]) -> Result<FrameShape, String> {
    let cfg = engines[0].cfg();
    if engines.iter().any(|engine| engine.cfg().output != cfg.output) {
        return Err("engines of different parameters".to_owned());
    }
    let (mut payload, mut sides) = (PAYLOAD, Sides::USUAL);
    for given in engines.iter().flat_map(|engine| engine.given()) {
        sides = sides.with(given);
        let sent = given.sent.iter().chain(&given.ports.answers);
        payload = sent.map(|sent| sent.packet.flits().expect("a frame").len() - 4).fold(payload, usize::max);
    }
    if payload > LONGEST {
        return Err(format!("frames of {payload} words"));
    }
    let shape = shape(engines)?;
    let inbox = engines.iter().map(|engine| most_waiting(engine)).fold(2 * INBOX, usize::max);
    // Refusals have places of their own, and what one message is split into counts once.
    let places = cfg.output as usize + MOST_REFUSALS + 3 * sides.beside;
    Ok(FrameShape { shape, cfg, inbox, places, payload, sides })
}

/// Messages that ever waited for the collective engine at once.
fn most_waiting(engine: &Engine) -> usize {
    let (mut waiting, mut most) = (0, 0);
    for given in engine.given() {
        waiting -= usize::from(given.packet.is_some());
        let comes = |words: &[u64]| matches!(check(&engine.cfg(), words), CheckOutcome::Collective(_));
        waiting += given.ports.arrived.iter().filter(|(_, words)| comes(words)).count();
        most = most.max(waiting);
    }
    most
}

/// An engine of the system and one of the RTL.
fn replay(engine: &Engine, shape: &FrameShape, cosim: &mut Cosim, equal: &mut Equal) -> Result<(), Box<Difference>> {
    let all = engine.given();
    let shape = FrameShape { cfg: engine.cfg(), ..shape.clone() };
    let mut rng = Rng::new(seed(0x9be5), 1);
    let mut lines = [Line::default(), Line::default()];
    let mut handing = BTreeSet::new();
    for given in all {
        for (port, words) in &given.ports.arrived {
            lines[usize::from(*port)].arrive(words, given.cycle, &mut rng);
            equal.frames += 1;
        }
        if let Some(Packet { header, body: Body::Initialisation(records) }) = &given.packet
            && records.iter().any(|record| record.device == shape.cfg.device && record.to_source && record.master)
        {
            handing.insert(header.cc_id);
        }
    }
    let none = PortRecord::default();
    let last = all.last().expect("some").cycle.max(lines.iter().filter_map(Line::end).max().unwrap_or(0));
    let (mut at, mut quiet, mut reset) = (0, 0, true);
    let begins = lines.iter().filter_map(Line::next).chain([all[0].cycle]).min().expect("one");
    let mut now = begins.saturating_sub(AROUND);
    let mut table = &all[0].table;
    while now <= last + AROUND {
        let given = all.get(at).filter(|given| given.cycle == now && !reset);
        at += usize::from(given.is_some());
        table = given.map_or(table, |given| &given.table);
        let words = if reset { [None; 2] } else { [0, 1].map(|port| lines[port].word(now)) };
        let beside = given.map_or_else(Vec::new, |given| beside(given, |cc_id| handing.contains(&cc_id)));
        let ports = given.map_or(&none, |given| &given.ports);
        shape.clock(cosim, &Clock { reset, now, table, given, ports, words, beside: &beside })?;
        equal.words += u64::from(ports.output_word.is_some() && ports.output_sent);
        equal.cycles += 1;
        quiet = if given.is_some() || words.iter().any(Option::is_some) { 0 } else { quiet + 1 };
        now += u64::from(!reset);
        reset = false;
        let next = lines.iter().filter_map(Line::next).chain(all.get(at).map(|next| next.cycle)).min();
        if let Some(next) = next.filter(|&next| next > now + GAP && quiet > AROUND) {
            // Nothing is clocked in between.
            now = next - AROUND;
        }
    }
    equal.engines += 1;
    cosim.flush()
}

/// Engines of shipped scenarios beside one of the RTL that is large enough for all: `None` without Verilator, or why there is none.
fn beside_scenarios(stems: &[&str], set: &[&str], most: usize, cycles: u64) -> Option<Result<Equal, String>> {
    verilator::find()?;
    pbv_engines::with_engines((stems, set), (most, cycles), |engine| engine.given().len() > 1, replay_all)
        .unwrap_or_else(|| Some(Err("no engine does anything".to_owned())))
}

/// The same of engines that have run.
fn replay_all(engines: &[(&str, &Engine)]) -> Option<Result<Equal, String>> {
    let shape = match frame_shape(&engines.iter().map(|&(_, engine)| engine).collect::<Vec<_>>()) {
        Ok(shape) => shape,
        Err(why) => return Some(Err(why)),
    };
    let mut equal = Equal::default();
    let mut cosim = shape.bench().build(&shape.name())?;
    for (stem, engine) in engines {
        replay(engine, &shape, &mut cosim, &mut equal).unwrap_or_else(|difference| {
            panic!("{stem}, engine of {:#06x}: {difference}", engine.cfg().device);
        });
    }
    Some(Ok(equal))
}

fn scenarios_hold_what_the_model_holds(stems: &[&str], set: &[&str], most: usize, cycles: u64) {
    let names = stems.join(", ");
    match beside_scenarios(stems, set, most, cycles) {
        None => {}
        Some(Err(why)) => println!("rtl: {names}: frames not compared: {why}"),
        Some(Ok(Equal { engines, cycles, frames, words })) => {
            assert!(frames > 0 && words > 0, "{names}: nothing came or went");
            println!(
                "rtl: ws_pbv_frame beside {engines} engines of {names}: {cycles} cycles, {frames} frames in, {words} words out, 0 differences"
            );
        }
    }
}

#[test]
fn frames_of_shipped_scenarios_hold_what_the_model_holds() {
    // A store of as many contexts as they use builds in seconds, one for all scenarios.
    let small = ["pbv.engine.contexts=4", "pbv.engine.output_messages=64"];
    let stems = ["chain-four-deep", "two-groups", "unmerged-chain", "node-fails"];
    scenarios_hold_what_the_model_holds(&stems, &small, 3, 20_000);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn frames_of_every_shipped_scenario_hold_what_the_model_holds() {
    for stem in pbv_engines::stems() {
        scenarios_hold_what_the_model_holds(&[&stem], &["pbv.engine.contexts=4"], 18, 200_000);
    }
}
