"""Classifiers of more than two classes: labels of any kind, objectives, weights, codes, probabilities."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

import maxmargin
from maxmargin import Dataset, MaxmarginError, Model, SVMClassifier, SVMOrdinal, load, tune

ROWS, COLUMNS = 150, 4

#: Forms with one problem over all classes, and the losses that they have.
JOINT = [
    ("joint", "hinge"),
    ("joint", "logistic"),
    ("weston-watkins", "hinge"),
    ("weston-watkins", "squared_hinge"),
]


def several(count=3, rows=ROWS, seed=0):
    """Features, and classes from 0 that depend on them."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, COLUMNS))
    y = (X @ random.normal(size=(COLUMNS, count)) + random.normal(size=(rows, count))).argmax(axis=1)
    return X, y


def objective(scores, codes, weights, form, loss):
    """Σ weight · loss, by definition, given the class of each row as a position."""
    total = 0.0
    for own, code, weight in zip(scores, codes, weights, strict=True):
        violations = [1 + own[other] - own[code] for other in range(len(own)) if other != code]
        if loss == "logistic":
            total += weight * (np.log(np.exp(own - own.max()).sum()) + own.max() - own[code])
        elif form == "joint":
            total += weight * max(0.0, *violations)
        else:
            power = 2 if loss == "squared_hinge" else 1
            total += weight * sum(max(0.0, violation) ** power for violation in violations)
    return total


# --- One problem over all classes


