"""Sums and differences of quantized int16 tensors, computed without large temporaries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.lookup_table import Integers, every_value
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import Eval, OpContext
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 1 << 13  # elements handled at a time, so that their int64 products stay in cache


@dataclass(frozen=True, slots=True)
class ScaledSum:
    """Parameters of ``a + sign * b`` in fixed point, with a common scale for both operands.

    Attributes:
        scale_a: function that converts stored integers of a to the common scale.
        scale_b: function that converts stored integers of b to the common scale.
        sign: 1 or -1.
        multiplier: Q31 mantissa from the common scale to the scale of the output.
        shift: left shift of the mantissa.
        zero_point: zero point of the output.
        low: smallest stored result.
        high: largest stored result.
    """

    scale_a: Callable[[Integers], Integers]
    scale_b: Callable[[Integers], Integers]
    sign: int
    multiplier: int
    shift: int
    zero_point: int
    low: int
    high: int


def int16_sum(context: OpContext, a: Tensor, b: Tensor, y: Tensor, total: ScaledSum) -> Eval:
    """Return the evaluation that stores the sum or difference of *a* and *b* in *y*.

    Args:
        context: context that provides working memory.
        a: first operand, int16.
        b: second operand, int16.
        y: output, int16.
        total: parameters of the sum; its shift must not be positive.
    """
    values = every_value(a.dtype)
    tables = total.scale_a(values).astype(np.int32), total.scale_b(values).astype(np.int32)
    if not a.shape == b.shape == y.shape:
        work = _Workspace(context, (a.shape, b.shape, y.shape))
        return lambda: work.add(a.data, b.data, y.data, tables, total)
    size = math.prod(y.shape)
    block = min(_BLOCK, size)
    work = _Workspace(context, ((block,), (block,), (block,)))

    def run() -> None:
        qa, qb, out = a.data.reshape(-1), b.data.reshape(-1), y.data.reshape(-1)
        for start in range(0, size, _BLOCK):
            part = slice(start, start + _BLOCK)
            work.add(qa[part], qb[part], out[part], tables, total)

    return run


class _Workspace:
    """Working memory for sums of arrays of *shapes*, or of blocks of limited length."""

    def __init__(self, context: OpContext, shapes: tuple[tuple[int, ...], ...]) -> None:
        self.is_block = len(set(shapes)) == 1
        self.a = context.scratch(shapes[0], np.int32)
        self.b = context.scratch(shapes[1], np.int32)
        self.sum = context.scratch(shapes[2], np.int64)
        self.sign = context.scratch(shapes[2], np.int64)

    def add(
        self,
        a: NDArray[Any],
        b: NDArray[Any],
        y: NDArray[Any],
        tables: tuple[NDArray[np.int32], NDArray[np.int32]],
        total: ScaledSum,
    ) -> None:
        """Set *y* to the sum (or difference) of *a* and *b* that *total* describes.

        *tables* have the values of *a* and of *b* in the common scale, for every int16.

        Source:
            MultiplyByQuantizedMultiplier, tflite/kernels/internal/common.cc, for the scaling to the
            output.
        """
        scaled_a, scaled_b, s, sign = self.a.data, self.b.data, self.sum.data, self.sign.data
        if self.is_block:
            scaled_a, scaled_b = scaled_a[: len(a)], scaled_b[: len(b)]
            s, sign = s[: len(y)], sign[: len(y)]
        tables[0].take(a.view(np.uint16), None, scaled_a, "clip")
        tables[1].take(b.view(np.uint16), None, scaled_b, "clip")
        combine = np.add if total.sign > 0 else np.subtract
        combine(scaled_a, scaled_b, s, dtype=np.int64)
        np.multiply(s, total.multiplier, s)
        np.add(s, 1 << 30, s)
        np.right_shift(s, 31, s)
        if total.shift < 0:  # rounded once more, halves away from zero
            np.right_shift(s, 63, sign)
            np.add(s, sign, s)
            np.add(s, 1 << (-total.shift - 1), s)
            np.right_shift(s, -total.shift, s)
        np.add(s, total.zero_point, s)
        s.clip(total.low, total.high, s)
        np.copyto(y, s, casting="unsafe")
