"""Classification: any number of classes."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from . import _core, arrays
from .estimator import Callback, ClassEstimator, Reals, measured, one_of, whole_or_not_at_all

#: How more than two classes are told apart.
FORMS = ("auto", "joint", "weston-watkins", "one-vs-rest", "one-vs-one", "code")

#: Forms in which the weights of each class are a row of `coef_`.
BY_CLASS = ("auto", "joint", "weston-watkins", "one-vs-rest")

#: At least this many values of y are sorted or looked up at a time.
BLOCK = 1 << 16


def label(value: Any) -> str:
    """A class in the notation of the core."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    return str(value)


def distinct(y: Any) -> Any:
    """The distinct values of y in order. Blocks are sorted, as large as what is found: a sorted copy of all of y would
    take more memory than training does.
    """
    found, start = y[:0], 0
    while start < len(y):
        end = start + max(BLOCK, len(found))
        found, start = np.union1d(found, y[start:end]), end
    return found


def classes_of(y: Any) -> Any:
    """The classes among the values of y, in order, or an error if the values cannot be classes."""
    if y.dtype.kind in "biuf":
        low, high = y.min(), y.max()
        two = low < high and ((y == high) | (y == low)).all()
        found = np.array([low, high], dtype=y.dtype) if two else distinct(y)
        if y.dtype.kind == "f" and not (np.isfinite(found).all() and (found == np.trunc(found)).all()):
            # These are no classes, and scikit-learn says why.
            check_classification_targets(y)
        return found
    if y.dtype.kind != "U":
        check_classification_targets(y)
    return distinct(y)


def are_doubles(classes: Any) -> bool:
    """Whether the classes are numbers that double precision holds exactly. They are in order."""
    if classes.dtype.kind in "biu":
        return -(2**53) <= int(classes[0]) and int(classes[-1]) <= 2**53
    return classes.dtype.kind == "f" and bool((classes.astype(np.float64) == classes).all())


def spelled(classes: Any) -> list[str]:
    """The name of each class in the core: its label, or its position if the core would confuse two labels."""

    def read(name: str) -> float | str:
        try:
            return float(name)
        except ValueError:
            return name

    names = [label(value) for value in classes]
    # The core takes words that are the same number, such as 1 and 1.0, for the same class.
    if len({read(name) for name in names}) < len(names):
        return [f"{position:0{len(str(len(names)))}}" for position in range(len(names))]
    return names


def code_matrix(code: Any, classes: int) -> npt.NDArray[np.int64]:
    """A matrix of codes: a row for each class, and -1, 0 or 1 for what each column takes the class for."""
    found = np.asarray(code)
    if found.dtype.kind not in "iuf":
        raise TypeError(f"code must be a name or an array of -1, 0 and 1, and is {code!r}")
    if found.ndim != 2 or found.shape[0] != classes:
        raise ValueError(f"code must have a row for each of the {classes} classes, and has the shape {found.shape}")
    if not np.isin(found, (-1, 0, 1)).all():
        bad = found[~np.isin(found, (-1, 0, 1))][0]
        raise ValueError(f"code must hold -1, 0 and 1 only, and holds {bad}")
    return found.astype(np.int64)


def tells_probabilities(estimator: Any) -> bool:
    """Whether a classifier with these parameters has probabilities. If not, an error says what to do."""
    by_loss = estimator.loss == "logistic" and estimator.multi_class in ("auto", "joint")
    if estimator.probability is None and not by_loss:
        raise AttributeError(
            "without probabilities: set probability='platt' or 'isotonic', or train with loss='logistic'"
        )
    return True


