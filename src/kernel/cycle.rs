//! The clock, and the conversion of times in nanoseconds into cycles (requirement K-TIME-1).
//!
//! Everything in the model counts cycles of one clock. Times in a scenario may be given in nanoseconds; they are
//! rounded *up* to whole cycles, and every rounding that changed a value is reported ([`Rounded`]).

use super::Cycle;

/// One clock of a fixed frequency, kept as an integer number of hertz so that no time stamp ever drifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    hz: u64,
}

/// A time that was given in nanoseconds and the whole number of cycles it became.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounded {
    /// What was asked for, in nanoseconds.
    pub given_ns: f64,
    /// What the model uses: the smallest whole number of cycles that is not shorter.
    pub cycles: Cycle,
    /// Whether the two differ.
    pub inexact: bool,
}

/// Picoseconds in a second.
const PS: u128 = 1_000_000_000_000;

impl Clock {
    /// A clock of `hz` hertz.
    ///
    /// # Panics
    /// If `hz` is zero; scenario checks refuse that before.
    pub fn from_hz(hz: u64) -> Clock {
        assert!(hz > 0, "a clock needs a frequency above zero");
        Clock { hz }
    }

    /// The frequency in hertz.
    pub fn hz(self) -> u64 {
        self.hz
    }

    /// When `cycle` begins, in picoseconds, rounded down: floor(cycle x period) for each cycle on its own.
    pub fn start_ps(self, cycle: Cycle) -> u128 {
        u128::from(cycle) * PS / u128::from(self.hz)
    }

    /// A span of cycles in nanoseconds.
    pub fn ns(self, cycles: Cycle) -> f64 {
        cycles as f64 * 1e9 / self.hz as f64
    }

    /// The smallest whole number of cycles that lasts at least `ns` nanoseconds.
    ///
    /// A billionth of a cycle is forgiven, so that a decimal such as `0.1` that has no exact binary form does not
    /// cost a whole cycle.
    pub fn cycles(self, ns: f64) -> Rounded {
        let exact = ns * self.hz as f64 / 1e9;
        let nearest = exact.round();
        let (cycles, inexact) = if (exact - nearest).abs() <= 1e-9 * exact.max(1.0) {
            (nearest as Cycle, false)
        } else {
            (exact.ceil() as Cycle, true)
        };
        Rounded { given_ns: ns, cycles, inexact }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_round_up_and_say_so() {
        let clock = Clock::from_hz(1_000_000_000);
        assert_eq!(clock.cycles(5.0), Rounded { given_ns: 5.0, cycles: 5, inexact: false });
        assert_eq!(clock.cycles(5.3), Rounded { given_ns: 5.3, cycles: 6, inexact: true });
        assert_eq!(clock.cycles(0.0).cycles, 0);
        let slow = Clock::from_hz(850_000_000);
        assert_eq!(slow.cycles(1.0), Rounded { given_ns: 1.0, cycles: 1, inexact: true });
        assert_eq!(slow.cycles(20.0).cycles, 17);
        assert!(!slow.cycles(20.0).inexact);
    }

    #[test]
    fn time_stamps_of_850_mhz_do_not_drift() {
        let clock = Clock::from_hz(850_000_000);
        assert_eq!(clock.start_ps(1), 1176);
        assert_eq!(clock.start_ps(2), 2352);
        assert_eq!(clock.start_ps(3), 3529);
        // A billion cycles later the stamp is still the floor of the exact product, not a sum of rounded periods.
        assert_eq!(clock.start_ps(850_000_000), 1_000_000_000_000);
    }
}
