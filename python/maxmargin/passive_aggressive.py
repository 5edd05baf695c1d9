"""Comparisons from a stream."""

import json
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from . import _core
from .comparator import PairEstimator
from .estimator import Callback, number, one_of, whole_or_not_at_all


class PAComparator(PairEstimator):
    """Learns scores and the threshold for ties from one pair after the other, moving as little as mends each.

    `fit` makes one pass in the order given; `partial_fit` goes on exactly where it stopped. It proves no bound.

    Parameters
    ----------
    C : float, default=0.1
        How far a step may go.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        PA-I caps each step at C, PA-II makes it smooth.
    kappa : float, default=1.0
        How readily steps move the threshold; 0 for one that stays.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    threshold_ : float
    n_pairs_ : int
        Pairs learned from.
    progressive_error_, recent_error_ : float
        The share of pairs that were foretold wrongly before they were learned from: of all, and of the last ones.
    model_ : Model

    Examples
    --------
    >>> from maxmargin import PAComparator
    >>> comparator = PAComparator()
    >>> for left, right, outcome in [([0.0], [3.0], 1), ([2.0], [0.0], -1), ([1.0], [1.1], 0)]:
    ...     _ = comparator.partial_fit([left], [right], [outcome])
    >>> comparator.n_pairs_
    3
    >>> comparator.compare([[0.0]], [[5.0]]).tolist()
    [1]
    """

    def __init__(self, C: float = 0.1, *, loss: str = "hinge", kappa: float = 1.0) -> None:
        self.C = C
        self.loss = loss
        self.kappa = kappa

    n_pairs_: int
    progressive_error_: float | None
    recent_error_: float | None

    # A stream has neither passes to limit nor a gap to stop at.
    tol = 1e-3
    _learns_from_a_stream = True
    max_iter: int | None = None
    random_state: Any = None
    n_jobs: int | None = 1
    verbose = 0
    callback: Callback | None = None

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        return {
            "task": self._task,
            "solver": "passive-aggressive",
            "loss": one_of("loss", self.loss, ("hinge", "squared_hinge")),
            "c": number("C", self.C, above=0),
            "kappa": number("kappa", self.kappa, at_least=0),
        }

    @whole_or_not_at_all
    def fit(self, X_left: Any, X_right: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Forgets what was learned, and learns from these pairs in one pass, in the order given."""
        self.__dict__.pop("_learner", None)
        self.__dict__.pop("model_", None)
        return self._learn(X_left, X_right, y, sample_weight, reset=True)

    @whole_or_not_at_all
    def partial_fit(self, X_left: Any, X_right: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Goes on learning from these pairs, in the order given."""
        return self._learn(X_left, X_right, y, sample_weight, reset=not hasattr(self, "model_"))

    def _learn(self, X_left: Any, X_right: Any, y: Any, sample_weight: Any, *, reset: bool) -> Self:
        data = self._dataset(X_left, X_right, y, sample_weight, reset=reset)
        settings = json.dumps(self._settings(data))
        known, learner = getattr(self, "_learner", None) or (None, None)
        # Parameters may have been changed since.
        if learner is None or known != settings:
            learner = _core.Learner(settings, getattr(self, "model_", None))
        learner.learn(data)
        names = getattr(self, "feature_names_in_", None)
        model = learner.model(None if names is None else [str(name) for name in names])
        self._learner = (settings, learner)
        self.model_, self.n_features_in_ = model, data.shape[1]
        self.coef_, self.threshold_ = learner.weights, max(model.tie_width or 0.0, 0.0)
        self.n_pairs_, self.n_iter_ = learner.pairs, 1
        self.progressive_error_, self.recent_error_ = learner.errors
        return self

    @property
    def confusion_(self) -> list[list[int]] | None:
        """How often each outcome (row: left, tie, right) was foretold as each (column)."""
        check_is_fitted(self, "model_")
        return self.model_.confusion

    def __getstate__(self) -> dict[str, Any]:
        # The model holds all that the learner does.
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_learner", None)
        return state
