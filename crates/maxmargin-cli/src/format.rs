//! The form of numbers and names for people. The terminal and the reports share it, so that a value looks the same in
//! both. Programs get full precision from `--json`.

pub use maxmargin::wording::{count, counted, fixed, one_field, significant};

use maxmargin::kernel::{FeatureMap, Kernel};
use maxmargin::wording::{not_finite, trimmed};

/// A kernel with its parameters: `gaussian, gamma 0.05`. If gamma was not given, it says that gamma was found.
pub fn kernel(kernel: &Kernel, given: bool) -> String {
    let number = |value: f64| significant(value, 4);
    let gamma = match kernel.gamma() {
        Some(gamma) if given => format!(", gamma {}", number(gamma)),
        Some(gamma) => format!(", gamma {} found on a sample", number(gamma)),
        None => String::new(),
    };
    match *kernel {
        Kernel::Custom(ref custom) => format!("{} (user-defined)", custom.name()),
        Kernel::Sigmoid { coef0, .. } => format!("sigmoid{gamma}, coef0 {}", number(coef0)),
        Kernel::Polynomial { coef0, degree, .. } => {
            format!("polynomial of degree {degree}{gamma}, coef0 {}", number(coef0))
        }
        Kernel::Linear
        | Kernel::Intersection
        | Kernel::Gaussian { .. }
        | Kernel::ChiSquared { .. }
        | Kernel::Precomputed => format!("{}{gamma}", kernel.kind().name()),
    }
}

/// The approximation of a kernel: `300 landmarks (nystrom)`.
pub fn feature_map(map: &FeatureMap) -> String {
    let features = map.features() as u64;
    match map.landmarks() {
        Some(_) => format!("{} (nystrom)", counted(features, "landmark", "landmarks")),
        None => format!("{} (fourier)", counted(features, "random feature", "random features")),
    }
}

/// A real number with five significant digits, without trailing zeros: `4,218.7`, `0.71634`, `1.2346e9`, `3e-7`. Whole
/// numbers below a million million are printed in full.
pub fn real(value: f64) -> String {
    significant(value, 5)
}

/// Numbers for one column. All have the same number of decimals, chosen so that the largest has the requested
/// significant digits, and they line up. Exponents are used if the sizes differ too much.
pub fn alike(values: &[f64], digits: usize) -> Vec<String> {
    let largest = values.iter().filter(|v| v.is_finite()).fold(0.0, |most: f64, v| most.max(v.abs()));
    let exponent = if largest > 0.0 { largest.log10().floor() as i32 } else { 0 };
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    let one = |&value: &f64| {
        if value != 0.0 && value.is_finite() && !(-4..7).contains(&exponent) {
            scientific(value, digits.saturating_sub(1))
        } else if value == 0.0 && !(-4..7).contains(&exponent) {
            "0".into()
        } else {
            fixed(value, decimals)
        }
    };
    values.iter().map(one).collect()
}

/// A number with a mantissa and an exponent: `scientific(5031.1, 4)` is `5.0311e3`.
pub fn scientific(value: f64, decimals: usize) -> String {
    not_finite(value).unwrap_or_else(|| format!("{value:.decimals$e}"))
}

/// A relative gap, always with an exponent: `3.0e-7`; an exact zero is `0`.
pub fn gap(value: f64) -> String {
    if value == 0.0 { "0".into() } else { scientific(value, 1) }
}

/// A share of one as a percentage with one decimal: `71.6%`.
pub fn percent(share: f64) -> String {
    not_finite(share).unwrap_or_else(|| format!("{}%", fixed(share * 100.0, 1)))
}

/// A value and its uncertainty with three decimals: `0.716 ± 0.031`.
pub fn plus_minus(value: f64, error: f64) -> String {
    format!("{} ± {}", fixed(value, 3), fixed(error, 3))
}

/// A size in decimal units: `640 bytes`, `2 KB`, `1.5 MB`.
pub fn bytes(value: u64) -> String {
    if value < 1000 {
        return counted(value, "byte", "bytes");
    }
    let mut size = value as f64;
    let mut unit = "bytes";
    for name in ["KB", "MB", "GB", "TB", "PB", "EB"] {
        // 999.5 would be printed as 1000 of the smaller unit.
        if size < 999.5 {
            break;
        }
        size /= 1000.0;
        unit = name;
    }
    let text = if size < 9.95 { trimmed(&format!("{size:.1}")) } else { format!("{size:.0}") };
    format!("{text} {unit}")
}

