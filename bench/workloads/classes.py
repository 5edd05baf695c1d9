"""Several classes and ratings beside LIBLINEAR, LIBSVM and skordinal: the same problem, objectives by definition.

A peer's stopping rule is no gap. It is tightened until the peer's objective is close enough to the optimum that ours
proves, and the time is that of the loosest rule that gets there.
"""

import os
import sys
import time

from .measure import BENCH, DATA, best, in_child, maxmargin, train, unpacked

#: The two packages of LIBLINEAR have one name. That for several cores is installed here.
MULTICORE = BENCH / ".multicore"

#: LIBLINEAR's stopping rules that are tried in turn, for small data and for large data: there, loose ones are far off.
RULES, FEW_RULES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-4, 1e-5), (0.03, 0.01, 0.003)

#: No further rule is tried after a training of so many seconds.
LONG = 120.0

#: An objective within this of the optimum has the quality that is timed; within the second it is the same optimum.
CLOSE, SAME = 1e-3, 1e-4


def loaded(path):
    """Features in the precision in which they are compared, and the class of each row as a position."""
    import numpy as np
    import scipy.sparse as sparse
    from sklearn.datasets import load_svmlight_file

    if path.suffix == ".npz":
        x = sparse.load_npz(path)
        y = np.load(path.with_suffix(".npy"))
    else:
        x, y = load_svmlight_file(str(path), dtype="float32")
    x = sparse.csr_matrix(x, dtype="float64")
    labels, codes = np.unique(y, return_inverse=True)
    return x, labels, codes


def summed(x, codes, weights, cost, loss):
    """½Σ‖w‖² + C·Σ loss by definition. The weights are (features, classes), their columns in the order of the codes."""
    import numpy as np

    total = 0.0
    for start in range(0, x.shape[0], 10_000):
        own = codes[start : start + 10_000]
        scores = x[start : start + 10_000] @ weights
        rows = np.arange(len(own))
        if loss == "joint":
            true = scores[rows, own].copy()
            scores[rows, own] = -np.inf
            total += np.maximum(0, 1 + scores.max(axis=1) - true).sum()
            continue
        signs = -np.ones_like(scores)
        signs[rows, own] = 1
        slack = np.maximum(0, 1 - signs * scores)
        total += (slack if loss == "hinge" else slack**2).sum()
    return float(0.5 * (weights**2).sum() + cost * total)


def of_model(path, data, cost, loss):
    """The objective of our weights by definition."""
    import numpy as np

    from maxmargin import Model

    x, labels, codes = loaded(data)
    model = Model.load(path)
    # Labels are in the order of numbers there too. The last columns may be empty in the data.
    assert [float(name) for name in model.classes] == labels.tolist()
    weights = np.zeros((x.shape[1], len(labels)))
    weights[: model.n_features] = model.weights.T
    return summed(x, codes, weights, cost, loss)


def liblinear_trained(data, flags, cost, loss, optimum, wanted, multicore):
    """Trains LIBLINEAR by one rule after the other. Returns (rule, seconds, objective) of each."""
    if multicore:
        sys.path.insert(0, str(MULTICORE))
    import numpy as np
    from liblinear.liblinearutil import parameter, problem
    from liblinear.liblinearutil import train as liblinear

    x, labels, codes = loaded(data)
    prob = problem(codes.astype(float), x)
    tried = []
    for rule in RULES if wanted == SAME else FEW_RULES:
        seconds = float("inf")
        for _ in range(2):
            start = time.perf_counter()
            model = liblinear(prob, parameter(f"{flags} -c {cost} -B -1 -e {rule} -q"))
            seconds = min(seconds, time.perf_counter() - start)
            if seconds > 2:
                break
        count = len(labels)
        stored = np.ctypeslib.as_array(model.w, (x.shape[1] * count,)).reshape(x.shape[1], count)
        weights = np.empty_like(stored)
        weights[:, np.array(model.get_labels(), dtype=int)] = stored
        objective = summed(x, codes, weights, cost, loss)
        tried.append((rule, seconds, objective))
        if objective <= optimum * (1 + wanted) or seconds > LONG:
            break
    return tried


