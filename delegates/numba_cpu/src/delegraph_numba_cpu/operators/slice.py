"""SLICE."""

from __future__ import annotations

from delegraph.arithmetic.output_shape import integers
from delegraph_numba_cpu.operators.move_checks import FEATURES, TYPES, move_check
from delegraph_numba_cpu.operators.moves import Part, move
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import ProgramBuilder


def lower_slice(call: Call, builder: ProgramBuilder) -> None:
    """Move the block that begins at the given position."""
    y = Part.of(builder, call.output())
    begins = integers(call.input(1))
    block = tuple(slice(b, b + n) for b, n in zip(begins, y.array.shape, strict=True))
    move(builder, Part.of(builder, call.input(0))[(*block, ...)], y)


register({"SLICE": Operator(move_check(1, 2), lower_slice, TYPES, FEATURES)})
