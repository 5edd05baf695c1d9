//! [`Oracle`]: structured outputs in their classic form, with joint features Ψ(x, y) of an input and an output.
//!
//! ```text
//! min  ½‖w‖² + C · Σ_examples weight · max_y [ loss(truth, y) + w·Ψ(x, y) − w·Ψ(x, truth) ]
//! ```
//! A user writes four methods: Ψ, the loss, the search for the output in the bracket, and the search for the best output.
//! [`Examples`] joins an oracle with inputs and their right outputs. As a [`Structure`], an example has no scores of rows:
//! its shared scores are the weights of Ψ, and the plane of an output is Ψ(x, y) − Ψ(x, truth) with the loss.
//!
//! Cost: the work outside the oracle grows with the entries of Ψ that are not zero, and not with its length.
//!
//! Tsochantaridis, Joachims, Hofmann & Altun, Large margin methods for structured and interdependent output variables,
//! JMLR 6, 2005.

use super::{Plane, Rescale, Scores, Structure, not_an_output};
use crate::data::{Dataset, Matrix, Subset, Targets, check_features};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::random::scramble;
use crate::wording::counted;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a user states about the outputs of a task. The four methods without a default suffice.
///
/// The methods are called from several threads at once, so `self` holds nothing that changes. The same arguments give the
/// same answer. An error ends the training and reaches the caller.
pub trait Oracle: Send + Sync {
    /// What an output is predicted from.
    type Input: Send + Sync;
    /// What is predicted.
    type Output: Encoded + Send + Sync;

    /// Adds the entries of Ψ(x, y). An entry that is added several times has the sum.
    fn joint_feature(&self, x: &Self::Input, y: &Self::Output, features: &mut Features) -> Result<()>;

    /// How bad an output is: zero for the truth, and never negative.
    fn loss(&self, truth: &Self::Output, y: &Self::Output) -> Result<f64>;

    /// The output with the largest loss(truth, y) + w·Ψ(x, y).
    fn most_violated(&self, x: &Self::Input, truth: &Self::Output, w: &[f64]) -> Result<Self::Output>;

    /// The output with the largest w·Ψ(x, y).
    fn predict(&self, x: &Self::Input, w: &[f64]) -> Result<Self::Output>;

    /// The output with the largest loss(truth, y) · (1 + w·Ψ(x, y) − w·Ψ(x, truth)), for slack rescaling.
    fn most_violated_by_slack(&self, _x: &Self::Input, _truth: &Self::Output, _w: &[f64]) -> Result<Self::Output> {
        Err(no_slack_search())
    }

    /// The largest loss of an output over all inputs, if it is known. The number of rounds of cutting planes grows with it,
    /// and margins count as reached by their share of it. Otherwise the largest one met so far is taken.
    fn largest_loss(&self) -> Option<f64> {
        None
    }

    /// w·Ψ(x, y)
    fn score(&self, x: &Self::Input, y: &Self::Output, w: &[f64]) -> Result<f64> {
        let mut features = Features::default();
        self.joint_feature(x, y, &mut features)?;
        Ok(features.score(w))
    }

    /// How an output is shown in messages of the check, if not by its numbers.
    fn words(&self, _y: &Self::Output) -> Option<String> {
        None
    }

    /// Called before searches at new weights, for what is computed once for all of them.
    fn prepare(&self, _w: &[f64]) -> Result<()> {
        Ok(())
    }
}

/// The error for a structure without the search that slack rescaling needs.
pub(super) fn no_slack_search() -> Error {
    Error::new(Code::Unsupported, "this task cannot search for the output that slack rescaling needs")
        .help("use ⟦rescale=margin⟧")
}

/// An output as a list of numbers. Model files keep outputs in this form, as proof of the lower bound. Two outputs are the
/// same if their numbers are.
pub trait Encoded: Sized {
    /// Appends the numbers.
    fn encode(&self, numbers: &mut Vec<u32>);

    /// The output with these numbers, or none if there is no such output. They may come from an altered file.
    fn decode(numbers: &[u32]) -> Option<Self>;
}

impl Encoded for u32 {
    fn encode(&self, numbers: &mut Vec<u32>) {
        numbers.push(*self);
    }

    fn decode(numbers: &[u32]) -> Option<u32> {
        <[u32; 1]>::try_from(numbers).ok().map(|[number]| number)
    }
}

impl Encoded for bool {
    fn encode(&self, numbers: &mut Vec<u32>) {
        numbers.push(u32::from(*self));
    }

    fn decode(numbers: &[u32]) -> Option<bool> {
        u32::decode(numbers).filter(|number| *number < 2).map(|number| number == 1)
    }
}

/// Numbers below 2³².
impl Encoded for usize {
    fn encode(&self, numbers: &mut Vec<u32>) {
        numbers.push(u32::try_from(*self).unwrap_or(u32::MAX));
    }

