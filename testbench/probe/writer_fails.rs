//! A full disk ends the recording, not the run, and shows in the summary.

use std::io::{self, Write};

use watershed::probe::{FstSink, Selection, Sink, Tracer, VcdSink};

use crate::support::{Block, mhz};

/// Takes so many bytes, then is full.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"));
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run(room: usize) -> io::Result<u64> {
    let mut tracer = Tracer::new(mhz(1000), Selection::default(), Box::new(VcdSink::to_writer(Box::new(Disk(room)))));
    let mut block = Block::default();
    let node = tracer.declare("b", |s| block.probe(s)).unwrap();
    tracer.start().map_err(io::Error::other)?;
    for cycle in 1..20_000 {
        block.count = cycle & 0xfff;
        tracer.sample(node, cycle, |s| block.probe(s));
    }
    Ok(tracer.finish(20_000)?.bytes)
}

#[test]
fn a_full_disk_shows_at_the_end() {
    let bytes = run(usize::MAX).unwrap() as usize;
    assert!(bytes > 200_000, "several buffers");
    for room in [2_000, 100_000, bytes - 1] {
        let error = run(room).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "with room for {room} of {bytes} bytes");
    }
    assert!(run(bytes).is_ok());
}

#[test]
fn a_header_that_cannot_be_written_shows_at_the_start() {
    let error = run(10).unwrap_err();
    assert_eq!(error.to_string(), "cannot write the waveform: no space left");
}

#[test]
fn a_wrong_path_shows_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    assert!(VcdSink::create(directory.path().join("no/such/directory/run.vcd")).is_err());
}

#[test]
fn an_older_waveform_stands_until_the_new_one_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["wave.vcd", "wave.fst"] {
        let path = folder.path().join(name);
        std::fs::write(&path, "an older waveform").unwrap();
        let old = || std::fs::read_to_string(&path).is_ok_and(|text| text == "an older waveform");
        let sink = || -> Box<dyn Sink> {
            if FstSink::is_wanted(&path) {
                Box::new(FstSink::create(&path).unwrap())
            } else {
                Box::new(VcdSink::create(&path).unwrap())
            }
        };
        drop(sink());
        assert!(old(), "{name}");
        let mut tracer = Tracer::new(mhz(1000), Selection::default(), sink());
        let mut block = Block::default();
        let node = tracer.declare("b", |s| block.probe(s)).unwrap();
        tracer.start().unwrap();
        for cycle in 1..20_000 {
            block.count = cycle & 0xfff;
            tracer.sample(node, cycle, |s| block.probe(s));
        }
        assert!(old() && !path.with_extension("gtkw").exists(), "{name}");
        tracer.finish(20_000).unwrap();
        assert!(!old() && path.with_extension("gtkw").exists(), "{name}");
        std::fs::remove_file(path.with_extension("gtkw")).unwrap();
    }
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| name.contains(".part") || name.contains(".lock")).collect();
    assert_eq!(left, [""; 0]);
}
