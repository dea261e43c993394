//! C-LOAD-1: vectors inline, random, from .npy, CSV and hex text; results as .npy.

use watershed::arith::DType;
use watershed::scenario::{data, load_file};

use crate::support::{load, root};

fn scenario(elements: usize, data: &str) -> String {
    format!(
        "family = \"piuma\"\ntopology = {{ kind = \"die\" }}\n[[collective]]\nkind = \"allreduce\"\n\
         elements = {elements}\nparticipants = [0, 1, 2, 3]\n[collective.data]\n{data}\n"
    )
}

#[test]
fn the_three_files_hold_the_same_numbers() {
    let rows = ["npy", "csv", "hex"].map(|extension| {
        let text = scenario(16, &format!("file = \"traces/operands-4x16-f64.{extension}\""));
        load(&text, &[]).unwrap().data(0)
    });
    assert_eq!(rows[0], rows[1]);
    assert_eq!(rows[0], rows[2]);
    assert_eq!(rows[0][0][0], 1 << 63, "minus zero");
    assert_eq!(rows[0][0][1], 1, "the smallest denormal");
}

#[test]
fn inline_values_are_numbers_and_bit_patterns() {
    let data = "values = [[1, 2.5], [\"0x8000000000000000\", -inf], [nan, 1e-320], [0.1, \"0.1\"]]";
    let rows = load(&scenario(2, data), &[]).unwrap().data(0);
    let bits = |a: f64, b: f64| vec![a.to_bits(), b.to_bits()];
    assert_eq!(
        rows,
        [
            bits(1.0, 2.5),
            bits(-0.0, f64::NEG_INFINITY),
            vec![0x7ff8_0000_0000_0000, 1e-320f64.to_bits()],
            bits(0.1, 0.1)
        ]
    );
}

#[test]
fn inline_values_are_rounded_once() {
    // A double between this decimal and single precision would lie halfway and round down.
    let text =
        scenario(1, "values = [[1.0000000596046448], [0], [0], [0]]").replace("elements", "dtype = \"f32\"\nelements");
    assert_eq!(load(&text, &[]).unwrap().data(0)[0], [u64::from(1.000_000_1_f32.to_bits())]);
}

#[test]
fn random_data_hangs_on_the_seed_and_on_nothing_else() {
    let text = scenario(8, "random = \"normal\"");
    let rows = |overrides: &[&str]| load(&text, overrides).unwrap().data(0);
    assert_eq!(rows(&[]), rows(&["switch.ceng.stages=5"]));
    assert_ne!(rows(&[]), rows(&["seed=2"]));
    let longer = rows(&["collective.0.elements=9"]);
    assert_eq!(longer[3][..8], rows(&[])[3]);
}

#[test]
fn who_contributes_depends_on_the_kind() {
    let rows = |name: &str| load_file(&root().join(format!("testbench/piuma/{name}.toml")), &[]).unwrap().data(0).len();
    assert_eq!(rows("allreduce-die"), 8);
    assert_eq!(rows("broadcast-die"), 1);
    assert_eq!(rows("barrier-die"), 0);
}

#[test]
fn saved_results_can_be_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let rows: Vec<Vec<u64>> = (0..4).map(|row| vec![row, f64::to_bits(0.5)]).collect();
    data::save_npy(&path, DType::F64, &rows).unwrap();
    let text = scenario(2, &format!("file = {:?}", path.to_str().unwrap()));
    assert_eq!(load(&text, &[]).unwrap().data(0), rows);
}
