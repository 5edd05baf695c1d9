//! The rows that one core works on, and the visit of one row.

use super::against_own::AgainstOwn;
use crate::certificate::ClassDual;
use crate::data::row_loops::{for_this_machine, prefetch};
use crate::data::{Design, Rows};
use crate::random::Random;
use crate::solve::scaled_rows::{ScaledRows, Sums};
use crate::task::LANES;
use std::ops::Range;

/// What stays fixed during the loop.
pub(super) struct Fixed<'a, R, T> {
    pub(super) task: &'a T,
    pub(super) rows: ScaledRows<'a, R>,
    /// Weights of one feature side by side: the number of classes, filled up.
    pub(super) stride: usize,
    /// The weight of the squared sums of coefficients: 0 without constants, 1 if they are penalised.
    pub(super) kappa: f64,
    /// ‖x‖² + κ of each row.
    pub(super) squares: Vec<f64>,
    /// Whether rows keep lists of the classes that matter.
    pub(super) listed: bool,
}

/// The weights of all classes, and the sum of the coefficients of each class.
#[derive(Clone, Default)]
pub(super) struct Point {
    pub(super) v: Vec<f64>,
    pub(super) sums: Sums,
    pub(super) pulls: Vec<f64>,
}

impl Point {
    /// Adds another point.
    pub(super) fn add(&mut self, other: &Point) {
        let add = |sum: &mut [f64], other: &[f64]| sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
        add(&mut self.v, &other.v);
        add(&mut self.pulls, &other.pulls);
        self.sums.add_times(1.0, &other.sums);
    }

    /// Multiplies the point by a factor.
    pub(super) fn scale(&mut self, factor: f64) {
        self.v.iter_mut().chain(&mut self.pulls).for_each(|number| *number *= factor);
        self.sums.scale(factor);
    }
}

/// How steps see the rest of the problem during a pass.
pub(super) struct View {
    /// The constants are centre + κ · pulls.
    pub(super) centre: Vec<f64>,
    /// How often a lane counts its own changes.
    pub(super) sigma: f64,
    /// Rows with a smaller gap leave the active set.
    pub(super) level: f64,
    /// Whether visits look at all classes.
    pub(super) whole: bool,
}

/// All rows, or every second one.
pub(super) struct Lane {
    number: usize,
    lanes: usize,
    /// The classes and dual variables of each row, in the order of the classes.
    duals: Vec<Vec<(u32, f64)>>,
    /// θ of the last step on each row.
    thetas: Vec<f64>,
    /// The classes that matter to each row, if rows keep lists.
    pub(super) lists: Vec<Vec<u32>>,
    /// Positions of active rows in the order of visits.
    active: Vec<u32>,
    /// Those visited in this pass that stay active.
    staying: Vec<u32>,
    random: Random,
    pub(super) point: Point,
    scratch: Scratch,
    /// The visits of the current round that changed something, and the dual variables before.
    undo: Vec<(u32, u32)>,
    undone: Vec<(u32, f64)>,
}

#[derive(Default)]
struct Scratch {
    scores: Vec<f64>,
    z: Vec<f64>,
    ids: Vec<u32>,
    order: Vec<u32>,
    duals: Vec<(u32, f64)>,
    changes: Vec<(u32, f64)>,
    steps: Vec<f64>,
    spare: Vec<f64>,
}

/// Rows keep lists from this many classes on. Fewer classes are looked at all at once.
pub(super) const LISTED_FROM: usize = 48;

/// How many classes a row takes into its list, besides those with dual variables: at least and at most.
const FEWEST_LISTED: usize = 2;
const LISTED: usize = 16;

/// Above the least number, a class is listed if its violation, is above this.
const NEAR: f64 = -0.3;

/// How many visits ahead rows are prefetched.
const ROWS_AHEAD: usize = 3;

