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
//! cycle can be written in it. At most one read and one write are granted a cycle, as far as the bandwidth goes. When it
//! suffices for only one of the two, they take turns *chosen*. A barrier moves one empty packet and no data.
//!
//! A word is 64 bits and holds as many elements (lanes) as fit. The counter counts words; when all have landed, and all
//! of the core's own have left, the core is told.
//!
//! Where elements are summed in a wider type, the fragmenter widens them: it keeps the word it has read and sends it as
//! two or four words of wide lanes, one a cycle, so a word of memory is paid once. A result of the element's type is
//! rounded on its way into memory: two or four responses, taken one a cycle, fill one word, which is paid and written with the
//! last of them. A result that stays wide is written as it comes. Invalid, raised by a signalling NaN when it is widened,
//! travels with its word; the flags of the last rounding are added where it is made.
//!
//! A core whose parts are on several planes gives them turns: in reading, on the link to its switch, and in taking results.

use super::host::Host;
use super::scan;
use super::{OpSelect, Processor, REQUEST, RESPONSE, Registers, channel, plane};
use crate::arith::{Accumulate, Mode};
use crate::fabric::traffic::Traffic;
use crate::fabric::{Block, Flit, Io};
use crate::kernel::{Cycle, Few, FewQueue, Wake};
use crate::probe::{EnumTable, Scope};
use std::sync::Arc;

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
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    cfg: MemoryCfg,
    /// Balance as of cycle `counted`; never above the price of a word plus one cycle's earnings, so that an idle memory
    /// saves nothing up.
    balance_q: u64,
    counted: Cycle,
}

impl Memory {
    /// A rested memory.
    pub fn new(cfg: MemoryCfg) -> Memory {
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
    fn settle(&mut self, now: Cycle) {
        let earned = u128::from(self.cfg.bandwidth.unwrap_or(0)) * u128::from(now - self.counted);
        self.balance_q = (u128::from(self.balance_q) + earned).min(u128::from(self.most())) as u64;
        self.counted = now;
    }

    /// Pays for one word if the balance suffices.
    pub fn grant(&mut self, now: Cycle) -> bool {
        if self.cfg.bandwidth.is_none() {
            return true;
        }
        self.settle(now);
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
        self.settle(now);
        now + self.price().saturating_sub(self.balance_q).div_ceil(bandwidth).max(1)
    }
}

/// What a core does in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobKind {
    /// It sends its vector.
    pub sends: bool,
    /// It receives the result.
    pub receives: bool,
    /// Words are data: they cost memory bandwidth. False for a barrier.
    pub data: bool,
}

/// How a core's elements become those of the network, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Type of an element and the wider one in which it is summed.
    pub pair: Accumulate,
    /// How results are rounded.
    pub mode: Mode,
    /// Results are rounded to the type of the elements; else they stay wide.
    pub narrows: bool,
}

/// What all cores that take part in a collective have in common; millions of them share one.
#[derive(Clone, Debug)]
struct Task {
    id: u16,
    /// Words of the vector in the network.
    words: u64,
    input: Arc<[u64]>,
    /// Elements are summed in a wider type.
    conversion: Option<Conversion>,
    /// It is a scan: how values are combined, and whether the core's own is among them.
    scan: Option<(OpSelect, bool)>,
}

/// One collective as one core takes part in it. A vector of one element needs no memory but this.
#[derive(Clone, Debug)]
pub struct Job {
    task: Arc<Task>,
    plane: u8,
    kind: JobKind,
    flags: u8,
    /// First word of this core in the input.
    offset: usize,
    /// Cycle in which the core calls the collective; `Cycle::MAX` while it may not yet.
    start: Cycle,
    /// Cycle in which it was complete; `Cycle::MAX` before.
    end: Cycle,
    read_q: u64,
    sent_q: u64,
    received_q: u64,
    landed_q: u64,
    /// Words that were read and wait to be sent, by the cycle in which they are there.
    at_fragmenter: FewQueue<Cycle>,
    /// The cycle in which the word of memory that is being widened is there.
    word_there_q: Cycle,
    /// Words being written, by the cycle in which they land.
    landing: FewQueue<Cycle>,
    output: Few<u64, 1>,
    /// What most jobs do not need.
    more: Option<Box<More>>,
}

/// What most jobs do not need.
#[derive(Clone, Debug, Default)]
struct More {
    /// Wide words of a result that wait for the rest of their word of memory.
    collected: Vec<u64>,
    /// The cycle in which each word landed, if somebody asked to keep them.
    landed_at: Option<Vec<Cycle>>,
}

