//! Records in payloads: the configuration and the initialisation of one engine.

use super::{NO_DEVICE, PBV_ENTRIES, PacketError, WORD_BYTES, pbv_at, pbv_bytes, u16_at, u32_at, u64_at};

/// Where reports go, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Reports {
    /// Threshold and relief.
    pub levels: u32,
    /// Watched queues, one bit a queue.
    pub queues: u32,
    /// The device that gets them.
    pub collector: u32,
}

impl Reports {
    /// Reports to a device when a queue comes up to `above`, again when it was down at `until`.
    pub const fn new(collector: u16, queues: u32, above: u16, until: u16) -> Reports {
        Reports { levels: above as u32 | (until as u32) << 16, queues, collector: collector as u32 }
    }

    /// The level that is reported; 0: none.
    pub const fn above(self) -> u32 {
        self.levels & 0xffff
    }

    /// The level at which a queue can be reported again.
    pub const fn until(self) -> u32 {
        self.levels >> 16
    }
}

/// Configuration of one engine (FIG. 4, B-PKT-2).
///
/// | byte | field |
/// |---|---|
/// | 0 | device ID of the switch |
/// | 2 | bytes of the record |
/// | 4 | watchdog time-out in cycles, 4 bytes; 0: never |
/// | 8 | retries before a time-out is reported |
/// | 9 | bit 0: error messages are sent; bit 1: messages are checked against the PBV table (protocol validation); bit 2: 16 bytes on [reports](Reports) go before the entries |
/// | 10 | number of entries, 2 bytes |
/// | 12 | cycles of a window of the congestion metrics, 4 bytes; 0: without end |
/// | 16 | physical ports of inter-switch links, one bit a port, 8 bytes |
/// | 24 | entries that are engines and not end devices (B-PKT-5), one bit an entry, 16 bytes |
/// | 40 | only with bit 2: report levels, queues, collector, 4 bytes each, and 4 zeros; all that follows lies 16 bytes further |
/// | 40 | PBV entry k: device ID, at 40 + 2 k; then zeros up to a multiple of 8 |
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct ConfigRecord {
    /// The switch it is for.
    pub device: u16,
    /// Watchdog time-out in cycles; 0: never.
    pub timeout: u32,
    /// Retries before a time-out is reported.
    pub retries: u8,
    /// Error messages are sent.
    pub report_errors: bool,
    /// Messages are checked against the PBV table.
    pub validate: bool,
    /// Cycles of a window of the congestion metrics; 0: without end.
    pub window: u32,
    /// Ports that lead to other switches.
    pub isl_ports: u64,
    /// Entries that are engines.
    pub switches: u128,
    /// Congestion reports, if there are to be any.
    pub reports: Option<Reports>,
    /// Device ID of every entry.
    pub entries: Vec<u16>,
}

/// Participants of a context at one engine (FIG. 5, B-PKT-3).
///
/// | byte | field |
/// |---|---|
/// | 0 | device ID of the switch |
/// | 2 | P_count: participants in the PBV, 2 bytes |
/// | 4 | words of data, 2 bytes; 0 for a barrier |
/// | 6 | records that follow and belong to engines below this one, 2 bytes |
/// | 8 | initial value of the accumulator, 8 bytes; only the master's enters |
/// | 16 | bit 0: the accumulator starts with the initial value; bit 1: PBV order; bit 2: armed again when satisfied; bit 3: the master also answers DMU_ID; bit 4: a second bit vector follows; bit 5: this engine is the master; bit 6: responses are handed to the source, which merges them |
/// | 17 | groups of an inter-group barrier, 0: it is none |
/// | 18 | CC_ID of its first group, 2 bytes |
/// | 20 | device ID of the engine above, 2 bytes; 0xffff at the master: the sender of the initialisation |
/// | 22 | device ID of the engine that expects its response, 2 bytes: the one above, or one further up where responses are forwarded |
/// | 24 | the PBV: four fields of four bytes, entries 0 to 31 first, entry k of a field in bit k |
/// | 40 | only with bit 4: the entries that messages go down to, if they are others than those whose answers are expected, 16 bytes |
///
/// The two vectors differ where responses are forwarded and not merged (paragraph 110): an engine that forwards sends down to
/// engines from which it expects nothing for itself, and one above it expects answers of engines to which it sends nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct InitRecord {
    /// The switch it is for.
    pub device: u16,
    /// Participants in the PBV.
    pub p_count: u16,
    /// Words of data.
    pub words: u16,
    /// Following records that belong below this one.
    pub below: u16,
    /// Initial value of every accumulator word.
    pub initial: Option<u64>,
    /// Reduction in the order of PBV entries instead of that of arrival.
    pub pbv_order: bool,
    /// Armed again as soon as it is satisfied; not for a master that waits for nobody.
    pub rearm: bool,
    /// The master also answers the end point that issued the collective.
    pub answer_source: bool,
    /// The engine is the master of the context.
    pub master: bool,
    /// The master hands every response to the source, which merges them.
    pub to_source: bool,
    /// The context is a group of an inter-group barrier.
    pub groups: Option<Groups>,
    /// The engine above, whose commands and results count; [`NO_DEVICE`] at the master: the device that initialises it.
    pub above: u16,
    /// The engine that expects its response and asks for it.
    pub collector: u16,
    /// Participants: whose answers are expected.
    pub pbv: u128,
    /// Entries that messages go down to.
    pub down: u128,
}

