"""The same data give the same model in every form of input, and arrays in the core's own layout are not copied."""

import subprocess
import sys

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy import sparse

from maxmargin import SVMClassifier, SVMComparator, SVMRanker

ROWS, COLUMNS = 60, 5


def features(dtype=np.float64):
    """Numbers that are exact in float32, about half of them zero."""
    generator = np.random.default_rng(11)
    values = generator.integers(-64, 64, size=(ROWS, COLUMNS)) / 16
    return (values * (generator.random(size=values.shape) < 0.5)).astype(dtype)


def classes():
    generator = np.random.default_rng(12)
    return (features() @ np.arange(1, COLUMNS + 1) + generator.normal(size=ROWS) > 0).astype(np.int64)


def grades():
    generator = np.random.default_rng(13)
    return np.clip(np.round(features() @ np.ones(COLUMNS) / 4 + generator.normal(size=ROWS)), -2, 2)


def queries():
    return np.random.default_rng(14).integers(0, 6, size=ROWS)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def slice_of_more(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan, dtype=X.dtype)
    wide[::2, 1::3] = X
    return wide[::2, 1::3]


def unaligned(X):
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    view = np.frombuffer(raw.data, dtype=X.dtype, count=X.size, offset=1).reshape(X.shape)
    view[...] = X
    assert not view.flags.aligned
    return view


def mapped(X, folder):
    path = folder / f"features.{X.dtype}"
    X.tofile(path)
    return np.memmap(path, dtype=X.dtype, mode="r", shape=X.shape)


#: Memory layouts of an array of either precision.
LAYOUTS = {
    "C order": lambda X: X,
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "read-only in Fortran order": lambda X: read_only(np.asfortranarray(X)),
    "a slice of more": slice_of_more,
    "rows backwards": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "columns backwards": lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "all backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "transposed": lambda X: np.ascontiguousarray(X.T).T,
    "unaligned": unaligned,
    "other byte order": lambda X: X.astype(X.dtype.newbyteorder()),
}


def unsorted(X):
    """Sparse rows with decreasing indices."""
    rows = sparse.csr_array(X)
    for row in range(rows.shape[0]):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        rows.indices[part], rows.data[part] = rows.indices[part][::-1].copy(), rows.data[part][::-1].copy()
    rows.has_sorted_indices = False
    return rows


def doubled(X):
    """Sparse rows in which each entry is the sum of two."""
    rows = sparse.csr_array(X)
    return sparse.csr_array(
        (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), rows.indptr * 2), shape=rows.shape
    )


def with_indices(X, kind):
    rows = sparse.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(kind), rows.indptr.astype(kind)
    return rows


def with_zeros(X):
    """Sparse rows that store every zero."""
    starts = np.arange(0, X.size + 1, X.shape[1])
    return sparse.csr_array((X.ravel(), np.tile(np.arange(X.shape[1]), X.shape[0]), starts), shape=X.shape)


#: Forms of sparse rows.
SPARSE = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "32-bit indices": lambda X: with_indices(X, np.int32),
    "64-bit indices": lambda X: with_indices(X, np.int64),
    "csc_array": sparse.csc_array,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "coo_matrix": sparse.coo_matrix,
    "lil_array": sparse.lil_array,
    "unsorted indices": unsorted,
    "entries twice": doubled,
    "a slice": lambda X: sparse.csr_array(np.repeat(X, 2, axis=0))[::2],
}

NAMES = [f"feature {position}" for position in range(COLUMNS)]

#: Tables with column names.
TABLES = {
    "pandas": lambda X: pandas.DataFrame(X, columns=NAMES),
    "pandas with another index": lambda X: pandas.DataFrame(X, columns=NAMES, index=np.arange(len(X))[::-1] * 7),
    "polars": lambda X: polars.DataFrame({name: X[:, position] for position, name in enumerate(NAMES)}),
    "pyarrow": lambda X: pyarrow.table({name: X[:, position] for position, name in enumerate(NAMES)}),
    "pyarrow in pieces": lambda X: pyarrow.concat_tables(
        [pyarrow.table({name: part[:, position] for position, name in enumerate(NAMES)}) for part in np.split(X, 3)]
    ),
}

