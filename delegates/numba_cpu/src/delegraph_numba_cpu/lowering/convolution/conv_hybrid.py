"""Products of float32 activations and 8-bit or 4-bit weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic import bias_or_zeros, dense_values, rows_have_zero_points
from delegraph_numba_cpu.instructions import conv_hybrid as instructions
from delegraph_numba_cpu.instructions import conv_int8
from delegraph_numba_cpu.lowering.checks import check_bias, check_type, first_rejection
from delegraph_numba_cpu.lowering.convolution.conv_f32 import (
    check_clamp,
    check_constant,
    clamp_range,
)
from delegraph_numba_cpu.lowering.convolution.conv_int8 import (
    CACHED_BYTES,
    column_tiles_for,
    pack_windows_record,
    row_tiles_for,
    tiles_for,
)
from delegraph_numba_cpu.lowering.convolution.conv_int8_packing import LANES
from delegraph_numba_cpu.lowering.convolution.conv_windows import ONE_PIXEL
from delegraph_numba_cpu.lowering.registry import Call, Operator, one_of
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder, WorkerScratch, aligned

WEIGHT_TYPES = ("INT8", "INT4")

PIECE = 16_384
"""Number of activations that one tile measures or quantizes: some microseconds of work."""

GROUP = 64
"""Number of output columns whose weights are packed together."""

ACTIVATION_ZERO = 128
"""Stored value of a quantized activation of 0."""

_LARGEST_SUM = (1 << 31) - 1

_LARGEST_ACTIVATION = 255  # the largest difference of two int8


def is_hybrid(call: Call) -> bool:
    """Whether the weights of the node *call* are integers."""
    return call.input(1).type.name in WEIGHT_TYPES


def check_product(call: Call) -> Rejection | None:
    """Return a rejection unless weights are constant, with one scale or one per output.

    Other tensors must be float32, sums of products must fit 32 bits, and :func:`check_constants`
    must accept the node.
    """
    weight = call.input(1)
    found = first_rejection(check_types_and_weights(call), check_constants(call))
    if found is not None:
        return found
    quantization = weight.quantization
    if quantization is None or len(quantization.scales) not in (1, weight.shape[0]):
        return Rejection("quantization", expected="one scale, or one an output")
    if quantization.block_size:
        return Rejection("quantization", expected="no scales of blocks", tensor=weight.index)
    return check_sums(weight)


def check_constants(call: Call) -> Rejection | None:
    """Return a rejection unless weights and bias are constants that the kernels can use.

    The activation must be a clamp.
    """
    given = (position for position in (1, 2) if call.optional_input(position) is not None)
    found = first_rejection(*(check_constant(call, i) for i in given), check_bias(call))
    if found is not None:
        return found
    weight = call.input(1)
    if 0 in weight.shape:
        return Rejection("weights-shape", actual=list(weight.shape), expected="weights")
    return check_clamp(call)


def check_types_and_weights(call: Call) -> Rejection | None:
    """Return a rejection unless weights are constant, and all other tensors float32."""
    weight, others = call.input(1), (call.input(0), call.optional_input(2), call.output())
    found = first_rejection(*(check_type(each, "FLOAT32") for each in others if each is not None))
    if found is None and not weight.is_constant:
        return Rejection("computed-weights", expected="constant weights", tensor=weight.index)
    return found


def check_sums(weight: Tensor) -> Rejection | None:
    """Return a rejection unless sums of products with *weight* fit 32 bits."""
    is_short = math.prod(weight.shape[1:]) * _LARGEST_ACTIVATION * 128 <= _LARGEST_SUM
    if is_short or have_short_sums(weight_matrix(weight)):
        return None
    return Rejection("depth", actual=weight.shape, expected="sums of 32 bits", tensor=weight.index)


def have_short_sums(values: NDArray[np.int8]) -> bool:
    """Whether 32 bits hold each sum of activations times *values*, weights ``[O, K]``."""
    largest = np.abs(values.astype(np.int64)).sum(axis=1).max()
    return bool(largest * _LARGEST_ACTIVATION <= _LARGEST_SUM)


def weight_matrix(weight: Tensor) -> NDArray[np.int8]:
    """Return *weight* as ``[O, K]``; zero points are ignored, as in the official kernels."""
    values: NDArray[np.int8] = dense_values(weight).reshape(weight.shape[0], -1)
    return values


def emit_dense(call: Call, builder: ProgramBuilder, rows: int, **words: Any) -> None:
    """Add to the program the product of a node's float32 rows and its integer weights ``[O, K]``.

    Args:
        call: the node; its options say whether quantized rows have zero points.
        builder: builder of the program, to which the kernel calls are added.
        rows: number of rows.
        words: operands of the kernel by name, see :func:`emit_product`.
    """
    outputs, depth = call.input(1).shape
    emit_rows(call, builder, (rows, depth, outputs), **words)


def emit_rows(
    call: Call, builder: ProgramBuilder, sizes: tuple[int, int, int], **words: Any
) -> None:
    """Add to the program the product of a node's first input, seen as rows, and integer weights.

    Args:
        call: the node; its options say whether quantized rows have zero points.
        builder: builder of the program, to which the kernel calls are added.
        sizes: number of rows, their length, and number of columns of the product.
        words: operands of the kernel by name, see :func:`emit_product`.
    """
    rows, depth, outputs = sizes
    inputs = 4 if words["form"] == instructions.BYTES else 8
    row_bytes = words["parts"] * words["steps"] * inputs
    windows = pack_windows_record(builder, row_bytes, ONE_PIXEL, zero=ACTIVATION_ZERO, flip=0)
    source, sizes = (rows, depth, row_bytes), (rows, row_bytes, outputs)
    is_asymmetric = words["form"] == instructions.PARTS or _has_zero_points(call)
    emit_product(call, builder, windows, instructions.DIRECT, source, is_asymmetric, sizes, **words)


def _has_zero_points(call: Call) -> bool:
    asked = bool(call.options.asymmetric_quantize_inputs)
    if call.name != "FULLY_CONNECTED" or call.context.numerics != "builtin":
        return asked
    return rows_have_zero_points(call.input(1), asked=asked)


def emit_product(
    call: Call,
    builder: ProgramBuilder,
    windows: Memory,
    layout: int,
    source: tuple[int, int, int],
    is_asymmetric: bool,
    sizes: tuple[int, int, int],
    **words: Any,
) -> None:
    """Add kernel calls that quantize a node's float input, and multiply it by integer weights.

    Args:
        call: the node that is turned into kernel calls.
        builder: builder of the program, to which the kernel calls are added.
        windows: record that describes how activations become rows of a matrix.
        layout: whether rows are copied from windows or are already stored, see
            ``instructions.conv_hybrid``.
        source: number of rows with a separate scale, their number of values, and their length in
            bytes.
        is_asymmetric: whether quantized rows have zero points.
        sizes: number of rows of the matrix, their length, and number of columns of the product.
        words: operands of the kernel ``MULTIPLY`` by name, for the result, the weights and the
            clamp.
    """
    pixels, depth, outputs = sizes
    row_bytes = -(-depth // 4) * 4
    activations, scales = emit_quantized(call, builder, source, row_bytes, is_asymmetric)
    height = instructions.ROWS
    step = min(max(CACHED_BYTES // row_bytes // height, 1), -(-pixels // height), 64) * height
    laid_out = step * row_bytes if layout == instructions.WINDOWED else 0
    memory = aligned(conv_int8.ACC_BYTES + 256 + laid_out)
    tiles = tiles_for(builder, pixels * depth * outputs, 4 * pixels * outputs, 1 << 20)
    row_tiles = row_tiles_for(builder, tiles, pixels)
    column_tiles = column_tiles_for(builder, tiles, row_tiles, outputs)
    builder.emit(
        instructions.MULTIPLY,
        row_tiles * column_tiles,
        x=activations,
        scales=scales,
        windows=windows,
        outputs=outputs,
        layout=layout,
        step=step,
        row_tiles=row_tiles,
        column_tiles=column_tiles,
        pixels=pixels,
        image_pixels=pixels // source[0],
        scratch=WorkerScratch(memory),
        **words,
    )


def emit_quantized(
    call: Call,
    builder: ProgramBuilder,
    source: tuple[int, int, int],
    row_bytes: int,
    is_asymmetric: bool,
) -> tuple[Memory, Memory]:
    """Add kernel calls that quantize a node's float input; return the memory of their results.

    The results are integers and their scales. The memory of the integers has more rows than the
    input, since micro-kernels read several rows at a time.

    Args:
        call: the node, whose first input is quantized.
        builder: builder of the program, to which the kernel calls are added.
        source: number of rows with a separate scale, their number of values, and their length in
            bytes.
        row_bytes: number of bytes of a row of the product's left matrix.
        is_asymmetric: whether quantized rows get zero points.
    """
    rows, size, length = source
    scales = builder.scratch(8 * rows)
    quantized = builder.scratch(rows * length + instructions.ROWS * row_bytes)
    tiles, words = emit_measured(call, builder, rows, size)
    builder.emit(
        instructions.QUANTIZE, tiles, y=quantized, scales=scales, row_bytes=length,
        is_asymmetric=int(is_asymmetric), **words,
    )  # fmt: skip
    return quantized, scales


def emit_measured(
    call: Call, builder: ProgramBuilder, rows: int, size: int
) -> tuple[int, dict[str, Any]]:
    """Add a kernel call that finds the smallest and largest value of each row of a node's input.

    Args:
        call: the node, whose first input is measured.
        builder: builder of the program, to which the kernel call is added.
        rows: number of rows.
        size: number of values of a row.

    Returns:
        The number of tiles, and the operands, by name, that the next kernel call shares with this
        call.
    """
    pieces = -(-size // PIECE) if builder.workers > 1 else 1
    tiles = max(1, min(rows * pieces, rows * size // PIECE))
    words = {
        "x": builder.tensor(call.input(0).index), "ranges": builder.scratch(8 * rows * pieces),
        "rows": rows, "size": size, "pieces": pieces,
    }  # fmt: skip
    builder.emit(instructions.MEASURE, tiles, **words)
    return tiles, words


def weight_scales(weight: Tensor) -> NDArray[np.float32]:
    """Return the scale of each output of *weight*, ``[O]``."""
    assert weight.quantization is not None
    scales = weight.quantization.scales.astype(np.float32)
    return np.broadcast_to(scales, (weight.shape[0],))


def product_words(
    call: Call, builder: ProgramBuilder, joined: NDArray[np.int8] | None = None
) -> dict[str, Any]:
    """Return the operands, by name, of the kernel ``MULTIPLY`` for weights, clamp and result.

    Args:
        call: the node that is turned into kernel calls.
        builder: builder of the program, which stores the packed weights.
        joined: ``[O, K]``, the weights of all groups of channels; None if there is only one group.
    """
    weight, y = call.input(1), call.node.outputs[0]
    bias = bias_or_zeros(call.optional_input(2), weight.shape[0], np.float32)
    values = weight_matrix(weight) if joined is None else joined
    packed = packed_weights(builder, (y, values.shape), values, weight_scales(weight), bias)
    low, high = clamp_range(call)
    return {"y": builder.tensor(y), "low": low, "high": high, **packed}


def packed_weights(
    builder: ProgramBuilder,
    name: object,
    values: NDArray[np.int8],
    scales: NDArray[np.float32],
    bias: NDArray[np.float32],
) -> dict[str, Any]:
    """Return the operands, by name, of the kernel ``MULTIPLY`` for 8-bit weights.

    Args:
        builder: builder of the program, which stores the packed weights.
        name: key under which the weights are stored.
        values: weights, ``[O, K]``.
        scales: scale of each output, ``[O]``.
        bias: numbers that are added to results, ``[O]``.
    """
    steps = -(-values.shape[1] // 4)
    return {
        "weights": builder.packed(("hybrid-weights", name), lambda: byte_groups(values)),
        "headers": packed_headers(
            builder, name, lambda: (values.sum(axis=1, dtype=np.int32), scales), bias
        ),
        "form": instructions.BYTES,
        "parts": 1,
        "steps": steps,
        "block_bytes": 64 * steps,
    }


def packed_headers(
    builder: ProgramBuilder,
    name: object,
    sums_and_scales: Callable[[], tuple[NDArray[Any], NDArray[np.float32]]],
    bias: NDArray[np.float32],
) -> Memory:
    """Return the memory of a header for each 16 outputs: sums, scales and biases that they use.

    Args:
        builder: builder of the program, which stores the headers as a constant.
        name: key of the headers in the builder.
        sums_and_scales: function that returns the sum of each output's weights, int32 or float32,
            and the factors of the accumulators, ``[O]`` each.
        bias: numbers that are added to results, ``[O]``.
    """
    # The form in which kernels multiply activations.
    zero = ACTIVATION_ZERO - builder.level.byte_shift

    def pack() -> NDArray[np.uint8]:
        sums, scales = sums_and_scales()
        return header_bytes({"bias": -zero * sums, "sum": sums, "scale": scales, "offset": bias})

    return builder.packed(("hybrid-headers", name), pack)


def header_bytes(rows: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the headers' fields in *rows*, ``[O]`` each, as ``[blocks, HEADER_BYTES], uint8``."""
    count = len(rows["sum"])
    size = -(-count // GROUP) * GROUP
    headers = np.empty((size // LANES, instructions.HEADER_BYTES), np.uint8)
    for name, row in rows.items():
        padded = np.zeros(size, row.dtype)
        padded[:count] = row
        place = instructions.HEADER[name]
        headers[:, place : place + 4 * LANES] = padded.view(np.uint8).reshape(len(headers), -1)
    return headers


def byte_groups(values: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the weights *values*, ``[O, K]``, in the order of ``BYTES``, with zeros added."""
    outputs, depth = values.shape
    groups, steps = -(-outputs // GROUP), -(-depth // 4)
    padded = np.zeros((groups * GROUP, steps * 4), np.int8)
    padded[:outputs, :depth] = values
    return padded.reshape(groups, GROUP, steps, 4).swapaxes(1, 2)


def by_weights(plain: Operator, mixed: Operator) -> Operator:
    """Return an operator that is *plain* for float weights and *mixed* for integer weights."""
    return one_of(lambda call: mixed if is_hybrid(call) else plain, plain, mixed)
