"""Models of several subgraphs, for control flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delegraph.schema import tables
from delegraph.schema.enums import BuiltinOperator
from delegraph.schema.options import options_field
from delegraph.schema.table import Table
from delegraph.schema.writer import write_model
from delegraph.testing.one_op import TensorDef, tensor_record


@dataclass(frozen=True)
class Op:
    """One operator of a :class:`Graph`."""

    name: str
    inputs: Sequence[TensorDef]
    outputs: Sequence[TensorDef]
    options: Table | None = None


@dataclass(frozen=True)
class Graph:
    """A subgraph with inputs, outputs and operators in order; an input may also be an output."""

    inputs: Sequence[TensorDef]
    outputs: Sequence[TensorDef]
    ops: Sequence[Op] = ()


def model_of(*graphs: Graph) -> bytes:
    """Return the ``.tflite`` bytes of a model whose subgraphs are *graphs*."""
    return write_model(records_of(*graphs))


def records_of(*graphs: Graph) -> tables.Model:
    """Return a model of the subgraphs *graphs*, as records of the schema."""
    codes = sorted({op.name for graph in graphs for op in graph.ops})
    buffers = [tables.Buffer()]
    subgraphs = tuple(_subgraph(graph, codes, buffers) for graph in graphs)
    operator_codes = tuple(tables.operator_code(BuiltinOperator[name]) for name in codes)
    return tables.Model(
        version=3, operator_codes=operator_codes, subgraphs=subgraphs, buffers=tuple(buffers)
    )


def main_subgraph(records: tables.Model) -> tables.SubGraph:
    """Return the main subgraph of a model, which is its first."""
    return (records.subgraphs or ())[0]


def _subgraph(graph: Graph, codes: list[str], buffers: list[tables.Buffer]) -> tables.SubGraph:
    found = [graph.inputs, graph.outputs, *(t for op in graph.ops for t in (op.inputs, op.outputs))]
    defs = list({id(d): d for group in found for d in group}.values())
    index = {id(d): i for i, d in enumerate(defs)}
    first = len(buffers)
    buffers += [tables.Buffer(data=definition.data) for definition in defs]
    return tables.SubGraph(
        tensors=tuple(tensor_record(d, f"t{i}", first + i) for i, d in enumerate(defs)),
        inputs=tuple(index[id(d)] for d in graph.inputs),
        outputs=tuple(index[id(d)] for d in graph.outputs),
        operators=tuple(_operator(op, codes, index) for op in graph.ops),
        name="graph",
    )


def _operator(op: Op, codes: list[str], index: dict[int, int]) -> tables.Operator:
    return tables.Operator(
        opcode_index=codes.index(op.name),
        inputs=tuple(index[id(d)] for d in op.inputs),
        outputs=tuple(index[id(d)] for d in op.outputs),
        **options_field(op.options),
    )