/// Groups of an inter-group barrier (B-CE-9): contexts whose CC_IDs follow each other, at one master engine *\[chosen\]*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Groups {
    /// CC_ID of the first.
    pub first: u16,
    /// How many; 2 or more.
    pub count: u8,
}

impl Groups {
    /// Their contexts.
    pub fn contexts(self) -> std::ops::Range<u16> {
        self.first..self.first + u16::from(self.count)
    }
}

/// Bytes of an initialisation record without a second bit vector.
pub const INIT_RECORD_BYTES: usize = 40;
/// Bytes of a configuration record about reports.
const REPORT_BYTES: usize = 16;
/// Bytes of a configuration record before its entries.
pub const CONFIG_RECORD_BYTES: usize = 40;

impl ConfigRecord {
    /// A record that says nothing but the table.
    pub fn of(device: u16, entries: Vec<u16>, switches: u128) -> ConfigRecord {
        ConfigRecord {
            device,
            timeout: 0,
            retries: 0,
            report_errors: true,
            validate: true,
            window: 0,
            isl_ports: 0,
            switches,
            reports: None,
            entries,
        }
    }

    /// Bytes before the entries.
    fn head(&self) -> usize {
        CONFIG_RECORD_BYTES + if self.reports.is_some() { REPORT_BYTES } else { 0 }
    }

    /// Bytes of the record in a payload.
    pub fn bytes(&self) -> usize {
        (self.head() + 2 * self.entries.len()).next_multiple_of(WORD_BYTES)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend(self.device.to_be_bytes());
        out.extend((self.bytes() as u16).to_be_bytes());
        out.extend(self.timeout.to_be_bytes());
        out.push(self.retries);
        out.push(u8::from(self.report_errors) | u8::from(self.validate) << 1 | u8::from(self.reports.is_some()) << 2);
        out.extend((self.entries.len() as u16).to_be_bytes());
        out.extend(self.window.to_be_bytes());
        out.extend(self.isl_ports.to_be_bytes());
        out.extend(pbv_bytes(self.switches));
        if let Some(Reports { levels, queues, collector }) = self.reports {
            out.extend([levels, queues, collector, 0].iter().flat_map(|field| field.to_be_bytes()));
        }
        out.extend(self.entries.iter().flat_map(|entry| entry.to_be_bytes()));
        out.resize(from + self.bytes(), 0);
    }

    pub(super) fn take(payload: &[u8], at: usize) -> Result<ConfigRecord, PacketError> {
        let bad = |what| PacketError::Record { at, what };
        let bytes = &payload[at..];
        if bytes.len() < CONFIG_RECORD_BYTES {
            return Err(bad("fewer bytes than a configuration record has"));
        }
        let entries = usize::from(u16_at(bytes, 10));
        if entries > PBV_ENTRIES {
            return Err(bad("more than 128 entries"));
        }
        let told = bytes[9] & 4 != 0;
        let head = CONFIG_RECORD_BYTES + if told { REPORT_BYTES } else { 0 };
        let length = (head + 2 * entries).next_multiple_of(WORD_BYTES);
        if usize::from(u16_at(bytes, 2)) != length || bytes.len() < length {
            return Err(bad("its length does not fit its number of entries or the payload"));
        }
        let pad = &bytes[head + 2 * entries..length];
        if bytes[9] > 7 || told && u32_at(bytes, 52) != 0 || pad.iter().any(|&byte| byte != 0) {
            return Err(bad("reserved bits are set"));
        }
        let switches = pbv_at(bytes, 24);
        if entries < PBV_ENTRIES && switches >> entries != 0 {
            return Err(bad("an entry that is not there is marked as an engine"));
        }
        Ok(ConfigRecord {
            device: u16_at(bytes, 0),
            timeout: u32_at(bytes, 4),
            retries: bytes[8],
            report_errors: bytes[9] & 1 != 0,
            validate: bytes[9] & 2 != 0,
            window: u32_at(bytes, 12),
            isl_ports: u64_at(bytes, 16),
            switches,
            reports: told.then(|| Reports {
                levels: u32_at(bytes, 40),
                queues: u32_at(bytes, 44),
                collector: u32_at(bytes, 48),
            }),
            entries: (0..entries).map(|k| u16_at(bytes, head + 2 * k)).collect(),
        })
    }
}

