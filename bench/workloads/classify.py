"""Classifiers compared with scikit-learn and LIBLINEAR: loading, training, and all from file to saved model."""

import os
import time

from .measure import DATA, best, in_child, maxmargin, simulated, train, unpacked

# The speed of the reader of LIBLINEAR's own program on such a machine. Its package has no program to run here.
LIBLINEAR_READER = 86e6

SOLVERS = {"hinge": 3, "squared-hinge": 1, "logistic": 7}


def text_file(rows):
    return simulated(f"text-{rows}.txt", "text", "--rows", rows)


def sklearn_load(path):
    from sklearn.datasets import load_svmlight_file

    start = time.perf_counter()
    load_svmlight_file(str(path), dtype="float32")
    return time.perf_counter() - start


def loading(rows):
    path = text_file(rows)
    size = path.stat().st_size
    cache = DATA / f"text-{rows}.mmd"

    def ours():
        result, peak = maxmargin("convert", path, "-o", cache, peak=True)
        return result["seconds"]["load"], result, peak

    seconds, _, peak = best(3, ours)
    stored = cache.stat().st_size
    peer, peer_peak = in_child(sklearn_load, path)
    opening = min(
        maxmargin("train", "classify", cache, "-o", os.devnull, "--max-passes", 1, "--intercept", "none")["seconds"][
            "load"
        ]
        for _ in range(3)
    )
    return {
        "workload": f"load {size / 1e9:.2f} GB of svmlight text, {rows:,} rows",
        "maxmargin seconds": seconds,
        "maxmargin GB/s": size / 1e9 / seconds,
        "scikit-learn seconds": peer,
        "times as fast as scikit-learn": peer / seconds,
        "times as fast as LIBLINEAR's reader at 86 MB/s": size / LIBLINEAR_READER / seconds,
        "peak memory over (mapped file + 1.3 x stored matrix)": peak / (size + 1.3 * stored),
        "peak memory beyond the mapped file, in stored matrices": (peak - size) / stored,
        "scikit-learn peak memory, in stored matrices": peer_peak / stored,
        "open the same data as .mmd, ms": opening * 1e3,
    }


def liblinear_train(path, loss, cost, tolerance):
    """Trains LIBLINEAR. Returns the seconds, and the objective of its weights by definition."""
    import numpy as np
    import scipy.sparse as sparse
    from liblinear.liblinearutil import parameter, problem
    from liblinear.liblinearutil import train as liblinear
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(str(path))
    x = sparse.csr_matrix(x)
    y = np.where(y > 0, 1.0, -1.0)
    prob = problem(y, x)
    flags = parameter(f"-s {SOLVERS[loss]} -c {cost} -e {tolerance} -q")
    seconds = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        model = liblinear(prob, flags)
        seconds = min(seconds, time.perf_counter() - start)
    weights = np.array(model.get_decfun(0)[0])
    margins = y * (x @ weights)
    slack = np.maximum(0, 1 - margins)
    losses = {"hinge": slack, "squared-hinge": slack**2, "logistic": np.logaddexp(0, -margins)}[loss]
    return seconds, float(0.5 * weights @ weights + cost * losses.sum())


def beside_liblinear(name, path, loss):
    (peer, peer_objective), _ = in_child(liblinear_train, path, loss, 1, 0.1)
    model = DATA / f"{path.stem}-{loss}.mm"
    start = time.perf_counter()
    seconds, result = train("classify", path, "-o", model, "--loss", loss, "--intercept", "none", "--tolerance", 1e-3)
    end_to_end = (time.perf_counter() - start) / 3
    size = path.stat().st_size
    return {
        "workload": f"{loss} on {name}, C = 1, no intercept, to a gap of 1e-3",
        "maxmargin seconds": seconds,
        "passes": result["passes"],
        "maxmargin objective": result["objective"],
        "proven gap": result["gap"],
        "LIBLINEAR -e 0.1 seconds": peer,
        "LIBLINEAR objective": peer_objective,
        "LIBLINEAR gap to our bound": (peer_objective - result["lower_bound"]) / peer_objective,
        "times as fast": peer / seconds,
        "from the file to the saved model, seconds (mean)": end_to_end,
        "times as fast as LIBLINEAR with its reader at 86 MB/s": (size / LIBLINEAR_READER + peer) / end_to_end,
    }


def training(rows):
    path = text_file(rows)
    results = [beside_liblinear(f"{rows:,} text rows", path, loss) for loss in SOLVERS]
    for folder, name in (("rcv1", "rcv1_binary_train.svm"), ("a9a", "a9a")):
        path = unpacked(folder, name)
        if path is not None:
            results += [beside_liblinear(folder, path, loss) for loss in ("hinge", "squared-hinge")]
    return results


def growth(sizes):
    """How seconds grow with the number of rows at a fixed lambda: the exponent between smallest and largest size."""
    import math

    points = []
    for rows in sizes:
        path = simulated(f"text-{rows}.mmd", "text", "--rows", rows)
        seconds, result = train("classify", path, "-o", os.devnull, "--lambda", 1e-5, "--intercept", "none")
        points.append((rows, seconds, result["passes"]))
    (few, quick, _), (many, slow, _) = points[0], points[-1]
    figures = {f"{rows:,} rows, seconds": seconds for rows, seconds, _ in points}
    figures |= {f"{rows:,} rows, passes": passes for rows, _, passes in points}
    return {
        "workload": "hinge on text at lambda = 1e-5, time to a gap of 1e-3 by rows",
        **figures,
        "exponent": math.log(slow / quick) / math.log(many / few),
    }


def predicting(rows):
    path = text_file(rows)
    model = DATA / f"text-{rows}-predict.mm"
    maxmargin("train", "classify", path, "-o", model, "--intercept", "none", "--tolerance", 0.1)
    size = path.stat().st_size

    def timed(*arguments):
        start = time.perf_counter()
        _, peak = maxmargin(*arguments, peak=True)
        return time.perf_counter() - start, peak

    seconds, peak = best(3, lambda: timed("predict", model, path, "-o", DATA / "scores.txt"))
    loading_seconds = min(maxmargin("convert", path, "-o", DATA / "predict.mmd")["seconds"]["load"] for _ in range(3))
    return {
        "workload": f"predict {rows:,} text rows, {size / 1e9:.2f} GB",
        "seconds": seconds,
        "GB/s": size / 1e9 / seconds,
        "times the seconds of loading alone": seconds / loading_seconds,
        "peak memory beside the mapped file, MB": (peak - size) / 1e6,
        "peak memory, MB": peak / 1e6,
    }
