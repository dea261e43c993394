//! R-TAB-1 to R-TAB-3: the agent lays sound trees over any switch graph, no set of them can deadlock, and full tables refuse.

use std::collections::{BTreeMap, BTreeSet};

use watershed::armed::agent::Refusal;
use watershed::armed::tables::{TableError, TablesCfg};
use watershed::armed::{Agent, EngineCfg, Entry, Owner, Tables};
use watershed::fabric::routing::{Routes, Routing};
use watershed::fabric::topology::{Common, EndPlace, GenericTree, Layout, LinkParams, Mesh, Wiring};
use watershed::fabric::{NodeKind, Plan, PlanLink, PlanNode, Vcs};
use watershed::kernel::Rng;

use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, run};

use crate::support::{passed, refused, root};

const LINK: LinkParams = LinkParams { latency: 1, cycles_per_flit: 1 };

fn common() -> Common {
    Common { vcs: Vcs { set: 2, unicast: 1 }, engine: true, link: LINK, local: LINK }
}

/// A layout from links between switches and numbers of end points; the agent looks at nothing else.
fn graph(switches: u32, links: &[(u32, u32)], ends: impl Fn(u32) -> u16) -> Layout {
    let mut used = vec![0u16; switches as usize];
    let mut port = |switch: u32| {
        used[switch as usize] += 1;
        used[switch as usize] - 1
    };
    let mut list: Vec<PlanLink> = links
        .iter()
        .map(|&(a, b)| PlanLink { a: (a, port(a)), b: (b, port(b)), latency: 1, cycles_per_flit: 1, level: 0 })
        .collect();
    let mut places = Vec::new();
    for switch in 0..switches {
        for _ in 0..ends(switch) {
            let place = EndPlace { switch, port: port(switch) };
            let node = switches + places.len() as u32;
            list.push(PlanLink { a: (node, 0), b: (switch, place.port), latency: 1, cycles_per_flit: 1, level: 0 });
            places.push(place);
        }
    }
    let external = used.iter().copied().max().unwrap_or(0);
    let node = |kind, ports, name: String| PlanNode {
        kind,
        ports,
        engine: kind == NodeKind::Switch,
        path: name.clone(),
        name,
    };
    let mut nodes: Vec<PlanNode> =
        (0..switches).map(|switch| node(NodeKind::Switch, external + 1, format!("s{switch}"))).collect();
    nodes.extend((0..places.len()).map(|end| node(NodeKind::End, 1, format!("e{end}"))));
    let plan = Plan { vcs: common().vcs, nodes, links: list, levels: vec!["any".into()] };
    assert_eq!(plan.fault(), None);
    let mesh = Mesh { size: vec![1], concentration: 1 };
    Layout::of(plan, Routing::Mesh(mesh.clone()), places, external, mesh.wired(Wiring::default()))
}

/// Two levels, every leaf switch linked to every spine.
fn fat_tree(leaves: u32, spines: u32, ends: u16) -> Layout {
    let links: Vec<(u32, u32)> = (0..leaves).flat_map(|l| (0..spines).map(move |s| (l, leaves + s))).collect();
    graph(leaves + spines, &links, |switch| if switch < leaves { ends } else { 0 })
}

/// Groups of switches that are all linked, a link between every two groups.
fn dragonfly(groups: u32, size: u32, ends: u16) -> Layout {
    let mut links = Vec::new();
    for group in 0..groups {
        for a in 0..size {
            links.extend((a + 1..size).map(|b| (group * size + a, group * size + b)));
        }
        for other in group + 1..groups {
            let (a, b) = ((other - 1) % size, group % size);
            links.push((group * size + a, other * size + b));
        }
    }
    graph(groups * size, &links, |_| ends)
}

fn layouts() -> Vec<(&'static str, Layout)> {
    vec![
        ("fat-tree", fat_tree(8, 4, 6)),
        ("dragonfly", dragonfly(9, 4, 2)),
        ("mesh", Mesh { size: vec![5, 4], concentration: 2 }.layout(&common())),
        ("cube", Mesh { size: vec![3, 3, 3], concentration: 1 }.layout(&common())),
        ("tree", GenericTree { branching: vec![3, 4, 5], roots: 1 }.layout(&common())),
    ]
}

