"""Operators that round floats to the steps of a quantization.

Source:
    core/kernels/fake_quant_ops_functor.h, quantize_and_dequantize_op.cc,
    quantize_and_dequantize_op.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.indices import check_scalar
from delegraph_flex.numpy_executor.registry import operator
from delegraph_flex.numpy_executor.rounding import half_away

Floats = NDArray[np.float32]
Array = NDArray[Any]
Quantize = Callable[[Array, Array, Array, int], Array]
"""Function that rounds an array to the steps between two bounds, with a number of bits."""

_WIDE = (DataType.FLOAT32, DataType.FLOAT64)


@operator("FakeQuantWithMinMaxArgs")
def fake_quant_args(node: FlexNode) -> Step:
    """Function that rounds floats to the quantization steps of a range in the attributes."""
    low, high = (np.float32(node.float(name, value)) for name, value in (("min", -6), ("max", 6)))
    if not low < high:
        raise Unsupported(f"attributes 'min' and 'max' are {low} and {high}")
    steps = _steps(node)

    def run(x: Floats) -> Floats:
        return _rounded(x, low, high, steps)

    return run


@operator("FakeQuantWithMinMaxVars")
def fake_quant_vars(node: FlexNode) -> Step:
    """Function that rounds floats to the quantization steps of a range, given as two scalars."""
    steps = _steps(node)

    def run(x: Floats, low: Any, high: Any) -> Floats:
        if np.ndim(low) or np.ndim(high):
            shapes = f"{list(np.shape(low))} and {list(np.shape(high))}"
            raise ValueError(f"least and most have shapes {shapes}, expected scalars")
        return _rounded(x, np.float32(low), np.float32(high), steps)

    return run


@operator("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_per_channel(node: FlexNode) -> Step:
    """Return a function that rounds floats to the quantization steps of a range per channel."""
    steps = _steps(node)

    def run(x: Floats, low: Floats, high: Floats) -> Floats:
        if not x.ndim or low.shape != x.shape[-1:] or high.shape != x.shape[-1:]:
            shapes = f"{list(x.shape)}, {list(low.shape)}, {list(high.shape)}"
            raise ValueError(f"input, least and most have shapes {shapes}, expected a channel each")
        return _rounded(x, low, high, steps)

    return run


def _steps(node: FlexNode) -> tuple[np.float32, np.float32]:
    """Return the numbers of the first and the last quantization step."""
    bits = node.int("num_bits", 8)
    if not 2 <= bits <= 16:
        raise Unsupported(f"attribute 'num_bits' is {bits}, expected 2 to 16")
    first = 1 if node.bool("narrow_range", False) else 0
    return np.float32(first), np.float32((1 << bits) - 1)


def _rounded(
    x: Floats, low: Floats | np.float32, high: Floats | np.float32, steps: tuple[Any, Any]
) -> Floats:
    """Return *x* rounded to quantization steps between *low* and *high*.

    The range is first shifted so that 0 is a step.

    An empty range gives 0.
    """
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


@operator("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4", types=_WIDE)
def quantize_and_dequantize(node: FlexNode) -> Step:
    """Function that rounds floats to the steps of a quantization which represents 0 exactly.

    A range for each channel is treated as in version 3; TensorFlow 2.21 rejects it here.
    """
    mode = node.choice("round_mode", ("HALF_TO_EVEN", "HALF_UP"), "HALF_TO_EVEN")
    quantize = _quantize(node, np.rint if mode == "HALF_TO_EVEN" else _half_up)
    bits = node.int("num_bits", 8)
    return lambda x, low, high: quantize(x, low, high, bits)


@operator("QuantizeAndDequantizeV3", types=_WIDE)
def quantize_and_dequantize_v3(node: FlexNode) -> Step:
    """Function that rounds floats to quantization steps, including 0; the bit width is an input."""
    quantize = _quantize(node, np.rint)

    def run(x: Array, low: Array, high: Array, bits: Array) -> Array:
        check_scalar(bits, "num_bits")
        return quantize(x, low, high, int(bits))

    return run


def _half_up(x: Array) -> Array:
    return np.floor(x + np.float32(0.5))


def _quantize(node: FlexNode, rounded: Callable[[Array], Array]) -> Quantize:
    is_signed, is_narrow = node.bool("signed_input", True), node.bool("narrow_range", False)
    has_range, axis = node.bool("range_given", node.op.endswith("V3")), node.int("axis", -1)
    dtype = node.type("T").dtype.type

    def run(x: Array, low: Array, high: Array, bits: int) -> Array:
        if not 0 < bits < (62 if is_signed else 63):
            raise ValueError(f"num_bits is {bits}, expected 1 to {61 if is_signed else 62}")
        if not -1 <= axis < x.ndim:
            raise ValueError(f"axis is {axis}, expected -1 to {x.ndim - 1}")
        first = (is_narrow - (1 << bits - 1)) if is_signed else 0
        last = (1 << (bits - is_signed)) - 1
        low, high = _given(x, low, high, axis) if has_range else _found(x, axis)
        low, high, scale, step = _scales(low, high, dtype(first), dtype(last))
        if has_range:  # a bound that is NaN clamps nothing
            x = np.where(x > high, high, x)
            x = np.where(x < low, low, x)
        return rounded(x * scale) * step

    return run


def _given(x: Array, low: Array, high: Array, axis: int) -> tuple[Array, Array]:
    """Return the bounds *low* and *high* in shapes that broadcast with *x*.

    There is one range for each channel along *axis*, or one range if *axis* is negative.
    """
    if axis >= 0:
        if low.shape != x.shape[axis : axis + 1] or high.shape != low.shape:
            shapes = f"{list(low.shape)} and {list(high.shape)}"
            raise ValueError(f"least and most have shapes {shapes}, expected [{x.shape[axis]}]")
        shape = (-1,) + (1,) * (x.ndim - 1 - axis)
        return low.reshape(shape), high.reshape(shape)
    if low.size != 1 or high.size != 1:
        raise ValueError(f"{low.size} and {high.size} ranges, expected one")
    low, high = low.reshape(()), high.reshape(())
    if low > high:
        raise ValueError(f"the range is from {low} to {high}")
    return low, high


def _found(x: Array, axis: int) -> tuple[Array, Array]:
    """Return the minimum and maximum of *x*, or of each channel along *axis*, ignoring NaN."""
    axes = tuple(i for i in range(x.ndim) if i != axis)
    least = np.fmin.reduce(x, axes, keepdims=True, initial=np.inf)
    return least, np.fmax.reduce(x, axes, keepdims=True, initial=-np.inf)


def _scales(low: Array, high: Array, first: Any, last: Any) -> tuple[Array, Array, Array, Array]:
    """Return the range that the steps cover (low, high), steps per unit, and units per step.

    *first* and *last* are the numbers of the first and the last step.
    """
    huge = np.finfo(low.dtype).max
    from_low = np.where(first * low > 0, first / low, huge)
    from_high = np.where(last * high > 0, last / high, huge)
    is_low = from_low < from_high
    step = np.where(is_low, low / first, high / last)
    return (
        np.where(is_low, low, first * step),
        np.where(is_low, last * step, high),
        np.where(is_low, from_low, from_high),
        step,
    )
