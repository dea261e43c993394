//! `sweep export --parquet`: the file has the points of `points.csv`, cell for cell, with types; a program that is built
//! without Parquet says so.

#[cfg(feature = "parquet")]
use std::fs;

#[cfg(feature = "parquet")]
use parquet::file::reader::{FileReader, SerializedFileReader};
#[cfg(feature = "parquet")]
use parquet::record::Field;

use crate::support::watershed;

#[cfg(not(feature = "parquet"))]
#[test]
fn a_program_without_parquet_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.parquet");
    let output = watershed(["sweep", "export", "out/stages", "--parquet", file.to_str().unwrap()]);
    assert_eq!(output.status, 2, "{}", output.stdout);
    assert_eq!(output.stderr.trim_end().lines().count(), 1, "{}", output.stderr);
    for words in ["error: this program was built without Parquet", "out/stages/points.csv", "--features parquet"] {
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
    assert!(!file.exists());
}

#[cfg(feature = "parquet")]
#[test]
fn a_parquet_file_has_the_cells_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sweep.toml");
    let die = crate::support::root().join("testbench/piuma/barrier-die.toml");
    fs::write(
        &file,
        format!(
            "[[scenario]]\nfile = {:?}\n[[axis]]\nname = \"stages\"\nkey = \"switch.ceng.stages\"\nvalues = [1, 3, 9]\n\
             [[axis]]\nkey = \"switch.arbiter\"\nvalues = [\"round-robin\", \"matrix\"]\n",
            die.to_str().unwrap()
        ),
    )
    .unwrap();
    let out = folder.path().join("out");
    let (out, parquet) = (out.to_str().unwrap(), folder.path().join("points.parquet"));
    let output = watershed(["sweep", file.to_str().unwrap(), "--out", out]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    let export = || watershed(["sweep", "export", out, "--parquet", parquet.to_str().unwrap()]);
    let output = export();
    assert_eq!(output.status, 0, "{}", output.stderr);
    assert!(output.stdout.contains("6 points"), "{}", output.stdout);
    let bytes = fs::read(&parquet).unwrap();
    assert_eq!(export().status, 0);
    assert_eq!(fs::read(&parquet).unwrap(), bytes, "the same points give the same bytes");

    let csv = fs::read_to_string(format!("{out}/points.csv")).unwrap();
    let reader = SerializedFileReader::new(fs::File::open(&parquet).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema().get_fields().to_vec();
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(schema.iter().map(|field| field.name().to_owned()).collect::<Vec<_>>(), head);
    let (mut rows, mut kinds) = (0, std::collections::BTreeSet::new());
    for (row, line) in reader.get_row_iter(None).unwrap().zip(csv.lines().skip(1)) {
        let row = row.unwrap();
        // Points that failed have an error in quotes in their last cell.
        for ((name, field), cell) in row.get_column_iter().zip(line.splitn(head.len(), ',')) {
            match field {
                Field::Null => assert_eq!(cell, "", "{name}"),
                Field::Long(value) => assert_eq!(Ok(*value), cell.parse(), "{name}"),
                Field::Double(value) => assert_eq!(Ok(*value), cell.parse(), "{name}"),
                Field::Str(value) => {
                    let cell = cell.trim_matches('"').replace("\"\"", "\"");
                    assert_eq!(value.replace('\n', " "), cell, "{name}");
                }
                other => panic!("{name}: {other:?}"),
            }
            kinds.insert((name.clone(), std::mem::discriminant(field) == std::mem::discriminant(&Field::Long(0))));
        }
        rows += 1;
    }
    assert_eq!(rows, 6);
    // Nine stages are refused: those points have failed and have no cycles.
    assert_eq!(csv.lines().skip(1).filter(|line| !line.contains(",ok,")).count(), 2, "{csv}");
    assert!(kinds.contains(&("stages".to_owned(), true)) && kinds.contains(&("cycles".to_owned(), true)), "{kinds:?}");
    let output = watershed(["sweep", "export", folder.path().to_str().unwrap(), "--parquet", "x.parquet"]);
    assert!(output.status == 2 && output.stderr.contains("holds no results of a sweep"), "{}", output.stderr);
}
