//! Probabilities of several classes from those of all pairs of them.
//!
//! ```text
//! min over p   ½ Σ_i Σ_{j ≠ i} (r_ji p_i − r_ij p_j)²   s.t.   Σ_i p_i = 1,   p ≥ 0
//! ```
//! r_ij is the probability of class i given that the class is i or j, so r_ji = 1 − r_ij. With Q_ii = Σ_{j≠i} r_ji² and
//! Q_ij = −r_ji r_ij, the optimum is where (Q p)_i is the same for all i, and it is positive. The loop sets one p_i
//! after the other to (pᵀQp − Σ_{j≠i} Q_ij p_j) / Q_ii and divides by the sum. It stops when every (Q p)_i is within
//! 1e-12 of pᵀQp, or after 1,000 rounds. Cost: O(k²) a round.
//!
//! Reference: Wu, Lin & Weng, Probability estimates for multi-class classification by pairwise coupling, JMLR 5
//! (2004), second method.

use super::pairs_of;

const ROUNDS: usize = 1000;
const SMALL: f64 = 1e-12;

/// Probabilities are kept this far from 0 and 1, so that every class can be reached from every other.
const LEAST: f64 = 1e-7;

/// The probabilities of the classes, given for each pair (0, 1), (0, 2), … the probability of its first class.
pub fn coupled_pairs(classes: usize, pairs: &[f64]) -> Vec<f64> {
    let mut matrix = vec![0.0; classes * classes];
    for ((first, second), &share) in pairs_of(classes).into_iter().zip(pairs) {
        let share = share.clamp(LEAST, 1.0 - LEAST);
        let other = 1.0 - share;
        matrix[first * classes + first] += other * other;
        matrix[second * classes + second] += share * share;
        matrix[first * classes + second] = -other * share;
        matrix[second * classes + first] = -other * share;
    }
    let mut shares = vec![1.0 / classes as f64; classes];
    let product = |shares: &[f64], row: usize| -> f64 {
        matrix[row * classes..(row + 1) * classes].iter().zip(shares).map(|(q, share)| q * share).sum()
    };
    for _ in 0..ROUNDS {
        let mut products: Vec<f64> = (0..classes).map(|row| product(&shares, row)).collect();
        let mut square: f64 = shares.iter().zip(&products).map(|(share, product)| share * product).sum();
        if products.iter().all(|product| (product - square).abs() <= SMALL) {
            break;
        }
        for row in 0..classes {
            let own = matrix[row * classes + row];
            let change = (square - products[row]) / own;
            shares[row] += change;
            let sum = 1.0 + change;
            square = (square + change * (change * own + 2.0 * products[row])) / (sum * sum);
            for other in 0..classes {
                products[other] = (products[other] + change * matrix[row * classes + other]) / sum;
                shares[other] /= sum;
            }
        }
    }
    let sum: f64 = shares.iter().map(|share| share.max(0.0)).sum();
    shares.iter().map(|share| share.max(0.0) / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_equations_of_the_optimum_hold(classes in 2usize..7, shares in prop::collection::vec(0.01..0.99f64, 15)) {
            let pairs = pairs_of(classes);
            let found = coupled_pairs(classes, &shares[..pairs.len()]);
            prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            // r(i, j) by its definition.
            let r = |i: usize, j: usize| {
                let place = |pair: (usize, usize)| pairs.iter().position(|other| *other == pair).expect("a pair");
                if i < j { shares[place((i, j))] } else { 1.0 - shares[place((j, i))] }
            };
            let slope = |i: usize| -> f64 {
                let others = (0..classes).filter(|&j| j != i);
                others.map(|j| r(j, i) * (r(j, i) * found[i] - r(i, j) * found[j])).sum()
            };
            let first = slope(0);
            for class in 0..classes {
                prop_assert!((slope(class) - first).abs() < 1e-9, "{found:?}");
                prop_assert!(found[class] > 0.0);
            }
        }

        #[test]
        fn consistent_pairs_give_their_classes_back(weights in prop::collection::vec(0.05..1.0f64, 5)) {
            let sum: f64 = weights.iter().sum();
            let pairs: Vec<f64> = pairs_of(5).into_iter().map(|(i, j)| weights[i] / (weights[i] + weights[j])).collect();
            for (found, weight) in coupled_pairs(5, &pairs).into_iter().zip(&weights) {
                prop_assert!((found - weight / sum).abs() < 1e-8, "{found} {weight}");
            }
        }
    }

    #[test]
    fn certain_pairs_do_not_break_it() {
        let found = coupled_pairs(3, &[1.0, 1.0, 0.0]);
        assert!(found[0] > 0.999 && found.iter().all(|share| share.is_finite()), "{found:?}");
        assert_eq!(coupled_pairs(2, &[0.25]).len(), 2);
    }
}
