//! [`SetLearner`]: learns sets of labels from rows, one after the other or in small batches.
//!
//! Every label has a score. In the calibrated form one more, the last one, lies between the labels of a row and the others
//! ([`crate::task::Separation`]); in one-vs-rest zero does. A label that appears starts at zero, and is known from the
//! beginning of its step on.
//!
//! **Gradient steps** are those of [`super::descent`], with a slope for each score:
//!
//! ```text
//! calibrated    loss = the hinge or the logistic form of `task/multilabel/separation.rs`
//! one-vs-rest   loss = Σ_l ℓ(m ∓ s_l), − for the labels of the row
//! ```
//!
//! **Passive-aggressive steps** take the calibrated form with the hinge:
//!
//! ```text
//! min  ½ Σ_m ‖w_m − w_tm‖² + C · loss
//! ```
//! *Exact*: the step is one block of the batch solver's dual, solved by the same function (`solve_sides`). *Two labels*:
//! only the worst label of the row and the worst other one move; with a = 1 + s_0 − min s_l and b = 1 + max s_k − s_0, the
//! step is α = (2a + b)/3q, β = (a + 2b)/3q within 0 and C, the solution of the problem of these two. Constant terms are
//! weights of a feature of value 1.
//!
//! **The bound of passive-aggressive steps.** If a label of a row does not lie above another one, then a + b ≥ 2, and a step
//! raises the dual value of the whole stream by at least min(C, 1/R²), with R² the largest squared length of a row. With D
//! the sum of all rises, weak duality gives D ≤ ½‖U‖² + C Σ L_t(U) for every U, and
//!
//! ```text
//! Σ_t (1 − AP_t)  ≤  number of such rows  ≤  max(R², 1/C) · D
//! ```
//! with AP_t the average precision of the labels of row t before it was learned from. With weights of rows, C is that of
//! the row of least weight.
//!
//! A step costs O(entries of the row · labels that move), and all scores O(entries · labels).

mod steps;

use super::descent::{Descent, not_for_streams, refuse};
use super::labels::StreamLabels;
use super::linear::LinearPoint;
use super::progress::{Measured, Progress};
use super::state::{Learned, OnlineState, sound};
use crate::certificate::Decoder;
use crate::data::{Dataset, Labels, Rows, same_number, with_rows};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::settings::{MultilabelSettings, Regularisation, Settings, Solver, TaskSettings};
use crate::task::{Intercept, Multilabel, SetStep};
use std::ops::Range;
use steps::{Batch, Tally, Work, correct, descend, slopes_of};

/// How rows change the weights.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// Gradient steps.
    Gradient(Descent),
    /// Passive-aggressive steps.
    PassiveAggressive { step: SetStep, c: f64 },
}

impl Rule {
    /// The rule of these settings, or an error that explains why they cannot learn from a stream.
    fn of(settings: &Settings, task: &MultilabelSettings) -> Result<Rule> {
        let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        settings.validate()?;
        match (settings.solver, settings.regularisation) {
            (Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos, _) => {
                if task.step != SetStep::default() {
                    return bad(
                        "⟦step⟧ is for passive-aggressive steps",
                        "leave ⟦step⟧ out, or use ⟦solver=passive-aggressive⟧",
                    );
                }
                Descent::of(settings).map(Rule::Gradient)
            }
            (Solver::PassiveAggressive, Regularisation::C(c)) => {
                refuse(settings)?;
                if settings.loss != Loss::Hinge || task.multilabel != Multilabel::Calibrated {
                    return bad(
                        "passive-aggressive steps on label sets take the calibrated form with the hinge",
                        "leave ⟦loss⟧ and ⟦multilabel⟧ out, or use ⟦solver=averaged-sgd⟧",
                    );
                }
                Ok(Rule::PassiveAggressive { step: task.step, c })
            }
            (Solver::PassiveAggressive, _) => {
                bad("passive-aggressive steps take ⟦c⟧, and not ⟦lambda⟧", "use ⟦c⟧ instead")
            }
            (solver, _) => Err(not_for_streams(solver)),
        }
    }

    fn descent(&self) -> Option<&Descent> {
        match self {
            Rule::Gradient(descent) => Some(descent),
            Rule::PassiveAggressive { .. } => None,
        }
    }

    fn is_averaged(&self) -> bool {
        self.descent().is_some_and(Descent::is_averaged)
    }

    fn batch(&self) -> usize {
        self.descent().map_or(1, Descent::batch)
    }
}

