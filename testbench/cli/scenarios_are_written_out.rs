//! A checked scenario as text again, as result documents carry it.

use std::path::Path;

use watershed::scenario::run_inputs::RunInputs;
use watershed::scenario::shipped::{SHIPPED, stem};
use watershed::scenario::{Loaded, load_inputs, load_text};

#[test]
fn shipped_scenarios_read_back_as_the_same_configuration() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (path, text) in SHIPPED {
        let base = root.join(path);
        let loaded = load_text(path, text, base.parent().unwrap(), stem(path), &["seed=9".into()])
            .unwrap_or_else(|problems| panic!("{problems}"));
        let written = RunInputs::new(&loaded);
        let again = load_inputs(&written, "again", stem(path), &[]).unwrap_or_else(|problems| panic!("{problems}"));
        let config = |loaded: &Loaded| serde_json::to_string(&loaded.scenario).unwrap();
        assert_eq!(config(&again), config(&loaded), "{path}");
        assert_eq!(RunInputs::new(&again), written, "{path}");
    }
}

#[test]
fn numbers_keep_their_text() {
    let text = "family = \"piuma\"\ntopology.kind = \"die\"\n[[collective]]\nkind = \"allreduce\"\nparticipants = [0]\n\
                elements = 4\n[collective.data]\nvalues = [[0.1000, nan, -0.0, \"0x7\"]]\n";
    let loaded = load_text("x", text, Path::new("."), "x", &[]).unwrap_or_else(|p| panic!("{p}"));
    let written = RunInputs::new(&loaded).lines.join("\n");
    assert!(written.contains("values = [[0.1000, nan, -0.0, \"0x7\"]]"), "{written}");
}
