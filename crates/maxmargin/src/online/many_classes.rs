//! Rules for rows of several classes, each with a score, and the loop that feeds them.
//!
//! ```text
//! s_k = w_k·x + b_k,   v_k = 1 + s_k − s_y for every class k other than the row's own, y
//!
//! largest  (Crammer and Singer)   loss = max(0, max_k v_k)              joint, hinge
//! sum      (Weston and Watkins)   loss = Σ_k ℓ(v_k)                     weston-watkins, hinge or squared hinge
//! softmax                         loss = ln Σ_k e^(s_k) − s_y           joint, logistic
//! rest                            loss = Σ_k ℓ(m ∓ s_k), − for k = y    one-vs-rest, any loss
//! ```
//! **Gradient steps** are those of [`super::descent`], with a slope for each class. All scores of a batch are those before
//! the step.
//!
//! **Passive-aggressive steps** make the smallest change of all weights that corrects a row, at a price:
//!
//! ```text
//! min  ½ Σ_k ‖w_k − w_tk‖² + C · loss
//! ```
//! The dual of this problem is one block of the batch solver's dual, which `solve_block` solves exactly for any number of
//! classes (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer, Online passive-aggressive algorithms, JMLR 2006, section 8,
//! with all classes as constraints). Constant terms are weights of a feature of value 1.
//!
//! A step costs O(entries · classes); with the largest violation, changing the weights costs O(entries).

use super::descent::{Descent, not_for_streams};
use super::linear::LinearPoint;
use super::passive_aggressive::{Ways, class_step};
use super::progress::Errors;
use super::state::OnlineState;
use crate::data::row_loops::for_this_machine;
use crate::data::{Dataset, Rows, with_rows};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::settings::{ClassifySettings, Regularisation, Settings, Solver};
use crate::solve::{BlockForm, LANES, solve_block};
use crate::task::Multiclass;
use crate::wish::Variant;

/// How many rows ahead rows are prefetched.
const AHEAD: usize = 4;

/// How the loss of a row depends on the scores of its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Largest,
    Sum,
    Softmax,
    Rest,
}

impl Form {
    fn of(task: &ClassifySettings, loss: Loss) -> Result<Form> {
        match (task.multiclass(loss), loss) {
            (Multiclass::Joint, Loss::Hinge) => Ok(Form::Largest),
            (Multiclass::Joint, Loss::Logistic) => Ok(Form::Softmax),
            (Multiclass::WestonWatkins, Loss::Hinge | Loss::SquaredHinge) => Ok(Form::Sum),
            (Multiclass::OneVsRest, _) => Ok(Form::Rest),
            (Multiclass::Joint | Multiclass::WestonWatkins, _) => {
                task.multiclass(loss).joint_form(loss).map(|_| Form::Sum)
            }
            (form, _) => Err(Error::new(Code::BadSetting, format!("`{}` is not learned from a stream", form.name()))
                .help("use ⟦multiclass=joint⟧, weston-watkins or one-vs-rest")),
        }
    }

    /// The loss, and for each class the step that its score takes: minus the slope.
    #[inline(always)]
    fn pulls(self, loss: Loss, scores: &[f64], own: usize, pulls: &mut [f64]) -> f64 {
        let mut total = 0.0;
        match self {
            Form::Largest => {
                pulls.fill(0.0);
                let (rival, high) = rival(scores, own);
                let violation = 1.0 + high - scores[own];
                if violation > 0.0 {
                    (pulls[own], pulls[rival], total) = (1.0, -1.0, violation);
                }
            }
            Form::Sum => {
                let mut sum = 0.0;
                for (class, (pull, score)) in pulls.iter_mut().zip(scores).enumerate() {
                    let violation = 1.0 + score - scores[own];
                    let slope = if class == own { 0.0 } else { loss.derivative(violation) };
                    total += if class == own { 0.0 } else { loss.value(violation) };
                    *pull = -slope;
                    sum += slope;
                }
                pulls[own] = sum;
            }
            Form::Softmax => {
                let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut sum = 0.0;
                for (pull, score) in pulls.iter_mut().zip(scores) {
                    *pull = (score - high).exp();
                    sum += *pull;
                }
                pulls.iter_mut().for_each(|pull| *pull = -*pull / sum);
                pulls[own] += 1.0;
                total = sum.ln() + high - scores[own];
            }
            Form::Rest => {
                for (class, (pull, score)) in pulls.iter_mut().zip(scores).enumerate() {
                    let sign = if class == own { 1.0 } else { -1.0 };
                    let violation = loss.margin() - sign * score;
                    total += loss.value(violation);
                    *pull = sign * loss.derivative(violation);
                }
            }
        }
        total
    }
}

