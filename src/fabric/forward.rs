//! Set-routed forwarding: moves packets whose output ports are a set (configuration registers, multicast tables).
//!
//! ```text
//!   input queue of (port, vc) ──▶ route: a set of outputs ──┬─ one flit:   all outputs at once, or not at all
//!                                                          ├─ one output: wormhole, the output channel is held
//!                                                          └─ several flits and outputs: independent copies
//! ```
//!
//! | rule | why |
//! |---|---|
//! | channels from the highest down, all before point-to-point | strict priority (P-SW-4); responses drain before requests *chosen* |
//! | a one-flit packet moves only when *all* its outputs are free and have a credit | lock step (P-SW-6) |
//! | a longer multicast makes a copy per output, each at its own pace; a flit leaves the buffer when every copy has read it | lock step over many flits can deadlock; the buffer must hold a whole frame (K-PIPE-1) |
//! | an input port feeds the crossbar one flit a cycle; the copies of one frame count once each *chosen* | the buffer has a read port per copy |
//! | every link takes one flit a cycle, or one in several; while a packet of one flit waits only for links of its outputs, no point-to-point flit starts that would occupy one of them longer | links that are free at different times would never be free at once (H-WIDTH-1) |
//!
//! The arbiter chooses among inputs that want the same output; there is one arbiter a channel and switch, because a
//! packet may want many outputs. A matrix shares each output equally. A round-robin cursor starves nobody and shares
//! equally among inputs that want the same outputs, but inputs that want different ones move the cursor for each other,
//! and then shares are not equal. Losing or being blocked changes no register.

use super::ports::{NONE, channel};
use super::switch_parts::{Branch, Cx, Fork};
use super::tables::Tables;
use super::waits::{Cause, HopTarget};
use super::wires::{Phase, State};
use super::{Flit, Join, PortSet};
use watershed_kernel::Wake;

/// Why a packet did not move, which tells the switch when to try again.
enum Blocked {
    /// Only an arriving credit or flit can change it, or another move in this switch.
    Waits,
    /// At a known cycle (a front stage, a narrow link).
    Until(u64),
}

/// Serves every set-routed channel of a switch for one cycle.
pub(super) fn serve<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>) {
    // What stands in queues does not change for a channel while others are served. One word is looked at once; of several,
    // any may have something.
    let occupied = match cx.wires.nodes.masks(cx.node) {
        [word] => word.occupied,
        _ => u64::MAX,
    };
    for vc in (0..cx.wires.flow.vcs.set).rev() {
        if occupied & cx.wires.first_bits << vc == 0 {
            continue;
        }
        let mut left: PortSet<W> = cx.wires.occupied(cx.node, vc);
        if left.is_empty() {
            continue;
        }
        let local = (cx.node - cx.arbiters.first_switch) as usize;
        let arbiter = local * usize::from(cx.wires.flow.vcs.set) + usize::from(vc);
        let mut moved = false;
        while let Some(port) = cx.arbiters.set.pick(arbiter, &left) {
            left.remove(port);
            match try_move(cx, port, vc) {
                Ok(()) => {
                    if moved {
                        cx.arbiters.set.also_granted(arbiter, port);
                    } else {
                        cx.arbiters.set.granted(arbiter, port);
                    }
                    moved = true;
                }
                Err(blocked) => {
                    if let Blocked::Until(cycle) = blocked {
                        cx.wake = cx.wake.or(Wake::At(cycle));
                    }
                    if cx.wires.ports.stats.waits.is_some() {
                        note_wait(cx, port, vc);
                    }
                }
            }
        }
        cx.changed |= moved;
    }
    cx.taken_out = cx.taken_out | cx.reserved;
}

