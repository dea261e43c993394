//! What blocks take: formulas whose coefficients are fitted to what was synthesised.
//!
//! `make synth` records the grid of `golden/synth`. A test fits each formula to it by least squares of relative errors and writes the
//! coefficients into the [technology table](mod@super::technology). It holds what is there against a new fit, and against points that are
//! left out. A block's figure is what is known of the blocks inside of it, and a sum of terms times coefficients. The terms:
//!
//! | block | NAND2 equivalents | flip-flops | period |
//! |---|---|---|---|
//! | two-input unit | 1, significand p, p log2 p (a product: p^2), bits a stage | bits of the result, of each register between two segments, stages | the slowest stage: 1, log2 of all bits, and bits of the exponent, for each group of segments (integers: segments that work) |
//! | tree | units, and a stage: units, nodes that pass, levels | the same | the unit's, and 1, one over the stages |
//! | CENG | ports, ports^2, slots | the same | the tree's, or: 1, log2 of ports |
//! | switch | beside its engine and queues: P x channels, P x ids, where P is ports x ports as a power of two | channels, ports x channels | the engine's, or: 1, ports x channels, log2 of ids |
//! | point-to-point channels | beside their queues: ports x channels, ports^2 x channels, (ports x channels)^2 | ports, ports x channels | 1, ports x channels |
//! | whole switch | its two kinds of channels | the same | the slower kind's, and ports x log2 of their point-to-point queues |
//! | queue | bits, flits x bits, bits over flits | 1, flits x bits | 1, log2 of flits, log2 of bits, one over flits |
//! | descriptors | 1, descriptors as a power of two, the same x log2 of ports | 1, descriptors | 1, whether there are several |
//! | groups of barriers | 1, contexts | none | 1, log2 of contexts |
//! | quad unit | 1, stages | 1, registers behind the first segment, behind the second, behind others | 1, one over the stages, whether one is behind the first segment |
//! | tracking store, frame queue | 1, contexts (or frames) | the same | 1, log2 of contexts (or frames) |
//! | packet engine | 1, whether there are several contexts, contexts | 1, contexts | 1, whether there are several |

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use watershed_arith::DType;

/// Bits of a flit of the twin: a word and its side band.
pub const TWIN_FLIT: u64 = 128;

/// A datapath of a two-input unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Datapath {
    /// Floating-point sums.
    Add,
    /// Floating-point products.
    Multiply,
    /// Minimum, maximum and predicates, of all types.
    Compare,
    /// Integer sums, products and gates.
    Integer,
}

impl Datapath {
    /// In words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Add => "sum",
            Self::Multiply => "product",
            Self::Compare => "minimum and maximum",
            Self::Integer => "sum, product and gates",
        }
    }

    /// Its name in the table of coefficients. Integers are compared without the rules of NaNs and signs of zero.
    pub fn name_for(self, format: Format) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Multiply => "multiply",
            Self::Compare if format.exponent == 0 => "compare-integer",
            Self::Compare => "compare",
            Self::Integer => "integer",
        }
    }
}

/// A lane's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Bits of a lane.
    pub bits: u64,
    /// Bits of the significand, the hidden one included; of an integer all of them.
    pub significand: u64,
    /// Bits of the exponent; 0 of an integer.
    pub exponent: u64,
}

impl Format {
    /// f64.
    pub const F64: Self = Self { bits: 64, significand: 53, exponent: 11 };
    /// i64.
    pub const I64: Self = Self { bits: 64, significand: 64, exponent: 0 };

    /// That of a data type.
    pub const fn of(dtype: DType) -> Self {
        let (bits, significand, exponent) = match dtype {
            DType::F64 => (64, 53, 11),
            DType::F32 => (32, 24, 8),
            DType::Tf32 => (32, 11, 8),
            DType::F16 => (16, 11, 5),
            DType::Bf16 => (16, 8, 8),
            DType::Fp8E4m3 => (8, 4, 4),
            DType::Fp8E5m2 => (8, 3, 5),
            DType::I64 | DType::U64 => (64, 64, 0),
            DType::I32 | DType::U32 => (32, 32, 0),
        };
        Self { bits, significand, exponent }
    }

