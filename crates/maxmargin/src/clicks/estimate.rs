//! How likely each place is to be looked at, estimated from a log in which results were shown at more than one place.
//!
//! **Harvesting.** A result of a query that was shown n_k times at place k and n_l times at place l was equally relevant in
//! both, so its rates of clicks a_k/n_k and a_l/n_l are to each other like the probabilities p_k and p_l that the places are
//! looked at. Over all such results, with the weights of Mantel and Haenszel,
//!
//! ```text
//! c_kl = Σ a_k n_l / (n_k + n_l),     c_lk = Σ a_l n_k / (n_k + n_l),     E c_kl / E c_lk = p_k / p_l
//! ```
//! which stays usable when each result was shown a few times only. All couples of places are joined by maximising
//! Σ_kl c_kl log(p_k / (p_k + p_l)), which is concave in the logarithms of p: the places are compared like players, and c_kl
//! is how often k won against l. Newton's method on as many unknowns as there are places.
//!
//! **Swaps.** The same with the first place alone: p_k / p_1 = c_k1 / c_1k.
//!
//! **Regression by expectation-maximisation**: see `regression.rs`. It needs no result at two places, but it believes in
//! its model of relevance.
//!
//! Intervals are those of a grouped jackknife: queries are dealt to 40 groups by their names, and each group is left out
//! once. With fewer than 80 queries, results are dealt instead.
//!
//! References: Agarwal, Zaitsev, Wang, Li, Najork & Joachims, Estimating position bias without intrusive interventions,
//! WSDM 2019 (all couples of places; their likelihood has a relevance for each couple); Joachims, Swaminathan & Schnabel,
//! WSDM 2017 (swaps); Wang, Golbandi, Bendersky, Metzler & Najork, WSDM 2018 (regression). Joining the couples as
//! comparisons is new.

use super::curve::Curve;
use super::join::Keyed;
use super::regression::by_regression;
use super::{ClickLog, Event};
use crate::error::{Code, Error, Result};
use crate::run::Cancel;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// How propensities are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// From all couples of places at which a result was shown.
    Harvest,
    /// From results that were shown at the first place and at another one.
    Swaps,
    /// By a model of relevance, with expectation-maximisation.
    RegressionEm,
}

impl Estimator {
    /// All of them.
    pub const ALL: [Estimator; 3] = [Estimator::Harvest, Estimator::Swaps, Estimator::RegressionEm];

    /// The name used in flags.
    pub fn name(self) -> &'static str {
        match self {
            Estimator::Harvest => "harvest",
            Estimator::Swaps => "swaps",
            Estimator::RegressionEm => "regression-em",
        }
    }
}

/// What is known of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PositionEstimate {
    /// The place, from 1.
    pub position: u32,
    /// How often something was shown there.
    pub shown: u64,
    /// How often it was clicked.
    pub clicks: u64,
    /// How likely it is looked at, relative to the place that is looked at most; none if the log does not tell.
    pub value: Option<f64>,
    /// A 95 % interval of the value, relative to the first place that has one, whose own interval is that one value.
    pub interval: Option<(f64, f64)>,
}

/// An estimated curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// How it was made.
    pub estimator: Estimator,
    /// Every place up to the last.
    pub positions: Vec<PositionEstimate>,
    /// Results of queries that were shown at more than one place.
    pub moved: u64,
}

impl Estimate {
    /// The curve for learning. A place without an estimate takes that of the next known place above it, which is rather too
    /// high than too low; too high is the safe side. Also returns these places.
    pub fn curve(&self) -> Result<(Curve, Vec<u32>)> {
        let first = self.positions.iter().find_map(|place| place.value);
        let Some(mut last) = first else {
            return Err(Error::new(
                Code::BadPropensity,
                "no propensity of any position can be estimated from this log",
            )
            .help("results must be shown at more than one position; or use ⟦propensity=power:1⟧"));
        };
        let mut filled = Vec::new();
        let values = self.positions.iter().map(|place| {
            match place.value {
                Some(value) => last = value,
                None if place.shown > 0 => filled.push(place.position),
                None => {}
            }
            Some(last)
        });
        Ok((Curve { values: values.collect() }, filled))
    }
}

/// With more places than this, the couples of places are too many.
const MOST_PLACES: u32 = 500;

/// Groups of the jackknife.
const GROUPS: usize = 40;

