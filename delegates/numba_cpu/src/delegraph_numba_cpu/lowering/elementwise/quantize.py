"""Claims and lowering of QUANTIZE."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection
from delegraph.arithmetic import channel_parameters, quantize_multiplier
from delegraph.schema.enums import TensorType
from delegraph_numba_cpu.instructions.elementwise import Operation
from delegraph_numba_cpu.lowering.checks import (
    check_multiplier,
    check_one_scale,
    check_one_zero_point,
    check_positive_scales,
    check_scales,
    check_shapes,
    check_type,
    first_rejection,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import (
    FEATURES,
    Chain,
    emit_section,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_lookup_tables import (
    check_lookup,
    emit_lookup,
    table,
)
from delegraph_numba_cpu.lowering.evaluation import every_value
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import ProgramBuilder

QUANTIZE = {
    "INT8": (Operation.QUANTIZE_INT8, Operation.QUANTIZE_BY_DIVISION_INT8),
    "UINT8": (Operation.QUANTIZE_UINT8, Operation.QUANTIZE_BY_DIVISION_UINT8),
    "INT16": (Operation.QUANTIZE_INT16, Operation.QUANTIZE_BY_DIVISION_INT16),
}

QUANTIZE_LANES = 8
"""Number of elements that the official vector loop processes at a time."""


def check_quantize(call: Call) -> Rejection | None:
    """Return a rejection unless float32 becomes integers of 8 or 16 bits.

    Scales must be positive, and all zero points equal.
    """
    y = call.output()
    return first_rejection(
        check_type(y, *QUANTIZE),
        check_scales(y, call.input(0).shape),
        check_positive_scales(y),
        check_one_zero_point(y),
        check_shapes(call, 1),
    )


def lower_quantize(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls that quantize float32 values, rounded as by LiteRT.

    LiteRT's vector loop and its loop over the last elements round differently, so each gets a call.
    """
    y = call.output()
    scales, zero_points = channel_parameters(y)
    if scales.ndim:
        _lower_channels(call, builder, scales, int(zero_points.flat[0]))
        return
    size = math.prod(y.shape)
    end = size - size % QUANTIZE_LANES if call.context.numerics == "builtin" else 0
    limits = np.iinfo(y.dtype)
    low, high, zero = int(limits.min), int(limits.max), y.zero_point
    scale = np.float32(y.scale)
    vector, rest = QUANTIZE[y.type.name]
    multiplied = float(np.float32(1) / scale), float(low - zero), float(high - zero), zero
    emit_section(call, builder, vector, multiplied, 0, end)
    emit_section(call, builder, rest, (float(scale), low, high, zero), end, size)


def _lower_channels(
    call: Call, builder: ProgramBuilder, scales: NDArray[np.float32], zero_point: int
) -> None:
    """Add to the program a kernel call that quantizes float32 values with a scale for each channel.

    All channels have the same zero point.
    """
    x, y = call.input(0), call.output()
    limits = np.iinfo(y.dtype)
    chain = Chain(y.shape)
    values = chain.source(builder.tensor(x.index), chain.shape, 4)
    scale = chain.source(builder.constant(scales), scales.shape, 4)
    ratio = chain.step(Operation.DIV, [values, scale], -np.inf, np.inf)
    rounding = QUANTIZE[y.type.name][1]
    chain.step(rounding, [ratio], 1.0, int(limits.min), int(limits.max), zero_point)
    chain.emit(builder, builder.tensor(y.index), y.dtype.itemsize)


REQUANTIZE_LANES = 16
"""Number of elements that the official vector loop for 8-bit integers processes at a time."""


def check_requantize(call: Call) -> Rejection | None:
    """Return a rejection unless integers of 8 or 16 bits get no wider type.

    INT16 to INT32 is accepted, too.
    """
    x, y = call.input(0), call.output()
    if x.type is TensorType.INT16 and y.type is TensorType.INT32:
        return _check_widened(call)
    if y.type.name not in ("INT8", "UINT8", "INT16") or y.dtype.itemsize > x.dtype.itemsize:
        expected = "INT8 or UINT8" + " or INT16 or INT32" * (x.type is TensorType.INT16)
        return Rejection("dtype", actual=y.type.name, expected=expected, tensor=y.index)
    return check_lookup(call)


