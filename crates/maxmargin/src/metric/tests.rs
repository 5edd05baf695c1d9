//! Tests of every metric against its definition, against other programs, and on edge cases.

use super::*;
use crate::data::{Groups, Outcome, Pairs};
use crate::error::Code;
use proptest::prelude::*;

fn metric(name: &str) -> Metric {
    Metric::parse(name).expect("a known metric")
}

fn groups_of(lengths: &[usize]) -> Groups {
    let mut starts = vec![0u64];
    for &length in lengths {
        starts.push(starts[starts.len() - 1] + length as u64);
    }
    Groups::new(starts, (0..lengths.len()).map(|group| group.to_string()).collect()).expect("valid")
}

/// The value on one query.
fn on_list(name: &str, scores: &[f64], grades: &[f64]) -> f64 {
    let groups = Groups::one(scores.len());
    metric(name).evaluate(&Judged::ranking(scores, grades, &groups)).expect("defined").value
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * (1.0 + b.abs())
}

/// The definitions, written without regard to speed.
mod definition {
    use super::Variant;

    /// Every order of the rows that the scores allow, each as a list of grades from the top.
    pub(super) fn orders(scores: &[f64], grades: &[f64]) -> Vec<Vec<f64>> {
        let mut found = Vec::new();
        extend(scores, grades, &mut vec![false; scores.len()], &mut Vec::new(), &mut found);
        found
    }

    fn extend(scores: &[f64], grades: &[f64], used: &mut [bool], so_far: &mut Vec<f64>, found: &mut Vec<Vec<f64>>) {
        if so_far.len() == scores.len() {
            found.push(so_far.clone());
            return;
        }
        let best = (0..scores.len()).filter(|&row| !used[row]).map(|row| scores[row]).fold(f64::MIN, f64::max);
        for row in 0..scores.len() {
            if !used[row] && scores[row] == best {
                used[row] = true;
                so_far.push(grades[row]);
                extend(scores, grades, used, so_far, found);
                so_far.pop();
                used[row] = false;
            }
        }
    }

    /// The order of a variant that breaks ties: takes the best remaining row again and again.
    pub(super) fn order(scores: &[f64], grades: &[f64], later_first: bool) -> Vec<f64> {
        let mut left: Vec<usize> = (0..scores.len()).collect();
        let mut taken = Vec::new();
        while !left.is_empty() {
            let mut best = 0;
            for at in 1..left.len() {
                let (score, leader) = (scores[left[at]], scores[left[best]]);
                if score > leader || (score == leader && later_first) {
                    best = at;
                }
            }
            taken.push(grades[left.remove(best)]);
        }
        taken
    }

    /// The mean of `value` over the orders that the variant considers.
    pub(super) fn mean(variant: Variant, scores: &[f64], grades: &[f64], value: impl Fn(&[f64]) -> f64) -> f64 {
        let orders = match variant {
            Variant::Standard | Variant::Sklearn => orders(scores, grades),
            Variant::Letor | Variant::Mslr => vec![order(scores, grades, false)],
            Variant::Trec => vec![order(scores, grades, true)],
        };
        orders.iter().map(|order| value(order)).sum::<f64>() / orders.len() as f64
    }

    pub(super) fn dcg(variant: Variant, order: &[f64], k: usize) -> f64 {
        let mut sum = 0.0;
        for position in 1..=k.min(order.len()) {
            let grade = order[position - 1].max(0.0);
            let gain = if matches!(variant, Variant::Trec | Variant::Sklearn) { grade } else { 2f64.powf(grade) - 1.0 };
            let logarithm = match variant {
                Variant::Letor | Variant::Mslr if position <= 2 => 1.0,
                Variant::Letor | Variant::Mslr => (position as f64).ln() / 2f64.ln(),
                _ => (position as f64 + 1.0).ln() / 2f64.ln(),
            };
            sum += gain / logarithm;
        }
        sum
    }

    pub(super) fn ndcg(variant: Variant, order: &[f64], k: usize) -> f64 {
        let mut ideal = order.to_vec();
        ideal.sort_by(|a, b| b.total_cmp(a));
        let short = k > order.len() && matches!(variant, Variant::Letor | Variant::Mslr);
        let best = dcg(variant, &ideal, k);
        if best == 0.0 || short { 0.0 } else { dcg(variant, order, k) / best }
    }

    pub(super) fn precision(order: &[f64], k: usize, relevant: f64) -> f64 {
        order.iter().take(k).filter(|&&grade| grade >= relevant).count() as f64 / k as f64
    }

    pub(super) fn average_precision(order: &[f64], relevant: f64) -> f64 {
        let places: Vec<usize> = (1..=order.len()).filter(|place| order[place - 1] >= relevant).collect();
        let sum: f64 = places.iter().map(|&place| precision(order, place, relevant)).sum();
        if places.is_empty() { 0.0 } else { sum / places.len() as f64 }
    }

    /// Average precision over thresholds, each with all rows at or above it.
    pub(super) fn average_precision_over_thresholds(scores: &[f64], positive: &[f64], weights: &[f64]) -> f64 {
        let mut thresholds = scores.to_vec();
        thresholds.sort_by(|a, b| b.total_cmp(a));
        thresholds.dedup();
        let total: f64 = positive.iter().zip(weights).map(|(p, w)| p * w).sum();
        let (mut sum, mut before) = (0.0, 0.0);
        for threshold in thresholds {
            let above = |row: &usize| scores[*row] >= threshold;
            let found: f64 = (0..scores.len()).filter(above).map(|row| positive[row] * weights[row]).sum();
            let all: f64 = (0..scores.len()).filter(above).map(|row| weights[row]).sum();
            if all > 0.0 && total > 0.0 {
                sum += (found - before) / total * found / all;
            }
            before = found;
        }
        sum
    }

    pub(super) fn reciprocal_rank(order: &[f64], k: usize) -> f64 {
        order.iter().take(k).position(|&grade| grade >= 1.0).map_or(0.0, |place| 1.0 / (place as f64 + 1.0))
    }