    /// In words, signed and unsigned integers as one.
    pub const fn label(self) -> &'static str {
        match (self.bits, self.significand, self.exponent) {
            (64, _, 0) => "i64",
            (32, _, 0) => "i32",
            (64, ..) => "f64",
            (32, 24, _) => "f32",
            (32, ..) => "tf32",
            (16, 11, _) => "f16",
            (16, ..) => "bf16",
            (_, 4, _) => "fp8_e4m3",
            _ => "fp8_e5m2",
        }
    }

    /// Bits of a value: a lane may have more.
    fn width(self) -> f64 {
        (self.significand + self.exponent) as f64
    }
}

/// What a collective switch is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetSwitch<'a> {
    /// External ports.
    pub ports: u64,
    /// Collective ids.
    pub ids: u64,
    /// Channels of a port: two a plane of collectives.
    pub channels: u64,
    /// Flits of an input queue.
    pub depth: u64,
    /// Stages of a unit.
    pub stages: u64,
    /// Datapaths of a unit.
    pub lanes: &'a [(Datapath, Format)],
    /// Operand slots a port.
    pub slots: u64,
    /// Words of the result queue.
    pub results: u64,
}

/// A block that was synthesised, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block<'a> {
    /// One datapath of a two-input unit.
    Unit(Datapath, Format, u64),
    /// A reduction tree.
    Tree {
        /// Ports.
        radix: u64,
        /// Stages of a unit.
        stages: u64,
        /// Datapaths of a unit, side by side.
        lanes: &'a [(Datapath, Format)],
    },
    /// A collective engine.
    Ceng {
        /// Ports.
        radix: u64,
        /// Stages of a unit.
        stages: u64,
        /// Datapaths of a unit.
        lanes: &'a [(Datapath, Format)],
        /// Operand slots a port.
        slots: u64,
    },
    /// A collective switch with its engine.
    Switch(SetSwitch<'a>),
    /// A queue of flits.
    Queue {
        /// Bits of a flit.
        width: u64,
        /// Flits.
        depth: u64,
    },
    /// The tracking store of a packet engine.
    Tracker {
        /// Contexts.
        contexts: u64,
    },
    /// A packet engine around it, for vectors of a word of two participants.
    PacketEngine {
        /// Contexts.
        contexts: u64,
    },
    /// What makes flits of frames.
    FrameExit {
        /// Frames of its queue.
        frames: u64,
    },
    /// What makes frames of flits.
    FrameEntrance,
    /// The two-input unit over the four words of a frame, with all operations of its family.
    QuadUnit {
        /// Stages.
        stages: u64,
    },
    /// The descriptors of an armed engine, with what matches, arms and writes them.
    DescriptorTable {
        /// Descriptors.
        descriptors: u64,
        /// Accesses in a cycle.
        ports: u64,
    },
    /// The groups of barriers that may go on, in a packet engine.
    PacketGroups {
        /// Contexts.
        contexts: u64,
    },
    /// The point-to-point channels of a switch, with their queues.
    Unicast {
        /// External ports.
        ports: u64,
        /// Channels of a port.
        channels: u64,
        /// Flits of an input queue.
        depth: u64,
    },
    /// A switch of both kinds of channels: the second take inputs and outputs that the first leave in a cycle.
    Whole {
        /// What it is without the second.
        of: SetSwitch<'a>,
        /// Point-to-point channels of a port.
        channels: u64,
    },
}

/// One block of each kind, for its number of terms.
fn examples() -> [Block<'static>; 18] {
    let (radix, stages, lanes, slots) = (2, 1, &[][..], 2);
    [
        Block::Unit(Datapath::Add, Format::F64, 1),
        Block::Unit(Datapath::Multiply, Format::F64, 1),
        Block::Unit(Datapath::Compare, Format::F64, 1),
        Block::Unit(Datapath::Compare, Format::I64, 1),
        Block::Unit(Datapath::Integer, Format::I64, 1),
        Block::Queue { width: 64, depth: 2 },
        Block::Tracker { contexts: 1 },
        Block::PacketEngine { contexts: 1 },
        Block::FrameExit { frames: 1 },
        Block::FrameEntrance,
        Block::QuadUnit { stages },
        Block::DescriptorTable { descriptors: 1, ports: 1 },
        Block::PacketGroups { contexts: 1 },
        Block::Unicast { ports: 2, channels: 1, depth: 2 },
        Block::Tree { radix, stages, lanes },
        Block::Ceng { radix, stages, lanes, slots },
        Block::Switch(SetSwitch::default()),
        Block::Whole { of: SetSwitch::default(), channels: 1 },
    ]
}

