"""Packs weights in the order in which micro-kernels read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.operators import Tensor
from delegraph_numba_cpu.instructions.conv_f32 import PACK
from delegraph_numba_cpu.instructions.memory import aligned_bytes
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder
from delegraph_numba_cpu.program.shared_constants import constant_key

Array = NDArray[Any]

VALUES_A_NANOSECOND = 2
"""Approximate number of values that are packed in a nanosecond."""


def block_widths(columns: int, lanes: int) -> list[int]:
    """Return the number of columns of each block of a packed matrix.

    A block is two registers wide. The last block may be narrower: half a register, one, or one and
    a half, if its columns fit.

    Args:
        columns: number of columns of the matrix.
        lanes: number of float32 values in a register.

    >>> block_widths(40, 16)
    [32, 8]
    >>> block_widths(24, 16)
    [24]
    """
    widths = []
    while columns > 0:
        fitting = [n * lanes // 2 for n in (1, 2, 3) if columns <= n * lanes // 2]
        widths.append(fitting[0] if fitting else 2 * lanes)
        columns -= widths[-1]
    return widths


def pack_matrix(weight: Array, bias: Array, lanes: int) -> Array:
    """Return the weights as consecutive blocks of columns: a row of the bias, then the weights.

    Args:
        weight: ``[K, O]``, float32.
        bias: ``[O]``, float32.
        lanes: float32 values of a register.

    Returns:
        A flat array, float32, aligned for vectors; the last block is filled up with zeros.
    """
    widths, rows = block_widths(weight.shape[1], lanes), 1 + len(weight)
    packed = aligned_bytes(rows * sum(widths) * 4).view(np.float32)
    start = first = 0
    for width in widths:
        block = packed[first : first + rows * width].reshape(rows, width)
        columns = slice(start, start + width)
        count = len(bias[columns])
        block[0, :count] = bias[columns]
        block[1:, :count] = weight[:, columns]
        block[:, count:] = 0
        start += width
        first += rows * width
    return packed


def pack_channels(weight: Array, bias: Array, lanes: int) -> Array:
    """Return the weights as consecutive blocks of *lanes* channels: the bias, then the taps.

    The last block begins with channels of the block before it, so that it fills a register, too. If
    there are fewer channels than *lanes*, zeros are appended.

    Args:
        weight: ``[taps, C]``, float32.
        bias: ``[C]``, float32.
        lanes: float32 values of a register.

    Returns:
        ``[blocks, 1 + taps, lanes]``, float32.
    """
    rows = np.concatenate([bias[None], weight])
    channels = rows.shape[1]
    last = max(channels - lanes, 0)
    rows = np.pad(rows, ((0, 0), (0, last + lanes - channels)))
    starts = (min(start, last) for start in range(0, channels, lanes))
    return np.stack([rows[:, start : start + lanes] for start in starts])


def bias_values(bias: Tensor | None, outputs: int) -> Array:
    """Return *bias* as float32, one value for each of *outputs*; zeros if it is None."""
    return np.zeros(outputs, np.float32) if bias is None else bias.data.reshape(-1)


def real_values(weight: Tensor) -> Array:
    """Return *weight* as float32; integers are multiplied by the scales of their last axis."""
    values: Array = weight.data
    if weight.quantization is None or weight.type.name == "FLOAT32":
        return values
    return values * weight.quantization.scales.astype(np.float32)


def packed_matrix(
    builder: ProgramBuilder, weight: Tensor, bias: Tensor | None, outputs: int
) -> Memory:
    """Return the memory of float32 weights, packed in the blocks that matrix micro-kernels read.

    Args:
        builder: builder of the program, which stores the packed weights.
        weight: the weights, ``[O, ...]``.
        bias: tensor that is packed with the weights, or None.
        outputs: number of outputs, ``O``.
    """
    lanes = builder.level.vector_bytes // 4
    key = ("matrix_f32", constant_key(weight), constant_key(bias), outputs, lanes)
    return builder.packed(
        key,
        lambda: pack_matrix(weight.data.reshape(outputs, -1).T, bias_values(bias, outputs), lanes),
        is_own=True,
    )


def packed_channels(
    builder: ProgramBuilder, weight: Tensor, bias: Tensor | None, outputs: int, pixels: int = 1
) -> Memory:
    """Return the memory of depthwise weights, packed in the blocks that micro-kernels read.

    Args:
        builder: builder of the program, which stores the packed weights.
        weight: the weights, ``[1, KH, KW, O]``, float32 or integers with scales.
        bias: tensor that is packed with the weights, or None.
        outputs: number of outputs of a pixel, ``O``.
        pixels: number of adjacent pixels that are computed as one.
    """
    lanes = builder.level.vector_bytes // 4
    key = ("channels_f32", constant_key(weight), constant_key(bias), lanes, pixels)
    return builder.packed(
        key,
        lambda: pack_channels(
            np.tile(real_values(weight).reshape(-1, outputs), pixels),
            np.tile(bias_values(bias, outputs), pixels),
            lanes,
        ),
    )


def emit_packed(
    builder: ProgramBuilder,
    source: Memory,
    sizes: tuple[int, int, int],
    *,
    is_transposed: bool,
    bias: Memory | int = 0,
) -> Memory:
    """Add a kernel call that packs computed matrices; return the memory of the packed blocks.

    Args:
        builder: builder of the program, to which the kernel call is added.
        source: memory of the matrices.
        sizes: number of matrices, their rows and columns.
        is_transposed: whether the matrices are stored column by column.
        bias: one value for each column, or 0 for zeros.
    """
    images, rows, columns = sizes
    down, across = (4, 4 * rows) if is_transposed else (4 * columns, 4)
    lanes = builder.level.vector_bytes // 4
    widths = block_widths(columns, lanes)
    size = packed_bytes(rows, columns, lanes)
    target = builder.scratch(size * images)
    emit_pack(
        builder,
        source=source,
        target=target,
        images=images,
        source_image=4 * rows * columns,
        target_image=size,
        rows=rows,
        columns=columns,
        down=down,
        across=across,
        width=widths[0] if len(widths) == 1 else 2 * lanes,
        last_width=widths[-1],
        has_bias=1,
        bias=bias,
    )
    return target


def packed_bytes(rows: int, columns: int, lanes: int) -> int:
    """Return the number of bytes of a packed float32 matrix with its bias.

    Args:
        rows: number of rows of the matrix.
        columns: number of columns of the matrix, without padding.
        lanes: number of float32 values in a vector register.
    """
    return 4 * (rows + 1) * sum(block_widths(columns, lanes))


def emit_pack(builder: ProgramBuilder, **words: Any) -> None:
    """Add to the program a call of the kernel ``PACK``, which packs matrices in blocks of columns.

    Args:
        builder: builder of the program, to which the kernel call is added.
        words: all operands of the kernel except the number of tiles, by name.
    """
    blocks = words["images"] * -(-words["columns"] // words["width"])
    values = words["images"] * words["rows"] * words["columns"]
    builder.emit(PACK, builder.tiles(values / VALUES_A_NANOSECOND, blocks), **words)