/// See the top of the file.
#[derive(Clone, Debug)]
pub struct SetLearner {
    task: MultilabelSettings,
    rule: Rule,
    labels: StreamLabels,
    point: LinearPoint,
    tally: Tally,
    batch: Batch,
    work: Work,
}

impl SetLearner {
    /// A learner that has seen nothing.
    pub fn new(settings: &Settings) -> Result<SetLearner> {
        let TaskSettings::Multilabel(task) = &settings.task else {
            return Err(Error::new(Code::Internal, "these are not the settings of label sets"));
        };
        let rule = Rule::of(settings, task)?;
        let mut learner = SetLearner {
            task: task.clone(),
            rule,
            labels: StreamLabels::default(),
            point: LinearPoint::new(0, task.intercept, rule.is_averaged()),
            tally: Tally { least: f64::INFINITY, ..Tally::default() },
            batch: Batch::default(),
            work: Work::default(),
        };
        learner.know(&[])?;
        Ok(learner)
    }

    /// A learner that starts from weights and constant terms, with all counts at zero.
    pub(crate) fn beginning(
        settings: &Settings,
        labels: &Labels,
        weights: Vec<f64>,
        intercepts: &[f64],
    ) -> Result<SetLearner> {
        let mut learner = SetLearner::new(settings)?;
        let outputs = labels.len() + learner.borders();
        let mut constants = vec![0.0; if learner.point.has_constants() { outputs } else { 0 }];
        constants.iter_mut().zip(intercepts).for_each(|(own, given)| *own = *given);
        let (intercept, averaged) = (learner.task.intercept, learner.rule.is_averaged());
        learner.know(labels.names())?;
        // Declared labels that the model does not have start at zero.
        learner.point = LinearPoint::starting(weights, constants, outputs, intercept, averaged);
        learner.spread(outputs);
        Ok(learner)
    }

    /// A learner that continues exactly from the state of a model.
    pub(crate) fn resume(settings: &Settings, state: &OnlineState, learned: &Learned<'_>) -> Result<SetLearner> {
        let mut learner = SetLearner::new(settings)?;
        let (labels, calibrated) = sound(learned.decoder.label_sets())?;
        sound((calibrated == (learner.borders() == 1)).then_some(()))?;
        sound(learner.know(labels.names()).ok())?;
        sound(learner.take(state, learned))?;
        Ok(learner)
    }

    /// Makes these labels known, in this order, and then the declared ones.
    fn know(&mut self, names: &[String]) -> Result<()> {
        let declared = self.task.classes.as_deref();
        let among = |list: &[String], name: &String| list.iter().any(|other| other == name || same_number(other, name));
        if let Some(other) = declared.and_then(|declared| names.iter().find(|name| !among(declared, name))) {
            let message = format!("the model has a label `{other}`, which is not among ⟦classes⟧");
            return Err(Error::new(Code::UnknownLabel, message).help("declare the labels of the model"));
        }
        let mut all = names.to_vec();
        all.extend(declared.unwrap_or_default().iter().filter(|name| !among(names, name)).cloned());
        self.labels = StreamLabels::new(&all, declared.is_some());
        self.point = LinearPoint::new(self.outputs(), self.task.intercept, self.rule.is_averaged());
        Ok(())
    }

    /// Number of scores besides those of the labels.
    fn borders(&self) -> usize {
        usize::from(self.task.multilabel == Multilabel::Calibrated)
    }

    /// Number of scores of a row: one for each label and, in the calibrated form, the border.
    pub fn outputs(&self) -> usize {
        self.labels.names().len() + self.borders()
    }

    /// Number of features seen so far.
    pub fn features(&self) -> usize {
        self.point.features()
    }

    /// Number of rows in a step.
    pub fn batch(&self) -> usize {
        self.rule.batch()
    }

    /// How many rows should be at hand for the next step, to find a first rate; 0 if none is due.
    pub fn wanted(&self) -> usize {
        self.rule.descent().map_or(0, |descent| descent.wanted(self.tally.steps))
    }

    /// How many rows may be learned from before a first rate may be due.
    pub fn until_wanted(&self) -> u64 {
        let left = self.rule.descent().map_or(u64::MAX, |descent| descent.steps_left(self.tally.steps));
        left.saturating_mul(self.batch() as u64)
    }

    /// Rows seen so far.
    pub fn seen(&self) -> u64 {
        self.tally.seen
    }

