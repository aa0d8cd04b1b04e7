"""Cases of operators along axes: reductions, running sums, normalisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph.schema.enums import TensorType
from delegraph.schema.options import (
    AddNOptions,
    ArgMaxOptions,
    ArgMinOptions,
    CumsumOptions,
    L2NormOptions,
    LocalResponseNormalizationOptions,
    LogSoftmaxOptions,
    ReducerOptions,
    SoftmaxOptions,
)
from delegraph.testing.one_op import constant, tensor
from delegraph.testing.operator_case import OperatorCase, fed, operator_case
from delegraph.testing.operator_cases.convolutions import activation
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import PLAIN, QUANTIZED, RandomOperands
from delegraph.testing.registered_operators import BUILTIN_VERSIONS

REDUCTIONS = ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL")


def some_axes(random: RandomOperands, rank: int) -> Any:
    """Return random axes as a scalar or a vector, including negative and repeated axes."""
    if random.chance(0.2) and rank:
        return np.array(random.number(-rank, rank - 1), np.int32)
    axes = (
        [random.number(-rank, rank - 1) for _ in range(random.number(0, rank + 1))] if rank else []
    )
    if random.chance(0.04):
        axes.append(random.pick([rank, -rank - 1]))
    return np.array(axes, np.int32)


@cases_of(*REDUCTIONS)
def reductions(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every type and version; axes negative, repeated, none or all."""
    last = BUILTIN_VERSIONS[op][1]
    types = [
        *PLAIN,
        *(random.pick(("FLOAT32", "INT32", *QUANTIZED)) for _ in range(random.count * 3)),
    ]
    if op in ("REDUCE_ANY", "REDUCE_ALL"):
        types += ["BOOL"] * random.count
    for type in types:
        same = random.quantization(type)
        is_taken = type in ("FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64")
        shape = random.shape(0, 5) if is_taken else (2, 3)  # no or one element: all are accepted
        axes = some_axes(random, len(shape))
        inputs = [
            random.fed(type, shape, quantization=same, special=random.pick([0, 0, 0.1])),
            fed(axes) if random.chance(0.2) else constant(axes),
        ]
        output = tensor((), type, **same) if random.chance(0.5) else random.output(type)
        options = ReducerOptions(keep_dims=random.chance(0.5))
        yield operator_case(op, inputs, [output], options, version=random.number(1, last))


@cases_of("MEAN", "SUM")
def reductions_without_scale(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: 8-bit images whose input or output scale is 0."""
    for type in ("INT8", "UINT8"):
        for scales in ((0.0, 0.3), (0.3, 0.0), (0.0, 0.0)):
            zero_points = [random.number(0, 9) for _ in scales]
            values = random.values(type, (2, 3, 3, 17))
            x = fed(values, type, scale=scales[0], zero_point=zero_points[0])
            y = tensor((), type, scale=scales[1], zero_point=zero_points[1])
            options = ReducerOptions(keep_dims=random.chance(0.5))
            yield operator_case(op, [x, constant([1, 2], "INT32")], [y], options, version=2)


@cases_of("ARG_MAX", "ARG_MIN")
def arg_reductions(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every type, with many ties."""
    table = ArgMaxOptions if op == "ARG_MAX" else ArgMinOptions
    types = [
        *PLAIN,
        *(random.pick(("FLOAT32", "INT8", "UINT8", "INT32", "BOOL")) for _ in range(random.count)),
    ]
    for type in types:
        shape = random.shape(1, 5)
        rank = len(shape)
        axis = np.array(
            random.number(-rank, rank - 1 + random.chance(0.05)), random.pick([np.int32, np.int64])
        )
        if random.chance(0.4):
            axis = axis[None]
        result = random.pick(["INT32", "INT64"])
        x = random.fed(type, shape, spread=random.pick([0.5, 3]), quantization={})
        inputs: list[Any] = [x, fed(axis) if random.chance(0.2) else constant(axis)]
        options = table(output_type=TensorType[result])
        version = random.number(1, BUILTIN_VERSIONS[op][1])
        yield operator_case(op, inputs, [result], options, version=version)


@cases_of("CUMSUM")
def running_sums(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* along any axis, with exclusive and reverse sums."""
    for type in [*PLAIN, *["FLOAT32", "INT32", "INT64"] * (random.count // 2)]:
        shape = random.shape(1, 5)
        axis = np.array(random.number(-len(shape), len(shape) - 1 + random.chance(0.05)), np.int32)
        options = CumsumOptions(exclusive=random.chance(0.5), reverse=random.chance(0.5))
        inputs: list[Any] = [
            random.fed(type, shape),
            constant(axis if random.chance(0.5) else axis[None]),
        ]
        yield operator_case(op, inputs, [random.output(type)], options)


@cases_of("ADD_N")
def sums(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: two to five tensors of one shape."""
    for type in [*PLAIN, *["FLOAT32", "INT32"] * (random.count // 2)]:
        shape = random.shape()
        inputs = [random.operand(type, shape) for _ in range(random.number(2, 5))]
        yield operator_case(op, inputs, [random.output(type)], AddNOptions())


@cases_of("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")
def normalised(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: rows of any length, with required and other quantization."""
    for type in [*PLAIN, *["FLOAT32", *QUANTIZED] * random.count]:
        x = random.fed(type, random.shape(1, 3, largest=random.pick([5, 9, 40])))
        options: Any = LogSoftmaxOptions()
        if op == "SOFTMAX":
            options = SoftmaxOptions(beta=random.pick([1.0, 1.0, 0.5, 2.3]))
        elif op == "L2_NORMALIZATION":
            options = L2NormOptions(fused_activation_function=activation(random))
        fixed = PROBABILITIES.get((op, type)) if random.chance(0.95) else None
        output = tensor((), type, **fixed) if fixed else random.output(type)
        if op == "SOFTMAX" and type in ("INT8", "UINT8") and random.chance(0.2):
            output = tensor((), "INT16", scale=1 / 65536, zero_point=-32768)
        yield operator_case(
            op, [x], [output], options, version=random.number(1, BUILTIN_VERSIONS[op][1])
        )


PROBABILITIES: dict[tuple[str, str], dict[str, Any]] = {
    ("SOFTMAX", "INT8"): {"scale": 1 / 256, "zero_point": -128},
    ("SOFTMAX", "UINT8"): {"scale": 1 / 256, "zero_point": 0},
    ("SOFTMAX", "INT16"): {"scale": 1 / 32768},
    ("LOG_SOFTMAX", "INT8"): {"scale": 16 / 256, "zero_point": 127},
    ("LOG_SOFTMAX", "UINT8"): {"scale": 16 / 256, "zero_point": 255},
    ("L2_NORMALIZATION", "INT8"): {"scale": 1 / 128, "zero_point": 0},
    ("L2_NORMALIZATION", "UINT8"): {"scale": 1 / 128, "zero_point": 128},
}
"""Mapping from operator and type to the output quantization that the kernel requires."""


@cases_of("LOCAL_RESPONSE_NORMALIZATION")
def local_normalisation(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: windows narrower and wider than the depth."""
    for type in [*PLAIN, *["FLOAT32"] * random.count]:
        options = LocalResponseNormalizationOptions(
            radius=random.number(0, 6),
            bias=random.pick([1.0, 0.5, 2.0]),
            alpha=random.pick([1.0, 0.1, 4.0]),
            beta=random.pick([0.5, 0.75, 1.0]),
        )
        x = random.fed(type, random.shape(4, 4, empty=0))
        yield operator_case(op, [x], [random.output(type)], options)
