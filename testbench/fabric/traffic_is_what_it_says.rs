//! Traffic as scenarios describe it, from the draw to the result document: rates, windows, lanes, traces, measurement.

use std::fmt::Write as _;
use std::path::Path;

use watershed::fabric::traffic::MayHaveTraffic;
use watershed::scenario::config::Wave;
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::{build, load_text};

/// A plain 4 x 4 mesh of one-cycle links with one traffic, and more tables behind.
fn text(traffic: &str) -> String {
    format!(
        "family = 'fabric'\n[topology]\nkind = 'mesh'\nsize = [4, 4]\n[switch]\npoint_to_point_vcs = 4\n\
         [link]\nlatency_cycles = 1\n[[traffic]]\n{traffic}\n"
    )
}

fn document_with(traffic: &str, options: &RunOptions<'_>) -> Document {
    let loaded = load_text("x", &text(traffic), Path::new("."), "x", &[]).unwrap_or_else(|error| panic!("{error}"));
    let document = run(&loaded, options).unwrap().document;
    assert!(document.checks.iter().all(|check| check.passed), "{:?}", document.checks);
    document
}

fn document(traffic: &str) -> Document {
    document_with(traffic, &RunOptions::default())
}

const WINDOW: &str = "[measure]\nwarmup_cycles = 500\nmeasure_cycles = 4000\n";

#[test]
fn what_is_created_arrives_whatever_the_traffic() {
    for traffic in [
        "pattern = 'uniform'\nrate = 0.3\nstop_cycle = 2000",
        "pattern = 'uniform'\ninclude_self = false\nrate = 0.3\npacket_flits = { min = 1, max = 7 }\nstop_cycle = 2000",
        "pattern = 'transpose'\nrate = 0.3\ninjection = 'periodic'\nstop_cycle = 2000",
        "pattern = 'bit-complement'\nrate = 0.2\npacket_flits = [{ flits = 1, weight = 3 }, { flits = 9, weight = 1 }]\nstop_cycle = 2000",
        "pattern = 'tornado'\nrate = 0.2\ninjection = 'bursty'\nburst_alpha = 0.02\nburst_beta = 0.03\nstop_cycle = 2000",
        "pattern = 'all-to-all'\nrate = 0.3\nstop_cycle = 2000",
        "pattern = 'uniform'\ninjection = 'closed-loop'\nwindow = 3\nreply_flits = 4\nstop_cycle = 2000",
        "pattern = 'trace'\nfile = 'traces/packets-4x4.txt'",
        "pattern = 'permutation'\nfile = 'traces/permutation-4x4.txt'\nrate = 0.4\nstop_cycle = 2000",
    ] {
        let document = document(traffic);
        assert!(document.traffic.iter().all(|traffic| traffic.packets > 0), "{traffic}");
        assert!(document.checks.iter().any(|check| check.name == "nothing lost" && check.passed), "{traffic}");
        assert!(document.checks.iter().any(|check| check.name == "network empty" && check.passed), "{traffic}");
    }
}

#[test]
fn zero_load_latency_is_exact() {
    // One packet at a time: from node s to node d of a trace. Links of one cycle, switches of one stage, and one more
    // cycle at the sink: 2 per link and 1 at the end; a packet of f flits takes f - 1 more.
    let folder = tempfile::tempdir().unwrap();
    let mut trace = String::new();
    let mut expected = 0u64;
    let mut cycle = 0;
    for (s, d) in (0..16u64).flat_map(|s| (0..16u64).map(move |d| (s, d))) {
        let flits = 1 + (s + d) % 5;
        let _ = writeln!(trace, "{cycle} {s} {d} {flits}");
        cycle += 100;
        let hops = (s % 4).abs_diff(d % 4) + (s / 4).abs_diff(d / 4) + 1;
        // Local link, switches and links between them, local link.
        expected += 2 + hops + (hops - 1) + 1 + flits - 1;
    }
    let path = folder.path().join("t.txt");
    std::fs::write(&path, trace).unwrap();
    let document = document(&format!("pattern = 'trace'\nfile = '{}'", path.display()));
    let latency = document.traffic[0].latency.as_ref().unwrap();
    assert_eq!(latency.packets, 256);
    assert!((latency.mean - expected as f64 / 256.0).abs() < 1e-9, "{} {}", latency.mean, expected as f64 / 256.0);
    assert_eq!(latency.network_mean, Some(latency.mean), "nobody waits at a source");
}

