//! The state of blocks is written in a format that names no fields (X-CKPT-1), so a field that is left out when it is zero, or that stands
//! among those of its owner, would be read as another one.

use crate::root;
use crate::source_text::files;

/// Attributes of serde that leave fields out, move them, or need their names.
const UNFIT: [&str; 6] = ["skip_serializing", "skip_deserializing", "serde(skip", "flatten", "untagged", "serde(tag"];

/// Members whose types are state.
const CLOCKED: [&str; 8] = ["kernel", "arith", "oracle", "fabric", "piuma", "armed", "pbv", "mixed"];

#[test]
fn no_field_of_a_state_is_left_out() {
    let mut seen = 0;
    for member in CLOCKED {
        for path in files(&root().join("src").join(member)) {
            let text = std::fs::read_to_string(&path).unwrap();
            seen += text.matches("serde::Deserialize").count();
            let mut state = true;
            for (number, line) in text.lines().enumerate() {
                if line.trim_start().starts_with("#[derive(") {
                    // Tables of the language are read and shown as TOML and JSON, and what is only shown is never read back.
                    state = line.contains("Deserialize") && !line.contains("JsonSchema");
                }
                if !state || !line.contains("serde(") {
                    continue;
                }
                let unfit = UNFIT.iter().find(|word| line.contains(**word));
                assert_eq!(unfit, None, "{}:{}: {line}", path.display(), number + 1);
            }
        }
    }
    assert!(seen > 200, "{seen} types are state");
}
