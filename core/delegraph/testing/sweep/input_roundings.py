"""Changes inputs and constants by rounding errors, to measure how much right results change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.schema.enums import TensorType
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.testing.sweep.sweep_case import SweepCase

NUDGES = 6
"""Number of runs that measure how much results depend on roundings."""


def nudged(x: NDArray[Any], rng: np.random.Generator, *, smoothly: bool) -> NDArray[Any]:
    """Return a copy of *x* with changes as large as the roundings of float32 sums.

    Rounding a product or a partial sum has the same effect as changing its summands. For short
    sums, each element changes by 4 units of 2**-23, up or down. For sums along the longest axis
    (*smoothly*), the changes make a random walk, because a partial sum is rounded again at each
    later step.

    Args:
        x: array of float32.
        rng: generator that decides which elements go up.
        smoothly: whether neighbouring elements change by nearly the same amount.
    """
    ups = rng.choice((-1.0, 1.0), x.size)
    longest = max(x.shape, default=1)
    if smoothly:
        ups = np.cumsum(ups) * np.sqrt(max(longest, 1) / max(x.size, 1))
    else:
        ups *= 4
    with np.errstate(all="ignore"):
        moved: NDArray[Any] = (x * (1 + ups.reshape(x.shape) * 2.0**-23)).astype(np.float32)
    return moved


def nudged_case(case: SweepCase, number: int) -> SweepCase:
    """Return a case whose float32 inputs and constants are changed by rounding errors.

    Each *number* gives other changes.
    """
    rng, smoothly = np.random.default_rng(number), number % 2 == 0

    def moved(x: NDArray[Any]) -> NDArray[Any]:
        return nudged(x, rng, smoothly=smoothly) if x.dtype == np.float32 else x

    steps = tuple(tuple(moved(x) for x in step) for step in case.steps)
    model = read_model(np.frombuffer(case.content, np.uint8))
    graphs, buffers = model.subgraphs or (), list(model.buffers or ())
    tensors = (tensor for graph in graphs for tensor in graph.tensors or ())
    for index in sorted({t.buffer for t in tensors if t.type is TensorType.FLOAT32}):
        data = buffers[index].data
        if data is not None and data.size % 4 == 0:
            values = moved(np.frombuffer(data.tobytes(), np.float32))
            buffers[index] = buffers[index].replace(data=values.view(np.uint8))
    content = write_model(model.replace(buffers=tuple(buffers)))
    return replace(case, content=content, steps=steps)
