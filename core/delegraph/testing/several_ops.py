"""Models of several operators, written as names of operators and tensors.

f(x) = sin(x) + x is::

    graph_model(
        [("SIN", "x", "s"), ("ADD", "s x", "y")], inputs="x", outputs="y",
    )

Tensors without a definition are ``[4]`` floats. :func:`subgraphs_model` makes several subgraphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from delegraph.schema import tables
from delegraph.schema.options import options_field
from delegraph.schema.table import Table
from delegraph.schema.writer import write_model
from delegraph.testing.one_op import TensorDef, operator_code, tensor, tensor_record

NodeText = tuple[str, str, str] | tuple[str, str, str, Table]
"""A node: operator, input names, output names, and maybe options; ``-`` is an absent input."""


class _Buffers:
    def __init__(self) -> None:
        self.records = [tables.Buffer()]
        self.codes: list[str] = []

    def add(self, definition: TensorDef) -> int:
        if definition.data is None:
            return 0
        self.records.append(tables.Buffer(data=definition.data))
        return len(self.records) - 1

    def code(self, op: str) -> int:
        if op not in self.codes:
            self.codes.append(op)
        return self.codes.index(op)


SubgraphText = tuple[Sequence[NodeText], str, str, Mapping[str, TensorDef]]
"""A subgraph: nodes, input names, output names, and tensors that are not ``[4]`` floats."""


def graph_model(
    nodes: Sequence[NodeText],
    *,
    inputs: str,
    outputs: str,
    tensors: Mapping[str, TensorDef] | None = None,
    metadata: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return the bytes of a model with one subgraph, given by names of operators and tensors.

    Args:
        nodes: operators in order, each with the names of its inputs and outputs.
        inputs: names of the graph inputs.
        outputs: names of the graph outputs.
        tensors: definitions of named tensors; a tensor without one gets a default.
        metadata: metadata buffers by name.
    """
    return subgraphs_model([(nodes, inputs, outputs, tensors or {})], metadata=metadata)


def subgraphs_model(
    subgraphs: Sequence[SubgraphText],
    *,
    names: Sequence[str] | None = None,
    metadata: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return a model with several subgraphs; the first is the main one."""
    shared = _Buffers()
    records = tuple(_subgraph(shared, *subgraph) for subgraph in subgraphs)
    if names is not None:
        records = tuple(r.replace(name=name) for r, name in zip(records, names, strict=True))
    entries = []
    for name, content in (metadata or {}).items():
        shared.records.append(tables.Buffer(data=np.frombuffer(content, np.uint8)))
        entries.append(tables.Metadata(name=name, buffer=len(shared.records) - 1))
    return write_model(
        tables.Model(
            version=3,
            operator_codes=tuple(map(operator_code, shared.codes)),
            subgraphs=records,
            buffers=tuple(shared.records),
            metadata=tuple(entries) or None,
        )
    )


def _subgraph(
    shared: _Buffers,
    nodes: Sequence[NodeText],
    inputs: str,
    outputs: str,
    tensors: Mapping[str, TensorDef],
) -> tables.SubGraph:
    names = dict.fromkeys(inputs.split())
    for node in nodes:
        names.update(dict.fromkeys((*node[1].split(), *node[2].split())))
    names.update(dict.fromkeys(outputs.split()))
    names.pop("-", None)
    index = {name: i for i, name in enumerate(names)} | {"-": -1}
    return tables.SubGraph(
        tensors=tuple(_tensor(shared, name, tensors.get(name, tensor((4,)))) for name in names),
        inputs=tuple(index[name] for name in inputs.split()),
        outputs=tuple(index[name] for name in outputs.split()),
        operators=tuple(_operator(shared, index, *node) for node in nodes),
    )


def _tensor(shared: _Buffers, name: str, definition: TensorDef) -> tables.Tensor:
    record = tensor_record(definition, name, shared.add(definition))
    return record.replace(name=name, has_rank=False)


def _operator(
    shared: _Buffers,
    index: Mapping[str, int],
    op: str,
    inputs: str,
    outputs: str,
    options: Table | None = None,
) -> tables.Operator:
    return tables.Operator(
        opcode_index=shared.code(op),
        inputs=tuple(index[name] for name in inputs.split()),
        outputs=tuple(index[name] for name in outputs.split()),
        **options_field(options),
    )
