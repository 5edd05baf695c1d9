//! Training within a memory budget.
//!
//! The features of a mapped file need not be in memory as a whole: passes over them read in order and give back what is
//! behind. What training allocates beside them must be: targets, groups, sort orders, scores, dual variables. Both are
//! weighed here before training begins. The figures are upper estimates from the layout of the solvers, a little
//! generous: a budget that is accepted is kept.

use crate::data::{Dataset, MOST_LANES, Scale, Targets, lanes};
use crate::error::{Code, Error, Result};
use crate::kernel::{Approximation, too_large};
use crate::parallel;
use crate::settings::{Input, Settings, Solver};
use crate::solve::{EarlyStopping, LONG_PART, SAMPLED_HESSIAN_DIM, TILE, most_lanes, usual_cache};
use crate::train::choose_solver;
use crate::wording::{memory_given, memory_needed};

/// The program itself, its threads and small change.
const BASE: u64 = 48 << 20;

/// Rows that one thread works on at a time, at most, outside of long queries.
const ROWS_AT_HAND: u64 = 4096;

/// Threads that tiles are counted for.
const THREADS: u64 = 8;

/// What training allocates for each row, in bytes.
mod row {
    /// Signs and costs, slots and half of them once more while they are dealt out, the order of visits, scores, and the
    /// witness twice on its way to the file.
    pub(super) const DUAL_COORDINATE_DESCENT: u64 = 64;
    /// Rows in target order, levels, weights, what each query remembers, scores, those along a line; or signs, costs,
    /// curvature and the dual point behind the weights.
    pub(super) const BY_PARTS: u64 = 96;
    /// Dual variables with their multipliers, two directions of these, what they are made from, the best dual point twice, and
    /// scores.
    pub(super) const INTERIOR_POINT: u64 = 192;
    /// Sums of a query that is swept, and twice what it is merged in.
    pub(super) const SWEPT: u64 = 96;
    /// One number each for the length of the row and its product with the shift.
    pub(super) const SCALED: u64 = 16;
}

/// Cuts that are kept at a time, two vectors each.
const CUTS: u64 = 200;

/// Bookkeeping of a query.
const QUERY: u64 = 192;

/// Columns up to which Newton's method keeps matrices over pairs of columns.
const PAIRED_COLUMNS: u64 = 601;

/// Numbers for each row and column of a part whose Hessian is formed: its features and their curvature. Rankers have both
/// once more in the order of the targets, which a thread keeps from one query to the next.
const TILES: u64 = 2;

/// Rows that tiles are filled with at the least, gathered from short parts.
const TILE_ROWS: u64 = 1024;

/// What training needs in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The features.
    pub features: u64,
    /// Everything else that stays. It does not depend on the number of threads: neither may the blocks, whose size shows
    /// in the result.
    pub beside: u64,
    /// The rows that one thread has at hand.
    pub at_hand: u64,
    /// Whether the features are mapped and can be read a block at a time.
    pub mapped: bool,
}

