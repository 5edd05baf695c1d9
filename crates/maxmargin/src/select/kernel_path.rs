//! A path with a kernel: the folds run one after the other, over kernel rows that all of them share.
//!
//! If scaling is the same for all folds, a kernel row is computed once for all folds and all values of C: rows and
//! pairs held out have cost zero, and stay in place. Their scores come with the solution. Every fit starts at the dual
//! point of the fit before, scaled with C; rankings of groups start at its coefficients. A setting that is clearly
//! worse is dropped after half of the folds or more, see [`Race`].

use super::choice::Race;
use super::fold::{Fit, Fold, FoldTrainer};
use super::warm_start::pooled;
use crate::data::{Dataset, Design};
use crate::error::Result;
use crate::metric::Metric;
use crate::run::Cancel;
use crate::settings::Settings;
use crate::solve::{Machine, Start, usual_cache};
use crate::train::Poses;
use std::sync::Arc;

pub(super) struct KernelPath<'a> {
    learners: Vec<FoldTrainer<'a>>,
    /// One for all folds, or one per fold.
    machines: Vec<Machine>,
}

impl<'a> KernelPath<'a> {
    /// Prepares the path: `shared` is the view of the features, if it is the same for all folds.
    pub(super) fn new(
        folds: &'a [Fold],
        poses: &dyn Poses,
        data: &Dataset,
        settings: &Settings,
        shared: Option<&Arc<Design>>,
        cancel: &Cancel,
    ) -> Result<KernelPath<'a>> {
        let mut path = KernelPath { learners: Vec::new(), machines: Vec::new() };
        let bytes = usual_cache(settings) / if shared.is_some() { 1 } else { folds.len() as u64 };
        for fold in folds {
            let learner = FoldTrainer::new(fold, poses, data, settings, shared, cancel)?;
            if shared.is_none() || path.machines.is_empty() {
                path.machines.push(learner.machine(settings, bytes, cancel)?);
            }
            path.learners.push(learner);
        }
        Ok(path)
    }

    /// Trains with the next setting of the path and judges it, fold by fold, until it is clearly worse.
    pub(super) fn fit(
        &mut self,
        settings: &Settings,
        metrics: &[Metric],
        race: &Race<'_>,
        cancel: &Cancel,
    ) -> Result<Vec<Fit>> {
        let mut fits: Vec<Fit> = Vec::new();
        let count = self.learners.len();
        for at in 0..count {
            let machine = if self.machines.len() == count { at } else { 0 };
            let machine = Some(&mut self.machines[machine]);
            fits.push(self.learners[at].fit(settings, metrics, machine, cancel)?);
            let values: Vec<f64> = fits.iter().map(|fit| fit.values[0]).collect();
            if at + 1 < count && race.is_hopeless(&values) {
                break;
            }
        }
        Ok(fits)
    }

    /// The last solutions as a point of the problem over all rows or pairs. Coefficients of rows give no such point.
    pub(super) fn start(&self) -> Start {
        let dual = |learner: &FoldTrainer<'_>| {
            let abilities = learner.posed.problem.abilities();
            let start = learner.start.as_ref().filter(|_| abilities.listed || abilities.several);
            start.and_then(|start| start.dual.clone())
        };
        let starts: Vec<Start> =
            self.learners.iter().map(|learner| Start { dual: dual(learner), ..Start::default() }).collect();
        pooled(starts.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compared, data, metrics};
    use super::super::{CrossValidation, Grid};
    use super::*;
    use crate::data::{Scale, complement, folds};
    use crate::kernel::{KernelKind, KernelSettings};
    use crate::loss::Loss;
    use crate::model::Answers;
    use crate::run::Silent;
    use crate::settings::{ClassifySettings, Regularisation, Task};
    use crate::task::ClassWeight;
    use crate::train::train;

    fn gaussian(gamma: f64) -> KernelSettings {
        KernelSettings { kind: KernelKind::Gaussian, gamma: Some(gamma), ..KernelSettings::default() }
    }

    #[test]
    fn folds_over_shared_kernel_rows_equal_separate_data_sets() {
        let pairs = compared(true);
        for (data, settings) in [
            (data(Task::Classify, true, true), Settings::new(Task::Classify)),
            (data(Task::Classify, false, false), Settings { scale: Scale::Standard, ..Settings::new(Task::Classify) }),
            (data(Task::Rank, true, false), Settings::new(Task::Rank)),
            (
                // Every fold has different costs.
                data(Task::Classify, true, false),
                Settings::of(ClassifySettings { class_weight: ClassWeight::Balanced, ..Default::default() }),
            ),
            (pairs.clone(), Settings { loss: Loss::Hinge, ..Settings::new(Task::Rank) }),
        ] {
            let settings = Settings { tolerance: 1e-8, max_passes: 100_000, kernel: gaussian(0.3), ..settings };
            let metrics = match data.pairs() {
                Some(_) => vec![Metric::PairAccuracy],
                None => metrics(settings.task.task()),
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
            // The model of all rows starts from the folds, and reaches the same optimum as any other.
            let cold = train(&data, &path[1], None, &mut Silent, &Cancel::new()).expect("trains").model.certificate;
            let warm = tuned.refit(1, &data, None, &mut Silent, &Cancel::new()).expect("trains").model;
            assert!(warm.certificate.converged && warm.verify(&data).is_ok(), "{settings:?}");
            assert!((warm.certificate.objective - cold.objective).abs() < 1e-6 * cold.objective, "{settings:?}");
        }
    }

    #[test]
    fn clearly_worse_settings_are_dropped_and_cannot_win() {
        let data = data(Task::Classify, true, false);
        let widths: Grid = "0.02,1e4,1e5".parse().expect("a grid");
        let base = Settings {
            kernel: gaussian(1.0),
            regularisation: Regularisation::C(10.0),
            ..Settings::new(Task::Classify)
        };
        // The good width comes first: the others are compared with it.
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