fn tables(layout: &Layout, entries: u16) -> Tables {
    let cfg = TablesCfg { entries, engine: EngineCfg::default(), record: false, log: false };
    let routes = Routes { routing: layout.routing.clone(), ends: layout.ends.clone() };
    Tables::new(cfg, layout.switch_names().map(String::from).collect(), layout.external_ports, routes)
}

#[test]
fn any_set_of_end_points_on_any_graph_has_a_sound_tree_and_no_set_of_trees_deadlocks() {
    for (name, layout) in layouts() {
        let agent = Agent::new(&layout);
        let mut tables = tables(&layout, 8192);
        let mut rng = Rng::new(3, 0);
        for case in 0..60 {
            let mut ends: Vec<usize> = (0..layout.ends.len()).collect();
            rng.shuffle(&mut ends);
            ends.truncate(2 + rng.below(ends.len() as u64 - 1) as usize);
            let places: Vec<EndPlace> = ends.iter().map(|&end| layout.ends[end]).collect();
            let tree = agent.tree(places[0], &places[1..]).unwrap_or_else(|refusal| panic!("{name} {case}: {refusal}"));
            // The check walks the written tables: loops, ports, wait counts.
            let id = agent.install(&mut tables, &tree, Owner::default()).unwrap();
            let leaves = tables.check_tree(agent.neighbours(), id, (places[0].switch, places[0].port)).unwrap();
            let found: BTreeSet<(u32, u16)> = leaves.into_iter().collect();
            let wanted: BTreeSet<(u32, u16)> = places[1..].iter().map(|place| (place.switch, place.port)).collect();
            assert_eq!(found, wanted, "{name} {case}");
            assert_eq!(tree.rows[0].wait_count as usize, places.len() - 1);
        }
        assert_eq!(agent.dependency_cycle(&tables), None, "{name}");
    }
}

#[test]
fn ways_are_shortest_in_fat_trees_meshes_and_trees() {
    for (name, layout) in layouts().into_iter().filter(|(name, _)| *name != "dragonfly") {
        let agent = Agent::new(&layout);
        for root in [0, layout.ends.len() / 2, layout.ends.len() - 1] {
            let others: Vec<EndPlace> =
                (0..layout.ends.len()).filter(|&end| end != root).map(|end| layout.ends[end]).collect();
            let tree = agent.tree(layout.ends[root], &others).unwrap();
            // Breadth first, on all links.
            let switches = layout.switches();
            let mut distance = vec![u32::MAX; switches];
            distance[layout.ends[root].switch as usize] = 0;
            for _ in 0..switches {
                for link in layout.plan.links.iter().filter(|link| link.a.0.max(link.b.0) < switches as u32) {
                    let (a, b) = (link.a.0 as usize, link.b.0 as usize);
                    distance[a] = distance[a].min(distance[b].saturating_add(1));
                    distance[b] = distance[b].min(distance[a].saturating_add(1));
                }
            }
            let ends: BTreeSet<u32> = others.iter().map(|place| place.switch).collect();
            for row in tree.rows.iter().filter(|row| ends.contains(&row.switch)) {
                assert_eq!(row.depth, distance[row.switch as usize], "{name}, root {root}, switch {}", row.switch);
            }
        }
    }
}

