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
                wrong = \"vni\"\n[[pbv.collective]]\n[[pbv.fault]]\neffect = \"drop\"\nat = \"all\"\n[[pbv.stranger]]\n\
                end_point = 0\ncollective = \"c0\"\nwrong = \"sender\"\nuntil_cycle = 9\n";
    let mut keys = Vec::new();
    walk(&schema(), "", &mut |path, schema| {
        if schema["type"] == "integer"
            && let (Some(low), Some(high)) = (schema["minimum"].as_i64(), schema["maximum"].as_i64())
        {
            let mut key = path.trim_start_matches('.').to_owned();
            for array in [
                "collective.",
                "armed.reduction.",
                "armed.fault.",
                "armed.stranger.",
                "pbv.collective.",
                "pbv.fault.",
                "pbv.stranger.",
            ] {
                if let Some(rest) = key.strip_prefix(array) {
                    key = format!("{array}0.{rest}");
                }
            }
            keys.push((key, low, high));
        }
    });
    assert!(keys.len() > 15);
    for (key, low, high) in keys {
        let lists = ["job", "traffic", "multicast", "program", "host", "pbv.congestion"];
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

/// A validator of its own, for the keywords that the schema uses; one that it does not know is an error.
fn validate(root: &Json, schema: &Json, value: &Json, at: &str) -> Result<(), String> {
    let fail = |what: &str| Err(format!("{at}: {what}"));
    let Some(object) = schema.as_object() else {
        return if *schema == Json::Bool(false) { fail("is not allowed") } else { Ok(()) };
    };
    let is = |kind: &Json| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("{other}"),
    };
    let any = |list: &Json| list.as_array().unwrap().iter().filter(|of| validate(root, of, value, at).is_ok()).count();
    let properties = object.get("properties").and_then(Json::as_object);
    let patterns = object.get("patternProperties").and_then(Json::as_object);
    for (key, rule) in object {
        let text = value.as_str();
        let good = match key.as_str() {
            "$schema" | "title" | "description" | "default" | "$defs" | "then" => true,
            "type" => rule.as_array().map_or_else(|| is(rule), |list| list.iter().any(is)),
            "$ref" => {
                let to = root.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap();
                validate(root, to, value, at)?;
                true
            }
            "anyOf" => any(rule) > 0,
            "oneOf" => any(rule) == 1,
            "not" => validate(root, rule, value, at).is_err(),
            "if" => {
                if validate(root, rule, value, at).is_ok() {
                    validate(root, &object["then"], value, at)?;
                }
                true
            }
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "minLength" => text.is_none_or(|text| text.chars().count() as u64 >= rule.as_u64().unwrap()),
            "minItems" => value.as_array().is_none_or(|list| list.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|list| list.len() as u64 <= rule.as_u64().unwrap()),
            "minProperties" => value.as_object().is_none_or(|of| of.len() as u64 >= rule.as_u64().unwrap()),
            "required" => value
                .as_object()
                .is_none_or(|of| rule.as_array().unwrap().iter().all(|key| of.contains_key(key.as_str().unwrap()))),
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    validate(root, rule, item, &format!("{at}[{number}]"))?;
                }
                true
            }
            "properties" => {
                for (key, inner) in value.as_object().into_iter().flatten() {
                    if let Some(rule) = rule.get(key) {
                        validate(root, rule, inner, &format!("{at}.{key}"))?;
                    }
                }
                true
            }
            "patternProperties" | "additionalProperties" => {
                for (key, inner) in value.as_object().into_iter().flatten() {
                    let number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
                    let pattern = patterns.filter(|_| number).map(|of| {
                        assert!(of.len() == 1 && of.contains_key("^[0-9]+$"), "{of:?}");
                        &of["^[0-9]+$"]
                    });
                    let known = properties.is_some_and(|of| of.contains_key(key));
                    let rule = if known { None } else { pattern.or(object.get("additionalProperties")) };
                    if let Some(rule) = rule {
                        validate(root, rule, inner, &format!("{at}.{key}"))?;
                    }
                }
                true
            }
            other => panic!("the validator does not know {other}"),
        };
        if !good {
            return fail(&format!("{value} breaks {key}: {rule}"));
        }
    }
    Ok(())
}

fn read(text: &str) -> Json {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

#[test]
fn every_shipped_scenario_validates() {
    let schema = schema();
    for (path, text) in watershed::scenario::shipped::SHIPPED {
        validate(&schema, &schema, &read(text), path).unwrap();
    }
    for (arguments, folder) in [(["sweep", "--schema"], "sweeps"), (["study", "--schema"], "studies")] {
        let arguments = if folder == "studies" { vec!["study", "--schema"] } else { arguments.to_vec() };
        let output = watershed(arguments);
        let Ok(schema) = serde_json::from_str::<Json>(&output.stdout) else { panic!("{}", output.stderr) };
        for file in crate::support::files(&format!("testbench/{folder}"), "toml") {
            let text = std::fs::read_to_string(&file).unwrap();
            validate(&schema, &schema, &read(&text), &file.display().to_string()).unwrap();
        }
    }
}

#[test]
fn files_that_extend_others_may_leave_out_keys_and_change_elements() {
    let schema = schema();
    let of = |text: &str| validate(&schema, &schema, &read(text), "");
    let base = "extends = \"allreduce-die\"\n";
    for good in [
        "",
        "collective.0.elements = 64\n",
        "topology.tiles = 5\n",
        "[collective.0]\nelements = 3\n[collective.0.data]\nrandom = \"bits\"\n",
        "collective.0.registers.core0.request.I7 = [10]\n",
        "armed.reduction.0.late.0.cycles = 5\n",
        "[[collective]]\nkind = \"barrier\"\n",
        "traffic.0.hotspots.0.share = 0.5\n",
        "link.latency_ns = 1\n",
    ] {
        of(&format!("{base}{good}")).unwrap();
        // The loader takes what the schema takes, as far as the base has it.
        if !good.starts_with("armed") && !good.starts_with("traffic") {
            let loaded = crate::support::load(&format!("{base}{good}"), &[]);
            let keys = |error: String| {
                ["unknown key", "is missing", "is a table", "out of range"].iter().any(|of| error.contains(of))
            };
            assert!(!loaded.err().is_some_and(keys), "{good}");
        }
    }
    for bad in [
        "collective.0.elemnts = 64\n",
        "collective.first.elements = 64\n",
        "collective.0.elements = -1\n",
        "[[collective]]\nelements = 3\n",
        "colective.0.elements = 3\n",
        "switch.ceng.stages = 7\n",
    ] {
        assert!(of(&format!("{base}{bad}")).is_err(), "{bad}");
        assert!(crate::support::load(&format!("{base}{bad}"), &[]).is_err(), "{bad}");
    }
    // A file that extends nothing is whole.
    let whole = "family = \"piuma\"\n[topology]\nkind = \"die\"\n";
    of(whole).unwrap();
    for bad in ["collective.0.elements = 64\n", "[[collective]]\nelements = 3\n"] {
        assert!(of(&format!("{whole}{bad}").replace("[topology]\nkind", "topology.kind")).is_err(), "{bad}");
    }
    assert!(of("family = \"piuma\"\n").is_err() && of("[topology]\nkind = \"die\"\n").is_err());
}
