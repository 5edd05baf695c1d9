//! The sentences about a finished run: its gap, what that proves, and what to do next.

use crate::format;
use maxmargin::data::{Dataset, Labels};
use maxmargin::error::Result;
use maxmargin::loss::Loss;
use maxmargin::model::{Model, Scorer};
use maxmargin::settings::{Input, Method, Regularisation, Settings, Solver};
use maxmargin::solve::{EarlyStopping, Read, Stop};
use maxmargin::train::Trained;

/// Why a run ended, for JSON.
pub(super) fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Converged => "converged",
        Stop::PassLimit => "pass limit",
        Stop::Stalled => "stalled",
        Stop::Cancelled => "interrupted",
        Stop::Finished => "finished",
        Stop::EarlyStopped => "early stopping",
        Stop::NoGain => "no gain",
        Stop::TimeLimit => "time limit",
    }
}

/// How good a gap is, in words.
pub(crate) fn proven(gap: f64) -> String {
    if gap < 1e-15 {
        "proven optimal to rounding".to_string()
    } else {
        format!("proven within {} of the optimum", format::gap(gap))
    }
}

/// How a run ended: whether it converged, a sentence about it, and what to do if it did not.
pub(crate) type Verdict = (bool, String, Option<String>);

/// How the run ended. `uneven` says whether feature scales differ much.
pub(crate) fn verdict(trained: &Trained, uneven: bool) -> Verdict {
    let certificate = &trained.model.certificate;
    let objective = format::significant(certificate.objective, 6);
    if trained.solver.is_hard_margin() && certificate.converged {
        return hard_margin(trained, &objective);
    }
    if certificate.converged {
        return (true, format!("converged: objective {objective}, {}", proven(certificate.gap().unwrap_or(1.0))), None);
    }
    if trained.stop == Stop::NoGain {
        return no_gain(trained, &objective);
    }
    if let Some(method) = rated_by(&trained.model.settings).filter(|_| certificate.lower_bound.is_none()) {
        let wrong = format::percent(certificate.objective);
        return (
            true,
            format!("rated: {wrong} of the pairs are predicted wrongly; `{method}` has no bound to prove"),
            None,
        );
    }
    let without_bound = trained.stop == Stop::TimeLimit && certificate.lower_bound.is_none();
    if matches!(trained.stop, Stop::Finished | Stop::EarlyStopped) || without_bound {
        return finished(trained, &objective);
    }
    let settings = &trained.model.settings;
    let wanted = format::gap(settings.tolerance);
    let reached = match certificate.gap() {
        Some(gap) => format!("gap {}, tolerance {wanted}", format::gap(gap)),
        None => "no bound proven".to_string(),
    };
    let passes = format::counted(certificate.passes, "pass", "passes");
    let sentence = format!("NOT converged after {passes}: objective {objective}, {reached}");
    (false, sentence, Some(remedy(trained, uneven)))
}

/// A margin that no row or pair violates, or the proof that there is none.
fn hard_margin(trained: &Trained, objective: &str) -> Verdict {
    let certificate = &trained.model.certificate;
    let proven = proven(certificate.gap().unwrap_or(1.0));
    if trained.model.settings.abilities(false).structured {
        let words = format!("separable: objective {objective}, every output reaches its margin, {proven}");
        return (true, words, None);
    }
    if trained.solver != Solver::LinearProgram {
        // The objective is ½‖w‖², and the nearest row has distance 1/‖w‖.
        let margin = format::significant(1.0 / (2.0 * certificate.objective).sqrt(), 4);
        return (true, format!("separable: objective {objective}, margin {margin}, {proven}"), None);
    }
    // The objective is 2 minus the largest margin.
    let margin = 2.0 - certificate.objective;
    let found = format!("largest margin {} at a threshold of 1, {proven}", format::significant(margin, 4));
    let remedy = "some pairs contradict each other: use a soft margin (leave --solver out and set -c)";
    match margin > 0.0 {
        true => (true, format!("separable: {found}"), None),
        false => (true, format!("NOT separable: {found}"), Some(remedy.to_string())),
    }
}

/// Steps without progress.
fn no_gain(trained: &Trained, objective: &str) -> Verdict {
    let passes = format::counted(trained.model.certificate.passes, "pass", "passes");
    let kernel = matches!(trained.model.scorer, Scorer::Expansion(_));
    let remedy = match trained.solver {
        _ if kernel => "try more --max-passes, a smaller -c, another --gamma or a larger --budget",
        Solver::Pegasos => "the steps are too long for these features: try --scale standard, a smaller -c or --project",
        _ => "the steps are too long for these features: try --scale standard, a smaller -c or a smaller --rate",
    };
    let zero = if kernel { "scores" } else { "weights" };
    let kept =
        format!("NO GAIN in {passes}: no {zero} were better than all zeros, which are kept; objective {objective}");
    (false, kept, Some(remedy.to_string()))
}

