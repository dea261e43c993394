//! Frames: what is written is read, bit for bit; what is no frame is named and never panics (B-PKT-1 to B-PKT-6).

use proptest::prelude::*;
use watershed::arith::{DType, Flags, Op, Round};
use watershed::pbv::packet::crc;
use watershed::pbv::packet::{
    Body, ConfigRecord, Control, Groups, Header, InitRecord, Message, PBV_ENTRIES, Packet, PacketError, Rounding,
    Status, Tlp,
};
use watershed::pbv::reports::Reports;

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(all)
}

prop_compose! {
    fn header()(
        (tc, ohc, ts, attr, poisoned, posted, error) in (0..8u8, 0..32u8, 0..8u8, 0..8u8, any::<bool>(), any::<bool>(), any::<bool>()),
        (requester, tag, device, offset) in (any::<u16>(), 0..1u16 << 14, any::<u16>(), any::<u16>()),
        (message, control, op, status) in (one_of(Message::ALL), one_of(Control::ALL), one_of(Op::COMMON), one_of(Status::ALL)),
        (cc_id, dtype, round, flush_to_zero) in (0..1u16 << 12, one_of(DType::ALL), one_of(Round::ALL), any::<bool>()),
        (p_id, dmu_id, p_count, run, flags) in (0..128u8, any::<u16>(), any::<u16>(), any::<u32>(), any::<u8>()),
        engines_only in any::<bool>(),
    ) -> Header {
        Header {
            tlp: Tlp { tc, ohc, ts, attr, poisoned }, requester, tag, device, offset, message,
            control: if message == Message::Control { control } else { Control::Start },
            op: if message == Message::Control { Op::Barrier } else { op },
            posted, error, engines_only, status, cc_id, dtype, rounding: Rounding { round, flush_to_zero }, p_id, dmu_id, p_count, run,
            flags: Flags::from_bits(flags),
        }
    }
}

prop_compose! {
    fn config()(
        device in any::<u16>(), timeout in any::<u32>(), retries in any::<u8>(), report_errors in any::<bool>(),
        validate in any::<bool>(), window in any::<u32>(), isl_ports in any::<u64>(), switches in any::<u128>(),
        entries in proptest::collection::vec(any::<u16>(), 0..=PBV_ENTRIES),
        reports in proptest::option::of((any::<u16>(), 0u32..1 << 18, any::<u16>(), any::<u16>())),
    ) -> ConfigRecord {
        let there = if entries.len() == PBV_ENTRIES { u128::MAX } else { (1 << entries.len()) - 1 };
        ConfigRecord { device, timeout, retries, report_errors, validate, window, isl_ports, switches: switches & there, reports: reports.map(|(to, queues, above, until)| Reports::new(to, queues, above, until)), entries }
    }
}

prop_compose! {
    fn init()(
        device in any::<u16>(), words in any::<u16>(), initial in any::<Option<u64>>(), pbv in any::<u128>(),
        (pbv_order, rearm, answer_source, master, to_source) in any::<(bool, bool, bool, bool, bool)>(),
        (above, collector) in any::<(u16, u16)>(),
        groups in proptest::option::of((0u16..3841, 2u8..=255)), other in proptest::option::of(any::<u128>()),
    ) -> InitRecord {
        let groups = groups.map(|(first, count)| Groups { first, count });
        InitRecord { above, collector, groups, down: other.unwrap_or(pbv), words, initial, pbv_order, rearm, answer_source, master, to_source, ..InitRecord::barrier(device, pbv) }
    }
}

