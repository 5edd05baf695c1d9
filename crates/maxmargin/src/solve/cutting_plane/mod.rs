//! The cutting-plane method with exact line search, for any convex risk.
//!
//! ```text
//! min  f(w) = ½‖w_penalised‖² + R(w)
//! ```
//! R is convex, so a subgradient a at any point p gives a *cut*: R(w) ≥ a·w + β, β = R(p) − a·p. The maximum of all
//! cuts is a model of R from below, and the minimum of ½‖w‖² plus the model is a lower bound of f. A round
//!
//! 1. minimises the model (see `master.rs`): a point w and the bound;
//! 2. searches the line from the best point so far through w for the minimum of f, the new best point;
//! 3. takes two new cuts: one at the best point, and one ahead of it, at most a tenth of the way from there to w, which
//!    cuts w off. With several free coordinates and no progress, it is taken at other shares of the way in turn.
//!
//! One cut covers the losses of all rows at once, so a few dozen active cuts are enough for data of any length
//! (1-slack: Joachims, Training linear SVMs in linear time, KDD 2006; Teo et al., Bundle methods for regularized risk
//! minimization, JMLR 11, 2010). Steps 2 and 3 are those of Franc & Sonnenburg, Optimized cutting plane algorithm for
//! large-scale risk minimization, JMLR 10, 2009. We also take their cut at the best point, since the line search
//! evaluates it anyway. Cuts without a multiplier for 50 rounds are dropped.
//!
//! **Certificate.** With multipliers μ ≥ 0, Σ μ_k = 1, the bound is Σ μ_k β_k − ½‖Σ μ_k a_k‖². It holds for cuts at any
//! points, so the points and multipliers of the active cuts prove it. Each free coordinate adds the condition that its
//! slopes cancel, Σ μ_k c_k = 0. Cuts at w = 0 make this feasible from the start: for one free coordinate there are
//! two, far to either side of its minimum. For several (see [`Bundle::surround`]), each new cut is taken far out in the
//! direction in which all earlier slopes point away from zero, until zero lies between the slopes.
//!
//! Stops at a relative gap. Cost of a round: two evaluations and the scores of one direction; the line search reads no
//! features. Memory: two vectors a cut, and as many numbers as cuts squared. The number of rounds grows with 1/gap for
//! losses with kinks, and with its logarithm for smooth losses, where Newton's method is still far ahead.
//!
//! **What it does not do.** On columns of very different sizes, as in raw web-search data, it stalls, often with no
//! bound but zero. The likely cause: w = −Σ μ_k a_k is a difference of slopes. On a sample of MSLR at C = 1 the largest
//! slope at zero weights is 3·10⁹ and the weight of its column at the optimum 2·10⁻⁹, less than the rounding of the
//! slope. It is not known whether a master problem with more digits would help. Use scaled columns (`--scale standard`)
//! or Newton's method, the default for rankers, instead.
//!
//! With several free coordinates and the hinge it may still stall, with a sound bound: seen at a gap of 1% for 40 rows
//! of three joint classes at a cost of 0.01 (`tests/it/several.rs`). The cause is not known.

mod interior;
mod master;

use super::plane_bound::Taken;
use super::{Cut, Progress, Risk, Sizes, Solution, Start, Stop, Witness, dot, overflow, relative_gap};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::run::{Cancel, Observer};
use master::Master;

/// Settings of the solver.
#[derive(Clone, Debug)]
pub struct CuttingPlane {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The maximum number of rounds.
    pub max_passes: u64,
}

