//! `[[traffic]]` and `[measure]`.

use super::{Resolver, counted_channels, port_number};
use std::collections::BTreeMap;

use crate::config::{Flow, Injection, Rate, SwitchPort, Topology, Traffic, TrafficPattern};
use crate::file::{FlowFile, InjectionKind, PacketFlits, Pattern, ScenarioFile, TrafficFile};
use crate::problem::Problem;
use crate::trace;
use watershed_fabric::traffic::{Permutation, Process};

impl Resolver<'_> {
    pub fn traffic(&mut self, file: &ScenarioFile, topology: &Topology) -> Vec<Traffic> {
        let mut names = BTreeMap::new();
        file.traffic
            .iter()
            .enumerate()
            .map(|(index, traffic)| {
                let path = format!("traffic[{index}]");
                let name = traffic.name.clone().unwrap_or_else(|| format!("t{index}"));
                self.unique(&mut names, &name, &path);
                if traffic.stop_cycle.is_some_and(|stop| stop <= traffic.start_cycle) {
                    self.report(
                        Problem::at(format!("{path}.stop_cycle"), "the traffic stops before it starts")
                            .expected(format!("a cycle after {}", traffic.start_cycle)),
                    );
                }
                self.foreign_traffic_keys(traffic, &path);
                let packet_flits = self.lengths(traffic.packet_flits.as_ref(), &format!("{path}.packet_flits"));
                let injection = self.injection(traffic, &path, &packet_flits);
                if matches!(injection, Injection::ClosedLoop { .. })
                    && !file.switch.point_to_point_vcs.is_multiple_of(2)
                {
                    let has = counted_channels(file.switch.point_to_point_vcs);
                    self.report(
                        Problem::at(
                            "switch.point_to_point_vcs",
                            format!("a closed loop needs channels for requests and as many for replies, {has}"),
                        )
                        .expected("an even number")
                        .related(format!("{path}.injection"), "the closed loop"),
                    );
                }
                Traffic {
                    name,
                    pattern: self.pattern(traffic, &path, topology),
                    injection,
                    packet_flits,
                    start_cycle: traffic.start_cycle,
                    stop_cycle: traffic.stop_cycle,
                }
            })
            .collect()
    }

    pub fn measure(&mut self, file: &ScenarioFile, traffic: &[Traffic]) {
        let Some(measure) = &file.measure else { return };
        if traffic.is_empty() {
            self.report(
                Problem::at_key("measure", "there is no traffic to measure")
                    .expected("`[[traffic]]` beside `[measure]`"),
            );
        }
        let (from, to) = (measure.warmup_cycles, measure.warmup_cycles.saturating_add(measure.measure_cycles));
        let window = || format!("the window, cycles {from} to {to}");
        if to > file.limits.max_cycles {
            let most = file.limits.max_cycles;
            self.report(
                Problem::at(
                    "measure.measure_cycles",
                    format!("{}, outlives the run, which is given up in cycle {most}", window()),
                )
                .expected("warm-up and window within `limits.max_cycles`"),
            );
        }
        // A traffic that begins or stops within the window may be meant so; a window that no traffic fills measures nothing.
        let begins = |of: &Traffic| of.start_cycle <= from;
        let lasts = |of: &Traffic| of.stop_cycle.is_none_or(|stop| stop >= to);
        if !traffic.is_empty() && !traffic.iter().any(|of| begins(of) && lasts(of)) {
            let wrong = traffic.iter().position(lasts).map_or((0, "stop_cycle"), |index| (index, "start_cycle"));
            let (path, of) = (format!("traffic[{}].{}", wrong.0, wrong.1), &traffic[wrong.0]);
            let problem = if let Some(stop) = of.stop_cycle.filter(|_| wrong.1 == "stop_cycle") {
                let message = format!("the traffic stops in cycle {stop} and does not fill {}", window());
                Problem::at(path, message).expected(format!("{to} or more, or no `stop_cycle`"))
            } else {
                let message = format!("the traffic starts in cycle {} and does not fill {}", of.start_cycle, window());
                Problem::at(path, message).expected(format!("up to {from}, the end of the warm-up"))
            };
            self.report(problem.related("measure", "the window"));
        }
        if measure.precision.is_some() && measure.max_measure_cycles < measure.measure_cycles {
            self.report(
                Problem::at("measure.max_measure_cycles", "the longest window is shorter than the first one")
                    .expected(format!("{} or more", measure.measure_cycles)),
            );
        }
    }

    /// Keys that belong to another pattern or injection.
    fn foreign_traffic_keys(&mut self, file: &TrafficFile, path: &str) {
        use InjectionKind::{Bursty, ClosedLoop};
        let injection = file.injection.unwrap_or(InjectionKind::Bernoulli);
        let trace = file.pattern == Pattern::Trace;
        let list = [
            ("include_self", file.include_self.is_some(), file.pattern == Pattern::Uniform, "pattern = \"uniform\""),
            ("hotspots", file.hotspots.is_some(), file.pattern == Pattern::Hotspot, "pattern = \"hotspot\""),
            ("flows", file.flows.is_some(), file.pattern == Pattern::Flows, "pattern = \"flows\""),
            (
                "file",
                file.file.is_some(),
                matches!(file.pattern, Pattern::Permutation | Pattern::Trace),
                "pattern = \"permutation\" and pattern = \"trace\"",
            ),
            ("burst_alpha", file.burst_alpha.is_some(), injection == Bursty, "injection = \"bursty\""),
            ("burst_beta", file.burst_beta.is_some(), injection == Bursty, "injection = \"bursty\""),
            ("window", file.window.is_some(), injection == ClosedLoop, "injection = \"closed-loop\""),
            ("reply_flits", file.reply_flits.is_some(), injection == ClosedLoop, "injection = \"closed-loop\""),
            ("think_cycles", file.think_cycles.is_some(), injection == ClosedLoop, "injection = \"closed-loop\""),
            ("service_cycles", file.service_cycles.is_some(), injection == ClosedLoop, "injection = \"closed-loop\""),
        ];
        for (key, given, fits, whose) in list {
            if given && !fits {
                self.report(
                    Problem::at_key(format!("{path}.{key}"), format!("`{key}` means nothing here"))
                        .help(format!("it belongs to {whose}")),
                );
            }
        }
        if trace {
            for (key, given) in [
                ("rate", file.rate.is_some()),
                ("injection", file.injection.is_some()),
                ("packet_flits", file.packet_flits.is_some()),
                ("start_cycle", self.source.has(&format!("{path}.start_cycle"))),
                ("stop_cycle", file.stop_cycle.is_some()),
            ] {
                if given {
                    let message = format!("a trace says itself what `{key}` says");
                    self.report(Problem::at_key(format!("{path}.{key}"), message));
                }
            }
        } else if file.pattern == Pattern::Flows && file.rate.is_some() {
            self.report(
                Problem::at_key(format!("{path}.rate"), "the rate belongs to each flow")
                    .expected("flows = [ { from = …, to = …, rate = … } ]"),
            );
        } else if injection == ClosedLoop && file.rate.is_some() {
            self.report(
                Problem::at_key(format!("{path}.rate"), "a closed loop has no rate: it sends when replies come back")
                    .expected("`window`, and `think_cycles` to send less"),
            );
        } else if file.rate.is_none() && injection != ClosedLoop && file.pattern != Pattern::Flows {
            self.report(
                Problem::at(format!("{path}.rate"), format!("`{path}.rate` is missing"))
                    .expected("flits per node and cycle, from 0 to 1"),
            );
        }
    }

    pub fn lengths(&mut self, lengths: Option<&PacketFlits>, path: &str) -> PacketFlits {
        match lengths {
            None => PacketFlits::Fixed(1),
            Some(PacketFlits::Range { min, max }) if max < min => {
                self.report(
                    Problem::at(
                        format!("{path}.max"),
                        format!("the longest packet, {max} flits, is shorter than the shortest"),
                    )
                    .expected(format!("{min} or more")),
                );
                PacketFlits::Fixed(1)
            }
            Some(lengths) => lengths.clone(),
        }
    }

    fn injection(&mut self, file: &TrafficFile, path: &str, packet_flits: &PacketFlits) -> Injection {
        let rate = file.rate.map(Rate);
        if file.pattern == Pattern::Trace {
            return Injection::Trace;
        }
        match file.injection.unwrap_or(InjectionKind::Bernoulli) {
            InjectionKind::Bernoulli => Injection::Bernoulli { rate },
            InjectionKind::Periodic => Injection::Periodic { rate },
            InjectionKind::Bursty => {
                for (key, given) in [("burst_alpha", file.burst_alpha), ("burst_beta", file.burst_beta)] {
                    if given.is_none() {
                        self.report(
                            Problem::at(format!("{path}.{key}"), format!("`{path}.{key}` is missing"))
                                .expected("a probability above 0, up to 1"),
                        );
                    }
                }
                let (burst_alpha, burst_beta) = (file.burst_alpha.unwrap_or(1.0), file.burst_beta.unwrap_or(1.0));
                let lengths = crate::sources::lengths(packet_flits);
                let peak = |rate| Process::burst_peak(rate, &lengths, burst_alpha, burst_beta);
                let rates = file.flows.iter().flatten().map(|flow| flow.rate).chain(file.rate);
                let most = rates.fold(0.0, f64::max);
                if peak(most) > 1.0 {
                    let on = burst_alpha / (burst_alpha + burst_beta);
                    let message =
                        format!("a source that is on for {on:.3} of the time cannot offer {most} flits a cycle");
                    let place = if file.rate.is_some() { format!("{path}.rate") } else { format!("{path}.flows") };
                    self.report(
                        Problem::at(place, message).expected(format!(
                            "up to {:.4}: a packet in every cycle of every burst",
                            most / peak(most)
                        )),
                    );
                }
                Injection::Bursty { rate, burst_alpha, burst_beta }
            }
            InjectionKind::ClosedLoop => {
                if file.window.is_none() {
                    self.report(
                        Problem::at(format!("{path}.window"), format!("`{path}.window` is missing"))
                            .expected("the requests a source may have without a reply, for example 4"),
                    );
                }
                Injection::ClosedLoop {
                    window: file.window.unwrap_or(1),
                    reply_flits: self.lengths(file.reply_flits.as_ref(), &format!("{path}.reply_flits")),
                    think_cycles: file.think_cycles.unwrap_or(0),
                    service_cycles: file.service_cycles.unwrap_or(0),
                }
            }
        }
    }

    fn pattern(&mut self, file: &TrafficFile, path: &str, topology: &Topology) -> TrafficPattern {
        let ends = topology.end_points();
        let at_pattern = format!("{path}.pattern");
        let permutation = match file.pattern {
            Pattern::Transpose => Some((Permutation::Transpose, TrafficPattern::Transpose)),
            Pattern::BitComplement => Some((Permutation::BitComplement, TrafficPattern::BitComplement)),
            Pattern::BitReverse => Some((Permutation::BitReverse, TrafficPattern::BitReverse)),
            Pattern::Shuffle => Some((Permutation::Shuffle, TrafficPattern::Shuffle)),
            Pattern::Tornado => Some((Permutation::Tornado, TrafficPattern::Tornado)),
            Pattern::Neighbour => Some((Permutation::Neighbour, TrafficPattern::Neighbour)),
            _ => None,
        };
        if let Some((permutation, pattern)) = permutation {
            if let Err(needs) = permutation.fits(ends) {
                let message = format!("this pattern does not exist for {ends} end points");
                self.report(Problem::at(at_pattern, message).expected(needs));
            }
            return pattern;
        }
        match file.pattern {
            Pattern::Uniform => {
                if ends < 2 {
                    self.report(Problem::at(at_pattern, "uniform traffic needs two end points, this system has one"));
                }
                TrafficPattern::Uniform { include_self: file.include_self.unwrap_or(true) }
            }
            Pattern::AllToAll => {
                if ends < 2 {
                    self.report(Problem::at(at_pattern, "an exchange needs two end points, this system has one"));
                }
                TrafficPattern::AllToAll
            }
            Pattern::Hotspot => self.hotspots(file, path, ends),
            Pattern::Permutation => {
                let name = self.traffic_file(file, path);
                let at = format!("{path}.file");
                let pairs = match name.as_ref().map(|name| trace::permutation(&self.base.join(name), ends)) {
                    Some(Ok(pairs)) => pairs,
                    Some(Err(error)) => {
                        self.report(Problem::at(at, error.message).expected(error.expected));
                        Vec::new()
                    }
                    None => Vec::new(),
                };
                TrafficPattern::Permutation { file: name.unwrap_or_default(), pairs }
            }
            Pattern::Trace => {
                let file = self.traffic_file(file, path).unwrap_or_default();
                let full = self.base.join(&file);
                let facts =
                    if file.is_empty() { Ok(trace::TraceSummary::default()) } else { trace::summarise(&full, ends) };
                let facts = facts.unwrap_or_else(|error| {
                    self.report(Problem::at(format!("{path}.file"), error.message).expected(error.expected));
                    trace::TraceSummary::default()
                });
                TrafficPattern::Trace {
                    file,
                    path: full,
                    packets: facts.packets,
                    classes: facts.classes,
                    hash: format!("{:016x}", facts.hash),
                }
            }
            _ => {
                let Some(flows) = &file.flows else {
                    self.report(
                        Problem::at(format!("{path}.flows"), format!("`{path}.flows` is missing"))
                            .expected("flows = [ { from = \"core1.P0\", to = \"core0.P0\", rate = 0.5 } ]"),
                    );
                    return TrafficPattern::Flows { flows: Vec::new() };
                };
                let flows = flows
                    .iter()
                    .enumerate()
                    .filter_map(|(index, flow)| self.flow(flow, &format!("{path}.flows[{index}]"), topology))
                    .collect();
                TrafficPattern::Flows { flows }
            }
        }
    }

    /// Hot spots and their shares.
    fn hotspots(&mut self, file: &TrafficFile, path: &str, ends: u32) -> TrafficPattern {
        let Some(hotspots) = &file.hotspots else {
            self.report(
                Problem::at(format!("{path}.hotspots"), format!("`{path}.hotspots` is missing"))
                    .expected("hotspots = [ { end_point = 5, share = 0.1 } ]"),
            );
            return TrafficPattern::Hotspot { hotspots: Vec::new() };
        };
        let mut sum = 0.0;
        for (index, spot) in hotspots.iter().enumerate() {
            sum += spot.share;
            let here = format!("{path}.hotspots[{index}]");
            if spot.end_point >= ends {
                self.report(
                    Problem::at(format!("{here}.end_point"), format!("there is no end point {}", spot.end_point))
                        .expected(format!("an end point from 0 to {}", ends - 1)),
                );
            }
            if sum > 1.0 + 1e-9 && sum - spot.share <= 1.0 + 1e-9 {
                self.report(
                    Problem::at(format!("{here}.share"), "the shares of all hot spots are more than 1")
                        .expected(format!("up to {:.4} here", (1.0 - sum + spot.share).max(0.0))),
                );
            }
        }
        TrafficPattern::Hotspot { hotspots: hotspots.clone() }
    }

    fn traffic_file(&mut self, file: &TrafficFile, path: &str) -> Option<String> {
        if file.file.is_none() {
            self.report(
                Problem::at(format!("{path}.file"), format!("`{path}.file` is missing"))
                    .expected("the name of a text file, relative to the scenario"),
            );
        }
        file.file.clone()
    }

    fn flow(&mut self, flow: &FlowFile, path: &str, topology: &Topology) -> Option<Flow> {
        let from = self.switch_port(&flow.from, &format!("{path}.from"), topology);
        let to = self.switch_port(&flow.to, &format!("{path}.to"), topology);
        Some(Flow { from: from?, to: to?, rate: Rate(flow.rate) })
    }

    fn switch_port(&mut self, text: &str, path: &str, topology: &Topology) -> Option<SwitchPort> {
        let parsed = text.split_once('.').and_then(|(switch, port)| Some((switch, port_number(port, 'P')?)));
        let Some((switch, port)) = parsed else {
            self.report(
                Problem::at(path, format!("\"{text}\" is not a port of a switch"))
                    .expected("switch.P<port>, for example \"core1.P0\""),
            );
            return None;
        };
        let number = self.switch(switch, path, false, topology)?;
        Some(SwitchPort { switch: number, port, name: text.to_owned() })
    }
}
