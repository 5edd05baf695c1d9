//! Which variables a round takes, and the local problem over them.

use super::Variable;
use crate::data::row_loops::for_this_machine;
use crate::kernel::{Element, RowCache};
use crate::parallel;
use crate::run::Cancel;
use std::ops::Range;

/// Replaces a curvature along a step that is not positive: the step then goes to the end of the box.
pub(in crate::solve) const FLAT: f64 = 1e-12;

/// How far variables are from optimality.
pub(super) struct Selection {
    /// For each group, the highest −e·g of the variables that may rise, and the lowest of those that may fall; empty
    /// without groups.
    ends: Vec<(f64, f64)>,
    /// The largest violation of optimality.
    pub(super) violation: f64,
    /// The common −e·g of each group at the optimum, estimated.
    pub(super) levels: Vec<f64>,
}

impl Selection {
    /// `groups` is 0 if no equality couples the variables.
    pub(super) fn of(variables: &[Variable], groups: usize) -> Selection {
        let counted = || variables.iter().filter(|variable| variable.limit > 0.0);
        if groups == 0 {
            let violation = counted().map(|variable| variable.projected().abs()).fold(0.0, f64::max);
            return Selection { ends: Vec::new(), violation, levels: Vec::new() };
        }
        let mut ends = vec![(f64::NEG_INFINITY, f64::INFINITY); groups];
        for variable in counted() {
            let (key, (highest, lowest)) = (variable.key(), &mut ends[usize::from(variable.group)]);
            if variable.may_rise() && key > *highest {
                *highest = key;
            }
            if variable.may_fall() && key < *lowest {
                *lowest = key;
            }
        }
        let level = |&(highest, lowest): &(f64, f64)| match (highest.is_finite(), lowest.is_finite()) {
            (true, true) => 0.5 * (highest + lowest),
            (true, false) => highest,
            (false, true) => lowest,
            (false, false) => 0.0,
        };
        let apart = ends.iter().map(|(highest, lowest)| highest - lowest).filter(|apart| apart.is_finite());
        let violation = apart.reduce(f64::max).unwrap_or(0.0);
        let levels = ends.iter().map(level).collect();
        Selection { ends, violation, levels }
    }

    /// By how much −e·g of a variable that may rise lies above the lowest of its group that may fall; without groups,
    /// the size of the projected gradient. Not positive if optimality is not violated.
    fn off_rising(&self, variable: &Variable) -> f64 {
        match self.ends.get(usize::from(variable.group)) {
            None if variable.limit > 0.0 => variable.projected().abs(),
            Some((_, lowest)) if variable.limit > 0.0 && variable.may_rise() => variable.key() - lowest,
            _ => 0.0,
        }
    }

    /// By how much −e·g of a variable that may fall lies below the highest of its group that may rise.
    fn off_falling(&self, variable: &Variable) -> f64 {
        match self.ends.get(usize::from(variable.group)) {
            Some((highest, _)) if variable.limit > 0.0 && variable.may_fall() => highest - variable.key(),
            _ => 0.0,
        }
    }

    /// The variables that violate optimality, or are not at an end of their box.
    pub(super) fn restless(&self, variables: &[Variable]) -> Vec<usize> {
        let inside = |variable: &Variable| variable.alpha > 0.0 && variable.alpha < variable.limit;
        let off = |variable: &Variable| self.off_rising(variable) > 0.0 || self.off_falling(variable) > 0.0;
        (0..variables.len()).filter(|&at| off(&variables[at]) || inside(&variables[at])).collect()
    }