PRECISIONS = [np.float32, np.float64]


def same_classifier(one, other, *examples):
    """Checks for bit-identical coefficients and for equal scores of all examples."""
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()
    assert one.objective_ == other.objective_
    for X in examples:
        assert one.decision_function(X).tobytes() == other.decision_function(X).tobytes()
        assert one.predict(X).tolist() == other.predict(X).tolist()


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_an_array_changes_nothing(layout, dtype):
    X = features(dtype)
    given = LAYOUTS[layout](X)
    assert np.array_equal(given, X)
    expected = SVMClassifier().fit(X, classes())
    found = SVMClassifier().fit(given, classes())
    same_classifier(expected, found, X)
    assert found.decision_function(given).tobytes() == expected.decision_function(X).tobytes()


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_a_mapped_file_is_an_array_like_any_other(dtype, tmp_path):
    X = features(dtype)
    expected = SVMClassifier().fit(X, classes())
    found = SVMClassifier().fit(mapped(X, tmp_path), classes())
    same_classifier(expected, found, X, mapped(X, tmp_path))


def test_lists_and_whole_numbers_are_float64():
    X = np.round(features())
    expected = SVMClassifier().fit(X, classes())
    for given in (X.tolist(), X.astype(np.int64), X.astype(np.int8), X.astype(np.float16)):
        same_classifier(expected, SVMClassifier().fit(given, classes().tolist()), X)


def test_bools_are_zeros_and_ones():
    X = features() > 0
    same_classifier(SVMClassifier().fit(X.astype(float), classes()), SVMClassifier().fit(X, classes()), X.astype(float))


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("form", SPARSE)
def test_the_form_of_sparse_rows_changes_nothing(form, dtype):
    X = features(dtype)
    rows, given = sparse.csr_array(X), SPARSE[form](X)
    assert given.dtype == dtype
    before = (
        [part.copy() for part in (given.data, given.indices)] if form in ("unsorted indices", "entries twice") else []
    )
    expected = SVMClassifier().fit(rows, classes())
    found = SVMClassifier().fit(given, classes())
    same_classifier(expected, found, rows, X)
    assert found.decision_function(given).tobytes() == expected.decision_function(rows).tobytes()
    if before:
        assert np.array_equal(given.data, before[0]) and np.array_equal(given.indices, before[1]), (
            "fit changed its input"
        )


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_zeros_that_sparse_rows_hold_change_nothing_but_their_storage(dtype):
    X = features(dtype)
    expected, found = SVMClassifier().fit(sparse.csr_array(X), classes()), SVMClassifier().fit(with_zeros(X), classes())
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    assert found.model_.data_hash == expected.model_.data_hash


def test_dense_and_sparse_rows_and_both_precisions_agree():
    X = features()
    expected = SVMClassifier().fit(X, classes())
    for given in (X.astype(np.float32), sparse.csr_array(X), sparse.csr_array(X.astype(np.float32))):
        found = SVMClassifier().fit(given, classes())
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-7)
        np.testing.assert_allclose(found.decision_function(given), expected.decision_function(X), rtol=1e-7, atol=1e-9)
        assert found.model_.data_hash == expected.model_.data_hash


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_an_array_with_names(kind, dtype):
    X = features(dtype)
    table = TABLES[kind](X)
    expected, found = SVMClassifier().fit(X, classes()), SVMClassifier().fit(table, classes())
    assert expected.coef_.tobytes() == found.coef_.tobytes()
    assert found.feature_names_in_.tolist() == NAMES
    assert found.model_.feature_names == NAMES
    for other in TABLES.values():
        assert found.decision_function(other(X)).tobytes() == expected.decision_function(X).tobytes()
    with pytest.warns(UserWarning, match="feature names"):
        assert found.predict(X).tolist() == expected.predict(X).tolist()


