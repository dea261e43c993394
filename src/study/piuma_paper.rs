//! The figures of "Accelerating Allreduce with in-network reduction on Intel PIUMA" beside ours (P-FIG-1 to P-FIG-8).
//!
//! Every value comes from runs of scenarios that this study writes; two are calibrated, all others follow:
//!
//! | calibrated | on | used for |
//! |---|---|---|
//! | software overhead of a host's round | 3.9x at one node (P-FIG-5) | every other host row |
//! | computation of a minibatch | 25 % of the time in the network's all-reduce (P-FIG-7) | the other rows of VGG-16 |
//!
//! Hosts are those of `mode = "ideal"`: shortest paths without contention, as the paper has them. Times of vectors that are
//! too long to simulate on many nodes come from T(m) = alpha + beta m, fitted to simulated times (P-FIG-8); rows that use it
//! say *fit*.

use std::path::Path;

use super::named::{Basis, Report, Row, Study};
use crate::scenario::load_text;
use crate::scenario::result::Document;
use crate::scenario::run::{RunOptions, run};

/// The study.
pub const STUDY: Study = Study {
    name: "piuma-paper",
    about: "The PIUMA paper's figures: latency and throughput in the network and on hosts, from one node to 16,384.",
    run: study,
};

/// Words of 64 bits in 128 KB.
const WORDS: u64 = 128 * 1024 / 8;
/// Elements of VGG-16's gradients: 550 MB of 4 bytes.
const GRADIENTS: f64 = 550e6 / 4.0;
/// Gb/s of memory a core, of 1.56 TB/s a node of 128 cores.
const A100_GBPS: f64 = 1560.0 * 8.0 / 128.0;

fn simulate(text: &str) -> Result<Document, String> {
    let loaded = load_text("piuma-paper.toml", text, Path::new("."), "piuma-paper", &[]);
    let loaded = loaded.map_err(|problems| problems.to_string())?;
    let document = run(&loaded, &RunOptions::default()).map_err(|error| error.to_string())?.document;
    match document.checks.iter().find(|check| !check.passed) {
        Some(check) => Err(format!("{}: {}\n{text}", check.name, check.detail)),
        None => Ok(document),
    }
}

/// Nodes on a HyperX with the paper's parameters; an empty size is one node.
fn nodes(size: &[u32], rest: &str) -> String {
    let size = if size.is_empty() { String::new() } else { format!("size = {size:?}\n") };
    format!("family = \"piuma\"\n[topology]\nkind = \"nodes\"\n{size}{rest}")
}

/// ns of an all-reduce of so many f64 in the network.
fn network(size: &[u32], elements: u64) -> Result<f64, String> {
    let rest = format!("[[collective]]\nkind = \"allreduce\"\nelements = {elements}\n");
    let document = simulate(&nodes(size, &rest))?;
    document.collectives[0].latency_ns.ok_or_else(|| "an all-reduce did not end".to_owned())
}

/// ns of a host's all-reduce of so many f64, with an overhead a round.
fn host(size: &[u32], algorithm: &str, elements: u64, overhead: u64) -> Result<f64, String> {
    let rest = format!(
        "[[host]]\nalgorithm = \"{algorithm}\"\nmode = \"ideal\"\nelements = {elements}\noverhead_cycles = {overhead}\n"
    );
    simulate(&nodes(size, &rest))?.hosts[0].latency_ns.ok_or_else(|| "a host did not end".to_owned())
}

/// ns an element of a long vector in one die, from the difference of two lengths.
fn per_element(dtype: &str, memory: &str) -> Result<f64, String> {
    let time = |elements: u64| {
        let text = format!(
            "family = \"piuma\"\n[topology]\nkind = \"die\"\n[memory]\nbandwidth_gbps = {memory}\n\
             [[collective]]\nkind = \"allreduce\"\ndtype = \"{dtype}\"\nelements = {elements}\n"
        );
        simulate(&text)?.collectives[0].latency_ns.ok_or_else(|| "an all-reduce did not end".to_owned())
    };
    Ok((time(6144)? - time(2048)?) / 4096.0)
}

