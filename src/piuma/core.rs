//! The core's end of a collective: fragmenter, memory with limited bandwidth, element counter (requirements P-AR-1,
//! P-AR-2; "Accelerating Allreduce …", sections "In-network Allreduce on PIUMA" and "Throughput").
//!
//! ```text
//!            ┌──────────────────────── core end point ────────────────────────┐
//!            │          read           ┌────────────┐   request               │
//!            │ memory ────────────────▶│ fragmenter │─────────────────────────┼──▶ port 7 of the switch
//!            │   ▲   bandwidth shared  └────────────┘                         │
//!            │   └──── write ◀── counter of landed words ◀── response ────────┼◀── port 7
//!            └────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | parameter | default | unit | effect on cycles |
//! |---|---|---|---|
//! | bandwidth | 51.2 | Gb/s | reads and writes together; an all-reduce of f64 moves 128 bits an element |
//! | read latency | 0 | cycles | from granting a read to the word being at the fragmenter |
//! | write latency | 0 | cycles | from granting a write to the counter |
//!
//! Timing: with read latency 0 a word is read and sent in one cycle; a word that arrives in the queue at the start of a
//! cycle can be written in it. At most one read and one write are granted a cycle, as far as the bandwidth goes. When
//! it suffices for only one of the two, they take turns *chosen*. Collectives and threads with waiting loads and stores
//! take turns too. A barrier moves one empty packet and no data.
//!
//! A word is 64 bits and holds as many elements (lanes) as fit. The counter counts words; when all have landed, and all
//! of the core's own have left, the collective is complete for the core.
//!
//! Where elements are summed in a wider type, the fragmenter widens them: it keeps the word it has read and sends it as
//! two or four words of wide lanes, one a cycle, so a word costs its memory bandwidth once. A result of the element's
//! type is rounded on its way into memory: two or four responses, taken one a cycle, fill one word, which is written
//! with the last of them and costs its bandwidth then. A result that stays wide is written as it comes. Invalid, raised
//! by a signalling NaN when it is widened, travels with its word; the flags of the last rounding are added where it is
//! made.
//!
//! Segments on several planes take turns at a core: in reading, on the link to its switch, and in taking results.

use super::job::{Job, LocalMemory, is_whole};
use super::{REQUEST, RESPONSE, channel, plane};
use std::sync::Arc;
use watershed_fabric::{Cause, Io};
use watershed_kernel::{Cycle, OneOrMore, Wake};
use watershed_probe::Scope;
use watershed_state::{Loader, Mismatch, Saver, State, state};

/// Parameters of a core's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryCfg {
    /// Bits the memory earns per cycle, times `scale`; `None` never limits.
    pub bandwidth: Option<u64>,
    /// The scale: a word costs 64 times this. With bandwidth in bit/s and a clock in hertz it is the clock.
    pub scale: u64,
    /// Cycles from granting a read to the data.
    pub read_latency: u64,
    /// Cycles from granting a write to the counter.
    pub write_latency: u64,
}

/// The bandwidth account of a memory: it earns every cycle and pays for every word.
#[derive(Clone, Debug)]
pub struct Memory {
    cfg: Arc<MemoryCfg>,
    /// Balance as of cycle `counted`; never above the price of a word plus one cycle's earnings, so that an idle memory
    /// saves nothing up.
    balance_q: u64,
    counted: Cycle,
}

state!(Memory { saved: balance_q, counted; built: cfg });

impl Memory {
    /// A rested memory. All memories of a system share their parameters.
    pub fn new(cfg: Arc<MemoryCfg>) -> Memory {
        let mut memory = Memory { cfg, balance_q: 0, counted: 0 };
        memory.balance_q = memory.most();
        memory
    }

    fn price(&self) -> u64 {
        64 * self.cfg.scale
    }

    fn most(&self) -> u64 {
        self.price().saturating_add(self.cfg.bandwidth.unwrap_or(0))
    }

