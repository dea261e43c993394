//! An end point that takes part in collectives of several families over one link.
//!
//! | register | bits | meaning |
//! |---|---|---|
//! | `turn` | 2 | the family that may send first: the one after the last sender *\[chosen\]* |
//!
//! Traffic goes last, as beside a single family.
//!
//! A [rank](piuma::rank::Rank) of an application calls rounds of the armed family's and the PBV family's jobs. They are handed over at
//! the beginning of the cycle after the rank has called them, and results at the beginning of the cycle after they are all there.

use super::Tables;
use watershed_armed as armed;
use watershed_fabric::traffic::{MayHaveTraffic, Traffic};
use watershed_fabric::{Block, Flit, Io};
use watershed_kernel::{Cycle, Wake};
use watershed_pbv::node::Node;
use watershed_piuma as piuma;
use watershed_piuma::rank::plan::Rounds;
use watershed_probe::Scope;
use watershed_state::state;

/// What is at the port of an end point, by family.
#[derive(Clone, Debug)]
pub struct End {
    /// PIUMA's core, programs, hosts and ranks.
    pub piuma: piuma::End,
    /// Processes of the armed family, if it is there.
    pub armed: Option<Box<armed::End>>,
    /// The PBV family's node, if it is there.
    pub pbv: Option<Box<Node>>,
    /// Background traffic.
    pub traffic: Option<Box<Traffic>>,
    turn: u8,
    /// The last rounds that were handed over, by line of the rank's calls.
    handed: Vec<Option<Rounds>>,
}

state!(End { saved: piuma, turn, handed; boxed: armed, pbv, traffic });

/// Number of the armed family's engines among those beside a core's; see [`Rounds`].
pub const ARMED: u8 = 0;

/// Number of the PBV family's engines.
pub const PBV: u8 = 1;

/// How many families there are.
const FAMILIES: u8 = 3;

impl End {
    /// An end point of these parts.
    pub fn new(piuma: piuma::End, armed: Option<armed::End>, pbv: Option<Node>) -> End {
        End { piuma, armed: armed.map(Box::new), pbv: pbv.map(Box::new), traffic: None, turn: 0, handed: Vec::new() }
    }

    /// What the rank has called goes to the family that computes it, and results that are there come back.
    fn hand_over(&mut self, now: Cycle) {
        for line in 0..self.lines() {
            let Some(rounds) = self.unanswered_call(line) else { continue };
            if self.handed.len() <= line {
                self.handed.resize(line + 1, None);
            }
            if self.handed[line] != Some(rounds) {
                self.handed[line] = Some(rounds);
                self.call(rounds, now);
            } else if self.has(rounds) {
                let words = self.words(rounds);
                if let Some(rank) = self.piuma.rank_mut() {
                    rank.answer(line, words);
                }
            }
        }
    }

    /// Lines of the rank's calls.
    fn lines(&self) -> usize {
        self.piuma.rank().map_or(0, piuma::rank::Rank::lines)
    }

    /// What the rank asks of an engine.
    fn unanswered_call(&self, line: usize) -> Option<Rounds> {
        self.piuma.rank()?.unanswered_call(line)
    }

    /// Lets a family's processes contribute to rounds.
    fn call(&mut self, rounds: Rounds, now: Cycle) {
        let below = rounds.first + rounds.count;
        if rounds.engine == ARMED {
            let armed = self.armed.as_mut();
            return armed.into_iter().for_each(|armed| armed.call(rounds.job, below, now));
        }
        let Some(node) = &mut self.pbv else { return };
        for number in 0..rounds.spread.min(below.try_into().unwrap_or(u16::MAX)) {
            let runs = (below - u32::from(number)).div_ceil(rounds.spread.into());
            node.call(rounds.job + number, runs, now);
        }
    }

    /// The words of a round of a PBV job, if they are there.
    fn run(&self, rounds: Rounds, round: u32) -> Option<&[u64]> {
        let spread = u32::from(rounds.spread);
        let outcomes = self.pbv.as_ref()?.outcomes(rounds.job + (round % spread) as u16);
        outcomes.get((round / spread) as usize).map(|outcome| &outcome.words[..])
    }