impl InitRecord {
    /// Bytes of the record in a payload.
    pub fn bytes(&self) -> usize {
        INIT_RECORD_BYTES + if self.down == self.pbv { 0 } else { 16 }
    }

    /// A record for these participants of a barrier.
    pub const fn barrier(device: u16, pbv: u128) -> InitRecord {
        InitRecord {
            device,
            p_count: pbv.count_ones() as u16,
            words: 0,
            below: 0,
            initial: None,
            pbv_order: false,
            rearm: false,
            answer_source: false,
            master: false,
            to_source: false,
            groups: None,
            above: NO_DEVICE,
            collector: NO_DEVICE,
            pbv,
            down: pbv,
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.device.to_be_bytes());
        out.extend(self.p_count.to_be_bytes());
        out.extend(self.words.to_be_bytes());
        out.extend(self.below.to_be_bytes());
        out.extend(self.initial.unwrap_or(0).to_be_bytes());
        out.push(
            u8::from(self.initial.is_some())
                | u8::from(self.pbv_order) << 1
                | u8::from(self.rearm) << 2
                | u8::from(self.answer_source) << 3
                | u8::from(self.down != self.pbv) << 4
                | u8::from(self.master) << 5
                | u8::from(self.to_source) << 6,
        );
        let Groups { first, count } = self.groups.unwrap_or(Groups { first: 0, count: 0 });
        out.push(count);
        out.extend(first.to_be_bytes());
        out.extend(self.above.to_be_bytes());
        out.extend(self.collector.to_be_bytes());
        out.extend(pbv_bytes(self.pbv));
        if self.down != self.pbv {
            out.extend(pbv_bytes(self.down));
        }
    }

    pub(super) fn take(payload: &[u8], at: usize) -> Result<InitRecord, PacketError> {
        let bad = |what| PacketError::Record { at, what };
        let bytes = &payload[at..];
        if bytes.len() < INIT_RECORD_BYTES {
            return Err(bad("fewer bytes than an initialisation record has"));
        }
        let initial = u64_at(bytes, 8);
        if bytes[16] > 127 || bytes[16] & 1 == 0 && initial != 0 {
            return Err(bad("reserved bits are set"));
        }
        let (count, first) = (bytes[17], u16_at(bytes, 18));
        if count == 1 || count == 0 && first != 0 || usize::from(first) + usize::from(count) > 1 << 12 {
            return Err(bad("groups that there cannot be"));
        }
        let second = bytes[16] & 16 != 0;
        if second && bytes.len() < INIT_RECORD_BYTES + 16 {
            return Err(bad("fewer bytes than a second bit vector has"));
        }
        let pbv = pbv_at(bytes, 24);
        let record = InitRecord {
            device: u16_at(bytes, 0),
            p_count: u16_at(bytes, 2),
            words: u16_at(bytes, 4),
            below: u16_at(bytes, 6),
            initial: (bytes[16] & 1 != 0).then_some(initial),
            pbv_order: bytes[16] & 2 != 0,
            rearm: bytes[16] & 4 != 0,
            answer_source: bytes[16] & 8 != 0,
            master: bytes[16] & 32 != 0,
            to_source: bytes[16] & 64 != 0,
            groups: (count > 0).then_some(Groups { first, count }),
            above: u16_at(bytes, 20),
            collector: u16_at(bytes, 22),
            pbv,
            down: if second { pbv_at(bytes, INIT_RECORD_BYTES) } else { pbv },
        };
        if second && record.down == pbv {
            return Err(bad("a second bit vector that is the first one"));
        }
        if u32::from(record.p_count) != record.pbv.count_ones() {
            return Err(bad("P_count is not the number of participants in the PBV"));
        }
        Ok(record)
    }
}