#[test]
fn a_trace_of_two_classes_is_counted_class_by_class() {
    let document = document("pattern = 'trace'\nfile = 'traces/packets-4x4.txt'");
    let packets: Vec<u64> = document.traffic.iter().map(|traffic| traffic.packets).collect();
    assert_eq!(packets, [16, 15]);
    // Fifteen packets of two flits over one link into one sink: the last flit comes at least 30 cycles after the first.
    assert!(document.traffic[1].max_latency_cycles.unwrap() >= 30);
    assert_eq!(document.traffic[1].name, "t0.1");
}

#[test]
fn offered_accepted_and_latency_are_those_of_the_window() {
    let document = document(&format!("pattern = 'uniform'\nrate = 0.2\n{WINDOW}"));
    let measure = document.measure.as_ref().unwrap();
    assert_eq!((measure.from_cycle, measure.to_cycle, measure.saturated), (500, 4500, false));
    assert!((measure.offered - 0.2).abs() < 0.007 && (measure.accepted_mean - measure.offered).abs() < 0.003);
    assert!(measure.accepted_min < measure.accepted_mean);
    let latency = document.traffic[0].latency.as_ref().unwrap();
    assert_eq!(latency.packets, (measure.offered * 16.0 * 4000.0).round() as u64, "all of the window, and no other");
    assert_eq!(latency.histogram.packets.iter().sum::<u64>(), latency.packets);
    assert!(latency.half_width.unwrap() < 0.03 * latency.mean);
    // Uniform on 4 x 4 with self: 2 x 1.25 links between switches in the mean, and one switch more.
    assert!((measure.hops_mean.unwrap() - 3.5).abs() < 0.05, "{:?}", measure.hops_mean);
    assert!(document.traffic[0].packets > latency.packets, "warm-up and drain are not measured");
    let flits: u64 = document.links.levels.iter().map(|level| level.flits).sum();
    let expected = measure.accepted_mean * 16.0 * 4000.0 * (3.5 - 1.0 + 2.0);
    assert!((flits as f64 / expected - 1.0).abs() < 0.03, "links are counted in the window: {flits} {expected}");
}

#[test]
fn an_unstable_run_is_called_unstable() {
    let stable = document(&format!("pattern = 'bit-complement'\nrate = 0.2\n{WINDOW}"));
    assert!(!stable.measure.unwrap().saturated);
    // Bit complement sends everything across the middle: a row of four has one link for two sources, so 0.5 is the limit.
    let document = document(&format!("pattern = 'bit-complement'\nrate = 0.9\n{WINDOW}drain_cycles = 200\n"));
    let measure = document.measure.unwrap();
    assert!(measure.saturated && measure.verdict.contains("had not arrived"), "{}", measure.verdict);
    assert!(
        measure.drained_cycle.is_none() && (0.2..=0.5).contains(&measure.accepted_mean),
        "{}",
        measure.accepted_mean
    );
    assert!((measure.offered - 0.9).abs() < 0.01);
}

#[test]
fn a_window_grows_until_the_mean_is_sure() {
    let with = |precision: f64| {
        let measure = "[measure]\nwarmup_cycles = 200\nmeasure_cycles = 320\nmax_measure_cycles = 40000";
        document(&format!("pattern = 'uniform'\nrate = 0.3\n{measure}\nprecision = {precision}\n"))
    };
    let mut last = 0;
    for precision in [0.05, 0.01, 0.004] {
        let document = with(precision);
        let (measure, latency) = (document.measure.unwrap(), document.traffic[0].latency.clone().unwrap());
        let length = measure.to_cycle - measure.from_cycle;
        assert!(latency.half_width.unwrap() <= precision * latency.mean, "{precision}: {latency:?}");
        assert!(length >= last && length % 320 == 0, "{length}");
        assert_eq!(latency.packets, (measure.offered * 16.0 * length as f64).round() as u64);
        last = length;
    }
    assert!(last > 320, "the narrowest one takes more than the first window");
}

