//! Every search against a list of all orders, and every loss against the metric of the same name.

use super::*;
use crate::data::{Dense, Groups, Matrix, Names, Targets};
use crate::metric::{Judged, Metric};
use crate::random::Random;

fn data(grades: &[f64], starts: Vec<u64>) -> Dataset {
    let matrix = Matrix::DenseF64(Dense::new(vec![0.0; grades.len()], grades.len(), 1).expect("whole rows"));
    let names: Names = (1..starts.len()).map(|query| format!("q{query}")).collect();
    let data = Dataset::new(matrix, Targets::Real(grades.to_vec().into())).expect("valid");
    data.with_groups(Groups::new(starts, names).expect("rising")).expect("valid")
}

fn one(grades: &[f64], measure: &str, score: OrderScore) -> Result<Rankings> {
    let data = data(grades, vec![0, grades.len() as u64]);
    Rankings::on(&data, measure.parse().expect("known"), score, None)
}

/// The measure of an order, by the metric; `order` lists rows from the first.
fn metric(name: &str, grades: &[f64], order: &[usize]) -> f64 {
    let mut scores = vec![0.0; order.len()];
    order.iter().enumerate().for_each(|(at, &row)| scores[row] = -(at as f64));
    let groups = Groups::new(vec![0, grades.len() as u64], ["q"].into_iter().collect()).expect("valid");
    let judged = Judged::ranking(&scores, grades, &groups);
    let metric = Metric::parse(if name == "auc" { "pair-accuracy" } else { name }).expect("known");
    metric.evaluate(&judged).expect("defined").value
}

fn each_order(count: usize, mut visit: impl FnMut(&[usize])) {
    fn go(order: &mut Vec<usize>, left: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
        if left.is_empty() {
            return visit(order);
        }
        for at in 0..left.len() {
            let row = left.remove(at);
            order.push(row);
            go(order, left, visit);
            order.pop();
            left.insert(at, row);
        }
    }
    go(&mut Vec::new(), &mut (0..count).collect(), &mut visit);
}

/// Σ over pairs of a relevant row i and another row j of (y_ij − 1)(s_i − s_j), over the number of pairs or not.
fn score_below_truth(relevant: &[bool], scores: &[f64], order: &[usize], mean: bool) -> f64 {
    let (mut sum, mut pairs) = (0.0, 0.0);
    let place: Vec<usize> = (0..order.len()).map(|row| order.iter().position(|r| *r == row).expect("in it")).collect();
    for i in (0..scores.len()).filter(|&i| relevant[i]) {
        for j in (0..scores.len()).filter(|&j| !relevant[j]) {
            pairs += 1.0;
            sum += if place[i] < place[j] { 0.0 } else { -2.0 * (scores[i] - scores[j]) };
        }
    }
    if mean { sum / pairs } else { sum }
}

const MEASURES: [&str; 14] = [
    "map",
    "ndcg",
    "ndcg@1",
    "ndcg@3",
    "ndcg:letor",
    "ndcg@4:letor",
    "ndcg:trec",
    "auc",
    "p@1",
    "p@2",
    "p@4",
    "mrr",
    "mrr@2",
    "map:mslr",
];

/// Scores of about the size at which the loss and the scores balance, some of them equal.
fn scores(random: &mut Random, count: usize) -> Vec<f64> {
    let size = [0.05, 0.5, 2.0][random.below(3) as usize];
    let rounded = random.chance(0.3);
    let score = |random: &mut Random| {
        let score = size * random.normal();
        if rounded { (score * 4.0).round() / 4.0 } else { score }
    };
    (0..count).map(|_| score(random)).collect()
}

#[test]
fn no_order_is_more_violated_than_the_one_found() {
    let mut random = Random::new(7, 1, 0);
    let mut tried = 0;
    for case in 0..4200 {
        let name = MEASURES[case % MEASURES.len()];
        let (measure, count) = (name.parse::<RankMeasure>().expect("known"), 2 + random.below(5) as usize);
        // Two grades, of which the higher is relevant by any rule.
        let grades: Vec<f64> = (0..count).map(|_| if random.chance(0.45) { 2.0 } else { 0.0 }).collect();
        let mean = random.chance(0.5);
        let order_score = if mean { OrderScore::Mean } else { OrderScore::Sum };
        let Ok(rankings) = one(&grades, name, order_score) else { continue };
        tried += 1;
        assert!(!rankings.is_bound());
        let scores = scores(&mut random, count);
        let (mut output, mut plane) = (Vec::new(), Plane::default());
        let at = Scores { rows: &scores, shared: &[] };
        rankings.most_violated(0, at, &mut output).expect("found");
        rankings.plane(0, &output, &mut plane).expect("an order");
        let found = plane.value(at);
        let relevant: Vec<bool> = grades.iter().map(|grade| *grade >= 2.0).collect();
        let best_of_all = best_measure(name, &grades);
        let mut highest = f64::NEG_INFINITY;
        each_order(count, |order| {
            let loss = best_of_all - measured(name, measure, &grades, order);
            highest = highest.max(loss + score_below_truth(&relevant, &scores, order, mean));
        });
        assert!(
            (found - highest).abs() < 1e-12 * (1.0 + highest.abs()),
            "{name} {grades:?} {scores:?}: {found} {highest}"
        );
    }
    assert!(tried > 3000, "{tried}");
}

