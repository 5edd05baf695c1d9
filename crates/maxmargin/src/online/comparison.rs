//! [`ComparisonLearner`]: learns a ranking function and a threshold for ties, one pair after the other.
//!
//! A pair has d = x_right − x_left and an outcome y: −1 (left), 0 (tie) or 1 (right). With z = w·d the prediction is
//! the sign of z where |z| > τ, and a tie otherwise.
//!
//! **Passive-aggressive** (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer, Online passive-aggressive algorithms,
//! JMLR 2006, here with ties and a learned threshold). Each pair makes the smallest change that corrects it:
//!
//! ```text
//! min  ½‖w − w_t‖² + (τ − τ_t)²/(2κ) + C·ξ     s.t.  ξ ≥ ℓ(w, τ),  ξ ≥ 0,  τ ≥ 1
//! ℓ = 1 + τ − y·z where y ≠ 0,   1 − τ + |z| where y = 0
//! ```
//! With s = y, or −sgn z for a tie, and q = 1, or −1 for a tie, the minimum is a = min(C, [ℓ]₊/(‖d‖² + κ)), w += a·s·d,
//! τ −= q·κ·a. If τ would fall below 1, it is 1, and a = clip((2 − y·z)/‖d‖², 0, C). Below 1, a step for a tie could
//! carry z past zero. The limit loses nothing, since scaling w and τ together changes no prediction. With the squared
//! hinge the cost is C·ξ², 1/(2C) is added to both denominators, and no step is capped. As PA-I on the vectors (y·d,
//! −√κ) it makes at most max{R² + κ, 1/C}·(‖u‖² + (τ_u − τ_0)²/κ + 2C·Σℓ*) wrong predictions, R the largest ‖d‖ and ℓ*
//! the losses of any u and τ_u ≥ 1.
//!
//! **Stochastic gradient descent** on λ/2‖w‖² + mean loss, with v = margin + τ − y·z for an inequality and both of
//! margin − τ ± z for a tie. The logistic loss also has the term −ln(1 − e^(−2τ)), which makes it the likelihood of an
//! ordinal model. η = η₀/(1 + λη₀t), the threshold takes steps of 0.01·η and stays at 0.01 or above (Bottou, Stochastic
//! gradient descent tricks, 2012). Weights shrink lazily and are averaged on demand (`steps/weights.rs`).
//!
//! It makes one pass in the order of the stream, and nothing is random. It proves no bound, stores no pair and scales
//! no feature. Cost: O(entries of both rows) per pair.

use super::pair_steps::PairSteps;
use super::progress::{Measured, Progress};
use super::progressive::Progressive;
use super::state::OnlineState;
use crate::data::row_loops::for_this_machine;
use crate::data::{Dataset, Pairs, with_rows};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::steps::schedule::Averaging;
use crate::steps::weights::Weights;
use std::ops::Range;

/// The smallest threshold of passive-aggressive steps.
const LEAST_THRESHOLD: f64 = 1.0;
/// The smallest threshold of gradient steps: for the logistic loss it must be positive.
const LEAST_GRADIENT_THRESHOLD: f64 = 0.01;
/// The threshold takes shorter steps than the weights, since every pair pulls at it.
const THRESHOLD_RATE: f64 = 0.01;
/// How many pairs ahead rows are prefetched.
const AHEAD: usize = 8;

/// How a pair changes the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    PassiveAggressive { c: f64, kappa: f64, squared: bool },
    Gradient { lambda: f64, rate: f64, loss: Loss, averaged: bool },
}

/// The learned model, with everything needed to continue exactly where it stopped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ComparisonState {
    pub(super) weights: Weights,
    pub(super) threshold: f64,
    /// The average of the threshold, if weights are averaged.
    pub(super) average: f64,
    /// The weighted sum of the losses of pairs before each was learned from.
    pub(super) loss: f64,
    /// The sum of the weights of the pairs.
    pub(super) weight: f64,
    pub(super) progress: Progressive,
}

/// Learns from pairs of rows, one after the other. See the top of the file.
#[derive(Clone, Debug)]
pub struct ComparisonLearner {
    pub(super) rule: Rule,
    pub(super) state: ComparisonState,
    /// A work buffer, all zeros between pairs.
    scratch: Vec<f64>,
}

impl Rule {
    fn is_averaged(self) -> bool {
        matches!(self, Rule::Gradient { averaged: true, .. })
    }

    /// The smallest threshold to start from.
    pub(super) fn least_threshold(self) -> f64 {
        match self {
            Rule::PassiveAggressive { .. } => LEAST_THRESHOLD,
            Rule::Gradient { .. } => LEAST_GRADIENT_THRESHOLD,
        }
    }
}

impl ComparisonLearner {
    /// A learner that starts from weights and a threshold, with all counts at zero.
    pub(crate) fn beginning(
        settings: &crate::settings::Settings,
        weights: Vec<f64>,
        threshold: f64,
    ) -> Result<ComparisonLearner> {
        Ok(ComparisonLearner::start(Rule::of(settings)?, weights, threshold))
    }