impl<'a, R: Rows, T: AgainstOwn> Fixed<'a, R, T> {
    pub(super) fn design(&self) -> &'a Design {
        self.rows.design()
    }

    /// The scores of a row for all classes, with constants.
    #[inline(always)]
    pub(super) fn scores(&self, row: usize, point: &Point, centre: &[f64], out: &mut [f64]) {
        self.rows.scores(row, &point.v, &point.sums, out);
        if self.kappa > 0.0 {
            for (score, (centre, pull)) in out.iter_mut().zip(centre.iter().zip(&point.pulls)) {
                *score += centre + self.kappa * pull;
            }
        }
    }

    /// The loss and the gap of a row, with given constants. Leaves its violations in `z`.
    pub(super) fn judge(
        &self,
        row: usize,
        (point, constants): (&Point, &[f64]),
        duals: &[(u32, f64)],
        z: &mut [f64],
    ) -> (f64, f64) {
        self.rows.scores(row, &point.v, &point.sums, z);
        z.iter_mut().zip(constants).for_each(|(z, constant)| *z += constant);
        self.task.violations(row, z);
        let loss = self.task.loss(row, z);
        (loss, (loss - self.earned(self.task.cost(row), z, duals, |class| class as usize)).max(0.0))
    }

    /// What the dual variables of a row take off its loss.
    #[inline(always)]
    fn earned(&self, cost: f64, z: &[f64], duals: &[(u32, f64)], place: impl Fn(u32) -> usize) -> f64 {
        let of = |&(class, a): &(u32, f64)| a * z[place(class)] - self.task.conjugate(cost, a);
        duals.iter().map(of).sum()
    }
}

impl Lane {
    pub(super) fn new(number: usize, lanes: usize, rows: usize, listed: bool, random: Random) -> Lane {
        let own = (number..rows).step_by(lanes).count();
        Lane {
            number,
            lanes,
            duals: vec![Vec::new(); own],
            thetas: vec![0.0; own],
            lists: if listed { vec![Vec::new(); own] } else { Vec::new() },
            active: Vec::new(),
            staying: Vec::new(),
            random,
            point: Point::default(),
            scratch: Scratch::default(),
            undo: Vec::new(),
            undone: Vec::new(),
        }
    }

    #[inline(always)]
    fn row(&self, place: usize) -> usize {
        place * self.lanes + self.number
    }

    pub(super) fn active(&self) -> usize {
        self.active.len()
    }

    /// The dual variables of a row of this lane.
    pub(super) fn duals(&self, row: usize) -> &[(u32, f64)] {
        &self.duals[row / self.lanes]
    }

    /// Sets the dual variables of a row.
    pub(super) fn set(&mut self, row: usize, duals: Vec<(u32, f64)>) {
        self.duals[row / self.lanes] = duals;
    }

    /// Makes those rows active for which `is_active` is true.
    pub(super) fn activate(&mut self, is_active: impl Fn(usize) -> bool) {
        let rows = (self.number..self.number + self.lanes * self.duals.len()).step_by(self.lanes);
        self.active.clear();
        self.active.extend((0..).zip(rows).filter(|&(_, row)| is_active(row)).map(|(place, _): (u32, usize)| place));
    }

    /// Before a pass: a new random order.
    pub(super) fn shuffle(&mut self) {
        self.random.shuffle(&mut self.active);
        self.staying.clear();
    }

    /// How many of the rows visited in this pass stay active.
    pub(super) fn staying(&self) -> usize {
        self.staying.len()
    }

    /// After a pass: keeps only the rows that stay.
    pub(super) fn shrink(&mut self) {
        std::mem::swap(&mut self.active, &mut self.staying);
    }

    /// Steps on one round's share of the active rows. Returns the change of Σ α m − cost*(α).
    pub(super) fn round<R: Rows, T: AgainstOwn>(
        &mut self,
        visits: Range<usize>,
        fixed: &Fixed<'_, R, T>,
        view: &View,
    ) -> f64 {
        self.undo.clear();
        self.undone.clear();
        let mut gain = 0.0;
        visit_run(self, visits, fixed, view, &mut gain);
        gain
    }

    /// Undoes the last round, before which so many rows stayed active.
    pub(super) fn undo(&mut self, staying: usize, shared: &Point) {
        self.point.v.copy_from_slice(&shared.v);
        self.point.pulls.copy_from_slice(&shared.pulls);
        self.staying.truncate(staying);
        while let Some((place, count)) = self.undo.pop() {
            let rest = self.undone.len() - count as usize;
            self.duals[place as usize] = self.undone.split_off(rest);
        }
    }