/// The measure of an order. For short lists, NDCG@K by the rule of LETOR is 0 whatever the order, and is trained as
/// if K were the length.
fn measured(name: &str, measure: RankMeasure, grades: &[f64], order: &[usize]) -> f64 {
    match measure {
        RankMeasure::Ndcg(Some(cutoff), Variant::Letor) if cutoff.get() > grades.len() => {
            metric("ndcg:letor", grades, order)
        }
        _ => metric(name, grades, order),
    }
}

fn best_measure(name: &str, grades: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..grades.len()).collect();
    order.sort_by(|&a, &b| grades[b].total_cmp(&grades[a]));
    measured(name, name.parse().expect("known"), grades, &order)
}

#[test]
fn with_several_grades_ndcg_is_a_weighted_sum_and_the_loss_an_upper_bound() {
    let mut random = Random::new(11, 1, 0);
    for case in 0..1500 {
        let name = ["ndcg", "ndcg@2", "ndcg@4", "ndcg:letor", "ndcg:trec"][case % 5];
        let measure: RankMeasure = name.parse().expect("known");
        let count = 2 + random.below(5) as usize;
        let grades: Vec<f64> = (0..count).map(|_| random.below(4) as f64).collect();
        let Ok(rankings) = one(&grades, name, OrderScore::Mean) else { continue };
        let query = &rankings.queries[0];
        let scores = scores(&mut random, count);
        let at = Scores { rows: &scores, shared: &[] };
        let (mut output, mut plane) = (Vec::new(), Plane::default());
        rankings.most_violated(0, at, &mut output).expect("found");
        rankings.plane(0, &output, &mut plane).expect("an order");
        let (mut common, mut apart) = (f64::NEG_INFINITY, vec![f64::NEG_INFINITY; query.levels.len()]);
        each_order(count, |order| {
            let mut value = 0.0;
            let mut loss = 0.0;
            for (level, best) in query.levels.iter().zip(&mut apart) {
                // Rows of at least this grade against the others, as two grades.
                let least = rankings.grades.iter().zip(&grades).find(|(number, _)| **number == level.from);
                let least = *least.expect("present").1;
                let relevant: Vec<bool> = grades.iter().map(|grade| *grade >= least).collect();
                let two: Vec<f64> = relevant.iter().map(|own| f64::from(u8::from(*own))).collect();
                let own = 1.0 - measured(name, measure, &two, order);
                loss += level.share * own;
                let own = level.share * (own + score_below_truth(&relevant, &scores, order, true));
                value += own;
                *best = best.max(own);
            }
            let truth = 1.0 - measured(name, measure, &grades, order);
            assert!((loss - truth).abs() < 1e-12, "{name} {grades:?} {order:?}: {loss} {truth}");
            common = f64::max(common, value);
        });
        let found = plane.value(at);
        let sum: f64 = apart.iter().sum();
        assert!((found - sum).abs() < 1e-12 * (1.0 + sum.abs()), "{name} {grades:?}: {found} {sum}");
        assert!(found >= common - 1e-12);
    }
}

#[test]
fn long_lists_agree_with_a_search_by_all_positions_of_each_row() {
    let mut random = Random::new(5, 1, 0);
    for case in 0..60 {
        let name = ["map", "ndcg", "ndcg@20", "p@20", "mrr"][case % 5];
        let count = 100 + random.below(100) as usize;
        let grades: Vec<f64> = (0..count).map(|_| if random.chance(0.2) { 1.0 } else { 0.0 }).collect();
        let rankings = one(&grades, name, OrderScore::Mean).expect("two grades");
        let scores = scores(&mut random, count);
        let at = Scores { rows: &scores, shared: &[] };
        let (mut output, mut plane) = (Vec::new(), Plane::default());
        rankings.most_violated(0, at, &mut output).expect("found");
        rankings.plane(0, &output, &mut plane).expect("an order");
        let found = plane.value(at);
        let slow = by_table(&rankings, &scores);
        assert!((found - slow).abs() < 1e-11 * (1.0 + slow.abs()), "{name}: {found} {slow}");
    }
}