    /// Credits the cycles up to `now`.
    fn accrue_credits(&mut self, now: Cycle) {
        // A sum that does not fit is above the most in any case.
        let earned = self.cfg.bandwidth.unwrap_or(0).saturating_mul(now - self.counted);
        self.balance_q = self.balance_q.saturating_add(earned).min(self.most());
        self.counted = now;
    }

    /// Pays for one word if the balance suffices.
    pub fn grant(&mut self, now: Cycle) -> bool {
        if self.cfg.bandwidth.is_none() {
            return true;
        }
        self.accrue_credits(now);
        let price = self.price();
        let enough = self.balance_q >= price;
        if enough {
            self.balance_q -= price;
        }
        enough
    }

    /// The first cycle from the next one on in which a word can be paid.
    pub fn next_grant(&mut self, now: Cycle) -> Cycle {
        let Some(bandwidth) = self.cfg.bandwidth else { return now + 1 };
        self.accrue_credits(now);
        let missing = self.price().saturating_sub(self.balance_q);
        if missing <= bandwidth { now + 1 } else { now + missing.div_ceil(bandwidth) }
    }
}

/// The last word granted to collectives was a read: a write goes first next time.
const READ_LAST: u8 = 1;
/// A thread of the core waits for a word.
const THREAD_WAITS: u8 = 2;
/// The last word granted while a thread waited was the thread's.
const THREAD_LAST: u8 = 4;

/// The source of the next write to memory.
#[derive(Clone, Copy, Debug)]
enum WriteSource {
    /// The packet at the head of a channel, by a job.
    Arriving(usize, u8),
    /// What has left the unit of an inclusive scan.
    Combined(usize),
}

/// A core's end point: its memory and its part in any number of collectives.
///
/// It is woken twice in a collective of one word, among millions, and what it is woken for waits for its memory to be fetched.
/// So what a core with one job of one word has of its own is two lines of a cache side by side, and nothing else.
///
/// ```
/// use std::sync::Arc;
/// use watershed_fabric::{Bench, Flit, Vcs};
/// use watershed_piuma::{Core, End, Job, JobKind, MemoryCfg, REQUEST, RESPONSE, Registers, RegistersCfg};
/// # use watershed_fabric::routing::{Routes, Routing};
/// # use watershed_fabric::topology::Die;
/// # let routes = Routes { routing: Routing::Die(Die::default()), ends: Vec::new() };
///
/// # let registers = Registers::new(RegistersCfg { switches: 1, ids: 4, external_ports: 10 }, vec!["sw0".to_owned()], routes);
/// // A memory that moves half a word a cycle.
/// let memory = MemoryCfg { bandwidth: Some(32), scale: 1, read_latency: 0, write_latency: 0 };
/// let mut core = Core::new(Arc::new(memory));
/// let kind = JobKind { sends: true, receives: true, data: true };
/// core.add(Job::new(3, kind, 2, [10, 20].into(), 0, 5)); // two words of collective 3, called in cycle 5
/// let end = End { core: Some(Box::new(core)), ..End::default() };
/// // The results arrive in cycles 50 and 51.
/// let results = (0..2).map(|seq| (50 + seq, 0, Flit::collective(3, RESPONSE, seq, 70 + seq)));
/// let mut bench = Bench::<_, _, 1>::at_the_end(end, registers, Vcs { set: 2, unicast: 0 }, results);
/// while bench.tick() {}
/// let sent: Vec<_> = bench.sent().iter().map(|(cycle, _, flit)| (*cycle, flit.tag.vc(), flit.word)).collect();
/// assert_eq!(sent, [(5, REQUEST, 10), (6, REQUEST, 20)]);
/// let job = &bench.block().core.as_ref().unwrap().jobs()[0];
/// assert_eq!((job.end(), job.output()), (Some(51), &[70, 71][..]));
/// ```
#[derive(Clone, Debug)]
#[repr(align(128))]
pub struct Core {
    memory: Memory,
    jobs: OneOrMore<Job>,
    /// What most cores do not have.
    extras: Option<Box<CoreExtras>>,
    next_job_q: u32,
    /// Whose turn it is at the memory: [`READ_LAST`], [`THREAD_WAITS`], [`THREAD_LAST`].
    turns_q: u8,
    /// The plane that goes first with its requests, and the one with its responses.
    next_plane_q: [u8; 2],
    /// One more than the highest plane of its jobs.
    planes: u8,
}

