//! A topology for people and programs: figures, switches and links as text or JSON, and a picture.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value as Json, json};

use watershed_fabric::PlanLink;
use watershed_fabric::topology::{Budget, Layout, Neighbours, Shape, Topology as _, nodes, survey};
use watershed_probe::ladder::escape;

/// More switches than these are not listed in the text, only counted.
const LISTED: usize = 256;
/// More switches than these cannot be drawn.
pub const DRAWN: usize = 2048;

/// Figures of the links of a level.
struct Level<'a> {
    name: &'a str,
    links: usize,
    shortest: u16,
    longest: u16,
}

fn levels(layout: &Layout) -> Vec<Level<'_>> {
    let mut levels: Vec<Level<'_>> =
        layout.plan.levels.iter().map(|name| Level { name, links: 0, shortest: u16::MAX, longest: 0 }).collect();
    for link in &layout.plan.links {
        let level = &mut levels[usize::from(link.level)];
        level.links += 1;
        level.shortest = level.shortest.min(link.latency);
        level.longest = level.longest.max(link.latency);
    }
    levels.retain(|level| level.links > 0);
    levels
}

/// The topology as text.
pub fn text(layout: &Layout) -> String {
    let survey = survey(layout);
    let mut out = String::new();
    let channels = layout.plan.vcs.unicast;
    let _ = writeln!(out, "topology      {}, {} end points", layout.shape.describe(), survey.end_points);
    let _ = writeln!(
        out,
        "routing       {}, {channels} point-to-point channel{} (at least {})",
        layout.routing.algorithm().name(),
        if channels == 1 { "" } else { "s" },
        layout.routing.needs()
    );
    let _ = writeln!(out, "switches      {}, {} ports each", survey.switches, layout.external_ports);
    let diameter = survey.diameter.map_or_else(|| "endless".to_owned(), |links| links.to_string());
    let sampled = if survey.sampled { " (from a sample of switches)" } else { "" };
    let _ = writeln!(out, "distance      {:.3} links on average, {diameter} at most{sampled}", survey.mean_distance);
    let _ = writeln!(out, "bisection     {} of {} links", survey.bisection, survey.links);
    for level in levels(layout) {
        let latency = if level.shortest == level.longest {
            level.longest.to_string()
        } else {
            format!("{} to {}", level.shortest, level.longest)
        };
        let plural = if latency == "1" { "" } else { "s" };
        let _ = writeln!(out, "links         {} {}, {latency} cycle{plural}", level.links, level.name);
    }
    out.push_str(&budget(&layout.shape));
    if survey.switches > LISTED {
        let _ = writeln!(out, "\n--json lists every switch and link; only up to {LISTED} switches are listed here");
        return out;
    }
    let neighbours = Neighbours::new(&layout.plan);
    let by_port: HashMap<(u32, u16), &PlanLink> =
        layout.plan.links.iter().flat_map(|link| [(link.a, link), (link.b, link)]).collect();
    for (switch, node) in layout.plan.nodes[..survey.switches].iter().enumerate() {
        let _ = writeln!(out, "\n{}  {}", node.name, node.path);
        for port in 0..layout.external_ports {
            let Some((far, by)) = neighbours.of(switch as u32, port) else { continue };
            let link = by_port[&(switch as u32, port)];
            let to = &layout.plan.nodes[far as usize];
            let to = if far as usize >= survey.switches { to.name.clone() } else { format!("{}.P{by}", to.name) };
            let plural = if link.latency == 1 { "" } else { "s" };
            let _ = write!(
                out,
                "  P{port:<3} {to:<14} {}, {} cycle{plural}",
                layout.plan.levels[usize::from(link.level)],
                link.latency
            );
            if link.cycles_per_flit > 1 {
                let _ = write!(out, ", {} cycles a flit", link.cycles_per_flit);
            }
            out.push('\n');
        }
        if node.engine {
            let _ = writeln!(out, "  P{:<3} engine", node.ports - 1);
        }
    }
    out
}

/// The use of the ports that leave the dies of a node (requirement P-TOPO-4), as a line; empty for other shapes.
fn budget(shape: &Shape) -> String {
    let Shape::Nodes(nodes) = shape else { return String::new() };
    let Budget { ports, sockets, subnodes, nodes, .. } = nodes.budget();
    let free = ports - sockets - subnodes - nodes;
    let between = if subnodes > 0 { format!(", {subnodes} its subnodes") } else { String::new() };
    format!(
        "HSIO ports    {ports} a node: {sockets} join its sockets{between}, {nodes} lead to other nodes, {free} are free\n"
    )
}

