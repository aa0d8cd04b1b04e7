"""Depthwise convolutions of bytes, fused with the convolutions before and after them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from delegraph.kernels.padding import Window, convolution_windows
from delegraph_numba_cpu.blocks import conv_int8 as blocks
from delegraph_numba_cpu.blocks.strips_int8 import STRIP
from delegraph_numba_cpu.operators.conv_int8 import (
    TYPES,
    Rows,
    depthwise_bytes,
    pack_matrix,
    pack_taps,
    pack_windows,
    product_of,
    tiles_for,
)
from delegraph_numba_cpu.operators.registry import Call
from delegraph_numba_cpu.program import ProgramBuilder
from delegraph_numba_cpu.schedule import FUSERS, Fusion, Partition

LEAST_ROWS = 14
"""Rows of a strip: with fewer, what is computed twice at its edges costs more than it saves."""

KEPT_BYTES = 512 * 1024
"""Of rows between two convolutions: they must stay in the cache."""

UNSIGNED = {"INT8": 128, "UINT8": 0}


@dataclass(frozen=True)
class Chain:
    """Convolutions one after the other.

    Attributes:
        first: any convolution, or None.
        depthwise: of one output for each channel.
        last: a convolution of single pixels.
    """

    first: Call | None
    depthwise: Call
    last: Call


def windows_of(call: Call) -> tuple[Window, Window]:
    """Return the windows of a convolution."""
    return convolution_windows(call.options, call.input(0).shape, call.input(1).shape[1:3])


def is_pointwise(windows: tuple[Window, Window]) -> bool:
    """Return whether each output is made of one pixel, and of each pixel one."""
    return all(window.is_pointwise and not window.after for window in windows)


def fuse_strip(partition: Partition, position: int, builder: ProgramBuilder) -> Fusion | None:
    """Take a depthwise convolution, the 1 x 1 one behind it, and maybe the one before."""
    calls = partition.calls
    if calls[position].name not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        return None
    if calls[position].input(0).type.name not in TYPES:
        return None
    members = [position]
    if calls[position].name == "CONV_2D":
        following = partition.next(position)
        if following is None:
            return None
        members.append(following)
    if calls[members[-1]].name != "DEPTHWISE_CONV_2D":
        return None
    last = partition.next(members[-1])
    if last is None or calls[last].name != "CONV_2D":
        return None
    members.append(last)
    if any(
        calls[i].input(0).index != calls[j].output().index for j, i in itertools.pairwise(members)
    ):
        return None
    first = calls[members[0]] if len(members) == 3 else None
    chain = Chain(first, calls[members[-2]], calls[last])
    if not _pays(chain, builder):
        return None
    return Fusion(tuple(members), lambda builder: lower_strip(chain, builder))


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
    """Emit a strip."""
    middle, last = chain.depthwise, chain.last
    x, y = middle.input(0), middle.output()
    shift, channels = UNSIGNED[x.type.name], x.shape[3]
    down, across = windows_of(middle)
    product = product_of(middle)
    has_first = chain.first is not None
    windows = pack_windows(builder, channels, (down, across), product, is_unsigned=has_first)
    taps = pack_taps(builder, middle, product, down, across, shift)
    work = depthwise_bytes(channels, down, across)
    words: dict[str, object] = {
        "first_windows": 0,
        "first_matrix": 0,
        "first_layout": 0,
        "first_step": 0,
    }
    source = x.index
    if chain.first is not None:
        first, before = product_of(chain.first), windows_of(chain.first)
        source = chain.first.input(0).index
        rows = Rows.of(first, across.input, is_pointwise(before))
        work = max(work, rows.memory)
        words = {
            "first_windows": pack_windows(builder, chain.first.input(0).shape[3], before, first),
            "first_matrix": pack_matrix(builder, chain.first, first, "unsigned", shift),
            "first_layout": rows.layout,
            "first_step": rows.step,
        }
    head = blocks.ACC_BYTES + _lines(4 * across.output + 64)
    row = max(across.output, 16) * channels + 64
    kept = down.span * across.input * channels + 64 if has_first else 0
    size = head + _lines(row) + _lines(kept) + _lines(work)
    rows_of_all = y.shape[0] * y.shape[1]
    products = (
        x.shape[0] * math.prod(x.shape[1:3]) * (0 if chain.first is None else first.weight.size)
    )
    products += math.prod(y.shape[:3]) * last.input(1).data.size
    results = math.prod(x.shape) + math.prod(y.shape)
    builder.emit(
        STRIP,
        tiles_for(builder, products, results, max(rows_of_all // LEAST_ROWS, 1)),
        x=builder.tensor(source),
        y=builder.tensor(last.output().index),
        windows=windows,
        taps=taps,
        matrix=pack_matrix(builder, last, product_of(last)),
        rows=rows_of_all,
        kept=down.span,
        row=head,
        lines=head + _lines(row),
        work=head + _lines(row) + _lines(kept),
        scratch=builder.scratch(size * builder.workers),
        scratch_bytes=size,
        **words,
    )


def _lines(size: int) -> int:
    """Return a size rounded up to whole cache lines."""
    return -(-size // 64) * 64


FUSERS.append(fuse_strip)