impl Needs {
    /// What training on these data needs.
    pub fn of(data: &Dataset, settings: &Settings) -> Result<Needs> {
        let solver = choose_solver(settings, data.shape())?;
        let (rows, bytes) = (data.rows() as u64, data.matrix().bytes());
        // What the solver learns from.
        let cols = settings.kernel.seen_features(data.cols()) as u64;
        let seen_bytes = if settings.kernel.approximate.is_some() { mapped_bytes(rows, cols) } else { bytes };
        let lanes = match settings.kernel.approximate {
            Some(_) => MOST_LANES,
            None => lanes(data.rows(), data.matrix()).len(),
        };
        let accumulators = lanes as u64;
        let lengths = || data.groups().into_iter().flat_map(|groups| groups.ranges().map(|range| range.len()));
        let longest = lengths().max().unwrap_or(0) as u64;
        let mut beside = BASE + sides(data);
        let by_rows = matches!(solver, Solver::DualCoordinateDescent | Solver::InteriorPoint);
        let rows_and_pairs = rows + data.pairs().map_or(0, |pairs| (pairs.len() + pairs.ties()) as u64);
        beside += rows_and_pairs
            * match solver {
                Solver::DualCoordinateDescent => row::DUAL_COORDINATE_DESCENT,
                Solver::InteriorPoint => row::INTERIOR_POINT,
                _ => row::BY_PARTS,
            };
        if data.groups().is_some() && !by_rows {
            // Long queries are swept one after the other, the others by several threads at a time.
            beside += row::SWEPT * longest;
        }
        if settings.expands() {
            // Rows ready to be multiplied; learned from one by one, all of them may become vectors of their own too.
            let online = (solver.is_stochastic() && settings.kernel.budget.is_none()) || solver == Solver::Lasvm;
            beside += if online { 16 } else { 3 } * bytes;
        }
        if settings.expands() && !solver.is_stochastic() {
            // Kernel rows: a whole square of them at most.
            let blocks = data.pairs().map_or(rows, |pairs| pairs.len() as u64);
            beside += usual_cache(settings).min(blocks.saturating_mul(blocks).saturating_mul(8));
        }
        beside += map_bytes(data, settings);
        let by_differences = !(settings.expands() || solver.is_stochastic() || solver.is_hard_margin());
        let by_differences = by_differences && !settings.is_rating();
        if let Some(compared) = data.compared().filter(|compared| compared.as_differences() && by_differences) {
            // Differences of the pairs, as dense as their rows; sparse ones are gathered in pieces and joined.
            beside += if data.matrix().is_dense() {
                seen_bytes * compared.pairs as u64 / rows.max(1)
            } else {
                2 * seen_bytes
            };
        }
        if solver == Solver::CuttingPlane {
            beside += CUTS * 2 * cols * 8;
        }
        beside += data.groups().map_or(0, |groups| groups.len() as u64) * QUERY;
        if settings.scale != Scale::None {
            beside += rows * row::SCALED;
        }
        // Sums over rows, three numbers a column where ranges are found; and a dozen vectors of weights.
        beside += (3 * accumulators + 12) * cols * 8;
        if solver == Solver::Newton && cols < PAIRED_COLUMNS {
            // Pairs may tie all rows together.
            let (tiles, longest, long) = match (settings.task.task().profile().input, data.pairs()) {
                (Input::Rows, _) => (TILES, 0, 0),
                (_, Some(_)) => (TILES, rows, data.rows() / LONG_PART),
                (_, None) => (2 * TILES, longest, lengths().filter(|&length| length > LONG_PART).count()),
            };
            let lanes = most_lanes(lanes, long) as u64;
            // Longer parts have no exact Hessian.
            let tile = (longest * (cols + 1)).min(TILE as u64).max(TILE_ROWS * (cols + 1));
            beside += (lanes + 4) * (cols + 1).pow(2) * 8 + tiles * THREADS * tile * 8;
        }
        if solver == Solver::Newton && (PAIRED_COLUMNS..=SAMPLED_HESSIAN_DIM as u64).contains(&cols) {
            // The Hessian of a sample of the rows, which becomes its factor, and means of the parts they are from.
            beside += 4 * (cols + 1).pow(2) * 8;
        }
        if solver == Solver::InteriorPoint {
            // The system of a step, the rows below a block of it, and the tile it is added up from.
            beside += ((cols + 1).pow(2) + TILE_ROWS * (cols + 1)) * 8;
        }
        if settings.scale == Scale::MinMaxPerQuery {
            // These features are scaled in a copy.
            beside += 2 * bytes;
        }
        if solver.is_stochastic() && settings.stochastic.early_stopping == EarlyStopping::Subsamples {
            // The two samples are copies, of all rows at the most.
            beside += seen_bytes;
        }
        let rows_at_hand = ROWS_AT_HAND.max(longest.min(1 << 15)).min(rows);
        let at_hand = (u128::from(bytes) * u128::from(rows_at_hand) / u128::from(rows.max(1))) as u64;
        Ok(Needs { features: bytes, beside, at_hand, mapped: data.matrix().is_mapped() })
    }
}

