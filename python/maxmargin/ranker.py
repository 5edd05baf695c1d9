"""Ranking within queries."""

import json
import warnings
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from . import _core, arrays
from .clicks import curve_of, read_log, words
from .estimator import (
    Callback,
    MarginEstimator,
    Reals,
    frames_of_the_package,
    measured,
    one_of,
    whole_or_not_at_all,
)
from .metrics import ndcg_score


def grades(y: Any) -> Any:
    """One number per row."""
    try:
        return column_or_1d(y, warn=True, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if str(error).startswith("y "):
            raise
        raise type(error)(f"y must be numbers: {error}") from error


def in_queries(data: _core.Dataset, qid: Any) -> _core.Dataset:
    """The same data with the query of each row. Without queries, all rows form one query."""
    rows = len(data)
    keys, names = (np.zeros(rows, dtype=np.uint32), ["0"]) if qid is None else arrays.codes("qid", qid, rows)
    return data.with_groups(keys, names)


class SVMRanker(MarginEstimator):
    """Large-margin ranker. It learns from all pairs of rows in a query whose grades differ (RankSVM), or it optimises a
    measure of the whole order of a query (SVM-MAP and others).

    The pairs are never listed: n rows cost O(n log n). `predict` returns scores; higher is better. Compare scores only
    within a query. C-ordered arrays and sparse rows with 32-bit indices are shared and not copied if the rows of each
    query are next to each other. They must not be written to during `fit`. With `sample_weight`, the weight of a pair
    is the product of the weights of its rows.

    Parameters
    ----------
    C : float, default=1.0
        The weight of the sum of losses over pairs.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The cost of a violated margin.
    kernel, gamma, degree, coef0, scale, solver, tol, polish, max_iter, cache_size, random_state, n_jobs, \
        verbose, callback
        See :class:`SVMClassifier`. `scale` also accepts "min-max-per-query".
    pair_weight : {"equal", "per-query", "grade-gap"}, default="equal"
        Weight of each pair: equal, equal in sum for each query, or the difference of the grades.
    optimize : str or None, default=None
        Instead of pairs, the measure of a query's order to optimise: "map", "ndcg", "ndcg@K", "auc", "p@K", "mrr" or
        "mrr@K". Rows of grade 1 or more are relevant, and with ":mslr" behind the name those of grade 2 or more. The
        loss is then the hinge, whatever `loss` says, and all rows of a query have the same weight. `C` is the weight of
        one query.
    order_score : {"mean", "sum"}, default="mean"
        With `optimize`: whether the score of an order is the mean or the sum of the differences of scores over pairs of
        a relevant row and another one.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the features. Only for linear models.
    objective_, lower_bound_, gap_, n_iter_, converged_, model_
        See :class:`SVMClassifier`.

    Examples
    --------
    >>> from maxmargin import SVMRanker
    >>> X, grades, qid = [[3.0], [1.0], [2.0], [1.0], [4.0]], [2, 0, 1, 0, 1], ["a", "a", "a", "b", "b"]
    >>> ranker = SVMRanker().fit(X, grades, qid=qid)
    >>> bool(ranker.coef_[0] > 0)
    True
    >>> ranker.score(X, grades, qid=qid)
    1.0
    >>> by_order = SVMRanker(optimize="map").fit(X, grades, qid=qid)
    >>> bool(by_order.coef_[0] > 0), by_order.gap_ <= 1e-3
    (True, True)
    """

    _task = "rank"

    pair_weight: str
    optimize: str | None
    order_score: str
    _qid_column: str | None

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        kernel: str = "linear",
        gamma: str | float | None = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        pair_weight: str = "equal",
        optimize: str | None = None,
        order_score: str = "mean",
        scale: str = "none",
        solver: str = "auto",
        tol: float = 1e-3,
        polish: bool = False,
        max_iter: int | None = None,
        cache_size: float = 200,
        random_state: Any = None,
        n_jobs: int | None = -1,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self._store(locals())

    @whole_or_not_at_all
    def fit(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows and their grades.

        Parameters
        ----------
        X : array-like, sparse matrix, table or Dataset
            The training rows.
        y : array-like of shape (n_rows,), optional
            Grade of each row; higher is better. Omit it if X is a Dataset.
        qid : array-like of shape (n_rows,) or str, optional
            Query of each row, of any type and in any order, or the name of a column of X. Without it, all rows form one
            query.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        self
        """
        data = self._dataset(X, y, qid, sample_weight)
        return self._train(data)

    @whole_or_not_at_all
    def fit_clicks(
        self,
        log: Any,
        features: Any,
        *,
        qid: Any = None,
        items: Any = None,
        propensity: Any = None,
        clip: float | None = None,
        against: str = "shown",
        preferences: str | None = None,
        keep_order: float = 0.0,
    ) -> Self:
        """Fit the model to clicks, without learning that higher positions are clicked more often.

        Parameters
        ----------
        log : path, list of paths, mapping or table
            Columns query, session, item, position, clicked and optionally propensity: a row for each result that was shown.
        features : array-like, sparse matrix or table
            A row for each query and item, or for each item.
        qid : array-like of shape (n_rows,) or str, optional
            Query of each row, or the name of a column. Without it, a row is for an item whatever the query.
        items : array-like of shape (n_rows,) or str, optional
            Item of each row, or the name of a column. Without it, an item is the number of its row, from 0.
        propensity : {"log", "power:ETA", "estimate", "estimate:METHOD"}, numbers or PropensityEstimate, optional
            How likely each position is looked at. Without it, the log's own column if it has one, else "power:1".
        clip : float, optional
            Raise lower propensities to this. Fewer clicks decide, but what is shown low is learned as less relevant.
        against : {"shown", "candidates"}, default="shown"
            Compare a clicked result with the list that was shown, or with all rows of its query.
        preferences : str, optional
            Learn from preferences by a rule instead: "skip-above", "last-click", "earlier-click", "skip-previous",
            "no-click-next" or "every-unclicked".
        keep_order : float, default=0.0
            With `preferences`: prefer each result to the next one shown, by this weight.

        Returns
        -------
        self

        Examples
        --------
        >>> from maxmargin import SVMRanker
        >>> log = {"query": ["a"] * 4, "session": [1, 1, 2, 2], "item": [0, 1, 0, 1], "position": [1, 2, 1, 2],
        ...        "clicked": [1, 0, 0, 1]}
        >>> ranker = SVMRanker().fit_clicks(log, [[1.0, 0.0], [0.0, 1.0]], propensity="power:1")
        >>> scores = ranker.predict([[1.0, 0.0], [0.0, 1.0]])
        >>> bool(scores[1] > scores[0])
        True
        """
        read = read_log(log)
        if isinstance(items, str):
            features, items = arrays.without_column(features, items, "items")
        self._qid_column = None
        if isinstance(qid, str):
            self._qid_column = qid
            features, qid = arrays.without_column(features, qid, "qid")
        self._has_queries = qid is not None
        X = self._features(features, reset=True, least=2)
        rows = X.shape[0]
        names = words(np.arange(rows) if items is None else arrays.vector("items", items, rows))
        data = self._named(arrays.dataset(X))
        if qid is not None:
            data = in_queries(data, np.asarray(words(qid)))
        if preferences is not None:
            if propensity is not None or clip is not None or against != "shown":
                raise ValueError("preferences need no propensity, clip or against: leave them out")
            return self._train(read.pairs(data, names, preferences, float(keep_order)))
        if keep_order != 0.0:
            raise ValueError("keep_order is for preferences")
        curve = curve_of(read, propensity, data, names)
        lists = read.lists(data, names, curve, None if clip is None else float(clip), against)
        return self._train(lists, **{"targets-are": "clicks"})

    def _dataset(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> _core.Dataset:
        self._qid_column = None
        self._has_queries = qid is not None
        if isinstance(X, _core.Dataset):
            if y is not None or qid is not None or sample_weight is not None:
                raise TypeError("a Dataset holds its own y, qid and sample_weight: leave them out")
            if X.targets is None and X.n_pairs is None:
                raise ValueError("the Dataset holds no grades")
            if len(X) == 0:
                raise ValueError("the Dataset holds no rows")
            self._has_queries = X.n_queries is not None
            if not self._has_queries and X.n_pairs is None:
                X = in_queries(X, None)
            return self._with_its_names(X)
        self._needs_y(y)
        if isinstance(qid, str):
            self._qid_column = qid
            X, qid = arrays.without_column(X, qid, "qid")
        X = self._features(X, reset=True, least=2)
        rows = X.shape[0]
        y = grades(y)
        check_consistent_length(X, y)
        if not np.isfinite(y).all():
            raise ValueError("y contains NaN or infinity")
        weights = arrays.weights("sample_weight", sample_weight, rows)
        data = self._named(arrays.dataset(X)).with_targets(np.require(y, requirements=["C", "A"]))
        if weights is not None:
            data = data.with_weights(weights)
        return in_queries(data, qid)

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        settings = super()._settings(data)
        settings["pair-weight"] = one_of("pair_weight", self.pair_weight, ("equal", "per-query", "grade-gap"))
        settings["order-score"] = one_of("order_score", self.order_score, ("mean", "sum"))
        if measured("optimize", self.optimize):
            settings["optimize"] = self.optimize
            # The measure has the hinge.
            settings.pop("loss", None)
        return settings

    def predict(self, X: Any, qid: Any = None) -> Reals:
        """Score of each row; higher is better.

        Parameters
        ----------
        X : array-like, sparse matrix, table or Dataset
            The rows to score.
        qid : array-like of shape (n_rows,) or str, optional
            Query of each row. Only needed for ``scale="min-max-per-query"``, which scales the rows of a query together.
        """
        check_is_fitted(self, "model_")
        if isinstance(X, _core.Dataset) and qid is not None:
            raise TypeError("a Dataset holds its own qid: leave it out")
        X, qid = self._split(X, qid)
        given = qid is not None or (isinstance(X, _core.Dataset) and X.n_queries is not None)
        if json.loads(self.model_.settings)["scale"] != "min-max-per-query":
            return self._scores(X)
        if not given and getattr(self, "_has_queries", True):
            raise ValueError("qid is needed: scale='min-max-per-query' scales the rows of each query together")
        data = X if isinstance(X, _core.Dataset) else arrays.dataset(self._features(X, reset=False))
        return self._scores(data if isinstance(X, _core.Dataset) and given else in_queries(data, qid))

    def _split(self, X: Any, qid: Any) -> tuple[Any, Any]:
        """The features, and the query of each row if it is given, possibly as a column of X."""
        if isinstance(qid, str):
            return arrays.without_column(X, qid, "qid")
        column = getattr(self, "_qid_column", None)
        if column is not None and arrays.is_table(X) and column in arrays.column_names(X):
            X, found = arrays.without_column(X, column, "qid")
            return X, found if qid is None else qid
        return X, qid

    def score(self, X: Any, y: Any = None, qid: Any = None, sample_weight: None = None) -> float:
        """Mean NDCG over the queries. `sample_weight` is not used; it exists for pipelines, which pass None."""
        if sample_weight is not None:
            raise ValueError("sample_weight is not used in the NDCG of queries: leave it out")
        if isinstance(X, _core.Dataset):
            if y is not None or qid is not None:
                raise TypeError("a Dataset holds its own y and qid: leave them out")
            y, qid, scores = X.targets, X.qid, self.predict(X)
        else:
            X, qid = self._split(X, qid)
            scores = self.predict(X, qid)
        if qid is None and getattr(self, "_has_queries", False):
            warnings.warn(
                "score was given no qid although fit was: all rows are scored as one query. Pass qid, or in a search over "
                "parameters set_score_request(qid=True)",
                UserWarning,
                stacklevel=frames_of_the_package(),
            )
        return ndcg_score(y, scores, qid=qid)

    def verify(self, *data: Any, **more: Any) -> tuple[float, float | None, float | None]:
        """Recompute objective, lower bound and gap from the training data. Raises an error if they do not hold."""
        column = getattr(self, "_qid_column", None)
        if column is not None and 1 <= len(data) < 3 and arrays.is_table(data[0]) and "qid" not in more:
            more = {**more, "qid": column}
        return super().verify(*data, **more)
