//! What a run of this family sees of a system, whatever else is in it.

use super::{Ceng, End, Registers, System};
use std::any::Any;
use watershed_fabric::traffic::MayHaveTraffic;
use watershed_fabric::{Block, Holds, Join, Network, Simulation, Tables};
use watershed_state::State;

/// Every end point of a system, in the order of their numbers.
pub type Ends<'a> = Box<dyn Iterator<Item = &'a End> + 'a>;

/// A system that this family has a part of.
pub trait View: Simulation {
    /// The registers.
    fn registers(&self) -> &Registers;
    /// The same, to be written between two cycles.
    fn registers_mut(&mut self) -> &mut Registers;
    /// What the family has at an end point.
    fn end(&self, end: usize) -> &End;
    /// The same, to give it something to do: it is evaluated in the next cycle.
    fn end_mut(&mut self, end: usize) -> &mut End;
    /// The same; nobody is woken.
    fn end_asleep(&mut self, end: usize) -> &mut End;
    /// All of them.
    fn ends(&self) -> Ends<'_>;
    /// All of them, to take from them what they have written down; nobody is woken.
    fn each_end(&mut self, take: &mut dyn FnMut(&mut End));
    /// The engine of a switch, if the system has engines.
    fn join(&self, switch: u32) -> Option<&Ceng>;
    /// The same, to be changed.
    fn join_mut(&mut self, switch: u32) -> Option<&mut Ceng>;
}

/// How the family sees a system of its own; `None` for one of several families.
#[inline(never)]
pub fn view(system: &dyn Simulation) -> Option<&dyn View> {
    let system: &dyn Any = system;
    system.downcast_ref::<System>().map(|system| system as &dyn View)
}

/// The same, to be changed between two cycles.
#[inline(never)]
pub fn view_mut(system: &mut dyn Simulation) -> Option<&mut dyn View> {
    let system: &mut dyn Any = system;
    system.downcast_mut::<System>().map(|system| system as &mut dyn View)
}

/// The family has something at every end point of its systems.
const EVERYWHERE: &str = "a system that the family has a part of";

impl<T, J, B, E, const W: usize> View for Network<T, J, B, E, W>
where
    T: Tables<W> + Holds<Registers> + Sync + State + 'static,
    J: Join<Tables = T> + Holds<Ceng> + Clone + Send + State + 'static,
    B: Block<Tables = T> + Send + State + 'static,
    E: Block<Tables = T> + Holds<End> + MayHaveTraffic + Send + State + 'static,
{
    fn registers(&self) -> &Registers {
        (*self.tables).part().expect(EVERYWHERE)
    }

    fn registers_mut(&mut self) -> &mut Registers {
        (*self.tables).part_mut().expect(EVERYWHERE)
    }

    fn end(&self, end: usize) -> &End {
        Network::end(self, end).part().expect(EVERYWHERE)
    }

    fn end_mut(&mut self, end: usize) -> &mut End {
        Network::end_mut(self, end).part_mut().expect(EVERYWHERE)
    }

    fn end_asleep(&mut self, end: usize) -> &mut End {
        Network::end_asleep(self, end).part_mut().expect(EVERYWHERE)
    }

    fn ends(&self) -> Ends<'_> {
        Box::new(Network::ends(self).into_iter().filter_map(Holds::part))
    }

    fn each_end(&mut self, take: &mut dyn FnMut(&mut End)) {
        Network::each_end(self, |end| {
            if let Some(part) = end.part_mut() {
                take(part);
            }
        });
    }

    fn join(&self, switch: u32) -> Option<&Ceng> {
        self.joins().get(switch as usize)?.part()
    }

    fn join_mut(&mut self, switch: u32) -> Option<&mut Ceng> {
        Network::join_mut(self, switch)?.part_mut()
    }
}
