//! What is known of a run without its engines: how it is asked for, and what it answers. Studies and commands use this, and the
//! engines only through a [`Simulator`](simulator::Simulator).
//!
//! | file | holds |
//! |------|-------|
//! | [`loaded`] | a scenario that has been read and checked |
//! | [`run`](mod@run) | options of a run, and what it leaves behind |
//! | [`result`], [`summary`] | results of a run, as a document and as text |
//! | [`job_result`] | the outcome of every job under the same names |
//! | [`armed_result`], [`pbv_result`], [`host_result`], [`program_result`], [`workload_result`] | what only some engines have to say |
//! | [`measure`] | warm-up, window and drain; latencies, confidence, accepted traffic |
//! | [`why`] | where the cycles of a collective's latency went |
//! | [`cost`] | gates, area, periods and energy |
//! | [`embedding`], [`trees`] | the trees of collectives: registers, and tables of engines |
//! | [`drawing`] | a topology as text and as a picture |
//! | [`soundness`] | the proof before cycle 0 that packets arrive and cannot deadlock |
//! | [`record`](mod@record) | inputs and outputs of one block, for a bench |
//! | [`checkpoint`] | a run under way as a file |
//! | [`run_inputs`] | a checked scenario as text again, for replay |
//! | [`simulator`] | the engines behind it: load, build, run, cost |
//! | [`runnable`] | a scenario together with its engines |
//! | [`estimate`], [`signals`] | size and signals of a waveform before the run |
//! | [`migrate`](mod@migrate) | older scenarios in the language of jobs |
//! | [`perfetto`] | the timeline of ranks, for Perfetto |

pub mod armed_result;
pub mod checkpoint;
pub mod cost;
mod document_upgrade;
pub mod drawing;
pub mod embedding;
pub mod estimate;
pub mod host_result;
pub mod job_result;
pub mod loaded;
pub mod measure;
pub mod migrate;
pub mod pbv_result;
pub mod perfetto;
pub mod program_result;
pub mod record;
pub mod result;
pub mod run;
pub mod run_inputs;
pub mod runnable;
pub mod signals;
pub mod simulator;
pub mod soundness;
pub mod summary;
pub mod trees;
pub mod why;
pub mod workload_result;

pub use loaded::Loaded;
pub use runnable::{Engines, Runnable, load_file, load_inputs, load_named, load_text, load_traced};
pub use watershed_reader::source_text::{read_file, source_of};
pub use watershed_reader::{
    Problem, Problems, Scenario, ScenarioFile, Source, armed, config, data, expr, families, file, hosts, inherit, jobs,
    kind, limits, names, number, pbv, problem, random, read, result_detail, schema, segments, shipped, snapshot,
    source, units,
};
