//! Kernels: inner products of rows in feature spaces that are never written out.
//!
//! | kernel | k(x, z) |
//! |---|---|
//! | linear | x·z |
//! | polynomial | (γ x·z + r)^d |
//! | gaussian | exp(−γ ‖x − z‖²) |
//! | sigmoid | tanh(γ x·z + r), not positive definite for all γ and r |
//! | chi-squared | exp(−γ Σ_j (x_j − z_j)² / (x_j + z_j)), for x, z ≥ 0 |
//! | intersection | Σ_j min(x_j, z_j), for x, z ≥ 0 |
//! | precomputed | the rows are kernel values already: x is k(x, ·) with every row that was learned from |
//! | custom | the user's own function |
//!
//! A kernel is only another way to compute scores. [`Points`] are rows prepared for products; they give whole blocks of
//! kernel values at once, in f32, or in f64 if rows are few. Sums over them are taken in f64. With many rows, a
//! [`FeatureMap`] approximates a kernel: rows are mapped, and every linear solver learns from them.

mod approximation;
mod custom;
mod exponential;
mod feature_map;
mod fourier;
mod nystrom;
mod points;
mod row_cache;
mod support;
mod terms;
mod waves;
mod width;

pub use approximation::Approximation;
pub(crate) use approximation::MOST_LANDMARKS;
pub use custom::CustomKernel;
pub use feature_map::FeatureMap;
pub(crate) use feature_map::{FoldedMap, too_large};
pub(crate) use points::{Element, FEW_ROWS, Points, add_row};
pub(crate) use row_cache::RowCache;
pub(crate) use support::{Support, Vector, weighted_sum};
pub(crate) use terms::{Terms, expansion_scores};
pub(crate) use width::typical_gamma;

use crate::error::{Code, Error, Result};
use serde::{Deserialize, Serialize};

/// A kernel with all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// x·z
    Linear,
    /// (γ x·z + r)^d
    Polynomial {
        /// γ
        gamma: f64,
        /// r
        coef0: f64,
        /// d
        degree: u32,
    },
    /// exp(−γ ‖x − z‖²)
    Gaussian {
        /// γ
        gamma: f64,
    },
    /// tanh(γ x·z + r)
    Sigmoid {
        /// γ
        gamma: f64,
        /// r
        coef0: f64,
    },
    /// exp(−γ Σ_j (x_j − z_j)² / (x_j + z_j))
    ChiSquared {
        /// γ
        gamma: f64,
    },
    /// Σ_j min(x_j, z_j)
    Intersection,
    /// The rows are kernel values.
    Precomputed,
    /// A kernel written by the user.
    Custom(CustomKernel),
}

impl Kernel {
    /// Whether it is a function of inner products and squares only.
    pub(crate) fn is_of_products(&self) -> bool {
        matches!(self, Kernel::Linear | Kernel::Polynomial { .. } | Kernel::Gaussian { .. } | Kernel::Sigmoid { .. })
    }

    /// Which kernel this is.
    pub fn kind(&self) -> KernelKind {
        match self {
            Kernel::Linear => KernelKind::Linear,
            Kernel::Polynomial { .. } => KernelKind::Polynomial,
            Kernel::Gaussian { .. } => KernelKind::Gaussian,
            Kernel::Sigmoid { .. } => KernelKind::Sigmoid,
            Kernel::ChiSquared { .. } => KernelKind::ChiSquared,
            Kernel::Intersection => KernelKind::Intersection,
            Kernel::Precomputed => KernelKind::Precomputed,
            Kernel::Custom(_) => KernelKind::Custom,
        }
    }

    /// γ, if the kernel has one.
    pub fn gamma(&self) -> Option<f64> {
        match *self {
            Kernel::Gaussian { gamma } | Kernel::ChiSquared { gamma } => Some(gamma),
            Kernel::Polynomial { gamma, .. } | Kernel::Sigmoid { gamma, .. } => Some(gamma),
            Kernel::Linear | Kernel::Intersection | Kernel::Precomputed | Kernel::Custom(_) => None,
        }
    }

