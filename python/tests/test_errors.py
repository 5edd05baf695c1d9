"""Errors raise the exception that a Python programmer expects, with the name of the argument in the message."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from scipy import sparse
from sklearn.exceptions import NotFittedError

import maxmargin
from maxmargin import (
    MaxmarginError,
    Model,
    MultilabelSVM,
    PAClassifier,
    PAComparator,
    StructuredSVM,
    SVMClassifier,
    SVMComparator,
    SVMRanker,
    _core,
    load,
    metrics,
    tune,
)

ROWS, COLUMNS = 20, 3
X = np.random.default_rng(21).normal(size=(ROWS, COLUMNS))
Y = (X[:, 0] > 0).astype(int)
QID = np.arange(ROWS) // 5
OUTCOMES = np.where(np.arange(ROWS) % 7 == 0, 0, np.sign(X[::-1, 0] - X[:, 0])).astype(int)

BATCH = [SVMClassifier, SVMRanker, SVMComparator]
ALL = [*BATCH, PAComparator]


def fit(kind, X=X, y=Y, **more):
    """An estimator of this kind, fitted to rows and classes. Comparators compare the rows with the rows in reverse."""
    parameters = {name: more.pop(name) for name in list(more) if name not in ("sample_weight", "qid")}
    if kind in (SVMComparator, PAComparator):
        outcomes = OUTCOMES if y is Y else y
        backwards = X[::-1] if getattr(X, "ndim", 0) > 1 and not sparse.issparse(X) else X
        return kind(**parameters).fit(X, backwards, outcomes, **more)
    return kind(**parameters).fit(X, y, **more)


def side(kind):
    """The name of the first argument of fit."""
    return "X_left" if kind in (SVMComparator, PAComparator) else "X"


def changed(value, row=3, column=1):
    other = X.copy()
    other[row, column] = value
    return other


@pytest.mark.parametrize("kind", ALL)
class TestFeatures:
    def test_of_one_dimension(self, kind):
        with pytest.raises(ValueError, match="Expected 2D array"):
            fit(kind, X[:, 0])

    def test_of_three_dimensions(self, kind):
        with pytest.raises(ValueError, match="Found array with dim 3"):
            fit(kind, X.reshape(ROWS, COLUMNS, 1))

    def test_that_are_a_scalar(self, kind):
        with pytest.raises(ValueError, match="Expected 2D array"):
            fit(kind, np.float64(3))

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
    def test_that_are_not_finite(self, kind, value, dtype, make):
        with pytest.raises(ValueError, match=f"Input {side(kind)} contains"):
            fit(kind, make(changed(value).astype(dtype)))

    def test_too_large_for_float64(self, kind):
        with pytest.raises((ValueError, OverflowError), match=r"too large|contains"):
            fit(kind, [[10**400, 1.0]] * ROWS)

    def test_that_are_objects(self, kind):
        other = X.astype(object)
        other[0, 0] = {}
        with pytest.raises(TypeError, match="float"):
            fit(kind, other)

    def test_that_are_words(self, kind):
        with pytest.raises(ValueError, match="could not convert string to float"):
            fit(kind, np.full((ROWS, COLUMNS), "word"))

    @pytest.mark.parametrize(("value", "exception"), [("Rome", ValueError), ({}, TypeError)])
    def test_of_a_table_with_a_column_of_words(self, kind, value, exception):
        frame = pandas.DataFrame(X, columns=["size", "city", "age"])
        frame["city"] = pandas.Series([*X[:-1, 1], value], dtype=object)
        with pytest.raises(exception, match=f"the column 'city' of {side(kind)} holds no numbers"):
            fit(kind, frame)

    def test_of_an_arrow_table_with_a_column_of_words(self, kind):
        table = pyarrow.table({"size": X[:, 0], "city": ["Rome"] * ROWS})
        with pytest.raises(ValueError, match=f"the column 'city' of {side(kind)} holds string, not numbers"):
            fit(kind, table)

    def test_of_a_table_with_missing_values(self, kind):
        frame = pandas.DataFrame({"size": X[:, 0], "age": pandas.array([1, None] * (ROWS // 2), dtype="Int64")})
        with pytest.raises(ValueError, match="NaN") as error:
            fit(kind, frame)
        assert "holds no numbers" not in str(error.value)

    def test_that_are_complex(self, kind):
        with pytest.raises(ValueError, match="Complex data not supported"):
            fit(kind, X + 1j)

    def test_without_rows(self, kind):
        with pytest.raises(ValueError, match=r"0 sample"):
            fit(kind, X[:0], Y[:0])

    def test_without_columns(self, kind):
        with pytest.raises(ValueError, match=r"0 feature"):
            fit(kind, X[:, :0])

    def test_that_are_ragged(self, kind):
        with pytest.raises(ValueError, match=r"inhomogeneous|sequence"):
            fit(kind, [[1.0, 2.0], [1.0]] * (ROWS // 2))

    def test_that_are_nothing(self, kind):
        with pytest.raises((ValueError, TypeError)):
            fit(kind, None)

    def test_with_too_many_columns(self, kind):
        wide = sparse.csr_array(([1.0] * ROWS, [2**31] * ROWS, range(ROWS + 1)), shape=(ROWS, 2**31 + 1))
        with pytest.raises(ValueError, match=f"{side(kind)} has {2**31 + 1} columns"):
            fit(kind, wide)

    def test_of_another_length_than_y(self, kind):
        with pytest.raises(ValueError, match=r"y has 19|\[20, 19\]"):
            fit(kind, X, Y[:-1])

    def test_without_y(self, kind):
        with pytest.raises(ValueError, match="y"):
            fit(kind, X, None)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.ones(ROWS - 1), "sample_weight has 19 values"),
            (np.ones((ROWS, 2)), "sample_weight must have one dimension"),
            (np.ones((ROWS, 1)), r"sample_weight must have one dimension, and has the shape \(20, 1\)"),
            (np.where(np.arange(ROWS) == 3, -1.0, 1.0), "sample_weight contains negative values"),
            (np.where(np.arange(ROWS) == 3, np.nan, 1.0), "sample_weight contains NaN or infinity"),
            (np.where(np.arange(ROWS) == 3, np.inf, 1.0), "sample_weight contains NaN or infinity"),
            (np.zeros(ROWS), "sample_weight is zero for every row"),
            (["heavy"] * ROWS, "sample_weight must be numbers"),
            (-1.0, "sample_weight contains negative values"),
        ],
    )
    def test_with_wrong_weights(self, kind, weights, message):
        with pytest.raises(ValueError, match=message):
            fit(kind, sample_weight=weights)

    def test_with_weights_that_are_no_numbers(self, kind):
        with pytest.raises(TypeError, match="sample_weight must be numbers"):
            fit(kind, sample_weight=[{}] * ROWS)


MALFORMED = """
import sys
import numpy as np
from scipy import sparse
import maxmargin

