//! What is kept of a point, and the columns that are made of it.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::file::Sweep;
use super::store::Row;
use watershed_scenario_interface::Runnable;

use watershed_scenario_interface::expr::Value;
use watershed_scenario_interface::result::{Document, upgraded};

/// Columns in front of those of the axes and behind those of the metrics.
pub const FIXED: [&str; 7] = ["point", "key", "scenario", "repetition", "seed", "status", "error"];

/// Columns that every sweep has, with their units; a run fills in those that it has a number for. Cycles are those of the
/// network's clock, whose frequency stands in `network_clock_mhz`.
const MEASURED: [(&str, &str); 26] = [
    ("network_clock_mhz", "MHz"),
    ("cycles", "cycles of the network clock"),
    ("time_ns", "ns"),
    ("latency_cycles", "cycles of the network clock"),
    ("latency_ns", "ns"),
    ("round_latency_cycles", "cycles of the network clock"),
    ("round_latency_ns", "ns"),
    ("elements_per_cycle", "elements a cycle of the network clock"),
    ("offered", "flits a node and cycle of the network clock"),
    ("accepted", "flits a node and cycle of the network clock"),
    ("packet_latency_cycles", "cycles of the network clock"),
    ("packet_latency_ns", "ns"),
    ("packet_latency_p99_cycles", "cycles of the network clock"),
    ("packet_latency_p99_ns", "ns"),
    ("saturated", "1 or 0"),
    ("flits", "flits"),
    ("busiest_link", "share of time"),
    ("head_wait_cycles", "cycles of the network clock"),
    ("engine_head_wait_cycles", "cycles of the network clock"),
    ("storage_bits", "bits"),
    ("adders", "adders"),
    ("gates", "NAND2"),
    ("area_um2", "um2"),
    ("period_ps", "ps"),
    ("energy_nj", "nJ"),
    ("power_mw", "mW"),
];

/// Names of the columns that every sweep has.
pub const BUILT_IN: [&str; MEASURED.len()] = {
    let mut names = [""; MEASURED.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = MEASURED[at].0;
        at += 1;
    }
    names
};

/// Names that columns once had, and those they have now.
pub const EARLIER: [(&str, &str); 4] = [
    ("packet_latency", "packet_latency_cycles"),
    ("packet_latency_p99", "packet_latency_p99_cycles"),
    ("job_cycles", "latency_cycles"),
    ("job_ns", "latency_ns"),
];

/// Before there were latencies of rounds, `latency_cycles` was that of a round in the families that have rounds: which of the
/// columns of that time is which of today's.
const EARLIER_LATENCY: [(&str, &str, &str); 4] = [
    ("latency_cycles", "job_cycles", "latency_cycles"),
    ("latency_ns", "job_ns", "latency_ns"),
    ("round_latency_cycles", "latency_cycles", "latency_cycles"),
    ("round_latency_ns", "latency_ns", "latency_ns"),
];

/// Ends of names that say a unit.
const UNITS: [(&str, &str); 18] = [
    ("_ns", "ns"),
    ("_ps", "ps"),
    ("_um2", "um2"),
    ("_nj", "nJ"),
    ("_mw", "mW"),
    ("_us", "us"),
    ("_ms", "ms"),
    ("_mhz", "MHz"),
    ("_ghz", "GHz"),
    ("_hz", "Hz"),
    ("_cycles", "cycles of the network clock"),
    ("_gbps", "GB/s"),
    ("_bytes", "bytes"),
    ("_bits", "bits"),
    ("_flits", "flits"),
    ("_words", "words"),
    ("_mm", "mm"),
    ("_percent", "%"),
];

/// Whether an expression may read this name: a column, or the path of a value of the result document.
pub fn is_known(name: &str) -> bool {
    BUILT_IN.contains(&name)
        || EARLIER.iter().any(|(earlier, _)| *earlier == name)
        || matches!(name, "scenario" | "seed" | "repetition")
        || name.contains('.')
}

