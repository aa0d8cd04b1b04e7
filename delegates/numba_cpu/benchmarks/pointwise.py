"""Prints how busy kernels keep the multipliers: ``python benchmarks/pointwise.py [--cpu avx2]``.

Each 1 x 1 convolution of MobileNetV2 runs alone, as a whole: products, rescaling and storing. The
roof is what ``delegraph numba roof`` measures in the same process.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from delegraph.schema.options import Conv2DOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph.tools import RunControl, Setup, record
from delegraph_numba_cpu.library.cpu import level_named
from delegraph_numba_cpu.roof.operators import OperatorRoof, operator_roofs
from delegraph_numba_cpu.roof.processor import ProcessorRoof, processor_roof

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


def print_shares(kind: str, roof: ProcessorRoof, rounds: int, folder: Path) -> None:
    """Print the layers of one type."""
    peak = roof.float32 if kind == "FLOAT32" else roof.int8
    print(f"\n{kind}: peak {'unknown' if peak is None else f'{peak / 1e9:.0f} Gop/s'}")
    print(f"  {'layer':24}{'µs':>8}{'Gop/s':>8}{'of roof':>9}")
    control = RunControl(runs=rounds, min_seconds=0.0, max_seconds=2.0)
    spent = least = operations = 0.0
    for size, channels, outputs in LAYERS:
        path = folder / f"{kind}_{size}_{channels}_{outputs}.tflite"
        path.write_bytes(layer(size, channels, outputs, kind))
        setup = Setup(str(path), delegates=(f"numba_cpu:cpu={roof.level}",), threads=1)
        (row,) = operator_roofs(record(setup, control=control), roof)
        _print_row(f"{size} x {size} x {channels} -> {outputs}", *_figures(row))
        spent, least = spent + row.seconds, least + row.roof_seconds
        operations += 2 * (row.macs_float32 + row.macs_int8)
    _print_row("all", spent, operations, least)


def _figures(row: OperatorRoof) -> tuple[float, float, float]:
    return row.seconds, 2 * (row.macs_float32 + row.macs_int8), row.roof_seconds


def _print_row(what: str, seconds: float, operations: float, least: float) -> None:
    rate = operations / seconds / 1e9
    print(f"  {what:24}{1e6 * seconds:8.1f}{rate:8.0f}{least / seconds:9.0%}", flush=True)


def main() -> None:
    """Print the layers of both types."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", default="auto", help="level of instructions")
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    roof = processor_roof(level_named(arguments.cpu), 1)
    print(f"{roof.level}, one core")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("FLOAT32", "INT8"):
            print_shares(kind, roof, arguments.rounds, Path(folder))


if __name__ == "__main__":
    main()
