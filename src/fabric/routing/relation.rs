//! The routing relation of a plain fabric. It maps the place of a head flit, its destination and the random draw of the
//! packet to the outputs and channels it may take.
//!
//! | port of the block | what |
//! |---|---|
//! | in: [`HeadPosition`] | switch, input port, point-to-point channel |
//! | in: destination | the place of an end point |
//! | in: draw | 64 random bits of the packet, [`entropy`] |
//! | in: credits | of the switch's own outputs; adaptive routing only |
//! | out: [`Route`] or all [`Choice`]s | output port, channels |
//!
//! A packet carries no state of its routing. Every switch derives again what a route depends on:
//!
//! - the *random draw* (intermediate switch, order of dimensions, direction at a tie) is a hash of the packet's number
//!   and destination, the same everywhere on its way;
//! - *phase* and *class* are those of the channel it came in on; a packet from an end point begins.
//!
//! The point-to-point channels are split evenly, in order, into as many classes as a routing needs. Class 0 comes first.
//!
//! | algorithm | topology | classes | what they are |
//! |---|---|--:|---|
//! | dimension-order | die, mesh, hyperx | 1 | |
//! | dimension-order | nodes | 1 + HSIO links of the longest way | links that leave a die passed |
//! | | torus | 2 | 1: the packet passes the date line of its dimension, or goes down without; 0: the others |
//! | minimal-random | mesh | 2 | order of the dimensions: ascending, descending |
//! | | torus | 4 | order x date line |
//! | | hyperx | dimensions | hops so far; any order of dimensions |
//! | | fat-tree | 1 | up to a random top, and down |
//! | | dragonfly | 2 | before and after the global link |
//! | | file | as many as it takes | how often the way has gone against the order of the links |
//! | valiant | mesh, hyperx | 2 | on the way to the intermediate switch, after it |
//! | | torus | 4 | phase x date line |
//! | | dragonfly | 3 | to an intermediate group, to the group of the destination, in it |
//! | adaptive | mesh, hyperx | 2 | 0: escape in dimension order; 1: any shortest path |
//! | | torus | 3 | 0, 1: escape in dimension order; 2: any shortest path |
//! | | fat-tree | 1 | up by credits, and down |
//! | | dragonfly | 3 | as valiant; minimal packets begin in the second |
//! | | file | as minimal-random | by credits |
//!
//! Details *chosen*:
//!
//! - The date line: a packet that turns into a ring takes class 1 if its own coordinate is above its destination's, and
//!   keeps it as long as it goes along the ring. So a packet that wraps upwards is in class 1 for the whole ring, and
//!   so is one that goes down without wrapping; the others are in class 0. Shortest ways are half a ring at most, so
//!   neither class can close a circle.
//! - At a tie (half way round an even ring) a bit of the draw decides, and the same bit for the whole dimension.
//! - Valiant: a packet whose intermediate switch is its own begins in the second phase.
//! - Adaptive with an escape channel: a packet that has taken the escape channel stays on escape channels. Buffers hold
//!   several packets, so a packet that came back could wait behind another head while it holds an escape channel. The
//!   order of the escape channels does not cover such a wait. Escape classes have one channel each, the others are
//!   adaptive, and an adaptive channel is only given with a free place behind it.
//! - Adaptive on a dragonfly decides in the source switch, with its own credits only: the detour is taken if its
//!   first link has more than twice the free places.
//! - Files: links are ordered by the numbers of their switches, those that go up (to a higher number) before those that
//!   go down. A packet changes to the next class at every step to a link that is not later in that order.

use super::Algorithm;
use super::maps::{Classes, Grid, Groups, HeadPosition, Paths, Tree, pick, pick_order};
use crate::topology::{EndPlace, Neighbours, Shape};
use crate::{NodeKind, Plan, Route, RouteView};

/// The kind of a routing choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceKind {
    /// An ordinary candidate.
    Candidate,
    /// A non-minimal candidate.
    Detour,
    /// The escape path, which is always available.
    Escape,
}

/// One output that a routing relation allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The output port.
    pub port: u16,
    /// The channels, as in [`Route::vcs`].
    pub vcs: u32,
    /// What for.
    pub kind: ChoiceKind,
}

