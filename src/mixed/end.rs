//! An end point that takes part in collectives of several families over one link.
//!
//! | register | bits | meaning |
//! |---|---|---|
//! | `turn` | 2 | the family that may send first: the one after the last sender *\[chosen\]* |
//!
//! Traffic goes last, as beside a single family.

use super::Tables;
use watershed_armed as armed;
use watershed_fabric::traffic::{MayHaveTraffic, Traffic};
use watershed_fabric::{Block, Flit, Io};
use watershed_kernel::Wake;
use watershed_pbv::node::Node;
use watershed_piuma as piuma;
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
}

state!(End { saved: piuma, turn; boxed: armed, pbv, traffic });

/// How many families there are.
const FAMILIES: u8 = 3;

impl End {
    /// An end point of these parts.
    pub fn new(piuma: piuma::End, armed: Option<armed::End>, pbv: Option<Node>) -> End {
        End { piuma, armed: armed.map(Box::new), pbv: pbv.map(Box::new), traffic: None, turn: 0 }
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
        wake
    }

    fn open(&self) -> Option<String> {
        let families = self.piuma.open().or_else(|| self.armed.as_ref()?.open());
        families.or_else(|| self.pbv.as_ref()?.open()).or_else(|| self.traffic.as_ref()?.open())
    }

    fn refuses(&self, head: &Flit) -> Option<String> {
        self.piuma.refuses(head)
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
