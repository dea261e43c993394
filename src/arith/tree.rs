//! The pipelined reduction tree: up to 64 words in fixed port order, one word out, a wave every cycle.
//!
//! ```text
//!   port   0   1   2   3   4   5   6   7   8   9            radix 10, four levels
//!          \   /   \   /   \   /   \   /   \   /
//!  level 0  (0)     (1)     (2)     (3)     (4)            each node: `unit_stages` registers
//!             \     /         \     /        |
//!  level 1      (0)             (1)         (2)            a node without partner passes its word on,
//!                  \           /             |             through as many registers
//!  level 2              (0)                 (1)
//!                          \               /
//!  level 3                        (0) -------------------> value, flags, tag
//! ```
//!
//! | port | type | meaning |
//! |------|------|---------|
//! | input | `Option<TreeIn>` | operation, type, mode, the operands with their ports, incoming sticky flags, a tag |
//! | output | `Option<TreeOut>` | the word, the union of all flags, the tag |
//!
//! | parameter | default | range | effect |
//! |-----------|---------|-------|--------|
//! | `radix` | - | 1 to 64 | leaves; levels = ceil(log2 radix) |
//! | `unit_stages` | - | 1 to 6 | cycles a level takes |
//!
//! Timing: latency = levels x `unit_stages` cycles, for every operation, type and set of ports. What is given to
//! [`Tree::tick`] of cycle t is returned by that of cycle t + latency. A tree of radix 1 has no unit and no register:
//! its latency is 0 and `tick` returns its input at once. A cycle in which `tick` is not called is a cycle with the
//! clock enable low: every register holds.
//!
//! The shape is fixed by the radix alone. An absent port leaves its node to the other operand; there is no compaction,
//! because it would change the bits with the configuration. So a result depends on which port brought which word, and
//! never on the order of arrival.
//!
//! A **lone operand passes unchanged**, bit for bit: NaN payloads, signalling NaNs, denormals under flush-to-zero and
//! the pad of TF32 included. With one operand the whole tree is a wire (with registers), and raises no flag.
//! No operand at all gives a zero word. A barrier gives a zero word whatever its operands. *\[chosen\]*
//!
//! Limitation: the [wide](Op::is_wide) operations, whose operand is four words, are refused; see
//! [`quad`](super::quad).
//!
//! Storage: an idle tree is a few bytes; everything else exists only while waves are in flight.
//!
//! Requirements: P-SW-2, P-SW-3 (`piuma.md`); A-PIPE-1, A-FLAG-1 (`common.md`, section 1).
//!
//! ```
//! use watershed_arith::{DType, Op, Tree, TreeCfg, TreeIn};
//!
//! // Four ports, two levels of two stages: a latency of four cycles.
//! let mut tree = Tree::new(TreeCfg { radix: 4, unit_stages: 2 });
//! let left: Vec<_> = (0..6)
//!     .map(|cycle| {
//!         // A wave every cycle: 1 + 2 + 3 + c.
//!         let wave = TreeIn::of(Op::Sum, DType::I64, &[1, 2, 3, cycle]);
//!         tree.tick(Some(wave)).map(|out| out.value)
//!     })
//!     .collect();
//! assert_eq!(left, [None, None, None, None, Some(6), Some(7)]);
//! ```

use std::collections::VecDeque;

use super::bank::Bank;
use super::lanes::lane;
use super::types::{DType, Flags, Mode, Op};
use super::unit::{MAX_STAGES, StageRegister, Unit, cut};

/// The largest radix: a port set is one 64-bit mask.
pub const MAX_RADIX: u8 = 64;

/// Parameters of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, watershed_state::Saved)]
pub struct TreeCfg {
    /// Leaves (ports), 1 to 64.
    pub radix: u8,
    /// Clock stages of each unit, 1 to 6.
    pub unit_stages: u8,
}

