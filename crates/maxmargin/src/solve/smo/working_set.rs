//! Which variables a round takes, and the small problem over them.

use super::Variable;
use crate::data::kernels::for_this_machine;
use crate::kernel::{Element, RowCache};
use rayon::prelude::*;

/// Where curvature along a step is not positive, this stands in for it: the step goes to the end of the box.
pub(in crate::solve) const FLAT: f64 = 1e-12;

/// How far each variable is from optimality.
pub(super) struct Selection {
    /// Where there is an equality: −t·g of the variables that may rise, and of those that may fall, others out of reach.
    /// Where there is none: the size of the projected gradient, in the first alone.
    rising: Vec<(f64, u32)>,
    falling: Vec<(f64, u32)>,
    /// How far the worst is off.
    pub(super) violation: f64,
    /// The b that the gradients suggest.
    pub(super) threshold: f64,
}

impl Selection {
    pub(super) fn of(variables: &[Variable], equality: bool) -> Selection {
        let numbered = (0u32..).zip(variables).filter(|(_, variable)| variable.limit > 0.0);
        if !equality {
            let rising: Vec<(f64, u32)> = numbered
                .map(|(at, variable)| (variable.projected().abs(), at))
                .filter(|&(violation, _)| violation > 0.0)
                .collect();
            let violation = rising.iter().map(|entry| entry.0).fold(0.0, f64::max);
            return Selection { rising, falling: Vec::new(), violation, threshold: 0.0 };
        }
        let (mut rising, mut falling) = (Vec::new(), Vec::new());
        for (at, variable) in numbered {
            let key = -variable.threshold * variable.gradient;
            if variable.may_rise() {
                rising.push((key, at));
            }
            if variable.may_fall() {
                falling.push((key, at));
            }
        }
        let highest = rising.iter().map(|entry| entry.0).fold(f64::NEG_INFINITY, f64::max);
        let lowest = falling.iter().map(|entry| entry.0).fold(f64::INFINITY, f64::min);
        rising.retain(|entry| entry.0 > lowest);
        falling.retain(|entry| entry.0 < highest);
        let threshold = match (highest.is_finite(), lowest.is_finite()) {
            (true, true) => 0.5 * (highest + lowest),
            (true, false) => highest,
            (false, true) => lowest,
            (false, false) => 0.0,
        };
        let violation = if highest.is_finite() && lowest.is_finite() { highest - lowest } else { 0.0 };
        Selection { rising, falling, violation, threshold }
    }

    /// The newer half of the last working set, and the worst of the others.
    pub(super) fn working_set(&self, last: &[usize], variables: &[Variable], most: usize) -> Vec<usize> {
        let kept = &last[last.len() - last.len().min(most / 2)..];
        let mut taken = vec![false; variables.len()];
        kept.iter().for_each(|&at| taken[at] = true);
        let mut working = kept.to_vec();
        let room = most - working.len();
        let sides = if self.falling.is_empty() { 1 } else { 2 };
        // The worst first, equal ones in order.
        let worst = |entries: &[(f64, u32)], sign: f64| -> Vec<(f64, u32)> {
            let mut entries: Vec<(f64, u32)> = entries
                .iter()
                .filter(|entry| !taken[entry.1 as usize])
                .map(|entry| (sign * entry.0, entry.1))
                .collect();
            let order = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            if entries.len() > room {
                entries.select_nth_unstable_by(room, order);
                entries.truncate(room);
            }
            entries.sort_unstable_by(order);
            entries
        };
        let (rising, falling) = (worst(&self.rising, 1.0), worst(&self.falling, -1.0));
        let mut chosen = vec![false; variables.len()];
        let (mut up, mut down) = (rising.iter(), falling.iter());
        while working.len() < most {
            let before = working.len();
            for next in [up.next(), down.next()].into_iter().take(sides).flatten() {
                let at = next.1 as usize;
                if !chosen[at] && working.len() < most {
                    chosen[at] = true;
                    working.push(at);
                }
            }
            if working.len() == before && up.len() == 0 && down.len() == 0 {
                break;
            }
        }
        working
    }
}

