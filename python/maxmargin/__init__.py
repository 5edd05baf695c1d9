"""Large-margin ranking, comparison and classification, with a certificate of how close to the optimum the result is.

The estimators follow scikit-learn: :class:`SVMClassifier`, :class:`SVMOrdinal`, :class:`SVMRanker`,
:class:`SVMComparator`, :class:`MultilabelSVM`, :class:`SequenceSVM`, :class:`TreeSVM`, :class:`PAClassifier`, :class:`PARanker` and :class:`PAComparator`. :func:`load` reads the file formats of the command into a :class:`Dataset`. A :class:`Model` is a
trained model, which can be saved, verified and used by the command. :mod:`maxmargin.metrics` holds metrics, and
:func:`tune` chooses settings by cross-validation. scikit-learn is imported when an estimator is first used.

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
    from .clicks import PropensityEstimate, estimate_propensity
    from .comparator import SVMComparator
    from .multilabel import MultilabelSVM
    from .ordinal import SVMOrdinal
    from .pa_classifier import PAClassifier
    from .pa_ranker import PARanker
    from .passive_aggressive import PAComparator
    from .ranker import SVMRanker
    from .reading import load
    from .sequence import SequenceSVM
    from .structured import Oracle, StructuredSVM, check_oracle
    from .tree import TreeSVM
    from .tuning import Tuned, tune

#: The module of each name, so that importing the package imports neither numpy nor scikit-learn.
_WHERE = {
    "MultilabelSVM": "multilabel",
    "Oracle": "structured",
    "PAClassifier": "pa_classifier",
    "PAComparator": "passive_aggressive",
    "PARanker": "pa_ranker",
    "SVMClassifier": "classifier",
    "SequenceSVM": "sequence",
    "SVMComparator": "comparator",
    "SVMOrdinal": "ordinal",
    "SVMRanker": "ranker",
    "StructuredSVM": "structured",
    "TreeSVM": "tree",
    "Tuned": "tuning",
    "check_oracle": "structured",
    "PropensityEstimate": "clicks",
    "estimate_propensity": "clicks",
    "load": "reading",
    "tune": "tuning",
}

__all__ = [
    "Dataset",
    "MaxmarginError",
    "Model",
    "MultilabelSVM",
    "Oracle",
    "PAClassifier",
    "PAComparator",
    "PARanker",
    "Progress",
    "PropensityEstimate",
    "SVMClassifier",
    "SVMComparator",
    "SVMOrdinal",
    "SVMRanker",
    "SequenceSVM",
    "StructuredSVM",
    "TreeSVM",
    "Tried",
    "Tuned",
    "__version__",
    "check_oracle",
    "estimate_propensity",
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
