"""Metrics compared with scikit-learn, trec_eval and scipy, and with plain definitions."""

import itertools

import numpy as np
import pytest
import pytrec_eval
from scipy import stats
from sklearn import metrics as theirs

from maxmargin import metrics

CLOSE = 1e-12
SEEDS = range(5)


def judged(seed, *, ties=False, highest=4):
    """Grades, scores and queries of several lists, in random order. Every list has a relevant row."""
    generator = np.random.default_rng(seed)
    qid = np.concatenate([np.full(size, query) for query, size in enumerate(generator.integers(11, 40, size=7))])
    grades = generator.integers(0, highest + 1, size=len(qid))
    grades[np.unique(qid, return_index=True)[1]] = highest
    scores = generator.integers(0, 6, size=len(qid)) / 2 if ties else generator.permutation(len(qid)) / 7
    order = generator.permutation(len(qid))
    return grades[order], scores[order], qid[order]


def over_queries(measure, grades, scores, qid):
    """The mean over queries of a function of one query."""
    return np.mean([measure(grades[qid == query], scores[qid == query]) for query in np.unique(qid)])


def trec_eval(measure, grades, scores, qid):
    """The mean over queries by trec_eval. Document ids rise with their position."""
    truth, run = {}, {}
    for row, (grade, score, query) in enumerate(zip(grades, scores, qid, strict=True)):
        truth.setdefault(str(query), {})[f"{row:06}"] = int(grade)
        run.setdefault(str(query), {})[f"{row:06}"] = float(score)
    found = pytrec_eval.RelevanceEvaluator(truth, {measure}).evaluate(run)
    return np.mean([values[measure.replace(".", "_")] for values in found.values()])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [None, 1, 3, 10, 1000])
@pytest.mark.parametrize("ties", [False, True])
def test_ndcg_is_that_of_scikit_learn(seed, k, ties):
    grades, scores, qid = judged(seed, ties=ties)
    expected = over_queries(lambda g, s: theirs.ndcg_score([g], [s], k=k), grades, scores, qid)
    assert metrics.ndcg_score(grades, scores, qid=qid, k=k, variant="sklearn") == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
def test_ndcg_by_default_has_gains_of_powers_of_two(seed, ties):
    grades, scores, qid = judged(seed, ties=ties)
    for k in (None, 5):
        expected = over_queries(lambda g, s, k=k: theirs.ndcg_score([2.0**g - 1], [s], k=k), grades, scores, qid)
        assert metrics.ndcg_score(grades, scores, qid=qid, k=k) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    ("measure", "name"),
    [("ndcg", "ndcg:trec"), ("ndcg_cut.10", "ndcg@10:trec"), ("map", "map:trec"), ("P.10", "p@10:trec")],
)
def test_list_metrics_are_those_of_trec_eval(measure, name, seed, ties):
    grades, scores, qid = judged(seed, ties=ties)
    expected = trec_eval(measure, grades, scores, qid)
    assert metrics.evaluate(name, grades, scores, qid=qid) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reciprocal_rank_is_that_of_trec_eval(seed):
    grades, scores, qid = judged(seed)
    grades = (grades == grades.max()).astype(int)
    assert metrics.mrr_score(grades, scores, qid=qid) == pytest.approx(
        trec_eval("recip_rank", grades, scores, qid), abs=CLOSE
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_without_ties_all_variants_of_map_and_precision_are_one(seed):
    grades, scores, qid = judged(seed, highest=1)
    for variant in ("standard", "sklearn", "letor", "trec"):
        found = metrics.map_score(grades, scores, qid=qid, variant=variant)
        assert found == pytest.approx(trec_eval("map", grades, scores, qid), abs=CLOSE)
        found = metrics.precision_at_k_score(grades, scores, qid=qid, k=10, variant=variant)
        assert found == pytest.approx(trec_eval("P.10", grades, scores, qid), abs=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
def test_map_is_the_average_precision_of_scikit_learn_in_each_query(seed, ties):
    grades, scores, qid = judged(seed, ties=ties, highest=1)
    expected = over_queries(theirs.average_precision_score, grades, scores, qid)
    assert metrics.map_score(grades, scores, qid=qid, variant="sklearn") == pytest.approx(expected, abs=CLOSE)


def over_orders(measure, grades, scores):
    """The mean over all orders of rows with equal scores, by enumeration."""
    values = []
    for order in itertools.permutations(range(len(grades))):
        sorted_scores = [scores[row] for row in order]
        if sorted_scores == sorted(sorted_scores, reverse=True):
            values.append(measure([grades[row] for row in order]))
    return np.mean(values)


def average_precision(grades):
    relevant = [position for position, grade in enumerate(grades, 1) if grade >= 1]
    return np.mean([(found + 1) / position for found, position in enumerate(relevant)]) if relevant else 0.0


def reciprocal_rank(grades):
    return next((1 / position for position, grade in enumerate(grades, 1) if grade >= 1), 0.0)


def precision_at_3(grades):
    return sum(grade >= 1 for grade in grades[:3]) / 3


def gain_over_best(grades):
    discounts = 1 / np.log2(np.arange(2, len(grades) + 2))
    gains = 2.0 ** np.array(grades) - 1
    best = np.sort(gains)[::-1] @ discounts
    return gains @ discounts / best if best > 0 else 0.0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("name", "measure"),
    [("map", average_precision), ("mrr", reciprocal_rank), ("p@3", precision_at_3), ("ndcg", gain_over_best)],
)
def test_ties_count_as_the_mean_over_all_their_orders(name, measure, seed):
    generator = np.random.default_rng(seed)
    grades, scores = generator.integers(0, 3, size=6), generator.integers(0, 3, size=6) / 4
    expected = over_orders(measure, grades.tolist(), scores.tolist())
    assert metrics.evaluate(name, grades, scores) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [[0, 1], [-1, 1], ["bad", "good"]])
