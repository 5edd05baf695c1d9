"""Sets of labels: every form of y, predictions, scores, the certificate and errors."""

import numpy as np
import pytest
import scipy.sparse as sparse
from sklearn.metrics import coverage_error, hamming_loss, label_ranking_average_precision_score, label_ranking_loss
from sklearn.model_selection import GridSearchCV

from maxmargin import Dataset, Model, MultilabelSVM, SVMClassifier, tune

random = np.random.default_rng(4)
X = random.normal(size=(150, 6))
Y = (X[:, :4] + 0.4 * random.normal(size=(150, 4)) > [0.3, 0.8, -0.2, 0.0]).astype(int)
Y[0], Y[1] = 0, 1
SETS = [{"abcd"[label] for label in np.flatnonzero(row)} for row in Y]


def test_every_form_of_y_gives_the_same_model():
    by_array = MultilabelSVM().fit(X, Y)
    for y in (Y.tolist(), list(Y), Y.astype(bool), Y.astype(float), sparse.csr_matrix(Y), sparse.coo_array(Y)):
        model = MultilabelSVM().fit(X, y)
        assert (model.coef_ == by_array.coef_).all(), type(y)
        assert (model.predict(X) == by_array.predict(X)).all()
    for sets in (SETS, [tuple(row) for row in SETS], np.array([frozenset(row) for row in SETS], dtype=object)):
        model = MultilabelSVM().fit(X, sets)
        assert model.classes_.tolist() == ["a", "b", "c", "d"]
        assert (model.coef_ == by_array.coef_).all()
        assert model.score(X, sets) == by_array.score(X, Y)


def test_predictions_have_the_type_of_y_and_follow_the_scores():
    for dtype in (np.int8, np.int64, np.float64, bool):
        model = MultilabelSVM().fit(X, Y.astype(dtype))
        predicted = model.predict(X)
        assert predicted.dtype == dtype and predicted.shape == Y.shape
    scores = model.decision_function(X)
    assert ((scores > 0) == predicted).all()
    assert np.allclose(scores, X @ model.coef_.T + model.intercept_)
    for row, labels in zip(scores, model.predict_sets(X), strict=True):
        assert sorted(labels) == np.flatnonzero(row > 0).tolist()
        assert (np.diff(row[labels]) <= 0).all()


@pytest.mark.parametrize("form", ["calibrated", "one-vs-rest"])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
def test_every_form_is_proven_and_saved(form, loss, intercept, tmp_path):
    model = MultilabelSVM(form=form, loss=loss, intercept=intercept, C=0.5).fit(X, Y)
    assert model.converged_ and 0 <= model.gap_ <= 1e-3 and not model.learned_nothing_
    objective, bound, _ = model.verify(X, Y)
    assert np.isclose(objective, model.objective_) and np.isclose(bound, model.model_.lower_bound)
    model.save(tmp_path / "m.mm")
    loaded = Model.load(tmp_path / "m.mm")
    assert loaded.task == "multilabel" and loaded.classes == ("0", "1", "2", "3")
    assert (loaded.scores(Dataset.dense(X)) == model.decision_function(X)).all()


def test_one_vs_rest_is_a_classifier_for_each_label():
    model = MultilabelSVM(form="one-vs-rest", loss="squared_hinge", tol=1e-8).fit(X, Y)
    for label in range(4):
        own = SVMClassifier(loss="squared_hinge", intercept="penalised", tol=1e-8).fit(X, Y[:, label])
        assert np.allclose(model.coef_[label], own.coef_[0], atol=1e-6)


def test_scores_are_good_by_scikit_learns_metrics():
    model = MultilabelSVM().fit(X, Y)
    scores = model.decision_function(X)
    assert 0 < label_ranking_loss(Y, scores) < 0.2
    assert label_ranking_average_precision_score(Y, scores) > 0.9
    assert hamming_loss(Y, model.predict(X)) < 0.2 and coverage_error(Y, scores) < 4


