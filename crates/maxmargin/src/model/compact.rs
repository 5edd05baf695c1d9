//! A model with fewer support vectors that scores nearly the same.
//!
//! ```text
//! f = Σ_i β_i φ(x_i)   is replaced by   g = Σ_{i chosen} γ_i φ(x_i),   the nearest to f among such sums
//! ```
//! Vectors are chosen one by one. Each step takes the vector that brings g nearest to f. Let r = f − g on the vectors,
//! and d the part of each vector that the chosen ones do not span; the step takes the largest r²/d. That is a pivoted
//! Cholesky factorisation of the kernel values with the values of f as the right-hand side, and ‖f − g‖² = ‖f‖² − Σ of
//! the squares found (orthogonal least squares; Schölkopf et al., Input space versus feature space in kernel-based
//! methods, IEEE TNN 10, 1999, reduce sets of vectors in the same norm).
//!
//! **What is proven.** |f(x) − g(x)| ≤ ‖f − g‖ · √k(x, x) for every x, if the kernel is positive definite. Kernels that
//! need not be are refused. √k(x, x) is 1 for kernels of distances. Certificate and witness belong to the original
//! model: a compacted model cannot be verified. Where a row has several scores, the squares are summed over them.
//!
//! Cost: m of n vectors need m·n kernel values and n·m² additions. With the linear kernel, the sum becomes exact
//! weights.

use super::{Expansion, Model, Scorer};
use crate::error::{Code, Error, Result};
use crate::kernel::{FEW_ROWS, Kernel, Points, add_row};

use crate::parallel;
use crate::run::Cancel;
use crate::solve::overflow;
use crate::wording::counted;
use serde::{Deserialize, Serialize};

/// How far to reduce a model. The limit that is reached first applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compaction {
    /// Keep at most this many vectors.
    pub vectors: usize,
    /// Stop once ‖f − g‖ is this share of ‖f‖.
    pub distance: f64,
}

/// The origin of a compacted model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Compacted {
    /// Number of vectors of the original model.
    pub vectors: u64,
    /// ‖f‖
    pub norm: f64,
    /// ‖f − g‖: the largest possible change of the score of a row with k(x, x) = 1.
    pub distance: f64,
}

impl Model {
    /// The same model with fewer vectors.
    pub fn compact(&self, to: Compaction, cancel: &Cancel) -> Result<Model> {
        let Scorer::Expansion(expansion) = &self.scorer else {
            return Err(Error::new(Code::Unsupported, "the model is linear, and has no support vectors to remove")
                .help("only models learned through a kernel can be compacted"));
        };
        let vectors = expansion.count();
        if to.vectors == 0 || !(to.distance >= 0.0 && to.distance < 1.0) {
            return Err(Error::new(
                Code::BadSetting,
                "a compacted model has at least one vector, and a distance of at least 0 and below 1",
            )
            .help("such as ⟦vectors=500⟧ or ⟦distance=0.01⟧"));
        }
        if !expansion.kernel.is_definite() {
            return Err(Error::new(
                Code::Unsupported,
                format!(
                    "the {} kernel may not be positive definite, so there is no distance between models",
                    expansion.kernel.kind().name()
                ),
            )
            .help(
                "compact models with a gaussian, chi-squared, intersection or linear kernel, or a polynomial one with a \
                 coef0 of 0 or more",
            ));
        }
        let before = self.compacted.as_ref();
        let (scorer, norm, distance) = match expansion.kernel {
            Kernel::Linear => (as_weights(expansion), expansion.norm(cancel)?, 0.0),
            // With all vectors kept, the distance is already the smallest possible.
            _ if to.vectors >= vectors && to.distance == 0.0 => (self.scorer.clone(), expansion.norm(cancel)?, 0.0),
            _ => {
                let (reduced, norm, distance) = nearest(expansion, to, cancel)?;
                (Scorer::Expansion(reduced), norm, distance)
            }
        };
        let compacted = Compacted {
            vectors: before.map_or(vectors as u64, |before| before.vectors),
            norm: before.map_or(norm, |before| before.norm),
            distance: distance + before.map_or(0.0, |before| before.distance),
        };
        Ok(Model { scorer, witness: None, compacted: Some(compacted), ..self.clone() })
    }

