//! [`ClassificationLearner`]: learns classes from rows, one after the other or in small batches.
//!
//! Classes appear in the course of the stream, or are declared. Two classes share one score: the second label in sorted
//! order is positive, as in training, or the one that is named. While only one class is known, its rows count as positive;
//! if the second class turns out to be the positive one, all signs are turned around. The steps are those of
//! [`super::two_classes`].
//!
//! From three classes on, or if a form for several classes is asked for, each class has a score, and the steps are those
//! of [`super::many_classes`]. When a third class appears, the weights w of two classes become w/2 for the positive and
//! −w/2 for the negative class, which predict the same and have the smallest norm. Each new class starts at zero.

use super::descent::Descent;
use super::labels::StreamLabels;
use super::linear::LinearPoint;
use super::many_classes::{self, ClassExamples, ClassRule, ClassTally, Work};
use super::progress::{Errors, Measured, Progress, ScoreCounts};
use super::progressive::Auc;
use super::state::{Learned, OnlineState, sound};
use super::two_classes::{self, Examples, Rule, Tally, TwoClassRule, with_rule};
use crate::certificate::Decoder;
use crate::data::{Classes, Dataset, Labels, Rows, same_number, with_rows};
use crate::error::{Code, Error, Result};
use crate::settings::{ClassifySettings, Settings, TaskSettings};
use crate::task::ClassWeight;
use std::ops::Range;

/// What the rows of a stream teach.
#[derive(Clone, Debug)]
enum Form {
    /// One score for two classes: the rule, and 1 or −1 for each class by its code.
    Two { rule: Rule, signs: Vec<f64>, tally: Box<Tally> },
    /// A score for each class.
    Many { rule: ClassRule, tally: Box<ClassTally> },
}

/// See the top of the file.
#[derive(Clone, Debug)]
pub struct ClassificationLearner {
    settings: Settings,
    task: ClassifySettings,
    labels: StreamLabels,
    /// The factor of the weights of the rows of each class.
    shares: Vec<f64>,
    form: Form,
    point: LinearPoint,
    buffers: Buffers,
}

/// Work buffers.
#[derive(Clone, Debug, Default)]
struct Buffers {
    codes: Vec<u32>,
    signs: Vec<f64>,
    weights: Vec<f64>,
    scores: Vec<f64>,
    work: Work,
}

impl ClassificationLearner {
    /// A learner that has seen nothing.
    pub fn new(settings: &Settings) -> Result<ClassificationLearner> {
        let task = classify(settings)?;
        let declared = task.classes.clone().unwrap_or_default();
        let labels = StreamLabels::new(&declared, task.classes.is_some());
        let several = task.several(declared.len());
        let (form, outputs) = match several {
            true => {
                let rule = ClassRule::of(settings, &task)?;
                (Form::Many { rule, tally: Box::default() }, declared.len())
            }
            false => (Form::Two { rule: Rule::of(settings)?, signs: Vec::new(), tally: Box::default() }, 1),
        };
        let point = LinearPoint::new(outputs, task.intercept, form.is_averaged());
        let settings = settings.clone();
        let (shares, buffers) = (Vec::new(), Buffers::default());
        let mut learner = ClassificationLearner { settings, task, labels, shares, form, point, buffers };
        learner.meet_classes()?;
        Ok(learner)
    }

    /// A learner that starts from weights and constant terms, with all counts at zero. The labels are those of the
    /// scores: two for one score, the negative one first.
    pub(crate) fn beginning(
        settings: &Settings,
        labels: &[String],
        weights: Vec<f64>,
        constants: &[f64],
    ) -> Result<ClassificationLearner> {
        let mut learner = ClassificationLearner::new(settings)?;
        learner.know(labels)?;
        let outputs = learner.point.outputs();
        let mut own = vec![0.0; if learner.point.has_constants() { outputs } else { 0 }];
        own.iter_mut().zip(constants).for_each(|(own, constant)| *own = *constant);
        let averaged = learner.form.is_averaged();
        learner.point = LinearPoint::starting(weights, own, outputs, learner.task.intercept, averaged);
        Ok(learner)
    }