impl State for Core {
    fn save(&self, to: &mut Saver) {
        let Core { memory, jobs, extras, next_job_q, turns_q, next_plane_q, planes } = self;
        memory.save(to);
        to.values((extras, next_job_q, turns_q, next_plane_q, planes));
        to.value(&jobs.as_slice().len());
        to.each(jobs.as_slice().iter());
    }

    /// Jobs of calls are added to those that are built.
    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        self.memory.load(from)?;
        (self.extras, self.next_job_q, self.turns_q, self.next_plane_q, self.planes) = from.value()?;
        for _ in self.jobs().len()..from.value()? {
            self.jobs.push(Job::blank());
        }
        from.each(self.jobs.as_mut_slice().iter_mut())
    }
}

/// State that most cores do not need, most of it for programs.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct CoreExtras {
    /// Cycle from which the core takes responses; before it, it blocks its port.
    consume_from: Cycle,
    /// Collective ids that programs call, and those of them that are inclusive scans.
    called: Vec<u16>,
    combining: Vec<u16>,
    /// Those that are in a conflict set.
    claiming: Vec<u16>,
    /// Ids whose requests are the CCE's.
    left: Vec<u16>,
    /// Jobs that were there before the first cycle: waves show those, as signals must not come and go.
    fixed: usize,
}

impl Core {
    /// A core with no jobs.
    pub fn new(cfg: Arc<MemoryCfg>) -> Core {
        Core {
            memory: Memory::new(cfg),
            jobs: OneOrMore::default(),
            extras: None,
            next_job_q: 0,
            turns_q: 0,
            next_plane_q: [0; 2],
            planes: 1,
        }
    }

    fn extras_mut(&mut self) -> &mut CoreExtras {
        let fixed = self.jobs().len();
        self.extras.get_or_insert_with(|| Box::new(CoreExtras { fixed, ..CoreExtras::default() }))
    }

    /// Results of this collective id may come before the core has called it: they wait in the network.
    /// `combines`: they are of an inclusive scan.
    pub fn wait_for(&mut self, id: u16, combines: bool) {
        self.extras_mut().called.push(id);
        if combines {
            self.extras_mut().combining.push(id);
        }
    }

    /// Requests of this collective id belong to the CCE at this port.
    pub fn leave(&mut self, id: u16) {
        self.extras_mut().left.push(id);
    }

    /// Calls of this collective id claim.
    pub fn claims(&mut self, id: u16) {
        self.extras_mut().claiming.push(id);
    }

    fn is(&self, turn: u8) -> bool {
        self.turns_q & turn != 0
    }

    fn set(&mut self, turn: u8, on: bool) {
        self.turns_q = if on { self.turns_q | turn } else { self.turns_q & !turn };
    }

    /// Pays for a word of a collective, unless it is the turn of a thread that waits.
    fn grant(&mut self, now: Cycle) -> bool {
        if self.is(THREAD_WAITS) && !self.is(THREAD_LAST) {
            return false;
        }
        let granted = self.memory.grant(now);
        self.set(THREAD_LAST, self.is(THREAD_LAST) && !granted);
        granted
    }

    /// Pays for a word of a thread; who is refused waits, and takes turns with collectives.
    pub(super) fn grant_thread(&mut self, now: Cycle) -> bool {
        let granted = self.memory.grant(now);
        self.set(THREAD_WAITS, self.is(THREAD_WAITS) || !granted);
        self.set(THREAD_LAST, self.is(THREAD_LAST) || granted);
        granted
    }

    /// Says that no thread waits for memory; those that do ask again in this cycle.
    pub(super) fn no_thread_waits(&mut self) {
        self.set(THREAD_WAITS, false);
    }

    /// The memory, for others who use it.
    pub(super) fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Latencies of reading and writing a word.
    pub fn latencies(&self) -> (u64, u64) {
        (self.memory.cfg.read_latency, self.memory.cfg.write_latency)
    }

