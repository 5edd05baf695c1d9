//! [`ClassificationLearner`]: learns classes from rows, one after the other or in small batches.
//!
//! Classes appear in the course of the stream, or are declared. Two classes share one score: the second label in sorted
//! order is positive, as in training, or the one that is named. While only one class is known, its rows count as positive;
//! if the second class turns out to be the positive one, all signs are turned around. The steps are those of a rule
//! ([`super::two_classes`]).

use super::labels::StreamLabels;
use super::linear::LinearPoint;
use super::progress::{Errors, Measured, Progress, ScoreCounts};
use super::progressive::Auc;
use super::state::{Learned, OnlineState, sound};
use super::two_classes::{Examples, Rule, Tally, TwoClassRule, learn, prepare, with_rule};
use crate::certificate::Decoder;
use crate::data::{Classes, Dataset, same_number};
use crate::error::{Code, Error, Result};
use crate::settings::{ClassifySettings, Settings, TaskSettings};
use crate::task::ClassWeight;
use std::ops::Range;

/// See the top of the file.
#[derive(Clone, Debug)]
pub struct ClassificationLearner {
    task: ClassifySettings,
    rule: Rule,
    labels: StreamLabels,
    /// 1 or −1 for each class, by its code.
    signs: Vec<f64>,
    /// The factor of the weights of the rows of each class.
    shares: Vec<f64>,
    point: LinearPoint,
    tally: Tally,
    /// Work buffers.
    codes: Vec<u32>,
    row_signs: Vec<f64>,
    row_weights: Vec<f64>,
    scores: Vec<f64>,
}

impl ClassificationLearner {
    /// A learner that has seen nothing.
    pub fn new(settings: &Settings) -> Result<ClassificationLearner> {
        let (task, rule) = (classify(settings)?, Rule::of(settings)?);
        let point = LinearPoint::new(1, task.intercept, with_rule!(&rule, rule => rule.is_averaged()));
        let declared = task.classes.clone().unwrap_or_default();
        let mut learner = ClassificationLearner {
            labels: StreamLabels::new(&declared, task.classes.is_some()),
            task,
            rule,
            signs: Vec::new(),
            shares: Vec::new(),
            point,
            tally: Tally::default(),
            codes: Vec::new(),
            row_signs: Vec::new(),
            row_weights: Vec::new(),
            scores: Vec::new(),
        };
        learner.meet_classes()?;
        Ok(learner)
    }

    /// A learner that starts from weights and a constant term, with all counts at zero.
    pub(crate) fn beginning(
        settings: &Settings,
        classes: &Classes,
        weights: Vec<f64>,
        constant: f64,
    ) -> Result<ClassificationLearner> {
        let mut learner = ClassificationLearner::new(settings)?;
        learner.know(classes)?;
        let intercept = learner.task.intercept;
        let constants = if learner.point.point().1.is_empty() { Vec::new() } else { vec![constant] };
        let averaged = with_rule!(&learner.rule, rule => rule.is_averaged());
        learner.point = LinearPoint::starting(weights, constants, 1, intercept, averaged);
        Ok(learner)
    }

    /// A learner that continues exactly from the state of a model.
    pub(crate) fn resume(
        settings: &Settings,
        state: &OnlineState,
        learned: &Learned<'_>,
    ) -> Result<ClassificationLearner> {
        let mut learner = ClassificationLearner::new(settings)?;
        sound(learned.decoder.classes().and_then(|classes| learner.know(classes).ok()))?;
        sound(learner.take(state, learned))?;
        Ok(learner)
    }

    /// Number of features seen so far.
    pub fn features(&self) -> usize {
        self.point.features()
    }

    /// Number of rows in a step.
    pub fn batch(&self) -> usize {
        with_rule!(&self.rule, rule => rule.batch())
    }

    /// How many rows the rule wants to see at once before the first step.
    pub fn wanted(&self) -> usize {
        if self.tally.steps > 0 { 0 } else { with_rule!(&self.rule, rule => rule.wanted()) }
    }

    /// The weights and the constant term to predict with.
    pub fn point(&self) -> (Vec<f64>, Option<f64>) {
        let (weights, constants) = self.point.point();
        (weights, constants.first().copied())
    }

