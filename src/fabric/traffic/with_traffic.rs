//! An end point of a family with background traffic beside it.
//!
//! ```text
//!              ┌───────────── end point ─────────────┐
//!   channels   │  block of the family     first      │      one link: the block sends first,
//!   left to ───┼─▶ ────────────────────────────────  ├────▶ traffic in the cycles it leaves
//!   the block  │  sources and sink        second     │
//!              └─────────────────────────────────────┘
//! ```
//!
//! The family's block has the first point-to-point channels and all set-routed ones; traffic has the channels behind
//! them ([`Traffic::leave`](super::Traffic::leave)). An end point without traffic costs a pointer.

use super::{MayHaveTraffic, Traffic};
use crate::{Block, Flit, Io};
use std::ops::{Deref, DerefMut};
use watershed_kernel::Wake;
use watershed_probe::Scope;
use watershed_state::{State, state};

/// A block at the port of an end point, and traffic beside it.
#[derive(Clone, Debug)]
pub struct WithTraffic<B> {
    block: B,
    traffic: Option<Box<Traffic>>,
}

state!([B: State] WithTraffic<B> { saved: block; boxed: traffic });

impl<B> WithTraffic<B> {
    /// Puts traffic beside the block.
    pub fn set_traffic(&mut self, traffic: Traffic) {
        self.traffic = Some(Box::new(traffic));
    }
}

impl<B> From<B> for WithTraffic<B> {
    fn from(block: B) -> Self {
        WithTraffic { block, traffic: None }
    }
}

impl<B> Deref for WithTraffic<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.block
    }
}

impl<B> DerefMut for WithTraffic<B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.block
    }
}

impl<B: Block> Block for WithTraffic<B> {
    type Tables = B::Tables;

    fn tick(&mut self, io: &mut Io<'_>, tables: &B::Tables) -> Wake {
        let wake = self.block.tick(io, tables);
        self.traffic.as_mut().map_or(wake, |traffic| wake.or(traffic.tick(io)))
    }

    fn open(&self) -> Option<String> {
        self.block.open().or_else(|| self.traffic.as_ref()?.open())
    }

    fn stall_reason(&self, head: &Flit) -> Option<String> {
        self.block.stall_reason(head)
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        self.block.probe(scope);
        if let Some(traffic) = &self.traffic {
            traffic.probe(scope);
        }
    }
}

impl<B> MayHaveTraffic for WithTraffic<B> {
    fn traffic(&self) -> Option<&Traffic> {
        self.traffic.as_deref()
    }

    fn traffic_mut(&mut self) -> Option<&mut Traffic> {
        self.traffic.as_deref_mut()
    }
}
