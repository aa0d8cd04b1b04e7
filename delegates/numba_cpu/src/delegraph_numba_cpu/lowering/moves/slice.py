"""Claims and lowering of SLICE, STRIDED_SLICE, SPLIT and SPLIT_V, which copy blocks."""

from __future__ import annotations

from delegraph import Tensor
from delegraph.arithmetic import Masks, integers, normalized_axis, resolved
from delegraph.errors import OperatorError
from delegraph_numba_cpu.lowering.checks import require_asked
from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, NUMBERS, TYPES, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_slice(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies a block of the input, at its begin position.

    Raises:
        OperatorError: a position before the first, or a size that the output does not have.
    """
    y = Part.of(builder, call.output())
    begins, sizes = integers(call.input(1)), integers(call.input(2))
    given = zip(sizes, y.array.shape, strict=True)
    require_asked("size", (n if size == -1 else size for size, n in given), y.array.shape)
    if min(begins, default=0) < 0:
        raise OperatorError(f"the block begins at {begins}, expected nothing below 0")
    block = tuple(slice(b, b + n) for b, n in zip(begins, y.array.shape, strict=True))
    move(builder, Part.of(builder, call.input(0))[(*block, ...)], y)


def lower_strided_slice(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies the elements that the strided slice selects."""
    x, y = call.input(0), Part.of(builder, call.output())
    begins, ends, strides = (integers(call.input(i)) for i in (1, 2, 3))
    index, _ = resolved(x.shape, begins, ends, strides, Masks.of(call.options))
    move(builder, Part.of(builder, x)[index], y)


def lower_split(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program kernel calls that copy each part of the input to its output."""
    _split(call, builder, call.input(1), _axis(call, 0, call.input(1)))


def lower_split_v(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls that copy each part of the input to its output; an input gives the sizes.

    Raises:
        OperatorError: the sizes, or their number, differ from the node's parameters.
    """
    axis = _axis(call, 2, call.input(0))
    found = [call.output(i).shape[axis] for i in range(len(call.node.outputs))]
    sizes = integers(call.input(1))
    require_asked("number of outputs", [len(sizes)], [len(found)])
    given = zip(sizes, found, strict=True)
    require_asked("sizes", (n if size == -1 else size for size, n in given), found)
    _split(call, builder, call.input(0), axis)


def _axis(call: Call, position: int, x: Tensor) -> int:
    """Return the axis of *x* that input *position* names."""
    return normalized_axis(integers(call.input(position))[0], len(x.shape))


def _split(call: Call, builder: ProgramBuilder, data: Tensor, axis: int) -> None:
    x, lead, start = Part.of(builder, data), (slice(None),) * axis, 0
    for i in range(len(call.node.outputs)):
        y = Part.of(builder, call.output(i))
        end = start + y.array.shape[axis]
        move(builder, x[(*lead, slice(start, end))], y)
        start = end


register(
    {
        "SLICE": Operator(move_check(1, 2), lower_slice, TYPES, FEATURES),
        "STRIDED_SLICE": Operator(move_check(1, 2, 3), lower_strided_slice, TYPES, FEATURES),
        "SPLIT": Operator(move_check(0, inputs=2), lower_split, NUMBERS, FEATURES),
        "SPLIT_V": Operator(move_check(1, 2, inputs=3), lower_split_v, NUMBERS, FEATURES),
    }
)
