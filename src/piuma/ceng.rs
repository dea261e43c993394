//! The collective engine (CENG) of a switch (requirements P-SW-2, P-SW-3; "Accelerating Allreduce with in-network
//! reduction on Intel PIUMA", section "Collective Engine").
//!
//! ```text
//!             ┌─────────────────────────── CENG ───────────────────────────┐
//!   from I0 ─▶│ slot 0 ─┐                                                  │
//!   from I1 ─▶│ slot 1 ─┼─▶ all ports with the engine's bit ─▶ tree of     │
//!      …      │    …    │   in the register of this id          two-input  ├─▶ crossbar input 10:
//!   from I9 ─▶│ slot 9 ─┘   have an operand                     units      │   request, or at the root response
//!             └────────────────────────────────────────────────────────────┘
//! ```
//!
//! | port | direction | what |
//! |---|---|---|
//! | slot n | in | requests that came in by port n and whose register has the engine's bit |
//! | result | out | the reduction, into the queue of the engine's crossbar input |
//!
//! | parameter | default | unit | range | effect on cycles | effect on storage |
//! |---|---|---|---|---|---|
//! | `tree.radix` | the switch's ports | ports | 1 to 64 | ceil(log2 radix) levels | radix - 1 units |
//! | `tree.unit_stages` | 3 | cycles a level | 1 to 6 | latency = levels x stages | registers |
//! | `operand_slots` | 2 | flits a port and plane | from 1 | 1 halves the rate of switches of 2 or more stages | slots x ports |
//! | `result_slots` | enough | flits a plane | from 1 | below latency + front + 1 the rate falls | slots |
//!
//! Timing: an operand granted in cycle t is visible in its slot at t + post + 1. In a cycle in which every configured
//! port of an id has a visible operand and a result place is free, all are taken together; the result is at the crossbar's
//! engine input `tree.latency` cycles later. One reduction a cycle, whatever the radix and the stages.
//!
//! The tree is the composition of its units' stages. Where no waveform shows its registers, a result is computed when
//! the operands are taken ([`eval`](watershed_arith::tree::eval)) and held back for the latency of the tree. The port
//! sees the same as with registers, and an engine at work sleeps until its next result is due. Where a waveform shows
//! them ([`watch`](Join::watch)), they are clocked beside that, from the same operands through the same stage functions
//! ([`TreeStages`]), and the engine is awake while something is in them. Waves have them under `ceng.tree`, named as
//! [`stage_waves`] says, with `id` and `seq` of each: for the operations and types that ids of this switch are
//! configured for, or for all where programs may change the configuration.
//!
//! The order of reduction is the order of the ports, fixed by the tree; it depends neither on arrival nor on which ports
//! are configured, so a result is repeatable bit for bit. Exception flags of the operands and of the operation travel
//! with the result.
//!
//! *Chosen*: a slot that is emptied in a cycle may be granted in the same cycle. A result reserves its place when its
//! operands are taken, so the tree never has to stop. If operands of several ids wait, the id at the lowest port goes
//! first; if those of several planes do, planes take turns. Each plane has operand slots and result places of its own,
//! so planes wait for each other only for a turn of the tree. Limitations: one operand a flit.
//!
//! Prefix scans go through the [scan unit](super::scan) beside the tree.

use super::claim::Unit;
use super::scan::{self, ScanUnit};
use super::scan_stages::ScanStages;
use super::{MAX_PLANES, REQUEST, RESPONSE, Registers, channel, kind, plane};
use watershed_arith::stages::{TreeStages, units_of};
use watershed_arith::{self as arith, Flags, Operands, TreeCfg, TreeIn};
use watershed_fabric::stage_waves::{self, TagField};
use watershed_fabric::{Flit, Join, JoinCx, JoinOut, Tag};
use watershed_kernel::{Cycle, InlineQueue, InlineVec, Wake};
use watershed_probe::{EnumTable, Scope};
use watershed_state::{Loader, Mismatch, Saver, State, state};

/// Parameters of a CENG; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CengCfg {
    /// The reduction tree.
    pub tree: TreeCfg,
    /// Operands a port can hold.
    pub operand_slots: u32,
    /// Results that can be in the tree and in the queue behind it.
    pub result_slots: u32,
    /// Elements of scans between going up and coming down.
    pub scan_slots: u32,
}

