//! The oracle: what every result must be, bit for bit, computed without the hardware model.
//!
//! ```text
//!             f16, f32, f64      bf16, TF32, FP8        integers, gates, min/max
//!            +-------------+    +----------------+     +------------------------+
//!            |  SoftFloat  |    | rustc_apfloat  |     | plain integers and the |
//!            |             |    | (values)       |     | text of the rules      |
//!            +------+------+    +-------+--------+     +-----------+------------+
//!                   |                   |                          |
//!                   |     +-------------+-------------+            |
//!                   |     | exact: big integers,      |            |
//!                   |     | rounded by the definition |            |
//!                   |     | (flags; second opinion)   |            |
//!                   |     +-------------+-------------+            |
//!                   +-------------------+--------------------------+
//!                                       |
//!                         pair: one operation on one lane
//!                                       |
//!                         tree: the same tree, walked untimed
//!                                       |
//!                         compare: first difference, ulps, node
//! ```
//!
//! Independence is the point: nothing here uses a datapath, a format table, a lane packer or a tree of
//! [`arith`](watershed_arith). Shared are the *names* [`Op`](watershed_arith::Op), [`DType`](watershed_arith::DType),
//! [`Mode`](watershed_arith::Mode), [`Flags`](watershed_arith::Flags) and what they are made of.
//!
//! Known deviations of the libraries used here, and what decides instead:
//!
//! | oracle | deviation | what we take |
//! |--------|-----------|--------------|
//! | `rustc_apfloat` | no overflow flag when a directed mode stops at the largest finite number | flags of [`exact`] |
//! | `rustc_apfloat` | underflow of a product that rounds up to the smallest normal number | flags of [`exact`] |
//! | `rustc_apfloat` | E4M3 beyond 448 in a directed mode: NaN and 448 change places | value of [`exact`] |
//! | `rustc_apfloat` | NaN payloads and signs are those of x86 | the rule text, in [`pair`] |
//!
//! Requirement: A-GOLD-1, A-VER-1 (`common.md`, section 1).

pub mod compare;
pub mod exact;
pub mod fast;
pub mod fixed;
pub mod list;
pub mod pair;
pub mod quad;
pub mod quotient;
pub mod small;
pub mod soft;
pub mod tree;

pub use compare::{Mismatch, Run, compare, ulp_distance};
pub use list::{EngineList, Source};
pub use pair::{lane_difference, lane_pair, lane_predicate, word_pair};
pub use quad::quad_pair;
pub use tree::{Node, NotOnce, check_each_once, evaluate, evaluate_with};
