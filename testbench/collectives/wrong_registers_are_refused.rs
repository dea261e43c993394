//! Every rule of the check before cycle 0 has configurations that break it, on a die and on a mesh; the message names
//! switch and port (P-SW-1, P-SW-7, P-SW-9).

use crate::support::{die, mesh, pass, refusal};

/// Two cores of a die tile: core 1 sends to core 0, which is the root.
const DIE: &str = "core1.request = { I7 = [2] }
core0.request = { I2 = [10], I7 = [10] }
core0.response = { I10 = [2, 7] }
core1.response = { I2 = [7] }
";

/// The same on a line of three switches: ports 0 and 1 lead to the neighbours, 2 is local, 3 is the engine.
const LINE: &str = "s0.request = { I2 = [0] }
s2.request = { I2 = [1] }
s1.request = { I0 = [3], I1 = [3], I2 = [3] }
s1.response = { I3 = [0, 1, 2] }
s0.response = { I0 = [2] }
s2.response = { I1 = [2] }
";

fn on_die(registers: &str) -> String {
    die(&format!("[[collective]]\nkind = \"allreduce\"\nparticipants = [0, 1]\n[collective.registers]\n{registers}"))
}

fn on_line(registers: &str) -> String {
    mesh(&[3], 1, &format!("[[collective]]\nkind = \"allreduce\"\n[collective.registers]\n{registers}"))
}

/// Replaces one line's part, asserting that it is there.
fn edit(registers: &str, from: &str, to: &str) -> String {
    assert!(registers.contains(from), "{from}");
    registers.replacen(from, to, 1)
}

fn refused(text: &str, parts: &[&str]) {
    let message = refusal(text, &[]);
    for part in parts {
        assert!(message.contains(part), "no \"{part}\" in\n{message}");
    }
}

#[test]
fn the_two_bases_are_right() {
    pass(&on_die(DIE), &[]);
    pass(&on_line(LINE), &[]);
}

#[test]
fn a_port_that_does_not_exist() {
    refused(&on_die(&edit(DIE, "I7 = [2]", "I7 = [11]")), &["port 11 does not exist", "core1"]);
    refused(&on_line(&edit(LINE, "I2 = [0]", "I2 = [4]")), &["port 4 does not exist", "s0"]);
    refused(&on_line(&edit(LINE, "{ I2 = [0]", "{ I9 = [0]")), &["port 9 does not exist", "s0"]);
}

#[test]
fn a_port_without_a_link() {
    refused(&on_die(&edit(DIE, "I7 = [2]", "I7 = [0]")), &["port 0 of core1 has no link"]);
    refused(&on_die(&edit(DIE, "I7 = [2]", "I7 = [6]")), &["port 6 of core1 has no link"]);
    refused(&on_line(&edit(LINE, "I2 = [0]", "I2 = [1]")), &["port 1 of s0 has no link"]);
}

#[test]
fn an_empty_register_on_the_way() {
    refused(
        &on_die(&edit(DIE, "core1.request = { I7 = [2] }\n", "")),
        &["core1", "port 7", "request register is empty"],
    );
    refused(
        &on_die(&edit(DIE, "core1.response = { I2 = [7] }\n", "")),
        &["core1", "port 2", "response register is empty"],
    );
    refused(&on_line(&edit(LINE, "s2.response = { I1 = [2] }\n", "")), &["s2", "port 1", "response register is empty"]);
}

#[test]
fn two_inputs_to_one_output_without_the_engine() {
    refused(
        &on_die("core1.request = { I7 = [2] }\ncore0.request = { I2 = [5], I7 = [5] }\nsw0.request = { I6 = [10] }\n"),
        &["I2 and I7 of core0 both forward to port 5", "without the engine"],
    );
    refused(
        &on_line(&edit(
            &edit(
                LINE,
                "s1.request = { I0 = [3], I1 = [3], I2 = [3] }",
                "s1.request = { I0 = [3], I1 = [0], I2 = [0] }",
            ),
            "s2.request = { ",
            "s2.request = { I1 = [3], ",
        )),
        &["of s1 both forward to port 0"],
    );
}