@pytest.mark.parametrize(("form", "loss"), JOINT)
@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_what_a_classifier_of_four_classes_knows(form, loss, intercept, weighted):
    X, y = several(4)
    random = np.random.default_rng(1)
    weight = random.uniform(0.1, 3, size=ROWS) if weighted else np.ones(ROWS)
    class_weight = {2: 2.0, 0: 0.5} if weighted else None
    C = 0.7
    classifier = SVMClassifier(
        C, loss=loss, multi_class=form, intercept=intercept, class_weight=class_weight, tol=1e-5
    )
    classifier.fit(X, y, sample_weight=weight if weighted else None)
    assert classifier.classes_.tolist() == [0, 1, 2, 3]
    assert classifier.coef_.shape == (4, COLUMNS) and classifier.intercept_.shape == (4,)
    scores = X @ classifier.coef_.T + classifier.intercept_
    np.testing.assert_allclose(classifier.decision_function(X), scores, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(classifier.predict(X), scores.argmax(axis=1))
    assert (classifier.intercept_ != 0).any() == (intercept != "none")
    cost = C * weight * (np.array([0.5, 1.0, 2.0, 1.0])[y] if weighted else 1.0)
    penalty = 0.5 * (classifier.coef_**2).sum()
    penalty += 0.5 * (classifier.intercept_**2).sum() if intercept == "penalised" else 0.0
    value = penalty + objective(scores, y, cost, form, loss)
    assert classifier.objective_ == pytest.approx(value, rel=1e-9)
    assert classifier.lower_bound_ <= classifier.objective_
    assert classifier.converged_ and classifier.gap_ <= classifier.tol
    recomputed, bound, gap = classifier.verify(X, y, sample_weight=weight if weighted else None)
    assert recomputed == pytest.approx(value, rel=1e-9) and bound <= recomputed and gap <= classifier.tol
    margins = scores[np.arange(ROWS), y] - np.where(np.arange(4) == y[:, None], -np.inf, scores).max(axis=1)
    in_use = np.zeros(ROWS, dtype=bool)
    in_use[classifier.support_] = True
    assert (np.diff(classifier.support_) > 0).all()
    if loss == "logistic":
        assert in_use.all()
    else:
        assert in_use[margins < 1 - 1e-2].all() and not in_use[margins > 1 + 1e-2].any()


def test_auto_is_the_joint_form_or_that_of_weston_and_watkins():
    X, y = several()
    for loss, form in (("hinge", "joint"), ("logistic", "joint"), ("squared_hinge", "weston-watkins")):
        auto = SVMClassifier(loss=loss).fit(X, y)
        named = SVMClassifier(loss=loss, multi_class=form).fit(X, y)
        assert auto.coef_.tobytes() == named.coef_.tobytes() and auto.objective_ == named.objective_


def test_the_joint_form_is_that_of_crammer_and_singer():
    X, y = several()
    ours = SVMClassifier(0.5, intercept="none", tol=1e-6).fit(X, y)
    theirs = LinearSVC(C=0.5, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=100_000).fit(X, y)
    reached = 0.5 * (theirs.coef_**2).sum() + objective(X @ theirs.coef_.T, y, np.full(ROWS, 0.5), "joint", "hinge")
    assert ours.lower_bound_ <= reached * (1 + 1e-9)
    assert ours.objective_ == pytest.approx(reached, rel=1e-4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0.05, atol=0.02)


def test_the_softmax_is_logistic_regression():
    X, y = several()
    ours = SVMClassifier(0.5, loss="logistic", tol=1e-9).fit(X, y)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_two_classes_with_a_score_each_give_one_number_for_each_row():
    X, y = several(2)
    words = np.array(["no", "yes"])[y]
    joint = SVMClassifier(0.5, multi_class="joint", tol=1e-8).fit(X, words)
    # The difference of two scores at this C is the one score at twice the C.
    one = SVMClassifier(1.0, tol=1e-8).fit(X, words)
    assert joint.model_.weights.shape == (2, COLUMNS)
    assert joint.coef_.shape == (1, COLUMNS) and joint.intercept_.shape == (1,)
    np.testing.assert_allclose(joint.coef_, one.coef_, rtol=1e-3, atol=1e-4)
    decided = joint.decision_function(X)
    np.testing.assert_allclose(decided, X @ joint.coef_[0] + joint.intercept_[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(joint.predict(X), joint.classes_[(decided > 0).astype(int)])


# --- Labels

KINDS = {
    "ints": lambda y: y,
    "ints from above": lambda y: 40 - 17 * y,
    "ints whose words have another order": lambda y: np.array([9, 10, 100, -3])[y],
    "large ints": lambda y: y + 2**53,
    "large ints whose words have another order": lambda y: np.array([2**53 + 1, 17, 3, -5])[y],
    "floats": lambda y: (2.0 * y - 3).astype(np.float32),
    "bytes": lambda y: (y - 2).astype(np.int8),
    "words": lambda y: np.array(["zebra", "Ant", "ox", "élan"])[y],
    "numbers as words": lambda y: np.array(["10", "9", "-1", "2.5"])[y],
    "words that are the same number": lambda y: np.array(["1", "1.0", "01", "one"])[y],
    "objects": lambda y: np.array(["zebra", "Ant", "ox", "élan"], dtype=object)[y],
    "a list": lambda y: np.array(["d", "c", "b", "a"])[y].tolist(),
    "words with signs": lambda y: np.array(['a "b", c', "", " ", "x,y"])[y],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_labels_of_several_classes_may_be_anything(kind, loss):
    X, y = several(4)
    given = KINDS[kind](y)
    found = SVMClassifier(loss=loss, tol=1e-6).fit(X, given)
    assert found.classes_.tolist() == sorted(set(np.asarray(given).tolist()))
    # The same problem with the classes numbered in order.
    codes = np.searchsorted(found.classes_, np.asarray(given))
    expected = SVMClassifier(loss=loss, tol=1e-6).fit(X, codes)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), rtol=1e-2, atol=1e-3)
    assert found.predict(X).dtype == found.classes_.dtype
    assert np.mean(found.predict(X) == found.classes_[expected.predict(X)]) > 0.99
    assert found.score(X, given) == np.mean(found.predict(X) == np.asarray(given))
    assert found.score(X, given) > 0.5
    if loss == "logistic":
        np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-4)
    copied = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(copied.predict(X), found.predict(X))
    found.verify(X, given)


@pytest.mark.parametrize("kind", KINDS)
def test_class_weights_reach_their_classes(kind):
    X, y = several(4)
    given = KINDS[kind](y)
    names = np.array([KINDS[kind](np.array([code]))[0] for code in range(4)])
    weights = {names[code].item(): weight for code, weight in enumerate([1.0, 3.0, 0.5, 2.0])}
    found = SVMClassifier(class_weight=weights, tol=1e-6).fit(X, given)
    expected = SVMClassifier(tol=1e-6).fit(X, given, sample_weight=np.array([1.0, 3.0, 0.5, 2.0])[y])
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-2, atol=1e-3)


