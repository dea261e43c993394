//! The parameters of a point-to-point router: allocators and details of flow control.
//!
//! | parameter | range | effect on cycles | what it costs in hardware |
//! |---|---|---|---|
//! | [`RouterCfg::vc_allocator`] | ordered, separable, islip | how many of the packets that want a channel get one in a cycle; a packet that gets none waits a cycle (or [`vc_alloc`](super::Pipeline)) | ordered: a chain through the channels of an output; the others: two ranks of arbiters |
//! | [`RouterCfg::switch_allocator`] | separable, islip | the same for crossbar inputs | two ranks of arbiters |
//! | [`RouterCfg::iterations`] | from 1 | islip finds more pairs in further rounds | as many times the arbiters, or a longer clock period |
//! | [`RouterCfg::credit_delay`] | cycles, from 0 | a credit is usable this many cycles after it reached a switch; the credit round trip grows by it | registers on the credit path |
//! | [`RouterCfg::input_speedup`] | 1 to 8 | that many flits may leave an input port in a cycle, to different outputs; channel v uses crossbar input v mod speed-up | a crossbar with this many times the inputs |
//! | [`RouterCfg::wait_for_tail_credit`] | no, yes | a channel is given to the next packet only when all credits of the one before are back: the rate of a channel is one packet a credit round trip, however deep its buffer | no packet ever queues behind another in a buffer, so a simpler buffer |
//! | [`RouterCfg::speculative`] | no, yes | a packet bids for the crossbar in the cycle in which it asks for a channel; if it gets both, it saves [`vc_alloc`](super::Pipeline) cycles; bids of packets that hold a channel go first | a second switch allocator |
//!
//! Stage counts are in [`Pipeline`](super::Pipeline), buffer depths in the plan. Set-routed packets use none of these:
//! they have priority, hold no channel beyond a packet and take the input port whole, all its crossbar inputs *chosen*.
//! Only `credit_delay` concerns them too.

/// How packets at the head of their queues get output channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum VcAllocator {
    /// An output goes through its requesters in turn and gives each the lowest free channel it may use: never leaves a
    /// free channel and a packet that could use it alone.
    #[default]
    Ordered,
    /// Separable, input first: each packet picks one free channel, then each channel picks one packet.
    Separable,
    /// Each free channel offers itself to one packet in turn, each packet accepts one offer in turn; cursors move only
    /// when an offer of the first round is accepted (McKeown's iSLIP).
    Islip,
}

/// How flits get through the crossbar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum SwitchAllocator {
    /// Separable, input first: each crossbar input picks a channel, then each output picks a crossbar input.
    #[default]
    Separable,
    /// iSLIP between crossbar inputs and outputs; among channels of a crossbar input that want the same output, in
    /// turn.
    Islip,
}

/// The knobs; see the module's table.
///
/// ```
/// use watershed_fabric::arbiter::Policy;
/// use watershed_fabric::routing::Routes;
/// use watershed_fabric::topology::{Common, LinkParams, Mesh};
/// use watershed_fabric::traffic::{SourceCfg, Target, Traffic, TrafficEnd};
/// use watershed_fabric::{
///     Blocks, Network, NoBump, NoJoin, Pipeline, RouterCfg, Step, SwitchAllocator, SwitchCfg, Vcs,
/// };
///
/// /// Cycles until two end points of a switch have sent 100 packets each to the third.
/// fn cycles(switch_allocator: SwitchAllocator) -> u64 {
///     let link = LinkParams { latency: 1, cycles_per_flit: 1 };
///     let common = Common { vcs: Vcs { set: 0, unicast: 2 }, engine: false, link, local: link };
///     let layout = Mesh { size: vec![1], concentration: 3 }.layout(&common);
///     let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
///     let sends = SourceCfg { rate: 1.0, packet_flits: 1, target: Target::Fixed(2), start: 0, stop: 100, class: 0 };
///     let sources = [vec![sends.clone()], vec![sends], vec![]];
///     let ends = sources.iter().zip(0..).map(|(sources, end)| TrafficEnd::new(Traffic::new(end, sources, 1)));
///     let blocks = Blocks { joins: vec![], no_join: NoJoin::default(), bumps: vec![], ends: ends.collect() };
///     let router = RouterCfg { switch_allocator, ..RouterCfg::default() };
///     let cfg = SwitchCfg { pipeline: Pipeline::new(1), policy: Policy::RoundRobin, monitors: true, router };
///     let mut net: Network<Routes, NoJoin<Routes>, NoBump<Routes>, TrafficEnd<Routes>, 1> =
///         Network::new(layout.plan, routes, blocks, cfg, &|_, _| 8, vec!["a".into(), "b".into()]);
///     while net.step() != Step::Quiet {}
///     assert_eq!(net.end(2).traffic.received()[0].packets, 200);
///     net.alive_until()
/// }
/// // Two inputs, one output: both allocators keep it busy in every cycle.
/// assert_eq!([SwitchAllocator::Separable, SwitchAllocator::Islip].map(cycles), [206, 206]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterCfg {
    /// Virtual-channel allocator.
    pub vc_allocator: VcAllocator,
    /// Switch allocator.
    pub switch_allocator: SwitchAllocator,
    /// Rounds of an iterative allocator.
    pub iterations: u8,
    /// Cycles a switch takes to process a credit.
    pub credit_delay: u16,
    /// Crossbar inputs of an input port.
    pub input_speedup: u8,
    /// Whether a channel stays with its packet until the tail's credit is back.
    pub wait_for_tail_credit: bool,
    /// Whether packets bid for the crossbar before they hold a channel.
    pub speculative: bool,
    /// Where packets have classes: packets in a row that may take a channel past one of a lower class. Flits in a row that may
    /// take an output or a crossbar input are as many. 0: any number, so that the lowest class may wait for ever.
    pub class_bound: u8,
}

impl Default for RouterCfg {
    fn default() -> Self {
        RouterCfg {
            vc_allocator: VcAllocator::Ordered,
            switch_allocator: SwitchAllocator::Separable,
            iterations: 1,
            credit_delay: 0,
            input_speedup: 1,
            wait_for_tail_credit: false,
            speculative: false,
            class_bound: 16,
        }
    }
}
