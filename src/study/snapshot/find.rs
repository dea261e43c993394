//! Finding scenarios below folders, their golden files, and golden files without a scenario.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{FOLDER, SUFFIXES, Test, is_snapshot, shown};
use watershed_scenario_interface::kind::Kind;

/// What there is below some folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundTests {
    /// Scenarios, in the order of their paths.
    pub tests: Vec<Test>,
    /// Golden files without a scenario.
    pub strays: Vec<PathBuf>,
    /// TOML files that are no scenarios: sweeps, studies, topologies and others.
    pub passed_over: usize,
}

/// What is read of a folder that holds a build of Cargo, a cache, or nothing to look at.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Looks for scenarios below `places`, which are folders or scenario files. Golden files are in the folder [`FOLDER`] beside each, or
/// below `goldens`, where the folders have the names that they have below the place.
///
/// # Errors
/// A place cannot be read, or two scenarios would share golden files.
pub fn find(places: &[PathBuf], goldens: Option<&Path>) -> Result<FoundTests, String> {
    let mut walk = FolderWalk { found: FoundTests::default(), goldens, holders: BTreeSet::new() };
    for place in places {
        if place.is_dir() {
            walk.folder(place, Path::new(""))?;
        } else if place.is_file() {
            walk.found.tests.push(walk.test(place, Path::new("")));
        } else {
            return Err(format!("error: there is no folder or file {}", place.display()));
        }
    }
    if places.iter().any(|place| place.is_dir())
        && let Some(goldens) = goldens.filter(|goldens| goldens.is_dir())
    {
        walk.golden_tree(goldens)?;
    }
    let mut found = walk.found;
    found.tests.sort_by(|a, b| a.scenario.cmp(&b.scenario));
    found.tests.dedup();
    for pair in found.tests.windows(2) {
        if pair[0].scenario == pair[1].scenario {
            return Err(format!("error: {} is found twice, with two folders of golden files", pair[0].name));
        }
    }
    let mut known = BTreeSet::new();
    for test in &found.tests {
        let goldens = std::path::absolute(&test.goldens).unwrap_or_else(|_| test.goldens.clone());
        if !known.insert((goldens, test.stem())) {
            let what = format!("error: {} and another scenario would share golden files", test.name);
            return Err(format!("{what} in {}", test.goldens.display()));
        }
    }
    found.strays = strays(&walk.holders, &found.tests)?;
    Ok(found)
}

struct FolderWalk<'a> {
    found: FoundTests,
    goldens: Option<&'a Path>,
    /// Folders of golden files.
    holders: BTreeSet<PathBuf>,
}

impl FolderWalk<'_> {
    fn test(&self, scenario: &Path, below: &Path) -> Test {
        let goldens = match self.goldens {
            Some(goldens) => trim_path(&goldens.join(below)),
            None => scenario.parent().unwrap_or(Path::new("")).join(FOLDER),
        };
        Test { name: shown(&scenario.with_extension("")), scenario: scenario.to_owned(), goldens }
    }

    /// `below` is the folder as it is named below the place that was given.
    fn folder(&mut self, folder: &Path, below: &Path) -> Result<(), String> {
        if folder.join(CACHE_TAG).exists() {
            return Ok(());
        }
        for path in entries(folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            if path.is_dir() {
                if name == FOLDER && self.goldens.is_none() {
                    self.holders.insert(path);
                } else {
                    self.folder(&path, &below.join(&name))?;
                }
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                self.file(&path, below);
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, below: &Path) {
        // What cannot be read as TOML may have been meant as a scenario, and says so when it is run.
        let parses = || fs::read_to_string(path).is_ok_and(|text| text.parse::<toml::Table>().is_ok());
        match Kind::of(path) {
            Kind::Scenario => self.found.tests.push(self.test(path, below)),
            Kind::Text | Kind::Binary | Kind::Missing if !parses() => self.found.tests.push(self.test(path, below)),
            _ => self.found.passed_over += 1,
        }
    }

    /// All folders of a tree of golden files.
    fn golden_tree(&mut self, folder: &Path) -> Result<(), String> {
        self.holders.insert(folder.to_owned());
        for path in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
            self.golden_tree(&path)?;
        }
        Ok(())
    }
}

