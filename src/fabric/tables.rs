//! The interface of a family's routing tables, and the state of a switch that they may read.

use super::PortSet;
use super::flit::Flit;
use super::plan::Vcs;
use super::ports::{Output, Port};
use super::segmentation::FlitSize;
use watershed_state::{Loader, Mismatch, Saver};

/// What the switches of a family look up: configuration registers, multicast tables, routes.
pub trait Tables<const W: usize>: Send + Sync + 'static {
    /// The most flits of a point-to-point packet that its route is computed from: the last of them is what [`Tables::unicast`]
    /// looks at, and a packet waits at the head of its queue until it is there. More than one where the address stands behind the
    /// head flit; input buffers hold as many, and a packet is as long.
    const ROUTE_FLITS: u16 = 1;

    /// The same of a point-to-point channel, counted from the first one: [`Tables::ROUTE_FLITS`] or fewer.
    fn route_flits(&self, channel: u8) -> u16 {
        let _ = channel;
        Self::ROUTE_FLITS
    }

    /// How frames are cut into flits: what a flit carries.
    fn cut(&self) -> FlitSize {
        FlitSize::WORD
    }

    /// The outputs of a set-routed packet whose head flit came in by `port`; the internal engine port may be among
    /// them. An empty set is a breach of the configuration and stops the run.
    fn outputs(&self, switch: u32, port: u16, flit: &Flit) -> PortSet<W>;

    /// Flits of the longest frame on set-routed channel `vc` that may have several outputs.
    ///
    /// Copies of a long frame are independent, and a flit leaves the buffer when every copy has read it, so a buffer
    /// that cannot hold the frame whole would tie the copies to each other's pace (requirement K-PIPE-1).
    /// `check_buffers` refuses such a system before cycle 0; a frame longer than what is
    /// declared here stops the run. The default suits families whose multicasts are single flits.
    fn longest_multicast(&self, vc: u8) -> u32 {
        let _ = vc;
        1
    }

    /// Route computation: where a point-to-point packet, which stands at the head of the queue that `at` names, goes on. `flit`
    /// is its head flit, or the last one of [`Tables::route_flits`].
    fn unicast(&self, at: &RouteView<'_>, flit: &Flit) -> Route;

    /// Whether point-to-point packets have classes that channel and switch allocation look at: the highest class goes first.
    const CLASSES: bool = false;

    /// The class of a point-to-point packet, by its channel, counted from the first one, and its head flit; a higher one goes first.
    fn class(&self, channel: u8, head: &Flit) -> u8 {
        let _ = (channel, head);
        0
    }

    /// What to tell the user when [`Tables::outputs`] is empty.
    fn no_route(&self, switch: u32, port: u16, flit: &Flit) -> String;

    /// Takes over what blocks have staged in the cycle that ended; blocks see it from the next one on.
    fn commit(&mut self) {}

    /// Appends what blocks of this process have staged in the cycle that ended, for the other ranks.
    fn staged(&self, to: &mut Saver) {
        let _ = to;
    }

    /// Adds what blocks of another rank have staged.
    ///
    /// # Errors
    /// The bytes are of something else.
    fn stage(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        let _ = from;
        Ok(())
    }

    /// The number that users know a port of a switch by: its own, unless switches were built without ports they do not use.
    fn port_number(&self, switch: u32, port: u16) -> u16 {
        let _ = switch;
        port
    }
}

/// The inputs of route computation: the position of the packet, and the state of the switch's own outputs.
#[derive(Clone, Copy, Debug)]
pub struct RouteView<'a> {
    /// The switch.
    pub switch: u32,
    /// The input port.
    pub port: u16,
    /// The point-to-point channel the packet came in on, counted from the first such channel.
    pub channel: u8,
    /// The words behind the first of the flit that is looked at.
    pub more: &'a [u64],
    /// The sending sides of the switch, `stride` records each.
    sides: &'a [Port],
    stride: u32,
    set: u8,
    /// The first point-to-point channel that is seen, and how many are.
    first: u8,
    count: u8,
}

impl<'a> RouteView<'a> {
    #[inline]
    pub(super) fn new(sides: &'a [Port], (vcs, stride): (Vcs, u32), switch: u32, port: u16, vc: u8) -> Self {
        RouteView {
            switch,
            port,
            channel: vc - vcs.set,
            more: &[],
            sides,
            stride,
            set: vcs.set,
            first: 0,
            count: vcs.unicast,
        }
    }

