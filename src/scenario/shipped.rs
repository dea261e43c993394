//! The scenarios that come with the program: they are part of it, so it finds them in any folder.

/// Path and text of every shipped scenario, in the order of the paths.
pub const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Finds a shipped scenario by its name or path.
pub fn find(name: &str) -> Option<(&'static str, &'static str)> {
    SHIPPED.iter().copied().find(|(path, _)| *path == name || stem(path) == name)
}

/// The name of a scenario file: without folder and extension.
pub fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.strip_suffix(".toml").unwrap_or(file)
}