    /// Whether it is certainly positive definite, so that ‖Σ β φ‖ is a length. For a custom function, the user
    /// guarantees it.
    pub(crate) fn is_definite(&self) -> bool {
        match *self {
            Kernel::Sigmoid { .. } | Kernel::Precomputed => false,
            Kernel::Polynomial { coef0, .. } => coef0 >= 0.0,
            _ => true,
        }
    }

    /// Whether it accepts only rows without negative values.
    pub fn needs_positive_rows(&self) -> bool {
        matches!(self, Kernel::ChiSquared { .. } | Kernel::Intersection)
    }

    /// Refuses a kernel whose function is unknown.
    pub(crate) fn check_known(&self) -> Result<()> {
        match self {
            Kernel::Custom(custom) if !custom.is_known() => Err(Error::new(
                Code::BadSetting,
                format!("the kernel `{}` is user-defined, and its function is not available here", custom.name()),
            )
            .help("use the program that trained the model; in Rust, `Model::with_kernel` gives a loaded model its function")),
            _ => Ok(()),
        }
    }

    /// The factor of a squared length in the exponent.
    fn steepness(&self) -> f64 {
        match self {
            Kernel::Gaussian { gamma } | Kernel::ChiSquared { gamma } => *gamma,
            _ => 0.0,
        }
    }

    /// k(x, x), given ‖x‖² and Σ_j x_j, if these are enough.
    fn of_itself(&self, square: f64, sum: impl Fn() -> f64) -> f64 {
        match *self {
            Kernel::Precomputed | Kernel::Custom(_) => f64::NAN,
            Kernel::Linear => square,
            Kernel::Polynomial { gamma, coef0, degree } => (gamma * square + coef0).powi(degree as i32),
            Kernel::Gaussian { .. } | Kernel::ChiSquared { .. } => 1.0,
            Kernel::Sigmoid { gamma, coef0 } => (gamma * square + coef0).tanh(),
            Kernel::Intersection => sum(),
        }
    }
}

/// The kernels by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelKind {
    /// x·z: weights, and all solvers.
    #[default]
    Linear,
    /// (γ x·z + r)^d
    Polynomial,
    /// exp(−γ ‖x − z‖²)
    Gaussian,
    /// tanh(γ x·z + r)
    Sigmoid,
    /// exp(−γ Σ_j (x_j − z_j)² / (x_j + z_j))
    ChiSquared,
    /// Σ_j min(x_j, z_j)
    Intersection,
    /// The rows are kernel values: column j of row i is k(x_i, x_j).
    Precomputed,
    /// Written by the user, in Rust: see [`CustomKernel`].
    Custom,
}

impl KernelKind {
    /// Every kernel that has a fixed name.
    pub const ALL: [KernelKind; 7] = [
        KernelKind::Linear,
        KernelKind::Polynomial,
        KernelKind::Gaussian,
        KernelKind::Sigmoid,
        KernelKind::ChiSquared,
        KernelKind::Intersection,
        KernelKind::Precomputed,
    ];

    /// Whether the kernel has a γ.
    pub fn has_gamma(self) -> bool {
        matches!(self, KernelKind::Gaussian | KernelKind::ChiSquared | KernelKind::Polynomial | KernelKind::Sigmoid)
    }

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            KernelKind::Linear => "linear",
            KernelKind::Polynomial => "polynomial",
            KernelKind::Gaussian => "gaussian",
            KernelKind::Sigmoid => "sigmoid",
            KernelKind::ChiSquared => "chi-squared",
            KernelKind::Intersection => "intersection",
            KernelKind::Precomputed => "precomputed",
            KernelKind::Custom => "custom",
        }
    }
}

/// Which kernel, and its parameters as far as they are set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct KernelSettings {
    /// Which kernel.
    pub kind: KernelKind,
    /// γ; by default found on a sample of the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// d; by default 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degree: Option<u32>,
    /// r; by default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coef0: Option<f64>,
    /// The feature map that approximates the kernel, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approximate: Option<Approximation>,
    /// The custom kernel, if `kind` is custom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomKernel>,
    /// Bytes that kernel rows may take in memory during training. It does not change the model, and models do not keep
    /// it.
    #[serde(skip_serializing)]
    pub cache: Option<u64>,
    /// The maximum number of support vectors for stochastic steps; by default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
}

