"""Operators of one integer operand, computed by a table of all results."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection
from delegraph.operators import Numerics
from delegraph_numba_cpu.instructions.elementwise import Operation
from delegraph_numba_cpu.lowering.checks import check_shapes
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import emit_section
from delegraph_numba_cpu.lowering.evaluation import check_evaluation, evaluate, every_value
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder

_OPERATIONS = {
    (1, 1): Operation.LOOKUP,
    (2, 2): Operation.LOOKUP_INT16,
    (2, 1): Operation.LOOKUP_INT16_IN_8_BIT,
}


def check_lookup(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel accepts the operand."""
    rejection = check_shapes(call, 1)
    if rejection is not None:
        return rejection
    return check_evaluation(call, [every_value(call.input(0).dtype)])


def table(call: Call, numerics: Numerics | None = None) -> NDArray[np.generic]:
    """Return an operator's result for every value of its operand, ordered by the value's bits.

    *numerics* is the rounding to follow; None means the host's.

    Raises:
        OperatorError: the core's kernel rejects the node.
    """
    return evaluate(call, [every_value(call.input(0).dtype)], numerics)


def lower_lookup(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that looks up each element's result in a table."""
    emit_lookup(call, builder, table(call), 0, math.prod(call.output().shape))


def emit_lookup(
    call: Call, builder: ProgramBuilder, values: NDArray[np.generic], start: int, end: int
) -> None:
    sizes = call.input(0).dtype.itemsize, call.output().dtype.itemsize
    emit_section(call, builder, _OPERATIONS[sizes], [values], start, end)
