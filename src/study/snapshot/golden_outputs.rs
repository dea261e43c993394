//! Which outputs of a scenario its golden files hold: those that `[golden]` names, and defaults for each family.

use watershed_fabric::topology::Shape;
use watershed_scenario::Scenario;
use watershed_scenario::config::Family;
use watershed_scenario::snapshot::Part;

/// Cycles of a picture that does not say how many: more columns do not fit on a line.
const COLUMNS: u64 = 25;

/// What golden files hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldenOutputs {
    /// What is compared.
    pub parts: Vec<Part>,
    /// Globs of the wave.
    pub signals: Vec<String>,
    /// First and last cycle of the wave.
    pub cycles: (u64, u64),
    /// Globs of the picture.
    pub picture: Vec<String>,
    /// First and last cycle of the picture.
    pub picture_cycles: (u64, u64),
}

impl GoldenOutputs {
    /// Whether a part is compared.
    pub fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}

/// What is looked at unless the scenario says otherwise: globs and cycles of the wave, globs and cycles of the picture.
struct DefaultOutputs {
    signals: &'static [&'static str],
    cycles: (u64, u64),
    picture: &'static [&'static str],
    picture_cycles: (u64, u64),
}

/// The engines and the memories, from the start on; of plain fabrics a corner switch *\[chosen\]*.
fn defaults(scenario: &Scenario) -> DefaultOutputs {
    let start = scenario.collectives.iter().map(|collective| collective.start.cycle).min().unwrap_or(0);
    match scenario.family {
        Family::Piuma => DefaultOutputs {
            signals: &["**.ceng.*", "**.memory.{job,calls,cce,icu,mtp,stp}*.**"],
            cycles: (start, start + 95),
            picture: &["**.core{0,4}.switch.ceng.*", "**.core0.memory.{job,calls,cce,icu,mtp,stp}*.**"],
            picture_cycles: (start + 25, start + 50),
        },
        // The engine above the root's switch, or of the first switch.
        Family::Armed => DefaultOutputs {
            signals: &[
                "**.{top,s0_0,t0_0,g0_0}.P*.engine.descriptor0.{state,seqno,count,wait_count}",
                "**.{top,s0_0,t0_0,g0_0}.P*.engine.{active,merged,passed}",
            ],
            cycles: (0, 400),
            picture: &["**.{top,s0_0,t0_0,g0_0}.P*.engine.descriptor0.{state,seqno,count}"],
            picture_cycles: (88, 113),
        },
        // The first switch's engine, or that at the top of a tree.
        Family::Pbv => DefaultOutputs {
            signals: &[
                "**.{sw0000,s0,s0_0,top}.engine.ce.context0.**",
                "**.{sw0000,s0,s0_0,top}.engine.{output_queue,frames_in,frames_out}",
                "**.{sw0000,s0,s0_0,top}.engine.sending.*",
            ],
            cycles: (0, 1500),
            picture: &[
                "**.{sw0000,s0,s0_0,top}.engine.ce.context0.{state,p_count}",
                "**.{sw0000,s0,s0_0,top}.engine.sending.*",
            ],
            picture_cycles: (600, 626),
        },
        // The engines of the switch in the corner, or at the top of a tree.
        Family::Mixed => DefaultOutputs {
            signals: &[
                "**.{top,s1_1,t1_1,g0_0}.**.ceng.*",
                "**.{top,s0_0,t0_0,g0_0}.P*.engine.{active,merged,passed}",
                "**.{top,s0_0,t0_0,g0_0}.engine.ce.context0.{state,p_count}",
            ],
            cycles: (start, start + 1500),
            picture: &["**.{top,s1_1,t1_1,g0_0}.**.ceng.*", "**.{top,s0_0,t0_0,g0_0}.P*.engine.active"],
            picture_cycles: (start + 25, start + 50),
        },
        Family::Fabric => DefaultOutputs {
            signals: &["**.{s0_0,t0_0,g0_0,r0}.switch.**", "**.s0_1.switch.out*.{valid,vc,seq}"],
            cycles: (0, 100),
            picture: &["**.{s0_0,t0_0,g0_0,r0}.switch.out*.{valid,vc,seq}"],
            picture_cycles: (0, COLUMNS),
        },
    }
}

/// What the golden files of a scenario hold.
pub fn golden_outputs(scenario: &Scenario) -> GoldenOutputs {
    let (golden, defaults) = (&scenario.golden, defaults(scenario));
    let owned = |globs: &[&str]| globs.iter().map(ToString::to_string).collect::<Vec<_>>();
    let parts = golden.files.clone().unwrap_or_else(|| {
        let mut parts = vec![Part::Document, Part::Summary, Part::Wave];
        parts.extend(matches!(scenario.topology.shape, Shape::Nodes(_)).then_some(Part::Embedding));
        parts
    });
    // A window that begins elsewhere is as long as it would have been.
    let from = golden.from_cycle.unwrap_or(golden.to_cycle.map_or(defaults.cycles.0, |to| defaults.cycles.0.min(to)));
    let to = golden.to_cycle.unwrap_or(from.saturating_add(defaults.cycles.1 - defaults.cycles.0));
    let own_window = golden.from_cycle.is_some() || golden.to_cycle.is_some();
    let picture = &golden.picture;
    let picture_from = match picture.from_cycle {
        Some(cycle) => cycle,
        None if own_window => from,
        None => defaults.picture_cycles.0.min(picture.to_cycle.unwrap_or(u64::MAX)),
    };
    let picture_to = picture.to_cycle.unwrap_or_else(|| match (picture.from_cycle, own_window) {
        (None, false) => defaults.picture_cycles.1,
        _ => picture_from.saturating_add(COLUMNS),
    });
    GoldenOutputs {
        parts,
        signals: if golden.signals.is_empty() { owned(defaults.signals) } else { golden.signals.clone() },
        cycles: (from, to),
        picture: match (picture.signals.is_empty(), golden.signals.is_empty()) {
            (false, _) => picture.signals.clone(),
            (true, false) => golden.signals.clone(),
            (true, true) => owned(defaults.picture),
        },
        picture_cycles: (picture_from, picture_to.max(picture_from)),
    }
}
