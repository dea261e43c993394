//! W-VCD-1: an independent reader sees hierarchy, widths, names of states, values and times.

use proptest::prelude::*;
use watershed::probe::wave_in::WaveFile;
use watershed::probe::{Period, Scope, Selection};

use crate::support::{Block, Read, mhz, seeded, small_run, tracer};

#[test]
fn values_are_what_the_registers_held() {
    let file = small_run(mhz(1000), Selection::default());
    let mut read = Read::new(file.bytes());
    let at = |cycle: u64| cycle * 1000;
    for cycle in 1..=12_u64 {
        assert_eq!(read.number("die0.tile1.engine.count", at(cycle)), u128::from(cycle * cycle));
        let wide = u128::from(cycle) | u128::from(cycle << 30) << 64;
        assert_eq!(read.number("die0.tile1.engine.out.flit", at(cycle)), wide);
        let head = read.bits("die0.tile1.engine.in0.head", at(cycle));
        if cycle % 3 == 0 {
            assert_eq!(head, format!("{:064b}", 0xdead_0000 + cycle));
        } else {
            assert_eq!(head, "x".repeat(64));
        }
    }
    // Between the edges values stand still; after the last sample too.
    assert_eq!(read.number("die0.tile1.engine.count", 3999), 9);
    assert_eq!(read.number("die0.tile1.engine.count", 14_000), 144);
}

#[test]
fn initial_values_are_those_of_the_declaration() {
    let file = small_run(mhz(1000), Selection::default());
    let mut read = Read::new(file.bytes());
    assert_eq!(read.times()[0], 0);
    assert_eq!(read.state("die0.tile1.engine.state", 0), "IDLE");
    assert_eq!(read.number("die0.tile1.engine.count", 0), 0);
    assert_eq!(read.bits("die0.tile1.engine.in1.head", 999), "x".repeat(64));
    assert_eq!(read.bits("die0.tile1.engine.in1.full", 999), "0");
}

#[test]
fn states_read_back_as_names() {
    let file = small_run(mhz(1000), Selection::default());
    let mut read = Read::new(file.bytes());
    let names: Vec<String> = (1..=7).map(|cycle| read.state("die0.tile1.engine.state", cycle * 1000)).collect();
    assert_eq!(names, ["GATHER", "GATHER", "REDUCE", "REDUCE", "SEND", "DRAIN", "IDLE"]);
}