/// A cut is taken at most this share of the way from the best point towards the model's minimum.
const AHEAD: f64 = 0.1;
/// The factors for that share: after a round without progress, and after a round with progress.
const NEARER: f64 = 1e-3;
const FURTHER: f64 = 10.0;
/// A cut without a multiplier for more rounds than this is dropped.
const IDLE_ROUNDS: u32 = 50;
/// The solver has stalled after this many rounds in which neither the objective nor the bound improved.
const STALLED_ROUNDS: u32 = 8;
/// The same with several free coordinates. The model then often has its minimum on a face, of which every cut removes
/// only a part: many rounds may pass before the objective or the bound improves.
const STALLED_ROUNDS_OF_SEVERAL: u32 = 50;
/// The shares of the way with several free coordinates, one for each round without progress, over and over. A cut at
/// the model's minimum halves the face; a cut close to the best point adds the slope on another side of its kinks.
const SHARES: [f64; 4] = [AHEAD, 1e-3, 1.0, 1e-5];
/// The line search stops within this share of the gap.
const LINE_SHARE: f64 = 1e-2;
/// The last share of a step, which is left out, see [`search`].
const OFF_THE_KINK: f64 = 1e-7;
/// Slopes by a free coordinate count as cancelling if their sum is below this share of their sizes.
const BALANCED: f64 = 1e-12;
/// Doublings past the first point where the slope points back, so that the cut lies well on the other side of zero.
const BEYOND: i32 = 2;
/// Zero counts as lying between the slopes if their convex hull, in units of the largest slope, comes nearer to it than
/// this.
const NEAR_ZERO: f64 = 1e-9;

/// Cuts kept at a time, two vectors each.
const CUTS: u64 = 200;

/// What it allocates beside the features and the risk.
pub(super) fn bytes(sizes: &Sizes) -> u64 {
    CUTS * 2 * sizes.cols * 8
}

impl CuttingPlane {
    /// Minimises the risk from `start`, or from zero. `features` says how many of the coordinates are weights; the rest
    /// are thresholds.
    pub fn solve(
        &self,
        risk: &mut dyn Risk,
        features: usize,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        Ok(self.solve_counted(risk, features, start, observer, cancel)?.0)
    }

    /// The same, with the number of cuts and the largest square of a slope.
    pub(crate) fn solve_counted(
        &self,
        risk: &mut dyn Risk,
        features: usize,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<(Solution, Taken)> {
        let (dim, penalised) = (risk.dim(), risk.penalised());
        let mut progress = Progress::new(observer, cancel);
        let mut bundle = Bundle::new(penalised, dim - penalised);
        let mut gradient = vec![0.0; dim];
        bundle.anchor(risk, &mut gradient, cancel)?;
        // The cuts of a neighbouring problem are taken again at the same points.
        for cut in start.iter().flat_map(|start| start.cuts.iter().flatten()) {
            let value = risk.evaluate(&cut.point, &mut gradient)?;
            cancel.check()?;
            bundle.add(&cut.point, value, &gradient)?;
        }
        let mut best = match start {
            Some(start) => [&start.weights[..], &start.thresholds[..]].concat(),
            None => vec![0.0; dim],
        };
        let mut value = risk.evaluate(&best, &mut gradient)?;
        // After a cancel the value is incomplete.
        cancel.check()?;
        bundle.add(&best, value, &gradient)?;
        bundle.start();
        let (mut passes, mut idle, mut share) = (0, 0, AHEAD);
        let several = dim - penalised > 1;
        let patience = if several { STALLED_ROUNDS_OF_SEVERAL } else { STALLED_ROUNDS };
        let stop = loop {
            let (lowest, risen) = bundle.minimise(&best[penalised..], cancel);
            let bound = progress.bound(Some(bundle.bound)).unwrap_or(0.0);
            if progress.report(passes, value, &best[..features], &best[features..]) || progress.cancelled() {
                break Stop::Cancelled;
            }
            if relative_gap(value, bound) <= self.tolerance {
                break Stop::Converged;
            }
            if passes >= self.max_passes {
                break Stop::PassLimit;
            }
            if lowest.len() != best.len() {
                // The slopes are so different in size that their model cannot be minimised in double precision.
                break Stop::Stalled;
            }
            // The last evaluation was at the best point: every round ends with it.
            let direction: Vec<f64> = lowest.iter().zip(&best).map(|(to, from)| to - from).collect();
            risk.line(&direction)?;
            let step = search(risk, value, LINE_SHARE * (value - bound), cancel)?;
            let along = |step: f64| best.iter().zip(&direction).map(|(from, d)| from + step * d).collect::<Vec<f64>>();
            let moved = along(step);
            let ahead = along(step + share * (1.0 - step));
            let ahead_value = risk.evaluate(&ahead, &mut gradient)?;
            if progress.cancelled() {
                break Stop::Cancelled;
            }
            bundle.add(&ahead, ahead_value, &gradient)?;
            let moved_value = risk.evaluate(&moved, &mut gradient)?;
            if progress.cancelled() {
                break Stop::Cancelled;
            }
            passes += 1;
            let fallen = moved_value < value;
            if fallen {
                bundle.add(&moved, moved_value, &gradient)?;
                (best, value) = (moved, moved_value);
            } else if step > 0.0 {
                // At the limit of double precision, the line search may find a decrease that the full sum does not
                // confirm.
                risk.evaluate(&best, &mut gradient)?;
            }
            // The minimum of an early model may be so far away that a cut at a tenth of the way is useless near the
            // best point.
            (idle, share) =
                if fallen || risen { (0, (share * FURTHER).min(AHEAD)) } else { (idle + 1, share * NEARER) };
            if several {
                share = SHARES[idle as usize % SHARES.len()];
            }
            if idle >= patience {
                break Stop::Stalled;
            }
        };
        // The objective is never negative, so zero is a better bound than a negative one, and needs no cuts as proof.
        let (cuts, bound) = (bundle.proof(), bundle.bound.max(0.0));
        let sound = !cuts.is_empty() && bound.is_finite() && cuts.iter().all(|cut| cut.multiplier.is_finite());
        let (witness, bound) = if sound { (Witness::Cuts(cuts), bound) } else { (Witness::Weights, 0.0) };
        debug_assert!(bound <= value * (1.0 + 1e-9));
        let thresholds = best.split_off(features);
        let solution = Solution {
            weights: best,
            thresholds,
            objective: value,
            lower_bound: Some(bound),
            witness,
            passes,
            stop,
            first_rate: None,
            read: None,
            kernel: None,
            trace: progress.trace,
        };
        Ok((solution, bundle.taken))
    }
}

/// A cut: R(w) ≥ slope·w + offset.
struct Plane {
    point: Vec<f64>,
    slope: Vec<f64>,
    offset: f64,
    /// Its multiplier in the best bound so far.
    proof: f64,
    /// Rounds since it last had a multiplier.
    idle: u32,
}

/// All cuts, and the solution of the master problem.
struct Bundle {
    penalised: usize,
    /// The number of free coordinates.
    free: usize,
    planes: Vec<Plane>,
    /// Products of the penalised parts of the slopes.
    gram: Vec<Vec<f64>>,
    /// The multipliers of the last master problem.
    multipliers: Vec<f64>,
    /// The best bound so far.
    bound: f64,
    /// All cuts so far, those that were dropped among them.
    taken: Taken,
}

impl Bundle {
    fn new(penalised: usize, free: usize) -> Bundle {
        let bound = f64::NEG_INFINITY;
        let (planes, taken) = (Vec::new(), Taken::default());
        Bundle { penalised, free, planes, gram: Vec::new(), multipliers: Vec::new(), bound, taken }
    }

