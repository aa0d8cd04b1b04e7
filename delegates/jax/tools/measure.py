#!/usr/bin/env python3
"""Times of models by the delegate, by JAX called directly, and by LiteRT with XNNPACK.

    python delegates/jax/tools/measure.py MODEL... [--rounds 50]

All three run in turns in one process, on the same random inputs; the quickest of the rounds is
shown. ``start`` is the time of a fresh process to allocate with an empty cache, and then again with
what it holds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from ai_edge_litert.interpreter import Interpreter as LiteRt

from delegraph import Interpreter
from delegraph_jax.compiling import compile_safely
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.options import JaxOptions

_START = """
import sys, time
from delegraph import Interpreter, load_delegate
import jax
begin = time.perf_counter()
delegate = load_delegate("jax")
interpreter = Interpreter(sys.argv[1], experimental_delegates=[delegate], cache_dir=sys.argv[2])
interpreter.allocate_tensors()
interpreter.invoke()
print(time.perf_counter() - begin)
"""


def start(path: Path, folder: str) -> float:
    """Return the seconds from the start of a new process to the first result."""
    command = [sys.executable, "-c", _START, str(path), folder]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def direct(delegate: JaxDelegate, interpreter: Interpreter) -> Callable[[], object]:
    """Return a function that runs the only partition by JAX alone, on its own arrays."""
    [partition] = delegate.partitions
    with jax.enable_x64(True):
        arrays = [jax.device_put(np.array(interpreter.get_tensor(i))) for i in partition.inputs]
        compiled = compile_safely(jax.jit(partition).lower(*arrays), "cpu")
    return lambda: jax.block_until_ready(compiled(*arrays))


def main() -> None:
    """Measure the models of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=50)
    given = parser.parse_args()
    for path in given.models:
        with tempfile.TemporaryDirectory() as folder:
            first, second = start(path, folder), start(path, folder)
            measure(path, given.rounds, folder)
        print(f"    start {first:.2f} s, then {second:.2f} s ({second / first:.2f})")


def measure(path: Path, rounds: int, folder: str) -> None:
    """Print the times of one model by the delegate, by LiteRT and, if possible, by JAX alone."""
    delegate = JaxDelegate(JaxOptions())
    interpreter = Interpreter(str(path), experimental_delegates=[delegate], cache_dir=folder)
    litert = LiteRt(str(path))
    generator = np.random.default_rng(0)
    for host in (interpreter, litert):
        host.allocate_tensors()
        for detail in host.get_input_details():
            values = generator.random(detail["shape"]) * 100
            host.set_tensor(detail["index"], values.astype(detail["dtype"]))
    runs: dict[str, Callable[[], object]] = {
        "delegate": interpreter.invoke,
        "litert": litert.invoke,
    }
    if len(delegate.partitions) == 1:
        runs["jax"] = direct(delegate, interpreter)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    nodes = interpreter.placement.nodes
    taken = sum(node.delegate is not None for node in nodes)
    print(f"{path.stem}: {taken} of {len(nodes)} nodes, {len(delegate.partitions)} partitions")
    print("    " + ", ".join(f"{name} {min(each) * 1e3:.3f} ms" for name, each in times.items()))


if __name__ == "__main__":
    main()
