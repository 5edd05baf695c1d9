"""Rankers: graded queries, one long list, and a comparison with an independent solver's optimum on real data."""

import os

from .measure import DATA, in_child, maxmargin, simulated, train, unpacked


def queries(count):
    path = simulated(f"search-{count}.mmd", "search", "--queries", count, "--docs", 120, "--features", 136)
    matrix = None
    results = []
    for loss, tolerance in (("squared-hinge", 1e-6), ("hinge", 1e-3)):
        arguments = ("rank", path, "-o", os.devnull, "--loss", loss, "-c", 0.01, "--tolerance", tolerance)
        seconds, result = train(*arguments)
        matrix = matrix or path.stat().st_size
        _, peak = maxmargin("train", *arguments, peak=True)
        results.append(
            {
                "workload": f"rank {count:,} queries of 120 documents and 136 features, {loss}, C = 0.01",
                "seconds": seconds,
                "passes": result["passes"],
                "pairs": result["constraints"],
                "objective": result["objective"],
                "proven gap": result["gap"],
                "peak memory, mapped data included, in data files": peak / matrix,
            }
        )
    return results


def orders(count):
    """A measure of whole orders: mean average precision by searches for the most violated order."""
    path = simulated(f"search-{count}-100.mmd", "search", "--queries", count, "--docs", 100, "--features", 136)
    results = []
    for measure in ("map", "ndcg@10"):
        arguments = ("rank", path, "-o", os.devnull, "--scale", "standard", "--optimize", measure, "-c", 0.1, "--tolerance", 1e-2)
        seconds, result = train(*arguments)
        searches, spent = result.get("searches", 0), result["seconds"].get("searches", 0)
        results.append(
            {
                "workload": f"rank {count:,} queries of 100 documents and 136 features by {measure}, to a gap of 1e-2",
                "seconds": seconds,
                "passes": result["passes"],
                "seconds a pass": seconds / max(1, result["passes"]),
                "objective": result["objective"],
                "proven gap": result["gap"],
                **({"searches": searches, "microseconds a search": 1e6 * spent / searches} if searches else {}),
            }
        )
    return results


def write_list(rows, path):
    """One list: twenty features, and distinct targets."""
    import numpy as np

    random = np.random.default_rng(1)
    features = random.uniform(-1, 1, (rows, 20)).astype("float32")
    targets = features @ random.uniform(-0.5, 0.5, 20) + random.uniform(-0.5, 0.5, rows)
    with open(path, "w") as out:
        for target, row in zip(targets, features):
            entries = " ".join(f"{column + 1}:{value:.6g}" for column, value in enumerate(row))
            out.write(f"{target:.17g} qid:1 {entries}\n")


def one_list(rows):
    text = DATA / f"list-{rows}.txt"
    path = DATA / f"list-{rows}.mmd"
    if not path.exists():
        write_list(rows, text)
        maxmargin("convert", text, "-o", path)
    seconds, result = train("rank", path, "-o", os.devnull, "-c", 1e-8, "--tolerance", 1e-6)
    return {
        "workload": f"rank one list of {rows:,} distinct targets, 20 features, C = 1e-8, to a gap of 1e-6",
        "seconds": seconds,
        "passes": result["passes"],
        "pairs": result["constraints"],
        "objective": result["objective"],
        "proven gap": result["gap"],
    }


def lbfgs_optimum(path, cost):
    """The squared hinge over listed pairs, by scipy's L-BFGS: an implementation independent of our own code."""
    import numpy as np
    from scipy.optimize import minimize
    from sklearn.datasets import load_svmlight_file

    x, y, queries = load_svmlight_file(str(path), query_id=True, dtype="float32")
    x = x.toarray().astype("float64")
    better, worse = [], []
    for query in np.unique(queries):
        rows = np.flatnonzero(queries == query)
        first, second = np.nonzero(y[rows][:, None] > y[rows][None, :])
        better.append(rows[first])
        worse.append(rows[second])
    better, worse = np.concatenate(better), np.concatenate(worse)
    # L-BFGS stalls if columns have very different sizes or are nearly equal. At zero, every pair violates its margin.
    # In coordinates in which the curvature there is about the identity, the problem is the same but needs few steps.
    hessian = np.eye(x.shape[1])
    for start in range(0, len(better), 10_000):
        difference = x[better[start : start + 10_000]] - x[worse[start : start + 10_000]]
        hessian += 2 * cost * difference.T @ difference
    unit = 1 / np.sqrt(np.diag(hessian))
    even = unit[:, None] * hessian * unit[None, :] + 1e-9 * np.eye(len(unit))
    basis = unit[:, None] * np.linalg.inv(np.linalg.cholesky(even)).T

    def value(v):
        w = basis @ v
        scores = x @ w
        slack = np.maximum(0, 1 - scores[better] + scores[worse])
        slope = np.bincount(worse, 2 * cost * slack, len(y)) - np.bincount(better, 2 * cost * slack, len(y))
        return 0.5 * w @ w + cost * slack @ slack, basis.T @ (w + x.T @ slope)

    found = minimize(
        value,
        np.zeros(x.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1_000, "maxfun": 2_000, "ftol": 1e-15, "gtol": 1e-12, "maxcor": 100},
    )
    return float(found.fun)


def real():
    results = []
    for folder, name, cost in (
        ("mq2008", "S1.txt", 1.0),
        ("ohsumed", "S1.txt", 1.0),
        ("mslr_sample", "msn1.fold1.train.5k.txt", 1.0),
    ):
        path = unpacked(folder, name)
        if path is None:
            continue
        seconds, result = train("rank", path, "-o", os.devnull, "-c", cost, "--tolerance", 1e-7)
        peer, _ = in_child(lbfgs_optimum, path, cost)
        results.append(
            {
                "workload": f"rank {folder}, squared hinge, C = {cost:g}",
                "seconds": seconds,
                "objective": result["objective"],
                "proven gap": result["gap"],
                "L-BFGS objective": peer,
                "L-BFGS above our lower bound, relative": (peer - result["lower_bound"]) / peer,
            }
        )
    return results
