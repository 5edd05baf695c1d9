//! [`Model`]: the trained model. It can score new rows, and it holds the proof of how good it is.

mod answers;
mod code;
mod columns;
mod compact;
mod cost;
mod persist;
mod probabilities;
mod support;

pub use crate::certificate::{
    Bin, Calibration, Coupling, Map, Probability, Scored, Sigmoid, Steps, coupled_pairs, reliability_curve,
};
pub use crate::certificate::{
    Certificate, CodeDecoder, Compared, Decoder, Decoding, Expansion, Grammar, Mapped, Predictions, Scorer, Symbol,
    Unary,
};
pub use answers::Answers;
pub use code::CodeError;
pub use compact::{Compacted, Compaction};

use crate::certificate::{Ready, Witness};
use crate::data::{Dataset, Names, PairCounts, Scale, Scaling, Shape};
use crate::error::{Code, Error, Result};
use crate::kernel::{CustomKernel, Kernel, KernelKind};
use crate::online::{Learned, OnlineState, Progress, Progressive};
use crate::run::Cancel;
use crate::settings::{Method, Settings, Solver};
use crate::solve::plan;
use crate::structured::sequences_of;
use crate::wording::counted;
use std::sync::OnceLock;

/// A trained model. It is cheap to share between threads and has no lifetime parameter.
#[derive(Clone, Debug)]
pub struct Model {
    /// What the user set.
    pub settings: Settings,
    /// How rows are scored.
    pub scorer: Scorer,
    /// How scores become predictions.
    pub decoder: Decoder,
    /// How features are scaled before scoring.
    pub scaling: Scaling,
    /// The names of the features.
    pub feature_names: Option<Names>,
    /// How close to the optimum it is.
    pub certificate: Certificate,
    /// The proof of the lower bound, if the weights alone do not prove it and the proof was stored.
    pub witness: Option<Witness>,
    /// How the training data were read, as a text in the reader's own format.
    pub reading: Option<String>,
    /// The version of the program that trained it.
    pub version: String,
    /// The original model, if this one was compacted.
    pub compacted: Option<Compacted>,
    /// How scores become probabilities, if that was fitted.
    pub calibration: Option<Calibration>,
    /// The state needed to continue training, if it was trained on a stream.
    pub online: Option<OnlineState>,
}

impl Model {
    /// Number of features.
    pub fn features(&self) -> usize {
        self.scorer.features()
    }

