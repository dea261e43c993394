//! What blocks take: formulas whose coefficients are fitted to what was synthesised.
//!
//! `make synth` records the grid of `golden/synth`; a test fits each formula to it by least squares of relative errors, writes
//! `golden/synth/fit.csv` and holds what is there against a new fit and against points that are left out. A block's figure is what is known of the blocks
//! inside of it, and a sum of terms times coefficients. The terms:
//!
//! | block | NAND2 equivalents | flip-flops | period |
//! |---|---|---|---|
//! | two-input unit | 1, significand p, p log2 p (a product: p^2), bits a stage | bits of the result, of each register between two segments, stages | the slowest stage: 1, log2 p and bits of the exponent (a product: 1, log2 of all bits), for each group of segments (integers: segments that work) |
//! | tree | units, units a stage, nodes that pass | the same | the unit's, and 1 |
//! | CENG | ports, slots, results | the same | the tree's, or: 1, log2 of ports |
//! | switch | ports^2 x channels, ids x ports^2 | ports x channels | the engine's, or: 1, log2 of ports x channels |
//! | queue | bits, flits x bits, bits over flits | 1, flits x bits | 1, log2 of flits |
//! | tracking store, packet engine, frame queue | 1, contexts (or frames) | the same | 1, log2 of contexts (or frames) |

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Bits of a flit of the twin: a word and its side band.
pub const TWIN_FLIT: f64 = 128.0;

/// A datapath of a two-input unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// Floating-point sums.
    Add,
    /// Floating-point products.
    Multiply,
    /// Minimum, maximum and predicates, of all types.
    Compare,
    /// Integer sums, products and gates.
    Integer,
}

impl Path {
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

    /// Bits of a value: a lane may have more.
    fn width(self) -> f64 {
        (self.significand + self.exponent) as f64
    }
}

/// A block that was synthesised, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block<'a> {
    /// One datapath of a two-input unit.
    Unit(Path, Format, u64),
    /// A reduction tree.
    Tree {
        /// Ports.
        radix: u64,
        /// Stages of a unit.
        stages: u64,
        /// Datapaths of a unit, side by side.
        lanes: &'a [(Path, Format)],
    },
    /// A collective engine.
    Ceng {
        /// Ports.
        radix: u64,
        /// Stages of a unit.
        stages: u64,
        /// Datapaths of a unit.
        lanes: &'a [(Path, Format)],
        /// Operand slots a port.
        slots: u64,
        /// Words of the result queue.
        results: u64,
    },
    /// A collective switch with its engine.
    Switch {
        /// External ports.
        ports: u64,
        /// Collective ids.
        ids: u64,
        /// Pairs of channels.
        planes: u64,
        /// Flits of an input queue.
        depth: u64,
        /// Stages of a unit.
        stages: u64,
        /// Datapaths of a unit.
        lanes: &'a [(Path, Format)],
        /// Operand slots a port.
        slots: u64,
        /// Words of the result queue.
        results: u64,
    },
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
    /// A packet engine around it, for vectors of two words.
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

/// Behind which segments a unit of so many stages has its registers.
fn cut(stages: u64) -> &'static [u8] {
    watershed::arith::unit::cut(stages.clamp(1, 6) as u8)
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
            Self::Period => "period",
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
pub fn stage_terms(path: Path, format: Format, stages: u64) -> Vec<Vec<f64>> {
    let mut first = 0;
    let mut all = Vec::new();
    for &end in cut(stages) {
        let group = (first, usize::from(end));
        if path == Path::Integer {
            let working = (group.0..group.1).filter(|&segment| segment < 3).count() as f64;
            all.push(if working > 0.0 { vec![1.0, working - 1.0, 0.0] } else { vec![0.0, 0.0, 1.0] });
            first = usize::from(end);
            continue;
        }
        let of = match path {
            Path::Multiply => vec![1.0, format.width().log2()],
            _ => vec![1.0, lb(format.significand), format.exponent as f64],
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
            Self::Switch { .. } => "switch",
            Self::Queue { .. } => "queue",
            Self::Tracker { .. } => "tracker",
            Self::PacketEngine { .. } => "packet-engine",
            Self::FrameExit { .. } => "frame-exit",
            Self::FrameEntrance => "frame-entrance",
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
                    Path::Add => vec![1.0, e, p, p * p.log2(), later * bits, later],
                    Path::Multiply => vec![1.0, e, p, p * p, later * bits, lb(stages)],
                    Path::Compare if e == 0.0 => vec![1.0, bits, later, later * bits],
                    Path::Compare => {
                        vec![1.0, bits, bits * registers(1..2), bits * registers(2..3), bits * registers(3..6)]
                    }
                    Path::Integer => vec![1.0, later * bits],
                }
            }
            (Self::Unit(path, format, stages), FlipFlops) => {
                let bits = format.width();
                let registers = |of| registers(stages, of);
                let later = (stages - 1) as f64;
                match path {
                    // Behind the third segment the result only waits.
                    Path::Integer => vec![bits * (1.0 + registers(3..6)), bits * registers(1..3)],
                    Path::Compare => {
                        vec![1.0, bits, later, bits * registers(1..2), bits * registers(2..3), bits * registers(3..6)]
                    }
                    Path::Add | Path::Multiply => {
                        let mut terms = vec![1.0, bits, later];
                        terms.extend((1..6).map(|end| bits * registers(end..end + 1)));
                        terms
                    }
                }
            }
            (Self::Tree { radix, stages, .. }, Nand2 | FlipFlops) => {
                let ((units, passes), stages) = (nodes(radix), stages as f64);
                vec![units, units * stages, passes * stages]
            }
            (Self::Ceng { radix, slots, results, .. }, Nand2 | FlipFlops) => {
                vec![radix as f64, (radix * slots) as f64, results as f64]
            }
            (Self::Switch { ports, ids, planes, .. }, Nand2) => {
                let all = (ports + 1) as f64;
                vec![all * 2.0 * planes as f64, ids as f64 * all * all]
            }
            (Self::Switch { ports, planes, .. }, FlipFlops) => {
                let all = (ports + 1) as f64;
                vec![all * 2.0 * planes as f64]
            }
            (Self::Queue { width, depth }, Nand2) => {
                vec![width as f64, (width * depth) as f64, width as f64 / depth.max(1) as f64]
            }
            (Self::Queue { width, depth }, FlipFlops) => vec![1.0, (width * depth) as f64],
            (
                Self::Tracker { contexts: n } | Self::PacketEngine { contexts: n } | Self::FrameExit { frames: n },
                Nand2 | FlipFlops,
            ) => {
                vec![1.0, n as f64]
            }
            (Self::FrameEntrance | Self::Tree { .. } | Self::Unit(..), _) => vec![1.0],
            (Self::Ceng { radix, .. }, _) => vec![1.0, lb(radix)],
            (Self::Switch { ports, planes, .. }, _) => vec![1.0, lb((ports + 1) * 2 * planes)],
            (
                Self::Queue { depth: n, .. }
                | Self::Tracker { contexts: n }
                | Self::PacketEngine { contexts: n }
                | Self::FrameExit { frames: n },
                _,
            ) => {
                vec![1.0, lb(n)]
            }
        }
    }
}

