"""Float32 convolutions and matrix products with constant weights."""

from __future__ import annotations

import math
from typing import Any

from delegraph import Rejection, Tensor
from delegraph.arithmetic.activation import float_activation_range
from delegraph.arithmetic.padding import Window
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph_numba_cpu.blocks.conv_f32 import CONV, DEPTHWISE, REPEAT
from delegraph_numba_cpu.operators.conv_packing import (
    block_widths,
    emit_packed,
    packed_channels,
    packed_matrix,
)
from delegraph_numba_cpu.operators.conv_windows import READING, Split, Windows, split, window_words
from delegraph_numba_cpu.operators.convolutions import check_images, windows_of
from delegraph_numba_cpu.operators.registry import (
    Call,
    Operator,
    check_types,
    first_rejection,
    register_variants,
)
from delegraph_numba_cpu.operators.widened import is_widened
from delegraph_numba_cpu.program import Address, Memory, ProgramBuilder

CLAMPS = (Act.NONE, Act.RELU, Act.RELU_N1_TO_1, Act.RELU6)

Range = tuple[float, float]

UNLIMITED: Range = (-math.inf, math.inf)

SLOWER = 8
"""How much longer a multiply-add of a depthwise convolution takes than one of a matrix product."""


def check_conv(call: Call) -> Rejection | None:
    """Let pass what has constant weights of all the input's channels."""
    return first_rejection(check_weighted(call, rank=4), check_images(call))


def check_weighted(call: Call, rank: int, *, may_be_computed: bool = False) -> Rejection | None:
    """Let pass float32 with dense weights of a rank, constant if need be, and a fused clamp."""
    found = check_types(call, "FLOAT32")
    if found is not None:
        return found
    for position in (1, 2):
        tensor = call.optional_input(position)
        if tensor is not None and (tensor.is_constant or not may_be_computed):
            found = check_constant(call, position)
            if found is not None:
                return found
    weight = call.input(1)
    if len(weight.shape) != rank or 0 in weight.shape:
        return Rejection("weights-shape", actual=list(weight.shape), expected=f"{rank} dimensions")
    activation = Act(call.options.fused_activation_function)
    if activation not in CLAMPS:
        return Rejection("activation", actual=activation.name, expected="a clamp")
    return None


def check_constant(call: Call, position: int) -> Rejection | None:
    """Let pass what is stored in full, and what the host computes once from constants alone."""
    tensor = call.input(position)
    if not tensor.is_constant_or_persistent and not is_widened(call, tensor.index):
        return Rejection("computed-weights", expected="constant weights", tensor=tensor.index)
    if tensor.sparsity is not None:
        return Rejection("sparse", expected="weights stored in full", tensor=tensor.index)
    return None


def lower_conv(call: Call, builder: ProgramBuilder) -> None:
    """Emit a convolution."""
    x = call.input(0)
    source = builder.tensor(x.index)
    emit_conv(call, builder, source, x.shape, windows_of(call), clamp_range(call))


def clamp_range(call: Call) -> Range:
    """Return the range of the fused activation."""
    return float_activation_range(call.options.fused_activation_function)


def emit_conv(
    call: Call,
    builder: ProgramBuilder,
    source: Memory | Address,
    shape: tuple[int, ...],
    windows: tuple[Window, Window],
    limits: Range,
    target: Memory | None = None,
    residual: Memory | None = None,
    sum_limits: Range = UNLIMITED,
) -> None:
    """Emit the kernel call of a convolution.

    Args:
        call: the CONV_2D node.
        builder: gets the call.
        source: where the input is.
        shape: of the input, ``[N, H, W, C]``.
        windows: along height and width.
        limits: clamping range.
        target: where the result goes; None for the node's output.
        residual: what is added to the result, of the result's shape; None for nothing.
        sum_limits: clamping range of the result with the residual.
    """
    weight, bias = call.input(1), call.optional_input(2)
    outputs, kernel_h, kernel_w, channels = weight.shape
    over = Windows(windows[0], windows[1], shape[0], 4 * channels, outputs).flat()
    emit_products(
        builder,
        over,
        (kernel_h, kernel_w),
        x=source,
        y=builder.tensor(call.node.outputs[0]) if target is None else target,
        weight=packed_matrix(builder, weight, bias, outputs),
        residual=0 if residual is None else residual,
        low=limits[0],
        high=limits[1],
        sum_low=sum_limits[0],
        sum_high=sum_limits[1],
    )


