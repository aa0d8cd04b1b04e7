"""Operators that quantize floats to integers, and dequantize them.

Source:
    core/kernels/quantize_op.cc, dequantize_op.cc, quantization_utils.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.registry import operator
from delegraph_flex.numpy_executor.rounding import half_away

Floats = NDArray[np.float32]
Quantize = Callable[[Floats, Any, Any], tuple[Any, Any, Any]]
"""Function that converts an array, with least and most value, to integers and the used range."""

_TYPES = (DataType.QINT8, DataType.QUINT8, DataType.QINT16, DataType.QUINT16, DataType.QINT32)
_MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
_HALF = np.float32(0.5)


@operator("QuantizeV2", types=_TYPES)
def quantize(node: FlexNode) -> Step:
    """Function that quantizes floats within a range, and returns the range that was used."""
    mode = node.choice("mode", _MODES, "MIN_COMBINED")
    rounding = node.choice(
        "round_mode", ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"), "HALF_AWAY_FROM_ZERO"
    )
    if rounding == "HALF_TO_EVEN" and mode != "SCALED":
        raise Unsupported(f"attribute 'round_mode' is {rounding!r}, expected mode 'SCALED' with it")
    axis, dtype = node.int("axis", -1), node.type("T").dtype
    _require_one_range(mode, axis)
    width = np.float32(node.float("ensure_minimum_range", 0.01))
    convert: Quantize = {
        "MIN_COMBINED": _combined,
        "MIN_FIRST": _min_first,
        "SCALED": _scaled(rounding == "HALF_TO_EVEN", node.bool("narrow_range", False)),
    }[mode](dtype)

    def run(x: Floats, low: Floats, high: Floats) -> list[NDArray[Any]]:
        low, high, shape = _ranges(x, low, high, axis)
        if (high < low).any():
            raise ValueError(f"ranges are from {low.tolist()} to {high.tolist()}")
        least = np.minimum(np.float32(0), low)
        epsilon = np.maximum(np.float32(1), np.maximum(np.abs(low), np.abs(high))) * width
        most = np.maximum(np.float32(0), np.maximum(high, least + epsilon))
        y, least, most = convert(x, least, most)
        return [y, least.reshape(shape), most.reshape(shape)]

    return run


@operator("Dequantize", types=_TYPES)
def dequantize(node: FlexNode) -> Step:
    """Return a function that dequantizes integers of a range to floats."""
    mode = node.choice("mode", _MODES, "MIN_COMBINED")
    axis, dtype = node.int("axis", -1), node.type("dtype", DataType.FLOAT32).dtype
    if dtype != np.float32 and mode != "MIN_COMBINED":
        raise Unsupported(f"attribute 'mode' is {mode!r}, expected 'MIN_COMBINED' of 16 bits")
    _require_one_range(mode, axis)
    limits = np.iinfo(node.type("T").dtype)
    is_narrow = node.bool("narrow_range", False)

    def run(x: NDArray[Any], low: Floats, high: Floats) -> NDArray[Any]:
        low, high, _ = _ranges(x, low, high, axis)
        values = x.astype(np.float32)
        if mode == "SCALED":
            y = values * _scale_of_range(limits, low, high, is_narrow)
        elif mode == "MIN_FIRST":
            y = _from_min_first(values, low, high, limits)
        else:
            steps = np.float32(limits.max) - np.float32(limits.min)
            half = np.float32((steps + 1) / 2 if limits.min else 0)
            y = (values + half) * ((high - low) / steps) + low
        return y.astype(dtype, copy=False)

    return run


def _require_one_range(mode: str, axis: int) -> None:
    if mode == "MIN_FIRST" and axis != -1:
        raise Unsupported(f"attribute 'axis' is {axis}, expected -1 with 'MIN_FIRST'")


def _ranges(
    x: NDArray[Any], low: Floats, high: Floats, axis: int
) -> tuple[Floats, Floats, tuple[int, ...]]:
    """Return *low* and *high* in shapes that broadcast with *x*, and the shape of output bounds.

    There is a range for each index along *axis*, or one range if *axis* is -1.
    """
    if axis < -1 or axis >= x.ndim:
        raise ValueError(f"axis is {axis}, expected below {x.ndim}")
    count = 1 if axis == -1 else x.shape[axis]
    if np.size(low) != count or np.size(high) != count:
        raise ValueError(f"{np.size(low)} and {np.size(high)} ranges, expected {count}")
    shape = () if axis == -1 else (count,) + (1,) * (x.ndim - 1 - axis)
    low, high = (np.reshape(values, shape) for values in (low, high))
    return low, high, () if axis == -1 else (count,)


def _combined(dtype: np.dtype[Any]) -> Quantize:
    limits = np.iinfo(dtype)
    steps = np.float32(limits.max) - np.float32(limits.min)

    def convert(x: Floats, low: Any, high: Any) -> tuple[Any, Any, Any]:
        scale = steps / (high - low)
        above = (np.clip(x, low, high) - low) * scale
        if limits.min:
            return _integers(half_away(above - (steps + 1) / 2), dtype), low, high
        return _integers(np.trunc(above + _HALF), dtype), low, high

    return convert


def _min_first(dtype: np.dtype[Any]) -> Quantize:
    limits = np.iinfo(dtype)
    upper = np.float32(limits.max)
    if float(upper) > limits.max:
        upper = np.nextafter(upper, np.float32(0))

    def convert(x: Floats, low: Any, high: Any) -> tuple[Any, Any, Any]:
        steps = float((1 << 8 * dtype.itemsize) - 1)
        scale = (steps / (high - low).astype(np.float64)).astype(np.float32)
        places = half_away(x * scale) - (half_away(low * scale) - np.float32(limits.min))
        return _integers(np.clip(places, np.float32(limits.min), upper), dtype), low, high

    return convert


def _scaled(is_even: bool, is_narrow: bool) -> Callable[[np.dtype[Any]], Quantize]:
    rounded = np.rint if is_even else half_away

    def make(dtype: np.dtype[Any]) -> Quantize:
        limits = np.iinfo(dtype)
        first, last = np.float32(limits.min + is_narrow), np.float32(limits.max)
        huge = np.finfo(np.float32).max

        def convert(x: Floats, low: Any, high: Any) -> tuple[Any, Any, Any]:
            scale = np.minimum(
                np.where(first * low > 0, first / low, huge),
                np.where(last * high > 0, last / high, huge),
            ).astype(np.float32)
            low, high = first / scale, last / scale
            return _integers(rounded(np.clip(x, low, high) * scale), dtype), low, high

        return convert

    return make


def _integers(x: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return *x*, whole floats, as *dtype*; overflow gives the lowest integer, as on x86."""
    limits = np.iinfo(dtype)
    if dtype.itemsize < 4:
        return np.asarray(x).astype(dtype)
    is_inside = (x >= limits.min) & (x <= np.nextafter(np.float32(limits.max), np.float32(0)))
    return np.where(is_inside, x, limits.min).astype(np.int64).astype(dtype)


def _scale_of_range(limits: Any, low: Floats, high: Floats, is_narrow: bool) -> Floats:
    upper: Floats = high / np.float32(limits.max)
    if limits.min == 0:
        return upper
    scale: Floats = np.maximum(low / np.float32(limits.min + is_narrow), upper)
    return scale


def _from_min_first(values: Floats, low: Floats, high: Floats, limits: Any) -> Floats:
    steps = float(limits.max) - float(limits.min)
    scale = np.float32(float(high - low) / steps)
    base = low if high == low else half_away(low / scale) * scale
    y: Floats = (base - np.float32(limits.min) * scale) + values * scale
    return y