/// More switches than these are not laid out only to be counted, where arithmetic counts them.
pub const LAID_OUT: u64 = 1 << 18;

/// Figures of a system of nodes that is too big to be laid out, as text and for programs; `None` for other systems.
pub fn figures(shape: &Shape, link: &watershed_reader::config::Link) -> Option<(String, Json)> {
    let Shape::Nodes(nodes) = shape else { return None };
    let (switches, cores) = (nodes.switches()?, nodes.cores()?);
    if switches <= LAID_OUT {
        return None;
    }
    let longest = nodes.longest();
    let (socket, node) = (u64::from(nodes.socket_latency), u64::from(nodes.node_latency));
    let (step, between) = (link.latency.cycles, u64::from(nodes.subnodes.latency));
    let latencies =
        [(link.local_latency.cycles, link.local_latency.cycles), (step, step), (step, step), (socket, socket)];
    let counts = nodes.links_by_level();
    let levels: Vec<(&str, u64, u64, u64)> =
        (nodes::LEVELS.iter().zip(counts).zip(latencies.into_iter().chain([(node, longest), (between, between)])))
            .map(|((&name, count), (shortest, longest))| (name, count, shortest, longest))
            .filter(|&(_, count, ..)| count > 0)
            .collect();
    let mut out = String::new();
    let _ = writeln!(out, "topology      {}, {cores} end points", shape.describe());
    let _ = writeln!(out, "routing       dimension-order (at least {} point-to-point channels)", nodes.classes());
    let _ = writeln!(out, "switches      {switches}, {} ports each", nodes.switch_ports());
    for &(name, count, shortest, longest) in &levels {
        let latency = if shortest == longest { longest.to_string() } else { format!("{shortest} to {longest}") };
        let _ = writeln!(out, "links         {count} {name}, {latency} cycle{}", if latency == "1" { "" } else { "s" });
    }
    out.push_str(&budget(shape));
    out.push_str("\nthe system is too big to be listed; one with fewer nodes lists every port\n");
    let json = json!({
        "kind": shape.kind().name(),
        "figures": {
            "switches": switches,
            "end_points": cores,
            "links_between_switches": counts[1..].iter().sum::<u64>(),
        },
        "hsio_ports": { "of_a_node": nodes.budget().ports, "join_its_sockets": nodes.budget().sockets, "lead_to_other_nodes": nodes.budget().nodes },
        "levels": levels.iter().map(|(name, count, shortest, longest)| json!({
            "level": name,
            "links": count,
            "latency_min_cycles": shortest,
            "latency_max_cycles": longest,
        })).collect::<Vec<_>>(),
    });
    Some((out, json))
}

/// The topology for programs: figures, switches, end points, links.
pub fn json(layout: &Layout) -> Json {
    let survey = survey(layout);
    let plan = &layout.plan;
    let end = |(node, port): (u32, u16)| json!({ "node": plan.nodes[node as usize].name, "port": port });
    json!({
        "kind": layout.shape.kind().name(),
        "routing": { "algorithm": layout.routing.algorithm().name(), "channels": plan.vcs.unicast, "channels_needed": layout.routing.needs() },
        "figures": {
            "switches": survey.switches,
            "end_points": survey.end_points,
            "links_between_switches": survey.links,
            "diameter": survey.diameter,
            "mean_distance": survey.mean_distance,
            "distances_sampled": survey.sampled,
            "bisection_links": survey.bisection,
        },
        "levels": levels(layout).iter().map(|level| json!({
            "level": level.name,
            "links": level.links,
            "latency_min_cycles": level.shortest,
            "latency_max_cycles": level.longest,
        })).collect::<Vec<_>>(),
        "switches": plan.nodes[..survey.switches].iter().map(|node| json!({
            "name": node.name,
            "path": node.path,
            "ports": node.ports,
            "engine_port": node.engine.then(|| node.ports - 1),
        })).collect::<Vec<_>>(),
        "end_points": layout.ends.iter().enumerate().map(|(number, place)| {
            let node = &plan.nodes[plan.nodes.len() - layout.ends.len() + number];
            json!({ "name": node.name, "path": node.path, "switch": plan.nodes[place.switch as usize].name, "port": place.port })
        }).collect::<Vec<_>>(),
        "links": plan.links.iter().map(|link| json!({
            "from": end(link.a),
            "to": end(link.b),
            "level": plan.levels[usize::from(link.level)],
            "latency_cycles": link.latency,
            "cycles_per_flit": link.cycles_per_flit,
        })).collect::<Vec<_>>(),
    })
}