    /// Whether the results of rounds are there.
    fn has(&self, rounds: Rounds) -> bool {
        let all = rounds.first..rounds.first + rounds.count;
        if rounds.engine == ARMED {
            return self.armed.as_ref().is_some_and(|armed| armed.has(rounds.job, all));
        }
        // The last ones of each context.
        all.rev().take(rounds.spread.into()).all(|round| self.run(rounds, round).is_some())
    }

    /// The words of the results of rounds, one after the other.
    fn words(&self, rounds: Rounds) -> Vec<u64> {
        let all = rounds.first..rounds.first + rounds.count;
        if rounds.engine == ARMED {
            return self.armed.as_ref().map_or_else(Vec::new, |armed| armed.lanes(rounds.job, all));
        }
        all.filter_map(|round| self.run(rounds, round)).flatten().copied().collect()
    }

    /// Whether something can be handed over.
    fn can_hand_over(&self) -> bool {
        (0..self.lines()).any(|line| {
            let handed = self.handed.get(line).copied().flatten();
            self.unanswered_call(line).is_some_and(|rounds| handed != Some(rounds) || self.has(rounds))
        })
    }

    /// One clock of a family's part; `None` if the system has no such family.
    fn family(&mut self, family: u8, io: &mut Io<'_>, tables: &Tables) -> Option<Wake> {
        let map = &tables.map;
        match family {
            0 => tables.piuma.as_ref().map(|registers| {
                io.show(map.piuma);
                self.piuma.tick(io, registers)
            }),
            1 => self.armed.as_mut().zip(tables.armed.as_ref()).map(|(processes, tables)| {
                io.show(map.armed);
                processes.tick(io, tables)
            }),
            _ => self.pbv.as_mut().zip(tables.pbv.as_ref()).map(|(node, directory)| {
                io.show(map.pbv);
                node.tick(io, directory)
            }),
        }
    }
}

impl Block for End {
    type Tables = Tables;

    fn tick(&mut self, io: &mut Io<'_>, tables: &Tables) -> Wake {
        let all = io.shown();
        self.hand_over(io.now());
        let (mut wake, first) = (Wake::OnInput, self.turn);
        for family in (0..FAMILIES).map(|k| (first + k) % FAMILIES) {
            let before = io.has_sent(0);
            if let Some(of) = self.family(family, io, tables) {
                wake = wake.or(of);
                // A family that comes later does not see why it could not send.
                if before {
                    wake = Wake::Next;
                } else if io.has_sent(0) {
                    self.turn = (family + 1) % FAMILIES;
                }
            }
        }
        io.show(all);
        if let Some(traffic) = &mut self.traffic {
            wake = wake.or(traffic.tick(io));
        }
        io.heed_credits(true);
        if self.can_hand_over() { Wake::Next } else { wake }
    }

    fn open(&self) -> Option<String> {
        let families = self.piuma.open().or_else(|| self.armed.as_ref()?.open());
        families.or_else(|| self.pbv.as_ref()?.open()).or_else(|| self.traffic.as_ref()?.open())
    }

    fn stall_reason(&self, head: &Flit) -> Option<String> {
        self.piuma.stall_reason(head)
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        self.piuma.probe(scope);
        if let Some(processes) = &self.armed {
            processes.probe(scope);
        }
        if let Some(node) = &self.pbv {
            node.probe(scope);
        }
        if let Some(traffic) = &self.traffic {
            traffic.probe(scope);
        }
        scope.bits("turn", 2, u64::from(self.turn));
    }
}

impl MayHaveTraffic for End {
    fn traffic(&self) -> Option<&Traffic> {
        self.traffic.as_deref()
    }

    fn traffic_mut(&mut self) -> Option<&mut Traffic> {
        self.traffic.as_deref_mut()
    }
}