    /// The smallest threshold to start from.
    pub(crate) fn least_threshold(&self) -> f64 {
        self.rule.least_threshold()
    }

    /// The state, with everything needed to continue.
    pub(crate) fn state(&self) -> OnlineState {
        self.state.stored()
    }

    /// The weighted sum of the losses of pairs before each was learned from.
    pub(crate) fn loss(&self) -> f64 {
        self.state.loss
    }

    /// The sum of the weights of the pairs.
    pub(crate) fn weight(&self) -> f64 {
        self.state.weight
    }

    pub(super) fn start(rule: Rule, weights: Vec<f64>, threshold: f64) -> ComparisonLearner {
        ComparisonLearner::go_on(
            rule,
            ComparisonState {
                weights: Weights::new(weights, rule.is_averaged()),
                threshold,
                average: threshold,
                loss: 0.0,
                weight: 0.0,
                progress: Progressive::default(),
            },
        )
    }

    pub(super) fn go_on(rule: Rule, state: ComparisonState) -> ComparisonLearner {
        let scratch = vec![0.0; state.weights.vector.len()];
        ComparisonLearner { rule, state, scratch }
    }

    /// Number of features seen so far.
    pub fn features(&self) -> usize {
        self.state.weights.vector.len()
    }

    /// The weights to predict with.
    pub fn weights(&self) -> Vec<f64> {
        self.state.weights.point()
    }

    /// The threshold to predict with.
    pub fn threshold(&self) -> f64 {
        if self.rule.is_averaged() { self.state.average } else { self.state.threshold }
    }

    /// How well pairs were predicted before they were learned from.
    pub fn progress(&self) -> &Progressive {
        &self.state.progress
    }

    /// The same for any task.
    pub fn measured(&self) -> Progress {
        let progress = self.progress();
        let error = Measured { name: "error", all: progress.error(), recent: progress.recent_error() };
        let auc = Measured { name: "auc", all: progress.auc().map(|auc| auc.area), recent: None };
        Progress {
            unit: ("pair", "pairs"),
            examples: progress.pairs(),
            weight: self.state.weight,
            loss: self.state.loss,
            metrics: vec![error, auc],
            aggression: None,
        }
    }

    /// Learns from some of the comparisons of a data set, in order. New features start with weight zero. Pairs of
    /// weight zero are predicted but not learned from. An overflow is an error, after which the learner is unusable.
    pub fn learn(&mut self, data: &Dataset, range: Range<usize>) -> Result<()> {
        let pairs = data.pairs().ok_or_else(|| {
            Error::new(Code::NoPairs, "the data hold no pairs").help("give a table with columns left,right,outcome")
        })?;
        if range.end > pairs.len() || range.start > range.end {
            return Err(Error::new(Code::Internal, format!("pairs {range:?} of {}", pairs.len())));
        }
        data.matrix().check(0..data.rows())?;
        self.state.weights.grow(data.cols());
        self.scratch.resize(self.features(), 0.0);
        let ComparisonLearner { rule, state, scratch } = self;
        let finite = with_rows!(data.matrix(), rows => match rule {
            Rule::PassiveAggressive { .. } => passive_aggressive(rows, pairs, range, *rule, state, scratch),
            Rule::Gradient { .. } => gradient(rows, pairs, range, *rule, state),
        });
        if finite && state.threshold.is_finite() && state.loss.is_finite() {
            return Ok(());
        }
        Err(Error::new(Code::Overflow, format!("numbers overflowed before pair {}", state.progress.pairs())).help(
            match rule {
                Rule::PassiveAggressive { .. } => "features are too large: bring them to a common size, such as 0 to 1",
                Rule::Gradient { .. } => "use a smaller ⟦rate⟧, or ⟦solver=passive-aggressive⟧, which needs none",
            },
        ))
    }
}

for_this_machine! {
    /// See [`passive_aggressive_plainly`].
    fn passive_aggressive[R: PairSteps](
        rows: &R, pairs: &Pairs, range: Range<usize>, rule: Rule, state: &mut ComparisonState, scratch: &mut [f64],
    ) -> bool = passive_aggressive_plainly
}

