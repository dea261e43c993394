//! Arithmetic as hardware: formats, staged units, the reduction tree, sticky flags.
//!
//! ```text
//!   word of lanes ->  lanes  ->  unit (adder | multiplier | comparator | integer)  ->  round  ->  word + flags
//!                                  |  six segments, cut into 1 to 6 clock stages
//!                                  +-- pipe: one unit     +-- tree: a tree of units in fixed port order
//! ```
//!
//! | file | holds |
//! |------|-------|
//! | [`types`] | operations, data types, rounding, flags, modes: names only |
//! | [`format`](mod@format) | one description of a floating-point format, unpacking |
//! | [`adder`], [`multiplier`], [`comparator`], [`integer`] | the datapaths, stage by stage |
//! | [`round`] | rounding and packing, shared by adder and multiplier |
//! | [`unit`](mod@unit) | the function table, the stage registers, the cut into clock stages |
//! | [`widen`] | accumulating in a wider format than the operands have |
//! | [`lanes`] | how lanes lie in a 64-bit word |
//! | [`pipe`] | one pipelined unit |
//! | [`quad`], [`locator`], [`repsum`], [`code`] | four-word frames: minimum and maximum with places, reproducible sum, result codes |
//! | `bank` | the registers of many lanes at once, for the tree |
//! | [`tree`] | the pipelined reduction tree |
//! | [`stages`] | units and trees register by register, for waves |
//!
//! Nothing here calls the host's floating point, and nothing here is used by the oracle except the
//! names in [`types`].

pub mod adder;
mod bank;
pub mod code;
pub mod comparator;
pub mod divider;
pub mod fixed;
pub mod format;
pub mod integer;
pub mod lanes;
pub mod locator;
pub mod multiplier;
pub mod pipe;
pub mod quad;
pub mod repsum;
pub mod round;
pub mod stages;
pub mod tree;
pub mod types;
pub mod unit;
pub mod widen;

pub use code::ResultCode;
pub use lanes::{element_bytes, lane, lanes_apply, pack_lanes, pack_words, unpack_lanes, unpack_words};
pub use pipe::{Pipe, PipeIn, PipeOut};
pub use quad::{Contribution, Opcode, Quad, QuadPipe, QuadRegister, QuadUnit};
pub use tree::{BadTreeCfg, Operands, Tree, TreeCfg, TreeIn, TreeOut};
pub use types::{DType, Flags, Mode, NanPolicy, Op, Round, SignalPolicy, UnknownName};
pub use unit::{Function, Unit};
pub use widen::Accumulate;
