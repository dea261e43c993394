//! An end point of a PIUMA system: the block at the port of a switch.

use super::access::RegisterPort;
use super::core::Core;
use super::host::Host;
use super::processor::{Processor, ReadyCall, Store};
use super::rank::Rank;
use super::{REQUEST, Registers};
use watershed_fabric::traffic::{MayHaveTraffic, Traffic};
use watershed_fabric::{Block, Channels, Flit, Io, Vcs};
use watershed_kernel::{Cycle, Wake};
use watershed_probe::Scope;
use watershed_state::state;

/// An end point of a PIUMA system: a core, traffic, or both at one port.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// The core, if there is one. Its collective packets go before traffic on the shared port.
    pub core: Option<Box<Core>>,
    /// Background traffic. It is not among what else is beside the core: in a network under load most end points have nothing else, and
    /// looking there for it would be a line of the cache more in every cycle.
    pub traffic: Option<Box<Traffic>>,
    /// What else is beside it; mostly nothing.
    pub beside: Option<Box<EndExtras>>,
}

state!(End { boxed: core, traffic, beside });

/// Optional blocks that share the port of an end point with its core.
#[derive(Clone, Debug, Default)]
pub struct EndExtras {
    /// What runs programs; it needs the core beside it.
    pub processor: Option<Processor>,
    /// Ranks of collectives in software, one after the other; they need the core beside them.
    pub hosts: Vec<Host>,
    /// A rank of an application; it needs the core beside it.
    pub rank: Option<Box<Rank>>,
    /// Accesses to configuration registers of other switches: those of the processor, and those of others to its switch.
    pub registers: Option<Box<RegisterPort>>,
}

state!(EndExtras { saved: registers; each: processor, hosts; boxed: rank });

impl End {
    /// The processor, if there is one.
    pub fn processor(&self) -> Option<&Processor> {
        self.beside.as_ref()?.processor.as_ref()
    }

    /// The same, to be changed.
    pub fn processor_mut(&mut self) -> Option<&mut Processor> {
        self.beside.as_mut()?.processor.as_mut()
    }

    /// Whether the core or what is beside it waits for a time that will come: for a participant of a collective to begin, a thread or a
    /// rank to have computed, the overhead of a message to end. Traffic waits for nobody.
    pub fn expects(&self, now: Cycle) -> bool {
        self.core.as_ref().is_some_and(|core| core.expects(now))
            || self.processor().is_some_and(|processor| processor.expects(now))
            || self.hosts().iter().any(|host| host.expects(now))
            || self.rank().is_some_and(|rank| rank.expects(now))
    }

    /// Stores to configuration registers that are at their register, since the last time.
    pub fn take_stores(&mut self, stores: &mut Vec<Store>) {
        let Some(beside) = &mut self.beside else { return };
        stores.extend(beside.processor.iter_mut().flat_map(Processor::take_stores));
        stores.extend(beside.registers.iter_mut().flat_map(|port| port.take_stores()));
    }

    /// The ranks of collectives in software.
    pub fn hosts(&self) -> &[Host] {
        self.beside.as_ref().map_or(&[], |beside| &beside.hosts)
    }

    /// The rank of an application.
    pub fn rank(&self) -> Option<&Rank> {
        self.beside.as_ref()?.rank.as_deref()
    }

    /// The same, to be changed.
    pub fn rank_mut(&mut self) -> Option<&mut Rank> {
        self.beside.as_mut()?.rank.as_deref_mut()
    }

    /// Calls of collectives that have become ready to claim since the last time.
    pub fn take_ready(&mut self) -> Vec<ReadyCall> {
        let Some(beside) = &mut self.beside else { return Vec::new() };
        let mut ready = beside.processor.as_mut().map_or_else(Vec::new, Processor::take_ready);
        ready.extend(beside.rank.iter_mut().flat_map(|rank| rank.take_ready()));
        ready
    }

    /// The ranks of collectives in software, to be changed.
    pub fn hosts_mut(&mut self) -> &mut [Host] {
        self.beside.as_mut().map_or(&mut [], |beside| &mut beside.hosts)
    }
}

