//! Operands as they are given: patterns, JSON.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::arguments::Arguments;
use crate::alu::lane;
use watershed_arith::DType;
use watershed_scenario_interface::{names, number};

/// The name of the input and its text, without a byte order mark and blanks around it.
pub(super) fn read_input(arguments: &Arguments) -> Result<(String, String), String> {
    read(arguments.input.as_deref())
}

/// The same of a file, or of the standard input.
pub(crate) fn read(input: Option<&Path>) -> Result<(String, String), String> {
    let path = input.map_or_else(|| PathBuf::from("-"), Path::to_owned);
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(&path).map(|read| bytes = read)
    };
    read.map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = bytes_lines(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        format!("{name}: line {line} is no UTF-8 text")
    })?;
    Ok((name, text.trim_start_matches('\u{feff}').to_owned()))
}

fn bytes_lines(bytes: &[u8]) -> usize {
    bytes.split(|&byte| byte == b'\n').count()
}

pub(crate) fn parse(dtype: DType, text: &str) -> Result<Vec<u64>, String> {
    if text.trim_start().starts_with(['[', '{']) {
        return json_operands(dtype, text);
    }
    let mut operands = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        for word in line.split([' ', '\t', ',', '\r']).filter(|word| !word.is_empty()) {
            operands.push(lane(dtype, word).map_err(|error| format!("line {}: {error}", number + 1))?);
        }
    }
    Ok(operands)
}

/// A list, or an object with nothing but the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperandsFile {
    pub(super) operands: Vec<serde_json::Value>,
}

/// Operands in JSON: bit patterns in strings, or numbers, which are read as they are written and rounded once.
fn json_operands(dtype: DType, text: &str) -> Result<Vec<u64>, String> {
    let json = |error: serde_json::Error| error.to_string();
    let list = if text.trim_start().starts_with('[') {
        serde_json::from_str::<Vec<serde_json::Value>>(text).map_err(json)?
    } else {
        serde_json::from_str::<OperandsFile>(text).map_err(json)?.operands
    };
    // The list is sound JSON. If its elements are plain, they stand between its brackets with commas between them.
    if let Some(k) = list.iter().position(|value| !value.is_string() && !value.is_number()) {
        return Err(format!("operand {k}: {} is no bit pattern in a string and no number", list[k]));
    }
    let start = text.find('[').map_or(0, |at| at + 1);
    let mut rest = &text[start..];
    let mut operands = Vec::with_capacity(list.len());
    for (k, value) in list.iter().enumerate() {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        let at = text.len() - rest.len();
        let end = match rest.strip_prefix('"') {
            Some(inside) => closing_quote(inside) + 2,
            None => rest.find(|c: char| ",]".contains(c) || c.is_ascii_whitespace()).unwrap_or(rest.len()),
        };
        let written = &rest[..end];
        rest = &rest[end..];
        let read = match value.as_str() {
            Some(pattern) => lane(dtype, pattern),
            None => {
                number::parse(written, names::layout(dtype)).map_err(|why| format!("{written} is no {dtype}: {why}"))
            }
        };
        operands.push(read.map_err(|error| {
            let line = bytes_lines(&text.as_bytes()[..at]);
            format!("operand {k} in line {line}: {error}")
        })?);
    }
    Ok(operands)
}

/// Where the string ends that starts before this text.
fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.unwrap_or(text.len())
}
