//! Programs that write configuration registers while the system runs: what is illegal is said at the store, or at the first
//! use of what was stored; legal changes between uses work (P-SW-1, P-SW-7, P-SW-9).

use std::fmt::Write;

use crate::support::{die, pass, run_with};
use watershed::scenario::result::Outcome;
use watershed::scenario::run::RunOptions;

/// The failed check of a run that must break a rule: the same in a system that is divided.
fn broken(text: &str) -> String {
    let detail = |threads: usize| {
        let document = run_with(text, &[], &RunOptions { threads, ..RunOptions::default() }).document;
        assert_eq!(document.outcome, Outcome::Broken);
        // What is still on its way when the run ends there is not lost.
        assert!(document.checks.iter().all(|check| check.passed || !check.name.starts_with("links")));
        let unended = document.checks.iter().filter(|check| !check.passed && check.name.starts_with("bit-exact"));
        unended.for_each(|check| assert!(check.detail.contains("did not end"), "{check:?}"));
        let failed = document.checks.iter().find(|check| !check.passed && check.name == "rules");
        failed.unwrap_or_else(|| panic!("no rule was broken: {:#?}\n{text}", document.checks)).detail.clone()
    };
    let whole = detail(1);
    assert_eq!(detail(3), whole);
    whole
}

/// An all-reduce that programs call, and a program of core 1.
fn program(text: &str) -> String {
    die(&format!(
        "[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\ndtype = \"i64\"\ncalled = true\n[[multicast]]\nid = 1\nsource = 1\n\
         receivers = [0]\n[[collective]]\nname = \"own\"\nkind = \"barrier\"\nid = 2\n\
         [[program]]\ncores = [1]\ntext = '''\n.equ CORE1, 0x2000000001000000\n{text}\n'''\n"
    ))
}

#[test]
fn each_kind_of_illegal_store_is_named_at_the_store() {
    for (store, why) in [
        // Id 0, request registers of core1: I7 and I2; then responses (0x400) and the operation (0x800).
        ("store [CORE1 + 0x38], 0x800", "request register I7 of core1, id 0: there is no port 11"),
        ("store [CORE1 + 0x38], 0x40", "request register I7 of core1, id 0: port 6 has no link"),
        ("store [CORE1 + 0x410], 0x400", "response register I2 of core1, id 0: it hands responses to the engine"),
        (
            "store [CORE1 + 0x50], 0x400",
            "request register I10 of core1, id 0: it hands the engine's own result to the engine",
        ),
        ("store [CORE1 + 0x800], 0xff", "no operation"),
        ("store [CORE1 + 0x808], 0xffff", "names a port above"),
        ("store [CORE1 + 0x2038], 4", "the tree of \"own\", which starts by itself"),
        ("store [CORE1 + 0x78], 4", "no register at"),
        ("store [CORE1 + 0x3c], 4", "not a multiple of 8"),
    ] {
        let detail = broken(&program(&format!("compute 200\n{store}")));
        assert!(detail.contains("core1, thread 0 on MTP 0, line 3") && detail.contains(why), "{store}: {detail}");
    }
    let few = program("compute 200\nstore [CORE1 + 0x38], 0x400")
        .replace("[[multicast]]", "[switch]\nceng.radix = 8\n[[multicast]]");
    let few = few.replace("CORE1 + 0x38", "CORE1 + 0x48");
    let refused = broken(
        &few.replace("[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\ndtype = \"i64\"\ncalled = true\n", ""),
    );
    assert!(refused.contains("the engine was built for ports 0 to 7"), "{refused}");
}

#[test]
fn a_register_of_a_tree_that_is_in_use_is_not_to_be_written() {
    // A vector of 400 words is under way when core 1 writes the register by which its own words leave.
    let calls = |store: &str| {
        die(&format!(
            "[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\ndtype = \"i64\"\ncalled = true\n[[program]]\ntext = '''\n\
             .random 0, 400, i64\nallreduce.nb r2, 0, 0, 0x4000, 400\nbne %core, 1, end\n{store}\nend: wait r2\n'''\n"
        ))
    };
    let detail = broken(&calls("compute 100\nstore [0x2000000001000038], 0x4"));
    assert!(detail.contains("id 0: it is in use: core0 called it in cycle"), "{detail}");
    // A message to a tree: in the CCE, in a switch, and on its way.
    for cycles in [1, 3, 5] {
        let detail = broken(&program(&format!("mcast.send 1, 7, 1, 8\ncompute {cycles}\nstore [CORE1 + 0x1038], 8")));
        assert!(detail.contains("request register I7 of core1, id 1: it is in use"), "{cycles}: {detail}");
    }
    // Another id is nobody's business.
    pass(&calls("compute 100\nstore [0x2000000001001038], 0x8"), &[]);
}