/// What was read as a share of a pass.
pub(super) fn share(read: Read) -> f64 {
    read.constraints as f64 / read.of.max(1) as f64
}

/// All passes were made, without a bound.
fn finished(trained: &Trained, objective: &str) -> Verdict {
    let (settings, certificate) = (&trained.model.settings, &trained.model.certificate);
    let passes = match trained.read {
        Some(read) => format!(
            "{} of {}, {} % of a pass",
            format::count(read.constraints),
            format::counted(read.of, "constraint", "constraints"),
            format::significant(100.0 * share(read), 3)
        ),
        None => format::counted(certificate.passes, "pass", "passes"),
    };
    let how = match (trained.stop, settings.stochastic.early_stopping) {
        (Stop::EarlyStopped, _) => format!("stopped early, best on held-out data after {passes}"),
        (Stop::TimeLimit, _) => format!("stopped by --max-seconds after {passes}"),
        (_, EarlyStopping::Subsamples) => {
            format!("finished {passes}, the number that was best on two samples of the data")
        }
        (_, EarlyStopping::Validation) => format!("finished, best on held-out data after {passes}"),
        (_, EarlyStopping::None) => format!("finished {passes}"),
    };
    // Some losses have no other kernel solver.
    let graded = settings.task.task().profile().input == Input::Ranked && certificate.pairs.is_none();
    let alone = settings.loss == Loss::Logistic || (graded && settings.loss != Loss::SquaredHinge);
    let only = matches!(trained.model.scorer, Scorer::Expansion(_)) && alone;
    let remedy = match settings.solver {
        // Held-out data decided, and not the bound.
        _ if certificate.lower_bound.is_some() => None,
        // A solver that is not stochastic gives no bound only if none exists.
        solver if !solver.is_stochastic() => {
            Some("this kernel may not be positive definite, so no bound can be proven".to_string())
        }
        _ => (!only).then(|| "leave --solver out to get a proven bound".to_string()),
    };
    let proven = certificate.gap().map_or("no bound proven".to_string(), proven);
    (false, format!("{how}: objective {objective}, {proven}"), remedy)
}

/// What to do about a run that did not converge.
fn remedy(trained: &Trained, uneven: bool) -> String {
    let passes = trained.model.settings.max_passes;
    match trained.stop {
        Stop::PassLimit | Stop::Stalled if trained.solver.is_hard_margin() => {
            "every margin is reached, but the weights are larger than necessary: try --scale standard, or a larger \
             --tolerance"
                .to_string()
        }
        Stop::PassLimit if trained.solver == Solver::Lasvm => {
            let more = passes.saturating_mul(10);
            format!("try --max-passes {more}, or leave --solver out to close the gap")
        }
        Stop::PassLimit if uneven => format!(
            "feature scales are the likely cause: try --scale standard, or --max-passes {}",
            passes.max(10).saturating_mul(10)
        ),
        Stop::PassLimit => format!("try a smaller -c, or --max-passes {}", passes.max(10).saturating_mul(10)),
        Stop::Stalled if uneven => {
            "the limit of double precision is reached: try --scale standard, a smaller -c or a larger --tolerance"
                .to_string()
        }
        Stop::Stalled => {
            "the limit of double precision is reached: try a smaller -c or a larger --tolerance".to_string()
        }
        Stop::TimeLimit => "the time of --max-seconds is over; the best model so far was kept".to_string(),
        _ => "the run was interrupted; the best model so far was kept".to_string(),
    }
}

/// The method, if items are rated from their games.
fn rated_by(settings: &Settings) -> Option<&'static str> {
    settings.method().filter(|method| method.is_rating()).map(Method::name)
}

/// `C = 1, lambda = 1.00e-3`, or that there is no regularisation.
pub(crate) fn regularisation(model: &Model) -> String {
    let certificate = &model.certificate;
    if model.settings.is_hard_margin() {
        return "hard margin".to_string();
    }
    if model.settings.is_rating() && certificate.c == 0.0 {
        return "no regularisation".to_string();
    }
    let costs = format!(
        "C = {}, lambda = {}",
        format::significant(certificate.c, 4),
        format::scientific(certificate.lambda, 3)
    );
    match model.settings.regularisation {
        Regularisation::Nu(nu) => format!("nu = {nu}, which makes {costs}"),
        Regularisation::C(_) | Regularisation::Lambda(_) => costs,
    }
}

