//! How many words of results a document holds: the key `results` of a scenario.
//!
//! | `results` | vectors in the document | hash of each job's results |
//! |---|---|---|
//! | `"auto"` (the default) | whole up to 65,536 elements, of longer ones the first 16 *\[chosen\]* | if its vector is not whole |
//! | `"all"` | whole | no |
//! | `"first N"` | the first N elements | yes |
//! | `"hash"` | no element | yes |
//!
//! The hash is SHA-256 over the bytes that `data::save_npy` of `watershed_scenario` writes behind the header: row by row, each
//! element little-endian and as wide as its type. So another program computes it from the array:
//!
//! ```python
//! hashlib.sha256(numpy.load("sum.npy").tobytes()).hexdigest()
//! ```
//!
//! | engine | a row |
//! |---|---|
//! | piuma | what landed at a participant that receives, by participants |
//! | software | what a rank has at the end, by ranks |
//! | armed | the result of a round that ended, four lanes, by rounds |
//! | pbv | the result of a round that is complete, by rounds; of a job over several contexts, one context after the other |

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};

/// The longest vector that a document holds whole unless it is told otherwise.
const WHOLE: usize = 65_536;

/// Elements of a longer one that it holds.
const HEAD: usize = 16;

/// What a document holds of vectors of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultDetail {
    /// Short vectors whole, the first elements of long ones.
    #[default]
    Auto,
    /// Every element.
    All,
    /// This many elements.
    First(u64),
    /// None.
    Hash,
}

impl ResultDetail {
    /// Whether nothing was asked for.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }

    /// Elements that are kept of a vector of `length`.
    pub fn of(self, length: usize) -> usize {
        match self {
            Self::Auto if length > WHOLE => HEAD,
            Self::Auto | Self::All => length,
            Self::First(most) => usize::try_from(most).map_or(length, |most| most.min(length)),
            Self::Hash => 0,
        }
    }

    /// The first elements of a vector, those that are kept.
    pub fn head(self, vector: &[u64]) -> &[u64] {
        &vector[..self.of(vector.len())]
    }
}

impl fmt::Display for ResultDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::All => f.write_str("all"),
            Self::First(most) => write!(f, "first {most}"),
            Self::Hash => f.write_str("hash"),
        }
    }
}

impl FromStr for ResultDetail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not \"auto\", \"all\", \"hash\" or \"first N\"");
        match text {
            "auto" => Ok(Self::Auto),
            "all" => Ok(Self::All),
            "hash" => Ok(Self::Hash),
            _ => {
                let number = text.strip_prefix("first ").ok_or_else(wrong)?;
                number.parse().ok().filter(|&most| most > 0).map(Self::First).ok_or_else(wrong)
            }
        }
    }
}

impl Serialize for ResultDetail {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResultDetail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for ResultDetail {
    fn schema_name() -> Cow<'static, str> {
        "Kept".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "enum": ["auto", "all", "hash"] },
                { "type": "string", "pattern": "^first [1-9][0-9]*$" },
            ]
        })
    }
}
