//! The model file: safetensors with one JSON header, a version number and a checksum over every byte.
//!
//! Any safetensors reader opens it. The header is in the metadata under `maxmargin`. The tensors are:
//!
//! - a linear model: `weights`;
//! - a kernel model: `coefficients` and the support vectors, as `vectors.values` and, if they are sparse,
//!   `vectors.starts` and `vectors.indices`;
//! - a mapped kernel: the `weights` of the map and, if it has landmarks, these as `vectors`;
//! - all models, as needed: `intercept`, `scale.shift`, `scale.factor`, `names.bytes`, `names.ends`;
//! - the proof of the bound, one of six: `witness.state` (one per dual variable: 0 at zero, 1 at the most common
//!   value, 2 a stored value), `witness.values` and `witness.limits` (that most common value); or `witness.points` (the
//!   weights and thresholds of the cuts, one cut after the other) and `witness.multipliers` (one per cut); or
//!   `witness.width` (the width over which the hinge is smoothed); or `columns.kinds`, `columns.counts`, `columns.rows` and
//!   `columns.values` (one proof for each column of an output code, see `model/columns.rs`); or, for a joint problem over
//!   several classes, `witness.starts` (where the entries of each row start), `witness.classes` and `witness.variables`
//!   (the class and the variable of each entry); or, for structured outputs, `outputs.starts` (where the outputs of each
//!   example start), `outputs.bounds` (where the numbers of each output start), `outputs.numbers` and `outputs.variables`;
//! - a model trained on a stream: `online.NAME` for each entry of its state (see `online/state.rs`);
//! - `checksum`: the XXH3 of the whole file with these eight bytes set to zero.

use super::columns::{Packed, fits};
use super::{Calibration, Certificate, Compacted, Decoder, Expansion, Mapped, Model, Scorer};
use crate::data::{Csr, Dense, Matrix, Names, Scale, Scaling, check_features};
use crate::error::{Code, Error, Result};
use crate::kernel::{FeatureMap, Kernel};
use crate::online::{OnlineState, check_state};
use crate::settings::{Method, Settings, decoder_of_format_1, settings_of_format_1};
use crate::solve::{ClassDual, Cut, OutputDual, Witness};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The version that this program writes, and the newest that it reads.
const FORMAT_VERSION: u32 = 2;
const HEADER: &str = "maxmargin";
const CHECKSUM: &str = "checksum";
/// The names of the tensors of a stream begin like this.
const ONLINE: &str = "online.";

/// The JSON header.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Header {
    format_version: u32,
    program_version: String,
    features: u64,
    decoder: Decoder,
    scale: Scale,
    settings: Settings,
    certificate: Certificate,
    /// Number of scores per row, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outputs: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reading: Option<String>,
    /// The kernel with all its parameters, for a sum of kernels or for a map that approximates a kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<Kernel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compacted: Option<Compacted>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calibration: Option<Calibration>,
}

/// A dual variable is stored as a state, and also as a value if it is strictly between its bounds.
const AT_ZERO: u8 = 0;
const AT_LIMIT: u8 = 1;
const STORED: u8 = 2;

