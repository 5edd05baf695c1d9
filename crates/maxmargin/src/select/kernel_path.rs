//! A path through a kernel: the folds one after the other, over kernel rows that all of them share.
//!
//! A kernel row is computed once for all folds and all values of C, where scaling is the same for all: rows and pairs held
//! out cost nothing, and stay where they are. Their scores come with the solution. Every fit starts at the dual point of the
//! one before it, in proportion to C; rankings of groups at its coefficients. A setting that has no hope is left after the
//! folds that showed it, see [`Race`].

use super::choice::Race;
use super::fold::{Fit, Fold, Learned};
use super::warm_start::pooled;
use crate::data::{Dataset, Design, Scaling};
use crate::error::Result;
use crate::metric::Metric;
use crate::model::Answers;
use crate::run::{Cancel, Silent};
use crate::settings::Settings;
use crate::solve::{Start, Stop};
use crate::train::{Machine, Problem, Tasks, lacks_threshold, usual_cache};
use std::sync::Arc;

pub(super) struct KernelPath<'a> {
    folds: Vec<KernelFold<'a>>,
    /// One for all folds, or one a fold.
    machines: Vec<Machine>,
}

struct KernelFold<'a> {
    fold: &'a Fold,
    problem: Problem,
    /// The last solution, and the C it is of.
    last: Option<(f64, Vec<f64>)>,
}

impl<'a> KernelPath<'a> {
    /// Gets ready: `shared` is the view of the features where it is the same for all folds.
    pub(super) fn new(
        folds: &'a [Fold],
        data: &Dataset,
        settings: &Settings,
        shared: Option<&Arc<Design>>,
        cancel: &Cancel,
    ) -> Result<KernelPath<'a>> {
        let mut path = KernelPath { folds: Vec::new(), machines: Vec::new() };
        let bytes = usual_cache(settings) / if shared.is_some() { 1 } else { folds.len() as u64 };
        for fold in folds {
            let mut make = || {
                let (problem, subset) = match &fold.learned {
                    Learned::Rows(subset) => (Problem::on(data, settings, Some(subset))?, Some(subset)),
                    Learned::Pairs(kept, _) => (Problem::new(&counting(data, kept)?, settings)?, None),
                };
                let machine = |design: &Design| Machine::new(&problem, design, settings, bytes, cancel);
                match shared {
                    Some(design) if path.machines.is_empty() => path.machines.push(machine(design)?),
                    Some(_) => {}
                    None => {
                        let scaling = Scaling::fit_on(settings.scale, data, subset, cancel)?;
                        path.machines.push(machine(&scaling.apply(data.matrix(), data.groups())?)?);
                    }
                }
                path.folds.push(KernelFold { fold, problem, last: None });
                Ok(())
            };
            make().map_err(|error| fold.named(error))?;
        }
        Ok(path)
    }

    /// Learns with the next setting of the path and judges it, fold by fold, until there is no hope.
    pub(super) fn fit(
        &mut self,
        settings: &Settings,
        metrics: &[Metric],
        race: &Race<'_>,
        cancel: &Cancel,
    ) -> Result<Vec<Fit>> {
        let mut fits: Vec<Fit> = Vec::new();
        let count = self.folds.len();
        for at in 0..count {
            let machine = if self.machines.len() == count { at } else { 0 };
            let fit = self.folds[at].fit(&mut self.machines[machine], settings, metrics, cancel);
            fits.push(fit.map_err(|error| self.folds[at].fold.named(error))?);
            let values: Vec<f64> = fits.iter().map(|fit| fit.values[0]).collect();
            if at + 1 < count && race.is_hopeless(&values) {
                break;
            }
        }
        Ok(fits)
    }

    /// The last solutions as a point of the problem over all rows or pairs.
    pub(super) fn start(&self) -> Start {
        let dual = |fold: &KernelFold<'_>| match fold.problem.task {
            Tasks::Ranking(_) => None,
            _ => fold.last.as_ref().map(|(_, numbers)| numbers.clone()),
        };
        let starts: Vec<Start> = self.folds.iter().map(|fold| Start { dual: dual(fold), ..Start::default() }).collect();
        pooled(starts.iter())
    }
}

impl KernelFold<'_> {
    fn fit(&mut self, machine: &mut Machine, settings: &Settings, metrics: &[Metric], cancel: &Cancel) -> Result<Fit> {
        self.problem.set_regularisation(settings.regularisation);
        let problem = &self.problem;
        problem.check_range()?;
        let ranked = matches!(problem.task, Tasks::Ranking(_));
        let start = self.last.take().map(|(c, mut numbers)| {
            let ratio = if ranked { 1.0 } else { problem.c / c };
            numbers.iter_mut().for_each(|number| *number *= ratio);
            numbers
        });
        let fitted = machine.fit(problem, settings, start.as_deref(), &mut Silent, cancel)?;
        // A fit cut short would be judged as if it were whole.
        cancel.check()?;
        let scores = machine.scores(problem, &fitted, settings, cancel);
        cancel.check()?;
        let decoder = self.fold.decoder(settings, problem.decoder(fitted.threshold), &scores);
        let judged = self.fold.judged.iter().map(|&row| scores[row]).collect();
        let answers = Answers::of_scores(judged, &decoder, &self.fold.truth)?;
        let values = metrics.iter().map(|metric| Ok(answers.evaluate(metric)?.value)).collect::<Result<_>>()?;
        let fit = Fit {
            values,
            objective: fitted.objective,
            lower_bound: Some(fitted.lower_bound),
            passes: fitted.passes,
            converged: fitted.stop == Stop::Converged,
            without_threshold: lacks_threshold(settings, &decoder, &fitted.numbers)
                || problem.learned_nothing(settings, fitted.objective, Some(fitted.lower_bound)),
        };
        self.last = Some((problem.c, fitted.numbers));
        Ok(fit)
    }
}

