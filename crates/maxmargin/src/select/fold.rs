//! One fold: a part to train on over the shared features, and a part to judge on.

use super::warm_start::carried;
use crate::data::{Dataset, Dense, Design, Matrix, Pairs, Scaling, Shape, Subset, complement};
use crate::error::{Code, Error, Result};
use crate::metric::Metric;
use crate::model::{Answers, Decoder};
use crate::run::{Cancel, Silent};
use crate::settings::{Settings, Solver};
use crate::solve::{Machine, Run, Start, Stop, Witness, plan, relative_gap};
use crate::train::{Posed, Poses, constant_terms, decoder_by_scores, lacks_threshold};
use std::sync::Arc;

/// The rows, or the pairs, of a fold.
pub(super) struct Fold {
    /// The number of the fold, from 1.
    number: usize,
    /// How many rows or pairs are held out.
    pub(super) size: usize,
    /// The rows to judge on, ascending.
    pub(super) judged: Vec<usize>,
    /// Their targets, groups and weights; or all rows, with the pairs held out.
    pub(super) truth: Dataset,
    /// What to train on.
    pub(super) learned: Learned,
}

pub(super) enum Learned {
    /// Some of the rows.
    Rows(Subset),
    /// Some of the pairs, by their numbers, over all rows.
    Pairs(Vec<usize>, Box<Dataset>),
}

impl Fold {
    /// The folds that hold out the listed rows, or pairs if the data are pairs, each list in turn.
    pub(super) fn all(data: &Dataset, held_out: Vec<Vec<usize>>) -> Result<Vec<Fold>> {
        let no_features = Matrix::DenseF32(Dense::new(Vec::<f32>::new(), data.rows(), 0)?);
        let bare = data.clone().with_matrix(no_features)?;
        let fold = |(at, held_out): (usize, Vec<usize>)| {
            let (number, size) = (at + 1, held_out.len());
            let Some(pairs) = data.pairs() else {
                let (truth, subset) = (bare.subset(&held_out)?, Subset::without(&held_out, data.rows()));
                return Ok(Fold { number, size, judged: held_out, truth, learned: Learned::Rows(subset) });
            };
            let truth = bare.clone().with_pairs(pairs.select(&held_out))?;
            let kept = complement(&held_out, pairs.len());
            let learned = Box::new(data.clone().with_pairs(pairs.select(&kept))?);
            let judged = (0..data.rows()).collect();
            Ok(Fold { number, size, judged, truth, learned: Learned::Pairs(kept, learned) })
        };
        held_out.into_iter().enumerate().map(fold).collect()
    }

    /// A solution of the fold as a point of the problem over all rows or pairs: what was held out has dual variables of
    /// zero.
    pub(super) fn spread(&self, start: &Start) -> Start {
        let mut start = start.clone();
        if let (Learned::Pairs(_, learned), Some(held_out)) = (&self.learned, self.truth.pairs())
            && held_out.ties() + learned.pairs().map_or(0, Pairs::ties) > 0
        {
            // Second constraints of ties come after those of the pairs, so their positions differ.
            start.dual = None;
        }
        if let Learned::Pairs(kept, _) = &self.learned {
            // Equal pairs were merged, and which ones is not known here.
            start.dual = start.dual.filter(|dual| dual.len() == kept.len());
        }
        if let (Learned::Pairs(kept, _), Some(dual)) = (&self.learned, &mut start.dual) {
            let mut all = vec![0.0; kept.len() + self.size];
            kept.iter().zip(&*dual).for_each(|(&pair, &alpha)| all[pair] = alpha);
            *dual = all;
        }
        start
    }

    /// The problem of learning from what the fold does not hold out.
    pub(super) fn posed(&self, poses: &dyn Poses, data: &Dataset, settings: &Settings) -> Result<Posed> {
        match &self.learned {
            Learned::Rows(subset) => Posed::on(poses, data, settings, Some(subset)),
            Learned::Pairs(_, learned) => Posed::new(poses, learned, settings),
        }
    }

