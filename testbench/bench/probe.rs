//! What tracing costs: nanoseconds a value change written, and a value looked at that did not change.

use std::io::sink;
use std::path::Path;
use std::time::Instant;

use watershed::probe::{NodeHandle, Period, Scope, Selection, Tracer, VcdSink};

/// A register file of the usual mix: flags, small counters, a head of 64 bits that is sometimes meaningless.
#[derive(Debug, Clone, Copy, Default)]
struct Ports {
    count: u64,
    head: [u64; 4],
}

impl Ports {
    /// Twelve signals; all change when `count` goes up by an odd number, except some high bits.
    fn probe(&self, s: &mut Scope<'_>) {
        for (port, head) in self.head.iter().enumerate() {
            s.indexed("in", port, |s| {
                s.bit("valid", self.count & 1 == 1);
                s.bits("credits", 6, (self.count + port as u64) & 63);
                s.valid("head", 64, (self.count % 4 != port as u64).then_some(*head));
            });
        }
    }
}

fn trace(sink: VcdSink, cycles: u64, change: bool) -> (u64, f64) {
    let Some(period) = Period::from_mhz(850) else { return (0, 0.0) };
    let mut tracer = Tracer::new(period, Selection::default(), Box::new(sink));
    let mut blocks = [Ports::default(); 16];
    let nodes: Vec<NodeHandle> = (0..blocks.len())
        .filter_map(|node| tracer.declare(&format!("die0.tile{node}.switch"), |s| blocks[node].probe(s)))
        .collect();
    tracer.start().expect("the header can be written");
    let begin = Instant::now();
    for cycle in 1..=cycles {
        for (block, node) in blocks.iter_mut().zip(&nodes) {
            if change {
                block.count = cycle;
                block.head = block.head.map(|head| (head ^ cycle).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            }
            tracer.sample(*node, cycle, |s| block.probe(s));
        }
    }
    let changes = tracer.finish(cycles).expect("the file can be written").changes;
    (changes, begin.elapsed().as_secs_f64())
}

/// Traces about `n` value changes into the file, or nowhere: changes written, seconds.
pub fn bench_changes(n: u64, file: Option<&Path>) -> (u64, f64) {
    let sink = match file {
        Some(file) => VcdSink::create(file).expect("the file can be created"),
        None => VcdSink::to_writer(Box::new(sink())),
    };
    trace(sink, n / (16 * 11), true)
}

/// Samples about `n` signals that do not change: signals looked at, seconds.
pub fn bench_unchanged(n: u64) -> (u64, f64) {
    let cycles = n / (16 * 12);
    let (_, seconds) = trace(VcdSink::to_writer(Box::new(sink())), cycles, false);
    (cycles * 16 * 12, seconds)
}
