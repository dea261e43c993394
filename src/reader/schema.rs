//! The JSON Schema of the scenario format, and the loader's check of a file against it.
//!
//! Editors and the loader read the same schema, which is made from the structs in [`super::file`]; so a key, a range or a
//! default is written down once.

use std::sync::OnceLock;

use serde_json::{Map, Value as Json};

use super::file::ScenarioFile;
use super::file::job::Engine;
use super::jobs::COMMON;
use super::names::{nearest, one_of};
use super::problem::Problem;
use super::source::{Node, Value, child};
use super::units;

/// Tables that a hint names at most.
const MOST_PLACES: usize = 3;

/// What ends the name of a key whose value has a unit.
const UNITS: [&str; 7] = ["_cycles", "_ns", "_mhz", "_gbps", "_bits", "_words", "_flits"];

/// Every key of a schema with the table that it stands in.
fn keys(schema: &Json, path: &str, found: &mut Vec<(String, String)>) {
    for (name, inner) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        found.push((path.to_owned(), name.clone()));
        keys(inner.get("items").unwrap_or(inner), &child(path, name), found);
    }
}

/// A name without the unit at its end.
fn stem(name: &str) -> &str {
    let units = UNITS.iter().chain(&["_cycle", "_us", "_ms", "_ps", "_s", "_ghz", "_hz", "_bytes"]);
    units.filter_map(|unit| name.strip_suffix(unit)).min_by_key(|stem| stem.len()).unwrap_or(name)
}

/// A path without the numbers of elements of lists.
fn without_numbers(path: &str) -> String {
    path.split('.').map(|part| part.split('[').next().unwrap_or(part)).collect::<Vec<_>>().join(".")
}

/// Adds the names that differ from a key in the unit at their end, or that lack only a slip from doing so.
fn in_its_unit(problem: Problem, key: &str, names: &[&str]) -> Problem {
    let with_unit = || names.iter().copied().filter(|name| stem(name) != *name);
    let Some(near) = nearest(stem(key), with_unit().map(stem)) else { return problem };
    let meant = with_unit().filter(|name| stem(name) == near).map(|name| format!("`{name}`"));
    problem.help(format!("did you mean {}?", one_of(meant)))
}

/// The JSON Schema of a scenario file (draft 2020-12).
pub fn schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = ScenarioFile::schema();
        drop_json_only(&mut schema);
        schema
    })
}

/// The schema with what each engine alone has of a job: the keys of the table that its jobs are translated into, without those of
/// all engines. What is missing there is seen once a job is translated.
fn with_engines() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut whole = schema().clone();
        for engine in Engine::ALL {
            let older = format!("/properties/{}/items", engine.table().replace('.', "/properties/"));
            let mut own = schema().pointer(&older).cloned().unwrap_or_default();
            let head = own.as_object_mut().expect("an engine has a table");
            head.remove("required");
            if let Some(properties) = head.get_mut("properties").and_then(Json::as_object_mut) {
                properties.retain(|key, _| !COMMON.contains(&key.as_str()));
            }
            let place = format!("/properties/job/items/properties/{}", engine.name());
            let table = whole.pointer_mut(&place).and_then(Json::as_object_mut).expect("a job has it");
            let said = table.remove("description");
            *table = own.as_object().cloned().unwrap_or_default();
            table.extend(said.map(|said| ("description".to_owned(), said)));
        }
        whole
    })
}

/// The JSON Schema that editors use: that of a file as it is written, which may leave to the one it extends what
/// [`schema`] asks for, and may change single elements of its arrays by their numbers.
///
/// The loader joins files first and checks the whole with [`schema`].
pub fn of_files() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut whole = with_engines().clone();
        let head = whole.as_object_mut().expect("a schema is a table");
        let definitions = head.remove("$defs").unwrap_or_default();
        let about: Vec<(String, Json)> =
            ["$schema", "title"].iter().filter_map(|key| Some(((*key).to_owned(), head.remove(*key)?))).collect();
        // The engines of jobs say the family where it is not given.
        if let Some(required) = head.get_mut("required").and_then(Json::as_array_mut) {
            required.retain(|key| key != "family");
        }
        head.insert("anyOf".into(), serde_json::json!([{ "required": ["family"] }, { "required": ["job"] }]));
        if let Some(properties) = head.get_mut("properties").and_then(Json::as_object_mut) {
            properties.remove("extends");
        }
        let mut file = with_engines().clone();
        let file_head = file.as_object_mut().expect("a schema is a table");
        file_head.remove("$defs");
        file_head.remove("$schema");
        file_head.remove("title");
        in_parts(&mut file);
        let mut all = Map::from_iter(about);
        all.extend(file.as_object().cloned().unwrap_or_default());
        all.insert("if".into(), serde_json::json!({ "not": { "required": ["extends"] } }));
        all.insert("then".into(), serde_json::json!({ "$ref": "#/$defs/Whole" }));
        let mut definitions = definitions.as_object().cloned().unwrap_or_default();
        definitions.insert("Whole".into(), whole);
        all.insert("$defs".into(), definitions.into());
        all.into()
    })
}

