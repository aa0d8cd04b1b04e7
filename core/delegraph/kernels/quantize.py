"""QUANTIZE: converts floats to integers, or integers to another quantization."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from delegraph.arithmetic.channelwise import channel_parameters
from delegraph.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_gemm,
    unlimited_multiplier,
)
from delegraph.arithmetic.lookup_table import (
    Integers,
    every_value,
    lookup,
    round_half_away,
    unsigned,
)
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import pack
from delegraph.operators.checks import (
    require_scales,
    require_type,
    require_zero_points,
    tensor_types,
    tensors_of,
)
from delegraph.operators.numerics import Numerics
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OUTPUTS = {
    TensorType.FLOAT32: tensor_types("UINT8 INT8 INT16 INT4"),
    TensorType.INT16: {TensorType.INT8, TensorType.INT16, TensorType.INT32},
    TensorType.INT32: {TensorType.INT8, TensorType.INT16},
    TensorType.INT8: {TensorType.UINT8, TensorType.INT8, TensorType.INT16},
    TensorType.UINT8: {TensorType.UINT8, TensorType.INT8, TensorType.INT16},
}

_LANES = 8  # elements the vector loop over floats handles at a time
_REQUANTIZE_LANES = 16
_BLOCK = 1 << 14  # floats handled at a time

_MOST_TABLES = 128
"""Largest number of look-up tables with requantized integers that are kept.

The table of a node is needed several times: when the node is checked, claimed and lowered.
"""


@kernel("QUANTIZE")
def prepare_quantize(context: OpContext, node: Node) -> Eval:
    """Prepare QUANTIZE: floats become integers, and integers get another scale or type.

    float32 is converted to uint8, int8, int16 and int4, per tensor or per channel. uint8 and int8
    are converted to each other and to int16, int16 to int8, int16 and int32, and int32 to int8 and
    int16.

    Raises:
        OperatorError: the types are not supported, the output has no scale, or int16 tensors have
            zero points.

    Source:
        tflite/kernels/quantize.cc. Values beyond int32 saturate here, but wrap in the official
        kernel. NaN, for which C has no defined result, becomes the smallest integer. Integers
        without a scale all become the output's zero point.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, _OUTPUTS)
    require_type(y, _OUTPUTS[x.type])
    if y.quantization is None:
        raise OperatorError(f"output {y.name!r} has no scale, expected one")
    context.resize_tensor(y, x.shape)
    if x.type is TensorType.FLOAT32:
        return _affine(context, x, y)
    return _requantize(x, y, context.numerics)


