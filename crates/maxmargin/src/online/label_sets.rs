//! [`SetLearner`]: learns sets of labels from rows, one after the other, by passive-aggressive steps.
//!
//! ```text
//! min  ½ Σ_m ‖w_m − w_tm‖² + C · loss         the calibrated separation ranking loss of `task/multilabel`
//! ```
//! Every label has a score, and the calibration score, which is the last one, lies between the labels of a row and the
//! others. **Exact**: the step is one block of the batch solver's dual, solved by the same function ([`solve_sides`]).
//! **Two labels**: only the worst label of the row and the worst other one move; with a = 1 + s_0 − min s_l and
//! b = 1 + max s_k − s_0, the step is α = (2a + b)/3q, β = (a + 2b)/3q within 0 and C, the solution of the problem of these
//! two. Constant terms are weights of a feature of value 1. A label that appears starts at zero.
//!
//! **The bound.** If a label of a row does not lie above another one, then a + b ≥ 2, and a step raises the dual value of
//! the whole stream by at least min(C, 1/R²), with R² the largest squared length of a row. With D the sum of all rises,
//! weak duality gives D ≤ ½‖U‖² + C Σ L_t(U) for every U, and
//!
//! ```text
//! Σ_t (1 − AP_t)  ≤  number of such rows  ≤  max(R², 1/C) · D
//! ```
//! with AP_t the average precision of the labels of row t before it was learned from. With weights of rows, C is that of
//! the row of least weight.
//!
//! A step costs O(entries of the row · labels that move), and all scores O(entries · labels).

use super::labels::StreamLabels;
use super::progress::{Measured, Progress};
use super::state::{Learned, OnlineState, sound};
use crate::certificate::Decoder;
use crate::data::{Dataset, Labels, Rows, Scale, with_rows};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::settings::{MultilabelSettings, Regularisation, Settings, Solver, TaskSettings};
use crate::task::{Intercept, LANES, Multilabel, SetStep, solve_sides, two_labels};
use std::ops::Range;

/// What is counted and summed over the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    /// Rows seen.
    seen: u64,
    /// Rows with a weight above zero.
    counted: u64,
    /// Rows with a label that did not lie above another one.
    mistakes: u64,
    /// The weighted sum of the losses before each row was learned from, and the sum of the weights.
    loss: f64,
    weight: f64,
    /// Sums over rows: average precision, ranking loss.
    precision: f64,
    ranking: f64,
    /// D, R², and the least weight of a row that is not zero.
    rise: f64,
    length: f64,
    least: f64,
}

/// See the top of the file.
#[derive(Clone, Debug)]
pub struct SetLearner {
    step: SetStep,
    c: f64,
    constants: bool,
    labels: StreamLabels,
    /// Those of one feature for all labels, and for the border, next to each other.
    weights: Vec<f64>,
    /// The constant terms; zeros if there are none.
    intercepts: Vec<f64>,
    features: usize,
    tally: Tally,
    buffers: Buffers,
}

/// Work buffers.
#[derive(Clone, Debug, Default)]
struct Buffers {
    own: Vec<u32>,
    scores: Vec<f64>,
    z: Vec<f64>,
    spare: Vec<f64>,
    moves: Vec<(u32, f64)>,
}

impl SetLearner {
    /// A learner that has seen nothing.
    pub fn new(settings: &Settings) -> Result<SetLearner> {
        let task = multilabel(settings)?;
        let Regularisation::C(c) = settings.regularisation else {
            return Err(Error::new(Code::BadSetting, "passive-aggressive steps take ⟦c⟧, and not ⟦lambda⟧")
                .help("use ⟦c⟧ instead"));
        };
        Ok(SetLearner {
            step: task.step,
            c,
            constants: task.intercept != Intercept::None,
            labels: StreamLabels::new(&[], false),
            weights: Vec::new(),
            intercepts: vec![0.0],
            features: 0,
            tally: Tally { least: f64::INFINITY, ..Tally::default() },
            buffers: Buffers::default(),
        })
    }

    /// A learner that starts from weights and constant terms, with all counts at zero.
    pub(crate) fn beginning(
        settings: &Settings,
        labels: &Labels,
        weights: Vec<f64>,
        intercepts: &[f64],
    ) -> Result<SetLearner> {
        let mut learner = SetLearner::new(settings)?;
        learner.labels = StreamLabels::new(labels.names(), false);
        let outputs = learner.outputs();
        learner.features = weights.len() / outputs;
        learner.weights = weights;
        learner.intercepts = vec![0.0; outputs];
        if learner.constants {
            learner.intercepts.iter_mut().zip(intercepts).for_each(|(own, given)| *own = *given);
        }
        Ok(learner)
    }

