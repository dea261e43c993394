//! Whole contributions through a clocked engine: the model behind `watershed reduce --family armed` and behind tests of
//! the engine's arithmetic.
//!
//! ```text
//!   feeder ──▶ 0 [ engine ] 1 ──▶ collector        the collector arms; the feeder sends every contribution,
//!          ◀──            ◀── arm                  one frame behind the other; the engine answers with frames
//! ```
//!
//! The engine is the one of whole systems, clocked by the same loop over real links; only the two ends are simplified.
//!
//! ```
//! use watershed_arith::Opcode;
//! use watershed_armed::{Contribution, reduce_contributions};
//!
//! let op = Opcode::from_number(0x14).unwrap(); // INT SUM
//! let outcome = reduce_contributions(op, &[1, 2, 3].map(|word| Contribution::of([word, 10 * word, 0, 0])));
//! assert_eq!(outcome.single().unwrap().lanes, [6, 60, 0, 0]);
//! assert_eq!(outcome.counts.merged, 3); // frames merged into the descriptor
//! ```

use super::engine::{EngineCfg, EngineCounts};
use super::frame::{FRAME_WORDS, Frame, Portals};
use super::header::{Address, Header, MAX_COUNT, SEQNOS};
use super::station::Tokens;
use super::tables::{CHANNELS, DOWN, Discard, Entry, Ports, Tables, TablesCfg, UP, WORDS};
use super::{Engine, Keys, Owner, WireBlock};
use std::collections::VecDeque;
use watershed_arith::quad::Opcode;
use watershed_arith::{Quad, ResultCode};
use watershed_fabric::arbiter::Policy;
use watershed_fabric::routing::{Routes, Routing};
use watershed_fabric::topology::Mesh;
use watershed_fabric::{
    Block, Blocks, Flit, Io, Network, NodeKind, Pipeline, Plan, PlanLink, PlanNode, RouterCfg, Step, SwitchCfg, Vcs,
};
use watershed_kernel::{Cycle, Wake};
use watershed_probe::Scope;

/// What one frame contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// The four lanes.
    pub lanes: [u64; 4],
    /// Contributions it represents.
    pub count: u32,
    /// Result code it brings.
    pub rc: ResultCode,
    /// Exponent index of a reproducible sum.
    pub m: i8,
    /// The word of a reproducible sum that wrapped.
    pub oflow_id: u8,
    /// Another opcode than the reduction's, if it has one.
    pub op: Option<u8>,
    /// How far its sequence number is ahead of the one that is armed: frames ahead pass.
    pub ahead: u16,
}

impl Contribution {
    /// One contribution of four lanes with nothing to report.
    pub const fn of(lanes: [u64; 4]) -> Contribution {
        Contribution { lanes, count: 1, rc: ResultCode::Ok, m: 0, oflow_id: 0, op: None, ahead: 0 }
    }

    /// One contribution of this quad.
    pub const fn from_quad(quad: Quad) -> Contribution {
        let Quad { lanes, code, m, oflow_id } = quad;
        Contribution { lanes, count: 1, rc: code, m, oflow_id, op: None, ahead: 0 }
    }
}

/// What came out of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The frames the engine sent, in order: one if everything was reduced.
    pub frames: Vec<Contribution>,
    /// Cycles in which their tails arrived.
    pub cycles: Vec<Cycle>,
    /// What the engine counted.
    pub counts: EngineCounts,
}