def test_columns_of_a_table_may_be_of_different_types():
    X = np.abs(np.round(features()))
    kinds = [np.int8, np.float32, np.uint16, np.float64, np.int64]
    columns = {
        name: X[:, position].astype(kind) for position, (name, kind) in enumerate(zip(NAMES, kinds, strict=True))
    }
    expected = SVMClassifier().fit(X, classes())
    for table in (pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)):
        assert SVMClassifier().fit(table, classes()).coef_.tobytes() == expected.coef_.tobytes()


def test_columns_without_string_names_have_none():
    X = features()
    table = pandas.DataFrame(X)
    expected, found = SVMClassifier().fit(X, classes()), SVMClassifier().fit(table, classes())
    same_classifier(expected, found, X, table)
    assert not hasattr(found, "feature_names_in_") and found.model_.feature_names is None


def test_names_of_an_earlier_fit_are_forgotten():
    X = features()
    for table in (TABLES["pandas"](X), TABLES["pyarrow"](X)):
        classifier = SVMClassifier().fit(table, classes()).fit(X, classes())
        assert not hasattr(classifier, "feature_names_in_") and classifier.model_.feature_names is None


TARGETS = {
    "ints": lambda y: y,
    "bytes": lambda y: y.astype(np.int8),
    "unsigned": lambda y: y.astype(np.uint64),
    "bools": lambda y: y.astype(bool),
    "floats": lambda y: y.astype(np.float32),
    "negative and positive": lambda y: 2 * y - 1,
    "large": lambda y: y * 10**6 + 5,
    "fractions": lambda y: y / 2 + 0.25,
    "strings": lambda y: np.array(["no", "yes"])[y],
    "strings whose order by bytes differs": lambda y: np.array(["Z", "a"])[y],
    "numbers as strings": lambda y: np.array(["10", "9"])[y],
    "objects": lambda y: np.array(["no", "yes"], dtype=object)[y],
    "objects that are numbers": lambda y: np.array([0, 1], dtype=object)[y],
    "a list": lambda y: y.tolist(),
    "a Series": lambda y: pandas.Series(y, index=np.arange(len(y))[::-1]),
    "a Series of strings": lambda y: pandas.Series(np.array(["no", "yes"])[y]),
    "categories": lambda y: pandas.Series(np.array(["no", "yes"])[y]).astype("category"),
    "categories that are numbers": lambda y: pandas.Categorical(y),
    "polars": lambda y: polars.Series(y),
    "polars strings": lambda y: polars.Series(np.array(["no", "yes"])[y].tolist()),
    "pyarrow": pyarrow.array,
}


@pytest.mark.parametrize("kind", [kind for kind in TARGETS if kind not in ("fractions", "objects that are numbers")])
def test_classes_may_be_anything(kind):
    X, y = features(), classes()
    given = TARGETS[kind](y)
    expected, found = SVMClassifier().fit(X, y), SVMClassifier().fit(X, given)
    assert expected.coef_.tobytes() == found.coef_.tobytes()
    names = np.asarray(given)
    assert found.classes_.tolist() == sorted(set(names.tolist()))
    predicted = found.predict(X)
    assert predicted.dtype == found.classes_.dtype
    assert predicted.tolist() == [found.classes_[position] for position in expected.predict(X)]
    assert found.score(X, given) == expected.score(X, y)


@pytest.mark.parametrize(
    "kind",
    [
        "ints",
        "bytes",
        "bools",
        "floats",
        "a list",
        "a Series",
        "categories that are numbers",
        "polars",
        "pyarrow",
        "objects that are numbers",
    ],
)
def test_grades_may_be_any_numbers(kind):
    X, y = features(), classes()
    expected = SVMRanker().fit(X, y, qid=queries())
    found = SVMRanker().fit(X, TARGETS[kind](y), qid=queries())
    assert expected.coef_.tobytes() == found.coef_.tobytes()


