//! Tasks: what to learn, as margin constraints over scores.
//!
//! A task never sees features. It turns scores into constraints, a value and slopes; a solver turns those into weights.

mod barrier;
mod class_rows;
mod classify;
mod comparison;
mod largest;
mod multilabel;
mod one_class;
mod ordinal;
mod profile;
mod ranking;
mod row_block;
mod sequence;
mod tree;
mod weight_as;

pub use crate::data::Classes;
pub use crate::wish::Intercept;
pub(crate) use barrier::Barrier;
pub use classify::{Binary, ClassWeight, ClassifySettings, Columns, CostMatrix, Joint, JointForm, Multiclass};
pub(crate) use classify::{COLUMNS, Column, JOINT};
pub(crate) use comparison::{ByDifference, merged_numbers};
pub use comparison::{CompareSettings, Comparison, Method, TiesAs};
pub use multilabel::{Multilabel, MultilabelSettings, Separation, SetStep};
pub(crate) use multilabel::{separation_loss, solve_sides, two_labels};
pub use one_class::{OneClass, OneClassSettings};
pub(crate) use ordinal::{AtCuts, CutShares};
pub use ordinal::{Ordinal, OrdinalForm, OrdinalSettings};
pub use profile::{Abilities, Input, OwnSettings, Profile, Task, TaskSettings};
pub use ranking::{ClickRanking, GradedComparison, PairWeight, RankSettings, Ranking, TargetsAre};
pub(crate) use ranking::{Shares, TargetOrder};
pub(crate) use row_block::{BlockForm, LANES, highest, solve_block};
pub use sequence::SequenceSettings;
pub use tree::TreeSettings;
pub use weight_as::WeightAs;
pub(crate) use weight_as::copies_of_pairs;

use crate::certificate::Decoder;
use crate::error::Result;
use crate::loss::Loss;
use crate::run::Cancel;
use std::ops::Range;
use std::sync::Arc;

/// One margin constraint: `coefficient · (score(row) − score(against)) + threshold · b ≥ margin − slack`. Violating it
/// costs `cost · loss(slack)`, and b is the task's free scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraint {
    /// The row whose score is used.
    pub row: usize,
    /// The row whose score is subtracted; most tasks have none.
    pub against: Option<usize>,
    /// The coefficient of the score, or of the difference of scores.
    pub coefficient: f64,
    /// The coefficient of the free scalar; 0 if the task has none.
    pub threshold: f64,
    /// The value that the sum must reach.
    pub margin: f64,
    /// The weight of the loss.
    pub cost: f64,
}

impl Constraint {
    /// How far the constraint is from its margin.
    #[inline(always)]
    pub fn violation(&self, scores: &[f64], threshold: f64) -> f64 {
        self.violation_by(|row| scores[row], threshold)
    }

    /// The same for scores that are not in a slice.
    #[inline(always)]
    pub(crate) fn violation_by(&self, score: impl Fn(usize) -> f64, threshold: f64) -> f64 {
        let score = score(self.row) - self.against.map_or(0.0, score);
        self.margin - self.coefficient * score - self.threshold * threshold
    }
}

/// What every task provides: its total weight, and the meaning of its scores.
pub trait LearningTask: Send + Sync {
    /// Sets the weight C of the loss.
    fn set_cost(&mut self, c: f64);

    /// The total weight of the loss: C times the sum of the weights of all constraints.
    fn total_cost(&self) -> f64;

    /// Number of margin constraints with a positive cost.
    fn constraints(&self) -> u64;

    /// What one constraint is called, in words.
    fn unit(&self) -> &'static str {
        "row"
    }

    /// The meaning of the scores, given the free scalars.
    fn decoder(&self, free: &[f64]) -> Decoder;

    /// Whether the free scalar is the constant term of all scores. Otherwise it is a threshold for scores.
    fn adds_free(&self) -> bool {
        false
    }

    /// Whether a number added to all free scalars changes no loss. Their mean is then made zero.
    fn shifts(&self) -> bool {
        false
    }

    /// A constant term of the scores that is known before training.
    fn offset(&self) -> Option<f64> {
        None
    }

    /// Number of explicit pairs with a second constraint, which comes after those of all pairs, if there are any.
    fn ties(&self) -> Option<u64> {
        None
    }

    /// The cost of equal scores with their best threshold, if equal scores are not a valid answer.
    fn cost_of_equal_scores(&self) -> Option<f64> {
        None
    }

    /// Blocks with the same kernel values as an earlier block: the first such block, and the earlier block of each.
    fn second_copies(&self) -> Option<(usize, Arc<[u32]>)> {
        None
    }
}

