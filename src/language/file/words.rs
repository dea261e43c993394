//! Values that may be a word, such as "auto", and the schemas that tables share.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize, Serializer};

use super::collective::Number;
use super::link::Bandwidth;
use super::traffic::PacketFlits;
use crate::names::{DType, NamedValues, Op};

/// A number, or "auto".
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auto<T> {
    /// Derived from the rest of the configuration.
    #[default]
    Auto,
    /// As given, or as derived.
    Fixed(T),
}

impl<T> Auto<T> {
    /// The number, or what it is derived to be.
    pub fn or(self, derived: T) -> T {
        self.or_else(|| derived)
    }

    /// The number, or what it is derived to be, which takes some work.
    pub fn or_else(self, derive: impl FnOnce() -> T) -> T {
        match self {
            Self::Auto => derive(),
            Self::Fixed(number) => number,
        }
    }

    /// The number of a table whose defaults are filled in.
    ///
    /// # Panics
    ///
    /// On "auto": then they are not.
    pub fn known(self) -> T {
        self.or_else(|| panic!("\"auto\" is derived before it is used"))
    }
}

/// A key that documents have in another form, which stands beside its table there.
pub(crate) fn stands_elsewhere<T>(_: &T) -> bool {
    true
}

/// A frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Frequency {
    /// MHz.
    Mhz(f64),
    /// What the slowest block of the hardware reaches.
    Fastest,
}

/// Who takes part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ParticipantsFile {
    /// Every end point.
    #[default]
    All,
    /// These end points.
    List(Vec<u64>),
}

/// By how much participants are late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DelayFile {
    /// All the same.
    Same(u64),
    /// One number a participant.
    Each(Vec<u64>),
    /// Evenly from 0 to a largest one, seeded.
    Random {
        /// The largest delay.
        random_max: u64,
    },
}

impl Default for DelayFile {
    fn default() -> Self {
        Self::Same(0)
    }
}

const MAX_CYCLE: i64 = crate::limits::CYCLES as i64;

/// Operations, for tables in other files.
pub fn operations(generator: &mut SchemaGenerator) -> Schema {
    names::<Op>(generator)
}

/// Data types, for tables in other files.
pub fn types(generator: &mut SchemaGenerator) -> Schema {
    names::<DType>(generator)
}

/// Names of an enumeration, for tables in other files.
pub fn names<T: NamedValues>(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = T::names().collect();
    json_schema!({ "type": "string", "enum": names })
}

/// A number within bounds, or `"auto"`, for tables in other files.
pub fn auto_or<const MIN: u32, const MAX: u32>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "integer", "minimum": MIN, "maximum": MAX },
            { "type": "string", "const": "auto" },
        ]
    })
}

macro_rules! inline_schema {
    ($type:ty, $name:literal, $schema:tt) => {
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

inline_schema!(Bandwidth, "Bandwidth", {
    "anyOf": [
        { "type": "number", "minimum": 0.000_001, "maximum": 1_000_000.0 },
        { "type": "string", "const": "unlimited" },
    ]
});
inline_schema!(Frequency, "Frequency", {
    "anyOf": [
        { "type": "number", "minimum": 0.000_001, "maximum": 1_000_000.0 },
        { "type": "string", "const": "fastest" },
    ]
});
inline_schema!(ParticipantsFile, "Participants", {
    "anyOf": [
        { "type": "string", "const": "all" },
        {
            "type": "array",
            "minItems": 1,
            "items": { "type": "integer", "minimum": 0, "maximum": 9_223_372_036_854_775_807_i64 },
        },
    ]
});
inline_schema!(DelayFile, "Delay", {
    "anyOf": [
        { "type": "integer", "minimum": 0, "maximum": MAX_CYCLE },
        { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": MAX_CYCLE } },
        {
            "type": "object",
            "properties": { "random_max": { "type": "integer", "minimum": 0, "maximum": MAX_CYCLE } },
            "required": ["random_max"],
            "additionalProperties": false,
        },
    ]
});
inline_schema!(PacketFlits, "PacketFlits", {
    "anyOf": [
        { "type": "integer", "minimum": 1, "maximum": 65_536 },
        {
            "type": "object",
            "properties": {
                "min": { "type": "integer", "minimum": 1, "maximum": 65_536 },
                "max": { "type": "integer", "minimum": 1, "maximum": 65_536 },
            },
            "required": ["min", "max"],
            "additionalProperties": false,
        },
        {
            "type": "array",
            "minItems": 1,
            "maxItems": 256,
            "items": {
                "type": "object",
                "properties": {
                    "flits": { "type": "integer", "minimum": 1, "maximum": 65_536 },
                    "weight": { "type": "integer", "minimum": 1, "maximum": 1_000_000 },
                },
                "required": ["flits", "weight"],
                "additionalProperties": false,
            },
        },
    ]
});
inline_schema!(Number, "Number", {
    "anyOf": [{ "type": "number" }, { "type": "string" }]
});

impl<T: Serialize> Serialize for Auto<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Fixed(number) => number.serialize(serializer),
        }
    }
}

