//! Strangers: frames that are right but for who sends them, for their run, their kind or their address. Nobody obeys them, every
//! one is counted, and nothing is otherwise than without them (B-ERR-4).

use std::path::Path;

use watershed::pbv::packet::{Body, ConfigRecord, Control, Header, Message, Packet, Status};
use watershed::pbv::system::{engine, node};
use watershed::pbv::tables::engine_base;
use watershed::scenario::load_text;
use watershed::scenario::pbv::build::{BuildOptions, build};
use watershed::scenario::run::{RunOptions, run};

use crate::share;

/// Five rounds over two switches; end point 5 takes no part. Node 3 is late in the second round: its time-out is real.
fn scenario(kind: &str, strangers: &str) -> String {
    format!(
        "family = \"pbv\"\n[topology]\nkind = \"mesh\"\nsize = [2]\nconcentration = 3\n[pbv.setup]\n\
         configuration = \"side-port\"\n[pbv.engine]\ntimeout_cycles = 600\n[[pbv.collective]]\nname = \"c\"\n{kind}\n\
         rounds = 5\nparticipants = [0, 1, 2, 3, 4]\nsource = 0\nstart_cycle = 1500\ntask_cycles = 150\n\
         [[pbv.collective.late]]\nend_point = 3\nround = 1\ncycles = 1500\n{strangers}"
    )
}

fn stranger(end_point: u32, wrong: &str, more: &str) -> String {
    format!(
        "[[pbv.stranger]]\nend_point = {end_point}\ncollective = \"c\"\nwrong = \"{wrong}\"\nfrom_cycle = 0\n\
         until_cycle = 9000\nevery_cycles = 23\n{more}"
    )
}

const KINDS: [&str; 3] = [
    "kind = \"allreduce\"\ndtype = \"u64\"\nop = \"sum\"\nelements = 2",
    "kind = \"barrier\"",
    "kind = \"allreduce\"\ndtype = \"u64\"\nop = \"sum\"\nelements = 2\nrearm = true",
];

/// Who was told what in which run: words, and whether they are marked as an error.
type Told = (u16, u32, Vec<u64>, Option<Status>);

/// What every participant was told, without the cycles, and how many frames were refused.
fn told(text: &str) -> (Vec<Told>, u64) {
    let loaded =
        load_text("stranger", text, Path::new(""), "stranger", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let document = run(&loaded, &RunOptions::default()).unwrap().document;
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.passed).collect();
    assert!(failed.is_empty(), "{failed:?}\n{text}");
    let mut ready = build(&loaded, BuildOptions::default()).unwrap();
    watershed::pbv::system::run(&mut ready.system, 1_000_000).unwrap();
    let outcomes = ready.devices.iter().flat_map(|&device| {
        let all = node(&ready.system, device).outcomes(0);
        all.iter().map(move |outcome| (device, outcome.run, outcome.words.clone(), outcome.error)).collect::<Vec<_>>()
    });
    let at_nodes: u64 =
        ready.devices.iter().flat_map(|&device| node(&ready.system, device).refused().map(u64::from)).sum();
    let at_engines: u64 = watershed::pbv::system::engines(&ready.system)
        .flat_map(|engine| engine.registers().readings.refused.map(u64::from))
        .sum();
    (outcomes.collect(), at_nodes + at_engines)
}

#[test]
fn nobody_obeys_a_stranger_whatever_it_sends_to_whomever() {
    for kind in KINDS {
        let (plain, before) = told(&scenario(kind, ""));
        assert_eq!(plain.len(), 25, "{kind}");
        assert!(plain.iter().any(|(.., error)| error.is_some()), "the time-out is real");
        for to in ["s0", "s1", "s0.node0", "s0.node1", "s1.node0"] {
            let text = scenario(kind, &stranger(5, "sender", &format!("to = \"{to}\"\n")));
            let (with, refused) = told(&text);
            assert_eq!(with, plain, "{kind} {to}");
            // All but the reads, which anybody may do, and what a node has no counter for.
            assert!(refused > before + 200, "{kind} {to}: {refused} refused, {before} without");
        }
    }
}

#[test]
fn every_message_of_a_stranger_alone_changes_nothing_and_is_counted() {
    let (plain, before) = told(&scenario(KINDS[0], ""));
    for message in Message::ALL.iter().filter(|&&message| message != Message::Read) {
        let text = scenario(KINDS[0], &stranger(5, "sender", &format!("to = \"s1\"\nmessages = [\"{message}\"]\n")));
        let (with, refused) = told(&text);
        assert_eq!(with, plain, "{message}");
        assert_eq!(refused, before + 9000_u64.div_ceil(23), "{message}: each is counted once");
    }
}

