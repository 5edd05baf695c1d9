//! [`OrdinalLearner`]: learns ratings from rows: one score, and a cut between each two neighbouring ranks.
//!
//! ```text
//! min  λ/2·‖w‖² + mean of c · Σ_{k in K(y)} loss(m − t_k (w·x − b_k)),   t_k = +1 where the rank is above cut k, else −1
//! ```
//! K(y) is all cuts (implicit form) or the two next to the rank (explicit form), as in [`crate::task::Ordinal`]. A row has
//! the rank whose number is the number of cuts that its score reaches.
//!
//! **Gradient steps** ([`Descent`]). The cuts are free: they take steps of 0.1·min(η, 1), and after each step they are put in
//! order by the nearest ordered ones (pooling of neighbours).
//!
//! **Passive-aggressive steps** are the smallest change of weights and cuts that brings the score of a row to the right side
//! of all cuts, at a price of at most C for each ([`cut_step`]). They take the implicit form, and keep the cuts in order.
//!
//! **Ranks** appear in the course of the stream, or are declared. A new rank between two others doubles the cut between
//! them; one beyond the ends adds a cut two margins further out. Neither changes the predictions of other ranks at once.
//!
//! Every row is predicted first: the mean absolute error of its rank, and the share of wrong ranks.

use super::descent::{Descent, not_for_streams, refuse};
use super::linear::LinearPoint;
use super::passive_aggressive::cut_step;
use super::progress::{Errors, Means, Progress};
use super::state::{Learned, OnlineState, sound};
use crate::certificate::Decoder;
use crate::data::row_loops::for_this_machine;
use crate::data::{Dataset, Labels, Rows, Targets, number_label, same_number, with_rows};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::settings::{OrdinalForm, OrdinalSettings, Regularisation, Settings, Solver, TaskSettings};
use crate::task::{ClassWeight, Intercept};
use std::ops::Range;

/// How many rows ahead rows are prefetched.
const AHEAD: usize = 8;

/// Cuts take shorter steps than the weights, since every row pulls at them.
const CUT_RATE: f64 = 0.1;

/// The distance of a new outer cut from the cut next to it: a margin on both sides of a rank.
const APART: f64 = 2.0;

/// More ranks than this are taken for measurements.
const MOST_RANKS: usize = 1000;

/// How rows change weights and cuts.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// Gradient steps.
    Gradient(Descent),
    /// Passive-aggressive steps.
    PassiveAggressive { c: f64, squared: bool },
}