/// T(m) = alpha + beta m through simulated times by least squares: alpha, beta, and the largest residual as a share.
fn hockney(points: &[(f64, f64)]) -> (f64, f64, f64) {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let beta = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum::<f64>()
        / points.iter().map(|p| (p.0 - mx).powi(2)).sum::<f64>();
    let alpha = my - beta * mx;
    let residual = points.iter().map(|p| ((alpha + beta * p.0 - p.1) / p.1).abs()).fold(0.0, f64::max);
    (alpha, beta, residual)
}

/// The paper's bound, eq. (1), with d_max = 4.
fn bound(dimensions: f64) -> f64 {
    2.0 * (50.0 * dimensions + 25.0 * (dimensions + 1.0) + 5.0 * 4.0 * (2.0 * dimensions + 1.0))
}

/// One element at 10 GHz, with 3 ns of each link given to the switch behind it: what the paper's formula, which has no
/// switches, can be held against.
fn folded(size: &[u32]) -> Result<f64, String> {
    let text = format!(
        "family = \"piuma\"\n[clock]\nfrequency_mhz = 10000\n[topology]\nkind = \"nodes\"\nsize = {size:?}\n\
         [link]\nlatency_ns = 2\nsocket_latency_ns = 22\nnode_latency_ns = 47\n[[collective]]\nkind = \"allreduce\"\n"
    );
    simulate(&text)?.collectives[0].latency_ns.ok_or_else(|| "an all-reduce did not end".to_owned())
}