    /// Takes cuts at zero weights that make feasible multipliers possible from the start.
    fn anchor(&mut self, risk: &mut dyn Risk, gradient: &mut [f64], cancel: &Cancel) -> Result<()> {
        match self.free {
            0 => Ok(()),
            1 => {
                for side in [-1.0, 1.0] {
                    self.far_cut(risk, &[side], 0, gradient)?;
                    cancel.check()?;
                }
                Ok(())
            }
            _ => self.surround(risk, gradient, cancel),
        }
    }

    /// Takes a cut at zero weights, with the free coordinates so far along a direction that the slope points back, and
    /// then `beyond` doublings further.
    fn far_cut(&mut self, risk: &mut dyn Risk, direction: &[f64], beyond: i32, gradient: &mut [f64]) -> Result<()> {
        let mut point = vec![0.0; gradient.len()];
        for doubling in 0..60 {
            let along = |size: f64| direction.iter().map(move |side| side * size);
            point[self.penalised..].iter_mut().zip(along(f64::from(doubling).exp2())).for_each(|(at, to)| *at = to);
            let mut value = risk.evaluate(&point, gradient)?;
            if dot(&gradient[self.penalised..], direction) >= 0.0 {
                if beyond > 0 {
                    point[self.penalised..].iter_mut().for_each(|at| *at *= f64::from(beyond).exp2());
                    value = risk.evaluate(&point, gradient)?;
                }
                return self.add(&point, value, gradient);
            }
        }
        let what = if self.free == 1 { "the free coordinate has" } else { "the free coordinates have" };
        Err(Error::new(Code::Unsupported, format!("{what} no minimum, and cutting planes need one"))
            .help("penalise it: ⟦intercept=penalised⟧"))
    }