impl Rule {
    fn of(settings: &Settings, form: OrdinalForm) -> Result<Rule> {
        let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        match (settings.solver, settings.regularisation) {
            (Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos, _) => Descent::of(settings).map(Rule::Gradient),
            (Solver::PassiveAggressive, _) if form == OrdinalForm::Explicit => bad(
                "passive-aggressive steps take the implicit form, which keeps the cuts in order",
                "leave ⟦form⟧ out, or use ⟦solver=averaged-sgd⟧",
            ),
            (Solver::PassiveAggressive, Regularisation::C(c)) => {
                settings.validate()?;
                refuse(settings)?;
                Ok(Rule::PassiveAggressive { c, squared: settings.loss == Loss::SquaredHinge })
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
}

/// The cuts, the values of the ranks that they separate, and the factor of the weights of the rows of each rank.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cuts {
    ranks: Vec<f64>,
    shares: Vec<f64>,
    values: Vec<f64>,
    /// Their average, if the weights have one.
    mean: Option<Vec<f64>>,
}

impl Cuts {
    /// The place of a rank, which may be new.
    fn place(&mut self, rank: f64, share: impl FnOnce(f64) -> f64) -> usize {
        let place = match self.ranks.binary_search_by(|own| own.total_cmp(&rank)) {
            Ok(place) => return place,
            Err(place) => place,
        };
        self.ranks.insert(place, rank);
        self.shares.insert(place, share(rank));
        if self.ranks.len() > 1 {
            for cuts in std::iter::once(&mut self.values).chain(self.mean.as_mut()) {
                let (at, cut) = match place {
                    _ if cuts.is_empty() => (0, 0.0),
                    0 => (0, cuts[0] - APART),
                    place if place > cuts.len() => (cuts.len(), cuts[cuts.len() - 1] + APART),
                    place => (place, cuts[place - 1]),
                };
                cuts.insert(at, cut);
            }
        }
        place
    }

    /// The cuts to predict with.
    fn shown(&self) -> &[f64] {
        self.mean.as_ref().unwrap_or(&self.values)
    }

    /// Puts the cuts in order: runs that are not get their mean.
    fn order(&mut self) {
        if self.values.is_sorted() {
            return;
        }
        let mut pools: Vec<(f64, usize)> = Vec::with_capacity(self.values.len());
        for &cut in &self.values {
            pools.push((cut, 1));
            while let [.., (low, below), (high, above)] = pools[..]
                && low > high
            {
                pools.truncate(pools.len() - 2);
                let count = below + above;
                pools.push(((low * below as f64 + high * above as f64) / count as f64, count));
            }
        }
        self.values.clear();
        pools.into_iter().for_each(|(cut, count)| self.values.extend(std::iter::repeat_n(cut, count)));
    }
}

/// What is counted and summed over the stream.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    steps: u64,
    loss: f64,
    weight: f64,
    errors: Errors,
    distance: Means,
}

/// See the top of the file.
#[derive(Clone, Debug)]
pub struct OrdinalLearner {
    task: OrdinalSettings,
    rule: Rule,
    point: LinearPoint,
    cuts: Cuts,
    tally: Tally,
    codes: Vec<u32>,
    weights: Vec<f64>,
}

impl OrdinalLearner {
    /// A learner that has seen nothing.
    pub fn new(settings: &Settings) -> Result<OrdinalLearner> {
        let TaskSettings::Ordinal(task) = &settings.task else {
            return Err(Error::new(Code::Internal, "these are not the settings of ratings"));
        };
        if task.class_weight == ClassWeight::Balanced {
            let message = "balanced ranks need the number of rows of each, which a stream does not know";
            return Err(Error::new(Code::BadSetting, message).help("give weights: ⟦class-weight=LABEL=W,LABEL=W⟧"));
        }
        let rule = Rule::of(settings, task.form)?;
        let point = LinearPoint::new(1, Intercept::None, rule.is_averaged());
        let cuts = Cuts { mean: rule.is_averaged().then(Vec::new), ..Cuts::default() };
        let mut learner = OrdinalLearner {
            task: task.clone(),
            rule,
            point,
            cuts,
            tally: Tally::default(),
            codes: Vec::new(),
            weights: Vec::new(),
        };
        for name in task.classes.iter().flatten() {
            let rank = name.parse::<f64>().ok().filter(|rank| rank.is_finite()).ok_or_else(|| {
                Error::new(Code::BadSetting, format!("rank `{name}` is not a number"))
                    .help("declare ranks as numbers, such as 1,2,3,4,5")
            })?;
            learner.meet(rank + 0.0);
        }
        Ok(learner)
    }

    /// A learner that starts from weights and cuts, with all counts at zero.
    pub(crate) fn beginning(
        settings: &Settings,
        weights: Vec<f64>,
        cuts: &[f64],
        ranks: &Labels,
    ) -> Result<OrdinalLearner> {
        let mut learner = OrdinalLearner::new(settings)?;
        let ranks = sound(ranks.values())?;
        for name in learner.task.classes.iter().flatten() {
            let known = ranks.iter().any(|rank| same_number(&number_label(*rank), name));
            if !known {
                return Err(Error::new(Code::UnknownLabel, format!("the model has no rank `{name}`"))
                    .help("declare the ranks of the model"));
            }
        }
        learner.know(&ranks, cuts);
        let averaged = learner.rule.is_averaged();
        learner.point = LinearPoint::starting(weights, Vec::new(), 1, Intercept::None, averaged);
        Ok(learner)
    }

