//! What a routing relation looks up: the classes of channels, and the places of switches by the kind of topology.

/// Dimensions a topology may have.
pub const MAX_DIMENSIONS: usize = 6;

/// The position of the head flit of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeadPosition {
    /// The switch.
    pub switch: u32,
    /// The input port.
    pub port: u16,
    /// The point-to-point channel it came in on.
    pub channel: u8,
}

/// A number below `count` from the low bits of a draw.
#[inline]
pub(super) fn pick(draw: u64, count: u32) -> u32 {
    (((draw & 0xffff_ffff) * u64::from(count)) >> 32) as u32
}

/// A number below `count` from the high bits of a draw.
#[inline]
pub(super) fn pick_order(draw: u64, count: u32) -> u32 {
    (((draw >> 40) * u64::from(count)) >> 24) as u32
}

/// The split of the channels into classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Classes {
    pub(super) masks: [u32; 32],
    pub(super) of: [u8; 32],
}

impl Classes {
    /// `count` classes of `channels` channels. With `escapes` above 0 that many classes have one channel each.
    pub(super) fn new(channels: u8, count: u8, escapes: u8) -> Classes {
        let mut classes = Classes { masks: [0; 32], of: [0; 32] };
        let (channels, count) = (u32::from(channels), u32::from(count));
        for channel in 0..channels.min(31) {
            let class = if escapes > 0 {
                channel.min(u32::from(escapes))
            } else {
                // The class whose share of the channels, floor(i channels / count) on, holds this one.
                (0..count).rev().find(|class| class * channels / count <= channel).unwrap_or(0)
            };
            classes.of[channel as usize] = class as u8;
            classes.masks[class as usize] |= 1 << channel;
        }
        if count == 1 {
            classes.masks[0] = u32::MAX;
        }
        classes
    }
}

/// Coordinates of all switches of a mesh, a torus or a HyperX, sides of 1 left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) at: Vec<Coordinates>,
    pub(super) sides: [u16; MAX_DIMENSIONS],
    /// HyperX: the first port of each dimension.
    pub(super) base: [u16; MAX_DIMENSIONS],
    pub(super) dims: usize,
    pub(super) wrap: bool,
    /// Orders of the dimensions.
    pub(super) orders: Vec<[u8; MAX_DIMENSIONS]>,
}

impl Grid {
    pub(super) fn new(size: &[u32], wrap: bool) -> Grid {
        let live: Vec<u32> = size.iter().copied().filter(|&side| side > 1).collect();
        let mut grid = Grid {
            at: Vec::with_capacity(size.iter().product::<u32>() as usize),
            sides: [1; MAX_DIMENSIONS],
            base: [0; MAX_DIMENSIONS],
            dims: live.len(),
            wrap,
            orders: orders(live.len()),
        };
        let mut base = 0;
        for (d, &side) in live.iter().enumerate() {
            grid.sides[d] = side as u16;
            grid.base[d] = base;
            base += side as u16 - 1;
        }
        let mut at = [0; MAX_DIMENSIONS];
        for _ in 0..size.iter().product::<u32>() {
            grid.at.push(Coordinates::new(&at));
            for (at, &side) in at.iter_mut().zip(&grid.sides[..live.len()]) {
                *at += 1;
                if *at < side {
                    break;
                }
                *at = 0;
            }
        }
        grid
    }

    /// Whether the way from `a` to `b` in dimension `d` goes down.
    #[inline]
    pub(super) fn down(&self, a: u16, b: u16, d: usize, draw: u64) -> bool {
        if !self.wrap {
            return b < a;
        }
        let side = u32::from(self.sides[d]);
        let forward = if b >= a { u32::from(b - a) } else { u32::from(b) + side - u32::from(a) };
        2 * forward > side || 2 * forward == side && draw >> (32 + d) & 1 == 1
    }

    /// HyperX: the port from `here` to coordinate `there` of dimension `d`.
    #[inline]
    pub(super) fn direct(&self, d: usize, here: u16, there: u16) -> u16 {
        self.base[d] + there - u16::from(there > here)
    }
}

/// Coordinates of a switch, 16 bits each: dimensions 0 to 3, and the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coordinates([u64; 2]);

impl Coordinates {
    pub(super) fn new(at: &[u16; MAX_DIMENSIONS]) -> Coordinates {
        let word = |at: &[u16]| at.iter().rev().fold(0, |word, &at| word << 16 | u64::from(at));
        Coordinates([word(&at[..4]), word(&at[4..])])
    }

    /// The coordinate in dimension `d`.
    #[inline]
    pub(super) fn at(self, d: usize) -> u16 {
        (self.0[usize::from(d >= 4)] >> (16 * (d & 3))) as u16
    }

