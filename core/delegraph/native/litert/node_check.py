"""Checks by Delegraph's kernels which nodes of an official interpreter are well-formed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from delegraph.graph.model import OperatorSpec, SubgraphSpec
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.registration import OpContext
from delegraph.operators.tensor import Tensor
from delegraph.runtime.delegates.checked_nodes import check_nodes
from delegraph.runtime.delegates.node_facts import Findings, order_errors
from delegraph.runtime.execution.steps import Step
from delegraph.runtime.missing_inputs import missing_input_errors, missing_inputs


def check_subgraph(
    context: OpContext,
    spec: SubgraphSpec,
    operators: Mapping[int, OperatorSpec],
    steps: Mapping[int, Step],
) -> Findings:
    """Check the model's nodes by Delegraph's kernels; return findings by runtime node index.

    The shape of an input with an unknown dimension counts as unknown while it is the declared
    shape. The user may resize the input, but the runtime asks a delegate only once which nodes it
    claims.
    """
    nodes = [original_step(steps[index], operators[index]) for index in sorted(operators)]
    unset = missing_input_errors(missing_inputs(spec), context.tensors)
    wrong = {**order_errors(spec), **unset}
    errors = {i: wrong[o.index] for i, o in operators.items() if o.index in wrong}
    unknown = [i for i in spec.inputs if i >= 0 and _may_change(spec, context.tensors[i])]
    limit = MemoryLimit.of_machine()
    return check_nodes(context, nodes, limit, errors=errors, unknown=unknown)


def original_step(step: Step, operator: OperatorSpec) -> Step:
    """Return the node of *step* with the inputs that the file declares in *operator*."""
    node, registration = step
    return replace(node, inputs=operator.inputs), registration


def _may_change(spec: SubgraphSpec, tensor: Tensor) -> bool:
    declared = spec.tensors[tensor.index]
    return -1 in declared.shape_signature and tensor.shape == declared.shape