class LabelEstimator(ClassEstimator):
    """The base of estimators that predict labels without an order: how labels are named and scores are ordered."""

    multi_class: str

    #: The setting that makes the second class positive, where the core would order the two in another way.
    _positive: dict[str, str]
    #: The names of the classes in the core, and the position of each among them, in the order of `classes_`.
    _names: list[str]
    _place: npt.NDArray[np.intp]

    def _take(self, classes: Any) -> None:
        """Adopts the classes, and says how the core names and orders them: numbers by value, words by their bytes."""
        self.classes_, self._names, self._positive = classes, spelled(classes), {}
        order = list(range(len(classes)))
        if not are_doubles(classes):
            order.sort(key=lambda position: self._names[position].encode())
        self._place = np.argsort(order)
        if order == [1, 0] and self.multi_class == "auto":
            self._positive = {"positive": self._names[1]}

    def _labelled(self, X: Any, y: Any, weights: Reals | None) -> _core.Dataset:
        """The data set of checked rows, whose classes are among `classes_`."""
        data = self._named(arrays.dataset(X))
        if are_doubles(self.classes_):
            data = data.with_targets(np.require(y, dtype=np.float64, requirements=["C", "A"]))
        else:
            codes = np.empty(len(y), dtype=np.uint32)
            for start in range(0, len(y), BLOCK):
                part = slice(start, start + BLOCK)
                codes[part] = self._place[np.searchsorted(self.classes_, y[part])]
            data = data.with_labels(codes, sorted(self._names, key=str.encode))
        return data if weights is None else data.with_weights(weights)

    def _check_that_two_count(self, y: Any, weights: Reals | None) -> None:
        """Refuses classes of which only one has rows of positive weight."""
        only = self.classes_[0]
        if weights is not None:
            counts = weights > 0
            only = y[counts.argmax()]
            if counts.any() and not (y == only)[counts].all():
                return
        elif len(self.classes_) > 1:
            return
        shown = only.tolist() if hasattr(only, "tolist") else only
        raise ValueError(f"y holds only one class among rows of positive weight, {shown!r}: two are needed")

    def _by_class(self, found: Reals) -> Reals:
        """One number or row for each class, in the order of `classes_`; for two classes, their difference."""
        if len(found) < 2:
            return found
        ordered: Reals = found[self._place]
        return ordered[1:] - ordered[:1] if len(ordered) == 2 else ordered

    def decision_function(self, X: Any) -> Reals:
        """Score of each row and class, shape (n_rows, n_classes).

        With two classes, it is one number for each row, shape (n_rows,), that is positive for the second of `classes_`.
        """
        scores = self._scores(X)
        if scores.ndim == 1:
            return scores
        ordered: Reals = scores[:, self._place]
        return ordered[:, 1] - ordered[:, 0] if ordered.shape[1] == 2 else ordered

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predicted class of each row."""
        check_is_fitted(self, "model_")
        scores = self._scores(X)
        if scores.ndim == 1:
            positions = (scores >= 0).astype(np.intp)
        else:
            # Of equal scores, the core takes the first in its own order.
            order = np.argsort(self._place)
            positions = order[scores.argmax(axis=1)]
        predicted: npt.NDArray[Any] = self.classes_[positions]
        return predicted


class SVMClassifier(LabelEstimator):
    """Large-margin classifier for any number of classes. It minimises ½‖w‖² + C · Σ weight · loss.

    Two classes share one score. With more, every class has a score, and the class with the largest one is predicted.
    The model is linear or uses a kernel. C-ordered arrays of float32 or float64 and sparse rows with 32-bit indices are
    shared with the core and not copied. They must not be written to during `fit`.

    Parameters
    ----------
    C : float, default=1.0
        The weight of the sum of losses.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        The cost of a violated margin.
    multi_class : {"auto", "joint", "weston-watkins", "one-vs-rest", "one-vs-one", "code"}, default="auto"
        How classes are told apart. "joint" learns the weights of all classes in one problem: of each row, the largest
        violation counts (Crammer and Singer), and with the logistic loss the softmax. "weston-watkins" is one problem
        in which every violation counts. "one-vs-rest", "one-vs-one" and "code" are several problems of two classes.
        "auto" takes one score for two classes, and otherwise the joint form, or that of Weston and Watkins with the
        squared hinge.
    code : str, array of shape (n_classes, n_columns) or None, default=None
        With multi_class="code", the name of a code or its matrix, with the rows in the order of `classes_`. In each
        column, the classes with 1 are told from those with -1, and those with 0 are left out.
    decoding : str or None, default=None
        With "code", "one-vs-one" or "one-vs-rest", the loss by which the scores of the columns choose a class. None
        uses the default of the core.
    probability : {"platt", "isotonic"} or None, default=None
        How scores become probabilities, fitted on held-out rows, for every `multi_class`: by the scores of the classes,
        or with "one-vs-one" by those of the pairs of classes. With the logistic loss, probabilities are known without
        it, unless `multi_class` asks for several problems.
    weight_as : {"slack", "margin", "copies"}, default="slack"
        What the weight of a row multiplies: its slack, its margin, or the row itself.
    optimize : str or None, default=None
        For two classes: instead of a sum over rows, the measure of all rows to optimise: "f1", "prbep" (the break-even
        point of precision and recall), "p@K", "auc" or "error". The loss is then the hinge, whatever `loss` says, and
        intercept="free" means "penalised". `C` is the weight of a row, as without it.
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
    classes_ : array of shape (n_classes,)
        The classes in order.
    coef_ : array of shape (1, n_features) for two classes, else (n_classes, n_features)
        Weights of the features. Only for linear models. One-vs-one and codes have one row for each of their problems.
        For two classes with a score each, this is the difference of their weights.
    intercept_ : array of shape (1,), or one number for each row of `coef_`
        Constant terms.
    support_ : array of shape (n_support,)
        Positions of the support vectors among the training rows. For several classes, only for kernels and for
        problems over all classes.
    dual_coef_ : array of shape (1, n_support), or one row for each score
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
    >>> several = SVMClassifier().fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["a", "a", "b", "b", "c", "c"])
    >>> several.predict([[0.2], [2.5], [4.9]]).tolist()
    ['a', 'b', 'c']
    >>> several.decision_function([[2.5]]).shape
    (1, 3)
    >>> by_f1 = SVMClassifier(C=10.0, optimize="f1").fit([[0.0], [1.0], [2.0], [9.0]], ["no", "no", "no", "yes"])
    >>> by_f1.predict([[0.5], [9.5]]).tolist()
    ['no', 'yes']
    """

    _task = "classify"

    multi_class: str
    code: Any
    decoding: str | None
    probability: str | None
    weight_as: str
    optimize: str | None
    intercept: str

    intercept_: Reals

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        multi_class: str = "auto",
        code: Any = None,
        decoding: str | None = None,
        probability: str | None = None,
        weight_as: str = "slack",
        optimize: str | None = None,
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
        self._store(locals())

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
            self._take(distinct(self._of_dataset(X, y, sample_weight)))
            return self._with_its_names(X)
        X, y = self._rows_and_classes(X, y)
        try:
            self._take(classes_of(y))
        except TypeError as error:
            raise TypeError(f"y holds values that cannot be compared with each other: {error}") from error
        weights = arrays.weights("sample_weight", sample_weight, X.shape[0])
        self._check_that_two_count(y, weights)
        return self._labelled(X, y, weights)

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        settings = super()._settings(data)
        settings["intercept"] = one_of("intercept", self.intercept, ("free", "penalised", "none"))
        settings |= self._form()
        if self.probability is not None:
            settings["probability"] = one_of("probability", self.probability, ("platt", "isotonic"))
        weight_as = one_of("weight_as", self.weight_as, ("slack", "margin", "copies"))
        if weight_as != "slack":
            settings["weight-as"] = weight_as
        if measured("optimize", self.optimize):
            settings["optimize"] = self.optimize
            # The measure has the hinge, and a constant term that is penalised.
            settings.pop("loss", None)
            if settings["intercept"] == "free":
                del settings["intercept"]
        known = self.classes_.tolist()
        return settings | self._class_weights(lambda name: self._names[known.index(name)])

    def _form(self) -> dict[str, Any]:
        """The settings that say how classes are told apart."""
        form = one_of("multi_class", self.multi_class, FORMS)
        settings = {} if form == "auto" else {"multiclass": form}
        if self.code is not None:
            if form != "code":
                raise ValueError(f"code needs multi_class='code', and multi_class is {self.multi_class!r}")
            by_name = isinstance(self.code, str)
            settings["code"] = self.code if by_name else self._as_text(code_matrix(self.code, len(self.classes_)))
        if self.decoding is not None:
            if not isinstance(self.decoding, str):
                raise TypeError(f"decoding must be None or a name, and is {self.decoding!r}")
            settings["decoding"] = self.decoding
        return settings

    def _as_text(self, matrix: npt.NDArray[np.int64]) -> str:
        """The matrix as the core takes it: a line for each class, its name first."""
        names = [f'"{name.replace(chr(34), 2 * chr(34))}"' for name in self._names]
        lines = zip(names, matrix.tolist(), strict=True)
        return "".join(",".join([name, *map(str, entries)]) + "\n" for name, entries in lines)

    def _adopt(self, model: _core.Model, data: _core.Dataset) -> Self:
        super()._adopt(model, data)
        by_class = one_of("multi_class", self.multi_class, FORMS) in BY_CLASS
        learned = model.weights if model.weights is not None else model.dual_coef
        rows = 1 if learned is None else len(np.atleast_2d(learned))
        intercepts = model.intercepts if len(model.intercepts) else np.zeros(rows)
        self.intercept_ = self._by_class(intercepts) if by_class else intercepts
        for name in ("coef_", "dual_coef_"):
            if hasattr(self, name):
                found = np.atleast_2d(getattr(self, name))
                setattr(self, name, self._by_class(found) if by_class else found)
        return self

    @available_if(tells_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Reals:
        """Probability of each class for each row, shape (n_rows, n_classes)."""
        check_is_fitted(self, "model_")
        found: Reals = self.model_.probabilities(self._scored(X), self._threads())
        if self._positive:
            return found
        ordered: Reals = found[:, self._place]
        return ordered

    @available_if(tells_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Reals:
        """Logarithm of the probability of each class for each row."""
        with np.errstate(divide="ignore"):
            logarithms: Reals = np.log(self.predict_proba(X))
        return logarithms
