//! Addresses, shared registers and what is derived from them.

use super::*;
use watershed_fabric::routing::Routing;
use watershed_fabric::topology::Die;

fn registers() -> Registers {
    let cfg = RegistersCfg { switches: 3, ids: 5, external_ports: 10 };
    let routes = Routes { routing: Routing::Die(Die::default()), ends: Vec::new() };
    Registers::new(cfg, vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], routes)
}

#[test]
fn every_register_reads_back_and_none_aliases() {
    let mut registers = registers();
    let mut written = Vec::new();
    for switch in 0..3 {
        for id in 0..5 {
            for channel in [REQUEST, RESPONSE] {
                for port in 0..=10 {
                    let address = Registers::vector_address(switch, id, channel, port);
                    let value = written.len() as u64 % 0x7ff;
                    assert_eq!(registers.load(address), Ok(0), "zero at reset");
                    registers.store(address, value).unwrap();
                    written.push((address, value));
                }
            }
            let select = OpSelect { op: Op::Max, dtype: DType::F32, mode: Mode::rounding(Round::Down) };
            registers.store(Registers::select_address(switch, id), select.encode()).unwrap();
            assert_eq!(registers.select(switch, id), select);
            written.push((Registers::select_address(switch, id), select.encode()));
        }
    }
    for (address, value) in written {
        assert_eq!(registers.load(address), Ok(value), "{address:#x}");
    }
}

#[test]
fn unmapped_addresses_and_reserved_values_are_refused() {
    let mut registers = registers();
    let good = Registers::vector_address(2, 4, RESPONSE, 10);
    assert_eq!(
        registers.store(good, 1 << 11),
        Err(AddressError::NoSuchPort { address: good, value: 1 << 11, last_port: 10 })
    );
    assert_eq!(registers.load(good), Ok(0), "a refused store changes nothing");
    for bad in [
        Registers::vector_address(3, 0, REQUEST, 0),
        Registers::vector_address(0, 5, REQUEST, 0),
        Registers::vector_address(0, 0, REQUEST, 11),
        Registers::select_address(0, 0) + 16,
        !7,
    ] {
        assert_eq!(registers.store(bad, 0), Err(AddressError::Unmapped(bad)));
    }
    assert_eq!(registers.load(good + 4), Err(AddressError::Unaligned(good + 4)));
    let select = Registers::select_address(1, 1);
    for value in [0xff, 0xff00, 1 << 19] {
        assert_eq!(registers.store(select, value), Err(AddressError::NoSuchOperation { address: select, value }));
    }
}

#[test]
fn equal_registers_are_shared_until_one_is_written() {
    let mut registers = registers();
    let of = |switch| [((switch, REQUEST, 2), 1 << 10), ((switch, REQUEST, 7), 1 << 10), ((switch, RESPONSE, 10), 132)];
    registers.store_vectors(3, (0..3).flat_map(of)).unwrap();
    assert_eq!(registers.distinct_sets(), 2, "the zero set, and one for all three");
    let max = OpSelect { op: Op::Max, ..OpSelect::default() };
    registers.store_select(3, &[0, 2], max);
    assert_eq!(registers.distinct_sets(), 3);
    let before = registers.clone();
    registers.store(Registers::vector_address(2, 3, REQUEST, 7), 4).unwrap();
    for switch in 0..3 {
        for (at, vector) in of(switch) {
            let written = if at == (2, REQUEST, 7) { 4 } else { vector };
            assert_eq!(registers.vector(switch, 3, at.1, at.2), written);
            assert_eq!(before.vector(switch, 3, at.1, at.2), vector);
            assert_eq!(registers.vector(switch, 2, at.1, at.2), 0, "no other id");
        }
        assert_eq!(registers.select(switch, 3) == max, switch != 1);
        assert_eq!(registers.engine_inputs(switch, 3), if switch == 2 { 4 } else { 132 });
    }
    assert_eq!(
        registers.store_vectors(0, [((0, REQUEST, 1), 1), ((0, REQUEST, 11), 1)].into_iter()),
        Err(AddressError::Unmapped(Registers::vector_address(0, 0, REQUEST, 11)))
    );
}

