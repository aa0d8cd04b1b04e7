"""Cases of operators that join or split tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph.schema.options import (
    ConcatenationOptions,
    PackOptions,
    ReverseSequenceOptions,
    SplitOptions,
    SplitVOptions,
    StridedSliceOptions,
    UnpackOptions,
)
from delegraph.testing.one_op import tensor
from delegraph.testing.operator_case import OperatorCase, fed, operator_case
from delegraph.testing.operator_cases.convolutions import activation
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.operator_cases.shaping import (
    any_version,
    given_or_fed,
    plain_options,
    same_quantization,
    types_of,
)
from delegraph.testing.random_operands import RandomOperands


@cases_of("CONCATENATION")
def concatenation(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: up to five tensors, any axis, equal or different quantization."""
    for type in [*types_of(random), *["UINT8", "INT8", "FLOAT32"] * random.count]:
        shape = random.shape(1, 5)
        axis = random.number(-len(shape), len(shape) - 1)
        same = random.quantization(type) if random.chance(0.6) else None
        inputs = []
        for _ in range(random.number(1, 5)):
            sizes = list(shape)
            sizes[axis] = random.number(0, 5) if random.chance(0.9) else sizes[axis]
            inputs.append(random.operand(type, sizes, quantization=same))
        output = random.output(type) if same is None else tensor((), type, **same)
        options = ConcatenationOptions(
            axis=axis + 9 * random.chance(0.02), fused_activation_function=activation(random)
        )
        yield operator_case(op, inputs, [output], options, version=any_version(op, random))