    /// Rows seen so far.
    pub fn seen(&self) -> u64 {
        self.tally.errors.seen()
    }

    /// The weighted sum of the losses of rows before each was learned from, and the sum of their weights.
    pub(crate) fn totals(&self) -> (f64, f64) {
        (self.tally.loss, self.tally.weight)
    }

    /// The area under the ROC curve of scores that were predicted before their rows were learned from.
    pub fn auc(&self) -> Option<Auc> {
        self.tally.scores.auc()
    }

    /// How well rows were predicted before they were learned from.
    pub fn progress(&self) -> Progress {
        let auc = Measured { name: "auc", all: self.auc().map(|auc| auc.area), recent: None };
        Progress {
            unit: ("row", "rows"),
            examples: self.seen(),
            weight: self.tally.weight,
            loss: self.tally.loss,
            metrics: vec![self.tally.errors.measured("error"), auc],
        }
    }

    /// The meaning of the scores, or an error if only one class is known.
    pub fn decoder(&self) -> Result<Decoder> {
        let sign_of = |sign: f64| {
            let code = self.signs.iter().position(|&own| own == sign);
            code.map(|code| self.labels.names()[code].clone())
        };
        match (sign_of(-1.0), sign_of(1.0)) {
            (Some(negative), Some(positive)) => Ok(Decoder::Sign(Classes { negative, positive })),
            _ => Err(Error::new(
                Code::SingleClass,
                match self.labels.names() {
                    [only] => format!("every row has the same class, `{only}`"),
                    _ => "there was no row, so nothing was learned".to_string(),
                },
            )
            .help("a classifier needs rows of two classes; name a class that is rare with ⟦classes⟧")),
        }
    }

    /// Learns from some rows, in order, in batches from the first of them. New features start at zero. Rows of weight
    /// zero are predicted but not learned from. After an error the learner is unusable.
    pub fn learn(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        if rows.end > data.rows() || rows.start > rows.end {
            return Err(Error::new(Code::Internal, format!("rows {rows:?} of {}", data.rows())));
        }
        data.matrix().check(rows.clone())?;
        self.point.grow(data.cols());
        if self.wanted() > 0 {
            let first = rows.start..(rows.start + self.wanted()).min(data.rows());
            self.look_up(data, first.clone())?;
            let examples = Examples { start: first.start, signs: &self.row_signs, weights: &self.row_weights };
            prepare(data, examples, &mut self.rule, &self.point);
        }
        self.look_up(data, rows.clone())?;
        let examples = Examples { start: rows.start, signs: &self.row_signs, weights: &self.row_weights };
        if learn(data, examples, &mut self.rule, &mut self.point, &mut self.tally, &mut self.scores) {
            return Ok(());
        }
        Err(Error::new(Code::Overflow, format!("numbers overflowed before row {}", self.seen()))
            .help("bring features to a common size, such as 0 to 1, or use a smaller ⟦rate⟧"))
    }

    /// Finds sign and weight of each row. Classes that appear here are known from now on.
    fn look_up(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        let mut codes = std::mem::take(&mut self.codes);
        self.labels.codes(data, rows.clone(), &mut codes)?;
        self.meet_classes()?;
        self.row_signs.clear();
        self.row_signs.extend(codes.iter().map(|&code| self.signs[code as usize]));
        self.row_weights.clear();
        let shares = codes.iter().map(|&code| self.shares[code as usize]);
        match data.weights() {
            Some(weights) => self.row_weights.extend(shares.zip(&weights[rows]).map(|(share, weight)| share * weight)),
            None => self.row_weights.extend(shares),
        }
        self.codes = codes;
        Ok(())
    }

