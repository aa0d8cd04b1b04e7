"""Claims and lowering of RESHAPE, SQUEEZE and EXPAND_DIMS."""

from __future__ import annotations

from delegraph_numba_cpu.lowering.moves.moves import share_or_copy
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_reshape(call: Call, builder: ProgramBuilder) -> None:
    """Let input and output share memory; if this is impossible, add a kernel call that copies."""
    share_or_copy(builder, call.input(0), call.output())


RESHAPE = Operator(move_check(1), lower_reshape, TYPES, FEATURES)

register({"RESHAPE": RESHAPE, "SQUEEZE": RESHAPE, "EXPAND_DIMS": RESHAPE})