    pub(super) fn expected_reciprocal_rank(order: &[f64], k: usize, highest: f64) -> f64 {
        let stop = |grade: f64| (2f64.powf(grade.max(0.0)) - 1.0) / 2f64.powf(highest);
        let mut sum = 0.0;
        for place in 0..k.min(order.len()) {
            let reached: f64 = order[..place].iter().map(|&grade| 1.0 - stop(grade)).product();
            sum += reached * stop(order[place]) / (place as f64 + 1.0);
        }
        sum
    }

    /// Counts pair by pair: concordant, discordant, tied in scores only, tied in targets only.
    pub(super) fn pairs(scores: &[f64], targets: &[f64]) -> [f64; 4] {
        let mut counts = [0.0; 4];
        for a in 0..scores.len() {
            for b in 0..a {
                match ((scores[a] - scores[b]), (targets[a] - targets[b])) {
                    (s, t) if s * t > 0.0 => counts[0] += 1.0,
                    (s, t) if s * t < 0.0 => counts[1] += 1.0,
                    (0.0, t) if t != 0.0 => counts[2] += 1.0,
                    (s, 0.0) if s != 0.0 => counts[3] += 1.0,
                    _ => {}
                }
            }
        }
        counts
    }

    /// Of a weight `count` of the rows with the highest scores, the share that is positive. A row has its share of what is
    /// left for the rows with its score.
    pub(super) fn precision_of_first(scores: &[f64], positive: &[f64], weights: &[f64], count: f64) -> f64 {
        let of = |which: &dyn Fn(f64) -> bool| -> f64 {
            scores.iter().zip(weights).filter(|row| which(*row.0)).map(|row| row.1).sum()
        };
        let mut found = 0.0;
        for ((&score, &positive), &weight) in scores.iter().zip(positive).zip(weights) {
            let (above, tied) = (of(&|other| other > score), of(&|other| other == score));
            if tied > 0.0 {
                found += positive * weight * ((count - above) / tied).clamp(0.0, 1.0);
            }
        }
        found / count
    }

    pub(super) fn auc(scores: &[f64], positive: &[f64], weights: &[f64]) -> f64 {
        let (mut right, mut all) = (0.0, 0.0);
        for a in 0..scores.len() {
            for b in 0..scores.len() {
                if positive[a] == 1.0 && positive[b] == 0.0 {
                    let weight = weights[a] * weights[b];
                    all += weight;
                    right += weight
                        * if scores[a] > scores[b] {
                            1.0
                        } else if scores[a] == scores[b] {
                            0.5
                        } else {
                            0.0
                        };
                }
            }
        }
        right / all
    }
}

/// Scores from few values, so that there are many ties, and grades from −1 to 4.
fn lists() -> impl Strategy<Value = Vec<Vec<(f64, f64)>>> {
    let row = (0..4i32, -1..5i32).prop_map(|(score, grade)| (f64::from(score) - 1.5, f64::from(grade)));
    prop::collection::vec(prop::collection::vec(row, 1..7), 1..4)
}

fn flat(lists: &[Vec<(f64, f64)>]) -> (Vec<f64>, Vec<f64>, Groups) {
    let lengths: Vec<usize> = lists.iter().map(Vec::len).collect();
    let rows = lists.iter().flatten();
    (rows.clone().map(|row| row.0).collect(), rows.map(|row| row.1).collect(), groups_of(&lengths))
}