/// The loss of a row of some class at these scores.
pub(crate) fn loss_at(rule: &ClassGradient, scores: &[f64], own: usize, pulls: &mut [f64]) -> f64 {
    rule.form.pulls(rule.descent.loss(), scores, own, pulls)
}

/// The class with the largest score but for one's own, the first of equal ones, and that score.
#[inline(always)]
fn rival(scores: &[f64], own: usize) -> (usize, f64) {
    let mut best = (usize::from(own == 0), f64::NEG_INFINITY);
    for (class, &score) in scores.iter().enumerate() {
        if class != own && score > best.1 {
            best = (class, score);
        }
    }
    best
}

/// How rows of several classes change the weights.
#[derive(Clone, Debug)]
pub(crate) enum ClassRule {
    /// Gradient steps.
    Gradient(ClassGradient),
    /// Passive-aggressive steps.
    PassiveAggressive(ClassAggression),
}

/// Gradient steps.
#[derive(Clone, Debug)]
pub(crate) struct ClassGradient {
    form: Form,
    descent: Descent,
}

/// Passive-aggressive steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassAggression {
    form: BlockForm,
    c: f64,
    /// For the largest violation: what it costs, where that is not C times the slack.
    variant: Option<Variant>,
    /// After how many rows the weights are averaged, if they are.
    average: Option<u64>,
}

/// What is counted and summed over the stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClassTally {
    pub(crate) steps: u64,
    pub(crate) loss: f64,
    pub(crate) weight: f64,
    pub(crate) errors: Errors,
}

/// The rows to learn from: the first one, and the class and weight of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassExamples<'a> {
    pub(crate) start: usize,
    pub(crate) codes: &'a [u32],
    pub(crate) weights: &'a [f64],
}

/// Work buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    scores: Vec<f64>,
    predicted: Vec<f64>,
    pulls: Vec<f64>,
    scratch: Vec<f64>,
}

impl ClassRule {
    /// The rule of these settings.
    pub(crate) fn of(settings: &Settings, task: &ClassifySettings) -> Result<ClassRule> {
        let form = Form::of(task, settings.loss)?;
        match settings.solver {
            Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos => {
                Ok(ClassRule::Gradient(ClassGradient { form, descent: Descent::of(settings)? }))
            }
            Solver::PassiveAggressive => {
                let Regularisation::C(c) = settings.regularisation else {
                    return Err(Error::new(Code::BadSetting, "passive-aggressive steps take ⟦c⟧, and not ⟦lambda⟧")
                        .help("use ⟦c⟧ instead"));
                };
                let form = match (form, settings.loss) {
                    (Form::Largest, _) => BlockForm::Largest,
                    (Form::Sum, Loss::Hinge) => BlockForm::Sum,
                    (Form::Sum, _) => BlockForm::Squares,
                    (Form::Softmax | Form::Rest, _) => {
                        let message = "passive-aggressive steps over several classes need the hinge of one problem";
                        return Err(Error::new(Code::BadSetting, message).help(
                            "use ⟦multiclass=joint⟧ or weston-watkins with ⟦loss=hinge⟧, or ⟦solver=averaged-sgd⟧",
                        ));
                    }
                };
                Ok(ClassRule::PassiveAggressive(ClassAggression { form, c, variant: None, average: None }))
            }
            Solver::Pa => {
                if form != Form::Largest {
                    return Err(Error::new(Code::BadSetting, "`pa` corrects the largest violation of a row")
                        .help("leave ⟦multiclass⟧ and ⟦loss⟧ out; ⟦pa-variant=pa-2⟧ squares the slack"));
                }
                // The settings are checked as for two classes.
                let Ways { c, variant, average, .. } = Ways::of(settings, true)?;
                let variant = Some(variant).filter(|variant| *variant != Variant::PaI);
                Ok(ClassRule::PassiveAggressive(ClassAggression { form: BlockForm::Largest, c, variant, average }))
            }
            solver if solver.is_paired() => {
                let message = format!("`{}` balances two classes, and these are more", solver.name());
                Err(Error::new(Code::BadSetting, message).help("use ⟦solver=pa⟧"))
            }
            solver => Err(not_for_streams(solver)),
        }
    }

    /// Number of rows in a step.
    pub(crate) fn batch(&self) -> usize {
        match self {
            ClassRule::Gradient(rule) => rule.descent.batch(),
            ClassRule::PassiveAggressive(_) => 1,
        }
    }

