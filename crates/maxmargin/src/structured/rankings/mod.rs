//! [`Rankings`]: the order of the rows of a query as one output, with the loss 1 − measure of the whole order.
//!
//! ```text
//! min  ½‖w‖² + C · Σ_queries weight · max_y [ loss(y) + Ψ(y)·s − Ψ(truth)·s ]
//! Ψ(y)·s = mean over pairs of a relevant row i and another row j of y_ij (s_i − s_j),   y_ij = 1 where i comes first, else −1
//! ```
//! or with the sum over pairs ([`OrderScore`]). The truth is any order with all relevant rows first, and the rows of a
//! query in the order of their scores maximise Ψ(y)·s. The loss of average precision is 1 − AP; reciprocal rank and
//! ROC area likewise; P@K is (best that the query allows − P@K). What is relevant is a matter of the [`Variant`].
//!
//! **NDCG with two grades** is 1 − NDCG, exactly. **With more grades** the loss is an upper bound. For each grade g of
//! the query, let NDCG_g call the rows with at least this grade relevant. Then 1 − NDCG = Σ_g share_g · (1 − NDCG_g),
//! where share_g is the part of the ideal sum that the gain from the next lower grade to g makes, and the shares add up
//! to 1. Each g has a Ψ of its own over its own pairs, and its own most violated order: the sum of these maxima is at
//! least the maximum over one common order.
//!
//! An output has a number for each row of the query: how many rows of the other kind stand on the wrong side of it. With
//! several grades it has one such list for each. [`search`] finds the most violated order in O(n log n), or
//! O(n log n + K²) with a cutoff. The plane has a slope for each row that stands wrong.
//!
//! Queries without a relevant row, or with nothing else, have no wrong order and are left out, as are queries that are
//! too short for P@K to differ. Rows with equal scores are searched in the order of the data, and ties in the value
//! are broken in favour of fewer wrong pairs, the same way for all rows.
//!
//! References: Yue, Finley, Radlinski & Joachims, A support vector method for optimizing average precision, SIGIR 2007;
//! Joachims, A support vector method for multivariate performance measures, ICML 2005; Chakrabarti, Khanna, Sawant &
//! Bhattacharyya, Structured learning for non-smooth ranking losses, KDD 2008. The sum over grades is our own.

mod measure;
mod search;
mod variant;

pub use measure::{OrderScore, RankMeasure};
pub(crate) use variant::Ties;
pub use variant::Variant;

use super::{Plane, Scores, Structure, not_an_output};
use crate::data::{Dataset, Subset, counts};
use crate::error::{Code, Error, Result};
use crate::parallel::Spare;
pub(super) use search::{Lists, count_wrong};
use std::ops::Range;

/// The orders of the rows of each query.
#[derive(Debug)]
pub struct Rankings {
    measure: RankMeasure,
    queries: Vec<Query>,
    left_out: usize,
    /// The number of the grade of each row, from the lowest up. Equal numbers are equal grades, or grades that the
    /// measure does not tell apart.
    grades: Vec<u16>,
    order_score: OrderScore,
    tables: Tables,
    spare: Spare<Buffers>,
}

/// Numbers that all queries share.
#[derive(Debug, Default)]
struct Tables {
    /// Σ 1/m over m ≤ n, at n.
    harmonic: Vec<f64>,
    /// The discount at each position, as far as positions count.
    discounts: Vec<f64>,
    /// Whether discounts fall ever slower, and all positions count.
    slowing: bool,
}

/// One query.
#[derive(Clone, Debug)]
struct Query {
    rows: Range<usize>,
    weight: f64,
    levels: Vec<Level>,
}

/// Rows of at least some grade against the others.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The number of the lowest grade that is relevant.
    from: u16,
    relevant: u32,
    /// How much of the loss of the query it makes.
    share: f64,
    /// One over the best sum of discounts.
    scale: f64,
}

#[derive(Debug, Default)]
struct Buffers {
    lists: Lists,
    wrong: Vec<u32>,
    expected: Vec<u32>,
}

/// A pair that is turned around changes its term from s_i − s_j to s_j − s_i.
const PER_PAIR: f64 = 2.0;

/// More positions take too long to fill one by one.
const MOST_POSITIONS: usize = 4096;

/// More grades than this are no grades.
const MOST_GRADES: usize = 64;

