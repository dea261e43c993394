//! What a collective must take, from the timing contract alone: paths are walked here over coordinates, not with the
//! model's routes, registers or neighbour tables.
//!
//! | what | cycles |
//! |---|---|
//! | an end point's send to the first switch | local link + 1 (the channel's register) |
//! | a switch that passes a packet on | pipeline + link |
//! | a switch that reduces | 2 x pipeline + engine + link; the engine takes levels x stages |
//! | a link narrower than a flit | its latency + cycles per flit - 1 |
//! | a credit | 2 x link + 2 + (pipeline - 1) + cycles per flit - 1 from one send to the next over the same slot |

/// A topology as the source document draws it.
#[derive(Clone, Debug)]
pub enum Ground {
    Die,
    Mesh {
        size: Vec<i64>,
        concentration: usize,
    },
    /// By switch, its ports in order: the switch at the far end, if it is one. By end point, its switch. The most ports.
    Graph {
        near: Vec<Vec<Option<usize>>>,
        homes: Vec<usize>,
        radix: u64,
    },
}

/// Everything that takes time.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub link: u64,
    pub local: u64,
    pub cycles_per_flit: u64,
    pub stages: u64,
    pub pipeline: u64,
    pub radix: u64,
}

impl Default for Times {
    /// The flagship's.
    fn default() -> Times {
        Times { link: 5, local: 1, pipeline: 1, stages: 3, radix: 10, cycles_per_flit: 1 }
    }
}

impl Times {
    pub fn levels(&self) -> u64 {
        (0..64).find(|&levels| 1u64 << levels >= self.radix).unwrap()
    }

    pub fn engine(&self) -> u64 {
        self.levels() * self.stages
    }

    fn over(&self, link: u64) -> u64 {
        link + self.cycles_per_flit - 1
    }
}

/// A switch: coordinates, least significant first. On a die: position's two bits and the tile.
pub type Place = Vec<i64>;

impl Ground {
    pub fn radix(&self) -> u64 {
        match self {
            Ground::Die => 10,
            Ground::Mesh { size, concentration } => {
                size.iter().filter(|&&side| side > 1).count() as u64 * 2 + *concentration as u64
            }
            Ground::Graph { radix, .. } => *radix,
        }
    }

    /// Where an end point sits.
    pub fn home(&self, end: usize) -> Place {
        match self {
            Ground::Die => vec![end as i64 % 4, if end < 4 { 0 } else { 3 }],
            Ground::Mesh { size, concentration } => Ground::place(size, end / concentration),
            Ground::Graph { homes, .. } => vec![homes[end] as i64],
        }
    }

    fn place(size: &[i64], switch: usize) -> Place {
        let mut rest = switch as i64;
        size.iter()
            .map(|side| {
                let at = rest % side;
                rest /= side;
                at
            })
            .collect()
    }

    pub fn ends(&self) -> usize {
        match self {
            Ground::Die => 8,
            Ground::Mesh { size, concentration } => size.iter().product::<i64>() as usize * concentration,
            Ground::Graph { homes, .. } => homes.len(),
        }
    }

    pub fn switches(&self) -> Vec<Place> {
        match self {
            Ground::Die => (0..16).map(|switch| vec![switch % 4, switch / 4]).collect(),
            Ground::Mesh { size, .. } => {
                (0..size.iter().product::<i64>() as usize).map(|switch| Ground::place(size, switch)).collect()
            }
            Ground::Graph { near, .. } => (0..near.len() as i64).map(|switch| vec![switch]).collect(),
        }
    }

    pub fn name(&self, place: &Place) -> String {
        match self {
            Ground::Die => match place[1] {
                0 => format!("core{}", place[0]),
                3 => format!("core{}", 4 + place[0]),
                tile => format!("sw{}", (tile - 1) * 4 + place[0]),
            },
            Ground::Mesh { .. } => {
                format!("s{}", place.iter().map(ToString::to_string).collect::<Vec<_>>().join("_"))
            }
            Ground::Graph { .. } => panic!("only its plan knows the names of a graph's switches"),
        }
    }

    /// Links to a switch of a graph from every other.
    fn links(near: &[Vec<Option<usize>>], to: usize) -> Vec<usize> {
        let mut links = vec![usize::MAX; near.len()];
        links[to] = 0;
        for round in 0..near.len() {
            for at in 0..near.len() {
                if links[at] == usize::MAX && near[at].iter().flatten().any(|&next| links[next] == round) {
                    links[at] = round + 1;
                }
            }
        }
        links
    }

    /// The next switch on the dimension-ordered way; in a tile every position is one step from every other. On a graph whose
    /// links all have one latency: the first port that leads to a switch that is a link nearer.
    pub fn step(&self, at: &Place, to: &Place) -> Option<Place> {
        if let Ground::Graph { near, .. } = self {
            let links = Ground::links(near, to[0] as usize);
            let at = at[0] as usize;
            let nearer = near[at].iter().flatten().find(|&&next| links[next] < links[at]);
            return nearer.map(|&next| vec![next as i64]);
        }
        let dimension = (0..at.len()).find(|&d| at[d] != to[d])?;
        let mut next = at.clone();
        let all_to_all = matches!(self, Ground::Die) && dimension == 0;
        next[dimension] = if all_to_all { to[0] } else { at[dimension] + (to[dimension] - at[dimension]).signum() };
        Some(next)
    }

