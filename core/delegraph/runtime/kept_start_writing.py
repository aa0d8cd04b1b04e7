"""Stores the start of a model that the default delegate computes by a kept program."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.graph.constant_nodes import constant_nodes
from delegraph.graph.model_files import is_unchanged
from delegraph.runtime.kept_start import Request, Stored
from delegraph.runtime.tensor_access import STORED_AS_SEEN

if TYPE_CHECKING:
    from delegraph.graph.model import TensorSpec
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.session import Session
    from delegraph.runtime.subgraph import Subgraph


def keep(request: Request, session: Session) -> None:
    """Store a start for *request* if an interpreter can run its model without the graph."""
    first = session.subgraphs[0]
    kernel = _only_kernel(session)
    module = getattr(kernel, "start_module", None)
    if module is None or not _has_plain_border(first):
        return
    programs: Any = import_module(module)
    indices = (*first.inputs, *first.outputs)
    program = programs.key_of(kernel, indices)
    made_for = programs.made_for(request.num_threads)
    if program is None or made_for is None:
        return
    tensors = tuple(Stored.fields(first.tensors[index]) for index in dict.fromkeys(indices))
    nodes = len(first.operators)
    stored = Stored(module, made_for, program, nodes, tensors, first.inputs, first.outputs)
    request.cache.keep(request.key, ascii(tuple(stored)).encode())


def _only_kernel(session: Session) -> object | None:
    """Return the kernel with which the default delegate computes the whole model; else None.

    Conversions of constants are left out, as the kernel has their results. The result is also None
    if the computation depends on anything besides the model file.
    """
    first, model = session.subgraphs[0], session.model
    constants = constant_nodes(first.spec)
    nodes = [node for node, _ in first.plan.steps() if node.index not in constants]
    node = nodes[0] if len(nodes) == 1 else None
    is_whole = (
        node is not None
        and node.delegate is session.rest is not None
        and list(session.delegates) == [session.rest]
        and not session.supervision.has_quarantined
        and not first.has_dynamic_tensors
        and first.shortcuts.invoke is not None
    )
    is_alone = (
        len(model.subgraphs) == 1
        and model.entries is None
        and not model.external_buffers.files
        and session.control_edges is None
        and not session.has_other_constants
        and not any(operator.is_custom for operator in first.operators)
        and is_unchanged(model.content)
    )
    return node.user_data if node is not None and is_whole and is_alone else None


def _has_plain_border(first: Subgraph) -> bool:
    """Whether a few numbers describe all inputs and outputs of a subgraph without state."""
    indices = (*first.inputs, *first.outputs)
    return (
        not first.variables
        and len(first.inputs) > 0 < len(first.outputs)
        and len(set(indices)) == len(indices)
        and min(indices) >= 0
        and all(_is_plain(first.tensors[i], first.spec.tensors[i]) for i in indices)
    )


def _is_plain(tensor: Tensor, declared: TensorSpec) -> bool:
    known = tensor.quantization
    has_usual_quantization = known is None or (
        known.scales.dtype == np.float32
        and known.zero_points.dtype == np.int32
        and known.block_size == 0
    )
    return (
        has_usual_quantization
        and tensor.type in STORED_AS_SEEN
        and tensor.type == declared.type
        and tensor.shape == declared.shape
        and math.prod(tensor.shape) > 0 < len(tensor.shape)
        and not tensor.is_constant_or_persistent
        and tensor.sparsity is None
        and tensor.buffer_handle == -1
    )
