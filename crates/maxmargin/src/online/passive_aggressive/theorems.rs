//! The steps beside an interior-point solver, the theorems of the family in their corrected form, and a counter-example
//! for each statement that does not hold.

use super::box_quadratic::{BoxQuadratic, one, value};
use super::step::{Change, Member, Steps};
use super::{PairedRule, Rule, Ways};
use crate::data::{Csr, Dense, Matrix, with_rows};
use crate::online::linear::LinearPoint;
use crate::online::state::OnlineState;
use crate::online::two_classes::{Batch as Rows, TwoClassRule};
use crate::random::Random;
use crate::wish::{Intercept, Variant};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The best step when some variables move together by δ: α_j + δ must stay within 0 and c_j for all of them. Since every
/// α_j lies between 0 and c_j, δ = 0 is always allowed: L = max(−α_j) ≤ 0 ≤ U = min(c_j − α_j).
fn joint_limits(alpha: &[f64], most: &[f64], members: &[usize]) -> (f64, f64) {
    let low = members.iter().map(|&j| -alpha[j]).fold(f64::NEG_INFINITY, f64::max);
    let high = members.iter().map(|&j| most[j] - alpha[j]).fold(f64::INFINITY, f64::min);
    (low, high)
}

/// A margin that is to reach `margin`, its direction and what a missing unit costs.
struct Constraint {
    direction: Vec<f64>,
    margin: f64,
    cost: f64,
}

/// argmin ½‖w − w_t‖² + Σ cost_k · ξ_k (or ξ_k², or no slack) with ξ_k ≥ margin_k − direction_k·w and ξ ≥ 0.
fn referee(start: &[f64], constraints: &[Constraint], variant: Variant) -> Vec<f64> {
    let (dim, count) = (start.len(), constraints.len());
    let slacks = if variant == Variant::Pa { 0 } else { count };
    let variables = dim + slacks;
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    for (at, constraint) in constraints.iter().enumerate() {
        for (column, value) in constraint.direction.iter().enumerate() {
            i.push(at);
            j.push(column);
            v.push(-value);
        }
        if slacks > 0 {
            i.push(at);
            j.push(dim + at);
            v.push(-1.0);
        }
        right.push(dot(&constraint.direction, start) - constraint.margin);
    }
    // The squares alone keep slacks from falling below zero. Naming that limit too would slow the solver down.
    let limited = if variant == Variant::PaI { slacks } else { 0 };
    for slack in 0..limited {
        i.push(count + slack);
        j.push(dim + slack);
        v.push(-1.0);
        right.push(0.0);
    }
    let a = CscMatrix::new_from_triplets(count + limited, variables, i, j, v);
    let diagonal: Vec<f64> = (0..variables)
        .map(|at| match (at < dim, variant) {
            (true, _) => 1.0,
            (false, Variant::PaIi) => 2.0 * constraints[at - dim].cost,
            _ => 0.0,
        })
        .collect();
    let places: Vec<usize> = (0..variables).collect();
    let p = CscMatrix::new_from_triplets(variables, variables, places.clone(), places, diagonal);
    let q: Vec<f64> = (0..variables)
        .map(|at| if at >= dim && variant == Variant::PaI { constraints[at - dim].cost } else { 0.0 })
        .collect();
    // As accurate as the solver can be on these data: a solution that is `AlmostSolved` has few digits.
    for tolerance in [1e-13, 1e-12, 1e-11, 1e-10] {
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .tol_gap_abs(tolerance)
            .tol_gap_rel(tolerance)
            .tol_feas(tolerance)
            .build()
            .expect("settings");
        let mut solver =
            DefaultSolver::new(&p, &q, &a, &right, &[NonnegativeConeT(right.len())], settings).expect("a problem");
        solver.solve();
        if solver.solution.status == SolverStatus::Solved {
            return start.iter().zip(&solver.solution.x).map(|(start, change)| start + change).collect();
        }
    }
    panic!("the interior-point solver does not converge");
}

/// A batch of rows, as vectors with the constant feature in the last place.
#[derive(Clone, Debug)]
struct Batch {
    rows: Vec<Vec<f64>>,
    signs: Vec<f64>,
    weights: Vec<f64>,
    start: Vec<f64>,
    intercept: bool,
}

impl Batch {
    /// Positive and negative rows in turn. Some entries are zero.
    fn random(random: &mut Random, n: usize, features: usize, intercept: bool) -> Batch {
        let mut vector = |scale: f64| -> Vec<f64> {
            (0..features).map(|_| if random.chance(0.2) { 0.0 } else { scale * random.normal() }).collect()
        };
        let mut rows: Vec<Vec<f64>> = (0..n).map(|_| vector(1.0)).collect();
        let mut start = vector(1.5);
        rows.iter_mut().for_each(|row| row.push(f64::from(u8::from(intercept))));
        start.push(if intercept { random.normal() } else { 0.0 });
        let signs = (0..n).map(|row| if row % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let weights = (0..n).map(|_| [1.0, 0.5, 2.0][random.below(3) as usize]).collect();
        Batch { rows, signs, weights, start, intercept }
    }

    fn of(rows: &[&[f64]], signs: &[f64], start: &[f64]) -> Batch {
        let with_constant = |row: &[f64]| row.iter().copied().chain([0.0]).collect::<Vec<f64>>();
        Batch {
            rows: rows.iter().map(|row| with_constant(row)).collect(),
            signs: signs.to_vec(),
            weights: vec![1.0; rows.len()],
            start: with_constant(start),
            intercept: false,
        }
    }

    fn features(&self) -> usize {
        self.start.len() - 1
    }

    /// y·x of a row, with the constant feature.
    fn signed(&self, row: usize) -> Vec<f64> {
        self.rows[row].iter().map(|value| self.signs[row] * value).collect()
    }

    fn margin(&self, w: &[f64], row: usize) -> f64 {
        dot(&self.signed(row), w)
    }

    fn loss(&self, w: &[f64], row: usize) -> f64 {
        (1.0 - self.margin(w, row)).max(0.0)
    }

    /// Σ shares_i y_i x_i
    fn combined(&self, shares: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.start.len()];
        for (row, share) in shares.iter().enumerate() {
            sum.iter_mut().zip(self.signed(row)).for_each(|(sum, value)| *sum += share * value);
        }
        sum
    }

