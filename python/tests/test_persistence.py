"""Copies, pickles and other processes, scikit-learn's tools around the estimators, and tuning."""

import copy
import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    Dataset,
    Model,
    PAComparator,
    SVMClassifier,
    SVMComparator,
    SVMRanker,
    metrics,
    tune,
)

ROWS = 120
GENERATOR = np.random.default_rng(41)
X = GENERATOR.normal(size=(ROWS, 4))
NOISY = X @ [1.0, -2.0, 0.5, 0.0] + GENERATOR.normal(size=ROWS)
Y = np.where(NOISY > 0, "yes", "no")
GRADES = np.digitize(NOISY, [-2, 0, 2])
QID = GENERATOR.permutation(np.arange(ROWS) // 10)
OTHER = X[::-1]
DIFFERENCE = NOISY[::-1] - NOISY
OUTCOMES = np.where(np.abs(DIFFERENCE) < 1.5, 0, np.sign(DIFFERENCE)).astype(int)

#: Each kind of estimator, and its training data.
KINDS = {
    "classifier": (SVMClassifier(C=0.5, random_state=3), (X, Y), {}),
    "kernel classifier": (SVMClassifier(kernel="rbf", gamma=0.25), (X, Y), {}),
    "ranker": (SVMRanker(loss="hinge"), (X, GRADES), {"qid": QID}),
    "kernel ranker": (SVMRanker(kernel="poly", gamma=0.25, degree=2), (X, GRADES), {"qid": QID}),
    "comparator": (SVMComparator(), (X, OTHER, OUTCOMES), {}),
    "stream": (PAComparator(C=0.1, kappa=0.5), (X, OTHER, OUTCOMES), {}),
}


def fitted(kind):
    estimator, data, more = KINDS[kind]
    return clone(estimator).fit(*data, **more)


def scores(estimator, rows=X):
    return (estimator.predict if isinstance(estimator, SVMRanker) else estimator.decision_function)(rows)


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


def through_every_protocol(value):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        value = pickle.loads(pickle.dumps(value, protocol))
    return value


def through_joblib(value, tmp_path):
    joblib.dump(value, tmp_path / "value.joblib")
    return joblib.load(tmp_path / "value.joblib")


def through_a_file(value, tmp_path):
    value.save(tmp_path / "value.mm")
    return Model.load(tmp_path / "value.mm")


@pytest.fixture(params=["pickle", "every protocol", "copy", "deep copy", "joblib"])
def copied(request, tmp_path):
    ways = {
        "pickle": through_pickle,
        "every protocol": through_every_protocol,
        "copy": copy.copy,
        "deep copy": copy.deepcopy,
        "joblib": lambda value: through_joblib(value, tmp_path),
    }
    return ways[request.param]


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_of_what_was_fitted_is_the_same(kind, copied):
    estimator = fitted(kind)
    other = copied(estimator)
    assert other.get_params() == estimator.get_params()
    assert scores(other).tobytes() == scores(estimator).tobytes()
    assert other.model_.to_bytes() == estimator.model_.to_bytes()
    assert sorted(vars(other)) == sorted(vars(estimator)) or kind == "stream"
    for name, value in vars(estimator).items():
        if name.endswith("_") and name != "model_":
            np.testing.assert_array_equal(getattr(other, name), value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_of_what_was_not_fitted_is_not_fitted(kind, copied):
    estimator, data, more = KINDS[kind]
    other = copied(estimator)
    assert other.get_params() == estimator.get_params()
    with pytest.raises(NotFittedError):
        scores(other)
    assert scores(other.fit(*data, **more)).tobytes() == scores(fitted(kind)).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_clone_knows_the_parameters_alone(kind):
    estimator = fitted(kind)
    other = clone(estimator)
    assert other.get_params() == estimator.get_params() and not hasattr(other, "model_")
    _, data, more = KINDS[kind]
    assert other.fit(*data, **more).model_.to_bytes() == estimator.model_.to_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_of_a_model_is_the_same(kind, copied):
    model = fitted(kind).model_
    other = copied(model)
    assert other.to_bytes() == model.to_bytes()
    assert other.settings == model.settings and other.objective == model.objective


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_a_model_is_the_same(kind, tmp_path):
    estimator = fitted(kind)
    estimator.save(tmp_path / "estimator.mm")
    assert (tmp_path / "estimator.mm").read_bytes() == estimator.model_.to_bytes()
    assert through_a_file(estimator.model_, tmp_path).to_bytes() == estimator.model_.to_bytes()


def test_a_model_without_its_witness_is_smaller_and_scores_the_same():
    classifier = fitted("classifier")
    data = classifier._dataset(X, Y)
    bare = classifier.model_.without_witness()
    assert len(bare.to_bytes()) < len(classifier.model_.to_bytes())
    assert bare.scores(data).tobytes() == classifier.model_.scores(data).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_other_processes_fit_and_score_the_same(kind):
    _, data, more = KINDS[kind]
    expected = fitted(kind)
    workers = joblib.Parallel(n_jobs=2, backend="loky")
    fits = workers(joblib.delayed(clone(expected).fit)(*data, **more) for _ in range(2))
    for estimator in fits:
        assert estimator.model_.to_bytes() == expected.model_.to_bytes()
    scoring = expected.predict if isinstance(expected, SVMRanker) else expected.decision_function
    for found in workers(joblib.delayed(scoring)(part) for part in np.split(X, 2)):
        assert len(found) == ROWS // 2
    assert np.concatenate(workers(joblib.delayed(scoring)(part) for part in np.split(X, 2))).tobytes() == (
        scores(expected).tobytes()
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_stream_goes_on_exactly_where_a_copy_stopped(loss, copied):
    unbroken, broken = PAComparator(loss=loss, C=0.3), PAComparator(loss=loss, C=0.3)
    for start in range(0, ROWS, 10):
        part = slice(start, start + 10)
        unbroken.partial_fit(X[part], OTHER[part], OUTCOMES[part])
        broken = copied(broken).partial_fit(X[part], OTHER[part], OUTCOMES[part])
    assert broken.coef_.tobytes() == unbroken.coef_.tobytes()
    assert broken.threshold_ == unbroken.threshold_ and broken.n_pairs_ == unbroken.n_pairs_ == ROWS
    assert broken.confusion_ == unbroken.confusion_
    assert broken.recent_error_ == unbroken.recent_error_
    assert broken.model_.to_bytes() == unbroken.model_.to_bytes()


def test_a_copy_of_a_stream_learns_apart_from_it(copied):
    stream = PAComparator().partial_fit(X[:20], OTHER[:20], OUTCOMES[:20])
    before = stream.coef_.copy()
    other = copied(stream).partial_fit(X[20:], OTHER[20:], OUTCOMES[20:])
    assert stream.coef_.tobytes() == before.tobytes() and stream.n_pairs_ == 20
    assert other.n_pairs_ == ROWS
    stream.partial_fit(X[20:], OTHER[20:], OUTCOMES[20:])
    assert stream.coef_.tobytes() == other.coef_.tobytes()


def test_learning_in_parts_is_one_pass():
    whole = fitted("stream")
    parts = clone(whole)
    for row in range(ROWS):
        parts.partial_fit(X[row : row + 1], OTHER[row : row + 1], OUTCOMES[row : row + 1])
    assert parts.coef_.tobytes() == whole.coef_.tobytes()


def test_a_change_of_parameters_holds_from_the_next_part_on():
    stream = PAComparator(C=0.3).partial_fit(X[:60], OTHER[:60], OUTCOMES[:60])
    before = stream.coef_.copy()
    quick = copy.deepcopy(stream).partial_fit(X[60:], OTHER[60:], OUTCOMES[60:])
    assert np.abs(quick.coef_ - before).max() > 1e-2
    stream.set_params(C=1e-6).partial_fit(X[60:], OTHER[60:], OUTCOMES[60:])
    assert 0 < np.abs(stream.coef_ - before).max() < 1e-3


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


FOLDS = GroupKFold(n_splits=4)


def by_hand(ranker):
    """NDCG of each fold, with whole queries held out."""
    found = []
    for train, test in FOLDS.split(X, GRADES, groups=QID):
        fold = clone(ranker).fit(X[train], GRADES[train], qid=QID[train])
        found.append(metrics.ndcg_score(GRADES[test], fold.predict(X[test]), qid=QID[test]))
    return found


@pytest.mark.usefixtures("routing")
def test_cross_validation_routes_queries():
    ranker = SVMRanker().set_fit_request(qid=True).set_score_request(qid=True)
    found = cross_validate(ranker, X, GRADES, cv=FOLDS, params={"qid": QID, "groups": QID})
    np.testing.assert_allclose(found["test_score"], by_hand(SVMRanker()), rtol=1e-12)


@pytest.mark.usefixtures("routing")
def test_a_grid_search_routes_queries():
    ranker = SVMRanker().set_fit_request(qid=True).set_score_request(qid=True)
    search = GridSearchCV(ranker, {"C": [1e-4, 1.0]}, cv=FOLDS).fit(X, GRADES, qid=QID, groups=QID)
    expected = [np.mean(by_hand(SVMRanker(C=C))) for C in (1e-4, 1.0)]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)
    best = SVMRanker(**search.best_params_).fit(X, GRADES, qid=QID)
    assert search.predict(X).tobytes() == best.predict(X).tobytes()
    assert search.score(X, GRADES, qid=QID) == best.score(X, GRADES, qid=QID)


@pytest.mark.usefixtures("routing")
def test_a_pipeline_routes_queries():
    ranker = SVMRanker().set_fit_request(qid=True).set_score_request(qid=True)
    pipeline = make_pipeline(StandardScaler(), ranker).fit(X, GRADES, qid=QID)
    scaled = StandardScaler().fit_transform(X)
    expected = SVMRanker().fit(scaled, GRADES, qid=QID)
    assert pipeline.predict(X).tobytes() == expected.predict(scaled).tobytes()
    assert pipeline.score(X, GRADES, qid=QID) == expected.score(scaled, GRADES, qid=QID)
    found = cross_validate(pipeline, X, GRADES, cv=FOLDS, params={"qid": QID, "groups": QID})
    assert found["test_score"].min() > 0.5


def test_a_pipeline_without_routing_names_its_step():
    pipeline = make_pipeline(StandardScaler(), SVMRanker()).fit(X, GRADES, svmranker__qid=QID)
    scaled = StandardScaler().fit_transform(X)
    assert pipeline.predict(X).tobytes() == SVMRanker().fit(scaled, GRADES, qid=QID).predict(scaled).tobytes()


def test_a_search_for_a_classifier_needs_nothing():
    search = GridSearchCV(SVMClassifier(), {"C": [0.01, 1.0], "loss": ["hinge", "logistic"]}, cv=3, n_jobs=2).fit(X, Y)
    assert search.best_score_ > 0.7 and search.predict(X).shape == (ROWS,)


COSTS = [1e-3, 1e-1, 10.0]


@pytest.mark.parametrize("kind", ["classifier", "ranker", "comparator", "kernel classifier"])
def test_tune_finds_the_best_of_what_it_tried(kind):
    estimator, data, more = KINDS[kind]
    before = estimator.get_params()
    found = tune(estimator, *data, C=COSTS, cv=4, **more)
    assert estimator.get_params() == before and not hasattr(estimator, "model_")
    assert [row["C"] for row in found.results] == COSTS
    name = next(name for name in found.results[0] if name.startswith("mean_"))
    means = [row[name] for row in found.results]
    assert found.best_score == (min(means) if kind == "comparator" else max(means))
    for row in found.results:
        folds = row[name.replace("mean_", "folds_")]
        assert len(folds) == 4 and np.mean(folds) == pytest.approx(row[name], rel=1e-12)
    refitted = clone(estimator).set_params(**found.best_params).fit(*data, **more)
    # Each result is within tol of the optimum.
    assert found.best_estimator.objective_ == pytest.approx(refitted.objective_, rel=estimator.tol)
    assert found.best_estimator.get_params() == refitted.get_params()


def test_tune_keeps_queries_whole():
    # Each query has its own feature that determines the grades of its rows. It helps only if rows of the same query are
    # on both sides of a split.
    generator, queries = np.random.default_rng(42), 40
    qid = generator.permutation(np.repeat(np.arange(queries), 5))
    grades = generator.integers(0, 2, size=len(qid))
    telling = np.zeros((len(qid), queries))
    telling[np.arange(len(qid)), qid] = 2 * grades - 1
    ranker = SVMRanker()
    learned = clone(ranker).fit(telling, grades, qid=qid).predict(telling)
    assert metrics.pair_accuracy_score(grades, learned, qid=qid) == 1.0
    found = tune(ranker, telling, grades, qid=qid, C=[1.0], cv=5, metrics="pair-accuracy")
    assert found.best_score == 0.5


def test_tune_agrees_with_its_folds_made_by_hand():
    # There are as many folds as queries, so each fold is one query for any seed.
    few = QID < 6
    rows, grades, qid = X[few], GRADES[few], QID[few]
    found = tune(SVMRanker(tol=1e-9), rows, grades, qid=qid, C=[0.1], cv=6, metrics=["ndcg", "pair-accuracy"])
    expected = {"ndcg": [], "pair-accuracy": []}
    for query in range(6):
        out = qid == query
        ranker = SVMRanker(C=0.1, tol=1e-9).fit(rows[~out], grades[~out], qid=qid[~out])
        for name, values in expected.items():
            values.append(metrics.evaluate(name, grades[out], ranker.predict(rows[out]), qid=qid[out]))
    for name, values in expected.items():
        np.testing.assert_allclose(sorted(found.results[0][f"folds_{name}"]), sorted(values), rtol=1e-9)
        assert found.results[0][f"mean_{name}"] == pytest.approx(np.mean(values), rel=1e-9)


def test_tune_searches_widths_of_kernels():
    found = tune(SVMClassifier(kernel="rbf"), X, Y, C=[0.1, 1.0], gamma=[0.01, 0.5], cv=3)
    assert {(row["C"], row["gamma"]) for row in found.results} == {(0.1, 0.01), (0.1, 0.5), (1.0, 0.01), (1.0, 0.5)}
    assert found.best_estimator.gamma == found.best_params["gamma"] == found.best_estimator.gamma_


@pytest.mark.parametrize("kind", ["classifier", "ranker", "comparator"])
def test_tune_has_a_grid_of_its_own(kind):
    estimator, data, more = KINDS[kind]
    found = tune(estimator, *data, cv=3, **more)
    assert len(found.results) > 3 and found.best_params["C"] in [row["C"] for row in found.results]


@pytest.mark.parametrize("kind", ["classifier", "ranker", "comparator"])
def test_tune_ends_where_the_callback_says_so(kind):
    estimator, data, more = KINDS[kind]
    seen = []

    def callback(tried):
        seen.append((tried.done, tried.total, tried.c))
        return tried.done == 2

    found = tune(estimator, *data, C=COSTS, cv=3, callback=callback, **more)
    assert seen == [(1, 3, COSTS[0]), (2, 3, COSTS[1])]
    assert [row["C"] for row in found.results] == COSTS[:2]
    assert found.best_params["C"] in COSTS[:2] and hasattr(found.best_estimator, "model_")


@pytest.mark.parametrize("kind", ["classifier", "ranker", "comparator"])
def test_a_callback_that_answers_true_ends_training_with_the_best_so_far(kind):
    estimator, data, more = KINDS[kind]
    seen = []

    def callback(progress):
        seen.append(progress.iteration)
        return len(seen) == 2

    stopped = clone(estimator).set_params(callback=callback, tol=1e-12).fit(*data, **more)
    assert len(seen) == 2 and not stopped.converged_
    assert np.isfinite(scores(stopped)).all()


def test_what_was_tuned_is_a_table_for_notebooks():
    found = tune(SVMClassifier(), X, Y, C=[0.1, 1.0], cv=3)
    assert found._repr_html_().count("<tr") == 3


def test_a_model_with_several_scores_a_row_gives_arrays_of_two_dimensions():
    golden = Path(__file__).parents[2] / "crates/maxmargin/tests/it/golden/format_2/own_scores.mm"
    model = Model.load(golden)
    rows = np.random.default_rng(1).normal(size=(7, 5))
    scores = model.scores(Dataset.dense(rows))
    assert scores.shape == (7, 3)
    assert model.weights.shape == (3, 5)
    assert model.intercepts.shape == (3,)
    one = model.scores(Dataset.dense(rows[3:4]))
    np.testing.assert_array_equal(one[0], scores[3])
    # Scores are linear: differences of rows depend on weights and scaling alone.
    zero, units = model.scores(Dataset.dense(np.zeros((1, 5)))), model.scores(Dataset.dense(np.eye(5)))
    np.testing.assert_allclose(scores, zero + rows @ (units - zero), atol=1e-12)
    factor = (units - zero)[:, 0] / model.weights[0]
    np.testing.assert_allclose((units - zero).T, model.weights * factor, atol=1e-12)
