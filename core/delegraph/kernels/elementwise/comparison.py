"""EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from delegraph.arithmetic.broadcast import broadcast_operands
from delegraph.arithmetic.fixed_point import (
    quantize_multiplier,
    rounding_divide_by_any_pot,
    saturating_rounding_doubling_high_mul,
)
from delegraph.arithmetic.lookup_table import BinaryFunction, Integers
from delegraph.arithmetic.quantized_binary import run_integers
from delegraph.kernels.elementwise.binary import run_binary
from delegraph.operators.checks import require_type, tensor_types
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

Comparison = Callable[..., Any]

_ORDERED = tensor_types("FLOAT32 FLOAT16 INT16 INT32 INT64 UINT8 INT8")
_EQUATABLE = _ORDERED | {TensorType.BOOL, TensorType.STRING}


@kernel("EQUAL")
def prepare_equal(context: OpContext, node: Node) -> Eval:
    """Prepare EQUAL: ``y = a == b``, broadcast.

    Source: tflite/kernels/comparisons.cc.

    Types are bool, strings, floats and integers. 8-bit integers, and int16 with scales, are
    compared by their real numbers.
    """
    return _prepare(context, node, np.equal, _EQUATABLE, int16_by_value=True)


@kernel("NOT_EQUAL")
def prepare_not_equal(context: OpContext, node: Node) -> Eval:
    """Prepare NOT_EQUAL: ``y = a != b``, broadcast, for bool, strings, floats and integers."""
    return _prepare(context, node, np.not_equal, _EQUATABLE, int16_by_value=True)


@kernel("LESS")
def prepare_less(context: OpContext, node: Node) -> Eval:
    """Prepare LESS: ``y = a < b``, broadcast.

    Source: tflite/kernels/comparisons.cc.

    Types are floats and integers. 8-bit integers are compared by their real numbers, int16 as
    stored.
    """
    return _prepare(context, node, np.less, _ORDERED | {TensorType.BFLOAT16})


@kernel("LESS_EQUAL")
def prepare_less_equal(context: OpContext, node: Node) -> Eval:
    """Prepare LESS_EQUAL: ``y = a <= b``, broadcast, for floats and integers."""
    return _prepare(context, node, np.less_equal, _ORDERED)


@kernel("GREATER")
def prepare_greater(context: OpContext, node: Node) -> Eval:
    """Prepare GREATER: ``y = a > b``, broadcast, for floats and integers."""
    return _prepare(context, node, np.greater, _ORDERED | {TensorType.BFLOAT16})


@kernel("GREATER_EQUAL")
def prepare_greater_equal(context: OpContext, node: Node) -> Eval:
    """Prepare GREATER_EQUAL: ``y = a >= b``, broadcast, for floats and integers."""
    return _prepare(context, node, np.greater_equal, _ORDERED)


def _prepare(
    context: OpContext,
    node: Node,
    comparison: Comparison,
    allowed: Collection[TensorType],
    *,
    int16_by_value: bool = False,
) -> Eval:
    a, b, y = broadcast_operands(context, node, result=TensorType.BOOL)
    require_type(a, allowed)
    by_value = a.dtype.itemsize == 1 and a.type is not TensorType.BOOL
    if a.type is TensorType.INT16 and int16_by_value:
        by_value = a.quantization is not None
    if by_value:
        return run_integers(context, a, b, y, _scaled(a, b, comparison))
    if a.type is TensorType.STRING:
        return _strings(a, b, y, comparison)
    return run_binary(comparison, a, b, y)


def _strings(a: Tensor, b: Tensor, y: Tensor, comparison: Comparison) -> Eval:
    def run() -> None:
        y.data[...] = comparison(a.data, b.data).astype(np.bool_)

    return run


def _scaled(a: Tensor, b: Tensor, comparison: Comparison) -> BinaryFunction:
    """Return the function that compares the real numbers of *a* and *b*, in fixed point.

    *comparison* is the NumPy function that compares the rescaled integers.

    Source:
        ComparisonWithScaling, tflite/kernels/internal/reference/comparisons.h. The official kernel
        multiplies as if scales were below 1, so larger scales give meaningless results, here too.
        If a scale is 1 or missing, the official kernel ends the process; here the stored integers
        are compared.
    """

    def scaled(tensor: Tensor) -> Callable[[Integers], Integers]:
        zero_point, (multiplier, shift) = tensor.zero_point, quantize_multiplier(tensor.scale)
        if tensor.scale in (0.0, 1.0):
            return lambda q: (q - zero_point) << 8

        def scale(q: Integers) -> Integers:
            high = saturating_rounding_doubling_high_mul((q - zero_point) << 8, multiplier)
            return rounding_divide_by_any_pot(high, -shift)

        return scale

    scaled_a, scaled_b = scaled(a), scaled(b)
    return lambda qa, qb: np.asarray(comparison(scaled_a(qa), scaled_b(qb)))
