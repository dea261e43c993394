//! What the document says of reduction engines, counted anew (H-STAT-1): from the flits that come to them and
//! leave them, and from the states of their descriptors. No counter of the program is read but the one that is held against it.

use std::path::Path;

use watershed::probe::wave_in::WaveFile;
use watershed::scenario::config::Wave;
use watershed::scenario::load_named;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::player::Player;

/// Flits of a frame of 84 bytes, of a word each.
const FLITS: usize = 11;

/// What the engines of a wave did.
#[derive(Debug, Default)]
struct Counted {
    engines: u64,
    /// Frames that climbed in, and the contributions that they say they hold.
    up: [u64; 2],
    /// The same of those that left.
    out: [u64; 2],
    /// Frames that descended, by whether they arm.
    releases: u64,
    arms: u64,
    /// Descriptors that became active; one that ends may be active for another reduction in the next cycle.
    armed: u64,
    /// Those that ended before their deadline, and from then on without and with contributions.
    ended: u64,
    expired_empty: u64,
    expired: u64,
    most_active: u64,
}

/// An output: the numbers of its signals, and a frame of which some words have come.
struct Output {
    signals: [usize; 3],
    frame: Vec<u128>,
}

impl Output {
    fn new(player: &Player, scope: &str) -> Output {
        Output {
            signals: ["valid", "vc", "word"].map(|name| player.number(&format!("{scope}.{name}"))),
            frame: Vec::new(),
        }
    }

    /// The word with the reduction header, when the last word of the frame leaves by this output.
    fn take(&mut self, player: &Player) -> Option<u128> {
        let [valid, vc, word] = self.signals.map(|number| player.values[number]);
        // Channels of frames, not those of an agent or of packets.
        if valid == 0 || vc > 1 {
            return None;
        }
        self.frame.push(word);
        if self.frame.len() < FLITS {
            return None;
        }
        Some(std::mem::take(&mut self.frame)[5])
    }
}

fn contributions(header: u128) -> u64 {
    (header >> 17 & 0xf_ffff) as u64
}

/// One engine, and what has been seen of it: the output of its switch that it stands at, what it sends down, and what up.
struct Seen {
    outputs: [Output; 3],
    /// The numbers of state, contributions and deadline of each descriptor.
    descriptors: Vec<[usize; 3]>,
    /// Contributions and deadline of each active descriptor.
    active: Vec<Option<[u128; 2]>>,
}

impl Seen {
    fn new(player: &Player, scope: &str) -> Seen {
        let within = format!("{scope}.engine.descriptor");
        let scopes = player.scopes(".deadline_cycle").into_iter().filter(|name| name.starts_with(&within));
        let numbers =
            |of: String| ["state", "count", "deadline_cycle"].map(|name| player.number(&format!("{of}.{name}")));
        let descriptors: Vec<[usize; 3]> = scopes.map(numbers).collect();
        let active = vec![None; descriptors.len()];
        let (switch, port) = scope.rsplit_once(".P").expect("an engine stands at a port");
        let outputs = [format!("{switch}.switch.out{port}"), format!("{scope}.out0"), format!("{scope}.out1")];
        Seen { outputs: outputs.map(|output| Output::new(player, &output)), descriptors, active }
    }

    /// Whether a word leaves: two that are alike are two, although nothing changes.
    fn sends(&self, player: &Player) -> bool {
        self.outputs.iter().any(|output| player.values[output.signals[0]] != 0)
    }

    fn cycle(&mut self, player: &Player, cycle: u64, to: &mut Counted) {
        let [up, down, out] = self.outputs.each_mut().map(|output| output.take(player));
        for (header, frames) in [(up, &mut to.up), (out, &mut to.out)] {
            let Some(header) = header else { continue };
            *frames = [frames[0] + 1, frames[1] + contributions(header)];
        }
        match down.map(|header| header >> 10 & 1 == 1) {
            Some(true) => to.arms += 1,
            Some(false) => to.releases += 1,
            None => {}
        }
        for (descriptor, was) in self.descriptors.iter().zip(&mut self.active) {
            let [state, count, deadline] = descriptor.map(|number| player.values[number]);
            let now = (state != 0).then_some([count, deadline]);
            // The deadline is set when it is armed.
            if was.map(|was| was[1]) != now.map(|now| now[1]) {
                to.armed += u64::from(now.is_some());
                match *was {
                    Some([0, deadline]) if u128::from(cycle) > deadline => to.expired_empty += 1,
                    Some([_, deadline]) if u128::from(cycle) > deadline => to.expired += 1,
                    Some(_) => to.ended += 1,
                    None => {}
                }
            }
            *was = now;
        }
        to.most_active = to.most_active.max(self.active.iter().flatten().count() as u64);
    }
}

