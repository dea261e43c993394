//! The PBV family's part of a configuration, and the rules its keys have among each other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

mod groups;
mod stranger;

use groups::{groups, setup};
use stranger::stranger;

use super::context_share::ContextShare;
use super::file::{
    CollectiveFile, CongestionFile, EngineFile, FailsFile, FaultFile, KindFile, MEAN, MergeFile, OrderFile, PbvFile,
    ReportsFile, SetupFile, StartFile, StrangerFile, TreeFile,
};
use super::rules::{arithmetic, check_engines, check_fault, check_spread, initial, merging, same_every_round, timing};
use crate::armed::config::link_layer;
use crate::armed::file::{ComputeFile, LateFile, LinkLayerFile};
use crate::collective::{Data, Participants};
use crate::file::{Auto, ParticipantsFile};
use crate::names::{Layout, NamedValues, layout};
use crate::participants::{end_point, listed, nobody_receives};
use crate::problem::Problem;
use crate::random::Stream;
use crate::topology::Topology;
use crate::values::{self, Length};
use watershed_arith::{DType, Op, Round, pack_words};
use watershed_pbv_interface::packet::{MAX_PAYLOAD_BYTES, Message};
use watershed_pbv_interface::queues::messages_of;

/// The PBV part of a checked scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pbv {
    /// The engines.
    pub engine: EngineFile,
    /// How they are set up.
    pub setup: Setup,
    /// Distance of switches' device IDs.
    pub device_stride: u32,
    /// The collectives.
    pub collectives: Vec<Collective>,
    /// Requests for congestion metrics.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<Congestion>,
    /// Congestion reports: the file's choices and the end point that gets them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reports: Option<(ReportsFile, u32)>,
    /// Who sends frames that are not his to send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strangers: Vec<Stranger>,
    /// Link layer of links with faults.
    pub link_layer: LinkLayerFile,
    /// Faults.
    pub faults: Vec<FaultFile>,
}

/// A device that sends frames it is not entitled to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stranger {
    /// As it is written.
    #[serde(flatten)]
    pub file: StrangerFile,
    /// Number of the collective it disturbs.
    #[serde(skip)]
    pub collective: usize,
    /// Messages, one after the other.
    #[serde(skip)]
    pub messages: Vec<Message>,
}

/// Requests for congestion metrics of engines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Congestion {
    /// Switches whose engines are asked.
    pub switches: Vec<u32>,
    /// When.
    pub cycle: u64,
    /// The end point that asks.
    pub by: u32,
    /// Which engine of each switch.
    pub plane: u8,
}

/// How engines are set up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setup {
    /// The file's choices.
    #[serde(flatten)]
    pub file: SetupFile,
    /// The end point that configures.
    pub configured_by: u32,
    /// The switch that a large frame goes to.
    pub through: u32,
}

/// A collective.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Collective {
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: KindFile,
    /// Operation.
    #[serde(serialize_with = "named")]
    pub op: Op,
    /// The result is divided by the number of participants, by each of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mean: bool,
    /// Type of an element.
    #[serde(serialize_with = "named")]
    pub dtype: DType,
    /// Rounding.
    #[serde(serialize_with = "named")]
    pub round: Round,
    /// Denormals become zero.
    pub flush_to_zero: bool,
    /// Elements of the vector of a round; 0 of a barrier.
    #[serde(rename = "elements_per_round")]
    pub elements: u32,
    /// What accumulators begin with, as a bit pattern.
    pub initial: Option<u64>,
    /// Order of reduction.
    pub order: OrderFile,
    /// Context.
    pub cc_id: u16,
    /// The end point that issues it.
    pub source: u32,
    /// Who takes part.
    pub participants: Participants,
    /// Its place in an inter-group barrier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Its share of the rounds of a collective that are spread over several contexts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<ContextShare>,
    /// The switch of the master engine.
    pub master: u32,
    /// How engines hang below it.
    pub tree: TreeFile,
    /// Engines that report elsewhere: switch and the one above.
    pub parents: BTreeMap<u32, u32>,
    /// Switches whose engines hand responses on unmerged.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub forwards: BTreeSet<u32>,
    /// Who merges what the master gets.
    #[serde(skip_serializing_if = "is_usual")]
    pub merge: (MergeFile, u64),
    /// Traffic class.
    #[serde(skip_serializing_if = "is_lowest")]
    pub traffic_class: u8,
    /// Which engine of each switch.
    pub plane: u8,
    /// Rounds.
    pub rounds: u32,
    /// Armed again when satisfied.
    pub rearm: bool,
    /// What starts tasks.
    pub starts_on: StartFile,
    /// Cycle of the first command.
    pub start_cycle: Auto<u64>,
    /// Task times.
    pub task_cycles: ComputeFile,
    /// Participants that take longer.
    pub late: Vec<LateFile>,
    /// Participants whose tasks fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fails: Vec<FailsFile>,
    /// Nodes work at nothing else until they are answered.
    pub blocks: bool,
    /// Patience of nodes; 0 is without end.
    pub patience_cycles: Auto<u64>,
    /// How often they ask.
    pub max_asks: u32,
    /// Nobody acknowledges a multicast.
    pub posted: bool,
    /// Contributions.
    pub data: Data,
    /// Random data is the same in every round.
    pub same_every_round: bool,
}

