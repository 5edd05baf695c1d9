//! [`RankingLearner`]: learns an order from pairs of a better and a worse row, or from whole lists.
//!
//! **Pairs.** d = x_better − x_worse, and the loss is that of the violation m − w·d.
//!
//! ```text
//! gradient             w ← (1 − ηλ)·w + η · mean of c · loss'(violation) · d        over the pairs of a batch
//! passive-aggressive   min ½‖w − w_t‖² + C·c·loss:   w += a·d,   a = min(C·c, ℓ/‖d‖²), ℓ = [1 − w·d]₊
//! ```
//! With the squared hinge a = ℓ/(‖d‖² + 1/(2C·c)), which nothing limits (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer,
//! Online passive-aggressive algorithms, JMLR 2006).
//!
//! **Lists.** An example is a whole group. Its loss is the mean over its pairs of rows with different grades, so that every
//! list counts the same; it is summed by sweeps that list no pair ([`crate::task::Ranking`]), for the hinge and the squared
//! hinge. A list without such a pair is predicted and not learned from. A passive-aggressive step takes the plane that
//! touches the mean hinge h of the list at the current weights, with slope g, as *the* constraint of the list:
//!
//! ```text
//! min ½‖w − w_t‖² + C·ξ (or ξ²)   s.t.  ξ ≥ h + g·(w − w_t), ξ ≥ 0:      w −= a·g,  a = min(C, h/‖g‖²) or h/(‖g‖² + 1/2C)
//! ```
//! For a list of one pair this is the step of the pair. It costs two walks over the rows of the list, however many pairs
//! it has.
//!
//! Every example is predicted first: the share of pairs in the wrong order, equal scores among them, or NDCG@10.

use super::descent::{Descent, not_for_streams};
use super::linear::LinearPoint;
use super::pair_steps::PairSteps;
use super::progress::{Errors, Means, Progress};
use super::state::{Learned, OnlineState, sound};
use crate::certificate::Decoder;
use crate::data::row_loops::for_this_machine;
use crate::data::{Dataset, Outcome, Pairs, Rows, with_rows};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::metric::ndcg_of_list;
use crate::run::Cancel;
use crate::settings::{Regularisation, Settings, Solver};
use crate::task::{Intercept, Objective, PairWeight, Place, Ranking, Slopes};
use std::ops::Range;

/// How many pairs ahead rows are prefetched.
const AHEAD: usize = 8;

/// How examples change the weights.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Gradient(Descent),
    PassiveAggressive { c: f64, squared: bool },
}

impl Rule {
    fn of(settings: &Settings) -> Result<Rule> {
        match (settings.solver, settings.regularisation) {
            (Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos, _) => Descent::of(settings).map(Rule::Gradient),
            (Solver::PassiveAggressive, Regularisation::C(c)) => {
                settings.validate()?;
                super::descent::refuse(settings)?;
                Ok(Rule::PassiveAggressive { c, squared: settings.loss == Loss::SquaredHinge })
            }
            (Solver::PassiveAggressive, _) => {
                Err(Error::new(Code::BadSetting, "passive-aggressive steps take ⟦c⟧, and not ⟦lambda⟧")
                    .help("use ⟦c⟧ instead"))
            }
            (solver, _) => Err(not_for_streams(solver)),
        }
    }

    fn is_averaged(self) -> bool {
        matches!(self, Rule::Gradient(descent) if descent.is_averaged())
    }

    fn descent(&self) -> Option<&Descent> {
        match self {
            Rule::Gradient(descent) => Some(descent),
            Rule::PassiveAggressive { .. } => None,
        }
    }

    fn batch(&self) -> usize {
        self.descent().map_or(1, Descent::batch)
    }
}

/// What is counted and summed over the stream.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    seen: u64,
    steps: u64,
    loss: f64,
    weight: f64,
    /// Pairs in the wrong order.
    errors: Errors,
    /// NDCG@10 of lists.
    ndcg: Means,
}

