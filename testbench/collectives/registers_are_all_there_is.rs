//! An embedding is register values and nothing else: it can be read out over the address map, written into another
//! system, printed and loaded again (P-EMB-3, P-SW-1, P-SW-9).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use watershed::fabric::routing::{Routes, Routing};
use watershed::fabric::topology::Die;
use watershed::piuma::{Registers, RegistersCfg};

use crate::sets;
use crate::support::{FLAGSHIP, MESH, ONE, TWO_IDS, die, drive, dump, job, load, only, pass, ready};

/// A register file of the same size, all zero.
fn fresh(of: &Registers) -> Registers {
    let cfg = RegistersCfg { switches: of.switches(), ids: of.ids(), external_ports: of.engine_port() };
    let names = (0..of.switches()).map(|switch| of.name(switch).into_owned()).collect::<Vec<String>>();
    Registers::new(cfg, names, Routes { routing: of.routes.routing.clone(), ends: of.routes.ends.clone() })
}

#[test]
fn registers_written_one_by_one_into_another_system_make_it_behave_the_same() {
    for (text, set) in [
        (FLAGSHIP, sets!["collective[0].elements=30"]),
        (MESH, sets!["topology.size=[4, 3]"; "collective[0].elements=30"]),
        (
            TWO_IDS,
            sets!["collective[0].elements=30"; "collective[1].elements=30"; "collective[1].start_cycle=900"; "checks.claims=false"],
        ),
    ] {
        let mut built = ready(text, &set);
        let image = dump(&built.system.tables);
        let mut copy = ready(text, &set);
        let mut registers = fresh(&copy.system.tables);
        // In any order of addresses.
        for &(address, value) in image.iter().rev() {
            registers.store(address, value).unwrap();
        }
        assert_eq!(dump(&registers), image);
        *copy.system.tables = registers;
        drive(&mut built, 100_000);
        drive(&mut copy, 100_000);
        for (collective, of) in built.collectives.iter().enumerate() {
            for participant in 0..of.jobs.len() {
                let (a, b) = (job(&built, collective, participant), job(&copy, collective, participant));
                assert_eq!((a.landed_at(), a.output(), a.flags()), (b.landed_at(), b.output(), b.flags()));
                assert!(!a.output().is_empty());
            }
        }
    }
}

#[test]
fn a_system_without_its_registers_does_nothing() {
    let mut empty = ready(FLAGSHIP, &sets!["collective[0].elements=1"]);
    *empty.system.tables = fresh(&empty.system.tables);
    while empty.system.fault().is_none() && empty.system.step() != watershed::fabric::Step::Quiet {}
    let fault = empty.system.fault().expect("a packet that no register sends on is a fault");
    assert!(fault.contains("request register is empty"), "{fault}");
}

/// Port vectors by (switch, channel, input port), as text in the notation of a scenario.
fn printed(registers: &Registers, id: u16) -> String {
    let mut text = String::from("[collective.registers]\n");
    for switch in 0..registers.switches() {
        for (channel, name) in [(0, "request"), (1, "response")] {
            let vectors: Vec<String> = (0..=registers.engine_port())
                .map(|port| (port, registers.load(Registers::vector_address(switch, id, channel, port)).unwrap()))
                .filter(|(_, vector)| *vector != 0)
                .map(|(port, vector)| {
                    let outputs: Vec<u64> = (0..64).filter(|out| vector >> out & 1 == 1).collect();
                    format!("I{port} = {outputs:?}")
                })
                .collect();
            if !vectors.is_empty() {
                let _ = writeln!(text, "{}.{name} = {{ {} }}", registers.name(switch), vectors.join(", "));
            }
        }
    }
    text
}

#[test]
fn the_built_in_tree_at_sw4_is_the_hand_written_flagship() {
    let by_hand = ready(FLAGSHIP, &[]);
    let built_in = ready(&die(ONE), &sets!["collective[0].root=\"sw4\""]);
    assert_eq!(dump(&by_hand.system.tables), dump(&built_in.system.tables));
    // And the text that is printed from it holds the entries of the scenario, whatever their order.
    let entries = |text: &str| -> BTreeMap<String, String> {
        let lines = text.lines().filter(|line| line.contains(".request =") || line.contains(".response ="));
        lines.filter_map(|line| line.split_once(" = ")).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    assert_eq!(entries(&printed(&built_in.system.tables, 0)), entries(FLAGSHIP));
}

#[test]
fn a_printed_embedding_loads_and_does_the_same() {
    for (root, participants) in [("core6", "[0, 3, 5, 6]"), ("sw3", "[1, 2, 7]"), ("core0", "[0]"), ("sw7", "\"all\"")]
    {
        let head = format!("[[collective]]\nkind = \"allreduce\"\nelements = 12\nparticipants = {participants}\n");
        let set = sets!["collective[0].root=\"{root}\""];
        let original = ready(&die(&head), &set);
        let text = die(&format!("{head}{}", printed(&original.system.tables, 0)));
        assert_eq!(dump(&ready(&text, &[]).system.tables), dump(&original.system.tables), "{root}");
        let (a, b) = (pass(&die(&head), &set), pass(&text, &[]));
        assert_eq!((only(&a).results.clone(), only(&a).end_cycle), (only(&b).results.clone(), only(&b).end_cycle));
    }
}

#[test]
fn responses_are_the_inverse_of_requests() {
    // P-SW-5: if a request goes from I_a to port b at some switch (through the engine or not), the response goes back.
    for root in ["core0", "sw4", "sw6", "core7"] {
        let built = ready(&die(ONE), &sets!["collective[0].root=\"{root}\""]);
        let registers = &built.system.tables;
        let vector =
            |switch, channel, port| registers.load(Registers::vector_address(switch, 0, channel, port)).unwrap();
        for switch in 0..registers.switches() {
            let ups: Vec<(u16, u64)> =
                (0..10).map(|port| (port, vector(switch, 0, port))).filter(|(_, up)| *up != 0).collect();
            let out = if ups.iter().any(|(_, up)| up >> 10 == 1) {
                vector(switch, 0, 10)
            } else {
                ups.first().map_or(0, |up| up.1)
            };
            let inputs: u64 = ups.iter().map(|(port, _)| 1 << port).sum();
            let down = if out == 0 { 10 } else { out.trailing_zeros() as u16 };
            assert_eq!(vector(switch, 1, down), inputs, "{} with root {root}", registers.name(switch));
        }
    }
}

#[test]
fn register_sets_of_different_ids_do_not_touch() {
    let built = ready(TWO_IDS, &[]);
    let by_id: BTreeSet<u64> = dump(&built.system.tables)
        .into_iter()
        .filter(|(address, value)| *value != 0 && address & 0x800 == 0)
        .map(|(address, _)| address >> 12 & 0xfff)
        .collect();
    assert_eq!(by_id, BTreeSet::from([0, 1]));
    assert_eq!(load(TWO_IDS, &[]).scenario.switch.collective_ids, 4);
}

#[test]
fn the_die_of_the_routes_is_the_papers() {
    assert_eq!(ready(FLAGSHIP, &[]).system.tables.routes.routing, Routing::Die(Die { tiles: 4, positions: 4 }));
}