impl Serialize for Bandwidth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unlimited => serializer.serialize_str("unlimited"),
            Self::Gbps(number) => serializer.serialize_f64(*number),
        }
    }
}

impl Serialize for Frequency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fastest => serializer.serialize_str("fastest"),
            Self::Mhz(number) => serializer.serialize_f64(*number),
        }
    }
}

impl Serialize for ParticipantsFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::List(list) => list.serialize(serializer),
        }
    }
}

impl Serialize for DelayFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Same(delay) => serializer.serialize_u64(*delay),
            Self::Each(list) => list.serialize(serializer),
            Self::Random { random_max } => RandomDelay { random_max: *random_max }.serialize(serializer),
        }
    }
}

#[derive(Serialize, DeriveDeserialize)]
#[serde(deny_unknown_fields)]
struct RandomDelay {
    random_max: u64,
}

/// Reads a value that is a number, a word or something structured, by what it looks like.
pub(super) struct WordOrObject<T> {
    expecting: &'static str,
    word: fn(&str) -> Option<T>,
    integer: fn(u64) -> Option<T>,
    float: fn(f64) -> Option<T>,
    list: fn(Vec<u64>) -> Option<T>,
    map: fn(RandomDelay) -> Option<T>,
}

impl<T> WordOrObject<T> {
    fn new(expecting: &'static str) -> Self {
        Self { expecting, word: |_| None, integer: |_| None, float: |_| None, list: |_| None, map: |_| None }
    }
}

impl<'de, T> Visitor<'de> for WordOrObject<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
        (self.word)(word).ok_or_else(|| E::invalid_value(de::Unexpected::Str(word), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        (self.integer)(number).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        u64::try_from(number)
            .ok()
            .and_then(self.integer)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        (self.float)(number).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        let list = Deserialize::deserialize(de::value::SeqAccessDeserializer::new(seq))?;
        (self.list)(list).ok_or_else(|| de::Error::invalid_type(de::Unexpected::Seq, &self))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let map = Deserialize::deserialize(de::value::MapAccessDeserializer::new(map))?;
        (self.map)(map).ok_or_else(|| de::Error::invalid_type(de::Unexpected::Map, &self))
    }
}

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Auto<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrObject {
            word: |word| (word == "auto").then_some(Self::Auto),
            integer: |number| T::try_from(number).ok().map(Self::Fixed),
            ..WordOrObject::new("a number or \"auto\"")
        })
    }
}

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrObject {
            word: |word| (word == "unlimited").then_some(Self::Unlimited),
            integer: |number| Some(Self::Gbps(number as f64)),
            float: |number| Some(Self::Gbps(number)),
            ..WordOrObject::new("a number or \"unlimited\"")
        })
    }
}

impl<'de> Deserialize<'de> for Frequency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrObject {
            word: |word| (word == "fastest").then_some(Self::Fastest),
            integer: |number| Some(Self::Mhz(number as f64)),
            float: |number| Some(Self::Mhz(number)),
            ..WordOrObject::new("a number or \"fastest\"")
        })
    }
}

impl<'de> Deserialize<'de> for ParticipantsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrObject {
            word: |word| (word == "all").then_some(Self::All),
            list: |list| Some(Self::List(list)),
            ..WordOrObject::new("a list of end points or \"all\"")
        })
    }
}

impl<'de> Deserialize<'de> for DelayFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrObject {
            integer: |number| Some(Self::Same(number)),
            list: |list| Some(Self::Each(list)),
            map: |map| Some(Self::Random { random_max: map.random_max }),
            ..WordOrObject::new("a number, a list or { random_max = … }")
        })
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrObject {
            word: |word| Some(Self(word.to_owned())),
            integer: |number| Some(Self(number.to_string())),
            float: |number| Some(Self(number.to_string())),
            ..WordOrObject::new("a number or a string")
        })
    }
}