fn try_move<T: Tables<W>, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    port: u16,
    vc: u8,
) -> Result<(), Blocked> {
    let q = cx.wires.queue(cx.base + u32::from(port), vc);
    let Some((flit, ready)) = cx.wires.head(q) else { return Err(Blocked::Waits) };
    if cx.taken_in.contains(port) {
        return Err(Blocked::Waits);
    }
    match cx.wires.inputs[q].state.phase() {
        Phase::Idle => {
            ready.map_err(Blocked::Until)?;
            let targets = cx.tables.outputs(cx.node, port, &flit);
            if targets.is_empty() {
                let tables = cx.tables;
                let node = cx.node;
                cx.wires.fail(|| tables.no_route(node, port, &flit));
                return Err(Blocked::Waits);
            }
            if flit.tag.tail() {
                lock_step(cx, port, vc, targets)
            } else if targets.len() == 1 {
                let out = targets.first().expect("one target");
                worm(cx, port, vc, q, out)
            } else if cx.tables.longest_multicast(vc) < 2 {
                let node = cx.node;
                cx.wires.fail(|| format!("switch {node}: a multicast of several flits came in by port {port} on channel {vc}, and the tables declare none (Tables::longest_multicast)"));
                Err(Blocked::Waits)
            } else {
                fork(cx, q, targets);
                advance(cx, port, vc, q)
            }
        }
        Phase::Fork => advance(cx, port, vc, q),
        Phase::Active | Phase::Routed => {
            ready.map_err(Blocked::Until)?;
            let out = cx.wires.inputs[q].out_port;
            worm(cx, port, vc, q, out)
        }
    }
}

/// Whether output `out` can take a flit of the packet with owner number `owner` (0: the channel must be free).
fn available<T, J: Join<Tables = T>, const W: usize>(
    cx: &Cx<'_, T, J, W>,
    out: u16,
    port: u16,
    vc: u8,
    owner: u16,
) -> Result<(), Blocked> {
    // An engine has a slot for every input port: nothing of it is shared, so nothing of it is held.
    if cx.is_engine(out) {
        return if cx.join.has_room(port, vc) { Ok(()) } else { Err(Blocked::Waits) };
    }
    if cx.taken_out.contains(out) {
        return Err(Blocked::Waits);
    }
    let at = cx.base + u32::from(out);
    let channel = channel(cx.wires.ports.port(at), vc);
    if channel.owner != owner || channel.credits == 0 {
        return Err(Blocked::Waits);
    }
    cx.wires.is_free(at).map_err(Blocked::Until)
}

/// Lets the packet with owner number `owner` hold an output channel (0 frees it). Slots of an engine are not held.
fn hold<T, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>, out: u16, vc: u8, owner: u16) {
    if !cx.is_engine(out) {
        cx.wires.hold(cx.base + u32::from(out), vc, owner);
    }
}

/// Writes down what the flit at the head of a queue waits for in this cycle, if it is one that could have left.
#[cold]
fn note_wait<T: Tables<W>, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>, port: u16, vc: u8) {
    let q = cx.wires.queue(cx.base + u32::from(port), vc);
    let Some((flit, Ok(()))) = cx.wires.head(q) else { return };
    let queue = &cx.wires.inputs[q];
    let entry = queue.head;
    let (targets, owner) = match queue.state.phase() {
        Phase::Idle => (cx.tables.outputs(cx.node, port, &flit), 0),
        Phase::Active | Phase::Routed => (PortSet::one(queue.out_port), cx.owner_number(port, vc)),
        Phase::Fork => return note_copies(cx, port, vc, q),
    };
    let now = cx.wires.flow.now;
    let way = (port, vc);
    if let Some(waits) = &mut cx.wires.ports.stats.waits {
        waits.set_outputs(entry, &targets);
    }
    if targets.len() < 2 {
        let Some(out) = targets.first() else { return };
        let cause = stands_in_the_way(cx, out, way, owner).unwrap_or(Cause::Arbitration);
        if let Some(waits) = &mut cx.wires.ports.stats.waits {
            waits.note(entry, now, cause);
        }
        return;
    }
    // Copies of several flits do not wait for each other.
    let any = flit.tag.tail() && targets.iter().any(|out| stands_in_the_way(cx, out, way, owner).is_some());
    let rest = if any { Cause::Output } else { Cause::Arbitration };
    for out in &targets {
        let cause = stands_in_the_way(cx, out, way, owner).unwrap_or(rest);
        // When the link is free something else may be in the way.
        if cause == Cause::Link
            && let Err(until) = cx.wires.is_free(cx.base + u32::from(out))
        {
            cx.wake = cx.wake.or(Wake::At(until));
        }
        if let Some(waits) = &mut cx.wires.ports.stats.waits {
            waits.note_copy((entry, out), now, cause);
        }
    }
}

