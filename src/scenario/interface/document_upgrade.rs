//! Result documents of older programs in the shape of today, so that they can be replayed, explained and reported. What changed with
//! each version stands at [`result`](super::result).

use serde_json::{Map, Value as Json, json};

use super::result::SCHEMA_VERSION;

type Object = Map<String, Json>;

/// A document of any version up to [`SCHEMA_VERSION`] in the shape of that version.
///
/// # Errors
/// It is of a later version.
pub fn upgraded(mut document: Json) -> Result<Json, String> {
    let version = document.get("schema_version").and_then(Json::as_u64);
    if let Some(version) = version.filter(|&version| version > u64::from(SCHEMA_VERSION)) {
        return Err(format!(
            "it is of schema version {version}, and this program reads versions up to {SCHEMA_VERSION}"
        ));
    }
    if version == Some(1) {
        for list in ["/links/busiest", "/links/all"] {
            each(&mut document, list).for_each(|link| rename(link, &[("stalls", "head_wait_cycles")]));
        }
    }
    if version.is_some_and(|version| version < 3) {
        upgrade_to_version_3(&mut document);
        document["schema_version"] = SCHEMA_VERSION.into();
    }
    // What refused armings were is counted by why since, under names of its own.
    if let Some(engines) = document.pointer_mut("/armed/engines").and_then(Json::as_object_mut) {
        engines.shift_remove("arm_refused");
    }
    name_jobs(&mut document);
    Ok(document)
}

/// The objects of a list in a document.
fn each<'a>(document: &'a mut Json, list: &str) -> impl Iterator<Item = &'a mut Object> {
    let items = document.pointer_mut(list).and_then(Json::as_array_mut);
    items.into_iter().flatten().filter_map(Json::as_object_mut)
}

fn rename(of: &mut Object, names: &[(&str, &str)]) {
    for (earlier, now) in names {
        if let Some(value) = of.shift_remove(*earlier) {
            of.insert((*now).to_owned(), value);
        }
    }
}

/// Brings what engines and software say of their jobs from version 2 to version 3.
fn upgrade_to_version_3(document: &mut Json) {
    let job = [("job_cycles", "latency_cycles"), ("job_ns", "latency_ns"), ("rounds", "listed_rounds")];
    each(document, "/jobs").for_each(without_end);
    for of in each(document, "/collectives") {
        of.retain(|key, _| !matches!(key.as_str(), "job_cycles" | "job_ns"));
        rename(of, &[("results", "result")]);
        without_type(of);
    }
    for of in each(document, "/hosts") {
        of.retain(|key, _| !matches!(key.as_str(), "job_cycles" | "job_ns"));
        rename(of, &[("ranks", "participants"), ("rounds", "steps")]);
        if of.get("algorithm").is_some_and(|algorithm| algorithm == "send-loop") {
            of.insert("op".into(), Json::Null);
        }
    }
    for of in each(document, "/armed/reductions") {
        // In this order: what was the start has the other name before the contribution takes it.
        rename(of, &[("op", "opcode"), ("start_cycle", "first_arming_cycle")]);
        rename(of, &[("first_contribution_cycle", "start_cycle")]);
        rename(of, &job);
        join_spread(of);
        without_end(of);
    }
    for of in each(document, "/pbv/collectives") {
        if of.get("kind").is_some_and(|kind| kind == "multicast") {
            of.insert("kind".into(), "broadcast".into());
        }
        if of.get("kind").is_some_and(|kind| kind != "allreduce") {
            of.insert("op".into(), Json::Null);
        }
        without_type(of);
        rename(of, &[("elements", "elements_per_round")]);
        rename(of, &job);
        join_spread(of);
        without_end(of);
    }
    each(document, "/config/armed/reductions").for_each(|of| rename(of, &[("op", "opcode")]));
    each(document, "/config/pbv/collectives").for_each(|of| rename(of, &[("elements", "elements_per_round")]));
    each(document, "/config/hosts").for_each(|of| rename(of, &[("ranks", "participants")]));
}

/// A job that was not answered whole has no end.
fn without_end(of: &mut Object) {
    let lacks = |outcome: &str| of.get("outcomes").and_then(|all| all[outcome].as_u64()).unwrap_or(0) > 0;
    if ["incomplete", "open", "unstarted"].into_iter().any(lacks) && of.contains_key("end_cycle") {
        of.insert("end_cycle".into(), Json::Null);
    }
}

/// A job without elements has neither their type nor a rate.
fn without_type(of: &mut Object) {
    if of.get("elements").is_some_and(|elements| elements == 0) {
        of.insert("dtype".into(), Json::Null);
        if of.contains_key("elements_per_cycle") {
            of.insert("elements_per_cycle".into(), Json::Null);
        }
    }
}

/// Least, mean and largest latency of rounds had a key each.
fn join_spread(of: &mut Object) {
    let [min, mean, max] = ["min", "mean", "max"].map(|which| of.shift_remove(&format!("latency_{which}_cycles")));
    if let (Some(min), Some(mean), Some(max)) = (min, mean, max) {
        let all = if min.is_null() { Json::Null } else { json!({ "min": min, "mean": mean, "max": max }) };
        of.insert("round_latency_cycles".into(), all);
    }
}

/// Gives jobs of the scenario the names that they have in the document, where they say none: what a job without a name is called
/// was once up to its engine. What is broadcast was once called what the engine calls it.
fn name_jobs(document: &mut Json) {
    let jobs = document.get_mut("jobs").and_then(Json::as_array_mut);
    let mut names = Vec::new();
    for job in jobs.into_iter().flatten() {
        if job["kind"] == "multicast" {
            job["kind"] = "broadcast".into();
        }
        names.push(job["name"].as_str().map(str::to_owned));
    }
    let Some(lines) = document.pointer_mut("/scenario/lines").and_then(Json::as_array_mut) else { return };
    let key = |line: &Json| line.as_str().and_then(|line| line.split([' ', '=']).next()).unwrap_or_default().to_owned();
    let (mut at, mut number) = (0, 0);
    while at < lines.len() {
        at += 1;
        if lines[at - 1] != "[[job]]" {
            continue;
        }
        let end = (at..lines.len()).find(|&next| lines[next].as_str().is_some_and(|line| line.starts_with('[')));
        let keys: Vec<String> = lines[at..end.unwrap_or(lines.len())].iter().map(key).collect();
        if let (false, Some(Some(name))) = (keys.iter().any(|key| key == "name"), names.get(number)) {
            let place = keys.iter().position(|key| key.is_empty() || key.as_str() > "name").unwrap_or(keys.len());
            lines.insert(at + place, format!("name = {name:?}").into());
        }
        number += 1;
    }
}
