//! Issue 26: costs and periods follow from what was synthesised, a clock from the slowest block, energy from the events of a run.
//! Expectations are computed here from the tables' numbers and from what Yosys recorded, not by the model's code.
#![allow(clippy::float_cmp, reason = "a number that is printed twice is the same number")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{root, watershed};

fn json(arguments: &[&str]) -> Value {
    let output = watershed(arguments);
    assert_eq!(output.status, 0, "{arguments:?}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn cost(arguments: &[&str]) -> Value {
    json(&[&["cost", "--json"], arguments].concat())
}

/// A number of a kind of block, of one of it; the first of the kind.
fn of(cost: &Value, block: &str, path: &str) -> f64 {
    let blocks = cost["blocks"].as_array().unwrap();
    let found = blocks.iter().find(|found| found["block"] == block).unwrap_or_else(|| panic!("{block}: {cost}"));
    found.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {found}"))
}

/// What Yosys made of a module: NAND2 equivalents, flip-flops, period in ps.
fn recorded(module: &str) -> [f64; 3] {
    let text = fs::read_to_string(root().join("golden/synth/blocks.csv")).unwrap();
    let row = text.lines().find(|line| line.starts_with(module)).unwrap_or_else(|| panic!("{module}"));
    let parts: Vec<&str> = row.split(',').collect();
    [4, 5, 7].map(|at| parts[at].parse().unwrap())
}

/// The technology table that comes with the program, as a file to change.
fn table(folder: &Path, changes: &[(&str, &str)]) -> String {
    let mut text = watershed(["cost", "--print-technology"]).stdout;
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let path = folder.join("mine.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A line of four switches whose engines find minima of i64, as the modules of the grid do.
const LINE: &str = "family = 'piuma'\n[topology]\nkind = 'mesh'\nsize = [4]\n[switch]\npoint_to_point_vcs = 1\n[switch.ceng]\nradix = 4\n\
                    result_slots = 8\n[link]\nlatency_ns = 5\n[[job]]\nkind = 'allreduce'\nop = 'min'\ndtype = 'i64'\nelements = 8\n";

fn line(folder: &Path) -> String {
    let path = folder.join("line.toml");
    fs::write(&path, LINE).unwrap();
    path.display().to_string()
}

#[test]
fn an_engine_costs_what_yosys_made_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let line = line(folder.path());
    for stages in ["1", "3", "6"] {
        let cost = cost(&[&line, "--set", &format!("switch.ceng.stages={stages}")]);
        let [nand2, flip_flops, period] =
            recorded(&format!("ws_reduce_tree,Radix=4 UnitStages={stages} Units=44'h1000000,"));
        for (path, recorded) in [("/each/logic", nand2), ("/each/flip_flops", flip_flops), ("/period_ps", period)] {
            let said = of(&cost, "CENG tree", path);
            assert!((said / recorded - 1.0).abs() < 0.15, "{stages} stages: {path} {said}, Yosys: {recorded}");
        }
        let tree = cost["blocks"].as_array().unwrap().iter().find(|block| block["block"] == "CENG tree").unwrap();
        assert_eq!(tree["basis"], "fitted");
    }
    // Slots around the tree: together the engine. The queue of its results is the switch's.
    let cost = cost(&[&line]);
    let [nand2, flip_flops, period] =
        recorded("ws_ceng,Radix=4 UnitStages=3 Units=44'h1000000 OperandSlots=2 ResultSlots=8,");
    let parts = ["CENG operand slots", "CENG tree"];
    for (path, recorded) in [("/each/logic", nand2), ("/each/flip_flops", flip_flops)] {
        // A formula may be below zero for a part; what is printed is not.
        let said: f64 = parts.iter().map(|part| of(&cost, part, path)).sum();
        assert!((said / recorded - 1.0).abs() < 0.15, "{path} {said}, Yosys: {recorded}");
    }
    let said = of(&cost, "CENG operand slots", "/period_ps");
    assert!((said / period - 1.0).abs() < 0.15, "{said} {period}");
    assert_eq!(cost["slowest"], "point-to-point channels", "{cost}");
}

/// A number of a row of point-to-point channels between so many ports.
fn channels(cost: &Value, ports: u64, path: &str) -> f64 {
    let is_row = |row: &&Value| {
        let is_wide = row["detail"].as_str().unwrap().starts_with(&format!("{ports} x {ports} ports"));
        row["block"] == "point-to-point channels" && is_wide
    };
    let row = cost["blocks"].as_array().unwrap().iter().find(is_row).unwrap_or_else(|| panic!("{ports}: {cost}"));
    row.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {row}"))
}

#[test]
fn point_to_point_channels_cost_what_yosys_made_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let line = line(folder.path());
    let switch = |vcs: u64, depth: u64| {
        [format!("switch.point_to_point_vcs={vcs}"), format!("switch.point_to_point_buffer_flits={depth}")]
    };
    let bill = |name: &str, sets: &[String]| {
        let sets = sets.iter().flat_map(|set| ["--set", set.as_str()]);
        cost(&std::iter::once(name).chain(sets).collect::<Vec<_>>())
    };
    let (alone, ends) = (folder.path().join("alone.toml"), folder.path().join("ends.toml"));
    let of_it = "family = 'fabric'\n[topology]\nkind = 'mesh'\nsize = [4]\n[[traffic]]\npattern = 'uniform'\nrate = 0.1\nstop_cycle = 50\n";
    fs::write(&alone, of_it).unwrap();
    let alone = alone.to_str().unwrap();
    for (ports, vcs, depth) in [(2, 1, 2), (2, 2, 4), (3, 1, 4), (3, 4, 2), (3, 2, 8)] {
        // The module has its queues, which are rows of their own.
        let module = format!("ws_unicast,Ports={ports} Channels={vcs} Depth={depth} Ends=16,");
        let [nand2, flip_flops, period] = recorded(&module);
        let queue = recorded(&format!("ws_delay_fifo,Width=124 Depth={depth},"));
        let with = bill(&line, &switch(vcs, depth));
        for (path, recorded, queue) in [("/each/logic", nand2, queue[0]), ("/each/flip_flops", flip_flops, queue[1])] {
            let said = channels(&with, ports, path) + (ports * vcs) as f64 * queue;
            assert!((said / recorded - 1.0).abs() < 0.15, "{module} {path} {said}, Yosys: {recorded}");
        }
        let said = channels(&bill(alone, &switch(vcs, depth)), ports, "/period_ps");
        assert!((said / period - 1.0).abs() < 0.15, "{module} {said}, Yosys: {period}");
        assert!(channels(&with, ports, "/period_ps") > said, "they decide behind the others there");
    }
    // Of a whole switch gates add up, and the last decisions of one kind of channels are behind those of the other.
    for (ports, vcs) in [(2, 1), (2, 2), (3, 1), (3, 2)] {
        let module = format!("ws_switch_whole,Ports={ports} Ids=4 Channels={vcs} Depth=2 Ends=16 Units=44'h1000000,");
        let [.., period] = recorded(&module);
        let said = channels(&bill(&line, &switch(vcs, 2)), ports, "/period_ps");
        assert!((said / period - 1.0).abs() < 0.08, "{module} {said}, Yosys: {period}");
    }
    let module = "ws_switch_whole,Ports=2 Ids=4 Channels=1 Depth=2 Ends=16 Units=44'h1000000,";
    let [nand2, flip_flops, period] = recorded(module);
    let mut sets = switch(1, 2).to_vec();
    sets.extend(["switch.collective_buffer_flits=2".into(), "switch.ceng.radix=2".into()]);
    fs::write(&ends, LINE.replace("size = [4]", "size = [2]")).unwrap();
    let whole = bill(ends.to_str().unwrap(), &sets);
    // The twin has a queue of results for requests and one for responses, the model places for both.
    let queue = recorded("ws_delay_fifo,Width=124 Depth=8,");
    for (path, recorded, queue) in [("/each/logic", nand2, queue[0]), ("/each/flip_flops", flip_flops, queue[1])] {
        let rows = whole["blocks"].as_array().unwrap();
        let number = |row: &Value, path: &str| row.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        let said: f64 = queue + rows.iter().map(|row| number(row, path) * number(row, "/count")).sum::<f64>() / 2.0;
        assert!((said / recorded - 1.0).abs() < 0.15, "{path} {said}, Yosys: {recorded}: {whole}");
    }
    let said = whole["period_ps"].as_f64().unwrap();
    assert!((said / period - 1.0).abs() < 0.08, "{said}, Yosys: {period}");
    // A knob of these channels acts on their row, and those of others do not.
    let before = bill(&line, &switch(1, 4));
    let more = bill(&line, &switch(2, 4));
    for path in ["/each/logic", "/each/flip_flops", "/each/storage_bits", "/period_ps"] {
        assert!(channels(&more, 3, path) > channels(&before, 3, path), "{path}: {before} {more}");
        let of_others = |cost: &Value| of(cost, "crossbar and allocators", path);
        assert_eq!(of_others(&more), of_others(&before), "{path}");
    }
    let ids = bill(&line, &[&switch(1, 4)[..], &["switch.collective_ids=16".into()]].concat());
    assert_eq!(channels(&ids, 3, "/each/logic"), channels(&before, 3, "/each/logic"));
    assert!(of(&ids, "crossbar and allocators", "/period_ps") > of(&before, "crossbar and allocators", "/period_ps"));
    let halved = bill(alone, &["switch.pipeline_stages=2".into()]);
    let whole = bill(alone, &[]);
    let periods = [&halved, &whole].map(|cost| channels(cost, 3, "/period_ps") - 150.0);
    assert!((periods[0] * 2.0 - periods[1]).abs() <= 2.0, "{periods:?}");
    // Other allocators are in the twin, but in no point of the grid.
    let basis = |cost: &Value| {
        let mut rows = cost["blocks"].as_array().unwrap().iter();
        rows.find(|row| row["block"] == "point-to-point channels").unwrap()["basis"].as_str().unwrap().to_owned()
    };
    let islip = bill(alone, &["switch.router.switch_allocator='islip'".into()]);
    // Four channels behind those of an engine are more than any whole switch of the grid has.
    let four = bill(&line, &switch(4, 2));
    // Nor was any with so many ids, whose decisions come before.
    let many = bill(&line, &[&switch(1, 4)[..], &["switch.collective_ids=32".into()]].concat());
    assert_eq!(
        [&whole, &halved, &islip, &before, &four, &many].map(basis),
        ["fitted", "extrapolated", "extrapolated", "fitted", "extrapolated", "extrapolated"]
    );
}

#[test]
fn an_armed_engine_costs_what_yosys_made_of_its_parts() {
    let row = |cost: &Value, block: &str| {
        cost["blocks"].as_array().unwrap().iter().find(|row| row["block"] == block).unwrap().clone()
    };
    let close = |row: &Value, module: &str| {
        let paths = ["/each/logic", "/each/flip_flops", "/period_ps"];
        for (path, recorded) in paths.into_iter().zip(recorded(module)) {
            let said = row.pointer(path).and_then(Value::as_f64).unwrap();
            assert!((said / recorded - 1.0).abs() < 0.15, "{module} {path} {said}, Yosys: {recorded}");
        }
        assert_eq!(row["basis"], "fitted", "{row}");
    };
    // Reproducible sums and locations keep four words together: the whole quad unit.
    for (scenario, stages) in [("order-sum", 1), ("ethernet-nics", 3), ("order-sum", 6)] {
        let cost = cost(&[scenario, "--set", &format!("armed.engine.stages={stages}")]);
        close(&row(&cost, "engine quad unit"), &format!("ws_quad_unit,Stages={stages},"));
    }
    // Jobs that need less count its lanes.
    let lanes = row(&cost(&["fig2-tree"]), "engine quad unit");
    assert!(lanes["each"]["gates"].as_u64().unwrap() < 100_000, "{lanes}");
    let table = |descriptors: u64, ports: u64| {
        let sets = [format!("armed.engine.descriptors={descriptors}"), format!("armed.engine.memory_ports={ports}")];
        row(&cost(&["fig2-tree", "--set", &sets[0], "--set", &sets[1]]), "engine descriptors")
    };
    close(&table(2, 1), "ws_armed_table,Descriptors=2 MemoryPorts=1,");
    close(&table(3, 1), "ws_armed_table,Descriptors=3 MemoryPorts=1,");
    close(&table(1, 4), "ws_armed_table,Descriptors=1 MemoryPorts=4,");
    // More of them, or of accesses, cost more; beyond what registers hold they are a memory, which is no faster and no smaller.
    let rows: Vec<Value> = [2, 4, 7, 8, 16].into_iter().map(|descriptors| table(descriptors, 2)).collect();
    for path in ["/each/area_um2", "/period_ps", "/each/storage_bits"] {
        let numbers: Vec<f64> = rows.iter().map(|row| row.pointer(path).and_then(Value::as_f64).unwrap()).collect();
        assert!(numbers.is_sorted() && (path == "/period_ps" || numbers[0] < numbers[1]), "{path}: {numbers:?}");
    }
    let period = |descriptors| table(descriptors, 1)["period_ps"].as_f64().unwrap();
    assert!(period(1) < period(2));
    assert!(rows[3]["each"]["sram_bits"] == 8 * 576 && rows[2]["each"]["sram_bits"] == 0, "{rows:?}");
    assert!(table(2, 2)["each"]["logic"].as_u64() > table(2, 1)["each"]["logic"].as_u64());
}

#[test]
fn a_packet_engine_has_the_logic_that_yosys_made_of_one_context() {
    let [nand2, flip_flops, period] = recorded("ws_pbv_ce,Contexts=1 ");
    let [_, tracker_flip_flops, _] = recorded("ws_pbv_tracker,Contexts=2,");
    for contexts in [1, 4, 64] {
        let cost = cost(&["face-off-pbv", "--set", &format!("pbv.engine.contexts={contexts}")]);
        let said = |path| of(&cost, "message logic", path);
        // Without its tracking store and its unit, which have rows of their own; those take less than a tenth of the whole.
        assert!((0.8..1.1).contains(&(said("/each/logic") / nand2)), "{}, Yosys: {nand2}", said("/each/logic"));
        let left = flip_flops - tracker_flip_flops;
        assert!((0.8..1.1).contains(&(said("/each/flip_flops") / left)), "{}, {left}", said("/each/flip_flops"));
        assert!((said("/period_ps") / period - 1.0).abs() < 0.15, "{} ps, Yosys: {period}", said("/period_ps"));
        // However many contexts a memory holds.
        assert_eq!(cost["slowest"], "message logic", "{contexts} contexts");
        assert!((cost["period_ps"].as_f64().unwrap() - said("/period_ps")).abs() < 1.0);
    }
}

#[test]
fn what_was_not_synthesised_is_not_called_fitted() {
    let basis = |arguments: &[&str], block: &str| {
        let cost = cost(arguments);
        let blocks = cost["blocks"].as_array().unwrap();
        blocks.iter().find(|found| found["block"] == block).unwrap()["basis"].as_str().unwrap().to_owned()
    };
    // Engines of two to 32 ports were synthesised, switches of up to eight, and five for point-to-point channels.
    assert_eq!(basis(&["allreduce-die"], "crossbar and allocators"), "fitted");
    assert_eq!(basis(&["allreduce-die"], "point-to-point channels"), "extrapolated");
    assert_eq!(basis(&["allreduce-die"], "CENG tree"), "fitted");
    assert_eq!(basis(&["fig2-tree"], "engine descriptors"), "not-synthesised");
    assert_eq!(basis(&["fig2-tree"], "engine frame buffers"), "not-synthesised");
    let text = watershed(["cost", "fig2-tree"]).stdout;
    assert!(text.contains("not synthesised") && text.contains("extrapolated"), "{text}");
}

#[test]
fn every_family_has_an_area_and_a_period() {
    for name in ["allreduce-die", "mesh-uniform", "fig2-tree", "tree-many-types", "several-engines"] {
        let cost = cost(&[name]);
        let blocks = cost["blocks"].as_array().unwrap();
        let number = |block: &Value, path: &str| block.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        let area: f64 = blocks.iter().map(|block| number(block, "/each/area_um2") * number(block, "/count")).sum();
        let total = number(&cost, "/total/area_um2");
        assert!(total > 1000.0 && (area / total - 1.0).abs() < 1e-6, "{name}: {area} {total}");
        assert!((number(&cost, "/total/gates") * 0.798 / total - 1.0).abs() < 1e-3, "{name}");
        let slowest = blocks.iter().map(|block| number(block, "/period_ps")).fold(0.0, f64::max);
        assert_eq!(number(&cost, "/period_ps"), slowest, "{name}");
        let named = blocks.iter().find(|block| number(block, "/period_ps") == slowest).unwrap();
        assert_eq!(named["block"], cost["slowest"], "{name}");
        assert!((number(&cost, "/frequency_mhz") * slowest / 1e6 - 1.0).abs() < 1e-5, "{name}");
    }
}

#[test]
fn a_table_of_ones_own_replaces_the_one_that_comes_along() {
    let folder = tempfile::tempdir().unwrap();
    let before = cost(&["allreduce-die"]);
    let twice = table(
        folder.path(),
        &[
            ("name = \"nangate45\"", "name = \"mine\""),
            ("nand2 = { value = 0.798", "nand2 = { value = 1.596"),
            ("flip_flop = { value = 5.320", "flip_flop = { value = 10.640"),
        ],
    );
    let set = format!("technology={twice:?}");
    for arguments in [["allreduce-die", "--technology", &twice], ["allreduce-die", "--set", &set]] {
        let cost = cost(&arguments);
        assert_eq!(cost["technology"], "mine");
        assert_eq!(cost["total"]["flip_flops"], before["total"]["flip_flops"]);
        let [area, larger] = [&before, &cost].map(|cost| cost["total"]["area_um2"].as_f64().unwrap());
        assert!((larger / area - 2.0).abs() < 1e-3, "{area} {larger}");
        assert_eq!(cost["period_ps"], before["period_ps"]);
    }
    // A file beside the scenario, and the clock that follows from it.
    let line = line(folder.path());
    fs::write(&line, format!("technology = 'mine.toml'\nclock = 'fastest'\n{LINE}")).unwrap();
    let text = fs::read_to_string(&twice).unwrap();
    let period = of(&cost(&[&line]), "crossbar and allocators", "/period_ps");
    let start = text.find("[fit.switch]").unwrap();
    let (head, tail) = text.split_at(start);
    let at = tail.find("period_ps").unwrap();
    let (tail, list) = tail.split_at(at);
    let open = list.find("coefficients = [").unwrap() + "coefficients = [".len();
    let (first, _) = list[open..].split_once(',').unwrap();
    let slower = format!("{:e}", first.parse::<f64>().unwrap() + 1000.0);
    let (list, rest) = (&list[..open], &list[open + first.len()..]);
    fs::write(&twice, format!("{head}{tail}{list}{slower}{rest}")).unwrap();
    let now = cost(&[&line]);
    assert!((of(&now, "crossbar and allocators", "/period_ps") - period - 1000.0).abs() <= 1.0, "{period} {now}");
    let ran = json(&["run", &line, "--json"]);
    let hertz = ran["config"]["clock"]["frequency_hz"].as_u64().unwrap();
    assert_eq!(hertz, (1e12 / now["period_ps"].as_f64().unwrap()).floor() as u64);
    // What the table says is a part of what a result came from.
    fs::write(&twice, text).unwrap();
    let again = json(&["run", &line, "--json"]);
    assert_ne!(again["stamp"]["config_hash"], ran["stamp"]["config_hash"]);
}

#[test]
fn a_bad_technology_table_is_refused_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to, message) in [
        ("unit = \"um2\"", "unit = \"mm2\"", "`area.nand2` is in mm2; its unit is um2"),
        ("value = 0.798", "value = -1.0", "`area.nand2` is -1; it is a number from 0 on"),
        ("value = 0.25, unit = \"share\"", "value = 1.25, unit = \"share\"", "`energy.gate_activity` is 1.25"),
        ("source = \"cells: NAND2_X1\"", "source = \" \"", "`area.nand2` has no source"),
        ("flip_flop = { value = 5.320", "flipflop = { value = 5.320", "unknown field `flipflop`"),
        ("[length]\nlink = { value = 5", "[length]\nlinks = { value = 5", "unknown field `links`"),
        ("[fit.tree]", "[fit.trees]", "there is no table `fit.tree`"),
        ("name = \"nangate45\"", "name = nangate45", "TOML parse error"),
    ] {
        let file = table(folder.path(), &[(from, to)]);
        for arguments in [
            ["cost", "allreduce-die", "--technology", &file],
            ["check", "allreduce-die", "--set", &format!("technology={file:?}")],
        ] {
            let output = watershed(arguments);
            assert_eq!(output.status, 2, "{from}: {}", output.stdout);
            assert!(
                output.stderr.contains(message) && output.stderr.contains("mine.toml"),
                "{from}: {}",
                output.stderr
            );
        }
    }
    let text = watershed(["cost", "--print-technology"]).stdout;
    let (head, tail) = text.split_once("[fit.queue]").unwrap();
    let (ranges, tail) = tail.split_once("coefficients = [").unwrap();
    let (_, tail) = tail.split_once(',').unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, format!("{head}[fit.queue]{ranges}coefficients = [{tail}")).unwrap();
    let output = watershed(["cost", "allreduce-die", "--technology", file.to_str().unwrap()]);
    assert!(
        output.stderr.contains("`fit.queue.nand2.coefficients` has 2 numbers, its formula has 3"),
        "{}",
        output.stderr
    );
    let output = watershed(["cost", "allreduce-die", "--technology", "nowhere.toml"]);
    assert!(output.status == 2 && output.stderr.contains("there is no technology table"), "{}", output.stderr);
    assert_eq!(watershed(["cost"]).status, 2);
}

#[test]
fn the_fastest_clock_is_what_the_slowest_block_reaches() {
    let mut frequencies = BTreeMap::new();
    for name in
        ["allreduce-die", "allreduce-die-deep", "mesh-uniform", "fig2-tree", "tree-many-types", "several-engines"]
    {
        let set = ["--set", "clock=fastest"];
        let cost = cost(&[&[name][..], &set].concat());
        let period = cost["period_ps"].as_f64().unwrap();
        // Traffic for a short time says as much of the clock.
        let has_traffic = ["mesh-uniform", "several-engines"].contains(&name);
        let short: &[&str] = if has_traffic { &["--set", "traffic.0.stop_cycle=500"] } else { &[] };
        let checked = json(&[&["run", name, "--json"][..], &set, short].concat());
        let config = &checked["config"];
        let hertz = config["clock"]["frequency_hz"].as_u64().unwrap();
        // The hardware at this clock reaches it, and not a hertz more: a fixed point, or the step below one.
        assert!(1e12 / period >= hertz as f64, "{name}: {hertz} {period}");
        assert!(1e12 / period < hertz as f64 * 1.02, "{name}: {hertz} {period}");
        assert_eq!(config["derived"]["clock.slowest_block"], cost["slowest"], "{name}");
        assert_eq!(config["derived"]["clock.period_ps"], cost["period_ps"], "{name}");
        let long = json(&[&["run", name, "--json", "--set", "clock.frequency_mhz=fastest"], short].concat());
        assert_eq!(long["config"]["clock"], config["clock"], "{name}");
        frequencies.insert(name, hertz);
    }
    // A switch of two stages decides in half the time.
    let deep = json(&["run", "allreduce-die", "--json", "--set", "clock=fastest", "--set", "switch.pipeline_stages=2"]);
    let hertz = deep["config"]["clock"]["frequency_hz"].as_u64().unwrap();
    assert!(hertz as f64 > 1.5 * frequencies["allreduce-die"] as f64, "{hertz} {frequencies:?}");
    // A clock out of reach is told of as one.
    let said = watershed(["cost", "allreduce-die"]).stdout;
    let reached = cost(&["allreduce-die"])["frequency_mhz"].as_f64().unwrap();
    assert!(said.contains(&format!("1000 MHz, {:.1} x that", 1000.0 / reached)), "{said}");
    for within in ["clock=fastest", "clock.frequency_mhz=50"] {
        let said = watershed(["cost", "allreduce-die", "--set", within]).stdout;
        assert!(!said.contains("x that"), "{within}: {said}");
    }
    let output = watershed(["check", "allreduce-die", "--set", "clock=quick"]);
    assert!(output.status == 2 && output.stderr.contains("fastest"), "{}", output.stderr);
}

#[test]
fn the_energy_of_a_run_is_that_of_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let line = line(folder.path());
    let energy = |more: &[&str]| {
        let cost = cost(&[&[line.as_str(), "--energy"], more].concat());
        cost["energy"].clone()
    };
    let all = energy(&[]);
    let event = |all: &Value, name: &str| -> (u64, f64, f64) {
        let events = all["events"].as_array().unwrap();
        let found = events.iter().find(|event| event["event"] == name).unwrap_or_else(|| panic!("{name}: {all}"));
        let number = |key: &str| found[key].as_f64().unwrap();
        (found["count"].as_u64().unwrap(), number("each_fj"), number("energy_nj"))
    };
    // Four participants of eight words: three reductions a word.
    assert_eq!(event(&all, "reductions, min of i64").0, 3 * 8);
    let document = json(&["run", &line, "--json"]);
    let mut sum = 0.0;
    for level in document["links"]["levels"].as_array().unwrap() {
        let name = level["level"].as_str().unwrap();
        for kind in ["hops", "buffer writes", "credits"] {
            assert_eq!(event(&all, &format!("{kind}, {name}")).0, level["flits"].as_u64().unwrap(), "{kind} {name}");
        }
        // 124 bits, half of which change; 63 fJ a mm, 5 mm a ns; local links take a cycle.
        let ns = if name == "local" { 1.0 } else { 5.0 };
        let each = event(&all, &format!("hops, {name}")).1;
        assert!((each - 124.0 * 0.5 * 63.0 * 5.0 * ns).abs() < 1e-3 * each, "{name}: {each}");
        assert!((event(&all, &format!("buffer writes, {name}")).1 - 124.0 * 0.5 * 9.5).abs() < 0.1);
    }
    for event in all["events"].as_array().unwrap() {
        let [count, each, nj] = ["count", "each_fj", "energy_nj"].map(|key| event[key].as_f64().unwrap());
        assert!((count * each * 1e-6 - nj).abs() < 1e-4 * nj, "{event}");
        sum += nj;
    }
    let [nj, ns, mw] = ["energy_nj", "time_ns", "power_mw"].map(|key| all[key].as_f64().unwrap());
    assert!((nj / sum - 1.0).abs() < 1e-4 && (mw - nj / ns * 1e3).abs() < 1e-4 * mw, "{all}");
    assert!((ns - document["cycles"].as_f64().unwrap()).abs() < 1e-3, "1 GHz: {all}");
    // A coefficient acts on its events and on no others.
    let file = table(folder.path(), &[("wire_mm = { value = 63", "wire_mm = { value = 126")]);
    let wires = energy(&["--technology", &file]);
    for (before, after) in all["events"].as_array().unwrap().iter().zip(wires["events"].as_array().unwrap()) {
        let name = before["event"].as_str().unwrap();
        let by = if name.starts_with("hops") || name.starts_with("credits") { 2.0 } else { 1.0 };
        let [before, after] = [before, after].map(|event| event["energy_nj"].as_f64().unwrap());
        assert!((after / before - by).abs() < 1e-3, "{name}: {before} {after}");
    }
    // Twice the elements are twice the reductions; the other families count theirs.
    let more = energy(&["--set", "job.0.elements=16"]);
    assert_eq!(event(&more, "reductions, min of i64").0, 2 * 3 * 8);
    for (name, op) in [("fig2-tree", "reductions, sum of f64"), ("face-off-pbv", "reductions, sum of f64")] {
        let energy = cost(&[name, "--energy"])["energy"].clone();
        let jobs = json(&["run", name, "--json"])["jobs"].clone();
        let words = |job: &Value| (job["participants"].as_u64().unwrap() - 1) * job["elements"].as_u64().unwrap();
        let expected: u64 =
            jobs.as_array().unwrap().iter().filter(|job| job["op"] == "sum" && job["dtype"] == "f64").map(words).sum();
        assert_eq!(event(&energy, op).0, expected, "{name}");
    }
    let text = watershed(["cost", &line, "--energy"]).stdout;
    assert!(text.contains("reductions, min of i64") && text.contains(" mW"), "{text}");
}

#[test]
fn sweeps_look_for_small_fast_and_frugal_points() {
    let folder = tempfile::tempdir().unwrap();
    let line = line(folder.path());
    let file = folder.path().join("s.toml");
    let text = "[[scenario]]\nfile = 'line.toml'\nset = [\"clock='fastest'\"]\n[[axis]]\nkey = 'switch.pipeline_stages'\nvalues = [1, 2, 4]\n\
                [[axis]]\nkey = 'switch.ceng.stages'\nvalues = [1, 6]\n";
    fs::write(&file, text).unwrap();
    let out = folder.path().join("out");
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let swept = watershed(["sweep", file, "--out", out, "--objective", "area_um2", "--objective", "energy_nj"]);
    assert_eq!(swept.status, 0, "{}", swept.stderr);
    assert!(swept.stdout.contains("area_um2") && swept.stdout.contains("energy_nj"), "{}", swept.stdout);
    let units = fs::read_to_string(format!("{out}/columns.csv")).unwrap();
    for unit in ["area_um2,um2", "period_ps,ps", "energy_nj,nJ", "power_mw,mW"] {
        assert!(units.lines().any(|line| line.starts_with(unit)), "{unit}: {units}");
    }
    let points = fs::read_to_string(format!("{out}/points.csv")).unwrap();
    let mut lines = points.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|column| column == name).unwrap();
    let mut areas = Vec::new();
    for row in lines {
        let number = |name: &str| row[at(name)].parse::<f64>().unwrap();
        let sets = [
            format!("switch.pipeline_stages={}", row[at("pipeline_stages")]),
            format!("switch.ceng.stages={}", row[at("stages")]),
        ];
        let cost = cost(&[&line, "--energy", "--set", "clock=fastest", "--set", &sets[0], "--set", &sets[1]]);
        assert_eq!(number("area_um2"), cost["total"]["area_um2"].as_f64().unwrap());
        assert_eq!(number("period_ps"), cost["period_ps"].as_f64().unwrap());
        assert_eq!(number("energy_nj"), cost["energy"]["energy_nj"].as_f64().unwrap());
        assert_eq!(number("power_mw"), cost["energy"]["power_mw"].as_f64().unwrap());
        // The clock is the period's.
        assert!((number("network_clock_mhz") * number("period_ps") / 1e6 - 1.0).abs() < 0.02, "{row:?}");
        areas.push(number("area_um2"));
    }
    assert_eq!(areas.len(), 6);
    let best = json(&["sweep", "best", out, "--min", "area_um2", "--json"]);
    let least = areas.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(best[0]["values"]["area_um2"].as_f64().unwrap(), least);
    for name in ["energy_nj", "power_mw", "period_ps"] {
        assert_eq!(watershed(["sweep", "best", out, "--min", name]).status, 0, "{name}");
    }
    let wrong = watershed(["sweep", file, "--out", out, "--resume", "--objective", "area_mm2"]);
    assert!(wrong.status == 2 && wrong.stderr.contains("did you mean `area_um2`?"), "{}", wrong.stderr);
}
