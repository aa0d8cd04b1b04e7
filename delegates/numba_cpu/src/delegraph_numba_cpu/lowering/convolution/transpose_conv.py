"""TRANSPOSE_CONV; a float32 one becomes a plain convolution for each phase of the stride."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic import Window, integers, scaling_of, window
from delegraph_numba_cpu.instructions.moves import COPY
from delegraph_numba_cpu.lowering.checks import (
    check_bias,
    check_type,
    first_rejection,
    require_asked,
)
from delegraph_numba_cpu.lowering.convolution import conv_f32, conv_int8
from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import bias_values, pack_matrix
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import Windows
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import (
    TYPES,
    Product,
    check_constants,
    product_of,
)
from delegraph_numba_cpu.lowering.dequantized_constants import widened_constant
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder
from delegraph_numba_cpu.program.shared_constants import constant_key

SHAPE, WEIGHT, X, BIAS = range(4)


def check_f32(call: Call) -> Rejection | None:
    """Return a rejection unless weights and output shape are constants.

    The stride must not exceed the kernel, the weights must be finite, and the activation a clamp.
    """
    if not call.input(SHAPE).is_constant:
        return Rejection("computed-shape", expected="a constant", tensor=call.node.inputs[SHAPE])
    for position in (WEIGHT, X, BIAS):
        tensor = call.optional_input(position)
        if tensor is None:
            continue
        refused = check_type(tensor, "FLOAT32")
        if refused is None and position != X:
            refused = conv_f32.check_constant(call, position)
        if refused is not None:
            return refused
    return first_rejection(check_bias(call, BIAS), _check_window(call))


def _check_window(call: Call) -> Rejection | None:
    weight, options = call.input(WEIGHT), call.options
    if len(weight.shape) != 4 or 0 in weight.shape:
        return Rejection("weights-shape", actual=list(weight.shape), expected="4 dimensions")
    if weight.shape[1] < options.stride_h or weight.shape[2] < options.stride_w:
        return Rejection("stride", expected="a stride no larger than the kernel")
    known = weight if weight.data is not None else widened_constant(call, weight.index)
    if known is None:
        return Rejection("computed-weights", expected="a constant", tensor=weight.index)
    # Zeros around x times an infinite or NaN weight would give NaN.
    if not np.isfinite(known.data.astype(np.float32)).all():
        return Rejection("weights", actual="NaN or infinity", expected="finite numbers")
    return conv_f32.check_clamp(call)


@dataclass(frozen=True, slots=True)
class Phase:
    """Convolution that computes the outputs ``first + i * stride`` of an axis.

    Attributes:
        first: number of the first output, below the stride.
        taps: kernel positions that contribute to these outputs, in the order of the inputs.
        window: geometry of the windows over the inputs from number *skipped* on.
        skipped: number of first inputs that no window reads.
    """

    first: int
    taps: tuple[int, ...]
    window: Window
    skipped: int


def phases(inputs: int, outputs: int, kernel: int, stride: int, before: int) -> Iterator[Phase]:
    """Yield the phases of an axis with *inputs* inputs, *outputs* outputs and *kernel* taps.

    Output ``o`` gets ``x[i] * weight[o + before - i * stride]`` from every input ``i`` for which
    the weight exists.

    >>> [(phase.first, phase.taps, phase.window.before) for phase in phases(4, 8, 3, 2, 0)]
    [(0, (2, 0), 1), (1, (1,), 0)]
    """
    for first in range(min(stride, outputs)):
        place = (first + before) % stride
        taps = tuple(range(place, kernel, stride))[::-1]
        padding = len(taps) - 1 - (first + before) // stride
        skipped = max(-padding, 0)
        count = len(range(first, outputs, stride))
        size = max(inputs - skipped, 0)
        yield Phase(first, taps, Window(size, len(taps), 1, 1, count, padding + skipped), skipped)


def lower_f32(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a float32 TRANSPOSE_CONV, as a plain convolution for each pair of phases.

    A phase is the outputs of an axis whose numbers have the same remainder modulo the stride.

    Raises:
        OperatorError: the output does not have the requested shape.
    """
    require_asked("shape", integers(call.input(SHAPE)), call.output().shape)
    weight, x, y, options = call.input(WEIGHT), call.input(X), call.output(), call.options
    (images, height, width, channels), pixel = x.shape, 4 * weight.shape[0]
    kernel_h, kernel_w = weight.shape[1:3]
    top = window(options.padding, y.shape[1], kernel_h, options.stride_h).before
    left = window(options.padding, y.shape[2], kernel_w, options.stride_w).before
    low, high = conv_f32.clamp_range(call)
    row = y.shape[2] * pixel
    for down in phases(height, y.shape[1], kernel_h, options.stride_h, top):
        for across in phases(width, y.shape[2], kernel_w, options.stride_w, left):
            skipped = (down.skipped * width + across.skipped) * 4 * channels
            conv_f32.emit_products(
                builder,
                Windows(down.window, across.window, images, 4 * channels, weight.shape[0]),
                (len(down.taps), len(across.taps)),
                x=builder.tensor(x.index) + skipped,
                y=builder.tensor(y.index) + (down.first * row + across.first * pixel),
                weight=_packed_taps(call, builder, down, across),
                low=low,
                high=high,
                in_image=height * width * 4 * channels,
                in_row=width * 4 * channels,
                out_image=y.shape[1] * row,
                out_row=options.stride_h * row,
                pitch=options.stride_w * pixel,
            )


