//! [`Grid`]: the values of C, or of the width of a kernel, to try.
//!
//! Written as `low:high:count`, spaced evenly on a log scale, or as a list `0.1,1,10`. Spaced values are rounded to a
//! few digits, so that the value printed is the value used.

use crate::data::{Dataset, Scaling};
use crate::error::{Code, Error, Result};
use crate::kernel::{KernelSettings, typical_gamma};
use crate::run::Cancel;
use crate::settings::{Input, Regularisation, Settings};
use crate::train::{BuiltIn, Posed};
use crate::wording::counted;
use std::str::FromStr;

/// Rising values of C, or of γ.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid(Vec<f64>);

/// The default number of values.
const COUNT: usize = 20;
/// The default number of values of C with a kernel, and of widths.
const KERNEL_COUNT: usize = 6;
const WIDTHS: usize = 5;
/// The ratio of neighbouring widths.
const WIDTH_STEP: f64 = 4.0;
/// The range of C for a classifier with a kernel.
const KERNEL: (f64, f64) = (1e-2, 1e3);
/// The range of C for comparisons with a kernel: the authors' own grid.
const COMPARE_KERNEL: (f64, f64) = (1e-1, 1e5);
/// More values would be a typing error.
const MOST: usize = 10_000;
/// The range of C for a classifier.
const ROWS: (f64, f64) = (1e-4, 1e2);
/// The range of lambda for a ranker, the least regularised first.
const RANK: (f64, f64) = (1e-6, 1e1);
/// The same for a ranker of whole orders, whose pairs share the slack of their query.
const ORDERS: (f64, f64) = (1e-4, 1e2);

impl Grid {
    /// Values from `low` to `high`, each the same multiple of the one before.
    pub fn spaced(low: f64, high: f64, count: usize) -> Result<Grid> {
        check(low)?;
        check(high)?;
        if !(2..=MOST).contains(&count) || low >= high {
            return Err(refuse(format!(
                "{} from {low} to {high} do not make a grid",
                counted(count as u64, "value", "values")
            ))
            .help("write a grid from low to high, such as 1e-4:1e2:20, with 2 to 10,000 values"));
        }
        let step = (high / low).ln() / (count - 1) as f64;
        // Rounding must move a value by far less than the distance to its neighbours.
        let digits = (1.0 - (0.1 * step).log10()).ceil().clamp(3.0, 16.0) as usize;
        let value = |at: usize| match at {
            0 => low,
            last if last == count - 1 => high,
            at => rounded((low.ln() + step * at as f64).exp(), digits),
        };
        Grid::of((0..count).map(value).collect())
    }

    /// The listed values in rising order, each once.
    pub fn of(mut values: Vec<f64>) -> Result<Grid> {
        values.iter().try_for_each(|&value| check(value))?;
        values.sort_by(f64::total_cmp);
        values.dedup();
        if values.is_empty() || values.len() > MOST {
            return Err(refuse(format!("a grid of {} values", values.len())).help(EXAMPLE));
        }
        Ok(Grid(values))
    }

    /// The default range. A classifier's C is the weight of one row, and 1e-4 to 100 suits features of about unit size.
    /// A ranker's C is the weight of one pair, of which there may be thousands or billions: there the mean form is
    /// used, lambda = 1 / (C · pairs) from 10 down to 1e-6, or with a measure of whole orders 1 / (C · queries) from 100
    /// down to 1e-4. With a kernel a fit costs more, so there are fewer values.
    pub fn usual(data: &Dataset, settings: &Settings) -> Result<Grid> {
        let by_kernel = settings.expands();
        let count = if by_kernel { KERNEL_COUNT } else { COUNT };
        match settings.task.task().profile().input {
            Input::Rows | Input::Sentences if by_kernel => Grid::spaced(KERNEL.0, KERNEL.1, count),
            Input::Rows | Input::Sentences => Grid::spaced(ROWS.0, ROWS.1, count),
            Input::Compared if by_kernel => Grid::spaced(COMPARE_KERNEL.0, COMPARE_KERNEL.1, count),
            Input::Ranked | Input::Compared => {
                let unit = Posed::new(
                    &BuiltIn,
                    data,
                    &Settings { regularisation: Regularisation::C(1.0), ..settings.clone() },
                )?;
                // With C = 1, lambda is one over the number of pairs, or of queries.
                let range = if settings.task.optimized().is_some() { ORDERS } else { RANK };
                let (low, high) = (unit.lambda / range.1, unit.lambda / range.0);
                Grid::spaced(rounded(low, 3), rounded(high, 3), count)
            }
        }
    }