/// Checks a list metric against a definition for one query, for each query and in the mean.
fn check(name: &str, lists: &[Vec<(f64, f64)>], twin: impl Fn(&[f64], &[f64]) -> Option<f64>) {
    let (scores, grades, groups) = flat(lists);
    let expected: Vec<Option<f64>> =
        groups.ranges().map(|range| twin(&scores[range.clone()], &grades[range])).collect();
    let evaluation = metric(name).evaluate(&Judged::ranking(&scores, &grades, &groups));
    if expected.iter().flatten().count() == 0 {
        assert_eq!(evaluation.expect_err("undefined").code(), Code::NoPairs);
        return;
    }
    let evaluation = evaluation.expect("defined");
    let per_query = evaluation.per_query.expect("a list metric");
    assert_eq!(per_query.len(), expected.len());
    for (value, twin) in per_query.iter().zip(&expected) {
        match (value, twin) {
            (Some(value), Some(twin)) => assert!(close(*value, *twin), "{name}: {value} is not {twin} on {lists:?}"),
            (value, twin) => assert_eq!(value, twin, "{name} on {lists:?}"),
        }
    }
    let counted = expected.iter().flatten().count();
    assert_eq!((evaluation.counted, evaluation.skipped), (counted, expected.len() - counted));
    assert!(close(evaluation.value, expected.iter().flatten().sum::<f64>() / counted as f64));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn list_metrics_with_variants_equal_their_definition(lists in lists(), k in 1usize..9) {
        for &variant in Variant::ALL {
            let relevant = if variant == Variant::Mslr { 2.0 } else { 1.0 };
            check(&format!("ndcg@{k}:{variant}"), &lists, |scores, grades| {
                Some(definition::mean(variant, scores, grades, |order| definition::ndcg(variant, order, k)))
            });
            check(&format!("ndcg:{variant}"), &lists, |scores, grades| {
                Some(definition::mean(variant, scores, grades, |order| definition::ndcg(variant, order, order.len())))
            });
            check(&format!("mean-ndcg:{variant}"), &lists, |scores, grades| {
                Some(definition::mean(variant, scores, grades, |order| {
                    (1..=order.len()).map(|k| definition::ndcg(variant, order, k)).sum::<f64>() / order.len() as f64
                }))
            });
            check(&format!("p@{k}:{variant}"), &lists, |scores, grades| {
                Some(definition::mean(variant, scores, grades, |order| definition::precision(order, k, relevant)))
            });
            check(&format!("map:{variant}"), &lists, |scores, grades| Some(if variant == Variant::Sklearn {
                let positive: Vec<f64> = grades.iter().map(|&grade| f64::from(u8::from(grade >= 1.0))).collect();
                definition::average_precision_over_thresholds(scores, &positive, &vec![1.0; scores.len()])
            } else {
                definition::mean(variant, scores, grades, |order| definition::average_precision(order, relevant))
            }));
        }
    }

    #[test]
    fn reciprocal_ranks_equal_their_definition(lists in lists(), k in 1usize..9) {
        let highest = lists.iter().flatten().map(|row| row.1).fold(0.0, f64::max);
        for (suffix, k) in [(format!("@{k}"), k), (String::new(), usize::MAX)] {
            check(&format!("mrr{suffix}"), &lists, |scores, grades| {
                Some(definition::mean(Variant::Standard, scores, grades, |order| definition::reciprocal_rank(order, k)))
            });
            check(&format!("err{suffix}"), &lists, |scores, grades| {
                let order = definition::order(scores, grades, false);
                Some(definition::expected_reciprocal_rank(&order, k, highest))
            });
        }
    }

    #[test]
    fn pair_metrics_equal_counting_pair_by_pair(rows in prop::collection::vec((0..9i32, 0..6i32), 1..60)) {
        let list: Vec<(f64, f64)> = rows.iter().map(|&(score, target)| (score.into(), target.into())).collect();
        check("pair-accuracy", std::slice::from_ref(&list), |scores, targets| {
            let [right, wrong, tied, _] = definition::pairs(scores, targets);
            (right + wrong + tied > 0.0).then(|| (right + 0.5 * tied) / (right + wrong + tied))
        });
        check("kendall-tau", &[list], |scores, targets| {
            let [right, wrong, tied_scores, tied_targets] = definition::pairs(scores, targets);
            let untied = (right + wrong + tied_scores) * (right + wrong + tied_targets);
            (right + wrong + tied_scores > 0.0)
                .then(|| if untied > 0.0 { (right - wrong) / untied.sqrt() } else { 0.0 })
        });
    }

    #[test]
    fn threshold_metrics_equal_their_definition(
        rows in prop::collection::vec((0..6i32, any::<bool>(), 0..4i32), 2..40),
        weighted in any::<bool>(),
    ) {
        let scores: Vec<f64> = rows.iter().map(|row| row.0.into()).collect();
        let positive: Vec<f64> = rows.iter().map(|row| f64::from(u8::from(row.1))).collect();
        let weights: Vec<f64> = rows.iter().map(|row| if weighted { 0.5 * f64::from(row.2) } else { 1.0 }).collect();
        let of_class = |class: f64| -> f64 {
            positive.iter().zip(&weights).filter(|row| *row.0 == class).map(|row| row.1).sum()
        };
        let judged = Judged::reals(&scores, &positive).with_weights(weighted.then_some(&weights[..]));
        let (auc, average) = (metric("auc").evaluate(&judged), metric("average-precision").evaluate(&judged));
        if of_class(0.0) + of_class(1.0) == 0.0 {
            prop_assert_eq!(auc.expect_err("no weight").code(), Code::BadWeight);
        } else if of_class(0.0) == 0.0 || of_class(1.0) == 0.0 {
            prop_assert_eq!(auc.expect_err("one class").code(), Code::SingleClass);
            prop_assert_eq!(average.expect_err("one class").code(), Code::SingleClass);
        } else {
            prop_assert!(close(auc.expect("defined").value, definition::auc(&scores, &positive, &weights)));
            let twin = definition::average_precision_over_thresholds(&scores, &positive, &weights);
            prop_assert!(close(average.expect("defined").value, twin));
            let twin = definition::precision_of_first(&scores, &positive, &weights, of_class(1.0));
            prop_assert!(close(metric("prbep").evaluate(&judged).expect("defined").value, twin));
            let codes: Vec<u32> = rows.iter().map(|row| u32::from(row.1)).collect();
            let classes = Judged::classes(&codes, 2, &codes).with_positive(1).with_scores(&scores);
            let classes = classes.with_weights(weighted.then_some(&weights[..]));
            let twin = definition::precision_of_first(&scores, &positive, &weights, 3.0);
            prop_assert!(close(metric("p@3").evaluate(&classes).expect("defined").value, twin));
        }
    }

    #[test]
    fn class_metrics_equal_their_definition(rows in prop::collection::vec((0..4u32, 0..4u32, 1..4i32), 1..40)) {
        let truth: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let predicted: Vec<u32> = rows.iter().map(|row| row.1).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.2.into()).collect();
        let judged = Judged::classes(&truth, 4, &predicted).with_positive(2).with_weights(Some(&weights));
        let value = |name: &str| metric(name).evaluate(&judged).expect("defined").value;
        let weight = |keep: &dyn Fn(u32, u32) -> bool| -> f64 {
            rows.iter().filter(|row| keep(row.0, row.1)).map(|row| f64::from(row.2)).sum()
        };
        let or_zero = |value: f64| if value.is_nan() { 0.0 } else { value };
        let f1 = |class: u32| {
            let precision = weight(&|t, p| t == class && p == class) / weight(&|_, p| p == class);
            let recall = weight(&|t, p| t == class && p == class) / weight(&|t, _| t == class);
            (or_zero(precision), or_zero(recall), or_zero(2.0 * precision * recall / (precision + recall)))
        };
        let present: Vec<u32> = (0..4).filter(|class| truth.contains(class) || predicted.contains(class)).collect();
        let accuracy = weight(&|t, p| t == p) / weight(&|_, _| true);
        prop_assert!(close(value("accuracy"), accuracy));
        prop_assert!(close(value("f1-micro"), accuracy));
        prop_assert!(close(value("error"), 1.0 - accuracy));
        prop_assert!(close(value("precision"), f1(2).0));
        prop_assert!(close(value("recall"), f1(2).1));
        prop_assert!(close(value("f1"), f1(2).2));
        let mean = present.iter().map(|&class| f1(class).2).sum::<f64>() / present.len() as f64;
        prop_assert!(close(value("f1-macro"), mean));
    }

    #[test]
    fn deviations_equal_their_definition(rows in prop::collection::vec((-9.0..9.0f64, -9.0..9.0f64, 1..4i32), 1..40)) {
        let scores: Vec<f64> = rows.iter().map(|row| row.0).collect();
        let targets: Vec<f64> = rows.iter().map(|row| row.1).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.2.into()).collect();
        let judged = Judged::reals(&scores, &targets).with_weights(Some(&weights));
        let all: f64 = weights.iter().sum();
        let mean = |power: i32| rows.iter().map(|r| f64::from(r.2) * (r.0 - r.1).abs().powi(power)).sum::<f64>() / all;
        prop_assert!(close(metric("mae").evaluate(&judged).expect("defined").value, mean(1)));
        prop_assert!(close(metric("rmse").evaluate(&judged).expect("defined").value, mean(2).sqrt()));
    }

    #[test]
    fn the_order_of_lines_changes_nothing_by_default(lists in lists()) {
        let turned: Vec<Vec<(f64, f64)>> = lists.iter().map(|list| list.iter().rev().copied().collect()).collect();
        let ((scores, grades, groups), (turned_scores, turned_grades, _)) = (flat(&lists), flat(&turned));
        for metric in Metric::ranking_defaults() {
            let value = metric.evaluate(&Judged::ranking(&scores, &grades, &groups)).ok().map(|e| e.value);
            let turned = metric.evaluate(&Judged::ranking(&turned_scores, &turned_grades, &groups)).ok().map(|e| e.value);
            match (value, turned) {
                (Some(value), Some(turned)) => prop_assert!(close(value, turned)),
                (value, turned) => prop_assert_eq!(value, turned),
            }
        }
    }
}

