"""Seeded damage to the records of a model: the file that comes of it is sound, the graph is not.

A damage takes the records and a source of chance and returns changed records, or the same ones
where it finds nothing to change. ``changed_field`` reaches every field of the schema; the others
do what is likely to hurt: types of another width, shapes that no longer fit, indices that lead
elsewhere, operators that get each other's operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator, TensorType
from delegraph.schema.options import OPTIONS_OF_OPERATOR, options_field
from delegraph.schema.table import (
    ArrayVector,
    Child,
    ChildVector,
    Field,
    Scalar,
    ScalarVector,
    String,
    Table,
    Union,
)

Damage = Callable[[tables.Model, Random], tables.Model]
Path = tuple[int, ...]

NEAR = (-129, -128, -8, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 127, 128, 255, 256)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-30, 1e30, 3.4e38, np.inf, -np.inf, np.nan)
LENGTHS = (0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 64, 255, 1000, 65536, 1 << 20, (1 << 31) - 1, -1, -2)
TYPES = tuple(TensorType)
COMMON_TYPES = (
    TensorType.FLOAT32,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.BOOL,
    TensorType.FLOAT16,
    TensorType.STRING,
)


# -- any field of the schema ------------------------------------------------------------------


def changed_field(model: tables.Model, chance: Random) -> tables.Model:
    """Change one field of one table."""
    path, record = _any_table(model, chance)
    if not record.FIELDS:
        return model
    position = chance.randrange(len(record.FIELDS))
    value = _other_value(record.FIELDS[position], record[position], chance)
    return _replaced(model, (*path, position), value)


def changed_option(model: tables.Model, chance: Random) -> tables.Model:
    """Change one field of an operator's options, including indices of subgraphs."""

    def change(node: tables.Operator) -> tables.Operator:
        name = "builtin_options" if node.builtin_options is not None else "builtin_options_2"
        options: Table | None = getattr(node, name)
        if options is None or not options.FIELDS:
            return node
        position = chance.randrange(len(options.FIELDS))
        value = _other_value(options.FIELDS[position], options[position], chance)
        return node.replace(**{name: _replaced(options, (position,), value)})

    return _with_node(model, chance, change)


def _any_table(model: tables.Model, chance: Random) -> tuple[Path, Table]:
    """Return a random table of the model: first a random type, then a table of that type."""
    by_type: dict[type[Table], list[tuple[Path, Table]]] = {}
    for path, record in _tables(model, ()):
        by_type.setdefault(type(record), []).append((path, record))
    return chance.choice(by_type[chance.choice(list(by_type))])


def _tables(record: Table, path: Path) -> Iterator[tuple[Path, Table]]:
    yield path, record
    for position, value in enumerate(record):
        if isinstance(value, Table):
            yield from _tables(value, (*path, position))
        elif isinstance(value, tuple) and value and isinstance(value[0], Table):
            for i, item in enumerate(value):
                yield from _tables(item, (*path, position, i))


def _replaced(record: Any, path: Path, value: Any) -> Any:
    """Return a record, or a tuple of records, with the value at *path* replaced."""
    if not path:
        return value
    items = list(record)
    items[path[0]] = _replaced(items[path[0]], path[1:], value)
    return type(record).make(items) if isinstance(record, Table) else tuple(items)


def _other_value(field: Field, value: Any, chance: Random) -> Any:
    match field.kind:
        case Scalar(dtype, enum):
            return _other_scalar(value, dtype, enum, chance)
        case String():
            return chance.choice([None, "", f"{value}x", "VALIDATION:main", "\x00", "a" * 300])
        case ScalarVector(dtype):
            return _other_list(value, dtype, chance)
        case ArrayVector(dtype):
            return _other_array(value, dtype, chance)
        case Child(table):
            return chance.choice([None, table()])
        case ChildVector():
            return _other_children(value, chance)
        case Union(members):
            return chance.choice([None, chance.choice(list(members.values()))()])
    raise TypeError(f"{field.name}: no way to change {field.kind!r}")


