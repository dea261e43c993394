//! The part of one core in one collective: the fragmenter's registers, the element counter, and the vector's words.
//!
//! | register | in waves | what |
//! |---|---|---|
//! | fragmenter | `fragmenter.held`, `fragmenter.word` | words that were read and wait to leave, and the oldest of them once it is there |
//! | read | `read` | words that memory has granted to the fragmenter |
//! | combine | `combine.held`, `combine.word` | inclusive scans: results in the unit that adds the core's own value, and the next one out |
//! | claim | `claims` | of a collective that overlaps others: the core waits for the [claim](super::claim) |
//! | element counter | `landed` | words of the result that are in memory; all of them complete the collective |
//!
//! The vectors of a call by a program are in local memory ([`VectorPlace`]). The fragmenter reads a word in the cycle in
//! which memory grants it, and a word of the result is there from the cycle in which its write is granted (requirement
//! H-MEM-1, `hardware.md`). Programs cannot write the vectors of a collective that starts by itself.

use super::{OpSelect, REQUEST, channel, scan};
use std::collections::VecDeque;
use std::sync::Arc;
use watershed_arith::{Accumulate, Mode};
use watershed_fabric::Flit;
use watershed_kernel::{Cycle, QueueHead};
use watershed_probe::{EnumTable, Scope};
use watershed_state::{Loader, Mismatch, Saver, State};

/// What a core does in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct JobKind {
    /// It sends its vector.
    pub sends: bool,
    /// It receives the result.
    pub receives: bool,
    /// Words are data: they cost memory bandwidth. False for a barrier.
    pub data: bool,
}

/// How a core's elements become those of the network, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Conversion {
    /// Type of an element and the wider one in which it is summed.
    pub pair: Accumulate,
    /// How results are rounded.
    pub mode: Mode,
    /// Results are rounded to the type of the elements; else they stay wide.
    pub narrows: bool,
}

/// What all cores that take part in a collective have in common; millions of them share one.
#[derive(Clone, Debug, watershed_state::Saved)]
struct Task {
    id: u16,
    /// Words of the vector in the network.
    words: u64,
    input: Arc<[u64]>,
    /// Elements are summed in a wider type.
    conversion: Option<Conversion>,
    /// It is a scan.
    scan: Option<ScanEnd>,
}

/// The core's end of a scan: what comes is what is before this core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct ScanEnd {
    /// How values are combined.
    pub select: OpSelect,
    /// Whether the core's own value is among them.
    pub inclusive: bool,
    /// Cycles of the unit that adds it.
    pub stages: u64,
}

/// Where the vectors of a call are in local memory, in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct VectorPlace {
    /// The first word of the input.
    pub from: usize,
    /// The first word of the result.
    pub to: usize,
    /// Words of the input.
    pub words: u64,
    /// The bits of its last word that are elements.
    pub last: u64,
}

/// The times of a claim for a core's part in a collective (see [`claim`](super::claim)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct ClaimTimes {
    /// When the core was ready.
    pub ready: Cycle,
    /// When the last participant was, and the end point of that.
    pub last: (Cycle, usize),
    /// When the arbiter was asked.
    pub asked: Cycle,
    /// When it granted.
    pub granted: Cycle,
}

/// The local memory of a core that runs programs, as far as anything was written to it.
pub(super) type LocalMemory<'a> = Option<&'a mut Vec<u64>>;

/// A word of local memory.
fn word_at(local: Option<&Vec<u64>>, at: usize) -> u64 {
    local.and_then(|words| words.get(at)).copied().unwrap_or(0)
}

/// One collective as one core takes part in it. A vector of one element needs no memory but this, and millions of cores have
/// such a one each: everything that can be told from something else is.
#[derive(Clone, Debug)]
pub struct Job {
    task: Arc<Task>,
    /// Cycle in which the core calls the collective; `Cycle::MAX` while it may not yet.
    pub(super) start: Cycle,
    /// Cycle in which it was complete; `Cycle::MAX` before.
    pub(super) end: Cycle,
    /// Words that were read; what is not at the fragmenter any more was sent.
    pub(super) read_q: u64,
    /// Words that were received; what is neither collected nor being written has landed.
    pub(super) received_q: u64,
    /// The words that were read and wait to be sent: the cycle in which the oldest is there.
    pub(super) at_fragmenter: QueueHead,
    /// The words that are being written: the cycle in which the oldest lands.
    pub(super) landing: QueueHead,
    /// The word that was written to memory, if it is only one.
    word: u64,
    /// First word of this core in the input.
    offset: usize,
    /// State that most jobs do not need.
    extras: Option<Box<JobExtras>>,
    pub(super) plane: u8,
    pub(super) kind: JobKind,
    flags: u8,
    /// Whether `word` holds the output.
    one_word: bool,
    /// Whether it was added while the system ran.
    called: bool,
}

