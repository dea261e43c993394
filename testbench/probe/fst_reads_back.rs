//! W-VCD-4: an FST file holds what the VCD file of the same run holds, by an independent reader.

use std::path::{Path, PathBuf};

use watershed::scenario::config::Wave;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::share;
use crate::support::Read;

const DIE: &str = "family = \"piuma\"\n[clock]\nfrequency_mhz = 850\n[topology]\nkind = \"die\"\n[[collective]]\nkind = \"allreduce\"\nelements = 6\n";

fn wave(path: PathBuf, window: (u64, Option<u64>)) -> Read {
    let loaded = load_text("test", DIE, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let signals = vec!["**.core0.**".into(), "**.sw4.**".into()];
    let shown = Wave { signals, depth: None, from_cycle: window.0, to_cycle: window.1, clock: true };
    let wave = WaveOptions::of(path, shown);
    let result = run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
    assert!(result.notes.is_empty(), "{:?}", result.notes);
    Read::new(std::fs::read(&wave.path).unwrap())
}

#[test]
fn every_value_at_every_time_is_that_of_the_vcd() {
    let folder = tempfile::tempdir().unwrap();
    for window in [(0, None), (20, Some(45))] {
        let mut vcd = wave(folder.path().join("a.vcd"), window);
        let mut fst = wave(folder.path().join("a.fst"), window);
        let names = vcd.names();
        assert!(names.len() > 50 && fst.names() == names, "{} signals", names.len());
        let timescale = fst.waveform().hierarchy().timescale().unwrap();
        assert_eq!((timescale.factor, timescale.unit), (1, wellen::TimescaleUnit::PicoSeconds));
        let times = vcd.times().to_vec();
        assert!(times.len() > 20);
        assert_eq!(fst.times().last(), times.last());
        vcd.load_all();
        fst.load_all();
        // One time in seven of each signal, in `make test` one in 28; the signals take turns, so that each time has its own.
        for (at, name) in names.iter().enumerate() {
            for &time in share::one_in(4, times.iter().skip(at % 28).step_by(7)) {
                assert_eq!(fst.bits(name, time), vcd.bits(name, time), "{name} at {time}");
            }
        }
    }
    let sizes = ["a.vcd", "a.fst"].map(|name| std::fs::metadata(folder.path().join(name)).unwrap().len());
    assert!(sizes[1] * 2 < sizes[0], "{sizes:?}");
    assert!(folder.path().join("a.gtkw").exists());
}

#[test]
fn equal_runs_give_equal_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.fst", "b.fst"].map(|name| folder.path().join(name));
    wave(a.clone(), (0, None));
    wave(b.clone(), (0, None));
    assert_eq!(std::fs::read(a).unwrap(), std::fs::read(b).unwrap());
}
