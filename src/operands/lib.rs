//! The operands that nodes contribute: how their bits are read, numbers as text and as bits, and seeded random ones.
//!
//! | module | holds |
//! |---|---|
//! | [`Layout`], [`layout`](fn@layout) | sign, exponent and fraction of every data type |
//! | [`number`] | decimal text to bits, rounded once |
//! | [`random`] | streams that depend on seed, job and participant alone; distributions |
//!
//! A run draws every element of every participant here, so this is compiled for speed; what reads scenarios need not be.
//!
//! ```
//! use watershed_arith::DType;
//! use watershed_operands::random::{Distribution, Stream};
//! use watershed_operands::{layout, number};
//!
//! assert_eq!(number::parse("-1.5", layout(DType::F64)), Ok((-1.5f64).to_bits()));
//! let draw = |seed| Stream::data(seed, 0, 3).element(Distribution::Normal, layout(DType::F32));
//! assert_eq!(draw(1), draw(1));
//! assert_ne!(draw(1), draw(2));
//! ```

mod layout;
pub mod number;
pub mod random;

pub use layout::{Layout, layout};
