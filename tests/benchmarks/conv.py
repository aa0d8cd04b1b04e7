"""Whole models made of convolutions, beside the official reference and optimised kernels.

    python tests/benchmarks/conv.py [MODEL.tflite ...] [--rounds 5]

Without arguments, every corpus model of at least five million multiply-adds. Each row runs the
three alternately in this process, one thread each, and prints the best processor time of all
rounds, in which other work on the machine hardly shows, and how many times faster than each
official kernel set Delegraph is. The ratios count.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter
from ai_edge_litert.interpreter import OpResolverType

from delegraph import Interpreter
from delegraph.graph import load_model
from delegraph.graph.model import Model

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
LEAST_PRODUCTS = 5_000_000


def products(model: Model) -> int:
    """Return the multiply-adds of the model's convolutions and matrix products."""
    total = 0
    for subgraph in model.subgraphs:
        for op in subgraph.operators:
            if op.name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
                weight = subgraph.tensors[op.inputs[1]].shape
                taps = weight[1:3] if op.name == "DEPTHWISE_CONV_2D" else weight[1:]
                total += math.prod(subgraph.tensors[op.outputs[0]].shape) * math.prod(taps)
    return total


def large_models() -> list[Path]:
    """Return the corpus models that are worth measuring, by name."""
    found = []
    for path in sorted((CORPUS / "models").glob("*.tflite")):
        try:
            if products(load_model(path)) >= LEAST_PRODUCTS:
                found.append(path)
        except Exception as error:  # noqa: BLE001 - the corpus has damaged files on purpose
            print(f"{path.stem}: {error}")
    return found


def feed(interpreter: Any) -> None:
    """Allocate and fill the inputs with seeded noise."""
    rng = np.random.default_rng(0)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        shape, dtype = detail["shape"], np.dtype(detail["dtype"])
        if dtype.kind == "f":
            values = rng.uniform(-1, 1, shape).astype(dtype)
        else:
            values = rng.integers(0, 2 if dtype == np.bool_ else 127, shape).astype(dtype)
        interpreter.set_tensor(detail["index"], values)


def interpreters(path: Path) -> list[Any]:
    """Return Delegraph and both official kernel sets, fed, for one model."""
    content = path.read_bytes()
    official = (
        OfficialInterpreter(
            model_content=content, experimental_op_resolver_type=kernels, num_threads=1
        )
        for kernels in (
            OpResolverType.BUILTIN_REF,
            OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
    )
    made: list[Any] = [Interpreter(model_content=content), *official]
    for interpreter in made:
        feed(interpreter)
        interpreter.invoke()
    return made


def best_times(made: Sequence[Any], rounds: int) -> list[float]:
    """Return the best milliseconds of each interpreter, run alternately."""
    best = [math.inf] * len(made)
    for _ in range(rounds):
        for i, interpreter in enumerate(made):
            start = time.process_time()
            interpreter.invoke()
            best[i] = min(best[i], 1e3 * (time.process_time() - start))
    return best


def main() -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{'model':52}{'ms':>9}{'reference':>11}{'optimised':>11}")
    for path in arguments.models or large_models():
        try:
            ours, *official = best_times(interpreters(path), arguments.rounds)
        except (RuntimeError, ValueError) as error:
            print(f"{path.stem[:50]:52}{str(error).splitlines()[0][:60]}")
            continue
        ratios = "".join(f"{time / ours:10.2f}x" for time in official)
        print(f"{path.stem[:50]:52}{ours:9.2f}{ratios}", flush=True)


if __name__ == "__main__":
    main()
