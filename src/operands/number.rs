//! Numbers as text and as bits. Rounding is done here once, with integers, to nearest and ties to even.

use num_bigint::BigUint;

use crate::Layout;

/// What can be written for an element of a type, for messages.
pub fn describe(layout: Layout) -> String {
    let bits = layout.bits();
    match layout {
        Layout::Integer { signed, .. } => {
            let (low, high) = integer_range(bits, signed);
            format!("a whole number from {low} to {high}, or a bit pattern like \"0x2a\"")
        }
        Layout::Float { ieee: true, .. } if bits > 8 => {
            format!("a number, \"inf\", \"nan\", or a bit pattern of up to {bits} bits like \"0x3c00\"")
        }
        Layout::Float { ieee, .. } => {
            let infinity = if ieee { "\"inf\", " } else { "" };
            format!("a number, {infinity}\"nan\", or a bit pattern of up to {bits} bits like \"0x3c\"")
        }
    }
}

fn integer_range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// The bits of a number of a type.
///
/// # Errors
/// Why the text is not such a number, as the end of a sentence.
pub fn parse(text: &str, layout: Layout) -> Result<u64, String> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return parse_hex(digits, layout);
    }
    match layout {
        Layout::Integer { bits, signed } => {
            let number = integer(text)?;
            let (low, high) = integer_range(bits, signed);
            if number < low || number > high {
                return Err(format!("it is not from {low} to {high}"));
            }
            Ok(number as u64 & layout.mask())
        }
        Layout::Float { .. } => float(text, layout),
    }
}

/// The bits of hexadecimal digits.
///
/// # Errors
/// Why they are not a bit pattern of this type, as the end of a sentence.
pub fn parse_hex(digits: &str, layout: Layout) -> Result<u64, String> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("it is not hexadecimal".to_owned());
    }
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|pattern| pattern & !layout.mask() == 0)
        .ok_or_else(|| format!("the pattern has more than {} bits", layout.bits()))
}

/// Sign, digits without leading zeros, and the power of ten they are to be multiplied by.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (rest, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let exponent = match exponent {
        None => 0,
        Some(exponent) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            // Far beyond every format is as good as at infinity.
            let size: i64 = digits.parse().unwrap_or(1 << 40).min(1 << 40);
            if exponent.starts_with('-') { -size } else { size }
        }
    };
    let digits = digits.trim_start_matches('0').to_owned();
    Some((negative, digits, exponent - fraction.len() as i64))
}

fn integer(text: &str) -> Result<i128, String> {
    let (negative, mut digits, exponent) = decimal(text).ok_or("it is not a number")?;
    if digits.is_empty() {
        return Ok(0);
    }
    if exponent < 0 {
        let cut = usize::try_from(-exponent).unwrap_or(usize::MAX);
        if cut >= digits.len() || !digits.bytes().rev().take(cut).all(|digit| digit == b'0') {
            return Err("it has a fraction".to_owned());
        }
        digits.truncate(digits.len() - cut);
    } else if exponent > 40 {
        return Err("it is too large".to_owned());
    } else {
        digits.extend(std::iter::repeat_n('0', exponent as usize));
    }
    let size: i128 = digits.parse().map_err(|_| "it is too large".to_owned())?;
    Ok(if negative { -size } else { size })
}

fn float(text: &str, layout: Layout) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let (negative, word) = match lower.strip_prefix('-') {
        Some(word) => (true, word),
        None => (false, lower.strip_prefix('+').unwrap_or(&lower)),
    };
    match word {
        "inf" | "infinity" => return special(negative, false, layout).ok_or_else(|| "the type has no infinity".into()),
        "nan" => return special(negative, true, layout).ok_or_else(|| "the type has no NaN".into()),
        _ => {}
    }
    let (negative, digits, exponent) = decimal(text).ok_or("it is not a number")?;
    let sign_only = round(negative, 0, 0, layout).unwrap_or(0);
    // The decimal point stands before digit `magnitude`.
    let magnitude = exponent.saturating_add(digits.len() as i64);
    if digits.is_empty() || magnitude < -400 {
        return Ok(sign_only);
    }
    if magnitude > 400 {
        return Err("it is too large".to_owned());
    }
    let mantissa = digits.parse::<BigUint>().map_err(|_| "it is not a number")?;
    let (mantissa, shift, rest) = if exponent >= 0 {
        (mantissa * BigUint::from(10u32).pow(exponent as u32), 0i64, false)
    } else {
        let divisor = BigUint::from(10u32).pow((-exponent) as u32);
        // Enough bits in the quotient for every format; what is left over only matters for being there.
        let shift = (divisor.bits() as i64 - mantissa.bits() as i64 + 70).max(0);
        let scaled = mantissa << shift as u64;
        let quotient = &scaled / &divisor;
        let rest = &quotient * &divisor != scaled;
        (quotient, -shift, rest)
    };
    let excess = (mantissa.bits() as i64 - 100).max(0);
    let top = &mantissa >> excess as u64;
    let rest = rest || &top << excess as u64 != mantissa;
    let top = u128::try_from(&top).expect("cut down to 100 bits");
    round(negative, top << 1 | u128::from(rest), shift + excess - 1, layout).ok_or_else(|| "it is too large".to_owned())
}

/// Infinity or the quiet NaN of a format.
fn special(negative: bool, nan: bool, layout: Layout) -> Option<u64> {
    let Layout::Float { exponent, fraction, pad, ieee } = layout else {
        return None;
    };
    let sign = u64::from(negative) << (exponent + fraction);
    if !ieee {
        return nan.then_some((sign | ((1 << (exponent + fraction)) - 1)) << pad);
    }
    let largest = ((1u64 << exponent) - 1) << fraction;
    let quiet = u64::from(nan) << (fraction - 1);
    Some((sign | largest | quiet) << pad)
}