def _other_scalar(value: Any, dtype: np.dtype[Any], enum: Any, chance: Random) -> Any:
    if dtype.kind == "b":
        return not value
    if dtype.kind == "f":
        return chance.choice([*FLOATS, -value, value * 2])
    if enum is not None and chance.random() < 0.9:
        return chance.choice(list(enum))
    return _number(value, dtype, chance)


def _number(value: int, dtype: np.dtype[Any], chance: Random) -> int:
    """Return an integer that fits *dtype*, usually one near *value* or near 0."""
    limits = np.iinfo(dtype)
    near = chance.choice([value + 1, value - 1, -value, value * 2])
    far = chance.choice([int(limits.min), int(limits.max), 1 << chance.randrange(1, 31)])
    found = chance.choice([near, near, chance.choice(NEAR), chance.choice(NEAR), far])
    return min(max(int(found), int(limits.min)), int(limits.max))


def _other_list(value: Any, dtype: np.dtype[Any], chance: Random) -> Any:
    items = list(value or ())
    kind = chance.randrange(6)
    if not items or kind == 0:
        return chance.choice([None, (), tuple(chance.choice(NEAR[6:12]) for _ in range(4))])
    at = chance.randrange(len(items))
    if kind == 1:
        del items[at]
    elif kind == 2:
        items.insert(at, items[at])
    elif kind == 3:
        chance.shuffle(items)
    elif dtype.kind == "b":
        items[at] = not items[at]
    else:
        items[at] = _number(int(items[at]), dtype, chance)
    return tuple(items)


def _other_array(value: Any, dtype: np.dtype[Any], chance: Random) -> Any:
    if value is None or not len(value):
        count = chance.choice([0, 1, 4, 16])
        return np.array([chance.randrange(3) for _ in range(count)], dtype)
    kind = chance.randrange(5)
    if kind == 0:
        return chance.choice([None, np.empty(0, dtype)])
    if kind == 1:
        return np.array(value[: chance.randrange(len(value))], dtype)
    if kind == 2:
        return np.resize(value, len(value) + chance.choice([1, 3, 4, 16, len(value)])).astype(dtype)
    return _with_elements(np.array(value, dtype), chance)


def _with_elements(array: Any, chance: Random) -> Any:
    """Change one to four elements of a copy."""
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(array))
        if array.dtype.kind == "f":
            array[at] = chance.choice([*FLOATS, float(array[at]) * 2])
        else:
            array[at] = _number(int(array[at]), array.dtype, chance)
    return array


def _other_children(value: Any, chance: Random) -> Any:
    items = list(value or ())
    if not items:
        return chance.choice([None, ()])
    at = chance.randrange(len(items))
    kind = chance.randrange(4)
    if kind == 0:
        del items[at]
    elif kind == 1:
        items.insert(at, items[at])
    elif kind == 2:
        chance.shuffle(items)
    else:
        return chance.choice([None, ()])
    return tuple(items)


# -- tensors ----------------------------------------------------------------------------------


def other_type(model: tables.Model, chance: Random) -> tables.Model:
    """Change the declared type of a tensor, often to another width; its shape stays."""
    types = COMMON_TYPES if chance.random() < 0.8 else TYPES
    return _with_tensor(model, chance, lambda t: t.replace(type=chance.choice(types)))


def other_types(model: tables.Model, chance: Random) -> tables.Model:
    """Change all tensors of one type to another type, so that kernels of that type run."""
    graph = _graph(model, chance)
    found = sorted({tensor.type for tensor in graph.tensors or ()})
    if not found:
        return model
    old, new = chance.choice(found), chance.choice(COMMON_TYPES)
    return _with_all_tensors(model, lambda t: t.replace(type=new) if t.type == old else t)


def other_shape(model: tables.Model, chance: Random) -> tables.Model:
    """Change the shape of a tensor, of every tensor with that shape, or a shape signature."""
    graph = _graph(model, chance)
    if not graph.tensors:
        return model
    old = chance.choice(graph.tensors).shape
    new = _other_dimensions(old or (), chance)
    kind = chance.randrange(4)
    if kind == 0:
        return _with_tensor(model, chance, lambda t: t.replace(shape_signature=new))
    if kind == 1:
        return _with_all_tensors(model, lambda t: t.replace(shape=new) if t.shape == old else t)
    return _with_tensor(model, chance, lambda t: t.replace(shape=new))


