"""ADD, SUB, MUL, MAXIMUM and MINIMUM of INT32, and FLOOR_DIV by constants."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic import float_activation_range
from delegraph_numba_cpu.instructions.elementwise import OPERATIONS
from delegraph_numba_cpu.lowering.checks import (
    activation_of,
    check_shapes,
    check_types,
    first_rejection,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import (
    PAIR_FEATURES,
    emit_operation,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import ProgramBuilder

ARITHMETIC = ("ADD", "SUB", "MUL")

EXTREMES = ("MAXIMUM", "MINIMUM")


def check_arithmetic(call: Call) -> Rejection | None:
    """Return a rejection unless all tensors are INT32."""
    return first_rejection(check_types(call, "INT32"), check_shapes(call, 2))


def lower_arithmetic(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an INT32 operator; results wrap around.

    If there is a fused activation, results are clamped afterwards.
    """
    limits: tuple[int, ...] = ()
    if call.name in ARITHMETIC:
        info = np.iinfo(np.int32)
        low, high = float_activation_range(activation_of(call))
        limits = int(max(low, info.min)), int(min(high, info.max))
    emit_operation(call, builder, OPERATIONS[f"{call.name}_INT32"], limits)


def check_division(call: Call) -> Rejection | None:
    """Return a rejection unless INT32 is divided by a constant without zeros.

    Kernels cannot raise an error for a division by zero.
    """
    found, divisor = check_arithmetic(call), call.input(1)
    if found is None and (not divisor.is_constant or (divisor.data == 0).any()):
        return Rejection("divisor", expected="a constant without zeros", tensor=divisor.index)
    return found


register_variants(
    "INT32",
    {"FLOOR_DIV": Operator(check_division, lower_arithmetic, ("INT32",), ("broadcast",))},
)
register_variants(
    "INT32",
    dict.fromkeys(
        (*ARITHMETIC, *EXTREMES),
        Operator(check_arithmetic, lower_arithmetic, ("INT32",), PAIR_FEATURES),
    ),
)