impl Block for End {
    type Tables = Registers;

    fn tick(&mut self, io: &mut Io<'_>, registers: &Registers) -> Wake {
        let mut wake = Wake::OnInput;
        if let Some(core) = self.core.as_mut().filter(|core| core.is_used()) {
            let processor = self.beside.as_mut().and_then(|beside| beside.processor.as_mut());
            wake = core.tick(io, processor.map(Processor::local_mut));
        }
        let traffic = &mut self.traffic;
        let Some(beside) = &mut self.beside else {
            let mut wants = self.core.as_ref().is_some_and(|core| core.wants_credits());
            if let Some(traffic) = traffic {
                wake = wake.or(traffic.tick(io));
                wants = self.core.is_some() || traffic.wants_credits();
            }
            io.heed_credits(wants);
            return wake;
        };
        let EndExtras { processor, hosts, rank, registers: port } = &mut **beside;
        if let Some(port) = port {
            port.receive(io, registers, processor.as_mut());
        }
        if let (Some(core), Some(processor)) = (&mut self.core, &mut *processor) {
            wake = wake.or(processor.tick(core, io, registers));
        }
        if let Some(port) = port {
            let (core, now) = (processor.as_ref().map_or(0, Processor::number), io.now());
            for request in processor.iter_mut().flat_map(Processor::take_requests) {
                port.request(core, &request, now);
            }
            wake = wake.or(port.send(io, registers, traffic.as_deref()));
        }
        if let Some(core) = &mut self.core {
            let all = io.shown();
            if registers.shares.messages > 0 {
                io.show(Channels { vcs: Vcs { unicast: registers.shares.messages, ..all.vcs }, ..all });
            }
            for host in &mut *hosts {
                wake = wake.or(host.tick(core, io));
            }
            if let Some(rank) = rank {
                wake = wake.or(rank.tick(core, io));
            }
            io.show(all);
        }
        let waits = port.as_ref().is_some_and(|port| port.wants_credits());
        if let Some(traffic) = traffic {
            wake = wake.or(traffic.tick(io));
            io.heed_credits(self.core.is_some() || traffic.wants_credits() || waits);
        } else if processor.is_none() && hosts.is_empty() && rank.is_none() {
            io.heed_credits(self.core.as_ref().is_some_and(|core| core.wants_credits()) || waits);
        }
        wake
    }

    fn open(&self) -> Option<String> {
        let core = self.core.as_ref().and_then(|core| core.open());
        let core = core.or_else(|| self.processor().and_then(Processor::open));
        let core = core.or_else(|| self.hosts().iter().find_map(Host::open));
        let core = core.or_else(|| self.rank().and_then(Rank::open));
        core.or_else(|| self.traffic().and_then(Traffic::open))
    }

    fn stall_reason(&self, head: &Flit) -> Option<String> {
        let id = head.tag.id();
        if head.tag.vc() == REQUEST
            && let Some(why) = self.processor().and_then(|processor| processor.stall_reason(id))
        {
            return Some(why);
        }
        self.core
            .as_ref()
            .filter(|core| core.has_not_called(id, head.tag.vc()))
            .map(|_| format!("it has not called collective id {id}"))
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        if let Some(core) = &self.core {
            core.probe(scope);
        }
        if let Some(processor) = self.processor() {
            processor.probe(scope);
        }
        for (number, host) in self.hosts().iter().enumerate() {
            scope.indexed("host", number, |scope| host.probe(scope));
        }
        if let Some(rank) = self.rank() {
            rank.probe(scope);
        }
        if let Some(traffic) = self.traffic() {
            traffic.probe(scope);
        }
        if let Some(port) = self.beside.as_ref().and_then(|beside| beside.registers.as_ref()) {
            port.probe(scope);
        }
    }
}

impl MayHaveTraffic for End {
    fn traffic(&self) -> Option<&Traffic> {
        self.traffic.as_deref()
    }

    fn traffic_mut(&mut self) -> Option<&mut Traffic> {
        self.traffic.as_deref_mut()
    }
}
