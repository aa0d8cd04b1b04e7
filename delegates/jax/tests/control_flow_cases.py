"""Loops and branches round values of every type, of which the kit's own models have floats only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph.schema import options as o
from delegraph.schema.table import Table
from delegraph.testing import OperatorCase, TensorDef, constant, graph_case, tensor
from delegraph.testing.random_operands import RandomOperands
from delegraph.testing.subgraphs import Graph, Op

_TYPES = ("FLOAT32", "INT32", "INT64", "INT8", "UINT8", "INT16", "BFLOAT16", "FLOAT16", "BOOL")
_SHAPE = (5,)


def control_flow_cases() -> Iterator[OperatorCase]:
    """Yield, for each type, an IF, a CASE, a composite and a loop that reverse the input."""
    either = o.IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    numbered = o.StablehloCaseOptions(branch_subgraph_indices=(1, 2))
    inner = o.StableHLOCompositeOptions(name="reversed", decomposition_subgraph_index=1)
    turns = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    for type in _TYPES:
        values = RandomOperands("control flow", 0, 1).values(type, _SHAPE)
        branches = [_reversed(type), _same(type)]
        main = _around("IF", either, type, "BOOL")
        yield graph_case("IF", [main, *branches], [np.array(True), values])
        main = _around("STABLEHLO_CASE", numbered, type, "INT32")
        yield graph_case("STABLEHLO_CASE", [main, *branches], [np.array(0, np.int32), values])
        main = _around("STABLEHLO_COMPOSITE", inner, type)
        yield graph_case("STABLEHLO_COMPOSITE", [main, branches[0]], [values])
        start = np.array(0, np.float32)
        yield graph_case("WHILE", [_loop(turns, type), *_turns(type)], [start, values])


def _around(op: str, options: Table, type: str, *first: str) -> Graph:
    """Return a main subgraph of an operator with inputs of the types *first* and *type*."""
    given = [tensor((), each) for each in first]
    x, y = tensor(_SHAPE, type), tensor(_SHAPE, type)
    return Graph([*given, x], [y], [Op(op, [*given, x], [y], options)])


def _same(type: str) -> Graph:
    x = tensor(_SHAPE, type)
    return Graph([x], [x])


def _reversed(type: str) -> Graph:
    x, y = tensor(_SHAPE, type), tensor(_SHAPE, type)
    return Graph([x], [y], [_reverse(x, y)])


def _reverse(x: TensorDef, y: TensorDef) -> Op:
    return Op("REVERSE_V2", [x, constant(np.zeros(1, np.int32))], [y])


def _loop(options: Table, type: str) -> Graph:
    i, x, n, y = tensor(()), tensor(_SHAPE, type), tensor(()), tensor(_SHAPE, type)
    return Graph([i, x], [n, y], [Op("WHILE", [i, x], [n, y], options)])


def _turns(type: str) -> tuple[Graph, Graph]:
    """Return the condition and the body of a loop of three iterations."""
    i, x, holds = tensor(()), tensor(_SHAPE, type), tensor((), "BOOL")
    condition = Graph(
        [i, x], [holds], [Op("LESS", [i, constant(np.float32(3))], [holds], o.LessOptions())]
    )
    i, x, j, y = tensor(()), tensor(_SHAPE, type), tensor(()), tensor(_SHAPE, type)
    count = Op("ADD", [i, constant(np.float32(1))], [j], o.AddOptions())
    return condition, Graph([i, x], [j, y], [count, _reverse(x, y)])
