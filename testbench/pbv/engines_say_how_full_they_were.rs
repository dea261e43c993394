//! Congestion metrics (B-HI-6): what engines answer about their queues is what a waveform of these queues says, for windows
//! of any length; a read of an engine's registers brings it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::Lab;
use watershed::pbv::node::SendCondition;
use watershed::pbv::packet::{Header, Message, Packet};
use watershed::pbv::system::{Spec, engine, node};
use watershed::scenario::load_text;
use watershed::scenario::pbv::congestion::CongestionResult;
use watershed::scenario::run::RunOptions;

/// Engines in the wires of nodes, where others' frames pass them; reads at odd moments.
fn scenario(window: u32, attach: &str, shape: &str, readers: &[(u64, u32)]) -> String {
    let mut text = format!(
        "family = \"pbv\"\nseed = {window}\n[topology]\n{shape}\n[link]\nlatency_cycles = 3\n\
         [pbv.setup]\nconfiguration = \"side-port\"\n[pbv.engine]\nmetrics_window_cycles = {window}\nattach = \"{attach}\"\n\
         [[pbv.collective]]\nelements = 48\nrounds = 3\nstart_cycle = 900\n\
         [[pbv.collective]]\nkind = \"barrier\"\nblocks = false\nrounds = 9\nstart_cycle = 950\n\
         [[pbv.collective]]\nkind = \"multicast\"\nelements = 100\nblocks = false\nrounds = 3\nsource = 2\nstart_cycle = 980\n"
    );
    for (cycle, by) in readers {
        text.extend([format!("[[pbv.congestion]]\nat = \"all\"\ncycle = {cycle}\nby = {by}\n")]);
    }
    text
}

/// Levels of a scenario's queues, cycle by cycle: by switch and queue, read from a waveform.
type Levels = BTreeMap<(String, String), Vec<u64>>;

fn wave(path: &Path, cycles: usize) -> Levels {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut scopes, mut signals): (Vec<String>, BTreeMap<String, (String, String)>) = Default::default();
    let mut levels = Levels::new();
    let (mut now, mut present): (usize, BTreeMap<String, u64>) = Default::default();
    let mut put = |signals: &BTreeMap<String, (String, String)>, present: &BTreeMap<String, u64>, to: usize| {
        for (id, signal) in signals {
            let level = present.get(id).copied().unwrap_or(0);
            levels.entry(signal.clone()).or_default().resize(to, level);
        }
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["$scope", _, name, ..] => scopes.push(name.into()),
            ["$upscope", ..] => {
                scopes.pop();
            }
            ["$var", _, _, id, name, ..] => {
                let at = scopes.iter().position(|scope| scope == "engine").unwrap();
                let queue = match (scopes.get(at + 1), name) {
                    (Some(port), "flits") => format!("{}.p2p0", port.replace("in", "P")),
                    (None, "inbox") => "inbox".into(),
                    (None, "output_queue") => "output".into(),
                    _ => panic!("{scopes:?} {name}"),
                };
                signals.insert(id.into(), (scopes[at - 1].clone(), queue));
            }
            _ => {}
        }
        if let Some(time) = line.strip_prefix('#') {
            // A cycle is a nanosecond, times are picoseconds.
            let time = time.parse::<usize>().unwrap() / 1000;
            put(&signals, &present, time.min(cycles));
            now = time;
        } else if let Some((value, id)) = line.strip_prefix('b').and_then(|rest| rest.split_once(' ')) {
            present.insert(id.into(), u64::from_str_radix(value, 2).unwrap_or(0));
        }
    }
    put(&signals, &present, cycles.max(now));
    levels
}

