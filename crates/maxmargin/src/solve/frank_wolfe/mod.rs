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
//! With [`BlockFrankWolfe::to_the_end`] cached passes go on until the cached problem is solved, so that searches are few:
//! cutting planes with one slack per example (Tsochantaridis, Joachims, Hofmann & Altun, JMLR 6, 2005).
//!
//! Stops at a relative gap. The witness is the outputs with multipliers. Memory: for each corner its output and its plane,
//! which has an entry for each score that it changes.

mod block;
mod space;

use super::oracle_risk::MostViolated;
use super::scaled_rows::ScaledRows;
use super::{Progress, Solution, Start, Stop, Witness, overflow, relative_gap};
use crate::certificate::OutputDual;
use crate::data::{Design, with_rows};
use crate::error::Result;
use crate::parallel::{self, Spare};
use crate::random::Random;
use crate::run::{Cancel, Event, Observer, interrupted};
use crate::structured::{Plane, Scores, Structure};
use block::{Block, Work};
use space::{Laid, Point, Space};

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
    /// A point for the slopes of one plane; all zeros between uses.
    scratch: Option<Point>,
    steps: Vec<(u32, f64)>,
    change: Vec<f64>,
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
    /// Solves a problem from the dual variables of `start`, if it has any.
    pub(crate) fn solve(
        &self,
        task: &MostViolated<'_>,
        design: &Design,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let structure = task.structure;
        let outputs = structure.outputs().max(1);
        with_rows!(design.matrix(), rows => {
            let laid = Laid { rows: ScaledRows::new(design, rows), outputs, shared: structure.shared() };
            cancel.check_wanted()?;
            let fixed = Fixed { task, structure, space: &laid, outputs, buffers: Spare::default(), cancel };
            self.run(&fixed, start, observer)
        })
    }

    fn run(&self, fixed: &Fixed<'_>, start: Option<&Start>, observer: &mut dyn Observer) -> Result<Solution> {
        let Fixed { structure, space, cancel, .. } = *fixed;
        let mut progress = Progress::new(observer, cancel);
        let (mut blocks, mut point) = fixed.started(start.and_then(|start| start.outputs.as_ref()))?;
        let mut random = Random::new(self.seed, VISITS, 0);
        let mut order: Vec<usize> = (0..blocks.len()).filter(|&example| blocks[example].cost > 0.0).collect();
        let mut best: Option<(f64, Vec<f64>, Vec<f64>)> = None;
        let mut passes = 0;
        let stop = loop {
            let losses = fixed.search(&mut blocks, &point)?;
            cancel.check_wanted()?;
            if cancel.is_raised() {
                break Stop::Cancelled;
            }
            let weights = space.weights(&point);
            let half = 0.5 * weights.iter().chain(&point.shared).map(|weight| weight * weight).sum::<f64>();
            let objective = half + losses.iter().sum::<f64>();
            let dual = blocks.iter().map(Block::gain).sum::<f64>() - half;
            if !objective.is_finite() {
                return Err(overflow());
            }
            let bound = progress.bound(Some(dual)).unwrap_or(0.0);
            if best.as_ref().is_none_or(|(least, ..)| objective < *least) {
                best = Some((objective, weights, point.shared.clone()));
            }
            let (least, weights, shared) = best.as_ref().expect("one was set");
            let end = progress.report(passes, *least, weights, shared);
            if relative_gap(*least, bound) <= self.tolerance {
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
            if self.cached_passes(fixed, (&mut blocks, &mut point), &mut order, &mut random, gap)? <= 0.0 {
                break Stop::Stalled;
            }
        };
        let (calls, seconds) = fixed.task.searches.total();
        // The answer does not matter: the run is over.
        let _ = progress.observer().report(&Event::Searches { calls, seconds });
        let Some((objective, weights, thresholds)) = best else { return Err(interrupted()) };
        let mut dual = OutputDual::default();
        for block in &blocks {
            let above = block.corners.iter().filter(|corner| corner.alpha > 0.0);
            dual.push(above.map(|corner| (&corner.output[..], corner.alpha)));
        }
        debug_assert_eq!(dual.examples(), structure.examples());
        Ok(Solution {
            weights,
            thresholds,
            objective,
            lower_bound: progress.lower_bound,
            witness: Witness::Outputs(dual),
            passes,
            stop,
            first_rate: None,
            kernel: None,
            trace: progress.trace,
        })
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
        Ok((blocks, point))
    }

    /// Searches the most violated output of each example at a point, and adds it to the corners. Returns the loss of each.
    fn search(&self, blocks: &mut [Block], point: &Point) -> Result<Vec<f64>> {
        self.structure.prepare(&point.shared)?;
        let jobs: Vec<&mut [Block]> = blocks.chunks_mut(RUN).collect();
        let found = parallel::map_each(jobs, |job, blocks| -> Result<Vec<f64>> {
            self.buffers.lend(|buffers| {
                let examples = job * RUN..;
                examples.zip(blocks).map(|(example, block)| self.search_one(example, block, point, buffers)).collect()
            })
        });
        let mut all = Vec::with_capacity(blocks.len());
        for part in found {
            all.extend(part?);
        }
        Ok(all)
    }

    fn search_one(&self, example: usize, block: &mut Block, point: &Point, buffers: &mut Buffers) -> Result<f64> {
        if block.cost == 0.0 || self.cancel.is_raised() {
            return Ok(0.0);
        }
        let Buffers { scores, output, plane, work, .. } = buffers;
        let rows = self.structure.rows(example);
        scores.resize(rows.len() * self.outputs, 0.0);
        self.space.scores(rows, point, scores);
        let at = Scores { rows: scores, shared: &point.shared };
        self.task.searches.time(|| self.structure.most_violated(example, at, output))?;
        self.structure.plane(example, output, plane)?;
        let value = plane.value(at);
        block.judge(at, work);
        // A search that is not exact may miss what an earlier one found.
        let highest = work.values.iter().copied().fold(value.max(0.0), f64::max);
        block.gap = block.gap_below(highest, &work.values);
        block.tidy();
        if value > 0.0 && !block.holds(output) {
            let (output, plane) = (std::mem::take(output), std::mem::take(plane));
            self.add_corner(example, block, (output, plane), buffers);
        }
        Ok(block.cost * highest)
    }

    /// Adds a corner with the products of its slopes with those of the others.
    fn add_corner(&self, example: usize, block: &mut Block, (output, plane): (Vec<u32>, Plane), buffers: &mut Buffers) {
        let rows = self.structure.rows(example);
        let Buffers { scores, scratch, steps, .. } = buffers;
        let slopes = scratch.get_or_insert_with(|| self.space.zero());
        let by_row = plane.rows.chunk_by(|a, b| a.0 as usize / self.outputs == b.0 as usize / self.outputs);
        for entries in by_row.clone() {
            let row = entries[0].0 as usize / self.outputs;
            steps.clear();
            steps.extend(entries.iter().map(|&(place, slope)| (place % self.outputs as u32, slope)));
            self.space.add(rows.start + row, steps, slopes);
        }
        plane.shared.iter().for_each(|&(place, slope)| slopes.shared[place as usize] += slope);
        scores.resize(rows.len() * self.outputs, 0.0);
        self.space.scores(rows.clone(), slopes, scores);
        let at = Scores { rows: scores, shared: &slopes.shared };
        let mut products: Vec<f64> = block.corners.iter().map(|corner| corner.plane.product(at)).collect();
        products.push(plane.product(at).max(0.0));
        for entries in by_row {
            self.space.clear(rows.start + entries[0].0 as usize / self.outputs, slopes);
        }
        plane.shared.iter().for_each(|&(place, _)| slopes.shared[place as usize] = 0.0);
        block.push(output, plane, &products);
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
        let Buffers { steps, change, .. } = buffers;
        change.clear();
        change.resize(rows.len() * self.outputs, 0.0);
        for (corner, step) in block.corners.iter().zip(changes).filter(|(_, step)| **step != 0.0) {
            corner.plane.rows.iter().for_each(|&(place, slope)| change[place as usize] -= step * slope);
            corner.plane.shared.iter().for_each(|&(place, slope)| point.shared[place as usize] -= step * slope);
        }
        for (row, change) in rows.zip(change.chunks_exact(self.outputs)) {
            steps.clear();
            steps.extend(
                (0u32..).zip(change).filter(|(_, change)| **change != 0.0).map(|(output, step)| (output, *step)),
            );
            if !steps.is_empty() {
                self.space.add(row, steps, point);
            }
        }
    }
}
