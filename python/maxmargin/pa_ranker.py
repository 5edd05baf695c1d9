"""Passive-aggressive ranking: one pair of rows after the other."""

import json
import sys
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length

from . import _core, arrays
from .estimator import number, one_of, switch, whole_or_not_at_all
from .ranker import SVMRanker, grades


class PARanker(SVMRanker):
    """Passive-aggressive ranker: each step is the smallest change of the weights that puts a pair in the right order.

    A pair is a row and another one of the same query with a lower grade; their scores are to differ by 1. `fit` makes
    several passes over the pairs, `partial_fit` one. `predict` returns scores; higher is better.

    Parameters
    ----------
    C : float, default=0.1
        The most that one pair may move the weights.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        "hinge" is PA-I, which limits each step to C. "squared_hinge" is PA-II, which limits steps smoothly.
    max_iter : int, default=20
        The most passes of `fit`.
    tol : float or None, default=1e-3
        `fit` ends when the mean loss of a pass was not below the best one by `tol` for `n_iter_no_change` passes. With
        None it makes `max_iter` passes.
    n_iter_no_change : int, default=5
        How many passes without improvement end `fit`.
    shuffle : bool, default=True
        Whether to shuffle the pairs of all queries before each pass.
    max_pairs : int or None, default=None
        At most this many pairs of a query, drawn anew in each pass. None takes all of them.
    warm_start : bool, default=False
        Whether `fit` continues from the weights of the last one.
    random_state : int, RandomState or None, default=None
        Seed of the shuffles; None means 0.
    n_jobs : int or None, default=None
        Number of threads for predictions. Steps are made one after the other.
    verbose : int, default=0
        Whether to print each pass to standard error.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    n_iter_ : int
        Passes of the last fit.
    n_pairs_ : int
        Pairs learned from so far.
    progressive_error_ : float
        The share of pairs in the wrong order before they were learned from.
    model_ : Model

    Examples
    --------
    >>> from maxmargin import PARanker
    >>> X, grades, qid = [[3.0], [1.0], [2.0], [1.0], [4.0]], [2, 0, 1, 0, 1], ["a", "a", "a", "b", "b"]
    >>> ranker = PARanker().fit(X, grades, qid=qid)
    >>> ranker.score(X, grades, qid=qid)
    1.0
    """

    _learns_from_a_stream = True

    n_iter_no_change: int
    shuffle: bool
    max_pairs: int | None
    warm_start: bool

    n_pairs_: int
    progressive_error_: float | None

    def __init__(
        self,
        C: float = 0.1,
        *,
        loss: str = "hinge",
        max_iter: int = 20,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        max_pairs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    @whole_or_not_at_all
    def fit(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows and their grades, in several passes over their pairs.

        Parameters
        ----------
        X : array-like, sparse matrix or table
            The training rows.
        y : array-like of shape (n_rows,)
            Grade of each row; higher is better.
        qid : array-like of shape (n_rows,) or str, optional
            Query of each row, of any type and in any order, or the name of a column of X. Without it, all rows form one
            query.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row. The weight of a pair is the product of the weights of its rows.

        Returns
        -------
        self
        """
        if not switch("warm_start", self.warm_start) or not hasattr(self, "model_"):
            self.__dict__.pop("model_", None)
        self.__dict__.pop("_learner", None)
        passes = number("max_iter", self.max_iter, at_least=1, whole=True)
        self._pass_over(*self._rows(X, y, qid, sample_weight, reset=True), passes)
        return self

    @whole_or_not_at_all
    def partial_fit(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> Self:
        """Continue training on the pairs of these rows, in one pass. The arguments are those of `fit`."""
        self._pass_over(*self._rows(X, y, qid, sample_weight, reset=not hasattr(self, "model_")), 1)
        return self

    def _rows(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[_core.Dataset, npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64], Any]:
        """The features, and for each pair its better row, its worse row, its query and its weight."""
        if isinstance(X, _core.Dataset):
            raise TypeError("PARanker takes arrays and tables: give X, y and qid")
        self._needs_y(y)
        self._qid_column, self._has_queries = (qid if isinstance(qid, str) else None), qid is not None
        if isinstance(qid, str):
            X, qid = arrays.without_column(X, qid, "qid")
        X = self._features(X, reset=reset, least=2)
        y = grades(y)
        check_consistent_length(X, y)
        if not np.isfinite(y).all():
            raise ValueError("y contains NaN or infinity")
        weights = arrays.weights("sample_weight", sample_weight, X.shape[0])
        keys = np.zeros(X.shape[0], dtype=np.uint32) if qid is None else arrays.codes("qid", qid, X.shape[0])[0]
        better, worse, queries = [], [], []
        for query in np.unique(keys):
            rows = np.flatnonzero(keys == query)
            high, low = np.nonzero(y[rows][:, None] > y[rows][None, :])
            better.append(rows[high])
            worse.append(rows[low])
            queries.append(np.full(len(high), query, dtype=np.int64))
        up, down = np.concatenate(better).astype(np.uint32), np.concatenate(worse).astype(np.uint32)
        if not len(up):
            raise ValueError("no query has rows with different grades, so that there is nothing to learn")
        of_pairs = None if weights is None else weights[up] * weights[down]
        return self._named(arrays.dataset(X)), up, down, np.concatenate(queries), of_pairs

    def _pass_over(
        self,
        data: _core.Dataset,
        better: npt.NDArray[np.uint32],
        worse: npt.NDArray[np.uint32],
        queries: npt.NDArray[np.int64],
        weights: Any,
        passes: int,
    ) -> None:
        tol = None if self.tol is None else number("tol", self.tol, at_least=0)
        patience = number("n_iter_no_change", self.n_iter_no_change, at_least=1, whole=True)
        most = None if self.max_pairs is None else number("max_pairs", self.max_pairs, at_least=1, whole=True)
        verbose, shuffle = bool(number("verbose", int(self.verbose), at_least=0, whole=True)), self.shuffle
        switch("shuffle", shuffle)
        random = np.random.RandomState(self._seed() % 2**32)
        settings = json.dumps(
            {
                "task": self._task,
                "solver": "passive-aggressive",
                "loss": one_of("loss", self.loss, ("hinge", "squared_hinge")),
                "c": number("C", self.C, above=0),
            }
        )
        known, learner = getattr(self, "_learner", None) or (None, None)
        if learner is None or known != settings:
            learner = _core.RowLearner(settings, getattr(self, "model_", None))
        before, best, waited = learner.totals[0], np.inf, 0
        for done in range(1, passes + 1):
            order = random.permutation(len(better)) if shuffle or most is not None else np.arange(len(better))
            if most is not None:
                order = self._drawn(order, queries, most, shuffle)
            own = None if weights is None else np.ascontiguousarray(weights[order])
            outcomes = np.full(len(order), -1, dtype=np.int8)
            learner.learn(data.with_pairs(better[order], worse[order], outcomes, own))
            total = learner.totals[0]
            cost, before = (total - before) / len(order), total
            if verbose:
                print(f"{type(self).__name__}: pass {done}  loss {cost:.6g}", file=sys.stderr)
            waited = 0 if tol is None or cost <= best - tol else waited + 1
            best = min(best, cost)
            if waited >= patience:
                break
        names = getattr(self, "feature_names_in_", None)
        model = learner.model(None if names is None else [str(name) for name in names])
        self._learner, self.model_, self.n_features_in_ = (settings, learner), model, data.shape[1]
        assert model.weights is not None, "a linear model"
        self.coef_ = model.weights
        self.n_iter_, self.n_pairs_ = done, learner.seen
        self.progressive_error_ = learner.progress["pair-error"]

    @staticmethod
    def _drawn(
        order: npt.NDArray[np.intp], queries: npt.NDArray[np.int64], most: int, shuffle: bool
    ) -> npt.NDArray[np.intp]:
        """Of the pairs in this order, the first ones of each query."""
        grouped = order[np.argsort(queries[order], kind="stable")]
        starts = np.flatnonzero(np.r_[True, np.diff(queries[grouped]) != 0])
        place = np.arange(len(grouped)) - np.repeat(starts, np.diff(np.r_[starts, len(grouped)]))
        kept = np.zeros(len(queries), dtype=bool)
        kept[grouped[place < most]] = True
        return order[kept[order]] if shuffle else np.flatnonzero(kept)

    def __getstate__(self) -> dict[str, Any]:
        # The model holds the complete state of the learner.
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_learner", None)
        return state