    /// A learner that continues exactly from the state of a model.
    pub(crate) fn resume(settings: &Settings, state: &OnlineState, learned: &Learned<'_>) -> Result<SetLearner> {
        let (labels, calibrated) = sound(learned.decoder.label_sets())?;
        sound(calibrated.then_some(()))?;
        let mut learner = SetLearner::beginning(settings, labels, learned.weights.to_vec(), learned.intercepts)?;
        sound(learner.take(state, learned))?;
        Ok(learner)
    }

    /// Number of scores of a row: one for each label, and the border.
    pub fn outputs(&self) -> usize {
        self.labels.names().len() + 1
    }

    /// Number of features seen so far.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Rows seen so far.
    pub fn seen(&self) -> u64 {
        self.tally.seen
    }

    /// The weights and the constant terms.
    pub fn point(&self) -> (Vec<f64>, Vec<f64>) {
        (self.weights.clone(), if self.constants { self.intercepts.clone() } else { Vec::new() })
    }

    /// The weighted sum of the losses of rows before each was learned from, and the sum of their weights.
    pub(crate) fn totals(&self) -> (f64, f64) {
        (self.tally.loss, self.tally.weight)
    }

    /// The bound of the mean of 1 − AP; none before the first row.
    pub fn bound(&self) -> Option<f64> {
        let Tally { counted, rise, length, least, .. } = self.tally;
        (counted > 0).then(|| length.max(1.0 / (self.c * least)) * rise / counted as f64)
    }

    /// How well rows were predicted before they were learned from.
    pub fn progress(&self) -> Progress {
        let Tally { seen, counted, loss, weight, precision, ranking, .. } = self.tally;
        let mean = |sum: f64| (counted > 0).then(|| sum / counted as f64);
        let measured = |name, all| Measured { name, all, recent: None };
        let metrics = vec![
            measured("label-ranking-average-precision", mean(precision)),
            measured("ranking-loss", mean(ranking)),
            measured("bound of 1 - average precision", self.bound()),
        ];
        Progress { unit: ("row", "rows"), examples: seen, weight, loss, metrics, aggression: None }
    }

    /// The meaning of the scores, or an error if no label is known.
    pub fn decoder(&self) -> Result<Decoder> {
        match self.labels.names() {
            [] => Err(Error::new(Code::SingleClass, "no row had a label, so nothing was learned")
                .help("give rows with labels")),
            names => Ok(Decoder::Sets { labels: Labels::new(names.to_vec()), calibrated: true }),
        }
    }

    /// Learns from some rows, in order. New features and labels start at zero. Rows of weight zero are predicted but not
    /// learned from. After an error the learner is unusable.
    pub fn learn(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        if rows.end > data.rows() || rows.start > rows.end {
            return Err(Error::new(Code::Internal, format!("rows {rows:?} of {}", data.rows())));
        }
        data.matrix().check(rows.clone())?;
        if data.cols() > self.features {
            self.features = data.cols();
            self.weights.resize(self.features * self.outputs(), 0.0);
        }
        let mut own = std::mem::take(&mut self.buffers.own);
        for row in rows {
            // Labels are met row by row, so that the result does not depend on where the stream was cut.
            let before = self.outputs();
            self.labels.set(data, row, &mut own)?;
            self.spread(before);
            let weight = data.weights().map_or(1.0, |weights| weights[row]);
            let finite = with_rows!(data.matrix(), matrix => self.learn_from(matrix, row, &own, weight));
            if !finite {
                return Err(Error::new(Code::Overflow, format!("numbers overflowed at row {}", self.seen()))
                    .help("bring features to a common size, such as 0 to 1, or use a smaller ⟦c⟧"));
            }
        }
        self.buffers.own = own;
        Ok(())
    }

    /// Makes room for new labels. The border stays the last output.
    fn spread(&mut self, before: usize) {
        let outputs = self.outputs();
        if outputs == before {
            return;
        }
        let wider = |old: &[f64]| {
            let mut new = vec![0.0; old.len() / before * outputs];
            for (old, new) in old.chunks_exact(before).zip(new.chunks_exact_mut(outputs)) {
                new[..before - 1].copy_from_slice(&old[..before - 1]);
                new[outputs - 1] = old[before - 1];
            }
            new
        };
        (self.weights, self.intercepts) = (wider(&self.weights), wider(&self.intercepts));
    }

