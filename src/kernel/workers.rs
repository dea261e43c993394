//! Threads that stay: each is given a piece of work, cycle after cycle, and gives it back when it is done.
//!
//! ```text
//!   owner    ── give ──┐ works on its own piece   ┌── take ──
//!   thread   …waits    └─▶ works ─────────────────┘   …waits
//! ```
//!
//! To start a thread takes longer than a cycle of a thousand switches. So the threads of a [`WorkerPool`] live as long as their
//! system. A side that waits looks again and again for a few microseconds, which is how long the gap between two cycles is, and
//! sleeps after that. A piece of work moves to the thread and back: nothing is shared while it is worked on.
//!
//! Limitations: where there are fewer processors than threads, waiting threads sleep at once, because the other side
//! needs their processor.

use std::any::Any;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

/// How often a waiting side spins before it sleeps: about fifty microseconds.
const SPINS: u32 = 1000;

/// Threads that do pieces of work of type `I` and give back an `O` for each.
///
/// ```
/// use watershed_kernel::WorkerPool;
///
/// let mut pool = WorkerPool::new(2, |word: u64| word * word);
/// for cycle in 0..100 {
///     pool.give(0, cycle);
///     pool.give(1, cycle + 1);
///     assert_eq!((pool.take(1), pool.take(0)), ((cycle + 1) * (cycle + 1), cycle * cycle));
/// }
/// ```
pub struct WorkerPool<I, O> {
    workers: Vec<Worker<I, O>>,
    spins: u32,
}

/// A thread and its mailbox.
struct Worker<I, O> {
    mailbox: Arc<Mailbox<I, O>>,
    thread: Option<JoinHandle<()>>,
}

/// One slot: work for the thread, or its result for the owner.
struct Mailbox<I, O> {
    /// The thread has something to do; its owner has if not.
    thread_turn: AtomicBool,
    content: Mutex<Content<I, O>>,
}

/// What a mailbox holds.
enum Content<I, O> {
    Nothing,
    Work(I, Thread),
    Done(O),
    Panicked(Box<dyn Any + Send>),
    /// No more work comes: the thread ends.
    End,
}

impl<I, O> Mailbox<I, O> {
    /// Waits until it is the turn of this side.
    fn wait(&self, thread_turn: bool, spins: u32) {
        for _ in 0..spins {
            if self.thread_turn.load(Ordering::Acquire) == thread_turn {
                return;
            }
            spin_loop();
        }
        while self.thread_turn.load(Ordering::Acquire) != thread_turn {
            // The owner that gave the work is woken; the owner may be another thread by now.
            thread::park_timeout(Duration::from_millis(100));
        }
    }

    /// Puts something in, and makes it the turn of the other side.
    fn post(&self, thread_turn: bool, what: Content<I, O>) {
        *self.content.lock().unwrap_or_else(PoisonError::into_inner) = what;
        self.thread_turn.store(thread_turn, Ordering::Release);
    }

    /// Takes the content out.
    fn collect(&self) -> Content<I, O> {
        std::mem::replace(&mut self.content.lock().unwrap_or_else(PoisonError::into_inner), Content::Nothing)
    }