    /// Gives the core a part in a collective.
    pub fn add(&mut self, job: Job) {
        self.planes = self.planes.max(job.plane + 1);
        self.jobs.push(job);
        if let Some(extras) = &mut self.extras {
            extras.fixed = self.jobs.as_slice().len();
        }
    }

    /// The same while it runs, for a program's call.
    pub(super) fn call(&mut self, mut job: Job) {
        job.mark_called();
        self.jobs.push(job);
    }

    /// The same for a rank of an application: in the place of an earlier job that is over, if there is one. Says which place.
    pub(super) fn call_in(&mut self, place: Option<usize>, mut job: Job) -> usize {
        job.mark_called();
        match place {
            Some(at) => *self.job_mut(at) = job,
            None => self.jobs.push(job),
        }
        place.unwrap_or(self.jobs().len() - 1)
    }

    /// Whether it takes part in collectives in the network, or may. A plain fabric has no channels for them.
    pub(super) fn is_used(&self) -> bool {
        !self.jobs().is_empty() || self.extras.as_ref().is_some_and(|extras| !extras.called.is_empty())
    }

    /// Its parts in collectives, in the order they were given.
    #[inline]
    pub fn jobs(&self) -> &[Job] {
        self.jobs.as_slice()
    }

    /// Whether its part in a collective begins at a time that will come.
    pub(super) fn expects(&self, now: Cycle) -> bool {
        self.jobs().iter().any(|job| job.start > now && job.start != Cycle::MAX)
    }

    /// One of them, to release it.
    pub fn job_mut(&mut self, job: usize) -> &mut Job {
        &mut self.jobs.as_mut_slice()[job]
    }

    /// Lets the core take nothing before `cycle`: a blocked consumer.
    pub fn block_until(&mut self, cycle: Cycle) {
        self.extras_mut().consume_from = cycle;
    }

    /// Cycle from which the core takes responses.
    fn consume_from(&self) -> Cycle {
        self.extras.as_ref().map_or(0, |extras| extras.consume_from)
    }

    /// One clock on port 0; `local` is the memory in which vectors of calls by programs are.
    pub(super) fn tick(&mut self, io: &mut Io<'_>, mut local: LocalMemory<'_>) -> Wake {
        let now = io.now();
        let mut wake = Wake::OnInput;
        let arriving = match self.arrivals(io) {
            0 => None,
            _ if now < self.consume_from() => {
                wake = Wake::At(self.consume_from());
                None
            }
            arrivals => self.arriving(io, arrivals),
        };
        // A result of an inclusive scan comes to the unit that adds the core's own value, with a read of that; results that
        // have left the unit go before others.
        let (adding, arriving) = match arriving {
            Some((job, vc)) if self.jobs()[job].combines().is_some() => (Some((job, vc)), None),
            other => (None, other),
        };
        let combined = self.jobs().iter().position(|job| job.combined_at().is_some_and(|at| at <= now));
        let writing = combined.map(WriteSource::Combined).or(arriving.map(|(job, vc)| WriteSource::Arriving(job, vc)));
        let reading = if adding.is_some() { None } else { self.reading(now) };

        // Memory: up to one write and one read; the side that was served last yields when there is only enough for one.
        let writes_first = self.is(READ_LAST);
        for write in [writes_first, !writes_first] {
            let granted = match (write, writing, adding, reading) {
                (true, Some(writing), ..) => self.write(io, writing, local.as_deref_mut()),
                (false, _, Some((job, vc)), _) => self.combine(io, job, vc, local.as_deref()),
                (false, _, None, Some(job)) => self.read(now, job, local.as_deref()),
                _ => continue,
            };
            if !granted {
                wake = wake.or(Wake::At(self.memory.next_grant(now)));
            }
        }

        self.send(io);
        wake.or(self.land(io))
    }

    /// The plane behind another one.
    fn after(&self, plane: u8) -> u8 {
        if plane + 1 < self.planes { plane + 1 } else { 0 }
    }

    /// The channels of its planes on which something has come, a bit each.
    #[inline]
    fn arrivals(&self, io: &Io<'_>) -> u32 {
        io.occupied(0) & ((1 << channel(self.planes, REQUEST)) - 1)
    }

