//! Configuration through the side port takes the cycles of its bits (paragraph 139).

use std::path::Path;

use watershed::scenario::run::{RunOptions, run};
use watershed::scenario::{cost, load_text};

fn scenario(switches: u32, nodes: u32, keys: &str) -> String {
    format!(
        "family = \"pbv\"\n[topology]\nkind = \"flattened-butterfly\"\nsize = [{switches}]\nconcentration = {nodes}\n\
         [pbv.setup]\n{keys}\n[[pbv.collective]]\nname = \"sum\"\n"
    )
}

fn initialise_cycle(switches: u32, nodes: u32, keys: &str) -> u64 {
    let text = scenario(switches, nodes, &format!("configuration = \"side-port\"\n{keys}"));
    let loaded = load_text("test", &text, Path::new(""), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let document = run(&loaded, &RunOptions::default()).unwrap().document;
    assert!(document.passed(), "{:?}", document.checks);
    assert_eq!(document.pbv.as_ref().unwrap().outcomes.complete, 1);
    serde_json::to_value(&document).unwrap()["config"]["derived"]["pbv_initialise_cycle"].as_u64().unwrap()
}

#[test]
fn tables_are_there_when_the_last_bit_is() {
    for (switches, nodes) in [(2u32, 3u32), (5, 2), (4, 9)] {
        assert_eq!(initialise_cycle(switches, nodes, ""), 0);
        // The master's table has the engines below it and its nodes, the others their nodes; the ports to other switches are two
        // registers of each.
        let registers = u64::from(switches - 1 + switches * nodes + 5 * switches);
        let cycles = initialise_cycle(switches, nodes, "side_port_cycles_per_bit = 20");
        assert_eq!(cycles, registers * 48 * 20 + 1, "{switches} {nodes}");
        let four = initialise_cycle(switches, nodes, "side_port_cycles_per_bit = 20\nside_port_lines = 4");
        assert_eq!(four, registers * 12 * 20 + 1, "{switches} {nodes}");
    }
}

#[test]
fn an_engine_knows_nobody_before_its_table_is_there() {
    let keys = "configuration = \"side-port\"\nside_port_cycles_per_bit = 100\ninitialise_cycle = 10";
    let loaded = load_text("test", &scenario(3, 2, keys), Path::new(""), "test", &[]).unwrap();
    let document = run(&loaded, &RunOptions::default()).unwrap().document;
    let refused = document.pbv.unwrap().engines.refused;
    assert!(refused.get("unknown-device").is_some(), "{refused:?}");
}

#[test]
fn a_side_port_costs_pins_and_gates_and_only_it_has_its_keys() {
    let of = |keys: &str| {
        let loaded = load_text("test", &scenario(3, 2, keys), Path::new(""), "test", &[]).unwrap();
        let cost = cost::cost(&loaded).unwrap();
        cost.blocks.into_iter().find(|block| block.block == "side port")
    };
    assert!(of("").is_none());
    let port = of("configuration = \"side-port\"\nside_port_lines = 4").unwrap();
    assert!(port.detail.starts_with("7 pins") && port.count == 3 && port.each.gates > 0, "{port:?}");
    for key in ["side_port_cycles_per_bit = 3", "side_port_lines = 2"] {
        let problems = load_text("test", &scenario(3, 2, key), Path::new(""), "test", &[]).unwrap_err().to_string();
        assert!(problems.contains("only a side port has"), "{problems}");
    }
}