impl State for Job {
    /// The task is built with the job, but for a job that came to be while the system ran.
    fn save(&self, to: &mut Saver) {
        let Job {
            task,
            start,
            end,
            read_q,
            received_q,
            at_fragmenter,
            landing,
            word,
            offset,
            extras,
            plane,
            kind,
            flags,
            one_word,
            called,
        } = self;
        to.value(called);
        if *called {
            to.value(&**task);
        }
        to.values((start, end, read_q, received_q, at_fragmenter, landing, word, offset, extras));
        to.values((plane, kind, flags, one_word));
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        self.called = from.value()?;
        if self.called {
            self.task = from.value()?;
        }
        (
            self.start,
            self.end,
            self.read_q,
            self.received_q,
            self.at_fragmenter,
            self.landing,
            self.word,
            self.offset,
            self.extras,
        ) = from.value()?;
        (self.plane, self.kind, self.flags, self.one_word) = from.value()?;
        Ok(())
    }
}

/// What most jobs do not need.
#[derive(Clone, Debug, Default, watershed_state::Saved)]
struct JobExtras {
    /// The words at the fragmenter behind the oldest, by the cycle in which they are there.
    at_fragmenter: VecDeque<Cycle>,
    /// The words that are being written behind the oldest, by the cycle in which they land.
    landing: VecDeque<Cycle>,
    /// All words that were written to memory, once they are more than one.
    output: Vec<u64>,
    /// Wide words of a result that wait for the rest of their word of memory.
    collected: Vec<u64>,
    /// The cycle in which each word landed, if they are recorded.
    landed_at: Option<Vec<Cycle>>,
    /// The cycle in which each word was at the fragmenter; kept together with `landed_at`.
    there_at: Vec<Cycle>,
    /// Where the vectors of a program's call are.
    place: Option<VectorPlace>,
    /// The words of such a call's input as memory had them when it granted them.
    read: Vec<u64>,
    /// The claim it needs, or needed.
    claim: Option<ClaimTimes>,
    /// Inclusive scans: results on their way through the unit that adds the core's own value, oldest first.
    combining: VecDeque<(Cycle, u64, u8)>,
}

/// The states of a job in waves.
static STATES: EnumTable = EnumTable { name: "core", names: &["IDLE", "SEND", "RECEIVE", "DONE"] };

impl Job {
    /// A job of nothing, to be loaded.
    pub(super) fn blank() -> Job {
        Job::new(0, JobKind { sends: false, receives: false, data: false }, 0, Arc::from([]), 0, 0)
    }

    /// It is added while the system runs.
    pub(super) fn mark_called(&mut self) {
        self.called = true;
    }

    /// A job of `words` words in the network; `input` holds this core's words from `offset` on (or nothing, if it only
    /// receives).
    pub fn new(id: u16, kind: JobKind, words: u64, input: Arc<[u64]>, offset: usize, start: Cycle) -> Job {
        let task = Task { id, words, input, conversion: None, scan: None };
        Job {
            task: Arc::new(task),
            start,
            end: Cycle::MAX,
            read_q: 0,
            received_q: 0,
            at_fragmenter: QueueHead::default(),
            landing: QueueHead::default(),
            word: 0,
            offset,
            extras: None,
            plane: 0,
            kind,
            flags: 0,
            one_word: false,
            called: false,
        }
    }

