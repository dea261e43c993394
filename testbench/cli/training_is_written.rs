//! Training is written as Chakra traces, which run (X-WORK-4).

use std::fs;

use crate::support::watershed;

const LENET: &str = "name = \"LeNet-5\"\ninput = [1, 32, 32]\nlayer = [\n\
    { name = \"c1\", kind = \"convolution\", channels = 6, kernel = 5, bias = true },\n\
    { name = \"s2\", kind = \"pool\", kernel = 2, stride = 2 },\n\
    { name = \"c3\", kind = \"convolution\", channels = 16, kernel = 5, bias = true },\n\
    { name = \"s4\", kind = \"pool\", kernel = 2, stride = 2 },\n\
    { name = \"f5\", kind = \"dense\", features = 120 },\n\
    { name = \"f7\", kind = \"dense\", features = 10 },\n]\n";

#[test]
fn layers_of_shipped_tables_are_shown() {
    let output = watershed(["workload", "train", "vgg16", "--json"]);
    assert_eq!((output.status, &*output.stderr), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["parameters"], 138_357_544);
    assert_eq!(json["layers"].as_array().unwrap().len(), 16);
    let fc6 = json["layers"].as_array().unwrap().iter().find(|layer| layer["name"] == "fc6").unwrap();
    assert_eq!(fc6["allreduce_bytes"], 4 * 102_764_544_u64);
    let output = watershed(["workload", "train", "resnet50", "--element-bytes", "2"]);
    assert!(output.stdout.contains("25557032") && output.stdout.contains("51114064"), "{}", output.stdout);
}

#[test]
fn training_runs_on_end_points_and_overlaps() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("lenet.toml");
    fs::write(&table, LENET).unwrap();
    let mut ends = Vec::new();
    for (reduce, collectives) in [("layers", 4), ("end", 1)] {
        let prefix = folder.path().join(reduce).display().to_string();
        let table = table.to_str().unwrap();
        let output = watershed([
            "workload",
            "train",
            table,
            "--ranks",
            "4",
            "--minibatch",
            "8",
            "--reduce",
            reduce,
            "--out",
            &prefix,
        ]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        assert!(output.stdout.contains(&format!("{reduce}.3.et: ")), "{}", output.stdout);
        let sets = [
            "family=\"piuma\"",
            "topology={ kind = \"mesh\", size = [2, 2] }",
            "workload.overhead_cycles=0",
            "workload.peak_tflops=0.1",
        ];
        let mut arguments = vec!["run", "goal-mesh", "--workload", &prefix, "--json"];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        let output = watershed(arguments);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let workload = &json["workload"];
        let all = workload["collectives"].as_array().unwrap();
        assert_eq!(all.len(), collectives);
        // 61,706 parameters of LeNet-5 without its f6.
        assert_eq!(all.iter().map(|of| of["bytes"].as_u64().unwrap()).sum::<u64>(), 4 * 51_902);
        assert!(all.iter().all(|of| of["bit_exact"] == true && of["engine"] == "piuma"));
        let rank = &workload["ranks"][0];
        assert_eq!(rank["overlap_cycles"].as_u64().unwrap() > 0, reduce == "layers");
        ends.push(workload["end_cycle"].as_u64().unwrap());
    }
    assert!(ends[0] < ends[1], "{ends:?}");
}

#[test]
fn what_cannot_be_trained_is_refused_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("t.0.et");
    fs::write(&table, LENET).unwrap();
    let (table, prefix) = (table.display().to_string(), folder.path().join("t").display().to_string());
    for (arguments, words) in [
        (vec!["vgg19"], "vgg16, resnet50, or a file of layers"),
        (vec!["vgg16", "--peak-tflops", "0"], "a number from 0.000001"),
        (vec!["vgg16", "--ranks", "4096", "--iterations", "1000"], "fewer ranks or iterations"),
        (vec![&table, "--out", &prefix], "which is read; nothing was touched"),
    ] {
        let output = watershed(["workload", "train"].into_iter().chain(arguments.iter().copied()));
        assert_eq!((output.status, &*output.stdout), (2, ""), "{arguments:?}");
        assert!(output.stderr.contains(words), "{arguments:?}\n{}", output.stderr);
    }
    assert_eq!(fs::read_to_string(&table).unwrap(), LENET);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

