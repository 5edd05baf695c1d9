//! A user's own task with only the public interface: support vector regression. docs/own-task.md shows this file.

use crate::made::Numbers;
use maxmargin::data::{Dataset, Dense, Matrix, Subset, Targets};
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Decoder, Model};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::CrossValidation;
use maxmargin::settings::{OwnSettings, Regularisation, Settings};
use maxmargin::solve::{ByDual, Problem};
use maxmargin::task::{Constraint, Independent, Intercept, LearningTask};
use maxmargin::train::{Poses, train_own};

// -- the task: at most 60 lines --
/// Scores shall be within `width` of the targets: score ≥ target − width, and −score ≥ −target − width.
struct Regression {
    targets: Vec<f64>,
    weights: Vec<f64>,
    width: f64,
    c: f64,
}

impl Independent for Regression {
    fn blocks(&self) -> usize {
        2 * self.targets.len()
    }

    fn loss(&self) -> Loss {
        Loss::Hinge
    }

    fn constraint(&self, block: usize) -> Constraint {
        let (row, sign) = (block / 2, if block.is_multiple_of(2) { 1.0 } else { -1.0 });
        let margin = sign * self.targets[row] - self.width;
        Constraint { row, against: None, coefficient: sign, threshold: sign, margin, cost: self.c * self.weights[row] }
    }
}

impl LearningTask for Regression {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        self.c * self.weights.iter().sum::<f64>()
    }

    fn constraints(&self) -> u64 {
        2 * self.weights.iter().filter(|weight| **weight > 0.0).count() as u64
    }

    fn decoder(&self, _: &[f64]) -> Decoder {
        Decoder::Score { free: Vec::new() }
    }

    fn adds_free(&self) -> bool {
        true
    }
}

/// How data become the task; rows that are left out weigh nothing.
struct WithinWidth(f64);

impl Poses for WithinWidth {
    fn pose(&self, data: &Dataset, _: &Settings, subset: Option<&Subset>) -> maxmargin::Result<Box<dyn Problem>> {
        let counts = |row: usize| subset.is_none_or(|subset| subset.contains(row));
        let weights = (0..data.rows()).map(|row| f64::from(u8::from(counts(row)))).collect();
        let task = Regression { targets: data.targets().real()?.to_vec(), weights, width: self.0, c: 1.0 };
        Ok(Box::new(ByDual::new(task, Intercept::Free)))
    }
}
// -- the end of the task --

/// A linear function of three features with a little noise.
fn line(rows: usize) -> Dataset {
    let mut numbers = Numbers::new(5);
    let values: Vec<f64> = (0..3 * rows).map(|_| 2.0 * numbers.next() - 1.0).collect();
    let target = |x: &[f64]| 1.5 * x[0] - 0.5 * x[1] + 0.25;
    let targets: Vec<f64> = values.chunks(3).map(|x| target(x) + 0.02 * (numbers.next() - 0.5)).collect();
    let matrix = Matrix::DenseF64(Dense::new(values, rows, 3).expect("whole rows"));
    Dataset::new(matrix, Targets::Real(targets.into())).expect("valid")
}

#[test]
fn a_task_of_the_users_own_trains_verifies_saves_and_tunes() {
    let (data, cancel) = (line(200), Cancel::new());
    let own = Settings::of(OwnSettings::named("regression"));
    let settings = Settings { regularisation: Regularisation::C(10.0), tolerance: 1e-3, ..own };
    let task = WithinWidth(0.05);
    let trained = train_own(&task, &data, &settings, &mut Silent, &cancel).expect("trains");
    let certificate = &trained.model.certificate;
    assert!(certificate.converged && certificate.gap().is_some_and(|gap| gap <= 1e-3), "{certificate:?}");
    assert_eq!(certificate.constraints, 400);
    let weights = trained.model.scorer.weights().expect("linear");
    assert!((weights[0] - 1.5).abs() < 0.1 && (weights[1] + 0.5).abs() < 0.1, "{weights:?}");

    // Saved, loaded, verified: the file does not contain the code of the task.
    let loaded = Model::from_bytes(&trained.model.to_bytes().expect("bytes")).expect("loads");
    assert_eq!(loaded.settings.task.name(), "own");
    assert_eq!(loaded.scores(&data).expect("scores"), trained.model.scores(&data).expect("scores"));
    let found = loaded.verify_own(&task, &data, &cancel).expect("the certificate holds");
    assert_eq!(found.objective, certificate.objective);
    assert!(loaded.verify(&data).is_err(), "nobody but the user knows the task");

    // The same with a kernel.
    let kernel = Settings {
        kernel: maxmargin::kernel::KernelSettings {
            kind: maxmargin::kernel::KernelKind::Gaussian,
            gamma: Some(0.5),
            ..Default::default()
        },
        ..settings.clone()
    };
    let through_kernel = kernel.clone();
    let kernel = train_own(&task, &data, &kernel, &mut Silent, &cancel).expect("trains");
    assert!(kernel.model.certificate.converged);
    kernel.model.verify_own(&task, &data, &cancel).expect("the certificate holds");

    // Tuning: with too small a C, the model cannot follow the targets.
    let at = |c: f64| Settings { regularisation: Regularisation::C(c), ..settings.clone() };
    let validation = CrossValidation { folds: 4, seed: 1, metrics: vec![Metric::Mae] };
    // A fold through a kernel is judged with the constant term.
    let tuned = validation.run_own(&task, &data, &[through_kernel], &mut Silent, &cancel).expect("tunes");
    assert!(tuned.rows[0].metrics[0].mean < 0.1, "{}", tuned.rows[0].metrics[0].mean);
    let tuned = validation.run_own(&task, &data, &[at(1e-4), at(10.0)], &mut Silent, &cancel).expect("tunes");
    assert_eq!(tuned.best, 1);
}

#[test]
fn the_guide_shows_this_task_and_it_is_short() {
    let (here, guide) = (include_str!("own_task.rs"), include_str!("../../../../docs/own-task.md"));
    for line in here.lines().filter(|line| line.starts_with("use maxmargin::")) {
        assert!(guide.contains(line), "the guide lacks `{line}`");
    }
    let (_, rest) = here.split_once("// -- the task: at most 60 lines --\n").expect("a beginning");
    let (task, _) = rest.split_once("// -- the end of the task --").expect("an end");
    assert!(task.lines().count() <= 60, "{} lines", task.lines().count());
    assert!(guide.contains(task.trim_end()), "docs/own-task.md does not show the task of this file");
}
