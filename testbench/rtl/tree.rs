//! Reduction trees: waves of operands of mixed operations, types, modes and sets of ports, with gaps and resets; the result and every
//! register of every stage of every unit in every cycle.

use watershed::arith::stages::{TreeStages, units_of};
use watershed::arith::{DType, Flags, Op, Operands, TreeCfg, TreeIn, TreeOut};
use watershed::kernel::Rng;
use watershed::probe::wave_in::WaveFile;
use watershed::scenario::config::Wave;
use watershed::scenario::load_file;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::bench::{Bench, Cosim, Difference};
use crate::player::Player;
use crate::random::{self, seed};
use crate::registers::{TAG_BITS, flags_bits, look_at_tree, mode_bits, tree_values, units_literal, wave_of_tree};
use crate::verilator::{self, root};

/// A tree and what it is used for.
pub struct Used {
    pub cfg: TreeCfg,
    pub selects: Vec<(Op, DType)>,
}

impl Used {
    /// A tree for these operations on these types.
    pub fn new(radix: u8, unit_stages: u8, ops: &[Op], dtypes: &[DType]) -> Used {
        let selects = ops.iter().flat_map(|&op| dtypes.iter().map(move |&dtype| (op, dtype))).collect();
        Used { cfg: TreeCfg { radix, unit_stages }, selects }
    }

    /// The model after reset.
    pub fn model(&self) -> TreeStages {
        TreeStages::new(self.cfg, &units_of(self.selects.iter().copied()))
    }

    /// The parameters of the RTL.
    pub fn parameters(&self) -> String {
        let TreeCfg { radix, unit_stages } = self.cfg;
        let units = units_literal(&units_of(self.selects.iter().copied()));
        format!(".Radix({radix}), .UnitStages({unit_stages}), .Units({units}), .TagWidth({TAG_BITS})")
    }

    /// A tree on the bench, with all of its registers.
    pub fn bench(&self) -> Bench {
        let mut bench = self.shell();
        look_at_tree(&mut bench, "tree", "u_dut", &self.model());
        bench
    }

    /// A tree on the bench: its ports.
    fn shell(&self) -> Bench {
        let radix = self.cfg.radix;
        let mut bench = Bench::default();
        for (name, width) in [("valid", 1), ("op", 4), ("dtype", 4), ("mode", 5), ("flags", 7), ("tag", TAG_BITS)] {
            bench.input(name, width);
        }
        bench.input("present", u32::from(radix));
        for port in 0..radix {
            bench.input(format!("word_{port}"), 64);
        }
        let words: Vec<String> = (0..radix).map(|port| format!("    assign words[{port}] = word_{port};\n")).collect();
        bench.body(&format!(
            "  logic [63:0] words [{radix}];\n{}  logic left_valid;\n  logic [63:0] left_value, left_tag;\n  flags_t left_flags;\n\
             \x20 ws_reduce_tree #({}) u_dut (\n    .clk_i, .rst_ni, .valid_i(valid), .op_i(op_e'(op)), .dtype_i(dtype_e'(dtype)), \
             .mode_i(mode_t'(mode)),\n    .flags_i(flags_t'(flags)), .tag_i(tag), .present_i(present), .word_i(words), \
             .valid_o(left_valid), .value_o(left_value),\n    .flags_o(left_flags), .tag_o(left_tag));\n",
            words.concat(),
            self.parameters()
        ));
        for (name, width) in [("valid", 1), ("value", 64), ("flags", 7), ("tag", 64)] {
            bench.look(format!("out.{name}"), format!("left_{name}"), width);
        }
        bench
    }

