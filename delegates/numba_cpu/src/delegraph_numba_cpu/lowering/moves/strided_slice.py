"""Claims and lowering of STRIDED_SLICE."""

from __future__ import annotations

from delegraph.arithmetic import Masks, integers, resolved
from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_strided_slice(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies the elements that the strided slice selects."""
    x, y = call.input(0), Part.of(builder, call.output())
    begins, ends, strides = (integers(call.input(i)) for i in (1, 2, 3))
    index, _ = resolved(x.shape, begins, ends, strides, Masks.of(call.options))
    move(builder, Part.of(builder, x)[index], y)


register({"STRIDED_SLICE": Operator(move_check(1, 2, 3), lower_strided_slice, TYPES, FEATURES)})
