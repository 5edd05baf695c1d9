//! How likely the place of a click is to be looked at.

use super::{ClickLog, Event};
use crate::error::{Code, Error, Result};
use crate::wording::counted;
use serde::{Deserialize, Serialize};

/// The probability that each place is looked at: the first entry is that of position 1. Places without an estimate hold
/// `None`. Only ratios matter for what is learned, so the curve may be relative to its first place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// By position.
    pub values: Vec<Option<f64>>,
}

impl Curve {
    /// The power law (1 / position)^eta up to a position.
    pub fn power(eta: f64, positions: u32) -> Result<Curve> {
        if !(eta.is_finite() && eta >= 0.0) {
            return Err(Error::new(Code::BadSetting, format!("the exponent {eta} is no number of zero or more"))
                .help("give an exponent such as 1: places are then looked at with probability 1 / position"));
        }
        Ok(Curve { values: (1..=positions).map(|place| Some(f64::from(place).powf(-eta))).collect() })
    }

    /// The value at a position, from 1.
    pub fn at(&self, position: u32) -> Option<f64> {
        self.values.get(position as usize - 1).copied().flatten()
    }

    /// Refuses values that are not above 0 and up to 1.
    pub fn check(&self) -> Result<()> {
        let bad = |value: &f64| !(*value > 0.0 && *value <= 1.0);
        match self.values.iter().enumerate().find_map(|(at, value)| value.filter(bad).map(|value| (at + 1, value))) {
            None => Ok(()),
            Some((place, value)) => Err(Error::new(
                Code::BadPropensity,
                format!("the propensity of position {place} is {value}, and not a probability above 0 and up to 1"),
            )
            .help("a place that is never looked at gets no click; leave it out")),
        }
    }
}

/// Where propensities come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Propensity {
    /// The log gives one for each click.
    Log,
    /// By position.
    Curve(Curve),
}

/// The lowest propensity that counts: lower ones are raised to it, so that no single click weighs more than 1 / limit.
/// This lowers the variance and adds a bias: clicks at places that are looked at less often than the limit count for less
/// than they should, so what is shown there is learned as less relevant than it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clipping {
    /// The limit, above 0 and up to 1; none if nothing is clipped.
    pub limit: Option<f64>,
    /// Clicks that were clipped.
    pub clicks: u64,
    /// The share of the total weight of clicks that clipping took away: the size of its bias.
    pub lost: f64,
}

impl Propensity {
    /// The weight of each event: 1/p for clicks, 0 for the rest; and what clipping took away.
    pub fn weights(&self, log: &ClickLog, limit: Option<f64>) -> Result<(Vec<f64>, Clipping)> {
        if let Some(limit) = limit.filter(|limit| !(*limit > 0.0 && *limit <= 1.0)) {
            return Err(Error::new(Code::BadSetting, format!("the limit {limit} is not above 0 and up to 1"))
                .help("give the lowest propensity that counts, such as 0.05"));
        }
        if let Propensity::Curve(curve) = self {
            curve.check()?;
        }
        let of = |event: &Event| match self {
            Propensity::Log => Some(event.propensity).filter(|value| !value.is_nan()),
            Propensity::Curve(curve) => curve.at(event.position),
        };
        let (mut clipping, mut all, mut kept) = (Clipping { limit, ..Clipping::default() }, 0.0, 0.0);
        let mut lacking = (0u64, 0);
        let weights = log.events().iter().map(|event| {
            if !event.clicked {
                return 0.0;
            }
            let Some(propensity) = of(event) else {
                lacking = (lacking.0 + 1, event.position);
                return 0.0;
            };
            let counted = limit.map_or(propensity, |limit| propensity.max(limit));
            clipping.clicks += u64::from(counted > propensity);
            all += 1.0 / propensity;
            kept += 1.0 / counted;
            1.0 / counted
        });
        let weights: Vec<f64> = weights.collect();
        if lacking.0 > 0 {
            let clicks = counted(lacking.0, "click has", "clicks have");
            return Err(match self {
                Propensity::Log => Error::new(Code::BadPropensity, format!("{clicks} no propensity in the log"))
                    .help("give each click its propensity in a column `propensity`, or use another ⟦propensity⟧"),
                Propensity::Curve(_) => Error::new(
                    Code::BadPropensity,
                    format!("{clicks} no propensity: position {} has none, for example", lacking.1),
                )
                .help("give a propensity for every position with a click, or use ⟦propensity=power:1⟧"),
            });
        }
        if all > 0.0 {
            clipping.lost = (1.0 - kept / all).max(0.0);
        }
        Ok((weights, clipping))
    }
}
