"""Operators that only move values."""

from __future__ import annotations

from delegraph import Rejection
from delegraph_numba_cpu.blocks.moves import COPY
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import Memory, ProgramBuilder

TYPES = ("FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64", "BOOL")

BYTES_A_TILE = 1 << 16


def check_reshape(call: Call) -> Rejection | None:
    """Let pass what has a fixed element size, and a shape that is known before the data."""
    for index in (call.node.inputs[0], call.node.outputs[0]):
        tensor = call.context.tensors[index]
        if tensor.type.name not in TYPES:
            return Rejection("dtype", actual=tensor.type.name, expected=" or ".join(TYPES))
    shape = call.optional_input(1)
    if shape is not None and not shape.is_constant:
        return Rejection("computed-shape", expected="a constant shape", tensor=shape.index)
    return None


def lower_reshape(call: Call, builder: ProgramBuilder) -> None:
    """Let both tensors share their memory, or copy."""
    source, target = call.node.inputs[0], call.node.outputs[0]
    if not builder.alias(target, source):
        copy(builder, builder.tensor(source), builder.tensor(target))


def copy(builder: ProgramBuilder, source: Memory, target: Memory) -> None:
    """Emit a copy of all bytes."""
    size = target.size
    tiles = max(1, min(size // BYTES_A_TILE, builder.workers))
    builder.emit(COPY, tiles, source=source, target=target, bytes=size)


RESHAPE = Operator(check_reshape, lower_reshape, TYPES, ("empty", "many-dims", "scalar"))

register({"RESHAPE": RESHAPE, "SQUEEZE": RESHAPE, "EXPAND_DIMS": RESHAPE})