    /// A learner that continues exactly from the state of a model.
    pub(crate) fn resume(
        settings: &Settings,
        state: &OnlineState,
        learned: &Learned<'_>,
    ) -> Result<ClassificationLearner> {
        let mut learner = ClassificationLearner::new(settings)?;
        let names = sound(learned.decoder.class_names())?;
        sound(learner.know(&names).ok())?;
        sound(learner.take(state, learned))?;
        Ok(learner)
    }

    /// Number of features seen so far.
    pub fn features(&self) -> usize {
        self.point.features()
    }

    /// Number of rows in a step.
    pub fn batch(&self) -> usize {
        match &self.form {
            Form::Two { rule, .. } => with_rule!(rule, rule => rule.batch()),
            Form::Many { rule, .. } => rule.batch(),
        }
    }

    /// How many rows should be at hand for the next step, to find a first rate; 0 if none is due.
    pub fn wanted(&self) -> usize {
        self.form.descent().map_or(0, |descent| descent.wanted(self.steps()))
    }

    /// How many rows may be learned from before a first rate may be due.
    pub fn until_wanted(&self) -> u64 {
        let left = self.form.descent().map_or(u64::MAX, |descent| descent.steps_left(self.steps()));
        left.saturating_mul(self.batch() as u64)
    }

    /// Number of scores of a row.
    pub fn outputs(&self) -> usize {
        self.point.outputs()
    }

    /// The weights and the constant terms to predict with.
    pub fn point(&self) -> (Vec<f64>, Vec<f64>) {
        self.point.point()
    }

    /// Rows seen so far.
    pub fn seen(&self) -> u64 {
        self.form.errors().seen()
    }

    fn steps(&self) -> u64 {
        match &self.form {
            Form::Two { tally, .. } => tally.steps,
            Form::Many { tally, .. } => tally.steps,
        }
    }

    /// The weighted sum of the losses of rows before each was learned from, and the sum of their weights.
    pub(crate) fn totals(&self) -> (f64, f64) {
        match &self.form {
            Form::Two { tally, .. } => (tally.loss, tally.weight),
            Form::Many { tally, .. } => (tally.loss, tally.weight),
        }
    }

    /// The area under the ROC curve of scores that were predicted before their rows were learned from, for two classes.
    pub fn auc(&self) -> Option<Auc> {
        match &self.form {
            Form::Two { tally, .. } => tally.scores.auc(),
            Form::Many { .. } => None,
        }
    }

    /// How well rows were predicted before they were learned from.
    pub fn progress(&self) -> Progress {
        let (loss, weight) = self.totals();
        let mut metrics = vec![self.form.errors().measured("error")];
        let mut aggression = None;
        if let Form::Two { rule, tally, .. } = &self.form {
            let plain = |name: &'static str, all: Option<f64>| Measured { name, all, recent: None };
            let [positive, negative] = tally.scores.sides();
            metrics.extend([
                plain("auc", self.auc().map(|auc| auc.area)),
                plain("error-positive", positive),
                plain("error-negative", negative),
                // 1 − AUC is at most their sum.
                plain("auc-loss-bound", positive.zip(negative).map(|(missed, alarms)| missed + alarms)),
            ]);
            aggression = rule.paired().map(|rule| rule.aggression());
        }
        Progress { unit: ("row", "rows"), examples: self.seen(), weight, loss, metrics, aggression }
    }