    /// The job and channel of the packet that could be written now, of those channels on which something has come.
    fn arriving(&self, io: &mut Io<'_>, arrivals: u32) -> Option<(usize, u8)> {
        // Planes take turns.
        let first = self.next_plane_q[usize::from(RESPONSE)];
        for plane in (first..self.planes).chain(0..first) {
            for vc in [channel(plane, RESPONSE), channel(plane, REQUEST)] {
                if arrivals >> vc & 1 == 1
                    && let Some(job) = self.taker(io, vc)
                {
                    return Some((job, vc));
                }
            }
        }
        None
    }

    /// The job that takes the packet at the head of a channel.
    fn taker(&self, io: &mut Io<'_>, vc: u8) -> Option<usize> {
        let (now, flit) = (io.now(), io.head(0, vc)?);
        let (id, jobs, extras) = (flit.tag.id(), self.jobs(), self.extras.as_deref());
        if vc == REQUEST && extras.is_some_and(|extras| extras.left.contains(&id)) {
            return None;
        }
        let takes = |job: &Job| job.id() == id && job.takes(now);
        let Some((at, job)) = jobs.iter().enumerate().find(|(_, job)| takes(job)) else {
            // A participant that is late has not called the collective yet; its results wait in the network.
            let is_late = jobs.iter().any(|job| job.id() == id && job.is_open());
            if !is_late && !extras.is_some_and(|extras| extras.called.contains(&id)) {
                io.fail(|| format!("a core got a packet of collective id {id} that it has no part in"));
            }
            return None;
        };
        let (number, expected) = (job.number(&flit), job.arrived());
        if number != expected {
            io.fail(|| format!("a core got element {number} where {expected} comes next"));
        }
        job.has_room_to_combine(self.memory.cfg.read_latency).then_some(at)
    }

    /// The job whose word would be read next: in turn.
    fn reading(&self, now: Cycle) -> Option<usize> {
        let (before, behind) = self.jobs().split_at(self.next_job_q as usize);
        let wants = |job: &Job| job.is_active(now) && job.wants_read(self.memory.cfg.read_latency);
        let at = behind.iter().position(wants).map(|at| before.len() + at);
        at.or_else(|| before.iter().position(wants))
    }

    fn read(&mut self, now: Cycle, at: usize, local: Option<&Vec<u64>>) -> bool {
        let pays = self.jobs()[at].pays_read();
        if pays && !self.grant(now) {
            return false;
        }
        let job = &mut self.jobs.as_mut_slice()[at];
        job.fetch(if pays { now + self.memory.cfg.read_latency } else { now }, local);
        // Who reads a whole word gives the next one its turn.
        self.next_job_q = (at + usize::from(is_whole(job.read_q, job.words_read()))) as u32;
        self.set(READ_LAST, self.is(READ_LAST) || pays);
        true
    }

    /// Takes a result of an inclusive scan, and reads the core's own value for it.
    fn combine(&mut self, io: &mut Io<'_>, at: usize, vc: u8, local: Option<&Vec<u64>>) -> bool {
        let now = io.now();
        let Some(end) = self.jobs()[at].combines() else { return false };
        if !self.grant(now) {
            return false;
        }
        let flit = io.take(0, vc);
        let job = &mut self.jobs.as_mut_slice()[at];
        job.combine(end, &flit, now + self.memory.cfg.read_latency, local);
        self.set(READ_LAST, true);
        self.next_plane_q[usize::from(RESPONSE)] = self.after(plane(vc));
        true
    }

    fn write(&mut self, io: &mut Io<'_>, writing: WriteSource, local: LocalMemory<'_>) -> bool {
        let now = io.now();
        let (WriteSource::Arriving(at, _) | WriteSource::Combined(at)) = writing;
        let pays = self.jobs()[at].pays_write();
        if pays && !self.grant(now) {
            return false;
        }
        let job = &mut self.jobs.as_mut_slice()[at];
        let (word, flags) = match writing {
            WriteSource::Arriving(_, vc) => {
                let value = job.value(&io.take(0, vc));
                self.next_plane_q[usize::from(RESPONSE)] = self.after(plane(vc));
                value
            }
            WriteSource::Combined(_) => job.combined().unwrap_or_default(),
        };
        let lands = if pays { now + self.memory.cfg.write_latency } else { now };
        self.jobs.as_mut_slice()[at].take(word, flags, lands, local);
        self.set(READ_LAST, self.is(READ_LAST) && !pays);
        true
    }

