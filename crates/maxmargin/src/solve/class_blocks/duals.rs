//! The value of a dual point of a joint problem, from scratch: training states it and `verify` recomputes it.
//!
//! **Free constants.** The dual then has one equality for each class: what the rows of other classes pull it down, Σ α_im
//! over rows i of other classes, equals what its own rows pull it up. Seen as a flow F_ab = Σ α_ib over the rows of class
//! a, as much must flow into every class as out of it. [`Balance`] makes that true for any point by factors d_a / d_b on
//! the flows, with d found by balancing one class after the other (Osborne, On pre-conditioning of matrices, JACM 7,
//! 1960), and then by Newton's method: Σ F_ab d_a / d_b is smallest where flows balance, and sweeps alone need very many
//! rounds where groups of classes hardly meet. What this leaves, which is little, is led along a tree of the largest flows. All factors are then divided
//! by the largest one: as none exceeds 1, every other constraint still holds. Flows that are on no cycle cannot be
//! balanced, and become zero. So do all of them if a flow of the tree is smaller than what it would have to take.

use super::against_own::AgainstOwn;
use crate::certificate::ClassDual;
use crate::data::{Design, with_rows};
use crate::error::Result;
use crate::parallel::{self, Spare};
use crate::run::Cancel;
use crate::solve::cholesky::Cholesky;
use crate::solve::infeasible;
use crate::task::{Intercept, Joint};
use std::collections::HashMap;

/// Sums that differ by this share are equal but for rounding.
const EQUAL: f64 = 1e-12;

/// A dual variable may exceed its limit by this share, which is rounding.
const WITHIN: f64 = 1e-9;

/// Rows whose scores are computed together.
const RUN: usize = 256;

/// Slopes below this share of the cost are rounding.
const SPURIOUS: f64 = 1e-13;

/// The most sweeps over all classes, and the most steps along flows in them. Points near the optimum need a few dozen.
const SWEEPS: usize = 500;
const FEWEST_SWEEPS: usize = 20;
const SWEEP_STEPS: usize = 200_000_000;

/// Sweeps before Newton's method, which takes up to this many classes and makes this many steps at most.
const FIRST_SWEEPS: usize = 30;
const NEWTON_CLASSES: usize = 512;
const NEWTON_STEPS: usize = 50;
/// What is added to the diagonal of a matrix that is singular along a common factor, as a share.
const RIDGE: f64 = 1e-13;

/// An error unless a dual point is feasible.
pub(crate) fn check_dual_of_classes<T: AgainstOwn>(task: &T, dual: &ClassDual, rule: Intercept) -> Result<()> {
    if !task.has_blocks() {
        return Err(infeasible("it belongs to another loss"));
    }
    if !dual.is_sound(task.count(), task.scores()) {
        return Err(infeasible("its rows do not fit the data"));
    }
    for (row, (outputs, values)) in dual.all_lists().enumerate() {
        let own = task.own(row) as u32;
        if outputs.contains(&own) || !task.fits(row, (outputs, values), WITHIN) {
            return Err(infeasible("a dual variable lies outside its range"));
        }
    }
    if rule == Intercept::Free && task.imbalance(dual) > EQUAL {
        return Err(infeasible("what pulls a class up and down does not balance"));
    }
    Ok(())
}

/// Lower bound that a dual point proves, or an error if it is not feasible.
pub(crate) fn certified_by_classes<T: AgainstOwn>(
    task: &T,
    design: &Design,
    dual: &ClassDual,
    rule: Intercept,
    cancel: &Cancel,
) -> Result<f64> {
    check_dual_of_classes(task, dual, rule)?;
    dual_value(task, design, dual, rule, cancel)
}

/// The objective of weights and constants. Scores are computed for some rows at a time: those of all rows and classes may
/// take more memory than the weights.
pub(crate) fn objective_of_classes<T: AgainstOwn>(
    task: &T,
    design: &Design,
    (weights, constants): (&[f64], &[f64]),
    rule: Intercept,
    cancel: &Cancel,
) -> Result<f64> {
    let classes = task.scores();
    let folded = design.fold_outputs(weights, classes);
    let buffers: Spare<(Vec<f64>, Vec<f64>)> = Spare::default();
    let losses = parallel::map(task.count().div_ceil(RUN), |run| -> f64 {
        let rows = run * RUN..((run + 1) * RUN).min(task.count());
        if cancel.is_raised() {
            return 0.0;
        }
        buffers.lend(|(scores, slopes)| {
            scores.resize(rows.len() * classes, 0.0);
            slopes.resize(classes, 0.0);
            design.scores(rows.clone(), &folded, scores);
            design.passed(rows.clone());
            let each = rows.zip(scores.chunks_exact_mut(classes)).map(|(row, scores)| {
                scores.iter_mut().zip(constants).for_each(|(score, constant)| *score += constant);
                task.loss_at(row, scores, slopes)
            });
            each.sum()
        })
    });
    cancel.check()?;
    let half = |numbers: &[f64]| 0.5 * numbers.iter().map(|number| number * number).sum::<f64>();
    let penalty = if rule == Intercept::Penalised { half(constants) } else { 0.0 };
    Ok(half(weights) + penalty + losses.iter().sum::<f64>())
}