/// A group of an inter-group barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Which of them, counted from 0.
    pub number: u8,
    /// How many there are.
    pub count: u8,
    /// Context of the first.
    pub first: u16,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn named<T: NamedValues, S: serde::Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.name())
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_usual(merge: &(MergeFile, u64)) -> bool {
    merge.0 == MergeFile::Master
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_lowest(class: &u8) -> bool {
    *class == 0
}

impl Pbv {
    /// Messages that the output queue of an engine has to hold.
    fn least_output(&self) -> u64 {
        let handed_on: usize = self.collectives.iter().map(|of| of.forwards.len()).sum();
        messages_of(self.collectives.len() as u64, handed_on as u64)
    }

    /// Messages that the output queue of an engine holds.
    pub fn output_messages(&self) -> u32 {
        match self.engine.output_messages {
            Auto::Fixed(messages) => messages,
            Auto::Auto => self.least_output() as u32,
        }
    }
}

impl Collective {
    /// The name of its operation.
    pub fn op_name(&self) -> &'static str {
        if self.mean { MEAN } else { self.op.name() }
    }

    /// 64-bit words of a contribution.
    pub fn words(&self) -> u32 {
        self.elements.div_ceil(self.dtype.lanes())
    }

    /// Rows of data: one a participant, or the source's.
    pub fn rows(&self) -> usize {
        match self.kind {
            KindFile::Allreduce => self.participants.len(),
            KindFile::Barrier | KindFile::InterGroupBarrier => 0,
            KindFile::Multicast => 1,
        }
    }

    /// All contributions: a row a participant, the words of all rounds one after the other. A collective draws by its number in the scenario; what is spread
    /// over several contexts draws as the first of them would draw alone, so that the vector is the same in any number of contexts.
    pub fn operands(&self, index: usize, seed: u64) -> Vec<Vec<u64>> {
        let of = self;
        let shape = layout(of.dtype);
        let rounds = if of.same_every_round { 1 } else { of.rounds };
        let packed = |row: &[u64]| pack_words(of.dtype, row);
        let round =
            |place| of.share.filter(|_| !of.same_every_round).map_or(place, |share: ContextShare| share.round(place));
        match &of.data {
            Data::Values(given) => {
                let all = |row: &Vec<u64>| -> Vec<u64> {
                    (0..rounds)
                        .flat_map(|place| packed(values::frame(row, of.elements as usize, round(place))))
                        .collect()
                };
                values::patterns(given, of.dtype).iter().map(all).collect()
            }
            Data::Random(distribution) => (0..of.rows())
                .map(|rank| {
                    let first = index - of.share.map_or(0, |share| share.number as usize);
                    let mut stream = Stream::data(seed, first, rank);
                    let mut draw = || packed(&stream.elements(of.elements.into(), *distribution, shape));
                    let (mut words, mut drawn) = (Vec::new(), 0);
                    for place in 0..rounds {
                        (drawn..round(place)).for_each(|_| drop(draw()));
                        words.extend(draw());
                        drawn = round(place) + 1;
                    }
                    words
                })
                .collect(),
            Data::None | Data::Called | Data::File { .. } => vec![Vec::new(); of.participants.len()],
        }
    }
}