/// A parameter outside its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadTreeCfg {
    /// `radix` is not in 1 to 64.
    #[error("a reduction tree has 1 to 64 ports, not {0}")]
    Radix(u8),
    /// `unit_stages` is not in 1 to 6.
    #[error("a unit is cut into 1 to 6 clock stages, not {0}")]
    UnitStages(u8),
}

impl TreeCfg {
    /// Checks the ranges.
    ///
    /// # Errors
    ///
    /// The first parameter that lies outside its range.
    pub const fn check(&self) -> Result<(), BadTreeCfg> {
        if self.radix == 0 || self.radix > MAX_RADIX {
            return Err(BadTreeCfg::Radix(self.radix));
        }
        if self.unit_stages == 0 || self.unit_stages > MAX_STAGES {
            return Err(BadTreeCfg::UnitStages(self.unit_stages));
        }
        Ok(())
    }

    /// Levels of units: ceil(log2 radix).
    pub const fn levels(&self) -> u32 {
        (self.radix as u32).next_power_of_two().trailing_zeros()
    }

    /// Cycles from operands to result: levels x stages of a unit. 0 for radix 1.
    pub const fn latency_cycles(&self) -> u64 {
        self.levels() as u64 * self.unit_stages as u64
    }

    /// The nodes of each level that join two words if these ports bring one, a bit each.
    pub fn joining(&self, mut ports: u64) -> Vec<u64> {
        let level = |level| {
            let nodes = 0..self.nodes(level);
            let (carry, join) = nodes.fold((0, 0), |(carry, join), node| {
                let both = ports >> (2 * node) & 3;
                (carry | u64::from(both != 0) << node, join | u64::from(both == 3) << node)
            });
            ports = carry;
            join
        };
        (0..self.levels()).map(level).collect()
    }

    /// Nodes of a level, level 0 being next to the ports.
    pub const fn nodes(&self, level: u32) -> u32 {
        (self.radix as u32).div_ceil(2 << level)
    }
}

/// Words with the ports they came from. Up to ten lie inline; more are rare and take a box.
#[derive(Debug, Clone, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct Operands {
    present: u64,
    low: [u64; Self::INLINE],
    high: Option<SpilledWords>,
}

/// Words of the ports that are not inline.
type SpilledWords = Box<[u64; MAX_RADIX as usize - Operands::INLINE]>;

impl Operands {
    /// Ports that need no allocation: those of a PIUMA switch.
    pub const INLINE: usize = 10;

    /// No operand.
    pub const fn new() -> Self {
        Self { present: 0, low: [0; Self::INLINE], high: None }
    }

    /// The words of ports 0, 1, 2, and so on.
    pub fn from_words(words: &[u64]) -> Self {
        let mut operands = Self::new();
        for (port, &word) in words.iter().enumerate() {
            operands.set(port as u8, word);
        }
        operands
    }

    /// Puts a word on a port.
    ///
    /// # Panics
    ///
    /// If the port is 64 or more.
    #[inline]
    pub fn set(&mut self, port: u8, word: u64) {
        assert!(port < MAX_RADIX, "port {port}: a reduction tree has at most {MAX_RADIX} ports");
        let index = port as usize;
        if index < Self::INLINE {
            self.low[index] = word;
        } else {
            let high = self.high.get_or_insert_with(|| Box::new([0; MAX_RADIX as usize - Self::INLINE]));
            high[index - Self::INLINE] = word;
        }
        self.present |= 1 << port;
    }

    /// The word of a port.
    #[inline]
    pub fn get(&self, port: u8) -> Option<u64> {
        (self.present >> port & 1 != 0).then(|| self.word(port as usize))
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        if index < Self::INLINE {
            self.low[index]
        } else {
            self.high.as_ref().map_or(0, |high| high[index - Self::INLINE])
        }
    }

    /// The ports that have a word, as a mask.
    pub const fn present(&self) -> u64 {
        self.present
    }

    /// Ports and words, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u64)> {
        (0..MAX_RADIX).filter_map(|port| self.get(port).map(|word| (port, word)))
    }
}

