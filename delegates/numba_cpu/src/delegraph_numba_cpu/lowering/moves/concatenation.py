"""Claims and lowering of CONCATENATION, PACK and UNPACK."""

from __future__ import annotations

import math

from delegraph import Rejection, Tensor
from delegraph.arithmetic import normalized_axis, requantisation_table
from delegraph_numba_cpu.instructions.moves import RECODE
from delegraph_numba_cpu.lowering.moves.moves import Part, move, tiles_for
from delegraph_numba_cpu.lowering.moves.moves_checks import (
    FEATURES,
    NUMBERS,
    WITH_HALVES,
    check_moved,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def check_concatenation(call: Call) -> Rejection | None:
    """Return a rejection unless the node only moves elements, without an activation."""
    if call.options.fused_activation_function:
        return Rejection("activation", expected="no fused activation function")
    return check_moved(call)


def lower_concatenation(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program kernel calls that copy each input to its place in the output.

    A table converts the values of uint8 inputs whose scale differs from the output's.
    """
    y = Part.of(builder, call.output())
    axis = normalized_axis(int(call.options.axis), y.array.ndim)
    lead = (slice(None),) * axis
    start = 0
    for i in range(len(call.node.inputs)):
        x = call.input(i)
        end = start + (x.shape[axis] if x.shape else 1)
        part = y[(*lead, slice(start, end))]
        start = end
        if x.type.name == "UINT8" and _differs(x, call.output()):
            _recode(call, builder, x, part, axis)
        else:
            source = Part.of(builder, x)
            move(builder, source.seen(source.array.reshape(part.array.shape)), part)


def _differs(x: Tensor, y: Tensor) -> bool:
    return (x.scale, x.zero_point) != (y.scale, y.zero_point)


def _recode(call: Call, builder: ProgramBuilder, x: Tensor, part: Part, axis: int) -> None:
    """Add a kernel call that converts the uint8 values *x* to the output's scale, by a table.

    *part* is their place in the output, and *axis* that along which inputs are joined.
    """
    if not part.array.size:
        return
    table = requantisation_table(x, call.output())
    assert table is not None
    runs = math.prod(x.shape[:axis])
    builder.emit(
        RECODE,
        tiles_for(builder, 16 * x.bytes, runs),  # a look-up takes as long as copying 16 bytes
        source=builder.tensor(x.index),
        target=part.start,
        table=builder.constant(table),
        run=math.prod(x.shape[axis:]),
        runs=runs,
        step=math.prod(call.output().shape[axis:]),
    )


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
        "CONCATENATION": Operator(
            check_concatenation, lower_concatenation, (*WITH_HALVES, "UINT32"), FEATURES
        ),
        "PACK": Operator(check_moved, lower_pack, (*NUMBERS, "UINT32"), FEATURES),
        "UNPACK": Operator(check_moved, lower_unpack, UNPACKED, FEATURES),
    }
)