    /// Sends at most one word that is at the fragmenter.
    fn send(&mut self, io: &mut Io<'_>) {
        let (now, first) = (io.now(), self.next_plane_q[usize::from(REQUEST)]);
        let ready = |job: &&mut Job| job.at_fragmenter.is_due(now) && io.can_send(0, channel(job.plane, REQUEST));
        // The planes behind the one whose turn it is come before those ahead of it.
        let turn = |job: &&mut Job| (job.plane < first, job.plane);
        let Some(job) = self.jobs.as_mut_slice().iter_mut().filter(ready).min_by_key(turn) else { return };
        let (plane, vc) = (job.plane, channel(job.plane, REQUEST));
        let flit = job.leave();
        io.send(0, vc, flit);
        self.next_plane_q[usize::from(REQUEST)] = self.after(plane);
    }

    /// Counts what lands in this cycle, tells the core of every collective that is done, and says what comes next.
    fn land(&mut self, io: &mut Io<'_>) -> Wake {
        let now = io.now();
        let (mut wake, mut active) = (Wake::OnInput, false);
        for job in self.jobs.as_mut_slice().iter_mut().filter(|job| job.is_open()) {
            if job.start > now {
                if job.start != Cycle::MAX {
                    wake = wake.or(Wake::At(job.start));
                }
                continue;
            }
            if let Some(claim) = job.claimed().filter(|_| job.start == now) {
                io.waited(0, Cause::Claim, now - claim.ready);
            }
            job.land(now);
            if job.sends_done() && job.receives_done() {
                job.end = now;
                io.complete();
                continue;
            }
            active = true;
            if let Some(at) = job.at_fragmenter.front() {
                if at > now {
                    wake = wake.or(Wake::At(at));
                } else if io.credits(0, channel(job.plane, REQUEST)) > 0 {
                    wake = wake.or(io.busy_until(0).map_or(Wake::Next, Wake::At));
                }
            }
            for at in [job.landing.front(), job.combined_at().filter(|&at| at > now)].into_iter().flatten() {
                wake = wake.or(Wake::At(at));
            }
        }
        if active { wake.or(self.next_word(io)) } else { wake }
    }

    /// When the next word can be read or written.
    fn next_word(&mut self, io: &Io<'_>) -> Wake {
        let (now, mut wake) = (io.now(), Wake::OnInput);
        let pays_read = self.reading(now).map(|job| self.jobs()[job].pays_read());
        let takers = if now >= self.consume_from() && self.arrivals(io) != 0 { self.jobs() } else { &[] };
        let mut takers = takers.iter().filter(|job| job.is_active(now));
        // What the fragmenter widens out of its own register, and what goes into the collecting register, waits for no
        // grant.
        let taken = takers.clone().any(|job| job.kind.data && !job.pays_write());
        if pays_read == Some(false) || taken {
            wake = wake.or(Wake::Next);
        }
        let combined = self.jobs().iter().any(|job| job.combined_at().is_some_and(|at| at <= now));
        if pays_read == Some(true) || combined || takers.next().is_some() {
            wake = wake.or(Wake::At(self.memory.next_grant(now)));
        }
        wake
    }

    /// Whether a word stands at the fragmenter, which can leave when a credit comes.
    pub(super) fn wants_credits(&self) -> bool {
        self.jobs().iter().any(|job| !job.at_fragmenter.is_empty())
    }

    /// Whether a packet of a collective waits for a call by a program, which has not come.
    pub(super) fn has_not_called(&self, id: u16, vc: u8) -> bool {
        let called = self.extras.as_deref().is_some_and(|extras| extras.called.contains(&id));
        called && vc < channel(self.planes, REQUEST) && !self.jobs().iter().any(|job| job.id() == id && job.is_open())
    }