    /// The weights and the constant terms to predict with.
    pub fn point(&self) -> (Vec<f64>, Vec<f64>) {
        self.point.point()
    }

    /// The weighted sum of the losses of rows before each was learned from, and the sum of their weights.
    pub(crate) fn totals(&self) -> (f64, f64) {
        (self.tally.loss, self.tally.weight)
    }

    /// The bound of the mean of 1 − AP, for passive-aggressive steps; none before the first row.
    pub fn bound(&self) -> Option<f64> {
        let Rule::PassiveAggressive { c, .. } = self.rule else { return None };
        let Tally { counted, rise, length, least, .. } = self.tally;
        (counted > 0).then(|| length.max(1.0 / (c * least)) * rise / counted as f64)
    }

    /// How well rows were predicted before they were learned from.
    pub fn progress(&self) -> Progress {
        let Tally { seen, counted, loss, weight, precision, ranking, .. } = self.tally;
        let mean = |sum: f64| (counted > 0).then(|| sum / counted as f64);
        let measured = |name, all| Measured { name, all, recent: None };
        let mut metrics =
            vec![measured("label-ranking-average-precision", mean(precision)), measured("ranking-loss", mean(ranking))];
        if let Rule::PassiveAggressive { .. } = self.rule {
            metrics.push(measured("bound of 1 - average precision", self.bound()));
        }
        Progress { unit: ("row", "rows"), examples: seen, weight, loss, metrics, aggression: None }
    }

    /// The meaning of the scores, or an error if no label is known.
    pub fn decoder(&self) -> Result<Decoder> {
        match self.labels.names() {
            [] => Err(Error::new(Code::SingleClass, "no row had a label, so nothing was learned")
                .help("give rows with labels")),
            names => Ok(Decoder::Sets { labels: Labels::new(names.to_vec()), calibrated: self.borders() == 1 }),
        }
    }

    /// Learns from some rows, in order, in batches from the first of them. New features and labels start at zero. Rows of
    /// weight zero are predicted but not learned from. After an error the learner is unusable.
    pub fn learn(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        if rows.end > data.rows() || rows.start > rows.end {
            return Err(Error::new(Code::Internal, format!("rows {rows:?} of {}", data.rows())));
        }
        let mut next = rows.start;
        while next < rows.end {
            let wanted = self.wanted();
            if wanted > 0 {
                self.calibrate(data, next..next.saturating_add(wanted).min(data.rows()))?;
            }
            let most = usize::try_from(self.until_wanted()).unwrap_or(usize::MAX);
            let end = rows.end.min(next.saturating_add(most));
            self.learn_from(data, next..end)?;
            next = end;
        }
        Ok(())
    }

    /// The same without looking for a first rate.
    fn learn_from(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        data.matrix().check(rows.clone())?;
        let size = self.batch().max(1);
        let mut next = rows.start;
        while next < rows.end {
            let part = next..next.saturating_add(size).min(rows.end);
            self.gather(data, part.clone())?;
            let SetLearner { rule, point, tally, batch, work, .. } = self;
            let finite = with_rows!(data.matrix(), matrix => match rule {
                Rule::Gradient(descent) => descend(matrix, batch, (self.task.multilabel, *descent), point, tally, work),
                Rule::PassiveAggressive { step, c } => correct(matrix, batch, (*step, *c), point, tally, work),
            });
            if !finite {
                return Err(Error::new(Code::Overflow, format!("numbers overflowed before row {}", self.seen()))
                    .help("bring features to a common size, such as 0 to 1, or use a smaller ⟦c⟧ or ⟦rate⟧"));
            }
            next = part.end;
        }
        Ok(())
    }

    /// Finds labels and weights of a batch, and makes room for new labels and features. Labels are met batch by batch, so
    /// that the result does not depend on where the stream was cut.
    fn gather(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        let SetLearner { labels, batch, work, .. } = self;
        batch.start = rows.start;
        batch.own.clear();
        batch.ends.clear();
        batch.weights.clear();
        for row in rows {
            labels.set(data, row, &mut work.own)?;
            batch.own.extend_from_slice(&work.own);
            batch.ends.push(batch.own.len());
            batch.weights.push(data.weights().map_or(1.0, |weights| weights[row]));
        }
        self.spread(self.point.outputs());
        self.point.grow(data.cols());
        Ok(())
    }

