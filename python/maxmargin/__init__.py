"""Learn to rank, compare and classify with large margins, with a certificate of how close to optimal the result is.

The estimators follow scikit-learn: :class:`SVMClassifier`, :class:`SVMRanker`, :class:`SVMComparator` and
:class:`PAComparator`. :func:`load` reads what the command reads into a :class:`Dataset`, a :class:`Model` is what was learned
and can be saved, verified and used by the command, :mod:`maxmargin.metrics` says how good scores are, and :func:`tune` finds
the settings to learn with. scikit-learn is imported when an estimator is first used.

>>> import maxmargin
>>> maxmargin.SVMClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.5], [2.5]])
array([0, 1])
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from ._core import Dataset, MaxmarginError, Model, Progress, Tried, __version__

if TYPE_CHECKING:
    from . import metrics
    from .classifier import SVMClassifier
    from .comparator import SVMComparator
    from .passive_aggressive import PAComparator
    from .ranker import SVMRanker
    from .reading import load
    from .tuning import Tuned, tune

#: Where each name is, so that importing the package imports neither numpy nor scikit-learn.
_WHERE = {
    "PAComparator": "passive_aggressive",
    "SVMClassifier": "classifier",
    "SVMComparator": "comparator",
    "SVMRanker": "ranker",
    "Tuned": "tuning",
    "load": "reading",
    "tune": "tuning",
}

__all__ = [
    "Dataset",
    "MaxmarginError",
    "Model",
    "PAComparator",
    "Progress",
    "SVMClassifier",
    "SVMComparator",
    "SVMRanker",
    "Tried",
    "Tuned",
    "__version__",
    "load",
    "metrics",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return _import_module(".metrics", __name__)
    if name in _WHERE:
        return getattr(_import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module 'maxmargin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