    fn decode(numbers: &[u32]) -> Option<usize> {
        u32::decode(numbers).map(|number| number as usize)
    }
}

impl Encoded for Vec<u32> {
    fn encode(&self, numbers: &mut Vec<u32>) {
        numbers.extend_from_slice(self);
    }

    fn decode(numbers: &[u32]) -> Option<Vec<u32>> {
        Some(numbers.to_vec())
    }
}

/// Numbers below 2³².
impl Encoded for Vec<usize> {
    fn encode(&self, numbers: &mut Vec<u32>) {
        self.iter().for_each(|number| number.encode(numbers));
    }

    fn decode(numbers: &[u32]) -> Option<Vec<usize>> {
        Some(numbers.iter().map(|&number| number as usize).collect())
    }
}

impl Encoded for String {
    fn encode(&self, numbers: &mut Vec<u32>) {
        numbers.extend(self.chars().map(u32::from));
    }

    fn decode(numbers: &[u32]) -> Option<String> {
        numbers.iter().map(|&number| char::from_u32(number)).collect()
    }
}

/// The entries of a joint feature vector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features {
    entries: Vec<(u32, f64)>,
}

impl Features {
    /// Adds a value to an entry.
    pub fn add(&mut self, entry: usize, value: f64) {
        // No vector is that long, so that the entry is refused.
        self.entries.push((u32::try_from(entry).unwrap_or(u32::MAX), value));
    }

    /// Adds values to the entries from `first` on.
    pub fn add_all(&mut self, first: usize, values: &[f64]) {
        values
            .iter()
            .enumerate()
            .filter(|(_, value)| **value != 0.0)
            .for_each(|(at, value)| self.add(first + at, *value));
    }

    /// Checks the entries, sorts them, and adds up those of the same position.
    pub(crate) fn finish(&mut self, dimension: usize) -> std::result::Result<(), String> {
        if let Some((entry, _)) = self.entries.iter().find(|entry| entry.0 as usize >= dimension) {
            return Err(format!("its joint feature has an entry {entry}, and the entries are 0 to {}", dimension - 1));
        }
        let mut plane = Plane { shared: std::mem::take(&mut self.entries), ..Plane::default() };
        plane.tidy();
        self.entries = plane.shared;
        match self.entries.iter().find(|entry| !entry.1.is_finite()) {
            Some((entry, value)) => Err(format!("entry {entry} of its joint feature is {value}")),
            None => Ok(()),
        }
    }

    /// w·Ψ
    pub(crate) fn score(&self, w: &[f64]) -> f64 {
        self.entries.iter().map(|&(entry, value)| value * w[entry as usize]).sum()
    }

    /// The sum of the sizes of the terms of w·Ψ.
    pub(crate) fn size(&self, w: &[f64]) -> f64 {
        self.entries.iter().map(|&(entry, value)| (value * w[entry as usize]).abs()).sum()
    }
}

/// The error for an oracle that breaks a rule.
fn bad_oracle(example: usize, why: &str) -> Error {
    Error::new(Code::BadOracle, format!("example {example}: {why}"))
        .help("correct the oracle; the check of oracles says more")
}

/// Inputs with their right outputs, and the oracle that knows about them. It is a task: it can be trained, and a model of
/// it verified.
pub struct Examples<O: Oracle> {
    inner: Arc<Inner<O>>,
    data: Dataset,
}

/// What the structures of a task share.
struct Inner<O: Oracle> {
    oracle: O,
    dimension: usize,
    inputs: Vec<O::Input>,
    outputs: Vec<O::Output>,
    /// Ψ of each input with its right output.
    truths: Vec<Features>,
}

impl<O: Oracle> std::fmt::Debug for Examples<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Examples").field("examples", &self.len()).field("dimension", &self.dimension()).finish()
    }
}

/// Examples of one parallel job.
const RUN: usize = 16;

