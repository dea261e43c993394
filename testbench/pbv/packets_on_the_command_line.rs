//! `watershed packet` (B-PKT-1): every message can be put together and taken apart, and what is wrong is named.

use std::process::{Command, Output};

use watershed::pbv::packet::Message;

fn packet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_watershed")).arg("packet").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_message_comes_apart_as_it_was_put_together() {
    for message in Message::ALL {
        let mut arguments = vec!["encode", message.name(), "--to", "0x0010c000", "--from", "0x21", "--cc-id", "0xabc"];
        arguments.extend([
            "--p-id",
            "127",
            "--run",
            "4000000000",
            "--p-count",
            "3",
            "--dmu-id",
            "0x11",
            "--tag",
            "0x3fff",
        ]);
        match message {
            Message::Configuration => arguments.extend(["--entries", "0x10,0x20,1,2,3", "--switches", "3"]),
            Message::Initialisation => {
                arguments.extend(["--pbv", "0x1f", "--data-words", "128", "--groups", "0xabb", "3", "--down", "3"]);
            }
            Message::Control => arguments.extend(["--control", "pause"]),
            Message::Error | Message::Failure => {}
            _ => arguments.extend(["--op", "xor", "--type", "i32", "--words", "1,0xffffffffffffffff"]),
        }
        let encoded = packet(&arguments);
        assert!(encoded.status.success(), "{message}: {}", text(&encoded.stderr));
        let decoded = packet(&["decode", "--json", text(&encoded.stdout).trim()]);
        assert!(decoded.status.success(), "{message}: {}", text(&decoded.stderr));
        let json: serde_json::Value = serde_json::from_slice(&decoded.stdout).unwrap();
        assert_eq!(json["message"], message.name());
        assert_eq!((&json["destination"], &json["requester"]), (&0x0010_c000u32.into(), &0x21.into()));
        assert_eq!((&json["cc_id"], &json["p_id"], &json["tag"]), (&0xabc.into(), &127.into(), &0x3fff.into()));
        match message {
            Message::Configuration => {
                assert_eq!(json["records"][0]["entries"], serde_json::json!([0x10, 0x20, 1, 2, 3]));
            }
            Message::Initialisation => {
                assert_eq!((&json["records"][0]["pbv"], &json["records"][0]["down"]), (&"1f".into(), &"3".into()));
                assert_eq!(json["records"][0]["groups"], serde_json::json!({ "first": 0xabb, "count": 3 }));
            }
            Message::Control => assert_eq!(json["control"], "pause"),
            Message::Error | Message::Failure => assert_eq!(json["words"], serde_json::json!([])),
            _ => {
                assert_eq!(json["words"][1], "ffffffffffffffff");
                assert_eq!((&json["op"], &json["dtype"]), (&"xor".into(), &"i32".into()));
            }
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (arguments, message) in [
        (&["decode", "00"][..], "a frame has at least 32 bytes, not 1"),
        (&["decode", "0g"], "'g' at digit 1 is not hexadecimal"),
        (&["decode", "123"], "3 digits: a byte has two"),
        (&["decode", &"00".repeat(32)], "CRC 0x000000; that of these bytes is 0x77b850"),
        (&["encode", "comand"], "comand"),
        (&["encode", "command", "--cc-id", "4096"], "CC_ID 0x1000 does not fit 12 bits"),
        (&["encode", "command", "--to", "0x100000000"], "does not fit 32 bits"),
        (&["encode", "initialisation", "--pbv", "0x"], "no 128-bit number"),
    ] {
        let output = packet(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(message), "{arguments:?}: {}", text(&output.stderr));
    }
}