    fn members(&self) -> Vec<Member> {
        (0..self.rows.len())
            .map(|row| {
                let plain = &self.rows[row][..self.features()];
                Member { row, sign: self.signs[row], weight: self.weights[row], square: dot(plain, plain) }
            })
            .collect()
    }

    /// The weights after a step on this batch, the constant in the last place; from dense rows and from sparse ones.
    fn step(&self, rule: Rule, variant: Variant, c: f64) -> (Vec<f64>, Change) {
        let features = self.features();
        let plain: Vec<f64> = self.rows.iter().flat_map(|row| row[..features].to_vec()).collect();
        let dense = Dense::new(plain, self.rows.len(), features).expect("rows");
        let (mut starts, mut indices, mut values) = (vec![0u64], Vec::<u16>::new(), Vec::<f64>::new());
        for row in &self.rows {
            let entries = row[..features].iter().enumerate().filter(|entry| *entry.1 != 0.0);
            entries.for_each(|(column, value)| (indices.push(column as u16), values.push(*value)).0);
            starts.push(indices.len() as u64);
        }
        let sparse = Csr::new(starts, indices, values, features).expect("rows");
        let mut steps = Steps::new(rule, variant, c, self.intercept);
        let (constants, kind) = match self.intercept {
            true => (vec![self.start[features]], Intercept::Penalised),
            false => (Vec::new(), Intercept::None),
        };
        let point = LinearPoint::starting(self.start[..features].to_vec(), constants, 1, kind, false);
        let (mut from_dense, mut from_sparse) = (point.clone(), point);
        let change = steps.step(&dense, &self.members(), &mut from_dense);
        let again = steps.step(&sparse, &self.members(), &mut from_sparse);
        let joined = |point: LinearPoint| -> Vec<f64> {
            let (vector, constants) = point.point();
            vector.into_iter().chain([constants.first().copied().unwrap_or(0.0)]).collect()
        };
        let (from_dense, from_sparse) = (joined(from_dense), joined(from_sparse));
        assert!(from_dense.iter().zip(&from_sparse).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + a.abs())));
        assert!((change.dual - again.dual).abs() < 1e-9 * (1.0 + change.dual));
        (from_dense, change)
    }

    /// The problem that a joint step over some rows solves: one constraint for their sum.
    fn jointly(&self, members: &[usize], c: f64, variant: Variant) -> Constraint {
        let shares: Vec<f64> = (0..self.rows.len()).map(|row| f64::from(u8::from(members.contains(&row)))).collect();
        let weights = || members.iter().map(|&row| self.weights[row]);
        let weight = match variant {
            Variant::PaIi => 1.0 / weights().map(|weight| 1.0 / weight).sum::<f64>(),
            _ => weights().fold(f64::INFINITY, f64::min),
        };
        Constraint { direction: self.combined(&shares), margin: members.len() as f64, cost: c * weight }
    }

    /// The solution of the optimisation problem of a rule by the interior-point solver.
    fn expected(&self, rule: Rule, variant: Variant, c: f64) -> Vec<f64> {
        let n = self.rows.len();
        let own = |row: usize| self.jointly(&[row], c, variant);
        let solve = |start: &[f64], constraints: &[Constraint]| referee(start, constraints, variant);
        match rule {
            Rule::Dca => solve(&self.start, &(0..n).map(own).collect::<Vec<_>>()),
            Rule::Single | Rule::Sequential => (0..n).fold(self.start.clone(), |w, row| solve(&w, &[own(row)])),
            Rule::Auc => (0..n / 2)
                .fold(self.start.clone(), |w, pair| solve(&w, &[self.jointly(&[2 * pair, 2 * pair + 1], c, variant)])),
            Rule::MaxViolators => {
                let worst = |sign: f64| {
                    let wrong = (0..n).filter(|&row| self.signs[row] == sign && self.loss(&self.start, row) > 0.0);
                    wrong.max_by(|&a, &b| self.loss(&self.start, a).total_cmp(&self.loss(&self.start, b)))
                };
                let members: Vec<usize> = worst(1.0).into_iter().chain(worst(-1.0)).collect();
                if members.is_empty() {
                    self.start.clone()
                } else {
                    solve(&self.start, &[self.jointly(&members, c, variant)])
                }
            }
            Rule::CorrectMistakes => {
                let members: Vec<usize> = (0..n).filter(|&row| self.loss(&self.start, row) > 0.0).collect();
                if members.is_empty() {
                    self.start.clone()
                } else {
                    solve(&self.start, &[self.jointly(&members, c, variant)])
                }
            }
            Rule::SingleSlack => {
                let total: f64 = self.weights.iter().sum();
                let shares: Vec<f64> = self.weights.iter().map(|weight| weight / total).collect();
                let cost = c * total / n as f64;
                solve(&self.start, &[Constraint { direction: self.combined(&shares), margin: 1.0, cost }])
            }
        }
    }
}

