//! Scenarios, from a TOML file to a checked configuration. Nothing here knows an engine: of the families it knows their interfaces.
//!
//! ```text
//!  text ── source ──> tree of values with places <── --set
//!                        │
//!                     schema ── keys, types, words, ranges          every step collects problems;
//!                        │                                          a problem has a path, the source
//!                      file ── the structs of the format            turns the path into line and caret
//!                        │
//!                    resolve ── cross-field rules, units, limits
//!                        │
//!                     config ──> systems are built from it
//! ```
//!
//! | file | holds |
//! |------|-------|
//! | [`file`](mod@file) | the format: one struct a table; its doc comments are the reference |
//! | [`schema`] | the JSON Schema made from those structs, and the check against it |
//! | [`source`] | text, places, overrides |
//! | [`source_text`] | texts of files, with what they inherit |
//! | `syntax` | what a text lacks that is no TOML |
//! | [`inherit`] | scenarios that extend others |
//! | [`jobs`] | one table for all jobs, translated into those of their engines |
//! | [`read`] | tables as the structs of the format |
//! | [`kind`] | the kind of a file that was given in place of another |
//! | [`shipped`] | the scenarios that come with the program |
//! | [`problem`] | errors with carets |
//! | [`resolve`] | rules across tables, defaults, derived values |
//! | [`config`], [`collective`], [`link`], [`topology`] | the configuration after that, from which simulations are built |
//! | [`families`] | a folder each: its table after checking, and what sets it apart |
//! | [`hosts`], [`programs`], [`workload`] | software collectives, programs of cores, traces of applications |
//! | [`spec`] | what sets a family apart before it runs |
//! | [`segments`] | collectives of several trees, each for a segment of the vector |
//! | [`graph`] | topologies that a file describes |
//! | [`sources`] | the sources of background traffic |
//! | [`fault`] | faults of links |
//! | [`data`], [`number`], [`random`] | operands of participants |
//! | [`cost`] | formulas of the cost of hardware, technology tables |
//! | [`snapshot`] | the contents of golden files and the tolerances of comparison |
//! | [`expr`] | expressions over values: filters, metrics, triggers |
//! | [`trace`] | text files that traffic is read from |
//! | [`units`] | exact ns, hertz and bits per second |
//! | [`limits`] | the greatest sizes of a scenario |
//! | [`names`] | operations, types, rounding modes by name |

pub mod collective;
pub mod config;
pub mod cost;
pub mod data;
pub mod expr;
pub mod families;
pub mod fault;
pub mod graph;
pub mod hosts;
mod inactive_settings;
pub mod inherit;
pub mod jobs;
pub mod kind;
pub mod link;
mod participants;
pub mod problem;
pub mod programs;
pub mod read;
pub mod resolve;
pub mod schema;
pub mod segments;
pub mod shipped;
pub mod snapshot;
pub mod source;
pub mod source_text;
pub mod sources;
pub mod spec;
mod syntax;
pub mod topology;
pub mod trace;
pub mod units;
pub mod values;
pub mod workload;

pub use config::Scenario;
pub use families::{armed, mixed, pbv, piuma};
pub use file::ScenarioFile;
pub use problem::{Problem, Problems};
pub use source::Source;
pub use watershed_language::{file, limits, names, result_detail};
pub use watershed_operands::{number, random};
