//! Ranking by clicks that are weighted with inverse propensities.
//!
//! ```text
//! min  ½‖w‖² + C · Σ_lists Σ_{i in list} t_i Σ_{j ≠ i in list} c_ij · loss(1 − (s_i − s_j)),   s = Xw
//! ```
//! A group is a list of results that were shown together, and the target t_i of a row is the sum of the inverse
//! propensities of the clicks on it: 1/p for a click at a place that is looked at with probability p. A clicked result is
//! to score above **every** other result of its list, clicked or not. If results are clicked whenever they are looked at and
//! relevant, the expected value is that of the same objective with the true relevance in place of t. c_ij is u_i u_j with
//! u the row weights, times the factor of `per-query`. The loss is the hinge, the squared hinge, or the hinge smoothed
//! over a width.
//!
//! A list is one part. One sort by score, then sums from either end: with rows in ascending order of score, the rows that
//! violate the margin below row i are those from a first place p_i on, and p_i does not decrease with i. The rows whose
//! margin row j violates are then those with p_i ≤ j. Row i itself is among the first with violation 1 exactly; its share is
//! subtracted from the value, and cancels in the slopes. O(n log n) for value and slopes, O(n · m) for m products with the
//! Hessian.
//!
//! Reference: Joachims, Swaminathan & Schnabel, Unbiased learning-to-rank with biased feedback, WSDM 2017 (their C is ours
//! times the number of clicks).

use super::Shape;
use crate::certificate::Decoder;
use crate::data::{Dataset, Subset, counts};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::parallel;
use crate::task::{Curvature, Directions, LearningTask, Objective, Place, Roundable, Slopes};
use std::ops::Range;
use std::sync::Arc;

/// The task: lists of results, and what a click on each result weighs.
#[derive(Clone, Debug)]
pub struct ClickRanking {
    lists: Arc<Vec<List>>,
    shape: Shape,
    c: f64,
    pairs: u64,
    without: usize,
}

/// A list with a click and at least one other result.
#[derive(Clone, Debug)]
struct List {
    rows: Range<usize>,
    /// What row i weighs as the clicked one: t_i u_i times the factor of the list.
    clicked: Vec<f64>,
    /// What it weighs as the other one: u_i.
    other: Option<Vec<f64>>,
}

impl List {
    fn of(rows: Range<usize>, targets: &[f64], weights: Option<&[f64]>, per_query: bool) -> List {
        let other = weights.map(|weights| weights[rows.clone()].to_vec());
        let mut clicked = targets[rows.clone()].to_vec();
        if let Some(other) = &other {
            clicked.iter_mut().zip(other).for_each(|(clicked, weight)| *clicked *= weight);
        }
        let mut list = List { rows, clicked, other };
        if per_query {
            let total = list.total();
            let factor = if total > 0.0 { 1.0 / total } else { 0.0 };
            list.clicked.iter_mut().for_each(|clicked| *clicked *= factor);
        }
        list
    }

    fn weight(&self, row: usize) -> f64 {
        self.other.as_ref().map_or(1.0, |other| other[row])
    }

    /// The sum of the weights of all pairs.
    fn total(&self) -> f64 {
        let all: f64 = (0..self.clicked.len()).map(|row| self.weight(row)).sum();
        self.clicked.iter().enumerate().map(|(row, clicked)| clicked * (all - self.weight(row)).max(0.0)).sum()
    }

    fn pairs(&self) -> u64 {
        let clicks = self.clicked.iter().filter(|weight| **weight > 0.0).count();
        clicks as u64 * (self.clicked.len() as u64 - 1)
    }
}

impl ClickRanking {
    /// A task over the lists of the data, whose targets are sums of inverse propensities of clicks.
    pub fn new(data: &Dataset, loss: Loss, per_query: bool, c: f64) -> Result<ClickRanking> {
        ClickRanking::on(data, loss, per_query, c, None)
    }

