//! watershed: a cycle-level, bit-exact hardware model of collectives computed *inside* the network.
//!
//! The operands of all participants travel up a tree of switches, engines on the way reduce them, and the result
//! travels back to every participant. The model has switches with credit-based flow control and collective virtual
//! channels, engines with pipelined adder trees, and end points with limited memory bandwidth. Time is counted in clock
//! cycles, every result is checked bit by bit against an independent oracle, and the registers of ports, queues,
//! engines and end points can be watched in a waveform.
//!
//! An engine computes a result with the tree's stage functions when it takes the operands, and holds it back for the
//! tree's latency. Where a waveform shows its [stage registers](arith::stages), the engine also clocks them, register
//! by register, through the same functions; the result that leaves is then the one in the last register.
//!
//! The program `watershed` is the crate's [`cli`]; the library is for those who want to build systems of their own or
//! to use a block as a golden model.
//!
//! # Layers
//!
//! ```text
//!  top       cli/        one file a subcommand; parses, calls, prints               glossary/  what printed words mean
//!             |                                                                     guide/     a page a task
//!             v
//!  floor 6   study/      curves, sweeps, comparisons and reports over many runs
//!             |
//!             v
//!  floor 5   scenario/   checked configuration -> a system; the run
//!             |             its       interface/  how a run is asked for, what it answers; the engines behind a trait
//!             |             beside it  reader/    TOML -> checked configuration; errors with carets
//!             |             below that language/  what a scenario file may say: a struct a table, and the schema
//!             |                        workload/  traces of applications: ranks, nodes, what waits for what
//!             |                        operands/  numbers as text and bits, seeded random ones
//!             v
//!  floor 4   mixed/      engines of several families in one network: whose channels are whose, whose turn it is
//!             |
//!             v
//!  floor 3   piuma/      configuration registers, CENG, core end points, embedding, legality
//!            armed/      frames, multicast tables and their agent, engines in the wire, root and leaf processes, faults
//!            pbv/        frames, participant bit vectors, packet engines in the wire, nodes, trees of engines
//!             |
//!             v
//!  layer 2   fabric/     switch, buffers, credits, virtual channels, arbiters, links, routing, topologies, traffic;
//!             |          the two forms in which an engine joins
//!             v
//!  layer 1   kernel/     channels, clocked storage, wake-driven scheduling, wait-for graph   (no arithmetic in it)
//!            arith/      formats, staged adder, multiplier, comparators, reduction tree      (no fabric in it)
//!            probe/      signals, waves, comparison of waves, message ladders; blocks describe their registers to it
//!             |
//!             v
//!  layer 0   state/      what a clocked system holds between two edges, as bytes: checkpoints
//!            files       files that are written beside their name and then renamed; who writes which
//!  beside    oracle/     untimed golden evaluation; shares no code with arith/ but the names of types
//! ```
//!
//! Each folder is a member of the Cargo workspace, so that Cargo itself keeps it from using what its manifest does not name;
//! a test (`testbench/project`) holds the manifests against the figure. A folder uses those on layers below its own, never one
//! above or beside it. A family has a member of its own for what is known of it without its engines: `NAME/interface`, with packets,
//! channels, instructions, schedules. Who reads scenarios or decodes frames uses that. [`scenario`] has one, too: studies and the
//! command line use that and are handed the engines by the program, [`scenario::ENGINES`]. So a change of an engine compiles none of them
//! again. Two lines lead aside: [`oracle`] takes the names of types from [`arith`], and the [`glossary`] finds
//! the nearest word as [`scenario`] does. The oracle is used by the checks of runs, by commands that
//! print exact values, and by tests, never by a block that is clocked; the [legality](piuma::legality) check reads a
//! configuration back into the oracle's tree before cycle 0.
//!
//! # Time
//!
//! In cycle t a block reads its own registers as they were at the start of t. What it sends over a channel of latency L
//! is delivered in t + L and is in the far register at the start of t + L + 1. Every channel has L >= 1, so the order
//! in which blocks are evaluated in a cycle cannot matter. From this follow all latencies of the model:
//!
//! | way | cycles |
//! |---|---|
//! | through a switch of P stages and over its link | P + L |
//! | through a switch whose CENG reduces | 2 P + ceil(log2 radix) x unit stages + L |
//! | into an end point | 1 |
//! | credit round trip of a link between switches | 2 L + P + 1 |
//!
//! # Journey of an operand (PIUMA all-reduce)
//!
//! 1. The core calls the collective: its [`Job`](piuma::Job) starts, memory grants reads as far as the bandwidth goes,
//!    and the fragmenter sends words as [`Flit`](fabric::Flit)s on the request channel of port 7.
//! 2. The link delivers the flit ([`kernel::Wheel`]) into the switch's input queue.
//! 3. The request [register](piuma::Registers) of (collective id, input port) is a vector of output ports. If the
//!    engine's bit is set, the flit goes to the operand slot of its port at the [`Ceng`](piuma::Ceng).
//! 4. When every configured port has its operand, all are taken together through the
//!    [`Tree`](arith::Tree), in port order; the result enters the crossbar by the engine's port.
//! 5. Its register names the output towards the root; a credit is spent, a flit is sent. The same happens at every
//!    switch on the way to the root.
//! 6. At the root the engine's request register is empty and its response register is not: the result turns into a
//!    response.
//! 7. Response registers are the inverse mapping; a flit moves only when all its outputs can take it, and so it reaches
//!    port 7 of every participant.
//! 8. Memory grants the write, the word lands, the counter counts. When all words have landed, the collective is
//!    complete at this core.
//!
//! Only credits flow against the direction of the flits. Background packets take the point-to-point channels: route
//! computation, channel allocation, switch allocation, always behind the collective channels.
//!
//! # Glossary
//!
//! `watershed explain` prints these words, and those of summaries and of `why`, from the same tables.
//!
#![doc = include_str!("glossary/words.md")]
//!
//! What is printed by summaries, sweeps and `why`:
//!
#![doc = include_str!("glossary/printed.md")]
//!
//! # How to use it
//!
//! The [guide] is the book: a page a task, a page a family, the scenario language, words and statistics, validation, limits.
//!
//! # A run from Rust
//!
//! ```
//! use watershed::scenario::{self, run};
//!
//! let text = r#"
//!     family = "piuma"
//!     [topology]
//!     kind = "mesh"
//!     size = [3, 3]
//!     [[collective]]
//!     kind = "allreduce"
//!     elements = 4
//! "#;
//! let loaded = scenario::load_text("example", text, std::path::Path::new("."), "example", &[]).unwrap();
//! let result = run::run(&loaded, &run::RunOptions::default()).unwrap();
//! assert_eq!(result.document.collectives[0].bit_exact, Some(true));
//! ```

#[doc(inline)]
pub use watershed_arith as arith;
#[doc(inline)]
pub use watershed_cli as cli;
#[doc(inline)]
pub use watershed_fabric as fabric;
#[doc(inline)]
pub use watershed_files as files;
#[doc(inline)]
pub use watershed_glossary as glossary;
pub mod guide;
#[doc(inline)]
pub use watershed_kernel as kernel;
#[doc(inline)]
pub use watershed_operands as operands;
#[doc(inline)]
pub use watershed_oracle as oracle;
#[doc(inline)]
pub use watershed_probe as probe;
#[doc(inline)]
pub use watershed_scenario as scenario;
#[doc(inline)]
pub use watershed_scenario::families::blocks::*;
pub use watershed_state as state;
#[doc(inline)]
pub use watershed_study as study;
#[doc(inline)]
pub use watershed_workload as workload;