    /// A learner that continues exactly from the state of a model.
    pub(crate) fn resume(settings: &Settings, state: &OnlineState, learned: &Learned<'_>) -> Result<OrdinalLearner> {
        let mut learner = OrdinalLearner::new(settings)?;
        sound(learner.take(state, learned))?;
        Ok(learner)
    }

    fn know(&mut self, ranks: &[f64], cuts: &[f64]) {
        self.cuts = Cuts { mean: self.cuts.mean.as_ref().map(|_| Vec::new()), ..Cuts::default() };
        for &rank in ranks {
            self.meet(rank);
        }
        self.cuts.values = cuts.to_vec();
        if let Some(mean) = &mut self.cuts.mean {
            *mean = cuts.to_vec();
        }
    }

    /// Number of features seen so far.
    pub fn features(&self) -> usize {
        self.point.features()
    }

    /// Number of rows in a step.
    pub fn batch(&self) -> usize {
        self.rule.descent().map_or(1, Descent::batch)
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

    /// The weights to predict with.
    pub fn weights(&self) -> Vec<f64> {
        self.point.point().0
    }

    /// Rows seen so far.
    pub fn seen(&self) -> u64 {
        self.tally.errors.seen()
    }

    /// The weighted sum of the losses of rows before each was learned from, and the sum of their weights.
    pub(crate) fn totals(&self) -> (f64, f64) {
        (self.tally.loss, self.tally.weight)
    }

    /// How well rows were predicted before they were learned from.
    pub fn progress(&self) -> Progress {
        let Tally { loss, weight, errors, distance, .. } = &self.tally;
        let metrics = vec![distance.measured("mae"), errors.measured("error")];
        Progress {
            unit: ("row", "rows"),
            examples: self.seen(),
            weight: *weight,
            loss: *loss,
            metrics,
            aggression: None,
        }
    }

    /// The meaning of the scores, or an error if only one rank is known.
    pub fn decoder(&self) -> Result<Decoder> {
        if self.cuts.ranks.len() < 2 {
            let message = match self.cuts.ranks[..] {
                [only] => format!("every row has the same rank, {only}"),
                _ => "there was no row, so nothing was learned".to_string(),
            };
            return Err(Error::new(Code::SingleClass, message)
                .help("ratings need rows of two ranks; name a rank that is rare with ⟦classes⟧"));
        }
        // An average of cuts in order is in order but for rounding.
        let mut highest = f64::NEG_INFINITY;
        let cuts = self.cuts.shown().iter().map(|&cut| {
            highest = highest.max(cut);
            highest
        });
        let ranks = Labels::new(self.cuts.ranks.iter().map(|&rank| number_label(rank)).collect());
        Ok(Decoder::Cuts { cuts: cuts.collect(), ranks })
    }

    /// Learns from some rows, in order, in batches from the first of them. New features start at zero. Rows of weight
    /// zero are predicted but not learned from. After an error the learner is unusable.
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

    /// The same without looking for a first rate. A rank that is new is known from the beginning of its step on, so that
    /// nothing depends on where the stream is cut.
    fn learn_from(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        data.matrix().check(rows.clone())?;
        self.point.grow(data.cols());
        let targets = match data.targets() {
            Targets::Labels { .. } => return Labels::ranks(data.targets()).map(drop),
            targets => targets.real()?,
        };
        let batch = self.batch().max(1);
        let mut next = rows.start;
        while next < rows.end {
            let known = self.look_up(data, targets, next..rows.end);
            let whole = if next + known == rows.end { known } else { known / batch * batch };
            self.codes.truncate(whole);
            self.weights.truncate(whole);
            if whole == 0 {
                let end = next.saturating_add(batch).min(rows.end);
                for (row, target) in (next..end).zip(&targets[next..end]) {
                    self.admit(data, target + 0.0, row)?;
                }
                continue;
            }
            let OrdinalLearner { task, rule, point, cuts, tally, codes, weights, .. } = self;
            let examples = Examples { start: next, codes, weights, form: task.form };
            let finite = with_rows!(data.matrix(), matrix => match rule {
                Rule::Gradient(descent) => descend(matrix, examples, descent, point, cuts, tally),
                Rule::PassiveAggressive { c, squared } => correct(matrix, examples, (*c, *squared), point, cuts, tally),
            });
            if !(finite && tally.loss.is_finite() && cuts.values.iter().all(|cut| cut.is_finite())) {
                return Err(Error::new(Code::Overflow, format!("numbers overflowed before row {}", self.seen()))
                    .help("bring features to a common size, such as 0 to 1, or use a smaller ⟦rate⟧"));
            }
            next += whole;
        }
        Ok(())
    }

    /// Finds rank and weight of rows, up to the first row whose rank is new. Returns the number of rows before it.
    fn look_up(&mut self, data: &Dataset, targets: &[f64], rows: Range<usize>) -> usize {
        let OrdinalLearner { cuts, codes, weights, .. } = self;
        codes.clear();
        weights.clear();
        for row in rows {
            let Ok(place) = cuts.ranks.binary_search_by(|own| own.total_cmp(&(targets[row] + 0.0))) else { break };
            codes.push(place as u32);
            weights.push(cuts.shares[place] * data.weights().map_or(1.0, |weights| weights[row]));
        }
        codes.len()
    }

    /// Makes a rank known, if it may appear.
    fn admit(&mut self, data: &Dataset, rank: f64, row: usize) -> Result<()> {
        if self.cuts.ranks.binary_search_by(|own| own.total_cmp(&rank)).is_ok() {
            return Ok(());
        }
        if let Some(declared) = &self.task.classes {
            let ranks = declared.join(", ");
            let message = format!("rank {rank} of {} is not among the ranks {ranks}", data.row_name(row));
            return Err(Error::new(Code::UnknownLabel, message)
                .help("add it to ⟦classes⟧, or leave ⟦classes⟧ out so that ranks may appear in the stream"));
        }
        if self.cuts.ranks.len() >= MOST_RANKS {
            let message = format!("more than {MOST_RANKS} different targets such as {rank}, which are no ranks");
            return Err(Error::new(Code::BadTarget, message).help("round the targets to a few ranks"));
        }
        self.meet(rank);
        Ok(())
    }

    fn meet(&mut self, rank: f64) -> usize {
        let class_weight = &self.task.class_weight;
        self.cuts.place(rank, |rank| match class_weight {
            ClassWeight::ByLabel(weights) => {
                let label = number_label(rank);
                let own = weights.iter().find(|(name, _)| **name == label || same_number(name, &label));
                own.map_or(1.0, |(_, weight)| *weight)
            }
            ClassWeight::Equal | ClassWeight::Balanced => 1.0,
        })
    }

    /// Finds a first rate by trials on these rows.
    fn calibrate(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        let Rule::Gradient(mut descent) = self.rule else { return Ok(()) };
        let whole = rows.len() >= self.wanted();
        let (start, mut failed) = (self.clone(), None);
        descent.calibrate(self.tally.steps, whole, |descent| {
            let mut trial = OrdinalLearner { rule: Rule::Gradient(descent), ..start.clone() };
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
        self.look_up(data, data.targets().real()?, rows.clone());
        let (loss, weights) = (descent.loss(), self.weights());
        let mut scores = vec![0.0; rows.len()];
        data.matrix().scores(rows, &weights, &mut scores);
        let (mut losses, mut total) = (0.0, 0.0);
        for ((score, &code), weight) in scores.iter().zip(&self.codes).zip(&self.weights) {
            for k in counted(self.task.form, code as usize, self.cuts.values.len()) {
                let t = if code as usize > k { 1.0 } else { -1.0 };
                losses += weight * loss.value(loss.margin() - t * (score - self.cuts.shown()[k]));
            }
            total += weight;
        }
        let square: f64 = weights.iter().map(|w| w * w).sum();
        Ok(0.5 * descent.lambda() * square + losses / f64::max(total, f64::MIN_POSITIVE))
    }

    /// Everything needed to continue: `cuts` are the cuts and then their averages; `steps` is the number of steps; `totals`
    /// are the sum of losses and the sum of weights; `metrics` are the counts of errors; `means` are those of distances.
    pub(crate) fn state(&self) -> OnlineState {
        let mut state = OnlineState::default();
        let mut metrics = Vec::with_capacity(Errors::NUMBERS);
        self.tally.errors.put(&mut metrics);
        state.put_counts("metrics", metrics);
        state.put_counts("steps", vec![self.tally.steps]);
        state.put_reals("totals", vec![self.tally.loss, self.tally.weight]);
        self.tally.distance.put("means", &mut state);
        state.put_reals("cuts", [&self.cuts.values[..], self.cuts.mean.as_deref().unwrap_or_default()].concat());
        self.point.put(&mut state);
        if let Some(descent) = self.rule.descent() {
            descent.put(&mut state);
        }
        state
    }

    fn take(&mut self, state: &OnlineState, learned: &Learned<'_>) -> Option<()> {
        let (shown, ranks) = learned.decoder.cuts()?;
        self.know(&ranks.values()?, shown);
        self.point = LinearPoint::take(state, learned, 1, Intercept::None, self.rule.is_averaged())?;
        let (values, mean) = state.reals("cuts")?.split_at_checked(shown.len())?;
        self.cuts.values = values.to_vec();
        match &mut self.cuts.mean {
            Some(own) if mean.len() == shown.len() => *own = mean.to_vec(),
            None if mean.is_empty() => {}
            _ => return None,
        }
        let mut metrics = state.counts("metrics")?;
        let errors = Errors::take(&mut metrics)?;
        let &[steps] = state.counts("steps")? else { return None };
        let [loss, weight] = state.numbers("totals")?;
        let distance = Means::take("means", state)?;
        if let Rule::Gradient(descent) = &mut self.rule {
            descent.take(state, steps)?;
        }
        let seen = errors.seen();
        let sound = metrics.is_empty()
            && values.is_sorted()
            && seen == learned.rows
            && distance.seen() == seen
            && (1..=seen).contains(&steps)
            && loss >= 0.0
            && weight > 0.0;
        self.tally = Tally { steps, loss, weight, errors, distance };
        let same = self.decoder().is_ok_and(|decoder| decoder == *learned.decoder);
        (sound && same).then_some(())
    }
}

/// The cuts that count for a rank.
#[inline(always)]
fn counted(form: OrdinalForm, rank: usize, cuts: usize) -> Range<usize> {
    match form {
        OrdinalForm::Implicit => 0..cuts,
        OrdinalForm::Explicit => rank.saturating_sub(1)..(rank + 1).min(cuts),
    }
}

/// The rows to learn from: the first one, and the rank and weight of each.
#[derive(Clone, Copy, Debug)]
struct Examples<'a> {
    start: usize,
    codes: &'a [u32],
    weights: &'a [f64],
    form: OrdinalForm,
}

for_this_machine! {
    /// See [`descend_plainly`].
    fn descend[R: Rows](
        rows: &R, examples: Examples<'_>, descent: &Descent, point: &mut LinearPoint, cuts: &mut Cuts, tally: &mut Tally,
    ) -> bool = descend_plainly
}

/// Predicts rows and learns from them. Returns whether all numbers were finite.
#[inline(always)]
fn descend_plainly<R: Rows>(
    rows: &R,
    examples: Examples<'_>,
    descent: &Descent,
    point: &mut LinearPoint,
    cuts: &mut Cuts,
    tally: &mut Tally,
) -> bool {
    let Examples { start, codes, weights, form } = examples;
    let (loss, count, mut finite) = (descent.loss(), codes.len(), true);
    let (mut scores, mut moves) = (Vec::new(), vec![0.0; cuts.values.len()]);
    let mut next = 0;
    while next < count {
        let part = next..(next + descent.batch()).min(count);
        scores.clear();
        for place in part.clone() {
            if place + AHEAD < count {
                rows.prefetch(start + place + AHEAD);
            }
            let (score, shown) = point.both_scores(rows, start + place);
            finite &= score.is_finite();
            let (own, predicted) = (codes[place] as usize, cuts.shown().iter().filter(|&&cut| shown >= cut).count());
            tally.errors.count(predicted != own);
            tally.distance.count((cuts.ranks[predicted] - cuts.ranks[own]).abs());
            tally.weight += weights[place];
            scores.push(score);
        }
        let rate = descent.rate(tally.steps);
        point.shrink(descent.shrinking(rate));
        let each = 1.0 / part.len() as f64;
        moves.fill(0.0);
        for (place, &score) in part.clone().zip(&scores) {
            let (own, weight) = (codes[place] as usize, weights[place]);
            let mut pull = 0.0;
            for k in counted(form, own, cuts.values.len()) {
                let t = if own > k { 1.0 } else { -1.0 };
                let violation = loss.margin() - t * (score - cuts.values[k]);
                tally.loss += weight * loss.value(violation);
                let force = weight * t * loss.derivative(violation);
                pull += force;
                moves[k] -= force;
            }
            if pull != 0.0 {
                let row = start + place;
                let rate = match descent.is_limited() {
                    true => descent.limited(rate, rows.squared_norm(row), weight * cuts.values.len() as f64),
                    false => rate,
                };
                point.add(rows, row, each * rate * pull);
            }
        }
        let cut_rate = CUT_RATE * rate.min(1.0) * each;
        cuts.values.iter_mut().zip(&moves).for_each(|(cut, step)| *cut += cut_rate * step);
        cuts.order();
        if let Some(share) = descent.share(tally.steps) {
            point.include(share);
            let both = cuts.mean.iter_mut().flatten().zip(&cuts.values);
            both.for_each(|(mean, cut)| *mean += share * (cut - *mean));
        }
        tally.steps += 1;
        next = part.end;
    }
    finite && point.is_finite()
}

for_this_machine! {
    /// See [`correct_plainly`].
    fn correct[R: Rows](
        rows: &R, examples: Examples<'_>, rule: (f64, bool), point: &mut LinearPoint, cuts: &mut Cuts, tally: &mut Tally,
    ) -> bool = correct_plainly
}

/// Predicts rows, and makes a passive-aggressive step after each. Returns whether all numbers were finite.
#[inline(always)]
fn correct_plainly<R: Rows>(
    rows: &R,
    examples: Examples<'_>,
    (c, squared): (f64, bool),
    point: &mut LinearPoint,
    cuts: &mut Cuts,
    tally: &mut Tally,
) -> bool {
    let Examples { start, codes, weights, .. } = examples;
    let (mut finite, mut steps) = (true, vec![0.0; cuts.values.len()]);
    for (place, (&own, &weight)) in codes.iter().zip(weights).enumerate() {
        if place + AHEAD < codes.len() {
            rows.prefetch(start + place + AHEAD);
        }
        let (row, own) = (start + place, own as usize);
        let score = point.score(rows, row);
        finite &= score.is_finite();
        let predicted = cuts.values.iter().filter(|&&cut| score >= cut).count();
        tally.errors.count(predicted != own);
        tally.distance.count((cuts.ranks[predicted] - cuts.ranks[own]).abs());
        tally.weight += weight;
        tally.steps += 1;
        if weight == 0.0 {
            continue;
        }
        for (k, (step, cut)) in steps.iter_mut().zip(&cuts.values).enumerate() {
            *step = 1.0 - if k < own { score - cut } else { cut - score };
            let missed = step.max(0.0);
            tally.loss += weight * if squared { missed * missed } else { missed };
        }
        let moved = cut_step(&mut steps, own, rows.squared_norm(row), (c * weight, squared));
        if moved != 0.0 {
            point.add(rows, row, moved);
        }
        for (k, (cut, step)) in cuts.values.iter_mut().zip(&steps).enumerate() {
            *cut -= if k < own { *step } else { -step };
        }
        // They are in order but for rounding.
        cuts.order();
    }
    finite && point.is_finite()
}
