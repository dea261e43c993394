//! X-WAVE-1: a wave that was cut off is read as far as it goes, and every use of it says so; VCD and FST alike.

use std::fs;
use std::path::{Path, PathBuf};

use watershed::probe::ascii::{Options, draw};
use watershed::probe::diff::{DiffOptions, diff};
use watershed::probe::wave_in::WaveFile;
use watershed::probe::{FstSink, Selection, Sink, Tracer, VcdSink};

use crate::support::{Block, mhz};

/// A run of a block, written by a sink.
fn record(sink: Box<dyn Sink>, cycles: u64) {
    let mut tracer = Tracer::new(mhz(850), Selection::default(), sink);
    let mut block = Block::default();
    let node = tracer.declare("die0.tile1.engine", |s| block.probe(s)).unwrap();
    tracer.start().unwrap();
    for cycle in 1..=cycles {
        block.state = cycle / 5 % 5;
        block.count = cycle * 3;
        block.busy = cycle % 4 != 0;
        block.flit = [cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15), cycle];
        tracer.sample(node, cycle, |s| block.probe(s));
    }
    tracer.finish(cycles).unwrap();
}

/// Names of signals with their values.
type Row = Vec<(String, Vec<u8>)>;

/// Values of all signals at each moment up to one, by name.
fn values(path: &Path, end: u128) -> Vec<(u128, Row)> {
    let mut wave = WaveFile::open(path).unwrap();
    let signals = wave.load(0..wave.header().signals).unwrap();
    let variables = &wave.header().variables;
    let mut changes: Vec<_> = variables.iter().map(|of| wave.changes(&signals, of.signal)).collect();
    let moments = wave.moments().take_while(|moment| *moment < end);
    let mut at = |moment: u128| {
        let rows = variables.iter().zip(&mut changes).map(|(of, changes)| {
            changes.go_to(moment, true);
            (of.name.clone(), changes.value().to_vec())
        });
        (moment, rows.collect())
    };
    moments.map(&mut at).collect()
}

#[test]
fn a_vcd_is_read_up_to_wherever_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    record(Box::new(VcdSink::create(path("whole.vcd")).unwrap()), 40);
    let whole = fs::read(path("whole.vcd")).unwrap();
    assert_eq!(WaveFile::open(&path("whole.vcd")).unwrap().cut_off_fs(), None);
    let body = whole.windows(15).position(|text| text == b"$enddefinitions").unwrap() + 20;
    let all = values(&path("whole.vcd"), u128::MAX);
    for length in (body + 40..whole.len()).step_by(7).chain(whole.len() - 12..whole.len()) {
        fs::write(path("cut.vcd"), &whole[..length]).unwrap();
        let Some(end) = WaveFile::open(&path("cut.vcd")).unwrap().cut_off_fs() else {
            // Behind a whole time stamp nothing tells that more was to come.
            let text = String::from_utf8_lossy(&whole[..length]);
            assert!(text.ends_with('\n') && text.lines().last().unwrap().starts_with('#'), "{length}");
            continue;
        };
        let found = values(&path("cut.vcd"), end);
        assert!(found == all[..found.len()], "{length}: another value");
        let next = all.get(found.len() + 1).map_or(u128::MAX, |(moment, _)| *moment);
        assert!(end <= next, "{length}: read up to {end}");
    }
    for length in [0, 1, 30, body - 25] {
        fs::write(path("cut.vcd"), &whole[..length]).unwrap();
        let error = WaveFile::open(&path("cut.vcd")).unwrap_err().to_string();
        let expected = if length == 0 { "the file is empty" } else { "the file ends before `$enddefinitions`" };
        assert!(error.ends_with(expected), "{length}: {error}");
    }
}

#[test]
fn an_fst_is_read_up_to_its_last_whole_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    record(Box::new(FstSink::create(path("whole.fst")).unwrap().with_block(4000)), 1200);
    record(Box::new(VcdSink::create(path("whole.vcd")).unwrap()), 1200);
    let whole = fs::read(path("whole.fst")).unwrap();
    let found = diff(&path("whole.vcd"), &path("whole.fst"), &DiffOptions::default()).unwrap();
    assert!(found.is_equal() && found.compared > 5, "{found}");
    let all = values(&path("whole.fst"), u128::MAX);
    let mut ends = Vec::new();
    for part in 1..24 {
        // As a run that is killed leaves it: the header was not completed either.
        let mut cut = whole[..whole.len() * part / 24].to_vec();
        if part % 2 == 0 {
            cut[17..25].fill(0);
            cut[41..73].fill(0);
        }
        fs::write(path("cut.fst"), cut).unwrap();
        let wave = WaveFile::open(&path("cut.fst")).unwrap();
        let end = wave.cut_off_fs().expect("it was cut off");
        assert_eq!((wave.header().period, wave.header().tables.len()), (Some(mhz(850)), 1));
        let found = values(&path("cut.fst"), end);
        assert!(found == all[..found.len()], "{part}: another value");
        ends.push(found.len());
    }
    assert!(ends.is_sorted() && ends[1] < 200 && ends[11] > 400 && ends[22] > 1000, "{ends:?}");
    fs::write(path("cut.fst"), &whole[..300]).unwrap();
    assert!(WaveFile::open(&path("cut.fst")).is_err());
}

fn small(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let sink: Box<dyn Sink> = if FstSink::is_wanted(&path) {
        Box::new(FstSink::create(&path).unwrap())
    } else {
        Box::new(VcdSink::create(&path).unwrap())
    };
    record(sink, 24);
    path
}

#[test]
fn pictures_and_comparisons_say_where_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (vcd, fst) = (small(folder.path(), "whole.vcd"), small(folder.path(), "whole.fst"));
    let options = Options { selection: Selection::new(["**.{state,busy,count}"]).unwrap(), ..Options::default() };
    let picture = draw(&vcd, &options).unwrap();
    assert!(picture.contains("GATHER") && !picture.contains("cut off"), "{picture}");
    assert_eq!(draw(&fst, &options).unwrap(), picture, "names of states and the clock are in both");

    let cut = folder.path().join("cut.vcd");
    let text = fs::read_to_string(&vcd).unwrap();
    let end = text.find("#17647\n").unwrap() + 9;
    fs::write(&cut, &text[..end]).unwrap();
    let picture = draw(&cut, &options).unwrap();
    assert!(picture.ends_with("(the file was cut off at 17647 ps, in cycle 15)\n"), "{picture}");
    let found = diff(&cut, &vcd, &DiffOptions::default()).unwrap();
    assert!(!found.is_equal() && found.first.is_none());
    let told = found.to_string();
    assert!(told.contains("cut.vcd, which was cut off at 17647 ps (cycle 15), up to there\n"), "{told}");
    assert!(told.contains("no value differs, but a ends at 17647 ps (cycle 15)"), "{told}");
    let same = diff(&cut, &cut, &DiffOptions::default()).unwrap();
    assert!(same.is_equal());
    assert!(same.to_string().contains("; a was cut off at 17647 ps"), "{same}");

    // A difference in front of the end is one.
    let other = folder.path().join("other.vcd");
    fs::write(&other, text.replacen("#5882\n", "#5883\n", 1)).unwrap();
    assert_eq!(diff(&cut, &other, &DiffOptions::default()).unwrap().first.unwrap().time_fs, 5_882_000);
}
