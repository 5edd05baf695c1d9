"""The core: data sets, models, training and metrics. Use it through the package."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "ClickLog",
    "Dataset",
    "Learner",
    "MaxmarginError",
    "Model",
    "Progress",
    "RowLearner",
    "Tried",
    "__version__",
    "_in_words",
    "_names",
    "_panic",
    "check_oracle",
    "command",
    "evaluate",
    "load",
    "ranks",
    "resampled",
    "sentences",
    "train",
    "train_oracle",
    "tune",
    "verify_oracle",
]

__version__: Final[str]

_Float: TypeAlias = npt.NDArray[np.float64]
_Reals: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
_Codes: TypeAlias = npt.NDArray[np.uint32]
_Signs: TypeAlias = npt.NDArray[np.int8]
_Positions: TypeAlias = npt.NDArray[np.int64]
_Path: TypeAlias = str | os.PathLike[str]

class MaxmarginError(ValueError):
    """An error in data, settings or a model. `code` is stable, and `remedy` says what to do."""

    code: str
    remedy: str | None

@final
class Dataset:
    """Features with targets, queries, weights and comparisons, in memory or mapped from a file."""

    @staticmethod
    def dense(array: _Reals, *, checked: bool = False) -> Dataset:
        """Rows of a C-contiguous array of f32 or f64, shared. Set `checked` if all values are known to be finite."""

    @staticmethod
    def sparse(
        starts: npt.NDArray[np.int32] | npt.NDArray[np.int64],
        indices: npt.NDArray[np.int32],
        values: _Reals,
        columns: int,
        *,
        checked: bool = False,
    ) -> Dataset:
        """Compressed sparse rows; 32-bit indices and values are shared. Set `checked` if all values are known finite."""

    def with_targets(self, targets: _Float) -> Dataset:
        """The same data with a number for each row."""

    def with_labels(self, codes: _Codes, names: Sequence[str]) -> Dataset:
        """The same data with a label for each row, as a position in the sorted names."""

    def with_label_sets(self, starts: npt.NDArray[np.uint64], codes: _Codes, names: Sequence[str]) -> Dataset:
        """The same data with a set of labels for each row: where each row's start, and positions in the names."""

    def with_weights(self, weights: _Float) -> Dataset:
        """The same data with a weight for each row."""

    def with_groups(self, codes: _Codes, names: Sequence[str]) -> Dataset:
        """The same data with the query of each row, as a position in the names. Rows of a query are moved together."""

    def with_pairs(self, left: _Codes, right: _Codes, outcomes: _Signs, weights: _Float | None = None) -> Dataset:
        """The same data with comparisons of two rows. Outcomes are -1 (left is better), 0 (a tie) or 1."""

    def with_feature_names(self, names: Sequence[str]) -> Dataset:
        """The same data with a name for each column."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""

    @property
    def layout(self) -> str:
        """How the features are stored."""

    @property
    def nbytes(self) -> int:
        """Size of the features in bytes."""

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns, or None."""

    @property
    def row_ids(self) -> list[str] | None:
        """Ids of the rows, or None."""

    @property
    def n_queries(self) -> int | None:
        """Number of queries, or None."""

    @property
    def n_pairs(self) -> int | None:
        """Number of comparisons, or None."""

    @property
    def targets(self) -> _Float | list[str] | None:
        """Target of each row: numbers, labels, or None."""

    @property
    def label_sets(self) -> tuple[npt.NDArray[np.uint64], _Codes, list[str]] | None:
        """Sets of labels: where those of each row start, positions in the names, and the names, or None."""

    @property
    def qid(self) -> _Codes | None:
        """Query of each row as a position in the list of queries, or None."""

    @property
    def weights(self) -> _Float | None:
        """Weight of each row, or None."""

    @property
    def pairs(self) -> tuple[_Codes, _Codes, _Signs] | None:
        """The comparisons: left rows, right rows, outcomes."""

    def variance(self) -> float:
        """Weighted variance of all feature values, zeros included."""

    @property
    def hash(self) -> int:
        """Hash over all values. Certificates contain it."""

    @property
    def notes(self) -> list[str]:
        """What the reader found in the file, in short phrases."""

    def save(self, path: _Path) -> None:
        """Save the data. The extension decides the format (.mmd is the cache)."""

    def __len__(self) -> int:
        """Number of rows."""

