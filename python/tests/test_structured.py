"""Oracles of the user: results, outputs of all kinds, exceptions, Ctrl-C, threads, files, and checks that find faults."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import maxmargin
from maxmargin import MaxmarginError, StructuredSVM, SVMClassifier, check_oracle, outputs

SOLVERS = ["frank-wolfe", "n-slack", "cutting-plane"]


class Classes:
    """Classes as outputs: the joint feature has the input at the places of the class."""

    def __init__(self, classes=3, sparse=None):
        self.classes, self.sparse = classes, sparse

    def joint_feature(self, x, y):
        if self.sparse is not None:
            return self.sparse(scipy.sparse.coo_array(np.atleast_2d(self.dense().joint_feature(x, y))))
        feature = np.zeros((self.classes, len(x)))
        feature[y] = x
        return feature.ravel()

    def loss(self, y_true, y):
        return float(y_true != y)

    def best(self, value):
        return int(np.argmax([value(y) for y in range(self.classes)]))

    def most_violated(self, x, y_true, w):
        return self.best(lambda y: self.loss(y_true, y) + w @ self.dense().joint_feature(x, y))

    def predict(self, x, w):
        return self.best(lambda y: w @ self.dense().joint_feature(x, y))

    def dense(self):
        return Classes(self.classes)


class WithSlack(Classes):
    def most_violated_by_slack(self, x, y_true, w):
        right = w @ self.joint_feature(x, y_true)
        return self.best(lambda y: self.loss(y_true, y) * (1 + w @ self.joint_feature(x, y) - right))


def rows(count=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, 3))
    return X, np.argmax(X + 0.5 * random.normal(size=(count, 3)), axis=1).tolist()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("rescale", ["margin", "slack"])
def test_classes_have_the_optimum_of_the_joint_classifier(solver, rescale):
    X, Y = rows()
    model = StructuredSVM(WithSlack(), C=0.5, solver=solver, rescale=rescale, tol=1e-6, max_iter=2000).fit(X, Y)
    joint = SVMClassifier(C=0.5, multi_class="joint", intercept="none", tol=1e-8).fit(X, Y)
    assert model.converged_ and model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(joint.objective_, rel=1e-5)
    assert model.coef_ == pytest.approx(joint.coef_.ravel(), abs=2e-2)
    assert model.n_calls_ >= len(X) and model.oracle_seconds_ > 0
    assert model.score(X, Y) == pytest.approx(np.mean(np.array(model.predict(X)) == Y))
    objective, bound, gap = model.verify(X, Y)
    assert (objective, gap) == (model.objective_, model.gap_) and bound <= objective


@pytest.mark.parametrize(
    "sparse", [lambda row: row.tocsr(), lambda row: row.tocoo(), lambda row: scipy.sparse.csr_matrix(row)]
)
def test_sparse_features_give_the_model_of_dense_ones(sparse):
    X, Y = rows(30)
    expected = StructuredSVM(Classes()).fit(X, Y)
    found = StructuredSVM(Classes(sparse=sparse)).fit(X, Y)
    assert found.coef_ == pytest.approx(expected.coef_, rel=1e-12)


def test_a_sparse_row_of_one_dimension_is_taken():
    class Flat(Classes):
        def joint_feature(self, x, y):
            return scipy.sparse.coo_array(self.dense().joint_feature(x, y))

    X, Y = rows(30)
    assert StructuredSVM(Flat()).fit(X, Y).coef_ == pytest.approx(StructuredSVM(Classes()).fit(X, Y).coef_, rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_number_of_threads_changes_no_byte(solver):
    X, Y = rows(600)
    contents = {StructuredSVM(Classes(), solver=solver, tol=1e-2, n_jobs=jobs).fit(X, Y).dumps() for jobs in (1, 2, -1)}
    assert len(contents) == 1


@pytest.mark.parametrize("solver", ["sgd", "averaged-sgd", "pegasos"])
def test_stochastic_steps_come_near_the_optimum_and_prove_nothing(solver):
    X, Y = rows()
    best = StructuredSVM(Classes(), tol=1e-6).fit(X, Y)
    found = StructuredSVM(Classes(), solver=solver, max_iter=100).fit(X, Y)
    assert best.lower_bound_ <= found.objective_ <= 1.2 * best.objective_
    assert found.lower_bound_ is None and found.gap_ is None
    assert found.verify(X, Y)[0] == pytest.approx(found.objective_)
    assert found.dumps() == StructuredSVM(Classes(), solver=solver, max_iter=100, n_jobs=2).fit(X, Y).dumps()


def test_a_hard_margin_is_found_or_the_examples_that_allow_none_are_named():
    X, Y = np.tile(np.eye(3), (4, 1)), [0, 1, 2] * 4
    model = StructuredSVM(Classes(), solver="quadratic-program").fit(X, Y)
    assert model.objective_ == pytest.approx(1.0) and model.verify(X, Y)[2] <= 1e-3
    assert StructuredSVM.loads(model.dumps(), oracle=Classes()).verify(X, Y) == model.verify(X, Y)
    with pytest.raises(MaxmarginError) as raised:
        StructuredSVM(Classes(), solver="quadratic-program").fit(X, [1] + Y[1:])
    assert raised.value.code == "MM0320"


def test_weights_of_examples_count_copies():
    X, Y = rows(40)
    weights = np.where(np.arange(40) < 20, 2.0, 1.0)
    weighted = StructuredSVM(Classes(), tol=1e-6).fit(X, Y, sample_weight=weights)
    copied = StructuredSVM(Classes(), tol=1e-6).fit(np.vstack([X, X[:20]]), Y + Y[:20])
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-5)
    assert weighted.verify(X, Y, weights)[0] == weighted.objective_
    with pytest.raises(MaxmarginError, match="not the data"):
        weighted.verify(X, Y)
    truth = np.array(weighted.predict(X)) == Y
    assert weighted.score(X, Y, weights) == pytest.approx(np.average(truth, weights=weights))


# Outputs.


class Choice:
    """One of some outputs, each with a feature of its own."""

    def __init__(self, choices):
        self.choices = choices

    def at(self, y):
        return next(at for at, known in enumerate(self.choices) if outputs.encoded(known) == outputs.encoded(y))

    def joint_feature(self, x, y):
        return np.eye(len(self.choices))[self.at(y)] * x

    def loss(self, y_true, y):
        return float(self.at(y_true) != self.at(y))

    def most_violated(self, x, y_true, w):
        return max(self.choices, key=lambda y: self.loss(y_true, y) + w @ self.joint_feature(x, y))

    def predict(self, x, w):
        return max(self.choices, key=lambda y: w @ self.joint_feature(x, y))


CHOICES = [
    [0, 1, 2],
    [True, None, 1.5],
    ["a", "déjà", ""],
    [(1, 2), (1, (2, 3)), ()],
    [[1, [2, "x"]], [], [[]]],
    [np.array([1, 2]), np.array([[1.5], [2.5]]), np.array(["a", "bc"])],
    [np.int64(3), np.float32(0.1), np.bool_(True)],
    [{"a": (1,), 2: [3]}, {1, 2}, frozenset({"x"})],
    [float("nan"), float("inf"), -0.5],
]


@pytest.mark.parametrize("choices", CHOICES, ids=lambda choices: type(choices[0]).__name__)
def test_outputs_of_many_kinds_are_learned_saved_and_verified(choices):
    X, Y = [1.0, 2.0, 3.0], choices
    for y in choices:
        again = outputs.decoded(outputs.encoded(y))
        assert type(again) is type(y) and outputs.encoded(again) == outputs.encoded(y)
        assert len(outputs.encoded(y)) % 4 == 0
        np.testing.assert_equal(again, y)
    check_oracle(Choice(choices), X, Y)
    model = StructuredSVM(Choice(choices), C=5).fit(X, Y)
    loaded = StructuredSVM.loads(model.dumps(), oracle=Choice(choices))
    assert loaded.verify(X, Y)[0] == model.objective_


def test_an_output_without_an_encoding_needs_methods_of_the_oracle():
    class Point:
        def __init__(self, at):
            self.at = at

    class Points:
        def joint_feature(self, x, y):
            return np.array([x, 1.0]) * y.at

        def loss(self, y_true, y):
            return float(abs(y_true.at - y.at))

        def most_violated(self, x, y_true, w):
            return max(map(Point, (-1, 1)), key=lambda y: self.loss(y_true, y) + w @ self.joint_feature(x, y))

        def predict(self, x, w):
            return max(map(Point, (-1, 1)), key=lambda y: w @ self.joint_feature(x, y))

    X, Y = [1.0, -2.0], [Point(1), Point(-1)]
    with pytest.raises(
        TypeError, match=r"holds something of type Point, which has no encoding of its own: give the oracle the methods"
    ):
        StructuredSVM(Points()).fit(X, Y)

    class Coded(Points):
        def encode(self, y):
            return [y.at + 1]

        def decode(self, numbers):
            return Point(numbers[0] - 1)

    check_oracle(Coded(), X, Y)
    model = StructuredSVM(Coded()).fit(X, Y)
    assert [y.at for y in model.predict(X)] == [1, -1] and model.verify(X, Y)[0] == model.objective_

    class Negative(Coded):
        def encode(self, y):
            return [y.at]

    with pytest.raises(ValueError, match="encode"):
        StructuredSVM(Negative()).fit(X, Y)

    class Half(Points):
        def encode(self, y):
            return [0]

    with pytest.raises(TypeError, match="both methods encode and decode"):
        StructuredSVM(Half()).fit(X, Y)


# Exceptions and Ctrl-C.


class Fails(Classes):
    """Raises an exception in one of the methods, for some inputs."""

    def __init__(self, method="most_violated", classes=3):
        super().__init__(classes)
        self.method = method

    def broken(self, method, x=None):
        if self.method == method and (x is None or x[0] > 0.5):
            raise LookupError(f"no such thing as {x}")

    def joint_feature(self, x, y):
        self.broken("joint_feature", x)
        return super().joint_feature(x, y)

    def loss(self, y_true, y):
        self.broken("loss")
        return super().loss(y_true, y)

    def most_violated(self, x, y_true, w):
        self.broken("most_violated", x)
        return self.best(lambda y: float(y != y_true) + w @ Classes().joint_feature(x, y))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("method", ["joint_feature", "loss", "most_violated"])
def test_an_exception_of_the_oracle_is_raised_with_its_traceback(method, solver, jobs):
    X, Y = rows(300)
    first = next(x for x in X if x[0] > 0.5) if method != "loss" else None
    estimator = StructuredSVM(Fails(method), solver=solver, n_jobs=jobs)
    with pytest.raises(LookupError) as raised:
        estimator.fit(X, Y)
    # It is the exception of the first example that has one.
    assert str(raised.value) == f"no such thing as {first}"
    assert "in broken" in "".join(traceback.format_tb(raised.value.__traceback__))
    assert not hasattr(estimator, "model_")


def test_predict_score_and_verify_raise_the_exceptions_of_the_oracle():
    X, Y = rows(40)
    model = StructuredSVM(Classes()).fit(X, Y)
    model.oracle = Fails("loss")
    for method in (model.score, model.verify):
        with pytest.raises(LookupError):
            method(X, Y)
    with pytest.raises(LookupError):
        check_oracle(Fails(), X, Y)


INTERRUPTED = """
import sys, time
sys.path.insert(0, {folder!r})
from test_structured import Classes, rows
from maxmargin import StructuredSVM

