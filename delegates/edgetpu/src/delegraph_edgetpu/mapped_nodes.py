"""Delegate of ``delegraph compile --delegate edgetpu``: claims the nodes that the compiler maps."""

from __future__ import annotations

import numpy as np

from delegraph import (
    DelegateContext,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
    Tensor,
)
from delegraph.errors import OperatorError, PluginOptionError
from delegraph.graph import OperatorSpec, SubgraphSpec, TensorSpec
from delegraph_edgetpu.chip import NEWEST_RUNTIME
from delegraph_edgetpu.mapping import OperatorMapping, map_subgraph
from delegraph_edgetpu.options import EdgeTpuOptions
from delegraph_edgetpu.reasons import Reason, Status


class MappedNodes(SimpleDelegateInterface):
    """Delegate that claims the nodes which ``delegraph edgetpu compile`` would map.

    Args:
        options: options of the delegate.

    Raises:
        PluginOptionError: an option is not the default; a compiled partition cannot store it.
    """

    def __init__(self, options: EdgeTpuOptions) -> None:
        if options != EdgeTpuOptions():
            raise PluginOptionError(
                "device, via and twin of 'edgetpu' are options for running a model. Files of "
                "`delegraph compile` run with the defaults; for files of `delegraph edgetpu "
                "compile` they can be set"
            )
        self._mappings: dict[int, OperatorMapping] = {}

    def name(self) -> str:
        return "edgetpu"

    def note(self) -> str:
        return "for a simulated device; a real Edge TPU cannot run the file"

    def initialize(self, context: DelegateContext) -> None:
        nodes = context.get_execution_plan()
        mapping = map_subgraph(subgraph_of(context), NEWEST_RUNTIME)
        self._mappings = dict(zip(nodes, mapping.operators, strict=True))

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        mapping = self._mappings[node.index]
        return mapping.is_mapped or _rejection(mapping.reasons[0])

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        raise OperatorError("what maps is compiled, and runs when it has been")


def _rejection(reason: Reason) -> Rejection:
    """Return *reason* as a rejection; about types and shapes it names no tensor.

    So the nodes that break one of these rules are listed together, with the remedy.
    """
    subject = "shapes" if reason.rule == "fixed-shape" else _SUBJECTS.get(reason.status)
    if subject is not None:
        return Rejection(reason.rule, f"{subject} {reason.expected}: {reason.remedy}")
    return Rejection(reason.rule, str(reason))


_SUBJECTS = {Status.DATA_TYPE: "tensors", Status.RANK: "of shapes,"}
"""Mapping from a status to the subject of the limit, for tensors of any operator."""


def subgraph_of(context: DelegateContext) -> SubgraphSpec:
    """Return the subgraph with the nodes of its execution plan, as the model file declares it."""
    steps = [context.get_node_and_registration(index) for index in context.get_execution_plan()]
    return SubgraphSpec(
        context.subgraph_index,
        context.subgraph_names[context.subgraph_index],
        tuple(map(_tensor, context.tensors)),
        tuple(_operator(position, *step) for position, step in enumerate(steps)),
        tuple(context.inputs),
        tuple(context.outputs),
    )


def _operator(position: int, node: Node, registration: Registration) -> OperatorSpec:
    return OperatorSpec(
        position,
        registration.name,
        registration.builtin_code,
        node.version,
        tuple(node.inputs),
        tuple(node.outputs),
        tuple(node.intermediates),
        node.options,
    )


def _tensor(tensor: Tensor) -> TensorSpec:
    return TensorSpec(
        tensor.index,
        tensor.name,
        tensor.type,
        tensor.shape,
        tensor.shape_signature,
        np.asarray(tensor.data) if tensor.is_constant else None,
        tensor.is_variable,
        tensor.quantization,
        tensor.sparsity,
        tensor.has_rank,
    )
