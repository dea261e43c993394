//! The edge of an Ethernet NIC: the switch port that strips and prepends Ethernet headers (description (98), FIG. 14).
//!
//! ```text
//!   switch ◀── 11 flits, fabric frame ── 0 [ adapter ] 1 ◀── 13 flits, Ethernet form ── NIC
//!          ──▶ 11 flits               ─▶ 0 [         ] 1 ──▶ 13 flits               ──▶
//! ```
//!
//! Timing: store and forward, because the check sum covers the header that changes. The head of a frame leaves in the
//! cycle after its tail was taken. One frame a direction and channel is stored; the next is taken in while it leaves. A
//! frame that is damaged or is no reduction frame is dropped and counted. Point-to-point packets pass as they are.
//!
//! ```
//! use watershed_armed::{
//!     Adapter, Address, EngineCfg, FRAME_WORDS, Frame, Header, Keys, Portals, Tables, TablesCfg, UP, WORDS, WireBlock,
//! };
//! use watershed_fabric::{Bench, Flit, Vcs};
//! # use watershed_fabric::routing::{Routes, Routing};
//! # use watershed_fabric::topology::Mesh;
//! # let routing = Routing::Mesh(Mesh { size: vec![1], concentration: 1 });
//! # let routes = Routes { routing, ends: Vec::new() };
//! # let cfg = TablesCfg { entries: 1, engine: EngineCfg::default(), record: false, log: false };
//! # let tables = Tables::new(cfg, vec!["switch".into()], 2, routes);
//! # let keys = Keys { vni: 1, cookie: 77 };
//! let frame = |header: Header, source: u32, word: u64| Frame {
//!     address: Address { multicast_id: 0, reduction_id: 0 },
//!     source,
//!     vni: 1,
//!     portals: Portals::default(),
//!     rank: source,
//!     header: Header { cookie: 77, ..header },
//!     lanes: [word, 0, 0, 0],
//! };
//! let flits = |frame: Frame, vc: u8, port: u16, cycle: u64| {
//!     let words = frame.to_words().unwrap().into_iter().zip(0..);
//!     words.map(move |(word, at)| (cycle + u64::from(at), port, Flit::part(0, vc, 0, at, FRAME_WORDS as u32, word)))
//! };
//!
//! // A fabric frame comes from the switch in cycles 10 to 20; 13 flits of its Ethernet form leave from cycle 21 on.
//! let arrivals = flits(frame(Header { count: 1, ..Header::default() }, 5, 42), UP, 0, 10);
//! let adapter = WireBlock::Adapter(Box::<Adapter>::default());
//! let mut bench = Bench::<_, _, WORDS>::in_the_wire(adapter, tables, Vcs { set: 2, unicast: 0 }, arrivals);
//! while bench.tick() {}
//! let cycles: Vec<_> = bench.sent().iter().map(|(cycle, ..)| *cycle).collect();
//! assert_eq!(cycles, (21..34).collect::<Vec<_>>());
//! ```

use super::frame::{ETHERNET_BYTES, ETHERNET_WORDS, FRAME_BYTES, Frame};
use super::tables::{CHANNELS, DOWN, Tables, UP};
use watershed_fabric::{FramePart, Io, Reassembly, pass_through};
use watershed_kernel::Wake;
use watershed_probe::Scope;

/// One channel of one direction.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct Lane {
    words: Reassembly,
    token: u64,
    leaving: Vec<u64>,
    /// Bytes of what is leaving.
    bytes: usize,
    sent: usize,
    out_token: u64,
}

/// The adapter; a bump in the wire.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
pub struct Adapter {
    lanes: [Lane; 4],
    /// Frames dropped.
    pub dropped: u64,
}

impl Adapter {
    /// One clock.
    pub(super) fn tick(&mut self, io: &mut Io<'_>, tables: &Tables) -> Wake {
        let cut = tables.cut;
        let mut moved = false;
        for (from, to) in [(0u16, 1u16), (1, 0)] {
            for vc in [DOWN, UP] {
                let lane = &mut self.lanes[usize::from(from) * 2 + usize::from(vc)];
                if !lane.leaving.is_empty() && io.can_send(to, vc) {
                    let flits = cut.flits(lane.bytes);
                    let id = (lane.leaving[0] >> 35) as u16 & 0xfff;
                    let part = FramePart { cut, frame: &lane.leaving, index: lane.sent, flits };
                    io.send_part(to, vc, (id, lane.out_token), part);
                    lane.sent += 1;
                    if lane.sent == flits {
                        lane.leaving.clear();
                    }
                    moved = true;
                }
                let Some(flit) = io.head(from, vc) else { continue };
                if flit.tag.tail() && !lane.leaving.is_empty() {
                    continue;
                }
                moved = true;
                if flit.tag.head() {
                    lane.words.clear();
                    lane.token = flit.tag.seq();
                }
                lane.words.push(cut, flit.word, io.more(from, vc));
                io.take(from, vc);
                if flit.tag.tail() {
                    let (came, goes) =
                        if from == 0 { (FRAME_BYTES, ETHERNET_BYTES) } else { (ETHERNET_BYTES, FRAME_BYTES) };
                    let words = lane.words.frame(cut, came);
                    let turned = if from == 0 {
                        Frame::from_words(words)
                            .ok()
                            .and_then(|frame| frame.to_ethernet_words().ok())
                            .map(|w| w.to_vec())
                    } else {
                        Frame::from_ethernet_words(words)
                            .ok()
                            .and_then(|frame| frame.to_words().ok())
                            .map(|w| w.to_vec())
                    };
                    match turned {
                        Some(words) => {
                            (lane.leaving, lane.bytes) = (words, goes);
                            (lane.sent, lane.out_token) = (0, lane.token);
                        }
                        None => self.dropped += 1,
                    }
                }
            }
        }
        // Frames go before what passes, as in an engine: that would take a narrow link each time that it is free.
        moved |= pass_through(io, |_, flit, _| flit.tag.vc() >= CHANNELS);
        if moved {
            return Wake::Next;
        }
        [0, 1].into_iter().filter_map(|port| io.busy_until(port)).map(Wake::At).fold(Wake::OnInput, Wake::or)
    }

    /// Describes it to a wave.
    pub(super) fn probe(&self, scope: &mut Scope<'_>) {
        scope.scope("adapter", |scope| {
            for (lane, name) in self.lanes.iter().zip(["to_nic_up", "to_nic_down", "to_switch_up", "to_switch_down"]) {
                scope.bits(name, 4, lane.words.words().len().min(ETHERNET_WORDS) as u64);
            }
            scope.bits("dropped", 32, self.dropped);
        });
    }
}
