//! Waves of a system: which registers are shown, and which of them are sampled in a cycle.
//!
//! The recorded signals are divided into *views* of a few signals each, so that a cycle samples only those that may
//! have changed:
//!
//! | view | signals | sampled |
//! |---|---|---|
//! | input queue | flits, phase, head | if something is queued, or was in the last cycle, at a node that was ticked |
//! | output port | the flit in the output register | in the two cycles after it sent |
//! | output channel | credits, owner | when one of them changed |
//! | block | what an engine or end point describes | in the cycle after a tick, and in the next |
//! | stages | the registers of its pipelines, which are details: see [`stage_waves`](super::stage_waves) | the same, if something is in them |
//!
//! End points have the registers of their one port too: what waits there for their memory, and the credits that they
//! send by. Ports without selected signals have no views and cost the look-up of a flag. Views are visited in the order
//! in which they were declared, so the changes of a cycle come out in the order in which a file wants them.

use super::network::Network;
use super::ports::NONE;
use super::wires::WaveCapture;
use super::{Block, Flit, Join, Tables};
use watershed_kernel::{Cycle, WakeSet};
use watershed_probe::{EnumTable, NodeHandle, Scope, TraceError, Tracer};

/// What one view shows.
#[derive(Clone, Copy, Debug)]
enum View {
    /// An input queue.
    Queue(u32),
    /// An output port.
    Port(u32),
    /// An output channel.
    Channel(u32),
    /// An engine, bump or end point.
    Block(u32),
    /// The stage registers of one.
    Stages(u32),
}

const NO_VIEW: u32 = u32::MAX;

/// A recording.
pub(super) struct Waves {
    tracer: Tracer,
    views: Vec<(NodeHandle, View)>,
    /// Views by queue, port, channel and node.
    queues: Vec<u32>,
    ports: Vec<u32>,
    channels: Vec<u32>,
    blocks: Vec<u32>,
    stages: Vec<u32>,
    /// Nodes of which a queue or the block is recorded: whether a node is one, and all of them.
    traced: Vec<bool>,
    traced_nodes: Vec<u32>,
    /// Those that are looked at in this cycle.
    looked: Vec<u32>,
    /// Occupied queues at the last sample, by word of queue bits.
    occupied_before: Vec<u64>,
    /// The first of these words of each node.
    first_word: Vec<usize>,
    /// Views to be shown in this cycle, as a set and in order.
    due: WakeSet,
    in_order: Vec<u32>,
    last_awake: Vec<u32>,
    /// Whether an output register that was shown must be seen empty.
    sent: bool,
}