#[test]
fn every_step_solves_its_optimisation_problem() {
    let mut random = Random::new(1, 0, 0);
    for case in 0..120 {
        for n in [2, 3, 5] {
            let intercept = case % 2 == 0;
            let batch = Batch::random(&mut random, n, 9, intercept);
            let c = [0.03, 0.3, 3.0][case % 3];
            for rule in Rule::ALL {
                if rule == Rule::Auc && n % 2 == 1 {
                    continue;
                }
                for variant in Variant::ALL {
                    let (w, change) = batch.step(rule, variant, c);
                    let expected = batch.expected(rule, variant, c);
                    for (w, expected) in w.iter().zip(&expected) {
                        assert!(
                            (w - expected).abs() < 1e-8 * (1.0 + expected.abs()),
                            "{rule:?} {variant:?} {n} {case} {w} {expected}"
                        );
                    }
                    assert!(change.dual >= 0.0 && !change.contradiction);
                }
            }
        }
    }
}

#[test]
fn rows_that_are_equal_or_zero_have_steps_too() {
    for (rows, signs) in [
        (vec![vec![1.0, 2.0], vec![1.0, 2.0]], vec![1.0, -1.0]),
        (vec![vec![0.0, 0.0], vec![1.0, 2.0]], vec![1.0, -1.0]),
        (vec![vec![1.0, 2.0], vec![-1.0, -2.0]], vec![1.0, -1.0]),
        (vec![vec![1.0, 2.0], vec![2.0, 4.0], vec![1.0, 2.0], vec![1.0, 2.0]], vec![1.0, -1.0, 1.0, -1.0]),
        (vec![vec![1.0, 2.0], vec![1.0, -1.0], vec![1.0, 2.0], vec![1.0, -1.0]], vec![1.0, -1.0, 1.0, -1.0]),
    ] {
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let batch = Batch::of(&rows, &signs, &[0.3, -0.2]);
        for rule in Rule::ALL {
            for variant in [Variant::PaI, Variant::PaIi] {
                for c in [0.1, 10.0] {
                    let (w, change) = batch.step(rule, variant, c);
                    let expected = batch.expected(rule, variant, c);
                    assert!(
                        w.iter().zip(&expected).all(|(w, expected)| (w - expected).abs() < 1e-6),
                        "{rule:?} {variant:?}"
                    );
                    assert!(!change.contradiction);
                }
            }
        }
    }
    // Without slack, rows that contradict each other are left alone.
    let batch = Batch::of(&[&[1.0, 2.0], &[1.0, 2.0]], &[1.0, -1.0], &[0.5, 0.0]);
    let (w, change) = batch.step(Rule::Dca, Variant::Pa, 1.0);
    assert!(change.contradiction && w == batch.start);
    let three = Batch::of(&[&[1.0, 2.0], &[1.0, 2.0], &[0.5, 1.0]], &[1.0, -1.0, 1.0], &[0.5, 0.0]);
    let (w, change) = three.step(Rule::Dca, Variant::Pa, 1.0);
    assert!(change.contradiction && w == three.start);
    // Two equal vectors y x do not.
    let batch = Batch::of(&[&[1.0, 2.0], &[-1.0, -2.0]], &[1.0, -1.0], &[0.5, 0.0]);
    let (w, change) = batch.step(Rule::Dca, Variant::Pa, 1.0);
    assert!(!change.contradiction && (batch.margin(&w, 0) - 1.0).abs() < 1e-12);
}

/// Theorem 1: the loss of the average margin is at most the average of the losses (Jensen).
#[test]
fn theorem_1_the_loss_of_the_average_is_at_most_the_average_loss() {
    let mut random = Random::new(2, 0, 0);
    for n in [2, 4, 6] {
        for _ in 0..300 {
            let batch = Batch::random(&mut random, n, 4, true);
            let mean = batch.combined(&vec![1.0 / n as f64; n]);
            let of_mean = (1.0 - dot(&mean, &batch.start)).max(0.0);
            let losses: f64 = (0..n).map(|row| batch.loss(&batch.start, row)).sum();
            assert!(of_mean <= losses / n as f64 + 1e-12);
        }
    }
}

/// A stream of pairs that u separates up to noise.
fn noisy_pairs(random: &mut Random, pairs: usize, features: usize, noise: f64) -> (Vec<Batch>, Vec<f64>) {
    let truth: Vec<f64> = (0..=features).map(|_| 2.0 * random.normal()).collect();
    let mut batches = Vec::new();
    while batches.len() < pairs {
        let mut batch = Batch::random(random, 2, features, true);
        batch.weights = vec![1.0; 2];
        for row in 0..2 {
            if batch.margin(&truth, row) + noise * random.normal() < 0.0 {
                batch.rows[row].iter_mut().for_each(|value| *value = -*value);
                batch.rows[row][features] = 1.0;
            }
        }
        batches.push(batch);
    }
    (batches, truth)
}

/// A pass over the batches from zero. Calls `seen` with each batch, the weights before it, and its change.
fn pass(batches: &[Batch], rule: Rule, variant: Variant, c: f64, mut seen: impl FnMut(&Batch, &[f64], Change)) {
    let mut w = vec![0.0; batches[0].start.len()];
    for batch in batches {
        let batch = Batch { start: w.clone(), ..batch.clone() };
        let (after, change) = batch.step(rule, variant, c);
        seen(&batch, &w, change);
        w = after;
    }
}

fn largest_square(batches: &[Batch], of: impl Fn(&Batch) -> f64) -> f64 {
    batches.iter().map(of).fold(0.0, f64::max)
}