impl FromIterator<(u8, u64)> for Operands {
    fn from_iter<I: IntoIterator<Item = (u8, u64)>>(pairs: I) -> Self {
        let mut operands = Self::new();
        for (port, word) in pairs {
            operands.set(port, word);
        }
        operands
    }
}

/// One wave of operands.
#[derive(Debug, Clone, PartialEq, Eq, watershed_state::Saved)]
pub struct TreeIn {
    /// Operation of every node.
    pub op: Op,
    /// Type of the lanes.
    pub dtype: DType,
    /// Rounding, flushing, NaN policy.
    pub mode: Mode,
    /// The words with their ports.
    pub operands: Operands,
    /// Union of the sticky flags that came with the operands.
    pub flags: Flags,
    /// Opaque; comes out with the result.
    pub tag: u64,
}

impl TreeIn {
    /// A wave of the words of ports 0, 1, 2, …, in the default mode, without incoming flags, with tag 0.
    pub fn of(op: Op, dtype: DType, words: &[u64]) -> Self {
        Self { op, dtype, mode: Mode::default(), operands: Operands::from_words(words), flags: Flags::NONE, tag: 0 }
    }
}

/// The result of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, watershed_state::Saved)]
pub struct TreeOut {
    /// The reduced word.
    pub value: u64,
    /// Incoming flags and those of every unit on the way.
    pub flags: Flags,
    /// The tag of the wave.
    pub tag: u64,
}

/// The tree without registers: the same stage functions, composed.
///
/// # Panics
///
/// If an operand lies on a port the tree was not built with, or the operation is a [wide](Op::is_wide) one.
pub fn eval(cfg: TreeCfg, input: &TreeIn) -> TreeOut {
    check(cfg, input);
    let mut flags = input.flags;
    let value = match Unit::of(input.op, input.dtype, input.mode) {
        None => 0,
        Some(unit) if cfg.radix <= 16 => eval_words::<16>(cfg, &unit, &input.operands, &mut flags),
        Some(unit) => eval_words::<{ MAX_RADIX as usize }>(cfg, &unit, &input.operands, &mut flags),
    };
    TreeOut { value, flags, tag: input.tag }
}

/// Level by level over at most `N` words.
fn eval_words<const N: usize>(cfg: TreeCfg, unit: &Unit, operands: &Operands, flags: &mut Flags) -> u64 {
    let dtype = unit.dtype();
    let mut present = operands.present;
    let mut words = [0; N];
    for (port, word) in words.iter_mut().enumerate().take(cfg.radix as usize) {
        *word = operands.word(port);
    }
    for level in 0..cfg.levels() {
        let mut above = 0;
        for node in 0..cfg.nodes(level) as usize {
            // The last node of an odd level has no upper port; nothing is present there, so the word does not count.
            let (a, b) = (words[2 * node], words[(2 * node + 1) % N]);
            words[node] = match present >> (2 * node) & 3 {
                0 => continue,
                1 => a,
                2 => b,
                _ => {
                    let mut word = 0;
                    for k in 0..dtype.lanes() {
                        let done = unit.evaluate(lane(dtype, a, k), lane(dtype, b, k));
                        word |= done.bits << (k * dtype.bits());
                        *flags |= done.flags;
                    }
                    word
                }
            };
            above |= 1 << node;
        }
        present = above;
    }
    if present == 0 { 0 } else { words[0] }
}

fn check(cfg: TreeCfg, input: &TreeIn) {
    assert!(!input.op.is_wide(), "{} takes four words an operand: it needs a QuadUnit, not a tree of words", input.op);
    let operands = &input.operands;
    let legal = u64::MAX >> (MAX_RADIX - cfg.radix);
    assert!(
        operands.present & !legal == 0,
        "operands on ports {:#x} of a tree of radix {}: the switch was built with fewer ports",
        operands.present & !legal,
        cfg.radix
    );
}