    /// The shape of the training data of the fold.
    fn learned_shape(&self, data: &Dataset) -> Shape {
        match &self.learned {
            // Their density is assumed to be that of all rows.
            Learned::Rows(subset) => Shape { rows: subset.len(), ..data.shape() },
            Learned::Pairs(_, learned) => learned.shape(),
        }
    }

    /// The decoder with a threshold for the scores of all rows, if it is chosen after training: on the training pairs.
    pub(super) fn decoder(&self, settings: &Settings, decoder: Decoder, scores: &[f64]) -> Decoder {
        match &self.learned {
            Learned::Pairs(_, learned) => match learned.pairs() {
                Some(pairs) => decoder_by_scores(settings, decoder, scores, pairs),
                None => decoder,
            },
            Learned::Rows(_) => decoder,
        }
    }

    /// Before training, refuses metrics that cannot be computed on the held-out rows.
    pub(super) fn check(&self, decoder: &Decoder, settings: &Settings, metrics: &[Metric]) -> Result<()> {
        let scores = vec![0.0; self.judged.len() * decoder.outputs()];
        let answers = Answers::of_scores(scores, decoder, &self.truth)?.trained_with(settings);
        metrics.iter().try_for_each(|metric| answers.evaluate(metric).map(drop)).map_err(|error| self.named(error))
    }

    /// The error with the number of the fold.
    pub(super) fn named(&self, error: Error) -> Error {
        if error.code() == Code::Interrupted {
            return error;
        }
        let named = Error::new(error.code(), format!("fold {}: {}", self.number, error.raw_message()));
        match (error.code(), error.raw_remedy()) {
            (Code::SingleClass | Code::NoPairs, _) => named.help("ask for fewer folds, or try another ⟦seed⟧"),
            (_, Some(help)) => named.help(help),
            (_, None) => named,
        }
    }
}

/// A fold along a path, for weights or with a kernel.
pub(super) struct FoldTrainer<'a> {
    pub(super) fold: &'a Fold,
    pub(super) solver: Solver,
    data: Dataset,
    design: Arc<Design>,
    pub(super) posed: Posed,
    /// The last solution.
    pub(super) start: Option<Start>,
}

/// The result of one setting on one fold.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// The value of each metric on the held-out rows.
    pub(super) values: Vec<f64>,
    /// The objective over the training rows.
    pub(super) objective: f64,
    /// The lower bound of that objective.
    pub(super) lower_bound: Option<f64>,
    pub(super) passes: u64,
    pub(super) converged: bool,
    pub(super) without_threshold: bool,
}

impl Fit {
    /// The relative gap.
    pub(super) fn gap(&self) -> Option<f64> {
        self.lower_bound.map(|bound| relative_gap(self.objective, bound))
    }
}

