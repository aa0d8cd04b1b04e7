"""Cases of StableHLO's gather, scatter and windowed reductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph.schema.enums import ReduceWindowFunction
from delegraph.schema.options import (
    AddOptions,
    MaximumMinimumOptions,
    MulOptions,
    ReduceWindowOptions,
    StablehloGatherOptions,
    StablehloReduceWindowOptions,
    StablehloScatterOptions,
)
from delegraph.testing.one_op import constant, tensor
from delegraph.testing.operator_case import OperatorCase, graph_case, operator_case
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.operator_cases.shaping import given_or_fed
from delegraph.testing.random_operands import RandomOperands
from delegraph.testing.subgraphs import Graph, Op

BODIES = {
    "ADD": AddOptions(),
    "MUL": MulOptions(),
    "MAXIMUM": MaximumMinimumOptions(),
    "MINIMUM": MaximumMinimumOptions(),
    "STABLEHLO_ADD": None,
    "STABLEHLO_MULTIPLY": None,
    "STABLEHLO_MAXIMUM": None,
    "STABLEHLO_MINIMUM": None,
}


def body(op: str, type: str) -> Graph:
    """Return a subgraph with two scalar inputs and one scalar output."""
    a, b, y = (tensor((), type) for _ in range(3))
    return Graph([a, b], [y], [Op(op, [a, b], [y], BODIES[op])])


def windows(random: RandomOperands, rank: int) -> list[list[int]]:
    """Return random window sizes, strides, base dilations and window dilations."""
    return [[random.number(1, high) for _ in range(rank)] for high in (3, 2, 2, 2)]


@cases_of("REDUCE_WINDOW")
def reduce_window(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: every function and type, with strides and dilation."""
    for _ in range(random.count):
        type = random.pick(["FLOAT32", "INT32", "INT8", "UINT8", "INT16", "INT64", "BOOL"])
        shape = random.shape(1, 4, empty=0)
        rank = len(shape)
        size, strides, _, dilation = windows(random, rank)
        inputs: list[Any] = [random.fed(type, shape, quantization={})]
        inputs.append(random.operand(type, (), quantization={}))
        numbers = (size, strides, dilation)
        inputs += [constant(np.array(n, np.int64)) for n in numbers]
        options = ReduceWindowOptions(reduce_function=random.pick(tuple(ReduceWindowFunction)))
        yield operator_case(op, inputs, [type], options)


@cases_of("STABLEHLO_REDUCE_WINDOW")
def stablehlo_reduce_window(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op* with the function of the reduction as a subgraph."""
    for _ in range(random.count):
        type = random.pick(["FLOAT32", "INT32"])
        shape = random.shape(1, 4, empty=0)
        rank = len(shape)
        size, strides, base, dilation = map(tuple, windows(random, rank))
        pads = tuple(random.number(0, 2) for _ in range(2 * rank))
        x, start, y = tensor(shape, type), constant(random.values(type, ())), tensor((), type)
        options = StablehloReduceWindowOptions(
            window_dimensions=size,
            window_strides=strides,
            base_dilations=base,
            window_dilations=dilation,
            padding=pads,
            body_subgraph_index=1,
        )
        main = Graph([x], [y], [Op(op, [x, start], [y], options)])
        yield graph_case(
            op, [main, body(random.pick(list(BODIES)), type)], [random.values(type, shape)]
        )


@cases_of("STABLEHLO_GATHER")
def stablehlo_gather(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: slices with and without collapsed axes, some out of range."""
    for _ in range(random.count):
        type = random.pick(["FLOAT32", "INT32", "INT8", "INT64", "BOOL", "UINT8"])
        shape = random.shape(1, 3, empty=0)
        rank, count = len(shape), random.number(1, 4)
        mapped = sorted(random.rng.permutation(rank)[: random.number(1, rank)].tolist())
        collapsed = [axis for axis in range(rank) if random.chance(0.4)]
        sizes = [1 if i in collapsed else random.number(1, n) for i, n in enumerate(shape)]
        starts = np.stack([random.rng.integers(-1, shape[i] + 1, count) for i in mapped], axis=-1)
        options = StablehloGatherOptions(
            offset_dims=tuple(range(1, 1 + rank - len(collapsed))),
            collapsed_slice_dims=tuple(collapsed),
            start_index_map=tuple(mapped),
            index_vector_dim=1,
            slice_sizes=tuple(sizes),
        )
        x = random.fed(type, shape, quantization={})
        inputs = [x, given_or_fed(random, starts, random.pick(["INT32", "INT64"]))]
        output = tensor((1,) * (1 + rank - len(collapsed)), type)  # its rank is checked
        yield operator_case(op, inputs, [output], options)


@cases_of("STABLEHLO_SCATTER")
def stablehlo_scatter(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: rows that are replaced, added or multiplied, some out of range."""
    for _ in range(random.count):
        type = random.pick(["FLOAT32", "INT32", "INT64"])
        shape = random.shape(1, 3, empty=0)
        count = random.number(1, 4)
        places = random.rng.integers(0, shape[0] + random.chance(0.1), (count, 1))
        x, y = tensor(shape, type), tensor(shape, type)
        indices, updates = tensor((count, 1), "INT32"), tensor((count, *shape[1:]), type)
        options = StablehloScatterOptions(
            update_window_dims=tuple(range(1, len(shape))),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
            update_computation_subgraph_index=1,
        )
        main = Graph([x, indices, updates], [y], [Op(op, [x, indices, updates], [y], options)])
        a, b = tensor((), type), tensor((), type)
        replacing = Graph([a, b], [b])
        change = random.pick(
            [
                replacing,
                body("STABLEHLO_ADD", type),
                body("STABLEHLO_MULTIPLY", type),
                body("STABLEHLO_MAXIMUM", type),
                body("STABLEHLO_MINIMUM", type),
            ]
        )
        step = [
            random.values(type, shape),
            places.astype(np.int32),
            random.values(type, (count, *shape[1:])),
        ]
        yield graph_case(op, [main, change], step)
