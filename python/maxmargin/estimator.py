"""What all estimators share: settings from parameters, training, fitted attributes, files and copies.

Each estimator is one file: its parameters, its task, how its arguments become a data set, and its predictions.
"""

import json
import numbers
import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from . import _core, arrays

Callback = Callable[[_core.Progress], object]
Reals = npt.NDArray[np.float64]

#: scikit-learn's names of kernels.
KERNELS = {"rbf": "gaussian", "poly": "polynomial"}

#: Kernels with a coefficient gamma.
WITH_GAMMA = ("gaussian", "polynomial", "sigmoid", "chi-squared")


#: The error code for data that are not the training data.
OTHER_DATA = "MM0309"

#: The largest whole number of the core.
MOST = 2**64 - 1

#: The largest number that the core can parse as a degree. The core itself checks the range.
MOST_DEGREE = 2**32 - 1

#: More threads than any machine has.
MOST_THREADS = 2**16


P = ParamSpec("P")
T = TypeVar("T")


def whole_or_not_at_all(fit: Callable[P, T]) -> Callable[P, T]:
    """Makes a method that fails leave the estimator unchanged, so that all attributes come from the same fit."""

    @wraps(fit)
    def guarded(*arguments: P.args, **named: P.kwargs) -> T:
        known = vars(arguments[0])
        before = dict(known)
        try:
            return fit(*arguments, **named)
        except BaseException:
            known.clear()
            known.update(before)
            raise

    return guarded


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    whole: bool = False,
) -> Any:
    """A parameter that must be a number within bounds."""
    article = "a whole number" if whole else "a finite number"
    kind: type[Any] = numbers.Integral if whole else numbers.Real
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {article}, and is {value!r}")
    bounds = [f"above {above:g}"] if above is not None else []
    bounds += [f"at least {at_least:g}"] if at_least is not None else []
    bounds += [f"at most {at_most}"] if at_most is not None else []
    outside = (
        (above is not None and not value > above)
        or (at_least is not None and not value >= at_least)
        or (at_most is not None and not value <= at_most)
    )
    if outside or not (whole or np.isfinite(float(value))):
        raise ValueError(f"{name} must be {' '.join([article, ' and '.join(bounds)]).strip()}, and is {value!r}")
    return int(value) if whole else float(value)


def one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    """A parameter that must be one of some names; underscores and dashes are equivalent."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(known)}, and is {value!r}")
    found = value.replace("_", "-")
    if found not in [other.replace("_", "-") for other in known]:
        raise ValueError(f"{name} must be one of {', '.join(known)}, and is {value!r}")
    return found


def measured(name: str, value: Any) -> bool:
    """Whether a measure is to be optimised. The core knows their names."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be None or the name of a measure, and is {value!r}")
    return value is not None


def switch(name: str, value: Any) -> bool:
    """A parameter that is on or off."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, and is {value!r}")
    return bool(value)


def called(name: str, value: Any) -> Any:
    """A parameter that must be None or callable."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be None or callable, and is {value!r}")
    return value