impl<'a> FoldTrainer<'a> {
    /// Prepares the fold: solver, scaling, classes and weights are those of the training rows. `shared` is the view of
    /// the features, if it is the same for all folds.
    pub(super) fn new(
        fold: &'a Fold,
        poses: &dyn Poses,
        data: &Dataset,
        settings: &Settings,
        shared: Option<&Arc<Design>>,
        cancel: &Cancel,
    ) -> Result<FoldTrainer<'a>> {
        let make = || {
            let (learned, subset) = match &fold.learned {
                Learned::Rows(subset) => (data.clone(), Some(subset)),
                // With a kernel all pairs stay, so that all folds share their kernel values.
                Learned::Pairs(kept, _) if settings.expands() => (counting(data, kept)?, None),
                Learned::Pairs(_, learned) => (Dataset::clone(learned), None),
            };
            let posed = Posed::on(poses, &learned, settings, subset)?;
            let design = match shared {
                Some(design) => Arc::clone(design),
                None => {
                    let scaling = Scaling::fit_on(settings.scale, data, subset, cancel)?;
                    Arc::new(scaling.apply(data.matrix(), data.groups())?)
                }
            };
            let solver = plan(posed.problem.abilities(), settings, fold.learned_shape(data))?;
            Ok(FoldTrainer { fold, solver, data: learned, design, posed, start: None })
        };
        make().map_err(|error| fold.named(error))
    }

    /// Kernel values of its rows.
    pub(super) fn machine(&self, settings: &Settings, bytes: u64, cancel: &Cancel) -> Result<Machine> {
        self.posed.problem.machine(&self.design, settings, bytes, cancel).map_err(|error| self.fold.named(error))
    }

    /// The last solution as a point of the problem over all rows or pairs.
    pub(super) fn spread_start(&self) -> Option<Start> {
        self.start.as_ref().map(|start| self.fold.spread(start))
    }

    /// Trains with the next setting of the path, and judges it. Uses kernel values if there are any.
    pub(super) fn fit(
        &mut self,
        settings: &Settings,
        metrics: &[Metric],
        machine: Option<&mut Machine>,
        cancel: &Cancel,
    ) -> Result<Fit> {
        self.try_fit(settings, metrics, machine, cancel).map_err(|error| self.fold.named(error))
    }

    fn try_fit(
        &mut self,
        settings: &Settings,
        metrics: &[Metric],
        mut machine: Option<&mut Machine>,
        cancel: &Cancel,
    ) -> Result<Fit> {
        let before = self.posed.c;
        self.posed.set_regularisation(settings.regularisation);
        let posed = &self.posed;
        posed.check_range()?;
        // Coefficients of rows, which are not dual variables, do not grow with C.
        let abilities = posed.problem.abilities();
        let dual = machine.is_none() || abilities.listed || abilities.several;
        let ratio = if dual { posed.c / before } else { 1.0 };
        let start = self.start.take().map(|start| carried(start, ratio));
        let mut run = Run {
            data: &self.data,
            design: &self.design,
            settings,
            solver: self.solver,
            start: start.as_ref(),
            for_model: false,
            polishes: false,
            machine: machine.as_deref_mut(),
            referee: None,
            observer: &mut Silent,
            cancel,
        };
        let solution = posed.problem.solve(&mut run)?;
        // A cancelled fit is incomplete and must not be judged.
        cancel.check()?;
        let mut scores = match &machine {
            Some(machine) => posed.problem.kernel_scores(machine, &solution, cancel),
            None => self.design.scores_of(&self.fold.judged, &solution.weights, posed.problem.shape().outputs),
        };
        cancel.check()?;
        let decoder = self.fold.decoder(settings, posed.task().decoder(&solution.thresholds), &scores);
        if machine.is_some() {
            let outputs = posed.problem.shape().outputs;
            let of = |row: usize| scores[row * outputs..(row + 1) * outputs].iter().copied();
            scores = self.fold.judged.iter().flat_map(|&row| of(row)).collect();
        } else {
            let constants = constant_terms(posed, &solution.thresholds);
            for scores in scores.chunks_exact_mut(constants.len().max(1)) {
                scores.iter_mut().zip(&constants).for_each(|(score, constant)| *score += constant);
            }
        }
        let answers = Answers::of_scores(scores, &decoder, &self.fold.truth)?.trained_with(settings);
        let values = metrics.iter().map(|metric| Ok(answers.evaluate(metric)?.value)).collect::<Result<_>>()?;
        let fit = Fit {
            values,
            objective: solution.objective,
            lower_bound: solution.lower_bound,
            passes: solution.passes,
            converged: solution.stop == Stop::Converged,
            without_threshold: lacks_threshold(settings, &decoder, &solution.weights)
                || posed.learned_nothing(settings, solution.objective, solution.lower_bound),
        };
        self.start = Some(match machine {
            Some(_) => match solution.witness {
                Witness::Outputs(dual) => Start { outputs: Some(dual), ..Start::default() },
                _ => Start { dual: Some(solution.weights), ..Start::default() },
            },
            None => solution.into_start(),
        });
        Ok(fit)
    }
}

/// The same data with all pairs; pairs that are not kept have weight zero.
fn counting(data: &Dataset, kept: &[usize]) -> Result<Dataset> {
    let Some(pairs) = data.pairs() else { return Ok(data.clone()) };
    let mut weights = vec![0.0; pairs.len()];
    kept.iter().for_each(|&pair| weights[pair] = pairs.weight(pair));
    data.clone().with_pairs(pairs.clone().with_weights(weights)?)
}
