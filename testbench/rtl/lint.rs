//! Every module is clean for `verilator --lint-only -Wall`, and says in its head what it is.

use std::fs;

use crate::verilator;

#[test]
fn every_module_is_lint_clean() {
    let Some(verilator) = verilator::find() else { return };
    let modules: Vec<String> = verilator::sources()
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|module| !verilator::PACKAGES.contains(&module.as_str()))
        .collect();
    assert!(modules.len() > 20, "{} modules", modules.len());
    let wrong: Vec<String> = modules.iter().filter_map(|module| verilator.lint(module).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("rtl: {} modules are clean for --lint-only -Wall of {}", modules.len(), verilator.version);
}

/// A header with its Rust twin, which exists; no latches, no blocking surprises, every register reset.
#[test]
fn every_module_names_its_twin_and_resets_its_registers() {
    for path in verilator::sources() {
        let (name, text) = (path.display(), fs::read_to_string(&path).unwrap());
        let module = path.file_stem().unwrap().to_str().unwrap();
        let unit = if verilator::PACKAGES.contains(&module) { "package" } else { "module" };
        assert_eq!(text.matches(&format!("\n{unit} {module}")).count(), 1, "{name}: one {unit} a file, of its name");
        assert!(text.contains("\n// Twin: "), "{name}: which Rust file is it?");
        for word in text.split(|c: char| c.is_whitespace() || "(),;".contains(c)) {
            let word = word.trim_end_matches('.');
            if word.starts_with("src/")
                && word.rsplit_once('.').is_some_and(|(_, ending)| ending == "rs")
                && !word.contains('{')
            {
                assert!(verilator::root().join(word).exists(), "{name}: there is no {word}");
            }
        }
        assert!(!text.contains("always_latch") && !text.contains("initial "), "{name}: synthesizable");
        let clocked = text.matches("always_ff @(").count();
        let reset = text.matches("always_ff @(posedge clk_i or negedge rst_ni) begin\n").count();
        assert_eq!(clocked, reset, "{name}: every register has the reset");
        let latches = text.matches("always @").count();
        assert_eq!(latches, 0, "{name}: always_comb and always_ff");
    }
}