/// Theorems 2 and 7, and the last one of the appendix with T in place of |X⁺||X⁻|: over T drawn pairs, the share of pairs
/// in the wrong order at w_t is at most (1/T)·max{R², 1/C}·(‖u‖² + 2C·Σ losses(u)).
#[test]
fn theorems_2_and_7_the_share_of_pairs_in_the_wrong_order_is_bounded() {
    let mut random = Random::new(3, 0, 0);
    for case in 0..12 {
        let (batches, u) = noisy_pairs(&mut random, 150, 5, [0.0, 0.5, 2.0][case % 3]);
        let c = [0.05, 0.5, 5.0][case / 4];
        let radius = largest_square(&batches, |batch| {
            dot(&batch.rows[0], &batch.rows[0]).max(dot(&batch.rows[1], &batch.rows[1]))
        });
        let joint = |batch: &Batch| batch.combined(&[1.0, 1.0]);
        let losses = |of: &dyn Fn(&Batch) -> f64| batches.iter().map(of).sum::<f64>();
        let single = losses(&|batch| batch.loss(&u, 0) + batch.loss(&u, 1));
        for rule in [Rule::SingleSlack, Rule::Auc, Rule::Dca, Rule::Sequential] {
            let mut wrong = 0.0;
            pass(&batches, rule, Variant::PaI, c, |batch, w, _| {
                wrong += f64::from(u8::from(dot(&joint(batch), w) <= 0.0));
            });
            let average = losses(&|batch| (1.0 - 0.5 * dot(&joint(batch), &u)).max(0.0));
            let of_pairs = losses(&|batch| (2.0 - dot(&joint(batch), &u)).max(0.0));
            let bound = match rule {
                // ‖x̄‖ ≤ R.
                Rule::SingleSlack => radius.max(1.0 / c) * (dot(&u, &u) + 2.0 * c * average),
                // ‖x⁺ − x⁻‖² ≤ 4R², and the violation is at least 2.
                Rule::Auc => radius.max(0.5 / c) * (dot(&u, &u) + 2.0 * c * of_pairs),
                // A pair in the wrong order has a row on the wrong side.
                _ => radius.max(1.0 / c) * (dot(&u, &u) + 2.0 * c * single),
            };
            let pairs = batches.len() as f64;
            assert!(wrong / pairs <= bound / pairs + 1e-12, "{rule:?} {wrong} {bound}");
        }
    }
}

/// Theorem 3, corrected: after an uncapped step of the single slack the average margin is 1, and no more is certain.
#[test]
fn theorem_3_the_average_margin_is_one_after_an_uncapped_step() {
    let mut random = Random::new(4, 0, 0);
    let mut wrong = 0;
    for _ in 0..400 {
        let mut batch = Batch::random(&mut random, 2, 5, true);
        batch.weights = vec![1.0; 2];
        let (w, _) = batch.step(Rule::SingleSlack, Variant::PaI, 1e6);
        let average = 0.5 * (batch.margin(&w, 0) + batch.margin(&w, 1));
        assert!(average >= 1.0 - 1e-9);
        wrong += usize::from(batch.margin(&w, 0) <= 0.0 || batch.margin(&w, 1) <= 0.0);
    }
    assert!(wrong > 0, "some rows are still on the wrong side");
    let batch = Batch::of(&[&[1.0, 0.0], &[0.0, 1.0]], &[1.0, -1.0], &[-3.0, -3.0]);
    let (w, _) = batch.step(Rule::SingleSlack, Variant::PaI, 1e6);
    assert!((w[0] + 2.0).abs() < 1e-12 && (w[1] + 4.0).abs() < 1e-12);
}

/// Theorem 4: single steps on the dual rise monotonically to its maximum.
#[test]
fn theorem_4_coordinate_ascent_rises_to_the_optimum() {
    let mut random = Random::new(5, 0, 0);
    for _ in 0..60 {
        let n = 6;
        let batch = Batch::random(&mut random, n, 4, false);
        let most: Vec<f64> = batch.weights.iter().map(|weight| 0.4 * weight).collect();
        let (gram, b) = dual_of(&batch);
        let (mut alpha, mut last) = (vec![0.0; n], 0.0);
        for _ in 0..4000 {
            for i in 0..n {
                // The step from the weights of the moment, w(α), and not from w_t.
                let slope = b[i] - (0..n).map(|j| gram[i * n + j] * alpha[j]).sum::<f64>();
                let k = gram[i * n + i];
                alpha[i] = one(alpha[i] * k + slope, k, most[i]).expect("limits");
                let now = value(&gram, &b, &alpha);
                assert!(now >= last - 1e-12);
                last = now;
            }
        }
        let mut best = vec![0.0; n];
        assert!(BoxQuadratic::default().maximise(&gram, &b, &most, &mut best));
        assert!((value(&gram, &b, &best) - last).abs() < 1e-10 * (1.0 + last));
        let expected = batch.expected(Rule::Dca, Variant::PaI, 0.4);
        let mut w = batch.start.clone();
        w.iter_mut().zip(batch.combined(&alpha)).for_each(|(w, change)| *w += change);
        assert!(w.iter().zip(&expected).all(|(w, expected)| (w - expected).abs() < 1e-6));
    }
}

/// K and b of a batch.
fn dual_of(batch: &Batch) -> (Vec<f64>, Vec<f64>) {
    let n = batch.rows.len();
    let gram = (0..n * n).map(|at| dot(&batch.signed(at / n), &batch.signed(at % n))).collect();
    (gram, (0..n).map(|row| 1.0 - batch.margin(&batch.start, row)).collect())
}

#[test]
fn the_dual_has_a_minus_before_the_square() {
    let mut random = Random::new(6, 0, 0);
    for _ in 0..50 {
        let mut batch = Batch::random(&mut random, 2, 5, false);
        batch.weights = vec![1.0; 2];
        let c = 0.7;
        let expected = batch.expected(Rule::Dca, Variant::PaI, c);
        let moved: f64 = expected.iter().zip(&batch.start).map(|(a, b)| (a - b) * (a - b)).sum();
        let primal = 0.5 * moved + c * (batch.loss(&expected, 0) + batch.loss(&expected, 1));
        let (_, change) = batch.step(Rule::Dca, Variant::PaI, c);
        // The value with −½‖·‖² is that of the primal; with + it would be larger by the square.
        assert!((change.dual - primal).abs() < 1e-8, "{} {primal}", change.dual);
        assert!(moved < 1e-9 || change.dual + moved > primal + 1e-9);
    }
}

