"""Fuses 8-bit depthwise convolutions with the convolutions before and after them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from delegraph_numba_cpu.instructions import conv_int8 as instructions
from delegraph_numba_cpu.instructions.inverted_residual_int8 import STRIP
from delegraph_numba_cpu.lowering.convolution.conv_int8 import (
    CACHED_BYTES,
    Rows,
    pack_matrix,
    pack_windows,
    tiles_for,
)
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import TYPES, product_of
from delegraph_numba_cpu.lowering.convolution.conv_int8_lines import lines_of, with_gaps
from delegraph_numba_cpu.lowering.convolution.conv_windows import (
    has_groups,
    is_pointwise,
    windows_of,
)
from delegraph_numba_cpu.lowering.convolution.depthwise_conv_int8 import (
    depthwise_bytes,
    pack_taps,
)
from delegraph_numba_cpu.lowering.fusion import Fusion, Partition
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder, WorkerScratch, aligned

LEAST_ROWS = 14
"""Least number of rows of a strip; with fewer, too many rows at its edges are computed twice."""

KEPT_BYTES = 512 * 1024
"""Largest number of bytes of rows between two convolutions, which must stay in the cache."""

MOST_TOGETHER = 16
"""Largest number of rows that are multiplied together."""

HEIGHT, TILE_HEIGHT = 7, 16
"""Rows that a micro-kernel multiplies together: with vector registers, and with matrix registers.

