//! Custom kernels, written by the user.
//!
//! ```
//! use maxmargin::data::{Dataset, Dense, Matrix, Targets};
//! use maxmargin::kernel::{CustomKernel, KernelSettings};
//! use maxmargin::run::{Cancel, Silent};
//! use maxmargin::settings::{Settings, Task};
//! use maxmargin::train::train;
//!
//! // exp(−|x − z|₁): a kernel that is not built in.
//! let laplace = CustomKernel::new("laplace", |x: &[f64], z: &[f64]| {
//!     (-x.iter().zip(z).map(|(x, z)| (x - z).abs()).sum::<f64>()).exp()
//! });
//! let values = vec![0.0, 0.1, 0.9, 1.0, 1.9, 2.0];
//! let targets = vec![1.0, 1.0, -1.0, -1.0, 1.0, 1.0];
//! let data = Dataset::new(Matrix::DenseF64(Dense::new(values, 6, 1)?), Targets::Real(targets.into()))?;
//! let settings = Settings { kernel: KernelSettings::custom(laplace.clone()), ..Settings::new(Task::Classify) };
//! let model = train(&data, &settings, None, &mut Silent, &Cancel::new())?.model;
//!
//! // A file keeps the kernel's name; who loads it gives the function again.
//! let loaded = maxmargin::model::Model::from_bytes(&model.to_bytes()?)?;
//! assert!(loaded.scores(&data).is_err());
//! assert_eq!(loaded.with_kernel(laplace)?.scores(&data)?, model.scores(&data)?);
//! # Ok::<(), maxmargin::error::Error>(())
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// k(x, z) of two rows, given with all columns.
type Function = dyn Fn(&[f64], &[f64]) -> f64 + Send + Sync;

/// A kernel written by the user: a name, and the function if it is known. The function must be symmetric, return the
/// same value every time and, for a proof of optimality, be positive definite.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct CustomKernel {
    name: String,
    function: Option<Arc<Function>>,
}

impl CustomKernel {
    /// A kernel with its function and its name, which model files keep.
    pub fn new(
        name: impl Into<String>,
        function: impl Fn(&[f64], &[f64]) -> f64 + Send + Sync + 'static,
    ) -> CustomKernel {
        CustomKernel { name: name.into(), function: Some(Arc::new(function)) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the function is known; in a model from a file it is not.
    pub fn is_known(&self) -> bool {
        self.function.is_some()
    }

    pub(crate) fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        self.function.as_ref().map_or(f64::NAN, |function| function(x, z))
    }
}

impl From<String> for CustomKernel {
    fn from(name: String) -> CustomKernel {
        CustomKernel { name, function: None }
    }
}

impl From<CustomKernel> for String {
    fn from(kernel: CustomKernel) -> String {
        kernel.name
    }
}

/// Two kernels with the same name are equal.
impl PartialEq for CustomKernel {
    fn eq(&self, other: &CustomKernel) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for CustomKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomKernel({:?})", self.name)
    }
}
