//! One job on every engine and every network that is asked for (requirement X-CMP-1): writes the [study](super::study)
//! file for it.
//!
//! | held equal | not held equal |
//! |---|---|
//! | clock, links, end points, the job, who takes part and what they contribute | how a network is wired: each has as many end points as are asked for, or the fewest above that, of which the first take part |
//! | memory of end points, which limits no engine; software costs no time | storage of engines, which the table lists |
//! | | how it is set up: PIUMA's registers and the tables of packet engines are there before the run, armed engines are armed over the network |
//!
//! Every engine has settings that suit it *\[chosen\]*. The armed engine has eight reductions under way and no barrier
//! before the first. Packet engines have rounds in eight contexts, one command for all rounds of each, and time-outs that detect dead
//! participants and are longer than the longest frames of all contexts wait for each other.

use std::fmt::Write;

use watershed_pbv_interface::packet::MAX_PAYLOAD_BYTES;
use watershed_scenario_interface::file::job::Engine;
use watershed_scenario_interface::names::{DType, NamedValues, one_of};

use super::Disturbance;

/// The most end points.
const END_POINTS: u64 = 65_536;

/// Cycles that an element may take before a run is given up: several times what the slowest engine needs *\[chosen\]*.
const CYCLES_PER_ELEMENT: u64 = 100;

/// The shortest time-out of packet engines, in cycles.
const LEAST_TIMEOUT: u64 = 2048;

/// Which engines to compare, on which networks and for which job.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineComparison {
    /// Who is compared: engines by name, `software:ALGORITHM` for another one than Rabenseifner's.
    pub engines: Vec<String>,
    /// On which networks: kinds, or topology files.
    pub topologies: Vec<String>,
    /// Vector lengths.
    pub elements: Vec<u64>,
    /// End points that take part.
    pub end_points: u64,
    /// The operation.
    pub op: String,
    /// The type of an element.
    pub dtype: String,
    /// Values that are set in all scenarios.
    pub set: Vec<String>,
    /// How participants are disturbed, at the middle one of the lengths.
    pub disturb: Disturbance,
}

/// Kinds of networks that are known by name.
pub const KINDS: [&str; 9] =
    ["mesh", "torus", "hyperx", "flattened-butterfly", "fat-tree", "dragonfly", "tree", "die", "nodes"];

/// End points of a die, which are those of a socket: four at each of two core tiles.
const DIE_ENDS: u64 = 8;

/// Sockets of a node, at most *\[chosen\]*.
const SOCKETS: u64 = 16;

/// Two sides whose product is a number, as equal as they can be.
fn sides(product: u64) -> (u64, u64) {
    let side = (1..=product.isqrt()).rev().find(|side| product.is_multiple_of(*side)).unwrap_or(1);
    (product / side, side)
}

