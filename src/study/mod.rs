//! Studies: what is made from the results of many runs. Nothing here touches a block; a study starts runs and reads result
//! documents.
//!
//! | file | holds |
//! |---|---|
//! | [`curve`] | latency and accepted throughput over offered load, saturation |
//! | [`plot`] | diagrams as SVG |

pub mod curve;
pub mod plot;