/// A tree in a picture.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// Its links: sending switch and port, ascending.
    pub links: &'a [(u32, u16)],
    /// The switch at its root.
    pub root: Option<u32>,
}

/// Colours of the levels, in their order; they come again after the last.
const COLOURS: [&str; 8] = ["#9aa5b1", "#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#975a16", "#2c7a7b"];
/// Units of a picture between two neighbouring switches, at least.
const PITCH: f64 = 64.0;
const MARGIN: f64 = 48.0;
/// Half the height of a switch.
const HALF: f64 = 10.0;
/// How far the shortest and the longest of the bent links of a row stand off from their switches.
const OFF: (f64, f64) = (4.0, 18.0);

/// Where the switches of a picture stand.
struct SwitchPositions {
    at: Vec<(f64, f64)>,
    /// Half the width of a switch: that of the longest name.
    half: f64,
    /// Heights of the switches of a column, and places of those of a row, by the other coordinate in tenths.
    columns: HashMap<i64, Vec<f64>>,
    rows: HashMap<i64, Vec<f64>>,
    /// Width and height of what there is.
    extent: (f64, f64),
    /// Room at its sides.
    margin: f64,
}

impl SwitchPositions {
    fn of(layout: &Layout) -> Self {
        let switches = layout.switches();
        let letters = layout.plan.nodes[..switches].iter().map(|node| node.name.len()).max().unwrap_or(0);
        let half = (3.2 * letters as f64 + 4.0).max(14.0);
        let margin = MARGIN.max(half + OFF.1 + 8.0);
        let raw: Vec<(f64, f64)> = (0..switches as u32).map(|switch| layout.shape.position(switch)).collect();
        let largest = |of: fn(&(f64, f64)) -> f64| raw.iter().map(of).fold(0.0, f64::max);
        let (wide, high) = (largest(|at| at.0), largest(|at| at.1));
        // The levels of a wide tree are far apart, so that its links can be told; nothing bends between its columns.
        let (x, y) = match layout.shape {
            Shape::Tree(_) | Shape::FatTree(_) => {
                let x = (2.0 * half + 10.0).max(44.0);
                (x, (wide * x / (4.0 * high.max(1.0))).max(PITCH))
            }
            Shape::Dragonfly(_) | Shape::Graph(_) => (PITCH, PITCH),
            _ => ((2.0 * half + OFF.1 + 14.0).max(PITCH), PITCH),
        };
        let at: Vec<(f64, f64)> = raw.iter().map(|at| (margin + at.0 * x, MARGIN + at.1 * y)).collect();
        let (mut columns, mut rows): (HashMap<i64, Vec<f64>>, HashMap<i64, Vec<f64>>) = Default::default();
        for at in &at {
            columns.entry(tenths(at.0)).or_default().push(at.1);
            rows.entry(tenths(at.1)).or_default().push(at.0);
        }
        Self { at, half, columns, rows, extent: (wide * x, high * y), margin }
    }

    /// How a link is drawn that is the `copies`-th further one of its pair: straight, or around the switches between its ends. All
    /// bent links of a row stay beside it, the longer ones outside.
    fn path(&self, (a, b): (u32, u32), copies: u32) -> String {
        let (a, b) = (self.at[a as usize], self.at[b as usize]);
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length = dx.hypot(dy);
        let between = |line: Option<&Vec<f64>>, one: f64, other: f64| {
            let (low, high) = (one.min(other) + 1.0, one.max(other) - 1.0);
            line.is_some_and(|places| places.iter().any(|place| (low..high).contains(place)))
        };
        let off = |part: f64| OFF.0 + (OFF.1 - OFF.0) * part;
        let around = if dy.abs() < 0.05 && between(self.rows.get(&tenths(a.1)), a.0, b.0) {
            HALF + off(length / self.extent.0)
        } else if dx.abs() < 0.05 && between(self.columns.get(&tenths(a.0)), a.1, b.1) {
            self.half + off(length / self.extent.1)
        } else {
            0.0
        };
        let bend = around + 5.0 * f64::from(copies);
        if bend == 0.0 || length == 0.0 {
            return format!("M{:.1} {:.1} L{:.1} {:.1}", a.0, a.1, b.0, b.1);
        }
        // Above rows and left of columns. A curve of this degree comes up to three quarters of its handles.
        let (nx, ny) = (-dy / length, dx / length);
        let side = if ny > 0.01 || ny.abs() <= 0.01 && nx > 0.0 { -1.0 } else { 1.0 };
        let (nx, ny) = (side * nx * bend * 4.0 / 3.0, side * ny * bend * 4.0 / 3.0);
        let inset = (PITCH / 2.0).min(length / 4.0) / length;
        format!(
            "M{:.1} {:.1} C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            a.0,
            a.1,
            a.0 + inset * dx + nx,
            a.1 + inset * dy + ny,
            b.0 - inset * dx + nx,
            b.1 - inset * dy + ny,
            b.0,
            b.1
        )
    }
}

