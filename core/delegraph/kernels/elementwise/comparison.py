"""EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL."""

from __future__ import annotations

from collections.abc import Callable, Collection

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

_ORDERED = tensor_types("FLOAT32 FLOAT16 INT16 INT32 INT64 UINT8 INT8")
_EQUATABLE = _ORDERED | {TensorType.BOOL, TensorType.STRING}

_COMPARISONS = {
    "EQUAL": (np.equal, _EQUATABLE),
    "NOT_EQUAL": (np.not_equal, _EQUATABLE),
    "LESS": (np.less, _ORDERED | {TensorType.BFLOAT16}),
    "LESS_EQUAL": (np.less_equal, _ORDERED),
    "GREATER": (np.greater, _ORDERED | {TensorType.BFLOAT16}),
    "GREATER_EQUAL": (np.greater_equal, _ORDERED),
}
"""Function and types of each operator. Source: tflite/kernels/comparisons.cc."""


def _register(name: str, comparison: np.ufunc, allowed: Collection[TensorType]) -> None:
    @kernel(name)
    def prepare(context: OpContext, node: Node) -> Eval:
        """Prepare an operator that compares two operands, broadcast.

        8-bit integers are compared by their real numbers. EQUAL and NOT_EQUAL do so for int16 with
        scales, too; the others compare int16 as stored.
        """
        a, b, y = broadcast_operands(context, node, result=TensorType.BOOL)
        require_type(a, allowed)
        return _evaluation(context, a, b, y, comparison)


for _name, _row in _COMPARISONS.items():
    _register(_name, *_row)


def _evaluation(context: OpContext, a: Tensor, b: Tensor, y: Tensor, comparison: np.ufunc) -> Eval:
    by_value = a.dtype.itemsize == 1 and a.type is not TensorType.BOOL
    if a.type is TensorType.INT16 and comparison in (np.equal, np.not_equal):
        by_value = a.quantization is not None
    if by_value:
        return run_integers(context, a, b, y, _scaled(a, b, comparison))
    if a.type is TensorType.STRING:
        return _strings(a, b, y, comparison)
    return run_binary(comparison, a, b, y)


def _strings(a: Tensor, b: Tensor, y: Tensor, comparison: np.ufunc) -> Eval:
    def run() -> None:
        y.data[...] = comparison(a.data, b.data).astype(np.bool_)

    return run


def _scaled(a: Tensor, b: Tensor, comparison: np.ufunc) -> BinaryFunction:
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