/// What a block takes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Gates in NAND2 equivalents, flip-flops not included.
    pub nand2: f64,
    /// Flip-flops.
    pub flip_flops: f64,
    /// The shortest period in ps, of the technology of the grid.
    pub period: f64,
}

fn lb(n: u64) -> f64 {
    (n.max(1) as f64).log2()
}

/// Behind which segments a unit of this many stages has its registers.
fn cut(stages: u64) -> &'static [u8] {
    watershed_arith::unit::cut(stages.clamp(1, 6) as u8)
}

/// Registers of a unit behind these segments.
fn registers(stages: u64, behind: std::ops::Range<u8>) -> f64 {
    cut(stages).iter().filter(|&end| behind.contains(end)).count() as f64
}

/// Nodes of a tree that have two inputs, and those that have one.
fn nodes(radix: u64) -> (f64, f64) {
    let (mut all, mut width) = (0, radix);
    while width > 1 {
        width = width.div_ceil(2);
        all += width;
    }
    let units = radix.saturating_sub(1);
    (units as f64, all.saturating_sub(units) as f64)
}

/// What is fitted of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// NAND2 equivalents.
    Nand2,
    /// Flip-flops.
    FlipFlops,
    /// Period in ps; of a unit of each stage.
    Period,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Nand2, Self::FlipFlops, Self::Period];

    /// Its name in the table of coefficients.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nand2 => "nand2",
            Self::FlipFlops => "flip_flops",
            Self::Period => "period_ps",
        }
    }

    fn of(self, estimate: &Estimate) -> f64 {
        match self {
            Self::Nand2 => estimate.nand2,
            Self::FlipFlops => estimate.flip_flops,
            Self::Period => estimate.period,
        }
    }
}

/// What a stage may be made of: its first segment, and the one behind its last.
const GROUPS: [(usize, usize); 12] =
    [(0, 6), (0, 3), (3, 6), (0, 2), (2, 4), (4, 6), (0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)];

/// Terms of the stages of a unit, each with the segments it has. Logic of neighbours is merged, so a group of segments has
/// coefficients of its own; the same group stands in units of several numbers of stages. Of integers, which come in one width, there are
/// those of a segment that works, of each further one, and of waiting.
pub fn stage_terms(path: Datapath, format: Format, stages: u64) -> Vec<Vec<f64>> {
    let mut first = 0;
    let mut all = Vec::new();
    for &end in cut(stages) {
        let group = (first, usize::from(end));
        if path == Datapath::Integer {
            let working = (group.0..group.1).filter(|&segment| segment < 3).count() as f64;
            all.push(if working > 0.0 { vec![1.0, working - 1.0, 0.0] } else { vec![0.0, 0.0, 1.0] });
            first = usize::from(end);
            continue;
        }
        // A product has a tree over its significand's rows, and what its exponent takes is a chain that grows slower.
        let of = match path {
            Datapath::Multiply => [1.0, lb(format.significand), lb(format.exponent)],
            _ => [1.0, format.width().log2(), format.exponent as f64],
        };
        all.push(
            GROUPS
                .iter()
                .flat_map(|&known| of.iter().map(move |term| if known == group { *term } else { 0.0 }))
                .collect(),
        );
        first = usize::from(end);
    }
    all
}

