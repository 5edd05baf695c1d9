//! [`PairedRule`]: the passive-aggressive family as a rule for streams of two classes, with its rows and bounds.

use super::Rule;
use super::bounds::Bounds;
use super::step::{Change, Member, Steps};
use super::store::Store;
use crate::data::Rows;
use crate::data::row_loops::for_this_machine;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::online::linear::LinearPoint;
use crate::online::progress::Aggression;
use crate::online::state::OnlineState;
use crate::online::two_classes::{Batch, TwoClassRule};
use crate::settings::{Regularisation, Settings, Solver};
use crate::wish::{Stochastic, Variant};

/// The default number of rows of each class that are kept.
const USUAL_RESERVOIR: usize = 128;

/// How to learn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ways {
    pub(crate) rule: Rule,
    pub(crate) variant: Variant,
    pub(crate) c: f64,
    pub(crate) intercept: bool,
    /// Rows of a batch, an even number.
    pub(crate) batch: usize,
    /// The most rows of each class that are kept.
    pub(crate) reservoir: usize,
    /// After how many rows the weights are averaged, if they are.
    pub(crate) average: Option<u64>,
}

impl Ways {
    /// What the settings of a classifier ask for.
    pub(crate) fn of(settings: &Settings, intercept: bool) -> Result<Ways> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let solver = settings.solver;
        let rule = match solver {
            Solver::Pa | Solver::PassiveAggressive => Rule::Single,
            Solver::PaDca => Rule::Dca,
            Solver::PaSequential => Rule::Sequential,
            Solver::PaAuc => Rule::Auc,
            Solver::PaMaxViolators => Rule::MaxViolators,
            Solver::PaCorrectMistakes => Rule::CorrectMistakes,
            Solver::PaSingleSlack => Rule::SingleSlack,
            other => return bad(format!("`{}` is not passive-aggressive", other.name()), "use ⟦solver=pa-dca⟧"),
        };
        // The name that all tasks share takes the variant from the loss.
        let shared = solver == Solver::PassiveAggressive;
        if settings.loss != Loss::Hinge && !(shared && settings.loss == Loss::SquaredHinge) {
            return bad(
                format!("`{}` has the hinge", solver.name()),
                "leave ⟦loss⟧ out; ⟦pa-variant=pa-2⟧ squares the slack",
            );
        }
        let Regularisation::C(c) = settings.regularisation else {
            return bad(format!("`{}` takes ⟦c⟧, and not ⟦lambda⟧", solver.name()), "use ⟦c⟧ instead");
        };
        let Stochastic { pa_variant, batch, reservoir, average_from, rate, schedule, recalibrate, .. } =
            settings.stochastic;
        if rate.is_some() || schedule.is_some() || recalibrate.is_some() {
            return bad(
                format!("`{}` finds the length of each step itself", solver.name()),
                "leave ⟦rate⟧, ⟦schedule⟧ and ⟦recalibrate⟧ out",
            );
        }
        let variant = match settings.loss {
            Loss::SquaredHinge => Variant::PaIi,
            _ => pa_variant.unwrap_or_default(),
        };
        if rule == Rule::Single && (batch > 1 || reservoir.is_some()) {
            return bad(
                "`pa` learns from each row alone".to_string(),
                "leave ⟦batch⟧ and ⟦reservoir⟧ out, or use ⟦solver=pa-dca⟧",
            );
        }
        let batch = if rule == Rule::Single { 1 } else { (batch as usize).max(2) };
        if rule != Rule::Single && !batch.is_multiple_of(2) {
            return bad(
                format!("⟦batch={batch}⟧ is odd, and a batch has as many rows of one class as of the other"),
                "use an even number",
            );
        }
        let reservoir = reservoir.map_or(USUAL_RESERVOIR.max(batch / 2), |rows| rows as usize);
        if reservoir < batch / 2 {
            return bad(
                format!("⟦reservoir={reservoir}⟧ rows of a class do not fill half a batch of {batch}"),
                "use a larger ⟦reservoir⟧, or a smaller ⟦batch⟧",
            );
        }
        Ok(Ways { rule, variant, c, intercept, batch, reservoir, average: average_from })
    }
}

/// See the top of the file.
#[derive(Clone, Debug)]
pub(crate) struct PairedRule {
    ways: Ways,
    steps: Box<Steps>,
    /// Rows for batches; none if every row is learned from alone.
    store: Option<Box<Store>>,
    bounds: Bounds,
    batch: Vec<Member>,
}

