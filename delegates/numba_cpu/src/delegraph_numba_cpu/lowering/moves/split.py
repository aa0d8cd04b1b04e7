"""Claims and lowering of SPLIT and SPLIT_V."""

from __future__ import annotations

from delegraph.arithmetic import integers, normalized_axis
from delegraph_numba_cpu.lowering.checks import require_asked
from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, NUMBERS, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_split(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program kernel calls that copy each part of the input to its output."""
    _split(call, builder, data=1, axis=integers(call.input(0))[0])


def lower_split_v(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls that copy each part of the input to its output; an input gives the sizes.

    Raises:
        OperatorError: the sizes, or their number, differ from the node's parameters.
    """
    axis = normalized_axis(integers(call.input(2))[0], len(call.input(0).shape))
    found = [call.output(i).shape[axis] for i in range(len(call.node.outputs))]
    sizes = integers(call.input(1))
    require_asked("number of outputs", [len(sizes)], [len(found)])
    given = zip(sizes, found, strict=True)
    require_asked("sizes", (n if size == -1 else size for size, n in given), found)
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


register(
    {
        "SPLIT": Operator(move_check(0, inputs=2), lower_split, NUMBERS, FEATURES),
        "SPLIT_V": Operator(move_check(1, 2, inputs=3), lower_split_v, NUMBERS, FEATURES),
    }
)