fn mapped_bytes(rows: u64, features: u64) -> u64 {
    rows.saturating_mul(features).saturating_mul(4)
}

/// A feature map and the rows it maps, where one stands in for a kernel.
fn map_bytes(data: &Dataset, settings: &Settings) -> u64 {
    /// Numbers that a thread has at hand of rows on their way through the map: three blocks of them.
    const AT_HAND: u64 = 3 << 20;
    let Some(approximation) = settings.kernel.approximate else { return 0 };
    let (rows, cols, features) = (data.rows() as u64, data.cols() as u64, approximation.features() as u64);
    let numbers = match approximation {
        // Kernel values and their factor, and the landmarks thrice: as they are, ready to be multiplied, and at hand.
        Approximation::Nystrom { .. } => 2 * features.min(rows) * features.min(rows) + 3 * features.min(rows) * cols,
        Approximation::Fourier { .. } => cols * features / 2,
    };
    let map = 8 * (numbers + THREADS * AT_HAND.min(3 * rows * features.max(cols)));
    map.saturating_add(mapped_bytes(rows, features))
}

/// Refuses, before anything is mapped, rows whose mapped features do not fit into so many bytes of memory that are free.
/// `data` are in memory already.
pub fn check_mapped(data: &Dataset, settings: &Settings, free: u64) -> Result<()> {
    if settings.kernel.approximate.is_none() || Needs::of(data, settings)?.beside <= free {
        return Ok(());
    }
    Err(too_large(data.rows() as u64, settings.kernel.seen_features(data.cols()) as u64, free))
}

/// Targets, weights, groups, ids and order of the rows.
fn sides(data: &Dataset) -> u64 {
    let names = |names: &crate::data::Names| (names.parts().0.len() + size_of_val(names.parts().1)) as u64;
    let targets = match data.targets() {
        Targets::Absent => 0,
        Targets::Real(values) => size_of_val(&**values) as u64,
        Targets::Labels { names: labels, codes } => names(labels) + size_of_val(&**codes) as u64,
        Targets::Sets { names: labels, starts, codes } => {
            names(labels) + (size_of_val(&**starts) + size_of_val(&**codes)) as u64
        }
    };
    targets
        + data.weights().map_or(0, |weights| size_of_val(weights) as u64)
        + data.groups().map_or(0, |groups| size_of_val(groups.starts()) as u64 + names(groups.names()))
        + data.row_ids().map_or(0, names)
        + data.input_order().map_or(0, |order| size_of_val(order) as u64)
}

