//! First run.
//!
//! `make run` builds the program and runs the flagship. Which scenarios come with the program, a sentence each:
//!
//! ```sh
//! target/release/watershed list
//! ```
//!
//! A scenario is run by its name or its file. What is printed is for people; `--json` prints everything, `--out DIR` writes that to
//! a file:
//!
//! ```sh
//! target/release/watershed run barrier-die --out out
//! ```
//!
//! ```text
//! barrier-die    die of 4 tiles x 4 switches, 8 cores, 1000 MHz, 240 cycles, seed 1
//! wait           barrier of 8 cores
//!                197 cycles = 197 ns
//! busiest link   core0.P2 -> core1.P2 (intra-tile): 1 flit, busy 0.4 % of the time, 0 head-wait cycles
//! checks         5 passed: progress, bit-exact, every contribution once, network empty, links
//! result         out/barrier-die.json
//! ```
//!
//! Every value can be set from the command line, by the names that stand in the file:
//!
//! ```sh
//! target/release/watershed run barrier-die --set link.latency_ns=25 --set switch.pipeline_stages=3
//! ```
//!
//! A result holds what it was made from. It can be made again, compared, and asked where its cycles went:
//!
//! ```sh
//! target/release/watershed replay out/barrier-die.json
//! target/release/watershed why out/barrier-die.json
//! ```
//!
//! The exit status is 0 if everything is fine, 1 if a check failed or a run did not finish, 2 if the command line or a file is
//! wrong, 3 if all is fine but what came of it could not be written; so a script needs no parsing.