    /// One step on the row at a place. Returns whether it stays active.
    #[inline(always)]
    fn visit<R: Rows, T: AgainstOwn>(
        &mut self,
        place: usize,
        fixed: &Fixed<'_, R, T>,
        view: &View,
        gain: &mut f64,
    ) -> bool {
        let row = self.row(place);
        let mut scratch = std::mem::take(&mut self.scratch);
        let stays = if !fixed.listed {
            scratch.z.resize(fixed.stride, 0.0);
            fixed.scores(row, &self.point, &view.centre, &mut scratch.z);
            fixed.task.violations(row, &mut scratch.z);
            self.step(place, &mut scratch, fixed, view, |at| at as u32, |class| class as usize, gain)
        } else {
            if view.whole {
                self.list_anew(place, &mut scratch, fixed, view);
            } else {
                self.list_again(place, &mut scratch, fixed, view);
            }
            let ids = std::mem::take(&mut scratch.ids);
            let find = |class| ids.binary_search(&class).unwrap_or(0);
            let stays = self.step(place, &mut scratch, fixed, view, |at| ids[at], find, gain);
            scratch.ids = ids;
            stays
        };
        self.scratch = scratch;
        stays
    }

    /// The classes that matter to a row, and their violations, from the scores of all classes.
    fn list_anew<R: Rows, T: AgainstOwn>(
        &self,
        place: usize,
        scratch: &mut Scratch,
        fixed: &Fixed<'_, R, T>,
        view: &View,
    ) {
        let (row, duals) = (self.row(place), &self.duals[place]);
        scratch.scores.resize(fixed.stride, 0.0);
        fixed.scores(row, &self.point, &view.centre, &mut scratch.scores);
        fixed.task.violations(row, &mut scratch.scores);
        matter(&scratch.scores, duals, &mut scratch.order, &mut scratch.ids);
        scratch.z.clear();
        scratch.z.extend(scratch.ids.iter().map(|&class| scratch.scores[class as usize]));
        scratch.z.resize(scratch.ids.len().next_multiple_of(LANES), f64::NEG_INFINITY);
    }

    /// The violations of the listed classes of a row.
    fn list_again<R: Rows, T: AgainstOwn>(
        &self,
        place: usize,
        scratch: &mut Scratch,
        fixed: &Fixed<'_, R, T>,
        view: &View,
    ) {
        let (row, Point { v, sums, pulls }) = (self.row(place), &self.point);
        let own = fixed.task.own(row);
        scratch.ids.clear();
        scratch.ids.extend_from_slice(&self.lists[place]);
        scratch.ids.push(own as u32);
        scratch.z.resize(scratch.ids.len(), 0.0);
        fixed.rows.scores_at(row, (v, fixed.stride), sums, &scratch.ids, &mut scratch.z);
        if fixed.kappa > 0.0 {
            for (z, &class) in scratch.z.iter_mut().zip(&scratch.ids) {
                *z += view.centre[class as usize] + fixed.kappa * pulls[class as usize];
            }
        }
        scratch.ids.pop();
        let score = scratch.z.pop().unwrap_or(0.0);
        for (z, &class) in scratch.z.iter_mut().zip(&scratch.ids) {
            *z += fixed.task.margin(row, class as usize) - score;
        }
        scratch.z.resize(scratch.ids.len().next_multiple_of(LANES), f64::NEG_INFINITY);
    }

