"""The core: data sets, models and what makes them. What is here is used through the package."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Dataset",
    "Learner",
    "MaxmarginError",
    "Model",
    "Progress",
    "Tried",
    "__version__",
    "_in_words",
    "_names",
    "_panic",
    "command",
    "evaluate",
    "load",
    "ranks",
    "resampled",
    "train",
    "tune",
]

__version__: Final[str]

_Float: TypeAlias = npt.NDArray[np.float64]
_Reals: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
_Codes: TypeAlias = npt.NDArray[np.uint32]
_Signs: TypeAlias = npt.NDArray[np.int8]
_Positions: TypeAlias = npt.NDArray[np.int64]
_Path: TypeAlias = str | os.PathLike[str]

class MaxmarginError(ValueError):
    """What is wrong with data, settings or a model; `code` is stable and `remedy` says what to do."""

    code: str
    remedy: str | None

@final
class Dataset:
    """Features with targets, queries, weights and comparisons, in memory or mapped from a file."""

    @staticmethod
    def dense(array: _Reals, *, checked: bool = False) -> Dataset:
        """Rows of a C-contiguous array of f32 or f64, shared. `checked` says that all of them are known to be finite."""

    @staticmethod
    def sparse(
        starts: npt.NDArray[np.int32] | npt.NDArray[np.int64],
        indices: npt.NDArray[np.int32],
        values: _Reals,
        columns: int,
        *,
        checked: bool = False,
    ) -> Dataset:
        """Compressed sparse rows: 32-bit indices and values are shared. `checked` says that all values are known to be finite."""

    def with_targets(self, targets: _Float) -> Dataset:
        """The same with a number for each row."""

    def with_labels(self, codes: _Codes, names: Sequence[str]) -> Dataset:
        """The same with a label for each row, as a position among sorted names."""

    def with_weights(self, weights: _Float) -> Dataset:
        """The same with a weight for each row."""

    def with_groups(self, codes: _Codes, names: Sequence[str]) -> Dataset:
        """The same with the query of each row, as a position among names; rows of a query are moved together."""

    def with_pairs(self, left: _Codes, right: _Codes, outcomes: _Signs, weights: _Float | None = None) -> Dataset:
        """The same with comparisons of two rows each; outcomes are -1 (left is better), 0 (a tie) or 1."""

    def with_feature_names(self, names: Sequence[str]) -> Dataset:
        """The same with a name for each column."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def layout(self) -> str:
        """How the features are stored."""

    @property
    def nbytes(self) -> int:
        """Bytes of the features."""

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns, where there are any."""

    @property
    def row_ids(self) -> list[str] | None:
        """Ids of the rows, where there are any."""

    @property
    def n_queries(self) -> int | None:
        """How many queries there are, where there are any."""

    @property
    def n_pairs(self) -> int | None:
        """How many comparisons there are, where there are any."""

    @property
    def targets(self) -> _Float | list[str] | None:
        """The target of each row: numbers, or labels, or none."""

    @property
    def qid(self) -> _Codes | None:
        """The query of each row as a position among all queries, where there are any."""

    @property
    def weights(self) -> _Float | None:
        """The weight of each row, where they have any."""

    @property
    def pairs(self) -> tuple[_Codes, _Codes, _Signs] | None:
        """The comparisons: left rows, right rows, outcomes."""

    def variance(self) -> float:
        """The variance of all feature values, zeros among them, each row counting as its weight."""

    @property
    def hash(self) -> int:
        """The hash over all values, which certificates name."""

    @property
    def notes(self) -> list[str]:
        """What the reader found about the file, in short phrases."""

    def save(self, path: _Path) -> None:
        """Writes the data; the extension tells the format (.mmd is the cache)."""

    def __len__(self) -> int:
        """Rows."""

@final
class Model:
    """What was learned, how close to optimal it is, and files of it."""

    @staticmethod
    def load(path: _Path) -> Model:
        """Reads a model file."""

    @staticmethod
    def from_bytes(content: bytes) -> Model:
        """The model that the content of a file holds."""

    def save(self, path: _Path) -> None:
        """Writes a model file, as a whole or not at all."""

    def to_bytes(self) -> bytes:
        """The content of a model file."""

    def without_witness(self) -> Model:
        """The same without what proves the lower bound, which saves space."""

    def __reduce__(self) -> tuple[Callable[[bytes], Model], tuple[bytes]]:
        """Pickles and copies are the content of a file."""

    def scores(self, data: Dataset, threads: int = 0) -> _Float:
        """The score of each row, in the order given."""

    def outcomes(self, data: Dataset) -> _Signs:
        """The outcome of each comparison of the data: -1 (left is better), 0 (a tie) or 1."""

    def verify(self, data: Dataset) -> tuple[float, float | None, float | None]:
        """Recomputes objective, lower bound and gap from the training data; an error where they do not hold."""

    def support(self, data: Dataset, threads: int = 0) -> _Positions | None:
        """Positions of the rows, or pairs, of the training data that have a part in the solution."""

    @property
    def task(self) -> str:
        """What the task is called."""

    @property
    def settings(self) -> str:
        """The settings, as JSON."""

    @property
    def weights(self) -> _Float | None:
        """The weights of the (scaled) features, where there are any."""

    @property
    def dual_coef(self) -> _Float | None:
        """One number a support vector, where there is a kernel."""

    @property
    def gamma(self) -> float | None:
        """The kernel's γ, given or found, where it has one."""

    @property
    def intercept(self) -> float | None:
        """The constant term."""

    @property
    def tie_width(self) -> float | None:
        """The difference of scores up to which neither of two rows is better, where ties are told."""

    @property
    def threshold(self) -> float | None:
        """The threshold that was learned together with the scores."""

    @property
    def classes(self) -> tuple[str, str] | None:
        """The labels of a negative and a positive score."""

    @property
    def n_features(self) -> int:
        """How many features it knows."""

    @property
    def feature_names(self) -> list[str] | None:
        """What they are called, where they have names."""

    @property
    def objective(self) -> float:
        """The objective reached."""

    @property
    def lower_bound(self) -> float | None:
        """A proven lower bound on the optimum, where the method gives one."""

    @property
    def gap(self) -> float | None:
        """(objective − lower bound) / objective."""

    @property
    def converged(self) -> bool:
        """Whether the gap reached the tolerance."""

    @property
    def passes(self) -> int:
        """Passes made."""

    @property
    def constraints(self) -> int:
        """Margin constraints."""

    @property
    def c(self) -> float:
        """The weight of the sum of losses, given or found."""

    @property
    def data_hash(self) -> int:
        """The hash of the training data."""

    @property
    def solver(self) -> str | None:
        """The solver that made it, where its file says so."""

    @property
    def stalled(self) -> bool:
        """Whether no step improved the objective any more, at the limit of double precision."""

    @property
    def stopped_early(self) -> bool:
        """Whether the solver was asked to stop before the tolerance."""

    @property
    def finished(self) -> bool:
        """Whether the solver is one that makes the passes asked for and proves nothing."""

    @property
    def trace(self) -> list[tuple[int, float, float | None, float]]:
        """Pass, objective, lower bound and seconds of each pass."""

    @property
    def confusion(self) -> list[list[int]] | None:
        """How often each outcome (row: left, tie, right) was foretold as each (column), of a model from a stream."""

    def _repr_html_(self) -> str: ...

