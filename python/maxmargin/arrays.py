"""Converts user data to what the core takes: C-contiguous f32 or f64, or sparse rows with 32-bit indices.

Arrays that already have this form are shared with the core and not copied. They must not be written to while a method
runs.
"""

from operator import eq
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core

Array = npt.NDArray[Any]

#: Indices of sparse rows are stored in 32 bits.
MOST_COLUMNS = 2**31 - 1


def dataset(X: Any) -> _core.Dataset:
    """The data set over checked features: an array or sparse rows."""
    if not hasattr(X, "indptr"):
        return _core.Dataset.dense(np.require(X, requirements=["C", "A"]), checked=True)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    indices = np.require(X.indices, dtype=np.int32, requirements=["C", "A"])
    starts = np.require(X.indptr, dtype=np.int32 if X.indptr.dtype == np.int32 else np.int64, requirements=["C", "A"])
    values = np.require(X.data, requirements=["C", "A"])
    return _core.Dataset.sparse(starts, indices, values, X.shape[1], checked=True)


def check_sparse(name: str, X: Any) -> None:
    """Raises an error if the parts of a sparse matrix do not fit together. scipy would read outside the arrays."""
    layout = getattr(X, "format", None)
    if layout in ("csr", "csc") and X.ndim == 2:
        lines, width = X.shape if layout == "csr" else X.shape[::-1]
        starts, count = X.indptr, len(X.indices)
        if len(X.data) != count:
            raise ValueError(f"{name} is not a valid sparse array: it has {count} indices for {len(X.data)} values")
        if len(starts) != lines + 1 or starts[0] != 0 or starts[-1] > count or (starts[1:] < starts[:-1]).any():
            raise ValueError(f"{name} is not a valid sparse array: indptr must rise from 0 to the number of indices")
        indices = [(X.indices[: starts[-1]], width)]
    elif layout == "coo" and X.ndim == 2:
        indices = [(X.row, X.shape[0]), (X.col, X.shape[1])]
    else:
        return
    for found, end in indices:
        if len(found) and (found.min() < 0 or found.max() >= end):
            raise ValueError(f"{name} is not a valid sparse array: an index is below 0 or beyond the shape {X.shape}")
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(f"{name} has {X.shape[1]} columns, and at most {MOST_COLUMNS} are allowed")


def is_table(X: Any) -> bool:
    """Whether X has named columns."""
    return hasattr(X, "columns") or hasattr(X, "column_names")


def column_names(X: Any) -> list[Any]:
    """The names of the columns of a table."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def without_column(X: Any, name: str, argument: str) -> tuple[Any, Array]:
    """A table without one of its columns, and that column."""
    if not is_table(X):
        raise TypeError(f"{argument} names the column {name!r}, and X is not a table with named columns")
    names = column_names(X)
    if name not in names:
        raise ValueError(f"{argument} names the column {name!r}, and X has only {names}")
    column = np.asarray(X[name])
    kept = [other for other in names if other != name]
    return (X.select(kept) if hasattr(X, "select") else X[kept]), column


def plain(X: Any, argument: str = "X") -> Any:
    """X in a form that scikit-learn takes: an Arrow table becomes one array in row order."""
    if not hasattr(X, "column_names") or hasattr(X, "iloc"):
        return X
    names = list(X.column_names)
    columns = [X[name] for name in names]
    single = all(str(column.type) in ("float", "float32") for column in columns)
    out = np.empty((X.num_rows, len(names)), dtype=np.float32 if single else np.float64)
    for position, (name, column) in enumerate(zip(names, columns, strict=True)):
        if column.null_count:
            raise ValueError(f"the column {name!r} of {argument} has {column.null_count} missing values")
        values = column.to_numpy()
        if values.dtype.kind not in "biuf":
            raise ValueError(f"the column {name!r} of {argument} holds {column.type}, not numbers")
        out[:, position] = values
    return out


def column_without_numbers(X: Any) -> Any:
    """The name of the first column of a table that is not numeric; None if there is none, or if X is not a table."""
    for name in column_names(X) if is_table(X) else []:
        column = X[name]
        # Missing values are reported elsewhere.
        for drop in ("dropna", "drop_nulls"):
            column = getattr(column, drop)() if hasattr(column, drop) else column
        try:
            np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):
            return name
    return None


def vector(name: str, values: Any, rows: int) -> Array:
    """A list with one value per row."""
    found = np.asarray(values)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise ValueError(f"{name} must have one dimension, and has the shape {found.shape}")
    if len(found) != rows:
        raise ValueError(f"{name} has {len(found)} values, and there are {rows} rows")
    return found


def weights(name: str, values: Any, rows: int) -> npt.NDArray[np.float64] | None:
    """Weights of rows: finite numbers, not negative."""
    if values is None:
        return None
    if isinstance(values, float | int):
        values = np.full(rows, values)
    try:
        given = np.asarray(values)
        # The same as in scikit-learn, even if there is only one column.
        if given.ndim > 1:
            raise ValueError(f"{name} must have one dimension, and has the shape {given.shape}")
        found = np.require(vector(name, given, rows), dtype=np.float64, requirements=["C", "A"])
    except TypeError as error:
        raise TypeError(f"{name} must be numbers: {error}") from error
    except ValueError as error:
        message = str(error)
        raise ValueError(message if message.startswith(name) else f"{name} must be numbers: {message}") from error
    if not np.isfinite(found).all():
        raise ValueError(f"{name} contains NaN or infinity")
    if (found < 0).any():
        raise ValueError(f"{name} contains negative values")
    if rows and not found.any():
        raise ValueError(f"{name} is zero for every row")
    return found


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or the missing value of pandas: any value that is not clearly equal to itself."""
    same = eq(value, value)
    return value is None or not (isinstance(same, bool | np.bool_) and bool(same))


