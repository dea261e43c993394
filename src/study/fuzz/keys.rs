//! What random scenarios set: topologies, tables, keys and their values, the simplest first.

/// Tables, keys and values, the simplest value first; the default is to leave the key out.
pub(super) type Keys = &'static [(&'static str, &'static str, &'static [&'static str])];

/// Topologies, the simplest first, and how many end points they have.
pub(super) const TOPOLOGIES: &[(&str, u32)] = &[
    ("kind = \"mesh\"\nsize = [2, 1]", 2),
    ("kind = \"mesh\"\nsize = [2, 2]", 4),
    ("kind = \"tree\"\nbranching = [2, 2]", 4),
    ("kind = \"fat-tree\"\narity = 2\nlevels = 2", 4),
    ("kind = \"mesh\"\nsize = [4, 2]", 8),
    ("kind = \"torus\"\nsize = [3, 3]", 9),
    ("kind = \"hyperx\"\nsize = [3, 3]", 9),
    ("kind = \"fat-tree\"\narity = 3\nlevels = 2", 9),
    ("kind = \"tree\"\nbranching = [4, 3]", 12),
    ("kind = \"mesh\"\nsize = [4, 4]", 16),
];

const COMMON: Keys = &[
    ("job", "elements", &["1", "2", "3", "4", "5", "7", "8", "13", "16", "31", "64"]),
    ("job", "dtype", &["\"f64\"", "\"i64\""]),
    ("job", "op", &["\"sum\"", "\"max\"", "\"min\""]),
    ("job", "data", &["{ random = \"normal\" }", "{ random = \"mixed\" }"]),
    ("job", "start_cycle", &["1", "17", "500"]),
    ("link", "latency_cycles", &["1", "2", "3", "5", "9"]),
    ("link", "width_bits", &["64", "32", "16", "63", "8"]),
    ("link", "local_width_bits", &["32", "8"]),
    ("switch", "pipeline_stages", &["1", "2", "3", "4"]),
    ("switch", "arbiter", &["\"matrix\"", "\"fixed\""]),
    // Traffic that nothing stops ends with the last job.
    ("traffic", "rate", &["0.05", "0.2", "0.001"]),
    ("traffic", "stop_cycle", &["2000", "300"]),
];

const PIUMA: Keys = &[
    ("switch", "collective_buffer_flits", &["16", "24", "32"]),
    ("job", "kind", &["\"allreduce\"", "\"reduce\"", "\"broadcast\"", "\"barrier\"", "\"scan\""]),
    ("switch.ceng", "stages", &["1", "2", "4", "6"]),
    ("switch.ceng", "operand_slots", &["1", "3", "8"]),
    ("memory", "bandwidth_gbps", &["51.2", "6.4"]),
];

const ARMED: Keys = &[
    ("switch", "collective_buffer_flits", &["16", "24", "32"]),
    ("link", "flit_bits", &["64", "96", "256", "1024"]),
    ("armed.engine", "stages", &["1", "2", "6"]),
    ("armed.engine", "descriptors", &["1", "2", "0"]),
    ("armed.engine", "entrance_frames", &["1", "4"]),
    ("armed.engine", "exit_frames", &["1", "2"]),
    ("armed.engine", "memory_ports", &["1", "2"]),
    ("job", "armed.reduction_ids", &["2", "4", "8"]),
    ("job", "armed.opening_barrier", &["false"]),
    ("job", "armed.compute_cycles", &["10", "{ random_max = 200 }"]),
];

/// What every case of a family sets. Left to themselves, armed processes are patient for millions of cycles after the last message,
/// and without skipping each of those is simulated; these times are still longer than any case takes.
pub(super) const ALWAYS: [(&str, &str, &str); 9] = [
    ("armed", "armed.engine", "timeouts_1024_cycles = [4, 4, 4, 4]\n"),
    ("armed", "job", "armed.retry_after_cycles = 20_000\n"),
    ("armed", "job", "armed.patience_cycles = 20_000\n"),
    // Jobs of different engines have channels of their own, and their numbers of classes differ between networks.
    ("mixed", "switch", "point_to_point_vcs = 8\n"),
    ("mixed", "armed.engine", "timeouts_1024_cycles = [4, 4, 4, 4]\n"),
    ("workload", "switch", "point_to_point_vcs = 8\n"),
    ("workload", "armed.engine", "timeouts_1024_cycles = [4, 4, 4, 4]\n"),
    // Traces count whole us; a twentieth of them is long enough beside what a network takes.
    ("workload", "workload", "compute_scale = 0.05\n"),
    ("workload", "workload", "dtype = \"f64\"\n"),
];

const PBV: Keys = &[
    ("switch", "collective_buffer_flits", &["16", "24", "32"]),
    ("link", "flit_bits", &["64", "32", "96", "256", "1024"]),
    ("pbv.engine", "attach", &["\"link\"", "\"node\""]),
    ("pbv.engine", "per_switch", &["2"]),
    ("pbv.engine", "reduction_units", &["1", "3"]),
    ("pbv.engine", "stages", &["1", "2", "6"]),
    ("pbv.engine", "contexts", &["1", "2"]),
    ("pbv.engine", "memory_ports", &["1", "2"]),
    ("pbv.setup", "configuration", &["\"writes\"", "\"one-frame\"", "\"side-port\""]),
    ("job", "pbv.order", &["\"arrival\"", "\"pbv\""]),
    ("job", "pbv.tree", &["\"flat\"", "\"monolithic\""]),
];

const SOFTWARE: Keys = &[
    ("job", "software.algorithm", &["\"recursive-doubling\"", "\"ring\"", "\"rabenseifner\"", "\"binary-tree\""]),
    ("memory", "bandwidth_gbps", &["51.2", "6.4"]),
];

/// A network without jobs, under traffic.
const FABRIC: Keys = &[
    ("link", "latency_cycles", &["1", "2", "3", "5", "9"]),
    ("link", "width_bits", &["64", "32", "16"]),
    ("switch", "pipeline_stages", &["1", "2", "3", "4"]),
    ("switch", "arbiter", &["\"matrix\"", "\"fixed\""]),
    ("switch", "point_to_point_vcs", &["2", "3", "4", "8"]),
    ("switch", "point_to_point_buffer_flits", &["2", "4", "8", "16"]),
    ("traffic", "rate", &["0.02", "0.1", "0.3", "0.6"]),
    ("traffic", "packet_flits", &["1", "2", "5", "[{ flits = 1, weight = 3 }, { flits = 9, weight = 1 }]"]),
    ("traffic", "pattern", &["\"uniform\"", "\"neighbour\"", "\"tornado\""]),
    ("traffic", "include_self", &["false"]),
    ("traffic", "start_cycle", &["1", "17", "500"]),
];

/// Engines of jobs in one network, the simplest first, with the keys that only their jobs and tables have.
pub(super) const ENGINES: [(&str, Keys); 4] =
    [("software", SOFTWARE), ("piuma", PIUMA), ("armed", ARMED), ("pbv", PBV)];

/// Traces of applications: whose engines there are, and who computes collectives.
const WORKLOAD: Keys = &[
    ("", "family", &["\"piuma\"", "\"armed\"", "\"pbv\""]),
    ("workload", "overhead_cycles", &["1", "10", "300"]),
    ("workload", "packet_words", &["1", "2", "16", "100"]),
    ("workload", "rounds_under_way", &["1", "2", "3"]),
    ("workload", "op", &["\"max\"", "\"min\""]),
    ("workload", "engine.allreduce", &["\"ring\"", "\"recursive-doubling\"", "\"rabenseifner\"", "\"binary-tree\""]),
    ("workload", "engine.reduce", &["\"binomial\""]),
    ("workload", "engine.broadcast", &["\"binomial\""]),
    ("workload", "engine.barrier", &["\"dissemination\""]),
    ("link", "latency_cycles", &["1", "2", "3", "5", "9"]),
    ("link", "width_bits", &["64", "32", "16"]),
    ("switch", "pipeline_stages", &["1", "2", "3", "4"]),
    ("switch", "arbiter", &["\"matrix\"", "\"fixed\""]),
    ("memory", "bandwidth_gbps", &["51.2", "6.4"]),
];

/// A key with its table and its values.
pub(super) type Key = &'static (&'static str, &'static str, &'static [&'static str]);

/// The keys of a family.
pub(super) fn of(family: &str) -> Vec<Key> {
    let own = match family {
        "fabric" => return FABRIC.iter().collect(),
        "workload" => return WORKLOAD.iter().collect(),
        "mixed" => return of_all(),
        "piuma" => PIUMA,
        "armed" => ARMED,
        "pbv" => PBV,
        _ => SOFTWARE,
    };
    COMMON.iter().chain(own).collect()
}

/// The keys of a network of several engines that are none of a job's.
fn of_all() -> Vec<Key> {
    let mut all: Vec<Key> = Vec::new();
    for key in COMMON.iter().chain(ENGINES.iter().flat_map(|(_, own)| own.iter())) {
        if key.0 != "job" && !all.iter().any(|other| (other.0, other.1) == (key.0, key.1)) {
            all.push(key);
        }
    }
    all
}

/// The keys of a job of an engine.
pub(super) fn of_job(engine: usize) -> Vec<Key> {
    COMMON.iter().chain(ENGINES[engine].1).filter(|(table, ..)| *table == "job").collect()
}

/// The engine without which a table says nothing.
pub(super) fn engine_of(table: &str) -> Option<&'static str> {
    match table {
        "switch.ceng" => Some("piuma"),
        _ => ["armed", "pbv"].into_iter().find(|engine| table.starts_with(engine)),
    }
}
