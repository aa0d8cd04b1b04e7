"""Claims and lowering of EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL."""

from __future__ import annotations

from delegraph import Rejection
from delegraph_numba_cpu.instructions.elementwise import OPERATIONS
from delegraph_numba_cpu.lowering.checks import (
    check_same_type,
    check_shapes,
    check_type,
    first_rejection,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import (
    PAIR_FEATURES,
    emit_operation,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_int8_pairs import (
    check_operands,
    lower_pair,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import ProgramBuilder

COMPARED = ("FLOAT32", "INT32", "INT64")

COMPARISONS = {
    "EQUAL": ("EQUAL", False),
    "NOT_EQUAL": ("NOT_EQUAL", False),
    "LESS": ("LESS", False),
    "LESS_EQUAL": ("LESS_EQUAL", False),
    "GREATER": ("LESS", True),
    "GREATER_EQUAL": ("LESS_EQUAL", True),
}
"""Mapping from an operator to the kernel's operation, and whether operands are exchanged."""


def check_comparison(call: Call) -> Rejection | None:
    """Return a rejection unless two inputs have one type and the output is BOOL."""
    return first_rejection(
        check_shapes(call, 2),
        check_same_type(call.input(0), call.input(1)),
        check_type(call.output(), "BOOL"),
    )


def check_pair_comparison(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel accepts both operands."""
    return first_rejection(check_type(call.output(), "BOOL"), check_operands(call))


def lower_comparison(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that compares the elements of two tensors."""
    name, is_turned = COMPARISONS[call.name]
    inputs = call.node.inputs[::-1] if is_turned else call.node.inputs
    operation = OPERATIONS[f"{name}_{call.input(0).type.name}"]
    emit_operation(call, builder, operation, inputs=inputs)


_TO_BOOL = (("output", ("BOOL",)),)

for _type in COMPARED:
    _features = (*PAIR_FEATURES, "extreme-values") if _type == "FLOAT32" else PAIR_FEATURES
    _operator = Operator(check_comparison, lower_comparison, (_type,), _features, roles=_TO_BOOL)
    register_variants(_type, dict.fromkeys(COMPARISONS, _operator))
for _type in ("INT8", "UINT8"):
    _operator = Operator(check_pair_comparison, lower_pair, (_type,), PAIR_FEATURES, roles=_TO_BOOL)
    register_variants(_type, dict.fromkeys(COMPARISONS, _operator))
_OF_BOOL = Operator(check_pair_comparison, lower_pair, ("BOOL",), PAIR_FEATURES)
register_variants("BOOL", dict.fromkeys(("EQUAL", "NOT_EQUAL"), _OF_BOOL))
