//! The guide: how to use watershed, task by task. Every command on these pages is run by a test (test target `project`), and where
//! its output is shown, that is compared.
//!
//! | page | when |
//! |---|---|
//! | [`first_run`] | there is a toolchain, and nothing else |
//! | [`scenarios`] | a system and a job of one's own |
//! | [`waves`] | to see what happened in which cycle, and why it took so long |
//! | [`sweeps`] | many values of many parameters |
//! | [`snapshots`] | scenarios of one's own are to stay as they are |
//! | [`golden_model`] | hardware of one's own is to be compared with the model |
//! | [`validation`] | what is checked, and how to check it oneself |
//! | [`limits`] | what the model does not say |
//!
//! The commands stand as in the README: in the folder of the project, after `make program`.

pub mod first_run;
pub mod golden_model;
pub mod limits;
pub mod scenarios;
pub mod snapshots;
pub mod sweeps;
pub mod validation;
pub mod waves;
