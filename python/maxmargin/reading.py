"""Reads files in the same way as the command."""

import json
import os
from collections.abc import Iterable, Sequence

from . import _core


def load(
    path: str | os.PathLike[str],
    *,
    task: str = "rank",
    items: str | os.PathLike[str] | None = None,
    precision: str = "f32",
    target: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    ignore: Sequence[str] = (),
    missing: str | None = None,
    index_base: int | None = None,
    one_group: bool = False,
) -> _core.Dataset:
    """Read svmlight text, CSV, TSV, Parquet, Arrow or the cache `.mmd`. Format and compression are detected by content.

    A cache is mapped, so only the parts in use take memory. Estimators accept the result in place of ``X``.

    Parameters
    ----------
    path : path
        The file.
    task : str
        The task that the data are for, such as "rank", "classify" or "compare". For rankers and comparisons, a table
        may hold pairs.
    items : path, optional
        File of the items that the pairs name.
    precision : {"f32", "f64"}
        Precision of the stored values.
    target, group, weight, id : str, optional
        Columns of a table. Columns that are not given are found by their common names.
    ignore : sequence of str
        Columns to leave out.
    missing : {"error", "zero", "mean"}, optional
        How to handle an empty cell.
    index_base : {0, 1}, optional
        Whether svmlight indices count from 0 or from 1; detected by default.
    one_group : bool
        Whether all rows form one list to rank.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin
    >>> path = os.path.join(tempfile.mkdtemp(), "train.svm")
    >>> with open(path, "w") as file:
    ...     _ = file.write("2 qid:1 1:0.9\\n1 qid:1 1:0.4\\n0 qid:2 1:0.2\\n1 qid:2 1:0.8\\n")
    >>> maxmargin.load(path)
    <maxmargin.Dataset: 4 rows × 1 features, dense, f32, 2 queries>
    """
    for name, value, known in (
        ("precision", precision, ("f32", "f64")),
        ("missing", missing, ("error", "zero", "mean")),
    ):
        if value is not None and value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, and is {value!r}")
    if index_base not in (None, 0, 1):
        raise ValueError(f"index_base must be 0 or 1, and is {index_base!r}")
    for name, value in (("target", target), ("group", group), ("weight", weight), ("id", id)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be the name of a column, and is {value!r}")
    if isinstance(ignore, str) or not isinstance(ignore, Iterable) or not all(isinstance(name, str) for name in ignore):
        raise TypeError(f"ignore must be a list of column names, and is {ignore!r}")
    settings = {
        "precision": precision,
        "target": target,
        "group": group,
        "weight": weight,
        "id": id,
        "ignore": list(ignore),
        "missing": missing,
        "index-base": index_base,
        "one-group": one_group,
    }
    # Settings that are not given are not stored with a model either.
    usual = {"precision": "f32", "one-group": False}
    said = {name: value for name, value in settings.items() if value not in (None, []) and usual.get(name) != value}
    return _core.load(path, task, items, json.dumps(said))