    /// Takes cuts at zero weights until zero lies in the convex hull of their slopes by the free coordinates, and sets
    /// multipliers with which these slopes cancel. Until then, let z be the point of the hull nearest to zero: all
    /// slopes point towards z, and a cut far out in the direction −z points elsewhere. This is Wolfe's method for the
    /// nearest point, with slopes computed when they are needed.
    fn surround(&mut self, risk: &mut dyn Risk, gradient: &mut [f64], cancel: &Cancel) -> Result<()> {
        let zero = vec![0.0; gradient.len()];
        let value = risk.evaluate(&zero, gradient)?;
        cancel.check()?;
        self.add(&zero, value, gradient)?;
        self.multipliers[0] = 1.0;
        for _ in 0..100 * (self.free + 1) {
            let pulls = self.pulls();
            // Each coordinate has its own unit, so that small slopes are not lost beside large ones.
            let unit = |pulls: &Vec<f64>| pulls.iter().fold(0.0f64, |most, pull| most.max(pull.abs()));
            let units: Vec<f64> = pulls.iter().map(unit).map(|unit| if unit > 0.0 { unit } else { 1.0 }).collect();
            let count = self.planes.len();
            let product = |a: usize, b: usize| -> f64 {
                pulls.iter().zip(&units).map(|(pulls, unit)| pulls[a] / unit * (pulls[b] / unit)).sum()
            };
            let gram: Vec<Vec<f64>> = (0..count).map(|a| (0..count).map(|b| product(a, b)).collect()).collect();
            let still = [vec![0.0; count]];
            Master { gram: &gram, offsets: &still[0], pulls: &still }.maximise(&mut self.multipliers, &[0.0], cancel);
            let nearest: Vec<f64> =
                pulls.iter().zip(&units).map(|(pulls, unit)| dot(pulls, &self.multipliers) / unit).collect();
            let mut balanced = self.multipliers.clone();
            Master { gram: &gram, offsets: &still[0], pulls: &pulls }.make_feasible(&mut balanced);
            if dot(&nearest, &nearest).sqrt() <= NEAR_ZERO && is_balanced(&pulls, &balanced) {
                self.multipliers = balanced;
                return Ok(());
            }
            let largest = nearest.iter().zip(&units).fold(0.0f64, |most, (z, unit)| most.max((z / unit).abs()));
            let direction: Vec<f64> = nearest.iter().zip(&units).map(|(z, unit)| -z / unit / largest).collect();
            self.far_cut(risk, &direction, BEYOND, gradient)?;
            cancel.check()?;
        }
        Err(Error::new(Code::Unsupported, "no cuts were found between which the free coordinates have their minimum")
            .help("penalise them: ⟦intercept=penalised⟧"))
    }

    /// The slopes of all cuts by each free coordinate; one vector of zeros if no coordinate is free.
    fn pulls(&self) -> Vec<Vec<f64>> {
        let pulls = |at: usize| self.planes.iter().map(|plane| plane.slope.get(at).copied().unwrap_or(0.0)).collect();
        (self.penalised..self.penalised + self.free.max(1)).map(pulls).collect()
    }

    /// Adds the cut at a point.
    fn add(&mut self, point: &[f64], value: f64, gradient: &[f64]) -> Result<()> {
        let (slope, offset) = cut(self.penalised, point, value, gradient);
        if !offset.is_finite() || slope.iter().any(|slope| !slope.is_finite()) {
            return Err(overflow());
        }
        let own = &slope[..self.penalised];
        let product = |plane: usize| dot(&self.planes[plane].slope[..self.penalised], own);
        let mut row = parallel::map(self.planes.len(), product);
        row.push(dot(own, own));
        self.taken = Taken { planes: self.taken.planes + 1, largest: self.taken.largest.max(dot(own, own)) };
        if row.iter().any(|product| !product.is_finite()) {
            return Err(overflow());
        }
        self.gram.iter_mut().zip(&row).for_each(|(other, &product)| other.push(product));
        self.gram.push(row);
        self.multipliers.push(0.0);
        self.planes.push(Plane { point: point.to_vec(), slope, offset, proof: 0.0, idle: 0 });
        Ok(())
    }

