"""FILL and ZEROS_LIKE."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection
from delegraph_numba_cpu.operators.move_checks import FEATURES, TYPES, check_moved
from delegraph_numba_cpu.operators.moves import Part, fill, move
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import ProgramBuilder


def check_fill(call: Call) -> Rejection | None:
    """Let pass constant dimensions."""
    if len(call.node.inputs) != 2:
        return Rejection("operands", actual=len(call.node.inputs), expected=2)
    return check_moved(call, parameters=(0,))


def lower_fill(call: Call, builder: ProgramBuilder) -> None:
    """Move the value everywhere."""
    value, y = Part.of(builder, call.input(1)), Part.of(builder, call.output())
    move(builder, value.seen(np.broadcast_to(value.array, y.array.shape)), y)


def lower_zeros_like(call: Call, builder: ProgramBuilder) -> None:
    """Store zeros everywhere."""
    fill(builder, Part.of(builder, call.output()), np.zeros((), call.output().dtype))


register(
    {
        "FILL": Operator(check_fill, lower_fill, TYPES, FEATURES),
        "ZEROS_LIKE": Operator(
            check_moved, lower_zeros_like, ("FLOAT32", "INT32", "INT64"), FEATURES
        ),
    }
)
