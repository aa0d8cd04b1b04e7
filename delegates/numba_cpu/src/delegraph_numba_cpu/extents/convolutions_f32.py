"""What float32 convolutions and matrix products touch; see ``kernels/windows_f32.py``."""

from __future__ import annotations

from delegraph_numba_cpu.blocks.conv_f32 import CONV, HEIGHTS, PACK
from delegraph_numba_cpu.blocks.depthwise_conv_f32 import DEPTHWISE, REPEAT
from delegraph_numba_cpu.blocks.inverted_residual_f32 import INVERTED_RESIDUAL
from delegraph_numba_cpu.blocks.vector_f32 import DOTS, SUMS
from delegraph_numba_cpu.extents.touched import Touched, rule


@rule(CONV)
def conv(row: Touched) -> None:
    _images(row, row["tap_bytes"])
    matrix = _matrix_bytes(row)
    row.read("weight", max(row["images"] - 1, 0) * row["weight_image"] + matrix)


@rule(DEPTHWISE)
def depthwise(row: Touched) -> None:
    _images(row, 4 * row["columns"])
    row.read("weight", _channel_bytes(row))


@rule(DOTS, SUMS)
def rows_times_matrices(row: Touched) -> None:
    images, depth, columns = row["images"], row["depth"], row["columns"]
    row.require(min(images, depth, columns) > 0, "matrices have elements")
    for name, size in (("x", 4 * depth), ("weights", 4 * depth * columns)):
        row.require(row[f"{name}_image"] in (0, size), f"{name}: one for all, or one for each")
        row.read(name, (images - 1) * row[f"{name}_image"] + size)
    row.write("y", 4 * images * columns)


def _images(row: Touched, tap_bytes: int) -> None:
    """Say what is touched of input, output and scratch memory."""
    chunk = min(row["chunk"], row["out_h"])
    row.read("x", _input_bytes(row, "", tap_bytes))
    _outputs(row, "", chunk)
    row.scratch(_window_scratch(row, "", chunk, 1))


def _input_bytes(row: Touched, prefix: str, tap_bytes: int) -> int:
    """Return how much of the input windows reach."""

    def word(name: str) -> int:
        return row[prefix + name]

    image = (word("images") - 1) * word("in_image")
    if word("padded_at"):
        last = (word("out_h") - 1) * word("stride_h") - word("top")
        rows = min(word("in_h"), last + word("span"))
        return image + (rows - 1) * word("in_row") + word("copied") if rows > 0 else 0
    row.require(word("top") == 0, "rows above an image are padded")
    down = (word("out_h") - 1) * max(word("stride_h") * word("in_row"), word("stride_row"))
    taps = (word("tap_rows") - 1) * word("tap_row") + (word("tap_columns") - 1) * word("tap_column")
    return image + down + (word("out_w") - 1) * word("stride_column") + taps + tap_bytes


def _outputs(row: Touched, prefix: str, chunk: int) -> None:
    """Say what is touched of the output, and of what is added: chunks of rows without gaps."""
    image = (row[f"{prefix}images"] - 1) * row[f"{prefix}out_image"]
    width, height, pitch = (row[prefix + name] for name in ("out_w", "out_h", "pitch"))
    rows = max(
        (height - count) * row[f"{prefix}out_row"] + (count * width - 1) * pitch
        for count in (1, chunk)
    )
    size = image + rows + 4 * row[f"{prefix}columns"]
    row.write(f"{prefix}y", size)
    if row.has(f"{prefix}residual"):
        row.read(f"{prefix}residual", size)


def _window_scratch(row: Touched, prefix: str, chunk: int, tables: int) -> int:
    """Return what windows take of a worker's scratch memory: taps, pixels, and padded rows.

    Args:
        row: the row.
        prefix: of the words.
        chunk: output rows that are worked on together.
        tables: how many tables of pixels there are, with copies of the last pixel at their end.
    """

    def word(name: str) -> int:
        return row[prefix + name]

    rows_at, padded_at = word("rows_at"), word("padded_at")
    row.within("the table of taps", 8 * word("tap_rows") * word("tap_columns"), rows_at)
    pixels = rows_at + 8 * (chunk * word("out_w") + tables * HEIGHTS[row.vector_bytes])
    if not padded_at:
        return pixels
    row.within("the table of pixels", pixels, padded_at)
    row.within("a padded row", word("left") + word("copied"), word("row"))
    return padded_at + ((chunk - 1) * word("stride_h") + word("span")) * word("row")


