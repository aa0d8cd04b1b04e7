"""Claims and lowering of SOFTMAX."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic import exponentials, int16_softmax
from delegraph_numba_cpu.instructions.softmax import (
    LONGEST_INT16_ROW,
    SOFTMAX,
    SOFTMAX_8_BIT,
    SOFTMAX_8_BIT_TO_INT16,
    SOFTMAX_INT16,
)
from delegraph_numba_cpu.lowering.checks import check_shapes, check_types, first_rejection
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
    x, y = call.input(0), call.output()
    if call.context.numerics != "builtin":
        return Rejection("numerics", actual=call.context.numerics, expected="builtin")
    types = (x.type.name, "INT16")
    if y.type.name not in types:
        return Rejection("dtype", actual=y.type.name, expected=" or ".join(types), tensor=y.index)
    rejection = first_rejection(check_rank(call), check_shapes(call, 1))
    if rejection is not None:
        return rejection
    rejection = check_evaluation(call, [np.zeros((1, 2), x.dtype)])
    if rejection is not None:
        return rejection
    return _check_finite(x.scale, call.options.beta, y.scale)


def _check_finite(scale: float, beta: float, output_scale: float) -> Rejection | None:
    """Return a rejection unless float32 holds all exponentials.

    The output's scale must not be too small either.

    Args:
        scale: scale of the input.
        beta: the node's factor.
        output_scale: scale of the output.
    """
    if not np.isfinite(exponentials(scale, float(beta))).all():
        return Rejection("beta", actual=beta, expected="exponentials that float32 can hold")
    if not output_scale > LEAST_SCALE:
        return Rejection("scale", actual=output_scale, expected=f"above {LEAST_SCALE}")
    return None


def lower_int8(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an 8-bit SOFTMAX, with a table of exponentials."""
    x, y = call.input(0), call.output()
    is_wider = y.type.name == "INT16"
    scratch_bytes = -(-4 * y.shape[-1] // 64) * 64
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
    found = first_rejection(check_rank(call), check_types(call, "INT16"), check_shapes(call, 1))
    if found is not None:
        return found
    shape = call.input(0).shape
    if shape[-1] > LONGEST_INT16_ROW or len(shape) > INT16_RANK:
        expected = f"at most {INT16_RANK} dimensions, {LONGEST_INT16_ROW} the last"
        return Rejection("shape", actual=list(shape), expected=expected)
    return check_evaluation(call, [np.zeros((1, 2), np.int16)])


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


_F32 = Operator(check_f32, lower_f32, ("FLOAT32",), (*FEATURES, "extreme-values"))

register_variants("FLOAT32", {"SOFTMAX": _F32})
for _type in ("INT8", "UINT8"):
    _to_int16 = (("output", (_type, "INT16")),)
    _operator = Operator(check_int8, lower_int8, (_type,), FEATURES, roles=_to_int16)
    register_variants(_type, {"SOFTMAX": _operator})
_INT16 = Operator(check_int16, lower_int16, ("INT16",), ("empty",))
register_variants("INT16", {"SOFTMAX": _INT16})
