//! The size of a waveform is estimated from a short sample, within a stated factor.

use std::path::{Path, PathBuf};

use watershed::scenario::config::Wave;
use watershed::scenario::estimate::{self, FACTOR};
use watershed::scenario::run::{RunOptions, WaveOptions, run};
use watershed::scenario::{ENGINES, Loaded, Runnable, load_text};

fn load(text: &str) -> Loaded {
    load_text("test", text, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

fn wave(path: PathBuf, signals: &str) -> WaveOptions {
    WaveOptions::of(path, Wave { signals: vec![signals.into()], ..Wave::default() })
}

fn runnable(text: &str) -> Runnable {
    Runnable { loaded: load(text), engines: ENGINES }
}

#[test]
fn long_runs_are_estimated_within_the_factor() {
    let folder = tempfile::tempdir().unwrap();
    let die = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[[collective]]\nkind = \"allreduce\"\nelements = 900\n";
    let tree = "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [3]\n[[armed.reduction]]\nop = \"int-sum\"\nrounds = 40\ncompute_cycles = 30\n";
    let star = "family = \"pbv\"\n[topology]\nkind = \"tree\"\nbranching = [3]\n[pbv.setup]\nconfiguration = \"side-port\"\n[[pbv.collective]]\nrounds = 40\nstart_cycle = 100\n";
    let mesh = "family = \"fabric\"\n[topology]\nkind = \"mesh\"\nsize = [3, 3]\n[[traffic]]\npattern = \"uniform\"\nrate = 0.2\n[measure]\nwarmup_cycles = 300\nmeasure_cycles = 2000\n";
    for (number, (text, name, signals, sample)) in [
        (die, "die.vcd", "**.ceng.**", 400),
        (die, "die.fst", "**", 400),
        (tree, "tree.vcd", "**", 900),
        (star, "star.vcd", "**", 900),
        (mesh, "mesh.vcd", "**", 500),
    ]
    .into_iter()
    .enumerate()
    {
        let (loaded, wave) = (runnable(text), wave(folder.path().join(name), signals));
        let estimate = estimate::wave(&loaded, &wave, sample).unwrap();
        let again = estimate::wave(&loaded, &wave, sample).unwrap();
        assert_eq!(estimate, again, "{name}: an estimate does not change");
        assert!(!wave.path.exists(), "an estimate writes no waveform");
        let result = run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
        let bytes = std::fs::metadata(&wave.path).unwrap().len() as f64;
        assert!(result.document.cycles > 2 * sample, "{name}: {} cycles", result.document.cycles);
        let told = estimate.bytes().unwrap_or_else(|| panic!("{number} {name}: {estimate}"));
        assert!(told < bytes * FACTOR && told > bytes / FACTOR, "{name}: {told} told, {bytes} written; {estimate}");
        assert!(!estimate.whole && estimate.to_string().contains("about"), "{estimate}");
    }
}

#[test]
fn a_run_within_the_sample_is_told_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let die = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[[collective]]\nkind = \"allreduce\"\nelements = 9\n";
    let (loaded, wave) = (runnable(die), wave(folder.path().join("die.vcd"), "**.ceng.**"));
    let estimate = estimate::wave(&loaded, &wave, 4000).unwrap();
    let result = run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
    let bytes = std::fs::metadata(&wave.path).unwrap().len();
    assert_eq!((estimate.bytes(), estimate.whole), (Some(bytes as f64), true));
    assert_eq!(estimate.cycles, Some(result.document.cycles));
    assert!(estimate.to_string().contains("exactly"), "{estimate}");
}
