//! The point-to-point channels of a switch on the bench: beside the collective ones, on the same links.

use watershed::fabric::routing::Routing;
use watershed::piuma::{Registers, System};
use watershed::scenario::Loaded;
use watershed::scenario::file::{RouterFile, SwitchAllocator, VcAllocator};

use crate::bench::Bench;

/// End points that a table of the bench names at most.
const MOST_ENDS: usize = 128;

/// The parameters of the RTL.
#[derive(Clone, Debug)]
pub struct Unicast {
    /// Channels of set-routed packets, and those behind them.
    pub set: u8,
    pub channels: u8,
    ports: u16,
    ends: u32,
    depth: u16,
    route: u32,
    vc_alloc: u32,
    post: u16,
    /// Numbers of the allocators, and rounds.
    allocators: [u32; 3],
}

/// What it is given that never changes, of a switch.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// Credits at reset, by port.
    pub depths: Vec<u128>,
    routes: Vec<u128>,
    allowed: Vec<u128>,
}

impl Unicast {
    /// Those of a system, if the RTL has such channels: a journal of all flits is kept.
    pub fn of(loaded: &Loaded, system: &System) -> Option<Unicast> {
        let router = &loaded.scenario.switch.router;
        let RouterFile { route_cycles, vc_alloc_cycles, switch_alloc_cycles, .. } = *router;
        let others = RouterFile::default();
        let steps = RouterFile {
            credit_delay_cycles: others.credit_delay_cycles,
            input_speedup: others.input_speedup,
            wait_for_tail_credit: others.wait_for_tail_credit,
            speculative: others.speculative,
            ..router.clone()
        };
        let vc_allocator = match router.vc_allocator {
            VcAllocator::Ordered => 0,
            VcAllocator::Separable => 1,
            VcAllocator::Islip => 2,
        };
        let switch_allocator = u32::from(router.switch_allocator == SwitchAllocator::Islip);
        let (vcs, registers) = (system.plan().vcs, &system.tables);
        let (route, vc_alloc) = (route_cycles?, vc_alloc_cycles?);
        let ends = registers.routes.ends.len();
        let fits = vcs.unicast > 0 && ends <= MOST_ENDS && route < 2 && vc_alloc < 2 && switch_alloc_cycles == Some(1);
        let plain = matches!(registers.routes.routing, Routing::Die(_) | Routing::Mesh(_) | Routing::Tree(_));
        if !fits || !plain || *router != steps {
            return None;
        }
        let journal = system.journal()?;
        let ports: usize = system.plan().nodes.iter().map(|node| usize::from(node.ports)).sum();
        let depth = (0..ports as u32).map(|port| journal.initial_credits(port, vcs.set)).max()?;
        let (ports, post) = (registers.engine_port(), journal.post);
        Some(Unicast {
            set: vcs.set,
            channels: vcs.unicast,
            ports,
            ends: ends as u32,
            depth: depth.max(1),
            route,
            vc_alloc,
            post,
            allocators: [vc_allocator, switch_allocator, router.allocator_iterations],
        })
    }

    /// What a switch is given that never changes.
    pub fn fixed(&self, registers: &Registers, switch: u32, depths: Vec<u128>) -> Fixed {
        let route = |end| u128::from(registers.numbered(switch, registers.routes.port(switch, end)));
        let shares = registers.shares;
        let vcs = watershed::fabric::Vcs { set: self.set, unicast: self.channels };
        let lanes = (0..shares.lanes).map(|lane| shares.lane(vcs, lane)).map(|(first, each)| (first - self.set, each));
        let mut parts: Vec<(u8, u8)> = lanes.collect();
        parts.push((0, shares.messages));
        let part = |channel: u8| parts.iter().find(|(first, each)| (*first..first + each).contains(&channel));
        let mask = |channel| part(channel).map_or(0, |(first, each)| ((1 << each) - 1) << first);
        Fixed { depths, routes: (0..self.ends).map(route).collect(), allowed: (0..self.channels).map(mask).collect() }
    }