    /// A random wave of operands.
    fn wave(&self, rng: &mut Rng) -> TreeIn {
        let (op, dtype) = self.selects[rng.below(self.selects.len() as u64) as usize];
        let mut operands = Operands::new();
        let present = match rng.below(4) {
            0 => rng.bits(),
            1 => 1 << rng.below(u64::from(self.cfg.radix)),
            _ => u64::MAX,
        };
        for port in (0..self.cfg.radix).filter(|port| present >> port & 1 == 1) {
            operands.set(port, random::words(rng, if op.is_bitwise() { DType::U64 } else { dtype }).0);
        }
        let flags = if rng.below(4) == 0 { Flags::from_bits(rng.bits() as u8) } else { Flags::NONE };
        TreeIn { op, dtype, mode: random::mode(rng), operands, flags, tag: rng.bits() }
    }

    /// Random waves for so many cycles.
    pub fn drive(&self, cosim: &mut Cosim, rng: &mut Rng, cycles: u64) -> Result<(), Box<Difference>> {
        let mut tree = self.model();
        for cycle in 0..cycles {
            let reset = cycle == 0 || rng.below(4_000) == 0;
            if reset {
                tree = self.model();
            }
            let input = self.wave(rng);
            let valid = rng.below(4) != 0;
            let mut given = vec![
                u128::from(valid),
                input.op as u128,
                input.dtype as u128,
                mode_bits(input.mode),
                flags_bits(input.flags),
                u128::from(input.tag),
                u128::from(input.operands.present()),
            ];
            given.extend((0..self.cfg.radix).map(|port| u128::from(input.operands.get(port).unwrap_or(0))));
            let mut held = Vec::new();
            tree_values(&tree, &mut held);
            let left = tree.clock((valid && !reset).then_some(&input));
            cosim.cycle(reset, &given, output(left).into_iter().chain(held))?;
        }
        Ok(())
    }
}

/// What the output of a tree shows.
fn output(left: Option<TreeOut>) -> [Option<u128>; 4] {
    left.map_or([Some(0), None, None, None], |left| {
        [1, u128::from(left.value), flags_bits(left.flags), u128::from(left.tag)].map(Some)
    })
}

fn trees_hold_what_the_model_holds(used: &Used, cycles: u64, name: &str) {
    let Some(mut cosim) = used.bench().build(name) else { return };
    let seed = seed(0x7ee0_0000 + u64::from(used.cfg.radix));
    used.drive(&mut cosim, &mut Rng::new(seed, 0), cycles)
        .unwrap_or_else(|difference| panic!("{difference} (seed {seed})"));
    let TreeCfg { radix, unit_stages } = used.cfg;
    cosim.finish(&format!("ws_reduce_tree, {radix} ports, {unit_stages} stages a unit, every register of every unit"));
}

/// Cycles of a sample and of a soak.
const SAMPLE: u64 = 10_000;
const SOAK: u64 = 500_000;

/// The tree of a PIUMA switch.
fn of_a_switch() -> Used {
    Used::new(10, 3, &[Op::Sum, Op::Max, Op::Barrier], &[DType::F32, DType::I64])
}

/// An odd number of ports, so that nodes have no partner; narrow lanes.
fn of_three_ports() -> Used {
    Used::new(3, 2, &[Op::Prod, Op::MinNum, Op::Xor, Op::Barrier], &[DType::Bf16, DType::U32])
}

#[test]
fn the_tree_of_a_switch_holds_what_the_model_holds() {
    trees_hold_what_the_model_holds(&of_a_switch(), SAMPLE, "tree-10");
}

#[test]
fn a_tree_of_three_ports_holds_what_the_model_holds() {
    trees_hold_what_the_model_holds(&of_three_ports(), SAMPLE, "tree-3");
}

#[test]
#[ignore = "takes minutes: make soak"]
fn trees_hold_what_the_model_holds_for_long() {
    trees_hold_what_the_model_holds(&of_a_switch(), SOAK, "tree-10");
    trees_hold_what_the_model_holds(&of_three_ports(), SOAK, "tree-3");
}