    /// Predicts a row and learns from it. Returns whether all numbers were finite.
    fn learn_from<R: Rows>(&mut self, rows: &R, row: usize, own: &[u32], weight: f64) -> bool {
        let (outputs, middle) = (self.outputs(), self.outputs() - 1);
        let Buffers { scores, z, spare, moves, .. } = &mut self.buffers;
        scores.clear();
        scores.resize(outputs, 0.0);
        rows.dots(row, &self.weights, scores);
        scores.iter_mut().zip(&self.intercepts).for_each(|(score, constant)| *score += constant);
        let tally = &mut self.tally;
        tally.seen += 1;
        if weight == 0.0 {
            return scores.iter().all(|score| score.is_finite());
        }
        let (precision, ranking) = judged(own, &scores[..middle]);
        tally.counted += 1;
        tally.mistakes += u64::from(ranking > 0.0);
        tally.precision += precision;
        tally.ranking += ranking;
        tally.weight += weight;
        tally.least = tally.least.min(weight);
        let q = rows.squared_norm(row) + f64::from(u8::from(self.constants));
        tally.length = tally.length.max(q);
        // Violations; those of the border, and numbers after it, are −∞.
        z.clear();
        z.extend(scores[..middle].iter().map(|score| 1.0 + score - scores[middle]));
        own.iter().for_each(|&label| z[label as usize] = 2.0 - z[label as usize]);
        let worst = |z: &[f64], mine: bool| {
            let is_mine = |label: usize| own.binary_search(&(label as u32)).is_ok();
            let labels = (0..middle).filter(|&label| is_mine(label) == mine);
            labels.fold((0, f64::NEG_INFINITY), |best, label| if z[label] > best.1 { (label, z[label]) } else { best })
        };
        let (mine, others) = (worst(z, true), worst(z, false));
        tally.loss += weight * (mine.1.max(0.0) + others.1.max(0.0));
        moves.clear();
        let cost = self.c * weight;
        match self.step {
            SetStep::TwoLabels => {
                let (alpha, beta) = two_labels(mine.1, others.1, q, cost);
                let pairs = [(mine.0, alpha), (others.0, beta)];
                moves.extend(pairs.into_iter().filter(|(_, by)| *by > 0.0).map(|(label, by)| (label as u32, by)));
            }
            SetStep::Exact => {
                z.resize(outputs.next_multiple_of(LANES), f64::NEG_INFINITY);
                let violations = z.clone();
                solve_sides(z, own, (q, cost), 0.0, spare);
                moves.extend((0..middle).filter(|&label| z[label] > 0.0).map(|label| (label as u32, z[label])));
                z.copy_from_slice(&violations);
            }
        }
        let (mut squares, mut shift) = (0.0, 0.0);
        for (label, by) in moves.iter_mut() {
            tally.rise += *by * z[*label as usize];
            squares += *by * *by;
            // The labels of the row rise, the others fall, and the border moves against them.
            *by = if own.binary_search(label).is_ok() { *by } else { -*by };
            shift -= *by;
        }
        tally.rise -= 0.5 * q * (squares + shift * shift);
        if !moves.is_empty() {
            moves.push((middle as u32, shift));
            let weights = &mut self.weights;
            rows.each(row, |column, value| {
                if let Some(weights) = weights.get_mut(column * outputs..(column + 1) * outputs) {
                    moves.iter().for_each(|&(output, by)| weights[output as usize] += by * value);
                }
            });
            if self.constants {
                moves.iter().for_each(|&(output, by)| self.intercepts[output as usize] += by);
            }
        }
        scores.iter().all(|score| score.is_finite()) && tally.rise.is_finite() && tally.loss.is_finite()
    }

    /// Everything needed to continue besides the weights of the model. `steps` are the rows seen, those that count, and
    /// those with a mistake; `totals` are the sums and extremes of [`Tally`].
    pub(crate) fn state(&self) -> OnlineState {
        let Tally { seen, counted, mistakes, loss, weight, precision, ranking, rise, length, least } = self.tally;
        let mut state = OnlineState::default();
        state.put_counts("steps", vec![seen, counted, mistakes]);
        // Infinity, before the first row, has no place in a file.
        let least = if least.is_finite() { least } else { 0.0 };
        state.put_reals("totals", vec![loss, weight, precision, ranking, rise, length, least]);
        state
    }

