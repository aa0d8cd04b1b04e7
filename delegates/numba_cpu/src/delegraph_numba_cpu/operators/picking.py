"""Operators that pick runs of bytes by their positions: GATHER and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection
from delegraph.arithmetic.indices import check_bounds
from delegraph.arithmetic.output_shape import normalized_axis
from delegraph.arithmetic.resize_nearest import nearest_positions
from delegraph_numba_cpu.blocks.moves import PICK
from delegraph_numba_cpu.operators.moves import FEATURES, TYPES, WITH_HALVES, check_moved
from delegraph_numba_cpu.operators.places import tiles_for
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import ProgramBuilder

Offsets = NDArray[np.int64]


def pick(call: Call, builder: ProgramBuilder, outer: Offsets, inner: Offsets, run: int) -> None:
    """Emit the output as runs of the first input, at the sums of two lists of byte offsets.

    Args:
        call: the node.
        builder: of the program.
        outer: ``[A]``.
        inner: ``[B]``; run ``a * B + b`` of the output is at ``outer[a] + inner[b]``.
        run: bytes of each.
    """
    rows = len(outer) * len(inner)
    if not rows or not run:
        return
    y = call.output()
    builder.emit(
        PICK,
        tiles_for(builder, max(y.bytes, 8 * rows), rows),
        source=builder.tensor(call.node.inputs[0]),
        target=builder.tensor(y.index),
        outer=builder.constant(outer.astype(np.int64)),
        inner=len(inner),
        offsets=builder.constant(inner.astype(np.int64)),
        run=run,
        rows=rows,
    )


def check_gather(call: Call) -> Rejection | None:
    """Let pass constant positions: those that are computed may be out of bounds."""
    if len(call.node.inputs) != 2:
        return Rejection("operands", actual=len(call.node.inputs), expected=2)
    return check_moved(call, parameters=(1,))


def lower_gather(call: Call, builder: ProgramBuilder) -> None:
    """Pick the slices.

    Raises:
        OperatorError: a position outside the input.
    """
    x, positions = call.input(0), call.input(1)
    axis = normalized_axis(int(getattr(call.options, "axis", 0)), len(x.shape))
    batch_dims = int(getattr(call.options, "batch_dims", 0))
    if batch_dims < 0:
        batch_dims += len(positions.shape)
    check_bounds(positions.data, x.shape[axis])
    run = math.prod(x.shape[axis + 1 :]) * x.dtype.itemsize
    picked: NDArray[Any] = positions.data.astype(np.int64)
    starts = np.arange(math.prod(x.shape[:axis])) * (x.shape[axis] * run)
    if not batch_dims:
        pick(call, builder, starts, picked.reshape(-1) * run, run)
        return
    batch = math.prod(x.shape[:batch_dims])
    count = math.prod(positions.shape[batch_dims:])
    outer = math.prod(x.shape[batch_dims:axis])
    places = starts.reshape(batch, outer, 1) + picked.reshape(batch, 1, count) * run
    pick(call, builder, places.reshape(-1), np.zeros(1, np.int64), run)


def lower_resize_nearest(call: Call, builder: ProgramBuilder) -> None:
    """Pick pixels."""
    x, y, options = call.input(0), call.output(), call.options
    if not math.prod(y.shape):
        return
    n, h, w, _ = x.shape
    corners, centers = bool(options.align_corners), bool(options.half_pixel_centers)
    rows, columns = (
        nearest_positions(old, new, corners, centers)
        for old, new in zip(x.shape[1:3], y.shape[1:3], strict=True)
    )
    pixel = x.shape[3] * x.dtype.itemsize
    outer = np.add.outer(np.arange(n) * h, rows).reshape(-1) * (w * pixel)
    pick(call, builder, outer, columns * pixel, pixel)


def check_resize_nearest(call: Call) -> Rejection | None:
    """Let pass a constant size."""
    if call.options is None:
        return Rejection("options", expected="ResizeNearestNeighborOptions")
    return check_moved(call, parameters=(1,))


PIXELS = tuple(name for name in TYPES if name not in ("INT64", "UINT64"))

register(
    {
        "GATHER": Operator(check_gather, lower_gather, WITH_HALVES, FEATURES),
        "RESIZE_NEAREST_NEIGHBOR": Operator(
            check_resize_nearest, lower_resize_nearest, PIXELS, FEATURES
        ),
    }
)