@final
class Model:
    """A trained model, with a certificate of how close to the optimum it is."""

    @staticmethod
    def load(path: _Path) -> Model:
        """Read a model file."""

    @staticmethod
    def from_bytes(content: bytes) -> Model:
        """Read a model from the content of a model file."""

    def save(self, path: _Path) -> None:
        """Save a model file, completely or not at all."""

    def to_bytes(self) -> bytes:
        """The content of a model file."""

    def without_witness(self) -> Model:
        """The same model without the proof of the lower bound, which saves space."""

    def __reduce__(self) -> tuple[Callable[[bytes], Model], tuple[bytes]]:
        """Pickles and copies hold the content of a model file."""

    def scores(self, data: Dataset, threads: int = 0) -> _Float:
        """Score of each row, in the given order; shape (rows, k) if a row has k scores."""

    def probabilities(self, data: Dataset, threads: int = 0) -> _Float:
        """Probability of each class for each row: the negative and the positive class, or all; shape (rows, k)."""

    def outcomes(self, data: Dataset) -> _Signs:
        """Predicted outcome of each comparison in the data: -1 (left is better), 0 (a tie) or 1."""

    def tags(self, data: Dataset, threads: int = 0) -> npt.NDArray[np.uint32]:
        """Predicted tag of each row of sequences, as a position among the classes."""

    def trees(self, data: Dataset, threads: int = 0) -> list[str]:
        """Predicted tree of each sentence, as a text in one line."""

    def measure(self, data: Dataset, metric: str, threads: int = 0) -> float:
        """Value of a metric of the predictions for data with targets."""

    @property
    def shared(self) -> _Float | None:
        """Weights that belong to no feature: of sequences bias, first, last and transitions; of trees those of rules, tops
        and lengths; else None."""

    def verify(self, data: Dataset) -> tuple[float, float | None, float | None]:
        """Recompute objective, lower bound and gap from the training data. Raises an error if they do not hold."""

    def support(self, data: Dataset, threads: int = 0) -> _Positions | None:
        """Positions of the support vectors among the training rows, or of the support pairs."""

    @property
    def task(self) -> str:
        """Name of the task."""

    @property
    def settings(self) -> str:
        """The settings, as JSON."""

    @property
    def weights(self) -> _Float | None:
        """Weights of the (scaled) features, or None; shape (k, features) if a row has k scores."""

    @property
    def intercepts(self) -> _Float:
        """Constant terms, one for each score of a row, or an empty array."""

    @property
    def dual_coef(self) -> _Float | None:
        """Coefficients of the support vectors, or None without a kernel."""

    @property
    def gamma(self) -> float | None:
        """γ of the kernel, given or estimated, or None."""

    @property
    def intercept(self) -> float | None:
        """The constant term."""

    @property
    def tie_width(self) -> float | None:
        """Largest difference of scores that is predicted as a tie, or None if ties are not predicted."""

    @property
    def threshold(self) -> float | None:
        """Threshold learned together with the scores."""

    @property
    def cuts(self) -> _Float | None:
        """Cuts between neighbouring ranks, in order, or None if it predicts no ratings."""

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The labels of a negative and a positive score, or of all classes in the order of their scores."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, or None."""

    @property
    def objective(self) -> float:
        """Objective of the model."""

    @property
    def lower_bound(self) -> float | None:
        """Proven lower bound on the optimum, or None if the method gives none."""

    @property
    def gap(self) -> float | None:
        """(objective − lower bound) / objective."""

    @property
    def converged(self) -> bool:
        """Whether the gap reached the tolerance."""

    @property
    def passes(self) -> int:
        """Number of passes."""

    @property
    def constraints(self) -> int:
        """Number of margin constraints."""

    @property
    def c(self) -> float:
        """Weight of the sum of losses, given or found."""

    @property
    def data_hash(self) -> int:
        """The hash of the training data."""

    @property
    def solver(self) -> str | None:
        """The solver that trained it, or None if the file does not name it."""

    @property
    def stalled(self) -> bool:
        """Whether training stopped because no step improved the objective, at the limit of double precision."""

    @property
    def stopped_early(self) -> bool:
        """Whether the solver was stopped before it reached the tolerance."""

    @property
    def finished(self) -> bool:
        """Whether the solver made the given number of passes and proves no bound."""

    @property
    def learned_nothing(self) -> bool:
        """Whether it is proven that equal scores are as good as any, within the tolerance."""

    @property
    def unproven(self) -> bool:
        """Whether training ended without a bound because the kernel may not be positive definite."""

    @property
    def trace(self) -> list[tuple[int, float, float | None, float]]:
        """Pass, objective, lower bound and seconds of each pass."""

    @property
    def confusion(self) -> list[list[int]] | None:
        """Confusion matrix (rows: true left, tie, right; columns: predicted) of a model trained on a stream."""

    def _repr_html_(self) -> str: ...