/// Words of data of a scenario, at most.
const MAX_WORDS: u64 = 1 << 25;

/// Checks the PBV table and fills in what follows.
pub fn resolve(file: &PbvFile, topology: &Topology, replays: bool, problems: &mut Vec<Problem>) -> Pbv {
    link_layer("pbv", &file.link_layer, replays, problems);
    let device_stride = device_ids(file, topology, problems);
    let mut names = BTreeMap::new();
    let mut contexts = BTreeMap::new();
    let mut total = 0u64;
    let mut collectives = Vec::new();
    let (mut all, mut next) = (Vec::new(), 0);
    for (index, collective) in file.collective.iter().enumerate() {
        let path = format!("pbv.collective[{index}]");
        let resolved = if collective.kind == KindFile::InterGroupBarrier {
            groups(collective, (index, next), &path, file, topology, problems)
        } else {
            split_over_contexts(
                one(collective, (index, next), &path, file, topology, problems),
                collective,
                &path,
                problems,
            )
        };
        next += resolved.len() as u32;
        all.extend(resolved.into_iter().map(|resolved| (path.clone(), resolved)));
    }
    for (path, resolved) in all {
        if let Some(first) = names.insert(resolved.name.clone(), path.clone()) {
            problems.push(
                Problem::at(format!("{path}.name"), format!("the name \"{}\" is taken", resolved.name))
                    .related(format!("{first}.name"), "by this one"),
            );
        }
        if let Some(first) = contexts.insert(resolved.cc_id, path.clone()) {
            problems.push(
                Problem::at(format!("{path}.cc_id"), format!("context {} is taken", resolved.cc_id))
                    .related(first, "by this collective"),
            );
        }
        let rounds = if resolved.same_every_round { 1 } else { u64::from(resolved.rounds) };
        let words = (resolved.rows() as u64).saturating_mul(u64::from(resolved.words())).saturating_mul(rounds);
        total = total.saturating_add(words);
        if total > MAX_WORDS {
            problems.push(
                Problem::at(
                    format!("{path}.rounds"),
                    format!("{total} words of data in the whole scenario are too many"),
                )
                .expected(format!("up to {MAX_WORDS}: participants x words x rounds"))
                .help("`data.same_every_round = true` draws them once"),
            );
            break;
        }
        collectives.push(resolved);
    }
    for (index, fault) in file.fault.iter().enumerate() {
        check_fault(fault, &format!("pbv.fault[{index}]"), problems);
    }
    let setup = setup(&file.setup, &collectives, topology, problems);
    let mut asked = Vec::new();
    for (index, request) in file.congestion.iter().enumerate() {
        asked.extend(congestion(request, index, file, setup.configured_by, topology, problems));
    }
    let reports = file.reports.as_ref().map(|of| reports(of, setup.configured_by, topology, problems));
    let mut strange = |(index, file)| stranger(file, index, (&collectives, &setup), topology, problems);
    let strangers = file.stranger.iter().enumerate().filter_map(&mut strange).collect();
    let pbv = Pbv {
        engine: file.engine.clone(),
        strangers,
        reports,
        congestion: asked,
        setup,
        device_stride,
        collectives,
        link_layer: file.link_layer.clone(),
        faults: file.fault.clone(),
    };
    let (least, given) = (pbv.least_output(), u64::from(pbv.output_messages()));
    if given < least {
        problems.push(
            Problem::at(
                "pbv.engine.output_messages",
                format!("with {given} messages engines could wait for each other for ever"),
            )
            .expected(format!("{least} or more, or \"auto\""))
            .help("16, and 4 for each context; as many more as there are engines that hand responses on"),
        );
    }
    pbv
}

