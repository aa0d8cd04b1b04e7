"""Translates windows into the words of ``instructions.conv_f32``: padding, chunks and tiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from delegraph.arithmetic import Window
from delegraph_numba_cpu.instructions.conv_f32 import HEIGHTS
from delegraph_numba_cpu.lowering.convolution.conv_windows import ONE
from delegraph_numba_cpu.program.builder import ProgramBuilder, WorkerScratch, aligned

CHUNK_BYTES = 96 << 10
"""Approximate number of input bytes that a chunk reads.

They share the second cache level with weights.
"""

CHUNK_TILES = 4
"""Least number of register tiles of a chunk; it may then read more than ``CHUNK_BYTES``.

Each chunk reads all weights, which may be larger than any cache.
"""

CHUNK_PIXELS = 224
"""Largest number of pixels of a chunk; a single row may have more."""

PRODUCTS_A_NANOSECOND = 50
"""Approximate number of multiply-adds of a matrix product that are computed in a nanosecond."""

READING = 12
"""Number of multiply-adds that take as long as reading one weight from memory."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Geometry of windows over images whose pixels are contiguous.

    Attributes:
        down: windows along the height.
        across: windows along the width.
        images: number of images.
        pixel: size of an input pixel in bytes.
        columns: number of values of an output pixel.
    """

    down: Window
    across: Window
    images: int
    pixel: int
    columns: int

    @classmethod
    def of_rows(cls, rows: int, depth: int, columns: int, images: int = 1) -> Windows:
        """Return the geometry of *images* matrices, whose rows of *depth* floats are pixels."""
        return cls(Window(rows, 1, 1, 1, rows, 0), ONE, images, 4 * depth, columns)

    @property
    def is_pointwise(self) -> bool:
        """Whether each output pixel depends only on the input pixel at the same position."""
        return self.down.is_pointwise and self.across.is_pointwise

    @property
    def pixels(self) -> int:
        """Number of output pixels of all images."""
        return self.images * self.down.output * self.across.output

    @property
    def pads(self) -> bool:
        """Whether some windows reach over an edge of the image."""
        return any(window.before or window.after for window in (self.down, self.across))

    @property
    def row(self) -> int:
        """Number of bytes of an input row with its padding, as taps read it."""
        return self.across.padded * self.pixel

    def flat(self) -> Windows:
        """Return a geometry in which each pixel is a separate row, if windows are single pixels.

        The work can then be split at any pixel.
        """
        if not self.is_pointwise:
            return self
        pixels = self.images * self.down.input * self.across.input
        return Windows.of_rows(pixels, self.pixel // 4, self.columns)


@dataclass(frozen=True, slots=True)
class Split:
    """Division of the work into chunks and tiles.

    Attributes:
        chunk: number of output rows that are computed together.
        row_tiles: number of parts into which the output's rows are divided.
        column_tiles: number of parts into which the output's columns are divided.
    """

    chunk: int
    row_tiles: int
    column_tiles: int

    @property
    def tiles(self) -> int:
        """Number of tiles: row tiles times column tiles."""
        return self.row_tiles * self.column_tiles


def split(
    windows: Windows, builder: ProgramBuilder, work: int, blocks: int, is_dense: bool = True
) -> Split:
    """Return the division of a convolution's work into parts for threads.

    Args:
        windows: geometry of the windows over the input.
        builder: builder of the program, with the number of workers.
        work: cost of the whole, in multiply-adds of a matrix product.
        blocks: largest number of parts of the columns.
        is_dense: whether output rows follow one another in memory; otherwise each row is computed
            separately.
    """
    height = HEIGHTS[builder.level.vector_bytes]
    rows = windows.images * windows.down.output
    width = windows.across.output
    fresh = windows.down.stride * windows.row  # number of input bytes of one more output row
    least = CHUNK_TILES * height
    chunk = max(1, min(max(CHUNK_BYTES // fresh, least // width), CHUNK_PIXELS // width))
    wanted = builder.tiles(work / PRODUCTS_A_NANOSECOND, rows * blocks)
    unit = height // math.gcd(height, width)  # number of rows that fill whole register tiles
    # Parts for all workers pay from one and a half register tiles on, which lower tiles share.
    of_workers = min(builder.workers, rows, 2 * rows * width // (3 * height))
    row_tiles = builder.row_tiles(wanted, max(rows // min(chunk, 4 * unit), of_workers))
    share = min(windows.down.output, -(-rows // row_tiles))
    chunk = -(-share // -(-share // chunk)) if is_dense else 1  # of equal size
    if windows.pads and row_tiles >= builder.workers:
        blocks = 1  # each part of the columns would pad the rows again
    return Split(chunk, row_tiles, min(blocks, wanted // row_tiles))


def window_words(
    windows: Windows,
    split: Split,
    taps: tuple[int, int, int],
    builder: ProgramBuilder,
    tables: int = 1,
) -> dict[str, Any]:
    """Return the kernel's operands, by name, for the places of input pixels and taps in memory.

    Args:
        windows: geometry of the windows over the input.
        split: division of the work into parts for threads.
        taps: number of rows and of columns of taps, and the bytes from one column to the next.
        builder: builder of the program, which provides the scratch memory.
        tables: number of tables for the pixels of a chunk; copies of its last entry end each table.
    """
    down, across, pixel, row = windows.down, windows.across, windows.pixel, windows.row
    in_row, pitch = across.input * pixel, 4 * windows.columns
    height = HEIGHTS[builder.level.vector_bytes]
    tap_rows, tap_columns, tap_column = taps
    rows_at = aligned(8 * tap_rows * tap_columns)
    padded_at = rows_at + aligned(8 * (split.chunk * across.output + tables * height))
    padded = ((split.chunk - 1) * down.stride + down.span) * row if windows.pads else 0
    left = across.before * pixel
    return {
        "scratch": WorkerScratch(aligned(padded_at + padded)),
        "rows_at": rows_at,
        "padded_at": padded_at if windows.pads else 0,
        "images": windows.images,
        "in_image": down.input * in_row,
        "in_row": in_row,
        "in_h": down.input,
        "out_image": down.output * across.output * pitch,
        "out_row": across.output * pitch,
        "out_h": down.output,
        "out_w": across.output,
        "row": row,
        "stride_row": down.stride * row,
        "stride_column": across.stride * pixel,
        "tap_rows": tap_rows,
        "tap_columns": tap_columns,
        "tap_row": down.dilation * row,
        "tap_column": tap_column,
        "top": down.before,
        "left": left,
        "copied": max(0, min(in_row, row - left)),
        "stride_h": down.stride,
        "span": down.span,
        "chunk": split.chunk,
        "columns": windows.columns,
        "pitch": pitch,
        "residual_pitch": pitch,
        "residual_columns": windows.columns,
        "slopes": 0,
        "column_tiles": split.column_tiles,
    }
