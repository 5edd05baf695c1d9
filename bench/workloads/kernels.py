"""Kernel machines compared with LIBSVM: the same kernel and C, with both objectives recomputed by definition."""

import os
import time

from .measure import DATA, best, in_child, maxmargin, train, unpacked


def libsvm_train(path, gamma, cost, cache, threads):
    """Trains and predicts with LIBSVM. Returns both times, its objective by definition, and the signs of its scores."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import numpy as np
    from libsvm.svm import svm_problem
    from libsvm.svmutil import svm_parameter, svm_predict, svm_train
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(str(path))
    y = np.where(y > 0, 1.0, -1.0)
    problem = svm_problem(y, x)
    flags = svm_parameter(f"-c {cost} -g {gamma} -m {cache} -q")
    start = time.perf_counter()
    model = svm_train(problem, flags)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    labels, _, scores = svm_predict(y, x, model, "-q")
    predicting = time.perf_counter() - start
    # The scores of LIBSVM are positive for the first label in the data.
    sign = 1.0 if model.get_labels()[0] > 0 else -1.0
    scores = sign * np.array(scores)[:, 0]
    coefficients = sign * np.array(model.get_sv_coef())[:, 0]
    vectors = np.array(model.get_sv_indices()) - 1
    threshold = -sign * model.rho[0]
    square = float(coefficients @ (scores[vectors] - threshold))
    objective = 0.5 * square + cost * float(np.maximum(0, 1 - y * scores).sum())
    return seconds, predicting, objective, [int(score > 0) for score in scores]


def one_against_the_rest(folder, name, label):
    """A data set of several classes as one class against the rest, written once."""
    source = unpacked(folder, name)
    if source is None:
        return None
    path = DATA / f"{folder}-{label}.svm"
    if not path.exists():
        with open(source) as lines, open(path, "w") as out:
            for line in lines:
                own, rest = line.split(" ", 1)
                out.write(f"{1 if float(own) == label else -1} {rest}")
    return path


def dense(rows, columns, noise):
    """Dense rows with labels from a noisy quadratic rule; most of them become support vectors."""
    path = DATA / f"dense-{rows}x{columns}.svm"
    if not path.exists():
        import numpy as np

        random = np.random.default_rng(1)
        x = random.normal(size=(rows, columns)).astype("float32")
        score = (x[:, :5] ** 2).sum(1) - 5 + x[:, 5:10].sum(1) + noise * random.normal(size=rows)
        with open(path, "w") as out:
            for row, label in zip(x, score > 0):
                out.write(f"{1 if label else -1} " + " ".join(f"{i + 1}:{v:.6g}" for i, v in enumerate(row)) + "\n")
    return path


def beside_libsvm(name, path, gamma, cost=1, cache=100, threads=2):
    (peer, peer_predict, peer_objective, peer_signs), _ = in_child(libsvm_train, path, gamma, cost, cache, threads)
    model = DATA / f"{path.stem}-kernel.mm"
    flags = ("--kernel", "gaussian", "--gamma", gamma, "-c", cost, "--tolerance", 1e-5, "--threads", threads)
    seconds, result = train("classify", path, "-o", model, *flags, times=2)
    answers = DATA / "kernel-answers.txt"

    def predict():
        start = time.perf_counter()
        maxmargin("predict", model, path, "-o", answers, "--threads", threads)
        return time.perf_counter() - start, None

    predicting, _ = best(2, predict)
    signs = [int(float(line.split("\t")[1]) > 0) for line in answers.read_text().splitlines()]
    different = sum(one != other for one, other in zip(signs, peer_signs))
    return {
        "workload": f"gaussian kernel on {name}, C = {cost}, gamma = {gamma}, {threads} threads, LIBSVM with {cache} MB",
        "maxmargin seconds": seconds,
        "rounds": result["passes"],
        "support vectors": result["kernel"]["vectors"],
        "maxmargin objective": result["objective"],
        "proven gap": result["gap"],
        "LIBSVM seconds": peer,
        "LIBSVM objective": peer_objective,
        "our objective above LIBSVM's, relative": (result["objective"] - peer_objective) / peer_objective,
        "times as fast": peer / seconds,
        "predict all rows, file to answers, seconds": predicting,
        "LIBSVM predict seconds": peer_predict,
        "predict, times as fast": peer_predict / predicting,
        "rows predicted otherwise": different,
    }


def all_of_them(scale):
    results = []
    a9a = unpacked("a9a", "a9a")
    if a9a is not None:
        results += [beside_libsvm("a9a", a9a, 0.05), beside_libsvm("a9a", a9a, 0.05, threads=1)]
    results.append(beside_libsvm("20,000 x 30 hard rows", dense(20_000 // scale, 30, 4.0), 1 / 30, cache=2000))
    for folder, name, label, gamma in (("usps", "usps.svm", 1, 0.01), ("letter", "letter.scale", 1, 0.5)):
        path = one_against_the_rest(folder, name, label)
        if path is not None:
            results.append(beside_libsvm(f"{folder}, class {label} against the rest", path, gamma))
    return results


def large(rows):
    path = dense(rows, 100, 4.0)
    flags = ("--kernel", "gaussian", "--gamma", 0.01, "-c", 1, "--tolerance", 1e-3)
    result, peak = maxmargin("train", "classify", path, "-o", DATA / "large-kernel.mm", *flags, peak=True)
    return {
        "workload": f"gaussian kernel on {rows:,} x 100 dense rows, C = 1, gamma = 1/d, to a gap of 1e-3",
        "seconds": result["seconds"]["train"],
        "rounds": result["passes"],
        "support vectors": result["kernel"]["vectors"],
        "proven gap": result["gap"],
        "peak memory, GB": peak / 1e9,
    }