/// See the top of the file.
#[derive(Clone, Debug)]
pub struct RankingLearner {
    rule: Rule,
    loss: Loss,
    /// Whether examples are whole lists. It is known when the first block is seen.
    lists: Option<bool>,
    point: LinearPoint,
    tally: Tally,
    scratch: Vec<f64>,
}

impl RankingLearner {
    /// A learner that has seen nothing.
    pub fn new(settings: &Settings) -> Result<RankingLearner> {
        let rule = Rule::of(settings)?;
        let point = LinearPoint::new(1, Intercept::None, rule.is_averaged());
        Ok(RankingLearner {
            rule,
            loss: settings.loss,
            lists: None,
            point,
            tally: Tally::default(),
            scratch: Vec::new(),
        })
    }

    /// A learner that starts from weights, with all counts at zero.
    pub(crate) fn beginning(settings: &Settings, weights: Vec<f64>) -> Result<RankingLearner> {
        let mut learner = RankingLearner::new(settings)?;
        let averaged = learner.rule.is_averaged();
        learner.point = LinearPoint::starting(weights, Vec::new(), 1, Intercept::None, averaged);
        Ok(learner)
    }

    /// A learner that continues exactly from the state of a model.
    pub(crate) fn resume(settings: &Settings, state: &OnlineState, learned: &Learned<'_>) -> Result<RankingLearner> {
        let mut learner = RankingLearner::new(settings)?;
        sound(learner.take(state, learned))?;
        Ok(learner)
    }

    /// Number of features seen so far.
    pub fn features(&self) -> usize {
        self.point.features()
    }

    /// Number of examples in a step.
    pub fn batch(&self) -> usize {
        self.rule.batch()
    }

    /// How many examples should be at hand for the next step, to find a first rate; 0 if none is due. A list is worth many
    /// pairs.
    pub fn wanted(&self) -> usize {
        let wanted = self.rule.descent().map_or(0, |descent| descent.wanted(self.tally.steps));
        if self.lists == Some(true) { wanted.div_ceil(LIST) } else { wanted }
    }

    /// How many examples may be learned from before a first rate may be due.
    pub fn until_wanted(&self) -> u64 {
        let left = self.rule.descent().map_or(u64::MAX, |descent| descent.steps_left(self.tally.steps));
        left.saturating_mul(self.batch() as u64)
    }

    /// The weights to predict with.
    pub fn weights(&self) -> Vec<f64> {
        self.point.point().0
    }

    /// Examples seen so far.
    pub fn seen(&self) -> u64 {
        self.tally.seen
    }

    /// Number of pairs, if the stream was one of pairs.
    pub(crate) fn pairs(&self) -> Option<u64> {
        (self.lists == Some(false)).then_some(self.tally.seen)
    }

    /// The weighted sum of the losses of examples before each was learned from, and the sum of their weights.
    pub(crate) fn totals(&self) -> (f64, f64) {
        (self.tally.loss, self.tally.weight)
    }

    /// Number of examples in data: of pairs, or of lists.
    pub fn examples(&self, data: &Dataset) -> usize {
        data.pairs().map_or_else(|| data.groups().map_or(0, |groups| groups.len()), Pairs::len)
    }

    /// How well examples were predicted before they were learned from.
    pub fn progress(&self) -> Progress {
        let (unit, metric) = match self.lists {
            Some(true) => (("list", "lists"), self.tally.ndcg.measured("ndcg@10")),
            _ => (("pair", "pairs"), self.tally.errors.measured("pair-error")),
        };
        let Tally { seen, weight, loss, .. } = self.tally;
        Progress { unit, examples: seen, weight, loss, metrics: vec![metric], aggression: None }
    }