    /// The lowest dimension in which two places differ, and their coordinates there.
    #[inline(always)]
    pub(super) fn differs(self, other: Coordinates) -> Option<(usize, (u16, u16))> {
        let in_word = |w: usize, differ: u64| {
            let d = differ.trailing_zeros() & 0x30;
            (w << 2 | d as usize >> 4, ((self.0[w] >> d) as u16, (other.0[w] >> d) as u16))
        };
        let [low, high] = [self.0[0] ^ other.0[0], self.0[1] ^ other.0[1]];
        if low != 0 {
            return Some(in_word(0, low));
        }
        (high != 0).then(|| in_word(1, high))
    }

    /// The lowest dimension in which two places differ.
    #[inline]
    pub(super) fn first(self, other: Coordinates) -> Option<usize> {
        self.differs(other).map(|(d, _)| d)
    }

    /// The highest dimension in which two places differ.
    #[inline]
    pub(super) fn last(self, other: Coordinates) -> Option<usize> {
        let [low, high] = [self.0[0] ^ other.0[0], self.0[1] ^ other.0[1]];
        let place = |word: u64| word.checked_ilog2().map(|bit| bit as usize / 16);
        place(high).map(|d| d + 4).or_else(|| place(low))
    }
}

/// All orders of `count` things, in lexicographic order.
pub(super) fn orders(count: usize) -> Vec<[u8; MAX_DIMENSIONS]> {
    let mut all = vec![([0; MAX_DIMENSIONS], 0u32)];
    for place in 0..count {
        all = all
            .into_iter()
            .flat_map(|(order, used)| {
                (0..count).filter(move |d| used >> d & 1 == 0).map(move |d| {
                    let mut order = order;
                    order[place] = d as u8;
                    (order, used | 1 << d)
                })
            })
            .collect();
    }
    all.into_iter().map(|(order, _)| order).collect()
}

/// A tree's switches: level, and digits of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) down: u16,
    pub(super) arity: u16,
    pub(super) leaves: u32,
    pub(super) digits: Vec<u16>,
    pub(super) level: Vec<u8>,
    pub(super) each: usize,
}

impl Tree {
    /// Of `levels` levels of `leaves` switches; `down`: ports down of each.
    pub(super) fn new(levels: u32, arity: u16, leaves: u32, down: u16) -> Tree {
        let each = levels as usize - 1;
        let mut digits = Vec::with_capacity(leaves as usize * each);
        for number in 0..leaves {
            let mut rest = number;
            for _ in 0..each {
                digits.push((rest % u32::from(arity)) as u16);
                rest /= u32::from(arity);
            }
        }
        let level = (0..levels).flat_map(|level| std::iter::repeat_n(level as u8, leaves as usize)).collect();
        Tree { down, arity, leaves, digits, level, each }
    }

    #[inline]
    pub(super) fn digits(&self, number: u32) -> &[u16] {
        let at = number as usize * self.each;
        &self.digits[at..at + self.each]
    }

    /// The port towards another switch of any level. Up port j of level l sets digit l to j, and down port j to level l sets it, too; the
    /// other digits stay. So a switch that differs in a digit below the lower of the two levels is reached through a level below it, and
    /// one that differs in a digit above through a level above.
    pub(super) fn hop(&self, switch: u32, to: u32) -> u16 {
        if to < self.leaves {
            return self.level_and_port(switch, to).1.unwrap_or(self.down);
        }
        let place = |switch: u32| {
            let level = usize::from(self.level[switch as usize]);
            (level, self.digits(switch - level as u32 * self.leaves))
        };
        let ((level, here), (to_level, there)) = (place(switch), place(to));
        let low = level.min(to_level);
        let is_above = level > to_level && here[level..] == there[level..];
        if is_above || here[..low] != there[..low] { there[level - 1] } else { self.down + there[level] }
    }

    /// Level of a switch, and the port down to a leaf if it lies below.
    #[inline]
    pub(super) fn level_and_port(&self, switch: u32, leaf: u32) -> (usize, Option<u16>) {
        let level = usize::from(self.level[switch as usize]);
        let (here, there) = (self.digits(switch - level as u32 * self.leaves), self.digits(leaf));
        if here[level..] == there[level..] {
            // A switch of level 0 that agrees in all digits is the leaf itself.
            (level, Some(if level > 0 { there[level - 1] } else { 0 }))
        } else {
            (level, None)
        }
    }
}

/// A dragonfly's switches by group and number, and its global ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    pub(super) count: u32,
    pub(super) switches: u32,
    pub(super) global: u32,
    pub(super) place: Vec<(u32, u16)>,
    /// Switch of the group and port of a global channel.
    pub(super) gates: Vec<(u16, u16)>,
    pub(super) copies: u32,
}

