//! What is kept of a point, and the columns that are made of it.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::file::Sweep;
use super::store::Row;
use watershed_scenario::Loaded;
use watershed_scenario::cost;
use watershed_scenario::expr::Value;
use watershed_scenario::result::{Document, upgraded};

/// Columns in front of those of the axes and behind those of the metrics.
pub const FIXED: [&str; 7] = ["point", "key", "scenario", "repetition", "seed", "status", "error"];

/// Columns that every sweep has; a run fills in those that it has a number for.
pub const BUILT_IN: [&str; 15] = [
    "cycles",
    "latency_cycles",
    "latency_ns",
    "job_ns",
    "elements_per_cycle",
    "offered",
    "accepted",
    "packet_latency",
    "packet_latency_p99",
    "saturated",
    "flits",
    "busiest_link",
    "storage_bits",
    "adders",
    "gates",
];

/// What is kept of a point: the result document without what is large, and its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(Json);

impl Facts {
    /// What is kept of a run.
    pub fn new(document: &Document, loaded: &Loaded) -> Self {
        let mut json = serde_json::to_value(document).unwrap_or(Json::Null);
        if let Some(object) = json.as_object_mut() {
            for large in ["config", "scenario", "stamp", "roundings"] {
                object.shift_remove(large);
            }
        }
        for collective in json["collectives"].as_array_mut().into_iter().flatten().filter_map(Json::as_object_mut) {
            collective.shift_remove("results");
            collective.shift_remove("oracle");
        }
        let armed = json.get_mut("armed").and_then(|armed| armed.get_mut("reductions"));
        for reduction in armed.and_then(Json::as_array_mut).into_iter().flatten().filter_map(Json::as_object_mut) {
            reduction.shift_remove("rounds");
            reduction.shift_remove("distinct");
        }
        json["seed"] = json!(loaded.scenario.seed);
        let counted = cost::cost(loaded).map(|cost| cost.total);
        json["cost"] = counted.map_or(Json::Null, |total| serde_json::to_value(total).unwrap_or(Json::Null));
        let mut facts = Self(json);
        let columns: Vec<(&str, Option<f64>)> =
            BUILT_IN.iter().map(|name| (*name, facts.compute(name, loaded))).collect();
        for (name, value) in columns {
            facts.0["columns"][name] = value.map_or(Json::Null, |value| json!(value));
        }
        facts
    }

    /// Facts of this piece of JSON.
    pub fn of(json: Json) -> Self {
        Self(json)
    }

    /// In today's shape of a document; `None` if it is of a later one.
    #[must_use]
    pub fn upgraded(self) -> Option<Self> {
        upgraded(self.0).ok().map(Self)
    }

    /// A value by the path of names and numbers, `collectives.0.latency_cycles`.
    pub fn value(&self, path: &str) -> Option<&Json> {
        path.split('.').try_fold(&self.0, |json, step| match json {
            Json::Array(items) => items.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        })
    }

    fn numbers(&self, list: &str, key: &str) -> Vec<f64> {
        let items = self.value(list).and_then(Json::as_array);
        items.into_iter().flatten().filter_map(|item| item.get(key)?.as_f64()).collect()
    }

    fn compute(&self, name: &str, loaded: &Loaded) -> Option<f64> {
        let number = |path: &str| self.value(path).and_then(Json::as_f64);
        let most = |values: Vec<f64>| values.into_iter().reduce(f64::max);
        let latency = || {
            most(self.numbers("collectives", "latency_cycles"))
                .or_else(|| most(self.numbers("armed.reductions", "latency_mean_cycles")))
                .or_else(|| most(self.numbers("pbv.collectives", "latency_mean_cycles")))
                .or_else(|| most(self.numbers("hosts", "latency_cycles")))
        };
        match name {
            "cycles" => number("cycles"),
            "latency_cycles" => latency(),
            "latency_ns" => latency().map(|cycles| cycles * 1e9 / loaded.scenario.clock.frequency_hz as f64),
            "job_ns" => most(
                ["collectives", "armed.reductions", "pbv.collectives", "hosts"]
                    .into_iter()
                    .flat_map(|list| self.numbers(list, "job_ns"))
                    .collect(),
            ),
            "elements_per_cycle" => self.numbers("collectives", "elements_per_cycle").into_iter().reduce(f64::min),
            "offered" => number("measure.offered"),
            "accepted" => number("measure.accepted_mean"),
            "packet_latency" => most(self.numbers("traffic", "mean_latency_cycles")),
            "packet_latency_p99" => {
                let items = self.value("traffic").and_then(Json::as_array);
                most(items.into_iter().flatten().filter_map(|item| item.get("latency")?.get("p99")?.as_f64()).collect())
            }
            "saturated" => {
                self.value("measure.saturated").and_then(Json::as_bool).map(|truth| f64::from(u8::from(truth)))
            }
            "flits" => Some(self.numbers("links.levels", "flits").into_iter().sum()),
            "busiest_link" => most(self.numbers("links.levels", "utilisation_max")),
            "storage_bits" | "adders" | "gates" => number(&format!("cost.{name}")),
            _ => None,
        }
    }

