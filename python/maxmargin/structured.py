"""Structured outputs with an oracle of the user's own."""

import ctypes
import json
import os
from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import _core, arrays, outputs
from .estimator import HARD_MARGINS, MOST, Callback, MarginEstimator, Reals, number, one_of, switch, whole_or_not_at_all

SOLVERS = (
    "auto",
    "frank-wolfe",
    "n-slack",
    "cutting-plane",
    "quadratic-program",
    "sgd",
    "averaged-sgd",
    "pegasos",
)
RESCALES = ("margin", "slack")


class Oracle(Protocol):
    """What a user states about the outputs of a task: any class with these four methods.

    The same arguments must give the same answer, at least between `fit` and `verify`. ``w`` is an array of weights, one for
    each entry of the joint feature, and cannot be written to. Further methods are optional:

    - ``most_violated_by_slack(x, y_true, w)``: the output with the largest loss · (1 + score − score of the truth), for
      ``rescale="slack"``.
    - ``encode(y)`` and ``decode(numbers)``: an output as whole numbers from 0 to 2**32 − 1, and back. They are needed for
      outputs that are not made of numbers, strings, arrays, lists, tuples, dicts and sets.

    Examples
    --------
    >>> import numpy as np
    >>> class Sign:
    ...     def joint_feature(self, x, y):
    ...         return y * np.asarray(x)
    ...     def loss(self, y_true, y):
    ...         return float(y_true != y)
    ...     def most_violated(self, x, y_true, w):
    ...         return max([-1, 1], key=lambda y: self.loss(y_true, y) + w @ self.joint_feature(x, y))
    ...     def predict(self, x, w):
    ...         return max([-1, 1], key=lambda y: w @ self.joint_feature(x, y))
    >>> from maxmargin import check_oracle
    >>> check_oracle(Sign(), [[1.0, 0.0], [0.0, 1.0]], [1, -1])
    """

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Ψ(x, y): an array of shape (d,), or a sparse row of scipy. All have the same length d."""

    def loss(self, y_true: Any, y: Any) -> float:
        """How bad an output is: zero for the truth, and never negative."""

    def most_violated(self, x: Any, y_true: Any, w: Reals) -> Any:
        """The output with the largest loss(y_true, y) + w · Ψ(x, y)."""

    def predict(self, x: Any, w: Reals) -> Any:
        """The output with the largest w · Ψ(x, y)."""


METHODS = ("joint_feature", "loss", "most_violated", "predict")


def _listed(name: str, values: Any) -> list[Any]:
    """The items of a sequence of inputs or outputs."""
    if (
        values is None
        or isinstance(values, str | bytes)
        or not (hasattr(values, "__len__") or hasattr(values, "shape"))
    ):
        raise TypeError(f"{name} must be a sequence with one item for each example, and is {values!r}")
    rows = getattr(values, "iloc", values)
    if isinstance(values, np.ndarray) and values.ndim == 0:
        raise TypeError(f"{name} must be a sequence with one item for each example, and is a single value")
    count = values.shape[0] if hasattr(values, "shape") else len(values)
    return list(values) if isinstance(values, list | tuple) else [rows[position] for position in range(count)]


class _Calls:
    """What the core calls: the oracle with its inputs. Outputs come and go as bytes."""

    def __init__(self, oracle: Any, inputs: list[Any], truths: list[Any], checking: bool) -> None:
        missing = [name for name in METHODS if not callable(getattr(oracle, name, None))]
        if missing:
            raise TypeError(f"the oracle {type(oracle).__name__} has no method {' and no '.join(missing)}")
        own = [callable(getattr(oracle, name, None)) for name in ("encode", "decode")]
        if own[0] != own[1]:
            raise TypeError("the oracle must have both methods encode and decode, or none of them")
        self.oracle, self.inputs, self.own_code, self.checking = oracle, inputs, own[0], checking
        self.by_slack = callable(getattr(oracle, "most_violated_by_slack", None))
        #: Threads that are inside the oracle, and whether they shall leave it.
        self.inside: set[int] = set()
        self.stopped = False
        self.coded = [self.encode(truth) for truth in truths]
        self.truths = dict(zip(self.coded, truths, strict=True))
        self.own_truths = truths
        #: The output that was decoded last.
        self.last: tuple[bytes, Any] = (b"", None)
        self.dimension: int | None = None
        if inputs:
            self.dimension = self._entries(0, truths[0])[0]

    def encode(self, y: Any) -> bytes:
        content = self._encoded(y)
        if self.checking:
            again = self._encoded(self._decoded(content))
            if again != content:
                shown = [outputs.to_numbers(code) if self.own_code else code.decode() for code in (content, again)]
                raise ValueError(f"the output {y!r} is encoded as {shown[0]}, and once decoded as {shown[1]}")
        return content

    def decode(self, content: bytes) -> Any:
        if content in self.truths:
            return self.truths[content]
        known, y = self.last
        if known != content:
            y = self._decoded(content)
            self.last = (content, y)
        return y

    def _encoded(self, y: Any) -> bytes:
        return outputs.of_numbers(self._call(self.oracle.encode, y)) if self.own_code else outputs.encoded(y)

    def _decoded(self, content: bytes) -> Any:
        return (
            self._call(self.oracle.decode, outputs.to_numbers(content)) if self.own_code else outputs.decoded(content)
        )

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Calls the oracle so that it can be interrupted."""
        if self.stopped:
            raise KeyboardInterrupt
        thread = get_ident()
        self.inside.add(thread)
        try:
            return method(*arguments)
        finally:
            self.inside.discard(thread)

    def interrupt(self) -> None:
        """Raises KeyboardInterrupt in the threads that are inside the oracle."""
        self.stopped = True
        for thread in list(self.inside):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))

    def _entries(self, example: int, y: Any) -> tuple[int, Any, Reals]:
        """The length of a joint feature, the places of its entries (None if it is dense), and their values."""
        feature = self._call(self.oracle.joint_feature, self.inputs[example], y)
        if hasattr(feature, "tocoo"):
            arrays.check_sparse("the joint feature", feature)
            if len(feature.shape) == 2 and feature.shape[0] != 1:
                raise ValueError(
                    f"the joint feature of example {example} has shape {feature.shape}: it must be one row"
                )
            entries = feature.tocoo()
            places = entries.coords[-1] if hasattr(entries, "coords") else entries.col
            values = np.require(entries.data, dtype=np.float64, requirements=["C", "A"])
            return feature.shape[-1], np.require(places, dtype=np.int64, requirements=["C", "A"]), values
        values = np.require(feature, dtype=np.float64, requirements=["C", "A"])
        if values.ndim == 2 and values.shape[0] == 1:
            values = values[0]
        if values.ndim != 1:
            raise ValueError(f"the joint feature of example {example} has shape {values.shape}: it must be one row")
        return len(values), None, values

    def joint_feature(self, example: int, content: bytes) -> tuple[Any, Reals]:
        length, places, values = self._entries(example, self.decode(content))
        if length != self.dimension:
            raise ValueError(
                f"the joint feature of example {example} has length {length}, and that of example 0 has {self.dimension}"
            )
        return places, values

    def loss(self, truth: bytes, content: bytes) -> float:
        found = self._call(self.oracle.loss, self.decode(truth), self.decode(content))
        try:
            return float(found)
        except (TypeError, ValueError) as error:
            raise TypeError(f"loss must return a number, and returns {found!r}") from error

    def most_violated(self, example: int, w: Reals) -> bytes:
        return self.encode(self._call(self.oracle.most_violated, self.inputs[example], self.own_truths[example], w))

    def most_violated_by_slack(self, example: int, w: Reals) -> bytes:
        search = self.oracle.most_violated_by_slack
        return self.encode(self._call(search, self.inputs[example], self.own_truths[example], w))

    def predict(self, example: int, w: Reals) -> bytes:
        return self.encode(self._call(self.oracle.predict, self.inputs[example], w))

    def words(self, content: bytes) -> str:
        shown = repr(self.decode(content))
        return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _paired(name: str, inputs: Any, other: str, outputs: Any) -> tuple[list[Any], list[Any]]:
    """Inputs and their right outputs, of which there must be as many."""
    inputs, truths = _listed(name, inputs), _listed(other, outputs)
    if len(inputs) != len(truths):
        raise ValueError(f"{name} has {len(inputs)} inputs, and {other} has {len(truths)} outputs")
    if not inputs:
        raise ValueError(f"{name} has no inputs: give at least one example")
    return inputs, truths