    /// Makes room for labels that are not among the scores yet. The border stays the last score.
    fn spread(&mut self, before: usize) {
        let outputs = self.outputs();
        if outputs == before {
            return;
        }
        let known = before - self.borders();
        let labels = (0..known).map(|label| (label, label, 1.0));
        let border = (self.borders() == 1).then(|| (before - 1, outputs - 1, 1.0));
        self.point = self.point.spread(outputs, &labels.chain(border).collect::<Vec<_>>());
    }

    /// Finds a first rate by trials on these rows.
    fn calibrate(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        let Rule::Gradient(mut descent) = self.rule else { return Ok(()) };
        let whole = rows.len() >= self.wanted();
        let (start, mut failed) = (self.clone(), None);
        descent.calibrate(self.tally.steps, whole, |descent| {
            let mut trial = SetLearner { rule: Rule::Gradient(descent), ..start.clone() };
            let costs = descent.parts(rows.clone()).into_iter().map(|part| {
                trial.learn_from(data, part)?;
                trial.cost(data, rows.clone(), &descent)
            });
            match costs.sum::<Result<f64>>() {
                Ok(cost) => cost,
                // Numbers that overflow only tell that the rate is too large.
                Err(error) => {
                    failed = Some(error).filter(|error| error.code() != Code::Overflow).or(failed.take());
                    f64::INFINITY
                }
            }
        });
        self.rule = Rule::Gradient(descent);
        failed.map_or(Ok(()), Err)
    }

    /// The regularised mean loss on rows that were just learned from, at the point to predict with.
    fn cost(&mut self, data: &Dataset, rows: Range<usize>, descent: &Descent) -> Result<f64> {
        let (weights, constants) = self.point.point();
        let (mut scores, mut slopes) = (vec![0.0; self.outputs()], vec![0.0; self.outputs()]);
        let (mut losses, mut total, mut own) = (0.0, 0.0, Vec::new());
        for row in rows {
            self.labels.set(data, row, &mut own)?;
            with_rows!(data.matrix(), matrix => matrix.dots(row, &weights, &mut scores));
            scores.iter_mut().zip(&constants).for_each(|(score, b)| *score += b);
            let weight = data.weights().map_or(1.0, |weights| weights[row]);
            losses += weight * slopes_of((self.task.multilabel, descent.loss()), &own, &scores, &mut slopes);
            total += weight;
        }
        let square = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
        let penalised = if self.task.intercept == Intercept::Penalised { square(&constants) } else { 0.0 };
        let penalty = 0.5 * descent.lambda() * (square(&weights) + penalised);
        Ok(penalty + losses / f64::max(total, f64::MIN_POSITIVE))
    }

    /// Everything needed to continue besides the weights of the model. `steps` are the rows seen, those that count, those
    /// with a mistake, and the steps made; `totals` are the sums and extremes of [`Tally`].
    pub(crate) fn state(&self) -> OnlineState {
        let Tally { seen, counted, mistakes, steps, loss, weight, precision, ranking, rise, length, least } =
            self.tally;
        let mut state = OnlineState::default();
        state.put_counts("steps", vec![seen, counted, mistakes, steps]);
        // Infinity, before the first row, has no place in a file.
        let least = if least.is_finite() { least } else { 0.0 };
        state.put_reals("totals", vec![loss, weight, precision, ranking, rise, length, least]);
        self.point.put(&mut state);
        if let Some(descent) = self.rule.descent() {
            descent.put(&mut state);
        }
        state
    }

    fn take(&mut self, state: &OnlineState, learned: &Learned<'_>) -> Option<()> {
        let (outputs, averaged) = (self.outputs(), self.rule.is_averaged());
        self.point = LinearPoint::take(state, learned, outputs, self.task.intercept, averaged)?;
        let &[seen, counted, mistakes, steps] = state.counts("steps")? else { return None };
        let [loss, weight, precision, ranking, rise, length, least] = state.numbers("totals")?;
        if let Rule::Gradient(descent) = &mut self.rule {
            descent.take(state, steps)?;
        }
        let sums = [loss, weight, precision, ranking, rise, length, least].iter().all(|sum| *sum >= 0.0);
        let counts = mistakes <= counted && counted <= seen && steps <= seen && seen == learned.rows;
        let least = if least > 0.0 { least } else { f64::INFINITY };
        self.tally = Tally { seen, counted, mistakes, steps, loss, weight, precision, ranking, rise, length, least };
        (sums && counts).then_some(())
    }
}

#[cfg(test)]
mod tests;