impl Variable {
    pub(in crate::solve) fn may_rise(&self) -> bool {
        if self.threshold > 0.0 { self.alpha < self.limit } else { self.alpha > 0.0 }
    }

    pub(in crate::solve) fn may_fall(&self) -> bool {
        if self.threshold > 0.0 { self.alpha > 0.0 } else { self.alpha < self.limit }
    }

    /// The value after a change; one that reaches the end of the box does so to the last digit.
    fn moved(&self, change: f64, to_the_end: bool) -> f64 {
        match (to_the_end, change > 0.0) {
            (true, true) => self.limit,
            (true, false) => 0.0,
            (false, _) => (self.alpha + change).clamp(0.0, self.limit),
        }
    }

    /// The gradient, where the box lets the variable follow it.
    pub(in crate::solve) fn projected(&self) -> f64 {
        if self.alpha <= 0.0 {
            self.gradient.min(0.0)
        } else if self.alpha >= self.limit {
            self.gradient.max(0.0)
        } else {
            self.gradient
        }
    }
}

/// The problem over a working set, all else held fixed.
pub(super) struct Local<V> {
    variables: Vec<Variable>,
    /// Where there is an equality −t·g, else g.
    keys: Vec<f64>,
    /// What a key loses for each unit of a row: t·a, or −a.
    signs: Vec<f64>,
    /// 0 where the variable may rise, or fall; −∞ and +∞ where not.
    rising: Vec<f64>,
    falling: Vec<f64>,
    /// Kernel values, row by row, and k_ii.
    kernel: Vec<V>,
    own: Vec<f64>,
}

/// The local problem is solved to this share of the violation it starts with: further would be for nothing once others move.
const INNER: f64 = 0.1;

/// And in at most so many steps a variable.
const STEPS: usize = 40;

impl<V: Element> Local<V> {
    pub(super) fn new(working: &[usize], variables: &[Variable], cache: &RowCache<V>, penalised: bool) -> Local<V> {
        let count = working.len();
        let mut kernel = vec![V::ZERO; count * count];
        kernel.par_chunks_mut(count.max(1)).zip(working).for_each(|(out, &row)| {
            let row = cache.row(row);
            let extra = if penalised { 1.0 } else { 0.0 };
            out.iter_mut().zip(working).for_each(|(out, &column)| *out = V::narrow(row[column].wide() + extra));
        });
        let variables: Vec<Variable> = working.iter().map(|&at| variables[at]).collect();
        let own = variables.iter().map(|variable| variable.own).collect();
        Local { variables, keys: Vec::new(), signs: Vec::new(), rising: Vec::new(), falling: Vec::new(), kernel, own }
    }

    pub(super) fn alphas(&self) -> impl Iterator<Item = f64> {
        self.variables.iter().map(|variable| variable.alpha)
    }

    pub(super) fn solve(&mut self, equality: bool, violation: f64) {
        if equality { self.solve_pairs(violation) } else { self.solve_singles(violation) }
    }

    /// Steps on two variables that keep Σ α t.
    fn solve_pairs(&mut self, violation: f64) {
        let count = self.variables.len();
        self.keys = self.variables.iter().map(|v| -v.threshold * v.gradient).collect();
        self.signs = self.variables.iter().map(|v| v.threshold * v.coefficient).collect();
        (self.rising, self.falling) = (vec![0.0; count], vec![0.0; count]);
        (0..count).for_each(|at| self.open(at));
        for _ in 0..STEPS * count {
            let Some((up, highest)) = largest(&self.keys, &self.rising) else { break };
            let row = &self.kernel[up * count..(up + 1) * count];
            let choice = partner(&PartnerSearch {
                keys: &self.keys,
                falling: &self.falling,
                row,
                signs: &self.signs,
                own: &self.own,
                highest,
                sign: self.signs[up],
                own_up: self.own[up] + self.variables[up].diagonal,
            });
            let Some((down, lowest)) = choice else { break };
            if highest - lowest <= INNER * violation {
                break;
            }
            let (one, other) = (self.variables[up], self.variables[down]);
            let between = self.signs[up] * self.signs[down] * row[down].wide();
            let Some([alpha_up, alpha_down]) = pair_step(&one, &other, self.keys[up] - self.keys[down], between) else {
                break;
            };
            (self.variables[up].alpha, self.variables[down].alpha) = (alpha_up, alpha_down);
            let (by_up, by_down) = (self.variables[up].alpha - one.alpha, self.variables[down].alpha - other.alpha);
            self.take(up, one.coefficient * by_up);
            self.take(down, other.coefficient * by_down);
            self.keys[up] -= one.threshold * one.diagonal * by_up;
            self.keys[down] -= other.threshold * other.diagonal * by_down;
            self.open(up);
            self.open(down);
        }
    }

