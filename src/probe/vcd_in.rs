//! A streaming reader of VCD files.
