"""Plain integers: INT32 arithmetic, comparisons, SELECT and CAST, element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from delegraph import Rejection, Tensor
from delegraph.arithmetic.activation import float_activation_range
from delegraph_numba_cpu.blocks.elementwise import Operation
from delegraph_numba_cpu.operators.chains import Chain
from delegraph_numba_cpu.operators.elementwise import activation_of, check_shapes
from delegraph_numba_cpu.operators.registry import (
    Call,
    Operator,
    check_types,
    first_rejection,
    register,
    register_variants,
)
from delegraph_numba_cpu.program import ProgramBuilder

FEATURES = ("activation", "broadcast", "computed-weights", "empty", "many-dims", "scalar",
            "dynamic-shapes")  # fmt: skip

ARITHMETIC = ("ADD", "SUB", "MUL")
EXTREMES = ("MAXIMUM", "MINIMUM")
COMPARED = ("FLOAT32", "INT32", "INT64")
COMPARISONS = {
    "EQUAL": ("EQUAL", False),
    "NOT_EQUAL": ("NOT_EQUAL", False),
    "LESS": ("LESS", False),
    "LESS_EQUAL": ("LESS_EQUAL", False),
    "GREATER": ("LESS", True),
    "GREATER_EQUAL": ("LESS_EQUAL", True),
}
"""What a comparison is computed by, and whether its operands change places."""

SELECTED_TYPES = ("BOOL", "FLOAT32", "INT8", "UINT8", "INT32", "INT64")
SELECTED = {1: Operation.SELECT_8_BIT, 4: Operation.SELECT_32_BIT, 8: Operation.SELECT_64_BIT}

_LARGEST_BELOW = float(np.nextafter(np.float32(2**31), np.float32(0)))

CASTS: dict[tuple[str, str], tuple[Operation, tuple[float, ...]]] = {
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
"""Operation and parameters of a conversion, by the types."""


def check_arithmetic(call: Call) -> Rejection | None:
    """Let pass INT32."""
    return first_rejection(check_types(call, "INT32"), check_shapes(call, 2))


def lower_arithmetic(call: Call, builder: ProgramBuilder) -> None:
    """Emit a chain of one operator; results are limited after they have wrapped."""
    limits: tuple[int, ...] = ()
    if call.name in ARITHMETIC:
        info = np.iinfo(np.int32)
        low, high = float_activation_range(activation_of(call))
        limits = int(max(low, info.min)), int(min(high, info.max))
    _emit(call, builder, Operation[f"{call.name}_INT32"], call.node.inputs, limits)


def check_comparison(call: Call) -> Rejection | None:
    """Let pass two tensors of one type."""
    a, b = call.input(0), call.input(1)
    if a.type is not b.type:
        return Rejection("dtype", actual=b.type.name, expected=a.type.name, tensor=b.index)
    return check_shapes(call, 2)


def lower_comparison(call: Call, builder: ProgramBuilder) -> None:
    """Emit a chain of one operator."""
    name, is_turned = COMPARISONS[call.name]
    inputs = call.node.inputs[::-1] if is_turned else call.node.inputs
    _emit(call, builder, Operation[f"{name}_{call.input(0).type.name}"], inputs)


def check_select(call: Call) -> Rejection | None:
    """Let pass elements of 1, 4 and 8 bytes."""
    return first_rejection(check_types(call, *SELECTED_TYPES), check_shapes(call, 3))


def lower_select(call: Call, builder: ProgramBuilder) -> None:
    """Emit a chain of one operator. The condition of SELECT may be one along the first axis."""
    condition, a, b = (call.input(i) for i in range(3))
    y = call.output()
    chain = Chain(y.shape)
    trailing = len(y.shape) - len(condition.shape) if call.name == "SELECT" else 0
    mask = _source(builder, chain, condition, max(trailing, 0))
    operands = [mask, _source(builder, chain, a), _source(builder, chain, b)]
    chain.step(SELECTED[a.dtype.itemsize], operands)
    chain.emit(builder, builder.tensor(y.index), y.dtype.itemsize)


def check_cast(call: Call) -> Rejection | None:
    """Let pass the conversions of :data:`CASTS`."""
    types = call.input(0).type.name, call.output().type.name
    if types not in CASTS:
        expected = " or ".join(target for source, target in CASTS if source == types[0])
        return Rejection("dtype", actual=types[1], expected=expected, tensor=call.output().index)
    return check_shapes(call, 1)


def lower_cast(call: Call, builder: ProgramBuilder) -> None:
    """Emit a chain of one operator."""
    operation, parameters = CASTS[call.input(0).type.name, call.output().type.name]
    _emit(call, builder, operation, call.node.inputs, parameters)


def _emit(
    call: Call,
    builder: ProgramBuilder,
    operation: Operation,
    inputs: Sequence[int],
    parameters: Sequence[float] = (),
) -> None:
    y = call.output()
    chain = Chain(y.shape)
    operands = [_source(builder, chain, call.context.tensors[index]) for index in inputs]
    chain.step(operation, operands, *parameters)
    chain.emit(builder, builder.tensor(y.index), y.dtype.itemsize)


def _source(builder: ProgramBuilder, chain: Chain, tensor: Tensor, trailing: int = 0) -> int:
    """Return the operand that stands for a tensor, with so many more dimensions of 1."""
    shape = (*tensor.shape, *(1,) * trailing)
    if math.prod(shape) == 1:
        shape = ()  # the output's rank may be lower
    return chain.source(builder.tensor(tensor.index), shape, tensor.dtype.itemsize)


register_variants(
    "INT32",
    dict.fromkeys(
        (*ARITHMETIC, *EXTREMES),
        Operator(check_arithmetic, lower_arithmetic, ("INT32",), FEATURES),
    ),
)
for _type in COMPARED:
    _features = (*FEATURES, "extreme-values") if _type == "FLOAT32" else FEATURES
    _operator = Operator(check_comparison, lower_comparison, (_type, "BOOL"), _features)
    register_variants(_type, dict.fromkeys(COMPARISONS, _operator))

SELECT = Operator(
    check_select,
    lower_select,
    SELECTED_TYPES,
    (*FEATURES, "extreme-values"),
)
CAST = Operator(
    check_cast,
    lower_cast,
    tuple(dict.fromkeys(name for pair in CASTS for name in pair)),
    (*FEATURES, "extreme-values"),
)
register({"SELECT": SELECT, "SELECT_V2": SELECT, "CAST": CAST})
