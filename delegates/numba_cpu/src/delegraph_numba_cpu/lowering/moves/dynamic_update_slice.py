"""Claims and lowering of DYNAMIC_UPDATE_SLICE."""

from __future__ import annotations

import math

from delegraph import Rejection
from delegraph.errors import OperatorError
from delegraph_numba_cpu.lowering.checks import check_same_type, check_type, first_rejection
from delegraph_numba_cpu.lowering.moves.moves import Part, move, update
from delegraph_numba_cpu.lowering.moves.moves_checks import TYPES
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def check_dynamic_update_slice(call: Call) -> Rejection | None:
    """Return a rejection unless the update has the input's type, and fits into it."""
    if len(call.node.inputs) != 3:
        return Rejection("operands", actual=len(call.node.inputs), expected=3)
    x, block, starts, y = call.input(0), call.input(1), call.input(2), call.output()
    for tensor in (x, block, starts):
        if tensor.sparsity is not None:
            return Rejection("sparse", expected="a dense constant", tensor=tensor.index)
    return first_rejection(
        check_type(starts, "INT32", "INT64"),
        check_type(y, *TYPES),
        check_same_type(x, block, y),
        check_sizes(call),
    )


def check_sizes(call: Call) -> Rejection | None:
    """Return a rejection unless the block has the input's rank, and is not larger."""
    x, block, starts = (call.input(i).shape for i in range(3))
    if not x or len(block) != len(x) or math.prod(starts) != len(x):
        return Rejection("shape", actual=f"{block} at {starts}", expected=f"{len(x)} axes")
    if any(part > size for part, size in zip(block, x, strict=True)):
        return Rejection("shape", actual=list(block), expected=f"at most {list(x)}")
    return None


def lower_dynamic_update_slice(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls that copy the first input to the output, then the update into a block of it.

    Raises:
        OperatorError: after a resize the block no longer fits.
    """
    refused = check_sizes(call)
    if refused is not None:
        raise OperatorError(str(refused))
    block, y = call.input(1), Part.of(builder, call.output())
    move(builder, Part.of(builder, call.input(0)), y)
    if math.prod(block.shape):
        update(builder, Part.of(builder, block), y, call.input(2))


_FEATURES = ("computed-weights", "empty", "many-dims", "extreme-values")
_STARTS = (("start_indices", ("INT32", "INT64")),)

_OPERATOR = Operator(
    check_dynamic_update_slice, lower_dynamic_update_slice, TYPES, _FEATURES, roles=_STARTS
)

register({"DYNAMIC_UPDATE_SLICE": _OPERATOR})
