//! Faults on links that link-layer replay repairs, for both families (R-ERR-1, B-ERR-2).

use serde_json::{Map, Value as Json};

/// What links counted, as documents have it.
pub type Faults = Option<Map<String, Json>>;

/// One of those numbers.
pub fn count(faults: &Faults, what: &str) -> u64 {
    faults.as_ref().and_then(|counts| counts.get(what)?.as_u64()).unwrap_or(0)
}

/// Each effect in turn: `with` runs with replay and says what links counted, once it has seen that nobody was asked again; `without`
/// runs without it and sees that somebody was, or is missing.
pub fn are_repaired(with: impl Fn(&str, &str) -> Faults, without: impl Fn(&str, &str)) {
    for (effect, rest, counted) in [
        ("drop", "", "dropped"),
        ("corrupt", "", "corrupted"),
        ("duplicate", "", "duplicates_removed"),
        ("delay", "delay_cycles = 300\n", "delayed"),
    ] {
        let faults = with(effect, rest);
        assert!(count(&faults, counted) > 10, "{effect}: {faults:?}");
        if matches!(effect, "drop" | "corrupt") {
            assert!(count(&faults, "replayed") >= count(&faults, counted), "{effect}");
            assert_eq!(count(&faults, "given_up"), 0, "{effect}");
            without(effect, rest);
        }
    }
}