def test_balanced_weights_of_several_classes():
    X, y = several()
    counts = np.bincount(y)
    by_hand = {code: ROWS / (3 * count) for code, count in enumerate(counts)}
    balanced = SVMClassifier(class_weight="balanced").fit(X, y)
    expected = SVMClassifier(class_weight=by_hand).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, expected.coef_, rtol=1e-6, atol=1e-9)


def test_many_rows_and_classes_are_found_block_by_block():
    random = np.random.default_rng(3)
    y = random.integers(-1000, 1000, size=300_000)
    np.testing.assert_array_equal(maxmargin.classifier.distinct(y), np.unique(y))
    words = y.astype(str)
    np.testing.assert_array_equal(maxmargin.classifier.distinct(words), np.unique(words))
    X = np.eye(3)[y % 3]
    assert SVMClassifier(tol=0.1).fit(X, (y % 3).astype(str)).score(X, (y % 3).astype(str)) == 1.0


def test_a_class_without_weight_is_kept_and_not_predicted():
    X, y = several()
    weight = np.where(y == 1, 0.0, 1.0)
    found = SVMClassifier().fit(X, y, sample_weight=weight)
    assert found.classes_.tolist() == [0, 1, 2] and found.coef_.shape == (3, COLUMNS)
    with pytest.raises(ValueError, match="only one class among rows of positive weight, 2"):
        SVMClassifier().fit(X, y, sample_weight=np.where(y == 2, 1.0, 0.0))


def test_a_class_with_one_row():
    X, y = several()
    y[0] = 7
    found = SVMClassifier(100.0).fit(X, y)
    assert found.classes_.tolist() == [0, 1, 2, 7] and found.decision_function(X).shape == (ROWS, 4)


def test_an_unknown_class_of_a_weight_is_named():
    X, y = several()
    with pytest.raises(ValueError, match="class_weight names the class 5"):
        SVMClassifier(class_weight={5: 1.0}).fit(X, y)


# --- Data of other kinds


def test_sparse_rows_single_precision_and_a_dataset():
    X, y = several()
    X = np.round(X * 16) / 16
    expected = SVMClassifier(tol=1e-6).fit(X, y)
    for given in (sparse.csr_matrix(X), X.astype(np.float32)):
        found = SVMClassifier(tol=1e-6).fit(given, y)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(found.predict(given), expected.predict(X))
    data = Dataset.dense(X).with_targets(y.astype(float))
    found = SVMClassifier(tol=1e-6).fit(data)
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.classes_.tolist() == [0, 1, 2]
    assert found.score(data) == expected.score(X, y)
    codes = y.astype(np.uint32)
    words = Dataset.dense(X).with_labels(codes, ["a", "b", "c"])
    found = SVMClassifier(tol=1e-6, class_weight={"b": 2.0}).fit(words)
    assert found.classes_.tolist() == ["a", "b", "c"] and found.model_.classes == ("a", "b", "c")
    assert found.score(words) == np.mean(found.predict(X) == np.array(["a", "b", "c"])[y])


def test_a_file_of_several_classes(tmp_path):
    X, y = several()
    path = tmp_path / "rows.svm"
    lines = [f"{code} " + " ".join(f"{at + 1}:{value:.9g}" for at, value in enumerate(row)) for code, row in zip(y, X)]
    path.write_text("\n".join(lines) + "\n")
    data = load(path, task="classify")
    found = SVMClassifier().fit(data)
    assert found.classes_.tolist() == [0.0, 1.0, 2.0] and found.score(data) > 0.5
    found.verify(data)
    found.save(tmp_path / "rows.mm")
    model = Model.load(tmp_path / "rows.mm")
    np.testing.assert_array_equal(model.scores(data), found.decision_function(data))
    assert model.classes == ("0", "1", "2")


def test_settings_are_chosen_by_cross_validation():
    X, y = several()
    words = np.array(["red", "green", "blue"])[y]
    found = tune(SVMClassifier(), X, words, C=[0.001, 1.0], cv=3)
    assert found.best_params == {"C": 1.0}
    assert found.best_estimator.score(X, words) > 0.5
    assert cross_val_score(SVMClassifier(), X, words, cv=3).mean() > 0.5


