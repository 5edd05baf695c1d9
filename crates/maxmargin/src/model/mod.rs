//! [`Model`]: what was learned, enough to score new rows, and what proves how good it is.

mod answers;
mod compact;
mod persist;

pub use crate::certificate::{Certificate, Compared, Decoder, Expansion, Mapped, Predictions, Scorer};
pub use answers::Answers;
pub use compact::{Compacted, Compaction};

use crate::certificate::{Ready, Witness};
use crate::data::{Dataset, Names, PairCounts, Scale, Scaling, Shape};
use crate::error::{Code, Error, Result};
use crate::kernel::{CustomKernel, Kernel, KernelKind};
use crate::online::OnlineState;
use crate::run::Cancel;
use crate::settings::{Method, Settings, Solver};
use crate::solve::plan;
use crate::wording::counted;
use std::sync::OnceLock;

/// A trained model. Cheap to share between threads, without a lifetime.
#[derive(Clone, Debug)]
pub struct Model {
    /// What the user set.
    pub settings: Settings,
    /// How rows are scored.
    pub scorer: Scorer,
    /// How scores become answers.
    pub decoder: Decoder,
    /// How features are scaled before.
    pub scaling: Scaling,
    /// What the features are called.
    pub feature_names: Option<Names>,
    /// How close to optimal it is.
    pub certificate: Certificate,
    /// What proves the lower bound, where the weights do not suffice and it was kept.
    pub witness: Option<Witness>,
    /// How the training data were read, as the reader's own settings text.
    pub reading: Option<String>,
    /// The version of the program that trained it.
    pub version: String,
    /// What it was made from, where it was compacted.
    pub compacted: Option<Compacted>,
    /// What it takes to go on learning, where it was learned from a stream.
    pub online: Option<OnlineState>,
}

impl Model {
    /// Number of features.
    pub fn features(&self) -> usize {
        self.scorer.features()
    }

    /// The weights of the features as they stand in files, scaling folded in, or why there are none: what exports read.
    pub fn plain_linear(&self) -> Result<PlainLinear> {
        let none = |why: String, help: &str| Err(Error::new(Code::Unsupported, why).help(help));
        let Scorer::Linear { weights, outputs: 1, intercepts } = &self.scorer else {
            return none(
                "a kernel model, or one of several scores a row, has no single weight a feature".to_string(),
                "train a linear model, without [[kernel]]",
            );
        };
        if self.settings.kernel.kind == KernelKind::Precomputed {
            return none("weights of kernel values are no weights of features".to_string(), "train without [[kernel]]");
        }
        let kind = self.scaling.kind();
        if matches!(kind, Scale::UnitRows | Scale::MinMaxPerQuery) {
            return none(
                format!("`{}` scales every row by other numbers, which no weights stand for", kind.name()),
                "train with another [[scale]], or scale the rows before",
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

    /// The name of a feature, or its number counted from `base` where features have no names.
    pub fn feature_name(&self, feature: usize, base: usize) -> String {
        match &self.feature_names {
            Some(names) => names.get(feature).into_owned(),
            None => (feature + base).to_string(),
        }
    }

    /// The free scalars of the problem that the model solves: constant terms, or a threshold that was learned together with
    /// the scores, or what a task of the user's own has.
    pub(crate) fn free_scalars(&self) -> Vec<f64> {
        match (&self.decoder, self.settings.method()) {
            (_, Some(Method::Compare)) => self.stated_free(),
            (_, Some(_)) => Vec::new(),
            (Decoder::Score { free }, _) if !free.is_empty() => free.clone(),
            _ => self.scorer.intercepts(),
        }
    }

    /// The free scalars that the decoder holds.
    pub(crate) fn stated_free(&self) -> Vec<f64> {
        match &self.decoder {
            Decoder::Score { free } => free.clone(),
            decoder => decoder.threshold().into_iter().collect(),
        }
    }

    /// Whether the weights alone prove the bound, as those of Newton's method do. A model that came by another way may
    /// claim more than its weights prove.
    pub fn proved_by_weights(&self) -> bool {
        let solver = self.certificate.solver.or_else(|| {
            // Files that do not say it come of a choice that knew nothing of rows and density.
            let rows = self.certificate.rows as usize;
            let compared = self.certificate.pairs.map(|pairs| PairCounts { rows, pairs: pairs as usize });
            let shape = Shape { features: self.features(), compared, ..Shape::default() };
            plan(self.settings.abilities(compared.is_some()), &self.settings, shape).ok()
        });
        self.settings.loss.is_smooth() && solver == Some(Solver::Newton)
    }

    /// The same model with the function of its kernel, which files do not keep.
    pub fn with_kernel(mut self, kernel: CustomKernel) -> Result<Model> {
        let own = match &mut self.scorer {
            Scorer::Expansion(Expansion { kernel: Kernel::Custom(own), .. }) if own.name() == kernel.name() => own,
            _ => {
                return Err(Error::new(
                    Code::BadSetting,
                    format!("the model has no kernel of the user's own called `{}`", kernel.name()),
                )
                .help("give the kernel by which it was trained"));
            }
        };
        *own = kernel.clone();
        self.settings.kernel.custom = Some(kernel);
        Ok(self)
    }

    /// What the model says about the rows of a data set, in stored order, or about its pairs where the model compares.
    pub fn predict(&self, data: &Dataset) -> Result<Predictions> {
        self.predict_until(data, &Cancel::new())
    }

    /// The same, or an error once somebody asks for an end.
    pub fn predict_until(&self, data: &Dataset, cancel: &Cancel) -> Result<Predictions> {
        Ok(self.decoder.predictions(self.scores_until(data, cancel)?, self.scorer.outputs(), data.pairs()))
    }

    /// Scores of all rows in stored order.
    pub fn scores(&self, data: &Dataset) -> Result<Vec<f64>> {
        self.scores_until(data, &Cancel::new())
    }

    /// The same, or an error once somebody asks for an end.
    pub fn scores_until(&self, data: &Dataset, cancel: &Cancel) -> Result<Vec<f64>> {
        BlockScorer::new(self).scores_until(data, cancel)
    }
}

/// A linear function of features as they stand in files.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainLinear {
    /// One weight a feature.
    pub weights: Vec<f64>,
    /// What is added, where anything is.
    pub intercept: Option<f64>,
}

/// A model that scores one block of rows after the other, from any thread: what it needs of the weights is made once.
#[derive(Debug)]
pub struct BlockScorer<'m> {
    model: &'m Model,
    ready: OnceLock<Ready>,
}

impl<'m> BlockScorer<'m> {
    /// A scorer for a model.
    pub fn new(model: &'m Model) -> BlockScorer<'m> {
        if let Scorer::Mapped(mapped) = &model.scorer {
            // Once here instead of by every thread that has a block; what goes wrong is said where rows are scored.
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
                    "the data have {}, and the model knows {}",
                    counted(data.cols() as u64, "feature", "features"),
                    model.features()
                ),
            )
            .help("score data made like the training data; `maxmargin inspect MODEL` shows what the model knows"));
        }
        let design = model.scaling.apply(data.matrix(), data.groups())?;
        if self.ready.get().is_none() {
            let ready = model.scorer.ready(&design)?;
            // Another thread may have been quicker, with the same.
            let _ = self.ready.set(ready);
        }
        self.ready.get().map_or_else(|| Ok(Vec::new()), |ready| model.scorer.scores(&design, ready, cancel))
    }
}
