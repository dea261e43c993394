//! A topology for people and programs: figures, switches and links as text or JSON, and a picture.

use std::fmt::Write;

use serde_json::{Value as Json, json};

use watershed_fabric::PlanLink;
use watershed_fabric::topology::{Budget, Layout, Neighbours, Shape, nodes, survey};

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
    let neighbours = Neighbours::new(layout);
    let by_port: std::collections::HashMap<(u32, u16), &PlanLink> =
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
pub fn figures(shape: &Shape, link: &crate::config::Link) -> Option<(String, Json)> {
    let Shape::Nodes(nodes) = shape else { return None };
    let (switches, cores) = (nodes.switches()?, nodes.cores()?);
    if switches <= LAID_OUT {
        return None;
    }
    let longest = if nodes.distance { nodes.longest() } else { u64::from(nodes.node_latency) };
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
    let _ = writeln!(out, "switches      {switches}, {} ports each", nodes.ports());
    for &(name, count, shortest, longest) in &levels {
        let latency = if shortest == longest { longest.to_string() } else { format!("{shortest} to {longest}") };
        let _ = writeln!(out, "links         {count} {name}, {latency} cycle{}", if latency == "1" { "" } else { "s" });
    }
    out.push_str(&budget(shape));
    out.push_str("\nthe system is too big to be listed; one with fewer nodes lists every port\n");
    let json = json!({
        "kind": shape.kind(),
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
        "kind": layout.shape.kind(),
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
/// Units of a picture between two neighbouring switches.
const PITCH: f64 = 64.0;
const MARGIN: f64 = 48.0;

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
    let at: Vec<(f64, f64)> = (0..switches as u32)
        .map(|switch| {
            let (x, y) = layout.shape.position(switch);
            (MARGIN + x * PITCH, MARGIN + y * PITCH)
        })
        .collect();
    let width = at.iter().map(|at| at.0).fold(0.0, f64::max) + MARGIN;
    let named = levels(layout);
    let legend = 20.0 * named.len() as f64;
    let height = at.iter().map(|at| at.1).fold(0.0, f64::max) + MARGIN;
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
    let mut parallel: std::collections::HashMap<(u32, u32), u32> = std::collections::HashMap::new();
    for link in layout.plan.links.iter().filter(|link| link.a.0.max(link.b.0) < switches as u32) {
        let (a, b) = (at[link.a.0 as usize], at[link.b.0 as usize]);
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length = dx.hypot(dy);
        let copies = parallel.entry((link.a.0.min(link.b.0), link.a.0.max(link.b.0))).or_insert(0);
        // Links that would run through other switches of their row, and further ones of a pair, are bent.
        let straight = *copies == 0 && (length < 1.6 * PITCH || dx.abs() > 1.0 && dy.abs() > 1.0);
        let bend = if straight { 0.0 } else { 6.0 + 0.12 * length + 5.0 * f64::from(*copies) };
        *copies += 1;
        let (nx, ny) = if length > 0.0 { (-dy / length, dx / length) } else { (0.0, 0.0) };
        let middle = (f64::midpoint(a.0, b.0) + 2.0 * bend * nx, f64::midpoint(a.1, b.1) + 2.0 * bend * ny);
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>",
            a.0,
            a.1,
            middle.0,
            middle.1,
            b.0,
            b.1,
            if tree.is_some() && !used(link) { "#e2e8f0" } else { colour(link.level) },
            if tree.is_some() && used(link) { "2.4" } else { "1.2" }
        );
    }
    let mut hosts = vec![0u32; switches];
    for place in &layout.ends {
        let (x, y) = at[place.switch as usize];
        let number = hosts[place.switch as usize];
        hosts[place.switch as usize] += 1;
        let (x, y) = (x - 14.0 + 6.0 * f64::from(number % 6), y + 15.0 + 6.0 * f64::from(number / 6));
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.2\" fill=\"{}\"/>", COLOURS[0]);
    }
    for (switch, &(x, y)) in at.iter().enumerate() {
        let name = &layout.plan.nodes[switch].name;
        let half = (3.2 * name.len() as f64 + 4.0).max(14.0);
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\" rx=\"3\" fill=\"{}\" stroke=\"#2d3748\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x - half,
            y - 10.0,
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
