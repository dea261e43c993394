//! Campaign of faulty runs (B-ERR-1 to B-ERR-4): links lose, damage, repeat and delay frames, nodes, links and switches die.
//! Every round ends with the right bits or with an error that names somebody; nothing stays open.

use std::path::Path;

use watershed::kernel::Rng;
use watershed::scenario::load_text;
use watershed::scenario::pbv::result::PbvResult;
use watershed::scenario::run::{RunOptions, run};

use crate::campaign;
use crate::share;

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    std::fmt::Write::write_fmt(text, more).unwrap();
}

/// A scenario drawn from a seed.
fn scenario(seed: u64) -> String {
    let mut rng = Rng::new(seed, 0xb17);
    let mut below = |bound: u64| rng.below(bound);
    let (shape, switches, ends) = match below(4) {
        0 => ("kind = \"tree\"\nbranching = [2, 2, 2]\nroots = 0", ["s0", "s1_0", "top"], 8),
        1 => ("kind = \"mesh\"\nsize = [3]\nconcentration = 3", ["s1", "s2", "s0"], 9),
        2 => ("kind = \"flattened-butterfly\"\nsize = [4]\nconcentration = 2", ["s1", "s3", "s2"], 8),
        _ => ("kind = \"mesh\"\nsize = [1]\nconcentration = 5", ["s0", "s0", "s0"], 5),
    };
    let name = |end: u64| match shape {
        _ if shape.contains("tree") => format!("leaf{end}"),
        _ if shape.contains("[3]") => format!("s{}.node{}", end / 3, end % 3),
        _ if shape.contains("[4]") => format!("s{}.node{}", end / 2, end % 2),
        _ => format!("s0.node{end}"),
    };
    let (timeout, retries) = (300 + below(700), below(3));
    let bits = [64, 64, 32, 96, 256, 1024][Rng::new(seed, 0xf117).below(6) as usize];
    let mut text = format!(
        "family = \"pbv\"\nseed = {seed}\n[topology]\n{shape}\n[link]\nflit_bits = {bits}\nlatency_cycles = {}\n[limits]\nmax_cycles = 100000000\n\
         [pbv.setup]\nconfiguration = \"side-port\"\n[pbv.link_layer]\nsequence_check = {}\n[pbv.engine]\n\
         timeout_cycles = {timeout}\nretries = {retries}\n",
        1 + below(6),
        below(2) == 0
    );
    for context in 0..=below(2) {
        let (kind, data) =
            if below(3) == 0 { ("barrier", "") } else { ("allreduce", "dtype = \"f64\"\nelements = 3\n") };
        let order = if kind == "allreduce" && below(2) == 0 { "order = \"pbv\"\n" } else { "" };
        add(
            &mut text,
            format_args!(
                "[[pbv.collective]]\nname = \"c{context}\"\nkind = \"{kind}\"\n{data}{order}rounds = {}\nblocks = false\n\
             source = {}\nstart_cycle = 3000\ntask_cycles = {{ random_max = {} }}\n",
                1 + below(3),
                below(ends),
                below(2 * timeout)
            ),
        );
    }
    for _ in 0..=below(3) {
        let effect = ["drop", "corrupt", "duplicate", "delay", "drop", "dead"][below(6) as usize];
        let at = match below(3) {
            0 if effect != "dead" => "all".to_owned(),
            1 => switches[below(3) as usize].to_owned(),
            _ => name(below(ends)),
        };
        add(&mut text, format_args!("[[pbv.fault]]\neffect = \"{effect}\"\nat = \"{at}\"\n"));
        if effect == "dead" {
            add(&mut text, format_args!("from_cycle = {}\n", 3000 + below(1500)));
            continue;
        }
        text.push_str("from_cycle = 3000\n");
        if effect == "delay" {
            add(&mut text, format_args!("delay_cycles = {}\n", 1 + below(3 * timeout)));
        }
        if below(2) == 0 {
            add(&mut text, format_args!("nth = {}\n", below(6)));
        } else {
            add(&mut text, format_args!("probability = 0.{:02}\n", 1 + below(30)));
        }
    }
    text
}

/// Runs a seed; says how many rounds ended how.
fn one(seed: u64) -> Result<PbvResult, String> {
    let text = scenario(seed);
    let fail = |what: String| format!("seed {seed}: {what}\n{text}");
    let loaded =
        load_text("campaign", &text, Path::new(""), "campaign", &[]).map_err(|error| fail(error.to_string()))?;
    let document = run(&loaded, &RunOptions::default()).map_err(|error| fail(error.to_string()))?.document;
    if let Some(check) = document.checks.iter().find(|check| !check.passed) {
        return Err(fail(format!("{}: {}", check.name, check.detail)));
    }
    let pbv = document.pbv.unwrap();
    if pbv.outcomes.silent + pbv.outcomes.open > 0 {
        return Err(fail(pbv.outcomes.words()));
    }
    let rounds = pbv.collectives.iter().flat_map(|collective| &collective.rounds);
    if let Some(round) = rounds.clone().find(|round| round.outcome == "incomplete" && round.missing.is_empty()) {
        return Err(fail(format!("round {} names nobody", round.run)));
    }
    Ok(pbv)
}

fn hold(seeds: impl IntoIterator<Item = u64>) {
    let mut sum = watershed::scenario::armed::result::Outcomes::default();
    let runs = campaign::over(seeds, |seed| one(seed).map(|pbv| pbv.outcomes));
    for outcomes in &runs {
        sum.add(outcomes);
    }
    println!("{} runs: {}", runs.len(), sum.words());
    // Faults do something: some rounds are saved by asking again, some are lost, and most are whole.
    assert!(sum.complete > 0 && sum.after_retry > 0 && sum.incomplete > 0, "{}", sum.words());
}

/// One in four of two hundred in `make test`.
#[test]
fn runs_end_right_or_with_a_name() {
    hold(share::one_in(4, 0..200));
}

#[test]
#[ignore = "long: make soak"]
fn ten_thousand_runs_end_right_or_with_a_name() {
    hold(campaign::asked(200..10_200));
}