const STUDY: &str = "about = \"Two of them.\"\n\
    [training]\nmodels = [\"lenet.toml\"]\nminibatch = [4, 8]\nranks = 16\npeak_tflops = 0.1\nsimulated_elements = 2048\n\
    [[training.figure]]\nwhat = \"hidden\"\nof = \"speedup\"\nmodel = \"lenet.toml\"\nminibatch = 8\ncontestant = \"PIUMA\"\n\
    reduce = \"layers\"\nover = \"ring\"\nsays = 1.5\ntolerance = 1.0\nbasis = \"predicted\"\n\
    [[contestant]]\nname = \"PIUMA\"\nfile = \"training-16\"\n\
    [[contestant]]\nname = \"ring\"\nfile = \"training-16\"\nset = [\"workload.engine.allreduce='ring'\"]\n";

/// Runs a training study in a folder with its table of layers.
fn study(folder: &std::path::Path, text: &str, more: &[&str]) -> crate::support::Output {
    fs::write(folder.join("lenet.toml"), LENET).unwrap();
    let file = folder.join("study.toml");
    fs::write(&file, text).unwrap();
    watershed([&["study", file.to_str().unwrap()], more].concat())
}

#[test]
fn a_training_study_tells_iterations_layers_and_figures() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let output = study(folder.path(), STUDY, &["--json", "-o", page.to_str().unwrap()]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let cell = &json["cells"][0];
    let layers = cell["layers"].as_array().unwrap();
    let extended: Vec<&str> =
        layers.iter().filter(|layer| layer["extended"] == true).map(|layer| layer["name"].as_str().unwrap()).collect();
    assert_eq!(extended, ["c3", "f5", "all"]);
    assert_eq!(cell["iterations"].as_array().unwrap().len(), 2 * 2 * 2);
    let figure = &json["figures"][0];
    assert!(figure["ours"].as_f64().unwrap() > 1.0 && figure["basis"] == "predicted", "{figure}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Beside a source") && html.contains("2048 elements, extended") && html.contains("<svg"));
    assert_eq!(html.matches("http").count(), html.matches("http://www.w3.org/2000/svg").count());

    let text = study(folder.path(), STUDY, &["-j", "1"]).stdout;
    assert!(text.contains("layer by layer") && text.contains("2048 elements, extended") && text.contains("predicted"));
    let csv = study(folder.path(), STUDY, &["--csv"]).stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 9);
    assert!(lines[0].starts_with("system,model,ranks,minibatch,gradients,contestant,iteration_ms"), "{}", lines[0]);
    // A figure that is too far away is told, and the status says so.
    let far = study(folder.path(), &STUDY.replace("says = 1.5\ntolerance = 1.0", "says = 9.0\ntolerance = 0.1"), &[]);
    assert_eq!(far.status, 1);
    assert!(far.stdout.contains("TOO FAR"), "{}", far.stdout);
}

#[test]
fn wrong_training_studies_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to, words) in [
        ("[training]", "elements = [4]\n[training]", "this means nothing to training"),
        ("contestant = \"PIUMA\"", "contestant = \"PIUMAS\"", "did you mean `PIUMA`?"),
        ("minibatch = 8", "minibatch = 16", "16 is not among the minibatches"),
        ("minibatch = [4, 8]", "minibatch = [8, 4]", "not in ascending order"),
        ("over = \"ring\"\n", "", "a speed-up is over another contestant"),
        ("models = [\"lenet.toml\"]", "models = [\"lenets.toml\"]", "there is no such table of layers"),
        ("ranks = 16", "ranks = 17", "the trace has 17 ranks, and there are 16 end points"),
        ("peak_tflops", "peak_tflop", "did you mean `peak_tflops`?"),
        ("'ring'", "'rings'", "rings"),
    ] {
        let text = STUDY.replace(from, to);
        assert_ne!(text, STUDY, "{from}");
        let output = study(folder.path(), &text, &[]);
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{to}: {}", output.stderr);
        assert!(output.stderr.contains(words) && output.stderr.contains("-->"), "{to}: {}", output.stderr);
    }
    let output =
        study(folder.path(), "[[contestant]]\nfile = \"training-16\"\n[[contestant]]\nfile = \"goal-mesh\"\n", &[]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("`elements` is missing"), "{}", output.stderr);
}
