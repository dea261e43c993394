//! What has changed since a folder's sweep was last run, and which of its results are still valid.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Sweep;
use super::file::{Axis, Levels};

/// What a changed sweep file made of the points of the last run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// What is different in the sweep file and its scenarios, a line each.
    pub what: Vec<String>,
    /// Points that were known and are still asked for.
    pub kept: usize,
    /// Points that were not known.
    pub added: usize,
    /// Points of the last run that are not asked for any more.
    pub dropped: usize,
}

/// Values named in a line, at most.
const NAMED: usize = 8;

/// What differs between two sweeps: scenarios, axes and their values, the way they are combined.
pub fn between(old: &Sweep, new: &Sweep) -> Vec<String> {
    let mut lines = Vec::new();
    if old.file.sample != new.file.sample
        || old.file.points != new.file.points
        || old.file.seed != new.file.seed
        || old.file.search != new.file.search
    {
        lines.push("the choice of points (`sample`, `points`, `seed` or `[search]`)".to_owned());
    }
    if old.file.repetitions != new.file.repetitions {
        lines.push(format!("repetitions: {} instead of {}", new.file.repetitions, old.file.repetitions));
    }
    if old.file.filter != new.file.filter {
        lines.push("filters".to_owned());
    }
    if old.metrics != new.metrics || old.objectives != new.objectives {
        lines.push("metrics or objectives, which are computed from what is kept".to_owned());
    }
    for entry in &new.scenarios {
        let Some(before) = old.scenarios.iter().find(|before| before.name == entry.name) else {
            lines.push(format!("scenario `{}` added", entry.name));
            continue;
        };
        if before.file != entry.file || before.set != entry.set {
            lines.push(format!("file or `set` of scenario `{}`", entry.name));
        }
    }
    for before in old.scenarios.iter().filter(|before| new.scenarios.iter().all(|entry| entry.name != before.name)) {
        lines.push(format!("scenario `{}` dropped", before.name));
    }
    let (before, after) = (axes(old), axes(new));
    for (name, axis) in &after {
        match before.get(name) {
            None => lines.push(format!("axis `{name}` added")),
            Some(before) => lines.extend(axis_between(name, before, axis)),
        }
    }
    lines.extend(before.keys().filter(|name| !after.contains_key(*name)).map(|name| format!("axis `{name}` dropped")));
    lines
}

/// Axes by name; one that several scenarios have counts once for each difference.
fn axes(sweep: &Sweep) -> BTreeMap<String, &Axis> {
    let all = sweep.scenarios.iter().flat_map(|entry| {
        let own = entry.axes.iter().map(|axis| {
            let common = axis.path.starts_with("axis");
            (if common { axis.name.clone() } else { format!("{}:{}", entry.name, axis.name) }, axis)
        });
        own.collect::<Vec<_>>()
    });
    all.collect()
}

fn axis_between(name: &str, before: &Axis, after: &Axis) -> Option<String> {
    if before.keys != after.keys {
        return Some(format!("axis `{name}` sets {} instead of {}", after.keys.join(", "), before.keys.join(", ")));
    }
    let (Levels::List(old), Levels::List(new)) = (&before.levels, &after.levels) else {
        return (before.levels != after.levels).then(|| format!("range of axis `{name}`"));
    };
    let missing_in = |there: &[Vec<String>], here: &[Vec<String>]| -> Vec<String> {
        here.iter().filter(|row| !there.contains(row)).map(|row| row.join(" ")).collect()
    };
    let (added, dropped) = (missing_in(old, new), missing_in(new, old));
    let mut line = format!("axis `{name}`:");
    for (list, what) in [(&added, "added"), (&dropped, "dropped")] {
        if list.is_empty() {
            continue;
        }
        let shown = list.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = if list.len() > NAMED { format!(" and {} more", list.len() - NAMED) } else { String::new() };
        let comma = if line.ends_with(':') { "" } else { ";" };
        let _ = write!(line, "{comma} {shown}{more} {what}");
    }
    match (added.is_empty() && dropped.is_empty(), old == new) {
        (true, true) => None,
        (true, false) => Some(format!("order of the values of axis `{name}`")),
        _ => Some(line),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sweep(text: &str) -> Sweep {
        Sweep::parse("s.toml", text, Path::new(".")).unwrap()
    }

    const BEGIN: &str = "[[scenario]]\nfile = \"allreduce-die\"\n";

    #[test]
    fn differences_are_named() {
        let old =
            sweep(&format!("{BEGIN}[[axis]]\nkey = \"a\"\nvalues = [1, 2]\n[[axis]]\nkey = \"b\"\nvalues = [1]\n"));
        for (text, expected) in [
            ("[[axis]]\nkey = \"a\"\nvalues = [1, 2]\n[[axis]]\nkey = \"b\"\nvalues = [1] # the same\n", vec![]),
            (
                "[[axis]]\nkey = \"a\"\nvalues = [2, 3, 4]\n[[axis]]\nkey = \"b\"\nvalues = [1]\n",
                vec!["axis `a`: 3, 4 added; 1 dropped"],
            ),
            (
                "[[axis]]\nkey = \"a\"\nvalues = [2, 1]\n[[axis]]\nname = \"b\"\nkey = \"x.c\"\nvalues = [1]\n",
                vec!["order of the values of axis `a`", "axis `b` sets x.c instead of b"],
            ),
            (
                "[[axis]]\nkey = \"a\"\nvalues = [1, 2]\n[[axis]]\nkey = \"c\"\nvalues = [1]\n",
                vec!["axis `c` added", "axis `b` dropped"],
            ),
        ] {
            assert_eq!(between(&old, &sweep(&format!("{BEGIN}{text}"))), expected, "{text}");
        }
        let other = sweep(
            "repetitions = 2\n[[scenario]]\nfile = \"barrier-die\"\n[[axis]]\nkey = \"a\"\nvalues = [1, 2]\n[[axis]]\nkey = \"b\"\nvalues = [1]\n",
        );
        assert_eq!(
            between(&old, &other),
            ["repetitions: 2 instead of 1", "scenario `barrier-die` added", "scenario `allreduce-die` dropped"]
        );
    }
}
