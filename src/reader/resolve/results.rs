//! What a document holds of results: a scenario without any has nothing to keep.

use crate::config::Scenario;
use crate::hosts::file::HostMode;
use crate::problem::Problem;
use crate::result_detail::ResultDetail;
use watershed_arith::Op;

/// What is wrong with keeping this of the results of a scenario.
pub fn check(kept: ResultDetail, scenario: &Scenario) -> Option<Problem> {
    if kept == ResultDetail::Auto || has_results(scenario) {
        return None;
    }
    let at = |message: &str| Problem::at("results", message);
    match (scenario.workload.is_some(), kept) {
        (true, ResultDetail::Hash) => None,
        (true, _) => Some(
            at("ranks of a workload keep no words of results: the document has a hash of each collective's")
                .expected("\"auto\" or \"hash\""),
        ),
        (false, _) => {
            Some(at("this scenario has no job with results, so there is nothing to keep").expected("\"auto\""))
        }
    }
}

/// Whether jobs end with words.
fn has_results(scenario: &Scenario) -> bool {
    let mut collectives = scenario.collectives.iter().filter(|of| !of.called);
    let mut reductions = scenario.armed.iter().flat_map(|armed| &armed.reductions);
    let mut packets = scenario.pbv.iter().flat_map(|pbv| &pbv.collectives);
    collectives.any(|of| of.elements > 0)
        || scenario.hosts.iter().any(|host| host.file.mode == HostMode::Fabric)
        || reductions.any(|of| of.opcode().op != Op::Barrier)
        || packets.any(|of| of.elements > 0)
}
