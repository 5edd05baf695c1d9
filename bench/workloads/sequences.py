"""Sequences: handwritten words to a gap of 1e-3, and chunking beside python-crfsuite on the same features.

crfsuite trains by each of its algorithms. Its best span F1 on the test sentences is the quality to reach; our time is that
of the first number of passes whose model reaches it. Features are made before the clock starts, on both sides.
"""

import csv
import gzip
import itertools
import time

from .measure import DATA, REAL, best, maxmargin, train, unpacked

#: Templates without functions, which the peer's features repeat below: words, parts of speech, and pairs of them.
TEMPLATES = """word[-2..2]
word[-1]*word
word*word[1]
col1[-2..2]
col1[-2]*col1[-1]
col1[-1]*col1
col1*col1[1]
col1[1]*col1[2]
col1[-2]*col1[-1]*col1
col1[-1]*col1*col1[1]
col1*col1[1]*col1[2]
"""

#: The algorithms of crfsuite, with its defaults.
ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")

#: The weight of the loss, and the most passes that are tried.
C, MOST_PASSES = 0.1, 64


def letters():
    """Handwritten words: seconds and passes to a gap of 1e-3."""
    source = REAL / "ocr_letters" / "letters.tsv.gz"
    if not source.exists():
        return []
    results = []
    for name, first in (("fold 0", True), ("folds 1 to 9", False)):
        path = DATA / f"letters-{'0' if first else '1-9'}.svm"
        with gzip.open(source, "rt") as rows, path.open("w") as out:
            for row in itertools.islice(csv.reader(rows, delimiter="\t", quoting=csv.QUOTE_NONE), 1, None):
                word, _, fold, letter, pixels = row
                if (fold == "0") == first:
                    dark = " ".join(f"{place + 1}:1" for place, pixel in enumerate(pixels) if pixel == "1")
                    out.write(f"{ord(letter) - 96} qid:{word} {dark}\n")
        for rate in (0.01, 0.001):
            arguments = ("sequence", path, "-o", DATA / "letters.mm", "--loss-scale", "length", "--lambda", rate)
            seconds, result = train(*arguments, "--least-features", 128, "--tolerance", 1e-3, times=2)
            figures = {
                "workload": f"handwritten words, {name}, lambda = {rate:g}",
                "seconds to a gap of 1e-3": seconds,
                "passes": result["passes"],
                "objective in the mean form": rate * result["objective"],
                "proven gap": result["gap"],
            }
            searches = result.get("searches")
            if searches:
                figures["searches"] = searches
                figures["seconds in searches, over both threads"] = result["seconds"]["searches"]
            results.append(figures)
    return results


def sentences(path):
    """Rows of columns, by sentence."""
    text = path.read_text().strip("\n")
    return [[line.split() for line in part.split("\n")] for part in text.split("\n\n")]


def parts(template):
    """Column and offset of each part of a template without ranges."""
    for part in template.split("*"):
        column, _, offset = part.partition("[")
        yield 0 if column == "word" else int(column[3:]), int(offset.rstrip("]") or 0)


def features(rows):
    """The features that the templates make of a sentence, as crfsuite takes them."""
    templates = []
    for line in TEMPLATES.split():
        head, dots, tail = line.partition("..")
        if dots:
            name, start = head.split("[")
            templates += [f"{name}[{offset}]" for offset in range(int(start), int(tail.rstrip("]")) + 1)]
        else:
            templates.append(line)
    parsed = [(template, list(parts(template))) for template in templates]
    count = len(rows)

    def cell(place, column):
        if place < 0:
            return f"<{place}>"
        return rows[place][column] if place < count else f"<+{place - count + 1}>"

    return [
        [name + "=" + "*".join(cell(row + offset, column) for column, offset in own) for name, own in parsed]
        for row in range(count)
    ]


def spans(tags):
    """Spans of B- and I- tags by the rules of the CoNLL evaluation."""
    found, start, kind = set(), None, None
    for row, tag in enumerate([*tags, "O"]):
        prefix, _, own = tag.partition("-")
        if start is not None and (prefix in "BO" or own != kind):
            found.add((start, row, kind))
            start = None
        if prefix != "O" and (start is None):
            start, kind = row, own
    return found


def f1(truth, predicted):
    """Span F1 over sentences."""
    right = total = 0
    for own, tags in zip(truth, predicted, strict=True):
        own, tags = spans(own), spans(tags)
        right, total = right + len(own & tags), total + len(own) + len(tags)
    return 2 * right / total


def crfsuite(learned, tested):
    """Seconds of training and F1 of each algorithm."""
    import pycrfsuite

    data = [(features(rows), [row[-1] for row in rows]) for rows in learned]
    asked = [features(rows) for rows in tested]
    truth = [[row[-1] for row in rows] for rows in tested]
    results = {}
    for algorithm in ALGORITHMS:
        trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
        for x, y in data:
            trainer.append(x, y)
        start = time.perf_counter()
        trainer.train(str(DATA / "chunking.crfsuite"))
        seconds = time.perf_counter() - start
        tagger = pycrfsuite.Tagger()
        tagger.open(str(DATA / "chunking.crfsuite"))
        results[algorithm] = (seconds, f1(truth, [tagger.tag(x) for x in asked]))
    return results


def chunking():
    """Chunking beside crfsuite: time to its best F1."""
    paths = [unpacked("conll2000", name) for name in ("train.txt", "test.txt")]
    if None in paths:
        return []
    peer = crfsuite(*map(sentences, paths))
    wanted = max(value for _, value in peer.values())
    figures = {"workload": "chunking of conll2000, the same templates"}
    for algorithm, (seconds, value) in peer.items():
        figures[f"crfsuite {algorithm} seconds"] = seconds
        figures[f"crfsuite {algorithm} span F1, %"] = 100 * value
    templates, model = DATA / "chunking.templates", DATA / "chunking.mm"
    templates.write_text(TEMPLATES)
    for passes in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, MOST_PASSES):
        arguments = ("sequence", paths[0], "--templates", templates, "-o", model, "-c", C, "--max-passes", passes)

        def once(arguments=arguments):
            result = maxmargin("train", *arguments, "--no-witness")
            return result["seconds"]["train"], result

        seconds, result = best(2, once)
        value = maxmargin("evaluate", model, paths[1])["span-f1"]
        figures[f"maxmargin {passes} passes seconds"] = seconds
        figures[f"maxmargin {passes} passes span F1, %"] = 100 * value
        if value >= wanted:
            fastest = min(took for took, reached in peer.values() if reached == wanted)
            figures["maxmargin seconds to crfsuite's best F1"] = seconds
            figures["times as fast as crfsuite to its best F1"] = fastest / seconds
            break
    figures["maxmargin seconds to read text and make features"] = result["seconds"]["load"]
    figures["features"] = result["features"]
    return [figures]
