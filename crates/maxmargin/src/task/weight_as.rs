//! [`WeightAs`]: the three uses of the weight of a row or a pair.
//!
//! | use | a row or pair of weight u | cost | margin |
//! | --- | --- | --- | --- |
//! | slack | a violation counts u times | C·u | 1 |
//! | margin | must reach a margin of u; with u = 0 it is left out | C | u |
//! | copies | stands there u times, u a whole number; with u = 0 not at all | C each | 1 |
//!
//! Slack and copies have the same optimum. Copies are made once, before training and before verification
//! ([`WeightAs::copied`]): a solver that draws single rows then draws each copy. The data hash is that of the rows given.

use crate::data::{Dataset, Pairs};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::wish::{LEARNING, Setting, Value};
use crate::wording::count;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::iter::repeat_n;
use std::sync::Arc;

/// The margin of each row; `None` if all of them are 1.
pub(crate) type Margins = Option<Arc<[f64]>>;

/// How the weight of a row or a pair is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightAs {
    /// It multiplies the cost of a violated margin.
    #[default]
    Slack,
    /// It is the margin.
    Margin,
    /// It is the number of copies: a whole number.
    #[serde(alias = "replicate")]
    Copies,
}

/// The setting, for the tasks that have it.
pub(in crate::task) const WEIGHT_AS: Setting = Setting {
    name: "weight-as",
    heading: LEARNING,
    // Its earlier name.
    aliases: &["pair-weight-as"],
    help: "How the weight of a row or a pair is used: as a factor of the slack (`slack`), as the margin (`margin`), or \
           as a number of copies (`copies`) [default: slack]",
    placeholder: "WAY",
    value: Value::Parsed(|text| WeightAs::of_name(text).map(drop)),
    place: "task.weight-as",
};

/// The setting for pairs, whose place has the earlier name.
pub(in crate::task) const PAIR_WEIGHT_AS: Setting = Setting { place: "task.pair-weight-as", ..WEIGHT_AS };

/// A larger weight is taken to be a mistake, and u32 could no longer count the copies.
const MOST_COPIES: f64 = u32::MAX as f64;

/// Copies that take more memory than this are refused.
const MOST_BYTES: f64 = 8e9;

/// The bytes of a copied row without its features: a place in two lists, and a target.
const BYTES_OF_ROW: f64 = 24.0;

/// The bytes of a copied pair: a place in a list, two rows, an outcome and a weight.
const BYTES_OF_PAIR: f64 = 25.0;

/// Writes the use as the settings of pairs always did, in which copies have their earlier name.
pub(in crate::task) fn as_for_pairs<S: serde::Serializer>(
    way: &WeightAs,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    match way {
        WeightAs::Copies => to.serialize_str("replicate"),
        way => way.serialize(to),
    }
}

impl WeightAs {
    /// All uses.
    pub const ALL: [WeightAs; 3] = [WeightAs::Slack, WeightAs::Margin, WeightAs::Copies];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            WeightAs::Slack => "slack",
            WeightAs::Margin => "margin",
            WeightAs::Copies => "copies",
        }
    }

    /// The use with this name. Copies have an earlier name, too.
    fn of_name(name: &str) -> Result<WeightAs> {
        let named = WeightAs::ALL.into_iter().find(|way| way.name() == name);
        named.or((name == "replicate").then_some(WeightAs::Copies)).ok_or_else(|| {
            Error::new(Code::BadSetting, format!("weight-as = `{name}` is not known"))
                .help("use one of slack, margin, copies")
        })
    }

    /// Refuses margins set by weights where the loss has none, or where ν sets them.
    pub(in crate::task) fn refuse(self, loss: Loss, nu: bool) -> Result<()> {
        let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        match self {
            WeightAs::Margin if nu => bad(
                "with ⟦nu⟧ all margins are the same, and weights cannot set them",
                "leave ⟦weight-as⟧ out, or use ⟦c⟧ instead of ⟦nu⟧",
            ),
            WeightAs::Margin if loss == Loss::Logistic => bad(
                "the logistic loss has no margin that a weight could set",
                "use ⟦weight-as=slack⟧, or ⟦loss=hinge⟧ or squared-hinge",
            ),
            _ => Ok(()),
        }
    }

    /// The data with weights that are costs, and the margins. Whatever stands for its
    /// copies is checked.
    pub(crate) fn split(self, data: &Dataset) -> Result<(Cow<'_, Dataset>, Margins)> {
        let Some(weights) = data.weights() else { return Ok((Cow::Borrowed(data), None)) };
        match self {
            WeightAs::Slack => Ok((Cow::Borrowed(data), None)),
            WeightAs::Copies => {
                check_rows(data, weights)?;
                Ok((Cow::Borrowed(data), None))
            }
            WeightAs::Margin => {
                let counts: Vec<f64> = weights.iter().map(|&weight| f64::from(u8::from(weight > 0.0))).collect();
                Ok((Cow::Owned(data.clone().with_weights(counts)?), Some(weights.into())))
            }
        }
    }

    /// The data with every row, or every pair, as often as its weight says and without weights. `None` if nothing is to
    /// be copied.
    pub(crate) fn copied(self, data: &Dataset) -> Result<Option<Dataset>> {
        if self != WeightAs::Copies {
            return Ok(None);
        }
        let repeated = |weights: &[f64]| -> Vec<usize> {
            let each = weights.iter().enumerate();
            each.flat_map(|(at, &weight)| repeat_n(at, weight as usize)).collect()
        };
        match (data.pairs(), data.weights()) {
            (Some(pairs), _) => {
                let Some(weights) = pairs.weights() else { return Ok(None) };
                check_pairs(data, pairs)?;
                check_total(weights, |_| BYTES_OF_PAIR)?;
                data.clone().with_pairs(copies_of_pairs(pairs, weights)?.1).map(Some)
            }
            (None, Some(weights)) => {
                check_rows(data, weights)?;
                let matrix = data.matrix();
                let (starts, of_entry) = (matrix.starts(), matrix.bytes() as f64 / matrix.entries().max(1) as f64);
                let entries = |row: usize| match &starts {
                    Some(starts) => (starts[row + 1] - starts[row]) as f64,
                    None => data.cols() as f64,
                };
                check_total(weights, |row| BYTES_OF_ROW + of_entry * entries(row))?;
                data.repeated(&repeated(weights)).map(Some)
            }
            (None, None) => Ok(None),
        }
    }
}

