"""Operators whose outputs are parts of their input."""

from __future__ import annotations

from delegraph import Rejection
from delegraph.arithmetic.output_shape import integers, normalized_axis
from delegraph.arithmetic.slice_index import Masks, resolved
from delegraph_numba_cpu.operators.moves import FEATURES, NUMBERS, TYPES, WITH_HALVES, check_moved
from delegraph_numba_cpu.operators.places import Part, move
from delegraph_numba_cpu.operators.registry import Call, Operator, register
from delegraph_numba_cpu.program import ProgramBuilder


def check_slice(call: Call) -> Rejection | None:
    """Let pass constant beginnings and sizes."""
    return check_moved(call, parameters=(1, 2))


def lower_slice(call: Call, builder: ProgramBuilder) -> None:
    """Move the block that begins at the given position."""
    y = Part.of(builder, call.output())
    begins = integers(call.input(1))
    block = tuple(slice(b, b + n) for b, n in zip(begins, y.array.shape, strict=True))
    move(builder, Part.of(builder, call.input(0))[(*block, ...)], y)


def check_strided_slice(call: Call) -> Rejection | None:
    """Let pass constant beginnings, ends and strides."""
    return check_moved(call, parameters=(1, 2, 3))


def lower_strided_slice(call: Call, builder: ProgramBuilder) -> None:
    """Move what the indices select."""
    x, y = call.input(0), Part.of(builder, call.output())
    begins, ends, strides = (integers(call.input(i)) for i in (1, 2, 3))
    index, _ = resolved(x.shape, begins, ends, strides, Masks.of(call.options))
    move(builder, Part.of(builder, x)[index], y)


def check_split(call: Call) -> Rejection | None:
    """Let pass a constant axis."""
    if len(call.node.inputs) != 2:
        return Rejection("operands", actual=len(call.node.inputs), expected=2)
    return check_moved(call, parameters=(0,))


def lower_split(call: Call, builder: ProgramBuilder) -> None:
    """Move the parts, one after another."""
    _split(call, builder, data=1, axis=integers(call.input(0))[0])


def check_split_v(call: Call) -> Rejection | None:
    """Let pass constant sizes and a constant axis."""
    if len(call.node.inputs) != 3:
        return Rejection("operands", actual=len(call.node.inputs), expected=3)
    return check_moved(call, parameters=(1, 2))


def lower_split_v(call: Call, builder: ProgramBuilder) -> None:
    """Move the parts; the outputs' shapes tell their sizes."""
    _split(call, builder, data=0, axis=integers(call.input(2))[0])


def _split(call: Call, builder: ProgramBuilder, data: int, axis: int) -> None:
    x = Part.of(builder, call.input(data))
    axis = normalized_axis(axis, x.array.ndim)
    lead = (slice(None),) * axis
    start = 0
    for i in range(len(call.node.outputs)):
        y = Part.of(builder, call.output(i))
        end = start + y.array.shape[axis]
        move(builder, x[(*lead, slice(start, end))], y)
        start = end


def lower_unpack(call: Call, builder: ProgramBuilder) -> None:
    """Move each index of the axis to its output."""
    x = Part.of(builder, call.input(0))
    lead = (slice(None),) * normalized_axis(int(call.options.axis), x.array.ndim)
    for i in range(len(call.node.outputs)):
        move(builder, x[(*lead, i, ...)], Part.of(builder, call.output(i)))


UNPACKED = tuple(name for name in WITH_HALVES if name != "INT64")

register(
    {
        "SLICE": Operator(check_slice, lower_slice, TYPES, FEATURES),
        "STRIDED_SLICE": Operator(check_strided_slice, lower_strided_slice, TYPES, FEATURES),
        "SPLIT": Operator(check_split, lower_split, NUMBERS, FEATURES),
        "SPLIT_V": Operator(check_split_v, lower_split_v, NUMBERS, FEATURES),
        "UNPACK": Operator(check_moved, lower_unpack, UNPACKED, FEATURES),
    }
)
