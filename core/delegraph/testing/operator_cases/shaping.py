"""Cases of operators that change shapes, or make tensors from shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from delegraph.schema.enums import BuiltinOperator, MirrorPadMode, TensorType
from delegraph.schema.options import (
    OPTIONS_OF_OPERATOR,
    ReshapeOptions,
    ShapeOptions,
    SqueezeOptions,
)
from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.operator_case import Fed, OperatorCase, fed, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import INTEGERS, PLAIN, RandomOperands
from delegraph.testing.registered_operators import BUILTIN_VERSIONS


def types_of(random: RandomOperands, times: float = 1) -> list[str]:
    """Return every type once, then ``random.count * times`` random types."""
    return [*PLAIN, *(random.pick(PLAIN) for _ in range(int(random.count * times)))]


def any_version(op: str, random: RandomOperands) -> int:
    """Return a random version of *op*, mostly the last version."""
    first, last = BUILTIN_VERSIONS[op]
    return random.pick([last, random.number(first, last)])


def plain_options(op: str, **given: Any) -> Any:
    """Return the options record of the operator *op* with the given fields."""
    return OPTIONS_OF_OPERATOR[BuiltinOperator[op]](**given)


def given_or_fed(random: RandomOperands, values: Any, type: str = "INT32") -> Fed | TensorDef:
    """Return *values*, such as a shape, as an operand: a constant, or sometimes a graph input."""
    array = np.asarray(values).astype(type.lower())
    return fed(array) if random.chance(0.25) else constant(array)


def same_quantization(
    random: RandomOperands, type: str, shape: Sequence[int]
) -> tuple[Fed, TensorDef]:
    """Return an input and an output with equal quantization."""
    same = random.quantization(type)
    return random.fed(type, shape, quantization=same), tensor((), type, **same)


@cases_of("RESHAPE")
def reshape(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: shapes as a tensor or as options, some with -1 or wrong."""
    for type in types_of(random):
        shape = random.shape()
        x, y = same_quantization(random, type, shape)
        target = (
            list(random.rng.permutation(shape)) if random.chance(0.6) else [int(np.prod(shape))]
        )
        if target and random.chance(0.4):
            target[random.number(0, len(target) - 1)] = -1
        if random.chance(0.08):
            target.append(random.pick([2, -1, 0]))
        if random.chance(0.4):
            options = ReshapeOptions(new_shape=tuple(int(size) for size in target))
            yield operator_case(op, [x], [y], options)
        else:
            yield operator_case(op, [x, given_or_fed(random, target)], [y], ReshapeOptions())


