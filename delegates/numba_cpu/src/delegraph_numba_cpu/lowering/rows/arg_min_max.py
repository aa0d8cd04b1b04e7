"""Claims and lowering of ARG_MAX and ARG_MIN."""

from __future__ import annotations

import math
from functools import partial

from delegraph import Rejection
from delegraph.arithmetic import integers, normalized_axis
from delegraph_numba_cpu.instructions import arg_min_max as instructions
from delegraph_numba_cpu.lowering.checks import (
    check_constant_parameter,
    check_type,
    first_rejection,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.lowering.rows.reductions import FEATURES, Axes
from delegraph_numba_cpu.program.builder import ProgramBuilder


def check_arg(call: Call) -> Rejection | None:
    """Return a rejection unless the axis is a constant."""
    found = check_constant_parameter(call, "a constant axis")
    if found is not None:
        return found
    x, axis = call.input(0), call.input(1)
    if axis.data.size != 1:
        return Rejection("computed-parameter", expected="a constant axis", tensor=axis.index)
    return first_rejection(
        check_type(x, *instructions.ARG_KINDS), check_type(call.output(), "INT32", "INT64")
    )


def lower_arg(call: Call, builder: ProgramBuilder, smallest: bool) -> None:
    """Add to the program a kernel call that finds the index of an extreme element along an axis.

    Args:
        call: the ARG_MAX or ARG_MIN node.
        builder: builder of the program, to which the kernel call is added.
        smallest: whether the smallest element is found, not the largest.
    """
    x, y = call.input(0), call.output()
    axis = normalized_axis(integers(call.input(1))[0], len(x.shape))
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    if not outer * inner:
        return
    axes = Axes(x, builder.tensor(x.index), outer, x.shape[axis], inner)
    axes.emit(
        builder,
        instructions.ARG,
        builder.tensor(y.index),
        axes.count,
        kind=instructions.ARG_KINDS[x.type.name],
        smallest=int(smallest),
        wide=int(y.type.name == "INT64"),
    )


def _arg(smallest: bool) -> Operator:
    roles = (("input", tuple(instructions.ARG_KINDS)),)
    indices = ("INT32", "INT64")
    return Operator(
        check_arg, partial(lower_arg, smallest=smallest), indices, FEATURES, roles=roles
    )


register({"ARG_MAX": _arg(smallest=False), "ARG_MIN": _arg(smallest=True)})