#[test]
fn the_worked_examples_come_out() {
    // Relevant rows at positions 1, 3 and 5: (1/1 + 2/3 + 3/5) / 3.
    let (scores, grades) = ([5.0, 4.0, 3.0, 2.0, 1.0], [1.0, 0.0, 1.0, 0.0, 1.0]);
    for variant in ["standard", "letor", "trec", "sklearn"] {
        let value = on_list(&format!("map:{variant}"), &scores, &grades);
        assert!(close(value, (1.0 + 2.0 / 3.0 + 3.0 / 5.0) / 3.0));
        assert_eq!(format!("{value:.2}"), "0.76");
    }
    // Gains 3, 0, 1 against 3, 1, 0: undiscounted at positions 1 and 2 in the LETOR rule.
    let (scores, grades) = ([3.0, 2.0, 1.0], [2.0, 0.0, 1.0]);
    assert!(close(on_list("ndcg@3:letor", &scores, &grades), (3.0 + 1.0 / 3f64.log2()) / 4.0));
    assert!(close(on_list("ndcg@3", &scores, &grades), (3.0 + 0.5) / (3.0 + 1.0 / 3f64.log2())));
    assert!(close(on_list("ndcg@3:trec", &scores, &grades), (2.0 + 0.5) / (2.0 + 1.0 / 3f64.log2())));
    assert!(close(on_list("mean-ndcg:letor", &scores, &grades), (1.0 + 0.75 + (3.0 + 1.0 / 3f64.log2()) / 4.0) / 3.0));
    assert!(close(on_list("p@2:letor", &scores, &grades), 0.5));
    assert!(close(on_list("map:mslr", &scores, &grades), 1.0));
    // The reader stops at the first row with probability 3/4, and of the remaining ones 1/4 stop at the last row.
    assert!(close(on_list("err", &scores, &grades), 0.75 + 0.25 * 0.25 / 3.0));
    assert!(close(on_list("err@2", &scores, &grades), 0.75));
    assert!(close(on_list("kendall-tau", &scores, &grades), 1.0 / 3.0));
    assert!(close(on_list("pair-accuracy", &scores, &grades), 2.0 / 3.0));
}

