"""Time and memory of a decode step of a layer of Gemma 3 1B's shape, beside LiteRT with XNNPACK.

    python tests/benchmarks/gemma.py [--threads 1] [--seconds 5] [--rounds 3] [--json FILE]

For each kind of 4-bit weights, with plain operators and with composites. Ratios are ours by
LiteRT's. Times are of ``invoke`` alone, in turns in one process. Memory is the peak of a fresh
process that loads the model and makes a few tokens, imports included: the median of some rounds,
with an empty cache and with a kept program.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from gemma_model import WEIGHTS, gemma_model
from gemma_step import interpreter_of
from ratio_rows import Row, row, write_rows

from delegraph.tools import interleave, ratio_of

RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from gemma_step import tell_peak
tell_peak(sys.argv[2], sys.argv[3], int(sys.argv[4]))
"""


def peak(name: str, path: str, threads: int, cache: str) -> int:
    """Return the peak memory of a process that makes a few tokens, in bytes."""
    folder = str(Path(__file__).parent)
    command = [sys.executable, "-c", RUN, folder, name, path, str(threads)]
    environment = {**os.environ, "DELEGRAPH_CACHE": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


def memory(what: str, path: str, threads: int, rounds: int) -> list[Row]:
    """Return the ratios of peak memory, with an empty cache and with a kept program."""
    found: dict[str, list[int]] = {"LiteRT": [], "empty cache": [], "kept program": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            found["LiteRT"].append(peak("LiteRT", path, threads, cache))
            for state in ("empty cache", "kept program"):
                found[state].append(peak("Delegraph", path, threads, cache))
    middle = {name: float(np.median(values)) for name, values in found.items()}
    for name, value in middle.items():
        print(f"  {name}: {value / (1 << 20):.1f} MiB", flush=True)
    states = ("empty cache", "kept program")
    return [Row(f"{what}, memory, {name}", middle[name] / middle["LiteRT"]) for name in states]


def measure(
    weights: str, path: str, threads: int, seconds: float, rounds: int, *, composites: bool
) -> list[Row]:
    """Print and return the ratios of time and of memory for one model."""
    Path(path).write_bytes(gemma_model(weights, composites=composites))
    what = f"Gemma's shape, {weights}{', composites' * composites}, threads: {threads}"
    both = {name: interpreter_of(name, path, threads) for name in ("LiteRT", "Delegraph")}
    logits = [_logits(interpreter) for interpreter in both.values()]
    times = interleave({name: found.invoke for name, found in both.items()}, seconds)
    time = row(f"{what}, time", ratio_of(times["Delegraph"], times["LiteRT"], np.min))
    print(f"{time.what}: {time}; {both['Delegraph'].placement}")
    print(f"  logits differ by {np.abs(logits[0] - logits[1]).max():.2g}", end="")
    print(f" of {np.abs(logits[0]).max():.3g}", flush=True)
    found = [time, *memory(what, path, threads, rounds)]
    for each in found[1:]:
        print(f"  {each.what}: {each}", flush=True)
    return found


def _logits(interpreter: Any) -> Any:
    interpreter.invoke()
    details = interpreter.get_output_details()
    return next(interpreter.get_tensor(d["index"]) for d in details if d["name"] == "logits")


def main() -> None:
    """Print lines for each kind of weights, without and with composites."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5, help="for each time")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each memory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios")
    args = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "gemma.tflite"))
        for weights in WEIGHTS:
            for composites in (False, True):
                rows += measure(
                    weights, path, args.threads, args.seconds, args.rounds, composites=composites
                )
    write_rows(args.json, rows)


if __name__ == "__main__":
    main()