/// The operands of one reduction on their way through the tree; always at one level, in one stage.
#[derive(Debug, Clone, Default, watershed_state::Saved)]
struct Wave {
    /// `None` for a barrier.
    unit: Option<Unit>,
    flags: Flags,
    tag: u64,
    level: u8,
    /// Clock stages of this level already passed.
    stage: u8,
    /// Nodes of this level that carry a word. Before the first level: the ports.
    present: u64,
    /// Nodes of this level that join two words.
    pairs: u64,
    /// One word a node; not meaningful for those that join.
    words: Vec<u64>,
    /// The registers of the joining nodes, node by node, lane by lane.
    bank: Bank,
}

impl Wave {
    /// Takes in new operands.
    fn load(&mut self, cfg: TreeCfg, input: &TreeIn) {
        self.unit = Unit::of(input.op, input.dtype, input.mode);
        self.flags = input.flags;
        self.tag = input.tag;
        self.level = 0;
        self.stage = 0;
        self.present = 0;
        self.pairs = 0;
        self.words.clear();
        if self.unit.is_some() {
            self.present = input.operands.present;
            self.words.extend((0..cfg.radix as usize).map(|port| input.operands.word(port)));
        }
    }

    /// Leads the words of the level below to the nodes of this one (wires only).
    fn enter_level(&mut self, unit: &Unit) {
        let dtype = unit.dtype();
        let below = self.present;
        let mut above = 0;
        let mut pairs = 0;
        let door = self.bank.open();
        let nodes = self.words.len().div_ceil(2);
        for node in 0..nodes {
            match below >> (2 * node) & 3 {
                0 => continue,
                1 => self.words[node] = self.words[2 * node],
                2 => self.words[node] = self.words[2 * node + 1],
                _ => {
                    pairs |= 1 << node;
                    let (a, b) = (self.words[2 * node], self.words[2 * node + 1]);
                    for k in 0..dtype.lanes() {
                        door.push((lane(dtype, a, k), lane(dtype, b, k)));
                    }
                }
            }
            above |= 1 << node;
        }
        self.words.truncate(nodes);
        self.present = above;
        self.pairs = pairs;
    }

    /// Takes the finished lanes out of this level's last registers.
    fn leave_level(&mut self, unit: &Unit) {
        let dtype = unit.dtype();
        let mut pairs = self.pairs;
        for lanes in self.bank.done().chunks_exact(dtype.lanes() as usize) {
            let node = pairs.trailing_zeros() as usize;
            pairs &= pairs - 1;
            let mut word = 0;
            for (k, done) in lanes.iter().enumerate() {
                word |= done.bits << (k as u32 * dtype.bits());
                self.flags |= done.flags;
            }
            self.words[node] = word;
        }
    }

    /// One clock stage.
    fn advance(&mut self, ends: &[u8]) {
        let at_boundary = self.stage as usize == ends.len();
        if let Some(unit) = self.unit {
            if at_boundary {
                self.leave_level(&unit);
            }
            if at_boundary || (self.stage == 0 && self.level == 0) {
                self.enter_level(&unit);
            }
        }
        if at_boundary {
            self.level += 1;
            self.stage = 0;
        }
        if let Some(unit) = self.unit {
            self.bank.clock(&unit, ends[self.stage as usize]);
        }
        self.stage += 1;
    }

    /// Reads the last register of the tree.
    fn finish(&mut self) -> TreeOut {
        if let Some(unit) = self.unit {
            self.leave_level(&unit);
        }
        let value = if self.present & 1 == 0 { 0 } else { self.words[0] };
        TreeOut { value, flags: self.flags, tag: self.tag }
    }
}

/// The waves of a tree that is not idle.
#[derive(Debug, Clone, Default, watershed_state::Saved)]
struct Pipeline {
    /// Oldest first.
    waves: VecDeque<Box<Wave>>,
    /// Waves that left: their buffers serve the next ones, so that a stream allocates nothing. A box moves between
    /// the two lists; the wave does not.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Wave>>,
}