/// The states of a job in waves.
static STATES: EnumTable = EnumTable { name: "core", names: &["IDLE", "SEND", "RECEIVE", "DONE"] };

impl Job {
    /// A job of `words` words in the network; `input` holds this core's words from `offset` on (or nothing, if it only
    /// receives).
    pub fn new(id: u16, kind: JobKind, words: u64, input: Arc<[u64]>, offset: usize, start: Cycle) -> Job {
        let task = Task { id, words, input, conversion: None, scan: None };
        Job {
            task: Arc::new(task),
            plane: 0,
            kind,
            flags: 0,
            offset,
            start,
            end: Cycle::MAX,
            read_q: 0,
            sent_q: 0,
            received_q: 0,
            landed_q: 0,
            at_fragmenter: FewQueue::default(),
            word_there_q: 0,
            landing: FewQueue::default(),
            output: Few::default(),
            more: None,
        }
    }

    /// The part of another core in the same collective.
    #[must_use]
    pub fn of_another(&self, kind: JobKind, offset: usize, start: Cycle) -> Job {
        Job { kind, offset, start, ..self.clone() }
    }

    /// Sums in a wider type than the elements have: `input` holds them as they are, the network carries them widened.
    pub fn convert(&mut self, conversion: Conversion) {
        Arc::make_mut(&mut self.task).conversion = Some(conversion);
    }

    /// Uses the channels of another plane than 0.
    pub fn on_plane(&mut self, plane: u8) {
        self.plane = plane;
    }

    /// Makes it a scan: what comes is what is before this core, to which an inclusive one adds its own value.
    pub fn scan(&mut self, select: OpSelect, inclusive: bool) {
        Arc::make_mut(&mut self.task).scan = Some((select, inclusive));
    }

    /// The number of the element that a packet carries.
    fn number(&self, flit: &Flit) -> u64 {
        if self.task.scan.is_some() { scan::element(flit.tag.seq()) } else { flit.tag.seq() }
    }

    /// What a packet brings: its word, or the result of a scan.
    fn value(&self, flit: &Flit) -> (u64, u8) {
        let Some((select, inclusive)) = self.task.scan else { return (flit.word, flit.tag.flags()) };
        let own = self.task.input.get(self.offset + self.received_q as usize).copied().unwrap_or(0);
        match (scan::is_empty(flit.tag.seq()), inclusive) {
            (true, true) => (own, 0),
            (true, false) => (0, 0),
            (false, false) => (flit.word, flit.tag.flags()),
            (false, true) => {
                let (word, flags) = scan::combine(select, flit.word, own);
                (word, flit.tag.flags() | flags.bits())
            }
        }
    }

    /// Words of the network that one word of memory becomes.
    fn words_read(&self) -> u64 {
        self.task.conversion.map_or(1, |conversion| u64::from(conversion.pair.words()))
    }

    /// Words of the network that become one word of memory.
    fn words_written(&self) -> u64 {
        if self.task.conversion.is_some_and(|conversion| conversion.narrows) { self.words_read() } else { 1 }
    }

    /// Whether the next word read comes from memory, and not from the fragmenter's own register.
    fn pays_read(&self) -> bool {
        self.kind.data && self.read_q.is_multiple_of(self.words_read())
    }

    /// Whether the next word received goes to memory, and not into the collecting register.
    fn pays_write(&self) -> bool {
        let after = self.received_q + 1;
        self.kind.data && (after == self.task.words || after.is_multiple_of(self.words_written()))
    }

    /// The word of the network with this number, and the flags of widening it.
    fn word(&self, number: u64) -> (u64, u8) {
        let at = |index: u64| self.task.input.get(self.offset + index as usize).copied().unwrap_or(0);
        match self.task.conversion {
            None => (at(number), 0),
            Some(Conversion { pair, mode, .. }) => {
                let per_word = u64::from(pair.words());
                let (word, flags) = pair.widen_word(mode, at(number / per_word), (number % per_word) as u32);
                (word, flags.bits())
            }
        }
    }