    /// Mean latency of packets in cycles, of the traffic that waits longest.
    pub fn packet_latency(&self) -> Option<f64> {
        self.value("columns.packet_latency").and_then(Json::as_f64)
    }

    /// Whether the network could not carry what was offered.
    pub fn is_saturated(&self) -> bool {
        self.value("measure.saturated").and_then(Json::as_bool).unwrap_or(false)
    }

    /// The value of a column: a built-in one, or a metric of the sweep.
    pub fn column(&self, sweep: &Sweep, name: &str) -> Option<Value> {
        if let Some((_, expr)) = sweep.metrics.iter().find(|(metric, _)| metric == name) {
            return expr.eval(&|path| {
                let built_in = self.value("columns").and_then(|columns| columns.get(path));
                built_in.or_else(|| self.value(path)).and_then(Value::of_json)
            });
        }
        self.value("columns")?.get(name).and_then(Value::of_json)
    }
}

/// Names of all columns of a sweep.
pub fn columns(sweep: &Sweep) -> Vec<String> {
    let axes = sweep.axis_names();
    let metrics = BUILT_IN.iter().map(ToString::to_string).chain(sweep.metrics.iter().map(|(name, _)| name.clone()));
    let front = ["point", "key", "scenario", "repetition", "seed"].map(String::from);
    front.into_iter().chain(axes).chain(["status".into()]).chain(metrics).chain(["error".into()]).collect()
}

/// One cell, as text; empty where there is no value.
pub fn cells(sweep: &Sweep, row: &Row) -> Vec<String> {
    let mut cells = vec![
        row.number.to_string(),
        row.key.clone(),
        row.scenario.clone(),
        row.repetition.to_string(),
        row.seed.to_string(),
    ];
    cells.extend(sweep.axis_names().iter().map(|name| row.axes.get(name).cloned().unwrap_or_default()));
    cells.push(row.status.clone());
    let metrics = BUILT_IN.iter().copied().chain(sweep.metrics.iter().map(|(name, _)| name.as_str()));
    for name in metrics {
        let value = row.facts.as_ref().and_then(|facts| facts.column(sweep, name));
        cells.push(match value {
            None => String::new(),
            Some(Value::Number(number)) => super::file::number(number),
            Some(Value::Truth(truth)) => u8::from(truth).to_string(),
            Some(Value::Word(word)) => word,
        });
    }
    cells.push(row.error.clone());
    cells
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"").replace(['\n', '\r'], " "))
    } else {
        text.to_owned()
    }
}

/// The table as CSV: rows in the order of their numbers, nothing in it that changes from run to run.
pub fn csv(sweep: &Sweep, rows: &[Row]) -> String {
    let mut out = columns(sweep).iter().map(|name| field(name)).collect::<Vec<_>>().join(",") + "\n";
    for row in rows {
        let cells: Vec<String> = cells(sweep, row).iter().map(|cell| field(cell)).collect();
        let _ = writeln!(out, "{}", cells.join(","));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_an_older_document_are_read_in_todays_shape() {
        let old = r#"{"schema_version": 1, "links": {"busiest": [{"name": "a", "stalls": 7}]}}"#;
        let facts = serde_json::from_str::<Facts>(old).unwrap().upgraded().unwrap();
        assert_eq!(facts.value("links.busiest.0.head_wait_cycles"), Some(&json!(7)));
        assert_eq!(facts.value("links.busiest.0.stalls"), None);
    }
}
