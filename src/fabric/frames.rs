//! The check before cycle 0 that buffers hold the frames that must fit them.
//!
//! A set-routed frame of several flits that goes to several outputs is copied independently to each; a flit leaves the
//! input buffer when every copy has read it. If the buffer holds the whole frame, a blocked copy delays no other: the
//! others read on to the tail. If it does not, the head that the blocked copy has not read keeps the tail out of the
//! buffer, every copy waits for the slowest, and copies that wait for each other across switches deadlock. So the
//! system is refused (requirement K-PIPE-1). Frames of one flit need nothing of the kind: they move in lock step.

use super::tables::Tables;
use super::wires::Depths;
use super::{NodeKind, Plan};

/// A buffer that cannot hold a multicast frame of its channel whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "port {port} of {switch}: its buffer of {depth} flits on set-routed channel {vc} cannot hold a multicast frame of \
     {frame} flits whole; it needs at least {frame}"
)]
pub struct ShortBuffer {
    /// Name of the switch.
    pub switch: String,
    /// Its input port.
    pub port: u16,
    /// The set-routed channel.
    pub vc: u8,
    /// What the buffer holds, in flits.
    pub depth: u16,
    /// What it must hold: [`Tables::longest_multicast`].
    pub frame: u32,
}

/// Checks that every input buffer of every switch holds the longest multicast frame of its channel.
///
/// # Errors
/// The first buffer that does not, in the order of the plan's links.
pub fn check_buffers<T: Tables<W>, const W: usize>(
    plan: &Plan,
    tables: &T,
    depths: Depths<'_>,
) -> Result<(), ShortBuffer> {
    for vc in 0..plan.vcs.set {
        let frame = tables.longest_multicast(vc);
        if frame < 2 {
            continue;
        }
        for link in &plan.links {
            let depth = depths(link, vc);
            if u32::from(depth) >= frame {
                continue;
            }
            for (node, port) in [link.a, link.b] {
                let at = &plan.nodes[node as usize];
                if at.kind == NodeKind::Switch {
                    return Err(ShortBuffer { switch: at.name.clone(), port, vc, depth, frame });
                }
            }
        }
    }
    Ok(())
}