    /// Takes a word of the result; it lands, with those that were collected before it, in cycle `lands`.
    fn take(&mut self, word: u64, flags: u8, lands: Cycle) {
        let completes = self.pays_write() || !self.kind.data;
        self.received_q += 1;
        self.flags |= flags;
        let Some(Conversion { pair, mode, narrows: true }) = self.task.conversion else {
            self.output.push(word);
            self.landing.push(lands);
            return;
        };
        let collected = &mut self.more.get_or_insert_default().collected;
        collected.push(word);
        if completes {
            let (word, flags) = pair.narrow_words(mode, collected);
            self.output.push(word);
            self.flags |= flags.bits();
            collected.drain(..).for_each(|_| self.landing.push(lands));
        }
    }

    /// Keeps the cycle in which each word lands.
    pub fn keep_times(&mut self) {
        self.more.get_or_insert_default().landed_at = Some(Vec::new());
    }

    /// The cycle in which each word landed, if kept.
    pub fn landed_at(&self) -> &[Cycle] {
        self.more.as_ref().and_then(|more| more.landed_at.as_deref()).unwrap_or_default()
    }

    /// Lets the core call the collective in cycle `start`.
    pub fn release(&mut self, start: Cycle) {
        self.start = start;
    }

    /// The collective id.
    pub fn id(&self) -> u16 {
        self.task.id
    }

    /// The plane of its channels.
    pub fn plane(&self) -> u8 {
        self.plane
    }

    /// Words of the vector in the network.
    pub fn words(&self) -> u64 {
        self.task.words
    }

    /// What the core does.
    pub fn kind(&self) -> JobKind {
        self.kind
    }

    /// Cycle in which the core was to call the collective.
    pub fn start(&self) -> Cycle {
        self.start
    }

    /// Cycle in which the collective was complete for this core.
    pub fn end(&self) -> Option<Cycle> {
        (self.end != Cycle::MAX).then_some(self.end)
    }

    /// Words that landed.
    pub fn landed(&self) -> u64 {
        self.landed_q
    }

    /// The words that were written to memory, in order.
    pub fn output(&self) -> &[u64] {
        self.output.as_slice()
    }

    /// The union of the exception flags that came with the results.
    pub fn flags(&self) -> u8 {
        self.flags
    }

    fn is_open(&self) -> bool {
        self.end == Cycle::MAX
    }

    fn is_active(&self, now: Cycle) -> bool {
        self.is_open() && self.start <= now
    }

    fn sends_done(&self) -> bool {
        !self.kind.sends || self.sent_q == self.task.words
    }

    fn receives_done(&self) -> bool {
        !self.kind.receives || self.landed_q == self.task.words
    }

    /// Whether a read could be granted: words are left and the fragmenter has a place for one more in its pipeline.
    fn wants_read(&self, read_latency: u64) -> bool {
        self.kind.sends && self.read_q < self.task.words && (self.at_fragmenter.len() as u64) < read_latency + 2
    }

    fn state(&self) -> u64 {
        if !self.is_open() {
            3
        } else if self.read_q == 0 && self.received_q == 0 {
            0
        } else if !self.sends_done() {
            1
        } else {
            2
        }
    }
}

/// A core's end point: its memory and its part in any number of collectives.
#[derive(Clone, Debug)]
pub struct Core {
    memory: Memory,
    jobs: Vec<Job>,
    /// Whether the last word granted was a read: the other side goes first next time.
    read_last_q: bool,
    next_job_q: usize,
    /// The plane that goes first with its requests, and the one with its responses.
    next_plane_q: [u8; 2],
    /// One more than the highest plane of its jobs.
    planes: u8,
    /// Cycle from which the core takes responses; before it, it blocks its port.
    consume_from: Cycle,
    /// What it shares with a processor; most cores have none.
    shared: Option<Box<Shared>>,
}

/// What concerns programs.
#[derive(Clone, Debug, Default)]
struct Shared {
    /// Collective ids that programs call.
    called: Vec<u16>,
    /// Ids whose requests are the CCE's.
    left: Vec<u16>,
    /// Jobs that were there before the first cycle: waves show those, as signals must not come and go.
    fixed: usize,
}

impl Core {
    /// A core with no jobs.
    pub fn new(cfg: MemoryCfg) -> Core {
        Core {
            memory: Memory::new(cfg),
            jobs: Vec::new(),
            read_last_q: false,
            next_job_q: 0,
            next_plane_q: [0; 2],
            planes: 1,
            consume_from: 0,
            shared: None,
        }
    }

    fn share(&mut self) -> &mut Shared {
        let fixed = self.jobs.len();
        self.shared.get_or_insert_with(|| Box::new(Shared { fixed, ..Shared::default() }))
    }