def frames_of_the_package() -> int:
    """The number of stack frames inside the package, so that a warning names the line of the user's code."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        frame, level = frame.f_back, level + 1
    return level


class MarginEstimator(BaseEstimator):
    """The base of all estimators."""

    #: The core's name of the task.
    _task: str
    #: Whether pairs are used only once, so that no bound is proven.
    _learns_from_a_stream = False

    # Set by the estimators themselves, as far as they have them.
    C: float
    loss: str
    kernel: str
    gamma: str | float | None
    degree: int
    coef0: float
    scale: str
    solver: str
    tol: float
    polish: bool
    max_iter: int | None
    cache_size: float
    random_state: Any
    n_jobs: int | None
    verbose: int
    callback: Callback | None

    # Attributes after fit.
    model_: _core.Model
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    coef_: Reals
    dual_coef_: Reals
    support_: npt.NDArray[np.int64]
    gamma_: float
    objective_: float
    lower_bound_: float | None
    gap_: float | None
    n_iter_: int
    converged_: bool

    def _store(self, parameters: dict[str, Any]) -> None:
        """Stores the parameters of a constructor, given as its local names, as they are."""
        self.__dict__.update((name, value) for name, value in parameters.items() if name != "self")

    def _settings(self, data: _core.Dataset) -> dict[str, Any]:
        """The settings of the core for these parameters and data."""
        settings: dict[str, Any] = {
            "task": self._task,
            "loss": one_of("loss", self.loss, ("hinge", "squared_hinge", "logistic")),
            "c": number("C", self.C, above=0),
            "tolerance": number("tol", self.tol, at_least=0),
            "seed": self._seed(),
        }
        parameters = self.get_params(deep=False)
        if "solver" in parameters:
            settings["solver"] = one_of("solver", parameters["solver"], SOLVERS)
            if settings["solver"] in HARD_MARGINS:
                # These solvers have no cost, but C and loss are checked anyway.
                del settings["loss"], settings["c"]
        if switch("polish", parameters.get("polish", False)):
            settings["polish"] = True
        if "scale" in parameters:
            settings["scale"] = one_of("scale", parameters["scale"], SCALES)
        if self.max_iter is not None:
            settings["max-passes"] = number("max_iter", self.max_iter, at_least=1, at_most=MOST, whole=True)
        if "kernel" in parameters:
            settings |= self._kernel(parameters, data)
        return settings

    def _kernel(self, parameters: dict[str, Any], data: _core.Dataset) -> dict[str, Any]:
        known = (
            "linear",
            "rbf",
            "gaussian",
            "poly",
            "polynomial",
            "sigmoid",
            "chi-squared",
            "intersection",
            "precomputed",
        )
        kind = one_of("kernel", parameters["kernel"], known)
        kind = KERNELS.get(kind, kind)
        kernel: dict[str, Any] = {"kernel": kind}
        # Parameters that the kernel does not use are checked too.
        gamma = self._gamma(parameters["gamma"])
        degree = number("degree", parameters["degree"], at_least=1, at_most=MOST_DEGREE, whole=True)
        coef0 = number("coef0", parameters["coef0"])
        cache = int(number("cache_size", parameters["cache_size"], above=0) * 2**20)
        if kind in WITH_GAMMA and gamma is not None:
            kernel["gamma"] = self._width(gamma, data) if isinstance(gamma, str) else gamma
        if kind == "polynomial":
            kernel["degree"] = degree
        if kind in ("polynomial", "sigmoid"):
            kernel["coef0"] = coef0
        if kind != "linear":
            kernel["kernel-cache"] = cache
        return kernel

    @staticmethod
    def _gamma(gamma: Any) -> str | float | None:
        """A number, or one of scikit-learn's words. With None, the core estimates gamma from a sample."""
        if gamma is None:
            return None
        if isinstance(gamma, str):
            return one_of("gamma", gamma, ("scale", "auto"))
        return float(number("gamma", gamma, above=0))

    @staticmethod
    def _width(word: str, data: _core.Dataset) -> float:
        """The value of such a word for these data."""
        columns = data.shape[1]
        if word == "auto":
            return 1.0 / columns
        variance = data.variance()
        return 1.0 / (columns * variance) if variance > 0 else 1.0

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        if isinstance(self.random_state, numbers.Integral):
            return int(number("random_state", self.random_state, at_least=0, at_most=MOST, whole=True))
        if not isinstance(self.random_state, np.random.RandomState):
            raise TypeError(f"random_state must be None, a whole number or a RandomState, and is {self.random_state!r}")
        return int(self.random_state.randint(2**31 - 1))

    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        jobs = int(number("n_jobs", self.n_jobs, at_most=MOST_THREADS, whole=True))
        if jobs == 0:
            raise ValueError("n_jobs must be -1 (all cores) or a number of threads, and is 0")
        if jobs == -1:
            return 0
        # -2 means all cores but one, as in scikit-learn.
        return jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)

    def _watch(self) -> Callback | None:
        own: Callback | None = called("callback", self.callback)
        verbose = (
            self.verbose if isinstance(self.verbose, bool) else number("verbose", self.verbose, at_least=0, whole=True)
        )
        if not verbose:
            return own

        def told(progress: _core.Progress) -> object:
            gap = "" if progress.gap is None else f"  gap {progress.gap:.1e}"
            print(
                f"{type(self).__name__}: pass {progress.iteration}  objective {progress.objective:.6g}{gap}",
                file=sys.stderr,
            )
            return own(progress) if own is not None else None

        return told

    def _features(self, X: Any, *, reset: bool, name: str = "X", least: int = 1) -> Any:
        """Checked features: a C-ordered array or sparse rows. Column names are stored or compared."""
        arrays.check_sparse(name, X)
        rows = arrays.plain(X, name)
        try:
            checked = check_array(
                rows,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
                ensure_min_samples=least,
                estimator=self,
                input_name=name,
            )
        except (TypeError, ValueError) as error:
            column = arrays.column_without_numbers(X)
            if column is None:
                raise
            kind = ValueError if isinstance(error, ValueError) else TypeError
            raise kind(f"the column {column!r} of {name} holds no numbers: {error}") from error
        # The message of scikit-learn calls it X.
        if name != "X" and not reset and checked.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{name} has {checked.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features"
            )
        validate_data(self, X, reset=reset, skip_check_array=True)
        return checked

    def _needs_y(self, y: Any) -> None:
        """Refuses rows without targets."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")

    def _with_its_names(self, data: _core.Dataset) -> _core.Dataset:
        """The data set itself. Its column names replace those of the previous fit."""
        self.__dict__.pop("feature_names_in_", None)
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, dtype=object)
        return data

    def _named(self, data: _core.Dataset) -> _core.Dataset:
        names = getattr(self, "feature_names_in_", None)
        return data if names is None else data.with_feature_names([str(name) for name in names])

    def _train(self, data: _core.Dataset, **more: Any) -> Self:
        """Trains on a data set and sets the fitted attributes."""
        settings = {**self._settings(data), **more}
        threads, watch = self._threads(), self._watch()
        model = _core.train(data, json.dumps(settings), threads, watch)
        return self._adopt(model, data)

    def _adopt(self, model: _core.Model, data: _core.Dataset) -> Self:
        """Sets the fitted attributes from a model."""
        self._measure(model)
        self.n_features_in_ = model.n_features
        for name in ("coef_", "dual_coef_", "support_", "intercept_", "threshold_", "gamma_"):
            self.__dict__.pop(name, None)
        if model.weights is not None:
            self.coef_ = model.weights
        if model.dual_coef is not None:
            self.dual_coef_ = model.dual_coef
            if model.gamma is not None:
                self.gamma_ = model.gamma
        support = model.support(data, self._threads())
        if support is not None:
            self.support_ = support
        self._warn_unless_converged()
        return self

    def _measure(self, model: _core.Model) -> None:
        """Sets the attributes that say how good the model is."""
        self.model_ = model
        self.objective_ = model.objective
        # Both are sums in double precision. At the optimum, the last bit may differ in either direction.
        self.lower_bound_ = None if model.lower_bound is None else min(model.lower_bound, model.objective)
        self.gap_ = model.gap
        self.converged_ = model.converged
        self.n_iter_ = max(1, model.passes)

    def _warn_unless_converged(self) -> None:
        """Warns about a model whose gap did not reach the tolerance, or that has none."""
        model = self.model_
        if not (model.converged or model.finished or model.stopped_early):
            gap = "not known" if model.gap is None else f"{model.gap:.1e}"
            warnings.warn(
                f"{type(self).__name__} stopped after {self.n_iter_} passes with a relative gap of {gap} and "
                f"tol={self.tol:g}: {self._remedy()}",
                ConvergenceWarning,
                stacklevel=frames_of_the_package(),
            )
        elif model.unproven:
            warnings.warn(
                f"{type(self).__name__}: the kernel may not be positive definite, so no lower bound is proven and gap_ "
                "is None: the result may be a local optimum only",
                ConvergenceWarning,
                stacklevel=frames_of_the_package(),
            )

    def _remedy(self) -> str:
        """What to do about a fit that did not converge."""
        model = self.model_
        if model.stalled and model.gap is not None and model.gap <= NO_MORE_DIGITS:
            return "the limit of double precision is reached"
        remedies = [] if model.stalled else ["raise max_iter"]
        if model.solver == "dual-coordinate-descent":
            # A pass is slower, but similar rows cause fewer problems.
            others = ["'newton'"] if self.loss == "logistic" else ["'smo' (thousands of rows)", "'newton'"]
            if self.loss != "logistic" and self.n_features_in_ <= MOST_FOR_A_SYSTEM:
                others.insert(0, "'interior-point'")
            remedies.append(f"try solver={', '.join(others[:-1])}{' or ' if others[1:] else ''}{others[-1]}")
        if getattr(self, "scale", None) == "none":
            remedies.append("scale the features (scale='standard')")
        remedies.append("lower C")
        return f"{'the limit of double precision is reached: ' if model.stalled else ''}{', or '.join(remedies)}"

    def _scores(self, X: Any, name: str = "X") -> Reals:
        """Scores of rows by the trained model."""
        check_is_fitted(self, "model_")
        return self.model_.scores(self._scored(X, name), self._threads())

    def _scored(self, X: Any, name: str = "X") -> _core.Dataset:
        """The data set over rows that the trained model is asked about."""
        if isinstance(X, _core.Dataset):
            return X
        return arrays.dataset(self._features(X, reset=False, name=name))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to a file that the command and :class:`maxmargin.Model` can read.

        The same data, settings and seed give the same bytes as `maxmargin train`.
        """
        check_is_fitted(self, "model_")
        self.model_.save(path)

    def _taken(self, *data: Any, **more: Any) -> _core.Dataset:
        """The data set that `fit` would train on."""
        unknown = sorted(set(more) - set(signature(self._dataset).parameters))
        if unknown:
            raise TypeError(f"{type(self).__name__} takes no {' and no '.join(unknown)}")
        dataset: _core.Dataset = self._dataset(*data, **more)
        return dataset

    def verify(self, *data: Any, **more: Any) -> tuple[float, float | None, float | None]:
        """Recompute objective, lower bound and gap from the training data. Raises an error if they do not hold.

        Takes the arguments of `fit`, or those of `fit_items` by name: ``verify(items=items, pairs=pairs)``.
        """
        check_is_fitted(self, "model_")
        if self._learns_from_a_stream:
            raise TypeError(f"{type(self).__name__} learns from a stream, and proves no bound")
        try:
            return self.model_.verify(clone(self)._taken(*data, **more))
        except _core.MaxmarginError as error:
            if error.code == OTHER_DATA:
                error.add_note(
                    "Give verify all that fit was given: X of the same type, y, and qid and sample_weight if used."
                )
            raise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        return tags


