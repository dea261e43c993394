//! Packets of the PBV family: the meaning of every bit of a frame, defined once for encoding and decoding.
//!
//! ```text
//!   byte  0        16         32                                  32 + 4 x Length
//!         ┌────────┬──────────┬──────────────────────────────────┐
//!         │ header │ collect. │ payload, 0 to 1020 double words  │
//!         │ DW 0-3 │ DW 4-7   │ (an even number)                 │
//!         └────────┴──────────┴──────────────────────────────────┘
//! ```
//!
//! A frame is a row of bytes, the most significant byte of every field first. On a link it is a packet of as many flits as
//! its bits fill (`FlitSize` of the fabric). A command of 32 bytes is 4 flits of 64 bits, a result frame of 1056
//! bytes is 132; of 256 bits they are 1 and 33. The size of a flit does not change the layout of the bytes. Flits carry the
//! frame's real bits. *\[chosen\]*
//!
//! Header, all frames. The text names the fields and gives no positions; DW 0 and DW 1 are laid out as a PCIe 6
//! flit-mode header *\[chosen\]*:
//!
//! | word | bits | field | meaning |
//! |---|---|---|---|
//! | 0 | 31:24 | Type | 0x40 write, 0x03 read, 0x4a read reply, 0x74 encapsulated collective message |
//! | 0 | 23:21 | TC | traffic class |
//! | 0 | 20:16 | OHC | orthogonal header content present |
//! | 0 | 15:13 | TS | trailer size |
//! | 0 | 12:10 | Attr | attributes |
//! | 0 | 9:0 | Length | payload in double words, 0 to 1020; 0 means none |
//! | 1 | 31:16 | Requester ID | device that sent this copy; every engine puts its own (paragraph 97) |
//! | 1 | 15 | EP | poisoned: the payload must not be used |
//! | 1 | 14 | R | reserved |
//! | 1 | 13:0 | Tag | transaction number of the requester |
//! | 2 | 31:16, 15:0 | Destination | device ID and offset in its address space (0xC000: the packet engine) |
//! | 3 | 31:24 | encapsulated type | which message, see [`Message`] |
//! | 3 | 23:16 | operation | of a control packet [`Control`], else the arithmetic operation, as counted in [`Op::COMMON`] |
//! | 3 | 15:12 | version | 1 |
//! | 3 | 11 | posted | no answer is expected |
//! | 3 | 10 | error | the data is incomplete or wrong |
//! | 3 | 9 | S | for switches only: no engine hands it to an end device, and an end device has no use for it (B-PKT-5) |
//! | 3 | 8 | R | reserved |
//! | 3 | 7:0 | status | [`Status`] |
//! | 4 | 31:20 | CC_ID | collective context |
//! | 4 | 19:16 | data type | as counted in [`DType::ALL`] |
//! | 4 | 15:14 | rounding | as counted in [`Round::ALL`] |
//! | 4 | 13 | FTZ | flush to zero |
//! | 4 | 12:7 | R | reserved |
//! | 4 | 6:0 | P_ID | PBV entry of the sender (up) or of the receiver (down) at the engine |
//! | 5 | 31:16 | DMU_ID | end point that issued the collective |
//! | 5 | 15:0 | P_count | participants; of an error that answers a frame: which message that was |
//! | 6 | 31:0 | round | number of the collective's run, counted by its source |
//! | 7 | 31:24 | flags | sticky exception flags of the data |
//! | 7 | 23:0 | CRC | [`crc24`](mod@crc) of all other bytes of the frame, as if these were zero |
//!
//! Payloads:
//!
//! | message | payload |
//! |---|---|
//! | configuration | a [`ConfigRecord`] for every switch |
//! | initialisation | an [`InitRecord`] for every engine, in the order of the tree from the top, depth first |
//! | contribution, partial, satisfied | words of 64 bits |
//! | write, read reply | 64-bit words; a register is the low half of one |
//! | report | the cycle, then for each queue its number (upper half) and its level |
//! | error, failure | the PBV of the missing devices (16 bytes), then their device IDs, two bytes each, 0xffff as padding |
//! | others | none |
//!
//! Reserved bits must be zero, so a frame that decodes encodes to the same bytes. A list of missing devices that does not fit a
//! frame is split over several, each with the PBV.
//!
//! Requirements: B-PKT-1 to B-PKT-6 (`pbv.md`).

