//! [`FeatureMap`]: rows mapped into features whose inner products are nearly those of a kernel.
//!
//! A kernel problem over n rows becomes a linear one over n mapped rows, which every task and every linear solver
//! supports:
//!
//! ```text
//! k(x, z) ≈ φ(x)·φ(z),   φ(x) of m numbers;   min ½‖w‖² + C Σ loss(margin − w·φ(x))
//! ```
//! Rows are mapped after scaling; mapped features are not scaled again. They are computed in f64 and stored in f32, in
//! parallel over fixed ranges of rows: n·m·4 bytes.

use super::fourier::Fourier;
use super::nystrom::Nystrom;
use super::{Approximation, Kernel, MOST_LANDMARKS};
use crate::data::{Dense, Design, Matrix};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::run::Cancel;
use crate::wording::{counted, memory_given, memory_needed};
use std::ops::Range;

/// A map that approximates a kernel.
#[derive(Debug)]
pub struct FeatureMap(Kind);

#[derive(Debug)]
enum Kind {
    Nystrom(Box<Nystrom>),
    Fourier(Fourier),
}

/// Weights prepared for scoring, computed once for many rows.
#[derive(Debug)]
pub(crate) enum FoldedMap {
    /// One number per landmark and score.
    Landmarks(Vec<f64>),
    Features,
}

impl FeatureMap {
    /// The map for these rows.
    pub(crate) fn fit(
        kernel: Kernel,
        approximation: Approximation,
        design: &Design,
        seed: u64,
        cancel: &Cancel,
    ) -> Result<FeatureMap> {
        match approximation {
            Approximation::Nystrom { landmarks } => Ok(FeatureMap(Kind::Nystrom(Box::new(Nystrom::drawn(
                kernel,
                design,
                landmarks as usize,
                seed,
                cancel,
            )?)))),
            Approximation::Fourier { .. } => FeatureMap::stored(kernel, approximation, None, design.cols(), seed)
                .ok_or_else(|| {
                    Error::new(Code::MemoryBudget, "there are too many random frequencies to store")
                        .help(FEWER_FREQUENCIES)
                }),
        }
    }

    /// The map of a model, from its landmarks or its seed. None if these do not fit together.
    pub(crate) fn stored(
        kernel: Kernel,
        approximation: Approximation,
        landmarks: Option<Matrix>,
        cols: usize,
        seed: u64,
    ) -> Option<FeatureMap> {
        let kind = match (approximation, kernel, landmarks) {
            (Approximation::Nystrom { landmarks: most }, kernel, Some(landmarks)) => {
                let count = landmarks.rows();
                let fits = (1..=most.min(MOST_LANDMARKS) as usize).contains(&count) && landmarks.cols() == cols;
                Kind::Nystrom(Box::new(fits.then(|| Nystrom::stored(kernel, landmarks))?))
            }
            (Approximation::Fourier { .. }, Kernel::Gaussian { gamma }, None) if gamma > 0.0 => {
                Kind::Fourier(Fourier::new(gamma, cols, approximation.features(), seed)?)
            }
            _ => return None,
        };
        Some(FeatureMap(kind))
    }

    /// The kernel it approximates, with all its parameters.
    pub fn kernel(&self) -> Kernel {
        match &self.0 {
            Kind::Nystrom(map) => map.kernel().clone(),
            Kind::Fourier(map) => Kernel::Gaussian { gamma: map.gamma() },
        }
    }

    /// Columns of the rows it maps.
    pub fn cols(&self) -> usize {
        match &self.0 {
            Kind::Nystrom(map) => map.landmarks().cols(),
            Kind::Fourier(map) => map.cols(),
        }
    }

    /// Features of a mapped row.
    pub fn features(&self) -> usize {
        match &self.0 {
            Kind::Nystrom(map) => map.landmarks().rows(),
            Kind::Fourier(map) => map.features(),
        }
    }

    /// The landmarks, scaled, if there are any.
    pub fn landmarks(&self) -> Option<&Matrix> {
        match &self.0 {
            Kind::Nystrom(map) => Some(map.landmarks()),
            Kind::Fourier(_) => None,
        }
    }

    /// Computes what a stored map needs before its first use: the factor of the landmarks, or the frequencies.
    pub(crate) fn make_ready(&self, cancel: &Cancel) -> Result<()> {
        match &self.0 {
            Kind::Nystrom(map) => map.prepare(cancel).map(drop),
            Kind::Fourier(map) => {
                map.make_ready();
                Ok(())
            }
        }
    }

    /// Makes the map ready, and returns how many rows are mapped together: their kernel values or angles and their
    /// input stay within a few megabytes. The number depends on data and map alone, so the number of threads does not
    /// change the result.
    fn prepare(&self, design: &Design, cancel: &Cancel) -> Result<usize> {
        const MOST: usize = 512;
        const NUMBERS: usize = 1 << 20;
        let spread = match &self.0 {
            Kind::Nystrom(map) => map.prepare(cancel)?,
            Kind::Fourier(map) => map.prepare(design),
        };
        Ok((NUMBERS / self.features().max(spread).max(1)).clamp(16, MOST))
    }

