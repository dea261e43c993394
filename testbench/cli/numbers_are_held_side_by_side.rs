//! Issue 25: `watershed numerics`: bits, errors and whether the order matters, for every family and software.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::share;
use crate::support::watershed;

/// Sums of these depend on the order: the ones are lost beside the large ones, or not.
const CANCELLING: [&str; 6] = ["1.0e16", "+1", "-1.0e16", "+1", "0.5", "3.25"];

fn table(arguments: &[&str]) -> Value {
    let output = watershed([&["numerics", "--json"], arguments].concat());
    assert_eq!(output.status, 0, "{arguments:?}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn orders_matter_where_they_should_and_nowhere_else() {
    let found = table(&[&["--type", "f64", "--orders", "4"], &CANCELLING[..]].concat());
    assert_eq!(found["exact"], "5.75");
    let rows = found["rows"].as_array().unwrap();
    // Three families and software, on three shapes.
    for family in ["PIUMA", "armed", "PBV", "software"] {
        let own = |row: &&Value| row["engine"].as_str().unwrap().starts_with(family);
        let shapes: BTreeSet<&str> = rows.iter().filter(own).map(|row| row["shape"].as_str().unwrap()).collect();
        assert_eq!(shapes, ["chain", "mesh", "tree"].into(), "{family}");
        assert!(rows.iter().filter(own).all(|row| row["refused"].is_null()), "{family}");
    }
    for row in rows {
        let cells = row["cells"].as_array().unwrap();
        assert_eq!(cells.len(), found["orders"].as_array().unwrap().len());
        let bits: BTreeSet<&str> = cells.iter().map(|cell| cell["bits"].as_str().unwrap()).collect();
        assert_eq!(bits.len() as u64, row["distinct"].as_u64().unwrap());
        // The error is that of the bits.
        for cell in cells {
            if cell["error_ulps"].is_null() {
                continue;
            }
            if row["engine"] == "armed, reproducible" {
                continue;
            }
            let value = f64::from_bits(u64::from_str_radix(cell["bits"].as_str().unwrap(), 16).unwrap());
            let exact = value.to_bits() == 5.75f64.to_bits();
            assert_eq!(cell["error_ulps"].as_f64().unwrap() == 0.0, exact, "{cell}");
        }
        if row["engine"] == "armed, reproducible" {
            // Its words hold all bits of these operands.
            assert_eq!((&row["distinct"], row["worst_ulps"].as_f64()), (&1.into(), Some(0.0)), "{row}");
        } else {
            assert!(row["distinct"].as_u64().unwrap() > 1, "{row}");
        }
    }
    // No order changes a sum of integers, nor a maximum.
    for arguments in [
        &["--type", "i64", "--orders", "2", "+7", "-3", "+12", "+100"][..],
        &["--op", "max", "--orders", "2", "1.5", "-2.5", "+9"],
    ] {
        let found = table(arguments);
        let rows = found["rows"].as_array().unwrap();
        let all: BTreeSet<&str> = rows
            .iter()
            .filter(|row| row["refused"].is_null())
            .flat_map(|row| row["cells"].as_array().unwrap())
            .map(|cell| cell["bits"].as_str().unwrap())
            .collect();
        assert_eq!(all.len(), 1, "{arguments:?}: {all:?}");
    }
}

#[test]
fn the_table_is_the_same_however_it_is_computed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("maps");
    let arguments = ["--type", "f64", "--random", "5", "--seed", "7", "--orders", "3"];
    let (one, two) = (table(&arguments), table(&[&arguments[..], &["-j", "2"]].concat()));
    assert_eq!(one, two);
    let files = ["--svg", "heat.svg", "--csv", "cells.csv", "--out", out.to_str().unwrap()];
    let output = watershed([&["numerics"], &arguments[..], &files[..]].concat());
    assert_eq!(output.status, 0, "{}", output.stderr);
    let rows: Vec<&Value> = one["rows"].as_array().unwrap().iter().filter(|row| row["refused"].is_null()).collect();
    let cells: usize = rows.iter().map(|row| row["cells"].as_array().unwrap().len()).sum();
    assert_eq!(fs::read_to_string(out.join("cells.csv")).unwrap().lines().count(), cells + 1);
    let svg = fs::read_to_string(out.join("heat.svg")).unwrap();
    assert_eq!(svg.matches("<rect").count(), cells);
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    for row in rows {
        assert!(output.stdout.contains(row["engine"].as_str().unwrap()), "{}", output.stdout);
        assert!(svg.contains(&format!(">{}, {}<", row["engine"].as_str().unwrap(), row["shape"].as_str().unwrap())));
    }
}

/// What a user tries first has to show what the command is for: a seed of each type in `make test`, three of one in `make soak`.
#[test]
fn random_operands_are_such_that_orders_matter() {
    for (dtype, seed) in share::one_in(2, [("f64", "1"), ("f64", "2"), ("f32", "1"), ("f64", "3")]) {
        let found = table(&["--type", dtype, "--random", "12", "--seed", seed, "--orders", "4"]);
        let rows = found["rows"].as_array().unwrap();
        let matters = |row: &&Value| row["distinct"].as_u64().unwrap() > 1;
        for family in ["PIUMA", "PBV, as they arrive", "software"] {
            let own = |row: &&Value| row["engine"].as_str().unwrap().starts_with(family);
            assert!(rows.iter().filter(own).any(|row| matters(&row)), "{dtype}, seed {seed}: {family}");
        }
        for row in rows.iter().filter(|row| row["engine"] == "armed, reproducible") {
            assert!(row["distinct"] == 1 && row["worst_ulps"].as_f64().unwrap() < 1.0, "{row}");
        }
    }
}

#[test]
fn what_cannot_be_reduced_is_said() {
    for (arguments, words) in [
        (&["+1"][..], "1 operands: from 2 to 64"),
        (&["--type", "f32", "1.5", "what"], "nor a number with a point or a sign"),
        (&["--op", "and", "--type", "f64", "1.5", "2.5"], "and"),
        (&["--input", "nowhere.json"], "nowhere.json"),
    ] {
        let output = watershed([&["numerics"], arguments].concat());
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
    // A family that has no such sum says so in its row; the others have theirs.
    let found = table(&["--type", "f32", "--orders", "0", "1.5", "2.5"]);
    let armed = found["rows"].as_array().unwrap().iter().find(|row| row["engine"] == "armed").unwrap();
    assert!(armed["refused"].as_str().unwrap().contains("no sum of f32"), "{armed}");
}
