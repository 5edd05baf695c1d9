"""How to measure: the command with --json, other programs in their own processes, the shortest of several times."""

import gzip
import json
import os
import resource
import subprocess
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
PROGRAM = BENCH.parent / "target" / "release" / "maxmargin"
DATA = BENCH / "data"
REAL = Path(os.environ.get("MAXMARGIN_DATA", BENCH.parent.parent / "shared" / "data"))


def maxmargin(*arguments, peak=False):
    """Runs the command with --json. Returns its object and, with `peak`, the peak memory of the child in bytes."""
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
    """The shortest of several times: the speed of the machine without disturbance."""
    results = [run() for _ in range(times)]
    return min(results, key=lambda result: result[0])


def train(*arguments, times=3):
    """The fastest of several trainings, by the seconds spent training."""

    def once():
        result = maxmargin("train", *arguments)
        return result["seconds"]["train"], result

    return best(times, once)


def in_child(function, *arguments):
    """Runs a function in its own process to measure its memory. Returns its result and its peak memory."""
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


def growth(function):
    """The result of a call, and the peak growth of this process's memory during the call, in bytes."""

    def status(name):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))

    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    answer = function()
    return answer, status("VmHWM") - before


def simulated(name, kind, *arguments):
    """Simulated data, made once."""
    path = DATA / name
    if not path.exists():
        maxmargin("simulate", kind, *arguments, "--seed", 1, "-o", path)
    return path


def unpacked(folder, name):
    """Decompressed real data; None if the data are missing."""
    source = REAL / folder / f"{name}.gz"
    if not source.exists():
        return None
    path = DATA / f"{folder}-{name}"
    if not path.exists():
        with gzip.open(source, "rb") as packed:
            path.write_bytes(packed.read())
    return path