/// What was fitted of a quantity of a block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fitted {
    /// Points it was fitted to.
    pub points: u64,
    /// The largest error on a point that was left out, in percent; `None` where too few points are there to leave one out.
    pub worst: Option<f64>,
    /// One for each term.
    pub coefficients: Vec<f64>,
}

/// Coefficients by block and quantity, `add.nand2`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fit(pub BTreeMap<String, Fitted>);

impl Fit {
    /// Reads the table: a block's and a quantity's name, and the coefficients.
    ///
    /// # Panics
    /// A line is not of that form.
    pub fn read(text: &str) -> Self {
        let read = |line: &str| {
            let [name, points, worst, coefficients] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let fitted = Fitted {
                points: points.parse().expect("a number"),
                worst: (!worst.is_empty()).then(|| worst.parse().expect("a number")),
                coefficients: coefficients.split(' ').map(|text| text.parse().expect("a number")).collect(),
            };
            (name.to_owned(), fitted)
        };
        Self(text.lines().skip(1).map(read).collect())
    }

    /// The table as text.
    pub fn text(&self) -> String {
        let mut text = String::from("quantity,points,worst_left_out_percent,coefficients\n");
        for (name, fitted) in &self.0 {
            let coefficients: Vec<String> = fitted.coefficients.iter().map(|number| format!("{number:.6e}")).collect();
            let worst = fitted.worst.map_or_else(String::new, |worst| format!("{worst:.1}"));
            let _ = writeln!(text, "{name},{},{worst},{}", fitted.points, coefficients.join(" "));
        }
        text
    }

    /// The sum of terms times coefficients.
    pub fn sum(&self, block: &str, quantity: Quantity, terms: &[f64]) -> f64 {
        let coefficients = self.0.get(&format!("{block}.{}", quantity.name()));
        let coefficients = coefficients.map_or(&[][..], |fitted| fitted.coefficients.as_slice());
        terms.iter().zip(coefficients).map(|(term, coefficient)| term * coefficient).sum()
    }

    /// What a block takes beside its parts.
    pub fn own(&self, block: &Block, quantity: Quantity) -> f64 {
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
            Block::Switch { ports, ids, planes, depth, stages, lanes, slots, results } => {
                add(&Block::Ceng { radix: ports, stages, lanes, slots, results }, 1);
                let queue = self.estimate(&Block::Queue { width: TWIN_FLIT as u64, depth });
                parts.nand2 += (ports * 2 * planes) as f64 * queue.nand2;
                parts.flip_flops += (ports * 2 * planes) as f64 * queue.flip_flops;
                // A request and a response vector for every id and input, and the id's operation, type and mode.
                parts.flip_flops += (ids * (2 * (ports + 1) * (ports + 1) + 13)) as f64;
            }
            _ => {}
        }
        parts
    }

    /// Period of each stage of a unit, in ps.
    pub fn stages(&self, path: Path, format: Format, stages: u64) -> Vec<f64> {
        let of = |terms: Vec<f64>| self.sum(path.name_for(format), Quantity::Period, &terms);
        stage_terms(path, format, stages).into_iter().map(of).collect()
    }

    /// What a block takes.
    pub fn estimate(&self, block: &Block) -> Estimate {
        let parts = self.parts(block);
        let own = |quantity| self.own(block, quantity);
        let period = match *block {
            Block::Unit(path, format, stages) => self.stages(path, format, stages).into_iter().fold(0.0, f64::max),
            Block::Tree { .. } => parts.period + own(Quantity::Period),
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
