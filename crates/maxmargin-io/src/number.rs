//! Fast, correctly rounded decimal numbers from text.
//!
//! The fast path holds the digits in a u64 and makes one exact multiplication or division by a power of ten (Clinger,
//! How to read floating point numbers accurately, PLDI 1990). For f32, a result computed in f64 is rounded once more,
//! which is right unless the f64 lies exactly halfway between two f32. In that case, and for everything unusual (many
//! digits, large exponents), `fast_float2` parses the token exactly. Results are bit-equal to a correctly rounded
//! parse.

/// A number type that can be read from text.
pub(crate) trait Parse: maxmargin::data::Value {
    /// From digits and a power of ten, if the fast path is exact.
    fn from_decimal(mantissa: u64, exponent: i32) -> Option<Self>;
    /// From a whole token, exactly.
    fn from_token(token: &[u8]) -> Option<Self>;
    fn negated(self) -> Self;
    fn is_finite(self) -> bool;
}

const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

impl Parse for f64 {
    #[inline(always)]
    fn from_decimal(mantissa: u64, exponent: i32) -> Option<f64> {
        if mantissa > 1 << 53 || !(-22..=22).contains(&exponent) {
            return None;
        }
        let power = POWERS[exponent.unsigned_abs() as usize];
        Some(if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power })
    }

    fn from_token(token: &[u8]) -> Option<f64> {
        fast_float2::parse(token).ok()
    }

    #[inline(always)]
    fn negated(self) -> f64 {
        -self
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
}

impl Parse for f32 {
    #[inline(always)]
    fn from_decimal(mantissa: u64, exponent: i32) -> Option<f32> {
        let wide = f64::from_decimal(mantissa, exponent)?;
        const BELOW: u64 = (1 << 29) - 1;
        const MIDDLE: u64 = 1 << 28;
        let in_range = wide == 0.0 || (wide >= f64::from(f32::MIN_POSITIVE) && wide <= f64::from(f32::MAX));
        (in_range && wide.to_bits() & BELOW != MIDDLE).then_some(wide as f32)
    }

    fn from_token(token: &[u8]) -> Option<f32> {
        fast_float2::parse(token).ok()
    }

    #[inline(always)]
    fn negated(self) -> f32 {
        -self
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }
}

