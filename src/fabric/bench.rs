//! A bench for a single block: it sits between links whose far ends send what the caller gives them and accept every
//! flit.
//!
//! ```text
//!   arrivals ──▶ pin ─── link ──▶ 0 [ block ] 1 ◀── link ─── pin ◀── arrivals
//!      sent ◀──      ◀── link ───            ─── link ──▶     ──▶ sent
//! ```
//!
//! Times are those of the block: an arrival of cycle t is at the head of the block's queue in t, if the queue is empty, and
//! what the block sends in cycle t is noted with t. The links have a latency of one cycle and buffers of 256 flits; a pin
//! returns each credit in the cycle in which the flit comes.
//!
//! ```
//! use watershed_fabric::bench::NoTables;
//! use watershed_fabric::{Bench, Block, Flit, Io, Vcs, pass_through};
//! use watershed_kernel::Wake;
//!
//! /// Passes everything on.
//! struct Repeater;
//!
//! impl Block for Repeater {
//!     type Tables = NoTables;
//!     fn tick(&mut self, io: &mut Io<'_>, _: &NoTables) -> Wake {
//!         if pass_through(io, |_, _, _| true) { Wake::Next } else { Wake::OnInput }
//!     }
//!     fn open(&self) -> Option<String> { None }
//!     fn probe(&self, _: &mut watershed_probe::Scope<'_>) {}
//! }
//!
//! let (channels, flit) = (Vcs { set: 1, unicast: 0 }, Flit::collective(0, 0, 0, 0x2a));
//! let mut bench = Bench::<_, _, 1>::in_the_wire(Repeater, NoTables, channels, [(5, 0, flit)]);
//! while bench.tick() {}
//! assert_eq!(bench.sent(), [(5, 1, flit)]); // in by port 0, out by port 1, in the same cycle
//! ```

use crate::arbiter::Policy;
use crate::{
    Block, Blocks, Flit, Io, Network, NoJoin, NodeKind, Pipeline, Plan, PlanLink, PlanNode, PortSet, Route, RouteView,
    RouterCfg, Step, SwitchCfg, Tables, Vcs,
};
use std::collections::VecDeque;
use watershed_kernel::{Cycle, Wake};
use watershed_probe::Scope;

/// Cycles from sending a flit over a link of the bench to its being in the far queue.
const WAY: Cycle = 2;

/// Flits of every buffer.
const DEPTH: u16 = 256;

/// Tables of a block that looks nothing up.
#[derive(Clone, Copy, Debug)]
pub struct NoTables;

impl<const W: usize> Tables<W> for NoTables {
    fn outputs(&self, _: u32, _: u16, _: &Flit) -> PortSet<W> {
        PortSet::EMPTY
    }

    fn unicast(&self, _: &RouteView<'_>, _: &Flit) -> Route {
        Route::over(0)
    }

    fn no_route(&self, _: u32, _: u16, _: &Flit) -> String {
        "there are no tables".into()
    }
}

/// A block between pins; see the module's text.
pub struct Bench<T, B, const W: usize> {
    net: Network<T, NoJoin<T>, B, BenchNode<T, B>, W>,
    sent: Vec<(Cycle, u16, Flit)>,
    ports: usize,
}