def beside_liblinear(name, data, ours, peer, cost, flags, loss, arguments, wanted=CLOSE, multicore=False):
    """Time to the same quality. `ours` is the file for our command, `peer` that for LIBLINEAR."""
    model = DATA / f"{data}-{loss}.mm"
    arguments = ("classify", ours, "-o", model, "-c", cost, "--intercept", "none", *arguments)
    tight = maxmargin("train", *arguments, "--tolerance", 1e-5)
    optimum, _ = in_child(of_model, model, peer, cost, loss)
    tried, _ = in_child(liblinear_trained, peer, flags, cost, loss, optimum, wanted, multicore)
    seconds, result = train(*arguments, "--tolerance", CLOSE, "--threads", 2)
    objective, _ = in_child(of_model, model, peer, cost, loss)
    _, peer_best, closest = tried[-1]
    figures = {
        "workload": f"{name}, C = {cost:g}, no intercept",
        "maxmargin seconds to a gap of 1e-3": seconds,
        "passes": result["passes"],
        "proven gap": result["gap"],
        "its objective above the optimum, relative": objective / optimum - 1,
        "the optimum, proven to a gap of 1e-5": optimum,
        "the same as the command says, relative": tight["objective"] / optimum - 1,
    }
    for rule, took, reached in tried:
        figures[f"LIBLINEAR {flags} -e {rule:g} seconds"] = took
        figures[f"LIBLINEAR {flags} -e {rule:g} objective above the optimum"] = reached / optimum - 1
    reached = [took for _, took, value in tried if value <= optimum * (1 + CLOSE)]
    if reached:
        figures["times as fast to 1e-3"] = reached[0] / seconds
    else:
        figures["times as fast at least: LIBLINEAR did not reach 1e-3"] = peer_best / seconds
    if wanted == SAME:
        figures["the two optima differ, relative"] = abs(closest / optimum - 1)
    return figures


# --- Data


def text(rows, classes=100, words=50_000, topic=400, length=60):
    """Unit rows of log counts. Two in five words are of the topic of the class, the others of the whole language; both
    are drawn by Zipf's law. Returns our file and the peer's.
    """
    ours, peer = DATA / f"topics-{rows}.mmd", DATA / f"topics-{rows}.npz"
    if ours.exists() and peer.exists():
        return ours, peer
    import numpy as np
    import scipy.sparse as sparse

    from maxmargin import Dataset

    random = np.random.default_rng(1)
    topics = np.array([random.choice(words, topic, replace=False) for _ in range(classes)])
    y = random.integers(classes, size=rows)
    # A tenth of the rows has another class than its words say.
    said = np.where(random.random(rows) < 0.1, random.integers(classes, size=rows), y)

    def zipf(count, size):
        """Places by Zipf's law: the chance of place p is about 1 / p."""
        return (np.exp(random.random(size) * np.log(count + 1)) - 1).astype(np.int32).clip(0, count - 1)

    parts = []
    for start in range(0, rows, 20_000):
        own = said[start : start + 20_000]
        size = (len(own), length)
        found = np.where(random.random(size) < 0.4, topics[own[:, None], zipf(topic, size)], zipf(words, size))
        ones = np.ones(found.size, dtype=np.float32)
        part = sparse.csr_matrix(
            (ones, found.ravel(), np.arange(0, found.size + 1, length)), shape=(len(own), words), dtype=np.float32
        )
        part.sum_duplicates()
        part.data = np.log1p(part.data)
        norms = np.sqrt(np.asarray(part.multiply(part).sum(axis=1)).ravel())
        part.data /= np.repeat(norms, np.diff(part.indptr)).astype(np.float32)
        parts.append(part)
    x = sparse.vstack(parts, format="csr")
    starts, indices = x.indptr.astype(np.int64), x.indices.astype(np.int32)
    Dataset.sparse(starts, indices, x.data, words).with_targets(y.astype(np.float64)).save(ours)
    sparse.save_npz(peer, x, compressed=False)
    np.save(peer.with_suffix(".npy"), y)
    return ours, peer


def with_one_label(folder, name):
    """The rows of a file with exactly one label, written once."""
    source = unpacked(folder, name)
    if source is None:
        return None
    path = DATA / f"{folder}-one-label.svm"
    if not path.exists():
        with open(source) as lines, open(path, "w") as out:
            out.writelines(line for line in lines if line[0] != " " and "," not in line.split(" ", 1)[0])
    return path


# --- Workloads


def real(folder, name):
    path = unpacked(folder, name)
    return [(folder, path)] if path is not None else []