/// A duration: `0.4 ms`, `0.03 s`, `12.3 s`, `2 min 05 s`, `1 h 02 min`.
pub fn seconds(value: f64) -> String {
    if let Some(text) = not_finite(value) {
        return text;
    }
    let value = value.max(0.0);
    if value == 0.0 {
        "0 s".into()
    } else if value < 0.00005 {
        "<0.1 ms".into()
    } else if value < 0.00995 {
        format!("{:.1} ms", value * 1e3)
    } else if value < 9.995 {
        format!("{value:.2} s")
    } else if value < 119.95 {
        format!("{value:.1} s")
    } else if value < 3599.5 {
        let whole = value.round() as u64;
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        let minutes = (value / 60.0).round().min(1e15) as u64;
        format!("{} h {:02} min", count(minutes / 60), minutes % 60)
    }
}

/// Shortens a text to this many characters. If it is cut, the last character is an ellipsis.
pub fn shortened(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.into();
    }
    let mut short: String = text.chars().take(characters.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// A file name for a shell, quoted if necessary.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | ':' | '@' | '%');
    if word.starts_with('-') {
        // Otherwise it would be parsed as a flag.
        return shell_word(&format!("./{word}"));
    }
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The fewest digits that parse as the same number, with an exponent if most digits would be zeros.
pub fn exact(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) { format!("{value}") } else { format!("{value:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_numbers_read_back_and_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-1.0 / 3.0, "-0.3333333333333333"),
            (1e-5, "0.00001"),
            (5.551_115_123_125_783e-17, "5.551115123125783e-17"),
            (-2.5e300, "-2.5e300"),
        ] {
            assert_eq!(exact(value), text);
            assert_eq!(text.parse(), Ok(value));
        }
    }

    #[test]
    fn reals_keep_five_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (4218.7, "4,218.7"),
            (4218.7049, "4,218.7"),
            (0.716_342, "0.71634"),
            (-12.5, "-12.5"),
            (46.0, "46"),
            (1e9, "1,000,000,000"),
            (1_234_567_890.5, "1.2346e9"),
            (123_456.7, "123,457"),
            (3e-7, "3e-7"),
            (0.000_123_456, "0.00012346"),
            (99_999.96, "100,000"),
            (1e300, "1e300"),
            (f64::MIN_POSITIVE, "2.2251e-308"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(real(value), text, "{value:e}");
        }
    }

    #[test]
    fn fixed_numbers_never_show_a_negative_zero() {
        assert_eq!(fixed(4218.7, 2), "4,218.70");
        assert_eq!(fixed(-0.0001, 2), "0.00");
        assert_eq!(fixed(-1234.5, 1), "-1,234.5");
    }

    #[test]
    fn columns_share_their_decimals() {
        assert_eq!(alike(&[0.8, 0.896, f64::NAN], 3), ["0.800", "0.896", "NaN"]);
        assert_eq!(alike(&[-12.0, 0.04, 0.0], 3), ["-12.0", "0.0", "0.0"]);
        assert_eq!(alike(&[1234.5, 7.0], 3), ["1,234", "7"]);
        assert_eq!(alike(&[3e-9, 0.0], 3), ["3.00e-9", "0"]);
        assert!(alike(&[], 3).is_empty());
    }

    #[test]
    fn gaps_are_scientific() {
        assert_eq!(gap(3.04e-7), "3.0e-7");
        assert_eq!(gap(0.21), "2.1e-1");
        assert_eq!(gap(0.0), "0");
        assert_eq!(scientific(5031.1, 4), "5.0311e3");
    }

    #[test]
    fn sizes_and_durations_read_naturally() {
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(640), "640 bytes");
        assert_eq!(bytes(2048), "2 KB");
        assert_eq!(bytes(1500), "1.5 KB");
        assert_eq!(bytes(999_950), "1 MB");
        assert_eq!(bytes(u64::MAX), "18 EB");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(0.00042), "0.4 ms");
        assert_eq!(seconds(0.03), "0.03 s");
        assert_eq!(seconds(12.34), "12.3 s");
        assert_eq!(seconds(119.96), "2 min 00 s");
        assert_eq!(seconds(125.0), "2 min 05 s");
        assert_eq!(seconds(3720.0), "1 h 02 min");
        assert_eq!(percent(0.7163), "71.6%");
        assert_eq!(plus_minus(0.7163, 0.0312), "0.716 ± 0.031");
    }

    #[test]
    fn long_texts_are_cut_at_characters_not_bytes() {
        assert_eq!(shortened("größe", 5), "größe");
        assert_eq!(shortened("größere", 5), "größ…");
        assert_eq!(shortened("ab", 0), "…");
    }
}
