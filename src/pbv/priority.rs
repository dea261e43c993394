//! Priority by traffic class: the order of waiting frames (paragraph 156).
//!
//! ```text
//!   oldest ─▶ TC 0 │ TC 5 │ TC 0 │ TC 7 │ ◀─ youngest        TC 7 goes, then TC 5; after `bound` frames that went past
//!                                                             an older one, the oldest
//! ```
//!
//! | parameter | default | range | effect |
//! |---|---|---|---|
//! | `bound` | 16 | 0 to 255 frames | frames in a row that may pass an older one of a lower class; then the oldest goes. 0: strict, the lowest class may wait for ever |
//!
//! Frames of one class go in the order of arrival. A higher number is a higher priority *\[chosen: the text only says
//! that the class may indicate a priority\]*.
//!
//! ```
//! use watershed_pbv::priority::ClassArbiter;
//!
//! let mut arbiter = ClassArbiter::new(2); // two frames may go past an older one
//! let mut waiting = vec![0, 5, 5, 5]; // classes, the oldest first
//! waiting.iter().for_each(|&class| arbiter.enqueued(class));
//! let mut granted = Vec::new();
//! while let Some(at) = arbiter.next(waiting.iter().copied()) {
//!     arbiter.granted(at); // a frame a turn
//!     arbiter.dequeued(waiting[at]);
//!     granted.push(waiting.remove(at));
//! }
//! assert_eq!(granted, [5, 5, 0, 5]);
//! ```

/// Chooses by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, watershed_state::Saved)]
pub struct ClassArbiter {
    bound: u8,
    /// Frames in a row that went past the oldest one.
    passed: u8,
    /// Frames that wait, by class.
    waiting: [u32; 8],
}

impl ClassArbiter {
    /// A choice with this bound.
    pub fn new(bound: u8) -> ClassArbiter {
        ClassArbiter { bound, passed: 0, waiting: [0; 8] }
    }

    /// A frame of this class waits from now on.
    pub fn enqueued(&mut self, class: u8) {
        self.waiting[usize::from(class)] += 1;
    }

    /// One of this class waits no longer.
    pub fn dequeued(&mut self, class: u8) {
        self.waiting[usize::from(class)] -= 1;
    }

    /// The place of the frame that goes next, from the classes of all that wait, the oldest first; none if nothing waits.
    pub fn next(&self, mut classes: impl Iterator<Item = u8>) -> Option<usize> {
        let highest = self.waiting.iter().rposition(|&count| count > 0)?;
        if self.bound > 0 && self.passed >= self.bound {
            return Some(0);
        }
        classes.position(|class| usize::from(class) == highest)
    }

    /// The frame at this place has gone.
    pub fn granted(&mut self, at: usize) {
        self.passed = if at == 0 { 0 } else { self.passed.saturating_add(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_classes_go_first_and_the_oldest_waits_up_to_the_bound() {
        for bound in [0u8, 1, 3, 16] {
            let mut arbiter = ClassArbiter::new(bound);
            let mut waiting = vec![(0u8, 0u32)];
            arbiter.enqueued(0);
            let mut order = Vec::new();
            for round in 1..=40 {
                waiting.push((5, round));
                arbiter.enqueued(5);
                let at = arbiter.next(waiting.iter().map(|frame| frame.0)).unwrap();
                arbiter.granted(at);
                arbiter.dequeued(waiting[at].0);
                order.push(waiting.remove(at).1);
            }
            let lowest = order.iter().position(|&frame| frame == 0);
            assert_eq!(lowest, (bound > 0).then_some(usize::from(bound)), "bound {bound}");
            order.retain(|&frame| frame > 0);
            assert!(order.is_sorted(), "frames of one class keep their order");
        }
    }
}