    /// Maps all rows. An error if they do not fit in memory or a feature is not finite.
    pub(crate) fn map(&self, design: &Design, cancel: &Cancel) -> Result<Matrix> {
        let (rows, features) = (design.rows(), self.features());
        let numbers = rows.checked_mul(features);
        let mut values: Vec<f32> = Vec::new();
        if numbers.is_none_or(|numbers| values.try_reserve_exact(numbers).is_err()) {
            return Err(Error::new(
                Code::MemoryBudget,
                format!(
                    "there is not enough memory for {} mapped into {features} features",
                    counted(rows as u64, "row", "rows")
                ),
            )
            .help("use fewer landmarks or features, as in ⟦approximate=nystrom:200⟧"));
        }
        values.resize(rows * features, 0.0);
        let run = self.prepare(design, cancel)?;
        let outs: Vec<&mut [f32]> = values.chunks_mut((run * features).max(1)).collect();
        parallel::try_each_of(outs, |at, out| {
            cancel.check()?;
            let rows = at * run..(at * run + run).min(rows);
            self.map_run(design, rows.clone(), out)?;
            design.passed(rows);
            if out.iter().all(|value| value.is_finite()) {
                return Ok(());
            }
            Err(Error::new(Code::BadSetting, "the kernel values of some rows are too large")
                .help("add ⟦scale=standard⟧, or give a smaller ⟦gamma⟧ or ⟦degree⟧"))
        })?;
        Ok(Matrix::DenseF32(Dense::new(values, rows, features)?))
    }

    fn map_run(&self, design: &Design, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        match &self.0 {
            Kind::Nystrom(map) => map.map(design, rows, out),
            Kind::Fourier(map) => {
                map.map(design, rows, out);
                Ok(())
            }
        }
    }

    /// Weights prepared for [`FeatureMap::scores`].
    pub(crate) fn fold(&self, weights: &[f64], outputs: usize) -> Result<FoldedMap> {
        match &self.0 {
            Kind::Nystrom(map) => Ok(FoldedMap::Landmarks(map.fold(weights, outputs)?)),
            Kind::Fourier(_) => Ok(FoldedMap::Features),
        }
    }

    /// w·φ(x) of all rows, for every score. Mapped rows are not kept.
    pub(crate) fn scores(
        &self,
        weights: &[f64],
        outputs: usize,
        folded: &FoldedMap,
        design: &Design,
        cancel: &Cancel,
    ) -> Result<Vec<f64>> {
        if let (Kind::Nystrom(map), FoldedMap::Landmarks(folded)) = (&self.0, folded) {
            return map.scores(folded, outputs, design, cancel);
        }
        let (run, features) = (self.prepare(design, cancel)?, self.features());
        let mut scores = vec![0.0; design.rows() * outputs];
        parallel::try_each_of(scores.chunks_mut(run * outputs.max(1)).collect(), |at, scores: &mut [f64]| {
            if cancel.is_raised() {
                return Ok(());
            }
            let count = scores.len() / outputs;
            let rows = at * run..at * run + count;
            let mut mapped = vec![0f32; count * features];
            self.map_run(design, rows.clone(), &mut mapped)?;
            design.passed(rows);
            let mapped = Matrix::DenseF32(Dense::new(mapped, count, features)?);
            match outputs {
                1 => mapped.scores(0..count, weights, scores),
                _ => mapped.scores_of_outputs(0..count, outputs, weights, scores),
            }
            Ok(())
        })?;
        Ok(scores)
    }
}

const FEWER_FREQUENCIES: &str = "use ⟦approximate=nystrom:1000⟧, which keeps rows as they are, or use fewer features";

/// The error for mapped rows that do not fit into the available memory.
pub(crate) fn too_large(rows: u64, features: u64, free: u64) -> Error {
    let needed = memory_needed(rows.saturating_mul(features).saturating_mul(4));
    // Mapped rows may take half of the free memory; the other half is for learning.
    let fits = free / 2 / (4 * rows.max(1));
    let message = format!(
        "{} mapped into {features} features take {needed}; with the memory for training this is more than the {} \
         available",
        counted(rows, "row", "rows"),
        memory_given(free)
    );
    let help = match fits {
        0 => "use fewer rows: even one feature per row does not fit".to_string(),
        fits => format!("use fewer landmarks or features, about {}", rounded_down(fits)),
    };
    Error::new(Code::MemoryBudget, message).help(help)
}

/// The largest number with one nonzero digit that is not above `value`.
fn rounded_down(value: u64) -> u64 {
    let unit = 10u64.pow(value.max(1).ilog10());
    value / unit * unit
}
