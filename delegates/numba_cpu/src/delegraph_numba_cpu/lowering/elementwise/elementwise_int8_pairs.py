"""Integer operators of two 8-bit operands.

The kernel computes sums and products by a formula in float32 if one is exact. Otherwise it reads a
table, which the core's kernel fills with the results of all 65,536 pairs.
"""

from __future__ import annotations

import math

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic import PairTables, pair_tables, without_zero
from delegraph_numba_cpu.instructions.elementwise import Operation
from delegraph_numba_cpu.lowering.checks import check_same_type, check_shapes, first_rejection
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import emit_operation
from delegraph_numba_cpu.lowering.elementwise.elementwise_int8_formulas import (
    CORNERS,
    PRODUCT,
    SUMS,
    Pairs,
    Parameters,
    close_pairs,
    find_formula,
)
from delegraph_numba_cpu.lowering.evaluation import check_evaluation, evaluate
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder

EXTREMES = {
    ("MAXIMUM", "INT8"): Operation.LARGER_INT8,
    ("MAXIMUM", "UINT8"): Operation.LARGER_UINT8,
    ("MINIMUM", "INT8"): Operation.SMALLER_INT8,
    ("MINIMUM", "UINT8"): Operation.SMALLER_UINT8,
}


def tables(call: Call, pairs: Pairs | None = None) -> PairTables:
    """Return a node's results for all pairs of 8-bit operands, as tables for the kernel.

    Args:
        call: the node.
        pairs: the only pairs whose results are wanted; None for all.

    Raises:
        OperatorError: the core's kernel rejects the node.
    """
    return pair_tables(
        call.name,
        call.input(0),
        call.input(1),
        call.context.numerics,
        lambda inputs, numerics: evaluate(call, inputs, numerics),
        pairs,
    )


def check_pair(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel accepts both operands.

    Operands and output must have one type.
    """
    return first_rejection(check_operands(call), check_same_type(call.input(0), call.output()))


def check_operands(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel accepts the two operands.

    Any output type is accepted.
    """
    rejection = check_shapes(call, 2)
    if rejection is None:
        rejection = check_same_type(call.input(0), call.input(1))
    if rejection is not None:
        return rejection
    a, b = (np.ones(1, call.input(i).dtype) for i in range(2))
    return check_evaluation(call, [a, without_zero(call.input(1), b)])


def lower_pair(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an operator on two 8-bit operands.

    The kernel computes a formula, or reads a table of the results of all pairs of operands.
    """
    if not math.prod(call.output().shape):
        return
    found = EXTREMES.get((call.name, call.input(0).type.name))
    if found is not None:
        emit_operation(call, builder, found)
        return
    formula = _formula(call, builder.exact)
    if formula is not None:
        emit_operation(call, builder, *formula)
        return
    known = tables(call)
    if known.length == known.vector_end:
        emit_operation(call, builder, Operation.LOOKUP_PAIR, (known.vector,))
    else:
        parameters = known.vector, known.rest, known.length, known.vector_end
        emit_operation(call, builder, Operation.LOOKUP_PAIR_BY_POSITION, parameters)


def _formula(call: Call, exact: bool) -> tuple[int, Parameters] | None:
    """Return a formula for the node's results: operation and parameters; None if there is none.

    With *exact* it gives all results of the core's kernel.
    """
    if call.name not in (*SUMS, PRODUCT):
        return None
    pairs = close_pairs(call) if exact else CORNERS
    known = tables(call, pairs)
    if known.length != known.vector_end:  # the kernel's results depend on the position
        return None
    return find_formula(call, pairs, known.vector if exact else None)
