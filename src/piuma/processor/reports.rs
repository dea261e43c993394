//! The reports of a processor: its part of the wait-for graph, and its registers in waves.

use super::super::thread::{Activity, STATES, State, Thread};
use super::Processor;
use watershed_probe::Scope;

impl Processor {
    /// Why a request of this id stays in its channel, if that is because of its queue.
    pub fn stall_reason(&self, id: u16) -> Option<String> {
        let waiting = self.cce.full_with(id)?;
        let messages = if waiting == 1 { "1 message".to_owned() } else { format!("{waiting} messages") };
        Some(format!("its multicast queue of tree {id} is full, with {messages} that no thread has taken"))
    }

    /// Threads that wait for a call: its place among [`calls`](Self::calls), and who waits, in words.
    pub fn blocked(&self) -> Vec<(usize, String)> {
        let mut list = Vec::new();
        for pipeline in 0..self.pipelines.len() {
            for (thread, of) in self.pipelines[pipeline].threads.iter().enumerate() {
                match of.state {
                    State::Collective(call) if self.calls.list[call].end.is_none() => {
                        list.push((call, self.describe((pipeline, Some(thread)))));
                    }
                    _ => {}
                }
            }
        }
        list
    }

    /// Whether every thread has ended or waits for a call or a message that has not come.
    pub fn only_waits(&self) -> bool {
        let waits = |thread: &Thread| match thread.state {
            State::Halted | State::Calls | State::Engine(..) => true,
            State::Collective(call) => self.calls.list[call].end.is_none(),
            _ => false,
        };
        self.pipelines.iter().all(|pipeline| pipeline.handler.is_none() && pipeline.threads.iter().all(waits))
    }

    /// Threads that have not ended, in words.
    pub fn open(&self) -> Option<String> {
        for pipeline in 0..self.pipelines.len() {
            for thread in 0..self.pipelines[pipeline].threads.len() {
                let key = (pipeline, Some(thread));
                let what = match self.pipelines[pipeline].threads[thread].state {
                    State::Halted => continue,
                    State::Engine(_, Activity::Send) => "waits for a slot of a multicast queue",
                    State::Engine(..) => "waits for a multicast message",
                    State::Collective(_) => "waits for a collective",
                    State::Memory => "waits for its memory",
                    State::Register(_) | State::Remote => "waits for a register",
                    State::Remotes => "waits for an earlier access to a register",
                    State::Crossbar => "waits for the crossbar",
                    State::Calls => "waits for an earlier call",
                    State::Ready | State::Until(..) => "runs",
                };
                return Some(format!("{} {what}", self.describe(key)));
            }
        }
        None
    }

    /// Describes threads, queues and interrupts to a wave.
    pub fn probe(&self, scope: &mut Scope<'_>) {
        let mtps = self.cfg.mtps as usize;
        for (at, pipeline) in self.pipelines.iter().enumerate() {
            if pipeline.threads.is_empty() && (at < mtps || self.handler.is_none()) {
                continue;
            }
            let (name, number) = if at < mtps { ("mtp", at) } else { ("stp", at - mtps) };
            scope.indexed(name, number, |scope| {
                for (number, thread) in pipeline.threads.iter().enumerate() {
                    scope.indexed("thread", number, |scope| {
                        let interrupted = pipeline.handler.is_some() && thread.state != State::Halted;
                        scope.state("state", &STATES, if interrupted { 9 } else { thread.wave_state() });
                        scope.bits("line", 16, u64::from(thread.line()));
                    });
                }
                if at >= mtps && self.handler.is_some() {
                    scope.scope("handler", |scope| {
                        let handler = pipeline.handler.as_ref();
                        scope.state("state", &STATES, handler.map_or(8, Thread::wave_state));
                        scope.valid("tree", 12, handler.and_then(|thread| thread.handler).map(u64::from));
                    });
                }
            });
        }
        self.cce.probe(scope);
        scope.scope("calls", |scope| {
            scope.bits("issued", 32, self.calls.list.len() as u64);
            scope.bits("complete", 32, self.calls.list.iter().filter(|call| call.end.is_some()).count() as u64);
        });
        scope.scope("icu", |scope| {
            scope.bits("pending", 16, self.icu.pending().len() as u64);
            scope.bits("merged", 32, self.icu.merged());
            scope.bits("handled", 32, self.handled);
        });
    }
}
