//! Training studies: the time of an iteration that is put together from all-reduces of single layers is that of a run of the whole, and what
//! is extended is near what is simulated (X-WORK-4).

use std::path::Path;

use crate::share;
use crate::support::{pass, root, workload};
use watershed::study::compare::study::Study;
use watershed::study::training::file::ReduceFile;
use watershed::study::training::{Iteration, Outcome, training};
use watershed::workload::chakra;
use watershed::workload::model::Model;
use watershed::workload::train::{GradientReduction, Training};

/// LeNet-5 as a table of layers in this folder. In `make test` the largest layer has a sixth of its neurons, and is still the largest.
fn table(folder: &Path) -> String {
    let lenet = std::fs::read_to_string(root().join("traces/training/lenet.toml")).unwrap();
    let neurons = if share::is_whole() { 120 } else { 20 };
    let path = folder.join("lenet.toml");
    std::fs::write(&path, lenet.replace("features = 120", &format!("features = {neurons}"))).unwrap();
    path.display().to_string()
}

/// Operations a second of a rank, in 10^12. Where the layer is smaller there are more of them: computing takes about as long as adding up
/// in both.
fn tflops() -> f64 {
    if share::is_whole() { 0.1 } else { 0.45 }
}

/// LeNet-5 on sixteen ranks with these engines: this many elements of a layer are simulated.
fn study(simulated: u64, engines: impl IntoIterator<Item = (&'static str, &'static str, u64)>) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let contestants = engines.into_iter().map(|(name, engine, overhead)| {
        format!(
            "[[contestant]]\nname = \"{name}\"\nfile = \"training-16\"\n\
             set = [\"workload.engine.allreduce='{engine}'\", \"workload.overhead_cycles={overhead}\"]\n"
        )
    });
    let text = format!(
        "[training]\nmodels = [{:?}]\nminibatch = [8, 64]\nranks = 16\npeak_tflops = 1.0\nefficiency = {}\n\
         simulated_elements = {simulated}\n{}",
        table(folder.path()),
        tflops(),
        contestants.collect::<String>()
    );
    let study = Study::parse(watershed::scenario::ENGINES, "lenet-study.toml", &text, root())
        .unwrap_or_else(|problems| panic!("{problems}"));
    training(&study, 2, &|| false, &|_, _| {}).unwrap_or_else(|stopped| panic!("{stopped:?}"))
}

/// An iteration of the only model.
fn iteration<'a>(outcome: &'a Outcome, name: &str, minibatch: u64, reduce: ReduceFile) -> &'a Iteration {
    outcome.iteration(("as the scenarios are", outcome.cells[0].model.as_str()), name, minibatch, reduce).unwrap()
}

const ENGINES: [(&str, &str, u64); 3] =
    [("network", "network", 0), ("ring", "ring", 0), ("halving", "rabenseifner", 500)];

/// Each engine and both times of adding up are looked at in `make test`, but not each engine at both times.
///
/// And what is beside backpropagation is hidden.
#[test]
fn whole_iterations_take_what_their_parts_say() {
    let outcome = study(1 << 20, ENGINES);
    hides_what_is_beside_backpropagation(&outcome);
    let folder = tempfile::tempdir().unwrap();
    let model = Model::read(&table(folder.path())).unwrap();
    let scenario = std::fs::read_to_string(root().join("testbench/workload/training-16.toml")).unwrap();
    let times = [(ReduceFile::Layers, GradientReduction::Layers), (ReduceFile::End, GradientReduction::End)];
    let cases = times.map(|time| ENGINES.map(|engine| (time, engine))).concat();
    for ((word, reduce), (name, engine, overhead)) in share::one_in(2, cases) {
        let training = Training {
            ranks: 16,
            minibatch: 8,
            iterations: 1,
            element_bytes: 4,
            peak_tflops: tflops(),
            bandwidth_gbps: None,
            reduce,
        };
        let prefix = folder.path().join("t");
        for (rank, bytes) in (0..).zip(chakra::write(&training.trace(&model))) {
            std::fs::write(chakra::file(&prefix, rank), bytes).unwrap();
        }
        let sets = [
            format!("workload.trace={:?}", prefix.display().to_string()),
            format!("workload.peak_tflops={}", tflops()),
            format!("workload.engine.allreduce={engine:?}"),
            format!("workload.overhead_cycles={overhead}"),
        ];
        let whole = pass(&scenario, &sets);
        let whole = workload(&whole);
        let parts = iteration(&outcome, name, 8, word);
        let (simulated, put_together) = (whole.end_ns.unwrap(), parts.ms * 1e6);
        // Members of an all-reduce end up to the way through the network apart, and begin the next one so.
        let apart = (simulated - put_together).abs();
        assert!(apart <= 5.0 * 400.0, "{name} {word:?}: {simulated} {put_together}");
        assert!(apart / simulated < 0.005, "{name} {word:?}: {simulated} {put_together}");
        let rank = whole.ranks.iter().max_by_key(|rank| rank.end_cycle).unwrap();
        let exposed = (rank.end_cycle.unwrap() - rank.compute_cycles) as f64;
        assert!((exposed - parts.exposed_ms * 1e6).abs() <= 5.0 * 400.0, "{name} {word:?}: {exposed} {parts:?}");
    }
}