impl<O: Oracle> Examples<O> {
    /// Examples with joint features of this length. Computes Ψ of every right output.
    pub fn new(oracle: O, dimension: usize, inputs: Vec<O::Input>, outputs: Vec<O::Output>) -> Result<Examples<O>> {
        if inputs.len() != outputs.len() {
            let message = format!(
                "{} and {} do not make examples",
                counted(inputs.len() as u64, "input", "inputs"),
                counted(outputs.len() as u64, "output", "outputs")
            );
            return Err(Error::new(Code::BadTarget, message).help("give one right output for each input"));
        }
        check_features(dimension)?;
        if dimension == 0 {
            return Err(Error::new(Code::BadOracle, "the joint feature has no entries").help("give it one or more"));
        }
        if let Some(largest) = oracle.largest_loss().filter(|largest| !(largest.is_finite() && *largest > 0.0)) {
            return Err(Error::new(Code::BadOracle, format!("the largest loss of an output is stated as {largest}"))
                .help("state a number above zero, or leave it out"));
        }
        let mut inner = Inner { oracle, dimension, inputs, outputs, truths: Vec::new() };
        let jobs = inner.inputs.len().div_ceil(RUN);
        let found = parallel::try_map(jobs, |job| {
            let examples = job * RUN..((job + 1) * RUN).min(inner.inputs.len());
            examples.map(|example| inner.truth(example)).collect::<Result<Vec<_>>>()
        })?;
        let (mut rows, mut targets) = (Vec::new(), Vec::new());
        for (features, target) in found.into_iter().flatten() {
            rows.push(features.entries.iter().map(|&(entry, value)| (entry as usize, value)).collect());
            targets.push(target);
            inner.truths.push(features);
        }
        let matrix = Matrix::from_rows(&rows, dimension)?;
        let data = Dataset::new(matrix, Targets::Real(targets.into()))?;
        Ok(Examples { inner: Arc::new(inner), data })
    }

    /// Weights of the examples; 1 without them.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Examples<O>> {
        if let Some(at) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
            let message = format!("the weight of example {at} is {}", weights[at]);
            return Err(Error::new(Code::BadWeight, message).help("give weights of zero or more"));
        }
        if weights.len() != self.len() {
            let message = format!("{} weights are given for {} examples", weights.len(), self.len());
            return Err(Error::new(Code::BadWeight, message).help("give one weight for each example"));
        }
        self.data = self.data.with_weights(weights)?;
        Ok(self)
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.inner.inputs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of joint features.
    pub fn dimension(&self) -> usize {
        self.inner.dimension
    }

    /// The oracle.
    pub fn oracle(&self) -> &O {
        &self.inner.oracle
    }

    /// An input and its right output.
    pub fn example(&self, example: usize) -> (&O::Input, &O::Output) {
        (&self.inner.inputs[example], &self.inner.outputs[example])
    }

    /// The data set that stands for the examples: Ψ of the right outputs as rows, and a number for each right output. Its
    /// hash tells whether a model was trained on the same examples.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// The mean loss of what these weights predict for other inputs, whose right outputs are known.
    pub fn mean_loss(&self, weights: &[f64], inputs: &[O::Input], outputs: &[O::Output]) -> Result<f64> {
        let oracle = self.oracle();
        oracle.prepare(weights)?;
        let count = inputs.len().min(outputs.len());
        let sums = parallel::try_map(count.div_ceil(RUN), |job| {
            let examples = job * RUN..((job + 1) * RUN).min(count);
            examples.map(|at| oracle.loss(&outputs[at], &oracle.predict(&inputs[at], weights)?)).sum::<Result<f64>>()
        })?;
        Ok(sums.iter().sum::<f64>() / count.max(1) as f64)
    }

    /// The features of an output of an example.
    pub(crate) fn features(&self, example: usize, y: &O::Output) -> Result<Features> {
        self.inner.features(example, y)
    }

    /// Ψ of the right output of an example.
    pub(crate) fn truth(&self, example: usize) -> &Features {
        &self.inner.truths[example]
    }
}

impl<O: Oracle + 'static> Examples<O> {
    /// The structure of all examples, or of some of them: the others weigh nothing.
    pub fn structure(&self, rescale: Rescale, subset: Option<&Subset>) -> Box<dyn Structure> {
        let weight = |example: usize| match subset {
            Some(subset) if !subset.contains(example) => 0.0,
            _ => self.data.weights().map_or(1.0, |weights| weights[example]),
        };
        let weights = (0..self.len()).map(weight).collect();
        rescale.of(Box::new(Searched::new(&self.inner, weights)))
    }
}

impl<O: Oracle> Inner<O> {
    fn features(&self, example: usize, y: &O::Output) -> Result<Features> {
        let mut features = Features::default();
        self.oracle.joint_feature(&self.inputs[example], y, &mut features)?;
        features.finish(self.dimension).map_err(|why| bad_oracle(example, &why))?;
        Ok(features)
    }

    /// Ψ of the right output, and a number that stands for that output.
    fn truth(&self, example: usize) -> Result<(Features, f64)> {
        let truth = &self.outputs[example];
        let mut numbers = Vec::new();
        truth.encode(&mut numbers);
        let hash = numbers.iter().fold(numbers.len() as u64, |hash, &number| scramble(hash ^ u64::from(number)));
        // The first 53 bits are a number in double precision.
        Ok((self.features(example, truth)?, (hash >> 11) as f64))
    }

