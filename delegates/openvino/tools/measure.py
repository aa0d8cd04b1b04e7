#!/usr/bin/env python3
"""Times of float models by the delegate, by OpenVINO called directly, and by LiteRT with XNNPACK.

    python delegates/openvino/tools/measure.py MODEL... [--threads 2] [--rounds 20]

All three run in turns in one process, on the same random inputs; the median of the rounds is shown,
and the least.
``start`` is the time to allocate with an empty cache, and then again with what it holds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
from ai_edge_litert.interpreter import Interpreter as LiteRt

from delegraph import Interpreter, load_delegate
from delegraph_openvino.program import core


def by_delegraph(path: Path, threads: int, folder: str) -> tuple[Interpreter, float]:
    """Return a prepared interpreter, and the seconds of its preparation."""
    begin = time.perf_counter()
    interpreter = Interpreter(
        str(path), delegates=[load_delegate("openvino")], num_threads=threads, cache_dir=folder
    )
    interpreter.allocate_tensors()
    return interpreter, time.perf_counter() - begin


def by_openvino(path: Path, threads: int, inputs: list[np.ndarray]) -> Callable[[], object]:
    """Return a function that runs the whole model by OpenVINO alone, on bound arrays."""
    model = core().read_model(path)
    model.reshape({i: ov.PartialShape(array.shape) for i, array in enumerate(inputs)})
    config = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
    }
    request = core().compile_model(model, "CPU", config).create_infer_request()
    for position, array in enumerate(inputs):
        request.set_input_tensor(position, ov.Tensor(array, shared_memory=True))
    return request.infer


def main() -> None:
    """Measure the models of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    for path in given.models:
        with tempfile.TemporaryDirectory() as folder:
            _, first = by_delegraph(path, given.threads, folder)
            interpreter, second = by_delegraph(path, given.threads, folder)
        measure(path, interpreter, given)
        print(f"    start {first:.2f} s, then {second:.2f} s ({second / first:.2f})")


def measure(path: Path, interpreter: Interpreter, given: argparse.Namespace) -> None:
    """Print the times of one model by all three runtimes."""
    details = interpreter.get_input_details()
    random = np.random.default_rng(0)
    inputs = [random.random(detail["shape"], np.float32) for detail in details]
    litert = LiteRt(str(path), num_threads=given.threads)
    litert.allocate_tensors()
    for host in (interpreter, litert):
        for detail, array in zip(host.get_input_details(), inputs, strict=True):
            host.set_tensor(detail["index"], array)
    runs = {
        "delegate": interpreter.invoke,
        "openvino": by_openvino(path, given.threads, inputs),
        "litert": litert.invoke,
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for round in range(given.rounds + 3):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            if round >= 3:
                times[name].append(time.perf_counter() - begin)
    nodes = interpreter.placement.nodes
    taken = sum(node.delegate is not None for node in nodes)
    shown = {name: (statistics.median(each) * 1e3, min(each) * 1e3) for name, each in times.items()}
    print(f"{path.stem}: {taken} of {len(nodes)} nodes")
    print(
        "    "
        + ", ".join(f"{name} {ms:.3f} ({least:.3f}) ms" for name, (ms, least) in shown.items())
    )


if __name__ == "__main__":
    main()
