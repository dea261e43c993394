//! The nodes of a PBV system: their parts in collectives, how long their tasks take, and the strangers among them.

use super::Builder;
use crate::armed::file::ComputeFile;
use crate::config::{Auto, Data};
use crate::pbv::file::{ConfigurationFile, InitialisationFile, KindFile, MergeFile, StartFile, WrongFile};
use crate::pbv::stranger_frames;
use crate::problem::Problem;
use crate::random::Stream;
use watershed_fabric::topology::Layout;
use watershed_kernel::Cycle;
use watershed_pbv::gather::Gather;
use watershed_pbv::node::{Node, Part, SendCondition, TaskTime};
use watershed_pbv::packet::{Message, Packet};
use watershed_pbv::plan::{self, Tables};
use watershed_pbv::tables::engine_base;

impl Builder<'_> {
    /// Frames that are not their senders' to send.
    pub(super) fn strangers(
        &mut self,
        collectives: &[plan::Collective],
        tables: &Tables,
        lay: &Layout,
        ends: &mut [Node],
    ) {
        let first = lay.plan.nodes.len() - lay.ends.len();
        for (index, stranger) in self.pbv.strangers.iter().enumerate() {
            let of = &collectives[stranger.collective];
            let rounds = self.pbv.collectives[stranger.collective].rounds;
            let to = stranger.file.to.as_deref();
            let end = to.and_then(|to| lay.plan.nodes[first..].iter().position(|node| node.name == to));
            let switch = to.and_then(|to| lay.switch(to));
            let target = match (end, switch) {
                (Some(end), _) => self.devices[end],
                (_, Some(switch)) => self.switch_device(switch),
                (None, None) if to.is_some() => {
                    let to = to.unwrap_or_default();
                    let known = lay.plan.nodes.iter().map(|node| node.name.as_str());
                    self.problems.push(
                        Problem::at(format!("pbv.stranger[{index}].to"), format!("there is no \"{to}\""))
                            .expected("the name of a switch or an end point")
                            .nearest(to, known),
                    );
                    continue;
                }
                _ => of.tree.device,
            };
            let from = self.devices[stranger.file.end_point as usize];
            let cycles =
                (stranger.file.from_cycle..stranger.file.until_cycle).step_by(stranger.file.every_cycles as usize);
            for (number, cycle) in cycles.enumerate() {
                let kind = stranger.messages[number % stranger.messages.len()];
                let turn = (number / stranger.messages.len()) as u32;
                let mut packet = stranger_frames::frame(of, tables, kind, turn, (from, target));
                let header = &mut packet.header;
                header.run = match stranger.file.wrong {
                    WrongFile::Run => 0u32.wrapping_sub(stranger.file.behind),
                    _ => 1 + turn % rounds,
                };
                if end.is_some() {
                    header.offset = 0;
                }
                if stranger.file.wrong == WrongFile::Channel {
                    // The space of an engine that no switch has.
                    header.offset = engine_base(self.pbv.engine.per_switch as u8);
                }
                ends[stranger.file.end_point as usize].disturb(cycle, packet);
            }
        }
    }

    /// Parts of the nodes in a collective, and the script of its source.
    pub(super) fn nodes(
        &self,
        index: usize,
        collective: &plan::Collective,
        tables: &Tables,
        operands: &[Vec<u64>],
        (initialise, start): (Cycle, Cycle),
        ends: &mut [Node],
    ) {
        let of = &self.pbv.collectives[index];
        let words = of.words() as usize;
        let multicast = of.kind == KindFile::Multicast;
        for &end in of.participants.iter().filter(|&&end| multicast && end != of.source) {
            let device = self.devices[end as usize];
            let mut part = Part::of(collective.like(device, tables), Vec::new(), TaskTime::Never);
            part.watches = true;
            ends[end as usize].join(part);
        }
        for (rank, &end) in of.participants.iter().enumerate().filter(|_| !multicast) {
            let device = self.devices[end as usize];
            let mut part = Part::of(
                collective.like(device, tables),
                operands.get(rank).cloned().unwrap_or_default(),
                self.task(index, rank),
            );
            part.length = words;
            part.divide = if of.mean { of.participants.len() as u32 } else { 0 };
            part.blocks = of.blocks;
            part.group = of.group.is_some();
            for fails in of.fails.iter().filter(|fails| fails.end_point == end) {
                part.fails.extend(fails.round.map_or(1..=of.rounds, |round| round + 1..=round + 1));
            }
            (part.patience, part.asks) = (self.patience(index, collective), of.max_asks);
            if of.starts_on == StartFile::Initialisation {
                part.starts_on = Message::Initialisation;
            }
            part.last_run = if of.rearm { of.rounds } else { 0 };
            ends[end as usize].join(part);
        }
        let source = &mut ends[of.source as usize];
        if multicast || !of.participants.contains(&of.source) {
            let mut part = Part::of(collective.like(collective.source, tables), Vec::new(), TaskTime::Never);
            (part.watches, part.group) = (true, of.group.is_some());
            (part.patience, part.asks) = (self.patience(index, collective), of.max_asks);
            source.join(part);
        }
        if of.merge.0 == MergeFile::Source {
            let part = source.part_mut(of.cc_id).expect("it takes part or is told");
            let mut gather = Gather::new(collective.tree.device, collective.mask(&collective.tree, tables));
            (gather.in_order, gather.initial) = (collective.pbv_order, collective.initial);
            gather.cycles_per_word = of.merge.1;
            part.gather = Some(gather);
            part.length = words;
            part.divide = if of.mean { of.participants.len() as u32 } else { 0 };
        }
        let configures = self.pbv.setup.configured_by == of.source;
        let lane = index + 1;
        let frames = match self.pbv.setup.file.initialisation {
            InitialisationFile::ThroughMaster => vec![collective.initialise(tables)],
            InitialisationFile::Each => collective.initialise_each(tables),
        };
        let part = source.part_mut(of.cc_id).expect("it takes part or is told");
        part.heeds.extend(collective.tree.preorder().iter().map(|branch| branch.device));
        let whole = self.pbv.setup.file.configuration == ConfigurationFile::OneFrame;
        let concerns = |frame: &Packet| configures && (whole || part.heeds.contains(&frame.header.device));
        let tables_again: Vec<Packet> = self.configuration(tables).into_iter().filter(concerns).collect();
        part.set_up.extend(tables_again);
        part.set_up_cycles = start;
        for (k, mut frame) in frames.into_iter().enumerate() {
            // A context that is started by its initialisation is in its first run.
            frame.header.run = u32::from(of.starts_on == StartFile::Initialisation);
            source.part_mut(of.cc_id).expect("looked at").set_up.push(frame.clone());
            source.then_in(lane, if k == 0 { SendCondition::At(initialise) } else { SendCondition::Next }, frame);
        }
        if of.starts_on == StartFile::Initialisation {
            return;
        }
        let start = of.start_cycle.or(start);
        for run in 1..=if of.rearm { 1 } else { of.rounds } {
            let when = match run {
                1 => SendCondition::At(start),
                _ if of.posted => SendCondition::Next,
                run if collective.groups.is_some() => {
                    SendCondition::Arrived(collective.groups.expect("looked at"), run - 1)
                }
                run => SendCondition::Satisfied(of.cc_id, run - 1),
            };
            let frame = if multicast {
                let row = &operands[0];
                let at = (run as usize - 1) * words % row.len().max(1);
                collective.cast(run, row[at..at + words].to_vec(), of.posted)
            } else {
                collective.command(run)
            };
            source.then_in(lane, when, frame);
        }
    }

    /// How long a node waits for an answer: longer than the engines above it take to give up.
    pub(super) fn patience(&self, index: usize, collective: &plan::Collective) -> u64 {
        let (of, engine) = (&self.pbv.collectives[index], &self.pbv.engine);
        match of.patience_cycles {
            Auto::Fixed(cycles) => cycles,
            Auto::Auto if engine.timeout_cycles == 0 => 0,
            Auto::Auto => {
                let longest = u64::from(engine.timeout_factor).saturating_pow(collective.tree.height());
                let late: u64 = of.late.iter().map(|late| late.cycles).sum();
                let task = match &of.task_cycles {
                    ComputeFile::Same(cycles) => *cycles,
                    ComputeFile::Random { most, .. } => *most,
                    ComputeFile::List(rows) => rows.iter().flatten().copied().max().unwrap_or(0),
                };
                let engines = u64::from(engine.timeout_cycles).saturating_mul(longest);
                engines.saturating_mul(2 * (u64::from(engine.retries) + 2)).saturating_add(late + task).min(1 << 50)
            }
        }
    }

    /// Task times of a participant, round by round.
    pub(super) fn task(&self, index: usize, rank: usize) -> TaskTime {
        let of = &self.pbv.collectives[index];
        if of.data == Data::Called {
            return TaskTime::Called;
        }
        let end = of.participants.list[rank];
        let mut stream = Stream::delays(self.scenario.seed, index, rank);
        let mut times: Vec<u64> = (0..of.rounds as usize)
            .map(|round| match &of.task_cycles {
                ComputeFile::Same(cycles) => *cycles,
                ComputeFile::Random { least, most } => least + stream.below(most - least + 1),
                ComputeFile::List(rows) => {
                    let row = &rows[rank % rows.len()];
                    row[round % row.len()]
                }
            })
            .collect();
        for late in of.late.iter().filter(|late| late.end_point == end) {
            for (round, time) in times.iter_mut().enumerate() {
                if late.round.is_none_or(|only| only as usize == round) {
                    *time = time.saturating_add(late.cycles);
                }
            }
        }
        if times.iter().all(|time| *time == times[0]) { TaskTime::Fixed(times[0]) } else { TaskTime::Trace(times) }
    }
}
