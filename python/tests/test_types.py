"""Types: the package passes strict checks, its stubs match the extension module, and users' programs are checked."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

RIGHT = """
import numpy as np
import numpy.typing as npt

import maxmargin
from maxmargin import Dataset, Model, PAComparator, Progress, SVMClassifier, SVMComparator, SVMRanker, StructuredSVM, Tuned, metrics


def enough(progress: Progress) -> bool:
    return progress.gap is not None and progress.gap < 0.1


X = np.eye(4)
classifier = SVMClassifier(C=2.0, kernel="rbf", gamma=0.5, callback=enough).fit(X, [0, 0, 1, 1])
margins: npt.NDArray[np.float64] = classifier.decision_function(X)
bound: float | None = classifier.lower_bound_
model: Model = classifier.model_
ranker: SVMRanker = SVMRanker().fit(X, [0, 1, 0, 1], qid=[1, 1, 2, 2])
quality: float = metrics.ndcg_score([0, 1], ranker.predict(X[:2]), k=10)
comparator = SVMComparator().fit(X, X[::-1], ["left", "tie", "right", "tie"])
ranks: npt.NDArray[np.int64] = comparator.rank(X)
stream: PAComparator = PAComparator(kappa=0.0).partial_fit(X, X, [0, 0, 0, 0])
data: Dataset = maxmargin.load("train.svm", task="classify")
rows, columns = data.shape
found: Tuned = maxmargin.tune(SVMClassifier(), X, [0, 1, 0, 1], C=[0.1, 1.0], cv=2)
best: dict[str, float] = found.best_params


class Sign:
    def joint_feature(self, x: float, y: int) -> list[float]:
        return [x * y]

    def loss(self, y_true: int, y: int) -> float:
        return float(y_true != y)

    def most_violated(self, x: float, y_true: int, w: npt.NDArray[np.float64]) -> int:
        return -y_true

    def predict(self, x: float, w: npt.NDArray[np.float64]) -> int:
        return 1 if x * w[0] > 0 else -1


maxmargin.check_oracle(Sign(), [1.0], [1])
structured: StructuredSVM = StructuredSVM(Sign(), C=2.0).fit([1.0, -1.0], [1, -1])
calls: int = structured.n_calls_
try:
    Model.load("a.mm")
except maxmargin.MaxmarginError as error:
    code: str = error.code
"""

#: A statement for each kind of error, and its name in mypy.
WRONG = {
    "SVMClassifier(C='one')": "arg-type",
    "SVMRanker(margin=1.0)": "call-arg",
    "PAComparator().partial_fit()": "call-arg",
    "maxmargin.load('train.svm', task=1)": "arg-type",
    "maxmargin.load('train.svm').rows": "attr-defined",
    "SVMClassifier(callback=len)": "arg-type",
    "SVMClassifier().lower_bound_ + 1.0": "operator",
    "metrics.ndcg_score([0, 1], [0.0, 1.0], k='all')": "arg-type",
    "model.objective = 0.0": "misc",
    "StructuredSVM(X)": "arg-type",
}


def mypy(*arguments: str, within: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=within, check=False)


def test_the_package_passes_the_strict_checker():
    found = mypy("mypy", "--strict", "-p", "maxmargin", within=ROOT)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_stubs_are_in_step_with_the_extension_module(tmp_path):
    # Run from another folder, so that the installed module is tested.
    found = mypy("mypy.stubtest", "maxmargin._core", within=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr


def test_a_right_program_passes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RIGHT)
    found = mypy("mypy", "--strict", str(program), within=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_mistake_of_a_wrong_program_is_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RIGHT + "\n".join(WRONG) + "\n")
    found = mypy("mypy", "--strict", str(program), within=tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    first = RIGHT.count("\n") + 1
    for line, (mistake, kind) in enumerate(WRONG.items(), start=first):
        told = [text for text in found.stdout.splitlines() if f"program.py:{line}: error" in text]
        assert any(f"[{kind}]" in text for text in told), (
            f"{mistake} at line {line} is not told as {kind}:\n{found.stdout}"
        )
