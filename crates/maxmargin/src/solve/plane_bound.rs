//! How many planes the theorems on cutting planes allow.
//!
//! ```text
//! min  ½‖w‖² + Σ_i C_i ξ_i,   C = Σ C_i,   R the largest ‖slope · X‖ of a plane,   Δ the largest loss
//! n slacks    at most  max{ 2CΔ / (ε · min C_i),  8CΔR² / ε² }  planes
//! one slack   at most  ⌈log₂(Δ / (4R²C))⌉ + ⌈16R²C / ε⌉  rounds
//! ```
//! until no output is violated by more than ε. The first is theorem 18 of Tsochantaridis, Joachims, Hofmann & Altun (JMLR 6,
//! 2005), where every C_i is C/n; the second is theorem 5 of Joachims, Finley & Yu (Cutting-plane training of structural
//! SVMs, Machine Learning 77, 2009), where R is that of the means of planes. Neither depends on the number of outputs. With
//! rescaled slack R is that of the rescaled planes.
//!
//! The gap of a run is at most C·ε, so that ε = gap / C is the accuracy to compare it with. R is the largest that the run met,
//! since the largest of all outputs is not known.

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Taken {
    /// Number of planes.
    pub(crate) planes: u64,
    /// The largest square of the length of their slopes.
    pub(crate) largest: f64,
}

/// The numbers in the bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneBound {
    /// C
    pub(crate) total: f64,
    /// The smallest C_i above zero.
    pub(crate) least: f64,
    /// R²
    pub(crate) square: f64,
    /// Δ
    pub(crate) loss: f64,
    /// ε
    pub(crate) accuracy: f64,
}

impl PlaneBound {
    /// The most planes with a slack for each example; none if the accuracy is zero.
    pub(crate) fn of_many_slacks(&self) -> Option<f64> {
        let &PlaneBound { total, least, square, loss, accuracy } = self;
        let most = (2.0 * total * loss / (accuracy * least)).max(8.0 * total * loss * square / (accuracy * accuracy));
        most.is_finite().then_some(most)
    }

    /// The most rounds with one slack; none if the accuracy is zero, or larger than the theorem covers.
    pub(crate) fn of_one_slack(&self) -> Option<f64> {
        let &PlaneBound { total, square, loss, accuracy, .. } = self;
        let reach = square * total;
        if accuracy > 4.0 * reach {
            return None;
        }
        let most = (loss / (4.0 * reach)).log2().ceil().max(0.0) + (16.0 * reach / accuracy).ceil();
        most.is_finite().then_some(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_those_of_the_theorems() {
        let bound = PlaneBound { total: 10.0, least: 0.1, square: 4.0, loss: 1.0, accuracy: 0.01 };
        assert_eq!(bound.of_many_slacks(), Some(8.0 * 10.0 * 4.0 / 1e-4));
        assert_eq!(PlaneBound { square: 1e-9, ..bound }.of_many_slacks(), Some(2.0 * 100.0 / 0.01));
        assert_eq!(bound.of_one_slack(), Some(64_000.0));
        // The logarithm counts only where C is small.
        assert_eq!(PlaneBound { total: 0.001, ..bound }.of_one_slack(), Some(6.0 + 7.0));
        assert_eq!(PlaneBound { accuracy: 0.0, ..bound }.of_many_slacks(), None);
    }
}