/// Estimates the curve. Regression uses the features of results, if they are given.
pub fn estimate(
    log: &ClickLog,
    estimator: Estimator,
    features: Option<&Keyed<'_>>,
    cancel: &Cancel,
) -> Result<Estimate> {
    let places = log.positions();
    if places > MOST_PLACES {
        return Err(Error::new(Code::BadClickLog, format!("lists go down to position {places}"))
            .help(format!("propensities are estimated for at most {MOST_PLACES} positions: leave the others out")));
    }
    let mut positions: Vec<PositionEstimate> =
        (1..=places).map(|position| PositionEstimate { position, ..PositionEstimate::default() }).collect();
    for event in log.events() {
        let place = &mut positions[event.position as usize - 1];
        place.shown += 1;
        place.clicks += u64::from(event.clicked);
    }
    let n = places as usize;
    let (groups, moved) = couples(log, n);
    cancel.check()?;
    if estimator == Estimator::RegressionEm {
        let values = by_regression(log, n, features, cancel)?;
        positions.iter_mut().zip(values).for_each(|(place, value)| place.value = value);
        return Ok(Estimate { estimator, positions, moved });
    }
    let all = groups.iter().fold(vec![0.0; n * n], |mut all, group| {
        all.iter_mut().zip(group).for_each(|(sum, value)| *sum += value);
        all
    });
    let solved = |wins: &[f64]| match estimator {
        Estimator::Swaps => against_first(wins, n),
        _ => compared(wins, n),
    };
    let logs = solved(&all);
    let used: Vec<&Vec<f64>> = groups.iter().filter(|group| group.iter().any(|value| *value > 0.0)).collect();
    let left_out: Vec<Vec<Option<f64>>> = crate::parallel::map(used.len(), |group| {
        let rest: Vec<f64> = all.iter().zip(used[group]).map(|(all, own)| (all - own).max(0.0)).collect();
        solved(&rest)
    });
    cancel.check()?;
    let most = logs.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    for (at, place) in positions.iter_mut().enumerate() {
        let Some(value) = logs[at] else { continue };
        place.value = Some((value - most).exp());
        let others: Option<Vec<f64>> = left_out.iter().map(|logs| logs[at]).collect();
        // Too few groups say little about the spread.
        if let Some(others) = others.filter(|others| others.len() >= GROUPS / 4) {
            let count = others.len() as f64;
            let mean = others.iter().sum::<f64>() / count;
            let spread = others.iter().map(|other| (other - mean).powi(2)).sum::<f64>() * (count - 1.0) / count;
            let half = 1.959_964 * spread.sqrt();
            place.interval = Some(((value - half - most).exp(), (value + half - most).exp()));
        }
    }
    Ok(Estimate { estimator, positions, moved })
}

/// The sums c_kl of each group of the jackknife, and how many results were shown at more than one place.
fn couples(log: &ClickLog, n: usize) -> (Vec<Vec<f64>>, u64) {
    let by_result = log.queries().len() < 2 * GROUPS;
    let mut groups = vec![vec![0.0; n * n]; GROUPS];
    let mut moved = 0;
    each_result(log, |query, item, places| {
        if places.len() < 2 {
            return;
        }
        moved += 1;
        let mut key = xxh3_64(log.queries().get_bytes(query as usize));
        if by_result {
            key ^= xxh3_64(log.items().get_bytes(item as usize)).rotate_left(17);
        }
        let group = &mut groups[(key % GROUPS as u64) as usize];
        for (at, &(k, (n_k, a_k))) in places.iter().enumerate() {
            for &(l, (n_l, a_l)) in &places[at + 1..] {
                let both = (n_k + n_l) as f64;
                group[(k as usize - 1) * n + l as usize - 1] += (a_k * n_l) as f64 / both;
                group[(l as usize - 1) * n + k as usize - 1] += (a_l * n_k) as f64 / both;
            }
        }
    });
    (groups, moved)
}

/// The places of a result, each with how often it was shown and clicked there.
pub(super) type Places = [(u32, (u64, u64))];

/// Calls `work` for each result of each query with its places, in order.
pub(super) fn each_result(log: &ClickLog, mut work: impl FnMut(u32, u32, &Places)) {
    let mut results: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    let mut places: Vec<(u32, (u64, u64))> = Vec::new();
    for of_query in log.events().chunk_by(|a, b| a.query == b.query) {
        results.clear();
        for Event { item, position, clicked, .. } in of_query {
            let counts = results.entry((*item, *position)).or_default();
            *counts = (counts.0 + 1, counts.1 + u64::from(*clicked));
        }
        let mut rest = results.iter().peekable();
        while let Some((&(item, position), &counts)) = rest.next() {
            places.clear();
            places.push((position, counts));
            while let Some((&(_, position), &counts)) = rest.next_if(|((next, _), _)| *next == item) {
                places.push((position, counts));
            }
            work(of_query[0].query, item, &places);
        }
    }
}

/// log p_k − log p_1 from the couples with the first place.
fn against_first(wins: &[f64], n: usize) -> Vec<Option<f64>> {
    let of = |k: usize| {
        let (own, first) = (wins[k * n], wins[k]);
        (own > 0.0 && first > 0.0).then(|| (own / first).ln())
    };
    (0..n).map(|k| if k == 0 { (1..n).any(|l| of(l).is_some()).then_some(0.0) } else { of(k) }).collect()
}

