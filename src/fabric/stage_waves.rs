//! The stage registers of engines in waves: names of units and trees of [`stages`](watershed_arith::stages).
//!
//! | scope | signals |
//! |---|---|
//! | `tree.operands` | the operands of the tree at the last edge: `valid`, operation, type, mode, tag, `flags`, `present`, and `portN.word` |
//! | `tree.levelL.stageS` | the control registers of a reduction: `valid`, `op`, `dtype`, tag, `flags` |
//! | `tree.levelL.unitU.stageS` | a two-input unit: `valid`, `joined`, `op`, `dtype`, tag |
//! | `….passed` | an operand without a partner, which passes through |
//! | `….aligned.laneK`, `….normalised.laneK`, … | the fields of that register, named as in the datasheet of the unit |
//!
//! Levels and units count from 0 at the ports, stages from 1. A unit alone has the scopes of a `unitU`, and `operands`
//! with `a` and `b`. `operands` is no register: it shows the unit's inputs, for comparison with a reference model. It
//! appears together with the registers that were loaded from it, and holds the last operands while `valid` is 0.
//!
//! All of it is [detail](watershed_probe::Tracer::declare_details). Requirement: H-PIPE-1 (`hardware.md`).

use watershed_arith::stages::{Datapath, FieldPlace, Group, Stage, TreeStages, UnitStages};
use watershed_arith::{DType, Mode, NanPolicy, Op, Round, SignalPolicy};
use watershed_probe::{EnumTable, Scope};

/// A field of a tag.
#[derive(Clone, Copy, Debug)]
pub struct TagField {
    /// Its name.
    pub name: &'static str,
    /// Its lowest bit.
    pub low: u32,
    /// Bits.
    pub width: u32,
}

impl TagField {
    /// Its value in a tag.
    pub const fn of(&self, tag: u64) -> u64 {
        tag >> self.low & (u64::MAX >> (64 - self.width))
    }
}

const OP_NAMES: [&str; Op::ALL.len()] = {
    let mut names = [""; Op::ALL.len()];
    let mut k = 0;
    while k < names.len() {
        names[k] = Op::ALL[k].name();
        k += 1;
    }
    names
};

const DTYPE_NAMES: [&str; DType::ALL.len()] = {
    let mut names = [""; DType::ALL.len()];
    let mut k = 0;
    while k < names.len() {
        names[k] = DType::ALL[k].name();
        k += 1;
    }
    names
};

const ROUND_NAMES: [&str; Round::ALL.len()] = {
    let mut names = [""; Round::ALL.len()];
    let mut k = 0;
    while k < names.len() {
        names[k] = Round::ALL[k].name();
        k += 1;
    }
    names
};

/// Operations, in the order of [`Op::ALL`].
pub static OPS: EnumTable = EnumTable { name: "operation", names: &OP_NAMES };
/// Types, in the order of [`DType::ALL`].
pub static DTYPES: EnumTable = EnumTable { name: "dtype", names: &DTYPE_NAMES };
/// Rounding modes, in the order of [`Round::ALL`].
pub static ROUNDS: EnumTable = EnumTable { name: "round", names: &ROUND_NAMES };

fn show_select(scope: &mut Scope<'_>, op: Op, dtype: DType) {
    // The names stand in the order of their numbers.
    scope.state("op", &OPS, op as u64);
    scope.state("dtype", &DTYPES, dtype as u64);
}

fn show_mode(scope: &mut Scope<'_>, mode: Mode) {
    scope.state("round", &ROUNDS, mode.round as u64);
    scope.bit("flush_to_zero", mode.flush_to_zero);
    scope.bit("nan_propagate", mode.nan == NanPolicy::Propagate);
    scope.bit("signal_ieee", mode.signal == SignalPolicy::Ieee);
}

fn show_tag(scope: &mut Scope<'_>, fields: &[TagField], tag: u64) {
    for field in fields {
        scope.bits(field.name, field.width, field.of(tag));
    }
}

fn show_value(scope: &mut Scope<'_>, field: &FieldPlace, value: u128) {
    scope.wide(field.name, field.width, &[value as u64, (value >> 64) as u64][..field.width.div_ceil(64) as usize]);
}