/// The same for the copies of a multicast of several flits, of each the next flit.
fn note_copies<T: Tables<W>, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    port: u16,
    vc: u8,
    q: usize,
) {
    let fork = cx.forks.take(cx.wires.inputs[q].out_port);
    let now = cx.wires.flow.now;
    for branch in &fork.branches {
        let Some(next) = next_of(cx, q, branch, fork.popped) else { continue };
        if branch.could_send(&fork, cx.wires.flow.pool[next as usize].ready) > now {
            continue;
        }
        let owner = if branch.sent == 0 { 0 } else { cx.owner_number(port, vc) };
        let cause = stands_in_the_way(cx, branch.port, (port, vc), owner).unwrap_or(Cause::Arbitration);
        if let Some(waits) = &mut cx.wires.ports.stats.waits {
            waits.note_copy((next, branch.port), now, cause);
        }
    }
    cx.forks.put(cx.wires.inputs[q].out_port, fork);
}

/// The pool entry of the next flit of a copy, if it has come: the head of the queue if the copy has read all that left, else what
/// follows its last.
fn next_of<T, J: Join<Tables = T>, const W: usize>(
    cx: &Cx<'_, T, J, W>,
    q: usize,
    branch: &Branch,
    popped: u16,
) -> Option<u32> {
    let queue = &cx.wires.inputs[q];
    let next = match branch {
        Branch { done: true, .. } => NONE,
        Branch { sent, .. } if *sent != popped => cx.wires.flow.pool[branch.last as usize].next,
        _ if queue.len == 0 => NONE,
        _ => queue.head,
    };
    (next != NONE).then_some(next)
}

/// What was in the way of a flit to an output at the start of the cycle, of the packet with owner number `owner`.
fn stands_in_the_way<T, J: Join<Tables = T>, const W: usize>(
    cx: &Cx<'_, T, J, W>,
    out: u16,
    (port, vc): (u16, u8),
    owner: u16,
) -> Option<Cause> {
    if cx.is_engine(out) {
        let visible = cx.wires.flow.now + u64::from(cx.wires.flow.delays.post);
        return match (cx.join.has_room(port, vc), cx.join.operands_missing(cx.tables, cx.node, (port, vc), visible)) {
            (true, _) => None,
            (false, true) => Some(Cause::Operands),
            (false, false) => Some(Cause::Engine),
        };
    }
    let (at, now) = (cx.base + u32::from(out), cx.wires.flow.now);
    let channel = channel(cx.wires.ports.port(at), vc);
    let registers = (channel.owner, channel.credits);
    let waits = cx.wires.ports.stats.waits.as_ref()?;
    let (held, credits, was_free) = waits.at_start(out, at, vc, registers, now);
    if held != owner {
        Some(Cause::Channel)
    } else if credits == 0 {
        Some(Cause::Credit)
    } else if !was_free && cx.wires.is_free(at).is_err() {
        Some(Cause::Link)
    } else {
        None
    }
}

/// Keeps what the registers of an output were before a flit leaves by it.
fn snapshot_output<T, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>, out: u16, vc: u8) {
    if cx.is_engine(out) {
        return;
    }
    let (at, now) = (cx.base + u32::from(out), cx.wires.flow.now);
    let channel = *channel(cx.wires.ports.port(at), vc);
    if let Some(waits) = &mut cx.wires.ports.stats.waits {
        waits.snapshot_output(out, at, vc, (channel.owner, channel.credits), now);
    }
}

/// Puts one flit on one output. If it stands in the pool and in no queue, in `entry`, the first link that it leaves over
/// takes the entry.
fn emit<T, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    (port, vc): (u16, u8),
    out: u16,
    flit: Flit,
    waited: u64,
    entry: &mut u32,
) {
    if cx.is_engine(out) {
        let visible = cx.wires.flow.now + u64::from(cx.wires.flow.delays.post) + 1;
        cx.wires.flow.note_put(cx.base + u32::from(port), &flit, visible);
        cx.join.put_wide(port, vc, (flit, cx.wires.flow.more.taken()), visible);
        cx.wake = cx.wake.or(Wake::At(visible));
    } else {
        cx.wires.flow.comes_from(Some((cx.base + u32::from(port), vc)));
        let entry = match std::mem::replace(entry, NONE) {
            NONE => cx.wires.flow.store_taken(flit),
            entry => entry,
        };
        cx.wires.forward(cx.base + u32::from(out), vc, entry, cx.wires.flow.delays.post, waited);
        cx.taken_out.insert(out);
    }
}

