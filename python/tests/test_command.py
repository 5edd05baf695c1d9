"""The command of the package. Its models equal those of the estimators, byte for byte."""

import json
import subprocess
import sys

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import maxmargin
from maxmargin import Model, SVMClassifier, SVMComparator, SVMRanker

ROWS, COLUMNS = 120, 6
NAMES = ["age", "height", "weekly hours", "a", "b", "c"]
PRECISIONS = {"f32": np.float32, "f64": np.float64}


def command(*arguments, code=0):
    """The output of the command, run in its own process."""
    words = [sys.executable, "-m", "maxmargin", *(str(argument) for argument in arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def dense(dtype=np.float64, rows=ROWS):
    """Numbers without zeros. Those in float64 are not exact in float32."""
    generator = np.random.default_rng(31)
    values = (
        (generator.integers(1, 99, size=(rows, COLUMNS)) - 0.5) / 16 * generator.choice([-1, 1], size=(rows, COLUMNS))
    )
    return values.astype(dtype) if dtype == np.float32 else np.round(values / 3, 9)


def thin(dtype=np.float64):
    """Wide rows, nearly all zero, with an entry in the last column."""
    generator = np.random.default_rng(32)
    values = (generator.integers(1, 99, size=(ROWS, 200)) - 0.5) / 16 * (generator.random(size=(ROWS, 200)) < 0.05)
    values[0, -1] = values[0, 0] = 1.0
    return sparse.csr_array(values.astype(dtype))


def classes():
    generator = np.random.default_rng(33)
    return np.where(dense() @ np.arange(-2, 4) + generator.normal(size=ROWS) > 0, 1, -1)


def grades():
    generator = np.random.default_rng(34)
    return np.clip(np.round(dense() @ np.arange(-2, 4) / 3 + generator.normal(size=ROWS)), 0, 4).astype(int)


def queries():
    return np.sort(np.random.default_rng(35).integers(1, 9, size=ROWS))


def svmlight(path, X, y, qid=None):
    dump_svmlight_file(X, y, str(path), zero_based=False, query_id=qid)
    return path


def csv(path, X, **more):
    table = pandas.DataFrame(X.astype(np.float64), columns=NAMES)
    for name, values in more.items():
        table[name] = values
    table.to_csv(path, index=False, float_format="%.17g")
    return path


def as_table(X):
    return pandas.DataFrame(X, columns=NAMES)


def header(path):
    """The header of a model file."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    found = json.loads(content[8 : 8 + length])
    return {**json.loads(found.pop("__metadata__")["maxmargin"]), "tensors": found}


def same_file(found, expected):
    assert header(found) == header(expected)
    assert found.read_bytes() == expected.read_bytes()


def same_bytes(tmp_path, task, file, flags, estimator, *data, precision="f32", **more):
    """Trains with the command and with an estimator, on arrays and on the file, and compares the saved models."""
    expected = tmp_path / "command.mm"
    stored = [] if precision == "f32" else ["--precision", precision]
    command("train", task, file, "-o", expected, "--quiet", *stored, *flags)
    for jobs in (1, 2):
        estimator.set_params(n_jobs=jobs).fit(*data, **more)
        estimator.save(tmp_path / "arrays.mm")
        same_file(tmp_path / "arrays.mm", expected)
    scores = Model.load(expected).scores(maxmargin.load(file, task=task, precision=precision))
    estimator.fit(maxmargin.load(file, task=task, precision=precision)).save(tmp_path / "file.mm")
    same_file(tmp_path / "file.mm", expected)
    told = json.loads(command("verify", tmp_path / "arrays.mm", file, *stored, "--json").stdout)
    assert told["objective"] == pytest.approx(estimator.objective_, rel=1e-9)
    return scores


#: Settings of a classifier: parameters of the estimator, flags of the command.
CLASSIFY = {
    "as it is": ({}, []),
    "squared hinge": ({"loss": "squared_hinge"}, ["--loss", "squared-hinge"]),
    "logistic": ({"loss": "logistic"}, ["--loss", "logistic"]),
    "C": ({"C": 0.25, "tol": 1e-5}, ["-c", "0.25", "--tolerance", "1e-5"]),
    "penalised intercept": ({"intercept": "penalised"}, ["--intercept", "penalised"]),
    "no intercept": ({"intercept": "none"}, ["--intercept", "none"]),
    "f1": ({"optimize": "f1", "C": 0.5}, ["--optimize", "f1", "-c", "0.5"]),
    "area": ({"optimize": "auc", "intercept": "none"}, ["--optimize", "auc", "--intercept", "none"]),
    "balanced": ({"class_weight": "balanced"}, ["--class-weight", "balanced"]),
    "class weights": ({"class_weight": {-1: 2.0, 1: 0.5}}, ["--class-weight", "-1=2,1=0.5"]),
    "scaled": ({"scale": "standard"}, ["--scale", "standard"]),
    "seed": (
        {"random_state": 7, "solver": "dual_coordinate_descent", "tol": 0.05},
        ["--seed", "7", "--solver", "dual-coordinate-descent", "--tolerance", "0.05"],
    ),
    "interior point": ({"solver": "interior_point"}, ["--solver", "interior-point"]),
    "sgd": ({"solver": "averaged-sgd", "max_iter": 5}, ["--solver", "averaged-sgd", "--max-passes", "5"]),
    "gaussian": ({"kernel": "rbf", "gamma": 0.125}, ["--kernel", "gaussian", "--gamma", "0.125"]),
    "gaussian, width found": ({"kernel": "rbf", "gamma": None}, ["--kernel", "gaussian"]),
    "polynomial": (
        {"kernel": "poly", "gamma": 0.01, "degree": 2, "coef0": 1.0},
        ["--kernel", "polynomial", "--gamma", "0.01", "--degree", "2", "--coef0", "1"],
    ),
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", CLASSIFY)
def test_a_classifier_of_svmlight_text_is_the_estimator(tmp_path, case, precision):
    parameters, flags = CLASSIFY[case]
    X = dense(PRECISIONS[precision])
    file = svmlight(tmp_path / "train.svm", X, classes())
    classifier = SVMClassifier(**parameters)
    scores = same_bytes(tmp_path, "classify", file, flags, classifier, X, classes(), precision=precision)
    assert scores.tobytes() == classifier.fit(X, classes()).decision_function(X).tobytes()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", ["as it is", "squared hinge", "logistic", "gaussian"])
def test_a_classifier_of_sparse_text_is_the_estimator(tmp_path, case, precision):
    parameters, flags = CLASSIFY[case]
    X = thin(PRECISIONS[precision])
    file = svmlight(tmp_path / "train.svm", X, classes())
    same_bytes(tmp_path, "classify", file, flags, SVMClassifier(**parameters), X, classes(), precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_classifier_of_csv_with_words_and_weights_is_the_estimator(tmp_path, precision):
    X, words = dense(PRECISIONS[precision]), np.where(classes() > 0, "spam", "ham")
    weights = np.random.default_rng(36).integers(0, 4, size=ROWS) / 2
    for more, estimator in (({}, SVMClassifier()), ({"sample_weight": weights}, SVMClassifier(loss="logistic"))):
        columns = {"weight": weights} if more else {}
        file = csv(tmp_path / "train.csv", X, **columns, label=words)
        flags = ["--loss", "logistic"] if more else []
        same_bytes(tmp_path, "classify", file, flags, estimator, as_table(X), words, precision=precision, **more)
        assert estimator.classes_.tolist() == ["ham", "spam"]


def test_class_weights_by_word_are_the_same(tmp_path):
    X, words = dense(np.float32), np.where(classes() > 0, "spam", "ham")
    file = csv(tmp_path / "train.csv", X, label=words)
    classifier = SVMClassifier(class_weight={"ham": 3.0})
    same_bytes(tmp_path, "classify", file, ["--class-weight", "ham=3"], classifier, as_table(X), words)


def test_numbers_and_bools_in_csv_are_the_same(tmp_path):
    X = dense(np.float32)
    for y in (classes(), classes() > 0, np.where(classes() > 0, 2, 1)):
        file = csv(tmp_path / "train.csv", X, label=np.asarray(y).astype(int))
        same_bytes(tmp_path, "classify", file, [], SVMClassifier(), as_table(X), y)


RANK = {
    "as it is": ({}, []),
    "hinge": ({"loss": "hinge"}, ["--loss", "hinge"]),
    "map": ({"optimize": "map", "C": 10}, ["--optimize", "map", "-c", "10"]),
    "ndcg": ({"optimize": "ndcg@5", "order_score": "sum"}, ["--optimize", "ndcg@5", "--order-score", "sum"]),
    "per query": ({"pair_weight": "per-query", "C": 10}, ["--pair-weight", "per-query", "-c", "10"]),
    "scaled by query": ({"scale": "min-max-per-query"}, ["--scale", "min-max-per-query"]),
    "gaussian": ({"kernel": "rbf", "gamma": 0.125}, ["--kernel", "gaussian", "--gamma", "0.125"]),
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", RANK)
def test_a_ranker_of_svmlight_text_is_the_estimator(tmp_path, case, precision):
    parameters, flags = RANK[case]
    X = dense(PRECISIONS[precision])
    file = svmlight(tmp_path / "train.svm", X, grades(), queries())
    more = {"precision": precision, "qid": queries()}
    scores = same_bytes(tmp_path, "rank", file, flags, SVMRanker(**parameters), X, grades(), **more)
    ranker = SVMRanker(**parameters).fit(X, grades(), qid=queries())
    assert scores.tobytes() == ranker.model_.scores(ranker._dataset(X, grades(), qid=queries())).tobytes()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_ranker_of_sparse_text_is_the_estimator(tmp_path, precision):
    X = thin(PRECISIONS[precision])
    file = svmlight(tmp_path / "train.svm", X, grades(), queries())
    same_bytes(tmp_path, "rank", file, [], SVMRanker(), X, grades(), precision=precision, qid=queries())


def test_a_ranker_of_scattered_queries_in_csv_is_the_estimator(tmp_path):
    X, qid = dense(np.float32), np.random.default_rng(37).permutation(queries())
    words = np.array([f"query {name}" for name in qid])
    file = csv(tmp_path / "train.csv", X, qid=words, grade=grades())
    table = as_table(X)
    same_bytes(tmp_path, "rank", file, [], SVMRanker(), table, grades(), qid=words)
    table["query"] = words
    same_bytes(tmp_path, "rank", file, [], SVMRanker(), table, grades(), qid="query")


def wide_csv(path, left, right, outcomes, **more):
    table = pandas.DataFrame(
        {
            **{f"left.{name}": left[:, position].astype(np.float64) for position, name in enumerate(NAMES)},
            **{f"right.{name}": right[:, position].astype(np.float64) for position, name in enumerate(NAMES)},
            "outcome": outcomes,
            **more,
        }
    )
    table.to_csv(path, index=False, float_format="%.17g")
    return path


def comparisons(dtype):
    X = dense(dtype)
    left, right, generator = X[:60], X[60:], np.random.default_rng(38)
    difference = (right - left) @ np.arange(-2, 4) + generator.normal(size=60)
    return left, right, np.where(np.abs(difference) < 5, 0, np.sign(difference)).astype(int)


COMPARE = {
    "as it is": ({}, []),
    "squared hinge": ({"loss": "squared_hinge"}, ["--loss", "squared-hinge"]),
    "logistic": ({"loss": "logistic"}, ["--loss", "logistic"]),
    "rank": ({"method": "rank"}, ["--method", "rank"]),
    "rank2": ({"method": "rank2"}, ["--method", "rank2"]),
    "gaussian": ({"kernel": "rbf", "gamma": 0.125}, ["--kernel", "gaussian", "--gamma", "0.125"]),
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", COMPARE)
def test_a_comparator_of_wide_csv_is_the_estimator(tmp_path, case, precision):
    parameters, flags = COMPARE[case]
    left, right, y = comparisons(PRECISIONS[precision])
    file = wide_csv(tmp_path / "pairs.csv", left, right, np.array(["left", "tie", "right"])[y + 1])
    comparator = SVMComparator(**parameters)
    same_bytes(tmp_path, "compare", file, flags, comparator, as_table(left), as_table(right), y, precision=precision)


def test_a_comparator_with_weights_is_the_estimator(tmp_path):
    left, right, y = comparisons(np.float32)
    weights = np.random.default_rng(39).integers(1, 4, size=60) / 2
    file = wide_csv(tmp_path / "pairs.csv", left, right, y, weight=weights)
    more = {"sample_weight": weights}
    same_bytes(tmp_path, "compare", file, [], SVMComparator(), as_table(left), as_table(right), y, **more)


def lines(text):
    return [line.split("\t") for line in text.splitlines()]


def test_the_command_predicts_by_models_of_estimators(tmp_path):
    X = dense(np.float32)
    words = np.where(classes() > 0, "spam", "ham")
    classifier = SVMClassifier().fit(as_table(X), words)
    classifier.save(tmp_path / "model.mm")
    file = csv(tmp_path / "new.csv", X, label=words)
    found = lines(command("predict", tmp_path / "model.mm", file, "--quiet").stdout)
    assert [label for label, _ in found] == classifier.predict(as_table(X)).tolist()
    assert [float(score) for _, score in found] == classifier.decision_function(as_table(X)).tolist()


def test_the_command_scores_by_models_of_rankers(tmp_path):
    X = dense(np.float32)
    ranker = SVMRanker().fit(X, grades(), qid=queries())
    ranker.save(tmp_path / "model.mm")
    file = svmlight(tmp_path / "new.svm", X, grades(), queries())
    found = lines(command("predict", tmp_path / "model.mm", file, "--quiet").stdout)
    assert [float(score) for (score,) in found] == ranker.predict(X).tolist()


def test_the_command_compares_by_models_of_comparators(tmp_path):
    left, right, y = comparisons(np.float32)
    comparator = SVMComparator().fit(as_table(left), as_table(right), y)
    comparator.save(tmp_path / "model.mm")
    file = wide_csv(tmp_path / "new.csv", left, right, y)
    found = lines(command("predict", tmp_path / "model.mm", file, "--quiet").stdout)
    outcomes = np.array(["left", "tie", "right"])[comparator.compare(as_table(left), as_table(right)) + 1]
    assert [line[0] for line in found] == outcomes.tolist()


def test_verify_refuses_other_data(tmp_path):
    X = dense(np.float32)
    SVMClassifier().fit(X, classes()).save(tmp_path / "model.mm")
    file = svmlight(tmp_path / "other.svm", -X, classes())
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", "verify", tmp_path / "model.mm", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0 and "MM" in done.stderr


def test_the_version_is_that_of_the_package():
    assert command("--version").stdout == f"maxmargin {maxmargin.__version__}\n"


def test_help_is_on_standard_output():
    done = command("--help")
    assert "Usage: maxmargin" in done.stdout and not done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["no-such-command"], 2),
        ([], 2),
        (["train", "classify", "nothing.svm", "-o", "model.mm"], 2),
        (["explain", "MM0401"], 0),
    ],
)
def test_the_exit_code_says_how_it_went(tmp_path, monkeypatch, arguments, code):
    monkeypatch.chdir(tmp_path)
    done = command(*arguments, code=code)
    assert bool(done.stderr) == (code != 0)


def test_json_is_one_object_on_standard_output(tmp_path):
    file = svmlight(tmp_path / "train.svm", dense(), classes())
    found = json.loads(command("train", "classify", file, "-o", tmp_path / "model.mm", "--json").stdout)
    model = Model.load(tmp_path / "model.mm")
    assert found["objective"] == model.objective
    wrong = command("verify", tmp_path / "none.mm", file, "--json", code=2)
    assert "none.mm" in wrong.stderr + wrong.stdout


def test_a_closed_pipe_is_no_error(tmp_path):
    file = svmlight(tmp_path / "train.svm", dense(), classes())
    SVMClassifier().fit(dense(np.float32), classes()).save(tmp_path / "model.mm")
    words = [sys.executable, "-m", "maxmargin", "predict", str(tmp_path / "model.mm"), str(file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        process.wait()
        assert "panicked" not in process.stderr.read()
