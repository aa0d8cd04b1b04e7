"""Derives from a subgraph's nodes the tensors, state and dependencies that a schedule needs."""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.graph.calls import called_subgraphs
from delegraph.operators.asynchronous import AsyncEval
from delegraph.operators.registration import Eval, Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.runtime.delegated_plan import DelegatedPlan
from delegraph.runtime.execution.schedule import StateUse, Task
from delegraph.schema.enums import BuiltinOperator, TensorType

_HANDLES = frozenset({TensorType.RESOURCE, TensorType.VARIANT})


def tasks_of(plan: DelegatedPlan, evals: Sequence[Eval], tensors: Sequence[Tensor]) -> list[Task]:
    """Return a task for each node of a plan for which there is an evaluation.

    *evals* are those of the prepared nodes, which are the first nodes of the plan.
    """
    return [
        _task(plan, node, isinstance(step, AsyncEval), tensors)
        for (node, _), step in zip(plan.steps(), evals, strict=False)
    ]


def _task(
    plan: DelegatedPlan, node: Node, is_asynchronous: bool, tensors: Sequence[Tensor]
) -> Task:
    reads = [index for index in node.inputs if index >= 0]
    writes = [index for index in node.outputs if index >= 0]
    writes += [index for index in reads if tensors[index].is_variable]
    uses = (_state_use(*inner, tensors) for inner in plan.model_nodes(node))
    state = max(uses, default=StateUse.NONE)
    if state is StateUse.MAYBE and node.delegate is None:
        state = StateUse.CERTAIN  # custom operators of Python keep their order
    return Task(reads, writes, is_asynchronous, state)


def _state_use(node: Node, registration: Registration, tensors: Sequence[Tensor]) -> StateUse:
    touched = (tensors[index] for index in (*node.inputs, *node.outputs) if index >= 0)
    if any(tensor.type in _HANDLES for tensor in touched):
        return StateUse.CERTAIN
    if any(True for _ in called_subgraphs(node.options)):
        return StateUse.CERTAIN
    is_custom = registration.builtin_code == BuiltinOperator.CUSTOM
    return StateUse.MAYBE if is_custom else StateUse.NONE
