//! The stage registers of a two-input unit and of trees of units, as hardware holds them and waveforms show them.
//!
//! ```text
//!             stage 1                      stage 2                              stage s
//!  a ─▶┌────────────────┐  ┌─[aligned]─┐  ┌──────────┐  ┌─[normalised]─┐       ┌──────┐  ┌─[done]──┐
//!      │ segments up to │─▶│ [partials]│─▶│ the next │─▶│              │─▶ … ─▶│ last │─▶│         │─▶ word, flags
//!  b ─▶│ the first cut  │  │ [ordered] │  │ segments │  │ [done]       │       │      │  │         │
//!      └────────────────┘  │ [passed]  │  └──────────┘  │ [passed]     │       └──────┘  │ [passed]│
//!                          └───────────┘                └──────────────┘                 └─────────┘
//! ```
//!
//! A stage has the registers of all its datapaths side by side ([`StageRegister`]), and a register `passed` for an
//! operand without a partner. The control registers of a stage:
//!
//! | register | meaning |
//! |---|---|
//! | `valid` | an operation is in this stage |
//! | `joined` | it has two operands; otherwise a single operand passes through |
//! | `op`, `dtype`, tag | operation, data type, and the tag of the reduction it belongs to |
//!
//! Every register but `valid` **loads only with a valid input, otherwise holds**, and resets to zero. Of the datapaths
//! only the one that the operation uses loads, lane by lane. A cycle without a call of `clock` is a cycle with the
//! clock enable low.
//!
//! | parameter | range | effect |
//! |---|---|---|
//! | stages | 1 to 6 | registers a unit, at the segments of [`cut`] |
//! | datapaths in use | - | which of the registers there are: those of the operations and types that the unit is used for |
//!
//! **One implementation.** The stages are the pure functions of the units' pages, as in [`Pipe`](super::Pipe) and
//! [`Tree`](super::Tree). An engine that no waveform shows evaluates them at once and holds the result back. An engine
//! that a waveform shows clocks these registers as well, from the same operands.
//!
//! Requirement: H-PIPE-1 (`hardware.md`).
//!
//! ```
//! use watershed_arith::stages::{TreeStages, all_units};
//! use watershed_arith::{DType, Op, TreeCfg, TreeIn};
//!
//! let mut stages = TreeStages::new(TreeCfg { radix: 2, unit_stages: 3 }, &all_units());
//! assert!(stages.clock(Some(&TreeIn::of(Op::Sum, DType::I64, &[20, 22]))).is_none()); // cycle 0
//! assert!(stages.moved() && !stages.is_empty()); // the first register has taken the operands
//! assert!(stages.clock(None).is_none()); // cycle 1
//! assert!(stages.clock(None).is_none()); // cycle 2
//! assert_eq!(stages.clock(None).map(|left| left.value), Some(42)); // cycle 3
//! ```

mod tree;

use std::sync::Arc;

use super::lanes::lane;
use super::quad::{Quad, QuadRegister, QuadUnit};
use watershed_state::{Saved, state};

use super::types::{DType, Flags, Mode, Op};
use super::unit::{SEGMENTS, StageRegister, Unit, cut};

pub use tree::{Control, TreeStages};

