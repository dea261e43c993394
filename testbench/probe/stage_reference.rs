//! What stage registers must hold, cycle by cycle: the clocked units of [`arith`](watershed::arith), stepped from the operands
//! that stand in a waveform.
//!
//! A value is kept by the name of its signal. Registers load with a valid input, otherwise hold, and are zero at first.

use std::collections::HashMap;

use watershed::arith::{
    DType, Flags, Mode, NanPolicy, Op, Operands, Quad, QuadPipe, QuadUnit, ResultCode, Round, SignalPolicy, Tree,
    TreeCfg, TreeIn,
};

use crate::player::Player;

/// What stands in `operands` of a unit or a tree.
struct Given {
    op: Op,
    dtype: DType,
    mode: Mode,
    /// Values of the tag's fields, by name.
    tag: Vec<(&'static str, u128)>,
}

fn given(player: &Player, scope: &str, tag: &[&'static str]) -> Option<Given> {
    let get = |name: &str| player.get(&format!("{scope}.operands.{name}"));
    (get("valid") == 1).then(|| Given {
        op: Op::ALL[get("op") as usize],
        dtype: DType::ALL[get("dtype") as usize],
        mode: Mode {
            round: Round::ALL[get("round") as usize],
            flush_to_zero: get("flush_to_zero") == 1,
            nan: if get("nan_propagate") == 1 { NanPolicy::Propagate } else { NanPolicy::DefaultQuiet },
            signal: if get("signal_ieee") == 1 { SignalPolicy::Ieee } else { SignalPolicy::Associative },
        },
        tag: tag.iter().map(|&name| (name, get(name))).collect(),
    })
}

/// What a tree's waves are known by: the number of the operands that went in.
type Log = HashMap<u64, Given>;

/// Numbers of the signals of a stage.
#[derive(Debug, Default)]
struct Places {
    valid: usize,
    joined: Option<usize>,
    flags: Option<usize>,
    op: usize,
    dtype: usize,
    tag: Vec<usize>,
    /// By register, lane and field.
    fields: HashMap<(&'static str, Option<u8>, &'static str), usize>,
}

/// Level, node and stage; the node of what goes with all nodes of a level is 255, and a unit alone is node 0 of level 0.
type Key = (u8, u8, u8);

/// Values of registers by the numbers of their signals.
pub struct Expected {
    places: HashMap<Key, Places>,
    /// By number, of the signals below the scope: what must be there; `None` of those that nobody expects.
    values: Vec<Option<u128>>,
    /// Those that were set since the last comparison.
    set: Vec<usize>,
    /// Valid bits that are set.
    valid: Vec<usize>,
}

impl Expected {
    /// All signals below a scope but `operands`, zero; stages have these names.
    fn new(player: &Player, scope: &str, stages: &[(Key, String)], tag: &[&'static str]) -> Expected {
        let mut values = vec![None; player.names.len()];
        for (number, name) in player.names.iter().enumerate() {
            if let Some(rest) = name.strip_prefix(scope).and_then(|rest| rest.strip_prefix('.'))
                && !rest.starts_with("operands.")
            {
                values[number] = Some(0);
            }
        }
        assert!(values.iter().flatten().count() > 10, "no registers in {scope}");
        let places = stages.iter().map(|(key, name)| {
            let number = |field: &str| player.number(&format!("{scope}.{name}.{field}"));
            let places = Places {
                valid: number("valid"),
                joined: (key.1 != 255).then(|| number("joined")),
                flags: (key.1 == 255).then(|| number("flags")),
                op: number("op"),
                dtype: number("dtype"),
                tag: tag.iter().map(|field| number(field)).collect(),
                fields: HashMap::new(),
            };
            (*key, places)
        });
        let set = (0..values.len()).collect();
        Expected { places: places.collect(), values, set, valid: Vec::new() }
    }

    fn expect(&mut self, number: usize, value: u128) {
        self.values[number] = Some(value);
        self.set.push(number);
    }

    /// The valid bits of all stages are clear.
    fn clear(&mut self) {
        for number in std::mem::take(&mut self.valid) {
            self.expect(number, 0);
        }
    }

    /// A stage has this operation.
    fn load(&mut self, key: Key, given: &Given, joined: bool, flags: u8) {
        let places = &self.places[&key];
        self.valid.push(places.valid);
        let own = [(Some(places.valid), 1), (places.joined, u128::from(joined)), (places.flags, u128::from(flags))];
        let select = [(Some(places.op), given.op as u128), (Some(places.dtype), given.dtype as u128)];
        let tag = places.tag.iter().zip(&given.tag).map(|(number, (_, value))| (Some(*number), *value));
        let all: Vec<(Option<usize>, u128)> = own.into_iter().chain(select).chain(tag).collect();
        for (number, value) in all {
            if let Some(number) = number {
                self.expect(number, value);
            }
        }
    }

    /// A field of a register of a stage has this value; `name` is that of the stage.
    fn put(
        &mut self,
        player: &Player,
        (key, name): (Key, &dyn Fn() -> String),
        place: (&'static str, Option<u8>, &'static str),
        value: u128,
    ) {
        let fields = &mut self.places.get_mut(&key).expect("a stage").fields;
        let number = *fields.entry(place).or_insert_with(|| match place {
            (register, Some(lane), field) => player.number(&format!("{}.{register}.lane{lane}.{field}", name())),
            (register, None, field) => player.number(&format!("{}.{register}.{field}", name())),
        });
        self.expect(number, value);
    }

    /// Panics if a register does not hold what it must. All others are as they were in the cycle before, and so equal.
    pub fn compare(&mut self, player: &Player, cycle: u64) {
        for &number in self.set.iter().chain(&player.changed) {
            let (expected, found, name) = (self.values[number], player.values[number], &player.names[number]);
            assert!(
                expected.is_none_or(|expected| expected == found),
                "cycle {cycle}: {name} holds {found:#x}, and a clocked tree {expected:x?}"
            );
        }
        self.set.clear();
    }
}

/// [`Tree`] beside the tree, or the lone unit, of a scope.
pub struct TreeReference {
    scope: String,
    /// A unit alone: a tree of two ports.
    alone: bool,
    tag: Vec<&'static str>,
    tree: Tree,
    log: Log,
    next: u64,
    pub expected: Expected,
    /// Operands seen, of which operations, and cycles in which something was in it.
    pub taken: u64,
    pub selects: HashMap<(Op, DType), u64>,
}

impl TreeReference {
    /// Beside this scope: `….ceng.tree`, or `….scan.chain0`.
    pub fn new(player: &Player, scope: &str, alone: bool, tag: &[&'static str]) -> TreeReference {
        let (stage, ports) = if alone { ("stage", 2) } else { ("level0.stage", 0) };
        let exists = |name: String| player.names.iter().any(|known| known.starts_with(&format!("{scope}.{name}.")));
        let ports =
            if alone { ports } else { (0..64).take_while(|port| exists(format!("operands.port{port}"))).count() };
        let unit_stages = (1..=6u8).take_while(|at| exists(format!("{stage}{at}"))).count() as u8;
        let mut stages = Vec::new();
        for stage in 1..=unit_stages {
            if alone {
                stages.push(((0, 0, stage), format!("stage{stage}")));
                continue;
            }
            for level in (0..6u8).take_while(|level| exists(format!("level{level}.stage1"))) {
                stages.push(((level, 255, stage), format!("level{level}.stage{stage}")));
                for unit in (0..32u8).take_while(|unit| exists(format!("level{level}.unit{unit}.stage1"))) {
                    stages.push(((level, unit, stage), format!("level{level}.unit{unit}.stage{stage}")));
                }
            }
        }
        TreeReference {
            scope: scope.to_owned(),
            alone,
            tag: tag.to_vec(),
            tree: Tree::new(TreeCfg { radix: ports as u8, unit_stages }),
            log: HashMap::new(),
            next: 1,
            expected: Expected::new(player, scope, &stages, tag),
            taken: 0,
            selects: HashMap::new(),
        }
    }

    /// One clock: the operands as the waveform has them, the registers as they must stand beside them.
    pub fn clock(&mut self, player: &Player) {
        let given = given(player, &self.scope, &self.tag);
        let input = given.map(|given| {
            let get = |name: &str| player.get(&format!("{}.operands.{name}", self.scope));
            let (mut operands, mut flags) = (Operands::new(), Flags::NONE);
            if self.alone {
                operands.set(0, get("a.word") as u64);
                if get("joined") == 1 {
                    operands.set(1, get("b.word") as u64);
                }
            } else {
                flags = Flags::from_bits(get("flags") as u8);
                let present = get("present");
                for port in (0..64).filter(|port| present >> port & 1 == 1) {
                    operands.set(port, get(&format!("port{port}.word")) as u64);
                }
            }
            let Given { op, dtype, mode, .. } = given;
            *self.selects.entry((op, dtype)).or_default() += 1;
            self.taken += 1;
            let tag = self.next;
            self.next += 1;
            self.log.insert(tag, given);
            TreeIn { op, dtype, mode, operands, flags, tag }
        });
        if let Some(left) = self.tree.tick(input) {
            self.log.remove(&left.tag);
        }
        self.load(player);
    }

    /// Valid bits as they are, registers where something was loaded.
    fn load(&mut self, player: &Player) {
        let Self { scope, alone, tree, log, expected, .. } = self;
        expected.clear();
        for wave in tree.waves() {
            let given = &log[&wave.tag()];
            let (level, stage) = (wave.level(), wave.stage());
            if !*alone {
                expected.load((level, 255, stage), given, false, wave.flags().bits());
            }
            let (present, pairs) = wave.nodes();
            for node in (0..32u8).filter(|node| present >> node & 1 == 1) {
                let key = (level, node, stage);
                let name = || {
                    if *alone {
                        format!("{scope}.stage{stage}")
                    } else {
                        format!("{scope}.level{level}.unit{node}.stage{stage}")
                    }
                };
                expected.load(key, given, pairs >> node & 1 == 1, 0);
                if let Some(word) = wave.lone(node) {
                    expected.put(player, (key, &name), ("passed", None, "word"), u128::from(word));
                }
                for lane in 0..8 {
                    let Some((unit, register)) = wave.register(node, lane) else { break };
                    unit.fields(&register, &mut |field, _, value| {
                        expected.put(player, (key, &name), (register.name(), Some(lane), field), value);
                    });
                }
            }
        }
    }
}

/// A [`QuadPipe`] a unit beside the quad unit of a scope; a lone operand takes as many cycles.
pub struct QuadReference {
    scope: String,
    tag: Vec<&'static str>,
    stages: u8,
    pipes: Vec<(QuadUnit, QuadPipe)>,
    /// By stage: what is there, the youngest first, and the lone operand.
    log: Vec<Option<(Given, Option<usize>, Quad)>>,
    pub expected: Expected,
    pub taken: u64,
    pub joined: u64,
    pub selects: HashMap<(Op, DType), u64>,
}

impl QuadReference {
    pub fn new(player: &Player, scope: &str, tag: &[&'static str]) -> QuadReference {
        let exists = |name: String| player.names.iter().any(|known| known.starts_with(&format!("{scope}.{name}.")));
        let stages = (1..=6u8).take_while(|at| exists(format!("stage{at}"))).count() as u8;
        let names: Vec<(Key, String)> = (1..=stages).map(|stage| ((0, 0, stage), format!("stage{stage}"))).collect();
        QuadReference {
            scope: scope.to_owned(),
            tag: tag.to_vec(),
            stages,
            pipes: Vec::new(),
            log: Vec::new(),
            expected: Expected::new(player, scope, &names, tag),
            taken: 0,
            joined: 0,
            selects: HashMap::new(),
        }
    }

    fn operand(&self, player: &Player, which: &str) -> Quad {
        let get = |name: &str| player.get(&format!("{}.operands.{which}.{name}", self.scope));
        Quad {
            lanes: std::array::from_fn(|lane| get(&format!("lane{lane}.word")) as u64),
            code: ResultCode::from_number(get("code") as u8).expect("a code"),
            m: get("m") as u8 as i8,
            oflow_id: get("oflow_id") as u8,
        }
    }

    /// One clock.
    pub fn clock(&mut self, player: &Player) {
        let mut entering = None;
        let mut into = None;
        if let Some(given) = given(player, &self.scope, &self.tag) {
            let joined = player.get(&format!("{}.operands.joined", self.scope)) == 1;
            let (a, b) = (self.operand(player, "a"), self.operand(player, "b"));
            self.taken += 1;
            self.joined += u64::from(joined);
            *self.selects.entry((given.op, given.dtype)).or_default() += 1;
            if joined {
                let unit = QuadUnit::new(given.op, given.dtype, given.mode).expect("a unit");
                let at = self.pipes.iter().position(|(known, _)| *known == unit).unwrap_or_else(|| {
                    self.pipes.push((unit, QuadPipe::new(unit, self.stages)));
                    self.pipes.len() - 1
                });
                into = Some((at, a, b));
            }
            entering = Some((given, into.map(|(at, ..)| at), a));
        }
        for (at, (_, pipe)) in self.pipes.iter_mut().enumerate() {
            pipe.tick(into.filter(|&(into, ..)| into == at).map(|(_, a, b)| (a, b, 0)));
        }
        self.log.insert(0, entering);
        self.log.truncate(usize::from(self.stages));
        let Self { scope, log, pipes, expected, .. } = self;
        expected.clear();
        for (k, held) in log.iter().enumerate() {
            let Some((given, pipe, lone)) = held else { continue };
            let key = (0, 0, k as u8 + 1);
            let name = || format!("{scope}.stage{}", k + 1);
            expected.load(key, given, pipe.is_some(), 0);
            let mut put =
                |register, lane, field, value| expected.put(player, (key, &name), (register, lane, field), value);
            if let Some(at) = *pipe {
                let (unit, pipe) = &pipes[at];
                let register = pipe.registers().nth(k).flatten().expect("it is there");
                unit.fields(register, &mut |lane, field, _, value| put(register.name(), lane, field, value));
            } else {
                for (lane, &word) in lone.lanes.iter().enumerate() {
                    put("passed", Some(lane as u8), "word", u128::from(word));
                }
                put("passed", None, "code", u128::from(lone.code.number()));
                put("passed", None, "m", u128::from(lone.m as u8));
                put("passed", None, "oflow_id", u128::from(lone.oflow_id));
            }
        }
    }
}