pub mod crc;
mod records;

use bitfield::bitfield;

pub use records::{CONFIG_RECORD_BYTES, ConfigRecord, Groups, INIT_RECORD_BYTES, InitRecord, Reports};

use watershed_arith::{DType, Flags, Mode, Op, Round};

/// Bytes of the header with its collective part.
pub const HEADER_BYTES: usize = 32;
/// Bytes of a word.
pub const WORD_BYTES: usize = 8;
/// The largest payload.
pub const MAX_PAYLOAD_BYTES: usize = 4080;
/// Words of the longest frame.
pub const LONGEST_FRAME: usize = (HEADER_BYTES + MAX_PAYLOAD_BYTES) / WORD_BYTES;
/// Entries of a PBV table.
pub const PBV_ENTRIES: usize = 128;
/// The version in DW 3.
pub const VERSION: u8 = 1;
/// Flits of this many bits up to the one with the destination address of a frame, which stands in bits 64 to 95.
pub const fn route_flits(bits: u32) -> u16 {
    (64 / bits) as u16 + 1
}

/// No device.
pub const NO_DEVICE: u16 = 0xffff;

bitfield! {
    /// DW 0.
    #[derive(Clone, Copy, Default, PartialEq, Eq, watershed_state::Saved)]
    struct Dw0(u32);
    u8, kind, set_kind: 31, 24;
    u8, tc, set_tc: 23, 21;
    u8, ohc, set_ohc: 20, 16;
    u8, ts, set_ts: 15, 13;
    u8, attr, set_attr: 12, 10;
    u16, length, set_length: 9, 0;
}

bitfield! {
    /// DW 1.
    #[derive(Clone, Copy, Default, PartialEq, Eq, watershed_state::Saved)]
    struct Dw1(u32);
    u16, requester, set_requester: 31, 16;
    ep, set_ep: 15;
    reserved, _: 14;
    u16, tag, set_tag: 13, 0;
}

bitfield! {
    /// DW 3.
    #[derive(Clone, Copy, Default, PartialEq, Eq, watershed_state::Saved)]
    struct Dw3(u32);
    u8, message, set_message: 31, 24;
    u8, operation, set_operation: 23, 16;
    u8, version, set_version: 15, 12;
    posted, set_posted: 11;
    error, set_error: 10;
    engines_only, set_engines_only: 9;
    reserved, _: 8;
    u8, status, set_status: 7, 0;
}

bitfield! {
    /// DW 4.
    #[derive(Clone, Copy, Default, PartialEq, Eq, watershed_state::Saved)]
    struct Dw4(u32);
    u16, cc_id, set_cc_id: 31, 20;
    u8, dtype, set_dtype: 19, 16;
    u8, round, set_round: 15, 14;
    ftz, set_ftz: 13;
    u8, reserved, _: 12, 7;
    u8, p_id, set_p_id: 6, 0;
}

bitfield! {
    /// DW 5.
    #[derive(Clone, Copy, Default, PartialEq, Eq, watershed_state::Saved)]
    struct Dw5(u32);
    u16, dmu_id, set_dmu_id: 31, 16;
    u16, p_count, set_p_count: 15, 0;
}

bitfield! {
    /// DW 7.
    #[derive(Clone, Copy, Default, PartialEq, Eq, watershed_state::Saved)]
    struct Dw7(u32);
    u8, flags, set_flags: 31, 24;
    u32, crc, set_crc: 23, 0;
}

/// Declares an enumeration of numbered, named values.
macro_rules! numbered {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $number:literal, $text:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, watershed_state::Saved)]
        #[repr(u8)]
        pub enum $name { $($(#[$vmeta])* $variant = $number,)+ }

        impl $name {
            /// Every value, ascending.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The number in the frame.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The value with this number.
            pub fn from_number(number: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.number() == number)
            }

            /// The name in ladders and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = watershed_arith::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.name() == text).ok_or_else(|| watershed_arith::UnknownName {
                    what: stringify!($name),
                    given: text.to_owned(),
                    legal: Self::ALL.iter().map(|value| value.name()).collect(),
                })
            }
        }
    };
}