    /// The same over some of the lists: those whose rows are in the subset.
    pub fn on(data: &Dataset, loss: Loss, per_query: bool, c: f64, subset: Option<&Subset>) -> Result<ClickRanking> {
        let shape = Shape::of(loss, "ranking by clicks")?;
        let targets = data.targets().real()?;
        let groups = data.groups().ok_or_else(|| {
            Error::new(
                Code::NoGroups,
                "clicks are compared with the other results of their list, and rows have no lists",
            )
            .help("add qid:ID to the rows, or name the column with ⟦group⟧")
        })?;
        if let Some(row) = targets.iter().position(|target| !(*target >= 0.0 && target.is_finite())) {
            let message = format!("a target is {}, and the weight of clicks is a number of zero or more", targets[row]);
            return Err(Error::new(Code::BadTarget, message)
                .help("give the sum of 1/p over the clicks on the row, or leave ⟦targets-are⟧ out for grades"));
        }
        let seen: Vec<Range<usize>> = groups.ranges().filter(|range| counts(subset, range.start)).collect();
        let mut lists: Vec<List> =
            parallel::map(seen.len(), |at| List::of(seen[at].clone(), targets, data.weights(), per_query));
        lists.retain(|list| list.rows.len() > 1 && list.clicked.iter().any(|weight| *weight > 0.0));
        let without = seen.len() - lists.len();
        let pairs = lists.iter().map(List::pairs).sum();
        if pairs == 0 {
            return Err(Error::new(
                Code::NoPairs,
                "no list has a click and another result, so there is nothing to rank",
            )
            .help("check that results were clicked, and that a list holds more than the clicked result"));
        }
        Ok(ClickRanking { lists: Arc::new(lists), shape, c, pairs, without })
    }

    /// Number of pairs of a clicked result and another one of its list.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Number of lists from which nothing is learned: nothing was clicked, or nothing else was shown.
    pub fn lists_without_pairs(&self) -> usize {
        self.without
    }
}

/// A list in ascending order of score, with the scores measured from their middle.
struct Sorted {
    scores: Vec<f64>,
    clicked: Vec<f64>,
    other: Vec<f64>,
}

impl Sorted {
    fn new(list: &List, order: &[u32], scores: &[f64]) -> Sorted {
        let middle = match (order.first(), order.last()) {
            (Some(&low), Some(&high)) => 0.5 * scores[low as usize] + 0.5 * scores[high as usize],
            _ => 0.0,
        };
        Sorted {
            scores: order.iter().map(|&row| scores[row as usize] - middle).collect(),
            clicked: order.iter().map(|&row| list.clicked[row as usize]).collect(),
            other: order.iter().map(|&row| list.weight(row as usize)).collect(),
        }
    }

    fn len(&self) -> usize {
        self.scores.len()
    }

    /// For each place, the first place whose row violates the margin below it.
    fn firsts(&self, margin: f64) -> Vec<usize> {
        let mut first = 0;
        let next = |score: f64| {
            while first < self.len() && self.scores[first] <= score - margin {
                first += 1;
            }
            first
        };
        self.scores.iter().copied().map(next).collect()
    }

    /// Sums over the violated pairs, and the slopes of `linear` times the hinge plus `square` times its square, added to
    /// `slopes` by place.
    fn sums(&self, margin: f64, linear: f64, square: f64, slopes: &mut [f64]) -> Sums {
        let (n, firsts) = (self.len(), self.firsts(margin));
        // The other rows from the top down: sums of b, b·s and b·s².
        let mut sums = Sums::default();
        let (mut from, mut b) = (n, [0.0; 3]);
        for place in (0..n).rev() {
            while from > firsts[place] {
                from -= 1;
                let (score, weight) = (self.scores[from], self.other[from]);
                b = [b[0] + weight, b[1] + weight * score, b[2] + weight * score * score];
            }
            let clicked = self.clicked[place];
            if clicked == 0.0 {
                continue;
            }
            let t = margin - self.scores[place];
            let (hinge, squares) = (b[1] + t * b[0], b[2] + 2.0 * t * b[1] + t * t * b[0]);
            // The row itself violates the margin by the whole of it.
            let own = self.other[place] * margin.max(0.0);
            sums.hinge += clicked * (hinge - own).max(0.0);
            sums.squares += clicked * (squares - own * margin).max(0.0);
            sums.summed += clicked * (b[2] + 2.0 * (t * b[1]).abs() + t * t * b[0]);
            slopes[place] -= clicked * (linear * b[0] + 2.0 * square * hinge);
        }
        // The clicked rows from the bottom up: sums of a and a·(margin − s).
        let (mut to, mut a) = (0, [0.0; 2]);
        for (place, slope) in slopes.iter_mut().enumerate() {
            while to < n && firsts[to] <= place {
                a = [a[0] + self.clicked[to], a[1] + self.clicked[to] * (margin - self.scores[to])];
                to += 1;
            }
            *slope += self.other[place] * (linear * a[0] + 2.0 * square * (a[1] + self.scores[place] * a[0]));
        }
        sums
    }

