"""Learning from a stream: one pass over text rows, each predicted before it is learned from.

Peers are Vowpal Wabbit, scikit-learn's SGDClassifier.partial_fit and river. Every program reads the same rows, in the same
order, and the progressive error is the share of rows that were predicted wrongly before they were learned from. Vowpal
Wabbit is measured as it comes (adaptive, normalised and invariant steps) and with plain steps, with the logistic loss, on
the rows in its own format; its own parser and its own thread of reading are used. Its second run reads its binary cache, and ours a
mapped file.
"""

import time

from .measure import DATA, best, in_child, maxmargin, simulated

#: Rows that scikit-learn predicts before it learns from them.
CHUNK = 1000

#: Bits of the columns of Vowpal Wabbit.
BITS = 18


def as_vowpal(source):
    """The same rows in the format of Vowpal Wabbit, made once."""
    path = source.with_suffix(".vw")
    if not path.exists():
        with open(source) as rows, open(path, "w") as out:
            for row in rows:
                target, features = row.rstrip("\n").split(" ", 1)
                out.write(f"{'1' if float(target) > 0 else '-1'} | {features}\n")
    return path


def as_words(source):
    """The same rows with names instead of numbers, made once."""
    path = source.with_name(source.stem + "-words.txt")
    if not path.exists():
        with open(source) as rows, open(path, "w") as out:
            for row in rows:
                target, *features = row.split()
                out.write(" ".join([target, *(f"w{feature}" for feature in features)]) + "\n")
    return path


def vowpal(path, *settings):
    """Seconds and progressive error of Vowpal Wabbit, with its own parser."""

    def once():
        from vowpalwabbit import Workspace

        start = time.perf_counter()
        workspace = Workspace(f"-d {path} -b {BITS} --loss_function logistic --binary --quiet {' '.join(settings)}")
        workspace.run_parser()
        loss, weight = workspace.get_sum_loss(), workspace.get_weighted_examples()
        workspace.finish()
        return time.perf_counter() - start, loss / weight

    return in_child(once)[0]


def scikit(path, features):
    """Seconds of reading, seconds of learning, and progressive error of partial_fit on chunks of rows."""

    def once():
        import numpy as np
        from sklearn.datasets import load_svmlight_file
        from sklearn.linear_model import SGDClassifier

        start = time.perf_counter()
        x, y = load_svmlight_file(str(path), n_features=features, zero_based=False)
        read = time.perf_counter() - start
        start = time.perf_counter()
        model = SGDClassifier(loss="hinge", alpha=1e-6, average=True, random_state=1)
        wrong = 0
        for first in range(0, x.shape[0], CHUNK):
            rows, targets = x[first : first + CHUNK], y[first : first + CHUNK]
            if first > 0:
                wrong += int(np.count_nonzero(model.predict(rows) != targets))
            else:
                wrong += len(targets) // 2
            model.partial_fit(rows, targets, classes=[-1, 1])
        return read, time.perf_counter() - start, wrong / x.shape[0]

    return in_child(once)[0]


def river(path, rows):
    """Seconds of reading, seconds of learning, and progressive error of river on the first rows."""

    def once():
        from itertools import islice

        from river import linear_model, optim

        def parsed(line):
            target, *features = line.split()
            return {name: float(value) for name, value in (feature.split(":") for feature in features)}, float(target) > 0

        start = time.perf_counter()
        with open(path) as lines:
            examples = [parsed(line) for line in islice(lines, rows)]
        read = time.perf_counter() - start
        start = time.perf_counter()
        model = linear_model.LogisticRegression(optimizer=optim.SGD(0.1), loss=optim.losses.Hinge(), l2=1e-6)
        wrong = 0
        for features, target in examples:
            wrong += bool(model.predict_one(features)) != target
            model.learn_one(features, target)
        return read, time.perf_counter() - start, wrong / len(examples)

    return in_child(once)[0]


def ours(path, *settings):
    """Seconds of the whole command and its progressive error."""

    def once():
        start = time.perf_counter()
        result = maxmargin("learn", "classify", path, "-o", DATA / "stream.mm", *settings)
        return time.perf_counter() - start, result["error"]

    return best(3, once)


def text(rows):
    """One pass over text rows like those of RCV1."""
    source = simulated(f"stream-{rows}.txt", "text", "--rows", rows)
    mapped = DATA / f"stream-{rows}.mmd"
    if not mapped.exists():
        maxmargin("convert", source, "-o", mapped)
    features = maxmargin("learn", "classify", source, "-o", DATA / "stream.mm", "--solver", "pa")["features"]
    result = {"workload": f"learn from a stream of {rows} text rows", "megabytes": source.stat().st_size / 1e6}

    def add(name, seconds, error, count=rows):
        result[f"{name}, rows a second"] = count / seconds
        if error is not None:
            result[f"{name}, progressive error"] = error

    # A passive-aggressive step takes C, and no lambda.
    logistic = ("--loss", "logistic", "--lambda", 1e-6)
    for solver, own in (
        ("averaged-sgd", (*logistic, "--rate", 3)),
        ("averaged-sgd with a rate found", logistic),
        ("pa", ("-c", 0.1)),
    ):
        settings = ["--solver", solver.split()[0], *own]
        add(f"maxmargin {solver}, from text", *ours(source, *settings))
        add(f"maxmargin {solver}, from .mmd", ours(mapped, *settings)[0], None)
    add("maxmargin averaged-sgd, from words by --hash", *ours(as_words(source), *logistic, "--rate", 3, "--hash", BITS))
    path = as_vowpal(source)
    for name, settings in (("", []), (" plain steps", ["--sgd"])):
        seconds, error = best(3, lambda settings=settings: tuple(vowpal(path, *settings)))
        add(f"vowpalwabbit{name}, from text", seconds, error)
    cache = DATA / "stream.cache"
    cache.unlink(missing_ok=True)
    vowpal(path, "--cache_file", str(cache))
    seconds, error = best(3, lambda: tuple(vowpal(path, "--cache_file", str(cache))))
    add("vowpalwabbit, from its cache", seconds, error)
    cache.unlink(missing_ok=True)
    read, learned, error = scikit(source, features)
    add("scikit-learn partial_fit, from text", read + learned, error)
    add("scikit-learn partial_fit, from memory", learned, None)
    some = min(rows, 20_000)
    read, learned, error = river(source, some)
    add("river, from text", read + learned, error, some)
    add("river, from memory", learned, None, some)
    return result