/// Whether a byte ends a token.
#[inline(always)]
pub(crate) fn ends_token(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// The end of the token that starts at `at`. The text must end in a newline.
pub(crate) fn token_end(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().position(|&byte| ends_token(byte)).unwrap_or(text.len() - at)
}

const POWERS_OF_TEN: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The digits at `at`, eight at a time: their value and their number. A number of 8 means that more may follow. If
/// fewer than eight bytes are left, it finds none, and the caller's simple loop reads the digits.
#[inline(always)]
fn eight_digits(text: &[u8], at: usize) -> (u64, usize) {
    let Some(bytes) = text.get(at..at + 8).and_then(|bytes| bytes.first_chunk::<8>()) else { return (0, 0) };
    let digits = u64::from_le_bytes(*bytes) ^ 0x3030_3030_3030_3030;
    // A byte above 9 gets its top bit set, without a carry into its neighbour.
    let others = (((digits & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    // The first digit has the highest weight and the lowest byte. Zeros shifted in below it are leading zeros.
    let digits = digits << (64 - 8 * count as u32);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (low.wrapping_add(high) >> 32, count)
}

/// Reads digits into `value`, which wraps if there are too many. Returns the end of the digits.
#[inline(always)]
pub(crate) fn parse_digits(text: &[u8], mut at: usize, value: &mut u64) -> usize {
    let (digits, count) = eight_digits(text, at);
    *value = value.wrapping_mul(POWERS_OF_TEN[count]).wrapping_add(digits);
    at += count;
    if count == 0 || count == 8 {
        while let digit @ 0..=9 = text[at].wrapping_sub(b'0') {
            *value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
    }
    at
}

/// Reads the number that starts at `at` and ends at the end of its token. The text must end in a newline. `None` if it
/// is not a number; the number may be infinite or NaN.
#[inline(always)]
pub(crate) fn parse_number<V: Parse>(text: &[u8], start: usize) -> Option<(V, usize)> {
    let mut at = start;
    let negative = text[at] == b'-';
    at += usize::from(negative || text[at] == b'+');
    let mut mantissa = 0u64;
    let digits_start = at;
    while let digit @ 0..=9 = text[at].wrapping_sub(b'0') {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    let mut digits = at - digits_start;
    let mut exponent = 0i32;
    if text[at] == b'.' {
        let fraction = at + 1;
        at = parse_digits(text, fraction, &mut mantissa);
        digits += at - fraction;
        exponent = -((at - fraction) as i32);
    }
    if ends_token(text[at])
        && (1..=19).contains(&digits)
        && let Some(value) = V::from_decimal(mantissa, exponent)
    {
        return Some((if negative { value.negated() } else { value }, at));
    }
    parse_unusual(text, start)
}

/// Exponents, many digits, extreme values, and text that is not a number.
#[cold]
fn parse_unusual<V: Parse>(text: &[u8], start: usize) -> Option<(V, usize)> {
    let end = token_end(text, start);
    let token = &text[start..end];
    let unsigned = token.strip_prefix(b"+").or(token.strip_prefix(b"-")).unwrap_or(token);
    if unsigned.is_empty() || matches!(unsigned[0], b'+' | b'-') {
        return None;
    }
    let value = V::from_token(unsigned)?;
    Some((if token[0] == b'-' { value.negated() } else { value }, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn both(token: &str) -> (Option<f32>, Option<f64>) {
        let text = format!("{token} \n");
        let f32_value = parse_number::<f32>(text.as_bytes(), 0).map(|(value, end)| {
            assert_eq!(end, token.len());
            value
        });
        (f32_value, parse_number::<f64>(text.as_bytes(), 0).map(|(value, _)| value))
    }

    fn agrees(token: &str) {
        let (short, long) = both(token);
        let expected: f32 = token.parse().expect("a number");
        assert_eq!(short.map(f32::to_bits), Some(expected.to_bits()), "{token}");
        let expected: f64 = token.parse().expect("a number");
        assert_eq!(long.map(f64::to_bits), Some(expected.to_bits()), "{token}");
    }

    #[test]
    fn awkward_numbers_round_correctly() {
        for token in [
            "0",
            "-0",
            "+1",
            "1.",
            ".5",
            "-.5",
            "0.1",
            "16777217",
            "16777219",
            "1e-3",
            "1E+5",
            "4.5e-46",
            "1e-46",
            "3.4028235e38",
            "1.17549435e-38",
            "1e-40",
            "9007199254740993",
            "123456789012345678901234567890",
            "1e22",
            "0.000000000000000000000000000001",
            "8388608.5",
            "8388609.5",
            "1.00000017881393432617187500",
            "1.000000178813934326171875",
            "1.00000017881393432617187499",
            "0.30000001192092896",
        ] {
            agrees(token);
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for token in ["", "abc", "1.2.3", "1e", "--1", "+-1", "0x10", "1_000", ".", "-", "1,5", "e5"] {
            assert_eq!(both(token), (None, None), "{token}");
        }
        assert!(both("nan").1.is_some_and(f64::is_nan));
        assert_eq!(both("-inf").1, Some(f64::NEG_INFINITY));
        assert_eq!(both("1e400").1, Some(f64::INFINITY));
        assert_eq!(both("1e39").0, Some(f32::INFINITY));
    }

    proptest! {
        #[test]
        fn random_decimals_are_bit_equal_to_the_standard_parse(
            mantissa in any::<u64>(), digits in 1..20usize, point in 0..20usize, negative in any::<bool>(),
            exponent in prop::option::of(-50..50i32),
        ) {
            let mut token = format!("{mantissa:020}");
            token.truncate(digits);
            if point <= digits { token.insert(point, '.'); }
            if token == "." { token = "0.".into(); }
            if let Some(exponent) = exponent { token.push_str(&format!("e{exponent}")); }
            if negative { token.insert(0, '-'); }
            agrees(&token);
        }

        #[test]
        fn printed_floats_come_back(value in any::<f32>(), wide in any::<f64>()) {
            prop_assume!(value.is_finite() && wide.is_finite());
            prop_assert_eq!(both(&format!("{value}")).0.map(f32::to_bits), Some(value.to_bits()));
            prop_assert_eq!(both(&format!("{wide:e}")).1.map(f64::to_bits), Some(wide.to_bits()));
        }
    }
}