#[test]
fn a_closed_loop_keeps_to_its_window() {
    for window in [1, 3] {
        let traffic = format!(
            "pattern = 'uniform'\ninjection = 'closed-loop'\nwindow = {window}\nreply_flits = 3\nthink_cycles = 5\nservice_cycles = 7\nstop_cycle = 3000"
        );
        let loaded = load_text("x", &text(&traffic), Path::new("."), "x", &[]).unwrap();
        let mut system = build::build(&loaded, build::BuildOptions::default()).unwrap().system;
        let mut most = 0;
        for cycle in 1..4000 {
            system.step_before(cycle);
            for end in system.ends() {
                most = most.max(end.traffic().unwrap().outstanding());
            }
        }
        assert_eq!(most, window);
        assert!(system.ends().iter().all(|end| end.traffic().unwrap().outstanding() == 0), "all were answered");
        assert_eq!(system.fault(), None);
    }
}

#[test]
fn one_request_at_a_time_takes_the_way_there_and_back() {
    // A window of one, far apart: round trip = request + service + reply, and the next request thinks before.
    let flows = "pattern = 'flows'\ninjection = 'closed-loop'\nwindow = 1\nreply_flits = 3\nthink_cycles = 5\nservice_cycles = 7\nflows = [{ from = 's0_0.P4', to = 's3_3.P4', rate = 0 }]\nstop_cycle = 1000";
    let document = document(flows);
    let (requests, replies) =
        (document.traffic[0].latency.clone().unwrap(), document.traffic[1].latency.clone().unwrap());
    // Seven switches, six links between them and two at the ends, one cycle more into the sink.
    let way = 7 + 6 + 2 + 1;
    assert_eq!((requests.min, requests.max), (way, way));
    assert_eq!((replies.min, replies.max), (2 * way + 7 + 2, 2 * way + 7 + 2));
    assert_eq!(replies.packets, 1000u64.div_ceil(2 * way + 7 + 2 + 5));
    assert_eq!(replies.packets, requests.packets);
    assert_eq!(replies.network_mean, None);
}

