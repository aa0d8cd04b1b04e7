"""Claims and lowering of DEQUANTIZE."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection
from delegraph.arithmetic import channel_parameters
from delegraph_numba_cpu.instructions.elementwise import Operation
from delegraph_numba_cpu.lowering.checks import (
    check_one_scale,
    check_positive_scales,
    check_scales,
    check_shapes,
    check_type,
    first_rejection,
)
from delegraph_numba_cpu.lowering.dequantized_constants import widened_constant
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import (
    FEATURES,
    Chain,
    emit_operation,
)
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import ProgramBuilder

DEQUANTIZE = {
    "INT8": Operation.DEQUANTIZE_INT8,
    "UINT8": Operation.DEQUANTIZE_UINT8,
    "INT16": Operation.DEQUANTIZE_INT16,
    "FLOAT16": Operation.DEQUANTIZE_FLOAT16,
}

PER_CHANNEL = ("INT8", "UINT8")
"""Types that may have a scale for each channel."""


def check_dequantize(call: Call) -> Rejection | None:
    """Return a rejection unless scaled integers or float16 become float32.

    Constants are rejected, too, because the core dequantizes them once.
    """
    x, y = call.input(0), call.output()
    if x.is_constant or widened_constant(call, x.index) is not None:
        return Rejection("folded", "it depends on constants alone: Delegraph computes it once")
    if x.type.name == "INT16" and x.zero_point:
        return Rejection("zero-point", actual=x.zero_point, expected=0, tensor=x.index)
    found = first_rejection(check_type(y, "FLOAT32"), check_shapes(call, 1))
    if found is not None or x.type.name == "FLOAT16":
        return found
    scales = check_scales(x, x.shape) if x.type.name in PER_CHANNEL else check_one_scale(x)
    return first_rejection(scales, check_positive_scales(x))


def lower_dequantize(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that turns quantized integers, or float16, into float32."""
    x = call.input(0)
    scales, zero_points = channel_parameters(x)
    if scales.ndim:
        _lower_channels(call, builder, scales, zero_points.astype(np.float32))
        return
    scale = np.float32(x.scale)
    parameters = float(scale), float(np.float32(-x.zero_point) * scale)
    is_float = x.type.name == "FLOAT16"
    operation = DEQUANTIZE[x.type.name]
    emit_operation(call, builder, operation, () if is_float else parameters)


def _lower_channels(
    call: Call,
    builder: ProgramBuilder,
    scales: NDArray[np.float32],
    zero_points: NDArray[np.float32],
) -> None:
    x, y = call.input(0), call.output()
    chain = Chain(y.shape)
    values = chain.source(builder.tensor(x.index), chain.shape, x.dtype.itemsize)
    values = chain.step(DEQUANTIZE[x.type.name], [values], 1.0, 0.0)
    for operation, constants in ((Operation.SUB, zero_points), (Operation.MUL, scales)):
        if constants.any():
            each = chain.source(builder.constant(constants), constants.shape, 4)
            values = chain.step(operation, [values, each], -np.inf, np.inf)
    chain.emit(builder, builder.tensor(y.index), 4)


for _type in DEQUANTIZE:
    _roles = (("input", (_type,)), ("output", ("FLOAT32",)))
    _features = (*FEATURES, "per-channel") if _type in PER_CHANNEL else FEATURES
    _operator = Operator(check_dequantize, lower_dequantize, features=_features, roles=_roles)
    register_variants(_type, {"DEQUANTIZE": _operator})