impl Block<'_> {
    /// Its name in the table of coefficients.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unit(path, format, _) => path.name_for(*format),
            Self::Tree { .. } => "tree",
            Self::Ceng { .. } => "ceng",
            Self::Switch(_) => "switch",
            Self::Queue { .. } => "queue",
            Self::Tracker { .. } => "tracker",
            Self::PacketEngine { .. } => "packet-engine",
            Self::FrameExit { .. } => "frame-exit",
            Self::FrameEntrance => "frame-entrance",
            Self::QuadUnit { .. } => "quad-unit",
            Self::DescriptorTable { .. } => "descriptor-table",
            Self::PacketGroups { .. } => "packet-groups",
            Self::Unicast { .. } => "unicast",
            Self::Whole { .. } => "whole-switch",
        }
    }

    /// Whether its own logic is behind that of its slowest part in a cycle; else the slower of both counts.
    pub fn is_behind_its_parts(&self) -> bool {
        matches!(self, Self::Tree { .. } | Self::Whole { .. })
    }

    /// Its parameters by name, without those of its parts.
    pub fn parameters(&self) -> Vec<(&'static str, u64)> {
        match *self {
            Self::Unit(_, format, stages) => {
                vec![("significand", format.significand), ("exponent", format.exponent), ("stages", stages)]
            }
            Self::Tree { radix, stages, .. } => vec![("radix", radix), ("stages", stages)],
            Self::Ceng { radix, slots, .. } => vec![("radix", radix), ("slots", slots)],
            Self::Switch(SetSwitch { ports, ids, channels, .. }) => {
                vec![("ports", ports), ("ids", ids), ("channels", channels)]
            }
            Self::Queue { width, depth } => vec![("width", width), ("depth", depth)],
            Self::Tracker { contexts } | Self::PacketEngine { contexts } | Self::PacketGroups { contexts } => {
                vec![("contexts", contexts)]
            }
            Self::Unicast { ports, channels, .. } | Self::Whole { of: SetSwitch { ports, .. }, channels } => {
                vec![("ports", ports), ("channels", channels)]
            }
            Self::FrameExit { frames } => vec![("frames", frames)],
            Self::FrameEntrance => Vec::new(),
            Self::QuadUnit { stages } => vec![("stages", stages)],
            Self::DescriptorTable { descriptors, ports } => vec![("descriptors", descriptors), ("ports", ports)],
        }
    }

    /// The terms whose sum, times coefficients, it takes beside what is known of its parts. Of a unit's period see
    /// [`stage_terms`].
    pub fn terms(&self, quantity: Quantity) -> Vec<f64> {
        use Quantity::{FlipFlops, Nand2};
        match (*self, quantity) {
            (Self::Unit(path, format, stages), Nand2) => {
                let (p, e, bits) = (format.significand as f64, format.exponent as f64, format.width());
                let registers = |of| registers(stages, of);
                let later = (stages - 1) as f64;
                match path {
                    Datapath::Add => vec![1.0, e, p, p * p.log2(), later * bits, later],
                    Datapath::Multiply => vec![1.0, e, p, p * p, later * bits, lb(stages)],
                    Datapath::Compare if e == 0.0 => vec![1.0, bits, later, later * bits],
                    Datapath::Compare => {
                        vec![1.0, bits, bits * registers(1..2), bits * registers(2..3), bits * registers(3..6)]
                    }
                    // A product of fewer bits is smaller by the square: not synthesised, ABC of this build runs out of stack.
                    Datapath::Integer => vec![(bits / 64.0).powi(2), later * bits],
                }
            }
            (Self::Unit(path, format, stages), FlipFlops) => {
                let bits = format.width();
                let registers = |of| registers(stages, of);
                let later = (stages - 1) as f64;
                match path {
                    // Behind the third segment the result only waits.
                    Datapath::Integer => vec![bits * (1.0 + registers(3..6)), bits * registers(1..3)],
                    Datapath::Compare => {
                        vec![1.0, bits, later, bits * registers(1..2), bits * registers(2..3), bits * registers(3..6)]
                    }
                    Datapath::Add | Datapath::Multiply => {
                        let mut terms = vec![1.0, bits, later];
                        terms.extend((1..6).map(|end| bits * registers(end..end + 1)));
                        terms
                    }
                }
            }
            (Self::Tree { radix, stages, .. }, Nand2 | FlipFlops) => {
                let ((units, passes), stages) = (nodes(radix), stages as f64);
                vec![units, units * stages, passes * stages, lb(radix).ceil() * stages]
            }
            (Self::Ceng { radix, slots, .. }, Nand2 | FlipFlops) => {
                vec![radix as f64, (radix * radix) as f64, (radix * slots) as f64]
            }
            (Self::Switch(SetSwitch { ports, ids, channels, .. }), Nand2) => {
                let (all, channels) = ((ports + 1) as f64, channels as f64);
                // What an output selects among is padded to a power of two.
                let places = (ports + 1).next_power_of_two() as f64;
                vec![all * places * channels, all * places * ids as f64]
            }
            (Self::Switch(SetSwitch { ports, channels, .. }), FlipFlops) => {
                vec![channels as f64, ((ports + 1) * channels) as f64]
            }
            // Every output looks at every queue, and a queue may take any channel of it.
            (Self::Unicast { ports, channels, .. }, Nand2) => {
                let (ports, channels) = (ports as f64, channels as f64);
                vec![ports * channels, ports * ports * channels, (ports * channels).powi(2)]
            }
            (Self::Unicast { ports, channels, .. }, FlipFlops) => vec![ports as f64, (ports * channels) as f64],
            (Self::Unicast { ports, channels, .. }, _) => vec![1.0, (ports * channels) as f64],
            (Self::DescriptorTable { descriptors, ports }, Nand2) => {
                // What is selected is padded to a power of two.
                let places = descriptors.max(1).next_power_of_two() as f64;
                vec![1.0, places, places * lb(ports)]
            }
            (Self::DescriptorTable { descriptors, .. }, FlipFlops) => vec![1.0, descriptors as f64],
            (Self::DescriptorTable { descriptors, .. }, _) => vec![1.0, f64::from(u8::from(descriptors > 1))],
            // Combinational; between the two kinds of channels is a wire a port.
            (Self::PacketGroups { .. }, FlipFlops) | (Self::Whole { .. }, Nand2 | FlipFlops) => Vec::new(),
            (Self::Whole { of: SetSwitch { ports, .. }, channels }, _) => vec![ports as f64 * lb(ports * channels)],
            (Self::PacketGroups { contexts }, Nand2) => vec![1.0, contexts as f64],
            (Self::PacketGroups { contexts }, _) => vec![1.0, lb(contexts)],
            (Self::QuadUnit { stages }, Nand2) => vec![1.0, stages as f64],
            (Self::QuadUnit { stages }, FlipFlops) => {
                vec![1.0, registers(stages, 1..2), registers(stages, 2..3), registers(stages, 3..6)]
            }
            // Behind a register after the first segment the second is no part of what the first shares: it becomes slower.
            (Self::QuadUnit { stages }, _) => vec![1.0, 1.0 / stages.max(1) as f64, registers(stages, 1..2)],
            (Self::Queue { width, depth }, Nand2) => {
                vec![width as f64, (width * depth) as f64, width as f64 / depth.max(1) as f64]
            }
            (Self::Queue { width, depth }, FlipFlops) => vec![1.0, (width * depth) as f64],
            // With one context nothing is selected.
            (Self::PacketEngine { contexts: n }, Nand2) => vec![1.0, f64::from(u8::from(n > 1)), n as f64],
            (Self::PacketEngine { contexts: n }, Quantity::Period) => vec![1.0, f64::from(u8::from(n > 1))],
            (
                Self::Tracker { contexts: n } | Self::PacketEngine { contexts: n } | Self::FrameExit { frames: n },
                Nand2 | FlipFlops,
            ) => vec![1.0, n as f64],
            (Self::FrameEntrance | Self::Unit(..), _) => vec![1.0],
            (Self::Tree { stages, .. }, _) => vec![1.0, 1.0 / stages.max(1) as f64],
            (Self::Ceng { radix, .. }, _) => vec![1.0, lb(radix)],
            (Self::Switch(SetSwitch { ports, ids, channels, .. }), _) => {
                vec![1.0, ((ports + 1) * channels) as f64, lb(ids)]
            }
            // Twice as many flits cost the less time the more there are.
            (Self::Queue { width, depth }, _) => vec![1.0, lb(depth), lb(width), 1.0 / depth.max(1) as f64],
            (Self::Tracker { contexts: n } | Self::FrameExit { frames: n }, _) => vec![1.0, lb(n)],
        }
    }
}