/// The name and the table of a network with this many end points, or the fewest above that.
fn network(name: &str, ends: u64) -> Result<(String, String), String> {
    let grid = |kind: &str| {
        let (x, y) = sides(ends);
        let size = if y == 1 { format!("[{x}]") } else { format!("[{x}, {y}]") };
        (
            format!("{kind} {}", size.trim_matches(['[', ']']).replace(", ", " x ")),
            format!("{{ kind = '{kind}', size = {size} }}"),
        )
    };
    Ok(match name {
        "mesh" | "torus" | "hyperx" | "flattened-butterfly" => grid(name),
        "fat-tree" => {
            let levels = (2..16).find(|&levels| 4u64.pow(levels) >= ends).unwrap_or(16);
            (format!("4-ary {levels}-tree"), format!("{{ kind = 'fat-tree', arity = 4, levels = {levels} }}"))
        }
        "dragonfly" => {
            // Balanced: a group has 2h switches of h end points and h global links.
            let count = |h: u64| 2 * h * h * (2 * h * h + 1);
            let h = (1..64).find(|&h| count(h) >= ends).unwrap_or(64);
            (format!("dragonfly of {} groups", 2 * h * h + 1), format!("{{ kind = 'dragonfly', global_links = {h} }}"))
        }
        "tree" => {
            let levels = (1..16).find(|&levels| 4u64.pow(levels) >= ends).unwrap_or(16) as usize;
            let branching = vec!["4"; levels].join(", ");
            (format!("tree of {levels} levels"), format!("{{ kind = 'tree', branching = [{branching}] }}"))
        }
        "die" if ends > DIE_ENDS => {
            return Err(format!(
                "a die has {DIE_ENDS} end points, and {ends} take part: --end-points of up to 8, or \"nodes\" of several dies"
            ));
        }
        "die" => ("die".into(), "{ kind = 'die' }".into()),
        "nodes" => {
            let nodes = ends.div_ceil(DIE_ENDS * SOCKETS);
            let sockets = ends.div_ceil(DIE_ENDS * nodes);
            let count = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            (
                format!("{} of {}", count(nodes, "node"), count(sockets, "socket")),
                format!("{{ kind = 'nodes', sockets = {sockets}, size = [{nodes}] }}"),
            )
        }
        file if std::path::Path::new(file)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) =>
        {
            let path = std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?;
            let path = path.to_string_lossy().replace('\\', "/");
            (file.to_owned(), format!("{{ kind = 'file', file = '{path}' }}"))
        }
        other => {
            let kinds = one_of(KINDS.iter().map(|kind| format!("\"{kind}\"")));
            return Err(format!("there is no topology \"{other}\": {kinds}, or a file of switches and links (.toml)"));
        }
    })
}

/// The name of a contestant and what is set in it.
fn contestant(name: &str, timeout: u64) -> Result<(String, Vec<String>), String> {
    let (engine, algorithm) =
        name.split_once(':').map_or((name, None), |(engine, algorithm)| (engine, Some(algorithm)));
    let Some(engine) = Engine::ALL.into_iter().find(|known| known.name() == engine) else {
        let names = one_of(Engine::ALL.iter().map(|engine| format!("\"{}\"", engine.name())));
        return Err(format!("there is no engine \"{engine}\": {names}"));
    };
    let mut set = vec![format!("job.0.engine='{}'", engine.name())];
    let unlimited = "memory.bandwidth_gbps='unlimited'".to_owned();
    match (engine, algorithm) {
        (Engine::Software, algorithm) => {
            set.push(format!("job.0.software.algorithm='{}'", algorithm.unwrap_or("rabenseifner")));
            set.extend([unlimited, "switch.point_to_point_vcs=4".into()]);
        }
        (_, Some(algorithm)) => return Err(format!("\"{algorithm}\" is for software: software:{algorithm}")),
        (Engine::Piuma, None) => set.push(unlimited),
        (Engine::Armed, None) => {}
        (Engine::Pbv, None) => {
            let timeout = format!("engine.timeout_cycles={timeout}");
            let own = [
                "setup.configuration='side-port'",
                "setup.initialise_cycle=0",
                "engine.contexts=8",
                &timeout,
                "engine.timeout_factor=2",
                "engine.retries=1",
                "collective.0.start_cycle=1000",
            ];
            set.extend(own.iter().map(|own| format!("pbv.{own}")));
        }
    }
    Ok((name.to_owned(), set))
}

fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(", "))
}

impl EngineComparison {
    /// The time-out of packet engines: no shorter than frames of all contexts keep each other waiting, twice the words that all
    /// participants contribute to a round *\[chosen\]*. A shorter one fires where nobody is dead, and what is sent again makes it worse.
    fn timeout(&self) -> u64 {
        let bytes = DType::from_name(&self.dtype).map_or(8, |dtype| u64::from(dtype.bits()).div_ceil(8));
        let longest = self.elements.iter().max().copied().unwrap_or(0);
        let words = (longest * bytes).div_ceil(8).min(MAX_PAYLOAD_BYTES as u64 / 8);
        (2 * self.end_points * words).clamp(LEAST_TIMEOUT, u64::from(u32::MAX))
    }

