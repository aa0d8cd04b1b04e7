"""EMBEDDING_LOOKUP: rows of a table, copied, or converted to floats if they are integers.

Kernels read tables in the model's memory, without a copy. Rows of 4-bit integers are unpacked one
by one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from delegraph import Rejection
from delegraph_numba_cpu.instructions.lookup import LOOK_UP
from delegraph_numba_cpu.instructions.memory import report
from delegraph_numba_cpu.lowering.checks import check_same_type, check_type, first_rejection
from delegraph_numba_cpu.lowering.moves import moves
from delegraph_numba_cpu.lowering.moves.moves_checks import WITH_HALVES
from delegraph_numba_cpu.lowering.registry import Call, Operator, one_of, register, with_operands
from delegraph_numba_cpu.program.builder import ProgramBuilder

BITS = {"INT4": 4, "INT8": 8, "UINT8": 8}
"""Mapping from types of tables that become floats to their bits; UINT8 is read as INT8."""

FEATURES = ("empty", "many-dims", "computed-weights", "extreme-values")


def becomes_floats(call: Call) -> bool:
    """Whether the node *call* converts rows of integers to floats."""
    return call.input(1).type.name in BITS and call.output().type.name == "FLOAT32"


def check_copied(call: Call) -> Rejection | None:
    """Return a rejection unless a dense table has the output's type."""
    table, y = call.input(1), call.output()
    found = first_rejection(check_same_type(table, y), check_type(table, *WITH_HALVES))
    if found is None and table.sparsity is not None:
        return Rejection("sparse", expected="a dense table", tensor=table.index)
    return found


def check_converted(call: Call) -> Rejection | None:
    """Return a rejection unless the table is constant, with scales of whole bytes."""
    table = call.input(1)
    if not table.is_constant:
        return Rejection("computed-table", expected="a constant table", tensor=table.index)
    if table.sparsity is not None:
        return Rejection("sparse", expected="a dense table", tensor=table.index)
    if table.quantization is None or not len(table.quantization.scales):
        return Rejection("quantization", expected="scales", tensor=table.index)
    if table.quantization.scales.dtype not in (np.float16, np.float32):
        return Rejection("scales", expected="float16 or float32", tensor=table.index)
    size = table.quantization.block_size
    if size * BITS[table.type.name] % 8:
        return Rejection("block-size", actual=size, expected="whole bytes", tensor=table.index)
    return None


def lower_copied(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an EMBEDDING_LOOKUP that copies rows of a table.

    This equals a GATHER along the first axis, with the node's two inputs exchanged.
    """
    table, positions = call.input(1), call.input(0)
    if not table.shape[0]:  # the official kernel then reads no position and writes nothing
        return
    node, inputs = call.node, (table.index, positions.index)
    swapped = replace(call, node=with_operands(node, node.index, inputs, node.outputs))
    run = math.prod(table.shape[1:]) * table.dtype.itemsize
    moves.gather(swapped, builder, [(table.shape[0], run)], positions.shape[0], run)


def lower_converted(call: Call, builder: ProgramBuilder) -> None:
    """Add a kernel call that looks up integer rows and multiplies them by their scales."""
    positions, table, y = call.input(0), call.input(1), call.output()
    rows, width = positions.shape[0], math.prod(table.shape[1:])
    if not rows * width * table.shape[0]:
        return
    assert table.quantization is not None
    scales = table.quantization.scales
    per_row = 0 if len(scales) == 1 else len(scales) // table.shape[0]
    builder.emit(
        LOOK_UP,
        moves.tiles_for(builder, y.bytes, rows),
        table=builder.table(table),
        target=builder.tensor(y.index),
        positions=builder.tensor(positions.index),
        scales=builder.constant(scales),
        table_rows=table.shape[0],
        width=width,
        bits=BITS[table.type.name],
        block=width // max(per_row, 1),
        scale_bytes=scales.dtype.itemsize,
        row_scales=per_row * scales.dtype.itemsize,
        rows=rows,
        report=report(),
        wrong=0,
        among=0,
    )


_ROWS = Operator(check_copied, lower_copied, WITH_HALVES, FEATURES, roles=(("lookup", ("INT32",)),))
_FLOATS = Operator(
    check_converted,
    lower_converted,
    features=("empty", "many-dims", "per-channel", "extreme-values"),
    roles=(("lookup", ("INT32",)), ("weights", tuple(BITS)), ("output", ("FLOAT32",))),
)


_EITHER = one_of(lambda call: _FLOATS if becomes_floats(call) else _ROWS, _ROWS, _FLOATS)

register({"EMBEDDING_LOOKUP": _EITHER})
