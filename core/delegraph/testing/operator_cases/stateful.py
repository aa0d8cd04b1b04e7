"""Cases of operators in graphs: control flow, variables, tables, composites."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from delegraph.schema.enums import TensorType
from delegraph.schema.options import (
    AddOptions,
    CallOnceOptions,
    HashtableFindOptions,
    HashtableImportOptions,
    HashtableOptions,
    HashtableSizeOptions,
    IfOptions,
    LessOptions,
    MulOptions,
    PadOptions,
    StablehloCaseOptions,
    StableHLOCompositeOptions,
    VarHandleOptions,
    WhileOptions,
)
from delegraph.testing.one_op import TensorDef, constant, tensor
from delegraph.testing.operator_case import OperatorCase, graph_case, texts
from delegraph.testing.operator_cases.registry import cases_of
from delegraph.testing.random_operands import RandomOperands
from delegraph.testing.subgraphs import Graph, Op


def binary(op: str, options: Any, shape: tuple[int, ...]) -> Graph:
    """Return a subgraph with two inputs and one binary operator."""
    a, b, y = tensor(shape), tensor(shape), tensor(shape)
    return Graph([a, b], [y], [Op(op, [a, b], [y], options)])


def padded(shape: tuple[int, ...], more: int) -> Graph:
    """Return a subgraph with two inputs of *shape*; it adds *more* rows of zeros to the first."""
    a, b = tensor(shape), tensor(shape)
    y = tensor((shape[0] + more, *shape[1:]))
    pads = np.zeros((len(shape), 2), np.int32)
    pads[0, 1] = more
    return Graph([a, b], [y], [Op("PAD", [a, constant(pads)], [y], PadOptions())])


@cases_of("IF")
def branches(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: branches with equal and different shapes, taken and not taken."""
    for _ in range(random.count):
        shape = random.shape(1, 3, empty=0)
        condition = tensor(random.pick([(), (1,)]), "BOOL")
        a, b, y = tensor(shape), tensor(shape), tensor(shape)
        options = IfOptions(then_subgraph_index=1, else_subgraph_index=2)
        main = Graph([condition, a, b], [y], [Op(op, [condition, a, b], [y], options)])
        second = random.pick(
            [binary("MUL", MulOptions(), shape), padded(shape, random.number(0, 2))]
        )
        values = [random.values("FLOAT32", shape) for _ in range(2)]
        steps = [[np.full(condition.shape, random.chance(0.5)), *values] for _ in range(3)]
        yield graph_case(op, [main, binary("ADD", AddOptions(), shape), second], *steps)


@cases_of("WHILE")
def loops(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: any number of iterations, which may change or grow values."""
    for _ in range(random.count):
        shape, limit = random.shape(1, 3, empty=0), random.number(0, 4)
        i, x, n, y = tensor(()), tensor(shape), tensor(()), tensor(shape)
        options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
        main = Graph([i, x], [n, y], [Op(op, [i, x], [n, y], options)])
        a, b, holds = tensor(()), tensor(shape), tensor((), "BOOL")
        bound = constant(np.float32(limit))
        condition = Graph([a, b], [holds], [Op("LESS", [a, bound], [holds], LessOptions())])
        steps: list[Any] = [
            [np.array(random.number(-1, 3), np.float32), random.values("FLOAT32", shape)]
            for _ in range(2)
        ]
        yield graph_case(op, [main, condition, body(random, shape)], *steps)


def body(random: RandomOperands, shape: tuple[int, ...]) -> Graph:
    """Return the body subgraph of a random loop."""
    i, x, j, y = tensor(()), tensor(shape), tensor(()), tensor(shape)
    count = Op("ADD", [i, constant(np.float32(1))], [j], AddOptions())
    change = random.pick(["keep", "double", "grow"])
    if change == "keep":
        return Graph([i, x], [j, x], [count])
    if change == "double":
        return Graph([i, x], [j, y], [count, Op("ADD", [x, x], [y], AddOptions())])
    pads = np.zeros((len(shape), 2), np.int32)
    pads[-1, 0] = 1
    y = tensor((*shape[:-1], shape[-1] + 1))
    return Graph([i, x], [j, y], [count, Op("PAD", [x, constant(pads)], [y], PadOptions())])


@cases_of("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")
def variables(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: a variable that is set once and multiplied at every invoke."""
    for _ in range(random.count // 2):
        shape = random.shape(0, 3, empty=0)
        handle, inner = tensor((), "RESOURCE"), tensor((), "RESOURCE")
        x, old, y = tensor(shape), tensor(shape), tensor(shape)
        name = VarHandleOptions(container=random.pick(["", "c"]), shared_name="v")
        start = random.constant("FLOAT32", shape)
        main = Graph([x], [y], [
            Op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1)),
            Op("VAR_HANDLE", [], [handle], name),
            Op("READ_VARIABLE", [handle], [old]),
            Op("MUL", [old, x], [y], MulOptions()),
            Op("ASSIGN_VARIABLE", [handle, y], []),
        ])  # fmt: skip
        first = Graph([], [], [
            Op("VAR_HANDLE", [], [inner], name),
            Op("ASSIGN_VARIABLE", [inner, start], []),
        ])  # fmt: skip
        steps = [[random.values("FLOAT32", shape, spread=1)] for _ in range(3)]
        yield graph_case(op, [main, first], *steps)