class Slow(Classes):
    def most_violated(self, x, y_true, w):
        print("searching", flush=True)
        while True:
            {body}

X, Y = rows(60)
try:
    StructuredSVM(Slow(), n_jobs={jobs}).fit(X, Y)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("body", ["pass", "time.sleep(0.01)"])
def test_ctrl_c_ends_an_oracle_that_takes_forever(jobs, body):
    script = INTERRUPTED.format(folder=os.path.dirname(__file__), body=body, jobs=jobs)
    started = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        # Two threads may print at once.
        assert started.stdout.readline().startswith("searching")
        began = time.monotonic()
        started.send_signal(signal.SIGINT)
        said, _ = started.communicate(timeout=30)
        assert "interrupted\n" in said and started.returncode == 0
        assert time.monotonic() - began < 10
    finally:
        started.kill()


def test_a_callback_stops_the_training_and_an_exception_of_it_is_raised():
    X, Y = rows(60)
    stopped = StructuredSVM(Classes(), tol=0, callback=lambda progress: progress.iteration >= 2).fit(X, Y)
    assert stopped.n_iter_ == 2 and not stopped.converged_
    seen = []
    StructuredSVM(Classes(), callback=lambda progress: seen.append(progress.coef)).fit(X, Y)
    assert seen[-1].shape == (9,) and np.any(seen[-1] != 0)

    def fails(progress):
        raise LookupError("in the callback")

    with pytest.raises(LookupError, match="in the callback"):
        StructuredSVM(Classes(), callback=fails).fit(X, Y)
    with pytest.warns(maxmargin.estimator.ConvergenceWarning, match="raise max_iter"):
        StructuredSVM(Classes(), max_iter=1, tol=1e-9).fit(X, Y)