The first number fits micro-kernels of all levels. Matrix registers need each row less often, so
rows may be in a slower cache.
"""

TILE_CACHED_BYTES = 96 * 1024

UNSIGNED = {"INT8": 128, "UINT8": 0}


@dataclass(frozen=True)
class Chain:
    """Consecutive convolutions that are fused.

    Attributes:
        first: convolution before *depthwise*, or None.
        depthwise: a depthwise convolution with one output per channel.
        last: a 1 x 1 convolution.
    """

    first: Call | None
    depthwise: Call
    last: Call


def fuse_strip(partition: Partition, position: int, builder: ProgramBuilder) -> Fusion | None:
    """Return the fusion of a depthwise convolution and the 1 x 1 convolution after it.

    A convolution before both is included if it fits. The first node is at *position* of
    *partition*. The result is None if other nodes are there, or if fusing them saves no time.
    """
    members = _chain_from(partition, position)
    names = [partition.calls[member].name for member in members]
    if names not in (["CONV_2D", *_TAIL], _TAIL):
        return None
    calls = [partition.calls[member] for member in members]
    if any(has_groups(call) for call in calls):
        return None
    chain = Chain(calls[0] if len(calls) == 3 else None, calls[-2], calls[-1])
    if not _pays(chain, builder):
        return None
    return Fusion(tuple(members), lambda builder: lower_strip(chain, builder))


_TAIL = ["DEPTHWISE_CONV_2D", "CONV_2D"]


def _chain_from(partition: Partition, position: int) -> list[int]:
    """Return the positions of the 8-bit convolution at *position* and up to two nodes after it.

    These nodes of *partition* are candidates for a strip.
    """
    calls, members = partition.calls, [position]
    name = calls[position].name
    if name not in _TAIL or calls[position].input(0).type.name not in TYPES:
        return []
    for _ in range(2 if name == "CONV_2D" else 1):
        following = partition.next(members[-1])
        # The intermediate tensor must be the data of the next node, not its weights.
        made = calls[members[-1]].node.outputs[0]
        if following is None or calls[following].node.inputs[0] != made:
            break
        members.append(following)
    return members


def _pays(chain: Chain, builder: ProgramBuilder) -> bool:
    x, y = chain.depthwise.input(0), chain.depthwise.output()
    down, _ = windows_of(chain.depthwise)
    rows = y.shape[0] * y.shape[1]
    is_strip = (
        x.shape[3] == y.shape[3]
        and is_pointwise(windows_of(chain.last))
        and math.prod(chain.last.output().shape) > 0
    )
    kept = down.span * x.shape[2] * x.shape[3]
    return is_strip and rows >= LEAST_ROWS * builder.workers and kept <= KEPT_BYTES


def lower_strip(chain: Chain, builder: ProgramBuilder) -> None:
    """Add to the program one kernel call that computes two or three fused 8-bit convolutions."""
    middle, last = chain.depthwise, chain.last
    x, y = middle.input(0), middle.output()
    shift, channels = UNSIGNED[x.type.name], x.shape[3]
    down, across = windows_of(middle)
    product = product_of(middle)
    before, source, work = _first_words(chain, builder, shift, across.input)
    work = max(work, depthwise_bytes(channels, down, across, builder.level.vector_bytes))
    has_first = chain.first is not None
    rows = y.shape[0] * y.shape[1]
    together = _rows_together(across.output, channels, builder.level.has_tiles)
    pixels = together * across.output
    sums = instructions.ACC_BYTES + instructions.SPLIT_BYTES * -(-channels // 4)
    row = sums + aligned(4 * pixels + 64)
    lines = row + aligned(max(pixels, 16) * channels + 64)
    kept = aligned(down.span * across.input * channels + 64) if has_first else 0
    size = lines + kept + aligned(work)
    builder.emit(
        STRIP,
        _tiles(chain, builder, rows),
        x=builder.tensor(source),
        y=builder.tensor(last.output().index),
        windows=pack_windows(builder, channels, (down, across), product, is_unsigned=has_first),
        taps=pack_taps(builder, middle, product, down, across, shift),
        matrix=pack_matrix(builder, last, product_of(last)),
        rows=rows,
        kept=down.span,
        sums=sums,
        row=row,
        together=together,
        lines=lines,
        work=lines + kept,
        scratch=WorkerScratch(size),
        **before,
    )


def _first_words(
    chain: Chain, builder: ProgramBuilder, shift: int, width: int
) -> tuple[dict[str, Any], int, int]:
    """Return the operands of the first convolution, the index of its input, and its scratch bytes.

    If there is no convolution before the depthwise one, operands and bytes are 0, and the input is
    that of the depthwise convolution, whose rows have *width* pixels. *shift* is as for
    ``pack_matrix``.
    """
    if chain.first is None:
        words = ("first_windows", "first_matrix", "first_layout", "first_step")
        return dict.fromkeys(words, 0), chain.depthwise.input(0).index, 0
    x, windows, product = chain.first.input(0), windows_of(chain.first), product_of(chain.first)
    lines = lines_of(builder, x.shape[3], windows, product)
    if lines is not None:
        product = with_gaps(product, windows[0].kernel)
    rows = Rows.of(product, width, is_pointwise(windows), lines)
    found = {
        "first_windows": pack_windows(builder, x.shape[3], windows, product, lines=lines),
        "first_matrix": pack_matrix(builder, chain.first, product, "unsigned", shift),
        "first_layout": rows.layout,
        "first_step": rows.step,
    }
    return found, x.index, rows.memory


def _tiles(chain: Chain, builder: ProgramBuilder, rows: int) -> int:
    """Return the number of tiles into which the *rows* output rows of *chain* are split."""
    x, y = chain.depthwise.input(0), chain.depthwise.output()
    products = math.prod(y.shape[:3]) * chain.last.input(1).data.size
    if chain.first is not None:
        products += math.prod(x.shape[:3]) * chain.first.input(1).data.size
    results = math.prod(x.shape) + math.prod(y.shape)
    return tiles_for(builder, products, results, max(rows // LEAST_ROWS, 1))


def _rows_together(width: int, channels: int, has_tiles: bool) -> int:
    """Return the number of rows to multiply together, so that micro-kernels are fully used.

    A row has *width* pixels of *channels* channels; *has_tiles* says whether the processor
    level has AMX tiles.

    >>> _rows_together(17, 512, False), _rows_together(17, 512, True)
    (2, 11)
    """
    height = TILE_HEIGHT if has_tiles else HEIGHT
    cached = TILE_CACHED_BYTES if has_tiles else CACHED_BYTES
    most = min(max(cached // max(width * channels, 1), 1), MOST_TOGETHER)

    def share(rows: int) -> tuple[float, int]:
        """Return which part of the micro-kernels' tiles *rows* rows fill, at most 1; and *rows*."""
        pixels = rows * width
        return pixels / (-(-pixels // height) * height), rows

    return max(range(1, most + 1), key=share)
