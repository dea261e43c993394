//! Stage registers: what the model calls them, and where the RTL has them.
//!
//! The model's list of registers ([`Layout`](watershed::arith::stages::Layout)) decides what is looked at. A register has the same name on both sides
//! but for `done`, which in the RTL carries the number of the segment behind which it lies.

use watershed::arith::stages::{Datapath, FieldPlace, PASSED, TreeStages, UnitStages};
use watershed::arith::unit::cut;
use watershed::arith::{DType, Flags, Mode, NanPolicy, QuadUnit, SignalPolicy, TreeCfg, Unit};

use crate::bench::Bench;

/// Bits of a tag.
pub const TAG_BITS: u32 = 64;

/// A mode as the RTL packs it.
pub fn mode_bits(mode: Mode) -> u128 {
    u128::from(mode.signal == SignalPolicy::Ieee) << 4
        | u128::from(mode.nan == NanPolicy::Propagate) << 3
        | u128::from(mode.flush_to_zero) << 2
        | mode.round as u128
}

/// Flags as the RTL has them.
pub fn flags_bits(flags: Flags) -> u128 {
    u128::from(flags.bits())
}

/// The RTL's parameter `Units` for these datapaths: as a literal.
pub fn units_literal(units: &[Unit]) -> String {
    let mut bits = 0u64;
    for unit in units {
        let path = match unit.blank(1).name() {
            "compared" => 0,
            "factored" => 1,
            "keys" => 2,
            "extended" => 3,
            other => panic!("a unit that begins with {other}"),
        };
        bits |= 1 << (path * DType::ALL.len() + unit.dtype() as usize);
    }
    format!("44'h{bits:011x}")
}

/// Where the RTL's lane has a register that lies behind this segment.
fn net(register: &str, end: u8) -> String {
    match (register, end) {
        ("done", 6) => "done_o".to_owned(),
        ("done", end) => format!("done_{}", end - 1),
        _ => register.to_owned(),
    }
}

/// Looks at every register of a unit that is `path` in the RTL, where `place` tells of a register other than that of lone operands:
/// its name, its segment, lane and name of the field.
fn look_at_stages<U: Datapath>(
    bench: &mut Bench,
    (name, path, stages): (&str, &str, u8),
    unit: &UnitStages<U>,
    place: impl Fn(&str, u8, Option<u8>, &str) -> String,
) {
    for (at, ((_, groups), &end)) in unit.stages().zip(cut(stages)).enumerate() {
        let stage = format!("{name}.stage{}", at + 1);
        for (field, width) in [("valid", 1), ("joined", 1), ("op", 4), ("dtype", 4), ("tag", TAG_BITS)] {
            bench.look(format!("{stage}.{field}"), format!("{path}.{field}_q[{at}]"), width);
        }
        for group in groups {
            for &FieldPlace { lane, name, width } in &group.fields {
                let expression = if group.name == PASSED {
                    format!("{path}.passed_q[{at}]{}", word_of(lane, name))
                } else {
                    format!("{path}.{}", place(group.name, end, lane, name))
                };
                let lane = lane.map_or_else(String::new, |lane| format!(".lane{lane}"));
                bench.look(format!("{stage}.{}{lane}.{name}", group.name), expression, width);
            }
        }
    }
}

/// A field of an operand or a result: a word of one is all of it, of four it has a number.
fn word_of(lane: Option<u8>, name: &str) -> String {
    match (lane, name) {
        (None, "word") => String::new(),
        (Some(lane), "word") => format!(".word[{lane}]"),
        (_, name) => format!(".{name}"),
    }
}

/// Looks at every register of a unit that is `path` in the RTL.
pub fn look_at_unit(bench: &mut Bench, name: &str, path: &str, stages: u8, unit: &UnitStages<Unit>) {
    look_at_stages(bench, (name, path, stages), unit, |register, end, lane, name| {
        format!("gen_lane[{}].gen_there.u_lane.{}.{name}", lane.unwrap_or(0), net(register, end))
    });
}

