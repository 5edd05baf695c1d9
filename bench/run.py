"""Measures maxmargin beside its peers: the same data, the same objective, one run.

Usage: bench/run [--rows N] [--quick]
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
PROGRAM = BENCH.parent / "target" / "release" / "maxmargin"
DATA = BENCH / "data"


def maxmargin(*arguments, peak=False):
    """Runs the command with --json; returns its object, and the child's peak memory in bytes where asked."""
    process = subprocess.Popen(
        [str(PROGRAM), *map(str, arguments), "--json", "--quiet"], stdout=subprocess.PIPE, text=True
    )
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"maxmargin {' '.join(map(str, arguments))} failed")
    result = json.loads(out)
    return (result, usage.ru_maxrss * 1024) if peak else result


def best(times, run):
    """The least of several timings: what the machine can do when nothing else disturbs it."""
    results = [run() for _ in range(times)]
    return min(results, key=lambda result: result[0])


def text_file(rows):
    path = DATA / f"text-{rows}.txt"
    if not path.exists():
        maxmargin("simulate", "text", "--rows", rows, "--seed", 1, "-o", path)
    return path


def in_child(function, *arguments):
    """Runs a peer in a process of its own, so that its memory is its own; returns what it returns and its peak memory."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer = function(*arguments)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with os.fdopen(write, "w") as out:
            json.dump([answer, (peak - base) * 1024], out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        answer, peak = json.load(answers)
    os.waitpid(child, 0)
    return answer, peak


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

    seconds, result, peak = best(3, ours)
    stored = cache.stat().st_size
    peer, peer_peak = in_child(sklearn_load, path)
    opening, _ = best(
        3,
        lambda: (
            maxmargin("train", "classify", cache, "-o", os.devnull, "--max-passes", 1, "--intercept", "none")[
                "seconds"
            ]["load"],
            None,
        ),
    )
    return {
        "workload": f"load {size / 1e9:.2f} GB of svmlight text, {rows:,} rows",
        "maxmargin seconds": seconds,
        "maxmargin GB/s": size / 1e9 / seconds,
        "scikit-learn seconds": peer,
        "times as fast": peer / seconds,
        "peak memory over (mapped file + 1.3 x stored matrix)": peak / (size + 1.3 * stored),
        "peak memory beyond the mapped file, in stored matrices": (peak - size) / stored,
        "scikit-learn peak memory, in stored matrices": peer_peak / stored,
        "open the same data as .mmd, ms": opening * 1e3,
    }


def liblinear_train(path, flags):
    """Trains LIBLINEAR; returns seconds, and the objective of its weights by the definition."""
    import numpy as np
    import scipy.sparse as sparse
    from liblinear.liblinearutil import problem, parameter, train
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(str(path))
    x = sparse.csr_matrix(x)
    prob = problem(y, x)
    start = time.perf_counter()
    model = train(prob, parameter(flags + " -q"))
    seconds = time.perf_counter() - start
    weights = np.array(model.get_decfun(0)[0])
    slack = np.maximum(0, 1 - y * (x @ weights))
    loss = slack.sum() if "-s 3" in flags else (slack**2).sum()
    return seconds, float(0.5 * weights @ weights + loss)


def training(rows):
    path = text_file(rows)
    results = []
    for loss, solver in (("hinge", 3), ("squared-hinge", 1)):
        (peer, peer_objective), _ = in_child(liblinear_train, path, f"-s {solver} -c 1 -e 0.1")
        model = DATA / f"text-{rows}-{loss}.mm"

        def ours():
            result = maxmargin(
                "train", "classify", path, "-o", model, "--loss", loss, "--intercept", "none", "--tolerance", 1e-3
            )
            return result["seconds"]["train"], result

        seconds, result = best(3, ours)
        results.append(
            {
                "workload": f"{loss} on {rows:,} text rows, C = 1, no intercept",
                "maxmargin seconds": seconds,
                "maxmargin objective": result["objective"],
                "proven gap": result["gap"],
                "LIBLINEAR seconds": peer,
                "LIBLINEAR objective": peer_objective,
                "LIBLINEAR gap to our bound": (peer_objective - result["lower_bound"]) / peer_objective,
                "times as fast": peer / seconds,
            }
        )
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=850_000, help="rows of the loading workload; 850,000 are 1 GB")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    arguments = parser.parse_args()
    scale = 10 if arguments.quick else 1
    DATA.mkdir(exist_ok=True)
    results = [loading(arguments.rows // scale), *training(400_000 // scale)]
    for result in results:
        print(f"\n{result['workload']}")
        for name, value in result.items():
            if name != "workload":
                print(f"  {name:<58} {value:,.6g}")
    machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    (BENCH / "results.json").write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")
    print(f"\nwrote {BENCH / 'results.json'}", file=sys.stderr)


if __name__ == "__main__":
    main()
