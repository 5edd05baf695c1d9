//! [`GradientRule`]: stochastic gradient steps on rows of two classes.
//!
//! ```text
//! min  λ/2·‖w‖² [+ λ/2·b²] + mean of c · loss(m − y·(w·x + b))
//! w ← (1 − ηλ)·w + η · mean of c · loss'(violation) · y · x        over the rows of a batch, c their weights
//! ```
//! All violations of a batch are those before the step. The bracketed term applies to a penalised constant term, which
//! moves like a weight. A free one takes steps of 0.01·min(η, 1).
//!
//! - **sgd**: the last point (Bottou, Stochastic gradient descent tricks, 2012). η falls by the schedule.
//! - **averaged-sgd**: the mean of all points with weights that rise like t³, since a stream has no first pass to leave
//!   out (Shamir and Zhang, Stochastic gradient descent for non-smooth optimization, ICML 2013).
//! - **pegasos**: η = 1/(λ(t + 1)), and the mean of all points with weights that rise like t (Shalev-Shwartz, Singer and
//!   Srebro, Pegasos: primal estimated sub-gradient solver for SVM, ICML 2007).
//!
//! A step costs O(entries of its rows). Nothing is random, and it proves no bound.

use super::linear::LinearPoint;
use super::state::OnlineState;
use super::two_classes::{Batch, TwoClassRule};
use crate::data::{Rows, Scale};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::settings::{Regularisation, Settings, Solver, Stochastic};
use crate::steps::schedule::{Averaging, Rates};
use crate::wish::{EarlyStopping, Schedule};

/// The default η₀.
const USUAL_RATE: f64 = 0.1;

/// See the top of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GradientRule {
    loss: Loss,
    rates: Rates,
    averaging: Averaging,
    batch: usize,
}

/// The error for a solver that needs stored data.
pub(super) fn not_for_streams(solver: Solver) -> Error {
    Error::new(Code::BadSetting, format!("`{}` does not learn from a stream", solver.name()))
        .help("use ⟦solver=averaged-sgd⟧, sgd or pegasos")
}

/// Refuses settings that no stream can follow.
pub(super) fn refuse(settings: &Settings) -> Result<()> {
    let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
    if settings.scale != Scale::None {
        return bad(
            "a stream cannot be scaled, because later rows are not known yet".to_string(),
            "leave ⟦scale⟧ out, and scale the features beforehand",
        );
    }
    let Stochastic { early_stopping, sample, project, .. } = settings.stochastic;
    let alien = [
        (early_stopping != EarlyStopping::None, "⟦early-stopping⟧"),
        (sample.is_some(), "⟦sample⟧"),
        (project, "⟦project⟧"),
    ];
    if let Some((_, name)) = alien.iter().find(|(given, _)| *given) {
        return bad(format!("{name} is for stored data, and a stream is read once"), "leave it out");
    }
    Ok(())
}

impl GradientRule {
    /// The rule of these settings, or an error that explains why they cannot learn from a stream.
    pub(super) fn of(settings: &Settings) -> Result<GradientRule> {
        settings.validate()?;
        refuse(settings)?;
        let Regularisation::Lambda(lambda) = settings.regularisation else {
            let solver = settings.solver.name();
            let message = format!("`{solver}` on a stream takes ⟦lambda⟧: ⟦c⟧ needs a known number of examples");
            return Err(Error::new(Code::BadSetting, message).help("give ⟦lambda⟧, such as 1e-4, instead of ⟦c⟧"));
        };
        let pegasos = settings.solver == Solver::Pegasos;
        let rate = if pegasos { 1.0 / lambda } else { settings.stochastic.rate.unwrap_or(USUAL_RATE) };
        let schedule = if pegasos { Schedule::Inverse } else { settings.stochastic.schedule.unwrap_or_default() };
        let averaging = match settings.solver {
            Solver::Sgd => Averaging::Last,
            Solver::AveragedSgd => Averaging::Late,
            Solver::Pegasos => Averaging::Rising,
            solver => return Err(not_for_streams(solver)),
        };
        let averaged = averaging == Averaging::Late;
        let rates = Rates { schedule, rate, lambda, averaged, longest: f64::INFINITY };
        Ok(GradientRule { loss: settings.loss, rates, averaging, batch: settings.stochastic.batch as usize })
    }
}

impl TwoClassRule for GradientRule {
    fn batch(&self) -> usize {
        self.batch
    }

    fn is_averaged(&self) -> bool {
        self.averaging != Averaging::Last
    }

    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, batch: &Batch<'_>, step: u64, point: &mut LinearPoint) -> f64 {
        let rate = self.rates.at(step);
        point.shrink((1.0 - rate * self.rates.lambda).max(0.0));
        let (each, margin) = (1.0 / batch.len() as f64, self.loss.margin());
        let (weights_rate, constant_rate) = (each * rate, each * point.constant_rate(rate));
        let mut losses = 0.0;
        for place in 0..batch.len() {
            let (sign, weight) = (batch.signs[place], batch.weights[place]);
            let violation = margin - sign * batch.scores[place];
            losses += weight * self.loss.value(violation);
            let pull = weight * sign * self.loss.derivative(violation);
            if pull != 0.0 {
                point.add(rows, batch.start + place, weights_rate * pull);
                point.move_constant(0, constant_rate * pull);
            }
        }
        if let Some(share) = self.averaging.weight(step) {
            point.include(share);
        }
        losses
    }

    fn put(&self, state: &mut OnlineState) {
        state.put_reals("rate", vec![self.rates.rate]);
    }

    fn take(&mut self, state: &OnlineState) -> Option<()> {
        let [rate] = state.numbers("rate")?;
        self.rates.rate = rate;
        (rate > 0.0).then_some(())
    }
}
