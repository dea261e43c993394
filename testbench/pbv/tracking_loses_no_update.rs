//! The read-modify-write pipeline over the tracking store: messages of one context in consecutive cycles, of many contexts
//! in any order, lose no update; PBV and p_count agree in every cycle (B-CE-3).

use watershed::kernel::Rng;
use watershed::pbv::ce::{Hazard, Label, Request, Track, TrackOp, TrackResult, Tracker, Verdict};

/// What the pipeline said, in order.
type Said = Vec<(u16, TrackOp, Track, Verdict)>;

/// One clock of the pipeline; a verdict gives the generation of its operation back, which is the cycle here.
fn tick(tracker: &mut Tracker, op: Option<(u16, TrackOp)>) -> Option<(u16, TrackOp, Track, Verdict)> {
    let judged = tracker.tick(op.map(|(slot, op)| Request {
        slot,
        generation: u32::from(slot) ^ 0x5a,
        op,
        label: Label::default(),
    }))?;
    let TrackResult { request: Request { slot, generation, op, .. }, track, verdict } = judged;
    assert_eq!(generation, u32::from(slot) ^ 0x5a);
    Some((slot, op, track, verdict))
}

/// Offers operations one a cycle, those that are not ready again, and checks every entry in every cycle.
fn drive(tracker: &mut Tracker, ops: &[(u16, TrackOp)]) -> (Said, u64) {
    let (mut said, mut cycles, mut next) = (Vec::new(), 0, 0);
    while next < ops.len() || !tracker.is_idle() {
        let op = ops.get(next).copied().filter(|op| tracker.ready(op.0));
        next += usize::from(op.is_some());
        said.extend(tick(tracker, op));
        assert_eq!(tracker.disagreement(), None, "cycle {cycles}");
        cycles += 1;
    }
    (said, cycles)
}

fn load(pbv: u128) -> TrackOp {
    TrackOp::Load(Track { pbv, p_count: pbv.count_ones() as u16 })
}

#[test]
fn all_128_participants_in_consecutive_cycles() {
    for (hazard, cycles) in [(Hazard::Forward, 129 + 2), (Hazard::Interlock, 129 * 3)] {
        let mut tracker = Tracker::new(4, hazard);
        let ops: Vec<(u16, TrackOp)> =
            std::iter::once((2, load(u128::MAX))).chain((0..128).map(|k| (2, TrackOp::Clear(k)))).collect();
        let (said, took) = drive(&mut tracker, &ops);
        assert_eq!(took, cycles, "{hazard:?}");
        assert_eq!(tracker.entry(2), Track::default());
        let satisfied: Vec<usize> = (0..129).filter(|&k| said[k].3 == Verdict::Satisfied).collect();
        assert_eq!(satisfied, [128], "satisfied once, by the last one");
        for (k, step) in said.iter().enumerate().skip(1) {
            assert_eq!(u32::from(step.2.p_count), 128 - k as u32);
        }
    }
}

#[test]
fn without_hazard_handling_updates_are_lost() {
    let mut tracker = Tracker::new(1, Hazard::Ignore);
    for op in [Some((0, load(7))), None, None, Some((0, TrackOp::Clear(0))), Some((0, TrackOp::Clear(1))), None, None] {
        tick(&mut tracker, op);
    }
    assert_eq!(tracker.entry(0).pbv, 0b101, "the second message wrote over the first");
}

#[test]
fn ten_thousand_interleavings_of_many_contexts_lose_nothing() {
    for round in 0..10_000u64 {
        let mut rng = Rng::new(0x6a2d, round);
        let contexts = 1 + rng.below(6) as u16;
        let hazard = if round % 2 == 0 { Hazard::Forward } else { Hazard::Interlock };
        let mut tracker = Tracker::new(contexts, hazard);
        let masks: Vec<u128> =
            (0..contexts).map(|_| u128::from(rng.bits() & rng.bits() & rng.bits()) | 1 << rng.below(128)).collect();
        let loads: Vec<(u16, TrackOp)> = masks.iter().enumerate().map(|(k, &mask)| (k as u16, load(mask))).collect();
        let mut clears: Vec<(u16, TrackOp)> = Vec::new();
        for (k, mask) in masks.iter().enumerate() {
            clears.extend((0..128).filter(|bit| mask >> bit & 1 != 0).map(|bit| (k as u16, TrackOp::Clear(bit))));
        }
        // Some come twice: the second of two must be refused, whichever that is.
        let twice: Vec<(u16, TrackOp)> = clears.iter().copied().filter(|_| rng.below(5) == 0).collect();
        clears.extend(&twice);
        rng.shuffle(&mut clears);
        let ops: Vec<(u16, TrackOp)> = loads.into_iter().chain(clears).collect();
        let (said, _) = drive(&mut tracker, &ops);
        let count = |wanted: Verdict| said.iter().filter(|step| step.3 == wanted).count();
        assert_eq!(count(Verdict::Duplicate), twice.len(), "round {round}");
        assert_eq!(count(Verdict::Satisfied), usize::from(contexts), "round {round}");
        assert!((0..contexts).all(|slot| tracker.entry(slot) == Track::default()), "round {round}");
    }
}

#[test]
fn a_count_that_is_zero_with_a_bit_set_is_an_error() {
    let mut tracker = Tracker::new(1, Hazard::Forward);
    let wrong = TrackOp::Load(Track { pbv: 3, p_count: 1 });
    let verdicts: Vec<Verdict> =
        [Some((0, wrong)), Some((0, TrackOp::Clear(0))), Some((0, TrackOp::Clear(1))), None, None]
            .into_iter()
            .filter_map(|op| tick(&mut tracker, op).map(|step| step.3))
            .collect();
    assert_eq!(verdicts, [Verdict::Accepted, Verdict::Accepted, Verdict::CountZero]);
    assert_eq!(tracker.disagreement(), Some(0), "PBV and p_count did not agree: it is seen");
    // It stays seen when they agree again.
    for op in [Some((0, load(3))), None, None] {
        tick(&mut tracker, op);
    }
    assert_eq!((tracker.entry(0).p_count, tracker.disagreement()), (2, Some(0)));
}

#[test]
fn an_empty_pbv_with_a_count_left_is_not_satisfied() {
    let mut tracker = Tracker::new(1, Hazard::Forward);
    let wrong = TrackOp::Load(Track { pbv: 1, p_count: 2 });
    let ops = [Some((0, wrong)), Some((0, TrackOp::Clear(0))), Some((0, TrackOp::Clear(0))), None, None];
    let verdicts: Vec<Verdict> = ops.into_iter().filter_map(|op| tick(&mut tracker, op).map(|step| step.3)).collect();
    assert_eq!(verdicts, [Verdict::Accepted, Verdict::Accepted, Verdict::Duplicate]);
    assert_eq!(tracker.entry(0), Track { pbv: 0, p_count: 1 });
}
