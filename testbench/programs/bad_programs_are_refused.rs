//! What is wrong with programs and trees is said before cycle 0, at its place.

use crate::support::{die, refusal};

#[test]
fn a_wrong_instruction_has_its_line_and_a_caret() {
    let text = die("[[program]]\ntext = \"\"\"\n    mov r1, 1\n    mcast.snd 0, r1, 1, 8\n\"\"\"\n");
    let message = refusal(&text, &[]);
    assert!(message.contains("there is no instruction `mcast.snd`"), "{message}");
    assert!(message.contains("test.toml:7:5"), "{message}");
    assert!(message.contains("^^^^^^^^^"), "{message}");
    assert!(message.contains("did you mean `mcast.send`?"), "{message}");
}

#[test]
fn trees_and_programs_that_cannot_be_are_refused() {
    for (rest, why) in [
        ("[[multicast]]\nid = 4\nsource = 0\n", "no collective id 4"),
        ("[[multicast]]\nsource = 8\n", "there is no end point 8"),
        ("[[multicast]]\nsource = 1\nreceivers = [1]\n", "the source is among the receivers"),
        ("[[multicast]]\nsource = 1\nreceivers = [2, 2]\n", "listed twice"),
        ("[[collective]]\nkind = \"barrier\"\n[[multicast]]\nsource = 1\n", "id 0 belongs to a collective"),
        ("[[multicast]]\nsource = 0\n[[multicast]]\nsource = 0\nreceivers = [1]\n", "another tree with id 0"),
        ("[[multicast]]\nsource = 0\nreceivers = [1]\nregisters = { core0.request = { I7 = [2] } }\n", "core1"),
        ("[[program]]\n", "a program without a text"),
        ("[[program]]\nfile = \"nowhere.s\"\n", "there is no such file"),
        ("[[program]]\ntext = \"\"\nthreads = 65\n", "no place for so many threads"),
        ("[[program]]\ntext = \"\"\nthreads = 3\npipeline = \"stp\"\n", "no place for so many threads"),
        (
            "[[program]]\ntext = \".handler a\\na: iret\"\n[[program]]\ntext = \".handler a\\na: iret\"\n",
            "two interrupt handlers",
        ),
        ("[core]\nlocal_memory_words = 4\n[[program]]\ntext = \".words 16, 1, 2, 3\"\n", "do not fit"),
        ("[core]\nstps = 0\n[[program]]\ntext = \".handler a\\na: iret\"\n", "single-threaded pipelines"),
        ("[[collective]]\nkind = \"allreduce\"\ncalled = true\nelements = 4\n", "theirs to say"),
    ] {
        let message = refusal(&die(rest), &[]);
        assert!(message.contains(why), "{rest}\n{message}");
    }
}