/// The dual value of a feasible point.
pub(crate) fn dual_value<T: AgainstOwn>(
    task: &T,
    design: &Design,
    dual: &ClassDual,
    rule: Intercept,
    cancel: &Cancel,
) -> Result<f64> {
    if !task.has_blocks() {
        return Err(infeasible("it belongs to another loss"));
    }
    let (weights, pulls) = weights_behind(task, design, dual, cancel)?;
    let (mut gain, mut fitted) = (0.0, Vec::new());
    for (row, (outputs, values)) in dual.all_lists().enumerate() {
        let cost = task.cost(row);
        // What rounding left above the limits is taken off.
        fitted.clear();
        fitted.extend(outputs.iter().copied().zip(values.iter().copied()));
        task.fit(row, &mut fitted);
        for &(output, value) in &fitted {
            gain += value * task.margin(row, output as usize) - task.conjugate(cost, value);
        }
    }
    let half = |numbers: &[f64]| 0.5 * numbers.iter().map(|number| number * number).sum::<f64>();
    let penalty = if rule == Intercept::Penalised { half(&pulls) } else { 0.0 };
    // The objective is never negative, so zero is a better bound than a negative one.
    Ok((gain - half(&weights) - penalty).max(0.0))
}

/// The weights of a dual point, those of one feature for all classes side by side, and the sum of the coefficients of
/// each class.
pub(crate) fn weights_behind<T: AgainstOwn>(
    task: &T,
    design: &Design,
    dual: &ClassDual,
    cancel: &Cancel,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let classes = task.scores();
    let (mut weights, mut pulls) = (vec![0.0; design.cols() * classes], vec![0.0; classes]);
    let mut totals = vec![0.0; classes];
    let mut steps: Vec<(usize, f64)> = Vec::new();
    with_rows!(design.matrix(), rows => {
        use crate::data::Rows;
        for (row, (others, values)) in dual.all_lists().enumerate() {
            if row % 4096 == 0 {
                cancel.check()?;
            }
            if values.is_empty() {
                continue;
            }
            steps.clear();
            let signed = |(&output, &value): (&u32, &f64)| {
                (output as usize, -task.sign(row, output as usize) * value)
            };
            let sum: f64 = others.iter().zip(values).map(|own| -signed(own).1).sum();
            steps.push((task.own(row), sum));
            steps.extend(others.iter().zip(values).map(signed));
            let factor = design.row_factor(row);
            for &(class, step) in &steps {
                pulls[class] += step;
                totals[class] += factor * step;
            }
            rows.each(row, |column, value| {
                if let Some(weights) = weights.get_mut(column * classes..(column + 1) * classes) {
                    steps.iter().for_each(|&(class, step)| weights[class] += factor * value * step);
                }
            });
            design.passed(row..row + 1);
        }
    });
    design.unfold_outputs(&mut weights, &totals);
    Ok((weights, pulls))
}

/// The dual point of a point: the slopes of its losses, made feasible for free constants.
pub(crate) fn dual_of_classes<T: AgainstOwn>(
    task: &T,
    design: &Design,
    point: (&[f64], &[f64]),
    rule: Intercept,
    cancel: &Cancel,
) -> Result<ClassDual> {
    let slopes = slopes_of_classes(task, design, point, cancel)?;
    Ok(feasible(task, &slopes, rule))
}

/// The derivatives of the losses of all rows by all scores.
pub(crate) fn slopes_of_classes<T: AgainstOwn>(
    task: &T,
    design: &Design,
    (weights, constants): (&[f64], &[f64]),
    cancel: &Cancel,
) -> Result<Vec<f64>> {
    let classes = task.scores();
    let mut scores = design.folded_scores_until(&design.fold_outputs(weights, classes), cancel)?;
    let mut slopes = vec![0.0; scores.len()];
    for (row, (scores, slopes)) in scores.chunks_exact_mut(classes).zip(slopes.chunks_exact_mut(classes)).enumerate() {
        scores.iter_mut().zip(constants).for_each(|(score, constant)| *score += constant);
        task.slopes(row, scores, slopes);
        slopes.iter_mut().for_each(|slope| *slope *= task.cost(row));
    }
    Ok(slopes)
}