fn tenths(place: f64) -> i64 {
    (place * 10.0).round() as i64
}

/// A picture: switches where the shape places them, links coloured by level, end points as dots beside their switch.
/// `None` if there are too many switches to see anything.
pub fn svg(layout: &Layout, title: &str) -> Option<String> {
    svg_of(layout, title, None)
}

/// The same with the links of a tree in their colours, all others pale, and the tree's root filled.
pub fn svg_of(layout: &Layout, title: &str, tree: Option<Tree<'_>>) -> Option<String> {
    let switches = layout.switches();
    if switches > DRAWN {
        return None;
    }
    let places = SwitchPositions::of(layout);
    let width = places.extent.0 + 2.0 * places.margin;
    let named = levels(layout);
    let legend = 20.0 * named.len() as f64;
    // Dots of end points stand below the lowest switches, in rows of six.
    let height = places.extent.1 + 2.0 * MARGIN;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" font-family=\"sans-serif\" font-size=\"10\">",
        width.max(240.0),
        height + legend
    );
    let _ = writeln!(out, "<title>{}</title>", escape(title));
    let _ = writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
    let colour = |level: u8| COLOURS[usize::from(level) % COLOURS.len()];
    let used = |link: &PlanLink| {
        let has = |end| tree.is_some_and(|tree| tree.links.binary_search(&end).is_ok());
        has(link.a) || has(link.b)
    };
    let mut parallel: HashMap<(u32, u32), u32> = HashMap::new();
    for link in layout.plan.links.iter().filter(|link| link.a.0.max(link.b.0) < switches as u32) {
        let copies = parallel.entry((link.a.0.min(link.b.0), link.a.0.max(link.b.0))).or_insert(0);
        let path = places.path((link.a.0, link.b.0), *copies);
        *copies += 1;
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>",
            if tree.is_some() && !used(link) { "#e2e8f0" } else { colour(link.level) },
            if tree.is_some() && used(link) { "2.4" } else { "1.2" }
        );
    }
    let mut hosts = vec![0u32; switches];
    for place in &layout.ends {
        let (x, y) = places.at[place.switch as usize];
        let number = hosts[place.switch as usize];
        hosts[place.switch as usize] += 1;
        let (x, y) = (x - 14.0 + 6.0 * f64::from(number % 6), y + 15.0 + 6.0 * f64::from(number / 6));
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.2\" fill=\"{}\"/>", COLOURS[0]);
    }
    for (switch, &(x, y)) in places.at.iter().enumerate() {
        let name = &layout.plan.nodes[switch].name;
        let half = (3.2 * name.len() as f64 + 4.0).max(14.0);
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\" rx=\"3\" fill=\"{}\" stroke=\"#2d3748\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x - half,
            y - HALF,
            2.0 * half,
            if tree.is_some_and(|tree| tree.root == Some(switch as u32)) { "#f6ad55" } else { "#edf2f7" },
            y + 3.5,
            escape(name)
        );
    }
    for (row, level) in named.iter().enumerate() {
        let number = layout.plan.levels.iter().position(|name| name == level.name).unwrap_or(0) as u8;
        let y = height + 20.0 * row as f64;
        let _ = writeln!(
            out,
            "<rect x=\"16\" y=\"{:.1}\" width=\"16\" height=\"4\" fill=\"{}\"/>\
             <text x=\"40\" y=\"{:.1}\">{}: {} links</text>",
            y - 4.0,
            colour(number),
            y + 1.5,
            escape(level.name),
            level.links
        );
    }
    out.push_str("</svg>\n");
    Some(out)
}
