"""Click logs: reading them, and how likely each position is looked at."""

from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core, arrays

#: The columns of a log, with other names for each.
COLUMNS = {
    "query": ("query", "query_id", "qid", "user_query"),
    "session": ("session", "session_id", "impression", "impression_id", "search_id"),
    "item": ("item", "item_id", "document", "document_id", "doc", "doc_id", "docid", "object_id", "url", "id"),
    "position": ("position", "rank", "place"),
    "clicked": ("clicked", "click", "is_click"),
    "propensity": ("propensity", "examination"),
}


class PropensityEstimate(NamedTuple):
    """How likely each position is looked at, relative to the one that is looked at most.

    Examples
    --------
    >>> from maxmargin import estimate_propensity
    >>> log = {"query": ["a"] * 8, "session": [1, 1, 2, 2, 3, 3, 4, 4], "item": ["x", "y", "y", "x"] * 2,
    ...        "position": [1, 2] * 4, "clicked": [1, 0, 1, 0, 1, 1, 1, 0]}
    >>> estimate = estimate_propensity(log)
    >>> estimate.position, estimate.shown, estimate.clicks
    (array([1, 2]), array([4, 4]), array([4, 1]))
    """

    position: npt.NDArray[np.int64]
    #: NaN where the log does not tell.
    propensity: npt.NDArray[np.float64]
    #: Ends of 95 % intervals, NaN where there are none.
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    #: How often something was shown and clicked.
    shown: npt.NDArray[np.int64]
    clicks: npt.NDArray[np.int64]


def words(values: Any) -> list[str]:
    """Values of any type as text. Whole numbers have no point."""
    found = np.asarray(values)
    if found.dtype.kind == "f":
        whole = bool(np.all(found == np.floor(found)))
        return [str(int(value)) if whole else repr(float(value)) for value in found]
    return [str(value) for value in found.tolist()]


def read_log(log: Any) -> _core.ClickLog:
    """A log from a file, several files, or a mapping or table with columns."""
    if isinstance(log, _core.ClickLog):
        return log
    if isinstance(log, str | PathLike):
        return _core.ClickLog.read([fspath(log)])
    if isinstance(log, list | tuple) and log and all(isinstance(file, str | PathLike) for file in log):
        return _core.ClickLog.read([fspath(file) for file in log])
    if arrays.is_table(log):
        names = [str(name) for name in arrays.column_names(log)]
    elif hasattr(log, "keys"):
        names = [str(name) for name in log.keys()]
    else:
        raise TypeError("log must be a file, or a mapping or table with columns query, item, position and clicked")
    found: dict[str, Any] = {}
    for column, others in COLUMNS.items():
        name = next((name for name in others if name in names), None)
        if name is None and column not in ("session", "propensity"):
            raise ValueError(f"log has no column {column!r}: its columns are {names}")
        found[column] = None if name is None else np.asarray(log[name])
    rows = len(found["query"])
    for column, values in found.items():
        if values is not None and values.shape != (rows,):
            raise ValueError(f"the column {column!r} of the log has the shape {values.shape}, and not ({rows},)")
    if rows == 0:
        raise ValueError("log has no events")
    positions = found["position"].astype(np.float64)
    if np.any(positions[~np.isnan(positions)] % 1 != 0) or np.any(np.isinf(positions)):
        raise ValueError("positions of the log must be whole numbers")
    clicked = found["clicked"].astype(np.float64)
    if not np.isin(clicked, (0.0, 1.0)).all():
        raise ValueError("clicked must be 0 or 1 for every event of the log")
    sessions = [""] * rows if found["session"] is None else words(found["session"])
    propensities = None if found["propensity"] is None else found["propensity"].astype(np.float64).tolist()
    return _core.ClickLog.of(
        (words(found["query"]), sessions, words(found["item"])),
        [None if np.isnan(place) else int(place) for place in positions],
        [bool(value) for value in clicked],
        propensities,
    )


def curve_of(log: _core.ClickLog, propensity: Any, data: _core.Dataset, items: list[str]) -> list[float | None] | None:
    """The propensity of each position; None for those of the log."""
    if propensity is None:
        propensity = "log" if log.has_propensities else "power:1"
    if isinstance(propensity, PropensityEstimate):
        propensity = propensity.propensity
    if not isinstance(propensity, str):
        values = np.asarray(propensity, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError("propensity must be a text, or one number for each position")
        return [None if np.isnan(value) else float(value) for value in values]
    if propensity == "log":
        return None
    if propensity.startswith("power:"):
        return log.power(float(propensity.removeprefix("power:")))
    if propensity == "estimate" or propensity.startswith("estimate:"):
        method = propensity.removeprefix("estimate").removeprefix(":") or "harvest"
        return log.estimate(method, data, items)[1]
    raise ValueError(f"propensity is {propensity!r}, and must be 'log', 'power:ETA', 'estimate' or numbers")


def estimate_propensity(log: Any, *, method: str = "harvest") -> PropensityEstimate:
    """Estimate from a log of clicks how likely each position is looked at.

    Parameters
    ----------
    log : path, list of paths, mapping or table
        Columns query, session, item, position and clicked: a row for each result that was shown.
    method : {"harvest", "swaps", "regression-em"}, default="harvest"
        Compare the clicks on the same result at all couples of positions, or with the first position only, or by a model
        in which each result has its own relevance.

    Examples
    --------
    >>> from maxmargin import estimate_propensity
    >>> log = {"query": ["a"] * 8, "session": [1, 1, 2, 2, 3, 3, 4, 4], "item": ["x", "y", "y", "x"] * 2,
    ...        "position": [1, 2] * 4, "clicked": [1, 0, 1, 0, 1, 1, 1, 0]}
    >>> estimate_propensity(log).propensity.round(2)
    array([1.  , 0.25])
    """
    places, _ = read_log(log).estimate(method)
    position, value, interval, shown, clicks = zip(*places, strict=True)
    real = [np.nan if found is None else found for found in value]
    ends = [(np.nan, np.nan) if found is None else found for found in interval]
    return PropensityEstimate(
        np.array(position, dtype=np.int64),
        np.array(real, dtype=np.float64),
        np.array([low for low, _ in ends], dtype=np.float64),
        np.array([high for _, high in ends], dtype=np.float64),
        np.array(shown, dtype=np.int64),
        np.array(clicks, dtype=np.int64),
    )