#[test]
fn a_tree_that_is_not_whole_is_named_at_its_first_use() {
    for (stores, why) in [
        ("store [CORE1 + 0x1038], 8", "empty"),
        ("store [CORE1 + 0x1038], 0", "empty"),
        ("store [CORE1 + 0x1038], 8\nstore [0x2000000003001018], 0x80", "nobody waits for it"),
        (
            "store [CORE1 + 0x1038], 8\nstore [0x2000000003001018], 4\nstore [0x2000000002001010], 0x10\n\
             store [0x2000000001001020], 8",
            "I7 and I4 of core1 both forward to port 3 without the engine",
        ),
    ] {
        let detail = broken(&program(&format!("compute 100\n{stores}\ncompute 20\nmcast.send 1, 7, 1, 8")));
        assert!(
            detail.contains("the registers of multicast tree 1 were written and are not legal"),
            "{stores}: {detail}"
        );
        assert!(detail.contains("core1, thread 0") && detail.contains(why), "{stores}: {detail}");
    }
    // Collectives: a way that ends, an operation that another engine does not do.
    let called = |stores: &str| {
        die(&format!(
            "[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\ndtype = \"i64\"\ncalled = true\n[[program]]\ntext = '''\n\
             .random 0, 4, i64\nbne %core, 1, all\n{stores}\nall: compute 200\nallreduce 0, 0, 0x4000, 4\n'''\n"
        ))
    };
    for (stores, why) in [
        ("store [0x2000000001000038], 0", "empty"),
        ("store [0x2000000001000038], 0x10", "collective \"sum\" were written and are not legal"),
        ("store [0x2000000000000800], 0", "the engine of core0 would do"),
    ] {
        let detail = broken(&called(stores));
        assert!(detail.contains("collective \"sum\"") && detail.contains(why), "{stores}: {detail}");
    }
}

/// Register values that `embed` prints, as stores of a program.
fn stores(root: &str) -> (String, String) {
    use watershed::piuma::Registers;
    use watershed::scenario::build::{BuildOptions, build};
    let text = |root: &str| {
        die(&format!(
            "[[collective]]\nname = \"sum\"\nkind = \"allreduce\"\ndtype = \"f32\"\ncalled = true\nroot = \"{root}\"\n"
        ))
    };
    let registers = |root: &str| -> Registers {
        let loaded = crate::support::load(&text(root), &[]);
        (*build(&loaded, BuildOptions::default()).unwrap_or_else(|e| panic!("{e}")).system.tables).clone()
    };
    let (old, new) = (registers("sw4"), registers(root));
    let mut list = String::new();
    for switch in 0..new.switches() {
        let vectors =
            [0, 1].into_iter().flat_map(|vc| (0..=10).map(move |port| Registers::vector_address(switch, 0, vc, port)));
        for address in vectors.chain([Registers::select_address(switch, 0)]) {
            let (before, after) = (old.load(address).unwrap(), new.load(address).unwrap());
            if before != after {
                let address = address | 0x2000_0000_0000_0000;
                let _ = writeln!(list, "store [{address:#x}], {after:#x}");
            }
        }
    }
    assert!(list.lines().count() > 10, "another root is another tree");
    (text("sw4"), list)
}

#[test]
fn a_tree_is_moved_between_two_calls_and_each_call_is_exact_on_its_own() {
    let (head, stores) = stores("core6");
    // Floating point, so that another tree gives other bits.
    let text = format!(
        "{head}[[collective]]\nname = \"here\"\nkind = \"barrier\"\nid = 1\ncalled = true\n[[program]]\ntext = '''\n\
         .random 0, 60, f32\nallreduce 0, 0, 0x4000, 60\nbarrier 1\nbne %core, 3, all\n{stores}all: barrier 1\n\
         allreduce 0, 0, 0x8000, 60\nload r1, [0x4000]\nload r2, [0x8000]\nreport r1\nreport r2\n'''\n"
    );
    let document = pass(&text, &[]);
    let programs = document.programs.expect("programs");
    let sums = programs.calls.iter().filter(|call| call.collective == "sum");
    assert_eq!(sums.map(|call| call.bit_exact).collect::<Vec<_>>(), [Some(true), Some(true)]);
    // Words went through the new root's engine in the second call only.
    let links = document.links.all.expect("all links");
    let flits = |name: &str| links.iter().find(|link| link.name == name).map_or(0, |link| link.flits);
    assert!(flits("sw6.P5 -> core6.P6") > 0, "{:?}", links.iter().filter(|link| link.flits > 0).collect::<Vec<_>>());
}
