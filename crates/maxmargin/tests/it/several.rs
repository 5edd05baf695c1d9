//! Users' own tasks with several scores per row and several free scalars: joint classification and ordered cuts.

use crate::made::{Numbers, two_classes};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT};
use maxmargin::data::{Dataset, Dense, Design, Matrix, Scale, Scaling, Subset, Targets, complement, folds};
use maxmargin::error::{Code, Error, Result};
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Decoder, Model, Scorer};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::CrossValidation;
use maxmargin::settings::{OwnSettings, Regularisation, Settings, Solver};
use maxmargin::solve::{
    ByPart, CurvedRisk, CuttingPlane, LinearRisk, Newton, PartTask, Preconditioner, Problem, Risk, RoundedHinge,
    Solution, Stop, SumOfRisks, Witness,
};
use maxmargin::task::{Curvature, Directions, Intercept, LearningTask, Objective, Place, Roundable, Slopes};
use maxmargin::testing::{check_curvature, check_objective, check_rounding};
use maxmargin::train::{Partition, Poses, Summary, train_own};
use std::ops::Range;

/// The loss of a violation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Curve {
    Hinge,
    Squared,
    Rounded(f64),
}

impl Curve {
    /// Value and two derivatives.
    fn at(self, v: f64) -> [f64; 3] {
        match self {
            _ if v <= 0.0 => [0.0; 3],
            Curve::Hinge => [v, 1.0, 0.0],
            Curve::Squared => [v * v, 2.0 * v, 2.0],
            Curve::Rounded(width) if v > width => [v - 0.5 * width, 1.0, 0.0],
            Curve::Rounded(width) => [v * v / (2.0 * width), v / width, 1.0 / width],
        }
    }
}

/// A constraint of one row with margin 1: some of its scores and of the free scalars, each with a coefficient.
type Terms = Vec<(usize, f64)>;

/// A task that lists the constraints of every row, over its scores first and then the free scalars. Rows are separate.
#[derive(Clone)]
struct Listed {
    constraints: Vec<Vec<Terms>>,
    outputs: usize,
    scalars: usize,
    part: usize,
    cost: f64,
    curve: Curve,
    /// From this part on, every part returns an error.
    failing: Option<usize>,
}

impl Listed {
    fn violation(&self, terms: &Terms, scores: &[f64], thresholds: &[f64]) -> f64 {
        let number = |at: usize| if at < self.outputs { scores[at] } else { thresholds[at - self.outputs] };
        1.0 - terms.iter().map(|&(at, coefficient)| coefficient * number(at)).sum::<f64>()
    }

    /// Every constraint of a part with the number of its row within it, and the violation.
    fn each<'a>(&'a self, at: &'a Place<'_>) -> impl Iterator<Item = (usize, &'a Terms, f64)> {
        let rows = self.rows(at.part).zip(at.scores.chunks_exact(self.outputs)).enumerate();
        rows.flat_map(move |(number, (row, scores))| {
            self.constraints[row].iter().map(move |terms| (number, terms, self.violation(terms, scores, at.thresholds)))
        })
    }
}

impl Objective for Listed {
    /// The hinge, and by how much its dual exceeds that of the smoothed one.
    type Memo = [f64; 2];

    fn parts(&self) -> usize {
        self.constraints.len().div_ceil(self.part)
    }

    fn rows(&self, part: usize) -> Range<usize> {
        part * self.part..((part + 1) * self.part).min(self.constraints.len())
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn thresholds(&self) -> usize {
        self.scalars
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut [f64; 2]) -> Result<f64> {
        if self.failing.is_some_and(|first| at.part >= first) {
            let error = Error::new(Code::BadTarget, format!("part {} has no value", at.part));
            return Err(error.help("give it one"));
        }
        slopes.scores.fill(0.0);
        *memo = [0.0; 2];
        let mut value = 0.0;
        for (row, terms, violation) in self.each(at) {
            let [loss, first, _] = self.curve.at(violation);
            value += self.cost * loss;
            memo[0] += self.cost * violation.max(0.0);
            if let Curve::Rounded(width) = self.curve {
                memo[1] += 0.5 * width * self.cost * first * first;
            }
            for &(number, coefficient) in terms {
                let slope = -self.cost * first * coefficient;
                match number.checked_sub(self.outputs) {
                    None => slopes.scores[row * self.outputs + number] += slope,
                    Some(scalar) => slopes.thresholds[scalar] += slope,
                }
            }
        }
        Ok(value)
    }
}

impl Curvature for Listed {
    fn diagonal(&self, at: &Place<'_>, _memo: &[f64; 2], out: &mut [f64]) -> Result<()> {
        out.fill(0.0);
        for (row, terms, violation) in self.each(at) {
            let [.., second] = self.curve.at(violation);
            for &(number, coefficient) in terms.iter().filter(|(number, _)| *number < self.outputs) {
                out[row * self.outputs + number] += self.cost * second * coefficient * coefficient;
            }
        }
        Ok(())
    }

