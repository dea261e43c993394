//! The interface of a run to a system of any family: stepping, the watchdog's view, recording, counters.
//!
//! [`Network`] is the one implementation, for every family's tables, engines and end points. Dispatch is per step or
//! span of steps, never per tick.

use super::exchange::{Exchange, SyncLevel};
use super::{Block, Evaluation, Flit, HeadWaits, Join, Journal, LinkCount, Network, Plan, Step, Tables, WaitCycles};
use crate::traffic::{MayHaveTraffic, Traffic};
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use watershed_kernel::{Autopsy, Cycle};
use watershed_probe::{TraceError, Tracer};
use watershed_state::{Loader, Mismatch, Saver, State};

/// A system under way; see the methods of the same names of [`Network`].
pub trait Simulation: Any {
    /// The cycle that is simulated next.
    fn now(&self) -> Cycle;
    /// The cycle after the last one in which anything happened.
    fn alive_until(&self) -> Cycle;
    /// Cycles in which a node was awake; see [`Network::awake_cycles`].
    fn awake_cycles(&self) -> u64;
    /// The cycle after the last one in which a flit left a queue or an end point reported a completion; see [`Network::moved_until`].
    fn moved_until(&self) -> Cycle;
    /// Simulates one cycle, or jumps to the next one in which something happens and simulates that, but none from `end` on.
    fn step_before(&mut self, end: Cycle) -> Step;
    /// Simulates up to `most` such cycles; see [`Network::run_before`].
    fn run_before(&mut self, end: Cycle, most: u32) -> (Step, u32);
    /// Flits in queues and on links.
    fn live_flits(&self) -> usize;
    /// Flits that have left a queue since cycle 0.
    fn moves(&self) -> u64;
    /// Completions that end points have reported since cycle 0.
    fn completions(&self) -> u64;
    /// The first rule that was broken, if any.
    fn fault(&self) -> Option<&str>;
    /// The wait-for graph.
    fn autopsy(&self) -> Autopsy;
    /// Flits on links, not in queues.
    fn flits_on_links(&self) -> usize;
    /// Whether there are set-routed flits, or any at all.
    fn has_flits(&self, set_only: bool) -> bool;
    /// Shows every set-routed flit in a queue or on a link, with the node that it is in or on its way to.
    fn each_set_flit(&self, look: &mut dyn FnMut(u32, &Flit));
    /// Set-routed and point-to-point flits that end points have taken or sent.
    fn served(&self) -> [u64; 2];
    /// The cycle of the last completion.
    fn completed(&self) -> Cycle;
    /// Wakes a node in a cycle that comes, or in the next one.
    fn wake_at(&mut self, node: u32, cycle: Cycle);
    /// Name of a node.
    fn node_name(&self, node: u32) -> Cow<'_, str>;
    /// End points.
    fn end_count(&self) -> usize;
    /// Traffic at one end point, if there is some.
    fn traffic(&self, end: usize) -> Option<&Traffic>;
    /// The same, to give it something to do; it is asked again in the next cycle.
    fn traffic_mut(&mut self, end: usize) -> Option<&mut Traffic>;
    /// All traffic, in the order of the end points.
    fn all_traffic(&self) -> Box<dyn Iterator<Item = &Traffic> + '_>;
    /// All traffic, to take from it what it has written down; nobody is woken.
    fn each_traffic(&mut self, take: &mut dyn FnMut(&mut Traffic));
    /// Whether every credit is back where it began and nothing is under way.
    fn at_rest(&self) -> bool;
    /// Nodes, links, levels.
    fn plan(&self) -> &Plan;
    /// The number of parts it is evaluated in.
    fn parts(&self) -> usize;
    /// Whether its parts run ahead of each other.
    fn runs_in_windows(&self) -> bool;
    /// Ranks evaluate the system together from now on; see [`Network::share_with`].
    fn share_with(&mut self, exchange: Arc<dyn Exchange>);
    /// Brings engines and end points that other ranks evaluate up to date, before they are looked at. All ranks do so at once;
    /// a process alone has nothing to do.
    fn refresh(&mut self);
    /// The same of everything: queues, links and their counters, too.
    fn refresh_all(&mut self);
    /// Whether one of the ranks wants to look how far the run is; see [`Network::agree_to_look`].
    fn agree_to_look(&mut self, want: bool) -> bool;
    /// Whether one of the ranks says yes. All ranks ask at once.
    fn any_rank(&self, here: bool) -> bool;
    /// Chooses how blocks are evaluated; before the first cycle.
    fn evaluate(&mut self, how: Evaluation);
    /// Keeps a journal of what flits do, of all of them or only of set-routed ones; before the first cycle.
    fn keep_journal(&mut self, all: bool);
    /// The journal, if one is kept.
    fn journal(&self) -> Option<&Journal>;
    /// Records a waveform from now on.
    ///
    /// # Errors
    /// Nothing was selected, or the file cannot be written.
    fn record(&mut self, tracer: Tracer) -> Result<(), TraceError>;
    /// Ends the recording.
    fn stop_recording(&mut self) -> Option<Tracer>;
    /// Level, traffic and cycles a flit of every direction of every link, in the order of the plan.
    fn link_counts(&self) -> Box<dyn Iterator<Item = (u8, LinkCount, u16)> + '_>;
    /// Names of the sending and the receiving port of one direction of a link.
    fn link_ends(&self, direction: usize) -> (String, String);
    /// What flits waited for before they left over one direction of a link.
    fn link_waits(&self, direction: usize) -> WaitCycles;
    /// What all of them waited for, if link monitors look.
    fn head_waits(&self) -> Option<HeadWaits>;
    /// The head of a queue that has waited longest, and for how many cycles.
    fn longest_head(&self) -> Option<(String, u64)>;
    /// Whether causes of waits add up to the cycles waited.
    ///
    /// # Errors
    /// Where they do not.
    fn head_waits_add_up(&self) -> Result<(), String>;
    /// Appends what the clock has changed since it was built.
    fn save(&self, to: &mut Saver);
    /// Goes on from a state that was saved; everything that is built is built already, and what looks at it looks.
    ///
    /// # Errors
    /// The state is that of another system.
    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch>;
}