#[test]
fn an_engine_that_waits_for_nobody() {
    refused(&on_die(&edit(DIE, "I2 = [10],", "I2 = [10], I4 = [10],")), &["engine of core0", "port 4", "for ever"]);
    let alone = mesh(
        &[3],
        1,
        &format!("[[collective]]\nkind = \"allreduce\"\nparticipants = [0, 1]\n[collective.registers]\n{LINE}"),
    );
    // Port 0 of s1 leads to s2, which sends nothing.
    refused(&alone, &["engine of s1", "port 0", "for ever"]);
}

#[test]
fn circles() {
    // A packet cannot enter a circle but by an output that the circle feeds as well: that is where it is seen.
    // A response that comes back to where it was.
    refused(
        &on_die(
            "core1.request = { I7 = [2] }\ncore0.request = { I2 = [10], I7 = [10] }\n\
             core0.response = { I10 = [2, 7], I3 = [2] }\ncore1.response = { I2 = [7, 3] }\n\
             core3.response = { I3 = [2] }\ncore2.response = { I2 = [3] }\n",
        ),
        &["I10 and I3 of core0 both forward to port 2"],
    );
    // Requests that run round a tile and never reach an engine.
    refused(
        &on_die(
            "core1.request = { I7 = [2], I4 = [2] }\ncore0.request = { I2 = [3], I7 = [10] }\ncore2.request = { I3 = [4] }\n",
        ),
        &["I7 and I4 of core1 both forward to port 2"],
    );
    // A multicast that comes back.
    refused(
        &die("[[collective]]\nkind = \"broadcast\"\nparticipants = [1, 0]\n[collective.registers]\n\
             core1.request = { I7 = [2], I4 = [2] }\ncore0.request = { I2 = [7, 3] }\ncore2.request = { I3 = [4] }\n"),
        &["I7 and I4 of core1 both forward to port 2"],
    );
    // An engine that waits for its own result to come back.
    refused(
        &on_die(
            "core1.request = { I7 = [2] }\ncore0.request = { I2 = [10], I3 = [10], I7 = [10], I10 = [3] }\n\
             core2.request = { I3 = [3] }\n",
        ),
        &["engine of core0", "port 3", "for ever"],
    );
    // Two engines that wait for each other's results, on a line.
    refused(
        &on_line(
            "s0.request = { I2 = [3], I0 = [3], I3 = [0] }\ns1.request = { I1 = [3], I2 = [3], I0 = [3], I3 = [1] }\n\
             s2.request = { I2 = [1] }\n",
        ),
        &["the engine of s0 would wait for port 0 for ever"],
    );
    // A response that runs round a square of four switches.
    refused(
        &mesh(
            &[2, 2],
            1,
            "[[collective]]\nkind = \"allreduce\"\n[collective.registers]\ns1_0.request = { I4 = [1] }\n\
             s1_1.request = { I4 = [1] }\ns0_1.request = { I0 = [5], I4 = [5], I5 = [3] }\n\
             s0_0.request = { I0 = [5], I2 = [5], I4 = [5] }\ns0_0.response = { I5 = [0, 4], I2 = [0] }\n\
             s1_0.response = { I1 = [2, 4] }\ns1_1.response = { I3 = [1, 4] }\ns0_1.response = { I0 = [3, 4] }\n",
        ),
        &["I5 and I2 of s0_0 both forward to port 0"],
    );
}

#[test]
fn no_root() {
    refused(
        &on_die("core1.request = { I7 = [2] }\ncore0.request = { I2 = [10], I7 = [10] }\n"),
        &["engine of core0 has a result and no register says where it goes"],
    );
    refused(&on_line(&edit(LINE, "s1.response = { I3 = [0, 1, 2] }\n", "")), &["engine of s1 has a result"]);
    // Requests that go straight to the other core meet no engine at all.
    refused(
        &on_die(
            "core1.request = { I7 = [2] }\ncore0.request = { I2 = [7], I7 = [2] }\ncore1.response = { I2 = [7] }\n",
        ),
        &["I2 of core0 sends a request out of port 7"],
    );
}

