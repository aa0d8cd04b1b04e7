"""Convolutions and matrix products of 8-bit integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from delegraph import Rejection, Tensor
from delegraph.arithmetic.accumulator_scaling import Scaling, fixed_point_scaling
from delegraph.arithmetic.convolution_scale import (
    is_in_scalar_tail,
    per_channel_multipliers,
    per_tensor_multiplier,
    scaling_of,
)
from delegraph.arithmetic.padding import Window, window
from delegraph.arithmetic.weights import bias_or_zeros
from delegraph.errors import OperatorError
from delegraph.schema.enums import FullyConnectedOptionsWeightsFormat
from delegraph_numba_cpu.blocks import conv_int8 as blocks
from delegraph_numba_cpu.blocks.moves import COPY
from delegraph_numba_cpu.operators.computed_int8 import computed_product, emit_packed
from delegraph_numba_cpu.operators.convolutions import check_images, windows_of
from delegraph_numba_cpu.operators.packing_int8 import Product, centred
from delegraph_numba_cpu.operators.plans_int8 import (
    depthwise_bytes,
    emit_product,
    pack_matrix,
    pack_taps,
    pack_windows,
    tiles_for,
)
from delegraph_numba_cpu.operators.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program import Memory, ProgramBuilder

TYPES = ("INT8", "UINT8")
WEIGHT_TYPES = {"INT8": ("INT8", "INT4", "INT2"), "UINT8": ("UINT8",)}


def check_constants(call: Call) -> Rejection | None:
    """Let pass 8-bit integers with constant weights, which kernels compute exactly."""
    x, y = call.input(_input(call)), call.output()
    weight, bias = call.input(1), call.optional_input(_input(call, bias=True))
    if x.type.name not in TYPES or y.type != x.type:
        return Rejection("dtype", actual=x.type.name, expected="INT8 or UINT8", tensor=x.index)
    allowed = WEIGHT_TYPES[x.type.name]
    if weight.type.name not in allowed:
        return Rejection(
            "dtype", actual=weight.type.name, expected=" or ".join(allowed), tensor=weight.index
        )
    for tensor in (weight, bias):
        if tensor is not None and not tensor.is_constant:
            return Rejection("computed-weights", expected="constant weights", tensor=tensor.index)
    if weight.sparsity is not None:
        return Rejection("sparse-weights", expected="dense weights", tensor=weight.index)
    if bias is not None and bias.type.name != "INT32":
        return Rejection("dtype", actual=bias.type.name, expected="INT32", tensor=bias.index)
    try:
        return product_of(call).rejection()
    except OperatorError as error:
        return Rejection("quantization", str(error))


def check_conv(call: Call) -> Rejection | None:
    """Let pass convolutions without groups."""
    found = check_images(call)
    return check_constants(call) if found is None else found


def check_depthwise(call: Call) -> Rejection | None:
    """Let pass depthwise convolutions."""
    found = check_images(call)
    return check_constants(call) if found is None else found


def check_fully_connected(call: Call) -> Rejection | None:
    """Let pass weights in the default order."""
    weight = call.input(1)
    if call.options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Rejection("weights-format", expected="the default order of weights")
    return check_constants(call) if weight.is_constant else _check_computed(call)


def _check_computed(call: Call) -> Rejection | None:
    """Let pass int8 weights with one scale, and a constant bias."""
    x, weight, bias = call.input(0), call.input(1), call.optional_input(2)
    for tensor in (x, weight, call.output()):
        if tensor.type.name != "INT8":
            return Rejection("dtype", actual=tensor.type.name, expected="INT8", tensor=tensor.index)
    if weight.quantization is None or len(weight.quantization.scales) != 1:
        return Rejection("quantization", expected="one scale", tensor=weight.index)
    if len(weight.shape) != 2:
        return Rejection("weights-shape", actual=weight.shape, expected="two dimensions")
    if bias is not None and not (bias.is_constant and bias.type.name == "INT32"):
        return Rejection("computed-bias", expected="a constant of INT32", tensor=bias.index)
    return product_of(call).rejection()


def check_transposed(call: Call) -> Rejection | None:
    """Let pass transposed convolutions whose output shape is known before the data."""
    if not call.input(0).is_constant:
        return Rejection("computed-shape", expected="a constant shape", tensor=call.input(0).index)
    return check_constants(call)


def _input(call: Call, *, bias: bool = False) -> int:
    """Return which input the data is, or the bias."""
    is_transposed = call.name == "TRANSPOSE_CONV"
    return 2 + is_transposed if bias else 2 * is_transposed


def product_of(call: Call) -> Product:
    """Return the constants of a node.

    Raises:
        OperatorError: quantization that the official kernel refuses.
    """
    x, weight, y = call.input(_input(call)), call.input(1), call.output()
    bias = call.optional_input(_input(call, bias=True))
    if not weight.is_constant:
        outputs, depth = weight.shape
        scaling = _scaling(call, x, weight, bias, y, outputs)
        values = bias_or_zeros(bias, outputs, np.int64)
        activation = call.options.fused_activation_function
        return computed_product(x, y, scaling, depth, values, activation)
    values = centred(weight)
    if call.name == "DEPTHWISE_CONV_2D":
        values = values.reshape(-1, values.shape[-1]).T
    scaling = _scaling(call, x, weight, bias, y, len(values))
    values = values.reshape(len(values), -1)
    activation = call.options.fused_activation_function
    return Product.of(x, values, bias, y, scaling, activation)


def _scaling(
    call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor, channels: int
) -> Scaling:
    """Return how accumulators are scaled; each operator's official kernel rounds in its own way."""
    if call.name == "FULLY_CONNECTED":
        multipliers = per_channel_multipliers(x, weight, y, channels)
        if weight.quantization is not None and len(weight.quantization.scales) == 1:
            multipliers[:] = per_tensor_multiplier(x, weight, bias, y)
        return fixed_point_scaling(multipliers, halves_away=False)
    away: Any = False
    if call.name == "DEPTHWISE_CONV_2D":
        away = is_in_scalar_tail(channels) if x.type.name == "INT8" else True
    elif call.name == "TRANSPOSE_CONV" and x.type.name == "INT8":
        away = is_in_scalar_tail(channels)
    return scaling_of(x, weight, bias, y, channels, "builtin", halves_away=away)


