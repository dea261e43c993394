//! Random small systems of all families: buffers from one flit on, narrow links, short memories, pipelines of 1 to 4 stages.

use std::fmt::Write;

use watershed::kernel::Rng;

pub struct Random(pub Rng);

impl Random {
    pub fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.0.below(list.len() as u64) as usize]
    }

    fn piuma_system(&mut self, topologies: &[&str]) -> String {
        let mut text = format!("family = \"piuma\"\nseed = {}\n[clock]\nfrequency_mhz = 1000\n", self.0.below(1000));
        let _ = write!(text, "[topology]\n{}\n", self.pick(topologies));
        let _ = write!(
            text,
            "[link]\nlatency_cycles = {}\nlocal_latency_cycles = {}\ncycles_per_flit = {}\n",
            self.pick(&["1", "2", "7"]),
            self.pick(&["1", "3"]),
            self.pick(&["1", "1", "2", "3"])
        );
        let stages = self.pick(&["1", "2", "3", "4"]);
        let _ = write!(
            text,
            "[switch]\npipeline_stages = {stages}\narbiter = \"{}\"\ncollective_buffer_flits = {}\npoint_to_point_buffer_flits = {}\n\
             ceng.stages = {}\nceng.operand_slots = {}\n",
            self.pick(&["round-robin", "matrix", "fixed"]),
            self.pick(&["\"auto\"", "1", "2", "3"]),
            self.pick(&["2", "5", "12"]),
            self.pick(&["1", "3", "6"]),
            self.pick(&["1", "2"])
        );
        let _ = write!(text, "[switch.router]\n{}", self.router(stages));
        let _ = write!(
            text,
            "[memory]\nbandwidth_gbps = {}\nread_latency_cycles = {}\nwrite_latency_cycles = {}\n",
            self.pick(&["\"unlimited\"", "51.2", "20"]),
            self.pick(&["0", "5"]),
            self.pick(&["0", "4"])
        );
        text
    }

    /// Knobs of the router: each off more often than not.
    fn router(&mut self, stages: &str) -> String {
        let mut text = String::new();
        for (key, values) in [
            ("credit_delay_cycles", ["1", "4"]),
            ("input_speedup", ["2", "2"]),
            ("wait_for_tail_credit", ["true", "true"]),
            ("speculative", ["true", "true"]),
        ] {
            // There is nothing to speculate on in one or two stages.
            if self.0.below(3) == 0 && (key != "speculative" || ["3", "4"].contains(&stages)) {
                let _ = writeln!(text, "{key} = {}", self.pick(&values));
            }
        }
        text
    }

    /// Collectives in the network: one to three, scans and segments among them, late participants, other traffic.
    pub fn piuma(&mut self) -> String {
        const ANY: &[&str] = &[
            "kind = \"die\"\npositions = 2\ntiles = 3",
            "kind = \"die\"\npositions = 2",
            "kind = \"die\"\ntiles = 6\npositions = 1",
            "kind = \"mesh\"\nsize = [3, 2]",
            "kind = \"mesh\"\nsize = [4]\nconcentration = 2",
            "kind = \"nodes\"\nsize = [2]\nsockets = 1\ntiles = 2\npositions = 1",
        ];
        let mut text = self.piuma_system(ANY);
        let segmented = text.contains("nodes") && self.0.below(2) == 0;
        let many = if segmented { 1 } else { 1 + self.0.below(3) };
        for id in 0..many {
            let kinds: &[&str] = if segmented {
                &["allreduce"]
            } else {
                &["allreduce", "reduce", "broadcast", "barrier", "allreduce", "scan"]
            };
            let kind = self.pick(kinds);
            let _ = write!(
                text,
                "[[collective]]\nkind = \"{kind}\"\nid = {id}\ndelay_cycles = {}\nstart_cycle = {}\n",
                self.pick(&["0", "{ random_max = 40 }", "7"]),
                self.pick(&["0", "13"])
            );
            if kind != "barrier" {
                let _ = writeln!(text, "elements = {}", self.pick(&["1", "2", "9", "33"]));
                let _ = writeln!(text, "dtype = \"{}\"", self.pick(&["f64", "i64"]));
            }
            if segmented {
                text += "segments = 2\n";
            }
        }
        if self.0.below(3) == 0 {
            let _ = writeln!(text, "[[traffic]]\npattern = \"uniform\"\nrate = {}", self.pick(&["0.1", "0.3", "0.6"]));
        }
        text
    }

    /// Cores whose programs call collectives, one after the other and before others are done with the one before.
    pub fn programs(&mut self) -> String {
        let mut text = self.piuma_system(&["kind = \"die\"\npositions = 2", "kind = \"mesh\"\nsize = [3, 2]"]);
        let kinds = [
            ("broadcast", "name = \"news\"\nkind = \"broadcast\""),
            ("reduce", "name = \"largest\"\nkind = \"reduce\"\nop = \"max\"\nreceiver = 2"),
            ("allreduce", "name = \"sum\"\nkind = \"allreduce\""),
        ];
        let (name, collective) = kinds[self.0.below(3) as usize];
        let _ = write!(
            text,
            "[[collective]]\n{collective}\ndtype = \"i64\"\nid = 0\ncalled = true\n\
             [[program]]\ntext = \"\"\"\n.random 0, 30, i64\nmul r1, %core, {}\ncompute r1\nbne %core, {}, on\ncompute 400\non:\n",
            self.0.below(60),
            self.0.below(6)
        );
        for _ in 0..4 {
            let _ = writeln!(
                text,
                "{name} 0, 0, 0x10000, {}\ncompute {}",
                self.pick(&["1", "1", "8", "30"]),
                self.pick(&["0", "0", "100"])
            );
        }
        text + "\"\"\"\n"
    }

    /// Collectives in software.
    pub fn hosts(&mut self) -> String {
        let mut text = self.piuma_system(&[
            "kind = \"die\"\npositions = 2",
            "kind = \"mesh\"\nsize = [3, 2]",
            "kind = \"mesh\"\nsize = [5]",
        ]);
        if self.0.below(3) == 0 {
            text += "[[collective]]\nname = \"net\"\nkind = \"allreduce\"\nelements = 8\n";
        }
        for number in 0..=self.0.below(2) {
            let _ = write!(
                text,
                "[[host]]\nname = \"h{number}\"\nalgorithm = \"{}\"\nelements = {}\noverhead_cycles = {}\npacket_words = {}\n\
                 delay_cycles = {}\n",
                self.pick(&["recursive-doubling", "ring", "rabenseifner", "binary-tree", "send-loop"]),
                self.pick(&["1", "3", "17", "40"]),
                self.pick(&["0", "0", "1", "25"]),
                self.pick(&["1", "3", "8"]),
                self.pick(&["0", "{ random_max = 60 }"]),
            );
        }
        text
    }

    /// Point-to-point packets on a plain network.
    pub fn fabric(&mut self) -> String {
        let topology = self.pick(&[
            "kind = \"mesh\"\nsize = [3, 2]",
            "kind = \"mesh\"\nsize = [3, 3]",
            "kind = \"torus\"\nsize = [4]",
            "kind = \"mesh\"\nsize = [2, 2]\nconcentration = 2",
        ]);
        let channels = if topology.contains("torus") { self.pick(&["2", "4"]) } else { self.pick(&["1", "2", "4"]) };
        let stages = self.pick(&["1", "2", "3", "4"]);
        format!(
            "family = \"fabric\"\nseed = {}\n[clock]\nfrequency_mhz = 1000\n[topology]\n{topology}\n\
             [link]\nlatency_cycles = {}\nlocal_latency_cycles = {}\ncycles_per_flit = {}\n\
             [switch]\npipeline_stages = {stages}\narbiter = \"{}\"\npoint_to_point_vcs = {channels}\npoint_to_point_buffer_flits = {}\n\
             [switch.router]\nvc_allocator = \"{}\"\nswitch_allocator = \"{}\"\n{}\
             [[traffic]]\npattern = \"{}\"\nrate = {}\npacket_flits = {}\nstop_cycle = 150\n",
            self.0.below(1000),
            self.pick(&["1", "2", "5"]),
            self.pick(&["1", "2"]),
            self.pick(&["1", "1", "2"]),
            self.pick(&["round-robin", "matrix", "fixed"]),
            self.pick(&["1", "2", "8"]),
            self.pick(&["ordered", "separable", "islip"]),
            self.pick(&["separable", "islip"]),
            self.router(stages),
            self.pick(&["uniform", "neighbour"]),
            self.pick(&["0.1", "0.3", "0.6"]),
            self.pick(&["1", "4"]),
        )
    }

    fn common(&mut self, family: &str) -> String {
        let topologies = [
            "kind = \"tree\"\nbranching = [3]",
            "kind = \"tree\"\nbranching = [2, 3]",
            "kind = \"tree\"\nbranching = [2, 2, 2]",
            "kind = \"mesh\"\nsize = [2, 2]\nconcentration = 2",
            "kind = \"mesh\"\nsize = [4]",
        ];
        let stages = self.pick(&["1", "2", "3", "4"]);
        let mut router = self.router(stages);
        if family == "pbv" {
            // Its frames travel on one channel.
            router = router.replace("input_speedup = 2\n", "");
        }
        format!(
            "family = \"{family}\"\nseed = {}\n[clock]\nfrequency_mhz = 1000\n[topology]\n{}\n[link]\nlatency_cycles = {}\n\
             local_latency_cycles = {}\ncycles_per_flit = {}\n[switch.router]\n{router}[switch]\npipeline_stages = {stages}\n",
            self.0.below(1000),
            self.pick(&topologies),
            self.pick(&["1", "3", "8"]),
            self.pick(&["1", "2"]),
            self.pick(&["1", "1", "2"]),
        )
    }

    fn faults(&mut self, family: &str, from: u32) -> String {
        let mut text = String::new();
        for effect in ["drop", "corrupt", "duplicate", "delay"] {
            if self.0.below(4) > 0 {
                continue;
            }
            let delay = if effect == "delay" { "delay_cycles = 90\n" } else { "" };
            let _ = write!(
                text,
                "[[{family}.fault]]\neffect = \"{effect}\"\nat = \"all\"\nprobability = 0.02\n{delay}from_cycle = {from}\nway = \"both\"\n"
            );
        }
        text
    }

    /// Reductions of the armed family: time-outs, late leaves, faults, software.
    pub fn armed(&mut self) -> String {
        let mut text = self.common("armed");
        let _ = write!(
            text,
            "[armed.engine]\nstages = {}\ndescriptors = {}\ntimeouts_1024_cycles = [{}, 2, 3, 4]\n",
            self.pick(&["1", "3", "6"]),
            self.pick(&["0", "1", "8"]),
            self.pick(&["1", "2"])
        );
        let kind = self.pick(&["engines", "engines", "engines", "software", "redundant"]);
        let _ = write!(
            text,
            "[[armed.reduction]]\nname = \"a\"\nop = \"{}\"\nrounds = {}\ncompute_cycles = {}\nsend_overhead_cycles = {}\n\
             receive_overhead_cycles = {}\nmerge_cycles = {}\n",
            self.pick(&["int-sum", "flt-sum-near", "int-min"]),
            self.pick(&["1", "2", "4"]),
            self.pick(&["0", "30", "{ random_max = 200 }"]),
            self.pick(&["0", "0", "40"]),
            self.pick(&["0", "0", "25"]),
            self.pick(&["0", "9"]),
        );
        match kind {
            "software" => return text + "method = \"software\"\n",
            "redundant" => text += "redundant = true\n",
            _ => {}
        }
        if self.0.below(3) == 0 {
            text += "late = [{ end_point = 1, round = 0, cycles = 1500 }]\n";
        }
        let faults = self.faults("armed", 0);
        text += if faults.is_empty() { "" } else { "max_retries = 6\n" };
        text + &faults
    }

    /// Reductions whose trees the agent makes, from a late cycle on; where it has no room for them, they are in software.
    pub fn asking(&mut self) -> String {
        let mut text = self.common("armed");
        let _ = write!(
            text,
            "[armed]\ntable_entries = {}\n[armed.engine]\nstages = 3\n[armed.agent]\nend_point = 3\norder_timeout_cycles = 1000\n\
             answer_timeout_cycles = 12000\n",
            self.pick(&["0", "0", "8"])
        );
        let _ = write!(
            text,
            "[[armed.reduction]]\nname = \"a\"\nop = \"int-sum\"\nrounds = {}\nconfigured_by = \"agent\"\nstart_cycle = {}\n\
             opening_barrier = {}\ncompute_cycles = {}\nsend_overhead_cycles = {}\nreceive_overhead_cycles = {}\nmerge_cycles = {}\n",
            self.pick(&["1", "3"]),
            self.pick(&["0", "300", "1111"]),
            self.pick(&["true", "false"]),
            self.pick(&["30", "100", "{ random_max = 200 }"]),
            self.pick(&["0", "0", "40"]),
            self.pick(&["0", "0", "25"]),
            self.pick(&["0", "9"]),
        );
        if self.0.below(3) == 0 {
            text += "late = [{ end_point = 1, round = 0, cycles = 700 }]\n";
        }
        text
    }

    /// Rounds that counting takes for whole, because a link lost one contribution and repeated another: an engine waits for the
    /// one until its time is up, and what it sends then is the last.
    pub fn miscounted(&mut self) -> String {
        let mut text = self.common("armed");
        let start = text.find("[topology]").expect("it has one");
        let end = text.find("[link]").expect("it has links");
        text.replace_range(start..end, "[topology]\nkind = \"tree\"\nbranching = [2, 4]\n");
        let _ = write!(
            text,
            "[armed.link_layer]\nsequence_check = false\n[armed.engine]\nstages = {}\ndescriptors = 8\nmemory_ports = {}\n\
             timeouts_1024_cycles = [{}, 4, 4, 4]\n",
            self.pick(&["1", "3", "6"]),
            self.pick(&["1", "2"]),
            self.pick(&["1", "2"]),
        );
        // Several of them, so that others' frames need the memory of descriptors when a time is up.
        let send = self.pick(&["0", "0", "40"]);
        for number in 0..=self.0.below(3) {
            let _ = write!(
                text,
                "[[armed.reduction]]\nname = \"{}\"\nop = \"int-sum\"\nrounds = {}\ncompute_cycles = {}\n\
                 send_overhead_cycles = {send}\n",
                ["a", "b", "c"][number as usize],
                self.pick(&["1", "2", "9"]),
                self.pick(&["0", "30", "{ random_max = 50 }"]),
            );
        }
        let (lost, twice) = (4 + self.0.below(4), self.0.below(4));
        for (effect, leaf) in [("drop", lost), ("duplicate", twice)] {
            let _ = write!(text, "[[armed.fault]]\neffect = \"{effect}\"\nat = \"leaf{leaf}\"\nnth = 1\n");
        }
        text
    }

    /// Reductions of the armed family that meet in switches: two to three of them, with roots and participants of their own.
    pub fn crossing(&mut self) -> String {
        let mut text = self.common("armed");
        let _ = write!(
            text,
            "collective_buffer_flits = {}\n[armed.engine]\nstages = 3\ndescriptors = {}\ntimeouts_1024_cycles = [1, 2, 3, 4]\n",
            self.pick(&["11", "11", "13", "24"]),
            self.pick(&["0", "1", "8"]),
        );
        for number in 0..2 + self.0.below(2) {
            let _ = write!(
                text,
                "[[armed.reduction]]\nname = \"{}\"\nop = \"int-sum\"\nparticipants = [{}]\nrounds = {}\ncompute_cycles = {}\n",
                ["a", "b", "c"][number as usize],
                self.pick(&["0, 1, 2, 3", "3, 1, 0, 2", "2, 0, 1", "1, 2, 3"]),
                self.pick(&["2", "4"]),
                self.pick(&["0", "{ random_max = 30 }", "{ random_max = 1300 }"]),
            );
            if self.0.below(3) == 0 {
                let _ = writeln!(
                    text,
                    "late = [{{ end_point = {}, round = 0, cycles = {} }}]",
                    1 + self.0.below(2),
                    self.pick(&["90", "1060", "1500"])
                );
            }
        }
        text
    }

    /// Collectives of the PBV family: several of them on an engine, orders, watchdogs, retries.
    pub fn pbv(&mut self) -> String {
        let mut text = self.common("pbv");
        let watched = self.0.below(2) == 0;
        let _ = write!(
            text,
            "[pbv.engine]\nstages = {}\nhazard = \"{}\"\nattach = \"{}\"\ntimeout_cycles = {}\nretries = 3\n\
             [pbv.setup]\nconfiguration = \"side-port\"\n",
            self.pick(&["1", "4"]),
            self.pick(&["forward", "interlock"]),
            self.pick(&["own", "own", "node"]),
            if watched { "600" } else { "0" },
        );
        let collectives = 1 + self.0.below(2);
        for number in 0..collectives {
            let kind = self.pick(&["allreduce", "allreduce", "barrier", "multicast"]);
            let blocks = if collectives == 1 { self.pick(&["true", "false"]) } else { "false" };
            let _ = write!(
                text,
                "[[pbv.collective]]\nname = \"c{number}\"\nkind = \"{kind}\"\nblocks = {blocks}\nrounds = {}\nstart_cycle = 2500\n",
                self.pick(&["1", "3"]),
            );
            if kind != "multicast" {
                let _ = writeln!(text, "task_cycles = {}", self.pick(&["0", "20", "{ random_max = 150 }"]));
            }
            if kind == "allreduce" {
                let _ = write!(
                    text,
                    "elements = {}\norder = \"{}\"\nrearm = {}\n",
                    self.pick(&["1", "5", "40"]),
                    self.pick(&["arrival", "pbv"]),
                    self.pick(&["false", "false", "true"])
                );
            }
        }
        if watched { text + &self.faults("pbv", 2500) } else { text }
    }
}