/// Congestion reports, and the end point that gets them.
fn reports(reports: &ReportsFile, usual: u32, topology: &Topology, problems: &mut Vec<Problem>) -> (ReportsFile, u32) {
    if reports.until.is_some_and(|until| until >= reports.above) {
        problems.push(
            Problem::at("pbv.reports.until", "a queue would be reported again while it stands as high")
                .expected(format!("less than `above`, {}", reports.above)),
        );
    }
    for (at, queue) in reports.queues.iter().enumerate() {
        if super::congestion::queue(queue).is_none() {
            let known = super::file::WATCHED;
            problems.push(
                Problem::at(format!("pbv.reports.queues[{at}]"), format!("there is no queue \"{queue}\""))
                    .nearest(queue, known),
            );
        }
    }
    let to = reports.to.unwrap_or(usual);
    if reports.to.is_some() {
        end_point(to.into(), topology.end_points(), "pbv.reports.to", problems);
    }
    (reports.clone(), to)
}

fn congestion(
    file: &CongestionFile,
    index: usize,
    pbv: &PbvFile,
    configures: u32,
    topology: &Topology,
    problems: &mut Vec<Problem>,
) -> Option<Congestion> {
    let path = format!("pbv.congestion[{index}]");
    let by = file.by.unwrap_or(configures);
    let known = file.by.is_none_or(|by| end_point(by.into(), topology.end_points(), &format!("{path}.by"), problems));
    let switches = if file.at == "all" {
        (0..topology.switches()).collect()
    } else {
        vec![switch(&file.at, topology, format!("{path}.at"), problems)?]
    };
    if file.plane >= pbv.engine.per_switch {
        problems.push(
            Problem::at(format!("{path}.plane"), format!("switches have no engine {}", file.plane))
                .expected(format!("up to {}", pbv.engine.per_switch - 1)),
        );
        return None;
    }
    known.then_some(Congestion { switches, cycle: file.cycle, by, plane: file.plane as u8 })
}

/// Device IDs have 16 bits, and 0xffff is nobody's.
fn device_ids(file: &PbvFile, topology: &Topology, problems: &mut Vec<Problem>) -> u32 {
    let mut at_switch = BTreeMap::new();
    for end in 0..topology.end_points().min(1 << 16) {
        *at_switch.entry(topology.end_point(end).0).or_insert(0u32) += 1;
    }
    let most = at_switch.values().copied().max().unwrap_or(0) + 1;
    let stride = file.device_stride.unwrap_or_else(|| most.next_power_of_two().max(16));
    if stride < most {
        problems.push(
            Problem::at("pbv.device_stride", format!("a switch with its nodes has {most} device IDs"))
                .expected(format!("at least {most}")),
        );
    }
    let all = u64::from(topology.switches()) * u64::from(stride);
    if all > 0xffff {
        let place = if file.device_stride.is_some() { "pbv.device_stride" } else { "topology" };
        problems.push(
            Problem::at(place, format!("{} switches with {stride} device IDs each are too many", topology.switches()))
                .expected("device IDs of 16 bits"),
        );
    }
    let own = match file.engine.attach {
        super::file::AttachFile::Own => file.engine.per_switch,
        _ => 0,
    };
    if topology.ports() + own > MOST_PORTS {
        problems.push(
            Problem::at("pbv.engine.per_switch", format!("{} ports a switch are too many", topology.ports() + own))
                .expected(format!("up to {MOST_PORTS}, those of the engines included")),
        );
    }
    stride
}

/// Ports of a switch: a set of requests is a word.
const MOST_PORTS: u32 = 64;

fn switch(name: &str, topology: &Topology, path: String, problems: &mut Vec<Problem>) -> Option<u32> {
    let found = topology.switch_by_name(name);
    if found.is_none() {
        problems.push(Problem::at(path, format!("there is no switch \"{name}\"")).expected(topology.switch_names()));
    }
    found
}