def lower_conv(call: Call, builder: ProgramBuilder) -> None:
    """Emit a convolution."""
    x, y = call.input(0), call.output()
    down, across = windows_of(call)
    product = product_of(call)
    windows = pack_windows(builder, x.shape[3], (down, across), product)
    matrix = pack_matrix(builder, call, product)
    is_pointwise = down.is_pointwise and across.is_pointwise and not down.after | across.after
    emit_product(
        builder, builder.tensor(x.index), builder.tensor(y.index), windows, matrix, product,
        math.prod(y.shape[:3]), is_pointwise,
    )  # fmt: skip


def lower_fully_connected(call: Call, builder: ProgramBuilder) -> None:
    """Emit a matrix product."""
    x, weight, y = call.input(0), call.input(1), call.output()
    product = product_of(call)
    one = Window(1, 1, 1, 1, 1, 0)
    outputs, depth = product.weight.shape
    windows = pack_windows(builder, depth, (one, one), product)
    if weight.is_constant:
        matrix = pack_matrix(builder, call, product)
    else:
        matrix = emit_packed(
            call, builder, product, builder.tensor(weight.index), 1, weight.zero_point
        )
    rows = math.prod(y.shape) // max(outputs, 1)
    emit_product(
        builder, builder.tensor(x.index), builder.tensor(y.index), windows, matrix, product,
        rows, True,
    )  # fmt: skip


