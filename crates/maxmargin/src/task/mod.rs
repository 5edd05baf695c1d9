//! Tasks: what is to be learned, as margin constraints over scores.
//!
//! A task never sees features. It turns scores into constraints, a value and slopes; a solver turns those into weights.

mod barrier;
mod binary;
mod comparison;
mod one_class;
mod profile;
mod ranking;

pub use crate::data::Classes;
pub use crate::wish::Intercept;
pub(crate) use barrier::Barrier;
pub use binary::{Binary, ClassWeight, ClassifySettings};
pub(crate) use comparison::ByDifference;
pub use comparison::{CompareSettings, Comparison, Method, PairWeightAs, TiesAs};
pub use one_class::{OneClass, OneClassSettings};
pub use profile::{Abilities, Input, OwnSettings, Profile, Task, TaskSettings};
pub use ranking::{GradedComparison, PairWeight, RankSettings, Ranking};
pub(crate) use ranking::{Shares, TargetOrder};

use crate::certificate::Decoder;
use crate::error::Result;
use crate::loss::Loss;
use crate::run::Cancel;
use std::ops::Range;
use std::sync::Arc;

/// One margin constraint: `coefficient · (score(row) − score(against)) + threshold · b ≥ margin − slack`, where violating
/// it costs `cost · loss(slack)` and b is the task's free scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraint {
    /// The row whose score enters.
    pub row: usize,
    /// The row whose score it is measured against; most tasks have none.
    pub against: Option<usize>,
    /// What the score, or the difference of scores, is multiplied by.
    pub coefficient: f64,
    /// What the free scalar is multiplied by; 0 where the task has none.
    pub threshold: f64,
    /// What the sum must reach.
    pub margin: f64,
    /// The weight of the loss.
    pub cost: f64,
}

impl Constraint {
    /// By how much the margin is missed.
    #[inline(always)]
    pub fn violation(&self, scores: &[f64], threshold: f64) -> f64 {
        self.violation_by(|row| scores[row], threshold)
    }

    /// The same where scores are not held in a slice.
    #[inline(always)]
    pub(crate) fn violation_by(&self, score: impl Fn(usize) -> f64, threshold: f64) -> f64 {
        let score = score(self.row) - self.against.map_or(0.0, score);
        self.margin - self.coefficient * score - self.threshold * threshold
    }
}

/// What a task says of itself, whatever its form: how much it weighs, and what scores mean.
pub trait LearningTask: Send + Sync {
    /// Sets the weight C of the loss.
    fn set_cost(&mut self, c: f64);

    /// The total weight of the loss: C times what all constraints weigh.
    fn total_cost(&self) -> f64;

    /// How many margin constraints can cost anything.
    fn constraints(&self) -> u64;

    /// What a constraint is about, in words.
    fn unit(&self) -> &'static str {
        "row"
    }

    /// What scores mean, given the free scalars.
    fn decoder(&self, free: &[f64]) -> Decoder;

    /// Whether the free scalar is the constant term of all scores. Otherwise it is a threshold that scores are compared with.
    fn adds_free(&self) -> bool {
        false
    }

    /// A constant term of scores that is known beforehand.
    fn offset(&self) -> Option<f64> {
        None
    }

    /// Explicit pairs whose second constraint stands behind those of all pairs, where there are any.
    fn ties(&self) -> Option<u64> {
        None
    }

    /// What scores that are all the same cost, with the threshold that is best for them, where such scores are no answer.
    fn cost_of_equal_scores(&self) -> Option<f64> {
        None
    }

    /// Blocks whose kernel values are those of an earlier block: where they begin, and the earlier block of each.
    fn second_copies(&self) -> Option<(usize, Arc<[u32]>)> {
        None
    }
}

/// A task with one constraint a block, each known without scores: what dual coordinate descent needs.
pub trait Independent: Sync {
    /// How many blocks there are.
    fn blocks(&self) -> usize;
    /// The loss they share.
    fn loss(&self) -> Loss;
    /// The constraint of a block.
    fn constraint(&self, block: usize) -> Constraint;
    /// Whether each block is a matter of the row of its number and of no other.
    fn blocks_are_rows(&self) -> bool {
        false
    }
    /// The weight of −ln(1 − e^(−2b)) in the objective, b the free scalar: 0 but for ties with logistic loss, where it
    /// keeps b above zero.
    fn barrier(&self) -> f64 {
        0.0
    }
}

/// Where a part of a task is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The number of the part.
    pub part: usize,
    /// The scores of its rows in order, [`Objective::outputs`] numbers a row.
    pub scores: &'a [f64],
    /// The free scalars, one for each of [`Objective::thresholds`].
    pub thresholds: &'a [f64],
    /// The job's flag. Solvers poll it between parts; a task whose parts are long looks at [`Cancel::is_abandoned`] now and then,
    /// and may return anything once it is.
    pub cancel: &'a Cancel,
}

/// Derivatives of a part: by each score and by each free scalar.
#[derive(Debug)]
pub struct Slopes<'a> {
    /// In the order of [`Place::scores`]. A part overwrites them.
    pub scores: &'a mut [f64],
    /// In the order of [`Place::thresholds`]. A part adds to them, since all parts share them.
    pub thresholds: &'a mut [f64],
}

