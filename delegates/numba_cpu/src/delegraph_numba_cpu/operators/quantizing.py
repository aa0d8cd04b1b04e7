"""QUANTIZE of float32 and DEQUANTIZE."""

from __future__ import annotations

import math

import numpy as np

from delegraph import Rejection, Tensor
from delegraph_numba_cpu.blocks.elementwise import Operation
from delegraph_numba_cpu.operators.chains import Chain
from delegraph_numba_cpu.operators.elementwise import check_shapes
from delegraph_numba_cpu.operators.registry import (
    Call,
    Operator,
    first_rejection,
    register_variants,
)
from delegraph_numba_cpu.operators.widened import is_widened
from delegraph_numba_cpu.program import ProgramBuilder

QUANTIZE = {
    "INT8": (Operation.QUANTIZE_INT8, Operation.QUANTIZE_BY_DIVISION_INT8),
    "UINT8": (Operation.QUANTIZE_UINT8, Operation.QUANTIZE_BY_DIVISION_UINT8),
    "INT16": (Operation.QUANTIZE_INT16, Operation.QUANTIZE_BY_DIVISION_INT16),
}
DEQUANTIZE = {
    "INT8": Operation.DEQUANTIZE_INT8,
    "UINT8": Operation.DEQUANTIZE_UINT8,
    "INT16": Operation.DEQUANTIZE_INT16,
    "FLOAT16": Operation.DEQUANTIZE_FLOAT16,
}

QUANTIZE_LANES = 8
"""Elements that the official vector loop handles at a time; it divides what is left over."""

FEATURES = ("empty", "many-dims", "scalar", "dynamic-shapes")


def check_quantize(call: Call) -> Rejection | None:
    """Let pass float32 into 8 and 16 bits, with one scale."""
    y = call.output()
    if y.type.name not in QUANTIZE:
        expected = " or ".join(QUANTIZE)
        return Rejection("dtype", actual=y.type.name, expected=expected, tensor=y.index)
    return first_rejection(_one_scale(y), check_shapes(call, 1))


def lower_quantize(call: Call, builder: ProgramBuilder) -> None:
    """Emit a chain for what the official vector loop computes, and one for the rest."""
    x, y = call.input(0), call.output()
    size = math.prod(y.shape)
    end = size - size % QUANTIZE_LANES if call.context.numerics == "builtin" else 0
    limits = np.iinfo(y.dtype)
    low, high, zero = int(limits.min), int(limits.max), y.zero_point
    scale = np.float32(y.scale)
    vector, rest = QUANTIZE[y.type.name]
    for operation, start, stop, parameters in (
        (
            vector,
            0,
            end,
            (float(np.float32(1) / scale), float(low - zero), float(high - zero), zero),
        ),
        (rest, end, size, (float(scale), low, high, zero)),
    ):
        chain = Chain((stop - start,))
        source = chain.source(builder.tensor(x.index) + 4 * start, chain.shape, 4)
        chain.step(operation, [source], *parameters)
        itemsize = y.dtype.itemsize
        chain.emit(builder, builder.tensor(y.index) + itemsize * start, itemsize)


def check_dequantize(call: Call) -> Rejection | None:
    """Let pass stored integers with one scale, and float16, into float32; no constants."""
    x, y = call.input(0), call.output()
    if x.is_constant or is_widened(call, x.index):
        return Rejection("constant", expected="a computed input", tensor=x.index)
    if y.type.name != "FLOAT32":
        return Rejection("dtype", actual=y.type.name, expected="FLOAT32", tensor=y.index)
    scales = None if x.type.name == "FLOAT16" else _one_scale(x)
    return first_rejection(scales, check_shapes(call, 1))


def lower_dequantize(call: Call, builder: ProgramBuilder) -> None:
    """Emit a chain of one operator."""
    x, y = call.input(0), call.output()
    chain = Chain(y.shape)
    itemsize = x.dtype.itemsize
    source = chain.source(builder.tensor(x.index), x.shape, itemsize)
    scale = np.float32(x.scale)
    parameters = float(scale), float(np.float32(-x.zero_point) * scale)
    is_float = x.type.name == "FLOAT16"
    chain.step(DEQUANTIZE[x.type.name], [source], *(() if is_float else parameters))
    chain.emit(builder, builder.tensor(y.index), 4)


def _one_scale(tensor: Tensor) -> Rejection | None:
    """Return a rejection for any other number of scales."""
    quantization = tensor.quantization
    scales = 0 if quantization is None else len(quantization.scales)
    if scales == 1 and quantization is not None and not quantization.block_size:
        return None
    return Rejection("scales", actual=scales, expected=1, tensor=tensor.index)


register_variants(
    "FLOAT32",
    {"QUANTIZE": Operator(check_quantize, lower_quantize, ("FLOAT32", *QUANTIZE), FEATURES)},
)
for _type in DEQUANTIZE:
    _operator = Operator(check_dequantize, lower_dequantize, (_type, "FLOAT32"), FEATURES)
    register_variants(_type, {"DEQUANTIZE": _operator})
