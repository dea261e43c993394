//! The viewer files beside a waveform: the GTKWave save file, translation files of the states, and a command file and
//! mapping files for Surfer.
//!
//! GTKWave 3.3 does not read the tables of states in a VCD header. It does read a save file (`run.gtkw` beside
//! `run.vcd`) that lists the signals to show, and for each state names a file with lines `value NAME`
//! (`run.Engine.names`). So `gtkwave run.gtkw` shows names at once.
//!
//! **Format.** A line `@22` sets the display of the signals after it (bit 1: hexadecimal, bit 3: binary, bit 5: right
//! justified, bit 13: translated by file); `^1 FILE` sets the translation file; `-text` is a heading. Values in a
//! translation file are written as GTKWave shows them: hexadecimal, with leading zeros.
//!
//! Signals that their block declares as [first](super::Scope::first) come before all others: `@800200` and `@1000200`
//! with a heading begin and end a group that can be folded. Those of an adder tree are its operands, the control
//! registers of each stage, and every register of the units that join two operands.
//!
//! **Surfer** shows the states of a VCD file by name as they are, and knows none of an FST file. `surfer -c run.sucl run.fst`, started
//! in the folder of the waveform, adds the same signals (`divider_add`, `variable_add`); and every table is a mapping
//! (`.surfer/mappings/TABLE.txt`: `Name`, `Bits`, then a value and its name a line) that can be chosen as a signal's format. Both
//! are in the documented formats of its manual, "Commands" and "Mapping Translators".
//!
//! **Paths** are bare file names: GTKWave looks for them where the save file is, because the save file names itself in
//! `[savefile]`. The files can be moved together.
//!
//! **Signals.** Up to thirty are listed, around the first event of interest ([`Curator`]): both viewers open there. All others
//! can be added from their trees.
//!
//! **Limits.** A state of one bit is shown as a line, as GTKWave does with every single bit.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::curate::Curator;
use super::sink::Values;
use super::vcd_out::word;
use super::{Declarations, EnumTable, Period, SignalId};
use watershed_files::AtomicFile;

/// Cycles that GTKWave shows before the first event of interest.
const LEAD: u64 = 4;

/// Cycles that Surfer shows, about.
const WINDOW: u64 = 48;

/// Heading of the signals that are shown [first](super::Scope::first).
const FIRST: &str = "stage registers";

/// Where Surfer looks for mappings, in the folder it is started in.
const MAPPINGS: &str = ".surfer/mappings";

/// Gives a waveform its name, and what stands beside it: all of it is on the disk before the first file is replaced.
pub(super) fn keep(
    mut wave: AtomicFile,
    path: &Path,
    beside: Option<&SaveFile>,
    end_ps: u64,
) -> io::Result<Vec<PathBuf>> {
    let mut files = vec![path.to_owned()];
    let mut drafts = Vec::new();
    wave.sync()?;
    for (name, text) in beside.map(|save| save.files(end_ps)).unwrap_or_default() {
        let file = path.with_file_name(name);
        drafts.extend(begin(&file, &text)?);
        files.push(file);
    }
    wave.keep()?;
    drafts.into_iter().try_for_each(AtomicFile::keep)?;
    Ok(files)
}

/// Writes a file beside a waveform, with the folders in its name; `None` if it is there already: tables of names are shared
/// by all waveforms of a folder.
fn begin(path: &Path, text: &str) -> io::Result<Option<AtomicFile>> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut patience = 100;
    loop {
        if fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(None);
        }
        match AtomicFile::create(path) {
            // Another run writes its waveform into this folder, and with it the same table.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && patience > 0 => {
                patience -= 1;
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            Err(error) => return Err(error),
            Ok(mut draft) => {
                draft.write_all(text.as_bytes())?;
                draft.sync()?;
                return Ok(Some(draft));
            }
        }
    }
}

/// What stands beside a waveform: made from the curated signals when the recording ends.
pub(super) struct SaveFile {
    waveform: PathBuf,
    roots: Vec<String>,
    signals: usize,
    period: Option<Period>,
    curator: Curator,
}

impl SaveFile {
    pub(super) fn new(waveform: &Path, declarations: &Declarations) -> SaveFile {
        let root = |&root: &u32| declarations.scopes[root as usize].name.clone();
        SaveFile {
            waveform: waveform.to_owned(),
            roots: declarations.roots.iter().map(root).collect(),
            signals: declarations.signals.len(),
            period: declarations.period,
            curator: Curator::new(declarations),
        }
    }

    /// Takes notice of values at the first moment.
    pub(super) fn begin(&mut self, values: Values<'_>) {
        self.curator.begin(values);
    }

    /// Takes notice of changes.
    #[inline]
    pub(super) fn step(&mut self, time_ps: u64, changed: &[SignalId], values: Values<'_>) {
        self.curator.step(time_ps, changed, values);
    }

