"""Operators that convert element types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.registry import COMPLEX, NUMBERS, operator

Array = NDArray[Any]

_TRUNCATED_BITS = {
    (DataType.FLOAT32, DataType.FLOAT16): 13,
    (DataType.FLOAT32, DataType.BFLOAT16): 16,
    (DataType.FLOAT64, DataType.FLOAT16): 42,
    (DataType.FLOAT64, DataType.FLOAT32): 29,
}
"""Number of mantissa bits that a narrower type lacks; other conversions ignore ``Truncate``."""


@operator("Cast")
def cast(node: FlexNode) -> Step:
    """Return a function that converts values to another element type.

    Fractions are dropped, integers wrap around, complex numbers keep their real part. For a float
    outside of an integer's range, the result depends on the processor, as in TensorFlow.
    """
    source, target = node.type("SrcT"), node.type("DstT")
    known = NUMBERS | {DataType.BOOL}
    if not {source, target} <= known:
        raise Unsupported(f"Cast of {source.name} to {target.name}", "dtype")
    if source is target:
        return lambda x: x
    dtype = target.dtype
    bits = _TRUNCATED_BITS.get((source, target), 0) if node.bool("Truncate", False) else 0
    if bits:
        return lambda x: _without_low_bits(x, bits).astype(dtype)
    if source in COMPLEX and target not in COMPLEX:
        return lambda x: x.real.astype(dtype)
    return lambda x: x.astype(dtype)


@operator("Const")
def constant(node: FlexNode) -> Step:
    """Return a function that returns the tensor in the attribute ``value``."""
    value = node.node_def.attrs.get("value")
    if not isinstance(value, np.ndarray):
        raise Unsupported(f"attribute 'value' is {value!r}, expected a tensor")
    return lambda: value


def _without_low_bits(x: Array, bits: int) -> Array:
    """Return *x* with the lowest *bits* mantissa bits cleared, so that rounding is towards 0."""
    integers = np.dtype(f"u{x.dtype.itemsize}")
    ones = integers.type(np.iinfo(integers).max)
    kept = (np.ascontiguousarray(x).view(integers) & (ones << integers.type(bits))).view(x.dtype)
    return np.where(np.isnan(x), x, kept)