impl Model {
    /// The bytes of the model file. The same model always gives the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let internal = |error: &dyn std::fmt::Display| Error::new(Code::Internal, format!("model file: {error}"));
        self.check().map_err(|error| internal(&error))?;
        let header = Header {
            format_version: FORMAT_VERSION,
            program_version: self.version.clone(),
            features: self.features() as u64,
            kernel: match &self.scorer {
                Scorer::Linear { .. } => None,
                Scorer::Expansion(expansion) => Some(expansion.kernel.clone()),
                Scorer::Mapped(mapped) => Some(mapped.map.kernel()),
            },
            decoder: self.decoder.clone(),
            scale: self.scaling.kind(),
            settings: self.settings.clone(),
            certificate: self.certificate.clone(),
            outputs: Some(self.scorer.outputs() as u64).filter(|outputs| *outputs > 1),
            reading: self.reading.clone(),
            compacted: self.compacted.clone(),
            calibration: self.calibration.clone(),
        };
        let header = serde_json::to_string(&header).map_err(|error| internal(&error))?;
        let online: Vec<(String, Dtype, usize, Vec<u8>)> = self.online.iter().flat_map(online_tensors).collect();
        let mut tensors: Vec<(&str, Dtype, usize, Vec<u8>)> = Vec::new();
        let reals = |values: &[f64]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
        match &self.scorer {
            Scorer::Linear { weights, .. } => tensors.push(("weights", Dtype::F64, weights.len(), reals(weights))),
            Scorer::Expansion(expansion) => {
                tensors.push((
                    "coefficients",
                    Dtype::F64,
                    expansion.coefficients.len(),
                    reals(&expansion.coefficients),
                ));
                vector_tensors(&expansion.vectors).into_iter().for_each(|tensor| tensors.push(tensor));
            }
            Scorer::Mapped(Mapped { map, weights, .. }) => {
                tensors.push(("weights", Dtype::F64, weights.len(), reals(weights)));
                map.landmarks().into_iter().flat_map(vector_tensors).for_each(|tensor| tensors.push(tensor));
            }
        }
        let intercepts = self.scorer.intercepts();
        if !intercepts.is_empty() {
            tensors.push(("intercept", Dtype::F64, intercepts.len(), reals(&intercepts)));
        }
        for (name, values) in [("scale.shift", self.scaling.shift()), ("scale.factor", self.scaling.factor())] {
            if let Some(values) = values {
                tensors.push((name, Dtype::F64, values.len(), reals(values)));
            }
        }
        if let Some(names) = &self.feature_names {
            let (bytes, ends) = names.parts();
            tensors.push(("names.bytes", Dtype::U8, bytes.len(), bytes.to_vec()));
            let ends: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
            tensors.push(("names.ends", Dtype::U64, names.len(), ends));
        }
        match &self.witness {
            Some(Witness::Dual(alpha)) => {
                let (states, values, limits) = pack_witness(alpha);
                tensors.push(("witness.state", Dtype::U8, states.len(), states));
                tensors.push(("witness.values", Dtype::F64, values.len(), reals(&values)));
                tensors.push(("witness.limits", Dtype::F64, limits.len(), reals(&limits)));
            }
            Some(Witness::Cuts(cuts)) => {
                let points: Vec<f64> = cuts.iter().flat_map(|cut| &cut.point).copied().collect();
                let multipliers: Vec<f64> = cuts.iter().map(|cut| cut.multiplier).collect();
                tensors.push(("witness.points", Dtype::F64, points.len(), reals(&points)));
                tensors.push(("witness.multipliers", Dtype::F64, multipliers.len(), reals(&multipliers)));
            }
            Some(Witness::Classes(dual)) => {
                let (starts, classes) = (wide_bytes(&dual.starts), short_bytes(&dual.classes));
                tensors.push(("witness.starts", Dtype::U64, dual.starts.len(), starts));
                tensors.push(("witness.classes", Dtype::U32, dual.classes.len(), classes));
                tensors.push(("witness.variables", Dtype::F64, dual.values.len(), reals(&dual.values)));
            }
            Some(Witness::Outputs(dual)) => {
                let OutputDual { starts, bounds, numbers, values } = dual;
                tensors.push(("outputs.starts", Dtype::U64, starts.len(), wide_bytes(starts)));
                tensors.push(("outputs.bounds", Dtype::U64, bounds.len(), wide_bytes(bounds)));
                tensors.push(("outputs.numbers", Dtype::U32, numbers.len(), short_bytes(numbers)));
                tensors.push(("outputs.variables", Dtype::F64, values.len(), reals(values)));
            }
            Some(Witness::Columns(columns)) => {
                let Packed { kinds, counts, rows, values } = Packed::of(columns);
                tensors.push(("columns.kinds", Dtype::U8, kinds.len(), kinds));
                tensors.push(("columns.counts", Dtype::U64, counts.len(), wide_bytes(&counts)));
                tensors.push(("columns.rows", Dtype::U32, rows.len(), short_bytes(&rows)));
                tensors.push(("columns.values", Dtype::F64, values.len(), reals(&values)));
            }
            Some(Witness::Rounded(width)) => tensors.push(("witness.width", Dtype::F64, 1, reals(&[*width]))),
            Some(Witness::Weights) | None => {}
        }
        tensors
            .extend(online.iter().map(|(name, dtype, length, bytes)| (name.as_str(), *dtype, *length, bytes.clone())));
        tensors.push((CHECKSUM, Dtype::U64, 1, vec![0; 8]));
        let views = tensors
            .iter()
            .map(|(name, dtype, length, bytes)| Ok((*name, TensorView::new(*dtype, vec![*length], bytes)?)))
            .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
            .map_err(|error| internal(&error))?;
        let metadata = HashMap::from([(HEADER.to_string(), header)]);
        let mut bytes = safetensors::serialize(views, Some(metadata)).map_err(|error| internal(&error))?;
        let at = checksum_place(&bytes).ok_or_else(|| internal(&"no checksum"))?;
        let sum = xxh3_64(&bytes);
        bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// Reads a model file and checks everything.
    pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| not_a_model(bytes, &error))?;
        let text = metadata
            .metadata()
            .as_ref()
            .and_then(|metadata| metadata.get(HEADER))
            .ok_or_else(|| Error::new(Code::NotAModel, "a safetensors file, but not one of maxmargin's"))?;
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        struct Version {
            format_version: u32,
        }
        let version: Version = serde_json::from_str(text).map_err(|error| damaged(format!("its header: {error}")))?;
        if version.format_version > FORMAT_VERSION {
            return Err(Error::new(
                Code::ModelVersion,
                format!(
                    "the model file has format version {}, and this program reads up to {FORMAT_VERSION}",
                    version.format_version
                ),
            )
            .help("use the version of maxmargin that wrote it, or a newer one"));
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| not_a_model(bytes, &error))?;
        check_sum(bytes)?;
        let header =
            header_of(text, version.format_version).map_err(|error| damaged(format!("its header: {error}")))?;
        let features = usize::try_from(header.features).map_err(|_| damaged("too many features"))?;
        let stored = Stored { tensors, features };
        let scorer = stored.scorer(&header)?;
        let scaling =
            Scaling::from_parts(header.scale, stored.reals("scale.shift")?, stored.reals("scale.factor")?, features)?;
        let model = Model {
            feature_names: stored.names()?,
            witness: stored.witness()?,
            online: stored.online()?,
            settings: header.settings,
            scorer,
            decoder: header.decoder,
            scaling,
            certificate: header.certificate,
            reading: header.reading,
            version: header.program_version,
            compacted: header.compacted,
            calibration: header.calibration,
        };
        model.check().map_err(damaged)?;
        Ok(model)
    }

    /// Checks that the parts of a model fit together, before writing and after reading.
    fn check(&self) -> std::result::Result<(), &'static str> {
        let Certificate { objective, lower_bound, c, lambda, .. } = &self.certificate;
        let (settings, intercepts) = (&self.settings, self.scorer.intercepts());
        let own = self.scorer.numbers();
        let mut numbers = [objective, c, lambda].into_iter().chain(lower_bound).chain(own).chain(&intercepts);
        if numbers.any(|number| !number.is_finite()) {
            return Err("it holds a number that is not finite");
        }
        if let Scorer::Expansion(expansion) = &self.scorer {
            use Witness::{Classes, Columns, Dual, Outputs};
            let fits = Some(expansion.coefficients.len()) == expansion.count().checked_mul(expansion.outputs)
                && matches!(self.witness, None | Some(Dual(_) | Classes(_) | Columns(_) | Outputs(_)));
            if !fits || !settings.kernel.made(&expansion.kernel) {
                return Err("its support vectors do not fit together");
            }
        }
        if let Scorer::Mapped(Mapped { map, weights, outputs, .. }) = &self.scorer {
            let fits =
                map.features().checked_mul(*outputs) == Some(weights.len()) && settings.kernel.approximate.is_some();
            if !fits || !settings.kernel.made(&map.kernel()) {
                return Err("its weights do not fit its feature map");
            }
        }
        // Elo, Glicko and TrueSkill have no weight of the loss.
        let plain_rating = settings.is_rating() && settings.method() != Some(Method::BradleyTerry);
        let regularised = match settings.is_hard_margin() || plain_rating {
            true => *c == 0.0 && *lambda == 0.0,
            false => *c > 0.0 && *lambda > 0.0,
        };
        if !regularised || settings.validate().is_err() {
            return Err("its settings are out of range");
        }
        if !settings.task.makes(&self.decoder, &intercepts) {
            return Err("its answers do not fit its task");
        }
        if self.decoder.threshold().is_some_and(|threshold| !threshold.is_finite()) {
            return Err("its threshold is not a number");
        }
        if let Some(calibration) = &self.calibration {
            let classes = self.decoder.class_names().map(|names| names.len());
            let fits = calibration.is_valid()
                && classes == Some(calibration.classes)
                && self.decoder.coupling() == Some(calibration.coupling)
                && self.decoder.outputs() == self.scorer.outputs();
            if !fits {
                return Err("its probabilities do not fit its scores");
            }
        }
        if self.scaling.kind() != settings.scale {
            return Err("its scaling does not fit its settings");
        }
        if let Some(online) = &self.online {
            let fits = self.learned().map(|learned| check_state(settings, online, &learned));
            if !matches!(fits, Some(Ok(()))) {
                return Err(NO_STATE);
            }
        }
        let complete = match &self.witness {
            Some(Witness::Dual(alpha)) => alpha.len() as u64 == self.certificate.blocks(),
            Some(Witness::Classes(dual)) => dual.is_sound(self.certificate.blocks() as usize, self.decoder.outputs()),
            Some(Witness::Cuts(cuts)) => {
                let dim = own.len() + self.free_scalars().len();
                let finite = |cut: &Cut| cut.multiplier.is_finite() && cut.point.iter().all(|value| value.is_finite());
                !cuts.is_empty() && cuts.iter().all(|cut| cut.point.len() == dim && finite(cut))
            }
            Some(Witness::Rounded(width)) => width.is_finite() && *width > 0.0,
            Some(Witness::Columns(columns)) => {
                let (outputs, constants) = (self.scorer.outputs(), usize::from(!intercepts.is_empty()));
                fits(columns, outputs, self.certificate.blocks(), self.features() + constants)
            }
            // The number of examples belongs to the task.
            Some(Witness::Outputs(dual)) => dual.is_sound(dual.examples()),
            Some(Witness::Weights) | None => true,
        };
        if complete { Ok(()) } else { Err(INCOMPLETE) }
    }
}