impl<T, J, B, E, const W: usize> Simulation for Network<T, J, B, E, W>
where
    T: Tables<W> + State + Sync + 'static,
    J: Join<Tables = T> + State + Clone + Send + 'static,
    B: Block<Tables = T> + State + Send + 'static,
    E: Block<Tables = T> + State + MayHaveTraffic + Send + 'static,
{
    fn now(&self) -> Cycle {
        Network::now(self)
    }

    fn alive_until(&self) -> Cycle {
        Network::alive_until(self)
    }

    fn awake_cycles(&self) -> u64 {
        Network::awake_cycles(self)
    }

    fn moved_until(&self) -> Cycle {
        Network::moved_until(self)
    }

    fn step_before(&mut self, end: Cycle) -> Step {
        Network::step_before(self, end)
    }

    fn run_before(&mut self, end: Cycle, most: u32) -> (Step, u32) {
        Network::run_before(self, end, most)
    }

    fn live_flits(&self) -> usize {
        Network::live_flits(self)
    }

    fn moves(&self) -> u64 {
        Network::moves(self)
    }

    fn completions(&self) -> u64 {
        Network::completions(self)
    }

    fn fault(&self) -> Option<&str> {
        Network::fault(self)
    }

    fn autopsy(&self) -> Autopsy {
        Network::autopsy(self)
    }

    fn flits_on_links(&self) -> usize {
        Network::flits_on_links(self)
    }

    fn has_flits(&self, set_only: bool) -> bool {
        Network::has_flits(self, set_only)
    }

    fn each_set_flit(&self, look: &mut dyn FnMut(u32, &Flit)) {
        Network::each_set_flit(self, look);
    }

    fn served(&self) -> [u64; 2] {
        Network::served(self)
    }

    fn completed(&self) -> Cycle {
        Network::completed(self)
    }

    fn wake_at(&mut self, node: u32, cycle: Cycle) {
        Network::wake_at(self, node, cycle);
    }

    fn node_name(&self, node: u32) -> Cow<'_, str> {
        Network::node_name(self, node)
    }

    fn end_count(&self) -> usize {
        Network::end_total(self)
    }

    fn traffic(&self, end: usize) -> Option<&Traffic> {
        Network::end(self, end).traffic()
    }

    fn traffic_mut(&mut self, end: usize) -> Option<&mut Traffic> {
        Network::end_mut(self, end).traffic_mut()
    }

    fn all_traffic(&self) -> Box<dyn Iterator<Item = &Traffic> + '_> {
        Box::new(Network::ends(self).into_iter().filter_map(MayHaveTraffic::traffic))
    }

    fn each_traffic(&mut self, take: &mut dyn FnMut(&mut Traffic)) {
        Network::each_end(self, |end| {
            if let Some(traffic) = end.traffic_mut() {
                take(traffic);
            }
        });
    }

    fn at_rest(&self) -> bool {
        Network::at_rest(self)
    }

    fn plan(&self) -> &Plan {
        Network::plan(self)
    }

    fn parts(&self) -> usize {
        Network::parts(self)
    }

    fn runs_in_windows(&self) -> bool {
        Network::runs_in_windows(self)
    }

    fn share_with(&mut self, exchange: Arc<dyn Exchange>) {
        Network::share_with(self, exchange);
    }

    fn refresh(&mut self) {
        self.sync_others(SyncLevel::Blocks);
    }

    fn refresh_all(&mut self) {
        self.sync_others(SyncLevel::Whole);
    }

    fn agree_to_look(&mut self, want: bool) -> bool {
        Network::agree_to_look(self, want)
    }

    fn any_rank(&self, here: bool) -> bool {
        self.gather_from_ranks(here).contains(&true)
    }

    fn evaluate(&mut self, how: Evaluation) {
        Network::evaluate(self, how);
    }

    fn keep_journal(&mut self, all: bool) {
        Network::keep_journal(self, all);
    }

    fn journal(&self) -> Option<&Journal> {
        Network::journal(self)
    }

    fn record(&mut self, tracer: Tracer) -> Result<(), TraceError> {
        Network::record(self, tracer)
    }

    fn stop_recording(&mut self) -> Option<Tracer> {
        Network::stop_recording(self)
    }

    fn link_counts(&self) -> Box<dyn Iterator<Item = (u8, LinkCount, u16)> + '_> {
        Box::new(Network::link_counts(self))
    }

    fn link_ends(&self, direction: usize) -> (String, String) {
        Network::link_ends(self, direction)
    }

    fn link_waits(&self, direction: usize) -> WaitCycles {
        Network::link_waits(self, direction)
    }

    fn head_waits(&self) -> Option<HeadWaits> {
        Network::head_waits(self)
    }

    fn longest_head(&self) -> Option<(String, u64)> {
        Network::longest_head(self)
    }

    fn head_waits_add_up(&self) -> Result<(), String> {
        Network::head_waits_add_up(self)
    }

    fn save(&self, to: &mut Saver) {
        State::save(self, to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        State::load(self, from)?;
        self.all_loaded();
        self.look_at_all();
        Ok(())
    }
}