impl<T, B, const W: usize> Bench<T, B, W>
where
    T: Tables<W> + Clone + Send + Sync,
    B: Block<Tables = T> + Send,
{
    /// An end point, with one port. `arrivals` are cycles, from 2 on, ports and flits; those of one port in the order of
    /// their cycles. The channel is in the flit.
    pub fn at_the_end(
        block: B,
        tables: T,
        vcs: Vcs,
        arrivals: impl IntoIterator<Item = (Cycle, u16, Flit)>,
    ) -> Bench<T, B, W> {
        Bench::new(Err(block), tables, vcs, arrivals)
    }

    /// A block in the wire, with two ports. `arrivals` as in [`Bench::at_the_end`].
    pub fn in_the_wire(
        block: B,
        tables: T,
        vcs: Vcs,
        arrivals: impl IntoIterator<Item = (Cycle, u16, Flit)>,
    ) -> Bench<T, B, W> {
        Bench::new(Ok(block), tables, vcs, arrivals)
    }

    fn new(
        block: Result<B, B>,
        tables: T,
        vcs: Vcs,
        arrivals: impl IntoIterator<Item = (Cycle, u16, Flit)>,
    ) -> Bench<T, B, W> {
        let ports = if block.is_ok() { 2 } else { 1 };
        let mut pins: Vec<Pin> = (0..ports).map(|_| Pin::default()).collect();
        for (cycle, port, flit) in arrivals {
            assert!(cycle >= WAY, "an arrival comes over a link: cycle {cycle} is before cycle {WAY}");
            pins[usize::from(port)].arrivals.push_back((cycle - WAY, flit));
        }
        let kind = if block.is_ok() { NodeKind::Bump } else { NodeKind::End };
        let node = |kind, ports: usize, name: String| PlanNode {
            kind,
            ports: ports as u16,
            engine: false,
            path: name.clone(),
            name,
        };
        let pin = |port: usize| node(NodeKind::End, 1, format!("pin{port}"));
        let link = |port: usize| PlanLink {
            a: (0, port as u16),
            b: (1 + port as u32, 0),
            latency: 1,
            cycles_per_flit: 1,
            level: 0,
        };
        let plan = Plan {
            vcs,
            nodes: std::iter::once(node(kind, ports, "block".into())).chain((0..ports).map(pin)).collect(),
            links: (0..ports).map(link).collect(),
            levels: vec!["bench".into()],
        };
        let mut ends: Vec<BenchNode<T, B>> = Vec::new();
        let bumps = match block {
            Ok(block) => vec![block],
            Err(block) => {
                ends.push(BenchNode::Block(block));
                Vec::new()
            }
        };
        ends.extend(pins.into_iter().map(|pin| BenchNode::Pin(pin, std::marker::PhantomData)));
        let blocks = Blocks { joins: Vec::new(), no_join: NoJoin::default(), bumps, ends };
        let cfg = SwitchCfg {
            pipeline: Pipeline::new(1),
            policy: Policy::RoundRobin,
            monitors: true,
            router: RouterCfg::default(),
        };
        let names = (0..vcs.total()).map(|vc| format!("vc{vc}")).collect();
        Bench { net: Network::new(plan, tables, blocks, cfg, &|_, _| DEPTH, names), sent: Vec::new(), ports }
    }

    /// One clock; `false` if nothing will ever happen again.
    ///
    /// # Panics
    /// If the block breaks a rule of its links.
    pub fn tick(&mut self) -> bool {
        let before = self.net.now();
        let step = self.net.step_before(before + 1);
        if let Some(fault) = self.net.fault() {
            panic!("cycle {before}: {fault}");
        }
        let first_pin = usize::from(self.ports == 1);
        for port in 0..self.ports {
            if let BenchNode::Pin(pin, _) = self.net.end(first_pin + port) {
                let new = pin.taken.iter().filter(|(cycle, _)| *cycle >= before);
                self.sent.extend(new.map(|(cycle, flit)| (cycle - WAY, port as u16, *flit)));
            }
        }
        step != Step::Quiet
    }

    /// What the block sent, in order: cycle, port, flit.
    pub fn sent(&self) -> &[(Cycle, u16, Flit)] {
        &self.sent
    }

    /// The block.
    pub fn block(&self) -> &B {
        match self.net.bumps().get(0) {
            Some(block) => block,
            None => match self.net.end(0) {
                BenchNode::Block(block) => block,
                BenchNode::Pin(..) => unreachable!("the first end point is the block where nothing is in the wire"),
            },
        }
    }

    /// The cycle that [`Bench::tick`] simulates next.
    pub fn now(&self) -> Cycle {
        self.net.now()
    }
}

/// A node of the bench: the block, or the far end of one of its links.
enum BenchNode<T, B> {
    Block(B),
    Pin(Pin, std::marker::PhantomData<fn(T)>),
}

/// The far end of a link.
#[derive(Default)]
struct Pin {
    /// What is to be sent, and from when on.
    arrivals: VecDeque<(Cycle, Flit)>,
    /// The arrivals, with their cycles.
    taken: Vec<(Cycle, Flit)>,
}

impl Pin {
    fn tick(&mut self, io: &mut Io<'_>) -> Wake {
        let now = io.now();
        for vc in 0..io.vcs().total() {
            if io.head(0, vc).is_some() {
                self.taken.push((now, io.take(0, vc)));
            }
        }
        let Some(&(cycle, flit)) = self.arrivals.front() else { return Wake::OnInput };
        if cycle > now {
            return Wake::At(cycle);
        }
        if io.can_send(0, flit.tag.vc()) {
            io.send(0, flit.tag.vc(), flit);
            self.arrivals.pop_front();
        }
        if self.arrivals.is_empty() { Wake::OnInput } else { Wake::Next }
    }
}

impl<T: 'static, B: Block<Tables = T>> Block for BenchNode<T, B> {
    type Tables = T;

    fn tick(&mut self, io: &mut Io<'_>, tables: &T) -> Wake {
        match self {
            BenchNode::Block(block) => block.tick(io, tables),
            BenchNode::Pin(pin, _) => pin.tick(io),
        }
    }

    fn open(&self) -> Option<String> {
        match self {
            BenchNode::Block(block) => block.open(),
            BenchNode::Pin(pin, _) => {
                (!pin.arrivals.is_empty()).then(|| format!("{} flits to send", pin.arrivals.len()))
            }
        }
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        if let BenchNode::Block(block) = self {
            block.probe(scope);
        }
    }
}