def codes(name: str, values: Any, rows: int) -> tuple[npt.NDArray[np.uint32], list[str]]:
    """Values of any type as positions in the list of distinct values, in order of first appearance."""
    if isinstance(values, list) and values and all(isinstance(value, tuple) for value in values):
        # Keys with several parts are not split.
        keys = np.empty(len(values), dtype=object)
        keys[:] = values
        values = keys
    found = vector(name, values, rows)
    if found.dtype.kind == "f" and np.isnan(found).any():
        raise ValueError(f"{name} contains NaN")
    if found.dtype.kind in "mM" and np.isnat(found).any():
        raise ValueError(f"{name} contains NaT")
    if found.dtype.kind == "O" and any(is_missing(value) for value in found):
        raise ValueError(f"{name} contains missing values")
    starts = np.flatnonzero(np.concatenate(([True], found[1:] != found[:-1]))) if rows else np.empty(0, dtype=np.intp)
    heads = found[starts]
    lengths = np.diff(np.append(starts, rows))
    if found.dtype.kind == "O":
        seen: dict[Any, int] = {}
        try:
            places = np.array([seen.setdefault(value, len(seen)) for value in heads], dtype=np.uint32)
        except TypeError as error:
            raise TypeError(f"{name} holds values that cannot be told apart: {error}") from error
        return np.repeat(places, lengths), [str(value) for value in seen]
    distinct, first, inverse = np.unique(heads, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    return np.repeat(place[inverse.ravel()], lengths), [str(distinct[position]) for position in order]


#: The accepted names of outcomes; 1 means that the right item is better.
OUTCOMES = {"left": -1, "tie": 0, "right": 1}


def outcomes(name: str, values: Any, rows: int) -> npt.NDArray[np.int8]:
    """Outcomes of comparisons as -1, 0 or 1."""
    found = vector(name, values, rows)
    if found.dtype.kind in "US" or (found.dtype.kind == "O" and all(isinstance(value, str) for value in found)):
        unknown = sorted({str(value) for value in found} - OUTCOMES.keys())
        if unknown:
            raise ValueError(f"{name} holds {unknown[0]!r}, and must be 'left', 'tie' or 'right', or -1, 0 or 1")
        return np.array([OUTCOMES[str(value)] for value in found], dtype=np.int8)
    if found.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be -1, 0 or 1, or 'left', 'tie' or 'right', and is of {found.dtype}")
    if not np.isin(found, (-1, 0, 1)).all():
        bad = found[~np.isin(found, (-1, 0, 1))][0]
        raise ValueError(f"{name} holds {bad}, and must be -1 (left is better), 0 (a tie) or 1 (right is better)")
    return found.astype(np.int8)
