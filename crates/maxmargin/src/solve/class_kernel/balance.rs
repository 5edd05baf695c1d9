//! A dual point of several classes with free constants, made balanced by scaling its variables down.
//!
//! With free constants the coefficients of every class must add up to zero over all rows. A variable α_im of a row of
//! class y carries α_im from class m to class y, so that this is a balance of flows: as much leaves a class as enters
//! it. The flow from b to a is multiplied by d_a/d_b. The numbers d are found class by class, as in the balancing of a
//! matrix (Osborne, On pre-conditioning of matrices, JACM 7, 1960), and then scaled so that no factor exceeds one,
//! which keeps every variable within its limits. Flows that are on no way back to where they start must be zero.

/// Sweeps end at this imbalance, as a share of the flow through the class.
const BALANCED: f64 = 1e-14;

/// And after this many multiplications.
const MOST_WORK: usize = 1 << 30;

/// The factor of each flow, `flows[a * classes + b]` being that of class a towards b: at most 1.
pub(crate) fn balancing(flows: &[f64], classes: usize) -> Vec<f64> {
    let together = components(flows, classes);
    let kept = |a: usize, b: usize| if together[a] == together[b] { flows[a * classes + b] } else { 0.0 };
    let mut d = vec![1.0f64; classes];
    let sweeps = (MOST_WORK / (classes * classes).max(1)).clamp(1, 20_000);
    for _ in 0..sweeps {
        let mut worst = 0.0f64;
        for a in 0..classes {
            let (mut leaves, mut enters) = (0.0, 0.0);
            for b in (0..classes).filter(|&b| b != a) {
                leaves += kept(a, b) * (d[a] / d[b]);
                enters += kept(b, a) * (d[b] / d[a]);
            }
            if leaves > 0.0 && enters > 0.0 {
                d[a] *= (enters / leaves).sqrt();
                worst = worst.max((enters - leaves).abs() / enters.max(leaves));
            }
        }
        if worst <= BALANCED {
            break;
        }
    }
    let mut factors = vec![0.0; classes * classes];
    let mut largest = 0.0f64;
    for a in 0..classes {
        for b in (0..classes).filter(|&b| kept(a, b) > 0.0) {
            factors[a * classes + b] = d[a] / d[b];
            largest = largest.max(d[a] / d[b]);
        }
    }
    if largest > 0.0 {
        factors.iter_mut().for_each(|factor| *factor = (*factor / largest).min(1.0));
    }
    factors
}

/// A number for each class: classes with the same number reach each other along flows.
fn components(flows: &[f64], classes: usize) -> Vec<usize> {
    let reach = |from: usize, forwards: bool| {
        let mut reached = vec![false; classes];
        let mut open = vec![from];
        reached[from] = true;
        while let Some(a) = open.pop() {
            for b in 0..classes {
                let flow = if forwards { flows[a * classes + b] } else { flows[b * classes + a] };
                if flow > 0.0 && !reached[b] {
                    reached[b] = true;
                    open.push(b);
                }
            }
        }
        reached
    };
    let mut number = vec![usize::MAX; classes];
    for class in 0..classes {
        if number[class] == usize::MAX {
            let (to, from) = (reach(class, true), reach(class, false));
            (0..classes).filter(|&other| to[other] && from[other]).for_each(|other| number[other] = class);
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn scaled_flows_are_balanced_and_none_grows() {
        let mut random = Random::new(2, 1, 0);
        for trial in 0..300usize {
            let classes = 2 + trial % 6;
            let flows: Vec<f64> = (0..classes * classes)
                .map(|at| if at % (classes + 1) == 0 || random.chance(0.4) { 0.0 } else { 10.0 * random.uniform() })
                .collect();
            let factors = balancing(&flows, classes);
            assert!(factors.iter().all(|factor| (0.0..=1.0).contains(factor)));
            let scaled: Vec<f64> = flows.iter().zip(&factors).map(|(flow, factor)| flow * factor).collect();
            for a in 0..classes {
                let leaves: f64 = (0..classes).map(|b| scaled[a * classes + b]).sum();
                let enters: f64 = (0..classes).map(|b| scaled[b * classes + a]).sum();
                assert!((leaves - enters).abs() <= 1e-11 * leaves.max(enters), "{trial}: {leaves} {enters}");
            }
        }
    }

    #[test]
    fn balanced_flows_stay_and_a_dead_end_loses_its_flow() {
        let balanced = [0.0, 2.0, 0.0, 0.0, 0.0, 2.0, 2.0, 0.0, 0.0];
        assert!(balancing(&balanced, 3).iter().zip(balanced).all(|(factor, flow)| flow == 0.0 || *factor == 1.0));
        // Nothing leaves class 2.
        let flows = [0.0, 1.0, 5.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let factors = balancing(&flows, 3);
        assert_eq!((factors[1], factors[3], factors[2]), (1.0, 1.0, 0.0));
    }
}
