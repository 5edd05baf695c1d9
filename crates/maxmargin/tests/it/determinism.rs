//! The same seed gives the same bytes at any number of threads.

use crate::made::{fit, graded, two_classes};
use maxmargin::data::{Dataset, Scale};
use maxmargin::loss::Loss;
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::{CrossValidation, Grid};
use maxmargin::settings::{Regularisation, Settings, Solver, Task};

fn bytes(data: &Dataset, settings: &Settings, threads: usize) -> Vec<u8> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| fit(data, settings).model.to_bytes().unwrap())
}

#[test]
fn threads_change_no_bit_of_a_tuning() {
    let (classes, groups) = (two_classes(2000, 30, false, 1), graded(60, 15, 12, 4, 2));
    for (data, settings) in [
        (&classes, Settings { scale: Scale::Standard, ..Settings::new(Task::Classify) }),
        (&classes, Settings { loss: Loss::SquaredHinge, ..Settings::new(Task::Classify) }),
        (&groups, Settings::new(Task::Rank)),
    ] {
        let metric = if settings.task.task() == Task::Rank { "ndcg@5" } else { "auc" };
        let metrics = vec![metric.parse().unwrap()];
        let grid: Grid = "1e-3:1:4".parse().unwrap();
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let validation = CrossValidation { folds: 4, seed: 9, metrics: metrics.clone() };
                let candidates = grid.candidates(&settings);
                let tuned = validation.run(data, &candidates, &mut Silent, &Cancel::new()).unwrap();
                let model = tuned.refit(tuned.best, data, None, &mut Silent, &Cancel::new()).unwrap().model;
                let rows: Vec<_> =
                    tuned.rows.into_iter().map(|row| (row.c, row.metrics, row.gap, row.passes)).collect();
                (rows, model.to_bytes().unwrap())
            })
        };
        let one = run(1);
        assert!(one == run(2) && one == run(8), "{settings:?}");
    }
}

#[test]
fn threads_change_no_byte_of_a_model() {
    let classes = two_classes(3000, 40, false, 1);
    let groups = graded(150, 20, 30, 5, 2);
    let wide_groups = graded(40, 20, 610, 4, 5);
    let newton = |loss: Loss| Settings { loss, ..Settings::new(Task::Classify).with_solver(Solver::Newton) };
    let within = Settings::new(Task::Classify).with_solver(Solver::InteriorPoint);
    let wide = two_classes(900, 610, true, 4);
    let one_list = graded(1, 40_000, 5, 0, 3);
    let runs = [
        (&classes, Settings::new(Task::Classify)),
        (&classes, Settings { loss: Loss::SquaredHinge, scale: Scale::Standard, ..Settings::new(Task::Classify) }),
        (&classes, Settings { solver: Solver::CuttingPlane, ..Settings::new(Task::Classify) }),
        (&wide, Settings { regularisation: Regularisation::C(1e-3), ..newton(Loss::Hinge) }),
        (&wide, newton(Loss::SquaredHinge)),
        (&wide, Settings { loss: Loss::Hinge, ..within.clone() }),
        (&wide, Settings { loss: Loss::SquaredHinge, ..within }),
        (&wide_groups, Settings::new(Task::Rank)),
        (&groups, Settings { scale: Scale::MinMaxPerQuery, ..Settings::new(Task::Rank) }),
        (&one_list, Settings { regularisation: Regularisation::C(1e-7), ..Settings::new(Task::Rank) }),
    ];
    for (data, settings) in runs {
        let one = bytes(data, &settings, 1);
        for threads in [2, 8] {
            assert!(one == bytes(data, &settings, threads), "{threads} threads, {settings:?}");
        }
    }
}
