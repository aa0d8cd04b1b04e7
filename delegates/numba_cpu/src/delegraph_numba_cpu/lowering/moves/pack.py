"""Claims and lowering of PACK and UNPACK."""

from __future__ import annotations

from delegraph.arithmetic import normalized_axis
from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.moves.moves_checks import (
    FEATURES,
    NUMBERS,
    WITH_HALVES,
    check_moved,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_pack(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls that copy each input to its index along the new axis of the output."""
    y = Part.of(builder, call.output())
    lead = (slice(None),) * normalized_axis(int(call.options.axis), y.array.ndim)
    for i in range(len(call.node.inputs)):
        move(builder, Part.of(builder, call.input(i)), y[(*lead, i, ...)])


def lower_unpack(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls that copy the elements at each index of an axis to a separate output."""
    x = Part.of(builder, call.input(0))
    lead = (slice(None),) * normalized_axis(int(call.options.axis), x.array.ndim)
    for i in range(len(call.node.outputs)):
        move(builder, x[(*lead, i, ...)], Part.of(builder, call.output(i)))


UNPACKED = tuple(name for name in WITH_HALVES if name != "INT64")

register(
    {
        "PACK": Operator(check_moved, lower_pack, (*NUMBERS, "UINT32"), FEATURES),
        "UNPACK": Operator(check_moved, lower_unpack, UNPACKED, FEATURES),
    }
)