/// Names the network of a family, and compiles what its cycles pass in the family's own crate.
///
/// Code of generic types is compiled where it is used. Without the three functions that this adds, every crate that builds such a
/// network, steps it or hands it on as a [`Simulation`] would compile the whole switch again, and would have to be optimised as the
/// families are.
#[macro_export]
macro_rules! system {
    ($(#[$doc:meta])* $tables:ty, $join:ty, $bump:ty, $end:ty, $words:expr) => {
        $(#[$doc])*
        pub type System = $crate::Network<$tables, $join, $bump, $end, { $words }>;

        /// Builds it, see [`Network::in_parts`](watershed_fabric::Network::in_parts).
        ///
        /// # Panics
        /// As that.
        #[inline(never)]
        pub fn system(
            parts: $crate::Parts,
            plan: $crate::Plan,
            tables: $tables,
            blocks: $crate::Blocks<$join, $bump, $end>,
            cfg: $crate::SwitchCfg,
            depths: $crate::Depths<'_>,
            vc_names: Vec<String>,
        ) -> System {
            System::in_parts(parts, plan, tables, blocks, cfg, depths, vc_names)
        }

        /// It, as a run of any family sees it.
        #[inline(never)]
        pub fn simulation(system: System) -> Box<dyn $crate::Simulation> {
            Box::new(system)
        }

        /// The same of a system that the caller keeps.
        #[inline(never)]
        pub fn simulation_mut(system: &mut System) -> &mut dyn $crate::Simulation {
            system
        }
    };
}