#[test]
fn only_built_ports_count_and_registers_keep_their_numbers() {
    let mut registers = registers();
    assert_eq!((registers.counted(1, 0b101_1000_0100), registers.numbered(1, 7)), (0b101_1000_0100, 7));
    registers.wire(vec![0, 1 << 2 | 1 << 7 | 1 << 8, 1 << 9]);
    // Ports 2, 7 and 8 and the engine, number 10, are 0 to 3.
    for (number, counted) in [(2, 0), (7, 1), (8, 2), (10, 3)] {
        assert_eq!((registers.counted(1, 1 << number), registers.numbered(1, counted)), (1 << counted, number));
    }
    assert_eq!(registers.counted(1, 1 << 10 | 1 << 7), 0b1010);
    assert_eq!(registers.distinct_sets(), 3, "one for each way to be built, until one is written");
    registers.store(Registers::vector_address(1, 2, REQUEST, 7), 1 << 10 | 1 << 2).unwrap();
    let flit = Flit::collective(2, REQUEST, 0, 0);
    assert_eq!(registers.outputs(1, 1, &flit), PortSet::from_word(0b1001));
    assert!(registers.outputs(1, 2, &flit).is_empty());
    assert_eq!((registers.engine_inputs(1, 2), registers.counted_inputs(1, 2)), (1 << 7, 1 << 1));
    // What was there before counts as well, and switches that are built differently never share again.
    registers.wire(vec![1 << 7, 1 << 2 | 1 << 7, 1 << 2 | 1 << 7 | 1 << 9]);
    assert_eq!(registers.outputs(1, 1, &flit), PortSet::from_word(0b101));
    let same = |switch| ((switch, REQUEST, 7), 1 << 10 | 1 << 2);
    registers.store_vectors(2, (0..3).map(same)).unwrap();
    for (switch, port, outputs) in [(0, 0, 0b11), (1, 1, 0b101), (2, 1, 0b1001)] {
        assert_eq!(registers.outputs(switch, port, &flit), PortSet::from_word(outputs), "switch {switch}");
        assert_eq!(registers.counted_inputs(switch, 2), 1 << port);
    }
    // Switches that are built alike share what is written alike; sets that nobody needs any more are forgotten.
    let mut registers = self::registers();
    registers.wire(vec![1 << 2 | 1 << 7; 3]);
    registers.store_vectors(2, (0..3).map(same)).unwrap();
    assert_eq!(registers.distinct_sets(), 2, "the one of all other ids, and this one");
    registers.store(Registers::vector_address(2, 2, REQUEST, 7), 1 << 2).unwrap();
    let max = OpSelect { op: Op::Max, ..OpSelect::default() };
    registers.store_select(2, &[0, 1], max);
    for (switch, outputs, inputs) in [(0, 0b101, 0b10), (1, 0b101, 0b10), (2, 0b1, 0)] {
        assert_eq!(registers.outputs(switch, 1, &flit), PortSet::from_word(outputs), "switch {switch}");
        assert_eq!(registers.counted_inputs(switch, 2), inputs);
        assert_eq!(registers.select(switch, 2).op == Op::Max, switch != 2);
    }
}

#[test]
fn the_engine_bit_and_the_root_are_derived_from_the_vectors() {
    let mut registers = registers();
    for port in [2, 3, 7] {
        registers.store(Registers::vector_address(1, 2, REQUEST, port), 1 << 10).unwrap();
    }
    assert_eq!(registers.engine_inputs(1, 2), 0b1000_1100);
    assert!(!registers.is_root(1, 2));
    registers.store(Registers::vector_address(1, 2, RESPONSE, 10), 1 << 7).unwrap();
    assert!(registers.is_root(1, 2));
    registers.store(Registers::vector_address(1, 2, REQUEST, 10), 1 << 5).unwrap();
    assert!(!registers.is_root(1, 2));
    registers.store(Registers::vector_address(1, 2, REQUEST, 3), 0).unwrap();
    assert_eq!(registers.engine_inputs(1, 2), 0b1000_0100);
}
