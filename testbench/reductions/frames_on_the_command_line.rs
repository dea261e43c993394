//! R-FRM-1, R-HDR-1, R-ADR-1, R-OP-1, R-RC-1 from the command line: `watershed frame encode` and `decode`; R-AR-3: NaN policies of
//! `watershed reduce`.

use assert_cmd::Command;

use crate::support::root;

fn watershed(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_watershed")).current_dir(root()).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const ENCODE: [&str; 14] = [
    "frame",
    "encode",
    "--op",
    "int-sum",
    "--lanes",
    "1,-2,0x3,4",
    "--seqno",
    "17",
    "--cookie",
    "0xc0ffee",
    "--count",
    "5",
    "--multicast-id",
    "77",
];

#[test]
fn what_is_encoded_is_decoded_field_by_field() {
    let (status, hex, _) = watershed(&ENCODE);
    assert_eq!((status, hex.trim().len()), (0, 168));
    let (status, json, _) = watershed(&["frame", "decode", hex.trim(), "--json"]);
    assert_eq!(status, 0);
    let fields: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(fields["op_name"], "INT SUM");
    assert_eq!(fields["lanes"][1], "fffffffffffffffe");
    for (key, value) in
        [("seqno", 17), ("cookie", 0x00c0_ffee), ("count", 5), ("multicast_id", 77), ("resno", 1023), ("op", 0x14)]
    {
        assert_eq!(fields[key], value, "{key}");
    }
    let (_, table, _) = watershed(&["frame", "decode", hex.trim()]);
    assert!(table.contains("h16:11   op               0x14                 INT SUM"), "{table}");
}

#[test]
fn the_ethernet_form_is_recognised_by_its_length() {
    let arguments: Vec<&str> = ENCODE.iter().copied().chain(["--ethernet"]).collect();
    let (status, hex, _) = watershed(&arguments);
    assert_eq!((status, hex.trim().len()), (0, 196));
    let (status, json, _) = watershed(&["frame", "decode", hex.trim(), "--json"]);
    let fields: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, &fields["ethernet"]), (0, &serde_json::Value::Bool(true)));
}

#[test]
fn bad_input_gets_a_clear_error() {
    let (_, hex, _) = watershed(&ENCODE);
    let flipped = format!("0{}", &hex.trim()[1..]);
    for (arguments, expected) in [
        (vec!["frame", "decode", "00"], "1 bytes; a reduction frame has 84, or 98 behind an Ethernet header"),
        (vec!["frame", "decode", "0x0"], "1 digits: a byte has two"),
        (vec!["frame", "decode", "zz"], "'z' at digit 0 is not hexadecimal"),
        (vec!["frame", "decode", &flipped], "the CRC is"),
        (vec!["frame", "encode", "--op", "int-summ"], "did you mean int-sum?"),
        (vec!["frame", "encode", "--count", "1048576"], "count = 1048576 does not fit its 20 bits"),
        (vec!["frame", "encode", "--rc", "2"], "2 is not assigned"),
        (vec!["frame", "encode", "--lanes", "1,2,3,4,5"], "5 lanes; a frame has four"),
        (vec!["frame", "encode", "--multicast-id", "8192"], "multicast id = 8192 does not fit its 13 bits"),
    ] {
        let (status, _, error) = watershed(&arguments);
        assert_eq!(status, 2, "{arguments:?}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn the_payload_of_a_signalling_nan_survives_where_it_is_asked_for() {
    let (quiet, signalling) = ("7ff8000000000011", "fff0000000000022");
    for op in ["max", "sum"] {
        for operands in [[quiet, signalling], [signalling, quiet]] {
            let of = |policy: &[&str]| {
                let arguments =
                    [&["reduce", "--op", op, "--type", "f64", "--json"][..], policy, &operands[..]].concat();
                let (status, json, error) = watershed(&arguments);
                assert_eq!(status, 0, "{error}");
                json
            };
            assert!(of(&[]).contains("7ff8000000000000"), "{op}: the default NaN");
            let propagated = of(&["--nan", "propagate"]);
            assert!(propagated.contains("7ff8000000000022"), "{op}: quieted, without a sign: {propagated}");
        }
    }
}

#[test]
fn the_armed_engine_has_the_policy_that_is_asked_for() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lanes = |word: &str| {
        format!("{{\"lanes\": [\"{word}\", \"0\", \"0\", \"0\"], \"count\": 1, \"rc\": 0, \"m\": 0, \"oflow_id\": 0}}")
    };
    let text =
        format!("{{\"op\": 33, \"contributions\": [{}, {}]}}", lanes("7ff8000000000011"), lanes("7ff0000000000022"));
    std::fs::write(file.path(), text).unwrap();
    let of = |policy: &[&str]| {
        let arguments =
            [&["reduce", "--family", "armed", "--input", file.path().to_str().unwrap()][..], policy].concat();
        let (status, json, error) = watershed(&arguments);
        assert_eq!(status, 0, "{error}");
        json
    };
    assert!(of(&[]).contains("7ff8000000000000"));
    assert!(of(&["--nan", "propagate"]).contains("7ff8000000000022"));
}
