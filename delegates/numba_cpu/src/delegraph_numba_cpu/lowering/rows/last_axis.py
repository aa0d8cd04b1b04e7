"""Checks and lowering of operators that compute each row of the last axis separately."""

from __future__ import annotations

import math

import numpy as np

from delegraph import Rejection
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.lowering.checks import check_shapes, check_types, first_rejection
from delegraph_numba_cpu.lowering.evaluation import check_evaluation
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder, WorkerScratch

FEATURES = ("empty", "many-dims", "dynamic-shapes")

VALUES_A_NANOSECOND = 4
"""Approximate number of values that are computed in a nanosecond."""


def check_float_rows(call: Call) -> Rejection | None:
    """Return a rejection unless all tensors are float32, with at least one dimension."""
    return first_rejection(check_rank(call), check_types(call, "FLOAT32"), check_shapes(call, 1))


def check_rank(call: Call) -> Rejection | None:
    """Return a rejection unless the input has at least one dimension."""
    x = call.input(0)
    return None if x.shape else Rejection("rank", actual=0, expected="at least 1", tensor=x.index)


def check_own_rows(call: Call) -> Rejection | None:
    """Return a rejection unless Delegraph's own kernel accepts short rows of the input's type."""
    found = first_rejection(check_rank(call), check_shapes(call, 1))
    if found is not None:
        return found
    return check_evaluation(call, [np.zeros((1, 2), call.input(0).dtype)])


def emit_float_rows(
    call: Call,
    builder: ProgramBuilder,
    instruction: Instruction,
    replaceable: tuple[str, ...] = (),
    **words: object,
) -> None:
    """Add a kernel call as by :func:`emit_rows`, with scratch memory for ends of float32 rows."""
    # Room for the end of a row before and after the computation.
    scratch = WorkerScratch(8 * builder.level.vector_bytes)
    emit_rows(call, builder, instruction, replaceable, scratch=scratch, **words)


def emit_rows(
    call: Call,
    builder: ProgramBuilder,
    instruction: Instruction,
    replaceable: tuple[str, ...] = (),
    **words: object,
) -> None:
    """Add to the program a kernel call that computes each output row from one input row.

    Args:
        call: the node, whose first input and output are the rows.
        builder: builder of the program, to which the kernel call is added.
        instruction: the kernel that is called, with the names of its operands.
        replaceable: names of the operands whose memory the output may take over.
        words: the kernel's remaining operands, by name.
    """
    shape = call.output().shape
    size = math.prod(shape)
    if not size:
        return
    rows = size // shape[-1]
    tiles = builder.tiles(size / VALUES_A_NANOSECOND, rows)
    source, target = builder.tensor(call.input(0).index), builder.tensor(call.output().index)
    builder.emit(
        instruction, tiles, replaceable,
        source=source, target=target, rows=rows, length=shape[-1], **words,
    )  # fmt: skip
