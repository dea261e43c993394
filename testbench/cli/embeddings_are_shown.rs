//! `watershed embed` shows trees and registers, and what it saves can be edited and loaded (P-EMB-1, P-EMB-3).

use serde_json::Value as Json;

use crate::support::{load, watershed};

#[test]
fn text_json_and_picture_tell_the_same() {
    let text = watershed(["embed", "fig2-hyperx"]).stdout;
    let json: Json = serde_json::from_str(&watershed(["embed", "fig2-hyperx", "--json"]).stdout).unwrap();
    let one = &json["collectives"][0];
    assert_eq!(one["root"], "n2_2_s0_core0");
    assert_eq!((one["depth_links"].as_u64(), one["depth_cycles"].as_u64()), (Some(2), Some(100)));
    assert!(text.contains("root          n2_2_s0_core0") && text.contains("depth         2 links, 100 cycles of them"));
    assert_eq!(one["links"]["inter-node"].as_u64(), Some(30), "fifteen links, each way");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.svg");
    let drawn = watershed(["embed", "fig2-hyperx", "--svg", file.to_str().unwrap()]);
    assert_eq!(drawn.status, 0, "{}", drawn.stderr);
    let picture = std::fs::read_to_string(file).unwrap();
    assert_eq!(picture.matches("stroke-width=\"2.4\"").count(), 15, "the tree's links are drawn in their colour");
    assert_eq!(picture.matches("#f6ad55").count(), 1, "one root");
}

#[test]
fn what_is_saved_can_be_edited_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.toml");
    let saved = watershed(["embed", "fig3-node", "--save", file.to_str().unwrap()]);
    assert_eq!(saved.status, 0, "{}", saved.stderr);
    let text = std::fs::read_to_string(&file).unwrap();
    let run = |set: &[String]| {
        let mut arguments: Vec<String> = ["run", "fig3-node", "--json"].map(String::from).to_vec();
        for set in set {
            arguments.extend(["--set".to_owned(), set.clone()]);
        }
        let output = watershed(&arguments);
        assert_eq!(output.status, 0, "{}{}", output.stderr, output.stdout);
        serde_json::from_str::<Json>(&output.stdout).unwrap()["collectives"].clone()
    };
    let loads = [format!("collective.0.embedding=\"{}\"", file.display())];
    let built_in = run(&[]);
    assert_eq!(run(&loads), built_in);
    // Edited: what core 0 of socket 0 of node n0_0 hands to core 2 goes over the second of their two links, which joins
    // port 8 to port 9.
    let mut edited = text.clone();
    for (of, to) in [
        (
            "n0_0_s0_core0.request = { I0 = [10], I2 = [10], I7 = [10], I10 = [5] }",
            "n0_0_s0_core0.request = { I0 = [10], I2 = [10], I7 = [10], I10 = [8] }",
        ),
        ("n0_0_s0_core2.request = { I2 = [10], I6 = [10],", "n0_0_s0_core2.request = { I2 = [10], I9 = [10],"),
        ("n0_0_s0_core0.response = { I5 =", "n0_0_s0_core0.response = { I8 ="),
        ("n0_0_s0_core2.response = { I0 = [2, 6, 7] }", "n0_0_s0_core2.response = { I0 = [2, 7, 9] }"),
    ] {
        assert_eq!(edited.matches(of).count(), 1, "{of}\n{text}");
        edited = edited.replace(of, to);
    }
    assert_ne!(edited, text);
    std::fs::write(&file, &edited).unwrap();
    let by_hand = run(&loads);
    assert_eq!(by_hand[0]["bit_exact"], true);
    assert_eq!(by_hand[0]["latency_cycles"], built_in[0]["latency_cycles"]);
    let shown = watershed(["embed", "fig3-node", "--registers", "--set", &loads[0]]).stdout;
    assert!(shown.contains("n0_0_s0_core2.response = { I0 = [2, 7, 9] }"), "{shown}");
    // An edit that is not legal is refused at the key that names the file.
    std::fs::write(&file, text.replace("I7 = [10], I10 = [5] }", "I7 = [10], I10 = [8] }")).unwrap();
    let refused = watershed(["embed", "fig3-node", "--set", &loads[0]]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("whose request register is empty"), "{}", refused.stderr);
    for (broken, why) in [("n0_0_s0_core0 = 3", "line 1"), ("x.request = { I7 = [2] }", "there is no switch \"x\"")] {
        std::fs::write(&file, broken).unwrap();
        let refused = watershed(["embed", "fig3-node", "--set", &loads[0]]);
        assert_eq!(refused.status, 2);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}

#[test]
fn collectives_are_chosen_by_name() {
    let both = watershed(["embed", "nodes-disjoint"]);
    assert!(both.stdout.contains("first row") && both.stdout.contains("second row"));
    let one = watershed(["embed", "nodes-disjoint", "--collective", "second row"]);
    assert!(!one.stdout.contains("first row") && one.stdout.contains("second row"));
    assert_eq!(watershed(["embed", "nodes-disjoint", "--job", "second row"]).stdout, one.stdout);
    for (arguments, error) in [
        (vec!["embed", "nodes-disjoint", "--collective", "x"], "there is no job \"x\""),
        (vec!["embed", "nodes-disjoint", "--save", "/nowhere/x"], "there are 2 trees"),
        (vec!["embed", "mesh-uniform"], "no job of this scenario has engines in the network"),
    ] {
        let output = watershed(&arguments);
        assert_eq!(output.status, 2);
        assert!(output.stderr.contains(error), "{}", output.stderr);
    }
}

#[test]
fn the_topology_of_nodes_says_which_port_carries_which_link() {
    let shown = watershed(["topology", "fig3-node"]);
    assert!(shown.stdout.contains("HSIO ports    24 a node: 6 join its sockets, 4 lead to other nodes, 14 are free"));
    assert!(shown.stdout.contains("  P0   n0_0_s1_core0.P0 inter-socket, 25 cycles"), "{}", shown.stdout);
    let big = watershed(["topology", "allreduce-16384-nodes"]).stdout;
    assert!(
        big.contains("HSIO ports    512 a node: 240 join its sockets, 254 lead to other nodes, 18 are free"),
        "{big}"
    );
    assert!(big.contains("links         2080768 inter-node, 50 cycles"), "{big}");
    let json: Json = serde_json::from_str(&watershed(["topology", "allreduce-16384-nodes", "--json"]).stdout).unwrap();
    assert_eq!(json["figures"]["end_points"], 2_097_152);
    let loaded = load("family = \"piuma\"\ntopology = { kind = \"nodes\", size = [2] }\n", &[]).unwrap();
    assert_eq!(loaded.scenario.link.socket_latency.unwrap().cycles, 25);
    assert_eq!(loaded.scenario.link.node_latency.unwrap().cycles, 50);
    assert_eq!(loaded.scenario.switch.point_to_point_vcs, 4);
    let asked = ["topology.latency=distance", "link.node_latency_ns=7", "link.socket_latency_cycles=3"];
    let loaded =
        load("family = \"piuma\"\ntopology = { kind = \"nodes\", size = [4], sockets = 2 }\n", &asked).unwrap();
    let layout = watershed::scenario::build::layout(&loaded).unwrap_or_else(|problems| panic!("{problems}"));
    let mut latencies: Vec<u16> = layout.plan.links.iter().map(|link| link.latency).collect();
    latencies.sort_unstable();
    latencies.dedup();
    assert_eq!(latencies, [1, 3, 5, 7, 14, 21]);
}
