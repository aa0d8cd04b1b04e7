"""Fuses expand, depthwise and project layers, whose rows in between stay in the cache.

*Expand* is a 1 x 1 convolution to more channels, and *project* a 1 x 1 convolution to fewer
channels. The expanded image between them is the largest image of the network. A ring buffer holds
only the few expanded rows that the depthwise windows of a strip read. A depthwise convolution with
the 1 x 1 convolution after it is fused in the same way, without expanding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from delegraph_numba_cpu.instructions.conv_f32 import HEIGHTS
from delegraph_numba_cpu.instructions.depthwise_conv_f32 import tile_pixels
from delegraph_numba_cpu.instructions.inverted_residual_f32 import INVERTED_RESIDUAL
from delegraph_numba_cpu.lowering.convolution.conv_f32 import UNLIMITED
from delegraph_numba_cpu.lowering.convolution.conv_f32_packing import packed_channels, packed_matrix
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import (
    PRODUCTS_A_NANOSECOND,
    Split,
    Windows,
    window_words,
)
from delegraph_numba_cpu.lowering.convolution.conv_fusion import (
    Layer,
    Residual,
    layer_at,
    output_words,
    residual_after,
)
from delegraph_numba_cpu.lowering.convolution.depthwise_conv import SLOWER
from delegraph_numba_cpu.lowering.fusion import Fusion, Partition
from delegraph_numba_cpu.program.builder import ProgramBuilder, WorkerScratch, aligned

CHUNK_PIXELS = 56
"""Approximate number of output pixels that are computed together."""

HALO = ((1 << 20, 1.0), (512 << 10, 0.45), (0, 0.3))
"""Largest share of expanded rows that tiles may compute twice, by the bytes of the expanded image.

Without fusion, layers write and read whole images. The larger an image is, the more time this
takes, so more rows may be computed twice.
"""

CROWDED = 256
"""Number of bytes that must not divide the distance of pixels, as pixels would share few cache
sets."""

SMALL_HALO = 0.15
"""Largest share of rows computed twice for which there may be more tiles than workers."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A depthwise convolution, the 1 x 1 convolution after it, and maybe a convolution before it.

    Each layer is read only by the next.

    Attributes:
        expand: layer that computes the rows of the ring buffer; None if the input's rows are
            copied.
        depthwise: layer that reads the ring buffer.
        project: layer with the 1 x 1 convolution at the end.
        residual: the ADD after *project*.
    """

    expand: Layer | None
    depthwise: Layer
    project: Layer
    residual: Residual

    @property
    def members(self) -> tuple[int, ...]:
        """Positions of the chain's nodes among those of the partition."""
        first = () if self.expand is None else self.expand.members
        return (*first, *self.depthwise.members, *self.project.members, *self.residual.members)

    @property
    def products(self) -> int:
        """Work of all layers, as the number of multiply-adds of a matrix product of equal time."""
        weights, inner = self.project.call.input(1), self.depthwise.source
        outputs = math.prod(self.depthwise.call.output().shape[:3])
        taps = math.prod(self.depthwise.call.input(1).shape)
        found = outputs * (math.prod(weights.shape) + SLOWER * taps)
        if self.expand is not None:
            found += math.prod(inner.shape[:3]) * math.prod(self.expand.call.input(1).shape)
        return found


def fuse_inverted_residual(
    partition: Partition, position: int, builder: ProgramBuilder
) -> Fusion | None:
    """Return the fusion of a depthwise convolution with its neighbours.

    The neighbours are a convolution before it, if any, a 1 x 1 convolution after it, and an ADD, if
    any. The first layer is at *position* of *partition*. The result is None if other nodes are
    there, or if fusing them is slower.
    """
    chain = _chain(partition, position)
    if chain is None or _tiles(chain, builder) == 0:
        return None
    return Fusion(chain.members, _lower(chain))


def _chain(partition: Partition, position: int) -> Chain | None:
    expand = None
    depthwise = layer_at(partition, position)
    if depthwise is not None and depthwise.call.name == "CONV_2D":
        expand, depthwise = depthwise, _next(partition, depthwise)
    if depthwise is None or not _keeps_channels(depthwise):
        return None
    project = _next(partition, depthwise)
    if project is None or project.call.name != "CONV_2D" or not project.is_pointwise:
        return None
    return Chain(expand, depthwise, project, residual_after(partition, project))


def _next(partition: Partition, layer: Layer) -> Layer | None:
    """Return the layer of *partition* that alone reads the output of *layer*.

    None if there is none.
    """
    position = partition.only_reader(layer.output)
    following = None if position is None else layer_at(partition, position)
    if following is None or following.source.index != layer.output:
        return None
    return following


def _keeps_channels(layer: Layer) -> bool:
    is_depthwise = layer.call.name == "DEPTHWISE_CONV_2D"
    return is_depthwise and layer.source.shape[3] == layer.call.output().shape[3]