    /// Refuses to verify a compacted model, because the certificate belongs to the original model.
    pub(crate) fn check_whole(&self) -> Result<()> {
        match &self.compacted {
            None => Ok(()),
            Some(compacted) => Err(Error::new(
                Code::Unsupported,
                format!(
                    "the model was compacted from {}, and its certificate belongs to the original model",
                    counted(compacted.vectors, "support vector", "support vectors")
                ),
            )
            .help("verify the original model")),
        }
    }
}

/// Σ β x as weights.
fn as_weights(expansion: &Expansion) -> Scorer {
    let outputs = expansion.outputs;
    let mut weights = vec![0.0; expansion.vectors.cols() * outputs];
    for (row, coefficients) in expansion.coefficients.chunks_exact(outputs).enumerate() {
        expansion.vectors.each_in_row(row, |column, value| {
            let weights = &mut weights[column * outputs..(column + 1) * outputs];
            weights.iter_mut().zip(coefficients).for_each(|(weight, coefficient)| *weight += coefficient * value);
        });
    }
    Scorer::Linear { weights, outputs, intercepts: expansion.intercepts.clone() }
}

impl Expansion {
    fn norm(&self, cancel: &Cancel) -> Result<f64> {
        let square = self.squared_norm(&self.points()?, cancel);
        cancel.check()?;
        Ok(square.max(0.0).sqrt())
    }
}

/// The expansion over the chosen vectors, ‖f‖ and ‖f − g‖.
fn nearest(expansion: &Expansion, to: Compaction, cancel: &Cancel) -> Result<(Expansion, f64, f64)> {
    // Differences of squares need full precision.
    let points = expansion.points_in_double()?;
    let values = expansion.scores_on_itself(&points, cancel);
    cancel.check()?;
    let square: f64 = values.iter().zip(&expansion.coefficients).map(|(value, beta)| value * beta).sum();
    if !square.is_finite() {
        return Err(overflow());
    }
    let square = square.max(0.0);
    let enough = to.distance * to.distance * square;
    let goal = Goal { outputs: expansion.outputs, square, enough, most: to.vectors };
    let Chosen { vectors, coefficients, found } = choose(&expansion.kernel, &points, values.clone(), &goal, cancel)?;
    let sizes: f64 = expansion.coefficients.iter().zip(&values).map(|(beta, value)| (beta * value).abs()).sum();
    let rounding = f64::EPSILON * values.len() as f64 * sizes;
    // With many vectors, scores are sums in f32, so both sums have a rounding error.
    let total = |coefficients: &[f64]| coefficients.iter().map(|number| number.abs()).sum::<f64>();
    let unit = |numbers: &[f64]| {
        if numbers.len() > FEW_ROWS * expansion.outputs { f64::from(f32::EPSILON) } else { 16.0 * f64::EPSILON }
    };
    let largest = points.diagonal(&expansion.kernel).into_iter().fold(0.0, f64::max).sqrt();
    let shown = largest * (unit(&values) * total(&expansion.coefficients) + unit(&coefficients) * total(&coefficients));
    let reduced = Expansion {
        kernel: expansion.kernel.clone(),
        vectors: expansion.vectors.select(&vectors),
        coefficients,
        outputs: expansion.outputs,
        intercepts: expansion.intercepts.clone(),
    };
    Ok((reduced, square.sqrt(), ((square - found).max(0.0) + rounding).sqrt() + shown))
}

/// When enough vectors are chosen.
struct Goal {
    /// Number of scores.
    outputs: usize,
    /// ‖f‖²
    square: f64,
    /// ‖f − g‖² may be this large.
    enough: f64,
    /// The maximum number of vectors.
    most: usize,
}

struct Chosen {
    vectors: Vec<usize>,
    /// γ, those of one vector next to each other.
    coefficients: Vec<f64>,
    /// ‖g‖²
    found: f64,
}

/// A vector whose remaining part is below this share is spanned by the others. It would add only rounding errors.
const MADE_UP: f64 = 1e-8;

/// Number of entries updated together.
const CHUNK: usize = 1024;

/// The columns of the factor take at most this many bytes, which limits the number of columns.
const FACTOR_BYTES: usize = 4 << 30;

