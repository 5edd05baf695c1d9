"""Ratings: ordinal regression."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from . import _core, arrays
from .classifier import label
from .estimator import Callback, ClassEstimator, Reals, one_of, whole_or_not_at_all


def tells_probabilities(estimator: Any) -> bool:
    """Whether ratings with these parameters have probabilities. If not, an error says what to do."""
    by_loss = estimator.loss == "logistic" and estimator.form == "implicit"
    if estimator.probability is None and not by_loss:
        raise AttributeError(
            "without probabilities: set probability='platt' or 'isotonic', or train with loss='logistic'"
        )
    return True


class SVMOrdinal(ClassEstimator):
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
    probability : {"platt", "isotonic"} or None, default=None
        How the distances of a score from the cuts become probabilities of the classes, fitted on held-out rows. With the
        logistic loss and the implicit form, they are known without it.
    weight_as : {"slack", "margin", "copies"}, default="slack"
        What the weight of a row multiplies: its slack, its margin, or the row itself.
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

    form: str
    loss: str
    probability: str | None
    weight_as: str

    cuts_: Reals

    def __init__(
        self,
        C: float = 1.0,
        *,
        form: str = "implicit",
        loss: str = "hinge",
        class_weight: Any = None,
        probability: str | None = None,
        weight_as: str = "slack",
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
            self.classes_, self._are_numbers = np.unique(self._of_dataset(X, y, sample_weight)), True
            return self._with_its_names(X)
        X, y = self._rows_and_classes(X, y)
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
        if self.probability is not None:
            settings["probability"] = one_of("probability", self.probability, ("platt", "isotonic"))
        weight_as = one_of("weight_as", self.weight_as, ("slack", "margin", "copies"))
        if weight_as != "slack":
            settings["weight-as"] = weight_as
        known = self.classes_.tolist()
        return settings | self._class_weights(lambda name: label(name if self._are_numbers else known.index(name)))

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

    @available_if(tells_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Reals:
        """Probability of each class for each row, shape (n_rows, n_classes)."""
        check_is_fitted(self, "model_")
        found: Reals = self.model_.probabilities(self._scored(X), self._threads())
        return found

    @available_if(tells_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Reals:
        """Logarithm of the probability of each class for each row."""
        with np.errstate(divide="ignore"):
            logarithms: Reals = np.log(self.predict_proba(X))
        return logarithms

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Weighted share of rows whose class is predicted correctly: the accuracy, as for every classifier.

        For the mean absolute error use ``sklearn.metrics.mean_absolute_error``. A Dataset brings its own classes.
        """
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Classes in no order, as in scikit-learn's own checks, are told apart badly by one score.
        tags.classifier_tags.poor_score = True
        return tags
