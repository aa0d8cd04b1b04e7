"""Claims and lowering of LOG_SOFTMAX."""

from __future__ import annotations

from delegraph_numba_cpu.instructions.softmax import LOG_SOFTMAX
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.lowering.rows.last_axis import FEATURES, check_float_rows, emit_float_rows
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_log_softmax(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of a LOG_SOFTMAX."""
    emit_float_rows(call, builder, LOG_SOFTMAX)


_OPERATOR = Operator(
    check_float_rows, lower_log_softmax, ("FLOAT32",), (*FEATURES, "extreme-values")
)

register_variants("FLOAT32", {"LOG_SOFTMAX": _OPERATOR})