    /// The newer half of the last working set, and the worst of the other variables.
    pub(super) fn working_set(&self, last: &[usize], variables: &[Variable], most: usize) -> Vec<usize> {
        let mut working = last[last.len() - last.len().min(most / 2)..].to_vec();
        let mut taken = vec![false; variables.len()];
        working.iter().for_each(|&at| taken[at] = true);
        let room = most - working.len();
        let rising = worst(variables, &taken, room, |variable| self.off_rising(variable));
        let falling = worst(variables, &taken, room, |variable| self.off_falling(variable));
        let (mut up, mut down) = (rising.iter(), falling.iter());
        while working.len() < most && up.len() + down.len() > 0 {
            for &at in [up.next(), down.next()].into_iter().flatten() {
                if !taken[at] && working.len() < most {
                    taken[at] = true;
                    working.push(at);
                }
            }
        }
        working
    }
}

/// At most `room` of the variables that are not taken, the largest violations first, equal ones in order.
fn worst(variables: &[Variable], taken: &[bool], room: usize, off: impl Fn(&Variable) -> f64) -> Vec<usize> {
    let order = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let mut found: Vec<(f64, usize)> = Vec::with_capacity(2 * room);
    // A violation of at most `least` is not added: `room` others are larger, or equal and earlier.
    let mut least = 0.0;
    for (at, variable) in variables.iter().enumerate() {
        let off = off(variable);
        if off > least && room > 0 && !taken[at] {
            found.push((off, at));
            if found.len() == 2 * room {
                least = found.select_nth_unstable_by(room - 1, order).1.0;
                found.truncate(room);
            }
        }
    }
    found.sort_unstable_by(order);
    found.truncate(room);
    found.into_iter().map(|(_, at)| at).collect()
}

impl Variable {
    /// −e·g
    fn key(&self) -> f64 {
        -self.sign * self.gradient
    }

    pub(in crate::solve) fn may_rise(&self) -> bool {
        if self.sign > 0.0 { self.alpha < self.limit } else { self.alpha > 0.0 }
    }

    pub(in crate::solve) fn may_fall(&self) -> bool {
        if self.sign > 0.0 { self.alpha > 0.0 } else { self.alpha < self.limit }
    }

    /// The value after a change. A variable that reaches the end of its box gets exactly that value.
    fn moved(&self, change: f64, to_the_end: bool) -> f64 {
        match (to_the_end, change > 0.0) {
            (true, true) => self.limit,
            (true, false) => 0.0,
            (false, _) => (self.alpha + change).clamp(0.0, self.limit),
        }
    }

    /// The gradient, or zero if the box keeps the variable from following it.
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

/// The problem over a working set, with all other variables fixed. Variables are ordered by group.
pub(super) struct Local<V> {
    /// The indices of these variables.
    places: Vec<usize>,
    variables: Vec<Variable>,
    /// −e·g with groups, else g.
    keys: Vec<f64>,
    /// By how much a key falls for each unit of a kernel row: e·a, or −a.
    signs: Vec<f64>,
    /// 0 if the variable may rise, or fall; otherwise −∞ and +∞.
    rising: Vec<f64>,
    falling: Vec<f64>,
    /// Kernel values, row by row, and k_ii.
    kernel: Vec<V>,
    own: Vec<f64>,
}

/// The local problem is solved to this share of its first violation: more would be wasted once other variables move.
const INNER: f64 = 0.1;

/// The maximum number of steps per variable.
const STEPS: usize = 40;

/// A step on two variables of a group.
struct Step {
    up: usize,
    down: usize,
    /// How far the group is from optimality.
    apart: f64,
    gain: f64,
}

impl<V: Element> Local<V> {
    /// `kernel` is a buffer for kernel values: a new one every round would take longer to get than to fill.
    pub(super) fn new(
        working: &[usize],
        variables: &[Variable],
        cache: &RowCache<V>,
        penalised: bool,
        mut kernel: Vec<V>,
    ) -> Local<V> {
        let count = working.len();
        let mut places = working.to_vec();
        places.sort_by_key(|&at| variables[at].group);
        kernel.resize(count * count, V::ZERO);
        parallel::chunks(&mut kernel, count, |at, out| {
            let row = cache.row(places[at]);
            let extra = if penalised { 1.0 } else { 0.0 };
            out.iter_mut().zip(&places).for_each(|(out, &column)| *out = V::narrow(row[column].wide() + extra));
        });
        let variables: Vec<Variable> = places.iter().map(|&at| variables[at]).collect();
        let own = variables.iter().map(|variable| variable.own).collect();
        let (keys, signs, rising, falling) = Default::default();
        Local { places, variables, keys, signs, rising, falling, kernel, own }
    }