impl CengCfg {
    /// The number of result places that sustains one reduction a cycle in a switch with `front` stages before switch
    /// allocation.
    pub fn enough_result_slots(tree: TreeCfg, front: u16) -> u32 {
        tree.latency_cycles() as u32 + u32::from(front) + 2
    }
}

/// A collective engine. Idle it is 32 bytes; what it holds exists only while it works, in one piece.
///
/// ```
/// use watershed_arith::{DType, Mode, Op, TreeCfg};
/// use watershed_fabric::{Flit, Join, JoinCx, QueueLengths};
/// use watershed_piuma::{Ceng, CengCfg, OpSelect, REQUEST, Registers, RegistersCfg};
/// # use watershed_fabric::routing::{Routes, Routing};
/// # use watershed_fabric::topology::Die;
/// # let routes = Routes { routing: Routing::Die(Die::default()), ends: Vec::new() };
///
/// // Id 3 of switch 0 sums the requests of ports 2 and 7; the result goes on by port 5.
/// let cfg = RegistersCfg { switches: 1, ids: 4, external_ports: 10 };
/// let mut registers = Registers::new(cfg, vec!["sw0".to_owned()], routes);
/// for (port, vector) in [(2, 1 << 10), (7, 1 << 10), (10, 1 << 5)] {
///     registers.store(Registers::vector_address(0, 3, REQUEST, port), vector).unwrap();
/// }
/// let select = OpSelect { op: Op::Sum, dtype: DType::I64, mode: Mode::default() };
/// registers.store(Registers::select_address(0, 3), select.encode()).unwrap();
///
/// // A tree over 11 ports with units of one stage: four levels, four cycles.
/// let tree = TreeCfg { radix: 11, unit_stages: 1 };
/// let mut ceng = Ceng::new(CengCfg { tree, operand_slots: 2, result_slots: 8, scan_slots: 8 });
/// ceng.put_flit(2, REQUEST, Flit::collective(3, REQUEST, 0, 40), 20); // visible from cycle 20 on
/// ceng.put_flit(7, REQUEST, Flit::collective(3, REQUEST, 0, 2), 23); // the last operand
/// let result = (20..40).find_map(|now| {
///     let cx = JoinCx { tables: &registers, switch: 0, now, queued: QueueLengths::counts(&[]) };
///     ceng.tick(&cx).result.map(|flit| (now, flit.word))
/// });
/// assert_eq!(result, Some((27, 42))); // taken in cycle 23, at the crossbar four cycles later
/// ```
#[derive(Clone, Debug)]
pub struct Ceng {
    cfg: CengCfg,
    busy: Option<Box<ActiveState>>,
    extras: Option<Box<CengExtras>>,
}

impl State for Ceng {
    fn save(&self, to: &mut Saver) {
        let Ceng { cfg: _, busy, extras } = self;
        to.value(busy);
        to.value(&extras.is_some());
        if let Some(CengExtras { claim, tap, stages: _ }) = extras.as_deref() {
            to.values((claim, tap));
        }
        to.watched(extras.as_ref().and_then(|extras| extras.stages.as_deref()));
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        self.busy = from.value()?;
        if from.value()? {
            let extras = self.extras.get_or_insert_default();
            (extras.claim, extras.tap) = from.value()?;
        }
        let stages = self.extras.as_mut().and_then(|extras| extras.stages.as_deref_mut());
        let watched = stages.is_some();
        from.watched(stages)?;
        if let Some(scan) = self.busy.as_mut().and_then(|busy| busy.scan.as_mut()).filter(|_| !watched) {
            scan.note_nothing();
        }
        Ok(())
    }
}

/// State that few engines need: claim registers of their switch, a tap, and stage registers for waveforms.
#[derive(Clone, Debug, Default)]
struct CengExtras {
    /// The claim registers of the switch.
    claim: Unit,
    tap: Option<Tap>,
    /// The registers of tree and scan unit, if a waveform shows them.
    stages: Option<Box<Stages>>,
}

