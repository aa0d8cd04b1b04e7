"""Claims and lowering of L2_NORMALIZATION."""

from __future__ import annotations

from delegraph import Rejection
from delegraph_numba_cpu.instructions.l2_normalization import L2_NORMALIZATION
from delegraph_numba_cpu.lowering.checks import activation_of
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.lowering.rows.last_axis import FEATURES, check_float_rows, emit_float_rows
from delegraph_numba_cpu.program.builder import ProgramBuilder


def check_l2_normalization(call: Call) -> Rejection | None:
    """Check that rows are float32, without a fused activation, or return a rejection."""
    activation = activation_of(call)
    if activation:
        return Rejection("activation", actual=activation.name, expected="NONE")
    return check_float_rows(call)


def lower_l2_normalization(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an L2_NORMALIZATION."""
    emit_float_rows(call, builder, L2_NORMALIZATION)


_OPERATOR = Operator(
    check_l2_normalization, lower_l2_normalization, ("FLOAT32",), (*FEATURES, "extreme-values")
)

register_variants("FLOAT32", {"L2_NORMALIZATION": _OPERATOR})
