"""What it costs to run a delegate in a process of its own.

    python tests/benchmarks/isolation.py [MODEL.tflite ...] [--delegate NAME] [--seconds 6]

For each model both sides take turns: the delegate in this process, and isolated. Medians of an
invoke in milliseconds, and how much more isolation takes: by the medians, and by the quickest
invokes, which a busy machine disturbs least. Then the time to make each interpreter.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from delegraph import FailurePolicy, Interpreter
from delegraph.tools import all_times, interleave
from delegraph.tools.benchmarking.verdicts import LEAST_BLOCKS

DIGITS = Path(__file__).resolve().parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"


def ready(path: str, delegate: str, isolate: Any) -> tuple[Interpreter, float]:
    """Return an interpreter with one thread after its first run, and the seconds of both steps."""
    start = perf_counter()
    interpreter = Interpreter(
        path, delegates=[delegate], num_threads=1, failures=FailurePolicy(isolate=isolate)
    )
    interpreter.allocate_tensors()
    numbers = np.random.default_rng(0)
    for entry in interpreter.get_input_details():
        values = numbers.integers(0, 100, entry["shape"]).astype(entry["dtype"])
        interpreter.set_tensor(entry["index"], values)
    interpreter.invoke()
    return interpreter, perf_counter() - start


def measure(path: str, delegate: str, seconds: float) -> None:
    """Print the row of a model."""
    sides: dict[str, Callable[[], object]] = {}
    outputs, starts = [], []
    for isolate in ("none", "process"):
        interpreter, start = ready(path, delegate, isolate)
        starts.append(start)
        sides[isolate] = interpreter.invoke
        details = interpreter.get_output_details()
        outputs.append([interpreter.get_tensor(entry["index"]) for entry in details])
    is_equal = all(map(np.array_equal, *outputs))
    times = interleave(sides, seconds, blocks=LEAST_BLOCKS)
    found = [1e3 * np.array(all_times(times[side])) for side in sides]
    here, there = (float(np.median(side)) for side in found)
    least = float(np.min(found[1]) - np.min(found[0]))
    print(
        f"{Path(path).stem:50} {here:9.3f} {there:9.3f} {there - here:+9.3f} {least:+9.3f}   "
        f"start {starts[0]:.2f} s, {starts[1]:.2f} s   {'equal' if is_equal else 'DIFFERENT'}",
        flush=True,
    )


def main() -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=[str(DIGITS)])
    parser.add_argument("--delegate", default="numba_cpu")
    parser.add_argument("--seconds", type=float, default=6.0)
    arguments = parser.parse_args()
    print(f"{'ms an invoke':50} {'here':>9} {'isolated':>9} {'more':>9} {'at least':>9}")
    for path in arguments.models:
        measure(path, arguments.delegate, arguments.seconds)


if __name__ == "__main__":
    main()