@final
class ClickLog:
    """A log of clicks."""

    @staticmethod
    def of(
        names: tuple[list[str], list[str], list[str]],
        positions: list[int | None],
        clicked: list[bool],
        propensities: list[float] | None,
    ) -> ClickLog:
        """The log of events given as columns: query, session and item of each."""

    @staticmethod
    def read(files: list[str]) -> ClickLog:
        """The log of one or more files."""

    @property
    def notes(self) -> list[str]:
        """What a reader found."""

    @property
    def has_propensities(self) -> bool:
        """Whether a click has a propensity of its own."""

    def power(self, eta: float) -> list[float | None]:
        """The propensity of each position by a power law."""

    def estimate(
        self, method: str, features: Dataset | None = None, items: list[str] | None = None
    ) -> tuple[list[tuple[int, float | None, tuple[float, float] | None, int, int]], list[float | None]]:
        """The estimated propensity of each position, and the curve to learn with."""

    def lists(
        self,
        features: Dataset,
        items: list[str] | None,
        curve: list[float | None] | None,
        clip: float | None,
        against: str,
    ) -> Dataset:
        """Lists of features with the weights of clicks as targets."""

    def pairs(self, features: Dataset, items: list[str] | None, rule: str, keep_order: float) -> Dataset:
        """Features with the preferences of a rule as pairs."""

@final
class Learner:
    """Learner that trains on one pair after the other."""

    def __new__(cls, settings: str, model: Model | None = None) -> Learner: ...
    def learn(self, data: Dataset) -> None:
        """Train on all comparisons of the data, in order. After an error, the state is that before the call."""

    def model(self, feature_names: Sequence[str] | None = None) -> Model:
        """The model so far."""

    @property
    def weights(self) -> _Float:
        """Weights for prediction."""

    @property
    def threshold(self) -> float:
        """Threshold for prediction."""

    @property
    def pairs(self) -> int:
        """Number of pairs used so far."""

    @property
    def errors(self) -> tuple[float | None, float | None]:
        """Share of pairs predicted wrongly before they were used for training: of all, and of the most recent ones."""

@final
class RowLearner:
    """Learner that trains on rows of classes, or on pairs to rank, one after the other."""

    def __new__(cls, settings: str, model: Model | None = None) -> RowLearner: ...
    def learn(self, data: Dataset) -> None:
        """Train on all rows or pairs of the data, in order. After an error, the state is that before the call."""

    def model(self, feature_names: Sequence[str] | None = None) -> Model:
        """The model so far."""

    @property
    def seen(self) -> int:
        """Number of rows or pairs used so far."""

    @property
    def totals(self) -> tuple[float, float]:
        """Sum of the losses of rows before they were used for training, and sum of their weights."""

    @property
    def progress(self) -> dict[str, float | None]:
        """How well rows were predicted before they were used for training: the value of each metric by its name."""

