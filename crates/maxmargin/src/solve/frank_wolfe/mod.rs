//! Block-coordinate Frank–Wolfe with cached corners, for structured outputs.
//!
//! ```text
//! min  ½‖w‖² + Σ_i C_i · max_y plane_iy(X_i w)
//! max  Σ_iy α_iy loss_iy − ½‖w‖²,   w = −Σ_iy α_iy slope_iy · X_i,   α ≥ 0,  Σ_y α_iy ≤ C_i
//! ```
//! A *search pass* holds the weights fixed and searches the most violated output of every example, on all threads. It
//! gives the primal value, and so the gap, and new corners of each example's block of variables. *Cached passes* follow:
//! they visit one example after the other and solve its block exactly over the corners met so far ([`block`]), which costs
//! two walks over its features and no search. They go on while the last one raised the dual value by more, for its work,
//! than the whole iteration did. Blocks with a small gap are left out until the next search pass.
//!
//! Lacoste-Julien, Jaggi, Schmidt & Pletscher, Block-coordinate Frank–Wolfe optimization for structural SVMs, ICML 2013;
//! Shah, Kolmogorov & Lampert, A multi-plane block-coordinate Frank–Wolfe algorithm, CVPR 2015. Instead of a mean over the
//! planes of a block we keep the planes themselves, and instead of a step towards one corner we take the optimum over all.
//!
//! Far from the optimum, the outputs found at one point are stale after a few visits. There a *moving pass* comes before
//! the cached ones: it takes the examples in small batches, searches those of a batch at the present point on all threads,
//! and visits each of them before the next batch.
//!
//! With [`BlockFrankWolfe::to_the_end`] cached passes go on until the cached problem is solved, so that searches are few:
//! cutting planes with one slack per example (Tsochantaridis, Joachims, Hofmann & Altun, JMLR 6, 2005).
//!
//! Stops at a relative gap. The witness is the outputs with multipliers. Memory: for each corner its output and its plane,
//! which has an entry for each score that it changes.

mod block;

use super::oracle_risk::MostViolated;
use super::output_space::{Expanding, Laid, Point, Space};
use super::plane_bound::Taken;
use super::scaled_rows::ScaledRows;
use super::sgd::Patience;
use super::{Progress, Referee, Solution, Start, Stop, ThroughKernel, Witness, overflow, relative_gap};
use crate::certificate::OutputDual;
use crate::data::{Design, with_rows};
use crate::error::Result;
use crate::kernel::{Element, Kernel, Points, RowCache};
use crate::parallel::{self, Spare};
use crate::random::Random;
use crate::run::{Cancel, Event, Observer, interrupted};
use crate::structured::{Plane, Scores, Structure};
use block::{Block, Work};

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct BlockFrankWolfe {
    /// The relative gap to stop at.
    pub(crate) tolerance: f64,
    /// The maximum number of search passes.
    pub(crate) max_passes: u64,
    /// Seeds the order of visits.
    pub(crate) seed: u64,
    /// Whether the cached problem is solved before the next search pass.
    pub(crate) to_the_end: bool,
}

/// The stream of random numbers for the order of visits.
const VISITS: u64 = 0x6266_7700;

/// Examples that one job searches.
const RUN: usize = 16;

/// A block is solved to this share of the lead that it starts with.
const BLOCK_SHARE: f64 = 0.05;

/// Blocks whose gap is below this share of the mean wait until the next search pass.
const SMALL: f64 = 0.1;

/// A search pass counts as so many cached passes, and so many of them may follow one.
const SEARCH_WORK: f64 = 4.0;
const MOST_CACHED: usize = 20;

/// While the relative gap is above this, passes begin with a moving pass, over batches of so many examples.
const FAR: f64 = 0.5;
const BATCH: usize = 32;

/// The cached problem counts as solved at this share of the gap.
const SOLVED: f64 = 0.1;
const MOST_TO_THE_END: usize = 1000;

/// How often the cancel flag is looked at, in visits.
const POLL: usize = 64;

/// Buffers of one thread.
#[derive(Default)]
struct Buffers {
    scores: Vec<f64>,
    output: Vec<u32>,
    plane: Plane,
    work: Work,
    /// A zero point between uses.
    scratch: Option<Point>,
    /// A number for each score of the rows of an example.
    steps: Vec<f64>,
    images: Vec<f64>,
}

