"""Shapes of tensors inside a partition, and constants that DEQUANTIZE or DENSIFY computes.

A delegate only gets nodes that Delegraph's kernels accept for the present shapes. With the flag
``REQUIRE_PROPAGATED_SHAPES``, its kernel also gets the shapes of all tensors of its partition.
LiteRT computes these only up to the first shape that is known during invoke, so this module
computes them for Python delegates.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import DelegateParams
from delegraph.delegation.partition_model import partition_model
from delegraph.errors import ModelError
from delegraph.native.litert.context import LiteRtContext
from delegraph.native.litert.node_check import original_step
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.registration import Node
from delegraph.runtime.delegates.checked_nodes import check_nodes
from delegraph.runtime.interpreter import Interpreter
from delegraph.schema.enums import BuiltinOperator

logger = logging.getLogger(__name__)

_WIDENING = (BuiltinOperator.DEQUANTIZE, BuiltinOperator.DENSIFY)


def check_shapes(context: LiteRtContext, delegate_node: Node, *, propagates: bool) -> None:
    """Check a partition's nodes again if shapes have changed since it was claimed.

    With *propagates*, inner tensors get the shapes that Delegraph's kernels compute, except shapes
    known only during invoke.

    Raises:
        NodeError: a kernel rejects its node.
        UnresolvedOpError: the shapes of a custom operator without a kernel are needed.
    """
    params: DelegateParams = delegate_node.options
    nodes = [
        original_step(context.get_node_and_registration(index), context.operators[index])
        for index in params.nodes_to_replace
        if index in context.operators
    ]
    findings = context.findings
    if not findings.hold_for(nodes, context.tensors):
        findings = check_nodes(context, nodes, MemoryLimit.of_machine())
        findings.raise_first(needs_shapes=propagates)
    findings.give_types(nodes, context.tensors)
    if propagates:
        for index in findings.known.keys() & {*delegate_node.outputs}:
            context.resize_tensor(context.tensors[index], findings.known[index].shape)
        findings.give_shapes(nodes, context.tensors)


def widened_constants(context: LiteRtContext, inputs: Iterable[int]) -> dict[int, NDArray[Any]]:
    """Return the values of those *inputs* that DEQUANTIZE or DENSIFY computes from constants.

    The keys are tensor indices.

    Delegraph computes these values before nodes are prepared; LiteRT computes them during the first
    invoke.
    """
    spec = context.spec
    makers = {o.outputs[0]: o for o in spec.operators if o.builtin_code in _WIDENING and o.outputs}
    node_of = {operator.index: index for index, operator in context.operators.items()}
    wanted: dict[int, int] = {}  # mapping from a tensor to its constant
    nodes: set[int] = set()
    for index in inputs:
        chain: set[int] = set()
        source = index
        while source in makers and makers[source].index in node_of:
            chain.add(node_of[makers[source].index])
            source = makers[source].inputs[0]
        if chain and 0 <= source < len(spec.tensors) and spec.tensors[source].data is not None:
            wanted[index] = source
            nodes |= chain
    if not wanted:
        return {}
    sources = tuple(sorted({*wanted.values()}))
    params = DelegateParams(None, tuple(sorted(nodes)), sources, tuple(wanted), context)
    try:
        return dict(zip(wanted, _computed(partition_model(context, params).content), strict=True))
    except ModelError as error:
        logger.info("LiteRT will compute %d constants when it invokes: %s", len(wanted), error)
        return {}


def _computed(content: bytes) -> list[NDArray[Any]]:
    """Return the outputs, read-only, of the model file *content*, which has no inputs."""
    with Interpreter(model_content=content, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        interpreter.invoke()
        outputs = [
            np.asarray(interpreter.get_tensor(details["index"]))
            for details in interpreter.get_output_details()
        ]
    for output in outputs:
        output.flags.writeable = False
    return outputs