/// End points that take part: those that are listed, of certain switches, without some.
fn participants(file: &CollectiveFile, path: &str, topology: &Topology, problems: &mut Vec<Problem>) -> Vec<u32> {
    let ends = topology.end_points();
    let mut list = listed(&file.participants, ends, "takes part twice", &format!("{path}.participants"), problems);
    if !file.at_switches.is_empty() {
        let named = file.at_switches.iter().enumerate();
        let at: BTreeSet<u32> = named
            .filter_map(|(k, name)| switch(name, topology, format!("{path}.at_switches[{k}]"), problems))
            .collect();
        list.retain(|&end| at.contains(&topology.end_point(end).0));
    }
    for (at, &end) in file.except.iter().enumerate() {
        end_point(end.into(), ends, &format!("{path}.except[{at}]"), problems);
    }
    list.retain(|end| !file.except.contains(end));
    list
}

/// Engines that report elsewhere than the tree says.
fn parents(
    given: &BTreeMap<String, String>,
    master: u32,
    path: &str,
    topology: &Topology,
    problems: &mut Vec<Problem>,
) -> BTreeMap<u32, u32> {
    let mut parents = BTreeMap::new();
    for (below, above) in given {
        let here = format!("{path}.parents.{below}");
        let below = switch(below, topology, here.clone(), problems);
        let above = switch(above, topology, here.clone(), problems);
        if let (Some(below), Some(above)) = (below, above) {
            if below == above || below == master {
                let what = if below == master { "the master reports to nobody" } else { "it reports to itself" };
                problems.push(Problem::at(here, what));
            }
            parents.insert(below, above);
        }
    }
    parents
}

fn one(
    file: &CollectiveFile,
    (index, next): (usize, u32),
    path: &str,
    pbv: &PbvFile,
    topology: &Topology,
    problems: &mut Vec<Problem>,
) -> Collective {
    let ends = topology.end_points();
    let all = file.participants == ParticipantsFile::All && file.at_switches.is_empty() && file.except.is_empty();
    let list = participants(file, path, topology, problems);
    if list.is_empty() {
        problems.push(Problem::at(format!("{path}.participants"), "nobody takes part").expected("at least one"));
    }
    let source = file.source.or(list.first().copied()).unwrap_or(0);
    let sound = file.source.is_none() || end_point(source.into(), ends, &format!("{path}.source"), problems);
    if file.kind == KindFile::Multicast && list == [source] {
        problems.push(nobody_receives(path));
    }
    let mut master = if sound && source < ends { topology.end_point(source).0 } else { 0 };
    if let Some(name) = &file.master {
        master = switch(name, topology, format!("{path}.master"), problems).unwrap_or(0);
    }
    let parents = parents(&file.parents, master, path, topology, problems);
    let forwards = forwards(&file.forwards, master, path, topology, problems);
    check_engines(file, path, pbv, problems);
    timing(file, path, &list, problems);
    let mean = file.kind == KindFile::Allreduce && file.op.as_deref() == Some(MEAN);
    let dtype = file.dtype.as_deref().and_then(DType::from_name).unwrap_or(DType::F64);
    let given = file.op.as_deref().and_then(Op::from_name);
    let op = match file.kind {
        KindFile::Barrier | KindFile::InterGroupBarrier => Op::Barrier,
        // A multicast reduces nothing; its context could.
        KindFile::Allreduce | KindFile::Multicast => given.unwrap_or(Op::Sum),
    };
    arithmetic(file, path, op, dtype, problems);
    merging(file, path, problems);
    if mean && !matches!(layout(dtype), Layout::Float { .. }) {
        problems.push(
            Problem::at(format!("{path}.op"), format!("a mean is a quotient: it has no type {}", dtype.name()))
                .expected("a floating-point type, or \"sum\""),
        );
    }
    let elements = if file.kind.is_barrier() { 0 } else { file.elements.unwrap_or(1) };
    let most = MAX_PAYLOAD_BYTES as u32 / 8 * dtype.lanes();
    if elements > most {
        problems.push(
            Problem::at(
                format!("{path}.elements"),
                format!("{elements} elements of type {} do not fit a frame", dtype.name()),
            )
            .expected(format!("up to {most}: {MAX_PAYLOAD_BYTES} bytes")),
        );
    }
    let mut collective = Collective {
        name: file.name.clone().unwrap_or_else(|| format!("c{index}")),
        kind: file.kind,
        op,
        mean,
        dtype,
        round: file.round.as_deref().and_then(Round::from_name).unwrap_or(Round::NearestEven),
        flush_to_zero: file.flush_to_zero,
        elements,
        initial: None,
        order: file.order,
        cc_id: file.cc_id.unwrap_or(next) as u16,
        source,
        participants: Participants { list, all },
        group: None,
        share: None,
        master,
        tree: file.tree,
        parents,
        forwards,
        merge: (file.merge, file.merge_cycles_per_word),
        traffic_class: file.traffic_class as u8,
        plane: file.plane as u8,
        rounds: file.rounds,
        rearm: file.rearm,
        starts_on: file.starts_on,
        start_cycle: file.start_cycle,
        task_cycles: file.task_cycles.clone(),
        late: file.late.clone(),
        fails: file.fails.clone(),
        blocks: file.blocks,
        patience_cycles: file.patience_cycles,
        max_asks: file.max_asks,
        posted: file.posted,
        same_every_round: same_every_round(file, elements),
        data: Data::None,
    };
    collective.initial = initial(file.initial.as_ref(), path, dtype, problems);
    collective.data = data(file, path, &collective, problems);
    collective
}