@cases_of("READ_VARIABLE", "ASSIGN_VARIABLE")
def unset_variables(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield cases of *op*: variables of every type; one variable is read before it is set."""
    types = ("FLOAT32", "INT8", "INT32", "INT64", "BOOL", "UINT8", "INT16", "FLOAT16")
    for type in types:
        for is_set in (True, False):
            handle, x, y = tensor((), "RESOURCE"), tensor((3,), type), tensor((3,), type)
            ops = [Op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="v"))]
            if is_set:
                ops.append(Op("ASSIGN_VARIABLE", [handle, x], []))
            ops.append(Op("READ_VARIABLE", [handle], [y]))
            yield graph_case(op, [Graph([x], [y], ops)], [random.values(type, (3,))])


@cases_of("HASHTABLE", "HASHTABLE_IMPORT", "HASHTABLE_FIND", "HASHTABLE_SIZE")
def hashtables(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: text keys or text values, missing keys, and invalid types."""
    for _ in range(random.count // 2 + 4):
        words = texts(*[random.pick([b"one", b"two", b"three", b"", b"four\0"]) for _ in range(4)])
        numbers = random.rng.integers(0, 5, 4)
        keys, values = (words, numbers) if random.chance(0.5) else (numbers, words)
        if random.chance(0.1):
            keys, values = numbers, numbers
        wanted = np.resize(keys, random.number(0, 6))
        default = values[:1] if random.chance(0.5) else values[:1].reshape(())
        yield graph_case(op, [table_graph(keys, values, default, wanted)], [wanted])


def kind(array: Any) -> str:
    """Return the name of the array's tensor type: STRING for texts, INT64 for numbers."""
    return "STRING" if array.dtype == object else "INT64"


def table_graph(keys: Any, values: Any, default: Any, wanted: Any) -> Graph:
    """Return a graph that fills a table with *keys* and *values*, and looks up its input's keys.

    The input has the shape of *wanted*. Keys that are not in the table give *default*.
    """
    handle: TensorDef = tensor((1,), "RESOURCE")
    x, y, size = (
        tensor(wanted.shape, kind(keys)),
        tensor(wanted.shape, kind(values)),
        tensor((1,), "INT64"),
    )
    options = HashtableOptions(
        table_id=7, key_dtype=TensorType[kind(keys)], value_dtype=TensorType[kind(values)]
    )
    filled = [handle, constant(keys), constant(values)]
    found = [handle, x, constant(default)]
    return Graph([x], [y, size], [
        Op("HASHTABLE", [], [handle], options),
        Op("HASHTABLE_IMPORT", filled, [], HashtableImportOptions()),
        Op("HASHTABLE_FIND", found, [y], HashtableFindOptions()),
        Op("HASHTABLE_SIZE", [handle], [size], HashtableSizeOptions()),
    ])  # fmt: skip


@cases_of("STABLEHLO_COMPOSITE")
def composites(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: composites with decompositions of any shape."""
    for _ in range(random.count // 2):
        shape = random.shape(1, 3)
        a, b, y = tensor(shape), tensor(shape), tensor(shape)
        options = StableHLOCompositeOptions(
            name="some.thing",
            decomposition_subgraph_index=1,
            composite_attributes=np.frombuffer(flexbuffers.Dumps({"axis": 1}), np.uint8),
        )
        main = Graph([a, b], [y], [Op(op, [a, b], [y], options)])
        steps = [[random.values("FLOAT32", shape) for _ in range(2)] for _ in range(2)]
        yield graph_case(op, [main, binary("MUL", MulOptions(), shape)], *steps)


@cases_of("STABLEHLO_CASE")
def numbered_branches(op: str, random: RandomOperands) -> Iterator[OperatorCase]:
    """Yield random cases of *op*: branches chosen by number, also numbers out of range."""
    for _ in range(random.count // 2):
        shape = random.shape(1, 3, empty=0)
        number = tensor((), "INT32")
        a, b, y = tensor(shape), tensor(shape), tensor(shape)
        options = StablehloCaseOptions(branch_subgraph_indices=(1, 2))
        main = Graph([number, a, b], [y], [Op(op, [number, a, b], [y], options)])
        branch = [binary("ADD", AddOptions(), shape), binary("MUL", MulOptions(), shape)]
        values = [random.values("FLOAT32", shape) for _ in range(2)]
        step = [np.array(random.number(-1, 3), np.int32), *values]
        yield graph_case(op, [main, *branch], step)