# Files, copies and scikit-learn.


def test_a_saved_model_is_loaded_with_its_oracle(tmp_path):
    X, Y = rows(40)
    model = StructuredSVM(WithSlack(), C=2, rescale="slack", solver="n-slack", tol=1e-4, random_state=3).fit(X, Y)
    model.save(tmp_path / "own.mm")
    loaded = StructuredSVM.load(tmp_path / "own.mm", oracle=WithSlack())
    kept = ["C", "rescale", "solver", "tol", "random_state"]
    assert all(getattr(loaded, name) == getattr(model, name) for name in kept)
    assert loaded.predict(X) == model.predict(X) and loaded.gap_ == model.gap_
    assert loaded.verify(X, Y) == model.verify(X, Y)
    assert loaded.dumps() == model.dumps() == (tmp_path / "own.mm").read_bytes()
    with pytest.raises(MaxmarginError, match="not the data"):
        loaded.verify(X, [(y + 1) % 3 for y in Y])
    other = SVMClassifier().fit(X, Y).model_.to_bytes()
    with pytest.raises(ValueError, match="not saved by StructuredSVM: its task is 'classify'"):
        StructuredSVM.loads(other, oracle=Classes())


def test_training_continues_from_the_fitted_model():
    X, Y = rows()
    rough = StructuredSVM(Classes(), tol=0.1, warm_start=True).fit(X, Y)
    calls = rough.n_calls_
    assert rough.gap_ > 1e-6
    rough.set_params(tol=1e-6).fit(X, Y)
    anew = StructuredSVM(Classes(), tol=1e-6).fit(X, Y)
    assert rough.gap_ <= 1e-6 and rough.objective_ == pytest.approx(anew.objective_, rel=2e-6)
    assert rough.n_calls_ < anew.n_calls_ + calls
    with pytest.raises(MaxmarginError, match="not the data"):
        rough.fit(X[:-1], Y[:-1])


