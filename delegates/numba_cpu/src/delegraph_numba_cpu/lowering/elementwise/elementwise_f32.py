"""Element-wise operators on float32, and chains of them fused into one pass over memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from delegraph import Rejection
from delegraph.arithmetic import finite_activation_range
from delegraph.schema.enums import TensorType
from delegraph_numba_cpu.instructions.elementwise import Operation
from delegraph_numba_cpu.lowering.checks import (
    activation_of,
    check_shapes,
    check_types,
    first_rejection,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import PAIR_FEATURES, Chain
from delegraph_numba_cpu.lowering.fusion import Fusion, Partition
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import ProgramBuilder

PAIRS = {
    "ADD": Operation.ADD,
    "SUB": Operation.SUB,
    "MUL": Operation.MUL,
    "DIV": Operation.DIV,
    "MAXIMUM": Operation.MAXIMUM,
    "MINIMUM": Operation.MINIMUM,
    "SQUARED_DIFFERENCE": Operation.SQUARED_DIFFERENCE,
    "PRELU": Operation.PRELU,
}

CLAMPS = {
    "RELU": (0.0, np.inf),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}

FUNCTIONS = {
    "HARD_SWISH": Operation.HARD_SWISH,
    "LOGISTIC": Operation.LOGISTIC,
    "TANH": Operation.TANH,
    "ELU": Operation.ELU,
    "EXP": Operation.EXP,
    "LOG": Operation.LOG,
    "SQRT": Operation.SQRT,
    "RSQRT": Operation.RSQRT,
    "SQUARE": Operation.SQUARE,
    "ABS": Operation.ABS,
    "NEG": Operation.NEG,
    "FLOOR": Operation.FLOOR,
    "CEIL": Operation.CEIL,
    "ROUND": Operation.ROUND,
    "SIGN": Operation.SIGN,
}

FUSED = ("ADD", "SUB", "MUL", "DIV")
"""Operators that may have a fused activation."""

Steps = Callable[[Call, Chain, Sequence[int]], int]
"""Function that adds a node's steps to a chain, and returns the number of their result."""


def _pair(call: Call, chain: Chain, operands: Sequence[int]) -> int:
    if call.name not in FUSED:
        return chain.step(PAIRS[call.name], operands)
    limits = finite_activation_range(activation_of(call))
    return chain.step(PAIRS[call.name], operands, *limits)


def _clamp(call: Call, chain: Chain, operands: Sequence[int]) -> int:
    return chain.step(Operation.CLAMP, operands, *CLAMPS[call.name])


def _function(call: Call, chain: Chain, operands: Sequence[int]) -> int:
    return chain.step(FUNCTIONS[call.name], operands)


def _leaky_relu(call: Call, chain: Chain, operands: Sequence[int]) -> int:
    return chain.step(Operation.LEAKY_RELU, operands, float(call.options.alpha))


def _gelu(call: Call, chain: Chain, operands: Sequence[int]) -> int:
    operation = Operation.GELU_BY_TANH if call.options.approximate else Operation.GELU
    return chain.step(operation, operands)


def _sine(call: Call, chain: Chain, operands: Sequence[int]) -> int:
    # imported here: few models have a sine, and ``fractions`` takes long to import
    from delegraph_numba_cpu.lowering.elementwise.elementwise_sin_cos import quarter_turns

    return chain.step(Operation.SINE, operands, quarter_turns(), int(call.name == "COS"))


STEPS: Mapping[str, Steps] = {
    **dict.fromkeys(PAIRS, _pair),
    **dict.fromkeys(CLAMPS, _clamp),
    **dict.fromkeys(FUNCTIONS, _function),
    **dict.fromkeys(("SIN", "COS"), _sine),
    "LEAKY_RELU": _leaky_relu,
    "GELU": _gelu,
}


def check_float(call: Call) -> Rejection | None:
    """Return a rejection unless all tensors are float32."""
    inputs = 2 if call.name in PAIRS else 1
    return first_rejection(check_types(call, "FLOAT32"), check_shapes(call, inputs))


def lower_float(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a kernel call that computes one element-wise float32 operator."""
    _lower_chain((call,), builder)


def _lower_chain(calls: Sequence[Call], builder: ProgramBuilder) -> None:
    """Add one kernel call that computes all *calls*, element-wise nodes that read one another."""
    target = calls[-1].output()
    chain = Chain(target.shape)
    known: dict[int, int] = {}  # mapping from a tensor's index to its operand in the chain
    for call in calls:
        operands = []
        for index in call.node.inputs:
            if index not in known:
                tensor = call.context.tensors[index]
                known[index] = chain.source(builder.tensor(index), tensor.shape, 4)
            operands.append(known[index])
        known[call.node.outputs[0]] = STEPS[call.name](call, chain, operands)
    chain.emit(builder, builder.tensor(target.index), 4)


def fuse_chain(partition: Partition, position: int, builder: ProgramBuilder) -> Fusion | None:
    """Return the fusion of element-wise nodes that read one another into one kernel call.

    Each of these nodes must be the only reader of the node before. The result is None if there are
    fewer than two.

    Args:
        partition: the nodes.
        position: position of the first node.
        builder: builder of the program.
    """
    calls = [partition.calls[position]]
    members = [position]
    if not _is_fusible(calls[0]):
        return None
    while len(calls) < LONGEST_CHAIN and (following := partition.next(members[-1])) is not None:
        call = partition.calls[following]
        if not _is_fusible(call) or call.output().shape != calls[-1].output().shape:
            break
        if len(_outer_inputs([*calls, call])) > MOST_SOURCES:
            break
        members.append(following)
        calls.append(call)
    if len(calls) == 1:
        return None
    return Fusion(tuple(members), lambda builder: _lower_chain(calls, builder))


LONGEST_CHAIN = 16

MOST_SOURCES = 8


def _outer_inputs(calls: Sequence[Call]) -> set[int]:
    """Return the indices of the tensors that *calls* read but do not compute."""
    made = {call.node.outputs[0] for call in calls}
    return {index for call in calls for index in call.node.inputs} - made


def _is_fusible(call: Call) -> bool:
    return call.name in STEPS and call.input(0).type is TensorType.FLOAT32


FLOAT = Operator(check_float, lower_float, ("FLOAT32",), (*PAIR_FEATURES, "extreme-values"))

# For DIV, the kit's empty models are of bytes alone, and their divisors are not constant.
_DIV = replace(FLOAT, features=tuple(name for name in FLOAT.features if name != "empty"))

register_variants("FLOAT32", {**dict.fromkeys(STEPS, FLOAT), "DIV": _DIV})