def _check_widened(call: Call) -> Rejection | None:
    x, y = call.input(0), call.output()
    checks = (check_one_scale, check_positive_scales)
    found = first_rejection(*(check(each) for check in checks for each in (x, y)))
    if found is None:
        found = check_shapes(call, 1)
    if found is None:
        found = check_multiplier(x.scale / y.scale)
    if found is None and y.zero_point:
        found = Rejection("zero-point", actual=y.zero_point, expected=0, tensor=y.index)
    return found


def lower_requantize(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls that convert integers to another scale by look-up tables.

    LiteRT's vector loop and its loop over the last elements round differently, so each gets a call.
    """
    size = math.prod(call.output().shape)
    x, y = call.input(0), call.output()
    if y.type is TensorType.INT32:
        _lower_widened(call, builder)
        return
    end, values = size, table(call)
    if x.dtype.itemsize == y.dtype.itemsize == 1:
        end = size - size % REQUANTIZE_LANES
    factors = _scaling(call, values) if builder.level.vector_bytes == SHUFFLE_BYTES else None
    if factors is None:
        emit_lookup(call, builder, values, 0, end)
    else:
        limits = np.iinfo(y.dtype)
        parameters = *factors, int(limits.min), int(limits.max)
        emit_section(call, builder, SCALED[y.type.name], parameters, 0, end)
    if end < size:
        emit_lookup(call, builder, table(call, "reference"), end, size)


SCALED = {"INT8": Operation.SCALED_INT8, "UINT8": Operation.SCALED_UINT8}

SHUFFLE_BYTES = 32
"""Number of bytes of vectors for which a table of bytes takes longer than a multiplication."""

BIASES = (0.0, 2.0**-20, -(2.0**-20), 2.0**-17, -(2.0**-17))
"""Numbers of which one is added to results before rounding, so that halves are rounded rightly."""


def _scaling(call: Call, wanted: NDArray[np.generic]) -> tuple[float, float] | None:
    """Return a factor and an offset in float32 that give every result; None if there are none.

    Some processors round a product before they add it, others do not. Results must be right in both
    cases. *wanted* has the right result of each value, from :func:`table`.
    """
    x, y = call.input(0), call.output()
    if x.type is not y.type or y.type.name not in SCALED:
        return None
    values, limits = every_value(x.dtype).astype(np.float32), np.iinfo(y.dtype)
    factor = np.float32(x.scale / y.scale)
    for bias in BIASES:
        offset = np.float32(y.zero_point - x.zero_point * (x.scale / y.scale) + bias)
        rounded = values * factor + offset
        fused = (values * np.float64(factor) + np.float64(offset)).astype(np.float32)
        found = [np.rint(each).clip(limits.min, limits.max) for each in (rounded, fused)]
        if all((each == wanted).all() for each in found):
            return float(factor), float(offset)
    return None


def _lower_widened(call: Call, builder: ProgramBuilder) -> None:
    x, y = call.input(0), call.output()
    multiplier, shift = quantize_multiplier(x.scale / y.scale)
    parameters = x.zero_point, max(shift, 0), 0, multiplier, max(-shift, 0)
    emit_section(call, builder, Operation.RESCALE_INT16, parameters, 0, math.prod(y.shape))


REQUANTIZED = {
    "INT8": ("INT8", "UINT8"),
    "UINT8": ("INT8", "UINT8"),
    "INT16": ("INT8", "INT16", "INT32"),
}
"""Mapping from an integer input type to the output types that are claimed."""

_quantize = Operator(
    check_quantize,
    lower_quantize,
    ("FLOAT32",),
    (*FEATURES, "per-channel"),
    roles=(("output", tuple(QUANTIZE)),),
)
register_variants("FLOAT32", {"QUANTIZE": _quantize})
for _type, _types in REQUANTIZED.items():
    _requantize = Operator(
        check_requantize, lower_requantize, (_type,), FEATURES, roles=(("output", _types),)
    )
    register_variants(_type, {"QUANTIZE": _requantize})