@pytest.mark.parametrize("solver", ["auto", "averaged-sgd"])
def test_held_out_examples_stop_the_training(solver):
    (X, Y), held_out = rows(), rows(40, seed=3)
    judged = []
    model = StructuredSVM(
        Classes(), C=1000, solver=solver, callback=lambda progress: judged.append(progress.held_out)
    ).fit(X, Y, eval_set=held_out)
    assert len(judged) > 2 and None not in judged
    assert model.score(*held_out) == pytest.approx(1 - min(judged))
    model.verify(X, Y)


def test_faults_of_held_out_examples_are_named():
    X, Y = rows()
    with pytest.raises(ValueError, match="X of eval_set has 2 inputs, and the Y of eval_set has 1 outputs"):
        StructuredSVM(Classes()).fit(X, Y, eval_set=(X[:2], Y[:1]))
    with pytest.raises(TypeError, match="eval_set must be a tuple"):
        StructuredSVM(Classes()).fit(X, Y, eval_set=X)

    class Stumbling(Classes):
        def predict(self, x, w):
            raise ZeroDivisionError("a fault of predict")

    with pytest.raises(ZeroDivisionError, match="a fault of predict"):
        StructuredSVM(Stumbling()).fit(X, Y, eval_set=(X, Y))


def test_clone_parameters_pickle_and_copies_work():
    X, Y = rows(40)
    model = StructuredSVM(Classes(), C=3.0, n_jobs=2).fit(X, Y)
    assert set(model.get_params(deep=False)) >= {"oracle", "C", "solver", "rescale", "tol", "n_jobs"}
    fresh = clone(model)
    assert fresh.C == 3.0 and not hasattr(fresh, "coef_") and isinstance(fresh.oracle, Classes)
    assert fresh.set_params(C=1.0).C == 1.0
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.predict(X) == model.predict(X) and other.verify(X, Y) == model.verify(X, Y)