/// The unit that the end of a name says.
fn unit_of_name(name: &str) -> Option<&'static str> {
    UNITS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, unit)| *unit)
}

/// The unit of a column; empty where it has none.
pub fn unit(sweep: &Sweep, name: &str) -> String {
    if let Some((_, unit)) = MEASURED.iter().find(|(column, _)| *column == name) {
        return (*unit).to_owned();
    }
    let metrics = sweep.file.metric.iter().map(|metric| (&metric.name, &metric.unit));
    let objectives = sweep.file.objective.iter().map(|objective| (&objective.name, &objective.unit));
    if let Some(unit) = metrics.chain(objectives).find_map(|(metric, unit)| (metric == name).then_some(unit.as_ref()?))
    {
        return unit.clone();
    }
    let axes = || sweep.scenarios.iter().flat_map(|entry| &entry.axes);
    if let Some(unit) = axes().find_map(|axis| if axis.columns == [name] { axis.unit.clone() } else { None }) {
        return unit;
    }
    let key = axes().find_map(|axis| axis.columns.iter().position(|column| column == name).map(|at| &axis.keys[at]));
    unit_of_name(name).or_else(|| unit_of_name(key?)).unwrap_or_default().to_owned()
}

/// A column with its unit, where its name does not say it.
pub fn titled(sweep: &Sweep, name: &str) -> String {
    let unit = unit(sweep, name);
    let unit = unit.trim_end_matches(" of the network clock");
    if unit.is_empty() || unit_of_name(name).is_some() || unit == name || unit == "cycles" && name == "cycles" {
        name.to_owned()
    } else {
        format!("{name} ({unit})")
    }
}
/// What a point's hardware costs and its run takes: sums, the shortest period and its block, the energy by event.
fn cost_of(document: &Document, loaded: &Runnable) -> Option<Json> {
    let technology = loaded.technology().ok()?;
    let cost = loaded.engines.cost(&loaded.loaded, &technology).ok()?;
    let energy = loaded.energy(document, &cost, &technology);
    let mut json = serde_json::to_value(cost.total).ok()?;
    json["period_ps"] = json!(cost.period_ps);
    json["slowest"] = json!(cost.slowest);
    json["energy_nj"] = json!(energy.energy_nj);
    json["power_mw"] = json!(energy.power_mw);
    for event in energy.events {
        json["energy"][event.event.replace(", ", "_").replace(' ', "_")] = json!(event.energy_nj);
    }
    Some(json)
}

/// What is kept of a point: the result document without what is large, and its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PointResult(Json);

