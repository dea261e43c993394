//! What a run of this family sees of a system, whatever else is in it.

use super::{Discard, End, System, Tables, WireBlock};
use std::any::Any;
use watershed_fabric::traffic::MayHaveTraffic;
use watershed_fabric::{self as fabric, Block, Holds, Join, Network, Simulation};
use watershed_state::State;

/// Blocks of a system, in the order of their numbers.
pub type Blocks<'a, B> = Box<dyn Iterator<Item = &'a B> + 'a>;

/// A system that this family has a part of.
pub trait View: Simulation {
    /// The multicast tables.
    fn tables(&self) -> &Tables;
    /// What the family has at an end point.
    fn end(&self, end: usize) -> &End;
    /// All of them.
    fn ends(&self) -> Blocks<'_, End>;
    /// What the family has in the wires; `None` where another one has something.
    fn bumps(&self) -> Box<dyn Iterator<Item = Option<&WireBlock>> + '_>;
    /// What it has in the wire of this number, if it is there.
    fn bump(&self, bump: usize) -> Option<&WireBlock>;
    /// The discard ports of all switches.
    fn joins(&self) -> Blocks<'_, Discard>;
}

/// How the family sees a system of its own; `None` for one of several families.
#[inline(never)]
pub fn view(system: &dyn Simulation) -> Option<&dyn View> {
    let system: &dyn Any = system;
    system.downcast_ref::<System>().map(|system| system as &dyn View)
}

/// The family has something at every end point of its systems.
const EVERYWHERE: &str = "a system that the family has a part of";

impl<T, J, B, E, const W: usize> View for Network<T, J, B, E, W>
where
    T: fabric::Tables<W> + Holds<Tables> + State + Sync + 'static,
    J: Join<Tables = T> + Holds<Discard> + Clone + Send + State + 'static,
    B: Block<Tables = T> + Holds<WireBlock> + Send + State + 'static,
    E: Block<Tables = T> + Holds<End> + MayHaveTraffic + Send + State + 'static,
{
    fn tables(&self) -> &Tables {
        (*self.tables).part().expect(EVERYWHERE)
    }

    fn end(&self, end: usize) -> &End {
        Network::end(self, end).part().expect(EVERYWHERE)
    }

    fn ends(&self) -> Blocks<'_, End> {
        Box::new(Network::ends(self).into_iter().filter_map(Holds::part))
    }

    fn bumps(&self) -> Box<dyn Iterator<Item = Option<&WireBlock>> + '_> {
        let bumps = Network::bumps(self);
        let count = bumps.len();
        Box::new((0..count).map(move |bump| bumps.get(bump)?.part()))
    }

    fn bump(&self, bump: usize) -> Option<&WireBlock> {
        Network::bumps(self).get(bump)?.part()
    }

    fn joins(&self) -> Blocks<'_, Discard> {
        Box::new(Network::joins(self).into_iter().filter_map(Holds::part))
    }
}
