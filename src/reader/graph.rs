//! A topology file: switches, links and end points in TOML, read into a [`Graph`] with the same care as a scenario.
//!
//! ```toml
//! [[switch]]
//! name = "r0"
//! end_points = 2            # named r0.node0, r0.node1; default 1
//!
//! [[link]]
//! from = "r0.P4"            # or "r0": the lowest port that is still free
//! to = "r1"
//! latency_cycles = 3        # default: the scenario's link.latency_cycles
//! width_bits = 32           # default: the scenario's link.width_bits
//! level = "ring"            # reports add links up by level
//! ```
//!
//! Ports that are not given are given in the order of the file: those of links first, then those of end points.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::link::{cycles, width_suggestion};
use super::problem::{Problem, Problems};
use super::source::Source;
use super::{limits, read, schema, shipped};
use watershed_fabric::topology::{EndPlace, Graph, GraphEnd, GraphLink, GraphSwitch};

/// A topology file.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "watershed topology")]
pub struct GraphFile {
    /// The switches.
    #[schemars(length(min = 1))]
    pub switch: Vec<SwitchEntry>,
    /// The links between switches.
    #[serde(default)]
    pub link: Vec<LinkEntry>,
}

/// A switch of a topology file.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct SwitchEntry {
    /// Its name, unique: letters, digits, `_` and `-`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// End points at this switch. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 63))]
    pub end_points: u64,
    /// Ports of its end points. Default: the lowest that no link takes.
    #[serde(default)]
    #[schemars(schema_with = "port_list")]
    pub end_point_ports: Option<Vec<u64>>,
    /// Latency of the links to its end points in cycles. Default: that of the scenario.
    #[serde(default)]
    #[schemars(range(min = 1, max = 16_384))]
    pub local_latency_cycles: Option<u64>,
}

/// A link of a topology file.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct LinkEntry {
    /// One end: a switch, or a port of it, for example "r0.P3".
    #[schemars(length(min = 1))]
    pub from: String,
    /// The other end.
    #[schemars(length(min = 1))]
    pub to: String,
    /// Latency in cycles, each way. Default: that of the scenario.
    #[serde(default)]
    #[schemars(range(min = 1, max = 16_384))]
    pub latency_cycles: Option<u64>,
    /// Wires each way: bits it carries in a cycle. Default: those of the scenario.
    #[serde(default)]
    #[schemars(range(min = 1, max = 8192))]
    pub width_bits: Option<u32>,
    /// Older files: cycles a flit occupies the link; it follows from `width_bits` now.
    #[serde(default)]
    #[schemars(range(min = 1, max = 16_384))]
    pub cycles_per_flit: Option<u32>,
    /// Level under which reports count it. Default: "link".
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub level: Option<String>,
}

fn one() -> u64 {
    1
}

fn port_list(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": { "type": "integer", "minimum": 0, "maximum": 62 },
    })
}

/// Ports of a switch, at most.
const PORTS: u64 = 63;
/// Levels of links, at most, that of the end points included.
const LEVELS: usize = 64;

/// What a topology file says.
#[derive(Debug)]
pub struct TopologyContents {
    /// The switches and links.
    pub graph: Graph,
    /// What a file that gives cycles where there are widths now is told.
    pub notes: Vec<String>,
}

/// Reads a topology file for a network whose flits have this many bits on the wires.
///
/// # Errors
/// What is wrong with it, with carets into the topology file; `Err(Err(_))` if it cannot be read at all.
pub fn load(path: &Path, bits: u32) -> Result<(TopologyContents, Vec<u8>), Result<Problems, String>> {
    let fail = |error: &dyn std::fmt::Display| Err(Err(format!("cannot read {}: {error}", path.display())));
    match shipped::len(path) {
        Ok(len) if len > limits::SCENARIO_BYTES => return fail(&"it is too long"),
        Ok(_) => {}
        Err(error) => return fail(&error),
    }
    let bytes = match shipped::read(path) {
        Ok(bytes) => bytes.into_owned(),
        Err(error) => return fail(&error),
    };
    let Ok(text) = String::from_utf8(bytes.clone()) else { return fail(&"it is not UTF-8 text") };
    read(&shipped::shown(path), &text, bits).map(|read| (read, bytes)).map_err(Ok)
}

