//! The divider of means against long division of integers.

use watershed::arith::divider::word_quotient;
use watershed::arith::{DType, Mode, Round, pack_lanes, unpack_lanes};
use watershed::kernel::Rng;
use watershed::oracle::quotient;

const FLOATS: [DType; 7] =
    [DType::F16, DType::Bf16, DType::Tf32, DType::F32, DType::F64, DType::Fp8E4m3, DType::Fp8E5m2];

/// Every bit pattern of the small types and random ones of the others, in every mode, by counts of every size.
#[test]
fn quotients_are_those_of_long_division_of_integers() {
    let mut rng = Rng::new(36, 0xd1f);
    for dtype in FLOATS {
        for &round in Round::ALL {
            for flush_to_zero in [false, true] {
                let mode = Mode { flush_to_zero, ..Mode::rounding(round) };
                for k in 0..600u64 {
                    let n = match k % 4 {
                        0 => 1 + rng.below(16) as u32,
                        1 => 1 << rng.below(32),
                        2 => 1 + rng.below(u64::from(u32::MAX)) as u32,
                        _ => 1023,
                    };
                    let lane = if dtype.bits() == 8 { k & 0xff } else { rng.bits() & dtype.lane_mask() };
                    // Small exponents as often as others: quotients that become denormal.
                    let lane = if k % 3 == 0 && dtype.bits() > 8 { lane & (dtype.lane_mask() >> 7) } else { lane };
                    let (word, flags) =
                        word_quotient(dtype, mode, pack_lanes(dtype, &vec![lane; dtype.lanes() as usize]), n);
                    let (bits, raised) = quotient::lane_quotient(dtype, mode, lane, n);
                    assert_eq!(flags, raised, "{dtype} {lane:#x} / {n} {mode:?}");
                    for got in unpack_lanes(dtype, word) {
                        assert_eq!(got, bits, "{dtype} {lane:#x} / {n} {mode:?}");
                    }
                }
            }
        }
    }
}