/// Directions that a Hessian is multiplied by, several at once.
#[derive(Clone, Copy, Debug)]
pub struct Directions<'a> {
    /// How many there are.
    pub count: usize,
    /// How each score changes along each of them: `count` numbers for each of [`Place::scores`].
    pub scores: &'a [f64],
    /// How each free scalar does: `count` numbers for each of [`Place::thresholds`].
    pub thresholds: &'a [f64],
}

/// A task as a sum over parts, each a function of the scores of some neighbouring rows: what batch solvers need.
///
/// A task of your own implements this trait, and [`Curvature`] where Newton's method should solve it;
/// [`crate::testing`] checks that its numbers agree. An error that a part returns ends the solver, which hands it on as it
/// is. Where several parts fail, it is the error of the first of them, whatever the number of threads.
pub trait Objective: Sync {
    /// What a part remembers between a value and the curvature at the same point (sort orders, windows), beside the scores.
    type Memo: Default + Send + Sync;

    /// How many parts there are.
    fn parts(&self) -> usize;

    /// The rows of a part.
    fn rows(&self, part: usize) -> Range<usize>;

    /// How many scores a row has: one linear function each, with weights of its own. The scores of a row stand side by side.
    fn outputs(&self) -> usize {
        1
    }

    /// How many free scalars (an intercept, cuts between grades) the task has beside the scores.
    fn thresholds(&self) -> usize;

    /// The value of a part. Writes its derivative by each score, and adds its derivative by each free scalar.
    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut Self::Memo) -> Result<f64>;

    /// The value of a part and its derivative where each score changes at a rate, for searches along lines; adds the derivative
    /// by each free scalar to `by_threshold`. No rates mean that no score changes. None where [`Objective::evaluate`] does as
    /// well: it is quicker where pairs are many for the rows, since no row need be told of its pairs.
    fn along(
        &self,
        _at: &Place<'_>,
        _rates: &dyn Fn() -> Vec<f64>,
        _by_threshold: &mut [f64],
    ) -> Result<Option<(f64, f64)>> {
        Ok(None)
    }
}

/// An objective with second derivatives. The place is always that of the last evaluation, and the memo what it left.
pub trait Curvature: Objective {
    /// The diagonal of a part's Hessian by the scores.
    fn diagonal(&self, at: &Place<'_>, memo: &Self::Memo, out: &mut [f64]) -> Result<()>;

    /// Whether adding a constant to the scores of all rows of a part changes nothing: of each output, where a row has several.
    fn only_differences_count(&self) -> bool {
        false
    }

    /// Whether each row is a matter of its own scores and the free scalars. With one score a row the Hessian by the weights
    /// is then Σ_i h_i x_i x_iᵀ with h the diagonal.
    fn rows_are_separate(&self) -> bool {
        false
    }

    /// Where rows are separate and have one score, and there is one free scalar: the second derivative of a part by each score
    /// and the scalar, written to `out`, and that by the scalar alone. By default both are those of the score, which is right
    /// where it enters plus the scalar.
    fn by_threshold(&self, at: &Place<'_>, memo: &Self::Memo, out: &mut [f64]) -> Result<f64> {
        self.diagonal(at, memo, out)?;
        Ok(out.iter().sum())
    }

    /// The Hessian of a part times directions: how the slopes change along each of them. `out` holds as many numbers a score
    /// and a free scalar as there are directions. Writes those of the scores and adds those of the free scalars.
    fn curvature(&self, at: &Place<'_>, memo: &Self::Memo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()>;
}

/// A task with hinge loss that Newton's method can take once its kink is rounded off, see [`crate::solve::RoundedHinge`].
///
/// Over a width δ, `h(v) = (max(0, v)² − max(0, v − δ)²) / 2δ` takes the place of the hinge of a violation v. Its derivative
/// times the cost c of a constraint is a point of the dual: α = c · h'(v) lies between 0 and c.
pub trait Roundable: Curvature + Sized {
    /// The same task, which must be one of hinge loss, with the kink rounded off over a width.
    fn rounded(&self, width: f64) -> Self;

    /// The largest margin of a constraint that counts: what widths are measured by.
    fn margin_scale(&self) -> f64 {
        1.0
    }

    /// Of a part of a rounded task, at the point of the last evaluation: the value of the hinge itself; by how much the
    /// dual value of the hinge exceeds that of the rounded hinge at the same dual point, Σ δ·α²/(2·cost) over the constraints;
    /// and what the two may be wrong by, which is 16 units in the last place of their sum where no larger numbers cancelled.
    fn rounding(&self, part: usize, memo: &Self::Memo) -> [f64; 3];
}

/// What [`Roundable::rounding`] answers, from the sums of the first two.
fn rounding_terms([hinge, excess]: [f64; 2]) -> [f64; 3] {
    // Sums of terms that are not negative: they lose a few units of their last place.
    [hinge, excess, 16.0 * f64::EPSILON * (hinge + excess)]
}

/// For settings that are written only where they were chosen.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
