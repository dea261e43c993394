//! Registered channels: flits and credits under way, kept by the cycle in which they arrive.
//!
//! ```text
//!   push(now, delay, x) ──▶ [ now+1 | now+2 | … | now+horizon ] ──▶ take(now)
//! ```
//!
//! A link of latency L is not an object with a shift register of its own: millions of idle links would then cost memory
//! and time. All links share one calendar of arrivals; a flit that is sent is entered under the cycle in which it is
//! committed at the other end. The calendar holds exactly the contents of the stages of all links. Within one cycle the
//! order of entries for different registers carries no meaning; those for the same register (credits of a queue out of
//! which an end point took two flits at once) stand in the order in which they were entered.

use super::Cycle;

/// Everything of one kind that is under way, by the cycle of its arrival.
///
/// ```
/// use watershed_kernel::Wheel;
///
/// let mut link = Wheel::new(8);
/// link.push(10, 3, "flit"); // sent in cycle 10 over a link of latency 2, with the edge at its end
/// assert!(link.take(12).is_empty());
/// assert_eq!(link.take(13), ["flit"]);
/// ```
#[derive(Clone, Debug, watershed_state::Saved)]
pub struct Wheel<T> {
    slots: Vec<Vec<T>>,
    mask: u64,
    /// The longest delay that was asked for.
    horizon: u64,
    under_way: usize,
}

impl<T> Wheel<T> {
    /// A wheel for delays of 1 to `horizon` cycles.
    pub fn new(horizon: u64) -> Wheel<T> {
        let slots = (horizon + 1).next_power_of_two() as usize;
        Wheel { slots: (0..slots).map(|_| Vec::new()).collect(), mask: slots as u64 - 1, horizon, under_way: 0 }
    }

    /// The longest delay that can be entered.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Enters `item`, which is committed at the start of cycle `now + delay`.
    ///
    /// # Panics
    /// In debug builds, if the delay is zero (a combinational path, which K-CLK-1 forbids) or beyond the horizon.
    #[inline]
    pub fn push(&mut self, now: Cycle, delay: u64, item: T) {
        debug_assert!(delay >= 1, "a channel needs a latency of at least one cycle: send with delay >= 1");
        debug_assert!(
            delay <= self.horizon,
            "delay {delay} is beyond the horizon {}: build the wheel longer",
            self.horizon
        );
        let slot = &mut self.slots[((now + delay) & self.mask) as usize];
        self.under_way += 1;
        slot.push(item);
    }

    /// Takes out what arrives in cycle `now`; give the emptied vector back with [`Wheel::recycle`].
    #[inline]
    pub fn take(&mut self, now: Cycle) -> Vec<T> {
        let items = std::mem::take(&mut self.slots[(now & self.mask) as usize]);
        self.under_way -= items.len();
        items
    }

    /// Gives the memory of a vector from [`Wheel::take`] back, so that a running model allocates nothing. It goes to the cycle
    /// that can be entered from now on: what has just been read is still in the cache when it is written, and no more memory
    /// turns with the wheel than the longest delay needs. If that cycle has as much, the vector stays where it was.
    #[inline]
    pub fn recycle(&mut self, now: Cycle, mut items: Vec<T>) {
        let place = |cycle: Cycle| (cycle & self.mask) as usize;
        let farthest = place(now + self.horizon);
        let needs = self.slots[farthest].capacity() < items.capacity();
        let slot = &mut self.slots[if needs { farthest } else { place(now) }];
        if slot.capacity() < items.capacity() {
            items.clear();
            items.append(slot);
            *slot = items;
        }
    }

    /// Frees the memory of cycles in which nothing arrives: one of many wheels needs it only while it turns.
    pub fn free_unused(&mut self) {
        self.slots.iter_mut().filter(|slot| slot.is_empty()).for_each(|slot| *slot = Vec::new());
    }

    /// How many items are under way.
    #[inline]
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// The first cycle from `now` on in which something arrives.
    pub fn next(&self, now: Cycle) -> Option<Cycle> {
        if self.under_way == 0 {
            return None;
        }
        (now..=now + self.mask).find(|cycle| !self.slots[(cycle & self.mask) as usize].is_empty())
    }

    /// Everything under way, in order of arrival from `now` on: for the watchdog's report and for checks.
    pub fn iter(&self, now: Cycle) -> impl Iterator<Item = (Cycle, &T)> {
        (now..=now + self.mask)
            .flat_map(move |cycle| self.slots[(cycle & self.mask) as usize].iter().map(move |item| (cycle, item)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_arrives_after_exactly_its_delay() {
        for delay in 1..=20 {
            let mut wheel = Wheel::new(20);
            wheel.push(7, delay, delay);
            assert_eq!(wheel.next(7), Some(7 + delay));
            for cycle in 7..7 + delay {
                assert!(wheel.take(cycle).is_empty(), "nothing may arrive before cycle {}", 7 + delay);
            }
            assert_eq!(wheel.take(7 + delay), [delay]);
            assert_eq!(wheel.under_way(), 0);
            assert_eq!(wheel.next(7), None);
        }
    }

    #[test]
    #[should_panic(expected = "latency of at least one cycle")]
    fn a_combinational_path_is_refused() {
        Wheel::new(4).push(0, 0, ());
    }

    #[test]
    fn recycled_memory_keeps_what_was_entered_meanwhile() {
        let mut wheel = Wheel::new(3);
        (0..100).for_each(|_| wheel.push(0, 1, 'a'));
        let items = wheel.take(1);
        let room = items.capacity();
        wheel.push(1, 3, 'b');
        wheel.recycle(1, items);
        let items = wheel.take(4);
        assert_eq!((&items[..], items.capacity()), (&['b'][..], room));
    }

    #[test]
    fn a_wheel_that_turns_allocates_nothing() {
        // Every cycle, every other cycle, and with delays shorter than the horizon.
        for (horizon, delay, step) in [(3, 3, 1), (3, 2, 1), (3, 2, 2), (4, 3, 2), (6, 5, 3)] {
            let mut wheel = Wheel::new(horizon);
            // Cycles in which nothing is sent and nothing arrives are left out.
            for now in (0..60 * step).filter(|now| now % step == 0 || now % step == delay % step) {
                let items = wheel.take(now);
                wheel.recycle(now, items);
                if now % step == 0 {
                    let room = wheel.slots[((now + delay) & wheel.mask) as usize].capacity();
                    assert!(
                        room > 0 || now < 30 * step,
                        "horizon {horizon}, delay {delay}, every {step} cycles: {now}"
                    );
                    wheel.push(now, delay, now);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "delay 5 is beyond the horizon 4")]
    fn a_delay_beyond_the_horizon_is_refused() {
        Wheel::new(4).push(0, 5, ());
    }
}
