//! Time-outs far shorter than a round: engines ask, give up and begin the next round while their messages still wait to leave. Two
//! engines whose output queues are full of each other's messages would never take any (B-STR-1, B-ERR-1).

use std::fmt::Write;
use std::path::Path;

use watershed::scenario::load_text;
use watershed::scenario::result::{Document, Outcome};
use watershed::scenario::run::{RunOptions, run};

use crate::share;

/// Sums of many rounds in several contexts over short time-outs.
struct Crowd {
    topology: &'static str,
    end_points: u32,
    contexts: u32,
    timeout_cycles: u32,
    rounds: u32,
    retries: u32,
}

impl Crowd {
    fn text(&self) -> String {
        let mut text = format!(
            "family = \"pbv\"\n[topology]\n{}\n[link]\nlatency_cycles = 5\n[pbv.setup]\nconfiguration = \"side-port\"\n\
             initialise_cycle = 0\n[pbv.engine]\ntimeout_cycles = {}\ntimeout_factor = 1\nretries = {}\n\
             [limits]\nmax_cycles = 3_000_000\n",
            self.topology, self.timeout_cycles, self.retries
        );
        let all: Vec<u32> = (0..self.end_points).collect();
        for _ in 0..self.contexts {
            writeln!(
                text,
                "[[pbv.collective]]\nop = \"sum\"\ndtype = \"f64\"\nelements = 480\nrounds = {}\nparticipants = {all:?}\n\
                 rearm = true\nblocks = false\nstart_cycle = 1000",
                self.rounds
            )
            .unwrap();
        }
        text
    }

    fn document(&self, no_skip: bool) -> Document {
        let loaded =
            load_text("crowd", &self.text(), Path::new(""), "crowd", &[]).unwrap_or_else(|error| panic!("{error}"));
        run(&loaded, &RunOptions { no_skip, ..RunOptions::default() }).unwrap().document
    }
}

/// Two groups of four switches, an end point each.
const GROUPS: &str = "kind = \"dragonfly\"\ngroup_switches = 4\ngroups = 2\nglobal_links = 2\nconcentration = 1";
/// The same with two end points a switch.
const PAIRS: &str = "kind = \"dragonfly\"\ngroup_switches = 4\ngroups = 2\nglobal_links = 2\nconcentration = 2";
const MESH: &str = "kind = \"mesh\"\nsize = [4, 4]\nconcentration = 1";

/// One in four in `make test`: two of those that need the most.
#[test]
fn rounds_end_however_short_time_outs_are() {
    let crowd = |topology, end_points, contexts, timeout_cycles, rounds, retries| Crowd {
        topology,
        end_points,
        contexts,
        timeout_cycles,
        rounds,
        retries,
    };
    let crowds = [
        // Refusals with places of their own are not enough here,
        crowd(PAIRS, 16, 8, 256, 8, 0),
        // and here.
        crowd(PAIRS, 12, 8, 512, 8, 0),
        crowd(GROUPS, 8, 4, 256, 4, 1),
        crowd(PAIRS, 16, 4, 128, 4, 0),
        // Time-outs that wait are not enough here,
        crowd(GROUPS, 8, 4, 128, 8, 0),
        // and here.
        crowd(PAIRS, 12, 8, 256, 6, 0),
        crowd(MESH, 16, 4, 256, 6, 0),
        crowd(GROUPS, 8, 4, 256, 4, 0),
    ];
    for crowd in share::one_in(4, crowds) {
        let usual = crowd.document(false);
        let text = crowd.text();
        assert_eq!(usual.outcome, Outcome::Finished, "{:?}\n{text}", usual.checks);
        let failed: Vec<_> = usual.checks.iter().filter(|check| !check.passed).collect();
        assert!(failed.is_empty(), "{failed:?}\n{text}");
        let rounds = usual.pbv.as_ref().unwrap().collectives.iter().flat_map(|of| &of.rounds);
        assert_eq!(rounds.clone().count() as u32, crowd.contexts * crowd.rounds);
        // The time-outs are short enough to be a burden: some round had to be asked for again, or ends without somebody.
        assert!(rounds.clone().any(|round| round.outcome != "complete"), "{text}");
        assert!(rounds.clone().all(|round| round.outcome != "open"), "{text}");
        if crowd.contexts == 4 && (share::is_whole() || crowd.end_points == 8) {
            assert!(crowd.document(true) == usual, "evaluating every block in every cycle changes the run\n{text}");
        }
    }
}