/// The float next to `mantissa` times two to the power `scale`, ties to even; `None` if that is beyond the largest one.
pub fn round(negative: bool, mantissa: u128, scale: i64, layout: Layout) -> Option<u64> {
    let Layout::Float { exponent, fraction, pad, ieee } = layout else {
        return None;
    };
    let sign = u64::from(negative) << (exponent + fraction);
    if mantissa == 0 {
        return Some(sign << pad);
    }
    let fraction_bits = i64::from(fraction);
    let bias = (1i64 << (exponent - 1)) - 1;
    let length = i64::from(u128::BITS - mantissa.leading_zeros());
    // The weight of the last fraction bit: that of the number's own binade, or of the denormals.
    let last = (length - 1 + scale).max(1 - bias) - fraction_bits;
    let drop = last - scale;
    let kept = if drop <= 0 {
        mantissa << (-drop)
    } else if drop > length {
        0
    } else {
        let kept = if drop == 128 { 0 } else { mantissa >> drop };
        let half = 1u128 << (drop - 1);
        let rest = mantissa & (half | (half - 1));
        kept + u128::from(rest > half || rest == half && kept & 1 == 1)
    };
    // Adding the fraction with its hidden bit to the exponent field lets a carry move into the next binade.
    let binade = (last + fraction_bits + bias - 1).max(0) as u128;
    let field = (binade << fraction) + kept;
    // The first pattern that is no number: infinity, or the only NaN.
    let beyond = if ieee { ((1u128 << exponent) - 1) << fraction } else { (1u128 << (exponent + fraction)) - 1 };
    (field < beyond).then_some((sign | field as u64) << pad)
}

/// The bits of an integer in a type: of an integer type the low bits, of a float the nearest one.
pub fn from_integer(number: i128, layout: Layout) -> u64 {
    match layout {
        Layout::Integer { .. } => number as u64 & layout.mask(),
        Layout::Float { .. } => round(number < 0, number.unsigned_abs(), 0, layout).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout;
    use proptest::prelude::*;
    use watershed_arith::DType;

    #[test]
    fn text_of_every_kind_becomes_bits() {
        let f64s = layout(DType::F64);
        let f32s = layout(DType::F32);
        let i32s = layout(DType::I32);
        let e4m3 = layout(DType::Fp8E4m3);
        for (text, layout, bits) in [
            ("1", f64s, 1f64.to_bits()),
            ("-0.0", f64s, 1 << 63),
            ("0.1", f64s, 0.1f64.to_bits()),
            ("1e-320", f64s, 1e-320f64.to_bits()),
            ("2.5e-324", f64s, 1),
            ("2.4e-324", f64s, 0),
            ("-inf", f64s, f64::NEG_INFINITY.to_bits()),
            ("nan", f64s, 0x7ff8 << 48),
            ("0x3ff0000000000000", f64s, 1f64.to_bits()),
            ("0.1", f32s, u64::from(0.1f32.to_bits())),
            // Through a double this would round twice, down to 1.
            ("1.0000000596046448", f32s, u64::from(1.000_000_1_f32.to_bits())),
            ("-1", i32s, 0xffff_ffff),
            // E4M3 counts on to 448; halfway to what would be next it is still the nearest even.
            ("464", e4m3, 0x7e),
            ("-448", e4m3, 0xfe),
            ("nan", e4m3, 0x7f),
            ("0.001", e4m3, 1),
            ("57344", layout(DType::Fp8E5m2), 0x7b),
            ("-inf", layout(DType::Fp8E5m2), 0xfc),
            ("65519", layout(DType::F16), 0x7bff),
            ("1.00390625", layout(DType::Bf16), 0x3f80),
            ("0.1", layout(DType::Tf32), 0x3dcc_c000),
            ("1.20e1", i32s, 12),
            ("0e99", i32s, 0),
        ] {
            assert_eq!(parse(text, layout), Ok(bits), "{text}");
        }
        for (text, layout) in [
            ("", f64s),
            ("x", f64s),
            ("1e999", f64s),
            ("1e999999999999999999999", f64s),
            ("1.7976931348623159e308", f64s),
            ("1e39", f32s),
            ("464.001", e4m3),
            ("inf", e4m3),
            ("65520", layout(DType::F16)),
            ("0x1ffffffff", f32s),
            ("0x", f32s),
            ("1.5", i32s),
            ("2147483648", i32s),
            ("-1", layout(DType::U64)),
            ("inf", i32s),
            ("1e-5", i32s),
            ("1e41", i32s),
        ] {
            assert!(parse(text, layout).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn decimal_text_rounds_as_the_standard_library_does(bits: u64, digits in 1usize..25) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let text = format!("{number:.digits$e}");
            if let Ok(ours) = parse(&text, layout(DType::F64)) {
                prop_assert_eq!(ours, text.parse::<f64>().unwrap().to_bits());
            } else {
                prop_assert!(text.parse::<f64>().unwrap().is_infinite());
            }
            let single = text.parse::<f32>().unwrap();
            match parse(&text, layout(DType::F32)) {
                Ok(ours) => prop_assert_eq!(ours, u64::from(single.to_bits())),
                Err(_) => prop_assert!(single.is_infinite()),
            }
        }

        #[test]
        fn integers_round_as_hardware_does(number: i64) {
            prop_assert_eq!(from_integer(i128::from(number), layout(DType::F64)), (number as f64).to_bits());
            prop_assert_eq!(
                from_integer(i128::from(number), layout(DType::F32)),
                u64::from((number as f32).to_bits())
            );
        }
    }
}
