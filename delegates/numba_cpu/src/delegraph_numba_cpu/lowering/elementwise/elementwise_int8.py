"""Element-wise operators on 8- and 16-bit integers: of one operand, or of two 8-bit operands."""

from __future__ import annotations

from delegraph import Rejection
from delegraph_numba_cpu.lowering.elementwise import (
    elementwise_int8_pairs,
    elementwise_lookup_tables,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import FEATURES, PAIR_FEATURES
from delegraph_numba_cpu.lowering.elementwise.elementwise_int8_formulas import PRODUCT, SUMS
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants

UNSIGNED = (
    "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU", "HARD_SWISH", "LOGISTIC", "TANH",
    "GELU",
)  # fmt: skip

SIGNED = (*UNSIGNED, "ELU", "EXP", "LOG", "ABS", "NEG")

SIXTEEN_BIT = ("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "GELU", "EXP", "LOG", "ABS")

_EITHER = (
    *SUMS,
    PRODUCT,
    "PRELU",
    "MAXIMUM",
    "MINIMUM",
)

LARGEST_RANK_OF_QUOTIENTS = 4
"""Largest rank claimed for quotients; the kit has no larger models with constant divisors."""


def check_division(call: Call) -> Rejection | None:
    """Return a rejection unless the divisor is a constant without zeros.

    Kernels cannot raise an error for a division by zero.
    """
    b, rank = call.input(1), len(call.output().shape)
    if rank > LARGEST_RANK_OF_QUOTIENTS:
        return Rejection("rank", actual=rank, expected=f"at most {LARGEST_RANK_OF_QUOTIENTS}")
    if not b.is_constant or (b.data == b.zero_point).any():
        return Rejection("divisor", expected="a constant without zeros", tensor=b.index)
    return elementwise_int8_pairs.check_pair(call)


_QUOTIENT_FEATURES = tuple(name for name in PAIR_FEATURES if name not in ("empty", "many-dims"))

for _type, _one, _two in (
    ("INT8", SIGNED, (*_EITHER, "SQUARED_DIFFERENCE")),
    ("UINT8", UNSIGNED, _EITHER),
    ("INT16", SIXTEEN_BIT, ()),
):
    _lookup = Operator(
        elementwise_lookup_tables.check_lookup,
        elementwise_lookup_tables.lower_lookup,
        (_type,),
        FEATURES,
    )
    _pair = Operator(
        elementwise_int8_pairs.check_pair,
        elementwise_int8_pairs.lower_pair,
        (_type,),
        PAIR_FEATURES,
    )
    register_variants(_type, {**dict.fromkeys(_one, _lookup), **dict.fromkeys(_two, _pair)})
for _type in ("INT8", "UINT8"):
    _quotient = Operator(
        check_division, elementwise_int8_pairs.lower_pair, (_type,), _QUOTIENT_FEATURES
    )
    register_variants(_type, {"DIV": _quotient})