kind = getattr(maxmargin, sys.argv[1])
generator = np.random.default_rng(0)


def told(part, value, said, make):
    rows = make(generator.normal(size=(8, 3)))
    if said and hasattr(rows, "has_sorted_indices"):
        # What is said to be in order is not looked at again by scipy.
        rows.has_sorted_indices = rows.has_canonical_format = True
    getattr(rows, part)[2] = value
    sides = (rows, make(generator.normal(size=(8, 3)))) if sys.argv[1].endswith("Comparator") else (rows,)
    try:
        kind().fit(*sides, [0, 1] * 4)
    except ValueError as error:
        return str(error)
    return "nothing"


for said in (True, False):
    for part, value in (("indices", 8), ("indices", -1), ("indices", 2**31 - 1), ("indptr", -1), ("indptr", 10**6), ("indptr", 0)):
        for make in (sparse.csr_array, sparse.csc_array):
            print(part, value, said, make.__name__, told(part, value, said, make), sep=": ", flush=True)
for part, value in (("row", 8), ("col", 3), ("row", -1), ("col", -1)):
    print(part, value, told(part, value, False, sparse.coo_array), sep=": ", flush=True)
"""


@pytest.mark.parametrize("kind", ALL)
def test_sparse_rows_that_are_malformed(kind):
    """Run in a separate process, because an error here would read foreign memory."""
    done = subprocess.run([sys.executable, "-c", MALFORMED, kind.__name__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 28
    for line in lines:
        assert f"{side(kind)} is not a valid sparse array" in line, line


class TestClasses:
    def test_one_class(self):
        with pytest.raises(ValueError, match="y holds only one class"):
            SVMClassifier().fit(X, np.ones(ROWS))

    def test_one_class_among_rows_that_count(self):
        with pytest.raises(ValueError, match="y holds only one class among rows of positive weight"):
            SVMClassifier().fit(X, Y, sample_weight=Y)

    def test_three_classes_of_which_only_one_counts(self):
        y = np.arange(ROWS) % 3
        with pytest.raises(ValueError, match="y holds only one class among rows of positive weight, 1"):
            SVMClassifier().fit(X, y, sample_weight=np.where(y == 1, 1.0, 0.0))

    def test_real_numbers(self):
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            SVMClassifier().fit(X, X[:, 0])

    def test_two_real_numbers(self):
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            SVMClassifier().fit(X, np.where(Y, 0.5, 1.5))

    def test_infinity(self):
        with pytest.raises(ValueError, match="contains infinity"):
            SVMClassifier().fit(X, np.where(Y, 0.0, np.inf))

    def test_nan(self):
        with pytest.raises(ValueError, match="y contains NaN"):
            SVMClassifier().fit(X, np.where(Y, 1.0, np.nan))

    def test_two_columns(self):
        with pytest.raises(ValueError, match="y should be a 1d array"):
            SVMClassifier().fit(X, np.column_stack([Y, Y]))

    def test_strings_and_numbers(self):
        with pytest.raises((TypeError, ValueError), match="y"):
            SVMClassifier().fit(X, np.array(["a", 1] * 10, dtype=object))


class TestGrades:
    def test_that_are_all_equal(self):
        with pytest.raises(MaxmarginError, match=r"nothing to rank|no two rows|no pairs|all.*grade") as told:
            SVMRanker().fit(X, np.ones(ROWS), qid=QID)
        assert told.value.code.startswith("MM") and told.value.remedy

    def test_that_are_equal_within_each_query(self):
        with pytest.raises(MaxmarginError):
            SVMRanker().fit(X, QID, qid=QID)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_that_are_not_finite(self, value):
        with pytest.raises(ValueError, match="y contains NaN or infinity"):
            SVMRanker().fit(X, np.where(Y, 1.0, value), qid=QID)

    def test_that_are_words(self):
        with pytest.raises(ValueError, match="y must be numbers"):
            SVMRanker().fit(X, np.where(Y, "good", "bad"), qid=QID)


class TestQueries:
    @pytest.mark.parametrize(
        ("qid", "exception", "message"),
        [
            (QID[:-1], ValueError, "qid has 19 values"),
            (np.column_stack([QID, QID]), ValueError, "qid must have one dimension"),
            (3, ValueError, "qid must have one dimension"),
            (np.where(QID == 1, np.nan, 1.0), ValueError, "qid contains NaN"),
            (np.where(QID == 1, np.datetime64("NaT"), np.datetime64("2020-01-01")), ValueError, "qid contains NaT"),
            (np.where(QID == 1, None, "a"), ValueError, "qid contains missing values"),
            ("query", TypeError, "qid names the column 'query', and X is not a table"),
            ([{}] * ROWS, TypeError, "qid holds values"),
        ],
    )
    def test_that_are_wrong(self, qid, exception, message):
        with pytest.raises(exception, match=message):
            SVMRanker().fit(X, Y, qid=qid)

    def test_of_a_column_that_does_not_exist(self):
        with pytest.raises(ValueError, match=r"qid names the column 'query', and X has only \['a', 'b', 'c'\]"):
            SVMRanker().fit(pandas.DataFrame(X, columns=list("abc")), Y, qid="query")

    def test_of_another_length_when_scoring(self):
        ranker = SVMRanker().fit(X, Y, qid=QID)
        with pytest.raises(ValueError, match="qid has 19 values"):
            ranker.score(X, Y, qid=QID[:-1])


@pytest.mark.parametrize("kind", [SVMComparator, PAComparator])
class TestComparisons:
    @pytest.mark.parametrize(
        ("outcomes", "exception", "message"),
        [
            (np.full(ROWS, 2), ValueError, "y holds 2"),
            (np.full(ROWS, 0.5), ValueError, "y holds 0.5"),
            (np.full(ROWS, np.nan), ValueError, "y holds nan"),
            (["both"] * ROWS, ValueError, "y holds 'both'"),
            ([None] * ROWS, TypeError, "y must be -1, 0 or 1"),
            (np.ones((ROWS, 2)), ValueError, "y must have one dimension"),
            (OUTCOMES[:-1], ValueError, "y has 19 values"),
        ],
    )
    def test_with_wrong_outcomes(self, kind, outcomes, exception, message):
        with pytest.raises(exception, match=message):
            kind().fit(X, X[::-1], outcomes)

    def test_with_sides_of_different_lengths(self, kind):
        with pytest.raises(ValueError, match="X_left has the shape"):
            kind().fit(X, X[:-1], OUTCOMES)

    def test_with_sides_of_different_widths(self, kind):
        with pytest.raises(ValueError, match="X_right has 2 features"):
            kind().fit(X, X[:, :2], OUTCOMES)

    def test_with_a_dense_and_a_sparse_side(self, kind):
        with pytest.raises(TypeError, match="X_left and X_right must both be dense or both be sparse"):
            kind().fit(X, sparse.csr_array(X), OUTCOMES)

    def test_with_names_that_differ(self, kind):
        with pytest.raises(ValueError, match="feature names"):
            kind().fit(pandas.DataFrame(X, columns=list("abc")), pandas.DataFrame(X, columns=list("abd")), OUTCOMES)

    def test_of_sides_of_different_lengths_by_a_fitted_one(self, kind):
        with pytest.raises(ValueError, match="X_left has 20 rows, and X_right 19"):
            kind().fit(X, X[::-1], OUTCOMES).compare(X, X[:-1])


class TestItems:
    def test_that_do_not_exist(self):
        with pytest.raises(ValueError, match=f"pairs name the item {ROWS} on the right side"):
            SVMComparator().fit_items(X, [[0, ROWS, 1], [0, 1, 0]])

    def test_that_are_no_rows(self):
        with pytest.raises(ValueError, match="pairs name items on the left side that are not row numbers"):
            SVMComparator().fit_items(X, [["a", "b", "left"]])

    def test_that_are_fractions_of_rows(self):
        with pytest.raises(ValueError, match="pairs name items on the left side that are not row numbers"):
            SVMComparator().fit_items(X, [[0.5, 1.0, 1.0]])

    def test_compared_with_themselves(self):
        with pytest.raises(ValueError, match="pairs compare an item with itself in row 1"):
            SVMComparator().fit_items(X, [[0, 1, 1], [2, 2, 0]])

    def test_with_an_id_twice(self):
        with pytest.raises(ValueError, match="the index of items holds an id twice"):
            SVMComparator().fit_items(pandas.DataFrame(X, index=["a"] * ROWS), [["a", "a", "left"]])

    def test_with_pairs_of_a_wrong_shape(self):
        with pytest.raises(ValueError, match=r"pairs must have the shape \(n, 3\)"):
            SVMComparator().fit_items(X, [[0, 1]])

    def test_with_pairs_of_wrong_columns(self):
        with pytest.raises(ValueError, match="pairs need the columns left, right and outcome"):
            SVMComparator().fit_items(X, pandas.DataFrame({"left": [0], "winner": [1]}))

    def test_without_pairs(self):
        with pytest.raises(ValueError, match="pairs"):
            SVMComparator().fit_items(X, np.empty((0, 3), dtype=int))


#: Wrong values of each parameter, by exception.
WRONG = {
    "C": {ValueError: [0, -1, np.nan, np.inf, -np.inf], TypeError: ["1", None, [1.0], True, 1j]},
    "loss": {ValueError: ["l2", ""], TypeError: [None, 1, ["hinge"]]},
    "multi_class": {ValueError: ["ovr", ""], TypeError: [None, 3]},
    "code": {ValueError: ["", [[1, -1]], [[2], [1]], [1, -1]], TypeError: [1j, [["a"], ["b"]]]},
    "decoding": {TypeError: [1, ["hinge"]]},
    "probability": {ValueError: ["yes", ""], TypeError: [True, 1]},
    "weight_as": {ValueError: ["loss"], TypeError: [None, 1]},
    "kernel": {ValueError: ["cubic"], TypeError: [None, 1, len]},
    "gamma": {ValueError: ["wide", 0, -1.0, np.nan], TypeError: [[1.0], {}]},
    "degree": {ValueError: [0, -1], TypeError: [2.5, "3", None]},
    "coef0": {ValueError: [np.nan, np.inf], TypeError: ["0", None]},
    "intercept": {ValueError: ["sometimes"], TypeError: [None, True, 1.0]},
    "class_weight": {ValueError: ["fair", {7: 1.0}, {0: -1.0}, {0: np.nan}], TypeError: [1.0, [1.0, 2.0], {0: "1"}]},
    "scale": {ValueError: ["robust"], TypeError: [None, True]},
    "solver": {ValueError: ["simplex"], TypeError: [None, 1]},
    "polish": {TypeError: ["yes", 1, None]},
    "tol": {ValueError: [-1e-3, np.nan, np.inf], TypeError: ["1e-3", None]},
    "max_iter": {ValueError: [0, -1, 2**64], TypeError: [1.5, "10", True]},
    "cache_size": {ValueError: [0, -1, np.nan, np.inf], TypeError: ["200", None]},
    "random_state": {ValueError: [-1, 2**64], TypeError: [1.5, "seed"]},
    "n_jobs": {ValueError: [0, 10**9], TypeError: [1.5, "all", True]},
    "verbose": {ValueError: [-1], TypeError: ["yes", None]},
    "callback": {TypeError: [1, "print"]},
    "pair_weight": {ValueError: ["heavy"], TypeError: [None]},
    "optimize": {ValueError: ["mpa", "", "ndcg@0"], TypeError: [1, True]},
    "order_score": {ValueError: ["median"], TypeError: [None]},
    "method": {ValueError: ["guess"], TypeError: [None]},
    "kappa": {ValueError: [-1, np.nan, np.inf], TypeError: ["1", None]},
}

#: Other parameters that are needed for a parameter to be checked.
WITH = {
    "gamma": {"kernel": "rbf"},
    "degree": {"kernel": "poly"},
    "coef0": {"kernel": "poly"},
    "cache_size": {"kernel": "rbf"},
    "code": {"multi_class": "code"},
}

CASES = [
    (kind, name, value, exception)
    for kind in ALL
    for name, wrong in WRONG.items()
    for exception, values in wrong.items()
    for value in values
    if name in kind().get_params()
]


def test_every_parameter_is_tested():
    for kind in ALL:
        assert set(kind().get_params()) <= set(WRONG)


@pytest.mark.parametrize(("kind", "name", "value", "exception"), CASES)
def test_parameters_that_are_wrong(kind, name, value, exception):
    with pytest.raises(exception, match=name):
        fit(kind, **{**WITH.get(name, {}), name: value})


def test_what_does_not_go_together_is_told():
    with pytest.raises(MaxmarginError, match="solver") as told:
        SVMRanker(solver="smo").fit(X, Y, qid=QID)
    assert told.value.code == "MM0401"
    with pytest.raises(MaxmarginError, match="precomputed"):
        SVMClassifier(kernel="precomputed").fit(X, Y)
    with pytest.raises(ValueError, match="loss"):
        PAComparator(loss="logistic").fit(X, X[::-1], OUTCOMES)


@pytest.mark.parametrize("kind", ALL)
class TestUse:
    def use(self, estimator, X):
        return estimator.rank(X) if hasattr(estimator, "rank") else estimator.predict(X)

    def test_before_fit(self, kind):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            self.use(kind(), X)

    def test_of_everything_else_before_fit(self, kind, tmp_path):
        with pytest.raises(NotFittedError):
            kind().save(tmp_path / "model.mm")
        with pytest.raises(NotFittedError):
            kind().verify(_core.Dataset.dense(X))

    def test_with_another_number_of_columns(self, kind):
        with pytest.raises(ValueError, match=f"X has 2 features, but {kind.__name__} is expecting 3 features"):
            self.use(fit(kind), X[:, :2])

    def test_with_other_names(self, kind):
        estimator = fit(kind, pandas.DataFrame(X, columns=list("abc")))
        with pytest.raises(ValueError, match="feature names should match"):
            self.use(estimator, pandas.DataFrame(X, columns=list("abd")))

    def test_with_names_in_another_order(self, kind):
        estimator = fit(kind, pandas.DataFrame(X, columns=list("abc")))
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            self.use(estimator, pandas.DataFrame(X, columns=list("cab")))

    def test_with_nan(self, kind):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            self.use(fit(kind), changed(np.nan))

    def test_without_rows(self, kind):
        with pytest.raises(ValueError, match="0 sample"):
            self.use(fit(kind), X[:0])

    def test_with_a_dataset_of_other_width(self, kind):
        with pytest.raises(ValueError, match="4 columns"):
            fit(kind).model_.scores(_core.Dataset.dense(np.hstack([X, X[:, :1]])))


class TestModels:
    def test_of_another_task_compare_nothing(self):
        pairs = SVMComparator()._dataset(X, X[::-1], OUTCOMES)
        for estimator in (SVMClassifier().fit(X, Y), SVMRanker().fit(X, Y, qid=QID)):
            with pytest.raises(MaxmarginError, match="does not compare"):
                estimator.model_.outcomes(pairs)

    def test_compare_only_pairs(self):
        comparator = SVMComparator().fit(X, X[::-1], OUTCOMES)
        with pytest.raises(MaxmarginError, match="no pairs"):
            comparator.model_.outcomes(_core.Dataset.dense(X))

    @pytest.mark.parametrize("kind", [SVMClassifier, SVMRanker])
    def test_of_another_task_do_not_go_on_learning_comparisons(self, kind):
        parameters = json.dumps({"task": "compare", "solver": "passive-aggressive"})
        with pytest.raises(MaxmarginError):
            _core.Learner(parameters, fit(kind).model_)

    def test_are_verified_on_their_own_data_alone(self):
        classifier = SVMClassifier().fit(X, Y)
        for other, differs in ((X + 1.0, "other values"), (X[:, 1:], f"{COLUMNS - 1} features here, {COLUMNS} there")):
            with pytest.raises(MaxmarginError, match=differs):
                classifier.model_.verify(SVMClassifier()._dataset(other, Y))

    def test_saved_to_a_folder_that_does_not_exist(self, tmp_path):
        with pytest.raises(OSError, match="missing"):
            SVMClassifier().fit(X, Y).save(tmp_path / "missing" / "model.mm")

    def test_saved_over_a_folder(self, tmp_path):
        with pytest.raises(OSError):
            SVMClassifier().fit(X, Y).save(tmp_path)

    def test_in_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"none\.mm"):
            Model.load(tmp_path / "none.mm")

    @pytest.mark.parametrize("content", [b"", b"no model", b"\x00" * 1000, b"PK\x03\x04"])
    def test_in_a_file_of_something_else(self, tmp_path, content):
        path = tmp_path / "model.mm"
        path.write_bytes(content)
        with pytest.raises(MaxmarginError, match="model"):
            Model.load(path)
        with pytest.raises(MaxmarginError):
            Model.from_bytes(content)

    def test_cut_or_changed(self):
        content = bytearray(SVMClassifier().fit(X, Y).model_.to_bytes())
        with pytest.raises(MaxmarginError):
            Model.from_bytes(bytes(content[: len(content) // 2]))
        for position in range(0, len(content), 7):
            other = bytearray(content)
            other[position] ^= 0xFF
            with pytest.raises(MaxmarginError):
                Model.from_bytes(bytes(other))

    def test_from_no_bytes(self):
        with pytest.raises(TypeError):
            Model.from_bytes("text")
        with pytest.raises(TypeError):
            Model.load(3)


class TestFiles:
    def test_that_are_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"none\.svm"):
            maxmargin.load(tmp_path / "none.svm")

    def test_that_are_folders(self, tmp_path):
        with pytest.raises(OSError):
            maxmargin.load(tmp_path)

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("data.txt", ""),
            ("data.svm", "1 qid:1 1:x\n"),
            ("data.svm", "1 2:1 1:1 nonsense\n"),
            ("data.csv", "a,b,c\n1,2\n"),
        ],
    )
    def test_that_hold_nothing_of_use(self, tmp_path, name, content):
        path = tmp_path / name
        path.write_text(content)
        with pytest.raises(MaxmarginError):
            maxmargin.load(path)

    @pytest.mark.parametrize(
        ("more", "exception", "message"),
        [
            ({"task": "guess"}, ValueError, "task"),
            ({"precision": "f16"}, ValueError, "precision"),
            ({"missing": "guess"}, ValueError, "missing"),
            ({"index_base": 2}, ValueError, "index_base"),
            ({"target": 3}, TypeError, "target"),
            ({"ignore": "column"}, TypeError, "ignore"),
            ({"ignore": 3}, TypeError, "ignore"),
            ({"items": 3}, TypeError, "items"),
        ],
    )
    def test_read_with_wrong_settings(self, tmp_path, more, exception, message):
        path = tmp_path / "data.svm"
        path.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
        with pytest.raises(exception, match=message):
            maxmargin.load(path, **more)

    def test_of_no_path(self):
        with pytest.raises(TypeError, match="path"):
            maxmargin.load(3)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [(SVMClassifier, {"y": Y}), (SVMRanker, {"y": Y}), (SVMRanker, {"qid": QID}), (SVMComparator, {"y": OUTCOMES})],
)
def test_a_dataset_holds_its_targets_itself(kind, arguments):
    data = SVMComparator()._dataset(X, X[::-1], OUTCOMES) if kind is SVMComparator else SVMRanker()._dataset(X, Y)
    with pytest.raises(TypeError, match="a Dataset holds"):
        kind().fit(data, **arguments)
    with pytest.raises(TypeError, match="a Dataset holds"):
        kind().fit(data, sample_weight=np.ones(ROWS))


def test_a_dataset_without_what_is_needed():
    bare = _core.Dataset.dense(X)
    with pytest.raises(ValueError, match="the Dataset holds no classes"):
        SVMClassifier().fit(bare)
    with pytest.raises(ValueError, match="the Dataset holds no grades"):
        SVMRanker().fit(bare)
    with pytest.raises(ValueError, match="the Dataset holds no pairs"):
        SVMComparator().fit(bare)
    with pytest.raises(ValueError, match="every row has the same class"):
        SVMClassifier().fit(SVMRanker()._dataset(X, np.ones(ROWS)))


class Told(Exception):
    """The exception that a callback raises here."""


@pytest.mark.parametrize("kind", BATCH)
def test_what_a_callback_raises_is_raised(kind):
    def callback(progress):
        raise Told(progress.iteration)

    with pytest.raises(Told, match="0"):
        fit(kind, callback=callback)
    for exception in (KeyboardInterrupt, SystemExit, StopIteration):

        def leave(progress, exception=exception):
            raise exception

        with pytest.raises(exception):
            fit(kind, callback=leave)
    assert fit(kind).converged_


def test_what_a_callback_of_tune_raises_is_raised():
    def callback(tried):
        raise Told(tried.done)

    with pytest.raises(Told, match="1"):
        tune(SVMClassifier(), X, Y, cv=2, C=[0.1, 1.0], callback=callback)


@pytest.mark.parametrize(
    ("more", "exception", "message"),
    [
        ({"cv": 1}, ValueError, "cv"),
        ({"cv": 2.5}, TypeError, "cv"),
        ({"cv": ROWS + 1}, ValueError, "cv"),
        ({"C": []}, ValueError, "C"),
        ({"C": [0.0]}, ValueError, "C"),
        ({"C": 1.0}, TypeError, "C"),
        ({"C": ["1"]}, TypeError, "C"),
        ({"gamma": [-1.0]}, ValueError, "gamma"),
        ({"gamma": 1.0}, TypeError, "gamma"),
        ({"metrics": "beauty"}, ValueError, "beauty"),
        ({"metrics": []}, ValueError, "metrics"),
        ({"metrics": 3}, TypeError, "metrics"),
        ({"callback": 3}, TypeError, "callback"),
    ],
)
def test_tune_with_wrong_settings(more, exception, message):
    with pytest.raises(exception, match=message):
        tune(SVMClassifier(), X, Y, **{"cv": 2, "C": [1.0], **more})


def test_there_is_nothing_to_tune_for_a_stream():
    with pytest.raises(TypeError, match="PAComparator"):
        tune(PAComparator(), X, X[::-1], OUTCOMES)
    with pytest.raises(TypeError, match="estimator"):
        tune("SVMClassifier", X, Y)


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: metrics.ndcg_score([1, 0], [0.5]), ValueError, "y_score has 1 values"),
        (lambda: metrics.ndcg_score([1, 0], [0.5, np.nan]), ValueError, "y_score contains NaN"),
        (lambda: metrics.ndcg_score([np.inf, 0], [0.5, 1]), ValueError, "y_true contains NaN or infinity"),
        (lambda: metrics.ndcg_score(["a", "b"], [0.5, 1]), TypeError, "y_true must be numbers"),
        (lambda: metrics.ndcg_score([], []), ValueError, "y_true is empty"),
        (lambda: metrics.ndcg_score(3, 3), ValueError, "y_true must have one dimension"),
        (lambda: metrics.ndcg_score([1, 0], [1, 0], k=0), ValueError, "k must be"),
        (lambda: metrics.ndcg_score([1, 0], [1, 0], k=1.5), TypeError, "k must be"),
        (lambda: metrics.ndcg_score([1, 0], [1, 0], variant="mine"), ValueError, "variant"),
        (lambda: metrics.ndcg_score([1, 0], [1, 0], variant=None), TypeError, "variant"),
        (lambda: metrics.ndcg_score([1, 0], [1, 0], qid=[1]), ValueError, "qid has 1 values"),
        (lambda: metrics.evaluate("beauty", [1, 0], [1, 0]), ValueError, "beauty"),
        (lambda: metrics.evaluate(3, [1, 0], [1, 0]), TypeError, "metric"),
        (lambda: metrics.roc_auc_score([1, 1], [1, 0]), ValueError, "y_true must hold two classes"),
        (
            lambda: metrics.roc_auc_score([1, 0], [1, 0], sample_weight=[1, -1]),
            ValueError,
            "sample_weight contains negative",
        ),
        (lambda: metrics.compare_error([1, 0], [1, 2]), ValueError, "y_pred holds 2"),
        (lambda: metrics.compare_error([1, 0], [1]), ValueError, "y_pred has 1 values"),
        (lambda: metrics.compare_error([], []), ValueError, "y_true is empty"),
    ],
)
def test_metrics_of_what_is_wrong(call, exception, message):
    with pytest.raises(exception, match=message):
        call()


def test_a_panic_is_an_exception_and_the_interpreter_lives_on():
    for _ in range(3):
        with pytest.raises(RuntimeError, match="a defect of maxmargin"):
            _core._panic()
    assert SVMClassifier().fit(X, Y).converged_


@pytest.mark.parametrize(
    ("call", "exception"),
    [
        (lambda: _core.Dataset.dense(np.asfortranarray(X)), TypeError),
        (lambda: _core.Dataset.dense(X.astype(int)), TypeError),
        (lambda: _core.Dataset.dense(X.tolist()), TypeError),
        (lambda: _core.Dataset.dense(X[:, 0]), TypeError),
        (lambda: _core.Dataset.dense(X).with_targets(np.zeros(3)), ValueError),
        (lambda: _core.Dataset.dense(X).with_weights(np.zeros(3)), ValueError),
        (lambda: _core.Dataset.dense(X).with_feature_names(["a"]), ValueError),
        (lambda: _core.Dataset.dense(X).with_groups(np.zeros(ROWS, dtype=np.uint32), []), ValueError),
        (lambda: _core.Dataset.dense(X).with_labels(np.full(ROWS, 7, dtype=np.uint32), ["a", "b"]), ValueError),
        (lambda: with_pairs([ROWS], [0], [1]), ValueError),
        (lambda: with_pairs([0, 1], [1], [1]), ValueError),
        (lambda: with_pairs([0], [1], [1, 1]), ValueError),
        (lambda: _core.train(_core.Dataset.dense(X), "no json"), ValueError),
        (lambda: _core.train(_core.Dataset.dense(X), "[]"), ValueError),
        (lambda: _core.train(_core.Dataset.dense(X), '{"task": "rank"}'), ValueError),
        (lambda: _core.train(_core.Dataset.dense(X), '{"task": "classify", "colour": 1}'), ValueError),
    ],
)
def test_the_core_refuses_what_the_layer_above_would_not_give_it(call, exception):
    with pytest.raises(exception):
        call()


def with_pairs(left, right, outcomes):
    sides = (np.array(left, dtype=np.uint32), np.array(right, dtype=np.uint32))
    return _core.Dataset.dense(X).with_pairs(*sides, np.array(outcomes, dtype=np.int8))


def arrays_of(elements):
    """Nested lists and arrays of up to three dimensions."""
    shapes = some.lists(some.integers(0, 5), min_size=0, max_size=3)
    return shapes.flatmap(
        lambda shape: some.lists(elements, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))).map(
            lambda values: shaped(values, shape)
        )
    )


def shaped(values, shape):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    array = array.reshape(shape)
    try:
        return np.array(array.tolist())
    except ValueError:
        return array


VALUES = some.one_of(
    some.floats(),
    some.floats(-3, 3),
    some.integers(-2, 3),
    some.integers(),
    some.booleans(),
    some.text(max_size=3),
    some.none(),
    some.complex_numbers(),
    some.tuples(some.integers()),
)
ANYTHING = some.one_of(
    some.none(),
    VALUES,
    some.binary(max_size=8),
    some.dictionaries(some.text(max_size=2), VALUES, max_size=3),
    arrays_of(VALUES),
    arrays_of(some.floats(-3, 3)),
    arrays_of(some.integers(-1, 1)),
    some.lists(VALUES, max_size=6),
    some.sampled_from(
        [X[:5], X[:5].astype(np.float32), sparse.csr_array(X[:5]), Y[:5], OUTCOMES[:5], QID[:5], np.ones(5)]
    ),
    some.just(pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, None]})),
    some.just(_core.Dataset.dense(X)),
)


def ends_well(kind, parameters, arguments):
    """For any input, fit returns or raises a proper exception. A panic would not be an Exception."""
    known = kind().get_params()
    estimator = kind(**{name: value for name, value in parameters.items() if name in known})
    try:
        estimator.fit(**arguments)
    except Exception as error:  # noqa: BLE001, because any exception is accepted
        assert "defect of maxmargin" not in str(error), error
        assert not isinstance(error, MemoryError | RecursionError | SystemError), error


#: The arguments of fit, by estimator.
VALID = {
    SVMClassifier: {"X": X[:5], "y": Y[:5], "sample_weight": np.ones(5)},
    SVMRanker: {"X": X[:5], "y": QID[8:13], "qid": np.array([1, 2, 1, 1, 2]), "sample_weight": np.ones(5)},
    SVMComparator: {"X_left": X[:5], "X_right": X[5:10], "y": OUTCOMES[3:8], "sample_weight": np.ones(5)},
    PAComparator: {"X_left": X[:5], "X_right": X[5:10], "y": OUTCOMES[3:8], "sample_weight": np.ones(5)},
}

thorough = settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ALL)
@thorough
@given(draw=some.data())
def test_an_argument_that_is_garbage_ends_in_nothing_but_an_exception(kind, draw):
    replaced = draw.draw(some.dictionaries(some.sampled_from(sorted(VALID[kind])), ANYTHING, min_size=1, max_size=2))
    ends_well(kind, {}, {**VALID[kind], **replaced})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ALL)
@thorough
@given(
    parameters=some.dictionaries(some.sampled_from(sorted(set(WRONG) - {"n_jobs"})), ANYTHING, min_size=1, max_size=2)
)
def test_a_parameter_that_is_garbage_ends_in_nothing_but_an_exception(kind, parameters):
    ends_well(kind, parameters, VALID[kind])


def test_values_are_not_laid_beside_rows_that_queries_have_moved():
    codes = np.arange(ROWS, dtype=np.uint32) % 2
    targets = np.arange(ROWS, dtype=np.float64)
    data = _core.Dataset.dense(X).with_targets(targets).with_weights(targets + 1)
    moved = data.with_groups(codes, ["even", "odd"])
    # Values are returned in the order in which they were given.
    assert np.array_equal(moved.targets, targets)
    assert np.array_equal(moved.weights, targets + 1)
    assert np.array_equal(moved.qid, codes)
    for change in (moved.with_targets, moved.with_weights):
        with pytest.raises(ValueError, match="before qid"):
            change(targets)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_data_set_takes_finite_numbers_only(bad, dtype):
    told = "NaN" if np.isnan(bad) else "infinity"
    with pytest.raises(ValueError, match=f"X contains {told}"):
        maxmargin.Dataset.dense(changed(bad).astype(dtype))
    rows = sparse.csr_matrix(X.astype(dtype))
    rows.data[7] = bad
    with pytest.raises(ValueError, match=f"X.data contains {told}"):
        maxmargin.Dataset.sparse(rows.indptr, rows.indices, rows.data, COLUMNS)
    # Its position in a long array does not matter.
    large = np.zeros((300_000, 2), dtype=dtype)
    large[-1, 1] = bad
    with pytest.raises(ValueError, match=f"X contains {told}"):
        maxmargin.Dataset.dense(large)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_of_a_data_set_are_finite(bad):
    targets = Y.astype(np.float64)
    targets[3] = bad
    with pytest.raises(ValueError, match="y contains"):
        maxmargin.Dataset.dense(X).with_targets(targets)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_weights_of_a_data_set_are_finite_and_not_negative(bad):
    weights = np.ones(ROWS)
    weights[3] = bad
    with pytest.raises(ValueError, match="sample_weight holds"):
        maxmargin.Dataset.dense(X).with_weights(weights)
    sides = (np.arange(ROWS, dtype=np.uint32), np.arange(ROWS, dtype=np.uint32)[::-1].copy())
    with pytest.raises(ValueError, match="sample_weight holds"):
        maxmargin.Dataset.dense(X).with_pairs(*sides, OUTCOMES.astype(np.int8), weights)


@pytest.mark.parametrize("kind", BATCH)
@pytest.mark.parametrize(
    ("name", "value"),
    [("gamma", -1.0), ("gamma", "wide"), ("degree", 0), ("degree", 10**30), ("coef0", np.nan), ("cache_size", 0)],
)
def test_parameters_that_the_kernel_does_not_use_are_checked(kind, name, value):
    with pytest.raises(ValueError, match=name):
        fit(kind, **{name: value})


@pytest.mark.parametrize("names", [["b", "a"], ["a", "a"]])
def test_names_of_labels_are_sorted(names):
    with pytest.raises(ValueError, match="sorted"):
        maxmargin.Dataset.dense(X).with_labels(Y.astype(np.uint32), names)


def test_a_data_set_without_rows_is_not_ranked():
    with pytest.raises(ValueError, match="no rows"):
        SVMRanker().fit(maxmargin.Dataset.dense(np.zeros((0, 4))).with_targets(np.zeros(0)))


def test_remedies_name_what_there_is_in_python():
    with pytest.raises(MaxmarginError, match="Nystroem") as error:
        SVMClassifier(loss="logistic", kernel="rbf").fit(X, Y)
    assert "approximate" not in str(error.value) and "nystrom:" not in str(error.value)


def test_remedies_for_tables_name_arguments_of_load(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("grade,query,city.name,size\n1,a,Rome,2\n0,a,Oslo,3\n")
    with pytest.raises(MaxmarginError) as error:
        maxmargin.load(path, target="grade", group="query")
    assert 'ignore=["city.name"]' in error.value.remedy and "--" not in error.value.remedy
    loaded = maxmargin.load(path, target="grade", group="query", ignore=["city.name"])
    assert loaded.shape == (2, 1)
    path.write_text("grade,query,city name,size\n1,a,Rome,2\n0,a,Oslo,3\n")
    with pytest.raises(MaxmarginError) as error:
        maxmargin.load(path, target="grade", group="query")
    assert 'ignore=["city name"]' in error.value.remedy
    path.write_text("grade,qid,query,size\n1,a,a,2\n0,a,a,3\n")
    with pytest.raises(MaxmarginError) as error:
        maxmargin.load(path, target="grade")
    assert "group=NAME" in error.value.remedy and "--" not in error.value.remedy
    path.write_text("grade,query,size\n1,a,\n0,a,3\n")
    with pytest.raises(MaxmarginError) as error:
        maxmargin.load(path, target="grade", group="query")
    assert 'missing="zero" or missing="mean", or' in error.value.remedy


def test_every_name_in_a_remedy_is_an_argument_or_a_flag_of_the_command():
    callables = [load, tune, StructuredSVM.__init__, *(kind.__init__ for kind in (*ALL, PAClassifier, MultilabelSVM)), *(kind.fit for kind in ALL), SVMComparator.fit_items, SVMRanker.fit_clicks]
    arguments = {name for taken in callables for name in inspect.signature(taken).parameters}
    for reading in (True, False):
        for name in _core._names():
            shown = _core._in_words(f"⟦{name}⟧", reading)
            assert shown in arguments or shown == f"the command's --{name}", shown


def test_values_in_a_remedy_are_written_as_python_writes_them():
    for text, shown in {
        "⟦loss=squared-hinge⟧ or ⟦c⟧": 'loss="squared_hinge" or C',
        "⟦scale=min-max⟧, ⟦solver=averaged-sgd⟧": 'scale="min-max", solver="averaged-sgd"',
        "⟦ignore='a, b'⟧ ⟦ignore=left,right⟧": 'ignore=["a, b"] ignore=["left", "right"]',
        "⟦class-weight=LABEL=W,LABEL=W⟧": "class_weight={LABEL: W, LABEL: W}",
        "⟦target=NAME⟧ ⟦index-base=0⟧ ⟦precision=f64⟧": 'target=NAME index_base=0 precision="f64"',
        "⟦kernel-cache=1GiB⟧ ⟦memory=4GiB⟧": "cache_size=1024 the command's --memory 4GiB",
        "use ⟦approximate=nystrom:1000⟧.": "use Nystroem of scikit-learn before a linear model.",
        "a column `[[mine]]`": "a column `[[mine]]`",
    }.items():
        assert _core._in_words(text, True) == shown
    assert _core._in_words("⟦group⟧", True) == "group"
    assert _core._in_words("⟦group⟧", False) == "qid"


def test_other_data_are_told_what_to_give():
    ranker = SVMRanker().fit(X, Y, qid=QID)
    with pytest.raises(MaxmarginError) as error:
        ranker.verify(X, Y)
    assert "qid" in "".join(error.value.__notes__)