@final
class Learner:
    """Learns from one pair after the other."""

    def __new__(cls, settings: str, model: Model | None = None) -> Learner: ...
    def learn(self, data: Dataset) -> None:
        """Learns from all comparisons of the data, in order. An error leaves what was learned before."""

    def model(self, feature_names: Sequence[str] | None = None) -> Model:
        """What has been learned so far."""

    @property
    def weights(self) -> _Float:
        """The weights to predict with."""

    @property
    def threshold(self) -> float:
        """The threshold to predict with."""

    @property
    def pairs(self) -> int:
        """Pairs learned from."""

    @property
    def errors(self) -> tuple[float | None, float | None]:
        """The share of pairs that were foretold wrongly before they were learned from: of all, and of the last ones."""

@final
class Progress:
    """A pass over the data, as a callback sees it."""

    @property
    def iteration(self) -> int:
        """Passes so far."""

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
    def coef(self) -> _Float:
        """The weights of that model."""

@final
class Tried:
    """A setting that was tried, as a callback sees it."""

    @property
    def done(self) -> int:
        """Settings tried so far."""

    @property
    def total(self) -> int:
        """Settings in all."""

    @property
    def c(self) -> float:
        """The weight of the loss."""

    @property
    def mean(self) -> float:
        """The mean of the first metric over the folds."""

def command(arguments: Sequence[str]) -> int:
    """Runs the command line and returns its exit code."""

def load(path: _Path, task: str, items: _Path | None = None, settings: str = "{}") -> Dataset:
    """Reads data as the command does: the format is found by content and name."""

def ranks(scores: _Float, threshold: float) -> _Positions:
    """The rank of each item: 1 and the number of items whose score is higher by more than the threshold."""

def resampled(
    model: Model, data: Dataset, resamples: int, seed: int = 0, threads: int = 0
) -> tuple[_Float, _Float, _Positions]:
    """Of the items of a model's training data: ends of the 95 % interval of each score, and ranks by these."""

def evaluate(
    name: str,
    truth: _Float | _Codes,
    scores: _Float | None = None,
    groups: _Codes | None = None,
    weights: _Float | None = None,
    predictions: _Codes | None = None,
    classes: int = 2,
) -> float:
    """The value of a metric by name; with `predictions` these and truth are codes of so many classes."""

def _in_words(text: str, reading: bool) -> str:
    """The text in the words of Python, for tests."""

def _names() -> list[str]:
    """The names that references can have, for tests."""

def _panic() -> None:
    """Panics within the core, for the test that this is an exception like any other."""

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
    """Cross-validates settings and learns by the best: the model, one dictionary a setting, the position of the best."""

def train(
    data: Dataset, settings: str, threads: int = 0, callback: Callable[[Progress], object] | None = None
) -> Model:
    """Learns a model from data by settings as JSON."""
