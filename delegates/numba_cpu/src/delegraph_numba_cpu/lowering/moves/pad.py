"""Claims and lowering of PAD, PADV2 and MIRROR_PAD."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import integers
from delegraph.errors import OperatorError
from delegraph_numba_cpu.lowering.moves.moves import Part, fill, move, pick
from delegraph_numba_cpu.lowering.moves.moves_checks import FEATURES, TYPES, WITH_HALVES, move_check
from delegraph_numba_cpu.lowering.registry import Call, Operator, register
from delegraph_numba_cpu.program.builder import ProgramBuilder

QUANTIZED = ("UINT8", "INT8", "INT16")


def lower_pad(call: Call, builder: ProgramBuilder) -> None:
    """Add kernel calls that copy the input to the output's interior and fill the border."""
    x, y = Part.of(builder, call.input(0)), Part.of(builder, call.output())
    pads = _pads(call)
    interior = tuple(
        slice(before, before + size) for size, (before, _) in zip(x.array.shape, pads, strict=True)
    )
    value = _value(call)
    for axis, (before, _) in enumerate(pads):
        for border in (slice(0, before), slice(before + x.array.shape[axis], None)):
            fill(builder, y[(*interior[:axis], border)], value)
    move(builder, x, y[(*interior, ...)])


def _pads(call: Call) -> list[tuple[int, int]]:
    """Return the padding before and after the input along each axis.

    Raises:
        OperatorError: a padding is negative, or contradicts the output's shape.
    """
    flat = integers(call.input(1))
    pads = list(zip(flat[::2], flat[1::2], strict=True))
    sizes = (size + sum(pad) for size, pad in zip(call.input(0).shape, pads, strict=True))
    if min(flat, default=0) < 0 or tuple(sizes) != call.output().shape:
        raise OperatorError(f"paddings are {flat}, the output is {list(call.output().shape)}")
    return pads


def _value(call: Call) -> NDArray[Any]:
    """Return the value of the padding, a scalar of the output's type."""
    given, y = call.optional_input(2), call.output()
    if given is not None:
        return np.array(given.data.reshape(-1)[0], y.dtype)
    return np.array(y.zero_point if y.type.name in QUANTIZED else 0, y.dtype)


def lower_mirror_pad(call: Call, builder: ProgramBuilder) -> None:
    """Add a kernel call that copies each output row from its mirrored position in the input."""
    x, pads = call.input(0), _pads(call)
    if 0 in call.output().shape:
        return
    depth = max((axis + 1 for axis, pad in enumerate(pads) if any(pad)), default=1)
    mode = "symmetric" if int(call.options.mode) == 1 else "reflect"
    strides = Part.of(builder, x).array.strides
    places = [
        np.pad(np.arange(size), pad, mode=mode) * stride  # type: ignore[call-overload]  # a str
        for size, pad, stride in zip(x.shape[:depth], pads, strides, strict=False)
    ]
    rows = np.zeros(1, np.int64)
    for place in places[:-1]:
        rows = np.add.outer(rows, place).reshape(-1)
    run = strides[depth - 1] if places else x.bytes
    pick(call, builder, rows, places[-1] if places else np.zeros(1, np.int64), run)


register(
    {
        "PAD": Operator(move_check(1, 2), lower_pad, WITH_HALVES, FEATURES),
        "PADV2": Operator(move_check(1, 2), lower_pad, WITH_HALVES, FEATURES),
        "MIRROR_PAD": Operator(move_check(1), lower_mirror_pad, TYPES, FEATURES),
    }
)
