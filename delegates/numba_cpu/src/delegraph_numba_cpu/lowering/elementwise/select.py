"""Claims and lowering of SELECT and SELECT_V2."""

from __future__ import annotations

import math

from delegraph import Rejection
from delegraph.arithmetic import broadcast_shape
from delegraph_numba_cpu.instructions.elementwise import Operation
from delegraph_numba_cpu.lowering.checks import (
    check_same_type,
    check_shapes,
    check_type,
    check_types,
    first_rejection,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import (
    PAIR_FEATURES,
    Chain,
    operand,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder

SELECTED_TYPES = ("BOOL", "FLOAT32", "INT8", "UINT8", "INT32", "INT64")

SELECTED = {1: Operation.SELECT_8_BIT, 4: Operation.SELECT_32_BIT, 8: Operation.SELECT_64_BIT}


def check_select(call: Call) -> Rejection | None:
    """Return a rejection unless elements have 1, 4 or 8 bytes, and equal types."""
    return first_rejection(
        check_types(call, *SELECTED_TYPES),
        check_shapes(call, 3),
        check_type(call.input(0), "BOOL"),
        check_same_type(call.input(1), call.input(2), call.output()),
        check_kept_shape(call),
    )


def check_kept_shape(call: Call) -> Rejection | None:
    """Return a rejection unless a one-element output has the shape to which the inputs broadcast.

    LiteRT does not compute the shape of a one-element output again after a resize.
    """
    condition, a, b = (call.input(i).shape for i in range(3))
    if any(math.prod(shape) != 1 for shape in (condition, a, b)):
        return None
    expected, y = broadcast_shape(condition, broadcast_shape(a, b)), call.output()
    if y.shape == expected:
        return None
    return Rejection("shape", actual=list(y.shape), expected=list(expected), tensor=y.index)


def lower_select(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that selects each element from one of two tensors.

    The condition of SELECT may also select whole slices along the first axis.
    """
    condition, a, b = (call.input(i) for i in range(3))
    y = call.output()
    chain = Chain(y.shape)
    trailing = len(y.shape) - len(condition.shape) if call.name == "SELECT" else 0
    mask = operand(builder, chain, condition, max(trailing, 0))
    operands = [mask, operand(builder, chain, a), operand(builder, chain, b)]
    chain.step(SELECTED[a.dtype.itemsize], operands)
    chain.emit(builder, builder.tensor(y.index), y.dtype.itemsize)


SELECT = Operator(
    check_select,
    lower_select,
    SELECTED_TYPES,
    (*PAIR_FEATURES, "extreme-values"),
)

register({"SELECT": SELECT, "SELECT_V2": SELECT})
