"""Claims and lowering of FILL and ZEROS_LIKE."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic import integers
from delegraph_numba_cpu.lowering.checks import require_asked
from delegraph_numba_cpu.lowering.moves.moves import Part, fill, move
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, check_moved, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder


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
        "FILL": Operator(move_check(0, inputs=2), lower_fill, TYPES, FEATURES),
        "ZEROS_LIKE": Operator(
            check_moved, lower_zeros_like, ("FLOAT32", "INT32", "INT64"), FEATURES
        ),
    }
)