/// Values from scikit-learn 1.9.1 and from trec_eval by pytrec-eval-terrier 0.5.11. Document ids rise with the line.
#[test]
fn other_programs_agree() {
    let plain = [
        vec![(0.9, 0.0), (0.1, 2.0), (0.4, 1.0), (0.7, 3.0), (0.3, 0.0), (0.8, 4.0)],
        vec![(1.5, 1.0), (-0.5, 0.0), (0.25, 0.0), (2.0, 0.0)],
        [3.0, 1.0, 2.0, 5.0, 4.0, 0.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
            .into_iter()
            .zip([2.0, 0.0, 1.0, 0.0, 0.0, 4.0, 1.0, 0.0, 0.0, 3.0, 0.0, 1.0])
            .collect(),
    ];
    let tied = [
        vec![(1.0, 0.0), (1.0, 2.0), (0.0, 1.0), (2.0, 3.0), (2.0, 0.0), (2.0, 4.0)],
        vec![(0.0, 1.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)],
        vec![(3.0, 2.0), (1.0, 0.0), (2.0, 1.0), (1.0, 0.0), (2.0, 0.0), (3.0, 4.0)],
    ];
    let golden = [
        ("ndcg:sklearn", 0.6450007324328503, 0.8031797144286328),
        ("ndcg@3:sklearn", 0.5257951187693546, 0.7155492532201303),
        ("map:sklearn", 0.5825617283950617, 0.6055555555555555),
        ("ndcg:trec", 0.6450007324328504, 0.7786367725133864),
        ("ndcg@3:trec", 0.5257951187693547, 0.5703859260964451),
        ("ndcg@10:trec", 0.6003324889308067, 0.7786367725133864),
        ("map:trec", 0.5825617283950617, 0.6458333333333334),
        ("p@5:trec", 0.4000000000000001, 0.4666666666666666),
        ("p@10:trec", 0.3333333333333333, 0.26666666666666666),
    ];
    let value = |name: &str, lists: &[Vec<(f64, f64)>]| {
        let (scores, grades, groups) = flat(lists);
        metric(name).evaluate(&Judged::ranking(&scores, &grades, &groups)).expect("defined").value
    };
    for (name, untied, with_ties) in golden {
        assert!(close(value(name, &plain), untied), "{name}");
        assert!(close(value(name, &tied), with_ties), "{name} with ties");
    }
    assert!(close(value("mrr", &plain), 0.6666666666666666));

    let truth = [0, 1, 1, 0, 1, 0, 0, 1];
    let scores = [0.1, 0.4, 0.4, 0.4, 0.9, 0.2, 0.9, 0.7];
    let weights = [1.0, 2.0, 0.5, 1.0, 3.0, 1.5, 0.25, 1.0];
    let judged = Judged::classes(&truth, 2, &truth).with_scores(&scores);
    let row_value = |name: &str, judged: Judged<'_>| metric(name).evaluate(&judged).expect("defined").value;
    assert!(close(row_value("auc", judged), 0.71875));
    assert!(close(row_value("average-precision", judged), 0.625));
    let judged = judged.with_weights(Some(&weights));
    assert!(close(row_value("auc", judged), 0.8974358974358975));
    assert!(close(row_value("average-precision", judged), 0.893412528210368));
    let judged = Judged::classes(&[0, 1, 2, 2, 1, 0, 3, 1], 4, &[0, 2, 2, 1, 1, 0, 0, 1]);
    assert!(close(row_value("f1-macro", judged), 0.4916666666666667));
    assert!(close(row_value("f1-micro", judged), 0.625));
    assert!(close(row_value("f1-macro", judged.with_weights(Some(&weights))), 0.4824134199134199));
}

#[test]
fn a_query_without_a_relevant_row_counts_as_zero_and_is_noted() {
    let groups = groups_of(&[2, 2]);
    let (scores, grades) = ([2.0, 1.0, 2.0, 1.0], [1.0, 0.0, 0.0, 0.0]);
    for name in ["ndcg", "ndcg@1:letor", "mean-ndcg", "map", "map:sklearn", "mrr", "err", "p@1"] {
        let evaluation = metric(name).evaluate(&Judged::ranking(&scores, &grades, &groups)).expect("defined");
        assert_eq!(evaluation.per_query.expect("a list metric")[1], Some(0.0), "{name}");
        assert_eq!((evaluation.counted, evaluation.skipped), (2, 0));
        assert!(evaluation.notes.iter().any(|note| note == "1 of 2 queries has no relevant row and counts as 0"));
    }
    let evaluation = metric("pair-accuracy").evaluate(&Judged::ranking(&scores, &grades, &groups)).expect("defined");
    assert_eq!((evaluation.value, evaluation.counted, evaluation.skipped), (1.0, 1, 1));
    assert_eq!(evaluation.per_query, Some(vec![Some(1.0), None]));
}

#[test]
fn a_list_shorter_than_the_cutoff_adds_zero_by_the_letor_rule_alone() {
    let (scores, grades) = ([2.0, 1.0], [2.0, 0.0]);
    assert_eq!(on_list("ndcg@3:letor", &scores, &grades), 0.0);
    assert_eq!(on_list("ndcg@3:mslr", &scores, &grades), 0.0);
    for name in ["ndcg@3", "ndcg@3:trec", "ndcg@3:sklearn", "ndcg:letor", "ndcg@2:letor", "mean-ndcg:letor"] {
        assert_eq!(on_list(name, &scores, &grades), 1.0, "{name}");
    }
    assert_eq!(on_list("p@4", &scores, &grades), 0.25);
}

#[test]
fn one_row_and_equal_scores_are_no_trouble() {
    for name in ["ndcg@10", "mean-ndcg", "map", "mrr", "ndcg:sklearn", "p@1"] {
        assert_eq!(on_list(name, &[0.3], &[1.0]), 1.0, "{name}");
    }
    let (scores, grades) = ([0.0, -0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(on_list("pair-accuracy", &scores, &grades), 0.5);
    assert_eq!(on_list("kendall-tau", &scores, &grades), 0.0);
    assert_eq!(on_list("mrr", &scores, &grades), (1.0 + 0.5 + 1.0 / 3.0 + 0.25) / 4.0);
    assert_eq!(on_list("map:letor", &scores, &grades), 0.25);
    assert_eq!(on_list("map:trec", &scores, &grades), 1.0);
    assert_eq!(metric("auc").evaluate(&Judged::reals(&scores, &grades)).expect("defined").value, 0.5);
}

#[test]
fn huge_grades_do_not_overflow() {
    let (scores, grades) = ([1.0, 3.0, 2.0], [5000.0, 4999.0, 10.0]);
    let value = on_list("ndcg", &scores, &grades);
    assert!(close(value, (0.5 + 0.5) / (1.0 + 0.5 / 3f64.log2())));
    let value = on_list("ndcg:trec", &scores, &[1e308, 1e308, 1e308]);
    assert!(close(value, 1.0));
    assert!(on_list("err", &scores, &grades).is_finite());
    let rmse = metric("rmse").evaluate(&Judged::reals(&[1e200, 0.0], &[0.0, 0.0])).expect("defined").value;
    assert!((rmse / (1e200 * 0.5f64.sqrt()) - 1.0).abs() < 1e-12);
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let code = |name: &str, judged: Judged<'_>| metric(name).evaluate(&judged).expect_err("refused").code();
    let none = Groups::new(vec![0], [""; 0].into_iter().collect()).expect("valid");
    assert_eq!(code("ndcg@10", Judged::ranking(&[], &[], &none)), Code::NoRows);
    assert_eq!(code("auc", Judged::reals(&[], &[])), Code::NoRows);
    assert_eq!(code("accuracy", Judged::classes(&[], 2, &[])), Code::NoRows);
    let two = [1.0, 2.0];
    assert_eq!(code("auc", Judged::reals(&two, &[1.0, 1.0])), Code::SingleClass);
    assert_eq!(code("auc", Judged::classes(&[1, 1], 2, &[0, 1]).with_scores(&two)), Code::SingleClass);
    assert_eq!(code("auc", Judged::classes(&[0, 1], 2, &[0, 1])), Code::MetricMismatch);
    assert_eq!(code("auc", Judged::classes(&[0, 1], 3, &[0, 1]).with_scores(&two)), Code::TooManyClasses);
    assert_eq!(code("f1", Judged::classes(&[0, 1], 3, &[0, 1])), Code::TooManyClasses);
    assert_eq!(code("auc", Judged::reals(&[1.0, 2.0, 3.0], &[0.0, 1.0, 2.0])), Code::MetricMismatch);
    assert_eq!(code("ndcg", Judged::reals(&two, &two)), Code::NoGroups);
    assert_eq!(code("accuracy", Judged::reals(&two, &two)), Code::MetricMismatch);
    assert_eq!(code("mae", Judged::classes(&[0, 1], 2, &[0, 1]).with_scores(&two)), Code::MetricMismatch);
    assert_eq!(code("auc", Judged::reals(&[f64::NAN, 1.0], &[0.0, 1.0])), Code::MetricMismatch);
    assert_eq!(code("rmse", Judged::reals(&[f64::INFINITY, 1.0], &[0.0, 1.0])), Code::MetricMismatch);
    assert_eq!(code("rmse", Judged::reals(&two, &[f64::NAN, 1.0])), Code::MetricMismatch);
    assert_eq!(code("rmse", Judged::reals(&two, &two).with_weights(Some(&[1.0, -1.0]))), Code::BadWeight);
    assert_eq!(code("rmse", Judged::reals(&two, &[1.0])), Code::Internal);
    assert_eq!(code("accuracy", Judged::classes(&[0, 7], 2, &[0, 1])), Code::Internal);
}

#[test]
fn classes_can_be_ranked_within_queries() {
    let groups = groups_of(&[3]);
    let judged = Judged::classes(&[0, 1, 0], 2, &[0, 0, 0]).with_scores(&[3.0, 2.0, 1.0]);
    let judged = Judged { groups: Some(&groups), ..judged };
    assert_eq!(metric("mrr").evaluate(&judged).expect("defined").value, 0.5);
}

fn random(count: usize, seed: u64) -> Vec<f64> {
    use rand::{RngExt, SeedableRng};
    let mut generator = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..count).map(|_| generator.random::<f64>()).collect()
}

#[test]
fn intervals_do_not_depend_on_threads() {
    let scores = random(600, 1);
    let grades: Vec<f64> = random(600, 2).iter().map(|value| (value * 3.0).floor()).collect();
    let labels: Vec<f64> = grades.iter().map(|&grade| f64::from(u8::from(grade > 0.0))).collect();
    let groups = groups_of(&[10; 60]);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let ranked = metric("ndcg@10").bootstrap(&Judged::ranking(&scores, &grades, &groups), 200, 7);
            let rows = metric("auc").bootstrap(&Judged::reals(&scores, &labels), 200, 7);
            (ranked.expect("defined").expect("queries"), rows.expect("defined").expect("rows"))
        })
    };
    let (ranked, rows) = run(1);
    assert_eq!((ranked, rows), run(3));
    let value = metric("ndcg@10").evaluate(&Judged::ranking(&scores, &grades, &groups)).expect("defined");
    assert!(ranked.low < value.value && value.value < ranked.high);
    assert_ne!(value.bootstrap(200, 7), value.bootstrap(200, 8));
    assert_eq!(value.bootstrap(200, 7), Some(ranked));
    assert_eq!(value.bootstrap(0, 7), None);
}