    /// Inputs and the instance, beside a collective switch `u_dut` on the same links.
    pub fn instance(&self, bench: &mut Bench) {
        let Unicast { set, channels, ports, ends, depth, route, vc_alloc, post, allocators } = self;
        let [vc_allocator, switch_allocator, rounds] = allocators;
        for port in 0..*ports {
            bench.input(format!("ucredit_{port}"), u32::from(*channels));
            bench.input(format!("udepth_{port}"), 16);
        }
        for end in 0..*ends {
            bench.input(format!("route_{end}"), 8);
        }
        for channel in 0..*channels {
            bench.input(format!("allowed_{channel}"), u32::from(*channels));
        }
        let bits = 16 - (ports - 1).max(1).leading_zeros();
        bench.body(&format!(
            "  logic [15:0] udepths [{ports}];\n  logic [{channels}-1:0] ucredit_in [{ports}];\n  logic [{channels}-1:0] ucredit_out \
             [{ports}];\n  logic [{ports}-1:0] uout_valid;\n  flit_t uout_flit [{ports}];\n  logic [{bits}-1:0] routes [{ends}];\n  logic \
             [{channels}-1:0] allowed [{channels}];\n"
        ));
        for port in 0..*ports {
            bench.body(&format!(
                "  assign udepths[{port}] = udepth_{port};\n  assign ucredit_in[{port}] = ucredit_{port};\n"
            ));
        }
        for end in 0..*ends {
            bench.body(&format!("  assign routes[{end}] = route_{end}[{bits}-1:0];\n"));
        }
        for channel in 0..*channels {
            bench.body(&format!("  assign allowed[{channel}] = allowed_{channel};\n"));
        }
        bench.body(&format!(
            "  ws_unicast #(.Ports({ports}), .Set({set}), .Channels({channels}), .Depth({depth}), .Ends({ends}), .Route({route}),\n    \
             .VcAlloc({vc_alloc}), .Post({post}), .VcAllocator({vc_allocator}), .SwitchAllocator({switch_allocator}), \
             .Rounds({rounds})) u_uni (\n    .clk_i, .rst_ni, .credits_at_reset_i(udepths), .route_i(routes), \
             .allowed_i(allowed),\n    .taken_in_i(taken_in), .taken_out_i(taken_out), .in_valid_i(in_valid), .in_flit_i(in_flit),\n    \
             .credit_o(ucredit_out), .out_valid_o(uout_valid), .out_flit_o(uout_flit), .credit_i(ucredit_in));\n"
        ));
    }

    /// Where the RTL has a signal of a switch's waves: `in` of a port and a channel.
    pub fn place(&self, port: u16, vc: u16, field: &str) -> Option<String> {
        let channel = vc.checked_sub(u16::from(self.set)).filter(|&channel| channel < u16::from(self.channels))?;
        // The engine has a port, too, which no packet takes.
        if port >= self.ports {
            return None;
        }
        let queue = port * u16::from(self.channels) + channel;
        match field {
            "flits" => Some(format!("u_uni.len[{queue}]")),
            "phase" => Some(format!("u_uni.phase_q[{queue}]")),
            "head_word" => Some(format!("u_uni.head[{queue}].word")),
            "head_id" | "head_seq" => Some(format!("u_uni.head[{queue}].tag.{}", &field[5..])),
            "held" => Some(format!("u_uni.held_q[{port}][{channel}]")),
            "count" => Some(Unicast::count(port, channel)),
            _ => None,
        }
    }

    /// Credits of a channel, counted from the first one.
    pub fn count(port: u16, channel: u16) -> String {
        format!("16'(udepths[{port}] - u_uni.spent[{port}][{channel}])")
    }

    /// The values of its inputs; `returned` has the credits that come back, by port.
    pub fn given(fixed: &Fixed, returned: &[u128]) -> Vec<u128> {
        let ports = returned.iter().zip(&fixed.depths).flat_map(|(&returned, &depth)| [returned, depth]);
        ports.chain(fixed.routes.iter().copied()).chain(fixed.allowed.iter().copied()).collect()
    }
}