    /// Whether the point to predict with is an average.
    pub(crate) fn is_averaged(&self) -> bool {
        match self {
            ClassRule::Gradient(rule) => rule.descent.is_averaged(),
            ClassRule::PassiveAggressive(rule) => rule.average.is_some(),
        }
    }

    /// The steps of gradient descent, if it is that.
    pub(crate) fn descent(&self) -> Option<&Descent> {
        match self {
            ClassRule::Gradient(rule) => Some(&rule.descent),
            ClassRule::PassiveAggressive(_) => None,
        }
    }

    /// The same, to change it.
    pub(crate) fn descent_mut(&mut self) -> Option<&mut Descent> {
        match self {
            ClassRule::Gradient(rule) => Some(&mut rule.descent),
            ClassRule::PassiveAggressive(_) => None,
        }
    }

    /// Puts what it remembers besides the point into a state.
    pub(crate) fn put(&self, state: &mut OnlineState) {
        if let ClassRule::Gradient(rule) = self {
            rule.descent.put(state);
        }
    }

    /// Takes it out again, before a step; none if it is invalid.
    pub(crate) fn take(&mut self, state: &OnlineState, step: u64) -> Option<()> {
        self.descent_mut().map_or(Some(()), |descent| descent.take(state, step))
    }
}

/// Predicts rows and learns from them. Returns whether all numbers were finite.
pub(crate) fn learn(
    data: &Dataset,
    examples: ClassExamples<'_>,
    rule: &ClassRule,
    point: &mut LinearPoint,
    tally: &mut ClassTally,
    work: &mut Work,
) -> bool {
    with_rows!(data.matrix(), rows => match rule {
        ClassRule::Gradient(rule) => descend(rows, examples, rule, point, tally, work),
        ClassRule::PassiveAggressive(rule) => correct(rows, examples, rule, point, tally, work),
    })
}

for_this_machine! {
    /// See [`descend_plainly`].
    fn descend[R: Rows](
        rows: &R, examples: ClassExamples<'_>, rule: &ClassGradient, point: &mut LinearPoint, tally: &mut ClassTally,
        work: &mut Work,
    ) -> bool = descend_plainly
}

/// Replaces the violations of a row by the steps of the classes. Returns whether there are any.
#[inline(always)]
fn block_step(form: BlockForm, pulls: &mut Vec<f64>, own: usize, square: f64, cost: f64) -> bool {
    let classes = pulls.len();
    pulls.resize(classes.next_multiple_of(LANES), f64::NEG_INFINITY);
    solve_block(form, pulls, square, cost, 0.0);
    pulls.truncate(classes);
    let sum: f64 = pulls.iter().sum();
    pulls.iter_mut().for_each(|alpha| *alpha = -*alpha);
    pulls[own] = sum;
    sum != 0.0
}

for_this_machine! {
    /// See [`correct_plainly`].
    fn correct[R: Rows](
        rows: &R, examples: ClassExamples<'_>, rule: &ClassAggression, point: &mut LinearPoint, tally: &mut ClassTally,
        work: &mut Work,
    ) -> bool = correct_plainly
}

/// Scores a row with the current weights and counts what it is predicted as.
#[inline(always)]
fn predict<R: Rows>(
    rows: &R,
    row: usize,
    own: usize,
    point: &LinearPoint,
    tally: &mut ClassTally,
    (scores, predicted): (&mut [f64], &mut [f64]),
) -> bool {
    let averaged = point.all_scores(rows, row, scores, predicted);
    let answers: &[f64] = if averaged { predicted } else { scores };
    // The first of equal scores is predicted.
    let (other, high) = rival(answers, own);
    tally.errors.count(high > answers[own] || (high == answers[own] && other < own));
    scores.iter().all(|score| score.is_finite())
}

