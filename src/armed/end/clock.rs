//! The clock of an end point.
//!
//! Frames are taken and sent flit by flit, and processes act a few times a round. So an end point remembers until when they rest:
//! in between only its NIC is at work. Debug builds ask the processes now and then all the same, and fail if one had something to do; in
//! the other cycles they skip them as release builds do, so that tests see what users run.

use super::End;
use crate::station::FrameEvent;
use crate::tables::Tables;
use std::collections::VecDeque;
use watershed_fabric::{Block, Io};
use watershed_kernel::{Cycle, Wake};
use watershed_probe::Scope;

/// Cycles after which a debug build asks processes that rest.
const ASKED_EVERY: Cycle = 16;

impl End {
    /// Hands frames whose time has come to their processes, and lets all act. Returns when one of them acts next if nothing arrives.
    fn work(&mut self, io: &mut Io<'_>, tables: &Tables) -> Cycle {
        let now = io.now();
        while let Some(&(ready, vc, frame, token)) = self.inbox.front() {
            if ready > now {
                break;
            }
            self.inbox.pop_front();
            if tables.cfg.log {
                self.log.push(now, FrameEvent::Delivered, token, &frame);
            }
            self.deliver(now, vc, &frame, token);
        }
        self.act(now, tables);
        self.tell(io);
        let mut wake = self.inbox.front().map_or(Wake::OnInput, |&(ready, ..)| Wake::At(ready));
        for root in &self.roots {
            wake = wake.or(root.next_wake(now));
        }
        for leaf in &self.leaves {
            wake = wake.or(leaf.next_wake());
        }
        for soft in &self.softs {
            wake = wake.or(soft.next_wake());
        }
        for client in &self.clients {
            wake = wake.or(client.next_wake(now));
        }
        if let Some(manager) = &self.manager {
            wake = wake.or(manager.next_wake());
        }
        if let Some(&(ready, _)) = self.desk.front() {
            wake = wake.or(Wake::At(ready.max(now + 1)));
        }
        for stranger in &self.strangers {
            if now < stranger.until && self.nic.queues[1].len() < 2 {
                wake = wake.or(Wake::At(stranger.next.max(now + 1)));
            }
        }
        match wake {
            Wake::OnInput => Cycle::MAX,
            Wake::Next => now + 1,
            Wake::At(cycle) => cycle,
        }
    }

    /// What frames and processes leave behind, counted: the same before and after a cycle in which nothing was to be done.
    fn seen(&self) -> [u64; 6] {
        let lengths = [self.inbox.len(), self.desk.len(), self.nic.queues[0].len(), self.nic.queues[1].len()];
        let [inbox, desk, own, strange] = lengths.map(|length| length as u64);
        [inbox, desk, own, strange, self.over, self.busy_until]
    }

    /// What a dead end point forgets. Returns whether there was anything.
    fn lose(&mut self) -> bool {
        if self.inbox.is_empty() && self.desk.is_empty() && self.nic.queues.iter().all(VecDeque::is_empty) {
            return false;
        }
        self.inbox.clear();
        self.desk.clear();
        self.nic.queues.iter_mut().for_each(VecDeque::clear);
        true
    }
}

impl Block for End {
    type Tables = Tables;

    fn tick(&mut self, io: &mut Io<'_>, tables: &Tables) -> Wake {
        let now = io.now();
        let mut moved = self.take_in(io, tables);
        if self.is_dead(now) {
            moved |= self.lose();
            // Alive again, it looks at everything.
            self.rest_until = 0;
        } else if now >= self.rest_until {
            self.rest_until = self.work(io, tables);
        } else if cfg!(debug_assertions) && now.is_multiple_of(ASKED_EVERY) {
            let before = self.seen();
            let rest_until = self.work(io, tables);
            debug_assert_eq!(before, self.seen(), "nothing was to be done before cycle {}", self.rest_until);
            debug_assert!(rest_until >= self.rest_until, "{rest_until} is before {}", self.rest_until);
        }
        let rests = self.rest_until == Cycle::MAX || self.is_dead(now);
        let mut wake = if rests { Wake::OnInput } else { Wake::At(self.rest_until) };
        if let Some(change) = self.next_change(now) {
            wake = wake.or(Wake::At(change));
        }
        moved |= self.send(io, tables);
        for queue in &self.nic.queues {
            if let Some(packet) = queue.front()
                && packet.due > now
            {
                wake = wake.or(Wake::At(packet.due));
            }
        }
        if moved {
            return Wake::Next;
        }
        io.busy_until(0).map_or(wake, |until| wake.or(Wake::At(until)))
    }

    fn open(&self) -> Option<String> {
        let (over, all) = self.processes();
        if over < all {
            let roots = self.roots.iter().filter(|root| !root.is_over()).count();
            let leaves = self.leaves.iter().filter(|leaf| !leaf.is_over()).count();
            return Some(format!("{roots} root and {leaves} leaf processes are not done"));
        }
        None
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        for (at, root) in self.roots.iter().enumerate() {
            scope.indexed("root", at, |scope| root.probe(scope));
        }
        for (at, leaf) in self.leaves.iter().enumerate() {
            scope.indexed("leaf", at, |scope| leaf.probe(scope));
        }
        for (at, soft) in self.softs.iter().enumerate() {
            scope.indexed("software", at, |scope| soft.probe(scope));
        }
        for (at, client) in self.clients.iter().enumerate() {
            scope.indexed("client", at, |scope| client.probe(scope));
        }
        if let Some(manager) = &self.manager {
            scope.scope("agent", |scope| manager.probe(scope));
        }
        scope.scope("nic", |scope| {
            scope.bits("inbox", 16, self.inbox.len() as u64);
            scope.bits("queue", 16, self.nic.queues[0].len() as u64);
            scope.bit("sending", self.nic.sending.is_some());
            scope.bits("damaged", 32, self.refused.damaged);
            scope.bits("malformed", 32, self.refused.malformed);
            scope.bits("not_ours", 32, self.refused.not_ours);
        });
    }
}
