//! Collective engines of packet engines beside those of running systems: the first one of a scenario and others by seed get in the RTL
//! what they get there, in the same cycles.
//!
//! A second engine of the model is clocked between the two. It has to send and refuse what the one in the system does, and it shows its
//! registers, which the RTL is compared with.

use std::fs;

use watershed::fabric::Step;
use watershed::kernel::Rng;
use watershed::pbv::ce::{Ce, CeCx};
use watershed::pbv::engine::CycleRecord as Kept;
use watershed::pbv::packet::{Body, InitRecord, PBV_ENTRIES};
use watershed::pbv::{Engine, System};
use watershed::scenario::load_file;
use watershed::scenario::pbv::build::{BuildOptions, build};

use crate::bench::Difference;
use crate::pbv_bench::{Beside, Given, Shape, Shown};
use crate::pbv_ce::SELECTS;
use crate::random::seed;
use crate::verilator::{self, root};

/// Cycles without a message behind which the next one is waited for in one step, and cycles before it and at the end.
pub const GAP: u64 = 100;
pub const AROUND: u64 = 20;

/// What was compared without a difference.
#[derive(Clone, Copy, Debug, Default)]
struct Equal {
    engines: usize,
    cycles: u64,
    taken: usize,
    sent: usize,
}

/// Records that an engine of this device gets.
fn records(kept: &[Kept], device: u16) -> impl Iterator<Item = &InitRecord> {
    let packets = kept.iter().filter_map(|given| given.packet.as_ref());
    packets.filter_map(move |packet| match &packet.body {
        Body::Initialisation(records) => records.iter().find(|record| record.device == device),
        _ => None,
    })
}

/// Parameters that hold all of these engines.
pub fn shape(engines: &[&Engine]) -> Result<Shape, String> {
    let cfg = engines[0].cfg().ce;
    if engines.iter().any(|engine| engine.cfg().ce != cfg) {
        return Err("engines of different parameters".to_owned());
    }
    // Registers of the model are those of all datapaths.
    let selects = SELECTS.to_vec();
    // Small ones have one simulator.
    let mut shape = Shape { cfg, participants: 8, words: 4, groups: 2, selects, fault: None };
    for engine in engines {
        let all = engine.given();
        for record in records(all, engine.cfg().device) {
            shape.words = shape.words.max(usize::from(record.words));
            shape.groups = shape.groups.max(record.groups.map_or(0, |groups| groups.count));
        }
        for given in all {
            let mut entries = (0..PBV_ENTRIES as u8).filter(|&entry| given.table.device(entry).is_some());
            shape.participants = shape.participants.max(entries.next_back().map_or(1, |entry| entry + 1));
            let Some(packet) = &given.packet else { continue };
            shape.words = shape.words.max(packet.words().len());
            let select = (packet.header.op, packet.header.dtype);
            if !packet.words().is_empty() && !shape.selects.contains(&select) {
                shape.selects.push(select);
            }
        }
    }
    Ok(shape)
}