#: Types of the query of each row.
QUERIES = {
    "ints": lambda q: q,
    "bytes": lambda q: q.astype(np.int8),
    "a list": lambda q: q.tolist(),
    "bools and ints": lambda q: q.astype(object),
    "strings": lambda q: np.array([f"query {name}" for name in q]),
    "strings as objects": lambda q: np.array([f"query {name}" for name in q], dtype=object),
    "a list of strings": lambda q: [f"query {name}" for name in q],
    "floats": lambda q: q / 4,
    "dates": lambda q: np.datetime64("2020-01-01") + q,
    "tuples": lambda q: as_objects([(int(name) % 2, f"{name}") for name in q]),
    "a number and the same as a string": lambda q: as_objects([1 if name == 0 else str(name) for name in q]),
    "tuples of different lengths": lambda q: as_objects([("a",) * (int(name) + 1) for name in q]),
    "strings and ints": lambda q: as_objects([int(name) if name % 2 else f"{name}" for name in q]),
    "a Series": lambda q: pandas.Series(q, index=np.arange(len(q))[::-1]),
    "categories": lambda q: pandas.Series([f"query {name}" for name in q]).astype("category"),
    "polars": lambda q: polars.Series([f"query {name}" for name in q]),
    "pyarrow": lambda q: pyarrow.array([f"query {name}" for name in q]),
    "a column": lambda q: q.reshape(-1, 1),
}


def as_objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("kind", QUERIES)
def test_queries_may_be_of_any_type(kind, dtype):
    X, y = features(dtype), grades()
    expected = SVMRanker().fit(X, y, qid=queries())
    found = SVMRanker().fit(X, y, qid=QUERIES[kind](queries()))
    assert expected.coef_.tobytes() == found.coef_.tobytes()
    assert found.score(X, y, qid=QUERIES[kind](queries())) == expected.score(X, y, qid=queries())


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_of_a_query_may_stand_anywhere(make):
    X, y, qid = features(), grades(), queries()
    together = np.argsort(qid, kind="stable")
    expected = SVMRanker().fit(make(X[together]), y[together], qid=qid[together])
    found = SVMRanker().fit(make(X), y, qid=qid)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    assert found.predict(X)[together].tobytes() == found.predict(X[together]).tobytes()
    np.testing.assert_allclose(
        found.score(X, y, qid=qid), expected.score(X[together], y[together], qid=qid[together]), rtol=1e-12
    )


def test_without_queries_all_rows_are_one_list():
    X, y = features(), grades()
    expected, found = SVMRanker().fit(X, y, qid=np.zeros(ROWS)), SVMRanker().fit(X, y)
    assert expected.coef_.tobytes() == found.coef_.tobytes()
    assert expected.score(X, y, qid=np.ones(ROWS)) == found.score(X, y)


@pytest.mark.parametrize("kind", TABLES)
def test_queries_may_be_a_column_of_the_table(kind):
    X, y, qid = features(), grades(), queries()
    expected = SVMRanker().fit(X, y, qid=qid)
    table = with_column(TABLES[kind](X), "query", [f"query {name}" for name in qid])
    found = SVMRanker().fit(table, y, qid="query")
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.feature_names_in_.tolist() == NAMES
    assert found.predict(table).tobytes() == expected.predict(X).tobytes()
    assert found.predict(TABLES[kind](X)).tobytes() == expected.predict(X).tobytes()
    assert found.score(table, y, qid="query") == expected.score(X, y, qid=qid)
    assert found.score(table, y, qid=qid) == expected.score(X, y, qid=qid)


def with_column(table, name, values):
    """The table with one more column, in the middle if that is easy."""
    if isinstance(table, pandas.DataFrame):
        table = table.copy()
        table.insert(2, name, values)
        return table
    if isinstance(table, polars.DataFrame):
        return table.with_columns(polars.Series(name, values))
    return table.append_column(name, [values])


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_weights_may_be_of_any_numeric_type(dtype):
    X, y = features(dtype), classes()
    weights = np.random.default_rng(15).integers(0, 3, size=ROWS)
    expected = SVMClassifier().fit(X, y, sample_weight=weights.astype(float))
    series = pandas.Series(weights, index=np.arange(ROWS)[::-1])
    for given in (weights, weights.tolist(), weights.astype(np.float32), series, polars.Series(weights)):
        assert SVMClassifier().fit(X, y, sample_weight=given).coef_.tobytes() == expected.coef_.tobytes()