/// A task with one constraint per block, each known without scores. Dual coordinate descent needs this.
pub trait Independent: Sync {
    /// Number of blocks.
    fn blocks(&self) -> usize;
    /// The loss of all blocks.
    fn loss(&self) -> Loss;
    /// The constraint of a block.
    fn constraint(&self, block: usize) -> Constraint;
    /// Which of several free scalars the constraint of a block takes. Only kernel solvers know more than one.
    fn cut(&self, _block: usize) -> usize {
        0
    }
    /// Number of free scalars that constraints take, if any.
    fn cuts(&self) -> usize {
        1
    }
    /// Whether block i depends only on row i.
    fn blocks_are_rows(&self) -> bool {
        false
    }
    /// The weight of −ln(1 − e^(−2b)) in the objective, where b is the free scalar. It is 0 except for ties with
    /// logistic loss, where the term keeps b above zero.
    fn barrier(&self) -> f64 {
        0.0
    }
}

/// The point at which a part of a task is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The number of the part.
    pub part: usize,
    /// The scores of its rows in order, with [`Objective::outputs`] numbers per row.
    pub scores: &'a [f64],
    /// The free scalars, one for each of [`Objective::thresholds`].
    pub thresholds: &'a [f64],
    /// The job's flag. Solvers poll it between parts. A task whose parts are long should check [`Cancel::is_abandoned`]
    /// regularly; after that, its return value does not matter.
    pub cancel: &'a Cancel,
}

/// Derivatives of a part: by each score and by each free scalar.
#[derive(Debug)]
pub struct Slopes<'a> {
    /// In the order of [`Place::scores`]. A part overwrites these values.
    pub scores: &'a mut [f64],
    /// In the order of [`Place::thresholds`]. A part adds to these values, because all parts share them.
    pub thresholds: &'a mut [f64],
}

/// Several directions by which a Hessian is multiplied at once.
#[derive(Clone, Copy, Debug)]
pub struct Directions<'a> {
    /// Number of directions.
    pub count: usize,
    /// The change of each score along each direction: `count` numbers for each of [`Place::scores`].
    pub scores: &'a [f64],
    /// The change of each free scalar: `count` numbers for each of [`Place::thresholds`].
    pub thresholds: &'a [f64],
}

/// A task as a sum over parts, each a function of the scores of neighbouring rows. Batch solvers need this.
///
/// Your own task implements this trait, and also [`Curvature`] if Newton's method is to solve it; [`crate::testing`]
/// checks that its numbers agree. If a part returns an error, the solver stops and returns that error unchanged. If
/// several parts fail, it returns the error of the first part, for any number of threads.
pub trait Objective: Sync {
    /// What a part remembers between a value and the curvature at the same point (sort orders, windows), in addition to
    /// the scores.
    type Memo: Default + Send + Sync;

    /// Number of parts.
    fn parts(&self) -> usize;

    /// The rows of a part.
    fn rows(&self, part: usize) -> Range<usize>;

    /// Number of scores per row. Each is a linear function with its own weights. The scores of one row are next to each
    /// other.
    fn outputs(&self) -> usize {
        1
    }

    /// Number of free scalars (an intercept, cuts between grades) in addition to the scores.
    fn thresholds(&self) -> usize;

    /// Called before parts are evaluated at new free scalars, for what is computed once for all parts.
    fn prepare(&self, _thresholds: &[f64]) -> Result<()> {
        Ok(())
    }

    /// The value of a part. Writes its derivative by each score, and adds its derivative by each free scalar.
    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut Self::Memo) -> Result<f64>;

    /// For line searches: the value of a part and its derivative when each score changes at the given rate. Adds the
    /// derivative by each free scalar to `by_threshold`. An empty list of rates means that no score changes. Return
    /// `None` if [`Objective::evaluate`] is as fast. This function is faster if there are many pairs per row, because
    /// it does not sum over the pairs of each row.
    fn along(
        &self,
        _at: &Place<'_>,
        _rates: &dyn Fn() -> Vec<f64>,
        _by_threshold: &mut [f64],
    ) -> Result<Option<(f64, f64)>> {
        Ok(None)
    }
}

