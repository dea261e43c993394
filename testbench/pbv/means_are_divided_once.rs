//! The mean of an all-reduce: the sum, divided once by each end point (paragraph 136).

use std::path::Path;

use watershed::scenario::load_text;
use watershed::scenario::result::Document;
use watershed::scenario::run::{RunOptions, run};

fn scenario(nodes: u32, keys: &str) -> String {
    format!(
        "family = \"pbv\"\n[topology]\nkind = \"flattened-butterfly\"\nsize = [3]\nconcentration = {nodes}\n\
         [[pbv.collective]]\nname = \"mean\"\nop = \"mean\"\n{keys}\n"
    )
}

fn document(text: &str) -> Document {
    let loaded = load_text("test", text, Path::new(""), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    run(&loaded, &RunOptions::default()).unwrap().document
}

#[test]
fn a_mean_is_the_correctly_rounded_quotient_of_the_sum() {
    // Sums 10, 1 and -7 of three nodes at three switches.
    let rows = ["[1.0, 0.5, -7.0]", "[2.0, 0.5, 0.0]", "[3.0, 0.0, 0.0]", "[4.0, 0.0, 0.0]", "[0.0, 0.0, 0.0]"];
    let rows = [rows.join(", "), ["[0.0, 0.0, 0.0]"; 4].join(", ")].join(", ");
    let of = |dtype: &str| {
        let document =
            document(&scenario(3, &format!("dtype = \"{dtype}\"\nelements = 3\ndata = {{ values = [{rows}] }}")));
        assert!(document.passed(), "{:?}", document.checks);
        let of = document.pbv.unwrap().collectives.remove(0);
        assert_eq!((of.op.as_deref(), of.bit_exact), (Some("mean"), Some(true)));
        assert_eq!(of.rounds[0].flags, ["inexact"]);
        of.rounds[0]
            .result
            .iter()
            .map(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("f64"), [10.0f64 / 9.0, 1.0 / 9.0, -7.0 / 9.0].map(f64::to_bits));
    assert_eq!(of("f32"), [10.0f32 / 9.0, 1.0 / 9.0, -7.0 / 9.0].map(|value| u64::from(value.to_bits())));
}

#[test]
fn every_type_mode_and_number_of_nodes_has_the_oracles_bits() {
    for dtype in ["f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2"] {
        for (nodes, keys) in [
            (1, "round = \"up\""),
            (4, "flush_to_zero = true"),
            (7, "round = \"down\"\nmerge = \"source\""),
            (9, "except = [1, 2, 26]"),
        ] {
            let keys =
                format!("dtype = \"{dtype}\"\nelements = 40\nrounds = 3\ndata = {{ random = \"bits\" }}\n{keys}");
            let document = document(&scenario(nodes, &keys));
            assert!(document.passed(), "{dtype} {nodes} {keys}: {:?}", document.checks);
            assert_eq!(document.pbv.unwrap().outcomes.complete, 3, "{dtype} {keys}");
        }
    }
}

#[test]
fn integers_have_no_mean() {
    let text = scenario(2, "dtype = \"i32\"");
    let problems = load_text("test", &text, Path::new(""), "test", &[]).unwrap_err().to_string();
    assert!(problems.contains("a mean is a quotient") && problems.contains("i32"), "{problems}");
}