def test_a_weight_is_that_many_rows():
    X, y, qid = features(), classes(), queries()
    weights = np.random.default_rng(16).integers(0, 3, size=ROWS)
    repeated = np.repeat(np.arange(ROWS), weights)
    classifier = SVMClassifier().fit(X, y, sample_weight=weights)
    many = SVMClassifier().fit(X[repeated], y[repeated])
    np.testing.assert_allclose(classifier.coef_, many.coef_, rtol=1e-6, atol=1e-8)
    ranker = SVMRanker().fit(X, y, qid=qid, sample_weight=weights)
    many = SVMRanker().fit(X[repeated], y[repeated], qid=qid[repeated])
    np.testing.assert_allclose(ranker.coef_, many.coef_, rtol=1e-6, atol=1e-8)


def test_one_weight_for_all_rows_scales_the_cost():
    X, y = features(), classes()
    expected = SVMClassifier(C=2.5).fit(X, y)
    found = SVMClassifier().fit(X, y, sample_weight=2.5)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-7)


def comparisons():
    X, generator = features(), np.random.default_rng(17)
    left, right = X[:30], X[30:]
    difference = (right - left) @ np.arange(1, COLUMNS + 1) + generator.normal(size=30)
    return left, right, np.where(np.abs(difference) < 5, 0, np.sign(difference)).astype(int)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("make", [*LAYOUTS.values(), *TABLES.values()], ids=[*LAYOUTS, *TABLES])
def test_both_sides_of_comparisons_may_be_of_any_layout(make, dtype):
    left, right, y = comparisons()
    left, right = left.astype(dtype), right.astype(dtype)
    expected = SVMComparator().fit(left, right, y)
    found = SVMComparator().fit(make(left), make(right), y)
    assert found.coef_.tobytes() == expected.coef_.tobytes() and found.threshold_ == expected.threshold_
    assert found.compare(make(left), make(right)).tolist() == expected.compare(left, right).tolist()
    assert found.rank(make(left)).tolist() == expected.rank(left).tolist()


@pytest.mark.parametrize("form", SPARSE)
def test_both_sides_of_comparisons_may_be_sparse(form):
    left, right, y = comparisons()
    expected = SVMComparator().fit(sparse.csr_array(left), sparse.csr_array(right), y)
    found = SVMComparator().fit(SPARSE[form](left), SPARSE[form](right), y)
    assert found.coef_.tobytes() == expected.coef_.tobytes() and found.threshold_ == expected.threshold_
    dense = SVMComparator().fit(left, right, y)
    np.testing.assert_allclose(found.coef_, dense.coef_, rtol=1e-7)


def test_outcomes_may_be_words_or_signs():
    left, right, y = comparisons()
    words = np.array(["left", "tie", "right"])[y + 1]
    expected = SVMComparator().fit(left, right, y)
    for given in (y.tolist(), y.astype(np.int8), y.astype(float), words, words.tolist(), words.astype(object)):
        assert SVMComparator().fit(left, right, given).coef_.tobytes() == expected.coef_.tobytes()
    for given in (pandas.Series(words), pandas.Series(words).astype("category"), polars.Series(words.tolist())):
        assert SVMComparator().fit(left, right, given).coef_.tobytes() == expected.coef_.tobytes()


def test_pairs_name_items_by_row_or_by_the_index_of_a_table():
    left, right, y = comparisons()
    items, places = np.vstack([left, right]), np.arange(30)
    pairs = np.column_stack([places, places + 30, y])
    expected = SVMComparator().fit_items(items, pairs)
    named = pandas.DataFrame(items, index=[f"item {row}" for row in range(60)], columns=NAMES)
    words = np.array(["left", "tie", "right"])[y + 1]
    sides = {"left": [f"item {row}" for row in places], "right": [f"item {row + 30}" for row in places]}
    for given in (pandas.DataFrame, polars.DataFrame, pyarrow.table):
        found = SVMComparator().fit_items(named, given({**sides, "outcome": words}))
        assert found.coef_.tobytes() == expected.coef_.tobytes()
        heavy = SVMComparator().fit_items(named, given({**sides, "outcome": words, "weight": np.full(30, 2.0)}))
        weighed = SVMComparator().fit_items(items, pairs, sample_weight=np.full(30, 2.0))
        assert heavy.coef_.tobytes() == weighed.coef_.tobytes()
    wide = SVMComparator().fit(left, right, y)
    np.testing.assert_allclose(expected.coef_, wide.coef_, rtol=1e-6)


