//! Studies: what is made from the results of many runs. Nothing here touches a block; a study starts runs and reads result
//! documents.
//!
//! | file | holds |
//! |---|---|
//! | [`curve`] | latency and accepted throughput over offered load, saturation |
//! | [`plot`] | diagrams as SVG |
//! | [`report`] | results and sweeps as one HTML page |
//! | [`sweep`] | many points over the parameters of scenarios, in a store |

pub mod curve;
pub mod plot;
pub mod report;
pub mod sweep;