class _Given:
    """Examples in the form that the core takes."""

    def __init__(
        self,
        oracle: Any,
        X: Any,
        Y: Any,
        sample_weight: Any = None,
        checking: bool = False,
        eval_set: tuple[Any, Any] | None = None,
    ) -> None:
        inputs, truths = _paired("X", X, "Y", Y)
        others: tuple[list[Any], list[Any]] = ([], [])
        if eval_set is not None:
            if not (isinstance(eval_set, tuple | list) and len(eval_set) == 2):
                raise TypeError("eval_set must be a tuple of held-out inputs and their right outputs")
            others = _paired("the X of eval_set", eval_set[0], "the Y of eval_set", eval_set[1])
        self.calls = _Calls(oracle, inputs + others[0], truths + others[1], checking)
        self.outputs = self.calls.coded[: len(inputs)]
        self.held_out = self.calls.coded[len(inputs) :]
        self.dimension = self.calls.dimension
        weights = arrays.weights("sample_weight", sample_weight, len(inputs))
        self.weights = None if weights is None else weights.tolist()


def check_oracle(oracle: Oracle, X: Any, Y: Any) -> None:
    """Check an oracle on some examples, and raise an error that names what is wrong.

    Joint features have the same length and finite entries. The loss is zero at the truth and never negative. Outputs are
    decoded to themselves. `most_violated` and `predict` give the same answer for the same weights, and none that is worse
    than the truth or than what they return at other weights; so does `most_violated_by_slack`, if the oracle has it. An
    exception of the oracle is raised as it is. At most 20 of the examples are tried, with about 40 searches each.

    Parameters
    ----------
    oracle : object
        An object with the methods of an :class:`Oracle`.
    X : sequence
        Some inputs.
    Y : sequence
        Their right outputs.

    Examples
    --------
    >>> from maxmargin import check_oracle
    >>> class Wrong:
    ...     def joint_feature(self, x, y):
    ...         return [x * y]
    ...     def loss(self, y_true, y):
    ...         return float(y_true != y)
    ...     def most_violated(self, x, y_true, w):
    ...         return 1
    ...     def predict(self, x, w):
    ...         return 1 if x * w[0] > 0 else -1
    >>> check_oracle(Wrong(), [2.0], [1])
    Traceback (most recent call last):
    ...
    ValueError: example 0: at zero weights, most_violated returns 1 with 0, and -1 has 1
    """
    wrong = _core.check_oracle(_Given(oracle, X, Y, checking=True))
    if wrong is not None:
        raise ValueError(wrong)


