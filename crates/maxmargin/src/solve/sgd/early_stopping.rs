//! Early stopping: training ends once the result on held-out data gets worse.

/// A measure of weights and thresholds, or none if it cannot be computed.
pub(crate) type Measure<'a> = &'a dyn Fn(&[f64], &[f64]) -> Option<f64>;

/// Judges weights and thresholds on held-out data.
pub(crate) struct Referee<'a> {
    /// The measure.
    pub(crate) measure: Measure<'a>,
    /// Whether more is better.
    pub(crate) higher_is_better: bool,
}

impl Referee<'_> {
    /// A measure as a loss, which falls as the result gets better. NaN if there is none.
    pub(crate) fn loss(&self, value: Option<f64>) -> f64 {
        value.map_or(f64::NAN, |value| if self.higher_is_better { -value } else { value })
    }
}

/// Training ends after this many passes without an improvement.
const PATIENCE: u64 = 3;

/// Remembers the best pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    best: f64,
    best_pass: u64,
}

impl Patience {
    pub(crate) fn new() -> Patience {
        Patience { best: f64::INFINITY, best_pass: 0 }
    }

    /// Records the loss after a pass. Returns true if it is the best so far. A NaN is no improvement.
    pub(crate) fn improves(&mut self, pass: u64, loss: f64) -> bool {
        let better = loss < self.best || self.best_pass == 0;
        if better {
            (self.best, self.best_pass) = (if loss.is_nan() { f64::INFINITY } else { loss }, pass);
        }
        better
    }

    /// The best pass so far; 0 before the first.
    pub(crate) fn best_pass(&self) -> u64 {
        self.best_pass
    }

    /// Whether the best pass is too long ago.
    pub(crate) fn is_over(&self, pass: u64) -> bool {
        pass >= self.best_pass + PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_three_passes_after_the_best_one() {
        let mut patience = Patience::new();
        let losses = [3.0, 2.0, 2.5, f64::NAN, 1.0, 1.0, 1.5, 2.0, 0.1];
        let mut improved = Vec::new();
        for (pass, loss) in (1..).zip(losses) {
            if patience.improves(pass, loss) {
                improved.push(pass);
            }
            if patience.is_over(pass) {
                assert_eq!(pass, 8);
                break;
            }
        }
        assert_eq!(improved, [1, 2, 5]);
    }
}