/// A core's request that leaves by the core's own port: the core would take it for a result, and then there is one too many.
#[test]
fn a_request_that_leaves_by_a_cores_port_is_no_delivery() {
    refused(
        &on_die(&edit(DIE, "core1.request = { I7 = [2] }", "core1.request = { I7 = [2, 7] }")),
        &["collective \"c0\", id 0: I7 of core1 sends a request out of port 7", "core1.request", "^"],
    );
    refused(
        &on_line(&edit(LINE, "I2 = [1]", "I2 = [1, 2]")),
        &["id 0: I2 of s2 sends a request out of port 2", "s2.request"],
    );
    // The responses alone would reach everybody.
    const TREE: &str = include_str!("../bad/request-to-own-core.toml");
    refused(TREE, &["collective \"job0\", id 0: I7 of core3 sends a request out of port 7", "core3.request"]);
    pass(&edit(TREE, "I7 = [4, 7]", "I7 = [4]"), &[]);
    // The end point need not take part.
    refused(
        &on_die(&(edit(DIE, "I7 = [2]", "I7 = [3]") + "core3.request = { I3 = [7] }\n")),
        &["I3 of core3 sends a request out of port 7"],
    );
}

#[test]
fn a_request_that_takes_two_ways() {
    // Both ends of the die sum it up: its contribution would count twice.
    refused(
        &on_die(
            &(edit(&edit(DIE, "I7 = [2]", "I7 = [2, 4]"), "I2 = [10],", "I2 = [10], I4 = [10],")
                + "core2.request = { I4 = [2] }\ncore3.request = { I2 = [4] }\n"),
        ),
        &["id 0: I7 of core1 sends a request two ways, by ports 2 and 4"],
    );
    // So would what an engine makes of its inputs.
    refused(
        &on_line(
            "s0.request = { I2 = [0] }\ns2.request = { I2 = [3], I1 = [3] }\ns1.request = { I1 = [3], I2 = [3], I3 = [0, 1] }\n\
             s2.response = { I3 = [1, 2] }\ns1.response = { I0 = [1, 2] }\ns0.response = { I0 = [2] }\n",
        ),
        &["id 0: I3 of s1 sends a request two ways, by ports 0 and 1"],
    );
}

#[test]
fn a_result_that_arrives_twice_or_never() {
    // Core 0 gets it from its engine, and once more from core 1.
    refused(
        &on_die(&edit(
            &edit(DIE, "core1.response = { I2 = [7] }", "core1.response = { I2 = [2, 7] }"),
            "core0.response = { ",
            "core0.response = { I2 = [7], ",
        )),
        &["collective \"c0\", id 0: the result arrives twice at port 7 of core0, by I10 and by I2"],
    );
    // A multicast delivers by requests: two ways to one core are two deliveries.
    let broadcast = "[[collective]]\nid = 3\nkind = \"broadcast\"\nparticipants = [1, 0]\n[collective.registers]\n\
                     core1.request = { I7 = [2, 3] }\ncore3.request = { I3 = [4] }\ncore0.request = { I2 = [7], I4 = [7] }\n";
    let message = refusal(&die(broadcast), &[]);
    assert!(message.contains("id 3: the result arrives twice at port 7 of core0, by I"), "{message}");
    refused(
        &on_die(&edit(DIE, "I10 = [2, 7]", "I10 = [2]")),
        &["collective \"c0\", id 0: the result does not reach port 7 of core0"],
    );
}

#[test]
fn several_roots() {
    refused(
        &on_die(
            "core1.request = { I7 = [10] }\ncore0.request = { I7 = [10] }\ncore0.response = { I10 = [7] }\ncore1.response = { I10 = [7] }\n",
        ),
        &["both core", "are roots"],
    );
    refused(
        &on_line(
            "s0.request = { I2 = [3] }\ns1.request = { I2 = [3] }\ns2.request = { I2 = [3] }\ns0.response = { I3 = [2] }\ns1.response = { I3 = [2] }\ns2.response = { I3 = [2] }\n",
        ),
        &["are roots", "s0"],
    );
}