@cases_of("PACK")
def pack(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: tensors of one shape, packed along a new axis."""
    for type in types_of(random):
        shape, count = random.shape(0, 4), random.number(1, 4)
        same = random.quantization(type)
        inputs = [random.operand(type, shape, quantization=same) for _ in range(count)]
        axis = random.number(-len(shape) - 1, len(shape) + random.chance(0.05))
        options = PackOptions(values_count=count + random.chance(0.03), axis=axis)
        output = tensor((), type, **same)
        yield operator_case(op, inputs, [output], options, version=any_version(op, random))


@cases_of("UNPACK")
def unpack(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* with an output for each index of an axis."""
    for type in types_of(random):
        shape = random.shape(1, 5, largest=4)
        axis = random.number(-len(shape), len(shape) - 1)
        x, y = same_quantization(random, type, shape)
        count = max(shape[axis], 1)
        outputs = [y, *(tensor((), type, **_quantization(x)) for _ in range(count - 1))]
        options = UnpackOptions(num=count + random.chance(0.04), axis=axis)
        yield operator_case(op, [x], outputs, options, version=any_version(op, random))


def _quantization(x: Any) -> dict[str, Any]:
    found = x.definition.quantization
    return {} if found is None else {"scale": found.scale[0], "zero_point": found.zero_point[0]}


@cases_of("SPLIT", "SPLIT_V")
def split(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: equal and unequal parts, some with -1 as one of the sizes."""
    for type in types_of(random):
        shape = list(random.shape(1, 5))
        axis, parts = random.number(-len(shape), len(shape) - 1), random.number(1, 4)
        sizes = (
            [random.number(0, 3)] * parts
            if op == "SPLIT"
            else [random.number(0, 3) for _ in range(parts)]
        )
        shape[axis] = sum(sizes) + random.chance(0.04)
        x, y = same_quantization(random, type, shape)
        outputs = [y, *(tensor((), type, **_quantization(x)) for _ in range(parts - 1))]
        where = given_or_fed(random, axis if random.chance(0.5) else [axis])
        version = any_version(op, random)
        if op == "SPLIT":
            yield operator_case(
                op, [where, x], outputs, SplitOptions(num_splits=parts), version=version
            )
            continue
        if random.chance(0.3):
            sizes[random.number(0, parts - 1)] = -1
        lengths = given_or_fed(random, sizes, random.pick(["INT32", "INT64"]))
        options = SplitVOptions(num_splits=parts)
        yield operator_case(op, [x, lengths, where], outputs, options, version=version)


@cases_of("SLICE")
def slices(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: starts and sizes, some of which are -1 or out of range."""
    for type in types_of(random, 2):
        shape = random.shape(1, 5)
        begin = [random.number(0, max(size - 1, 0)) for size in shape]
        sizes = [
            random.pick([-1, size - b, random.number(0, size - b)])
            for b, size in zip(begin, shape, strict=True)
        ]
        if random.chance(0.05):
            sizes[0] = random.pick([9, -2])
        x, y = same_quantization(random, type, shape)
        kind = random.pick(["INT32", "INT64"])
        inputs = [x, given_or_fed(random, begin, kind), given_or_fed(random, sizes, kind)]
        yield operator_case(op, inputs, [y], plain_options(op), version=any_version(op, random))


@cases_of("STRIDED_SLICE")
def strided_slices(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: every mask, negative strides and indices, and indices out of range."""
    for type in types_of(random, 4):
        shape = random.shape(1, 5)
        entries = random.number(1, len(shape))
        begin = [random.number(-8, 8) for _ in range(entries)]
        end = [random.number(-8, 8) for _ in range(entries)]
        strides = [random.pick([1, 1, 2, -1, -2, 3]) for _ in range(entries)]
        if random.chance(0.03):
            strides[0] = 0
        shrunk = sum(1 << i for i in range(entries) if random.chance(0.1))
        for i in range(entries):  # an index out of range reads memory beside the tensor
            if shrunk >> i & 1 and shape[i]:
                begin[i], strides[i] = random.number(-shape[i], shape[i] - 1), 1
            elif shrunk >> i & 1:
                shrunk = 0

        def mask(chance: float, entries: int = entries) -> int:
            return sum(1 << i for i in range(entries) if random.chance(chance))

        ellipsis = (1 << random.number(0, entries - 1)) * (not shrunk and random.chance(0.2))
        options = StridedSliceOptions(
            begin_mask=mask(0.3) & ~shrunk,
            end_mask=mask(0.3),
            ellipsis_mask=ellipsis,
            new_axis_mask=mask(0.1) * (not shrunk and random.chance(0.5)),
            shrink_axis_mask=shrunk,
        )
        x, y = same_quantization(random, type, shape)
        inputs = [x, *(given_or_fed(random, values) for values in (begin, end, strides))]
        yield operator_case(op, inputs, [y], options, version=any_version(op, random))


@cases_of("DYNAMIC_UPDATE_SLICE")
def updates(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: windows, some of which the operator must move inside."""
    for type in types_of(random):
        shape = random.shape(1, 4)
        window = [random.number(0, size) for size in shape]
        starts = np.array([random.number(-2, 8) for _ in shape])
        x, y = same_quantization(random, type, shape)
        update = random.operand(type, window, quantization=_quantization(x))
        where = given_or_fed(random, starts, random.pick(["INT32", "INT64"]))
        version = any_version(op, random)
        yield operator_case(op, [x, update, where], [y], plain_options(op), version=version)


@cases_of("REVERSE_V2")
def reversals(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* that reverse one axis or several axes."""
    for type in types_of(random):
        shape = random.shape(1, 5)
        count = random.pick([1, 1, 2])
        axes = random.rng.permutation(len(shape))[:count]
        if random.chance(0.2):
            axes = axes - len(shape)
        x, y = same_quantization(random, type, shape)
        inputs = [x, given_or_fed(random, axes)]
        yield operator_case(op, inputs, [y], plain_options(op), version=any_version(op, random))


@cases_of("REVERSE_SEQUENCE")
def sequence_reversals(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*, which reverses a random number of each sequence's first elements."""
    for type in types_of(random):
        shape = random.shape(2, 4, empty=0)
        axes = random.rng.permutation(len(shape))
        seq, batch = int(axes[0]), int(axes[1])
        lengths = random.rng.integers(0, shape[seq], shape[batch], endpoint=True)
        x, y = same_quantization(random, type, shape)
        options = ReverseSequenceOptions(
            seq_dim=seq - len(shape) * random.chance(0.1), batch_dim=batch
        )
        given = fed(lengths.astype(random.pick([np.int32, np.int64])))
        yield operator_case(op, [x, given], [y], options)
