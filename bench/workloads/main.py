"""Compares maxmargin with other programs: the same data, the same objective, in one run."""

import argparse
import json
import os
import platform
import sys

from . import classes, classify, compare, estimators, kernels, label_sets, rank, sequences, stream
from .measure import BENCH, DATA


def main():
    parser = argparse.ArgumentParser(prog="bench/run")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--only", help="workloads whose name holds this word: load, train, growth, predict, rank, compare, kernel, estimators, classes, label sets, sequences, stream")
    arguments = parser.parse_args()
    scale = 10 if arguments.quick else 1
    DATA.mkdir(exist_ok=True)
    workloads = {
        "load": lambda: [classify.loading(850_000 // scale)],
        "train": lambda: classify.training(400_000 // scale),
        "growth": lambda: [classify.growth([rows // scale for rows in (10_000, 100_000, 1_000_000)])],
        "predict": lambda: [classify.predicting(850_000 // scale)],
        "rank queries": lambda: rank.queries(10_000 // scale),
        "rank orders": lambda: rank.orders(10_000 // scale),
        "rank one list": lambda: [rank.one_list(500_000 // scale)],
        "rank real data": rank.real,
        "compare": lambda: compare.beside_liblinear(2_000_000 // scale),
        "compare many": lambda: [compare.many(5_000_000 // scale)],
        "compare online": lambda: [compare.online()],
        "kernel": lambda: kernels.all_of_them(scale),
        "estimators dense": lambda: [estimators.dense(1_000_000 // scale)],
        "estimators sparse": lambda: [estimators.sparse(1_000_000 // scale)],
        "estimators kernels": lambda: [estimators.kernel(10_000 // scale)],
        "estimators rankers": lambda: [estimators.ranking(5_000 // scale)],
        "estimators memory": lambda: [estimators.memory(1_000_000 // scale)],
        "classes joint": lambda: classes.joint(200_000 // scale),
        "classes one-vs-rest": lambda: classes.one_vs_rest(200_000 // scale),
        "classes kernel": classes.kernel_one_vs_one,
        "classes ordinal": classes.ordinal,
        "label sets": label_sets.reuters,
        "sequences letters": sequences.letters,
        "sequences chunking": sequences.chunking,
        "stream": lambda: [stream.text(400_000 // scale)],
        "kernel large": lambda: [kernels.large(100_000 // scale)],
    }
    results = []
    for name, workload in workloads.items():
        if arguments.only and arguments.only not in name:
            continue
        for result in workload():
            results.append(result)
            print(f"\n{result['workload']}", flush=True)
            for figure, value in result.items():
                if figure != "workload":
                    print(f"  {figure:<58} {value:,.9g}", flush=True)
    if arguments.quick:
        return
    kept = BENCH / "results.json"
    if arguments.only and kept.exists():
        # Rows that were not measured in this run are kept.
        measured = {result["workload"]: result for result in results}
        before = json.loads(kept.read_text())["results"]
        results = [measured.pop(result["workload"], result) for result in before] + list(measured.values())
    machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    kept.write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")
    print(f"\nwrote {kept}", file=sys.stderr)


if __name__ == "__main__":
    main()
