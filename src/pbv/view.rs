//! What a run of this family sees of a system, whatever else is in it.

use super::node::Node;
use super::routes::Directory;
use super::system::{System, WireBlock};
use std::any::Any;
use watershed_fabric::traffic::MayHaveTraffic;
use watershed_fabric::{Block, Holds, Join, Network, Simulation, Tables};
use watershed_state::State;

/// A system that this family has a part of.
pub trait View: Simulation {
    /// The route tables.
    fn directory(&self) -> &Directory;
    /// What the family has at an end point; idle ones behind engines' own ports come last.
    fn end(&self, end: usize) -> &Node;
    /// All of them.
    fn ends(&self) -> Box<dyn Iterator<Item = &Node> + '_>;
    /// What the family has in the wires; `None` where another one has something.
    fn bumps(&self) -> Box<dyn Iterator<Item = Option<&WireBlock>> + '_>;
    /// What it has in the wire of this number, if it is there.
    fn bump(&self, bump: usize) -> Option<&WireBlock>;
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
    T: Tables<W> + Holds<Directory> + Sync + State + 'static,
    J: Join<Tables = T> + Clone + Send + State + 'static,
    B: Block<Tables = T> + Holds<WireBlock> + Send + State + 'static,
    E: Block<Tables = T> + Holds<Node> + MayHaveTraffic + Send + State + 'static,
{
    fn directory(&self) -> &Directory {
        (*self.tables).part().expect(EVERYWHERE)
    }

    fn end(&self, end: usize) -> &Node {
        Network::end(self, end).part().expect(EVERYWHERE)
    }

    fn ends(&self) -> Box<dyn Iterator<Item = &Node> + '_> {
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
}