/// `solver newton, chosen`, or `solver sgd, first rate 0.5 found on a sample`.
pub(crate) fn how_solved(trained: &Trained) -> String {
    let settings = &trained.model.settings;
    if let Some(method) = rated_by(settings) {
        return format!("method {method}");
    }
    let chosen = if settings.solver == Solver::Auto { ", chosen" } else { "" };
    let found = if settings.stochastic.rate.is_none() { " found on a sample" } else { "" };
    let rate = trained
        .first_rate
        .map_or(String::new(), |rate| format!(", first rate {}{found}", format::significant(rate, 6)));
    format!("solver {}{chosen}{rate}", trained.solver.name())
}

/// Whether a threshold only makes up for rounding: scores that are equal in theory differ by this much in practice.
pub(crate) fn is_rounding(model: &Model, threshold: f64) -> bool {
    const ROUNDING: f64 = 1e-12;
    let weights = model.scorer.weights().map(|weights| weights.iter().fold(0.0, |most: f64, w| most.max(w.abs())));
    let size = weights.filter(|most| *most > 0.0).unwrap_or(1.0);
    (0.0..=ROUNDING * size).contains(&threshold)
}

/// `5 ranks, 1 to 5, with cuts at −1.2, 0.3, 1.1 and 2.4`, and which ranks no score reaches.
pub(crate) fn cuts_sentence(cuts: &[f64], ranks: &Labels) -> String {
    const SHOWN: usize = 9;
    let mut shown: Vec<String> = cuts.iter().take(SHOWN).map(|cut| format::significant(*cut, 4)).collect();
    if cuts.len() > SHOWN {
        shown.push("…".to_string());
    }
    let (first, last) = (ranks.name(0), ranks.name(ranks.len() - 1));
    let places = if cuts.len() == 1 { "a cut" } else { "cuts" };
    let never: Vec<&str> =
        cuts.windows(2).enumerate().filter(|(_, pair)| pair[0] == pair[1]).map(|(at, _)| ranks.name(at + 1)).collect();
    let never = match &never[..] {
        [] => String::new(),
        [one] => format!("; rank {one} is never predicted, because its cuts are equal"),
        several => format!("; ranks {} are never predicted, because their cuts are equal", several.join(", ")),
    };
    format!(
        "{} ranks, {first} to {last}, with {places} at {}{never}",
        format::count(ranks.len() as u64),
        shown.join(", ")
    )
}

/// The ranks in the data with their numbers of rows: `3 ranks: 1 (20 rows), 2 (31 rows), 4 (1 row)`.
pub(super) fn ranks_found(ranks: &Labels, data: &Dataset) -> Result<String> {
    const SHOWN: usize = 12;
    let mut rows = vec![0u64; ranks.len()];
    for code in ranks.codes(data.targets())? {
        rows[code as usize] += 1;
    }
    let named = ranks.names().iter().zip(&rows).take(SHOWN);
    let named: Vec<String> =
        named.map(|(name, &count)| format!("{name} ({})", format::counted(count, "row", "rows"))).collect();
    let more = if ranks.len() > SHOWN { ", …" } else { "" };
    Ok(format!("{} ranks: {}{more}", format::count(ranks.len() as u64), named.join(", ")))
}

/// When two items are predicted to tie.
pub(crate) fn ties_sentence(model: &Model, threshold: f64) -> String {
    let learned = model.settings.method() == Some(Method::Compare);
    if learned && (threshold <= 0.0 || is_rounding(model, threshold)) {
        // Its sign would be an accident.
        let threshold = if is_rounding(model, threshold.abs()) { 0.0 } else { threshold };
        return format!(
            "NEVER a tie: the best threshold is {}, because ties are few and outcomes uncertain; try a larger -c, or \
             --method rank2, which chooses the threshold with the smallest error",
            format::significant(threshold, 4)
        );
    }
    if is_rounding(model, threshold) {
        return "a tie only where scores are equal up to rounding: a wider threshold has no smaller error".to_string();
    }
    if let Some(width) = model.decoder.tie_width().filter(|width| *width != threshold) {
        return match width > 0.0 {
            true => format!(
                "a tie is the most probable outcome where scores differ by no more than {}; the threshold is {}",
                format::significant(width, 6),
                format::significant(threshold, 6)
            ),
            false => format!(
                "a tie is NEVER the most probable outcome: the threshold is {}, and ties are few",
                format::significant(threshold, 6)
            ),
        };
    }
    let how = match model.settings.method() {
        Some(Method::Compare) if model.settings.solver == Solver::LinearProgram => "",
        Some(Method::Compare) => ", learned with the scores",
        _ => ", chosen for the smallest error on the training pairs",
    };
    format!("a tie where scores differ by no more than {}{how}", format::significant(threshold, 6))
}