/// What was fitted of a quantity of a block.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// The largest error on a point that was left out, in percent; `None` where too few points are there to leave one out.
    #[serde(default, rename = "left_out_percent")]
    pub worst: Option<f64>,
    /// One for each term: NAND2 equivalents, flip-flops or ps a unit of the term.
    pub coefficients: Vec<f64>,
}

/// What was fitted of a block.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FittedBlock {
    /// Points it was fitted to.
    pub points: u64,
    /// Least and greatest value of each parameter among them.
    pub ranges: BTreeMap<String, [u64; 2]>,
    /// NAND2 equivalents, flip-flops not included.
    pub nand2: Fitted,
    /// Flip-flops.
    pub flip_flops: Fitted,
    /// The shortest period in ps.
    pub period_ps: Fitted,
}

impl FittedBlock {
    /// What was fitted of a quantity.
    pub fn of(&self, quantity: Quantity) -> &Fitted {
        match quantity {
            Quantity::Nand2 => &self.nand2,
            Quantity::FlipFlops => &self.flip_flops,
            Quantity::Period => &self.period_ps,
        }
    }

    /// The same, to be changed.
    pub fn of_mut(&mut self, quantity: Quantity) -> &mut Fitted {
        match quantity {
            Quantity::Nand2 => &mut self.nand2,
            Quantity::FlipFlops => &mut self.flip_flops,
            Quantity::Period => &mut self.period_ps,
        }
    }
}

