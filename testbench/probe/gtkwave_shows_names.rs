//! W-VCD-1: the save file beside a waveform makes GTKWave show names of states.

use std::fs;
use std::path::PathBuf;

use watershed::probe::{EnumTable, Selection, Tracer, VcdSink};

use crate::support::{Block, mhz};

static MANY: EnumTable = EnumTable {
    name: "Engine State",
    names: &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "LAST ONE"],
};
static SAME_FILE_NAME: EnumTable = EnumTable { name: "Engine_State", names: &["NO", "YES", "PERHAPS"] };

#[test]
fn save_file_and_translations() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.vcd");
    let mut tracer = Tracer::new(mhz(1000), Selection::default(), Box::new(VcdSink::create(&path).unwrap()));
    let block = Block::default();
    tracer.declare("die0.tile0.engine", |s| block.probe(s));
    tracer.declare("die0.tile0", |s| {
        s.state("long", &MANY, 16);
        s.state("short", &SAME_FILE_NAME, 1);
    });
    tracer.start().unwrap();
    let summary = tracer.finish(3).unwrap();

    let names: Vec<PathBuf> = summary.files.iter().map(|file| file.file_name().unwrap().into()).collect();
    let expected = [
        "run.vcd",
        "run.gtkw",
        "run.sucl",
        "run.Engine_State.names",
        "Engine_State.txt",
        "run.Engine_State_2.names",
        "Engine_State_2.txt",
        "run.EngineState.names",
        "EngineState.txt",
    ];
    assert_eq!(names, expected.map(PathBuf::from));
    assert_eq!(summary.bytes, fs::metadata(&path).unwrap().len());

    let mut shown = String::new();
    for file in &summary.files[1..] {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        shown += &["--- ", &name, "\n", &fs::read_to_string(file).unwrap()].concat();
    }
    insta::with_settings!({snapshot_path => "../../golden/probe", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("gtkwave_files", shown);
    });
}

#[test]
fn it_can_be_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let sink = VcdSink::create(directory.path().join("run.vcd")).unwrap().without_save_file();
    let mut tracer = Tracer::new(mhz(1000), Selection::default(), Box::new(sink));
    tracer.declare("b", |s| Block::default().probe(s)).unwrap();
    tracer.start().unwrap();
    assert_eq!(tracer.finish(3).unwrap().files.len(), 1);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// A block's few that tell most stand in a group before all others, in both viewers, and not a second time.
#[test]
fn what_is_to_be_seen_first_is_a_group() {
    let directory = tempfile::tempdir().unwrap();
    let sink = VcdSink::create(directory.path().join("run.vcd")).unwrap();
    let mut tracer = Tracer::new(mhz(1000), Selection::default(), Box::new(sink));
    tracer.declare("a", |s| s.bit("usual", true)).unwrap();
    tracer.declare("b", |s| {
        s.bit("other", true);
        s.first(|s| s.indexed("stage", 1, |s| s.bits("sum", 8, 1)));
        s.bit("last", true);
    });
    tracer.start().unwrap();
    tracer.finish(1).unwrap();
    let gtkw = fs::read_to_string(directory.path().join("run.gtkw")).unwrap();
    let from = gtkw.find("@800200").expect("a group");
    assert_eq!(
        &gtkw[from..],
        "@800200\n-stage registers\n@200\n-b.stage1\n@22\nb.stage1.sum[7:0]\n@1000200\n-stage registers\n\
         @200\n-a\n@28\na.usual\n@200\n-b\n@28\nb.other\n@28\nb.last\n"
    );
    let surfer = fs::read_to_string(directory.path().join("run.sucl")).unwrap();
    let first =
        "# watershed\ndivider_add stage_registers\ndivider_add b_stage1\nvariable_add b.stage1.sum\ndivider_add a\n";
    assert!(surfer.starts_with(first) && surfer.matches("b.stage1.sum").count() == 1, "{surfer}");
}
