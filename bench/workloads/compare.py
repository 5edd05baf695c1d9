"""Comparisons with ties, and LIBLINEAR on the flipped data: a decided pair once, a tie twice, the threshold as bias."""

import re
import subprocess
import time

from .measure import BENCH, DATA, in_child, maxmargin, simulated, train

# LIBLINEAR's solver, the size of its bias feature, and whether the bias is not penalised.
PEERS = {"squared-hinge": ("-s 2 -B 1 -R", 1.0), "hinge": ("-s 3 -B 100", 100.0)}


def flipped(path):
    """Differences and labels: u.d - t >= 1 for decided pairs, -(+-u.d - t) >= 1 for ties."""
    import numpy as np
    import pyarrow as pa

    table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    features = sum(name.startswith("left.") for name in table.column_names)
    names = [name.removeprefix("left.") for name in table.column_names if name.startswith("left.")]
    difference = np.empty((table.num_rows, features), dtype=np.float32)
    for at, name in enumerate(names):
        difference[:, at] = table[f"right.{name}"].to_numpy() - table[f"left.{name}"].to_numpy()
    outcome = table["outcome"].to_numpy(zero_copy_only=False)
    sign = np.where(outcome == "right", 1, np.where(outcome == "left", -1, 0)).astype(np.float32)
    decided = sign != 0
    x = np.concatenate([difference[decided] * sign[decided, None], difference[~decided], -difference[~decided]])
    y = np.concatenate([np.ones(decided.sum()), -np.ones(2 * (~decided).sum())])
    return x, y


def liblinear_train(path, loss, cost):
    """Trains LIBLINEAR. Returns the seconds, and the objective of its weights with an unpenalised threshold."""
    import numpy as np
    import scipy.sparse as sparse
    from liblinear.liblinearutil import parameter, problem
    from liblinear.liblinearutil import train as liblinear

    x, y = flipped(path)
    flags, bias = PEERS[loss]
    prob = problem(y, sparse.csr_matrix(x), bias=bias)
    start = time.perf_counter()
    model = liblinear(prob, parameter(f"{flags} -c {cost} -q"))
    seconds = time.perf_counter() - start
    weights, intercept = model.get_decfun(0)
    weights = np.array(weights)
    slack = np.maximum(0, 1 - y * (x @ weights + intercept))
    losses = slack if loss == "hinge" else slack**2
    return seconds, float(0.5 * weights @ weights + cost * losses.sum())


def beside_liblinear(pairs):
    path = simulated(f"compare-{pairs}.mmd", "compare", "--norm", "linear", "--features", 64, "--pairs", pairs)
    table = DATA / f"compare-{pairs}.arrow"
    if not table.exists():
        maxmargin("convert", path, "-o", table)
    results = []
    for loss in PEERS:
        (peer, peer_objective), _ = in_child(liblinear_train, table, loss, 1)
        seconds, result = train("compare", path, "-o", DATA / f"compare-{loss}.mm", "--loss", loss)
        results.append(
            {
                "workload": f"compare {pairs:,} pairs of 64 features, half of them ties, {loss}, C = 1",
                "maxmargin seconds": seconds,
                "passes": result["passes"],
                "maxmargin objective": result["objective"],
                "proven gap": result["gap"],
                f"LIBLINEAR {PEERS[loss][0]} seconds": peer,
                "LIBLINEAR objective": peer_objective,
                "LIBLINEAR gap to our bound": (peer_objective - result["lower_bound"]) / peer_objective,
                "times as fast": peer / seconds,
            }
        )
    return results


def many(pairs):
    """Time and memory with very many pairs."""
    path = simulated(f"compare-{pairs}.mmd", "compare", "--norm", "linear", "--features", 64, "--pairs", pairs)
    result, peak = maxmargin("train", "compare", path, "-o", DATA / "compare-many.mm", peak=True)
    return {
        "workload": f"compare {pairs:,} pairs of 64 features, half of them ties, hinge, C = 1",
        "seconds": result["seconds"]["train"],
        "passes": result["passes"],
        "proven gap": result["gap"],
        "peak memory, mapped data included, in data files": peak / path.stat().st_size,
    }


def online():
    """Updates per second over pairs in memory, one thread, without parsing: crates/maxmargin/benches/online.rs."""
    command = ["cargo", "bench", "--quiet", "--bench", "online"]
    lines = subprocess.run(command, cwd=BENCH.parent, check=True, capture_output=True, text=True).stdout
    figures = re.findall(r"^(.*): ([0-9.]+) million updates a second", lines, re.MULTILINE)
    return {
        "workload": "compare online: updates a second from memory, one thread",
        **{f"{name}, million a second": float(figure) for name, figure in figures},
    }
