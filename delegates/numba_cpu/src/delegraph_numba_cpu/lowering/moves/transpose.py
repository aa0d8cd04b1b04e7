"""Claims and lowering of TRANSPOSE and REVERSE_V2."""

from __future__ import annotations

from delegraph import Rejection
from delegraph.arithmetic import integers, normalized_axis
from delegraph.errors import OperatorError
from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.moves.moves_checks import (
    FEATURES,
    TYPES,
    WITH_HALVES,
    check_moved,
    move_check,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_transpose(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies elements with the axes permuted."""
    x, order = Part.of(builder, call.input(0)), integers(call.input(1))
    move(builder, x.seen(x.array.transpose(order)), Part.of(builder, call.output()))


def check_reverse(call: Call) -> Rejection | None:
    """Return a rejection unless the reversed axes are neighbours."""
    found = check_moved(call, parameters=(1,))
    if found is not None:
        return found
    if call.input(1).data is None:  # for example the shape that a malformed node gives
        return Rejection("computed-parameter", expected="a constant", tensor=call.node.inputs[1])
    try:
        axes = _axes(call)
    except OperatorError as error:
        return Rejection("axes", str(error))
    if axes and axes != list(range(axes[0], axes[0] + len(axes))):
        return Rejection("axes", actual=axes, expected="neighbours")
    return None


def _axes(call: Call) -> list[int]:
    rank = len(call.input(0).shape)
    return sorted(normalized_axis(axis, rank) for axis in integers(call.input(1)))


def lower_reverse(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies elements in reverse order along the axes.

    Raises:
        OperatorError: an axis that the input does not have.
    """
    x = Part.of(builder, call.input(0))
    axes = _axes(call)
    index = (slice(None, None, -1 if i in axes else 1) for i in range(x.array.ndim))
    move(builder, x[(*index, ...)], Part.of(builder, call.output()))


register(
    {
        "TRANSPOSE": Operator(move_check(1), lower_transpose, TYPES, FEATURES),
        "REVERSE_V2": Operator(check_reverse, lower_reverse, WITH_HALVES, FEATURES),
    }
)
