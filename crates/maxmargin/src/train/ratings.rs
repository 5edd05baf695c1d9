//! Ratings instead of weights: methods that know who met whom, and nothing about the items.
//!
//! Every item is its own indicator feature, so a rating is a weight and the model is linear like any other. The
//! threshold for ties is the one with the smallest error on the pairs. The Bradley-Terry strengths minimise an
//! objective, which is stated with its proven bound. Elo, Glicko and TrueSkill minimise nothing: instead, the share of
//! wrongly predicted pairs is stated, and no bound.

use super::posed::{check_outcomes, positive_total};
use super::{Assembly, Trained, decoder_by_scores};
use crate::certificate::{Certificate, Decoder, Witness};
use crate::data::{Dataset, Pairs, Scaling, outcome_of, score_differences};
use crate::error::{Code, Error, Result};
use crate::rating::{
    BradleyTerry, BradleyTerrySettings, EloFactor, GlickoSettings, TrueskillSettings, bradley_terry, elo, glicko,
    trueskill,
};
use crate::run::{Cancel, Observer};
use crate::settings::{Method, Settings, Solver};
use crate::solve::{Progress, Solution, Stop};

/// The result of a rating method.
pub(super) struct Rated {
    /// One rating per feature (which is an item), instead of weights.
    pub(super) solution: Solution,
    pub(super) decoder: Decoder,
    /// The cost of a pair; 0 if the method has none.
    pub(super) c: f64,
    pub(super) lambda: f64,
}

/// Rates all items. The same data give the same ratings, so `verify` does this too.
pub(super) fn rate(data: &Dataset, settings: &Settings, observer: &mut dyn Observer, cancel: &Cancel) -> Result<Rated> {
    let Some(pairs) = data.pairs() else {
        return Err(Error::new(Code::NoPairs, "there are no pairs to rate items from").help("give pairs of items"));
    };
    let method = settings.method().unwrap_or_default();
    let columns = columns_of_items(data, method)?;
    check_outcomes(data, method)?;
    let total = positive_total((0..pairs.len()).map(|pair| pairs.weight(pair)).sum(), "pair")?;
    let rows = data.rows();
    let mut progress = Progress::unbounded(observer, cancel);
    let plain = |ratings: Vec<f64>| (ratings, None);
    let (ratings, fitted) = match method {
        Method::Elo => plain(elo(pairs, rows, EloFactor::default())),
        Method::Glicko => plain(glicko(pairs, rows, &GlickoSettings::default())),
        Method::Trueskill => plain(trueskill(pairs, rows, &TrueskillSettings::default())),
        _ => {
            let c = settings.regularisation.c(total);
            let fit = BradleyTerrySettings { c, tolerance: settings.tolerance, max_passes: settings.max_passes };
            let BradleyTerry { strengths, objective, lower_bound, passes, stop, trace, .. } =
                bradley_terry(pairs, rows, &fit, progress.observer(), cancel)?;
            (strengths, Some((objective, lower_bound, c, passes, stop, trace)))
        }
    };
    let decoder = decoder_by_scores(settings, Decoder::Compare { threshold: 0.0 }, &ratings, pairs);
    let mut weights = vec![0.0; data.cols()];
    columns.iter().zip(&ratings).for_each(|(&column, &rating)| weights[column] = rating);
    let (objective, lower_bound, c, lambda, passes, stop, trace) = match fitted {
        Some((objective, lower_bound, c, passes, stop, trace)) => {
            (objective, Some(lower_bound), c, settings.regularisation.lambda(total), passes, stop, trace)
        }
        None => {
            let objective = error(pairs, &ratings, decoder.threshold().unwrap_or(0.0));
            progress.report(1, objective, &weights, &[]);
            (objective, None, 0.0, 0.0, 1, Stop::Finished, progress.trace)
        }
    };
    let solution = Solution {
        weights,
        thresholds: Vec::new(),
        objective,
        lower_bound,
        witness: Witness::Weights,
        passes,
        stop,
        first_rate: None,
        read: None,
        kernel: None,
        trace,
    };
    Ok(Rated { solution, decoder, c, lambda })
}

/// Learns a model of ratings.
pub(super) fn train(
    data: &Dataset,
    settings: &Settings,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Trained> {
    let Rated { mut solution, decoder, c, lambda } = rate(data, settings, observer, cancel)?;
    cancel.check()?;
    let solver = (settings.method() == Some(Method::BradleyTerry)).then_some(Solver::Newton);
    let constraints = data.pairs().map_or(0, Pairs::len) as u64;
    let certificate = Certificate { constraints, c, lambda, ..Certificate::of(data) };
    let (stop, trace) = (solution.stop, std::mem::take(&mut solution.trace));
    let model = Assembly::rated(data, settings, &Scaling::default(), certificate).rating(solution, solver, decoder)?;
    Ok(Trained {
        model,
        solver: solver.unwrap_or(Solver::Auto),
        stop,
        first_rate: None,
        read: None,
        kernel_rows: None,
        merging: None,
        learned_nothing: false,
        trace,
    })
}

/// The one feature of each item, which is 1. An error if items have other features: a rating does not depend on those.
fn columns_of_items(data: &Dataset, method: Method) -> Result<Vec<usize>> {
    let mut taken = vec![false; data.cols()];
    let mut columns = Vec::with_capacity(data.rows());
    for row in 0..data.rows() {
        let (mut own, mut others) = (None, 0);
        data.matrix().each_in_row(row, |column, value| match value {
            1.0 if own.is_none() => own = Some(column),
            0.0 => {}
            _ => others += 1,
        });
        match own {
            Some(column) if others == 0 && !taken[column] => {
                taken[column] = true;
                columns.push(column);
            }
            _ => {
                let message = format!(
                    "`{}` rates items by the outcomes of their pairs, and these items have features",
                    method.name()
                );
                return Err(Error::new(Code::Unsupported, message)
                    .help("give pairs without ⟦items⟧, or learn from the features with ⟦method=compare⟧"));
            }
        }
    }
    Ok(columns)
}

/// The weighted share of the pairs that the ratings predict wrongly.
fn error(pairs: &Pairs, ratings: &[f64], threshold: f64) -> f64 {
    let (mut wrong, mut total) = (0.0, 0.0);
    for (pair, difference) in score_differences(ratings, pairs).into_iter().enumerate() {
        total += pairs.weight(pair);
        if outcome_of(difference, threshold) != pairs.outcome(pair) {
            wrong += pairs.weight(pair);
        }
    }
    wrong / total
}
