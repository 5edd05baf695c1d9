"""Sequences: a tag for each row, and neighbouring tags that depend on each other."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, column_or_1d

from . import _core, arrays
from .classifier import are_doubles, classes_of, spelled
from .estimator import Callback, MarginEstimator, Reals, one_of, whole_or_not_at_all


def is_list_of_sequences(X: Any) -> bool:
    """Whether X is a list whose elements are sequences of rows, and not rows."""
    if not isinstance(X, list | tuple) or not X:
        return False
    first = X[0]
    return hasattr(first, "tocsr") or np.ndim(first) == 2


def stacked(parts: Sequence[Any]) -> Any:
    """The rows of all sequences, one sequence after the other."""
    if not any(hasattr(part, "tocsr") for part in parts):
        return np.concatenate([np.asarray(part) for part in parts])
    from scipy.sparse import vstack

    return vstack(parts, format="csr")


class SequenceSVM(MarginEstimator):
    """Large-margin sequence tagging: predicts the tags of all rows of a sequence together.

    A row has a score for each tag, made of its features. A sequence of tags also has the weights of its transitions, of
    its first and of its last tag. The predicted sequence has the largest sum, found by the algorithm of Viterbi.

    Rows are given with `groups`, the sequence of each row, or as a list with the rows of each sequence. The rows of a
    sequence are in order.

    Parameters
    ----------
    C : float, default=1.0
        The weight of the sum of losses over sequences.
    loss_scale : {"token", "length"}, default="token"
        The loss of a sequence: the number of wrong tags, or their share.
    scale, solver, tol, max_iter, random_state, n_jobs, verbose, callback
        See :class:`SVMClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_tags,)
        The tags in order.
    coef_ : array of shape (n_tags, n_features)
        Weights of the features.
    intercept_, start_, end_ : arrays of shape (n_tags,)
        The bias of each tag, and its weight as the first and as the last one.
    transition_ : array of shape (n_tags, n_tags)
        The weight of one tag (row) before another (column).
    objective_, lower_bound_, gap_, n_iter_, converged_, model_
        See :class:`SVMClassifier`.

    Examples
    --------
    A tag that the features do not tell: every second row of a sequence.

    >>> import numpy as np
    >>> from maxmargin import SequenceSVM
    >>> X = [np.ones((3, 1)), np.ones((4, 1)), np.ones((2, 1))]
    >>> y = [["odd", "even", "odd"], ["odd", "even", "odd", "even"], ["odd", "even"]]
    >>> tagger = SequenceSVM(C=10).fit(X, y)
    >>> [tags.tolist() for tags in tagger.predict([np.ones((5, 1))])]
    [['odd', 'even', 'odd', 'even', 'odd']]
    >>> tagger.score(X, y)
    1.0
    """

    _task = "sequence"
    loss = "hinge"

    loss_scale: str

    classes_: npt.NDArray[Any]
    intercept_: Reals
    start_: Reals
    end_: Reals
    transition_: Reals

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss_scale: str = "token",
        scale: str = "none",
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = -1,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self._store(locals())

    @whole_or_not_at_all
    def fit(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to sequences of rows and their tags.

        Parameters
        ----------
        X : array-like, sparse matrix, table, Dataset, or a list of arrays or sparse matrices
            The rows of all sequences, or a list with the rows of each.
        y : array-like of shape (n_rows,), or a list of lists, optional
            Tag of each row. Omit it if X is a Dataset.
        groups : array-like of shape (n_rows,) or str, optional
            Sequence of each row, of any type, or the name of a column of X. Needed unless X is a list of sequences.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row. All rows of a sequence have the same.

        Returns
        -------
        self
        """
        return self._train(self._dataset(X, y, groups, sample_weight))

    def _dataset(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> _core.Dataset:
        if isinstance(X, _core.Dataset):
            if y is not None or groups is not None or sample_weight is not None:
                raise TypeError("a Dataset holds its own y, groups and sample_weight: leave them out")
            if X.targets is None:
                raise ValueError("the Dataset holds no tags")
            self._take(np.unique(np.asarray(X.targets)))
            return self._with_its_names(X)
        self._needs_y(y)
        if is_list_of_sequences(X):
            y = self._flat(X, y)
        X, groups = self._rows(X, groups, reset=True)
        y = column_or_1d(y, warn=True)
        if len(y) != X.shape[0]:
            raise ValueError(f"y has {len(y)} tags, and X has {X.shape[0]} rows: inconsistent numbers of samples")
        try:
            self._take(classes_of(y))
        except TypeError as error:
            raise TypeError(f"y holds values that cannot be compared with each other: {error}") from error
        if len(self.classes_) < 2:
            raise ValueError(f"y holds only one tag, {self.classes_[0]!r}: two are needed")
        weights = arrays.weights("sample_weight", sample_weight, X.shape[0])
        data = self._named(arrays.dataset(X))
        if are_doubles(self.classes_):
            data = data.with_targets(np.require(y, dtype=np.float64, requirements=["C", "A"]))
        else:
            codes = self._place[np.searchsorted(self.classes_, y)].astype(np.uint32)
            data = data.with_labels(codes, sorted(self._names, key=str.encode))
        data = data if weights is None else data.with_weights(weights)
        return data.with_groups(*groups)

    def _take(self, classes: Any) -> None:
        """Adopts the tags, and says how the core names and orders them: numbers by value, words by their bytes."""
        self.classes_, self._names = classes, spelled(classes)
        order = list(range(len(classes)))
        if not are_doubles(classes):
            order.sort(key=lambda position: self._names[position].encode())
        self._place = np.argsort(order)

    @staticmethod
    def _flat(X: Sequence[Any], y: Any) -> Any:
        """The tags of all sequences."""
        if len(y) != len(X):
            raise ValueError(f"y has {len(y)} sequences, and X has {len(X)}: inconsistent numbers of samples")
        for number, (rows, tags) in enumerate(zip(X, y, strict=True)):
            length = rows.shape[0] if hasattr(rows, "shape") else len(rows)
            if length != len(tags):
                raise ValueError(f"sequence {number} has {length} rows and {len(tags)} tags")
        return np.concatenate([np.asarray(tags) for tags in y])

    def _rows(self, X: Any, groups: Any, *, reset: bool) -> tuple[Any, tuple[npt.NDArray[np.uint32], list[str]]]:
        """Checked features, and the sequence of each row."""
        if is_list_of_sequences(X):
            if groups is not None:
                raise TypeError("X is a list of sequences, which needs no groups: leave them out")
            lengths = [part.shape[0] if hasattr(part, "shape") else len(part) for part in X]
            if 0 in lengths:
                raise ValueError(f"sequence {lengths.index(0)} has no rows")
            groups = np.repeat(np.arange(len(X)), lengths)
            X = stacked(X)
        elif groups is None:
            raise ValueError("groups is needed: the sequence of each row; or give a list with the rows of each sequence")
        elif isinstance(groups, str):
            X, groups = arrays.without_column(X, groups, "groups")
        X = self._features(X, reset=reset)
        return X, arrays.codes("groups", groups, X.shape[0])

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        settings = super()._settings(data)
        settings["loss-scale"] = one_of("loss_scale", self.loss_scale, ("token", "length"))
        return settings

    def _adopt(self, model: _core.Model, data: _core.Dataset) -> Self:
        super()._adopt(model, data)
        place, count = self._place, len(self.classes_)
        shared = model.shared
        if shared is None:
            raise ValueError("the model predicts no tags")
        self.coef_ = np.atleast_2d(self.coef_)[place]
        self.intercept_, self.start_, self.end_ = shared[: 3 * count].reshape(3, count)[:, place]
        self.transition_ = shared[3 * count :].reshape(count, count)[np.ix_(place, place)]
        return self

    def predict(self, X: Any, groups: Any = None) -> Any:
        """Predicted tag of each row; a list of arrays if X is a list of sequences.

        Parameters
        ----------
        X : array-like, sparse matrix, table, Dataset, or a list of arrays or sparse matrices
            The rows of all sequences, or a list with the rows of each.
        groups : array-like of shape (n_rows,) or str, optional
            Sequence of each row. Needed unless X is a list of sequences or a Dataset.
        """
        check_is_fitted(self, "model_")
        if isinstance(X, _core.Dataset):
            if groups is not None:
                raise TypeError("a Dataset holds its own groups: leave them out")
            data, lengths = X, None
        else:
            lengths = [np.shape(part)[0] for part in X] if is_list_of_sequences(X) else None
            rows, keys = self._rows(X, groups, reset=False)
            data = arrays.dataset(rows).with_groups(*keys)
        codes = self.model_.tags(data, self._threads())
        predicted = self.classes_[np.argsort(self._place)[codes]]
        return predicted if lengths is None else np.split(predicted, np.cumsum(lengths)[:-1])

    def score(self, X: Any, y: Any = None, groups: Any = None) -> float:
        """Share of rows whose tag is predicted correctly. A Dataset brings its own tags."""
        predicted = self.predict(X, groups)
        if isinstance(X, _core.Dataset):
            if y is not None:
                raise TypeError("a Dataset holds its own y: leave it out")
            y = np.asarray(X.targets)
        elif isinstance(predicted, list):
            y, predicted = self._flat(X, y), np.concatenate(predicted)
        self._needs_y(y)
        return float(np.mean(np.asarray(y) == predicted))
