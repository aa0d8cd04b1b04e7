"""Operators of two int16 operands, as functions of NumPy or JAX arrays."""

from __future__ import annotations

from delegraph.arithmetic.lookup_table import BinaryFunction
from delegraph.arithmetic.quantized_add import int16_sums
from delegraph.arithmetic.quantized_binary import (
    power_of_two_sum,
    product_function,
    rescale,
    scaled_sum,
    sum_function,
)
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import require_zero_points
from delegraph.operators.numerics import Numerics
from delegraph.operators.registration import Node
from delegraph.operators.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Int16Pairs:
    """Functions that compute an int16 operator on two int64 arrays, which broadcast.

    The functions use only operators and methods of the arrays, so that JAX arrays work as well.

    Attributes:
        vector: function for elements before *vector_end*, in the output's order.
        rest: function for elements from *vector_end* on.
        vector_end: position at which the official kernel's vector loop ends.
    """

    vector: BinaryFunction
    rest: BinaryFunction
    vector_end: int


def int16_pairs(
    op: str, node: Node, a: Tensor, b: Tensor, y: Tensor, numerics: Numerics
) -> Int16Pairs:
    """Return quantized ADD, SUB or MUL as functions of two arrays.

    Args:
        op: name of the operator.
        node: the node, for its options.
        a: first operand, int16.
        b: second operand, int16.
        y: output, int16.
        numerics: official kernels whose rounding is reproduced, builtin or reference.

    Raises:
        OperatorError: the operator does not support the zero points or scales.
    """
    if op == "MUL":
        product = product_function(node, a, b, y)
        return Int16Pairs(product, product, 0)
    if op == "ADD":
        require_zero_points(a, b, y)
        sums = int16_sums(node, a, b, y, numerics)
    else:
        difference = scaled_sum(node, a, b, y, -1, rescale)
        sums = difference, difference, 0
    by_shifts = power_of_two_sum(node, a, b, y, sums[0].sign)
    if by_shifts is not None:
        return Int16Pairs(by_shifts, by_shifts, 0)
    vector, rest, vector_end = sums
    return Int16Pairs(sum_function(vector), sum_function(rest), vector_end)