/// The point with the smallest objective so far.
struct Best {
    objective: f64,
    weights: Vec<f64>,
    shared: Vec<f64>,
    /// The scores of all rows, where the space holds them.
    scores: Vec<f64>,
}

/// What does not change during a run.
struct Fixed<'a> {
    task: &'a MostViolated<'a>,
    structure: &'a dyn Structure,
    space: &'a dyn Space,
    outputs: usize,
    buffers: Spare<Buffers>,
    cancel: &'a Cancel,
}

impl BlockFrankWolfe {
    /// Solves a problem from the dual variables of `start`, if it has any. A referee may stop the run early, and then
    /// decides which point is kept. Returns the planes met, too.
    pub(crate) fn solve(
        &self,
        task: &MostViolated<'_>,
        (design, referee): (&Design, Option<&Referee<'_>>),
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<(Solution, Taken)> {
        let structure = task.structure;
        let outputs = structure.outputs().max(1);
        with_rows!(design.matrix(), rows => {
            let laid = Laid { rows: ScaledRows::new(design, rows), outputs, shared: structure.shared() };
            cancel.check_wanted()?;
            let fixed = Fixed { task, structure, space: &laid, outputs, buffers: Spare::default(), cancel };
            let (solution, _, taken) = self.run(&fixed, start, referee, observer)?;
            Ok((solution, taken))
        })
    }

    /// The same over kernel values. The weights of the solution are the coefficients of the rows.
    pub(crate) fn solve_through_kernel<V: Element>(
        &self,
        task: &MostViolated<'_>,
        rows: (&Kernel, &Points),
        cache: &mut RowCache<V>,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let structure = task.structure;
        let outputs = structure.outputs().max(1);
        let before = cache.counts();
        let space = Expanding::new(rows, cache, (outputs, structure.shared()));
        let fixed = Fixed { task, structure, space: &space, outputs, buffers: Spare::default(), cancel };
        let (solution, reached, _) = self.run(&fixed, start, None, observer)?;
        drop(fixed);
        let after = cache.counts();
        let kernel = ThroughKernel {
            reached,
            common_margin: None,
            rows: Some((after.0 - before.0, after.1 - before.1)),
            definite: true,
            scorer: None,
            merging: None,
        };
        Ok(Solution { kernel: Some(kernel), ..solution })
    }

    /// Returns the solution, the scores of all rows where the space holds them, and the planes met.
    fn run(
        &self,
        fixed: &Fixed<'_>,
        start: Option<&Start>,
        referee: Option<&Referee<'_>>,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Vec<f64>, Taken)> {
        let Fixed { structure, space, cancel, .. } = *fixed;
        let mut progress = Progress::new(observer, cancel);
        let (mut blocks, mut point) = fixed.started(start.and_then(|start| start.outputs.as_ref()))?;
        let mut random = Random::new(self.seed, VISITS, 0);
        let mut order: Vec<usize> = (0..blocks.len()).filter(|&example| blocks[example].cost > 0.0).collect();
        let mut best: Option<Best> = None;
        let (mut least, mut patience, mut taken) = (f64::INFINITY, Patience::new(), Taken::default());
        let mut passes = 0;
        let stop = loop {
            let losses = fixed.search(&mut blocks, &point, &mut taken)?;
            cancel.check_wanted()?;
            if cancel.is_raised() {
                break Stop::Cancelled;
            }
            let (weights, square) = space.weights(&point);
            let half = 0.5 * (square + point.shared.iter().map(|weight| weight * weight).sum::<f64>());
            let objective = half + losses.iter().sum::<f64>();
            let dual = blocks.iter().map(Block::gain).sum::<f64>() - half;
            if !objective.is_finite() {
                return Err(overflow());
            }
            let bound = progress.bound(Some(dual)).unwrap_or(0.0);
            let held_out = referee.and_then(|referee| (referee.measure)(&weights, &point.shared));
            let improves = match referee {
                // Passes are counted from 1 here: the first point is judged before any.
                Some(referee) => patience.improves(passes + 1, referee.loss(held_out)),
                None => objective < least,
            };
            least = least.min(objective);
            let current = Best { objective, weights, shared: point.shared.clone(), scores: Vec::new() };
            // With a referee, report the point that was judged; otherwise the best one.
            let shown = best.as_ref().filter(|_| !improves && referee.is_none()).unwrap_or(&current);
            let end = progress.report_judged(passes, shown.objective, &shown.weights, &shown.shared, held_out);
            if improves {
                best = Some(Best { scores: space.all_scores(&point), ..current });
            }
            if referee.is_some() && patience.is_over(passes + 1) {
                break Stop::EarlyStopped;
            }
            if relative_gap(least, bound) <= self.tolerance {
                break Stop::Converged;
            }
            if end || cancel.is_raised() {
                break Stop::Cancelled;
            }
            if passes >= self.max_passes {
                break Stop::PassLimit;
            }
            passes += 1;
            let gap = least - dual;
            let mut rise = 0.0;
            if !self.to_the_end && relative_gap(least, bound) > FAR {
                random.shuffle(&mut order);
                rise = fixed.moving_pass(&mut blocks, &mut point, &order, &mut taken)?;
                cancel.check_wanted()?;
            }
            if rise + self.cached_passes(fixed, (&mut blocks, &mut point), &mut order, &mut random, gap)? <= 0.0 {
                break Stop::Stalled;
            }
        };
        let (calls, seconds) = fixed.task.searches.total();
        // The answer does not matter: the run is over.
        let _ = progress.observer().report(&Event::Searches { calls, seconds });
        let Some(Best { objective, weights, shared: thresholds, scores }) = best else { return Err(interrupted()) };
        let (mut passes, mut stop) = (passes, stop);
        if referee.is_some() && patience.best_pass() <= passes {
            // The referee prefers an earlier point.
            stop = if stop == Stop::Cancelled { stop } else { Stop::EarlyStopped };
            passes = patience.best_pass() - 1;
        }
        let mut dual = OutputDual::default();
        for block in &blocks {
            let above = block.corners.iter().filter(|corner| corner.alpha > 0.0);
            dual.push(above.map(|corner| (&corner.output[..], corner.alpha)));
        }
        debug_assert_eq!(dual.examples(), structure.examples());
        let solution = Solution {
            weights,
            thresholds,
            objective,
            lower_bound: progress.lower_bound,
            witness: Witness::Outputs(dual),
            passes,
            stop,
            first_rate: None,
            read: None,
            kernel: None,
            trace: progress.trace,
        };
        Ok((solution, scores, taken))
    }

    /// Visits the blocks until that is no longer worth it. Returns by how much the dual value rose.
    fn cached_passes(
        &self,
        fixed: &Fixed<'_>,
        (blocks, point): (&mut [Block], &mut Point),
        order: &mut [usize],
        random: &mut Random,
        gap: f64,
    ) -> Result<f64> {
        let most = if self.to_the_end { MOST_TO_THE_END } else { MOST_CACHED };
        let count = order.len().max(1) as f64;
        let mut total = 0.0;
        for pass in 1..=most {
            random.shuffle(order);
            let level = SMALL * blocks.iter().map(|block| block.gap).sum::<f64>() / count;
            let (mut rise, mut left) = (0.0, 0.0);
            fixed.buffers.lend(|buffers| {
                for (visit, &example) in order.iter().enumerate() {
                    if visit % POLL == 0 && fixed.cancel.is_raised() {
                        break;
                    }
                    let block = &mut blocks[example];
                    if block.gap < level || block.corners.is_empty() {
                        left += block.gap;
                        continue;
                    }
                    rise += fixed.visit(example, block, point, buffers);
                    left += block.gap;
                }
            });
            total += rise;
            fixed.cancel.check_wanted()?;
            let worth = match self.to_the_end {
                true => left > SOLVED * gap,
                false => rise * (SEARCH_WORK + pass as f64) >= total,
            };
            if !worth || rise <= 0.0 || fixed.cancel.is_raised() {
                break;
            }
        }
        Ok(total)
    }
}

impl Fixed<'_> {
    /// The blocks and the point at the start.
    fn started(&self, dual: Option<&OutputDual>) -> Result<(Vec<Block>, Point)> {
        let cost = |example| self.task.cost * self.structure.weight(example);
        let mut blocks: Vec<Block> = (0..self.structure.examples()).map(|example| Block::new(cost(example))).collect();
        let mut point = self.space.zero();
        let Some(dual) = dual.filter(|dual| dual.is_sound(blocks.len())) else { return Ok((blocks, point)) };
        let mut buffers = Buffers::default();
        for (example, block) in blocks.iter_mut().enumerate() {
            let total: f64 = dual.of_example(example).map(|(_, alpha)| alpha).sum();
            let share = if total > block.cost { block.cost / total } else { 1.0 };
            let mut steps = Vec::new();
            let counted = block.cost > 0.0;
            for (output, alpha) in dual.of_example(example).filter(|_| counted) {
                self.structure.plane(example, output, &mut buffers.plane)?;
                let plane = std::mem::take(&mut buffers.plane);
                self.add_corner(example, block, (output.to_vec(), plane), &mut buffers);
                steps.push(share * alpha);
            }
            block.corners.iter_mut().zip(&steps).for_each(|(corner, step)| corner.alpha = *step);
            self.apply(example, block, &steps, &mut point, &mut buffers);
        }
        // Of another C, a multiple may be better: t · gain − ½ t² ‖w‖² is largest at gain / ‖w‖².
        let square = self.space.weights(&point).1 + point.shared.iter().map(|weight| weight * weight).sum::<f64>();
        let room = |block: &Block| block.cost / block.corners.iter().map(|corner| corner.alpha).sum::<f64>();
        let most = blocks.iter().filter(|block| block.cost > 0.0).map(room).fold(f64::INFINITY, f64::min);
        let factor = (blocks.iter().map(Block::gain).sum::<f64>() / square).min(most);
        if factor.is_finite() && factor > 0.0 {
            point.scale(factor);
            blocks.iter_mut().flat_map(|block| &mut block.corners).for_each(|corner| corner.alpha *= factor);
        }
        Ok((blocks, point))
    }

    /// Searches the most violated output of each example at a point, and adds it to the corners. Returns the loss of each.
    fn search(&self, blocks: &mut [Block], point: &Point, taken: &mut Taken) -> Result<Vec<f64>> {
        self.structure.prepare(&point.shared)?;
        // A few slow searches are shared among the threads, too.
        let run = (blocks.len() / 64).clamp(1, RUN);
        let jobs: Vec<&mut [Block]> = blocks.chunks_mut(run).collect();
        let found = parallel::map_each(jobs, |job, blocks| -> Result<Vec<(f64, Option<f64>)>> {
            self.buffers.lend(|buffers| {
                let examples = job * run..;
                examples.zip(blocks).map(|(example, block)| self.search_one(example, block, point, buffers)).collect()
            })
        });
        let mut all = Vec::with_capacity(blocks.len());
        for part in found {
            for (loss, square) in part? {
                all.push(loss);
                taken.planes += u64::from(square.is_some());
                taken.largest = taken.largest.max(square.unwrap_or(0.0));
            }
        }
        Ok(all)
    }

    /// Searches the outputs of a batch of examples and visits these examples, batch by batch. Returns by how
    /// much the dual value rose.
    fn moving_pass(&self, blocks: &mut [Block], point: &mut Point, order: &[usize], taken: &mut Taken) -> Result<f64> {
        let mut rise = 0.0;
        for batch in order.chunks(BATCH) {
            if self.cancel.is_raised() {
                return Ok(rise);
            }
            let own: Vec<(usize, Block)> =
                batch.iter().map(|&example| (example, std::mem::take(&mut blocks[example]))).collect();
            let at: &Point = point;
            self.structure.prepare(&at.shared)?;
            let found = parallel::map_each(own, |_, (example, mut block)| {
                let square = self.buffers.lend(|buffers| self.search_one(example, &mut block, at, buffers));
                (example, block, square)
            });
            let mut failure = None;
            for (example, block, square) in found {
                blocks[example] = block;
                match square {
                    Ok((_, square)) => {
                        taken.planes += u64::from(square.is_some());
                        taken.largest = taken.largest.max(square.unwrap_or(0.0));
                    }
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            if let Some(error) = failure {
                return Err(error);
            }
            self.buffers.lend(|buffers| {
                for &example in batch {
                    rise += self.visit(example, &mut blocks[example], point, buffers);
                }
            });
        }
        Ok(rise)
    }

    /// Returns the loss, and the square of the length of the slopes if the output is new.
    fn search_one(
        &self,
        example: usize,
        block: &mut Block,
        point: &Point,
        buffers: &mut Buffers,
    ) -> Result<(f64, Option<f64>)> {
        if block.cost == 0.0 || self.cancel.is_raised() {
            return Ok((0.0, None));
        }
        let Buffers { scores, output, plane, work, .. } = buffers;
        let rows = self.structure.rows(example);
        scores.resize(rows.len() * self.outputs, 0.0);
        self.space.scores(rows, point, scores);
        let at = Scores { rows: scores, shared: &point.shared };
        self.task.searches.time(|| self.structure.most_violated(example, at, output))?;
        self.structure.plane(example, output, plane)?;
        let value = plane.value(at);
        if !value.is_finite() {
            return Err(overflow());
        }
        block.judge(at, work);
        // A search that is not exact may miss what an earlier one found.
        let highest = work.values.iter().copied().fold(value.max(0.0), f64::max);
        block.gap = block.gap_below(highest, &work.values);
        block.tidy();
        let mut square = None;
        if value > 0.0 && !block.holds(output) {
            let (output, plane) = (std::mem::take(output), std::mem::take(plane));
            square = Some(self.add_corner(example, block, (output, plane), buffers));
        }
        Ok((block.cost * highest, square))
    }

    /// Adds a corner with the products of its slopes with those of the others. Returns the one with themselves.
    fn add_corner(
        &self,
        example: usize,
        block: &mut Block,
        (output, plane): (Vec<u32>, Plane),
        buffers: &mut Buffers,
    ) -> f64 {
        let rows = self.structure.rows(example);
        let Buffers { steps, images, scratch, .. } = buffers;
        let scratch = scratch.get_or_insert_with(|| self.space.zero());
        steps.clear();
        steps.resize(rows.len() * self.outputs, 0.0);
        plane.rows.iter().for_each(|&(place, slope)| steps[place as usize] += slope);
        plane.shared.iter().for_each(|&(place, slope)| scratch.shared[place as usize] += slope);
        images.resize(steps.len(), 0.0);
        self.space.images(rows, steps, scratch, images);
        let at = Scores { rows: images, shared: &scratch.shared };
        let mut products: Vec<f64> = block.corners.iter().map(|corner| corner.plane.product(at)).collect();
        let square = plane.product(at).max(0.0);
        products.push(square);
        plane.shared.iter().for_each(|&(place, _)| scratch.shared[place as usize] = 0.0);
        block.push(output, plane, &products);
        square
    }

    /// Solves one block and moves the point. Returns by how much the dual value rose.
    fn visit(&self, example: usize, block: &mut Block, point: &mut Point, buffers: &mut Buffers) -> f64 {
        let rows = self.structure.rows(example);
        let Buffers { scores, work, .. } = buffers;
        scores.resize(rows.len() * self.outputs, 0.0);
        self.space.scores(rows, point, scores);
        block.gap = block.judge(Scores { rows: scores, shared: &point.shared }, work);
        let rise = block.solve(BLOCK_SHARE, work);
        if rise <= 0.0 {
            return 0.0;
        }
        let steps = std::mem::take(&mut buffers.work.steps);
        self.apply(example, block, &steps, point, buffers);
        buffers.work.steps = steps;
        rise
    }

    /// Moves the point by changes of the variables of a block.
    fn apply(&self, example: usize, block: &Block, changes: &[f64], point: &mut Point, buffers: &mut Buffers) {
        let rows = self.structure.rows(example);
        let steps = &mut buffers.steps;
        steps.clear();
        steps.resize(rows.len() * self.outputs, 0.0);
        for (corner, change) in block.corners.iter().zip(changes).filter(|(_, change)| **change != 0.0) {
            corner.plane.rows.iter().for_each(|&(place, slope)| steps[place as usize] -= change * slope);
            corner.plane.shared.iter().for_each(|&(place, slope)| point.shared[place as usize] -= change * slope);
        }
        self.space.add(rows, steps, point);
    }
}
