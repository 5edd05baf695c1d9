"""Passive-aggressive classification: one row, or one balanced batch, after the other."""

import json
import sys
import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit

from . import _core, arrays
from .classifier import LabelEstimator, classes_of, distinct
from .estimator import Reals, frames_of_the_package, number, one_of, switch, whole_or_not_at_all

#: The steps by name.
SOLVERS = (
    "pa",
    "pa-dca",
    "pa-sequential",
    "pa-auc",
    "pa-max-violators",
    "pa-correct-mistakes",
    "pa-single-slack",
)

#: scikit-learn's names of what a missed margin costs.
VARIANTS = {"hinge": "pa-1", "squared-hinge": "pa-2"}

#: The largest number of rows of a batch, and of a reservoir.
MOST_ROWS = 2**24


class PAClassifier(LabelEstimator):
    """Passive-aggressive classifier: each step is the smallest change of the weights that is right about a row.

    It takes the parameters of scikit-learn's deprecated ``PassiveAggressiveClassifier``, and `partial_fit` learns from a
    stream. With more than two classes, every class has a score, and a step corrects all classes at once. For two
    classes, the other values of `solver` learn from batches with as many rows of one class as of the other, however rare
    one of them is.

    Parameters
    ----------
    C : float, default=1.0
        The most that one row may move the weights.
    fit_intercept : bool, default=True
        Whether there is a constant term. It moves like the weight of a feature that is always 1.
    max_iter : int, default=1000
        The most passes of `fit`. `partial_fit` makes one.
    tol : float or None, default=1e-3
        `fit` ends when the mean loss of a pass was not below the best one by `tol` for `n_iter_no_change` passes. With
        None it makes `max_iter` passes.
    early_stopping : bool, default=False
        Whether to hold out rows and to stop by their score instead of the loss.
    validation_fraction : float, default=0.1
        The share of rows that `early_stopping` holds out.
    n_iter_no_change : int, default=5
        How many passes without improvement end `fit`.
    shuffle : bool, default=True
        Whether to shuffle the rows before each pass of `fit`.
    verbose : int, default=0
        Whether to print each pass to standard error.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        "hinge" is PA-I, which limits each step to C. "squared_hinge" is PA-II, which limits steps smoothly.
    n_jobs : int or None, default=None
        Number of threads for predictions. Steps are made one after the other.
    random_state : int, RandomState or None, default=None
        Seed of the shuffles and of the held-out rows; None means 0.
    warm_start : bool, default=False
        Whether `fit` continues from the weights of the last one.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class. "balanced" is not possible in `partial_fit`, which does not know all rows.
    average : bool or int, default=False
        Whether to predict with the mean of the weights after each row. A number leaves out that many rows.
    solver : str, default="pa"
        The step: "pa" for each row alone, or for two classes "pa-dca", "pa-sequential", "pa-auc", "pa-max-violators",
        "pa-correct-mistakes" or "pa-single-slack" for balanced batches.
    batch_size : int, default=2
        Rows of a batch, an even number. Not for "pa".
    reservoir : int, default=128
        The most rows of each class that are kept to balance batches. Not for "pa".

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in order.
    coef_ : array of shape (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    n_iter_ : int
        Passes of the last fit.
    t_ : int
        Rows learned from so far, plus one.
    progress_ : dict
        Progressive validation: of rows before they were learned from, the share predicted wrongly ("error"), for two
        classes also "auc", the errors of both classes and their sum, which bounds 1 - AUC ("auc-loss-bound"), and the
        number of mistakes with the most that the theory allows ("mistakes", "mistake-bound").
    model_ : Model

    Examples
    --------
    >>> from maxmargin import PAClassifier
    >>> classifier = PAClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> classifier.predict([[-1.0], [4.0]]).tolist()
    ['no', 'yes']
    >>> stream = PAClassifier(solver="pa-dca")
    >>> for x, y in [(0.0, 0), (3.0, 1), (0.5, 0), (2.5, 1)]:
    ...     _ = stream.partial_fit([[x]], [y], classes=[0, 1])
    >>> stream.t_, stream.predict([[5.0]]).tolist()
    (5, [1])
    """

    _task = "classify"
    _learns_from_a_stream = True
    multi_class = "auto"

    fit_intercept: bool
    max_iter: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    shuffle: bool
    warm_start: bool
    average: Any
    batch_size: int
    reservoir: int

    intercept_: Reals
    t_: int
    progress_: dict[str, float | None]

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        verbose: int = 0,
        loss: str = "hinge",
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        class_weight: Any = None,
        average: Any = False,
        solver: str = "pa",
        batch_size: int = 2,
        reservoir: int = 128,
    ) -> None:
        self._store(locals())

    @whole_or_not_at_all
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to rows and their classes, in several passes.

        Parameters
        ----------
        X : array-like, sparse matrix or table
            The training rows.
        y : array-like of shape (n_rows,)
            Class of each row.

        Returns
        -------
        self
        """
        known = getattr(self, "classes_", None) if switch("warm_start", self.warm_start) else None
        self.__dict__.pop("_learner", None)
        if known is None:
            self.__dict__.pop("model_", None)
        X, y = self._rows_and_classes(X, y)
        try:
            self._take(classes_of(y) if known is None else known)
        except TypeError as error:
            raise TypeError(f"y holds values that cannot be compared with each other: {error}") from error
        self._are_known(y)
        self._check_that_two_count(y, None)
        self._make_passes(X, y)
        return self

    @whole_or_not_at_all
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue training on these rows, in the given order.

        Parameters
        ----------
        X : array-like, sparse matrix or table
            The rows.
        y : array-like of shape (n_rows,)
            Class of each row.
        classes : array-like of shape (n_classes,), optional
            All classes of the stream. Required at the first call.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row, which multiplies `C`.

        Returns
        -------
        self
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if self.class_weight == "balanced":
            raise ValueError("class_weight 'balanced' is not supported for partial_fit: give weights by class")
        self._needs_y(y)
        X = self._features(X, reset=first)
        y = self._one_a_row(X, y)
        if classes is not None:
            given = classes_of(np.unique(np.asarray(classes)))
            if first:
                self._take(given)
            elif not np.array_equal(given, self.classes_):
                raise ValueError(f"classes are {given.tolist()}, and were {self.classes_.tolist()} at the first call")
        if len(self.classes_) < 2:
            raise ValueError(f"classes holds only one class, {self.classes_.tolist()[0]!r}: two are needed")
        self._are_known(y)
        weights = arrays.weights("sample_weight", sample_weight, X.shape[0])
        self._learn(X, y, weights)
        self._finish(1)
        return self

    def _are_known(self, y: Any) -> None:
        """Refuses values of y that are not among `classes_`."""
        found = distinct(y)
        unknown = found[~np.isin(found, self.classes_)]
        if len(unknown):
            raise ValueError(f"y holds the class {unknown.tolist()[0]!r}, and the classes are {self.classes_.tolist()}")

    def _options(self) -> dict[str, Any]:
        """The settings of the core."""
        solver = one_of("solver", self.solver, SOLVERS)
        loss = one_of("loss", self.loss, tuple(VARIANTS))
        settings: dict[str, Any] = {
            "task": self._task,
            "solver": solver,
            "c": number("C", self.C, above=0),
            "pa-variant": VARIANTS[loss],
            "intercept": "penalised" if switch("fit_intercept", self.fit_intercept) else "none",
            "classes": self._names,
        }
        batch = number("batch_size", self.batch_size, at_least=2, at_most=MOST_ROWS, whole=True)
        reservoir = number("reservoir", self.reservoir, at_least=1, at_most=MOST_ROWS, whole=True)
        if solver != "pa":
            if len(self.classes_) > 2:
                raise ValueError(f"solver={self.solver!r} is for two classes, and y holds {len(self.classes_)}: use 'pa'")
            settings |= {"batch": batch, "reservoir": reservoir}
        if isinstance(self.average, bool | np.bool_):
            after = 0 if self.average else None
        else:
            after = number("average", self.average, at_least=0, at_most=2**53, whole=True) or None
        if after is not None:
            settings["average-from"] = after
        return settings | self._positive

    def _learn(self, X: Any, y: Any, weights: Reals | None, shares: dict[str, float] | None = None) -> None:
        """Learns from checked rows, in order."""
        options = self._options()
        if shares is None:
            known = self.classes_.tolist()
            options |= self._class_weights(lambda name: self._names[known.index(name)])
        else:
            options["class-weight"] = shares
        settings = json.dumps(options)
        known_settings, learner = getattr(self, "_learner", None) or (None, None)
        # Parameters may have changed since the last call.
        if learner is None or known_settings != settings:
            learner = _core.RowLearner(settings, getattr(self, "model_", None))
        learner.learn(self._labelled(X, y, weights))
        self._learner = (settings, learner)

    def _shares(self, y: Any) -> dict[str, float] | None:
        """The weights of the classes, if they follow from the number of rows."""
        if not isinstance(self.class_weight, str) or self.class_weight != "balanced":
            return None
        counts = [int((y == value).sum()) for value in self.classes_]
        return {
            name: len(y) / (len(counts) * count) for name, count in zip(self._names, counts, strict=True) if count > 0
        }

    def _make_passes(self, X: Any, y: Any) -> None:
        passes = number("max_iter", self.max_iter, at_least=1, whole=True)
        tol = None if self.tol is None else number("tol", self.tol, at_least=0)
        patience = number("n_iter_no_change", self.n_iter_no_change, at_least=1, whole=True)
        fraction = number("validation_fraction", self.validation_fraction, above=0)
        if fraction >= 1:
            raise ValueError(f"validation_fraction must be below 1, and is {fraction:g}")
        verbose = bool(number("verbose", int(self.verbose), at_least=0, whole=True))
        shuffle, early = switch("shuffle", self.shuffle), switch("early_stopping", self.early_stopping)
        random, shares = np.random.RandomState(self._seed() % 2**32), self._shares(y)
        kept, held = np.arange(len(y)), None
        if early:
            split = StratifiedShuffleSplit(1, test_size=fraction, random_state=random)
            kept, held = next(split.split(np.zeros((len(y), 1)), y))
            kept.sort()
        best, waited, before = np.inf, 0, 0.0
        for done in range(1, passes + 1):
            order = random.permutation(kept) if shuffle else kept
            whole = not shuffle and not early
            rows, labels = (X, y) if whole else (X[order], y[order])
            self._learn(rows, labels, None, shares)
            total, _ = self._learner[1].totals
            cost, before = (total - before) / len(kept), total
            if held is not None:
                self._adopt_learned()
                cost = -self.score(X[held], y[held])
            if verbose:
                said = f"score {-cost:.4f}" if held is not None else f"loss {cost:.6g}"
                print(f"{type(self).__name__}: pass {done}  {said}", file=sys.stderr)
            waited = 0 if tol is None or cost <= best - tol else waited + 1
            best = min(best, cost)
            if waited >= patience:
                break
        else:
            if tol is not None:
                warnings.warn(
                    f"{type(self).__name__} stopped after {passes} passes and was still improving: raise max_iter or tol",
                    ConvergenceWarning,
                    stacklevel=frames_of_the_package(),
                )
        self._finish(done)

    def _adopt_learned(self) -> None:
        """Sets what predictions need."""
        names = getattr(self, "feature_names_in_", None)
        model = self._learner[1].model(None if names is None else [str(name) for name in names])
        self.model_, self.n_features_in_ = model, model.n_features

    def _finish(self, passes: int) -> None:
        """Sets the fitted attributes."""
        self._adopt_learned()
        learner, model = self._learner[1], self.model_
        rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        intercepts = model.intercepts if len(model.intercepts) else np.zeros(rows)
        self.intercept_ = self._by_class(intercepts)
        self.coef_ = self._by_class(np.atleast_2d(np.asarray(model.weights)))
        self.n_iter_, self.t_ = passes, learner.seen + 1
        self.progress_ = learner.progress

    def __getstate__(self) -> dict[str, Any]:
        # The model holds the complete state of the learner.
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_learner", None)
        return state