fn packet() -> impl Strategy<Value = Packet> {
    (
        header(),
        proptest::collection::vec(any::<u64>(), 0..=128),
        proptest::collection::vec(config(), 0..4),
        proptest::collection::vec(init(), 0..20),
        any::<u128>(),
        proptest::collection::vec(0..0xffffu16, 0..40),
    )
        .prop_map(|(header, words, configs, mut inits, pbv, devices)| {
            let body = match header.message {
                Message::Configuration => Body::Configuration(configs),
                Message::Initialisation => {
                    let count = inits.len();
                    for (k, record) in inits.iter_mut().enumerate() {
                        record.below = (count - k - 1) as u16;
                    }
                    Body::Initialisation(inits)
                }
                Message::Error | Message::Failure => Body::Missing { pbv, devices },
                _ => Body::Words(words),
            };
            Packet { header, body }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_frame_reads_back_as_it_was_written(packet in packet()) {
        let bytes = packet.encode().unwrap();
        prop_assert_eq!(bytes.len() % 8, 0);
        prop_assert_eq!(&Packet::decode(&bytes).unwrap(), &packet);
        let flits = packet.flits().unwrap();
        prop_assert_eq!(flits.len() * 8, bytes.len());
        prop_assert_eq!(Packet::from_flits(&flits).unwrap(), packet);
    }

    #[test]
    fn bytes_that_decode_encode_to_themselves_and_others_have_a_named_error(
        packet in packet(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0..8u32), 1..4),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = packet.encode().unwrap();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        if bytes.len() >= 32 {
            crc::seal(&mut bytes);
        }
        match Packet::decode(&bytes) {
            Ok(again) => prop_assert_eq!(again.encode().unwrap(), bytes),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(packet) = Packet::decode(&bytes) {
            prop_assert_eq!(packet.encode().unwrap(), bytes);
        }
    }
}

#[test]
fn fields_lie_where_the_table_says() {
    let mut header = Header::new(Message::Contribution, 0x0011, 0x0010, 0xc000);
    (header.cc_id, header.p_id, header.op, header.dtype) = (0x802, 2, Op::Sum, DType::F32);
    (header.run, header.p_count, header.dmu_id) = (5, 0x1234, 0x0001);
    let bytes = Packet::of(header, vec![0x0102_0304_0506_0708]).encode().unwrap();
    let dw = |k: usize| u32::from_be_bytes(bytes[4 * k..4 * k + 4].try_into().unwrap());
    assert_eq!(bytes.len(), 40);
    assert_eq!(dw(0), 0x7400_0002, "Type 31:24, Length 9:0 in double words");
    assert_eq!(dw(1), 0x0011_0000, "Requester ID 31:16");
    assert_eq!(dw(2), 0x0010_c000, "device and offset");
    assert_eq!(dw(3) >> 24, 8, "contribution");
    assert_eq!(dw(3) >> 12 & 0xf, 1, "version");
    assert_eq!(dw(4) >> 20, 0x802, "CC_ID");
    assert_eq!(dw(4) & 0x7f, 2, "P_ID");
    assert_eq!(dw(5), 0x0001_1234, "DMU_ID, P_count");
    assert_eq!(dw(6), 5);
    assert_eq!(&bytes[32..], [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_command_has_32_bytes_and_a_kilobyte_of_results_makes_1056() {
    let header = Header::new(Message::Command, 1, 2, 0xc000);
    assert_eq!(Packet::bare(header).flits().unwrap().len(), 4);
    let result = Packet::of(Header::new(Message::Satisfied, 1, 2, 0), vec![0; 128]);
    assert_eq!((result.encode().unwrap().len(), result.flits().unwrap().len()), (1056, 132));
}

#[test]
fn the_pbv_lies_in_payload_bytes_24_to_39() {
    let header = Header::new(Message::Initialisation, 1, 0x10, 0xc000);
    for entry in 0..PBV_ENTRIES {
        let packet = Packet { header, body: Body::Initialisation(vec![InitRecord::barrier(0x10, 1 << entry)]) };
        let bytes = packet.encode().unwrap();
        let set: Vec<usize> = (0..16).filter(|k| bytes[32 + 24 + k] != 0).collect();
        assert_eq!(set, [entry / 32 * 4 + 3 - entry % 32 / 8], "field {} of four bytes", entry / 32);
        assert_eq!(bytes[32 + 24 + set[0]], 1 << (entry % 8));
    }
}

#[test]
fn entry_k_of_a_configuration_lies_at_byte_40_plus_2_k() {
    let header = Header::new(Message::Configuration, 1, 0x10, 0xc000);
    let entries: Vec<u16> = (0..128).map(|k| 0x4000 + k).collect();
    let bytes =
        Packet { header, body: Body::Configuration(vec![ConfigRecord::of(0x10, entries, 1 << 127)]) }.encode().unwrap();
    for k in 0..128usize {
        let at = 32 + 40 + 2 * k;
        assert_eq!(u16::from_be_bytes([bytes[at], bytes[at + 1]]), 0x4000 + k as u16);
    }
}

#[test]
fn every_error_names_what_is_wrong() {
    let good = Packet::bare(Header::new(Message::Command, 1, 2, 0xc000)).encode().unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        assert!(matches!(Packet::decode(&bytes), Err(PacketError::Crc { .. })), "damage goes before everything");
        crc::seal(&mut bytes);
        Packet::decode(&bytes).unwrap_err()
    };
    assert_eq!(Packet::decode(&good[..31]), Err(PacketError::Short(31)));
    assert_eq!(with(0, 0x40), PacketError::Type { given: 0x40, expected: 0x74, message: Message::Command });
    assert_eq!(with(3, 2), PacketError::Length { expected: 40, given: 32 });
    assert_eq!(with(3, 1), PacketError::Payload(4));
    assert_eq!(with(6, 0x40), PacketError::Reserved(1));
    assert_eq!(with(12, 99), PacketError::Message(99));
    assert_eq!(with(13, 99), PacketError::Operation(99));
    assert_eq!(with(14, 0x20), PacketError::Version(2));
    assert_eq!(with(14, 0x11), PacketError::Reserved(3));
    assert_eq!(with(15, 77), PacketError::Status(77));
    assert_eq!(with(17, 0x0f), PacketError::DataType(15));
    let long = Packet::of(Header::new(Message::Satisfied, 1, 2, 0), vec![0; 511]);
    assert_eq!(long.encode(), Err(PacketError::Payload(4088)));
    let init = Packet {
        header: Header::new(Message::Initialisation, 1, 2, 0xc000),
        body: Body::Initialisation(vec![InitRecord { p_count: 2, ..InitRecord::barrier(2, 1) }]),
    };
    let error = Packet::decode(&init.encode().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "record at payload byte 0: P_count is not the number of participants in the PBV");
    for (first, count) in [(0, 1), (4000, 97), (5, 0)] {
        let groups = Some(Groups { first, count });
        let body = Body::Initialisation(vec![InitRecord { groups, ..InitRecord::barrier(2, 1) }]);
        let error = Packet::decode(&Packet { body, ..init.clone() }.encode().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "record at payload byte 0: groups that there cannot be");
    }
}
