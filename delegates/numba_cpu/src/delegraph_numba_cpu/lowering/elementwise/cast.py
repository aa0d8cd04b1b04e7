"""Claims and lowering of CAST."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection
from delegraph_numba_cpu.instructions.elementwise import Operation
from delegraph_numba_cpu.lowering.checks import check_shapes
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import (
    PAIR_FEATURES,
    emit_operation,
)
from delegraph_numba_cpu.lowering.moves.moves import share_or_copy
from delegraph_numba_cpu.lowering.moves.moves_checks import NUMBERS
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder

_LARGEST_BELOW = float(np.nextafter(np.float32(2**31), np.float32(0)))

CASTS: dict[tuple[str, str], tuple[int, tuple[float, ...]]] = {
    ("FLOAT32", "INT32"): (
        Operation.FLOAT32_TO_INT32,
        (-(2.0**31), _LARGEST_BELOW, 2**31 - 1),
    ),
    ("FLOAT32", "INT8"): (Operation.FLOAT32_TO_8_BIT, (-128.0, 127.0, 127)),
    ("FLOAT32", "UINT8"): (Operation.FLOAT32_TO_8_BIT, (0.0, 255.0, 255)),
    ("FLOAT32", "BOOL"): (Operation.FLOAT32_TO_BOOL, ()),
    ("FLOAT16", "FLOAT32"): (Operation.DEQUANTIZE_FLOAT16, ()),
    ("INT8", "FLOAT32"): (Operation.DEQUANTIZE_INT8, (1.0, 0.0)),
    ("UINT8", "FLOAT32"): (Operation.DEQUANTIZE_UINT8, (1.0, 0.0)),
    ("BOOL", "FLOAT32"): (Operation.DEQUANTIZE_UINT8, (1.0, 0.0)),
    ("INT16", "FLOAT32"): (Operation.DEQUANTIZE_INT16, (1.0, 0.0)),
    ("INT32", "FLOAT32"): (Operation.INT32_TO_FLOAT32, ()),
    ("INT32", "INT64"): (Operation.INT32_TO_INT64, ()),
    ("INT32", "INT8"): (Operation.INT32_TO_8_BIT, ()),
    ("INT32", "UINT8"): (Operation.INT32_TO_8_BIT, ()),
    ("INT64", "FLOAT32"): (Operation.INT64_TO_FLOAT32, ()),
    ("INT64", "INT32"): (Operation.INT64_TO_INT32, ()),
    ("INT8", "INT32"): (Operation.INT8_TO_INT32, ()),
    ("UINT8", "INT32"): (Operation.UINT8_TO_INT32, ()),
    ("BOOL", "INT32"): (Operation.UINT8_TO_INT32, ()),
}
"""Mapping from input and output type to the operation and parameters of the conversion."""

_COPIES = tuple((name, name) for name in NUMBERS)
"""Types of conversions that change no value."""


def check_cast(call: Call) -> Rejection | None:
    """Return a rejection unless the conversion is in :data:`CASTS` or is a copy."""
    types = call.input(0).type.name, call.output().type.name
    if types not in CASTS and types not in _COPIES:
        targets = (target for source, target in (*CASTS, *_COPIES) if source == types[0])
        expected = " or ".join(targets)
        return Rejection("dtype", actual=types[1], expected=expected, tensor=call.output().index)
    return check_shapes(call, 1)


def lower_cast(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that converts each element to the output's type.

    An output of the input's type shares the input's memory where it can.
    """
    types = call.input(0).type.name, call.output().type.name
    if types in _COPIES:
        share_or_copy(builder, call.input(0), call.output())
        return
    operation, parameters = CASTS[types]
    emit_operation(call, builder, operation, parameters)


CAST = Operator(
    check_cast,
    lower_cast,
    tuple(dict.fromkeys(name for pair in CASTS for name in pair)),
    (*PAIR_FEATURES, "extreme-values"),
)

register({"CAST": CAST})