def _other_dimensions(shape: Sequence[int], chance: Random) -> tuple[int, ...]:
    items = list(shape)
    kind = chance.randrange(7)
    at = chance.randrange(len(items) + 1)
    if kind == 0:
        items.insert(at, 1)
    elif not items:
        return (chance.choice(LENGTHS),)
    elif kind == 1:
        chance.shuffle(items)
    elif kind == 2:
        del items[at % len(items)]
    elif kind == 3:
        items[at % len(items)] = chance.choice(LENGTHS)
    elif kind == 4:
        return (int(np.clip(np.prod(items, dtype=np.int64), -1, (1 << 31) - 1)),)
    else:
        at %= len(items)
        items[at] = chance.choice(
            [items[at] + 1, max(items[at] - 1, 0), min(items[at], 1 << 29) * 2]
        )
    return tuple(items)


def other_quantization(model: tables.Model, chance: Random) -> tables.Model:
    """Change a tensor's scale, zero point or axis, or copy another tensor's."""
    others = [t.quantization for t in _graph(model, chance).tensors or ()]

    def change(tensor: tables.Tensor) -> tables.Tensor:
        old = tensor.quantization
        if old is None or chance.random() < 0.3:
            return tensor.replace(quantization=chance.choice([None, *others]))
        position = chance.randrange(len(old.FIELDS))
        value = _other_value(old.FIELDS[position], old[position], chance)
        return tensor.replace(quantization=_replaced(old, (position,), value))

    return _with_tensor(model, chance, change)


def other_constant(model: tables.Model, chance: Random) -> tables.Model:
    """Change elements of a constant: axes, indices, sizes, weights."""
    buffers = list(model.buffers or ())
    held = [
        tensor
        for graph in model.subgraphs or ()
        for tensor in graph.tensors or ()
        if tensor.buffer < len(buffers) and _has_data(buffers[tensor.buffer])
    ]
    if not held:
        return model
    tensor = chance.choice(held)
    width = {TensorType.FLOAT32: "<f4", TensorType.INT32: "<i4", TensorType.INT64: "<i8"}
    dtype = np.dtype(width.get(tensor.type, "u1"))
    data = np.array(buffers[tensor.buffer].data)
    if len(data) % dtype.itemsize or chance.random() < 0.15:
        data = _other_array(data, data.dtype, chance)
    else:
        data = _with_elements(data.view(dtype), chance).view(np.uint8)
    buffers[tensor.buffer] = tables.Buffer(data=data)
    return model.replace(buffers=tuple(buffers))


def constness(model: tables.Model, chance: Random) -> tables.Model:
    """Remove a tensor's constant, replace it by another's, or make it a variable."""
    count = len(model.buffers or ())

    def change(tensor: tables.Tensor) -> tables.Tensor:
        if chance.random() < 0.2:
            return tensor.replace(is_variable=not tensor.is_variable)
        return tensor.replace(buffer=chance.choice([0, chance.randrange(count + 1)]))

    return _with_tensor(model, chance, change)


def _has_data(buffer: tables.Buffer) -> bool:
    return buffer.data is not None and len(buffer.data) > 0


# -- nodes ------------------------------------------------------------------------------------


def rewired(model: tables.Model, chance: Random) -> tables.Model:
    """Replace an operand of a node by another tensor, by none, or by an invalid index."""
    graph_at = chance.randrange(max(1, len(model.subgraphs or ())))
    count = len(_graph_at(model, graph_at).tensors or ())

    def change(node: tables.Operator) -> tables.Operator:
        side = chance.choice(["inputs", "inputs", "outputs"])
        items = list(getattr(node, side) or ())
        other = chance.choice([-1, *range(count), *range(count), count, count + 7])
        if not items or chance.random() < 0.1:
            items.append(other)
        elif chance.random() < 0.1:
            items.pop()
        else:
            items[chance.randrange(len(items))] = other
        return node.replace(**{side: tuple(items)})

    return _with_node(model, chance, change, graph_at)


