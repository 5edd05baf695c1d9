//! Ratings as a sum over rows, for batch solvers.

use super::super::{Curvature, Directions, Objective, Place, Roundable, Slopes, rounding_terms};
use super::{Ordinal, PART};
use crate::error::Result;
use crate::loss::{Curve, Loss};
use std::ops::Range;

impl Ordinal {
    /// Visits the violations of a row that matter: the number of the cut, t, and the violation.
    #[inline(always)]
    pub(crate) fn each_violation(&self, row: usize, score: f64, cuts: &[f64], mut visit: impl FnMut(usize, f64, f64)) {
        let (rank, margin) = (self.rank(row), self.margin(row));
        let smooth = self.loss == Loss::Logistic;
        for cut in self.counted(rank) {
            let side = if rank > cut { 1.0 } else { -1.0 };
            let violation = margin - side * (score - cuts[self.holder(cut)]);
            // What is no number is visited, so that an overflow shows.
            if smooth || violation > 0.0 || violation.is_nan() {
                visit(cut, side, violation);
            }
        }
    }
}

impl Objective for Ordinal {
    /// The result of [`Roundable::rounding`].
    type Memo = [f64; 3];

    fn parts(&self) -> usize {
        self.len().div_ceil(PART)
    }

    fn rows(&self, part: usize) -> Range<usize> {
        part * PART..((part + 1) * PART).min(self.len())
    }

    fn thresholds(&self) -> usize {
        self.cuts()
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut [f64; 3]) -> Result<f64> {
        let (mut value, mut rounding) = (0.0, [0.0; 2]);
        for ((row, &score), slope) in self.rows(at.part).zip(at.scores).zip(slopes.scores) {
            let cost = self.cost(row);
            *slope = 0.0;
            if cost == 0.0 {
                continue;
            }
            self.each_violation(row, score, at.thresholds, |cut, side, violation| {
                let point = self.curve.at(violation);
                value += cost * point.value;
                rounding[0] += cost * point.rounding[0];
                rounding[1] += cost * point.rounding[1];
                let pull = side * cost * point.derivative;
                *slope -= pull;
                slopes.thresholds[self.holder(cut)] += pull;
            });
        }
        *memo = rounding_terms(rounding);
        Ok(value)
    }
}

impl Curvature for Ordinal {
    fn diagonal(&self, at: &Place<'_>, memo: &[f64; 3], out: &mut [f64]) -> Result<()> {
        for (number, out) in out.iter_mut().enumerate() {
            *out = 0.0;
            self.each_cut(at, memo, number, &mut |_, value| *out += value);
        }
        Ok(())
    }

    fn rows_are_separate(&self) -> bool {
        true
    }

    fn has_cuts(&self) -> bool {
        true
    }

    fn by_threshold(&self, at: &Place<'_>, memo: &[f64; 3], out: &mut [f64]) -> Result<f64> {
        self.diagonal(at, memo, out)?;
        let sum = out.iter().sum();
        // The cut is subtracted from the score.
        out.iter_mut().for_each(|value| *value = -*value);
        Ok(sum)
    }

    fn each_cut(&self, at: &Place<'_>, _: &[f64; 3], number: usize, visit: &mut dyn FnMut(usize, f64)) {
        let row = self.rows(at.part).start + number;
        let cost = self.cost(row);
        if cost > 0.0 {
            self.each_violation(row, at.scores[number], at.thresholds, |cut, _, violation| {
                let curvature = self.curve.at(violation).curvature;
                if curvature != 0.0 {
                    visit(self.holder(cut), cost * curvature);
                }
            });
        }
    }

    fn curvature(&self, at: &Place<'_>, memo: &[f64; 3], along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let count = along.count;
        out.scores.fill(0.0);
        for number in 0..at.scores.len() {
            let own = number * count..(number + 1) * count;
            let (given, written) = (&along.scores[own.clone()], &mut out.scores[own]);
            self.each_cut(at, memo, number, &mut |cut, value| {
                let moved = &along.thresholds[cut * count..(cut + 1) * count];
                let pulled = &mut out.thresholds[cut * count..(cut + 1) * count];
                for direction in 0..count {
                    let change = value * (given[direction] - moved[direction]);
                    written[direction] += change;
                    pulled[direction] -= change;
                }
            });
        }
        Ok(())
    }
}

impl Roundable for Ordinal {
    fn rounded(&self, width: f64) -> Ordinal {
        debug_assert!(self.loss == Loss::Hinge);
        Ordinal { curve: Curve::Rounded(width), ..self.clone() }
    }

    fn margin_scale(&self) -> f64 {
        let Some(margins) = &self.margins else { return 1.0 };
        let counted = (0..margins.len()).filter(|&row| self.cost(row) > 0.0);
        let largest = counted.map(|row| margins[row]).fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }

    fn rounding(&self, _part: usize, memo: &[f64; 3]) -> [f64; 3] {
        *memo
    }
}
