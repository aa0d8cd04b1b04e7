"""Claims and lowering of LOG_SOFTMAX."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic import exponentials
from delegraph_numba_cpu.instructions.softmax import LOG_SOFTMAX, LOG_SOFTMAX_8_BIT
from delegraph_numba_cpu.lowering.checks import (
    check_one_scale,
    check_same_type,
    check_shapes,
    first_rejection,
)
from delegraph_numba_cpu.lowering.evaluation import check_evaluation
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.lowering.rows.last_axis import (
    FEATURES,
    check_float_rows,
    check_rank,
    emit_float_rows,
    emit_rows,
)
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_log_softmax(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of a LOG_SOFTMAX."""
    emit_float_rows(call, builder, LOG_SOFTMAX)


def check_8_bit(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel accepts the rows, with builtin numerics."""
    x, y = call.input(0), call.output()
    if call.context.numerics != "builtin":
        return Rejection("numerics", actual=call.context.numerics, expected="builtin")
    found = first_rejection(
        check_rank(call),
        check_shapes(call, 1),
        check_same_type(x, y),
        check_one_scale(x),
    )
    return check_evaluation(call, [np.zeros((1, 2), x.dtype)]) if found is None else found


def lower_8_bit(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an 8-bit LOG_SOFTMAX, with a table of exponentials."""
    x, y = call.input(0), call.output()
    emit_rows(
        call,
        builder,
        LOG_SOFTMAX_8_BIT,
        ("source",),
        table=builder.constant(exponentials(x.scale, 1.0)),
        flip=128 if x.type.name == "INT8" else 0,
        scale=x.scale,
        zero_point=y.zero_point,
    )


_OPERATOR = Operator(
    check_float_rows, lower_log_softmax, ("FLOAT32",), (*FEATURES, "extreme-values")
)

register_variants("FLOAT32", {"LOG_SOFTMAX": _OPERATOR})
for _type in ("INT8", "UINT8"):
    _8_bit = Operator(check_8_bit, lower_8_bit, (_type,), FEATURES)
    register_variants(_type, {"LOG_SOFTMAX": _8_bit})