/// The largest value over all c_1 ≤ … ≤ c_R, by a table over relevant rows and others: O(RN).
fn by_table(rankings: &Rankings, scores: &[f64]) -> f64 {
    let (query, level) = (&rankings.queries[0], &rankings.queries[0].levels[0]);
    let mut lists = Lists::default();
    lists.sort(scores);
    lists.split(|place| rankings.grades[place as usize] >= level.from);
    let sigma = rankings.sigma(query, level);
    let (relevant, others) = (&lists.relevant, &lists.others);
    // best[c] is the best value of the first relevant rows, the last of which has c others above it.
    let mut best = vec![0.0; others.len() + 1];
    for (i, score) in relevant.iter().enumerate() {
        let (mut highest, mut crossing) = (f64::NEG_INFINITY, 0.0);
        for c in 0..=others.len() {
            if c > 0 {
                crossing += sigma * (others[c - 1] - score);
            }
            highest = f64::max(highest, best[c]);
            // The loss of this row alone: those before it stand right.
            let rows = std::iter::repeat_n(0, i).chain([c]);
            best[c] = highest + rankings.loss(query, level, rows) + crossing;
        }
    }
    best.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn the_average_precision_of_relevant_rows_at_1_3_and_5_is_076() {
    let grades = [1.0, 0.0, 1.0, 0.0, 1.0];
    let rankings = one(&grades, "map", OrderScore::Mean).expect("two grades");
    // Above the second relevant row stands one other, above the third two; below the others stand two and one.
    let mut plane = Plane::default();
    rankings.plane(0, &[0, 2, 1, 1, 2], &mut plane).expect("an order");
    let precision = (1.0 / 1.0 + 2.0 / 3.0 + 3.0 / 5.0) / 3.0;
    assert!((1.0 - plane.loss - precision).abs() < 1e-15 && (precision - 0.76).abs() < 0.005);
    assert!((metric("map", &grades, &[0, 1, 2, 3, 4]) - precision).abs() < 1e-15);
    // Three of the six pairs are wrong, and each counts 2 / 6.
    let third = 1.0 / 3.0;
    assert_eq!(plane.rows, [(1, 2.0 * third), (2, -third), (3, third), (4, -2.0 * third)]);
}

#[test]
fn numbers_that_are_no_order_are_refused() {
    let rankings = one(&[1.0, 0.0, 1.0, 0.0], "map", OrderScore::Mean).expect("two grades");
    let mut plane = Plane::default();
    for output in [&[0, 0, 0][..], &[0; 5], &[3, 0, 0, 0], &[0, 3, 0, 0], &[1, 0, 0, 0], &[1, 1, 1, 0], &[2, 1, 0, 2]] {
        assert!(rankings.plane(0, output, &mut plane).is_err(), "{output:?}");
    }
    for output in [[0; 4], [0, 1, 1, 0], [1, 2, 1, 0], [2; 4]] {
        rankings.plane(0, &output, &mut plane).expect("an order");
        assert_eq!(plane.loss == 0.0, output == [0; 4]);
    }
}

#[test]
fn queries_without_a_wrong_order_are_left_out_and_counted() {
    let grades = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0];
    let data = data(&grades, vec![0, 2, 4, 6, 9]);
    for (measure, examples) in [("map", 2), ("auc", 2), ("p@2", 1), ("map:mslr", 1), ("mrr", 2), ("ndcg@5", 2)] {
        let rankings = Rankings::on(&data, measure.parse().expect("known"), OrderScore::Mean, None).expect("some");
        assert_eq!((rankings.examples(), rankings.left_out()), (examples, 4 - examples), "{measure}");
    }
    let error = one(&[1.0, 1.0], "map", OrderScore::Mean).expect_err("one grade");
    assert_eq!(error.code(), Code::NoPairs);
}

#[test]
fn a_query_has_the_weight_that_its_rows_share() {
    let grades = [1.0, 0.0, 1.0, 0.0];
    let weighted = |weights: Vec<f64>| {
        let data = data(&grades, vec![0, 2, 4]).with_weights(weights).expect("valid");
        Rankings::on(&data, "map".parse().expect("known"), OrderScore::Mean, None)
    };
    let rankings = weighted(vec![2.0, 2.0, 0.5, 0.5]).expect("one weight a query");
    assert_eq!([rankings.weight(0), rankings.weight(1)], [2.0, 0.5]);
    let error = weighted(vec![2.0, 1.0, 0.5, 0.5]).expect_err("two weights");
    assert_eq!(error.code(), Code::BadWeight);
    assert!(error.message().contains("row 2 has 1"), "{error}");
}