/// The same data with all pairs, of which those that are not kept weigh nothing.
fn counting(data: &Dataset, kept: &[usize]) -> Result<Dataset> {
    let Some(pairs) = data.pairs() else { return Ok(data.clone()) };
    let mut weights = vec![0.0; pairs.len()];
    kept.iter().for_each(|&pair| weights[pair] = pairs.weight(pair));
    data.clone().with_pairs(pairs.clone().with_weights(weights)?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compared, data, metrics};
    use super::super::{CrossValidation, Grid};
    use super::*;
    use crate::data::{Scale, complement, folds};
    use crate::kernel::{KernelKind, KernelSettings};
    use crate::loss::Loss;
    use crate::settings::{Regularisation, Task};
    use crate::task::ClassWeight;
    use crate::train::train;

    fn gaussian(gamma: f64) -> KernelSettings {
        KernelSettings { kind: KernelKind::Gaussian, gamma: Some(gamma), ..KernelSettings::default() }
    }

    #[test]
    fn folds_over_shared_kernel_rows_are_those_of_files_of_their_own() {
        let pairs = compared(true);
        for (data, settings) in [
            (data(Task::Classify, true, true), Settings::new(Task::Classify)),
            (data(Task::Classify, false, false), Settings { scale: Scale::Standard, ..Settings::new(Task::Classify) }),
            (data(Task::Rank, true, false), Settings::new(Task::Rank)),
            (
                // Every fold has costs of its own.
                data(Task::Classify, true, false),
                Settings { class_weight: ClassWeight::Balanced, ..Settings::new(Task::Classify) },
            ),
            (pairs.clone(), Settings { loss: Loss::Hinge, ..Settings::new(Task::Rank) }),
        ] {
            let settings = Settings { tolerance: 1e-8, max_passes: 100_000, kernel: gaussian(0.3), ..settings };
            let metrics = match data.pairs() {
                Some(_) => vec![Metric::PairAccuracy],
                None => metrics(settings.task),
            };
            let validation = CrossValidation { folds: 3, seed: 2, metrics: metrics.clone() };
            let path: Vec<Settings> = "0.3,3".parse::<Grid>().expect("a grid").candidates(&settings);
            let tuned = validation.run(&data, &path, &mut Silent, &Cancel::new()).expect("tunes");
            let held_out = folds(&data, 3, 2).expect("enough");
            for (settings, row) in path.iter().zip(&tuned.rows) {
                for (at, held_out) in held_out.iter().enumerate().take(row.metrics[0].folds.len()) {
                    let (learned, judged) = match data.pairs() {
                        Some(pairs) => {
                            let part = |listed: &[usize]| data.clone().with_pairs(pairs.select(listed)).expect("valid");
                            (part(&complement(held_out, pairs.len())), part(held_out))
                        }
                        None => {
                            let kept = complement(held_out, data.rows());
                            (data.subset(&kept).expect("valid"), data.subset(held_out).expect("valid"))
                        }
                    };
                    let model = train(&learned, settings, None, &mut Silent, &Cancel::new()).expect("trains").model;
                    let answers = Answers::new(&model, &judged).expect("scores");
                    for (metric, summary) in metrics.iter().zip(&row.metrics) {
                        let expected = answers.evaluate(metric).expect("a value").value;
                        assert!((summary.folds[at] - expected).abs() < 1e-9, "{settings:?} {metric}");
                    }
                }
            }
            // The model from all rows starts at the folds, and ends where any other does.
            let cold = train(&data, &path[1], None, &mut Silent, &Cancel::new()).expect("trains").model.certificate;
            let warm = tuned.refit(1, &data, None, &mut Silent, &Cancel::new()).expect("trains").model;
            assert!(warm.certificate.converged && warm.verify(&data).is_ok(), "{settings:?}");
            assert!((warm.certificate.objective - cold.objective).abs() < 1e-6 * cold.objective, "{settings:?}");
        }
    }

    #[test]
    fn settings_without_hope_are_left_and_cannot_win() {
        let data = data(Task::Classify, true, false);
        let widths: Grid = "0.02,1e4,1e5".parse().expect("a grid");
        let base = Settings {
            kernel: gaussian(1.0),
            regularisation: Regularisation::C(10.0),
            ..Settings::new(Task::Classify)
        };
        // The good width first: the others are measured by it.
        let candidates = widths.widths(&base);
        let validation = CrossValidation { folds: 3, seed: 0, metrics: vec![Metric::Auc] };
        let tuned = validation.run(&data, &candidates, &mut Silent, &Cancel::new()).expect("tunes");
        assert_eq!(tuned.best, 0);
        assert!(
            !tuned.was_left(0) && tuned.was_left(1) && tuned.was_left(2),
            "{:?}",
            tuned.rows.iter().map(|row| &row.metrics[0].folds).collect::<Vec<_>>()
        );
        assert_eq!(tuned.widths(), [0.02, 1e4, 1e5]);
    }
}
