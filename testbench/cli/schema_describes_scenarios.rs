//! C-SCH-1: the schema that the program prints is complete and agrees with the loader.

use serde_json::Value as Json;

use crate::support::watershed;

fn schema() -> Json {
    let output = watershed(["schema"]);
    assert_eq!(output.status, 0);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Calls `visit` with the path and the schema of every key.
fn walk(schema: &Json, path: &str, visit: &mut dyn FnMut(&str, &Json)) {
    if let Some(properties) = schema["properties"].as_object() {
        for (key, inner) in properties {
            let path = format!("{path}.{key}");
            visit(&path, inner);
            walk(inner, &path, visit);
            walk(&inner["items"], &path, visit);
            walk(&inner["additionalProperties"], &path, visit);
        }
    }
}

#[test]
fn every_key_has_a_description() {
    let mut count = 0;
    walk(&schema(), "", &mut |path, schema| {
        count += 1;
        if path != ".collective.delay_cycles.random_max" {
            assert!(schema["description"].as_str().is_some_and(|text| text.len() > 10), "{path}: {schema}");
        }
    });
    assert!(count > 60, "{count}");
}

#[test]
fn every_number_has_bounds_and_unknown_keys_are_refused() {
    fn bounded(schema: &Json, path: &str) {
        if schema["type"] == "integer" {
            assert!(schema["minimum"].is_number() && schema["maximum"].is_number(), "{path}: {schema}");
        }
    }
    walk(&schema(), "", &mut |path, schema| {
        bounded(schema, path);
        bounded(&schema["items"], path);
        if schema["properties"].is_object() {
            assert_eq!(schema["additionalProperties"], false, "{path}");
        }
    });
    assert_eq!(schema()["additionalProperties"], false);
}

#[test]
fn defaults_and_words_are_in_the_schema() {
    let schema = schema();
    let at =
        |path: &str| schema.pointer(&format!("/properties/{}", path.replace('.', "/properties/"))).unwrap().clone();
    assert_eq!(at("switch.pipeline_stages")["default"], 1);
    assert_eq!(at("switch.ceng.stages")["maximum"], 6);
    assert_eq!(at("limits.watchdog_cycles")["default"], 100_000);
    assert!(at("switch.arbiter").to_string().contains("Arbiter"));
    assert!(schema["$defs"]["Arbiter"].to_string().contains("round-robin"));
    let text = schema.to_string();
    assert!(!text.contains("null"), "TOML has no null");
}

#[test]
fn a_value_at_each_bound_is_read_and_one_beyond_is_not() {
    let base = "family = \"piuma\"\n[topology]\nkind = \"die\"\n[[collective]]\nkind = \"allreduce\"\n[[armed.reduction]]\n\
                [[armed.fault]]\neffect = \"drop\"\nat = \"all\"\n[[armed.stranger]]\nend_point = 0\nreduction = \"r0\"\n\
                wrong = \"vni\"\n[[pbv.collective]]\n[[pbv.fault]]\neffect = \"drop\"\nat = \"all\"\n";
    let mut keys = Vec::new();
    walk(&schema(), "", &mut |path, schema| {
        if schema["type"] == "integer"
            && let (Some(low), Some(high)) = (schema["minimum"].as_i64(), schema["maximum"].as_i64())
        {
            let mut key = path.trim_start_matches('.').to_owned();
            for array in
                ["collective.", "armed.reduction.", "armed.fault.", "armed.stranger.", "pbv.collective.", "pbv.fault."]
            {
                if let Some(rest) = key.strip_prefix(array) {
                    key = format!("{array}0.{rest}");
                }
            }
            keys.push((key, low, high));
        }
    });
    assert!(keys.len() > 15);
    for (key, low, high) in keys {
        let lists = ["traffic", "multicast", "program", "host", "pbv.congestion"];
        let inner = [".late.", ".fails."].iter().any(|list| key.contains(list));
        if lists.iter().any(|list| key.starts_with(list)) || inner {
            continue;
        }
        for (value, legal) in [(low, true), (low.wrapping_sub(1), false), (high, true), (high.wrapping_add(1), false)] {
            let result = crate::support::load(base, &[&format!("{key}={value}")]);
            let out_of_range = result.err().is_some_and(|error| error.contains("out of range"));
            assert!(out_of_range != legal || value == i64::MIN, "{key} = {value}");
        }
    }
}