    /// Steps on one variable, where nothing ties them together.
    fn solve_singles(&mut self, violation: f64) {
        let count = self.variables.len();
        self.keys = self.variables.iter().map(|v| v.gradient).collect();
        self.signs = self.variables.iter().map(|v| -v.coefficient).collect();
        for _ in 0..STEPS * count {
            let mut best: Option<(usize, f64)> = None;
            let mut worst = 0.0f64;
            for (at, variable) in self.variables.iter().enumerate() {
                let projected = Variable { gradient: self.keys[at], ..*variable }.projected();
                worst = worst.max(projected.abs());
                let gain = projected * projected / (variable.own + variable.diagonal).max(FLAT);
                if gain > best.map_or(0.0, |(_, gain)| gain) {
                    best = Some((at, gain));
                }
            }
            let Some((at, _)) = best else { break };
            if worst <= INNER * violation {
                break;
            }
            let variable = self.variables[at];
            let curvature = (variable.own + variable.diagonal).max(FLAT);
            let alpha = (variable.alpha - self.keys[at] / curvature).clamp(0.0, variable.limit);
            let change = alpha - variable.alpha;
            if change == 0.0 || !change.is_finite() {
                break;
            }
            self.variables[at].alpha = alpha;
            self.take(at, variable.coefficient * change);
            self.keys[at] += variable.diagonal * change;
        }
    }

    /// Brings the keys up to date after a row counts `step` more.
    fn take(&mut self, row: usize, step: f64) {
        let count = self.keys.len();
        take_row(&mut self.keys, &self.signs, step, &self.kernel[row * count..(row + 1) * count]);
    }

    /// Notes whether a variable may rise and fall.
    fn open(&mut self, at: usize) {
        let variable = &self.variables[at];
        self.rising[at] = if variable.may_rise() { 0.0 } else { f64::NEG_INFINITY };
        self.falling[at] = if variable.may_fall() { 0.0 } else { f64::INFINITY };
    }
}

/// The values of two variables after a step that keeps Σ α t: the first rises by t·step, the second falls by t·step, each to
/// the end of its box at most, and then to the last digit. `apart` is how far their keys are from each other, `between` their
/// kernel value times both signs. None where there is no step.
pub(in crate::solve) fn pair_step(one: &Variable, other: &Variable, apart: f64, between: f64) -> Option<[f64; 2]> {
    let curvature = one.own + one.diagonal + other.own + other.diagonal - 2.0 * between;
    let wanted = apart / curvature.max(FLAT);
    let room_up = if one.threshold > 0.0 { one.limit - one.alpha } else { one.alpha };
    let room_down = if other.threshold > 0.0 { other.alpha } else { other.limit - other.alpha };
    let step = wanted.min(room_up).min(room_down);
    // A step that is no number is none.
    (step > 0.0).then(|| {
        [one.moved(one.threshold * step, step == room_up), other.moved(-other.threshold * step, step == room_down)]
    })
}

const LANES: usize = 8;

/// The first of the largest among those that are open.
pub(in crate::solve) fn largest(keys: &[f64], open: &[f64]) -> Option<(usize, f64)> {
    let highest = highest(keys, open);
    let at = keys.iter().zip(open).position(|(key, open)| key + open == highest)?;
    (highest > f64::NEG_INFINITY).then_some((at, highest))
}

for_this_machine! {
    fn highest[](keys: &[f64], open: &[f64]) -> f64 = highest_plainly
}