    /// What a stream left in the model, if it has weights of features.
    pub(crate) fn learned(&self) -> Option<Learned<'_>> {
        let Scorer::Linear { weights, intercepts, .. } = &self.scorer else { return None };
        let Certificate { pairs, rows, .. } = self.certificate;
        Some(Learned { weights, intercepts, decoder: &self.decoder, pairs, rows })
    }

    /// How well the examples of a stream were predicted before they were learned from, if it was trained on a stream.
    pub fn progress(&self) -> Option<Progress> {
        crate::online::progress(&self.settings, self.online.as_ref()?, &self.learned()?)
    }

    /// The same in detail for a stream of comparisons.
    pub fn compared(&self) -> Option<Progressive> {
        let counts = self.online.as_ref().filter(|_| self.settings.comparison().is_some())?.counts("counts")?;
        Progressive::from_numbers(counts)
    }

    /// The weights of the unscaled features, for export, or an error that says why there are none.
    pub fn plain_linear(&self) -> Result<PlainLinear> {
        let none = |why: String, help: &str| Err(Error::new(Code::Unsupported, why).help(help));
        let Scorer::Linear { weights, outputs: 1, intercepts } = &self.scorer else {
            return none(
                "a kernel model, or a model with several scores per row, does not have one weight per feature"
                    .to_string(),
                "train a linear model, without ⟦kernel⟧",
            );
        };
        if self.settings.kernel.kind == KernelKind::Precomputed {
            return none("weights of kernel values are not weights of features".to_string(), "train without ⟦kernel⟧");
        }
        let kind = self.scaling.kind();
        if matches!(kind, Scale::UnitRows | Scale::MinMaxPerQuery) {
            return none(
                format!("`{}` scales every row differently, so no fixed weights give the same scores", kind.name()),
                "train with another ⟦scale⟧, or scale the rows beforehand",
            );
        }
        let factor = |column: usize| self.scaling.factor().map_or(1.0, |factor| factor[column]);
        let weights: Vec<f64> = weights.iter().enumerate().map(|(column, weight)| weight * factor(column)).collect();
        let shift = self.scaling.shift();
        let offset = shift.map(|shift| -shift.iter().zip(&weights).map(|(shift, weight)| shift * weight).sum::<f64>());
        let intercept = match (intercepts.first(), offset) {
            (None, None) => None,
            (intercept, offset) => Some(intercept.copied().unwrap_or(0.0) + offset.unwrap_or(0.0)),
        };
        Ok(PlainLinear { weights, intercept })
    }

    /// The name of a feature. Without names it is the number of the feature, counted from `base`.
    pub fn feature_name(&self, feature: usize, base: usize) -> String {
        match &self.feature_names {
            Some(names) => names.get(feature).into_owned(),
            None => (feature + base).to_string(),
        }
    }

    /// The free scalars of the solved problem: constant terms, a threshold learned together with the scores, or the
    /// free scalars of a user's own task.
    pub(crate) fn free_scalars(&self) -> Vec<f64> {
        match (&self.decoder, self.settings.method()) {
            (_, Some(Method::Compare)) => self.stated_free(),
            (_, Some(_)) => Vec::new(),
            (
                Decoder::Score { free }
                | Decoder::Cuts { cuts: free, .. }
                | Decoder::Sequence { shared: free, .. }
                | Decoder::Tree { shared: free, .. },
                _,
            ) if !free.is_empty() => free.clone(),
            (Decoder::Compare { .. } | Decoder::Likelihood { .. }, None) => self.stated_free(),
            _ => self.scorer.intercepts(),
        }
    }

    /// The free scalars that the decoder holds.
    pub(crate) fn stated_free(&self) -> Vec<f64> {
        match &self.decoder {
            Decoder::Score { free }
            | Decoder::Cuts { cuts: free, .. }
            | Decoder::Sequence { shared: free, .. }
            | Decoder::Tree { shared: free, .. } => free.clone(),
            decoder => decoder.threshold().into_iter().collect(),
        }
    }

    /// Whether the weights alone prove the bound, as they do for Newton's method. Another solver may have proved a
    /// better bound than the weights alone can.
    pub fn proved_by_weights(&self) -> bool {
        let solver = self.certificate.solver.or_else(|| {
            // Files without this field come from a version that did not choose by rows and density.
            let rows = self.certificate.rows as usize;
            let compared = self.certificate.pairs.map(|pairs| PairCounts { rows, pairs: pairs as usize });
            let shape = Shape { features: self.features(), compared, ..Shape::default() };
            plan(self.settings.abilities(compared.is_some()), &self.settings, shape).ok()
        });
        self.settings.loss.is_smooth() && solver == Some(Solver::Newton)
    }

    /// Adds the function of a custom kernel, which files do not store.
    pub fn with_kernel(mut self, kernel: CustomKernel) -> Result<Model> {
        let own = match &mut self.scorer {
            Scorer::Expansion(Expansion { kernel: Kernel::Custom(own), .. }) if own.name() == kernel.name() => own,
            _ => {
                return Err(Error::new(
                    Code::BadSetting,
                    format!("the model has no user-defined kernel called `{}`", kernel.name()),
                )
                .help("give the kernel that it was trained with"));
            }
        };
        *own = kernel.clone();
        self.settings.kernel.custom = Some(kernel);
        Ok(self)
    }

    /// Predictions for the rows of a data set, in stored order, or for its pairs if the model compares.
    pub fn predict(&self, data: &Dataset) -> Result<Predictions> {
        self.predict_until(data, &Cancel::new())
    }

    /// The same, or an error after a cancel.
    pub fn predict_until(&self, data: &Dataset, cancel: &Cancel) -> Result<Predictions> {
        if self.decoder.takes_groups() {
            sequences_of(data)?;
        }
        let scores = self.scores_until(data, cancel)?;
        Ok(self.decoder.predictions(scores, self.scorer.outputs(), data.pairs(), data.groups()))
    }

    /// Scores of all rows in stored order.
    pub fn scores(&self, data: &Dataset) -> Result<Vec<f64>> {
        self.scores_until(data, &Cancel::new())
    }

    /// The same, or an error after a cancel.
    pub fn scores_until(&self, data: &Dataset, cancel: &Cancel) -> Result<Vec<f64>> {
        BlockScorer::new(self).scores_until(data, cancel)
    }
}

/// The error for a row whose score overflows.
fn unbounded(data: &Dataset, row: usize) -> Error {
    let message = format!("the score of {} is not a finite number: its features are too large", data.row_name(row));
    Error::new(Code::Overflow, message).help("scale the features of all rows down, and train again")
}

/// A linear function of the unscaled features.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainLinear {
    /// One weight per feature.
    pub weights: Vec<f64>,
    /// The constant term, if there is one.
    pub intercept: Option<f64>,
}

/// Scores one block of rows after the other, from any thread. What it needs from the weights is prepared once.
#[derive(Debug)]
pub struct BlockScorer<'m> {
    model: &'m Model,
    ready: OnceLock<Ready>,
}

impl<'m> BlockScorer<'m> {
    /// A scorer for a model.
    pub fn new(model: &'m Model) -> BlockScorer<'m> {
        if let Scorer::Mapped(mapped) = &model.scorer {
            // Prepared once here instead of by every thread. An error here shows up again when rows are scored.
            let _ = mapped.map.make_ready(&Cancel::new());
        }
        BlockScorer { model, ready: OnceLock::new() }
    }

    /// Scores of the rows of a block in stored order.
    pub fn scores(&self, data: &Dataset) -> Result<Vec<f64>> {
        self.scores_until(data, &Cancel::new())
    }

    fn scores_until(&self, data: &Dataset, cancel: &Cancel) -> Result<Vec<f64>> {
        let model = self.model;
        if data.cols() > model.features() {
            return Err(Error::new(
                Code::TooManyFeatures,
                format!(
                    "the data have {}, but the model knows only {}",
                    counted(data.cols() as u64, "feature", "features"),
                    model.features()
                ),
            )
            .help("give data prepared like the training data; `maxmargin inspect MODEL` describes the model"));
        }
        let design = model.scaling.apply(data.matrix(), data.groups())?;
        if self.ready.get().is_none() {
            let ready = model.scorer.ready(&design)?;
            // Another thread may have stored the same value first.
            let _ = self.ready.set(ready);
        }
        let scores = match self.ready.get() {
            Some(ready) => model.scorer.scores(&design, ready, cancel)?,
            None => Vec::new(),
        };
        match scores.iter().position(|score| !score.is_finite()) {
            None => Ok(scores),
            Some(at) => Err(unbounded(data, at / model.scorer.outputs().max(1))),
        }
    }
}