/// A packet of one flit: all outputs at once.
fn lock_step<T, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    port: u16,
    vc: u8,
    targets: PortSet<W>,
) -> Result<(), Blocked> {
    let mut busy = None;
    for out in &targets {
        match available(cx, out, port, vc, 0) {
            Ok(()) => {}
            Err(Blocked::Waits) => return Err(Blocked::Waits),
            Err(Blocked::Until(cycle)) => busy = Some(busy.map_or(cycle, |last: u64| last.max(cycle))),
        }
    }
    let Some(cycle) = busy else {
        leave(cx, port, vc, &targets);
        return Ok(());
    };
    // A packet of lower priority must not occupy one of its links beyond that, or it would wait for one after the other, for ever.
    for out in &targets {
        if !cx.is_engine(out) && !cx.wires.flow.is_free_by(cx.base + u32::from(out), cycle) {
            cx.reserved.insert(out);
        }
    }
    Err(Blocked::Until(cycle))
}

/// The head of a queue leaves over `outs`, all of which can take it. Its place in the pool goes with the first copy that
/// leaves over a link, for most packets have one output and would only get another place.
fn leave<T, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    port: u16,
    vc: u8,
    outs: &PortSet<W>,
) -> Flit {
    let (mut entry, waited) = cx.wires.unlink(cx.node, cx.base + u32::from(port), vc);
    let flit = cx.wires.flow.pool[entry as usize].flit;
    cx.wires.flow.more.take(entry);
    cx.taken_in.insert(port);
    if cx.wires.ports.stats.waits.is_some() {
        count_wait(cx, vc, outs, entry, waited);
    }
    for out in outs {
        emit(cx, (port, vc), out, flit, waited, &mut entry);
    }
    if entry != NONE {
        cx.wires.flow.discard(entry);
    }
    flit
}

/// What a flit that leaves has waited for goes to its outputs.
fn count_wait<T, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    vc: u8,
    outs: &PortSet<W>,
    entry: u32,
    waited: u64,
) {
    if let Some(waits) = cx.wires.ports.stats.waits.as_mut().filter(|_| waited > 0) {
        waits.set_outputs(entry, outs);
    }
    for out in outs {
        count_output(cx, vc, (entry, out), outs.len() > 1, waited);
    }
}

/// The same for one output; a copy is one of several.
fn count_output<T, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    vc: u8,
    (entry, out): (u32, u16),
    is_copy: bool,
    waited: u64,
) {
    snapshot_output(cx, out, vc);
    let towards = if cx.is_engine(out) { HopTarget::Engine } else { HopTarget::Link };
    let (port, now) = (cx.base + u32::from(out), cx.wires.flow.now);
    let Some(waits) = cx.wires.ports.stats.waits.as_mut().filter(|_| waited > 0) else { return };
    match towards {
        HopTarget::Engine => waits.engine_waited += waited,
        HopTarget::Link => waits.count_apart(port, waited),
    }
    if is_copy {
        waits.leave_copy((entry, out), port, towards, now);
    } else {
        waits.leave(entry, port, towards, now);
    }
}

/// A longer packet with one output: it holds the output channel from head to tail.
fn worm<T, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    port: u16,
    vc: u8,
    q: usize,
    out: u16,
) -> Result<(), Blocked> {
    let me = cx.owner_number(port, vc);
    let holds = cx.wires.inputs[q].state.phase() == Phase::Active;
    available(cx, out, port, vc, if holds { me } else { 0 })?;
    let flit = leave(cx, port, vc, &std::iter::once(out).collect());
    let queue = &mut cx.wires.inputs[q];
    if flit.tag.tail() {
        queue.state = State::IDLE;
    } else {
        queue.state = State::active(vc);
        queue.out_port = out;
    }
    hold(cx, out, vc, if flit.tag.tail() { 0 } else { me });
    Ok(())
}

