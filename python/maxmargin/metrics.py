"""Metrics of scores in arrays: the same as those of `maxmargin evaluate`.

Every list metric takes ``qid``, the query of each row in any order. Without it, all rows form one list. ``variant``
selects the rules of the metric: "standard" (ties averaged, gain 2^grade − 1), "sklearn", "trec", "letor" or "mslr".
"""

from typing import Any

import numpy as np

from . import _core, arrays

__all__ = [
    "average_precision_score",
    "compare_error",
    "evaluate",
    "kendall_tau_score",
    "map_score",
    "mrr_score",
    "ndcg_score",
    "pair_accuracy_score",
    "precision_at_k_score",
    "roc_auc_score",
]


#: The variants of list metrics.
VARIANTS = ("standard", "sklearn", "trec", "letor", "mslr")


def _rows(y_true: Any) -> int:
    """Number of rows or comparisons to evaluate."""
    found = np.asarray(y_true)
    if found.ndim == 0:
        raise ValueError("y_true must have one dimension, and is a single value")
    if not len(found):
        raise ValueError("y_true is empty")
    return len(found)


def _numbers(name: str, values: Any, rows: int) -> Any:
    found = arrays.vector(name, values, rows)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers, and is of {found.dtype}")
    found = np.require(found, dtype=np.float64, requirements=["C", "A"])
    if not np.isfinite(found).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return found


def evaluate(metric: str, y_true: Any, y_score: Any, *, qid: Any = None, sample_weight: Any = None) -> float:
    """Compute a metric by its name in the command, such as ``ndcg@10:letor``.

    Examples
    --------
    >>> from maxmargin import metrics
    >>> metrics.evaluate("mrr", [0, 1, 0, 1, 0], [0.1, 0.3, 0.9, 0.8, 0.2], qid=[1, 1, 1, 2, 2])
    0.75
    """
    if not isinstance(metric, str):
        raise TypeError(f"metric must be the name of a metric, and is {metric!r}")
    rows = _rows(y_true)
    truth, scores = _numbers("y_true", y_true, rows), _numbers("y_score", y_score, rows)
    keys = np.zeros(rows, dtype=np.uint32) if qid is None else arrays.codes("qid", qid, rows)[0]
    return _core.evaluate(metric, truth, scores, keys, arrays.weights("sample_weight", sample_weight, rows))


def _at(k: int | None) -> str:
    if k is None:
        return ""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k must be a whole number of at least 1, and is {k!r}")
    if k < 1:
        raise ValueError(f"k must be a whole number of at least 1, and is {k!r}")
    return f"@{k}"


def _by(variant: str) -> str:
    if not isinstance(variant, str):
        raise TypeError(f"variant must be one of {', '.join(VARIANTS)}, and is {variant!r}")
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {', '.join(VARIANTS)}, and is {variant!r}")
    return f":{variant}"


def ndcg_score(y_true: Any, y_score: Any, *, qid: Any = None, k: int | None = None, variant: str = "standard") -> float:
    """Mean over queries of the normalised discounted cumulative gain (NDCG) of the first k rows.

    Examples
    --------
    >>> from maxmargin.metrics import ndcg_score
    >>> ndcg_score([2, 1, 0], [0.9, 0.5, 0.1])
    1.0
    """
    return evaluate(f"ndcg{_at(k)}{_by(variant)}", y_true, y_score, qid=qid)


def map_score(y_true: Any, y_score: Any, *, qid: Any = None, variant: str = "standard") -> float:
    """Mean over queries of the average precision.

    Examples
    --------
    >>> from maxmargin.metrics import map_score
    >>> map_score([1, 0, 1], [0.9, 0.5, 0.1])
    0.8333333333333333
    """
    return evaluate(f"map{_by(variant)}", y_true, y_score, qid=qid)