#[test]
fn a_second_tree_is_disjoint_where_the_graph_allows_it() {
    for (name, layout, ends) in [
        ("fat-tree", fat_tree(8, 4, 6), (0..48).step_by(5).collect::<Vec<usize>>()),
        ("mesh", Mesh { size: vec![4, 4], concentration: 1 }.layout(&common()), vec![5, 0, 3, 12, 15]),
        ("dragonfly", dragonfly(9, 4, 2), vec![0, 9, 30, 71]),
    ] {
        let agent = Agent::new(&layout);
        let mut tables = tables(&layout, 8192);
        let places: Vec<EndPlace> = ends.iter().map(|&end| layout.ends[end]).collect();
        let (first, second) = agent.pair(places[0], &places[1..]).unwrap();
        let second = second.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let neighbours = agent.neighbours();
        let links = |tree: &watershed::armed::SpanningTree| -> BTreeSet<[(u32, u16); 2]> {
            let climbs = tree.climbs().filter_map(|climb| Some((climb, neighbours.of(climb.0, climb.1)?)));
            let between = climbs.filter(|(_, far)| (far.0 as usize) < layout.switches());
            between.map(|(near, far)| if near < far { [near, far] } else { [far, near] }).collect()
        };
        assert!(links(&first).is_disjoint(&links(&second)), "{name}");
        assert!(
            agent.install(&mut tables, &first, Owner::default()).is_ok()
                && agent.install(&mut tables, &second, Owner::default()).is_ok()
        );
        assert_eq!(agent.dependency_cycle(&tables), None, "{name}");
    }
    // A tree of switches has one way to everywhere.
    let layout = GenericTree { branching: vec![2, 2], roots: 1 }.layout(&common());
    let agent = Agent::new(&layout);
    let first = agent.tree(layout.ends[4], &layout.ends[..4]).unwrap();
    assert!(matches!(agent.disjoint(&first, &layout.ends[..4]), Err(Refusal::Unreachable { .. })));
}

#[test]
fn trees_without_a_common_switch_share_an_address_and_full_tables_refuse() {
    let layout = GenericTree { branching: vec![4, 4], roots: 1 }.layout(&common());
    let agent = Agent::new(&layout);
    let mut tables = tables(&layout, 3);
    for row in 0..4 {
        let ends = &layout.ends[4 * row..4 * row + 4];
        let tree = agent.tree(ends[0], &ends[1..]).unwrap();
        assert_eq!(agent.install(&mut tables, &tree, Owner::default()), Ok(0), "row {row} meets no other");
    }
    let whole = agent.tree(layout.ends[16], &layout.ends[..16]).unwrap();
    assert_eq!(agent.install(&mut tables, &whole, Owner::default()), Ok(1));
    assert_eq!(agent.install(&mut tables, &whole, Owner::default()), Ok(2));
    let refusal = agent.install(&mut tables, &whole, Owner::default()).unwrap_err();
    assert!(matches!(refusal, Refusal::Table(TableError::Full { entries: 3, .. })), "{refusal}");
    agent.delete(&mut tables, &whole, 1);
    assert_eq!(agent.install(&mut tables, &whole, Owner::default()), Ok(1), "what was deleted can be used again");
}

#[test]
fn a_loop_and_a_wrong_wait_count_are_found() {
    let layout = Mesh { size: vec![2, 2], concentration: 1 }.layout(&common());
    let agent = Agent::new(&layout);
    let tree = agent.tree(layout.ends[0], &layout.ends[1..]).unwrap();
    let root = (layout.ends[0].switch, layout.ends[0].port);
    let written = |change: &dyn Fn(u32, &mut Entry)| {
        let mut tables = tables(&layout, 8);
        for row in &tree.rows {
            let mut entry = Entry {
                multicast_id: 0,
                parent: row.parent,
                children: row.children,
                wait_count: row.wait_count,
                owner: Owner::default(),
            };
            change(row.switch, &mut entry);
            tables.insert(row.switch, entry).unwrap();
        }
        tables.check_tree(agent.neighbours(), 0, root)
    };
    assert!(written(&|_, _| {}).is_ok());
    let error = written(&|switch, entry| entry.wait_count += u32::from(switch == 0)).unwrap_err().to_string();
    assert!(error.contains("wait count is 4, 3 end points are below"), "{error}");
    // Every switch lists all its neighbours but its parent as children: the ways meet again.
    let all = |switch: u32, entry: &mut Entry| {
        for port in 0..4 {
            if port != entry.parent && agent.neighbours().of(switch, port).is_some() {
                entry.children.insert(port);
            }
        }
    };
    let error = written(&all).unwrap_err().to_string();
    assert!(error.contains("a second way, or a wrong parent"), "{error}");
    let wrong = written(&|switch, entry| entry.parent += u16::from(switch == 3)).unwrap_err().to_string();
    assert!(wrong.contains("its parent port is"), "{wrong}");
}

