//! Threads that stay: each is given a piece of work, cycle after cycle, and gives it back when it is done.
//!
//! ```text
//!   owner    ── give ──┐ works on its own piece   ┌── take ──
//!   thread   …waits    └─▶ works ─────────────────┘   …waits
//! ```
//!
//! To start a thread takes longer than a cycle of a thousand switches. So the threads of a [`Crew`] live as long as their
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

/// How often someone who waits looks before it sleeps: about fifty microseconds.
const LOOKS: u32 = 1000;

/// Threads that do pieces of work of type `I` and give back an `O` for each.
///
/// ```
/// use watershed_kernel::Crew;
///
/// let mut crew = Crew::new(2, |word: u64| word * word);
/// for cycle in 0..100 {
///     crew.give(0, cycle);
///     crew.give(1, cycle + 1);
///     assert_eq!((crew.take(1), crew.take(0)), ((cycle + 1) * (cycle + 1), cycle * cycle));
/// }
/// ```
pub struct Crew<I, O> {
    seats: Vec<Seat<I, O>>,
    looks: u32,
}

/// A thread, and where its work lies.
struct Seat<I, O> {
    desk: Arc<Desk<I, O>>,
    thread: Option<JoinHandle<()>>,
}

/// Where work is laid down for a thread, and its result for the owner.
struct Desk<I, O> {
    /// The thread has something to do; its owner has if not.
    asked: AtomicBool,
    on_it: Mutex<OnIt<I, O>>,
}

/// What lies there.
enum OnIt<I, O> {
    Nothing,
    Work(I, Thread),
    Done(O),
    Panicked(Box<dyn Any + Send>),
    /// Nothing comes any more.
    End,
}

impl<I, O> Desk<I, O> {
    /// Waits until it is the turn of this side.
    fn wait(&self, asked: bool, looks: u32) {
        for _ in 0..looks {
            if self.asked.load(Ordering::Acquire) == asked {
                return;
            }
            spin_loop();
        }
        while self.asked.load(Ordering::Acquire) != asked {
            // Whoever was at the desk when work was given is woken; the owner may be another thread by now.
            thread::park_timeout(Duration::from_millis(100));
        }
    }

    /// Lays something down, and makes it the turn of the other side.
    fn lay(&self, asked: bool, what: OnIt<I, O>) {
        *self.on_it.lock().unwrap_or_else(PoisonError::into_inner) = what;
        self.asked.store(asked, Ordering::Release);
    }

    /// Takes what lies there.
    fn pick(&self) -> OnIt<I, O> {
        std::mem::replace(&mut self.on_it.lock().unwrap_or_else(PoisonError::into_inner), OnIt::Nothing)
    }

