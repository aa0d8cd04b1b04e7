"""Whole models: Delegraph beside the official interpreter, one thread each.

    python tests/benchmarks/models.py MODEL.tflite... [--rounds 5] [--delegate NAME]

For each model the runtimes take turns in this process on the same random input; the table gives the
best time of each and how many times faster than the official reference kernels Delegraph is.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter
from ai_edge_litert.interpreter import OpResolverType

from delegraph import Interpreter

OFFICIAL = {
    "reference": OpResolverType.BUILTIN_REF,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "XNNPACK": OpResolverType.AUTO,
}


def fed(interpreter: Any) -> Any:
    """Return the interpreter, allocated, with seeded random inputs."""
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        shape, dtype = detail["shape"], np.dtype(detail["dtype"])
        if dtype.kind == "f":
            value = rng.uniform(-1, 1, shape)
        elif dtype.kind in "SO":
            value = np.full(shape, b"text", object)
        else:
            value = rng.integers(0, 2 if dtype.kind == "b" else 100, shape)
        interpreter.set_tensor(detail["index"], np.asarray(value).astype(dtype, copy=False))
    return interpreter


def best_times(interpreters: dict[str, Any], rounds: int) -> dict[str, float]:
    """Return the shortest invoke of each in milliseconds, taking turns."""
    best = dict.fromkeys(interpreters, float("inf"))
    for _ in range(rounds + 1):  # the first one warms up
        for name, interpreter in interpreters.items():
            started = time.perf_counter()
            interpreter.invoke()
            best[name] = min(best[name], (time.perf_counter() - started) * 1e3)
    return best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--delegate", action="append", default=[])
    args = parser.parse_args()
    print(f"{'milliseconds':60} {'Delegraph':>10}", *(f"{n:>10}" for n in OFFICIAL), "  x ref")
    for path in args.models:
        interpreters = {
            "Delegraph": fed(Interpreter(path, num_threads=1, delegates=args.delegate)),
        }
        for name, resolver in OFFICIAL.items():
            interpreters[name] = fed(
                OfficialInterpreter(
                    str(path), experimental_op_resolver_type=resolver, num_threads=1
                )
            )
        best = best_times(interpreters, args.rounds)
        cells = " ".join(f"{value:10.2f}" for value in best.values())
        ratio = best["reference"] / best["Delegraph"]
        print(f"{path.stem[:60]:60} {cells} {ratio:7.2f}", flush=True)


if __name__ == "__main__":
    main()