/// Looks at every register of a quad unit that is `path` in the RTL.
pub fn look_at_quad(bench: &mut Bench, name: &str, path: &str, stages: u8, unit: &UnitStages<QuadUnit>) {
    look_at_stages(bench, (name, path, stages), unit, place_in_quad);
}

/// Where a quad unit of the RTL has a field of a register that lies behind this segment.
fn place_in_quad(register: &str, end: u8, lane: Option<u8>, name: &str) -> String {
    if register == "done" {
        return format!("done_{}{}", end - 1, word_of(lane, name));
    }
    let lane = lane.unwrap_or(0);
    match (register, name) {
        (_, "code") => format!("{register}.code"),
        ("loc_keys", name @ ("a_index" | "b_index")) => format!("loc_keys.half[{lane}].{name}"),
        ("loc_keys", name) => format!("loc_keys.half[{lane}].keys.{name}"),
        ("loc_ordered", "a_first") => format!("loc_ordered.half[{lane}].a_first"),
        ("loc_ordered", name) => format!("loc_ordered.half[{lane}].ordered.{name}"),
        ("rep_compared", name @ ("larger" | "smaller")) => format!("rep_compared.{name}.word[{lane}]"),
        ("rep_aligned", name @ ("larger" | "smaller")) => format!("rep_aligned.{name}[{lane}]"),
        ("rep_compared" | "rep_aligned", name) => format!("{register}.{name}"),
        (_, name) => format!("{register}.lane[{lane}].{name}"),
    }
}

/// Looks at the registers of lane 0 of a unit; `path` is the lane in the RTL.
pub fn look_at_lane(bench: &mut Bench, name: &str, path: &str, stages: u8, unit: &UnitStages<Unit>) {
    for (at, ((_, groups), &end)) in unit.stages().zip(cut(stages)).enumerate() {
        for group in groups.iter().filter(|group| group.name != PASSED) {
            for field in group.fields.iter().filter(|field| field.lane == Some(0)) {
                let expression = format!("{path}.{}.{}", net(group.name, end), field.name);
                bench.look(format!("{name}.stage{}.{}.{}", at + 1, group.name, field.name), expression, field.width);
            }
        }
    }
}

/// What they hold, in the order of [`look_at_lane`].
pub fn lane_values(unit: &UnitStages<Unit>, values: &mut Vec<Option<u128>>) {
    for (stage, groups) in unit.stages() {
        for (number, group) in groups.iter().enumerate().filter(|(_, group)| group.name != PASSED) {
            let fields = group.fields.iter().enumerate().filter(|(_, field)| field.lane == Some(0));
            values.extend(fields.map(|(field, _)| Some(stage.value(number, field))));
        }
    }
}

/// What the registers of a unit hold, in the order of [`look_at_unit`].
pub fn unit_values<U: Datapath>(unit: &UnitStages<U>, values: &mut Vec<Option<u128>>) {
    for (stage, groups) in unit.stages() {
        let control = [
            u128::from(stage.valid),
            u128::from(stage.joined),
            stage.op as u128,
            stage.dtype as u128,
            u128::from(stage.tag),
        ];
        values.extend(control.map(Some));
        for (number, group) in groups.iter().enumerate() {
            values.extend((0..group.fields.len()).map(|field| Some(stage.value(number, field))));
        }
    }
}

/// Looks at every register of a tree that is `path` in the RTL.
pub fn look_at_tree(bench: &mut Bench, name: &str, path: &str, tree: &TreeStages) {
    let TreeCfg { unit_stages, .. } = tree.cfg();
    for (level, (control, units)) in tree.levels().enumerate() {
        for at in 0..control.len() {
            let fields = [("valid", 1), ("op", 4), ("dtype", 4), ("mode", 5), ("tag", TAG_BITS), ("flags", 8)];
            for (field, width) in fields {
                let expression = format!("{path}.gen_level[{level}].control_q[{at}].{field}");
                bench.look(format!("{name}.level{level}.stage{}.{field}", at + 1), expression, width);
            }
        }
        for (node, unit) in units.iter().enumerate() {
            let path = format!("{path}.gen_level[{level}].gen_unit[{node}].u_unit");
            look_at_unit(bench, &format!("{name}.level{level}.unit{node}"), &path, unit_stages, unit);
        }
    }
}

