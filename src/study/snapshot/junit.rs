//! Outcomes as JUnit XML, for CI servers: one suite, with a case for each scenario, whose class is its folder.
//!
//! There is no standard; the attributes are those that Jenkins and `GitLab` read. A difference and a failed check are a `failure`, a
//! scenario that cannot be run and a golden file that cannot be read an `error`.

use std::fmt::Write;
use std::path::PathBuf;

use super::{Outcome, shown};
use crate::plot::escape;

/// The document: the outcome of scenarios, and golden files without a scenario, each of which is a failed case.
pub fn junit(outcomes: &[Outcome], strays: &[PathBuf]) -> String {
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
    let count = |of: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| of(outcome)).count();
    let errors = count(|outcome| outcome.error.is_some());
    let failures = count(|outcome| outcome.error.is_none() && !outcome.passed()) + strays.len();
    let attributes = format!(
        "name=\"watershed\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{}\" time=\"{seconds:.3}\"",
        outcomes.len() + strays.len(),
        count(|outcome| outcome.left_out),
    );
    let mut out =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {attributes}>\n<testsuite {attributes}>\n");
    for outcome in outcomes {
        let (class, name) = outcome.name.rsplit_once('/').unwrap_or((".", &outcome.name));
        let (class, name) = (text(&class.replace('/', ".")), text(name));
        let _ = write!(out, "<testcase classname=\"{class}\" name=\"{name}\" time=\"{:.3}\"", outcome.seconds);
        let tag = match outcome {
            _ if outcome.error.is_some() => "error",
            _ if !outcome.passed() => "failure",
            _ if outcome.left_out => {
                out.push_str("><skipped/></testcase>\n");
                continue;
            }
            _ => {
                out.push_str("/>\n");
                continue;
            }
        };
        let all = outcome.text();
        let first = outcome.error.as_deref().unwrap_or(&all).lines().next().unwrap_or_default();
        let _ = writeln!(
            out,
            "><{tag} message=\"{}\" type=\"{}\">{}</{tag}></testcase>",
            text(first),
            text(outcome.word()),
            text(&all)
        );
    }
    for path in strays {
        let name = text(&shown(path));
        let message = "message=\"this golden file belongs to no scenario\" type=\"stray\"";
        let _ = writeln!(out, "<testcase classname=\"golden\" name=\"{name}\"><failure {message}/></testcase>");
    }
    out + "</testsuite>\n</testsuites>\n"
}

/// Text inside XML, without the control characters that XML has no way to write.
fn text(text: &str) -> String {
    let allowed = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    escape(&text.chars().filter(allowed).collect::<String>())
}
