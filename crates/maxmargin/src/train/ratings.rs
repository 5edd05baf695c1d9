//! Ratings in the place of weights: methods that know who met whom, and nothing about the items.
//!
//! Every item is its own indicator feature, so that a rating is a weight and the model is linear like any other. The threshold for ties is the
//! one of least error on the pairs. The strengths of Bradley and Terry minimise an objective, which is stated with its proven bound;
//! Elo, Glicko and TrueSkill minimise nothing: what is stated in its place is the share of the pairs they get wrong, and no bound.

use super::problem::{check_outcomes, positive_total};
use super::{Trained, decoder_by_scores};
use crate::data::{Dataset, Pairs, Scaling};
use crate::error::{Code, Error, Result};
use crate::metric::{outcome_of, score_differences};
use crate::model::{Certificate, Decoder, Model, Scorer};
use crate::rating::{
    BradleyTerry, BradleyTerrySettings, EloFactor, GlickoSettings, TrueskillSettings, bradley_terry, elo, glicko,
    trueskill,
};
use crate::run::{Cancel, Observer};
use crate::settings::{Method, Settings, Solver};
use crate::solve::{Progress, Stop, TracePoint};

/// What a method found.
pub(crate) struct Ratings {
    /// One rating a feature, which is an item.
    pub(crate) weights: Vec<f64>,
    pub(crate) decoder: Decoder,
    pub(crate) objective: f64,
    pub(crate) lower_bound: Option<f64>,
    /// The cost of a pair; 0 where the method has none.
    pub(crate) c: f64,
    pub(crate) lambda: f64,
    passes: u64,
    stop: Stop,
    trace: Vec<TracePoint>,
}

/// Rates all items. The same data give the same ratings, so that this is what `verify` does too.
pub(crate) fn rate(
    data: &Dataset,
    settings: &Settings,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Ratings> {
    let Some(pairs) = data.pairs() else {
        return Err(Error::new(Code::NoPairs, "there are no pairs to rate items by").help("give pairs of items"));
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
    let found = match fitted {
        Some((objective, lower_bound, c, passes, stop, trace)) => {
            let lambda = settings.regularisation.lambda(total);
            let lower_bound = Some(lower_bound);
            Ratings { weights, decoder, objective, lower_bound, c, lambda, passes, stop, trace }
        }
        None => {
            let objective = error(pairs, &ratings, decoder.threshold().unwrap_or(0.0));
            progress.report(1, objective, &weights, &[]);
            let trace = progress.trace;
            let stop = Stop::Finished;
            Ratings { weights, decoder, objective, lower_bound: None, c: 0.0, lambda: 0.0, passes: 1, stop, trace }
        }
    };
    Ok(found)
}

/// Learns a model of ratings.
pub(super) fn train(
    data: &Dataset,
    settings: &Settings,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Trained> {
    let Ratings { weights, decoder, objective, lower_bound, c, lambda, passes, stop, trace } =
        rate(data, settings, observer, cancel)?;
    cancel.check()?;
    let certificate = Certificate {
        objective,
        lower_bound,
        constraints: data.pairs().map_or(0, Pairs::len) as u64,
        data_hash: data.hash()?,
        rows: data.rows() as u64,
        pairs: data.pairs().map(|pairs| pairs.len() as u64),
        ties: None,
        converged: stop == Stop::Converged,
        passes,
        c,
        lambda,
        solver: (settings.method() == Some(Method::BradleyTerry)).then_some(Solver::Newton),
    };
    let model = Model {
        settings: settings.clone(),
        scorer: Scorer::Linear { weights, intercept: None },
        decoder,
        scaling: Scaling::default(),
        feature_names: data.feature_names().cloned(),
        certificate,
        witness: None,
        reading: None,
        version: env!("CARGO_PKG_VERSION").to_string(),
        compacted: None,
        online: None,
    };
    let solver = model.certificate.solver.unwrap_or(Solver::Auto);
    Ok(Trained { model, solver, stop, first_rate: None, kernel_rows: None, merging: None, trace })
}

/// The one feature of each item, which is 1. An error where items have other features: a rating is no function of those.
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
                let message = format!("`{}` rates items by who met whom, and these items have features", method.name());
                return Err(Error::new(Code::Unsupported, message)
                    .help("give pairs without --items, or learn from the features with --method compare"));
            }
        }
    }
    Ok(columns)
}

/// The share of the weight of the pairs that the ratings get wrong.
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