def shared_output(model: tables.Model, chance: Random) -> tables.Model:
    """Make one tensor two outputs of a node, or an output of two nodes."""
    graph_at = chance.randrange(max(1, len(model.subgraphs or ())))
    nodes = _graph_at(model, graph_at).operators or ()
    made = [output for node in nodes for output in node.outputs or ()]

    def change(node: tables.Operator) -> tables.Operator:
        outputs = list(node.outputs or ())
        if not outputs:
            return node
        outputs[chance.randrange(len(outputs))] = chance.choice([outputs[0], *made])
        return node.replace(outputs=tuple(outputs))

    return _with_node(model, chance, change, graph_at)


def exchanged_operands(model: tables.Model, chance: Random) -> tables.Model:
    """Exchange two operands of a node: two inputs, two outputs, or one of each."""

    def change(node: tables.Operator) -> tables.Operator:
        inputs, outputs = list(node.inputs or ()), list(node.outputs or ())
        both = inputs + outputs
        if len(both) < 2:
            return node
        a, b = chance.sample(range(len(both)), 2)
        both[a], both[b] = both[b], both[a]
        count = len(inputs)
        return node.replace(inputs=tuple(both[:count]), outputs=tuple(both[count:]))

    return _with_node(model, chance, change)


def without_options(model: tables.Model, chance: Random) -> tables.Model:
    """Remove a node's options."""

    def change(node: tables.Operator) -> tables.Operator:
        return node.replace(builtin_options=None, builtin_options_2=None)

    return _with_node(model, chance, change)


def constant_as_input(model: tables.Model, chance: Random) -> tables.Model:
    """Make a constant an input of its subgraph, with or without its value."""
    buffers = model.buffers or ()

    def change(graph: tables.SubGraph) -> tables.SubGraph:
        found = list(graph.tensors or ())
        constants = [
            i
            for i, tensor in enumerate(found)
            if tensor.buffer < len(buffers) and _has_data(buffers[tensor.buffer])
        ]
        if not constants:
            return graph
        index = chance.choice(constants)
        if chance.random() < 0.5:
            found[index] = found[index].replace(buffer=0)
        inputs = (*(graph.inputs or ()), index)
        return graph.replace(tensors=tuple(found), inputs=inputs)

    return _with_graph(model, chance.randrange(max(1, len(model.subgraphs or ()))), change)


def other_operator(model: tables.Model, chance: Random) -> tables.Model:
    """Ask for another operator or version, with the operands that are there."""
    codes = list(model.operator_codes or ())
    if not codes:
        return model
    at = chance.randrange(len(codes))
    if chance.random() < 0.3:
        codes[at] = codes[at].replace(version=chance.choice([0, 1, 2, 3, 4, 5, 6, 7, 13, -1]))
        return model.replace(operator_codes=tuple(codes))
    operator = chance.choice(list(BuiltinOperator))
    codes[at] = tables.operator_code(operator, version=codes[at].version)
    model = model.replace(operator_codes=tuple(codes))
    if operator not in OPTIONS_OF_OPERATOR or chance.random() < 0.3:
        return model
    options = options_field(OPTIONS_OF_OPERATOR[operator]())
    none = {"builtin_options": None, "builtin_options_2": None}
    return tables.with_operators(
        model, lambda node: node.replace(**{**none, **options}) if node.opcode_index == at else node
    )


