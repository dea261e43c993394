//! From the tree of values to the structs.

use serde::de;

use crate::file::ScenarioFile;
use crate::problem::Problem;
use crate::source::{Node, Value};

/// Reads a tree that has passed the schema's check.
///
/// # Errors
/// What the check should have found; it is kept for the case that schema and structs disagree.
pub fn read<T: de::DeserializeOwned>(root: &Node) -> Result<T, Problem> {
    T::deserialize(to_toml(root, "")).map_err(toml_problem)
}

/// The same for a scenario.
///
/// # Errors
/// As those of [`read`].
pub fn scenario(root: &Node) -> Result<ScenarioFile, Problem> {
    ScenarioFile::from_toml(to_toml(root, "")).map_err(toml_problem)
}

// The signature is that of what it maps.
#[allow(clippy::needless_pass_by_value)]
fn toml_problem(error: toml::de::Error) -> Problem {
    Problem::general(error.to_string().trim_end().to_owned())
}

fn to_toml(node: &Node, key: &str) -> toml::Value {
    match &node.value {
        Value::Bool(flag) => toml::Value::Boolean(*flag),
        Value::Integer(number) => toml::Value::Integer(i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Float(text) => toml::Value::Float(Value::float(text)),
        Value::String(text) | Value::Datetime(text) => toml::Value::String(text.clone()),
        // Numbers that are data keep their text: they are rounded once, when their type is known.
        Value::Array(rows) if key == "values" => toml::Value::Array(rows.iter().map(texts).collect()),
        Value::Array(items) => toml::Value::Array(items.iter().map(|item| to_toml(item, "")).collect()),
        Value::Table(table) => {
            toml::Value::Table(table.iter().map(|(key, node)| (key.clone(), to_toml(node, key))).collect())
        }
    }
}

fn texts(node: &Node) -> toml::Value {
    match &node.value {
        Value::Array(items) => toml::Value::Array(items.iter().map(texts).collect()),
        Value::Integer(number) => toml::Value::String(number.to_string()),
        Value::Float(text) => toml::Value::String(text.clone()),
        _ => to_toml(node, ""),
    }
}