numbered! {
    /// What a frame is: the encapsulated type.
    pub enum Message {
        /// Register write: from the payload's words, ascending offsets.
        Write = 1, "write";
        /// Register read.
        Read = 2, "read";
        /// What was read.
        ReadReply = 3, "read-reply";
        /// PBV tables and settings of engines (FIG. 4).
        Configuration = 4, "configuration";
        /// Participants of a context (FIG. 5).
        Initialisation = 5, "initialisation";
        /// State of a context (FIG. 6).
        Control = 6, "control";
        /// The collective begins: every device that gets it starts its task.
        Command = 7, "command";
        /// An end point is done: barrier met, or its operand.
        Contribution = 8, "contribution";
        /// All below an engine are done: one message for all of them.
        Partial = 9, "partial";
        /// The collective is satisfied; with the result, if it has one.
        Satisfied = 10, "satisfied";
        /// A frame was refused, or a collective ended without a participant.
        Error = 11, "error";
        /// Send your contribution again.
        Retry = 12, "retry";
        /// The sender cannot take part any more.
        Failure = 13, "failure";
        /// Data for all devices below.
        Multicast = 14, "multicast";
        /// Queues of an engine came up to a threshold.
        Report = 15, "report";
    }
}

numbered! {
    /// What a control packet asks of a context.
    pub enum Control {
        /// Run: copies the stored values and tracks.
        Start = 0, "start";
        /// Track, but complete nothing.
        Pause = 1, "pause";
        /// Go on after a pause.
        Restart = 2, "restart";
        /// Track nothing more.
        Stop = 3, "stop";
        /// Back to the stored values.
        Reset = 4, "reset";
        /// Copy the stored values and set the active bit.
        Activate = 5, "activate";
        /// Clear the active bit.
        Inactivate = 6, "inactivate";
        /// Clear the active bit and give the place in the store back.
        Remove = 7, "remove";
        /// End the run that the frame names, as a time-out does: what is there is the answer, marked as an error *\[chosen\]*.
        Close = 8, "close";
    }
}

numbered! {
    /// Why a frame was refused, or how a collective ended.
    pub enum Status {
        /// Nothing to report.
        Ok = 0, "ok";
        /// The participant's bit was clear already, or the frame belongs to another round.
        Duplicate = 1, "duplicate";
        /// p_count was zero already.
        CountZero = 2, "count-zero";
        /// No such context in the store.
        UnknownContext = 3, "unknown-context";
        /// The device is not in the PBV table, or not where P_ID says, or may not say this.
        UnknownDevice = 4, "unknown-device";
        /// A message that this receiver has no use for.
        WrongType = 5, "wrong-type";
        /// EP was set.
        Poisoned = 6, "poisoned";
        /// The payload does not have the length the context has.
        BadLength = 7, "bad-length";
        /// No place for another context.
        StoreFull = 8, "store-full";
        /// The context is not active.
        Inactive = 9, "inactive";
        /// Not all participants answered in time.
        TimedOut = 10, "timed-out";
        /// Another operation or data type than the context's; or an initialisation whose parts contradict each other.
        Mismatch = 11, "mismatch";
        /// No register at this offset.
        BadAddress = 12, "bad-address";
        /// The participant says that it cannot contribute.
        Failed = 13, "failed";
        /// The CRC is not the frame's.
        Damaged = 14, "damaged";
    }
}

impl Status {
    /// Whether an engine that says so may not have been set up.
    pub fn is_of_set_up(self) -> bool {
        matches!(self, Status::UnknownContext | Status::UnknownDevice | Status::StoreFull)
    }
}