/// A feasible dual point near slopes, those of one row after the other.
pub(crate) fn feasible<T: AgainstOwn>(task: &T, slopes: &[f64], rule: Intercept) -> ClassDual {
    let (mut dual, mut fitted) = (ClassDual::default(), Vec::new());
    for (row, slopes) in slopes.chunks_exact(task.scores()).enumerate() {
        let (own, cost) = (task.own(row), task.cost(row));
        let alpha = |(m, slope): (usize, &f64)| (m as u32, task.sign(row, m) * slope);
        fitted.clear();
        fitted.extend(slopes.iter().enumerate().filter(|(m, _)| *m != own).map(alpha));
        fitted.retain(|(_, alpha)| *alpha > SPURIOUS * cost);
        task.fit(row, &mut fitted);
        dual.push(fitted.iter().map(|&(m, alpha)| (m as usize, alpha)));
    }
    if rule == Intercept::Free {
        task.balance(&mut dual);
    }
    dual
}

/// The sums of the dual variables from one class to another.
pub(super) struct Flows {
    classes: usize,
    /// From a class, to another, and how much, in order.
    edges: Vec<(u32, u32, f64)>,
}

impl Flows {
    pub(super) fn of(joint: &Joint, dual: &ClassDual) -> Flows {
        let mut sums: HashMap<(u32, u32), f64> = HashMap::new();
        for (row, (others, values)) in dual.all_lists().enumerate() {
            let own = joint.class(row) as u32;
            for (&class, &value) in others.iter().zip(values) {
                *sums.entry((own, class)).or_default() += value;
            }
        }
        let mut edges: Vec<(u32, u32, f64)> = sums.into_iter().map(|((from, to), sum)| (from, to, sum)).collect();
        edges.sort_unstable_by_key(|&(from, to, _)| (from, to));
        Flows { classes: joint.classes(), edges }
    }

    /// Makes the point behind these flows feasible for free constants.
    pub(super) fn balance(mut self, joint: &Joint, dual: &mut ClassDual) {
        self.drop_loose_ends();
        let scales = self.scales();
        let mut kept: HashMap<(u32, u32), f64> = HashMap::new();
        for (edge, &(from, to, flow)) in self.edges.iter().enumerate() {
            kept.insert((from, to), if flow > 0.0 { scales[edge] } else { 0.0 });
        }
        let (mut starts, mut classes, mut values) = (vec![0], Vec::new(), Vec::new());
        for (row, (others, own)) in dual.all_lists().enumerate() {
            for (&class, &value) in others.iter().zip(own) {
                let value = value * kept.get(&(joint.class(row) as u32, class)).copied().unwrap_or(0.0);
                if value > 0.0 {
                    classes.push(class);
                    values.push(value);
                }
            }
            starts.push(values.len() as u64);
        }
        *dual = ClassDual { starts, classes, values };
    }

    /// By how much inflow and outflow differ, over all classes, as a share of all that flows.
    pub(super) fn imbalance(&self) -> f64 {
        let (mut nets, mut all) = (vec![0.0; self.classes], 0.0);
        for &(from, to, flow) in &self.edges {
            nets[from as usize] += flow;
            nets[to as usize] -= flow;
            all += flow;
        }
        if all > 0.0 { nets.iter().map(|net: &f64| net.abs()).sum::<f64>() / all } else { 0.0 }
    }

    /// The classes that a class reaches along flows, or from which it is reached.
    fn reached(&self, start: usize, lists: &[Vec<usize>], ends: impl Fn(&(u32, u32, f64)) -> u32) -> Vec<bool> {
        let (mut seen, mut open) = (vec![false; self.classes], vec![start]);
        seen[start] = true;
        while let Some(class) = open.pop() {
            for &edge in &lists[class] {
                let next = ends(&self.edges[edge]) as usize;
                if !std::mem::replace(&mut seen[next], true) {
                    open.push(next);
                }
            }
        }
        seen
    }

