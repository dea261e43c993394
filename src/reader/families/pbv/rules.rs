//! Rules of the family's tables that hold on every network.

use super::file::{CollectiveFile, FaultFile, InitialisationFile, KindFile, MergeFile, OrderFile, PbvFile, StartFile};
use crate::armed::file::ComputeFile;
use crate::fault;
use crate::file::Number;
use crate::names::{self, layout};
use crate::number;
use crate::problem::Problem;
use crate::values;
use watershed_arith::{DType, Op};

/// Who merges, and what that excludes.
pub fn merging(file: &CollectiveFile, path: &str, problems: &mut Vec<Problem>) {
    if file.merge == MergeFile::Master {
        if file.merge_cycles_per_word != 1 {
            problems.push(Problem::at_key(
                format!("{path}.merge_cycles_per_word"),
                "only a source that merges has `merge_cycles_per_word`",
            ));
        }
        return;
    }
    let here = format!("{path}.merge");
    if !matches!(file.kind, KindFile::Allreduce | KindFile::Barrier) {
        let what = "no source merges the responses of a multicast or of an inter-group barrier";
        problems.push(Problem::at(here.clone(), what).expected("an all-reduce or a barrier"));
    }
    if file.rearm || file.starts_on == StartFile::Initialisation {
        let key = if file.rearm { "rearm" } else { "starts_on" };
        let what = format!("a source that merges commands each round: it has no `{key}`");
        problems.push(Problem::at_key(format!("{path}.{key}"), what).related(here, "the source merges"));
    }
}

/// Whether engines are there and set up as the collective needs them.
pub(super) fn check_engines(file: &CollectiveFile, path: &str, pbv: &PbvFile, problems: &mut Vec<Problem>) {
    if file.plane >= pbv.engine.per_switch {
        problems.push(
            Problem::at(format!("{path}.plane"), format!("switches have no engine {}", file.plane))
                .expected(format!("up to {}", pbv.engine.per_switch - 1))
                .help("`pbv.engine.per_switch` is how many there are"),
        );
    }
    if file.starts_on == StartFile::Initialisation && pbv.setup.initialisation == InitialisationFile::Each {
        problems.push(
            Problem::at(
                format!("{path}.starts_on"),
                "without a command, engines that the source sets up do not learn who is above",
            )
            .expected("\"command\", or `pbv.setup.initialisation = \"through-master\"`"),
        );
    }
    if file.starts_on == StartFile::Initialisation && !pbv.setup.initialise_nodes {
        problems.push(
            Problem::at(format!("{path}.starts_on"), "initialisation frames go to switches only: no node would start")
                .expected("\"command\", or `pbv.setup.initialise_nodes = true`"),
        );
    }
}

/// What makes no sense for a kind or type.
pub fn arithmetic(file: &CollectiveFile, path: &str, op: Op, dtype: DType, problems: &mut Vec<Problem>) {
    if file.kind == KindFile::Allreduce {
        if op == Op::Barrier {
            problems.push(
                Problem::at(format!("{path}.op"), "a barrier reduces nothing").expected("`kind = \"barrier\"` for one"),
            );
        } else if let Err(why) = names::supports(op, dtype) {
            problems.push(Problem::at(format!("{path}.op"), format!("{} {why}, not {}", op.name(), dtype.name())));
        }
    } else {
        let what = if file.kind.is_barrier() { "barrier" } else { "multicast" };
        let mut keys = vec![
            ("op", file.op.is_some()),
            ("round", file.round.is_some()),
            ("flush_to_zero", file.flush_to_zero),
            ("initial", file.initial.is_some()),
            ("order", file.order != OrderFile::Arrival),
        ];
        if file.kind.is_barrier() {
            keys.extend([("dtype", file.dtype.is_some()), ("elements", file.elements.is_some())]);
        }
        for (key, given) in keys {
            if given {
                problems.push(Problem::at_key(format!("{path}.{key}"), format!("a {what} has no `{key}`")));
            }
        }
    }
    if file.posted && file.kind != KindFile::Multicast {
        problems
            .push(Problem::at(format!("{path}.posted"), "only a multicast can be posted: others need their answers"));
    }
    if file.kind == KindFile::Multicast && (file.rearm || file.starts_on == StartFile::Initialisation) {
        let key = if file.rearm { "rearm" } else { "starts_on" };
        problems.push(Problem::at_key(format!("{path}.{key}"), format!("a multicast has no `{key}`: nobody works")));
    }
    if file.starts_on == StartFile::Initialisation && file.rounds > 1 && !file.rearm {
        problems.push(
            Problem::at(format!("{path}.rounds"), "a context that starts with its initialisation runs once")
                .help("`rearm = true` begins each round by itself"),
        );
    }
}