/// Why bytes are not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Fewer bytes than a header.
    #[error("a frame has at least {HEADER_BYTES} bytes, not {0}")]
    Short(usize),
    /// The number of bytes is not what Length says.
    #[error("Length says {expected} bytes in all, and there are {given}")]
    Length {
        /// Bytes by the header.
        expected: usize,
        /// Bytes that are there.
        given: usize,
    },
    /// An odd number of double words, or more than fit.
    #[error("a payload of {0} bytes; it must be a multiple of {WORD_BYTES} and at most {MAX_PAYLOAD_BYTES}")]
    Payload(usize),
    /// No such encapsulated type.
    #[error("encapsulated type {0} is not assigned")]
    Message(u8),
    /// The Type field belongs to another message.
    #[error("Type {given:#04x} with a {message} message, which has {expected:#04x}")]
    Type {
        /// In the frame.
        given: u8,
        /// What the message has.
        expected: u8,
        /// The message.
        message: Message,
    },
    /// Another version of the format.
    #[error("version {0}; this is version {VERSION}")]
    Version(u8),
    /// No such operation.
    #[error("operation {0} is not assigned")]
    Operation(u8),
    /// No such data type.
    #[error("data type {0} is not assigned")]
    DataType(u8),
    /// No such status.
    #[error("status {0} is not assigned")]
    Status(u8),
    /// A reserved bit is set.
    #[error("reserved bits of double word {0} are set")]
    Reserved(u8),
    /// The bytes changed on the way.
    #[error("CRC {given:#08x}; that of these bytes is {right:#08x}")]
    Crc {
        /// In the frame.
        given: u32,
        /// Of the bytes.
        right: u32,
    },
    /// Exception flags that do not exist.
    #[error("exception flags {0:#04x} are not assigned")]
    Flags(u8),
    /// A record in a payload does not fit, or contradicts itself.
    #[error("record at payload byte {at}: {what}")]
    Record {
        /// Where it begins.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
}

impl PacketError {
    /// How a device counts such a frame.
    pub fn status(&self) -> Status {
        if matches!(self, PacketError::Crc { .. }) { Status::Damaged } else { Status::BadLength }
    }
}

/// What every PCIe transaction has in its header, whatever it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, watershed_state::Saved)]
pub struct Tlp {
    /// Traffic class, 0 to 7.
    pub tc: u8,
    /// Orthogonal header content, 0 to 31.
    pub ohc: u8,
    /// Trailer size, 0 to 7.
    pub ts: u8,
    /// Attributes, 0 to 7.
    pub attr: u8,
    /// EP.
    pub poisoned: bool,
}

/// How results are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Rounding {
    /// The direction.
    pub round: Round,
    /// Flush to zero.
    pub flush_to_zero: bool,
}

/// The header of a frame, its collective part included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Header {
    /// What every PCIe transaction has.
    pub tlp: Tlp,
    /// Device that sent this copy.
    pub requester: u16,
    /// Transaction number, 14 bits.
    pub tag: u16,
    /// Destination device.
    pub device: u16,
    /// Offset in its address space.
    pub offset: u16,
    /// Which message.
    pub message: Message,
    /// Of a control packet.
    pub control: Control,
    /// Of every other message.
    pub op: Op,
    /// No answer is expected.
    pub posted: bool,
    /// Data is incomplete or wrong.
    pub error: bool,
    /// For switches only.
    pub engines_only: bool,
    /// Status.
    pub status: Status,
    /// Collective context, 12 bits.
    pub cc_id: u16,
    /// Type of the data's lanes.
    pub dtype: DType,
    /// Rounding and flushing; the rest of the mode is not in a frame.
    pub rounding: Rounding,
    /// PBV entry, 7 bits.
    pub p_id: u8,
    /// End point that issued the collective.
    pub dmu_id: u16,
    /// Participants.
    pub p_count: u16,
    /// Run of the collective.
    pub run: u32,
    /// Sticky exception flags.
    pub flags: Flags,
}

impl Header {
    /// A header of a message from one device to another, everything else zero.
    pub const fn new(message: Message, requester: u16, device: u16, offset: u16) -> Header {
        Header {
            tlp: Tlp { tc: 0, ohc: 0, ts: 0, attr: 0, poisoned: false },
            requester,
            tag: 0,
            device,
            offset,
            message,
            control: Control::Start,
            op: Op::Barrier,
            posted: false,
            error: false,
            engines_only: false,
            status: Status::Ok,
            cc_id: 0,
            dtype: DType::U64,
            rounding: Rounding { round: Round::NearestEven, flush_to_zero: false },
            p_id: 0,
            dmu_id: NO_DEVICE,
            p_count: 0,
            run: 0,
            flags: Flags::NONE,
        }
    }

    /// Whether it is an error of an engine at which the context is not set up; it goes up to the source.
    pub fn is_about_set_up(&self) -> bool {
        let initialisation = self.p_count == u16::from(Message::Initialisation.number());
        self.message == Message::Error
            && self.status.is_of_set_up()
            && (self.status != Status::UnknownDevice || initialisation)
    }

    /// Rounding and flushing as a mode.
    pub fn mode(&self) -> Mode {
        let Rounding { round, flush_to_zero } = self.rounding;
        Mode { round, flush_to_zero, ..Mode::default() }
    }

    /// The 32-bit destination address.
    pub const fn address(&self) -> u32 {
        (self.device as u32) << 16 | self.offset as u32
    }
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct Packet {
    /// Its header.
    pub header: Header,
    /// What it carries.
    pub body: Body,
}

/// The payload of a frame.
#[derive(Clone, Debug, PartialEq, Eq, watershed_state::Saved)]
pub enum Body {
    /// None, or words.
    Words(Vec<u64>),
    /// One record a switch.
    Configuration(Vec<ConfigRecord>),
    /// One record an engine.
    Initialisation(Vec<InitRecord>),
    /// Who is missing.
    Missing {
        /// Their bits in the PBV of the engine that says it.
        pbv: u128,
        /// Their device IDs, from all levels below.
        devices: Vec<u16>,
    },
}

/// Words of a frame by Length in its first flit; those of the longest if that is none.
pub fn words_by_length(head: u64) -> usize {
    // Length is the lowest field of DW 0, which is the upper half of the flit's first word.
    let words = (HEADER_BYTES + 4 * usize::from(Dw0((head >> 32) as u32).length())) / WORD_BYTES;
    words.min(LONGEST_FRAME)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

/// A bit vector as four fields of four bytes, entries 0 to 31 first.
fn pbv_bytes(pbv: u128) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (field, place) in bytes.chunks_exact_mut(4).enumerate() {
        place.copy_from_slice(&((pbv >> (32 * field)) as u32).to_be_bytes());
    }
    bytes
}

fn pbv_at(bytes: &[u8], at: usize) -> u128 {
    (0..4).fold(0, |pbv, field| pbv | u128::from(u32_at(bytes, at + 4 * field)) << (32 * field))
}

/// The Type field of a message.
const fn tlp_type(message: Message) -> u8 {
    match message {
        Message::Write => 0x40,
        Message::Read => 0x03,
        Message::ReadReply => 0x4a,
        _ => 0x74,
    }
}

impl Packet {
    /// A frame without payload.
    pub const fn bare(header: Header) -> Packet {
        Packet { header, body: Body::Words(Vec::new()) }
    }

    /// A frame of words.
    pub const fn of(header: Header, words: Vec<u64>) -> Packet {
        Packet { header, body: Body::Words(words) }
    }

    /// The words it carries; none if it carries records.
    pub fn words(&self) -> &[u64] {
        match &self.body {
            Body::Words(words) => words,
            _ => &[],
        }
    }

    fn payload(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.body {
            Body::Words(words) => out.extend(words.iter().flat_map(|word| word.to_be_bytes())),
            Body::Configuration(records) => records.iter().for_each(|record| record.put(&mut out)),
            Body::Initialisation(records) => records.iter().for_each(|record| record.put(&mut out)),
            Body::Missing { pbv, devices } => {
                out.extend(pbv_bytes(*pbv));
                out.extend(devices.iter().flat_map(|device| device.to_be_bytes()));
                out.resize(out.len().next_multiple_of(WORD_BYTES), 0xff);
            }
        }
        out
    }

    /// The bytes of the frame.
    ///
    /// # Errors
    /// If the payload is longer than a frame can carry.
    pub fn encode(&self) -> Result<Vec<u8>, PacketError> {
        let payload = self.payload();
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(PacketError::Payload(payload.len()));
        }
        let header = &self.header;
        let mut dw0 = Dw0(0);
        dw0.set_kind(tlp_type(header.message));
        dw0.set_tc(header.tlp.tc);
        dw0.set_ohc(header.tlp.ohc);
        dw0.set_ts(header.tlp.ts);
        dw0.set_attr(header.tlp.attr);
        dw0.set_length((payload.len() / 4) as u16);
        let mut dw1 = Dw1(0);
        dw1.set_requester(header.requester);
        dw1.set_ep(header.tlp.poisoned);
        dw1.set_tag(header.tag);
        let mut dw3 = Dw3(0);
        dw3.set_message(header.message.number());
        dw3.set_operation(match header.message {
            Message::Control => header.control.number(),
            _ => Op::COMMON.iter().position(|&op| op == header.op).ok_or(PacketError::Operation(0xff))? as u8,
        });
        dw3.set_version(VERSION);
        dw3.set_posted(header.posted);
        dw3.set_error(header.error);
        dw3.set_engines_only(header.engines_only);
        dw3.set_status(header.status.number());
        let mut dw4 = Dw4(0);
        dw4.set_cc_id(header.cc_id);
        dw4.set_dtype(header.dtype as u8);
        dw4.set_round(header.rounding.round as u8);
        dw4.set_ftz(header.rounding.flush_to_zero);
        dw4.set_p_id(header.p_id);
        let mut dw5 = Dw5(0);
        dw5.set_dmu_id(header.dmu_id);
        dw5.set_p_count(header.p_count);
        let mut dw7 = Dw7(0);
        dw7.set_flags(header.flags.bits());
        let words = [dw0.0, dw1.0, header.address(), dw3.0, dw4.0, dw5.0, header.run, dw7.0];
        let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        out.extend(payload);
        crc::seal(&mut out);
        Ok(out)
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// The first thing that is wrong with it; a CRC that is not the frame's goes before everything that is in the frame.
    pub fn decode(bytes: &[u8]) -> Result<Packet, PacketError> {
        if bytes.len() < HEADER_BYTES {
            return Err(PacketError::Short(bytes.len()));
        }
        let (given, right) = (u32_at(bytes, 28) & 0xff_ffff, crc::of_frame(bytes));
        if given != right {
            return Err(PacketError::Crc { given, right });
        }
        let (dw0, dw1, dw3, dw4) =
            (Dw0(u32_at(bytes, 0)), Dw1(u32_at(bytes, 4)), Dw3(u32_at(bytes, 12)), Dw4(u32_at(bytes, 16)));
        let (dw5, dw7) = (Dw5(u32_at(bytes, 20)), Dw7(u32_at(bytes, 28)));
        let payload = &bytes[HEADER_BYTES..];
        let expected = 4 * usize::from(dw0.length());
        if expected % WORD_BYTES != 0 || expected > MAX_PAYLOAD_BYTES {
            return Err(PacketError::Payload(expected));
        }
        if expected != payload.len() {
            return Err(PacketError::Length { expected: expected + HEADER_BYTES, given: bytes.len() });
        }
        let reserved = [(1, dw1.reserved()), (3, dw3.reserved()), (4, dw4.reserved() != 0)];
        if let Some((word, _)) = reserved.into_iter().find(|&(_, set)| set) {
            return Err(PacketError::Reserved(word));
        }
        let message = Message::from_number(dw3.message()).ok_or(PacketError::Message(dw3.message()))?;
        if dw0.kind() != tlp_type(message) {
            return Err(PacketError::Type { given: dw0.kind(), expected: tlp_type(message), message });
        }
        if dw3.version() != VERSION {
            return Err(PacketError::Version(dw3.version()));
        }
        let operation = dw3.operation();
        let no_operation = PacketError::Operation(operation);
        let (control, op) = if message == Message::Control {
            (Control::from_number(operation).ok_or(no_operation)?, Op::Barrier)
        } else {
            (Control::Start, *Op::COMMON.get(usize::from(operation)).ok_or(no_operation)?)
        };
        let flags = Flags::from_bits(dw7.flags());
        if flags.bits() != dw7.flags() {
            return Err(PacketError::Flags(dw7.flags()));
        }
        let header = Header {
            tlp: Tlp { tc: dw0.tc(), ohc: dw0.ohc(), ts: dw0.ts(), attr: dw0.attr(), poisoned: dw1.ep() },
            requester: dw1.requester(),
            tag: dw1.tag(),
            device: u16_at(bytes, 8),
            offset: u16_at(bytes, 10),
            message,
            control,
            op,
            posted: dw3.posted(),
            error: dw3.error(),
            engines_only: dw3.engines_only(),
            status: Status::from_number(dw3.status()).ok_or(PacketError::Status(dw3.status()))?,
            cc_id: dw4.cc_id(),
            dtype: *DType::ALL.get(usize::from(dw4.dtype())).ok_or(PacketError::DataType(dw4.dtype()))?,
            rounding: Rounding { round: Round::ALL[usize::from(dw4.round())], flush_to_zero: dw4.ftz() },
            p_id: dw4.p_id(),
            dmu_id: dw5.dmu_id(),
            p_count: dw5.p_count(),
            run: u32_at(bytes, 24),
            flags,
        };
        Ok(Packet { header, body: Body::read(message, payload)? })
    }

