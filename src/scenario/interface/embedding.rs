//! The embeddings of a scenario as people and programs read them: tree, root, depth, links used, and the registers themselves in the
//! notation of a scenario.

use std::fmt::Write;

use serde_json::{Value as Json, json};

use watershed_piuma_interface::channels::{REQUEST, RESPONSE, channel_name};

/// More switches than these are only counted in the text of a tree.
pub const LISTED: usize = 256;

/// One collective's embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// Name of the collective.
    pub name: String,
    /// What it does.
    pub kind: String,
    /// The collective whose segment it is, if that has several, and the elements of it.
    pub segment_of: Option<(String, std::ops::Range<u64>)>,
    /// Plane of its channels.
    pub plane: u8,
    /// Links by level, both directions as one, and how many of them other segments of the collective use as well.
    pub shared: Vec<(String, u64, u64)>,
    /// Collective id.
    pub id: u16,
    /// End points that take part.
    pub participants: usize,
    /// The switch where requests turn into responses; of a broadcast the source's.
    pub root: u32,
    /// Name of that switch.
    pub root_name: String,
    /// Most links between a participant's switch and the root.
    pub depth: u32,
    /// The largest sum of the latencies of such links, in cycles.
    pub depth_cycles: u64,
    /// Switches it passes, and those of them that reduce.
    pub switches: (usize, usize),
    /// Links in use by level, counting each direction.
    pub links: Vec<(String, u64)>,
    /// The tree from the root on: depth, and a line of text.
    pub tree: Vec<(usize, String)>,
    /// Registers: switch, and by channel the inputs with their outputs.
    pub registers: Vec<(String, [Inputs; 2])>,
    /// Sending switch and port of every link in use, ascending.
    pub sends: Vec<(u32, u16)>,
}

/// Input ports with their output ports.
pub type Inputs = Vec<(u16, Vec<u16>)>;

impl Embedding {
    /// The registers in the notation of a scenario, a switch and channel a line.
    pub fn toml(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "# {}: {} on collective id {}, root {}", self.name, self.kind, self.id, self.root_name);
        for channel in [REQUEST, RESPONSE] {
            for (switch, inputs) in &self.registers {
                let inputs: Vec<String> =
                    inputs[usize::from(channel)].iter().map(|(port, outs)| format!("I{port} = {outs:?}")).collect();
                if !inputs.is_empty() {
                    let _ = writeln!(out, "{switch}.{} = {{ {} }}", channel_name(channel), inputs.join(", "));
                }
            }
        }
        out
    }

    /// What a person wants to know of it.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let plural = if self.participants == 1 { "" } else { "s" };
        let _ = writeln!(
            out,
            "{:13} {} on collective id {}, {} end point{plural}",
            self.name, self.kind, self.id, self.participants
        );
        if let Some((of, elements)) = &self.segment_of {
            let (first, last) = (elements.start, elements.end.saturating_sub(1));
            let _ = writeln!(out, "segment       elements {first} to {last} of {of}, on plane {}", self.plane);
        } else if self.plane > 0 {
            let _ = writeln!(out, "plane         {}", self.plane);
        }
        let _ = writeln!(out, "root          {}", self.root_name);
        let _ = writeln!(out, "depth         {} links, {} cycles of them", self.depth, self.depth_cycles);
        let _ = writeln!(out, "switches      {}, of which {} reduce", self.switches.0, self.switches.1);
        let links: Vec<String> = self.links.iter().map(|(level, count)| format!("{count} {level}")).collect();
        let _ = writeln!(out, "links         {} (each direction counts)", links.join(", "));
        if self.segment_of.is_some() {
            let shared = self.shared.iter().map(|(level, all, shared)| format!("{shared} of {all} {level}"));
            let shared: Vec<String> = shared.collect();
            let _ = writeln!(out, "shares        {} links with other segments", shared.join(", "));
        }
        if self.tree.is_empty() {
            let _ = writeln!(out, "tree          more than {LISTED} switches; --registers prints them");
        }
        for (depth, line) in &self.tree {
            let _ = writeln!(out, "{:1$}{line}", "", 2 * depth);
        }
        out
    }

    /// Sending switch and port of every link in use, ascending, and the root.
    pub fn drawn(&self) -> (Vec<(u32, u16)>, Option<u32>) {
        (self.sends.clone(), Some(self.root))
    }
}

/// Embeddings for programs.
pub fn json(all: &[Embedding]) -> Json {
    let vectors = |inputs: &Inputs| -> serde_json::Map<String, Json> {
        inputs.iter().map(|(port, outs)| (format!("I{port}"), json!(outs))).collect()
    };
    let one = |of: &Embedding| {
        let links: serde_json::Map<String, Json> =
            of.links.iter().map(|(level, count)| (level.clone(), json!(count))).collect();
        let registers: serde_json::Map<String, Json> = of
            .registers
            .iter()
            .map(|(switch, [request, response])| {
                (switch.clone(), json!({ "request": vectors(request), "response": vectors(response) }))
            })
            .collect();
        let mut json = json!({
            "name": of.name,
            "kind": of.kind,
            "id": of.id,
            "participants": of.participants,
            "root": of.root_name,
            "depth_links": of.depth,
            "depth_cycles": of.depth_cycles,
            "switches": of.switches.0,
            "reducing_switches": of.switches.1,
            "links": links,
            "registers": registers,
        });
        if let Some((collective, elements)) = &of.segment_of {
            let shared = of.shared.iter().map(|(level, _, shared)| (level.clone(), json!(shared)));
            json["segment"] = json!({
                "of": collective,
                "first_element": elements.start,
                "elements": elements.end - elements.start,
                "shared_links": shared.collect::<serde_json::Map<String, Json>>(),
            });
        }
        if of.plane > 0 || of.segment_of.is_some() {
            json["plane"] = of.plane.into();
        }
        json
    };
    json!({ "collectives": all.iter().map(one).collect::<Vec<_>>() })
}
