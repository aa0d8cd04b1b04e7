"""Quantized ADD, with the roundings of the official kernel's vector loops.

The official kernel adds 8 or 16 elements at a time and the rest one by one, and the two ways round
the operands differently when they are brought to a common scale. Which elements are "the rest"
depends on how the shapes broadcast, so that is worked out here too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from delegraph.kernels.checks import require_zero_points
from delegraph.kernels.fixed_point import saturating_rounding_doubling_high_mul
from delegraph.kernels.lookup_table import BinaryFunction, Integers, pair_index, pair_table
from delegraph.kernels.quantized_arithmetic import (
    power_of_two_sum,
    rescale,
    run_int16,
    run_sum,
    scaled_sum,
    sum_function,
)
from delegraph.kernels.registration import Eval, Node, OpContext
from delegraph.kernels.tensor import Tensor
from delegraph.schema.enums import TensorType


@dataclass(frozen=True, slots=True)
class InnerLoop:
    """The innermost loop of a broadcasting operation.

    Attributes:
        length: elements one run of the loop computes.
        repeats_scalar: whether one operand is a single element there.
    """

    length: int
    repeats_scalar: bool


def quantized_add(context: OpContext, node: Node, a: Tensor, b: Tensor, y: Tensor) -> Eval:
    """Return the eval of quantized ADD.

    Raises:
        OperatorError: an int16 tensor has a zero point.

    Source:
        AddElementwise, AddElementwiseInt8 and AddScalarBroadcast of
        tflite/kernels/internal/optimized/{optimized_ops,integer_ops/add}.h as compiled for x86
        (NEON code through NEON_2_SSE); for int16 with power-of-two scales Add of
        tflite/kernels/internal/reference/add.h.
    """
    if a.type is TensorType.INT16:
        require_zero_points(0, a, b, y)
        function = power_of_two_sum(node, a, b, y, 1)
        if function is not None:
            return run_int16(a, b, y, function)
    scalar = scaled_sum(node, a, b, y, 1, rescale)
    loop = inner_loop(a.shape, b.shape)
    if loop is None or (a.type is TensorType.INT16 and a.shape != b.shape):
        return run_sum(context, a, b, y, scalar)
    late = a.type is TensorType.UINT8 or loop.repeats_scalar
    vector = scaled_sum(node, a, b, y, 1, _shifted_late if late else _shifted_early)
    vector_end = loop.length - loop.length % (8 if late else 16)
    if vector_end in (0, loop.length):
        return run_sum(context, a, b, y, vector if vector_end else scalar)
    if a.type is TensorType.INT16:
        run = run_sum(context, a, b, y, vector)
        return _split_int16((a, b, y), run, sum_function(scalar), vector_end)
    functions = sum_function(vector), sum_function(scalar)
    return _split_lookup(context, (a, b, y), functions, loop.length, vector_end)


def _shifted_early(q: Integers, left_shift: int, multiplier: int, shift: int) -> Integers:
    """Rescale like the vector loops for int8 and int16: one shift, then the multiplication."""
    net = left_shift + shift
    shifted = q << net if net >= 0 else q >> -net
    return saturating_rounding_doubling_high_mul(shifted, multiplier).astype(np.int64)


def _shifted_late(q: Integers, left_shift: int, multiplier: int, shift: int) -> Integers:
    """Rescale like the vector loops for uint8 and scalars: the last shift rounds down."""
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


def _split_lookup(
    context: OpContext,
    tensors: tuple[Tensor, Tensor, Tensor],
    functions: tuple[BinaryFunction, BinaryFunction],
    length: int,
    vector_end: int,
) -> Eval:
    """Return the eval of 8-bit ADD whose loops of *length* leave a rest behind *vector_end*."""
    a, b, y = tensors
    vector, scalar = (pair_table(a.dtype, y.dtype, function) for function in functions)
    index, fill = pair_index(context, a, b, y)

    def run() -> None:
        fill()
        out = y.data
        vector.take(index.data, None, out, "clip")
        rest = index.data.reshape(-1, length)[:, vector_end:]
        out.reshape(-1, length)[:, vector_end:] = scalar.take(rest, mode="clip")

    return run


def inner_loop(a: Sequence[int], b: Sequence[int]) -> InnerLoop | None:
    """Return the innermost loop in which the official kernel combines two shapes.

    None stands for shapes that alternate too often for its five nested loops.

    >>> inner_loop((2, 3, 4), (3, 4))
    InnerLoop(length=12, repeats_scalar=False)
    >>> inner_loop((2, 3, 4), (2, 3, 1))
    InnerLoop(length=4, repeats_scalar=True)

    Source:
        ProcessBroadcastShapes and BinaryBroadcastFiveFold,
        tflite/kernels/internal/reference/process_broadcast_shapes.h.
    """
    rank = max(len(a), len(b))
    pairs = [
        *zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True)
    ]
    differing = [i != j for i, j in pairs]
    if not any(differing):
        return InnerLoop(math.prod(a), repeats_scalar=False)
    last = rank - 1 - differing[::-1].index(True)
    if pairs[last][0] != 1:
        pairs = [(j, i) for i, j in pairs]
    folds = []
    for is_folded in (_is_equal, _repeats_first, _is_equal, _repeats_second, _is_equal):
        fold = 1
        while pairs and is_folded(*pairs[-1]):
            fold *= max(pairs.pop())
        folds.append(fold)
    if pairs:
        return None
    return InnerLoop(folds[0], False) if folds[0] > 1 else InnerLoop(folds[1], True)


def _is_equal(i: int, j: int) -> bool:
    return i == j


def _repeats_first(i: int, j: int) -> bool:
    return i == 1


def _repeats_second(i: int, j: int) -> bool:
    return j == 1