    /// Gives signs and weights to classes that are new.
    fn meet_classes(&mut self) -> Result<()> {
        let names = self.labels.names();
        if names.len() == self.signs.len() {
            return Ok(());
        }
        for name in &names[self.shares.len()..] {
            self.shares.push(match &self.task.class_weight {
                ClassWeight::ByLabel(weights) => {
                    let own = weights.iter().find(|(label, _)| *label == name || same_number(label, name));
                    own.map_or(1.0, |(_, weight)| *weight)
                }
                ClassWeight::Equal | ClassWeight::Balanced => 1.0,
            });
        }
        if let [_] = names {
            self.signs = vec![1.0];
            return Ok(());
        }
        let mut sorted = names.to_vec();
        sorted.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            _ => a.cmp(b),
        });
        let classes = Classes::among(sorted, self.task.positive.as_deref())?;
        let signs: Vec<f64> = names.iter().map(|name| if *name == classes.positive { 1.0 } else { -1.0 }).collect();
        if self.signs.first().is_some_and(|&sign| sign != signs[0]) {
            self.point.negate();
            self.tally.scores.flip();
        }
        self.signs = signs;
        Ok(())
    }

    /// Makes these two classes known, the negative one first.
    fn know(&mut self, classes: &Classes) -> Result<()> {
        let names = [classes.negative.clone(), classes.positive.clone()];
        if let Some(declared) = &self.task.classes {
            let known = |name: &String| declared.iter().any(|other| other == name || same_number(other, name));
            if let Some(other) = names.iter().find(|name| !known(name)) {
                let message = format!("the model has a class `{other}`, which is not among ⟦classes⟧");
                return Err(Error::new(Code::UnknownLabel, message).help("declare the classes of the model"));
            }
        }
        self.labels = StreamLabels::new(&names, self.task.classes.is_some());
        (self.signs, self.shares) = (Vec::new(), Vec::new());
        self.task.positive = Some(classes.positive.clone());
        self.meet_classes()
    }

    /// Everything needed to continue. `steps` is the number of steps; `totals` are the sum of losses and the sum of
    /// weights; `metrics` are the counts of errors and of scores.
    pub(crate) fn state(&self) -> OnlineState {
        let mut state = OnlineState::default();
        let mut metrics = Vec::with_capacity(Errors::NUMBERS + ScoreCounts::NUMBERS);
        self.tally.errors.put(&mut metrics);
        self.tally.scores.put(&mut metrics);
        state.put_counts("metrics", metrics);
        state.put_counts("steps", vec![self.tally.steps]);
        state.put_reals("totals", vec![self.tally.loss, self.tally.weight]);
        self.point.put(&mut state);
        with_rule!(&self.rule, rule => rule.put(&mut state));
        state
    }

    fn take(&mut self, state: &OnlineState, learned: &Learned<'_>) -> Option<()> {
        let averaged = with_rule!(&self.rule, rule => rule.is_averaged());
        self.point = LinearPoint::take(state, learned, 1, self.task.intercept, averaged)?;
        let mut metrics = state.counts("metrics")?;
        let errors = Errors::take(&mut metrics)?;
        let scores = ScoreCounts::take(&mut metrics, errors.seen())?;
        let &[steps] = state.counts("steps")? else { return None };
        let [loss, weight] = state.numbers("totals")?;
        let sound = metrics.is_empty()
            && errors.seen() == learned.rows
            && (1..=errors.seen()).contains(&steps)
            && loss >= 0.0
            && weight > 0.0;
        self.tally = Tally { steps, loss, weight, errors, scores };
        with_rule!(&mut self.rule, rule => rule.take(state))?;
        sound.then_some(())
    }
}

/// The settings of a classifier that can learn from a stream, or an error.
fn classify(settings: &Settings) -> Result<ClassifySettings> {
    let TaskSettings::Classify(task) = &settings.task else {
        return Err(Error::new(Code::Internal, "these are not the settings of a classifier"));
    };
    let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
    if task.class_weight == ClassWeight::Balanced {
        return bad(
            "balanced classes need the number of rows of each, which a stream does not know",
            "give weights: ⟦class-weight=LABEL=W,LABEL=W⟧",
        );
    }
    if task.form().is_some() || task.cost_matrix.is_some() {
        return bad("a stream of two classes has one score", "leave ⟦multiclass⟧ and ⟦cost-matrix⟧ out");
    }
    if task.optimize.is_some() || task.probability.is_some() {
        return bad("⟦optimize⟧ and ⟦probability⟧ need all rows at once, and a stream is read once", "leave them out");
    }
    Ok(task.clone())
}
