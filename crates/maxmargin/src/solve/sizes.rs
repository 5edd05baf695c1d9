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
        let vectors = (3 * self.lanes as u64 + 12) * self.cols * 8;
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