class StructuredSVM(MarginEstimator):
    """Large-margin learning of structured outputs with an oracle of your own.

    Inputs and outputs may be anything. The oracle knows the joint feature of an input and an output, the loss of an
    output, and how to search for the best and for the most violated output; see :class:`Oracle`. Learned are weights of the
    joint feature::

        min  ½‖w‖² + C · Σ_examples weight · max_y [ loss(y_true, y) + w·Ψ(x, y) − w·Ψ(x, y_true) ]

    Parameters
    ----------
    oracle : object
        An object with the methods `joint_feature`, `loss`, `most_violated` and `predict`.
    C : float, default=1.0
        The weight of the sum of losses.
    solver : str, default="auto"
        "auto" is "frank-wolfe". "n-slack" is for slow oracles: it makes fewer passes over the examples and works longer
        between them. "cutting-plane" is an independent check. "sgd", "averaged-sgd" and "pegasos" prove no bound.
        "quadratic-program" finds the hard margin, for which C does not matter, or examples that allow none.
    rescale : {"margin", "slack"}, default="margin"
        How the loss enters: as the margin, or as what a unit of slack costs. "slack" needs a method
        `most_violated_by_slack`.
    tol : float, default=1e-3
        The relative gap between objective and lower bound at which training stops.
    max_iter : int or None, default=None
        The largest number of passes over the examples. None is the default of the solver.
    random_state : int, RandomState or None, default=None
        Seeds the order of examples. The result depends on it only within `tol`.
    n_jobs : int or None, default=None
        Threads. With one, which is the default, the oracle is never called by two threads at once. With more (-1 means
        all cores) it must allow that. Python code of the oracle then still runs on one core at a time; numpy and other
        libraries run on several where they release the interpreter lock. The result is the same.
    verbose : int, default=0
        Whether progress is printed to standard error.
    callback : callable or None, default=None
        Called with a :class:`Progress` after each pass. If it returns true, training stops.
    warm_start : bool, default=False
        Whether `fit` continues from the fitted model. The examples must be the same; `C`, `tol` and `max_iter` may differ.

    Attributes
    ----------
    coef_ : array of shape (d,)
        Weights of the joint feature.
    objective_, lower_bound_, gap_, n_iter_, converged_, model_
        See :class:`SVMClassifier`.
    n_calls_ : int
        How many times training called `most_violated` or its form for slack.
    oracle_seconds_ : float
        The seconds that these calls took, added up over threads.

    Examples
    --------
    Labels of letters in a word, where a label depends on the letter and on the label before it. All outputs are tried,
    which is possible for short words only.

    >>> from itertools import product
    >>> import numpy as np
    >>> from maxmargin import StructuredSVM
    >>> class Labels:
    ...     def joint_feature(self, x, y):
    ...         feature = np.zeros(8)
    ...         for letter, label in zip(x, y):
    ...             feature["ab".index(letter) * 2 + label] += 1
    ...         for pair in zip(y, y[1:]):
    ...             feature[4 + pair[0] * 2 + pair[1]] += 1
    ...         return feature
    ...     def loss(self, y_true, y):
    ...         return float(sum(a != b for a, b in zip(y_true, y)))
    ...     def most_violated(self, x, y_true, w):
    ...         return max(product([0, 1], repeat=len(x)),
    ...                    key=lambda y: self.loss(y_true, y) + w @ self.joint_feature(x, y))
    ...     def predict(self, x, w):
    ...         return max(product([0, 1], repeat=len(x)), key=lambda y: w @ self.joint_feature(x, y))
    >>> X, Y = ["aab", "bba", "aba", "bab"], [(0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 0, 1)]
    >>> model = StructuredSVM(Labels(), C=10).fit(X, Y)
    >>> model.predict(["bbb", "abaab"])
    [(1, 1, 1), (0, 1, 0, 0, 1)]
    >>> model.gap_ <= 1e-3 and model.score(X, Y) == 1.0
    True
    >>> objective, lower_bound, gap = model.verify(X, Y)
    """

    _task = "own"

    oracle: Any
    rescale: str
    warm_start: bool

    n_calls_: int
    oracle_seconds_: float

    def __init__(
        self,
        oracle: Oracle,
        C: float = 1.0,
        *,
        solver: str = "auto",
        rescale: str = "margin",
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
        warm_start: bool = False,
    ) -> None:
        self._store(locals())

    @whole_or_not_at_all
    def fit(
        self, X: Any, Y: Any = None, sample_weight: Any = None, *, eval_set: tuple[Any, Any] | None = None
    ) -> Self:
        """Learn from inputs and their right outputs.

        An exception of the oracle ends the training and is raised as it is. Ctrl-C interrupts the oracle.

        Parameters
        ----------
        X : sequence
            The inputs.
        Y : sequence
            Their right outputs: numbers, strings, arrays, or lists, tuples, dicts and sets of these; or anything else,
            if the oracle has methods `encode` and `decode`.
        sample_weight : array-like of shape (n_examples,), optional
            Weight of each example.
        eval_set : tuple of inputs and their right outputs, optional
            Held-out examples. Training stops when the mean loss of what is predicted for them gets worse, and the best
            model is kept; each :class:`Progress` has that loss.

        Returns
        -------
        self
        """
        self._needs_y(Y)
        solver = one_of("solver", self.solver, SOLVERS)
        settings: dict[str, Any] = {
            "task": self._task,
            "c": number("C", self.C, above=0),
            "tolerance": number("tol", self.tol, at_least=0),
            "seed": self._seed(),
            "solver": solver,
            "rescale": one_of("rescale", self.rescale, RESCALES),
        }
        if solver in HARD_MARGINS:
            del settings["c"]
        if self.max_iter is not None:
            settings["max-passes"] = number("max_iter", self.max_iter, at_least=1, at_most=MOST, whole=True)
        if eval_set is not None:
            settings["early-stopping"] = "validation"
        start = getattr(self, "model_", None) if switch("warm_start", self.warm_start) else None
        given = _Given(self.oracle, X, Y, sample_weight, eval_set=eval_set)
        name, threads, watch = type(self.oracle).__name__, self._threads(), self._watch()
        model, self.n_calls_, self.oracle_seconds_ = _core.train_oracle(
            given, json.dumps(settings), name, threads, watch, start
        )
        self._state(model)
        if eval_set is None:
            self._warn_unless_converged()
        return self

    def _state(self, model: _core.Model) -> None:
        """Sets the attributes that follow from a model."""
        self._measure(model)
        assert model.weights is not None, "a linear model"
        self.coef_ = model.weights

    def predict(self, X: Any) -> list[Any]:
        """The best output for each input, as the oracle returns it."""
        check_is_fitted(self, "model_")
        return [self.oracle.predict(x, self._frozen()) for x in _listed("X", X)]

    def _frozen(self) -> Reals:
        """The weights for the oracle, which cannot be written to."""
        weights = self.coef_.view()
        weights.flags.writeable = False
        return weights

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """One minus the mean loss of the predicted outputs, weighted. It is at most 1, and larger is better."""
        predicted, truths = self.predict(X), _listed("Y", Y)
        if len(predicted) != len(truths):
            raise ValueError(f"X has {len(predicted)} inputs, and Y has {len(truths)} outputs")
        losses = [float(self.oracle.loss(truth, y)) for truth, y in zip(truths, predicted, strict=True)]
        return 1.0 - float(np.average(losses, weights=sample_weight))

    def verify(self, X: Any, Y: Any = None, sample_weight: Any = None) -> tuple[float, float | None, float | None]:
        """Recompute objective, lower bound and gap from the training examples. Raises an error if they do not hold.

        Takes the arguments of `fit`. The oracle must be the one of training: objective and bound rest on its searches.
        """
        check_is_fitted(self, "model_")
        self._needs_y(Y)
        given = _Given(self.oracle, X, Y, sample_weight)
        return _core.verify_oracle(given, self.model_, self._threads())

    def dumps(self) -> bytes:
        """The model as the content of a model file, without the code of the oracle."""
        check_is_fitted(self, "model_")
        return self.model_.to_bytes()

    @classmethod
    def loads(cls, content: bytes, *, oracle: Oracle) -> Self:
        """The estimator for the content of a model file, with the oracle that it was trained with."""
        return cls._of(_core.Model.from_bytes(content), oracle)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, oracle: Oracle) -> Self:
        """The estimator for a file that `save` wrote, with the oracle that it was trained with."""
        return cls._of(_core.Model.load(os.fspath(path)), oracle)

    @classmethod
    def _of(cls, model: _core.Model, oracle: Oracle) -> Self:
        settings = json.loads(model.settings)
        if model.task != cls._task:
            raise ValueError(f"the model was not saved by {cls.__name__}: its task is {model.task!r}")
        estimator = cls(
            oracle,
            # A hard margin has none.
            model.c or 1.0,
            solver=settings["solver"],
            rescale=settings["task"].get("rescale", "margin"),
            tol=settings["tolerance"],
            max_iter=settings["max-passes"],
            random_state=settings["seed"],
        )
        estimator._state(model)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Inputs are anything, and not rows of numbers.
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags
