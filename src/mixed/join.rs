//! The internal port of a switch: PIUMA's CENG and the armed family's [`Discard`], behind one crossbar port.
//!
//! Channels tell operands from frames. Both may have something for the crossbar in one cycle; the answer to an agent's order goes
//! first, and the CENG keeps its result for the next cycle *\[chosen\]*.

use super::Tables;
use watershed_armed::Discard;
use watershed_fabric::{Flit, Join, JoinCx, JoinOut, QueueLengths};
use watershed_kernel::{Cycle, Wake};
use watershed_piuma::Ceng;
use watershed_probe::Scope;
use watershed_state::state;

/// The engines behind the internal port.
#[derive(Clone, Debug)]
pub struct FamilyJoins {
    /// The reduction engine, in systems that have PIUMA's.
    pub ceng: Option<Ceng>,
    /// Where armed frames end, in systems with that family.
    pub discard: Option<Discard>,
    /// The first channel of the armed family.
    pub first_armed: u8,
}

state!(FamilyJoins { saved: discard; each: ceng; built: first_armed });

/// No place for a result on any channel.
const FULL: [u16; 32] = [u16::MAX; 32];

impl Join for FamilyJoins {
    type Tables = Tables;

    fn has_room(&self, port: u16, vc: u8) -> bool {
        if vc >= self.first_armed {
            return true;
        }
        self.ceng.as_ref().is_none_or(|ceng| ceng.has_room(port, vc))
    }

    fn operands_missing(&self, tables: &Tables, switch: u32, (port, vc): (u16, u8), visible: Cycle) -> bool {
        let (Some(ceng), Some(registers)) = (&self.ceng, &tables.piuma) else { return false };
        vc < self.first_armed && ceng.operands_missing(registers, switch, (port, vc), visible)
    }

    fn put_flit(&mut self, port: u16, vc: u8, flit: Flit, visible: Cycle) {
        self.put_wide(port, vc, (flit, &[]), visible);
    }

    fn more(&self) -> &[u64] {
        self.discard.as_ref().map_or(&[], Join::more)
    }

    fn put_wide(&mut self, port: u16, vc: u8, (flit, more): (Flit, &[u64]), visible: Cycle) {
        match (&mut self.ceng, &mut self.discard) {
            (Some(ceng), _) if vc < self.first_armed => ceng.put_flit(port, vc, flit, visible),
            (_, Some(discard)) => {
                let vc = vc - self.first_armed;
                discard.put_wide(port, vc, (flit.on(vc), more), visible);
            }
            _ => {}
        }
    }

    fn tick(&mut self, cx: &JoinCx<'_, Tables>) -> JoinOut {
        let mut out = JoinOut { result: None, changed: false, wake: Wake::OnInput, fault: None };
        let (switch, now) = (cx.switch, cx.now);
        if let (Some(discard), Some(tables)) = (&mut self.discard, &cx.tables.armed) {
            out = discard.tick(&JoinCx { tables, switch, now, queued: cx.queued.behind(self.first_armed) });
            out.result = out.result.map(|flit| flit.on(flit.tag.vc() + self.first_armed));
        }
        if let (Some(ceng), Some(tables)) = (&mut self.ceng, &cx.tables.piuma) {
            let queued = if out.result.is_some() { QueueLengths::counts(&FULL) } else { cx.queued };
            let of = ceng.tick(&JoinCx { tables, switch, now, queued });
            out.wake = out.wake.or(of.wake);
            if out.result.is_some() && !ceng.is_idle() {
                out.wake = out.wake.or(Wake::Next);
            }
            out.result = out.result.or(of.result);
            out.changed |= of.changed;
            out.fault = out.fault.or(of.fault);
        }
        out
    }

    fn is_idle(&self) -> bool {
        self.ceng.as_ref().is_none_or(Join::is_idle) && self.discard.as_ref().is_none_or(Join::is_idle)
    }

    fn can_skip_tick(&self) -> bool {
        self.ceng.as_ref().is_none_or(Join::can_skip_tick) && self.discard.as_ref().is_none_or(Join::can_skip_tick)
    }

    fn acts_on_change(&self) -> bool {
        self.ceng.as_ref().is_some_and(Join::acts_on_change) || self.discard.as_ref().is_some_and(Join::acts_on_change)
    }

    fn waits_for(&self, tables: &Tables, switch: u32) -> Vec<(u16, u8, String)> {
        let (Some(ceng), Some(registers)) = (&self.ceng, &tables.piuma) else { return Vec::new() };
        ceng.waits_for(registers, switch)
    }

    fn probe(&self, scope: &mut Scope<'_>) {
        if let Some(ceng) = &self.ceng {
            ceng.probe(scope);
        }
        if let Some(discard) = &self.discard {
            discard.probe(scope);
        }
    }

    const STAGES: &'static [&'static str] = Ceng::STAGES;

    fn watch(&mut self, watched: bool, tables: &Tables, switch: u32) {
        if let (Some(ceng), Some(registers)) = (&mut self.ceng, &tables.piuma) {
            ceng.watch(watched, registers, switch);
        }
    }

    fn stages_moved(&self) -> bool {
        self.ceng.as_ref().is_some_and(Join::stages_moved)
    }

    fn probe_stages(&self, scope: &mut Scope<'_>) {
        if let Some(ceng) = &self.ceng {
            ceng.probe_stages(scope);
        }
    }
}
