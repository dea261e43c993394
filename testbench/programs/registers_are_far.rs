//! Accesses to configuration registers take the crossbar and the way to their switch, both ways (H-CFG-1).

use crate::sets;
use crate::support::{die, pass};

/// Cycles that core 0 takes for an access to a register of a switch.
fn access(access: &str, sets: &[String]) -> u64 {
    let text = die(&format!(
        "[[multicast]]\nid = 1\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [0]\ntext = '''\nmov r3, %cycle\n{access}\n\
         mov r4, %cycle\nsub r5, r4, r3\nsub r5, r5, 1\nreport r5\n'''\n"
    ));
    let programs = pass(&text, sets).programs.expect("programs");
    let report = &programs.cores[0].reports[0].value;
    u64::from_str_radix(report.trim_start_matches("0x"), 16).expect("a hexadecimal number")
}

/// The request register I7 of a switch of the die for id 0, which nobody uses: switches are numbered along the row.
fn register(switch: u64) -> u64 {
    0x2000_0000_0000_0038 + (switch << 24)
}

#[test]
fn a_register_of_the_own_switch_is_one_crossbar_and_one_link_away() {
    for (xbar, local) in [(1u64, 1u64), (10, 1), (3, 7)] {
        let set = sets!["core.xbar_cycles={xbar}"; "link.local_latency_cycles={local}"];
        let own = register(0);
        for what in [format!("load r1, [{own:#x}]"), format!("store [{own:#x}], 4")] {
            assert_eq!(access(&what, &set), 2 * (xbar + local), "{what}");
        }
    }
}

#[test]
fn a_register_of_another_switch_is_as_far_as_a_packet_goes() {
    // From core 0 to the other switches of its tile one step, to those of the last tile three or four.
    let load = |switch: u64, latency: u64| {
        access(&format!("load r1, [{:#x}]", register(switch)), &sets!["link.latency_cycles={latency}"])
    };
    for (switch, steps) in [(1, 1u64), (3, 1), (4, 1), (5, 2), (12, 3), (15, 4)] {
        assert_eq!(load(switch, 25) - load(switch, 5), 2 * 20 * steps, "switch {switch}");
        let through = (load(switch, 5) - load(0, 5)) / 2 - 5 * steps;
        assert_eq!(through % steps, 0, "each switch on the way takes the same");
        assert!((1..10).contains(&(through / steps)), "{through}");
    }
}

#[test]
fn a_thread_loads_what_it_has_stored_and_others_see_it_when_it_is_there() {
    let text = |wait: u64| {
        let register = register(5);
        die(&format!(
            "[core]\nxbar_cycles = 20\n[[multicast]]\nid = 1\nsource = 0\nreceivers = [1]\n[[program]]\ncores = [0]\ntext = '''\n\
             store [{register:#x}], 4\nload r1, [{register:#x}]\nexpect r1, 4\n'''\n[[program]]\ncores = [2]\ntext = '''\n\
             compute {wait}\nload r4, [{register:#x}]\nreport r4\n'''\n"
        ))
    };
    let seen = |wait: u64| {
        let programs = pass(&text(wait), &[]).programs.expect("programs");
        let core = programs.cores.iter().find(|core| core.core == 2).expect("core 2 ran");
        core.reports[0].value == "0x4"
    };
    // Two cores of one tile, as far from the switch as each other: whoever comes behind sees it.
    let first = (1..60).find(|&wait| seen(wait)).expect("a late load sees the store");
    assert!((1..4).contains(&first), "{first}");
    assert!((first..first + 10).all(seen));
}