/// Coefficients by block, from the inside out in the order of the blocks.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Fit(pub BTreeMap<String, FittedBlock>);

impl Fit {
    /// The tables as they stand at the end of a technology table.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, block) in &self.0 {
            let ranges: Vec<String> =
                block.ranges.iter().map(|(name, [low, high])| format!("{name} = [{low}, {high}]")).collect();
            let ranges = if ranges.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", ranges.join(", ")) };
            let _ = writeln!(text, "\n[fit.{name}]\npoints = {}\nranges = {ranges}", block.points);
            for quantity in Quantity::ALL {
                let fitted = block.of(quantity);
                let coefficients: Vec<String> =
                    fitted.coefficients.iter().map(|number| format!("{number:.6e}")).collect();
                let worst = fitted.worst.map_or_else(String::new, |worst| format!("left_out_percent = {worst:.1}, "));
                let coefficients = coefficients.join(", ");
                let _ = writeln!(text, "{} = {{ {worst}coefficients = [{coefficients}] }}", quantity.name());
            }
        }
        text
    }

    /// A block with another number of coefficients than its terms, or one that is not there.
    ///
    /// # Errors
    /// In words, with the key.
    pub fn check(&self) -> Result<(), String> {
        for block in examples() {
            let name = block.name();
            let Some(fitted) = self.0.get(name) else {
                // No bill has it.
                if name == "packet-groups" {
                    continue;
                }
                return Err(format!("there is no table `fit.{name}`"));
            };
            for quantity in Quantity::ALL {
                let terms = match (block, quantity) {
                    (Block::Unit(path, format, stages), Quantity::Period) => stage_terms(path, format, stages)[0].len(),
                    _ => block.terms(quantity).len(),
                };
                let given = fitted.of(quantity).coefficients.len();
                if given != terms {
                    let key = quantity.name();
                    return Err(format!(
                        "`fit.{name}.{key}.coefficients` has {given} numbers, its formula has {terms}"
                    ));
                }
                if let Some(wrong) = fitted.of(quantity).coefficients.iter().find(|number| !number.is_finite()) {
                    return Err(format!(
                        "`fit.{name}.{}.coefficients` has a number that is none: {wrong}",
                        quantity.name()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether a block and its parts lie within what was synthesised.
    pub fn covers(&self, block: &Block) -> bool {
        let Some(fitted) = self.0.get(block.name()) else { return false };
        let within = |(name, value): (&str, u64)| {
            fitted.ranges.get(name).is_some_and(|&[low, high]| (low..=high).contains(&value))
        };
        block.parameters().into_iter().all(within)
            && match *block {
                Block::Unit(path, format, stages) => {
                    stage_terms(path, format, stages).iter().all(|terms| self.knows(path, format, terms))
                }
                Block::Tree { stages, lanes, .. } | Block::Ceng { stages, lanes, .. } => {
                    lanes.iter().all(|&(path, format)| self.covers(&Block::Unit(path, format, stages)))
                }
                _ => true,
            }
    }

    /// The sum of terms times coefficients.
    pub fn sum(&self, block: &str, quantity: Quantity, terms: &[f64]) -> f64 {
        let coefficients = self.0.get(block).map_or(&[][..], |fitted| fitted.of(quantity).coefficients.as_slice());
        terms.iter().zip(coefficients).map(|(term, coefficient)| term * coefficient).sum()
    }

    /// What a block takes beside its parts.
    pub fn own_cost(&self, block: &Block, quantity: Quantity) -> f64 {
        self.sum(block.name(), quantity, &block.terms(quantity))
    }

    /// What is known of a block's parts: gates and flip-flops add up, and the slowest part counts.
    pub fn parts(&self, block: &Block) -> Estimate {
        let mut parts = Estimate::default();
        let mut add = |part: &Block, count: u64| {
            let of = self.estimate(part);
            parts.nand2 += count as f64 * of.nand2;
            parts.flip_flops += count as f64 * of.flip_flops;
            parts.period = parts.period.max(of.period);
        };
        match *block {
            Block::Tree { radix, stages, lanes } => {
                for &(path, format) in lanes {
                    add(&Block::Unit(path, format, stages), radix.saturating_sub(1) * (64 / format.bits));
                }
            }
            Block::Ceng { radix, stages, lanes, .. } => add(&Block::Tree { radix, stages, lanes }, 1),
            Block::Switch(SetSwitch { ports, ids, channels, depth, stages, lanes, slots, results }) => {
                add(&Block::Ceng { radix: ports, stages, lanes, slots }, 1);
                // A queue for each port and channel, and behind the engine one for each channel.
                for (count, depth) in [(ports * channels, depth), (channels, results)] {
                    let queue = self.estimate(&Block::Queue { width: TWIN_FLIT, depth });
                    parts.nand2 += count as f64 * queue.nand2;
                    parts.flip_flops += count as f64 * queue.flip_flops;
                }
                // A request and a response vector for every id and input, and the id's operation, type and mode.
                parts.flip_flops += (ids * (2 * (ports + 1) * (ports + 1) + 13)) as f64;
            }
            Block::Unicast { ports, channels, depth } => {
                add(&Block::Queue { width: TWIN_FLIT, depth }, ports * channels);
            }
            Block::Whole { of, channels } => {
                add(&Block::Switch(of), 1);
                add(&Block::Unicast { ports: of.ports, channels, depth: of.depth }, 1);
            }
            _ => {}
        }
        parts
    }

    /// Period of each stage of a unit, in ps.
    pub fn stages(&self, path: Datapath, format: Format, stages: u64) -> Vec<f64> {
        let of = |terms: &[f64]| self.sum(path.name_for(format), Quantity::Period, terms);
        // What no point has takes no longer than the whole unit in one stage.
        let whole = of(&stage_terms(path, format, 1)[0]);
        let stages = stage_terms(path, format, stages);
        stages.iter().map(|terms| if self.knows(path, format, terms) { of(terms) } else { whole }).collect()
    }

    /// Whether any point has a stage of these segments.
    fn knows(&self, path: Datapath, format: Format, terms: &[f64]) -> bool {
        let Some(fitted) = self.0.get(path.name_for(format)) else { return false };
        let coefficients = fitted.period_ps.coefficients.iter();
        terms.iter().zip(coefficients).any(|(term, coefficient)| *term != 0.0 && *coefficient != 0.0)
    }

    /// What a block takes.
    pub fn estimate(&self, block: &Block) -> Estimate {
        let parts = self.parts(block);
        let own = |quantity| self.own_cost(block, quantity);
        let period = match *block {
            Block::Unit(path, format, stages) => self.stages(path, format, stages).into_iter().fold(0.0, f64::max),
            _ if block.is_behind_its_parts() => parts.period + own(Quantity::Period),
            _ => parts.period.max(own(Quantity::Period)),
        };
        let (nand2, flip_flops) = (parts.nand2 + own(Quantity::Nand2), parts.flip_flops + own(Quantity::FlipFlops));
        Estimate { nand2, flip_flops, period }
    }

    /// A quantity of a block.
    pub fn quantity(&self, block: &Block, quantity: Quantity) -> f64 {
        quantity.of(&self.estimate(block))
    }
}
