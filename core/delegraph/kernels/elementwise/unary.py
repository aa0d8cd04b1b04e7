"""Operators of one operand: ABS, NEG, EXP, LOG, SIN, COS, SQRT, RSQRT, SQUARE, FLOOR, CEIL, ..."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from delegraph.arithmetic import gemmlowp
from delegraph.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    unlimited_multiplier,
)
from delegraph.arithmetic.lookup_table import (
    Integers,
    RealFunction,
    in_double,
    lookup,
    transform_table,
    transform_table_int16,
    unary_lookup,
)
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    adopt_type,
    require_same_type,
    require_scales,
    require_type,
    require_zero_points,
    tensor_types,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_FLOAT32 = {TensorType.FLOAT32}
_FLOAT32_AND_16 = {TensorType.FLOAT32, TensorType.FLOAT16}
_FLOATS = {TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16}
_QUANTIZED = {TensorType.FLOAT32, TensorType.INT8, TensorType.INT16}


_PLAIN: dict[str, tuple[Callable[..., Any], Collection[TensorType], bool]] = {
    "CEIL": (np.ceil, _FLOAT32, True),  # ceil.cc
    "COS": (np.cos, _FLOAT32_AND_16, False),  # CosEval, elementwise.cc
    "FLOOR": (np.floor, _FLOATS, True),  # floor.cc
    "NEG": (np.negative, _FLOATS | tensor_types("INT8 INT16 INT32 INT64"), True),  # neg.cc
    "ROUND": (np.rint, _FLOATS, True),  # halves to even: RoundToNearest, internal/reference/round.h
    "SIGN": (np.sign, tensor_types("FLOAT32 FLOAT64 INT32"), False),  # sign.cc
    "SIN": (np.sin, _FLOAT32_AND_16, False),  # SinEval, elementwise.cc
    "SQUARE": (np.square, _FLOAT32, False),  # SquareEval, elementwise.cc
}
"""Operators that apply one function to the elements as stored: the function, and allowed types.

The last item says whether the output gets the input's type, or else must have it. Comments name the
source in tflite/kernels.
"""


def unary_operands(
    context: OpContext, node: Node, allowed: Collection[TensorType], *, adopts: bool = False
) -> tuple[Tensor, Tensor]:
    """Check a one-operand node, set the output's shape, and return the input and the output.

    Args:
        context: context of the operator.
        node: the node.
        allowed: types of the input.
        adopts: whether the output gets the input's type; otherwise the output must have this type.

    Raises:
        OperatorError: the node does not have one input and one output, the types differ, or the
            type is not in *allowed*.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, allowed)
    if adopts:
        adopt_type(y, x.type)
    else:
        require_same_type(x, y)
    context.resize_tensor(y, x.shape)
    return x, y