/// The tree in a scope of a waveform beside the RTL's; how many cycles were compared, and how many waves of operands it took.
fn beside(player: &mut Player, scope: &str, used: &Used) -> Option<(u64, u64)> {
    let (radix, below) = (used.cfg.radix, format!("{scope}."));
    let mut bench = used.shell();
    let names = player.names.iter().filter_map(|name| name.strip_prefix(&below));
    let registers =
        names.filter_map(|name| Some((name.to_owned(), wave_of_tree(name, "u_dut", used.cfg.unit_stages)?)));
    let registers: Vec<(String, String)> = registers.collect();
    for (name, place) in &registers {
        // As wide as anything in a register is; what lies above is zero on both sides.
        bench.look(name.clone(), place.clone(), 112);
    }
    let mut cosim = bench.build("tree-waves")?;
    let places: Vec<usize> = registers.iter().map(|(name, _)| player.number(&format!("{below}{name}"))).collect();
    let (mut cycle, mut taken) = (0, 0);
    let mut before: Option<Vec<Option<u128>>> = None;
    loop {
        let more = player.go_to(cycle);
        let get = |name: &str| player.get(&format!("{scope}.operands.{name}"));
        let mode = get("signal_ieee") << 4 | get("nan_propagate") << 3 | get("flush_to_zero") << 2 | get("round");
        let tag = get("run") << 28 | get("cc_id") << 16 | get("word");
        // What stands there now was taken at the edge before.
        let mut given = vec![get("valid"), get("op"), get("dtype"), mode, get("flags"), tag, get("present")];
        given.extend((0..radix).map(|port| get(&format!("port{port}.word"))));
        let expected = before.take();
        taken += u64::from(expected.is_some() && get("valid") == 1);
        let reset = expected.is_none();
        let expected = expected.unwrap_or_else(|| vec![None; 4 + places.len()]);
        cosim.cycle(reset, &given, expected).unwrap_or_else(|difference| panic!("{scope}: {difference}"));
        before = Some([None; 4].into_iter().chain(places.iter().map(|&at| Some(player.values[at]))).collect());
        if !more {
            break;
        }
        cycle += 1;
    }
    cosim.flush().unwrap_or_else(|difference| panic!("{scope}: {difference}"));
    Some((cosim.cycles, taken))
}

/// The reduction units of the packet engines of a shipped scenario, which are trees of two ports with all datapaths.
#[test]
#[ignore = "takes a minute: make soak"]
fn trees_of_packet_engines_hold_what_the_model_holds() {
    if verilator::find().is_none() {
        return;
    }
    let path = root().join("testbench/pbv/tree-many-types.toml");
    let loaded =
        load_file(&path, &["clock.frequency_mhz=1000".to_owned()]).unwrap_or_else(|problems| panic!("{problems}"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trees.vcd");
    let wave = WaveOptions::of(path.clone(), Wave { signals: vec!["**.ce.tree.**".into()], ..Wave::default() });
    run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
    let mut player = Player::new(WaveFile::open(&path).unwrap());
    let scopes: Vec<String> =
        player.scopes(".operands.present").into_iter().filter(|scope| scope.ends_with("ce.tree")).collect();
    assert!(!scopes.is_empty());
    let stage = |at: u8| player.names.iter().any(|name| name.starts_with(&format!("{}.level0.stage{at}.", scopes[0])));
    let stages = (1..=6).filter(|&at| stage(at)).count() as u8;
    let all: Vec<Op> = Op::ALL.iter().copied().filter(|op| !op.is_wide()).collect();
    let used = Used::new(2, stages, &all, DType::ALL);
    let (mut cycles, mut taken) = (0, 0);
    for scope in &scopes {
        let Some(compared) = beside(&mut player, scope, &used) else { return };
        (cycles, taken) = (cycles + compared.0, taken + compared.1);
        player = Player::new(WaveFile::open(&path).unwrap());
    }
    assert!(taken > 0, "nothing was reduced");
    println!(
        "rtl: ws_reduce_tree beside {} packet engines of tree-many-types: {cycles} cycles, {taken} words, 0 differences",
        scopes.len()
    );
}
