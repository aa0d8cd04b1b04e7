"""Integer operators of one operand: a table of their results, looked up."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection
from delegraph.errors import OperatorError
from delegraph.operators.registration import Numerics
from delegraph.schema.enums import TensorType
from delegraph_numba_cpu.blocks.elementwise import Operation
from delegraph_numba_cpu.operators.chains import Chain
from delegraph_numba_cpu.operators.elementwise import check_shapes
from delegraph_numba_cpu.operators.evaluation import evaluate, every_value
from delegraph_numba_cpu.operators.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program import ProgramBuilder

UNSIGNED = (
    "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU", "HARD_SWISH", "LOGISTIC", "TANH",
    "GELU",
)  # fmt: skip
SIGNED = (*UNSIGNED, "ELU", "EXP", "LOG", "ABS", "NEG")
SIXTEEN_BIT = ("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "GELU", "EXP", "LOG", "ABS")

_OPERATIONS = {
    (1, 1): Operation.LOOKUP,
    (2, 2): Operation.LOOKUP_INT16,
    (2, 1): Operation.LOOKUP_INT16_IN_8_BIT,
}

REQUANTIZE_LANES = 16
"""Elements that the official vector loop for 8-bit integers handles at a time."""

FEATURES = ("empty", "many-dims", "scalar", "dynamic-shapes")


def check_lookup(call: Call) -> Rejection | None:
    """Let pass what the core's kernel takes."""
    rejection = check_shapes(call, 1)
    if rejection is None:
        try:
            table(call)
        except OperatorError as error:
            rejection = Rejection("parameters", actual=str(error))
    return rejection


def table(call: Call, numerics: Numerics | None = None) -> NDArray[np.generic]:
    """Return the operator's results for every input, in the order of their bits.

    Raises:
        OperatorError: the core's kernel refuses the node.
    """
    return evaluate(call, [every_value(call.input(0).dtype)], numerics)


def lower_lookup(call: Call, builder: ProgramBuilder) -> None:
    """Emit a chain of one look-up."""
    _emit(call, builder, table(call), 0, math.prod(call.output().shape))


def lower_requantize(call: Call, builder: ProgramBuilder) -> None:
    """Emit look-ups for what the official vector loop computes, and for the rest."""
    size = math.prod(call.output().shape)
    x, y = call.input(0), call.output()
    end = size
    if x.dtype.itemsize == y.dtype.itemsize == 1:
        end = size - size % REQUANTIZE_LANES
    _emit(call, builder, table(call), 0, end)
    _emit(call, builder, table(call, "reference"), end, size)


def _emit(
    call: Call, builder: ProgramBuilder, values: NDArray[np.generic], start: int, end: int
) -> None:
    x, y = call.input(0), call.output()
    sizes = x.dtype.itemsize, y.dtype.itemsize
    chain = Chain((end - start,))
    source = chain.source(builder.tensor(x.index) + start * sizes[0], chain.shape, sizes[0])
    chain.step(_OPERATIONS[sizes], [source], values)
    chain.emit(builder, builder.tensor(y.index) + start * sizes[1], sizes[1])


def check_requantize(call: Call) -> Rejection | None:
    """Let pass 8- and 16-bit integers, if the result is not wider."""
    x, y = call.input(0), call.output()
    if y.type.name not in ("INT8", "UINT8", "INT16") or y.dtype.itemsize > x.dtype.itemsize:
        expected = "INT8 or UINT8" + " or INT16" * (x.type is TensorType.INT16)
        return Rejection("dtype", actual=y.type.name, expected=expected, tensor=y.index)
    return check_lookup(call)


_REQUANTIZE = ("INT8", "UINT8"), ("INT8", "UINT8"), ("INT8", "INT16")

for (_type, _ops), _types in zip(
    (("INT8", SIGNED), ("UINT8", UNSIGNED), ("INT16", SIXTEEN_BIT)), _REQUANTIZE, strict=True
):
    _lookup = Operator(check_lookup, lower_lookup, (_type,), FEATURES)
    _requantize = Operator(check_requantize, lower_requantize, _types, FEATURES)
    register_variants(_type, {**dict.fromkeys(_ops, _lookup), "QUANTIZE": _requantize})
