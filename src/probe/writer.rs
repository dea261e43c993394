//! A thread of its own for the sink that writes a waveform.
//!
//! ```text
//!   run ── step ──▶ [ batch ] ── at most QUEUE batches ──▶ thread ── step ──▶ file
//!                                                          (own copy of all values)
//! ```
//!
//! Turning values into text or into compressed blocks takes longer than noting that they changed, and the run need not
//! wait for it. Changes are collected into batches of [`BATCH`] and handed over; when the thread falls behind by
//! [`QUEUE`] batches, the run waits. The sink behind it gets the same calls in the same order, so the file has the same
//! bytes.
//!
//! An error of the sink ends the thread; the next batch, or the end, reports it.

use super::scope::{Slot, words};
use super::state::State;
use super::{Declarations, SignalId, Sink, SinkSummary, Values};
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Changes in a batch.
const BATCH: usize = 1 << 14;

/// Batches that may wait.
const QUEUE: usize = 8;

/// Changes of some cycles, in order.
#[derive(Debug)]
struct Batch {
    /// Time, and how many signals changed.
    steps: Vec<(u64, usize)>,
    signals: Vec<SignalId>,
    slots: Vec<Slot>,
    /// Words of wide signals.
    wide: Vec<u64>,
}

impl Default for Batch {
    /// With room for as many changes as are handed over at once, and for those of a cycle more.
    fn default() -> Batch {
        let room = BATCH + BATCH / 4;
        Batch {
            steps: Vec::with_capacity(BATCH / 16),
            signals: Vec::with_capacity(room),
            slots: Vec::with_capacity(room),
            wide: Vec::new(),
        }
    }
}

impl Batch {
    fn clear(&mut self) {
        self.steps.clear();
        self.signals.clear();
        self.slots.clear();
        self.wide.clear();
    }
}

/// A sink that hands everything after the first values to a thread.
#[derive(Debug)]
pub struct WriterThread {
    /// Until the first values.
    idle: Option<IdleSink>,
    thread: Option<(SyncSender<Batch>, JoinHandle<SinkResult>)>,
    batch: Batch,
    /// Batches that the thread has written, to be filled again: what is handed over costs no memory of its own.
    empty: Option<Receiver<Batch>>,
}

/// A sink that is with its owner; it has no `Debug` of its own.
struct IdleSink(Box<dyn Sink>);

impl std::fmt::Debug for IdleSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a sink")
    }
}

/// The sink, and how its last call ended.
type SinkResult = (Box<dyn Sink>, io::Result<()>);

impl WriterThread {
    /// Lets `sink` write on a thread of its own.
    pub fn new(sink: Box<dyn Sink>) -> WriterThread {
        WriterThread { idle: Some(IdleSink(sink)), thread: None, batch: Batch::default(), empty: None }
    }

    /// Hands the batch over.
    fn send(&mut self) -> io::Result<()> {
        let empty = self.empty.as_ref().and_then(|empty| empty.try_recv().ok());
        let batch = std::mem::replace(&mut self.batch, empty.unwrap_or_default());
        match &self.thread {
            Some((sender, _)) if sender.send(batch).is_ok() => Ok(()),
            _ => self.join().map(|_| ()),
        }
    }

    /// Waits for the thread to end.
    fn join(&mut self) -> io::Result<Box<dyn Sink>> {
        let Some((sender, thread)) = self.thread.take() else {
            return Err(io::Error::other("the thread that writes the waveform has ended"));
        };
        drop(sender);
        let (sink, result) = thread.join().map_err(|_| io::Error::other("writing the waveform panicked"))?;
        result.map(|()| sink)
    }
}

/// What the thread does.
fn write(mut sink: Box<dyn Sink>, batches: &Receiver<Batch>, empty: &Sender<Batch>, mut state: State) -> SinkResult {
    while let Ok(mut batch) = batches.recv() {
        let (mut from, mut wide) = (0, &batch.wide[..]);
        for &(time, count) in &batch.steps {
            let changed = &batch.signals[from..from + count];
            for (&signal, slot) in changed.iter().zip(&batch.slots[from..from + count]) {
                let words = if slot.width > 64 { words(slot.width) } else { 0 };
                let (mine, rest) = wide.split_at(words);
                state.set(signal, slot, mine);
                wide = rest;
            }
            if let Err(error) = sink.step(time, changed, state.values()) {
                return (sink, Err(error));
            }
            from += count;
        }
        batch.clear();
        // One that grew in a cycle in which all changed is not kept, and nobody wants any at the end of the run.
        if batch.signals.capacity() <= 2 * BATCH && batch.wide.capacity() <= 2 * BATCH {
            let _ = empty.send(batch);
        }
    }
    (sink, Ok(()))
}

