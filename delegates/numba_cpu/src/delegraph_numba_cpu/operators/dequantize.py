"""DEQUANTIZE."""

from __future__ import annotations

import numpy as np

from delegraph import Rejection
from delegraph_numba_cpu.blocks.elementwise import Operation
from delegraph_numba_cpu.operators.chains import emit_operation
from delegraph_numba_cpu.operators.checks import check_one_scale, check_shapes, first_rejection
from delegraph_numba_cpu.operators.registry import Call, Operator, register_variants
from delegraph_numba_cpu.operators.widened import is_widened
from delegraph_numba_cpu.program import ProgramBuilder

DEQUANTIZE = {
    "INT8": Operation.DEQUANTIZE_INT8,
    "UINT8": Operation.DEQUANTIZE_UINT8,
    "INT16": Operation.DEQUANTIZE_INT16,
    "FLOAT16": Operation.DEQUANTIZE_FLOAT16,
}

FEATURES = ("empty", "many-dims", "scalar", "dynamic-shapes")


def check_dequantize(call: Call) -> Rejection | None:
    """Reject all but stored integers with one scale, and float16, into float32; no constants."""
    x, y = call.input(0), call.output()
    if x.is_constant or is_widened(call, x.index):
        return Rejection("constant", expected="a computed input", tensor=x.index)
    if y.type.name != "FLOAT32":
        return Rejection("dtype", actual=y.type.name, expected="FLOAT32", tensor=y.index)
    if x.type.name == "INT16" and x.zero_point:
        return Rejection("zero-point", actual=x.zero_point, expected=0, tensor=x.index)
    scales = None if x.type.name == "FLOAT16" else check_one_scale(x)
    return first_rejection(scales, check_shapes(call, 1))


def lower_dequantize(call: Call, builder: ProgramBuilder) -> None:
    """Emit a chain of one operator."""
    x = call.input(0)
    scale = np.float32(x.scale)
    parameters = float(scale), float(np.float32(-x.zero_point) * scale)
    is_float = x.type.name == "FLOAT16"
    operation = DEQUANTIZE[x.type.name]
    emit_operation(call, builder, operation, () if is_float else parameters)


for _type in DEQUANTIZE:
    _roles = (("input", (_type,)), ("output", ("FLOAT32",)))
    _operator = Operator(check_dequantize, lower_dequantize, features=FEATURES, roles=_roles)
    register_variants(_type, {"DEQUANTIZE": _operator})
