"""The estimators: scikit-learn's contract as far as it applies, attributes after a fit, and behaviour during a fit."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import estimator_checks

from maxmargin import Dataset, MaxmarginError, PAComparator, SVMClassifier, SVMComparator, SVMRanker, load, tune

# --- scikit-learn's contract of comparators

#: Every check of scikit-learn that does not call fit(X, y), which comparators do not have.
CHECKS_WITHOUT_FIT = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("estimator", [SVMComparator(), SVMComparator(kernel="rbf"), PAComparator()], ids=repr)
@pytest.mark.parametrize("check", CHECKS_WITHOUT_FIT)
def test_comparators_pass_the_checks_that_need_no_fit(estimator, check):
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


# --- Data


def classes(rows=200, columns=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, columns))
    return X, (X[:, 0] + random.normal(scale=0.7, size=rows) > 0.3).astype(int)


def graded(rows=240, columns=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, columns))
    grades = np.clip(np.round(X[:, 0] + random.normal(scale=0.5, size=rows) + 1), 0, 3)
    return X, grades, random.integers(12, size=rows)


def comparisons(pairs=300, columns=4, seed=0):
    random = np.random.default_rng(seed)
    left, right = random.normal(size=(2, pairs, columns))
    difference = right[:, 0] - left[:, 0] + random.normal(scale=0.3, size=pairs)
    return left, right, np.where(np.abs(difference) < 0.6, 0, np.sign(difference)).astype(int)


# --- Comparators


@pytest.mark.parametrize(
    "estimator", [SVMComparator(), SVMComparator(kernel="rbf"), SVMComparator(method="rank"), PAComparator()], ids=repr
)
def test_swapping_the_sides_changes_the_sign_and_nothing_else(estimator):
    left, right, outcome = comparisons()
    estimator.fit(left, right, outcome)
    found = estimator.compare(left, right)
    assert set(found) == {-1, 0, 1}
    np.testing.assert_array_equal(found, -estimator.compare(right, left))
    assert (estimator.compare(left, left) == 0).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_fit_and_fit_items_agree(kernel):
    left, right, outcome = comparisons()
    rows = np.arange(len(left))
    sides = SVMComparator(kernel=kernel, gamma=0.3, tol=1e-9).fit(left, right, outcome)
    pairs = np.column_stack([rows, rows + len(left), outcome])
    items = SVMComparator(kernel=kernel, gamma=0.3, tol=1e-9).fit_items(np.vstack([left, right]), pairs)
    assert items.objective_ == pytest.approx(sides.objective_, rel=1e-8)
    assert items.threshold_ == pytest.approx(sides.threshold_, rel=1e-4)
    np.testing.assert_allclose(items.decision_function(left), sides.decision_function(left), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(items.compare(left, right), sides.compare(left, right))


def test_pairs_may_name_items_of_a_table_by_its_index():
    pandas = pytest.importorskip("pandas")
    items = pandas.DataFrame({"price": [1.0, 2.0, 5.0], "age": [3.0, 1.0, 2.0]}, index=["x", "y", "z"])
    pairs = pandas.DataFrame({"left": ["x", "z", "x"], "right": ["y", "y", "z"], "outcome": ["tie", "left", "right"]})
    by_name = SVMComparator(C=10).fit_items(items, pairs)
    by_row = SVMComparator(C=10).fit_items(items.to_numpy(), [[0, 1, 0], [2, 1, -1], [0, 2, 1]])
    np.testing.assert_array_equal(by_name.coef_, by_row.coef_)
    assert by_name.threshold_ == by_row.threshold_


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("chunk", [1, 7, 300])
def test_a_stream_in_chunks_is_one_fit_bit_for_bit(loss, chunk):
    left, right, outcome = comparisons()
    weight = np.random.default_rng(1).uniform(0.5, 2, size=len(left))
    whole = PAComparator(loss=loss).fit(left, right, outcome, weight)
    parts = PAComparator(loss=loss)
    for start in range(0, len(left), chunk):
        part = slice(start, start + chunk)
        parts.partial_fit(left[part], right[part], outcome[part], weight[part])
        if start == 140:
            parts = pickle.loads(pickle.dumps(parts))
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    assert parts.threshold_ == whole.threshold_
    assert parts.n_pairs_ == whole.n_pairs_ == len(left)
    assert parts.progressive_error_ == whole.progressive_error_
    assert parts.confusion_ == whole.confusion_


def test_fit_forgets_and_partial_fit_does_not():
    left, right, outcome = comparisons()
    first = PAComparator().fit(left, right, outcome)
    weights = first.coef_
    np.testing.assert_array_equal(first.fit(left, right, outcome).coef_, weights)
    assert not np.array_equal(first.partial_fit(left, right, outcome).coef_, weights)
    assert first.n_pairs_ == 2 * len(left)


# --- Attributes after a fit, recomputed

LOSSES = {
    "hinge": lambda violation: np.maximum(violation, 0),
    "squared_hinge": lambda violation: np.maximum(violation, 0) ** 2,
    "logistic": lambda violation: np.logaddexp(0, violation - 1),
}


def is_certified(estimator, objective):
    assert estimator.objective_ == pytest.approx(objective, rel=1e-9)
    assert estimator.lower_bound_ <= estimator.objective_
    assert estimator.gap_ == pytest.approx(1 - estimator.lower_bound_ / estimator.objective_, abs=1e-12)
    assert estimator.converged_ and estimator.gap_ <= estimator.tol
    assert estimator.n_iter_ >= 1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_what_a_linear_classifier_knows(loss, intercept, weighted):
    X, y = classes()
    weight = np.random.default_rng(1).uniform(0.1, 3, size=len(y)) if weighted else np.ones(len(y))
    C, class_weight = 0.7, {0: 1.0, 1: 2.0} if weighted else None
    classifier = SVMClassifier(C, loss=loss, intercept=intercept, class_weight=class_weight, tol=1e-6)
    classifier.fit(X, y, sample_weight=weight if weighted else None)

    assert classifier.coef_.shape == (1, X.shape[1]) and classifier.intercept_.shape == (1,)
    scores = X @ classifier.coef_[0] + classifier.intercept_[0]
    np.testing.assert_allclose(classifier.decision_function(X), scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(classifier.predict(X), (scores >= 0).astype(int))
    assert (classifier.intercept_[0] != 0) == (intercept != "none")

    margins = np.where(y == 1, 1, -1) * scores
    cost = C * weight * (np.where(y == 1, 2.0, 1.0) if weighted else 1.0)
    penalty = 0.5 * classifier.coef_[0] @ classifier.coef_[0]
    penalty += 0.5 * classifier.intercept_[0] ** 2 if intercept == "penalised" else 0.0
    is_certified(classifier, penalty + cost @ LOSSES[loss](1 - margins))

    in_use = np.zeros(len(y), dtype=bool)
    in_use[classifier.support_] = True
    assert (np.diff(classifier.support_) > 0).all()
    if loss == "logistic":
        assert in_use.all()
    else:
        assert in_use[margins < 1 - 1e-2].all() and not in_use[margins > 1 + 1e-2].any()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("solver", "tol"), [("auto", 1e-8), ("cutting-plane", 1e-11)])
def test_the_hinge_with_a_free_intercept_is_that_of_svc(C, solver, tol):
    X, y = classes()
    ours = SVMClassifier(C, solver=solver, tol=tol).fit(X, y)
    theirs = SVC(C=C, kernel="linear", tol=1e-12).fit(X, y)
    # The limit is due to scikit-learn: our solvers are closer to each other.
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-5)
    violation = 1 - np.where(y == 1, 1, -1) * theirs.decision_function(X)
    reached = 0.5 * np.sum(theirs.coef_**2) + C * LOSSES["hinge"](violation).sum()
    assert ours.lower_bound_ <= reached and ours.objective_ <= reached * (1 + tol)
    np.testing.assert_array_equal(ours.support_, np.sort(theirs.support_))


@pytest.mark.parametrize(
    "kernel", [{"kernel": "rbf", "gamma": 0.5}, {"kernel": "rbf"}, {"kernel": "poly", "degree": 2}]
)
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_kernels_are_those_of_svc(kernel, C):
    X, y = classes()
    ours, theirs = SVMClassifier(C, **kernel, tol=1e-10).fit(X, y), SVC(C=C, **kernel, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-5, atol=1e-5)
    assert not hasattr(ours, "coef_")
    assert ours.dual_coef_.shape == (1, len(ours.support_))

    # Those of SVC are sorted by class.
    duals = np.zeros((2, len(y)))
    duals[0, ours.support_], duals[1, theirs.support_] = ours.dual_coef_[0], theirs.dual_coef_[0]
    np.testing.assert_allclose(duals[0], duals[1], atol=1e-4 * C)
    assert np.abs(ours.dual_coef_).max() <= C * (1 + 1e-9) and abs(ours.dual_coef_.sum()) < 1e-8
    margins = np.where(y == 1, 1, -1) * ours.decision_function(X)
    reach = (ours.decision_function(X) - ours.intercept_) @ duals[0]
    is_certified(ours, 0.5 * reach + C * LOSSES["hinge"](1 - margins).sum())


@pytest.mark.parametrize("intercept", ["penalised", "none"])
def test_the_squared_hinge_is_that_of_linear_svc(intercept):
    X, y = classes()
    ours = SVMClassifier(loss="squared_hinge", intercept=intercept, tol=1e-12).fit(X, y)
    theirs = LinearSVC(fit_intercept=intercept == "penalised", tol=1e-10, dual=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-7)


def test_the_logistic_loss_is_that_of_logistic_regression():
    X, y = classes()
    ours = SVMClassifier(loss="logistic", tol=1e-12).fit(X, y)
    theirs = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky", max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_what_a_ranker_knows(loss, weighted):
    X, y, qid = graded()
    weight = np.random.default_rng(1).uniform(0.1, 3, size=len(y)) if weighted else np.ones(len(y))
    ranker = SVMRanker(0.3, loss=loss, tol=1e-6).fit(X, y, qid=qid, sample_weight=weight if weighted else None)
    assert ranker.coef_.shape == (X.shape[1],)
    scores = ranker.predict(X)
    np.testing.assert_allclose(scores, X @ ranker.coef_, rtol=1e-12, atol=1e-12)
    better, worse = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    violation = 1 - (scores[better] - scores[worse])
    is_certified(
        ranker, 0.5 * ranker.coef_ @ ranker.coef_ + 0.3 * (weight[better] * weight[worse]) @ LOSSES[loss](violation)
    )
    assert ranker.model_.constraints == len(better)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_what_a_comparator_knows(loss, weighted):
    left, right, outcome = comparisons()
    weight = np.random.default_rng(1).uniform(0.1, 3, size=len(outcome)) if weighted else np.ones(len(outcome))
    comparator = SVMComparator(0.3, loss=loss, tol=1e-6).fit(left, right, outcome, weight if weighted else None)
    assert comparator.coef_.shape == (left.shape[1],) and isinstance(comparator.threshold_, float)
    difference, tau = (right - left) @ comparator.coef_, comparator.threshold_
    decided, ties = outcome != 0, outcome == 0
    cost = LOSSES[loss](1 + tau - outcome * difference) * decided
    cost += (LOSSES[loss](1 - tau - difference) + LOSSES[loss](1 - tau + difference)) * ties
    is_certified(comparator, 0.5 * comparator.coef_ @ comparator.coef_ + 0.3 * weight @ cost)
    expected = np.where(np.abs(difference) <= tau, 0, np.sign(difference))
    np.testing.assert_array_equal(comparator.compare(left, right), expected)
    assert comparator.score(left, right, outcome) == np.mean(expected == outcome)


def test_what_a_comparator_with_a_kernel_knows():
    left, right, outcome = comparisons()
    comparator = SVMComparator(kernel="rbf", gamma=0.4, tol=1e-8).fit(left, right, outcome)
    assert comparator.gamma_ == 0.4 and not hasattr(comparator, "coef_")
    assert comparator.dual_coef_.ndim == 1 and comparator.lower_bound_ <= comparator.objective_
    difference = comparator.decision_function(right) - comparator.decision_function(left)
    # A tie has a margin on each side, and the smaller one counts.
    margins = np.where(
        outcome == 0, comparator.threshold_ - np.abs(difference), outcome * difference - comparator.threshold_
    )
    in_use = np.zeros(len(outcome), dtype=bool)
    in_use[comparator.support_] = True
    assert in_use[margins < 1 - 1e-4].all() and not in_use[margins > 1 + 1e-4].any()


def test_what_a_stream_knows():
    left, right, outcome = comparisons()
    learner = PAComparator().fit(left, right, outcome)
    assert learner.coef_.shape == (left.shape[1],) and learner.threshold_ > 0
    assert np.sum(learner.confusion_) == learner.n_pairs_ == len(outcome)
    np.testing.assert_array_equal(np.sum(learner.confusion_, axis=1), [np.sum(outcome == sign) for sign in (-1, 0, 1)])
    wrong = 1 - np.trace(learner.confusion_) / len(outcome)
    assert learner.progressive_error_ == pytest.approx(wrong)
    with pytest.raises(TypeError, match="proves no bound"):
        learner.verify(left, right, outcome)


def test_a_refit_leaves_nothing_of_the_fit_before():
    X, y = classes()
    classifier = SVMClassifier(kernel="rbf").fit(X, y)
    assert hasattr(classifier, "dual_coef_") and hasattr(classifier, "gamma_")
    classifier.set_params(kernel="linear").fit(X, y)
    assert hasattr(classifier, "coef_") and not hasattr(classifier, "dual_coef_") and not hasattr(classifier, "gamma_")


def test_verify_recomputes_from_what_fit_took():
    X, y = classes()
    classifier = SVMClassifier().fit(X, y)
    objective, bound, gap = classifier.verify(X, y)
    assert objective == pytest.approx(classifier.objective_, rel=1e-12) and gap <= classifier.tol
    assert bound == pytest.approx(classifier.lower_bound_, rel=1e-9)
    with pytest.raises(ValueError, match="not the data"):
        classifier.verify(X + 1, y)
    left, right, outcome = comparisons()
    assert SVMComparator().fit(left, right, outcome).verify(left, right, outcome)[2] <= 1e-3


# --- What happens during a fit

#: More than a million entries, so that one pass is far from enough.
ROWS, COLUMNS = 12_000, 100


def test_too_few_passes_are_told_with_the_gap_and_a_remedy():
    X, y = classes(ROWS, COLUMNS)
    with pytest.warns(
        ConvergenceWarning, match=r"after 1 passes with a relative gap of .*e.* and tol=0\.001"
    ) as told:
        classifier = SVMClassifier(solver="newton", max_iter=1).fit(X, y)
    assert "raise max_iter" in str(told[0].message) and "scale" in str(told[0].message)
    assert told[0].filename == __file__
    assert f"{classifier.gap_:.1e}" in str(told[0].message)
    assert not classifier.converged_ and classifier.gap_ > 1e-3


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        (SVMClassifier(solver="newton"), classes(1000)),
        (SVMClassifier(solver="dual-coordinate-descent"), classes(1000)),
        (SVMClassifier(kernel="rbf"), classes(1000)),
        (SVMClassifier(solver="sgd"), classes(1000)),
        (SVMRanker(), graded()),
        (SVMComparator(), comparisons()),
    ],
    ids=lambda value: repr(value) if hasattr(value, "fit") else "",
)
def test_a_callback_sees_every_report_in_order(estimator, data):
    seen = []
    estimator.set_params(callback=lambda progress: seen.append(progress)).fit(*data)
    iterations = [progress.iteration for progress in seen]
    assert len(seen) > 1 and iterations == sorted(set(iterations))
    trace = [passed for passed, *_ in estimator.model_.trace]
    # Small problems are polished after the last pass. That adds a row to the trace, but no callback.
    assert iterations == trace[: len(iterations)] and len(trace) - len(iterations) in (0, 1)
    assert trace[-1] == estimator.n_iter_
    assert min(progress.objective for progress in seen) >= estimator.objective_ * (1 - 1e-9)
    for progress in seen:
        assert progress.lower_bound is None or progress.lower_bound <= progress.objective * (1 + 1e-12)


def test_a_true_answer_stops_with_the_best_so_far_and_no_warning():
    X, y = classes(ROWS, COLUMNS)
    seen = []

    def enough(progress):
        seen.append(progress)
        return len(seen) == 3

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = SVMClassifier(tol=1e-9, callback=enough).fit(X, y)
    assert len(seen) == 3
    assert not classifier.converged_ and classifier.model_.stopped_early
    assert classifier.objective_ <= min(progress.objective for progress in seen) * (1 + 1e-9)
    assert classifier.lower_bound_ <= classifier.objective_
    assert classifier.score(X, y) > 0.5


def test_an_exception_of_a_callback_passes_through():
    class Enough(Exception):
        pass

    def fail(progress):
        raise Enough

    X, y = classes()
    classifier = SVMClassifier(callback=fail)
    with pytest.raises(Enough):
        classifier.fit(X, y)
    assert not hasattr(classifier, "model_")
    with pytest.raises(Enough):
        tune(SVMClassifier(), X, y, C=[0.1, 1.0], cv=2, callback=fail)


def test_verbose_tells_passes_on_standard_error(capfd):
    X, y = classes()
    classifier = SVMClassifier(verbose=1).fit(X, y)
    told = capfd.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert len(classifier.model_.trace) - len(lines) in (0, 1)
    assert all(line.startswith("SVMClassifier: pass ") and "objective" in line for line in lines)
    SVMClassifier().fit(X, y)
    assert capfd.readouterr() == ("", "")


def test_what_fit_items_took_is_verified_and_tuned_by_name():
    random = np.random.default_rng(4)
    items = random.normal(size=(40, 3))
    pairs = np.array([(left, right) for left in range(40) for right in range(left + 1, 40)])
    difference = items[pairs[:, 1], 0] - items[pairs[:, 0], 0] + 0.5 * random.normal(size=len(pairs))
    pairs = np.column_stack([pairs, np.where(abs(difference) < 0.5, 0, np.sign(difference)).astype(int)])
    comparator = SVMComparator(0.1).fit_items(items, pairs)
    assert comparator.verify(items=items, pairs=pairs)[0] == pytest.approx(comparator.objective_, rel=1e-12)
    found = tune(SVMComparator(), items=items, pairs=pairs, C=[0.1], cv=3)
    assert found.best_estimator.objective_ == pytest.approx(comparator.objective_, rel=1e-9)
    for call, message in (
        (lambda: comparator.verify(items, pairs), "or items= and pairs="),
        (lambda: comparator.verify(items=items), "both items and pairs"),
        (lambda: comparator.verify(items, items=items, pairs=pairs), "both items and pairs"),
        (lambda: tune(SVMClassifier(), items, items[:, 0] > 0, qid=pairs), "SVMClassifier takes no qid"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_who_has_all_digits_is_not_told_to_scale():
    X, y = classes(300, 5)
    with pytest.warns(ConvergenceWarning, match="and tol=0: the limit of double precision is reached$"):
        classifier = SVMClassifier(solver="cutting-plane", loss="hinge", tol=0).fit(X, y)
    assert classifier.gap_ < 1e-12 and classifier.model_.stalled


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("solver", ["auto", "newton", "dual-coordinate-descent"])
@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_only_the_product_of_weights_and_c_counts_however_large_they_are(loss, solver, size):
    X, y = classes(300, 5)
    plain = SVMClassifier(loss=loss, solver=solver, tol=1e-4).fit(X, y)
    scaled = SVMClassifier(1 / size, loss=loss, solver=solver, tol=1e-4).fit(X, y, sample_weight=np.full(300, size))
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=2e-4)
    assert scaled.converged_
    assert scaled.n_iter_ <= 2 * plain.n_iter_ + 5


def test_one_huge_value_does_not_keep_the_other_rows_from_being_learned():
    X, y = classes(300, 5)
    for huge in (1e20, 1e25, 1e30):
        X[7, 2] = huge
        classifier = SVMClassifier(0.1, intercept="none", solver="dual-coordinate-descent").fit(X, y)
        assert classifier.converged_, huge


def test_names_of_columns_are_those_of_the_last_fit():
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 1.0], "c": [0.0, 0.0, 1.0]})
    classifier = SVMClassifier().fit(frame, [0, 0, 1])
    assert list(classifier.feature_names_in_) == ["a", "b", "c"]
    data = Dataset.dense(np.eye(2)).with_targets(np.array([0.0, 1.0]))
    classifier.fit(data)
    assert not hasattr(classifier, "feature_names_in_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.predict(np.eye(2))
    classifier.fit(data.with_feature_names(["p", "q"]))
    assert list(classifier.feature_names_in_) == ["p", "q"]


def test_data_sets_are_scored_by_their_names_or_not_at_all():
    data = Dataset.dense(np.array([[0.0, 1.0], [2.0, 0.5], [1.0, 3.0]])).with_targets(np.array([0.0, 1.0, 0.0]))
    named = data.with_feature_names(["a", "b"])
    classifier = SVMClassifier().fit(named)
    assert classifier.predict(named).tolist() == classifier.predict(data).tolist()
    for names in (["b", "a"], ["a", "c"]):
        with pytest.raises(MaxmarginError, match="was trained with feature") as caught:
            classifier.predict(data.with_feature_names(names))
        assert caught.value.code == "MM0307"
    for columns in (1, 3):
        with pytest.raises(MaxmarginError, match=f"have {columns} columns, and the model was trained with 2"):
            classifier.model_.scores(Dataset.dense(np.ones((4, columns))))


def test_a_stream_is_learned_from_a_data_set_as_from_its_arrays():
    left, right, outcome = comparisons()
    comparator = PAComparator()
    data = SVMComparator()._dataset(left, right, outcome)
    learned = PAComparator().partial_fit(data)
    assert (learned.coef_ == comparator.fit(left, right, outcome).coef_).all()
    assert learned.threshold_ == comparator.threshold_ >= 0


# --- Ctrl-C

SETUP = """
import numpy as np, warnings
import maxmargin
from maxmargin import SVMClassifier
random = np.random.default_rng(0)
def noise(rows, columns):
    return random.normal(size=(rows, columns)).astype(np.float32), random.integers(2, size=rows)
