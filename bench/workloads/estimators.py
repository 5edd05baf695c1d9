"""The Python estimators compared with scikit-learn, XGBoost and LightGBM on the same arrays: time, memory, quality.

Every fit runs in its own process, forked after the arrays are made. A fit of a few rows comes first, so that the growth
of memory at its peak is what the fit needs in addition to the input, without the libraries that are loaded once.
"""

import time

from .measure import growth, in_child

#: Number of rows of the first, small fit.
FEW = 2_000


def fitted(make, X, y, judge, more, few):
    """Seconds of a fit, the quality of its model, and the memory that it needed."""

    def run():
        def fit():
            estimator = make()
            start = time.perf_counter()
            estimator.fit(X, y, **more)
            return estimator, time.perf_counter() - start

        make().fit(X[:FEW], y[:FEW], **few)
        (estimator, seconds), grown = growth(fit)
        return seconds, judge(estimator), grown

    return in_child(run)[0]


def side_by_side(workload, quality, peers, X, y, judge, size, more=None):
    """One row of the table: time, memory in addition to the input, and quality of each estimator."""
    result = {"workload": workload}
    for name, make in peers.items():
        all_rows, few_rows = (more or {}).get(name, ({}, {}))
        seconds, value, grown = fitted(make, X, y, judge, all_rows, few_rows)
        result[f"{name} seconds"] = seconds
        result[f"{name} memory above the input, of it"] = grown / size
        result[f"{name} {quality}"] = value
    return result


def dense(rows, columns=64):
    """Two classes, dense rows of float32 in C order."""
    import numpy as np
    from sklearn.linear_model import SGDClassifier
    from sklearn.svm import LinearSVC

    from maxmargin import SVMClassifier

    random = np.random.default_rng(1)
    X = random.standard_normal((rows, columns), dtype=np.float32)
    y = (X @ random.standard_normal(columns, dtype=np.float32) + 2 * random.standard_normal(rows) > 0).astype(np.float64)
    test = random.standard_normal((20_000, columns), dtype=np.float32)
    C = 0.01

    def objective(estimator):
        """½‖w‖² + C Σ max(0, 1 − margin)², with the sum over all rows, computed in blocks."""
        estimator.decision_function(test)
        w, b = np.asarray(estimator.coef_, dtype=np.float64).ravel(), float(np.ravel(estimator.intercept_)[0])
        signs, total = 2 * y - 1, 0.0
        for start in range(0, rows, 10_000):
            part = slice(start, start + 10_000)
            total += (np.maximum(0, 1 - signs[part] * (X[part] @ w + b)) ** 2).sum()
        return 0.5 * w @ w + C * total

    peers = {
        "SVMClassifier": lambda: SVMClassifier(C, loss="squared_hinge"),
        "LinearSVC": lambda: LinearSVC(C=C, dual=False, intercept_scaling=10),
        "SGDClassifier": lambda: SGDClassifier("squared_hinge", alpha=1 / (C * 2 * rows), random_state=0),
    }
    return side_by_side(f"estimators: {rows:,} x {columns} dense float32, squared hinge", "objective", peers, X, y, objective, X.nbytes)


def rare_words(random, hidden, rows, entries, dtype):
    """Sparse rows with 32-bit indices, and the sign of their product with the hidden weights."""
    import numpy as np
    from scipy.sparse import csr_matrix

    # The columns of a row are distinct, and common ones occur more often: one from each of `entries` bands.
    band = len(hidden) // entries
    place = (band * random.random((rows, entries)) ** 3).astype(np.int32)
    indices = (place + band * np.arange(entries, dtype=np.int32)).ravel()
    values = np.full(rows * entries, 1 / np.sqrt(entries), dtype=dtype)
    X = csr_matrix((values, indices, np.arange(0, rows * entries + 1, entries, dtype=np.int32)), shape=(rows, len(hidden)))
    return X, (X @ hidden + 0.5 * random.standard_normal(rows) > 0).astype(np.float64)


def sparse(rows, columns=100_000, entries=40):
    """Two classes, sparse rows of float32 with 32-bit indices."""
    import numpy as np
    from sklearn.linear_model import SGDClassifier
    from sklearn.svm import LinearSVC

    from maxmargin import SVMClassifier

    random = np.random.default_rng(2)
    hidden = random.standard_normal(columns)
    made = lambda rows: rare_words(random, hidden, rows, entries, np.float32)
    X, y = made(rows)
    test, truth = made(20_000)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    peers = {
        "SVMClassifier": lambda: SVMClassifier(1.0),
        "LinearSVC": lambda: LinearSVC(C=1.0, loss="hinge", dual=True, max_iter=1000),
        "SGDClassifier": lambda: SGDClassifier("hinge", alpha=1 / rows, random_state=0),
    }
    judge = lambda estimator: float((estimator.predict(test) == truth).mean())
    return side_by_side(f"estimators: {rows:,} sparse rows of {entries} entries, hinge", "accuracy", peers, X, y, judge, size)