    /// The meaning of the scores, or an error if only one class is known.
    pub fn decoder(&self) -> Result<Decoder> {
        let names = self.labels.names();
        if names.len() < 2 {
            let message = match names {
                [only] => format!("every row has the same class, `{only}`"),
                _ => "there was no row, so nothing was learned".to_string(),
            };
            return Err(Error::new(Code::SingleClass, message)
                .help("a classifier needs rows of two classes; name a class that is rare with ⟦classes⟧"));
        }
        match &self.form {
            Form::Two { signs, .. } => {
                let positive = usize::from(signs[0] < 0.0);
                let (negative, positive) = (names[1 - positive].clone(), names[positive].clone());
                Ok(Decoder::Sign(Classes { negative, positive }))
            }
            Form::Many { .. } => Ok(Decoder::Largest(Labels::new(names.to_vec()))),
        }
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
                let sample = next..next.saturating_add(wanted).min(data.rows());
                self.calibrate(data, sample)?;
            }
            let end = rows.end.min(next.saturating_add(usize::try_from(self.until_wanted()).unwrap_or(usize::MAX)));
            self.learn_from(data, next..end)?;
            next = end;
        }
        Ok(())
    }

    /// The same without looking for a first rate. A class that is new is known from the beginning of its step on, so that
    /// nothing depends on where the stream is cut.
    fn learn_from(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        data.matrix().check(rows.clone())?;
        self.point.grow(data.cols());
        let batch = self.batch().max(1);
        let mut next = rows.start;
        while next < rows.end {
            let mut codes = std::mem::take(&mut self.buffers.codes);
            let known = self.labels.known(data, next..rows.end, &mut codes)?;
            let whole = if next + known == rows.end { known } else { known / batch * batch };
            codes.truncate(whole);
            self.buffers.codes = codes;
            if whole == 0 {
                self.labels.meet(data, next..next.saturating_add(batch).min(rows.end))?;
                self.meet_classes()?;
                // Without any class there was no weight for a feature.
                self.point.grow(data.cols());
                continue;
            }
            self.step_through(data, next)?;
            next += whole;
        }
        Ok(())
    }

    /// Steps on rows whose classes are in the buffer of codes.
    fn step_through(&mut self, data: &Dataset, start: usize) -> Result<()> {
        self.weigh(data, start);
        let ClassificationLearner { form, point, buffers, .. } = self;
        let Buffers { codes, signs, weights, scores, work } = buffers;
        let finite = match form {
            Form::Two { rule, tally, signs: by_code } => {
                signs.clear();
                signs.extend(codes.iter().map(|&code| by_code[code as usize]));
                two_classes::learn(data, Examples { start, signs, weights }, rule, point, tally, scores)
            }
            Form::Many { rule, tally } => {
                many_classes::learn(data, ClassExamples { start, codes, weights }, rule, point, tally, work)
            }
        };
        if finite {
            return Ok(());
        }
        Err(Error::new(Code::Overflow, format!("numbers overflowed before row {}", self.seen()))
            .help("bring features to a common size, such as 0 to 1, or use a smaller ⟦rate⟧"))
    }

    /// Finds a first rate by trials on these rows.
    fn calibrate(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        let (step, whole) = (self.steps(), rows.len() >= self.wanted());
        let (start, mut form) = (self.clone(), self.form.clone());
        let Some(descent) = form.descent_mut() else { return Ok(()) };
        let mut failed = None;
        descent.calibrate(step, whole, |descent| {
            let mut trial = start.clone();
            if let Some(own) = trial.form.descent_mut() {
                *own = descent;
            }
            let costs = descent.parts(rows.clone()).into_iter().map(|part| {
                trial.learn_from(data, part)?;
                trial.cost(data, rows.clone(), descent.lambda())
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
        self.form = form;
        failed.map_or(Ok(()), Err)
    }

    /// The regularised mean loss on rows that were just learned from, at the point to predict with.
    fn cost(&mut self, data: &Dataset, rows: Range<usize>, lambda: f64) -> Result<f64> {
        let mut codes = std::mem::take(&mut self.buffers.codes);
        self.labels.codes(data, rows.clone(), &mut codes)?;
        self.buffers.codes = codes;
        self.weigh(data, rows.start);
        let (weights, constants) = self.point.point();
        let outputs = self.point.outputs();
        let (mut scores, mut pulls) = (vec![0.0; outputs], vec![0.0; outputs]);
        let (mut losses, mut total) = (0.0, 0.0);
        for (place, row) in rows.enumerate() {
            with_rows!(data.matrix(), matrix => matrix.dots(row, &weights, &mut scores));
            scores.iter_mut().zip(&constants).for_each(|(score, b)| *score += b);
            let code = self.buffers.codes[place] as usize;
            let loss = match &self.form {
                Form::Two { rule, signs, .. } => match with_rule!(rule, rule => rule.descent()) {
                    Some(descent) => {
                        let loss = descent.loss();
                        loss.value(loss.margin() - signs[code] * scores[0])
                    }
                    None => 0.0,
                },
                Form::Many { rule: ClassRule::Gradient(rule), .. } => {
                    many_classes::loss_at(rule, &scores, code, &mut pulls)
                }
                Form::Many { .. } => 0.0,
            };
            losses += self.buffers.weights[place] * loss;
            total += self.buffers.weights[place];
        }
        let square: f64 = weights.iter().map(|w| w * w).sum();
        let constants: f64 = constants.iter().map(|b| b * b).sum();
        let penalised = self.task.intercept == crate::wish::Intercept::Penalised;
        let square = square + if penalised { constants } else { 0.0 };
        Ok(0.5 * lambda * square + losses / f64::max(total, f64::MIN_POSITIVE))
    }

    /// Finds the weight of each row whose class is in the buffer of codes.
    fn weigh(&mut self, data: &Dataset, start: usize) {
        let Buffers { codes, weights, .. } = &mut self.buffers;
        weights.clear();
        let shares = codes.iter().map(|&code| self.shares[code as usize]);
        match data.weights() {
            Some(own) => weights.extend(shares.zip(&own[start..]).map(|(share, weight)| share * weight)),
            None => weights.extend(shares),
        }
    }

    /// Gives weights and signs, or scores, to classes that are new.
    fn meet_classes(&mut self) -> Result<()> {
        let names = self.labels.names();
        if names.len() == self.shares.len() {
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
        match &mut self.form {
            Form::Two { signs, .. } if names.len() == 1 => *signs = vec![1.0],
            Form::Two { .. } if names.len() > 2 => self.part_classes()?,
            Form::Two { rule, signs, tally } => {
                let mut sorted = names.to_vec();
                sorted.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
                    (Ok(a), Ok(b)) => a.total_cmp(&b),
                    _ => a.cmp(b),
                });
                let classes = Classes::among(sorted, self.task.positive.as_deref())?;
                let found: Vec<f64> =
                    names.iter().map(|name| if *name == classes.positive { 1.0 } else { -1.0 }).collect();
                if signs.first().is_some_and(|&sign| sign != found[0]) {
                    self.point.negate();
                    tally.scores.flip();
                    with_rule!(rule, rule => rule.turn());
                }
                *signs = found;
            }
            Form::Many { .. } => {
                let same: Vec<(usize, usize, f64)> = (0..self.point.outputs()).map(|k| (k, k, 1.0)).collect();
                self.point = self.point.spread(names.len(), &same);
            }
        }
        Ok(())
    }

    /// Gives each class a score of its own, now that there are more than two.
    fn part_classes(&mut self) -> Result<()> {
        let Form::Two { rule, signs, tally } = &mut self.form else { return Ok(()) };
        if let Some(positive) = &self.task.positive {
            let message = format!("`{positive}` is positive, and the stream has more than two classes");
            return Err(Error::new(Code::BadSetting, message).help("leave ⟦positive⟧ out"));
        }
        let mut many = ClassRule::of(&self.settings, &self.task)?;
        let steps = with_rule!(rule, rule => rule.descent().copied());
        if let (Some(own), Some(descent)) = (many.descent_mut(), steps) {
            *own = descent;
        }
        // The negative class comes first, as in a model of two classes that is continued.
        if let [first, _] = signs[..]
            && first > 0.0
        {
            let mut names = self.labels.names().to_vec();
            names.swap(0, 1);
            self.labels = StreamLabels::new(&names, self.task.classes.is_some());
            self.shares.swap(0, 1);
            signs.swap(0, 1);
        }
        let halves: Vec<(usize, usize, f64)> =
            signs.iter().enumerate().map(|(code, sign)| (0, code, 0.5 * sign)).collect();
        self.point = self.point.spread(self.labels.names().len(), &halves);
        let Tally { steps, loss, weight, errors, .. } = *std::mem::take(tally);
        self.form = Form::Many { rule: many, tally: Box::new(ClassTally { steps, loss, weight, errors }) };
        Ok(())
    }

    /// Makes these classes known, in this order: the negative one first, if there are two.
    fn know(&mut self, names: &[String]) -> Result<()> {
        if let Some(declared) = &self.task.classes {
            let known = |name: &String| declared.iter().any(|other| other == name || same_number(other, name));
            if let Some(other) = names.iter().find(|name| !known(name)) {
                let message = format!("the model has a class `{other}`, which is not among ⟦classes⟧");
                return Err(Error::new(Code::UnknownLabel, message).help("declare the classes of the model"));
            }
        }
        let mut all = names.to_vec();
        let declared = self.task.classes.clone().unwrap_or_default();
        let is_new = |name: &&String| !names.iter().any(|other| other == *name || same_number(other, name));
        all.extend(declared.iter().filter(is_new).cloned());
        self.labels = StreamLabels::new(&all, self.task.classes.is_some());
        self.shares.clear();
        match &mut self.form {
            // The order of the names says which class is positive.
            Form::Two { signs, .. } if all.len() == 2 => {
                self.shares = Vec::new();
                *signs = vec![-1.0, 1.0];
                let positive = self.task.positive.replace(all[1].clone());
                self.meet_classes()?;
                self.task.positive = positive;
                Ok(())
            }
            _ => {
                self.point = LinearPoint::new(0, self.task.intercept, self.form.is_averaged());
                if let Form::Two { .. } = self.form {
                    let rule = ClassRule::of(&self.settings, &self.task)?;
                    self.form = Form::Many { rule, tally: Box::default() };
                }
                self.meet_classes()
            }
        }
    }

    /// Everything needed to continue. `steps` is the number of steps; `totals` are the sum of losses and the sum of
    /// weights; `metrics` are the counts of errors and, for two classes, of scores.
    pub(crate) fn state(&self) -> OnlineState {
        let mut state = OnlineState::default();
        let mut metrics = Vec::with_capacity(Errors::NUMBERS + ScoreCounts::NUMBERS);
        self.form.errors().put(&mut metrics);
        match &self.form {
            Form::Two { rule, tally, .. } => {
                tally.scores.put(&mut metrics);
                with_rule!(rule, rule => rule.put(&mut state));
            }
            Form::Many { rule, .. } => rule.put(&mut state),
        }
        let (loss, weight) = self.totals();
        state.put_counts("metrics", metrics);
        state.put_counts("steps", vec![self.steps()]);
        state.put_reals("totals", vec![loss, weight]);
        self.point.put(&mut state);
        state
    }

    fn take(&mut self, state: &OnlineState, learned: &Learned<'_>) -> Option<()> {
        let outputs = self.point.outputs();
        self.point = LinearPoint::take(state, learned, outputs, self.task.intercept, self.form.is_averaged())?;
        let mut metrics = state.counts("metrics")?;
        let found = Errors::take(&mut metrics)?;
        let &[steps] = state.counts("steps")? else { return None };
        let [loss, weight] = state.numbers("totals")?;
        let seen = found.seen();
        match &mut self.form {
            Form::Two { rule, tally, .. } => {
                let scores = ScoreCounts::take(&mut metrics, seen)?;
                **tally = Tally { steps, loss, weight, errors: found, scores };
                with_rule!(rule, rule => rule.take(state, steps))?;
            }
            Form::Many { rule, tally } => {
                **tally = ClassTally { steps, loss, weight, errors: found };
                rule.take(state, steps)?;
            }
        }
        let counted = metrics.is_empty() && seen == learned.rows && (1..=seen).contains(&steps);
        (counted && loss >= 0.0 && weight > 0.0).then_some(())
    }
}

impl Form {
    fn is_averaged(&self) -> bool {
        match self {
            Form::Two { rule, .. } => with_rule!(rule, rule => rule.is_averaged()),
            Form::Many { rule, .. } => rule.is_averaged(),
        }
    }

    fn descent(&self) -> Option<&Descent> {
        match self {
            Form::Two { rule, .. } => with_rule!(rule, rule => rule.descent()),
            Form::Many { rule, .. } => rule.descent(),
        }
    }

    fn descent_mut(&mut self) -> Option<&mut Descent> {
        match self {
            Form::Two { rule, .. } => with_rule!(rule, rule => rule.descent_mut()),
            Form::Many { rule, .. } => rule.descent_mut(),
        }
    }

    fn errors(&self) -> &Errors {
        match self {
            Form::Two { tally, .. } => &tally.errors,
            Form::Many { tally, .. } => &tally.errors,
        }
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
    if task.optimize.is_some() || task.probability.is_some() || task.cost_matrix.is_some() {
        return bad(
            "⟦optimize⟧, ⟦probability⟧ and ⟦cost-matrix⟧ need stored data, and a stream is read once",
            "leave them out",
        );
    }
    Ok(task.clone())
}
