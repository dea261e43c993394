//! Waveforms as text.