    /// Learns from some pairs or lists of a data set, in order, in batches from the first of them. New features start at
    /// zero. After an error the learner is unusable.
    pub fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()> {
        let (lists, count) = (data.pairs().is_none(), self.examples(data));
        if lists && data.groups().is_none() {
            return Err(Error::new(Code::NoGroups, "the rows have no query ids, so that they are no lists")
                .help("give each row the id of its query, or a table of pairs"));
        }
        if examples.end > count || examples.start > examples.end {
            return Err(Error::new(Code::Internal, format!("examples {examples:?} of {count}")));
        }
        if *self.lists.get_or_insert(lists) != lists {
            return Err(Error::new(
                Code::BadSetting,
                "the model was learned from pairs, and these are lists, or the reverse",
            )
            .help("continue with data of the same kind"));
        }
        // The step on a list squares the mean hinge of its pairs, if anything.
        let loss = if let Rule::PassiveAggressive { .. } = self.rule { Loss::Hinge } else { self.loss };
        let ranking = if lists { lists_of(data, loss)? } else { None };
        let mut next = examples.start;
        while next < examples.end {
            let wanted = self.wanted();
            if wanted > 0 {
                self.calibrate(data, ranking.as_ref(), next..next.saturating_add(wanted).min(count))?;
            }
            let most = usize::try_from(self.until_wanted()).unwrap_or(usize::MAX);
            let end = examples.end.min(next.saturating_add(most));
            self.learn_from(data, ranking.as_ref(), next..end)?;
            next = end;
        }
        Ok(())
    }

    fn learn_from(&mut self, data: &Dataset, ranking: Option<&Ranking>, examples: Range<usize>) -> Result<()> {
        data.matrix().check(0..data.rows())?;
        self.point.grow(data.cols());
        self.scratch.resize(self.features(), 0.0);
        let finite = match data.pairs() {
            Some(pairs) => with_rows!(data.matrix(), rows => {
                let RankingLearner { rule, point, tally, scratch, loss, .. } = self;
                match rule {
                    Rule::Gradient(descent) => descend(rows, pairs, examples, descent, point, tally, scratch),
                    Rule::PassiveAggressive { c, squared } => {
                        correct(rows, pairs, examples, (*c, *squared, *loss), point, tally, scratch)
                    }
                }
            }),
            None => self.learn_lists(data, ranking, examples)?,
        };
        if finite && self.point.is_finite() && self.tally.loss.is_finite() {
            return Ok(());
        }
        let (one, _) = self.progress().unit;
        Err(Error::new(Code::Overflow, format!("numbers overflowed before {one} {}", self.seen()))
            .help("bring features to a common size, such as 0 to 1, or use a smaller ⟦rate⟧"))
    }

    /// Steps on whole lists. Returns whether all numbers were finite.
    fn learn_lists(&mut self, data: &Dataset, ranking: Option<&Ranking>, lists: Range<usize>) -> Result<bool> {
        let Some(groups) = data.groups() else { return Ok(true) };
        let grades = data.targets().real()?;
        let parts = ranking.map_or(0, |ranking| ranking.parts());
        let first_row = groups.range(lists.start).start;
        let mut part = (0..parts).take_while(|&part| ranking.is_some_and(|r| r.rows(part).start < first_row)).count();
        let (mut finite, cancel) = (true, Cancel::new());
        let (mut scores, mut predicted) = (Vec::new(), Vec::new());
        // The rows of a batch and how far their scores move.
        let mut pulls: Vec<(Range<usize>, Vec<f64>)> = Vec::new();
        for start in lists.clone().step_by(self.rule.batch()) {
            pulls.clear();
            let batch = start..(start + self.rule.batch()).min(lists.end);
            for list in batch.clone() {
                let rows = groups.range(list);
                scores.clear();
                predicted.clear();
                with_rows!(data.matrix(), matrix => for row in rows.clone() {
                    let (score, shown) = self.point.both_scores(matrix, row);
                    finite &= score.is_finite();
                    scores.push(score);
                    predicted.push(shown);
                });
                self.tally.seen += 1;
                self.tally.ndcg.count(ndcg_of_list(&predicted, &grades[rows.clone()], 10));
                let Some(ranking) = ranking.filter(|r| part < parts && r.rows(part) == rows) else { continue };
                let mut slopes = vec![0.0; scores.len()];
                let place = Place { part, scores: &scores, thresholds: &[], cancel: &cancel };
                let slots = Slopes { scores: &mut slopes, thresholds: &mut [] };
                let loss = ranking.evaluate(&place, slots, &mut Default::default())?;
                self.tally.weight += 1.0;
                self.tally.loss += match self.rule {
                    Rule::PassiveAggressive { squared: true, .. } => loss * loss,
                    _ => loss,
                };
                if let Rule::PassiveAggressive { c, squared } = self.rule {
                    self.correct_list(data, (rows, &slopes, loss), (c, squared));
                } else {
                    pulls.push((rows, slopes));
                }
                part += 1;
            }
            let Rule::Gradient(descent) = &self.rule else {
                self.tally.steps += 1;
                continue;
            };
            let rate = descent.rate(self.tally.steps);
            self.point.shrink(descent.shrinking(rate));
            let each = rate / batch.len() as f64;
            with_rows!(data.matrix(), matrix => for (rows, slopes) in &pulls {
                for (row, slope) in rows.clone().zip(slopes) {
                    if *slope != 0.0 {
                        self.point.add(matrix, row, -each * slope);
                    }
                }
            });
            if let Some(share) = descent.share(self.tally.steps) {
                self.point.include(share);
            }
            self.tally.steps += 1;
        }
        Ok(finite)
    }