def test_areas_are_those_of_scikit_learn(seed, ties, weighted, classes):
    grades, scores, _ = judged(seed, ties=ties, highest=1)
    truth = np.array(classes)[grades]
    weights = np.random.default_rng(seed).integers(0, 4, size=len(truth)) / 2 if weighted else None
    found = metrics.roc_auc_score(truth, scores, sample_weight=weights)
    assert found == pytest.approx(theirs.roc_auc_score(truth, scores, sample_weight=weights), abs=CLOSE)
    found = metrics.average_precision_score(truth, scores, sample_weight=weights)
    expected = theirs.average_precision_score(truth, scores, sample_weight=weights, pos_label=classes[1])
    assert found == pytest.approx(expected, abs=CLOSE)


def right_pairs(grades, scores):
    """The share of pairs with different grades that are in the right order. Equal scores count half."""
    right = [
        0.5 if first_score == second_score else float((first_score > second_score) == (first > second))
        for (first, first_score), (second, second_score) in itertools.combinations(zip(grades, scores, strict=True), 2)
        if first != second
    ]
    return np.mean(right)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
def test_pair_accuracy_counts_every_pair(seed, ties):
    grades, scores, qid = judged(seed, ties=ties)
    expected = over_queries(right_pairs, grades, scores, qid)
    assert metrics.pair_accuracy_score(grades, scores, qid=qid) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
def test_kendall_is_that_of_scipy(seed, ties):
    grades, scores, qid = judged(seed, ties=ties)
    expected = over_queries(lambda g, s: stats.kendalltau(g, s).statistic, grades, scores, qid)
    assert metrics.kendall_tau_score(grades, scores, qid=qid) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_comparisons_is_the_weight_that_is_wrong(seed, weighted):
    generator = np.random.default_rng(seed)
    truth, found = generator.integers(-1, 2, size=50), generator.integers(-1, 2, size=50)
    weights = generator.random(size=50) if weighted else np.ones(50)
    expected = weights[truth != found].sum() / weights.sum()
    error = metrics.compare_error(truth, found, sample_weight=weights if weighted else None)
    assert error == pytest.approx(expected, abs=CLOSE)
    words = np.array(["left", "tie", "right"])
    assert metrics.compare_error(words[truth + 1], words[found + 1], sample_weight=weights) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["ndcg", "ndcg@3", "map", "mrr", "p@3", "kendall-tau", "pair-accuracy", "err"])
def test_where_rows_of_a_query_stand_changes_no_metric(name):
    grades, scores, qid = judged(3)
    together = np.argsort(qid, kind="stable")
    expected = metrics.evaluate(name, grades[together], scores[together], qid=qid[together])
    assert metrics.evaluate(name, grades, scores, qid=qid) == pytest.approx(expected, abs=CLOSE)
    words = np.array([f"query {query}" for query in qid])
    assert metrics.evaluate(name, grades, scores, qid=words) == metrics.evaluate(name, grades, scores, qid=qid)


def test_without_queries_all_rows_are_one_list():
    grades, scores, _ = judged(4)
    assert metrics.ndcg_score(grades, scores) == metrics.ndcg_score(grades, scores, qid=np.zeros(len(grades)))


def test_lists_series_and_columns_are_taken():
    grades, scores, qid = judged(5)
    expected = metrics.ndcg_score(grades, scores, qid=qid)
    assert metrics.ndcg_score(grades.tolist(), scores.tolist(), qid=qid.tolist()) == expected
    assert metrics.ndcg_score(grades.reshape(-1, 1), scores.reshape(-1, 1), qid=qid) == expected


@pytest.mark.parametrize("score", [metrics.roc_auc_score, metrics.average_precision_score])
def test_no_class_is_not_a_number(score):
    with pytest.raises(ValueError, match="y_true contains NaN"):
        score([np.nan, 0.0], [1.0, 2.0])


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_two_classes_are_told_apart_however_they_are_stored(dtype):
    y = np.array([1, 0, 0, 1, 1, 0], dtype=dtype)
    for column in (y, y[:, None]):
        assert (metrics._binary(column) == np.unique(y, return_inverse=True)[1]).all()
    for other in (np.zeros(4, dtype), np.array([], dtype)):
        with pytest.raises(ValueError, match="two classes"):
            metrics._binary(other)
    with pytest.raises(ValueError, match="holds 3"):
        metrics._binary(np.array([2, 3, 4]))
