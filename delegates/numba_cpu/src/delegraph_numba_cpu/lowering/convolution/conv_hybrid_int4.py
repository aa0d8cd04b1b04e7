"""Products of float32 activations and 4-bit weights, which stay packed, two in a byte.

Each output has a scale, or several scales for equal parts of its weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic import bias_or_zeros, dense_values
from delegraph_numba_cpu.instructions import conv_hybrid as instructions
from delegraph_numba_cpu.instructions.memory import aligned_bytes
from delegraph_numba_cpu.lowering.checks import check_type, first_rejection
from delegraph_numba_cpu.lowering.convolution.conv_f32 import UNLIMITED, clamp_range
from delegraph_numba_cpu.lowering.convolution.conv_hybrid import (
    GROUP,
    check_constants,
    check_types_and_weights,
    packed_headers,
    weight_matrix,
    weight_scales,
)
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder

UNIT = 16
"""Factor of 4-bit weights in kernels, which read a weight as the high half of a byte."""

UNPACKED = 1 << 18
"""Number of weights that are unpacked at a time while they are packed for kernels."""

LARGEST_SUM = (1 << 31) // (255 * 128)
"""Largest number of products of an activation and a weight whose sum always fits in 32 bits."""


def has_parts(weight: Tensor) -> bool:
    """Whether 4-bit weights have block scales: a scale for each of several equal parts of a row."""
    return weight.quantization is not None and bool(weight.quantization.block_size)


def is_packed(weight: Tensor) -> bool:
    """Whether kernels read weights ``[O, K]`` as they are stored: two 4-bit values a byte."""
    if has_parts(weight):
        return True
    return weight.type.name == "INT4" and weight.shape[1] <= LARGEST_SUM


def check_parts(call: Call) -> Rejection | None:
    """Return a rejection unless weights are constant 4-bit, with scales for parts of rows.

    The number of values of a part must be a multiple of a kernel step's.
    """
    weight = call.input(1)
    found = first_rejection(
        check_types_and_weights(call), check_constants(call), check_type(weight, "INT4")
    )
    if found is not None:
        return found
    assert weight.quantization is not None
    size, (outputs, depth) = weight.quantization.block_size, weight.shape
    if size % 8 or size > LARGEST_SUM or depth % size:
        expected = f"blocks of 8, 16, 24, ... that divide {depth}"
        return Rejection("block-size", actual=size, expected=expected, tensor=weight.index)
    if len(weight.quantization.scales) != outputs * (depth // size):
        return Rejection("quantization", expected="a scale for each block", tensor=weight.index)
    if weight.quantization.scales.dtype != np.float16:
        return Rejection("scales", expected="float16", tensor=weight.index)
    return None


def nibble_words(call: Call, builder: ProgramBuilder) -> dict[str, Any]:
    """Return the operands, by name, of the kernel ``MULTIPLY`` for 4-bit weights, clamp and result.

    The official kernel ignores the fused activation if parts have scales.
    """
    weight, y = call.input(1), call.node.outputs[0]
    depth = weight.shape[1]
    steps, low, high, form = -(-depth // 8), *clamp_range(call), instructions.NIBBLES
    parts = 1
    if has_parts(weight):
        assert weight.quantization is not None
        size = weight.quantization.block_size
        steps, parts, (low, high), form = size // 8, depth // size, UNLIMITED, instructions.PARTS
    scales = instructions.SCALE_BYTES // 4 if form == instructions.PARTS else 0
    return {
        "y": builder.tensor(y),
        "low": low,
        "high": high,
        "weights": builder.packed(
            ("nibbles", y), lambda: nibble_groups(weight, parts), is_own=True
        ),
        "headers": packed_headers(
            builder, y, lambda: _sums_and_scales(weight, parts),
            bias_or_zeros(call.optional_input(2), weight.shape[0], np.float32),
        ),
        "form": form,
        "parts": parts,
        "steps": steps,
        "block_bytes": parts * (64 * steps + scales),
    }  # fmt: skip


def part_scales(weight: Tensor, parts: int) -> NDArray[np.float16]:
    """Return the scales of weights with a scale for each part of a row, ``[O, parts]``.

    Args:
        weight: the weights, ``[O, K]``.
        parts: number of parts of a row.
    """
    assert weight.quantization is not None
    scales: NDArray[np.float16] = weight.quantization.scales.reshape(-1, parts)
    return scales


def _sums_and_scales(weight: Tensor, parts: int) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Return the sum of each output's weights, and the factor from sums of products to results.

    The sums are of weights as kernels multiply them, that is times :data:`UNIT`.
    """
    outputs, unit = weight.shape[0], np.float32(1 / UNIT)
    scales = part_scales(weight, parts) if has_parts(weight) else None
    sums = np.empty(outputs, np.int32 if scales is None else np.float32)
    for first, values in row_groups(weight):
        rows = slice(first, first + len(values))
        several = values.reshape(len(values), parts, -1)
        own = UNIT * several.sum(axis=2, dtype=np.int32)
        if scales is not None:
            own = own * scales[rows].astype(np.float64)
        sums[rows] = own.sum(axis=1)
    if scales is None:
        return sums, weight_scales(weight) * unit
    return sums, np.full(outputs, unit)


def row_groups(weight: Tensor) -> Iterator[tuple[int, NDArray[np.int8]]]:
    """Yield weights, ``[O, K]``, unpacked, some groups of outputs at a time.

    Yields:
        The number of the first output, and weights ``[outputs, K]``. All arrays but the last have
        whole groups of outputs.
    """
    outputs, depth = weight.shape
    if weight.sparsity is not None:
        yield 0, weight_matrix(weight)
        return
    step = max(UNPACKED // (depth * GROUP), 1) * GROUP
    for first in range(0, outputs, step):
        count = min(step, outputs - first)
        packed = weight.data[first * depth // 2 : -(-(first + count) * depth // 2)]
        part = Tensor(weight.index, weight.type, (count, depth), data=packed)
        yield first, dense_values(part)


def nibble_groups(weight: Tensor, parts: int) -> NDArray[np.uint8]:
    """Return weights, ``[O, K]``, in the order of ``NIBBLES`` or ``PARTS``, with zeros added.

    Returns:
        ``[groups, parts, bytes]``; scales of parts are the last bytes.
    """
    outputs, depth = weight.shape
    groups, size = -(-outputs // GROUP), -(-depth // parts // 8) * 8
    length = GROUP * size // 2
    scale_bytes = instructions.SCALE_BYTES if has_parts(weight) else 0
    shape = groups, parts, length + scale_bytes
    packed = aligned_bytes(math.prod(shape)).reshape(shape)
    for first, values in row_groups(weight):
        start, count = first // GROUP, -(-len(values) // GROUP)
        padded = np.zeros((count * GROUP, parts * size), np.int8)
        padded[: len(values), :depth] = values
        halves = padded.reshape(count, GROUP, parts, size // 8, 2, 4)
        bytes_of = (halves[..., 0, :] & 15 | halves[..., 1, :] << 4).view(np.uint8)
        in_order = bytes_of.transpose(0, 2, 3, 1, 4).reshape(count, parts, length)
        packed[start : start + count, :, :length] = in_order
    if scale_bytes:
        last, scales = outputs // GROUP * GROUP, part_scales(weight, parts)
        places = packed[:, :, length:].view(np.float16)  # [groups, parts, GROUP]
        places[: last // GROUP] = scales[:last].reshape(-1, GROUP, parts).swapaxes(1, 2)
        if last < outputs:
            places[-1] = 0
            places[-1, :, : outputs - last] = scales[last:].T
    return packed
