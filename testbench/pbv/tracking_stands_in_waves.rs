//! The read-modify-write stages of the tracking store in a waveform (H-PIPE-3): from the waveform alone the store is computed
//! again, with every value that was read, forwarded and written, and every verdict.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use watershed::arith::Op;
use watershed::kernel::Rng;
use watershed::pbv::ce::{Ce, CeCfg, CeCx, Hazard};
use watershed::pbv::packet::{Body, ConfigRecord, Header, InitRecord, Message, NO_DEVICE, Packet};
use watershed::pbv::tables::PbvTable;
use watershed::probe::wave_in::WaveFile;
use watershed::probe::{Period, Selection, Tracer, VcdSink};
use watershed::scenario::config::Wave;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::player::Player;

/// PBV and p_count.
type Track = (u128, u128);

/// What is in a stage: slot, operation, responder, what a load brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operation {
    message: u128,
    cc_id: u128,
    run: u128,
    slot: u128,
    op: u128,
    responder: Option<u128>,
    load: Option<Track>,
}

const LOAD: u128 = 1;
const CLEAR: u128 = 2;
const BEGIN: u128 = 3;
const NONE: u128 = 0;
const THROUGH: u128 = 1;
const AHEAD: u128 = 2;
const ACCEPTED: u128 = 1;
const SATISFIED: u128 = 2;
const DUPLICATE: u128 = 3;
const COUNT_ZERO: u128 = 4;

fn operation(player: &Player, scope: &str) -> Option<Operation> {
    let get = |name: &str| player.get(&format!("{scope}.{name}"));
    let known = |name: &str| player.known(&format!("{scope}.{name}"));
    (get("valid") == 1).then(|| Operation {
        message: get("message"),
        cc_id: get("cc_id"),
        run: get("run"),
        slot: get("slot"),
        op: get("op"),
        responder: known("responder"),
        load: known("load_pbv").zip(known("load_p_count")),
    })
}

fn track(player: &Player, scope: &str, [pbv, p_count]: [&str; 2]) -> Track {
    (player.get(&format!("{scope}.{pbv}")), player.get(&format!("{scope}.{p_count}")))
}

/// What the paragraphs say an operation does (143).
fn change(operation: &Operation, old: Track) -> (Track, u128) {
    let clear = |(pbv, p_count): Track| {
        let bit = 1 << operation.responder.expect("a responder");
        if pbv & bit == 0 {
            ((pbv, p_count), DUPLICATE)
        } else if p_count == 0 {
            ((pbv, p_count), COUNT_ZERO)
        } else {
            let new = (pbv & !bit, p_count - 1);
            (new, if new == (0, 0) { SATISFIED } else { ACCEPTED })
        }
    };
    match operation.op {
        LOAD => {
            let load = operation.load.expect("what is loaded");
            (load, if load.0 == 0 { SATISFIED } else { ACCEPTED })
        }
        CLEAR => clear(old),
        BEGIN => clear(operation.load.expect("what is loaded")),
        other => panic!("operation {other}"),
    }
}

/// What was seen: how often values came from each place, and verdicts.
#[derive(Debug, Default)]
struct Seen {
    forwards: BTreeMap<u128, u64>,
    verdicts: BTreeMap<u128, u64>,
}

/// Plays the stages of an engine and computes them again.
fn recompute(player: &mut Player, ce: &str) -> Seen {
    let (read, write) = (format!("{ce}.tracking.read"), format!("{ce}.tracking.write"));
    let mut store: BTreeMap<u128, Track> = BTreeMap::new();
    // What the stages must hold in this cycle: read with where it came from, and written.
    let mut reading: Option<(Operation, Track, u128)> = None;
    let mut writing: Option<(Operation, Track)> = None;
    let mut seen = Seen::default();
    let mut cycle = 0;
    loop {
        let more = player.go_to(cycle);
        let at = format!("cycle {cycle} of {ce}");
        for slot in 0..8 {
            let shown = track(player, &format!("{ce}.context{slot}"), ["pbv", "p_count"]);
            assert_eq!(shown, store.get(&slot).copied().unwrap_or_default(), "{at}: entry {slot}");
        }
        assert_eq!(operation(player, &write), writing.map(|(operation, _)| operation), "{at}");
        if let Some((_, value)) = writing {
            assert_eq!(track(player, &write, ["pbv", "p_count"]), value, "{at}: as written");
        }
        // What is read now came in the cycle before; what it is, is from outside.
        let now = operation(player, &read);
        if let Some((_, value, from)) = reading {
            assert_eq!(track(player, &read, ["pbv", "p_count"]), value, "{at}: as read, from {from}");
        }
        // The edge at the end of this cycle.
        let changed = now.map(|operation| {
            let (_, value, from) = reading.expect("what was read");
            let ahead = writing.filter(|(ahead, _)| ahead.slot == operation.slot);
            let used = ahead.map_or(value, |(_, value)| value);
            let forward = if ahead.is_some() { AHEAD } else { from };
            (operation, value, forward, used, change(&operation, used))
        });
        if let Some((operation, value)) = writing {
            store.insert(operation.slot, value);
        }
        let before = writing;
        writing = changed.map(|(operation, .., (value, _))| (operation, value));
        if !more {
            break;
        }
        cycle += 1;
        player.go_to(cycle);
        if let Some((_, value, forward, used, (_, verdict))) = changed {
            let get = |name: &str| player.get(&format!("{write}.{name}"));
            assert_eq!(track(player, &write, ["read_pbv", "read_p_count"]), value, "cycle {cycle}: as read");
            assert_eq!(get("forward"), forward, "cycle {cycle}: forwarded from");
            assert_eq!(track(player, &write, ["used_pbv", "used_p_count"]), used, "cycle {cycle}: as forwarded");
            assert_eq!(get("verdict"), verdict, "cycle {cycle}: verdict");
            *seen.forwards.entry(forward).or_default() += 1;
            *seen.verdicts.entry(verdict).or_default() += 1;
        }
        // Whoever stands in the read stage now read at that edge, past what was being written.
        reading = operation(player, &read).map(|operation| {
            let through = before.filter(|(ahead, _)| ahead.slot == operation.slot);
            let stored = store.get(&operation.slot).copied().unwrap_or_default();
            (operation, through.map_or(stored, |(_, value)| value), if through.is_some() { THROUGH } else { NONE })
        });
    }
    seen
}

