//! `[switch]`: the flit, the router, its channels, and their storage.

use super::{Resolver, WORD_BITS, counted_channels, has_pbv};
use crate::config::{Router, Switch, Topology};
use crate::file::{Auto, Family, ScenarioFile, SwitchAllocator, VcAllocator};
use crate::limits;
use crate::problem::Problem;
use watershed_fabric::topology::Shape;
use watershed_fabric::{FlitSize, Pipeline};
use watershed_pbv_interface::packet::route_flits;

impl Resolver<'_> {
    /// A flit is a word of 64 bits wherever single words are reduced or sent; frames are cut into flits of any size.
    pub fn flit(&mut self, file: &ScenarioFile) {
        let bits = file.link.flit_bits;
        let words = !file.host.is_empty() || file.workload.is_some() || file.family == Family::Piuma;
        // Of several families some may send words: what is in the file of those with frames is in tables of their own.
        let of_words = words || !file.collective.is_empty() || !file.program.is_empty();
        let who = match file.family {
            Family::Piuma => "the piuma family",
            Family::Mixed if of_words && file.host.is_empty() && file.workload.is_none() => "PIUMA's engines",
            _ => "a host or a workload",
        };
        if matches!(file.family, Family::Fabric | Family::Armed | Family::Pbv) && !words
            || file.family == Family::Mixed && !of_words
        {
            if file.family != Family::Fabric && FlitSize::of_bits(bits).is_none() {
                let message = format!("a frame cannot be cut into flits of {bits} bits");
                let problem = Problem::at("link.flit_bits", message);
                let (least, most) = (FlitSize::LEAST_BITS, FlitSize::MOST_BITS);
                self.report(
                    problem.expected(format!("a multiple of 32 from {least} to {most}")).help(
                        "the fields by which frames are routed have 32 bits; a narrower link has `link.width_bits` below that",
                    ),
                );
            }
            return;
        }
        if bits != WORD_BITS {
            self.report(
                Problem::at("link.flit_bits", format!("a flit of {who} carries a word of 64 bits, not {bits}"))
                    .expected("64")
                    .help("a link that is narrower than a flit has `link.width_bits` of less than 64"),
            );
        }
    }

    /// Where the header of collective flits travels: only a family that has one can say.
    pub fn header(&mut self, file: &ScenarioFile) {
        if file.link.header.is_some() && file.family != Family::Piuma {
            let message = "only the piuma family has a header in every collective flit";
            let problem = Problem::at("link.header", message).expected("family = \"piuma\"");
            self.report(problem.help("frames of the other families carry their headers in flits of their own"));
        }
    }

    /// A frame of the PBV family is routed by its second word; buffers hold the flits up to that.
    pub fn address(&mut self, file: &ScenarioFile) {
        let least = u64::from(route_flits(FlitSize::of_bits(file.link.flit_bits).unwrap_or_default().bits()));
        if let (true, Auto::Fixed(flits)) = (has_pbv(file), file.switch.collective_buffer_flits)
            && u64::from(flits) < least
        {
            self.report(
                Problem::at(
                    "switch.collective_buffer_flits",
                    format!(
                        "a buffer of {flits} flit{} never holds a frame's address, which stands in its flit {least}",
                        if flits == 1 { "" } else { "s" }
                    ),
                )
                .expected(format!("{least} or more, or \"auto\"")),
            );
        }
    }

    /// Storage that grows with depth times ports times switches.
    /// The router's knobs, the steps of its pipeline made explicit.
    pub fn router(&mut self, file: &ScenarioFile, topology: &Topology) -> Router {
        let mut router = file.switch.router.clone();
        let preset = Pipeline::new(file.switch.pipeline_stages.clamp(1, 4) as u8);
        router.route_cycles.get_or_insert(preset.route.into());
        router.vc_alloc_cycles.get_or_insert(preset.vc_alloc.into());
        router.switch_alloc_cycles.get_or_insert(preset.switch_alloc.into());
        router.traversal_cycles.get_or_insert(preset.traversal.into());
        if router.speculative && router.vc_alloc_cycles == Some(0) {
            self.report(
                Problem::at("switch.router.speculative", "there is nothing to speculate on: channels are allocated in the cycle of switch allocation already")
                    .expected("`switch.pipeline_stages` of 3 or 4, or `switch.router.vc_alloc_cycles` of at least 1"),
            );
        }
        if router.allocator_iterations > 1
            && router.vc_allocator != VcAllocator::Islip
            && router.switch_allocator != SwitchAllocator::Islip
        {
            self.report(
                Problem::at("switch.router.allocator_iterations", "neither allocator works in rounds")
                    .expected("1, or an allocator that is \"islip\""),
            );
        }
        let passages = (topology.ports() + 1) * router.input_speedup;
        if u64::from(passages) > limits::PASSAGES {
            self.report(
                Problem::at("switch.router.input_speedup", format!("{passages} input passages a switch are too many"))
                    .expected(format!("up to {}: ports x speed-up", limits::PASSAGES)),
            );
        }
        router
    }

    /// Point-to-point channels; a system of nodes has as many as its routing needs if nothing is said.
    pub fn channels(&mut self, file: &ScenarioFile, shape: &Shape) -> u32 {
        let given = file.switch.point_to_point_vcs;
        let Shape::Nodes(nodes) = shape else { return given };
        let needed = u32::from(nodes.classes());
        if !self.source.has("switch.point_to_point_vcs") {
            return needed;
        }
        if given < needed {
            let message = format!(
                "{needed} classes of point-to-point packets need as many channels, {}",
                counted_channels(given)
            );
            self.report(
                Problem::at("switch.point_to_point_vcs", message).expected(format!(
                    "{needed} or more: one class more than links that leave a die on the longest way"
                )),
            );
        }
        given
    }

    pub fn storage(&mut self, switch: &Switch, topology: &Topology, traffic: bool) {
        let ports = u128::from(topology.ports() + 1) * u128::from(topology.switches());
        // In a system of nodes equal registers stand once, and without traffic there are no point-to-point channels.
        let nodes = matches!(topology.shape, Shape::Nodes(_));
        let registers = if nodes {
            u128::from(topology.switches()) * u128::from(switch.collective_ids)
        } else {
            ports * u128::from(switch.collective_ids) * 2
        };
        let channels = if nodes && !traffic { 0 } else { switch.point_to_point_vcs };
        if registers > u128::from(limits::REGISTERS) {
            self.report(
                Problem::at("switch.collective_ids", format!("{registers} configuration registers are too many"))
                    .expected(format!("up to {} in the whole system: ids x ports x 2", limits::REGISTERS)),
            );
        }
        let fixed = |depth: Auto<u32>| u128::from(depth.or(0));
        let buffers = [
            (
                "switch.point_to_point_buffer_flits",
                u128::from(channels) * u128::from(switch.point_to_point_buffer_flits) * ports,
            ),
            ("switch.collective_buffer_flits", 2 * fixed(switch.collective_buffer_flits) * ports),
            ("switch.ceng.operand_slots", u128::from(switch.ceng.operand_slots) * ports),
            ("switch.ceng.result_slots", fixed(switch.ceng.result_slots) * u128::from(topology.switches())),
        ];
        for (path, flits) in buffers {
            if flits > u128::from(limits::BUFFER_FLITS) {
                self.report(
                    Problem::at(path, format!("buffers for {flits} flits are too many")).expected(format!(
                        "up to {} in the whole system: depth x channels x ports",
                        limits::BUFFER_FLITS
                    )),
                );
            }
        }
    }

    // ---- collectives -----------------------------------------------------------------------------------------------
}