def emit_products(
    builder: ProgramBuilder, over: Windows, kernel: tuple[int, int], **words: Any
) -> None:
    """Emit a call of ``CONV``.

    Args:
        builder: gets the call.
        over: the windows, and what a pixel is.
        kernel: height and width of the window.
        words: addresses and ranges, and what differs from a plain convolution.
    """
    if over.pixels == 0:
        return
    merged = over.across.dilation == 1
    taps = (kernel[0], 1, 0) if merged else (*kernel, over.across.dilation * over.pixel)
    weights = over.columns * kernel[0] * kernel[1] * over.pixel // 4
    work = weights * max(over.pixels, READING)
    blocks = len(block_widths(over.columns, builder.level.vector_bytes // 4))
    parts = split(over, builder, work, blocks, is_dense="out_row" not in words)
    tap_bytes = (kernel[1] if merged else 1) * over.pixel
    everything = window_words(over, parts, taps, builder) | {
        "weight_image": 0,
        "tap_bytes": tap_bytes,
        **words,
    }
    builder.emit(CONV, parts.tiles, **everything)


def check_fully_connected(call: Call) -> Rejection | None:
    """Let pass weights in the default order."""
    return check_weighted(call, rank=2, may_be_computed=True)


def lower_fully_connected(call: Call, builder: ProgramBuilder) -> None:
    """Emit a matrix product: a convolution whose pixels are the input's rows."""
    target = builder.tensor(call.node.outputs[0])
    emit_dense(call, builder, target, call.optional_input(2), clamp_range(call))


def emit_dense(
    call: Call, builder: ProgramBuilder, target: Memory, bias: Tensor | None, limits: Range
) -> None:
    """Emit the product of a node's first input and its second, ``[O, K]``.

    Args:
        call: the node.
        builder: gets the call.
        target: where the result goes.
        bias: added to the result, or None.
        limits: clamping range.
    """
    x, weight = call.input(0), call.input(1)
    outputs, depth = weight.shape
    rows = math.prod(x.shape) // depth
    if rows == 0:
        return
    one = Window(1, 1, 1, 1, 1, 0)
    over = Windows(Window(rows, 1, 1, 1, rows, 0), one, 1, 4 * depth, outputs)
    low, high = limits
    emit_products(
        builder,
        over,
        (1, 1),
        x=builder.tensor(x.index),
        y=target,
        weight=_dense_weights(builder, weight, bias),
        residual=0,
        low=low,
        high=high,
        sum_low=UNLIMITED[0],
        sum_high=UNLIMITED[1],
    )


def _dense_weights(builder: ProgramBuilder, weight: Tensor, bias: Tensor | None) -> Memory:
    """Return weights ``[O, K]`` for micro-kernels; computed ones are brought there at each run."""
    outputs, depth = weight.shape
    given = [tensor for tensor in (weight, bias) if tensor is not None]
    if all(tensor.is_constant_or_persistent for tensor in given):
        return packed_matrix(builder, weight, bias, outputs)
    return emit_packed(
        builder,
        builder.tensor(weight.index),
        (1, depth, outputs),
        is_transposed=True,
        bias=0 if bias is None else builder.tensor(bias.index),
    )


def check_depthwise(call: Call) -> Rejection | None:
    """Let pass constant weights."""
    return first_rejection(check_weighted(call, rank=4), check_images(call))


def lower_depthwise(call: Call, builder: ProgramBuilder) -> None:
    """Emit a depthwise convolution; the input's channels are repeated for each of their outputs."""
    x = call.input(0)
    emit_depthwise(call, builder, builder.tensor(x.index), x.shape, windows_of(call))


def emit_depthwise(
    call: Call,
    builder: ProgramBuilder,
    source: Memory,
    shape: tuple[int, ...],
    windows: tuple[Window, Window],
) -> None:
    """Emit the kernel call of a depthwise convolution.

    Args:
        call: the DEPTHWISE_CONV_2D node.
        builder: gets the call.
        source: where the input is.
        shape: of the input, ``[N, H, W, C]``.
        windows: along height and width.
    """
    weight, bias = call.input(1), call.optional_input(2)
    _, kernel_h, kernel_w, outputs = weight.shape
    over = Windows(windows[0], windows[1], shape[0], 4 * outputs, outputs)
    if over.pixels == 0:
        return
    if outputs != shape[3]:
        source = repeated(builder, source, math.prod(shape), outputs // shape[3])
    parts = _depthwise_split(over, builder, kernel_h * kernel_w)
    low, high = clamp_range(call)
    builder.emit(
        DEPTHWISE,
        parts.tiles,
        x=source,
        y=builder.tensor(call.node.outputs[0]),
        weight=packed_channels(builder, weight, bias, outputs),
        residual=0,
        low=low,
        high=high,
        sum_low=UNLIMITED[0],
        sum_high=UNLIMITED[1],
        **window_words(
            over, parts, (kernel_h, kernel_w, over.across.dilation * over.pixel), builder
        ),
    )


def _depthwise_split(over: Windows, builder: ProgramBuilder, taps: int) -> Split:
    blocks = -(-over.columns // (builder.level.vector_bytes // 4))
    return split(over, builder, SLOWER * over.pixels * over.columns * taps, blocks)


def repeated(builder: ProgramBuilder, source: Memory, values: int, times: int) -> Memory:
    """Emit a copy in which each value stands several times; return where it is."""
    target = builder.scratch(4 * values * times)
    tiles = max(1, min(builder.workers, values * times // 20_000))
    builder.emit(REPEAT, tiles, x=source, y=target, values=values, times=times)
    return target


_FEATURES = ("activation", "empty", "extreme-values")

OPERATORS = {
    "CONV_2D": Operator(check_conv, lower_conv, ("FLOAT32",), _FEATURES),
    "FULLY_CONNECTED": Operator(
        check_fully_connected,
        lower_fully_connected,
        ("FLOAT32",),
        (*_FEATURES, "computed-weights", "many-dims", "scalar"),
    ),
    "DEPTHWISE_CONV_2D": Operator(check_depthwise, lower_depthwise, ("FLOAT32",), _FEATURES),
}
"""Those of float32 alone, by name."""

register_variants("FLOAT32", OPERATORS)
