//! The scenario language of watershed: one struct a table, with the schema that editors and the loader read.
//!
//! | module | holds |
//! |---|---|
//! | [`file`](mod@file) | a whole scenario: topology, switches, links, jobs, traffic, measurement |
//! | [`programs`] | programs that threads of PIUMA cores run |
//! | [`file::armed`], [`file::pbv`] | `[armed]`, `[pbv]` |
//! | [`hosts`] | collectives in software |
//! | [`workload`] | `[workload]` |
//! | [`golden`] | `[golden]` |
//! | [`names`] | operations, data types and rounding modes |
//! | [`result_detail`] | how much of its vectors a document holds |
//! | [`limits`] | the greatest sizes of a scenario |
//!
//! Nothing here knows how a system is built or run. What is read, checked against the schema and put together from jobs,
//! bases and arguments is the business of `watershed_scenario`, which shows these modules under its own names.
//!
//! ```
//! use watershed_language::file::{ScenarioFile, TopologyKind};
//!
//! let text = "family = \"piuma\"\n[topology]\nkind = \"die\"\n";
//! let file = ScenarioFile::from_toml(toml::from_str(text).unwrap()).unwrap();
//! assert_eq!((file.topology.kind, file.seed), (TopologyKind::Die, 1));
//! assert_eq!(ScenarioFile::schema()["title"], "watershed scenario");
//! ```

pub mod file;
pub mod golden;
pub mod hosts;
pub mod limits;
pub mod names;
pub mod programs;
pub mod result_detail;
pub mod workload;

pub use file::ScenarioFile;