/// Takes lane (if the field is a lane's), name, width and value of a field.
pub type Sink<'a> = &'a mut dyn FnMut(Option<u8>, &'static str, u32, u128);

/// A unit whose registers can be held stage by stage.
pub trait Datapath: Copy + std::fmt::Debug + Saved {
    /// An operand, and a result.
    type Word: Copy + Default + std::fmt::Debug + Saved;
    /// What lies in a register of a datapath.
    type Register: Copy + std::fmt::Debug + Saved;

    /// The operands at the inputs.
    fn door(&self, a: Self::Word, b: Self::Word) -> Self::Register;
    /// This many segments in a row.
    fn pass(&self, segments: u8, register: Self::Register) -> Self::Register;
    /// What is behind the last segment.
    fn result(&self, register: &Self::Register) -> (Self::Word, Flags);
    /// The register's name: registers of one name are one register.
    fn name(register: &Self::Register) -> &'static str;
    /// Fields of a register.
    fn show(&self, register: &Self::Register, sink: Sink<'_>);
    /// Fields of an operand.
    fn show_word(word: &Self::Word, sink: Sink<'_>);
    /// How it rounds, flushes and treats NaNs.
    fn mode(&self) -> Mode;
}

/// The lanes of a word in the registers of a unit; those that the type has not are of no meaning.
#[derive(Clone, Copy, Debug, Saved)]
pub struct WordRegister([StageRegister; 8]);

impl Datapath for Unit {
    type Word = u64;
    type Register = WordRegister;

    fn door(&self, a: u64, b: u64) -> WordRegister {
        let dtype = self.dtype();
        let pair = |k: usize| {
            // A lane that is not there repeats the first one.
            let k = if k < dtype.lanes() as usize { k as u32 } else { 0 };
            StageRegister::Operands { a: lane(dtype, a, k), b: lane(dtype, b, k) }
        };
        WordRegister(std::array::from_fn(pair))
    }

    fn pass(&self, segments: u8, mut register: WordRegister) -> WordRegister {
        for lane in &mut register.0[..self.dtype().lanes() as usize] {
            *lane = self.steps(segments, *lane);
        }
        register
    }

    fn result(&self, register: &WordRegister) -> (u64, Flags) {
        let (mut word, mut flags) = (0, Flags::NONE);
        for k in 0..self.dtype().lanes() {
            let StageRegister::Done(done) = register.0[k as usize] else {
                unreachable!("a unit is done after its last segment")
            };
            word |= done.bits << (k * self.dtype().bits());
            flags |= done.flags;
        }
        (word, flags)
    }

    fn name(register: &WordRegister) -> &'static str {
        register.0[0].name()
    }

    fn show(&self, register: &WordRegister, sink: Sink<'_>) {
        for k in 0..self.dtype().lanes() as usize {
            self.fields(&register.0[k], &mut |name, width, value| sink(Some(k as u8), name, width, value));
        }
    }

    fn show_word(word: &u64, sink: Sink<'_>) {
        sink(None, "word", 64, u128::from(*word));
    }

    fn mode(&self) -> Mode {
        self.mode
    }
}

impl Datapath for QuadUnit {
    type Word = Quad;
    type Register = QuadRegister;

    fn door(&self, a: Quad, b: Quad) -> QuadRegister {
        QuadRegister::Operands { a, b }
    }

    fn pass(&self, segments: u8, register: QuadRegister) -> QuadRegister {
        self.steps(segments, register)
    }

    fn result(&self, register: &QuadRegister) -> (Quad, Flags) {
        let QuadRegister::Done(quad) = register else { unreachable!("a unit is done after its last segment") };
        // Its exceptions are in the result code.
        (*quad, Flags::NONE)
    }

    fn name(register: &QuadRegister) -> &'static str {
        register.name()
    }

    fn show(&self, register: &QuadRegister, sink: Sink<'_>) {
        self.fields(register, sink);
    }

    fn show_word(word: &Quad, sink: Sink<'_>) {
        for (k, &lane) in word.lanes.iter().enumerate() {
            sink(Some(k as u8), "word", 64, u128::from(lane));
        }
        sink(None, "code", 4, u128::from(word.code.number()));
        sink(None, "m", 8, u128::from(word.m as u8));
        sink(None, "oflow_id", 2, u128::from(word.oflow_id));
    }

    fn mode(&self) -> Mode {
        QuadUnit::mode(self)
    }
}

/// Name of the register that a lone operand goes through.
pub const PASSED: &str = "passed";

/// A field of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// The lane it belongs to, if any.
    pub lane: Option<u8>,
    /// Its name in the datasheet of the unit.
    pub name: &'static str,
    /// Bits: as many as the widest type in use needs.
    pub width: u32,
}

/// The fields of one register of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Name of the register.
    pub name: &'static str,
    /// Lane by lane, what belongs to none last.
    pub fields: Vec<FieldPlace>,
}

impl Group {
    /// Adds the fields of one unit's register to those that are there.
    fn add(&mut self, lane: Option<u8>, name: &'static str, width: u32) {
        match self.fields.iter_mut().find(|field| (field.lane, field.name) == (lane, name)) {
            Some(field) => field.width = field.width.max(width),
            None => self.fields.push(FieldPlace { lane, name, width }),
        }
    }
}

/// Which registers the stages of a unit have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    stages: Vec<Vec<Group>>,
}