#[test]
fn later_steps_need_the_weights_of_the_moment() {
    // With the loss at w_t, the second of two equal rows would be stepped on twice.
    let batch = Batch::of(&[&[1.0, 0.0], &[-1.0, 0.0]], &[1.0, -1.0], &[0.0, 0.0]);
    let (w, _) = batch.step(Rule::Sequential, Variant::PaI, 10.0);
    assert_eq!(w[0], 1.0);
    let (w, _) = batch.step(Rule::Dca, Variant::PaI, 10.0);
    assert!((w[0] - 1.0).abs() < 1e-12);
}

#[test]
fn slacks_are_not_negative_and_rows_beyond_the_margin_do_not_move_the_weights() {
    // Without ξ ≥ 0, the row beyond the margin would pay for moving: α would be C for both.
    let batch = Batch::of(&[&[1.0, 0.0], &[0.0, 1.0]], &[1.0, -1.0], &[2.0, -3.0]);
    for rule in Rule::ALL {
        let (w, change) = batch.step(rule, Variant::PaI, 1.0);
        assert_eq!((w, change.dual), (batch.start.clone(), 0.0), "{rule:?}");
    }
}

#[test]
fn only_rows_with_a_loss_are_mistakes() {
    // The set of rows with ℓ ≥ 0 would contain the second row and change its score.
    let batch = Batch::of(&[&[1.0, 0.0], &[0.0, 1.0]], &[1.0, -1.0], &[0.0, -3.0]);
    let (w, _) = batch.step(Rule::CorrectMistakes, Variant::PaI, 10.0);
    assert_eq!(w, [1.0, -3.0, 0.0]);
    let (w, _) = batch.step(Rule::MaxViolators, Variant::PaI, 10.0);
    assert_eq!(w, [1.0, -3.0, 0.0]);
}

#[test]
fn a_joint_step_is_always_allowed_and_a_fixed_partition_never_stops_short() {
    let mut random = Random::new(7, 0, 0);
    let mut stuck = 0;
    for _ in 0..200 {
        let n = 6;
        let most: Vec<f64> = (0..n).map(|_| 0.1 + random.uniform()).collect();
        let alpha: Vec<f64> =
            most.iter().map(|most| [0.0, *most, most * random.uniform()][random.below(3) as usize]).collect();
        let members: Vec<usize> = (0..n).filter(|_| random.chance(0.5)).collect();
        if members.is_empty() {
            continue;
        }
        let (low, high) = joint_limits(&alpha, &most, &members);
        assert!(low <= 0.0 && high >= 0.0);
        stuck += usize::from(low == 0.0 && high == 0.0);
    }
    assert!(stuck > 0, "a set with one α at 0 and another at C cannot move");

    // Blocks {0, 1} and {2, 3} of one partition, each stepped together: the optimum of the dual with equal α in a block.
    for _ in 0..60 {
        let batch = Batch::random(&mut random, 4, 3, false);
        let (gram, b) = dual_of(&batch);
        let (most, blocks) = (vec![0.6; 4], [[0, 1], [2, 3]]);
        let mut alpha = vec![0.0; 4];
        for _ in 0..4000 {
            for block in &blocks {
                let slope: f64 =
                    block.iter().map(|&i| b[i] - (0..4).map(|j| gram[i * 4 + j] * alpha[j]).sum::<f64>()).sum();
                let square: f64 =
                    block.iter().flat_map(|&i| block.iter().map(move |&j| (i, j))).map(|(i, j)| gram[i * 4 + j]).sum();
                let (low, high) = joint_limits(&alpha, &most, block);
                let step = (slope / square).max(low).min(high);
                block.iter().for_each(|&i| alpha[i] += step);
                assert_eq!(alpha[block[0]], alpha[block[1]]);
            }
        }
        let sums: Vec<Vec<f64>> = blocks
            .iter()
            .map(|block| batch.combined(&[0, 1, 2, 3].map(|row| f64::from(u8::from(block.contains(&row))))))
            .collect();
        let constraints: Vec<Constraint> =
            sums.into_iter().map(|direction| Constraint { direction, margin: 2.0, cost: 0.6 }).collect();
        let expected = referee(&batch.start, &constraints, Variant::PaI);
        let mut w = batch.start.clone();
        w.iter_mut().zip(batch.combined(&alpha)).for_each(|(w, change)| *w += change);
        assert!(w.iter().zip(&expected).all(|(w, expected)| (w - expected).abs() < 1e-6));
    }
}

/// Theorem 5, corrected: rows on the wrong side are at most max{R², 1/C}·(‖u‖² + 2C·Σ losses(u)) for steps on one row;
/// for the optimum over n rows, that bounds the batches with such a row, and nR² instead of R² the rows themselves.
#[test]
fn theorem_5_mistakes_are_bounded() {
    let mut random = Random::new(8, 0, 0);
    for case in 0..12 {
        let (batches, u) = noisy_pairs(&mut random, 150, 5, [0.0, 0.5, 2.0][case % 3]);
        let c = [0.05, 0.5, 5.0][case / 4];
        let radius = largest_square(&batches, |batch| {
            dot(&batch.rows[0], &batch.rows[0]).max(dot(&batch.rows[1], &batch.rows[1]))
        });
        let losses: f64 = batches.iter().map(|batch| batch.loss(&u, 0) + batch.loss(&u, 1)).sum();
        let bound = |times: f64| (times * radius).max(1.0 / c) * (dot(&u, &u) + 2.0 * c * losses);
        for (rule, batch_bound, row_bound) in [
            (Rule::Sequential, None, None),
            (Rule::Dca, Some(bound(1.0)), Some(bound(2.0))),
            // ‖x^J‖² ≤ n²R²
            (Rule::CorrectMistakes, Some(bound(4.0)), Some(2.0 * bound(4.0))),
            (Rule::MaxViolators, Some(bound(4.0)), Some(2.0 * bound(4.0))),
        ] {
            let (mut wrong_rows, mut wrong_batches, mut at_turn, mut dual, mut least) =
                (0.0, 0.0, 0.0, 0.0, f64::INFINITY);
            pass(&batches, rule, Variant::PaI, c, |batch, w, change| {
                let wrong = (0..2).filter(|&row| batch.margin(w, row) <= 0.0).count();
                wrong_rows += wrong as f64;
                wrong_batches += f64::from(u8::from(wrong > 0));
                at_turn += f64::from(change.mistakes);
                dual += change.dual;
                least = least.min(change.least);
            });
            // Weak duality: no u has less than D.
            assert!(dual <= 0.5 * dot(&u, &u) + c * losses + 1e-9);
            // The bound that is shown while learning.
            assert!(at_turn <= dual / least + 1e-9, "{rule:?}");
            if rule == Rule::Sequential {
                assert!(at_turn <= bound(1.0));
            } else {
                assert_eq!(at_turn, wrong_batches);
            }
            assert!(batch_bound.is_none_or(|bound| wrong_batches <= bound));
            assert!(row_bound.is_none_or(|bound| wrong_rows <= bound));
        }
    }
}

