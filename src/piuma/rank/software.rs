//! Collectives in software: rounds of a [`Host`], whose messages share the rank's port with its own.

use std::sync::Arc;

use super::plan::{Outcome, digest};
use super::{Rank, Sender};
use crate::core::Core;
use crate::host::Host;
use watershed_fabric::Io;

impl Rank {
    /// A collective in software, which others may have begun.
    pub(super) fn host(&mut self, index: u32) -> &mut Host {
        let software = &self.plan.software[index as usize];
        self.hosts.entry(index).or_insert_with(|| Host::new(Arc::clone(&software.job), software.member, Vec::new()))
    }

    /// Lets collectives in software go on, and ends those that are over.
    pub(super) fn advance_software(&mut self, io: &mut Io<'_>) {
        let mut over = Vec::new();
        for (&index, host) in &mut self.hosts {
            host.advance(io);
            if host.end().is_some() {
                over.push(index);
            }
        }
        for index in over {
            let Some(host) = self.hosts.remove(&index) else { continue };
            let counts = host.counted();
            let operation = self.plan.software[index as usize].operation;
            let words = [counts.sent, counts.received];
            self.outcomes.push(Outcome { operation, digest: digest(host.vector()), words, flags: 0 });
            self.over(operation, io.now());
        }
    }

    /// Finds the next collective that has something to send.
    pub(super) fn next_host(&mut self) -> bool {
        let mut wanting = self.hosts.iter().filter(|(_, host)| host.wants_port()).map(|(&index, _)| index);
        let next = wanting.clone().find(|&index| index >= self.port.turn).or_else(|| wanting.next());
        self.port.turn = next.unwrap_or(self.port.turn);
        next.is_some()
    }

    pub(super) fn send_round(&mut self, core: &mut Core, io: &mut Io<'_>) -> bool {
        let Some(host) = self.hosts.get_mut(&self.port.turn) else { return false };
        let before = host.progress();
        let short = host.send(core, io);
        let moved = host.progress() != before;
        if moved {
            self.write_last_q = false;
        }
        if host.is_amid_packet() {
            self.port.owner = Some(Sender::Software);
        } else if moved {
            (self.port.owner, self.port.next) = (None, Sender::Message);
            self.port.turn += 1;
        }
        short
    }
}
