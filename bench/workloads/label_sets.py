"""Label sets beside libmultilabel: Reuters-21578 with 90 topics, one label against the rest, and our calibrated form.

libmultilabel trains LIBLINEAR for each label. The same loss, C and penalised constant term are compared by the objective
of the weights, and all models by the metrics of the test rows.
"""

import sys
import time

from .measure import BENCH, DATA, in_child, maxmargin, train, unpacked

#: Where libmultilabel is installed: it brings a package of LIBLINEAR that has the name of another.
MULTILABEL = BENCH / ".multilabel"

#: Metrics of sets.
METRICS = "ranking-loss,label-ranking-average-precision,f1-micro,hamming-loss"


def labelled(name):
    """The rows that have a label; None if the data are missing."""
    source = unpacked("reuters_modapte", f"{name}.svm")
    if source is None:
        return None
    path = DATA / f"{name}-labelled.svm"
    if not path.exists():
        rows = source.read_text().splitlines(keepends=True)
        path.write_text("".join(row for row in rows if not row.startswith(" ")))
    return path


def loaded(path, features, labels):
    """Features with a column of ones, and a 0/1 matrix of labels."""
    import scipy.sparse as sparse
    from sklearn.datasets import load_svmlight_file
    from sklearn.preprocessing import MultiLabelBinarizer

    x, y = load_svmlight_file(str(path), n_features=features, multilabel=True, zero_based=False)
    sets = MultiLabelBinarizer(classes=labels, sparse_output=True).fit_transform(y)
    return sparse.csr_matrix(x, dtype="float64"), sparse.csr_matrix(sets, dtype="float64")


def theirs(train_path, test_path, features, labels, rule):
    """Trains libmultilabel with the hinge. Returns its seconds, its objective, and two metrics of the test rows."""
    sys.path.insert(0, str(MULTILABEL))
    import libmultilabel.linear as linear
    import numpy as np
    from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss

    x, y = loaded(train_path, features, labels)
    start = time.perf_counter()
    model = linear.train_1vsrest(y, x, options=f"-s 3 -c 1 -B 1 -e {rule} -m 2 -q", verbose=False)
    seconds = time.perf_counter() - start
    weights = np.asarray(model.weights)
    signs = 2 * y.toarray() - 1
    scores = np.asarray(linear.predict_values(model, x))
    objective = 0.5 * (weights**2).sum() + np.maximum(0, 1 - signs * scores).sum()
    x_test, y_test = loaded(test_path, features, labels)
    scores = np.asarray(linear.predict_values(model, x_test))
    truth = y_test.toarray()
    loss, precision = label_ranking_loss(truth, scores), label_ranking_average_precision_score(truth, scores)
    return seconds, float(objective), float(loss), float(precision)


def reuters():
    """One workload for the same problem, and one for each form of ours."""
    learned, tested = labelled("modapte90_train"), labelled("modapte90_test")
    if learned is None or tested is None:
        return []
    model = DATA / "topics.mm"
    rest = ("multilabel", learned, "-o", model, "--multilabel", "one-vs-rest", "--loss", "hinge", "-c", 1)
    rest = (*rest, "--intercept", "penalised")
    optimum = maxmargin("train", *rest, "--tolerance", 1e-6)["objective"]
    seconds, result = train(*rest, "--threads", 2)
    about = maxmargin("inspect", model)
    labels = [int(name) for name in about["labels"]]
    figures = {
        "workload": "label sets: reuters_modapte, 90 topics, one-vs-rest, hinge, C = 1",
        "maxmargin seconds to a gap of 1e-3": seconds,
        "its objective above the optimum, relative": result["objective"] / optimum - 1,
    }
    measured = maxmargin("evaluate", model, tested, "--metric", METRICS)
    figures |= {f"maxmargin {name}": measured[name] for name in METRICS.split(",")}
    for rule in (0.1, 0.01):
        (took, objective, loss, precision), _ = in_child(
            theirs, str(learned), str(tested), about["features"], labels, rule
        )
        figures[f"libmultilabel -s 3 -m 2 -e {rule:g} seconds"] = took
        figures[f"libmultilabel -e {rule:g} objective above the optimum"] = objective / optimum - 1
        figures[f"libmultilabel -e {rule:g} ranking-loss"] = loss
        figures[f"libmultilabel -e {rule:g} label-ranking-average-precision"] = precision
    return [figures, *map(calibrated, [(learned, tested, "logistic", 10), (learned, tested, "hinge", 1)])]


def calibrated(case):
    """One problem over all labels."""
    learned, tested, loss, cost = case
    model = DATA / "topics.mm"
    seconds, result = train("multilabel", learned, "-o", model, "--loss", loss, "-c", cost, "--threads", 2)
    measured = maxmargin("evaluate", model, tested, "--metric", METRICS)
    figures = {
        "workload": f"label sets: reuters_modapte, 90 topics, calibrated, {loss}, C = {cost}",
        "maxmargin seconds to a gap of 1e-3": seconds,
        "proven gap": result["gap"],
    }
    return figures | {f"maxmargin {name}": measured[name] for name in METRICS.split(",")}
