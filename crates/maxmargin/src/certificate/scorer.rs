//! [`Scorer`]: from features to scores.

use crate::data::{Design, Folded, Matrix, Scale, Scaling};
use crate::error::Result;
use crate::kernel::{FeatureMap, FoldedMap, Kernel, Points, Terms};
use crate::run::Cancel;
use std::sync::Arc;

/// How a row is scored.
#[derive(Clone, Debug)]
pub enum Scorer {
    /// w · x + b, with one or several scores per row.
    Linear {
        /// One weight per scaled feature and score. The weights of one feature are stored next to each other.
        weights: Vec<f64>,
        /// Number of scores per row.
        outputs: usize,
        /// The constant term of each score; empty if there are none.
        intercepts: Vec<f64>,
    },
    /// Σ_i coefficient_i · k(vector_i, x) + b, with one or several coefficients per vector
    Expansion(Expansion),
    /// w · φ(x) + b
    Mapped(Mapped),
}

/// Weights of mapped features.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// φ, of scaled rows.
    pub map: Arc<FeatureMap>,
    /// One weight per mapped feature and score. The weights of one feature are stored next to each other.
    pub weights: Vec<f64>,
    /// Number of scores per row.
    pub outputs: usize,
    /// The constant term of each score; empty if there are none.
    pub intercepts: Vec<f64>,
}

/// A sum of kernels around stored rows.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// The kernel.
    pub kernel: Kernel,
    /// The support vectors, scaled as in training.
    pub vectors: Matrix,
    /// One coefficient per vector and score. The coefficients of one vector are stored next to each other.
    pub coefficients: Vec<f64>,
    /// Number of scores per row.
    pub outputs: usize,
    /// The constant term of each score; empty if there are none.
    pub intercepts: Vec<f64>,
}

/// What a scorer prepares once and uses for many blocks of rows.
#[derive(Debug)]
pub(crate) enum Ready {
    Linear(Folded),
    Expansion(Points),
    Mapped(FoldedMap),
}

impl Scorer {
    /// A linear scorer with one score per row.
    pub fn linear(weights: Vec<f64>, intercept: Option<f64>) -> Scorer {
        Scorer::Linear { weights, outputs: 1, intercepts: intercept.into_iter().collect() }
    }

    /// Number of scores per row.
    pub fn outputs(&self) -> usize {
        match self {
            Scorer::Linear { outputs, .. } => *outputs,
            Scorer::Expansion(expansion) => expansion.outputs,
            Scorer::Mapped(mapped) => mapped.outputs,
        }
    }

    /// The constant terms: one per score, or none.
    pub fn intercepts(&self) -> Vec<f64> {
        self.constants().to_vec()
    }

    fn constants(&self) -> &[f64] {
        match self {
            Scorer::Linear { intercepts, .. } => intercepts,
            Scorer::Expansion(expansion) => &expansion.intercepts,
            Scorer::Mapped(mapped) => &mapped.intercepts,
        }
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        match self {
            Scorer::Linear { weights, outputs, .. } => weights.len() / outputs.max(&1),
            Scorer::Expansion(expansion) => expansion.vectors.cols(),
            Scorer::Mapped(mapped) => mapped.map.cols(),
        }
    }

    /// The constant term, if rows have one score.
    pub fn intercept(&self) -> Option<f64> {
        let intercepts = self.constants();
        intercepts.first().copied().filter(|_| intercepts.len() == 1)
    }

    /// What was learned besides the constant term: the weights, or the coefficients of the support
    /// vectors.
    pub(crate) fn numbers(&self) -> &[f64] {
        match self {
            Scorer::Linear { weights, .. } => weights,
            Scorer::Expansion(expansion) => &expansion.coefficients,
            Scorer::Mapped(mapped) => &mapped.weights,
        }
    }

    /// The weights of the features, if the model has them.
    pub fn weights(&self) -> Option<&[f64]> {
        match self {
            Scorer::Linear { weights, .. } => Some(weights),
            Scorer::Expansion(_) | Scorer::Mapped(_) => None,
        }
    }

