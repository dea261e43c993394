//! The result of a run for people.
