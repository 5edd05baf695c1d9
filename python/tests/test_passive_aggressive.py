"""Passive-aggressive classification: beside the definition, streams, batches, and what is refused."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from maxmargin import Model, PAClassifier, PARanker


def rows(count=400, features=6, share=0.5, seed=0):
    random = np.random.default_rng(seed)
    y = (random.random(count) < share).astype(int)
    X = random.normal(size=(count, features)) + np.where(y, 0.7, -0.7)[:, None] * (np.arange(features) < 3)
    return X, y


def by_definition(X, y, C, squared, intercept):
    """PA-I and PA-II, one row after the other."""
    w, b = np.zeros(X.shape[1]), 0.0
    for x, sign in zip(X, np.where(y == 1, 1.0, -1.0), strict=True):
        loss = max(0.0, 1.0 - sign * (x @ w + b))
        square = x @ x + intercept
        step = loss / (square + 0.5 / C) if squared else min(C, loss / square)
        w, b = w + step * sign * x, b + step * sign * intercept
    return w, b


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", [True, False])
def test_one_pass_is_that_of_the_definition(loss, intercept):
    X, y = rows()
    options = {"C": 0.3, "loss": loss, "fit_intercept": intercept}
    for given in (X, sparse.csr_matrix(X)):
        classifier = PAClassifier(max_iter=1, tol=None, shuffle=False, **options).fit(given, y)
        w, b = by_definition(X, y, 0.3, loss == "squared_hinge", float(intercept))
        np.testing.assert_allclose(classifier.coef_[0], w, atol=1e-10)
        np.testing.assert_allclose(classifier.intercept_, [b], atol=1e-10)
        stream = PAClassifier(**options)
        for start in range(0, len(y), 37):
            stream.partial_fit(given[start : start + 37], y[start : start + 37], classes=[0, 1])
        np.testing.assert_array_equal(stream.coef_, classifier.coef_)
        assert stream.t_ == len(y) + 1


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_without_a_constant_term_steps_are_those_of_scikit_learn(loss):
    linear_model = pytest.importorskip("sklearn.linear_model")
    theirs = getattr(linear_model, "PassiveAggressiveClassifier", None)
    if theirs is None:
        pytest.skip("this scikit-learn has no PassiveAggressiveClassifier any more")
    X, y = rows()
    options = {"C": 0.2, "loss": loss, "fit_intercept": False, "shuffle": False, "tol": None, "max_iter": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        expected = theirs(**options).fit(X, y)
    np.testing.assert_allclose(PAClassifier(**options).fit(X, y).coef_, expected.coef_, atol=1e-9)


def test_several_classes_have_a_score_each():
    random = np.random.default_rng(1)
    centres = 3 * random.normal(size=(4, 5))
    y = random.integers(4, size=500)
    X = centres[y] + random.normal(size=(500, 5))
    names = np.array(["pear", "apple", "fig", "10"])
    classifier = PAClassifier(random_state=3).fit(X, names[y])
    assert classifier.coef_.shape == (4, 5)
    assert classifier.intercept_.shape == (4,)
    assert classifier.score(X, names[y]) > 0.85
    scores = X @ classifier.coef_.T + classifier.intercept_
    np.testing.assert_allclose(classifier.decision_function(X), scores, atol=1e-9)
    assert (classifier.predict(X) == classifier.classes_[scores.argmax(axis=1)]).all()
    with pytest.raises(ValueError, match="for two classes"):
        PAClassifier(solver="pa-dca").fit(X, y)


@pytest.mark.parametrize(
    "solver",
    ["pa-dca", "pa-sequential", "pa-auc", "pa-max-violators", "pa-correct-mistakes", "pa_single_slack"],
)
def test_batches_are_balanced(solver):
    X, y = rows(count=6000, share=0.01, seed=2)
    stream = PAClassifier(C=0.1, solver=solver).partial_fit(X, y, classes=[0, 1])
    found = stream.progress_
    assert 1 - found["auc"] <= found["auc-loss-bound"] + 1e-9
    assert found["auc-loss-bound"] == pytest.approx(found["error-positive"] + found["error-negative"])
    assert found["mistakes"] <= found["mistake-bound"] + 1e-6
    assert found["auc"] > 0.85
    larger = PAClassifier(C=0.1, solver=solver, batch_size=8, reservoir=20).partial_fit(X, y, classes=[0, 1])
    assert larger.progress_["auc"] > 0.85


def test_a_copy_continues_exactly_and_a_model_file_predicts_the_same(tmp_path):
    X, y = rows(count=900, share=0.1)
    for options in ({"solver": "pa-dca", "average": 50}, {"average": True}):
        whole = PAClassifier(**options).partial_fit(X, y, classes=[0, 1])
        part = PAClassifier(**options).partial_fit(X[:300], y[:300], classes=[0, 1])
        part = pickle.loads(pickle.dumps(part)).partial_fit(X[300:], y[300:])
        assert part.model_.to_bytes() == whole.model_.to_bytes()
        whole.save(tmp_path / "model.mm")
        loaded = Model.load(tmp_path / "model.mm")
        np.testing.assert_array_equal(loaded.weights, whole.coef_[0])


def test_fit_stops_when_the_loss_stops_falling():
    X, y = rows(count=300)
    settled = PAClassifier(C=0.01, random_state=1).fit(X, y)
    assert settled.n_iter_ < 1000
    assert PAClassifier(C=0.01, tol=None, max_iter=17).fit(X, y).n_iter_ == 17
    held = PAClassifier(C=0.01, early_stopping=True, random_state=1, n_iter_no_change=3).fit(X, y)
    assert held.n_iter_ < 1000
    assert held.score(X, y) > 0.8
    with pytest.warns(ConvergenceWarning, match="stopped after 2 passes"):
        PAClassifier(C=0.01, max_iter=2).fit(X, y)
    again = PAClassifier(C=0.01, random_state=1).fit(X, y)
    np.testing.assert_array_equal(again.coef_, settled.coef_)


def test_weights_of_rows_and_classes_multiply_c():
    X, y = rows(count=200)
    options = {"max_iter": 1, "tol": None, "shuffle": False}
    plain = PAClassifier(C=0.4, **options).fit(X, y)
    weighted = PAClassifier(C=0.1).partial_fit(X, y, classes=[0, 1], sample_weight=np.full(200, 4.0))
    np.testing.assert_allclose(weighted.coef_, plain.coef_, atol=1e-12)
    by_class = PAClassifier(C=0.1, class_weight={0: 4.0, 1: 4.0}, **options).fit(X, y)
    np.testing.assert_allclose(by_class.coef_, plain.coef_, atol=1e-12)
    counts = np.bincount(y)
    shares = {name: 200 / (2 * counts[name]) for name in (0, 1)}
    balanced = PAClassifier(C=0.1, class_weight="balanced", **options).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, PAClassifier(C=0.1, class_weight=shares, **options).fit(X, y).coef_)


def test_warm_starts_continue_from_the_weights():
    X, y = rows(count=200)
    options = {"C": 0.1, "max_iter": 1, "tol": None, "shuffle": False}
    twice = PAClassifier(warm_start=True, **options).fit(X, y).fit(X, y)
    at_once = PAClassifier(**options | {"max_iter": 2}).fit(X, y)
    np.testing.assert_allclose(twice.coef_, at_once.coef_, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": 0}, "C must be"),
        ({"loss": "log_loss"}, "loss must be one of"),
        ({"solver": "newton"}, "solver must be one of"),
        ({"solver": "pa-dca", "batch_size": 3}, "batch_size"),
        ({"solver": "pa-dca", "batch_size": 40, "reservoir": 3}, "reservoir"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be"),
        ({"early_stopping": True, "validation_fraction": 1.0}, "validation_fraction must be"),
        ({"class_weight": "uneven"}, "class_weight must be"),
        ({"class_weight": {7: 1.0}}, "class_weight names the class 7"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words):
    X, y = rows(count=50)
    with pytest.raises(ValueError, match=words):
        PAClassifier(**options).fit(X, y)


def test_streams_need_their_classes():
    X, y = rows(count=50)
    with pytest.raises(ValueError, match="classes must be passed"):
        PAClassifier().partial_fit(X, y)
    stream = PAClassifier().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="holds the class 7"):
        stream.partial_fit(X, np.full(50, 7))
    with pytest.raises(ValueError, match="were"):
        stream.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="balanced"):
        PAClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    only = PAClassifier(solver="pa-dca").partial_fit(X[:5], np.zeros(5, dtype=int), classes=[0, 1])
    assert not only.coef_.any()


def queries(seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(240, 5))
    qid = np.repeat(np.arange(12), 20)
    y = np.clip(np.round(X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.3 * random.normal(size=240)), -1, 1) + 1
    return X, y, qid


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_pass_over_pairs_is_that_of_the_definition(loss):
    X, y, qid = queries()
    w, pairs = np.zeros(5), 0
    for query in range(12):
        rows_of = np.flatnonzero(qid == query)
        for high in rows_of:
            for low in rows_of:
                if y[high] > y[low]:
                    d = X[high] - X[low]
                    missed = max(0.0, 1.0 - w @ d)
                    w = w + d * (min(0.2, missed / (d @ d)) if loss == "hinge" else missed / (d @ d + 0.5 / 0.2))
                    pairs += 1
    ranker = PARanker(C=0.2, loss=loss, max_iter=1, tol=None, shuffle=False).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, w, atol=1e-10)
    assert ranker.n_pairs_ == pairs
    stream = PARanker(C=0.2, loss=loss, shuffle=False)
    for query in range(12):
        stream.partial_fit(X[qid == query], y[qid == query], qid=qid[qid == query])
    np.testing.assert_allclose(stream.coef_, w, atol=1e-10)


def test_a_ranker_finds_the_order_and_its_copies_continue(tmp_path):
    X, y, qid = queries()
    ranker = PARanker(random_state=2).fit(X, y, qid=qid)
    assert ranker.score(X, y, qid=qid) > 0.95
    few = PARanker(max_pairs=10, max_iter=3, tol=None).fit(X, y, qid=qid)
    assert few.n_pairs_ <= 3 * 12 * 10
    assert few.score(X, y, qid=qid) > 0.9
    ranker.save(tmp_path / "model.mm")
    np.testing.assert_allclose(Model.load(tmp_path / "model.mm").weights, ranker.coef_)
    copied = pickle.loads(pickle.dumps(ranker)).partial_fit(X, y, qid=qid)
    np.testing.assert_array_equal(copied.coef_, ranker.partial_fit(X, y, qid=qid).coef_)
    with pytest.raises(ValueError, match="nothing to learn"):
        PARanker().fit(X, np.ones(240), qid=qid)
