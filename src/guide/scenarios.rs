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
//! [[armed.reduction]]
//! name = "sum"
//! op = "flt-sum-near"
//! rounds = 2
//! late = [{ end_point = 4, round = 0, cycles = 2000 }]
//! ```
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
//! armed.reduction.0.rounds = 5
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