/// Data to train on within so many bytes of memory: as they are where all of it fits, with features that are read a block
/// at a time where they are mapped, or an error that says what is needed. `others` are bytes that are needed meanwhile
/// for something else, such as held-out data.
pub fn within(data: Dataset, settings: &Settings, budget: u64, others: u64) -> Result<Dataset> {
    let Needs { features, beside, at_hand, mapped } = Needs::of(&data, settings)?;
    let beside = beside.saturating_add(others);
    if beside.saturating_add(features) <= budget {
        return Ok(data);
    }
    if settings.kernel.approximate.is_some() && beside > budget {
        let error = too_large(data.rows() as u64, settings.kernel.seen_features(data.cols()) as u64, budget);
        let fewer = error.raw_remedy().unwrap_or_default().to_string();
        return Err(
            error.help(format!("give [[memory={}]] or more, or {fewer}", typed(beside.saturating_add(features))))
        );
    }
    if !mapped {
        // A cache helps with the features alone.
        let help = match beside.saturating_add(8 * LEAST_BLOCK) {
            least if least > budget => format!("give [[memory={}]] or more", typed(beside.saturating_add(features))),
            _ => CONVERT.to_string(),
        };
        return Err(over_budget(
            format!(
                "the data take {} in memory and training on them {} more, and the budget is {}",
                memory_needed(features),
                memory_needed(beside),
                memory_given(budget)
            ),
            &help,
        ));
    }
    let solver = choose_solver(settings, data.shape())?;
    let all = |why: &str, instead: &str| {
        let given = memory_given(budget);
        let message = format!("{why}, so that all features must be in memory; the budget is {given}");
        let needed = typed(beside.saturating_add(features));
        over_budget(message, &format!("give [[memory={needed}]] or more, or {instead}"))
    };
    // A map passes over the features once, in order, whatever learns from it.
    let mapped_once = settings.kernel.approximate.is_some();
    if data.pairs().is_some() && !mapped_once {
        return Err(all("explicit pairs compare rows from anywhere in the file", "compare fewer items"));
    }
    if settings.expands() {
        return Err(all("a kernel compares every row with every other", "less for kernel rows: [[kernel-cache=1GiB]]"));
    }
    if solver.is_hard_margin() && !mapped_once {
        return Err(all("a hard margin looks at all rows at once", "use a soft margin: leave [[solver]] out"));
    }
    if solver.is_stochastic() && settings.task.task().profile().input == Input::Ranked && !mapped_once {
        let why = format!("`{}` draws pairs from all queries at random", solver.name());
        return Err(all(&why, "leave [[solver]] out: the default reads a block at a time"));
    }
    // A block is worked on, another may be left by one half of the threads only, the next is coming; the other half of
    // what is free is for the rows at hand.
    let block = budget.saturating_sub(beside) / 8;
    let least = LEAST_BLOCK.max((at_hand * parallel::threads() as u64).div_ceil(4));
    if block < least {
        return Err(over_budget(
            format!(
                "training on these data takes {} beside the features, and the budget is {}",
                memory_needed(beside + 8 * least),
                memory_given(budget)
            ),
            &format!("give [[memory={}]] or more", typed(beside + 8 * least)),
        ));
    }
    Ok(data.limited(block))
}

/// A size as --memory takes it.
fn typed(bytes: u64) -> String {
    memory_needed(bytes).replace([' ', ','], "")
}

/// Blocks smaller than this would be all overhead.
const LEAST_BLOCK: u64 = 1 << 20;

/// What to do about data that do not fit.
pub const CONVERT: &str =
    "turn the file into a cache first, `maxmargin convert FILE -o FILE.mmd`: its features are read a block at a time";