def _tiles(chain: Chain, builder: ProgramBuilder) -> int:
    """Return the number of strips into which the output is divided; 0 if fusing is slower."""
    layer = chain.depthwise
    down = layer.windows[0]
    rows = layer.source.shape[0] * down.output
    if rows * layer.windows[1].output == 0:
        return 0
    workers = builder.workers
    most = builder.tiles(chain.products / PRODUCTS_A_NANOSECOND, rows)
    if most == 1:
        return 1
    halo = max(down.span - down.stride, 0) / (down.stride * rows)
    for tiles in (4 * workers, 2 * workers):
        if tiles <= most and tiles * halo <= SMALL_HALO:
            return tiles
    allowed = next(share for size, share in HALO if layer.source.bytes >= size)
    tiles = min(workers, most)
    return tiles if tiles * halo <= allowed else 0


def _lower(chain: Chain) -> Callable[[ProgramBuilder], None]:
    def lower(builder: ProgramBuilder) -> None:
        layer = chain.depthwise
        outputs = layer.call.output().shape[3]
        in_pairs = takes_pairs(layer, builder.level.vector_bytes)
        pixel = 4 * outputs if in_pairs else _pixel(outputs, is_copied=chain.expand is None)
        over = Windows(*layer.windows, layer.source.shape[0], pixel, outputs)
        end = end_pixels(chain, over, builder.level.vector_bytes)
        chunk = max(1, min(CHUNK_PIXELS // over.across.output, over.down.output))
        parts = Split(chunk, _tiles(chain, builder), 1)
        ring_rows = (chunk - 1) * over.down.stride + over.down.span
        words = _depthwise_words(layer, over, end, parts, ring_rows, builder)
        if in_pairs:
            words |= _pair_words(layer, over, builder)
        words |= _prefixed("expand", _expand_words(chain, over, end, ring_rows, builder))
        words |= _prefixed("project", _project_words(chain, over, parts, builder))
        builder.emit(INVERTED_RESIDUAL, parts.tiles, **words)

    return lower


def _pixel(channels: int, is_copied: bool) -> int:
    """Return the distance in bytes between pixels of the ring buffer.

    A register of channels is read from many pixels in turn. If the distance were a multiple of a
    large power of two, pixels would compete for the same few sets of the cache. It is therefore an
    odd number of cache lines.

    If *is_copied*, the rows are copies of the input's rows. They have no gaps if possible, because
    copying then takes less time.
    """
    if is_copied and 4 * channels % CROWDED:
        return 4 * channels
    return (4 * channels + 63) // 64 * 64 | 64


def takes_pairs(layer: Layer, vector_bytes: int) -> bool:
    """Whether two adjacent pixels of a depthwise convolution are computed as one pixel.

    The channels of two pixels then fill a register, while those of one pixel do not.

    Args:
        layer: the depthwise convolution.
        vector_bytes: number of bytes of a register.
    """
    across, channels = layer.windows[1], 4 * layer.call.output().shape[3]
    is_even = across.stride == 1 and across.output % 2 == 0
    return is_even and channels < vector_bytes <= 2 * channels


def _pair_words(layer: Layer, over: Windows, builder: ProgramBuilder) -> dict[str, Any]:
    """Return the operands, by name, that differ when two adjacent pixels are computed as one."""
    weight, bias = layer.call.input(1), layer.call.optional_input(2)
    return {
        "weight": packed_channels(builder, weight, bias, over.columns, pixels=2),
        "out_w": over.across.output // 2,
        "stride_column": 2 * over.pixel,
        "pitch": 2 * over.pixel,
        "columns": 2 * over.columns,
    }


def end_pixels(chain: Chain, over: Windows, vector_bytes: int) -> int:
    """Return the number of pixels at each end of a row that are copied to the ring; 0 for all.

    Only windows over the edge of the image need a copy with zeros beside it. All register tiles of
    a row but the first and the last read the input itself. This is faster if fewer than half of the
    pixels are copied. Whole rows are needed if a convolution computes them.

    Args:
        chain: the fused layers.
        over: geometry of the depthwise convolution's windows.
        vector_bytes: number of bytes of a register.
    """
    across = over.across
    height = tile_pixels(across.output, HEIGHTS[vector_bytes])
    is_shared = across.kernel in (3, 5) and across.dilation == 1 and across.stride <= 2
    is_dense = over.pixel == 4 * over.columns >= vector_bytes
    if chain.expand is not None or not is_shared or not is_dense:
        return 0
    end = (height - 1) * across.stride + across.span
    # Number of pixels of all tiles before the last.
    before_last = (across.output - 1) // height * height
    stop = (before_last - 1) * across.stride + across.span - across.before
    is_inside = across.before <= height * across.stride and stop <= across.input
    is_all = (across.output - 1) * across.stride + across.span == across.padded
    copied = 2 * end if across.before else end
    return end if 2 * copied < across.input and is_all and is_inside else 0


def _prefixed(prefix: str, words: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}_{name}": value for name, value in words.items()}


def _depthwise_words(
    layer: Layer,
    over: Windows,
    end: int,
    parts: Split,
    ring_rows: int,
    builder: ProgramBuilder,
) -> dict[str, Any]:
    """Return the operands, by name, of the depthwise convolution, which reads the ring buffer.

    That has *ring_rows* rows, each whole, or *end* pixels at both ends if *end* is not 0.
    """
    call, weight = layer.call, layer.call.input(1)
    _, kernel_h, kernel_w, outputs = weight.shape
    taps = (kernel_h, kernel_w, over.across.dilation * over.pixel)
    words = window_words(over, parts, taps, builder)
    rows_at = aligned(8 * parts.chunk * kernel_h * kernel_w * (2 if end else 1))
    table = over.across.output + HEIGHTS[builder.level.vector_bytes]
    result_at = rows_at + aligned(8 * table)
    ring_at = result_at + aligned(parts.chunk * over.across.output * over.pixel)
    low, high = layer.activations.limits
    row, last_at = over.row, 0
    if end:
        last_at = (over.across.padded - over.across.input) * over.pixel
        words["copied"] = end * over.pixel
        if over.across.before:
            last_at, words["copied"] = last_at + words["copied"], 2 * words["copied"]
        row = last_at + end * over.pixel
    return words | {
        "x": 0,
        "y": 0,
        "weight": packed_channels(builder, weight, call.optional_input(2), outputs),
        "residual": 0,
        "scratch": WorkerScratch(ring_at + aligned(ring_rows * row + over.row)),
        "rows_at": rows_at,
        "padded_at": 0,
        "result_at": result_at,
        "ring_at": ring_at,
        "ring_rows": ring_rows,
        "row": row,
        "zeros": over.row,
        "has_ends": int(end > 0),
        "last_at": last_at,
        "pitch": over.pixel,
        "tap_row": over.down.dilation,
        "low": low,
        "high": high,
        "sum_low": UNLIMITED[0],
        "sum_high": UNLIMITED[1],
    }


def _expand_words(
    chain: Chain, over: Windows, end: int, ring_rows: int, builder: ProgramBuilder
) -> dict[str, Any]:
    """Return the operands, by name, of the convolution, or of the copy, that fills the ring buffer.

    *over*, *end* and *ring_rows* are as for :func:`_depthwise_words`.
    """
    source = chain.depthwise.source if chain.expand is None else chain.expand.source
    if chain.expand is None:
        words = window_words(over, Split(1, 1, 1), (1, 1, 0), builder)
        _, _, width, channels = source.shape
        ends: dict[str, Any] = {"weight": 0, "low": 0.0, "high": 0.0}
        pixel = 4 * channels
        row, is_dense = width * pixel, over.pixel == pixel
        copies, size, apart, start = (1, row, row, 0) if is_dense else (width, pixel, pixel, 0)
        if end:
            copies, size, apart = 2, end * pixel, row - end * pixel
        if end and not over.across.before:
            copies, start = 1, apart
        ends |= {"in_row": row, "tap_bytes": size, "out_w": copies, "stride_column": apart}
        ends |= {"left": start, "pitch": size if end else over.pixel}
        memory: dict[str, Any] = {"scratch": 0, "scratch_bytes": 0}
    else:
        weight, bias = chain.expand.call.input(1), chain.expand.call.optional_input(2)
        outputs, kernel_h, kernel_w, channels = weight.shape
        inner = Windows(*chain.expand.windows, source.shape[0], 4 * channels, outputs)
        dilation = inner.across.dilation
        taps = (kernel_h, 1, 0) if dilation == 1 else (kernel_h, kernel_w, dilation * inner.pixel)
        words = window_words(inner, Split(ring_rows, 1, 1), taps, builder, tables=ring_rows)
        (low, high), slopes = chain.expand.activations.limits, chain.expand.activations.slopes
        ends = {
            "weight": packed_matrix(builder, weight, bias, outputs),
            "tap_bytes": (kernel_w if dilation == 1 else 1) * inner.pixel,
            "low": low,
            "high": high,
            "slopes": 0 if slopes is None else builder.tensor(slopes.index),
            "pitch": over.pixel,
        }
        memory = {}
    fixed = {
        "y": 0,
        "weight_image": 0,
        "residual": 0,
        "sum_low": 0.0,
        "sum_high": 0.0,
        "tiles": 1,
    }
    return words | ends | memory | fixed | {"x": builder.tensor(source.index)}


def _project_words(
    chain: Chain, over: Windows, parts: Split, builder: ProgramBuilder
) -> dict[str, Any]:
    call = chain.project.call
    weight, bias = call.input(1), call.optional_input(2)
    outputs = weight.shape[0]
    inner = Windows(*chain.project.windows, over.images, over.pixel, outputs)
    words = window_words(inner, parts, (1, 1, 0), builder)
    words |= output_words(builder, chain.project, chain.residual)
    return words | {
        "x": 0,
        "weight": packed_matrix(builder, weight, bias, outputs),
        "tap_bytes": 4 * over.columns,
        "weight_image": 0,
        "tiles": 1,
    }