    /// Work that is left, in words.
    pub fn open(&self) -> Option<String> {
        let job = self.jobs().iter().find(|job| job.is_open())?;
        let blocked = if self.consume_from() > 0 { ", and takes nothing for now" } else { "" };
        Some(format!(
            "collective id {}: {} of {} words sent, {} landed{blocked}",
            job.id(),
            job.sent(),
            if job.kind.sends { job.words() } else { 0 },
            job.landed()
        ))
    }

    /// Describes the jobs to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        let fixed = self.extras.as_ref().map_or(self.jobs().len(), |extras| extras.fixed);
        for (number, job) in self.jobs().iter().take(fixed).enumerate() {
            scope.indexed("job", number, |scope| {
                Job::probe(Some(job), (job.combines().is_some(), job.claimed().is_some()), scope);
            });
        }
        if let Some(extras) = &self.extras {
            for &id in &extras.called {
                // Calls of an id run one after the other.
                let job = self.jobs().iter().rev().find(|job| job.id() == id);
                scope.indexed("call", id.into(), |scope| {
                    Job::probe(job, (extras.combining.contains(&id), extras.claiming.contains(&id)), scope);
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::*;

    fn granted(bandwidth: Option<u64>, scale: u64, cycles: Cycle) -> u64 {
        let mut memory = Memory::new(MemoryCfg { bandwidth, scale, read_latency: 0, write_latency: 0 }.into());
        (0..cycles).map(|now| u64::from(memory.grant(now))).sum()
    }

    #[test]
    fn a_busy_memory_moves_exactly_its_bandwidth() {
        // 51.2 Gb/s at 1 GHz: 0.8 words a cycle. The rested memory's first word comes on top.
        assert_eq!(granted(Some(51_200_000_000), 1_000_000_000, 100_000), 80_001);
        assert_eq!(granted(Some(64), 1, 1000), 1000, "a word a cycle");
        assert_eq!(granted(Some(1), 1, 64_000), 1001, "a bit a cycle");
        assert_eq!(granted(None, 1, 1000), 1000);
    }

    #[test]
    fn a_core_with_one_job_is_two_lines_of_a_cache() {
        assert_eq!((size_of::<Core>(), size_of::<End>()), (128, 24));
    }

    #[test]
    fn an_idle_memory_saves_nothing_up() {
        let mut memory =
            Memory::new(MemoryCfg { bandwidth: Some(32), scale: 1, read_latency: 0, write_latency: 0 }.into());
        let grants: Vec<bool> = (1_000_000..1_000_006).map(|now| memory.grant(now)).collect();
        assert_eq!(grants, [true, true, false, true, false, true]);
        // What one earns while it rests may not fit 64 bits: what is left of it after 2^64 is nothing here, or as good as
        // nothing. Three words in four cycles, and the rested one.
        let cfg = MemoryCfg { bandwidth: Some(3 << 38), scale: 1 << 34, read_latency: 0, write_latency: 0 };
        let grants = [1 << 10, 1 << 26, (1 << 26) + 1, 1 << 40].map(|rest| {
            let mut memory = Memory::new(cfg.into());
            let busy = (0..1000).filter(|&now| memory.grant(now)).count();
            assert_eq!(busy, 751);
            (1000 + rest..2000 + rest).map(|now| memory.grant(now)).collect::<Vec<_>>()
        });
        for rested in &grants {
            assert_eq!(rested.iter().filter(|&&granted| granted).count(), 751);
            assert_eq!(rested, &grants[0]);
        }
    }

    #[test]
    fn the_next_grant_is_the_first_cycle_that_pays() {
        let mut memory =
            Memory::new(MemoryCfg { bandwidth: Some(10), scale: 1, read_latency: 0, write_latency: 0 }.into());
        assert!(memory.grant(0));
        let next = memory.next_grant(0);
        assert!(!memory.grant(next - 1), "the cycle before is still blocked");
        assert!(memory.grant(next));
    }
}