/// log p of the largest set of places that can be compared with each other, relative to its first place.
fn compared(wins: &[f64], n: usize) -> Vec<Option<f64>> {
    let members = comparable(wins, n);
    let mut logs = vec![None; n];
    let k = members.len();
    if k < 2 {
        return logs;
    }
    let won = |a: usize, b: usize| wins[members[a] * n + members[b]];
    let mut theta = vec![0.0; k];
    let value = |theta: &[f64]| -> f64 {
        let mut sum = 0.0;
        for a in 0..k {
            for b in (0..k).filter(|&b| b != a) {
                sum -= won(a, b) * (theta[b] - theta[a]).exp().ln_1p();
            }
        }
        sum
    };
    let mut best = value(&theta);
    for _ in 0..100 {
        let (mut gradient, mut hessian) = (vec![0.0; k], vec![0.0; k * k]);
        for a in 0..k {
            for b in 0..a {
                let both = won(a, b) + won(b, a);
                let share = 1.0 / (1.0 + (theta[b] - theta[a]).exp());
                let (pull, curve) = (won(a, b) - both * share, both * share * (1.0 - share));
                gradient[a] += pull;
                gradient[b] -= pull;
                hessian[a * k + a] += curve;
                hessian[b * k + b] += curve;
                hessian[a * k + b] -= curve;
                hessian[b * k + a] -= curve;
            }
        }
        // The first place stays at 0.
        let rest = k - 1;
        let reduced: Vec<f64> = (0..rest * rest).map(|at| hessian[(at / rest + 1) * k + at % rest + 1]).collect();
        let Some(step) = solve_positive(reduced, &gradient[1..]) else { break };
        let largest = step.iter().fold(0.0f64, |largest, step| largest.max(step.abs()));
        let mut length = (2.0 / largest).min(1.0);
        let mut moved = false;
        for _ in 0..40 {
            let next: Vec<f64> = std::iter::once(0.0)
                .chain(theta[1..].iter().zip(&step).map(|(theta, step)| theta + length * step))
                .collect();
            let reached = value(&next);
            if reached >= best {
                moved = reached > best;
                (theta, best) = (next, reached);
                break;
            }
            length *= 0.5;
        }
        if largest < 1e-12 || !moved {
            break;
        }
    }
    members.iter().zip(theta).for_each(|(&place, theta)| logs[place] = Some(theta));
    logs
}

/// The largest set of places each of which won, over steps, against each other one; of equal sets the one with the first
/// place.
fn comparable(wins: &[f64], n: usize) -> Vec<usize> {
    let reach = |from: usize, won: &dyn Fn(usize, usize) -> bool| {
        let (mut seen, mut open) = (vec![false; n], vec![from]);
        seen[from] = true;
        while let Some(at) = open.pop() {
            for next in (0..n).filter(|&next| won(at, next)) {
                if !seen[next] {
                    seen[next] = true;
                    open.push(next);
                }
            }
        }
        seen
    };
    let (mut known, mut best) = (vec![false; n], Vec::new());
    for from in 0..n {
        if known[from] {
            continue;
        }
        let down = reach(from, &|a, b| wins[a * n + b] > 0.0);
        let up = reach(from, &|a, b| wins[b * n + a] > 0.0);
        let members: Vec<usize> = (0..n).filter(|&at| down[at] && up[at]).collect();
        members.iter().for_each(|&at| known[at] = true);
        if members.len() > best.len() {
            best = members;
        }
    }
    best
}

/// The solution of A x = b for a positive definite matrix, by Cholesky's method.
pub(super) fn solve_positive(mut a: Vec<f64>, b: &[f64]) -> Option<Vec<f64>> {
    factor(&mut a, b.len())?;
    Some(substitute(&a, b))
}

/// Replaces a positive definite matrix by its Cholesky factor, below the diagonal and on it.
pub(super) fn factor(a: &mut [f64], n: usize) -> Option<()> {
    for row in 0..n {
        for column in 0..=row {
            let (own, other) = (&a[row * n..][..column], &a[column * n..][..column]);
            let rest = a[row * n + column] - own.iter().zip(other).map(|(x, y)| x * y).sum::<f64>();
            if column < row {
                a[row * n + column] = rest / a[column * n + column];
            } else if rest > 0.0 {
                a[row * n + row] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(())
}

/// Solves with such a factor.
pub(super) fn substitute(factor: &[f64], b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let mut x = b.to_vec();
    for row in 0..n {
        let known: f64 = (0..row).map(|column| factor[row * n + column] * x[column]).sum();
        x[row] = (x[row] - known) / factor[row * n + row];
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| factor[column * n + row] * x[column]).sum();
        x[row] = (x[row] - known) / factor[row * n + row];
    }
    x
}