/// The stage registers of an engine.
#[derive(Clone, Debug)]
struct Stages {
    tree: TreeStages,
    /// Nodes that join operands of an id that is configured, by level.
    joining: Vec<u64>,
    scan: ScanStages,
}

state!(Stages { saved: tree, scan; built: joining });

impl Stages {
    fn is_empty(&self) -> bool {
        self.tree.is_empty() && self.scan.is_empty()
    }
}

impl CengExtras {
    /// One clock of the tree's registers; the tap is behind them.
    fn reduced(&mut self, taken: Option<&TreeIn>, result: &mut Option<Flit>) {
        if let Some(Stages { tree, .. }) = self.stages.as_deref_mut() {
            let left = tree.clock(taken);
            debug_assert_eq!(
                left.map(|left| left.value),
                result.map(|flit| flit.word),
                "the last register of the tree has the result that leaves"
            );
        }
        if let (Some(tap), Some(result)) = (&mut self.tap, result)
            && (tap.id, tap.seq) == (result.tag.id(), result.tag.seq())
        {
            result.word ^= tap.flip;
            tap.seen = Some(result.word);
        }
    }
}

/// What a tag of the tree's stages shows of a flit's [`Tag`].
pub const STAGE_TAG: [TagField; 2] =
    [TagField { name: "id", low: 16, width: 12 }, TagField { name: "seq", low: 28, width: 36 }];

/// A tap on the engine's result port, for one element of one collective id: a test instrument, not hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Tap {
    /// Collective id.
    pub id: u16,
    /// Number of the word in the stream.
    pub seq: u64,
    /// Bits to flip in it.
    pub flip: u64,
    /// The word that left, after flipping.
    pub seen: Option<u64>,
}

/// The registers of a working engine.
#[derive(Clone, Debug, watershed_state::Saved)]
struct ActiveState {
    /// Operand slots of all ports together, oldest first.
    operands: InlineVec<Operand, 4>,
    /// What is in the tree, and the cycle in which it comes out, in order.
    results: InlineQueue<(Cycle, Flit)>,
    /// The scan unit, from its first element on.
    scan: Option<Box<ScanUnit>>,
    /// Operands may be complete that were not taken in the last tick.
    left_q: bool,
    /// Reductions of each plane in the tree: one a cycle, so never more than its latency.
    flying: [u8; MAX_PLANES as usize],
    /// The plane that goes first.
    next_plane_q: u8,
}

#[derive(Clone, Copy, Debug, Default, watershed_state::Saved)]
struct Operand {
    visible: Cycle,
    flit: Flit,
    port: u16,
    plane: u8,
}

impl Operand {
    #[inline]
    fn is_at(&self, port: u16, plane: u8) -> bool {
        (self.port, self.plane) == (port, plane)
    }
}

/// The engine's state in waves.
static STATES: EnumTable = EnumTable { name: "ceng", names: &["IDLE", "GATHER", "REDUCE", "SCAN"] };

impl Ceng {
    /// An idle engine.
    pub fn new(cfg: CengCfg) -> Ceng {
        Ceng { cfg, busy: None, extras: None }
    }

    /// Puts a tap on the result port.
    pub fn set_tap(&mut self, tap: Tap) {
        self.extras.get_or_insert_default().tap = Some(tap);
    }

    /// The tap, if there is one.
    pub fn tap(&self) -> Option<&Tap> {
        self.extras.as_deref()?.tap.as_ref()
    }

    /// Whether operands of a collective id wait in it.
    pub fn holds(&self, id: u16) -> bool {
        let held = |busy: &ActiveState| busy.operands.as_slice().iter().any(|operand| operand.flit.tag.id() == id);
        self.busy.as_deref().is_some_and(held)
    }

    /// The claim registers of its switch, which sit beside it.
    pub fn claim_mut(&mut self) -> &mut Unit {
        &mut self.extras.get_or_insert_default().claim
    }

    /// The same, if it has any.
    pub fn claim(&self) -> Option<&Unit> {
        self.extras.as_deref().map(|extras| &extras.claim).filter(|unit| !unit.is_empty())
    }

    /// The parameters.
    pub fn cfg(&self) -> CengCfg {
        self.cfg
    }
}