    /// The frame as words of 64 bits: its flits where one carries 64 bits.
    ///
    /// # Errors
    /// If the payload is longer than a frame can carry.
    pub fn flits(&self) -> Result<Vec<u64>, PacketError> {
        Ok(self.encode()?.chunks_exact(WORD_BYTES).map(|chunk| u64_at(chunk, 0)).collect())
    }

    /// Reads a frame from its words.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    #[inline]
    pub fn from_flits(words: &[u64]) -> Result<Packet, PacketError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        Packet::decode(&bytes)
    }
}

impl Body {
    fn read(message: Message, payload: &[u8]) -> Result<Body, PacketError> {
        let mut at = 0;
        match message {
            Message::Configuration => {
                let mut records = Vec::new();
                while at < payload.len() {
                    let record = ConfigRecord::take(payload, at)?;
                    at += record.bytes();
                    records.push(record);
                }
                Ok(Body::Configuration(records))
            }
            Message::Initialisation => {
                let mut records: Vec<InitRecord> = Vec::new();
                while at < payload.len() {
                    let record = InitRecord::take(payload, at)?;
                    at += record.bytes();
                    records.push(record);
                }
                let mut at = 0;
                // Where the records below the ones around end.
                let mut ends = vec![records.len()];
                for (k, record) in records.iter().enumerate() {
                    ends.retain(|&end| end > k);
                    let end = k + 1 + usize::from(record.below);
                    if ends.last().is_none_or(|&around| end > around) {
                        return Err(PacketError::Record { at, what: "more records below it than follow there" });
                    }
                    ends.push(end);
                    at += record.bytes();
                }
                Ok(Body::Initialisation(records))
            }
            Message::Error | Message::Failure if !payload.is_empty() => {
                if payload.len() < 16 {
                    return Err(PacketError::Record { at: 0, what: "fewer bytes than a PBV has" });
                }
                let all: Vec<u16> = payload[16..].chunks_exact(2).map(|pair| u16_at(pair, 0)).collect();
                let count = all.iter().position(|&device| device == NO_DEVICE).unwrap_or(all.len());
                if all[count..].iter().any(|&device| device != NO_DEVICE) || all.len() - count > 3 {
                    return Err(PacketError::Record {
                        at: 16,
                        what: "a device ID behind the padding, or too much of it",
                    });
                }
                Ok(Body::Missing { pbv: pbv_at(payload, 0), devices: all[..count].to_vec() })
            }
            _ => Ok(Body::Words(payload.chunks_exact(WORD_BYTES).map(|chunk| u64_at(chunk, 0)).collect())),
        }
    }
}
