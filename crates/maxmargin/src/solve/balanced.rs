//! The lower bound of comparisons by grades, whose pairs are never listed.
//!
//! ```text
//! P(w, τ) = ½‖w‖² + Σ_p c_p · loss(v_p),   v_p = 1 ± τ − a_p·w   (+ for decided pairs, − for ties)
//! D(α)    = Σ_p α_p − Q(α) − ½‖Σ_p α_p a_p‖²,   Q = Σ α_p² / (4 c_p) for the squared hinge, 0 for the hinge
//! ```
//! α_p = c_p · loss'(v_p), with the hinge rounded off, lies in the box of the dual for every w and τ. A free τ also
//! requires Σ_decided α = Σ_ties α: the larger sum is scaled down by a factor f until both agree, and α stays in its
//! box. Two evaluations, one for the decided pairs and one for the ties, give all that is needed: Σα is the slope by τ,
//! Σ α a the slope by w, and Q the value of the squared hinge. A τ that is penalised costs −½(Σ_ties α − Σ_decided α)²
//! instead.
//!
//! The bound is lowered by what the sums may have lost to rounding. Cost: three passes.

use super::{LinearRisk, Risk};
use crate::data::Design;
use crate::error::Result;
use crate::run::Cancel;
use crate::task::{GradedComparison, Roundable, Shares};

/// What a sum may have lost to rounding, relative to the sum of its terms.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// Primal value at the weights and the threshold, and the lower bound that they give. `width` is the width over which
/// the hinge is rounded off, and `None` for the squared hinge. Returns an error after a cancel.
pub(crate) fn balanced_values(
    task: &GradedComparison,
    design: &Design,
    weights: &[f64],
    threshold: f64,
    width: Option<f64>,
    penalised: bool,
    cancel: &Cancel,
) -> Result<(f64, f64)> {
    let point = [weights, &[threshold]].concat();
    let mut gradient = vec![0.0; point.len()];
    let primal = LinearRisk::new(task, design, penalised, cancel).evaluate(&point, &mut gradient)?;
    let square = 0.5 * weights.iter().map(|w| w * w).sum::<f64>();
    let smooth = width.map_or_else(|| task.clone(), |width| task.rounded(width));
    let mut side = |decided: f64, tied: f64| -> Result<Side> {
        let side = smooth.with_shares(Shares { decided, tied });
        let value = LinearRisk::new(&side, design, false, cancel).evaluate(&point, &mut gradient)? - square;
        let (by_weights, by_threshold) = gradient.split_at(weights.len());
        let image: Vec<f64> = by_weights.iter().zip(weights).map(|(g, w)| w - g).collect();
        Ok(Side { total: by_threshold[0].abs(), image, conjugate: if width.is_none() { value } else { 0.0 } })
    };
    let (decided, tied) = (side(1.0, 0.0)?, side(0.0, 1.0)?);
    // After a cancel the values are incomplete.
    cancel.check()?;
    let (mut up, mut down) = (1.0, 1.0);
    if !penalised {
        // If one side is empty, the other must be zero too.
        let share = |of: f64, whole: f64| if whole > of { of / whole } else { 1.0 };
        (up, down) = (share(tied.total, decided.total), share(decided.total, tied.total));
    }
    let image = decided.image.iter().zip(&tied.image).map(|(decided, tied)| up * decided + down * tied);
    let length: f64 = image.map(|value| value * value).sum();
    let (above, below) = (up * decided.total, down * tied.total);
    let held = if penalised { 0.5 * (below - above).powi(2) } else { 0.0 };
    let conjugate = up * up * decided.conjugate + down * down * tied.conjugate;
    // Slopes of the rounded hinge are differences of sums as large as the value, over the width.
    let lost = ROUNDING * (above + below + 0.5 * length + width.map_or(0.0, |width| 2.0 * (primal - square) / width));
    Ok((primal, (above + below - conjugate - 0.5 * length - held - lost).max(0.0)))
}

/// Σα, Σ α a and Q of the decided pairs or of the ties.
struct Side {
    total: f64,
    image: Vec<f64>,
    conjugate: f64,
}
