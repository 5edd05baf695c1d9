"""Binary classification."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from . import _core, arrays
from .estimator import Callback, MarginEstimator, Reals, number, one_of, whole_or_not_at_all


def label(value: Any) -> str:
    """A class in the notation of the core."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    return str(value)


def two_classes(y: Any) -> tuple[Any, Any]:
    """The distinct values of y in order, and the rows that have the second value.

    Numbers of two classes are not sorted for this: sorted copies would take more memory than training does.
    """
    if y.dtype.kind in "biuf":
        low, high = y.min(), y.max()
        second = y == high
        if low < high and (second | (y == low)).all():
            classes = np.array([low, high], dtype=y.dtype)
            check_classification_targets(classes)
            return classes, second
    check_classification_targets(y)
    classes = np.unique(y)
    return classes, y == classes[1] if len(classes) > 1 else np.zeros(len(y), dtype=bool)


class SVMClassifier(ClassifierMixin, MarginEstimator):
    """Large-margin classifier for two classes. It minimises ½‖w‖² + C · Σ weight · loss.

    The model is linear or uses a kernel. With other than two classes, `fit` raises an error. C-ordered arrays of
    float32 or float64 and sparse rows with 32-bit indices are shared with the core and not copied. They must not be
    written to during `fit`.

    Parameters
    ----------
    C : float, default=1.0
        The weight of the sum of losses.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        The cost of a violated margin.
    kernel : {"linear", "rbf", "poly", "sigmoid", "chi-squared", "intersection", "precomputed"}, default="linear"
        The kernel.
    gamma : {"scale", "auto"} or float or None, default="scale"
        Kernel coefficient. With None it is estimated from a sample of the data, as the command does.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant term of the polynomial and sigmoid kernels.
    intercept : {"free", "penalised", "none"}, default="free"
        Whether the constant term is free, penalised like a weight, or absent.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class. "balanced" uses weights inversely proportional to the weighted class frequencies.
    scale : {"none", "standard", "min-max", "max-abs", "unit-rows"}, default="none"
        How features are scaled before training. `coef_` then refers to the scaled features.
    solver : str, default="auto"
        The solver; "auto" chooses one by loss and data.
    tol : float, default=1e-3
        Training stops at this relative gap, (objective − lower bound) / objective. `gap_` is the gap that was reached.
    polish : bool, default=False
        Whether to continue to the last digits of double precision, whatever that costs. By default, solutions over
        fewer than a million entries are polished if that costs no more than the training.
    max_iter : int or None, default=None
        Maximum number of passes; None uses the default of the solver.
    cache_size : float, default=200
        Size of the cache for kernel rows in megabytes.
    random_state : int, RandomState or None, default=None
        Seed of the random numbers; None means 0.
    n_jobs : int or None, default=-1
        Number of threads; -1 means all cores, None means one. The result does not depend on it.
    verbose : int, default=0
        Whether to print each pass to standard error.
    callback : callable or None, default=None
        Called with a :class:`maxmargin.Progress` after each pass. If it returns a true value, training stops with the
        best model so far.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The two classes.
    coef_ : array of shape (1, n_features)
        Weights of the features. Only for linear models.
    intercept_ : array of shape (1,)
        Constant term.
    support_ : array of shape (n_support,)
        Positions of the support vectors among the training rows.
    dual_coef_ : array of shape (1, n_support)
        Coefficients of the support vectors. Only for kernels.
    objective_, lower_bound_, gap_ : float
        Objective of the model, proven lower bound on the objective of any model, and their relative gap.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether the gap reached `tol`.
    model_ : Model
        The trained model.

    Examples
    --------
    >>> from maxmargin import SVMClassifier
    >>> classifier = SVMClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> classifier.predict([[0.2], [2.9]]).tolist()
    ['no', 'yes']
    >>> classifier.gap_ < 1e-9
    True
    """

    _task = "classify"

    classes_: npt.NDArray[Any]
    intercept_: Reals
    _positive: dict[str, str]

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        kernel: str = "linear",
        gamma: str | float | None = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        intercept: str = "free",
        class_weight: Any = None,
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
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.intercept = intercept
        self.class_weight = class_weight
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
            Class of each row. Omit it if X is a Dataset.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        self
        """
        data = self._dataset(X, y, sample_weight)
        return self._train(data, **self._positive)

    def _dataset(self, X: Any, y: Any = None, sample_weight: Any = None) -> _core.Dataset:
        if isinstance(X, _core.Dataset):
            if y is not None or sample_weight is not None:
                raise TypeError("a Dataset holds its own y and sample_weight: leave both out")
            if X.targets is None:
                raise ValueError("the Dataset holds no classes")
            self.classes_, self._positive = np.unique(np.asarray(X.targets)), {}
            if len(self.classes_) > 2:
                raise ValueError("Only binary classification is supported, and the Dataset has more classes.")
            return self._with_its_names(X)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = self._features(X, reset=True)
        y = column_or_1d(y, warn=True)
        if len(y) != X.shape[0]:
            raise ValueError(f"y has {len(y)} values, and X has {X.shape[0]} rows: inconsistent numbers of samples")
        try:
            self.classes_, second = two_classes(y)
        except TypeError as error:
            raise TypeError(f"y holds values that cannot be compared with each other: {error}") from error
        weights = arrays.weights("sample_weight", sample_weight, X.shape[0])
        if len(self.classes_) > 2:
            kind = type_of_target(y)
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        counted = second if weights is None else second[weights > 0]
        if counted.all() or not counted.any():
            only = self.classes_[int(counted.any())].tolist()
            raise ValueError(f"y holds only one class among rows of positive weight, {only!r}: two are needed")
        data = self._named(arrays.dataset(X))
        self._positive = {}
        if self.classes_.dtype.kind in "biuf" and (self.classes_.astype(np.float64) == self.classes_).all():
            data = data.with_targets(np.require(y, dtype=np.float64, requirements=["C", "A"]))
        else:
            names = [label(value) for value in self.classes_]
            if names[0] == names[-1]:
                names = ["0", "1"]
            order = sorted(range(2), key=lambda position: names[position].encode())
            place = np.argsort(order).astype(np.uint32)
            data = data.with_labels(place[second.astype(np.intp)], [names[position] for position in order])
            if order != [0, 1]:
                self._positive = {"positive": names[1]}
        return data if weights is None else data.with_weights(weights)

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        settings = super()._settings(data)
        settings["intercept"] = one_of("intercept", self.intercept, ("free", "penalised", "none"))
        if self.class_weight is None:
            return settings
        if isinstance(self.class_weight, dict):
            unknown = [name for name in self.class_weight if name not in self.classes_]
            if unknown:
                raise ValueError(f"class_weight names the class {unknown[0]!r}, and y holds {self.classes_.tolist()}")
            settings["class-weight"] = {
                label(name): number(f"class_weight[{name!r}]", weight, at_least=0)
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
        self.intercept_ = np.array([model.intercept or 0.0])
        for name in ("coef_", "dual_coef_"):
            if hasattr(self, name):
                setattr(self, name, getattr(self, name).reshape(1, -1))
        return self

    def decision_function(self, X: Any) -> Reals:
        """Score of each row. It is positive for the second of `classes_`."""
        return self._scores(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predicted class of each row."""
        check_is_fitted(self, "model_")
        predicted: npt.NDArray[Any] = self.classes_[(self._scores(X) >= 0).astype(np.intp)]
        return predicted

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Weighted share of rows whose class is predicted correctly. A Dataset brings its own classes."""
        if isinstance(X, _core.Dataset):
            if y is not None or sample_weight is not None:
                raise TypeError("a Dataset holds its own y and sample_weight: leave both out")
            if X.targets is None:
                raise ValueError("the Dataset holds no classes")
            y, sample_weight = np.asarray(X.targets), X.weights
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