    /// The first feasible multipliers: of the two anchors, or of the only cut. With several free coordinates,
    /// `surround` has set them.
    fn start(&mut self) {
        if self.free > 1 {
            return;
        }
        let pull = |plane: &Plane| plane.slope.get(self.penalised).copied().unwrap_or(0.0);
        match &self.planes[..] {
            [down, up, ..] if pull(up) > pull(down) => {
                let width = pull(up) - pull(down);
                self.multipliers[0] = pull(up) / width;
                self.multipliers[1] = -pull(down) / width;
            }
            _ => self.multipliers[0] = 1.0,
        }
    }

    /// Solves the master problem. Returns the model's minimum and whether the bound has risen. A free coordinate that
    /// the minimum does not determine is that of `near`, see [`Master::maximise`]. Drops idle cuts.
    fn minimise(&mut self, near: &[f64], cancel: &Cancel) -> (Vec<f64>, bool) {
        let offsets: Vec<f64> = self.planes.iter().map(|plane| plane.offset).collect();
        let pulls = self.pulls();
        let master = Master { gram: &self.gram, offsets: &offsets, pulls: &pulls };
        let near = if self.free == 0 { &[0.0] } else { near };
        let free = master.maximise(&mut self.multipliers, near, cancel);
        let shares = self.multipliers.iter().copied();
        let (mut lowest, bound) = combine(
            self.penalised,
            shares.zip(&self.planes).map(|(share, plane)| (share, &plane.slope[..], plane.offset)),
        );
        lowest.iter_mut().for_each(|slope| *slope = -*slope);
        lowest.iter_mut().skip(self.penalised).zip(free).for_each(|(coordinate, free)| *coordinate = free);
        let risen = bound > self.bound;
        for (plane, &multiplier) in self.planes.iter_mut().zip(&self.multipliers) {
            plane.idle = if multiplier > 0.0 { 0 } else { plane.idle + 1 };
            if risen {
                plane.proof = multiplier;
            }
        }
        self.bound = self.bound.max(bound);
        let keep: Vec<bool> = self.planes.iter().map(|plane| plane.idle <= IDLE_ROUNDS || plane.proof > 0.0).collect();
        if keep.contains(&false) {
            retain(&mut self.planes, &keep);
            retain(&mut self.multipliers, &keep);
            retain(&mut self.gram, &keep);
            self.gram.iter_mut().for_each(|row| retain(row, &keep));
        }
        (lowest, risen)
    }

    /// The cuts that prove the bound.
    fn proof(&self) -> Vec<Cut> {
        let active = self.planes.iter().filter(|plane| plane.proof > 0.0);
        active.map(|plane| Cut { point: plane.point.clone(), multiplier: plane.proof }).collect()
    }
}

fn retain<V>(values: &mut Vec<V>, keep: &[bool]) {
    let mut keep = keep.iter();
    values.retain(|_| keep.next().copied().unwrap_or(true));
}

/// What a bound is lowered by for rounding, relative to the sizes of its terms. This leaves out a few digits, so that
/// another type of processor confirms the bound. The value was found by trial, it is not a proven error: sums over very
/// many rows may in principle lose more.
const ROUNDING: f64 = 32.0 * f64::EPSILON;

/// Slope and offset of the cut at a point, from value and gradient of the whole risk there. Far from the minimum both
/// parts of the offset are large and nearly cancel, so the offset is lowered by the possible rounding error.
fn cut(penalised: usize, point: &[f64], value: f64, gradient: &[f64]) -> (Vec<f64>, f64) {
    let mut slope = gradient.to_vec();
    let (fixed, at) = (&mut slope[..penalised], &point[..penalised]);
    fixed.iter_mut().zip(at).for_each(|(slope, at)| *slope -= at);
    let offset = value - 0.5 * dot(at, at) - dot(&slope, point);
    let sizes = value.abs() + 0.5 * dot(at, at) + (dot(&slope, &slope) * dot(point, point)).sqrt();
    (slope, offset - ROUNDING * sizes)
}

/// The weighted sum of cuts, and the bound it proves. The solver and `verify` share this order of summation. The length
/// of the sum is increased by its possible rounding error.
fn combine<'a>(penalised: usize, cuts: impl Iterator<Item = (f64, &'a [f64], f64)>) -> (Vec<f64>, f64) {
    let mut sum = Vec::new();
    let (mut offset, mut sizes) = (0.0, 0.0);
    for (share, slope, own) in cuts.filter(|(share, ..)| *share > 0.0) {
        sum.resize(slope.len(), 0.0);
        sum.iter_mut().zip(slope).for_each(|(sum, slope)| *sum += share * slope);
        offset += share * own;
        sizes += share * dot(slope, slope).sqrt();
    }
    let fixed = &sum[..penalised.min(sum.len())];
    let length = dot(fixed, fixed).sqrt() + ROUNDING * sizes;
    (sum, offset - 0.5 * length * length)
}

