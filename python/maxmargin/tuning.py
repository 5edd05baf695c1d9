"""Chooses settings by cross-validation."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from sklearn.base import clone

from . import _core
from .estimator import MarginEstimator, called, number

#: The default metric for the choice, as in the command.
USUAL = {
    "classify": "accuracy",
    "ordinal": "mae",
    "multilabel": "label-ranking-average-precision",
    "rank": "ndcg@10",
    "compare": "error",
    "sequence": "token-accuracy",
}


def usual_metric(estimator: MarginEstimator) -> str:
    """The metric that an estimator optimises, or the usual one of its task."""
    measure = getattr(estimator, "optimize", None)
    if measure is None:
        return USUAL[estimator._task]
    if estimator._task == "rank":
        # For two grades, this is the ROC area of each query.
        return "pair-accuracy" if measure == "auc" else str(measure)
    return str(measure)


@dataclass
class Tuned:
    """The result of :func:`tune`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVMClassifier, tune
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> found = tune(SVMClassifier(), X, X[:, 0] > 0, C=[0.01, 1.0], cv=2)
    >>> found.best_estimator.C == found.best_params["C"]
    True
    >>> [row["C"] for row in found.results]
    [0.01, 1.0]
    """

    #: The best estimator, fitted to all rows.
    best_estimator: MarginEstimator
    #: The values of the tuned parameters.
    best_params: dict[str, float]
    #: The mean of the deciding metric over the folds.
    best_score: float
    #: One dictionary per tried setting.
    results: list[dict[str, Any]] = field(repr=False)

    def _repr_html_(self) -> str:
        names = [name for name in self.results[0] if not name.startswith("folds_")]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)

        def cell(value: Any) -> str:
            return f"<td>{value:.4g}</td>" if isinstance(value, float) else f"<td>{escape(str(value))}</td>"

        def line(row: dict[str, Any]) -> str:
            is_best = all(row[name] == value for name, value in self.best_params.items())
            style = ' style="font-weight:bold"' if is_best else ""
            return f"<tr{style}>{''.join(cell(row[name]) for name in names)}</tr>"

        body = "".join(line(row) for row in self.results)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def several(name: str, values: Any) -> list[Any]:
    """An argument that must hold at least one value."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of values to try, and is {values!r}")
    found = list(values)
    if not found:
        raise ValueError(f"{name} is empty: give at least one value, or leave it out")
    return found


def tune(
    estimator: MarginEstimator,
    *data: Any,
    C: Sequence[float] | None = None,
    gamma: Sequence[float] | None = None,
    cv: int = 5,
    metrics: str | Sequence[str] | None = None,
    callback: Callable[[_core.Tried], object] | None = None,
    **more: Any,
) -> Tuned:
    """Choose C (and gamma) by cross-validation, without splitting queries, and fit the best setting to all rows.

    Each fit starts from the solution for the previous C, and no row is copied, so it is much faster than a grid of
    separate fits. The search ends early if the callback returns a true value or Ctrl-C is pressed.

    Parameters
    ----------
    estimator : SVMClassifier, MultilabelSVM, SVMOrdinal, SVMRanker, SVMComparator or SequenceSVM
        An estimator with the other settings. It is not changed.
    *data, **more
        The arguments of `fit`: ``X, y`` with ``qid=`` and ``sample_weight=``, or ``X_left, X_right, y``. The arguments
        of `fit_items` are given by name: ``items=`` and ``pairs=``.
    C : sequence of float, optional
        Values of C to try. The default is a grid that suits the data.
    gamma : sequence of float, optional
        Values of gamma to try.
    cv : int, default=5
        Number of folds.
    metrics : str or sequence of str, optional
        Metrics, by their names in the command. The first one decides. The default is the measure that the estimator
        optimises, or one that is usual for it.
    callback : callable, optional
        Called with a :class:`maxmargin.Tried` after each setting.

    Returns
    -------
    Tuned

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVMClassifier, tune
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> found = tune(SVMClassifier(), X, X[:, 0] > 0, C=[0.01, 0.1, 1.0], cv=4)
    >>> sorted(found.best_params), len(found.results)
    (['C'], 3)
    """
    if not isinstance(estimator, MarginEstimator):
        raise TypeError(f"estimator must be an SVMClassifier, SVMOrdinal, SVMRanker, SVMComparator or SequenceSVM, and is {estimator!r}")
    best = clone(estimator)
    if best._learns_from_a_stream:
        raise TypeError(f"{type(estimator).__name__} learns from a stream, and cannot be tuned")
    if best._task not in USUAL:
        raise TypeError(f"{type(estimator).__name__} has no metric to choose by: compare settings by its own loss")
    dataset = best._taken(*data, **more)
    settings = {**best._settings(dataset), **getattr(best, "_positive", {})}
    if metrics is None:
        metrics = [usual_metric(best)]
    names = [metrics] if isinstance(metrics, str) else several("metrics", metrics)
    costs = None if C is None else [number("C", c, above=0) for c in several("C", C)]
    widths = None if gamma is None else [number("gamma", g, above=0) for g in several("gamma", gamma)]
    folds = number("cv", cv, at_least=2, whole=True)
    model, rows, position = _core.tune(
        dataset,
        json.dumps(settings),
        names,
        folds,
        best._seed(),
        costs,
        widths,
        best._threads(),
        called("callback", callback),
    )
    params = {"C": rows[position]["C"]}
    if widths is not None:
        params["gamma"] = rows[position]["gamma"]
    best.set_params(**params)
    best._adopt(model, dataset)
    return Tuned(best, params, rows[position][f"mean_{names[0]}"], rows)