impl KernelSettings {
    /// Whether the solver uses kernel values themselves, and not weights of features or of mapped features.
    pub fn is_exact(&self) -> bool {
        self.kind != KernelKind::Linear && self.approximate.is_none()
    }

    /// How many features a linear solver sees, for rows with `features` features.
    pub fn seen_features(&self, features: usize) -> usize {
        self.approximate.map_or(features, Approximation::features)
    }

    /// Whether the kernel of a model can be the result of these settings.
    pub(crate) fn made(&self, kernel: &Kernel) -> bool {
        let numbers = match *kernel {
            Kernel::Polynomial { gamma, coef0, degree } => {
                KernelSettings { gamma: Some(gamma), coef0: Some(coef0), degree: Some(degree), ..self.clone() }
            }
            Kernel::Sigmoid { gamma, coef0 } => {
                KernelSettings { gamma: Some(gamma), coef0: Some(coef0), ..self.clone() }
            }
            _ => KernelSettings { gamma: kernel.gamma(), ..self.clone() },
        };
        let as_set = |set: Option<f64>, found: Option<f64>| set.is_none() || set == found;
        kernel.kind() == self.kind
            && self.kind != KernelKind::Precomputed
            && numbers.validate().is_ok()
            && as_set(self.gamma, numbers.gamma)
            && as_set(self.coef0, numbers.coef0)
            && (self.degree.is_none() || self.degree == numbers.degree)
    }

    /// A kernel written by the user.
    pub fn custom(kernel: CustomKernel) -> KernelSettings {
        KernelSettings { kind: KernelKind::Custom, custom: Some(kernel), ..KernelSettings::default() }
    }

    /// Refuses parameters outside their range, and parameters that the kernel does not have.
    pub(crate) fn validate(&self) -> Result<()> {
        let kind = self.kind;
        if self.custom.is_some() != (kind == KernelKind::Custom) {
            return Err(Error::new(
                Code::BadSetting,
                "a custom kernel needs a function, and no other kernel takes one",
            )
            .help("make the settings with `KernelSettings::custom`"));
        }
        let has_coef0 = matches!(kind, KernelKind::Polynomial | KernelKind::Sigmoid);
        let alien = [
            (self.gamma.is_some() && !kind.has_gamma(), "⟦gamma⟧"),
            (self.degree.is_some() && kind != KernelKind::Polynomial, "⟦degree⟧"),
            (self.coef0.is_some() && !has_coef0, "⟦coef0⟧"),
        ];
        if let Some((_, setting)) = alien.into_iter().find(|(alien, _)| *alien) {
            return Err(Error::new(Code::BadSetting, format!("the {} kernel has no {setting}", kind.name()))
                .help(format!("leave {setting} out, or name another ⟦kernel⟧")));
        }
        if let Some(gamma) = self.gamma
            && !(gamma.is_finite() && gamma > 0.0)
        {
            return Err(Error::new(Code::BadSetting, format!("⟦gamma⟧ is {gamma}, and must be a positive number"))
                .help("give a positive number, or leave it out: it is then found on a sample of the rows"));
        }
        if self.budget == Some(0) {
            return Err(Error::new(Code::BadSetting, "⟦budget⟧ is 0, and a model needs at least one support vector")
                .help("give a number of support vectors such as 500"));
        }
        if self.coef0.is_some_and(|coef0| !coef0.is_finite()) {
            return Err(
                Error::new(Code::BadSetting, "⟦coef0⟧ is not a finite number").help("give a number such as 0 or 1")
            );
        }
        if self.degree.is_some_and(|degree| degree == 0 || degree > MOST_DEGREE) {
            return Err(Error::new(
                Code::BadSetting,
                format!("⟦degree⟧ is {}, and must be from 1 to {MOST_DEGREE}", self.degree.unwrap_or_default()),
            )
            .help("give a degree such as 2 or 3"));
        }
        self.approximate.map_or(Ok(()), |approximation| approximation.validate(kind))
    }
}

/// Powers beyond this overflow on nearly all data.
const MOST_DEGREE: u32 = 100;