fn choose(
    kernel: &Kernel,
    points: &Points,
    mut rest: Vec<f64>,
    &Goal { outputs, square, enough, most }: &Goal,
    cancel: &Cancel,
) -> Result<Chosen> {
    let count = points.rows();
    let own = points.diagonal(kernel);
    let mut free = own.clone();
    // Columns of the Cholesky factor, and the right-hand sides of each chosen vector.
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let (mut vectors, mut shares) = (Vec::new(), Vec::new());
    let mut found = 0.0;
    let mut row = vec![0.0; count];
    let most = most.min(count).min(FACTOR_BYTES / (8 * count.max(1)));
    while vectors.len() < most && square - found > enough {
        cancel.check()?;
        let square_at = |at: usize| -> f64 { rest[at * outputs..][..outputs].iter().map(|rest| rest * rest).sum() };
        let gain = |at: usize| if free[at] > MADE_UP * own[at].abs() { square_at(at) / free[at] } else { 0.0 };
        let better = |a: (usize, f64), b: (usize, f64)| if b.1 > a.1 || (b.1 == a.1 && b.0 < a.0) { b } else { a };
        let best_of = |chunk: usize| {
            let places = chunk * CHUNK..((chunk + 1) * CHUNK).min(count);
            places.map(|at| (at, gain(at))).fold((usize::MAX, 0.0), better)
        };
        let (pivot, best) = parallel::map(count.div_ceil(CHUNK), best_of).into_iter().fold((usize::MAX, 0.0), better);
        if best <= 0.0 {
            break;
        }
        let unit = free[pivot].sqrt();
        let share: Vec<f64> = rest[pivot * outputs..][..outputs].iter().map(|rest| rest / unit).collect();
        points.fill(kernel, points, &[pivot], vec![&mut row[..]]);
        let at_pivot: Vec<f64> = columns.iter().map(|column| column[pivot]).collect();
        let mut column = row.clone();
        let places = column.chunks_mut(CHUNK).zip(rest.chunks_mut(CHUNK * outputs)).zip(free.chunks_mut(CHUNK));
        parallel::update(&mut places.collect::<Vec<_>>(), 1, |chunk, ((column, rest), free)| {
            let start = chunk * CHUNK;
            for (before, at_pivot) in columns.iter().zip(&at_pivot) {
                add_row(column, -at_pivot, &before[start..]);
            }
            for ((value, rest), free) in column.iter_mut().zip(rest.chunks_exact_mut(outputs)).zip(free.iter_mut()) {
                *value /= unit;
                rest.iter_mut().zip(&share).for_each(|(rest, share)| *rest -= share * *value);
                *free -= *value * *value;
            }
        });
        free[pivot] = 0.0;
        found += share.iter().map(|share| share * share).sum::<f64>();
        columns.push(column);
        vectors.push(pivot);
        shares.extend(share);
    }
    // Lᵀ γ = shares, where L is the factor restricted to the chosen rows.
    let mut coefficients = shares;
    for at in (0..vectors.len()).rev() {
        let (before, after) = coefficients.split_at_mut((at + 1) * outputs);
        let own = &mut before[at * outputs..];
        for (later, after) in (at + 1..).zip(after.chunks_exact(outputs)) {
            own.iter_mut().zip(after).for_each(|(own, after)| *own -= columns[at][vectors[later]] * after);
        }
        own.iter_mut().for_each(|own| *own /= columns[at][vectors[at]]);
    }
    Ok(Chosen { vectors, coefficients, found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Dense, Matrix, Targets};
    use crate::kernel::{KernelKind, KernelSettings};
    use crate::random::Random;
    use crate::run::Silent;
    use crate::settings::{Settings, Solver, Task};
    use crate::train::train;

    fn data() -> Dataset {
        let mut random = Random::new(5, 1, 0);
        let values: Vec<f64> = (0..600).map(|_| 2.0 * random.uniform() - 1.0).collect();
        let sign = |x: &[f64]| if x[0] * x[1] + 0.3 * x[2] > 0.0 { 1.0 } else { -1.0 };
        let targets: Vec<f64> = values.chunks(3).map(sign).collect();
        Dataset::new(Matrix::DenseF64(Dense::new(values, 200, 3).expect("valid")), Targets::Real(targets.into()))
            .expect("valid")
    }

    fn trained(kind: KernelKind) -> (Dataset, Model) {
        let data = data();
        let kernel = KernelSettings { kind, ..KernelSettings::default() };
        let settings = Settings { kernel, solver: Solver::Smo, ..Settings::new(Task::Classify) };
        let model = train(&data, &settings, None, &mut Silent, &Cancel::new()).expect("trains").model;
        (data, model)
    }

    fn vectors(model: &Model) -> usize {
        match &model.scorer {
            Scorer::Expansion(expansion) => expansion.coefficients.len(),
            _ => 0,
        }
    }

    #[test]
    fn fewer_vectors_score_as_near_as_is_claimed_and_more_come_nearer() {
        let (data, model) = trained(KernelKind::Gaussian);
        let whole = model.scores(&data).expect("scores");
        let mut last = f64::INFINITY;
        for most in [5, 20, 60] {
            let small = model.compact(Compaction { vectors: most, distance: 0.0 }, &Cancel::new()).expect("compacts");
            assert_eq!(vectors(&small), most.min(vectors(&model)));
            let compacted = small.compacted.clone().expect("says so");
            let scores = small.scores(&data).expect("scores");
            let apart = whole.iter().zip(&scores).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart <= compacted.distance + 1e-9, "{apart} {compacted:?}");
            assert!(compacted.distance < last, "{compacted:?}");
            last = compacted.distance;
            let again = Model::from_bytes(&small.to_bytes().expect("bytes")).expect("loads");
            assert_eq!(again.scores(&data).expect("scores"), scores);
            assert_eq!(again.compacted, Some(compacted));
            assert_eq!(again.verify(&data).expect_err("compacted").code(), Code::Unsupported);
        }
        let near = model.compact(Compaction { vectors: usize::MAX, distance: 0.05 }, &Cancel::new()).expect("compacts");
        let compacted = near.compacted.expect("says so");
        assert!(compacted.distance <= 0.05 * compacted.norm && compacted.vectors == vectors(&model) as u64);
    }

    #[test]
    fn the_nearest_sum_is_that_of_the_normal_equations() {
        let (_, model) = trained(KernelKind::Gaussian);
        let Scorer::Expansion(whole) = &model.scorer else { panic!("support vectors") };
        let small = model.compact(Compaction { vectors: 12, distance: 0.0 }, &Cancel::new()).expect("compacts");
        let Scorer::Expansion(reduced) = &small.scorer else { panic!("support vectors") };
        // K_mm γ = K_mn β: g and f agree on the chosen vectors.
        let points = whole.points().expect("ready");
        let chosen = Dataset::new(reduced.vectors.clone(), Targets::Absent).expect("valid");
        let bare = Model {
            scaling: crate::data::Scaling::from_parts(crate::data::Scale::None, None, None, 3).expect("valid"),
            ..model.clone()
        };
        let f = bare.scores(&chosen).expect("scores");
        let g = Model { scorer: small.scorer.clone(), ..bare }.scores(&chosen).expect("scores");
        assert!(f.iter().zip(&g).all(|(f, g)| (f - g).abs() < 1e-7), "{f:?} {g:?}");
        // ‖f − g‖² must agree with the two norms and the inner product.
        let own = reduced.squared_norm(&reduced.points().expect("ready"), &Cancel::new());
        let square = whole.squared_norm(&points, &Cancel::new());
        let distance = small.compacted.expect("says so").distance;
        assert!((square - own - distance * distance).abs() < 1e-7 * square, "{square} {own} {distance}");
    }

    #[test]
    fn a_kernel_without_lengths_is_not_compacted() {
        let (_, model) = trained(KernelKind::Sigmoid);
        let to = Compaction { vectors: 5, distance: 0.0 };
        assert_eq!(model.compact(to, &Cancel::new()).expect_err("indefinite").code(), Code::Unsupported);
    }

    #[test]
    fn the_linear_kernel_becomes_weights() {
        let (data, model) = trained(KernelKind::Linear);
        let small = model.compact(Compaction { vectors: 1, distance: 0.0 }, &Cancel::new()).expect("compacts");
        assert!(matches!(small.scorer, Scorer::Linear { .. }));
        for (a, b) in model.scores(&data).expect("scores").iter().zip(small.scores(&data).expect("scores")) {
            assert!((a - b).abs() < 1e-9);
        }
        let to = Compaction { vectors: 1, distance: 0.0 };
        assert_eq!(small.compact(to, &Cancel::new()).expect_err("weights").code(), Code::Unsupported);
        assert_eq!(
            model.compact(Compaction { vectors: 0, distance: 0.0 }, &Cancel::new()).expect_err("none").code(),
            Code::BadSetting
        );
    }
}