    /// Second derivatives of the squares: the diagonal, added to `diagonal` by place.
    fn diagonal(&self, margin: f64, weight: f64, diagonal: &mut [f64]) {
        let firsts = self.firsts(margin);
        let mut above = vec![0.0; self.len() + 1];
        for place in (0..self.len()).rev() {
            above[place] = above[place + 1] + self.other[place];
        }
        let (mut to, mut a) = (0, 0.0);
        for place in 0..self.len() {
            while to < self.len() && firsts[to] <= place {
                a += self.clicked[to];
                to += 1;
            }
            let (clicked, other) = (self.clicked[place], self.other[place]);
            let own = if firsts[place] <= place { 2.0 * clicked * other } else { 0.0 };
            diagonal[place] += 2.0 * weight * (clicked * above[firsts[place]] + other * a - own);
        }
    }

    /// The Hessian of the squares times `m` directions, added to `out`; both hold `m` numbers for each place.
    fn curvature(&self, margin: f64, weight: f64, m: usize, directions: &[f64], out: &mut [f64]) {
        let (n, firsts) = (self.len(), self.firsts(margin));
        let (mut from, mut b, mut along) = (n, 0.0, vec![0.0; m]);
        for place in (0..n).rev() {
            while from > firsts[place] {
                from -= 1;
                b += self.other[from];
                along.iter_mut().zip(&directions[m * from..]).for_each(|(sum, d)| *sum += self.other[from] * d);
            }
            let factor = 2.0 * weight * self.clicked[place];
            let own = directions[m * place..].iter().zip(&along);
            out[m * place..][..m].iter_mut().zip(own).for_each(|(out, (d, sum))| *out += factor * (b * d - sum));
        }
        let (mut to, mut a) = (0, 0.0);
        along.fill(0.0);
        for place in 0..n {
            while to < n && firsts[to] <= place {
                a += self.clicked[to];
                along.iter_mut().zip(&directions[m * to..]).for_each(|(sum, d)| *sum += self.clicked[to] * d);
                to += 1;
            }
            let factor = 2.0 * weight * self.other[place];
            let own = directions[m * place..].iter().zip(&along);
            out[m * place..][..m].iter_mut().zip(own).for_each(|(out, (d, sum))| *out += factor * (a * d - sum));
        }
    }
}

/// Sums over the violated pairs of a list.
#[derive(Default)]
struct Sums {
    hinge: f64,
    squares: f64,
    /// The total of the numbers whose sum the squares are, without their signs.
    summed: f64,
}

/// What a list remembers from its last evaluation.
#[derive(Debug, Default)]
pub struct ClickMemo {
    /// The rows in ascending order of score.
    order: Vec<u32>,
    /// The value, that of the hinge, and that of the hinge with its margin lowered by the width, without C.
    value: f64,
    hinge: f64,
    saturated: f64,
    summed: f64,
}

impl LearningTask for ClickRanking {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        self.c * self.lists.iter().map(List::total).sum::<f64>()
    }

    fn constraints(&self) -> u64 {
        self.pairs
    }

    fn unit(&self) -> &'static str {
        "pair"
    }

    fn decoder(&self, _: &[f64]) -> Decoder {
        Decoder::Rank
    }
}

impl Objective for ClickRanking {
    type Memo = ClickMemo;

    fn parts(&self) -> usize {
        self.lists.len()
    }

    fn rows(&self, part: usize) -> Range<usize> {
        self.lists[part].rows.clone()
    }

    fn thresholds(&self) -> usize {
        0
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut ClickMemo) -> Result<f64> {
        let list = &self.lists[at.part];
        memo.order.clear();
        memo.order.extend(0..at.scores.len() as u32);
        memo.order
            .sort_unstable_by(|&a, &b| at.scores[a as usize].total_cmp(&at.scores[b as usize]).then_with(|| a.cmp(&b)));
        let sorted = Sorted::new(list, &memo.order, at.scores);
        let mut by_place = vec![0.0; sorted.len()];
        if self.shape == Shape::Hinge {
            memo.value = sorted.sums(1.0, 1.0, 0.0, &mut by_place).hinge;
        } else {
            (memo.value, memo.summed) = (0.0, 0.0);
            for (number, (margin, share)) in self.shape.squared_parts(1.0).into_iter().enumerate() {
                let sums = sorted.sums(margin, 0.0, share, &mut by_place);
                memo.value += share * sums.squares;
                memo.summed += share.abs() * sums.summed;
                *if number == 0 { &mut memo.hinge } else { &mut memo.saturated } = sums.hinge;
            }
        }
        for (&row, slope) in memo.order.iter().zip(&by_place) {
            slopes.scores[row as usize] = self.c * slope;
        }
        Ok(self.c * memo.value)
    }
}

