"""Cuts nodes out of a model as a separate model, and computes the values of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from delegraph.delegation.delegate import DelegateContext
from delegraph.delegation.partition_model import partition_model
from delegraph.errors import DelegraphError
from delegraph.runtime.interpreter import Interpreter
from delegraph.tools.differing.bisection import Nodes
from delegraph.tools.differing.difference import own_kernels
from delegraph.tools.model_call import model_call
from delegraph.tools.setup import Setup


@dataclass(frozen=True, slots=True)
class _Cut:
    """Nodes of the first subgraph, with the tensors that they share with the other nodes."""

    nodes_to_replace: tuple[int, ...]
    input_tensors: tuple[int, ...]
    output_tensors: tuple[int, ...]


def cut_model(
    setup: Setup, nodes: Nodes, values: Sequence[NDArray[Any]]
) -> tuple[bytes, tuple[NDArray[Any], ...]]:
    """Return nodes of the first subgraph as a model, and the values of its inputs.

    The values are those that Delegraph's own kernels compute.

    Args:
        setup: set-up with the model.
        nodes: nodes to cut out; they need not be neighbours.
        values: values of the whole model's inputs, in order.

    Raises:
        DelegraphError: nodes lie in other subgraphs or cannot be a separate model, or the kernels
            cannot compute the model.
    """
    if any(subgraph for subgraph, _ in nodes):
        raise DelegraphError("nodes of subgraphs that others call cannot be cut out")
    plain = replace(own_kernels(setup), use_default_delegates=False)  # otherwise preserving warns
    with plain.interpreter(experimental_preserve_all_tensors=True) as interpreter:
        assert isinstance(interpreter, Interpreter)  # own_kernels selects this runtime
        call = model_call(interpreter)
        call.prepare(values)
        call.invoke()
        context = interpreter.session.contexts[0]
        cut = _border(context, [node for _, node in nodes])
        found = partition_model(context, cut)
        return found.content, tuple(interpreter.get_tensor(index) for index in found.inputs)


def _border(context: DelegateContext, nodes: Sequence[int]) -> _Cut:
    """Return *nodes* with their inputs from other nodes, and with the outputs for other nodes."""
    chosen = frozenset(nodes)
    made: set[int] = set()
    read: set[int] = set()
    read_by_others = {*context.outputs}
    for index in context.get_execution_plan():
        node, _ = context.get_node_and_registration(index)
        if index in chosen:
            made.update(node.outputs)
            read.update(i for i in node.inputs if i >= 0)
        else:
            read_by_others.update(node.inputs)
    outputs = sorted(made & read_by_others) or sorted(made - read)
    order = tuple(index for index in context.get_execution_plan() if index in chosen)
    return _Cut(order, tuple(sorted(read - made)), tuple(outputs))