    fn take(&mut self, state: &OnlineState, learned: &Learned<'_>) -> Option<()> {
        let &[seen, counted, mistakes] = state.counts("steps")? else { return None };
        let [loss, weight, precision, ranking, rise, length, least] = state.numbers("totals")?;
        let outputs = self.outputs();
        let whole = learned.weights.len().is_multiple_of(outputs)
            && learned.intercepts.len() == if self.constants { outputs } else { 0 };
        let sums = [loss, weight, precision, ranking, rise, length, least].iter().all(|sum| *sum >= 0.0);
        let counts = mistakes <= counted && counted <= seen && seen == learned.rows;
        let least = if least > 0.0 { least } else { f64::INFINITY };
        self.tally = Tally { seen, counted, mistakes, loss, weight, precision, ranking, rise, length, least };
        (whole && sums && counts).then_some(())
    }
}

/// The average precision and the ranking loss of a row, with equal scores in the wrong order.
fn judged(own: &[u32], scores: &[f64]) -> (f64, f64) {
    let others = scores.len() - own.len();
    if own.is_empty() || others == 0 {
        return (1.0, 0.0);
    }
    let (mut precision, mut wrong) = (0.0, 0.0);
    for &label in own {
        let score = scores[label as usize];
        let above = scores.iter().filter(|&&other| other >= score).count() as f64;
        let right = own.iter().filter(|&&other| scores[other as usize] >= score).count() as f64;
        precision += right / above;
        wrong += above - right;
    }
    (precision / own.len() as f64, wrong / (own.len() * others) as f64)
}