/// Every pair as often as its weight says, and which pair each is a copy of. Pairs without copies stay in the list, and
/// count nothing.
pub(crate) fn copies_of_pairs(pairs: &Pairs, weights: &[f64]) -> Result<(Vec<usize>, Pairs)> {
    let each = weights.iter().enumerate();
    let rows: Vec<usize> = each.flat_map(|(pair, &weight)| repeat_n(pair, weight.max(1.0) as usize)).collect();
    let counts: Vec<f64> = rows.iter().map(|&pair| f64::from(u8::from(weights[pair] > 0.0))).collect();
    let copies = pairs.select(&rows).with_weights(counts)?;
    Ok((rows, copies))
}

/// Refuses copies that take too much memory. `bytes` are those of one copy.
fn check_total(weights: &[f64], bytes: impl Fn(usize) -> f64) -> Result<()> {
    let total: f64 = weights.iter().sum();
    let needed: f64 = weights.iter().enumerate().map(|(at, weight)| weight * bytes(at)).sum();
    if needed <= MOST_BYTES {
        return Ok(());
    }
    let (needed, most) = (needed / 1e9, MOST_BYTES / 1e9);
    let message =
        format!("the weights ask for {total:e} copies, which take {needed:.1} GB; at most {most} GB are used");
    Err(Error::new(Code::BadWeight, message)
        .help("use ⟦weight-as=slack⟧, which has the same optimum and makes no copies, or give smaller weights"))
}

/// Refuses weights of rows that are not whole numbers of copies.
fn check_rows(data: &Dataset, weights: &[f64]) -> Result<()> {
    weights.iter().enumerate().try_for_each(|(row, &weight)| check_copies(weight, "row", || data.row_name(row)))
}

/// The same for the weights of pairs.
pub(in crate::task) fn check_pairs(data: &Dataset, pairs: &Pairs) -> Result<()> {
    (0..pairs.len()).try_for_each(|pair| {
        check_copies(pairs.weight(pair), "pair", || {
            let (better, worse) = pairs.ordered(pair);
            format!("pair {} ({} over {})", pair + 1, data.row_name(better), data.row_name(worse))
        })
    })
}

fn check_copies(weight: f64, kind: &str, name: impl Fn() -> String) -> Result<()> {
    if weight.fract() == 0.0 && weight <= MOST_COPIES {
        return Ok(());
    }
    let (message, help) = if weight > MOST_COPIES {
        let most = count(MOST_COPIES as u64);
        (
            format!("the weight of {} is {weight:e}, and a {kind} is copied at most {most} times", name()),
            "give smaller weights; ⟦weight-as=slack⟧ takes them as costs, with the same effect",
        )
    } else {
        (
            format!("the weight {weight} of {} is not a whole number of copies", name()),
            "give whole numbers, or use ⟦weight-as=slack⟧, which also takes fractions",
        )
    };
    Err(Error::new(Code::BadWeight, message).help(help))
}
