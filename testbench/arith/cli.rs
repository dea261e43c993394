//! The arithmetic on the command line: `alu`, `testfloat`, `reduce`, `exhaustive`, through the program.

use assert_cmd::Command;
use watershed::arith::quad::OPCODES;
use watershed::arith::{DType, Op, Round};
use watershed::oracle::soft::{self, FloatOp, Predicate};

use crate::share;
use crate::vectors::{Random, corners, seed};

struct Output {
    status: i32,
    stdout: String,
    stderr: String,
}

fn watershed(arguments: &[&str], input: &str) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .write_stdin(input)
        .output()
        .expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    let output = Output {
        status: output.status.code().expect("no signal ended the program"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(!output.stderr.contains("panicked"), "{arguments:?}: {}", output.stderr);
    output
}

#[test]
fn alu_gives_result_flags_and_stages() {
    let output = watershed(
        &["alu", "--op", "sum", "--type", "f32", "--round", "up", "--stages", "0x3f800001", "0x33800000"],
        "",
    );
    assert_eq!(output.status, 0, "{}", output.stderr);
    for expected in ["result  0x3f800002", "flags   inexact", "oracle  agrees", "stage 6 of 6: done", "aligned", "tiny"]
    {
        assert!(output.stdout.contains(expected), "{expected}: {}", output.stdout);
    }
    let cut = watershed(&["alu", "--op", "mul", "--type", "f16", "--stages=2", "0x3c00", "0x4000"], "");
    assert!(cut.stdout.contains("stage 2 of 2") && cut.stdout.contains("result  0x4000  2"), "{}", cut.stdout);
}

/// One in five of the operations on types in `make test`: each operation, and each type, has its own.
#[test]
fn alu_knows_every_operation_and_many_operands() {
    let ops = [
        "sum", "sub", "prod", "min", "max", "eq", "le", "lt", "and", "or", "xor", "nand", "nor", "xnor", "minnum",
        "maxnum",
    ];
    let dtypes = ["i32", "u64", "f16", "bf16", "tf32", "f32", "f64", "fp8_e4m3", "fp8_e5m2"];
    for (op, dtype) in share::one_in(5, ops.into_iter().flat_map(|op| dtypes.map(|dtype| (op, dtype)))) {
        let output = watershed(&["alu", "--op", op, "--type", dtype, "--stages=3", "0x7f", "1", "0x80"], "");
        assert_eq!(output.status, 0, "{op} {dtype}: {} {}", output.stdout, output.stderr);
        assert_eq!(output.stdout.matches("oracle  agrees").count(), 2, "{op} {dtype}: {}", output.stdout);
    }
    let nan = watershed(
        &["alu", "--op", "minnum", "--type", "f64", "--signal", "ieee", "3ff0000000000000", "7ff0000000000001"],
        "",
    );
    assert!(nan.stdout.contains("NaN") && nan.stdout.contains("invalid"), "{}", nan.stdout);
    let rep = watershed(&["alu", "--op", "repsum", "--type", "f64", "3ff0000000000000", "1", "bff0000000000000"], "");
    assert!(rep.stdout.contains("REP_INEXACT") && rep.stdout.contains("m       0"), "{}", rep.stdout);
    let place = watershed(&["alu", "--op", "minmaxloc", "--type", "i64", "--stages", "5", "3", "3"], "");
    assert!(place.stdout.contains("3  at 1") && place.stdout.contains("5  at 0"), "{}", place.stdout);
}

#[test]
fn alu_refuses_what_it_cannot_do() {
    for arguments in [
        &["alu", "--op", "sum", "--type", "f32", "1"][..],
        &["alu", "--op", "summ", "--type", "f32", "1", "2"],
        &["alu", "--op", "sum", "--type", "f31", "1", "2"],
        &["alu", "--op", "sum", "--type", "f16", "0x10000", "2"],
        &["alu", "--op", "sum", "--type", "f16", "xyz", "2"],
        &["alu", "--op", "sum", "--type", "f16", "", "2"],
        &["alu", "--op", "repsum", "--type", "f32", "1", "2"],
        &["alu", "--op", "barrier", "--type", "f32", "1", "2"],
        &["alu", "--op", "sum", "--type", "f32", "--stages=7", "1", "2"],
    ] {
        let output = watershed(arguments, "");
        assert_eq!(output.status, 2, "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

/// Lines as `testfloat_gen` writes them, from SoftFloat itself.
fn vectors(dtype: DType, function: &str, round: Round) -> Vec<String> {
    let mut random = Random::new(seed(0x5eed_00a0));
    let corners = corners(dtype);
    let mut pairs: Vec<(u64, u64)> =
        corners.iter().map(|&a| (a, corners[random.below(corners.len() as u64) as usize])).collect();
    pairs.extend((0..200).map(|_| random.pair(dtype)));
    let digits = dtype.bits() as usize / 4;
    let operation = |op, a, b| soft::operate(op, dtype, round, a, b).unwrap();
    let truth = |predicate, a, b| {
        let (truth, flags) = soft::predicate(predicate, dtype, a, b).unwrap();
        (u64::from(truth), flags)
    };
    pairs
        .into_iter()
        .map(|(a, b)| {
            let (result, flags) = match function {
                "add" => operation(FloatOp::Add, a, b),
                "sub" => operation(FloatOp::Sub, a, b),
                "mul" => operation(FloatOp::Mul, a, b),
                "eq" => truth(Predicate::Equal, a, b),
                "le" => truth(Predicate::LessOrEqual, a, b),
                _ => truth(Predicate::Less, a, b),
            };
            let width = if ["eq", "le", "lt"].contains(&function) { 1 } else { digits };
            format!("{a:0digits$X} {b:0digits$X} {result:0width$X} {:02X}", flags.bits())
        })
        .collect()
}

#[test]
fn testfloat_passes_every_function_mode_and_depth() {
    for (k, dtype) in [DType::F16, DType::F32, DType::F64].into_iter().enumerate() {
        for (j, function) in ["add", "sub", "mul", "eq", "le", "lt"].into_iter().enumerate() {
            let round = Round::ALL[(k + j) % 4];
            let lines = vectors(dtype, function, round);
            let (name, stages) = (format!("{dtype}_{function}"), (1 + (k + j) % 6).to_string());
            let output =
                watershed(&["testfloat", &name, "--round", round.name(), "--stages", &stages], &lines.join("\n"));
            assert_eq!(output.status, 0, "{name}: {}{}", output.stdout, output.stderr);
            let mode = match (function, round) {
                ("eq" | "le" | "lt", _) => "",
                (_, Round::NearestEven) => ", rounding near_even",
                (_, Round::TowardZero) => ", rounding minMag",
                (_, Round::Up) => ", rounding max",
                (_, Round::Down) => ", rounding min",
            };
            let tininess = if function == "mul" { ", tininess after rounding" } else { "" };
            let count = lines.len();
            assert_eq!(output.stdout, format!("In {count} tests, no errors found in {name}{mode}{tininess}.\n"));
        }
    }
}

#[test]
fn testfloat_reports_wrong_values_and_wrong_flags() {
    // 1 + 1 = 2, a wrong value, a wrong flag, and a right one behind them
    let input = "3C00 3C00 4000 00\n3C00 3C00 4001 00\n3C00 3C00 4000 01\n8001 0001 0000 00\n";
    let output = watershed(&["testfloat", "f16_add", "--stages", "3"], input);
    assert_eq!(output.status, 1);
    assert!(output.stdout.contains("+0F.000  +0F.000  => +10.000 .....  expected +10.001 ....."), "{}", output.stdout);
    assert!(output.stdout.contains("=> +10.000 .....  expected +10.000 ....x"), "{}", output.stdout);
    assert!(
        output.stdout.starts_with("Errors found in f16_add, rounding near_even:\n+0F.000  +0F.000  => ")
            && output.stdout.ends_with("4 tests performed; 2 errors found.\n"),
        "{}",
        output.stdout
    );
    // Doubles fill the line.
    let input = "3FF0000000000000 BFF0000000000000 0000000000000001 00\r\n";
    assert_eq!(
        watershed(&["testfloat", "f64_add"], input).stdout,
        "Errors found in f64_add, rounding near_even:\n\
         +3FF.0000000000000  -3FF.0000000000000\n\
         \t=> +000.0000000000000 .....  expected +000.0000000000001 .....\n\
         1 tests performed; 1 error found.\n"
    );
    // The rounding mode matters.
    let tie = "3C00 1000 3C01 01\n";
    assert_eq!(watershed(&["testfloat", "f16_add", "--round", "up"], tie).status, 0);
    assert_eq!(watershed(&["testfloat", "f16_add", "--round", "minMag"], tie).status, 1);
}

#[test]
fn testfloat_says_where_its_input_is_bad() {
    for (input, at) in [
        ("3C00 3C00 4000 00\n3C00 3C00 4000\n", "line 2"),
        ("3C00 3C00 4000 00 00\n", "line 1"),
        ("3C00 3C0G 4000 00\n", "3C0G"),
        ("13C00 3C00 4000 00\n", "line 1: the operand 13C00 does not fit the 16 bits of f16"),
        ("3C00 3C00 4000 20\n", "line 1: the flags 20 are not from 00 to 1F"),
        ("3C00 3C00 14000 00\n", "line 1: the result 14000 is not a number of 16 bits"),
        ("", "no test cases"),
    ] {
        let output = watershed(&["testfloat", "f16_add"], input);
        assert_eq!(output.status, 2, "{input:?}");
        assert!(output.stderr.contains(at), "{input:?}: {}", output.stderr);
    }
    for name in ["f16", "f16_div", "f128_add", "bf16_add"] {
        assert_eq!(watershed(&["testfloat", name], "").status, 2);
    }
}

const F32: [&str; 4] = ["4b800000", "3f800000", "3f800000", "cb800000"];

fn reduce(more: &[&str], input: &str) -> Output {
    let mut arguments = vec!["reduce"];
    arguments.extend(more);
    watershed(&arguments, input)
}

#[test]
fn reduce_follows_the_order_and_knows_the_exact_value() {
    let sum = |order: &str| {
        let mut arguments = vec!["--op", "sum", "--type", "f32", "--order", order];
        arguments.extend(F32);
        let output = reduce(&arguments, "");
        assert_eq!(output.status, 0, "{}", output.stderr);
        output.stdout
    };
    // (2^24 + 1) + (1 - 2^24) = 1; one after another 0; with 2^24 - 2^24 first 2
    assert!(sum("tree").contains("result  0x3f800000  1\n"), "{}", sum("tree"));
    assert!(sum("arrival").contains("result  0x00000000  0\n"));
    assert!(sum("0,3,1,2").contains("result  0x40000000  2\n"));
    for order in ["tree", "arrival", "0,3,1,2"] {
        assert!(sum(order).contains("exact   2\n"));
    }
    assert!(sum("0,3,1,2").contains("error   0.000 ulp"));
    assert!(sum("tree").contains("flags   inexact"));
}

#[test]
fn reduce_reads_text_and_json() {
    let text = "# four\n4b800000 3f800000\n0x3f800000, cb800000\n";
    let list = r#"["4b800000", "3f800000", "0x3f800000", "cb800000"]"#;
    let object = format!(r#"{{"operands": {list}}}"#);
    let results: Vec<String> = [text, list, &object]
        .into_iter()
        .map(|input| reduce(&["--op", "sum", "--type", "f32", "--input", "-"], input).stdout)
        .collect();
    assert!(results[0].contains("of 4 f32 operands"));
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    let integers = reduce(&["--op", "sum", "--type", "i32", "--json"], "[2147483647, 1, -1, \"fffffffe\"]");
    let json: serde_json::Value = serde_json::from_str(&integers.stdout).expect("JSON");
    assert_eq!((json["result"].as_str(), json["exact"].as_str()), (Some("0x7ffffffd"), Some("2147483645")));
    assert_eq!(json["flags"][0], "int_overflow");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    assert_eq!(
        reduce(&["--op", "sum", "--type", "f32", "--input", file.path().to_str().unwrap()], "").stdout,
        results[0]
    );
}

#[test]
fn the_piuma_engine_gives_what_the_bare_tree_gives_whatever_arrives_first() {
    let mut random = Random::new(seed(0x5eed_00a1));
    for count in [1usize, 2, 9, 10, 11, 37, 230] {
        let input = (0..count).map(|_| format!("{:016x}", random.lane(DType::F64))).collect::<Vec<_>>().join("\n");
        for op in ["sum", "min", "prod"] {
            let lines = |more: &[&str]| {
                let mut arguments = vec!["--op", op, "--type", "f64", "--json"];
                arguments.extend(more);
                let output = reduce(&arguments, &input);
                assert_eq!(output.status, 0, "{more:?} {}", output.stderr);
                let json: serde_json::Value = serde_json::from_str(&output.stdout).expect("JSON");
                (json["result"].clone(), json["flags"].clone())
            };
            let bare = lines(&[]);
            assert_eq!(lines(&["--family", "piuma"]), bare, "{op} of {count}");
            assert_eq!(lines(&["--family", "piuma", "--order", "arrival"]), bare, "{op} of {count}");
        }
    }
}

#[test]
fn all_orders_show_which_operation_depends_on_them() {
    let mut random = Random::new(7);
    let input = (0..64)
        .map(|_| format!("{:016x}", random.word() & !(0x7ff << 52) | (993 + random.below(61)) << 52))
        .collect::<Vec<_>>()
        .join("\n");
    let distinct = |more: &[&str]| {
        let mut arguments = vec!["--type", "f64", "--json", "--all-orders", "200"];
        arguments.extend(more);
        let output = reduce(&arguments, &input);
        assert_eq!(output.status, 0, "{}", output.stderr);
        let json: serde_json::Value = serde_json::from_str(&output.stdout).expect("JSON");
        let total: u64 = json["results"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
        assert_eq!(total, 200);
        json["distinct"].as_u64().unwrap()
    };
    assert!(distinct(&["--op", "sum", "--order", "arrival"]) > 3);
    assert!(distinct(&["--op", "sum"]) > 3);
    assert_eq!(distinct(&["--op", "repsum", "--order", "arrival"]), 1);
    assert_eq!(distinct(&["--op", "max"]), 1);
    assert_eq!(distinct(&["--op", "sum", "--family", "piuma", "--order", "arrival"]), 1);
    assert!(distinct(&["--op", "sum", "--family", "piuma"]) > 3);
    let text = reduce(&["--op", "sum", "--type", "f64", "--all-orders", "50", "--order", "arrival"], &input);
    assert!(text.stdout.contains("50 orders (seed 1)") && text.stdout.contains("ulp"), "{}", text.stdout);
}

#[test]
fn reduce_refuses_bad_input() {
    for (arguments, input, message) in [
        (&["--op", "sum", "--type", "f32"][..], "", "no operands"),
        (&["--op", "sum", "--type", "f32"], "3f80000000", "line 1"),
        (&["--op", "sum", "--type", "f32"], "[1.5,\n1e39]", "operand 1 in line 2: 1e39 is no f32: it is too large"),
        (&["--op", "sum", "--type", "f32"], "[1, [2]]", "operand 1: [2]"),
        (&["--op", "sum", "--type", "f32"], "[\"1\", \"g\"]", "operand 1 in line 1: `g`"),
        (&["--op", "sum", "--type", "f32"], "{\"operand\": [1]}", "unknown field `operand`, expected `operands`"),
        (&["--op", "sum"], "1 2", "--type is missing"),
        (&["--type", "f32"], "1 2", "--op is missing"),
        (&["--op", "sum", "--type", "f32"], "[\"1\"", "standard input"),
        (&["--op", "sum", "--type", "i32"], "[2147483648]", "is no i32"),
        (&["--op", "sum", "--type", "f32", "--order", "0,0"], "1 2", "twice"),
        (&["--op", "sum", "--type", "f32", "--order", "0"], "1 2", "missing"),
        (&["--op", "sum", "--type", "f32", "--order", "0,2"], "1 2", "no operand 2"),
        (&["--op", "sum", "--type", "f32", "--order", "tee"], "1 2", "tee"),
        (&["--op", "barrier", "--type", "f32"], "1 2", "barrier"),
        (&["--op", "repsum", "--type", "f32"], "1 2", "repsum"),
        (&["--op", "sum", "--type", "f64", "--family", "armed"], "1 2", "whole contributions as JSON"),
        (&["--op", "repsum", "--type", "f64", "--family", "pbv"], "1 2", "the PBV engine has no repsum"),
        (&["--op", "repsum", "--type", "f64", "--family", "piuma"], "1 2", "no repsum"),
        (&["--op", "and", "--type", "f64", "--family", "piuma"], "1 2", "bitwise"),
        (&["--op", "sum", "--type", "f64", "--input", "no/such/file"], "", "no/such/file"),
    ] {
        let output = reduce(arguments, input);
        assert_eq!(output.status, 2, "{arguments:?} {input:?}");
        assert!(output.stderr.contains(message), "{arguments:?} {input:?}: {}", output.stderr);
    }
}

#[test]
fn exhaustive_runs_in_parts_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("done.txt");
    let file = file.to_str().unwrap();
    let run = |more: &[&str]| {
        let mut arguments = vec!["exhaustive", "--random", "1100000", "--type", "f32", "--op", "add", "--resume", file];
        arguments.extend(more);
        watershed(&arguments, "")
    };
    let first = run(&["--blocks", "2"]);
    assert_eq!(first.status, 1, "not all is done: {}{}", first.stdout, first.stderr);
    assert!(first.stdout.contains("still open"), "{}", first.stdout);
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 2);
    let shard = run(&["--shard", "2/2"]);
    assert_eq!(shard.status, 0, "{}", shard.stdout);
    let rest = run(&[]);
    assert_eq!(rest.status, 0, "{}", rest.stdout);
    // 2 blocks a mode, 4 modes
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 8);
    assert!(run(&[]).stdout.contains("0 in all, 0 mismatches"));
    std::fs::write(file, "something else\n").unwrap();
    let bad = run(&[]);
    assert_eq!((bad.status, bad.stderr.contains("done.txt:1")), (2, true), "{}", bad.stderr);
}

#[test]
fn exhaustive_refuses_what_it_does_not_know() {
    for arguments in [
        &["exhaustive", "--type", "f32"][..],
        &["exhaustive", "--op", "sub"],
        &["exhaustive", "--round", "sideways"],
        &["exhaustive", "--shard", "5/4"],
        &["exhaustive", "--shard", "x"],
        &["exhaustive", "--random", "10", "--op", "min"],
    ] {
        let output = watershed(arguments, "");
        assert_eq!(output.status, 2, "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

/// Contributions of doubles, four lanes each.
fn frames(op: &str, lanes: &[[f64; 4]]) -> String {
    let list: Vec<String> = lanes
        .iter()
        .map(|lanes| format!("{{\"lanes\": {:?}}}", lanes.map(|lane| format!("{:016x}", lane.to_bits()))))
        .collect();
    format!("{{\"op\": {op}, \"contributions\": [{}]}}", list.join(", "))
}

#[test]
fn whole_contributions_go_through_the_engine_of_the_fabric() {
    let text = "{\"op\": 40, \"contributions\": [
        {\"lanes\": [\"3ff0000000000000\", \"1\", \"7fefffffffffffff\", \"8000000000000000\"], \"count\": 1, \"rc\": 0, \"m\": 0, \"oflow_id\": 0},
        {\"lanes\": [\"4000000000000000\", \"1\", \"7fefffffffffffff\", \"8000000000000000\"], \"count\": 15}]}";
    let expected = "{\"lanes\":[\"4008000000000000\",\"0000000000000002\",\"7ff0000000000000\",\"8000000000000000\"],\
                    \"rc\":3,\"count\":16,\"m\":0,\"oflow_id\":0}\n";
    for family in [&["--family", "piuma"][..], &["--family", "armed"], &["--family", "pbv"], &[]] {
        let output = reduce(family, text);
        assert_eq!((output.status, output.stdout.as_str()), (0, expected), "{}", output.stderr);
    }
    // A code that comes with a contribution climbs with the result; alone it passes.
    let alone = "{\"op\": \"INT SUM\", \"contributions\": [{\"lanes\": [\"1\", \"2\", \"3\", \"4\"], \"rc\": 6}]}";
    assert!(reduce(&["--family", "piuma"], alone).stdout.contains("\"rc\":6"));
    let barrier = frames("\"BARRIER\"", &[[1.0; 4], [2.0; 4]]);
    assert!(reduce(&["--family", "piuma"], &barrier).stdout.starts_with("{\"lanes\":[\"0000000000000000\""));
}

/// Every opcode the collective engine has, more contributions than it has ports, against the bare quad unit: for operations
/// that do not depend on the order the bits are the same, and a sum's order is that of the ports.
#[test]
fn the_piuma_engine_takes_any_number_of_contributions() {
    let mut random = Random::new(seed(0x5eed_00b0));
    let lanes: Vec<[f64; 4]> =
        (0..23).map(|_| std::array::from_fn(|_| f64::from_bits(random.lane(DType::F64)))).collect();
    for op in ["\"AND\"", "\"OR\"", "\"XOR\"", "\"INT MIN\"", "\"INT MAX\"", "\"FLT MIN\"", "\"FLT MAX\""] {
        let text = frames(op, &lanes);
        let engine = reduce(&["--family", "piuma"], &text);
        assert_eq!(engine.status, 0, "{}", engine.stderr);
        assert_eq!(engine.stdout, reduce(&[], &text).stdout, "{op}");
        assert_eq!(engine.stdout, reduce(&["--family", "piuma", "--radix", "3"], &text).stdout, "{op}");
        assert!(engine.stdout.contains("\"count\":23"));
    }
    // Level by level in pairs is what a radix of 2 does; each rounding mode has its own opcode.
    for op in 0x28..=0x2f {
        let text = frames(&op.to_string(), &lanes);
        assert_eq!(reduce(&["--family", "piuma", "--radix", "2"], &text).stdout, reduce(&[], &text).stdout, "{op:#x}");
    }
}

/// The packet engine of the PBV family reduces as messages arrive, or in the order of PBV entries: both are chains.
#[test]
fn the_pbv_engine_answers_as_a_chain_of_its_unit() {
    let mut random = Random::new(seed(0x5eed_00b2));
    let lanes: Vec<[f64; 4]> =
        (0..19).map(|_| std::array::from_fn(|_| f64::from_bits(random.lane(DType::F64)))).collect();
    for op in [0, 1, 2, 3, 0x10, 0x11, 0x14, 0x20, 0x21, 0x28, 0x2b] {
        let text = frames(&op.to_string(), &lanes);
        for order in ["tree", "arrival"] {
            let engine = reduce(&["--family", "pbv", "--order", order], &text);
            assert_eq!(engine.status, 0, "{}", engine.stderr);
            assert_eq!(engine.stdout, reduce(&["--order", "arrival"], &text).stdout, "{op:#x} {order}");
        }
    }
    let operands = ["--op", "sum", "--type", "f32", "--family", "pbv", "--order", "2,1,0"];
    let output = reduce(&operands, "3f800000 33800000 33800000");
    assert!(output.stdout.contains("result  0x3f800001"), "{}{}", output.stdout, output.stderr);
    let many = vec!["1"; 128].join(" ");
    let output = reduce(&["--op", "sum", "--type", "u64", "--family", "pbv"], &many);
    assert_eq!((output.status, output.stderr.contains("takes 1 to 127 contributions")), (1, true), "{}", output.stderr);
}

/// The armed engine gives what the bare unit gives for every opcode whose bits do not depend on the order; it counts
/// itself.
#[test]
fn the_armed_engine_answers_as_its_unit() {
    let mut random = Random::new(seed(0x5eed_00b1));
    let lanes: Vec<[f64; 4]> =
        (0..19).map(|_| std::array::from_fn(|_| f64::from_bits(random.lane(DType::F64)))).collect();
    for op in [0, 1, 2, 3, 0x10, 0x11, 0x14, 0x20, 0x21, 0x24, 0x25] {
        let text = frames(&op.to_string(), &lanes);
        let engine = reduce(&["--family", "armed"], &text);
        assert_eq!(engine.status, 0, "{}", engine.stderr);
        assert_eq!(engine.stdout, reduce(&[], &text).stdout, "{op:#x}");
        assert!(engine.stdout.contains("\"count\":19"));
    }
}

/// Where the order decides the bits, the armed engine takes its frames one after the other, as they come: the bare unit in
/// that order gives the same, for every rounding mode of sums and products, and another order of frames gives another sum.
#[test]
fn the_armed_engine_merges_in_the_order_of_arrival() {
    let mut random = Random::new(seed(0x5eed_00b2));
    let mut lanes: Vec<[f64; 4]> = (0..23)
        .map(|_| {
            std::array::from_fn(|_| {
                (random.lane(DType::U32) as f64 - 2e9) * 2f64.powi((random.lane(DType::U32) % 40) as i32)
            })
        })
        .collect();
    let mut first = None;
    for turn in 0..3 {
        for opcode in OPCODES.iter().filter(|opcode| opcode.dtype == DType::F64 && matches!(opcode.op, Op::Sum)) {
            let text = frames(&opcode.number.to_string(), &lanes);
            let engine = reduce(&["--family", "armed"], &text);
            assert_eq!(engine.status, 0, "{}", engine.stderr);
            let arrival = reduce(&["--order", "arrival"], &text);
            assert_eq!(engine.stdout, arrival.stdout, "{} turn {turn}", opcode.name);
            if opcode.number == 40 {
                assert_ne!(first.replace(engine.stdout.clone()), Some(engine.stdout), "the order is in the bits");
            }
        }
        lanes.rotate_left(7);
    }
}

#[test]
fn bad_contributions_are_refused_with_their_place() {
    let lanes = "\"lanes\": [\"0\", \"0\", \"0\", \"0\"]";
    let one = |inside: &str| format!("{{\"op\": 40,\n \"contributions\": [{{{inside}}}]}}");
    for (text, message) in [
        ("{\"op\": 19, \"contributions\": []}".to_owned(), "there is no opcode 19, expected 0 BARRIER"),
        ("{\"op\": \"SUM\", \"contributions\": []}".to_owned(), "there is no opcode \"SUM\""),
        ("{\"op\": 40, \"contributions\": []}".to_owned(), "at least one is expected"),
        ("{\"op\": 40}".to_owned(), "missing field `contributions`"),
        ("{\"contributions\": []}".to_owned(), "missing field `op`"),
        (one("\"lanes\": [\"0\", \"0\", \"0\"]"), "expected an array of length 4"),
        (one("\"lanes\": [\"0\", \"0\", \"0\", \"0x3ff00000000000000\"]"), "at line 2"),
        (one("\"lanes\": [0, \"0\", \"0\", \"0\"]"), "expected a lane of up to 16 hexadecimal digits"),
        (one(&format!("{lanes}, \"rc\": 2")), "2 is no result code, expected 0 (OK)"),
        (one(&format!("{lanes}, \"count\": -1")), "-1 is not from 0 to 1048575"),
        (one(&format!("{lanes}, \"m\": 128")), "expected i8 at line 2"),
        (one(&format!("{lanes}, \"oflow_id\": 4")), "4 is not from 0 to 3"),
        (one(&format!("{lanes}, \"counts\": 4")), "unknown field `counts`"),
        (one(&format!("{lanes}, \"m\": 3")), "contribution 0: `m` and `oflow_id` belong"),
        (one(&format!("{lanes}, \"rc\": 8")), "no flag for OP_MISMATCH"),
        (one(lanes).replace("40", "48"), "the PIUMA engine has no FLT REPSUM; it has BARRIER, AND"),
        (one(&format!("{lanes}, \"count\": 1048575}}, {{{lanes}")), "more than the 1048575 a frame can say"),
        ("{\"op\": 40, \"contributions\": [".to_owned(), "at line 1 column"),
    ] {
        let output = reduce(&["--family", "piuma"], &text);
        assert_eq!(output.status, 2, "{text}: {}", output.stdout);
        assert!(output.stderr.contains(message), "{text}: {}", output.stderr);
    }
    let sound = one(lanes);
    for (more, message) in [
        (&["--op", "sum", "--type", "f64"][..], "leave out --op and --type"),
        (&["--all-orders", "3"], "single operands"),
        (&["--order", "1"], "no operand 1"),
    ] {
        let output = reduce(more, &sound);
        assert_eq!((output.status, output.stderr.contains(message)), (2, true), "{more:?}: {}", output.stderr);
    }
}

#[test]
fn numbers_in_json_are_rounded_once_to_the_type() {
    for (dtype, text, result) in [
        ("f64", "[0.1, 0.2]", "0x3fd3333333333334"),
        // Through a double the first one would become 1.
        ("f32", "{\"operands\": [1.00000005960464477540, 0]}", "0x3f800001"),
        ("fp8_e4m3", "[464, -1e-9]", "0x7e"),
        ("i32", "[-1, 3e2]", "0x0000012b"),
        ("bf16", "[ 1.0 ,\t\"0x3f80\"\n]", "0x4000"),
    ] {
        let output = reduce(&["--op", "sum", "--type", dtype], text);
        assert!(output.stdout.contains(&format!("result  {result} ")), "{text}: {}{}", output.stdout, output.stderr);
    }
}