/// Whether the slopes by every free coordinate cancel, up to rounding.
fn is_balanced(pulls: &[Vec<f64>], multipliers: &[f64]) -> bool {
    pulls.iter().all(|pulls| {
        let sizes: f64 = pulls.iter().zip(multipliers).map(|(pull, multiplier)| (multiplier * pull).abs()).sum();
        dot(pulls, multipliers).abs() <= BALANCED * sizes
    })
}

/// The bound that cuts prove, each computed again from the risk, or the reason why they prove none. After a cancel the
/// result is not usable. The outer error is that of the risk.
pub(crate) fn bound_of_cuts(
    risk: &mut dyn Risk,
    cuts: &[Cut],
    cancel: &Cancel,
) -> Result<std::result::Result<f64, &'static str>> {
    let (dim, penalised) = (risk.dim(), risk.penalised());
    if cuts.is_empty() || cuts.iter().any(|cut| cut.point.len() != dim) {
        return Ok(Err("its cuts do not fit the problem"));
    }
    if !cuts.iter().all(|cut| cut.multiplier >= 0.0) {
        return Ok(Err("a multiplier is negative or no number"));
    }
    let total: f64 = cuts.iter().map(|cut| cut.multiplier).sum();
    if (total - 1.0).abs() > BALANCED {
        return Ok(Err("its multipliers do not add up to one"));
    }
    let mut gradient = vec![0.0; dim];
    let (mut pull, mut pulls) = (vec![0.0; dim - penalised], vec![0.0; dim - penalised]);
    let mut taken = Vec::with_capacity(cuts.len());
    for Cut { point, multiplier } in cuts {
        if cancel.is_raised() {
            break;
        }
        let value = risk.evaluate(point, &mut gradient)?;
        let (slope, offset) = cut(penalised, point, value, &gradient);
        if !offset.is_finite() || slope.iter().any(|slope| !slope.is_finite()) {
            return Ok(Err("a cut is not finite"));
        }
        for (at, free) in slope[penalised..].iter().enumerate() {
            pull[at] += multiplier * free;
            pulls[at] += multiplier * free.abs();
        }
        taken.push((*multiplier, slope, offset));
    }
    if pull.iter().zip(&pulls).any(|(pull, pulls): (&f64, &f64)| pull.abs() > BALANCED * pulls) {
        return Ok(Err("its slopes by the intercept do not cancel"));
    }
    let taken = taken.iter().map(|(share, slope, offset)| (*share, &slope[..], *offset));
    Ok(Ok(combine(penalised, taken).1.max(0.0)))
}

