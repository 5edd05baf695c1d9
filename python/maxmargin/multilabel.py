"""Label sets: rows with any number of labels."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from . import _core, arrays
from .classifier import classes_of, spelled
from .estimator import Callback, ClassEstimator, Reals, one_of, whole_or_not_at_all

#: How labels are told apart.
FORMS = ("calibrated", "one-vs-rest")

#: What may hold the labels of one row.
SETS = (set, frozenset, tuple)


def of_sets(y: Any) -> list[Any] | None:
    """The sets of labels of a list of them; None if y is something else."""
    if isinstance(y, list | tuple) or getattr(getattr(y, "dtype", None), "kind", None) == "O":
        rows = list(y)
        if rows and all(isinstance(row, SETS) for row in rows):
            return rows
    return None


def indicator(y: Any) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    """The sets of a 0/1 array, dense or sparse: where those of each row start, and the labels of all rows."""
    if hasattr(y, "tocsr"):
        rows = y.tocsr().copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
        values, starts, codes = rows.data, rows.indptr, rows.indices
    else:
        found = np.asarray(y)
        values = found[found != 0]
        starts = np.concatenate([[0], np.count_nonzero(found, axis=1).cumsum()])
        codes = np.nonzero(found)[1]
    if not (values == 1).all():
        raise ValueError(f"y must hold 0 and 1, one column for each label, and holds {values[values != 1][0]}")
    return starts.astype(np.uint64), codes.astype(np.uint32)


class MultilabelSVM(ClassEstimator):
    """Large-margin classifier for sets of labels: a row has any number of them.

    In the calibrated form, all labels are learned in one problem. Every label has a score, and a calibration score of its
    own lies between the labels of a row and the others. Labels above it are predicted. In the form "one-vs-rest", each
    label is learned on its own.

    Parameters
    ----------
    C : float, default=1.0
        The weight of the sum of losses.
    form : {"calibrated", "one-vs-rest"}, default="calibrated"
        How labels are told apart.
    loss : {"logistic", "hinge", "squared_hinge"}, default="logistic"
        The cost of a row. With "hinge", the worst label of the row and the worst other one count, each with a margin. Where
        labels are uncertain it may learn nothing: then ``learned_nothing_`` is True. "squared_hinge" is for "one-vs-rest".
    intercept : {"penalised", "free", "none"}, default="penalised"
        Whether the constant terms of the scores are penalised like weights, free, or absent. A free one has no optimum
        with the logistic loss if no row has the label, or every row.
    kernel, gamma, degree, coef0, scale, solver, tol, polish, max_iter, cache_size, random_state, n_jobs, \
        verbose, callback
        See :class:`SVMClassifier`. In the calibrated form, kernels go with the hinge.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels: 0, 1, … for a 0/1 array, the names of its columns for a table, or the sorted labels.
    coef_ : array of shape (n_labels, n_features)
        Weights of the features in the scores of `decision_function`. Only for linear models.
    intercept_ : array of shape (n_labels,)
        Constant terms of these scores.
    learned_nothing_ : bool
        Whether it is proven that equal scores for all labels are as good as any, within `tol`.
    objective_, lower_bound_, gap_, n_iter_, converged_, support_, dual_coef_, gamma_, model_
        See :class:`SVMClassifier`.

    Examples
    --------
    >>> from maxmargin import MultilabelSVM
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> model = MultilabelSVM(C=10).fit(X, [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> model.predict([[0.1, 0.9]]).tolist()
    [[0, 1]]
    >>> named = MultilabelSVM(C=10).fit(X, [set(), {"up"}, {"right"}, {"right", "up"}])
    >>> named.classes_.tolist(), named.predict_sets([[0.9, 0.2]])
    (['right', 'up'], [['right']])
    """

    _task = "multilabel"

    form: str
    intercept: str

    intercept_: Reals
    learned_nothing_: bool
    #: The type of y, for predictions; None if rows have one label each.
    _dtype: np.dtype[Any] | None

    def __init__(
        self,
        C: float = 1.0,
        *,
        form: str = "calibrated",
        loss: str = "logistic",
        intercept: str = "penalised",
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

    @whole_or_not_at_all
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows and their labels.

        Parameters
        ----------
        X : array-like, sparse matrix, table or Dataset
            The training rows.
        y : array-like or sparse matrix of shape (n_rows, n_labels), or list of sets, optional
            1 where a row has a label and 0 elsewhere, or the set of labels of each row, as a set or a tuple. One label per
            row, shape (n_rows,), is a set of one; then `predict` gives the label with the highest score. Omit it if X is a
            Dataset.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        self
        """
        return self._train(self._dataset(X, y, sample_weight))

    def _dataset(self, X: Any, y: Any = None, sample_weight: Any = None) -> _core.Dataset:
        if isinstance(X, _core.Dataset):
            if y is not None or sample_weight is not None:
                raise TypeError("a Dataset holds its own y and sample_weight: leave both out")
            if X.label_sets is None:
                raise ValueError("the Dataset holds no sets of labels")
            self.classes_, self._dtype = np.array(X.label_sets[2]), np.dtype(np.int64)
            return self._with_its_names(X)
        self._needs_y(y)
        starts, codes, names = self._sets(y)
        if names is None:
            # One label per row.
            X, y = self._rows_and_classes(X, y)
            self.classes_, self._dtype = classes_of(y), None
            codes, names = np.searchsorted(self.classes_, y).astype(np.uint32), spelled(self.classes_)
            starts = np.arange(len(y) + 1, dtype=np.uint64)
        else:
            X = self._features(X, reset=True)
            if len(starts) - 1 != X.shape[0]:
                rows = len(starts) - 1
                raise ValueError(f"y has {rows} rows, and X has {X.shape[0]}: inconsistent numbers of samples")
        weights = arrays.weights("sample_weight", sample_weight, X.shape[0])
        data = self._named(arrays.dataset(X)).with_label_sets(starts, codes, names)
        return data if weights is None else data.with_weights(weights)

    def _sets(self, y: Any) -> tuple[Any, Any, list[str] | None]:
        """The labels of each row and their names, if y holds sets. Sets `classes_`."""
        sets = of_sets(y)
        if sets is not None:
            return self._of_sets(sets)
        kind = type_of_target(y, input_name="y")
        if kind == "multilabel-indicator":
            starts, codes = indicator(y)
            count = y.shape[1] if hasattr(y, "shape") else np.asarray(y).shape[1]
            named = arrays.is_table(y)
            self.classes_ = np.array(arrays.column_names(y) if named else range(count))
            self._dtype = np.asarray(y).dtype if not hasattr(y, "tocsr") else y.dtype
            return starts, codes, spelled(self.classes_)
        if kind in ("multiclass-multioutput", "continuous-multioutput"):
            raise ValueError(f"Unknown label type: {kind}: y must hold 0 and 1, one column for each label")
        return None, None, None

    def _of_sets(self, sets: list[Any]) -> tuple[Any, Any, list[str]]:
        found = {label for row in sets for label in row}
        if not found:
            raise ValueError("y holds no label: at least one row needs one")
        try:
            self.classes_ = np.array(sorted(found))
        except TypeError as error:
            raise TypeError(f"y holds labels that cannot be compared with each other: {error}") from error
        place = {label: position for position, label in enumerate(self.classes_.tolist())}
        rows = [sorted({place[label] for label in row}) for row in sets]
        self._dtype = np.dtype(np.int64)
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.uint64)
        codes = np.array([code for row in rows for code in row], dtype=np.uint32)
        return starts, codes, spelled(self.classes_)

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        settings = super()._settings(data)
        settings["multilabel"] = one_of("form", self.form, FORMS)
        settings["intercept"] = one_of("intercept", self.intercept, ("free", "penalised", "none"))
        return settings

    def _adopt(self, model: _core.Model, data: _core.Dataset) -> Self:
        super()._adopt(model, data)
        self.learned_nothing_ = model.learned_nothing
        count = len(self.classes_)
        intercepts = model.intercepts if len(model.intercepts) else np.zeros(count)
        self.intercept_ = self._above_the_border(intercepts)
        for name in ("coef_", "dual_coef_"):
            if hasattr(self, name):
                setattr(self, name, self._above_the_border(np.atleast_2d(getattr(self, name))))
        return self

    def _above_the_border(self, found: Reals) -> Reals:
        """One number or row for each label, less that of the calibration score."""
        count = len(self.classes_)
        relative: Reals = found[:count] - found[count] if len(found) > count else found
        return relative

    def decision_function(self, X: Any) -> Reals:
        """Score of each row and label, shape (n_rows, n_labels): how far it lies above the calibration score.

        If rows had one label each, and there were two labels, it is the difference of their scores, shape (n_rows,).
        """
        check_is_fitted(self, "model_")
        scores = np.asarray(self._scores(X)).reshape(-1, len(self.classes_))
        if self._dtype is None and len(self.classes_) == 2:
            apart: Reals = scores[:, 1] - scores[:, 0]
            return apart
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """1 for the labels of each row, shape (n_rows, n_labels); if rows had one label each, the label of each row."""
        scores = self.decision_function(X)
        if self._dtype is not None:
            return (scores > 0).astype(self._dtype)
        positions = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        predicted: npt.NDArray[Any] = self.classes_[positions]
        return predicted

    def predict_sets(self, X: Any) -> list[list[Any]]:
        """The labels of each row, best first."""
        check_is_fitted(self, "model_")
        scores = np.asarray(self._scores(X)).reshape(-1, len(self.classes_))
        order = np.argsort(-scores, axis=1, kind="stable")
        labels = self.classes_.tolist()
        return [[labels[place] for place in own if row[place] > 0] for row, own in zip(scores, order, strict=True)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Weighted share of rows whose whole set of labels is predicted correctly. A Dataset brings its own labels."""
        if isinstance(X, _core.Dataset):
            if y is not None or sample_weight is not None:
                raise TypeError("a Dataset holds its own y and sample_weight: leave both out")
            if X.label_sets is None:
                raise ValueError("the Dataset holds no sets of labels")
            starts, codes, names = X.label_sets
            y = [{names[code] for code in codes[first:end]} for first, end in zip(starts[:-1], starts[1:], strict=True)]
            sample_weight = X.weights
        sets = of_sets(y)
        if sets is not None:
            y = self._indicator_of(sets)
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def _indicator_of(self, sets: Iterable[Any]) -> npt.NDArray[np.int64]:
        """A 0/1 array of sets. Labels that the model does not know are an error."""
        check_is_fitted(self, "model_")
        place = {label: position for position, label in enumerate(self.classes_.tolist())}
        rows = list(sets)
        found = np.zeros((len(rows), len(place)), dtype=np.int64)
        for row, labels in enumerate(rows):
            for label in labels:
                if label not in place:
                    raise ValueError(f"y holds the label {label!r}, which the model does not know")
                found[row, place[label]] = 1
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