#[test]
fn theorem_5_needs_n_times_the_square_for_rows_of_the_optimum() {
    // Two equal vectors y x from w = 0: two rows on the wrong side, one step, and u = (1, 0) has no loss.
    let batch = Batch::of(&[&[1.0, 0.0], &[-1.0, 0.0]], &[1.0, -1.0], &[0.0, 0.0]);
    let (mut wrong, mut batches) = (0, 0);
    pass(&[batch.clone(), batch], Rule::Dca, Variant::PaI, 10.0, |batch, w, change| {
        wrong += (0..2).filter(|&row| batch.margin(w, row) <= 0.0).count();
        batches += change.mistakes;
    });
    let stated = 1.0 * 1.0; // max{R², 1/C} · ‖u‖²
    assert!(wrong == 2 && f64::from(wrong as u32) > stated && f64::from(batches) <= stated);
}

#[test]
fn theorem_5_does_not_hold_for_single_rows_of_joint_steps_over_everything() {
    // The pair is in the right order with margin 2, so the joint step is zero, and x⁺ is on the wrong side for ever.
    let batch = Batch::of(&[&[1.0, 0.0], &[0.0, 1.0]], &[1.0, -1.0], &[-3.0, -5.0]);
    for rule in [Rule::Auc, Rule::SingleSlack] {
        let (w, change) = batch.step(rule, Variant::PaI, 10.0);
        assert_eq!((w, change.mistakes), (batch.start.clone(), 0));
        assert!(batch.margin(&batch.start, 0) < 0.0);
    }
}

/// Theorem 6, corrected: after an uncapped step, the optimum has all rows right with margin 1, steps in sequence the last
/// row, a joint step the sum of its rows.
#[test]
fn theorem_6_after_an_uncapped_step_rows_are_right() {
    let mut random = Random::new(9, 0, 0);
    for _ in 0..300 {
        for n in [2, 4] {
            let mut batch = Batch::random(&mut random, n, 8, true);
            batch.weights = vec![1.0; n];
            let margins = |rule: Rule| {
                let (w, _) = batch.step(rule, Variant::PaI, 1e7);
                (0..n).map(|row| batch.margin(&w, row)).collect::<Vec<f64>>()
            };
            assert!(margins(Rule::Dca).iter().all(|&margin| margin >= 1.0 - 1e-8));
            assert!(margins(Rule::Sequential)[n - 1] >= 1.0 - 1e-9);
            if n == 2 {
                assert!(margins(Rule::Auc).iter().sum::<f64>() >= 2.0 - 1e-9);
            }
            let mistakes: Vec<usize> = (0..n).filter(|&row| batch.loss(&batch.start, row) > 0.0).collect();
            let after = margins(Rule::CorrectMistakes);
            assert!(mistakes.iter().map(|&row| after[row]).sum::<f64>() >= mistakes.len() as f64 - 1e-8);
        }
    }
}

#[test]
fn theorem_6_is_false_for_a_joint_step() {
    let batch = Batch::of(&[&[1.0, 0.0], &[0.0, 1.0]], &[1.0, -1.0], &[-3.0, -3.0]);
    let (w, _) = batch.step(Rule::Auc, Variant::PaI, 100.0);
    assert_eq!(w[..2], [-2.0, -4.0]);
    assert!(batch.margin(&w, 0) < 0.0, "x⁺ is still on the wrong side");
    // The optimum has both right.
    let (w, _) = batch.step(Rule::Dca, Variant::PaI, 100.0);
    assert_eq!(w[..2], [1.0, -3.0]);
}

/// The second half of theorem 6: after a capped step the loss of what was stepped on has fallen: of the row, of the joint
/// vector, and for the optimum of the sum. The loss of a single member may have risen.
#[test]
fn theorem_6_after_a_capped_step_the_joint_loss_has_fallen() {
    let mut random = Random::new(10, 0, 0);
    let mut risen = [0; 2];
    for _ in 0..400 {
        let mut batch = Batch::random(&mut random, 2, 3, true);
        batch.weights = vec![1.0; 2];
        let sum = |w: &[f64]| batch.loss(w, 0) + batch.loss(w, 1);
        let of_pair = |w: &[f64]| (2.0 - batch.margin(w, 0) - batch.margin(w, 1)).max(0.0);
        for (at, rule) in [Rule::Dca, Rule::CorrectMistakes].into_iter().enumerate() {
            let (w, change) = batch.step(rule, Variant::PaI, 0.2);
            let both = (0..2).all(|row| batch.loss(&batch.start, row) > 0.0);
            if rule == Rule::Dca {
                assert!(sum(&w) <= sum(&batch.start) + 1e-12);
                assert!(change.dual == 0.0 || sum(&w) < sum(&batch.start));
            } else if both {
                assert!(of_pair(&w) <= of_pair(&batch.start) + 1e-12);
            }
            risen[at] +=
                usize::from((0..2).any(|row| batch.loss(&w, row) > batch.loss(&batch.start, row) + 1e-9 && both));
        }
        let (w, _) = batch.step(Rule::Auc, Variant::PaI, 0.2);
        assert!(of_pair(&w) <= of_pair(&batch.start) + 1e-12);
    }
    assert!(risen[0] > 0 && risen[1] > 0, "single rows may lose: {risen:?}");
}

