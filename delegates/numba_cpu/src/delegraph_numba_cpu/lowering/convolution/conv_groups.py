"""CONV_2D with groups of channels, as a stack of convolutions with separate weights.

Images are rearranged group by group, computed, and rearranged back. The kernels are those of
convolutions without groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Tensor
from delegraph_numba_cpu.lowering.convolution import conv_f32, conv_int8
from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import bias_values, pack_matrix
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import Windows
from delegraph_numba_cpu.lowering.convolution.conv_int8_computed_weights import MATRIX_BYTES
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import product_of
from delegraph_numba_cpu.lowering.convolution.conv_int8_packing import LANES
from delegraph_numba_cpu.lowering.convolution.conv_windows import (
    groups_of,
    is_pointwise,
    windows_of,
)
from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Address, ProgramBuilder
from delegraph_numba_cpu.program.shared_constants import constant_key

Array = NDArray[Any]

Emit = Callable[[Address, Address], None]
"""Function that adds the computation of one image: from input ``[G, H, W, C / G]`` to output."""


def lower_f32(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls of a float32 convolution with groups of channels."""
    x, weight, bias = call.input(0), call.input(1), call.optional_input(2)
    groups = groups_of(call)
    _, kernel_h, kernel_w, channels = weight.shape
    outputs = weight.shape[0] // groups
    over = Windows(*windows_of(call), images=1, pixel=4 * channels, columns=outputs).flat()
    lanes = builder.level.vector_bytes // 4
    key = ("groups_f32", constant_key(weight), constant_key(bias), groups, lanes)
    packed = builder.packed(key, lambda: _packed_groups(weight, bias, groups, lanes))
    low, high = conv_f32.clamp_range(call)

    def emit(source: Address, target: Address) -> None:
        conv_f32.emit_products(
            builder,
            replace(over, images=groups),
            (kernel_h, kernel_w),
            x=source,
            y=target,
            weight=packed,
            weight_image=packed.size // groups,
            low=low,
            high=high,
        )

    _emit_images(builder, x, call.output(), groups, emit)


def _packed_groups(weight: Tensor, bias: Tensor | None, groups: int, lanes: int) -> Array:
    """Return each group's weights and bias packed for micro-kernels, ``[groups, ...], float32``.

    *weight* is ``[O, KH, KW, C / groups]``, and *lanes* the number of float32 values in a register.
    """
    outputs = weight.shape[0]
    values = weight.data.reshape(groups, outputs // groups, -1)
    biases = bias_values(bias, outputs).reshape(groups, -1)
    return np.stack([pack_matrix(v.T, b, lanes) for v, b in zip(values, biases, strict=True)])


def lower_int8(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program an 8-bit convolution with groups; small groups are computed together."""
    x, weight, y = call.input(0), call.input(1), call.output()
    whole, groups = product_of(call), groups_of(call)
    together = groups_together(groups, weight.shape[0] // groups)
    sets = groups // together
    values = whole.weight.reshape(weight.shape[0], -1, weight.shape[3])
    matrices = joined_groups(values, groups, together)
    product = replace(whole, weight=matrices[0])
    windows = windows_of(call)
    record = conv_int8.pack_windows(builder, weight.shape[3] * together, windows, product)
    matrix = conv_int8.pack_matrices(builder, call, whole, matrices, f"{groups} groups")
    stack = conv_int8.Stack(sets, math.prod(x.shape[1:]) // sets, MATRIX_BYTES)
    pixels, pointwise = math.prod(y.shape[1:3]), is_pointwise(windows)

    def emit(source: Address, target: Address) -> None:
        conv_int8.emit_product(
            builder, source, target, record, matrix, product, pixels, pointwise, stack
        )

    _emit_images(builder, x, y, sets, emit)


def groups_together(groups: int, outputs: int) -> int:
    """Return the number of channel groups that share a matrix, so that 16 columns are nearly full.

    It is the largest divisor of *groups* with which a matrix has at most 16 columns, at least 1.

    Args:
        groups: number of groups.
        outputs: number of outputs, which are columns, of a group.

    >>> groups_together(32, 4), groups_together(3, 16), groups_together(6, 5)
    (4, 1, 3)
    """
    most = max(LANES // outputs, 1)
    return max(n for n in range(1, most + 1) if groups % n == 0)


def joined_groups(weight: Array, groups: int, together: int) -> Array:
    """Return the weights of several groups in one matrix, with zeros between groups.

    Args:
        weight: ``[O, taps, C / groups]``.
        groups: number of groups.
        together: number of groups in a matrix.

    Returns:
        ``[groups / together, O / groups * together, K]``, where K is the product of the taps, of
        *together* and of ``C / groups``.
    """
    outputs, taps, channels = weight.shape
    outputs //= groups
    given = weight.reshape(-1, together, outputs, taps, channels)
    sets = len(given)
    joined = np.zeros((sets, together, outputs, taps, together, channels), weight.dtype)
    for i in range(together):
        joined[:, i, :, :, i] = given[:, i]
    return joined.reshape(sets, together * outputs, taps * together * channels)


def _emit_images(builder: ProgramBuilder, x: Tensor, y: Tensor, groups: int, emit: Emit) -> None:
    """Add a convolution with groups: regroup the channels, compute each image, put them back."""
    if 0 in y.shape:
        return
    source, target = Part.of(builder, x), Part.of(builder, y)
    inner, outer = (by_groups(part.array, groups) for part in (source, target))
    divided = Part.scratch(builder, inner.shape, inner.dtype)
    result = Part.scratch(builder, outer.shape, outer.dtype)
    move(builder, source.seen(inner), divided)
    for image in range(x.shape[0]):
        emit(divided[image].start, result[image].start)
    move(builder, result, target.seen(outer))


def by_groups(array: Array, groups: int) -> Array:
    """Return a view of *array*, images ``[N, H, W, C]``, as ``[N, groups, H, W, C / groups]``."""
    n, h, w, c = array.shape
    return array.reshape(n, h, w, groups, c // groups).transpose(0, 3, 1, 2, 4)
