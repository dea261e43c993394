//! The check of the table `[golden]`.

pub use watershed_language::golden::{Golden, Part, Picture, Tolerance};

use super::problem::Problem;
use super::source::Source;
use watershed_probe::Selection;

/// What is wrong with the table by itself.
pub fn check(golden: &Golden, source: &Source, problems: &mut Vec<Problem>) {
    let mut globs = |path: String, glob: &String| {
        if let Err(error) = Selection::new([glob]) {
            problems.push(Problem::at(path, error.to_string()));
        }
    };
    for (index, glob) in golden.signals.iter().enumerate() {
        globs(format!("golden.signals[{index}]"), glob);
    }
    for (index, glob) in golden.picture.signals.iter().enumerate() {
        globs(format!("golden.picture.signals[{index}]"), glob);
    }
    for (index, tolerance) in golden.tolerance.iter().enumerate() {
        globs(format!("golden.tolerance[{index}].value"), &tolerance.value);
    }
    let picture = &golden.picture;
    let windows =
        [("golden", golden.from_cycle, golden.to_cycle), ("golden.picture", picture.from_cycle, picture.to_cycle)];
    for (table, from, to) in windows {
        if let (from, Some(to)) = (from.unwrap_or(0), to)
            && to < from
        {
            let problem = Problem::at(format!("{table}.to_cycle"), "the window ends before it starts");
            problems.push(problem.expected(format!("a cycle from {from} on")));
        }
    }
    let wave = golden.files.as_ref().is_none_or(|files| files.contains(&Part::Wave));
    let of_waves = [
        ("signals", !golden.signals.is_empty()),
        ("from_cycle", golden.from_cycle.is_some()),
        ("to_cycle", golden.to_cycle.is_some()),
        ("picture", golden.picture != Picture::default()),
    ];
    // What a base gives may find no use in what extends it.
    let origin = |key: &str| source.locate_key(&format!("golden.{key}")).map(|span| span.origin);
    let own = |key: &str| origin(key) == Some(0) || origin(key) == origin("files");
    for (key, _) in of_waves.iter().filter(|(key, given)| *given && !wave && own(key)) {
        let message = format!("`golden.{key}` is about a wave, and `golden.files` has none");
        problems.push(
            Problem::at_key(format!("golden.{key}"), message).help("add \"wave\" to golden.files, or leave this out"),
        );
    }
    for (index, tolerance) in golden.tolerance.iter().enumerate() {
        if tolerance.absolute.is_none() && tolerance.relative.is_none() {
            let problem = Problem::at(format!("golden.tolerance[{index}]"), "this tolerance allows nothing");
            problems.push(problem.expected("`absolute`, `relative` or both"));
        }
    }
}