"""

#: Code that prepares, and code that then runs far too long.
LONG = {
    "newton": (
        "X, y = noise(600_000, 100)",
        "SVMClassifier(solver='newton', tol=1e-15, max_iter=100_000).fit(X, y)",
    ),
    "dual coordinate descent": (
        "X, y = noise(600_000, 100)",
        "SVMClassifier(solver='dual-coordinate-descent', tol=1e-15, max_iter=100_000).fit(X, y)",
    ),
    "interior point": ("X, y = noise(9_000, 2_000)", "SVMClassifier().fit(X, y)"),
    "smo over pairs": (
        """
        from maxmargin import SVMComparator
        items, _ = noise(2_000, 30)
        left, right = (items[random.integers(2_000, size=200_000)] for _ in range(2))
        y = random.integers(-1, 2, size=200_000)
        """,
        "SVMComparator(solver='smo', kernel='linear').fit(left, right, y)",
    ),
    "one list": (
        "X, _ = noise(500_000, 20); y = random.normal(size=500_000)",
        "maxmargin.SVMRanker(loss='hinge', tol=1e-12, max_iter=100_000).fit(X, y)",
    ),
    "pairs of items": (
        """
        items, _ = noise(100_000, 20)
        pairs = np.column_stack([random.integers(100_000, size=(2_000_000, 2)), random.integers(-1, 2, size=2_000_000)])
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        """,
        "maxmargin.SVMComparator(tol=1e-12, max_iter=100_000).fit_items(items, pairs)",
    ),
    "smo": ("X, y = noise(40_000, 20)", "SVMClassifier(kernel='rbf', C=100, tol=1e-12).fit(X, y)"),
    "kernel rows": ("X, y = noise(800_000, 60)", "SVMClassifier(kernel='rbf', gamma=0.01).fit(X, y)"),
    "sgd": ("X, y = noise(600_000, 100)", "SVMClassifier(solver='sgd', max_iter=100_000).fit(X, y)"),
    "predict": (
        """
        X, y = noise(4_000, 20)
        classifier = SVMClassifier(kernel='rbf', tol=0.1, solver='smo').fit(X, y)
        X, _ = noise(3_000_000, 20)
        """,
        "classifier.decision_function(X)",
    ),
    "gamma": ("X, y = noise(1_500_000, 100)", "SVMClassifier(kernel='rbf', solver='lasvm').fit(X, y)"),
    "partial_fit": (
        """
        from maxmargin import PAComparator
        left, y = noise(1_500_000, 50)
        right, _ = noise(1_500_000, 50)
        """,
        "[PAComparator().partial_fit(left, right, 2 * y - 1) for _ in range(100)]",
    ),
    "load": (
        """
        import gzip, os, sys
        line = " ".join(f"{column}:{random.random():.6f}" for column in range(1, 101))
        block = gzip.compress("".join(f"{row % 2} {line}\\n" for row in range(1000)).encode())
        path = os.path.join(sys.argv[1], "large.svm.gz")
        with open(path, "wb") as file:
            for _ in range(1000):
                file.write(block)
        """,
        "maxmargin.load(path, task='classify')",
    ),
}

#: Prints when it started, and when it was interrupted, by a clock that all processes share.
CHILD = """
import sys, threading, time
{setup}
{prepare}
def tell():
    time.sleep(0.5)
    print("begun", flush=True)
