"""STRIDED_SLICE."""

from __future__ import annotations

from delegraph import Rejection
from delegraph.arithmetic.output_shape import integers
from delegraph.arithmetic.slice_index import Masks, resolved
from delegraph_numba_cpu.operators.move_checks import FEATURES, TYPES, check_moved
from delegraph_numba_cpu.operators.moves import Part, move
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import ProgramBuilder


def check_strided_slice(call: Call) -> Rejection | None:
    """Let pass constant beginnings, ends and strides."""
    return check_moved(call, parameters=(1, 2, 3))


def lower_strided_slice(call: Call, builder: ProgramBuilder) -> None:
    """Move what the indices select."""
    x, y = call.input(0), Part.of(builder, call.output())
    begins, ends, strides = (integers(call.input(i)) for i in (1, 2, 3))
    index, _ = resolved(x.shape, begins, ends, strides, Masks.of(call.options))
    move(builder, Part.of(builder, x)[index], y)


register({"STRIDED_SLICE": Operator(check_strided_slice, lower_strided_slice, TYPES, FEATURES)})