def lower_transposed(call: Call, builder: ProgramBuilder) -> None:
    """Emit a transposed convolution, as one over an input with holes."""
    weight, x, y = call.input(1), call.input(2), call.output()
    options, product = call.options, product_of(call)
    down, across = (
        window(options.padding, y.shape[1 + i], weight.shape[1 + i], stride)
        for i, stride in enumerate((options.stride_h, options.stride_w))
    )
    windows = pack_windows(builder, x.shape[3], (down, across), product, is_transposed=True)
    source, target = builder.tensor(x.index), builder.tensor(y.index)
    pixels = math.prod(y.shape[:3])

    def emit(target: Memory, product: Product, key: str) -> None:
        matrix = pack_matrix(builder, call, product, key)
        emit_product(builder, source, target, windows, matrix, product, pixels, False)

    emit(target, product, "")
    tail = math.prod(y.shape) % 16
    if x.type.name == "UINT8" and tail and builder.exact:
        # The official kernel requantises 16 values at once; the rest rounds differently.
        away = scaling_of(
            x, weight, call.optional_input(3), y, len(product.bias), "builtin", halves_away=True
        )
        values = product.weight
        rest = Product.of(
            x, values, call.optional_input(3), y, away, options.fused_activation_function
        )
        whole = builder.scratch(target.size)
        emit(whole, rest, "tail")
        copy_bytes(builder, whole, target, target.size - tail, tail)


def copy_bytes(
    builder: ProgramBuilder, source: Memory, target: Memory, offset: int, size: int
) -> None:
    """Emit a copy of bytes at the same offset of both."""
    builder.emit(COPY, source=source + offset, target=target + offset, bytes=size)


def lower_depthwise(call: Call, builder: ProgramBuilder) -> None:
    """Emit a depthwise convolution."""
    x, y = call.input(0), call.output()
    source, product = builder.tensor(x.index), product_of(call)
    channels = y.shape[3]
    down, across = windows_of(call)
    times = channels // max(x.shape[3], 1)
    if times > 1:
        repeated, pixels = builder.scratch(source.size * times), math.prod(x.shape[:3])
        builder.emit(
            blocks.REPEAT, max(1, min(builder.workers, pixels // 1000)), x=source, y=repeated,
            pixels=pixels, channels=x.shape[3], times=times,
        )  # fmt: skip
        source = repeated
    windows = pack_windows(builder, channels, (down, across), product)
    taps = pack_taps(builder, call, product, down, across)
    rows = y.shape[0] * down.output
    if not math.prod(y.shape):
        return
    size = depthwise_bytes(channels, down, across)
    results = math.prod(y.shape)
    builder.emit(
        blocks.DEPTHWISE,
        tiles_for(builder, results * down.kernel * across.kernel * 4, results * 2, rows),
        x=source,
        y=builder.tensor(y.index),
        windows=windows,
        taps=taps,
        rows=rows,
        scratch=builder.scratch(size * builder.workers),
        scratch_bytes=size,
    )


_FEATURES = ("activation", "empty", "extreme-values", "per-channel")
for _type in TYPES:
    _whole = (_type, "INT32")
    _types = (*_whole, "INT4") if _type == "INT8" else _whole  # of INT2 the kit has no models
    _computed = ("computed-weights",) if _type == "INT8" else ()
    register_variants(
        _type,
        {
            "CONV_2D": Operator(check_conv, lower_conv, _types, _FEATURES),
            "FULLY_CONNECTED": Operator(
                check_fully_connected,
                lower_fully_connected,
                _types,
                (*_FEATURES, *_computed, "many-dims"),
            ),
            "DEPTHWISE_CONV_2D": Operator(check_depthwise, lower_depthwise, _types, _FEATURES),
        },
    )
    register_variants(
        _type,
        {"TRANSPOSE_CONV": Operator(check_transposed, lower_transposed, _whole, _FEATURES)},
        position=2,
    )
