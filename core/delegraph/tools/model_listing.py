"""Every node and every tensor of a model file, as ``delegraph inspect --nodes --tensors`` lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from delegraph.graph.macs import is_least, macs_of
from delegraph.graph.model import Model, OperatorSpec, SubgraphSpec, TensorSpec
from delegraph.json_records import JsonRecord
from delegraph.schema.table import Table
from delegraph.tools.model_arithmetic import unstored_share
from delegraph.tools.model_summary import TensorSummary, summarize_tensors


@dataclass(frozen=True, slots=True)
class ListedNode(JsonRecord):
    """A node of a model file.

    Attributes:
        subgraph: index of the subgraph.
        index: index of the node in the subgraph.
        op: schema name, or the custom code.
        version: operator version.
        inputs: tensor indices; -1 for an absent optional input.
        outputs: tensor indices.
        options: mapping from the name of an option to its value; numbers, texts and lists of
            numbers only.
        macs: number of multiply-accumulates of one run; None if unknown.
        macs_are_least: whether the number is only a least one, since the file lacks a shape.
        constant_bytes: number of bytes of the constants that it reads, as they are stored.
    """

    subgraph: int
    index: int = field(metadata={"json_key": "node"})
    op: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any]
    macs: int | None
    macs_are_least: bool
    constant_bytes: int


@dataclass(frozen=True, slots=True)
class ListedTensor(JsonRecord):
    """A tensor of a model file.

    Attributes:
        subgraph: index of the subgraph.
        tensor: name, index, type, shape and quantization.
        role: ``input``, ``output``, ``variable``, ``constant``, or empty.
        bytes: number of bytes of a constant in the file; None for other tensors.
        sparsity: share of a sparse constant's elements that are zeros and not stored; None for
            other tensors.
    """

    subgraph: int
    tensor: TensorSummary
    role: str
    bytes: int | None
    sparsity: float | None

    def to_json(self) -> dict[str, Any]:
        """Return one flat dictionary."""
        shown = {name: getattr(self.tensor, name) for name in TensorSummary.__slots__}
        return {
            "subgraph": self.subgraph,
            **shown,
            "shape": None if self.tensor.shape is None else list(self.tensor.shape),
            "role": self.role,
            "bytes": self.bytes,
            "sparsity": self.sparsity,
        }


def list_nodes(model: Model) -> list[ListedNode]:
    """Return all nodes of a model, by subgraph and index."""
    return [
        _node(subgraph, operator) for subgraph in model.subgraphs for operator in subgraph.operators
    ]


def list_tensors(model: Model) -> list[ListedTensor]:
    """Return all tensors of a model, by subgraph and index."""
    return [
        ListedTensor(
            subgraph.index,
            summary,
            _role(tensor, subgraph),
            None if tensor.data is None else len(tensor.data),
            unstored_share(tensor),
        )
        for subgraph in model.subgraphs
        for tensor, summary in zip(subgraph.tensors, summarize_tensors(subgraph), strict=True)
    ]


def _node(subgraph: SubgraphSpec, operator: OperatorSpec) -> ListedNode:
    macs, are_least = macs_of(operator, subgraph.tensors), is_least(operator, subgraph.tensors)
    read = {index: subgraph.tensors[index].data for index in operator.inputs if index >= 0}
    return ListedNode(
        subgraph.index,
        operator.index,
        operator.name,
        operator.version,
        tuple(operator.inputs),
        tuple(operator.outputs),
        {} if operator.options is None else options_of(operator.options),
        None if are_least and not macs else macs,
        are_least,
        sum(len(data) for data in read.values() if data is not None),
    )


def options_of(table: Table) -> dict[str, Any]:
    """Return the options in a table that are numbers, texts or lists of numbers, by name.

    >>> from delegraph.schema.options import PackOptions
    >>> options_of(PackOptions(values_count=2))
    {'values_count': 2, 'axis': 0}
    """
    found: dict[str, Any] = {}
    for each, value in zip(table.FIELDS, table, strict=True):
        if isinstance(value, IntEnum):
            found[each.name] = value.name
        elif isinstance(value, bool | int | float | str):
            found[each.name] = value
        elif type(value) is tuple and not any(isinstance(item, Table) for item in value):
            found[each.name] = list(value)
    return found


def _role(tensor: TensorSpec, subgraph: SubgraphSpec) -> str:
    if tensor.is_constant:
        return "constant"
    if tensor.is_variable:
        return "variable"
    if tensor.index in subgraph.inputs:
        return "input"
    return "output" if tensor.index in subgraph.outputs else ""