#[test]
fn frames_of_one_tree_never_overtake_each_other() {
    // Three reductions in flight, and no engine has a descriptor: all frames of all leaves climb the same links to the root.
    let scenario = "family = \"armed\"\n[topology]\nkind = \"mesh\"\nsize = [4, 2]\n[armed.engine]\ndescriptors = 0\n\
                    [[armed.reduction]]\nop = \"int-sum\"\nrounds = 12\nreduction_ids = 3\ncompute_cycles = { random_max = 60 }\n";
    let loaded = load_text("test.toml", scenario, root(), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let result = run(&loaded, &RunOptions { ladder: true, ..RunOptions::default() }).unwrap();
    passed(&result.document);
    let armed = result.document.armed.as_ref().unwrap();
    assert_eq!((armed.outcomes.complete, armed.root_discards), (15, [0, 0]));
    // Frame by frame, on every hop: what is sent first arrives first.
    let mut hops: BTreeMap<(usize, usize), Vec<(u64, u64)>> = BTreeMap::new();
    for message in result.ladder.unwrap().messages {
        let arrived = message.arrived.expect("nothing is lost");
        hops.entry((message.from, message.to)).or_default().push((message.sent, arrived));
    }
    assert!(hops.values().any(|frames| frames.len() > 60), "links that carry the frames of many leaves");
    for (hop, mut frames) in hops {
        frames.sort_unstable();
        assert!(frames.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1), "{hop:?}: {frames:?}");
    }
}

#[test]
fn what_is_wrong_with_a_scenario_is_shown_at_its_place() {
    let base = "family = \"armed\"\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\n";
    for (rest, expected) in [
        ("[[armed.reduction]]\nparticipants = [0, 9]", "there is no end point 9"),
        ("[[armed.reduction]]\nparticipants = [4]", "nobody takes part besides the root"),
        ("[[armed.reduction]]\nop = \"flt-sum\"", "did you mean `flt-sum-near`?"),
        ("[[armed.reduction]]\nop = \"barrier\"\n[armed.reduction.data]\nrandom = \"bits\"", "a barrier has no data"),
        ("[armed.engine]\nwait_count_thresholds = [9, 3, 4]", "not in ascending order"),
        ("[armed.engine]\nunavailable = [\"s7\"]", "there is no switch \"s7\""),
        ("[armed.engine]\ntimeouts_1024_cycles = [1, 2]", "has 2 elements"),
        ("[[armed.reduction]]\n[[armed.fault]]\neffect = \"drop\"\nat = \"leaf99\"", "there is no \"leaf99\""),
        (
            "[[armed.reduction]]\n[[armed.fault]]\neffect = \"delay\"\nat = \"leaf1\"",
            "`armed.fault[0].delay_cycles` is missing",
        ),
        ("[[armed.stranger]]\nend_point = 0\nreduction = \"x\"\nwrong = \"vni\"", "there is no reduction \"x\""),
        (
            "[[armed.reduction]]\n[[armed.stranger]]\nend_point = 0\nreduction = \"r0\"\nwrong = \"tree\"\nuntil_cycle = 9",
            "`armed.stranger[0].tree` is missing",
        ),
        (
            "[[armed.reduction]]\n[[armed.stranger]]\nend_point = 0\nreduction = \"r0\"\nwrong = \"tree\"\n\
             tree = \"r0\"\nuntil_cycle = 9",
            "its own address is no other one",
        ),
        (
            "[[armed.reduction]]\n[[armed.stranger]]\nend_point = 0\nreduction = \"r0\"\nwrong = \"vni\"\n\
             tree = \"r0\"\nuntil_cycle = 9",
            "only `wrong = \"tree\"` has another tree",
        ),
        (
            "[[armed.reduction]]\n[[armed.stranger]]\nend_point = 0\nreduction = \"r0\"\nwrong = \"vni\"",
            "a stranger has to stop",
        ),
        ("[switch]\ncollective_buffer_flits = 8", "cannot hold a reduction frame whole"),
        ("[[collective]]\nkind = \"barrier\"", "`collective` means nothing in the armed family"),
    ] {
        let error = refused(&format!("{base}{rest}\n"));
        assert!(error.contains(expected), "{rest}\n{error}");
        assert!(error.contains("--> test.toml:"), "{error}");
    }
}