/// A collective whose rounds are spread over several contexts, as one in each.
fn split_over_contexts(
    whole: Collective,
    file: &CollectiveFile,
    path: &str,
    problems: &mut Vec<Problem>,
) -> Vec<Collective> {
    check_spread(file, path, problems);
    let count = file.contexts.min(whole.rounds);
    let (first, last) = (u32::from(whole.cc_id), u32::from(whole.cc_id) + count - 1);
    if last >= 1 << 12 {
        let problem = Problem::at(format!("{path}.contexts"), format!("contexts {first} to {last}"));
        problems.push(problem.expected("contexts up to 4095"));
    }
    if count == 1 || last >= 1 << 12 {
        return vec![whole];
    }
    let part = |number| {
        let share = ContextShare { number, count };
        Collective {
            name: format!("{}.{number}", whole.name),
            cc_id: (first + number) as u16,
            rounds: share.rounds(whole.rounds),
            task_cycles: share.task_cycles(&whole.task_cycles),
            late: share.late(&whole.late),
            fails: share.fails(&whole.fails),
            share: Some(share),
            ..whole.clone()
        }
    };
    (0..count).map(part).collect()
}

/// What the participants of a collective contribute.
/// Switches whose engines hand responses on.
fn forwards(
    names: &[String],
    master: u32,
    path: &str,
    topology: &Topology,
    problems: &mut Vec<Problem>,
) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for (at, name) in names.iter().enumerate() {
        let here = format!("{path}.forwards[{at}]");
        if name == "all" {
            all.extend((0..topology.switches()).filter(|&switch| switch != master));
        } else if let Some(switch) = switch(name, topology, here.clone(), problems) {
            if switch == master {
                problems.push(Problem::at(here, "the master has nobody to hand responses on to"));
            }
            all.insert(switch);
        }
    }
    all
}

fn data(file: &CollectiveFile, path: &str, collective: &Collective, problems: &mut Vec<Problem>) -> Data {
    let path = format!("{path}.data");
    if collective.kind.is_barrier() {
        if file.data.is_some() {
            problems.push(Problem::at_key(path, "a barrier has no data"));
        }
        return Data::None;
    }
    let usual = values::default_distribution(collective.dtype);
    let Some(data) = &file.data else { return Data::Random(usual) };
    let Some(given) = &data.values else { return Data::Random(data.random.unwrap_or(usual)) };
    values::not_both(data.random, &path, problems);
    let who = format!("{}, in the order of `participants`", collective.rows());
    let vector = Length { frame: u64::from(collective.elements), rounds: u64::from(collective.rounds) };
    values::check_values(
        given,
        &format!("{path}.values"),
        (collective.rows(), who),
        (vector, collective.dtype),
        problems,
    );
    Data::Values(given.clone())
}