/// One field of one register of a tree, for waves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeSignal {
    /// Level, 0 next to the ports.
    pub level: u8,
    /// Clock stage of the level, counted from 1.
    pub stage: u8,
    /// Node of the level and lane of the node; `None` for the stage's own `valid`, `tag` and `present`.
    pub place: Option<(u8, u8)>,
    /// Register, for example `aligned`; `stage` for the stage's own fields.
    pub register: &'static str,
    /// Field, for example `exponent`.
    pub field: &'static str,
    /// Width in bits.
    pub width: u32,
    /// Contents; `None` while nothing is there.
    pub value: Option<u128>,
}

/// A wave in flight: what the registers behind its stage hold of it.
#[derive(Debug, Clone, Copy)]
pub struct TreeWave<'a>(&'a Wave);

impl TreeWave<'_> {
    /// Level, 0 next to the ports.
    pub fn level(&self) -> u8 {
        self.0.level
    }

    /// Clock stage of the level, counted from 1.
    pub fn stage(&self) -> u8 {
        self.0.stage
    }

    /// The tag of the wave.
    pub fn tag(&self) -> u64 {
        self.0.tag
    }

    /// Incoming flags, and those of the levels below.
    pub fn flags(&self) -> Flags {
        self.0.flags
    }

    /// Nodes of the level that carry a word, and those of them that join two.
    pub fn nodes(&self) -> (u64, u64) {
        (self.0.present, self.0.pairs)
    }

    /// The word of a node that joins none.
    pub fn lone(&self, node: u8) -> Option<u64> {
        let carried = self.0.present & !self.0.pairs;
        (carried >> node & 1 == 1).then(|| self.0.words[usize::from(node)])
    }

    /// The register of a lane of a node that joins two words, and the unit it is in.
    pub fn register(&self, node: u8, lane: u8) -> Option<(Unit, StageRegister)> {
        let unit = self.0.unit?;
        if self.0.pairs >> node & 1 == 0 || u32::from(lane) >= unit.dtype().lanes() {
            return None;
        }
        let before = (self.0.pairs & ((1 << node) - 1)).count_ones();
        Some((unit, self.0.bank.register(&unit, (before * unit.dtype().lanes()) as usize + usize::from(lane))))
    }
}

/// The pipelined reduction tree.
#[derive(Debug, Clone, watershed_state::Saved)]
pub struct Tree {
    cfg: TreeCfg,
    busy: Option<Box<Pipeline>>,
}

impl Tree {
    /// An idle tree.
    ///
    /// # Panics
    ///
    /// If a parameter is outside its range; ask [`TreeCfg::check`] first.
    pub fn new(cfg: TreeCfg) -> Self {
        if let Err(error) = cfg.check() {
            panic!("{error}; ask TreeCfg::check before building a tree");
        }
        Self { cfg, busy: None }
    }

    /// The parameters.
    pub const fn cfg(&self) -> TreeCfg {
        self.cfg
    }

    /// Cycles from operands to result.
    pub const fn latency_cycles(&self) -> u64 {
        self.cfg.latency_cycles()
    }

    /// True if nothing is in flight.
    pub const fn is_empty(&self) -> bool {
        self.busy.is_none()
    }

    /// Waves in flight.
    pub fn in_flight(&self) -> usize {
        self.busy.as_ref().map_or(0, |pipeline| pipeline.waves.len())
    }

    /// One clock cycle.
    ///
    /// # Panics
    ///
    /// If an operand lies on a port the tree was not built with, or the operation is a [wide](Op::is_wide) one.
    pub fn tick(&mut self, input: Option<TreeIn>) -> Option<TreeOut> {
        if self.cfg.levels() == 0 {
            return input.map(|input| eval(self.cfg, &input));
        }
        if input.is_none() && self.busy.is_none() {
            return None;
        }
        let ends = cut(self.cfg.unit_stages);
        let last_level = self.cfg.levels() as u8 - 1;
        let pipeline = self.busy.get_or_insert_default();

        // result out: the oldest wave is the only one that can stand behind the last register
        let due =
            pipeline.waves.front().is_some_and(|wave| wave.level == last_level && wave.stage as usize == ends.len());
        let output = if due {
            pipeline.waves.pop_front().map(|mut wave| {
                let output = wave.finish();
                pipeline.spare.push(wave);
                output
            })
        } else {
            None
        };

        // tree
        for wave in &mut pipeline.waves {
            wave.advance(ends);
        }

        // operands in
        if let Some(input) = input {
            check(self.cfg, &input);
            let mut wave = pipeline.spare.pop().unwrap_or_default();
            wave.load(self.cfg, &input);
            wave.advance(ends);
            pipeline.waves.push_back(wave);
        }

        if pipeline.waves.is_empty() {
            self.busy = None;
        }
        output
    }

