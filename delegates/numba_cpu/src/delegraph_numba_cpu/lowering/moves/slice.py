"""Claims and lowering of SLICE."""

from __future__ import annotations

from delegraph.arithmetic import integers
from delegraph.errors import OperatorError
from delegraph_numba_cpu.lowering.checks import require_asked
from delegraph_numba_cpu.lowering.moves.moves import Part, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, move_check
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


register({"SLICE": Operator(move_check(1, 2), lower_slice, TYPES, FEATURES)})
