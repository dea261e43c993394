//! Sweeping parameters.
//!
//! A sweep file names scenarios, axes over any of their values, and what to look at. `sweep --schema` describes all of it.
//!
//! ```toml
//! # out/stages.toml
//! [[scenario]]
//! file = "testbench/piuma/barrier-die.toml"
//! name = "die"
//!
//! [[axis]]
//! name = "stages"
//! key = "switch.ceng.stages"
//! values = [1, 2, 3]
//!
//! [[axis]]
//! name = "link"
//! key = "link.latency_cycles"
//! range = { from = 1, to = 9, step = 4 }
//!
//! [[objective]]
//! name = "latency_ns"
//!
//! [[objective]]
//! name = "gates"
//! ```
//!
//! ```sh
//! target/release/watershed sweep out/stages.toml --out out/stages -j 2
//! ```
//!
//! The points are in `stages/points.csv`, one a line in a fixed order, the same bytes on any number of threads and after any
//! interruption: what is done is in `stages/sweep.jsonl`, and `--resume` computes only what is missing. The keys of all axes are
//! checked before the first point, with a caret under the one that the scenario does not have; `--resume` with a changed file says what
//! is different, and keeps every point that is still asked for.
//!
//! ```sh
//! target/release/watershed sweep out/stages.toml --out out/stages --resume
//! target/release/watershed report out/stages -o out/stages.html
//! ```
//!
//! `sweep export out/stages --parquet FILE` writes the table as Parquet, if the program was built with
//! `cargo build --release --features parquet`.
//!
//! Job arrays take a part each, and join the parts:
//!
//! ```sh
//! target/release/watershed sweep out/stages.toml --out out/part1 --shard 1/2
//! target/release/watershed sweep out/stages.toml --out out/part2 --shard 2/2
//! target/release/watershed sweep merge --out out/all out/part1 out/part2
//! ```
//!
//! Curves over the offered load are a command of their own:
//!
//! ```sh
//! target/release/watershed curve mesh-transpose --rates 0.1,0.3 --csv out/curve.csv
//! ```