/// The ports whose oldest operand on a plane is visible and one that is asked for, a bit each.
#[inline]
fn heads(operands: &[Operand], plane: u8, now: Cycle, asked: impl Fn(&Flit) -> bool) -> u64 {
    let (mut seen, mut heads) = (0u64, 0u64);
    for operand in operands.iter().filter(|operand| operand.plane == plane) {
        let bit = 1 << operand.port;
        if seen & bit == 0 && operand.visible <= now && asked(&operand.flit) {
            heads |= bit;
        }
        seen |= bit;
    }
    heads
}

impl ActiveState {
    fn oldest(&self, port: u16, plane: u8, now: Cycle) -> Option<&Operand> {
        self.operands
            .as_slice()
            .iter()
            .find(|operand| operand.is_at(port, plane))
            .filter(|operand| operand.visible <= now)
    }

    /// The planes that hold operands, a bit each.
    fn planes(&self) -> u8 {
        self.operands.as_slice().iter().fold(0, |held, operand| held | 1 << operand.plane)
    }

    /// The id whose operands are all there on a plane, if any: the lowest port decides among several.
    fn complete_id(&self, registers: &Registers, switch: u32, plane: u8, now: Cycle) -> Option<(u16, u64)> {
        let operands = self.operands.as_slice();
        let mut candidates = heads(operands, plane, now, |_| true);
        while candidates != 0 {
            let lowest = candidates.trailing_zeros() as u16;
            let id = operands.iter().find(|operand| operand.is_at(lowest, plane))?.flit.tag.id();
            let needed = registers.counted_inputs(switch, id);
            let there = heads(operands, plane, now, |flit| flit.tag.id() == id);
            if needed & !there == 0 {
                return Some((id, needed));
            }
            candidates &= !there;
        }
        None
    }

    /// Takes the oldest operand of a port on a plane.
    fn take(&mut self, port: u16, plane: u8) -> Flit {
        let at = self.operands.as_slice().iter().position(|operand| operand.is_at(port, plane));
        self.operands.remove(at.expect("the port has an operand")).flit
    }

    /// Takes the operands of `needed` ports on a plane together.
    fn gather(
        &mut self,
        registers: &Registers,
        switch: u32,
        plane: u8,
        (id, needed): (u16, u64),
    ) -> Result<TreeIn, Box<str>> {
        let select = registers.select(switch, id);
        let mut tag = Tag(0);
        let (mut flags, mut words) = (Flags::NONE, Operands::new());
        let mut seq = None;
        // The tree's ports are those of the registers, whatever ports were built.
        let numbers = registers.engine_inputs(switch, id);
        debug_assert_eq!(
            needed.count_ones(),
            numbers.count_ones(),
            "every input of the engine has a port that was built"
        );
        for (port, number) in ports(needed).zip(ports(numbers)) {
            let (flit, port) = (self.take(port, plane), number);
            if *seq.get_or_insert(flit.tag.seq()) != flit.tag.seq() {
                return Err(format!(
                    "{}: the CENG was to join element {} of port {port} with element {} of another port (collective id {id})",
                    registers.name(switch),
                    flit.tag.seq(),
                    seq.unwrap_or_default()
                )
                .into());
            }
            flags |= Flags::from_bits(flit.tag.flags());
            words.set(port as u8, flit.word);
        }
        tag.set_head(true);
        tag.set_tail(true);
        tag.set_vc(channel(plane, REQUEST));
        tag.set_id(id);
        tag.set_seq(seq.unwrap_or_default());
        Ok(TreeIn { op: select.op, dtype: select.dtype, mode: select.mode, operands: words, flags, tag: tag.0 })
    }

    /// What a wave of operands becomes: a request on its way up, a response at the root.
    fn reduce(cx: &JoinCx<'_, Registers>, tree: TreeCfg, operands: &TreeIn, id: u16) -> Flit {
        let result = arith::tree::eval(tree, operands);
        let mut tag = Tag(result.tag);
        tag.set_vc(channel(plane(tag.vc()), if cx.tables.is_root(cx.switch, id) { RESPONSE } else { REQUEST }));
        tag.set_flags(result.flags.bits());
        Flit { tag, word: result.value }
    }
}

/// The scan unit, if it has anything to do.
fn scanning(busy: &ActiveState) -> Option<&ScanUnit> {
    busy.scan.as_deref().filter(|scan| !scan.is_idle())
}