    /// The passive-aggressive step on a list: its rows, the slopes by their scores, and its loss.
    fn correct_list(
        &mut self,
        data: &Dataset,
        (rows, slopes, loss): (Range<usize>, &[f64], f64),
        (c, squared): (f64, bool),
    ) {
        if loss <= 0.0 {
            return;
        }
        let RankingLearner { point, scratch, .. } = self;
        with_rows!(data.matrix(), matrix => {
            let moving = || rows.clone().zip(slopes).filter(|(_, slope)| **slope != 0.0);
            moving().for_each(|(row, slope)| matrix.axpy(row, *slope, scratch));
            // ‖g‖², each entry of g once; what was written is zero again afterwards.
            let mut square = 0.0;
            moving().for_each(|(row, _)| matrix.each(row, |column, _| {
                if let Some(entry) = scratch.get_mut(column) {
                    square += *entry * *entry;
                    *entry = 0.0;
                }
            }));
            let step = match squared {
                true => loss / (square + 0.5 / c),
                false => (loss / square).min(c),
            };
            // Rows that are all equal cannot be told apart.
            if square > 0.0 {
                moving().for_each(|(row, slope)| point.add(matrix, row, -step * slope));
            }
        });
    }

    /// Finds a first rate by trials on these examples.
    fn calibrate(&mut self, data: &Dataset, ranking: Option<&Ranking>, examples: Range<usize>) -> Result<()> {
        let Rule::Gradient(mut descent) = self.rule else { return Ok(()) };
        data.matrix().check(0..data.rows())?;
        self.point.grow(data.cols());
        let (start, whole) = (self.clone(), examples.len() >= self.wanted());
        let trial = |descent: Descent| {
            let mut trial = RankingLearner { rule: Rule::Gradient(descent), ..start.clone() };
            let costs = descent.parts(examples.clone()).into_iter().map(|part| {
                trial.learn_from(data, ranking, part)?;
                Ok(trial.cost(data, ranking, examples.clone(), descent.lambda()))
            });
            costs.sum::<Result<f64>>().unwrap_or(f64::INFINITY)
        };
        descent.calibrate(self.tally.steps, whole, trial);
        self.rule = Rule::Gradient(descent);
        Ok(())
    }

