//! Training within a memory budget.
//!
//! The features of a mapped file need not be in memory as a whole: passes read them in order and release what is
//! behind. Everything else that training allocates must be in memory: targets, groups, sort orders, scores, dual
//! variables. Both are estimated here before training begins. The figures are upper estimates from the layout of the
//! solvers, slightly generous: an accepted budget is kept.

use crate::data::{Dataset, Labels, MOST_LANES, Scale, Targets, lanes};
use crate::error::{Code, Error, Result};
use crate::kernel::{Approximation, too_large};
use crate::parallel;
use crate::settings::{Input, Settings, Task, TaskSettings};
use crate::solve::{EarlyStopping, LONG_PART, Queries, Sizes, TILE_THREADS};
use crate::structured::{Trees, tags_of};
use crate::train::choose_solver;
use crate::wish::Solver;
use crate::wording::{memory_given, memory_needed};

/// The program itself, its threads and small allocations.
const BASE: u64 = 48 << 20;

/// The maximum number of rows that one thread works on at a time, except in long queries.
const ROWS_AT_HAND: u64 = 4096;

/// One number each for the length of a scaled row and its product with the shift, in bytes.
const SCALED_ROW: u64 = 16;

/// What training needs in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The features.
    pub features: u64,
    /// Everything else that stays in memory. It must not depend on the number of threads: it determines the size of the
    /// blocks, which affects the result.
    pub beside: u64,
    /// The rows that one thread works on at a time.
    pub at_hand: u64,
    /// Whether the features are mapped and can be read a block at a time.
    pub mapped: bool,
}

impl Needs {
    /// What training on these data needs.
    pub fn of(data: &Dataset, settings: &Settings) -> Result<Needs> {
        let solver = choose_solver(settings, data.shape())?;
        let (rows, bytes) = (data.rows() as u64, data.matrix().bytes());
        // The number of features that the solver sees.
        let cols = settings.kernel.seen_features(data.cols()) as u64;
        let seen_bytes = if settings.kernel.approximate.is_some() { mapped_bytes(rows, cols) } else { bytes };
        let lanes = match settings.kernel.approximate {
            Some(_) => MOST_LANES,
            None => lanes(data.rows(), data.matrix()).len(),
        };
        let lengths = || data.groups().into_iter().flat_map(|groups| groups.ranges().map(|range| range.len()));
        let longest = lengths().max().unwrap_or(0) as u64;
        let compared = data.compared().filter(|compared| {
            let linear = !(settings.expands() || solver.is_stochastic() || solver.is_hard_margin());
            compared.as_differences() && linear && !settings.is_rating()
        });
        let sizes = Sizes {
            rows,
            pairs: data.pairs().map(|pairs| (pairs.len() as u64, pairs.ties() as u64)),
            cols,
            bytes,
            lanes,
            queries: data.groups().map(|groups| Queries {
                count: groups.len() as u64,
                longest,
                long: lengths().filter(|&length| length > LONG_PART).count(),
            }),
            cuts: match settings.task.task() {
                Task::Ordinal => Labels::ranks(data.targets()).map_or(0, |ranks| ranks.len() as u64 - 1),
                _ => 0,
            },
            outputs: outputs(data, settings)?,
            by_rows: matches!(settings.task.task().profile().input, Input::Rows | Input::Sentences),
        };
        let mut beside = BASE + sides(data) + sizes.of_solver(solver, settings) + map_bytes(data, settings);
        if let Some(compared) = compared {
            // Differences of the pairs, as dense as their rows; sparse ones are gathered in pieces and joined.
            beside += if data.matrix().is_dense() {
                seen_bytes * compared.pairs as u64 / rows.max(1)
            } else {
                2 * seen_bytes
            };
        }
        if settings.scale != Scale::None {
            beside += rows * SCALED_ROW;
        }
        if settings.scale == Scale::MinMaxPerQuery {
            // These features are scaled in a copy.
            beside += 2 * bytes;
        }
        if solver.is_stochastic() && settings.stochastic.early_stopping == EarlyStopping::Subsamples {
            // The two samples are copies, at most of all rows.
            beside += seen_bytes;
        }
        let rows_at_hand = ROWS_AT_HAND.max(longest.min(1 << 15)).min(rows);
        let at_hand = (u128::from(bytes) * u128::from(rows_at_hand) / u128::from(rows.max(1))) as u64;
        Ok(Needs { features: bytes, beside, at_hand, mapped: data.matrix().is_mapped() })
    }
}

