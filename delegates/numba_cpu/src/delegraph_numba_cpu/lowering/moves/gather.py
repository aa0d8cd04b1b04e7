"""Claims and lowering of GATHER and GATHER_ND."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection
from delegraph.arithmetic import check_bounds, normalized_axis, row_numbers
from delegraph.errors import OperatorError, PartitionRejected
from delegraph_numba_cpu.lowering.checks import check_type, first_rejection
from delegraph_numba_cpu.lowering.moves import moves
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, WITH_HALVES, check_moved
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder

POSITIONS = ("INT16", "INT32", "INT64")


def check_positions(call: Call) -> Rejection | None:
    """Return a rejection unless the node only moves elements, from integer positions."""
    found = check_moved(call, parameters=(1,), inputs=2, may_be_computed=True)
    if found is not None:
        return found
    positions = call.input(1)
    if positions.sparsity is not None:
        return Rejection("sparse", expected="dense positions", tensor=positions.index)
    return check_type(positions, *POSITIONS)


def check_gather(call: Call) -> Rejection | None:
    """Return a rejection as :func:`check_positions` does; constant positions are checked, too.

    Raises:
        OperatorError: a constant position is outside the input, which the core reports at invoke.
    """
    found = check_positions(call)
    x, positions = call.input(0), call.input(1)
    if found is None and positions.is_constant and x.shape:
        axis = normalized_axis(int(call.options.axis), len(x.shape))
        check_bounds(positions.data, x.shape[axis])
    return found


@contextmanager
def positions_of_resized_input() -> Iterator[None]:
    """Reject the partition where a position is outside: the core says so when it invokes."""
    try:
        yield
    except OperatorError as error:
        raise PartitionRejected(str(error)) from error


def lower_gather(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies the slices selected by an input of positions.

    Raises:
        PartitionRejected: a constant position is outside the resized input.
    """
    x, positions = call.input(0), call.input(1)
    axis = normalized_axis(int(call.options.axis), len(x.shape))
    batch_dims = int(call.options.batch_dims)
    if batch_dims < 0:
        batch_dims += len(positions.shape)
    run = math.prod(x.shape[axis + 1 :]) * x.dtype.itemsize
    slab = x.shape[axis] * run
    batch = math.prod(x.shape[:batch_dims])
    count = math.prod(positions.shape[batch_dims:])
    outer = math.prod(x.shape[batch_dims:axis])
    if not positions.is_constant:
        if not math.prod(call.output().shape):
            outer, run = 1, 0  # no bytes are copied, but positions are checked
        places = [(x.shape[axis], run)]
        moves.gather(call, builder, places, count, run, outer, batch, slab)
        return
    with positions_of_resized_input():
        check_bounds(positions.data, x.shape[axis])
    picked: NDArray[Any] = positions.data.astype(np.int64)
    starts = np.arange(batch * outer) * slab
    if not batch_dims:
        moves.pick(call, builder, starts, picked.reshape(-1) * run, run)
        return
    runs = starts.reshape(batch, outer, 1) + picked.reshape(batch, 1, count) * run
    moves.pick(call, builder, runs.reshape(-1), np.zeros(1, np.int64), run)


def check_gather_nd(call: Call) -> Rejection | None:
    """Return a rejection unless the node only moves elements, from tuples of integer positions.

    The tuples must have the right length.

    Raises:
        OperatorError: a constant position is outside the input, which the core reports at invoke.
    """
    found = first_rejection(check_positions(call), check_tuples(call))
    positions = call.input(1)
    if found is None and positions.is_constant:
        row_numbers(positions.data, call.input(0).shape[: positions.shape[-1]])
    return found


def check_tuples(call: Call) -> Rejection | None:
    """Return a rejection unless position tuples are no longer than the input's rank."""
    x, positions = call.input(0), call.input(1)
    if x.shape and positions.shape and positions.shape[-1] <= len(x.shape):
        return None
    expected = f"{len(x.shape)} numbers at most"
    return Rejection(
        "shape", actual=list(positions.shape), expected=expected, tensor=positions.index
    )


def lower_gather_nd(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies the slices selected by tuples of positions.

    Raises:
        OperatorError: after a resize, tuples are longer than the input has axes.
        PartitionRejected: a constant position is outside the resized input.
    """
    refused = check_tuples(call)
    if refused is not None:
        raise OperatorError(str(refused))
    x, positions = call.input(0), call.input(1)
    depth = positions.shape[-1]
    run = math.prod(x.shape[depth:]) * x.dtype.itemsize
    if positions.is_constant:
        with positions_of_resized_input():
            rows = row_numbers(positions.data, x.shape[:depth])
        moves.pick(call, builder, np.zeros(1, np.int64), rows * run, run)
        return
    places = [(x.shape[k], math.prod(x.shape[k + 1 :]) * x.dtype.itemsize) for k in range(depth)]
    count = math.prod(positions.shape[:-1])
    moves.gather(call, builder, places, count, run)


register(
    {
        "GATHER": Operator(check_gather, lower_gather, WITH_HALVES, FEATURES),
        "GATHER_ND": Operator(check_gather_nd, lower_gather_nd, WITH_HALVES, FEATURES),
    }
)