    /// Results of this collective id may come before the core has called it: they wait in the network.
    pub fn wait_for(&mut self, id: u16) {
        self.share().called.push(id);
    }

    /// Requests of this collective id are somebody else's at this port: the CCE's.
    pub fn leave(&mut self, id: u16) {
        self.share().left.push(id);
    }

    /// The memory, for others who use it.
    pub(super) fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Latencies of reading and writing a word.
    pub(super) fn latencies(&self) -> (u64, u64) {
        (self.memory.cfg.read_latency, self.memory.cfg.write_latency)
    }

    /// Gives the core a part in a collective.
    pub fn add(&mut self, job: Job) {
        // Millions of cores have one part each: no room for more than there are.
        self.jobs.reserve_exact(1);
        self.planes = self.planes.max(job.plane + 1);
        self.jobs.push(job);
        if let Some(shared) = &mut self.shared {
            shared.fixed = self.jobs.len();
        }
    }

    /// The same while it runs, for a program's call.
    pub(super) fn call(&mut self, job: Job) {
        self.jobs.push(job);
    }

    /// Whether it takes part in collectives in the network, or may. A plain fabric has no channels for them.
    fn is_used(&self) -> bool {
        !self.jobs.is_empty() || self.shared.as_ref().is_some_and(|shared| !shared.called.is_empty())
    }

    /// Its parts in collectives, in the order they were given.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// One of them, to release it.
    pub fn job_mut(&mut self, job: usize) -> &mut Job {
        &mut self.jobs[job]
    }

    /// Lets the core take nothing before `cycle`: a blocked consumer.
    pub fn block_until(&mut self, cycle: Cycle) {
        self.consume_from = cycle;
    }

    /// One clock on port 0.
    pub fn tick(&mut self, io: &mut Io<'_>) -> Wake {
        let now = io.now();
        let mut wake = Wake::OnInput;
        let arriving = if now >= self.consume_from {
            self.arriving(io)
        } else {
            if self.has_arrivals(io) {
                wake = Wake::At(self.consume_from);
            }
            None
        };
        let reading = self.reading(now);

        // Memory: up to one write and one read; the side that was served last yields when there is only enough for one.
        let writes_first = self.read_last_q;
        for write in [writes_first, !writes_first] {
            let granted = match (write, arriving, reading) {
                (true, Some((job, vc)), _) => self.write(io, job, vc),
                (false, _, Some(job)) => self.read(now, job),
                _ => continue,
            };
            if !granted {
                wake = wake.or(Wake::At(self.memory.next_grant(now)));
            }
        }

        self.land(io);
        self.send(io);
        wake.or(self.next_wake(io))
    }

    /// Its planes, from the one whose turn it is with requests or responses.
    fn turns(&self, kind: u8) -> impl Iterator<Item = u8> + use<> {
        let (first, planes) = (self.next_plane_q[usize::from(kind)], self.planes);
        (first..planes).chain(0..first)
    }

    fn has_arrivals(&self, io: &Io<'_>) -> bool {
        (0..channel(self.planes, REQUEST)).any(|vc| io.head(0, vc).is_some())
    }

    /// The job and channel of the packet that could be written now.
    fn arriving(&mut self, io: &mut Io<'_>) -> Option<(usize, u8)> {
        for vc in self.turns(RESPONSE).flat_map(|plane| [channel(plane, RESPONSE), channel(plane, REQUEST)]) {
            let Some(flit) = io.head(0, vc) else { continue };
            let shared = self.shared.as_deref();
            if vc == REQUEST && shared.is_some_and(|shared| shared.left.contains(&flit.tag.id())) {
                continue;
            }
            let job = self.jobs.iter().position(|job| {
                job.task.id == flit.tag.id()
                    && job.is_active(io.now())
                    && job.kind.receives
                    && job.received_q < job.task.words
            });
            let Some(job) = job else {
                // A participant that is late has not called the collective yet; its results wait in the network.
                if !shared.is_some_and(|shared| shared.called.contains(&flit.tag.id()))
                    && !self.jobs.iter().any(|job| job.id() == flit.tag.id() && job.is_open())
                {
                    io.fail(|| {
                        format!("a core got a packet of collective id {} that it has no part in", flit.tag.id())
                    });
                }
                continue;
            };
            let number = self.jobs[job].number(&flit);
            if number != self.jobs[job].received_q {
                let expected = self.jobs[job].received_q;
                io.fail(|| format!("a core got element {number} where {expected} comes next"));
            }
            return Some((job, vc));
        }
        None
    }