impl Waves {
    /// Whether the next cycle must be looked at even if nobody is awake in it.
    pub(super) fn is_due(&self) -> bool {
        self.sent || !self.last_awake.is_empty()
    }
}

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W>,
    J: Join<Tables = T>,
    B: Block<Tables = T>,
    E: Block<Tables = T>,
{
    /// Declares every node to a tracer and records from the present cycle on.
    ///
    /// # Errors
    /// Whatever the tracer says when it starts: nothing selected, or the file cannot be written.
    pub fn record(&mut self, tracer: Tracer) -> Result<(), TraceError> {
        assert!(self.others.is_empty(), "a divided system cannot be recorded");
        let (ports, queues, nodes) =
            (self.first.wires.ports.len(), self.first.wires.inputs.len(), self.plan.nodes.len());
        let none = (Cycle::MAX, Flit::default());
        let (mut words, mut first_word) = (0, Vec::with_capacity(nodes));
        for node in 0..nodes as u32 {
            first_word.push(words);
            words += self.first.wires.nodes.masks(node).len();
        }
        self.first.wires.flow.capture = Some(Box::new(WaveCapture {
            traced: vec![false; ports],
            channels: Vec::new(),
            sent: Vec::new(),
            sent_before: Vec::new(),
            last: vec![none; ports],
            more: vec![Box::default(); ports],
        }));
        let mut waves = Waves {
            tracer,
            views: Vec::new(),
            queues: vec![NO_VIEW; queues],
            ports: vec![NO_VIEW; ports],
            channels: vec![NO_VIEW; queues],
            blocks: vec![NO_VIEW; nodes],
            stages: vec![NO_VIEW; nodes],
            traced: vec![false; nodes],
            traced_nodes: Vec::new(),
            looked: Vec::new(),
            occupied_before: vec![0; words],
            first_word,
            due: WakeSet::new(0),
            in_order: Vec::new(),
            last_awake: Vec::new(),
            sent: false,
        };
        for node in 0..nodes as u32 {
            self.declare(&mut waves, node);
        }
        waves.tracer.start()?;
        waves.due = WakeSet::new(waves.views.len());
        self.waves = Some(Box::new(waves));
        Ok(())
    }

    fn declare(&mut self, waves: &mut Waves, node: u32) {
        let path = self.plan.nodes[node as usize].path.clone();
        let info = self.first.wires.nodes[node as usize];
        let mut traced = false;
        let vcs = self.plan.vcs.total();
        for port in 0..info.ports {
            let gp = info.port_base + u32::from(port);
            let engine = info.flags.engine() && port + 1 == info.ports;
            let linked = self.first.wires.ports.link(gp).to_port != NONE;
            let mut capture = false;
            for vc in 0..if linked || engine { vcs } else { 0 } {
                let q = self.first.wires.queue(gp, vc);
                let view = View::Queue(q as u32);
                waves.queues[q] = self.view(waves, &format!("{path}.in{port}.vc{vc}"), view);
                traced |= waves.queues[q] != NO_VIEW;
            }
            if linked {
                waves.ports[gp as usize] = self.view(waves, &format!("{path}.out{port}"), View::Port(gp));
                capture |= waves.ports[gp as usize] != NO_VIEW;
                for vc in 0..vcs {
                    let q = self.first.wires.queue(gp, vc);
                    let view = View::Channel(q as u32);
                    waves.channels[q] = self.view(waves, &format!("{path}.out{port}.credits{vc}"), view);
                    capture |= waves.channels[q] != NO_VIEW;
                }
            }
            if let Some(all) = &mut self.first.wires.flow.capture {
                all.traced[gp as usize] = capture;
            }
            let flags = &mut self.first.wires.nodes[node as usize].flags;
            flags.set_traced(flags.traced() || capture);
        }
        if node >= self.switches || info.flags.engine() {
            waves.blocks[node as usize] = self.view(waves, &path, View::Block(node));
            traced |= waves.blocks[node as usize] != NO_VIEW;
            traced |= self.declare_stages(waves, node, &path);
        }
        waves.traced[node as usize] = traced;
        waves.traced_nodes.extend(traced.then_some(node));
    }

    /// Declares the pipelines of an engine or end point if they may be selected; whether any register is.
    fn declare_stages(&mut self, waves: &mut Waves, node: u32, path: &str) -> bool {
        let scopes = if node < self.switches {
            J::STAGES
        } else if ((node - self.switches) as usize) < self.first.bumps.len() {
            B::STAGES
        } else {
            E::STAGES
        };
        if !scopes.iter().any(|scope| waves.tracer.wants_details(&format!("{path}.{scope}"))) {
            return false;
        }
        self.watch(node, true);
        let handle = waves.tracer.declare_details(path, |scope| self.probe(View::Stages(node), scope));
        let Some(handle) = handle else {
            self.watch(node, false);
            return false;
        };
        waves.stages[node as usize] = waves.views.len() as u32;
        waves.views.push((handle, View::Stages(node)));
        true
    }

    fn watch(&mut self, node: u32, watched: bool) {
        if node < self.switches {
            return self.first.joins[node as usize].watch(watched, &self.tables, node);
        }
        let block = (node - self.switches) as usize;
        match block.checked_sub(self.first.bumps.len()) {
            None => self.first.bumps[block].watch(watched, &self.tables),
            Some(end) => self.first.ends[end].watch(watched, &self.tables),
        }
    }

    fn view(&self, waves: &mut Waves, path: &str, view: View) -> u32 {
        let handle = waves.tracer.declare(path, |scope| self.probe(view, scope));
        handle.map_or(NO_VIEW, |handle| {
            waves.views.push((handle, view));
            waves.views.len() as u32 - 1
        })
    }

    /// Ends the recording and hands the tracer back.
    pub fn stop_recording(&mut self) -> Option<Tracer> {
        // The registers as the last edge left them.
        self.first.awake.clear();
        self.sample();
        self.first.wires.flow.capture = None;
        for node in 0..self.plan.nodes.len() {
            self.first.wires.nodes[node].flags.set_traced(false);
        }
        let waves = self.waves.take()?;
        for node in 0..self.plan.nodes.len() {
            if waves.stages[node] != NO_VIEW {
                self.watch(node as u32, false);
            }
        }
        Some(waves.tracer)
    }

    /// Waves know nothing of what the system holds: all of it is looked at in the next cycle.
    pub(super) fn look_at_all(&mut self) {
        let Some(waves) = &mut self.waves else { return };
        (0..waves.views.len() as u32).for_each(|view| waves.due.insert(view));
        waves.last_awake.clear();
        waves.last_awake.extend(0..self.plan.nodes.len() as u32);
        waves.sent = self.first.wires.flow.capture.as_ref().is_some_and(|capture| !capture.sent_before.is_empty());
    }

    /// Looks at what may have changed at the last edge.
    #[inline]
    pub(super) fn sample(&mut self) {
        if self.waves.is_some() {
            self.sample_views();
        }
    }

    fn sample_views(&mut self) {
        let Some(mut waves) = self.waves.take() else { return };
        let due = &mut waves.due;
        let mut add = |view: u32| {
            if view != NO_VIEW {
                due.insert(view);
            }
        };
        // Registers change at nodes that are awake or were awake a cycle ago. Of a few nodes all are looked at, which
        // shows the same.
        let mut looked = std::mem::take(&mut waves.looked);
        if waves.traced_nodes.len() <= self.first.awake.len() {
            looked.extend_from_slice(&waves.traced_nodes);
        } else {
            let awake = self.first.awake.iter().chain(&waves.last_awake);
            looked.extend(awake.filter(|&&node| waves.traced[node as usize]));
        }
        for &node in &looked {
            add(waves.blocks[node as usize]);
            let stages = waves.stages[node as usize];
            if stages != NO_VIEW && self.stages_moved(node) {
                add(stages);
            }
            let info = &self.first.wires.nodes[node as usize];
            let first = (info.port_base as usize) << self.first.wires.flow.vc_shift;
            let before = &waves.occupied_before[waves.first_word[node as usize]..];
            for (w, (masks, before)) in self.first.wires.nodes.masks(node).iter().zip(before).enumerate() {
                for bit in super::portset::each(masks.occupied | before) {
                    add(waves.queues[first + (w << 6 | bit)]);
                }
            }
        }
        if let Some(capture) = &mut self.first.wires.flow.capture {
            for channel in capture.channels.drain(..) {
                add(waves.channels[channel as usize]);
            }
            for &port in capture.sent.iter().chain(&capture.sent_before) {
                add(waves.ports[port as usize]);
            }
            std::mem::swap(&mut capture.sent, &mut capture.sent_before);
            capture.sent.clear();
            waves.sent = !capture.sent_before.is_empty();
        }
        let now = self.first.wires.flow.now;
        waves.due.drain_into(&mut waves.in_order);
        for &view in &waves.in_order {
            let (handle, view) = waves.views[view as usize];
            waves.tracer.sample(handle, now, |scope| self.probe(view, scope));
        }
        waves.in_order.clear();
        for node in looked.drain(..) {
            let before = &mut waves.occupied_before[waves.first_word[node as usize]..];
            for (masks, before) in self.first.wires.nodes.masks(node).iter().zip(before) {
                *before = masks.occupied;
            }
        }
        waves.looked = looked;
        waves.last_awake.clear();
        waves.last_awake.extend_from_slice(&self.first.awake);
        self.waves = Some(waves);
    }

    fn probe(&self, view: View, scope: &mut Scope<'_>) {
        match view {
            View::Queue(q) => self.probe_queue(q as usize, scope),
            View::Port(port) => self.probe_port(port as usize, scope),
            View::Channel(channel) => {
                let out = self.first.wires.ports.channel(channel as usize);
                scope.bits("count", 16, u64::from(out.credits));
                scope.bit("held", out.owner != 0);
            }
            View::Stages(node) => self.probe_stages(node, scope),
            View::Block(node) if node < self.switches => self.first.joins[node as usize].probe(scope),
            View::Block(node) => {
                let block = (node - self.switches) as usize;
                match block.checked_sub(self.first.bumps.len()) {
                    None => self.first.bumps[block].probe(scope),
                    Some(end) => self.first.ends[end].probe(scope),
                }
            }
        }
    }

    fn stages_moved(&self, node: u32) -> bool {
        if node < self.switches {
            return self.first.joins[node as usize].stages_moved();
        }
        let block = (node - self.switches) as usize;
        match block.checked_sub(self.first.bumps.len()) {
            None => self.first.bumps[block].stages_moved(),
            Some(end) => self.first.ends[end].stages_moved(),
        }
    }

    fn probe_stages(&self, node: u32, scope: &mut Scope<'_>) {
        if node < self.switches {
            return self.first.joins[node as usize].probe_stages(scope);
        }
        let block = (node - self.switches) as usize;
        match block.checked_sub(self.first.bumps.len()) {
            None => self.first.bumps[block].probe_stages(scope),
            Some(end) => self.first.ends[end].probe_stages(scope),
        }
    }

    fn probe_queue(&self, q: usize, scope: &mut Scope<'_>) {
        let queue = &self.first.wires.inputs[q];
        let head = self.first.wires.head(q).map(|(flit, _)| flit);
        scope.bits("flits", 16, u64::from(queue.len));
        scope.state("phase", &PHASES, queue.state.phase() as u64);
        scope.valid("head_id", 12, head.map(|flit| u64::from(flit.tag.id())));
        scope.valid("head_seq", 36, head.map(|flit| flit.tag.seq()));
        scope.valid("head_word", 64, head.map(|flit| flit.word));
        for (k, &word) in
            (1..=self.tables.cut().more()).zip(self.first.wires.words_behind(q).chain(std::iter::repeat(&0)))
        {
            scope.indexed("head_more", k, |scope| scope.valid("word", 64, head.map(|_| word)));
        }
    }

    fn probe_port(&self, port: usize, scope: &mut Scope<'_>) {
        let last = self.first.wires.flow.capture.as_ref().map(|capture| capture.last[port]);
        // The output register holds the flit in the cycle after it was granted and left the pipeline.
        let flit = last.filter(|(cycle, _)| self.first.wires.flow.now.checked_sub(1) == Some(*cycle));
        let flit = flit.map(|(_, flit)| flit);
        scope.bit("valid", flit.is_some());
        scope.valid("vc", 5, flit.map(|flit| u64::from(flit.tag.vc())));
        scope.valid("id", 12, flit.map(|flit| u64::from(flit.tag.id())));
        scope.valid("seq", 36, flit.map(|flit| flit.tag.seq()));
        scope.valid("word", 64, flit.map(|flit| flit.word));
        let more = self.first.wires.flow.capture.as_ref().map_or(&[][..], |capture| &capture.more[port]);
        for (k, &word) in (1..=self.tables.cut().more()).zip(more.iter().chain(std::iter::repeat(&0))) {
            scope.indexed("more", k, |scope| scope.valid("word", 64, flit.map(|_| word)));
        }
    }
}

/// Names of [`Phase`](super::Phase) in waves.
static PHASES: EnumTable = EnumTable { name: "phase", names: &["IDLE", "ROUTED", "ACTIVE", "FORK"] };
