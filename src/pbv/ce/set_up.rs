//! Set-up: an initialisation frame takes a context, and goes on to the engines and nodes below.

use super::{Ce, CeCx, Outgoing, Target, TrackingStep, reply_offset};
use crate::context::{Context, Data, Peers, State};
use crate::packet::{Body, Header, InitRecord, NO_DEVICE, PBV_ENTRIES, Packet, Status};
use crate::tracking::{Track, TrackOp};
use std::collections::BTreeSet;
use watershed_arith::{Flags, Op};

impl Ce {
    pub(super) fn initialise(&mut self, packet: &Packet, cx: &mut CeCx<'_>) -> TrackingStep {
        let header = packet.header;
        let Body::Initialisation(records) = &packet.body else { unreachable!("decoding gives records") };
        let Some(own) = records.iter().position(|record| record.device == self.me.0) else {
            self.refuse(&header, Status::UnknownDevice, cx);
            return None;
        };
        let record = records[own];
        if let Err(status) = self.initialisable(&header, &record, cx) {
            self.refuse(&header, status, cx);
            return None;
        }
        let free = || self.contexts.iter().position(Option::is_none).map(|free| free as u16);
        let Some(slot) = self.slot(header.cc_id).or_else(free) else {
            self.refuse(&header, Status::StoreFull, cx);
            return None;
        };
        self.index[usize::from(header.cc_id)] = slot + 1;
        let context = Context {
            cc_id: header.cc_id,
            state: State::Active,
            stored: record,
            track: Track { pbv: record.pbv, p_count: record.p_count },
            peers: Peers {
                requester: header.requester,
                requester_offset: reply_offset(&header),
                initialiser: header.requester,
                above: if record.above == NO_DEVICE { header.requester } else { record.above },
                collector: if record.collector == NO_DEVICE { header.requester } else { record.collector },
                p_id: header.p_id,
                dmu_id: header.dmu_id,
            },
            like: Header { engines_only: false, ..header },
            flags: Flags::NONE,
            error: Status::Ok,
            missing: BTreeSet::new(),
            data: Data {
                accumulators: vec![None; usize::from(record.words)],
                kept: vec![None; if record.pbv_order { PBV_ENTRIES } else { 0 }],
                result: None,
                cast: Vec::new(),
                handed: Vec::new(),
                last: None,
            },
            generation: 0,
            satisfied: false,
            early: false,
            commanded: false,
            arrived: None,
            complete: 0,
            release: None,
            under_way: 0,
            deadline: None,
            retries: 0,
        };
        let track = context.track;
        self.contexts[usize::from(slot)] = Some(context);
        self.restart_context(slot);
        if header.run != 0 {
            // The initialisation is the command too.
            self.guard(slot, cx);
        }
        // Every receiver below gets its own record; an engine also those of the engines below it.
        let children: Vec<(u8, u16)> = cx.table.entries().filter(|&(k, _)| record.down >> k & 1 != 0).collect();
        for (entry, device) in children {
            let slice = if cx.table.is_switch(entry) {
                let below = &records[own + 1..own + 1 + usize::from(record.below)];
                let Some(at) = below.iter().position(|below| below.device == device) else { continue };
                below[at..=at + usize::from(below[at].below)].to_vec()
            } else if device == header.dmu_id || header.engines_only {
                continue;
            } else {
                vec![InitRecord { device, p_count: 0, below: 0, pbv: 0, down: 0, above: self.me.0, ..record }]
            };
            let mut copy = header;
            copy.p_count = slice[0].p_count;
            let packet = Packet { header: self.down(copy), body: Body::Initialisation(slice) };
            cx.out.push(Outgoing { packet, target: Target::Entries { pbv: 1 << entry, skip: NO_DEVICE } });
        }
        Some((self.request(slot, TrackOp::Load(track), Some(header.message)), None))
    }

    /// Whether a command may load `record`: it comes from who may initialise the collective, names only devices of the table, and
    /// what it asks for fits its operation. Otherwise the status of the refusal (B-ERR-4).
    fn initialisable(&mut self, header: &Header, record: &InitRecord, cx: &mut CeCx<'_>) -> Result<(), Status> {
        if !cx.table.owners.may_initialise(header.cc_id, header.requester) {
            return Err(Status::UnknownDevice);
        }
        if let Some(slot) = self.slot(header.cc_id) {
            self.admit(slot, header, cx)?;
        }
        let mut named = (0..PBV_ENTRIES as u8).filter(|&k| (record.pbv | record.down) >> k & 1 != 0);
        if named.any(|k| cx.table.device(k).is_none()) {
            return Err(Status::UnknownDevice);
        }
        let barrier = header.op == Op::Barrier;
        if !barrier && record.words == 0 {
            return Err(Status::BadLength);
        }
        if record.groups.is_some_and(|groups| !barrier || !groups.contexts().contains(&header.cc_id)) {
            return Err(Status::Mismatch);
        }
        // A multicast of a master that waits for nobody is over at once: armed again by that, it would answer for ever.
        if record.master && record.rearm && record.pbv == 0 {
            return Err(Status::Mismatch);
        }
        Ok(())
    }
}