/// One in three of all combinations in `make test`.
#[test]
fn a_participant_that_sends_what_is_not_its_to_send_changes_nothing() {
    const STRANGERS: [(u32, &str); 7] =
        [(1, "kind"), (4, "kind"), (1, "run"), (0, "run"), (4, "run"), (4, "channel"), (5, "channel")];
    let orders = STRANGERS.len() * 2;
    let chosen: Vec<usize> = share::one_in(3, 0..KINDS.len() * orders).collect();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let (plain, before) = told(&scenario(kind, ""));
        for case in chosen.iter().filter(|&&case| case / orders == number) {
            let ((end, wrong), to) = (STRANGERS[case / 2 % STRANGERS.len()], ["s0", "s1"][case % 2]);
            let (with, refused) = told(&scenario(kind, &stranger(end, wrong, &format!("to = \"{to}\"\n"))));
            assert_eq!(with, plain, "{kind} {end} {wrong} {to}");
            assert!(refused > before + 200, "{kind} {end} {wrong} {to}: {refused} refused, {before} without");
        }
    }
}

#[test]
fn tables_and_settings_belong_to_whoever_wrote_them_first() {
    // Without a side port the source writes the tables in band; a stranger writes behind it.
    for configuration in ["writes", "frame-each", "one-frame"] {
        let text = scenario(KINDS[0], "").replace("side-port", configuration);
        let (plain, _) = told(&text);
        let strange = stranger(5, "sender", "to = \"s1\"\nmessages = [\"write\", \"configuration\"]\n");
        let (with, refused) = told(&(text + &strange));
        assert_eq!(with, plain, "{configuration}");
        assert!(refused > 300, "{configuration}: {refused}");
    }
}

/// One in seven of all combinations in `make test`.
#[test]
fn nobody_sets_up_an_engine_before_the_source_does() {
    const STRANGERS: [(u32, &str); 3] = [(5, "sender"), (4, "kind"), (1, "kind")];
    const MESSAGES: [&str; 4] = ["configuration", "initialisation", "write", "control"];
    // From cycle 0 on: in front of the tables, between tables and contexts, and behind.
    let configurations = ["side-port", "writes", "frame-each", "one-frame"].into_iter();
    let set_ups = configurations.flat_map(|of| ["through-master", "each"].map(|initialisation| (of, initialisation)));
    // Of each set-up: who sends what to which engine.
    let orders = STRANGERS.len() * 2 * MESSAGES.len();
    let chosen: Vec<usize> = share::one_in(7, 0..4 * 2 * orders).collect();
    for (number, (configuration, initialisation)) in set_ups.enumerate() {
        let of = |more: &str| {
            let set_up = format!("configuration = \"{configuration}\"\ninitialisation = \"{initialisation}\"");
            scenario(KINDS[0], more).replace("configuration = \"side-port\"", &set_up)
        };
        let (plain, before) = told(&of(""));
        for case in chosen.iter().filter(|&&case| case / orders == number) {
            let (message, to) = (MESSAGES[case % 4], ["s0", "s1"][case / 4 % 2]);
            let (end, wrong) = STRANGERS[case / 8 % 3];
            let more = format!("to = \"{to}\"\nmessages = [\"{message}\"]\n");
            let (with, refused) = told(&of(&stranger(end, wrong, &more)));
            let what = format!("{configuration}, {initialisation}: {message} of {end} to {to}");
            assert_eq!(with, plain, "{what}");
            // A participant has no use for the answers either.
            let (each, more) = (9000_u64.div_ceil(23), refused - before);
            assert!(more == each || end != 5 && more == 2 * each, "{what}: {more} counted of {each}");
        }
    }
}

#[test]
fn no_engine_passes_on_tables_that_a_stranger_gives_it() {
    // An engine sends the records of others on in its own name: theirs would obey it.
    for configuration in ["side-port", "one-frame"] {
        let text = scenario(KINDS[0], "").replace("side-port", configuration);
        let loaded = load_text("c", &text, Path::new(""), "c", &[]).unwrap();
        let mut ready = build(&loaded, BuildOptions::default()).unwrap();
        let (top, below) = (ready.collectives[0].tree.device, ready.collectives[0].tree.engines[0].device);
        let header = Header::new(Message::Configuration, ready.devices[5], top, engine_base(0));
        let body = Body::Configuration(vec![ConfigRecord::of(below, Vec::new(), 0)]);
        ready.system.end_mut(5).disturb(0, Packet { header, body });
        watershed::pbv::system::run(&mut ready.system, 1_000_000).unwrap();
        let refused = |device| engine(&ready.system, device).registers().readings.refused;
        let unknown = usize::from(Status::UnknownDevice.number());
        assert_eq!((refused(top)[unknown], refused(below)[unknown]), (1, 0), "{configuration}");
        let right = node(&ready.system, ready.devices[4]).outcomes(0).iter().filter(|outcome| outcome.error.is_none());
        assert_eq!(right.count(), 4, "{configuration}: but for the round in which one is late");
    }
}