fn counted(path: &Path) -> Counted {
    let mut player = Player::new(WaveFile::open(path).unwrap());
    let mut engines: Vec<Seen> = player.scopes(".engine.exit").iter().map(|scope| Seen::new(&player, scope)).collect();
    let mut all = Counted { engines: engines.len() as u64, ..Counted::default() };
    let mut cycle = 0;
    loop {
        let more = player.go_to(cycle);
        for engine in &mut engines {
            if !player.changed.is_empty() || engine.sends(&player) {
                engine.cycle(&player, cycle, &mut all);
            }
        }
        if !more {
            return all;
        }
        cycle += 1;
    }
}

/// Holds the document of a shipped scenario against its wave.
fn hold(name: &str, overrides: &[&str]) -> Counted {
    let overrides: Vec<String> =
        overrides.iter().chain(&["clock.frequency_mhz=1000"]).map(|&set| set.to_owned()).collect();
    let loaded = load_named(Path::new(name), &overrides).unwrap_or_else(|problems| panic!("{problems}"));
    let folder = tempfile::tempdir().unwrap();
    // Not the registers of units, which would take most of the time.
    let signals = ["**.engine.exit", "**.engine.descriptor*.{state,count,deadline_cycle}", "**.out*.{valid,vc,word}"];
    let wave = WaveOptions::of(
        folder.path().join("wave.vcd"),
        Wave { signals: signals.map(str::to_owned).to_vec(), ..Wave::default() },
    );
    let document = run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap().document;
    let engines = document.armed.unwrap().engines;
    let said = |key: &str| engines[key].as_u64().unwrap_or_else(|| panic!("{name}: no {key} in {engines:?}"));
    let all = |keys: &[&str]| keys.iter().map(|key| said(key)).sum::<u64>();
    let seen = counted(&wave.path);
    let refused = all(&[
        "damaged",
        "malformed",
        "not_ours",
        "wrong_kind",
        "wrong_sender",
        "wrong_vni",
        "wrong_cookie",
        "stale",
        "wrong_state",
    ]);
    let climbing = refused - said("down_refused");
    for (what, said, counted) in [
        ("frames that climbed in", all(&["merged", "passed"]) + climbing, seen.up[0]),
        ("frames that left", all(&["passed", "completed", "expired"]), seen.out[0]),
        ("arm requests", all(&["armed", "no_descriptor"]), seen.arms),
        ("descriptors that were armed", said("armed"), seen.armed),
        ("descriptors that ended in time", all(&["completed", "released", "rearmed_active"]), seen.ended),
        ("descriptors that expired", said("expired"), seen.expired),
        ("descriptors that expired empty", said("expired_empty"), seen.expired_empty),
        ("most active", said("most_active"), seen.most_active),
    ] {
        assert_eq!(said, counted, "{name}: {what}: {seen:?}\n{engines:?}");
    }
    if climbing == 0 && said("rearmed_active") == 0 && said("released") == 0 {
        assert_eq!(seen.up[1], seen.out[1], "{name}: contributions are neither lost nor made: {seen:?}");
    }
    seen
}

#[test]
fn of_every_kind_of_end_of_a_reduction() {
    let seen = hold("more-than-descriptors", &["job.0.elements=128"]);
    assert!(seen.engines > 8 && seen.up[0] > 500 && seen.arms > seen.armed + 5, "{seen:?}");
    let seen = hold("fig4-late-leaf", &[]);
    assert!(seen.expired > 0, "{seen:?}");
    let seen = hold("fig5-dead-leaf", &[]);
    assert!(seen.expired + seen.expired_empty > 0 && seen.releases > 0, "{seen:?}");
    let seen = hold("all-time-out", &[]);
    assert!(seen.expired_empty > 0, "{seen:?}");
    let seen = hold("two-trees", &[]);
    assert!(seen.ended > 20, "{seen:?}");
}