    fn rows_are_separate(&self) -> bool {
        true
    }

    fn curvature(&self, at: &Place<'_>, _memo: &[f64; 2], along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let m = along.count;
        out.scores.fill(0.0);
        for (row, terms, violation) in self.each(at) {
            let [.., second] = self.curve.at(violation);
            if second == 0.0 {
                continue;
            }
            for column in 0..m {
                let place = |number: usize| match number.checked_sub(self.outputs) {
                    None => ((row * self.outputs + number) * m + column, true),
                    Some(scalar) => (scalar * m + column, false),
                };
                let change: f64 = terms
                    .iter()
                    .map(|&(number, coefficient)| match place(number) {
                        (place, true) => coefficient * along.scores[place],
                        (place, false) => coefficient * along.thresholds[place],
                    })
                    .sum();
                for &(number, coefficient) in terms {
                    let by = self.cost * second * change * coefficient;
                    match place(number) {
                        (place, true) => out.scores[place] += by,
                        (place, false) => out.thresholds[place] += by,
                    }
                }
            }
        }
        Ok(())
    }
}

impl Roundable for Listed {
    fn rounded(&self, width: f64) -> Listed {
        Listed { curve: Curve::Rounded(width), ..self.clone() }
    }

    fn rounding(&self, _part: usize, &[hinge, excess]: &[f64; 2]) -> [f64; 3] {
        [hinge, excess, 16.0 * f64::EPSILON * (hinge + excess)]
    }
}

const CLASSES: usize = 3;

/// Weston and Watkins: the score of the right class exceeds that of each other class by 1. With a constant for each
/// class; adding the same number to all constants changes nothing.
fn joint(classes: &[usize], constants: bool, curve: Curve) -> Listed {
    let row = |&class: &usize| {
        let others = (0..CLASSES).filter(move |&other| other != class);
        others
            .map(|other| {
                let mut terms = vec![(class, 1.0), (other, -1.0)];
                if constants {
                    terms.extend([(CLASSES + class, 1.0), (CLASSES + other, -1.0)]);
                }
                terms
            })
            .collect()
    };
    let scalars = if constants { CLASSES } else { 0 };
    let constraints = classes.iter().map(row).collect();
    Listed { constraints, outputs: CLASSES, scalars, part: 16, cost: 0.3, curve, failing: None }
}

/// Every cut between grades is below the score of the rows above it, and above the score of the rows below it, by 1.
fn ordinal(grades: &[usize], cuts: usize, curve: Curve) -> Listed {
    let row = |&grade: &usize| {
        let side = move |cut: usize| if grade > cut { 1.0 } else { -1.0 };
        (0..cuts).map(|cut| vec![(0, side(cut)), (1 + cut, -side(cut))]).collect()
    };
    let constraints = grades.iter().map(row).collect();
    Listed { constraints, outputs: 1, scalars: cuts, part: 16, cost: 0.3, curve, failing: None }
}

impl LearningTask for Listed {
    fn set_cost(&mut self, c: f64) {
        self.cost = c;
    }

    fn total_cost(&self) -> f64 {
        self.cost * self.constraints.iter().filter(|listed| !listed.is_empty()).count() as f64
    }

    fn constraints(&self) -> u64 {
        self.constraints.iter().map(|listed| listed.len() as u64).sum()
    }

    fn decoder(&self, free: &[f64]) -> Decoder {
        // A constant for each score is part of it; cuts are not.
        Decoder::Score { free: if self.adds_free() { Vec::new() } else { free.to_vec() } }
    }