/// An engine of the system, one of the model and one of the RTL. `None` without Verilator.
fn replay(engine: &Engine, shape: &Shape, equal: &mut Equal) -> Option<Result<(), Box<Difference>>> {
    let (cfg, all) = (engine.cfg(), engine.given());
    let me = (cfg.device, cfg.base);
    let mut ce = Ce::new(cfg.ce);
    ce.place(me.0, me.1);
    ce.watch_stages(true);
    let mut beside = Beside::new(shape.clone(), &ce, &shape.name(), None)?;
    let (first, last) = (all.first().expect("some"), all.last().expect("some").cycle);
    let mut at = 0;
    let mut now = first.cycle.saturating_sub(AROUND);
    let mut table = &first.table;
    let mut reset = true;
    while now <= last + AROUND {
        if let Err(difference) = beside.sample(&ce) {
            return Some(Err(difference));
        }
        let kept = all.get(at).filter(|given| given.cycle == now && !reset);
        at += usize::from(kept.is_some());
        table = kept.map_or(table, |kept| &kept.table);
        let packet = kept.and_then(|kept| kept.packet.as_ref());
        let (full, leaving) = kept.map_or((false, &[][..]), |kept| (kept.full, &kept.leaving[..]));
        let alarm = ce.deadline();
        let ready = packet.map(|packet| ce.ready(&packet.header));
        let valid = packet.is_some();
        let inputs = beside.shape.given(&Given { table, me, now, full, leaving, packet, valid });
        let (mut refused, mut sent) = (Vec::new(), Vec::new());
        if !reset {
            let mut cx = CeCx {
                table,
                now,
                full,
                leaving: &|cc_id| leaving.contains(&cc_id),
                out: &mut sent,
                refuse: &mut |status| refused.push(status),
                watched: &mut |_| (),
                missing: &mut |_, _, _| (),
            };
            ce.tick(packet.cloned(), &mut cx);
        }
        let none = (Vec::new(), Vec::new());
        let wanted = kept.map_or((&none.0, &none.1), |kept| (&kept.refused, &kept.sent));
        assert_eq!((&refused, &sent), wanted, "the engine in the system, in cycle {now}");
        let taken = packet.map(|packet| &packet.header);
        let shown = Shown { me: me.0, ready, alarm, refused: &refused, sent: &sent, taken };
        let outputs = beside.shape.outputs(&ce, &shown);
        beside.clock(reset, inputs, outputs);
        (equal.taken, equal.sent) = (equal.taken + usize::from(valid), equal.sent + sent.len());
        now += u64::from(!reset);
        reset = false;
        if let Some(next) = all.get(at).filter(|next| next.cycle > now + GAP)
            && at > 0
            && now > all[at - 1].cycle + AROUND
        {
            // Nothing is clocked in between.
            now = next.cycle - AROUND;
        }
    }
    Some(beside.end().map(|cosim| {
        equal.cycles += cosim.cycles;
        equal.engines += 1;
    }))
}

/// A shipped scenario that ran for so many cycles, or to its end.
pub fn system(stem: &str, set: &[&str], cycles: u64) -> System {
    let path = root().join(format!("testbench/pbv/{stem}.toml"));
    let set: Vec<String> = set.iter().map(|&set| set.to_owned()).collect();
    let loaded = load_file(&path, &set).unwrap_or_else(|problems| panic!("{problems}"));
    let options = BuildOptions { given: true, ..BuildOptions::default() };
    let mut system = build(&loaded, options).unwrap_or_else(|problems| panic!("{problems}")).system;
    while system.step_before(cycles) != Step::Quiet && system.now() < cycles {}
    system
}

/// So many of the engines for which this holds at most: the first one, and others by seed.
pub fn chosen(system: &System, most: usize, fit: impl Fn(&Engine) -> bool) -> Vec<&Engine> {
    let engines = system.bumps().iter().filter_map(|bump| bump.engine());
    let mut engines: Vec<&Engine> = engines.filter(|engine| fit(engine)).collect();
    let mut others = engines.split_off(1.min(engines.len()));
    Rng::new(seed(0x9be5), 0).shuffle(&mut others);
    engines.extend(others.into_iter().take(most - 1));
    engines
}

/// Engines of shipped scenarios that have run, those of each for which this holds: what is done with all of them, if there are any.
pub fn with_engines<R>(
    (stems, set): (&[&str], &[&str]),
    (most, cycles): (usize, u64),
    fit: impl Fn(&Engine) -> bool,
    done: impl FnOnce(&[(&str, &Engine)]) -> R,
) -> Option<R> {
    let systems: Vec<_> = stems.iter().map(|stem| system(stem, set, cycles)).collect();
    let mut engines: Vec<(&str, &Engine)> = Vec::new();
    for (&stem, system) in stems.iter().zip(&systems) {
        engines.extend(chosen(system, most, &fit).into_iter().map(|engine| (stem, engine)));
    }
    (!engines.is_empty()).then(|| done(&engines))
}