#[test]
fn a_joint_step_is_that_of_the_single_slack_with_n_times_c() {
    let mut random = Random::new(11, 0, 0);
    for _ in 0..100 {
        let mut batch = Batch::random(&mut random, 2, 5, true);
        batch.weights = vec![1.0; 2];
        let (joint, _) = batch.step(Rule::Auc, Variant::PaI, 0.2);
        let (single, _) = batch.step(Rule::SingleSlack, Variant::PaI, 0.4);
        assert!(joint.iter().zip(&single).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

/// The appendix, first theorem: 1 − AUC ≤ E(M⁺) + E(M⁻) for any weights, with equal scores as errors and zeros as
/// mistakes of both classes. The second one is `theorems_2_and_7…`.
#[test]
fn appendix_one_minus_auc_is_at_most_the_sum_of_both_error_rates() {
    let mut random = Random::new(12, 0, 0);
    let mut close = 0;
    for _ in 0..400 {
        let scores = |random: &mut Random, shift: f64| -> Vec<f64> {
            (0..1 + random.below(12)).map(|_| (2.0 * (random.normal() + shift)).round() / 2.0).collect()
        };
        let shift = 2.0 * random.uniform() - 0.5;
        let (positive, negative) = (scores(&mut random, shift), scores(&mut random, -shift));
        let pairs = (positive.len() * negative.len()) as f64;
        let wrong = positive.iter().flat_map(|p| negative.iter().map(move |n| p <= n)).filter(|wrong| *wrong).count();
        let missed = positive.iter().filter(|score| **score <= 0.0).count() as f64 / positive.len() as f64;
        let alarms = negative.iter().filter(|score| **score >= 0.0).count() as f64 / negative.len() as f64;
        let loss = wrong as f64 / pairs;
        assert!(loss <= missed + alarms + 1e-12);
        close += usize::from(loss > 0.0 && missed + alarms - loss < 1e-9);
    }
    assert!(close > 0, "the bound is reached");
}

/// A stream in which one row in `one_in` is positive.
fn skewed(rows: usize, one_in: usize, seed: u64, sparse: bool) -> (Matrix, Vec<bool>) {
    let (mut random, features) = (Random::new(seed, 4, 0), 12);
    let truth: Vec<f64> = (0..features).map(|_| random.normal()).collect();
    let positive: Vec<bool> = (0..rows).map(|row| row % one_in == one_in - 1).collect();
    let values: Vec<Vec<f64>> = positive
        .iter()
        .map(|&positive| {
            let shift = if positive { 1.0 } else { -1.0 };
            truth.iter().map(|t| if random.chance(0.3) { 0.0 } else { shift * t + 1.5 * random.normal() }).collect()
        })
        .collect();
    if !sparse {
        return (Matrix::DenseF64(Dense::new(values.concat(), rows, features).expect("rows")), positive);
    }
    let (mut starts, mut indices, mut entries) = (vec![0u64], Vec::<u32>::new(), Vec::<f64>::new());
    for row in values {
        for (column, value) in row.into_iter().enumerate().filter(|entry| entry.1 != 0.0) {
            indices.push(column as u32);
            entries.push(value);
        }
        starts.push(indices.len() as u64);
    }
    (Matrix::Csr32F64(Csr::new(starts, indices, entries, features).expect("rows")), positive)
}

fn ways(rule: Rule, batch: usize, average: Option<u64>) -> Ways {
    Ways { rule, variant: Variant::PaI, c: 0.5, intercept: true, batch, reservoir: 16, average }
}

/// A learner over rows of a matrix.
#[derive(Clone)]
struct Run {
    ways: Ways,
    rule: PairedRule,
    point: LinearPoint,
    rows: u64,
}

impl Run {
    fn new(ways: Ways) -> Run {
        let point = LinearPoint::new(1, Intercept::Penalised, ways.average.is_some());
        Run { ways, rule: PairedRule::new(ways), point, rows: 0 }
    }

    /// Learns from rows, and returns their scores before.
    fn learn(&mut self, matrix: &Matrix, signs: &[f64], weights: &[f64], range: std::ops::Range<usize>) -> Vec<f64> {
        self.point.grow(matrix.cols());
        let mut predicted = Vec::new();
        with_rows!(matrix, rows => for row in range {
            let (score, own) = self.point.both_scores(rows, row);
            predicted.push(own);
            let batch = Rows { start: row, signs: &signs[row..=row], weights: &weights[row..=row], scores: &[score] };
            self.rule.step(rows, &batch, self.rows, &mut self.point);
            self.rows += 1;
        });
        predicted
    }

    /// The same after everything that the rule remembers went through a state.
    fn stored(self) -> Run {
        let mut state = OnlineState::default();
        self.rule.put(&mut state);
        let mut rule = PairedRule::new(self.ways);
        rule.take(&state, 0).expect("what was put can be taken");
        Run { rule, ..self }
    }

    fn weights(&self) -> Vec<f64> {
        let (vector, constants) = self.point.point();
        [vector, constants].concat()
    }
}

fn signs_of(positive: &[bool]) -> Vec<f64> {
    positive.iter().map(|&positive| if positive { 1.0 } else { -1.0 }).collect()
}

#[test]
fn dense_and_sparse_rows_in_any_blocks_give_the_same_weights() {
    for rule in Rule::ALL {
        for (batch, average) in [(2, None), (6, Some(40))] {
            let learned = |sparse: bool, block: usize| {
                let (matrix, positive) = skewed(500, 7, 3, sparse);
                let mut run = Run::new(ways(rule, batch, average));
                let mut scores = Vec::new();
                for start in (0..500).step_by(block) {
                    let range = start..(start + block).min(500);
                    scores.extend(run.learn(&matrix, &signs_of(&positive), &[1.0; 500], range));
                    if block < 500 {
                        // A learner that goes on from the state is the same.
                        run = run.stored();
                    }
                }
                (run, scores)
            };
            let (whole, scores) = learned(false, 500);
            let (cut, others) = learned(false, 33);
            assert_eq!((cut.weights(), others), (whole.weights(), scores.clone()));
            assert_eq!(cut.rule.bounds(), whole.rule.bounds());
            let (sparse, other) = learned(true, 500);
            assert!(scores.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-6), "{rule:?} {batch}");
            assert_eq!(learned(true, 29).0.weights(), sparse.weights());
            let bounds = sparse.rule.bounds();
            assert!(bounds.mistakes() > 0);
            assert!(bounds.mistakes() as f64 <= bounds.mistake_bound().expect("a bound") + 1e-9);
        }
    }
}

#[test]
fn a_state_that_does_not_fit_is_refused() {
    let (matrix, positive) = skewed(100, 7, 3, true);
    let mut run = Run::new(ways(Rule::Dca, 2, None));
    run.learn(&matrix, &signs_of(&positive), &[1.0; 100], 0..100);
    let mut state = OnlineState::default();
    run.rule.put(&mut state);
    let taken = |state: &OnlineState| PairedRule::new(run.ways).take(state, 0).is_some();
    assert!(taken(&state));
    for name in ["rows-places", "rows-lengths", "rows-indices", "mistakes"] {
        let mut damaged = state.clone();
        let counts = state.counts(name).expect("counts");
        damaged.put_counts(name, counts[1..].to_vec());
        assert!(!taken(&damaged), "{name}");
    }
    for name in ["rows-values", "rows-weights", "dual"] {
        let mut damaged = state.clone();
        let reals = state.reals(name).expect("reals");
        damaged.put_reals(name, reals[1..].to_vec());
        assert!(!taken(&damaged), "{name}");
    }
    let mut damaged = state.clone();
    damaged.put_counts("rows-places", vec![400, 0, 0, 16, 0, 0, 0, 14]);
    assert!(!taken(&damaged));
}

#[test]
fn the_average_is_the_mean_of_the_weights_after_each_row() {
    let (matrix, positive) = skewed(200, 3, 5, false);
    for before in [0u64, 20] {
        let (mut run, mut last) = (Run::new(ways(Rule::Dca, 2, Some(before))), Run::new(ways(Rule::Dca, 2, None)));
        let (mut sum, mut count) = (vec![0.0; 13], 0.0);
        for row in 0..200 {
            run.learn(&matrix, &signs_of(&positive), &[1.0; 200], row..row + 1);
            last.learn(&matrix, &signs_of(&positive), &[1.0; 200], row..row + 1);
            if row as u64 >= before {
                sum.iter_mut().zip(last.weights()).for_each(|(sum, w)| *sum += w);
                count += 1.0;
            }
        }
        for (found, sum) in run.weights().iter().zip(&sum) {
            assert!((found - sum / count).abs() < 1e-9);
        }
    }
}

#[test]
fn batches_are_balanced_though_the_stream_is_not() {
    for rule in [Rule::Dca, Rule::Sequential, Rule::Auc] {
        let (matrix, positive) = skewed(4000, 50, 8, true);
        let learned = |rule: Rule| {
            let mut run = Run::new(ways(rule, 2, None));
            let scores = run.learn(&matrix, &signs_of(&positive), &[1.0; 4000], 0..4000);
            let rows = scores.iter().zip(&positive).filter(|row| *row.1);
            let missed = rows.clone().filter(|row| *row.0 <= 0.0).count() as f64 / rows.count() as f64;
            (run, missed)
        };
        let ((run, missed), (_, alone)) = (learned(rule), learned(Rule::Single));
        let (lengths, bytes) = run.rule.kept().expect("rows are kept");
        assert_eq!(lengths, [16, 16]);
        assert!(bytes <= 32 * 12 * 16);
        assert!(rule == Rule::Auc || missed < alone, "{rule:?} {missed} {alone}");
    }
}

#[test]
fn a_stream_of_one_class_is_stored_and_not_learned_from_in_batches() {
    let (matrix, _) = skewed(50, 7, 3, false);
    for rule in Rule::ALL {
        let mut run = Run::new(ways(rule, 4, None));
        run.learn(&matrix, &[-1.0; 50], &[1.0; 50], 0..50);
        assert_eq!(run.weights().iter().any(|w| *w != 0.0), rule == Rule::Single);
    }
}

#[test]
fn weights_of_rows_multiply_c_and_rows_of_weight_zero_teach_nothing() {
    let (matrix, positive) = skewed(300, 2, 9, false);
    for rule in Rule::ALL {
        let learned = |weight: f64, c: f64| {
            let weights: Vec<f64> = (0..300).map(|row| if row % 5 == 0 { 0.0 } else { weight }).collect();
            let mut run = Run::new(Ways { c, ..ways(rule, 2, None) });
            run.learn(&matrix, &signs_of(&positive), &weights, 0..300);
            run.weights()
        };
        let (weighted, plain) = (learned(4.0, 0.1), learned(1.0, 0.4));
        assert!(weighted.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-9), "{rule:?}");
    }
}
