"""Operators of two operands: ADD, SUB, MUL, DIV, POW, SQUARED_DIFFERENCE, ATAN2; custom Atan2.

Operators of one operand (EXP, SQRT, ...) are in :mod:`delegraph.kernels.elementwise.unary`. The
quantized part of ADD, SUB, MUL and DIV is in :mod:`delegraph.arithmetic.quantized_binary` and
:mod:`delegraph.arithmetic.quantized_add`, which are imported where a node has quantized operands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.activation import clip, finite_activation_range, float_activation_range
from delegraph.arithmetic.broadcast import broadcast_operands
from delegraph.arithmetic.output_shape import are_known, fold_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    option,
    require_same_type,
    require_scales,
    require_shape,
    require_type,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    InPlace,
    Node,
    OpContext,
    TensorEval,
    output_tensor,
)
from delegraph.operators.tensor import Tensor, element_count
from delegraph.schema.enums import ActivationFunctionType, TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.arithmetic.lookup_table import BinaryFunction, Integers

_EITHER_INPUT = InPlace.INPUT_0 | InPlace.INPUT_1
_PLAIN = {TensorType.FLOAT32, TensorType.INT32, TensorType.INT64}
_ADDED = {*_PLAIN, TensorType.FLOAT16}
_EIGHT_BIT = {TensorType.UINT8, TensorType.INT8}
_QUANTIZED = _EIGHT_BIT | {TensorType.INT16}
_ADDABLE = _ADDED | _QUANTIZED
_FLOATS = {TensorType.FLOAT32, TensorType.FLOAT64, TensorType.FLOAT16, TensorType.BFLOAT16}
_CUSTOM_ATAN2 = {TensorType.FLOAT32, TensorType.FLOAT64}


def binary_operands(
    context: OpContext, node: Node, allowed: Collection[TensorType]
) -> tuple[Tensor, Tensor, Tensor]:
    """Check a two-operand node, set the output's shape, and return both inputs and the output.

    Raises:
        OperatorError: the node does not have two inputs and one output, the shapes do not
            broadcast, the types differ, or a type is not in *allowed*.
    """
    a, b, y = broadcast_operands(context, node)
    require_type(a, allowed)
    return a, b, y


def matching_operands(
    context: OpContext, node: Node, allowed: Collection[TensorType]
) -> tuple[Tensor, Tensor, Tensor]:
    """Check a two-operand node that does not broadcast; return both inputs and the output.

    Raises:
        OperatorError: the node does not have two inputs and one output, shapes or types differ, or
            a type is not in *allowed*.
    """
    a, b, y = tensors_of(context, node, 2)
    require_type(a, allowed)
    require_same_type(a, b)
    require_same_type(a, y)
    require_shape(b, a.shape)
    context.resize_tensor(y, a.shape)
    return a, b, y


def run_binary(
    function: Callable[..., Any], a: Tensor | _Constant, b: Tensor | _Constant, y: Tensor
) -> Eval:
    """Return the evaluation that applies a NumPy function to *a* and *b* and stores it in *y*."""

    def run() -> None:
        function(a.data, b.data, y.data)

    return run


@kernel("ADD", inplace=_EITHER_INPUT)
def prepare_add(context: OpContext, node: Node) -> Eval:
    """Prepare ADD: ``y = activation(a + b)``, broadcast.

    Types are float32, float16, int32, int64, int16 without scales, and quantized uint8, int8 and
    int16.

    Source:
        tflite/kernels/add.cc. Infinite results become the largest finite numbers.
    """
    a, b, y = binary_operands(context, node, _ADDABLE)
    is_plain = a.quantization is None and y.quantization is None
    if a.type in _ADDED or (a.type is TensorType.INT16 and is_plain):
        return _plain(np.add, a, b, y, _activation(node))
    from delegraph.arithmetic.quantized_add import quantized_add

    return quantized_add(context, node, a, b, y)


@kernel("SUB", inplace=_EITHER_INPUT)
def prepare_sub(context: OpContext, node: Node) -> Eval:
    """Prepare SUB: ``y = activation(a - b)``, broadcast.

    Types are float32, int32, int64, and quantized uint8, int8 and int16.

    Source:
        tflite/kernels/sub.cc; infinite results are treated as in ADD.
    """
    a, b, y = binary_operands(context, node, _PLAIN | _QUANTIZED)
    if a.type in _PLAIN:
        return _plain(np.subtract, a, b, y, _activation(node))
    from delegraph.arithmetic import quantized_binary as quantized

    return quantized.sub(context, node, a, b, y)


@kernel("MUL", inplace=_EITHER_INPUT)
def prepare_mul(context: OpContext, node: Node) -> Eval:
    """Prepare MUL: ``y = activation(a * b)``, broadcast.

    Types are float32, float16, int32, int64, uint32, complex64, int16 without scales, and quantized
    uint8, int8 and int16. Two int16 tensors may also give uint8 or int8. The product of two
    constants is computed in prepare, and is a constant for later nodes.

    Source:
        tflite/kernels/mul.cc; infinite results are treated as in ADD.
    """
    declared = output_tensor(context, node).type
    a, b, y = broadcast_operands(context, node, result=declared)
    run = _mul(context, node, a, b, y)
    return fold_output(context, y, lambda: (y.shape, run)) if are_known((a, b)) else run


def _mul(context: OpContext, node: Node, a: Tensor, b: Tensor, y: Tensor) -> Eval:
    plain = {*_ADDED, TensorType.UINT32, TensorType.COMPLEX64}
    if y.type in plain or (y.type is TensorType.INT16 and y.quantization is None):
        require_same_type(a, y)
        if y.type is TensorType.COMPLEX64 and _activation(node):
            raise OperatorError("a fused activation on COMPLEX64, expected none")
        return _plain(np.multiply, a, b, y, _activation(node))
    from delegraph.arithmetic import quantized_binary as quantized

    require_type(y, _QUANTIZED)
    if a.type is TensorType.INT16 and y.type in _EIGHT_BIT:
        return quantized.mul_int16_to_8_bit(node, a, b, y)
    require_same_type(a, y)
    return quantized.mul(context, node, a, b, y)


@kernel("DIV", inplace=_EITHER_INPUT)
def prepare_div(context: OpContext, node: Node) -> Eval:
    """Prepare DIV: ``y = activation(a / b)``, broadcast.

    Types are float32, int32 (truncated towards zero), and quantized uint8, int8 and int16.

    Source:
        tflite/kernels/div.cc; infinite results are treated as in ADD.
    """
    a, b, y = binary_operands(context, node, {TensorType.FLOAT32, TensorType.INT32} | _QUANTIZED)
    if a.type is TensorType.FLOAT32:
        return _plain(np.divide, a, b, y, _activation(node))
    if a.type is TensorType.INT32:
        return _integer_division(a, b, y, _activation(node))
    from delegraph.arithmetic import quantized_binary as quantized

    return quantized.div(context, node, a, b, y)


def _activation(node: Node) -> int:
    return int(option(node, "fused_activation_function", ActivationFunctionType.NONE))


def _plain(operation: Callable[..., Any], a: Tensor, b: Tensor, y: Tensor, activation: int) -> Eval:
    """Return the evaluation of the NumPy function *operation*, clamped by *activation*."""
    make = _maker(operation, _limits(activation, y.dtype))
    return TensorEval(make, make(a, b, y))


def _maker(
    operation: Callable[..., Any], limits: tuple[NDArray[Any], NDArray[Any]] | None
) -> Callable[[Tensor, Tensor, Tensor], Eval]:
    """Return a function (a, b, y) that returns *operation*'s evaluation, clamped to *limits*."""

    def make(a: Tensor, b: Tensor, y: Tensor) -> Eval:
        return run_binary(operation, _operand(a, y), _operand(b, y), y)

    if limits is None:
        return make
    low, high = limits

    def make_clamped(a: Tensor, b: Tensor, y: Tensor) -> Eval:
        left = a if a.shape == y.shape else _operand(a, y)
        right = b if b.shape == y.shape else _operand(b, y)

        def run() -> None:
            out = y.data
            operation(left.data, right.data, out)
            clip(out, low, high, out)

        return run

    return make_clamped