    /// The waves in flight, oldest first.
    pub fn waves(&self) -> impl Iterator<Item = TreeWave<'_>> {
        self.busy.iter().flat_map(|pipeline| &pipeline.waves).map(|wave| TreeWave(wave))
    }

    /// Calls `sink` with every field of every register of the tree, for one operation and type. The list is the same in
    /// every cycle; a field has a value while a wave of that operation and type is there.
    pub fn visit_registers(&self, op: Op, dtype: DType, sink: &mut dyn FnMut(TreeSignal)) {
        let unit = Unit::of(op, dtype, Mode::default());
        let ends = cut(self.cfg.unit_stages);
        for level in 0..self.cfg.levels() as u8 {
            for stage in 1..=self.cfg.unit_stages {
                let wave = self
                    .busy
                    .as_ref()
                    .and_then(|pipeline| pipeline.waves.iter().find(|wave| wave.level == level && wave.stage == stage));
                let nodes = self.cfg.nodes(level as u32);
                let mut own = |field, width, value: Option<u128>| {
                    sink(TreeSignal { level, stage, place: None, register: "stage", field, width, value });
                };
                own("valid", 1, Some(wave.is_some() as u128));
                own("tag", 64, wave.map(|wave| wave.tag as u128));
                own("present", nodes, wave.map(|wave| wave.present as u128));
                let Some(unit) = unit else { continue };
                let blank = unit.blank(ends[stage as usize - 1]);
                for node in 0..nodes as u8 {
                    for lane in 0..unit.dtype().lanes() as u8 {
                        let held = wave.and_then(|wave| wave.register_of(&unit, &blank, node, lane));
                        let shown = held.unwrap_or(blank);
                        unit.fields(&shown, &mut |field, width, value| {
                            sink(TreeSignal {
                                level,
                                stage,
                                place: Some((node, lane)),
                                register: shown.name(),
                                field,
                                width,
                                value: held.is_some().then_some(value),
                            });
                        });
                    }
                }
            }
        }
    }
}

impl Wave {
    /// The register of a node's lane, if the node joins two words and holds the kind of register `blank` is.
    fn register_of(&self, unit: &Unit, blank: &StageRegister, node: u8, lane: u8) -> Option<StageRegister> {
        if self.unit?.dtype() != unit.dtype() {
            return None;
        }
        let (_, register) = TreeWave(self).register(node, lane)?;
        (std::mem::discriminant(&register) == std::mem::discriminant(blank)).then_some(register)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cfg(radix: u8, unit_stages: u8) -> TreeCfg {
        TreeCfg { radix, unit_stages }
    }

    #[test]
    fn levels_and_latency() {
        let levels = [0, 1, 2, 2, 3, 3, 3, 3, 4, 4];
        for (radix, levels) in (1..=10).zip(levels) {
            assert_eq!(cfg(radix, 3).levels(), levels);
            assert_eq!(cfg(radix, 3).latency_cycles(), 3 * levels as u64);
        }
        assert_eq!(cfg(64, 6).latency_cycles(), 36);
        assert_eq!((0..4).map(|l| cfg(10, 1).nodes(l)).collect::<Vec<_>>(), [5, 3, 2, 1]);
    }

    #[test]
    fn a_wave_leaves_in_its_cycle_and_not_before() {
        for radix in 2..=10 {
            for unit_stages in 1..=6 {
                let mut tree = Tree::new(cfg(radix, unit_stages));
                let words: Vec<u64> = (1..=radix as u64).collect();
                let mut input = TreeIn::of(Op::Sum, DType::U64, &words);
                input.tag = 42;
                assert_eq!(tree.tick(Some(input)), None);
                for _ in 1..tree.latency_cycles() {
                    assert_eq!(tree.tick(None), None);
                    assert_eq!(tree.in_flight(), 1);
                }
                let output = tree.tick(None).expect("due");
                assert_eq!(output.value, (1..=radix as u64).sum::<u64>());
                assert_eq!(output.tag, 42);
                assert!(tree.is_empty());
            }
        }
    }

    #[test]
    fn radix_one_is_a_wire_without_registers() {
        let mut tree = Tree::new(cfg(1, 4));
        let output = tree.tick(Some(TreeIn::of(Op::Sum, DType::F64, &[0x7ff0_0000_0000_0001])));
        assert_eq!(output.map(|o| (o.value, o.flags)), Some((0x7ff0_0000_0000_0001, Flags::NONE)));
        assert!(tree.is_empty());
    }

    #[test]
    fn no_operand_gives_zero_and_a_barrier_has_no_data() {
        for (op, words) in [(Op::Sum, &[][..]), (Op::Barrier, &[5, 6][..])] {
            let mut tree = Tree::new(cfg(4, 1));
            let mut input = TreeIn::of(op, DType::U64, words);
            input.flags = Flags::INEXACT;
            assert_eq!(eval(cfg(4, 1), &input).value, 0);
            assert_eq!(tree.tick(Some(input)), None);
            assert_eq!(tree.tick(None), None);
            let output = tree.tick(None).expect("due");
            assert_eq!((output.value, output.flags), (0, Flags::INEXACT));
        }
    }

    #[test]
    fn ports_say_which_nodes_join() {
        assert_eq!(cfg(10, 3).joining(0b11_1111_1111), [0b1_1111, 0b11, 0b1, 0b1]);
        // Ports 5 and 6 meet in the second level.
        assert_eq!(cfg(10, 3).joining(0b110_0000), [0, 0b10, 0, 0]);
        assert_eq!(cfg(1, 3).joining(1), [0u64; 0]);
    }

    #[test]
    fn an_idle_tree_is_small() {
        assert!(size_of::<Tree>() <= 16, "{} bytes", size_of::<Tree>());
    }

    #[test]
    fn parameters_are_checked() {
        assert_eq!(cfg(0, 1).check(), Err(BadTreeCfg::Radix(0)));
        assert_eq!(cfg(65, 1).check(), Err(BadTreeCfg::Radix(65)));
        assert_eq!(cfg(2, 7).check(), Err(BadTreeCfg::UnitStages(7)));
        assert_eq!(cfg(64, 6).check(), Ok(()));
    }

    #[test]
    fn registers_keep_their_list_while_waves_pass() {
        let mut tree = Tree::new(cfg(5, 6));
        let names = |tree: &Tree| {
            let mut list = Vec::new();
            tree.visit_registers(Op::Sum, DType::F32, &mut |s| {
                list.push((s.level, s.stage, s.place, s.register, s.field, s.width));
            });
            list
        };
        let empty = names(&tree);
        let words = [0x3f80_0000_4000_0000, 0x7fc0_0000_0000_0001, 3, 4, 5];
        // Three waves, one every third cycle; each shows its two level-0 pairs in the aligned registers once.
        let mut aligned = 0;
        for k in 0..30 {
            tree.tick((k % 3 == 0 && k < 9).then(|| TreeIn::of(Op::Sum, DType::F32, &words)));
            assert_eq!(names(&tree), empty);
            tree.visit_registers(Op::Sum, DType::F32, &mut |s| {
                let wanted = (s.level, s.register, s.field) == (0, "aligned", "exponent");
                aligned += (wanted && s.value.is_some()) as u32;
            });
        }
        assert_eq!(aligned, 3 * 2 * 2, "waves x pairs x lanes");
    }
}
