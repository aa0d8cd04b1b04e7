"""Bytes that float32 convolutions and matrix products read and write.

See ``kernels/conv_f32_windows.py``.
"""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions.conv_f32 import CONV, HEIGHTS, PACK


@rule(CONV)
def conv(row: Touched) -> None:
    touch_images(row, row["tap_bytes"])
    matrix = matrix_bytes(row)
    row.read("weight", max(row["images"] - 1, 0) * row["weight_image"] + matrix)
    touch_slopes(row, "")


def touch_images(row: Touched, tap_bytes: int) -> None:
    """Declare the input, output and scratch bytes that a call accesses.

    Args:
        row: kernel call of a convolution that is being checked.
        tap_bytes: number of input bytes that the kernel reads for one position of a window.
    """
    chunk = min(row["chunk"], row["out_h"])
    row.loops(row["images"], row["out_h"], row["out_w"], row["columns"])
    row.read("x", input_bytes(row, "", tap_bytes))
    touch_outputs(row, "", chunk)
    row.scratch(window_scratch(row, "", chunk, 1, tap_bytes))


def input_bytes(row: Touched, prefix: str, tap_bytes: int) -> int:
    """Return the number of bytes from the first to the last input byte that a convolution reads.

    Args:
        row: kernel call of the convolution that is being checked.
        prefix: text with which the names of the convolution's words begin, such as ``expand_``.
        tap_bytes: number of input bytes that the kernel reads for one position of a window.
    """

    def word(name: str) -> int:
        return row[prefix + name]

    image = (word("images") - 1) * word("in_image")
    if word("padded_at"):
        last = (word("out_h") - 1) * word("stride_h") - word("top")
        rows = min(word("in_h"), last + word("span"))
        return image + (rows - 1) * word("in_row") + word("copied") if rows > 0 else 0
    row.require(word("top") == 0, "rows above an image are padded")
    down = (word("out_h") - 1) * max(word("stride_h") * word("in_row"), word("stride_row"))
    return image + down + _row_reach(row, prefix, tap_bytes)


def _row_reach(row: Touched, prefix: str, tap_bytes: int) -> int:
    """Return the number of bytes from the first to the last input byte that an output row reads."""

    def word(name: str) -> int:
        return row[prefix + name]

    taps = (word("tap_rows") - 1) * word("tap_row") + (word("tap_columns") - 1) * word("tap_column")
    return (word("out_w") - 1) * word("stride_column") + taps + tap_bytes


def touch_outputs(row: Touched, prefix: str, chunk: int) -> None:
    """Declare the bytes of the output and of the tensor added to it, if any.

    The tensor that is added to the output is called the residual. The kernel computes *chunk* rows
    of the output together, and stores them without gaps. *prefix* is as for :func:`input_bytes`.
    """
    image = (row[f"{prefix}images"] - 1) * row[f"{prefix}out_image"]
    width, height, pitch = (row[prefix + name] for name in ("out_w", "out_h", "pitch"))
    rows = max(
        (height - count) * row[f"{prefix}out_row"] + (count * width - 1) * pitch
        for count in (1, chunk)
    )
    size = image + rows + 4 * row[f"{prefix}columns"]
    row.write(f"{prefix}y", size)
    if row.has(f"{prefix}residual"):
        pixels = row[f"{prefix}images"] * height * width
        columns, pitch = row[f"{prefix}residual_columns"], row[f"{prefix}residual_pitch"]
        row.require(columns <= row[f"{prefix}columns"], "a residual has no more columns")
        row.read(f"{prefix}residual", (pixels - 1) * pitch + 4 * columns)


def touch_slopes(row: Touched, prefix: str) -> None:
    """Declare the PRELU slopes that a convolution reads, if it has any.

    *prefix* is as for :func:`input_bytes`.
    """
    if row.has(f"{prefix}slopes"):
        row.read(f"{prefix}slopes", 4 * row[f"{prefix}columns"])


def window_scratch(row: Touched, prefix: str, chunk: int, tables: int, tap_bytes: int) -> int:
    """Return the number of scratch bytes that each thread needs for a convolution's windows.

    The scratch memory holds the offsets of taps, the addresses of pixels, and input rows with their
    padding.

    *chunk* output rows are computed together. There are *tables* tables of pixel addresses, each of
    which ends with copies of its last address. The other arguments are as for :func:`input_bytes`.
    """

    def word(name: str) -> int:
        return row[prefix + name]

    rows_at, padded_at = word("rows_at"), word("padded_at")
    row.within("the table of taps", 8 * word("tap_rows") * word("tap_columns"), rows_at)
    pixels = rows_at + 8 * (chunk * word("out_w") + tables * HEIGHTS[row.vector_bytes])
    if not padded_at:
        return pixels
    row.within("the table of pixels", pixels, padded_at)
    row.require(word("left") >= 0, "a row begins with its zeros")
    row.within("a padded row", word("left") + word("copied"), word("row"))
    rows = (chunk - 1) * word("stride_h") + word("span")
    row.loops(rows, word("row"))
    padded = rows * word("row")
    reach = (chunk - 1) * word("stride_row") + _row_reach(row, prefix, tap_bytes)
    row.within("a window of padded rows", reach, padded)
    return padded_at + padded


def matrix_bytes(row: Touched, prefix: str = "") -> int:
    """Return the number of bytes of a convolution's packed weights, bias included.

    See ``lowering/convolution/conv_f32_packing.py``; *prefix* is as for :func:`input_bytes`.
    """
    taps = row[f"{prefix}tap_rows"] * row[f"{prefix}tap_columns"]
    row.require(taps > 0, "windows have taps")
    size = 4 + taps * row[f"{prefix}tap_bytes"]
    return packed_columns(row[f"{prefix}columns"], row.vector_bytes // 4) * size


def packed_columns(columns: int, lanes: int) -> int:
    """Return the number of columns of a packed weight matrix, columns of padding included.

    Args:
        columns: number of columns that the matrix has before it is packed.
        lanes: number of float32 values in a vector register.

    >>> packed_columns(40, 16), packed_columns(50, 16), packed_columns(64, 16)
    (40, 56, 64)
    """
    return -(-columns // (lanes // 2)) * (lanes // 2)


@rule(PACK)
def pack(row: Touched) -> None:
    rows, columns, images = row["rows"], row["columns"], row["images"]
    row.loops(images, rows, columns)
    reach = (rows - 1) * row["down"] + (columns - 1) * row["across"] + 4
    row.read("source", (images - 1) * row["source_image"] + reach if rows else 0)
    if row.has("bias"):
        row.read("bias", 4 * columns)
    before = (-(-columns // row["width"]) - 1) * row["width"]
    row.require(columns - before <= row["last_width"], "the last block has room")
    packed = 4 * (before + row["last_width"]) * (rows + row["has_bias"])
    row.write("target", (images - 1) * row["target_image"] + packed)
