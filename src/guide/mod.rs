//! The book: how to use watershed, task by task, with a page for each family and the reference.
//!
//! Every command on its pages is run by a test (test target `project`), and where its output is shown, that is compared. The
//! commands stand as in the folder of the project, after `make program`. `make book` makes web pages of it.
//!
//! | page | |
//! |---|---|
//! | [`first_run`] | First run |
//! | [`lecture`] | Teach it in a lecture |
//! | [`scenarios`] | Write a scenario |
//! | [`waves`] | Look inside: waves and ladders |
//! | [`latency`] | Where the cycles went |
//! | [`sweeps`] | Choose parameters |
//! | [`compare`] | Choose an engine |
//! | [`examples`] | Example pages |
//! | [`snapshots`] | Snapshot-test my own scenarios |
//! | [`numerics`] | Numbers: does the order matter? |
//! | [`verify_rtl`] | Verify my RTL with it |
//! | [`rtl_twin`] | The RTL twin |
//! | [`piuma`] | PIUMA: registers in every switch |
//! | [`armed`] | Armed: frames that arm an engine |
//! | [`pbv`] | PBV: engines with an address |
//! | [`software`] | Software: the same job over messages |
//! | [`workloads`] | Workloads: traces of applications |
//! | [`networks`] | Networks: topologies, routing, traffic |
//! | [`language`] | The scenario language |
//! | [`statistics`] | Words and statistics |
//! | [`validation`] | Why believe it |
//! | [`speed`] | Speed |
//! | [`limits`] | Limits: what the model does not say |
//! | [`extend`] | Add an operator, a topology, a family |

/// A page of the book as a module: the names that its links use lead to other modules here, and to files elsewhere.
macro_rules! pages {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = include_str!("links.md")]
            #[doc = include_str!(concat!("pages/", $file))]
            pub mod $name {}
        )*
    };
}

pages! {
    first_run "first-run.md"
    lecture "lecture.md"
    scenarios "scenarios.md"
    waves "waves.md"
    latency "latency.md"
    cost "cost.md"
    long_runs "long-runs.md"
    sweeps "sweeps.md"
    compare "compare.md"
    examples "examples.md"
    snapshots "snapshots.md"
    numerics "numerics.md"
    verify_rtl "verify-rtl.md"
    rtl_twin "rtl-twin.md"
    piuma "piuma.md"
    armed "armed.md"
    pbv "pbv.md"
    software "software.md"
    workloads "workloads.md"
    networks "networks.md"
    language "language.md"
    statistics "statistics.md"
    validation "validation.md"
    speed "speed.md"
    limits "limits.md"
    extend "extend.md"
}