impl Rankings {
    /// The queries of graded rows, or some of them: those whose rows are in the subset.
    pub fn on(
        data: &Dataset,
        measure: RankMeasure,
        order_score: OrderScore,
        subset: Option<&Subset>,
    ) -> Result<Rankings> {
        let targets = data.targets().real()?;
        let groups = data.groups().ok_or_else(|| {
            Error::new(Code::NoGroups, "ranking orders the rows of each query, and the rows have no query ids").help(
                "add qid:ID to the rows, name the column with ⟦group⟧, or rank all rows as one list with ⟦one-group⟧",
            )
        })?;
        let seen: Vec<Range<usize>> = groups.ranges().filter(|range| counts(subset, range.start)).collect();
        let longest = seen.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        if longest > u32::MAX as usize {
            return Err(Error::new(Code::BadSetting, format!("a query of {longest} rows is too long")));
        }
        let (grades, values) = graded(targets, measure)?;
        let tables = Tables::new(measure, &seen, longest)?;
        let (mut queries, mut left_out) = (Vec::new(), 0);
        for rows in seen {
            let levels = levels(&grades[rows.clone()], &values, measure, &tables);
            if levels.is_empty() {
                left_out += 1;
                continue;
            }
            let weight = weight_of(data, &rows)?;
            queries.push(Query { rows, weight, levels });
        }
        if queries.is_empty() {
            let message = match measure {
                RankMeasure::PrecisionAt(cutoff, _) => {
                    format!("no query has more than {cutoff} rows, of which some are relevant and some are not")
                }
                _ => "no query has a relevant row and another one, so there is nothing to rank".to_string(),
            };
            return Err(Error::new(Code::NoPairs, message).help(format!(
                "check that the targets are grades and that the query ids group several rows; relevant means {}",
                relevant_means(measure)
            )));
        }
        let spare = Spare::default();
        Ok(Rankings { measure, queries, left_out, grades, order_score, tables, spare })
    }

    /// Number of queries that have no wrong order.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The measure that is optimised.
    pub fn measure(&self) -> RankMeasure {
        self.measure
    }

    /// Whether the loss is an upper bound of 1 − measure, and not the same: NDCG over several grades.
    pub fn is_bound(&self) -> bool {
        self.queries.iter().any(|query| query.levels.len() > 1)
    }

    /// Number of the others of a level.
    fn others(query: &Query, level: &Level) -> usize {
        query.rows.len() - level.relevant as usize
    }

    /// σ of a level: what a wrong pair adds for each unit by which its scores are wrong.
    fn sigma(&self, query: &Query, level: &Level) -> f64 {
        match self.order_score {
            OrderScore::Mean => PER_PAIR / (f64::from(level.relevant) * Rankings::others(query, level) as f64),
            OrderScore::Sum => PER_PAIR,
        }
    }

    /// Searches one level of a query; the result is `lists.above`.
    fn search(&self, query: &Query, level: &Level, lists: &mut Lists) {
        let sigma = self.sigma(query, level);
        let Tables { harmonic, discounts, slowing } = &self.tables;
        let seen = discounts.len().min(query.rows.len());
        match self.measure {
            RankMeasure::Map(_) => lists.average_precision(sigma, harmonic),
            RankMeasure::Auc => {
                let pairs = f64::from(level.relevant) * Rankings::others(query, level) as f64;
                lists.area(sigma, 1.0 / pairs);
            }
            RankMeasure::Mrr(_) => lists.first_relevant(sigma, discounts),
            RankMeasure::Ndcg(..) if *slowing => lists.all_positions(sigma, level.scale, discounts),
            RankMeasure::Ndcg(..) | RankMeasure::PrecisionAt(..) => {
                lists.first_positions(sigma, level.scale, &discounts[..seen]);
            }
        }
    }

    /// The loss of relevant rows, given the number of others above each, in rising order.
    fn loss(&self, query: &Query, level: &Level, above: impl Iterator<Item = usize>) -> f64 {
        let ranked = (1usize..).zip(above);
        match self.measure {
            RankMeasure::Map(_) => {
                ranked.map(|(i, above)| above as f64 / (i + above) as f64).sum::<f64>() / f64::from(level.relevant)
            }
            RankMeasure::Auc => {
                let pairs = f64::from(level.relevant) * Rankings::others(query, level) as f64;
                ranked.map(|(_, above)| above as f64).sum::<f64>() / pairs
            }
            RankMeasure::Mrr(_) | RankMeasure::Ndcg(..) | RankMeasure::PrecisionAt(..) => {
                let most = if matches!(self.measure, RankMeasure::Mrr(_)) { 1 } else { usize::MAX };
                let at = |position: usize| self.tables.discounts.get(position - 1).copied().unwrap_or(0.0);
                let lost = ranked.take(most).map(|(i, above)| if above == 0 { 0.0 } else { at(i) - at(i + above) });
                (level.scale * lost.sum::<f64>()).max(0.0)
            }
        }
    }
}