def mrr_score(y_true: Any, y_score: Any, *, qid: Any = None, k: int | None = None) -> float:
    """Mean reciprocal rank: the mean over queries of one over the position of the first relevant row.

    Examples
    --------
    >>> from maxmargin.metrics import mrr_score
    >>> mrr_score([0, 1, 0], [0.9, 0.5, 0.1])
    0.5
    """
    return evaluate(f"mrr{_at(k)}", y_true, y_score, qid=qid)


def precision_at_k_score(y_true: Any, y_score: Any, *, k: int, qid: Any = None, variant: str = "standard") -> float:
    """Mean over queries of the share of relevant rows among the first k.

    Examples
    --------
    >>> from maxmargin.metrics import precision_at_k_score
    >>> precision_at_k_score([0, 1, 0], [0.9, 0.5, 0.1], k=2)
    0.5
    """
    return evaluate(f"p{_at(k)}{_by(variant)}", y_true, y_score, qid=qid)


def kendall_tau_score(y_true: Any, y_score: Any, *, qid: Any = None) -> float:
    """Mean over queries of Kendall's tau-b between scores and grades.

    Examples
    --------
    >>> from maxmargin.metrics import kendall_tau_score
    >>> kendall_tau_score([3, 2, 1], [0.3, 0.2, 0.1])
    1.0
    """
    return evaluate("kendall-tau", y_true, y_score, qid=qid)


def pair_accuracy_score(y_true: Any, y_score: Any, *, qid: Any = None) -> float:
    """Mean over queries of the share of pairs with different grades that are in the right order.

    Examples
    --------
    >>> from maxmargin.metrics import pair_accuracy_score
    >>> pair_accuracy_score([2, 1, 0], [0.1, 0.5, 0.3])
    0.3333333333333333
    """
    return evaluate("pair-accuracy", y_true, y_score, qid=qid)


def _binary(y_true: Any) -> Any:
    y_true = np.asarray(y_true)
    if y_true.dtype.kind == "f" and not np.isfinite(y_true).all():
        raise ValueError("y_true contains NaN or infinity")
    if y_true.dtype.kind in "biuf" and y_true.size:
        # Without sorting, because a sort cannot be interrupted.
        codes = y_true == y_true.max()
        if not codes.all() and (codes | (y_true == y_true.min())).all():
            return codes.astype(np.float64).ravel()
    classes, codes = np.unique(y_true, return_inverse=True)
    if len(classes) != 2:
        raise ValueError(f"y_true must hold two classes, and holds {len(classes)}")
    return codes.astype(np.float64).ravel()


def roc_auc_score(y_true: Any, y_score: Any, *, sample_weight: Any = None) -> float:
    """Area under the ROC curve. The larger of the two classes is the positive one.

    Examples
    --------
    >>> from maxmargin.metrics import roc_auc_score
    >>> roc_auc_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    return evaluate("auc", _binary(y_true), y_score, sample_weight=sample_weight)


def average_precision_score(y_true: Any, y_score: Any, *, sample_weight: Any = None) -> float:
    """Average precision: the area under the step function of precision over recall.

    Examples
    --------
    >>> from maxmargin.metrics import average_precision_score
    >>> average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.8333333333333333
    """
    return evaluate("average-precision", _binary(y_true), y_score, sample_weight=sample_weight)


def compare_error(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of comparisons whose outcome (-1, 0 or 1) is predicted wrongly.

    Examples
    --------
    >>> from maxmargin.metrics import compare_error
    >>> compare_error(["left", "tie", "right", "tie"], [-1, 0, 1, 1])
    0.25
    """
    rows = _rows(y_true)
    truth = (arrays.outcomes("y_true", y_true, rows) + 1).astype(np.uint32)
    found = (arrays.outcomes("y_pred", y_pred, rows) + 1).astype(np.uint32)
    weights = arrays.weights("sample_weight", sample_weight, rows)
    return _core.evaluate("error", truth, None, None, weights, found, 3)