/// The random bits of a packet.
///
/// | bits | decide |
/// |---|---|
/// | 31:0 | the intermediate switch or group, the top of a tree |
/// | 39:32 | the direction at a tie, a bit a dimension |
/// | 63:40 | the order of dimensions, the link of a pair of groups |
#[inline]
pub fn entropy(seq: u64, dst: u32) -> u64 {
    let mut word = seq << 24 ^ u64::from(dst);
    word = (word ^ word >> 31).wrapping_mul(0x9fb2_1c65_1e98_df25);
    word = (word ^ word >> 28).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ word >> 32
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Grid(Grid),
    HyperX(Grid),
    Tree(Tree),
    Dragonfly(Groups),
    Paths(Paths),
}

/// A routing function and the tables it works on; see the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    kind: Kind,
    algorithm: Algorithm,
    classes: Classes,
    escapes: u8,
    /// Whether routes depend on the random draw.
    draws: bool,
    /// Per switch: the ports that lead to other switches. Packets that come in elsewhere begin.
    network: Vec<u64>,
}

impl Router {
    /// The tables of a topology for an algorithm that it has, with any number of channels.
    pub(super) fn new(shape: &Shape, plan: &Plan, algorithm: Algorithm) -> Router {
        let switches = plan.count(NodeKind::Switch);
        // The last arm serves a file, and any topology without a rule of its own.
        #[allow(clippy::match_wildcard_for_single_variants)]
        let kind = match shape {
            Shape::Mesh(of) => Kind::Grid(Grid::new(&of.mesh.size, false)),
            Shape::Torus(torus) => Kind::Grid(Grid::new(&torus.size, true)),
            Shape::HyperX(hyperx) => Kind::HyperX(Grid::new(&hyperx.size, false)),
            Shape::FatTree(tree) => {
                let leaves = tree.leaves().expect("scenario checks bound the size") as u32;
                Kind::Tree(Tree::new(tree.levels, tree.arity, leaves, tree.down()))
            }
            Shape::Dragonfly(of) => {
                let copies = of.links_of_a_pair().max(1);
                Kind::Dragonfly(Groups::new(of.groups, of.switches_per_group, of.global, copies))
            }
            _ => {
                let neighbours = Neighbours::new(plan);
                let external = plan.nodes[..switches].iter().map(|node| node.ports - u16::from(node.engine));
                let width = usize::from(external.max().unwrap_or(0));
                Kind::Paths(Paths::new(switches, width, |switch, port| neighbours.of(switch, port)))
            }
        };
        let escapes = match (&kind, algorithm) {
            (Kind::Grid(grid), Algorithm::Adaptive) => 1 + u8::from(grid.wrap),
            (Kind::HyperX(_), Algorithm::Adaptive) => 1,
            _ => 0,
        };
        let mut network = vec![0; switches];
        for link in &plan.links {
            if (link.a.0.max(link.b.0) as usize) < switches {
                for (switch, port) in [link.a, link.b] {
                    network[switch as usize] |= 1u64.checked_shl(u32::from(port)).unwrap_or(0);
                }
            }
        }
        let draws = match (&kind, algorithm) {
            (Kind::Grid(grid), Algorithm::DimensionOrder) => grid.wrap,
            (Kind::HyperX(_), Algorithm::DimensionOrder) => false,
            _ => true,
        };
        let mut router = Router { kind, algorithm, classes: Classes::new(1, 1, 0), escapes, draws, network };
        let count = router.needs();
        router.classes = Classes::new(plan.vcs.unicast, count, escapes);
        router
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Channels this routing needs at least.
    pub fn needs(&self) -> u8 {
        match (&self.kind, self.algorithm) {
            (Kind::Grid(grid), algorithm) => {
                let line = 1 + u8::from(grid.wrap);
                match algorithm {
                    Algorithm::DimensionOrder => line,
                    Algorithm::MinimalRandom | Algorithm::Valiant => 2 * line,
                    Algorithm::Adaptive => line + 1,
                }
            }
            (Kind::HyperX(grid), Algorithm::MinimalRandom) => grid.dims.max(1) as u8,
            (Kind::HyperX(_), Algorithm::DimensionOrder) | (Kind::Tree(_), _) => 1,
            (Kind::Dragonfly(_), Algorithm::Valiant | Algorithm::Adaptive) => 3,
            (Kind::HyperX(_) | Kind::Dragonfly(_), _) => 2,
            (Kind::Paths(paths), _) => paths.classes,
        }
    }

    /// The class of a point-to-point channel.
    pub fn class_of(&self, channel: u8) -> u8 {
        self.classes.of[usize::from(channel)]
    }

    /// How many of the lowest classes are escape channels.
    pub fn escapes(&self) -> u8 {
        self.escapes
    }

    /// Whether a packet at this place came from another switch.
    #[inline]
    fn is_network(&self, at: HeadPosition) -> bool {
        1u64.checked_shl(u32::from(at.port)).is_none_or(|bit| self.network[at.switch as usize] & bit != 0)
    }

    #[inline]
    fn class(&self, at: HeadPosition) -> u8 {
        self.classes.of[usize::from(at.channel & 31)]
    }

    #[inline]
    fn over(&self, port: u16, class: u8) -> Route {
        Route { port, vcs: self.classes.masks[usize::from(class & 31)], again: false }
    }

    /// Route computation.
    #[inline(always)]
    pub fn unicast(&self, at: &RouteView<'_>, to: EndPlace, seq: u64, dst: u32) -> Route {
        let draw = if self.draws { entropy(seq, dst) } else { 0 };
        let stand = HeadPosition { switch: at.switch, port: at.port, channel: at.channel };
        if let (Kind::Grid(grid), Algorithm::DimensionOrder) = (&self.kind, self.algorithm) {
            return self.in_order(grid, stand, to, draw);
        }
        if self.algorithm == Algorithm::Adaptive {
            self.adapt(*at, stand, to, draw)
        } else {
            self.fixed(stand, to, draw)
        }
    }

    /// The port of the next step of a shortest way; `None` at the goal.
    pub fn hop(&self, switch: u32, to: u32) -> Option<u16> {
        if switch == to {
            return None;
        }
        Some(match &self.kind {
            Kind::Grid(grid) => {
                let (here, there) = (grid.at[switch as usize], grid.at[to as usize]);
                let d = here.first(there)?;
                2 * d as u16 + u16::from(grid.down(here.at(d), there.at(d), d, 0))
            }
            Kind::HyperX(grid) => {
                let (here, there) = (grid.at[switch as usize], grid.at[to as usize]);
                let d = here.first(there)?;
                grid.direct(d, here.at(d), there.at(d))
            }
            Kind::Tree(tree) => tree.hop(switch, to),
            Kind::Dragonfly(groups) => {
                let (here, there) = (groups.place[switch as usize], groups.place[to as usize]);
                if here.0 == there.0 { Groups::local(here.1, there.1) } else { groups.towards(here, there.0, 0).0 }
            }
            Kind::Paths(paths) => paths.to(switch, to).trailing_zeros() as u16,
        })
    }

    /// The intermediate switch or group of a draw, if the routing has one.
    pub fn intermediate(&self, draw: u64) -> Option<u32> {
        match (&self.kind, self.algorithm) {
            (Kind::Grid(grid) | Kind::HyperX(grid), Algorithm::Valiant) => Some(pick(draw, grid.at.len() as u32)),
            (Kind::Dragonfly(groups), Algorithm::Valiant) => Some(pick(draw, groups.count)),
            _ => None,
        }
    }

    /// Where Valiant's phases stand: the switch to go to, whether that is the destination, and whether the phase has just begun.
    #[inline]
    fn phase(&self, at: HeadPosition, to: u32, draw: u64, switches: u32, line: u8) -> (u32, u8, bool) {
        let network = self.is_network(at);
        let middle = pick(draw, switches);
        if network && self.class(at) >= line {
            (to, 1, false)
        } else if at.switch == middle || !network && at.switch == to {
            (to, 1, true)
        } else {
            (middle, 0, !network)
        }
    }

    /// Dimension order on a mesh or a torus: what most runs ask for most often.
    #[inline(always)]
    fn in_order(&self, grid: &Grid, at: HeadPosition, to: EndPlace, draw: u64) -> Route {
        let (here, there) = (grid.at[at.switch as usize], grid.at[to.switch as usize]);
        match here.differs(there) {
            Some((d, ways)) => self.along(grid, at, ways, d, (0, false), draw),
            None => Route::over(to.port),
        }
    }

    /// The step of a mesh or torus along dimension `d`, from one coordinate to another.
    #[inline(always)]
    fn along(
        &self,
        grid: &Grid,
        at: HeadPosition,
        (here, there): (u16, u16),
        d: usize,
        (phase, fresh): (u8, bool),
        draw: u64,
    ) -> Route {
        let port = 2 * d as u16 + u16::from(grid.down(here, there, d, draw));
        let class = if !grid.wrap {
            phase
        } else if !fresh && usize::from(at.port >> 1) == d && self.is_network(at) {
            self.class(at)
        } else {
            phase * 2 + u8::from(here > there)
        };
        self.over(port, class)
    }

    /// Route computation of every routing that does not look at credits.
    #[inline]
    pub fn fixed(&self, at: HeadPosition, to: EndPlace, draw: u64) -> Route {
        let eject = Route::over(to.port);
        match &self.kind {
            Kind::Grid(grid) => {
                let line = 1 + u8::from(grid.wrap);
                let (goal, phase, fresh) = match self.algorithm {
                    Algorithm::Valiant => self.phase(at, to.switch, draw, grid.at.len() as u32, line),
                    Algorithm::MinimalRandom => (to.switch, (draw >> 40 & 1) as u8, false),
                    _ => return self.in_order(grid, at, to, draw),
                };
                let (here, there) = (grid.at[at.switch as usize], grid.at[goal as usize]);
                let descending = self.algorithm == Algorithm::MinimalRandom && phase == 1;
                match if descending { here.last(there) } else { here.first(there) } {
                    Some(d) => self.along(grid, at, (here.at(d), there.at(d)), d, (phase, fresh), draw),
                    None => eject,
                }
            }
            Kind::HyperX(grid) => {
                let (goal, phase) = match self.algorithm {
                    Algorithm::Valiant => {
                        let (goal, phase, _) = self.phase(at, to.switch, draw, grid.at.len() as u32, 1);
                        (goal, phase)
                    }
                    _ => (to.switch, 0),
                };
                let (here, there) = (grid.at[at.switch as usize], grid.at[goal as usize]);
                let (next, class) = if self.algorithm == Algorithm::MinimalRandom {
                    let order = &grid.orders[pick_order(draw, grid.orders.len() as u32) as usize];
                    let next = order[..grid.dims].iter().map(|&d| usize::from(d)).find(|&d| here.at(d) != there.at(d));
                    (next, if self.is_network(at) { self.class(at) + 1 } else { 0 })
                } else {
                    (here.first(there), phase)
                };
                let Some(d) = next else { return eject };
                self.over(grid.direct(d, here.at(d), there.at(d)), class)
            }
            Kind::Tree(tree) => {
                if at.switch == to.switch {
                    return eject;
                }
                let (level, below) = tree.level_and_port(at.switch, to.switch);
                self.over(below.unwrap_or_else(|| tree.down + tree.digits(pick(draw, tree.leaves))[level]), 0)
            }
            Kind::Dragonfly(groups) => {
                if at.switch == to.switch {
                    return eject;
                }
                let (here, there) = (groups.place[at.switch as usize], groups.place[to.switch as usize]);
                if let Some(detour) = self.detour(groups, at, here, there, draw) {
                    return self.over(groups.towards(here, detour, draw).0, 0);
                }
                let (port, class) = self.direct(groups, here, there, draw);
                self.over(port, class)
            }
            Kind::Paths(paths) => {
                if at.switch == to.switch {
                    return eject;
                }
                let mut ports = paths.to(at.switch, to.switch);
                // Another choice at every switch: the draw is turned by the switch's number.
                let turned = draw.rotate_left(at.switch % 61 + 1);
                for _ in 0..pick(turned, ports.count_ones()) {
                    ports &= ports - 1;
                }
                let port = ports.trailing_zeros() as u16;
                self.over(port, paths.class(at, self.is_network(at), self.class(at), port))
            }
        }
    }

    /// Dragonfly: the group of the detour, if the packet is on its way there or begins one.
    #[inline]
    fn detour(&self, groups: &Groups, at: HeadPosition, here: (u32, u16), there: (u32, u16), draw: u64) -> Option<u32> {
        if self.algorithm == Algorithm::MinimalRandom {
            return None;
        }
        let group = pick(draw, groups.count);
        let begun = !self.is_network(at) || self.class(at) == 0;
        (begun && group != here.0 && group != there.0 && here.0 != there.0).then_some(group)
    }

    /// Dragonfly: the shortest way on.
    #[inline]
    fn direct(&self, groups: &Groups, here: (u32, u16), there: (u32, u16), draw: u64) -> (u16, u8) {
        // Classes before and after the global link; a routing with detours has one more before them.
        let first = u8::from(self.algorithm != Algorithm::MinimalRandom);
        if here.0 == there.0 {
            (Groups::local(here.1, there.1), first + 1)
        } else {
            (groups.towards(here, there.0, draw).0, first)
        }
    }

    /// Calls `give` with everything that routing may answer at this place, over all states of the credits. The draw
    /// decides, except for the ways up a tree and through a file's network, all of which are given.
    pub fn choices(&self, at: HeadPosition, to: EndPlace, draw: u64, give: &mut impl FnMut(Choice)) {
        let adaptive = self.algorithm == Algorithm::Adaptive;
        if at.switch == to.switch && (adaptive || !matches!(self.algorithm, Algorithm::Valiant)) {
            give(Choice { port: to.port, vcs: u32::MAX, kind: ChoiceKind::Candidate });
            return;
        }
        let way = |route: Route, kind| Choice { port: route.port, vcs: route.vcs, kind };
        match &self.kind {
            Kind::Grid(grid) if adaptive => {
                let (here, there) = (grid.at[at.switch as usize], grid.at[to.switch as usize]);
                let escaped = self.is_network(at) && self.class(at) < self.escapes;
                let mut escape = true;
                for d in (0..grid.dims).filter(|&d| here.at(d) != there.at(d)) {
                    let down = grid.down(here.at(d), there.at(d), d, draw);
                    let port = 2 * d as u16 + u16::from(down);
                    if !escaped {
                        give(way(self.over(port, self.escapes), ChoiceKind::Candidate));
                    }
                    if escape {
                        // By position alone: a packet may come here from anywhere. Class 1 until it has wrapped.
                        let wraps = grid.wrap && if down { here.at(d) < there.at(d) } else { here.at(d) > there.at(d) };
                        give(way(self.over(port, u8::from(wraps)), ChoiceKind::Escape));
                        escape = false;
                    }
                    if escaped {
                        break;
                    }
                }
            }
            Kind::HyperX(grid) if adaptive => {
                let (here, there) = (grid.at[at.switch as usize], grid.at[to.switch as usize]);
                let escaped = self.is_network(at) && self.class(at) < self.escapes;
                let mut escape = true;
                for d in (0..grid.dims).filter(|&d| here.at(d) != there.at(d)) {
                    let port = grid.direct(d, here.at(d), there.at(d));
                    if !escaped {
                        give(way(self.over(port, 1), ChoiceKind::Candidate));
                    }
                    if escape {
                        give(way(self.over(port, 0), ChoiceKind::Escape));
                        escape = false;
                    }
                    if escaped {
                        break;
                    }
                }
            }
            Kind::Tree(tree) => match tree.level_and_port(at.switch, to.switch) {
                (_, Some(port)) => give(way(self.over(port, 0), ChoiceKind::Candidate)),
                (_, None) => {
                    for up in tree.down..tree.down + tree.arity {
                        give(way(self.over(up, 0), ChoiceKind::Candidate));
                    }
                }
            },
            Kind::Dragonfly(groups) if adaptive => {
                let (here, there) = (groups.place[at.switch as usize], groups.place[to.switch as usize]);
                let detour = self.detour(groups, at, here, there, draw);
                if detour.is_none() || !self.is_network(at) {
                    let (port, class) = self.direct(groups, here, there, draw);
                    give(way(self.over(port, class), ChoiceKind::Candidate));
                }
                if let Some(group) = detour {
                    give(way(self.over(groups.towards(here, group, draw).0, 0), ChoiceKind::Detour));
                }
            }
            Kind::Paths(paths) => {
                let (network, class) = (self.is_network(at), self.class(at));
                let mut ports = paths.to(at.switch, to.switch);
                while ports != 0 {
                    let port = ports.trailing_zeros() as u16;
                    ports &= ports - 1;
                    give(way(self.over(port, paths.class(at, network, class, port)), ChoiceKind::Candidate));
                }
            }
            _ => give(way(self.fixed(at, to, draw), ChoiceKind::Candidate)),
        }
    }

    /// Route computation by credits: the way whose best channel has most free places, a channel nobody holds before one
    /// that is held; a bit of the draw settles ties.
    ///
    /// Where there is an escape channel, only channels that no packet holds and that have a free place are offered. A
    /// packet keeps the channel it was given, so one with a full channel would wait for it without being able to
    /// escape, and four such packets can wait in a circle.
    fn adapt(&self, at: RouteView<'_>, stand: HeadPosition, to: EndPlace, draw: u64) -> Route {
        let mut best: Option<(u32, Choice)> = None;
        let mut escape = None;
        if stand.switch == to.switch {
            return Route::over(to.port);
        }
        let must_be_open = self.escapes > 0;
        self.choices(stand, to, draw, &mut |mut choice| {
            if choice.kind == ChoiceKind::Escape {
                escape = Some(choice);
                return;
            }
            let (mut score, mut open) = (0, 0);
            for channel in 0..at.channels() {
                if choice.vcs >> channel & 1 == 1 {
                    let credits = u32::from(at.credits(choice.port, channel));
                    let free = credits > 0 && !at.is_held(choice.port, channel);
                    open |= u32::from(free) << channel;
                    score = score.max(u32::from(free) << 16 | credits);
                }
            }
            if must_be_open {
                if open == 0 {
                    return;
                }
                choice.vcs = open;
            }
            if choice.kind == ChoiceKind::Detour {
                score = ((score & 0xffff) / 2) | (score & 0x1_0000);
            }
            let better = best.is_none_or(|(other, _)| {
                score > other
                    || score == other && choice.kind == ChoiceKind::Candidate && draw >> (choice.port & 63) & 1 == 1
            });
            if better {
                best = Some((score, choice));
            }
        });
        let choice = best.map(|(_, way)| way).or(escape);
        let choice = choice.unwrap_or(Choice { port: to.port, vcs: u32::MAX, kind: ChoiceKind::Candidate });
        Route { port: choice.port, vcs: choice.vcs, again: true }
    }

    /// Draws that represent all others: every intermediate, every order, every side of a tie, and their combinations.
    pub fn draws(&self) -> Vec<u64> {
        let mut all = vec![0u64];
        let mut product = |values: Vec<u64>| {
            all = all.iter().flat_map(|base| values.iter().map(move |value| base | value)).collect();
        };
        let low = |count: u32| (0..u64::from(count)).map(|i| (i << 32).div_ceil(u64::from(count))).collect();
        let high = |count: u32| (0..u64::from(count)).map(|i| (i << 24).div_ceil(u64::from(count)) << 40).collect();
        match &self.kind {
            Kind::Grid(grid) | Kind::HyperX(grid) => {
                if self.algorithm == Algorithm::Valiant {
                    product(low(grid.at.len() as u32));
                }
                for d in (0..grid.dims).filter(|&d| grid.wrap && grid.sides[d] % 2 == 0) {
                    product(vec![0, 1 << (32 + d)]);
                }
                if self.algorithm == Algorithm::MinimalRandom {
                    match self.kind {
                        Kind::HyperX(_) => product(high(grid.orders.len() as u32)),
                        _ => product(vec![0, 1 << 40]),
                    }
                }
            }
            Kind::Dragonfly(groups) => {
                if self.algorithm != Algorithm::MinimalRandom {
                    product(low(groups.count));
                }
                product(high(groups.copies));
            }
            // All ways are given at once.
            Kind::Tree(_) | Kind::Paths(_) => {}
        }
        all
    }
}
