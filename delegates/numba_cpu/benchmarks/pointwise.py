"""Prints how busy kernels keep the multipliers: ``python benchmarks/pointwise.py [--cpu avx2]``.

Each 1 x 1 convolution of MobileNetV2 runs alone, as a whole: products, rescaling and storing. The
peak is what the same process measures with the same instructions; see ``peak``.
"""

from __future__ import annotations

import argparse

import numpy as np
from peak import Mix, float32_mix, float32_peak, int8_mix, int8_peak
from profile_rows import RecordingDelegate, row_times
from rich.console import Console
from tables import print_table

from delegraph import Interpreter
from delegraph.schema.options import Conv2DOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph.tools import random_values
from delegraph_numba_cpu.library.cpu import level_named
from delegraph_numba_cpu.options import NumbaCpuOptions

LAYERS = (
    (112, 32, 16), (112, 16, 96), (56, 96, 24), (56, 24, 144), (56, 144, 24), (28, 144, 32),
    (28, 32, 192), (28, 192, 32), (14, 192, 64), (14, 64, 384), (14, 384, 64), (14, 384, 96),
    (14, 96, 576), (14, 576, 96), (7, 576, 160), (7, 160, 960), (7, 960, 160), (7, 960, 320),
    (7, 320, 1280),
)  # fmt: skip
"""Height and width, channels, outputs."""


def layer(size: int, channels: int, outputs: int, kind: str) -> bytes:
    """Return a model of one 1 x 1 convolution, ``FLOAT32`` or ``INT8``."""
    rng = np.random.default_rng(0)
    shape, weight_shape = (1, size, size, channels), (outputs, 1, 1, channels)
    if kind == "FLOAT32":
        tensors = {
            "x": tensor(shape),
            "w": constant(rng.uniform(-1, 1, weight_shape).astype(np.float32)),
            "b": constant(rng.uniform(-1, 1, outputs).astype(np.float32)),
            "y": tensor((1, size, size, outputs)),
        }
    else:
        scale = 0.02 * channels**0.5
        tensors = {
            "x": tensor(shape, kind, scale=0.02, zero_point=3),
            "w": constant(
                rng.integers(-127, 127, weight_shape), kind, scale=[0.005] * outputs, axis=0
            ),
            "b": constant(rng.integers(-3000, 3000, outputs).astype(np.int32), scale=0.0001),
            "y": tensor((1, size, size, outputs), kind, scale=scale, zero_point=5),
        }
    nodes = [("CONV_2D", "x w b", "y", Conv2DOptions(stride_h=1, stride_w=1))]
    return bytes(graph_model(nodes, inputs="x", outputs="y", tensors=tensors))


def microseconds(model: bytes, cpu: str, rounds: int) -> float:
    """Return the least that a model took on one core."""
    delegate = RecordingDelegate(NumbaCpuOptions(num_threads=1, cpu=cpu))
    interpreter = Interpreter(model_content=model, experimental_delegates=[delegate], num_threads=1)
    interpreter.allocate_tensors()
    (details,) = interpreter.get_input_details()
    interpreter.set_tensor(details["index"], random_values(details, np.random.default_rng(0)))
    interpreter.invoke()
    (kernel,) = delegate.kernels
    assert kernel.program is not None
    return sum(row.microseconds for row in row_times(kernel.program, kernel, rounds, 1))


def print_shares(out: Console, kind: str, mix: Mix, peak: float, cpu: str, rounds: int) -> None:
    """Print the layers of one type."""
    rows, work, spent = [], 0.0, 0.0
    for size, channels, outputs in LAYERS:
        us = microseconds(layer(size, channels, outputs, kind), cpu, rounds)
        operations = 2e-3 * size * size * channels * outputs
        work, spent = work + operations, spent + us
        shape = f"{size} x {size} x {channels} -> {outputs}"
        rows.append((shape, f"{us:.1f}", f"{operations / us:.0f}", f"{operations / us / peak:.0%}"))
    rows.append(("all", f"{spent:.1f}", f"{work / spent:.0f}", f"{work / spent / peak:.0%}"))
    out.print(f"\n{kind}, {mix.name} of {mix.total}: peak {peak:.0f} Gop/s", style="bold")
    columns = ("layer", "µs", "Gop/s", "of peak")
    print_table(out, columns, rows, right=columns[1:])


def main() -> None:
    """Print the layers of both types."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", default="auto", help="level of instructions")
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    level = level_named(arguments.cpu)
    out = Console(width=None if Console().is_terminal else 160, highlight=False, markup=False)
    out.print(f"{level.name}, one core")
    for kind, mix, peak in (
        ("FLOAT32", float32_mix(level), float32_peak),
        ("INT8", int8_mix(level), int8_peak),
    ):
        if mix is not None:
            print_shares(out, kind, mix, peak(level.name), level.name, arguments.rounds)


if __name__ == "__main__":
    main()