#[test]
fn no_frame_changes_who_owns_what() {
    let text = scenario(KINDS[0], "").replace("side-port", "one-frame");
    let loaded = load_text("c", &text, Path::new(""), "c", &[]).unwrap();
    let mut ready = build(&loaded, BuildOptions::default()).unwrap();
    let (top, below) = (ready.collectives[0].tree.device, ready.collectives[0].tree.engines[0].device);
    let source = ready.devices[0];
    // The source itself tries: every register there is.
    for offset in (0..0x400).step_by(4).filter(|&at| at != 0x108) {
        let header = Header::new(Message::Write, source, below, engine_base(0) + offset);
        ready.system.end_mut(0).disturb(4000, Packet::of(header, vec![0x1234]));
    }
    watershed::pbv::system::run(&mut ready.system, 1_000_000).unwrap();
    let read = |at| engine(&ready.system, below).read(at).unwrap();
    assert_eq!(read(0x170), u32::from(source) | u32::from(top) << 16, "of the table");
    assert_eq!((read(0x200), read(0x230)), (0x234, u32::MAX), "a context that nobody may initialise");
    let mut registers = engine(&ready.system, below).registers().clone();
    registers.write(0x200, 0).unwrap();
    let owner = registers.read(0x230, |id| engine(&ready.system, below).ce().find(id)).unwrap();
    assert_eq!(owner, u32::from(source) | u32::from(top) << 16, "of the context");
}

#[test]
fn no_stranger_stops_pauses_removes_or_closes_a_context() {
    for &control in Control::ALL {
        let loaded = load_text("c", &scenario(KINDS[0], ""), Path::new(""), "c", &[]).unwrap();
        let mut ready = build(&loaded, BuildOptions::default()).unwrap();
        let of = ready.collectives[0].clone();
        let mut header = of.header(Message::Control, of.tree.device);
        (header.control, header.op, header.requester, header.run) =
            (control, watershed::arith::Op::Barrier, ready.devices[5], 1);
        ready.system.end_mut(5).disturb(1600, Packet::bare(header));
        watershed::pbv::system::run(&mut ready.system, 1_000_000).unwrap();
        let outcomes = ready.devices.iter().flat_map(|&device| {
            let all = node(&ready.system, device).outcomes(0).to_vec();
            all.into_iter().map(move |outcome| (device, outcome.run, outcome.words, outcome.error))
        });
        let (before, after) = (told(&scenario(KINDS[0], "")).0, outcomes.collect::<Vec<_>>());
        assert_eq!(before, after, "{control}");
        let refused = engine(&ready.system, of.tree.device).registers().readings.refused;
        assert_eq!(refused[usize::from(Status::UnknownDevice.number())], 1, "{control}");
    }
}

#[test]
fn what_is_wrong_with_a_stranger_is_said() {
    for (more, what) in [
        (stranger(1, "sender", ""), "it is no stranger"),
        (stranger(5, "run", ""), "takes no part"),
        (stranger(0, "kind", ""), "is the source"),
        (stranger(5, "sender", "messages = [\"comand\"]\n"), "comand"),
        (stranger(1, "run", "messages = [\"satisfied\"]\n"), "cannot have this wrong"),
        (stranger(5, "sender", "to = \"s7\"\n"), "there is no \"s7\""),
        (stranger(5, "sender", "").replace("from_cycle = 0", "from_cycle = 9000"), "has to stop"),
        (stranger(5, "sender", "").replace("\"c\"", "\"d\""), "there is no collective \"d\""),
    ] {
        let text = scenario(KINDS[1], &more);
        let error = load_text("bad", &text, Path::new(""), "bad", &[])
            .map_err(|error| error.to_string())
            .and_then(|loaded| run(&loaded, &RunOptions::default()).map_err(|error| error.to_string()))
            .err()
            .unwrap_or_else(|| panic!("{text}"));
        assert!(error.contains(what), "{what}: {error}");
    }
}