pub fn timing(file: &CollectiveFile, path: &str, list: &[u32], problems: &mut Vec<Problem>) {
    for (at, fails) in file.fails.iter().enumerate() {
        if !list.contains(&fails.end_point) {
            let here = format!("{path}.fails[{at}].end_point");
            problems.push(Problem::at(here, format!("end point {} takes no part", fails.end_point)));
        } else if file.kind == KindFile::Multicast {
            let here = format!("{path}.fails[{at}].end_point");
            problems.push(Problem::at(here, "nobody works at a multicast, so no task fails"));
        } else if let Some(round) = fails.round.filter(|&round| round >= file.rounds) {
            problems.push(
                Problem::at(format!("{path}.fails[{at}].round"), format!("there is no round {round}"))
                    .expected(format!("up to {}", file.rounds - 1)),
            );
        }
    }
    match &file.task_cycles {
        ComputeFile::Random { least, most } if least > most => problems.push(
            Problem::at(format!("{path}.task_cycles.random_min"), "the least is above the largest")
                .expected(format!("up to {most}")),
        ),
        ComputeFile::List(rows) if rows.len() != list.len() && rows.len() != 1 => problems.push(
            Problem::at(format!("{path}.task_cycles"), format!("{} rows for {} participants", rows.len(), list.len()))
                .expected("one row for each, or one row for all"),
        ),
        ComputeFile::List(rows) if rows.iter().any(Vec::is_empty) => {
            problems.push(Problem::at(format!("{path}.task_cycles"), "a row has no number"));
        }
        _ => {}
    }
    for (at, late) in file.late.iter().enumerate() {
        if !list.contains(&late.end_point) {
            let here = format!("{path}.late[{at}].end_point");
            problems.push(Problem::at(here, format!("end point {} takes no part", late.end_point)));
        }
    }
}

pub fn initial(given: Option<&Number>, path: &str, dtype: DType, problems: &mut Vec<Problem>) -> Option<u64> {
    let shape = layout(dtype);
    match number::parse(&given?.0, shape) {
        Ok(bits) => Some(watershed_arith::pack_lanes(dtype, &vec![bits; dtype.lanes() as usize])),
        Err(reason) => {
            problems.push(
                Problem::at(format!("{path}.initial"), format!("{} is no {}: {reason}", given?.0, dtype.name()))
                    .expected(number::describe(shape)),
            );
            None
        }
    }
}

pub(super) fn check_fault(fault: &FaultFile, path: &str, problems: &mut Vec<Problem>) {
    let asked = fault::FaultRequest {
        effect: fault.effect,
        delay: fault.delay_cycles.is_some(),
        at: &fault.at,
        from_cycle: fault.from_cycle,
        until_cycle: fault.until_cycle,
        chooses: &[
            ("probability", fault.probability.is_some()),
            ("nth", fault.nth.is_some()),
            ("cc_id", fault.cc_id.is_some()),
        ],
    };
    fault::check(&asked, path, problems);
}

/// What takes several contexts: groups, and rounds that are spread over them.
pub(super) fn check_spread(file: &CollectiveFile, path: &str, problems: &mut Vec<Problem>) {
    if file.kind != KindFile::InterGroupBarrier && !file.groups.is_empty() {
        problems.push(
            Problem::at_key(format!("{path}.groups"), "only an inter-group barrier has `groups`")
                .expected("`kind = \"inter-group-barrier\"` for one"),
        );
    }
    if file.contexts == 1 {
        return;
    }
    let here = format!("{path}.contexts");
    if !matches!(file.kind, KindFile::Allreduce | KindFile::Barrier) {
        let what = "only the rounds of an all-reduce or of a barrier are spread over contexts";
        problems.push(Problem::at(here, what).expected("no `contexts`"));
    } else if file.blocks {
        let what = "a node that works at nothing else between a contribution and its answer has one context at a time";
        problems.push(
            Problem::at(here, what)
                .expected("`blocks = false` beside it")
                .related(format!("{path}.blocks"), "this one"),
        );
    }
}

/// Whether a collective has the same data in every round.
pub fn same_every_round(file: &CollectiveFile, elements: u32) -> bool {
    file.data.as_ref().is_some_and(|data| match &data.values {
        Some(given) => values::frames(given, elements as usize) == 1,
        None => data.same_every_round,
    })
}
