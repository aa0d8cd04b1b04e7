"""Floats rounded to the steps of a quantization.

Source:
    core/kernels/fake_quant_ops_functor.h.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.registry import operator
from delegraph_flex.numpy_executor.rounding import half_away

Floats = NDArray[np.float32]


@operator("FakeQuantWithMinMaxArgs")
def fake_quant_args(node: FlexNode) -> Step:
    """Floats rounded to the steps between two attributes."""
    low, high = (np.float32(node.float(name, value)) for name, value in (("min", -6), ("max", 6)))
    if not low < high:
        raise Unsupported(f"attributes 'min' and 'max' are {low} and {high}")
    steps = _steps(node)

    def run(x: Floats) -> Floats:
        return _rounded(x, low, high, steps)

    return run


@operator("FakeQuantWithMinMaxVars")
def fake_quant_vars(node: FlexNode) -> Step:
    """Floats rounded to the steps between two scalars."""
    steps = _steps(node)

    def run(x: Floats, low: Any, high: Any) -> Floats:
        if np.ndim(low) or np.ndim(high):
            shapes = f"{list(np.shape(low))} and {list(np.shape(high))}"
            raise ValueError(f"least and most have shapes {shapes}, expected scalars")
        return _rounded(x, np.float32(low), np.float32(high), steps)

    return run


@operator("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_per_channel(node: FlexNode) -> Step:
    """Floats rounded to the steps between two numbers for each channel."""
    steps = _steps(node)

    def run(x: Floats, low: Floats, high: Floats) -> Floats:
        if not x.ndim or low.shape != x.shape[-1:] or high.shape != x.shape[-1:]:
            shapes = f"{list(x.shape)}, {list(low.shape)}, {list(high.shape)}"
            raise ValueError(f"input, least and most have shapes {shapes}, expected a channel each")
        return _rounded(x, low, high, steps)

    return run


def _steps(node: FlexNode) -> tuple[np.float32, np.float32]:
    """Return the first and the last step."""
    bits = node.int("num_bits", 8)
    if not 2 <= bits <= 16:
        raise Unsupported(f"attribute 'num_bits' is {bits}, expected 2 to 16")
    first = 1 if node.bool("narrow_range", False) else 0
    return np.float32(first), np.float32((1 << bits) - 1)


def _rounded(
    x: Floats, low: Floats | np.float32, high: Floats | np.float32, steps: tuple[Any, Any]
) -> Floats:
    """Return the nearest steps; the range is moved so that 0 is a step. An empty one gives 0."""
    first, last = steps
    is_empty = (low == 0) & (high == 0)
    scale = np.where(is_empty, np.float32(1), (high - low) / (last - first))
    zero = first - low / scale
    zero = np.clip(half_away(zero), first, last)
    least, most = (first - zero) * scale, (last - zero) * scale
    inverse = np.float32(1) / scale
    origin = np.floor(-least * inverse + np.float32(0.5))
    clamped = np.maximum(np.minimum(x, most), least)
    y = np.floor((clamped - least) * inverse - origin + np.float32(0.5)) * scale
    result: Floats = np.where(is_empty, np.float32(0), y)
    return result
