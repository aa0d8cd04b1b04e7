"""Claims and lowering of CONV_2D."""

from __future__ import annotations

import math
from typing import Any

from delegraph import Rejection
from delegraph.arithmetic import Window, dense_values
from delegraph_numba_cpu.instructions.conv_hybrid import DIRECT, WINDOWED
from delegraph_numba_cpu.lowering.checks import first_rejection
from delegraph_numba_cpu.lowering.convolution import conv_f32, conv_groups, conv_hybrid, conv_int8
from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import packed_matrix
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import Windows
from delegraph_numba_cpu.lowering.convolution.conv_hybrid import by_weights
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import (
    CLAIMED_ROLES,
    check_constants,
    product_of,
)
from delegraph_numba_cpu.lowering.convolution.conv_int8_lines import lines_of, with_gaps
from delegraph_numba_cpu.lowering.convolution.conv_windows import (
    check_images,
    check_one_group,
    groups_of,
    is_pointwise,
    windows_of,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import Address, Memory, ProgramBuilder


def check_f32(call: Call) -> Rejection | None:
    """Return a rejection unless the weights of a convolution, plain or depthwise, are constant.

    They must fit the input's channels.
    """
    return first_rejection(conv_f32.check_weighted(call, rank=4), check_images(call))


def lower_f32(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of a float32 convolution."""
    if groups_of(call) > 1:
        conv_groups.lower_f32(call, builder)
        return
    x = call.input(0)
    source = builder.tensor(x.index)
    low, high = conv_f32.clamp_range(call)
    target = builder.tensor(call.output().index)
    emit_conv(call, builder, source, x.shape, windows_of(call), y=target, low=low, high=high)


def emit_conv(
    call: Call,
    builder: ProgramBuilder,
    source: Memory | Address,
    shape: tuple[int, ...],
    windows: tuple[Window, Window],
    **output: Any,
) -> None:
    """Add to the program the kernel call of a float32 convolution with given input and output.

    Args:
        call: the CONV_2D node.
        builder: builder of the program, to which the kernel call is added.
        source: memory of the input.
        shape: shape of the input without padding, ``[N, H, W, C]``.
        windows: windows along height and along width, which say where the padding is.
        output: operands of the kernel by name: result, clamp, and the tensor added to the result.
    """
    weight, bias = call.input(1), call.optional_input(2)
    outputs, kernel_h, kernel_w, channels = weight.shape
    over = Windows(windows[0], windows[1], shape[0], 4 * channels, outputs).flat()
    conv_f32.emit_products(
        builder,
        over,
        (kernel_h, kernel_w),
        x=source,
        weight=packed_matrix(builder, weight, bias, outputs),
        **output,
    )


def check_hybrid(call: Call) -> Rejection | None:
    """Return a rejection unless the convolution has one group and constant weights.

    Nodes with several groups are left to the core, which is faster.
    """
    return first_rejection(
        check_images(call), check_one_group(call), conv_hybrid.check_product(call)
    )


def lower_hybrid(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a convolution of float32 images and 8-bit weights; each image has a scale.

    After a resize, the input may have several times the weights' channels, and so groups of
    channels. Zeros are then inserted into the weights, so that a group does not read others.
    """
    x, weight, y = call.input(0), call.input(1), call.output()
    if not math.prod(x.shape) or not math.prod(y.shape):
        return
    windows = windows_of(call)
    layout = DIRECT if is_pointwise(windows) and x.shape[3] % 4 == 0 else WINDOWED
    zero = conv_hybrid.ACTIVATION_ZERO
    record = conv_int8.pack_windows_record(builder, x.shape[3], windows, zero=zero, flip=0)
    scales = conv_hybrid.weight_scales(weight)
    outputs, groups = weight.shape[0], groups_of(call)
    is_asymmetric = groups > 1 or bool((scales != scales[0]).any())
    size = math.prod(x.shape[1:])
    depth, joined = groups * math.prod(weight.shape[1:]), None
    if groups > 1:
        values = dense_values(weight).reshape(outputs, -1, weight.shape[3])
        (joined,) = conv_groups.joined_groups(values, groups, groups)
    words = conv_hybrid.product_words(call, builder, joined)
    conv_hybrid.emit_product(
        call, builder, record, layout, (x.shape[0], size, size), is_asymmetric,
        (math.prod(y.shape) // outputs, depth, outputs), **words,
    )  # fmt: skip


def check_int8(call: Call) -> Rejection | None:
    """Return a rejection unless the kernels compute the convolution exactly, plain or depthwise."""
    found = check_images(call)
    return check_constants(call) if found is None else found


def lower_int8(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an 8-bit convolution."""
    if groups_of(call) > 1:
        conv_groups.lower_int8(call, builder)
        return
    x, y = call.input(0), call.output()
    windows = windows_of(call)
    product = product_of(call)
    lines = lines_of(builder, x.shape[3], windows, product)
    if lines is not None:
        product = with_gaps(product, windows[0].kernel)
    record = conv_int8.pack_windows(builder, x.shape[3], windows, product, lines=lines)
    matrix = conv_int8.pack_matrix(builder, call, product)
    conv_int8.emit_product(
        builder, builder.tensor(x.index), builder.tensor(y.index), record, matrix, product,
        math.prod(y.shape[:3]), is_pointwise(windows), lines=lines,
    )  # fmt: skip


_FEATURES = ("activation", "empty")
_INT8_FEATURES = (*_FEATURES, "extreme-values", "per-channel")

_F32 = Operator(check_f32, lower_f32, ("FLOAT32",), (*_FEATURES, "extreme-values"))
_HYBRID = Operator(
    check_hybrid,
    lower_hybrid,
    ("FLOAT32",),
    (*_FEATURES, "per-channel"),
    roles=(("weights", ("INT8", "INT4")),),
)

register_variants("FLOAT32", {"CONV_2D": by_weights(_F32, _HYBRID)})
for _type, _roles in CLAIMED_ROLES.items():
    _int8 = Operator(check_int8, lower_int8, (_type,), _INT8_FEATURES, roles=_roles)
    register_variants(_type, {"CONV_2D": _int8})