impl Curvature for ClickRanking {
    fn diagonal(&self, at: &Place<'_>, memo: &ClickMemo, out: &mut [f64]) -> Result<()> {
        let sorted = Sorted::new(&self.lists[at.part], &memo.order, at.scores);
        let mut by_place = vec![0.0; sorted.len()];
        for (margin, share) in self.shape.squared_parts(1.0) {
            sorted.diagonal(margin, share, &mut by_place);
        }
        for (&row, diagonal) in memo.order.iter().zip(&by_place) {
            out[row as usize] = self.c * diagonal;
        }
        Ok(())
    }

    fn only_differences_count(&self) -> bool {
        true
    }

    fn curvature(&self, at: &Place<'_>, memo: &ClickMemo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let (m, n) = (along.count, memo.order.len());
        let sorted = Sorted::new(&self.lists[at.part], &memo.order, at.scores);
        let mut directions = Vec::with_capacity(m * n);
        for &row in &memo.order {
            directions.extend_from_slice(&along.scores[m * row as usize..][..m]);
        }
        let mut by_place = vec![0.0; m * n];
        for (margin, share) in self.shape.squared_parts(1.0) {
            sorted.curvature(margin, share, m, &directions, &mut by_place);
        }
        for (place, &row) in memo.order.iter().enumerate() {
            let own = &by_place[m * place..][..m];
            let out = &mut out.scores[m * row as usize..][..m];
            out.iter_mut().zip(own).for_each(|(out, value)| *out = self.c * value);
        }
        Ok(())
    }
}

impl Roundable for ClickRanking {
    fn rounded(&self, width: f64) -> ClickRanking {
        debug_assert!(self.shape != Shape::SquaredHinge);
        ClickRanking { shape: Shape::Rounded(width), ..self.clone() }
    }

    /// Values of the smoothed hinge are differences of larger sums, which is why there is an error.
    fn rounding(&self, _: usize, memo: &ClickMemo) -> [f64; 3] {
        let error = 16.0 * f64::EPSILON * (memo.summed + memo.hinge);
        [self.c * memo.hinge, self.c * (memo.value - memo.saturated), self.c * error]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Groups, Matrix, Targets};
    use crate::run::Cancel;
    use proptest::prelude::*;