    /// Prepares what [`Scorer::scores`] needs, for rows scaled as in this design.
    pub(crate) fn ready(&self, design: &Design) -> Result<Ready> {
        match self {
            Scorer::Linear { weights, outputs, .. } => Ok(Ready::Linear(design.fold_outputs(weights, *outputs))),
            Scorer::Expansion(expansion) => Ok(Ready::Expansion(expansion.points()?)),
            Scorer::Mapped(mapped) => Ok(Ready::Mapped(mapped.map.fold(&mapped.weights, mapped.outputs)?)),
        }
    }

    /// Scores of all rows. The scores of one row are next to each other.
    pub(crate) fn scores(&self, design: &Design, ready: &Ready, cancel: &Cancel) -> Result<Vec<f64>> {
        let mut scores = match (self, ready) {
            (Scorer::Mapped(Mapped { map, weights, outputs, .. }), Ready::Mapped(folded)) => {
                map.scores(weights, *outputs, folded, design, cancel)?
            }
            (Scorer::Expansion(expansion), Ready::Expansion(points)) => expansion.scores(points, design, cancel),
            (_, Ready::Linear(folded)) => design.folded_scores_until(folded, cancel)?,
            (_, Ready::Expansion(_) | Ready::Mapped(_)) => Vec::new(),
        };
        match self.constants() {
            [] => {}
            [intercept] => scores.iter_mut().for_each(|score| *score += intercept),
            intercepts => scores.chunks_exact_mut(intercepts.len()).for_each(|scores| {
                scores.iter_mut().zip(intercepts).for_each(|(score, intercept)| *score += intercept);
            }),
        }
        cancel.check()?;
        Ok(scores)
    }
}

impl Expansion {
    /// The vectors, prepared for computing kernel values with other rows.
    pub(crate) fn points(&self) -> Result<Points> {
        self.kernel.check_known()?;
        Ok(Points::new(&self.design()?, &self.kernel))
    }

    /// The same in f64, for any number of vectors.
    pub(crate) fn points_in_double(&self) -> Result<Points> {
        self.kernel.check_known()?;
        Ok(Points::in_double(&self.design()?, &self.kernel))
    }

    /// The same in the precision of the training rows, so that a recomputed bound has the same digits as the stated
    /// one.
    pub(crate) fn points_like(&self, rows: &Points, cancel: &Cancel) -> Result<Points> {
        Ok(rows.like(&self.design()?, cancel))
    }

    /// Number of vectors.
    pub fn count(&self) -> usize {
        self.vectors.rows()
    }

    /// Scores of rows without the constant terms, and ‖Σ_i coefficient_i φ(vector_i)‖², both in the precision of these
    /// rows.
    pub(crate) fn against(&self, rows: &Points, cancel: &Cancel) -> Result<(Vec<f64>, f64)> {
        let points = self.points_like(rows, cancel)?;
        let scores = self.sums(&points, rows, cancel);
        Ok((scores, self.squared_norm(&points, cancel)))
    }

    /// A design without scaling, because the vectors are already scaled.
    fn design(&self) -> Result<Design> {
        Scaling::from_parts(Scale::None, None, None, self.vectors.cols())?.apply(&self.vectors, None)
    }

    /// Scores without the constant terms. The scores of one row are next to each other.
    pub(crate) fn scores(&self, points: &Points, design: &Design, cancel: &Cancel) -> Vec<f64> {
        self.sums(points, &points.like(design, cancel), cancel)
    }

    /// Scores of the vectors themselves, without the constant terms.
    pub(crate) fn scores_on_itself(&self, points: &Points, cancel: &Cancel) -> Vec<f64> {
        self.sums(points, points, cancel)
    }

    fn sums(&self, points: &Points, rows: &Points, cancel: &Cancel) -> Vec<f64> {
        let all: Vec<usize> = (0..points.rows()).collect();
        let terms = Terms { ids: &all, coefficients: &self.coefficients, outputs: self.outputs };
        terms.scores(&self.kernel, points, rows, cancel)
    }

    /// ‖Σ_i coefficient_i φ(vector_i)‖², added up over all scores.
    pub(crate) fn squared_norm(&self, points: &Points, cancel: &Cancel) -> f64 {
        let scores = self.scores_on_itself(points, cancel);
        scores.iter().zip(&self.coefficients).map(|(score, coefficient)| score * coefficient).sum()
    }
}