/// A tree's registers, in scope `tree`. The nodes of each level of which viewers show the registers first are those that
/// [join](watershed_arith::TreeCfg::joining) something.
pub fn tree(scope: &mut Scope<'_>, tree: &TreeStages, joining: &[u64], tag: &[TagField]) {
    scope.scope("tree", |scope| {
        let (operands, valid) = tree.operands();
        scope.scope("operands", |scope| {
            scope.first(|scope| {
                scope.bit("valid", valid);
                show_select(scope, operands.op, operands.dtype);
            });
            show_mode(scope, operands.mode);
            scope.first(|scope| show_tag(scope, tag, operands.tag));
            scope.bits("flags", 8, u64::from(operands.flags.bits()));
            scope.bits("present", u32::from(tree.cfg().radix), operands.operands.present());
            for port in 0..tree.cfg().radix {
                scope.indexed("port", usize::from(port), |scope| {
                    scope.bits("word", 64, operands.operands.get(port).unwrap_or(0));
                });
            }
        });
        for (level, (control, units)) in tree.levels().enumerate() {
            scope.indexed("level", level, |scope| {
                for (stage, control) in control.iter().enumerate() {
                    scope.indexed("stage", stage + 1, |scope| {
                        scope.first(|scope| scope.bit("valid", control.valid));
                        show_select(scope, control.op, control.dtype);
                        scope.first(|scope| show_tag(scope, tag, control.tag));
                        scope.bits("flags", 8, u64::from(control.flags.bits()));
                    });
                }
                for (node, one) in units.iter().enumerate() {
                    scope.indexed("unit", node, |scope| {
                        if joining.get(level).is_some_and(|nodes| nodes >> node & 1 == 1) {
                            scope.first(|scope| stages(scope, one, tag));
                        } else {
                            stages(scope, one, tag);
                        }
                    });
                }
            });
        }
    });
}

/// The registers of a unit and what it took last.
pub fn unit<U: Datapath>(scope: &mut Scope<'_>, unit: &UnitStages<U>, tag: &[TagField]) {
    let taken = unit.taken();
    scope.scope("operands", |scope| {
        scope.bit("valid", taken.valid);
        scope.bit("joined", taken.joined);
        show_select(scope, taken.op, taken.dtype);
        show_mode(scope, taken.mode);
        show_tag(scope, tag, taken.tag);
        for (name, word) in ["a", "b"].into_iter().zip(&taken.words) {
            scope.scope(name, |scope| {
                U::show_word(word, &mut |lane, name, width, value| {
                    let field = FieldPlace { lane, name, width };
                    match lane {
                        Some(lane) => {
                            scope.indexed("lane", usize::from(lane), |scope| show_value(scope, &field, value));
                        }
                        None => show_value(scope, &field, value),
                    }
                });
            });
        }
    });
    scope.first(|scope| stages(scope, unit, tag));
}

fn stages<U: Datapath>(scope: &mut Scope<'_>, unit: &UnitStages<U>, tag: &[TagField]) {
    for (at, (stage, groups)) in unit.stages().enumerate() {
        scope.indexed("stage", at + 1, |scope| {
            scope.bit("valid", stage.valid);
            scope.bit("joined", stage.joined);
            show_select(scope, stage.op, stage.dtype);
            show_tag(scope, tag, stage.tag);
            for (number, group) in groups.iter().enumerate() {
                scope.scope(group.name, |scope| register(scope, stage, number, group));
            }
        });
    }
}

/// The fields of a register, lane by lane.
fn register<U: Datapath>(scope: &mut Scope<'_>, stage: &Stage<U>, number: usize, group: &Group) {
    let mut first = 0;
    for fields in group.fields.chunk_by(|a, b| a.lane == b.lane) {
        let show = |scope: &mut Scope<'_>| {
            for (k, field) in fields.iter().enumerate() {
                show_value(scope, field, stage.value(number, first + k));
            }
        };
        match fields[0].lane {
            Some(lane) => scope.indexed("lane", usize::from(lane), show),
            None => show(scope),
        }
        first += fields.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_operations_types_and_modes_are_their_places() {
        assert!(Op::ALL.iter().enumerate().all(|(at, &op)| op as usize == at));
        assert!(DType::ALL.iter().enumerate().all(|(at, &dtype)| dtype as usize == at));
        assert!(Round::ALL.iter().enumerate().all(|(at, &round)| round as usize == at));
    }
}