def run_ufunc(function: Callable[..., Any], x: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that applies a NumPy function to *x* and stores the result in *y*.

    16-bit floats are computed in float32.
    """

    def run() -> None:
        function(x.data, y.data)

    def run_wide() -> None:
        values = x.data.astype(np.float32)
        function(values, values)
        y.data[...] = values

    return run_wide if x.type in (TensorType.FLOAT16, TensorType.BFLOAT16) else run


def _register(
    name: str, function: Callable[..., Any], allowed: Collection[TensorType], adopts: bool
) -> None:
    @kernel(name)
    def prepare(context: OpContext, node: Node) -> Eval:
        """Prepare an operator of :data:`_PLAIN`."""
        return run_ufunc(function, *unary_operands(context, node, allowed, adopts=adopts))


for _name, _row in _PLAIN.items():
    _register(_name, *_row)


@kernel("ABS")
def prepare_abs(context: OpContext, node: Node) -> Eval:
    """Prepare ABS: magnitudes of float32, int32, int8, and int16 with or without scales.

    Source:
        AbsEval, tflite/kernels/elementwise.cc.
    """
    x, y = unary_operands(context, node, _QUANTIZED | {TensorType.INT32})
    if x.dtype.itemsize == 4 or (x.type is TensorType.INT16 and x.quantization is None):
        return run_ufunc(np.abs, x, y)
    _check_quantized(x, y)
    ratio = float(np.float32(x.scale) / np.float32(y.scale))
    if context.numerics == "micro":
        ratio = x.scale / y.scale
    return unary_lookup(x, y, _abs_function(x, y, ratio))


def _abs_function(x: Tensor, y: Tensor, ratio: float) -> Callable[[Integers], Integers]:
    limits = np.iinfo(y.dtype)
    needs_rescale = x.scale != y.scale
    multiplier, shift = unlimited_multiplier(ratio)

    def function(q: Integers) -> Integers:
        value: Integers = np.abs(q - x.zero_point)
        if needs_rescale:
            value = multiply_by_quantized_multiplier(value, multiplier, shift).astype(np.int64)
        return (value + y.zero_point).clip(limits.min, limits.max)

    return function


@kernel("EXP")
def prepare_exp(context: OpContext, node: Node) -> Eval:
    """Prepare EXP: ``y = e ** x`` on float32, int8 and int16.

    Source: tflite/kernels/exp.cc.
    """
    x, y = unary_operands(context, node, _QUANTIZED, adopts=True)
    if x.type is TensorType.FLOAT32:
        return run_ufunc(np.exp, x, y)
    if x.type is TensorType.INT16:
        require_zero_points(x, y)
    return run_transform(in_double(np.exp), x, y)


@kernel("LOG")
def prepare_log(context: OpContext, node: Node) -> Eval:
    """Prepare LOG: the natural logarithm of float32, int8 and int16.

    For quantized x <= 0, the result is the smallest value.

    Source:
        LogEval and LogLUTPrepare, tflite/kernels/elementwise.cc.
    """
    x, y = unary_operands(context, node, _QUANTIZED)
    if x.type is TensorType.FLOAT32:
        return run_ufunc(np.log, x, y)
    _check_quantized(x, y)
    smallest = np.float32(np.iinfo(y.dtype).min - y.zero_point) * np.float32(y.scale)
    return run_transform(lambda v: np.where(v <= 0, smallest, in_double(np.log)(v)), x, y)


@kernel("SQRT")
def prepare_sqrt(context: OpContext, node: Node) -> Eval:
    """Prepare SQRT: the square root of float32, int8 and int16.

    Negative quantized values are errors.

    Source:
        SqrtEval, tflite/kernels/elementwise.cc; quantized results are truncated, as measured with
        LiteRT 2.3.
    """
    x, y = unary_operands(context, node, _QUANTIZED)
    if x.type is TensorType.FLOAT32:
        return run_ufunc(np.sqrt, x, y)
    _check_quantized(x, y)
    limits = np.iinfo(y.dtype)

    def function(q: Integers) -> Integers:
        real = np.maximum(q - x.zero_point, 0).astype(np.float32) * np.float32(x.scale)
        result = (np.sqrt(real) / np.float32(y.scale)).astype(np.int64) + y.zero_point
        return np.asarray(result.clip(limits.min, limits.max))

    return _refusing_negatives("SQRT", x, unary_lookup(x, y, function))


@kernel("RSQRT")
def prepare_rsqrt(context: OpContext, node: Node) -> Eval:
    """Prepare RSQRT: one divided by the square root of float32, int8 and int16.

    Negative quantized values are errors.

    Source:
        RsqrtEval, tflite/kernels/elementwise.cc.
    """
    x, y = unary_operands(context, node, _QUANTIZED)
    if x.type is TensorType.FLOAT32:
        return run_ufunc(_rsqrt, x, y)
    _check_quantized(x, y)
    if x.type is TensorType.INT16:
        one, largest = np.float32(1), np.float32(32767) * np.float32(y.scale)
        run = run_transform(lambda v: np.where(v <= 0, largest, one / np.sqrt(v)), x, y)
    else:
        run = unary_lookup(x, y, _rsqrt_function(x, y))
    return _refusing_negatives("RSQRT", x, run)


def _refusing_negatives(op: str, x: Tensor, run: Eval) -> Eval:
    zero_point = x.zero_point

    def check_and_run() -> None:
        if x.data.size and x.data.min() < zero_point:
            raise OperatorError(f"tensor {x.name!r} holds negative values, expected none in {op}")
        run()

    return check_and_run


def _rsqrt(x: Any, y: Any) -> None:
    np.sqrt(x, y)
    np.divide(np.float32(1), y, y)


def _rsqrt_function(x: Tensor, y: Tensor) -> Callable[[Integers], Integers]:
    """Return the function from stored integers of *x* to those of *y* for int8 RSQRT.

    Source: RsqrtEvalQuantizedInt8, elementwise.cc.
    """
    shift_up = 20
    scale = np.float64(np.sqrt(np.float32(x.scale)) * np.float32(y.scale))
    multiplier, shift = quantize_multiplier(float(1 / scale))  # infinity if scale is 0

    def function(q: Integers) -> Integers:
        value = q - x.zero_point
        inverse, inverse_shift = gemmlowp.inverse_sqrt(np.maximum(value, 1))
        ones = np.ones_like(value)
        data = multiply_by_quantized_multiplier(ones, inverse, inverse_shift + shift_up)
        scaled = multiply_by_quantized_multiplier(data, multiplier, shift - shift_up)
        result = (scaled.astype(np.int64) + y.zero_point).clip(-128, 127)
        return np.where(value == 0, 127, result)

    return function


def run_transform(function: RealFunction, x: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that applies *function* to the real numbers of *x*.

    *x* and *y* are quantized 8-bit or int16 tensors.

    Raises:
        OperatorError: a tensor lacks a scale.
    """
    require_scales(x, y)
    build = transform_table_int16 if x.type is TensorType.INT16 else transform_table
    return lookup(x, y, build(x, y, function))


def _check_quantized(x: Tensor, y: Tensor) -> None:
    require_scales(x, y)
    if x.type is TensorType.INT16:
        require_zero_points(x, y)


@kernel("Sign")
def prepare_custom_sign(context: OpContext, node: Node) -> Eval:
    """Prepare Sign: 1, -1, or 0 for zeros and NaN.

    Source:
        tflite/kernels/sign_custom.cc.
    """
    x, y = unary_operands(context, node, {TensorType.FLOAT32, TensorType.FLOAT64})

    def run() -> None:
        np.subtract(x.data > 0, x.data < 0, out=y.data, dtype=y.data.dtype)

    return run
