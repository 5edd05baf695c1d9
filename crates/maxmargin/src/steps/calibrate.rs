//! The search for a first rate: trials on a sample, at rates that differ by factors of two.

/// The maximum number of doublings or halvings. No data need a rate beyond.
const MOST_STEPS: usize = 80;

/// A patient search in one direction ends after this many trials in a row that are no better. One alone may be noise.
const PATIENCE: usize = 3;

/// Where a function of a positive number is smallest, to a factor of two, downhill from 1.
pub(crate) fn least(cost: &mut dyn FnMut(f64) -> f64) -> f64 {
    least_from(1.0, cost)
}

/// The same from a given number.
pub(crate) fn least_from(start: f64, cost: &mut dyn FnMut(f64) -> f64) -> f64 {
    search(start, cost, 1)
}

/// The same in both directions from 1, past trials that are no better.
pub(crate) fn least_patiently(cost: &mut dyn FnMut(f64) -> f64) -> f64 {
    search(1.0, cost, PATIENCE)
}

fn search(start: f64, cost: &mut dyn FnMut(f64) -> f64, patience: usize) -> f64 {
    let (mut best, mut best_cost) = (start, cost(start));
    for factor in [0.5, 2.0] {
        let (mut rate, mut worse) = (start, 0);
        for _ in 0..MOST_STEPS {
            rate *= factor;
            let here = cost(rate);
            if here < best_cost {
                (best, best_cost, worse) = (rate, here, 0);
            } else if best_cost.is_finite() {
                worse += 1;
            }
            if worse == patience {
                break;
            }
        }
        if patience == 1 && best != start {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_goes_downhill_on_either_side_and_out_of_where_nothing_is_finite() {
        for target in [-9.0, -3.0, 0.0, 1.0, 12.0] {
            assert_eq!(least(&mut |rate| (rate.log2() - target).powi(2)), target.exp2());
            assert_eq!(least_patiently(&mut |rate| (rate.log2() - target).powi(2)), target.exp2());
        }
        let cliff = &mut |rate: f64| if rate > 1e-3 { f64::INFINITY } else { -rate };
        assert_eq!(least(cliff), (-10f64).exp2());
    }

    #[test]
    fn a_bump_on_the_way_does_not_end_the_search() {
        for target in [-6.0f64, 6.0] {
            let bumpy = |rate: f64| (rate.log2() - target).powi(2) + if rate.log2().abs() == 1.0 { 40.0 } else { 0.0 };
            assert_eq!(least_patiently(&mut |rate| bumpy(rate)), target.exp2());
        }
    }
}