    /// What the thread does until nothing comes any more.
    fn serve(&self, looks: u32, work: impl Fn(I) -> O) {
        loop {
            self.wait(true, looks);
            let OnIt::Work(piece, owner) = self.pick() else { return };
            let done = match catch_unwind(AssertUnwindSafe(|| work(piece))) {
                Ok(done) => OnIt::Done(done),
                Err(panic) => OnIt::Panicked(panic),
            };
            self.lay(false, done);
            owner.unpark();
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> Crew<I, O> {
    /// Starts this many threads, which do `work` for every piece.
    ///
    /// # Panics
    /// If the system starts no more threads.
    pub fn new(threads: usize, work: impl Fn(I) -> O + Clone + Send + 'static) -> Crew<I, O> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let looks = if threads < processors { LOOKS } else { 0 };
        let seat = |_| {
            let desk = Arc::new(Desk { asked: AtomicBool::new(false), on_it: Mutex::new(OnIt::Nothing) });
            let (its, work) = (Arc::clone(&desk), work.clone());
            Seat { desk, thread: Some(thread::spawn(move || its.serve(looks, work))) }
        };
        Crew { seats: (0..threads).map(seat).collect(), looks }
    }

    /// How many threads there are.
    pub fn len(&self) -> usize {
        self.seats.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Gives a thread a piece of work. It has none: what it had before was taken back.
    pub fn give(&mut self, thread: usize, piece: I) {
        let seat = &self.seats[thread];
        seat.desk.lay(true, OnIt::Work(piece, thread::current()));
        if let Some(thread) = &seat.thread {
            thread.thread().unpark();
        }
    }

    /// Waits for what a thread was given, and takes it back.
    ///
    /// # Panics
    /// If the work panicked, or if the thread was given nothing.
    pub fn take(&mut self, thread: usize) -> O {
        let desk = &self.seats[thread].desk;
        desk.wait(false, self.looks);
        match desk.pick() {
            OnIt::Done(done) => done,
            OnIt::Panicked(panic) => resume_unwind(panic),
            OnIt::Nothing | OnIt::Work(..) | OnIt::End => panic!("thread {thread} was given nothing"),
        }
    }
}

/// Whether it pays to give work away. Where other programs want the processors, too, a thread that was given something may have
/// to wait for its turn, and doing it oneself would have been faster. Then nothing is given away for a while, and for longer if
/// that happens again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Steps in which nothing is given away, from now on.
    alone: u32,
    /// How many it was the last time, less if it has paid since.
    before: u32,
    /// Steps in which something was given away since it was judged, what all their work would have taken here, and the waits.
    steps: u32,
    work: Duration,
    waited: Duration,
}

impl Pace {
    /// Steps that are judged together: the first of them wakes a thread that sleeps.
    const JUDGED: u32 = 64;
    /// The most steps alone.
    const LONGEST: u32 = 4096;

    /// Whether something is given away in this step.
    pub fn gives(&mut self) -> bool {
        let gives = self.alone == 0;
        self.alone = self.alone.saturating_sub(1);
        gives
    }

    /// What the whole work of a step would have taken here, and how long its threads were waited for.
    pub fn note(&mut self, work: Duration, waited: Duration) {
        self.steps += 1;
        self.work += work;
        self.waited += waited;
        if self.steps < Pace::JUDGED {
            return;
        }
        if self.waited <= self.work {
            self.before /= 2;
        } else {
            self.before = (2 * self.before).clamp(Pace::JUDGED, Pace::LONGEST);
            self.alone = self.before;
        }
        (self.steps, self.work, self.waited) = (0, Duration::ZERO, Duration::ZERO);
    }
}

impl<I, O> Drop for Crew<I, O> {
    fn drop(&mut self) {
        for seat in &mut self.seats {
            // Work that nobody took back ends first.
            seat.desk.wait(false, 0);
            seat.desk.lay(true, OnIt::End);
            if let Some(thread) = seat.thread.take() {
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
        let mut crew = Crew::new(3, |(at, word): (usize, u64)| (at, thread::current().id(), word + 1));
        assert!(crew.len() == 3 && !crew.is_empty());
        let mut ids = [None; 3];
        for round in 0..200u64 {
            (0..3).for_each(|at| crew.give(at, (at, round)));
            for at in [2, 0, 1] {
                let (of, id, word) = crew.take(at);
                assert_eq!((of, word), (at, round + 1));
                assert_eq!(*ids[at].get_or_insert(id), id, "a thread stays");
            }
        }
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    }

    #[test]
    fn both_sides_sleep_and_are_woken() {
        let mut crew = Crew::new(1, |pause: u64| thread::sleep(Duration::from_millis(pause)));
        for pause in [0, 20, 0, 20] {
            thread::sleep(Duration::from_millis(20));
            crew.give(0, pause);
            crew.take(0);
        }
    }

    #[test]
    fn a_panic_reaches_the_owner_and_the_thread_goes_on() {
        let mut crew = Crew::new(1, |word: u64| 10u64.checked_sub(word).expect("a word of at most ten"));
        crew.give(0, 11);
        let panic = catch_unwind(AssertUnwindSafe(|| crew.take(0))).expect_err("eleven is too much");
        assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("a word of at most ten"));
        crew.give(0, 4);
        assert_eq!(crew.take(0), 6);
    }

    #[test]
    fn who_is_waited_for_too_long_is_given_less_often() {
        let [short, long] = [10, 20].map(Duration::from_micros);
        let alone = |pace: &mut Pace| std::iter::repeat_with(|| pace.gives()).take_while(|gives| !gives).count();
        let mut pace = Pace::default();
        let mut judged = |work: Duration, waited: Duration| {
            for step in 0..64 {
                assert!(step == 0 || pace.gives(), "steps are judged together");
                pace.note(work, waited);
            }
            alone(&mut pace)
        };
        assert_eq!(judged(long, short), 0, "it pays");
        assert_eq!([(); 4].map(|()| judged(short, long)), [64, 128, 256, 512]);
        assert_eq!([(); 5].map(|()| judged(short, long))[4], 4096, "but now and then");
        assert_eq!([(); 20].map(|()| judged(short, short)), [0; 20]);
        assert_eq!(judged(short, long), 64, "what has paid since is remembered");
    }

    #[test]
    fn a_crew_that_goes_ends_its_work_first() {
        let done = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&done);
        let mut crew = Crew::new(1, move |()| {
            thread::sleep(Duration::from_millis(20));
            theirs.store(true, Ordering::Release);
        });
        crew.give(0, ());
        drop(crew);
        assert!(done.load(Ordering::Acquire));
    }
}