def joint(rows):
    """One problem over all classes (Crammer and Singer) beside LIBLINEAR -s 4."""
    files = [*real("letter", "letter.scale"), *real("usps", "usps.svm")]
    sets = [(name, path, path, 1.0, SAME) for name, path in files]
    one = with_one_label("reuters_modapte", "modapte90_train.svm")
    if one is not None:
        sets.append(("reuters_modapte, rows with one label", one, one, 1.0, SAME))
    sets.append((f"{rows:,} text rows of 100 classes", *text(rows), 1.0, CLOSE))
    return [
        beside_liblinear(
            f"joint: {name}", f"joint-{at}", ours, peer, cost, "-s 4", "joint", ("--multiclass", "joint"), wanted
        )
        for at, (name, ours, peer, cost, wanted) in enumerate(sets)
    ]


def one_vs_rest(rows):
    """Independent problems beside LIBLINEAR for several cores, both with two threads."""
    sets = [(name, path, path) for name, path in real("usps", "usps.svm")]
    sets.append((f"{rows:,} text rows of 100 classes", *text(rows)))
    return [
        beside_liblinear(
            f"one-vs-rest: {name}, {loss}",
            f"rest-{at}",
            ours,
            peer,
            1.0,
            f"{solver} -m 2",
            loss,
            ("--multiclass", "one-vs-rest", "--loss", loss),
            multicore=True,
        )
        for at, (name, ours, peer) in enumerate(sets)
        for loss, solver in (("squared-hinge", "-s 1"), ("hinge", "-s 3"))
    ]


