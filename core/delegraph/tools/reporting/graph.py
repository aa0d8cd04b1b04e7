"""Graph of a model as data for the page: tensors, nodes, delegates and rejections."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from delegraph.delegation.placement import NodePlacement, Placement
from delegraph.graph.calls import called_subgraphs
from delegraph.graph.constant_nodes import constant_nodes
from delegraph.graph.dtypes import OBJECT_TYPES, byte_size
from delegraph.graph.model import Model, OperatorSpec, SubgraphSpec, TensorSpec
from delegraph.schema.table import Table
from delegraph.tools.model_summary import ModelSummary

LONGEST_VALUE = 200
"""Largest number of characters of an option's value that are shown."""

Shapes = Mapping[int, Sequence[Sequence[int]]]
"""Mapping from a subgraph's index to the present shapes of its tensors.

For other subgraphs, the shapes in the file are used.
"""


def graph_json(
    model: Model, placement: Placement, summary: ModelSummary, shapes: Shapes
) -> list[dict[str, Any]]:
    """Return every subgraph with its tensors and nodes, for JSON.

    *summary* has packages' facts about custom operators. *shapes* are the present shapes of
    tensors, as far as an interpreter knows them.
    """
    facts = {(d.subgraph, d.operator): d.facts for d in summary.described}
    placed = {(node.subgraph, node.index): node for node in placement.nodes}
    return [
        {
            "name": spec.name,
            "inputs": list(spec.inputs),
            "outputs": list(spec.outputs),
            "tensors": list(_tensors(spec, shapes.get(spec.index, ()))),
            "nodes": [
                _node(
                    op, placed[spec.index, op.index], placement, facts.get((spec.index, op.index))
                )
                | _folded(op, spec, once)
                for op in spec.operators
            ],
        }
        for spec, once in ((spec, constant_nodes(spec)) for spec in model.subgraphs)
    ]


def _folded(operator: OperatorSpec, spec: SubgraphSpec, once: Container[int]) -> dict[str, bool]:
    """Return ``is_constant`` for a node that only widens a constant for other nodes.

    The page draws no such node. *once* has the indices of the nodes that widen constants.
    """
    is_read = operator.index in once and not {*spec.outputs} & {*operator.outputs}
    return {"is_constant": True} if is_read else {}


def _tensors(spec: SubgraphSpec, shapes: Sequence[Sequence[int]]) -> Iterator[dict[str, Any]]:
    for tensor in spec.tensors:
        known = tensor.index < len(shapes)
        yield _tensor(tensor, tuple(map(int, shapes[tensor.index])) if known else tensor.shape)


def _tensor(tensor: TensorSpec, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return a tensor for JSON, without fields that have their default value."""
    told: dict[str, Any] = {
        "name": tensor.name,
        "type": tensor.type.name.lower(),
        "shape": list(shape),
    }
    if tensor.type not in OBJECT_TYPES:
        told["bytes"] = byte_size(tensor.type, shape) if tensor.data is None else len(tensor.data)
    if -1 in tensor.shape_signature:
        told["signature"] = list(tensor.shape_signature)
    if tensor.data is not None:
        told["is_constant"] = True
    if tensor.is_variable:
        told["is_variable"] = True
    if tensor.sparsity is not None:
        told["is_sparse"] = True
    quantization = tensor.quantization
    if quantization is not None and len(quantization.scales):
        told["scale"], told["zero_point"] = quantization.scale, quantization.zero_point
        if len(quantization.scales) > 1:
            told["scales"] = len(quantization.scales)
            told["axis"] = quantization.quantized_dimension
    return told


def _node(
    operator: OperatorSpec,
    node: NodePlacement,
    placement: Placement,
    facts: Mapping[str, str] | None,
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "op": operator.name,
        "version": operator.version,
        "inputs": list(operator.inputs),
        "outputs": list(operator.outputs),
    }
    options = dict(_options(operator.options)) | dict(facts or {})
    if operator.is_custom and operator.custom_options is not None and not facts:
        options["custom options"] = f"{len(operator.custom_options)} bytes"
    if options:
        told["options"] = {name: shown_value(value) for name, value in options.items()}
    if calls := list(called_subgraphs(operator.options)):
        told["calls"] = calls
    return told | _placed(node, placement)


def placed_json(model: Model, placement: Placement) -> list[list[dict[str, Any]]]:
    """Return, for each node of each subgraph, its delegate and others' reasons, for JSON."""
    placed = {(node.subgraph, node.index): node for node in placement.nodes}
    return [
        [_placed(placed[spec.index, op.index], placement) for op in spec.operators]
        for spec in model.subgraphs
    ]


def _placed(node: NodePlacement, placement: Placement) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if node.delegate is not None:
        told["delegate"], told["partition"] = node.delegate, node.partition
    if node.is_unresolved:
        told["is_unresolved"] = True
    if reasons := {name: str(r) for name, r in node.refusals(placement.delegates)}:
        told["reasons"] = reasons
    return told


def _options(options: Table | None) -> Iterator[tuple[str, Any]]:
    if options is not None:
        for field, value in zip(options.FIELDS, options, strict=True):
            yield field.name, value


def shown_value(value: Any) -> str:
    """Return text of a few words for an option's value.

    >>> shown_value(np.zeros(500, np.uint8)), shown_value((1, 2))
    ('500 values', '1, 2')
    """
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, np.ndarray):
        return f"{value.size} values"
    if isinstance(value, tuple) and not isinstance(value, Table):
        value = ", ".join(map(shown_value, value)) or "none"
    text = str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
