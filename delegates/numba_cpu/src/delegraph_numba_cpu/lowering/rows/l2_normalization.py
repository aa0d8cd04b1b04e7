"""Claims and lowering of L2_NORMALIZATION."""

from __future__ import annotations

from delegraph import Rejection
from delegraph_numba_cpu.instructions.l2_normalization import (
    L2_NORMALIZATION,
    L2_NORMALIZATION_8_BIT,
)
from delegraph_numba_cpu.lowering.checks import (
    activation_of,
    check_one_scale,
    check_same_type,
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
from delegraph_numba_cpu.program.builder import ProgramBuilder

LONGEST_8_BIT_ROW = ((1 << 31) - 1) // 255**2
"""Largest number of 8-bit elements of a row whose sum of squares fits in 31 bits."""


def check_l2_normalization(call: Call) -> Rejection | None:
    """Return a rejection unless rows are float32, without a fused activation."""
    activation = activation_of(call)
    if activation:
        return Rejection("activation", actual=activation.name, expected="NONE")
    return check_float_rows(call)


def lower_l2_normalization(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an L2_NORMALIZATION."""
    emit_float_rows(call, builder, L2_NORMALIZATION)


def check_8_bit(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel accepts the rows, and they are short."""
    x, y = call.input(0), call.output()
    found = first_rejection(check_rank(call), check_same_type(x, y), check_one_scale(x))
    if found is None and x.shape[-1] > LONGEST_8_BIT_ROW:
        expected = f"at most {LONGEST_8_BIT_ROW} elements in a row"
        return Rejection("shape", actual=list(x.shape), expected=expected)
    return check_own_rows(call) if found is None else found


def lower_8_bit(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an 8-bit L2_NORMALIZATION."""
    is_signed = call.input(0).type.name == "INT8"
    # LiteRT's kernels for the two types multiply by 128 at different places.
    emit_rows(
        call,
        builder,
        L2_NORMALIZATION_8_BIT,
        ("source",),
        flip=128 if is_signed else 0,
        zero_point=call.input(0).zero_point + (128 if is_signed else 0),
        multiple=1 if is_signed else 128,
        shift=7 if is_signed else 0,
        target_zero=0 if is_signed else 128,
    )


_OPERATOR = Operator(
    check_l2_normalization, lower_l2_normalization, ("FLOAT32",), (*FEATURES, "extreme-values")
)

register_variants("FLOAT32", {"L2_NORMALIZATION": _OPERATOR})
for _type in ("INT8", "UINT8"):
    _8_bit = Operator(check_8_bit, lower_8_bit, (_type,), FEATURES)
    register_variants(_type, {"L2_NORMALIZATION": _8_bit})