/// The error for a budget that is too small.
pub fn over_budget(message: String, help: &str) -> Error {
    Error::new(Code::MemoryBudget, message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Groups, Guard, Matrix};
    use crate::settings::Task;
    use std::ops::Range;
    use std::sync::Arc;

    #[derive(Debug)]
    struct Mapped;

    impl Guard for Mapped {
        fn check(&self, _: Range<usize>) -> Result<()> {
            Ok(())
        }
        fn is_checked(&self, _: usize) -> bool {
            true
        }
    }

    fn data(mapped: bool) -> Dataset {
        let rows = 1 << 20;
        // Few rows at hand, so that the smallest block decides.
        let dense = Dense::new(vec![0.5f32; rows * 64], rows, 64).expect("valid");
        let dense = if mapped { dense.guarded(Arc::new(Mapped)) } else { dense };
        let targets = Targets::Real((0..rows).map(|row| (row % 2) as f64).collect::<Vec<_>>().into());
        Dataset::new(Matrix::DenseF32(dense), targets).expect("valid")
    }

    #[test]
    fn data_that_fit_stay_as_they_are_and_others_are_limited_or_refused() {
        let settings = Settings::new(Task::Classify);
        let needs = Needs::of(&data(true), &settings).expect("valid");
        assert_eq!(needs.features, 256 << 20);
        assert!(needs.mapped && needs.beside > 128 << 20);
        let limited = |mapped, budget, others| {
            within(data(mapped), &settings, budget, others).map(|data| data.matrix().residency().is_limited())
        };
        let all = needs.features + needs.beside;
        assert!(!limited(true, all, 0).expect("fits"));
        assert!(limited(true, all, 1).expect("read by blocks"));
        assert!(limited(true, all - 1, 0).expect("read by blocks"));
        assert!(!limited(false, all, 0).expect("fits"));
        let error = limited(false, all - 1, 0).expect_err("not mapped");
        assert_eq!(error.code(), Code::MemoryBudget);
        assert!(error.remedy().expect("advised").contains("convert"));
        assert!(limited(true, needs.beside + 8 * LEAST_BLOCK, 0).expect("just enough"));
        let error = limited(true, needs.beside + 8 * LEAST_BLOCK - 8, 0).expect_err("too little");
        assert!(error.remedy().expect("advised").contains("`memory = "), "{error}");
    }

    #[test]
    fn what_needs_all_rows_says_why_and_how_much() {
        let groups = Groups::one(1 << 20);
        let graded = data(true).with_groups(groups).expect("valid");
        for (data, settings, why) in [
            (graded, Settings::new(Task::Rank).with_solver(Solver::Sgd), "draws pairs from all queries"),
            (data(true), Settings::new(Task::Classify).with_solver(Solver::QuadraticProgram), "all rows at once"),
        ] {
            let needs = Needs::of(&data, &settings).expect("valid");
            let error = within(data, &settings, needs.beside + needs.features - 1, 0).expect_err("refused");
            assert!(error.to_string().contains(why), "{error}");
            assert!(error.remedy().expect("advised").contains("leave `solver` out"), "{error}");
        }
        for solver in [Solver::Sgd, Solver::AveragedSgd, Solver::Pegasos] {
            let settings = Settings::new(Task::Classify).with_solver(solver);
            let needs = Needs::of(&data(true), &settings).expect("valid");
            let limited = within(data(true), &settings, needs.beside + needs.features - 1, 0).expect("by blocks");
            assert!(limited.matrix().residency().is_limited());
        }
    }

    #[test]
    fn the_system_of_an_interior_point_counts() {
        let needs = |cols: usize| {
            let dense = Dense::new(vec![0.5f32; 4 * cols], 4, cols).expect("valid");
            let targets = Targets::Real(vec![0.0, 1.0, 0.0, 1.0].into());
            let data = Dataset::new(Matrix::DenseF32(dense), targets).expect("valid");
            Needs::of(&data, &Settings::new(Task::Classify).with_solver(Solver::InteriorPoint)).expect("valid").beside
        };
        assert!(needs(4000) >= needs(2000) + 8 * (4000 * 4000 - 2000 * 2000));
    }

    #[test]
    fn copies_for_scaling_within_queries_count() {
        let plain = Needs::of(&data(true), &Settings::new(Task::Classify)).expect("valid");
        let settings = Settings { scale: Scale::MinMaxPerQuery, ..Settings::new(Task::Classify) };
        assert!(Needs::of(&data(true), &settings).expect("valid").beside >= plain.beside + 2 * plain.features);
    }

    #[test]
    fn the_tiles_of_the_longest_query_count() {
        let needs = |size: usize| {
            let rows = 1 << 20;
            let starts: Vec<u64> = (0..=rows / size).map(|group| (group * size) as u64).collect();
            let names = (0..rows / size).map(|group| group.to_string()).collect();
            let data = data(true).with_groups(Groups::new(starts, names).expect("valid")).expect("valid");
            Needs::of(&data, &Settings::new(Task::Rank)).expect("valid").beside
        };
        // Features and curvature, in the order of the rows and of the targets, by each thread.
        let tiles = |rows: u64| 4 * THREADS * rows * 65 * 8;
        let bookkeeping = (1 << 20) / 4096 * (QUERY + 32);
        assert!(needs(32 << 10) + bookkeeping >= needs(4096) + tiles(32 << 10) - tiles(4096));
    }
}
