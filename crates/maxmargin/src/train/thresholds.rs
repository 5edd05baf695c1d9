//! Thresholds of comparisons: learned with the scores, chosen after them, or missing.

use super::Posed;
use crate::data::{Dataset, Outcome, Pairs, score_differences};
use crate::error::{Code, Error, Result};
use crate::model::{Decoder, Model};
use crate::rating::best_threshold;
use crate::settings::{Method, Settings, Solver};

/// The model with a threshold for ties, if it compares. An error if nothing was learned. If scores differ but the
/// threshold is not above zero, the model never predicts a tie, and the caller reports that.
pub(super) fn thresholded(model: Model, problem: &Posed, data: &Dataset) -> Result<Model> {
    let Some(learned) = model.decoder.threshold() else { return Ok(model) };
    if let (Some(Method::Rank | Method::Rank2), Some(pairs)) = (model.settings.method(), data.pairs()) {
        let decoder = decoder_by_scores(&model.settings, model.decoder.clone(), &model.scores(data)?, pairs);
        return Ok(Model { decoder, ..model });
    }
    let certificate = &model.certificate;
    if problem.learned_nothing(&model.settings, certificate.objective, certificate.lower_bound) {
        // The logistic loss is not available with a kernel.
        let losses = if model.settings.expands() { "" } else { "⟦loss=logistic⟧ or " };
        return Err(Error::new(
            Code::NoThreshold,
            "no scores are better than equal scores for all items by more than the tolerance: these outcomes are too \
             uncertain for the hinge loss, or C is too small",
        )
        .help(format!(
            "add {losses}⟦loss=squared-hinge⟧, which learns from them too, try a larger ⟦c⟧ or a smaller ⟦tolerance⟧, \
             or use ⟦method=rank2⟧"
        )));
    }
    // Scores that hardly differ predict nothing.
    let scores = model.scores(data)?;
    let range = |values: &[f64]| {
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)))
    };
    let largest = match data.pairs() {
        Some(pairs) => {
            let (low, high) = range(&score_differences(&scores, pairs));
            high.max(-low)
        }
        None => {
            let (low, high) = range(&scores);
            high - low
        }
    };
    if largest >= SMALL_DIFFERENCE {
        return Ok(model);
    }
    if model.settings.solver == Solver::LinearProgram && model.certificate.converged {
        return Err(Error::new(
            Code::NotSeparable,
            "not separable: no weights do better than equal scores for all items",
        )
        .help("use a soft margin, which allows violations at a cost: leave ⟦margin⟧ and ⟦solver⟧ out and set ⟦c⟧"));
    }
    let message = format!(
        "the best scores differ by at most {largest:.1e}, and the best threshold is {learned:.3}: with this C nothing \
         is learned"
    );
    Err(Error::new(Code::NoThreshold, message)
        .help("try a larger ⟦c⟧, or ⟦method=rank⟧ or rank2; `maxmargin explain MM0323` says when this happens"))
}

/// Thresholds below this share of a margin are zero up to rounding.
const ROUNDING: f64 = 1e-12;

/// Differences of scores below this share of a margin do not count as a model.
const SMALL_DIFFERENCE: f64 = 1e-6;

/// Whether a comparison has learned no threshold for ties, or only constant scores.
pub(crate) fn lacks_threshold(settings: &Settings, decoder: &Decoder, numbers: &[f64]) -> bool {
    settings.method() == Some(Method::Compare)
        && decoder.threshold().is_some_and(|learned| learned <= ROUNDING || numbers.iter().all(|number| *number == 0.0))
}

/// The decoder with the threshold of smallest error on the training pairs, if scores were learned without one.
pub(crate) fn decoder_by_scores(settings: &Settings, decoder: Decoder, scores: &[f64], pairs: &Pairs) -> Decoder {
    if decoder.threshold().is_none() || settings.method() == Some(Method::Compare) {
        return decoder;
    }
    let outcomes: Vec<Outcome> = (0..pairs.len()).map(|pair| pairs.outcome(pair)).collect();
    let threshold = best_threshold(&score_differences(scores, pairs), &outcomes, pairs.weights()).value;
    Decoder::Compare { threshold }
}