@cases_of("SQUEEZE")
def squeeze(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* that squeeze some or all axes of length 1, rarely another axis."""
    for type in types_of(random):
        shape = tuple(1 if random.chance(0.4) else size for size in random.shape())
        rank = len(shape)
        ones = [i - rank * random.chance(0.5) for i, size in enumerate(shape) if size == 1]
        axes = [i for i in ones if random.chance(0.6)]
        if random.chance(0.05):
            axes.append(random.number(-rank - 1, rank))
        x, y = same_quantization(random, type, shape)
        options = SqueezeOptions(squeeze_dims=tuple(axes))
        yield operator_case(op, [x], [y], options, version=any_version(op, random))


@cases_of("EXPAND_DIMS")
def expand_dims(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: a new axis at any position."""
    for type in types_of(random):
        shape = random.shape(0, 4)
        axis = random.number(-len(shape) - 1, len(shape) + random.chance(0.1))
        x, y = same_quantization(random, type, shape)
        values = axis if random.chance(0.5) else [axis]
        inputs = [x, given_or_fed(random, values, random.pick(["INT32", "INT64"]))]
        yield operator_case(op, inputs, [y], plain_options(op))


@cases_of("TRANSPOSE")
def transpose(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: permutations up to rank 6, negative axes, and invalid permutations."""
    for type in types_of(random, 2):
        shape = random.shape(1, 6)  # LiteRT leaves a scalar unwritten
        order = random.rng.permutation(len(shape))
        if random.chance(0.1):
            order = order - len(shape)
        if len(shape) and random.chance(0.05):
            order[0] = random.pick([-9, 9])  # repeated axes leave elements unwritten
        x, y = same_quantization(random, type, shape)
        inputs = [x, given_or_fed(random, order)]
        yield operator_case(op, inputs, [y], plain_options(op), version=any_version(op, random))


@cases_of("PAD", "PADV2", "MIRROR_PAD")
def pads(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: pads on every axis, as INT32 or INT64."""
    for type in types_of(random, 2):
        shape = random.shape(1, 5)
        x, y = same_quantization(random, type, shape)
        room = [[random.number(0, 3) for _ in range(2)] for _ in shape]
        options = plain_options(op)
        if op == "MIRROR_PAD":
            mode = random.number(0, 1)
            options = options.replace(mode=MirrorPadMode(mode))
            if random.chance(0.9):
                room = [[min(p, max(size - 1 + mode, 0)) for p in pair]
                        for pair, size in zip(room, shape, strict=True)]  # fmt: skip
        elif random.chance(0.04):
            room[0][0] = -1
        inputs: list[Any] = [
            x,
            given_or_fed(random, room, random.pick(["INT32", "INT32", "INT64"])),
        ]
        if op == "PADV2":
            quantization = quantization_of(x) if random.chance(0.9) else random.quantization(type)
            inputs.append(random.operand(type, (), quantization=quantization))
        yield operator_case(op, inputs, [y], options, version=any_version(op, random))


def quantization_of(x: Fed) -> dict[str, Any]:
    """Return scale and zero point of an input, as arguments of :func:`tensor`."""
    found = x.definition.quantization
    if found is None or found.scale is None or found.zero_point is None:
        return {}
    return {"scale": float(found.scale[0]), "zero_point": int(found.zero_point[0])}


@cases_of("TILE")
def tile(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: multiples of zero and more, for all types but INT4."""
    for type in types_of(random):
        if type == "INT4":
            continue
        shape = random.shape(0, 4)
        x, y = same_quantization(random, type, shape)
        times = [random.pick([1, 1, 2, 3, 0, 2]) for _ in shape]
        inputs = [x, given_or_fed(random, times, random.pick(["INT32", "INT64"]))]
        yield operator_case(op, inputs, [y], plain_options(op), version=any_version(op, random))


@cases_of("BROADCAST_TO")
def broadcast_to(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: shapes, some of which do not broadcast; no packed integer types."""
    for type in types_of(random):
        if type == "INT4":
            continue
        full = random.shape(0, 6)
        shape = tuple(1 if random.chance(0.3) else n for n in full[random.number(0, len(full)) :])
        x, y = same_quantization(random, type, shape)
        target = [9 if random.chance(0.02) else n for n in full]
        inputs = [x, given_or_fed(random, target, random.pick(["INT32", "INT64"]))]
        options = plain_options(op)
        yield operator_case(op, inputs, [y], options, version=any_version(op, random))


@cases_of("BROADCAST_ARGS")
def broadcast_args(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: pairs of shapes."""
    for _ in range(random.count):
        type = random.pick(["INT32", "INT64"])
        shapes = random.broadcast_shapes()
        yield operator_case(op, [given_or_fed(random, shape, type) for shape in shapes], [type])


@cases_of("SHAPE", "RANK")
def shapes(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: tensors of every type."""
    for type in types_of(random, 0.5):
        result = random.pick(["INT32", "INT64"]) if op == "SHAPE" else "INT32"
        options = ShapeOptions(out_type=TensorType[result]) if op == "SHAPE" else plain_options(op)
        yield operator_case(op, [random.fed(type, random.shape(0, 6))], [result], options)


@cases_of("BITCAST")
def bitcast(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: wider, narrower and equally wide types."""
    types = ("FLOAT32", "FLOAT16", *INTEGERS)
    for source in types:
        for target in types:
            wide, narrow = (np.dtype(t.lower()).itemsize for t in (target, source))
            last = (wide // narrow,) if wide > narrow and random.chance(0.9) else ()
            x = random.fed(source, (*random.shape(0, 3), *last), quantization={})
            yield operator_case(op, [x], [target], plain_options(op))


@cases_of("FILL")
def fill(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every type of value, with negative and empty shapes."""
    for type in types_of(random, 0.5):
        shape = list(random.shape(0, 4))
        if shape and random.chance(0.05):
            shape[0] = -1
        same = random.quantization(type)
        value = random.operand(type, () if random.chance(0.95) else (1,), quantization=same)
        inputs = [given_or_fed(random, shape, random.pick(["INT32", "INT64"])), value]
        output = tensor((), type, **same)
        options = plain_options(op)
        yield operator_case(op, inputs, [output], options, version=any_version(op, random))


@cases_of("RANGE")
def ranges(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: ascending, descending, empty and endless ranges."""
    for _ in range(2 * random.count):
        type = random.pick(["FLOAT32", "INT32", "INT64", random.pick(PLAIN[:-1])])
        dtype = random.values(type, ()).dtype
        numbers: list[float] = [
            random.number(-9, 20),
            random.number(-9, 20),
            random.pick([1, 2, 3, -1, -3, 0]),
        ]
        if dtype.kind not in "iufV":
            numbers = [1, 1, 1]
        elif dtype.kind == "f":
            numbers = [n * 0.7 for n in numbers]
        arrays = [np.array(n if dtype.kind != "u" else abs(n)).astype(dtype) for n in numbers]
        make: Any = random.pick([fed, constant])
        inputs = [make(array, type) for array in arrays]
        options = plain_options(op)
        yield operator_case(op, inputs, [type], options, version=any_version(op, random))


@cases_of("STABLEHLO_PAD", "DILATE")
def interior(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: padding between elements and around them, also negative padding."""
    for type in types_of(random):
        if type == "INT4":
            continue  # the official kernels write beyond the end of packed tensors
        shape = random.shape(1, 4)
        x, y = same_quantization(random, type, shape)
        value = random.operand(type, (), quantization=quantization_of(x))
        inside = [random.number(0, 2) for _ in shape]
        if op == "DILATE":
            factors = given_or_fed(random, [n + 1 for n in inside])
            yield operator_case(op, [x, factors, value], [y], plain_options(op))
            continue
        low, high = ([random.number(-1, 3) for _ in shape] for _ in range(2))
        options = plain_options(
            op, edge_padding_low=tuple(low), edge_padding_high=tuple(high),
            interior_padding=tuple(inside),
        )  # fmt: skip
        yield operator_case(op, [x, value], [y], options)