/// Lets a table of a file that extends another one leave out keys, and an array be a table of its elements by their
/// numbers. An array that is written as one takes the place of the inherited one, so its elements are whole.
fn in_parts(schema: &mut Json) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("required");
    for inner in object.get_mut("properties").and_then(Json::as_object_mut).into_iter().flat_map(Map::values_mut) {
        in_parts(inner);
    }
    for inner in object.get_mut("anyOf").and_then(Json::as_array_mut).into_iter().flatten() {
        in_parts(inner);
    }
    if let Some(inner) = object.get_mut("additionalProperties") {
        in_parts(inner);
    }
    if object.get("type").is_some_and(|kind| kind == "array") {
        let mut element = object.get("items").cloned().unwrap_or_else(|| Json::Bool(true));
        in_parts(&mut element);
        object.insert("type".into(), serde_json::json!(["array", "object"]));
        object.insert("patternProperties".into(), serde_json::json!({ "^[0-9]+$": element }));
        object.insert("additionalProperties".into(), false.into());
        object.insert("minProperties".into(), 1.into());
    }
}

/// The JSON Schema of a topology file.
pub fn topology_schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = schemars::schema_for!(super::graph::GraphFile).to_value();
        drop_json_only(&mut schema);
        schema
    })
}

/// The JSON Schema of another kind of file, made from its struct in the same way.
pub fn schema_of<T: schemars::JsonSchema>() -> Json {
    let mut schema = schemars::schema_for!(T).to_value();
    drop_json_only(&mut schema);
    schema
}

