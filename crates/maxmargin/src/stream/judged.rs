//! [`Judged`]: a learner that judges itself after every N examples, and stops when it does not get better any more.
//!
//! It is judged by held-out data, if a [`Judge`] is given. Otherwise it is judged by the mean loss of the last N examples,
//! each of which was predicted before it was learned from, so that no example has to be given up. It stops at the third
//! judgement in a row that is no better than the best one, which may be long before the end of the stream. The model is
//! that of the last judgement.
//!
//! What was found so far is part of the state, so that a run that is saved and continued stops at the same example as an
//! uninterrupted one. Once it has stopped it learns no more.

use super::Learner;
use crate::certificate::{Decoder, Scorer};
use crate::data::{Dataset, Names, Scaling};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{Judgements, Progress, Progressive, inner_settings, unfit};
use crate::settings::Settings;
use std::ops::Range;

/// The number of examples between two judgements, if none is given.
const USUAL_EVERY: u64 = 10_000;

/// Judges models on held-out data.
pub struct Judge<'a> {
    /// The result of a model on the held-out data.
    #[allow(clippy::type_complexity, reason = "a function of a model")]
    pub measure: Box<dyn Fn(&Model) -> Result<f64> + Send + 'a>,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// Number of features of the held-out data.
    pub features: usize,
}

/// See the top of the file.
pub(super) struct Judged<'a> {
    inner: Box<dyn Learner + 'a>,
    settings: Settings,
    judge: Option<Judge<'a>>,
    found: Judgements,
}

impl<'a> Judged<'a> {
    /// A learner for these settings. If a model is given, it continues from that.
    pub(super) fn of(settings: &Settings, from: Option<&Model>, judge: Option<Judge<'a>>) -> Result<Judged<'a>> {
        let own = inner_settings(settings, settings.scale);
        let every = settings.stochastic.judge_every.unwrap_or(USUAL_EVERY);
        let mut found = Judgements::new(every, judge.is_some());
        let inner = match from {
            None => super::learner(&own, None)?,
            Some(model) => {
                let plain = inner_settings(&model.settings, model.settings.scale);
                if let (Some(state), true) = (&model.online, model.settings == *settings) {
                    found = Judgements::take(state, every).ok_or_else(unfit)?;
                }
                super::learner(&own, Some(&Model { settings: plain, ..model.clone() }))?
            }
        };
        if found.held_out != judge.is_some() {
            let (message, help) = match judge {
                Some(_) => ("the model was judged by its own stream so far", "leave ⟦validation⟧ out"),
                None => ("the model was judged on held-out data so far", "give them again with ⟦validation=FILE⟧"),
            };
            return Err(Error::new(Code::BadSetting, message).help(help));
        }
        Ok(Judged { inner, settings: own, judge, found })
    }

    /// The number of examples at which the next judgement is due, at the end of a step.
    fn due(&self) -> u64 {
        let batch = self.inner.batch().max(1) as u64;
        self.found.at.saturating_add(self.found.every.checked_next_multiple_of(batch).unwrap_or(u64::MAX))
    }

    fn judge(&mut self) -> Result<()> {
        let seen = self.inner.seen();
        let Progress { loss, weight, .. } = self.inner.progress();
        let (last_loss, last_weight) = std::mem::replace(&mut self.found.totals, (loss, weight));
        self.found.at = seen;
        match &self.judge {
            Some(judge) => match self.inner.model(&self.settings, None, None) {
                Ok(model) => {
                    let result = (judge.measure)(&widened(model, judge.features)?)?;
                    self.found.record(result, judge.higher_is_better, seen);
                }
                // Too little was seen so far.
                Err(error) if matches!(error.code(), Code::SingleClass | Code::NoRows | Code::NoPairs) => {}
                Err(error) => return Err(error),
            },
            None if weight > last_weight => {
                self.found.record((loss - last_loss) / (weight - last_weight), false, seen);
            }
            // Examples without weight tell nothing.
            None => {}
        }
        Ok(())
    }
}

/// The model with weights of zero for features that only the held-out data have so far.
fn widened(mut model: Model, features: usize) -> Result<Model> {
    let known = model.features();
    if features <= known {
        return Ok(model);
    }
    if let Scorer::Linear { weights, outputs, .. } = &mut model.scorer {
        weights.resize(features * (*outputs).max(1), 0.0);
    }
    let wide = |part: Option<&[f64]>| part.map(|part| [part, &vec![0.0; features - known]].concat());
    let scaling = &model.scaling;
    model.scaling = Scaling::from_parts(scaling.kind(), wide(scaling.shift()), wide(scaling.factor()), features)?;
    Ok(model)
}

impl Learner for Judged<'_> {
    fn features(&self) -> usize {
        self.inner.features()
    }

    fn seen(&self) -> u64 {
        self.inner.seen()
    }

    fn examples(&self, data: &Dataset) -> usize {
        self.inner.examples(data)
    }

    fn batch(&self) -> usize {
        self.inner.batch()
    }

    fn wanted(&self) -> usize {
        if self.found.stopped { 0 } else { self.inner.wanted() }
    }

    fn until_wanted(&self) -> u64 {
        // A judgement is a moment that a call should not go beyond, too, since examples after the last one are not used.
        self.inner.until_wanted().min(self.due().saturating_sub(self.inner.seen()))
    }

    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()> {
        let mut next = examples.start;
        while next < examples.end && !self.found.stopped {
            let until = usize::try_from(self.due().saturating_sub(self.inner.seen())).unwrap_or(usize::MAX).max(1);
            let end = examples.end.min(next.saturating_add(until));
            self.inner.learn(data, next..end)?;
            if self.inner.seen() >= self.due() {
                self.judge()?;
            }
            next = end;
        }
        Ok(())
    }

    fn decoder(&self) -> Result<Decoder> {
        self.inner.decoder()
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }

    fn compared(&self) -> Option<&Progressive> {
        self.inner.compared()
    }

    fn judged(&self) -> Option<&Judgements> {
        Some(&self.found)
    }

    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let mut model = self.inner.model(settings, feature_names, reading)?;
        if let Some(state) = &mut model.online {
            self.found.put(state);
        }
        Ok(model)
    }
}