/// Reads a topology from text, for flits of this many bits on the wires.
///
/// # Errors
/// What is wrong with it.
pub fn read(name: &str, text: &str, bits: u32) -> Result<TopologyContents, Problems> {
    let (source, syntax) = Source::parse(name, text);
    let source = Arc::new(source);
    let fail = |problems| Err(Problems::new(Arc::clone(&source), problems));
    if let Some(problem) = syntax {
        return fail(vec![problem]);
    }
    let problems = schema::check_against(schema::topology_schema(), source.root());
    if !problems.is_empty() {
        return fail(problems);
    }
    let file: GraphFile = match read::read(source.root()) {
        Ok(file) => file,
        Err(problem) => return fail(vec![problem]),
    };
    let mut reader = Reader { bits, names: HashMap::new(), taken: Vec::new(), problems: Vec::new() };
    let graph = reader.graph(&file);
    let notes = file.link.iter().enumerate().filter_map(|(at, link)| {
        let instead = width_suggestion(bits, link.cycles_per_flit?, &[&format!("link[{at}].width_bits")]);
        Some(format!("`link[{at}].cycles_per_flit` of {name} {instead}"))
    });
    if reader.problems.is_empty() {
        Ok(TopologyContents { graph, notes: notes.collect() })
    } else {
        fail(reader.problems)
    }
}

/// A switch, and its port if one is named.
type PortRef = (u32, Option<u16>);

