//! Writing a scenario.
//!
//! A scenario is a TOML file: the family, a topology, switches and links, and what runs on them. Everything has a default, and the
//! format is described by a JSON Schema that editors read; its texts are the doc comments of [`scenario::file`](crate::scenario::file):
//!
//! ```sh
//! target/release/watershed schema
//! ```
//!
//! A reduction on armed engines, over a tree of six leaves and a root, one of which is late:
//!
//! ```toml
//! # out/late.toml
//! family = "armed"
//!
//! [topology]
//! kind = "tree"
//! branching = [2, 3]
//!
//! [armed.engine]
//! timeouts_1024_cycles = [1, 4, 4, 4]
//!
//! [[job]]
//! name = "sum"
//! op = "sum"
//! dtype = "f64"
//! elements = 8
//! armed.late = [{ end_point = 4, round = 0, cycles = 2000 }]
//! ```
//!
//! # Jobs
//!
//! A job is written once, whoever does it: `[[job]]` with `kind`, `op`, `dtype`, `elements`, `participants`, `data`, `start_cycle` and
//! `repeat`. `engine` is `"piuma"`, `"armed"`, `"pbv"` or `"software"`; without it the scenario's `family` says so, and without a family the
//! engines of its jobs do. What only one engine has stands in a sub-table of its name, and waits there while another engine does
//! the job. So one word changes the engine, here on the command line:
//!
//! ```toml
//! # out/any.toml
//! [topology]
//! kind = "torus"
//! size = [3, 3]
//!
//! [[job]]
//! name = "sum"
//! engine = "piuma"
//! op = "sum"
//! dtype = "f64"
//! elements = 64
//! piuma.segments = 2
//! armed.reduction_ids = 4
//! software.algorithm = "ring"
//! ```
//!
//! ```sh
//! target/release/watershed run out/any.toml --out out
//! target/release/watershed run out/any.toml --out out --set 'job.0.engine="armed"'
//! target/release/watershed run out/any.toml --out out --set 'job.0.engine="pbv"'
//! target/release/watershed run out/any.toml --out out --set 'job.0.engine="software"'
//! ```
//!
//! Armed and packet engines work in frames: a vector that is longer than a frame takes as many rounds as it has frames
//! ([`scenario::jobs`](crate::scenario::jobs) has the table). Scenarios of older versions name the tables of engines,
//! `[[collective]]`, `[[host]]`, `[[armed.reduction]]`, `[[pbv.collective]]`; they run, with a note, and `migrate` writes them as jobs:
//!
//! ```sh
//! target/release/watershed migrate out/late.toml
//! ```
//!
//! On armed engines `op` may also be what end points compose of their opcodes: `"mean"` is a sum that each end point divides once, and
//! `"sum-deterministic"` takes two rounds each time, the maximum of the operands' exponents and a sum of fixed-point integers below
//! it, and has the same bits whatever the order of arrival ([`armed::composed`](crate::armed::composed)).
//!
//! # Checks and pictures
//!
//! `check` makes every check that comes before the first cycle: names, ranges, units, what fits together, that routing cannot
//! deadlock and registers are legal. A mistake is shown in its line with a caret and the nearest valid name.
//!
//! ```sh
//! target/release/watershed check out/late.toml
//! target/release/watershed run out/late.toml
//! ```
//!
//! A scenario can extend another one and change some values. Elements of a list are named by their number:
//!
//! ```toml
//! # out/quicker.toml
//! extends = "late.toml"
//! armed.engine.stages = 1
//! job.0.elements = 20
//! ```
//!
//! ```sh
//! target/release/watershed run out/quicker.toml
//! ```
//!
//! `topology` and `embed` show what was built: switches, ports, links, and the tree that collectives take.
//!
//! ```sh
//! target/release/watershed topology out/late.toml --svg out/late.svg
//! target/release/watershed embed allreduce-die
//! ```
