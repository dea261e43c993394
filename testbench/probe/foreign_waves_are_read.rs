//! Waveforms of other programs are read as the standard has them; what is no waveform is refused with its line.

use std::fmt::Write as _;
use std::io::Cursor;

use watershed::probe::Period;
use watershed::probe::wave_in::{ReadError, WaveFile};

fn read(text: &str) -> Result<WaveFile, ReadError> {
    WaveFile::new(Box::new(Cursor::new(text.as_bytes().to_vec())))
}

/// Moments with the values that change in them.
fn all(text: &str) -> Result<Vec<String>, ReadError> {
    let mut wave = read(text)?;
    let signals = wave.load(0..wave.header().signals)?;
    let mut changes: Vec<_> = (0..wave.header().signals).map(|signal| wave.changes(&signals, signal)).collect();
    let line = |moment: u128| {
        let mut line = moment.to_string();
        for (signal, changes) in changes.iter_mut().enumerate().filter(|(_, of)| of.next_fs() == Some(moment)) {
            changes.step();
            let _ = write!(line, " {signal}={}", String::from_utf8_lossy(changes.value()));
        }
        line
    };
    Ok(wave.moments().map(line).collect())
}

const HEAD: &str = "$timescale 10 ns $end $scope module a $end $var wire 4 ! v [3:0] $end $var real 64 r r $end
$var string 1 s s $end $upscope $end $enddefinitions $end\n";

#[test]
fn values_are_shortened_alike() {
    let text = format!("{HEAD}b0011 !\n#0 r1.50 r #1\n#1 bxxX1 ! #3 s$hello s b00x1 ! #4 bz !\n$dumpall b0 ! $end\n");
    let expected = ["0 0=b11 1=r1.5", "10000000 0=bx1", "30000000 0=b0x1 2=s$hello", "40000000 0=b0"];
    assert_eq!(all(&text).unwrap(), expected);
}

#[test]
fn names_leave_out_the_full_range() {
    let wave = read(
        "$comment clock period 20000/17 ps $end $scope module top $end
        $var wire 8 a glued[7:0] $end $var wire 8 b apart [7:0] $end $var wire 4 c part [7:4] $end
        $var wire 1 d bit [3] $end $var wire 8 a glued $end
        $attrbegin misc 07 State 2 IDLE BUSY 0 1 9 $end
        $scope module in $end $attrbegin misc 07 \"\" 9 $end $var reg 1 e state $end $upscope $end
        $upscope $end $enddefinitions $end\n",
    )
    .unwrap();
    let header = wave.header();
    let names: Vec<&str> = header.variables.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["top.glued", "top.apart", "top.part[7:4]", "top.bit[3]", "top.glued#2", "top.in.state"]);
    assert_eq!(header.signals, 5);
    assert_eq!(header.variables[0].signal, header.variables[4].signal);
    assert_eq!(header.tables[header.variables[5].table.unwrap()][&b"b1".to_vec()], "BUSY");
    assert_eq!(header.period, Period::from_mhz(850));
}

#[test]
fn what_is_no_waveform_is_refused_with_its_line() {
    let body = |text: &str| format!("{HEAD}{text}\n");
    let deep = "$scope module a $end ".repeat(1001);
    for (text, expected) in [
        (String::new(), "the file is empty"),
        ("hello".to_owned(), "it is neither a VCD nor an FST file"),
        ("\0\0\0".to_owned(), "it is neither a VCD nor an FST file"),
        ("$scope module a $end\n$var wire 1 $end\n".to_owned(), "line 2: "),
        ("$scope module\n".to_owned(), "the file ends before `$enddefinitions`"),
        ("$timescale 1 as $end $var wire 1 ! a $end $enddefinitions $end\n".to_owned(), "its time scale is none of"),
        ("$var wire 99999999 ! a $end $enddefinitions $end\n".to_owned(), "`a` has 99999999 bits: more than 16777216"),
        (format!("{deep} $var wire 1 ! a $end $enddefinitions $end\n"), "scopes nest deeper than 1000"),
        (body("#5\n#4"), "line 4: time goes back from 5 to 4"),
        (body("#5\nb01 ?"), "line 4: a value of `?`, which no variable is declared to have"),
        (body("#5\n1r2"), "line 4: a value of `r2`, which no variable is declared to have"),
        (body("#5\nb02 !"), "line 4: Bit-vector contains invalid character"),
        (body("#x"), "line 3: "),
        (body("rabc r"), "line 3: "),
        (body("what"), "line 3: "),
    ] {
        let error = all(&text).err().unwrap_or_else(|| panic!("{text}: it is read")).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
