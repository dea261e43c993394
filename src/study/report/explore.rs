//! A sweep as an interactive page: a plot of any two columns, a table that sorts and filters, and details of the
//! selected point.

use std::fmt::Write;

use serde_json::{Value as Json, json};

use super::super::sweep::table::{BUILT_IN, axis, unit};
use super::super::sweep::{Row, Sweep};
use crate::plot::escape;
use watershed_scenario_interface::expr::Value;

/// JSON inside of a page: nothing in it ends the element that holds it.
pub(super) fn embedded(json: &Json) -> String {
    json.to_string().replace('<', "\\u003c")
}

fn cell(value: Option<Value>) -> Json {
    match value {
        Some(Value::Number(number)) if number.is_finite() => json!(number),
        Some(Value::Truth(truth)) => json!(u8::from(truth)),
        Some(Value::Word(word)) => json!(word),
        _ => Json::Null,
    }
}

/// A number if it is one, else the words.
fn number_or_text(text: &str) -> Json {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => json!(number),
        _ if text.is_empty() => Json::Null,
        _ => json!(text),
    }
}

/// What the page knows of a sweep: columns, and how each point is run.
fn data(sweep: &Sweep, rows: &[Row]) -> Json {
    let column = |name: &str, kind: &str, values: Vec<Json>| {
        let unit = unit(sweep, name);
        json!({ "name": name, "kind": kind, "unit": unit.trim_end_matches(" of the network clock"), "values": values })
    };
    let mut columns = vec![
        column("point", "fixed", rows.iter().map(|row| json!(row.number)).collect()),
        column("scenario", "fixed", rows.iter().map(|row| json!(row.scenario)).collect()),
    ];
    if sweep.file.repetitions > 1 {
        columns.push(column("repetition", "fixed", rows.iter().map(|row| json!(row.repetition)).collect()));
    }
    for name in sweep.axis_names() {
        let values =
            rows.iter().map(|row| axis(sweep, row, &name).map_or(Json::Null, |text| number_or_text(&text))).collect();
        columns.push(column(&name, "axis", values));
    }
    // What is wanted stands in front of all else that was measured.
    let wanted = sweep.objectives.iter().map(|(name, _)| name.as_str());
    let metrics = sweep.metrics.iter().map(|(name, _)| name.as_str());
    let mut names: Vec<&str> = Vec::new();
    for name in wanted.chain(metrics).chain(BUILT_IN) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let value = |row: &Row| cell(row.facts.as_ref().and_then(|facts| facts.column(sweep, name)));
        let values: Vec<Json> = rows.iter().map(value).collect();
        if values.iter().any(|value| !value.is_null()) {
            columns.push(column(name, "metric", values));
        }
    }
    columns.push(column("status", "fixed", rows.iter().map(|row| json!(row.status)).collect()));
    let errors = rows.iter().map(|row| number_or_text(&row.error)).collect::<Vec<Json>>();
    if errors.iter().any(|error| !error.is_null()) {
        columns.push(column("error", "fixed", errors));
    }
    let goal = |goal: &super::super::sweep::file::Goal| match goal {
        super::super::sweep::file::Goal::Minimise => "minimise",
        super::super::sweep::file::Goal::Maximise => "maximise",
    };
    json!({
        "columns": columns,
        "objectives": sweep.objectives.iter().map(|(name, of)| json!({ "name": name, "goal": goal(of) })).collect::<Vec<_>>(),
        "status": rows.iter().map(|row| row.status.as_str()).collect::<Vec<_>>(),
        "sets": rows.iter().map(|row| &row.sets).collect::<Vec<_>>(),
        "units": watershed_scenario_interface::units::written().collect::<Vec<_>>(),
        "commands": rows.iter().map(Row::command).collect::<Vec<_>>(),
    })
}

/// The tool; it shows itself where scripts run.
pub(super) fn tool(sweep: &Sweep, rows: &[Row], out: &mut String) {
    let example = sweep.objectives.first().map_or("latency_ns", |(name, _)| name.as_str());
    let _ = writeln!(
        out,
        "<div class=\"explore\" hidden><h3>All points</h3>\n<div class=\"controls\">\
         <label>x axis <select class=\"x\"></select></label><label><input type=\"checkbox\" class=\"x-log\"> logarithmic</label>\
         <label>y axis <select class=\"y\"></select></label><label><input type=\"checkbox\" class=\"y-log\"> logarithmic</label>\
         <label>colour by <select class=\"by\"></select></label>\
         <label>dragging <select class=\"drag\"><option value=\"zoom\">zooms (double click: all)</option><option value=\"brush\">selects points</option></select></label></div>\n\
         <p class=\"note\">The legend switches series on and off; a click on a point or a row shows its configuration and its command.</p>\n\
         <div class=\"plot\"></div>\n\
         <div class=\"picked-point\" hidden><h4>The point</h4><dl class=\"facts small\"></dl><h4>Its configuration</h4><pre class=\"sets\"></pre>\
         <h4>Run it again</h4><p class=\"cmd\"><button class=\"copy\" type=\"button\" title=\"copy\">copy</button><code class=\"command\"></code></p></div>\n\
         <div class=\"controls\"><label class=\"wide\">filter <input class=\"filter\" type=\"search\" placeholder=\"{} &lt; 1000 and status == 'ok'\"></label>\
         <button class=\"reset\" type=\"button\">all points</button><span class=\"count\"></span>\
         <button class=\"previous\" type=\"button\">previous</button><span class=\"page\"></span><button class=\"next\" type=\"button\">next</button>\
         <span class=\"wrong no\" role=\"alert\"></span></div>\n\
         <div class=\"scroll\"><table class=\"points\"><thead><tr></tr></thead><tbody></tbody></table></div>\n\
         <script type=\"application/json\" class=\"points\">{}</script></div>",
        escape(example),
        embedded(&data(sweep, rows))
    );
}
