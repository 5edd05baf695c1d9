//! What batch solvers report, and how they react to a cancel.

use crate::made::{fit, graded, two_classes};
use crate::pairs::compared;
use maxmargin::data::Dataset;
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::run::{Cancel, Event, Observer};
use maxmargin::settings::{Regularisation, Settings, Solver, Task};
use maxmargin::solve::{Stop, TracePoint, relative_gap};
use maxmargin::task::Intercept;
use maxmargin::train::train;
use std::ops::ControlFlow;

#[test]
fn every_pass_stands_once_in_the_history() {
    for (task, data) in every_task() {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            for solver in [Solver::Newton, Solver::CuttingPlane, Solver::InteriorPoint] {
                if solver == Solver::InteriorPoint && data.groups().is_some() {
                    continue;
                }
                // Newton's method is also run with a tolerance that cannot be reached.
                for tolerance in if solver == Solver::Newton { vec![1e-6, 1e-15] } else { vec![1e-6] } {
                    let settings = Settings { loss, solver, tolerance, max_passes: 300, ..Settings::new(task) };
                    let trained = fit(&data, &settings);
                    let passes: Vec<u64> = trained.trace.iter().map(|point| point.pass).collect();
                    let context = format!("{task:?}, {loss:?} by {solver:?} to {tolerance:e}: {passes:?}");
                    assert!(passes.windows(2).all(|pair| pair[0] < pair[1]), "{context}");
                    assert_eq!(passes.last(), Some(&trained.model.certificate.passes), "{context}");
                }
            }
        }
    }
}

/// Classes, queries and explicit pairs.
fn every_task() -> [(Task, Dataset); 3] {
    [
        (Task::Classify, two_classes(120, 4, true, 11)),
        (Task::Rank, graded(12, 9, 4, 3, 11)),
        (Task::Rank, compared(40, 4, 150, 11)),
    ]
}

/// Abandons a job after this many passes.
struct GivingUp<'a> {
    left: u32,
    cancel: &'a Cancel,
}

impl Observer for GivingUp<'_> {
    fn report(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.cancel.abandon(),
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn what_is_given_up_ends_in_an_error_whenever_that_was() {
    let gaussian = KernelSettings { kind: KernelKind::Gaussian, ..KernelSettings::default() };
    let mut given_up = 0;
    for (task, data) in every_task() {
        for kernel in [KernelSettings::default(), gaussian.clone()] {
            for loss in [Loss::Hinge, Loss::SquaredHinge] {
                for left in 0..8 {
                    // A large cost gives coefficients whose values are recomputed.
                    let regularisation = Regularisation::C(1e4);
                    let settings = Settings { loss, kernel: kernel.clone(), regularisation, ..Settings::new(task) };
                    let cancel = Cancel::new();
                    let trained = train(&data, &settings, None, &mut GivingUp { left, cancel: &cancel }, &cancel);
                    if cancel.is_raised() {
                        let error = trained.err().map(|error| error.code());
                        assert_eq!(error, Some(Code::Interrupted), "{settings:?} after {left}");
                        given_up += 1;
                    }
                }
            }
        }
    }
    assert!(given_up > 50, "{given_up}");
}

#[test]
fn the_gap_of_a_rounded_hinge_is_seen_to_fall() {
    for (task, data) in every_task() {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            if task == Task::Rank && intercept != Intercept::None {
                continue;
            }
            let settings = Settings {
                loss: Loss::Hinge,
                solver: Solver::Newton,
                tolerance: 1e-6,
                ..Settings::new(task).with_free(intercept)
            };
            let trained = fit(&data, &settings);
            let optimum = trained.model.certificate.objective;
            let gap = |at: &TracePoint| relative_gap(at.objective, at.lower_bound.unwrap());
            let gaps: Vec<f64> = trained.trace.iter().map(gap).collect();
            let (_, before) = gaps.split_last().unwrap();
            assert!(before.iter().any(|&gap| gap < 0.5) && before.iter().any(|&gap| gap < 0.05), "{task:?}: {gaps:?}");
            for at in &trained.trace {
                assert!(at.lower_bound.unwrap() <= optimum * (1.0 + 1e-9), "{task:?}, {intercept:?}: {at:?}");
            }
        }
    }
}

/// Cancels the job when this many passes are reported, from outside, as a user would.
struct EndAt(u64, Cancel);

impl Observer for EndAt {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if matches!(event, Event::Pass { pass, .. } if *pass >= self.0) {
            self.1.raise();
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn whoever_asks_for_an_end_is_told_so_at_every_width() {
    for (task, data) in every_task() {
        // No such gap can be proven, so the last width is reached.
        let settings = Settings { loss: Loss::Hinge, solver: Solver::Newton, tolerance: 1e-16, ..Settings::new(task) };
        let whole = fit(&data, &settings);
        assert_eq!(whole.stop, Stop::Stalled, "{task:?}");
        for pass in 0..=whole.model.certificate.passes {
            let cancel = Cancel::new();
            let trained = train(&data, &settings, None, &mut EndAt(pass, cancel.clone()), &cancel).unwrap();
            assert_eq!(trained.stop, Stop::Cancelled, "{task:?} at pass {pass}");
            assert_eq!(trained.model.certificate.passes, pass, "{task:?}");
            trained.model.verify(&data).expect("verifies");
        }
    }
}

#[test]
fn an_interior_point_that_is_told_to_end_states_what_it_has() {
    for (task, data) in every_task().into_iter().filter(|(_, data)| data.groups().is_none()) {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let settings = Settings { loss, solver: Solver::InteriorPoint, tolerance: 1e-6, ..Settings::new(task) };
            let whole = fit(&data, &settings);
            assert_eq!(whole.stop, Stop::Converged, "{task:?}, {loss:?}");
            for pass in 0..=whole.model.certificate.passes {
                let cancel = Cancel::new();
                let trained = train(&data, &settings, None, &mut EndAt(pass, cancel.clone()), &cancel).unwrap();
                let ended = if pass == whole.model.certificate.passes { Stop::Converged } else { Stop::Cancelled };
                assert_eq!((trained.stop, trained.model.certificate.passes), (ended, pass), "{task:?}, {loss:?}");
                trained.model.verify(&data).expect("verifies");
            }
        }
    }
}