    /// Solves the block of a row, given the violations of its classes.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // a row, its classes by place and by number, and what is read and written
    fn step<R: Rows, T: AgainstOwn>(
        &mut self,
        place: usize,
        scratch: &mut Scratch,
        fixed: &Fixed<'_, R, T>,
        view: &View,
        class_at: impl Fn(usize) -> u32,
        place_of: impl Fn(u32) -> usize,
        gain: &mut f64,
    ) -> bool {
        let row = self.row(place);
        let (cost, own) = (fixed.task.cost(row), fixed.task.own(row) as u32);
        let Scratch { z, duals: after, changes, steps, spare, .. } = scratch;
        let before = &self.duals[place];
        let gap = fixed.task.loss(row, z) - fixed.earned(cost, z, before, &place_of);
        if gap <= view.level {
            return false;
        }
        let q = view.sigma * fixed.squares[row];
        if !before.is_empty() {
            let sum: f64 = before.iter().map(|&(class, a)| fixed.task.sign(row, class as usize) * a).sum();
            fixed.task.shift(row, z, q * sum);
            before.iter().for_each(|&(class, a)| z[place_of(class)] += q * a);
        }
        self.thetas[place] = fixed.task.solve(row, z, q, self.thetas[place], spare);
        after.clear();
        changes.clear();
        let (mut moved, mut old) = (0.0, before.iter().peekable());
        let mut change = |class: u32, from: f64, to: f64| {
            if from != to {
                let margin = fixed.task.margin(row, class as usize);
                *gain += (to - from) * margin - (fixed.task.conjugate(cost, to) - fixed.task.conjugate(cost, from));
                let sign = fixed.task.sign(row, class as usize);
                changes.push((class, sign * (from - to)));
                moved += sign * (to - from);
            }
        };
        for (at, &to) in z.iter().enumerate().filter(|(_, to)| **to > 0.0) {
            let class = class_at(at);
            while let Some(&(earlier, from)) = old.next_if(|(earlier, _)| *earlier < class) {
                change(earlier, from, 0.0);
            }
            let from = old.next_if(|(same, _)| *same == class).map_or(0.0, |(_, from)| *from);
            change(class, from, to);
            after.push((class, to));
        }
        old.for_each(|&(class, from)| change(class, from, 0.0));
        if changes.is_empty() {
            return true;
        }
        changes.push((own, moved));
        if self.lanes == 2 {
            self.undo.push((place as u32, before.len() as u32));
            self.undone.extend_from_slice(before);
        }
        self.duals[place].clone_from(after);
        let Point { v, sums, pulls } = &mut self.point;
        for (class, step) in changes.iter_mut() {
            *step *= view.sigma;
            pulls[*class as usize] += *step;
        }
        if fixed.stride <= LANES * changes.len() {
            steps.resize(fixed.stride, 0.0);
            changes.iter().for_each(|&(class, step)| steps[class as usize] = step);
            fixed.rows.add_to_all(row, steps, v, sums);
            changes.iter().for_each(|&(class, _)| steps[class as usize] = 0.0);
        } else {
            fixed.rows.add_to_some(row, changes, (v, fixed.stride), sums);
        }
        true
    }
}

/// The classes that matter to a row, in order: those with dual variables, and those that violate their margin most, or
/// nearly do.
pub(super) fn matter(violations: &[f64], duals: &[(u32, f64)], order: &mut Vec<u32>, ids: &mut Vec<u32>) {
    let above = |least: f64| move |class: &u32| violations[*class as usize] > least;
    order.clear();
    order.extend((0..violations.len() as u32).filter(above(NEAR)));
    let most = if order.len() < FEWEST_LISTED {
        order.clear();
        order.extend((0..violations.len() as u32).filter(above(f64::NEG_INFINITY)));
        FEWEST_LISTED
    } else {
        LISTED
    };
    if most < order.len() {
        // Of equal violations, those of the first classes.
        let larger = |a: &u32, b: &u32| violations[*b as usize].total_cmp(&violations[*a as usize]).then(a.cmp(b));
        order.select_nth_unstable_by(most, larger);
        order.truncate(most);
    }
    ids.clear();
    ids.extend_from_slice(order);
    ids.extend(duals.iter().map(|(class, _)| class));
    ids.sort_unstable();
    ids.dedup();
}

for_this_machine! {
    fn visit_run[R: Rows, T: AgainstOwn](
        lane: &mut Lane,
        visits: Range<usize>,
        fixed: &Fixed<'_, R, T>,
        view: &View,
        gain: &mut f64,
    ) -> () = visit_run_here
}

#[inline(always)]
fn visit_run_here<R: Rows, T: AgainstOwn>(
    lane: &mut Lane,
    visits: Range<usize>,
    fixed: &Fixed<'_, R, T>,
    view: &View,
    gain: &mut f64,
) {
    for at in visits {
        // What locates the dual variables of a row, and then these and the row itself.
        if let Some(&place) = lane.active.get(at + 2 * ROWS_AHEAD) {
            prefetch(&lane.duals, place as usize);
            prefetch(&lane.thetas, place as usize);
            fixed.rows.prefetch_start(lane.row(place as usize));
        }
        if let Some(&place) = lane.active.get(at + ROWS_AHEAD) {
            fixed.rows.prefetch(lane.row(place as usize));
            prefetch(&lane.duals[place as usize], 0);
            if let Some(list) = lane.lists.get(place as usize) {
                prefetch(list, 0);
            }
        }
        let place = lane.active[at];
        if lane.visit(place as usize, fixed, view, gain) {
            lane.staying.push(place);
        }
    }
}

/// The dual variables of all rows.
pub(super) fn gathered(lanes: &[Lane], rows: usize) -> ClassDual {
    let mut dual = ClassDual { starts: vec![0], ..ClassDual::default() };
    for row in 0..rows {
        dual.push(lanes[row % lanes.len()].duals(row).iter().map(|&(class, value)| (class as usize, value)));
    }
    dual
}