    /// The loss of an output.
    fn loss(&self, example: usize, y: &O::Output) -> Result<f64> {
        let loss = self.oracle.loss(&self.outputs[example], y)?;
        if loss.is_finite() && loss >= 0.0 {
            // Without the sign of −0.
            return Ok(loss + 0.0);
        }
        Err(bad_oracle(example, &format!("the loss of an output is {loss}, and must be a number of zero or more")))
    }
}

/// Writes the numbers of an output that the oracle found.
fn encode<Y: Encoded>(example: usize, y: &Y, output: &mut Vec<u32>) -> Result<()> {
    output.clear();
    y.encode(output);
    match Y::decode(output) {
        Some(_) => Ok(()),
        None => {
            output.truncate(12);
            Err(bad_oracle(example, &format!("an output is encoded as {output:?}, and not decoded")))
        }
    }
}

/// The examples as a structure.
struct Searched<O: Oracle> {
    inner: Arc<Inner<O>>,
    weights: Vec<f64>,
    /// The bits of the largest loss met, and at least of 1: those of numbers that are not negative have their order.
    largest: AtomicU64,
}

impl<O: Oracle> Searched<O> {
    fn new(inner: &Arc<Inner<O>>, weights: Vec<f64>) -> Searched<O> {
        Searched { inner: Arc::clone(inner), weights, largest: AtomicU64::new(1.0f64.to_bits()) }
    }
}

impl<O: Oracle> Structure for Searched<O> {
    fn examples(&self) -> usize {
        self.weights.len()
    }

    fn rows(&self, example: usize) -> Range<usize> {
        example..example + 1
    }

    fn shared(&self) -> usize {
        self.inner.dimension
    }

    fn weight(&self, example: usize) -> f64 {
        self.weights[example]
    }

    fn largest_loss(&self) -> f64 {
        let met = || f64::from_bits(self.largest.load(Ordering::Relaxed));
        self.inner.oracle.largest_loss().unwrap_or_else(met)
    }

    fn prepare(&self, shared: &[f64]) -> Result<()> {
        self.inner.oracle.prepare(shared)
    }

    fn most_violated(&self, example: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        let Inner { oracle, inputs, outputs, .. } = &*self.inner;
        encode(example, &oracle.most_violated(&inputs[example], &outputs[example], at.shared)?, output)
    }

    fn most_violated_by_slack(&self, example: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        let Inner { oracle, inputs, outputs, .. } = &*self.inner;
        encode(example, &oracle.most_violated_by_slack(&inputs[example], &outputs[example], at.shared)?, output)
    }

    fn plane(&self, example: usize, output: &[u32], plane: &mut Plane) -> Result<()> {
        let y = O::Output::decode(output).ok_or_else(|| not_an_output(example, "the numbers are not decoded"))?;
        plane.clear();
        plane.shared = self.inner.features(example, &y)?.entries;
        plane.loss = self.inner.loss(example, &y)?;
        if let Some(largest) = self.inner.oracle.largest_loss().filter(|largest| plane.loss > *largest) {
            let why =
                format!("the loss of an output is {}, and the largest is {largest}, as the oracle says", plane.loss);
            return Err(bad_oracle(example, &why));
        }
        self.largest.fetch_max(plane.loss.to_bits(), Ordering::Relaxed);
        plane.shared.extend(self.inner.truths[example].entries.iter().map(|&(entry, value)| (entry, -value)));
        plane.tidy();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same<T: Encoded + PartialEq + std::fmt::Debug>(output: T) {
        let mut numbers = Vec::new();
        output.encode(&mut numbers);
        assert_eq!(T::decode(&numbers), Some(output));
    }

    #[test]
    fn outputs_are_decoded_to_themselves() {
        same(7u32);
        same(true);
        same(70_000usize);
        same(Vec::<u32>::new());
        same(vec![3u32, 0, u32::MAX]);
        same(vec![3usize, 0]);
        same("déjà 🚀".to_string());
        assert_eq!(bool::decode(&[2]), None);
        assert_eq!(u32::decode(&[1, 2]), None);
        assert_eq!(String::decode(&[0xD800]), None);
    }

    #[test]
    fn entries_of_one_position_are_added_up_and_bad_ones_refused() {
        let mut features = Features::default();
        features.add(2, 1.5);
        features.add_all(1, &[1.0, 0.5, 0.0]);
        assert_eq!(features.finish(3), Ok(()));
        assert_eq!(features.entries, [(1, 1.0), (2, 2.0)]);
        assert_eq!(features.score(&[9.0, 1.0, 10.0]), 21.0);
        features.add(3, 1.0);
        assert_eq!(features.finish(3), Err("its joint feature has an entry 3, and the entries are 0 to 2".to_string()));
        let mut features = Features::default();
        features.add(0, f64::NAN);
        assert_eq!(features.finish(1), Err("entry 0 of its joint feature is NaN".to_string()));
        features.add(usize::MAX, 1.0);
        assert!(features.finish(1).is_err());
    }
}
