"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED of 16-bit activations and 8-bit weights.

Sums have 64 bits, so they are exact; the official kernels scale them in one of three ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic import (
    Window,
    bias_or_zeros,
    dense_values,
    per_channel_multipliers,
    per_tensor_multiplier,
    quantize_multipliers,
    quantized_activation_range,
    reduce_multiplier,
)
from delegraph.errors import OperatorError
from delegraph.schema.enums import FullyConnectedOptionsWeightsFormat, TensorType
from delegraph_numba_cpu.instructions import conv_int16 as instructions
from delegraph_numba_cpu.lowering.checks import check_bias, check_type, first_rejection
from delegraph_numba_cpu.lowering.convolution.conv_groups import joined_groups
from delegraph_numba_cpu.lowering.convolution.conv_int8 import (
    CACHED_BYTES,
    pack_windows_record,
    tiles_for,
)
from delegraph_numba_cpu.lowering.convolution.conv_windows import (
    ONE,
    check_images,
    check_one_group,
    groups_of,
    windows_of,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import ProgramBuilder, WorkerScratch, aligned

BIAS_TYPES = {
    "CONV_2D": ("INT32", "INT64"),
    "DEPTHWISE_CONV_2D": ("INT64",),
    "FULLY_CONNECTED": ("INT32", "INT64"),
}

_LARGEST_INPUT = 1 << 15

_SUM_BITS = 47

Array = NDArray[Any]

Weights = NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Scaling from sums to results; see ``instructions.conv_int16``.

    Attributes:
        multiplier: factors of the sums, ``[O]``, int64 or float64.
        first: first shift to the right, ``[O]``, int64.
        second: second shift to the right, ``[O]``, int64.
        rounding: kind of rounding.
        bits: largest number of bits of a sum for which the scaling is exact.
    """

    multiplier: Array
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    rounding: int
    bits: int


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """Constants of a node's products: weights, bias, scaling and limits.

    Attributes:
        weight: weights, ``[O, K]``.
        bias: bias, ``[O]``.
        scaling: scaling from sums to results.
        limits: smallest and largest result.
    """

    weight: Weights
    bias: NDArray[np.int64]
    scaling: Scaling
    limits: tuple[int, int]

    @property
    def largest(self) -> int:
        """Upper bound of the magnitude of all sums of products, bias included."""
        reach = np.abs(self.weight.astype(np.int64)).sum(axis=1) * _LARGEST_INPUT
        return int((reach + np.abs(self.bias.astype(np.float64))).max())  # -2**63 has no int64

    def rejection(self) -> Rejection | None:
        """Reason why kernels could not compute the exact integers; None if they compute them."""
        largest, scaling = self.largest, self.scaling
        has_shifts = scaling.rounding == instructions.REAL or scaling.first.min() >= 1
        if has_shifts and not largest >> scaling.bits:
            return None
        expected = f"sums of {scaling.bits} bits"
        return Rejection("multiplier", actual=largest, expected=expected)


def product_of(call: Call) -> Product:
    """Return a node's constants: its weights, bias and scaling, and the limits of its results.

    Raises:
        OperatorError: the official kernel rejects the quantization.
    """
    bias = bias_or_zeros(call.optional_input(2), _outputs(call), np.int64)
    limits = quantized_activation_range(call.options.fused_activation_function, call.output())
    return Product(weights_of(call), bias, scaling_of(call), limits)


def scaling_of(call: Call) -> Scaling:
    """Return the scaling of a node's sums, in the way of its official kernel.

    Raises:
        OperatorError: the official kernel rejects the quantization.

    Source:
        EvalQuantizedPerChannel16x8, tflite/kernels/{conv,depthwise_conv}.cc; EvalQuantized,
        tflite/kernels/fully_connected.cc.
    """
    x, weight, bias, y = call.input(0), call.input(1), call.optional_input(2), call.output()
    is_dense = call.name == "FULLY_CONNECTED"
    reals = per_channel_multipliers(x, weight, y, _outputs(call))
    is_wide = bias is not None and bias.type is TensorType.INT64
    if is_dense:
        single = per_tensor_multiplier(x, weight, bias, y) if _scales(weight) == 1 else None
        if is_wide or call.options.quantized_bias_type is TensorType.INT64:
            zeros = np.zeros(len(reals), np.int64)
            reals = np.where(np.isfinite(reals), reals, 0.0)
            return Scaling(reals, zeros, zeros, instructions.REAL, _SUM_BITS)
        if single is not None:
            reals[:] = single
    if is_wide or call.name == "DEPTHWISE_CONV_2D":
        return int64_scaling(reals)
    mantissa, shift = quantize_multipliers(reals)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    first = np.full_like(shift, 31)
    return Scaling(mantissa << left, first, right, instructions.FIXED_POINT, 31 - int(left.max()))


def int64_scaling(reals: NDArray[np.float64]) -> Scaling:
    """Return the scaling by Q15 multipliers that approximate *reals*, ``[O]``."""
    mantissa, shift = quantize_multipliers(reals)
    zeros = np.zeros_like(shift)
    return Scaling(
        reduce_multiplier(mantissa), 15 - shift, zeros, instructions.FIXED_POINT, _SUM_BITS
    )


def _scales(weight: Tensor) -> int:
    return 0 if weight.quantization is None else len(weight.quantization.scales)


def _outputs(call: Call) -> int:
    return call.input(1).shape[3 if call.name == "DEPTHWISE_CONV_2D" else 0]


def weights_of(call: Call) -> Weights:
    """Return the weights of a node as ``[O, K]``, for any of the operators.

    Groups of channels make a matrix with zeros where an output does not read a channel.
    """
    weight, groups = call.input(1), _groups(call)
    values: Array = dense_values(weight)
    if call.name == "DEPTHWISE_CONV_2D":
        values = values.reshape(-1, values.shape[-1]).T
    if groups > 1:
        taps = math.prod(weight.shape[1:3])
        (values,) = joined_groups(values.reshape(_outputs(call), taps, -1), groups, groups)
    return values.reshape(_outputs(call), -1).astype(np.int16)


def _groups(call: Call) -> int:
    """Return the number of channel groups of a node that one matrix joins.

    It is 1 if each output reads a separate channel.
    """
    if call.name == "CONV_2D":
        return groups_of(call)
    if call.name == "DEPTHWISE_CONV_2D" and call.input(0).shape:
        channels = call.input(0).shape[3]
        return 1 if channels == _outputs(call) else channels
    return 1


def check_product(call: Call) -> Rejection | None:
    """Return a rejection unless activations are int16, and weights constant and symmetric.

    Kernels must also be able to scale all sums exactly.
    """
    x, weight, bias, y = call.input(0), call.input(1), call.optional_input(2), call.output()
    found = first_rejection(
        check_type(x, "INT16"), check_type(y, "INT16"), check_type(weight, "INT8"),
        check_bias(call), *(check_type(t, *BIAS_TYPES[call.name]) for t in (bias,) if t),
    )  # fmt: skip
    if found is not None:
        return found
    for tensor in (weight, bias):
        if tensor is not None and not tensor.is_constant:
            return Rejection("computed-weights", expected="constant weights", tensor=tensor.index)
    if weight.sparsity is not None or 0 in weight.shape or not weight.shape:
        return Rejection("weights", expected="dense weights", tensor=weight.index)
    for tensor in (x, weight, y, *((bias,) if bias else ())):
        if tensor.quantization is not None and tensor.quantization.zero_points.any():
            return Rejection("zero-point", expected=0, tensor=tensor.index)
    try:
        return product_of(call).rejection()
    except OperatorError as error:
        return Rejection("quantization", str(error))


def check_conv(call: Call) -> Rejection | None:
    """Return a rejection unless the convolution has one group and supported operands."""
    found = first_rejection(check_images(call), check_one_group(call))
    return check_product(call) if found is None else found


def check_depthwise(call: Call) -> Rejection | None:
    """Return a rejection unless each channel has one output, or there is one channel.

    Windows must not have too many taps, and :func:`check_product` must accept the node.
    """
    x, weight = call.input(0), call.input(1)
    found = check_images(call)
    if found is not None:
        return found
    if len(x.shape) == 4 and x.shape[3] not in (1, weight.shape[3]):
        return Rejection("multiplier", actual=weight.shape[3] // x.shape[3], expected=1)
    if math.prod(weight.shape[:3]) > instructions.MOST_TAPS:
        return Rejection(
            "taps", actual=weight.shape[1:3], expected=f"{instructions.MOST_TAPS} at most"
        )
    return check_product(call)


def lower_windows(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a 16-bit convolution, plain or depthwise.

    A plain convolution may have groups of channels after a resize. A depthwise convolution with
    several outputs for a channel is computed as a plain one.
    """
    _emit(call, builder, windows_of(call), call.input(0).shape[3])


def check_dense(call: Call) -> Rejection | None:
    """Return a rejection unless the weights are ``[O, K]`` in the default order.

    :func:`check_product` must accept the node, too.
    """
    weight, form = call.input(1), call.options.weights_format
    if form != FullyConnectedOptionsWeightsFormat.DEFAULT or len(weight.shape) != 2:
        return Rejection("weights-format", expected="[O, K] in the default order of weights")
    return check_product(call)


def lower_dense(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a 16-bit matrix product, as a convolution whose pixels are the rows."""
    outputs, depth = call.input(1).shape
    rows = math.prod(call.output().shape) // outputs
    _emit(call, builder, (ONE, Window(rows, 1, 1, 1, rows, 0)), depth)


def _emit(
    call: Call, builder: ProgramBuilder, windows: tuple[Window, Window], channels: int
) -> None:
    is_depthwise = call.name == "DEPTHWISE_CONV_2D" and channels == _outputs(call) > 1
    emit_product(call, builder, product_of(call), windows, channels, is_depthwise=is_depthwise)


def emit_product(
    call: Call,
    builder: ProgramBuilder,
    product: Product,
    windows: tuple[Window, Window],
    channels: int,
    *,
    is_depthwise: bool = False,
) -> None:
    """Add to the program a kernel call that multiplies windows of 16-bit images by weights.

    Args:
        call: the node; its first input has the windows.
        builder: builder of the program, to which the kernel call is added.
        product: the node's constants.
        windows: windows along height and along width.
        channels: number of channels of the input.
        is_depthwise: whether output number *c* reads channel number *c* alone.
    """
    x, y = call.input(0), call.output()
    results, outputs = math.prod(y.shape), len(product.weight)
    if not results:
        return
    pack, instruction, unit = (_by_channels, instructions.DEPTHWISE, "taps")
    if not is_depthwise:
        pack, instruction, unit = (_by_pairs, instructions.CONVOLVE, "pairs")
    down, across = windows
    depth = down.kernel * across.kernel * (1 if is_depthwise else channels)
    count = depth if is_depthwise else -(-depth // 2)
    row_bytes = 4 * -(-down.kernel * across.kernel * channels // 2)
    step = max(CACHED_BYTES // row_bytes // instructions.ROWS, 1) * instructions.ROWS
    size = aligned(instructions.ACC_BYTES + step * row_bytes + 64)
    builder.emit(
        instruction,
        tiles_for(builder, results * depth * 4, results * 2, results // outputs),
        x=builder.tensor(x.index),
        y=builder.tensor(y.index),
        windows=pack_windows_record(builder, 2 * channels, windows, zero=0, flip=0),
        pixels=results // outputs,
        step=step,
        scratch=WorkerScratch(size),
        **_constants(builder, y.index, product, pack),
        **{unit: count},
    )


def _constants(
    builder: ProgramBuilder, name: int, product: Product, pack: Callable[[Weights], Array]
) -> dict[str, Any]:
    """Return the kernel's operands, by name, for the constants of a product, stored by *name*.

    They are the weights in the order of *pack*, headers (bias and scaling of each group of
    outputs), and counts.
    """
    return {
        "weights": builder.packed(
            ("weights", name, pack.__name__, product.weight.shape), lambda: pack(product.weight)
        ),
        "headers": builder.packed(("headers", name), lambda: _headers(product)),
        "outputs": len(product.weight),
        "low": product.limits[0],
        "high": product.limits[1],
        "rounding": product.scaling.rounding,
    }


def _by_pairs(weight: Weights) -> Array:
    """Return *weight*, ``[O, K]``, as ``[O / 16, K / 2, 16, 2]``, filled up with zeros."""
    outputs, depth = weight.shape
    size, pairs = -(-outputs // instructions.LANES), -(-depth // 2)
    padded = np.zeros((size * instructions.LANES, 2 * pairs), np.int16)
    padded[:outputs, :depth] = weight
    return padded.reshape(size, instructions.LANES, pairs, 2).transpose(0, 2, 1, 3)


def _by_channels(weight: Weights) -> Array:
    """Return *weight*, ``[O, taps]``, as ``[O / 16, taps, 16]``, filled up with zeros."""
    outputs, taps = weight.shape
    size = -(-outputs // instructions.LANES)
    padded = np.zeros((size * instructions.LANES, taps), np.int16)
    padded[:outputs] = weight
    return padded.reshape(size, instructions.LANES, taps).transpose(0, 2, 1)


def _headers(product: Product) -> Array:
    """Return bias, multiplier and two shifts of each 16 outputs: ``[blocks, 4, 16], int64``."""
    scaling, bias = product.scaling, product.bias
    rows = {
        "bias": bias, "multiplier": scaling.multiplier.view(np.int64), "first": scaling.first,
        "second": scaling.second,
    }  # fmt: skip
    size = -(-len(bias) // instructions.LANES)
    headers = np.zeros((len(instructions.HEADER), size * instructions.LANES), np.int64)
    for row, name in zip(headers, instructions.HEADER, strict=True):
        row[: len(bias)] = rows[name]
    return headers.reshape(len(instructions.HEADER), size, instructions.LANES).swapaxes(0, 1)


_FEATURES = ("activation", "empty", "per-channel")

for _name, _check, _lower, _features in (
    ("CONV_2D", check_conv, lower_windows, _FEATURES),
    ("DEPTHWISE_CONV_2D", check_depthwise, lower_windows, _FEATURES),
    ("FULLY_CONNECTED", check_dense, lower_dense, (*_FEATURES, "many-dims")),
):
    _roles = (("weights", ("INT8",)), ("bias", BIAS_TYPES[_name]))
    _operator = Operator(_check, _lower, ("INT16",), _features, roles=_roles)
    register_variants("INT16", {_name: _operator})