/// What is in a folder, in the order of the names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unread = |error: std::io::Error| format!("error: cannot read {}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(unread)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<Result<Vec<_>, _>>().map_err(unread)?;
    paths.sort();
    Ok(paths)
}

/// A path without an empty part at its end.
fn trim_path(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Golden files that belong to no scenario.
fn strays(holders: &BTreeSet<PathBuf>, tests: &[Test]) -> Result<Vec<PathBuf>, String> {
    let mut strays = Vec::new();
    for holder in holders {
        let paths = entries(holder)?;
        // Where scenarios are as well, a document or a wave may be anything.
        let shared = paths.iter().any(|path| path.extension().is_some_and(|extension| extension == "toml"));
        let known: BTreeSet<String> =
            tests.iter().filter(|test| trim_path(&test.goldens) == trim_path(holder)).map(Test::stem).collect();
        for path in paths.into_iter().filter(|path| path.is_file()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let suffixes = SUFFIXES.iter().filter(|(suffix, _)| !shared || is_snapshot(suffix));
            let mut owners = suffixes.filter_map(|(suffix, _)| name.strip_suffix(suffix)).peekable();
            let snapshot = is_snapshot(&name);
            if (owners.peek().is_some() || snapshot) && !owners.any(|owner| known.contains(owner)) {
                strays.push(path);
            }
        }
    }
    Ok(strays)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files, each with a text that says what it is.
    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = if file.contains("sweep") { "[[scenario]]\n" } else { "family = 'piuma'\n" };
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn names(folder: &Path, paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|path| path.strip_prefix(folder).unwrap().display().to_string()).collect()
    }

    #[test]
    fn scenarios_are_found_in_order_with_their_goldens() {
        let tree = tree(&["b.toml", "a/x.toml", "a/sweep.toml", ".git/y.toml", "cache/CACHEDIR.TAG", "cache/z.toml"]);
        let root = tree.path();
        let found = find(&[root.to_owned()], None).unwrap();
        let scenarios: Vec<_> = found.tests.iter().map(|test| test.scenario.clone()).collect();
        assert_eq!(names(root, &scenarios), ["a/x.toml", "b.toml"]);
        assert_eq!(found.passed_over, 1);
        assert_eq!(found.tests[0].goldens, root.join("a/golden"));
        let found = find(&[root.to_owned()], Some(Path::new("g"))).unwrap();
        let goldens: Vec<_> = found.tests.iter().map(|test| test.goldens.clone()).collect();
        assert_eq!(goldens, [Path::new("g/a"), Path::new("g")]);
        assert!(find(&[root.join("none")], None).unwrap_err().contains("there is no folder or file"));
    }

    #[test]
    fn goldens_without_a_scenario_are_found() {
        let beside = tree(&["x.toml", "golden/x.json", "golden/y.json", "golden/x.other.snap", "golden/README.md"]);
        let found = find(&[beside.path().to_owned()], None).unwrap();
        assert_eq!(names(beside.path(), &found.strays), ["golden/x.other.snap", "golden/y.json"]);
        // Where scenarios are as well, only what cannot be anything else.
        let shared = tree(&["x.toml", "data.json", "y.summary.snap", "x.summary.snap"]);
        let found = find(&[shared.path().to_owned()], Some(shared.path())).unwrap();
        assert_eq!(names(shared.path(), &found.strays), ["y.summary.snap"]);
        let apart = tree(&["s/a/x.toml", "g/a/x.json", "g/x.json", "g/b/x.vcd"]);
        let found = find(&[apart.path().join("s")], Some(&apart.path().join("g"))).unwrap();
        assert_eq!(names(apart.path(), &found.strays), ["g/x.json", "g/b/x.vcd"]);
        // One scenario says nothing about the others.
        let one = find(&[apart.path().join("s/a/x.toml")], Some(&apart.path().join("g/a"))).unwrap();
        assert!(one.strays.is_empty() && one.tests.len() == 1);
    }

    #[test]
    fn scenarios_do_not_share_goldens() {
        let tree = tree(&["a/x.toml", "b/x.toml"]);
        let at = |name: &str| tree.path().join(name);
        let error = find(&[at("a"), at("b")], Some(Path::new("g"))).unwrap_err();
        assert!(error.contains("would share golden files in g"), "{error}");
        assert_eq!(find(&[at("a"), at("a"), at("a/x.toml")], None).unwrap().tests.len(), 1);
    }
}
