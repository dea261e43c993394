//! Which outputs of a scenario its golden files hold: those that `[golden]` names, and defaults for each family.

use watershed_fabric::topology::Shape;
use watershed_scenario_interface::Scenario;
use watershed_scenario_interface::families::watched;
use watershed_scenario_interface::snapshot::Part;

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

/// What the golden files of a scenario hold.
pub fn golden_outputs(scenario: &Scenario) -> GoldenOutputs {
    let (golden, defaults) = (&scenario.golden, watched(scenario));
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
