//! FIG. 5 to the cycle; the same from every core, to random subsets, and over the other links (P-MC-1 to P-MC-4).

use crate::sets;
use crate::support::{Draw, die, pass, ready};
use watershed::fabric::Step;
use watershed::scenario::result::Document;

const FIG5: &str = include_str!("../piuma/multicast-fig5.toml");

/// The cycle in which each core reported, by core.
fn reports(document: &Document) -> Vec<(u64, u64)> {
    let programs = document.programs.as_ref().expect("programs ran");
    programs.cores.iter().flat_map(|core| core.reports.iter().map(|report| (core.core, report.cycle))).collect()
}

/// Tile and position of a core.
fn place(core: u64) -> (u64, u64) {
    (if core < 4 { 0 } else { 3 }, core % 4)
}

/// Hops from switch to switch: one in the tile, one a tile.
fn hops(a: u64, b: u64) -> u64 {
    let ((tile_a, at_a), (tile_b, at_b)) = (place(a), place(b));
    u64::from(at_a != at_b) + tile_a.abs_diff(tile_b)
}

#[test]
fn figure_5_hop_by_hop() {
    // The message leaves switches in the cycles in which the patent has it there: core 0 in 0, SW0 in 2, SW4 in 4 and
    // core 4 in 6 after it came to core 0's switch.
    let mut ready = ready(FIG5, &[]);
    let mut left: Vec<(String, u64)> = Vec::new();
    let mut before: Vec<u64> = Vec::new();
    for _ in 0..60 {
        let now = ready.system.now();
        if ready.system.step_before(now + 1) == Step::Quiet {
            break;
        }
        let loads: Vec<(String, u64)> =
            ready.system.link_loads().map(|load| (format!("{} {}", load.from, load.to), load.count.set)).collect();
        for (at, (name, count)) in loads.iter().enumerate() {
            if *count > before.get(at).copied().unwrap_or(0) {
                left.push((name.clone(), now));
            }
        }
        before = loads.into_iter().map(|(_, count)| count).collect();
    }
    let at = |link: &str| left.iter().find(|(name, _)| name == link).unwrap_or_else(|| panic!("{link} {left:?}")).1;
    let zero = at("core0.P5 sw0.P6");
    for (link, cycle) in [
        ("core0.P2 core1.P2", 0),
        ("core0.P3 core2.P3", 0),
        ("core0.P4 core3.P4", 0),
        ("sw0.P5 sw4.P6", 2),
        ("sw4.P5 core4.P6", 4),
        ("core4.P7 core4.memory", 6),
        ("core4.P2 core5.P2", 6),
        ("core4.P3 core6.P3", 6),
        ("core4.P4 core7.P4", 6),
        ("core7.P7 core7.memory", 8),
    ] {
        assert_eq!(at(link) - zero, cycle, "{link}");
    }
    // One copy on each of the fourteen links, and the sender's own.
    assert_eq!(left.len(), 4 + 1 + 1 + 4 + 6 + 1, "{left:?}");
}

/// From the send's issue to the cycle of the report: send through the crossbar and out of its queue, links, switches,
/// and the waiting thread's answer.
fn expected(source: u64, core: u64, link: u64, local: u64) -> u64 {
    let hops = hops(source, core);
    // Issue, crossbar, queue; local link; a cycle a switch and a link between; local link; queue, crossbar; two checks before the report.
    1 + 1 + (local + 1) + hops * (link + 1) + (1 + local) + 1 + 1 + 2
}

fn scenario(source: u64, receivers: &[u64], links: &str) -> String {
    die(&format!(
        "[[multicast]]\nid = 2\nsource = {source}\nreceivers = {receivers:?}\nlinks = \"{links}\"\n\
         [[program]]\ncores = [{source}]\ntext = \"report %cycle\\nmcast.send 2, 0x123456789abcdef0, 9, 8\"\n\
         [[program]]\ncores = {receivers:?}\ntext = \"mcast.wait r1, r2, 2, 4\\nexpect r1, 0x9abcdef0\\nexpect r2, 9\\nreport r1\"\n"
    ))
}

#[test]
fn from_every_core_to_random_subsets_within_four_switch_hops() {
    let mut draw = Draw(11);
    for source in 0..8 {
        for round in 0..3 {
            let others: Vec<u64> = (0..8).filter(|&core| core != source).collect();
            let receivers: Vec<u64> =
                if round == 0 { others } else { draw.subset(7).into_iter().map(|at| others[at as usize]).collect() };
            let (link, local) = [(1, 1), (5, 1), (3, 4)][round];
            let set = sets!["link.latency_cycles={link}"; "link.local_latency_cycles={local}"];
            for links in ["first", "second"] {
                let document = pass(&scenario(source, &receivers, links), &set);
                let reports = reports(&document);
                assert_eq!(reports.len(), receivers.len() + 1);
                let start = reports.iter().find(|(core, _)| *core == source).expect("the sender's").1 + 1;
                for &core in &receivers {
                    let got = reports.iter().find(|(at, _)| *at == core).expect("everybody got it").1;
                    assert_eq!(got - start, expected(source, core, link as u64, local as u64), "{source} to {core}");
                    assert!(hops(source, core) <= 4);
                }
            }
        }
    }
}

#[test]
fn two_trees_reach_the_same_cores_over_other_links() {
    let flits = |links: &str, port: u16| {
        let document = pass(&scenario(0, &[4, 5, 6, 7], links), &[]);
        let all = document.links.all.expect("all links");
        all.iter().filter(|link| link.name.contains(&format!(".P{port} ->"))).map(|link| link.flits).sum::<u64>()
    };
    for (links, used, idle) in [("first", 5, 8), ("second", 8, 5)] {
        assert!(flits(links, used) > 0, "{links}");
        assert_eq!(flits(links, idle), 0, "{links}");
    }
}

#[test]
fn a_tree_leaves_the_die_over_hsio_ports() {
    // Two nodes of two sockets of four cores: the source reaches cores of its own socket, of its node and of the other.
    for (source, receivers) in [(0u64, vec![1u64, 5, 9, 14]), (13, vec![0, 2, 3, 7, 8, 12]), (6, vec![15])] {
        let text = format!(
            "family = \"piuma\"\n[topology]\nkind = \"nodes\"\nsize = [2]\nsockets = 2\ntiles = 2\npositions = 2\n\
             [switch]\npoint_to_point_vcs = 4\n[[multicast]]\nid = 1\nsource = {source}\nreceivers = {receivers:?}\n\
             [[program]]\ncores = [{source}]\ntext = \"mcast.send 1, 0xfeed, 4, 2\"\n\
             [[program]]\ncores = {receivers:?}\ntext = \"mcast.wait r1, r2, 1, 8\\nexpect r1, 0xfeed\\nreport %cycle\"\n"
        );
        let document = pass(&text, &[]);
        let got = reports(&document);
        assert_eq!(got.len(), receivers.len());
        let far = receivers.iter().find(|&&core| core / 8 != source / 8).expect("a core of the other node");
        let at = |core: u64| got.iter().find(|(found, _)| *found == core).expect("it reported").1;
        assert!(at(*far) > 50, "a link between nodes takes 50 cycles");
        let levels = &document.links.levels;
        let flits = |level: &str| levels.iter().find(|found| found.level == level).map_or(0, |level| level.flits);
        assert_eq!(flits("inter-node"), 1, "one copy crosses, whoever is behind");
    }
}
