"""Comparisons from a stream."""

import json
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from . import _core
from .comparator import PairEstimator
from .estimator import Callback, number, one_of, whole_or_not_at_all


class PAComparator(PairEstimator):
    """Passive-aggressive comparator: learns scores and the threshold for ties from one pair after the other.

    Each step makes the smallest change that corrects the current pair. `fit` makes one pass in the given order;
    `partial_fit` continues exactly where training stopped. It proves no bound.

    Parameters
    ----------
    C : float, default=0.1
        Limit on the size of a step.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        "hinge" is PA-I, which limits each step to C. "squared_hinge" is PA-II, which limits steps smoothly.
    kappa : float, default=1.0
        How easily steps move the threshold. With 0 it stays fixed.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    threshold_ : float
    n_pairs_ : int
        Number of pairs used so far.
    progressive_error_, recent_error_ : float
        Progressive validation error: the share of pairs predicted wrongly before they were used for training, over all
        pairs and over the most recent ones.
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

    # A stream has neither a number of passes nor a gap.
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
        """Fit the model to these pairs in one pass, in the given order. Discards earlier training."""
        self.__dict__.pop("_learner", None)
        self.__dict__.pop("model_", None)
        return self._learn(X_left, X_right, y, sample_weight, reset=True)

    @whole_or_not_at_all
    def partial_fit(self, X_left: Any, X_right: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Continue training on these pairs, in the given order."""
        return self._learn(X_left, X_right, y, sample_weight, reset=not hasattr(self, "model_"))

    def _learn(self, X_left: Any, X_right: Any, y: Any, sample_weight: Any, *, reset: bool) -> Self:
        data = self._dataset(X_left, X_right, y, sample_weight, reset=reset)
        settings = json.dumps(self._settings(data))
        known, learner = getattr(self, "_learner", None) or (None, None)
        # Parameters may have changed since the last call.
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
        """Confusion matrix of progressive validation: true outcomes (rows: left, tie, right) by predicted outcomes."""
        check_is_fitted(self, "model_")
        return self.model_.confusion

    def __getstate__(self) -> dict[str, Any]:
        # The model holds the complete state of the learner.
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_learner", None)
        return state