    fn task(
        targets: &[f64],
        weights: Option<&[f64]>,
        loss: Loss,
        per_query: bool,
        groups: Option<Groups>,
    ) -> Result<ClickRanking> {
        let rows = targets.len();
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; rows], rows, 1)?);
        let groups = groups.unwrap_or_else(|| Groups::one(rows));
        let mut data = Dataset::new(matrix, Targets::Real(targets.to_vec().into()))?.with_groups(groups)?;
        if let Some(weights) = weights {
            data = data.with_weights(weights.to_vec())?;
        }
        ClickRanking::new(&data, loss, per_query, 0.7)
    }

    proptest! {
        #[test]
        fn one_sort_equals_the_sum_over_listed_pairs(
            rows in prop::collection::vec((0..4i32, -30..30i32, 0..4u8, -5.0..5.0f64), 2..50),
            weighted in any::<bool>(),
            per_query in any::<bool>(),
            rounded in prop::sample::select(vec![None, Some(0.25), Some(1.0), Some(1.5)]),
            loss in prop::sample::select(vec![Loss::Hinge, Loss::SquaredHinge]),
            offset in prop::sample::select(vec![0.0, 1048576.0]),
        ) {
            let targets: Vec<f64> = rows.iter().map(|r| f64::from(r.0) * 1.7).collect();
            let scores: Vec<f64> = rows.iter().map(|r| offset + f64::from(r.1) / 8.0).collect();
            let weights: Vec<f64> = rows.iter().map(|r| f64::from(r.2) / 2.0).collect();
            let direction: Vec<f64> = rows.iter().flat_map(|r| [r.3, r.3 * r.3 - 1.0]).collect();
            let n = rows.len();
            let u = |i: usize| if weighted { weights[i] } else { 1.0 };
            let listed: Vec<(usize, usize)> =
                (0..n).flat_map(|i| (0..n).filter(move |j| *j != i).map(move |j| (i, j))).collect();
            let total: f64 = listed.iter().map(|&(i, j)| targets[i] * u(i) * u(j)).sum();
            let Ok(task) = task(&targets, weighted.then_some(&weights), loss, per_query, None) else {
                prop_assert_eq!(total, 0.0);
                return Ok(());
            };
            let rounded = rounded.filter(|_| loss == Loss::Hinge);
            let task = rounded.map_or(task.clone(), |delta| task.rounded(delta));
            let factor = match per_query {
                true if total > 0.0 => 1.0 / total,
                true => 0.0,
                false => 1.0,
            };
            let (mut value, mut hinge, mut excess, mut cost) = (0.0, 0.0, 0.0, 0.0);
            let (mut slope, mut diagonal, mut curved) = (vec![0.0; n], vec![0.0; n], vec![0.0; 2 * n]);
            for &(i, j) in &listed {
                let c = 0.7 * factor * targets[i] * u(i) * u(j);
                let v = 1.0 - (scores[i] - scores[j]);
                cost += c;
                if v <= 0.0 {
                    continue;
                }
                hinge += c * v;
                let (loss, first, second) = match (rounded, loss) {
                    (None, Loss::Hinge) => (v, 1.0, 0.0),
                    (None, _) => (v * v, 2.0 * v, 2.0),
                    (Some(delta), _) if v > delta => (v - 0.5 * delta, 1.0, 0.0),
                    (Some(delta), _) => (v * v / (2.0 * delta), v / delta, 1.0 / delta),
                };
                value += c * loss;
                excess += 0.5 * rounded.unwrap_or(0.0) * c * first * first;
                slope[i] -= c * first;
                slope[j] += c * first;
                diagonal[i] += c * second;
                diagonal[j] += c * second;
                for m in 0..2 {
                    let d = c * second * (direction[2 * i + m] - direction[2 * j + m]);
                    curved[2 * i + m] += d;
                    curved[2 * j + m] -= d;
                }
            }
            let mut memo = ClickMemo::default();
            let at = Place { part: 0, scores: &scores, thresholds: &[], cancel: &Cancel::new() };
            let (mut fast_slope, mut fast_diagonal, mut fast_curved) = (vec![0.0; n], vec![0.0; n], vec![0.0; 2 * n]);
            let fast = task
                .evaluate(&at, Slopes { scores: &mut fast_slope, thresholds: &mut [] }, &mut memo)
                .expect("a value");
            task.diagonal(&at, &memo, &mut fast_diagonal).expect("a diagonal");
            let along = Directions { count: 2, scores: &direction, thresholds: &[] };
            task.curvature(&at, &memo, &along, Slopes { scores: &mut fast_curved, thresholds: &mut [] })
                .expect("curvature");
            let close = |a: f64, b: f64, scale: f64| (a - b).abs() <= 1e-9 * (1.0 + scale);
            prop_assert!(close(task.total_cost(), cost, cost), "{} {}", task.total_cost(), cost);
            prop_assert!(close(fast, value, hinge.max(value)), "{fast} {value}");
            if rounded.is_some() {
                let [fast_hinge, fast_excess, error] = task.rounding(0, &memo);
                prop_assert!((0.0..=1e-9 * (1.0 + 100.0 * hinge)).contains(&error));
                prop_assert!(close(fast_hinge, hinge, hinge) && close(fast_excess, excess, hinge));
            }
            let fast = fast_slope.iter().chain(&fast_diagonal).chain(&fast_curved);
            for (a, b) in fast.zip(slope.iter().chain(&diagonal).chain(&curved)) {
                prop_assert!(close(*a, *b, 10.0 * b.abs().max(hinge)), "{a} {b}");
            }
        }
    }

    #[test]
    fn lists_without_a_click_or_another_result_teach_nothing() {
        let groups = Groups::new(vec![0, 1, 3, 6], ["a", "b", "c"].iter().collect()).expect("groups");
        let targets = [2.0, 0.0, 0.0, 1.0, 3.0, 0.0];
        let task = task(&targets, None, Loss::Hinge, false, Some(groups)).expect("pairs");
        assert_eq!((task.pairs(), task.lists_without_pairs()), (4, 2));
        assert_eq!(
            super::tests::task(&[1.0], None, Loss::Hinge, false, None).expect_err("alone").code(),
            Code::NoPairs
        );
    }

    #[test]
    fn weights_of_clicks_below_zero_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            let error = task(&[bad, 1.0], None, Loss::Hinge, false, None).expect_err("no weight");
            assert_eq!(error.code(), Code::BadTarget);
        }
    }
}