impl Structure for Rankings {
    fn examples(&self) -> usize {
        self.queries.len()
    }

    fn rows(&self, example: usize) -> Range<usize> {
        self.queries[example].rows.clone()
    }

    fn weight(&self, example: usize) -> f64 {
        self.queries[example].weight
    }

    fn most_violated(&self, example: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        let query = &self.queries[example];
        let grades = &self.grades[query.rows.clone()];
        let count = query.rows.len();
        output.clear();
        output.resize(count * query.levels.len(), 0);
        self.spare.lend(|Buffers { lists, .. }| {
            lists.sort(at.rows);
            for (level, output) in query.levels.iter().zip(output.chunks_exact_mut(count)) {
                lists.split(|place| grades[place as usize] >= level.from);
                self.search(query, level, lists);
                lists.write(output);
            }
        });
        Ok(())
    }

    fn plane(&self, example: usize, output: &[u32], plane: &mut Plane) -> Result<()> {
        let query = &self.queries[example];
        let grades = &self.grades[query.rows.clone()];
        let count = query.rows.len();
        plane.clear();
        if output.len() != count * query.levels.len() {
            return Err(not_an_output(example, "an order has a number for each row"));
        }
        self.spare.lend(|Buffers { wrong, expected, .. }| {
            for (level, output) in query.levels.iter().zip(output.chunks_exact(count)) {
                let is_relevant = |place: usize| grades[place] >= level.from;
                let sizes = (level.relevant as usize, Rankings::others(query, level));
                count_wrong(output, sizes, |place| Some(is_relevant(place)), wrong, expected)
                    .map_err(|why| not_an_output(example, why))?;
                let above = wrong.iter().enumerate().flat_map(|(above, times)| (0..*times).map(move |_| above));
                plane.loss += level.share * self.loss(query, level, above);
                let sigma = level.share * self.sigma(query, level);
                let slopes = (0u32..).zip(output).filter(|(_, number)| **number > 0);
                plane.rows.extend(slopes.map(|(place, number)| {
                    let sign = if is_relevant(place as usize) { -1.0 } else { 1.0 };
                    (place, sign * sigma * f64::from(*number))
                }));
            }
            if query.levels.len() > 1 {
                plane.tidy();
            }
            Ok(())
        })
    }
}

/// Which targets a measure calls relevant, in words.
fn relevant_means(measure: RankMeasure) -> String {
    match measure {
        RankMeasure::Ndcg(..) => "a grade above 0".to_string(),
        measure => format!("a grade of {} or more", measure.variant().relevant_from()),
    }
}

/// The number of the grade of each row, and the grade that each number stands for. For measures that know relevant rows
/// and others, there are two numbers.
fn graded(targets: &[f64], measure: RankMeasure) -> Result<(Vec<u16>, Vec<f64>)> {
    let RankMeasure::Ndcg(..) = measure else {
        let from = measure.variant().relevant_from();
        return Ok((targets.iter().map(|&target| u16::from(target >= from)).collect(), vec![0.0, from]));
    };
    // Grades below zero have no gain, like grade zero.
    let mut values = vec![0.0];
    for &target in targets {
        if target > 0.0
            && let Err(place) = values.binary_search_by(|value: &f64| value.total_cmp(&target))
        {
            values.insert(place, target);
            if values.len() > MOST_GRADES {
                let message = format!("the targets have more than {MOST_GRADES} values, and ndcg takes grades");
                return Err(Error::new(Code::BadTarget, message)
                    .help("give grades such as 0 to 4, or leave ⟦optimize⟧ out: pairs take any targets"));
            }
        }
    }
    let number = |target: &f64| values.partition_point(|value| value <= target).saturating_sub(1) as u16;
    Ok((targets.iter().map(number).collect(), values))
}

