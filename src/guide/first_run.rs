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
//!
//! # Long runs
//!
//! Ctrl-C, SIGTERM and SIGHUP (unless `nohup` has it ignored) end a command that takes long: what is known by then is printed and
//! written, and the status is 1. The result says that it was interrupted, and `replay` runs it again up to the same cycle. A second
//! signal ends the program at once. `kill -USR1 PID` prints a line on the standard error that says how far it is:
//!
//! ```text
//! status: after 12.4 s, cycle 3194880 (257652 cycles/s), 812344 of 2097152 elements
//! ```
//!
//! Files are written beside their name (`NAME.part.EXT`), flushed and renamed, by every command: a full disk or a `kill -9` leaves
//! what was there before. While a command runs, `.NAME.lock` beside each of its files keeps others from writing it: the second of
//! two runs into one `--out` or `--wave`, or of two sweeps into one folder, ends with status 2 and names the first. A killed
//! process leaves that file, but no lock: the next one goes on.
