"""Claims of an isolated delegate: its process gets the plan as a model and judges each node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from delegraph.delegation.delegate import DelegateContext
from delegraph.delegation.partition_model import PartitionModel, partition_model
from delegraph.delegation.rejections import Rejection
from delegraph.graph.calls import called_subgraphs
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.registration import Node
from delegraph.schema.table import Table

ISOLATED = "isolated"
"""Constraint in the rejection of a node that another process cannot compute."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes of a plan as a partition, so that they can be written as a model."""

    nodes_to_replace: tuple[int, ...]
    input_tensors: tuple[int, ...]
    output_tensors: tuple[int, ...]


def movable_nodes(context: DelegateContext) -> tuple[list[int], dict[int, Rejection]]:
    """Return the nodes that another process can compute, and rejections for all other nodes."""
    movable, obstacles = [], {}
    for index in context.get_execution_plan():
        if index in context.refused_nodes:
            continue
        obstacle = _obstacle(context, context.get_node_and_registration(index)[0])
        if obstacle is None:
            movable.append(index)
        else:
            obstacles[index] = obstacle
    return movable, obstacles


def _obstacle(context: DelegateContext, node: Node) -> Rejection | None:
    """Reason why a node cannot be computed in another process; None if it can."""
    if node.delegate is not None:
        return Rejection(ISOLATED, "another delegate has it")
    if isinstance(node.options, Table) and any(True for _ in called_subgraphs(node.options)):
        return Rejection(ISOLATED, "it calls a subgraph, which is in the host's process")
    for index in (*node.inputs, *node.outputs):
        tensor = context.tensors[index] if index >= 0 else None
        if tensor is not None and tensor.type in OBJECT_TYPES:
            reason = f"tensors of {tensor.type.name} cannot be shared with another process"
            return Rejection(ISOLATED, reason, tensor=index)
        if tensor is not None and tensor.is_variable:
            reason = "its variable would be lost with the delegate's process"
            return Rejection(ISOLATED, reason, tensor=index)
    return None


def model_of_nodes(context: DelegateContext, indices: Iterable[int]) -> PartitionModel:
    """Return the plan's nodes *indices* as a model; its inputs are results of other nodes.

    Raises:
        DelegateError: a node cannot stand alone.
    """
    nodes = [context.get_node_and_registration(index)[0] for index in indices]
    written = dict.fromkeys(i for node in nodes for i in node.outputs if i >= 0)
    read = dict.fromkeys(i for node in nodes for i in node.inputs if i >= 0)
    partition = _Nodes(
        tuple(node.index for node in nodes),
        tuple(i for i in read if i not in written),
        tuple(written),
    )
    return partition_model(context, partition)


def rejection_json(rejection: Rejection) -> Mapping[str, Any]:
    """Return a rejection as JSON for the host, with its message (``to_json`` drops it)."""
    return {**rejection.to_json(), "message": rejection.message}


def rejection_from_json(content: Mapping[str, Any], model: PartitionModel) -> Rejection:
    """Return the rejection *content* from another process, with the host's tensor index.

    The tensor index in *content* refers to *model*, which was sent to that process.
    """
    tensor = content["tensor"]
    is_known = tensor is not None and 0 <= tensor < len(model.tensors)
    return Rejection(**{**content, "tensor": model.tensors[tensor] if is_known else None})