/// Engines of shipped scenarios beside one of the RTL that is large enough for all: `None` without Verilator, or why there is none.
fn beside(stems: &[&str], set: &[&str], most: usize, cycles: u64) -> Option<Result<Equal, String>> {
    verilator::find()?;
    let has_context = |engine: &Engine| records(engine.given(), engine.cfg().device).next().is_some();
    with_engines((stems, set), (most, cycles), has_context, replay_all)
        .unwrap_or_else(|| Some(Err("no engine has a context".to_owned())))
}

/// The same of engines that have run.
fn replay_all(engines: &[(&str, &Engine)]) -> Option<Result<Equal, String>> {
    let shape = match shape(&engines.iter().map(|&(_, engine)| engine).collect::<Vec<_>>()) {
        Ok(shape) => shape,
        Err(why) => return Some(Err(why)),
    };
    let mut equal = Equal::default();
    for (stem, engine) in engines {
        replay(engine, &shape, &mut equal)?.unwrap_or_else(|difference| {
            panic!("{stem}, engine of {:#06x}: {difference}", engine.cfg().device);
        });
    }
    Some(Ok(equal))
}

/// The shipped scenarios of the family, or those of `WATERSHED_ONLY`.
pub fn stems() -> Vec<String> {
    let only = std::env::var("WATERSHED_ONLY").unwrap_or_default();
    let files = fs::read_dir(root().join("testbench/pbv")).unwrap().map(|entry| entry.unwrap().path());
    let mut stems: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|stem| only.is_empty() || only.split(',').any(|name| name == stem))
        .collect();
    stems.sort();
    stems
}

fn scenarios_hold_what_the_model_holds(stems: &[&str], set: &[&str], most: usize, cycles: u64) {
    let names = stems.join(", ");
    match beside(stems, set, most, cycles) {
        None => {}
        Some(Err(why)) => println!("rtl: {names}: not compared: {why}"),
        Some(Ok(Equal { engines, cycles, taken, sent })) => {
            assert!(taken > 0 && sent > 0, "{names}: nothing was taken");
            println!(
                "rtl: ws_pbv_ce beside {engines} engines of {names}: {cycles} cycles, {taken} messages taken, {sent} sent, 0 differences"
            );
        }
    }
}

#[test]
fn engines_of_shipped_scenarios_hold_what_the_model_holds() {
    // A store of as many contexts as they use builds in seconds, one for all scenarios.
    let stems = ["chain-four-deep", "two-groups", "unmerged-chain", "node-fails"];
    scenarios_hold_what_the_model_holds(&stems, &["pbv.engine.contexts=4"], 3, 20_000);
}

/// A flit of two words has two units at its engines.
const WIDE: &str = "link.flit_bits=128";

#[test]
fn engines_of_several_units_hold_what_the_model_holds() {
    // Five words: two lines and a short one.
    let wide = [WIDE, "pbv.engine.contexts=4", "job.0.elements=10"];
    let Some(equal) = beside(&["chain-four-deep"], &wide, 3, 20_000) else { return };
    let Equal { engines, cycles, taken, sent } = equal.expect("it can be compared");
    assert!(engines == 3 && taken > 0 && sent > 0, "{engines} engines, {taken} taken, {sent} sent");
    println!(
        "rtl: ws_pbv_ce of two units beside {engines} engines: {cycles} cycles, {taken} messages taken, {sent} sent, 0 differences"
    );
}

#[test]
#[ignore = "takes minutes: make soak"]
fn engines_of_every_shipped_scenario_hold_what_the_model_holds() {
    for stem in stems() {
        // The root, a leaf and sixteen blocks.
        scenarios_hold_what_the_model_holds(&[&stem], &[], 18, 200_000);
        scenarios_hold_what_the_model_holds(&[&stem], &[WIDE], 18, 200_000);
    }
}