#[test]
fn hierarchy_widths_and_timescale() {
    let file = small_run(mhz(1000), Selection::default());
    let read = Read::new(file.bytes());
    let hierarchy = read.waveform().hierarchy();
    let signals: Vec<String> = hierarchy
        .all_vars()
        .map(|var| {
            let var = &hierarchy[var];
            let index = var.index().map(|range| (range.msb(), range.lsb()));
            format!("{} {:?} {index:?}", var.full_name(hierarchy), var.length(hierarchy).unwrap())
        })
        .collect();
    insta::assert_snapshot!(signals.join("\n"), @r"
    die0.tile1.engine.state 3 Some((2, 0))
    die0.tile1.engine.busy 1 None
    die0.tile1.engine.count 13 Some((12, 0))
    die0.tile1.engine.in0.head 64 Some((63, 0))
    die0.tile1.engine.in0.full 1 None
    die0.tile1.engine.in1.head 64 Some((63, 0))
    die0.tile1.engine.in1.full 1 None
    die0.tile1.engine.out.flit 100 Some((99, 0))
    ");
    let timescale = hierarchy.timescale().unwrap();
    assert_eq!(timescale.factor, 1);
    assert_eq!(timescale.unit, wellen::TimescaleUnit::PicoSeconds);
    assert_eq!(*read.times().last().unwrap(), 15_000, "end of cycle 14");
}

#[test]
fn eight_hundred_and_fifty_mhz_does_not_drift() {
    let period = mhz(850);
    for cycle in [0, 1, 2, 17, 18, 1_000_000, 999_999_999, 1_000_000_000, 17_000_000_000] {
        let exact = u128::from(cycle) * 1_000_000_000_000 / 850_000_000;
        assert_eq!(u128::from(period.start_ps(cycle)), exact, "cycle {cycle}");
    }
    assert_eq!(period.start_ps(1_000_000_000), 1_176_470_588_235);
    assert_eq!(Period::from_khz(850_000), Some(period));
    assert_eq!(Period::from_hz(850_000_000), Some(period));
    assert_eq!(Period::from_ps(20_000, 17), Some(period));
    assert_eq!(Period::from_hz(0), None);
    assert_eq!(Period::from_hz(1_000_000_000_001), None);

    // And so in the file.
    let (mut tracer, file) = tracer(period, Selection::default());
    let mut block = Block::default();
    let node = tracer.declare("b", |s| block.probe(s)).unwrap();
    tracer.start().unwrap();
    for cycle in [1, 17, 1_000_000_000] {
        block.count += 1;
        tracer.sample(node, cycle, |s| block.probe(s));
    }
    tracer.finish(1_000_000_000).unwrap();
    let read = Read::new(file.bytes());
    assert_eq!(read.times(), [0, 1176, 20_000, 1_176_470_588_235, 1_176_470_589_411]);
}

#[test]
fn nodes_share_scopes_in_any_order() {
    let (mut tracer, file) = tracer(mhz(1000), Selection::new(["**.count"]).unwrap());
    let block = Block::default();
    for path in ["die0.tile0.a", "die0.tile1.a", "die0.tile0.b", "die0", "die0.tile1"] {
        tracer.declare(path, |s| block.probe(s)).unwrap();
    }
    tracer.start().unwrap();
    tracer.finish(0).unwrap();
    let read = Read::new(file.bytes());
    let mut names = read.names();
    names.sort();
    assert_eq!(
        names,
        ["die0.count", "die0.tile0.a.count", "die0.tile0.b.count", "die0.tile1.a.count", "die0.tile1.count"]
    );
    let text = file.text();
    for scope in ["die0", "tile0", "tile1"] {
        let line = format!("$scope module {scope} $end");
        assert_eq!(text.matches(&line).count(), 1, "{scope} opens once:\n{text}");
    }
}

#[test]
fn odd_and_double_names_are_made_good() {
    let (mut tracer, file) = tracer(mhz(1000), Selection::default());
    tracer.declare("die 0.tile[3].7", |s| {
        s.bit("a b$end", true);
        s.bit("twice", true);
        s.bits("twice", 4, 9);
        s.bit("", false);
    });
    tracer.start().unwrap();
    tracer.finish(0).unwrap();
    let mut read = Read::new(file.bytes());
    assert_eq!(
        read.names(),
        ["die_0.tile_3_._7.a_b_end", "die_0.tile_3_._7.twice", "die_0.tile_3_._7.twice_2", "die_0.tile_3_._7._"]
    );
    assert_eq!(read.number("die_0.tile_3_._7.twice_2", 0), 9);
}

#[test]
fn order_of_evaluation_leaves_no_mark() {
    let run = |order: &dyn Fn(u64) -> Vec<usize>| {
        let (mut tracer, file) = tracer(mhz(850), Selection::default());
        let mut blocks = [Block::default(); 5];
        let nodes: Vec<_> = (0..5).map(|n| tracer.declare(&format!("n{n}"), |s| blocks[n].probe(s)).unwrap()).collect();
        tracer.start().unwrap();
        for cycle in 1..50 {
            for n in order(cycle) {
                // A node that was not touched may be sampled or not.
                if (cycle + n as u64).is_multiple_of(4) {
                    blocks[n].count = cycle * 7 + n as u64;
                    blocks[n].busy = !blocks[n].busy;
                }
                tracer.sample(nodes[n], cycle, |s| blocks[n].probe(s));
            }
        }
        tracer.finish(50).unwrap();
        file.bytes()
    };
    let forward = run(&|_| (0..5).collect());
    assert_eq!(forward, run(&|_| (0..5).rev().collect()));
    assert_eq!(forward, run(&|c| (0..5).map(|n| (n * 3 + c as usize) % 5).collect()));
    let awake = |c: u64| (0..5).filter(|n| (c + *n as u64).is_multiple_of(4)).collect();
    assert_eq!(forward, run(&awake), "sleeping nodes are not sampled");
}

#[test]
fn a_clock_is_written_only_when_asked_for() {
    assert!(!small_run(mhz(850), Selection::default()).text().contains("clk"));

    let window = Selection::default().with_window(2, Some(9)).unwrap();
    let (mut tracer, file) = tracer(mhz(850), window);
    tracer.add_clock();
    let mut block = Block::default();
    let node = tracer.declare("b", |s| block.probe(s)).unwrap();
    tracer.start().unwrap();
    for cycle in [1, 2, 5, 11] {
        block.count = cycle;
        tracer.sample(node, cycle, |s| block.probe(s));
    }
    tracer.finish(20).unwrap();
    let mut read = Read::new(file.bytes());
    let start = |cycle: u64| mhz(850).start_ps(cycle);
    for cycle in 2..=9 {
        let half = (2 * cycle + 1) * 20_000 / 34;
        assert_eq!(read.bits("clock.clk", start(cycle)), "1", "cycle {cycle}");
        assert_eq!(read.bits("clock.clk", half - 1), "1", "cycle {cycle}");
        assert_eq!(read.bits("clock.clk", half), "0", "cycle {cycle}");
        assert_eq!(read.bits("clock.clk", start(cycle + 1) - 1), "0");
    }
    assert_eq!(read.times().first(), Some(&start(2)));
    assert_eq!(read.times().last(), Some(&start(10)));
    assert_eq!(read.number("b.count", start(9)), 5);
}

/// A register of any width; `None` is a value without meaning.
type Register = (u32, Option<[u64; 3]>);

fn show(registers: &[Register], s: &mut Scope<'_>) {
    for (index, (width, value)) in registers.iter().enumerate() {
        let value = value.as_ref().map(|value| &value[..width.div_ceil(64) as usize]);
        s.indexed("r", index, |s| s.valid_wide("v", *width, value));
    }
}

fn fit(width: u32, mut value: [u64; 3]) -> [u64; 3] {
    for (place, word) in value.iter_mut().enumerate() {
        let bits = width.saturating_sub(64 * place as u32).min(64);
        *word &= if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    }
    value
}

fn as_text((width, value): &Register) -> String {
    match value {
        None => "x".repeat(*width as usize),
        Some(value) => {
            let all = format!("{:064b}{:064b}{:064b}", value[2], value[1], value[0]);
            all[all.len() - *width as usize..].to_owned()
        }
    }
}

/// A value that is often zero, small, or unknown.
fn any_value() -> impl Strategy<Value = Option<[u64; 3]>> {
    prop_oneof![
        Just(None),
        Just(Some([0; 3])),
        (0..4_u64).prop_map(|low| Some([low, 0, 0])),
        any::<[u64; 3]>().prop_map(Some),
    ]
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn any_registers_read_back(
        widths in prop::collection::vec(1..=190_u32, 1..8),
        steps in prop::collection::vec((1..5_u64, prop::collection::vec((0..8_usize, any_value()), 0..6)), 0..20),
    ) {
        let (mut tracer, file) = tracer(mhz(850), Selection::default());
        let mut registers: Vec<Register> = widths.iter().map(|width| (*width, None)).collect();
        let node = tracer.declare("n", |s| show(&registers, s)).unwrap();
        tracer.start().unwrap();
        let mut cycle = 0;
        let mut expected = vec![(cycle, registers.clone())];
        for (gap, writes) in steps {
            cycle += gap;
            for (index, value) in writes {
                let index = index % registers.len();
                registers[index].1 = value.map(|value| fit(registers[index].0, value));
            }
            tracer.sample(node, cycle, |s| show(&registers, s));
            expected.push((cycle, registers.clone()));
        }
        tracer.finish(cycle).unwrap();

        let mut read = Read::new(file.bytes());
        for (cycle, registers) in &expected {
            for (index, register) in registers.iter().enumerate() {
                let time = mhz(850).start_ps(*cycle);
                prop_assert_eq!(read.bits(&format!("n.r{index}.v"), time), as_text(register), "cycle {}", cycle);
            }
        }

        // Our own reader, which comparisons and pictures stand on, sees the same.
        let mut own = WaveFile::new(Box::new(std::io::Cursor::new(file.bytes()))).unwrap();
        let signals = own.load(0..own.header().signals).unwrap();
        let mut changes: Vec<_> = (own.header().variables.iter()).map(|of| own.changes(&signals, of.signal)).collect();
        let mut expected = expected.into_iter().peekable();
        let mut last = None;
        for moment in own.moments() {
            let now = u64::try_from(moment / 1000).unwrap();
            while let Some(next) = expected.next_if(|(cycle, _)| mhz(850).start_ps(*cycle) <= now) {
                last = Some(next.1);
            }
            let variables = own.header().variables.iter().zip(&mut changes);
            for ((variable, changes), register) in variables.zip(last.iter().flatten()) {
                changes.go_to(moment, true);
                let shown = String::from_utf8_lossy(&changes.value()[1..]).into_owned();
                let fill = if shown.starts_with('1') { "0" } else { &shown[..1] };
                let full = fill.repeat(variable.width as usize - shown.len()) + &shown;
                prop_assert_eq!(full, as_text(register), "{}", variable.name);
            }
        }
        prop_assert!(expected.peek().is_none() && own.cut_off_fs().is_none());
    }
}
