"""Claims and lowering of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection
from delegraph.arithmetic import Taps, fixed_taps, float_taps, integers, nearest_positions
from delegraph_numba_cpu.instructions.resize import (
    BILINEAR_F32,
    BILINEAR_S8,
    BILINEAR_U8,
    TAP_WORDS,
)
from delegraph_numba_cpu.lowering.checks import (
    check_constant_parameter,
    check_same_type,
    check_type,
    first_rejection,
    require_asked,
)
from delegraph_numba_cpu.lowering.moves.moves import pick
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, move_check
from delegraph_numba_cpu.lowering.moves.moves_checks import TYPES as MOVED_TYPES
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder

TYPES = ("FLOAT32", "INT8", "UINT8")

INSTRUCTIONS = {"FLOAT32": BILINEAR_F32, "INT8": BILINEAR_S8, "UINT8": BILINEAR_U8}

VALUES_A_NANOSECOND = 8
"""Approximate number of output values that are computed in a nanosecond."""


def check_bilinear(call: Call) -> Rejection | None:
    """Return a rejection unless the size is a constant and the types are supported."""
    found = check_constant_parameter(call)
    if found is not None:
        return found
    x, y = call.input(0), call.output()
    return first_rejection(check_type(x, *TYPES), check_same_type(x, y))


def lower_bilinear(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that resizes images bilinearly.

    Constant tables list, for each output row and column, the two input positions that are mixed.

    Raises:
        OperatorError: the output does not have the requested size.
    """
    x, y, options = call.input(0), call.output(), call.options
    require_asked("size", integers(call.input(1)), y.shape[1:3])
    if not math.prod(y.shape):
        return
    _, h, w, c = x.shape
    taps_of = fixed_taps if x.type.name == "INT8" else float_taps
    corners, centers = bool(options.align_corners), bool(options.half_pixel_centers)
    down = taps_of(h, y.shape[1], corners, centers)
    across = taps_of(w, y.shape[2], corners, centers)
    pixel = c * x.dtype.itemsize
    rows = y.shape[0] * y.shape[1]
    builder.emit(
        INSTRUCTIONS[x.type.name],
        builder.tiles(math.prod(y.shape) / VALUES_A_NANOSECOND, rows),
        source=builder.tensor(x.index),
        target=builder.tensor(y.index),
        image_bytes=h * w * pixel,
        channels=c,
        out_height=y.shape[1],
        out_width=y.shape[2],
        down=builder.constant(_table(down, w * pixel)),
        across=builder.constant(_table(across, pixel)),
        rows=rows,
    )


def _table(taps: Taps, step: int) -> NDArray[np.int64]:
    """Return a table with a row for each output: two input positions, and the second's share.

    These are the positions that *taps* mixes, as offsets in bytes; neighbours are *step* bytes
    apart in the input. A float32 share is stored as its bits.
    """
    table = np.empty((len(taps.low), TAP_WORDS), np.int64)
    share: NDArray[Any] = taps.share
    if share.dtype == np.float32:
        share = share.view(np.uint32)
    table[:, 0], table[:, 1], table[:, 2] = taps.low * step, taps.high * step, share
    return table


def lower_resize_nearest(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies to each output pixel its nearest input pixel.

    Raises:
        OperatorError: the output does not have the requested size.
    """
    x, y, options = call.input(0), call.output(), call.options
    require_asked("size", integers(call.input(1)), y.shape[1:3])
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


PIXELS = tuple(name for name in MOVED_TYPES if name not in ("INT64", "UINT64"))

register(
    {
        "RESIZE_BILINEAR": Operator(
            check_bilinear, lower_bilinear, TYPES, ("empty",), roles=(("size", ("INT32",)),)
        ),
        "RESIZE_NEAREST_NEIGHBOR": Operator(
            move_check(1, inputs=2), lower_resize_nearest, PIXELS, FEATURES
        ),
    }
)
