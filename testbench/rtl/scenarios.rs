//! Which shipped scenarios have switches or engines that the RTL has not, and why: the book's table says the same.

use std::collections::BTreeMap;

use watershed::scenario::load_file;

use crate::verilator::root;
use crate::{armed, pbv_links, switch};

/// The shipped scenarios of a folder.
fn stems(folder: &str) -> Vec<String> {
    let files = std::fs::read_dir(root().join("testbench").join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    let mut stems: Vec<String> = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    stems.sort();
    stems
}

#[test]
fn the_book_says_which_shipped_scenarios_are_not_compared() {
    let mut why: BTreeMap<String, &'static str> = BTreeMap::new();
    let mut all = 0;
    for stem in stems("piuma") {
        let path = root().join(format!("testbench/piuma/{stem}.toml"));
        let loaded = load_file(&path, &[]).unwrap_or_else(|problems| panic!("{problems}"));
        all += 1;
        why.extend(switch::why_not(&loaded).map(|reason| (stem, reason)));
    }
    for stem in stems("armed") {
        all += 1;
        why.extend(armed::why_not(&stem).map(|reason| (stem, reason)));
    }
    for stem in stems("pbv") {
        all += 1;
        why.extend(pbv_links::why_not(&stem).map(|reason| (stem, reason)));
    }
    let book = std::fs::read_to_string(root().join("src/guide/pages/rtl-twin.md")).unwrap();
    for (stem, reason) in &why {
        let line = format!("| `{stem}` | {reason} |");
        println!("{line}");
    }
    for (stem, reason) in &why {
        let line = format!("| `{stem}` | {reason} |");
        assert!(book.contains(&line), "the book lacks {line}");
    }
    let lines = book.lines().skip_while(|line| !line.starts_with("| scenario | why")).skip(2);
    let told = lines.take_while(|line| line.starts_with('|')).count();
    assert_eq!(told, why.len(), "the book's table has other scenarios");
    println!("rtl: {} of {all} shipped scenarios have switches or engines as the RTL has", all - why.len());
}
