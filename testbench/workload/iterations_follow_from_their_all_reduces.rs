//! Training studies: the time of an iteration that is put together from all-reduces of single layers is that of a run of the whole, and what
//! is extended is near what is simulated (X-WORK-4).

use crate::support::{pass, root, workload};
use watershed::study::compare::study::Study;
use watershed::study::training::file::ReduceFile;
use watershed::study::training::{Outcome, training};
use watershed::workload::chakra;
use watershed::workload::model::Model;
use watershed::workload::train::{GradientReduction, Training};

/// LeNet-5 on sixteen ranks: this many elements of a layer are simulated.
fn study(simulated: u64) -> Outcome {
    let text = format!(
        "[training]\nmodels = [\"traces/training/lenet.toml\"]\nminibatch = [8, 64]\nranks = 16\npeak_tflops = 1.0\nefficiency = 0.1\n\
         simulated_elements = {simulated}\n\
         [[contestant]]\nname = \"network\"\nfile = \"training-16\"\n\
         [[contestant]]\nname = \"ring\"\nfile = \"training-16\"\nset = [\"workload.engine.allreduce='ring'\"]\n\
         [[contestant]]\nname = \"halving\"\nfile = \"training-16\"\n\
         set = [\"workload.engine.allreduce='rabenseifner'\", \"workload.overhead_cycles=500\"]\n"
    );
    let study = Study::parse("lenet-study.toml", &text, root()).unwrap_or_else(|problems| panic!("{problems}"));
    training(&study, 2, &|| false, &|_, _| {}).unwrap_or_else(|stopped| panic!("{stopped:?}"))
}

const ENGINES: [(&str, &str, u64); 3] =
    [("network", "network", 0), ("ring", "ring", 0), ("halving", "rabenseifner", 500)];

#[test]
fn whole_iterations_take_what_their_parts_say() {
    let outcome = study(1 << 20);
    let folder = tempfile::tempdir().unwrap();
    let model = Model::read(root().join("traces/training/lenet.toml").to_str().unwrap()).unwrap();
    let scenario = std::fs::read_to_string(root().join("testbench/workload/training-16.toml")).unwrap();
    for (word, reduce) in [(ReduceFile::Layers, GradientReduction::Layers), (ReduceFile::End, GradientReduction::End)] {
        let training = Training {
            ranks: 16,
            minibatch: 8,
            iterations: 1,
            element_bytes: 4,
            peak_tflops: 0.1,
            bandwidth_gbps: None,
            reduce,
        };
        let prefix = folder.path().join("t");
        for (rank, bytes) in (0..).zip(chakra::write(&training.trace(&model))) {
            std::fs::write(chakra::file(&prefix, rank), bytes).unwrap();
        }
        for (name, engine, overhead) in ENGINES {
            let sets = [
                format!("workload.trace={:?}", prefix.display().to_string()),
                format!("workload.engine.allreduce={engine:?}"),
                format!("workload.overhead_cycles={overhead}"),
            ];
            let whole = pass(&scenario, &sets);
            let whole = workload(&whole);
            let parts =
                outcome.iteration(("as the scenarios are", "traces/training/lenet.toml"), name, 8, word).unwrap();
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
}

#[test]
fn what_is_beside_backpropagation_is_hidden() {
    let outcome = study(1 << 20);
    let at = |name: &str, minibatch, reduce| {
        outcome.iteration(("as the scenarios are", "traces/training/lenet.toml"), name, minibatch, reduce).unwrap()
    };
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

#[test]
fn extended_all_reduces_are_near_simulated_ones_and_say_so() {
    let (whole, extended) = (study(1 << 20), study(16_384));
    let (whole, extended) = (&whole.cells[0], &extended.cells[0]);
    assert!(whole.layers.iter().all(|layer| !layer.extended));
    for (whole, extended) in whole.layers.iter().zip(&extended.layers) {
        assert_eq!(extended.extended, whole.elements > 16_384, "{extended:?}");
        for (exact, near) in whole.ns.iter().zip(&extended.ns) {
            assert!(
                (near / exact - 1.0).abs() < if extended.extended { 0.02 } else { 1e-12 },
                "{whole:?} {extended:?}"
            );
        }
    }
    assert_eq!(whole.layers.iter().filter(|layer| layer.elements > 16_384).count(), 2, "f5 and all of them");
    assert_eq!(whole.layers.last().map(|layer| (layer.name.as_str(), layer.elements)), Some(("all", 61_706)));
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