def libsvm_trained(path, test, gamma, cost, threads):
    """Trains LIBSVM, one against one. Returns the seconds of training and prediction, and the predicted labels."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    from libsvm.svm import svm_problem
    from libsvm.svmutil import svm_parameter, svm_predict, svm_train
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(str(path))
    x_test, y_test = load_svmlight_file(str(test), n_features=x.shape[1])
    prob = svm_problem(y, x)
    start = time.perf_counter()
    model = svm_train(prob, svm_parameter(f"-c {cost} -g {gamma} -m 1000 -q"))
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    labels, _, _ = svm_predict(y_test, x_test, model, "-q")
    return seconds, time.perf_counter() - start, labels, y_test.tolist(), model.get_nr_sv()


def kernel_one_vs_one():
    """A Gaussian kernel for each pair of classes beside LIBSVM."""
    results = []
    for folder, name, tests, gamma, cost in (
        ("usps", "usps.svm", "usps.t.svm", 0.01, 10.0),
        ("letter", "letter.scale", "letter.scale.t", 0.5, 10.0),
    ):
        path, test = unpacked(folder, name), unpacked(folder, tests)
        if path is None or test is None:
            continue
        (peer, peer_predict, labels, truth, vectors), _ = in_child(libsvm_trained, path, test, gamma, cost, 2)
        model, answers = DATA / f"{folder}-pairs.mm", DATA / "pairs-answers.txt"
        flags = ("--multiclass", "one-vs-one", "--kernel", "gaussian", "--gamma", gamma, "-c", cost, "--threads", 2)
        seconds, result = train("classify", path, "-o", model, *flags, "--tolerance", CLOSE, times=2)

        def predict(model=model, test=test, answers=answers):
            start = time.perf_counter()
            maxmargin("predict", model, test, "-o", answers, "--threads", 2)
            return time.perf_counter() - start, None

        predicting, _ = best(2, predict)
        ours = [float(line.split("\t")[0]) for line in answers.read_text().splitlines()]
        results.append(
            {
                "workload": f"gaussian kernel, one-vs-one: {folder}, C = {cost:g}, gamma = {gamma:g}, two threads",
                "maxmargin seconds": seconds,
                "proven gap": result["gap"],
                "LIBSVM seconds, 1 GB of cache": peer,
                "times as fast": peer / seconds,
                "LIBSVM support vectors": vectors,
                "predict the test rows, file to answers, seconds": predicting,
                "LIBSVM predict seconds": peer_predict,
                "share of test rows predicted the same": sum(a == b for a, b in zip(ours, labels)) / len(ours),
                "maxmargin test accuracy": sum(a == b for a, b in zip(ours, truth)) / len(ours),
                "LIBSVM test accuracy": sum(a == b for a, b in zip(labels, truth)) / len(ours),
            }
        )
    return results


#: Sets of ratings, and the customary number of rows to train on.
RATINGS = {
    "abalone": ("abalone_ord.svm.gz", 1000),
    "housing": ("bostonhousing_ord.svm.gz", 300),
    "machine": ("machine_ord.svm.gz", 150),
    "auto": ("auto_ord.svm.gz", 200),
    "pyrim10": ("pyrim10.svm", 50),
}

#: The names of a form here and in skordinal.
FORMS = {"implicit": "SVOR-IM", "explicit": "SVOR-EX"}
SPLITS = 20


def rated(name):
    """Features and ranks of a set, or None if the data are missing."""
    from sklearn.datasets import load_svmlight_file

    from .measure import REAL

    path = REAL / "ordinal" / RATINGS[name][0]
    if not path.exists():
        return None
    x, y = load_svmlight_file(str(path))
    return x.toarray(), y.astype(int)


def splits(name):
    """Standardised features and ranks of the training and the test rows of each split."""
    import numpy as np

    x, y = rated(name)
    size = RATINGS[name][1]
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(y))
        learned, tested = order[:size], order[size:]
        spread = x[learned].std(axis=0)
        z = ((x - x[learned].mean(axis=0)) / np.where(spread > 0, spread, 1)).astype("float32")
        yield z[learned], y[learned], z[tested], y[tested]


def skordinal_errors(name, form, kernel, gamma):
    """The mean absolute error on each split, and the seconds of all trainings."""
    import numpy as np
    from skordinal.classifiers import SVOR

    errors, seconds = [], 0.0
    for x, y, x_test, y_test in splits(name):
        model = SVOR(C=1.0, kernel=kernel, gamma=gamma, constraints=form)
        start = time.perf_counter()
        model.fit(x.astype("float64"), y)
        seconds += time.perf_counter() - start
        errors.append(float(np.abs(model.predict(x_test.astype("float64")) - y_test).mean()))
    return errors, seconds


def written(path, x, y):
    """Rows as svmlight text that reads back as the same single precision."""
    with open(path, "w") as out:
        for row, rank in zip(x, y):
            out.write(f"{rank} " + " ".join(f"{at + 1}:{value:.9g}" for at, value in enumerate(row)) + "\n")
    return path


def our_errors(name, form, kernel):
    """The same with our command."""
    import numpy as np

    errors, seconds = [], 0.0
    model, answers = DATA / "ratings.mm", DATA / "ratings-answers.txt"
    for x, y, x_test, y_test in splits(name):
        learned, tested = written(DATA / "ratings.svm", x, y), written(DATA / "ratings-test.svm", x_test, y_test)
        result = maxmargin("train", "ordinal", learned, "-o", model, "--form", form, "-c", 1, *kernel)
        seconds += result["seconds"]["train"]
        maxmargin("predict", model, tested, "-o", answers)
        ranks = np.array([float(line.split("\t")[0]) for line in answers.read_text().splitlines()])
        errors.append(float(np.abs(ranks - y_test).mean()))
    return errors, seconds


def ordinal():
    """Ratings beside skordinal's SVOR with implicit and explicit constraints: paired errors over the same splits."""
    results = []
    for name, (_, size) in RATINGS.items():
        data = rated(name)
        if data is None:
            continue
        gamma = 1 / data[0].shape[1]
        for kernel, ours in (("linear", ()), ("rbf", ("--kernel", "gaussian", "--gamma", gamma))):
            for form, known in FORMS.items():
                (theirs, peer_seconds), _ = in_child(skordinal_errors, name, form, kernel, gamma)
                own, seconds = our_errors(name, form, ours)
                case = f"{name}, {size} rows, {form}, {kernel}"
                results.append(compared(case, known, own, theirs, seconds, peer_seconds))
    return results


def compared(name, known, own, theirs, seconds, peer_seconds):
    """Errors of two programs over the same splits, with Student's test of their mean difference."""
    import numpy as np

    own, theirs = np.array(own), np.array(theirs)
    difference = own - theirs
    spread = difference.std(ddof=1) / np.sqrt(len(difference))
    return {
        "workload": f"ordinal: {name}, C = 1, {len(own)} splits",
        "maxmargin mean absolute error": own.mean(),
        f"{known} mean absolute error": theirs.mean(),
        "mean difference": difference.mean(),
        "its standard error": spread,
        "standard errors above zero (above 2: worse)": difference.mean() / spread if spread > 0 else 0.0,
        "splits with a smaller error": int((difference < 0).sum()),
        "splits with a larger error": int((difference > 0).sum()),
        "maxmargin seconds of all trainings": seconds,
        f"{known} seconds of all trainings": peer_seconds,
        "times as fast": peer_seconds / seconds,
    }
