//! Every task with every loss, solver and intercept: it trains to the result it states, or is refused before any work.

use crate::made::{graded, two_classes};
use crate::pairs::compared;
use maxmargin::data::Shape;
use maxmargin::error::Code;
use maxmargin::loss::Loss;
use maxmargin::run::{Cancel, Event, Observer};
use maxmargin::settings::{Regularisation, Settings, Solver, Task};
use maxmargin::solve::Stop;
use maxmargin::task::Intercept;
use maxmargin::train::{choose_solver, train};
use std::ops::ControlFlow;

/// Counts the events it receives.
struct Counting(usize);

impl Observer for Counting {
    fn report(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

#[test]
fn every_combination_trains_to_what_it_states_or_is_refused_before_any_work() {
    let sets = [
        (Task::Classify, two_classes(60, 5, true, 3)),
        (Task::Rank, graded(6, 8, 5, 3, 3)),
        (Task::Rank, compared(20, 5, 60, 3)),
    ];
    let (mut trained_count, mut refused_count) = (0, 0);
    for (task, data) in &sets {
        let paired = data.pairs().is_some();
        for loss in Loss::ALL {
            for solver in Solver::ALL {
                // A ranker has no intercept, because only differences of scores count.
                let intercepts = if *task == Task::Classify { &Intercept::ALL[..] } else { &[Intercept::None] };
                for &intercept in intercepts {
                    let settings = Settings {
                        loss,
                        regularisation: Regularisation::C(0.1),
                        ..Settings::new(*task).with_solver(solver).with_free(intercept)
                    };
                    let context = format!("{task:?}, pairs: {paired}, {loss:?}, {solver:?}, {intercept:?}");
                    let mut seen = Counting(0);
                    let outcome = train(data, &settings, None, &mut seen, &Cancel::new());
                    let chosen = settings.validate().and_then(|()| choose_solver(&settings, data.shape()));
                    let chosen = match chosen {
                        Ok(chosen) => chosen,
                        Err(refusal) => {
                            let error = outcome.expect_err(&context);
                            assert_eq!(error.to_string(), refusal.to_string(), "{context}");
                            assert!(matches!(error.code(), Code::BadSetting | Code::Unsupported), "{context}: {error}");
                            assert!(error.remedy().is_some(), "{context}");
                            assert_eq!(seen.0, 0, "{context}: work before a refusal");
                            refused_count += 1;
                            continue;
                        }
                    };
                    assert!(chosen != Solver::Auto && (solver == Solver::Auto || chosen == solver), "{context}");
                    trained_count += 1;
                    let trained = match outcome {
                        Err(error) if chosen.is_hard_margin() => {
                            assert!(matches!(error.code(), Code::NotSeparable | Code::Undecided), "{context}: {error}");
                            continue;
                        }
                        outcome => outcome.unwrap_or_else(|error| panic!("{context}: {error}")),
                    };
                    assert_eq!(trained.solver, chosen, "{context}");
                    let certificate = &trained.model.certificate;
                    if chosen.is_stochastic() {
                        assert!(matches!(trained.stop, Stop::Finished | Stop::NoGain), "{context}: {:?}", trained.stop);
                        assert_eq!((certificate.lower_bound, certificate.converged), (None, false), "{context}");
                    } else if chosen == Solver::Lasvm && trained.stop == Stop::PassLimit {
                        // One pass may not be enough to converge, but the gap is known.
                        assert!(certificate.gap().is_some_and(|gap| gap < 0.2), "{context}: {certificate:?}");
                    } else {
                        assert!(certificate.converged && trained.stop == Stop::Converged, "{context}: {certificate:?}");
                        assert!(certificate.gap().unwrap() <= settings.tolerance, "{context}: {certificate:?}");
                    }
                    trained.model.verify(data).unwrap_or_else(|error| panic!("{context}: {error}"));
                }
            }
        }
    }
    // Classifiers accept everything; explicit pairs accept the same without intercepts. Graded rows are accepted by
    // three certified choices and three stochastic ones, each with two losses. The two kernel solvers and the
    // interior-point solver accept two losses, and no graded rows. The linear program is for comparisons with ties, and two
    // solvers are for structured outputs.
    let two_losses = 3 * (3 * 2 + 2);
    let trained = 3 * 8 * 3 + 8 * 3 + 2 * 6 + two_losses;
    let (classifiers, pairs, graded) = (3 * (3 + 3), 3 + 3, 3 * 12 - 2 * 6);
    let structured = 2 * 3 * (3 + 1 + 1);
    assert_eq!((trained_count, refused_count), (trained, classifiers + pairs + graded + structured));
}

#[test]
fn auto_goes_by_features_density_and_rows() {
    let chosen = |loss: Loss, rows: usize, features: usize, density: f64| {
        let shape = Shape { rows, features, density, compared: None };
        choose_solver(&Settings { loss, ..Settings::new(Task::Classify) }, shape).unwrap()
    };
    let (newton, coordinates) = (Solver::Newton, Solver::DualCoordinateDescent);
    for loss in Loss::ALL {
        assert_eq!(chosen(loss, 50_000, 500, 0.001), newton, "few features");
        assert_eq!(chosen(loss, 50_000, 50_000, 0.001), coordinates, "text");
        assert_eq!(chosen(loss, 50_000, 768, 1.0), newton, "dense rows");
        assert_eq!(chosen(loss, 500, 10_000, 1.0), coordinates, "more features than rows");
    }
    assert_eq!(chosen(Loss::Logistic, 5_000, 1_000, 1.0), newton);
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        assert_eq!(chosen(loss, 5_000, 1_000, 1.0), Solver::InteriorPoint, "few rows for their features");
    }
    assert_eq!(chosen(Loss::SquaredHinge, 5_001, 1_000, 1.0), newton);
    assert_eq!(chosen(Loss::SquaredHinge, 9_000, 5_000, 1.0), newton);
    let shape = Shape { rows: 20_000, features: 16_385, density: 1.0, compared: None };
    let asked = Settings::new(Task::Classify).with_solver(Solver::InteriorPoint);
    assert_eq!(choose_solver(&asked, shape).unwrap_err().code(), Code::Unsupported);
    assert_eq!(chosen(Loss::Hinge, 5_000, 5_000, 1.0), coordinates, "no more rows than features");
    assert_eq!(chosen(Loss::Hinge, 9_000, 5_000, 1.0), coordinates, "a system too large for every step");
}

#[test]
fn auto_converges_on_hinges_with_few_rows_for_their_features_at_any_cost() {
    let data = two_classes(1_300, 610, true, 8);
    let mut solved_from_within = 0;
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
        for (loss, c) in
            [Loss::Hinge, Loss::SquaredHinge].into_iter().flat_map(|loss| [1e-6, 1.0, 1e6].map(|c| (loss, c)))
        {
            let settings = Settings {
                loss,
                regularisation: Regularisation::C(c),
                ..Settings::new(Task::Classify).with_free(intercept)
            };
            let trained = train(&data, &settings, None, &mut Counting(0), &Cancel::new()).unwrap();
            // Dual coordinate descent runs first, and may be enough.
            let from_within = trained.solver == Solver::InteriorPoint;
            assert!(from_within || trained.solver == Solver::DualCoordinateDescent);
            solved_from_within += u32::from(from_within);
            let (certificate, context) = (&trained.model.certificate, format!("{loss:?}, {intercept:?}, C = {c:e}"));
            assert_eq!(certificate.solver, Some(trained.solver));
            assert!(trained.stop == Stop::Converged, "{context}");
            // With fewer than a million entries, the solution is polished.
            let gap = certificate.gap().unwrap();
            assert!(gap < 1e-9 || !from_within, "{context}: {gap:e}");
            let passes: Vec<u64> = trained.trace.iter().map(|point| point.pass).collect();
            assert!(passes.windows(2).all(|pair| pair[0] < pair[1]), "{context}: {passes:?}");
            assert_eq!(passes.last(), Some(&certificate.passes), "{context}");
            trained.model.verify(&data).unwrap();
        }
    }
    assert!(solved_from_within > 0);
}

#[test]
fn auto_converges_on_wide_dense_rows() {
    let data = two_classes(6_200, 610, true, 8);
    for loss in Loss::ALL {
        let settings = Settings { loss, regularisation: Regularisation::C(1e-3), ..Settings::new(Task::Classify) };
        let trained = train(&data, &settings, None, &mut Counting(0), &Cancel::new()).unwrap();
        assert_eq!(trained.solver, Solver::Newton);
        assert_eq!(trained.stop, Stop::Converged, "{loss:?}");
        let verified = trained.model.verify(&data).unwrap();
        assert!(verified.lower_bound.unwrap() >= trained.model.certificate.objective * (1.0 - 1.1e-3), "{loss:?}");
    }
}