def _matrix_bytes(row: Touched, prefix: str = "") -> int:
    """Return the size of packed weights, see ``operators/packing_f32.py``."""
    taps = row[f"{prefix}tap_rows"] * row[f"{prefix}tap_columns"] * row[f"{prefix}tap_bytes"]
    return packed_columns(row[f"{prefix}columns"], row.vector_bytes // 4) * (4 + taps)


def packed_columns(columns: int, lanes: int) -> int:
    """Return how many columns blocks have together that are made for so many.

    >>> packed_columns(40, 16), packed_columns(50, 16), packed_columns(64, 16)
    (48, 56, 64)
    """
    whole, rest = divmod(columns, 2 * lanes)
    widths = [width for width in (0, lanes, lanes + lanes // 2, 2 * lanes) if rest <= width]
    return whole * 2 * lanes + widths[0]


def _channel_bytes(row: Touched) -> int:
    """Return the size of packed depthwise weights."""
    lanes = row.vector_bytes // 4
    return -(-row["columns"] // lanes) * 4 * lanes * (1 + row["tap_rows"] * row["tap_columns"])


@rule(REPEAT)
def repeat(row: Touched) -> None:
    row.read("x", 4 * row["values"])
    row.write("y", 4 * row["values"] * row["times"])


@rule(PACK)
def pack(row: Touched) -> None:
    rows, columns, images = row["rows"], row["columns"], row["images"]
    reach = (rows - 1) * row["down"] + (columns - 1) * row["across"] + 4
    row.read("source", (images - 1) * row["source_image"] + reach if rows else 0)
    if row.has("bias"):
        row.read("bias", 4 * columns)
    before = (-(-columns // row["width"]) - 1) * row["width"]
    row.require(columns - before <= row["last_width"], "the last block has room")
    packed = 4 * (before + row["last_width"]) * (rows + row["has_bias"])
    row.write("target", (images - 1) * row["target_image"] + packed)


@rule(INVERTED_RESIDUAL)
def inverted_residual(row: Touched) -> None:
    chunk, width = min(row["chunk"], row["out_h"]), row["out_w"]
    _ring(row, chunk)
    row.read("weight", _channel_bytes(row))
    pixels = 8 * (width + HEIGHTS[row.vector_bytes])
    taps = 8 * chunk * row["tap_rows"] * row["tap_columns"]
    row.within("the tables of taps", taps, row["rows_at"])
    row.within("the table of pixels", row["rows_at"] + pixels, row["result_at"])
    row.within("a pixel between", 4 * row["columns"], row["pitch"])
    row.scratch(row["result_at"] + chunk * width * row["pitch"])
    _projection(row, chunk)
    _expansion(row)


def _ring(row: Touched, chunk: int) -> None:
    """Say what is touched of the ring: padded rows of pixels, and a row of zeros."""
    rows, size = row["ring_rows"], row["row"]
    row.require(rows >= (chunk - 1) * row["stride_h"] + row["span"], "the ring has rows enough")
    row.within("a padded row", row["left"] + row["copied"], size)
    made = (row["expand_out_w"] - 1) * row["expand_pitch"] + _pixel_bytes(row)
    row.within("a row of the ring", row["left"] + made, size)
    reach = (row["out_w"] - 1) * row["stride_column"] + 4 * row["columns"]
    row.within("a window", reach + (row["tap_columns"] - 1) * row["tap_column"], size)
    row.write("ring", row.workers * (rows + 1) * size)


def _pixel_bytes(row: Touched) -> int:
    """Return the bytes of a pixel that is expanded, or copied."""
    return 4 * row["expand_columns"] if row.has("expand_weight") else row["expand_tap_bytes"]


def _projection(row: Touched, chunk: int) -> None:
    for name in ("images", "out_h", "out_w"):
        row.require(row[f"project_{name}"] == row[name], f"both parts have the same {name}")
    row.require(not row["project_padded_at"], "single pixels need no padding")
    reach = (row["out_w"] - 1) * row["project_stride_column"] + row["project_tap_bytes"]
    down = (chunk - 1) * row["project_stride_row"]
    row.within("what is projected", reach + down, chunk * row["out_w"] * row["pitch"])
    row.read("project_weight", _matrix_bytes(row, "project_"))
    row.scratch(_window_scratch(row, "project_", chunk, 1), "project_")
    _outputs(row, "project_", chunk)


def _expansion(row: Touched) -> None:
    if not row.has("expand_weight"):
        rows = row["images"] * row["in_h"]
        reach = row["expand_out_w"] * row["expand_tap_bytes"]
        row.read("expand_x", (rows - 1) * row["expand_in_row"] + reach)
        return
    for name, made in (("images", "expand_images"), ("in_h", "expand_out_h")):
        row.require(row[name] == row[made], f"both parts have the same {name}")
    row.read("expand_x", _input_bytes(row, "expand_", row["expand_tap_bytes"]))
    row.read("expand_weight", _matrix_bytes(row, "expand_"))
    rows = row["ring_rows"]
    row.scratch(_window_scratch(row, "expand_", rows, rows), "expand_")
