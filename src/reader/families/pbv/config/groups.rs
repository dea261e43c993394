//! Who sets engines up, and the groups of an inter-group barrier.

use super::{Collective, Group, Setup, one, switch};
use crate::armed::file::ComputeFile;
use crate::file::ParticipantsFile;
use crate::participants::end_point;
use crate::pbv::file::{CollectiveFile, ConfigurationFile, PbvFile, SetupFile};
use crate::problem::Problem;
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

pub fn setup(file: &SetupFile, collectives: &[Collective], topology: &Topology, problems: &mut Vec<Problem>) -> Setup {
    if file.configuration != ConfigurationFile::SidePort {
        let keys = [
            ("side_port_cycles_per_bit", file.side_port_cycles_per_bit != 0),
            ("side_port_lines", file.side_port_lines != 1),
        ];
        for (key, _) in keys.into_iter().filter(|&(_, given)| given) {
            problems.push(
                Problem::at_key(format!("pbv.setup.{key}"), format!("only a side port has `{key}`"))
                    .help("`configuration = \"side-port\"` uses it"),
            );
        }
    }
    let configured_by = file.configured_by.or(collectives.first().map(|first| first.source)).unwrap_or(0);
    let sound = file
        .configured_by
        .is_none_or(|end| end_point(end.into(), topology.end_points(), "pbv.setup.configured_by", problems));
    let mut through =
        if sound && configured_by < topology.end_points() { topology.end_point(configured_by).0 } else { 0 };
    if let Some(name) = &file.through {
        through = switch(name, topology, "pbv.setup.through".into(), problems).unwrap_or(0);
    }
    Setup { file: file.clone(), configured_by, through }
}

/// The groups of an inter-group barrier, as collectives of their own.
pub fn groups(
    file: &CollectiveFile,
    (index, next): (usize, u32),
    path: &str,
    pbv: &PbvFile,
    topology: &Topology,
    problems: &mut Vec<Problem>,
) -> Vec<Collective> {
    let who = [
        ("participants", file.participants != ParticipantsFile::All),
        ("at_switches", !file.at_switches.is_empty()),
        ("except", !file.except.is_empty()),
    ];
    for (key, _) in who.into_iter().filter(|&(_, given)| given) {
        let problem = Problem::at_key(format!("{path}.{key}"), format!("an inter-group barrier has no `{key}`"));
        problems.push(problem.help("`groups` says who takes part"));
    }
    if file.rearm {
        let what = "an inter-group barrier has no `rearm`: who goes on does not know whether his group is complete";
        problems.push(Problem::at_key(format!("{path}.rearm"), what));
    }
    let count = file.groups.len();
    if count < 2 {
        problems.push(
            Problem::at(format!("{path}.groups"), "too few groups for an inter-group barrier").expected("two or more"),
        );
    }
    let mut seen = BTreeMap::new();
    for (number, group) in file.groups.iter().enumerate() {
        for (at, end) in group.iter().enumerate() {
            let here = format!("{path}.groups[{number}][{at}]");
            end_point(*end, topology.end_points(), &here, problems);
            if let Some(first) = seen.insert(*end, here.clone()) {
                let what = format!("end point {end} takes part twice");
                problems.push(Problem::at(here, what).related(first, "here already"));
            }
        }
    }
    let members = file.groups.iter().flatten().count();
    for (at, late) in file.late.iter().enumerate() {
        if !seen.contains_key(&u64::from(late.end_point)) {
            let here = format!("{path}.late[{at}].end_point");
            problems.push(Problem::at(here, format!("end point {} takes no part", late.end_point)));
        }
    }
    for (at, fails) in file.fails.iter().enumerate() {
        if !seen.contains_key(&u64::from(fails.end_point)) {
            let here = format!("{path}.fails[{at}].end_point");
            problems.push(Problem::at(here, format!("end point {} takes no part", fails.end_point)));
        }
    }
    if let ComputeFile::List(rows) = &file.task_cycles
        && rows.len() != 1
        && rows.len() != members
    {
        problems.push(
            Problem::at(format!("{path}.task_cycles"), format!("{} rows for {members} participants", rows.len()))
                .expected("one row for each, group by group, or one row for all"),
        );
        return Vec::new();
    }
    let first = file.cc_id.unwrap_or(next);
    if first as usize + count > 1 << 12 {
        problems.push(
            Problem::at(format!("{path}.cc_id"), format!("contexts {first} to {}", first as usize + count - 1))
                .expected("contexts up to 4095"),
        );
        return Vec::new();
    }
    let source = file.source.or(file.groups.iter().flatten().next().map(|&end| u32::try_from(end).unwrap_or(u32::MAX)));
    let (mut all, mut before) = (Vec::new(), 0);
    for (number, group) in file.groups.iter().enumerate() {
        let mut own = file.clone();
        // What is wrong with members has been said.
        let ends = u64::from(topology.end_points());
        let unique: BTreeSet<u64> = group.iter().copied().filter(|&end| end < ends).collect();
        let mut members = group.clone();
        members.retain(|end| unique.contains(end));
        members.dedup();
        own.name = Some(format!("{}.{number}", file.name.clone().unwrap_or_else(|| format!("c{index}"))));
        (own.participants, own.source) = (ParticipantsFile::List(members), source);
        own.cc_id = Some(first + number as u32);
        own.late.retain(|late| group.contains(&u64::from(late.end_point)));
        own.fails.retain(|fails| group.contains(&u64::from(fails.end_point)));
        if let ComputeFile::List(rows) = &mut own.task_cycles
            && rows.len() != 1
        {
            *rows = rows[before..before + group.len()].to_vec();
        }
        before += group.len();
        // What is wrong with one group's keys is wrong with all of them: it is said once.
        let mut found = Vec::new();
        let mut resolved = one(&own, (index, next), path, pbv, topology, &mut found);
        problems.extend(found.into_iter().filter(|_| number == 0));
        resolved.group = Some(Group { number: number as u8, count: count as u8, first: first as u16 });
        all.push(resolved);
    }
    all
}
