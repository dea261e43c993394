//! piuma