/// Takes out what JSON has and TOML has not: null as a type, a choice and a default. Joins descriptions that were wrapped.
fn drop_json_only(schema: &mut Json) {
    match schema {
        Json::Object(object) => {
            if object.get("default").is_some_and(Json::is_null) {
                object.remove("default");
            }
            if let Some(Json::Object(default)) = object.get_mut("default") {
                default.retain(|_, value| !value.is_null());
            }
            // A width is not a range: what is allowed is said by minimum and maximum.
            object.remove("format");
            if let Some(Json::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            if let Some(Json::String(text)) = object.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            if let Some(Json::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
                if let [only] = choices.as_mut_slice() {
                    let only = only.take();
                    object.remove("anyOf");
                    if let Json::Object(only) = only {
                        for (key, value) in only {
                            object.entry(key).or_insert(value);
                        }
                    }
                }
            }
            for (_, value) in object.iter_mut() {
                drop_json_only(value);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(drop_json_only),
        _ => {}
    }
}

/// Checks a scenario against the schema: keys, types, words, ranges, missing values.
pub fn check(root: &Node) -> Vec<Problem> {
    check_against(with_engines(), root)
}

/// Checks a file against a schema of its own.
pub fn check_against(schema: &'static Json, root: &Node) -> Vec<Problem> {
    let mut checker = Checker { root: schema, problems: Vec::new() };
    checker.value(schema, root, "");
    checker.problems
}

struct Checker {
    root: &'static Json,
    problems: Vec<Problem>,
}

impl Checker {
    fn resolve(&self, schema: &'static Json) -> &'static Json {
        match schema.get("$ref").and_then(Json::as_str) {
            Some(reference) => {
                self.root.pointer(reference.trim_start_matches('#')).expect("references lead into the schema")
            }
            None => schema,
        }
    }

    fn value(&mut self, schema: &'static Json, node: &Node, path: &str) {
        let schema = self.resolve(schema);
        if *schema == Json::Bool(true) {
            return; // whatever it is, somebody else checks it
        }
        if let Some(choices) = schema.get("anyOf").and_then(Json::as_array) {
            // The choices of one value differ by type; the one that fits is checked, so that the message is about it.
            let fitting = choices.iter().find(|choice| {
                let choice = self.resolve(choice);
                fits(choice, &node.value) && (words(choice).is_empty() || is_word(choice, &node.value))
            });
            match fitting {
                Some(choice) => self.value(choice, node, path),
                None => self.mismatch(schema, node, path),
            }
            return;
        }
        if !fits(schema, &node.value) {
            self.mismatch(schema, node, path);
            return;
        }
        match &node.value {
            Value::Table(table) => self.table(schema, table, path),
            Value::Array(items) => {
                let bound = |key| schema.get(key).and_then(Json::as_u64);
                let length = items.len() as u64;
                if bound("minItems").is_some_and(|min| length < min)
                    || bound("maxItems").is_some_and(|max| length > max)
                {
                    let what = if length == 0 {
                        format!("`{path}` is empty")
                    } else {
                        format!("`{path}` has {length} elements")
                    };
                    self.problems.push(Problem::at(path, what).expected(self.describe(schema)));
                }
                if let Some(element) = schema.get("items") {
                    for (index, item) in items.iter().enumerate() {
                        self.value(element, item, &format!("{path}[{index}]"));
                    }
                }
            }
            Value::String(text) => {
                let words = words(schema);
                if !words.is_empty() && !words.contains(&text.as_str()) {
                    self.problems.push(
                        Problem::at(path, format!("`{path}` cannot be \"{text}\""))
                            .of_word()
                            .expected(self.describe(schema))
                            .nearest(text, words),
                    );
                } else if schema.get("minLength").is_some() && text.is_empty() {
                    self.problems.push(Problem::at(path, format!("`{path}` is empty")).expected("some text"));
                }
            }
            Value::Integer(number) => {
                // Bounds of integers are integers; those of numbers may be fractions.
                let bound = |key| schema.get(key);
                let below = bound("minimum").is_some_and(|low| match low.as_i64() {
                    Some(low) => *number < i128::from(low),
                    None => low.as_f64().is_some_and(|low| (*number as f64) < low),
                });
                let high = bound("maximum");
                let above = high.is_some_and(|high| match high.as_i64() {
                    Some(high) => *number > i128::from(high),
                    None => high.as_f64().is_some_and(|high| *number as f64 > high),
                });
                // A number that a schema bounds is read as 64 bits; others keep their text until their type is known.
                let wide = high.is_some() && i64::try_from(*number).is_err();
                if wide {
                    let problem = Problem::at(path, format!("`{path}` is no 64-bit integer"));
                    self.problems.push(problem.expected(self.describe(schema)));
                } else if below || above {
                    let problem = Problem::at(path, format!("`{path}` is {number}, out of range"));
                    self.problems.push(problem.expected(self.describe(schema)));
                }
            }
            Value::Float(text) => {
                let number = Value::float(text);
                let low = schema.get("minimum").and_then(Json::as_f64);
                let high = schema.get("maximum").and_then(Json::as_f64);
                let bounded = low.is_some() || high.is_some();
                if bounded && number.is_nan()
                    || low.is_some_and(|low| number < low)
                    || high.is_some_and(|high| number > high)
                {
                    self.problems.push(
                        Problem::at(path, format!("`{path}` is {text}, out of range")).expected(self.describe(schema)),
                    );
                }
            }
            Value::Bool(_) | Value::Datetime(_) => {}
        }
    }

    fn table(&mut self, schema: &'static Json, table: &std::collections::BTreeMap<String, Node>, path: &str) {
        static NONE: OnceLock<Map<String, Json>> = OnceLock::new();
        let properties =
            schema.get("properties").and_then(Json::as_object).unwrap_or_else(|| NONE.get_or_init(Map::new));
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        for (key, node) in table {
            let inner = child(path, key);
            if let Some(schema) = properties.get(key) {
                self.value(schema, node, &inner);
            } else if let Some(others) = others {
                self.value(others, node, &inner);
            } else {
                let place = if path.is_empty() { "at the top level".to_owned() } else { format!("in `{path}`") };
                let names: Vec<&str> = properties.keys().map(String::as_str).collect();
                let mut problem =
                    Problem::at_key(&inner, format!("unknown key `{key}` {place}")).nearest(key, names.iter().copied());
                if problem.has_no_help() {
                    problem = in_its_unit(problem, key, &names);
                }
                if problem.has_no_help() {
                    problem = self.wrong_table_hint(problem, key, path);
                }
                if !names.is_empty() {
                    problem = problem.expected(one_of(names.iter().map(|name| format!("`{name}`"))));
                }
                self.problems.push(problem);
            }
        }
        let required = schema.get("required").and_then(Json::as_array);
        for key in required.into_iter().flatten().filter_map(Json::as_str) {
            if !table.contains_key(key) {
                let inner = child(path, key);
                let expected = properties.get(key).map(|schema| self.describe(self.resolve(schema)));
                let mut problem = Problem::at(&inner, format!("`{inner}` is missing"));
                if let Some(expected) = expected {
                    problem = problem.expected(expected);
                }
                self.problems.push(problem);
            }
        }
    }

    /// A key that is right, or nearly so, but stands in the wrong table. Tables inside the one in which it stands go before all
    /// others; of those, too many are no help.
    fn wrong_table_hint(&self, problem: Problem, key: &str, path: &str) -> Problem {
        let mut known = Vec::new();
        keys(self.root, "", &mut known);
        let here = without_numbers(path);
        let is_old = |place: &str| Engine::ALL.iter().any(|engine| place == engine.table()) && !here.starts_with(place);
        known.retain(|(place, _)| !is_old(place));
        let inside = |place: &str| place.strip_prefix(&*here).is_some_and(|rest| rest.starts_with('.'));
        let (near, far): (Vec<_>, Vec<_>) = known.into_iter().partition(|(place, _)| inside(place));
        let named = |among: &[(String, String)]| -> Vec<String> {
            let places = among.iter().filter(|(_, name)| name == key).map(|(place, _)| match &**place {
                "" => "the top level".to_owned(),
                place => format!("`{place}`"),
            });
            places.collect()
        };
        let places = [named(&near), named(&far)].into_iter().find(|places| !places.is_empty()).unwrap_or_default();
        match places.as_slice() {
            [] => {}
            places if places.len() <= MOST_PLACES => {
                return problem.help(format!("`{key}` is a key of {}", one_of(places)));
            }
            _ => return problem,
        }
        // A slip in a table inside this one, or anywhere a name without its unit.
        let slip = nearest(key, near.iter().map(|(_, name)| name.as_str()));
        let of = |name: &str| near.iter().find(|(_, other)| other == name).map(|(place, _)| place.clone());
        if let Some((name, place)) = slip.and_then(|name| of(&name).map(|place| (name, place))) {
            return problem.help(format!("did you mean `{name}` in `{place}`?"));
        }
        let has_unit = |name: &str| name.strip_prefix(key).is_some_and(|unit| UNITS.contains(&unit));
        let with_unit: Vec<String> = near
            .iter()
            .chain(&far)
            .filter(|(place, name)| has_unit(name) && !place.is_empty())
            .map(|(place, name)| format!("`{name}` in `{place}`"))
            .collect();
        match with_unit.len() {
            1..=MOST_PLACES => problem.help(format!("did you mean {}?", one_of(with_unit))),
            _ => problem,
        }
    }

    fn mismatch(&mut self, schema: &'static Json, node: &Node, path: &str) {
        let (path, message) = match &node.value {
            Value::String(text) => (path, format!("`{path}` is the string \"{text}\"")),
            value => (path, format!("`{path}` is {}", value.kind())),
        };
        let mut problem = Problem::at(path, message).expected(self.describe(schema));
        let is_list = schema.get("type").is_some_and(|kind| kind == "array");
        if is_list && matches!(node.value, Value::Table(_)) && !path.contains(['.', '[']) {
            problem = problem.help(format!("a list of tables has two brackets a side: `[[{path}]]`"));
        }
        if let Value::String(text) = &node.value {
            let choices = schema.get("anyOf").and_then(Json::as_array);
            let words: Vec<&str> =
                choices.into_iter().flatten().flat_map(|choice| words(self.resolve(choice))).collect();
            problem = problem.nearest(text, words);
            let takes_list = schema.get("type").is_some_and(|kind| kind == "array");
            let list = units::as_list(text).filter(|_| takes_list);
            if let Some(help) =
                list.or_else(|| self.in_other_unit(path, text)).or_else(|| units::suggest_without_unit(path, text))
            {
                problem = problem.help(help);
            }
        }
        if let (Value::Float(text), Some("integer")) = (&node.value, schema.get("type").and_then(Json::as_str)) {
            let number = Value::float(text);
            if number.fract() == 0.0 && number.abs() < 1e15 {
                problem = problem.help(format!("without point and exponent it is {number}"));
            }
        }
        self.problems.push(problem);
    }

    /// The key beside this one that takes a number with this unit, and the number there.
    fn in_other_unit(&self, path: &str, text: &str) -> Option<String> {
        let (end, value) = units::measured(text)?;
        let (place, key) = path.rsplit_once('.')?;
        let other = format!("{}{end}", stem(key));
        let mut known = Vec::new();
        keys(self.root, "", &mut known);
        let place = without_numbers(place);
        let there = other != key && known.iter().any(|(table, name)| *table == place && *name == other);
        there.then(|| format!("the end of a key says its unit: {text} is `{other} = {value}`"))
    }

    /// What a schema allows, in words.
    fn describe(&self, schema: &'static Json) -> String {
        let schema = self.resolve(schema);
        if let Some(choices) = schema.get("anyOf").and_then(Json::as_array) {
            return one_of(choices.iter().map(|choice| self.describe(choice)));
        }
        let words = words(schema);
        if !words.is_empty() {
            return one_of(words.iter().map(|word| format!("\"{word}\"")));
        }
        let number = |key| schema.get(key).and_then(Json::as_f64).map(plain);
        // The bound that TOML sets to all integers says nothing about this one.
        let upper = number("maximum").filter(|high| high.len() < 19);
        let range = match (number("minimum"), upper) {
            (Some(low), Some(high)) => format!(" from {low} to {high}"),
            (Some(low), None) => format!(" of {low} or more"),
            (None, Some(high)) => format!(" up to {high}"),
            (None, None) => String::new(),
        };
        match schema.get("type").and_then(Json::as_str) {
            Some("integer") => format!("an integer{range}"),
            Some("number") => format!("a number{range}"),
            Some("boolean") => "`true` or `false`".to_owned(),
            Some("string") => "a string in quotes".to_owned(),
            Some("array") => {
                let count = |key| schema.get(key).and_then(Json::as_u64);
                let count = match (count("minItems"), count("maxItems")) {
                    (Some(low), Some(high)) => format!(" of {low} to {high} elements"),
                    (Some(low), None) => format!(" of {low} or more elements"),
                    (None, Some(high)) => format!(" of up to {high} elements"),
                    (None, None) => String::new(),
                };
                match schema.get("items") {
                    Some(items) => format!("an array{count}, each {}", self.describe(items)),
                    None => format!("an array{count}"),
                }
            }
            Some("object") => match schema.get("properties").and_then(Json::as_object) {
                Some(properties) if properties.len() <= 2 => {
                    let keys: Vec<String> = properties.keys().map(|key| format!("{key} = …")).collect();
                    format!("a table {{ {} }}", keys.join(", "))
                }
                _ => match schema.get("required").and_then(Json::as_array) {
                    Some(keys) => format!("a table with {}", all_of(keys.iter().filter_map(Json::as_str))),
                    None => "a table".to_owned(),
                },
            },
            _ => "a value".to_owned(),
        }
    }
}

/// Keys that must all be there, for a sentence.
fn all_of<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let keys: Vec<String> = keys.map(|key| format!("`{key}`")).collect();
    keys.join(" and ")
}

/// A bound as people write it.
fn plain(number: f64) -> String {
    format!("{number}")
}

/// Whether a value has the type a schema asks for.
fn fits(schema: &Json, value: &Value) -> bool {
    let kind = schema.get("type").and_then(Json::as_str);
    match (kind, value) {
        (Some("object"), Value::Table(_))
        | (Some("array"), Value::Array(_))
        | (Some("string"), Value::String(_))
        | (Some("integer"), Value::Integer(_))
        | (Some("number"), Value::Integer(_) | Value::Float(_))
        | (Some("boolean"), Value::Bool(_)) => true,
        (None, Value::String(_)) => !words(schema).is_empty(),
        _ => false,
    }
}

fn is_word(schema: &Json, value: &Value) -> bool {
    matches!(value, Value::String(text) if words(schema).contains(&text.as_str()))
}

/// The words a schema lists.
fn words(schema: &Json) -> Vec<&str> {
    if let Some(word) = schema.get("const").and_then(Json::as_str) {
        return vec![word];
    }
    if let Some(list) = schema.get("enum").and_then(Json::as_array) {
        return list.iter().filter_map(Json::as_str).collect();
    }
    let choices = schema.get("oneOf").and_then(Json::as_array);
    choices.into_iter().flatten().filter_map(|choice| choice.get("const").and_then(Json::as_str)).collect()
}