#[inline(always)]
fn descend_plainly<R: Rows>(
    rows: &R,
    examples: ClassExamples<'_>,
    rule: &ClassGradient,
    point: &mut LinearPoint,
    tally: &mut ClassTally,
    work: &mut Work,
) -> bool {
    let ClassExamples { start, codes, weights } = examples;
    let (size, count, classes) = (rule.descent.batch(), codes.len(), point.outputs());
    let Work { scores, predicted, pulls, scratch } = work;
    scores.resize(classes, 0.0);
    predicted.resize(classes, 0.0);
    scratch.resize(classes, 0.0);
    let mut finite = true;
    let mut next = 0;
    while next < count {
        let part = next..(next + size).min(count);
        pulls.resize(part.len() * classes, 0.0);
        for (place, pulls) in part.clone().zip(pulls.chunks_exact_mut(classes)) {
            if place + AHEAD < count {
                rows.prefetch(start + place + AHEAD);
            }
            let own = codes[place] as usize;
            finite &= predict(rows, start + place, own, point, tally, (&mut scores[..], &mut predicted[..]));
            tally.weight += weights[place];
            tally.loss += weights[place] * rule.form.pulls(rule.descent.loss(), scores, own, pulls);
        }
        let rate = rule.descent.rate(tally.steps);
        point.shrink(rule.descent.shrinking(rate));
        let each = 1.0 / part.len() as f64;
        let constant_rate = each * point.constant_rate(rate);
        for (place, pulls) in part.clone().zip(pulls.chunks_exact_mut(classes)) {
            let weight = weights[place];
            if weight == 0.0 {
                continue;
            }
            let (own, row) = (codes[place] as usize, start + place);
            let rate = match rule.descent.is_limited() {
                true => rule.descent.limited(rate, rows.squared_norm(row) * classes as f64, weight),
                false => rate,
            };
            match rule.form {
                Form::Largest => {
                    if let Some(rival) = pulls.iter().position(|&pull| pull < 0.0) {
                        point.add_between(rows, row, own, rival, each * rate * weight);
                        point.move_constant(own, constant_rate * weight);
                        point.move_constant(rival, -constant_rate * weight);
                    }
                }
                Form::Sum | Form::Softmax | Form::Rest => {
                    pulls
                        .iter()
                        .enumerate()
                        .for_each(|(k, pull)| point.move_constant(k, constant_rate * weight * pull));
                    pulls.iter_mut().for_each(|pull| *pull *= each * rate * weight);
                    point.add_all(rows, row, pulls, scratch);
                }
            }
        }
        if let Some(share) = rule.descent.share(tally.steps) {
            point.include(share);
        }
        tally.steps += 1;
        next = part.end;
    }
    finite && point.is_finite() && tally.loss.is_finite()
}

#[inline(always)]
fn correct_plainly<R: Rows>(
    rows: &R,
    examples: ClassExamples<'_>,
    rule: &ClassAggression,
    point: &mut LinearPoint,
    tally: &mut ClassTally,
    work: &mut Work,
) -> bool {
    let ClassExamples { start, codes, weights } = examples;
    let (count, classes) = (codes.len(), point.outputs());
    let Work { scores, predicted, pulls, scratch } = work;
    scores.resize(classes, 0.0);
    predicted.resize(classes, 0.0);
    scratch.resize(classes, 0.0);
    let constant = f64::from(u8::from(point.has_constants()));
    let mut finite = true;
    for place in 0..count {
        if place + AHEAD < count {
            rows.prefetch(start + place + AHEAD);
        }
        let (own, row, weight) = (codes[place] as usize, start + place, weights[place]);
        finite &= predict(rows, row, own, point, tally, (&mut scores[..], &mut predicted[..]));
        tally.weight += weight;
        tally.steps += 1;
        pulls.clear();
        pulls.extend(scores.iter().map(|score| 1.0 + score - scores[own]));
        pulls[own] = f64::NEG_INFINITY;
        tally.loss += weight
            * match rule.form {
                BlockForm::Largest if rule.variant == Some(Variant::PaIi) => {
                    let most = pulls.iter().copied().fold(0.0, f64::max);
                    most * most
                }
                BlockForm::Largest => pulls.iter().copied().fold(0.0, f64::max),
                BlockForm::Sum => pulls.iter().map(|v| v.max(0.0)).sum(),
                BlockForm::Squares => pulls.iter().map(|v| v.max(0.0) * v.max(0.0)).sum(),
            };
        let (square, cost) = (rows.squared_norm(row) + constant, rule.c * weight);
        let moved = weight > 0.0
            && match rule.variant {
                Some(variant) => {
                    pulls.clear();
                    pulls.extend_from_slice(scores);
                    class_step(pulls, own, square, cost, variant)
                }
                None => block_step(rule.form, pulls, own, square, cost),
            };
        if moved {
            pulls.iter().enumerate().for_each(|(class, step)| point.move_constant(class, *step));
            point.add_all(rows, row, pulls, scratch);
        }
        // The plain mean of the points after each row, from a row on.
        if let Some(before) = rule.average {
            point.include(1.0 / tally.steps.saturating_sub(before).max(1) as f64);
        }
    }
    finite && point.is_finite() && tally.loss.is_finite()
}