#[test]
fn responses_and_results_that_enter_an_engine() {
    refused(
        &on_die(&edit(DIE, "core1.response = { I2 = [7] }", "core1.response = { I2 = [7, 10] }")),
        &["core1 hands responses to its engine"],
    );
    refused(
        &on_line(&edit(LINE, "s0.response = { I0 = [2] }", "s0.response = { I0 = [2, 3] }")),
        &["s0 hands responses to its engine"],
    );
    refused(
        &on_die(&edit(DIE, "I7 = [10] }", "I7 = [10], I10 = [10] }")),
        &["engine of core0 would wait for port 10 for ever"],
    );
}

#[test]
fn a_result_that_misses_somebody_or_reaches_a_stranger() {
    refused(&on_die(&edit(DIE, "I10 = [2, 7]", "I10 = [2]")), &["does not reach port 7 of core0"]);
    refused(&on_line(&edit(LINE, "I3 = [0, 1, 2]", "I3 = [1, 2]")), &["does not reach port 2 of s2"]);
    refused(
        &on_die(&(edit(DIE, "I10 = [2, 7]", "I10 = [2, 3, 7]") + "core2.response = { I3 = [7] }\n")),
        &["reaches port 7 of core2", "nobody waits"],
    );
    let two = mesh(
        &[3],
        1,
        &format!(
            "[[collective]]\nkind = \"allreduce\"\nparticipants = [0, 1]\n[collective.registers]\n{}",
            edit(LINE, "I0 = [3], ", "")
        ),
    );
    refused(&two, &["reaches port 2 of s2", "nobody waits"]);
}

#[test]
fn an_engine_that_was_built_for_fewer_ports() {
    let small = |text: String, radix: u32| {
        text.replacen("[[collective]]", &format!("[switch.ceng]\nradix = {radix}\n[[collective]]"), 1)
    };
    refused(&small(on_die(DIE), 7), &["port 7 of core0", "built for ports 0 to 6"]);
    pass(&small(on_die(DIE), 8), &[]);
    refused(&small(on_line(LINE), 2), &["port 2 of s1", "built for ports 0 to 1"]);
}

#[test]
fn a_broadcast_with_an_engine() {
    let text = |registers: &str| {
        die(&format!(
            "[[collective]]\nkind = \"broadcast\"\nparticipants = [1, 0]\n[collective.registers]\n{registers}"
        ))
    };
    pass(&text("core1.request = { I7 = [2] }\ncore0.request = { I2 = [7] }\n"), &[]);
    refused(
        &text("core1.request = { I7 = [2] }\ncore0.request = { I2 = [10], I10 = [7] }\n"),
        &["core0 hands a multicast to its engine"],
    );
    refused(
        &text("core1.request = { I7 = [2, 3] }\ncore0.request = { I2 = [7] }\ncore3.request = { I3 = [7] }\n"),
        &["reaches port 7 of core3", "nobody waits"],
    );
}

#[test]
fn a_reduction_that_reaches_nobody() {
    let text = die(
        "[[collective]]\nkind = \"reduce\"\nparticipants = [0, 1]\n[collective.registers]\ncore1.request = { I7 = [2] }\n\
        core0.request = { I2 = [10], I7 = [10] }\ncore0.response = { I10 = [3] }\ncore2.response = { I3 = [7] }\n",
    );
    refused(&text, &["the result reaches port 7 of core2", "nobody waits"]);
}

#[test]
fn the_message_points_at_the_register() {
    let message =
        refusal(&on_die(&edit(DIE, "core1.response = { I2 = [7] }", "core1.response = { I2 = [7, 10] }")), &[]);
    assert!(message.contains("test.toml:") && message.contains('^') && message.contains("core1.response"), "{message}");
}