#[inline(always)]
fn highest_plainly(keys: &[f64], open: &[f64]) -> f64 {
    let mut lanes = [f64::NEG_INFINITY; LANES];
    let (keys, last_keys) = keys.as_chunks::<LANES>();
    let (open, last_open) = open.as_chunks::<LANES>();
    for (keys, open) in keys.iter().zip(open) {
        for lane in 0..LANES {
            let value = keys[lane] + open[lane];
            lanes[lane] = if value > lanes[lane] { value } else { lanes[lane] };
        }
    }
    for (lane, (key, open)) in last_keys.iter().zip(last_open).enumerate() {
        lanes[lane] = lanes[lane].max(key + open);
    }
    lanes.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

/// What the choice of the second variable depends on.
pub(in crate::solve) struct PartnerSearch<'a, V> {
    pub(in crate::solve) keys: &'a [f64],
    pub(in crate::solve) falling: &'a [f64],
    pub(in crate::solve) row: &'a [V],
    pub(in crate::solve) signs: &'a [f64],
    pub(in crate::solve) own: &'a [f64],
    pub(in crate::solve) highest: f64,
    pub(in crate::solve) sign: f64,
    pub(in crate::solve) own_up: f64,
}

/// The variable with which a step gains the most, and the lowest key of all.
pub(in crate::solve) fn partner<V: Element>(search: &PartnerSearch<'_, V>) -> Option<(usize, f64)> {
    let (gain, lowest) = best_gain(search);
    if gain <= 0.0 {
        return None;
    }
    let count = search.keys.len();
    let at = (0..count).find(|&at| {
        gain_of(search, search.keys[at] + search.falling[at], search.row[at], search.signs[at], search.own[at]) == gain
    })?;
    Some((at, lowest))
}

#[inline(always)]
fn gain_of<V: Element>(search: &PartnerSearch<'_, V>, key: f64, kernel: V, sign: f64, own: f64) -> f64 {
    let apart = search.highest - key;
    let curvature = search.own_up + own - 2.0 * (search.sign * sign) * kernel.wide();
    let curvature = if curvature > FLAT { curvature } else { FLAT };
    let gain = apart * apart / curvature;
    // Those out of reach are infinitely far below.
    if apart > 0.0 && key < f64::INFINITY { gain } else { 0.0 }
}

for_this_machine! {
    fn best_gain[V: Element](search: &PartnerSearch<'_, V>) -> (f64, f64) = best_gain_plainly
}

#[inline(always)]
fn best_gain_plainly<V: Element>(search: &PartnerSearch<'_, V>) -> (f64, f64) {
    let (mut gains, mut lowest) = ([0.0; LANES], [f64::INFINITY; LANES]);
    let (keys, last_keys) = search.keys.as_chunks::<LANES>();
    let (falling, last_falling) = search.falling.as_chunks::<LANES>();
    let (row, last_row) = search.row.as_chunks::<LANES>();
    let (signs, last_signs) = search.signs.as_chunks::<LANES>();
    let (own, last_own) = search.own.as_chunks::<LANES>();
    for ((((keys, falling), row), signs), own) in keys.iter().zip(falling).zip(row).zip(signs).zip(own) {
        for lane in 0..LANES {
            let key = keys[lane] + falling[lane];
            let gain = gain_of(search, key, row[lane], signs[lane], own[lane]);
            gains[lane] = if gain > gains[lane] { gain } else { gains[lane] };
            lowest[lane] = if key < lowest[lane] { key } else { lowest[lane] };
        }
    }
    for lane in 0..last_keys.len() {
        let key = last_keys[lane] + last_falling[lane];
        gains[lane] = gains[lane].max(gain_of(search, key, last_row[lane], last_signs[lane], last_own[lane]));
        lowest[lane] = lowest[lane].min(key);
    }
    (gains.into_iter().fold(0.0, f64::max), lowest.into_iter().fold(f64::INFINITY, f64::min))
}

for_this_machine! {
    /// keys −= step · signs · row
    pub(in crate::solve) fn take_row[V: Element](keys: &mut [f64], signs: &[f64], step: f64, row: &[V]) -> () = take_row_plainly
}

#[inline(always)]
fn take_row_plainly<V: Element>(keys: &mut [f64], signs: &[f64], step: f64, row: &[V]) {
    for ((key, sign), value) in keys.iter_mut().zip(signs).zip(row) {
        *key -= sign * step * value.wide();
    }
}