impl Groups {
    /// Of `groups` groups of `a` switches with `global` global links each, `copies` of them between each pair of groups.
    pub(super) fn new(groups: u32, a: u32, global: u32, copies: u32) -> Groups {
        let place = (0..groups).flat_map(|group| (0..a).map(move |number| (group, number as u16))).collect();
        let gate = |channel: u32| ((channel / global) as u16, (a - 1 + channel % global) as u16);
        let gates = (0..a * global).map(gate).collect();
        Groups { count: groups, switches: a, global, place, gates, copies }
    }

    /// The port from a switch towards a group, and whether it is a global one.
    #[inline]
    pub(super) fn towards(&self, here: (u32, u16), group: u32, draw: u64) -> (u16, bool) {
        let copy = pick_order(draw, self.copies);
        let channel = copy * (self.count - 1) + group - u32::from(group > here.0);
        let (gate, port) = self.gates[channel as usize];
        if gate == here.1 { (port, true) } else { (Self::local(here.1, gate), false) }
    }

    #[inline]
    pub(super) fn local(here: u16, there: u16) -> u16 {
        there - u16::from(there > here)
    }
}

/// A file's shortest paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paths {
    pub(super) switches: usize,
    /// By (switch, destination): the ports of all shortest ways.
    pub(super) ports: Vec<u64>,
    /// By (switch, port): the place in the order of links of the outgoing and of the incoming one.
    pub(super) order: Vec<(u32, u32)>,
    pub(super) width: usize,
    pub(super) classes: u8,
}

impl Paths {
    /// Of `switches` switches with `width` ports each; `neighbour` knows the switch and the port at the far end of one.
    pub(super) fn new(switches: usize, width: usize, neighbour: impl Fn(u32, u16) -> Option<(u32, u16)>) -> Paths {
        let mut far = vec![u32::MAX; switches * width];
        let mut order = vec![(u32::MAX, u32::MAX); switches * width];
        let mut links = Vec::new();
        for switch in 0..switches as u32 {
            for port in 0..width as u16 {
                if let Some((to, by)) = neighbour(switch, port).filter(|&(to, _)| (to as usize) < switches) {
                    far[switch as usize * width + usize::from(port)] = to;
                    // Up before down; up by rising, down by falling numbers of the switch it leaves.
                    let key = if to > switch { (0, switch, to) } else { (1, u32::MAX - switch, u32::MAX - to) };
                    links.push((key, (switch, port), (to, by)));
                }
            }
        }
        links.sort_unstable();
        for (number, &(_, from, to)) in links.iter().enumerate() {
            order[from.0 as usize * width + usize::from(from.1)].0 = number as u32;
            order[to.0 as usize * width + usize::from(to.1)].1 = number as u32;
        }
        let mut paths = Paths { switches, ports: vec![0; switches * switches], order, width, classes: 1 };
        let mut distance = vec![u32::MAX; switches];
        let mut queue = Vec::with_capacity(switches);
        let mut rank = vec![0u8; switches * width];
        for to in 0..switches {
            distance.fill(u32::MAX);
            distance[to] = 0;
            queue.clear();
            queue.push(to as u32);
            let mut next = 0;
            while let Some(&at) = queue.get(next) {
                next += 1;
                for port in 0..width {
                    let other = far[at as usize * width + port];
                    if other != u32::MAX && distance[other as usize] == u32::MAX {
                        distance[other as usize] = distance[at as usize] + 1;
                        queue.push(other);
                    }
                }
            }
            // Nearest first: rank is the number of classes that the rest of the way from a link takes at most.
            for &at in &queue[1..] {
                let mut ports = 0;
                for port in 0..width {
                    let other = far[at as usize * width + port];
                    if other == u32::MAX || distance[other as usize] + 1 != distance[at as usize] {
                        continue;
                    }
                    ports |= 1 << port;
                    let mine = paths.order[at as usize * width + port].0;
                    let mut rest = paths.ports[other as usize * switches + to];
                    let mut most = 1;
                    while rest != 0 {
                        let then = other as usize * width + rest.trailing_zeros() as usize;
                        rest &= rest - 1;
                        most = most.max(rank[then].saturating_add(u8::from(paths.order[then].0 <= mine)));
                    }
                    rank[at as usize * width + port] = most;
                    paths.classes = paths.classes.max(most);
                }
                paths.ports[at as usize * switches + to] = ports;
            }
        }
        paths
    }

    #[inline]
    pub(super) fn to(&self, switch: u32, to: u32) -> u64 {
        self.ports[switch as usize * self.switches + to as usize]
    }

    #[inline]
    pub(super) fn class(&self, at: HeadPosition, network: bool, class: u8, out: u16) -> u8 {
        if !network {
            return 0;
        }
        let base = at.switch as usize * self.width;
        class + u8::from(self.order[base + usize::from(out)].0 <= self.order[base + usize::from(at.port)].1)
    }
}
