//! Frames of four words: do lanes, locators and the reproducible sum follow the text of the rules, at any depth?

use watershed::arith::quad::{OPCODES, QuadRegister};
use watershed::arith::{DType, Mode, Op, Quad, QuadPipe, QuadUnit, ResultCode, SignalPolicy, repsum};
use watershed::oracle::quad::rep_split;
use watershed::oracle::quad_pair;

use crate::vectors::{Random, corners, seed};

/// The lanes of a random frame for an operation: values that are often equal, special or NaN; small indices.
fn random_quad(random: &mut Random, op: Op, dtype: DType) -> Quad {
    let value = |random: &mut Random| {
        if dtype.is_float() {
            // Few values, so that ties are common; NaNs and zeros of both signs among them.
            match random.below(3) {
                0 => corners(dtype)[random.below(4) as usize * 7],
                1 => [0x3ff0 << 48, 0x7ff8 << 48, 0x7ff0_0000_0000_0001, 0, 1 << 63, 0xfff8_0000_0000_0007]
                    [random.below(6) as usize],
                _ => random.lane(dtype),
            }
        } else {
            random.word() >> random.below(64) << random.below(8)
        }
    };
    if op == Op::RepSum {
        return random_rep(random);
    }
    let mut quad = Quad::of(std::array::from_fn(|_| value(random)));
    if op.is_wide() {
        quad.lanes[1] = random.below(4) | (random.below(2) << 63);
        quad.lanes[3] = random.below(4);
    }
    quad.code = ResultCode::ALL[random.below(3) as usize * random.below(3) as usize];
    quad
}

/// Split doubles, and crafted words that overflow.
fn random_rep(random: &mut Random) -> Quad {
    if random.below(3) > 0 {
        return repsum::split(random.lane(DType::F64));
    }
    let code = ResultCode::ALL[random.below(8) as usize];
    Quad {
        lanes: std::array::from_fn(|_| random.word() >> (random.below(3) * 24)),
        code,
        m: (random.below(10) as i8) - 5,
        oflow_id: if code == ResultCode::IntOverflow { random.below(4) as u8 } else { 0 },
    }
}

fn units() -> Vec<(Op, DType)> {
    let mut all: Vec<(Op, DType)> = OPCODES.iter().map(|opcode| (opcode.op, opcode.dtype)).collect();
    all.push((Op::MinMaxLoc, DType::U64));
    all.dedup();
    all
}

#[test]
fn every_opcode_matches_the_oracle() {
    opcodes_match_the_oracle(2_500);
}

#[test]
#[ignore = "takes a minute: make soak"]
fn every_opcode_matches_the_oracle_for_long() {
    opcodes_match_the_oracle(200_000);
}

/// This many random pairs of frames for each.
fn opcodes_match_the_oracle(pairs: usize) {
    let seed = seed(0x5eed_0050);
    let mut random = Random::new(seed);
    for opcode in OPCODES {
        for k in 0..pairs {
            let signal = SignalPolicy::ALL[k % 2];
            let configured = Mode { signal, nan: random.mode().nan, ..Mode::default() };
            let mode = Mode { round: opcode.round, flush_to_zero: opcode.flush_to_zero, ..configured };
            let (a, b) =
                (random_quad(&mut random, opcode.op, opcode.dtype), random_quad(&mut random, opcode.op, opcode.dtype));
            let got = opcode.unit(configured).evaluate(a, b);
            let expected = quad_pair(opcode.op, opcode.dtype, mode, a, b);
            assert_eq!(got, expected, "{} {mode:?} {a:x?} {b:x?} (seed {seed})", opcode.name);
        }
    }
}

#[test]
fn the_number_of_stages_never_changes_a_frame() {
    let seed = seed(0x5eed_0051);
    let mut random = Random::new(seed);
    for (op, dtype) in units() {
        let unit = QuadUnit::new(op, dtype, Mode::default()).unwrap();
        let inputs: Vec<(Quad, Quad)> =
            (0..200).map(|_| (random_quad(&mut random, op, dtype), random_quad(&mut random, op, dtype))).collect();
        for stages in 1..=6u8 {
            let mut pipe = QuadPipe::new(unit, stages);
            let mut results = Vec::new();
            let mut fed = 0;
            // One in four cycles is a bubble.
            for cycle in 0.. {
                let bubble = random.below(4) == 0;
                let input = inputs.get(fed).filter(|_| !bubble).map(|&(a, b)| (a, b, cycle));
                fed += usize::from(input.is_some());
                if let Some((quad, entered)) = pipe.tick(input) {
                    assert_eq!(cycle - entered, u64::from(stages), "latency");
                    results.push(quad);
                }
                if results.len() == inputs.len() {
                    break;
                }
            }
            for (&(a, b), result) in inputs.iter().zip(results) {
                assert_eq!(result, unit.evaluate(a, b), "{op} {dtype} {stages} stages (seed {seed})");
            }
        }
    }
}

#[test]
fn every_field_of_a_frame_s_register_fits_its_width() {
    let mut random = Random::new(seed(0x5eed_0052));
    for (op, dtype) in units() {
        let unit = QuadUnit::new(op, dtype, Mode::default()).unwrap();
        for _ in 0..100 {
            let (a, b) = (random_quad(&mut random, op, dtype), random_quad(&mut random, op, dtype));
            let mut register = QuadRegister::Operands { a, b };
            for _ in 0..=6 {
                unit.fields(&register, &mut |_, name, width, value| {
                    assert_eq!(value >> width, 0, "{op} {}.{name} {value:x} in {width}", register.name());
                });
                register = unit.step(register);
            }
        }
    }
}