impl PairedRule {
    pub(crate) fn new(ways: Ways) -> PairedRule {
        let steps = Box::new(Steps::new(ways.rule, ways.variant, ways.c, ways.intercept));
        let store = (ways.rule != Rule::Single).then(|| Box::new(Store::new(ways.reservoir)));
        PairedRule { ways, steps, store, bounds: Bounds::default(), batch: Vec::new() }
    }

    /// The bounds so far.
    #[cfg(test)]
    pub(super) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// How many rows of the positive and of the negative class are kept, and how many bytes they take.
    pub(super) fn kept(&self) -> Option<([usize; 2], u64)> {
        self.store.as_ref().map(|store| (store.lengths(), store.bytes()))
    }

    /// The bounds so far, and what is kept.
    pub(crate) fn aggression(&self) -> Aggression {
        Aggression {
            batches: self.bounds.steps(),
            mistakes: self.bounds.mistakes(),
            bound: self.bounds.mistake_bound(),
            contradictions: self.bounds.contradictions(),
            kept: self.kept(),
        }
    }
}

for_this_machine! {
    /// A step on rows that are kept. It is compiled once for all layouts of the rows of the stream.
    fn step_on[](steps: &mut Steps, store: &Store, batch: &[Member], point: &mut LinearPoint) -> Change = step_on_plainly
}

#[inline(always)]
fn step_on_plainly(steps: &mut Steps, store: &Store, batch: &[Member], point: &mut LinearPoint) -> Change {
    steps.step(store, batch, point)
}

/// ‖x‖²
#[inline(always)]
fn square<R: Rows>(rows: &R, row: usize) -> f64 {
    let (mut lanes, mut lane) = ([0.0; 8], 0);
    rows.each(row, |_, value| {
        lanes[lane & 7] += value * value;
        lane += 1;
    });
    lanes.iter().sum()
}

impl TwoClassRule for PairedRule {
    fn is_averaged(&self) -> bool {
        self.ways.average.is_some()
    }

    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, batch: &Batch<'_>, step: u64, point: &mut LinearPoint) -> f64 {
        let mut losses = 0.0;
        for place in 0..batch.len() {
            let (sign, weight, row) = (batch.signs[place], batch.weights[place], batch.start + place);
            let margin = sign * batch.scores[place];
            let loss = (1.0 - margin).max(0.0);
            losses += weight * if self.ways.variant == Variant::PaIi { loss * loss } else { loss };
            if weight > 0.0 {
                match &mut self.store {
                    None if loss == 0.0 => self.bounds.add(Change::default()),
                    None => {
                        let member = Member { row, sign, weight, square: square(rows, row) };
                        self.bounds.add(self.steps.single(rows, member, margin, point));
                    }
                    Some(store) => {
                        store.keep(rows, row, sign > 0.0, weight);
                        if store.batch(self.ways.batch / 2, &mut self.batch) && !self.batch.is_empty() {
                            self.bounds.add(step_on(&mut self.steps, store, &self.batch, point));
                        }
                    }
                }
            }
        }
        // The plain mean of the points after each row, from a row on.
        if let Some(before) = self.ways.average {
            point.include(1.0 / (step + 1).saturating_sub(before).max(1) as f64);
        }
        losses
    }

    fn turn(&mut self) {
        if let Some(store) = &mut self.store {
            store.rings.swap(0, 1);
        }
    }

    fn put(&self, state: &mut OnlineState) {
        self.bounds.put(state);
        if let Some(store) = &self.store {
            store.put(state);
        }
    }

    fn take(&mut self, state: &OnlineState, _step: u64) -> Option<()> {
        self.bounds = Bounds::take(state)?;
        if let Some(store) = &mut self.store {
            **store = Store::take(state, self.ways.reservoir, self.ways.batch / 2)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense};

    #[test]
    fn squares_are_sums_of_squares() {
        let values: Vec<f64> = (0..37).map(|at| f64::from(at) * 0.5 - 9.0).collect();
        let expected: f64 = values.iter().map(|value| value * value).sum();
        assert!((super::super::store::square_of(&values) - expected).abs() < 1e-9);
        let dense = Dense::new(values.clone(), 1, 37).expect("a row");
        let indices: Vec<u32> = (0..37).collect();
        let sparse = Csr::new(vec![0u64, 37], indices, values, 37).expect("a row");
        assert!((square(&dense, 0) - expected).abs() < 1e-9 && (square(&sparse, 0) - expected).abs() < 1e-9);
    }
}