/// Passive-aggressive steps. Returns whether all numbers were finite. Values that depend on the outcome are chosen
/// without branches, since outcomes cannot be predicted by the processor.
#[inline(always)]
fn passive_aggressive_plainly<R: PairSteps>(
    rows: &R,
    pairs: &Pairs,
    range: Range<usize>,
    rule: Rule,
    state: &mut ComparisonState,
    scratch: &mut [f64],
) -> bool {
    let Rule::PassiveAggressive { c, kappa, squared } = rule else { return false };
    let ComparisonState { weights, threshold, loss: losses, weight: total, progress, .. } = state;
    let w = &mut weights.vector[..];
    let (left, right) = (pairs.left(), pairs.right());
    let short = rows.are_short();
    let (mut tau, mut finite) = (*threshold, true);
    for pair in range {
        if let (Some(&left), Some(&right)) = (left.get(pair + AHEAD), right.get(pair + AHEAD)) {
            rows.prefetch(left as usize);
            rows.prefetch(right as usize);
        }
        let weight = pairs.weight(pair);
        let (left, right) = (left[pair] as usize, right[pair] as usize);
        let sign = pairs.outcome(pair).sign();
        let z = rows.product(left, right, w);
        finite &= z.is_finite();
        progress.count(sign, z, tau);
        if weight == 0.0 {
            continue;
        }
        let tie = sign == 0;
        let s = if tie { 1f64.copysign(-z) } else { f64::from(sign) };
        let q = if tie { -1.0 } else { 1.0 };
        let toward = s * z;
        let loss = (1.0 + q * tau - toward).max(0.0);
        *total += weight;
        *losses += weight * if squared { loss * loss } else { loss };
        if !short && loss == 0.0 {
            continue;
        }
        let (most, soft) = if squared { (f64::INFINITY, 0.5 / (c * weight)) } else { (c * weight, 0.0) };
        let square = rows.square(left, right, scratch) + soft;
        let mut a = (loss * (1.0 / (square + kappa))).min(most);
        let mut moved = tau - q * kappa * a;
        let below = moved < LEAST_THRESHOLD;
        let held = ((1.0 + LEAST_THRESHOLD - toward) * (1.0 / square)).max(0.0).min(most);
        a = if below { held } else { a };
        moved = if below { LEAST_THRESHOLD } else { moved };
        tau = moved;
        rows.add(left, right, a * s, w);
    }
    *threshold = tau;
    finite
}

for_this_machine! {
    /// See [`gradient_plainly`].
    fn gradient[R: PairSteps](
        rows: &R, pairs: &Pairs, range: Range<usize>, rule: Rule, state: &mut ComparisonState,
    ) -> bool = gradient_plainly
}

/// The loss of a pair, and its slopes by z and τ.
#[inline(always)]
pub(super) fn loss_and_slopes(loss: Loss, sign: i8, z: f64, tau: f64) -> (f64, f64, f64) {
    if sign != 0 {
        let y = f64::from(sign);
        let violation = loss.margin() + tau - y * z;
        let slope = loss.derivative(violation);
        return (loss.value(violation), -y * slope, slope);
    }
    let (above, below) = (loss.margin() - tau + z, loss.margin() - tau - z);
    let (up, down) = (loss.derivative(above), loss.derivative(below));
    let (mut value, mut slope) = (loss.value(above) + loss.value(below), -up - down);
    if loss == Loss::Logistic {
        value -= (-(-2.0 * tau).exp_m1()).ln();
        slope -= 2.0 / (2.0 * tau).exp_m1();
    }
    (value, up - down, slope)
}

/// Gradient steps. Returns whether all numbers were finite.
#[inline(always)]
fn gradient_plainly<R: PairSteps>(
    rows: &R,
    pairs: &Pairs,
    range: Range<usize>,
    rule: Rule,
    state: &mut ComparisonState,
) -> bool {
    let Rule::Gradient { lambda, rate, loss, .. } = rule else { return false };
    let ComparisonState { weights, threshold, average, loss: losses, weight: total, progress } = state;
    let (left, right) = (pairs.left(), pairs.right());
    let mut finite = true;
    for pair in range {
        if let (Some(&left), Some(&right)) = (left.get(pair + AHEAD), right.get(pair + AHEAD)) {
            rows.prefetch(left as usize);
            rows.prefetch(right as usize);
        }
        let weight = pairs.weight(pair);
        let (left, right) = (left[pair] as usize, right[pair] as usize);
        let sign = pairs.outcome(pair).sign();
        let (z, averaged) = weights.products(|w| rows.product(left, right, w));
        finite &= z.is_finite();
        match averaged {
            Some(z) => progress.count(sign, z, *average),
            None => progress.count(sign, z, *threshold),
        }
        if weight == 0.0 {
            continue;
        }
        let t = progress.pairs();
        let eta = rate / (1.0 + lambda * rate * t as f64);
        let (value, by_z, by_tau) = loss_and_slopes(loss, sign, z, *threshold);
        *total += weight;
        *losses += weight * value;
        weights.shrink(1.0 - eta * lambda);
        if by_z != 0.0 {
            weights.add(-eta * weight * by_z, |step, w| rows.add(left, right, step, w));
        }
        let moved = *threshold - THRESHOLD_RATE * eta * weight * by_tau;
        *threshold = moved.max(LEAST_GRADIENT_THRESHOLD);
        if let Some(share) = Averaging::Late.weight(t - 1) {
            *average += share * (*threshold - *average);
            weights.include(share);
        }
    }
    finite
}
