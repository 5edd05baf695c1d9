//! [`Standardised`]: a learner whose rows are scaled by the rows of the stream up to each of them.
//!
//! The rows of an example are counted first, and then divided by the standard deviations so far; means are subtracted from
//! dense rows ([`RunningMoments`]). The learner inside sees only scaled rows, so that every task and every step has this.
//! Its weights are those of scaled features. The model takes the scaling of the last row, and then scores raw rows.
//!
//! A step costs O(entries of its rows) for sparse rows. The moments take three numbers for each feature. They are part of
//! the state, so that a run that is saved and continued gives the same bytes as an uninterrupted one.

use super::Learner;
use crate::certificate::Decoder;
use crate::data::{Dataset, Names, Pairs, Scale, Scaling, Targets};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{Progress, Progressive, RunningMoments, Scaler, inner_settings, unfit};
use crate::settings::{Settings, Task};
use std::ops::Range;

/// Number of examples that are scaled at a time.
const CHUNK: usize = 1024;

/// See the top of the file.
pub(super) struct Standardised {
    inner: Box<dyn Learner>,
    moments: RunningMoments,
    /// Whether examples are whole lists, unless they are pairs.
    lists: bool,
}

impl Standardised {
    /// A learner for these settings. If a model is given, it continues from that.
    pub(super) fn of(settings: &Settings, from: Option<&Model>) -> Result<Standardised> {
        let inner = inner_settings(settings, Scale::None);
        let lists = settings.task.task() == Task::Rank;
        let Some(model) = from else {
            return Ok(Standardised {
                inner: super::learner(&inner, None)?,
                moments: RunningMoments::default(),
                lists,
            });
        };
        let moments = match &model.online {
            Some(state) if model.settings.scale == Scale::Standard => RunningMoments::take(state).ok_or_else(unfit)?,
            _ => {
                let message = "the model has no running means and deviations to scale by";
                return Err(
                    Error::new(Code::BadSetting, message).help("leave ⟦scale⟧ out, or start anew without ⟦from⟧")
                );
            }
        };
        if model.scaling != moments.scaling(model.features())? {
            return Err(unfit());
        }
        // The weights of scaled features go on as they are.
        let plain = Model {
            settings: inner_settings(&model.settings, Scale::None),
            scaling: Scaling::default(),
            ..model.clone()
        };
        Ok(Standardised { inner: super::learner(&inner, Some(&plain))?, moments, lists })
    }

    /// Scales some examples. Those from `end` on are only looked at, and not counted.
    fn scaled(&mut self, data: &Dataset, examples: Range<usize>, end: usize) -> Result<Dataset> {
        let rows = self.rows(data, &examples);
        if let Some(rows) = &rows {
            data.matrix().check(rows.clone())?;
        } else {
            data.matrix().check(0..data.rows())?;
        }
        let mut kept = None;
        let mut moments = std::mem::take(&mut self.moments);
        let mut scaler = Scaler::new(&mut moments, data.matrix());
        for example in examples.clone() {
            if example == end {
                kept = Some(scaler.moments().clone());
            }
            match (data.pairs(), data.groups()) {
                (Some(pairs), _) => {
                    let sides = [pairs.left()[example] as usize, pairs.right()[example] as usize];
                    scaler.example(sides.into_iter())?;
                }
                (None, Some(groups)) if self.lists => scaler.example(groups.range(example))?,
                _ => scaler.each(example..example + 1)?,
            }
        }
        let matrix = scaler.finish()?;
        self.moments = kept.unwrap_or(moments);
        if let Some(rows) = rows {
            return data.run(rows)?.with_matrix(matrix);
        }
        let Some(pairs) = data.pairs() else { return Err(Error::new(Code::Internal, "examples without rows")) };
        let scaled = Dataset::new(matrix, Targets::Absent)?.with_pairs(side_by_side(pairs, examples)?)?;
        match data.feature_names() {
            Some(names) => scaled.with_feature_names(names.clone()),
            None => Ok(scaled),
        }
    }

    /// The neighbouring rows of some examples, unless they are pairs of any rows.
    fn rows(&self, data: &Dataset, examples: &Range<usize>) -> Option<Range<usize>> {
        match (data.pairs(), data.groups()) {
            (Some(_), _) => None,
            (None, Some(groups)) if self.lists && !examples.is_empty() => {
                Some(groups.range(examples.start).start..groups.range(examples.end - 1).end)
            }
            _ => Some(examples.clone()),
        }
    }
}

/// Some pairs, with two rows of their own for each: the rows 2i and 2i + 1.
fn side_by_side(pairs: &Pairs, examples: Range<usize>) -> Result<Pairs> {
    let picked = pairs.select(&examples.collect::<Vec<_>>());
    let count = u32::try_from(picked.len()).unwrap_or(u32::MAX);
    let left: Vec<u32> = (0..count).map(|pair| 2 * pair).collect();
    let right: Vec<u32> = (0..count).map(|pair| 2 * pair + 1).collect();
    let mut own = Pairs::new(left, right)?;
    if let Some(outcomes) = picked.outcomes() {
        own = own.with_outcomes(outcomes.to_vec())?;
    }
    match picked.weights() {
        Some(weights) => own.with_weights(weights.to_vec()),
        None => Ok(own),
    }
}

impl Learner for Standardised {
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
        self.inner.wanted()
    }

    fn until_wanted(&self) -> u64 {
        self.inner.until_wanted()
    }

    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()> {
        let total = self.inner.examples(data);
        if examples.end > total || examples.start > examples.end {
            return Err(Error::new(Code::Internal, format!("examples {examples:?} of {total}")));
        }
        let size = self.batch().max(1);
        let chunk = (CHUNK / size).max(1).saturating_mul(size);
        let mut next = examples.start;
        while next < examples.end {
            let until = usize::try_from(self.inner.until_wanted()).unwrap_or(usize::MAX).max(size);
            let end = examples.end.min(next.saturating_add(chunk.min(until)));
            let ahead = next.saturating_add(self.inner.wanted()).min(total).max(end);
            let scaled = self.scaled(data, next..ahead, end)?;
            self.inner.learn(&scaled, 0..end - next)?;
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

    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let mut model = self.inner.model(settings, feature_names, reading)?;
        let features = model.features();
        model.scaling = self.moments.scaling(features)?;
        if let Some(state) = &mut model.online {
            self.moments.put(features, state);
        }
        Ok(model)
    }
}