    /// The buffer for kernel values.
    pub(super) fn into_buffer(self) -> Vec<V> {
        self.kernel
    }

    /// The current value of each variable.
    pub(super) fn alphas(&self) -> impl Iterator<Item = (usize, f64)> {
        self.places.iter().copied().zip(self.variables.iter().map(|variable| variable.alpha))
    }

    /// Solves the problem, or a part of it after a cancel.
    pub(super) fn solve(&mut self, groups: usize, violation: f64, cancel: &Cancel) {
        // Checking the flag costs nothing compared with this many steps.
        let ended = |step: usize| step.is_multiple_of(256) && cancel.is_raised();
        if groups > 0 { self.solve_pairs(violation, ended) } else { self.solve_singles(violation, ended) }
    }

    /// Steps on two variables that keep Σ α e of their group.
    fn solve_pairs(&mut self, violation: f64, ended: impl Fn(usize) -> bool) {
        let count = self.variables.len();
        self.keys = self.variables.iter().map(Variable::key).collect();
        self.signs = self.variables.iter().map(|v| v.sign * v.coefficient).collect();
        (self.rising, self.falling) = (vec![0.0; count], vec![0.0; count]);
        (0..count).for_each(|at| self.open(at));
        let mut groups: Vec<Range<usize>> = Vec::new();
        for members in self.variables.chunk_by(|a, b| a.group == b.group) {
            let start = groups.last().map_or(0, |group| group.end);
            groups.push(start..start + members.len());
        }
        for step in 0..STEPS * count {
            if ended(step) {
                break;
            }
            // A group near its optimum must not hide one that is not, even if its step promises a larger gain.
            let steps = groups.iter().filter_map(|group| self.best_step(group.clone()));
            let far = steps.filter(|step| step.apart > INNER * violation);
            let Some(Step { up, down, .. }) = far.reduce(|a, b| if b.gain > a.gain { b } else { a }) else {
                break;
            };
            let (one, other) = (self.variables[up], self.variables[down]);
            let between = self.signs[up] * self.signs[down] * self.kernel[up * count + down].wide();
            let Some([alpha_up, alpha_down]) = pair_step(&one, &other, self.keys[up] - self.keys[down], between) else {
                break;
            };
            (self.variables[up].alpha, self.variables[down].alpha) = (alpha_up, alpha_down);
            let (by_up, by_down) = (self.variables[up].alpha - one.alpha, self.variables[down].alpha - other.alpha);
            self.take(up, one.coefficient * by_up);
            self.take(down, other.coefficient * by_down);
            self.keys[up] -= one.sign * one.diagonal * by_up;
            self.keys[down] -= other.sign * other.diagonal * by_down;
            self.open(up);
            self.open(down);
        }
    }

    /// The step within a group with the largest gain, whose first variable has the highest key that may rise.
    fn best_step(&self, group: Range<usize>) -> Option<Step> {
        let (up, highest) = largest(&self.keys[group.clone()], &self.rising[group.clone()])?;
        let up = group.start + up;
        let row = &self.kernel[up * self.keys.len()..][group.clone()];
        let choice = partner(&PartnerSearch {
            keys: &self.keys[group.clone()],
            falling: &self.falling[group.clone()],
            row,
            signs: &self.signs[group.clone()],
            own: &self.own[group.clone()],
            highest,
            sign: self.signs[up],
            own_up: self.own[up] + self.variables[up].diagonal,
        })?;
        Some(Step { up, down: group.start + choice.at, apart: highest - choice.lowest, gain: choice.gain })
    }

