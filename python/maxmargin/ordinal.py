"""Ratings: ordinal regression."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from . import _core, arrays
from .classifier import label
from .estimator import Callback, MarginEstimator, Reals, number, one_of, whole_or_not_at_all


class SVMOrdinal(ClassifierMixin, MarginEstimator):
    """Large-margin ordinal regression: predicts ratings, which are classes in order.

    The model gives each row one score, and has a cut between each two neighbouring classes. A row has the class whose
    number is the number of cuts that its score reaches. The cost of a row is the sum of the losses of its violated cuts:
    of all cuts in the implicit form, of the two next to its class in the explicit form.

    Parameters
    ----------
    C : float, default=1.0
        The weight of the sum of losses.
    form : {"implicit", "explicit"}, default="implicit"
        Which cuts count for a row: all of them, so that a class further off costs more, or the two next to its class.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        The cost of a violated margin.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class. "balanced" uses weights inversely proportional to the weighted class frequencies.
    kernel, gamma, degree, coef0, scale, solver, tol, polish, max_iter, cache_size, random_state, n_jobs, \
        verbose, callback
        See :class:`SVMClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in order: numbers by value, words by letters.
    cuts_ : array of shape (n_classes - 1,)
        The cuts between neighbouring classes, in order.
    coef_ : array of shape (n_features,)
        Weights of the features. Only for linear models.
    objective_, lower_bound_, gap_, n_iter_, converged_, support_, dual_coef_, gamma_, model_
        See :class:`SVMClassifier`.

    Examples
    --------
    >>> from maxmargin import SVMOrdinal
    >>> ratings = SVMOrdinal(C=10).fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [1, 1, 2, 2, 5, 5])
    >>> ratings.predict([[0.4], [2.5], [9.0]]).tolist()
    [1, 2, 5]
    >>> len(ratings.cuts_)
    2
    """

    _task = "ordinal"

    classes_: npt.NDArray[Any]
    cuts_: Reals

    def __init__(
        self,
        C: float = 1.0,
        *,
        form: str = "implicit",
        loss: str = "hinge",
        class_weight: Any = None,
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
        self.C = C
        self.form = form
        self.loss = loss
        self.class_weight = class_weight
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scale = scale
        self.solver = solver
        self.tol = tol
        self.polish = polish
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    @whole_or_not_at_all
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows and their classes.

        Parameters
        ----------
        X : array-like, sparse matrix, table or Dataset
            The training rows.
        y : array-like of shape (n_rows,), optional
            Class of each row. Numbers may have gaps. Omit it if X is a Dataset.
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
            if X.targets is None:
                raise ValueError("the Dataset holds no classes")
            self.classes_, self._are_numbers = np.unique(np.asarray(X.targets)), True
            return self._with_its_names(X)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = self._features(X, reset=True)
        y = column_or_1d(y, warn=True)
        if len(y) != X.shape[0]:
            raise ValueError(f"y has {len(y)} values, and X has {X.shape[0]} rows: inconsistent numbers of samples")
        check_classification_targets(y)
        try:
            self.classes_, codes = np.unique(y, return_inverse=True)
        except TypeError as error:
            raise TypeError(f"y holds values that cannot be compared with each other: {error}") from error
        weights = arrays.weights("sample_weight", sample_weight, X.shape[0])
        counted = codes if weights is None else codes[weights > 0]
        if len(np.unique(counted)) < 2:
            only = self.classes_[counted[0] if len(counted) else 0 : 1].tolist()
            raise ValueError(f"y holds only one class among rows of positive weight ({only}): two are needed")
        self._are_numbers = self.classes_.dtype.kind in "biuf" and bool(
            (np.diff(self.classes_.astype(np.float64)) > 0).all()
        )
        # Words have an order only by their letters, and the core knows their numbers.
        targets = (y if self._are_numbers else codes).astype(np.float64)
        data = self._named(arrays.dataset(X)).with_targets(np.require(targets, requirements=["C", "A"]))
        return data if weights is None else data.with_weights(weights)

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        settings = super()._settings(data)
        settings["form"] = one_of("form", self.form, ("implicit", "explicit"))
        if self.class_weight is None:
            return settings
        if isinstance(self.class_weight, dict):
            known = self.classes_.tolist()
            unknown = [name for name in self.class_weight if name not in known]
            if unknown:
                raise ValueError(f"class_weight names the class {unknown[0]!r}, and y holds {known}")
            settings["class-weight"] = {
                label(name if self._are_numbers else known.index(name)): number(
                    f"class_weight[{name!r}]", weight, at_least=0
                )
                for name, weight in self.class_weight.items()
            }
        elif self.class_weight == "balanced":
            settings["class-weight"] = self.class_weight
        else:
            kind = ValueError if isinstance(self.class_weight, str) else TypeError
            raise kind(f"class_weight must be None, 'balanced' or a dict, and is {self.class_weight!r}")
        return settings

    def _adopt(self, model: _core.Model, data: _core.Dataset) -> Self:
        super()._adopt(model, data)
        cuts = model.cuts
        self.cuts_ = np.empty(0) if cuts is None else cuts
        return self

    def scores(self, X: Any) -> Reals:
        """The one score of each row. Higher means a higher class; `cuts_` are values of it."""
        return self._scores(X)

    def decision_function(self, X: Any) -> Reals:
        """How far the score of each row lies inside the interval of each class: the distance to its nearer cut.

        It is negative for classes whose interval does not hold the score, and the largest for the predicted class. With
        two classes it is one number a row: the score minus the cut.
        """
        scores = self._scores(X)
        if len(self.cuts_) == 1:
            beyond: Reals = scores - self.cuts_[0]
            return beyond
        above = scores[:, None] - np.concatenate([[-np.inf], self.cuts_])
        below = np.concatenate([self.cuts_, [np.inf]]) - scores[:, None]
        inside: Reals = np.minimum(above, below)
        return inside

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predicted class of each row."""
        check_is_fitted(self, "model_")
        codes = np.searchsorted(self.cuts_, self._scores(X), side="right")
        predicted: npt.NDArray[Any] = self.classes_[codes]
        return predicted

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Weighted share of rows whose class is predicted correctly: the accuracy, as for every classifier.

        For the mean absolute error use ``sklearn.metrics.mean_absolute_error``. A Dataset brings its own classes.
        """
        if isinstance(X, _core.Dataset):
            if y is not None or sample_weight is not None:
                raise TypeError("a Dataset holds its own y and sample_weight: leave both out")
            if X.targets is None:
                raise ValueError("the Dataset holds no classes")
            y, sample_weight = np.asarray(X.targets), X.weights
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Classes in no order, as in scikit-learn's own checks, are told apart badly by one score.
        tags.classifier_tags.poor_score = True
        return tags
