//! Studies: tables, curves and reports from the results of many runs. Nothing here touches a block; a study starts runs
//! and reads result documents.
//!
//! | file | holds |
//! |---|---|
//! | [`compare`] | jobs of several scenarios side by side |
//! | [`curve`] | latency and accepted throughput over offered load, saturation |
//! | [`fuzz`] | random scenarios, and the smallest that fails |
//! | [`reproduction`] | studies by name, and their reports |
//! | [`numerics`] | one vector reduced in many orders on many shapes: bits and errors |
//! | [`pbv_table1`] | Table 1 of the PBV source |
//! | [`piuma_paper`] | the figures of the PIUMA paper |
//! | [`plot`] | diagrams as SVG |
//! | [`report`] | results and sweeps as one HTML page |
//! | [`snapshot`] | scenarios held against golden files: `watershed test` |
//! | [`training`] | networks trained by several contestants, layer by layer |
//! | [`sweep`] | many points over the parameters of scenarios, in a store |

pub mod compare;
pub mod curve;
pub mod fuzz;
pub mod numerics;
pub mod pbv_table1;
pub mod piuma_paper;
pub mod plot;
pub mod report;
pub mod reproduction;
pub mod snapshot;
pub mod sweep;
pub mod training;
