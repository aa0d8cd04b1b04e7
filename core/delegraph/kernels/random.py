"""Kernels of RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL.

With seeds that are not both zero, the numbers are the official interpreter's, and start again at
each allocation. Otherwise the operating system provides random seeds.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.counter_random import Words, counters, philox4x32
from delegraph.arithmetic.output_shape import integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import option, require_rank, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape
from delegraph.schema.enums import TensorType

Floats = NDArray[np.float32]

_SMALLEST_UNIFORM = np.float32(1e-7)  # so that its logarithm is finite


class _Stream:
    """Random words from one node's generator, in order.

    Source:
        PhiloxRandom, xla/tsl/lib/random/philox_random.h.
    """

    def __init__(self, node: Node) -> None:
        # The official interpreter holds the 64-bit options in 32 bits.
        seeds = tuple(_sign_extended(int(option(node, name, 0))) for name in ("seed", "seed2"))
        if seeds == (0, 0):
            seeds = (secrets.randbits(64), secrets.randbits(64))
        self._key, self._high = seeds
        self._position = 0

    def words(self, count: int, used: int | None = None) -> Words:
        """Return the next *count* words, ``[count], uint32``.

        Args:
            count: number of words.
            used: number of groups of four words by which the generator moves on; None means the
                groups of the returned words.
        """
        groups = -(-count // 4)
        words = philox4x32(self._key, counters(self._position, groups), self._high)
        self._position += groups if used is None else used
        return words.reshape(-1)[:count]


def _sign_extended(value: int) -> int:
    """Return the signed number in the low 32 bits of *value*."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@kernel("RANDOM_UNIFORM")
def prepare_uniform(context: OpContext, node: Node) -> Eval:
    """Prepare RANDOM_UNIFORM: float32 numbers in [0, 1).

    Input 0 is the output's shape.

    Source:
        GenerateRandomUniformNumbers, tflite/kernels/random_ops.cc.
    """
    return _prepare(context, node, lambda stream, count: _uniform(stream.words(count)))


@kernel("RANDOM_STANDARD_NORMAL")
def prepare_standard_normal(context: OpContext, node: Node) -> Eval:
    """Prepare RANDOM_STANDARD_NORMAL: normally distributed float32, of the shape in input 0.

    Source:
        GenerateRandomStandardNormalNumbers, tflite/kernels/random_ops.cc.
    """
    return _prepare(context, node, _normal)


def _prepare(context: OpContext, node: Node, draw: Callable[[_Stream, int], NDArray[Any]]) -> Eval:
    shape, y = tensors_of(context, node, 1)
    require_type(shape, {TensorType.INT32})
    require_type(y, {TensorType.FLOAT32})
    require_rank(shape, 1)
    stream = _Stream(node)

    def plan() -> tuple[Shape, Eval]:
        dims = integers(shape)
        count = math.prod(dims)

        def run() -> None:
            y.data[...] = draw(stream, count).reshape(dims)

        return dims, run

    return size_output(context, y, plan, shape_inputs=(shape,))


def _uniform(words: Words) -> Floats:
    """Return floats in [0, 1), one from 23 bits of each of *words*.

    Source:
        Uint32ToFloat, xla/tsl/lib/random/random_distributions_utils.h.
    """
    between_1_and_2 = (words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)
    return between_1_and_2.view(np.float32) - np.float32(1)


def _normal(stream: _Stream, count: int) -> Floats:
    """Return *count* normally distributed floats, two from each pair of words of *stream*.

    Source:
        BoxMullerFloat, xla/tsl/lib/random/random_distributions_utils.h.
    """
    uniform = _uniform(stream.words(count + count % 2)).reshape(-1, 2)
    radius = np.sqrt(np.float32(-2) * np.log(np.maximum(uniform[:, 0], _SMALLEST_UNIFORM)))
    angle = (2 * np.pi * uniform[:, 1].astype(np.float64)).astype(np.float32)
    values: Floats = np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=1)
    return values.reshape(-1)[:count]


@kernel("MULTINOMIAL")
def prepare_multinomial(context: OpContext, node: Node) -> Eval:
    """Prepare MULTINOMIAL: classes drawn by the logits in each row of input 0.

    Input 1 is the number of draws per row. Classes with logits that are not finite are never drawn.

    Source:
        GenerateMultinomialNumbers, tflite/kernels/random_ops.cc.
    """
    logits, samples, y = tensors_of(context, node, 2)
    require_type(logits, {TensorType.FLOAT32})
    require_type(samples, {TensorType.INT32})
    require_type(y, {TensorType.INT32, TensorType.INT64})
    require_rank(logits, 2)
    require_rank(samples, 0)
    rows, classes = logits.shape
    if not classes:
        raise OperatorError("logits have no classes, expected at least one")
    stream = _Stream(node)

    def plan() -> tuple[Shape, Eval]:
        (draws,) = integers(samples)
        if draws < 0:
            raise OperatorError(f"{draws} samples, expected none or more")
        skipped = rows * (-(-draws // 4) * 4) * 2 * 256

        def run() -> None:
            points = _doubles(stream.words(2 * rows * draws, skipped)).reshape(rows, draws)
            for row, point, result in zip(logits.data, points, y.data, strict=True):
                odds = _cumulative_odds(row)
                result[...] = np.searchsorted(odds, point * odds[-1], side="right")

        return (rows, draws), run

    return size_output(context, y, plan, shape_inputs=(logits, samples))


def _doubles(words: Words) -> NDArray[np.float64]:
    """Return doubles in [0, 1) from 52 bits of each pair of words.

    Source:
        Uint64ToDouble, xla/tsl/lib/random/random_distributions_utils.h.
    """
    pairs = words.reshape(-1, 2).astype(np.uint64)
    mantissa = (pairs[:, 0] & np.uint64(0xFFFFF)) << np.uint64(32) | pairs[:, 1]
    return (mantissa | np.uint64(1023 << 52)).view(np.float64) - 1.0


def _cumulative_odds(logits: Floats) -> NDArray[np.float64]:
    finite = np.isfinite(logits)
    largest = logits.max(where=finite, initial=np.finfo(np.float32).min).astype(np.float64)
    odds = np.exp(logits.astype(np.float64) - largest)
    return np.cumsum(np.where(finite, odds, 0.0))
