//! Which shipped scenarios have switches or engines that the RTL has not, and why: the book's table says the same.

use std::collections::BTreeMap;

use watershed::scenario::load_file;

use crate::verilator::{self, root};
use crate::{armed, pbv_links, share, switch};

/// The shipped scenarios of a folder.
fn stems(folder: &str) -> Vec<String> {
    let files = std::fs::read_dir(root().join("testbench").join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    let mut stems: Vec<String> = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    stems.sort();
    stems
}

/// It takes half a minute to build in a program for tests: where no RTL is compared, only `make soak` does.
const LARGE: &str = "allreduce-16384-nodes";

#[test]
fn the_book_says_which_shipped_scenarios_are_not_compared() {
    let book = std::fs::read_to_string(root().join("src/guide/pages/rtl-twin.md")).unwrap();
    let rows = book.lines().skip_while(|line| !line.starts_with("| scenario | why")).skip(2);
    let rows: BTreeMap<&str, &str> =
        rows.map_while(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ")).collect();
    let is_whole = share::is_whole() || verilator::find().is_some();
    let (mut all, mut others) = (0, 0);
    for (folder, of_folder) in [
        ("piuma", of_piuma as fn(&str) -> Option<&'static str>),
        ("armed", armed::why_not),
        ("pbv", pbv_links::why_not),
    ] {
        for stem in stems(folder).iter().filter(|stem| is_whole || *stem != LARGE) {
            let why = of_folder(stem);
            println!("{stem}: {why:?}");
            assert_eq!(rows.get(stem.as_str()).copied(), why, "the book's row of {stem}");
            (all, others) = (all + 1, others + usize::from(why.is_some()));
        }
    }
    assert!(others == rows.len() && others < all, "the book's table has other scenarios");
    println!("rtl: {} of {all} shipped scenarios have switches or engines as the RTL has", all - others);
}

fn of_piuma(stem: &str) -> Option<&'static str> {
    let path = root().join(format!("testbench/piuma/{stem}.toml"));
    switch::why_not(&load_file(&path, &[]).unwrap_or_else(|problems| panic!("{problems}")))
}
