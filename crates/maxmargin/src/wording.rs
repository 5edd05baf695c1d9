//! Counts and numbers as people read them: `9,630`, `1 query`, `471 queries`, `3.5 MiB`, `0.71634`. One place, so that
//! library, formats, command and Python package say them alike. Settings, which these do not call alike, are named by
//! references: see [`render`].

mod reference;

pub use reference::{Dialect, NAMES, Neutral, is_name, render};

use serde::{Deserialize, Serialize};

/// A whole number with a comma between thousands: `9,630`.
pub fn count(value: u64) -> String {
    separated(&value.to_string())
}

/// A number and its noun, `1 query` or `471 queries`.
pub fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// Names in a row: `classify`, `classify and rank`, `classify, rank and compare`.
pub fn all_of<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [] => String::new(),
        [only] => (*only).to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Puts a comma between thousands.
pub fn separated(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A name within a line of tab-separated fields: what would end the field or the line becomes a blank.
pub fn one_field(name: &str) -> String {
    name.replace(['\t', '\n', '\r'], " ")
}

/// A real number to the given significant digits, without trailing zeros.
pub fn significant(value: f64, digits: usize) -> String {
    if let Some(text) = not_finite(value) {
        return text;
    }
    if value == 0.0 {
        return "0".into();
    }
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e12 {
        return fixed(value, 0);
    }
    let digits = digits.max(1);
    // Rounding may carry into the next power of ten, so the exponent is read off the rounded number.
    let rounded = format!("{value:.*e}", digits - 1);
    let exponent = rounded.split_once('e').and_then(|(_, e)| e.parse::<i32>().ok()).unwrap_or(0);
    if (-4..7).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        trimmed(&fixed(value, decimals))
    } else {
        let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
        format!("{}e{exponent}", trimmed(mantissa))
    }
}

/// A number with exactly so many decimals and a comma between thousands: `fixed(4218.7, 2)` is `4,218.70`.
pub fn fixed(value: f64, decimals: usize) -> String {
    if let Some(text) = not_finite(value) {
        return text;
    }
    let text = format!("{:.decimals$}", value.abs());
    let negative = value < 0.0 && text.bytes().any(|b| b.is_ascii_digit() && b != b'0');
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::from(if negative { "-" } else { "" });
    out.push_str(&separated(whole));
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// The word for what is no finite number.
pub fn not_finite(value: f64) -> Option<String> {
    match value {
        v if v.is_nan() => Some("NaN".into()),
        f64::INFINITY => Some("inf".into()),
        f64::NEG_INFINITY => Some("-inf".into()),
        _ => None,
    }
}

/// Digits without zeros at their end.
pub fn trimmed(text: &str) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text.into() }
}

/// A size of memory that is needed, in the unit that suits it and rounded up, so that what is said is enough:
/// `640 bytes`, `9.8 KiB`, `50 MiB`, `1.5 GiB`.
pub fn memory_needed(bytes: u64) -> String {
    memory(bytes, u128::div_ceil)
}

/// A size of memory that is there, rounded down, so that it never reads as enough where it is not.
pub fn memory_given(bytes: u64) -> String {
    memory(bytes, |bytes, unit| bytes / unit)
}

fn memory(bytes: u64, rounded: impl Fn(u128, u128) -> u128) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, shift)) = UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0) else {
        return counted(bytes, "byte", "bytes");
    };
    let tenths = rounded(u128::from(bytes) * 10, 1 << shift);
    // Tenths tell little from ten on.
    if tenths >= 100 {
        format!("{} {unit}", count(rounded(u128::from(bytes), 1 << shift) as u64))
    } else if tenths.is_multiple_of(10) {
        format!("{} {unit}", tenths / 10)
    } else {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

/// A number of bytes as people write it: `4GiB`, `512 MiB`, `2.5GB`, `1000000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// The units of a [`Size`].
const UNITS: [(&str, u64); 14] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("", 1),
];

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Size, String> {
        let lower = text.trim().to_ascii_lowercase();
        let parsed = UNITS.iter().find_map(|(unit, bytes)| Some((lower.strip_suffix(unit)?.trim_end(), *bytes)));
        let number = parsed.and_then(|(number, bytes)| Some((number.parse::<f64>().ok()?, bytes)));
        match number {
            Some((number, bytes)) if number > 0.0 && number * bytes as f64 >= 1.0 && number * (bytes as f64) < 1e18 => {
                Ok(Size((number * bytes as f64) as u64))
            }
            _ => Err("a size is a positive number with a unit: 4GiB, 512MiB, 2.5GB".to_string()),
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whole = UNITS[..4].iter().rev().find(|(_, bytes)| self.0.is_multiple_of(*bytes));
        match whole {
            Some((unit, bytes)) => write!(f, "{}{}iB", self.0 / bytes, unit[..1].to_ascii_uppercase()),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Size, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas_between_thousands() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(9630), "9,630");
        assert_eq!(count(1_000_000), "1,000,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(1, "query", "queries"), "1 query");
        assert_eq!(counted(0, "query", "queries"), "0 queries");
    }

    #[test]
    fn names_in_a_row_have_one_and() {
        assert_eq!(all_of::<&str>(&[]), "");
        assert_eq!(all_of(&["rank"]), "rank");
        assert_eq!(all_of(&["classify", "rank"]), "classify and rank");
        assert_eq!(all_of(&["classify", "rank", "compare"]), "classify, rank and compare");
    }

    #[test]
    fn what_is_needed_is_rounded_up_and_what_is_there_down_and_neither_to_nothing() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1,023 bytes"),
            (1024, "1 KiB"),
            (10_000, "9.8 KiB"),
            (1 << 20, "1 MiB"),
            ((1 << 20) + 1, "1.1 MiB"),
            (49 << 20, "49 MiB"),
            ((49 << 20) + 1, "50 MiB"),
            (1 << 30, "1 GiB"),
            (3 << 29, "1.5 GiB"),
            (5 << 40, "5 TiB"),
            (u64::MAX, "16,777,216 TiB"),
        ] {
            assert_eq!(memory_needed(bytes), text, "{bytes}");
        }
        assert_eq!(memory_given((50 << 20) - 1), "49 MiB");
        assert_eq!(memory_given((1 << 20) - 1), "1,023 KiB");
        assert_eq!(memory_given(10_000), "9.7 KiB");
    }

    #[test]
    fn sizes_are_read_with_their_units_and_printed_back() {
        for (text, bytes) in [
            ("4GiB", 4 << 30),
            ("512 MiB", 512 << 20),
            ("1.5gib", 3 << 29),
            ("2GB", 2_000_000_000),
            ("10kb", 10_000),
            ("64KiB", 64 << 10),
            ("1000000", 1_000_000),
            ("7b", 7),
        ] {
            let size: Size = text.parse().expect(text);
            assert_eq!(size.0, bytes, "{text}");
            assert_eq!(size.to_string().parse::<Size>(), Ok(size), "{size}");
        }
        assert_eq!(Size(3 << 29).to_string(), "1536MiB");
        for text in ["", "GiB", "-1GiB", "0", "4G iB", "nan", "1e30", "4 gigs", "0.1"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
