"""Claims and lowering of SOFTMAX and LOG_SOFTMAX."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic import exponentials, int16_softmax
from delegraph_numba_cpu.instructions.softmax import (
    LOG_SOFTMAX,
    LOG_SOFTMAX_8_BIT,
    LONGEST_INT16_ROW,
    SOFTMAX,
    SOFTMAX_8_BIT,
    SOFTMAX_8_BIT_TO_INT16,
    SOFTMAX_INT16,
)
from delegraph_numba_cpu.lowering.checks import (
    check_one_scale,
    check_same_type,
    check_type,
    check_types,
    first_rejection,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.lowering.rows.last_axis import (
    FEATURES,
    check_float_rows,
    check_own_rows,
    check_rank,
    emit_float_rows,
    emit_rows,
)
from delegraph_numba_cpu.program.builder import ProgramBuilder, aligned

LEAST_SCALE = 2.0**-31
"""Least output scale; with a smaller scale, a probability of 1 would exceed int32."""

INT16_RANK = 4
"""Largest rank of INT16 tensors that the official kernel accepts."""

JUST_BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))


def check_f32(call: Call) -> Rejection | None:
    """Return a rejection unless rows are float32, with a positive beta."""
    if not call.options.beta > 0:
        return Rejection("beta", actual=call.options.beta, expected="above 0")
    return check_float_rows(call)


def lower_f32(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of a float32 SOFTMAX."""
    emit_float_rows(call, builder, SOFTMAX, ("source",), beta=call.options.beta)


def check_int8(call: Call) -> Rejection | None:
    """Return a rejection unless 8-bit rows are computed as in Delegraph's own kernel."""
    x, y, beta = call.input(0), call.output(), call.options.beta
    found = first_rejection(_check_numerics(call), check_type(y, x.type.name, "INT16"))
    if found is None:
        found = check_own_rows(call)
    if found is not None:
        return found
    if not np.isfinite(exponentials(x.scale, float(beta))).all():
        return Rejection("beta", actual=beta, expected="exponentials that float32 can hold")
    if not y.scale > LEAST_SCALE:
        return Rejection("scale", actual=y.scale, expected=f"above {LEAST_SCALE}")
    return None


def _check_numerics(call: Call) -> Rejection | None:
    numerics = call.context.numerics
    return (
        None
        if numerics == "builtin"
        else Rejection("numerics", actual=numerics, expected="builtin")
    )


def lower_int8(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an 8-bit SOFTMAX, with a table of exponentials."""
    x, y = call.input(0), call.output()
    is_wider = y.type.name == "INT16"
    scratch_bytes = aligned(4 * y.shape[-1])
    zero_point = 0 if y.type.name == "UINT8" else y.zero_point
    emit_rows(
        call,
        builder,
        SOFTMAX_8_BIT_TO_INT16 if is_wider else SOFTMAX_8_BIT,
        () if is_wider else ("source",),
        scratch=builder.scratch(scratch_bytes * builder.workers),
        scratch_bytes=scratch_bytes,
        table=builder.constant(exponentials(x.scale, float(call.options.beta))),
        flip=128 if x.type.name == "INT8" else 0,
        scale=y.scale,
        half=0.5 if y.type.name == "UINT8" else JUST_BELOW_HALF,
        limit=int(np.iinfo(y.dtype).max) - zero_point,
        zero_point=zero_point,
    )


def check_int16(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel accepts the INT16 rows."""
    shape = call.input(0).shape
    found = first_rejection(check_rank(call), check_types(call, "INT16"))
    if found is None and (shape[-1] > LONGEST_INT16_ROW or len(shape) > INT16_RANK):
        expected = f"at most {INT16_RANK} dimensions, {LONGEST_INT16_ROW} the last"
        return Rejection("shape", actual=list(shape), expected=expected)
    return check_own_rows(call) if found is None else found


def lower_int16(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an INT16 SOFTMAX, with tables for interpolation."""
    softmax = int16_softmax(call.input(0).scale, float(call.options.beta))
    emit_rows(
        call,
        builder,
        SOFTMAX_INT16,
        exponentials=builder.constant(softmax.exponentials),
        reciprocals=builder.constant(softmax.reciprocals),
        left=max(softmax.shift, 0),
        multiplier=softmax.multiplier,
        right=max(-softmax.shift, 0),
    )


def lower_log_f32(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of a float32 LOG_SOFTMAX."""
    emit_float_rows(call, builder, LOG_SOFTMAX)


def check_log_8_bit(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel accepts the rows, with builtin numerics."""
    x, y = call.input(0), call.output()
    found = first_rejection(_check_numerics(call), check_same_type(x, y), check_one_scale(x))
    return check_own_rows(call) if found is None else found


def lower_log_8_bit(call: Call, builder: ProgramBuilder) -> None:
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


_F32 = Operator(check_f32, lower_f32, ("FLOAT32",), (*FEATURES, "extreme-values"))

_LOG = Operator(check_float_rows, lower_log_f32, ("FLOAT32",), (*FEATURES, "extreme-values"))

register_variants("FLOAT32", {"SOFTMAX": _F32, "LOG_SOFTMAX": _LOG})
for _type in ("INT8", "UINT8"):
    _to_int16 = (("output", (_type, "INT16")),)
    _operator = Operator(check_int8, lower_int8, (_type,), FEATURES, roles=_to_int16)
    _log = Operator(check_log_8_bit, lower_log_8_bit, (_type,), FEATURES)
    register_variants(_type, {"SOFTMAX": _operator, "LOG_SOFTMAX": _log})
_INT16 = Operator(check_int16, lower_int16, ("INT16",), ("empty",))
register_variants("INT16", {"SOFTMAX": _INT16})