impl PointResult {
    /// What is kept of a run.
    pub fn new(document: &Document, loaded: &Runnable) -> Self {
        let mut json = serde_json::to_value(document).unwrap_or(Json::Null);
        if let Some(object) = json.as_object_mut() {
            for large in ["config", "scenario", "stamp", "roundings"] {
                object.shift_remove(large);
            }
        }
        for collective in json["collectives"].as_array_mut().into_iter().flatten().filter_map(Json::as_object_mut) {
            collective.shift_remove("result");
            collective.shift_remove("oracle");
        }
        let armed = json.get_mut("armed").and_then(|armed| armed.get_mut("reductions"));
        for reduction in armed.and_then(Json::as_array_mut).into_iter().flatten().filter_map(Json::as_object_mut) {
            reduction.shift_remove("listed_rounds");
            reduction.shift_remove("distinct");
        }
        json["seed"] = json!(loaded.scenario.seed);
        json["cost"] = cost_of(document, loaded).unwrap_or(Json::Null);
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

    fn compute(&self, name: &str, loaded: &Runnable) -> Option<f64> {
        let number = |path: &str| self.value(path).and_then(Json::as_f64);
        let most = |values: Vec<f64>| values.into_iter().reduce(f64::max);
        // Of programs, whose calls are no jobs, the longest call; of a workload, all of it.
        let latency = || {
            most(self.numbers("jobs", "latency_cycles"))
                .or_else(|| most(self.numbers("collectives", "latency_cycles")))
                .or_else(|| number("workload.end_cycle"))
        };
        let round = || {
            let items = self.value("jobs").and_then(Json::as_array);
            most(
                items
                    .into_iter()
                    .flatten()
                    .filter_map(|job| job.pointer("/round_latency_cycles/mean")?.as_f64())
                    .collect(),
            )
        };
        let packets = || most(self.numbers("traffic", "mean_latency_cycles"));
        let slow_packets = || {
            let items = self.value("traffic").and_then(Json::as_array);
            most(items.into_iter().flatten().filter_map(|item| item.get("latency")?.get("p99")?.as_f64()).collect())
        };
        let waits = |path: &str| {
            let causes = self.value(path).and_then(Json::as_object)?;
            Some(causes.values().filter_map(Json::as_f64).sum())
        };
        let hertz = loaded.scenario.clock.frequency_hz as f64;
        let ns = |cycles: Option<f64>| cycles.map(|cycles| cycles * 1e9 / hertz);
        match name {
            "network_clock_mhz" => Some(hertz / 1e6),
            "cycles" => number("cycles"),
            "time_ns" => ns(number("cycles")),
            "latency_cycles" => latency(),
            "latency_ns" => ns(latency()),
            "round_latency_cycles" => round(),
            "round_latency_ns" => ns(round()),
            "elements_per_cycle" => self.numbers("jobs", "elements_per_cycle").into_iter().reduce(f64::min),
            "offered" => number("measure.offered"),
            "accepted" => number("measure.accepted_mean"),
            "packet_latency_cycles" => packets(),
            "packet_latency_ns" => ns(packets()),
            "packet_latency_p99_cycles" => slow_packets(),
            "packet_latency_p99_ns" => ns(slow_packets()),
            "saturated" => {
                self.value("measure.saturated").and_then(Json::as_bool).map(|truth| f64::from(u8::from(truth)))
            }
            "flits" => Some(self.numbers("links.levels", "flits").into_iter().sum()),
            "busiest_link" => most(self.numbers("links.levels", "utilisation_max")),
            "head_wait_cycles" => waits("links.waits.links"),
            "engine_head_wait_cycles" => waits("links.waits.engines"),
            "storage_bits" | "adders" | "gates" | "area_um2" | "period_ps" | "energy_nj" | "power_mw" => {
                number(&format!("cost.{name}"))
            }
            _ => None,
        }
    }

    /// Mean latency of packets in cycles, of the traffic that waits longest.
    pub fn packet_latency(&self) -> Option<f64> {
        self.built_in("packet_latency_cycles").and_then(Json::as_f64)
    }

    /// Whether the network could not carry what was offered.
    pub fn is_saturated(&self) -> bool {
        self.value("measure.saturated").and_then(Json::as_bool).unwrap_or(false)
    }

    /// The value of a column that every sweep has, also under the name it once had, in what it is asked by and in what was kept.
    fn built_in(&self, name: &str) -> Option<&Json> {
        let columns = self.value("columns")?;
        if columns.get("round_latency_cycles").is_none()
            && let Some((job, round)) =
                EARLIER_LATENCY.iter().find_map(|(now, job, round)| (*now == name).then_some((job, round)))
        {
            return columns.get(job).filter(|value| !value.is_null()).or_else(|| columns.get(round));
        }
        let others = EARLIER.iter().filter_map(|&(earlier, now)| match name {
            _ if name == earlier => Some(now),
            _ if name == now => Some(earlier),
            _ => None,
        });
        std::iter::once(name).chain(others).find_map(|name| columns.get(name))
    }

    /// The value of a column: a built-in one, or a metric of the sweep.
    pub fn column(&self, sweep: &Sweep, name: &str) -> Option<Value> {
        if let Some((_, expr)) = sweep.metrics.iter().find(|(metric, _)| metric == name) {
            return expr.eval(&|path| self.named(path));
        }
        self.built_in(name).and_then(Value::of_json)
    }

    /// What an expression sees under a name: a built-in column, or a value of the result document by its path.
    pub fn named(&self, path: &str) -> Option<Value> {
        self.built_in(path).or_else(|| self.value(path)).and_then(Value::of_json)
    }

    /// Paths of all numbers and truths of the result document.
    pub fn paths(&self) -> Vec<String> {
        fn visit(json: &Json, path: &str, out: &mut Vec<String>) {
            let below = |step: &str| if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") };
            match json {
                Json::Object(table) => table.iter().for_each(|(name, json)| visit(json, &below(name), out)),
                Json::Array(items) => {
                    items.iter().enumerate().for_each(|(at, json)| visit(json, &below(&at.to_string()), out));
                }
                Json::Number(_) | Json::Bool(_) => out.push(path.to_owned()),
                Json::Null | Json::String(_) => {}
            }
        }
        let mut out = Vec::new();
        visit(&self.0, "", &mut out);
        out
    }
}

/// Names of all columns of a sweep.
pub fn columns(sweep: &Sweep) -> Vec<String> {
    let axes = sweep.axis_names();
    let metrics = BUILT_IN.iter().map(ToString::to_string).chain(sweep.metrics.iter().map(|(name, _)| name.clone()));
    let front = ["point", "key", "scenario", "repetition", "seed"].map(String::from);
    front.into_iter().chain(axes).chain(["status".into()]).chain(metrics).chain(["error".into()]).collect()
}

/// What column `name` of an axis has in a row. Earlier versions kept linked values as one; what was set has them one by one.
pub fn axis(sweep: &Sweep, row: &Row, name: &str) -> Option<String> {
    if let Some(value) = row.axes.get(name) {
        return Some(value.clone());
    }
    let entry = sweep.scenarios.iter().find(|entry| entry.name == row.scenario)?;
    let key = entry.axes.iter().find_map(|axis| {
        let at = axis.columns.iter().position(|column| column == name)?;
        axis.keys.get(at)
    })?;
    let value = row.sets.iter().rev().find_map(|set| set.strip_prefix(key.as_str())?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_owned())
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
    cells.extend(sweep.axis_names().iter().map(|name| axis(sweep, row, name).unwrap_or_default()));
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

/// The units of all columns as CSV.
pub fn units_csv(sweep: &Sweep) -> String {
    let mut out = String::from("column,unit\n");
    for name in columns(sweep) {
        let _ = writeln!(out, "{},{}", field(&name), field(&unit(sweep, &name)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_an_older_document_are_read_in_todays_shape() {
        let old = r#"{"schema_version": 1, "links": {"busiest": [{"name": "a", "stalls": 7}]}}"#;
        let facts = serde_json::from_str::<PointResult>(old).unwrap().upgraded().unwrap();
        assert_eq!(facts.value("links.busiest.0.head_wait_cycles"), Some(&json!(7)));
        assert_eq!(facts.value("links.busiest.0.stalls"), None);
    }

    #[test]
    fn round_latencies_of_older_stores_are_migrated() {
        let read = |columns: Json, name: &str| PointResult::of(json!({ "columns": columns })).named(name);
        let number = |number: f64| Some(Value::Number(number));
        let armed = json!({ "latency_cycles": 10, "latency_ns": 20, "job_cycles": 30, "job_ns": 60 });
        for (name, value) in
            [("latency_cycles", 30.0), ("latency_ns", 60.0), ("round_latency_cycles", 10.0), ("round_latency_ns", 20.0)]
        {
            assert_eq!(read(armed.clone(), name), number(value), "{name}");
        }
        // A workload has no job.
        let workload = json!({ "latency_cycles": 7, "job_cycles": null });
        assert_eq!(read(workload, "latency_cycles"), number(7.0));
        let now = json!({ "latency_cycles": 30, "job_cycles": 30, "round_latency_cycles": 10 });
        assert_eq!(read(now.clone(), "latency_cycles"), number(30.0));
        assert_eq!(read(now, "round_latency_cycles"), number(10.0));
    }
}