struct Reader<'a> {
    /// Bits of a flit on the wires.
    bits: u32,
    names: HashMap<&'a str, u32>,
    /// By switch: taken ports and where they are given.
    taken: Vec<BTreeMap<u16, String>>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn graph(&mut self, file: &'a GraphFile) -> Graph {
        let mut graph = Graph { levels: vec!["local".into()], ..Graph::default() };
        for (index, switch) in file.switch.iter().enumerate() {
            let path = format!("switch[{index}].name");
            if !switch.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
                let problem = Problem::at(&path, format!("\"{}\" cannot be the name of a switch", switch.name));
                self.problems.push(problem.expected("letters, digits, `_` and `-`"));
            }
            if let Some(other) = self.names.insert(&switch.name, index as u32) {
                let problem = Problem::at(path, format!("the name \"{}\" is taken", switch.name));
                self.problems.push(problem.related(format!("switch[{other}].name"), "by this one"));
            }
            graph.switches.push(GraphSwitch { name: switch.name.clone() });
            self.taken.push(BTreeMap::new());
        }
        if file.switch.len() > limits::FILE_SWITCHES as usize {
            let problem = Problem::at("switch", format!("{} switches are too many", file.switch.len()));
            self.problems.push(problem.expected(format!("up to {} switches in a file", limits::FILE_SWITCHES)));
            return graph;
        }
        // Ports that are given first, so that the others keep clear of them.
        let mut ends: Vec<[Option<PortRef>; 2]> = Vec::new();
        for (index, link) in file.link.iter().enumerate() {
            let mut both = [None; 2];
            for (end, (key, text)) in both.iter_mut().zip([("from", &link.from), ("to", &link.to)]) {
                *end = self.end(&format!("link[{index}].{key}"), text);
            }
            if let [Some((a, _)), Some((b, _))] = both
                && a == b
            {
                let problem = Problem::at(format!("link[{index}].to"), "a link leads from a switch to itself");
                self.problems.push(problem.expected("another switch"));
            }
            ends.push(both);
        }
        for (index, switch) in file.switch.iter().enumerate() {
            for (place, &port) in switch.end_point_ports.iter().flatten().enumerate() {
                self.take_port(index as u32, port as u16, format!("switch[{index}].end_point_ports[{place}]"));
            }
            if let Some(list) = &switch.end_point_ports
                && list.len() as u64 != switch.end_points
            {
                let path = format!("switch[{index}].end_point_ports");
                let problem = Problem::at(path, format!("{} ports for {} end points", list.len(), switch.end_points));
                self.problems.push(problem.expected("a port for each"));
            }
        }
        for (index, (link, ends)) in file.link.iter().zip(&ends).enumerate() {
            if link.width_bits.is_some() && link.cycles_per_flit.is_some() {
                let path = format!("link[{index}].cycles_per_flit");
                let problem = Problem::at_key(path, "`cycles_per_flit` and `width_bits` cannot both be given");
                let problem = problem.related(format!("link[{index}].width_bits"), "the other one");
                self.problems.push(problem.expected("only one of `width_bits` or `cycles_per_flit`"));
            }
            let level = link.level.as_deref().unwrap_or("link");
            let level = graph.levels.iter().position(|known| known == level).unwrap_or_else(|| {
                graph.levels.push(level.to_owned());
                graph.levels.len() - 1
            });
            if level >= LEVELS {
                let problem = Problem::at(format!("link[{index}].level"), "too many levels");
                self.problems.push(problem.expected(format!("up to {}", LEVELS - 1)));
                return graph;
            }
            let [Some(a), Some(b)] = *ends else { continue };
            let mut port = |(switch, port): (u32, Option<u16>), key: &str| {
                (switch, port.unwrap_or_else(|| self.lowest(switch, format!("link[{index}].{key}"))))
            };
            graph.links.push(GraphLink {
                a: port(a, "from"),
                b: port(b, "to"),
                latency: link.latency_cycles.map(|cycles| cycles as u16),
                cycles_per_flit: link
                    .width_bits
                    .map(|width| cycles(self.bits, width))
                    .or(link.cycles_per_flit)
                    .map(|cycles| cycles as u16),
                level: level as u8,
            });
        }
        for (index, switch) in file.switch.iter().enumerate() {
            for end in 0..switch.end_points {
                let given = switch.end_point_ports.as_ref().and_then(|list| list.get(end as usize));
                let port = given.map_or_else(
                    || self.lowest(index as u32, format!("switch[{index}].end_points")),
                    |&port| port as u16,
                );
                let leaf = if switch.end_points == 1 { "node".to_owned() } else { format!("node{end}") };
                graph.ends.push(GraphEnd {
                    name: format!("{}.{leaf}", switch.name),
                    place: EndPlace { switch: index as u32, port },
                    latency: switch.local_latency_cycles.map(|cycles| cycles as u16),
                });
            }
        }
        self.check_connected(&graph);
        graph
    }

    /// An end of a link: a switch, or a port of one, which is then taken.
    fn end(&mut self, path: &str, text: &str) -> Option<PortRef> {
        let (name, port) = text.split_once('.').map_or((text, None), |(name, port)| (name, Some(port)));
        let Some(&switch) = self.names.get(name) else {
            let problem = Problem::at(path, format!("there is no switch \"{name}\""));
            let mut names: Vec<&str> = self.names.keys().copied().collect();
            names.sort_unstable();
            self.problems.push(problem.expected("the name of a switch of this file").nearest(name, names));
            return None;
        };
        let Some(port) = port else { return Some((switch, None)) };
        let number = port.strip_prefix('P').and_then(|digits| digits.parse::<u16>().ok());
        let Some(number) = number.filter(|&number| u64::from(number) < PORTS) else {
            let problem = Problem::at(path, format!("\"{text}\" is no port of a switch"));
            self.problems.push(problem.expected(format!("{name}.P0 to {name}.P{}", PORTS - 1)));
            return None;
        };
        self.take_port(switch, number, path.to_owned());
        Some((switch, Some(number)))
    }

    fn take_port(&mut self, switch: u32, port: u16, path: String) {
        if let Some(other) = self.taken[switch as usize].get(&port) {
            let problem = Problem::at(path, format!("port {port} of this switch is taken"));
            self.problems.push(problem.related(other.clone(), "by this one"));
        } else {
            self.taken[switch as usize].insert(port, path);
        }
    }

    fn lowest(&mut self, switch: u32, path: String) -> u16 {
        let taken = &mut self.taken[switch as usize];
        let port = (0..=u16::MAX).find(|port| !taken.contains_key(port)).unwrap_or(0);
        if u64::from(port) == PORTS {
            let problem = Problem::at(&path, "this switch has no port left");
            self.problems.push(problem.expected(format!("up to {PORTS} links and end points a switch")));
        }
        taken.insert(port, path);
        port
    }

    /// Whether there is an end point, and a way between any two.
    fn check_connected(&mut self, graph: &Graph) {
        if !self.problems.is_empty() {
            return;
        }
        if graph.ends.is_empty() {
            self.problems.push(Problem::at("switch", "no switch has an end point"));
            return;
        }
        let mut reached = vec![false; graph.switches.len()];
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); graph.switches.len()];
        for link in &graph.links {
            next[link.a.0 as usize].push(link.b.0);
            next[link.b.0 as usize].push(link.a.0);
        }
        let mut frontier = vec![0];
        reached[0] = true;
        while let Some(at) = frontier.pop() {
            for &to in &next[at as usize] {
                if !std::mem::replace(&mut reached[to as usize], true) {
                    frontier.push(to);
                }
            }
        }
        if let Some(lost) = reached.iter().position(|reached| !reached) {
            let (name, first) = (&graph.switches[lost].name, &graph.switches[0].name);
            let problem = Problem::at(format!("switch[{lost}].name"), format!("no way leads from {first} to {name}"));
            self.problems.push(problem.expected("links that join all switches"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        read("net.toml", text, 64).expect_err("a wrong file").to_string()
    }

    const THREE: &str = "[[switch]]\nname = \"a\"\n[[switch]]\nname = \"b\"\nend_points = 2\n[[switch]]\nname = \"c\"\nend_points = 0\n";

    #[test]
    fn unnamed_ports_are_numbered_in_file_order_around_named_ones() {
        let links = "[[link]]\nfrom = \"a\"\nto = \"b.P1\"\nlatency_cycles = 4\nlevel = \"long\"\n[[link]]\nfrom = \"a\"\nto = \"c.P5\"\n[[link]]\nfrom = \"c\"\nto = \"b\"\nwidth_bits = 63\n";
        let graph = read("net.toml", &format!("{THREE}{links}"), 64).unwrap().graph;
        let ends: Vec<_> = graph.links.iter().map(|link| (link.a, link.b)).collect();
        assert_eq!(ends, [((0, 0), (1, 1)), ((0, 1), (2, 5)), ((2, 0), (1, 0))]);
        assert_eq!(graph.levels, ["local", "long", "link"]);
        assert_eq!((graph.links[0].latency, graph.links[2].cycles_per_flit), (Some(4), Some(2)));
        let places: Vec<_> =
            graph.ends.iter().map(|end| (end.name.as_str(), end.place.switch, end.place.port)).collect();
        assert_eq!(places, [("a.node", 0, 2), ("b.node0", 1, 2), ("b.node1", 1, 3)]);
        use watershed_fabric::topology::Topology as _;
        assert_eq!(graph.ports(), 6);
    }

    #[test]
    fn cycles_of_an_older_file_hold_and_name_the_width() {
        let link = |more: &str| {
            format!("{THREE}[[link]]\nfrom = \"a\"\nto = \"b\"\n{more}\n[[link]]\nfrom = \"b\"\nto = \"c\"\n")
        };
        let older = read("net.toml", &link("cycles_per_flit = 4"), 64).unwrap();
        assert_eq!(older.graph.links[0].cycles_per_flit, Some(4));
        assert_eq!(older.notes.len(), 1);
        assert!(older.notes[0].contains("write `link[0].width_bits = 16` instead"), "{}", older.notes[0]);
        let newer = read("net.toml", &link("width_bits = 16"), 64).unwrap();
        assert_eq!((newer.graph, newer.notes.len()), (older.graph, 0));
        let longer = read("net.toml", &link("width_bits = 16"), 117).unwrap();
        assert_eq!(longer.graph.links[0].cycles_per_flit, Some(8));
        assert!(read("net.toml", &link("width_bits = 16\ncycles_per_flit = 4"), 64).is_err());
    }

    #[test]
    fn mistakes_are_shown_in_their_line() {
        let link = |from: &str, to: &str| format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
        let joined = link("a", "b") + &link("b", "c");
        for (text, expected) in [
            (THREE.replace("\"c\"", "\"a\""), "the name \"a\" is taken"),
            (format!("{THREE}{}", link("a", "d")), "there is no switch \"d\""),
            (format!("{THREE}{joined}{}", link("a.P3", "c.P9") + &link("a.P3", "b")), "port 3 of this switch is taken"),
            (format!("{THREE}{joined}{}", link("a.P99", "b")), "\"a.P99\" is no port of a switch"),
            (format!("{THREE}{joined}{}", link("a", "a")), "a link leads from a switch to itself"),
            (format!("{THREE}{}", link("a", "b")), "no way leads from a to c"),
            (format!("{THREE}{joined}speed = 3"), "unknown key `speed`"),
            (
                THREE.replace("end_points = 2", "end_points = 2\nend_point_ports = [1]") + &joined,
                "1 ports for 2 end points",
            ),
        ] {
            let error = problems(&text);
            assert!(error.contains(expected) && error.contains("net.toml:"), "{expected}: {error}");
        }
    }
}
