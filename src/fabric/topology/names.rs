//! Names of switches.

use std::borrow::Cow;

use super::Shape;

/// The numbers in a name, in order; `None` if one does not fit.
pub(super) fn numbers(name: &str) -> Option<Vec<u64>> {
    name.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
}

/// Names of switches: listed, or made from the shape when one is asked for.
#[derive(Clone, Debug)]
pub enum Names {
    /// All of them.
    List(Vec<String>),
    /// The shape knows them.
    Shape(Shape),
}

impl Names {
    /// The name of a switch.
    pub fn of(&self, switch: u32) -> Cow<'_, str> {
        match self {
            Names::List(list) => list[switch as usize].as_str().into(),
            Names::Shape(shape) => shape.switch_name(switch).into(),
        }
    }
}

impl From<Vec<String>> for Names {
    fn from(list: Vec<String>) -> Names {
        Names::List(list)
    }
}