    /// The edges that leave, and that enter, each class.
    fn lists(&self) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let (mut leaving, mut entering) = (vec![Vec::new(); self.classes], vec![Vec::new(); self.classes]);
        for (edge, &(from, to, flow)) in self.edges.iter().enumerate() {
            if flow > 0.0 {
                leaving[from as usize].push(edge);
                entering[to as usize].push(edge);
            }
        }
        (leaving, entering)
    }

    /// Sets flows that are on no cycle to zero: those between classes that do not reach each other both ways.
    fn drop_loose_ends(&mut self) {
        let (leaving, entering) = self.lists();
        let mut component = vec![usize::MAX; self.classes];
        for class in 0..self.classes {
            if component[class] != usize::MAX {
                continue;
            }
            let ahead = self.reached(class, &leaving, |edge| edge.1);
            let behind = self.reached(class, &entering, |edge| edge.0);
            for other in 0..self.classes {
                if ahead[other] && behind[other] {
                    component[other] = class;
                }
            }
        }
        for (from, to, flow) in &mut self.edges {
            if component[*from as usize] != component[*to as usize] {
                *flow = 0.0;
            }
        }
    }

    /// The factor of each edge, none above 1, with which the flows balance.
    fn scales(&self) -> Vec<f64> {
        let (leaving, entering) = self.lists();
        let mut d = vec![1.0f64; self.classes];
        let curved = self.classes <= NEWTON_CLASSES;
        let most = if curved { FIRST_SWEEPS } else { SWEEPS };
        let sweeps = (SWEEP_STEPS / self.edges.len().max(1)).clamp(FEWEST_SWEEPS, most);
        for _ in 0..sweeps {
            let mut off = 0.0f64;
            for class in 0..self.classes {
                let out: f64 =
                    leaving[class].iter().map(|&edge| self.edges[edge].2 / d[self.edges[edge].1 as usize]).sum();
                let into: f64 =
                    entering[class].iter().map(|&edge| self.edges[edge].2 * d[self.edges[edge].0 as usize]).sum();
                if out > 0.0 && into > 0.0 {
                    let next = (into / out).sqrt();
                    off = off.max((next / d[class] - 1.0).abs());
                    d[class] = next;
                }
            }
            if off <= 1e-15 {
                break;
            }
        }
        if curved {
            self.newton(&mut d);
        }
        let scale =
            |&(from, to, flow): &(u32, u32, f64)| if flow > 0.0 { d[from as usize] / d[to as usize] } else { 0.0 };
        let mut scales: Vec<f64> = self.edges.iter().map(scale).collect();
        if !self.repair(&mut scales) {
            return vec![0.0; scales.len()];
        }
        let largest = scales.iter().copied().fold(0.0, f64::max);
        if largest > 0.0 {
            scales.iter_mut().for_each(|scale| *scale /= largest);
        }
        scales
    }

    /// Newton's method for the minimum of Σ flow · d_from / d_to over the logarithms of d.
    fn newton(&self, d: &mut [f64]) {
        let count = self.classes;
        for _ in 0..NEWTON_STEPS {
            let (mut slopes, mut matrix) = (vec![0.0; count], vec![0.0; count * count]);
            for &(from, to, flow) in &self.edges {
                let (from, to) = (from as usize, to as usize);
                let own = flow * d[from] / d[to];
                slopes[from] -= own;
                slopes[to] += own;
                matrix[from * count + from] += own;
                matrix[to * count + to] += own;
                matrix[from * count + to] -= own;
                matrix[to * count + from] -= own;
            }
            // A common factor of d changes nothing. A class without flows stays where it is.
            for class in 0..count {
                let own = &mut matrix[class * count + class];
                *own = if *own > 0.0 { *own * (1.0 + RIDGE) } else { 1.0 };
            }
            let Some(cholesky) = Cholesky::of(&matrix, count, 0.0) else { return };
            let step = cholesky.solve(slopes);
            let longest = step.iter().fold(0.0f64, |longest, step| longest.max(step.abs()));
            if !longest.is_finite() {
                return;
            }
            let share = if longest > 1.0 { 1.0 / longest } else { 1.0 };
            d.iter_mut().zip(&step).for_each(|(d, step)| *d *= (share * step).exp());
            if longest <= 1e-14 {
                return;
            }
        }
    }

    /// Leads what is left out of balance along a tree of the largest flows, from its leaves to its root. Returns whether
    /// the flows then balance.
    fn repair(&self, scales: &mut [f64]) -> bool {
        let flow = |edge: usize, scales: &[f64]| self.edges[edge].2 * scales[edge];
        let mut order: Vec<usize> = (0..self.edges.len()).filter(|&edge| flow(edge, scales) > 0.0).collect();
        order.sort_by(|&a, &b| flow(b, scales).total_cmp(&flow(a, scales)));
        // The trees, by joining the classes along the largest flows first.
        let mut root: Vec<usize> = (0..self.classes).collect();
        let mut tree: Vec<Vec<usize>> = vec![Vec::new(); self.classes];
        for edge in order {
            let (from, to) = (self.edges[edge].0 as usize, self.edges[edge].1 as usize);
            let (a, b) = (find(&mut root, from), find(&mut root, to));
            if a != b {
                root[a] = b;
                tree[from].push(edge);
                tree[to].push(edge);
            }
        }
        // Classes in an order in which each comes after its neighbour towards the root.
        let mut towards: Vec<Option<usize>> = vec![None; self.classes];
        let (mut seen, mut visits) = (vec![false; self.classes], Vec::with_capacity(self.classes));
        for start in 0..self.classes {
            let mut open = if std::mem::replace(&mut seen[start], true) { Vec::new() } else { vec![start] };
            while let Some(class) = open.pop() {
                visits.push(class);
                for &edge in &tree[class] {
                    let (from, to) = (self.edges[edge].0 as usize, self.edges[edge].1 as usize);
                    let other = if from == class { to } else { from };
                    if !std::mem::replace(&mut seen[other], true) {
                        towards[other] = Some(edge);
                        open.push(other);
                    }
                }
            }
        }
        // Two rounds: the second takes what the first left by rounding.
        for _ in 0..2 {
            let mut nets = vec![0.0; self.classes];
            for (edge, &(from, to, _)) in self.edges.iter().enumerate() {
                nets[from as usize] += flow(edge, scales);
                nets[to as usize] -= flow(edge, scales);
            }
            for &class in visits.iter().rev() {
                let Some(edge) = towards[class] else { continue };
                let (from, to, whole) = self.edges[edge];
                let (sign, other) = if from as usize == class { (-1.0, to) } else { (1.0, from) };
                let next = flow(edge, scales) + sign * nets[class];
                if !next.is_finite() || next <= 0.0 {
                    return false;
                }
                nets[other as usize] += nets[class];
                scales[edge] = next / whole;
            }
        }
        let edges = self.edges.iter().enumerate().map(|(edge, &(from, to, _))| (from, to, flow(edge, scales)));
        Flows { classes: self.classes, edges: edges.collect() }.imbalance() <= EQUAL
    }
}