/// Returns an error if the checksum does not match.
fn check_sum(bytes: &[u8]) -> Result<()> {
    let at = checksum_place(bytes).ok_or_else(|| damaged("it has no checksum"))?;
    let mut unsigned = bytes.to_vec();
    unsigned[at..at + 8].fill(0);
    // A fuzzer cannot guess a checksum, and an attacker can compute it.
    if !cfg!(fuzzing) && xxh3_64(&unsigned).to_le_bytes() != bytes[at..at + 8] {
        return Err(damaged("its checksum does not match"));
    }
    Ok(())
}

/// The tensors of a model file.
struct Stored<'a> {
    tensors: SafeTensors<'a>,
    features: usize,
}

impl Stored<'_> {
    /// A tensor of finite real numbers; `None` if the file does not have it.
    fn reals(&self, name: &str) -> Result<Option<Vec<f64>>> {
        let Ok(tensor) = self.tensors.tensor(name) else { return Ok(None) };
        if tensor.dtype() != Dtype::F64 {
            return Err(damaged(format!("tensor `{name}` has another type")));
        }
        let values: Vec<f64> = words(tensor.data()).map(f64::from_le_bytes).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(damaged(format!("tensor `{name}` holds a number that is not finite")));
        }
        Ok(Some(values))
    }

    fn weights(&self) -> Result<Vec<f64>> {
        self.reals("weights")?.ok_or_else(|| damaged("it has no weights"))
    }

    fn scorer(&self, header: &Header) -> Result<Scorer> {
        let features = self.features;
        let outputs = header.outputs.unwrap_or(1) as usize;
        let intercepts = self.reals("intercept")?.unwrap_or_default();
        if outputs == 0 || !(intercepts.is_empty() || intercepts.len() == outputs) {
            return Err(damaged("its intercepts do not fit its scores"));
        }
        let Some(kernel) = header.kernel.clone() else {
            let weights = self.weights()?;
            if Some(weights.len()) != features.checked_mul(outputs) {
                return Err(damaged(format!("{} weights for {features} features", weights.len())));
            }
            return Ok(Scorer::Linear { weights, outputs, intercepts });
        };
        // The file must hold every weight, but a small file with sparse vectors can claim any number of features.
        check_features(features).map_err(|_| damaged("too many features"))?;
        if let Some(approximation) = header.settings.kernel.approximate {
            let weights = self.weights()?;
            if !weights.len().is_multiple_of(outputs) {
                return Err(damaged("its weights do not fit its scores"));
            }
            let landmarks = match self.tensors.tensor("vectors.values") {
                Err(_) => None,
                Ok(_) => Some(
                    read_vectors(&self.tensors, weights.len() / outputs, features)
                        .ok_or_else(|| damaged("its landmarks do not fit together"))?,
                ),
            };
            let map = FeatureMap::stored(kernel, approximation, landmarks, features, header.settings.seed)
                .ok_or_else(|| damaged("its feature map does not fit its settings"))?;
            return Ok(Scorer::Mapped(Mapped { map: Arc::new(map), weights, outputs, intercepts }));
        }
        let coefficients = self.reals("coefficients")?.ok_or_else(|| damaged("it has no coefficients"))?;
        let unfit = || damaged("its support vectors do not fit together");
        if !coefficients.len().is_multiple_of(outputs) {
            return Err(unfit());
        }
        let vectors = read_vectors(&self.tensors, coefficients.len() / outputs, features).ok_or_else(unfit)?;
        Ok(Scorer::Expansion(Expansion { kernel, vectors, coefficients, outputs, intercepts }))
    }

    fn names(&self) -> Result<Option<Names>> {
        let (Ok(bytes), Ok(ends)) = (self.tensors.tensor("names.bytes"), self.tensors.tensor("names.ends")) else {
            return Ok(None);
        };
        let ends: Vec<u64> = words(ends.data()).map(u64::from_le_bytes).collect();
        let fits = ends.len() == self.features
            && ends.is_sorted()
            && ends.last().copied().unwrap_or(0) == bytes.data().len() as u64;
        if !fits {
            return Err(damaged("its feature names do not fit its features"));
        }
        Ok(Some(Names::from_parts(bytes.data().to_vec().into(), ends.into())))
    }

    fn witness(&self) -> Result<Option<Witness>> {
        let incomplete = || damaged(INCOMPLETE);
        if let Ok(starts) = self.tensors.tensor("witness.starts") {
            return self.class_dual(starts.data()).map(|dual| Some(Witness::Classes(dual))).ok_or_else(incomplete);
        }
        let several = match self.output_dual().ok_or_else(incomplete)? {
            Some(dual) => Some(Witness::Outputs(dual)),
            None => self.column_witnesses()?,
        };
        if let Some(several) = several {
            let single = ["witness.state", "witness.points", "witness.width", "witness.starts"];
            if single.iter().any(|name| self.tensors.tensor(name).is_ok()) {
                return Err(damaged("it has two witnesses"));
            }
            return Ok(Some(several));
        }
        let witness =
            match (self.tensors.tensor("witness.state"), self.reals("witness.points")?, self.reals("witness.width")?) {
                (Err(_), None, None) => return Ok(None),
                (Ok(states), None, None) => {
                    let values = self.reals("witness.values")?.unwrap_or_default();
                    let limits = self.reals("witness.limits")?.unwrap_or_default();
                    Witness::Dual(unpack_witness(states.data(), &values, &limits).ok_or_else(incomplete)?)
                }
                (Err(_), Some(points), None) => {
                    let multipliers = self.reals("witness.multipliers")?.unwrap_or_default();
                    Witness::Cuts(unpack_cuts(&points, &multipliers).ok_or_else(incomplete)?)
                }
                (Err(_), None, Some(width)) => {
                    Witness::Rounded(*width.first().filter(|_| width.len() == 1).ok_or_else(incomplete)?)
                }
                _ => return Err(damaged("it has two witnesses")),
            };
        Ok(Some(witness))
    }

    /// The dual point of several classes; `None` if its parts have other types.
    fn class_dual(&self, starts: &[u8]) -> Option<ClassDual> {
        let classes = self.tensors.tensor("witness.classes").ok().filter(|tensor| tensor.dtype() == Dtype::U32)?;
        Some(ClassDual {
            starts: words(starts).map(u64::from_le_bytes).collect(),
            classes: shorts(classes.data()),
            values: self.reals("witness.variables").ok()??,
        })
    }

    /// The dual point of structured outputs, if there is one; `None` if its parts are missing or have other types.
    fn output_dual(&self) -> Option<Option<OutputDual>> {
        let Ok(starts) = self.tensors.tensor("outputs.starts") else { return Some(None) };
        let bounds = self.tensors.tensor("outputs.bounds").ok().filter(|tensor| tensor.dtype() == Dtype::U64)?;
        let numbers = self.tensors.tensor("outputs.numbers").ok().filter(|tensor| tensor.dtype() == Dtype::U32)?;
        Some(Some(OutputDual {
            starts: words(starts.data()).map(u64::from_le_bytes).collect(),
            bounds: words(bounds.data()).map(u64::from_le_bytes).collect(),
            numbers: shorts(numbers.data()),
            values: self.reals("outputs.variables").ok()??,
        }))
    }

    /// The witnesses of columns.
    fn column_witnesses(&self) -> Result<Option<Witness>> {
        let Ok(kinds) = self.tensors.tensor("columns.kinds") else { return Ok(None) };
        let (Ok(counts), Ok(rows)) = (self.tensors.tensor("columns.counts"), self.tensors.tensor("columns.rows"))
        else {
            return Err(damaged(INCOMPLETE));
        };
        let packed = Packed {
            kinds: kinds.data().to_vec(),
            counts: words(counts.data()).map(u64::from_le_bytes).collect(),
            rows: shorts(rows.data()),
            values: self.reals("columns.values")?.unwrap_or_default(),
        };
        let columns = packed.unpacked().ok_or_else(|| damaged(INCOMPLETE))?;
        Ok(Some(Witness::Columns(columns)))
    }

    /// What a learner of a stream keeps: all tensors named `online.…`.
    fn online(&self) -> Result<Option<OnlineState>> {
        let mut state = OnlineState::default();
        for name in self.tensors.names() {
            let Some(short) = name.strip_prefix(ONLINE) else { continue };
            match self.tensors.tensor(name).map(|tensor| (tensor.dtype(), tensor.data().to_vec())) {
                Ok((Dtype::U64, bytes)) => state.put_counts(short, words(&bytes).map(u64::from_le_bytes).collect()),
                _ => state.put_reals(short, self.reals(name)?.unwrap_or_default()),
            }
        }
        Ok(Some(state).filter(|state| !state.is_empty()))
    }
}