#[test]
fn requests_and_replies_never_share_a_channel() {
    let traffic = "pattern = 'uniform'\ninjection = 'closed-loop'\nwindow = 8\npacket_flits = 4\nreply_flits = 4\nstop_cycle = 600";
    let loaded = load_text("x", &text(traffic), Path::new("."), "x", &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.vcd");
    let wave = watershed::scenario::run::WaveOptions::of(
        path.clone(),
        Wave { signals: vec!["**.out*.{valid,vc,id}".into()], ..Wave::default() },
    );
    run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
    let mut wave = wellen::simple::read(&path).unwrap();
    let hierarchy = wave.hierarchy();
    let ids: Vec<(String, wellen::SignalRef)> =
        hierarchy.all_vars().map(|var| (hierarchy[var].full_name(hierarchy), hierarchy[var].signal_ref())).collect();
    let mut seen = 0;
    for (name, id) in ids.iter().filter(|(name, _)| name.strip_suffix(".id").is_some()) {
        let vc = ids.iter().find(|(other, _)| other.strip_suffix(".vc") == name.strip_suffix(".id")).unwrap().1;
        wave.load_signals(&[*id, vc]);
        let bits = |signal: wellen::SignalRef, at: u32| -> Option<u64> {
            let signal = wave.get_signal(signal)?;
            let offset = signal.get_offset(at)?;
            let text = signal.get_value_at(&offset, offset.elements - 1).to_bit_string()?;
            u64::from_str_radix(&text, 2).ok()
        };
        for at in 0..wave.time_table().len() as u32 {
            if let (Some(id), Some(vc)) = (bits(*id, at), bits(vc, at)) {
                // Class 0 are requests, on channels 0 and 1; class 1 replies, on 2 and 3.
                assert_eq!(vc / 2, id, "{name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 1000, "{seen}");
}

#[test]
fn nothing_depends_on_skipping_or_on_the_order_of_evaluation() {
    for traffic in [
        format!("pattern = 'uniform'\nrate = 0.35\npacket_flits = {{ min = 1, max = 4 }}\n{WINDOW}precision = 0.01\n"),
        format!(
            "pattern = 'shuffle'\nrate = 0.1\ninjection = 'bursty'\nburst_alpha = 0.01\nburst_beta = 0.02\n{WINDOW}"
        ),
        format!(
            "pattern = 'uniform'\ninjection = 'closed-loop'\nwindow = 2\nreply_flits = 3\nthink_cycles = 30\n{WINDOW}"
        ),
        "pattern = 'trace'\nfile = 'traces/packets-4x4.txt'".to_owned(),
    ] {
        let text = |options: &RunOptions<'_>| serde_json::to_string(&document_with(&traffic, options)).unwrap();
        let expected = text(&RunOptions::default());
        assert_eq!(text(&RunOptions { no_skip: true, ..RunOptions::default() }), expected, "{traffic}");
        assert_eq!(text(&RunOptions { order_seed: Some(5), ..RunOptions::default() }), expected, "{traffic}");
    }
}

/// From about a thousand nodes awake on, memory is asked ahead of time for those whose turn comes; in four parts nobody asks.
#[test]
fn asking_memory_ahead_of_time_changes_nothing() {
    let text = "family = 'fabric'\ntopology = { kind = 'mesh', size = [40, 40] }\nswitch.point_to_point_vcs = 4\n\
                [[traffic]]\npattern = 'uniform'\nrate = 0.06\npacket_flits = 2\nstop_cycle = 100\n";
    let loaded = load_text("large.toml", text, Path::new("."), "large", &[]).unwrap();
    let json = |options: &RunOptions<'_>| {
        let document = run(&loaded, options).unwrap().document;
        assert!(document.passed() && document.traffic[0].packets > 3000, "{:?}", document.checks);
        serde_json::to_string(&document.traffic).unwrap() + &serde_json::to_string(&document.links).unwrap()
    };
    let options = RunOptions { all_links: true, ..RunOptions::default() };
    let whole = json(&options);
    assert_eq!(json(&RunOptions { threads: 4, ..options }), whole);
    assert_eq!(json(&RunOptions { order_seed: Some(3), all_links: true, ..RunOptions::default() }), whole);
}

#[test]
fn a_window_that_no_traffic_fills_is_refused() {
    let refused = |traffic: &str, measure: &str| {
        let traffic = format!("pattern = 'uniform'\nrate = 0.2\n{traffic}\n[measure]\n{measure}\n");
        load_text("x", &text(&traffic), Path::new("."), "x", &[]).err().map(|problems| problems.to_string())
    };
    let window = "warmup_cycles = 500\nmeasure_cycles = 4000";
    let error = refused("stop_cycle = 4499", window).unwrap();
    let message = "the traffic stops in cycle 4499 and does not fill the window, cycles 500 to 4500";
    assert!(error.contains(message) && error.contains("4500 or more"), "{error}");
    assert_eq!(refused("stop_cycle = 4500", window), None);
    let error = refused("start_cycle = 501", window).unwrap();
    assert!(error.contains("the traffic starts in cycle 501 and does not fill"), "{error}");
    assert_eq!(refused("start_cycle = 500", window), None);
    let error = refused("", "measure_cycles = 20_000_000").unwrap();
    assert!(error.contains("outlives the run, which is given up in cycle 10000000"), "{error}");
    // One traffic that goes on fills it for all.
    let other = "stop_cycle = 600\n[[traffic]]\npattern = 'uniform'\nrate = 0.1";
    assert_eq!(refused(other, window), None);
}

#[test]
fn a_window_that_is_filled_in_part_is_said() {
    let verdict = |traffic: &str| document(&format!("{traffic}\n{WINDOW}")).measure.unwrap().verdict;
    let whole = "all packets of the window arrived, and what was offered was accepted";
    let one = "pattern = 'uniform'\nrate = 0.2";
    assert_eq!(verdict(one), whole);
    let stops = format!("name = 'a'\n{one}\nstop_cycle = 600\n[[traffic]]\nname = 'b'\n{one}\nstart_cycle = 900");
    let all = format!("{stops}\n[[traffic]]\n{one}");
    let parts = "; a stopped in cycle 600, so that the window is not filled; b began in cycle 900, so that the window is not filled";
    assert_eq!(verdict(&all), format!("{whole}{parts}"));
    let trace = verdict("name = 'short'\npattern = 'trace'\nfile = 'traces/packets-4x4.txt'");
    let nothing = "no packet was created in the window; short stopped in cycle ";
    assert!(trace.starts_with(nothing) && trace.ends_with("the window is not filled"), "{trace}");
}

#[test]
fn checks_off_change_no_number() {
    let traffic = format!("pattern = 'uniform'\nrate = 0.3\npacket_flits = 3\n{WINDOW}");
    let with = document(&traffic);
    let without = document_with(&traffic, &RunOptions { no_checks: true, ..RunOptions::default() });
    assert_eq!((with.traffic, with.measure, with.cycles), (without.traffic, without.measure, without.cycles));
}
