//! The text of scenarios, from files, with what it inherits.

use std::path::Path;
use std::sync::Arc;

use super::{Problem, Problems, Source, inherit, limits};

/// Reads the text of a scenario file.
///
/// # Errors
/// There is none, or it is too long or no text.
pub fn read_file(path: &Path) -> Result<String, Problems> {
    let name = path.display().to_string();
    let fail = |message: String| Problems::new(Arc::new(Source::empty(name.clone())), vec![Problem::general(message)]);
    let size = std::fs::metadata(path)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => fail("there is no such scenario file".to_owned()),
            _ => fail(format!("cannot read the scenario: {error}")),
        })?
        .len();
    if size > limits::SCENARIO_BYTES {
        return Err(fail(format!("the file has {size} bytes; a scenario has up to {}", limits::SCENARIO_BYTES)));
    }
    let bytes = std::fs::read(path).map_err(|error| fail(format!("cannot read the scenario: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].split(|byte| *byte == b'\n').count();
        fail(format!("the file is not UTF-8 text, from line {line} on"))
    })
}

/// The text of a scenario with what it inherits, not yet checked.
///
/// # Errors
/// It is not TOML, or what it extends cannot be read.
pub fn source_of(name: &str, text: &str, base: &Path) -> Result<Source, Problems> {
    let (mut source, syntax) = Source::parse(name, text);
    match syntax.map_or_else(|| inherit::inherit(&mut source, base), Err) {
        Ok(()) => Ok(source),
        Err(problem) => Err(Problems::new(Arc::new(source), vec![problem])),
    }
}