/// Number of scores per row.
fn outputs(data: &Dataset, settings: &Settings) -> Result<u64> {
    let task = match &settings.task {
        TaskSettings::Classify(task) => task,
        TaskSettings::Sequence(_) => return Ok(tags_of(data)?.len() as u64),
        TaskSettings::Multilabel(_) => return Ok(Labels::of_sets(data.targets())?.len() as u64 + 1),
        TaskSettings::Tree(task) => {
            return Ok(Trees::on(data, task.markov(), task.loss_scale, None)?.grammar().outputs() as u64);
        }
        _ => return Ok(1),
    };
    let labels = Labels::find(data.targets())?;
    Ok(match task.columns(&labels, settings.loss, settings.seed)? {
        Some((code, _)) => code.columns() as u64,
        None if task.several(labels.len()) => labels.len() as u64,
        None => 1,
    })
}

fn mapped_bytes(rows: u64, features: u64) -> u64 {
    rows.saturating_mul(features).saturating_mul(4)
}

/// The bytes of a feature map and its mapped rows, if it approximates a kernel.
fn map_bytes(data: &Dataset, settings: &Settings) -> u64 {
    /// Numbers per thread for rows that are being mapped: three blocks of them.
    const AT_HAND: u64 = 3 << 20;
    let Some(approximation) = settings.kernel.approximate else { return 0 };
    let (rows, cols, features) = (data.rows() as u64, data.cols() as u64, approximation.features() as u64);
    let numbers = match approximation {
        // Kernel values and their factor, and the landmarks three times: stored, prepared for products, and in the work
        // buffer.
        Approximation::Nystrom { .. } => 2 * features.min(rows) * features.min(rows) + 3 * features.min(rows) * cols,
        Approximation::Fourier { .. } => cols * features / 2,
    };
    let map = 8 * (numbers + TILE_THREADS * AT_HAND.min(3 * rows * features.max(cols)));
    map.saturating_add(mapped_bytes(rows, features))
}

/// Before the map is applied, refuses rows whose mapped features do not fit into `free` bytes of memory. `data` are in
/// memory already.
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

