//! Running the program in the root of the project.

use std::path::{Path, PathBuf};

use assert_cmd::Command;

use crate::share;

/// The root of the project, to which paths in messages are relative.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A `PATH` on which the program is: it then prints itself by its name.
pub fn path() -> std::ffi::OsString {
    let own = Path::new(env!("CARGO_BIN_EXE_watershed")).parent().expect("a program is in a folder").to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&others)))
        .expect("folders without separators")
}

/// What a run of the program left.
#[derive(Debug)]
pub struct Output {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program with these arguments.
pub fn watershed<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    // CI accepts no golden file; what is tested here is what the program does on anybody's machine.
    let output = Command::new(env!("CARGO_BIN_EXE_watershed"))
        .current_dir(root())
        .env_remove("CI")
        .env("PATH", path())
        .args(arguments)
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    let output = Output {
        status: output.status.code().expect("no signal ended the program"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    output
}

/// Files of a folder with this extension, sorted.
pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join(folder))
        .unwrap_or_else(|error| panic!("{folder}: {error}"))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// Scenarios of a folder that are small enough for every test; the others are run by `make soak`.
pub fn small(folder: &str) -> Vec<PathBuf> {
    files(folder, "toml").into_iter().filter(|path| !stem(path).contains("16384")).collect()
}

/// The name of a file without folder and extension.
pub fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// A network of as many layers as LeNet-5, with about a thirtieth of its weights.
const SMALL_NETWORK: &str = "name = 'small'\ninput = [1, 32, 32]\nlayer = [\n\
    { name = 'c1', kind = 'convolution', channels = 2, kernel = 5, bias = true },\n\
    { name = 's2', kind = 'pool', kernel = 2, stride = 2 },\n\
    { name = 'c3', kind = 'convolution', channels = 4, kernel = 5, bias = true },\n\
    { name = 's4', kind = 'pool', kernel = 2, stride = 2 },\n\
    { name = 'f5', kind = 'dense', features = 16 },\n\
    { name = 'f6', kind = 'dense', features = 12 },\n\
    { name = 'f7', kind = 'dense', features = 10 },\n]\n";

/// Traces of sixteen ranks that train five layers: LeNet-5 in `make soak`; in `make test` a smaller network, written into this folder.
pub fn training(folder: &Path) -> String {
    if share::is_whole() {
        return root().join("traces/training/lenet").to_str().unwrap().to_owned();
    }
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    std::fs::write(at("small.toml"), SMALL_NETWORK).unwrap();
    let (model, traces) = (at("small.toml"), at("small"));
    let output = watershed(["workload", "train", &model, "--minibatch", "8", "--peak-tflops", "0.1", "--out", &traces]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    traces
}

/// A scenario in memory.
pub fn load(text: &str, overrides: &[&str]) -> Result<watershed::scenario::Loaded, String> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    watershed::scenario::load_text("test.toml", text, root(), "test", &overrides)
        .map_err(|problems| problems.to_string())
}

/// Runs the program in a folder where no file can be larger than this many blocks of 512 bytes.
#[cfg(unix)]
pub fn with_small_files(folder: &Path, blocks: u32, arguments: &[&str]) -> Output {
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_watershed")])
        .args(arguments)
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}
