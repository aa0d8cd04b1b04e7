"""SLICE."""

from __future__ import annotations

from delegraph import Rejection
from delegraph.arithmetic.output_shape import integers
from delegraph_numba_cpu.operators.move_checks import FEATURES, TYPES, check_moved
from delegraph_numba_cpu.operators.moves import Part, move
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import ProgramBuilder


def check_slice(call: Call) -> Rejection | None:
    """Let pass constant beginnings and sizes."""
    return check_moved(call, parameters=(1, 2))


def lower_slice(call: Call, builder: ProgramBuilder) -> None:
    """Move the block that begins at the given position."""
    y = Part.of(builder, call.output())
    begins = integers(call.input(1))
    block = tuple(slice(b, b + n) for b, n in zip(begins, y.array.shape, strict=True))
    move(builder, Part.of(builder, call.input(0))[(*block, ...)], y)


register({"SLICE": Operator(check_slice, lower_slice, TYPES, FEATURES)})