    /// With the words behind the first of the flit that is looked at.
    #[inline]
    #[must_use]
    pub fn with(self, more: &'a [u64]) -> Self {
        RouteView { more, ..self }
    }

    /// The view of `count` of the channels that are seen, from channel `first` on, for a packet on one of these that never leaves them:
    /// they are counted from 0, and the answer must be moved back with [`Route::to_all_channels`].
    #[inline]
    #[must_use]
    pub fn channel_range(self, first: u8, count: u8) -> Self {
        RouteView { channel: self.channel - first, first: self.first + first, count, ..self }
    }

    /// The view of a packet's own lane, where channels are divided into lanes of equal size that packets never leave:
    /// the channels of the lane are counted from 0.
    #[inline]
    #[must_use]
    pub fn lane(self, lanes: u8) -> Self {
        let each = self.count / lanes;
        let lane = self.channel / each;
        self.channel_range(lane * each, each)
    }

    /// The view of a packet where the first `left` channels and those behind them belong to different users, and a
    /// packet never changes sides: the visible channels are counted from 0, as with [`RouteView::lane`].
    #[inline]
    #[must_use]
    fn side_of(self, left: u8) -> Self {
        if self.channel < left { self.channel_range(0, left) } else { self.channel_range(left, self.count - left) }
    }

    /// How many point-to-point channels there are.
    #[inline]
    pub fn channels(&self) -> u8 {
        self.count
    }

    /// Credits of a point-to-point channel of an output: free places in the buffer at the far end, as far as the switch
    /// knows. What adaptive routing decides by.
    #[inline]
    pub fn credits(&self, out: u16, channel: u8) -> u16 {
        self.out(out, channel).credits
    }

    /// Whether a packet holds a point-to-point channel of an output.
    #[inline]
    pub fn is_held(&self, out: u16, channel: u8) -> bool {
        self.out(out, channel).owner != 0
    }

    #[inline]
    fn out(&self, out: u16, channel: u8) -> &Output {
        super::ports::channel(&self.sides[usize::from(out) << self.stride..], self.set + self.first + channel)
    }
}

/// How the point-to-point channels are shared: the first ones are for messages, those behind them for traffic, in lanes of equal
/// size. A packet never leaves its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Channels of messages; 0 where nothing but traffic has point-to-point channels.
    pub messages: u8,
    /// Lanes of traffic.
    pub lanes: u8,
}

impl Shares {
    /// One lane of everything.
    pub const WHOLE: Shares = Shares { messages: 0, lanes: 1 };

    /// The first channel of a lane of traffic, and how many it has.
    #[inline]
    pub fn lane(self, vcs: Vcs, lane: u8) -> (u8, u8) {
        let all = vcs.unicast - self.messages;
        let each = if self.lanes == 1 { all } else { all / self.lanes };
        (vcs.set + self.messages + each * lane, each)
    }

    /// What route computation sees: the channels of the packet's share, counted from 0. Its answer must be moved back with
    /// [`Route::to_all_channels`].
    #[inline(always)]
    #[must_use]
    pub fn of<'a>(self, at: &RouteView<'a>) -> RouteView<'a> {
        if self == Shares::WHOLE {
            return *at;
        }
        let seen = at.side_of(self.messages);
        if at.channel < self.messages { seen } else { seen.lane(self.lanes) }
    }
}

/// The answer of route computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The output port.
    pub port: u16,
    /// The channels that may be used there: bit k is the k-th point-to-point channel.
    pub vcs: u32,
    /// Whether route computation is asked again in every cycle in which channel allocation gives the packet nothing:
    /// what adaptive routing with an escape channel needs. Otherwise the answer stands.
    pub again: bool,
}

impl Route {
    /// Over this port, on any channel.
    pub fn over(port: u16) -> Route {
        Route { port, vcs: u32::MAX, again: false }
    }

    /// The answer for a packet that was seen through [`RouteView::channel_range`]: the channels moved back to where they are in the system.
    #[inline(always)]
    #[must_use]
    pub fn to_all_channels(self, at: &RouteView<'_>) -> Route {
        Route { vcs: (self.vcs & ((1 << at.count) - 1)) << at.first, ..self }
    }
}