class _Constant:
    """An operand whose array never changes."""

    __slots__ = ("data",)

    def __init__(self, data: NDArray[Any]) -> None:
        self.data = data


def _operand(x: Tensor, y: Tensor) -> Tensor | _Constant:
    """Return *x*, or for some constants an array in a shape that needs no broadcasting.

    A constant with one element loses its dimensions; a constant with as many elements as *y* gets
    the shape of *y*. Broadcasting in NumPy takes as long as adding a thousand numbers, except for
    arrays without dimensions.
    """
    if x.shape == y.shape or not x.is_constant or x.data is None:
        return x
    if x.data.size == 1:
        return _Constant(x.data.reshape(()))
    return _Constant(x.data.reshape(y.shape)) if x.data.size == element_count(y.shape) else x


@cache
def _limits(activation: int, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the limits that *activation* sets for results; None if no result can be out of range.

    Floats are clamped to the finite numbers even without an activation. For an unsigned type, the
    bound -1 of RELU_N1_TO_1 wraps to the largest number, so every result is the upper bound.

    Source:
        CalculateActivationRange, tflite/kernels/kernel_util.h.
    """
    if dtype.kind == "f":
        least, most = finite_activation_range(activation, dtype)
        return np.array(least, dtype), np.array(most, dtype)
    low, high = float_activation_range(activation)
    if low == -np.inf:
        return None
    upper = np.iinfo(dtype).max if high == np.inf else int(high)
    return np.array(int(low)).astype(dtype), np.array(upper, dtype)


def _integer_division(a: Tensor, b: Tensor, y: Tensor, activation: int) -> Eval:
    """Return the evaluation of int32 DIV of *a* by *b*; a divisor of zero is an error."""
    low, high = float_activation_range(activation)
    limits = np.iinfo(y.dtype)
    lower, upper = int(max(low, limits.min)), int(min(high, limits.max))

    def run() -> None:
        require_nonzero(b)
        # float64 represents every int32 quotient closely enough for exact truncation.
        quotient = np.trunc(np.divide(a.data, b.data, dtype=np.float64))
        y.data[...] = quotient.clip(lower, upper)

    return run


def require_nonzero(divisor: Tensor) -> None:
    """Check during invoke that no element of *divisor* is 0.

    Raises:
        OperatorError: an element is 0.
    """
    if (divisor.data == 0).any():
        raise OperatorError(f"division by zero: tensor {divisor.name!r} holds 0")


@kernel("POW")
def prepare_pow(context: OpContext, node: Node) -> Eval:
    """Prepare POW: ``y = a ** b`` on float32 and int32; negative int32 exponents are errors.

    int32 results that do not fit become the smallest integer, or their lower 32 bits if one
    exponent is used for all elements.

    Source:
        tflite/kernels/pow.cc.
    """
    a, b, y = binary_operands(context, node, {TensorType.FLOAT32, TensorType.INT32})

    # TFLite multiplies integers where one exponent is broadcast, and calls std::pow elsewhere.
    is_product = element_count(b.shape) == 1 and a.shape != b.shape

    def run_integers() -> None:
        if b.data.size and b.data.min() < 0:
            raise OperatorError(f"exponents {b.name!r} hold negative values, expected none")
        if is_product:
            np.power(a.data, b.data, y.data)
            return
        powers = np.power(a.data, b.data, dtype=np.float64)
        fits = np.abs(powers) < 2**31  # others give the least integer on x86, the nearest on ARM
        np.copyto(y.data, np.where(fits, powers, -(2**31)), casting="unsafe")

    return run_binary(np.power, a, b, y) if a.type is TensorType.FLOAT32 else run_integers


@kernel("ATAN2")
def prepare_atan2(context: OpContext, node: Node) -> Eval:
    """Prepare ATAN2: the angle of the point (b, a); floats of one shape.

    Source:
        tflite/kernels/atan2.cc. The official kernel only compares ranks, and so reads beyond a
        smaller operand.
    """
    a, b, y = matching_operands(context, node, _FLOATS)

    def run() -> None:
        # Rounded once from float64, as the C library's float function is.
        np.arctan2(a.data, b.data, y.data, dtype=np.float64, casting="unsafe")

    def run_wide() -> None:
        y.data[...] = np.arctan2(a.data.astype(np.float32), b.data.astype(np.float32))

    return run_wide if a.dtype.itemsize == 2 else run


@kernel("Atan2")
def prepare_custom_atan2(context: OpContext, node: Node) -> Eval:
    """Prepare Atan2: the angle of the point (input 1, input 0), both inputs of one shape.

    Source:
        tflite/kernels/atan2_custom.cc.
    """
    return run_binary(np.arctan2, *matching_operands(context, node, _CUSTOM_ATAN2))


@kernel("SQUARED_DIFFERENCE")
def prepare_squared_difference(context: OpContext, node: Node) -> Eval:
    """Prepare SQUARED_DIFFERENCE: (a - b)**2 on float32, int32 and int8.

    Source:
        tflite/kernels/squared_difference.cc.
    """
    a, b, y = binary_operands(
        context, node, {TensorType.FLOAT32, TensorType.INT32, TensorType.INT8}
    )
    if a.type is TensorType.INT8:
        from delegraph.arithmetic.lookup_table import binary_lookup

        return binary_lookup(context, a, b, y, _quantized_squared_difference(a, b, y))

    def run() -> None:
        out = y.data
        np.subtract(a.data, b.data, out)
        np.multiply(out, out, out)

    return run


def _quantized_squared_difference(a: Tensor, b: Tensor, y: Tensor) -> BinaryFunction:
    from delegraph.arithmetic.fixed_point import (
        multiply_by_quantized_multiplier,
        quantize_multiplier,
        require_multiplier,
    )
    from delegraph.arithmetic.quantized_binary import rescale

    require_scales(a, b, y)
    left_shift = 7
    twice = 2 * max(a.scale, b.scale)
    a_scaling = quantize_multiplier(a.scale / twice)
    b_scaling = quantize_multiplier(b.scale / twice)
    real = twice * twice / ((1 << left_shift * 2) * y.scale)
    require_multiplier(real, (a, b), y)
    multiplier, shift = quantize_multiplier(real)
    a_zero, b_zero, y_zero = a.zero_point, b.zero_point, y.zero_point

    def function(qa: Integers, qb: Integers) -> Integers:
        difference = rescale(qa - a_zero, left_shift, *a_scaling)
        difference = difference - rescale(qb - b_zero, left_shift, *b_scaling)
        square = multiply_by_quantized_multiplier(difference * difference, multiplier, shift)
        return np.asarray((square.astype(np.int64) + y_zero).clip(-128, 127))

    return function