    /// The part of another core in the same collective.
    #[must_use]
    pub fn of_another(&self, kind: JobKind, offset: usize, start: Cycle) -> Job {
        Job { start, offset, kind, ..self.clone() }
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
    pub fn scan(&mut self, end: ScanEnd) {
        Arc::make_mut(&mut self.task).scan = Some(end);
    }

    /// Takes the input from local memory and puts the result there.
    pub fn set_vectors(&mut self, place: VectorPlace) {
        self.extras.get_or_insert_default().place = Some(place);
    }

    fn place(&self) -> Option<VectorPlace> {
        self.extras.as_ref()?.place
    }

    /// The words of the input as they were read, of a call with its vectors in local memory.
    pub fn words_from_memory(&self) -> &[u64] {
        self.extras.as_ref().map_or(&[], |extras| &extras.read)
    }

    /// Whether results go through a unit that adds the core's own value.
    pub fn combines(&self) -> Option<ScanEnd> {
        self.task.scan.filter(|end| end.inclusive && self.kind.data)
    }

    fn combining(&self) -> u64 {
        self.extras.as_ref().map_or(0, |extras| extras.combining.len() as u64)
    }

    /// Words of the result that have come.
    pub(super) fn arrived(&self) -> u64 {
        self.received_q + self.combining()
    }

    /// Whether the unit of an inclusive scan, and the way to it, can take one more.
    pub(super) fn has_room_to_combine(&self, read_latency: u64) -> bool {
        self.combines().is_none_or(|end| self.combining() < read_latency + end.stages + 2)
    }

    /// The cycle in which the unit's next result is there.
    pub(super) fn combined_at(&self) -> Option<Cycle> {
        self.extras.as_ref()?.combining.front().map(|&(at, ..)| at)
    }

    /// The core's own value of an element, read now.
    fn own(&self, number: u64, local: Option<&Vec<u64>>) -> u64 {
        match self.place() {
            Some(place) => {
                word_at(local, place.from + number as usize) & if number + 1 == place.words { place.last } else { !0 }
            }
            None => self.task.input.get(self.offset + number as usize).copied().unwrap_or(0),
        }
    }

    /// Takes a result into the unit that adds the core's own value, which is read now and there in cycle `there`.
    pub(super) fn combine(&mut self, end: ScanEnd, flit: &Flit, there: Cycle, local: Option<&Vec<u64>>) {
        let own = self.own(self.arrived(), local);
        let (word, flags) = if scan::is_empty(flit.tag.seq()) {
            (own, 0)
        } else {
            let (word, flags) = scan::combine(end.select, flit.word, own);
            (word, flit.tag.flags() | flags.bits())
        };
        self.extras.get_or_insert_default().combining.push_back((there + end.stages, word, flags));
    }

    /// The unit's next result, to be written.
    pub(super) fn combined(&mut self) -> Option<(u64, u8)> {
        self.extras.as_mut()?.combining.pop_front().map(|(_, word, flags)| (word, flags))
    }

    /// The number of the element that a packet carries.
    pub(super) fn number(&self, flit: &Flit) -> u64 {
        if self.task.scan.is_some() { scan::element(flit.tag.seq()) } else { flit.tag.seq() }
    }

    /// What a packet brings: its word; of a scan what is before this core, which is nothing for the first.
    pub(super) fn value(&self, flit: &Flit) -> (u64, u8) {
        match self.task.scan {
            Some(_) if scan::is_empty(flit.tag.seq()) => (0, 0),
            _ => (flit.word, flit.tag.flags()),
        }
    }

    /// Words of the network that one word of memory becomes.
    pub(super) fn words_read(&self) -> u64 {
        self.task.conversion.map_or(1, |conversion| u64::from(conversion.pair.words()))
    }

    /// Words of the network that become one word of memory.
    fn words_written(&self) -> u64 {
        if self.task.conversion.is_some_and(|conversion| conversion.narrows) { self.words_read() } else { 1 }
    }

    /// Whether the next word read comes from memory, and not from the fragmenter's own register.
    #[inline]
    pub(super) fn pays_read(&self) -> bool {
        self.kind.data && is_whole(self.read_q, self.words_read())
    }

    /// Whether the next word received goes to memory, and not into the collecting register.
    #[inline]
    pub(super) fn pays_write(&self) -> bool {
        let after = self.received_q + 1;
        self.kind.data && (after == self.task.words || is_whole(after, self.words_written()))
    }

    /// The word of the network with this number, and the flags of widening it.
    pub(super) fn word_of(&self, number: u64) -> (u64, u8) {
        let at = |index: u64| match &self.extras {
            Some(extras) if extras.place.is_some() => extras.read.get(index as usize).copied().unwrap_or(0),
            _ => self.task.input.get(self.offset + index as usize).copied().unwrap_or(0),
        };
        match self.task.conversion {
            None => (at(number), 0),
            Some(Conversion { pair, mode, .. }) => {
                let per_word = u64::from(pair.words());
                let (word, flags) = pair.widen_word(mode, at(number / per_word), (number % per_word) as u32);
                (word, flags.bits())
            }
        }
    }

    /// Reads a word; it is at the fragmenter in cycle `there`, and not before the one ahead of it.
    #[inline]
    pub(super) fn fetch(&mut self, there: Cycle, local: Option<&Vec<u64>>) {
        if self.place().is_some() && is_whole(self.read_q, self.words_read()) {
            let word = self.own(self.read_q / self.words_read(), local);
            self.extras.get_or_insert_default().read.push(word);
        }
        let newest = self.extras.as_ref().and_then(|extras| extras.at_fragmenter.back().copied());
        let there = newest.or(self.at_fragmenter.front()).map_or(there, |newest| newest.max(there));
        self.read_q += 1;
        if let Some(extras) = self.extras.as_mut().filter(|extras| extras.landed_at.is_some()) {
            extras.there_at.push(there);
        }
        self.at_fragmenter.push(there, || &mut self.extras.get_or_insert_default().at_fragmenter);
    }

    /// Writes words; they land in cycle `lands`.
    #[inline]
    fn store(&mut self, words: usize, lands: Cycle) {
        for _ in 0..words {
            self.landing.push(lands, || &mut self.extras.get_or_insert_default().landing);
        }
    }

    /// Counts the words that land in cycle `now`.
    #[inline]
    pub(super) fn land(&mut self, now: Cycle) {
        while self.landing.is_due(now) {
            self.landing.pop(self.extras.as_mut().map(|extras| &mut extras.landing));
            if let Some(times) = self.extras.as_mut().and_then(|extras| extras.landed_at.as_mut()) {
                times.push(now);
            }
        }
    }

    /// Appends a word to the output.
    fn put_out(&mut self, word: u64, local: LocalMemory<'_>) {
        if let (Some(place), Some(local)) = (self.place(), local) {
            let at = place.to + self.output().len();
            if local.len() <= at {
                local.resize(at + 1, 0);
            }
            local[at] = word;
        }
        let first = !self.one_word && self.extras.as_ref().is_none_or(|extras| extras.output.is_empty());
        if !first {
            let output = &mut self.extras.get_or_insert_default().output;
            if self.one_word {
                output.push(self.word);
            }
            output.push(word);
        }
        (self.word, self.one_word) = (word, first);
    }

    /// Takes a word of the result; it lands, with those that were collected before it, in cycle `lands`.
    #[inline]
    pub(super) fn take(&mut self, word: u64, flags: u8, lands: Cycle, local: LocalMemory<'_>) {
        self.flags |= flags;
        let Some(Conversion { pair, mode, narrows: true }) = self.task.conversion else {
            self.received_q += 1;
            self.put_out(word, local);
            self.store(1, lands);
            return;
        };
        let completes = self.pays_write() || !self.kind.data;
        self.received_q += 1;
        let collected = &mut self.extras.get_or_insert_default().collected;
        collected.push(word);
        if completes {
            let (words, (word, flags)) = (collected.len(), pair.narrow_words(mode, collected));
            collected.clear();
            self.put_out(word, local);
            self.flags |= flags.bits();
            self.store(words, lands);
        }
    }

    /// Keeps the cycles in which each word is at the fragmenter and in which each lands.
    pub fn keep_times(&mut self) {
        self.extras.get_or_insert_default().landed_at = Some(Vec::new());
    }

    /// The cycle in which each word landed, if kept.
    pub fn landed_at(&self) -> &[Cycle] {
        self.extras.as_ref().and_then(|extras| extras.landed_at.as_deref()).unwrap_or_default()
    }

    /// The cycle in which each word was at the fragmenter, if kept.
    pub fn there_at(&self) -> &[Cycle] {
        self.extras.as_ref().map_or(&[], |extras| &extras.there_at)
    }

    /// Lets the core call the collective in cycle `start`.
    pub fn release(&mut self, start: Cycle) {
        self.start = start;
    }

    /// Lets it wait for its claim, for which it is ready from cycle `ready` on.
    pub fn claim(&mut self, ready: Cycle) {
        self.start = Cycle::MAX;
        self.extras.get_or_insert_default().claim = Some(ClaimTimes { ready, ..ClaimTimes::default() });
    }

    /// The claim has been granted: it starts.
    pub fn grant(&mut self, claimed: ClaimTimes, start: Cycle) {
        self.start = start;
        let claim = &mut self.extras.get_or_insert_default().claim;
        *claim = claim.map(|before| ClaimTimes { ready: before.ready, ..claimed });
    }

    /// Its claim, if it needs one.
    pub fn claimed(&self) -> Option<ClaimTimes> {
        self.extras.as_ref()?.claim
    }

    /// Cycle in which the core called the collective, whatever it had to claim before it could start.
    pub fn called(&self) -> Cycle {
        self.claimed().map_or(self.start, |claim| claim.ready)
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

    /// Words that stand at the fragmenter, or are on their way from memory to it.
    fn waiting(&self) -> u64 {
        u64::from(!self.at_fragmenter.is_empty())
            + self.extras.as_ref().map_or(0, |extras| extras.at_fragmenter.len() as u64)
    }

    /// Sends the oldest word at the fragmenter.
    #[inline]
    pub(super) fn leave(&mut self) -> Flit {
        let number = self.sent();
        self.at_fragmenter.pop(self.extras.as_mut().map(|extras| &mut extras.at_fragmenter));
        let (word, flags) = self.word_of(number);
        let mut flit = Flit::part(self.id(), channel(self.plane, REQUEST), number, 0, 1, word);
        if flags != 0 {
            flit.tag.set_flags(flags);
        }
        flit
    }

    /// Whether it takes the next packet of its collective.
    #[inline]
    pub(super) fn takes(&self, now: Cycle) -> bool {
        self.is_active(now) && self.kind.receives && self.arrived() < self.task.words
    }

    /// Describes the registers to a wave: of a job, or at reset.
    pub(super) fn probe(job: Option<&Job>, (combines, claims): (bool, bool), scope: &mut Scope<'_>) {
        let register = |of: fn(&Job) -> u64| job.map_or(0, of);
        scope.state("state", &STATES, register(Job::state));
        if claims {
            scope.bit("claims", job.is_some_and(|job| job.is_open() && job.start == Cycle::MAX));
        }
        scope.bits("read", 36, register(|job| job.read_q));
        scope.bits("sent", 36, register(Job::sent));
        scope.bits("received", 36, register(|job| job.received_q));
        scope.bits("landed", 36, register(Job::landed));
        scope.scope("fragmenter", |scope| {
            scope.bits("held", 8, register(Job::waiting));
            let oldest = job.filter(|job| job.waiting() > 0);
            scope.valid("word", 64, oldest.map(|job| job.word_of(job.sent()).0));
        });
        if combines {
            scope.scope("combine", |scope| {
                scope.bits("held", 8, register(Job::combining));
                let next = job.and_then(|job| job.extras.as_ref()?.combining.front());
                scope.valid("word", 64, next.map(|&(_, word, _)| word));
            });
        }
    }

    /// Words that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.read_q - self.waiting()
    }

    /// Words that landed.
    pub fn landed(&self) -> u64 {
        let held = |extras: &JobExtras| extras.landing.len() + extras.collected.len();
        let held = self.extras.as_ref().map_or(0, |extras| held(extras) as u64);
        self.received_q - held - u64::from(!self.landing.is_empty())
    }

    /// The words that were written to memory, in order.
    pub fn output(&self) -> &[u64] {
        match &self.extras {
            _ if self.one_word => std::slice::from_ref(&self.word),
            Some(extras) => &extras.output,
            None => &[],
        }
    }

    /// The union of the exception flags that came with the results.
    pub fn flags(&self) -> u8 {
        self.flags
    }

    pub(super) fn is_open(&self) -> bool {
        self.end == Cycle::MAX
    }

    pub(super) fn is_active(&self, now: Cycle) -> bool {
        self.is_open() && self.start <= now
    }

    pub(super) fn sends_done(&self) -> bool {
        !self.kind.sends || (self.read_q == self.task.words && self.at_fragmenter.is_empty())
    }

    pub(super) fn receives_done(&self) -> bool {
        // Nothing is collected when the last word has come.
        !self.kind.receives || (self.received_q == self.task.words && self.landing.is_empty())
    }

    /// Whether a read could be granted: words are left and the fragmenter has a place for one more in its pipeline.
    #[inline]
    pub(super) fn wants_read(&self, read_latency: u64) -> bool {
        self.kind.sends && self.read_q < self.task.words && self.waiting() < read_latency + 2
    }

    pub(super) fn state(&self) -> u64 {
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

/// Whether this many words of the network are whole words of memory, of which each is `per_word`.
pub(super) fn is_whole(words: u64, per_word: u64) -> bool {
    per_word == 1 || words.is_multiple_of(per_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_arith::DType;

    #[test]
    fn a_wide_word_has_landed_when_its_word_of_memory_has() {
        let kind = JobKind { sends: false, receives: true, data: true };
        let mut job = Job::new(0, kind, 4, Vec::new().into(), 0, 0);
        let pair = Accumulate::new(DType::F16, DType::F32).unwrap();
        job.convert(Conversion { pair, mode: Mode::default(), narrows: true });
        let landed = [0, 1, 2, 3].map(|now| {
            job.take(0, 0, now + 1, None);
            job.land(now);
            job.landed()
        });
        assert_eq!(landed, [0, 0, 2, 2], "two wide words are a word of memory, written a cycle later");
        job.land(4);
        assert_eq!((job.landed(), job.output().len()), (4, 2));
    }
}