const ONE: u64 = 0x3ff0_0000_0000_0000;
const TWO: u64 = 0x4000_0000_0000_0000;
const SIGNALLING: u64 = 0x7ff0_0000_0000_0001;
const QUIET: u64 = 0x7ff8_0000_0000_0000;

/// R-EX-9: minnum over 1, sNaN, 2.
#[test]
fn minnum_depends_on_order_in_ieee_mode_only() {
    let operands = [ONE, SIGNALLING, TWO];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (signal, expected) in [(SignalPolicy::Ieee, vec![ONE, TWO, QUIET]), (SignalPolicy::Associative, vec![ONE])] {
        let unit = QuadUnit::new(Op::MinNum, DType::F64, Mode { signal, ..Mode::default() }).unwrap();
        let mut results: Vec<u64> = orders
            .iter()
            .map(|order| {
                let quads = order.map(|k| Quad::of([operands[k]; 4]));
                let result = unit.evaluate(unit.evaluate(quads[0], quads[1]), quads[2]);
                assert_eq!(result.code, ResultCode::FltInvalid);
                result.lanes[0]
            })
            .collect();
        results.sort_unstable();
        results.dedup();
        assert_eq!(results, expected, "{signal}");
    }
}

/// In associative mode any order and any shape of tree give the same numbers, and the same places but where a signalling
/// NaN and another NaN compete for one: a signalling NaN wins its pair and is quiet from then on.
#[test]
fn locators_do_not_depend_on_order_in_associative_mode() {
    let seed = seed(0x5eed_0053);
    let mut random = Random::new(seed);
    let mut seen = [0; 2];
    for op in [Op::MinMaxLoc, Op::MinMaxNumLoc] {
        let unit = QuadUnit::new(op, DType::F64, Mode::default()).unwrap();
        for _ in 0..300 {
            let mut quads: Vec<Quad> = (0..9).map(|_| random_quad(&mut random, op, DType::F64)).collect();
            let first = any_tree(&mut random, quads.clone(), &|a, b| unit.evaluate(a, b));
            let compete = [0, 2].map(|half| nans_compete(op, &quads, half));
            for _ in 0..10 {
                shuffle(&mut random, &mut quads);
                let mut other = any_tree(&mut random, quads.clone(), &|a, b| unit.evaluate(a, b));
                for (half, compete) in [0, 2].into_iter().zip(compete) {
                    if compete {
                        let is_it =
                            |quad: &Quad| is_nan(quad.lanes[half]) && quad.lanes[half + 1] == other.lanes[half + 1];
                        assert!(quads.iter().any(is_it), "{op} {quads:x?} (seed {seed})");
                        other.lanes[half + 1] = first.lanes[half + 1];
                    }
                }
                assert_eq!(other, first, "{op} {quads:x?} (seed {seed})");
                seen[usize::from(compete[0])] += 1;
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 300), "both cases are common: {seen:?}");
}

fn is_nan(double: u64) -> bool {
    double << 1 > 0x7ff0 << 49
}

/// Whether a signalling NaN and another NaN want the index of a half: in `minmaxnumloc` any number keeps them from it.
fn nans_compete(op: Op, quads: &[Quad], half: usize) -> bool {
    let nans: Vec<u64> = quads.iter().map(|quad| quad.lanes[half]).filter(|&lane| is_nan(lane)).collect();
    let signals = nans.iter().any(|&nan| nan >> 51 & 1 == 0);
    (op == Op::MinMaxLoc || nans.len() == quads.len()) && signals && nans.len() > 1
}

/// The smallest case in which a locator's index depends on the tree: the rule is one of pairs (R-AR-2, R-AR-3).
#[test]
fn a_quieted_nan_keeps_its_value_but_not_its_claim() {
    let at = |value: u64, place: u64| Quad::of([value, place, value, place]);
    let [late, signalling, early] = [at(QUIET, 2), at(SIGNALLING, 5), at(QUIET, 1)];
    for op in [Op::MinMaxLoc, Op::MinMaxNumLoc] {
        let unit = QuadUnit::new(op, DType::F64, Mode::default()).unwrap();
        let join = |a, b| unit.evaluate(a, b);
        let invalid = |place| Quad { code: ResultCode::FltInvalid, ..at(QUIET, place) };
        assert_eq!(join(join(late, early), signalling), invalid(5));
        assert_eq!(join(signalling, join(late, early)), invalid(5));
        assert_eq!(join(join(signalling, late), early), invalid(1));
        assert_eq!(join(join(early, signalling), late), invalid(2));
    }
}

/// Joins neighbours at random places until one is left: every shape of tree can come out.
pub fn any_tree(random: &mut Random, mut quads: Vec<Quad>, join: &dyn Fn(Quad, Quad) -> Quad) -> Quad {
    while quads.len() > 1 {
        let k = random.below(quads.len() as u64 - 1) as usize;
        let b = quads.remove(k + 1);
        quads[k] = join(quads[k], b);
    }
    quads[0]
}

/// Fisher and Yates.
pub fn shuffle<T>(random: &mut Random, items: &mut [T]) {
    for k in (1..items.len()).rev() {
        items.swap(k, random.below(k as u64 + 1) as usize);
    }
}

#[test]
fn words_of_a_double_are_its_digits() {
    let seed = seed(0x5eed_0054);
    let mut random = Random::new(seed);
    for double in corners(DType::F64).into_iter().chain((0..100_000).map(|_| random.lane(DType::F64))) {
        assert_eq!(repsum::split(double), rep_split(double), "{double:#x} (seed {seed})");
    }
}