#[test]
fn the_interval_of_a_fraction_is_the_binomial_one() {
    let truth: Vec<u32> = random(4000, 3).iter().map(|&value| u32::from(value < 0.3)).collect();
    let judged = Judged::classes(&truth, 2, &[0; 4000]);
    let interval = metric("accuracy").bootstrap(&judged, 1000, 1).expect("defined").expect("rows");
    let expected = (0.3f64 * 0.7 / 4000.0).sqrt();
    assert!((interval.standard_error / expected - 1.0).abs() < 0.15, "{interval:?}");
    assert!((interval.half_width() / (1.96 * expected) - 1.0).abs() < 0.15, "{interval:?}");
    assert_eq!(metric("accuracy").bootstrap(&Judged::classes(&[1], 2, &[1]), 10, 1).expect("defined"), None);
}

#[test]
fn the_roc_curve_runs_from_corner_to_corner_under_its_area() {
    let scores = random(5000, 4);
    let positive: Vec<bool> = scores.iter().zip(random(5000, 5)).map(|(&score, noise)| score + noise > 1.0).collect();
    let labels: Vec<f64> = positive.iter().map(|&positive| f64::from(u8::from(positive))).collect();
    let area = |curve: &[(f64, f64)]| -> f64 {
        curve.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
    };
    let auc = metric("auc").evaluate(&Judged::reals(&scores, &labels)).expect("defined").value;
    let whole = roc_curve(&scores, &positive, usize::MAX);
    assert_eq!(whole.len(), 5001);
    assert!(close(area(&whole), auc));
    let thin = roc_curve(&scores, &positive, 100);
    assert!(thin.len() <= 100 && thin.len() > 90, "{}", thin.len());
    assert!((area(&thin) - auc).abs() < 1e-3);
    for curve in [&whole, &thin, &roc_curve(&scores, &positive, 0)] {
        assert_eq!((curve[0], curve[curve.len() - 1]), ((0.0, 0.0), (1.0, 1.0)));
        assert!(curve.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
    }
    assert_eq!(roc_curve(&[1.0, 1.0], &[true, false], 10), vec![(0.0, 0.0), (1.0, 1.0)]);
    assert!(roc_curve(&[1.0], &[true], 10).is_empty());
}

/// An algorithm with quadratic cost would take hours here.
#[test]
fn a_million_rows_are_no_trouble() {
    let rows = 1_000_000;
    let scores = random(rows, 6);
    let grades: Vec<f64> = random(rows, 7).iter().map(|value| (value * 5.0).floor()).collect();
    let labels: Vec<f64> = grades.iter().map(|&grade| f64::from(u8::from(grade >= 3.0))).collect();
    let tied: Vec<f64> = scores.iter().map(|score| (score * 3.0).floor()).collect();
    for (scores, groups) in [(&tied, Groups::one(rows)), (&scores, groups_of(&[10; 100_000]))] {
        for name in ["ndcg@10", "mean-ndcg", "map", "mrr", "err", "kendall-tau", "pair-accuracy"] {
            let evaluation = metric(name).evaluate(&Judged::ranking(scores, &grades, &groups)).expect("defined");
            assert!(evaluation.value.is_finite() && evaluation.value.abs() <= 1.0, "{name}");
        }
    }
    for name in ["auc", "average-precision", "rmse"] {
        let value = metric(name).evaluate(&Judged::reals(&scores, &labels)).expect("defined").value;
        assert!((value - 0.5).abs() < 0.2, "{name}: {value}");
    }
}

#[test]
fn guesses_of_comparisons_have_an_area_of_a_quarter() {
    let mut random = crate::random::Random::new(3, 0, 0);
    let count = 4000u32;
    let scores: Vec<f64> = (0..2 * count).map(|_| random.normal()).collect();
    let outcomes: Vec<Outcome> = (0..count).map(|pair| Outcome::of_sign([-1, 0, 1, 0][pair as usize % 4])).collect();
    let pairs = Pairs::new((0..count).collect::<Vec<u32>>(), (count..2 * count).collect::<Vec<u32>>())
        .and_then(|pairs| pairs.with_outcomes(outcomes))
        .expect("valid");
    let area = Metric::Auc.evaluate(&Judged::comparisons(&scores, &pairs, 0.1)).expect("both kinds").value;
    assert!((area - 0.25).abs() < 0.02, "{area}");
    assert!(Metric::Auc.description_for_pairs().contains("0.25"));
    for name in Metric::comparison_defaults() {
        assert!(!name.description_for_pairs().contains("row"), "{name}");
    }
}

/// True code, score of each of three classes and weight. The code 3 is one that the model does not know.
type ScoredRow = (u32, [i32; 3], i32);

/// The definitions over several classes.
mod of_classes {
    /// Every order of the classes that the scores allow, and whether the class is among the first k: the mean.
    pub(super) fn top(scores: &[f64], class: usize, k: usize) -> f64 {
        let own: Vec<f64> = (0..scores.len()).map(|other| f64::from(u8::from(other == class))).collect();
        let orders = super::definition::orders(scores, &own);
        let found = orders.iter().filter(|order| order.iter().take(k).any(|&own| own == 1.0)).count();
        found as f64 / orders.len() as f64
    }

    /// Kappa from the whole table and the one that chance expects.
    pub(super) fn kappa(table: &[[f64; 3]; 3]) -> Option<f64> {
        let all: f64 = table.iter().flatten().sum();
        let (mut apart, mut expected) = (0.0, 0.0);
        for i in 0..3 {
            for j in 0..3 {
                let column: f64 = (0..3).map(|m| table[m][j]).sum();
                let distance = (i as f64 - j as f64).powi(2);
                apart += table[i][j] * distance;
                expected += table[i].iter().sum::<f64>() * column / all * distance;
            }
        }
        if apart == 0.0 { Some(1.0) } else { (expected > 0.0).then(|| 1.0 - apart / expected) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn metrics_over_scores_of_classes_equal_their_definition(
        rows in prop::collection::vec((0..4u32, [0..3i32, 0..3i32, 0..3i32], 1..4i32), 2..30),
        k in 1usize..5,
    ) {
        let rows: Vec<ScoredRow> = rows;
        let truth: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let scores: Vec<f64> = rows.iter().flat_map(|row| row.1.map(f64::from)).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.2.into()).collect();
        let first = |row: &ScoredRow| (0..3).fold(0, |best, class| if row.1[class] > row.1[best] { class } else { best });
        let predicted: Vec<u32> = rows.iter().map(|row| first(row) as u32).collect();
        let judged = Judged::classes(&truth, 4, &predicted).with_known(3).with_class_scores(&scores);
        let judged = judged.with_weights(Some(&weights));
        let all: f64 = weights.iter().sum();

        let top = metric(&format!("top-accuracy@{k}")).evaluate(&judged).expect("defined");
        let found: f64 = rows.iter().zip(&weights).zip(scores.chunks(3)).map(|((row, weight), scores)| {
            if row.0 < 3 { weight * of_classes::top(scores, row.0 as usize, k) } else { 0.0 }
        }).sum();
        prop_assert!(close(top.value, found / all), "{} {}", top.value, found / all);
        prop_assert_eq!(top.notes.is_empty(), k < 3);

        let (mut areas, mut averages, mut shares) = (vec![], vec![], vec![]);
        for class in 0..3usize {
            let positive: Vec<f64> = truth.iter().map(|&code| f64::from(u8::from(code as usize == class))).collect();
            let share: f64 = positive.iter().zip(&weights).map(|(positive, weight)| positive * weight).sum();
            if share > 0.0 && share < all {
                let own: Vec<f64> = scores.chunks(3).map(|scores| scores[class]).collect();
                areas.push(definition::auc(&own, &positive, &weights));
                averages.push(definition::average_precision_over_thresholds(&own, &positive, &weights));
                shares.push(share);
            }
        }
        let auc = metric("auc").evaluate(&judged);
        if areas.is_empty() {
            prop_assert_eq!(auc.expect_err("one class").code(), Code::SingleClass);
        } else {
            let count = areas.len() as f64;
            let auc = auc.expect("defined");
            prop_assert!(close(auc.value, areas.iter().sum::<f64>() / count));
            prop_assert_eq!(auc.notes.len(), usize::from(areas.len() < 3));
            let weighted: f64 = areas.iter().zip(&shares).map(|(area, share)| area * share).sum();
            let value = |name: &str| metric(name).evaluate(&judged).expect("defined").value;
            prop_assert!(close(value("auc-weighted"), weighted / shares.iter().sum::<f64>()));
            prop_assert!(close(value("average-precision"), averages.iter().sum::<f64>() / count));
        }
    }

    #[test]
    fn metrics_over_ordered_classes_equal_their_definition(
        rows in prop::collection::vec((0..4u32, 0..3u32, 1..4i32), 1..30),
    ) {
        let truth: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let predicted: Vec<u32> = rows.iter().map(|row| row.1).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.2.into()).collect();
        let judged = Judged::classes(&truth, 4, &predicted).with_known(3).with_weights(Some(&weights));
        let known: Vec<_> = rows.iter().filter(|row| row.0 < 3).collect();
        let mut table = [[0.0; 3]; 3];
        known.iter().for_each(|row| table[row.0 as usize][row.1 as usize] += f64::from(row.2));
        match (metric("qwk").evaluate(&judged), of_classes::kappa(&table).filter(|_| !known.is_empty())) {
            (Ok(kappa), Some(twin)) => {
                prop_assert!((kappa.value - twin).abs() < 1e-9, "{} {twin}", kappa.value);
                prop_assert_eq!(kappa.counted, known.len());
                prop_assert_eq!(kappa.notes.len(), usize::from(known.len() < rows.len()));
            }
            (kappa, twin) => prop_assert!(twin.is_none() && kappa.is_err(), "{kappa:?} {twin:?}"),
        }
        let column = |side: fn(&(u32, u32, i32)) -> u32| known.iter().map(|row| f64::from(side(row))).collect::<Vec<_>>();
        let [right, wrong, tied_scores, tied_targets] = definition::pairs(&column(|row| row.1), &column(|row| row.0));
        let untied = (right + wrong + tied_scores) * (right + wrong + tied_targets);
        match metric("kendall-tau").evaluate(&judged) {
            Ok(tau) => {
                let twin = if untied > 0.0 { (right - wrong) / untied.sqrt() } else { 0.0 };
                prop_assert!(close(tau.value, twin), "{} {twin}", tau.value);
            }
            Err(_) => prop_assert_eq!(right + wrong + tied_scores, 0.0),
        }

        let counted = ClassTable::new(&truth, &predicted, Some(&weights), 4);
        let all: f64 = weights.iter().sum();
        for (class, figures) in counted.by_class().into_iter().enumerate() {
            let weight = |keep: &dyn Fn(u32, u32) -> bool| -> f64 {
                rows.iter().filter(|row| keep(row.0, row.1)).map(|row| f64::from(row.2)).sum()
            };
            let is = |code: u32| code as usize == class;
            prop_assert_eq!(figures.support, weight(&|t, _| is(t)));
            prop_assert_eq!(figures.predicted, weight(&|_, p| is(p)));
            let right = weight(&|t, p| is(t) && is(p));
            prop_assert_eq!(figures.precision, if figures.predicted > 0.0 { right / figures.predicted } else { 0.0 });
            prop_assert_eq!(figures.recall, if figures.support > 0.0 { right / figures.support } else { 0.0 });
        }
        prop_assert!(close(counted.cells().map(|cell| cell.weight).sum::<f64>(), all));
        let confused = counted.confusions();
        prop_assert!(confused.is_sorted_by(|a, b| a.weight >= b.weight));
        let wrong = confused.iter().map(|cell| cell.weight).sum::<f64>();
        prop_assert!(close(wrong / all, metric("error").evaluate(&judged).expect("defined").value));

        let f1 = |name: &str| metric(name).evaluate(&judged).expect("defined").value;
        let present: Vec<_> =
            counted.by_class().into_iter().filter(|class| class.support + class.predicted > 0.0).collect();
        let mean = |value: fn(&ByClass) -> f64| present.iter().map(value).sum::<f64>() / present.len() as f64;
        prop_assert!(close(f1("precision-macro"), mean(|class| class.precision)));
        prop_assert!(close(f1("recall-macro"), mean(|class| class.recall)));
        prop_assert!(close(f1("f1-macro"), mean(|class| class.f1)));
    }

    #[test]
    fn metrics_over_probabilities_equal_their_definition(
        rows in prop::collection::vec((0..3u32, 1..100i32, 1..4i32), 1..40),
    ) {
        let truth: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let probabilities: Vec<f64> =
            rows.iter().flat_map(|row| [f64::from(row.1) / 100.0, 1.0 - f64::from(row.1) / 100.0]).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.2.into()).collect();
        let predicted: Vec<u32> = rows.iter().map(|row| u32::from(row.1 < 50)).collect();
        let judged = Judged::classes(&truth, 3, &predicted).with_known(2).with_probabilities(&probabilities);
        let judged = judged.with_weights(Some(&weights));
        let known: Vec<usize> = (0..rows.len()).filter(|&row| truth[row] < 2).collect();
        let weight = |rows: &[usize]| rows.iter().map(|&row| weights[row]).sum::<f64>();
        match metric("log-loss").evaluate(&judged) {
            Ok(loss) => {
                let own = |row: usize| probabilities[2 * row + truth[row] as usize];
                let sum: f64 = known.iter().map(|&row| -weights[row] * own(row).ln()).sum();
                prop_assert!(close(loss.value, sum / weight(&known)));
                prop_assert_eq!(loss.counted, known.len());
            }
            Err(error) => prop_assert!(known.is_empty() && error.code() == Code::MetricMismatch),
        }
        let confidence = |row: usize| probabilities[2 * row + predicted[row] as usize];
        let mut error = 0.0;
        for bin in 0..10 {
            // A hundredth is not exact in binary, so that the border is compared as the metric does.
            let inside = |row: &usize| ((confidence(*row) * 10.0) as usize).min(9) == bin;
            let own: Vec<usize> = (0..rows.len()).filter(inside).collect();
            let right: Vec<usize> = own.iter().copied().filter(|&row| truth[row] == predicted[row]).collect();
            let sum: f64 = own.iter().map(|&row| weights[row] * confidence(row)).sum();
            error += (weight(&right) - sum).abs();
        }
        let all: f64 = weights.iter().sum();
        prop_assert!(close(metric("calibration-error").evaluate(&judged).expect("defined").value, error / all));
    }
}