fn study() -> Result<Report, String> {
    let mut rows = Vec::new();
    let mut row =
        |id: &'static str, what: &str, unit: &'static str, source: f64, ours: f64, tolerance: f64, basis: Basis| {
            rows.push(Row { id, what: what.to_owned(), unit, source, ours, simulated: None, tolerance, basis });
        };
    let p = Basis::Predicted;

    for (dimensions, size) in [(1.0, &[4][..]), (2.0, &[3, 3]), (3.0, &[2, 2, 2])] {
        let what = format!("one element, D = {dimensions}, below eq. (1)");
        row("P-FIG-1", &what, "ns", bound(dimensions), folded(size)?, 0.5, p);
    }
    let (one, few, many, largest) =
        (network(&[], 1)?, network(&[4, 4], 1)?, network(&[16, 16], 1)?, network(&[128, 128], 1)?);
    row("P-FIG-1", "latency of 256 nodes over that of 16, both D = 2", "", 1.0, many / few, 0.1, p);
    row("P-FIG-2", "one element on 16,384 nodes, below", "ns", 1000.0, largest, 0.5, p);

    // 128 KB on one node: the software overhead of a round follows from the paper's 3.9.
    let long = network(&[], WORDS)?;
    let bare = host(&[], "rabenseifner", WORDS, 0)?;
    let overhead = ((3.9 * long - bare) / 14.0).max(0.0).round() as u64;
    let node = host(&[], "rabenseifner", WORDS, overhead)?;
    row("P-FIG-5", "128 KB on 1 node: hosts over network", "x", 3.9, node / long, 0.01, Basis::Calibrated);

    let doubling = host(&[128, 128], "recursive-doubling", 1, overhead)?;
    row("P-FIG-3", "one element on 16,384 nodes: hosts over network, above", "x", 40.0, doubling / largest, 0.5, p);

    let points: Vec<(f64, f64)> = [64, 256, 768]
        .into_iter()
        .map(|elements| Ok((elements as f64, network(&[4, 4], elements)?)))
        .collect::<Result<_, String>>()?;
    let (alpha, beta, residual) = hockney(&points);
    row("P-FIG-8", "T(m) on 16 nodes: beta", "ns", 2.5, beta, 0.01, p);
    // 32 MB: far beyond where the overhead of rounds counts.
    let m = (32u64 << 20) / 8;
    let ratio = host(&[4, 4], "rabenseifner", m, overhead)? / (alpha + beta * m as f64);
    row("P-FIG-4", "32 MB on 16 nodes: hosts over network (fit)", "x", 3.5, ratio, 0.05, p);

    // Throughput drops as the time grows; beta is that of the memory everywhere.
    let drop = |from: f64, to: f64| (1.0 - from / to) * 100.0;
    let at_largest = largest + beta * (WORDS - 1) as f64;
    let at_one = one + beta * (WORDS - 1) as f64;
    row(
        "P-FIG-5",
        "128 KB, 1 to 16,384 nodes (D = 2): network slower by (fit)",
        "%",
        1.4,
        drop(at_one, at_largest),
        0.4,
        p,
    );
    let hosts = host(&[128, 128], "rabenseifner", WORDS, overhead)?;
    row("P-FIG-5", "128 KB, 1 to 16,384 nodes: hosts slower by", "%", 26.0, drop(node, hosts), 0.3, p);

    let link = per_element("f32", "\"unlimited\"")?;
    let memory = per_element("f32", "51.2")?;
    row("P-FIG-6", "4 bytes, no limit but the link", "ns", 0.5, link, 0.001, p);
    row("P-FIG-6", "4 bytes, 51.2 Gb/s of memory", "ns", 1.25, memory, 0.001, p);

    // VGG-16 on 16 PIUMA_A100 nodes, minibatch 128.
    let a100 = per_element("f32", &format!("{A100_GBPS}"))?;
    let reduce = GRADIENTS * a100;
    let compute = 3.0 * reduce;
    row("P-FIG-7", "VGG-16: share of time in the network's all-reduce", "%", 25.0, 25.0, 0.01, Basis::Calibrated);
    let software = reduce * ratio;
    let share = 100.0 * software / (software + compute);
    row("P-FIG-7", "VGG-16: share of time in the hosts' all-reduce", "%", 55.0, share, 0.05, p);
    row(
        "P-FIG-7",
        "VGG-16: overlapped network over hosts",
        "x",
        2.2,
        (compute + software) / compute.max(reduce),
        0.05,
        p,
    );

    let notes = vec![
        format!("software overhead of a round: {overhead} ns, from the 3.9 of one node"),
        format!(
            "T(m) on 16 nodes: alpha = {alpha:.1} ns, beta = {beta:.4} ns, largest residual {:.3} % over m = 64, 256, 768",
            residual * 100.0
        ),
        "16,384 nodes are 128 x 128, D = 2; three stages a unit, one a switch: the paper gives none, ours are in the times"
            .to_owned(),
        "eq. (1) has neither switches nor engines: for its rows the clock is 10 GHz and a link gives 3 ns to the switch \
         behind it; the rows are to be below it, and far below it the path of the shape is shorter than the longest one"
            .to_owned(),
        "hosts over network is lower than the paper's 40 because ours pays for switches and engines, which are most of its \
         time; the fewer than 26 % and the more than 1.4 % have the same reason"
            .to_owned(),
        format!(
            "VGG-16: {:.0} ms of computation a minibatch follow from the paper's 25 % (28 % of 156 TFLOPS at 93 GFLOP an image); \
             overlap is taken as perfect, as the paper observed; the 7 % of plain PIUMA nodes hang on their TFLOPS, which it \
             does not give",
            compute / 1e6
        ),
    ];
    Ok(Report { title: "Accelerating Allreduce with in-network reduction on Intel PIUMA".to_owned(), rows, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_of_a_line_leaves_no_residual() {
        let points: Vec<(f64, f64)> = [1.0, 5.0, 9.0].map(|m| (m, 100.0 + 2.5 * m)).to_vec();
        let (alpha, beta, residual) = hockney(&points);
        assert!((alpha - 100.0).abs() < 1e-9 && (beta - 2.5).abs() < 1e-12 && residual < 1e-12);
        let (.., residual) = hockney(&[(0.0, 10.0), (1.0, 20.0), (2.0, 31.0)]);
        assert!(residual > 0.01);
    }

    #[test]
    fn the_bound_is_the_paper_s() {
        assert_eq!([1.0, 2.0, 3.0].map(|dimensions| bound(dimensions) as u64), [320, 550, 780]);
    }

    /// The part of the study that a test can wait for: one die, and one node's hosts.
    #[test]
    fn per_element_times_are_equation_two() {
        assert_eq!(per_element("f32", "\"unlimited\""), Ok(0.5));
        assert_eq!(per_element("f32", "51.2"), Ok(1.25));
        assert_eq!(per_element("f64", "51.2"), Ok(2.5));
    }
}
