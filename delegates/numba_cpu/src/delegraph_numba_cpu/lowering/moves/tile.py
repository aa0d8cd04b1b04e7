"""Claims and lowering of TILE, BROADCAST_TO, FILL and ZEROS_LIKE."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic import integers
from delegraph_numba_cpu.lowering.checks import require_asked
from delegraph_numba_cpu.lowering.moves.moves import Part, fill, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, check_moved, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower_tile(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies the input as often as the multiples say.

    The output is treated as ``[m0, d0, m1, d1, ...]``: for each axis the multiple, then the input's
    dimension.

    Raises:
        OperatorError: the output's shape contradicts the multiples.
    """
    x, y = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    times, shape = integers(call.input(1)), x.array.shape
    sizes = (max(m, 0) * n for m, n in zip(times, shape, strict=True))
    require_asked("multiples", sizes, y.array.shape)
    split = [n for pair in zip(times, shape, strict=True) for n in pair]
    source = x.array.reshape([n for size in shape for n in (1, size)])
    if y.array.size:
        move(builder, x.seen(np.broadcast_to(source, split)), y.seen(y.array.reshape(split)))


def lower_broadcast_to(call: Call, builder: ProgramBuilder) -> None:
    """Add a kernel call that copies the input to all its repetitions in the output (BROADCAST_TO).

    Raises:
        OperatorError: the output does not have the requested shape.
    """
    x, y = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    require_asked("shape", integers(call.input(1)), y.array.shape)
    move(builder, x.seen(np.broadcast_to(x.array, y.array.shape)), y)


def lower_fill(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that copies a scalar to each element of the output.

    Raises:
        OperatorError: the output does not have the requested dimensions.
    """
    require_asked("dimensions", integers(call.input(0)), call.output().shape)
    value, y = Part.of(builder, call.input(1)), Part.of(builder, call.output())
    move(builder, value.seen(np.broadcast_to(value.array, y.array.shape)), y)


def lower_zeros_like(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that sets all elements of the output to zero."""
    fill(builder, Part.of(builder, call.output()), np.zeros((), call.output().dtype))


register(
    {
        "TILE": Operator(move_check(1), lower_tile, TYPES, FEATURES),
        "BROADCAST_TO": Operator(move_check(1), lower_broadcast_to, TYPES, FEATURES),
        "FILL": Operator(move_check(0, inputs=2), lower_fill, TYPES, FEATURES),
        "ZEROS_LIKE": Operator(
            check_moved, lower_zeros_like, ("FLOAT32", "INT32", "INT64"), FEATURES
        ),
    }
)