    pub fn distance(&self, from: &Place, to: &Place) -> u64 {
        let (mut at, mut hops) = (from.clone(), 0);
        while let Some(next) = self.step(&at, to) {
            at = next;
            hops += 1;
        }
        hops
    }

    /// The participating switch whose farthest participant is nearest; the lowest of equals. On a graph also one that does not
    /// take part, if none that does is as near.
    pub fn middle(&self, participants: &[usize]) -> Place {
        let homes: Vec<Place> = participants.iter().map(|&end| self.home(end)).collect();
        if let Ground::Graph { near, .. } = self {
            let links: Vec<Vec<usize>> = (0..near.len()).map(|at| Ground::links(near, at)).collect();
            let farthest = |at: usize| homes.iter().map(|home| links[at][home[0] as usize]).max();
            let key = |at: &usize| (farthest(*at), !homes.contains(&vec![*at as i64]), *at);
            return vec![(0..near.len()).min_by_key(key).unwrap() as i64];
        }
        let farthest = |place: &Place| homes.iter().map(|home| self.distance(place, home)).max().unwrap();
        self.switches().into_iter().filter(|place| homes.contains(place)).min_by_key(farthest).unwrap()
    }
}

/// A reduction to a root switch and the way of its result back.
pub struct Tree<'a> {
    pub ground: &'a Ground,
    pub times: Times,
    pub root: Place,
    /// End points, and the cycle in which each sends its element.
    pub senders: Vec<(usize, u64)>,
}

/// What arrives at a switch on the way up.
struct Up {
    inputs: usize,
    last: u64,
    /// Switches with an engine at work on the longest path so far, this one not counted.
    reduced: u64,
}

impl Tree<'_> {
    pub fn new(ground: &Ground, times: Times, root: Place, participants: impl IntoIterator<Item = usize>) -> Tree<'_> {
        Tree { ground, times, root, senders: participants.into_iter().map(|end| (end, 0)).collect() }
    }

    fn reduces(&self, place: &Place, up: &Up) -> bool {
        up.inputs > 1 || *place == self.root
    }

    /// Everything that reaches the input queues of `place` from below.
    fn up(&self, place: &Place) -> Up {
        let Times { link, local, pipeline, .. } = self.times;
        let mut up = Up { inputs: 0, last: 0, reduced: 0 };
        let mut arrive = |cycle: u64, reduced: u64| {
            up.inputs += 1;
            if cycle >= up.last {
                up.reduced = if cycle == up.last { up.reduced.max(reduced) } else { reduced };
                up.last = cycle;
            }
        };
        for (end, start) in &self.senders {
            if self.ground.home(*end) == *place {
                arrive(start + self.times.over(local) + 1, 0);
            }
        }
        for child in self.ground.switches() {
            if self.ground.step(&child, &self.root).as_ref() == Some(place) {
                let below = self.up(&child);
                if below.inputs > 0 {
                    let engine = self.reduces(&child, &below);
                    let inside = if engine { 2 * pipeline + self.times.engine() } else { pipeline };
                    arrive(below.last + inside + self.times.over(link), below.reduced + u64::from(engine));
                }
            }
        }
        up
    }

    /// Engines on the longest path, the root's included.
    pub fn engines_on_the_longest_path(&self) -> u64 {
        self.up(&self.root).reduced + 1
    }

    /// The cycle in which the root's operands are all in its input queues.
    pub fn at_root(&self) -> u64 {
        self.up(&self.root).last
    }

    /// The cycle in which the last operand is in the input queues of a switch.
    pub fn at(&self, place: &Place) -> u64 {
        self.up(place).last
    }

    /// The cycle in which the result lands at an end point.
    pub fn landing(&self, end: usize) -> u64 {
        let Times { link, local, pipeline, .. } = self.times;
        let mut inside = 2 * pipeline + self.times.engine();
        let mut at = self.at_root();
        for _ in 0..self.ground.distance(&self.ground.home(end), &self.root) {
            at += inside + self.times.over(link);
            inside = pipeline;
        }
        at + inside + self.times.over(local)
    }

    /// From the first start to the last landing.
    pub fn latency(&self, receivers: impl IntoIterator<Item = usize>) -> u64 {
        let first = self.senders.iter().map(|sender| sender.1).min().unwrap();
        receivers.into_iter().map(|end| self.landing(end)).max().unwrap() - first
    }

    /// An all-reduce of everybody who sends.
    pub fn allreduce(&self) -> u64 {
        self.latency(self.senders.iter().map(|sender| sender.0))
    }
}

/// When a multicast from one end point lands at another.
pub fn multicast(ground: &Ground, times: Times, from: usize, to: usize) -> u64 {
    // At the last switch the turn to the local port costs the pipeline as well.
    let hops = ground.distance(&ground.home(from), &ground.home(to));
    times.over(times.local)
        + 1
        + hops * (times.pipeline + times.over(times.link))
        + times.pipeline
        + times.over(times.local)
}