fn hides_what_is_beside_backpropagation(outcome: &Outcome) {
    let at = |name: &str, minibatch, reduce| iteration(outcome, name, minibatch, reduce);
    for (name, ..) in ENGINES {
        let (end, layers) = (at(name, 8, ReduceFile::End), at(name, 8, ReduceFile::Layers));
        assert!((end.ms - end.compute_ms - end.reduce_ms).abs() < 1e-9, "nothing is hidden behind the end: {end:?}");
        assert!(layers.exposed_ms < layers.reduce_ms, "{layers:?}");
        assert!(layers.exposed_ms > 0.0 && layers.ms < end.ms, "the first layer's is never hidden: {layers:?}");
        let more = at(name, 64, ReduceFile::Layers);
        assert!(more.exposed_percent < layers.exposed_percent && more.compute_ms > 7.9 * layers.compute_ms, "{more:?}");
    }
    let order = |reduce| ENGINES.map(|(name, ..)| at(name, 8, reduce).ms);
    let [network, ring, _] = order(ReduceFile::End);
    assert!(network < ring, "{network} {ring}");
}

/// In `make test` of two engines.
#[test]
fn extended_all_reduces_are_near_simulated_ones_and_say_so() {
    let (longest, all) = if share::is_whole() { (16_384, 61_706) } else { (4096, 13_206) };
    let [whole, extended] = [1 << 20, longest].map(|simulated| study(simulated, share::one_in(2, ENGINES)));
    let (whole, extended) = (&whole.cells[0], &extended.cells[0]);
    assert!(whole.layers.iter().all(|layer| !layer.extended));
    for (whole, extended) in whole.layers.iter().zip(&extended.layers) {
        assert_eq!(extended.extended, whole.elements > longest, "{extended:?}");
        for (exact, near) in whole.ns.iter().zip(&extended.ns) {
            assert!(
                (near / exact - 1.0).abs() < if extended.extended { 0.02 } else { 1e-12 },
                "{whole:?} {extended:?}"
            );
        }
    }
    assert_eq!(whole.layers.iter().filter(|layer| layer.elements > longest).count(), 2, "f5 and all of them");
    assert_eq!(whole.layers.last().map(|layer| (layer.name.as_str(), layer.elements)), Some(("all", all)));
}

#[test]
fn shipped_traces_are_what_the_generator_writes() {
    let model = Model::read(root().join("traces/training/lenet.toml").to_str().unwrap()).unwrap();
    let training = Training {
        ranks: 16,
        minibatch: 8,
        iterations: 1,
        element_bytes: 4,
        peak_tflops: 0.1,
        bandwidth_gbps: None,
        reduce: GradientReduction::Layers,
    };
    for (rank, bytes) in (0..).zip(chakra::write(&training.trace(&model))) {
        assert_eq!(std::fs::read(chakra::file(&root().join("traces/training/lenet"), rank)).unwrap(), bytes, "{rank}");
    }
}