impl Sink for WriterThread {
    fn header(&mut self, declarations: &Declarations) -> io::Result<()> {
        self.idle.as_mut().map_or(Ok(()), |IdleSink(sink)| sink.header(declarations))
    }

    fn dump(&mut self, time_ps: u64, values: Values<'_>) -> io::Result<()> {
        let Some(IdleSink(mut sink)) = self.idle.take() else { return Ok(()) };
        sink.dump(time_ps, values)?;
        let (sender, batches) = sync_channel(QUEUE);
        let (emptied, empty) = channel();
        let state = State::of(values);
        let thread = std::thread::Builder::new().name("waveform".into());
        let thread = thread.spawn(move || write(sink, &batches, &emptied, state))?;
        self.thread = Some((sender, thread));
        self.empty = Some(empty);
        Ok(())
    }

    fn step(&mut self, time_ps: u64, changed: &[SignalId], values: Values<'_>) -> io::Result<()> {
        let batch = &mut self.batch;
        batch.steps.push((time_ps, changed.len()));
        batch.signals.extend_from_slice(changed);
        for &signal in changed {
            let slot = values.slots[signal as usize];
            batch.slots.push(slot);
            if slot.width > 64 {
                let begin = slot.value as usize;
                batch.wide.extend_from_slice(&values.wide[begin..begin + words(slot.width)]);
            }
        }
        if batch.signals.len() >= BATCH { self.send() } else { Ok(()) }
    }

    fn finish(&mut self, time_ps: u64) -> io::Result<SinkSummary> {
        // The run may end before the window begins.
        if let Some(IdleSink(mut sink)) = self.idle.take() {
            return sink.finish(time_ps);
        }
        self.send()?;
        self.join()?.finish(time_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Period, Scope, Selection, Tracer, VcdSink};
    use super::*;

    /// Counters of several widths over more changes than all batches hold.
    fn record(sink: Box<dyn Sink>, cycles: u64) -> io::Result<super::super::TraceSummary> {
        let mut tracer = Tracer::new(Period::from_hz(1_000_000_000).unwrap(), Selection::default(), sink);
        let probe = |now: u64| {
            move |scope: &mut Scope<'_>| {
                scope.bits("count", 48, now);
                scope.bit("odd", !now.is_multiple_of(2));
                scope.wide("wide", 130, &[now, !now, now & 3]);
                scope.valid("rare", 9, (now.is_multiple_of(7)).then_some(now & 0x1ff));
            }
        };
        let node = tracer.declare("top", probe(0)).expect("selected");
        tracer.start().map_err(|error| io::Error::other(error.to_string()))?;
        for now in 0..cycles {
            tracer.sample(node, now, probe(now));
        }
        tracer.finish(cycles)
    }

    #[test]
    fn a_thread_writes_the_same_bytes() {
        for cycles in [0, 1, 7, 200_000] {
            let [alone, threaded] = [false, true].map(|threaded| {
                let (sink, file) = VcdSink::in_memory();
                let sink: Box<dyn Sink> =
                    if threaded { Box::new(WriterThread::new(Box::new(sink))) } else { Box::new(sink) };
                let summary = record(sink, cycles).expect("memory takes everything");
                (file.bytes(), summary.bytes, summary.changes)
            });
            assert!(alone == threaded, "{cycles} cycles: {} and {} bytes", alone.1, threaded.1);
        }
    }

    /// A disk with little room.
    struct Disk(usize);

    impl io::Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("no room"))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_error_of_the_thread_reaches_the_run() {
        for (room, cycles) in [(100_000, 200_000), (100_000, 3_000), (50, 0)] {
            let sink = WriterThread::new(Box::new(VcdSink::to_writer(Box::new(Disk(room)))));
            let error = record(Box::new(sink), cycles).expect_err("the disk is full");
            assert!(error.to_string().contains("no room"), "{error}");
        }
    }
}
