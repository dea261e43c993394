//! Snapshot-test my own scenarios.
//!
//! A scenario that does today what it did yesterday, bit for bit and cycle for cycle, is a test. `watershed test` keeps what came out
//! as golden files, and says what differs the next time: after a change of a scenario, of a topology that several scenarios share, of
//! traffic that a script writes, or of this program.
//!
//! **Begin.** Two scenarios in a folder; the golden files are made by accepting what comes out, and go into version control:
//!
//! ```toml
//! # out/mine/sum.toml
//! extends = "allreduce-die"
//! job.0.elements = 16
//! ```
//!
//! ```toml
//! # out/mine/barrier.toml
//! extends = "barrier-die"
//! ```
//!
//! ```sh
//! target/release/watershed test out/mine   # ends with status 1
//! target/release/watershed test out/mine --accept
//! target/release/watershed test out/mine
//! ```
//!
//! ```text
//! out/mine/barrier  as it was  240 cycles
//! out/mine/sum      as it was  85 cycles
//! 2 scenarios: 2 as they were
//! ```
//!
//! `out/mine/golden` has now, of each, the result document (`sum.json`), what `run` prints (`sum.summary.snap`), some signals over some
//! cycles (`sum.vcd`) and a part of them as text waves (`sum.wave.snap`), so that a difference can be read in a review. With
//! `--golden DIR` they are elsewhere, in folders named as those of the scenarios.
//!
//! **See a difference.** Three pipeline stages a level become four:
//!
//! ```toml
//! # out/mine/sum.toml
//! extends = "allreduce-die"
//! job.0.elements = 16
//! switch.ceng.stages = 4
//! ```
//!
//! ```sh
//! target/release/watershed test out/mine --filter sum --junit out/junit.xml   # ends with status 1
//! ```
//!
//! It shows, for each golden file, the lines that differ, and of the waveform the first cycle and signals, as values and as text waves.
//! `--junit` writes the same for whatever shows tests. If the change is meant, `--accept` shows it once more and takes it; where `CI` is
//! set, nothing is accepted.
//!
//! **Say what counts.** A table `[golden]` in the scenario chooses the files, the signals and the cycles. Numbers are compared exactly
//! unless the scenario gives a tolerance for them, by their names in the golden document, or by what a line of the summary begins with.
//! A tolerance that names nothing is refused. A wave has none: where numbers may differ, leave it out.
//!
//! ```toml
//! # out/mine/sum.toml
//! extends = "allreduce-die"
//! job.0.elements = 16
//!
//! [golden]
//! files = ["document"]
//! tolerance = [{ value = "collectives.*.{latency,job}_*", relative = 0.1 }]
//! ```
//!
//! A scenario with `golden.files = []` is left out. A run that fails its own checks fails here whatever its golden files say, and a
//! golden file whose scenario is gone is an error: what nobody compares, nobody should keep.
//!
//! **From Rust** the same is [`study::snapshot`](mod@crate::study::snapshot): this project's own golden tests call it.