/// The representative of a class among those that are joined.
fn find(root: &mut [usize], mut class: usize) -> usize {
    while root[class] != class {
        root[class] = root[root[class]];
        class = root[class];
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Groups of classes with large flows inside, and small ones from each group to the next.
    fn grouped(groups: u32, each: u32, link: f64, random: &mut Random) -> Flows {
        let classes = groups * each;
        let mut edges = Vec::new();
        for from in 0..classes {
            for to in 0..classes {
                let (group, other) = (from / each, to / each);
                let strength = match () {
                    () if from == to => continue,
                    () if group == other => 1.0,
                    () if (group + 1) % groups == other => link,
                    () => continue,
                };
                edges.push((from, to, strength * (0.1 + random.uniform())));
            }
        }
        Flows { classes: classes as usize, edges }
    }

    #[test]
    fn flows_between_groups_that_hardly_meet_balance() {
        let mut random = Random::new(1, 2, 0);
        for (groups, each, link) in [(2, 5, 1e-3), (4, 5, 1e-3), (10, 10, 1e-2), (4, 5, 1e-6), (1, 30, 1.0)] {
            for _ in 0..5 {
                let mut flows = grouped(groups, each, link, &mut random);
                flows.drop_loose_ends();
                let scales = flows.scales();
                assert!(scales.iter().all(|scale| (0.0..=1.0).contains(scale)));
                let kept: f64 = flows.edges.iter().zip(&scales).map(|(edge, scale)| edge.2 * scale).sum();
                let all: f64 = flows.edges.iter().map(|edge| edge.2).sum();
                assert!(kept > 1e-4 * all, "{groups} {each} {link}: {kept} of {all}");
                let edges = flows.edges.iter().zip(&scales).map(|(&(a, b, flow), scale)| (a, b, flow * scale));
                let balanced = Flows { classes: flows.classes, edges: edges.collect() };
                assert!(balanced.imbalance() <= EQUAL, "{groups} {each} {link}: {:e}", balanced.imbalance());
            }
        }
    }
}