    /// The regularised mean loss of examples at the point to predict with.
    fn cost(&self, data: &Dataset, ranking: Option<&Ranking>, examples: Range<usize>, lambda: f64) -> f64 {
        let weights = self.weights();
        let mut scores = vec![0.0; data.rows()];
        data.matrix().scores(0..data.rows(), &weights, &mut scores);
        let (mut losses, mut total) = (0.0, 0.0);
        if let Some(pairs) = data.pairs() {
            for pair in examples.filter(|&pair| pairs.outcome(pair) != Outcome::Tie) {
                let (better, worse) = pairs.ordered(pair);
                losses += pairs.weight(pair) * self.loss.value(self.loss.margin() - (scores[better] - scores[worse]));
                total += pairs.weight(pair);
            }
        } else if let (Some(groups), Some(ranking)) = (data.groups(), ranking) {
            let rows = groups.range(examples.start).start..groups.range(examples.end - 1).end;
            let cancel = Cancel::new();
            for part in (0..ranking.parts()).filter(|&part| rows.contains(&ranking.rows(part).start)) {
                let own = &scores[ranking.rows(part)];
                let mut slopes = vec![0.0; own.len()];
                let place = Place { part, scores: own, thresholds: &[], cancel: &cancel };
                let slots = Slopes { scores: &mut slopes, thresholds: &mut [] };
                losses += ranking.evaluate(&place, slots, &mut Default::default()).unwrap_or(f64::INFINITY);
                total += 1.0;
            }
        }
        0.5 * lambda * weights.iter().map(|w| w * w).sum::<f64>() + losses / f64::max(total, f64::MIN_POSITIVE)
    }

    /// Everything needed to continue: `totals` are the sum of losses and the sum of weights; `steps` are the number of
    /// steps, the number of examples, and whether these are lists; `metrics` are the counts of errors; `means` are those of
    /// NDCG.
    pub(crate) fn state(&self) -> OnlineState {
        let mut state = OnlineState::default();
        let mut metrics = Vec::with_capacity(Errors::NUMBERS);
        self.tally.errors.put(&mut metrics);
        state.put_counts("metrics", metrics);
        state.put_counts("steps", vec![self.tally.steps, self.tally.seen, u64::from(self.lists == Some(true))]);
        state.put_reals("totals", vec![self.tally.loss, self.tally.weight]);
        if self.lists == Some(true) {
            self.tally.ndcg.put("means", &mut state);
        }
        self.point.put(&mut state);
        if let Some(descent) = self.rule.descent() {
            descent.put(&mut state);
        }
        state
    }

    fn take(&mut self, state: &OnlineState, learned: &Learned<'_>) -> Option<()> {
        self.point = LinearPoint::take(state, learned, 1, Intercept::None, self.rule.is_averaged())?;
        let mut metrics = state.counts("metrics")?;
        let errors = Errors::take(&mut metrics)?;
        let &[steps, seen, lists] = state.counts("steps")? else { return None };
        let [loss, weight] = state.numbers("totals")?;
        let ndcg = if lists == 1 { Means::take("means", state)? } else { Means::default() };
        if let Rule::Gradient(descent) = &mut self.rule {
            descent.take(state, steps)?;
        }
        let counted =
            if lists == 1 { ndcg.seen() == seen } else { learned.pairs == Some(seen) && errors.seen() <= seen };
        let sound = metrics.is_empty()
            && counted
            && lists <= 1
            && (1..=seen).contains(&steps)
            && *learned.decoder == Decoder::Rank
            && loss >= 0.0
            && weight > 0.0;
        self.lists = Some(lists == 1);
        self.tally = Tally { seen, steps, loss, weight, errors, ndcg };
        sound.then_some(())
    }
}

/// A list is worth this many pairs when a first rate is found.
const LIST: usize = 16;

/// The lists of a block that have a pair; none if no list has one.
fn lists_of(data: &Dataset, loss: Loss) -> Result<Option<Ranking>> {
    match Ranking::new(data, loss, PairWeight::PerQuery, 1.0) {
        Ok(ranking) => Ok(Some(ranking)),
        Err(error) if error.code() == Code::NoPairs => Ok(None),
        Err(error) => Err(error),
    }
}

for_this_machine! {
    /// See [`descend_plainly`].
    fn descend[R: PairSteps](
        rows: &R, pairs: &Pairs, range: Range<usize>, descent: &Descent, point: &mut LinearPoint, tally: &mut Tally,
        scratch: &mut [f64],
    ) -> bool = descend_plainly
}

