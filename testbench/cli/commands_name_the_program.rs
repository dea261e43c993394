//! Command lines that are printed to be run next start the program that printed them, however it was called.

use std::fs;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_watershed");

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap() + &String::from_utf8(output.stderr.clone()).unwrap()
}

#[cfg(unix)]
#[test]
fn printed_commands_start_the_program_that_printed_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("my builds")).unwrap();
    fs::create_dir_all(at("bin")).unwrap();
    // A name of its own, in a folder with a space: what is printed has to be quoted.
    std::os::unix::fs::symlink(PROGRAM, at("my builds/ws2")).unwrap();
    std::os::unix::fs::symlink(PROGRAM, at("bin/watershed")).unwrap();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/testbench/jobs/any-engine.toml");
    fs::copy(scenario, at("mine.toml")).unwrap();
    fs::write(
        at("stages.toml"),
        "[[scenario]]\nfile = \"mine.toml\"\n\n[[axis]]\nkey = \"switch.ceng.stages\"\nvalues = [1, 2, 3]\n",
    )
    .unwrap();
    let shell = |line: &str, path: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(folder.path()).env("PATH", path);
        command.output().unwrap()
    };
    let plain = "/usr/bin:/bin";
    let with = format!("{}:{plain}", at("bin").display());
    let by_path = "'my builds/ws2'";
    let sweep = shell(&format!("{by_path} sweep stages.toml --out 'my sweep' -q"), plain);
    assert!(sweep.status.success(), "{}", text(&sweep));
    shell(&format!("{by_path} run any-engine --out runs -q"), plain);

    let printed = |line: &str, path: &str, begins: &str| -> Vec<String> {
        let output = text(&shell(line, path));
        let from = |line: &str| line.find(begins).map(|at| line[at..].to_owned());
        let found: Vec<String> = output.lines().filter_map(from).collect();
        assert!(!found.is_empty(), "{line}: no {begins} in {output}");
        found
    };
    for (calls, path) in
        [(by_path, plain), ("watershed", &*with), ("bin/watershed", &*with), ("./bin/watershed", plain)]
    {
        // What the shell would find by its name is called by it.
        let named = if path == plain { calls } else { "watershed" };
        let best = printed(&format!("{calls} sweep best 'my sweep' --min gates"), path, &format!("{named} run "));
        for command in best {
            let output = shell(&format!("{command} -q"), path);
            assert!(output.status.success(), "{command}: {}", text(&output));
        }
        let why = printed(&format!("{calls} why runs/any-engine.json"), path, &format!("{named} w"));
        assert_eq!(why.len(), 2, "one that writes a waveform and one that shows it: {why:?}");
        for command in why {
            let output = shell(&command, path);
            assert!(output.status.success(), "{command}: {}", text(&output));
        }
        let fuzz = format!("{calls} fuzz software --fail-if 'cycles > 10' --runs 3 --out found");
        let again = printed(&fuzz, path, &format!("{named} run "));
        assert!(shell(&again[0], path).status.success(), "{again:?}");
        printed(&fuzz, path, &format!("{named} fuzz software "));
        printed(&format!("{calls} list"), path, &format!("`{named} run NAME`"));
        printed(&format!("{calls} run nothing-here"), path, &format!("`{named} list`"));
        printed(&format!("{calls} wave show runs/any-engine.json"), path, &format!("`{named} why`"));
    }
    // What is kept is the same whoever wrote it.
    let kept = fs::read_dir(at("found")).unwrap().map(|entry| entry.unwrap().path()).next().unwrap();
    assert!(fs::read_to_string(kept).unwrap().contains("# watershed run "));
}