def test_weights_are_costs():
    weights = random.integers(0, 3, size=len(X)).astype(float)
    weighted = MultilabelSVM(tol=1e-9).fit(X, Y, sample_weight=weights)
    copies = np.repeat(np.arange(len(X)), weights.astype(int))
    repeated = MultilabelSVM(tol=1e-9).fit(X[copies], Y[copies])
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-5)


def test_one_label_per_row_is_a_set_of_one():
    names = np.array(["red", "green", "blue"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = MultilabelSVM(C=10).fit(X, names)
    assert model.classes_.tolist() == ["blue", "green", "red"]
    assert (model.predict(X) == names).mean() > 0.9 and model.decision_function(X).shape == (150, 3)
    two = MultilabelSVM(C=10).fit(X, X[:, 0] > 0)
    assert two.decision_function(X).shape == (150,) and (two.predict(X) == (X[:, 0] > 0)).mean() > 0.9


def test_labels_without_rows_and_rows_without_labels():
    wide = np.column_stack([Y, np.zeros(len(Y), dtype=int)])
    model = MultilabelSVM().fit(X, wide)
    assert model.predict(X)[2:, 4].sum() == 0
    with pytest.raises(ValueError, match="no label"):
        MultilabelSVM().fit(X, [set() for _ in X])


def test_a_hinge_that_learns_nothing_says_so():
    rows = random.normal(size=(100, 2))
    y = np.zeros((200, 2), dtype=int)
    y[:100, 0], y[100:, 1] = 1, 1
    model = MultilabelSVM(loss="hinge").fit(np.vstack([rows, rows]), y)
    assert model.learned_nothing_ and not MultilabelSVM().fit(np.vstack([rows, rows]), y).learned_nothing_


def test_it_is_tuned_and_searched():
    found = tune(MultilabelSVM(), X, Y, C=[0.1, 1.0], cv=3)
    assert found.best_params["C"] in (0.1, 1.0) and found.best_score > 0.8
    search = GridSearchCV(MultilabelSVM(), {"form": ["calibrated", "one-vs-rest"]}, cv=3).fit(X, Y)
    assert search.best_estimator_.predict(X).shape == Y.shape


def test_a_kernel_with_the_hinge():
    model = MultilabelSVM(loss="hinge", kernel="rbf", C=2.0).fit(X, Y)
    assert model.score(X, Y) > 0.5 and model.dual_coef_.shape[0] == 4
    with pytest.raises(ValueError, match="kernel"):
        MultilabelSVM(kernel="rbf").fit(X, Y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (2 * Y, "0 and 1"),
        (Y[:10], "inconsistent"),
        (np.where(Y, 3, 0) + np.arange(4), "Unknown label type"),
        ([{"a", 1}] * 150, "compared"),
        (None, "requires y"),
    ],
)
def test_targets_that_are_no_sets_are_refused(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MultilabelSVM().fit(X, y)


def test_parameters_are_checked():
    for parameters in ({"form": "joint"}, {"intercept": "some"}, {"loss": "huber"}, {"C": -1}):
        with pytest.raises(ValueError):
            MultilabelSVM(**parameters).fit(X, Y)
    with pytest.raises(ValueError, match="squared hinge"):
        MultilabelSVM(loss="squared_hinge").fit(X, Y)


def test_a_file_with_sets_brings_its_labels(tmp_path):
    from maxmargin import load

    lines = [f"{','.join(str(label) for label in np.flatnonzero(row))} 1:{x[0]} 2:{x[1]}" for row, x in zip(Y, X, strict=True)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    data = load(tmp_path / "rows.svm")
    model = MultilabelSVM().fit(data)
    assert model.classes_.tolist() == ["0", "1", "2", "3"]
    assert model.predict(data).shape == Y.shape and 0 <= model.score(data) <= 1