/// Data to train on within `budget` bytes of memory: unchanged if all of it fits, with features that are read a block
/// at a time if they are mapped, or an error that says what is needed. `others` are bytes that are needed at the same
/// time for something else, such as held-out data.
pub fn within(data: Dataset, settings: &Settings, budget: u64, others: u64) -> Result<Dataset> {
    let Needs { features, beside, at_hand, mapped } = Needs::of(&data, settings)?;
    let beside = beside.saturating_add(others);
    if beside.saturating_add(features) <= budget {
        return Ok(data);
    }
    if settings.kernel.approximate.is_some() && beside > budget {
        let error = too_large(data.rows() as u64, settings.kernel.seen_features(data.cols()) as u64, budget);
        let fewer = error.raw_remedy().unwrap_or_default().to_string();
        return Err(error.help(format!("give ⟦memory={}⟧ or more, or {fewer}", typed(beside.saturating_add(features)))));
    }
    if !mapped {
        // A cache helps only with the features.
        let help = match beside.saturating_add(8 * LEAST_BLOCK) {
            least if least > budget => format!("give ⟦memory={}⟧ or more", typed(beside.saturating_add(features))),
            _ => CONVERT.to_string(),
        };
        return Err(over_budget(
            format!(
                "the data take {} in memory and training takes {} more, but the budget is {}",
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
        let message = format!("{why}, so all features must be in memory; the budget is {given}");
        let needed = typed(beside.saturating_add(features));
        over_budget(message, &format!("give ⟦memory={needed}⟧ or more, or {instead}"))
    };
    // A map passes over the features once, in order, for any solver.
    let mapped_once = settings.kernel.approximate.is_some();
    if data.pairs().is_some() && !mapped_once {
        return Err(all("explicit pairs compare rows from anywhere in the file", "compare fewer items"));
    }
    if settings.expands() {
        return Err(all(
            "a kernel compares every row with every other",
            "limit the memory for kernel rows with ⟦kernel-cache=1GiB⟧",
        ));
    }
    if solver.is_hard_margin() && !mapped_once {
        return Err(all(
            "a hard margin looks at all rows at once",
            "use a soft margin: leave ⟦margin⟧ and ⟦solver⟧ out",
        ));
    }
    if solver.is_stochastic() && settings.task.task().profile().input == Input::Ranked && !mapped_once {
        let why = format!("`{}` draws pairs from all queries at random", solver.name());
        return Err(all(&why, "leave ⟦solver⟧ out: the default reads a block at a time"));
    }
    if settings.abilities(false).structured && solver != Solver::CuttingPlane && !mapped_once {
        let why = format!("`{}` visits examples in any order", solver.name());
        return Err(all(&why, "use ⟦solver=cutting-plane⟧, which reads a block at a time"));
    }
    // One block is in use, one may not yet be released by all threads, and the next is being read. The other half of
    // the free memory is for the rows that threads work on.
    let block = budget.saturating_sub(beside) / 8;
    let least = LEAST_BLOCK.max((at_hand * parallel::threads() as u64).div_ceil(4));
    if block < least {
        return Err(over_budget(
            format!(
                "training on these data takes {} besides the features, but the budget is {}",
                memory_needed(beside + 8 * least),
                memory_given(budget)
            ),
            &format!("give ⟦memory={}⟧ or more", typed(beside + 8 * least)),
        ));
    }
    Ok(data.limited(block))
}

/// A size in the form of the option --memory.
fn typed(bytes: u64) -> String {
    memory_needed(bytes).replace([' ', ','], "")
}

/// Smaller blocks would be mostly overhead.
const LEAST_BLOCK: u64 = 1 << 20;

/// What to do about data that do not fit.
pub const CONVERT: &str =
    "convert the file first, `maxmargin convert FILE -o FILE.mmd`: features of a .mmd file are read a block at a time";

/// The error for a budget that is too small.
pub fn over_budget(message: String, help: &str) -> Error {
    Error::new(Code::MemoryBudget, message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Groups, Guard, Matrix};
    use crate::settings::Task;
    use crate::wish::Solver;
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
        // Few rows at a time, so that the smallest block decides.
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
    fn solvers_that_need_all_rows_say_why_and_how_much() {
        let groups = Groups::one(1 << 20);
        let graded = data(true).with_groups(groups).expect("valid");
        for (data, settings, why) in [
            (graded, Settings::new(Task::Rank).with_solver(Solver::Sgd), "draws pairs from all queries"),
            (data(true), Settings::new(Task::Classify).with_solver(Solver::QuadraticProgram), "all rows at once"),
        ] {
            let needs = Needs::of(&data, &settings).expect("valid");
            let error = within(data, &settings, needs.beside + needs.features - 1, 0).expect_err("refused");
            assert!(error.to_string().contains(why), "{error}");
            assert!(error.remedy().expect("advised").contains("`solver` out"), "{error}");
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
        let tiles = |rows: u64| 4 * TILE_THREADS * rows * 65 * 8;
        let bookkeeping = (1 << 20) / 4096 * (192 + 32);
        assert!(needs(32 << 10) + bookkeeping >= needs(4096) + tiles(32 << 10) - tiles(4096));
    }
}