/// Gradient steps on pairs. Returns whether all numbers were finite.
#[inline(always)]
fn descend_plainly<R: PairSteps>(
    rows: &R,
    pairs: &Pairs,
    range: Range<usize>,
    descent: &Descent,
    point: &mut LinearPoint,
    tally: &mut Tally,
    scratch: &mut [f64],
) -> bool {
    let (loss, mut finite) = (descent.loss(), true);
    let mut products = Vec::with_capacity(descent.batch().min(range.len()));
    let mut next = range.start;
    while next < range.end {
        let part = next..(next + descent.batch()).min(range.end);
        products.clear();
        for pair in part.clone() {
            ahead(rows, pairs, pair);
            let (better, worse) = pairs.ordered(pair);
            let (product, average) = point.weights.products(|w| rows.product(worse, better, w));
            finite &= product.is_finite();
            count(pairs, pair, average.unwrap_or(product), tally);
            products.push(product);
        }
        let rate = descent.rate(tally.steps);
        point.shrink(descent.shrinking(rate));
        let each = 1.0 / part.len() as f64;
        for (pair, product) in part.clone().zip(&products) {
            let weight = if pairs.outcome(pair) == Outcome::Tie { 0.0 } else { pairs.weight(pair) };
            let violation = loss.margin() - product;
            tally.loss += weight * loss.value(violation);
            tally.weight += weight;
            let pull = weight * loss.derivative(violation);
            if pull != 0.0 {
                let (better, worse) = pairs.ordered(pair);
                let rate = match descent.is_limited() {
                    true => descent.limited(rate, rows.square(worse, better, scratch), weight),
                    false => rate,
                };
                point.weights.add(each * rate * pull, |step, w| rows.add(worse, better, step, w));
            }
        }
        if let Some(share) = descent.share(tally.steps) {
            point.include(share);
        }
        tally.steps += 1;
        next = part.end;
    }
    finite
}

for_this_machine! {
    /// See [`correct_plainly`].
    fn correct[R: PairSteps](
        rows: &R, pairs: &Pairs, range: Range<usize>, rule: (f64, bool, Loss), point: &mut LinearPoint, tally: &mut Tally,
        scratch: &mut [f64],
    ) -> bool = correct_plainly
}

/// Passive-aggressive steps on pairs. Returns whether all numbers were finite.
#[inline(always)]
fn correct_plainly<R: PairSteps>(
    rows: &R,
    pairs: &Pairs,
    range: Range<usize>,
    (c, squared, loss): (f64, bool, Loss),
    point: &mut LinearPoint,
    tally: &mut Tally,
    scratch: &mut [f64],
) -> bool {
    let mut finite = true;
    for pair in range {
        ahead(rows, pairs, pair);
        let (better, worse) = pairs.ordered(pair);
        let (product, _) = point.weights.products(|w| rows.product(worse, better, w));
        finite &= product.is_finite();
        count(pairs, pair, product, tally);
        tally.steps += 1;
        let weight = if pairs.outcome(pair) == Outcome::Tie { 0.0 } else { pairs.weight(pair) };
        let violation = 1.0 - product;
        tally.loss += weight * loss.value(violation);
        tally.weight += weight;
        if violation <= 0.0 || weight == 0.0 {
            continue;
        }
        let square = rows.square(worse, better, scratch);
        let step = match squared {
            true => violation / (square + 0.5 / (c * weight)),
            false => (violation / square).min(c * weight),
        };
        point.weights.add(step, |step, w| rows.add(worse, better, step, w));
    }
    finite
}

/// Prefetches the rows of a pair that is needed soon.
#[inline(always)]
fn ahead<R: Rows>(rows: &R, pairs: &Pairs, pair: usize) {
    if let (Some(&left), Some(&right)) = (pairs.left().get(pair + AHEAD), pairs.right().get(pair + AHEAD)) {
        rows.prefetch(left as usize);
        rows.prefetch(right as usize);
    }
}

/// Counts the prediction of a pair. Equal scores are wrong; ties have no right order.
#[inline(always)]
fn count(pairs: &Pairs, pair: usize, product: f64, tally: &mut Tally) {
    tally.seen += 1;
    if pairs.outcome(pair) != Outcome::Tie {
        tally.errors.count(product <= 0.0);
    }
}
