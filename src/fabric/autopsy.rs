//! The wait-for graph of a system that does not move any more (requirement K-WD-1).

use super::network::Network;
use super::ports::{NONE, channel, stride_shift};
use super::switch_view::route_entry;
use super::tables::{RouteView, Tables};
use super::wires::Phase;
use super::{Block, Join, NodeKind};
use watershed_kernel::{Autopsy, WaitFor};

impl<T, J, B, E, const W: usize> Network<T, J, B, E, W>
where
    T: Tables<W> + Sync,
    J: Join<Tables = T> + Clone + Send,
    B: Block<Tables = T> + Send,
    E: Block<Tables = T> + Send,
{
    /// The wait-for graph of the system (requirement K-WD-1). Meant for a system that does not move any more.
    pub fn autopsy(&self) -> Autopsy {
        let mut waits = Vec::new();
        for node in 0..self.plan.nodes.len() as u32 {
            if node < self.switches {
                self.switch_waits(node, &mut waits);
            } else {
                self.block_waits(node, &mut waits);
            }
        }
        Autopsy::new(waits)
    }

    pub(super) fn queue_name(&self, node: u32, port: u16, vc: u8) -> String {
        let plan = &self.plan.nodes[node as usize];
        let channel = &self.vc_names[usize::from(vc)];
        if plan.kind == NodeKind::End {
            format!("{} {channel}", self.node_name(node))
        } else {
            format!("{}.I{port} {channel}", self.node_name(node))
        }
    }

    /// The sending side of an end point. It is a place of its own: what an end point takes never waits for what it
    /// sends, so a chain that ends at a consumer must not go on through its sender.
    fn sender_name(&self, node: u32, vc: u8) -> String {
        format!("{} to send a {}", self.node_name(node), self.vc_names[usize::from(vc)])
    }

    /// The queue at the far end of a port, or a name for its absence.
    fn far_queue_name(&self, node: u32, port: u16, vc: u8) -> String {
        let wires = self.wires_of(node);
        let link = *wires.ports.link(wires.port(node, port));
        if link.to_port == NONE {
            return format!("nothing (port {port} of {} has no link)", self.node_name(node));
        }
        let base = self.wires_of(link.to_node).nodes[link.to_node as usize].port_base;
        self.queue_name(link.to_node, (link.to_port - base) as u16, vc)
    }

    /// Where the next flit of a channel comes from: the queue upstream that holds the channel, or the block there.
    fn upstream_name(&self, node: u32, port: u16, vc: u8) -> String {
        let wires = self.wires_of(node);
        let link = *wires.ports.link(wires.port(node, port));
        if link.to_port == NONE {
            return format!("{} engine", self.node_name(node));
        }
        let far_wires = self.wires_of(link.to_node);
        let owner = channel(far_wires.ports.port(link.to_port), vc).owner;
        if owner != 0 {
            let local = owner - 1;
            let holder = (local >> far_wires.flow.vc_shift, (local & ((1 << far_wires.flow.vc_shift) - 1)) as u8);
            return self.queue_name(link.to_node, holder.0, holder.1);
        }
        let far = &self.plan.nodes[link.to_node as usize];
        let other = 1 - (link.to_port - far_wires.nodes[link.to_node as usize].port_base).min(1) as u16;
        if far.kind == NodeKind::Bump
            && far_wires.inputs[far_wires.queue(far_wires.port(link.to_node, other), vc)].len > 0
        {
            return self.queue_name(link.to_node, other, vc);
        }
        if far.kind == NodeKind::End {
            return self.sender_name(link.to_node, vc);
        }
        self.node_name(link.to_node).into_owned()
    }

    fn switch_waits(&self, node: u32, waits: &mut Vec<WaitFor>) {
        let wires = self.wires_of(node);
        let info = wires.nodes[node as usize];
        let name = self.node_name(node);
        let engine_name = format!("{name} engine");
        for port in 0..info.ports {
            for vc in 0..self.plan.vcs.total() {
                let q = wires.queue(info.port_base + u32::from(port), vc);
                let queue = &wires.inputs[q];
                let who = || self.queue_name(node, port, vc);
                let Some((flit, _)) = wires.head(q) else {
                    // An empty queue in the middle of a packet holds its output for flits that are still upstream.
                    if matches!(queue.state.phase(), Phase::Active | Phase::Fork) {
                        let whom = self.upstream_name(node, port, vc);
                        waits.push(WaitFor { who: who(), whom, why: "the rest of its packet has not come".into() });
                    }
                    continue;
                };
                let (outs, out_vc): (Vec<u16>, u8) = match queue.state.phase() {
                    Phase::Idle if self.plan.vcs.is_set(vc) => {
                        (self.tables.outputs(node, port, &flit).iter().collect(), vc)
                    }
                    Phase::Idle if queue.len < self.tables.route_flits(vc - self.plan.vcs.set) => {
                        let whom = self.upstream_name(node, port, vc);
                        waits.push(WaitFor { who: who(), whom, why: "its address has not come".into() });
                        continue;
                    }
                    Phase::Idle => {
                        let sides = wires.ports.stretch(info.port_base, usize::from(info.ports));
                        let at =
                            RouteView::new(sides, (self.plan.vcs, stride_shift(wires.flow.vc_shift)), node, port, vc);
                        let entry = route_entry(&*self.tables, &wires.flow.pool, queue.head, at.channel);
                        (vec![self.tables.unicast(&at, &wires.flow.pool[entry].flit).port], self.plan.vcs.set)
                    }
                    Phase::Routed => (vec![queue.out_port], self.plan.vcs.set),
                    Phase::Active => {
                        (vec![queue.out_port], if self.plan.vcs.is_set(vc) { vc } else { queue.state.out_vc() })
                    }
                    Phase::Fork => {
                        let fork = self.with_port(info.port_base).forks.get(queue.out_port);
                        (fork.branches.iter().filter(|branch| !branch.done).map(|branch| branch.port).collect(), vc)
                    }
                };
                for out in outs {
                    let at = wires.port(node, out);
                    let channel = channel(wires.ports.port(at), out_vc);
                    let me = (port << wires.flow.vc_shift | u16::from(vc)) + 1;
                    let (whom, why) = if info.flags.engine() && out + 1 == info.ports {
                        if self.join_of(node).is_some_and(|join| join.has_room(port, vc)) {
                            continue;
                        }
                        (engine_name.clone(), format!("the operand slot of port {port} is full"))
                    } else if channel.owner != 0 && channel.owner != me {
                        let local = channel.owner - 1;
                        let holder = (local >> wires.flow.vc_shift, (local & ((1 << wires.flow.vc_shift) - 1)) as u8);
                        (self.queue_name(node, holder.0, holder.1), format!("its packet holds output P{out}"))
                    } else if channel.credits == 0 {
                        (self.far_queue_name(node, out, out_vc), format!("no credit on output P{out}"))
                    } else {
                        continue;
                    };
                    waits.push(WaitFor { who: who(), whom, why });
                }
            }
        }
        if info.flags.engine() {
            for (port, vc, why) in self.join_of(node).map_or_else(Vec::new, |join| join.waits_for(&self.tables, node)) {
                let q = wires.queue(info.port_base + u32::from(port), vc);
                let whom = if wires.inputs[q].len > 0 || port + 1 == info.ports {
                    self.queue_name(node, port, vc)
                } else {
                    let link = wires.ports.link(info.port_base + u32::from(port));
                    match self.plan.nodes.get(link.to_node as usize) {
                        Some(peer) if peer.kind == NodeKind::End => self.sender_name(link.to_node, vc),
                        Some(_) => format!("{} to send over P{port}", self.node_name(link.to_node)),
                        None => format!("port {port}, which has no link"),
                    }
                };
                waits.push(WaitFor { who: engine_name.clone(), whom, why });
            }
        }
    }

    fn block_waits(&self, node: u32, waits: &mut Vec<WaitFor>) {
        let wires = self.wires_of(node);
        let info = wires.nodes[node as usize];
        let name = self.node_name(node);
        let block = (node - self.switches) as usize;
        let (bump, end) = (self.bumps().get(block), block.checked_sub(self.all_bumps as usize));
        let open = match (bump, end) {
            (Some(bump), _) => bump.open(),
            (None, end) => end.and_then(|end| self.end(end).open()),
        };
        for port in 0..info.ports {
            for vc in 0..self.plan.vcs.total() {
                let q = wires.queue(info.port_base + u32::from(port), vc);
                if wires.inputs[q].len > 0 {
                    let who = self.queue_name(node, port, vc);
                    // A bump that passes things on waits for the credits of its other side.
                    if info.ports == 2
                        && channel(wires.ports.port(info.port_base + 1 - u32::from(port)), vc).credits == 0
                    {
                        let whom = self.far_queue_name(node, 1 - port, vc);
                        waits.push(WaitFor { who, whom, why: "no credit on the other side".into() });
                    } else {
                        let head = wires.head(q).and_then(|(flit, _)| match (bump, end) {
                            (Some(bump), _) => bump.stall_reason(&flit),
                            (None, end) => end.and_then(|end| self.end(end).stall_reason(&flit)),
                        });
                        let why = head.or_else(|| open.clone()).unwrap_or_else(|| "it takes nothing more".into());
                        waits.push(WaitFor { who, whom: name.clone().into_owned(), why });
                    }
                }
                if open.is_some()
                    && wires.ports.link(info.port_base + u32::from(port)).to_port != NONE
                    && wires.ports.channel(q).credits == 0
                {
                    let whom = self.far_queue_name(node, port, vc);
                    let who = if self.plan.nodes[node as usize].kind == NodeKind::End {
                        self.sender_name(node, vc)
                    } else {
                        name.clone().into_owned()
                    };
                    waits.push(WaitFor { who, whom, why: "no credit".into() });
                }
            }
        }
    }
}
