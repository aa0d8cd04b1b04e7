"""Quantized ADD, with the roundings of the builtin kernel's vector loops.

The builtin kernel adds 8 or 16 elements at a time, and the remaining elements one by one. The two
loops round differently when they scale the operands to a common scale. The reference kernel adds
all elements one by one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from delegraph.arithmetic.fixed_point import saturating_rounding_doubling_high_mul
from delegraph.arithmetic.int16_sum import ScaledSum
from delegraph.arithmetic.lookup_table import BinaryFunction, Integers
from delegraph.arithmetic.quantized_binary import (
    power_of_two_sum,
    rescale,
    run_int16,
    run_sum,
    scaled_sum,
    sum_function,
)
from delegraph.arithmetic.vector_loop import inner_loop, run_vector_loop, wrap_int16
from delegraph.operators.checks import require_zero_points
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from delegraph.operators.numerics import Numerics


def quantized_add(context: OpContext, node: Node, a: Tensor, b: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that sets *y* to the quantized sum of *a* and *b*.

    Raises:
        OperatorError: an int16 tensor has a zero point.

    Source:
        AddElementwise, AddElementwiseInt8 and AddScalarBroadcast of
        tflite/kernels/internal/optimized/{optimized_ops,integer_ops/add}.h as compiled for x86
        (NEON code through NEON_2_SSE); for int16 with power-of-two scales Add of
        tflite/kernels/internal/reference/add.h.
    """
    if a.type is TensorType.INT16:
        require_zero_points(a, b, y)
        function = power_of_two_sum(node, a, b, y, 1)
        if function is not None:
            return run_int16(a, b, y, function)
        return _run_int16_sums(context, node, a, b, y)
    scalar = scaled_sum(node, a, b, y, 1, rescale)
    if context.numerics != "builtin":
        return run_sum(context, a, b, y, scalar)
    loop = inner_loop(a.shape, b.shape)
    late = a.type is TensorType.UINT8 or (loop is not None and loop.repeats_scalar)
    vector = scaled_sum(node, a, b, y, 1, _shifted_late if late else _shifted_early)
    functions = sum_function(vector, wrap_int16), sum_function(scalar)
    return run_vector_loop(context, (a, b, y), functions, loop, 8 if late else 16)


def int16_sums(
    node: Node, a: Tensor, b: Tensor, y: Tensor, numerics: Numerics
) -> tuple[ScaledSum, ScaledSum, int]:
    """Return ``y = a + b`` for int16 as two sums, and the position where the first sum ends.

    The first sum has the roundings of the builtin vector loop, the second sum the roundings of
    elements after the loop. For operands of different shapes there is no vector loop, so the
    position is 0. *numerics* says whether the roundings of the builtin or of the reference kernel
    are reproduced.
    """
    has_loop = numerics == "builtin" and a.shape == b.shape
    length = math.prod(a.shape) if has_loop else 0
    vector, rest = (scaled_sum(node, a, b, y, 1, each) for each in (_shifted_early, rescale))
    return vector, rest, length - length % 16


def _run_int16_sums(context: OpContext, node: Node, a: Tensor, b: Tensor, y: Tensor) -> Eval:
    vector, rest, vector_end = int16_sums(node, a, b, y, context.numerics)
    if vector_end in (0, math.prod(y.shape)):
        return run_sum(context, a, b, y, vector if vector_end else rest)
    run = run_sum(context, a, b, y, vector)
    return _split_int16((a, b, y), run, sum_function(rest), vector_end)


def _shifted_early(q: Integers, left_shift: int, multiplier: int, shift: int) -> Integers:
    """Rescale *q* as the int8 and int16 vector loops do: shift once, then multiply.

    The shift is *left_shift* + *shift*, and *multiplier* a Q31 mantissa.
    """
    net = left_shift + shift
    shifted = q << net if net >= 0 else q >> -net
    return saturating_rounding_doubling_high_mul(shifted, multiplier).astype(np.int64)


def _shifted_late(q: Integers, left_shift: int, multiplier: int, shift: int) -> Integers:
    """Rescale *q* like the vector loops for uint8 and for scalars: the last shift rounds down.

    *q* is shifted by *left_shift*, multiplied by the Q31 mantissa *multiplier*, and shifted by
    *shift*.
    """
    product = saturating_rounding_doubling_high_mul(q << left_shift, multiplier)
    return product.astype(np.int64) >> -shift


def _split_int16(
    tensors: tuple[Tensor, Tensor, Tensor], run: Eval, scalar: BinaryFunction, vector_end: int
) -> Eval:
    a, b, y = tensors

    def run_both() -> None:
        qa, qb = (x.data.reshape(-1)[vector_end:].astype(np.int64) for x in (a, b))
        run()  # may overwrite the operands: the output can share memory with one
        y.data.reshape(-1)[vector_end:] = scalar(qa, qb)

    return run_both