MEMORY = """
import resource
import numpy as np
from scipy import sparse
from maxmargin import SVMClassifier, SVMComparator, SVMRanker

rows, columns = {rows}, 1000
generator = np.random.default_rng(0)
y, qid = np.arange(rows) % 2, np.arange(rows) // 10
if {sparse}:
    values = np.ones(rows * columns, dtype=np.{dtype})
    indices = np.tile(np.arange(columns, dtype=np.int32), rows)
    X = sparse.csr_array((values, indices, np.arange(0, rows * columns + 1, columns, dtype=np.int32)), shape=(rows, columns))
    size = values.nbytes + indices.nbytes
    # Whether rows are in order is looked at once, and kept.
    assert X.has_canonical_format
else:
    X = np.ones((rows, columns), dtype=np.{dtype})
    size = X.nbytes
small = X[:20]
for estimator in (SVMClassifier(), SVMRanker()):
    estimator._dataset(small, y[:20])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
classified = SVMClassifier()._dataset(X, y, sample_weight=np.ones(rows))
ranked = SVMRanker()._dataset(X, y, qid=qid)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert classified.shape == ranked.shape == X.shape
print((after - before) * 1024 / size)
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_arrays_of_the_layout_of_the_core_are_not_copied(is_sparse, dtype):
    cell = (4 if dtype == "float32" else 8) + (4 if is_sparse else 0)
    program = MEMORY.format(rows=200_000 // cell, sparse=is_sparse, dtype=dtype)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.1, "the arrays were copied"


FIT = """
from pathlib import Path
import numpy as np
from scipy import sparse
from maxmargin import SVMClassifier, SVMRanker

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

rows, generator = 400_000, np.random.default_rng(0)
X = generator.standard_normal((rows, 64), dtype=np.float32)
y, qid = (X[:, 0] + X[:, 1] > generator.standard_normal(rows)) * 1.0, np.arange(rows) // 50
size = X.nbytes
if {sparse}:
    # 32 of 64 columns a row.
    indices = np.tile(np.arange(0, 64, 2, dtype=np.int32), rows)
    X = sparse.csr_array((X[:, ::2].ravel(), indices, np.arange(0, 32 * rows + 1, 32, dtype=np.int32)), shape=(rows, 64))
    assert X.has_canonical_format
few = slice(0, 2000)
estimator = {estimator}
asked = {{"qid": qid}} if isinstance(estimator, SVMRanker) else {{}}
estimator.fit(X[few], y[few], **{{name: values[few] for name, values in asked.items()}})
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
estimator.fit(X, y, **asked)
print((status("VmHWM") - before) / size)
print((status("VmRSS") - before) / size)
for _ in range(4):
    estimator.fit(X, y, **asked)
print((status("VmRSS") - before) / size)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks of memory are told by Linux alone")
@pytest.mark.parametrize(
    ("is_sparse", "estimator"),
    [
        (False, "SVMClassifier(0.01)"),
        (False, 'SVMClassifier(0.01, loss="squared_hinge")'),
        (False, "SVMRanker(0.001)"),
        (True, 'SVMClassifier(0.01, solver="dual-coordinate-descent", tol=1e-2)'),
    ],
)
def test_fits_need_little_beside_their_arrays_and_pile_nothing_up(is_sparse, estimator):
    program = FIT.format(sparse=is_sparse, estimator=estimator)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    peak, left, later = map(float, done.stdout.split())
    print(f"{estimator}: {peak:.3f} at the peak, {left:.3f} left, {later:.3f} after more fits")
    # The arrays are smaller than in practice, so that costs of fixed size have a larger share.
    assert peak < 0.2
    assert left < 0.12
    assert later < 0.2