    /// The job whose word would be read next: in turn.
    fn reading(&self, now: Cycle) -> Option<usize> {
        let count = self.jobs.len();
        (0..count)
            .map(|i| (self.next_job_q + i) % count)
            .find(|&j| self.jobs[j].is_active(now) && self.jobs[j].wants_read(self.memory.cfg.read_latency))
    }

    fn read(&mut self, now: Cycle, job: usize) -> bool {
        let pays = self.jobs[job].pays_read();
        if pays && !self.memory.grant(now) {
            return false;
        }
        let there = if pays { now + self.memory.cfg.read_latency } else { now };
        let next_job =
            if (self.jobs[job].read_q + 1).is_multiple_of(self.jobs[job].words_read()) { job + 1 } else { job };
        let job = &mut self.jobs[job];
        job.word_there_q = job.word_there_q.max(there);
        job.read_q += 1;
        job.at_fragmenter.push(job.word_there_q);
        self.read_last_q |= pays;
        self.next_job_q = next_job;
        true
    }

    fn write(&mut self, io: &mut Io<'_>, job: usize, vc: u8) -> bool {
        let now = io.now();
        let job = &mut self.jobs[job];
        let pays = job.pays_write();
        if pays && !self.memory.grant(now) {
            return false;
        }
        let flit = io.take(0, vc);
        let (word, flags) = job.value(&flit);
        job.take(word, flags, if pays { now + self.memory.cfg.write_latency } else { now });
        self.read_last_q &= !pays;
        self.next_plane_q[usize::from(RESPONSE)] = (plane(vc) + 1) % self.planes;
        true
    }

    /// Counts what lands in this cycle and tells the core when all is done.
    fn land(&mut self, io: &mut Io<'_>) {
        let now = io.now();
        for job in &mut self.jobs {
            while job.landing.front().is_some_and(|&at| at <= now) {
                job.landing.pop();
                job.landed_q += 1;
                if let Some(times) = job.more.as_mut().and_then(|more| more.landed_at.as_mut()) {
                    times.push(now);
                }
            }
        }
    }

    /// Sends at most one word that is at the fragmenter.
    fn send(&mut self, io: &mut Io<'_>) {
        let now = io.now();
        for plane in self.turns(REQUEST) {
            let vc = channel(plane, REQUEST);
            let ready = |job: &&mut Job| job.plane == plane && job.at_fragmenter.front().is_some_and(|&at| at <= now);
            if let Some(job) = self.jobs.iter_mut().find(ready)
                && io.can_send(0, vc)
            {
                job.at_fragmenter.pop();
                let (word, flags) = job.word(job.sent_q);
                let mut flit = Flit::collective(job.id(), vc, job.sent_q, word);
                flit.tag.set_flags(flags);
                io.send(0, vc, flit);
                job.sent_q += 1;
                self.next_plane_q[usize::from(REQUEST)] = (plane + 1) % self.planes;
                break;
            }
        }
        for job in &mut self.jobs {
            if job.is_active(now) && job.sends_done() && job.receives_done() {
                job.end = now;
                io.complete();
            }
        }
    }

    fn next_wake(&mut self, io: &mut Io<'_>) -> Wake {
        let now = io.now();
        let mut wake = Wake::OnInput;
        for job in &self.jobs {
            if !job.is_open() {
                continue;
            }
            if job.start > now {
                if job.start != Cycle::MAX {
                    wake = wake.or(Wake::At(job.start));
                }
                continue;
            }
            if let Some(&at) = job.at_fragmenter.front() {
                if at > now {
                    wake = wake.or(Wake::At(at));
                } else if io.credits(0, channel(job.plane, REQUEST)) > 0 {
                    wake = wake.or(io.busy_until(0).map_or(Wake::Next, Wake::At));
                }
            }
            if let Some(&at) = job.landing.front() {
                wake = wake.or(Wake::At(at));
            }
        }
        let reading = self.reading(now).is_some_and(|job| self.jobs[job].pays_read());
        let unpaid = self.reading(now).is_some() && !reading;
        let arriving = now >= self.consume_from && self.has_arrivals(io);
        // What the fragmenter widens out of its own register, and what goes into the collecting register, waits for no
        // grant.
        if unpaid || (arriving && self.jobs.iter().any(|job| job.is_active(now) && job.kind.data && !job.pays_write()))
        {
            wake = wake.or(Wake::Next);
        }
        if reading || (arriving && self.jobs.iter().any(|job| job.is_active(now))) {
            wake = wake.or(Wake::At(self.memory.next_grant(now)));
        }
        wake
    }