impl ActiveState {
    /// Takes the operands of a scan, if there is room for their prefixes; whether it did.
    fn begin_scan(
        &mut self,
        cx: &JoinCx<'_, Registers>,
        cfg: CengCfg,
        (id, needed, order): (u16, u64, u64),
        watched: bool,
    ) -> bool {
        let root = cx.tables.is_root(cx.switch, id);
        let scan = self.scan.get_or_insert_default();
        if scan.retained() >= cfg.scan_slots as usize || (root && scan.waiting() > cfg.result_slots as usize) {
            return false;
        }
        let mut inputs = Vec::with_capacity(needed.count_ones() as usize);
        for port in scan::ports(order) {
            let counted = cx.tables.counted(cx.switch, 1 << port);
            if needed & counted != 0 {
                inputs.push((port, self.take(counted.trailing_zeros() as u16, 0)));
            }
        }
        let select = cx.tables.select(cx.switch, id);
        let scan = self.scan.get_or_insert_default();
        if watched {
            scan.note_operands();
        }
        scan.take(&inputs, select, u64::from(cfg.tree.unit_stages), root, cx.now);
        true
    }

    /// One clock of the scan unit: a response from above in, a result out if the tree has none.
    fn scan(scan: &mut ScanUnit, cx: &JoinCx<'_, Registers>, cfg: CengCfg, watched: bool, out: &mut JoinOut) {
        let stages = u64::from(cfg.tree.unit_stages);
        // Responses have places of their own, so that totals that wait for the parent never stop them.
        if scan.waiting() <= 2 * cfg.result_slots as usize {
            let select = |id| cx.tables.select(cx.switch, id);
            if watched {
                scan.note_operands();
            }
            if let Err(fault) = scan.meet(select, stages, cx.now) {
                out.fault = Some(fault);
            }
        }
        if out.result.is_none() && cx.queued.all() <= 2 * cfg.result_slots as usize {
            out.result = scan.leave(cx.now);
        }
        out.changed = true;
        out.wake = match scan.next() {
            Some(at) if at > cx.now => out.wake.or(Wake::At(at)),
            Some(_) => Wake::Next,
            None => out.wake,
        };
    }
}

impl Join for Ceng {
    type Tables = Registers;

    #[inline]
    fn has_room(&self, port: u16, vc: u8) -> bool {
        let held = |busy: &ActiveState| {
            busy.operands.as_slice().iter().filter(|operand| operand.is_at(port, plane(vc))).count()
        };
        let slots = self.cfg.operand_slots as usize;
        self.busy.as_ref().is_none_or(|busy| {
            if kind(vc) == REQUEST {
                held(busy) < slots
            } else {
                busy.scan.as_ref().is_none_or(|scan| scan.from_above() < slots)
            }
        })
    }

    fn operands_missing(&self, registers: &Registers, switch: u32, (port, vc): (u16, u8), visible: Cycle) -> bool {
        let front = |busy: &ActiveState| busy.oldest(port, plane(vc), visible).map(|operand| operand.flit.tag.id());
        let incomplete = |(busy, id): (&ActiveState, u16)| {
            let there = heads(busy.operands.as_slice(), plane(vc), visible, |flit| flit.tag.id() == id);
            registers.counted_inputs(switch, id) & !there != 0
        };
        let busy = self.busy.as_deref().filter(|_| kind(vc) == REQUEST);
        busy.and_then(|busy| Some((busy, front(busy)?))).is_some_and(incomplete)
    }

    fn put_flit(&mut self, port: u16, vc: u8, flit: Flit, visible: Cycle) {
        let busy = self.busy.get_or_insert_with(|| {
            Box::new(ActiveState {
                operands: InlineVec::default(),
                results: InlineQueue::default(),
                scan: None,
                flying: [0; MAX_PLANES as usize],
                next_plane_q: 0,
                left_q: false,
            })
        });
        if kind(vc) == RESPONSE {
            busy.scan.get_or_insert_default().put_flit(flit, visible);
            return;
        }
        busy.operands.push(Operand { visible, flit, port, plane: plane(vc) });
    }

