//! The first difference of two waveforms.
