//! Passive-aggressive learning of two classes, one row or one mini-batch at a time.
//!
//! **One row** (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer, Online passive-aggressive algorithms, JMLR 2006).
//! **A batch** of n rows makes the smallest change of the weights that is right about all of them, as far as C allows:
//!
//! ```text
//! min  ½‖w − w_t‖² + Σ_i C_i·ξ_i     s.t.  ξ_i ≥ 1 − y_i w·x_i,  ξ_i ≥ 0          C_i = C · weight of row i
//! max  −½‖Σ_i α_i y_i x_i‖² + Σ_i α_i (1 − y_i w_t·x_i)     s.t.  0 ≤ α_i ≤ C_i,     w = w_t + Σ_i α_i y_i x_i
//! ```
//! This is PA-I. PA has no slack: α has no upper limit, and rows that contradict each other are left alone and counted.
//! PA-II pays C_i·ξ_i²: no limit either, and 1/(2C_i) is added to the diagonal of the Gram matrix.
//!
//! | rule | the step |
//! |---|---|
//! | `pa` | each row alone: α = min(C, ℓ/‖x‖²), ℓ = max(0, 1 − y w·x) |
//! | `pa-dca` | the maximum of the dual: in closed form for two rows, by coordinate steps for more |
//! | `pa-sequential` | one such step for each row in turn, with its loss at the weights as they are then |
//! | `pa-auc` | a joint step for a positive and a negative row; larger batches pair by pair |
//! | `pa-max-violators` | a joint step for the positive and the negative row with the largest loss |
//! | `pa-correct-mistakes` | a joint step for all rows with ℓ_i > 0 |
//! | `pa-single-slack` | one slack: the *average* margin of the batch, w·x̄ with x̄ = Σ ω_i y_i x_i, is to be 1 |
//!
//! A joint step over a set J adds the same δ to each α_j: with x^J = Σ_J y_j x_j and the weights w(α) of the moment,
//!
//! ```text
//! δ = clip((|J| − w(α)·x^J) / ‖x^J‖², L, U)      L = max_J(−α_j) ≤ 0 ≤ U = min_J(C_j − α_j)
//! ```
//! From α = 0, L = 0. PA-II adds Σ_J 1/(2C_j) to the denominator. A joint step over all n rows with C is the step of the
//! single slack with n·C.
//!
//! The family is that of "Paired passive aggressive for ranking and classification", an unfinished manuscript. What it
//! states holds with these corrections, each of which a test pins:
//!
//! - Its dual has the wrong sign: it maximises *minus* half the square.
//! - Its δ is taken at w_t. Only the first step is: later ones need w(α) = w_t + Σ α_i y_i x_i.
//! - Its primal omits ξ ≥ 0, without which rows beyond the margin would pay for others.
//! - Its set of mistakes, {0 ≤ ℓ_i}, is everybody: it is {ℓ_i > 0}.
//! - L ≤ 0 ≤ U always holds, in contrast to what it says. But L = U = 0 is possible when a set holds one α at 0 that
//!   should fall, or one at C that should rise. Blocks of one *fixed* partition, each stepped together, avoid this, since
//!   all α of a block stay equal; a different partition at each iteration does not.
//! - Theorems 3 and 6, that rows are classified correctly after an uncapped step, hold for `pa-dca`, and for the last row
//!   of `pa-sequential`. A joint step over two rows only gives w·x⁺ − w·x⁻ = 2: with orthonormal x⁺, x⁻ and
//!   w·x⁺ = w·x⁻ = −3, the scores are then −2 and −4, and x⁺ is still wrong. The single slack gives w·x̄ = 1.
//! - After a capped step, the loss of the joint vector has fallen; that of a single member may have risen.
//! - Theorem 5 counts mistakes at w_t. Each batch with a mistake raises the dual by at least ½ min(C, 1/R²), but with n
//!   of them: two equal vectors y x make two mistakes and one step. So the bound of `pa-dca` has nR² where that of `pa`
//!   and `pa-sequential` (which counts each row at the weights as they are then) has R². `pa-auc` and the single slack
//!   bound pairs in the wrong order and no single mistakes: w·x⁺ = −3, w·x⁻ = −5 needs no step.
//! - The last theorem has a factor 1/(|X⁺||X⁻|), which is right if every pair comes once. For T pairs it is 1/T, before
//!   both the norm and the losses.
//!
//! `bounds.rs` has the bounds that are shown while learning.
//!
//! An intercept is the weight of a constant feature of 1, penalised like the others. Cost: O(entries of the batch) for a
//! step, n times that for `pa-dca` with n > 2. Nothing is allocated, nothing is random, and it makes one pass.

mod bounds;
mod box_quadratic;
mod cuts;
mod rule;
mod several_classes;
mod step;
mod store;
#[cfg(test)]
mod theorems;

pub(crate) use cuts::cut_step;
pub(crate) use rule::{PairedRule, Ways};
pub(crate) use several_classes::class_step;

/// How a mini-batch changes the weights. See the top of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Every row alone.
    Single,
    /// The optimum for the batch.
    Dca,
    /// Row by row.
    Sequential,
    /// Pair by pair.
    Auc,
    /// The worst of each class together.
    MaxViolators,
    /// All rows with a loss together.
    CorrectMistakes,
    /// The average margin.
    SingleSlack,
}

impl Rule {
    #[cfg(test)]
    pub(crate) const ALL: [Rule; 7] = [
        Rule::Single,
        Rule::Dca,
        Rule::Sequential,
        Rule::Auc,
        Rule::MaxViolators,
        Rule::CorrectMistakes,
        Rule::SingleSlack,
    ];
}
