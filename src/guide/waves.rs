//! Reading waves, ladders and latencies.
//!
//! `--wave FILE` writes a waveform: VCD, or FST if the name ends in `.fst`. Signals are registers and what stands in queues, under the
//! names of the blocks. `--signals` chooses by glob, `--wave-window` by cycles; what is not chosen costs nothing.
//!
//! ```sh
//! target/release/watershed run allreduce-die --set job.0.elements=2 --wave out/die.vcd --signals '**.ceng.**'
//! target/release/watershed wave show out/die.vcd --signals '**.sw4.**.ceng.{state,operands}' --window 25..50
//! ```
//!
//! Adder trees are there register by register: every stage of every two-input unit, with the fields of its datasheet (see
//! [`stage_waves`](crate::fabric::stage_waves)). They are many, so they are details: `**`, which is also what is taken without
//! `--signals`, leaves them out, and a glob with a name in it selects them. `--signals '**' --signals '**.sw4.**.tree.**'` is all
//! that is usual and one tree. Where they are:
//!
//! | family | scope | what |
//! |---|---|---|
//! | `piuma` | `….switch.ceng.tree` | the tree of an engine; a wide accumulation has the lanes of its accumulator |
//! | | `….switch.ceng.scan` | `chainN` and `combine` of the scan unit |
//! | `armed` | `….engine.unit` | the quad unit |
//! | `pbv` | `….engine.ce.tree` | the reduction unit |
//! | | `….engine.ce.tracking` | `read` and `write` of the tracking store (no details) |
//!
//! A condition names registers and, for those that are states, the names of their values; `--at` shows the first moment at which it
//! holds. A wave of a run that was killed is read as far as it was written, and the picture says where that ends.
//!
//! ```sh
//! target/release/watershed wave show out/die.vcd --signals '**.sw4.**.ceng.{state,operands}' --at 'die.tile2.sw4.switch.ceng.state == REDUCE'
//! ```
//!
//! Beside the file stand a `.gtkw` file (`gtkwave die.gtkw` shows states by name) and, for Surfer, a command file (`surfer -c die.sucl
//! die.vcd`) and mappings in `.surfer/mappings`.
//!
//! A waveform grows under another name, `die.part.vcd`, and takes its own at the end, also when Ctrl-C, SIGTERM or SIGHUP end the run:
//! until then an older one stands as it was. What a run that was killed (`kill -9`) had written by then is in `die.part.vcd`, to be
//! looked at as far as it goes; of an FST file that is nothing before its first 64 MiB. A full disk takes the part away and leaves
//! the older waveform.
//!
//! Of a long run only the moment that matters is wanted. The last cycles stay in memory and are written when a condition on signals
//! holds, when the run ends, or only if a check fails:
//!
//! ```sh
//! target/release/watershed run allreduce-die --wave out/moment.vcd --trigger 'die.tile2.sw4.switch.ceng.operands == 2' --before 5 --after 20
//! target/release/watershed run allreduce-die --wave out/end.vcd --last 50
//! target/release/watershed run allreduce-die --wave out/failed.vcd --last 50 --only-failed
//! target/release/watershed run allreduce-die --wave out/big.vcd --estimate-wave 300
//! ```
//!
//! Two waveforms, VCD or FST, are compared by time and signal; `wave diff` shows the first difference with a few cycles around it:
//!
//! ```sh
//! target/release/watershed wave diff out/die.vcd out/die.vcd
//! ```
//!
//! A ladder shows messages instead of signals, as text or as a picture:
//!
//! ```sh
//! target/release/watershed run barrier-die --ladder out/barrier.txt
//! target/release/watershed run fig4-late-leaf --ladder out/late.svg
//! ```
//!
//! `why` follows the critical path of a result and says for every cycle what it was spent with; [`scenario::why`](crate::scenario::why)
//! has the list of kinds. `--packet` follows another word, round or packet, `--cycles` cuts a piece out.
//!
//! ```sh
//! target/release/watershed run fig7-barrier --out out
//! target/release/watershed why out/fig7-barrier.json
//! target/release/watershed why out/fig7-barrier.json --packet 1 --cycles 1200..
//! ```