const ME: u16 = 0x10;

fn header(message: Message, cc_id: u16, from: u16, run: u32) -> Header {
    let mut header = Header::new(message, from, ME, 0xc000);
    (header.cc_id, header.run, header.op, header.dmu_id) = (cc_id, run, Op::Barrier, 1);
    header
}

/// Messages of three contexts in consecutive cycles, duplicates among them, through a collective engine.
fn driven(hazard: Hazard) -> Player {
    let devices: Vec<u16> = (0x20..0x20 + 40).collect();
    let mut table = PbvTable::default();
    table.configure(&ConfigRecord::of(ME, devices.clone(), 0));
    let mut ce = Ce::new(CeCfg { hazard, ..CeCfg::default() });
    ce.place(ME, 0xc000);
    let (sink, file) = VcdSink::in_memory();
    let mut tracer = Tracer::new(Period::from_mhz(1000).unwrap(), Selection::default(), Box::new(sink));
    let node = tracer.declare("ce", |scope| ce.probe(scope)).unwrap();
    tracer.start().unwrap();
    let mut rng = Rng::new(7, 0);
    let mut out = Vec::new();
    for now in 0..6_000u64 {
        let cc_id = 5 + rng.below(3) as u16;
        let packet = match ce.find(cc_id) {
            None => {
                let record = InitRecord {
                    master: true,
                    rearm: true,
                    above: NO_DEVICE,
                    collector: NO_DEVICE,
                    ..InitRecord::barrier(ME, (1 << devices.len()) - 1)
                };
                let body = Body::Initialisation(vec![record]);
                Packet { header: header(Message::Initialisation, cc_id, 1, 0), body }
            }
            Some(context) => {
                let entry = rng.below(devices.len() as u64) as usize;
                let mut header = header(Message::Contribution, cc_id, devices[entry], context.run());
                header.p_id = entry as u8;
                Packet::of(header, Vec::new())
            }
        };
        let packet = (rng.below(4) > 0 && ce.ready(&packet.header)).then_some(packet);
        let mut cx = CeCx {
            table: &table,
            now,
            full: false,
            leaving: &|_| false,
            out: &mut out,
            refuse: &mut |_| (),
            watched: &mut |_| (),
            missing: &mut |_, _, _| (),
        };
        ce.tick(packet, &mut cx);
        out.clear();
        tracer.sample(node, now + 1, |scope| ce.probe(scope));
    }
    tracer.finish(6_000).unwrap();
    Player::new(WaveFile::new(Box::new(Cursor::new(file.bytes()))).unwrap())
}

#[test]
fn the_store_is_computed_again_from_the_waveform() {
    let seen = recompute(&mut driven(Hazard::Forward), "ce");
    assert!([NONE, THROUGH, AHEAD].iter().all(|place| seen.forwards[place] > 100), "{seen:?}");
    assert!([ACCEPTED, SATISFIED, DUPLICATE].iter().all(|verdict| seen.verdicts[verdict] > 10), "{seen:?}");
    let seen = recompute(&mut driven(Hazard::Interlock), "ce");
    assert_eq!(seen.forwards.keys().copied().collect::<Vec<_>>(), [NONE], "nothing to forward: {seen:?}");
}

#[test]
fn engines_of_a_system_show_their_tracking() {
    let text = "family = \"pbv\"\nseed = 4\n[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"tree\"\nbranching = [2, 5]\n\
         [[pbv.collective]]\nname = \"a\"\nblocks = false\nelements = 3\nrounds = 12\ntask_cycles = { random_max = 50 }\n\
         [[pbv.collective]]\nname = \"b\"\nblocks = false\nkind = \"barrier\"\nrearm = true\nrounds = 12\n";
    let loaded = load_text("test", text, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tracking.vcd");
    let wave = WaveOptions::of(
        path.clone(),
        Wave { signals: vec!["**.ce.tracking.**".into(), "**.ce.context*.*".into()], ..Wave::default() },
    );
    assert!(run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap().document.passed());
    let engines = Player::new(WaveFile::open(&path).unwrap()).scopes(".tracking.read.valid");
    assert_eq!(engines.len(), 3);
    for ce in engines {
        let seen = recompute(&mut Player::new(WaveFile::open(&path).unwrap()), &ce);
        assert!(seen.verdicts[&SATISFIED] >= 24, "{ce}: {seen:?}");
    }
}
