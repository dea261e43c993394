//! The armed family: reduction engines that multicast frames bring to life.
//!
//! Source: "System and method for dynamic allocation of reduction engines" (US 12393530 B2); bit layouts and code numbers
//! from the public host driver of the same hardware (cxi).
//!
//! | file | what |
//! |---|---|
//! | [`header`] | reduction header, multicast address, sequence numbers |
//! | [`frame`] | the 84-byte frame, its check sum, its Ethernet form |

pub mod frame;
pub mod header;

pub use frame::{FRAME_BYTES, FRAME_FLITS, Frame, FrameError, Portals};
pub use header::{Address, Header};