def test_it_is_tuned_and_cross_validated_by_scikit_learn():
    X, Y = rows(60)
    found = GridSearchCV(StructuredSVM(Classes()), {"C": [1e-4, 1.0]}, cv=3).fit(X, Y)
    assert found.best_params_ == {"C": 1.0}
    # Inputs are words, and outputs how many letters are an a, at most two.
    words = ["".join(letters) for letters in product("ab", repeat=4)]
    counts = [min(2, word.count("a")) for word in words]

    class Letters(Classes):
        def dense(self):
            return self

        def joint_feature(self, x, y):
            return Classes().joint_feature([1.0, x.count("a")], y)

    assert cross_val_score(StructuredSVM(Letters(), C=10), words, counts, cv=4).mean() > 0.8


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"C": 0}, ValueError, "C must be a finite number above 0"),
        ({"C": "1"}, TypeError, "C must be a finite number"),
        (
            {"solver": "newton"},
            ValueError,
            "solver must be one of auto, frank-wolfe, n-slack, cutting-plane, quadratic-program",
        ),
        ({"rescale": "loss"}, ValueError, "rescale must be one of margin, slack"),
        ({"rescale": "slack"}, MaxmarginError, 'no method most_violated_by_slack.*rescale="margin"'),
        (
            {"oracle": object()},
            TypeError,
            "has no method joint_feature and no loss and no most_violated and no predict",
        ),
        ({"max_iter": 0}, ValueError, "max_iter"),
    ],
)
def test_bad_parameters_are_named(change, error, words):
    X, Y = rows(20)
    with pytest.raises(error, match=words):
        StructuredSVM(Classes()).set_params(**change).fit(X, Y)


def test_bad_examples_are_named():
    X, Y = rows(20)
    for X_, Y_, error, words in [
        (X, Y[:3], ValueError, "X has 20 inputs, and Y has 3 outputs"),
        ([], [], ValueError, "at least one"),
        ("words", Y, TypeError, "X must be a sequence"),
        (X, None, ValueError, "requires y to be passed"),
        (3, Y, TypeError, "X must be a sequence"),
    ]:
        with pytest.raises(error, match=words):
            StructuredSVM(Classes()).fit(X_, Y_)
    with pytest.raises(ValueError, match="sample_weight"):
        StructuredSVM(Classes()).fit(X, Y, sample_weight=[1.0])
    with pytest.raises((ValueError, MaxmarginError), match="weight"):
        StructuredSVM(Classes()).fit(X, Y, sample_weight=[-1.0] * 20)


# Faults.


def faulty(**methods):
    return type("Faulty", (WithSlack,), methods)()


def odd(first, second):
    answers = iter([first, second] * 100_000)
    return lambda *_: next(answers)


def long_at_one(self, x, y):
    return np.ones(10 if y == 1 else 9)


def nan_at_one(self, x, y):
    feature = Classes().joint_feature(x, y)
    feature[4] = np.nan if y == 1 else 0.0
    return feature