impl Tables {
    fn new(measure: RankMeasure, queries: &[Range<usize>], longest: usize) -> Result<Tables> {
        let mut tables = Tables::default();
        let seen = measure.cutoff().map_or(longest, |cutoff| cutoff.get().min(longest));
        let discount: Box<dyn Fn(usize) -> f64> = match measure {
            RankMeasure::Auc => return Ok(tables),
            RankMeasure::Map(_) => {
                tables.harmonic = Vec::with_capacity(longest + 1);
                let mut sum = 0.0;
                tables.harmonic.push(sum);
                tables.harmonic.extend((1..=longest).map(|n| {
                    sum += 1.0 / n as f64;
                    sum
                }));
                return Ok(tables);
            }
            RankMeasure::Mrr(_) => Box::new(|position| 1.0 / position as f64),
            RankMeasure::Ndcg(_, variant) => Box::new(move |position| variant.discount(position)),
            RankMeasure::PrecisionAt(cutoff, _) => Box::new(move |_| 1.0 / cutoff.get() as f64),
        };
        tables.discounts = (1..=seen).map(discount).collect();
        let steps: Vec<f64> = tables.discounts.windows(2).map(|pair| pair[0] - pair[1]).collect();
        tables.slowing = seen == longest && steps.windows(2).all(|pair| pair[0] >= pair[1] && pair[1] >= 0.0);
        let by_position = matches!(measure, RankMeasure::Ndcg(..) | RankMeasure::PrecisionAt(..)) && !tables.slowing;
        let most = queries.iter().map(|rows| rows.len().min(seen)).max().unwrap_or(0);
        if by_position && most > MOST_POSITIONS {
            let message =
                format!("`{measure}` counts {most} positions of a query one by one, and {MOST_POSITIONS} are the most");
            return Err(Error::new(Code::BadSetting, message)
                .help("give a smaller cutoff, such as ⟦optimize=ndcg@10⟧, or use ⟦optimize=map⟧"));
        }
        Ok(tables)
    }
}

/// The levels of a query whose order matters.
fn levels(grades: &[u16], values: &[f64], measure: RankMeasure, tables: &Tables) -> Vec<Level> {
    let mut rows_of = vec![0usize; values.len()];
    grades.iter().for_each(|&grade| rows_of[grade as usize] += 1);
    let positions = tables.discounts.len().min(grades.len());
    let ideal = |relevant: usize| tables.discounts[..positions.min(relevant)].iter().sum::<f64>();
    let is_ndcg = matches!(measure, RankMeasure::Ndcg(..));
    let highest = rows_of.iter().rposition(|rows| *rows > 0).map_or(0.0, |grade| values[grade]);
    let gain = |grade: usize| measure.variant().gain(values[grade], highest);
    let (mut found, mut relevant, mut total) = (Vec::new(), 0, 0.0);
    for from in (1..values.len()).rev() {
        relevant += rows_of[from];
        if rows_of[from] == 0 {
            continue;
        }
        // The next lower grade of the query.
        let lower = (0..from).rev().find(|&grade| rows_of[grade] > 0).unwrap_or(0);
        let share = if is_ndcg { (gain(from) - gain(lower)) * ideal(relevant) } else { 1.0 };
        total += share;
        let too_few = matches!(measure, RankMeasure::PrecisionAt(cutoff, _) if grades.len() <= cutoff.get());
        if relevant == grades.len() || too_few || share <= 0.0 {
            continue;
        }
        let scale = if is_ndcg { 1.0 / ideal(relevant) } else { 1.0 };
        found.push(Level { from: from as u16, relevant: relevant as u32, share, scale });
    }
    if is_ndcg {
        found.iter_mut().for_each(|level| level.share /= total);
    }
    found
}

/// The weight of a query: that of its rows, which must be the same.
fn weight_of(data: &Dataset, rows: &Range<usize>) -> Result<f64> {
    let Some(weights) = data.weights() else { return Ok(1.0) };
    let weight = weights[rows.start];
    match rows.clone().find(|&row| weights[row] != weight) {
        None => Ok(weight),
        Some(row) => {
            let message = format!(
                "the order of a query has one weight, and its rows have several: {} has {}, {} has {weight}",
                data.row_name(row),
                weights[row],
                data.row_name(rows.start),
            );
            Err(Error::new(Code::BadWeight, message).help("give all rows of a query the same weight"))
        }
    }
}

#[cfg(test)]
mod tests;