    /// Steps on one variable, if no equality couples them.
    fn solve_singles(&mut self, violation: f64, ended: impl Fn(usize) -> bool) {
        let count = self.variables.len();
        self.keys = self.variables.iter().map(|v| v.gradient).collect();
        self.signs = self.variables.iter().map(|v| -v.coefficient).collect();
        for step in 0..STEPS * count {
            if ended(step) {
                break;
            }
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

    /// Updates the keys after the coefficient of a row changes by `step`.
    fn take(&mut self, row: usize, step: f64) {
        let count = self.keys.len();
        take_row(&mut self.keys, &self.signs, step, &self.kernel[row * count..(row + 1) * count]);
    }

    /// Updates whether a variable may rise and fall.
    fn open(&mut self, at: usize) {
        let variable = &self.variables[at];
        self.rising[at] = if variable.may_rise() { 0.0 } else { f64::NEG_INFINITY };
        self.falling[at] = if variable.may_fall() { 0.0 } else { f64::INFINITY };
    }
}

/// The values of two variables after a step that keeps Σ α e: the first rises by e·step, the second falls by e·step.
/// Each goes to the end of its box at most, and then gets exactly that value. `apart` is the difference of their keys,
/// `between` their kernel value times both signs. None if there is no step.
pub(in crate::solve) fn pair_step(one: &Variable, other: &Variable, apart: f64, between: f64) -> Option<[f64; 2]> {
    let curvature = one.own + one.diagonal + other.own + other.diagonal - 2.0 * between;
    let wanted = apart / curvature.max(FLAT);
    let room_up = if one.sign > 0.0 { one.limit - one.alpha } else { one.alpha };
    let room_down = if other.sign > 0.0 { other.alpha } else { other.limit - other.alpha };
    let step = wanted.min(room_up).min(room_down);
    // A step of NaN counts as no step.
    (step > 0.0)
        .then(|| [one.moved(one.sign * step, step == room_up), other.moved(-other.sign * step, step == room_down)])
}

const LANES: usize = 8;

/// The first of the largest keys among the variables that may move.
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

/// The input of the choice of the second variable.
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

/// The variable with the largest gain of a step.
pub(in crate::solve) struct Partner {
    pub(in crate::solve) at: usize,
    gain: f64,
    /// The lowest of all keys.
    pub(in crate::solve) lowest: f64,
}

pub(in crate::solve) fn partner<V: Element>(search: &PartnerSearch<'_, V>) -> Option<Partner> {
    let (gain, lowest) = best_gain(search);
    if gain <= 0.0 {
        return None;
    }
    let count = search.keys.len();
    let at = (0..count).find(|&at| {
        gain_of(search, search.keys[at] + search.falling[at], search.row[at], search.signs[at], search.own[at]) == gain
    })?;
    Some(Partner { at, gain, lowest })
}

#[inline(always)]
fn gain_of<V: Element>(search: &PartnerSearch<'_, V>, key: f64, kernel: V, sign: f64, own: f64) -> f64 {
    let apart = search.highest - key;
    let curvature = search.own_up + own - 2.0 * (search.sign * sign) * kernel.wide();
    let curvature = if curvature > FLAT { curvature } else { FLAT };
    let gain = apart * apart / curvature;
    // Variables that may not fall have an infinite key.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Variables in two groups, or without groups, anywhere in their boxes. Some boxes are empty.
    fn variables(random: &mut Random, grouped: bool) -> Vec<Variable> {
        let variable = |_| {
            let limit = [0.0, 1.0, 1.0, f64::INFINITY][random.below(4) as usize];
            Variable {
                alpha: [0.0, 0.5, limit][random.below(3) as usize].min(limit).min(1.0),
                gradient: random.below(9) as f64 - 4.0,
                limit,
                coefficient: 1.0,
                sign: if !grouped { 0.0 } else { [-1.0, 1.0][random.below(2) as usize] },
                group: if grouped { random.below(2) as u16 } else { 0 },
                own: 1.0,
                diagonal: 0.0,
            }
        };
        (0..60).map(variable).collect()
    }

    #[test]
    fn a_selection_equals_a_comparison_of_all_with_all() {
        let mut random = Random::new(5, 0x7365_6c65, 0);
        for trial in 0..40 {
            let grouped = trial % 4 > 0;
            let variables = variables(&mut random, grouped);
            let selection = Selection::of(&variables, if grouped { 2 } else { 0 });
            let counts = |at: usize| variables[at].limit > 0.0;
            // The largest distance of one that may rise above some that may fall.
            let off = |at: usize, rising: bool| -> f64 {
                let own = &variables[at];
                if !grouped {
                    return if rising && counts(at) { own.projected().abs() } else { 0.0 };
                }
                let may =
                    |variable: &Variable, rise: bool| if rise { variable.may_rise() } else { variable.may_fall() };
                let partners = (0..variables.len()).filter(|&other| {
                    counts(other) && variables[other].group == own.group && may(&variables[other], !rising)
                });
                let apart =
                    partners.map(|other| (own.key() - variables[other].key()) * if rising { 1.0 } else { -1.0 });
                if counts(at) && may(own, rising) { apart.fold(0.0, f64::max) } else { 0.0 }
            };
            let all = 0..variables.len();
            let largest = all.clone().map(|at| off(at, true)).fold(0.0, f64::max);
            assert_eq!(selection.violation.max(0.0), largest);
            let inside = |variable: &Variable| variable.alpha > 0.0 && variable.alpha < variable.limit;
            let restless: Vec<usize> = (all.clone())
                .filter(|&at| off(at, true) > 0.0 || off(at, false) > 0.0 || inside(&variables[at]))
                .collect();
            assert_eq!(selection.restless(&variables), restless);
            // Kept variables first, then the worst of both sides in turn.
            let last = [3, 8, 20, 41];
            let mut sides = [true, false].map(|rising| {
                let mut side: Vec<usize> =
                    all.clone().filter(|at| off(*at, rising) > 0.0 && !last[2..].contains(at)).collect();
                side.sort_by(|&a, &b| off(b, rising).total_cmp(&off(a, rising)));
                side.truncate(2);
                side.into_iter()
            });
            let mut expected = last[2..].to_vec();
            for turn in 0..4 {
                let next = sides[turn % 2].next().filter(|next| !expected.contains(next) && expected.len() < 4);
                expected.extend(next);
            }
            assert_eq!(selection.working_set(&last, &variables, 4), expected);
        }
    }

    #[test]
    fn the_worst_are_those_that_sorting_all_would_find_first() {
        let mut random = Random::new(11, 0x776f_7273, 0);
        for count in [0, 1, 10, 300] {
            for room in [0, 1, 2, 7, 100, 500] {
                // Many violations are equal, and some are zero.
                let variables: Vec<Variable> = (0..count)
                    .map(|_| Variable {
                        alpha: 0.0,
                        gradient: random.below(9) as f64 - 2.0,
                        limit: 1.0,
                        coefficient: 1.0,
                        sign: 0.0,
                        group: 0,
                        own: 1.0,
                        diagonal: 0.0,
                    })
                    .collect();
                let taken: Vec<bool> = (0..count).map(|_| random.below(5) == 0).collect();
                let mut all: Vec<usize> = (0..count).filter(|&at| variables[at].gradient > 0.0 && !taken[at]).collect();
                all.sort_by(|&a, &b| variables[b].gradient.total_cmp(&variables[a].gradient));
                all.truncate(room);
                assert_eq!(worst(&variables, &taken, room, |variable| variable.gradient), all, "{room} of {count}");
            }
        }
    }
}