impl Outcome {
    /// The only frame, if there was only one.
    pub fn single(&self) -> Option<&Contribution> {
        match &self.frames[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// Reduces contributions in an engine with default parameters; it waits for as many as their counts come to.
pub fn reduce_contributions(op: &Opcode, contributions: &[Contribution]) -> Outcome {
    reduce_with(&EngineCfg::default(), op, contributions, None, 0)
}

/// As [`reduce_contributions`], with parameters, with another wait count, and with the collector holding the link for some
/// cycles after arming, so that frames pile up before the engine.
///
/// # Panics
/// If there is no contribution, or a wait count of 0 or beyond 20 bits is given.
pub fn reduce_with(
    cfg: &EngineCfg,
    op: &Opcode,
    contributions: &[Contribution],
    wait_count: Option<u32>,
    hold_cycles: u64,
) -> Outcome {
    assert!(!contributions.is_empty(), "nothing to reduce");
    let sum: u64 = contributions.iter().map(|contribution| u64::from(contribution.count)).sum();
    let wait_count = wait_count.unwrap_or(sum.clamp(1, u64::from(MAX_COUNT)) as u32);
    assert!((1..=MAX_COUNT).contains(&wait_count), "a wait count has 20 bits and is not 0");
    let address = Address { multicast_id: 0, reduction_id: 0 };
    let (vni, cookie) = (1, 0x00c0_ffee);
    let owner = Owner { root: 0, keys: Keys { vni, cookie } };
    let frame = |header: Header, source: u32| Frame {
        address,
        source,
        vni,
        portals: Portals::default(),
        rank: source,
        header: Header { cookie, ..header },
        lanes: [0; 4],
    };
    let arm = frame(Header { arm: true, op: op.number, ..Header::default() }, 0);
    let frames: VecDeque<Frame> = contributions
        .iter()
        .zip(1u32..)
        .map(|(contribution, source)| {
            let op = contribution.op.unwrap_or(op.number);
            let quad = Quad {
                lanes: contribution.lanes,
                code: contribution.rc,
                m: contribution.m,
                oflow_id: contribution.oflow_id,
            };
            let count = contribution.count.min(MAX_COUNT);
            frame(Header { op, count, seqno: contribution.ahead % SEQNOS, ..Header::default() }, source).with_quad(quad)
        })
        .collect();

    let node = |kind, ports, name: &str| PlanNode { kind, ports, engine: false, name: name.into(), path: name.into() };
    let link = |a, b| PlanLink { a, b, latency: 1, cycles_per_flit: 1, level: 0 };
    let plan = Plan {
        vcs: Vcs { set: CHANNELS, unicast: 0 },
        nodes: vec![
            node(NodeKind::Bump, 2, "engine"),
            node(NodeKind::End, 1, "feeder"),
            node(NodeKind::End, 1, "collector"),
        ],
        links: vec![link((0, 0), (1, 0)), link((0, 1), (2, 0))],
        levels: vec!["local".into()],
    };
    let tables_cfg = TablesCfg { entries: 1, engine: *cfg, record: false, log: false };
    let routing = Routing::Mesh(Mesh { size: vec![1], concentration: 1 });
    let mut tables = Tables::new(tables_cfg, vec!["switch".into()], 2, Routes { routing, ends: Vec::new() });
    let entry = Entry { multicast_id: 0, parent: 0, children: Ports::one(1), wait_count, owner };
    tables.insert(0, entry).expect("the table is empty");
    let feeder = Ends::new(frames, UP);
    let mut collector = Ends::new(VecDeque::from([arm]), DOWN);
    collector.armed = true;
    collector.hold_until = hold_cycles;
    let blocks = Blocks {
        joins: Vec::new(),
        no_join: Discard::default(),
        bumps: vec![WireBlock::Engine(Box::new(Engine::new(cfg, 0, 0, 0, Tokens::new(3))))],
        ends: vec![feeder, collector],
    };
    let switch = SwitchCfg {
        pipeline: Pipeline::new(1),
        policy: Policy::RoundRobin,
        monitors: true,
        router: RouterCfg::default(),
    };
    let vc_names = vec!["up".into(), "down".into()];
    let mut network: Network<Tables, Discard, WireBlock, Ends, WORDS> =
        Network::new(plan, tables, blocks, switch, &|_, _| 2 * FRAME_WORDS as u16, vc_names);
    while network.step() != Step::Quiet {}
    if let Some(fault) = network.fault() {
        panic!("the bench broke a rule: {fault}");
    }
    let got = &network.ends()[1].got;
    let engine = network.bumps().get(0).and_then(WireBlock::engine).expect("the bump is the engine");
    Outcome {
        frames: got.iter().map(|(_, frame)| contribution(frame)).collect(),
        cycles: got.iter().map(|(cycle, _)| *cycle).collect(),
        counts: *engine.counts(),
    }
}

/// What a frame contributes, as a leaf would.
fn contribution(frame: &Frame) -> Contribution {
    let header = &frame.header;
    Contribution {
        lanes: frame.lanes,
        count: header.count,
        rc: header.code,
        m: header.m,
        oflow_id: header.oflow_id,
        op: Some(header.op),
        ahead: header.seqno,
    }
}

/// Either end of the bench.
struct Ends {
    frames: VecDeque<Frame>,
    vc: u8,
    sent: usize,
    /// Whether it may send: the feeder waits for the arm frame.
    armed: bool,
    /// Until when it takes nothing.
    hold_until: Cycle,
    words: Vec<u64>,
    got: Vec<(Cycle, Frame)>,
}

impl Ends {
    /// Sends frames on a channel.
    fn new(frames: VecDeque<Frame>, vc: u8) -> Ends {
        Ends { frames, vc, sent: 0, armed: false, hold_until: 0, words: Vec::new(), got: Vec::new() }
    }
}

impl Block for Ends {
    type Tables = Tables;

    fn tick(&mut self, io: &mut Io<'_>, _: &Tables) -> Wake {
        let now = io.now();
        let mut wake = Wake::OnInput;
        let mut moved = false;
        if now < self.hold_until {
            wake = Wake::At(self.hold_until);
        } else {
            let other = if self.vc == UP { DOWN } else { UP };
            if io.head(0, other).is_some() {
                let flit = io.take(0, other);
                moved = true;
                if flit.tag.head() {
                    self.words.clear();
                }
                self.words.push(flit.word);
                if flit.tag.tail() {
                    let frame = Frame::from_words(&self.words).expect("nothing damages frames on the bench");
                    self.armed = true;
                    self.got.push((now, frame));
                }
            }
        }
        if self.armed
            && io.can_send(0, self.vc)
            && let Some(frame) = self.frames.front()
        {
            let words = frame.to_words().expect("the fields fit");
            let at = self.sent;
            io.send(0, self.vc, Flit::part(0, self.vc, 0, at as u32, FRAME_WORDS as u32, words[at]));
            self.sent = (at + 1) % FRAME_WORDS;
            if self.sent == 0 {
                self.frames.pop_front();
            }
            moved = true;
        }
        if moved { Wake::Next } else { wake }
    }

    fn open(&self) -> Option<String> {
        (!self.frames.is_empty()).then(|| format!("{} frames to send", self.frames.len()))
    }

    fn probe(&self, _: &mut Scope<'_>) {}
}