def kernel(rows, columns=20):
    """Two classes with a Gaussian kernel."""
    import numpy as np
    from sklearn.svm import SVC

    from maxmargin import SVMClassifier

    random = np.random.default_rng(3)
    X, test = random.standard_normal((rows, columns)), random.standard_normal((5_000, columns))
    label = lambda X: (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(np.float64)
    y, truth = label(X), label(test)
    peers = {"SVMClassifier": lambda: SVMClassifier(kernel="rbf", tol=1e-4), "SVC": lambda: SVC(tol=1e-3)}
    judge = lambda estimator: float((estimator.predict(test) == truth).mean())
    return side_by_side(f"estimators: {rows:,} x {columns}, Gaussian kernel", "accuracy", peers, X, y, judge, X.nbytes)


def ranking(queries, documents=100, columns=64):
    """Graded queries whose true score is mostly linear."""
    import numpy as np
    from lightgbm import LGBMRanker
    from xgboost import XGBRanker

    from maxmargin import SVMRanker
    from maxmargin.metrics import ndcg_score

    random = np.random.default_rng(4)
    hidden = random.standard_normal(columns)

    def made(queries):
        X = random.standard_normal((queries * documents, columns), dtype=np.float32)
        score = X @ hidden + 0.5 * X[:, 0] * X[:, 1] + 6 * random.standard_normal(len(X))
        grades = np.digitize(score, np.quantile(score, [0.6, 0.8, 0.92, 0.98])).astype(np.float64)
        return X, grades, np.repeat(np.arange(queries), documents)

    X, y, qid = made(queries)
    test, grades, groups = made(500)
    peers = {
        "SVMRanker": lambda: SVMRanker(0.001, n_jobs=2),
        "XGBRanker": lambda: XGBRanker(objective="rank:ndcg", n_jobs=2),
        "LGBMRanker": lambda: LGBMRanker(n_jobs=2, verbose=-1),
    }
    by_qid = {"qid": qid}, {"qid": qid[:FEW]}
    by_group = {"group": np.full(queries, documents)}, {"group": np.full(FEW // documents, documents)}
    more = {"SVMRanker": by_qid, "XGBRanker": by_qid, "LGBMRanker": by_group}
    judge = lambda ranker: ndcg_score(grades, ranker.predict(test), qid=groups, k=10)
    workload = f"estimators: {queries:,} queries of {documents} x {columns} dense float32"
    return side_by_side(workload, "NDCG@10", peers, X, y, judge, X.nbytes, more)


def memory(rows, columns=64):
    """Peak memory of fits in addition to X, as a share of X, for losses, kinds of classes and lengths of sparse rows."""
    import numpy as np

    from maxmargin import SVMClassifier, SVMRanker

    random = np.random.default_rng(5)
    result = {"workload": f"estimators: memory above {rows:,} rows, of X"}

    def measured(name, make, X, y, size, qid=None):
        more, few = ({}, {}) if qid is None else ({"qid": qid}, {"qid": qid[:FEW]})
        result[name] = fitted(make, X, y, lambda estimator: 0, more, few)[2] / size

    X = random.standard_normal((rows, columns), dtype=np.float32)
    score = X @ random.standard_normal(columns, dtype=np.float32) + 2 * random.standard_normal(rows)
    y, grades = (score > 0).astype(np.float64), np.digitize(score, np.quantile(score, [0.6, 0.8, 0.92])).astype(np.float64)
    qid = np.repeat(np.arange(-(-rows // 100)), 100)[:rows]
    for loss in ("hinge", "squared_hinge", "logistic"):
        measured(f"{columns} float32, {loss}", lambda: SVMClassifier(0.01, loss=loss), X, y, X.nbytes)
    measured(f"{columns} float32, hinge, int64 classes", lambda: SVMClassifier(0.01), X, y.astype(np.int64), X.nbytes)
    for loss in ("hinge", "squared_hinge"):
        measured(f"{columns} float32, ranker, {loss}", lambda: SVMRanker(0.001, loss=loss), X, grades, X.nbytes, qid)
    del X
    hidden = random.standard_normal(100_000)
    for entries, dtype in ((20, np.float64), (20, np.float32), (40, np.float32)):
        X, y = rare_words(random, hidden, rows, entries, dtype)
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        for loss in ("hinge", "squared_hinge", "logistic"):
            name = f"{entries} entries of {np.dtype(dtype)}, {loss}"
            measured(name, lambda: SVMClassifier(1.0, loss=loss), X, y, size)
    return result
