//! As a golden model for hardware.
//!
//! The model is cycle-level and bit-exact, so hardware of one's own can be held against it at three levels.
//!
//! **Arithmetic.** `alu`, `reduce` and `testfloat` put operands through the units alone; flags are printed. `reduce` takes the order of
//! additions, which is part of a result.
//!
//! ```sh
//! target/release/watershed alu --op sum --type f32 --round up 0x3f800001 0x33800000
//! target/release/watershed reduce --op sum --type f32 --order 2,1,0 3f800000 33800000 33800000
//! ```
//!
//! **Packets.** Frames of the armed family and packets of the PBV family are put together and taken apart, bit by bit:
//!
//! ```sh
//! target/release/watershed frame encode --op int-sum --lanes 1,2,3,4 --seqno 17 --cookie 0xc0ffee
//! target/release/watershed packet encode write --to 0x0010c002 --from 1 --words 0x12
//! ```
//!
//! **Blocks.** `--record BLOCK` writes the inputs and outputs of a switch, an engine or an end point in every cycle, as files for
//! `$readmemh` and as CSV. The comments at the top of the `.hex` files say which bits are which field;
//! [`scenario::record`](mod@crate::scenario::record) says what each field means in which cycle.
//!
//! ```sh
//! target/release/watershed run allreduce-die --set job.0.elements=4 --record die.tile2.sw4.switch.ceng --out out
//! target/release/watershed run fig4-late-leaf --record s0.P4.engine --out out
//! ```
//!
//! A bench reads `BLOCK.in.hex` with `$readmemh`, applies a line a cycle, and compares with `BLOCK.out.hex`. The credits that outputs have at
//! the start are in the comments; registers and parameters are those of the scenario.
//!
//! **Runs.** From Rust the whole model is a library: [`scenario::run`](mod@crate::scenario::run) gives the result document, and every
//! block can be clocked alone ([`fabric::Join`](crate::fabric::Join), [`fabric::Block`](crate::fabric::Block)).