class ClassEstimator(ClassifierMixin, MarginEstimator):
    """The base of estimators that predict classes."""

    class_weight: Any

    classes_: npt.NDArray[Any]

    @staticmethod
    def _of_dataset(data: _core.Dataset, y: Any, sample_weight: Any) -> Any:
        """The classes that a data set brings. Nothing else may be given."""
        if y is not None or sample_weight is not None:
            raise TypeError("a Dataset holds its own y and sample_weight: leave both out")
        if data.targets is None:
            raise ValueError("the Dataset holds no classes")
        return np.asarray(data.targets)

    def _rows_and_classes(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Checked features, and one value of y for each row."""
        self._needs_y(y)
        X = self._features(X, reset=True)
        return X, self._one_a_row(X, y)

    @staticmethod
    def _one_a_row(X: Any, y: Any) -> Any:
        """One value of y for each row."""
        y = column_or_1d(y, warn=True)
        if len(y) != X.shape[0]:
            raise ValueError(f"y has {len(y)} values, and X has {X.shape[0]} rows: inconsistent numbers of samples")
        return y

    def _class_weights(self, spelled: Callable[[Any], str]) -> dict[str, Any]:
        """The setting for weights of classes, given how the core spells a class."""
        if self.class_weight is None:
            return {}
        if isinstance(self.class_weight, dict):
            known = self.classes_.tolist()
            unknown = [name for name in self.class_weight if name not in known]
            if unknown:
                raise ValueError(f"class_weight names the class {unknown[0]!r}, and y holds {known}")
            weights = {
                spelled(name): number(f"class_weight[{name!r}]", weight, at_least=0)
                for name, weight in self.class_weight.items()
            }
            return {"class-weight": weights}
        if self.class_weight == "balanced":
            return {"class-weight": self.class_weight}
        kind = ValueError if isinstance(self.class_weight, str) else TypeError
        raise kind(f"class_weight must be None, 'balanced' or a dict, and is {self.class_weight!r}")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Weighted share of rows whose class is predicted correctly. A Dataset brings its own classes."""
        if isinstance(X, _core.Dataset):
            y, sample_weight = self._of_dataset(X, y, sample_weight), X.weights
        return float(super().score(X, y, sample_weight))


SCALES = ("none", "standard", "min-max", "max-abs", "unit-rows", "min-max-per-query")

#: Solvers for the hard margin.
HARD_MARGINS = ("quadratic-program", "linear-program")

#: Up to this many columns, a step of the interior-point solver takes very little time.
MOST_FOR_A_SYSTEM = 4096

#: If a fit stalls with at most this gap, the limit of double precision is reached, and no other advice is given.
NO_MORE_DIGITS = 1e-12

SOLVERS = (
    "auto",
    "dual-coordinate-descent",
    "newton",
    "cutting-plane",
    "interior-point",
    "quadratic-program",
    "linear-program",
    "sgd",
    "averaged-sgd",
    "pegasos",
    "smo",
    "lasvm",
    "frank-wolfe",
    "n-slack",
)
