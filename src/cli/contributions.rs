//! Whole contributions as JSON: what `watershed reduce` reads for an engine and prints of its result.
//!
//! ```text
//! {"op": 37, "contributions": [{"lanes": ["3ff0000000000000", … four], "count": 1, "rc": 0, "m": 0, "oflow_id": 0}, …]}
//! {"lanes": ["3ff0000000000000", …], "rc": 0, "count": 2, "m": 0, "oflow_id": 0}
//! ```
//!
//! | field | is | if not given |
//! |---|---|---|
//! | `op` | number or name of an [opcode](watershed_arith::quad::OPCODES) | - |
//! | `lanes` | four host values in hexadecimal | - |
//! | `count` | contributions in it, 0 to 2^20 - 1 | 1 |
//! | `rc` | number of a [result code](ResultCode) | 0 |
//! | `m` | exponent index of a reproducible sum, -128 to 127 | 0 |
//! | `oflow_id` | word that wrapped, 0 to 3 | 0 |

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use watershed_arith::quad::OPCODES;
use watershed_arith::{Contribution, Opcode, Quad, ResultCode};
use watershed_scenario_interface::names;

/// What an engine is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// Operation, type and mode.
    pub opcode: &'static Opcode,
    /// What comes in, in this order; at least one.
    pub contributions: Vec<Contribution>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFile {
    op: OpcodeField,
    contributions: Vec<ContributionFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContributionFile {
    lanes: [Lane; 4],
    #[serde(default = "one")]
    count: BoundedInt<{ Contribution::MAX_COUNT as i64 }>,
    #[serde(default)]
    rc: CodeField,
    #[serde(default)]
    m: i8,
    #[serde(default)]
    oflow_id: BoundedInt<3>,
}

const fn one() -> BoundedInt<{ Contribution::MAX_COUNT as i64 }> {
    BoundedInt(1)
}

/// A whole number from 0 to `MAX`.
#[derive(Clone, Copy, Default)]
struct BoundedInt<const MAX: i64>(u32);

impl<'de, const MAX: i64> Deserialize<'de> for BoundedInt<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        if !(0..=MAX).contains(&number) {
            return Err(D::Error::custom(format!("{number} is not from 0 to {MAX}")));
        }
        Ok(Self(number as u32))
    }
}

struct Lane(u64);

impl<'de> Deserialize<'de> for Lane {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Lane;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a lane of up to 16 hexadecimal digits in a string, such as \"3ff0000000000000\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Lane, E> {
                let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
                let valid = (1..=16).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let lane = valid.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
                lane.map(Lane).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[derive(Default)]
struct CodeField(ResultCode);

impl<'de> Deserialize<'de> for CodeField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let code = u8::try_from(number).ok().and_then(ResultCode::from_number);
        code.map(Self).ok_or_else(|| {
            let known = ResultCode::ALL.iter().map(|code| format!("{} ({code})", code.number()));
            D::Error::custom(format!("{number} is no result code, expected {}", names::one_of(known)))
        })
    }
}

struct OpcodeField(&'static Opcode);

impl<'de> Deserialize<'de> for OpcodeField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrName;
        impl Visitor<'_> for NumberOrName {
            type Value = OpcodeField;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number or the name of an opcode, such as 40 or \"FLT SUM NEAR\"")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<OpcodeField, E> {
                let opcode = u8::try_from(number).ok().and_then(Opcode::from_number);
                opcode.map(OpcodeField).ok_or_else(|| {
                    let known = OPCODES.iter().map(|opcode| format!("{} {}", opcode.number, opcode.name));
                    E::custom(format!("there is no opcode {number}, expected {}", names::one_of(known)))
                })
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<OpcodeField, E> {
                let plain = |name: &str| name.replace(['_', '-'], " ").to_uppercase();
                let opcode = OPCODES.iter().find(|opcode| opcode.name == plain(name));
                opcode.map(OpcodeField).ok_or_else(|| {
                    let known = || OPCODES.iter().map(|opcode| opcode.name);
                    let slip = names::nearest(&plain(name), known());
                    let slip = slip.map_or(String::new(), |name| format!(" (did you mean \"{name}\"?)"));
                    E::custom(format!("there is no opcode \"{name}\"{slip}, expected {}", names::one_of(known())))
                })
            }
        }
        deserializer.deserialize_any(NumberOrName)
    }
}

/// Reads what an engine is to do.
///
/// # Errors
/// What is wrong, what was expected, and where.
pub(super) fn parse(text: &str) -> Result<Request, String> {
    let file: RequestFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.contributions.is_empty() {
        return Err("`contributions` is empty: at least one is expected".to_owned());
    }
    let contributions = file.contributions.into_iter().map(|c| Contribution {
        quad: Quad { lanes: c.lanes.map(|lane| lane.0), code: c.rc.0, m: c.m, oflow_id: c.oflow_id.0 as u8 },
        count: c.count.0,
    });
    Ok(Request { opcode: file.op.0, contributions: contributions.collect() })
}

/// The result of an engine, as one line of JSON.
pub(super) fn print(outcome: &Contribution) -> String {
    #[derive(Serialize)]
    struct PrintedContribution {
        lanes: [String; 4],
        rc: u8,
        count: u32,
        m: i8,
        oflow_id: u8,
    }
    let Contribution { quad, count } = *outcome;
    let printed = PrintedContribution {
        lanes: quad.lanes.map(|lane| format!("{lane:016x}")),
        rc: quad.code.number(),
        count,
        m: quad.m,
        oflow_id: quad.oflow_id,
    };
    serde_json::to_string(&printed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_arith::Op;

    #[test]
    fn numbers_and_names_of_opcodes_and_defaults() {
        let text =
            |op: &str| format!("{{\"op\": {op}, \"contributions\": [{{\"lanes\": [\"1\", \"0x2\", \"3\", \"4\"]}}]}}");
        for op in ["37", "\"FLT MAXNUM\"", "\"flt_maxnum\""] {
            let request = parse(&text(op)).unwrap();
            assert_eq!(request.opcode.op, Op::MaxNum, "{op}");
            assert_eq!(request.contributions, [Contribution { quad: Quad::of([1, 2, 3, 4]), count: 1 }]);
        }
        let error = parse(&text("\"FLT SUM NAER\"")).unwrap_err();
        assert!(error.contains("did you mean \"FLT SUM NEAR\"") && error.contains("line 1 column"), "{error}");
    }

    #[test]
    fn what_is_printed_reads_back() {
        let quad = Quad { lanes: [u64::MAX, 0, 7, 1 << 63], code: ResultCode::IntOverflow, m: -26, oflow_id: 3 };
        let outcome = Contribution { quad, count: Contribution::MAX_COUNT };
        let request = parse(&format!("{{\"op\": 48, \"contributions\": [{}]}}", print(&outcome))).unwrap();
        assert_eq!(request.contributions, [outcome]);
    }
}