def _affine(context: OpContext, x: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that sets *y* to ``round(x / scale) + zero_point``.

    The builtin kernel's vector loop multiplies by the inverse scale and rounds halves to even.
    Elements after the loop, elements with scales per channel, and all elements in the reference
    kernel are divided, with halves rounded away from zero.

    Source:
        AffineQuantize, tflite/kernels/internal/{optimized/optimized_ops,reference/quantize}.h as
        compiled for x86.
    """
    size = math.prod(x.shape)
    has_channels = channel_parameters(y)[0].ndim > 0
    if not has_channels:
        require_scales(y)
    if y.is_packed and has_channels:
        raise OperatorError(f"output {y.name!r} is INT4 with a scale a channel, expected one scale")
    if y.is_packed or has_channels:
        return _divided(x, y)
    vector_end = size - size % _LANES if context.numerics == "builtin" else 0
    vector, rest = _vector(context, x, y, vector_end), _rest(x, y, vector_end)
    if vector_end == size:
        return vector
    if not vector_end:
        return rest

    def run() -> None:
        vector()
        rest()

    return run


def _limits(y: Tensor) -> tuple[int, int]:
    limits = np.iinfo(y.dtype)
    return (-8, 7) if y.is_packed else (limits.min, limits.max)


def _limited(values: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    """Return *values* clamped to the range from *low* to *high*; NaN becomes *low*."""
    return np.asarray(np.minimum(np.fmax(values, low), high))


def _vector(context: OpContext, x: Tensor, y: Tensor, end: int) -> Eval:
    """Return the evaluation that quantizes the elements of *x* before *end* into *y*.

    For speed, it computes in blocks that fit the processor's cache.
    """
    inverse = np.array(np.float32(1) / np.float32(y.scale))
    low, high = _limits(y)
    zero_point = np.array(y.zero_point, np.float32)
    size = min(_BLOCK, end)  # fmax is much faster with arrays than with numbers
    lower = np.full(size, np.float32(low) - zero_point)
    upper = np.full(size, np.float32(high) - zero_point)
    blocks = [slice(i, min(i + _BLOCK, end)) for i in range(0, end, _BLOCK)]
    scratch = context.scratch((size,), np.float32)

    def run() -> None:
        values, out = x.data.reshape(-1), y.data.reshape(-1)
        for block in blocks:
            f = scratch.data[: block.stop - block.start]
            np.multiply(values[block], inverse, f)
            np.fmax(f, lower[: len(f)], out=f)  # NaN becomes the limit
            np.minimum(f, upper[: len(f)], out=f)
            np.rint(f, f)
            np.add(f, zero_point, f)
            np.copyto(out[block], f, casting="unsafe")

    return run


def _rest(x: Tensor, y: Tensor, start: int) -> Eval:
    """Return the evaluation that quantizes the elements of *x* from index *start* on into *y*.

    They are rounded as in the loop that the official kernel runs after its vector loop.
    """
    low, high = _limits(y)
    scale, zero_point = y.scale, y.zero_point

    def run() -> None:
        ratio = round_half_away(x.data.reshape(-1)[start:] / np.float64(scale))
        y.data.reshape(-1)[start:] = _limited(ratio + zero_point, low, high)

    return run


def _divided(x: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that divides *x* by *y*'s scales and rounds halves away from zero.

    The output *y* has a scale per channel, or packed integers.
    """
    low, high = _limits(y)
    scale, zero_point = channel_parameters(y)
    if any(count not in (1, size) for count, size in zip(scale.shape, y.shape, strict=False)):
        raise OperatorError(f"output {y.name!r} has {scale.size} scales, its shape is {y.shape}")

    def run() -> None:
        ratio = round_half_away(x.data / scale)
        q = _limited(ratio + zero_point, low, high)
        y.data[...] = pack(q.astype(np.int8), y.type) if y.is_packed else q

    return run


def _requantize(x: Tensor, y: Tensor, numerics: Numerics) -> Eval:
    """Return the evaluation that requantizes stored integers of *x* to stored integers of *y*.

    Between 8-bit types, the builtin kernel's vector loop rounds twice with halves up. Elements
    after the loop, other types, and all elements in the reference kernel are rounded the second
    time with halves away from zero.

    Source:
        Requantize, tflite/kernels/internal/{optimized/optimized_ops,reference/requantize}.h as
        compiled for x86.
    """
    require_scales(y)
    if x.type is y.type is TensorType.INT16:
        require_zero_points(x, y)
    rescaling = _Rescaling(x.scale / y.scale, x.zero_point, y.zero_point, y.dtype)
    if x.type is TensorType.INT32:

        def run() -> None:
            y.data[...] = rescaling(x.data.astype(np.int64), multiply_by_quantized_multiplier)

        return run
    size = math.prod(x.shape)
    has_vectors = x.dtype.itemsize == y.dtype.itemsize == 1 and size >= _REQUANTIZE_LANES
    if has_vectors and numerics == "builtin":
        return _split_lookup(x, y, rescaling, size - size % _REQUANTIZE_LANES)
    return lookup(x, y, _table(rescaling, x.dtype, multiply_by_quantized_multiplier))


class _Rescaling(NamedTuple):
    """Conversion of stored integers to another scale and zero point.

    Attributes:
        ratio: scale of the integers, divided by the new scale.
        zero_point: zero point of the integers.
        new_zero_point: zero point of the results.
        dtype: type of the results, which are clamped to its values.
    """

    ratio: float
    zero_point: int
    new_zero_point: int
    dtype: np.dtype[Any]

    def __call__(self, q: Integers, multiply: Callable[..., Any]) -> Integers:
        """Return the results for the stored integers *q*.

        *multiply* is the function that multiplies by a mantissa and shift, and so decides the
        rounding: :func:`~delegraph.arithmetic.fixed_point.multiply_by_quantized_multiplier` or the
        like.
        """
        limits = np.iinfo(self.dtype)
        scaled = multiply(q - self.zero_point, *unlimited_multiplier(self.ratio)).astype(np.int64)
        return np.asarray((scaled + self.new_zero_point).clip(limits.min, limits.max))


@lru_cache(_MOST_TABLES)
def _table(
    rescaling: _Rescaling, operands: np.dtype[Any], multiply: Callable[..., Any]
) -> NDArray[Any]:
    """Return the results of *rescaling* for every value of the type *operands*.

    Callers share the array, so it is read-only. *multiply* decides the rounding; see
    :class:`_Rescaling`.
    """
    table: NDArray[Any] = rescaling(every_value(operands), multiply).astype(rescaling.dtype)
    table.setflags(write=False)
    return table


def _split_lookup(x: Tensor, y: Tensor, rescaling: _Rescaling, vector_end: int) -> Eval:
    """Return the evaluation that sets *y* to the rescaled elements of *x*, rounded in two ways.

    Elements before *vector_end* are rounded like those in the official kernel's vector loop, later
    elements like those after that loop.
    """
    run = lookup(x, y, _table(rescaling, x.dtype, multiply_by_quantized_multiplier_gemm))
    if vector_end == math.prod(x.shape):
        return run
    rest = _table(rescaling, x.dtype, multiply_by_quantized_multiplier)
    bits = unsigned(x.dtype)

    def run_both() -> None:
        run()
        indices = x.data.reshape(-1)[vector_end:].view(bits)
        y.data.reshape(-1)[vector_end:] = rest.take(indices, mode="clip")

    return run_both