/// The settings of label sets that can be learned from a stream, or an error.
fn multilabel(settings: &Settings) -> Result<MultilabelSettings> {
    let TaskSettings::Multilabel(task) = &settings.task else {
        return Err(Error::new(Code::Internal, "these are not the settings of label sets"));
    };
    let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
    if settings.solver != Solver::PassiveAggressive || settings.loss != Loss::Hinge {
        return bad(
            "label sets are learned from a stream by passive-aggressive steps, which take the hinge",
            "leave ⟦solver⟧ and ⟦loss⟧ out",
        );
    }
    if settings.scale != Scale::None {
        return bad(
            "a stream cannot be scaled, because later rows are not known yet",
            "leave ⟦scale⟧ out, and scale the features beforehand",
        );
    }
    if task.multilabel != Multilabel::Calibrated {
        return bad("a stream of label sets takes the calibrated form", "leave ⟦multilabel⟧ out");
    }
    Ok(task.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Targets};
    use crate::random::Random;
    use crate::settings::Task;

    fn data(rows: usize, labels: usize, seed: u64, weighted: bool) -> Dataset {
        let mut random = Random::new(seed, 5, 0);
        let (mut values, mut codes, mut ends) = (Vec::new(), Vec::new(), vec![0u64]);
        for row in 0..rows {
            let x: Vec<f64> = (0..4).map(|_| random.normal()).collect();
            let has = |label: usize| x[label % 4] + 0.2 * (label as f64) + 0.3 * (row % 3) as f64 > 0.8;
            codes.extend((0..labels).filter(|&label| has(label)).map(|label| label as u32));
            ends.push(codes.len() as u64);
            values.extend(x);
        }
        let matrix = Matrix::DenseF64(Dense::new(values, rows, 4).expect("rows"));
        let names = (0..labels).map(|label| format!("l{label}")).collect();
        let data = Dataset::new(matrix, Targets::Sets { names, starts: ends.into(), codes: codes.into() });
        let data = data.expect("sets");
        if !weighted {
            return data;
        }
        data.with_weights((0..rows).map(|row| (row % 4) as f64 / 2.0).collect::<Vec<_>>()).expect("weights")
    }

    fn settings(step: SetStep, c: f64, intercept: Intercept) -> Settings {
        let task = MultilabelSettings { step, intercept, ..MultilabelSettings::default() };
        let settings = Settings { loss: Loss::Hinge, regularisation: Regularisation::C(c), ..Settings::of(task) };
        settings.with_solver(Solver::PassiveAggressive)
    }

    #[test]
    fn the_bound_holds_at_every_moment() {
        for (step, c, intercept, weighted) in [
            (SetStep::Exact, 0.1, Intercept::Penalised, false),
            (SetStep::Exact, 10.0, Intercept::None, true),
            (SetStep::TwoLabels, 0.1, Intercept::Penalised, true),
            (SetStep::TwoLabels, 1.0, Intercept::None, false),
        ] {
            let rows = data(400, 5, 3, weighted);
            let mut learner = SetLearner::new(&settings(step, c, intercept)).expect("a learner");
            for row in 0..rows.rows() {
                learner.learn(&rows, row..row + 1).expect("learns");
                if let Some(bound) = learner.bound() {
                    let Tally { counted, mistakes, precision, .. } = learner.tally;
                    let lost = 1.0 - precision / counted as f64;
                    let share = mistakes as f64 / counted as f64;
                    assert!(
                        lost <= share + 1e-12 && share <= bound * (1.0 + 1e-9),
                        "{step:?} {row}: {lost} {share} {bound}"
                    );
                }
            }
            assert!(learner.tally.mistakes > 10);
        }
    }

    /// The rise is the objective of the problem of the step, by its definition.
    #[test]
    fn an_exact_step_has_the_value_of_its_problem() {
        let rows = data(200, 4, 7, true);
        let mut learner = SetLearner::new(&settings(SetStep::Exact, 0.3, Intercept::Penalised)).expect("a learner");
        // All labels are known before the first row, so that weights can be compared.
        learner.labels = StreamLabels::new(&(0..4).map(|label| format!("l{label}")).collect::<Vec<_>>(), false);
        learner.spread(1);
        learner.learn(&rows, 0..0).expect("columns");
        for row in 0..rows.rows() {
            let before = learner.clone();
            learner.learn(&rows, row..row + 1).expect("learns");
            let cost = 0.3 * rows.weights().expect("weights")[row];
            let moved: f64 = learner.weights.iter().zip(&before.weights).map(|(a, b)| (a - b) * (a - b)).sum();
            let pulled: f64 = learner.intercepts.iter().zip(&before.intercepts).map(|(a, b)| (a - b) * (a - b)).sum();
            let mut scores = learner.intercepts.clone();
            let mut own = Vec::new();
            learner.labels.set(&rows, row, &mut own).expect("labels");
            with_rows!(rows.matrix(), matrix => {
                let mut products = vec![0.0; scores.len()];
                matrix.dots(row, &learner.weights, &mut products);
                scores.iter_mut().zip(products).for_each(|(score, product)| *score += product);
            });
            let is_own = |label: &usize| own.contains(&(*label as u32));
            let mine = (0..4).filter(is_own).map(|label| 1.0 + scores[4] - scores[label]).fold(0.0, f64::max);
            let others =
                (0..4).filter(|label| !is_own(label)).map(|label| 1.0 + scores[label] - scores[4]).fold(0.0, f64::max);
            let primal = 0.5 * (moved + pulled) + cost * (mine + others);
            let dual = learner.tally.rise - before.tally.rise;
            assert!((primal - dual).abs() <= 1e-10 * (1.0 + primal), "{row}: {primal} {dual}");
        }
    }

    #[test]
    fn a_stream_may_be_cut_anywhere_and_continued() {
        let rows = data(150, 6, 9, true);
        for step in SetStep::ALL {
            let settings = settings(step, 0.5, Intercept::Penalised);
            let mut whole = SetLearner::new(&settings).expect("a learner");
            whole.learn(&rows, 0..150).expect("learns");
            for cut in [1, 3, 40, 149] {
                let mut first = SetLearner::new(&settings).expect("a learner");
                first.learn(&rows, 0..cut).expect("learns");
                let (weights, intercepts) = first.point();
                let Ok(decoder) = first.decoder() else { continue };
                let learned = Learned {
                    weights: &weights,
                    intercepts: &intercepts,
                    decoder: &decoder,
                    pairs: None,
                    rows: first.seen(),
                };
                let mut second = SetLearner::resume(&settings, &first.state(), &learned).expect("resumes");
                second.learn(&rows, cut..150).expect("learns");
                assert_eq!(second.point(), whole.point());
                assert_eq!(second.tally, whole.tally);
            }
        }
    }

    #[test]
    fn streams_that_cannot_be_learned_are_refused() {
        assert!(SetLearner::new(&Settings::new(Task::Multilabel)).is_err());
        let lambda =
            Settings { regularisation: Regularisation::Lambda(0.1), ..settings(SetStep::Exact, 1.0, Intercept::None) };
        assert!(SetLearner::new(&lambda).is_err());
        let learner = SetLearner::new(&settings(SetStep::Exact, 1.0, Intercept::None)).expect("a learner");
        assert!(learner.decoder().is_err() && learner.bound().is_none());
    }
}