/// The step along the prepared line at which the value is smallest, to within `enough`; zero if no step lowers it.
fn search(risk: &mut dyn Risk, value: f64, enough: f64, cancel: &Cancel) -> Result<f64> {
    struct At {
        step: f64,
        value: f64,
        slope: f64,
    }
    let mut along = |step: f64| {
        let (value, slope) = risk.along(step)?;
        Ok::<At, Error>(At { step, value, slope })
    };
    let finite = |at: &At| at.value.is_finite() && at.slope.is_finite();
    let mut low = along(0.0)?;
    if !finite(&low) {
        return Err(overflow());
    }
    if low.slope >= 0.0 {
        return Ok(0.0);
    }
    let mut high = along(1.0)?;
    // Where the values overflow at the model's minimum, the step is shortened until they do not.
    for _ in 0..1100 {
        if finite(&high) || cancel.is_raised() {
            break;
        }
        high = along(0.5 * high.step)?;
    }
    if !finite(&high) {
        return Err(overflow());
    }
    for _ in 0..60 {
        if high.slope >= 0.0 || cancel.is_raised() {
            break;
        }
        let next = along(2.0 * high.step)?;
        if !finite(&next) {
            break;
        }
        low = std::mem::replace(&mut high, next);
    }
    // The function is convex between a falling and a rising end: the tangents at both ends meet below the minimum.
    for round in 0..60 {
        let width = high.step - low.step;
        let bend = high.slope - low.slope;
        if !bend.is_finite() || bend <= 0.0 || cancel.is_raised() {
            break;
        }
        let meet = (low.value - high.value + high.slope * width) / bend;
        let floor = low.value + low.slope * meet;
        if low.value.min(high.value) - floor <= enough || width <= 1e-12 * high.step {
            break;
        }
        // A kink is where the tangents meet. A smooth minimum is where the interpolated slope vanishes.
        let ahead = match round % 3 {
            0 => meet,
            1 => -low.slope * width / bend,
            _ => 0.5 * width,
        };
        let ahead = if ahead.is_finite() { ahead.clamp(0.01 * width, 0.99 * width) } else { 0.5 * width };
        let next = along(low.step + ahead)?;
        if next.slope < 0.0 { low = next } else { high = next }
    }
    let least = if low.value < high.value { low } else { high };
    // Stay off a kink at the minimum: exactly there, rounding decides which side's subgradient is taken. On another
    // type of processor, `verify` might then compute another cut.
    Ok(if least.value < value { least.step * (1.0 - OFF_THE_KINK) } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Silent;

    /// ½ Σ w² + Σ cost·|w − target|, the last coordinates free: each coordinate has its minimum in closed form.
    struct Distances {
        targets: Vec<f64>,
        costs: Vec<f64>,
        free: usize,
        at: Vec<f64>,
        direction: Vec<f64>,
    }

    impl Distances {
        fn new(targets: &[f64], costs: &[f64], free: usize) -> Distances {
            let (at, direction) = (vec![], vec![]);
            Distances { targets: targets.to_vec(), costs: costs.to_vec(), free, at, direction }
        }

        fn value(&self, w: &[f64]) -> f64 {
            let terms = w.iter().zip(&self.targets).zip(&self.costs);
            let distances: f64 = terms.map(|((w, target), cost)| cost * (w - target).abs()).sum();
            distances + 0.5 * w[..self.penalised()].iter().map(|w| w * w).sum::<f64>()
        }

        fn optimum(&self) -> f64 {
            (0..self.penalised())
                .map(|at| {
                    let (target, cost) = (self.targets[at].abs(), self.costs[at]);
                    if target <= cost { 0.5 * target * target } else { cost * target - 0.5 * cost * cost }
                })
                .sum()
        }
    }

    impl Risk for Distances {
        fn dim(&self) -> usize {
            self.targets.len()
        }

        fn penalised(&self) -> usize {
            self.targets.len() - self.free
        }

        fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> Result<f64> {
            self.at = w.to_vec();
            for (coordinate, gradient) in gradient.iter_mut().enumerate() {
                let own = if coordinate < self.penalised() { w[coordinate] } else { 0.0 };
                *gradient = own + self.costs[coordinate] * (w[coordinate] - self.targets[coordinate]).signum();
            }
            Ok(self.value(w))
        }

        fn line(&mut self, direction: &[f64]) -> Result<()> {
            self.direction = direction.to_vec();
            Ok(())
        }

        fn along(&mut self, step: f64) -> Result<(f64, f64)> {
            let moved: Vec<f64> = self.at.iter().zip(&self.direction).map(|(at, d)| at + step * d).collect();
            let mut gradient = vec![0.0; moved.len()];
            let at = std::mem::take(&mut self.at);
            let value = self.evaluate(&moved, &mut gradient)?;
            self.at = at;
            Ok((value, dot(&gradient, &self.direction)))
        }
    }

    fn solve(risk: &mut Distances, start: Option<&Start>) -> Result<Solution> {
        let features = risk.penalised();
        let solver = CuttingPlane { tolerance: 1e-9, max_passes: 5000 };
        solver.solve(risk, features, start, &mut Silent, &Cancel::new())
    }

    #[test]
    fn a_risk_with_kinks_is_solved_with_any_number_of_free_coordinates() {
        for free in [0, 1, 2, 4] {
            let mut risk = Distances::new(&[3.0, -0.4, 0.1, -7.0, 5.0], &[1.0, 2.0, 0.5, 3.0, 0.7], free);
            let optimum = risk.optimum();
            let solution = solve(&mut risk, None).expect("solved");
            assert_eq!(solution.stop, Stop::Converged, "{:?}", solution.trace);
            assert!((solution.objective - optimum).abs() <= 1e-8 * optimum);
            let point = [&solution.weights[..], &solution.thresholds].concat();
            assert_eq!(risk.value(&point), solution.objective, "the objective is that of the weights");
            let Witness::Cuts(cuts) = &solution.witness else { panic!("cuts") };
            assert_eq!(
                bound_of_cuts(&mut risk, cuts, &Cancel::new()).expect("a value"),
                Ok(solution.lower_bound.expect("a bound")),
                "the witness proves the bound"
            );
            let mut previous = 0.0;
            for point in &solution.trace {
                let bound = point.lower_bound.expect("a bound");
                assert!(bound >= previous && bound <= optimum * (1.0 + 1e-12) && point.objective >= optimum);
                previous = bound;
            }
        }
    }

    #[test]
    fn a_start_at_the_solution_saves_rounds() {
        let mut risk = Distances::new(&[3.0, -0.4, 0.1, -7.0, 5.0], &[1.0, 2.0, 0.5, 3.0, 0.7], 1);
        let cold = solve(&mut risk, None).expect("solved");
        let start = Start { weights: cold.weights, thresholds: cold.thresholds, ..Start::default() };
        let warm = solve(&mut risk, Some(&start)).expect("solved");
        assert!(warm.stop == Stop::Converged && warm.passes < cold.passes, "{} {}", warm.passes, cold.passes);
    }

    #[test]
    fn cuts_without_a_multiplier_are_dropped_and_the_bound_stays() {
        let mut risk = Distances::new(&[3.0], &[5.0], 0);
        let mut bundle = Bundle::new(1, 0);
        let mut gradient = [0.0];
        for point in [0.0, 4.0, 3.5, 9.0] {
            let value = risk.evaluate(&[point], &mut gradient).expect("a value");
            bundle.add(&[point], value, &gradient).expect("finite");
        }
        bundle.start();
        bundle.minimise(&[], &Cancel::new());
        let bound = bundle.bound;
        assert_eq!((bundle.planes.len(), bundle.proof().len()), (4, 2));
        for _ in 0..IDLE_ROUNDS {
            bundle.minimise(&[], &Cancel::new());
        }
        assert_eq!((bundle.planes.len(), bundle.gram.len(), bundle.gram[0].len()), (2, 2, 2));
        assert_eq!(bundle.bound, bound);
        assert_eq!(bound_of_cuts(&mut risk, &bundle.proof(), &Cancel::new()).expect("a value"), Ok(bound));
    }

    #[test]
    fn forged_cuts_prove_nothing() {
        let mut risk = Distances::new(&[3.0, 1.0], &[5.0, 2.0], 1);
        let Witness::Cuts(cuts) = solve(&mut risk, None).expect("solved").witness else { panic!("cuts") };
        let mut refused = |change: &dyn Fn(&mut Vec<Cut>), said: &str| {
            let mut cuts = cuts.clone();
            change(&mut cuts);
            let why = bound_of_cuts(&mut risk, &cuts, &Cancel::new()).expect("a value").expect_err(said);
            assert!(why.contains(said), "`{why}` does not say `{said}`");
        };
        refused(&|cuts| cuts.clear(), "do not fit");
        refused(&|cuts| cuts[0].point.truncate(1), "do not fit");
        refused(&|cuts| cuts[0].multiplier = -cuts[0].multiplier, "negative");
        refused(&|cuts| cuts[0].multiplier = f64::NAN, "no number");
        refused(&|cuts| cuts[0].multiplier += 0.5, "add up to one");
        refused(&|cuts| cuts[0].point[0] = f64::INFINITY, "not finite");
        refused(&|cuts| cuts.iter_mut().for_each(|cut| cut.point[1] = 100.0), "do not cancel");
    }
}
