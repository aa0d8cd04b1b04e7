"""GATHER."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.indices import check_bounds
from delegraph.arithmetic.output_shape import normalized_axis
from delegraph_numba_cpu.operators.move_checks import FEATURES, WITH_HALVES, move_check
from delegraph_numba_cpu.operators.moves import pick
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import ProgramBuilder


def lower_gather(call: Call, builder: ProgramBuilder) -> None:
    """Pick the slices.

    Raises:
        OperatorError: a position outside the input.
    """
    x, positions = call.input(0), call.input(1)
    axis = normalized_axis(int(call.options.axis), len(x.shape))
    batch_dims = int(call.options.batch_dims)
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


# Positions must be constant: those that are computed may be out of bounds.
register({"GATHER": Operator(move_check(1, inputs=2), lower_gather, WITH_HALVES, FEATURES)})
