//! What blocks have counted, as result documents have it: one name, one number.

use serde::Serialize;
use serde_json::{Map, Value};

/// Counters that a document names only where something was counted: of parts that few systems have.
const RARE: [&str; 4] = ["replayed", "given_up", "acknowledgements", "port_wait_cycles"];

/// The counters of a block by name; those of a part of it stand among them.
pub(crate) fn counts(of: &impl Serialize) -> Map<String, Value> {
    let mut flat = Map::new();
    let counts = serde_json::to_value(of).unwrap_or_default();
    for (key, value) in counts.as_object().into_iter().flatten() {
        match value {
            Value::Object(part) => flat.extend(part.clone()),
            value if RARE.contains(&key.as_str()) && value.as_u64() == Some(0) => {}
            value => _ = flat.insert(key.clone(), value.clone()),
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_armed::{EngineCounts, Refusals};
    use watershed_fabric::fault::FaultCounts;

    #[test]
    fn nested_counters_keep_their_place_and_rare_zeros_are_omitted() {
        let refused = Refusals { damaged: 3, ..Refusals::default() };
        let engine = counts(&EngineCounts { refused, ..EngineCounts::default() });
        let names: Vec<&str> = engine.keys().map(String::as_str).collect();
        assert_eq!(engine["damaged"], 3);
        assert_eq!((names[6], names[7], names.last()), ("passed", "damaged", Some(&"most_active")));
        let waited = counts(&EngineCounts { port_wait_cycles: 5, ..EngineCounts::default() });
        assert_eq!(waited["port_wait_cycles"], 5);
        let link = |given_up| counts(&FaultCounts { given_up, ..FaultCounts::default() });
        assert_eq!((link(0).len(), link(1).len()), (6, 7));
    }
}