    fn adds_free(&self) -> bool {
        self.outputs > 1
    }
}

impl PartTask for Listed {}

/// Makes one of the two tasks of data whose targets are numbers from 0 on; rows that are left out have no constraints.
struct Grades {
    joint: bool,
    curve: Curve,
}

impl Poses for Grades {
    fn pose(&self, data: &Dataset, _: &Settings, subset: Option<&Subset>) -> Result<Box<dyn Problem>> {
        let grades: Vec<usize> = data.targets().real()?.iter().map(|&target| target as usize).collect();
        let mut task =
            if self.joint { joint(&grades, true, self.curve) } else { ordinal(&grades, CLASSES - 1, self.curve) };
        for row in (0..data.rows()).filter(|&row| subset.is_some_and(|subset| !subset.contains(row))) {
            task.constraints[row].clear();
        }
        task.cost = 1.0;
        Ok(Box::new(ByPart::new(task, Intercept::Free)))
    }
}

#[test]
fn both_tasks_train_verify_save_predict_tune_and_split_into_parts() {
    let (data, grades) = graded_rows(120, 5, true, CLASSES, 4);
    let data =
        data.with_targets(Targets::Real(grades.iter().map(|&grade| grade as f64).collect::<Vec<_>>().into())).unwrap();
    let cancel = Cancel::new();
    for (joint, curve) in [(true, Curve::Squared), (true, Curve::Hinge), (false, Curve::Squared), (false, Curve::Hinge)]
    {
        let own = Settings::of(OwnSettings::named("grades"));
        let loss = if curve == Curve::Hinge { Loss::Hinge } else { Loss::SquaredHinge };
        let settings = Settings { loss, regularisation: Regularisation::C(0.3), tolerance: 1e-6, ..own };
        let settings = Settings { scale: Scale::Standard, ..settings };
        let poses = Grades { joint, curve };
        let trained = train_own(&poses, &data, &settings, &mut Silent, &cancel).unwrap();
        let context = format!("joint: {joint}, {curve:?}");
        let optimum = referee(
            &if joint { super::several::joint(&grades, true, curve) } else { ordinal(&grades, CLASSES - 1, curve) },
            &data,
            Scale::Standard,
            false,
        );
        let objective = trained.model.certificate.objective;
        assert!((objective - optimum).abs() <= 2e-6 * optimum, "{context}: {objective} is not {optimum}");
        assert!(trained.model.certificate.gap().is_some_and(|gap| gap <= 1e-6), "{context}");

        let loaded = Model::from_bytes(&trained.model.to_bytes().unwrap()).unwrap();
        let found = loaded.verify_own(&poses, &data, &cancel).unwrap();
        assert_eq!(
            (found.objective, found.lower_bound),
            (objective, trained.model.certificate.lower_bound),
            "{context}"
        );
        let outputs = if joint { CLASSES } else { 1 };
        let scores = loaded.scores(&data).unwrap();
        assert_eq!((loaded.scorer.outputs(), scores.len()), (outputs, 120 * outputs), "{context}");
        assert_eq!(scores, trained.model.scores(&data).unwrap());
        let predicted: Vec<usize> = match &loaded.decoder {
            Decoder::Score { free } if joint => {
                assert!(free.is_empty());
                let best = |row: &[f64]| (0..CLASSES).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
                scores.chunks(CLASSES).map(best).collect()
            }
            Decoder::Score { free } => {
                assert!(free.len() == CLASSES - 1 && free.is_sorted(), "{free:?}");
                scores.iter().map(|score| free.iter().filter(|cut| score > *cut).count()).collect()
            }
            other => panic!("{other:?}"),
        };
        let right = predicted.iter().zip(&grades).filter(|(a, b)| a == b).count();
        assert!(right > 55, "{context}: {right} of 120");
        let lines = loaded.predict(&data).unwrap().lines().concat();
        let fields = lines.lines().next().unwrap().split('\t').count();
        assert_eq!(fields, outputs, "{context}: a line of predictions holds every score");

        let halves: Vec<Dataset> = [0..50, 50..120].map(|rows| data.subset(&rows.collect::<Vec<_>>()).unwrap()).into();
        let summaries = halves.iter().map(|half| Summary::of_own(&poses, half, &settings, &cancel).unwrap());
        let whole = summaries.reduce(|a, b| a.merge(b).unwrap()).unwrap();
        let parts: Vec<Partition> =
            halves.iter().map(|half| Partition::with_own(&poses, half, &settings, &whole).unwrap()).collect();
        let risks = parts.iter().filter_map(|part| part.risk(&cancel).unwrap()).collect();
        let mut sum = SumOfRisks::new(risks).unwrap();
        let point = [loaded.scorer.weights().unwrap(), &found_free(&loaded)].concat();
        let value = sum.evaluate(&point, &mut vec![0.0; point.len()]).unwrap();
        assert!((value - objective).abs() <= 1e-9 * objective, "{context}: {value} is not {objective}");
    }
    let own = Settings::of(OwnSettings::named("grades"));
    let own = Settings { loss: Loss::SquaredHinge, tolerance: 1e-9, ..own };
    let at = |c: f64| Settings { regularisation: Regularisation::C(c), ..own.clone() };
    let validation = CrossValidation { folds: 4, seed: 1, metrics: vec![Metric::Mae] };
    let poses = Grades { joint: false, curve: Curve::Squared };
    let settings = [at(1e-6), at(1.0)];
    let tuned = validation.run_own(&poses, &data, &settings, &mut Silent, &cancel).unwrap();
    // What a fold is judged by is what the model trained on the other folds scores: cuts are no part of scores.
    let parts = folds(&data, 4, 1).unwrap();
    for (row, settings) in tuned.rows.iter().zip(&settings) {
        for (held_out, judged) in parts.iter().zip(&row.metrics[0].folds) {
            let learned = data.subset(&complement(held_out, data.rows())).unwrap();
            let model = train_own(&poses, &learned, settings, &mut Silent, &cancel).unwrap().model;
            let judged_rows = data.subset(held_out).unwrap();
            let scores = model.scores(&judged_rows).unwrap();
            let truth = judged_rows.targets().real().unwrap();
            let apart = scores.iter().zip(truth).map(|(score, truth)| (score - truth).abs());
            let mean = apart.sum::<f64>() / scores.len() as f64;
            assert!((mean - judged).abs() < 1e-3 * mean, "{mean} is not {judged}");
        }
    }
    let refitted = tuned.refit_own(&poses, tuned.best, &data, None, &mut Silent, &cancel).unwrap();
    refitted.model.verify_own(&poses, &data, &cancel).unwrap();
    for solver in [Solver::Newton, Solver::CuttingPlane] {
        let settings = Settings { tolerance: 1e-3, ..at(1.0) }.with_solver(solver);
        let trained = train_own(&poses, &data, &settings, &mut Silent, &cancel).unwrap();
        assert_eq!(trained.solver, solver);
        trained.model.verify_own(&poses, &data, &cancel).unwrap();
        let mut forged = trained.model.clone();
        if solver == Solver::CuttingPlane {
            forged.witness = Some(Witness::Cuts(Vec::new()));
            assert!(forged.verify_own(&poses, &data, &cancel).is_err());
        }
    }
    // Metrics judge one score a row.
    let joint = Grades { joint: true, curve: Curve::Squared };
    let refused = validation.run_own(&joint, &data, &[at(1.0)], &mut Silent, &cancel).err().unwrap();
    assert_eq!(refused.code(), Code::MetricMismatch);
    let kernel = KernelSettings {
        kind: KernelKind::Gaussian,
        approximate: Some("nystrom:20".parse().unwrap()),
        ..KernelSettings::default()
    };
    let mapped = train_own(&joint, &data, &Settings { kernel, ..at(1.0) }, &mut Silent, &cancel).unwrap().model;
    assert_eq!(mapped.scorer.outputs(), 3);
    assert!(mapped.certificate.converged);
}

/// The free scalars of a model: the constants of its scores, or its cuts.
fn found_free(model: &Model) -> Vec<f64> {
    match (&model.scorer, &model.decoder) {
        (Scorer::Linear { intercepts, .. }, _) if !intercepts.is_empty() => intercepts.clone(),
        (_, Decoder::Score { free }) => free.clone(),
        other => panic!("{other:?}"),
    }
}

/// Rows, and for each a number of so many that depends on its features, with noise.
fn graded_rows(rows: usize, cols: usize, dense: bool, levels: usize, seed: u64) -> (Dataset, Vec<usize>) {
    let data = two_classes(rows, cols, dense, seed);
    let mut numbers = Numbers::new(seed + 100);
    let scores: Vec<f64> = (0..rows)
        .map(|row| {
            let mut score = 1.5 * numbers.next();
            data.matrix().each_in_row(row, |column, value| score += value * [0.5, -0.4, 0.3][column % 3]);
            score
        })
        .collect();
    let mut sorted = scores.clone();
    sorted.sort_by(f64::total_cmp);
    let level = |score: f64| (1..levels).filter(|level| score > sorted[rows * level / levels]).count();
    let grades = scores.iter().map(|&score| level(score)).collect();
    (data, grades)
}

fn design(data: &Dataset, scale: Scale) -> Design {
    Scaling::fit(scale, data, &Cancel::new()).unwrap().apply(data.matrix(), None).unwrap()
}

/// min ½‖w‖² + Σ cost · loss(ξ) by interior point, over the rows of the design.
fn referee(task: &Listed, data: &Dataset, scale: Scale, penalised: bool) -> f64 {
    let rows = crate::optimum::scaled_rows(data, scale);
    let weights = data.cols() * task.outputs;
    let dim = weights + task.scalars;
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    let listed: Vec<(usize, &Terms)> =
        task.constraints.iter().enumerate().flat_map(|(row, all)| all.iter().map(move |terms| (row, terms))).collect();
    let count = listed.len();
    let mut push = |row: usize, column: usize, value: f64| {
        i.push(row);
        j.push(column);
        v.push(value);
    };
    for (at, (row, terms)) in listed.into_iter().enumerate() {
        for &(number, coefficient) in terms {
            match number.checked_sub(task.outputs) {
                None => rows[row].iter().enumerate().for_each(|(column, value)| {
                    push(at, column * task.outputs + number, -coefficient * value);
                }),
                Some(scalar) => push(at, weights + scalar, -coefficient),
            }
        }
        push(at, dim + at, -1.0);
        push(count + at, dim + at, -1.0);
        right.push(-1.0);
    }
    right.extend(vec![0.0; count]);
    let variables = dim + count;
    let constraints = CscMatrix::new_from_triplets(2 * count, variables, i, j, v);
    let curvature = |at: usize| match at {
        _ if at < weights || (at < dim && penalised) => 1.0,
        _ if at >= dim && task.curve == Curve::Squared => 2.0 * task.cost,
        _ => 0.0,
    };
    let every: Vec<usize> = (0..variables).collect();
    let diagonal = every.iter().map(|&at| curvature(at)).collect();
    let quadratic = CscMatrix::new_from_triplets(variables, variables, every.clone(), every, diagonal);
    let linear: Vec<f64> =
        (0..variables).map(|at| if at >= dim && task.curve == Curve::Hinge { task.cost } else { 0.0 }).collect();
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .tol_feas(1e-11)
        .build()
        .unwrap();
    let cones = [NonnegativeConeT(2 * count)];
    let mut solver = DefaultSolver::new(&quadratic, &linear, &constraints, &right, &cones, settings).unwrap();
    solver.solve();
    solver.solution.obj_val
}

/// The solver to use.
#[derive(Clone, Copy, Debug)]
enum By {
    Newton,
    Planes,
    Rounding,
}

fn solve(task: &Listed, design: &Design, penalised: bool, by: By, tolerance: f64) -> Result<Solution> {
    let cancel = Cancel::new();
    let weights = task.outputs * design_cols(design, task, penalised);
    let mut risk = LinearRisk::new(task, design, penalised, &cancel);
    match by {
        By::Newton => Newton { tolerance, max_passes: 100 }.solve(&mut risk, weights, None, &mut Silent, &cancel),
        By::Planes => {
            CuttingPlane { tolerance, max_passes: 20_000 }.solve(&mut risk, weights, None, &mut Silent, &cancel)
        }
        By::Rounding => RoundedHinge { tolerance, max_passes: 500, penalise_thresholds: penalised }.solve(
            task,
            design,
            None,
            &mut Silent,
            &cancel,
        ),
    }
}

/// Number of features, from the number of coordinates.
fn design_cols(design: &Design, task: &Listed, penalised: bool) -> usize {
    let cancel = Cancel::new();
    (LinearRisk::new(task, design, penalised, &cancel).dim() - task.scalars) / task.outputs
}

fn assert_solved(found: &Solution, optimum: f64, tolerance: f64, context: &str) {
    let bound = found.lower_bound.unwrap();
    let context = format!("{context}: {} and {bound} for {optimum}, {:?}", found.objective, found.stop);
    assert_eq!(found.stop, Stop::Converged, "{context}");
    assert_near(found, optimum, tolerance, &context);
    assert!(found.objective - bound <= (tolerance + 1e-8) * found.objective, "{context}");
}

/// Checks that the bound is below the optimum, and that the objective is above it by at most a share of it.
fn assert_near(found: &Solution, optimum: f64, tolerance: f64, context: &str) {
    let bound = found.lower_bound.unwrap();
    assert!(bound <= optimum * (1.0 + 1e-8), "a bound above the optimum: {context}");
    assert!(found.objective >= optimum * (1.0 - 1e-8), "below the optimum: {context}");
    assert!(found.objective - optimum <= (tolerance + 1e-8) * optimum, "{context}");
}

#[test]
fn both_tasks_conform() {
    let classes: Vec<usize> = (0..50).map(|row| row * 7 % 5 % CLASSES).collect();
    for seed in 1..4 {
        let mut numbers = Numbers::new(seed);
        let mut draw = |count: usize| (0..count).map(|_| 3.0 * (numbers.next() - 0.5)).collect::<Vec<f64>>();
        for constants in [false, true] {
            for curve in [Curve::Hinge, Curve::Squared] {
                let task = joint(&classes, constants, curve);
                let (scores, free) = (draw(50 * CLASSES), draw(task.scalars));
                check_objective(&task, &scores, &free).unwrap();
                check_curvature(&task, &scores, &free).unwrap();
                if curve == Curve::Hinge {
                    check_rounding(&task, 0.4, &scores, &free).unwrap();
                }
            }
        }
        for curve in [Curve::Hinge, Curve::Squared] {
            let task = ordinal(&classes, 3, curve);
            let (scores, free) = (draw(50), draw(3));
            check_objective(&task, &scores, &free).unwrap();
            check_curvature(&task, &scores, &free).unwrap();
            if curve == Curve::Hinge {
                check_rounding(&task, 0.4, &scores, &free).unwrap();
            }
        }
    }
    let task = joint(&classes, true, Curve::Squared);
    let message = check_objective(&task, &[0.0; 50 * CLASSES - 1], &[0.0; 3]).unwrap_err();
    assert!(message.contains("a row of the task has 3"), "{message}");
}

#[test]
fn joint_classes_reach_the_referees_optimum_by_newton_and_by_planes() {
    for dense in [true, false] {
        let (data, classes) = graded_rows(70, 5, dense, CLASSES, 3);
        for scale in [Scale::None, Scale::Standard, Scale::UnitRows] {
            let design = design(&data, scale);
            for (constants, penalised) in [(false, false), (true, false), (true, true)] {
                let task = joint(&classes, constants, Curve::Squared);
                let optimum = referee(&task, &data, scale, penalised);
                for (by, tolerance) in [(By::Newton, 1e-9), (By::Planes, 1e-5)] {
                    let context = format!("{by:?}, dense: {dense}, {scale:?}, {constants}, {penalised}");
                    let found = solve(&task, &design, penalised, by, tolerance).unwrap();
                    assert_eq!((found.weights.len(), found.thresholds.len()), (15, task.scalars));
                    assert_solved(&found, optimum, tolerance, &context);
                }
            }
        }
    }
}

#[test]
fn ordered_cuts_reach_the_referees_optimum_by_newton_and_by_planes() {
    for dense in [true, false] {
        let (data, grades) = graded_rows(90, 6, dense, 4, 5);
        for scale in [Scale::None, Scale::Standard] {
            let design = design(&data, scale);
            for penalised in [false, true] {
                for curve in [Curve::Squared, Curve::Hinge] {
                    let task = ordinal(&grades, 3, curve);
                    let optimum = referee(&task, &data, scale, penalised);
                    let newton = if curve == Curve::Hinge { (By::Rounding, 1e-6) } else { (By::Newton, 1e-9) };
                    for (by, tolerance) in [newton, (By::Planes, 1e-5)] {
                        let context = format!("{by:?}, dense: {dense}, {scale:?}, {penalised}, {curve:?}");
                        let found = solve(&task, &design, penalised, by, tolerance).unwrap();
                        assert_solved(&found, optimum, tolerance, &context);
                        let cuts = &found.thresholds;
                        assert!(penalised || cuts.is_sorted(), "{context}: {cuts:?}");
                        let mut before = 0.0;
                        for bound in found.trace.iter().map(|point| point.lower_bound.unwrap()) {
                            assert!(bound >= before && bound <= optimum * (1.0 + 1e-8), "{context}: {bound}");
                            before = bound;
                        }
                        match (by, &found.witness) {
                            (By::Newton, Witness::Weights) | (By::Rounding, Witness::Rounded(_)) => {}
                            (By::Planes, Witness::Cuts(cuts)) => {
                                let total: f64 = cuts.iter().map(|cut| cut.multiplier).sum();
                                assert!((total - 1.0).abs() < 1e-12 && cuts.iter().all(|cut| cut.multiplier > 0.0));
                            }
                            other => panic!("{context}: {other:?}"),
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn planes_reach_the_tolerance_over_seeds_scales_and_costs_with_several_free_scalars() {
    for seed in 1..4 {
        for (scalars, joined) in [(2, false), (3, true), (4, false)] {
            let (data, grades) = graded_rows(60, 4, seed % 2 == 0, if joined { CLASSES } else { scalars + 1 }, seed);
            for scale in [Scale::None, Scale::Standard] {
                let design = design(&data, scale);
                for (cost, curve) in
                    [0.01, 0.3, 10.0].into_iter().flat_map(|c| [(c, Curve::Hinge), (c, Curve::Squared)])
                {
                    let task = if joined { joint(&grades, true, curve) } else { ordinal(&grades, scalars, curve) };
                    let task = Listed { cost, ..task };
                    let context = format!("seed {seed}, {scalars} scalars, {scale:?}, cost {cost}, {curve:?}");
                    let found = solve(&task, &design, false, By::Planes, 1e-5).unwrap();
                    let (objective, bound) = (found.objective, found.lower_bound.unwrap());
                    let context = format!("{context}: {objective} and {bound}, {:?}", found.stop);
                    assert_eq!(found.stop, Stop::Converged, "{context}");
                    assert!(objective - bound <= 1e-5 * objective, "{context}");
                    // The reference solver takes most of the time.
                    if seed > 1 {
                        continue;
                    }
                    let optimum = referee(&task, &data, scale, false);
                    // The reference solver is less exact where constants depend on each other.
                    assert!(bound <= optimum * (1.0 + 1e-6) && objective >= optimum * (1.0 - 1e-6), "{context}");
                }
            }
        }
    }
}

#[test]
fn a_known_stall_of_planes_still_states_a_sound_bound() {
    // Three classes of 13 or 14 rows at a low cost: neither the objective nor the bound improves from a gap of 1% on.
    let (data, classes) = graded_rows(40, 4, true, CLASSES, 2);
    let task = Listed { cost: 0.01, ..joint(&classes, true, Curve::Hinge) };
    let found = solve(&task, &design(&data, Scale::Standard), false, By::Planes, 1e-5).unwrap();
    let optimum = referee(&task, &data, Scale::Standard, false);
    assert!(matches!(found.stop, Stop::Converged | Stop::Stalled), "{:?}", found.stop);
    assert_near(&found, optimum, 1e-2, "a known stall");
}

#[test]
fn hessian_products_and_lines_say_the_same_as_gradients() {
    for (dense, scale) in [(true, Scale::Standard), (false, Scale::None), (false, Scale::Standard)] {
        let (data, classes) = graded_rows(60, 4, dense, CLASSES, 8);
        let design = design(&data, scale);
        for task in [joint(&classes, true, Curve::Squared), ordinal(&classes, 2, Curve::Squared)] {
            let cancel = Cancel::new();
            let mut risk = LinearRisk::new(&task, &design, false, &cancel);
            let dim = risk.dim();
            let mut numbers = Numbers::new(4);
            let mut draw = || (0..dim).map(|_| 0.3 * (numbers.next() - 0.5)).collect::<Vec<f64>>();
            let (w, direction) = (draw(), draw());
            let mut gradient = vec![0.0; dim];
            risk.evaluate(&w, &mut gradient).unwrap();
            assert!(risk.has_exact_hessian());
            let (hessian, free) = (risk.hessian().unwrap(), risk.free_hessian().unwrap());
            let penalised = risk.penalised();
            let count = dim - penalised;
            let Preconditioner::Matrix(like) = risk.preconditioner().unwrap() else { panic!("a matrix") };
            let mut product = vec![0.0; dim];
            risk.hessian_times(&direction, &mut product).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * (1.0 + a.abs());
            for row in 0..dim {
                let whole: f64 = hessian[row * dim..][..dim].iter().zip(&direction).map(|(a, b)| a * b).sum();
                assert!(close(whole, product[row]), "{row}: {whole} {}", product[row]);
                for column in 0..dim {
                    assert!(close(hessian[row * dim + column], hessian[column * dim + row]));
                }
                if row < penalised {
                    assert!(close(like[row * dim + row], hessian[row * dim + row]));
                } else {
                    let own = &free[(row - penalised) * count..][..count];
                    assert!(own.iter().zip(&hessian[row * dim + penalised..]).all(|(a, b)| close(*a, *b)));
                }
            }
            risk.line(&direction).unwrap();
            let (value, slope) = risk.along(0.7).unwrap();
            let there: Vec<f64> = w.iter().zip(&direction).map(|(w, d)| w + 0.7 * d).collect();
            let expected = risk.evaluate(&there, &mut gradient).unwrap();
            let expected_slope: f64 = gradient.iter().zip(&direction).map(|(a, b)| a * b).sum();
            assert!((value - expected).abs() <= 1e-6 * expected, "{value} {expected}");
            assert!((slope - expected_slope).abs() <= 1e-6 * (1.0 + expected_slope.abs()));
        }
    }
}

#[test]
fn many_coordinates_and_long_parts_are_solved_by_conjugate_gradients() {
    // 630 weights, which is more than the limit for forming a Hessian.
    let (data, classes) = graded_rows(150, 210, false, CLASSES, 2);
    let (task, rows) = (joint(&classes, true, Curve::Squared), design(&data, Scale::None));
    let (a, b) = (
        solve(&task, &rows, false, By::Newton, 1e-8).unwrap(),
        solve(&Listed { part: 150, ..task }, &rows, false, By::Newton, 1e-8).unwrap(),
    );
    assert_eq!((a.stop, b.stop), (Stop::Converged, Stop::Converged));
    assert!((a.objective - b.objective).abs() <= 2e-8 * a.objective);
    // One part of 33,000 rows, cut into chunks, and many short parts.
    let (count, cols) = (33_000, 45);
    let mut numbers = Numbers::new(9);
    let values: Vec<f32> = (0..count * cols).map(|_| numbers.next() as f32).collect();
    let classes: Vec<usize> = values
        .chunks_exact(cols)
        .map(|row| (3.0 * (0.6 * f64::from(row[0]) + 0.4 * numbers.next())) as usize % CLASSES)
        .collect();
    let matrix = Matrix::DenseF32(Dense::new(values, count, cols).unwrap());
    let data = Dataset::new(matrix, Targets::Absent).unwrap();
    let rows = design(&data, Scale::Standard);
    let short = Listed { cost: 1e-4, part: 512, ..joint(&classes, true, Curve::Squared) };
    let long = Listed { part: count, ..short.clone() };
    let (a, b) =
        (solve(&short, &rows, false, By::Newton, 1e-7).unwrap(), solve(&long, &rows, false, By::Newton, 1e-7).unwrap());
    assert_eq!((a.stop, b.stop), (Stop::Converged, Stop::Converged));
    assert!((a.objective - b.objective).abs() <= 2e-7 * a.objective);
}

/// Runs `work` on this many threads.
fn on<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn threads_change_no_bit() {
    let (data, grades) = graded_rows(3000, 6, true, 4, 7);
    let rows = design(&data, Scale::Standard);
    let classes: Vec<usize> = grades.iter().map(|grade| grade % CLASSES).collect();
    let cheap = |task: Listed| Listed { cost: 0.01, ..task };
    for (task, by) in [
        (cheap(joint(&classes, true, Curve::Squared)), By::Newton),
        (cheap(joint(&classes, false, Curve::Hinge)), By::Planes),
        (cheap(ordinal(&grades, 3, Curve::Squared)), By::Newton),
        (cheap(ordinal(&grades, 3, Curve::Squared)), By::Planes),
        (cheap(ordinal(&grades, 3, Curve::Hinge)), By::Rounding),
    ] {
        let run = |threads: usize| {
            let found = on(threads, || solve(&task, &rows, false, by, 1e-3)).unwrap();
            (found.weights, found.thresholds, found.objective.to_bits(), found.lower_bound, found.passes)
        };
        let one = run(1);
        assert!(one == run(2) && one == run(7), "{by:?}");
    }
}

#[test]
fn the_error_of_the_first_part_that_fails_comes_back_as_it_is() {
    let (data, grades) = graded_rows(3000, 4, true, 3, 7);
    let rows = design(&data, Scale::None);
    for threads in [1, 2, 7] {
        for (task, by) in [
            (ordinal(&grades, 2, Curve::Squared), By::Newton),
            (joint(&grades, false, Curve::Squared), By::Newton),
            (ordinal(&grades, 1, Curve::Hinge), By::Planes),
            (ordinal(&grades, 2, Curve::Hinge), By::Planes),
            (ordinal(&grades, 2, Curve::Hinge), By::Rounding),
        ] {
            let task = Listed { failing: Some(3), ..task };
            let error = on(threads, || solve(&task, &rows, false, by, 1e-6)).unwrap_err();
            assert_eq!(error.code(), Code::BadTarget, "{by:?}");
            assert_eq!(error.message(), "part 3 has no value", "{by:?} on {threads}");
            assert_eq!(error.remedy().as_deref(), Some("give it one"), "{by:?}");
        }
    }
}

#[test]
fn cuts_with_flat_minima_and_no_weights_at_all_are_solved() {
    // Only the cuts matter, and beyond some point the value is flat.
    let (data, _) = graded_rows(40, 3, true, 2, 1);
    let rows = design(&data, Scale::None);
    for (cuts, curve) in [(1, Curve::Hinge), (2, Curve::Hinge), (4, Curve::Hinge), (3, Curve::Squared)] {
        let constraints = vec![(0..cuts).map(|cut| vec![(1 + cut, 1.0)]).collect(); 40];
        let task = Listed { constraints, ..ordinal(&[0; 40], cuts, curve) };
        assert_eq!(solve(&task, &rows, false, By::Planes, 1e-6).unwrap().objective, 0.0);
        if curve == Curve::Squared {
            assert_eq!(solve(&task, &rows, false, By::Newton, 1e-6).unwrap().objective, 0.0);
        }
    }
}

/// A sum that decreases without limit with each free scalar.
struct Falling(usize);

impl Risk for Falling {
    fn dim(&self) -> usize {
        self.0 + 1
    }

    fn penalised(&self) -> usize {
        1
    }

    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> Result<f64> {
        gradient[0] = w[0];
        gradient[1..].fill(-1.0);
        Ok(0.5 * w[0] * w[0] - w[1..].iter().sum::<f64>())
    }

    fn line(&mut self, _direction: &[f64]) -> Result<()> {
        unreachable!("there is no first model to move to")
    }

    fn along(&mut self, _step: f64) -> Result<(f64, f64)> {
        unreachable!("there is no first model to move to")
    }
}

#[test]
fn free_scalars_without_a_minimum_are_refused_by_planes() {
    for scalars in [1, 2, 3] {
        let planes = CuttingPlane { tolerance: 1e-6, max_passes: 100 };
        let error = planes.solve(&mut Falling(scalars), 1, None, &mut Silent, &Cancel::new()).unwrap_err();
        assert_eq!(error.code(), Code::Unsupported, "{error}");
    }
}