threading.Thread(target=tell, daemon=True).start()
try:
    {work}
    print("ended", flush=True)
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="there are no signals between processes")
@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_long_work_soon(name, tmp_path):
    prepare, work = LONG[name]
    program = CHILD.format(setup=SETUP, prepare=textwrap.dedent(prepare), work=work)
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "begun\n", child.stderr.read()
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        told, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert told != "ended\n", "it ended before it could be interrupted"
    assert child.returncode == 0, errors
    waited = float(told) - sent
    print(f"{name}: interrupted after {waited * 1000:.0f} ms")
    assert waited < 1


def resident():
    """Resident memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the system does not tell")
def test_what_a_fit_held_is_given_back_after_it_was_given_up():
    # Kernel rows of this length are blocks that a thread releases.
    X, y = classes(100_000, 4, 1)
    before, seen = resident(), []

    def give_up(progress):
        seen.append(resident())
        if len(seen) > 2:
            raise KeyboardInterrupt

    for _ in range(2):
        seen.clear()
        with pytest.raises(KeyboardInterrupt):
            SVMClassifier(kernel="rbf", gamma=1.0, C=100, callback=give_up).fit(X, y)
        assert seen[-1] > before + (200 << 20), "there was nothing to give back"
        until = time.monotonic() + 20
        while resident() > before + (60 << 20):
            assert time.monotonic() < until, "the memory was not given back"
            time.sleep(0.01)


# --- Fits that fail


def boom(progress):
    raise RuntimeError("asked to")


def test_a_fit_that_fails_leaves_the_one_before_whole():
    X, y = classes(200, 4, 3)
    classifier = SVMClassifier().fit(X, np.where(y > 0, "pos", "neg"))
    said, content = classifier.predict(X), classifier.model_.to_bytes()
    classifier.set_params(callback=boom)
    with pytest.raises(RuntimeError, match="asked to"):
        classifier.fit(X[:, :2], np.where(y > 0, "alpha", "zeta"))
    with pytest.raises(ValueError, match="one class"):
        classifier.fit(X[:, :2], np.ones(len(X)))
    assert (classifier.predict(X) == said).all()
    assert classifier.model_.to_bytes() == content
    assert classifier.n_features_in_ == 4
    with pytest.raises(RuntimeError, match="asked to"):
        fresh = SVMClassifier(callback=boom)
        fresh.fit(X, y)
    assert not [name for name in vars(fresh) if name.endswith("_")]


# --- Threads


def test_two_fits_run_at_once_and_give_what_they_give_alone():
    data = [classes(2000, 20, seed) for seed in (1, 2)]
    alone = [SVMClassifier(tol=1e-6).fit(*one) for one in data]
    # Each waits in its first pass until the other one is in its first pass.
    meeting = threading.Barrier(2, timeout=60)
    met = [False, False]

    def fitted(position):
        def meet(progress):
            if not met[position]:
                meeting.wait()
                met[position] = True

        together[position] = SVMClassifier(tol=1e-6, callback=meet).fit(*data[position])

    together = [None, None]
    threads = [threading.Thread(target=fitted, args=(position,)) for position in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [True, True]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.objective_ == other.objective_


def test_python_goes_on_during_a_fit():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(6000, 20)), random.integers(2, size=6000)
    ticks, over = [], threading.Event()

    def tick():
        while not over.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    SVMClassifier(kernel="rbf", tol=1e-5).fit(X, y)
    end = time.monotonic()
    over.set()
    thread.join()
    during = np.array([start, *(tick for tick in ticks if start < tick < end), end])
    # If the interpreter were locked, there would be one pause as long as the fit.
    assert np.diff(during).max() < 0.5 * (end - start)


# --- Display in notebooks


@pytest.mark.parametrize("kind", [SVMClassifier, SVMRanker, SVMComparator, PAComparator])
def test_an_estimator_shows_its_name_and_parameters(kind):
    shown = kind(C=0.125)._repr_html_()
    assert kind.__name__ in shown and "0.125" in shown and "Not fitted" in shown


def test_a_fitted_estimator_shows_that_it_is():
    assert "<span>Fitted</span>" in SVMClassifier().fit(*classes())._repr_html_()


def test_a_model_shows_its_certificate():
    classifier = SVMClassifier(C=0.125).fit(*classes())
    shown = classifier.model_._repr_html_()
    for name in (
        "task",
        "features",
        "constraints",
        "C",
        "objective",
        "lower bound",
        "relative gap",
        "converged",
        "passes",
    ):
        assert f"<th>{name}</th>" in shown
    assert "<td>classify</td>" in shown and "<td>0.125</td>" in shown and f"{classifier.objective_:.6g}" in shown
    assert repr(classifier.model_).startswith("<maxmargin.Model: classify, 5 features, objective ")


@pytest.mark.parametrize(
    ("estimator", "grid", "settings"),
    [
        (SVMClassifier(), {"C": [0.1, 1.0]}, 2),
        (SVMClassifier(kernel="rbf"), {"C": [0.1, 1.0]}, 2),
        (SVMClassifier(kernel="rbf"), {"C": [0.1, 1.0], "gamma": [0.1, 0.5]}, 4),
    ],
    ids=["linear", "one width", "many widths"],
)
def test_what_was_tuned_shows_every_setting_and_marks_the_best(estimator, grid, settings):
    found = tune(estimator, *classes(), cv=3, **grid)
    assert len(found.results) == settings and set(found.best_params) == set(grid)
    shown = found._repr_html_()
    assert shown.count("<tr") == settings + 1 and "<th>mean_accuracy</th>" in shown
    assert shown.count("font-weight:bold") == 1
    bold = shown[shown.index("font-weight:bold") :].split("</tr>")[0]
    assert f"<td>{found.best_params['C']:.4g}</td>" in bold and f"<td>{found.best_score:.4g}</td>" in bold


def test_rows_of_a_query_are_scaled_together_when_scores_are_asked_for():
    random = np.random.default_rng(9)
    qid = np.repeat(np.arange(12), 6)
    X = random.normal(size=(72, 3)) * random.uniform(1, 100, size=(72, 1))
    y = random.integers(0, 3, size=72)
    low, high = (
        np.repeat([end(X[qid == query], axis=0) for query in range(12)], 6, axis=0) for end in (np.min, np.max)
    )
    by_hand = (X - low) / (high - low)
    ranker = SVMRanker(scale="min_max_per_query").fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.predict(X, qid=qid), by_hand @ ranker.coef_, rtol=1e-9, atol=1e-9)
    # The value of a query does not depend on its position or on other queries.
    order = random.permutation(72)
    np.testing.assert_array_equal(ranker.predict(X[order], qid=qid[order]), ranker.predict(X, qid=qid)[order])
    np.testing.assert_array_equal(ranker.predict(X[6:12], qid=["new"] * 6), ranker.predict(X, qid=qid)[6:12])
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(query=qid)
    by_column = SVMRanker(scale="min-max-per-query").fit(table, y, qid="query")
    np.testing.assert_array_equal(by_column.predict(table), ranker.predict(X, qid=qid))
    assert by_column.score(table, y, qid="query") == ranker.score(X, y, qid=qid)
    assert by_column.verify(table, y)[0] == pytest.approx(by_column.objective_)
    with pytest.raises(ValueError, match="qid is needed"):
        ranker.predict(X)
    with pytest.raises(ValueError, match="qid has 5 values"):
        ranker.predict(X, qid=qid[:5])
    one = SVMRanker(scale="min-max-per-query").fit(X, y)
    np.testing.assert_array_equal(one.predict(X), one.predict(X, qid=np.zeros(72)))


def test_a_score_without_queries_after_a_fit_with_them_is_told():
    X, y, qid = np.arange(12.0).reshape(6, 2), [0, 1, 2, 0, 1, 2], [1, 1, 1, 2, 2, 2]
    ranker = SVMRanker().fit(X, y, qid=qid)
    with pytest.warns(UserWarning, match="set_score_request"):
        ranker.score(X, y)
    with pytest.warns(UserWarning, match="set_score_request"):
        ranker.score(Dataset.dense(X).with_targets(np.array(y, dtype=float)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.score(X, y, qid=qid)
        SVMRanker().fit(X, y).score(X, y)


def test_queries_may_be_named_by_several_parts():
    X, y = np.arange(12.0).reshape(6, 2), [0, 1, 2, 2, 1, 0]
    parts = [("a", 1), ("a", 1), ("a", 2), ("a", 2), ("b", 1), ("b", 1)]
    np.testing.assert_array_equal(
        SVMRanker().fit(X, y, qid=parts).coef_, SVMRanker().fit(X, y, qid=[0, 0, 1, 1, 2, 2]).coef_
    )


def test_data_sets_are_scored_by_what_they_hold():
    random = np.random.default_rng(4)
    X, y, weights = random.normal(size=(40, 3)), random.integers(0, 2, size=40), random.uniform(size=40)
    data = Dataset.dense(X).with_targets(y.astype(float)).with_weights(weights)
    classifier = SVMClassifier().fit(data)
    assert classifier.score(data) == classifier.score(X, y, weights)
    left, right = X[:20], X[20:]
    outcomes = np.sign(np.round(right[:, 0] - left[:, 0])).astype(int)
    comparator = SVMComparator().fit(left, right, outcomes)
    sides = (np.arange(20, dtype=np.uint32), np.arange(20, 40, dtype=np.uint32))
    pairs = Dataset.dense(X).with_pairs(*sides, outcomes.astype(np.int8))
    np.testing.assert_array_equal(comparator.compare(pairs), comparator.compare(left, right))
    assert comparator.score(pairs) == comparator.score(left, right, outcomes)
    with pytest.raises(ValueError, match="holds no pairs"):
        comparator.compare(Dataset.dense(X))
    # Rows without queries form one query, like the rows of an array.
    ranker = SVMRanker().fit(data)
    np.testing.assert_array_equal(ranker.coef_, SVMRanker().fit(X, y, sample_weight=weights).coef_)
    assert ranker.verify(data)[0] == pytest.approx(ranker.objective_)
    scaled = SVMRanker(scale="min-max-per-query").fit(data)
    np.testing.assert_array_equal(scaled.predict(data), scaled.predict(X))
    with pytest.raises(TypeError, match="qid"):
        ranker.predict(data, qid=y)


def test_pairs_of_items_whose_queries_are_scattered_are_compared_as_they_stand(tmp_path):
    random = np.random.default_rng(8)
    X = random.normal(size=(30, 2))
    lines = [f"0 qid:{item % 4} 1:{a!r} 2:{b!r}" for item, (a, b) in enumerate(X.tolist())]
    (tmp_path / "items.txt").write_text("\n".join(lines) + "\n")
    left, right = random.integers(0, 30, size=(2, 80))
    left, right = left[left != right], right[left != right]
    outcomes = np.sign(np.round(2 * (X[right, 0] - X[left, 0]))).astype(int)
    words = np.array(["tie", "right", "left"])[outcomes]
    pairs = pd.DataFrame({"left": left + 1, "right": right + 1, "outcome": words})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    data = load(tmp_path / "pairs.csv", task="compare", items=tmp_path / "items.txt", precision="f64")
    assert data.qid is not None and (np.diff(data.qid.astype(int)) < 0).any(), "rows were moved"
    comparator = SVMComparator(C=10).fit(X[left], X[right], outcomes)
    np.testing.assert_array_equal(comparator.compare(data), comparator.compare(X[left], X[right]))
    assert comparator.score(data) == comparator.score(X[left], X[right], outcomes)


def test_auto_converges_on_many_dense_columns():
    random = np.random.default_rng(6)
    X = random.normal(size=(8000, 700)).astype(np.float32)
    y = X @ random.normal(size=700) + 20 * random.normal(size=8000) > 0
    for loss in ("hinge", "squared_hinge", "logistic"):
        classifier = SVMClassifier(loss=loss).fit(X, y)
        assert classifier.converged_ and classifier.gap_ <= 1e-3


def test_weights_of_a_callback_are_an_array():
    seen = []
    SVMClassifier(callback=lambda progress: seen.append(progress.coef)).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert seen and all(isinstance(coef, np.ndarray) and coef.shape == (1,) for coef in seen)


def test_what_is_advised_is_not_what_was_done_already():
    random = np.random.default_rng(11)
    X, y = random.normal(size=(3000, 600)), random.integers(0, 2, size=3000)
    told = {}
    for scale in ("none", "standard"):
        with pytest.warns(ConvergenceWarning) as found:
            SVMClassifier(scale=scale, solver="dual_coordinate_descent", max_iter=3).fit(X, y)
        told[scale] = str(found[0].message)
    assert "scale=" in told["none"] and "scale=" not in told["standard"]
    advised = "solver='interior-point', 'smo' (thousands of rows) or 'newton'"
    assert all(advised in text and "raise max_iter" in text for text in told.values())
    with pytest.warns(ConvergenceWarning, match="solver='newton'") as found:
        SVMClassifier(loss="logistic", solver="dual_coordinate_descent", max_iter=1, tol=1e-6).fit(X, y)
    assert "smo" not in str(found[0].message) and "interior" not in str(found[0].message)


def test_support_vectors_rebuild_the_decisions_of_every_kernel():
    from sklearn.datasets import load_breast_cancer
    from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    gamma = 1.0 / X.shape[1]
    for kernel, values in [("sigmoid", sigmoid_kernel(X, gamma=gamma, coef0=0.0)), ("rbf", rbf_kernel(X, gamma=gamma))]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = SVMClassifier(kernel=kernel, gamma=gamma, coef0=0.0).fit(X, y)
            given = SVMClassifier(kernel="precomputed").fit(values, y)
        for model, data in [(fitted, X), (given, values)]:
            assert model.dual_coef_.shape == (1, len(model.support_))
            assert not hasattr(model, "coef_")
            rebuilt = values[:, model.support_] @ model.dual_coef_[0] + model.intercept_[0]
            np.testing.assert_allclose(rebuilt, model.decision_function(data), atol=1e-4)


def test_a_kernel_without_a_bound_warns_and_squared_hinge_without_an_optimum_says_so():
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    with pytest.warns(ConvergenceWarning, match="positive definite"):
        fitted = SVMClassifier(kernel="sigmoid", gamma=1.0 / 30).fit(X, y)
    assert fitted.gap_ is None and not fitted.converged_
    with pytest.raises(MaxmarginError, match="not positive definite"):
        SVMClassifier(kernel="sigmoid", gamma=1.0 / 30, loss="squared_hinge").fit(X, y)
