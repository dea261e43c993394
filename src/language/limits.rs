//! The greatest sizes of a scenario. Every limit is checked before anything of that size is allocated, and a scenario
//! beyond one gets an error that names it.

/// Switches of a system.
pub const SWITCHES: u64 = 1 << 22;
/// Switches of a topology file: its table of shortest ways grows with their square.
pub const FILE_SWITCHES: u64 = 2048;
/// End points of a system.
pub const END_POINTS: u64 = 1 << 22;
const _: () = assert!(SWITCHES + END_POINTS < watershed_fabric::MAX_NODES as u64);
/// Flit slots in all buffers of a system together, where the scenario fixes their depth.
pub const BUFFER_FLITS: u64 = 1 << 28;
/// Registers of all ports and collective ids of a system together.
pub const REGISTERS: u64 = 1 << 28;
/// Elements of one collective.
pub const ELEMENTS: u64 = 1 << 28;
/// Elements of all participants of all collectives together: each is held as a 64-bit word.
pub const CONTRIBUTIONS: u64 = 1 << 28;
/// Words of all members of one collective of a trace together: they are there while it runs.
pub const WORKLOAD_WORDS: u64 = 1 << 30;
/// Cycles of a run, and any cycle number in a scenario.
pub const CYCLES: u64 = 1 << 53;
/// Bytes of a scenario file.
pub const SCENARIO_BYTES: u64 = 1 << 26;
/// Bytes of a data file.
pub const DATA_BYTES: u64 = 1 << 33;
/// Crossbar inputs of a switch: ports, with the engine's, times the input speed-up.
pub const PASSAGES: u64 = 64;