    /// The default range of the γ of a kernel: around the value from the median of distances, with a ratio of four.
    pub fn usual_widths(data: &Dataset, settings: &Settings, cancel: &Cancel) -> Result<Grid> {
        let scaling = Scaling::fit(settings.scale, data, cancel)?;
        let middle = typical_gamma(settings.kernel.kind, &scaling.apply(data.matrix(), data.groups())?, settings.seed);
        let value = |at: usize| rounded(middle * WIDTH_STEP.powi(at as i32 - WIDTHS as i32 / 2), 3);
        Grid::of((0..WIDTHS).map(value).collect())
    }

    /// The settings with each value as the γ of the kernel.
    pub fn widths(&self, settings: &Settings) -> Vec<Settings> {
        let at = |&gamma: &f64| {
            let kernel = KernelSettings { gamma: Some(gamma), ..settings.kernel.clone() };
            Settings { kernel, ..settings.clone() }
        };
        self.0.iter().map(at).collect()
    }

    /// The values, rising.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The settings with each value of C in turn: a path.
    pub fn candidates(&self, settings: &Settings) -> Vec<Settings> {
        let at = |&c: &f64| Settings { regularisation: Regularisation::C(c), ..settings.clone() };
        self.0.iter().map(at).collect()
    }
}

const EXAMPLE: &str = "write low:high:count such as 1e-4:1e2:20, or a list such as 0.1,1,10";

impl FromStr for Grid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Grid> {
        let number = |part: &str| {
            part.trim()
                .parse::<f64>()
                .map_err(|_| refuse(format!("`{part}` in the grid `{text}` is not a number")).help(EXAMPLE))
        };
        if !text.contains(':') {
            return Grid::of(text.split(',').map(number).collect::<Result<_>>()?);
        }
        let parts: Vec<&str> = text.split(':').collect();
        let [low, high, count] = parts[..] else {
            return Err(refuse(format!("the grid `{text}` does not have three parts")).help(EXAMPLE));
        };
        let count = count
            .trim()
            .parse()
            .map_err(|_| refuse(format!("`{count}` in the grid `{text}` is not a number of values")).help(EXAMPLE))?;
        Grid::spaced(number(low)?, number(high)?, count)
    }
}

fn check(value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(refuse(format!("the grid holds {value}, and its values must be positive numbers")).help(EXAMPLE))
}

fn refuse(message: String) -> Error {
    Error::new(Code::BadSetting, message)
}

/// The nearest number with this many significant decimal digits.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<f64> {
        text.parse::<Grid>().expect("a grid").0
    }

    #[test]
    fn spaced_values_are_short_numbers_at_equal_ratios() {
        assert_eq!(values("1e-2:1e2:5"), [0.01, 0.1, 1.0, 10.0, 100.0]);
        assert_eq!(values("1e-4:1e4:20")[..4], [1e-4, 2.64e-4, 6.95e-4, 1.83e-3]);
        // End values are used as they are, and close values keep enough digits to differ.
        assert_eq!(values("0.12345:2:2"), [0.12345, 2.0]);
        let close = values("1:1.0001:5");
        assert!(close.windows(2).all(|pair| (pair[1] - pair[0] - 2.5e-5).abs() < 2.5e-6), "{close:?}");
    }

    #[test]
    fn listed_values_rise_and_stand_once() {
        assert_eq!(values("10, 0.1,1,10"), [0.1, 1.0, 10.0]);
        assert_eq!(values("3"), [3.0]);
    }

    #[test]
    fn an_invalid_grid_is_refused_with_an_example() {
        for text in [
            "",
            "a",
            "1,,2",
            "0",
            "-1,1",
            "inf",
            "NaN,1",
            "1:2",
            "1:2:3:4",
            "2:1:5",
            "1:1:5",
            "1:2:1",
            "1:2:x",
            "0:1:5",
            "1:inf:5",
            "1:2:-3",
            "1:2:1000000000",
        ] {
            let error = text.parse::<Grid>().expect_err(text);
            assert_eq!(error.code(), Code::BadSetting, "{text}");
            assert!(error.remedy().is_some_and(|help| help.contains("such as 1e-4:1e2:20")), "{text}");
        }
    }
}
