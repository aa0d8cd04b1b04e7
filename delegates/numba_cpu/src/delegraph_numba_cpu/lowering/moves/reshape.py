"""Claims and lowering of RESHAPE, SQUEEZE and EXPAND_DIMS."""

from __future__ import annotations

from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_reshape(call: Call, builder: ProgramBuilder) -> None:
    """Let input and output share memory; if this is impossible, add a kernel call that copies.

    A variable is copied: it may be written again before the last reader of the output is done.
    """
    x, y = call.input(0), call.output()
    if x.is_variable or not builder.alias(y.index, x.index):
        source = Part.of(builder, x)
        move(builder, source.seen(source.array.reshape(y.shape)), Part.of(builder, y))


RESHAPE = Operator(move_check(1), lower_reshape, TYPES, FEATURES)

register({"RESHAPE": RESHAPE, "SQUEEZE": RESHAPE, "EXPAND_DIMS": RESHAPE})