    fn tick(&mut self, cx: &JoinCx<'_, Registers>) -> JoinOut {
        let mut out = JoinOut { result: None, changed: false, wake: Wake::OnInput, fault: None };
        let Some(busy) = &mut self.busy else { return out };
        let watched = self.extras.as_ref().is_some_and(|extras| extras.stages.is_some());
        let mut taken = None;

        // Operands in: a result place is reserved before they are taken.
        busy.left_q = false;
        let first = busy.next_plane_q;
        let mut planes = busy.planes().rotate_right(u32::from(first));
        while planes != 0 {
            let plane = (planes.trailing_zeros() as u8 + first) % MAX_PLANES;
            planes &= planes - 1;
            let queued = cx.queued.on(channel(plane, REQUEST)) + cx.queued.on(channel(plane, RESPONSE));
            // Scans are on plane 0.
            let going_up = busy.scan.as_ref().filter(|_| plane == 0).map_or(0, |scan| scan.going_up());
            let reserved = usize::from(busy.flying[usize::from(plane)]) + going_up + queued;
            if reserved >= self.cfg.result_slots as usize {
                busy.left_q = true;
                continue;
            }
            let Some((id, needed)) = busy.complete_id(cx.tables, cx.switch, plane, cx.now) else { continue };
            busy.left_q = true;
            let order = cx.tables.order(cx.switch, id);
            if order != 0 {
                out.changed = busy.begin_scan(cx, self.cfg, (id, needed, order), watched);
                if !out.changed {
                    continue;
                }
            } else {
                match busy.gather(cx.tables, cx.switch, plane, (id, needed)) {
                    Ok(operands) => {
                        let due = cx.now + self.cfg.tree.latency_cycles();
                        busy.results.push((due, ActiveState::reduce(cx, self.cfg.tree, &operands, id)));
                        busy.flying[usize::from(plane)] += 1;
                        out.changed = true;
                        taken = watched.then_some(operands);
                    }
                    Err(fault) => out.fault = Some(fault),
                }
            }
            busy.next_plane_q = (plane + 1) % MAX_PLANES;
            break;
        }

        // Result out.
        if busy.results.front().is_some_and(|&(due, _)| due <= cx.now) {
            out.result = busy.results.pop().map(|(_, flit)| flit);
            out.changed = true;
            if let Some(result) = &out.result {
                busy.flying[usize::from(plane(result.tag.vc()))] -= 1;
            }
        }
        let reduced = out.result.is_some();
        if let Some(extras) = &mut self.extras {
            extras.reduced(taken.as_ref(), &mut out.result);
        }

        let cfg = self.cfg;
        let mut scans = false;
        if let Some(scan) = busy.scan.as_deref_mut().filter(|scan| !scan.is_idle()) {
            ActiveState::scan(scan, cx, cfg, watched, &mut out);
            scans = !scan.is_idle();
            if !busy.operands.is_empty() {
                out.wake = Wake::Next;
            }
        }
        if let Some(stages) = self.extras.as_mut().and_then(|extras| extras.stages.as_mut()) {
            let scanned = out.result.as_ref().filter(|_| !reduced);
            stages.scan.clock(busy.scan.as_deref_mut(), cx.now, scanned);
            if !stages.is_empty() {
                out.wake = Wake::Next;
            }
        }
        if let Some(&(due, _)) = busy.results.front() {
            out.wake = out.wake.or(Wake::At(due));
        }
        if let Some(visible) =
            busy.operands.as_slice().iter().map(|operand| operand.visible).filter(|&at| at > cx.now).min()
        {
            out.wake = out.wake.or(Wake::At(visible));
        } else if busy.operands.is_empty() && busy.results.is_empty() && !scans {
            self.busy = None;
        }
        out
    }

    fn is_idle(&self) -> bool {
        self.busy.is_none()
    }

    fn acts_on_change(&self) -> bool {
        // Operands that wait for others change nothing before those are there, and then the engine is awake.
        self.busy.as_ref().is_some_and(|busy| (busy.left_q && !busy.operands.is_empty()) || scanning(busy).is_some())
    }