    /// The study that answers it, as a file of `watershed study`.
    ///
    /// # Errors
    /// There is no such engine or topology, or a number is too large.
    pub fn study(&self) -> Result<String, String> {
        if self.end_points < 2 || self.end_points > END_POINTS {
            return Err(format!("{} end points: from 2 to {END_POINTS} take part", self.end_points));
        }
        let mut elements = self.elements.clone();
        elements.sort_unstable();
        elements.dedup();
        let middle = elements.get(elements.len() / 2).copied().ok_or("no vector length is asked for")?;
        let EngineComparison { end_points, op, dtype, disturb, .. } = self;
        let mut text = String::new();
        let about = format!(
            "{op} of {dtype} over {end_points} end points. Equal for all: clock, links, end points, and the data; memory and software take no \
             time. Different: what is under way at a time (armed engines eight rounds, packet engines eight contexts, PIUMA and software the \
             whole vector); the storage of each engine; and the set-up: PIUMA's registers and the tables of packet engines are written \
             before the run."
        );
        let _ =
            writeln!(text, "about = {about:?}\nelements = {elements:?}\ncycles_per_element = {CYCLES_PER_ELEMENT}\n");
        let _ = writeln!(
            text,
            "[disturb]\nelements = [{middle}]\nlate_ns = {:?}\ndead = {}\norders = {}\nspread_ns = {:?}\nseed = {}\n",
            disturb.late_ns, disturb.dead, disturb.orders, disturb.spread_ns, disturb.seed
        );
        let who: Vec<u64> = (0..*end_points).collect();
        let mut all =
            vec![format!("job.0.op='{op}'"), format!("job.0.dtype='{dtype}'"), format!("job.0.participants={who:?}")];
        all.extend(self.set.iter().cloned());
        for topology in &self.topologies {
            let (name, table) = network(topology, *end_points)?;
            let set: Vec<String> = [format!("topology={table}")].into_iter().chain(all.iter().cloned()).collect();
            let _ = writeln!(text, "[[system]]\nname = {name:?}\nset = {}\n", quoted(&set));
        }
        for engine in &self.engines {
            let (name, set) = contestant(engine, self.timeout())?;
            let _ = writeln!(text, "[[contestant]]\nname = {name:?}\nfile = \"any-engine\"\nset = {}\n", quoted(&set));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_as_many_end_points_as_are_asked_for() {
        for ends in [2u64, 7, 16, 24, 64, 100] {
            for kind in KINDS {
                let network = network(kind, ends);
                if kind == "die" && ends > 8 {
                    let why = format!(
                        "a die has 8 end points, and {ends} take part: --end-points of up to 8, or \"nodes\" of several dies"
                    );
                    assert_eq!(network, Err(why));
                    continue;
                }
                let (name, table) = network.unwrap();
                let text = format!("family = 'fabric'\ntopology = {table}\n[[job]]\n");
                let loaded = watershed_scenario::load_text("x", &text, std::path::Path::new("."), "x", &[]);
                let found = loaded.unwrap_or_else(|problems| panic!("{problems}")).scenario.topology.end_points();
                assert!(u64::from(found) >= ends, "{name} has {found} end points, {ends} are asked for");
                if ["mesh", "torus", "hyperx", "flattened-butterfly"].contains(&kind) {
                    assert_eq!(u64::from(found), ends, "{name}");
                }
            }
        }
        let nodes = |ends| network("nodes", ends).unwrap().0;
        assert_eq!(
            (nodes(8), nodes(17), nodes(300)),
            ("1 node of 1 socket".into(), "1 node of 3 sockets".into(), "3 nodes of 13 sockets".into())
        );
        assert_eq!((sides(24), sides(7), sides(16)), ((6, 4), (7, 1), (4, 4)));
    }
}