/// What the registers of a tree hold, in the order of [`look_at_tree`].
pub fn tree_values(tree: &TreeStages, values: &mut Vec<Option<u128>>) {
    for (control, units) in tree.levels() {
        for stage in control {
            let select = [u128::from(stage.valid), stage.op as u128, stage.dtype as u128];
            values.extend(select.map(Some));
            values.extend([mode_bits(stage.mode), u128::from(stage.tag), flags_bits(stage.flags)].map(Some));
        }
        for unit in units {
            unit_values(unit, values);
        }
    }
}

/// The number behind a word, for instance 3 of `level3` with `level`.
fn index(part: &str, word: &str) -> Option<usize> {
    part.strip_prefix(word)?.parse().ok()
}

/// Bits of a flit's tag that waves show, in the RTL's vector.
fn tag_bits(field: &str) -> Option<&'static str> {
    match field {
        // A packet engine's reduction unit has a context's name and run, and the number of a word.
        "id" | "cc_id" => Some("[27:16]"),
        "seq" => Some("[63:28]"),
        "run" => Some("[59:28]"),
        "word" => Some("[15:0]"),
        _ => None,
    }
}

/// Where the RTL has a signal of the scope `tree` in waves (see `stage_waves` of the fabric), from its name below that scope; `None` for
/// what is no register of the RTL.
pub fn wave_of_tree(name: &str, path: &str, unit_stages: u8) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let level = index(parts.first()?, "level")?;
    let path = format!("{path}.gen_level[{level}]");
    if let Some(stage) = index(parts[1], "stage") {
        let (at, field) = (stage - 1, parts[2]);
        let (field, bits) = tag_bits(field).map_or((field, ""), |bits| ("tag", bits));
        return Some(format!("{path}.control_q[{at}].{field}{bits}"));
    }
    let unit = index(parts[1], "unit")?;
    wave_of_unit(&parts[2..], &format!("{path}.gen_unit[{unit}].u_unit"), unit_stages)
}

/// The same of a scan unit, from the name below the scope `scan`.
pub fn wave_of_scan(name: &str, path: &str, unit_stages: u8) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let unit = match index(parts.first()?, "chain") {
        Some(number) => format!("{path}.gen_chain[{number}].u_unit"),
        None => (parts[0] == "combine").then(|| format!("{path}.u_combine"))?,
    };
    wave_of_unit(&parts[1..], &unit, unit_stages)
}

/// The same of a two-input unit.
fn wave_of_unit(parts: &[&str], path: &str, unit_stages: u8) -> Option<String> {
    let at = index(parts.first()?, "stage")? - 1;
    Some(match parts[1..] {
        [PASSED, _] => format!("{path}.passed_q[{at}]"),
        [field] => {
            let (field, bits) = tag_bits(field).map_or((field, ""), |bits| ("tag", bits));
            format!("{path}.{field}_q[{at}]{bits}")
        }
        [register, lane, field] => {
            let lane = index(lane, "lane")?;
            let end = cut(unit_stages)[at];
            format!("{path}.gen_lane[{lane}].gen_there.u_lane.{}.{field}", net(register, end))
        }
        _ => return None,
    })
}

/// Where the RTL has a signal of the scope `unit` of a reduction engine in waves, from its name below that scope; `tag` tells where a
/// field of the tag is. `None` for what is no register.
pub fn wave_of_quad(name: &str, path: &str, stages: u8, tag: impl Fn(usize, &str) -> Option<String>) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let at = index(parts.first()?, "stage")? - 1;
    let end = cut(stages)[at];
    let (register, lane, field) = match parts[1..] {
        [field] => {
            return Some(tag(at, field).unwrap_or_else(|| format!("{path}.{field}_q[{at}]")));
        }
        [register, field] => (register, None, field),
        [register, lane, field] => (register, Some(index(lane, "lane")? as u8), field),
        _ => return None,
    };
    Some(match register {
        PASSED => format!("{path}.passed_q[{at}]{}", word_of(lane, field)),
        register => format!("{path}.{}", place_in_quad(register, end, lane, field)),
    })
}