def _packed_taps(call: Call, builder: ProgramBuilder, down: Phase, across: Phase) -> Memory:
    weight, bias = call.input(WEIGHT), call.optional_input(BIAS)
    lanes = builder.level.vector_bytes // 4
    constants = constant_key(weight), constant_key(bias)
    key = ("transposed_f32", *constants, down.taps, across.taps, lanes)
    outputs = weight.shape[0]
    taps = np.ix_(range(outputs), down.taps, across.taps)
    return builder.packed(
        key,
        lambda: pack_matrix(
            weight.data[taps].reshape(outputs, -1).T, bias_values(bias, outputs), lanes
        ),
        is_own=True,
    )


def check_int8(call: Call) -> Rejection | None:
    """Return a rejection unless output shape and weights are constants, and results exact."""
    if not call.input(0).is_constant:
        return Rejection("computed-shape", expected="a constant shape", tensor=call.input(0).index)
    return check_constants(call)


def lower_int8(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program an 8-bit TRANSPOSE_CONV, computed as a convolution of a spread input.

    Zeros are inserted between the pixels of the input.

    Raises:
        OperatorError: the output does not have the requested shape.
    """
    require_asked("shape", integers(call.input(SHAPE)), call.output().shape)
    weight, x, y = call.input(1), call.input(2), call.output()
    options, product = call.options, product_of(call)
    down, across = (
        window(options.padding, y.shape[1 + i], weight.shape[1 + i], stride)
        for i, stride in enumerate((options.stride_h, options.stride_w))
    )
    windows = conv_int8.pack_windows(
        builder, x.shape[3], (down, across), product, is_transposed=True
    )
    source, target = builder.tensor(x.index), builder.tensor(y.index)
    pixels = math.prod(y.shape[:3])

    def emit(target: Memory, product: Product, key: str) -> None:
        matrix = conv_int8.pack_matrix(builder, call, product, key)
        conv_int8.emit_product(builder, source, target, windows, matrix, product, pixels, False)

    emit(target, product, "")
    tail = math.prod(y.shape) % 16
    if x.type.name == "UINT8" and tail and builder.exact:
        # The official kernel requantises 16 values at once, and rounds the remaining ones
        # differently.
        away = scaling_of(
            x, weight, call.optional_input(3), y, len(product.bias), "builtin", halves_away=True
        )
        values = product.weight
        rest = Product.of(
            x, values, call.optional_input(3), y, away, options.fused_activation_function
        )
        whole = builder.scratch(target.size)
        emit(whole, rest, "tail")
        at = target.size - tail
        builder.emit(COPY, source=whole + at, target=target + at, bytes=tail)


_FEATURES = ("activation", "empty")
_SHAPE = ("output_shape", ("INT32",))
_F32 = Operator(check_f32, lower_f32, ("FLOAT32",), _FEATURES, roles=(_SHAPE,))

register_variants("FLOAT32", {"TRANSPOSE_CONV": _F32}, position=X)
for _type in TYPES:
    _int8 = Operator(
        check_int8,
        lower_int8,
        (_type,),
        (*_FEATURES, "extreme-values", "per-channel"),
        roles=(_SHAPE, ("bias", ("INT32",))),
    )
    register_variants(_type, {"TRANSPOSE_CONV": _int8}, position=X)
