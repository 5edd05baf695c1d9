//! What the solvers allocate beside the features, in bytes: upper estimates for planning within a memory budget.
//!
//! Each solver states its own share as `bytes`, next to its code. This file has the sizes they depend on, and adds up.

use super::{cutting_plane, dual_coordinate_descent, interior_point, linear_risk, newton, usual_cache};
use crate::settings::Settings;
use crate::wish::Solver;

/// The number of threads that tiles are counted for.
pub(crate) const TILE_THREADS: u64 = 8;

/// The minimum number of rows in a tile, gathered from short parts.
pub(super) const TILE_ROWS: u64 = 1024;

/// Bookkeeping of a query.
const QUERY: u64 = 192;

/// Sums of a query during a sweep, and twice its merge buffer, for each row.
const SWEPT_ROW: u64 = 96;

/// Copies of the weights of several outputs: of the lanes, of a check, of a bound.
const WEIGHTS_OF_OUTPUTS: u64 = 6;

/// Bytes of a row and one of its scores: by Newton's method; through a kernel; in the list of classes that matter to a row,
/// which is about so long at most.
const SCORE: u64 = 32;
const KERNEL_SCORE: u64 = 48;
const LISTED: u64 = 24;
const LISTED_OUTPUTS: u64 = 64;

/// How large a problem is.
pub(crate) struct Sizes {
    pub(crate) rows: u64,
    /// Explicit pairs, and how many of them are ties, where there are any.
    pub(crate) pairs: Option<(u64, u64)>,
    /// The features that the solver sees.
    pub(crate) cols: u64,
    /// The bytes of the stored features.
    pub(crate) bytes: u64,
    /// How many accumulators a pass over the rows keeps.
    pub(crate) lanes: usize,
    pub(crate) queries: Option<Queries>,
    /// Free scalars that are cuts between ranks; 0 for other tasks.
    pub(crate) cuts: u64,
    /// Number of scores per row: one for each of several classes, or for each column of a code.
    pub(crate) outputs: u64,
    /// Whether every row is a constraint of its own.
    pub(crate) by_rows: bool,
}

/// The queries of a data set.
pub(crate) struct Queries {
    pub(crate) count: u64,
    /// Rows of the longest.
    pub(crate) longest: u64,
    /// How many are handled on their own.
    pub(crate) long: usize,
}

impl Sizes {
    /// Rows, and constraints of pairs.
    pub(super) fn rows_and_pairs(&self) -> u64 {
        self.rows + self.pairs.map_or(0, |(pairs, ties)| pairs + ties)
    }

    /// What training by a solver allocates beside the features.
    pub(crate) fn of_solver(&self, solver: Solver, settings: &Settings) -> u64 {
        // Sums over rows, three numbers a column where ranges are found; and a dozen vectors of weights.
        let vectors = (3 * self.lanes as u64 + 12) * self.cols * 8 + self.of_several(solver, settings);
        let queries = self.queries.as_ref().map_or(0, |queries| queries.count * QUERY);
        vectors
            + queries
            + self.through_kernel(solver, settings)
            + match solver {
                Solver::DualCoordinateDescent => dual_coordinate_descent::bytes(self),
                Solver::InteriorPoint => interior_point::bytes(self),
                solver => {
                    // Long queries are swept one after the other, the others by several threads at a time.
                    let swept = self.queries.as_ref().map_or(0, |queries| SWEPT_ROW * queries.longest);
                    let own = match solver {
                        Solver::CuttingPlane => cutting_plane::bytes(self),
                        Solver::Newton => newton::bytes(self),
                        _ => 0,
                    };
                    linear_risk::bytes(self) + swept + own
                }
            }
    }

    /// What several scores per row add: copies of the weights, and numbers for each row and score.
    fn of_several(&self, solver: Solver, settings: &Settings) -> u64 {
        if self.outputs <= 1 {
            return 0;
        }
        let scores = self.rows.saturating_mul(self.outputs);
        if settings.expands() {
            return scores.saturating_mul(KERNEL_SCORE);
        }
        let weights = self.cols.saturating_mul(self.outputs).saturating_mul(8 * WEIGHTS_OF_OUTPUTS);
        let of_rows = match solver {
            Solver::Newton | Solver::CuttingPlane => scores.saturating_mul(SCORE),
            _ => self.rows.saturating_mul(self.outputs.min(LISTED_OUTPUTS)).saturating_mul(LISTED),
        };
        weights.saturating_add(of_rows)
    }

    /// What a kernel adds.
    fn through_kernel(&self, solver: Solver, settings: &Settings) -> u64 {
        if !settings.expands() {
            return 0;
        }
        // Rows ready to be multiplied. Solvers that visit rows one by one may make a support vector of each.
        let online = (solver.is_stochastic() && settings.kernel.budget.is_none()) || solver == Solver::Lasvm;
        let copies = if online { 16 } else { 3 } * self.bytes;
        if solver.is_stochastic() {
            return copies;
        }
        // Kernel rows: a whole square of them at most. The constraints of all cuts of a row share one.
        let blocks = self.pairs.map_or(self.rows, |(pairs, _)| pairs);
        let length = blocks.saturating_mul(self.cuts.max(1));
        copies + usual_cache(settings).min(blocks.saturating_mul(length).saturating_mul(8))
    }
}
