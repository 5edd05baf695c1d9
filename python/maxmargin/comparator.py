"""Comparisons with ties."""

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from . import _core, arrays
from .estimator import Callback, MarginEstimator, Reals, frames_of_the_package, one_of, whole_or_not_at_all

NO_PAIRS = "the Dataset holds no pairs: load it with task='compare'"


#: Number of values that are copied at a time.
PIECE = 1 << 20


def interleaved(left: Any, right: Any) -> Any:
    """Rows of both sides, left and right in turn, as the command reads tables with two items per row."""
    if left.shape != right.shape:
        raise ValueError(f"X_left has the shape {left.shape}, and X_right {right.shape}: both must be the same")
    count = left.shape[0]
    if hasattr(left, "indptr"):
        from scipy import sparse

        order = np.arange(2 * count).reshape(2, count).T.ravel()
        return sparse.vstack([left, right], format="csr")[order]
    both = np.empty((2 * count, left.shape[1]), dtype=np.result_type(left, right))
    # Copied in pieces, because a single large copy cannot be interrupted.
    piece = max(1, PIECE // max(1, left.shape[1]))
    for start in range(0, count, piece):
        rows = slice(start, start + piece)
        both[2 * start : 2 * (start + piece) : 2], both[2 * start + 1 : 2 * (start + piece) : 2] = (
            left[rows],
            right[rows],
        )
    return both


class PairEstimator(MarginEstimator):
    """The base of all comparators."""

    _task = "compare"

    threshold_: float | None

    def _dataset(
        self, X_left: Any, X_right: Any = None, y: Any = None, sample_weight: Any = None, *, reset: bool = True
    ) -> _core.Dataset:
        if isinstance(X_left, _core.Dataset):
            if X_right is not None or y is not None or sample_weight is not None:
                raise TypeError("a Dataset holds both sides, y and sample_weight: leave them out")
            if X_left.n_pairs is None:
                raise ValueError(NO_PAIRS)
            return self._with_its_names(X_left) if reset else X_left
        if X_right is None or y is None:
            items = ", or items= and pairs= as fit_items takes them" if hasattr(self, "fit_items") else ""
            raise ValueError(f"{type(self).__name__} requires X_left, X_right and y{items}")
        return self._pairs(X_left, X_right, y, sample_weight, reset=reset)

    def _pairs(self, X_left: Any, X_right: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> _core.Dataset:
        left = self._features(X_left, reset=reset, name="X_left")
        right = self._features(X_right, reset=False, name="X_right")
        if hasattr(left, "indptr") != hasattr(right, "indptr"):
            raise TypeError("X_left and X_right must both be dense or both be sparse")
        X, count = interleaved(left, right), left.shape[0]
        signs = arrays.outcomes("y", y, count)
        weights = arrays.weights("sample_weight", sample_weight, count)
        places = np.arange(2 * count, dtype=np.uint32)
        data = self._named(arrays.dataset(X))
        sides = (np.ascontiguousarray(places[0::2]), np.ascontiguousarray(places[1::2]))
        return data.with_pairs(*sides, signs, weights)

    def _adopt(self, model: _core.Model, data: _core.Dataset) -> Self:
        super()._adopt(model, data)
        width = model.tie_width
        self.threshold_ = max(width, 0.0) if width is not None else 0.0
        if getattr(self, "method", None) == "compare" and not self.threshold_ > 0:
            warnings.warn(
                f"{type(self).__name__} learned no threshold above zero: it will never predict a tie. Ties are too "
                "few, or outcomes too uncertain, for this loss and C",
                UserWarning,
                stacklevel=frames_of_the_package(),
            )
        return self

    def decision_function(self, X: Any) -> Reals:
        """Score r(x) of each item; higher is better."""
        return self._scores(X)

    def compare(self, X_left: Any, X_right: Any = None) -> npt.NDArray[np.int64]:
        """Predict which item of each pair is better: -1 for the left one, 1 for the right one, 0 for a tie.

        A Dataset brings its own pairs. Swapping the sides only changes the sign.
        """
        if isinstance(X_left, _core.Dataset) and X_right is None:
            check_is_fitted(self, "model_")
            if X_left.n_pairs is None:
                raise ValueError(NO_PAIRS)
            return self.model_.outcomes(X_left).astype(np.int64)
        if X_right is None:
            raise ValueError(f"{type(self).__name__}.compare requires X_left and X_right, or a Dataset of pairs")
        left, right = self._scores(X_left, "X_left"), self._scores(X_right, "X_right")
        if len(left) != len(right):
            raise ValueError(f"X_left has {len(left)} rows, and X_right {len(right)}: both must be the same")
        difference = right - left
        return np.where(np.abs(difference) <= (self.threshold_ or 0.0), 0, np.sign(difference)).astype(np.int64)

    def rank(self, X: Any) -> npt.NDArray[np.int64]:
        """Rank of each item, counted from 1: 1 plus the number of items that are predicted to be better."""
        scores = np.require(self._scores(X), dtype=np.float64, requirements=["C", "A"])
        return _core.ranks(scores, max(self.threshold_ or 0.0, 0.0))

    def score(self, X_left: Any, X_right: Any = None, y: Any = None) -> float:
        """Share of comparisons whose outcome is predicted correctly. A Dataset brings its own outcomes."""
        if isinstance(X_left, _core.Dataset):
            if X_right is not None or y is not None:
                raise TypeError("a Dataset holds both sides and y: leave them out")
            pairs = X_left.pairs
            if pairs is None:
                raise ValueError(NO_PAIRS)
            return float(np.mean(self.compare(X_left) == pairs[2]))
        found = self.compare(X_left, X_right)
        return float(np.mean(found == arrays.outcomes("y", y, len(found))))


class SVMComparator(PairEstimator):
    """Predicts which of two items is better, or that they tie. Scores and the threshold for ties are learned together.

    Parameters
    ----------
    C, loss, kernel, gamma, degree, coef0, scale, solver, tol, polish, max_iter, cache_size, random_state, n_jobs, \
        verbose, callback
        See :class:`SVMClassifier`.
    method : {"compare", "rank", "rank2"}, default="compare"
        How ties are used: "compare" learns a threshold for them, "rank" ignores them, and "rank2" treats each tie as
        two contradictory pairs.

    Attributes
    ----------
    threshold_ : float
        Items whose scores differ by no more than this are predicted to tie. It is 0, and `fit` issues a warning, if no
        positive threshold was learned.
    coef_, dual_coef_, objective_, lower_bound_, gap_, n_iter_, converged_, model_
        See :class:`SVMClassifier`.
    support_ : array of shape (n_support,)
        Positions of the support pairs. Only available if the model has dual variables.

    Examples
    --------
    >>> from maxmargin import SVMComparator
    >>> left, right = [[0.0], [3.0], [1.0], [2.0], [0.0]], [[3.0], [0.0], [1.2], [2.1], [0.1]]
    >>> comparator = SVMComparator(C=10).fit(left, right, ["right", "left", "tie", "tie", "tie"])
    >>> comparator.compare([[0.0], [1.0]], [[2.9], [1.1]]).tolist()
    [1, 0]
    >>> comparator.rank([[3.0], [0.0], [2.9]]).tolist()
    [1, 3, 1]
    """

    method: str

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        method: str = "compare",
        kernel: str = "linear",
        gamma: str | float | None = "scale",
        degree: int = 3,
        coef0: float = 0.0,
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

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        return {**super()._settings(data), "method": one_of("method", self.method, ("compare", "rank", "rank2"))}

    @whole_or_not_at_all
    def fit(self, X_left: Any, X_right: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to pairs of items.

        Parameters
        ----------
        X_left, X_right : array-like, sparse matrix or table
            The two items of each pair, one row per pair. A Dataset of pairs is given as `X_left` alone.
        y : array-like of shape (n_pairs,)
            Outcome of each pair: "left", "tie" or "right", or -1, 0 or 1, where 1 means that the right item is better.
        sample_weight : array-like of shape (n_pairs,), optional
            Weight of each pair.

        Returns
        -------
        self
        """
        data = self._dataset(X_left, X_right, y, sample_weight)
        return self._train(data)

    @whole_or_not_at_all
    def fit_items(self, items: Any, pairs: Any, sample_weight: Any = None) -> Self:
        """Fit the model to pairs that name rows of a table of items.

        Parameters
        ----------
        items : array-like, sparse matrix or table
            One item per row. Pairs name the rows of a pandas table by its index.
        pairs : array-like of shape (n_pairs, 3) or table
            Left item, right item and outcome of each pair. A table has columns with these names, and optionally
            `weight`.
        sample_weight : array-like of shape (n_pairs,), optional
            Weight of each pair.

        Returns
        -------
        self

        Examples
        --------
        >>> from maxmargin import SVMComparator
        >>> items = [[0.0], [1.0], [1.1], [3.0]]
        >>> comparator = SVMComparator(C=10).fit_items(items, [[0, 1, 1], [1, 2, 0], [3, 2, -1]])
        >>> comparator.rank(items).tolist()
        [4, 2, 2, 1]
        """
        return self._train(self._items(items, pairs, sample_weight, reset=True))

    def _dataset(
        self,
        X_left: Any = None,
        X_right: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        reset: bool = True,
        items: Any = None,
        pairs: Any = None,
    ) -> _core.Dataset:
        if items is None and pairs is None:
            return super()._dataset(X_left, X_right, y, sample_weight, reset=reset)
        if items is None or pairs is None or any(side is not None for side in (X_left, X_right, y)):
            raise TypeError("give both items and pairs and nothing else, or X_left, X_right and y")
        return self._items(items, pairs, sample_weight, reset=reset)

    def _items(self, items: Any, pairs: Any, sample_weight: Any, *, reset: bool) -> _core.Dataset:
        ids = getattr(items, "index", None)
        X = self._features(items, reset=reset, name="items")
        left, right, outcome, weight = self._named_pairs(pairs)
        weights = arrays.weights("sample_weight", weight if sample_weight is None else sample_weight, len(left))
        places = (self._places(left, ids, X.shape[0], "left"), self._places(right, ids, X.shape[0], "right"))
        if (places[0] == places[1]).any():
            found = np.flatnonzero(places[0] == places[1])
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            raise ValueError(f"pairs compare an item with itself in row {int(found[0])}{more}: leave such rows out")
        signs = arrays.outcomes("outcome", outcome, len(left))
        return self._named(arrays.dataset(X)).with_pairs(*places, signs, weights)

    @staticmethod
    def _named_pairs(pairs: Any) -> tuple[Any, Any, Any, Any]:
        if arrays.is_table(pairs):
            names = arrays.column_names(pairs)
            missing = [name for name in ("left", "right", "outcome") if name not in names]
            if missing:
                raise ValueError(f"pairs need the columns left, right and outcome, and have {names}")
            weight = np.asarray(pairs["weight"]) if "weight" in names else None
            return np.asarray(pairs["left"]), np.asarray(pairs["right"]), np.asarray(pairs["outcome"]), weight
        table = np.asarray(pairs)
        if table.ndim != 2 or table.shape[1] != 3:
            raise ValueError(f"pairs must have the shape (n, 3), and have {table.shape}")
        return table[:, 0], table[:, 1], table[:, 2], None

    @staticmethod
    def _places(names: Any, ids: Any, rows: int, side: str) -> Any:
        """The row of each item."""
        if ids is not None and callable(getattr(ids, "get_indexer", None)):
            if not ids.is_unique:
                raise ValueError("the index of items holds an id twice")
            found = ids.get_indexer(names)
            unknown = found < 0
        else:
            try:
                found = np.asarray(names).astype(np.int64)
            except (TypeError, ValueError) as error:
                raise ValueError(f"pairs name items on the {side} side that are not row numbers: {error}") from error
            if np.asarray(names).dtype.kind == "f" and (found != np.asarray(names)).any():
                raise ValueError(f"pairs name items on the {side} side that are not row numbers")
            unknown = (found < 0) | (found >= rows)
        if unknown.any():
            name = np.asarray(names)[unknown].tolist()[0]
            raise ValueError(f"pairs name the item {name!r} on the {side} side, which is not in items")
        return np.require(found, dtype=np.uint32, requirements=["C", "A"])

    def intervals(
        self, items: Any, pairs: Any = None, sample_weight: Any = None, *, resamples: int = 200
    ) -> tuple[Reals, Reals, npt.NDArray[np.int64]]:
        """Bootstrap intervals of the scores and ranks of the training items, by training on resampled pairs.

        Parameters
        ----------
        items : array-like, sparse matrix, table or Dataset
            The items given to `fit_items`, or a Dataset.
        pairs : array-like of shape (n_pairs, 3) or table, optional
            The pairs given to `fit_items`. Omit them if `items` is a Dataset.
        sample_weight : array-like of shape (n_pairs,), optional
            Weight of each pair.
        resamples : int
            Number of resamples.

        Returns
        -------
        low, high : arrays of shape (n_items,)
            Ends of the 95 % interval of each score minus the mean of all scores. Pairs do not determine a common
            constant.
        rank : array of shape (n_items,)
            Rank of each item: 1 plus the number of items that are significantly better.

        Examples
        --------
        >>> from maxmargin import SVMComparator
        >>> items, pairs = [[0.0], [1.0], [1.1], [3.0]], [[0, 1, 1], [1, 2, 0], [3, 2, -1], [0, 3, 1]] * 5
        >>> comparator = SVMComparator().fit_items(items, pairs)
        >>> low, high, rank = comparator.intervals(items, pairs, resamples=20)
        >>> bool((low <= high).all()), len(rank)
        (True, 4)
        """
        check_is_fitted(self, "model_")
        if not isinstance(items, _core.Dataset):
            if pairs is None:
                raise ValueError("intervals requires the items and the pairs that were learned from")
            items = self._items(items, pairs, sample_weight, reset=False)
        elif pairs is not None or sample_weight is not None:
            raise TypeError("a Dataset holds its own pairs and sample_weight: leave both out")
        return _core.resampled(self.model_, items, resamples, self._seed(), self._threads())
