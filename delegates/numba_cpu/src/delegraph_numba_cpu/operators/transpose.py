"""TRANSPOSE."""

from __future__ import annotations

from delegraph import Rejection
from delegraph.arithmetic.output_shape import integers
from delegraph_numba_cpu.operators.move_checks import FEATURES, TYPES, check_moved
from delegraph_numba_cpu.operators.moves import Part, move
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import ProgramBuilder


def check_arranged(call: Call) -> Rejection | None:
    """Let pass a constant second input."""
    return check_moved(call, parameters=(1,))


def lower_transpose(call: Call, builder: ProgramBuilder) -> None:
    """Move with the axes in another order."""
    x = Part.of(builder, call.input(0))
    move(
        builder,
        x.seen(x.array.transpose(integers(call.input(1)))),
        Part.of(builder, call.output()),
    )


register({"TRANSPOSE": Operator(check_arranged, lower_transpose, TYPES, FEATURES)})