def other_nodes(model: tables.Model, chance: Random) -> tables.Model:
    """Duplicate, remove or permute the nodes of a subgraph, or its inputs or outputs."""

    def change(graph: tables.SubGraph) -> tables.SubGraph:
        name = chance.choice(["operators", "operators", "inputs", "outputs"])
        items = list(getattr(graph, name) or ())
        count = len(graph.tensors or ())
        kind = chance.randrange(4)
        if not items or (kind == 0 and name != "operators"):
            items.append(chance.randrange(-1, count + 1)) if name != "operators" else None
        elif kind == 1:
            del items[chance.randrange(len(items))]
        elif kind == 2:
            chance.shuffle(items)
        else:
            items.insert(chance.randrange(len(items) + 1), chance.choice(items))
        return graph.replace(**{name: tuple(items)})

    return _with_graph(model, chance.randrange(max(1, len(model.subgraphs or ()))), change)


def other_custom_options(model: tables.Model, chance: Random) -> tables.Model:
    """Damage the custom options of a node, or give it some."""

    def change(node: tables.Operator) -> tables.Operator:
        options = node.custom_options
        if options is None and chance.random() < 0.7:
            return node
        return node.replace(custom_options=_other_array(options, np.dtype(np.uint8), chance))

    return _with_node(model, chance, change)


# -- parts of a model -------------------------------------------------------------------------


def _graph(model: tables.Model, chance: Random) -> tables.SubGraph:
    return _graph_at(model, chance.randrange(max(1, len(model.subgraphs or ()))))


def _graph_at(model: tables.Model, at: int) -> tables.SubGraph:
    graphs = model.subgraphs or ()
    return graphs[at] if at < len(graphs) else tables.SubGraph()


def _with_graph(
    model: tables.Model, at: int, change: Callable[[tables.SubGraph], tables.SubGraph]
) -> tables.Model:
    graphs = model.subgraphs or ()
    if at >= len(graphs):
        return model
    return model.replace(subgraphs=(*graphs[:at], change(graphs[at]), *graphs[at + 1 :]))


def _with_node(
    model: tables.Model,
    chance: Random,
    change: Callable[[tables.Operator], tables.Operator],
    graph_at: int | None = None,
) -> tables.Model:
    """Change one node of a subgraph."""

    def of_graph(graph: tables.SubGraph) -> tables.SubGraph:
        nodes = graph.operators or ()
        if not nodes:
            return graph
        at = chance.randrange(len(nodes))
        return graph.replace(operators=(*nodes[:at], change(nodes[at]), *nodes[at + 1 :]))

    if graph_at is None:
        graph_at = chance.randrange(max(1, len(model.subgraphs or ())))
    return _with_graph(model, graph_at, of_graph)


def _with_tensor(
    model: tables.Model, chance: Random, change: Callable[[tables.Tensor], tables.Tensor]
) -> tables.Model:
    """Change one tensor of a subgraph."""

    def of_graph(graph: tables.SubGraph) -> tables.SubGraph:
        found = graph.tensors or ()
        if not found:
            return graph
        at = chance.randrange(len(found))
        return graph.replace(tensors=(*found[:at], change(found[at]), *found[at + 1 :]))

    return _with_graph(model, chance.randrange(max(1, len(model.subgraphs or ()))), of_graph)


def _with_all_tensors(
    model: tables.Model, change: Callable[[tables.Tensor], tables.Tensor]
) -> tables.Model:
    graphs = (
        graph.replace(tensors=tuple(map(change, graph.tensors))) if graph.tensors else graph
        for graph in model.subgraphs or ()
    )
    return model.replace(subgraphs=tuple(graphs))


DAMAGES: dict[Damage, int] = {
    changed_field: 3,
    changed_option: 3,
    other_type: 4,
    other_types: 2,
    other_shape: 4,
    other_quantization: 2,
    other_constant: 4,
    constness: 2,
    rewired: 4,
    shared_output: 2,
    exchanged_operands: 3,
    without_options: 2,
    constant_as_input: 2,
    other_operator: 2,
    other_nodes: 2,
    other_custom_options: 1,
}
"""Every damage, and how often it is chosen beside the others."""


def damaged(model: tables.Model, chance: Random) -> tables.Model:
    """Return *model* with one or a few random damages."""
    count = 1
    while count < 6 and chance.random() < 0.45:
        count += 1
    for damage in chance.choices(list(DAMAGES), list(DAMAGES.values()), k=count):
        model = damage(model, chance)
    return model
