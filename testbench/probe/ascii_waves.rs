//! Waveforms as text are the same every time and fit where they are told to.

use watershed::probe::Selection;
use watershed::probe::ascii::{DrawError, Options, Style, draw, draw_bytes};

use crate::support::{Block, mhz, small_run, tracer};

fn picture(options: &Options) -> String {
    draw_bytes(small_run(mhz(850), Selection::default()).bytes(), options).unwrap()
}

fn snapshot(name: &str, picture: &str) {
    insta::with_settings!({snapshot_path => "../../golden/probe", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!(name, picture);
    });
}

#[test]
fn every_kind_of_signal() {
    snapshot("ascii_every_kind", &picture(&Options { columns_per_cycle: 6, ..Options::default() }));
}

#[test]
fn chosen_signals_cycles_and_blocks() {
    let selection = Selection::new(["**.state", "**.full"]).unwrap().with_window(3, Some(9)).unwrap();
    let options = Options { selection, columns_per_cycle: 3, style: Style::Blocks, ..Options::default() };
    snapshot("ascii_blocks", &picture(&options));
}

#[test]
fn a_picture_is_never_too_wide() {
    for max_columns in 20..90 {
        let options = Options { max_columns, ..Options::default() };
        for line in picture(&options).lines().filter(|line| !line.starts_with(['d', '('])) {
            assert!(line.chars().count() <= max_columns, "{max_columns}: {line}");
        }
    }
    let selection = Selection::new(["**.busy"]).unwrap().with_window(2, Some(12)).unwrap();
    snapshot("ascii_no_room", &picture(&Options { selection, max_columns: 30, ..Options::default() }));
}

/// A file is read up to the end of the window, its bytes in memory are read whole.
#[test]
fn what_is_behind_a_window_changes_nothing_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.vcd");
    let whole = small_run(mhz(850), Selection::default()).bytes();
    // The run has the cycles 0 to 14.
    for (from, to) in (0..16).step_by(3).flat_map(|from| (from..19).map(move |to| (from, to))) {
        std::fs::write(&path, &whole).unwrap();
        let selection = Selection::default().with_window(from, Some(to)).unwrap();
        let options = Options { selection, for_reader: true, ..Options::default() };
        let told = |drawn: Result<String, DrawError>| drawn.unwrap_or_else(|error| error.to_string());
        let picture = told(draw_bytes(whole.clone(), &options));
        assert_eq!(told(draw(&path, &options)), picture, "{from}..{to}");
        // What is wrong far behind the window is not seen.
        if to < 10 {
            std::fs::write(&path, [&whole[..], b"nonsense\n#1\n"].concat()).unwrap();
            assert_eq!(told(draw(&path, &options)), picture, "{from}..{to}");
        }
    }
    std::fs::write(&path, [&whole[..], b"nonsense\n#1\n"].concat()).unwrap();
    assert!(draw(&path, &Options::default()).is_err());
}

#[test]
fn the_clock_shows() {
    let (mut tracer, file) = tracer(mhz(850), Selection::default());
    tracer.add_clock();
    let mut block = Block::default();
    let node = tracer.declare("b", |s| s.bits("count", 4, block.count)).unwrap();
    tracer.start().unwrap();
    for cycle in [2, 3, 6] {
        block.count = cycle;
        tracer.sample(node, cycle, |s| s.bits("count", 4, block.count));
    }
    tracer.finish(7).unwrap();
    snapshot("ascii_clock", &draw_bytes(file.bytes(), &Options::default()).unwrap());
}

/// The lines below a picture, and the width of its ruler.
fn told(signals: &str, from: u64, to: Option<u64>) -> (String, Vec<String>) {
    let selection = Selection::new([signals]).unwrap().with_window(from, to).unwrap();
    let options = Options { selection, for_reader: true, ..Options::default() };
    let picture = picture(&options);
    let below = picture.lines().filter(|line| line.starts_with('(')).map(str::to_owned).collect();
    (picture, below)
}

#[test]
fn pictures_end_with_their_waveform_and_say_what_they_show() {
    // The run has the cycles 0 to 14.
    let (whole, below) = told("**.busy", 0, None);
    let (ruler, bits) = (whole.lines().next().unwrap(), whole.lines().nth(2).unwrap());
    assert!(ruler.ends_with("14") && bits.len() == 8 + 15 * 4 && below.is_empty(), "{whole}");
    let (beyond, below) = told("**.busy", 12, Some(400));
    assert!(
        beyond.lines().next().unwrap().ends_with("14") && below == ["(the waveform ends with cycle 14)"],
        "{beyond}"
    );
    let selection = Selection::new(["**.busy"]).unwrap().with_window(15, None).unwrap();
    let run = small_run(mhz(850), Selection::default()).bytes();
    let error = draw_bytes(run, &Options { selection, ..Options::default() }).unwrap_err();
    assert_eq!(error.to_string(), "cycle 15 is beyond the end of the waveform, whose last cycle is 14");
    // Words of 64 bits are whole where the window leaves room for them, and a line says where it does not.
    let (narrow, below) = told("**.in1.head", 5, Some(9));
    for word in [5, 6, 7, 8, 9u64] {
        assert!(narrow.contains(&format!("{:x}", word << 60)), "{narrow}");
    }
    assert!(!narrow.contains('~') && below == ["(numbers are hexadecimal)"], "{narrow}");
    assert!(narrow.lines().all(|line| line.len() <= Options::default().max_columns), "{narrow}");
    let cut = "(numbers are hexadecimal; what ends in ~ is cut short: fewer cycles or more columns show it whole)";
    assert_eq!(told("**.in1.head", 2, None).1, [cut]);
    // Small numbers and names of states need no word.
    assert_eq!(told("**.state", 3, Some(9)).1, [""; 0]);
    let columns = Options { selection: Selection::new(["**.in1.head"]).unwrap(), ..Options::default() };
    assert!(!picture(&columns).contains('('), "snapshots stay as they are");
}

#[test]
fn foreign_waveforms_need_a_period() {
    let foreign = b"$timescale 1 ns $end $scope module top $end $var wire 1 ! clk $end $var wire 8 \" data [7:0] $end
        $upscope $end $enddefinitions $end #0 0! bx \" #5 1! #6 b101 \" #10 0! #15 1! b1z \" #20 0! #25\n";
    let bytes = || foreign.to_vec();
    assert!(matches!(draw_bytes(bytes(), &Options::default()), Err(DrawError::NoPeriod)));
    let options = Options { period: Some(mhz(100)), ..Options::default() };
    let wave = draw_bytes(bytes(), &options).unwrap();
    insta::assert_snapshot!(wave, @r"
    cycle   0   1   2
    top
      clk   __/-\_/-\___
      data  x |5  |b1z
    ");
}

#[test]
fn nothing_to_draw_is_an_error() {
    let run = small_run(mhz(850), Selection::default()).bytes();
    let error = |options: Options| draw_bytes(run.clone(), &options).unwrap_err().to_string();
    assert_eq!(
        error(Options { selection: Selection::new(["**.nothing"]).unwrap(), ..Options::default() }),
        "no signal matches `**.nothing`; there is, for example, `die0.tile1.engine.state`, `die0.tile1.engine.busy`, `die0.tile1.engine.count`"
    );
    assert_eq!(
        error(Options { max_columns: 8, ..Options::default() }),
        "8 columns are too few, the names alone need 13"
    );
}
