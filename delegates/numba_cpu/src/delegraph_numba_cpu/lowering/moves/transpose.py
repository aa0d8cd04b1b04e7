"""Claims and lowering of TRANSPOSE."""

from __future__ import annotations

from delegraph.arithmetic import integers
from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_transpose(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies elements with the axes permuted."""
    x = Part.of(builder, call.input(0))
    move(
        builder,
        x.seen(x.array.transpose(integers(call.input(1)))),
        Part.of(builder, call.output()),
    )


register({"TRANSPOSE": Operator(move_check(1), lower_transpose, TYPES, FEATURES)})
