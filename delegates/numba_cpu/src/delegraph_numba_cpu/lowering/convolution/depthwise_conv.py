"""Claims and lowering of DEPTHWISE_CONV_2D."""

from __future__ import annotations

import math

from delegraph import Rejection
from delegraph.arithmetic import Window
from delegraph_numba_cpu.instructions import depthwise_conv_f32, depthwise_conv_int8
from delegraph_numba_cpu.instructions.conv_hybrid import ROUND
from delegraph_numba_cpu.lowering.checks import check_type, first_rejection
from delegraph_numba_cpu.lowering.convolution import conv_f32, conv_hybrid, conv_int8
from delegraph_numba_cpu.lowering.convolution.conv import check_f32, check_int8
from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import packed_channels
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import (
    Split,
    Windows,
    split,
    window_words,
)
from delegraph_numba_cpu.lowering.convolution.conv_hybrid import by_weights
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import (
    CLAIMED_ROLES,
    product_of,
)
from delegraph_numba_cpu.lowering.convolution.conv_windows import check_images, windows_of
from delegraph_numba_cpu.lowering.convolution.depthwise_conv_int8 import (
    depthwise_bytes,
    pack_taps,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder, WorkerScratch

SLOWER = 2
"""Time of a multiply-add in a depthwise convolution, as a multiple of that in a matrix product."""


def lower_f32(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a float32 depthwise convolution.

    With several outputs for a channel, a kernel call first repeats each input value.
    """
    x, y = call.input(0), call.output()
    source, target = builder.tensor(x.index), builder.tensor(y.index)
    limits = conv_f32.clamp_range(call)
    emit_depthwise(call, builder, source, x.shape, windows_of(call), target, limits)


def emit_depthwise(
    call: Call,
    builder: ProgramBuilder,
    source: Memory,
    shape: tuple[int, ...],
    windows: tuple[Window, Window],
    target: Memory,
    limits: conv_f32.Range,
) -> None:
    """Add to the program a float32 depthwise convolution with given input and output.

    Args:
        call: the DEPTHWISE_CONV_2D node.
        builder: builder of the program, to which the kernel call is added.
        source: memory of the input.
        shape: shape of the input without padding, ``[N, H, W, C]``.
        windows: windows along height and along width, which say where the padding is.
        target: memory of the result.
        limits: clamping range.
    """
    weight, bias = call.input(1), call.optional_input(2)
    _, kernel_h, kernel_w, outputs = weight.shape
    over = Windows(windows[0], windows[1], shape[0], 4 * outputs, outputs)
    if over.pixels == 0:
        return
    if outputs != shape[3]:
        source = repeated(builder, source, math.prod(shape), outputs // shape[3])
    parts = _depthwise_split(over, builder, kernel_h * kernel_w)
    low, high = limits
    builder.emit(
        depthwise_conv_f32.DEPTHWISE,
        parts.tiles,
        x=source,
        y=target,
        weight=packed_channels(builder, weight, bias, outputs),
        residual=0,
        low=low,
        high=high,
        sum_low=conv_f32.UNLIMITED[0],
        sum_high=conv_f32.UNLIMITED[1],
        **window_words(
            over, parts, (kernel_h, kernel_w, over.across.dilation * over.pixel), builder
        ),
    )


def _depthwise_split(over: Windows, builder: ProgramBuilder, taps: int) -> Split:
    strips = -(-over.columns // (builder.level.vector_bytes // 4))
    return split(over, builder, SLOWER * over.pixels * over.columns * taps, strips)


def repeated(builder: ProgramBuilder, source: Memory, values: int, times: int) -> Memory:
    """Add a kernel call that repeats each value *times* times; return the memory of its result.

    Args:
        builder: builder of the program, to which the kernel call is added.
        source: memory of the float32 values.
        values: number of values.
        times: number of copies of each value.
    """
    target = builder.scratch(4 * values * times)
    tiles = builder.tiles(values * times / 10, values)
    builder.emit(depthwise_conv_f32.REPEAT, tiles, x=source, y=target, values=values, times=times)
    return target


def check_hybrid(call: Call) -> Rejection | None:
    """Return a rejection unless weights are constant 8-bit, with a scale per output."""
    weight = call.input(1)
    found = first_rejection(
        conv_hybrid.check_types_and_weights(call),
        conv_hybrid.check_constants(call),
        check_images(call),
        check_type(weight, "INT8"),
    )
    if found is not None:
        return found
    quantization = weight.quantization
    has_scales = quantization is not None and len(quantization.scales) == weight.shape[3]
    if not has_scales or quantization is None or quantization.quantized_dimension != 3:
        return Rejection("quantization", expected="a scale an output", tensor=weight.index)
    return None


def lower_hybrid(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a depthwise convolution of float32 images and 8-bit weights.

    Images are rounded to values that quantization can represent, and weights are dequantized.

    The official kernel multiplies integers and scales each product, so scaling only the sum would
    round differently. Padding with zeros is right, because zero points are already removed.
    """
    x, y = call.input(0), call.output()
    if not math.prod(x.shape) or not math.prod(y.shape):
        return
    rounded = builder.scratch(4 * math.prod(x.shape))
    tiles, words = conv_hybrid.emit_measured(call, builder, x.shape[0], math.prod(x.shape[1:]))
    builder.emit(ROUND, tiles, y=rounded, **words)
    limits, target = conv_f32.clamp_range(call), builder.tensor(y.index)
    emit_depthwise(call, builder, rounded, x.shape, windows_of(call), target, limits)


def lower_int8(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an 8-bit depthwise convolution."""
    x, y = call.input(0), call.output()
    source, product = builder.tensor(x.index), product_of(call)
    channels = y.shape[3]
    down, across = windows_of(call)
    times = channels // max(x.shape[3], 1)
    if times > 1:
        repeated, pixels = builder.scratch(source.size * times), math.prod(x.shape[:3])
        builder.emit(
            depthwise_conv_int8.REPEAT, builder.tiles(pixels, pixels),
            x=source, y=repeated, pixels=pixels, channels=x.shape[3], times=times,
        )  # fmt: skip
        source = repeated
    windows = conv_int8.pack_windows(builder, channels, (down, across), product)
    taps = pack_taps(builder, call, product, down, across)
    rows = y.shape[0] * down.output
    if not math.prod(y.shape):
        return
    size = depthwise_bytes(channels, down, across, builder.level.vector_bytes)
    results = math.prod(y.shape)
    builder.emit(
        depthwise_conv_int8.DEPTHWISE,
        conv_int8.tiles_for(builder, results * down.kernel * across.kernel * 4, results * 2, rows),
        x=source,
        y=builder.tensor(y.index),
        windows=windows,
        taps=taps,
        rows=rows,
        scratch=WorkerScratch(size),
    )


_FEATURES = ("activation", "empty")
_INT8_FEATURES = (*_FEATURES, "extreme-values", "per-channel")

_F32 = Operator(check_f32, lower_f32, ("FLOAT32",), (*_FEATURES, "extreme-values"))
_HYBRID = Operator(
    check_hybrid,
    lower_hybrid,
    ("FLOAT32",),
    (*_FEATURES, "per-channel"),
    roles=(("weights", ("INT8",)),),
)

register_variants("FLOAT32", {"DEPTHWISE_CONV_2D": by_weights(_F32, _HYBRID)})
for _type, _roles in CLAIMED_ROLES.items():
    _int8 = Operator(check_int8, lower_int8, (_type,), _INT8_FEATURES, roles=_roles)
    register_variants(_type, {"DEPTHWISE_CONV_2D": _int8})