#[test]
fn sizes_of_class_scores_are_checked() {
    let judged = Judged::classes(&[0, 1], 2, &[0, 1]);
    let code = |name: &str, judged: Judged<'_>| metric(name).evaluate(&judged).expect_err("refused").code();
    assert_eq!(code("auc", judged.with_class_scores(&[1.0, 2.0])), Code::Internal);
    assert_eq!(code("auc", judged.with_class_scores(&[1.0, 2.0, f64::NAN, 0.0])), Code::MetricMismatch);
    assert_eq!(code("top-accuracy@1", judged), Code::MetricMismatch);
    assert_eq!(code("calibration-error", judged), Code::MetricMismatch);
    assert_eq!(code("qwk", Judged::classes(&[1, 1], 2, &[0, 0]).with_known(1)), Code::MetricMismatch);
    let zero = judged.with_probabilities(&[0.0, 1.0, 0.5, 0.5]);
    let loss = metric("log-loss").evaluate(&zero).expect("finite").value;
    assert!(loss.is_finite() && loss > 300.0, "{loss}");
}

#[test]
fn one_class_predicted_as_it_agrees_fully() {
    assert_eq!(metric("qwk").evaluate(&Judged::classes(&[1, 1], 3, &[1, 1])).expect("defined").value, 1.0);
    let opposite = metric("qwk").evaluate(&Judged::classes(&[0, 2], 3, &[2, 0])).expect("defined").value;
    assert!(close(opposite, -1.0));
}