/// Starts independent copies of a longer multicast.
fn fork<T, J: Join<Tables = T>, const W: usize>(cx: &mut Cx<'_, T, J, W>, q: usize, targets: PortSet<W>) {
    let record = cx.forks.open(targets.iter());
    let queue = &mut cx.wires.inputs[q];
    if let Some(waits) = &mut cx.wires.ports.stats.waits {
        waits.set_outputs(queue.head, &targets);
    }
    queue.state = State::FORK;
    queue.out_port = record;
}

/// Moves each copy of a forked packet on by at most one flit, and frees what all copies have read.
fn advance<T: Tables<W>, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    port: u16,
    vc: u8,
    q: usize,
) -> Result<(), Blocked> {
    let me = cx.owner_number(port, vc);
    let longest = cx.tables.longest_multicast(vc);
    let record = cx.wires.inputs[q].out_port;
    let mut fork = cx.forks.take(record);
    let mut branches = std::mem::take(&mut fork.branches);
    let now = cx.wires.flow.now;
    let mut moved = false;
    let mut until: Option<u64> = None;
    let mut look = |at: u64| until = Some(until.map_or(at, |first| first.min(at)));
    for branch in &mut branches {
        let Some(next) = next_of(cx, q, branch, fork.popped) else { continue };
        let slot = cx.wires.flow.pool[next as usize];
        if slot.ready > now {
            look(slot.ready);
            continue;
        }
        match available(cx, branch.port, port, vc, if branch.sent == 0 { 0 } else { me }) {
            Ok(()) => {}
            Err(Blocked::Waits) => continue,
            Err(Blocked::Until(cycle)) => {
                look(cycle);
                continue;
            }
        }
        let waited = now - branch.could_send(&fork, slot.ready);
        if cx.wires.ports.stats.waits.is_some() {
            count_output(cx, vc, (next, branch.port), true, waited);
        }
        hold(cx, branch.port, vc, if slot.flit.tag.tail() { 0 } else { me });
        *branch = Branch { sent: branch.sent + 1, done: slot.flit.tag.tail(), last: next, from: now + 1, ..*branch };
        if u32::from(branch.sent) == longest && !branch.done {
            let node = cx.node;
            cx.wires.fail(|| format!("switch {node}: a multicast frame on channel {vc} that came in by port {port} has more than the {longest} flits the tables declare (Tables::longest_multicast)"));
        }
        cx.wires.flow.more.take(next);
        emit(cx, (port, vc), branch.port, slot.flit, waited, &mut { NONE });
        moved = true;
    }
    fork.branches = branches;
    if free_read(cx, (port, vc), q, &mut fork) {
        cx.wires.inputs[q].state = State::IDLE;
        cx.forks.close(record);
    } else {
        cx.forks.put(record, fork);
        if moved && cx.wires.ports.stats.waits.is_some() {
            note_copies(cx, port, vc, q);
        }
    }
    if moved {
        cx.taken_in.insert(port);
        cx.changed = true;
        Ok(())
    } else {
        Err(until.map_or(Blocked::Waits, Blocked::Until))
    }
}

/// Frees the flits of a forked packet that all copies have read; whether its tail was among them.
fn free_read<T, J: Join<Tables = T>, const W: usize>(
    cx: &mut Cx<'_, T, J, W>,
    (port, vc): (u16, u8),
    q: usize,
    fork: &mut Fork,
) -> bool {
    let read_by_all = fork.branches.iter().map(|branch| branch.sent).min().unwrap_or(0);
    let mut closed = false;
    while fork.popped < read_by_all {
        let pool = &cx.wires.flow.pool;
        let behind = pool[cx.wires.inputs[q].head as usize].next;
        fork.head_ready = (behind != NONE).then(|| pool[behind as usize].ready);
        let (flit, _) = cx.wires.pop(cx.node, cx.base + u32::from(port), vc);
        fork.popped += 1;
        closed = flit.tag.tail();
    }
    closed
}