# --- Probabilities


@pytest.mark.parametrize("count", [2, 3])
def test_the_logistic_loss_has_probabilities(count):
    X, y = several(count)
    classifier = SVMClassifier(loss="logistic").fit(X, y)
    shares = classifier.predict_proba(X)
    assert shares.shape == (ROWS, count)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    scores = classifier.decision_function(X)
    table = np.column_stack([np.zeros(ROWS), scores]) if count == 2 else scores
    np.testing.assert_allclose(shares, np.exp(table) / np.exp(table).sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(classifier.predict_log_proba(X), np.log(shares))
    np.testing.assert_array_equal(shares.argmax(axis=1), np.searchsorted(classifier.classes_, classifier.predict(X)))


@pytest.mark.parametrize("order", [["no", "yes"], ["yes", "no"], ["10", "9"]])
def test_probabilities_are_in_the_order_of_the_classes(order):
    X, y = several(2)
    words = np.array(order)[y]
    classifier = SVMClassifier(loss="logistic").fit(X, words)
    for multi_class in ("auto", "joint"):
        classifier = SVMClassifier(loss="logistic", multi_class=multi_class).fit(X, words)
        likelier = classifier.classes_[classifier.predict_proba(X).argmax(axis=1)]
        np.testing.assert_array_equal(likelier, classifier.predict(X))


def test_large_scores_give_zero_and_one():
    X, y = several(3)
    classifier = SVMClassifier(loss="logistic").fit(X, y)
    shares = classifier.predict_proba(X * 1e5)
    assert np.isfinite(shares).all() and shares.max() == 1.0 and shares.min() == 0.0
    assert np.isneginf(classifier.predict_log_proba(X * 1e5)).any()


def test_without_probabilities_there_is_no_method_for_them():
    assert not hasattr(SVMClassifier(), "predict_proba")
    assert not hasattr(SVMClassifier(loss="logistic", multi_class="one-vs-rest"), "predict_log_proba")
    assert hasattr(SVMClassifier(loss="logistic"), "predict_proba")
    assert hasattr(SVMClassifier(probability="platt"), "predict_proba")
    X, y = several()
    model = SVMClassifier().fit(X, y).model_
    with pytest.raises(MaxmarginError, match="no probabilities"):
        model.probabilities(Dataset.dense(X))


@pytest.mark.parametrize("probability", ["platt", "isotonic"])
@pytest.mark.parametrize("form", ["joint", "weston-watkins", "one-vs-rest", "one-vs-one", "exhaustive"])
def test_every_form_of_several_classes_has_fitted_probabilities(probability, form):
    X, y = several(4, rows=300)
    words = np.array(["b", "a", "d", "c"])[y]
    how = {"multi_class": "code", "code": form} if form == "exhaustive" else {"multi_class": form}
    classifier = SVMClassifier(probability=probability, **how).fit(X, words)
    shares = classifier.predict_proba(X)
    assert shares.shape == (300, 4) and (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    likelier = classifier.classes_[shares.argmax(axis=1)]
    assert np.mean(likelier == classifier.predict(X)) > 0.8


@pytest.mark.parametrize("probability", ["platt", "isotonic"])
@pytest.mark.parametrize("count", [2, 3])
def test_probabilities_fitted_on_held_out_rows(probability, count):
    X, y = several(count, rows=400)
    words = np.array(["b", "a", "c"])[y]
    classifier = SVMClassifier(probability=probability).fit(X, words)
    shares = classifier.predict_proba(X)
    assert shares.shape == (400, count) and (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    likelier = classifier.classes_[shares.argmax(axis=1)]
    assert np.mean(likelier == classifier.predict(X)) >= 0.9
    # The likelihood of the classes is above that of their frequencies.
    own = shares[np.arange(400), np.searchsorted(classifier.classes_, words)]
    frequencies = np.array([np.mean(words == name) for name in classifier.classes_])
    guessed = frequencies[np.searchsorted(classifier.classes_, words)]
    assert np.log(np.maximum(own, 1e-3)).mean() > np.log(guessed).mean()


def test_weights_of_rows_as_slack_and_as_copies_are_the_same():
    X, y = several()
    weight = np.random.default_rng(4).integers(1, 4, size=ROWS).astype(float)
    slack = SVMClassifier(tol=1e-6).fit(X, y, sample_weight=weight)
    copies = SVMClassifier(tol=1e-6, weight_as="copies").fit(X, y, sample_weight=weight)
    assert copies.objective_ == pytest.approx(slack.objective_, rel=1e-5)
    margin = SVMClassifier(tol=1e-6, weight_as="margin").fit(X, y == 1, sample_weight=weight)
    assert margin.objective_ != pytest.approx(SVMClassifier().fit(X, y == 1, sample_weight=weight).objective_, rel=1e-3)


# --- Several problems of two classes


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
def test_one_vs_rest_is_a_binary_classifier_for_each_class(loss, intercept):
    X, y = several(4)
    words = np.array(["zebra", "ant", "ox", "élan"])[y]
    whole = SVMClassifier(0.5, loss=loss, intercept=intercept, multi_class="one-vs-rest").fit(X, words)
    assert whole.coef_.shape == (4, COLUMNS) and whole.decision_function(X).shape == (ROWS, 4)
    for position, name in enumerate(whole.classes_):
        alone = SVMClassifier(0.5, loss=loss, intercept=intercept).fit(X, words == name)
        np.testing.assert_allclose(whole.coef_[position], alone.coef_[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(whole.decision_function(X)[:, position], alone.decision_function(X), atol=1e-12)
    np.testing.assert_array_equal(whole.predict(X), whole.classes_[whole.decision_function(X).argmax(axis=1)])
    whole.verify(X, words)


def test_one_vs_one_is_a_binary_classifier_for_each_pair():
    X, y = several(4)
    whole = SVMClassifier(0.5, multi_class="one-vs-one").fit(X, y)
    assert whole.coef_.shape == (6, COLUMNS) and whole.intercept_.shape == (6,)
    assert whole.decision_function(X).shape == (ROWS, 4)
    votes, column = np.zeros((ROWS, 4)), 0
    for first in range(4):
        for second in range(first + 1, 4):
            rows = (y == first) | (y == second)
            alone = SVMClassifier(0.5).fit(X[rows], y[rows] == first)
            np.testing.assert_allclose(whole.coef_[column], alone.coef_[0], rtol=1e-9, atol=1e-9)
            won = alone.decision_function(X) >= 0
            votes[won, first] += 1
            votes[~won, second] += 1
            column += 1
    most = votes == votes.max(axis=1, keepdims=True)
    assert most[np.arange(ROWS), whole.predict(X)].all()


@pytest.mark.parametrize("kind", ["ints", "ints whose words have another order", "words", "words with signs"])
def test_the_rows_of_a_matrix_belong_to_the_classes_in_order(kind):
    X, y = several(4)
    given = np.asarray(KINDS[kind](y))
    matrix = np.array([[1, 1, 0], [1, -1, 1], [-1, 1, -1], [-1, -1, 0]])
    found = SVMClassifier(multi_class="code", code=matrix, tol=1e-6).fit(X, given)
    assert found.coef_.shape == (3, COLUMNS) and found.decision_function(X).shape == (ROWS, 4)
    signs = matrix[np.searchsorted(found.classes_, given)]
    for column in range(3):
        rows = signs[:, column] != 0
        alone = SVMClassifier(tol=1e-6).fit(X[rows], signs[rows, column])
        np.testing.assert_allclose(found.coef_[column], alone.coef_[0], rtol=1e-2, atol=1e-3)
    # Loss-based decoding: the class with the smallest sum of hinge losses; an entry of zero costs 1.
    scores = X @ found.coef_.T + found.intercept_
    losses = np.maximum(0, 1 - matrix[None] * scores[:, None, :]).sum(axis=2)
    np.testing.assert_array_equal(found.predict(X), found.classes_[losses.argmin(axis=1)])
    assert found.score(X, given) > 0.5


@pytest.mark.parametrize("code", ["random-dense", "random-sparse", "exhaustive", "bch", "one-vs-rest", "one-vs-one"])
def test_codes_have_names(code):
    X, y = several(4)
    found = SVMClassifier(multi_class="code", code=code).fit(X, y)
    assert found.decision_function(X).shape == (ROWS, 4) and len(found.coef_) == len(found.intercept_)
    np.testing.assert_array_equal(found.predict(X), found.decision_function(X).argmax(axis=1))
    assert found.score(X, y) > 0.5


@pytest.mark.parametrize("multi_class", ["auto", "one-vs-rest", "one-vs-one"])
def test_kernels_tell_several_classes_apart(multi_class):
    X, y = several()
    words = np.array(["red", "green", "blue"])[y]
    found = SVMClassifier(10.0, kernel="rbf", multi_class=multi_class).fit(X, words)
    assert found.score(X, words) > 0.8 and found.decision_function(X).shape == (ROWS, 3)
    assert found.dual_coef_.shape == (3, len(found.support_)) and found.intercept_.shape == (3,)
    found.verify(X, words)


# --- Parameters


def test_wrong_parameters_are_refused():
    X, y = several()
    for wrong, words in (
        ({"multi_class": "ovr"}, "multi_class must be one of auto, joint"),
        ({"code": "random-dense"}, "code needs multi_class='code'"),
        ({"probability": "yes"}, "probability must be one of platt, isotonic"),
        ({"weight_as": "loss"}, "weight_as must be one of slack, margin, copies"),
        ({"multi_class": "code", "code": [[1, -1], [-1, 1]]}, "a row for each of the 3 classes"),
        ({"multi_class": "code", "code": [[1, 2], [-1, 1], [1, 1]]}, "must hold -1, 0 and 1 only, and holds 2"),
        ({"loss": "squared_hinge", "multi_class": "joint"}, "multi_class=\"weston-watkins\""),
    ):
        with pytest.raises(ValueError) as error:
            SVMClassifier(**wrong).fit(X, y)
        assert words in str(error.value), error.value
    code = {"multi_class": "code"}
    for wrong in ({"multi_class": 3}, {"code": [["a"]] * 3, **code}, {"decoding": 1, **code}):
        with pytest.raises(TypeError):
            SVMClassifier(**wrong).fit(X, y)


@pytest.mark.parametrize("method", ["platt", "isotonic", None])
def test_ratings_have_a_distribution_over_their_classes(method):
    random = np.random.default_rng(2)
    y = np.array([1, 2, 5, 6])[random.integers(4, size=300)]
    X = np.searchsorted([1, 2, 5, 6], y)[:, None] + random.normal(size=(300, 2))
    if method is None:
        assert not hasattr(SVMOrdinal(), "predict_proba")
        assert not hasattr(SVMOrdinal(loss="logistic", form="explicit"), "predict_proba")
        ratings = SVMOrdinal(loss="logistic").fit(X, y)
        above = 1 / (1 + np.exp(ratings.cuts_ - ratings.scores(X)[:, None]))
        expected = -np.diff(np.hstack([np.ones((300, 1)), above, np.zeros((300, 1))]), axis=1)
        assert np.allclose(ratings.predict_proba(X), expected)
    else:
        ratings = SVMOrdinal(probability=method).fit(X, y)
        assert (ratings.scores(X) == SVMOrdinal().fit(X, y).scores(X)).all()
    found = ratings.predict_proba(X)
    assert found.shape == (300, 4) and (found >= 0).all() and np.allclose(found.sum(axis=1), 1)
    assert (found.argmax(axis=1) == np.searchsorted([1, 2, 5, 6], y)).mean() > 0.5
    assert np.allclose(ratings.predict_log_proba(X[:5]), np.log(found[:5]))


def test_weights_of_ratings_are_used_in_three_ways():
    random = np.random.default_rng(3)
    X = random.normal(size=(120, 3))
    y = np.digitize(X[:, 0] + 0.3 * random.normal(size=120), [-0.5, 0.5])
    weights = random.integers(1, 4, size=120).astype(float)
    slack, copies, margin = (
        SVMOrdinal(weight_as=way, tol=1e-6).fit(X, y, sample_weight=weights) for way in ("slack", "copies", "margin")
    )
    assert np.isclose(slack.objective_, copies.objective_, rtol=1e-5)
    assert not np.isclose(slack.objective_, margin.objective_, rtol=1e-2)
    with pytest.raises(ValueError, match="weight_as"):
        SVMOrdinal(weight_as="price").fit(X, y)