@final
class Progress:
    """Progress after a pass over the data, as given to a callback."""

    @property
    def iteration(self) -> int:
        """Number of passes so far."""

    @property
    def objective(self) -> float:
        """The objective of the best model so far."""

    @property
    def lower_bound(self) -> float | None:
        """The best lower bound so far."""

    @property
    def gap(self) -> float | None:
        """(objective − lower bound) / objective."""

    @property
    def held_out(self) -> float | None:
        """The measure of held-out data, if there are any."""

    @property
    def coef(self) -> _Float:
        """The weights of that model."""

@final
class Tried:
    """Result of a tried setting, as given to a callback."""

    @property
    def done(self) -> int:
        """Number of settings tried so far."""

    @property
    def total(self) -> int:
        """Total number of settings."""

    @property
    def c(self) -> float:
        """The weight of the loss."""

    @property
    def mean(self) -> float:
        """The mean of the first metric over the folds."""

def check_oracle(given: Any) -> str | None:
    """What is wrong with an oracle, or None."""

def command(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""

def load(path: _Path, task: str, items: _Path | None = None, settings: str = "{}") -> Dataset:
    """Read data in the same way as the command. The format is detected by content and name."""

def sentences(texts: Sequence[str], model: Model | None, settings: str) -> Dataset:
    """Read trees or, for a model, sentences; one in each text. The error names the text as a line of X."""

def ranks(scores: _Float, threshold: float) -> _Positions:
    """Rank of each item: 1 plus the number of items whose score is higher by more than the threshold."""

def resampled(
    model: Model, data: Dataset, resamples: int, seed: int = 0, threads: int = 0
) -> tuple[_Float, _Float, _Positions]:
    """Ends of the 95 % interval of the score of each training item, and ranks based on these."""

def evaluate(
    name: str,
    truth: _Float | _Codes,
    scores: _Float | None = None,
    groups: _Codes | None = None,
    weights: _Float | None = None,
    predictions: _Codes | None = None,
    classes: int = 2,
) -> float:
    """Compute a metric by name. With `predictions`, these and the truth are codes of `classes` classes."""

def _in_words(text: str, reading: bool) -> str:
    """The text in the words of Python, for tests."""

def _names() -> list[str]:
    """The names that references can have, for tests."""

def _panic() -> None:
    """Panic within the core, for the test that this becomes an ordinary exception."""

def tune(
    data: Dataset,
    settings: str,
    metrics: Sequence[str],
    folds: int,
    seed: int,
    costs: Sequence[float] | None = None,
    gammas: Sequence[float] | None = None,
    threads: int = 0,
    callback: Callable[[Tried], object] | None = None,
) -> tuple[Model, list[dict[str, Any]], int]:
    """Cross-validate settings and train with the best. Returns the model, a dictionary per setting and the best position."""

def train(
    data: Dataset, settings: str, threads: int = 0, callback: Callable[[Progress], object] | None = None
) -> Model:
    """Train a model on data with settings given as JSON."""

def train_oracle(
    given: Any,
    settings: str,
    name: str,
    threads: int = 1,
    callback: Callable[[Progress], object] | None = None,
    start: Model | None = None,
) -> tuple[Model, int, float]:
    """Train a model of an oracle and its examples, from another one if it is given.

    Returns the model, the number of searches and the seconds they took.
    """

def verify_oracle(given: Any, model: Model, threads: int = 1) -> tuple[float, float | None, float | None]:
    """Recompute objective, lower bound and gap of a model of an oracle. Raises an error if they do not hold."""