/// Runs a scenario with a waveform of all queues of its engines.
fn measured(text: &str, name: &str) -> (Vec<CongestionResult>, Levels) {
    let folder = std::env::temp_dir().join(format!("watershed-congestion-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, vcd) = (folder.join("s.toml"), folder.join("s.vcd"));
    std::fs::write(&file, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .args(["run", file.to_str().unwrap(), "--out", folder.to_str().unwrap(), "--wave", vcd.to_str().unwrap()])
        .args(["--signals", "**.engine.{inbox,output_queue}", "--signals", "**.engine.in*.vc0.flits"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("s.json")).unwrap()).unwrap();
    let levels = wave(&vcd, json["cycles"].as_u64().unwrap() as usize);
    std::fs::remove_dir_all(&folder).unwrap();
    (serde_json::from_value(json["pbv"]["congestion"].clone()).unwrap(), levels)
}

#[test]
fn metrics_are_those_of_a_waveform_of_the_queues() {
    let shapes = ["kind = \"mesh\"\nsize = [3]\nconcentration = 3", "kind = \"tree\"\nbranching = [2, 2]\nroots = 0"];
    let mut busy = 0;
    for (number, (window, attach)) in [(1, "own"), (37, "link"), (500, "node"), (0, "link")].into_iter().enumerate() {
        // The reader of a windowless measure sits far off; its answer says what was until the read came.
        let readers = [(1100, 1), (1333, 3), (2801, 2), (9000, 0)];
        let text = scenario(window, attach, shapes[number % 2], &readers);
        let (reports, levels) = measured(&text, &number.to_string());
        let switches: std::collections::BTreeSet<&String> = levels.keys().map(|(switch, _)| switch).collect();
        assert_eq!(reports.len(), readers.len() * switches.len());
        for report in &reports {
            let cycles = report.measured_cycles as usize;
            assert!(report.answer_cycle.is_some());
            let end = if window == 0 { cycles } else { report.windows as usize * window as usize };
            let range = end - cycles..end;
            for ((_, queue), level) in levels.iter().filter(|((switch, _), _)| *switch == report.switch) {
                let level = &level[range.clone()];
                let said = report.queues.iter().find(|said| said.queue == *queue);
                let (mean, most) = said.map_or((0.0, 0), |said| (said.mean, said.most));
                let sum: u64 = level.iter().sum();
                let wanted = (sum * 256 / cycles.max(1) as u64) as f64 / 256.0;
                let what = format!("{window} {attach} {} {queue} {range:?} sum {sum}", report.switch);
                assert_eq!(mean.to_bits(), wanted.to_bits(), "mean of {what}: {mean}, not {wanted}");
                let highest = level.iter().copied().max().unwrap_or(0);
                // Without a window the maximum has the level in the cycle of the read already.
                assert!(
                    most == highest || window == 0 && most == highest + 1,
                    "maximum of {what}: {most}, not {highest}"
                );
                busy += usize::from(sum > 0);
            }
        }
    }
    assert!(busy > 60, "{busy} queues with something in them");
}

#[test]
fn a_window_is_set_and_read_by_frames() {
    let mut lab = Lab::new(Spec::regular(2, 2, 0x10, vec![(0, 1)]), &[]);
    let write = |value| Packet::of(Header::new(Message::Write, 1, 0x10, 0xc2f4), vec![value]);
    let read = |count| {
        let mut read = Header::new(Message::Read, 1, 0x10, 0xc2f4);
        read.p_count = count;
        Packet::bare(read)
    };
    lab.send(1, SendCondition::Next, [write(64), read(3)]);
    lab.send(1, SendCondition::At(1000), [read(3 + 36), read(3 + 37)]);
    let system = lab.run();
    let mail = node(&system, 1).mail();
    assert_eq!(mail[0].1.words(), [64, 0, 0], "no window is complete");
    let words = mail[1].1.words();
    assert_eq!((words.len(), words[0], words[2]), (39, 64, 64));
    assert!((14..=15).contains(&words[1]), "complete windows: {}", words[1]);
    assert_eq!(words[3..], [0; 36], "nothing stood in a queue before cycle 1000");
    assert_eq!(mail[2].1.header.message, Message::Error, "there is no register behind the last queue");
    assert_eq!(engine(&system, 0).registers().metrics.window(), 0);
}

#[test]
fn an_engine_that_is_cut_off_does_not_answer() {
    let text = scenario(100, "own", "kind = \"mesh\"\nsize = [3]\nconcentration = 3", &[(5000, 0)])
        + "[[pbv.fault]]\neffect = \"dead\"\nat = \"s2\"\nfrom_cycle = 4000\n";
    let loaded = load_text("cut", &text, Path::new(""), "cut", &[]).unwrap();
    let document = watershed::scenario::run::run(&loaded, &RunOptions::default()).unwrap().document;
    let reports = document.pbv.unwrap().congestion;
    let answered: Vec<bool> = reports.iter().map(|report| report.answer_cycle.is_some()).collect();
    assert_eq!(answered, [true, true, false]);
    assert_eq!(reports[2].line(), "s2 did not answer s0.node0");
}