FAULTS = {
    "a search that is never right": ({"most_violated": lambda *_: 0}, "most_violated returns 0 "),
    "slack": ({"most_violated_by_slack": lambda *_: 0}, "most_violated_by_slack returns 0 "),
    "prediction": ({"predict": lambda *_: 0}, "predict returns 0 with score"),
    "loss at the truth": ({"loss": lambda *_: 0.5}, "the loss of the truth is 0.5, and must be 0"),
    "negative loss": ({"loss": lambda self, a, b: -float(a != b)}, "the loss of an output is -1"),
    "loss that is no number": ({"loss": lambda *_: "much"}, "loss must return a number, and returns 'much'"),
    "loss NaN": ({"loss": lambda self, a, b: float("nan") if a != b else 0.0}, "the loss of an output is NaN"),
    "length": ({"joint_feature": long_at_one}, "length"),
    "NaN": ({"joint_feature": nan_at_one}, "entry 4 of its joint feature is NaN"),
    "shape": ({"joint_feature": lambda *_: np.ones((3, 3))}, r"has shape \(3, 3\): it must be one row"),
    "changing search": ({"most_violated": odd(0, 1)}, "most_violated changes its answer"),
    "changing prediction": ({"predict": odd(0, 1)}, "predict changes its answer"),
    "code": (
        {"encode": lambda self, y: [y], "decode": lambda self, numbers: 0},
        r"the output \d is encoded as \[\d\], and once decoded as \[0\]",
    ),
    "writes to the weights": (
        {"most_violated": lambda self, x, y, w: w.sort()},
        "read-only",
    ),
}


@pytest.mark.parametrize(("methods", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_the_check_names_what_is_wrong(methods, words):
    X, Y = rows(30)
    check_oracle(WithSlack(), X, Y)
    with pytest.raises((ValueError, TypeError), match=words):
        check_oracle(faulty(**methods), X, Y)


@pytest.mark.parametrize("fault", ["loss NaN", "NaN", "length"])
def test_training_ends_at_numbers_that_cannot_be(fault):
    X, Y = rows(30)
    methods, words = FAULTS[fault]
    with pytest.raises((ValueError, TypeError), match=words):
        StructuredSVM(faulty(**methods)).fit(X, Y)


def test_a_search_of_subsets_is_the_best_of_all():
    """The twin of the search that tries all choices: objective and bound enclose an optimum by sampling weights."""
    random = np.random.default_rng(1)

    class Subsets:
        def joint_feature(self, x, y):
            return x[list(y)].sum(axis=0)

        def loss(self, y_true, y):
            return 1.0 - len(set(y_true) & set(y)) / 2

        def most_violated(self, x, y_true, w):
            # Rows are chosen on their own, so the two best ones are the best choice.
            value = x @ w + np.isin(np.arange(len(x)), y_true) * -0.5
            return tuple(sorted(int(at) for at in np.argsort(-value, kind="stable")[:2]))

        def predict(self, x, w):
            return tuple(sorted(int(at) for at in np.argsort(-(x @ w), kind="stable")[:2]))

    oracle = Subsets()
    X = random.normal(size=(30, 6, 4))
    Y = [oracle.predict(x, np.array([1.0, -1.0, 0.5, 0.0])) for x in X]
    for _ in range(50):
        w = random.normal(size=4)
        for x, y in zip(X, Y, strict=True):
            pairs = [oracle.most_violated(x, y, w), *combinations(range(6), 2)]
            values = [oracle.loss(y, z) + w @ oracle.joint_feature(x, z) for z in pairs]
            assert values[0] == pytest.approx(max(values))
    check_oracle(oracle, X, Y)
    model = StructuredSVM(oracle, C=10, tol=1e-5).fit(X, Y)
    assert model.score(X, Y) == 1.0
    for _ in range(200):
        w = model.coef_ + 0.1 * random.normal(size=4)
        cost = sum(
            max(
                oracle.loss(y, z) + w @ (oracle.joint_feature(x, z) - oracle.joint_feature(x, y))
                for z in combinations(range(6), 2)
            )
            for x, y in zip(X, Y, strict=True)
        )
        assert 0.5 * w @ w + 10 * cost >= model.lower_bound_ * (1 - 1e-9)