/// An objective with second derivatives. The point is always that of the last evaluation, and the memo is its result.
pub trait Curvature: Objective {
    /// The diagonal of a part's Hessian by the scores.
    fn diagonal(&self, at: &Place<'_>, memo: &Self::Memo, out: &mut [f64]) -> Result<()>;

    /// Whether adding a constant to the scores of all rows of a part (for each output) changes nothing.
    fn only_differences_count(&self) -> bool {
        false
    }

    /// Whether the terms of each row depend only on its own scores and the free scalars. With one score per row, the
    /// Hessian by the weights is then Σ_i h_i x_i x_iᵀ with h the diagonal.
    fn rows_are_separate(&self) -> bool {
        false
    }

    /// For separate rows with one score each and one free scalar: writes the second derivative of a part by each score
    /// and the scalar to `out`, and returns the one by the scalar alone. The default uses the derivatives by the score,
    /// which is right if the scalar is added to the score.
    fn by_threshold(&self, at: &Place<'_>, memo: &Self::Memo, out: &mut [f64]) -> Result<f64> {
        self.diagonal(at, memo, out)?;
        Ok(out.iter().sum())
    }

    /// Whether rows are separate with one score each, and every free scalar is a cut, subtracted from the score in
    /// terms of its own. [`Curvature::each_cut`] then lists the second derivatives of each row.
    fn has_cuts(&self) -> bool {
        false
    }

    /// Visits the cuts of row `number` of a part with the second derivative by the difference of score and cut, where
    /// that is not zero.
    fn each_cut(&self, _at: &Place<'_>, _memo: &Self::Memo, _number: usize, _visit: &mut dyn FnMut(usize, f64)) {}

    /// Whether rows are separate and [`Curvature::block`] lists the second derivatives of each row. There is then no
    /// free scalar, or one for each score of a row, which is added to it.
    fn has_blocks(&self) -> bool {
        false
    }

    /// Visits the second derivatives of row `number` of a part by two of its scores, `visit(a, b, value)` with a ≥ b.
    /// Pairs that are not visited have second derivative zero.
    fn block(&self, _at: &Place<'_>, _memo: &Self::Memo, _number: usize, _visit: &mut dyn FnMut(usize, usize, f64)) {}

    /// The Hessian of a part times directions: the change of the slopes along each of them. `out` holds one number per
    /// direction for each score and each free scalar. Writes the numbers of the scores and adds those of the free
    /// scalars.
    fn curvature(&self, at: &Place<'_>, memo: &Self::Memo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()>;
}

/// A task with hinge loss that Newton's method can solve once the kink is smoothed, see [`crate::solve::RoundedHinge`].
///
/// Over a width δ, `h(v) = (max(0, v)² − max(0, v − δ)²) / 2δ` replaces the hinge of a violation v. Its derivative
/// times the cost c of a constraint is a dual point: α = c · h'(v) lies between 0 and c.
pub trait Roundable: Curvature + Sized {
    /// The same task with the kink smoothed over a width. The loss must be the hinge.
    fn rounded(&self, width: f64) -> Self;

    /// The largest margin of a constraint with a positive cost. Widths are relative to it.
    fn margin_scale(&self) -> f64 {
        1.0
    }

    /// For a part of a smoothed task, at the point of the last evaluation: the value of the original hinge; by how much
    /// the dual value of the hinge exceeds that of the smoothed hinge at the same dual point, Σ δ·α²/(2·cost) over the
    /// constraints; and the rounding error of the two, which is 16 units in the last place of their sum unless larger
    /// numbers cancelled.
    fn rounding(&self, part: usize, memo: &Self::Memo) -> [f64; 3];
}

/// The result of [`Roundable::rounding`], from the sums of the first two terms.
fn rounding_terms([hinge, excess]: [f64; 2]) -> [f64; 3] {
    // Sums of nonnegative terms lose only a few units in the last place.
    [hinge, excess, 16.0 * f64::EPSILON * (hinge + excess)]
}

/// For settings that are written only if they differ from the default.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