    /// Whether a word stands at the fragmenter, which can leave when a credit comes.
    fn wants_credits(&self) -> bool {
        self.jobs.iter().any(|job| !job.at_fragmenter.is_empty())
    }

    /// Work that is left, in words.
    pub fn open(&self, now_blocked: bool) -> Option<String> {
        let job = self.jobs.iter().find(|job| job.is_open())?;
        let blocked = if now_blocked { ", and takes nothing for now" } else { "" };
        Some(format!(
            "collective id {}: {} of {} words sent, {} landed{blocked}",
            job.id(),
            job.sent_q,
            if job.kind.sends { job.task.words } else { 0 },
            job.landed_q
        ))
    }

    /// Describes the jobs to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        let fixed = self.shared.as_ref().map_or(self.jobs.len(), |shared| shared.fixed);
        for (number, job) in self.jobs.iter().take(fixed).enumerate() {
            scope.indexed("job", number, |scope| {
                scope.state("state", &STATES, job.state());
                scope.bits("read", 36, job.read_q);
                scope.bits("sent", 36, job.sent_q);
                scope.bits("received", 36, job.received_q);
                scope.bits("landed", 36, job.landed_q);
            });
        }
    }
}

/// An end point of a PIUMA system: a core, traffic, or both at one port.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// The core, if there is one. Its collective packets go before traffic on the shared port.
    pub core: Option<Box<Core>>,
    /// Background traffic.
    pub traffic: Option<Box<Traffic>>,
    /// What runs programs; it needs the core beside it.
    pub processor: Option<Box<Processor>>,
    /// Ranks of collectives in software, one after the other; they need the core beside them.
    pub hosts: Vec<Host>,
}

impl Block for End {
    type Tables = Registers;

    fn tick(&mut self, io: &mut Io<'_>, registers: &Registers) -> Wake {
        let mut wake = Wake::OnInput;
        if let Some(core) = &mut self.core {
            if core.is_used() {
                wake = wake.or(core.tick(io));
            }
            if let Some(processor) = &mut self.processor {
                wake = wake.or(processor.tick(core, io, registers));
            }
            for host in &mut self.hosts {
                wake = wake.or(host.tick(core, io));
            }
        }
        if let Some(traffic) = &mut self.traffic {
            wake = wake.or(traffic.tick(io));
            io.heed_credits(self.core.is_some() || traffic.wants_credits());
        } else if self.processor.is_none() && self.hosts.is_empty() {
            io.heed_credits(self.core.as_ref().is_some_and(|core| core.wants_credits()));
        }
        wake
    }

    fn open(&self) -> Option<String> {
        let core = self.core.as_ref().and_then(|core| core.open(core.consume_from > 0));
        let core = core.or_else(|| self.processor.as_ref().and_then(|processor| processor.open()));
        let core = core.or_else(|| self.hosts.iter().find_map(Host::open));
        core.or_else(|| self.traffic.as_ref().and_then(|traffic| traffic.open()))
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        if let Some(core) = &self.core {
            core.probe(scope);
        }
        if let Some(processor) = &self.processor {
            processor.probe(scope);
        }
        for (number, host) in self.hosts.iter().enumerate() {
            scope.indexed("host", number, |scope| host.probe(scope));
        }
        if let Some(traffic) = &self.traffic {
            traffic.probe(scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(bandwidth: Option<u64>, scale: u64, cycles: Cycle) -> u64 {
        let mut memory = Memory::new(MemoryCfg { bandwidth, scale, read_latency: 0, write_latency: 0 });
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
    fn an_idle_memory_saves_nothing_up() {
        let mut memory = Memory::new(MemoryCfg { bandwidth: Some(32), scale: 1, read_latency: 0, write_latency: 0 });
        let grants: Vec<bool> = (1_000_000..1_000_006).map(|now| memory.grant(now)).collect();
        assert_eq!(grants, [true, true, false, true, false, true]);
    }

    #[test]
    fn the_next_grant_is_the_first_cycle_that_pays() {
        let mut memory = Memory::new(MemoryCfg { bandwidth: Some(10), scale: 1, read_latency: 0, write_latency: 0 });
        assert!(memory.grant(0));
        let next = memory.next_grant(0);
        assert!(!memory.grant(next - 1), "the cycle before is still blocked");
        assert!(memory.grant(next));
    }
}
