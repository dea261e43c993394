//! Does a waveform show what the registers held? Files are read back with an independent reader (`wellen`).

mod support;

mod ascii_waves;
mod gtkwave_shows_names;
mod selection_prunes;
mod vcd_reads_back;
mod waves_differ;
mod writer_fails;