    /// Names and contents: the save file first, then that for Surfer, then the translation files.
    fn files(&self, end_ps: u64) -> Vec<(String, String)> {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let stem = text(self.waveform.file_stem());
        let save_name = format!("{stem}.gtkw");
        let mut tables = Tables::default();
        let curated = self.curator.curated();
        let lead = self.period.map_or(0, |period| period.start_ps(LEAD));
        let event = curated.event_ps.unwrap_or(0);
        let mut save = format!(
            "[*]\n[*] watershed\n[*]\n[dumpfile] \"{}\"\n[savefile] \"{save_name}\"\n[timestart] {}\n",
            text(self.waveform.file_name()),
            event.saturating_sub(lead)
        );
        if let Some(period) = self.period {
            // A zoom of -z shows 2^z ps in 200 pixels; this one gives a cycle 33 to 67 pixels, room for a short name, and a
            // window of 1280 pixels some twelve cycles.
            let marker = curated.event_ps.map_or_else(|| "-1".to_owned(), |event| event.to_string());
            let _ = writeln!(save, "*-{}.0 {marker}", period.start_ps(6).ilog2());
        }
        for root in &self.roots {
            let _ = writeln!(save, "[treeopen] {root}.");
        }
        let mut commands = String::from("# watershed\n");
        let mut open = false;
        for group in &curated.groups {
            if group.first && !open {
                let _ = writeln!(save, "@800200\n-{FIRST}");
                let _ = writeln!(commands, "divider_add {}", one_word(FIRST));
            } else if !group.first && open {
                let _ = writeln!(save, "@1000200\n-{FIRST}");
            }
            open = group.first;
            let path = &group.path;
            let _ = writeln!(save, "@200\n-{path}");
            let _ = writeln!(commands, "divider_add {}", one_word(path));
            for signal in &group.signals {
                let range = match signal.width {
                    1 => String::new(),
                    width => format!("[{}:0]", width - 1),
                };
                let display = match signal.table {
                    Some(table) if signal.width > 1 => {
                        let file = tables.file(&stem, table);
                        format!("@2022\n^1 {file}")
                    }
                    _ if signal.width == 1 => "@28".to_owned(),
                    _ => "@22".to_owned(),
                };
                let _ = writeln!(save, "{display}\n{path}.{}{range}", signal.name);
                let _ = writeln!(commands, "variable_add {path}.{}", signal.name);
            }
        }
        if open {
            let _ = writeln!(save, "@1000200\n-{FIRST}");
        }
        let listed: usize = curated.groups.iter().map(|group| group.signals.len()).sum();
        if listed < self.signals {
            let _ = writeln!(save, "@200\n-{} more signals in the tree", self.signals - listed);
        }
        commands.push_str("zoom_fit\n");
        if let (Some(event), Some(period)) = (curated.event_ps, self.period) {
            // Each step shows half of what the last one did.
            let mut shown = end_ps;
            while shown > period.start_ps(WINDOW) {
                shown /= 2;
                commands.push_str("zoom_in\n");
            }
            let _ = writeln!(commands, "cursor_set {event}\ngoto_cursor");
        }
        let mut files = vec![(save_name, save), (format!("{stem}.sucl"), commands)];
        files.extend(tables.files);
        files
    }
}

/// A heading as Surfer takes it: letters, digits and underscores; the command ends at anything else.
fn one_word(heading: &str) -> String {
    heading.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_")
}

/// Translation files made so far.
#[derive(Default)]
struct Tables {
    names: HashMap<String, &'static EnumTable>,
    files: Vec<(String, String)>,
}

impl Tables {
    /// Name of a table's file; makes it when it is met first.
    fn file(&mut self, stem: &str, table: &'static EnumTable) -> String {
        let base: String =
            (table.name.chars()).map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        let mut name = format!("{stem}.{base}.names");
        let mut count = 1;
        while self.names.get(&name).is_some_and(|known| *known != table) {
            count += 1;
            name = format!("{stem}.{base}_{count}.names");
        }
        if self.names.insert(name.clone(), table).is_none() {
            let digits = table.width().div_ceil(4) as usize;
            let mut text = String::new();
            for (value, value_name) in table.names.iter().enumerate() {
                let _ = writeln!(text, "{value:0digits$X} {}", word(value_name));
            }
            self.files.push((name.clone(), text));
            let mapping = name.trim_start_matches(&format!("{stem}.")).trim_end_matches(".names").to_owned();
            let mut text = format!("Name = {mapping}\nBits = {}\n", table.width());
            for (value, value_name) in table.names.iter().enumerate() {
                let _ = writeln!(text, "{value} {}", word(value_name));
            }
            self.files.push((format!("{MAPPINGS}/{mapping}.txt"), text));
        }
        name
    }
}