/// The tensors of what a learner of a stream keeps.
fn online_tensors(state: &OnlineState) -> Vec<(String, Dtype, usize, Vec<u8>)> {
    let named = |name: &str| format!("{ONLINE}{name}");
    let reals = state.all_reals().map(|(name, values)| {
        (named(name), Dtype::F64, values.len(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
    });
    let counts = state.all_counts().map(|(name, values)| (named(name), Dtype::U64, values.len(), wide_bytes(values)));
    reals.chain(counts).collect()
}

fn wide_bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn short_bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn shorts(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

/// The header, for any version of the format.
fn header_of(text: &str, version: u32) -> serde_json::Result<Header> {
    if version > 1 {
        return serde_json::from_str(text);
    }
    let mut header: serde_json::Value = serde_json::from_str(text)?;
    for (part, renewed) in
        [("settings", settings_of_format_1 as fn(&_) -> _), ("decoder", decoder_of_format_1 as fn(&_) -> _)]
    {
        if let Some(part) = header.get_mut(part) {
            *part = renewed(part);
        }
    }
    serde_json::from_value(header)
}

/// The support vectors as tensors: the values and, for sparse vectors, their positions.
fn vector_tensors(vectors: &Matrix) -> Vec<(&'static str, Dtype, usize, Vec<u8>)> {
    fn bytes<T: Copy, const N: usize>(values: &[T], to: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&value| to(value)).collect()
    }
    let narrow = |values: &[f32]| ("vectors.values", Dtype::F32, values.len(), bytes(values, f32::to_le_bytes));
    let wide = |values: &[f64]| ("vectors.values", Dtype::F64, values.len(), bytes(values, f64::to_le_bytes));
    let places = |starts: &[u64], indices: Vec<u32>| {
        [
            ("vectors.starts", Dtype::U64, starts.len(), bytes(starts, u64::to_le_bytes)),
            ("vectors.indices", Dtype::U32, indices.len(), bytes(&indices, u32::to_le_bytes)),
        ]
    };
    let widened = |indices: &[u16]| indices.iter().map(|&index| u32::from(index)).collect();
    match vectors {
        Matrix::DenseF32(m) => vec![narrow(m.values())],
        Matrix::DenseF64(m) => vec![wide(m.values())],
        Matrix::Csr16F32(m) => {
            places(&m.starts(), widened(m.indices())).into_iter().chain([narrow(m.values())]).collect()
        }
        Matrix::Csr32F32(m) => {
            places(&m.starts(), m.indices().to_vec()).into_iter().chain([narrow(m.values())]).collect()
        }
        Matrix::Csr16F64(m) => {
            places(&m.starts(), widened(m.indices())).into_iter().chain([wide(m.values())]).collect()
        }
        Matrix::Csr32F64(m) => {
            places(&m.starts(), m.indices().to_vec()).into_iter().chain([wide(m.values())]).collect()
        }
    }
}

/// Reads the tensors back; `None` if they do not fit together or hold a number that is not finite.
fn read_vectors(tensors: &SafeTensors<'_>, rows: usize, cols: usize) -> Option<Matrix> {
    let values = tensors.tensor("vectors.values").ok()?;
    let narrow: Vec<f32> = match values.dtype() {
        Dtype::F32 => values.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
        _ => Vec::new(),
    };
    let wide: Vec<f64> = match values.dtype() {
        Dtype::F64 => words(values.data()).map(f64::from_le_bytes).collect(),
        _ => Vec::new(),
    };
    if narrow.iter().any(|value| !value.is_finite()) || wide.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let is_narrow = match values.dtype() {
        Dtype::F32 => true,
        Dtype::F64 => false,
        _ => return None,
    };
    let Ok(starts) = tensors.tensor("vectors.starts") else {
        return match is_narrow {
            true => Some(Matrix::DenseF32(Dense::new(narrow, rows, cols).ok()?)),
            false => Some(Matrix::DenseF64(Dense::new(wide, rows, cols).ok()?)),
        };
    };
    let starts: Vec<u64> = words(starts.data()).map(u64::from_le_bytes).collect();
    let indices = tensors.tensor("vectors.indices").ok()?;
    let indices: Vec<u32> = match indices.dtype() {
        Dtype::U32 => indices.data().as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
        _ => return None,
    };
    if starts.len() != rows + 1 {
        return None;
    }
    match is_narrow {
        true => Some(Matrix::Csr32F32(Csr::new(starts, indices, narrow, cols).ok()?)),
        false => Some(Matrix::Csr32F64(Csr::new(starts, indices, wide, cols).ok()?)),
    }
}

const NO_STATE: &str = "its state for further learning does not fit the model";
const INCOMPLETE: &str = "its witness is not complete";

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 8]> {
    bytes.as_chunks::<8>().0.iter().copied()
}

/// Most dual variables are zero or at the limit C, which takes few values (one per class and weight). The most common
/// value is stored once, as the limit.
fn pack_witness(alpha: &[f64]) -> (Vec<u8>, Vec<f64>, Vec<f64>) {
    // Sorting is used instead of a hash table, which would take several times the memory of the variables.
    let mut bits: Vec<u64> = alpha.iter().filter(|&&value| value != 0.0).map(|value| value.to_bits()).collect();
    bits.sort_unstable();
    let runs = bits.chunk_by(|a, b| a == b).filter(|run| run.len() > 1);
    let limit = runs.max_by_key(|run| (run.len(), run[0])).map(|run| f64::from_bits(run[0]));
    drop(bits);
    let mut values = Vec::new();
    let states = alpha
        .iter()
        .map(|&value| {
            if value == 0.0 {
                AT_ZERO
            } else if Some(value) == limit {
                AT_LIMIT
            } else {
                values.push(value);
                STORED
            }
        })
        .collect();
    (states, values, limit.into_iter().collect())
}

fn unpack_witness(states: &[u8], values: &[f64], limits: &[f64]) -> Option<Vec<f64>> {
    let mut values = values.iter();
    let alpha = states
        .iter()
        .map(|&state| match state {
            AT_ZERO => Some(0.0),
            AT_LIMIT => limits.first().copied(),
            STORED => values.next().copied(),
            _ => None,
        })
        .collect::<Option<Vec<f64>>>()?;
    values.next().is_none().then_some(alpha)
}

fn unpack_cuts(points: &[f64], multipliers: &[f64]) -> Option<Vec<Cut>> {
    let dim = points.len().checked_div(multipliers.len()).filter(|&dim| dim > 0)?;
    let cuts = points.chunks(dim).zip(multipliers);
    let cuts: Vec<Cut> = cuts.map(|(point, &multiplier)| Cut { point: point.to_vec(), multiplier }).collect();
    (cuts.len() == multipliers.len() && points.len() == dim * cuts.len()).then_some(cuts)
}

/// The position of the checksum in the file.
fn checksum_place(bytes: &[u8]) -> Option<usize> {
    let (header, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    let info = metadata.info(CHECKSUM)?;
    let (start, end) = info.data_offsets;
    let at = header.checked_add(8)?.checked_add(start)?;
    (end.checked_sub(start)? == 8 && at.checked_add(8)? <= bytes.len()).then_some(at)
}

fn damaged(what: impl std::fmt::Display) -> Error {
    Error::new(Code::DamagedModel, format!("the model file is damaged: {what}"))
        .help("the file was cut short or changed; copy it again or train it again")
}

fn not_a_model(bytes: &[u8], error: &dyn std::fmt::Display) -> Error {
    let head = &bytes[..bytes.len().min(4096)];
    if head.windows(HEADER.len()).any(|window| window == HEADER.as_bytes()) {
        return damaged(error);
    }
    Error::new(Code::NotAModel, "this is not a model file of maxmargin").help(
        "a model file is what `maxmargin train … -o MODEL` writes, and it comes first: `maxmargin evaluate MODEL FILE`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_unpacked_where_the_numbers_come_out_even() {
        let cuts = unpack_cuts(&[1.0, 2.0, 3.0, 4.0], &[0.25, 0.75]).expect("even");
        assert_eq!(cuts[1], Cut { point: vec![3.0, 4.0], multiplier: 0.75 });
        for (points, multipliers) in [(&[1.0, 2.0, 3.0][..], &[0.5, 0.5][..]), (&[], &[]), (&[], &[1.0]), (&[1.0], &[])]
        {
            assert_eq!(unpack_cuts(points, multipliers), None);
        }
    }
}