    fn waits_for(&self, registers: &Registers, switch: u32) -> Vec<(u16, u8, String)> {
        let Some(busy) = &self.busy else { return Vec::new() };
        let engine = registers.counted(switch, 1 << registers.engine_port()).trailing_zeros() as u16;
        let mut waits = Vec::new();
        for operand in busy.operands.as_slice() {
            let (id, seq, plane) = (operand.flit.tag.id(), operand.flit.tag.seq(), operand.plane);
            let missing: Vec<u16> = ports(registers.counted_inputs(switch, id))
                .filter(|&port| busy.oldest(port, plane, Cycle::MAX).is_none_or(|held| held.flit.tag.id() != id))
                .collect();
            for &port in &missing {
                waits.push((
                    port,
                    channel(plane, REQUEST),
                    format!(
                        "element {seq} of collective id {id} has no operand from port {}",
                        registers.numbered(switch, port)
                    ),
                ));
            }
            if missing.is_empty() {
                let kind = if registers.is_root(switch, id) { RESPONSE } else { REQUEST };
                waits.push((engine, channel(plane, kind), "all result places are taken".to_string()));
            }
        }
        waits
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        let busy = self.busy.as_deref();
        scope.scope("ceng", |scope| {
            let in_flight = busy.map_or(0, |busy| busy.results.len());
            let held = busy.map_or(0, |busy| busy.operands.len());
            let scans = busy.is_some_and(|busy| scanning(busy).is_some());
            let state = if in_flight > 0 {
                2
            } else if scans {
                3
            } else {
                u64::from(held > 0)
            };
            scope.state("state", &STATES, state);
            scope.bits("operands", 8, held as u64);
            scope.bits("in_flight", 8, in_flight as u64);

            for port in 0..u16::from(self.cfg.tree.radix) {
                scope.indexed("slot", usize::from(port), |scope| {
                    let oldest =
                        busy.and_then(|busy| busy.operands.as_slice().iter().find(|operand| operand.port == port));
                    scope.bit("valid", oldest.is_some());
                    scope.valid("id", 12, oldest.map(|operand| u64::from(operand.flit.tag.id())));
                    scope.valid("seq", 36, oldest.map(|operand| operand.flit.tag.seq()));
                    scope.valid("word", 64, oldest.map(|operand| operand.flit.word));
                });
            }
        });
        if let Some(claim) = self.claim() {
            claim.probe(scope);
        }
    }

    const STAGES: &'static [&'static str] = &["ceng.tree", "ceng.scan"];

    fn watch(&mut self, watched: bool, registers: &Registers, switch: u32) {
        let tree = self.cfg.tree;
        let selects = registers.engine_selects(switch);
        // A tree of one port has no register, and an engine without an id no work.
        let stages = (watched && tree.levels() > 0 && !selects.is_empty()).then(|| {
            let in_use = units_of(selects);
            let units = usize::from(tree.radix - 1).min(scan::MOST_PORTS - 1);
            let scan = if registers.scans(switch) {
                ScanStages::new(tree.unit_stages, units, &in_use)
            } else {
                ScanStages::none()
            };
            let ids = 0..registers.ids();
            let joining = ids.map(|id| tree.joining(registers.engine_inputs(switch, id))).reduce(|mut all, of| {
                all.iter_mut().zip(of).for_each(|(all, of)| *all |= of);
                all
            });
            Stages { tree: TreeStages::new(tree, &in_use), joining: joining.unwrap_or_default(), scan }
        });
        self.extras.get_or_insert_default().stages = stages.map(Box::new);
    }

    fn stages_moved(&self) -> bool {
        let stages = self.extras.as_ref().and_then(|extras| extras.stages.as_ref());
        stages.is_some_and(|stages| stages.tree.moved() || stages.scan.moved())
    }

    fn probe_stages(&self, scope: &mut Scope<'_>) {
        let Some(stages) = self.extras.as_ref().and_then(|extras| extras.stages.as_ref()) else { return };
        scope.scope("ceng", |scope| {
            stage_waves::tree(scope, &stages.tree, &stages.joining, &STAGE_TAG);
            stages.scan.probe(scope);
        });
    }
}

/// The ports of a vector, ascending.
fn ports(mut vector: u64) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let port = (vector != 0).then(|| vector.trailing_zeros() as u16)?;
        vector &= vector - 1;
        Some(port)
    })
}