impl Layout {
    /// Those of the datapaths in use, cut into this many stages.
    ///
    /// # Panics
    ///
    /// If `stages` is not in 1 to 6.
    pub fn of<U: Datapath>(stages: u8, in_use: &[U]) -> Layout {
        let behind = |&end: &u8| {
            let mut passed = Group { name: PASSED, fields: Vec::new() };
            U::show_word(&U::Word::default(), &mut |lane, name, width, _| passed.add(lane, name, width));
            let mut groups = vec![passed];
            for unit in in_use {
                let blank = unit.pass(end, unit.door(U::Word::default(), U::Word::default()));
                let name = U::name(&blank);
                let at = groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
                    groups.push(Group { name, fields: Vec::new() });
                    groups.len() - 1
                });
                unit.show(&blank, &mut |lane, name, width, _| groups[at].add(lane, name, width));
            }
            for group in &mut groups {
                // Stable: within a lane, fields stay in the order of the datasheet.
                group.fields.sort_by_key(|field| field.lane.map_or(u8::MAX, |lane| lane));
            }
            groups
        };
        Layout { stages: cut(stages).iter().map(behind).collect() }
    }
}

/// One stage's registers.
#[derive(Clone, Debug, Saved)]
#[saved(bound = "U: Datapath")]
pub struct Stage<U: Datapath> {
    /// An operation is in it.
    pub valid: bool,
    /// It has two operands.
    pub joined: bool,
    /// Its operation.
    pub op: Op,
    /// Type of its lanes.
    pub dtype: DType,
    /// What names it.
    pub tag: u64,
    data: Option<StageData<U>>,
    /// By register and field, as the layout has them.
    values: Vec<Vec<u128>>,
}

/// The values on the wires between two stages.
#[derive(Clone, Copy, Debug, Saved)]
#[saved(bound = "U: Datapath")]
enum StageData<U: Datapath> {
    Lone(U::Word),
    Pair(U, U::Register),
}

/// One or two operands that enter a unit.
#[derive(Clone, Copy, Debug, Saved)]
#[saved(bound = "U: Datapath")]
pub struct UnitInput<U: Datapath> {
    /// Operation.
    pub op: Op,
    /// Type of the lanes.
    pub dtype: DType,
    /// What names it.
    pub tag: u64,
    data: StageData<U>,
    /// The operands as they came.
    words: [U::Word; 2],
}

impl<U: Datapath> UnitInput<U> {
    /// A lone operand, which passes unchanged.
    pub fn lone(op: Op, dtype: DType, tag: u64, word: U::Word) -> UnitInput<U> {
        UnitInput { op, dtype, tag, data: StageData::Lone(word), words: [word, U::Word::default()] }
    }

    /// Two operands, the one of the lower port first.
    pub fn pair(op: Op, dtype: DType, tag: u64, unit: U, a: U::Word, b: U::Word) -> UnitInput<U> {
        UnitInput { op, dtype, tag, data: StageData::Pair(unit, unit.door(a, b)), words: [a, b] }
    }
}

/// The result that leaves a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct UnitOutput<W> {
    /// Operation.
    pub op: Op,
    /// Type of the lanes.
    pub dtype: DType,
    /// What names it.
    pub tag: u64,
    /// The result, or the lone operand.
    pub word: W,
    /// Flags of this operation alone.
    pub flags: Flags,
}

/// The operands that a unit took at the last edge, for comparison with a reference model.
#[derive(Clone, Copy, Debug, Saved)]
#[saved(bound = "U: Datapath")]
pub struct SampledOperands<U: Datapath> {
    /// It took some.
    pub valid: bool,
    /// Two of them.
    pub joined: bool,
    /// Operation.
    pub op: Op,
    /// Type of the lanes.
    pub dtype: DType,
    /// Rounding, flushing, NaN policies; those of a lone operand are of no meaning.
    pub mode: Mode,
    /// What names it.
    pub tag: u64,
    /// The operands.
    pub words: [U::Word; 2],
}

/// A two-input unit, register by register.
#[derive(Clone, Debug)]
pub struct UnitStages<U: Datapath> {
    ends: &'static [u8],
    layout: Arc<Layout>,
    stages: Vec<Stage<U>>,
    taken: SampledOperands<U>,
    moved: bool,
}

state!([U: Datapath] UnitStages<U> { saved: stages, taken, moved; built: ends, layout });

impl<U: Datapath> UnitStages<U> {
    /// A unit after reset.
    pub fn new(stages: u8, layout: &Arc<Layout>) -> UnitStages<U> {
        let blank = |groups: &Vec<Group>| Stage {
            valid: false,
            joined: false,
            op: Op::ALL[0],
            dtype: DType::ALL[0],
            tag: 0,
            data: None,
            values: groups.iter().map(|group| vec![0; group.fields.len()]).collect(),
        };
        let taken = SampledOperands {
            valid: false,
            joined: false,
            op: Op::ALL[0],
            dtype: DType::ALL[0],
            mode: Mode::default(),
            tag: 0,
            words: [U::Word::default(); 2],
        };
        UnitStages {
            ends: cut(stages),
            layout: Arc::clone(layout),
            stages: layout.stages.iter().map(blank).collect(),
            taken,
            moved: true,
        }
    }

    /// One clock: operands in, what the last register held out.
    pub fn clock(&mut self, input: Option<UnitInput<U>>) -> Option<UnitOutput<U::Word>> {
        self.moved = input.is_some() || self.taken.valid || !self.is_empty();
        if !self.moved {
            return None;
        }
        self.taken.valid = input.is_some();
        if let Some(UnitInput { op, dtype, tag, data, words }) = input {
            let (joined, mode) = match data {
                StageData::Pair(unit, _) => (true, unit.mode()),
                StageData::Lone(_) => (false, self.taken.mode),
            };
            self.taken = SampledOperands { valid: true, joined, op, dtype, mode, tag, words };
        }
        let mut wire = input.map(|entry| (entry.op, entry.dtype, entry.tag, entry.data));
        let mut begin = 0;
        for ((&end, stage), groups) in self.ends.iter().zip(&mut self.stages).zip(&self.layout.stages) {
            if let Some((.., StageData::Pair(unit, register))) = &mut wire {
                *register = unit.pass(end - begin, *register);
            }
            begin = end;
            wire = stage.load(wire, groups);
        }
        debug_assert_eq!(begin, SEGMENTS, "the last stage ends with the last segment");
        wire.map(|(op, dtype, tag, data)| {
            let (word, flags) = match data {
                StageData::Lone(word) => (word, Flags::NONE),
                StageData::Pair(unit, register) => unit.result(&register),
            };
            UnitOutput { op, dtype, tag, word, flags }
        })
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.stages.iter().all(|stage| !stage.valid)
    }

    /// Whether a register may have changed at the last edge.
    pub fn moved(&self) -> bool {
        self.moved
    }

    /// What it took at the last edge.
    pub fn taken(&self) -> &SampledOperands<U> {
        &self.taken
    }

    /// The registers behind the stages, first stage first, with their fields.
    pub fn stages(&self) -> impl Iterator<Item = (&Stage<U>, &[Group])> {
        self.stages.iter().zip(&self.layout.stages).map(|(stage, groups)| (stage, groups.as_slice()))
    }
}

type Wire<U> = Option<(Op, DType, u64, StageData<U>)>;

impl<U: Datapath> Stage<U> {
    /// The edge: what comes in is held, what was held goes on.
    fn load(&mut self, wire: Wire<U>, groups: &[Group]) -> Wire<U> {
        let held = self.data.take().map(|data| (self.op, self.dtype, self.tag, data));
        self.valid = wire.is_some();
        let Some((op, dtype, tag, data)) = wire else { return held };
        (self.op, self.dtype, self.tag) = (op, dtype, tag);
        self.joined = matches!(data, StageData::Pair(..));
        let name = match &data {
            StageData::Lone(_) => PASSED,
            StageData::Pair(_, register) => U::name(register),
        };
        if let Some(at) = groups.iter().position(|group| group.name == name) {
            let (fields, values) = (&groups[at].fields, &mut self.values[at]);
            let mut next = 0;
            let mut put = |lane, name, _: u32, value| {
                // They come in the order of the layout but for what no lane has.
                let found = |&k: &usize| (fields[k].lane, fields[k].name) == (lane, name);
                if let Some(k) = (next..fields.len()).chain(0..next).find(found) {
                    values[k] = value;
                    next = k + 1;
                }
            };
            match &data {
                StageData::Lone(word) => U::show_word(word, &mut put),
                StageData::Pair(unit, register) => unit.show(register, &mut put),
            }
        }
        self.data = Some(data);
        held
    }

    /// What a register's field holds, by their numbers in the layout.
    pub fn value(&self, group: usize, field: usize) -> u128 {
        self.values[group][field]
    }
}

/// The units of these operations and types: what a [`Layout`] is made of. A barrier has no datapath.
pub fn units_of(selects: impl IntoIterator<Item = (Op, DType)>) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for (op, dtype) in selects {
        // Rounding is no register of its own.
        if let Some(unit) = Unit::of(op, dtype, Mode::default()).filter(|unit| !units.contains(unit)) {
            units.push(unit);
        }
    }
    units
}

/// The units of every operation that works word by word, on every type.
pub fn all_units() -> Vec<Unit> {
    units_of(Op::ALL.iter().flat_map(|&op| DType::ALL.iter().map(move |&dtype| (op, dtype))))
}

/// The units of every opcode of the armed family.
pub fn all_quad_units() -> Vec<QuadUnit> {
    super::quad::OPCODES.iter().map(|opcode| opcode.unit(Mode::default())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::quad::QuadPipe;
    use super::*;

    /// Every field of every stage as the quad pipe has it, a bubble where nothing is.
    #[test]
    fn a_quad_unit_holds_what_its_pipe_holds() {
        for stages in 1..=6 {
            let layout = Arc::new(Layout::of(stages, &all_quad_units()));
            for opcode in super::super::quad::OPCODES {
                let unit = opcode.unit(Mode::default());
                let mut pipe = QuadPipe::new(unit, stages);
                let mut clocked = UnitStages::new(stages, &layout);
                for cycle in 0..40u64 {
                    let words =
                        |k: u64| Quad::of(std::array::from_fn(|at| (cycle * 7 + k * 3 + at as u64) << (cycle % 60)));
                    let input = (cycle % 3 != 1).then(|| (words(0), words(1)));
                    let left = pipe.tick(input.map(|(a, b)| (a, b, cycle)));
                    let entry = input.map(|(a, b)| UnitInput::pair(opcode.op, opcode.dtype, cycle, unit, a, b));
                    let exit = clocked.clock(entry);
                    assert_eq!(exit.map(|exit| (exit.word, exit.tag)), left);
                    for (held, (stage, groups)) in pipe.registers().zip(clocked.stages()) {
                        assert_eq!(stage.valid, held.is_some());
                        let Some(held) = held else { continue };
                        let group = groups.iter().position(|group| group.name == held.name()).expect("in the layout");
                        unit.fields(held, &mut |lane, name, width, value| {
                            let fields = &groups[group].fields;
                            let at = fields.iter().position(|field| (field.lane, field.name) == (lane, name));
                            let at = at.expect("a field of the layout");
                            assert!(fields[at].width >= width);
                            assert_eq!(stage.value(group, at), value, "{} {lane:?} {name}", held.name());
                        });
                    }
                }
                for _ in 0..stages {
                    clocked.clock(None);
                }
                assert!(clocked.is_empty());
            }
        }
    }

    #[test]
    fn registers_load_with_a_valid_input_only() {
        let layout = Arc::new(Layout::of(2, &units_of([(Op::Sum, DType::F64), (Op::Max, DType::I32)])));
        let mut unit = UnitStages::<Unit>::new(2, &layout);
        let values = |unit: &UnitStages<Unit>| -> Vec<u128> {
            let all = unit.stages().flat_map(|(stage, groups)| {
                let each =
                    |(at, group): (usize, &Group)| (0..group.fields.len()).map(move |k| (at, k)).collect::<Vec<_>>();
                groups.iter().enumerate().flat_map(each).map(|(at, k)| stage.value(at, k)).collect::<Vec<_>>()
            });
            all.collect()
        };
        assert!(values(&unit).iter().all(|&value| value == 0), "zero after reset");
        let sum = Unit::of(Op::Sum, DType::F64, Mode::default()).unwrap();
        unit.clock(Some(UnitInput::pair(Op::Sum, DType::F64, 9, sum, 1.5f64.to_bits(), 2.5f64.to_bits())));
        let held = values(&unit);
        assert!(held.iter().any(|&value| value != 0));
        unit.clock(None);
        let (first, _) = unit.stages().next().unwrap();
        assert!(!first.valid && first.tag == 9, "the first stage holds");
        let max = Unit::of(Op::Max, DType::I32, Mode::default()).unwrap();
        unit.clock(Some(UnitInput::pair(Op::Max, DType::I32, 10, max, 1, 2)));
        let (first, groups) = unit.stages().next().unwrap();
        let sum = groups.iter().position(|group| group.name == "summed").unwrap();
        let field = groups[sum].fields.iter().position(|field| field.name == "exponent").unwrap();
        assert_ne!(first.value(sum, field), 0, "the adder's register is not that of the comparator");
    }
}