    /// What the thread does until [`Content::End`].
    fn serve(&self, spins: u32, work: impl Fn(I) -> O) {
        loop {
            self.wait(true, spins);
            let Content::Work(piece, owner) = self.collect() else { return };
            let done = match catch_unwind(AssertUnwindSafe(|| work(piece))) {
                Ok(done) => Content::Done(done),
                Err(panic) => Content::Panicked(panic),
            };
            self.post(false, done);
            owner.unpark();
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> WorkerPool<I, O> {
    /// Starts this many threads, which do `work` for every piece.
    ///
    /// # Panics
    /// If the system starts no more threads.
    pub fn new(threads: usize, work: impl Fn(I) -> O + Clone + Send + 'static) -> WorkerPool<I, O> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let spins = if threads < processors { SPINS } else { 0 };
        let worker = |_| {
            let mailbox =
                Arc::new(Mailbox { thread_turn: AtomicBool::new(false), content: Mutex::new(Content::Nothing) });
            let (its, work) = (Arc::clone(&mailbox), work.clone());
            Worker { mailbox, thread: Some(thread::spawn(move || its.serve(spins, work))) }
        };
        WorkerPool { workers: (0..threads).map(worker).collect(), spins }
    }

    /// How many threads there are.
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Gives a thread a piece of work. It has none: what it had before was taken back.
    pub fn give(&mut self, thread: usize, piece: I) {
        let worker = &self.workers[thread];
        worker.mailbox.post(true, Content::Work(piece, thread::current()));
        if let Some(thread) = &worker.thread {
            thread.thread().unpark();
        }
    }

    /// Waits for what a thread was given, and takes it back.
    ///
    /// # Panics
    /// If the work panicked, or if the thread was given nothing.
    pub fn take(&mut self, thread: usize) -> O {
        let mailbox = &self.workers[thread].mailbox;
        mailbox.wait(false, self.spins);
        match mailbox.collect() {
            Content::Done(done) => done,
            Content::Panicked(panic) => resume_unwind(panic),
            Content::Nothing | Content::Work(..) | Content::End => panic!("thread {thread} was given nothing"),
        }
    }
}

/// Decides whether a step's work is offloaded to threads. Where other programs want the processors, too, a thread that was given
/// something may have to wait for its turn, and doing the work in place would have been faster. Then nothing is offloaded for a
/// while, and for twice as long if that happens again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadControl {
    /// Steps still to go without offloading.
    skip: u32,
    /// How many they were the last time, less if offloading has paid since.
    backoff: u32,
    /// Of this period: steps that offloaded, what all their work would have taken here, and the waits.
    steps: u32,
    work: Duration,
    waited: Duration,
}

impl OffloadControl {
    /// Steps that are judged together: the first of them wakes a thread that sleeps.
    const PERIOD: u32 = 64;
    /// The most steps without offloading.
    const MAX_BACKOFF: u32 = 4096;

    /// Whether this step offloads work.
    pub fn offloads(&mut self) -> bool {
        let offloads = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        offloads
    }

    /// What the whole work of a step would have taken here, and how long its threads were waited for.
    pub fn record_step(&mut self, work: Duration, waited: Duration) {
        self.steps += 1;
        self.work += work;
        self.waited += waited;
        if self.steps < OffloadControl::PERIOD {
            return;
        }
        if self.waited <= self.work {
            self.backoff /= 2;
        } else {
            self.backoff = (2 * self.backoff).clamp(OffloadControl::PERIOD, OffloadControl::MAX_BACKOFF);
            self.skip = self.backoff;
        }
        (self.steps, self.work, self.waited) = (0, Duration::ZERO, Duration::ZERO);
    }
}

impl<I, O> Drop for WorkerPool<I, O> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // Work that nobody took back ends first.
            worker.mailbox.wait(false, 0);
            worker.mailbox.post(true, Content::End);
            if let Some(thread) = worker.thread.take() {
                thread.thread().unpark();
                // It can only have panicked outside of the work.
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_goes_to_its_thread_and_comes_back_in_any_order() {
        let mut pool = WorkerPool::new(3, |(at, word): (usize, u64)| (at, thread::current().id(), word + 1));
        assert!(pool.len() == 3 && !pool.is_empty());
        let mut ids = [None; 3];
        for round in 0..200u64 {
            (0..3).for_each(|at| pool.give(at, (at, round)));
            for at in [2, 0, 1] {
                let (of, id, word) = pool.take(at);
                assert_eq!((of, word), (at, round + 1));
                assert_eq!(*ids[at].get_or_insert(id), id, "a thread stays");
            }
        }
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    }

    #[test]
    fn both_sides_sleep_and_are_woken() {
        let mut pool = WorkerPool::new(1, |pause: u64| thread::sleep(Duration::from_millis(pause)));
        for pause in [0, 20, 0, 20] {
            thread::sleep(Duration::from_millis(20));
            pool.give(0, pause);
            pool.take(0);
        }
    }

    #[test]
    fn a_panic_reaches_the_owner_and_the_thread_goes_on() {
        let mut pool = WorkerPool::new(1, |word: u64| 10u64.checked_sub(word).expect("a word of at most ten"));
        pool.give(0, 11);
        let panic = catch_unwind(AssertUnwindSafe(|| pool.take(0))).expect_err("eleven is too much");
        assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("a word of at most ten"));
        pool.give(0, 4);
        assert_eq!(pool.take(0), 6);
    }

    #[test]
    fn long_waits_make_offloading_rarer() {
        let [short, long] = [10, 20].map(Duration::from_micros);
        let skip = |control: &mut OffloadControl| {
            std::iter::repeat_with(|| control.offloads()).take_while(|offloads| !offloads).count()
        };
        let mut control = OffloadControl::default();
        let mut judged = |work: Duration, waited: Duration| {
            for step in 0..64 {
                assert!(step == 0 || control.offloads(), "steps are judged together");
                control.record_step(work, waited);
            }
            skip(&mut control)
        };
        assert_eq!(judged(long, short), 0, "it pays");
        assert_eq!([(); 4].map(|()| judged(short, long)), [64, 128, 256, 512]);
        assert_eq!([(); 5].map(|()| judged(short, long))[4], 4096, "but now and then");
        assert_eq!([(); 20].map(|()| judged(short, short)), [0; 20]);
        assert_eq!(judged(short, long), 64, "what has paid since is remembered");
    }

    #[test]
    fn dropping_the_pool_ends_its_work_first() {
        let done = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&done);
        let mut pool = WorkerPool::new(1, move |()| {
            thread::sleep(Duration::from_millis(20));
            theirs.store(true, Ordering::Release);
        });
        pool.give(0, ());
        drop(pool);
        assert!(done.load(Ordering::Acquire));
    }
}
